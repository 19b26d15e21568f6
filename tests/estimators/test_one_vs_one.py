"""One versus one against a QP solver, several labels per row, and too many classes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

from dualgap import (
    SVC,
    LinearSVC,
    core,
)
from dualgap.certificate import Certificate, Status
from dualgap.data import RowStore, convert
from dualgap.problems import batch, binary
from dualgap.problems.base import Claim
from dualgap.solvers import DCD

PAIRS = list(itertools.combinations(range(4), 2))
NAMES = np.array(["ant", "bee", "cat", "dog"])


def make(n=120, d=5, K=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.argmax(X @ rng.normal(size=(d, K)) + rng.normal(size=(n, K)), axis=1)
    return X, y, rng.uniform(0.3, 2.0, n)


def ovo(**options):
    options = {"tol": 1e-3, "random_state": 0} | options
    return LinearSVC(multi_class="ovo", **options)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("free", [False, True])
def test_the_model_is_that_of_the_wrapper(kind, free):
    X, y, _ = make()
    X, y = kind(X), NAMES[y]
    ours = ovo(tol=1e-9, penalize_intercept=not free).fit(X, y)
    wrapper = OneVsOneClassifier(ours.__class__(**ours.get_params())).fit(X, y)
    coef = np.vstack([model.coef_ for model in wrapper.estimators_])
    np.testing.assert_allclose(ours.coef_, coef, atol=1e-7)
    values = X @ ours.coef_.T + ours.intercept_
    np.testing.assert_allclose(
        ours.decision_function(X), wrapper.decision_function(X), atol=1e-6
    )
    assert ours.decision_function(X).shape == (120, 4)
    sure = np.abs(values).min(axis=1) > 1e-4
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(ours.predict(X)[sure], wrapper.predict(X)[sure])
    # and the votes decide wherever one class has more of them than any other
    votes = np.zeros((120, 4), int)
    for p, (i, j) in enumerate(PAIRS):
        votes[np.arange(120), np.where(values[:, p] > 0, j, i)] += 1
    clear = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
    assert clear.any()
    np.testing.assert_array_equal(
        ours.predict(X)[clear], NAMES[votes.argmax(axis=1)][clear]
    )


def test_ties_go_to_the_more_confident_class():
    X, y, _ = make()
    model = ovo().fit(X, y)
    # Three classes beat each other in a circle; the last one loses to all.
    model.coef_ = np.zeros((6, 5))
    model.coef_[:, 0] = [-1.0, 2.0, -1.0, -3.0, -1.0, -1.0]
    scores = model.decision_function(np.eye(5)[:1])
    assert model.predict(np.eye(5)[:1]) == [1]
    np.testing.assert_array_equal(np.round(scores), [[2, 2, 2, 0]])


def test_a_certificate_per_pair_and_one_for_all():
    X, y, weight = make()
    weight[:7] = 0.0
    factor = {0: 0.5, 1: 1.0, 2: 2.0, 3: 1.5}
    total = ovo(C=0.7, class_weight=factor).fit(X, y, weight).certificate_
    assert total.parts == tuple(total)
    names = [f"{i} against {j}" for i, j in PAIRS]
    assert [part.name for part in total.parts] == names
    assert total.certified
    assert total.relative_gap <= 1e-3
    assert total.dual <= math.fsum(part.dual for part in total.parts)
    assert total.primal >= math.fsum(part.primal for part in total.parts)
    assert Certificate.total(total) is total
    with pytest.raises(ValueError, match="one or more"):
        Certificate.total([])


def test_the_duals_are_in_the_layout_of_svc():
    X, y, weight = make()
    weight[3] = 0.0
    solver = DCD(acceleration="none")
    model = ovo(solver=solver, fit_intercept=False).fit(X, y, weight)
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert 3 not in model.support_
    np.testing.assert_array_equal(
        model.n_support_, np.bincount(y[model.support_], minlength=4)
    )
    table = np.zeros((3, len(y)))
    table[:, model.support_] = model.dual_coef_
    for p, (i, j) in enumerate(PAIRS):
        signed = np.where(y == i, table[j - 1], np.where(y == j, table[i], 0.0))
        assert (signed * np.where(y == j, 1, -1) >= 0.0).all()
        np.testing.assert_allclose(model.coef_[p], signed @ X, atol=1e-12)


def test_two_classes_are_one_problem_either_way():
    X, y, weight = make(K=2)
    one = LinearSVC(random_state=0).fit(X, y, weight)
    other = ovo().fit(X, y, weight)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


def test_a_checkpoint_per_pair(tmp_path):
    X, y, _ = make()
    options = {"solver": "dcd", "C": 10.0, "tol": 1e-6}
    file = tmp_path / "state"
    with pytest.warns(ConvergenceWarning, match=r"of 6 pairs .* against"):
        ovo(checkpoint=file, checkpoint_every=1e-9, max_iter=3, **options).fit(X, y)
    assert len(list(tmp_path.iterdir())) == 6
    whole = ovo(**options).fit(X, y)
    resumed = ovo(checkpoint=file, checkpoint_every=60.0, **options).fit(X, y)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)


def test_a_store_has_the_same_optimum(tmp_path):
    X, y, weight = make(n=1500, d=40, K=3)
    X = sparse.csr_matrix(X * (np.abs(X) > 1.5))
    convert([(X, y, weight)], tmp_path / "store", shuffle=False)
    streamed = RowStore.open(tmp_path / "store", buffer=60_000)
    assert len(streamed.pages) > 1
    ours = ovo(solver="dcd", C=0.1).fit(streamed)
    model = ovo(solver="dcd", C=0.1).fit(X, y, weight)
    for a, b in zip(ours.certificate_, model.certificate_, strict=True):
        assert a.certified
        assert a.dual <= b.primal
        assert b.dual <= a.primal
    np.testing.assert_allclose(
        ours.decision_function(streamed), ours.decision_function(X), atol=1e-9
    )
    assert ours.dual_coef_.shape[0] == 2


def test_the_linear_kernel_has_the_same_votes():
    X, y, _ = make()
    linear = ovo(loss="hinge", penalize_intercept=False, tol=1e-9).fit(X, y)
    kernel = SVC(kernel="linear", tol=1e-9, random_state=0).fit(X, y)
    np.testing.assert_allclose(kernel.coef_, -linear.coef_, atol=1e-5)
    np.testing.assert_allclose(
        kernel.decision_function(X), linear.decision_function(X), atol=1e-5
    )


@pytest.mark.parametrize("own", [LinearSVC(), SVC()], ids=repr)
def test_several_labels_per_row(own):
    X, Y = make_multilabel_classification(n_samples=80, random_state=0)
    each = [clone(own).fit(X, y) for y in Y.T]
    expected = np.column_stack([model.predict(X) for model in each])
    for wrapper in (OneVsRestClassifier, MultiOutputClassifier):
        found = wrapper(own).fit(X, Y)
        assert all(model.certificate_.certified for model in found.estimators_)
        np.testing.assert_array_equal(found.predict(X), expected)
    chain = ClassifierChain(own).fit(X, Y)
    assert all(model.certificate_.certified for model in chain.estimators_)
    assert chain.estimators_[-1].n_features_in_ == X.shape[1] + Y.shape[1] - 1


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("multi_class", "columns"),
    [  # with one column, the nonzero dual variables of "ovr" may be few
        ("ovr", 10**7),
        *itertools.product(("ovo", "crammer_singer"), (1, 10**7)),
    ],
)
def test_what_cannot_fit_is_refused_before_any_work(multi_class, columns, monkeypatch):
    def work(*_, **__):
        raise AssertionError("work began")

    monkeypatch.setattr(binary.BinaryProblem, "__init__", work)
    monkeypatch.setattr(batch.Points, "of", work)
    classes = 500_000
    X = np.arange(2.0 * classes)[:, None]
    if columns > 1:
        X = sparse.csr_array((X[:, 0], np.arange(len(X)), np.arange(len(X) + 1)),
                             shape=(len(X), columns))  # fmt: skip
    model = LinearSVC(loss="hinge", multi_class=multi_class)
    with pytest.raises(
        MemoryError, match=f"500000 classes of 1000000 rows and {columns} col"
    ):
        model.fit(X, np.arange(2 * classes) // 2)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_a_problem_that_was_not_reached_has_the_zero_model(loss, multi_class):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), np.arange(90) % 30
    model = LinearSVC(C=0.7, loss=loss, multi_class=multi_class)
    data = model._read(X, y, rng.uniform(0.0, 2.0, 90))
    batch = model._batch(data)
    assert batch.takes_long(warm=False)
    for k in (0, len(batch) - 1):
        zero, problem = batch.unreached(k), batch.problem(k)
        own = problem.prove(Claim(zero.w, zero.alpha.copy())).certificate
        assert zero.certificate.primal == pytest.approx(own.primal, rel=1e-12)
        assert zero.certificate.primal >= own.primal - own.rounding
        assert zero.certificate.dual == own.dual == 0.0


def test_a_stop_ends_many_classes_without_starting_them(monkeypatch):
    monkeypatch.setattr(binary.BinaryProblem, "prove", None)
    X, y = np.random.default_rng(0).normal(size=(90, 3)), np.arange(90) % 30
    stop = core.Stop()
    stop.request()
    model = LinearSVC()
    with pytest.warns(ConvergenceWarning, match="30 of 30 classes did not converge"):
        model._fit(X, y, stop=stop)
    assert not model.coef_.any()
    assert {part.status for part in model.certificate_.parts} == {Status.INTERRUPTED}


@pytest.mark.cases(None)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 3: 0.0}])
@pytest.mark.parametrize("labels", [False, True])
def test_a_stop_makes_no_array_of_rows_for_each_class(
    labels, class_weight, weighted, monkeypatch
):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(120, 3)), np.arange(120) % 40
    weight = rng.uniform(0.5, 2.0, 120) if weighted else None
    if labels:
        y = (rng.uniform(size=(120, 40)) < 0.3).astype(int)
        class_weight = {0: 1.0, 1: 2.0} if class_weight else None
    model = LinearSVC(class_weight=class_weight, loss="hinge")
    batch = model._batch(model._read(X, y, weight))
    assert len(batch) == 40
    calls = []
    for name in ("place", "weights"):
        whole = getattr(type(batch), name)
        monkeypatch.setattr(
            type(batch),
            name,
            lambda self, k, whole=whole: [calls.append(k), whole(self, k)][1],
        )
    found = [batch.unreached(k) for k in range(40)]
    assert not calls
    for k, zero in enumerate(found):
        own = batch.problem(k).prove(Claim(zero.w, zero.alpha.copy())).certificate
        assert zero.certificate.primal == pytest.approx(own.primal, rel=1e-11)
        assert zero.certificate.primal >= own.primal - own.rounding
        assert zero.certificate.dual == 0.0


def test_a_stopped_warm_start_keeps_the_earlier_models():
    X, y = np.random.default_rng(0).normal(size=(90, 3)), np.arange(90) % 30
    model = LinearSVC(warm_start=True).fit(X, y)
    coef, stop = model.coef_.copy(), core.Stop()
    stop.request()
    model._fit(X, y, stop=stop)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-6)
    assert model.certificate_.certified
