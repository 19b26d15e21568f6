"""Every solver against its paper in plain NumPy, after every row and every epoch."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.papers.twins import sdca, sgd
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD, NORMA, SDCA, SGDQN, Pegasos, SGDm, SGDr, SGDs, SvmSGD

from ..twins import dcd, svmsgd, watched
from ..twins.random import Random
from .data import CASES, LOSSES, any_bench, bench_dual, close, make

pytestmark = pytest.mark.cases(8)

EPOCHS = 20
# Every case once, in layouts that differ.
mixed_bench = pytest.mark.parametrize(
    ("case", "layout"),
    [
        ("plain", "dense-f8"),
        ("intercept", "csr-f8-i4-i4"),
        ("weights", "dense-f4"),
        ("zero rows", "csr-f4-i8-i8"),
        ("everything", "csr-f4-i4-i8"),
        ("weights and zero rows", "csr-f8-i8-i4"),
    ],
)
any_loss = pytest.mark.parametrize("loss", LOSSES)


def orders(n, epochs, seed, kind="permutation"):
    rng, order = core.Random(seed), np.arange(n, dtype=np.uint32)
    for epoch in range(epochs):
        if kind == "permutation" or (kind == "fixed" and epoch == 0):
            rng.shuffle(order)
        elif kind == "random":
            rng.draw(order, n)
        yield order.copy()


def one_by_one(order, size=1):
    return [order[s : s + size] for s in range(0, len(order), size)]


# Two programs round differently, and where two numbers are all but equal, rounding
# says which is larger. So a twin is put where the core is before every step, and its
# decisions are compared where they are clear: not within this of their threshold.
TIE = 1e-11


@pytest.mark.parametrize(
    ("solver", "kind"),
    [
        (SDCA(), "permutation"),
        (SDCA(order="random"), "random"),
        (SDCA(order="cyclic"), "cyclic"),
        (SGDs(), "permutation"),
        (SGDs(order="fixed"), "fixed"),
        (SGDm(), "permutation"),
        (SGDm(order="cyclic"), "cyclic"),
        (SGDr(), "random"),
        (Pegasos(), "permutation"),
        (Pegasos(sampling="random"), "random"),
        (NORMA(), "permutation"),
        (SvmSGD(initial_step=1.0), "permutation"),
        (SvmSGD(initial_step=1.0, order="fixed"), "fixed"),
        (SGDQN(t0=100.0), "permutation"),
        (SGDQN(t0=100.0, order="fixed"), "fixed"),
        (SGDQN(t0=100.0, order="cyclic"), "cyclic"),
    ],
)
def test_orders_are_the_generators(solver, kind):
    bench, stop = make(), core.Stop()
    state = begin(solver, bench.problem, seed=13)
    for order in orders(bench.n, 4, 13, kind):
        solver.step(state, stop)
        np.testing.assert_array_equal(state.order, order)
        assert (sorted(order) == list(range(bench.n))) == (kind != "random")


@pytest.mark.parametrize("solver", [SGDs, SGDm, SvmSGD, SGDQN])
def test_one_fixed_permutation_needs_the_rows_in_memory(solver):
    assert solver().streams
    assert not solver(order="fixed").streams


def begin(solver, problem, seed):
    return solver.start(problem, core.Random(seed), None)


# --- dual coordinate ascent ------------------------------------------------------


class DualKernel:
    """The arrays of dcd_epoch and sdca_epoch, from zero."""

    def __init__(self, bench):
        self.problem, self.stop = bench.problem, core.Stop()
        self.alpha = np.zeros(bench.n)
        self.w = np.zeros(bench.problem.width)

    def records(self):
        return self.problem.examples(), core.DualState(self.alpha, self.w)

    def sdca(self, order):
        examples, state = self.records()
        return core.sdca_epoch(examples, order, state, None, self.stop)

    def modified_sgd(self, order):
        examples, state = self.records()
        return core.modified_sgd_epoch(
            examples, order, state, 0, self.problem.n, self.stop
        )

    def dcd(self, order, active, upper=np.inf, lower=-np.inf):
        examples, state = self.records()
        return core.dcd_epoch(examples, order, active, state, upper, lower, self.stop)


def dcd_twin(bench):
    return dcd.DCD(
        bench.X, bench.y, bench.phi.box(bench.c), bench.phi.diagonal(bench.c)
    )


@any_loss
@any_bench
def test_dcd_row_by_row(case, layout, loss):
    bench = make(case, layout, loss)
    kernel, twin = DualKernel(bench), dcd_twin(bench)
    shrunk = 0
    for order in orders(bench.n, 6, seed=1):
        bounds = twin.M_bar, twin.m_bar
        gradients = []
        for i in order:
            twin.a, twin.w, twin.closest = kernel.alpha.copy(), kernel.w.copy(), np.inf
            before, m = kernel.alpha[i], bench.y[i] * (bench.X[i] @ twin.w)
            share = bench.c[i] * bench.phi.value(m) + twin.a[i] * (m - 1)
            share += 0.5 * twin.D[i] * twin.a[i] ** 2
            found = kernel.dcd(np.array([i]), 1, *bounds)
            visited, updates, active = found.visited, found.updates, found.active
            largest, smallest = found.max_gradient, found.min_gradient
            np.testing.assert_allclose(found.gap, share, 1e-10, 1e-12)
            PG = twin.visit(i)
            assert visited == 1
            assert updates == (kernel.alpha[i] != before)
            if twin.closest < TIE:
                continue
            assert active == (PG is not None)
            if PG is None:
                shrunk += 1
                assert (largest, smallest) == (-np.inf, np.inf)
            else:
                gradients.append(PG)
                np.testing.assert_allclose([largest, smallest], PG, 1e-10, 1e-12)
            close(kernel.alpha, twin.a)
            close(kernel.w, twin.w)
        M, m = max(gradients), min(gradients)
        twin.M_bar = M if M > 0 else np.inf
        twin.m_bar = m if m < 0 else -np.inf
    assert shrunk > 0


@any_loss
@mixed_bench
@pytest.mark.parametrize("shrinking", ["hsieh", "none"])
def test_dcd_epochs(case, layout, loss, shrinking):
    bench = make(case, layout, loss)
    twin, stop = dcd_twin(bench), core.Stop()
    solver = DCD(shrinking=shrinking)
    state = begin(solver, bench.problem, seed=2)
    rng, order = core.Random(2), np.arange(bench.n, dtype=np.uint32)
    visits, fewest, clear = 0, bench.n, 0
    for epoch in range(EPOCHS):
        if epoch == 12:
            solver.reject(state)
        active, eps = state.active, state.eps
        twin.M_bar, twin.m_bar = state.upper, state.lower
        if shrinking == "none" or epoch == 12:  # a refused check wakes all rows
            active, twin.M_bar, twin.m_bar = bench.n, np.inf, -np.inf
        visits += active
        order[:] = state.order
        rng.shuffle(order[:active])
        rows, everything = list(order[:active]), active == bench.n
        twin.a, twin.w, twin.closest = state.alpha.copy(), state.w.copy(), np.inf
        M, m = twin.epoch(rows)
        active = len(rows)
        fewest = min(fewest, active)
        solver.step(state, stop)

        assert state.visited == visits
        assert set(state.order) == set(range(bench.n))
        assert state.lower < 0 < state.upper
        # Signs of 0 are in doubt too, as extremes and as differences.
        if min(twin.closest, abs(M), abs(m), abs(M - m - eps)) < TIE:
            close(state.w, bench.X.T @ (state.alpha * bench.y))
            continue
        clear += 1
        close(state.alpha, twin.a)
        close(state.w, twin.w)
        np.testing.assert_array_equal(state.order[:active], rows)
        if active == 0 or M - m <= eps:  # the paper's test: all rows wake
            eps *= 0.1 if everything else 1.0
            active, twin.M_bar, twin.m_bar = bench.n, np.inf, -np.inf
        assert (state.active, state.eps) == (active, eps)
        bounds = [state.upper, state.lower]
        np.testing.assert_allclose(bounds, [twin.M_bar, twin.m_bar], 1e-10, TIE)
    assert clear > EPOCHS // 2
    assert (fewest < bench.n) == (shrinking == "hsieh")


def test_dcd_wakes_all_rows_when_none_is_left():
    bench, stop, solver = make(), core.Stop(), DCD(shrinking="hsieh")
    state = begin(solver, bench.problem, seed=0)
    # All margins are far above 1, and the previous pass saw gradients below 0.1.
    state.w[:] = np.linalg.lstsq(bench.X, 50.0 * bench.y, rcond=None)[0]
    outside = bench.y * (bench.X @ state.w) < 2.0
    state.order[:] = np.argsort(outside, kind="stable")
    state.active = np.count_nonzero(~outside)
    assert state.active > 5
    state.upper, state.lower = 0.1, -0.1
    solver.step(state, stop)
    assert state.visited > 0
    assert state.updates == 0
    assert (state.active, state.upper, state.lower) == (bench.n, np.inf, -np.inf)


def sleeping_twin(bench, **options):
    U, D = bench.phi.box(bench.c), bench.phi.diagonal(bench.c)
    return dcd.SleepingDCD(bench.X, bench.y, U, D, **options)


def follow(twin, state):
    """Put the twin where the core is."""
    twin.follow(state.alpha, state.w, state.wake, state.length, state.threshold)


def sleeps_as(state, twin):
    """Every row that was visited sleeps for as long as the twin says, or rounding."""
    np.testing.assert_array_equal(
        np.delete(state.wake, list(twin.lengths)),
        np.delete(twin.asleep, list(twin.lengths)),
    )
    for i, lengths in twin.lengths.items():
        assert state.wake[i] == state.length[i]
        assert state.length[i] in lengths


def test_chunks_are_shuffled_whole():
    """Text: n = 6000 rows of 2.5 entries and 2000 columns, chunks of 6 rows."""
    rng = np.random.default_rng(0)
    X = sparse.random(6000, 2500, 1e-3, "csr", random_state=rng)
    problem = Problem(X, rng.choice([-1, 1], 6000))
    solver, stop, random = DCD(acceleration="none"), core.Stop(), Random(3)
    state = begin(solver, problem, seed=3)
    assert state.chunk > 6
    twin = dcd.SleepingDCD(X.toarray(), problem.y, problem.upper, problem.delta)
    lengths = set()
    for _ in range(4):
        follow(twin, state)
        rows = twin.order(random, state.chunk)
        twin.epoch(rows)
        solver.step(state, stop)
        np.testing.assert_array_equal(state.order[: len(rows)], rows)
        close(state.alpha, twin.a)
        lengths.add(len(rows) // 1000)
    assert lengths >= {6}
    assert len(lengths) > 1


@any_loss
@mixed_bench
def test_sleeping_epochs(case, layout, loss):
    bench = make(case, layout, loss)
    twin, rng, stop = sleeping_twin(bench), Random(2), core.Stop()
    solver = DCD(shrinking="sleep")
    state = begin(solver, bench.problem, seed=2)
    visits, fewest = 0, bench.n
    for epoch in range(40):
        if epoch in (4, 30):  # a proof, while all rows sleep
            state.wake[:] = 3
            twin.asleep = [3] * bench.n
            bench.problem.prove(solver.claim(state))
            solver.reject(state)
            unclear = twin.prove()
            np.testing.assert_array_equal(
                np.delete(state.wake, unclear), np.delete(twin.asleep, unclear)
            )
            assert 0 < np.count_nonzero(state.wake) < bench.n
        follow(twin, state)
        rows = twin.order(rng)
        fewest = min(fewest, len(rows))
        visits += len(rows)
        gap, ghost = 0.0, deepcopy(twin)
        for i in rows:  # the share of every row when it is visited
            m = bench.y[i] * (bench.X[i] @ ghost.w)
            gap += bench.c[i] * bench.phi.value(m) + ghost.a[i] * (m - 1)
            gap += 0.5 * twin.D[i] * ghost.a[i] ** 2
            ghost.visit(i, np.inf)
        twin.epoch(rows)
        solver.step(state, stop)

        close(state.alpha, twin.a)
        close(state.w, twin.w)
        assert state.visited == visits
        np.testing.assert_array_equal(state.order[: len(rows)], rows)
        sleeps_as(state, twin)
        np.testing.assert_allclose(state.threshold, twin.threshold, 1e-8, 1e-12)
        D = bench_dual(bench, twin.a)
        np.testing.assert_allclose([state.dual, state.primal], [D, D + gap], 1e-10)
    assert max(state.length) > 1
    assert fewest < bench.n


@any_loss
@mixed_bench
def test_modified_sgd_is_the_first_pass_over_text(case, layout, loss):
    bench = make(case, layout, loss, n=60, d=25, C=0.02)
    twin = sleeping_twin(bench, modified_sgd=True)
    rng, stop, solver = Random(2), core.Stop(), DCD(acceleration="conjugate")
    state = begin(solver, bench.problem, seed=2)
    assert state.modified_sgd == (np.mean(bench.c * twin.Q) <= 0.15)
    state.modified_sgd = True
    for _ in range(6):
        follow(twin, state)
        rows = twin.order(rng)
        twin.epoch(rows)
        solver.step(state, stop)
        twin.omega = 1.3  # of the sweeps after that pass
        close(state.alpha, twin.a)
        close(state.w, twin.w)
        sleeps_as(state, twin)
        np.testing.assert_allclose(state.threshold, twin.threshold, 1e-8, 1e-12)
    warm = solver.start(bench.problem, core.Random(2), np.zeros(bench.n))
    assert not warm.modified_sgd


def follow_accelerator(twin, state):
    """Put the twin where the core is, with all it remembers between two sweeps."""
    follow(twin, state)
    accelerator = state.accelerator
    twin.mode, twin.sweeps = accelerator.mode.name.lower(), state.epochs
    twin.visited = state.last_visited
    twin.t, twin.steps, twin.calm = accelerator.t, accelerator.steps, accelerator.calm
    twin.last_dual, twin.past = accelerator.dual, []
    twin.end, twin.base = accelerator.alpha.copy(), accelerator.alpha.copy()
    if twin.mode == "conjugate":  # the oldest first
        ages = (accelerator.next, 1 - accelerator.next)
        twin.past = [
            accelerator.points[k].copy() for k in ages if accelerator.norms[k] > 0.0
        ]


def remembers_as(accelerator, twin):
    """Check that both keep the same for the step after two sweeps."""
    assert accelerator.mode.name.lower() == twin.mode
    if twin.mode == "momentum":
        close(accelerator.alpha, twin.end)
        assert accelerator.dual == pytest.approx(twin.last_dual, rel=1e-12)
        assert accelerator.t == pytest.approx(twin.t, rel=1e-12)
        assert (accelerator.steps, accelerator.calm) == (twin.steps, twin.calm)
    elif twin.mode == "conjugate":
        close(accelerator.alpha, twin.base)
        kept = [k for k in (1 - accelerator.next, accelerator.next)]
        kept = [k for k in kept if accelerator.norms[k] > 0.0]
        assert len(kept) == len(twin.past)
        size = np.sqrt(twin.base @ twin.K @ twin.base)
        for k, p in zip(kept, twin.past[::-1], strict=True):
            # A difference of two points rounds as they do.
            close(twin.base + accelerator.points[k], twin.base + p, 1e-9)
            norms = np.sqrt([accelerator.norms[k], p @ twin.K @ p])
            assert abs(norms[0] - norms[1]) <= 1e-9 * size


@any_loss
@mixed_bench
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_conjugate_sweeps(case, layout, loss, C):
    """Every step from the point where the core is; ties may go either way."""
    bench = make(case, layout, loss, n=60, d=25, C=C)
    problem, rng, stop = bench.problem, Random(2), core.Stop()
    U, D = bench.phi.box(bench.c), bench.phi.diagonal(bench.c)
    plain = 8 if problem.cost.mean() * problem.q.mean() >= 4 else 18
    twin = dcd.ConjugateDCD(bench.X, bench.y, U, D, plain)
    solver = DCD(acceleration="conjugate")._with_settings(repair_every=24)
    state = begin(solver, problem, seed=2)
    clear, pairs = Counter(), 0
    for epoch in range(60):
        follow_accelerator(twin, state)
        if epoch % 24 == 23:  # w is repaired
            twin.forget()
        elif epoch > 0:
            twin.between()
        solver.step(state, stop)
        np.testing.assert_allclose(state.dual, twin.dual(state.alpha), 1e-10)
        close(state.w, bench.X.T @ (state.alpha * bench.y), 1e-9)
        if twin.closest >= TIE:
            clear[twin.mode] += 1
            pairs += len(twin.past) == 2
            remembers_as(state.accelerator, twin)
            rows = twin.order(rng)
            np.testing.assert_array_equal(state.order[: len(rows)], rows)
            twin.sweep(rows)
            close(state.alpha, twin.a, 1e-9)
            close(state.w, twin.w, 1e-9)
            sleeps_as(state, twin)
        else:
            rng.s = list(state.rng.state)
        if problem.certify(alpha=state.alpha).relative_gap < 1e-5:
            break  # from here on there are ties only
    if C == 30.0:
        assert min(clear[mode] for mode in ("plain", "momentum", "conjugate")) > 1
        assert pairs > 0


def sdca_twin(bench):
    return watched.SDCA(bench.X, bench.y, bench.lam, bench.phi, bench.omega)


def on_our_scale(bench, a):
    """The paper's a_i carries y_i and lies in [0, omega_i]; ours in [0, c_i]."""
    return bench.mean_cost * bench.y * a


