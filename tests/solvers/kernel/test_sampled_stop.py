"""The papers' stop, and proofs told to leave: nothing false is promised or lost."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualgap import SVC, core, load_model, save_model
from dualgap.certificate import Status
from dualgap.core import StoppedError
from dualgap.kernel import (
    FW,
    MDM,
    MFW,
    RBF,
    SWAP,
    BlockSolver,
    Callable,
    CoreVector,
    KernelProblem,
    Precomputed,
    SWAP2o,
)
from dualgap.problems.base import Claim, KernelHint
from dualgap.training import solve
from dualgap.training.loop import Loop, LoopSettings

from .data import form, kernel_matrix, look_first, make, optimum, values

WALKS = [FW, MFW, MDM, SWAP, SWAP2o]


def bench(n=300, C=10.0, seed=0):
    X, y = make(n, 4, seed)
    return KernelProblem(X, y, C, kernel=RBF(0.3))


def records(**options):
    walks = [record(stop="sampled", eps=1e-3, **options) for record in WALKS]
    return [*walks, CoreVector(stop="sampled", eps=1e-3, **options)]


@pytest.mark.cases(1)
@pytest.mark.parametrize("solver", records(sample=5), ids=lambda s: s.name)
def test_the_certificate_is_about_the_model_where_the_sample_stopped(solver):
    problem = bench()
    seen = []
    solution = solve(problem, solver, tol=1e-9, on_epoch=lambda i: seen.append(i))
    certificate, history = solution.certificate, solution.history
    assert certificate.status is Status.SAMPLED
    assert certificate.status.label == "sampled"
    assert "a sample of rows showed, which proves nothing" in certificate.message
    assert certificate.relative_gap > 1e-9
    # Proved once, after the last step; the callback saw the fit before and after.
    assert history["exact"].tolist() == [False] * (len(history) - 1) + [True]
    assert history["updates"][-2] == history["updates"][-1] == certificate.updates
    assert [info.final for info in seen] == [False] * (len(seen) - 1) + [True]
    assert not seen[-2].exact
    # The bounds are those of plain NumPy, and hold the optimum between them.
    P, D = values(problem, solution.alpha)
    assert P == pytest.approx(certificate.primal, rel=1e-9)
    assert D == pytest.approx(certificate.dual, rel=1e-9)
    best = optimum(problem)
    assert certificate.dual <= best.upper * (1 + 1e-9)
    assert certificate.primal >= best.lower * (1 - 1e-9)


def paper_gap(problem, alpha, rows):
    """2(p - min g) over some rows, on the simplex, in float64."""
    K = form(problem) + np.diag(problem.delta)
    a = alpha / alpha.sum()
    g = K @ a
    return 2 * (a @ g - g[rows].min())


def ended(record, **options):
    """Return where a fit of samples of 20 rows ends, and those of its last epoch."""
    solver = record(stop="sampled", eps=2e-3, sample=20, **options)
    problem = bench(n=150)
    state = solver.start(problem, core.Random(3), None)
    while not state.ended:
        before = state.rng.state
        solver.step(state, core.Stop())
    rng, drawn = core.Random(0), []
    rng.state = before
    while rng.state != state.rng.state:
        drawn.append([rng.below(problem.n) for _ in range(20)])
    return problem, state, solver.iterate(state)[1], drawn


@pytest.mark.parametrize("record", WALKS)
def test_the_last_samples_have_the_gap_and_all_rows_may_have_more(record):
    updates = []
    for count in (1, 3):
        problem, state, alpha, drawn = ended(record, quiet_samples=count)
        gaps = [paper_gap(problem, alpha, rows) for rows in drawn[-count:]]
        assert max(gaps) <= 2e-3 * (1 + 1e-6)
        assert paper_gap(problem, alpha, slice(None)) >= max(gaps)
        updates.append(state.updates)
    assert updates[0] < updates[1]  # one sample in a row is not enough


def test_a_core_set_is_quiet_for_several_samples_in_a_row(monkeypatch):
    found = []
    farthest = CoreVector._farthest

    def look(self, state):
        rows, loss = farthest(self, state)
        found.append(len(rows))
        return rows, loss

    monkeypatch.setattr(CoreVector, "_farthest", look)
    solver = CoreVector(stop="sampled", eps=1e-3, sample=20, quiet_samples=3)
    solution = solve(bench(), solver, tol=1e-9, random_state=0)
    assert solution.certificate.status is Status.SAMPLED
    assert found[-3:] == [0, 0, 0]
    assert "1, 0, 0, 0" not in str(found[:-1])
    assert "1, 0, 1" in str(found)


def test_a_sample_can_be_wrong_and_the_certificate_says_so():
    """One row in 400 has a loss: most samples of two rows miss it."""
    X = np.zeros((400, 2))
    X[:, 0] = 1.0
    X[1, 1] = 8.0
    y = np.ones(400)
    y[1] = -1
    solver = FW(stop="sampled", eps=1e-6, sample=2, initial_point="equal", initial=1)
    solution = solve(KernelProblem(X, y, 100.0, kernel=RBF(1.0)), solver, tol=1e-3)
    assert solution.certificate.status is Status.SAMPLED
    assert solution.certificate.relative_gap > 1.0
    full = solve(KernelProblem(X, y, 100.0, kernel=RBF(1.0)), SWAP(), tol=1e-3)
    assert full.certificate.certified
    assert full.certificate.dual > solution.certificate.dual


def test_a_fit_that_happens_to_reach_tol_is_certified():
    solution = solve(bench(), SWAP2o(stop="sampled", eps=1e-5, sample=300), tol=1e-2)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.relative_gap <= 1e-2


@pytest.mark.parametrize("solver", records(), ids=lambda s: s.name)
def test_proofs_on_the_way_change_nothing(solver):
    plain = solve(bench(), solver, tol=50.0)
    watched = solve(bench(), solver, tol=50.0, check_every=1)
    assert plain.history["exact"].tolist() == [False] * len(watched.history) + [True]
    assert watched.history["exact"].all()
    assert plain.history["updates"][-1] == watched.history["updates"][-1]
    gap = (watched.history["primal"] - watched.history["dual"])[-1]
    assert gap == plain.certificate.gap


@pytest.mark.parametrize("solver", records(), ids=lambda s: s.name)
def test_a_warm_start_at_the_optimum_ends_at_the_first_sample(solver):
    problem = bench()
    alpha = solve(problem, SWAP2o(), tol=1e-8).alpha
    solution = solve(bench(), solver, tol=1e-3, warm=alpha)
    assert solution.certificate.certified
    assert solution.certificate.updates == 0
    assert solution.certificate.epochs == 1


@pytest.mark.parametrize("solver", records(), ids=lambda s: s.name)
def test_other_limits_keep_their_words(solver, monkeypatch):
    told = solve(bench(), solver, tol=1e-9, on_epoch=lambda info: True)
    assert told.certificate.status is Status.INTERRUPTED
    monkeypatch.setattr(Loop, "settings", LoopSettings(grace=60.0))
    late = solve(bench(), solver, tol=1e-9, time_limit=1e-9)
    assert late.certificate.status is Status.TIME_LIMIT
    # One sample is not enough to stop at the first epoch's first step.
    tight = SWAP(stop="sampled", eps=1e-15)
    short = solve(bench(), tight, tol=1e-9, max_iter=1)
    assert short.certificate.status is Status.EPOCH_LIMIT
    assert short.certificate.updates == 200


def test_the_last_proof_may_be_told_to_leave(monkeypatch):
    """The stop comes during the proof: the model is kept and nothing is promised."""
    stop = core.Stop()

    def late(self, claim):
        stop.request()
        raise StoppedError

    monkeypatch.setattr(KernelProblem, "prove", late)
    solution = solve(bench(), FW(stop="sampled", eps=0.1), tol=1e-9, stop=stop)
    assert solution.certificate.status is Status.INTERRUPTED
    assert solution.certificate.primal == np.inf
    assert solution.alpha.any()


@pytest.mark.parametrize("point", ["balanced", "random", "equal"])
def test_the_first_point(point):
    problem = bench(200)
    for solver in (FW(initial_point=point), CoreVector(initial_point=point)):
        state = solver.start(problem, core.Random(1), None)
        rows = np.flatnonzero(state.a)
        assert len(rows) <= 20
        K = problem.y[:, None] * problem.y * (kernel_matrix(problem) + 1.0)
        K += np.diag(problem.delta)
        g = K @ state.a
        np.testing.assert_allclose(state.g[rows], g[rows], rtol=1e-5)
        if point == "equal":
            np.testing.assert_array_equal(state.a[rows], 1 / 20)
        else:  # optimal on the rows
            np.testing.assert_allclose(g[rows], state.a @ g, rtol=1e-4)
    # Half of each class, or any rows: with one positive row it is seldom drawn.
    X, y = make(200, 4, 0)
    y[:] = -1
    y[7] = 1
    rare = KernelProblem(X, y, 10.0, kernel=RBF(0.3))
    drawn = [
        FW(initial_point=point).start(rare, core.Random(seed), None).a[7] > 0
        for seed in range(10)
    ]
    assert all(drawn) == (point == "balanced")


def test_estimators_warn_with_the_gap_that_was_proved(tmp_path):
    X, y = make(300, 4, 0)
    solver = SWAP(stop="sampled", eps=1e-2)
    model = SVC(loss="squared_hinge", gamma=0.3, solver=solver, random_state=0)
    with pytest.warns(ConvergenceWarning, match="which proves nothing"):
        model.fit(X, y)
    assert model.certificate_.status is Status.SAMPLED
    assert model.certificate_.relative_gap > model.tol
    save_model(model, tmp_path / "model")
    assert load_model(tmp_path / "model").certificate_ == model.certificate_


def test_several_classes_each_stop_at_their_sample():
    X, y = make(300, 4, 0)
    y = np.where(X[:, 1] > 0.7, 2, y)
    model = SVC(loss="squared_hinge", gamma=0.3, solver=FW(stop="sampled", eps=1e-2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert {part.status for part in model.certificate_} == {Status.SAMPLED}


def test_options():
    for record in WALKS:
        assert record(stop="sampled") == record(stop="sampled", sample=60, eps=1e-4)
        assert record().ends_itself is False
        assert record(stop="sampled").ends_itself is True


def requested():
    stop = core.Stop()
    stop.request()
    return stop


def problem(loss, kernel=None, n=3000):
    X, y = make(n, 20, 0)
    kernel = RBF(0.1) if kernel is None else kernel
    if isinstance(kernel, Precomputed):
        X = RBF(0.1).block(X, slice(None))
    return KernelProblem(
        X, y, 10.0, kernel=kernel, loss=loss, penalize_intercept=loss != "hinge"
    )


def gaussian(A, B):
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
    return np.exp(-0.1 * squares)


KERNELS = [RBF(0.1), Precomputed(), Callable(gaussian)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_proof_that_is_told_to_leave_proves_nothing(kernel):
    # So many rows that the core looks for the stop; the others look after every block.
    n = 1200 if isinstance(kernel, RBF) else 500
    svm = problem("squared_hinge", kernel, n=n)
    alpha = np.random.default_rng(0).uniform(0.0, 1.0, svm.n)
    # All of the rows, and some of them.
    for each in (
        svm,
        KernelProblem(svm.gram.subset(np.arange(n - 100)), svm.y[: n - 100]),
    ):
        start = alpha[: each.n]
        with pytest.raises(StoppedError):
            each.prove(Claim(alpha=start, hint=KernelHint(stop=requested())))
        # And leaves nothing behind that a later proof takes for its own.
        proof = each.prove(Claim(alpha=start, hint=KernelHint(stop=core.Stop())))
        assert proof.certificate.primal >= proof.certificate.dual > 0.0
        fresh = KernelProblem(each.gram, each.y, each.C).prove(Claim(alpha=start))
        assert fresh.certificate == proof.certificate


def test_rows_many_at_a_time_leave_too():
    svm = problem("hinge")
    BlockSolver().start(svm, core.Random(0), None)
    assert svm.gram.fast is not None
    alpha = np.full(svm.n, 1.0)
    with pytest.raises(StoppedError):
        svm.prove(Claim(alpha=alpha, hint=KernelHint(stop=requested())))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", [BlockSolver(), SWAP()], ids=lambda s: s.name)
def test_the_model_without_any_proof_promises_nothing(loss, solver, monkeypatch):
    if loss not in solver.losses:
        loss = solver.losses[0]
    monkeypatch.setattr(Loop, "settings", LoopSettings(grace=1e-9))
    svm = problem(loss)
    solution = solve(svm, solver, tol=1e-9, on_epoch=lambda info: True)
    certificate = solution.certificate
    assert certificate.status is Status.INTERRUPTED
    assert certificate.primal == certificate.relative_gap == math.inf
    assert certificate.dual == 0.0
    assert "no bound on the objective is known yet" in certificate.message
    # The model reached, not the zero model; and its bias is close to the best.
    assert solution.alpha.any()
    proof = svm.prove(Claim(alpha=solution.alpha))
    assert proof.bias == pytest.approx(solution.bias, abs=2.0)
    if solver.name == "block" and loss == "squared_hinge":
        np.testing.assert_allclose(
            solution.decisions, svm.combine(solution.alpha), atol=1e-3
        )


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_what_was_proved_is_kept(loss, monkeypatch):
    monkeypatch.setattr(Loop, "settings", LoopSettings(grace=1e-9))
    svm, told = problem(loss), []
    look_first(monkeypatch, lambda stop: stop.expired)

    def on_epoch(info):
        told.append(info)
        return info.epoch == 4  # one after the proof

    solution = solve(svm, BlockSolver(), tol=1e-9, on_epoch=on_epoch, check_every=3)
    certificate = solution.certificate
    assert [info.exact for info in told[:4]] == [False, False, True, False]
    assert certificate.status is Status.INTERRUPTED
    assert certificate.primal == told[2].primal
    assert certificate.dual == told[2].dual
    # The certificate is about the model that is kept, and so is the bias.
    again = problem(loss).prove(Claim(alpha=solution.alpha))
    assert again.certificate.primal == pytest.approx(certificate.primal, rel=1e-9)
    assert again.bias == pytest.approx(solution.bias, abs=1e-9)


def test_a_closing_proof_ends_at_the_time_limit():
    svm, stop = problem("hinge"), core.Stop()

    def on_epoch(info):
        stop.set_deadline(-1.0)

    # The last epoch is over, and its proof has no time left.
    solution = solve(
        svm, BlockSolver(), tol=1e-9, max_iter=1, on_epoch=on_epoch, stop=stop
    )
    assert solution.certificate.status is Status.TIME_LIMIT


def test_svc_keeps_and_saves_a_model_without_a_proof(monkeypatch, tmp_path):
    monkeypatch.setattr(Loop, "settings", LoopSettings(grace=1e-9))
    X, y = make(3000, 20, 0)
    model = SVC(gamma=0.1, tol=1e-9)
    with pytest.warns(UserWarning, match="no bound on the objective is known yet"):
        model._fit(X, y, on_epoch=lambda label, info: True)
    # The dual ascends from 0: D = sum |a| - a'Ka / 2.
    coef = model.dual_coef_[0]
    f = model.decision_function(X)[model.support_] - model.intercept_
    assert np.abs(coef).sum() - 0.5 * coef @ f > 0.0
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.certificate_ == model.certificate_
    np.testing.assert_array_equal(
        loaded.decision_function(X), model.decision_function(X)
    )


@pytest.mark.parametrize(("factor", "known"), [(0.0, False), (1e9, True)])
def test_a_fit_out_of_time_has_as_long_again(factor, known, monkeypatch):
    settings, stop = LoopSettings(grace=1e-9, first_grace=factor), core.Stop()
    monkeypatch.setattr(Loop, "settings", settings)
    solution = solve(
        problem("hinge"), BlockSolver(), tol=1e-9, stop=stop,
        on_epoch=lambda info: stop.set_deadline(-1.0),
    )  # fmt: skip
    assert solution.certificate.status is Status.TIME_LIMIT
    assert (solution.certificate.relative_gap < math.inf) == known
