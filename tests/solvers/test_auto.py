"""`auto` chooses by counts, goes over to the other method, and says so."""

from __future__ import annotations

import logging
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dualgap import LinearSVC, core
from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import (
    DCD,
    Auto,
    InteriorPoint,
    SmoothingNewton,
    interior_point,
)
from dualgap.solvers.auto import (
    SETTINGS,
    active_share,
    choose,
    expected_cost,
    measured_cost,
    predicted_passes,
    remaining,
    settles,
    successor,
)
from dualgap.solvers.dcd import cost
from dualgap.solvers.smoothing_newton import predicted_work, squared_hinge_work
from dualgap.solvers.some_rows import factor_work, gram_work, plain_speed
from dualgap.training import solve

from .data import LOSSES, odd_rows


def noisy(n=4000, d=12, scale=3.0, seed=0):
    """Rows of unlike scales that no plane separates."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.geomspace(scale, 0.1, d)
    score = X @ rng.standard_normal(d) + rng.standard_normal(n)
    return X, np.where(score > 0.0, 1, -1)


def methods(solution):
    """The methods of the passes, in order, without repetition."""
    names = solution.history["solver"].tolist()
    return [name for k, name in enumerate(names) if names[k - 1 : k] != [name]]


@pytest.mark.parametrize(
    ("C", "expected"),
    [(1e-4, ["dcd"]), (1e4, ["newton"])],
    ids=["small C", "large C"],
)
def test_either_method_where_it_is_the_faster(C, expected):
    solution = solve(Problem(*noisy(), C), Auto(), tol=1e-4)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.solver == f"auto: {', '.join(expected)}"
    assert methods(solution) == expected


#: `dcd` begins whatever is predicted, or never.
DCD_FIRST = Auto()._with_settings(margin=math.inf, few_entries=0)
DCD_NEVER_FIRST = Auto()._with_settings(margin=0.0, few_entries=0)


def test_other_settings_change_one_record_only():
    assert DCD_FIRST.settings.margin == math.inf
    assert DCD_FIRST.settings.share == Auto().settings.share
    assert Auto().settings == SETTINGS
    assert repr(DCD_FIRST) == repr(Auto()) == "Auto()"


def test_the_plan_follows_from_counts():
    X, y = noisy()
    easy, hard = Problem(X, y, 1e-4), Problem(X, y, 1e4)
    for problem in (easy, hard):
        plan = choose(problem, 1e-4)
        other = successor(DCD(), problem)
        assert other == SmoothingNewton()
        costs = [predicted_passes(s, problem, 1e-4) for s in (DCD(), other)]
        if problem is easy:
            assert costs[0] < SETTINGS.margin * costs[1]
            assert (plan.solver, plan.passes) == (DCD(), costs[0])
            assert plan.successor_passes == costs[1]
        else:
            assert costs[0] >= SETTINGS.margin * costs[1]
            assert (plan.solver, plan.passes) == (other, costs[1])
            assert plan.successor_passes is None
        assert f"{plan.passes:.0f} passes over the data" in plan.reason
    assert choose(hard, 1e-4, warm_started=True).solver == DCD()
    # While its work is free, a fit aims at more digits than were asked for.
    middle = Problem(X, y, 0.01)
    assert choose(middle, 0.1).solver == DCD()
    assert choose(middle, 0.1, goal=1e-12).solver == SmoothingNewton()
    assert successor(SmoothingNewton(), hard) == InteriorPoint()
    assert successor(DCD(), Problem(X[:100], y[:100])) == InteriorPoint()


def test_newton_takes_over_where_dcd_turns_out_to_be_slow():
    problem = Problem(*noisy(), 1.0)
    solution, same = (solve(problem, DCD_FIRST, tol=1e-6) for _ in range(2))
    assert methods(solution) == ["dcd", "newton"]
    assert same.history["solver"].tolist() == solution.history["solver"].tolist()
    np.testing.assert_array_equal(same.w, solution.w)
    np.testing.assert_array_equal(same.alpha, solution.alpha)
    assert solution.certificate.relative_gap <= 1e-6
    history = solution.history
    epochs = history["epoch"]
    assert (np.diff(epochs) >= 0).all()
    assert (np.diff(history["updates"]) >= 0).all()
    assert not np.isnan(history["predicted"]).any()
    product = problem.rows.stored + problem.n
    expected = predicted_work(problem, 1e-6) / product
    first = history["predicted"][history["solver"] == "newton"][0]
    assert first == pytest.approx(expected)


def test_interior_point_takes_over_where_newton_turns_out_to_be_slow(monkeypatch):
    """Newton's method is slow because it hardly smooths less from step to step."""
    slow = replace(SmoothingNewton.settings, tau_divisor=1.001)
    monkeypatch.setattr(SmoothingNewton, "settings", slow)
    problem = Problem(*noisy(), 1.0)
    solution = solve(problem, DCD_NEVER_FIRST, tol=1e-6)
    assert methods(solution) == ["newton", "interior-point"]
    assert solution.certificate.relative_gap <= 1e-6
    spent = np.count_nonzero(solution.history["solver"] == "newton")
    assert SETTINGS.least_epochs <= spent < 1000
    assert not np.isnan(solution.history["predicted"]).any()