@any_loss
@any_bench
def test_sdca_row_by_row(case, layout, loss):
    bench = make(case, layout, loss)
    kernel, twin = DualKernel(bench), sdca_twin(bench)
    for order in orders(bench.n, 2, seed=3):
        for i in order:
            before = kernel.alpha[i]
            share = bench.mean_cost * twin.gap_share(i)
            found = kernel.sdca(np.array([i]))
            twin.visit(i)
            assert found.visited == 1
            assert found.updates == (kernel.alpha[i] != before)
            np.testing.assert_allclose(found.gap, share, 1e-10, 1e-12)
            close(kernel.alpha, on_our_scale(bench, twin.a))
            close(kernel.w, twin.w)


@any_loss
@any_bench
def test_modified_sgd_row_by_row(case, layout, loss):
    bench = make(case, layout, loss)
    (order,) = orders(bench.n, 1, seed=4)
    twin = sdca_twin(bench)
    for t, _ in enumerate(twin.modified_sgd(order), start=1):
        kernel = DualKernel(bench)
        found = kernel.modified_sgd(order[:t])
        assert found.visited == t
        assert found.updates == np.count_nonzero(kernel.alpha)
        close(kernel.alpha, on_our_scale(bench, twin.a))
        close(kernel.w, twin.w)


