"""DCD in every mode against a generic solver, refusals, and the visiting orders."""

from __future__ import annotations

import functools
import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems.base import Claim
from dualgap.solvers import DCD
from dualgap.solvers.dcd import coherent
from dualgap.training import solve

from .. import qp
from ..twins import random
from .data import LOSSES

MODES = {
    "sleep": DCD(acceleration="none"),
    "hsieh": DCD(shrinking="hsieh"),
    "none": DCD(shrinking="none"),
    "conjugate": DCD(acceleration="conjugate"),
}
every_mode = pytest.mark.parametrize("mode", MODES)
every_loss = pytest.mark.parametrize("loss", LOSSES)


def rows(kind, rng):
    """Rows and labels; a name says what is odd about them."""
    n, d = {"one row": (1, 4), "one column": (30, 1), "wide": (12, 40)}.get(
        kind, (40, 6)
    )
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1, -1)
    if kind == "zero rows":
        X[::5] = 0.0
    elif kind == "duplicates":
        X[20:], y[20:] = X[:20], np.where(np.arange(20) % 3, y[:20], -y[:20])
    elif kind == "one class":
        y[:] = 1
    elif kind == "scales":
        X *= 10.0 ** rng.integers(-3, 4, n)[:, None]
    return X, y


KINDS = [
    "plain", "zero rows", "duplicates", "one class", "scales", "one row", "one column",
    "wide",
]  # fmt: skip


@functools.cache
def problem_and_optimum(kind, loss, C):
    rng = np.random.default_rng(len(kind))
    X, y = rows(kind, rng)
    record, _ = LOSSES[loss]
    weight = rng.uniform(0.1, 3.0, len(y))
    weight[1::7] = 0.0
    linear = not math.isinf(record.slope)
    problem = Problem(sparse.csr_matrix(X), y, C, loss=record, sample_weight=weight)
    return problem, qp.optimum(y[:, None] * X, problem.cost, record.curvature, linear)


@every_loss
@pytest.mark.parametrize("kind", KINDS)
@every_mode
def test_certificates_bracket_the_optimum(kind, loss, mode):
    for C in (1e-6, 0.1, 10.0, 1e6):
        problem, best = problem_and_optimum(kind, loss, C)
        below = 1e-11 * best.upper
        for tol, most in ((1e-2, 5000), (1e-6, 300)):
            solution = solve(problem, MODES[mode], tol=tol, max_iter=most)
            certificate, w, alpha = (
                solution.certificate, solution.w, solution.alpha,
            )  # fmt: skip
            assert certificate.primal >= best.lower - below
            assert certificate.dual <= best.upper + below
            assert (alpha >= 0.0).all()
            assert (alpha <= problem.upper).all()
            again = problem.certify(w, alpha)
            size = abs(best.upper) + 1e-300
            off = abs(problem.primal(w) - certificate.primal) - certificate.rounding
            assert off <= 1e-10 * max(certificate.primal, size)
            assert again.dual >= certificate.dual - 1e-10 * size
            assert certificate.certified == (certificate.relative_gap <= tol)
            if C <= 0.1 and kind != "scales":
                assert certificate.status is Status.CERTIFIED
            v = problem.combine(alpha)
            if mode == "conjugate":  # a multiple
                v *= (w @ v) / (v @ v) if v.any() else 0.0
            np.testing.assert_allclose(w, v, 0.0, 1e-9 * np.abs(w).max())


def text(n=3000, d=4000, row=12, seed=0):
    """Incoherent rows: few entries, frequent and rare columns, a noisy separator."""
    rng = np.random.default_rng(seed)
    columns = (rng.random((n, row)) ** 3 * d).astype(np.int32)
    X = sparse.csr_matrix(
        (rng.random(n * row), columns.ravel(), np.arange(0, n * row + 1, row)), (n, d)
    )
    X.sum_duplicates()
    score = X @ rng.standard_normal(d)
    return X, np.where(score + 0.5 * score.std() * rng.standard_normal(n) > 0, 1, -1)


