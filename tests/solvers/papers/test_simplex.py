"""Concave quadratics over the simplex: exact solutions, a generic solver, the papers.

D(a) = p'a - 1/2 a'Ka, a >= 0, sum a = 1. Hard margins and smallest balls are such.
"""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import core
from dualgap.kernel import (
    FW,
    MDM,
    MFW,
    RBF,
    SWAP,
    BlockSolver,
    KernelSimplex,
    Precomputed,
    SWAP2o,
)
from dualgap.solvers.papers.frank_wolfe import SimplexState
from dualgap.training import solve

from ... import qp
from ...twins import watched
from ..kernel.data import make

METHODS = {"fw": FW, "mfw": MFW, "mdm": MDM, "swap": SWAP, "swap-2o": SWAP2o}
SOLVERS = [
    *(method() for method in METHODS.values()),
    SWAP(sample=15),
    SWAP2o(ranking="paper", initial_point="equal"),
    BlockSolver(),
]
each = pytest.mark.parametrize("solver", SOLVERS, ids=repr)
loose = {"fw": 1e-3}  # its rate is 1/steps


def quadratic(n=60, rank=8, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, rank))
    return Z @ Z.T, rng.normal(size=n)


def train(problem, solver, tol=1e-7):
    tol = loose.get(solver.name, tol)
    solution = solve(problem, solver, tol=tol, max_iter=3000)
    assert solution.certificate.certified
    assert solution.alpha.min() >= 0.0
    assert abs(solution.alpha.sum() - 1.0) <= 1e-15 * problem.n
    return solution, tol


@each
def test_a_generic_solver_agrees(solver):
    for with_linear in (False, True):
        K, p = quadratic()
        K += 0.1 * np.identity(len(K))  # else the optimum is 0 without p
        p = p if with_linear else np.zeros(len(p))
        box = qp.Box(K, p, np.zeros(len(p)), np.ones(len(p)), total=1.0)
        low, high = box.optimum()
        assert high - low <= 1e-9 * abs(high)
        problem = KernelSimplex(K, p, kernel=Precomputed())
        solution, tol = train(problem, solver)
        found = solution.certificate
        assert low - found.rounding <= found.primal <= high + tol * abs(low)
        assert low - tol * abs(low) <= found.dual <= high
        # The certificate is the gap of Frank-Wolfe methods, computed here anew.
        a, g = solution.alpha, K @ solution.alpha - p
        assert found.dual == pytest.approx(box.dual(a), rel=1e-12)
        assert found.gap == pytest.approx(a @ g - g.min(), rel=1e-6, abs=1e-10)


@each
def test_with_the_identity_it_projects_on_the_simplex(solver):
    p = np.random.default_rng(1).normal(size=40)
    # Held, Wolfe and Crowder 1974: a = max(0, p - t), with t such that the sum is 1.
    falling = np.sort(p)[::-1]
    levels = (np.cumsum(falling) - 1.0) / np.arange(1, len(p) + 1)
    level = levels[np.flatnonzero(falling > levels)[-1]]
    problem = KernelSimplex(np.identity(len(p)), p, kernel=Precomputed())
    solution, _ = train(problem, solver)
    # D falls by at least half the squared distance from the solution.
    near = np.sqrt(2.0 * solution.certificate.gap)
    off = np.linalg.norm(solution.alpha - np.maximum(0.0, p - level))
    assert off <= near + 1e-14


def test_without_a_quadratic_term_it_is_the_largest_entry():
    p = np.array([1.0, -3.0, 2.5, 2.0])
    problem = KernelSimplex(np.zeros((4, 4)), p, kernel=Precomputed())
    for method in METHODS.values():
        solution = solve(problem, method(initial=2), tol=1e-9)
        assert solution.alpha.tolist() == [0.0, 0.0, 1.0, 0.0]
        assert solution.certificate.gap <= 1e-13


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("sampled", [False, True])
def test_steps_with_a_linear_term(name, sampled):
    """Compare with the steps on K_ij + h_i + h_j + c, whose terms of h are linear."""
    X, _ = make(50, 4, 2)
    p = 0.05 * np.random.default_rng(2).normal(size=50)
    problem = KernelSimplex(X, p, kernel=RBF(0.3))
    state = SimplexState.begin(problem, core.Random(0))
    rows = np.array([problem.gram.row(i) for i in range(50)], dtype=np.float64)
    if sampled:
        rows = problem.gram.block(np.arange(50), np.arange(50))
    h = p.max() - p
    K = rows + h[:, None] + h + state.constant
    state.diagonal = K.diagonal().copy()
    np.testing.assert_allclose(
        state.matrix(np.arange(9), np.arange(50)), K[:9], rtol=1e-6
    )
    state.place(np.arange(20), np.random.default_rng(3).uniform(size=20) ** 4)
    state.g = K @ state.a
    twin = watched.FrankWolfe(K, state.a, name)
    settings, clear = core.WalkSettings(name, True, 1), 0
    rng, twin_rng = core.Random(7), core.Random(7)
    for _ in range(40):
        twin.a, point = state.a.copy(), state.point
        if sampled:
            drawn = [int(twin_rng.below(50)) for _ in range(15)]
            core.frank_wolfe_sampled(
                state.simplex, point, settings, core.Sample(15, state.order), rng,
                core.Stop(),
            )  # fmt: skip
            twin.step(drawn)
        else:
            core.frank_wolfe(state.simplex, point, settings, core.Stop())
            assert twin.step()
        state.size = point.size
        known = state.active[: state.size] if sampled else slice(None)
        np.testing.assert_allclose(state.g[known], (K @ state.a)[known], rtol=1e-8)
        if twin.clear:
            clear += 1
            np.testing.assert_allclose(state.a, twin.a, rtol=1e-7, atol=1e-12)
    assert clear > 10