def few(n, d):
    """Return rows as :func:`noisy` does, distinct, with features of one scale."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + rng.standard_normal(n) > 0.0, 1, -1)


@pytest.mark.parametrize(
    ("n", "d", "expected"),
    [(200, 300, ["dcd"]), (230, 200, ["dcd"]), (900, 150, ["interior-point"])],
    ids=["n < d", "separable", "6 rows a feature"],
)
@pytest.mark.parametrize("C", [10.0, 1e4])
def test_few_rows_are_for_dcd_or_interior_point(n, d, expected, C):
    """The steps of Newton's method grow in number where rows are few."""
    problem = Problem(*few(n, d), C)
    solution = solve(problem, Auto(), tol=1e-4)
    assert solution.certificate.status is Status.CERTIFIED
    assert methods(solution) == expected
    if expected == ["interior-point"]:  # and in truth
        newton = solve(problem, SmoothingNewton(), tol=1e-4).certificate
        assert newton.dual <= solution.certificate.primal
        assert solution.certificate.dual <= newton.primal
        assert solution.certificate.epochs < newton.epochs / 2


def test_interior_point_follows_dcd_where_rows_are_few():
    problem = Problem(*few(900, 150), 1e4)
    solution = solve(problem, DCD_FIRST, tol=1e-4)
    assert methods(solution) == ["dcd", "interior-point"]
    assert solution.certificate.status is Status.CERTIFIED
    state = DCD_FIRST.start(problem, core.Random(0), None)
    state.tol = 1e-4
    DCD_FIRST.step(state, core.Stop())
    product = problem.rows.stored + problem.n
    work = interior_point.predicted_work(problem, 1e-4)
    assert state.other == pytest.approx(SETTINGS.interior_factor * work / product)


def test_products_of_dense_rows_are_fast_beside_blas():
    X, _ = few(600, 200)
    y = np.where(np.arange(600) % 2, 1, -1)
    dense, stored = Problem(X, y), Problem(sparse.csr_matrix(X), y)
    assert plain_speed(dense) > plain_speed(stored) == 1.0
    assert plain_speed(Problem(X[:, :10].copy(), y)) == 1.0
    assert factor_work(dense) > factor_work(stored)
    assert gram_work(dense) > gram_work(stored)


def test_many_features_are_for_dcd():
    rng = np.random.default_rng(0)
    X = sparse.random(300, 5000, 0.01, format="csr", random_state=1)
    y = rng.choice([-1, 1], 300)
    assert methods(solve(Problem(X, y, 1e3), Auto())) == ["dcd"]


def test_a_warm_start_serves_dcd_first():
    problem = Problem(*noisy(), 1e4)
    cold = solve(problem, Auto(), tol=1e-5)
    assert methods(cold) == ["newton"]
    again = solve(problem, Auto(), tol=1e-3, warm=cold.alpha)
    assert again.certificate.status is Status.CERTIFIED
    assert methods(again) in ([], ["dcd"], ["dcd", "newton"])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalized", [True, False])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_all_losses_and_biases(loss, penalized, C):
    X, y = noisy(n=1500, d=6)
    problem = Problem(
        X, y, C, loss=LOSSES[loss][0], fit_intercept=True, penalize_intercept=penalized
    )
    solution = solve(problem, Auto(), tol=1e-5)
    assert solution.certificate.status is Status.CERTIFIED
    reference = solve(problem, InteriorPoint(), tol=1e-8).certificate
    assert solution.certificate.primal >= reference.dual * (1 - 1e-12)
    assert solution.certificate.dual <= reference.primal * (1 + 1e-12)


