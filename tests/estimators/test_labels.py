"""Linear classifiers with a table of labels: a column of y for each."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.multiclass import OneVsRestClassifier

from dualgap import (
    LinearSVC,
    LogisticRegression,
    certify,
    load_model,
    save_model,
)

X, Y = make_multilabel_classification(150, 6, n_classes=4, random_state=0)
X = X / 10
WEIGHT = np.arange(150) % 3 + 0.5

each = pytest.mark.parametrize("make", [LinearSVC, LogisticRegression])


@pytest.mark.parametrize(
    "kind",
    [
        partial(LinearSVC, loss="hinge"),
        LinearSVC,
        LogisticRegression,
        partial(LogisticRegression, fit_intercept=False),
    ],
)
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 3.0}])
@pytest.mark.parametrize("weight", [np.ones(150), WEIGHT])
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.cases(12)
def test_the_problems_are_those_of_one_model_per_column(
    kind, class_weight, weight, many
):
    """Also where more than 20 of them have sparse dual variables."""
    table = np.tile(Y, (1, 6)) if many else Y
    own = kind(class_weight=class_weight).fit(X, table, weight)
    assert own.multilabel_
    assert own.certificate_.certified
    again = certify(own, X, table, sample_weight=weight)
    for k, (part, theirs) in enumerate(zip(own.certificate_, again, strict=True)):
        total = weight
        if class_weight == "balanced":
            sides = np.bincount(table[:, k], total)
            total = total * (total.sum() / (2 * sides))[table[:, k]]
        elif class_weight:
            total = total * np.where(table[:, k], 3.0, 1.0)
        one = kind().fit(X, table[:, k], total)
        assert part.name == f"label {k}"
        assert part.dual <= one.certificate_.primal
        assert one.certificate_.dual <= part.primal
        assert theirs.primal == pytest.approx(part.primal, rel=1e-12)
        if isinstance(own, LogisticRegression):
            np.testing.assert_allclose(own.coef_[k], one.coef_[0], rtol=1e-9)
            found = own.predict_proba(X)[:, k]
            np.testing.assert_allclose(found, one.predict_proba(X)[:, 1], rtol=1e-7)
        else:  # 1/2 ||w - w(alpha)||^2 <= P - D
            most = np.sqrt(2 * (part.primal - part.dual)) + 1e-9
            assert sparse.issparse(own.dual_coef_) == many
            point = own.dual_coef_ @ X[own.support_]
            assert np.linalg.norm(own.coef_[k] - point[k]) <= most


@each
def test_predictions_are_those_of_scikit_learns_wrapper(make):
    own = make().fit(X, Y)
    rest = OneVsRestClassifier(make()).fit(X, Y)
    np.testing.assert_array_equal(own.classes_, rest.classes_)
    np.testing.assert_array_equal(own.predict(X), rest.predict(X))
    np.testing.assert_allclose(own.decision_function(X), rest.decision_function(X))
    assert own.score(X, Y) == rest.score(X, Y) == (own.predict(X) == Y).all(1).mean()
    if make is LinearSVC:
        counts = [(Y[own.support_, k] == 1).sum() for k in range(4)]
        assert own.n_support_.tolist() == counts
    else:
        np.testing.assert_allclose(own.predict_proba(X), rest.predict_proba(X))


@pytest.mark.parametrize(
    "form", [sparse.csr_matrix, sparse.csc_array, np.ndarray.tolist]
)
@each
def test_forms_of_the_table(form, make, tmp_path):
    own, table = make().fit(X, Y), form(Y)
    other = make(n_jobs=2).fit(X, table)
    np.testing.assert_array_equal(other.coef_, own.coef_)
    found = other.predict(X)
    assert sparse.issparse(found) == sparse.issparse(table)
    save_model(other, tmp_path / "model", duals=make is LinearSVC)
    for copied in (pickle.loads(pickle.dumps(other)), load_model(tmp_path / "model")):
        assert type(copied.predict(X)) is type(found)
        assert copied.certificate_ == other.certificate_
    if sparse.issparse(found):
        assert (copied.predict(X) != found).nnz == 0
        found = found.toarray()
    np.testing.assert_array_equal(found, own.predict(X))


@each
def test_two_labels_have_two_problems(make):
    own = make().fit(X, Y[:, :2])
    assert own.coef_.shape == (2, 6)
    assert own.decision_function(X).shape == own.predict(X).shape == (150, 2)
    assert not make().fit(X, Y[:, :1].ravel()).multilabel_
    assert not own.fit(X, Y[:, 0]).multilabel_


def test_a_label_that_no_row_has_or_all_is_named():
    table = Y.copy()
    table[:, 1], table[:, 2] = 0, 1
    with pytest.warns(match=r"agree on 2 of 4 labels \(1, 2\)"):
        own = LinearSVC().fit(X, table)
    assert own.certificate_.certified
    assert not own.predict(X)[:, 1].any()
    assert own.predict(X)[:, 2].all()


def test_a_label_without_an_optimum_of_its_intercept_is_refused():
    table = Y.copy()
    table[:, 1] = 0
    model = LogisticRegression()
    with pytest.raises(ValueError, match=r"no row .* have label 1, "):
        model.fit(X, table)
    with pytest.raises(ValueError, match=r"all rows .* have label 2, "):
        model.fit(X, Y, np.where(Y[:, 2], 1.0, 0.0))
    without = LogisticRegression(fit_intercept=False).fit(X, table)
    assert without.certificate_.certified
    assert (without.coef_[1] < 0.0).all()


def test_certain_labels():
    own = LinearSVC().fit(X, sparse.csr_matrix(Y)).bound_optimum(X, Y)
    certain = own.certified_labels(X)
    assert certain.shape == Y.shape
    assert certain.any()
    better = LinearSVC(tol=1e-9).fit(X, Y).predict(X)
    assert (own.predict(X).toarray() == better)[certain].all()
