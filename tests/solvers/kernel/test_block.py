"""The block solver: optimality, certificates, and the equality constraint."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualgap import core
from dualgap.certificate import Status
from dualgap.kernel import (
    RBF,
    BlockSolver,
    KernelProblem,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)
from dualgap.problems.base import Claim
from dualgap.training import solve

from ... import qp
from ...twins import block as twin
from .data import look_first, resting

KERNELS = [RBF(gamma=0.5), Laplacian(gamma=0.3), Polynomial(2, 0.5, 1.0), Linear()]


def points(rng, n, d):
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] * X[:, -1] + 0.5 * rng.standard_normal(n) > 0, 1, -1)
    return X, y


def hinge(X, y, C, kernel=KERNELS[0], **options):
    return KernelProblem(
        X, y, C, kernel=kernel, loss="hinge", penalize_intercept=False, **options
    )


def fit(problem, tol=1e-6, **options):
    return solve(problem, BlockSolver(**options), tol=tol)


def matrix(problem):
    """The kernel matrix in float64."""
    n, X = problem.n, problem.gram.X
    if isinstance(problem.gram.kernel, RBF):  # without cancellation
        square = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
        return np.exp(-problem.gram.kernel.gamma * square)
    return problem.gram.kernel.block(problem.gram.X, slice(0, n), dtype=np.float64)


def reference(K, y, cost):
    """A bracket of the optimum of the hinge with a free bias."""
    if len(set(y[cost > 0])) < 2:
        return 0.0, 0.0
    low, high = np.minimum(y * cost, 0.0), np.maximum(y * cost, 0.0)
    return qp.Box(K, y, low, high, total=0.0).optimum()


def check_certificate(problem, solution, tol):
    """P >= P* >= D from outside, KKT, and the equality to the last bit."""
    alpha, certificate = solution.alpha, solution.certificate
    y, cost = problem.y.astype(float), problem.cost
    assert (alpha >= 0).all()
    assert (alpha <= cost).all()
    assert math.fsum(alpha * y) == 0.0
    K = matrix(problem)
    lower, upper = reference(K, y, cost)
    assert upper >= lower * (1.0 - 1e-12)
    slack = 1e-9 * max(upper, 1e-300)
    assert certificate.primal >= lower - slack
    assert certificate.dual <= upper + slack
    # The certificate is about this alpha and this bias.
    coef, bias = problem.coef(alpha)
    F = K @ coef
    primal = 0.5 * coef @ F + cost @ np.maximum(0.0, 1.0 - y * (F + bias))
    dual = alpha.sum() - 0.5 * coef @ F
    # F is a sum of terms as large as alpha, and P has as much of it as the costs say.
    rounding = 1e-15 * alpha.sum() * (1.0 + cost.sum()) + 1e-300
    room = certificate.rounding
    assert -rounding <= certificate.primal - primal <= rounding + room
    assert -rounding <= dual - certificate.dual <= rounding + room
    # Bounded by the sizes of all terms, each kernel value to 1e-11: more than there is,
    # and still little.
    assert room <= 5e-11 * (1.0 + cost.sum()) * alpha.sum() * float(np.abs(K).max())
    assert certificate.certified
    assert certificate.primal - upper <= (tol + 1e-9) * upper


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_certificates_hold_against_a_generic_solver(kernel):
    rng = np.random.default_rng(11)
    for _ in range(60):
        n, d = int(rng.integers(4, 60)), int(rng.integers(1, 6))
        X, y = points(rng, n, d)
        y[:2] = 1, -1
        weight = rng.uniform(0.1, 3.0, n)
        weight[rng.random(n) < 0.2] = 0.0
        C = float(10.0 ** rng.uniform(-3, 3))
        problem = hinge(X, y, C, kernel, sample_weight=weight)
        tol = float(10.0 ** rng.uniform(-6, -1))
        solution = fit(problem, tol)
        assert solution.certificate.certified, (n, d, C, tol)
        check_certificate(problem, solution, tol)


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("gamma", [1e-6, 0.1, 1e6])
def test_extremes_of_cost_and_width(C, gamma):
    rng = np.random.default_rng(5)
    X, y = points(rng, 50, 2)
    X = np.vstack([X, X[:10]])  # equal points, half of them of the other class
    y = np.concatenate([y, y[:5], -y[5:10]])
    problem = hinge(X, y, C, RBF(gamma=gamma))
    solution = fit(problem, 1e-5)
    assert solution.certificate.certified
    check_certificate(problem, solution, 1e-5)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0], [1.0]], [1, -1]),
        ([[0.0], [0.0]], [1, -1]),
        ([[2.0]] * 7, [1, -1, 1, 1, -1, 1, 1]),
        ([[0.0], [1.0], [2.0]], [1, 1, 1]),
        ([[3.0]], [-1]),
    ],
)
def test_smallest_problems(X, y):
    problem = hinge(np.array(X), np.array(y), 2.0)
    solution = fit(problem, 1e-8)
    assert solution.certificate.certified
    check_certificate(problem, solution, 1e-8)


def test_one_point_of_a_class_and_weights_of_zero():
    rng = np.random.default_rng(2)
    X, _ = points(rng, 300, 3)
    y = np.full(300, -1)
    y[17] = 1
    problem = hinge(X, y, 5.0)
    check_certificate(problem, fit(problem), 1e-6)
    weight = np.ones(300)
    weight[17] = 0.0  # the class has no row left
    problem = hinge(X, y, 5.0, sample_weight=weight)
    solution = fit(problem)
    assert solution.certificate.certified
    assert solution.certificate.primal == 0.0
    assert not solution.alpha.any()


def test_working_sets_and_caches_of_every_size_reach_the_optimum():
    rng = np.random.default_rng(3)
    X, y = points(rng, 500, 3)
    best = fit(hinge(X, y, 10.0), 1e-7).certificate.dual
    for q, cache in [(8, 0.05), (16, 0.2), (33, 200), (512, 0.1), (500, 200)]:
        problem = hinge(X, y, 10.0, cache_size=cache)
        solution = fit(problem, 1e-4, q=q)
        assert solution.certificate.certified
        assert abs(solution.certificate.dual - best) <= 1e-4 * best


@pytest.mark.parametrize(("kernel", "bytes_"), [(KERNELS[0], 2), (KERNELS[2], 4)])
def test_the_cache_keeps_its_limit(kernel, bytes_):
    rng = np.random.default_rng(4)
    X, y = points(rng, 2000, 3)
    problem = hinge(X, y, 10.0, kernel, cache_size=0.5)
    solver = BlockSolver()
    state = solver.start(problem, core.Random(0), None)
    assert state.fixed == (bytes_ == 2)  # values from 0 to 1 that have no room
    for _ in range(60):
        solver.step(state, core.Stop())
    block = state.block
    row = bytes_ * 2016
    assert row * block.capacity + 4 * block.q * (block.q + 16) <= 500_000
    assert row * (block.capacity + 1) >= 0.85 * 500_000
    assert block.held == block.capacity
    assert block.computed > block.capacity
    # A working set larger than the cache: rows without a place are not stored.
    assert block.q > block.capacity
    carried = block.gradient
    state.refresh()
    exact = block.gradient
    scale = float(problem.gram.diagonal().max())
    near = 2.0**-17 if state.fixed else 1e-6 * scale
    np.testing.assert_allclose(carried, exact, atol=near * state.alpha().sum())


KINDS = ["hinge", "squared_hinge", "regression", "one class"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_while_rows_rest(kind):
    rng = np.random.default_rng(4)
    problem = resting(kind, rng)
    solver = BlockSolver(q=16)._with_settings(shrinking_rows=50, fixed_share=0.0)
    state = solver.start(problem, core.Random(0), None)
    state.tol, seen = 1e-9, 0
    for _ in range(400):
        solver.step(state, core.Stop())
        if state.part is None:
            continue
        seen += 1
        alpha, rows = state.alpha(), state.part.rows
        # D of all rows, from the change of some.
        c, scores = alpha * problem.y, problem.scores(alpha)
        dual = c @ problem.linear - problem.epsilon * np.abs(c).sum() - 0.5 * c @ scores
        if kind == "squared_hinge":
            dual -= 0.5 * c.sum() ** 2 + 0.5 * problem.delta @ c**2
        assert state.dual == pytest.approx(dual, rel=1e-5, abs=1e-5)
        assert state.primal >= state.dual - 1e-4
        F = state.gradient()
        assert np.isfinite(F[rows]).all()
        assert np.isnan(np.delete(F, rows)).all()
        np.testing.assert_allclose(F[rows], scores[rows], atol=1e-4)
        rest = np.setdiff1d(np.arange(problem.n), rows)
        grid = 1e-15 * problem.cost.max()  # as near to a bound as the core's numbers
        size = np.abs(alpha[rest])
        assert ((size <= grid) | (size > 0.999 * problem.cost[rest])).all()
        if problem.free_bias:
            total = math.fsum([*(alpha * problem.y).tolist(), -problem.total])
            assert abs(total) <= 1e-12 * problem.n
    assert seen > 20
    assert len(rows) <= 0.7 * problem.n
    assert state.computed >= state.block.computed
    # No decisions are made up for rows that rest, whatever becomes of the fit.
    unproved = solver.unproved(state)
    assert np.isnan(np.delete(unproved.decisions, rows)).all()
    assert np.isfinite(unproved.decisions[rows]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("distance", [0.15, 0.0])
def test_rows_that_were_wrong_to_rest_come_back(kind, distance, monkeypatch):
    rng = np.random.default_rng(4)
    problem = resting(kind, rng)
    plain = solve(problem, BlockSolver(q=16), tol=1e-7, random_state=0)
    # With a distance of 0 many rows are wrong to rest.
    solver = BlockSolver(q=16)._with_settings(
        shrinking_rows=50, shrinking_distance=distance
    )
    opened, open_ = [], BlockSolver._open
    monkeypatch.setattr(
        BlockSolver,
        "_open",
        lambda self, state, part: (opened.append(part), open_(self, state, part)),
    )
    found = solve(problem, solver, tol=1e-7, random_state=0)
    assert found.certificate.certified
    assert any(part is not None for part in opened)
    if kind == "hinge" and distance == 0.0:
        assert any(part is None for part in opened)
    floor = plain.certificate.floor
    for a, b in [(plain, found), (found, plain)]:
        a, b = a.certificate, b.certificate
        assert a.dual <= b.primal
        assert b.primal - a.dual <= 3e-7 * max(abs(a.dual), floor)


def test_rows_in_16_bits_prove_what_float32_does():
    rng = np.random.default_rng(22)
    X, y = points(rng, 1500, 3)
    for loss in ("hinge", "squared_hinge"):
        options = {"loss": loss, "penalize_intercept": loss != "hinge"}
        small, large = (
            KernelProblem(X, y, 10.0, kernel=KERNELS[1], cache_size=cache, **options)
            for cache in (2, 200)
        )
        solver = BlockSolver()
        states = [solver.start(p, core.Random(0), None) for p in (small, large)]
        assert [state.fixed for state in states] == [True, False]
        # Rounding alone may be worth 1e-9 here.
        exact = fit(large, 3e-9).certificate
        for tol in (1e-3, 3e-9):  # the second is beyond 16 bits, and then float32
            found = fit(small, tol).certificate
            assert found.certified
            assert found.primal >= exact.dual
            assert exact.primal >= found.dual >= exact.dual * (1 - tol)


def test_rows_in_16_bits_are_given_up_before_they_mislead(monkeypatch):
    """Their rounding is soon as large as the violation at C = 1000."""
    rng = np.random.default_rng(23)
    X, y = points(rng, 1500, 3)
    problem = hinge(X, y, 1000.0, KERNELS[1], cache_size=2)
    solver, seen = BlockSolver(), 0
    state = solver.start(problem, core.Random(0), None)
    assert state.block.drift == 0.0
    while state.fixed:
        solver.step(state, core.Stop())
        if not state.fixed:
            break
        seen += 1
        alpha, carried = state.alpha(), state.gradient()
        assert state.block.drift == pytest.approx(np.linalg.norm(alpha))
        off = carried - problem.scores(alpha)
        assert np.ptp(off) <= state.block.violation
    assert seen > 5
    np.testing.assert_array_equal(state.gradient(), problem.scores(state.alpha()))
    assert state.block.drift == 0.0

    def proofs(solver) -> int:
        calls = []
        prove = KernelProblem.prove
        with monkeypatch.context() as patch:
            patch.setattr(
                KernelProblem,
                "prove",
                lambda *a, **k: (calls.append(1), prove(*a, **k))[1],
            )
            problem = hinge(X, y, 1000.0, KERNELS[1], cache_size=2)
            assert solve(problem, solver, tol=1e-3).certificate.certified
        return len(calls)

    never = BlockSolver()._with_settings(doubt=0.0)
    assert proofs(BlockSolver()) < proofs(never)


def test_a_stop_while_16_bits_are_given_up(monkeypatch):
    rng = np.random.default_rng(23)
    X, y = points(rng, 1500, 3)
    problem = hinge(X, y, 1000.0, KERNELS[1], cache_size=2)
    solver = BlockSolver()
    state = solver.start(problem, core.Random(0), None)
    while not state.blurred:
        state.block.step(0.1, core.Stop())
    look_first(monkeypatch, lambda stop: stop.requested)
    stop = core.Stop()
    stop.request()
    solver._look_again(state, finer=True, stop=stop)
    assert not state.whole
    alpha = state.alpha()
    solver.step(state, core.Stop())  # takes it up
    assert state.whole
    assert state.dual >= problem.prove(Claim(alpha=alpha)).certificate.dual


def test_working_sets_grow_while_rows_cost_more_than_steps():
    rng = np.random.default_rng(21)
    X, y = points(rng, 5000, 30)
    problem = hinge(X, y, 10.0, cache_size=20)
    solver = BlockSolver()
    state = solver.start(problem, core.Random(0), None)
    first, largest = state.block.q, 0
    for _ in range(80):
        solver.step(state, core.Stop())
        assert math.fsum(state.alpha() * y) == 0.0
        largest = max(largest, state.block.q)
    assert first < largest
    assert 4 * largest * (largest + 16) <= 2_500_000
    assert fit(problem, 1e-5).certificate.certified
    assert BlockSolver(q=100).start(problem, core.Random(0), None).block.q == 100


def test_dual_values_never_fall_and_the_equality_is_exact():
    rng = np.random.default_rng(6)
    X, y = points(rng, 600, 4)
    weight = rng.uniform(0.01, 2.0, 600)
    problem = hinge(X, y, 1 / 3, sample_weight=weight)
    solver = BlockSolver(q=32)
    state = solver.start(problem, core.Random(1), None)
    dual = state.dual
    for _ in range(60):
        solver.step(state, core.Stop())
        assert state.dual >= dual - 1e-5 * abs(dual)
        dual = state.dual
        assert math.fsum(state.alpha() * y) == 0.0


def test_some_rows_are_the_whole_problem():
    rng = np.random.default_rng(10)
    X, y = points(rng, 200, 4)
    some = np.arange(0, 200, 3)
    for kernel in (RBF(gamma=0.5), Polynomial(3, 0.2, 1.0)):
        part = fit(hinge(X, y[some], 3.0, kernel, rows=some))
        alone = fit(hinge(X[some], y[some], 3.0, kernel))
        np.testing.assert_array_equal(part.alpha, alone.alpha)
    K = RBF(gamma=0.5).block(X, slice(0, 200))
    part = fit(hinge(K, y[some], 3.0, Precomputed(), rows=some))
    assert part.certificate.certified


def test_a_warm_start_at_the_optimum_ends_at_once():
    rng = np.random.default_rng(13)
    X, y = points(rng, 400, 3)
    problem = hinge(X, y, 10.0)
    cold = fit(problem, 1e-6)
    warm = solve(problem, BlockSolver(), tol=1e-5, warm=cold.alpha)
    assert warm.certificate.certified
    assert warm.certificate.epochs == 0
    # From any other point: balanced, on the grid, and then solved.
    start = rng.uniform(0.0, 20.0, 400)
    far = solve(problem, BlockSolver(), tol=1e-6, warm=start)
    assert far.certificate.certified
    assert math.fsum(far.alpha * y) == 0.0


def test_cancellation_far_from_the_centre_is_no_obstacle():
    rng = np.random.default_rng(14)
    X, y = points(rng, 200, 3)
    X[:100] += 1e2  # two clusters: kernel values need more digits than float32 has
    problem = hinge(X, y, 100.0, RBF(gamma=1.0))
    solution = fit(problem, 1e-6)
    assert solution.certificate.certified
    check_certificate(problem, solution, 1e-6)


def compared(steps, step, start, atol, total=None):
    """Compare inner steps with the twin's; return how many rounding did not decide."""
    found, c, v = 0, np.zeros(len(start)), start.copy()
    for _ in range(20):
        chosen, c2, v2, clear = step(c, v.astype(float))
        taken = steps(c, v, 1)
        assert total is None or math.fsum(c) == total
        if clear:  # else rounding says which rows
            found += 1
            assert taken == (chosen is not None)
            np.testing.assert_allclose(c, c2, atol=atol[0])
            np.testing.assert_allclose(v, v2, atol=atol[1])
    whole, carried = np.zeros(len(start)), start.copy()
    assert steps(whole, carried, 20) <= 20
    np.testing.assert_array_equal(whole, c)
    np.testing.assert_array_equal(carried, v)
    return found


