"""Files of LIBLINEAR and LIBSVM: they read ours, we read theirs, and all agree."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from liblinear import liblinearutil
from libsvm import svmutil
from scipy import sparse
from sklearn.datasets import make_classification

from dualgap import SVC, LinearSVC, certify
from dualgap.kernel import RBF
from dualgap.models import read_liblinear, read_libsvm, write_liblinear, write_libsvm

from ..conftest import examples


def make(classes, n=150, d=7):
    X, y = make_classification(
        n, d, n_informative=5, n_classes=classes, flip_y=0.1, random_state=classes
    )
    # Labels in no order, the first to come not the smallest.
    labels = np.array([7, -2, 40, 3])[:classes]
    first = np.argmax(y == 0)
    order = np.r_[first, np.delete(np.arange(n), first)]
    return X[order], labels[y[order]]


def sorted_pairs(values, labels):
    """LIBSVM's values of the pairs, in the order of the labels in its file."""
    pairs = [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :]]
    return {frozenset(p): (p, v) for p, v in zip(pairs, values.T, strict=True)}


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", [0.0, 1.0, 3.0])
def test_liblinear_reads_ours(tmp_path, classes, loss, intercept):
    X, y = make(classes)
    path = tmp_path / "model"
    ours = LinearSVC(
        loss=loss, fit_intercept=intercept > 0, intercept_scaling=intercept or 1.0
    ).fit(X, y)
    write_liblinear(ours, path)
    theirs = liblinearutil.load_model(str(path))
    labels, _, values = liblinearutil.predict(y, sparse.csr_matrix(X), theirs, "-q")
    assert np.array_equal(labels, ours.predict(X))
    columns = theirs.get_labels()
    decision = ours.decision_function(X)
    if classes == 2:
        assert columns[0] == ours.classes_[1]
        assert np.allclose(np.array(values)[:, 0], decision, rtol=1e-12, atol=1e-12)
    else:
        found = np.array(values)[:, np.argsort(columns)]
        assert np.allclose(found, decision, rtol=1e-12, atol=1e-12)
    again = read_liblinear(path)
    assert np.array_equal(again.coef_, ours.coef_)
    assert np.allclose(again.intercept_, ours.intercept_, rtol=1e-15)
    assert again.loss == loss


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("bias", [-1, 1, 2.5])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_we_read_liblinear(tmp_path, classes, bias, kind):
    X, y = make(classes)
    path = str(tmp_path / "model")
    theirs = liblinearutil.train(y, sparse.csr_matrix(X), f"-s {kind} -B {bias} -q")
    liblinearutil.save_model(path, theirs)
    ours = read_liblinear(path)
    labels, _, _ = liblinearutil.predict(y, sparse.csr_matrix(X), theirs, "-q")
    assert np.array_equal(ours.predict(X), labels)
    assert ours.n_features_in_ == X.shape[1]
    assert ours.multi_class == ("crammer_singer" if kind == 4 else "ovr")
    bounds = certify(ours, X, y)
    assert len(bounds) == (1 if classes == 2 or kind == 4 else classes)
    for bound in bounds:
        assert -1e-9 <= bound.relative_gap < 0.1


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("intercept", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(
    ("kind", "more"),
    [(LinearSVC, {"loss": "hinge"}), (sklearn.svm.LinearSVC, {"max_iter": 10**6})],
)
def test_joint_problems_go_to_liblinear_and_back(
    tmp_path, kind, more, classes, intercept
):
    X, y = make(classes)
    path = tmp_path / "model"
    ours = kind(
        multi_class="crammer_singer",
        fit_intercept=intercept > 0,
        intercept_scaling=intercept or 1.0,
        tol=1e-5,
        random_state=0,
        **more,
    ).fit(X, y)
    write_liblinear(ours, path)
    theirs = liblinearutil.load_model(str(path))
    labels, _, values = liblinearutil.predict(y, sparse.csr_matrix(X), theirs, "-q")
    assert np.array_equal(labels, ours.predict(X))
    if classes > 2:
        found = np.array(values)[:, np.argsort(theirs.get_labels())]
        np.testing.assert_allclose(found, ours.decision_function(X), rtol=1e-12)
    again = read_liblinear(path)
    assert again.multi_class == "crammer_singer"
    np.testing.assert_array_equal(again.predict(X), ours.predict(X))
    np.testing.assert_allclose(again.coef_, ours.coef_, rtol=1e-14)
    # The objective of the file is LIBLINEAR's optimum.
    options = f"-s 4 -B {intercept or -1} -e 1e-8 -q"
    solved = liblinearutil.train(y, sparse.csr_matrix(X), options)
    liblinearutil.save_model(str(path), solved)
    best = certify(read_liblinear(path), X, y)
    assert best.relative_gap < 1e-3
    assert certify(again, X, y).primal == pytest.approx(best.primal, rel=2e-5)


KERNELS = [
    ("-t 0", {"kernel": "linear"}),
    (
        "-t 1 -d 2 -g 0.5 -r 1",
        {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1},
    ),
    ("-t 2 -g 0.2", {"kernel": "rbf", "gamma": 0.2}),
    ("-t 3 -g 0.01 -r 0.1", {"kernel": "sigmoid", "gamma": 0.01, "coef0": 0.1}),
]


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize(("options", "settings"), KERNELS[:3])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_libsvm_reads_ours(tmp_path, classes, options, settings, layout):
    X, y = make(classes)
    path = tmp_path / "model"
    ours = SVC(loss="squared_hinge", decision_function_shape="ovo", **settings).fit(
        layout(X), y
    )
    write_libsvm(ours, path)
    theirs = svmutil.svm_load_model(str(path))
    labels, _, values = svmutil.svm_predict(y, sparse.csr_matrix(X), theirs, "-q")
    decision = ours.decision_function(X).reshape(len(X), -1)
    if classes == 2:
        decision = -decision  # the first class is the positive one there
    scale = np.abs(decision).max()
    assert np.allclose(values, decision, rtol=0, atol=1e-5 * scale)
    near = (np.abs(decision) < 1e-4 * scale).any(axis=1)
    assert np.array_equal(np.array(labels)[~near], ours.predict(layout(X))[~near])
    again = read_libsvm(path, n_features=X.shape[1])
    again.decision_function_shape = "ovo"
    found = again.decision_function(layout(X)).reshape(len(X), -1)
    assert np.allclose(
        found, -decision if classes == 2 else decision, atol=1e-5 * scale
    )
    assert np.array_equal(again.n_support_, ours.n_support_)


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize(("options", "settings"), KERNELS)
def test_we_read_libsvm(tmp_path, classes, options, settings):
    X, y = make(classes)
    path = str(tmp_path / "model")
    theirs = svmutil.svm_train(y, sparse.csr_matrix(X), f"-q -c 2 {options}")
    svmutil.svm_save_model(path, theirs)
    labels, _, values = svmutil.svm_predict(y, sparse.csr_matrix(X), theirs, "-q")
    ours = read_libsvm(path, n_features=X.shape[1])
    ours.decision_function_shape = "ovo"
    decision = ours.decision_function(X).reshape(len(X), -1)
    by_pair = sorted_pairs(np.array(values), theirs.get_labels())
    scale = np.abs(values).max()
    pairs = [
        (a, b) for i, a in enumerate(ours.classes_) for b in ours.classes_[i + 1 :]
    ]
    for column, (a, b) in zip(decision.T, pairs, strict=True):
        (first, _), value = by_pair[frozenset((a, b))]
        sign = 1.0 if first == (b if classes == 2 else a) else -1.0
        assert np.allclose(column, sign * value, rtol=0, atol=1e-5 * scale)
    near = (np.abs(decision) < 1e-4 * scale).any(axis=1)
    if (
        classes > 2
    ):  # of equal votes each takes the class that stands first in its order
        votes = sum(
            np.where(column > 0, a, b)[:, None] == ours.classes_
            for column, (a, b) in zip(decision.T, pairs, strict=True)
        )
        near |= (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    assert (~near).sum() > 100
    assert np.array_equal(ours.predict(X)[~near], np.array(labels)[~near])
    with pytest.raises(ValueError, match="was read from a file"):
        certify(ours, X, y)


LINEAR = """solver_type L2R_L1LOSS_SVC_DUAL
nr_class 2
label 1 -1
nr_feature 2
bias -1
w
0.5
-0.25
"""
KERNEL = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho 0.1
label 1 -1
nr_sv 1 1
SV
1 1:0.5 3:2
-1 2:1
"""


def test_the_examples_are_read(tmp_path):
    path = tmp_path / "model"
    path.write_text(LINEAR)
    assert read_liblinear(path).coef_.tolist() == [[0.5, -0.25]]
    path.write_text(KERNEL)
    assert read_libsvm(path).dual_coef_.tolist() == [[-1.0, 1.0]]


@pytest.mark.parametrize(
    ("read", "text", "old", "new", "message"),
    [
        (read_liblinear, LINEAR, "L2R_L1LOSS_SVC_DUAL", "L2R_LR", "line 6.*L2R_LR"),
        (
            read_liblinear,
            LINEAR,
            "nr_class 2",
            "nr_class two",
            "one value of 'nr_class'",
        ),
        (read_liblinear, LINEAR, "nr_class 2", "nr_class 1", "nr_class 1 is not"),
        (read_liblinear, LINEAR, "nr_class 2\n", "", "one value of 'nr_class'"),
        (read_liblinear, LINEAR, "label 1 -1", "label 1 1", "2 different labels"),
        (read_liblinear, LINEAR, "bias -1", "bias nan", "is not a finite number"),
        (
            read_liblinear,
            LINEAR,
            "nr_feature 2",
            "nr_feature 3",
            "expected 3 more lines",
        ),
        (read_liblinear, LINEAR, "nr_feature 2", "nr_feature 9" * 9, "nr_feature"),
        (read_liblinear, LINEAR, "-0.25", "inf", "line 8.*1 finite"),
        (read_liblinear, LINEAR, "L2R_L1LOSS_SVC_DUAL", "MCSVM_CS", "2 finite numbers"),
        (read_liblinear, LINEAR, "\nw\n", "\n", "ends before|a field"),
        (read_libsvm, KERNEL, "c_svc", "nu_svr", "must be one of c_svc"),
        (read_libsvm, KERNEL, "rbf", "precomputed", "kernel_type precomputed"),
        (read_libsvm, KERNEL, "nr_sv 1 1", "nr_sv 1 2", "must be counts with the sum"),
        (read_libsvm, KERNEL, "nr_sv 1 1", "nr_sv 1.5 0.5", "must be counts"),
        (read_libsvm, KERNEL, "nr_sv 1 1", "nr_sv 1.5 1", "must be counts"),
        (read_libsvm, KERNEL, "rho 0.1", "rho 1_0", "1 finite numbers for rho"),
        (read_liblinear, LINEAR, "label 1 -1", "label 1 -9999999999", "below 2"),
        (read_libsvm, KERNEL, "rho 0.1", "rho", "1 finite numbers for rho"),
        (read_libsvm, KERNEL, "3:2", "1:2", "line 10.*increasing indices"),
        (read_libsvm, KERNEL, "3:2", "3:nan", "line 10.*finite"),
        (read_libsvm, KERNEL, "3:2", "99999999999:2", "increasing indices"),
        (read_libsvm, KERNEL, "-1 2:1\n", "", "expected 2 more lines"),
    ],
)
def test_malformed_files(tmp_path, read, text, old, new, message):
    path = tmp_path / "model"
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=message) as error:
        read(path)
    assert str(path) in str(error.value)


@settings(deadline=None, max_examples=examples(300))
@given(st.data())
def test_a_damaged_file_is_read_or_refused(tmp_path_factory, data):
    text, read = data.draw(
        st.sampled_from([(LINEAR, read_liblinear), (KERNEL, read_libsvm)])
    )
    damaged = list(text)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(
            st.sampled_from([*"0123456789-.:e \n", "", "é", "9" * 30])
        )
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_text("".join(damaged), encoding="utf-8")
    try:
        model = read(path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert np.isfinite(model.intercept_).all()


def test_more_columns_than_were_named_are_refused(tmp_path):
    path = tmp_path / "model"
    write_libsvm(SVC(kernel=RBF(0.1), loss="squared_hinge").fit(*make(2)), path)
    with pytest.raises(ValueError, match="n_features=2"):
        read_libsvm(path, n_features=2)
    assert list(tmp_path.iterdir()) == [path]
