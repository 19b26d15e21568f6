"""SGD-QN: its twin, its choice of skip and t0, its accuracy and certificates."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import core
from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers.dcd import DCD
from dualgap.solvers.papers.sgd_qn import SGDQN, default_skip
from dualgap.training import solve

from ...twins import sgd_qn
from ..data import (
    LOSSES,
    any_bench,
    bench_dual,
    bench_primal,
    close,
    make,
)

any_loss = pytest.mark.parametrize("loss", LOSSES)
both_updates = pytest.mark.parametrize("update", ["corrected", "2009"])


def twin_of(bench, skip, t0, update):
    return sgd_qn.SGDQN(
        bench.X, bench.y, bench.lam, bench.phi, bench.omega, skip, t0, update
    )


# --- step by step ----------------------------------------------------------------


@any_loss
@both_updates
@any_bench
@pytest.mark.parametrize(("skip", "t0"), [(1, 300.0), (7, 30.0)])
def test_row_by_row(case, layout, loss, update, skip, t0):
    bench = make(case, layout, loss)
    p, stop = bench.problem, core.Stop()
    twin = twin_of(bench, skip, t0, update)
    w, past, slope = np.zeros(p.width), np.zeros(p.width), np.zeros(bench.n)
    B = twin.B.copy()
    examples = p.examples(cost=p.omega)
    settings = core.SgdQnSettings(p.lambda_, update == "corrected", skip, t0, 0.25)
    state = core.SgdQnState(w, B, past, slope, 0.0, 2.0, skip, False)
    order, rng = np.arange(bench.n, dtype=np.uint32), core.Random(3)
    for _ in range(5):
        rng.shuffle(order)
        for i in order:
            twin.w, twin.B, twin.w_1 = w.copy(), B.copy(), past.copy()
            twin.unclear = 0
            errors, loss_before = twin.errors, twin.loss
            m = bench.y[i] * (bench.X[i] @ twin.w)
            mean = slope[i]
            found = core.sgd_qn_epoch(examples, settings, np.array([i]), state, stop)
            twin.visit(i)
            assert found.visited == 1
            assert state.t == twin.t
            assert (state.count, state.refresh) == (twin.count, twin.refresh)
            if update == "2009":
                assert state.r == twin.r
            if twin.unclear:
                continue
            assert found.updates == twin.errors - errors
            np.testing.assert_allclose(found.loss, twin.loss - loss_before, 1e-9, 1e-12)
            close(w, twin.w, 1e-8)
            close(B, twin.B, 1e-8)
            expected = mean + 0.25 * (bench.phi.slope(m) - mean)
            np.testing.assert_allclose(slope[i], expected, 1e-8, 1e-12)
            # Fenchel's inequality of the row, for the dual variable it had so far.
            share = bench.phi.value(m) + mean * m + bench.phi.conjugate(mean)
            np.testing.assert_allclose(found.gap, bench.omega[i] * share, 1e-8, 1e-9)
    assert twin.refreshes > 0  # B has learned something
    assert B.max() > 1.001 * B.min()


@both_updates
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("case", ["plain", "everything"])
def test_epochs(case, loss, update):
    """Whole passes: orders, counters across passes, the weighted mean of l'."""
    bench = make(case, loss=loss)
    solver, stop = SGDQN(update=update, skip=11, t0=200.0), core.Stop()
    state = solver.start(bench.problem, core.Random(9), None)
    twin = twin_of(bench, 11, 200.0, update)
    order, rng = np.arange(bench.n, dtype=np.uint32), core.Random(9)
    slopes, mean = [], np.zeros(bench.n)
    for epoch in range(1, 16):
        twin.w, twin.B, twin.w_1 = state.w.copy(), state.B.copy(), state.past.copy()
        twin.errors, twin.unclear = state.updates, 0
        solver.step(state, stop)
        rng.shuffle(order)
        np.testing.assert_array_equal(state.order, order)
        seen, margins, before = np.zeros(bench.n), np.zeros(bench.n), twin.loss
        for i in order:
            margins[i] = bench.y[i] * (bench.X[i] @ twin.w)
            seen[i] = bench.phi.slope(margins[i])
            twin.visit(i)
        if twin.unclear:
            break  # the mean is of all passes
        slopes.append(seen)
        w, alpha = solver.iterate(state)
        close(w, twin.w, 1e-8)
        conjugate = np.array([bench.phi.conjugate(b) for b in mean])
        shares = bench.phi.value(margins) + mean * margins + conjugate
        mean = np.average(slopes, axis=0, weights=np.arange(1, epoch + 1))
        close(alpha, bench.c * mean, 1e-8)
        P, D = solver.estimate(state)
        running = 0.5 * twin.w @ twin.w + bench.mean_cost * (twin.loss - before)
        np.testing.assert_allclose(P, running, 1e-8)
        np.testing.assert_allclose(P - D, bench.c @ shares, 1e-8)
        assert (state.epochs, state.visited) == (epoch, epoch * bench.n)
        assert state.updates == twin.errors
    assert len(slopes) > 7


