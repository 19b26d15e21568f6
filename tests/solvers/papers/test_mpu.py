"""The margin perceptron with unlearning: twin, fixed point, certificates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualgap import core
from dualgap.certificate import Status
from dualgap.papers.twins.losses import dual, primal
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers.dcd import DCD
from dualgap.solvers.papers.mpu import MPU
from dualgap.training import solve

from ... import qp
from ...twins import mpu
from ..data import CASES, LAYOUTS, LOSSES, close, make

soft_margins = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
any_bench = pytest.mark.parametrize(
    ("case", "layout"),
    [(case, "dense-f8") for case in CASES]
    + [("everything", layout) for layout in LAYOUTS if layout != "dense-f8"],
)


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
        D = dual(bench.X, bench.y, bench.c, bench.phi, twin.alpha)
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
        D = dual(bench.X, bench.y, bench.c, bench.phi, state.alpha)
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
        gap = primal(bench.X, bench.y, bench.c, bench.phi, w) - value
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


@soft_margins
@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 25),
    d=st.integers(1, 8),
    logarithm=st.floats(-2.5, 1.5),
    weighted=st.booleans(),
    intercept=st.booleans(),
)
def test_certificates_against_a_generic_solver(
    loss, seed, n, d, logarithm, weighted, intercept
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = np.where(X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) > 0, 1, -1)
    weight = rng.uniform(0.1, 2.0, size=n) * (rng.random(n) < 0.8)
    weight[0] = 1.0
    C = 10.0**logarithm
    problem = Problem(
        X, y, C, loss=loss, sample_weight=weight if weighted else None,
        fit_intercept=intercept,
    )  # fmt: skip
    Z = y[:, None] * (np.column_stack([X, np.ones(n)]) if intercept else X)
    cost = C * weight if weighted else np.full(n, C)
    curvature, linear = (0.0, True) if loss == "hinge" else (0.5, False)
    best = qp.optimum(Z, cost, curvature, linear)
    for tol, passes in ((1e-12, 3), (1e-6, 200_000)):
        solution = solve(problem, MPU(), tol=tol, max_iter=passes)
        P = float(qp.primal(Z, cost, curvature, linear, solution.w))
        D = float(qp.dual(Z, cost, curvature, solution.alpha))
        np.testing.assert_allclose(solution.certificate.primal, P, 1e-10)
        np.testing.assert_allclose(solution.certificate.dual, D, 1e-10)
        assert (solution.alpha >= 0).all()
        assert (solution.alpha <= problem.upper).all()
        assert D <= best.upper * (1 + 1e-10)
        assert P >= best.lower * (1 - 1e-10)
    assert solution.certificate.status is Status.CERTIFIED
    assert P - best.lower <= 1.0001e-6 * best.upper


@pytest.mark.cases(1)
# Epochs to a proven 1e-2, with a margin of about a half over what was measured.
@pytest.mark.parametrize(
    ("name", "C", "epochs"),
    [
        ("adult/a9a", 0.05, 10),
        ("adult/a9a", 1.0, 80),
        ("web/w8a", 0.05, 6),
        ("web/w8a", 1.0, 25),
        ("cocoa_rcv1_small/small_train.dat", 0.05, 6),
        ("cocoa_rcv1_small/small_train.dat", 1.0, 35),
    ],
)
def test_real_data(name, C, epochs, load_xz):
    X, y = load_xz(name)
    problem = Problem(X, y, C)
    reference = solve(problem, DCD(), tol=1e-5, max_iter=20_000)
    assert reference.certificate.status is Status.CERTIFIED
    solution = solve(problem, MPU(), tol=1e-2, max_iter=epochs)
    assert solution.certificate.status is Status.CERTIFIED
    w, alpha = solution.w, solution.alpha
    P = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
    v = X.T @ (alpha * y)
    D = alpha.sum() - 0.5 * v @ v
    assert P - D <= 1.0001e-2 * D
    assert P <= (1 + 1e-2) * reference.certificate.primal
    assert D <= reference.certificate.primal


# --- the rest --------------------------------------------------------------------


@soft_margins
def test_same_seed_same_bits(loss):
    problem = make("everything", "csr-f4-i4-i4", loss).problem
    equal = make("everything", "csr-f4-i4-i4", loss).problem

    def answer(problem, seed):
        return solve(problem, MPU(), tol=1e-14, max_iter=7, random_state=seed)

    first = answer(problem, 5)
    for one in (problem, equal):
        again = answer(one, 5)
        np.testing.assert_array_equal(again.w, first.w)
        np.testing.assert_array_equal(again.alpha, first.alpha)
    assert not np.array_equal(answer(problem, 6).w, first.w)


@pytest.mark.parametrize("name", ["delta", "delta_stop"])
@pytest.mark.parametrize("value", [0.0, -0.1, float("nan"), float("inf"), "fine"])
def test_invalid_hyper_parameters_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}=") as error:
        MPU(**{name: value})
    assert repr(value) in str(error.value)


def test_delta_beyond_1_is_refused():
    with pytest.raises(ValueError, match=r"delta=1\.5"):
        MPU(delta=1.5)
    assert MPU(delta=1.0, delta_stop=5.0).monotone
    assert not MPU().monotone


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="smoothed_hinge"):
        solve(make(loss="smoothed_hinge").problem, MPU())
    with pytest.raises(ValueError, match="warm start"):
        solve(make().problem, MPU(), warm=np.zeros(40))
    assert LOSSES.keys() > set(MPU.losses)
