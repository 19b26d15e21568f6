"""The unpenalised bias by DCD: against LIBSVM, against its twin, and its behaviour.

Every objective is recomputed here, in plain NumPy and float64.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

from dualgap import core
from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems.base import Claim
from dualgap.solvers import DCD, Pegasos
from dualgap.training import solve

from ..twins import dcd, watched
from .data import LAYOUTS, LOSSES, close, make


def free(X, y, C, weight=None, loss="hinge"):
    return Problem(
        X, y, C, loss=loss, sample_weight=weight, fit_intercept=True,
        penalize_intercept=False,
    )  # fmt: skip


def objective(X, y, cost, w, bias):
    margins = y * (X @ w + bias)
    return 0.5 * w @ w + cost @ np.maximum(0.0, 1.0 - margins)


@functools.cache
def rows(kind):
    """Quarters of whole numbers: LIBSVM's float32 kernel entries are exact then."""
    rng = np.random.default_rng(3)
    n, d = (300, 30) if kind == "balanced" else (1000, 30)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    X = np.round(4 * X) / 4
    score = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    positive = n // 2 if kind == "balanced" else n // 100
    y = np.where(score > np.sort(score)[-positive - 1], 1, -1)
    assert (y > 0).sum() == positive
    return X, y, rng.uniform(0.2, 3.0, n)


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("name", ["adult/a1a", "web/w1a"])
def test_libsvm_on_real_data(name, C, load_xz):
    X, y = load_xz(name)
    X = X.toarray()  # ones and zeros
    model = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y)
    cost = np.full(len(y), C)
    reference = objective(X, y, cost, model.coef_.ravel(), model.intercept_[0])
    solution = solve(free(X, y, C), DCD(), tol=5e-7, max_iter=10**5)
    assert solution.certificate.status is Status.CERTIFIED
    P = objective(X, y, cost, solution.w[:-1], solution.w[-1])
    assert abs(P - reference) <= 1e-6 * reference
    assert solution.certificate.dual <= reference


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("positive", [1, 20, 199])
def test_certified_whatever_the_scale_and_the_balance(loss, scale, C, positive):
    """C and the features change together as well as apart."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 6)) + 1.0
    score = X.sum(axis=1) + rng.standard_normal(200)
    y = np.where(score > np.sort(score)[-positive - 1], 1, -1)
    record, _ = LOSSES[loss]
    problem = free(sparse.csr_matrix(X * scale), y, C / scale**1.5, loss=record)
    solution = solve(problem, DCD(), tol=1e-6, max_iter=10**6)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.relative_gap <= 1e-6
    assert problem.primal(solution.w) == pytest.approx(solution.certificate.primal)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_twin(loss, layout):
    """DCD on rows with the feature s, whose weight is moved on after every pass."""
    bench = make("weights and zero rows", layout, loss)
    record, phi = LOSSES[loss]
    problem = free(LAYOUTS[layout](bench.X), bench.y, 1.0, bench.c, record)
    solver, stop = DCD(shrinking="none"), core.Stop()
    state = solver.start(problem, core.Random(4), None)
    s = max(0.1 * np.sqrt((bench.X**2).sum(axis=1).mean()), 1 / np.sqrt(bench.c.sum()))
    X = np.column_stack([bench.X, np.full(bench.n, s)])
    twin = dcd.DCD(X, bench.y, problem.upper, problem.delta)
    positive = bench.c[bench.y > 0].sum() > bench.c[bench.y < 0].sum()
    if loss == "hinge":  # the best bias of w = 0 says nothing of the other class
        assert state.centre == (1.0 if positive else -1.0)
    twin.w[-1] = state.centre / s
    for _ in range(8):
        solver.step(state, stop)
        twin.M_bar, twin.m_bar = np.inf, -np.inf
        twin.epoch(list(state.order))
        close(state.alpha, twin.a)
        bias = s * twin.w[-1]
        off = twin.a @ bench.y
        w = twin.w[:-1]
        f = bench.X @ w
        P = 0.5 * w @ w + bench.c @ phi.value(1 - bench.y * (f + bias))
        twin.w[-1] = bias / s + s * off
        close(state.w, twin.w)
        assert state.centre == pytest.approx(bias, rel=1e-10)
        assert off != 0.0
        assert state.dual < P


def test_the_estimates_become_exact():
    X, y, _ = rows("balanced")
    problem = free(X, y, 1.0)
    solver, stop = DCD(shrinking="none"), core.Stop()
    state = solver.start(problem, core.Random(0), None)
    for _ in range(3000):
        solver.step(state, stop)
    exact = problem.prove(Claim(*solver.iterate(state))).certificate
    assert state.primal == pytest.approx(exact.primal, rel=1e-4)
    assert state.dual == pytest.approx(exact.dual, rel=1e-4)
    assert exact.relative_gap < 1e-4


def test_repair_changes_rounding_only():
    X, y, _ = rows("balanced")
    problem = free(X, y, 1.0)
    solver, stop = DCD(), core.Stop()
    state = solver.start(problem, core.Random(0), None)
    for _ in range(30):
        solver.step(state, stop)
    before = state.w.copy()
    solver.reject(state)
    close(state.w, before, 1e-12)


def test_callbacks_see_a_model_with_its_bias():
    X, y, _ = rows("balanced")
    problem = free(X, y, 1.0)
    seen = []

    def look(info):
        w = info.model()
        seen.append((problem.primal(w), w[-1]))

    solution = solve(problem, DCD(), tol=1e-6, max_iter=10**5, on_epoch=look)
    assert seen[-1][0] == pytest.approx(solution.certificate.primal, rel=1e-9)
    assert seen[-1][1] == pytest.approx(solution.w[-1], rel=1e-6)
    assert min(P for P, _ in seen) >= solution.certificate.dual


# --- Pegasos, section 6 ----------------------------------------------------------


def positive_weights(n):
    return np.random.default_rng(8).uniform(0.2, 3.0, n)


@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("solver", "kind"),
    [
        (Pegasos(bias="subgradient"), watched.Subgradient),
        (Pegasos(bias="subgradient", batch_size=7), watched.Subgradient),
        (Pegasos(bias="batch", batch_size=13), watched.Batch),
        (Pegasos(bias="batch", batch_size=40), watched.Batch),
    ],
    ids=["subgradient", "subgradient k=7", "batch k=13", "batch k=40"],
)
def test_pegasos_twins(loss, layout, solver, kind):
    bench, (record, phi) = make("plain", layout, "hinge"), LOSSES[loss]
    cost = 0.3 * positive_weights(bench.n)
    problem = free(LAYOUTS[layout](bench.X), bench.y, 1.0, cost, record)
    if solver.bias == "batch" and loss != "hinge":
        with pytest.raises(ValueError, match="needs loss='hinge'"):
            solver.check(problem)
        return
    solver.check(problem)
    lam, omega = 1 / cost.sum(), cost / cost.mean()
    state = solver.start(problem, core.Random(6), None)
    twin, clear = kind(bench.X, bench.y, lam, phi, omega), 0
    for _ in range(12):
        twin.w, twin.b = state.scale * state.v, state.scale * state.beta
        twin.bias, twin.errors = float(state.bias[0]), state.updates
        solver.step(state, core.Stop())
        twin.loss = 0.0
        k = solver.batch_size
        for begin in range(0, bench.n, k):
            twin.step(state.order[begin : begin + k])
        if twin.unclear:
            break
        clear += 1
        close(state.scale * state.v, twin.w)
        close(state.scale * state.beta, twin.b)
        close(state.bias, [twin.bias])
        assert state.updates == twin.errors
        close(state.norm, twin.w @ twin.w)
        P = 0.5 * twin.w @ twin.w + cost.mean() * twin.loss
        assert state.primal == pytest.approx(P, rel=1e-10)
    assert clear > 6
    w, alpha = solver.iterate(state)
    if twin.unclear:
        twin.w, twin.b = state.scale * state.v, state.scale * state.beta
        twin.bias = float(state.bias[0])
    close(w[:-1], twin.w)
    if solver.bias == "subgradient":
        close(w[-1], twin.bias)
    else:  # the best for all rows
        trials = [
            problem.primal(np.append(w[:-1], b)) for b in np.linspace(-9, 9, 2001)
        ]
        assert problem.primal(w) <= min(trials) + 1e-12
    close(alpha, np.clip(twin.b, 0.0, problem.upper))


@pytest.mark.parametrize("seed", range(40))
def test_the_bias_of_a_batch_is_the_best_and_its_errors_balance(seed):
    """Ties, one class, rows that weigh nothing: from any w."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    X = np.round(rng.standard_normal((n, 2)))
    y = np.ones(n, np.int64) if seed % 8 == 0 else rng.choice([-1, 1], n)
    weight = rng.choice([0.0, 0.1, 1.0, 3.7], n)
    weight[0] = 1.0
    problem = free(X, y, 1.0, weight)
    order = np.arange(n, dtype=np.uint32)
    v, beta, bias = rng.standard_normal(2), np.zeros(n), np.zeros(1)
    omega, start = problem.omega, v.copy()
    examples = problem.examples(cost=omega, q=problem.norms(0.0), constant=0.0)
    settings = core.GradientSettings(
        *(problem.lambda_, core.Schedule.pegasos, 0.0, n), rule=core.BiasRule.batch
    )
    state = core.GradientState(v, beta, 1.0, start @ start, 4.0, bias=bias)
    loss = core.stochastic_gradient_epoch(
        examples, settings, order, state, core.Stop()
    ).loss
    scale = state.scale
    kinks = y - X @ start

    def lost(b):
        return omega @ np.maximum(0, y * (kinks - b))

    losses = [lost(b) for b in kinks]
    assert loss == pytest.approx(min(losses), rel=1e-12, abs=1e-12)
    assert omega @ np.maximum(0, y * (kinks - bias[0])) == pytest.approx(
        loss, abs=1e-12
    )
    shares = scale * beta * problem.lambda_ * 5.0 * n
    assert (shares >= 0.0).all()
    assert (shares <= omega * (1 + 1e-12)).all()
    assert abs(shares @ y) <= 1e-12 * omega.sum()
    wrong = y * (kinks - bias[0])
    np.testing.assert_allclose(shares[wrong > 1e-12], omega[wrong > 1e-12], 1e-12)
    np.testing.assert_allclose(shares[wrong < -1e-12], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("solver", "accuracy"),
    [
        (Pegasos(bias="subgradient"), 1e-3),
        (Pegasos(bias="subgradient", batch_size=30, projection=True), 1e-3),
        (Pegasos(bias="batch", batch_size=300), 1e-3),
        (Pegasos(bias="search"), 1e-2),
        (Pegasos(bias="search", sampling="random", batch_size=5), 1e-2),
    ],
    ids=lambda value: getattr(value, "bias", None),
)
@pytest.mark.parametrize("positive", [30, 150])
def test_pegasos_comes_near_the_optimum(solver, accuracy, positive):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 10)) + 1.0
    score = X.sum(axis=1) + 2.0 * rng.standard_normal(300)
    y = np.where(score > np.sort(score)[-positive - 1], 1, -1)
    problem = free(X, y, 0.02)
    best = solve(problem, DCD(), tol=1e-9, max_iter=10**6).certificate
    solution = solve(problem, solver, tol=1e-6, max_iter=1500)
    certificate = solution.certificate
    assert certificate.dual <= best.primal
    assert certificate.primal >= best.dual
    assert problem.primal(solution.w) <= (1 + accuracy) * best.primal
    # A penalised bias is far from it.
    feature = Problem(X, y, 0.02, fit_intercept=True)
    other = solve(feature, DCD(), tol=1e-9, max_iter=10**6).w
    assert problem.primal(other) > (1 + 2 * accuracy) * best.primal


def test_search_runs_one_epoch_longer_each_time():
    X, y, _ = rows("balanced")
    solver, stop = Pegasos(bias="search"), core.Stop()
    state = solver.start(free(X, y, 0.1), core.Random(0), None)
    seen = []
    for _ in range(15):
        solver.step(state, stop)
        seen.append((state.runs, float(state.bias[0])))
    assert [run for run, _ in seen] == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5]
    biases = [bias for _, bias in dict.fromkeys(seen)]
    moves = np.diff(biases)
    assert len(moves) == 4
    np.testing.assert_array_equal(
        moves[1:] / moves[:-1], np.where(moves[1:] * moves[:-1] > 0, 2.0, -0.5)
    )
