"""The kernel solvers against their papers in plain NumPy, step for step."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import core
from dualgap.kernel import (
    RBF,
    CoreVector,
    KernelProblem,
    get_kernel_solver,
)
from dualgap.papers.twins import CoreVectorTwin
from dualgap.solvers.papers.frank_wolfe import SimplexState

from ...twins import watched
from .data import form, kernel_matrix, make

pytestmark = pytest.mark.cases(8)

METHODS = ["fw", "mfw", "mdm", "swap", "swap-2o"]


def begin(weighted, mapped, seed=3, n=70):
    """A state at a point with many small entries, and K as the core's rows have it."""
    X, y = make(n, 4, seed)
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.2, 3.0, n) if weighted else None
    rows = None
    if mapped:
        rows = rng.permutation(n)[: n - 9]
        y, weight = y[rows], None if weight is None else weight[rows]
        if weight is not None:
            weight[::7] = 0.0
    problem = KernelProblem(X, y, 3.0, kernel=RBF(0.3), sample_weight=weight, rows=rows)
    state = SimplexState.begin(problem, core.Random(1))
    m = len(state.a)
    chosen = rng.permutation(m)[:45]
    state.place(chosen, rng.uniform(0.0, 1.0, 45) ** 4)
    return problem, state


def matrix(problem, state, dtype):
    if dtype == np.float32:
        rows = [problem.gram.row(int(i))[state.used] for i in state.used]
        k = np.array(rows, dtype=np.float64)
    else:
        k = kernel_matrix(problem)[np.ix_(state.used, state.used)]
    return state.y[:, None] * state.y * (k + 1.0) + np.diag(state.delta)


def walk(state, method, steps, clipped=True):
    """Make steps on the full gradient."""
    point = state.point
    settings = core.WalkSettings(method, clipped, steps)
    found = core.frank_wolfe(state.simplex, point, settings, core.Stop())
    state.size = point.size
    return found


def walk_sampled(state, method, steps, sample, rng, gram=None):
    """Make steps toward sampled rows; `gram` replaces the matrix of the state."""
    simplex, point = state.simplex, state.point
    if gram is not None:
        arrays = state.y, state.delta, state.diagonal
        simplex = core.Simplex(gram.core, state.columns, *arrays)
    settings = core.WalkSettings(method, True, steps)
    found = core.frank_wolfe_sampled(simplex, point, settings, sample, rng, core.Stop())
    state.size = point.size
    return found


def moves(found):
    return np.array([found.swaps, found.drops, found.aways])


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ranking", ["clipped", "paper"])
@pytest.mark.parametrize("method", METHODS)
def test_full_steps(method, ranking, weighted, mapped):
    problem, state = begin(weighted, mapped)
    K = matrix(problem, state, np.float32)
    state.diagonal = K.diagonal().copy()  # in float32 too, as the twin has it
    state.g = K @ state.a
    twin = watched.FrankWolfe(K, state.a, method, ranking)
    counts, clear = np.zeros(3, dtype=int), 0
    for _ in range(120):
        # From the same point: where rounding decides, either step is right.
        twin.a, p = state.a.copy(), state.a @ state.g
        twin.swaps, twin.drops, twin.aways = counts
        found = walk(state, method, 1, ranking == "clipped")
        assert found.steps == 1
        assert twin.step()
        counts += moves(found)
        np.testing.assert_array_equal(
            np.sort(state.active[: state.size]), np.flatnonzero(state.a)
        )
        np.testing.assert_allclose(state.g, K @ state.a, rtol=1e-8, atol=1e-14)
        assert state.a @ state.g < p  # monotone
        assert abs(state.a.sum() - 1.0) < 1e-12
        assert state.a.min() >= 0.0
        if twin.clear:
            clear += 1
            assert counts.tolist() == [twin.swaps, twin.drops, twin.aways]
            np.testing.assert_allclose(state.a, twin.a, rtol=1e-8, atol=1e-13)
    assert clear > 60
    if method in ("swap", "swap-2o", "mdm"):
        assert 0 < counts[1] < counts[0]  # both swap-drops and swap-adds happen


@pytest.mark.parametrize("method", METHODS)
def test_many_steps_in_one_call_are_the_same_steps(method):
    first, second = begin(True, False)[1], begin(True, False)[1]
    for state, calls in ((first, [100]), (second, [1, 9, 40, 50])):
        state.g = matrix(state.problem, state, np.float32) @ state.a
        for steps in calls:
            walk(state, method, steps)
    np.testing.assert_array_equal(first.a, second.a)
    np.testing.assert_array_equal(first.g, second.g)