@pytest.mark.parametrize("broken", [1, 2])
def test_a_method_that_breaks_down_hands_over(monkeypatch, broken):
    problem = Problem(*noisy(n=800, d=5), 0.1)

    def fails(self, state, stop):
        state.epochs += 1
        state.updates += 1
        state.dead = True

    for method in (SmoothingNewton, InteriorPoint)[:broken]:
        monkeypatch.setattr(method, "step", fails)
    solution = solve(problem, DCD_NEVER_FIRST, tol=1e-2)
    # Newton's method tries twice. The broken passes are on the account of who follows.
    names = ["newton", "interior-point", "dcd"]
    assert methods(solution) == names[: 1 + broken]
    assert solution.certificate.status is Status.CERTIFIED


@pytest.mark.parametrize("other", ["newton", "dcd"])
def test_another_method_goes_on_where_interior_point_breaks_down(monkeypatch, other):
    broken = []

    def fails(self, state, stop):
        broken.append(state)
        state.epochs += 1
        state.dead = True

    monkeypatch.setattr(InteriorPoint, "step", fails)
    if other == "dcd":
        monkeypatch.setattr(SmoothingNewton, "step", fails)
    solution = solve(Problem(*few(900, 150), 0.01), DCD_NEVER_FIRST, tol=1e-2)
    assert len(broken) == 1 + (other == "dcd")
    assert methods(solution)[-1] == other
    assert solution.certificate.status is Status.CERTIFIED


@pytest.mark.parametrize("case", ["no proof", "infinite objective"])
def test_other_methods_begin_where_dcd_has_no_finite_numbers(monkeypatch, case):
    def fails(self, state, stop):
        state.epochs += 1
        state.dual = math.nan if case == "no proof" else 0.0
        state.primal = math.inf

    monkeypatch.setattr(DCD, "step", fails)
    problem = Problem(*few(900, 150), 0.01)
    solution = solve(problem, Auto(), tol=1e-2)
    assert methods(solution) == ["interior-point"]
    assert solution.certificate.status is Status.CERTIFIED


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 4])
def test_columns_of_unlike_sizes_are_solved_by_a_method_that_can(dtype, classes):
    """Interior point breaks down here, and `dcd` would take millions of epochs."""
    rng = np.random.default_rng(3)
    X, _ = odd_rows(rng, 5, 3, 6.0, "")
    y = rng.permutation(np.arange(5) % classes)
    model = LinearSVC(C=1e3, loss="hinge", tol=1e-2, max_iter=2000)
    assert model.fit(X.astype(dtype), y).certificate_.certified


def test_one_line_says_why(caplog):
    X, y = noisy(n=12_000)
    with caplog.at_level(logging.INFO, logger="dualgap"):
        LinearSVC(C=1e4).fit(X, y)
    lines = [m for m in caplog.messages if m.startswith("auto: ")]
    assert len(lines) == 1
    assert "newton" in lines[0]
    assert "passes over the data" in lines[0]
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="dualgap"):
        LinearSVC(C=1e-4).fit(X, y)
    lines = [m for m in caplog.messages if m.startswith("auto: ")]
    assert len(lines) == 1
    assert lines[0].startswith("auto: dcd")


def test_remaining_follows_a_line_and_allows_for_harder_digits():
    trace = [(40.0 * k, -0.25 * k) for k in range(1, 17)]  # 160 a digit; at 1e-4 now
    assert remaining(trace, 1e-4) == pytest.approx(0.0, abs=1e-9)
    assert remaining(trace, 1e-3) == 0.0
    # A gap that falls slowly: the line says more than the usual growth.
    slow = [(k, -4.0 + 0.001 * (16 - k)) for k in range(1, 17)]  # 1000 a digit
    assert remaining(slow, 1e-5) == pytest.approx(1000.0 * 1.5)
    assert remaining(slow, 1e-6) == pytest.approx(2000.0 * 2.0)
    # One that falls quickly: what is usual counts.
    assert remaining(trace, 1e-5) == pytest.approx(640.0 * (4.6 / 2.6 - 1.0))
    assert remaining(trace, 1e-6) == pytest.approx(640.0 * (7.4 / 2.6 - 1.0))
    # Only the later half counts.
    assert remaining([(1.0, 5.0), (2.0, 5.0), *slow[4:]], 1e-6) < 4001.0
    assert remaining([(1.0, 0.0), (2.0, 0.0), (3.0, 0.0)], 1e-3) == math.inf
    assert remaining([(1.0, 0.0), (2.0, 1.0), (3.0, 2.0)], 1e-3) == math.inf
    assert remaining([], 1e-3) == math.inf
    assert remaining([(1.0, 0.0)], 1e-3) == math.inf