@any_loss
@mixed_bench
@pytest.mark.parametrize("init", ["zero", "sgd"])
@pytest.mark.parametrize("kind", ["permutation", "random", "cyclic"])
def test_sdca_epochs(case, layout, loss, kind, init):
    bench = make(case, layout, loss)
    twin, stop = sdca_twin(bench), core.Stop()
    solver = SDCA(order=kind, init=init)
    state = begin(solver, bench.problem, seed=5)
    for epoch in range(EPOCHS):
        solver.step(state, stop)
        if init == "sgd" and epoch == 0:
            assert sorted(state.order) == list(range(bench.n))
            for _ in twin.modified_sgd(state.order):
                pass
        else:
            for i in state.order:
                twin.visit(i)
        close(state.alpha, on_our_scale(bench, twin.a))
        close(state.w, twin.w)
        assert state.visited == (epoch + 1) * bench.n
        w, alpha = solver.iterate(state)
        assert w is None
        close(alpha, on_our_scale(bench, twin.a))


@any_loss
@pytest.mark.parametrize("kind", ["permutation", "random", "cyclic"])
@pytest.mark.parametrize("case", CASES)
def test_sdca_average(case, loss, kind):
    """The mean of a^(t-1) over T0 < t <= T; T0 is the last power of two below T."""
    bench = make(case, loss=loss)
    twin, stop = sdca_twin(bench), core.Stop()
    solver = SDCA(order=kind, output="average")
    state = begin(solver, bench.problem, seed=6)
    for epoch in range(1, EPOCHS + 1):
        solver.step(state, stop)
        for i in state.order:
            twin.visit(i)
        T0 = 0 if epoch == 1 else 2 ** int(np.log2(epoch - 1))
        _, alpha = solver.iterate(state)
        close(alpha, on_our_scale(bench, twin.average(T0 * bench.n)))