def test_inner_pairs_are_those_of_the_twin():
    rng, found = np.random.default_rng(17), 0
    for n in (2, 15, 16, 17, 60):
        X, y = points(rng, n, 3)
        y[:2] = 1, -1
        K = RBF(gamma=0.5).block(X, slice(0, n)).astype(np.float32)
        hi = np.where(y > 0, rng.uniform(0.5, 2.0, n), 0.0)
        lo = np.where(y > 0, 0.0, -rng.uniform(0.5, 2.0, n))
        unit = 2.0**-51
        hi, lo = np.floor(hi / unit) * unit, np.ceil(lo / unit) * unit
        start = (rng.standard_normal(n) * 0.3 + y).astype(np.float32)

        def steps(c, v, most, K=K, lo=lo, hi=hi, unit=unit):
            return core.pair_steps(K, c, (lo, hi), v, unit, 1e-3, most, core.Stop())

        def step(c, v, K=K, lo=lo, hi=hi):
            return twin.pair_step(K.astype(float), c, lo, hi, v, 1e-3)

        found += compared(steps, step, start, (1e-5, 1e-5), total=0.0)
    assert found > 80


def test_inner_coordinates_are_those_of_the_twin():
    rng, found = np.random.default_rng(18), 0
    for n in (1, 15, 16, 33):
        X, y = points(rng, n, 3)
        K = Polynomial(2, 0.5, 1.0).block(X, slice(0, n)).astype(np.float32)
        delta = rng.uniform(0.1, 1.0, n)
        start = (rng.standard_normal(n) * 0.3 + y).astype(np.float32)
        y = y.astype(float)

        def steps(c, v, most, K=K, y=y, delta=delta):
            return core.coordinate_steps(K, y, delta, c, v, 1e-3, most, core.Stop())

        def step(c, v, K=K, y=y, delta=delta):
            return twin.coordinate_step(K.astype(float), y, delta, c, v, 1e-3)

        found += compared(steps, step, start, (2e-5, 2e-4))
    assert found > 60


