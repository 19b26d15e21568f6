"""Newton's method on a smoothed loss: against its twin, and certificates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.blas import algebra
from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD, InteriorPoint, SmoothingNewton
from dualgap.solvers import smoothing_newton as module
from dualgap.solvers.some_rows import draw_sample
from dualgap.training import solve

from .. import qp
from ..twins import smoothing_newton as twin
from .data import LOSSES, close, make, some_rows, with_bias

every_loss = pytest.mark.parametrize("loss", LOSSES)


def inner(problem, chosen, *fixed, threads=1, offset=None):
    return core.SmoothingNewton(
        some_rows(problem, chosen, *fixed, offset=offset),
        problem.core_loss,
        problem.free_bias,
        core.Team(threads),
        algebra()[0],
    )


def made(n=2000, d=12, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    return X, np.where(score > 0, 1, -1)


# --- a step ----------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("case", ["plain", "everything"])
@pytest.mark.parametrize("free_bias", [False, True])
@pytest.mark.parametrize("layout", ["dense-f8", "dense-f4", "csr-f8-i8-i8"])
@pytest.mark.parametrize("moved", [False, True])
def test_twin(loss, case, free_bias, layout, moved):
    bench, X, problem = with_bias(case, layout, loss, free_bias)
    used = np.flatnonzero(problem.cost > 0)
    squared = loss == "squared_hinge"
    offset = 0.3 * np.cos(np.arange(len(used))) if moved else np.zeros(len(used))
    given = offset if moved else None
    ours, stop = inner(problem, used, offset=given), core.Stop()
    assert ours.start(np.zeros(problem.width), 1.5, stop)
    theirs = twin.SmoothingNewton(
        X[used] * bench.y[used, None], problem.cost[used],
        problem.loss.slope, problem.loss.curvature, np.zeros(problem.width),
        0.0 if squared else 1.5, free_bias, offset,
    )  # fmt: skip
    close(ours.alpha, theirs.alpha, 1e-12)
    for k in range(12):
        limit = 0.05 if k == 3 else np.inf
        assert ours.iterate(limit, stop) == 0
        step = theirs.iterate(limit)
        assert step <= limit * (1 + 1e-12)
        if step > 1e-9:  # not at the minimiser yet
            np.testing.assert_allclose(ours.moved, step, 1e-6)
        close(ours.w, theirs.w, 1e-8)
        close(ours.alpha, theirs.alpha, 1e-7)
        if k % 3 == 2:
            assert ours.smooth(0.5 * ours.tau, stop)
            theirs.tau *= 0.5
    assert ours.primal - ours.dual < (0.2 if moved else 0.1) * ours.primal
    u, c = 1.0 + offset - (X[used] @ ours.w) * bench.y[used], problem.cost[used]
    tail = ours.w[: problem.d] if free_bias else ours.w
    P = 0.5 * tail @ tail + c @ [problem.core_loss.value(x) for x in u]
    np.testing.assert_allclose(ours.primal, P, 1e-9)


@every_loss
def test_the_gap_is_the_residual_and_what_smoothing_costs(loss):
    bench = make("weights", n=80, loss=loss, C=0.3)
    problem, stop = bench.problem, core.Stop()
    used = np.flatnonzero(problem.cost > 0)
    run = inner(problem, used)
    assert run.start(np.zeros(problem.width), 0.7, stop)
    for _ in range(5):
        assert run.iterate(np.inf, stop) == 0
        alpha = np.zeros(problem.n)
        alpha[used] = run.alpha
        np.testing.assert_allclose(run.primal, problem.primal(run.w), 1e-12)
        np.testing.assert_allclose(run.dual, problem.dual(alpha), 1e-12)
        np.testing.assert_allclose(run.margins, problem.margins(run.w)[used], 1e-10)
        r = problem.combine(alpha) - run.w
        np.testing.assert_allclose(
            run.primal - run.dual, run.smoothing + 0.5 * r @ r, 1e-9
        )
        # Chapelle's bound, for any loss.
        most = float(problem.cost.sum()) * run.tau / 8
        assert -1e-12 <= run.smoothing <= most * (1 + 1e-9) + 1e-12
    if loss == "hinge":
        u = 1 - run.margins
        part = np.abs(u) * (0.5 - np.abs(u) / run.tau) * (np.abs(u) < run.tau / 2)
        np.testing.assert_allclose(run.smoothing, problem.cost[used] @ part, 1e-9)


def test_frozen_rows_are_linear_terms():
    bench = make("weights", n=80, loss="hinge", C=0.3)
    problem, stop = bench.problem, core.Stop()
    used = np.flatnonzero(problem.cost > 0)
    whole = inner(problem, used)
    assert whole.start(np.zeros(problem.width), 0.2, stop)
    for _ in range(20):
        whole.iterate(np.inf, stop)
    between = (whole.alpha > 0) & (whole.alpha < problem.cost[used])
    assert between.any()
    assert not between.all()
    full = np.zeros(problem.n)
    full[used] = np.where(between, 0.0, whole.alpha)
    some = inner(
        problem, used[between], problem.combine(full), problem.dual_value(full, 0.0)
    )
    assert some.start(whole.w, 0.2, stop)
    np.testing.assert_allclose([some.primal, some.dual], [whole.primal, whole.dual])
    assert some.iterate(np.inf, stop) == 0
    close(some.w, whole.w, 1e-10)


def test_a_step_that_is_told_to_leave_moves_nothing():
    X, y = made(40_000)
    problem, stop = Problem(X, y, 1.0), core.Stop()
    run = inner(problem, np.arange(len(y)))
    assert run.start(np.zeros(problem.width), 1.0, stop)
    w = run.w
    stop.request()
    assert run.iterate(np.inf, stop) == 1
    np.testing.assert_array_equal(run.w, w)


@every_loss
@pytest.mark.parametrize("whole", [False, True])
def test_a_run_is_its_steps_one_after_another(loss, whole):
    bench = make("weights", n=80, loss=loss, C=0.3)
    problem, stop = bench.problem, core.Stop()
    used, rules = np.flatnonzero(problem.cost > 0), SmoothingNewton.settings.rules
    once, step_by_step = inner(problem, used), inner(problem, used)
    for run in (once, step_by_step):
        assert run.start(np.zeros(problem.width), 1.5, stop)
    made = once.run(1e-3, whole, np.inf, 40, rules, stop)
    assert made.outcome == 0
    assert not made.far
    assert made.steps > 1
    parts = [step_by_step.run(1e-3, whole, np.inf, 1, rules, stop)]
    while len(parts) < made.steps:
        parts.append(step_by_step.run(1e-3, whole, np.inf, 1, rules, stop))
    assert made.sharpened == sum(part.sharpened for part in parts)
    assert made.inside == sum(part.inside for part in parts)
    np.testing.assert_array_equal(once.w, step_by_step.w)
    np.testing.assert_array_equal(once.alpha, step_by_step.alpha)
    if whole:
        assert once.primal - once.dual <= 1e-3 * once.primal


def test_a_run_stays_within_its_radius():
    problem, stop = Problem(*made(500), 1.0), core.Stop()
    run, rules = inner(problem, np.arange(500)), SmoothingNewton.settings.rules
    assert run.start(np.zeros(problem.width), 1.5, stop)
    assert run.run(1e-9, True, 1e-3, 100, rules, stop).far
    assert np.linalg.norm(run.w) <= 1e-3 * (1 + 1e-12)


# --- samples ---------------------------------------------------------------------


@pytest.mark.parametrize("heavy", [False, True])
def test_a_sample_stands_for_all_rows(heavy):
    rng = np.random.default_rng(0)
    n, m = 20_000, 2000
    y = np.where(rng.random(n) < 0.03, 1, -1).astype(np.int8)
    cost = rng.exponential(size=n) if heavy else np.full(n, 0.3)
    cost[rng.random(n) < 0.2] = 0.0
    if heavy:
        cost[7] = 50.0
    totals = []
    for seed in range(30):
        members, costs = draw_sample(y, cost, m, core.Random(seed))
        assert (np.diff(members.astype(np.int64)) > 0).all()
        assert (cost[members] > 0).all()
        assert (costs > 0).all()
        assert 0.5 * m < len(members) <= 1.2 * m
        assert np.count_nonzero(y[members] == 1) >= m // 20
        totals.append([costs[y[members] == label].sum() for label in (1, -1)])
        if heavy:
            assert 7 in members
    exact = [cost[y == label].sum() for label in (1, -1)]
    np.testing.assert_allclose(np.mean(totals, axis=0), exact, 0.02)


# --- fits ------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("free_bias", [False, True])
def test_the_optimum_of_a_general_solver(loss, C, free_bias):
    bench = make("weights", n=90, d=6, loss=loss)
    problem = Problem(
        bench.X, bench.y, C, loss=LOSSES[loss][0], sample_weight=bench.c,
        fit_intercept=free_bias, penalize_intercept=not free_bias,
    )  # fmt: skip
    found = solve(problem, SmoothingNewton(), tol=1e-7).certificate
    assert found.status is Status.CERTIFIED
    if free_bias:  # what the general solver does not know
        best = solve(problem, InteriorPoint(), tol=1e-9).certificate
        lower, upper = best.dual, best.primal
    else:
        Z = bench.X.astype(np.float64) * bench.y[:, None]
        phi = LOSSES[loss][0]
        best = qp.optimum(Z, problem.cost, phi.curvature, bool(np.isfinite(phi.slope)))
        lower, upper = best.lower, best.upper
    assert lower * (1 - 1e-9) <= found.primal <= upper * (1 + 1e-6)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-7])
@pytest.mark.parametrize("weighted", [False, True])
def test_samples_and_frozen_rows_lead_to_the_same_optimum(tol, weighted, monkeypatch):
    X, y = made(60_000, 8)
    weight = None
    if weighted:
        weight = np.random.default_rng(1).exponential(size=len(y))
        weight[::3] = 0.0
    problem = Problem(X, y, 1.0, sample_weight=weight)
    members = []
    rows_of = module.SmoothingNewtonState.rows

    def noted(state):
        members.append((len(state.members), state.everything, state.full.any()))
        return rows_of(state)

    monkeypatch.setattr(module.SmoothingNewtonState, "rows", noted)
    found = solve(problem, SmoothingNewton(), tol=tol).certificate
    assert found.status is Status.CERTIFIED
    best = solve(problem, InteriorPoint(), tol=1e-9).certificate
    assert best.dual <= found.primal <= best.primal * (1 + tol)
    used = int(np.count_nonzero(problem.cost))
    sizes = [n for n, whole, _ in members if not whole]
    assert len(sizes) == 2
    assert sizes == sorted(sizes)
    assert members[len(sizes)] == (used, True, False)
    if tol == 1e-7:  # steps grow small, and rows are frozen, some of them at U
        frozen = [(n, full) for n, whole, full in members if whole and n < used]
        assert frozen
        assert any(full for _, full in frozen)
        most = SmoothingNewton.settings.active_share * problem.n
        assert min(n for n, _ in frozen) <= most


def test_rows_are_unfrozen_where_w_goes_far(monkeypatch):
    """Too little room: rows are frozen and unfrozen again, and nothing is wrong."""
    X, y = made(20_000, 8)
    problem = Problem(X, y, 10.0)
    thawed = []
    begin = SmoothingNewton._begin

    def noted(self, state, stop):
        thawed.append(state.everything)
        return begin(self, state, stop)

    monkeypatch.setattr(SmoothingNewton, "_begin", noted)
    solver = SmoothingNewton()._with_settings(active_radius=0.03)
    found = solve(problem, solver, tol=1e-6).certificate
    assert found.status is Status.CERTIFIED
    assert any(thawed)
    best = solve(problem, InteriorPoint(), tol=1e-8).certificate
    assert best.dual <= found.primal <= best.primal * (1 + 1e-6)


@every_loss
@pytest.mark.parametrize("sparse_rows", [False, True])
def test_many_features(loss, sparse_rows):
    X, y = made(3000, 150)
    if sparse_rows:
        X[np.random.default_rng(2).random(X.shape) < 0.9] = 0.0
        X = sparse.csr_matrix(X)
    problem = Problem(X, y, 0.01, loss=LOSSES[loss][0])
    found = solve(problem, SmoothingNewton(), tol=1e-6).certificate
    other = solve(problem, DCD(), tol=1e-7, max_iter=10**5).certificate
    assert found.status is Status.CERTIFIED
    assert other.dual <= found.primal <= other.primal * (1 + 2e-6)


@pytest.mark.parametrize("epoch", [2, 14])
def test_a_fit_that_is_interrupted_keeps_its_model_and_a_proof(epoch):
    """While a sample is solved, and while all rows are."""
    X, y = made(40_000, 20)
    problem, names = Problem(X, y, 10.0), []
    solution = solve(
        problem, SmoothingNewton(), tol=1e-13,
        on_epoch=lambda info: names.append(info.epoch) or info.epoch == epoch,
    )  # fmt: skip
    certificate = solution.certificate
    assert certificate.status is Status.INTERRUPTED
    assert max(names) == epoch
    best = solve(problem, InteriorPoint(), tol=1e-9).certificate
    assert best.dual <= certificate.primal <= 2.0 * best.primal
    assert certificate.dual <= best.primal
    np.testing.assert_allclose(problem.primal(solution.w), certificate.primal, 1e-12)