@any_loss
def test_sdca_random_output_is_an_iterate_of_the_window(loss):
    bench = make("everything", loss=loss)
    stop = core.Stop()
    solver = SDCA(output="random")
    for seed in range(5):
        state = begin(solver, bench.problem, seed)
        twin = sdca_twin(bench)
        for epoch in range(1, 8):
            solver.step(state, stop)
            for i in state.order:
                twin.visit(i)
            T0 = 0 if epoch == 1 else 2 ** int(np.log2(epoch - 1))
            path = on_our_scale(bench, np.array([*twin.past, twin.a]))
            window = path[T0 * bench.n + 1 :]  # a^(t), T0 < t <= T
            _, alpha = solver.iterate(state)
            nearest = np.abs(window - alpha).max(axis=1).min()
            assert nearest <= 1e-10 * np.abs(alpha).max()


def test_sdca_random_output_is_uniform_over_the_window():
    bench = make(n=8, C=1.0)
    stop = core.Stop()
    solver = SDCA(order="cyclic", output="random")
    twin = sdca_twin(bench)
    for _ in range(4):
        for i in range(bench.n):
            twin.visit(i)
    path = on_our_scale(bench, np.array([*twin.past, twin.a]))
    window = path[2 * bench.n + 1 :]
    distinct = np.unique(window.round(12), axis=0, return_inverse=True)[1].ravel()
    counts = np.zeros(distinct.max() + 1)
    runs = 4000
    for seed in range(runs):
        state = begin(solver, bench.problem, seed)
        for _ in range(4):
            solver.step(state, stop)
        _, alpha = solver.iterate(state)
        counts[distinct[np.abs(window - alpha).max(axis=1).argmin()]] += 1
    expected = np.bincount(distinct) * runs / len(window)
    deviation = (counts - expected) / np.sqrt(expected)
    assert len(counts) > 5
    assert np.abs(deviation).max() < 4.0


