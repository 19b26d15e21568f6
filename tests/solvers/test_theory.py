"""Theorems of the papers about their solvers, and invariances of the solvers."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.certificate import Status
from dualgap.losses import Hinge, SmoothedHinge
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import (
    DCD,
    MPU,
    SDCA,
    SGDQN,
    SOLVERS,
    Auto,
    Pegasos,
    SGDm,
    SGDr,
    SGDs,
    SvmSGD,
    get_solver,
)
from dualgap.training import solve

from ..twins import dcd
from .data import LOSSES, bench_dual, bench_primal, close, draws, exact, make

pytestmark = pytest.mark.cases(14)

# Others run to the end themselves, or switch between methods.
NAMED = {
    name: get_solver(name)
    for name in SOLVERS
    if name not in ("auto", "cutting-plane", "ocas")
}
# Dual ascent: D never falls, and w belongs to alpha.
DUAL = {
    **{name: solver for name, solver in NAMED.items() if solver.dual},
    "dcd all rows": DCD(shrinking="none"),
    "dcd hsieh": DCD(shrinking="hsieh"),
    "sdca random": SDCA(order="random"),
    "sdca cyclic": SDCA(order="cyclic"),
    "sdca sgd start": SDCA(init="sgd"),
    "sdca random, sgd start": SDCA(order="random", init="sgd"),
}
RECORDS = {
    **DUAL,
    **NAMED,
    "dcd conjugate": DCD(acceleration="conjugate"),
    "sdca averaged": SDCA(output="average"),
    "sdca random output": SDCA(output="random"),
    "pegasos averaged": Pegasos(output="average"),
    "pegasos projected": Pegasos(projection=True),
    "pegasos k=10": Pegasos(batch_size=10),
    "pegasos drawn": Pegasos(sampling="random"),
    "mpu coarse": MPU(delta=0.5),
    "sgd-qn 2009": SGDQN(update="2009"),
}
PAIRS = [
    (name, loss)
    for name, solver in RECORDS.items()
    for loss in LOSSES
    if loss in solver.losses
]
both_cases = pytest.mark.parametrize("case", ["plain", "everything"])
every_pair = pytest.mark.parametrize(("name", "loss"), PAIRS)
exact_pair = pytest.mark.parametrize(
    ("name", "loss"), [*PAIRS, ("cutting-plane", "hinge"), ("ocas", "hinge")]
)
every_loss = pytest.mark.parametrize("loss", LOSSES)


def epochs(solver, problem, count, seed=0):
    """States after each of `count` passes."""
    state, stop = solver.start(problem, core.Random(seed), None), core.Stop()
    for _ in range(count):
        solver.step(state, stop)
        yield state


@functools.cache
def optimum(case, loss, **shape):
    """The problem and P*, found in NumPy by the twin of DCD to 1e-10."""
    bench = make(case, loss=loss, **shape)
    twin = dcd.DCD(
        bench.X, bench.y, bench.phi.box(bench.c), bench.phi.diagonal(bench.c)
    )
    rng = np.random.default_rng(0)
    for _ in range(200):
        for _ in range(10):
            twin.M_bar, twin.m_bar = np.inf, -np.inf
            twin.epoch(list(rng.permutation(bench.n)))
        P = bench_primal(bench, bench.X.T @ (twin.a * bench.y))
        if P - bench_dual(bench, twin.a) < 1e-10 * P:
            return bench, P
    raise AssertionError("the twin does not converge")


# --- dual ascent -----------------------------------------------------------------


@every_loss
@both_cases
@pytest.mark.parametrize("name", DUAL)
def test_the_dual_never_falls(name, case, loss):
    bench, solver = make(case, loss=loss, C=2.0), DUAL[name]
    values = []
    for state in epochs(solver, bench.problem, 40):
        values.append(bench_dual(bench, state.alpha))
        assert (state.alpha >= 0).all()
        assert (state.alpha <= bench.phi.box(bench.c)).all()
        close(state.w, bench.X.T @ (state.alpha * bench.y), 1e-12)
        np.testing.assert_allclose(solver.estimate(state)[1], values[-1], 1e-12)
    steps = np.diff(values)
    assert (steps >= -1e-13 * values[-1]).all()
    assert steps[0] > 0


@every_loss
@both_cases
@pytest.mark.parametrize("name", DUAL)
def test_at_the_optimum_the_estimate_is_exact(name, case, loss):
    bench, P = optimum(case, loss, n=60, C=0.3)
    solver = DUAL[name]
    *_, state = epochs(solver, bench.problem, 3000)
    value, bound = solver.estimate(state)
    np.testing.assert_allclose([value, bound], P, 1e-8)


@both_cases
def test_dcd_converges_linearly(case):
    """Theorem 1 of Hsieh et al.: the error falls by a factor in every pass."""
    bench, P = optimum(case, "smoothed_hinge", n=60, C=0.3)
    errors = [
        P - bench_dual(bench, state.alpha) for state in epochs(DCD(), bench.problem, 60)
    ]
    assert errors[39] < 1e-2 * errors[19] < 1e-4 * errors[0]


def unit_rows(loss, C, n, d=6):
    """Rows of norm 1, as the theorems of SDCA ask, and lambda = 1/(nC)."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) > 0, 1, -1)
    return Problem(X, y, C, loss=loss), 1.0 / (n * C)


