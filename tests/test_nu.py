"""NuSVC and NuSVR: a generic solver, scikit-learn's models, estimators, refusals."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

from dualgap import (
    SVC,
    SVR,
    DegenerateWarning,
    NuSVC,
    NuSVR,
    certify,
    patch_sklearn,
)
from dualgap.kernel import RBF, Linear
from dualgap.problems.kernel_nu import (
    NuClassification,
    NuRegression,
    half_of,
    largest_nu,
)
from dualgap.solvers.kernel.auto import solve_alone, solve_nu_pairs
from dualgap.training import batch as training


def data(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ rng.normal(size=d) + rng.normal(size=n)
    weight = rng.uniform(0.2, 2.0, n)
    weight[:: max(n // 5, 2)] = 0.0
    return X, score, np.where(score > 0.2, 1, -1), weight


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_small_pairs_are_proved_in_one_call(kernel, classes, weighted):
    rng = np.random.default_rng(classes)
    y = rng.permutation(np.arange(45) % classes)
    X = rng.normal(size=(45, 3)) + 3.0 * (y[:, None] == np.arange(3))
    weight = rng.uniform(0.2, 2.0, 45) if weighted else np.ones(45)
    nu, seen = 0.2, []
    model = NuSVC(nu, kernel=kernel, gamma=0.5, tol=1e-7)

    def together(solver, batch, job):
        found = solve_nu_pairs(solver, batch, job)
        seen.append((batch, found))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(training.WHOLE, "kernel-nu", (together,))
        model.fit(X, y, weight)
    ((batch, found),) = seen
    assert found is not None
    assert model.certificate_.certified
    for k, bounds in enumerate(found.bounds):
        problem = batch.problem(k)
        own = batch.points.X[batch.place(k)]
        K = batch.kernel.block(own, slice(None), dtype=np.float64)
        # The diagonal of the kernel matrix is computed in two ways.
        np.testing.assert_allclose(found.floors[k], problem.floor, rtol=1e-14)
        assert bounds.meets(1e-7, floor=problem.floor)
        # A model divided by rho has dual variables of at most 1/rho times the costs.
        alpha = found.alpha[k]
        sums = [alpha[problem.y == sign].sum() for sign in (1, -1)]
        assert sums[0] == pytest.approx(sums[1], rel=1e-12)
        rho = problem.half / sums[0]
        assert (alpha * rho <= problem.cost * (1.0 + 1e-12)).all()
        assert problem.certify(np.minimum(alpha * rho, problem.cost)).meets(1e-6)
        c = alpha * problem.y
        np.testing.assert_allclose(found.decisions[k], K @ c + found.bias[k], atol=1e-9)


@pytest.mark.cases(None)
@pytest.mark.parametrize("nu", [0.02, 0.4, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_small_regressions_are_proved_in_one_call(nu, weighted):
    for C, n in ((0.3, 45), (20.0, 45), (5.0, 401)):
        X, target, _, weight = data(n)
        weight = weight if weighted else None
        model = NuSVR(nu=nu, C=C, gamma=0.5, tol=1e-8)
        seen = []

        def together(*args, seen=seen):
            seen.append(solve_alone(*args))
            return seen[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(training.WHOLE, "kernel-nu-regression", (together,))
            model.fit(X, target, weight)
        (found,) = seen
        assert (found is None) == (n - (0 if weight is None else 5) > 400)
        certificate = model.certificate_
        assert certificate.meets(1e-8)
        used = slice(None) if weight is None else weight > 0.0
        own = None if weight is None else weight[used]
        kernel = RBF(gamma=0.5)
        problem = NuRegression(
            X[used], target[used], C, nu, kernel=kernel, sample_weight=own
        )
        if n > 100:
            continue
        alpha = found.alpha[0]
        assert (np.abs(alpha) <= problem.cost).all()
        assert problem.certify(alpha).meets(1e-8)


def test_what_is_left_to_the_ordinary_solver():
    X, _, y, _ = data()
    seen = []

    def together(*args):
        seen.append(solve_nu_pairs(*args))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(training.WHOLE, "kernel-nu", (together,))
        model = NuSVC(0.3).fit(X, y)
        for options in ({"solver": "block"}, {"cache_size": 0.05}):
            other = clone(model).set_params(**options).fit(X, y)
            assert other.certificate_.certified
        clone(model).set_params(kernel="precomputed").fit(X @ X.T, y)
        model.fit(np.repeat(X, 14, axis=0), np.repeat(y, 14))
    assert [found is None for found in seen] == [False, True, True, True, True]


def test_the_models_are_those_of_C_and_of_epsilon():
    """NuSVC has the model of the SVC with C = 1/rho, the largest dual variable."""
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = NuSVC(0.2, tol=1e-9).fit(X, y)
    other = SVC(C=np.abs(model.dual_coef_).max(), tol=1e-9).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), other.decision_function(X), atol=1e-4
    )
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X), scale(y)
    model = NuSVR(nu=0.4, C=0.5, tol=1e-9).fit(X, y)
    inside = np.abs(model.dual_coef_[0])
    free = (inside > 1e-6) & (inside < 0.5 - 1e-6)
    residual = np.abs(y - model.predict(X))[model.support_[free]]
    other = SVR(C=0.5, epsilon=float(np.median(residual)), tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.predict(X), other.predict(X), atol=1e-4)


def test_nu_bounds_the_shares():
    X, y = load_breast_cancer(return_X_y=True)
    for nu in (0.1, 0.4):
        model = NuSVC(nu, tol=1e-9).fit(scale(X), y)
        margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(scale(X))
        assert np.mean(margins < 1.0 - 1e-6) <= nu
        assert len(model.support_) >= nu * len(y) * (1.0 - 1e-9)
    X, y = load_diabetes(return_X_y=True)
    for nu in (0.1, 0.4):
        model = NuSVR(nu=nu, C=10.0, tol=1e-9).fit(X, y)
        assert len(model.support_) >= nu * len(y) * (1.0 - 1e-9)
        at_bound = np.abs(model.dual_coef_[0]) >= 10.0 * (1.0 - 1e-9)
        assert at_bound.sum() <= nu * len(y) * (1.0 + 1e-9)


def test_the_sum_of_a_class_is_no_more_than_its_costs():
    """The nearest float64 to the sum of these costs is above it."""
    costs = [0.1, 0.2]
    half = half_of(1.0, costs, costs)
    assert sum(map(Fraction, costs)) - Fraction(1, 2**53) <= half
    assert half <= sum(map(Fraction, costs))


def test_a_sum_beyond_its_bound_costs_both_offsets():
    """The positive and the negative variables may each add up to `half` at most."""
    problem = NuRegression(np.eye(4), np.arange(4.0), 1.0, 0.5, kernel=RBF(1.0))
    signed = (problem.half + 0.125) * np.array([0.5, 0.5, -0.5, -0.5])
    assert problem._remainder(signed) == pytest.approx(2.0 * 0.125, rel=1e-12)
    signed[0] += 0.25
    both = 0.25 + 2.0 * (0.125 + 0.25)
    assert problem._remainder(signed) == pytest.approx(both, rel=1e-12)


def test_an_infeasible_nu_is_refused_with_the_largest():
    X, y = load_breast_cancer(return_X_y=True)
    most = 2.0 * min(np.mean(y == 0), np.mean(y == 1))
    text = rf"nu=0.9 is infeasible.* is {most:.4g}; use nu=0.7451 or less"
    with pytest.raises(ValueError, match=text):
        NuSVC(0.9).fit(X, y)
    assert NuSVC(0.7451).fit(scale(X), y).certificate_.certified
    assert NuSVC(0.9, class_weight="balanced").fit(scale(X), y).certificate_.certified
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"for 0 against 1.*use nu=0.5714 or less"):
        NuSVC(0.8).fit(X[30:], y[30:])
    with pytest.raises(ValueError, match="infeasible: twice"):
        NuClassification(X[:60], np.where(y[:60], 1, -1), 0.8, kernel=Linear())
    assert largest_nu([1.0] * 3, [1.0] * 5) == 0.75


def test_classes_that_cannot_be_told_apart_are_told():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.tile([0, 1], 20)
    with pytest.warns(DegenerateWarning, match="w = 0 is optimal"):
        model = NuSVC(0.5).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.certificate_.certified
    model = NuSVR(nu=0.5).fit(X, np.ones(40))
    np.testing.assert_allclose(model.predict(X), 1.0)
    assert model.certificate_.certified


def test_the_patched_classes():
    X, y = load_iris(return_X_y=True)
    theirs = sklearn.svm.NuSVC(nu=0.2, class_weight={0: 5.0}).fit(X, y)
    regressor = sklearn.svm.NuSVR(nu=0.2).fit(X, y)
    with patch_sklearn(["NuSVC", "NuSVR"]):
        model = sklearn.svm.NuSVC(nu=0.2, class_weight={0: 5.0}).fit(X, y)
        assert model.certificate_.certified
        np.testing.assert_allclose(
            model.decision_function(X), theirs.decision_function(X), atol=5e-2
        )
        np.testing.assert_array_equal(model.predict(X), theirs.predict(X))
        assert certify(model, X, y).relative_gap <= 2e-3
        other = sklearn.svm.NuSVR(nu=0.2).fit(X, y)
        assert other.certificate_.certified
        np.testing.assert_allclose(other.predict(X), regressor.predict(X), atol=1e-2)
        with pytest.raises(ValueError, match="specified nu is infeasible"):
            sklearn.svm.NuSVC(nu=0.99).fit(X[30:], y[30:])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            left = sklearn.svm.NuSVC(nu=0.2, probability=True).fit(X, y)
        assert left.predict_proba(X).shape == (150, 3)