@every_loss
@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_acceleration_takes_fewer_epochs_on_text(loss, C):
    X, y = text()
    record, _ = LOSSES[loss]
    problem = Problem(X, y, C, loss=record, fit_intercept=True)
    assert not coherent(problem)
    plain, fast = (
        solve(problem, DCD(acceleration=kind), tol=1e-5, max_iter=20_000)
        for kind in ("none", "auto")
    )
    for solution in (plain, fast):
        assert solution.certificate.status is Status.CERTIFIED
        assert problem.primal(solution.w) == pytest.approx(solution.certificate.primal)
    assert fast.certificate.primal >= plain.certificate.dual
    assert plain.certificate.primal >= fast.certificate.dual
    assert 1.5 * fast.certificate.epochs < plain.certificate.epochs
    np.testing.assert_allclose(
        plain.w, problem.combine(plain.alpha), 0, 1e-10 * np.abs(plain.w).max()
    )


def test_the_estimate_of_a_sweep_is_the_gap_at_its_end():
    """A sum over the visits during the sweep would be at least twice as large."""
    rng = np.random.default_rng(0)
    n, d = 4000, 4000
    X = sparse.random(n, d, density=0.02, format="csr", random_state=rng)
    X = X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1).A + 1e-9)).tocsr()
    y = np.where(X @ rng.standard_normal(d) > 0, 1, -1)
    for C in (1.0, 5.0):
        problem, solver, stop = Problem(X, y, C), DCD(), core.Stop()
        state = solver.start(problem, core.Random(0), None)
        assert state.accelerator is not None
        for epoch in range(6):
            solver.step(state, stop)
            gap = problem.certify(alpha=state.alpha).gap
            estimate = state.primal - state.dual
            if epoch > 0:
                assert gap > 1e-5 * state.dual
                assert 0.8 * gap <= estimate <= 2.2 * gap
                assert state.accelerator.gap > 1.3 * gap
        state.accelerator.gap = 1e-300  # a sweep that gains nothing: no better guess
        assert state.accelerator.estimate(1.0, 0.0) == 1.0
        assert state.accelerator.estimate(-1e-20, 0.0) <= 0.0


@every_loss
def test_the_dual_never_falls_by_a_conjugate_step(loss):
    X, y = text(800, 2500)
    record, _ = LOSSES[loss]
    problem = Problem(X, y, 30.0, loss=record)
    solver, stop = DCD(), core.Stop()
    state = solver.start(problem, core.Random(0), None)
    values, modes = [], []
    for _ in range(150):
        solver.step(state, stop)
        modes.append(state.accelerator.mode.name)
        values.append(problem.dual_value(state.alpha, core.squared_norm(state.w)))
        assert state.dual == pytest.approx(values[-1], rel=1e-12)
        if problem.certify(alpha=state.alpha).relative_gap < 1e-7:
            break  # from here on rounding decides
    assert len(values) < 150
    assert set(modes) >= {"PLAIN", "MOMENTUM", "CONJUGATE"}
    falls = np.diff(values) < -1e-13 * values[-1]
    begun = modes[:-1]  # the mode in which each step began
    assert not any(falls[i] for i in range(len(falls)) if begun[i] != "MOMENTUM")
    np.testing.assert_allclose(
        state.w, problem.combine(state.alpha), 0, 1e-9 * np.abs(state.w).max()
    )


def test_stopped_between_two_sweeps_the_state_is_whole():
    X, y = text(800, 2500)
    problem, solver = Problem(X, y, 30.0), DCD()
    for after in (5, 9, 12, 40):
        state = solver.start(problem, core.Random(0), None)
        stop = core.Stop()
        for _ in range(after):
            solver.step(state, stop)
        stop.request()
        solver.step(state, stop)
        assert (state.alpha >= 0.0).all()
        assert (state.alpha <= problem.upper).all()
        exact = problem.prove(Claim(*solver.iterate(state))).certificate
        assert state.dual == pytest.approx(exact.dual, rel=1e-10)