@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_sdca_theorem_for_smooth_losses(gamma):
    """E gap <= eps after (n + 1/(lambda gamma)) log((n + 1/(lambda gamma))/eps)."""
    n, eps = 50, 1e-3
    problem, lam = unit_rows(SmoothedHinge(gamma), 0.5, n)
    work = n + 1 / (lam * gamma)
    passes = int(np.ceil(work * np.log(work / eps) / n))
    gaps = []
    for seed in range(10):
        *_, state = epochs(SDCA(order="random"), problem, passes, seed)
        gaps.append(lam * problem.certify(alpha=state.alpha).gap)
    assert np.mean(gaps) <= eps


def test_sdca_theorem_for_the_hinge():
    """E gap of the average <= eps after T0 + n + 4/(lambda eps) steps."""
    n, passes = 50, 256
    problem, lam = unit_rows(Hinge(), 1.0, n)
    T, T0 = passes * n, passes * n // 2
    eps = max(4 / (lam * (T - T0 - n)), 20 / (lam * (T0 - n - n * np.log(n))))
    assert eps < 0.2
    gaps = []
    for seed in range(10):
        solver = SDCA(order="random", output="average")
        *_, state = epochs(solver, problem, passes, seed)
        _, alpha = solver.iterate(state)
        gaps.append(lam * problem.certify(alpha=alpha).gap)
    assert np.mean(gaps) <= eps


@pytest.mark.parametrize("C", [0.001, 0.01, 0.1])
def test_modified_sgd_theorem(C):
    """One pass leaves a dual error of at most 2 log(e n)/(lambda n)."""
    n = 200
    problem, lam = unit_rows(Hinge(), C, n)
    best = solve(problem, DCD(), tol=1e-9, max_iter=10_000).certificate.dual
    errors = []
    for seed in range(10):
        (state,) = epochs(SDCA(init="sgd"), problem, 1, seed)
        errors.append(lam * (best - problem.dual(state.alpha)))
    assert np.mean(errors) <= 2 * np.log(np.e * n) / (lam * n)


# --- SGD-s, SGD-m ----------------------------------------------------------------


@both_cases
@pytest.mark.parametrize(
    "solver",
    [
        SGDs(),
        SGDs(order="fixed", check_factor=2.0),
        SGDm(order="cyclic"),
        SGDm(repeats=3, period=2, run=2),
    ],
)
@pytest.mark.parametrize("C", [0.02, 0.5, 3.0])
def test_counts_are_duals_after_whole_epochs(case, solver, C):
    """Proposition 2: a_k = c_k I_k/T is in the box, w_T = sum a_k y_k x_k."""
    bench, P = optimum(case, "hinge", n=60, d=12, C=C)
    R = (bench.omega * np.linalg.norm(bench.X, axis=1)).max()
    lam = bench.lam
    for state in epochs(solver, bench.problem, 30):
        T = state.t / bench.n
        alpha = bench.c * state.errors / T
        assert (state.errors <= T).all()
        w = state.a / (lam * state.t)
        close(w, bench.X.T @ (alpha * bench.y), 1e-12)
        M = bench.omega @ state.errors
        L = bench.mean_cost * M / T - 0.5 * w @ w
        np.testing.assert_allclose(L, bench_dual(bench, alpha), 1e-10)
        rounded = np.minimum(alpha, bench.c)
        close(rounded, alpha, 1e-15)
        np.testing.assert_allclose(bench.problem.dual(rounded), L, 1e-10)
        np.testing.assert_allclose(solver.estimate(state)[1], L, 1e-10)
        assert L <= P * (1 + 1e-12)
        ours_w, ours_alpha = solver.iterate(state)
        close(ours_w, w, 1e-12)
        close(ours_alpha, alpha, 1e-12)
        # Proposition 1.
        bound = np.sqrt((1 + (R * R / lam - 1) / state.t) / lam)
        assert np.linalg.norm(w) <= bound * (1 + 1e-12)