@any_loss
def test_closed_forms_maximise_the_one_row_dual(loss):
    """The twin's own table of closed forms against a fine grid."""
    phi = LOSSES[loss][1]
    rng = np.random.default_rng(7)
    for _ in range(200):
        omega, q, s = rng.uniform(0.1, 3), rng.exponential(), rng.normal()
        y = rng.choice([-1.0, 1.0])
        a = y * omega * rng.random()
        found = y * (a + sdca.delta(phi, omega, y, s, q, a))
        limit = np.inf if loss == "squared_hinge" else omega
        assert abs(found - np.clip(found, 0.0, limit)) < 1e-14
        values = [
            watched.one_row_dual(phi, omega, y, s, q, a, b)
            for b in [np.clip(found, 0.0, limit), *np.linspace(0, 5, 501) * omega]
        ]
        assert np.isfinite(values[:100]).all()
        assert values[0] >= max(values) - 1e-12


# --- SGD-r, SGD-s, SGD-m ---------------------------------------------------------


def sgd_twin(bench):
    return watched.SGD(bench.X, bench.y, bench.mean_cost, bench.omega)


@any_bench
@pytest.mark.parametrize("times", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("C", [0.01, 0.3, 10.0])
def test_counting_sgd_row_by_row(case, layout, C, times):
    """Proposition 3's number of errors against presenting the row again and again."""
    bench = make(case, layout, C=C)
    p, stop = bench.problem, core.Stop()
    twin = sgd_twin(bench)
    a, errors = np.zeros(p.width), np.zeros(bench.n, np.int64)
    examples, state = p.examples(cost=p.omega), core.CountingState(a, errors, 0.0, 0.0)
    partly = 0
    for order in orders(bench.n, 2, seed=8):
        for k in order:
            twin.a, twin.I, twin.unclear = a.copy(), errors.copy(), 0
            before, M, loss = twin.I[k], twin.M, twin.loss
            found = core.counting_sgd_epoch(
                examples, p.lambda_, times, np.array([k]), state, stop
            )
            twin.visit(k, times)
            assert found.visited == 1
            assert state.t == twin.t
            if twin.unclear:
                continue
            assert found.updates == twin.I[k] - before
            partly += 0 < found.updates < times
            np.testing.assert_array_equal(errors, twin.I)
            np.testing.assert_allclose(
                [found.weighted, found.loss],
                [twin.M - M, twin.loss - loss],
                1e-10,
                1e-10,
            )
            close(a, twin.a)
            np.testing.assert_allclose(state.norm, twin.a @ twin.a, 1e-10)
    assert partly > 0 or times == 1  # the formula was put to work


def test_proposition_3_from_any_state():
    """Rows shorter and longer than lambda, from just before to just after an error."""
    bench = make("everything", C=0.02)
    p, stop, rng = bench.problem, core.Stop(), np.random.default_rng(0)
    examples, partly = p.examples(cost=p.omega), {False: 0, True: 0}
    for _ in range(3000):
        k, times = rng.integers(bench.n), int(rng.integers(1, 9))
        twin = sgd_twin(bench)
        twin.t = int(rng.integers(1, 1000))
        twin.a = rng.normal(size=p.width)
        size = twin.Y[k] @ twin.Y[k]
        if size > 0:  # a.y = lambda (t + something in -2..times)
            wanted = twin.lam * (twin.t + rng.uniform(-2, times))
            twin.a += (wanted - twin.a @ twin.Y[k]) / size * twin.Y[k]
        a, errors = twin.a.copy(), np.zeros(bench.n, np.int64)
        state = core.CountingState(a, errors, float(twin.t), twin.a @ twin.a)
        order = np.array([k], np.uint32)
        updates = core.counting_sgd_epoch(
            examples, p.lambda_, times, order, state, stop
        ).updates
        twin.visit(k, times)
        assert state.t == twin.t
        if twin.unclear:
            continue
        assert updates == twin.I[k] == errors[k]
        close(a, twin.a)
        np.testing.assert_allclose(state.norm, twin.a @ twin.a, 1e-10)
        partly[bool(bench.omega[k] * size < twin.lam)] += 0 < updates < times
    assert min(partly.values()) > 200


@mixed_bench
@pytest.mark.parametrize("solver", [SGDs(), SGDm(), SGDr()], ids=lambda s: s.name)
def test_counting_sgd_epochs(case, layout, solver):
    bench = make(case, layout)
    twin, stop, clear = sgd_twin(bench), core.Stop(), 0
    state = begin(solver, bench.problem, seed=9)
    for T in range(1, EPOCHS + 1):
        times = sgd.multiplicity(T) if solver.name == "sgd-m" else 1
        twin.a, twin.I, twin.unclear = state.a.copy(), state.errors.copy(), 0
        twin.M = bench.omega @ twin.I
        solver.step(state, stop)
        twin.epoch(state.order, times)
        if twin.unclear:
            continue
        clear += 1

        close(state.a, twin.a)
        np.testing.assert_array_equal(state.errors, twin.I)
        assert state.t == twin.t
        assert state.updates == twin.I.sum()
        np.testing.assert_allclose(state.total_errors, twin.M, 1e-12)
        w, alpha = solver.iterate(state)
        close(w, twin.w)
        close(alpha, np.minimum(twin.duals, bench.c))
        primal, dual = solver.estimate(state)
        np.testing.assert_allclose([primal, dual], [twin.J, twin.L], 1e-10)
    assert clear > EPOCHS // 2


def test_sgd_m_presents_in_the_epochs_of_the_paper():
    assert [SGDm().multiplicity(T) for T in range(1, 21)] == [
        *(5, 5, 5, 5, 1, 1, 1, 1, 1),
        *(5, 5, 5, 5, 1, 1, 1, 1, 1),
        *(5, 5),
    ]
    solver = SGDm(repeats=3, period=4, run=2)
    assert [solver.multiplicity(T) for T in range(1, 9)] == [3, 1, 1, 1, 3, 1, 1, 1]


# --- Pegasos, NORMA, SvmSGD ------------------------------------------------------


class GradientKernel:
    """The arrays of stochastic_gradient_epoch, from zero."""

    def __init__(self, bench, schedule, eta0=0.0, batch=1, project=False):
        self.problem, self.stop = bench.problem, core.Stop()
        self.examples = bench.problem.examples(cost=bench.problem.omega)
        self.settings = core.GradientSettings(
            bench.problem.lambda_, schedule, eta0, batch, project
        )
        self.v, self.beta = np.zeros(bench.problem.width), np.zeros(bench.n)
        self.scale, self.norm, self.t = 1.0, 0.0, 0.0

    def run(self, order):
        state = core.GradientState(self.v, self.beta, self.scale, self.norm, self.t)
        found = core.stochastic_gradient_epoch(
            self.examples, self.settings, order, state, self.stop
        )
        self.scale, self.norm, self.t = state.scale, state.norm, state.t
        return found.visited, found.updates, found.loss


def follows(bench, kernel, twin, epochs, batch=1, kind="permutation", seed=10):
    """Kernel and twin, side by side after every step."""
    for order in orders(bench.n, epochs, seed, kind):
        for A in one_by_one(order, batch):
            twin.w, twin.b = kernel.scale * kernel.v, kernel.scale * kernel.beta
            before, loss, twin.unclear = twin.errors, twin.loss, 0
            visited, updates, seen = kernel.run(A)
            twin.step(A)
            assert visited == len(A)
            assert kernel.t == twin.t
            if twin.unclear:
                continue
            assert updates == twin.errors - before
            np.testing.assert_allclose(seen, twin.loss - loss, 1e-10, 1e-10)
            close(kernel.scale * kernel.v, twin.w)
            close(kernel.scale * kernel.beta, twin.b)
            np.testing.assert_allclose(kernel.norm, twin.w @ twin.w, 1e-10, 1e-14)


def paper(bench):
    return bench.X, bench.y, bench.lam, bench.phi, bench.omega


def gradient_twin(solver, bench, eta0):
    if solver.name == "pegasos":
        return watched.Pegasos(*paper(bench), solver.projection)
    if solver.name == "norma":
        return watched.NORMA(*paper(bench), solver.p)
    return svmsgd.SvmSGD(*paper(bench), eta0)


STEPS = [
    *(
        Pegasos(batch_size=k, projection=project)
        for k in (1, 7, 40)
        for project in (False, True)
    ),
    *(NORMA(p=p) for p in (0.7071, 1.0)),
    # With the last one, 1 - eta_0 lambda < 0 meets w = 0 alone; later ones are shorter.
    *(SvmSGD(initial_step=eta0) for eta0 in (0.02, 1.0, 200.0)),
]


@pytest.mark.cases(24)
@any_bench
@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        (solver, loss)
        for solver in STEPS
        for loss in solver.losses
        if loss != "squared_hinge" or solver.initial_step < 200.0
    ],
    ids=repr,
)
def test_gradient_steps(case, layout, loss, solver):
    bench, batch = make(case, layout, loss), getattr(solver, "batch_size", 1)
    eta0 = getattr(solver, "initial_step", getattr(solver, "p", 0.0))
    kernel = GradientKernel(
        bench, getattr(core.Schedule, solver.name), eta0, batch,
        getattr(solver, "projection", False),
    )  # fmt: skip
    twin = gradient_twin(solver, bench, eta0)
    follows(bench, kernel, twin, 2 if batch == 1 else 10, batch)


