"""Cutting planes and OCAS: step for step, and what their bounds promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dualgap import core
from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import OCAS, CuttingPlane
from dualgap.training import solve

from ...twins import cutting_planes as twins
from ..data import LAYOUTS, any_bench, bench_dual, bench_primal, close, make

both = pytest.mark.parametrize("record", [CuttingPlane, OCAS])


def begin(solver, problem):
    return solver.start(problem, core.Random(0), None), core.Stop()


def members(bits, n):
    return np.unpackbits(bits, count=n, bitorder="little").astype(bool)


# --- against the twin ------------------------------------------------------------


@any_bench
@both
def test_step_by_step(record, case, layout):
    bench = make(case, layout, d=4)
    solver = record(inner_tol=1e-14)
    twin = twins.CuttingPlanes(
        bench.X, bench.y, bench.c, solver.mu if record is OCAS else None
    )
    state, stop = begin(solver, bench.problem)
    last, steps = bench.c.sum(), 0
    for step in range(1, 9):
        solver.step(state, stop)
        twin.step()
        assert (state.epochs, state.updates, state.visited) == (
            step, step, step * bench.n,
        )  # fmt: skip
        planes = state.planes
        assert planes.size == step + 1
        close(planes.a[: planes.size], twin.A)
        close(planes.b[: planes.size], twin.b)
        close(planes.gram[: planes.size, : planes.size], twin.A @ twin.A.T)
        np.testing.assert_array_equal(
            members(planes.sets[step], bench.n), twin.sets[-1]
        )
        P, D = solver.estimate(state)
        np.testing.assert_allclose(D, twin.Q_D, rtol=1e-11)
        w, alpha = solver.iterate(state)
        np.testing.assert_allclose(bench_dual(bench, alpha), twin.Q_D, rtol=1e-11)
        assert w is state.w
        ours = members(state.next_set, bench.n)
        if record is OCAS and twin.way < 1e-9:  # a search along a rounding error
            assert bench_primal(bench, w) <= last * (1 + 1e-13)
            twin.W, twin.members, last = w.copy(), ours, P
            continue
        steps, last = steps + 1, P
        close(state.w, twin.W, 1e-9)
        np.testing.assert_allclose(P, twin.Q_P, rtol=1e-11)
        # Two planes that differ by one row put its margin at 1, where rounding
        # decides for either set: both are planes.
        clear = np.abs(twin.at_cut - 1.0) > 1e-9
        np.testing.assert_array_equal(ours[clear], twin.members[clear])
        assert np.count_nonzero(~clear) <= 4
        twin.W, twin.members = w.copy(), ours
    assert last - twin.Q_D < 0.05 * twin.Q_D
    assert steps > 4


# --- the line search -------------------------------------------------------------


@st.composite
def lines(draw):
    """Two points and rows with many ties: small whole numbers, or anything."""
    n, d = draw(st.integers(1, 60)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    coarse = draw(st.booleans())

    def points(*shape):
        return (
            rng.integers(-2, 3, shape).astype(float)
            if coarse
            else rng.normal(size=shape)
        )

    Z, start, end = points(n, d), points(d), points(d)
    if draw(st.integers(0, 9)) == 0:
        end = start.copy()
    c = rng.integers(0, 3, n).astype(float) if coarse else rng.uniform(0, 2, n)
    return Z, c * 10.0 ** draw(st.integers(-2, 2)), start, end


@given(lines())
def test_the_line_search_is_exact(line):
    """P at t is no larger than at any kink or at the lowest point between two."""
    Z, c, start, end = line
    way = end - start
    old, new = Z @ start, Z @ end

    def P(t):
        margins = np.maximum(0.0, 1.0 - (old + t * (new - old)))
        return 0.5 * (start + t * way) @ (start + t * way) + c @ margins

    t = core.line_search(c, old, new, float(start @ way), float(way @ way))
    assert t >= 0.0
    assert np.isfinite(t)
    with np.errstate(divide="ignore", invalid="ignore"):
        kinks = (1.0 - old) / (new - old)
    kinks = np.unique(np.append(kinks[np.isfinite(kinks) & (kinks > 0)], 0.0))
    trials = list(kinks)
    for low, high in zip(kinks, [*kinks[1:], np.inf], strict=True):
        middle = 0.5 * (low + high) if np.isfinite(high) else low + 1.0
        active = old + middle * (new - old) < 1.0
        if way.any():
            lowest = (c[active] @ (new - old)[active] - start @ way) / (way @ way)
            trials.append(np.clip(lowest, low, high))
    best = min(map(P, trials))
    assert P(t) <= best + 1e-12 * (abs(best) + c.sum())


@pytest.mark.parametrize("n", [50, 5000])
def test_the_line_search_of_the_twin(n):
    rng = np.random.default_rng(n)
    for _ in range(30):
        Z = rng.normal(size=(n, 3))
        c, start, end = rng.uniform(0, 1, n), rng.normal(size=3), rng.normal(size=3)
        way = end - start
        ours = core.line_search(c, Z @ start, Z @ end, start @ way, way @ way)
        theirs = twins.line_search(c, Z @ start, Z @ end, start, end)
        np.testing.assert_allclose(ours, theirs, 1e-9, 1e-12)


def test_a_line_search_over_ties():
    """All kinks at one t: the zero of the derivative is in its jump."""
    c, old, new = np.ones(1000), np.zeros(1000), np.full(1000, 4.0)
    assert core.line_search(c, old, new, 0.0, 16.0) == 0.25
    assert core.line_search(c, old, new, 0.0, 0.0) == 0.25
    # Uphill, or going nowhere: stay.
    assert core.line_search(c, old, old, 1.0, 1.0) == 0.0
    assert core.line_search(c, old, old, 0.0, 0.0) == 0.0
    # The kinks are all but out of range.
    far = np.full(1000, 1e-306)
    assert 0.99e306 < core.line_search(c, old, far, 0.0, 0.0) < 1.01e306
    # No kink ahead: the parabola's lowest point.
    assert core.line_search(c, old, old, -3.0, 2.0) == 1.5


# --- the master problem ----------------------------------------------------------


@st.composite
def masters(draw):
    """Planes, some repeated or dependent, and weights to start from."""
    size, d = draw(st.integers(1, 25)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = rng.normal(size=(size, d)) * 10.0 ** draw(st.integers(-3, 3))
    b = rng.uniform(0, 1, size)
    if draw(st.booleans()):
        twin = rng.integers(0, size, size // 2)
        A[: size // 2], b[: size // 2] = A[twin], b[twin]
    if draw(st.booleans()):  # nearly the same, as late in a fit
        A = A[:1] + 1e-4 * A
        b = b[:1] + 1e-4 * b
    A[0] = b[0] = 0.0
    beta = np.zeros(size)
    beta[rng.integers(0, size)] = 1.0
    if draw(st.booleans()):
        beta = rng.dirichlet(np.ones(size))
    return A, b, beta


@given(masters())
def test_the_master_problem(master):
    A, b, beta = master
    H = A @ A.T

    def value(beta):
        v = beta @ A
        return beta @ b - 0.5 * v @ v

    size = b @ np.ones(len(b)) + np.abs(H).max()
    before = value(beta)
    gaps = []
    for tol in (0.1 * size, 1e-4 * size, 1e-12 * size):
        gaps.append(core.solve_master(H, b, beta, tol, core.Stop()))
        g = b - H @ beta
        true_gap = max(0.0, g.max() - beta @ g)
        assert true_gap <= tol + 1e-13 * size
        assert abs(gaps[-1] - true_gap) <= 1e-13 * size
        assert (beta >= 0.0).all()
        assert abs(beta.sum() - 1.0) <= 1e-14 * len(b)
        assert value(beta) >= before - 1e-14 * size
        before = value(beta)


def test_the_master_problem_as_its_twin_solves_it():
    rng = np.random.default_rng(0)
    for _ in range(40):
        A, b = rng.normal(size=(7, 3)), rng.uniform(0, 2, 7)
        A[0] = b[0] = 0.0
        beta = np.eye(7)[0]
        core.solve_master(A @ A.T, b, beta, 1e-15, core.Stop())
        expected, _ = twins.reduced_dual(A, b)
        close(beta @ A, expected @ A, 1e-9)


def test_a_face_of_many_planes_takes_one_newton_step():
    """Weight moved between pairs of planes alone would take far too many steps here."""
    size, rng = 20, np.random.default_rng(0)
    rotation, _ = np.linalg.qr(rng.normal(size=(size, size)))
    A = rotation * np.geomspace(1.0, 100.0, size)
    H, expected = A @ A.T, np.full(size, 1.0 / size)
    b = H @ expected  # the gradient b - H beta is 0 there
    beta = np.geomspace(1.0, 2.0, size)
    beta /= beta.sum()
    core.solve_master(H, b, beta, 1e-12 * np.abs(H).max(), core.Stop())
    # H has the condition 1e4; rounding is at most some 1e4 times 2^-53.
    assert np.abs(beta - expected).max() <= 1e-10


def test_a_master_problem_out_of_range_ends():
    for bad in (np.inf, np.nan):
        H = np.full((3, 3), bad)
        H[0] = H[:, 0] = 0.0
        core.solve_master(H, np.ones(3), np.eye(3)[0], 1e-9, core.Stop())


# --- bounds ----------------------------------------------------------------------

STORES = {
    "all planes": {},
    "dropped at once": {"patience": 1},
    "two planes": {"max_planes": 2},
    "five planes": {"max_planes": 5, "patience": 3},
}


@both
@pytest.mark.parametrize("case", ["plain", "everything"])
@pytest.mark.parametrize("store", STORES)
def test_the_bounds_of_every_step(record, case, store):
    """alpha in the box, D(alpha) the master's dual and rising, P(w) exact."""
    bench = make(case, n=80, C=2.0)
    solver = record(**STORES[store])
    state, stop = begin(solver, bench.problem)
    last, most, merged = 0.0, 1, False
    for _ in range(60):
        solver.step(state, stop)
        _, alpha = solver.iterate(state)
        assert (alpha >= 0).all()
        assert (alpha <= bench.c).all()
        v = bench.X.T @ (alpha * bench.y)
        close(state.planes.w(), v, 1e-10)
        P, D = solver.estimate(state)
        np.testing.assert_allclose(P, bench_primal(bench, state.w), rtol=1e-10)
        np.testing.assert_allclose(D, bench_dual(bench, alpha), rtol=1e-10)
        assert D >= last * (1 - 1e-13)
        last = D
        most, merged = max(most, state.planes.size), merged or state.planes.merged > 0
    assert most <= solver.max_planes + 1
    assert merged == (store in ("two planes", "five planes"))
    assert (most < 61) == (store != "all planes" or solver.patience < 60)


