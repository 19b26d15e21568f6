"""Linear regression and one class: twins, certificates, optima, interior points."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_wine

from dualgap import LinearSVR, core
from dualgap.certificate import Status
from dualgap.losses import EpsilonInsensitive, Pinball, SquaredEpsilonInsensitive
from dualgap.problems import (
    OneClassProblem,
    RegressionProblem,
)
from dualgap.problems.one_class import sum_of_duals
from dualgap.solvers import solver_for
from dualgap.solvers.regression import PairDescent, RegressionDCD
from dualgap.solvers.regression_interior import OneClassInterior, RegressionInterior
from dualgap.solvers.smoothing_regression import SmoothingRegression
from dualgap.training import solve

from ..twins import regression as twin
from ..twins.random import Random
from .data import LAYOUTS, close, outliers

LOSSES = {
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
}
#: The pinball loss has no epsilon: these make two quantiles of it.
STEPS = LOSSES | {"quantile": lambda epsilon: Pinball(0.9 - epsilon)}


def data(n=40, d=6, seed=0, hollow=False):
    return outliers(np.random.default_rng(seed), n, d, hollow)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_regression_steps_are_those_of_the_twin(layout, name, epsilon):
    X, y, weight = data(hollow=True)
    stored = LAYOUTS[layout](X)
    problem = RegressionProblem(
        stored, y, 0.7, loss=STEPS[name](epsilon), sample_weight=weight,
        fit_intercept=True, intercept_scaling=0.7,
    )  # fmt: skip
    seen = stored.toarray() if sparse.issparse(stored) else stored
    seen = np.column_stack([seen.astype(float), np.full(len(y), 0.7)])
    ours = RegressionDCD().start(problem, core.Random(3), None)
    box, loss = (problem.lower, problem.upper), problem.loss
    theirs = twin.RegressionDCD(seen, y, *box, problem.delta, loss.epsilon)
    random, dual, clear = Random(3), 0.0, 0
    for _ in range(30):
        # From the same point, so that what rounding decided cannot add up.
        theirs.b, theirs.w = ours.alpha.copy(), ours.w.copy()
        theirs.asleep, theirs.last = ours.wake.tolist(), ours.length.tolist()
        theirs.threshold, theirs.unclear = ours.threshold, set()
        RegressionDCD().step(ours, core.Stop())
        rows = theirs.order(random)
        np.testing.assert_array_equal(ours.order[: len(rows)], rows)
        theirs.epoch(rows)
        same = np.delete(np.arange(len(y)), list(theirs.unclear))
        clear += len(same)
        np.testing.assert_array_equal(ours.wake[same], np.array(theirs.asleep)[same])
        np.testing.assert_allclose(ours.threshold, theirs.threshold, 1e-8, 1e-14)
        close(ours.alpha, theirs.b, 1e-8)
        close(ours.w, theirs.w, 1e-8)
        # The estimate is D of this point, and D never falls.
        assert ours.dual == pytest.approx(problem.dual(ours.alpha), rel=1e-9)
        assert ours.dual >= dual * (1 - 1e-12)
        dual = ours.dual
        assert ours.primal >= dual - 1e-12
    assert dual > 0.0
    assert ours.wake.max() > 0
    assert clear > 15 * len(y)


#: `pairs`, the interior point alone, and after some pairs.
PLANES = [
    PairDescent(),
    OneClassInterior()._with_settings(first_pairs=0, free_pairs=0),
    OneClassInterior(),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_class_passes_are_those_of_the_twin(layout):
    X, _, weight = data(n=120, seed=4)
    X = np.round(X, 3) + (X != 0.0)
    stored = LAYOUTS[layout](X)
    seen = (stored.toarray() if sparse.issparse(stored) else stored).astype(float)
    problem = OneClassProblem(stored, 0.2, sample_weight=weight)
    ours = PairDescent().start(problem, core.Random(0), None)
    a, w = ours.alpha.copy(), ours.w.copy()
    assert a.sum() == pytest.approx(problem.total)
    last = ours.dual = -0.5 * w @ w
    for _ in range(12):
        scores = problem.margins(ours.w)
        close(scores, seen @ ours.w)
        a, w = twin.pair_pass(seen, weight, ours.alpha, ours.w, scores)
        PairDescent().step(ours, core.Stop())
        close(ours.alpha, a, 1e-8)
        close(ours.w, w, 1e-8)
        assert ours.dual >= last * (1 + 1e-12)  # D is below 0, and never falls
        last = ours.dual
    assert ours.updates > 12
    assert not ours.room.any()


@pytest.mark.parametrize("solver", PLANES)
@pytest.mark.parametrize(
    ("X", "nu"),
    [
        ([[1.0, 2.0]], 0.5),
        ([[1.0], [1.0], [1.0]], 0.4),
        ([[1.0], [-1.0]], 1.0),  # w = 0 is optimal: P* = 0
        ([[0.0], [0.0]], 0.5),
    ],
)
def test_smallest_one_class_problems(solver, X, nu):
    X = np.array(X)
    solution = solve(OneClassProblem(X, nu), solver, tol=1e-8, max_iter=50)
    assert solution.certificate.certified
    assert math.fsum(solution.alpha) == pytest.approx(nu * len(X), rel=1e-14)


@pytest.mark.parametrize("n", [2, 20, 100, 600])
def test_columns_of_unlike_sizes_are_certified(n):
    """Pairs alone would take thousands of epochs for them."""
    rng = np.random.default_rng(n)
    for nu in (0.01, 0.1, 0.5, 1.0):
        for d in (2, 5, 20):
            X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-4.0, 4.0, d)
            problem = OneClassProblem(X, nu)
            solution = solve(problem, solver_for(problem))
            assert solution.certificate.certified
            assert solution.certificate.epochs < 400


def test_a_warm_start_of_another_sum_is_made_feasible():
    X, _, _ = data(n=60)
    problem = OneClassProblem(X + 1.0, 0.3)
    first = solve(problem, PairDescent(), tol=1e-8)
    again = solve(problem, PairDescent(), tol=1e-6, warm=first.alpha)
    assert again.certificate.epochs == 0
    for other in (0.1, 0.8):
        moved = OneClassProblem(X + 1.0, other)
        solution = solve(moved, PairDescent(), tol=1e-6, warm=first.alpha)
        assert solution.certificate.certified
        assert math.fsum(solution.alpha) == pytest.approx(other * 60, rel=1e-13)


@pytest.mark.parametrize(("size", "gap"), [(1e142, 0.5), (1e150, math.inf)])
def test_a_floor_beyond_float64_certifies_no_plane(size, gap):
    """Beside an infinite floor the gap of the first point would be 0."""
    X = size * np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]])
    problem = OneClassProblem(X, 0.5, sample_weight=[1e12, 1.0, 1e12])
    assert problem.floor < math.inf
    with np.errstate(all="ignore"):
        assert problem.certify(alpha=problem.start()).relative_gap >= gap


def test_the_sum_of_duals_is_within_all_costs():
    """It is the largest float64 that does not exceed the exact sum of the costs."""
    rng = np.random.default_rng(0)
    for cost in (np.ones(3), np.array([0.5, 1e-16]), *rng.uniform(0, 1, (50, 9))):
        exact = sum(map(Fraction, cost.tolist()))
        total = sum_of_duals(1.0, cost)
        assert Fraction(total) <= exact < Fraction(math.nextafter(total, math.inf))


@pytest.mark.parametrize(
    "solver", [RegressionDCD(), RegressionInterior(), SmoothingRegression()]
)
def test_only_problems_of_some_ten_rows_are_solved_beyond_tol(solver):
    for n, exact in ((40, True), (400, False)):
        X, y, weight = data(n)
        problem = RegressionProblem(X, y, 1.0, sample_weight=weight)
        state = solver.start(problem, core.Random(0), None)
        assert (solver.goal(state) < state.tol) == exact


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("load", [load_wine, load_diabetes])
def test_raw_columns_converge(load, C, epsilon):
    X, y = load(return_X_y=True)
    model = LinearSVR(C=C, epsilon=epsilon).fit(X, y)
    assert model.certificate_.certified
    assert model.n_iter_ < 100


def test_rows_inside_the_tube_are_no_support_vectors():
    X, y, _ = data(n=80)
    problem = RegressionProblem(X, y, 5.0, loss=EpsilonInsensitive(0.4))
    by_dcd = solve(problem, RegressionDCD(), tol=1e-9, max_iter=100_000)
    by_interior = solve(problem, RegressionInterior(), tol=1e-9)
    assert by_interior.certificate.relative_gap < 1e-9
    found, expected = (np.count_nonzero(s.alpha) for s in (by_interior, by_dcd))
    assert found == expected < 80
    wide = RegressionProblem(X, y, loss=EpsilonInsensitive(100.0))
    assert not solve(wide, RegressionInterior()).w.any()


@pytest.mark.parametrize("solver", [RegressionInterior(), SmoothingRegression()])
def test_the_end_is_reached_or_said(solver):
    X, y, _ = data(n=80)
    problem = RegressionProblem(X, y, 5.0)
    limited = solve(problem, solver, tol=1e-9, max_iter=1)
    assert limited.certificate.status is Status.EPOCH_LIMIT
    assert np.isfinite(limited.certificate.relative_gap)
    exact = solve(problem, solver, tol=1e-18)
    assert exact.certificate.status is Status.STALLED
    assert exact.certificate.relative_gap < 1e-9