def test_sgd_r_counts_leave_the_box():
    """The certificate clips them, because the proposition is about whole passes."""
    bench = make(C=0.5)
    *_, state = epochs(SGDr(), bench.problem, 3)
    assert (state.errors > state.t / bench.n).any()
    _, alpha = SGDr().iterate(state)
    assert (alpha <= bench.c).all()


# --- Pegasos ---------------------------------------------------------------------


@both_cases
@pytest.mark.parametrize("batch", [1, 7, 60])
def test_projection_keeps_pegasos_in_the_ball(case, batch):
    bench = make(case, n=60)
    radius = 1.0 / np.sqrt(bench.lam)
    farthest = {}
    for project in (False, True):
        p, stop = bench.problem, core.Stop()
        v, beta = np.zeros(p.width), np.zeros(bench.n)
        examples, state = p.examples(cost=p.omega), core.GradientState(v, beta)
        settings = core.GradientSettings(
            p.lambda_, core.Schedule.pegasos, 0.0, batch, project
        )
        order, rng = np.arange(bench.n, dtype=np.uint32), core.Random(0)
        norms = []
        for _ in range(5):
            rng.shuffle(order)
            for s in range(0, bench.n, batch):
                core.stochastic_gradient_epoch(
                    examples, settings, order[s : s + batch], state, stop
                )
                norms.append(np.linalg.norm(state.scale * v))
        farthest[project] = max(norms)
    assert farthest[True] <= radius * (1 + 1e-12)
    assert farthest[False] > radius


@both_cases
@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge"])
def test_pegasos_on_all_rows_is_the_subgradient_method(case, loss):
    """w <- (1 - 1/t) w + 1/(lambda t n) sum_i omega_i slope_i y_i x_i: no chance."""
    bench = make(case, loss=loss)
    w = np.zeros(bench.X.shape[1])
    runs = [
        epochs(Pegasos(batch_size=bench.n), bench.problem, 30, seed) for seed in (1, 2)
    ]
    for t, (one, other) in enumerate(zip(*runs, strict=True), start=1):
        g = bench.omega * bench.phi.slope(bench.y * (bench.X @ w)) * bench.y
        w = (1 - 1 / t) * w + g @ bench.X / (bench.lam * t * bench.n)
        for state in (one, other):
            close(state.scale * state.v, w)
            assert state.t == t


@pytest.mark.parametrize("project", [False, True])
def test_pegasos_theorem(project):
    """The average is within c (1 + log T)/(2 lambda T) of the optimum.

    c = (sqrt(lambda) + R)^2 with the projection, 4 R^2 without (Corollary 1).
    """
    bench, P = optimum("plain", "hinge", n=60, C=0.3)
    lam, R = bench.lam, np.linalg.norm(bench.X, axis=1).max()
    c = (np.sqrt(lam) + R) ** 2 if project else 4 * R**2
    solver = Pegasos(projection=project, output="average", sampling="random")
    for passes in (1, 10, 100):
        T = passes * bench.n
        errors = []
        for seed in range(10):
            *_, state = epochs(solver, bench.problem, passes, seed)
            w, _ = solver.iterate(state)
            errors.append(lam * (bench_primal(bench, w) - P))
        assert min(errors) > 0
        assert np.mean(errors) <= c * (1 + np.log(T)) / (2 * lam * T)


# --- accuracy --------------------------------------------------------------------