@both
def test_planes_made_one_from_the_other_stay_exact(record):
    bench = make("everything", n=300, C=20.0)
    state, stop = begin(record(patience=1000), bench.problem)
    for _ in range(100):
        record(patience=1000).step(state, stop)
    planes = state.planes
    assert planes.size == 101
    sets = np.array([members(bits, bench.n) for bits in planes.sets[:101]])
    weights = sets * bench.c
    size = bench.c.max() * np.abs(bench.X).max() * bench.n
    exact = (weights * bench.y) @ bench.X
    np.testing.assert_allclose(planes.a[:101], exact, rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(planes.b[:101], weights.sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize("case", ["plain", "everything"])
def test_the_best_point_of_ocas_never_rises(case):
    bench = make(case, n=80, C=2.0)
    state, stop = begin(OCAS(), bench.problem)
    last = bench.c.sum()
    for _ in range(40):
        OCAS().step(state, stop)
        assert state.primal <= last * (1 + 1e-13)
        last = state.primal


@both
@pytest.mark.parametrize(
    ("planes", "tol"), [(2, 1e-2), (3, 1e-2), (8, 1e-4), (20, 1e-6)]
)
def test_few_planes_converge_too(record, planes, tol):
    bench = make("everything", n=200, d=5, C=0.5)
    solver = record(max_planes=planes)
    solution = solve(bench.problem, solver, tol=tol, max_iter=100_000)
    assert solution.certificate.status is Status.CERTIFIED


def test_carried_margins_are_renewed():
    bench = make("everything", "csr-f8-i4-i4")
    solver = OCAS()
    state, stop = begin(solver, bench.problem)
    for _ in range(5):
        solver.step(state, stop)
    exact = bench.y * (bench.X @ state.w)
    close(state.outputs, exact, 1e-12)
    state.outputs += 0.1
    solver.reject(state)
    close(state.outputs, exact, 1e-14)


# --- threads, interruption, refusals ---------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_passes_in_parts(threads, layout):
    bench = make("everything", layout)
    p, stop = bench.problem, core.Stop()
    rng = np.random.default_rng(threads)
    w, inside = rng.normal(size=p.width), rng.random(bench.n) < 0.5
    out = np.empty(bench.n)
    assert core.outputs(p.rows, p.y, w, out, threads, stop) == bench.n
    close(out, bench.y * (bench.X @ w), 1e-14)
    before = rng.random(bench.n) < 0.5
    sets = [np.packbits(rows, bitorder="little") for rows in (before, inside)]
    start = rng.normal(size=p.width)
    a = start.copy()
    done, b = core.change_plane(p.examples(), *sets, a, 3.0, threads, stop)
    assert done == bench.n
    change = bench.c * (inside.astype(float) - before)
    close(a - start, (change * bench.y) @ bench.X, 1e-13)
    np.testing.assert_allclose(b, 3.0 + change.sum(), rtol=1e-13)


@both
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupted_step_leaves_a_whole_state(record, threads):
    n = 300_000  # more work than goes by between two looks at the clock
    X = sparse.csr_matrix(np.ones((n, 6)))
    problem = Problem(X, np.where(np.arange(n) % 3 == 0, 1, -1), 0.01)
    solver = record(threads=threads)
    state, stop = begin(solver, problem)
    for _ in range(2):
        solver.step(state, stop)
    before = solver.estimate(state)
    # A set that shares few rows with the last one: much to do, and to leave undone.
    state.next_set[:] = np.random.default_rng(0).integers(0, 256, len(state.next_set))
    stop.request()
    solver.step(state, stop)
    assert state.updates == 2
    assert solver.estimate(state) == before
    w, alpha = solver.iterate(state)
    certificate = problem.certify(w, alpha)
    room = certificate.rounding
    np.testing.assert_allclose(certificate.dual, before[1], rtol=1e-12, atol=room)
    np.testing.assert_allclose(certificate.primal, before[0], rtol=1e-12, atol=room)
    # The next plane is not made from what the interrupted pass left.
    solver.step(state, core.Stop())
    inside = members(state.rows, n)
    close(state.a, np.full(6, 0.01 * problem.y[inside].sum()), 1e-12)
    np.testing.assert_allclose(state.b, 0.01 * inside.sum(), rtol=1e-12)
    assert (
        core.outputs(problem.rows, problem.y, np.zeros(6), np.empty(n), threads, stop)
        < n
    )


def test_costs_out_of_range_end_the_fit_honestly():
    X = 1e150 * np.eye(3)
    problem = Problem(X, [1, -1, 1], 1e149)
    solution = solve(problem, OCAS(), max_iter=5)
    assert solution.certificate.status is Status.STALLED
    assert np.isfinite(solution.w).all()
