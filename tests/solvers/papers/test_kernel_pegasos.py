"""Kernelised Pegasos: independent draws, averages and a budget of steps."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import SVC, certify, core, load_model, save_model
from dualgap.certificate import Status
from dualgap.kernel import RBF, KernelPegasos, KernelProblem
from dualgap.training import solve

from ...twins import watched
from ..kernel.data import form, make, optimum, values

LOSSES = ["hinge", "squared_hinge", "smoothed_hinge"]
OPTIONS = [
    {"sampling": "random"},
    {"output": "average"},
    {"sampling": "random", "output": "average"},
    {"sampling": "random", "output": "average", "batch_size": 7},
    {"batch_size": 7},  # the last batch of an epoch is short
]
ROWS = 60
BIASES = [{"fit_intercept": False}, {"penalize_intercept": True}]


def problem_of(loss="hinge", seed=7, C=0.7, weighted=True, **bias):
    X, y = make(ROWS, 3, seed)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, ROWS) if weighted else None
    if weight is not None:
        weight[::13] = 0.0
    return KernelProblem(
        X, y, C, kernel=RBF(0.5), loss=loss, sample_weight=weight,
        **(bias or BIASES[0]),
    )  # fmt: skip


def begin(problem, solver):
    """The state of a solver, and its twin over the rows with a cost."""
    state = solver.start(problem, core.Random(4), None)
    rows = state.used
    k = np.array([problem.gram.row(int(i))[rows] for i in rows], dtype=np.float64)
    twin = watched.KernelPegasos(
        k + problem.constant, problem.y[rows], problem.lambda_, problem.loss.derivative,
        problem.cost[rows] / problem.cost[rows].mean(), state.offset, solver.budget,
    )  # fmt: skip
    return state, twin


def visits(solver, rng, order):
    """The batches of the next epoch."""
    if solver.sampling == "random":
        rng.draw(order, len(order))
    else:
        rng.shuffle(order)
    size = solver.batch_size
    return [order[at : at + size].copy() for at in range(0, len(order), size)]


@pytest.mark.cases(12)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES, ids=str)
@pytest.mark.parametrize(
    "options", [*OPTIONS, {}, {"batch_size": ROWS}, {"budget": 30}], ids=str
)
def test_steps_averages_and_dual_points_are_those_of_the_twin(loss, bias, options):
    problem, solver = problem_of(loss, **bias), KernelPegasos(**options)
    state, twin = begin(problem, solver)
    rows, cost = state.used, problem.cost[state.used]
    rng, order = core.Random(4), np.arange(len(rows), dtype=np.uint32)
    averaged = solver.output == "average"
    for epoch in range(1, 13):
        solver.step(state, core.Stop())
        for A in visits(solver, rng, order):
            twin.step(A)
        np.testing.assert_allclose(state.a, twin.s, rtol=1e-8, atol=1e-10)
        assert state.t == twin.t - state.offset
        assert state.visited == len(rows) * epoch
        assert np.count_nonzero(state.a) <= (solver.budget or ROWS)
        coef, margins = state.model()
        expected = twin.average() if averaged else twin.alpha()
        np.testing.assert_allclose(coef, expected, rtol=1e-7, atol=1e-10)
        f = twin.K @ (expected * twin.y)
        np.testing.assert_allclose(margins, twin.y * f, rtol=1e-6, atol=1e-8)
        w, alpha = solver.iterate(state)
        np.testing.assert_allclose(w[rows], expected, rtol=1e-7, atol=1e-10)
        outside = (expected > problem.upper[rows] * (1 + 1e-6)).any()
        inside = loss != "hinge" or bias != BIASES[0] or options not in OPTIONS
        assert outside or inside
        dual = cost * twin.mean_slopes() if outside else expected
        np.testing.assert_allclose(alpha[rows], dual, rtol=1e-7, atol=1e-10)
        np.testing.assert_array_equal(state.alpha(), alpha)
        assert (alpha <= problem.upper).all()
        assert alpha[problem.cost == 0.0].max() == 0.0
    assert (state.offset == 0) == (loss == "hinge")


@pytest.mark.parametrize("steps", [1, 2, 29, 130])
@pytest.mark.parametrize("options", OPTIONS)
def test_a_budget_of_steps_ends_within_an_epoch(options, steps):
    problem, solver = problem_of(), KernelPegasos(max_steps=steps, **options)
    _, twin = begin(problem, solver)
    rng = core.Random(11)
    order, made = np.arange(len(twin.y), dtype=np.uint32), []
    while len(made) < steps:
        made += visits(solver, rng, order)
    for A in made[:steps]:
        twin.step(A)
    found = solve(problem, solver, tol=1e-12, random_state=11)
    assert found.certificate.status is Status.STEP_LIMIT
    expected = twin.average() if solver.output == "average" else twin.alpha()
    rows = problem.cost > 0.0
    np.testing.assert_allclose(found.coefficients[rows], expected, rtol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("options", OPTIONS)
def test_the_certificate_is_of_the_model_and_of_a_point_in_the_box(loss, options):
    problem = problem_of(loss)
    best, epochs = optimum(problem), 5
    seen = []
    found = solve(
        problem, KernelPegasos(**options), tol=1e-9, max_iter=epochs,
        random_state=3, on_epoch=lambda info: seen.append(info.model().copy()),
    )  # fmt: skip
    proof, coef = found.certificate, found.coefficients
    assert (values(problem, coef)[0], values(problem, found.alpha)[1]) == (
        pytest.approx((proof.primal, proof.dual), rel=1e-9)
    )
    assert (found.alpha >= 0.0).all()
    assert (found.alpha <= problem.upper).all()
    assert proof.dual <= best.upper * (1 + 1e-9)
    assert proof.primal >= best.lower * (1 - 1e-9)
    f = problem.y * (form(problem) @ coef)
    np.testing.assert_allclose(found.decisions, f, rtol=1e-9, atol=1e-12)
    signed, bias = problem.coef(coef)
    np.testing.assert_array_equal(signed, coef * problem.y)
    assert bias == 0.0
    # The model of draws is the paper's: it is not clipped.
    assert (coef > problem.upper).any() or loss != "hinge"
    if loss != "squared_hinge":  # whose final model is scaled
        np.testing.assert_allclose(seen[-1], f, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("options", [{}, *OPTIONS], ids=str)
def test_the_gap_closes(loss, options):
    problem = problem_of(loss, C=0.2, weighted=False)
    tol = 0.05 if options else 5e-3
    solution = solve(
        problem, KernelPegasos(**options), tol=tol, max_iter=5000, random_state=0
    )
    assert solution.certificate.certified


@pytest.mark.parametrize("loss", LOSSES)
def test_few_coefficients_bound_the_optimum_too(loss):
    problem = problem_of(loss, C=0.2)
    best = optimum(problem)
    found = solve(problem, KernelPegasos(budget=20), tol=5e-3, max_iter=50)
    assert np.count_nonzero(found.alpha) <= 20
    assert found.certificate.dual <= best.upper * (1 + 1e-9)
    assert found.certificate.primal >= best.lower * (1 - 1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimators_keep_the_coefficients(loss, options, tmp_path):
    X, y = make(ROWS, 3, 7)
    solver = KernelPegasos(**options)
    model = SVC(
        0.7, kernel=RBF(0.5), loss=loss, solver=solver, tol=1e-9, max_iter=5,
        random_state=3,
    ).fit(X, y)  # fmt: skip
    whole = np.zeros(ROWS)
    whole[model.support_] = model.dual_coef_[0]
    problem = KernelProblem(X, y, 0.7, kernel=RBF(0.5), loss=loss)
    P = values(problem, whole * y)[0]
    assert model.certificate_.primal == pytest.approx(P, rel=1e-9)
    assert (whole * y > 0.7).any() or loss != "hinge"
    f = y * (form(problem) @ (whole * y))
    np.testing.assert_allclose(model.decision_function(X), f, rtol=1e-9, atol=1e-12)
    again = certify(model, X, y)
    assert again.primal == pytest.approx(P, rel=1e-9)
    assert again.dual <= optimum(problem).upper * (1 + 1e-9)
    save_model(model, tmp_path / "model")
    read = load_model(tmp_path / "model")
    assert read.solver == solver
    np.testing.assert_array_equal(read.dual_coef_, model.dual_coef_)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_fit_that_ends_before_a_proof_has_its_model(options):
    problem, solver = problem_of(), KernelPegasos(**options)
    state, _ = begin(problem, solver)
    solver.step(state, core.Stop())
    proof = solver.unproved(state)
    np.testing.assert_array_equal(proof.w, solver.iterate(state)[0])
    assert proof.certificate.gap == np.inf