@any_loss
@both_updates
@pytest.mark.parametrize("case", ["plain", "everything"])
def test_t0_is_the_best_on_a_sample(case, loss, update):
    bench = make(case, loss=loss, n=300)
    solver = SGDQN(update=update)
    state = solver.start(bench.problem, core.Random(5), None)
    sample, rng = np.arange(bench.n, dtype=np.uint32), core.Random(5)
    rng.shuffle(sample)
    paper = bench.X, bench.y, bench.lam, bench.phi, bench.omega
    costs = sgd_qn.costs_by_t0(*paper, sample, state.skip, update)
    assert costs[state.t0] <= (1 + 1e-10) * np.nanmin(list(costs.values()))
    assert (state.w == 0).all()
    assert (state.t, state.epochs, state.visited) == (0, 0, 0)


def test_t0_is_chosen_on_a_tenth_of_many_rows():
    bench = make(n=12_000, d=3)
    seen = []

    class Spy(SGDQN):
        def _best_t0(self, problem, rng, block, sample):
            seen.append(sample.copy())
            return 1e4

    assert Spy().start(bench.problem, core.Random(0), None).t0 == 1e4
    assert len(seen[0]) == len(set(seen[0])) == 1200


def test_t0_grows_with_the_rows():
    """Beyond 1e10 it goes on for as long as that helps."""
    X = 1e8 * make().X
    state = SGDQN().start(Problem(X, make().y, 1.0), core.Random(0), None)
    assert 1e14 < state.t0 < 1e24


def test_skip_costs_as_much_as_16_rows():
    assert default_skip(make().problem) == 16
    sparse = make(layout="csr-f8-i4-i4")
    density = np.count_nonzero(sparse.X) / sparse.X.size
    assert default_skip(sparse.problem) == round(16 / density)
    bias = make("intercept", layout="csr-f8-i4-i4")
    density = np.count_nonzero(bias.X) / bias.X.size
    assert default_skip(bias.problem) == round(16 / density)


# --- accuracy and certificates ---------------------------------------------------


@any_loss
@both_updates
@pytest.mark.parametrize("case", ["plain", "everything"])
def test_accuracy(case, loss, update):
    bench = make(case, loss=loss, n=120, d=8, C=0.5)
    reference = solve(bench.problem, DCD(), tol=1e-9, max_iter=100_000)
    assert reference.certificate.status is Status.CERTIFIED
    solution = solve(bench.problem, SGDQN(update=update), tol=1e-2, max_iter=3000)
    assert solution.certificate.status is Status.CERTIFIED
    P = bench_primal(bench, solution.w)
    D = bench_dual(bench, solution.alpha)
    assert P - D <= 1.0001e-2 * D
    assert P <= (1 + 1e-2) * reference.certificate.primal
    assert D <= reference.certificate.primal


# --- the rest --------------------------------------------------------------------


def test_a_step_out_of_range_is_reported():
    """A first step that is far too long diverges; the fit says so and stays finite."""
    problem = make(loss="squared_hinge", C=100.0).problem
    solution = solve(problem, SGDQN(update="2009", t0=1e-300), max_iter=50)
    assert solution.certificate.status is Status.STALLED
    assert np.isfinite(solution.w).all()
    assert (solution.alpha <= problem.upper).all()