# Relative accuracy after 1000 passes: dual methods converge linearly; SGD, Pegasos
# and svmsgd like 1/t up to a logarithm; NORMA like 1/sqrt(t).
REACHED = {
    **dict.fromkeys(DUAL, 1e-8),
    "dcd conjugate": 1e-8,
    "sdca averaged": 1e-8,
    "sdca random output": 1e-8,
    "mpu": 1e-8,
    "mpu coarse": 1e-8,
    "interior-point": 1e-8,
    "newton": 1e-8,
    "sgd-r": 2e-3,
    "pegasos averaged": 2e-3,
    "pegasos drawn": 2e-3,
    "norma": 2e-1,
}


@both_cases
@every_pair
def test_accuracy_of_the_theory(name, loss, case):
    bench, P = optimum(case, loss, n=120, d=8, C=0.5)
    solution = solve(bench.problem, RECORDS[name], tol=1e-12, max_iter=1000)
    error = bench_primal(bench, solution.w) - P
    assert -1e-10 * P <= error <= REACHED.get(name, 1e-3) * P


@both_cases
@every_pair
@pytest.mark.parametrize("passes", [1, 2, 20])
def test_every_certificate_brackets_the_optimum(name, loss, case, passes):
    bench, P = optimum(case, loss, n=60, C=0.3)
    solution = solve(bench.problem, RECORDS[name], tol=1e-12, max_iter=passes)
    certificate = solution.certificate
    np.testing.assert_allclose(
        [certificate.primal, certificate.dual],
        [bench_primal(bench, solution.w), bench_dual(bench, solution.alpha)],
        1e-10,
        1e-12,
    )
    assert certificate.dual <= P * (1 + 1e-10)
    assert certificate.primal >= P * (1 - 1e-10)
    assert (solution.alpha >= 0).all()
    assert (solution.alpha <= bench.phi.box(bench.c)).all()


class FreeAuto(Auto):
    """`auto` whose work beyond `tol` is free for longer."""

    free_work = 1e8


def test_auto_solves_to_rounding_while_work_is_free():
    bench = make("everything", n=60)
    shuffled = np.random.default_rng(0).permutation(bench.n)
    answers = [
        solve(
            Problem(bench.X[rows], bench.y[rows], sample_weight=bench.c[rows]),
            FreeAuto(),
            tol=0.1,
        )
        for rows in (np.arange(bench.n), shuffled)
    ]
    assert all(answer.certificate.relative_gap < 1e-11 for answer in answers)
    close(answers[0].w, answers[1].w, 1e-6)


# --- invariance ------------------------------------------------------------------


def answer(problem, name, seed=0, passes=7):
    solver = RECORDS.get(name) or get_solver(name)
    solution = solve(problem, solver, tol=1e-14, max_iter=passes, random_state=seed)
    return solution.w, solution.alpha


