"""Interior points for small kernel problems on which pairs of variables crawl."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualgap import core
from dualgap.kernel import (
    RBF,
    BlockSolver,
    KernelAuto,
    KernelOneClass,
    KernelProblem,
    KernelRegression,
    KernelSimplex,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)
from dualgap.problems.base import Claim
from dualgap.solvers.kernel import block
from dualgap.solvers.kernel.interior import interior_point
from dualgap.training import solve

from ... import qp
from .test_block import check_certificate, fit, hinge, matrix, points


def squared(X, y, C, kernel, **options):
    return KernelProblem(X, y, C, kernel=kernel, loss="squared_hinge", **options)


@pytest.mark.parametrize("n", [2, 30, 300])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_the_optimality_conditions_of_the_hinge_hold(n, C):
    rng = np.random.default_rng(n)
    X, y = points(rng, n, 3)
    y[:2] = 1, -1
    weight = rng.uniform(0.5, 2.0, n)
    weight[2::7] = 0.0
    problem = hinge(X, y, C, RBF(gamma=0.5), sample_weight=weight)
    alpha = interior_point(problem, 1e-9, core.Stop())
    assert alpha is not None
    assert (alpha >= 0.0).all()
    assert (alpha <= problem.cost).all()
    assert abs(alpha @ y) <= 1e-9 * alpha.sum()
    found = problem.certify(alpha)
    assert found.gap - found.rounding <= max(1e-7, 1e-11 * C) * found.dual
    check_certificate(problem, solve(problem, BlockSolver(), warm=alpha), 1e-3)


def test_the_optimality_conditions_of_the_squared_hinge_hold():
    rng = np.random.default_rng(1)
    X, y = points(rng, 200, 3)
    for C in (1e-4, 1.0, 1e5):
        problem = squared(X, y, C, Laplacian(gamma=0.5))
        alpha = interior_point(problem, 1e-10, core.Stop())
        assert alpha is not None
        Q = (matrix(problem) + 1.0) * np.outer(y, y) + np.diag(problem.delta)
        slope = Q @ alpha - 1.0
        assert slope.min() >= -1e-5
        assert alpha @ np.abs(slope) <= 1e-8 * alpha.sum()
        assert problem.certify(alpha).relative_gap <= 1e-7


def test_pairs_that_crawl_are_overtaken():
    rng = np.random.default_rng(3)
    X, y = points(rng, 200, 3)
    problem = hinge(X, y, 1e6, RBF(gamma=0.05))
    state = BlockSolver().start(problem, core.Random(0), None)
    state.tol = 1e-3
    while not state.tried:
        BlockSolver().step(state, core.Stop())
        assert state.updates <= 2.5 * 200**2 + 25_600
    assert math.fsum(state.alpha() * y) == 0.0
    assert problem.certify(state.alpha()).relative_gap <= 1e-3
    # More than twenty million steps without.
    solution = fit(problem, 1e-3)
    assert solution.history["updates"][-1] < 400_000
    check_certificate(problem, solution, 1e-3)


@pytest.mark.parametrize("solver", [BlockSolver(), KernelAuto()])
def test_a_large_C_is_certified(solver):
    rng = np.random.default_rng(3)
    X, y = points(rng, 400, 3)
    K = RBF(gamma=0.1).block(X, slice(0, 400), dtype=np.float64)
    for problem in (
        hinge(X, y, 1e6, RBF(gamma=0.1)),
        hinge(K, y, 1e6, Precomputed()),
        hinge(X, y[::2], 1e6, RBF(gamma=0.1), rows=np.arange(0, 400, 2)),
        squared(X, y, 1e6, RBF(gamma=0.1)),
    ):
        assert solve(problem, solver, tol=1e-3).certificate.certified


@pytest.mark.parametrize("seed", range(12))
def test_only_rounding_keeps_a_polynomial_of_high_degree_from_its_target(seed):
    """A variable of 1e-13 of the largest matters where its row is 1e6 times as long."""
    rng = np.random.default_rng(seed)
    X = 5.0 * rng.standard_normal((6 + 2 * seed, 3))
    y = np.where(np.arange(len(X)) % 2, 1, -1)
    kernel = Polynomial(gamma=1.0, degree=3 + seed % 3, coef0=seed % 2)
    for C in (1e4, 1e6):
        found = solve(hinge(X, y, C, kernel), KernelAuto(), tol=1e-3).certificate
        assert found.certified or found.rounding >= 0.7 * found.gap


def test_it_leaves_when_told_to():
    rng = np.random.default_rng(6)
    X, y = points(rng, 50, 3)
    stop = core.Stop()
    stop.request()
    assert interior_point(hinge(X, y, 1.0), 1e-9, stop) is None


def test_a_fit_that_met_its_target_is_not_solved_again(monkeypatch):
    """Rounding may stop the block solver before the accuracy that costs little."""
    monkeypatch.setattr(block, "interior_point", lambda *_: pytest.fail("called"))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    problem = hinge(X, np.where(X[:, 0] > 0, 1, -1), 1.0)
    solver = BlockSolver()
    state = solver.start(problem, core.Random(0), None)
    while state.moved:
        solver.step(state, core.Stop())
    state.met, state.source.precise = True, True
    solver.step(state, core.Stop())
    assert not state.tried


ROWS = np.random.default_rng(7).normal(size=(30, 4))
TARGETS = ROWS @ [1.0, -2.0, 0.5, 0.0] + 0.3 * np.random.default_rng(8).normal(size=30)
NASTY = {
    "a large column": (ROWS * [1e4, 1.0, 1.0, 1.0], TARGETS, {"C": 1.0}),
    "large C": (ROWS, TARGETS, {"C": 1e6}),
    "large C without a tube": (ROWS, TARGETS, {"C": 1e6, "epsilon": 0.0}),
    "a tiny tube": (ROWS, TARGETS, {"C": 1e3, "epsilon": 1e-9}),
    "tiny targets": (ROWS, 1e-6 * TARGETS, {"C": 1.0, "epsilon": 1e-8}),
    "a far row": (ROWS * np.where(np.arange(30) == 3, 1e3, 1.0)[:, None], TARGETS, {}),
    "a far target": (ROWS, TARGETS + 1e5 * (np.arange(30) == 3), {"C": 100.0}),
    "repeated rows": (np.repeat(ROWS[:6], 5, axis=0), TARGETS, {"C": 1e4}),
    "zero rows": (ROWS * (np.arange(30) % 3 > 0)[:, None], TARGETS, {"C": 1e4}),
    "weights of 0": (
        ROWS * [1e2, 1.0, 1.0, 1e-2],
        TARGETS,
        {"C": 1e3, "sample_weight": np.arange(30) % 4 / 2.0},
    ),
}
#: Digits of C that a grid of alpha would not have: the rows fit their targets exactly.
EXACT = (np.random.default_rng(1).normal(size=(10, 20)), TARGETS[:10], {"C": 1e8})


def regression(X, y, kernel, options):
    return KernelRegression(X, y, **{"C": 1.0, **options}, kernel=kernel)


def bracket(problem):
    """A bracket of the optimum by a generic solver."""
    every = np.arange(problem.n)
    K = problem.gram.block(every, every).astype(np.float64)
    return qp.Box(
        K, problem.linear, problem.lower, problem.upper, problem.epsilon,
        total=problem.total,
    ).optimum()  # fmt: skip


@pytest.mark.parametrize("name", NASTY)
def test_regression_on_which_pairs_crawl_is_proved_in_few_epochs(name):
    X, y, options = NASTY[name]
    for kernel in (Linear(), RBF(gamma=0.01)):
        problem = regression(X, y, kernel, options)
        solution = solve(problem, KernelAuto(), tol=1e-3, max_iter=40)
        found = solution.certificate
        assert found.certified
        lower, upper = bracket(problem)
        off = 1e-6 * upper + found.rounding
        assert lower - off <= found.primal <= (1.0 + 1e-3) * upper + off
        assert (1.0 - 1e-3) * lower - off <= found.dual <= upper + off


def test_the_point_is_proved_with_more_digits_than_those_of_a_large_C():
    for problem in (
        regression(*EXACT[:2], Linear(), EXACT[2]),
        hinge(EXACT[0], np.where(EXACT[1] > 0.0, 1, -1), 1e8, Linear()),
    ):
        solution = solve(problem, KernelAuto(), tol=1e-3, max_iter=40)
        assert solution.certificate.certified
        assert math.fsum(solution.alpha * problem.y) == 0.0


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.1, 3.0])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e6])
def test_the_optimality_conditions_of_regression_hold(C, epsilon):
    weight = np.arange(30) % 5 / 2.0
    options = {"C": C, "epsilon": epsilon, "sample_weight": weight}
    problem = regression(ROWS, TARGETS, RBF(gamma=0.2), options)
    alpha = interior_point(problem, 1e-9, core.Stop())
    assert (np.abs(alpha) <= problem.cost).all()
    assert math.fsum(alpha) == 0.0
    found = problem.certify(alpha)
    assert found.gap - found.rounding <= max(1e-7, 1e-10 * C) * found.dual


def test_the_optimality_conditions_of_one_class_and_of_the_simplex_hold():
    weight = np.arange(30) % 5 / 2.0
    for problem in (
        KernelOneClass(ROWS * [1e4, 1.0, 1.0, 1.0], 0.3, kernel=Linear()),
        KernelOneClass(ROWS, 0.05, kernel=RBF(gamma=0.5), sample_weight=weight),
        KernelOneClass(ROWS * (np.arange(30) % 2)[:, None], 0.7, kernel=Linear()),
        KernelSimplex(ROWS, TARGETS, kernel=RBF(gamma=0.5)),
    ):
        alpha = interior_point(problem, 1e-9, core.Stop())
        proof = problem.prove(Claim(alpha=alpha)).certificate
        lower, upper = bracket(problem)
        size = max(abs(upper), problem.floor)
        assert proof.gap - proof.rounding <= 1e-7 * size
        assert proof.dual <= upper + 1e-7 * size + proof.rounding
        assert proof.primal >= lower - 1e-7 * size - proof.rounding


def test_an_idle_solver_without_a_proof_leaps():
    """No pair improves D by its own numbers, but the proof fails."""
    problem = regression(*EXACT[:2], Linear(), EXACT[2])
    solver = BlockSolver()
    state = solver.start(problem, core.Random(0), None)
    solver.step(state, core.Stop())
    while state.moved:
        solver.step(state, core.Stop())
    state.source.precise = True
    assert not state.tried
    solver.step(state, core.Stop())
    assert state.tried
    assert state.leapt is not None
    assert solver.claim(state).alpha is state.leapt