def test_inner_coordinates_end_where_no_row_violates():
    rng = np.random.default_rng(21)
    n, tol = 60, 1e-2
    for _ in range(20):
        X, y = points(rng, n, 3)
        K = RBF(gamma=0.5).block(X, slice(0, n)).astype(np.float32)
        # Rows that gain little by a step, however much they violate.
        delta = 10.0 ** rng.uniform(-1, 4, n)
        c, v = np.zeros(n), y.astype(np.float32)
        core.coordinate_steps(K, y.astype(float), delta, c, v, tol, 10**5, core.Stop())
        w = y * (y - K.astype(float) @ c - c.sum() - delta * c)
        assert np.where(c != 0.0, np.abs(w), w).max() <= tol + 1e-4


def test_a_stop_is_heard_and_leaves_a_certificate():
    rng = np.random.default_rng(19)
    X, y = points(rng, 8000, 60)
    problem = hinge(X, y, 1e4, RBF(gamma=0.001))
    done, step = [], BlockSolver.step

    class Stopped(BlockSolver):
        """Told to leave when its third step begins."""

        def step(self, state, stop):
            if state.epochs == 2:
                stop.request()
            step(self, state, stop)
            done.append(state.computed)

    solution = solve(problem, Stopped(), tol=1e-12)
    assert len(done) == 3
    assert done[2] - done[1] < 0.5 * (done[1] - done[0])
    assert solution.certificate.status is Status.INTERRUPTED
    assert math.fsum(solution.alpha * y) == 0.0
    assert solution.certificate.primal >= solution.certificate.dual
