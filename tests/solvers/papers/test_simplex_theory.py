"""Theorems on Frank-Wolfe methods and core sets, held against their steps.

f(a) = 1/2 a'Ka over the simplex. h = f - f* is bounded from above: f* is at least
f - (p - min g) at a point close to the optimum.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualgap import core
from dualgap.kernel import RBF, CoreVector, KernelProblem, SWAP2o
from dualgap.solvers.papers.frank_wolfe import SimplexState
from dualgap.training import solve

from ..kernel.data import make

METHODS = ["fw", "mfw", "mdm", "swap", "swap-2o"]


def begin(n, C, seed=0, start=5):
    """Return a state with equal weights on some rows, and K as the core computes it."""
    X, y = make(n, 4, seed)
    problem = KernelProblem(X, y, C, kernel=RBF(0.3))
    state = SimplexState.begin(problem, core.Random(seed))
    rows = np.array([problem.gram.row(i) for i in range(n)], dtype=np.float64)
    K = state.y[:, None] * state.y * (rows + 1.0) + np.diag(state.delta)
    state.diagonal = K.diagonal().copy()
    state.place(np.arange(start), np.ones(start))
    state.g = K @ state.a
    return state, K


def walk(state, method, steps=1, clipped=False):
    """Return the counts of swaps, drops and away steps of full-gradient steps."""
    point, settings = state.point, core.WalkSettings(method, clipped, steps)
    found = core.frank_wolfe(state.simplex, point, settings, core.Stop())
    state.size = point.size
    return found.swaps, found.drops, found.aways


def least(state, K):
    """Return a lower bound on f*, a rounding error below it."""
    start = state.a.copy(), state.g.copy(), state.size, state.active.copy()
    walk(state, "swap-2o", 5000, clipped=True)
    g = K @ state.a
    p = state.a @ g
    assert p - g.min() <= 1e-11 * p
    state.a[:], state.g[:], state.size, state.active[:] = start
    return 0.5 * p - (p - g.min())


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("method", METHODS)
def test_what_drops_was_added_or_there_at_the_start(method, C):
    state, _ = begin(60, C, start=30)
    start, added, dropped = state.size, 0, 0
    for step in range(1, 301):
        before = set(state.active[: state.size].tolist())
        _, drops, _ = walk(state, method)
        after = set(state.active[: state.size].tolist())
        assert len(before - after) == drops
        added += len(after - before)
        dropped += drops
        assert state.size == len(after) == start + added - dropped >= 1
        assert dropped <= added + start - 1
        if method == "mfw":  # an away step adds no vertex, so drops are not half
            assert 2 * dropped <= step + start
    if C == 10.0:
        assert (dropped > 0) == (method != "fw")


def test_frank_wolfe_converges_as_one_over_k():
    """Jaggi 2013, theorems 1 and 2, with the curvature of f over the simplex."""
    state, K = begin(60, 10.0)
    low = least(state, K)
    diagonal = K.diagonal()
    curvature = (diagonal[:, None] + diagonal - 2 * K).max()
    best = math.inf
    for k in range(1, 2001):
        walk(state, "fw")
        g = K @ state.a
        p = state.a @ g
        assert 0.5 * p - low <= 2 * curvature / (k + 2)
        best = min(best, p - g.min())
        if k >= 2:
            assert best <= 27 / 4 * curvature / (k + 2)


@pytest.mark.parametrize("sampled", [False, True])
def test_a_sum_that_drifted_is_mended(sampled):
    """Pair steps keep sum a; every 1,024 steps a and its gradient are scaled to 1."""
    state, K = begin(60, 10.0)
    state.a *= 1.25
    state.g *= 1.25
    if sampled:
        settings = core.WalkSettings("mdm", False, 1024)
        sample = core.Sample(20, np.arange(60, dtype=np.uint32), 0, -1, -math.inf)
        point = state.point
        core.frank_wolfe_sampled(
            state.simplex, point, settings, sample, core.Random(0), core.Stop()
        )
        state.size = point.size
    else:
        walk(state, "mdm", 1024)
    active = state.active[: state.size]
    assert state.a.sum() == pytest.approx(1.0, abs=1e-12)
    # A gradient that is not scaled is off by a quarter; kernel values are of float32.
    known = active if sampled else slice(None)
    np.testing.assert_allclose(state.g[known], (K @ state.a)[known], rtol=1e-4)


def share(K):
    """Return mu delta^2 / (L M^2): Lacoste-Julien and Jaggi 2015, section 2.

    delta is the pyramidal width of the simplex, and M its diameter, the root of 2.
    """
    n, spectrum = len(K), np.linalg.eigvalsh(K)
    width = 4 / n if n % 2 == 0 else 4 / (n - 1 / n)
    return spectrum[0] * width / (2 * spectrum[-1])


@pytest.mark.parametrize("method", ["mfw", "mdm", "swap", "swap-2o"])
@pytest.mark.parametrize(("n", "C"), [(12, 0.1), (31, 0.3)])
def test_away_steps_and_swaps_converge_linearly(method, n, C):
    """Every step that is not clipped shrinks h by a fixed share (theorem 1 there).

    SWAP's steps toward a vertex have no such bound where the swap would be clipped.
    """
    state, K = begin(n, C)
    low, rate, whole = least(state, K), share(K), 0
    rate = min(rate / 4 if method == "mfw" else rate, 0.5)
    h = 0.5 * state.a @ K @ state.a - low
    first = h
    for _ in range(3000):
        swaps, drops, _ = walk(state, method)
        before, h = h, 0.5 * state.a @ K @ state.a - low
        if h < 1e-9 * low:
            break
        if drops == 0 and (method == "mfw" or swaps == 1):
            whole += 1
            assert h <= (1 - rate) * before
    assert h < 1e-9 * low
    assert 0 < whole <= math.log(first / (1e-9 * low)) / -math.log1p(-rate) + 1


def most_core_vectors(eps):
    """Return the most rows that join before the ball of radius (1 + eps) r holds all.

    A row at the distance d moves the radius r to (d^2 + r^2)/(2 d) or more (Badoiu and
    Clarkson 2002). The optimal radius is 1: d is at least 1, and at least (1 + eps) r.
    """
    r, many = 0.0, 0
    while r < 1.0:
        d = max(1.0, (1 + eps) * r)
        r = (d * d + r * r) / (2 * d)
        many += 1
    return many


@pytest.mark.parametrize("eps", [0.05, 0.1, 0.2])
def test_core_sets_are_small_whatever_the_number_of_rows(eps):
    solver = CoreVector(sample=None, eps=eps, initial=1)
    # The farthest row alone, and one in a step.
    solver = solver._with_settings(scan_rows=1, additions=1)
    for n in (100, 400, 1600):
        X, y = make(n, 4, 1)
        problem = KernelProblem(X, y, 10.0, kernel=RBF(0.5))
        optimum = solve(problem, SWAP2o(), tol=1e-6).certificate
        state = solver.start(problem, core.Random(0), None)
        largest = (1 + eps) ** 2 * (state.kappa - 0.5 / optimum.primal)
        start, first = state.size, None
        while state.eps == eps:
            before = state.size
            farthest = state.kappa - 2 * state.g.min() + state.p
            if first is None and farthest <= largest:
                first = before - start  # the ball holds all, by the optimal radius
            solver.step(state, core.Stop())
            assert (state.size == before + 1) != (state.eps < eps)
        assert first is not None
        assert first <= 2 / eps
        assert first <= state.size - start <= most_core_vectors(eps) < 100


@pytest.mark.parametrize(("count", "share"), [(59, 0.95), (60, 0.95), (12, 0.8)])
def test_a_sample_holds_one_of_the_best_rows_with_the_stated_probability(count, share):
    """59 rows hold one of the best 5 % with probability 0.951, whatever their number.

    1 - 0.95^59 = 0.9515. A step moves toward the best row of its sample.
    """
    state, K = begin(400, 10.0, start=20)
    state.g = K @ state.a
    ranks = np.argsort(np.argsort(state.g))
    a, g, size, rng = state.a.copy(), state.g.copy(), state.size, core.Random(0)
    active, trials, hits = state.active.copy(), 2000, 0
    best = round((1 - share) * len(a))
    settings, sample = core.WalkSettings("fw", True, 1), core.Sample(count, state.order)
    for _ in range(trials):
        state.size = size
        core.frank_wolfe_sampled(
            state.simplex, state.point, settings, sample, rng, core.Stop()
        )
        hits += ranks[np.argmax(state.a - a)] < best
        state.a[:], state.g[:], state.active[:] = a, g, active
    expected = 1 - (1 - best / len(a)) ** count
    deviation = math.sqrt(expected * (1 - expected) / trials)
    assert abs(hits / trials - expected) <= 4 * deviation
    if count >= 59:
        assert expected > 0.95
