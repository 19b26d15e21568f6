"""The margin perceptron with unlearning: twin, fixed point, certificates."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import core
from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers.papers.mpu import MPU
from dualgap.training import solve

from ...twins import mpu
from ..data import CASES, any_bench, bench_dual, bench_primal, close, make

soft_margins = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])


def twin_of(bench, s):
    box, diagonal = bench.phi.box(bench.c), bench.phi.diagonal(bench.c)
    return mpu.MPU(bench.X, bench.y, box, diagonal, s)


def twin_follows(twin, a, count):
    """Put the twin where the core is."""
    own = np.sqrt(twin.diagonal) * count
    twin.a, twin.n, twin.unclear = np.append(a, own), count.copy(), 0


def longest(bench):
    q = (bench.X**2).sum(axis=1) + bench.phi.diagonal(bench.c)
    return q[bench.c > 0].max()


# --- step by step ----------------------------------------------------------------


@soft_margins
@any_bench
@pytest.mark.parametrize("delta", [0.5, 0.02])
def test_row_by_row(case, layout, loss, delta):
    """The closed form against one unit update after the other."""
    bench = make(case, layout, loss, C=2.0)
    p, stop, s = bench.problem, core.Stop(), 2 * delta / longest(bench)
    twin = twin_of(bench, s)
    a, count = np.zeros(p.width), np.zeros(bench.n)
    order, rng = np.arange(bench.n, dtype=np.uint32), core.Random(3)
    many = 0
    for _ in range(4):
        rng.shuffle(order)
        for k in order:
            twin_follows(twin, a, count)
            updates, unlearned, before = twin.updates, twin.unlearned, twin.n[k]
            m = bench.y[k] * (bench.X[k] @ twin.w)
            share = (
                bench.c[k] * bench.phi.value(m)
                + twin.alpha[k] * (m - 1)
                + 0.5 * bench.phi.diagonal(bench.c)[k] * twin.alpha[k] ** 2
            )
            result = core.unlearning_epoch(
                p.examples(), s, np.array([k]), a, count, stop
            )
            twin.visit(k)
            if twin.unclear:
                continue
            many += abs(twin.n[k] - before) > 1
            assert result.visited == 1
            assert result.updates == twin.updates - updates
            assert result.unlearned == twin.unlearned - unlearned
            np.testing.assert_allclose(result.gap, share, 1e-9, 1e-12)
            close(count, twin.n, 1e-12)
            close(a, twin.a[: twin.d])
    assert many > 0
    assert twin.unlearned > 0


@soft_margins
@pytest.mark.parametrize("case", CASES)
def test_epochs(case, loss):
    """Whole passes, the halving of s among them."""
    bench = make(case, loss=loss)
    solver, stop = MPU(delta=0.2), core.Stop()
    state = solver.start(bench.problem, core.Random(4), None)
    twin = twin_of(bench, 0.4 / longest(bench))
    order, rng = np.arange(bench.n, dtype=np.uint32), core.Random(4)
    halved = clear = 0
    for epoch in range(1, 61):
        twin_follows(twin, state.a, state.count)
        twin.s, twin.learned = state.s, state.updates - state.unlearned
        twin.unlearned = state.unlearned
        solver.step(state, stop)
        rng.shuffle(order)
        np.testing.assert_array_equal(state.order, order)
        before = twin.updates
        for k in state.order:
            twin.visit(k)
        assert (state.epochs, state.visited) == (epoch, epoch * bench.n)
        if twin.unclear:
            continue
        clear += 1
        if twin.updates == before:
            twin.refine()
            halved += 1
        np.testing.assert_allclose(state.s, twin.s, 1e-12)
        close(state.count, twin.n, 1e-9)
        close(state.a, twin.a[: twin.d], 1e-9)
        assert (state.updates, state.unlearned) == (twin.updates, twin.unlearned)
        D = bench_dual(bench, twin.alpha)
        np.testing.assert_allclose(solver.estimate(state)[1], D, 1e-9)
        w, alpha = solver.iterate(state)
        assert w is None
        # D(t alpha) = t S - t^2 V/2 is largest at S/V, or where the box ends.
        v, p = twin.s * twin.a[: twin.d], bench.problem
        V = v @ v + (p.delta * twin.alpha**2).sum()
        inside = twin.alpha > 0.0
        room = (p.upper[inside] / twin.alpha[inside]).min()
        close(alpha, min(twin.alpha.sum() / V, room) * twin.alpha, 1e-9)
    assert clear > 30
    assert halved > 0
    assert twin.unlearned > 0


# --- what the module claims -------------------------------------------------------


@soft_margins
@pytest.mark.parametrize("case", ["plain", "everything"])
@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_the_dual_rises_until_the_margins_are_within_delta(case, loss, delta):
    bench = make(case, loss=loss, n=60, C=1.0)
    # As accurate as can be asked for after the run: s stays what it is.
    solver, stop = MPU(delta=delta, delta_stop=1e9), core.Stop()
    state = solver.start(bench.problem, core.Random(0), None)
    s, value, ended = state.s, 0.0, False
    while not ended:
        before = state.updates
        solver.step(state, stop)
        ended = state.updates == before
        D = bench_dual(bench, state.alpha)
        assert (D == value) if ended else (D > value)
        value = D
    assert state.s == s
    alpha, box = state.alpha, bench.phi.box(bench.c)
    w = bench.X.T @ (alpha * bench.y)
    margin = bench.y * (bench.X @ w) + bench.phi.diagonal(bench.c) * alpha
    used = bench.c > 0
    assert (alpha[~used] == 0).all()
    assert (margin[used & (alpha < box * (1 - 1e-12))] >= 1 - delta - 1e-9).all()
    assert (margin[used & (alpha > 0)] <= 1 + delta + 1e-9).all()
    if loss == "hinge":
        near = np.abs(margin - 1) <= delta + 1e-9
        gap = bench_primal(bench, w) - value
        assert 0 <= gap <= delta * bench.c[near].sum() + 1e-9


def test_counters_are_whole_below_the_cap():
    bench = make(C=1.0)
    solver, stop = MPU(delta=0.1), core.Stop()
    state = solver.start(bench.problem, core.Random(0), None)
    solver.step(state, stop)
    cap = bench.c / state.s
    inside = (state.count > 0) & (state.count < cap)
    assert inside.sum() > 3
    np.testing.assert_array_equal(state.count[inside], np.round(state.count[inside]))
    assert (state.count <= cap).all()


def test_delta_stop_ends_the_run():
    """A fixed s leads to a fixed point, which the loop reports."""
    bench = make(n=60, C=1.0)
    rough = solve(bench.problem, MPU(delta=0.5, delta_stop=1.0), tol=1e-9)
    assert rough.certificate.status is Status.STALLED
    assert 1e-9 < rough.certificate.relative_gap <= 1.0
    fine = solve(bench.problem, MPU(delta=0.5), tol=1e-9, max_iter=100_000)
    assert fine.certificate.status is Status.CERTIFIED
    half = MPU(delta=0.5, delta_stop=1e-3)
    middle = solve(bench.problem, half, tol=1e-9, max_iter=100_000)
    assert middle.certificate.status is Status.STALLED
    assert middle.certificate.relative_gap <= 1e-3
    met = solve(bench.problem, half, tol=2e-3, max_iter=100_000)
    assert met.certificate.status is Status.CERTIFIED


def test_s_does_not_shrink_for_ever():
    """Beyond rounding there is nothing to gain, and counters would overflow."""
    bench = make("everything", C=1.0)
    solver, stop = MPU(), core.Stop()
    state = solver.start(bench.problem, core.Random(0), None)
    for _ in range(5000):
        solver.step(state, stop)
    assert np.isfinite(state.count).all()
    assert state.delta >= 2.0**-51
    certificate = bench.problem.certify(alpha=state.alpha)
    assert certificate.relative_gap < 1e-10


def test_rows_without_length_go_to_their_cap():
    X, y, weight = np.zeros((3, 2)), np.array([1, -1, 1]), np.array([1.0, 0.0, 2.0])
    problem = Problem(X, y, 0.5, sample_weight=weight)
    solution = solve(problem, MPU(), tol=1e-9)
    np.testing.assert_array_equal(solution.alpha, problem.cost)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.dual < 1.5 < solution.certificate.primal
    assert solution.certificate.gap <= 1e-14


# --- certificates ----------------------------------------------------------------


# --- the rest --------------------------------------------------------------------


def test_a_bound_on_delta_makes_the_dual_rise():
    assert MPU(delta=1.0, delta_stop=5.0).monotone
    assert not MPU().monotone
