"""Interior points for small kernel problems on which pairs of variables crawl."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualgap import core
from dualgap.kernel import (
    RBF,
    SWAP,
    BlockSolver,
    KernelAuto,
    KernelProblem,
    Laplacian,
    Precomputed,
)
from dualgap.solvers.kernel import block
from dualgap.solvers.kernel.interior import interior_point
from dualgap.training import solve

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


def test_it_agrees_with_swap():
    rng = np.random.default_rng(5)
    X, y = points(rng, 150, 4)
    problem = squared(X, y, 10.0, RBF(gamma=0.3))
    alpha = interior_point(problem, 1e-9, core.Stop())
    ours, theirs = problem.certify(alpha), solve(problem, SWAP(), tol=1e-5).certificate
    assert ours.dual <= theirs.primal * (1 + 1e-12)
    assert ours.primal >= theirs.dual * (1 - 1e-12)


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
    solver.step(state, core.Stop())
    state.moved, state.met, state.source.precise = False, True, True
    solver.reject(state)
    assert not state.tried