@every_pair
def test_same_seed_same_bits_in_indices_of_any_width(name, loss):
    bench = make("everything", "csr-f8-i4-i4", loss)
    first = answer(bench.problem, name, seed=5)
    for problem in (bench.problem, make("everything", "csr-f8-i4-i4", loss).problem):
        for ours, theirs in zip(answer(problem, name, seed=5), first, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    other = answer(bench.problem, name, seed=6)
    unmoved = not draws(RECORDS[name], bench.problem)
    assert np.array_equal(other[0], first[0]) == unmoved
    narrow = answer(exact("csr-f8-i4-i4", loss).problem, name)
    for layout in ("csr-f8-i8-i8", "csr-f8-i4-i8", "csr-f4-i8-i4"):
        wide = answer(exact(layout, loss).problem, name)
        for ours, theirs in zip(wide, narrow, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@exact_pair
def test_flipped_labels_flip_w(name, loss):
    bench = make("weights", loss=loss)
    w, alpha = answer(bench.problem, name)
    flipped_w, flipped_alpha = answer(
        bench.problem.with_labels(-bench.y, bench.c / bench.problem.C), name
    )
    np.testing.assert_array_equal(flipped_w, -w)
    np.testing.assert_array_equal(flipped_alpha, alpha)


@exact_pair
def test_scaled_features_scale_w(name, loss):
    """X times s with C over s^2 is the same problem for s w; powers of 2 are exact."""
    bench = make("zero rows", loss=loss, C=0.25)
    w, alpha = answer(bench.problem, name)
    scaled = Problem(4.0 * bench.X, bench.y, 0.25 / 16, loss=LOSSES[loss][0])
    if name == "svmsgd":  # its step has the scale of 1/x^2
        step = 0.1
        (w, alpha), (scaled_w, scaled_alpha) = (
            solver_answer(problem, SvmSGD(initial_step=step / factor))
            for problem, factor in ((bench.problem, 1), (scaled, 16))
        )
    else:
        scaled_w, scaled_alpha = answer(scaled, name)
    np.testing.assert_array_equal(4.0 * scaled_w, w)
    np.testing.assert_array_equal(16.0 * scaled_alpha, alpha)


def solver_answer(problem, solver):
    solution = solve(problem, solver, tol=1e-14, max_iter=7)
    return solution.w, solution.alpha


def tight(problem, solver):
    solution = solve(problem, solver, tol=1e-11, max_iter=100_000)
    assert solution.certificate.status is Status.CERTIFIED
    return solution.certificate.primal


@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge"])
def test_an_integer_weight_repeats_the_row_step_for_step(loss):
    """Pegasos on all rows takes the same steps on both."""
    bench = make(n=50, d=6)
    times = np.random.default_rng(1).integers(0, 4, size=bench.n)
    record = LOSSES[loss][0]
    weighted = Problem(bench.X, bench.y, 0.3, sample_weight=times, loss=record)
    repeated = Problem(
        np.repeat(bench.X, times, axis=0), np.repeat(bench.y, times), 0.3, loss=record
    )
    for one, other in zip(
        epochs(Pegasos(batch_size=weighted.n), weighted, 20),
        epochs(Pegasos(batch_size=repeated.n), repeated, 20),
        strict=True,
    ):
        close(one.scale * one.v, other.scale * other.v)


@every_loss
@pytest.mark.parametrize("solver", [DCD(), SDCA(), Auto()], ids=lambda s: s.name)
def test_optimum_does_not_depend_on_presentation(solver, loss):
    bench = make("everything", loss=loss)
    weight, record = bench.c / 0.3, LOSSES[loss][0]

    def objective(X, y, C, weight, **bias):
        problem = Problem(X, y, C, loss=record, sample_weight=weight, **bias)
        return tight(problem, solver)

    rng = np.random.default_rng(2)
    expected = objective(bench.X, bench.y, 0.3, weight)
    rows, columns = rng.permutation(bench.n), rng.permutation(bench.X.shape[1])
    rotation = np.linalg.qr(rng.normal(size=(len(columns), len(columns))))[0]
    used = weight > 0
    for X, y, C, w, scale in [
        (bench.X[rows], bench.y[rows], 0.3, weight[rows], 1.0),
        (bench.X[:, columns], bench.y, 0.3, weight, 1.0),
        (bench.X, -bench.y, 0.3, weight, 1.0),
        (-bench.X, bench.y, 0.3, weight, 1.0),
        (bench.X @ rotation, bench.y, 0.3, weight, 1.0),
        (3.0 * bench.X, bench.y, 0.3 / 9, weight, 9.0),
        (bench.X, bench.y, 0.6, weight / 2, 1.0),
        (bench.X[used], bench.y[used], 0.3, weight[used], 1.0),
        (sparse.csr_matrix(bench.X), bench.y, 0.3, weight, 1.0),
    ]:
        np.testing.assert_allclose(scale * objective(X, y, C, w), expected, 1e-9)
    times = rng.integers(0, 4, bench.n)  # a weight is a number of rows
    repeated = np.repeat(bench.X, times, axis=0), np.repeat(bench.y, times), 0.3, None
    for bias in (False, True):
        one = objective(bench.X, bench.y, 0.3, times, fit_intercept=bias)
        np.testing.assert_allclose(one, objective(*repeated, fit_intercept=bias), 1e-9)


# --- warm start ------------------------------------------------------------------

WARM = {name: solver for name, solver in RECORDS.items() if solver.dual}
warm_solvers = pytest.mark.parametrize("name", WARM)


@every_loss
@warm_solvers
def test_restart_at_the_optimum_certifies_at_once(name, loss, monkeypatch):
    bench = make("everything", loss=loss)
    first = solve(bench.problem, DCD(), tol=1e-7, max_iter=50_000)
    warm, told, proofs, prove = first.alpha.copy(), [], [], Problem.prove

    def counted(*arguments, **options):
        proofs.append(1)
        return prove(*arguments, **options)

    monkeypatch.setattr(Problem, "prove", counted)
    again = solve(bench.problem, WARM[name], tol=1e-6, warm=warm, on_epoch=told.append)
    assert (len(proofs), len(told), len(again.history)) == (1, 0, 0)
    np.testing.assert_array_equal(warm, first.alpha)
    assert again.certificate.status is Status.CERTIFIED
    assert (again.certificate.epochs, again.certificate.updates) == (0, 0)
    # Accelerated dcd may take a multiple of w whose P is smaller.
    scale = (again.w @ first.w) / (first.w @ first.w)
    np.testing.assert_allclose(again.w, scale * first.w, 1e-12)
    assert again.certificate.primal <= first.certificate.primal * (1.0 + 1e-12)
    np.testing.assert_array_equal(again.alpha, first.alpha)


@every_loss
@warm_solvers
def test_warm_duals_are_clipped_to_the_new_box(name, loss):
    bench = make("everything", loss=loss)
    rng = np.random.default_rng(3)
    warm = rng.normal(size=bench.n)
    given = warm.copy()
    solver = WARM[name]
    clipped = np.clip(warm, 0.0, bench.phi.box(bench.c))
    assert (clipped != warm).any()
    state = solver.start(
        bench.problem, core.Random(0), solver.check_warm(bench.problem, warm)
    )
    np.testing.assert_array_equal(state.alpha, clipped)
    close(state.w, bench.X.T @ (clipped * bench.y), 1e-12)
    solution = solve(bench.problem, solver, tol=1e-3, max_iter=5000, warm=warm)
    assert solution.certificate.status is Status.CERTIFIED
    np.testing.assert_array_equal(warm, given)


@warm_solvers
def test_a_warm_start_saves_passes(name):
    bench = make(n=200, C=1.0)
    first = solve(bench.problem, WARM[name], tol=1e-4, max_iter=20_000)
    near = Problem(bench.X, bench.y, 1.01)
    warm = solve(near, WARM[name], tol=1e-2, warm=first.alpha)
    cold = solve(near, WARM[name], tol=1e-2)
    if name != "auto":  # it goes on to rounding level
        assert warm.certificate.epochs < cold.certificate.epochs


@warm_solvers
@pytest.mark.parametrize(
    ("warm", "complaint"),
    [
        (np.zeros(39), "shape"),
        (np.zeros(41), "shape"),
        (np.zeros((40, 1)), "shape"),
        (0.0, "shape"),
        (np.full(40, np.nan), "finite"),
        (np.full(40, np.inf), "finite"),
    ],
)
def test_wrong_warm_starts_are_refused(name, warm, complaint):
    with pytest.raises(ValueError, match=complaint):
        solve(make(n=40).problem, WARM[name], warm=warm)


@pytest.mark.parametrize(
    "name", [name for name, solver in SOLVERS.items() if not solver.dual]
)
def test_solvers_without_duals_refuse_a_warm_start(name):
    bench = make()
    with pytest.raises(ValueError, match="warm start") as error:
        solve(bench.problem, get_solver(name), warm=np.zeros(bench.n))
    message = str(error.value)
    assert repr(name) in message
    remedies = remedies_in(message)
    assert remedies
    for remedy in remedies:
        solve(bench.problem, get_solver(remedy), warm=np.zeros(bench.n), max_iter=1)


def remedies_in(message):
    """Solver names after the semicolon of a refusal."""
    names = re.findall(r"'([^']+)'", message.partition(";")[2])
    return [name for name in names if name in SOLVERS]


# --- refusals --------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("name", SOLVERS)
def test_losses_are_accepted_or_refused_with_a_remedy(name, loss):
    bench = make(loss=loss)
    solver = get_solver(name)
    if loss in solver.losses:
        assert solve(bench.problem, solver, max_iter=2).certificate.epochs > 0
        return
    with pytest.raises(ValueError, match="loss=") as error:
        solve(bench.problem, solver)
    message = str(error.value)
    assert repr(name) in message
    assert repr(loss) in message
    for accepted in solver.losses:
        assert repr(accepted) in message
    assert remedies_in(message)
    for remedy in remedies_in(message):
        solve(bench.problem, get_solver(remedy), max_iter=1)


def test_a_batch_may_be_of_all_rows():
    assert solve(make(n=40).problem, Pegasos(batch_size=40), max_iter=1)