def test_sums_stay_sums_over_thousands_of_steps():
    problem, state = begin(False, False)
    state.g = (K := matrix(problem, state, np.float32)) @ state.a
    assert walk(state, "fw", 20_000).steps == 20_000
    assert abs(state.a.sum() - 1.0) < 1e-12
    np.testing.assert_allclose(state.g, K @ state.a, rtol=1e-11)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_sampled_steps(method, mapped, balanced):
    problem, state = begin(True, mapped)
    K = matrix(problem, state, np.float64)
    # No row is cached here, so that the samples see float64 values.
    fresh = KernelProblem(*make(70, 4, 3), kernel=RBF(0.3))
    m, count = len(state.a), 12
    order, split = np.arange(m, dtype=np.uint32), 0
    if balanced:
        order = np.argsort(-state.y, kind="stable").astype(np.uint32)
        split = int((state.y > 0).sum())
    sample = core.Sample(count, order, split)
    state.g[:] = np.nan  # only entries with a > 0 may be read
    state.g[state.a > 0] = (K @ state.a)[state.a > 0]
    twin = watched.FrankWolfe(K, state.a, method)
    rng, twin_rng, counts = core.Random(5), core.Random(5), np.zeros(3, dtype=int)

    def draw(t):
        if not balanced:
            return twin_rng.below(m)
        if t % 2 == 0:
            return order[twin_rng.below(split)]
        return order[split + twin_rng.below(m - split)]

    clear = 0
    for _ in range(100):
        twin.a = state.a.copy()
        twin.swaps, twin.drops, twin.aways = counts
        found = walk_sampled(state, method, 1, sample, rng, fresh.gram)
        drawn = [int(draw(t)) for t in range(count)]
        assert found.gap == pytest.approx(twin.gap(drawn), rel=1e-8, abs=1e-12)
        twin.step(drawn)
        counts += moves(found)
        active = state.active[: state.size]
        np.testing.assert_allclose(
            state.g[active], (K @ state.a)[active], rtol=1e-8, atol=1e-14
        )
        if twin.clear:
            clear += 1
            assert counts.tolist() == [twin.swaps, twin.drops, twin.aways]
            np.testing.assert_allclose(state.a, twin.a, rtol=1e-8, atol=1e-13)
    assert clear > 50
    assert fresh.gram.statistics.misses == 0


@pytest.mark.parametrize("method", METHODS)
def test_the_first_sample_with_a_small_gap_ends_the_steps(method):
    state = begin(False, False)[1]
    K = matrix(state.problem, state, np.float64)
    state.g = K @ state.a
    one = begin(False, False)[1]
    one.g = state.g.copy()
    eps, count, rng = 0.01, 12, core.Random(5)
    sample = core.Sample(count, state.order, eps=eps)
    found = walk_sampled(state, method, 5000, sample, core.Random(5))
    assert found.gap <= eps
    # The same steps one by one, from samples that the twin looks at.
    for _ in range(found.steps):
        drawn = core.Random(0)
        drawn.state = rng.state
        seen = [drawn.below(len(one.a)) for _ in range(count)]
        twin = watched.FrankWolfe(K, one.a, method)
        assert twin.gap(seen) > eps
        walk_sampled(one, method, 1, core.Sample(count, one.order), rng)
    seen = [rng.below(len(one.a)) for _ in range(count)]
    twin = watched.FrankWolfe(K, one.a, method)
    assert twin.gap(seen) == pytest.approx(found.gap, rel=1e-6)
    np.testing.assert_array_equal(state.a, one.a)


def test_a_sampled_step_goes_on_from_the_vertex_of_a_scan():
    problem, state = begin(False, False)
    K = matrix(problem, state, np.float64)
    fresh = KernelProblem(*make(70, 4, 3), kernel=RBF(0.3))
    state.g = K @ state.a
    twin = watched.FrankWolfe(K, state.a, "swap")
    twin.step()
    sample = core.Sample(5, state.order, vertex=int(np.argmin(state.g)))
    walk_sampled(state, "swap", 1, sample, core.Random(0), fresh.gram)
    np.testing.assert_allclose(state.a, twin.a, rtol=1e-8)


@pytest.mark.parametrize("sample", [None, 7])
def test_core_vector(sample):
    X, y = make(90, 4, 1)
    problem = KernelProblem(X, y, 3.0, kernel=RBF(0.3))
    # So small that the inner problem has one answer: ties make its steps ambiguous.
    solver = CoreVector(sample=sample, eps=1e-7)
    state = solver.start(problem, core.Random(2), None)
    # As the core holds it: float32, and the columns of cached rows computed so.
    every = np.arange(len(y))
    K = state.matrix(every, every).astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(K, form(problem) + np.diag(problem.delta), atol=1e-6)
    twin = CoreVectorTwin(K, state.a, state.core_set, state.eps)
    # The core's draws, seen by the twin.
    draws = []
    farthest = solver._farthest

    def watched(state):
        rows, loss = farthest(state)
        candidates = range(len(y)) if sample is None else state.drawn
        draws.append((list(candidates), [int(i) for i in rows]))
        return rows, loss

    object.__setattr__(solver, "_farthest", watched)
    for _ in range(4):
        draws.clear()
        twin.a, twin.eps = state.a.copy(), state.eps
        solver.step(state, core.Stop())
        quiet = 0
        for candidates, chosen in draws:
            expected = twin.outside(candidates)[: 60 if sample is None else 1]
            # The same distances, so that equal ones may change places.
            distance, limit = twin.distances()
            assert len(chosen) == len(set(chosen))
            assert not set(chosen) & set(twin.rows)
            assert abs(len(chosen) - len(expected)) <= np.count_nonzero(
                np.abs(distance - limit) < 1e-5
            )
            for i, j in zip(chosen, expected, strict=False):
                assert distance[i] == pytest.approx(distance[j], abs=1e-5)
            if chosen:
                quiet = 0
                twin.add(chosen)
            else:
                quiet += 1
                if quiet == 5 or sample is None:
                    twin.tighten()
        assert state.eps == twin.eps
        np.testing.assert_allclose(state.a, twin.a, rtol=1e-4, atol=1e-5)


def test_register():
    for name in (*METHODS, "auto", "core-vector", "kernel-pegasos"):
        assert get_kernel_solver(name).name == name
    with pytest.raises(ValueError, match="solver='libsvm' is unknown"):
        get_kernel_solver("libsvm")