def test_a_scale_near_underflow_is_absorbed():
    """With p = 1, v absorbs the scale exp(-2 sqrt t) before it underflows."""
    bench = make("weights")
    kernel = GradientKernel(bench, core.Schedule.norma, 1.0)
    twin = watched.NORMA(*paper(bench), 1.0)
    p, stop = bench.problem, core.Stop()
    v, beta, r, r_beta = (np.zeros(k) for k in (p.width, bench.n) * 2)
    sums = core.SumOfSteps(r, r_beta, 0.0)
    examples, state = p.examples(cost=p.omega), core.GradientState(v, beta, sum=sums)
    settings = core.GradientSettings(p.lambda_, core.Schedule.norma, 1.0)
    total, total_b = np.zeros(p.width), np.zeros(bench.n)
    scales, absorbed = [], 0
    for order in orders(bench.n, 400, seed=14):
        kernel.run(order)
        scales.append(kernel.scale)
        before = state.scale
        core.stochastic_gradient_epoch(examples, settings, order, state, stop)
        absorbed += state.scale > before  # beside the sum of all steps
        for i in order:
            total, total_b = total + twin.w, total_b + twin.b
            twin.step([i])
        close(kernel.scale * kernel.v, twin.w)
        close(kernel.scale * kernel.beta, twin.b)
        close(sums.sigma * v + r, total)
        close(sums.sigma * beta + r_beta, total_b)
    assert min(scales) < 1e-80
    assert max(np.diff(scales)) > 0
    assert absorbed


