"""Interior point: the iteration against its twin, and certificates for odd problems."""

from __future__ import annotations

import functools
import itertools
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_limits

from dualgap import core
from dualgap.blas import algebra
from dualgap.certificate import Status
from dualgap.losses import Hinge, SmoothedHinge, SquaredHinge
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems.base import Claim
from dualgap.solvers import DCD, InteriorPoint
from dualgap.solvers.interior_point import predicted_work
from dualgap.solvers.some_rows import equal_rows, without_duplicates
from dualgap.training import solve

from .. import qp
from ..conftest import examples
from ..twins import interior_point as twin
from .data import LAYOUTS, LOSSES, close, make, some_rows, with_bias

PROXIMAL = 1e-12  # of the core, in units of the mean ||x_i||^2


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """The twin's small systems are no work for threads."""
    with threadpool_limits(1, user_api="blas"):
        yield


every_loss = pytest.mark.parametrize("loss", LOSSES)


def inner(problem, chosen, *fixed, threads=1, rows=None):
    return core.Interior(
        some_rows(problem, chosen, *fixed, rows=rows),
        problem.core_loss,
        float(problem.q[chosen].mean()),
        problem.free_bias,
        core.Team(threads),
        algebra()[0],
    )


# --- the iteration ---------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("case", ["plain", "everything"])
@pytest.mark.parametrize("free_bias", [False, True])
@pytest.mark.parametrize("layout", ["dense-f8", "dense-f4", "csr-f8-i8-i8"])
def test_twin(loss, case, free_bias, layout):
    bench, X, problem = with_bias(case, layout, loss, free_bias)
    used = np.flatnonzero(problem.cost > 0)
    c = problem.cost[used]
    ours, stop = inner(problem, used), core.Stop()
    assert ours.start(np.zeros(problem.width), 0.3, stop)
    theirs = twin.InteriorPoint(
        X[used] * bench.y[used, None], bench.phi.box(c), bench.phi.diagonal(c),
        np.zeros(problem.width), 0.3, c / c.mean(), free_bias,
        PROXIMAL * problem.q[used].mean() if loss == "hinge" else 0.0,
    )  # fmt: skip
    close(ours.alpha, theirs.a, 1e-12)
    for _ in range(7):
        assert ours.iterate(stop) == 0
        step = theirs.iterate()
        np.testing.assert_allclose([ours.length, ours.mu], [step, theirs.mu], 1e-7)
        close(ours.w, theirs.w, 1e-8)
        close(ours.alpha, theirs.a, 1e-8)
    assert ours.primal - ours.dual < 0.1 * ours.primal


@every_loss
def test_a_run_makes_the_same_iterations(loss):
    problem = make("plain", loss=loss).problem
    runs = [inner(problem, np.arange(problem.n)) for _ in range(2)]
    for run in runs:
        assert run.start(np.zeros(problem.width), 0.0, core.Stop())
    outcome, made, correctors = runs[0].run(1e-2, 30, core.Stop())
    assert outcome == 0
    assert 1 < made < 30
    for _ in range(made):
        assert runs[1].primal - runs[1].dual > 1e-2 * abs(runs[1].primal)
        assert runs[1].iterate(core.Stop()) == 0
        correctors -= runs[1].correctors
    assert correctors == 0
    assert runs[1].primal - runs[1].dual <= 1e-2 * abs(runs[1].primal)
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert runs[0].run(0.0, 2, core.Stop())[:2] == (0, 2)


@every_loss
def test_duals_near_a_bound_are_snapped_to_it(loss):
    cost = np.array([2.0, 2.0, 2.0, 2.0, 0.0])
    alpha = np.array([1e-9, 1e-3, 1.0, 2.0 - 1e-9, 0.0])
    problem = make("plain", loss=loss).problem
    bounded = np.isfinite(problem.loss.slope)
    found = core.snapped(alpha, cost, problem.core_loss, 1e-8, 1.0)
    expected = np.array([0.0, 1e-3, 1.0, 2.0 if bounded else alpha[3], 0.0])
    if not bounded:  # only `most` counts then
        expected[:2] = 0.0
    np.testing.assert_array_equal(found, expected)
    found = core.snapped(alpha, cost, problem.core_loss, 1e-8, 1e-10)
    np.testing.assert_array_equal(found, alpha)