def test_a_large_class_around_the_origin_stays_active():
    rng = np.random.default_rng(0)
    n = 8000
    y = np.where(rng.random(n) < 0.05, 1, -1)
    X = rng.standard_normal((n, 5)) + 0.5 * (y > 0)[:, None]
    away = X - 4.0
    assert active_share(Problem(X, y)) == 1.0
    assert np.isclose(active_share(Problem(away, y)), 0.2, atol=0.05)
    free = Problem(X, y, fit_intercept=True, penalize_intercept=False)
    assert active_share(free) < 0.3  # the bias moves it
    even = np.where(rng.random(n) < 0.5, 1, -1)
    assert active_share(Problem(away, even)) == 1.0
    weight = np.where(y > 0, 19.0, 1.0)
    assert active_share(Problem(away, y, sample_weight=weight)) == 1.0
    # And in truth: where it is away, most of its duals are 0.
    support = [
        np.mean(solve(Problem(rows, y), InteriorPoint(), tol=1e-6).alpha > 0.0)
        for rows in (X, away)
    ]
    assert support[0] > 0.9
    assert support[1] < 0.3
    for rows in (X[:1], X[:2], away[y > 0]):
        assert 0.0 <= active_share(Problem(rows, np.ones(len(rows)))) <= 1.0


def test_expected_cost_grows_with_what_is_asked():
    X, y = noisy(n=200)
    costs = [expected_cost(Problem(X, y, C), 1e-3) for C in (1e-2, 1.0, 1e2)]
    assert costs == sorted(costs)
    digits = [expected_cost(Problem(X, y, 1.0), tol) for tol in (1e-1, 1e-3, 1e-6)]
    assert digits == sorted(digits)
    assert digits[0] < digits[-1]


def test_a_small_class_keeps_few_rows_active():
    X, y = noisy(n=200)
    rare = np.where(np.arange(200) < 5, 1, -1)
    away = X + 3.0
    assert expected_cost(Problem(away, rare, 1.0), 1e-3) < expected_cost(
        Problem(away, y, 1.0), 1e-3
    )


def test_dcd_is_given_its_share_before_it_is_judged():
    problem = Problem(*noisy(), 1.0)
    state = DCD_FIRST.start(problem, core.Random(0), None)
    state.tol = 1e-6
    while state.method == "dcd":
        other = state.other
        DCD_FIRST.step(state, core.Stop())
    assert isinstance(state.dcd[0], DCD)
    spent = cost(state.dcd[1]) / state.product
    last = cost(state.dcd[1]) / state.dcd[1].epochs / state.product
    share = SETTINGS.share * other
    assert share <= spent <= 2.0 * share + 2.0 * last  # the first look or the second


