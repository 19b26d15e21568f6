"""Proofs that are told to leave: nothing false is promised, nothing proved is lost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualgap import SVC, core, load_model, save_model
from dualgap.certificate import Status
from dualgap.core import StoppedError
from dualgap.kernel import (
    RBF,
    SWAP,
    BlockSolver,
    Callable,
    KernelProblem,
    Precomputed,
)
from dualgap.problems.base import Claim, KernelHint
from dualgap.training import solve
from dualgap.training.loop import Loop, LoopSettings

from .data import look_first, make


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
