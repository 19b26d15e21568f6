"""Certificates of ridge and Huber regression that scikit-learn trained."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    HuberRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import certify
from dualgap.problems.regression import RegressionProblem

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 4)) + 2.0
CLASSES = np.array(list("abc"))[np.argmax(X[:, :3] + RNG.standard_normal((80, 3)), 1)]
LABELS = (X[:, :3] + RNG.standard_normal((80, 3)) > 2.0).astype(int)
TARGETS = X @ [1.0, -2.0, 0.5, 0.0] + RNG.standard_normal(80)
TARGETS[:6] += 40.0
WEIGHT = RNG.uniform(0.5, 2.0, 80)
WEIGHT[70:] = 0.0


def ridge_primal(model, Y, weight, alpha):
    """Return the objectives of the columns, over 2 alpha."""
    residual = Y - X @ model.coef_.reshape(-1, 4).T - model.intercept_
    penalty = 0.5 * (model.coef_.reshape(-1, 4) ** 2).sum(axis=1)
    return penalty + weight @ residual**2 / (2.0 * np.asarray(alpha))


@pytest.mark.parametrize("y", ["two", "three", "labels"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ridge_classifiers(y, fit_intercept, dtype):
    given = {"two": CLASSES == "a", "three": CLASSES, "labels": LABELS}[y]
    signs = 2.0 * LABELS - 1.0
    if y == "three":
        signs = np.where(CLASSES[:, None] == ["a", "b", "c"], 1.0, -1.0)
    elif y == "two":
        signs = np.where(given, 1.0, -1.0)[:, None]
    options = {"alpha": 0.3, "fit_intercept": fit_intercept}
    rows = X.astype(dtype)
    model = RidgeClassifier(**options).fit(rows, given, WEIGHT)
    found = certify(model, rows, given, sample_weight=WEIGHT)
    values = ridge_primal(model, signs, WEIGHT, 0.3)
    near = 1e-12 if dtype == np.float64 else 1e-5
    assert [one.primal for one in found] == pytest.approx(list(values), rel=near)
    assert 0.0 <= found.relative_gap < near
    loose = RidgeClassifier(**options, solver="lsqr", tol=0.5).fit(X, given, WEIGHT)
    far = certify(loose, sparse.csr_matrix(X), given, sample_weight=WEIGHT, tol=1e-9)
    assert far.relative_gap > 1e-6
    if dtype == np.float64:
        assert far.dual == pytest.approx(found.primal, rel=1e-8)
    names = {"two": [""], "three": ["class a", "class b", "class c"]}
    expected = names.get(y, ["class 0", "class 1", "class 2"])
    assert [one.name for one in found] == expected


def test_ridge_of_several_outputs_and_searches():
    Y = np.column_stack([TARGETS, X[:, 0]])
    model = Ridge(alpha=[1.0, 20.0]).fit(X, Y)
    found = certify(model, X, Y)
    values = ridge_primal(model, Y, np.ones(80), [1.0, 20.0])
    assert [one.primal for one in found] == pytest.approx(list(values), rel=1e-12)
    assert [one.name for one in found] == ["output 0", "output 1"]
    assert found.relative_gap < 1e-10
    balanced = {"class_weight": "balanced"}
    search = GridSearchCV(RidgeClassifier(**balanced), {"alpha": [0.1, 1.0]}, cv=2)
    for chosen, y in (
        (RidgeCV(alphas=(0.1, 7.0)), TARGETS),
        (RidgeClassifierCV(alphas=(0.1, 7.0), cv=2, **balanced), CLASSES),
        (make_pipeline(StandardScaler(), search), CLASSES),
        (CalibratedClassifierCV(RidgeClassifier(), cv=2), CLASSES),
    ):
        assert certify(chosen.fit(X, y), X, y).relative_gap < 1e-8


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-4, 1.0, 1e4])
def test_huber_regression_with_its_scale(fit_intercept, alpha):
    options = {"alpha": alpha, "fit_intercept": fit_intercept}
    best = HuberRegressor(**options, tol=1e-10, max_iter=10_000)
    best.fit(X, TARGETS, WEIGHT)
    short = HuberRegressor(**options, max_iter=2)
    with pytest.warns(ConvergenceWarning):
        short.fit(X, TARGETS, WEIGHT)
    near, far = (
        certify(model, X, TARGETS, sample_weight=WEIGHT, tol=1e-8)
        for model in (best, short)
    )
    r = TARGETS - X @ best.coef_ - best.intercept_
    s, size = best.scale_, np.abs(r)
    lost = np.where(size <= 1.35 * s, r * r / s, 1.35 * (2.0 * size - 1.35 * s))
    P = 0.5 * best.coef_ @ best.coef_ + WEIGHT @ (s + lost) / (2.0 * alpha)
    assert near.primal == pytest.approx(P, rel=1e-12)
    assert 0.0 <= near.relative_gap < 1e-7
    assert far.dual == pytest.approx(P, rel=1e-6)
    assert far.relative_gap > 1e-3
    # A wrong scale is as far from the optimum as wrong coefficients.
    best.scale_ *= 2.0
    assert certify(best, X, TARGETS, sample_weight=WEIGHT).relative_gap > 1e-3
    # Without a fit, and with sparse rows.
    quick = certify(
        short, sparse.csr_matrix(X), TARGETS, sample_weight=WEIGHT, time_limit=1e-9
    )
    assert quick.primal == pytest.approx(far.primal, rel=1e-12)
    assert quick.dual <= far.dual * (1.0 + 1e-12)


def test_given_coefficients_are_proved_as_they_are():
    """Rounding hides this gap, and the model of the dual point is the better one."""
    row = [
        float.fromhex("0x1.04b555a6e31f4p+111"),
        -float.fromhex("0x1.26723142d4018p+111"),
    ]
    w = [
        -float.fromhex("0x1.b9df2da61d7c7p-113"),
        float.fromhex("0x1.f30db26495b83p-113"),
    ]
    squared = "squared_epsilon_insensitive"
    problem = RegressionProblem(np.array([row]), [-1.0], 1.8e10, loss=squared)
    off = 1 + sum(Fraction(a) * Fraction(b) for a, b in zip(row, w, strict=True))
    exact = sum(Fraction(a) ** 2 for a in w) / 2 + Fraction(1.8e10) * off**2
    assert Fraction(problem.certify(w).primal) >= exact