GRADIENT = {
    "pegasos": Pegasos(),
    "pegasos k=7": Pegasos(batch_size=7),
    "pegasos k=n": Pegasos(batch_size=40),
    "pegasos random": Pegasos(sampling="random"),
    "pegasos random k=7 projected": Pegasos(
        sampling="random", batch_size=7, projection=True
    ),
    "pegasos projected": Pegasos(projection=True),
    "pegasos averaged": Pegasos(output="average"),
    "pegasos averaged k=7 projected": Pegasos(
        batch_size=7, projection=True, output="average"
    ),
    "norma": NORMA(),
    "norma p=1": NORMA(p=1.0),
    "svmsgd": SvmSGD(),
    "svmsgd eta0": SvmSGD(initial_step=0.1),
}


@any_loss
@mixed_bench
@pytest.mark.parametrize("name", GRADIENT)
def test_gradient_epochs(case, layout, loss, name):
    solver = GRADIENT[name]
    if loss not in solver.losses:
        with pytest.raises(ValueError, match="loss"):
            solver.check(make(case, layout, loss).problem)
        return
    bench, stop = make(case, layout, loss), core.Stop()
    state = begin(solver, bench.problem, seed=11)
    twin = gradient_twin(solver, bench, state.eta0)
    batch, clear = getattr(solver, "batch_size", 1), 0
    for epoch in range(1, EPOCHS + 1):
        twin.w, twin.b = state.scale * state.v, state.scale * state.beta
        twin.errors, twin.loss, twin.unclear = state.updates, 0.0, 0
        solver.step(state, stop)
        for A in one_by_one(state.order, batch):
            twin.step(A)
        assert state.t == twin.t
        assert state.visited == epoch * bench.n
        if twin.unclear:
            break  # the mean is of all steps
        clear += 1
        close(state.scale * state.v, twin.w)
        close(state.scale * state.beta, twin.b)
        assert state.updates == twin.errors
        w, alpha = solver.iterate(state)
        if getattr(solver, "output", "last") == "average":
            mean_w, mean_b = twin.average()
        else:
            mean_w, mean_b = twin.w, twin.b
        close(w, mean_w)
        close(alpha, np.clip(mean_b, 0.0, bench.phi.box(bench.c)))
        primal, _ = solver.estimate(state)
        expected = 0.5 * twin.w @ twin.w + bench.mean_cost * twin.loss
        np.testing.assert_allclose(primal, expected, 1e-10)
    assert clear > EPOCHS // 2


