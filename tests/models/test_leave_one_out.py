"""loo_bounds and cv_bounds enclose the errors that refits have."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from dualgap import SVC, LinearSVC
from dualgap.answers import left_out
from dualgap.models import cv_bounds, influence, loo_bounds, what_if


def iris(classes=3, n=60):
    X, y = load_iris(return_X_y=True)
    rows = np.flatnonzero(y >= 3 - classes)
    rows = np.random.default_rng(0).permutation(rows)[:n]
    return scale(X[rows]), y[rows]


MODELS = [
    LinearSVC(0.5),
    LinearSVC(1.0, loss="squared_hinge", fit_intercept=False),
    LinearSVC(0.5, penalize_intercept=False, class_weight={1: 2.0}),
    SVC(C=2.0, gamma=0.5),
    SVC(C=2.0, gamma=0.5, loss="squared_hinge"),
]


def wrong_without(model, X, y, folds):
    """Return for each row if a tight fit without its fold predicts it wrongly."""
    exact = clone(model).set_params(tol=1e-11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        parts = [
            exact.fit(X[train], y[train]).predict(X[test]) != y[test]
            for train, test in folds
        ]
    return np.concatenate(parts)


SEVERAL = [
    *MODELS[:2],
    LinearSVC(0.5, multi_class="ovo"),
    LinearSVC(0.5, multi_class="ovo", penalize_intercept=False),
    *MODELS[3:],
    SVC(C=2.0, gamma=0.5, break_ties=True, class_weight={1: 2.0}),
]


@pytest.mark.cases(None)
@pytest.mark.parametrize("left", ["one", "folds"])
@pytest.mark.parametrize(
    ("model", "classes"),
    [*((model, 2) for model in MODELS), *((model, 3) for model in SEVERAL)],
    ids=str,
)
def test_the_exact_error_is_that_of_refits(model, classes, left):
    n = 30 if left == "one" else 60
    X, y = iris(classes, n)
    model.fit(X, y)
    if left == "one":
        parts, ask = [(np.delete(np.arange(n), i), [i]) for i in range(n)], loo_bounds
    else:
        parts = list(KFold(4, shuffle=True, random_state=0).split(X))
        ask = partial(cv_bounds, cv=parts)
    wrong, before = wrong_without(model, X, y, parts), None
    assert wrong.any() or left == "folds"
    for refine in ("none", "local", "exact"):
        found = ask(model, X, y, refine=refine)
        assert not (found.right & wrong).any()
        assert not (found.wrong & ~wrong).any()
        if before is not None:
            assert found.lower >= before.lower
            assert found.upper <= before.upper
        before = found
    assert found.exact
    assert found.lower == found.upper == wrong.mean()
    if left == "folds":
        np.testing.assert_array_equal(found.wrong, wrong)
        assert found.n_fits >= 4
        assert found.method == "4-fold"
        loose = ask(model, X, y, refine="none", tol=1e-3)
        assert loose.lower <= found.lower <= loose.upper


def test_kinds_of_input_and_a_pipeline():
    X, y = iris(2, 30)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = LinearSVC(0.3, random_state=0).fit(X, names)
    whole = loo_bounds(model, X, names)
    for rows in (sparse.csr_matrix(X), pd.DataFrame(X), X.astype(np.float32)):
        other = loo_bounds(model, rows, pd.Series(names))
        assert (other.lower_margins <= whole.upper_margins + 1e-4).all()
        assert (other.upper_margins >= whole.lower_margins - 1e-4).all()
    pipe = make_pipeline(StandardScaler(), LinearSVC(0.3, random_state=0))
    pipe.fit(3.0 * X, names)
    again = loo_bounds(pipe, 3.0 * X, names)
    assert (again.lower, again.upper) == (whole.lower, whole.upper)


def test_odd_rows():
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [-1.0, 2.0]])
    y, weight = np.array([1, 0, 1, 1, 0]), np.array([1.0, 1.0, 0.0, 2.0, 1.0])
    for C in (1e-6, 1.0, 1e4):
        model = LinearSVC(C, fit_intercept=False).fit(X, y, weight)
        found = loo_bounds(model, X, y, sample_weight=weight, refine="exact")
        # A row of zeros has the decision 0, which predicts the first class.
        assert found.wrong[0]
        assert found.right[1]


def test_a_class_of_one_row_and_one_feature():
    X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1, 1, 0])
    for options in ({}, {"penalize_intercept": False}):
        model = LinearSVC(1.0, **options).fit(X, y)
        found = loo_bounds(model, X, y, refine="exact")
        assert not found.right[2]  # nothing tells of the class that is left out


def test_the_record_says_what_is_known():
    X, y = iris(2, 30)
    model = LinearSVC(0.5).fit(X, y)
    found = loo_bounds(model, X, y, refine="none")
    assert f"{len(found.undecided)} of 30 rows are undecided." in str(found)
    assert repr(found).startswith("ErrorBounds(lower=")
    found = loo_bounds(model, X, y, refine="exact")
    assert str(found).endswith("%, proved for all rows.")


def test_a_time_limit_and_ctrl_c_keep_the_bounds_so_far(monkeypatch):
    X, y = iris(2, 40)
    model = LinearSVC(1.0, random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="at the time limit"):
        some = loo_bounds(model, X, y, refine="exact", time_limit=1e-9)
    exact = loo_bounds(model, X, y, refine="exact")
    assert some.lower <= exact.lower <= some.upper

    def interrupted(*args, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(left_out.LeftOut, "settle", interrupted)
    with pytest.warns(ConvergenceWarning, match="by Ctrl-C"):
        some = loo_bounds(model, X, y, refine="exact")
    assert some.lower <= exact.lower <= some.upper


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
    ("model", "several"),
    [
        (LinearSVC(1.0, tol=1e-9, random_state=0), False),
        (SVC(C=2.0, gamma=0.05, loss="squared_hinge", tol=1e-9), False),
        (LinearSVC(0.3, tol=1e-9), True),
        (LinearSVC(0.3, tol=1e-9, multi_class="ovo"), True),
        (SVC(tol=1e-9, gamma=0.5, loss="squared_hinge"), True),
    ],
    ids=str,
)
def test_influence_names_every_row_whose_removal_flips_a_label(model, several):
    X, y = cancer(80)
    new = 0.3 * cancer(300)[0][-40:]
    if several:
        X, y = load_iris(return_X_y=True)
        X, new, y = scale(X)[::5], 0.7 * scale(X)[1::5], y[::5]
    model.fit(X, y)
    before, flips = model.predict(new), influence(model, X, y, new)
    assert flips.shape == (len(new), len(X))
    assert flips.mean() < 0.5 if several else not flips.all()
    really = 0
    for i in model.support_:
        kept = np.delete(np.arange(len(X)), i)
        changed = clone(model).fit(X[kept], y[kept]).predict(new) != before
        really += changed.sum()
        assert flips[changed, i].all()
    assert really or several
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
