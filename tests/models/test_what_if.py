"""what_if and influence enclose what refits of changed rows do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from dualgap import SVC, LinearSVC
from dualgap.models import influence, what_if


def cancer(n=200):
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:n], y[:n]


@pytest.mark.parametrize("as_sparse", [False, True])
def test_weights_labels_and_a_warm_refit(as_sparse):
    X, y = cancer()
    X = sparse.csr_matrix(X) if as_sparse else X
    model = LinearSVC(0.05, tol=1e-9, class_weight="balanced", random_state=0)
    model.fit(X, y)
    rows = model.support_[:3]
    change = what_if(model, X, y, without=rows)
    again = change.refit(1e-10)
    assert again.certificate_.certified
    lower, upper = change.coef_bounds()
    assert lower.shape == model.coef_.shape
    assert (lower <= again.coef_).all()
    assert (again.coef_ <= upper).all()
    assert (upper - lower < 0.5 * np.abs(model.coef_).max()).all()
    certain = change.certified_labels(X)
    assert certain.mean() > 0.9
    same = again.predict(X) == model.predict(X)
    assert same[certain].all()
    # The same costs, trained from the beginning.
    weight = len(y) / (2 * np.bincount(y))[y]
    kept = np.setdiff1d(np.arange(len(y)), rows)
    cold = LinearSVC(0.05, tol=1e-10).fit(X[kept], y[kept], weight[kept])
    np.testing.assert_allclose(
        cold.certificate_.primal, again.certificate_.primal, rtol=1e-9
    )


def test_a_row_without_a_dual_variable_changes_nothing():
    X, y = cancer()
    model = LinearSVC(0.05, tol=1e-10, random_state=0).fit(X, y)
    _, others = model.certified_support(X, y)
    change = what_if(model, X, y, without=np.flatnonzero(others)[:20])
    assert change.radius < 1e-3
    assert "without 20 rows" in str(change)
    mask = np.zeros(len(y), bool)
    mask[np.flatnonzero(others)[:20]] = True
    assert repr(what_if(model, X, y, without=mask)) == repr(change)
    nothing = what_if(model, X, y)
    assert nothing.n_without == nothing.n_more == 0
    assert "without a change" in str(nothing)


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(1.0, tol=1e-9, random_state=0),
        SVC(C=2.0, gamma=0.05, loss="squared_hinge", tol=1e-9),
    ],
    ids=["linear", "kernel"],
)
def test_influence_names_every_row_whose_removal_flips_a_label(model):
    X, y = cancer(80)
    model.fit(X, y)
    new = 0.3 * cancer(300)[0][-40:]
    before = model.predict(new)
    flips = influence(model, X, y, new)
    assert flips.shape == (40, 80)
    assert not flips.all()
    really = 0
    for i in model.support_:
        kept = np.delete(np.arange(80), i)
        again = type(model)(**model.get_params()).fit(X[kept], y[kept])
        changed = again.predict(new) != before
        really += changed.sum()
        assert flips[changed, i].all()
    assert really
    without_repair = influence(model, X, y, new, repair=False)
    assert (without_repair | ~flips).all()


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(0.1, tol=1e-9, multi_class="ovo", class_weight={0: 2.0}),
        LinearSVC(0.1, tol=1e-9, multi_class="ovo", penalize_intercept=False),
        SVC(tol=1e-9, gamma=0.5, class_weight={0: 2.0}),
        SVC(tol=1e-9, gamma=0.5, loss="squared_hinge", break_ties=True),
        SVC(tol=1e-9, kernel="linear"),
    ],
    ids=str,
)
def test_pairs_of_classes(model):
    X, y = load_iris(return_X_y=True)
    X, new = scale(X)[::2], scale(X)[1::2]
    y = y[::2]
    model.fit(X, y)
    left = model.support_[:2]
    change = what_if(model, X, y, without=left, X_more=new[:1], y_more=[0])
    again = change.refit(1e-11)
    certain = change.certified_labels(new)
    assert certain.mean() > 0.8
    assert (again.predict(new) == model.predict(new))[certain].all()
    assert len(again.certificate_.parts) == 3
    lower, upper = change.decision_bounds(new)
    scores = again.decision_function(new)
    assert lower.shape == upper.shape == scores.shape == (75, 3)
    assert ((lower <= scores) & (scores <= upper)).mean() > 0.99  # votes may jump
    if hasattr(model, "coef_"):
        low, high = change.coef_bounds()
        assert ((low <= again.coef_) & (again.coef_ <= high)).all()
    # The same rows and costs, trained from the beginning.
    kept = np.setdiff1d(np.arange(len(y)), left)
    cold = clone(model).set_params(tol=1e-11)
    cold.fit(np.vstack([X[kept], new[:1]]), np.append(y[kept], 0))
    if not isinstance(model, SVC):  # gamma and costs are numbers
        np.testing.assert_allclose(
            cold.certificate_.primal, again.certificate_.primal, rtol=1e-9
        )


def test_influence_of_several_classes():
    X, y = load_iris(return_X_y=True)
    X, new, y = scale(X)[::5], 0.7 * scale(X)[1::5], y[::5]
    for model in (
        LinearSVC(0.3, tol=1e-9),
        LinearSVC(0.3, tol=1e-9, multi_class="ovo"),
        SVC(tol=1e-9, gamma=0.5, loss="squared_hinge"),
    ):
        model.fit(X, y)
        flips = influence(model, X, y, new)
        assert flips.shape == (30, 30)
        assert flips.mean() < 0.5
        before = model.predict(new)
        for i in model.support_:
            kept = np.delete(np.arange(30), i)
            changed = clone(model).fit(X[kept], y[kept]).predict(new) != before
            assert flips[changed, i].all()