def test_frozen_rows_are_linear_terms():
    """Rows at a bound, where they belong, leave the optimum of the others as it is."""
    bench = make("weights", n=80, loss="smoothed_hinge", C=0.3)
    problem = bench.problem
    best = solve(problem, DCD(), tol=1e-12, max_iter=10_000)
    inside = (best.alpha > 0.0) & (best.alpha < problem.upper)
    full = np.where(inside, 0.0, best.alpha)
    assert full.any()
    assert (~inside & (full == 0.0) & (problem.cost > 0)).any()
    reduced = inner(
        problem, np.flatnonzero(inside), problem.combine(full),
        problem.dual_value(full, 0.0),
    )  # fmt: skip
    assert reduced.start(np.zeros(problem.width), 0.0, core.Stop())
    for _ in range(25):
        reduced.iterate(core.Stop())
    assert reduced.refresh(core.Stop())
    close(reduced.w, best.w, 1e-6)
    np.testing.assert_allclose(
        [reduced.primal, reduced.dual], best.certificate.primal, 1e-9
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_come_in_blocks_are_the_same_rows(layout):
    bench = make(layout=layout)
    problem, stop = bench.problem, core.Stop()
    chosen = np.flatnonzero(np.arange(bench.n) % 5 != 2)

    def blocks(cuts):
        for first, last in itertools.pairwise(cuts):
            span = np.arange(first, last, dtype=np.uint32)
            rows = core.chosen_rows(problem.rows, span, problem.intercept_scaling)
            some = np.flatnonzero(np.isin(span, chosen)).astype(np.uint32)
            yield rows, some if len(some) < len(span) else None

    cuts = [0, 1, 2, bench.n // 3, bench.n]
    for threads in (1, 3):
        one = inner(problem, chosen, threads=threads)
        other = inner(problem, chosen, threads=threads, rows=lambda: blocks(cuts))
        for run in (one, other):
            assert run.start(np.zeros(problem.width), 0.0, stop)
            for _ in range(6):
                assert run.iterate(stop) == 0
        close(other.w, one.w, 1e-9)
        close(other.alpha, one.alpha, 1e-9)
        close(other.dual, one.dual, 1e-12)


def test_blocks_of_other_rows_are_refused():
    bench = make()
    problem, stop = bench.problem, core.Stop()
    zero, chosen = np.zeros(problem.width), np.arange(bench.n)
    yielded = [(problem.rows, None)]
    run = inner(problem, chosen, rows=lambda: iter(yielded))
    assert run.start(zero, 0.0, stop)
    yielded *= 2
    with pytest.raises(ValueError, match="other rows"):
        run.iterate(stop)
    yielded.clear()
    with pytest.raises(ValueError, match="other rows"):
        run.iterate(stop)

    def broken():
        yield problem.rows, np.arange(bench.n - 1, dtype=np.uint32)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        inner(problem, chosen, rows=broken).start(zero, 0.0, stop)
    beyond = np.array([bench.n], dtype=np.uint32)
    with pytest.raises(ValueError, match="does not exist"):
        inner(problem, chosen, rows=lambda: [(problem.rows, beyond)]).start(
            zero, 0.0, stop
        )


@pytest.mark.parametrize("layout", ["csr-f8-i4-i4", "csr-f4-i8-i8"])
@pytest.mark.parametrize("d", [80, 107, 120])
def test_neighbouring_entries_go_into_the_matrix_together(d, layout):
    rng = np.random.default_rng(0)
    n = 300
    X = np.zeros((n, d))
    for i in range(n):
        for first in rng.choice(d, 2, replace=False):  # runs, some over the end
            run = slice(first, first + rng.integers(3, 12))
            X[i, run] = rng.standard_normal(len(X[i, run]))
    X[:5] = 0.0
    X[5:10, d - 1] = 1.0
    X = X.astype(np.float32).astype(np.float64)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    stored = LAYOUTS[layout](X)
    unsorted = stored.copy()
    for i in range(n):
        row = slice(stored.indptr[i], stored.indptr[i + 1])
        unsorted.indices[row] = stored.indices[row][::-1]
        unsorted.data[row] = stored.data[row][::-1]
    stop, found = core.Stop(), []
    for data in (X, stored, unsorted):
        problem = Problem(data, y, 1.0, fit_intercept=True, intercept_scaling=0.5)
        assert core.has_windows(problem.rows) is (data is not X)
        run = inner(problem, np.arange(n))
        assert run.start(np.zeros(problem.width), 0.0, stop)
        for _ in range(8):
            assert run.iterate(stop) == 0
        found.append(run.w)
    close(found[1], found[0], 1e-8)
    close(found[2], found[1], 1e-10)
    scattered = LAYOUTS[layout](X[:, rng.permutation(d)])
    assert not core.has_windows(Problem(scattered, y).rows)


@every_loss
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("free_bias", [False, True])
def test_a_matrix_in_float32_leaves_the_same_proof(loss, threads, free_bias):
    rng = np.random.default_rng(0)
    n, d = 5000, 130  # of 4096 rows and more the sum goes on in float64
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    y = np.where(X[:, 0] + 0.1 * rng.standard_normal(n) > 0, 1, -1)
    problem = Problem(
        X, y, 10.0, loss=LOSSES[loss][0], n_jobs=threads, fit_intercept=free_bias,
        penalize_intercept=not free_bias,
    )  # fmt: skip
    run, stop = inner(problem, np.arange(n), threads=threads), core.Stop()
    assert run.start(np.zeros(problem.width), 0.0, stop)
    used, gaps = [], []
    for _ in range(40):
        used.append(run.single)
        assert run.iterate(stop) == 0
        primal, dual = run.primal, run.dual
        gaps.append((primal - dual) / primal)
        assert run.refresh(stop)
        close(run.primal, primal, 1e-11)
        close(run.dual, dual, 1e-11)
        if gaps[-1] < 1e-10:
            break
    assert gaps[-1] < 1e-10
    assert used[0]
    exact = solve(problem, InteriorPoint(), tol=1e-9).certificate
    assert exact.status is Status.CERTIFIED
    assert run.dual <= exact.primal * (1 + 1e-12)
    assert exact.dual <= run.primal * (1 + 1e-12)


def test_float32_is_left_where_its_rounding_shows():
    rng = np.random.default_rng(0)
    n, d = 2000, 130
    # Columns of very different lengths, and rows that meet in the longest ones.
    X = rng.standard_normal((n, d)) * np.geomspace(1.0, 1e4, d)
    X += 1e5
    y = np.where(rng.random(n) < 0.5, 1, -1)
    problem = Problem(X, y, 1.0)
    run, stop = inner(problem, np.arange(n)), core.Stop()
    assert run.start(np.zeros(d), 0.0, stop)
    assert run.single
    for _ in range(5):
        run.iterate(stop)
    assert not run.single
    narrow = Problem(X[:, :100], y, 1.0)
    few = inner(narrow, np.arange(n))
    assert few.start(np.zeros(100), 0.0, stop)
    assert not few.single


# --- rows that occur more than once ----------------------------------------------


@every_loss
@pytest.mark.parametrize("layout", LAYOUTS)
def test_equal_rows_are_solved_as_one(loss, layout):
    rng = np.random.default_rng(5)
    X = (rng.random((40, 5)) < 0.5) * rng.standard_normal((40, 5))
    drawn = rng.integers(0, 40, size=300)
    y = np.where(rng.random(300) < 0.5, 1, -1)
    weight = rng.uniform(0.0, 3.0, size=300) * (rng.random(300) < 0.9)
    problem = Problem(
        LAYOUTS[layout](X[drawn]), y, 2.0, loss=LOSSES[loss][0], sample_weight=weight
    )
    merged, group = without_duplicates(problem)
    keys = [(*problem_row, label) for problem_row, label in zip(X[drawn], y, strict=1)]
    assert merged.n == len(set(keys))
    assert len({(key, number) for key, number in zip(keys, group, strict=1)}) == (
        merged.n
    )
    for w in rng.standard_normal((3, problem.width)):
        np.testing.assert_allclose(merged.primal(w), problem.primal(w), 1e-12)
    state = InteriorPoint().start(problem, core.Random(0), None)
    upper = np.minimum(merged.upper, 5.0)
    alpha = rng.uniform(0.0, 1.0, size=merged.n) * upper
    alpha[::3] = upper[::3]
    spread = state.spread(alpha)
    assert (spread <= problem.upper).all()
    np.testing.assert_allclose(problem.dual(spread), merged.dual(alpha), 1e-12)
    solution = solve(problem, InteriorPoint(), tol=1e-8, max_iter=200)
    assert solution.certificate.certified


def test_different_rows_are_left_in_place():
    problem = make(n=50).problem
    assert without_duplicates(problem) == (problem, None)


# --- certificates ----------------------------------------------------------------


@st.composite
def odd_problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = (
        draw(st.sampled_from([1, 2, 7, 30, 60])),
        draw(st.sampled_from([1, 2, 6, 40])),
    )
    X = rng.standard_normal((n, d)) * (
        rng.random((n, d)) < draw(st.sampled_from([0.2, 1.0]))
    )
    for oddity in draw(st.sets(st.integers(0, 5))):
        if oddity == 0:
            X[::3] = 0.0
        elif oddity == 1:
            X[n // 2 :] = X[: n - n // 2]
        elif oddity == 2:
            X[:, 0] = 1.0
        elif oddity == 3:
            X[:, -1] = X[:, 0]
        elif oddity == 4:
            X *= 10.0 ** rng.uniform(-3, 3, size=d)
        else:
            X = (X > 0) * 1.0
    positive = draw(st.sampled_from([0.0, 0.001, 0.1, 0.5]))
    y = np.where(rng.random(n) < positive, 1, -1)
    weight = None
    if draw(st.booleans()):
        weight = 10.0 ** rng.uniform(-2, 2, size=n)
        weight[1:][rng.random(n - 1) < 0.3] = 0.0
    loss = draw(st.sampled_from([Hinge(), SquaredHinge(), SmoothedHinge(0.3)]))
    C = 10.0 ** draw(st.floats(-6, 6))
    layout = draw(st.sampled_from(sorted(LAYOUTS)))
    bias = draw(st.sampled_from(["none", "penalised", "free"]))
    return X, y, weight, loss, C, layout, bias


@given(odd_problems(), st.sampled_from([1e-2, 1e-4, 1e-6]))
@settings(max_examples=examples(120), deadline=None)
def test_odd_problems_are_certified(case, tol):
    X, y, weight, loss, C, layout, bias = case
    stored = LAYOUTS[layout](X)
    problem = Problem(
        stored, y, C, loss=loss, sample_weight=weight, fit_intercept=bias != "none",
        penalize_intercept=bias != "free",
    )  # fmt: skip
    solution = solve(problem, InteriorPoint(), tol=tol, max_iter=1000)
    certificate = solution.certificate
    assert certificate.status is Status.CERTIFIED
    assert (solution.alpha >= 0).all()
    assert (solution.alpha <= problem.upper).all()
    assert not solution.alpha[problem.cost == 0.0].any()
    Z = stored.toarray() if sparse.issparse(stored) else stored
    Z = Z.astype(np.float64)
    if bias == "free":
        assert abs(solution.alpha @ y) <= 1e-13 * solution.alpha.sum()
        return
    if bias == "penalised":
        Z = np.column_stack([Z, np.ones(len(y))])
    best = qp.optimum(
        Z * y[:, None], problem.cost, loss.curvature, bool(np.isfinite(loss.slope))
    )
    assert certificate.dual <= best.upper * (1 + 1e-9)
    assert certificate.primal >= best.lower * (1 - 1e-9)


@every_loss
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("free_bias", [False, True])
def test_screened_rows_are_certified_over_all_rows(loss, tol, free_bias):
    problem, reference = large(loss, free_bias)
    solution = solve(problem, InteriorPoint(sample=500), tol=tol, max_iter=500)
    certificate = solution.certificate
    assert certificate.status is Status.CERTIFIED
    assert certificate.dual <= reference.primal * (1 + 1e-12)
    assert certificate.primal >= reference.dual * (1 - 1e-12)
    again = problem.certify(solution.w, solution.alpha)
    np.testing.assert_allclose(
        [again.primal, again.dual], [certificate.primal, certificate.dual], 1e-9
    )
    least = solution.history["updates"]
    if tol == 1e-3 and loss == "hinge":  # not all rows were solved
        assert np.diff(least).max() < problem.n


def sparse_rows(rng, n=8000, d=12, positive=0.1):
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    score = X @ rng.standard_normal(d) + 0.7 * rng.standard_normal(n)
    return X, np.where(score > np.quantile(score, 1 - positive), 1, -1)


@functools.cache
def large(loss, free_bias):
    rng = np.random.default_rng(3)
    X, y = sparse_rows(rng)
    n = len(y)
    problem = Problem(
        sparse.csr_matrix(X), y, 5.0, loss=LOSSES[loss][0], fit_intercept=True,
        penalize_intercept=not free_bias,
        sample_weight=rng.uniform(0.5, 2.0, size=n) * (rng.random(n) < 0.95),
    )  # fmt: skip
    reference = solve(problem, DCD(), tol=1e-7, max_iter=100_000).certificate
    assert reference.certified
    return problem, reference


def most_rows(solution):
    """Return the most rows of an epoch; over all of them it makes several steps."""
    return np.diff(solution.history["updates"], prepend=0).max()


@pytest.mark.cases(8)
@pytest.mark.parametrize("loss", [*map(SmoothedHinge, (0.4, 1, 3, 10)), SquaredHinge()])
@pytest.mark.parametrize("C", [0.3, 5.0, 300.0])
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("free_bias", [False, True])
@pytest.mark.parametrize("positive", [0.1, 0.5])
def test_more_rows_between_bounds_than_are_near(loss, C, seed, free_bias, positive):
    """They are solved from the solution of the sample, without all other rows."""
    problem = Problem(
        *sparse_rows(np.random.default_rng(seed), positive=positive), C, loss=loss,
        fit_intercept=True, penalize_intercept=not free_bias,
    )  # fmt: skip
    solution = solve(problem, InteriorPoint(), tol=1e-6, max_iter=500)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.relative_gap <= 1e-6
    assert problem.certify(solution.w, solution.alpha).relative_gap <= 1e-6
    assert most_rows(solution) < problem.n


class AtTheBounds(InteriorPoint):
    """Starts near rows at their bounds, where no step has finite numbers."""

    def _solve_near(self, state, *arguments):
        state.reach = 0.0
        super()._solve_near(state, *arguments)


@pytest.mark.parametrize("tried", [0, 4])
@pytest.mark.parametrize("seed", [2, 3])
def test_a_restricted_solve_that_breaks_down_is_made_again(tried, seed):
    """From the origin if its start is on trial, else over all rows."""
    problem = Problem(
        *sparse_rows(np.random.default_rng(seed)), 5.0, loss=SmoothedHinge(1.0),
        fit_intercept=True, penalize_intercept=False,
    )  # fmt: skip
    solver = AtTheBounds()._with_settings(tried_iterations=tried)
    solution = solve(problem, solver, tol=1e-6, max_iter=500)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.relative_gap <= 1e-6
    assert (most_rows(solution) >= problem.n) == (tried == 0)


@pytest.mark.parametrize("seed", [2, 5])
def test_rows_with_a_squared_loss_are_never_fixed(seed):
    """They have no upper bound; the sample is solved so badly that many are missed."""
    X, y = sparse_rows(np.random.default_rng(seed), positive=0.5)
    problem = Problem(X, y, 0.01, loss=SquaredHinge())
    poor = {"sample_tol": 1e9, "least_near": 0.001, "most_near": 0.001}
    solver = InteriorPoint()._with_settings(**poor)
    solution = solve(problem, solver, tol=1e-7, max_iter=500)
    assert solution.certificate.status is Status.CERTIFIED
    assert most_rows(solution) < problem.n


@pytest.mark.parametrize("free_bias", [False, True])
@pytest.mark.parametrize("seed", [3, 5, 10])
def test_a_sample_worse_than_the_origin_is_dropped(free_bias, seed):
    """The near rows of its solution lead nowhere if a few rows are huge."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((9000, 4))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(9000) > 0, 1, -1)
    X[rng.integers(9000, size=5)] *= 1e8
    problem = Problem(
        X, y, 1e4, loss=SmoothedHinge(10.0), fit_intercept=True,
        penalize_intercept=not free_bias,
    )  # fmt: skip
    solution = solve(problem, InteriorPoint(sample=600), tol=1e-3, max_iter=100)
    assert solution.certificate.status is Status.CERTIFIED


@pytest.mark.parametrize("positive", [0.001, 0.5])
@pytest.mark.parametrize("order", ["sorted by label", "as drawn"])
def test_few_positives_and_sorted_rows(positive, order):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20_000, 8)).astype(np.float32)
    score = X @ rng.standard_normal(8) + rng.standard_normal(20_000)
    y = np.where(score > np.quantile(score, 1 - positive), 1, -1)
    if order == "sorted by label":
        by_label = np.argsort(y, kind="stable")
        X, y = X[by_label], y[by_label]
    problem = Problem(X, y, 10.0)
    solution = solve(problem, InteriorPoint(sample=1000), tol=1e-5, max_iter=300)
    assert solution.certificate.status is Status.CERTIFIED


@every_loss
@pytest.mark.parametrize("free_bias", [False, True])
def test_rows_far_beyond_the_margin_are_no_support_vectors(loss, free_bias):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.5, 1, -1)
    X = rng.normal(size=(200, 3))
    X[:, 0] += 3.0 * y  # most rows are easy
    record, _ = LOSSES[loss]
    problem = Problem(
        X, y, 1.0, loss=record, fit_intercept=free_bias,
        penalize_intercept=not free_bias,
    )  # fmt: skip
    solution = solve(problem, InteriorPoint(), tol=1e-3)
    assert solution.certificate.status is Status.CERTIFIED
    easy = problem.margins(solution.w) > 2.0
    assert np.count_nonzero(easy) > 50
    assert not solution.alpha[easy].any()


# --- the loop's promises ---------------------------------------------------------


@pytest.mark.parametrize("d", [300, 2000])
def test_interrupted_within_an_iteration(d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, d)).astype(np.float32)
    y = np.where(X[:, 0] + rng.standard_normal(3000) > 0, 1, -1)
    problem, stop = Problem(X, y, 1.0), core.Stop()
    state = InteriorPoint().start(problem, core.Random(0), None)
    InteriorPoint().step(state, stop)
    before = state.inner.w, state.inner.alpha, state.epochs

    def interrupt():
        time.sleep(0.002)
        stop.request()

    thread = threading.Thread(target=interrupt)
    thread.start()
    while not stop.requested:
        before = state.inner.w, state.inner.alpha, state.epochs
        InteriorPoint().step(state, stop)
    thread.join()
    if state.epochs == before[2]:  # left in the middle: nothing has moved
        np.testing.assert_array_equal(state.inner.w, before[0])
        np.testing.assert_array_equal(state.inner.alpha, before[1])
    w, alpha = InteriorPoint().iterate(state)
    certificate = problem.prove(Claim(w, alpha)).certificate
    assert certificate.dual <= certificate.primal


@pytest.mark.long
def test_more_features_are_taken_if_so_told():
    X = sparse.csr_matrix(([1.0, 2.0], ([0, 3], [7, 2999])), shape=(5, 3000))
    problem = Problem(X, [1, -1, 1, -1, 1], 1.0)
    solution = solve(problem, InteriorPoint(max_features=3000), tol=1e-6)
    assert solution.certificate.certified


def test_what_float64_cannot_hold_ends_as_stalled():
    X = np.array([[1e120, 1.0], [-1e120, 1.0], [1.0, 1e120]])
    problem = Problem(X, [1, -1, 1], 1e60)
    solution = solve(problem, InteriorPoint(), tol=1e-6, max_iter=1000)
    certificate = solution.certificate
    assert certificate.epochs < 1000
    assert certificate.status in (Status.STALLED, Status.CERTIFIED)
    assert certificate.dual <= certificate.primal


# --- the cost model --------------------------------------------------------------


def test_predicted_and_counted_work_agree_roughly():
    problem, _ = large("hinge", False)
    product = problem.rows.stored + problem.n
    predicted = [predicted_work(problem, tol) for tol in (1e-2, 1e-3, 1e-6)]
    assert predicted == sorted(predicted)
    assert predicted[0] > 10 * product
    state = InteriorPoint().start(problem, core.Random(0), None)
    while state.gap > 1e-3 * state.dual:
        before = state.work
        InteriorPoint().step(state, core.Stop())
        assert state.work > before
    assert 0.2 < state.work / predicted[1] < 5.0


def test_a_sample_says_whether_any_rows_are_equal():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    assert equal_rows(Problem(X, y)) == (20_000, None)
    twice = np.concatenate([X, X])
    count, group = equal_rows(Problem(twice, np.concatenate([y, y])))
    assert count == 20_000
    np.testing.assert_array_equal(group[:20_000], group[20_000:])
