"""A budget of steps: the run of the paper's iterations, and what it reads."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dualgap import LinearSVC, core
from dualgap.certificate import Status
from dualgap.data import RowStore, convert
from dualgap.papers.twins import SDCATwin
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import (
    NORMA,
    SDCA,
    SGDQN,
    SOLVERS,
    Pegasos,
    SGDm,
    SGDr,
    SGDs,
    SvmSGD,
)
from dualgap.solvers.base import SteppedSolver
from dualgap.training import solve

from ..twins import sgd_qn, svmsgd, watched
from .data import close, make

STEPPED = [record for record in SOLVERS.values() if issubclass(record, SteppedSolver)]
SEED = 11


def visits(bench, steps, kind="permutation", batch=1):
    """The batches of rows that `steps` steps are made on."""
    rng, order = core.Random(SEED), np.arange(bench.n, dtype=np.uint32)
    made = []
    while len(made) < steps:
        if kind == "random":
            rng.draw(order, bench.n)
        elif kind == "permutation":
            rng.shuffle(order)
        made += [order[s : s + batch].copy() for s in range(0, bench.n, batch)]
    return made[:steps]


def twin_of(solver, bench, rows):
    """The twin of a solver after steps on batches of rows."""
    given = bench.X, bench.y, bench.lam, bench.phi, bench.omega
    if isinstance(solver, (SGDr, SGDs, SGDm)):
        twin = watched.SGD(bench.X, bench.y, bench.mean_cost, bench.omega)
        for A in rows:
            twin.visit(A[0], 5 if isinstance(solver, SGDm) else 1)
        return twin
    if isinstance(solver, (SDCA, SGDQN)):
        qn = solver.name == "sgd-qn"
        twin = sgd_qn.SGDQN(*given, 5, 10.0, solver.update) if qn else SDCATwin(*given)
        if not qn and solver.init == "sgd":
            for _ in twin.modified_sgd([A[0] for A in rows]):
                pass
            return twin
        for A in rows:
            twin.visit(A[0])
        return twin
    if solver.name == "pegasos":
        twin = watched.Pegasos(*given, solver.projection)
    elif solver.name == "norma":
        twin = watched.NORMA(*given, solver.p)
    else:
        twin = svmsgd.SvmSGD(*given, solver.initial_step)
    for A in rows:
        twin.step(A)
    return twin


@pytest.mark.cases(12)
@pytest.mark.parametrize("steps", [1, 7, 29, 37])
@pytest.mark.parametrize(
    ("solver", "kind", "case"),
    [
        (Pegasos, "permutation", "weights"),
        (partial(Pegasos, sampling="random"), "random", "weights"),
        (partial(Pegasos, batch_size=3, projection=True), "permutation", "weights"),
        (NORMA, "permutation", "weights"),
        (partial(SvmSGD, initial_step=1.0), "permutation", "weights"),
        (SGDr, "random", "plain"),
        (SGDs, "permutation", "plain"),
        (SGDm, "permutation", "plain"),
        (SDCA, "permutation", "weights"),
        (partial(SDCA, init="sgd"), "permutation", "weights"),
        (partial(SGDQN, t0=10.0, skip=5), "permutation", "plain"),
    ],
)
def test_fewer_steps_than_an_epoch_are_those_of_the_paper(solver, kind, case, steps):
    bench, record = make(case, n=120), solver(max_steps=steps)
    found = solve(bench.problem, record, tol=1e-12, random_state=SEED)
    assert found.certificate.status is Status.STEP_LIMIT
    rows = visits(bench, steps, kind, getattr(record, "batch_size", 1))
    twin = twin_of(record, bench, rows)
    if record.name == "sdca":
        close(found.alpha, bench.mean_cost * bench.y * twin.a)
        return
    assert twin.unclear == 0
    close(found.w, twin.w)
    if case == "weights":
        assert twin.t == steps
        assert found.certificate.updates == twin.errors


@pytest.mark.parametrize("batch", [1, 7, 50])
@pytest.mark.parametrize("epochs", [1, 3])
def test_a_budget_may_end_in_a_later_epoch(batch, epochs):
    bench = make(n=120)  # 120 = 17 * 7 + 1: the last batch of an epoch is short
    steps = epochs * -(-120 // batch) + 2
    solver = Pegasos(batch_size=batch, max_steps=steps)
    state = solver.start(bench.problem, core.Random(SEED), None)
    state.steps_left = steps
    twin = watched.Pegasos(bench.X, bench.y, bench.lam, bench.phi, bench.omega)
    while state.steps_left:
        solver.step(state, core.Stop())
    assert state.epochs == epochs + 1
    assert state.t == steps
    for A in visits(bench, steps, batch=batch):
        twin.step(A)
    assert twin.unclear == 0
    close(state.scale * state.v, twin.w)


@pytest.mark.parametrize("record", STEPPED)
def test_the_rows_are_proved_once_and_the_message_says_why(record, monkeypatch):
    bench = make(n=120)
    proofs, prove = [], Problem.prove
    monkeypatch.setattr(
        Problem, "prove", lambda self, claim: proofs.append(0) or prove(self, claim)
    )
    found = solve(bench.problem, record(max_steps=20), tol=1e-12)
    assert len(proofs) == 1
    assert found.certificate.epochs == 1
    assert found.certificate.status.label == "step_limit"
    assert "Stopped at max_steps of the solver: raise it" in found.certificate.message


def test_a_proof_of_tol_ends_a_fit_before_its_budget():
    bench = make(n=120)
    found = solve(bench.problem, SDCA(max_steps=10**9), tol=1e-2)
    plain = solve(bench.problem, SDCA(), tol=1e-2)
    assert found.certificate.certified
    np.testing.assert_array_equal(found.w, plain.w)


@pytest.mark.parametrize("output", ["last", "average", "random"])
def test_the_outputs_of_sdca_are_of_the_steps_made(output):
    bench, steps = make(n=40), 13
    twin = SDCATwin(bench.X, bench.y, bench.lam, bench.phi, bench.omega)
    solver = SDCA(output=output, order="cyclic", max_steps=steps)
    found = solve(bench.problem, solver, tol=1e-12, random_state=SEED)
    for i in range(steps):
        twin.visit(i)
    points = [*twin.past[1:], twin.a]
    scale = bench.mean_cost * bench.y
    if output == "last":
        close(found.alpha, scale * twin.a)
    elif output == "average":
        close(found.alpha, scale * twin.average(0))
    else:
        assert any(np.allclose(found.alpha, scale * a, atol=1e-12) for a in points)
        assert found.alpha.any()


def test_the_random_output_is_drawn_from_all_steps_of_the_window():
    """Window of 40 + 10 steps after a restart at epoch 2: a fifth of the draws."""
    bench, kept = make(n=40), 0
    solver = SDCA(output="random")
    for seed in range(400):
        state = solver.start(bench.problem, core.Random(seed), None)
        state.epochs, state.window_start, state.steps_left = 3, 2, 10
        kept += solver._draw_cut(state) > 0
    assert 50 < kept < 110  # 80 expected, with a standard deviation of 8


@pytest.mark.parametrize("record", STEPPED)
def test_blocks_after_the_budget_are_not_read(tmp_path, record, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 20))
    convert([(X, np.where(X[:, 0] > 0, 1, -1))], tmp_path / "store")
    size = RowStore.open(tmp_path / "store")
    total = size.nnz * size.entry_bytes + 8 * size.n_samples
    store = RowStore.open(tmp_path / "store", buffer=int(0.5 * total))
    problem = Problem(store, None, 1.0)
    assert problem.streamed
    options = {"t0": 1.0} if record is SGDQN else {}
    options |= {"initial_step": 1.0} if record is SvmSGD else {}
    solver, seen, prove = record(max_steps=25, **options), [], Problem.prove

    def watched(self, claim):
        seen.append(np.count_nonzero(self._norms.seen))
        return prove(self, claim)

    monkeypatch.setattr(Problem, "prove", watched)
    found = solve(problem, solver, tol=1e-12)
    assert found.certificate.status is Status.STEP_LIMIT
    (read,) = seen
    assert 0 < read < len(problem._norms.seen)


@pytest.mark.parametrize("record", STEPPED)
def test_a_checkpoint_keeps_the_budget(tmp_path, record):
    bench = make(n=60)

    def killed(info):
        if info.epoch == 2:
            raise KeyboardInterrupt

    def fit(steps, **options):
        return solve(bench.problem, record(max_steps=steps), tol=1e-12, **options)

    whole = fit(200)
    assert whole.certificate.status is Status.STEP_LIMIT
    file = {"checkpoint": tmp_path / "c", "checkpoint_every": 1e-9}
    with pytest.raises(KeyboardInterrupt):
        fit(200, on_epoch=killed, **file)
    with pytest.raises(ValueError, match="max_steps=200"):
        fit(300, **file)
    again = fit(200, **file)
    np.testing.assert_array_equal(again.w, whole.w)
    assert again.certificate.updates == whole.certificate.updates


def test_the_estimator_takes_a_budget_per_problem():
    bench = make(n=120)
    model = LinearSVC(loss="hinge", solver=Pegasos(max_steps=50), tol=1e-12)
    with pytest.warns(UserWarning, match="Stopped at max_steps"):
        model.fit(bench.X, np.arange(120) % 3)
    assert len(model.certificate_) == 3
    assert model.certificate_.status is Status.STEP_LIMIT
    assert model.n_iter_ == 1
