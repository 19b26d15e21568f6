"""Linear classifiers with a table of labels: a column of y for each."""

from __future__ import annotations

import pickle

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


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 3.0}])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.cases(8)
def test_the_problems_are_those_of_one_model_per_column(
    loss, class_weight, weight, many
):
    """Also where more than 20 of them have sparse dual variables."""
    table = np.tile(Y, (1, 6)) if many else Y
    own = LinearSVC(loss=loss, class_weight=class_weight).fit(X, table, weight)
    assert own.multilabel_
    assert own.certificate_.certified
    assert sparse.issparse(own.dual_coef_) == many
    parts, point = own.certificate_.parts, own.dual_coef_ @ X[own.support_]
    for k, part in enumerate(parts):
        one = LinearSVC(loss=loss, class_weight=class_weight)
        if class_weight == "balanced":  # where scikit-learn counts no sample weights
            sides = [WEIGHT[table[:, k] == s].sum() if weight is not None else
                     np.sum(table[:, k] == s) for s in (0, 1)]  # fmt: skip
            total = sum(sides)
            one.class_weight = {s: total / (2 * sides[s]) for s in (0, 1)}
        one.fit(X, table[:, k], weight)
        assert part.name == f"label {k}"
        assert part.dual <= one.certificate_.primal
        assert one.certificate_.dual <= part.primal
        # 1/2 ||w - w(alpha)||^2 <= P - D
        most = np.sqrt(2 * (part.primal - part.dual)) + 1e-9
        assert np.linalg.norm(own.coef_[k] - point[k]) <= most
    again = certify(own, X, table, sample_weight=weight)
    for mine, theirs in zip(parts, again.parts, strict=True):
        assert theirs.primal == pytest.approx(mine.primal, rel=1e-12)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 3.0}])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_logistic_problems_are_those_of_one_model_per_column(
    class_weight, weight, fit_intercept
):
    own = LogisticRegression(class_weight=class_weight, fit_intercept=fit_intercept)
    own.fit(X, Y, weight)
    assert own.certificate_.certified
    again = certify(own, X, Y, sample_weight=weight)
    for k, part in enumerate(own.certificate_.parts):
        one = LogisticRegression(fit_intercept=fit_intercept)
        total = np.ones(150) if weight is None else weight
        if class_weight == "balanced":
            sides = np.bincount(Y[:, k], total)
            total = total * (total.sum() / (2 * sides))[Y[:, k]]
        elif class_weight:
            total = total * np.where(Y[:, k], 3.0, 1.0)
        one.fit(X, Y[:, k], total)
        np.testing.assert_allclose(own.coef_[k], one.coef_[0], rtol=1e-12)
        assert part.name == f"label {k}"
        assert part.primal == pytest.approx(one.certificate_.primal, rel=1e-12)
        assert again.parts[k].primal == pytest.approx(part.primal, rel=1e-12)
        np.testing.assert_allclose(
            own.predict_proba(X)[:, k], one.predict_proba(X)[:, 1]
        )


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