@each
def test_a_hard_margin(solver):
    """The distance of two hulls; the squared margin is -2 D (bias in the kernel)."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1.0, 1.0, size=(60, 2))
    X[:30, 0] -= 1.5
    X[30:, 0] += 1.5
    X[0], X[59] = (-0.25, 0.0), (0.25, 0.0)  # the nearest, at right angles to the plane
    y = np.repeat([-1.0, 1.0], 30)
    Q = np.outer(y, y) * (X @ X.T + 1.0)
    found = train(KernelSimplex(Q, kernel=Precomputed()), solver)[0].certificate
    # The point nearest to 0 is (1/4, 0, 0), half way between the first and the last.
    assert (-2 * found.primal) ** 0.5 <= 0.25 <= (-2 * found.dual) ** 0.5


def test_without_a_margin_the_bound_says_so():
    X, _ = make(40, 2, 0)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)  # of which nothing knows anything
    problem = KernelSimplex(np.outer(y, y) * (X @ X.T + 1.0), kernel=Precomputed())
    solution = solve(problem, SWAP2o(), tol=1e-3, max_iter=3000)
    found = solution.certificate
    assert found.certified  # relative to the floor: the optimum is 0
    assert found.dual <= 0.0 <= found.primal
    assert found.gap <= 1e-3 * problem.floor


def test_the_smallest_ball_around_points():
    """Twice the maximum with p_i = |x_i|^2 / 2 is the squared radius."""
    rng = np.random.default_rng(5)
    angle = np.array([0.1, 2.0, 4.4])
    outer = 3.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = np.vstack([outer, rng.uniform(-1.5, 1.5, size=(50, 2))]) + np.array([10, -4])
    problem = KernelSimplex(
        X @ X.T, 0.5 * (X**2).sum(axis=1), kernel=Precomputed()
    )  # fmt: skip
    solution = solve(problem, SWAP2o(), tol=1e-9, max_iter=3000)
    assert solution.certificate.certified
    assert 2 * solution.certificate.dual <= 9.0 <= 2 * solution.certificate.primal
    np.testing.assert_allclose(solution.alpha @ X, [10.0, -4.0], atol=1e-3)
    assert np.flatnonzero(solution.alpha > 1e-6).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["fw", "mfw", "swap", "swap-2o"])
def test_regression_with_squared_losses_and_a_free_tube(name):
    """The primal in NumPy, at the model of the dual variables, meets the bound."""
    rng = np.random.default_rng(3)
    X, C = rng.uniform(-3, 3, size=(30, 1)), 50.0
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)
    K = np.exp(-0.5 * (X - X.T) ** 2) + 1.0
    Q, p = np.kron([[1, -1], [-1, 1]], K) + np.identity(60) / C, np.r_[y, -y]
    problem = KernelSimplex(Q, p, kernel=Precomputed())
    solution, tol = train(problem, METHODS[name](), 1e-5)
    beta = solution.alpha[:30] - solution.alpha[30:]
    tube = (p - Q @ solution.alpha) @ solution.alpha
    loss = np.maximum(0.0, np.abs(K @ beta - y) - tube)
    primal = 0.5 * beta @ K @ beta + 0.5 * C * (loss**2).sum() + tube
    found = solution.certificate
    assert tube > 0.0
    assert found.dual <= primal * (1 + 1e-9)
    assert primal - found.dual <= 3 * tol * primal


@pytest.mark.parametrize("name", ["fw", "mfw", "swap", "swap-2o"])
def test_novelty_detection_with_squared_losses(name):
    rng = np.random.default_rng(4)
    X, C = np.vstack([rng.normal(size=(40, 2)), [[5.0, 5.0]]]), 10.0
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    problem = KernelSimplex(K + np.identity(41) / C, kernel=Precomputed())
    solution, tol = train(problem, METHODS[name](), 1e-5)
    a = solution.alpha
    rho = a @ K @ a + a @ a / C
    loss = np.maximum(0.0, rho - K @ a)
    primal = 0.5 * a @ K @ a + 0.5 * C * (loss**2).sum() - rho
    found = solution.certificate
    assert found.dual <= primal + 1e-9
    assert primal - found.dual <= 3 * tol * abs(found.dual)
    assert np.argmin(K @ a) == 40


def test_bounds_hold_at_any_point():
    K, p = quadratic(30, 30)
    box = qp.Box(K, p, np.zeros(30), np.ones(30), total=1.0)
    low, high = box.optimum()
    problem = KernelSimplex(K, p, kernel=Precomputed())
    rng = np.random.default_rng(0)
    for sparse in (1, 3, 30):
        a = np.zeros(30)
        a[:sparse] = rng.dirichlet(np.ones(sparse))
        found = problem.certify(a)
        assert found.dual <= box.dual(a) + 1e-12
        assert found.dual <= high
        assert found.primal >= low
        g = K @ a - p
        assert found.gap == pytest.approx(a @ g - g.min(), rel=1e-9)
    assert problem.lowest <= box.dual(np.full(30, 1 / 30))