def test_equal_rows_are_found_before_anything_is_chosen():
    """If most rows are equal, the distinct rows decide the cost of Newton's method."""
    X, y = noisy(n=300)
    many = Problem(np.repeat(X, 100, axis=0), np.repeat(y, 100))
    some = Problem(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    per_row = [predicted_work(p, 1e-3) / p.n for p in (many, some)]
    assert per_row[0] < 0.5 * per_row[1]
    for problem in (many, some):
        solution = solve(problem, Auto(), tol=1e-7)
        best = solve(Problem(X, y, problem.n / 300.0), InteriorPoint(), tol=1e-9)
        assert solution.certificate.status is Status.CERTIFIED
        assert best.certificate.dual <= solution.certificate.primal
        assert solution.certificate.dual <= best.certificate.primal


def wide(noise, n=8000, d=200, seed=0):
    """Return dense rows of two classes, which overlap where there is much noise."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    X = rng.standard_normal(d) * y[:, None] + noise * rng.standard_normal((n, d))
    X *= np.geomspace(1.0, 0.05, d)
    return 3.0 * X / np.linalg.norm(X, axis=1)[:, None], y


def passes_of(solver, problem, tol):
    """Return the work of a solver until its gap is `tol`, in passes over the data."""
    state, stop = solver.start(problem, core.Random(0), None), core.Stop()
    state.tol, gap = tol, math.inf
    while gap > tol:
        solver.step(state, stop)
        primal, dual = solver.estimate(state)
        gap = (primal - dual) / dual if dual > 0.0 else math.inf
    work = cost(state) if isinstance(solver, DCD) else state.work
    return work / (problem.rows.stored + problem.n)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("noise", "C", "loss", "expected"),
    [
        (12.0, 1.0, "squared_hinge", ["dcd", "newton"]),
        (20.0, 1.0, "squared_hinge", ["dcd", "newton"]),
        (1.0, 1.0, "squared_hinge", ["dcd"]),
        (2.0, 1.0, "squared_hinge", ["dcd"]),
        (12.0, 0.01, "squared_hinge", ["dcd"]),
        (12.0, 1.0, "hinge", ["dcd"]),
        (12.0, 3.0, "squared_hinge", ["newton"]),
    ],
)
@pytest.mark.cases(7)
def test_wide_classes_that_overlap_are_for_newton(noise, C, loss, expected, seed):
    """`dcd` finds out in three epochs whether a plane nearly separates the classes."""
    problem = Problem(*wide(noise, seed=seed), C, loss=loss)
    solution = solve(problem, Auto(), tol=1e-3)
    assert methods(solution) == expected
    assert solution.certificate.status is Status.CERTIFIED
    reference = solve(problem, SmoothingNewton(), tol=1e-6).certificate
    assert solution.certificate.primal >= reference.dual
    assert solution.certificate.dual <= reference.primal
    if loss == "hinge":
        return
    tried = np.count_nonzero(solution.history["solver"] == "dcd")
    if expected == ["dcd", "newton"]:  # the epoch that changes over is Newton's
        assert tried == SETTINGS.least_epochs - 1
    work = [passes_of(s, problem, 1e-3) for s in (DCD(), SmoothingNewton())]
    assert (work[0] < work[1]) == (expected == ["dcd"])


@pytest.mark.parametrize("scale", [10.0, 100.0])
@pytest.mark.parametrize(("apart", "expected"), [(8.0, ["dcd"]), (1.0, ["newton"])])
def test_long_rows_of_classes_apart_are_for_dcd(scale, apart, expected):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(4000) < 0.5, 1, -1)
    X = rng.standard_normal((4000, 40)) + (apart / math.sqrt(40.0)) * y[:, None]
    problem = Problem(scale * X, y, loss="squared_hinge", fit_intercept=True)
    assert predicted_passes(DCD(), problem, 1e-3) > 10.0 * predicted_passes(
        SmoothingNewton(), problem, 1e-3
    )
    assert settles(problem) == (expected == ["dcd"])
    solution = solve(problem, Auto(), tol=1e-3)
    assert solution.certificate.certified
    assert methods(solution) == expected


def test_a_warm_start_is_not_judged_by_its_first_epochs():
    problem = Problem(*wide(12.0), 1.0, loss="squared_hinge")
    near = solve(problem, DCD(), tol=1e-2).alpha
    solution = solve(problem, Auto(), tol=1e-3, warm=near)
    assert methods(solution) == ["dcd"]
    assert solution.certificate.epochs > SETTINGS.least_epochs
    assert solution.certificate.status is Status.CERTIFIED


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("tol", [1e-2, 1e-3])
@pytest.mark.parametrize(
    "data",
    [lambda: wide(12.0), lambda: wide(1.0), lambda: wide(8.0, 12_000, 60), noisy],
    ids=["overlapping", "separable", "sampled", "narrow"],
)
def test_the_cost_of_newton_with_the_squared_hinge(data, C, tol):
    problem = Problem(*data(), C, loss="squared_hinge")
    product = problem.rows.stored + problem.n
    expected = squared_hinge_work(problem) / product
    counted = passes_of(SmoothingNewton(), problem, tol)
    assert counted / 3.0 <= expected <= 3.0 * counted


def test_the_measured_cost_grows_with_active_rows_and_digits():
    problem = Problem(*wide(12.0), 1.0, loss="squared_hinge")
    shares = [measured_cost(problem, 1e-3, share) for share in (0.1, 0.5, 1.0)]
    assert shares == sorted(shares)
    digits = [measured_cost(problem, tol, 0.5) for tol in (1e-2, 1e-4, 1e-6, 1e-8)]
    np.testing.assert_allclose(np.diff(digits, 2), 0.0, atol=1e-9)  # a linear rate
    assert digits[0] < digits[-1]