@any_loss
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("C", [0.001, 0.3, 100.0])
def test_svmsgd_chooses_eta0_by_doubling_and_halving(case, loss, C):
    bench = make(case, loss=loss, C=C)
    seen = 0
    for seed in range(3):
        (order,) = orders(bench.n, 1, seed)
        best, clear = svmsgd.best_eta0(*paper(bench), order)
        found = SvmSGD().eta0(bench.problem, core.Random(seed))
        assert found == best or not clear
        seen += clear
    assert seen > 0


@pytest.mark.parametrize("large", [999, 1000])
def test_svmsgd_chooses_eta0_on_a_thousand_rows(large):
    """A large row decides the step: the last of the sample, or the one after it."""
    (order,) = orders(1200, 1, 0)
    bench = make(n=1200, d=4, C=0.01)
    X = bench.X.copy()
    X[order[large]] = 300.0
    best = [
        svmsgd.best_eta0(X, *paper(bench)[1:], order[:size])
        for size in (large, 1000, large + 1)
    ]
    assert all(clear for _, clear in best)
    assert best[0] != best[2]
    problem = Problem(X, bench.y, 0.01)
    assert SvmSGD().eta0(problem, core.Random(0)) == best[1][0]


# --- a pass is its rows ----------------------------------------------------------


@any_loss
@any_bench
def test_a_pass_is_its_rows_bit_for_bit(case, layout, loss):
    """Looking ahead in the order changes no number."""
    bench = make(case, layout, loss)
    (order,) = orders(bench.n, 1, seed=12)
    whole, parts = DualKernel(bench), DualKernel(bench)
    updates = whole.sdca(order).updates
    assert updates == sum(parts.sdca(A).updates for A in one_by_one(order))
    np.testing.assert_array_equal(whole.alpha, parts.alpha)
    np.testing.assert_array_equal(whole.w, parts.w)

    whole, parts = (GradientKernel(bench, core.Schedule.svmsgd, 0.1) for _ in range(2))
    _, updates, _ = whole.run(order)
    assert updates == sum(parts.run(A)[1] for A in one_by_one(order))
    np.testing.assert_array_equal(whole.v, parts.v)
    np.testing.assert_array_equal(whole.beta, parts.beta)