def test_what_cannot_be_accelerated_is_left_alone():
    X, y = text(300, 2500)
    free = Problem(X, y, fit_intercept=True, penalize_intercept=False)
    problem = Problem(X, y)
    assert DCD().accelerates(problem)
    assert not DCD().accelerates(free)
    assert not DCD(shrinking="hsieh").accelerates(problem)
    assert not DCD().accelerates(Problem(X[:, :50].toarray(), y))
    assert solve(free, DCD(), tol=1e-4).certificate.certified


def test_a_proof_wakes_the_rows_on_the_wrong_side():
    X = np.array([[1.5], [0.5], [0.5], [1.5], [1.0], [1.0]])
    alpha = np.array([0.0, 0.0, 0.5, 0.5, 0.2, 0.0])
    problem = Problem(X, np.ones(6), 0.5, loss="hinge", penalize_intercept=True)
    wake = np.full(6, 7, np.uint8)
    core.evaluate(problem.examples(), np.ones(1), "of w", alpha, None, wake=wake)
    # At 0 and beyond the margin or on it, or at C and short of it: no reason to look.
    assert wake.tolist() == [7, 0, 7, 0, 0, 7]


def test_rows_sleep_as_long_as_they_are_far_from_their_margin():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(2000) > 0, 1, -1)
    problem, solver, stop = Problem(X, y, 1.0), DCD(), core.Stop()
    state, longer = solver.start(problem, core.Random(0), None), False
    for epoch in range(8):
        before, slept = state.threshold, state.wake > 0
        length = state.length.copy()
        solver.step(state, stop)
        lay = (state.wake > 0) & ~slept  # visited, and firm
        if epoch == 0:
            assert np.isnan(before)
            assert 0 < np.count_nonzero(lay) < 0.9 * problem.n
            continue
        assert (state.length[lay] >= 2 * length[lay] + 1).all()
        longer |= bool((state.length[lay] > 2 * length[lay] + 1).any())
    assert longer
    solution = solve(problem, solver, tol=1e-6)
    assert solution.certificate.certified


def test_the_generator_is_xoshiro256plusplus():
    """The authors' first numbers for the state 1, 2, 3, 4, and for seed 0."""
    twin = random.Random(0)
    twin.s = [1, 2, 3, 4]
    assert [twin.next() for _ in range(4)] == [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
    ]
    assert next(random.splitmix64(0)) == 0xE220A8397B1DCDAF


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 5, 2**64 - 1])
@pytest.mark.parametrize("n", [1, 2, 3, 1000, 2**31 + 1, 3 * 2**30, 2**32 - 1])
def test_bounded_draws(seed, n):
    ours, twin = core.Random(seed), random.Random(seed)
    drawn = [ours.below(n) for _ in range(200)]
    assert drawn == [twin.below(n) for _ in range(200)]
    assert max(drawn) < n


def test_shuffles_and_draws():
    ours, twin = core.Random(7), random.Random(7)
    order, expected = np.arange(50, dtype=np.uint32), list(range(50))
    for _ in range(5):
        ours.shuffle(order)
        twin.shuffle(expected)
        assert order.tolist() == expected
    ours.draw(order, 37)
    assert order.tolist() == [twin.below(37) for _ in range(50)]
    nothing = np.zeros(0, dtype=np.uint32)
    ours.shuffle(nothing)
    ours.draw(nothing, 3)
    assert ours.below(1000) == twin.below(1000)


def test_every_permutation_is_as_likely():
    rng, counts, runs = core.Random(8), Counter(), 24_000
    for _ in range(runs):
        order = np.arange(4, dtype=np.uint32)
        rng.shuffle(order)
        counts[tuple(order.tolist())] += 1
    expected = runs / 24
    assert set(counts) == set(permutations(range(4)))
    chi2 = sum((count - expected) ** 2 / expected for count in counts.values())
    assert 5 < chi2 < 50  # 23 degrees of freedom


def test_every_row_is_as_likely():
    order = np.empty(70_000, dtype=np.uint32)
    core.Random(9).draw(order, 7)
    counts = np.bincount(order, minlength=7)
    assert 0.3 < ((counts - 10_000.0) ** 2 / 10_000).sum() < 25  # 6 degrees
