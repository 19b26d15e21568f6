"""Numbers that are not finite end a fit with the best model, in every solver."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dualgap import kernel
from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems import RegressionProblem
from dualgap.problems.crammer_singer import CrammerSingerProblem
from dualgap.problems.one_class import OneClassProblem
from dualgap.solvers import solvers_of
from dualgap.solvers.base import State
from dualgap.training import solve

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
TARGET = X @ [1.0, -2.0, 0.5] + 0.5 * RNG.normal(size=60)
Y = np.where(TARGET > 0, 1, -1).astype(np.int8)
RBF = kernel.RBF(gamma=0.5)


def joint():
    classes = np.digitize(TARGET, [-1.0, 1.0])
    return CrammerSingerProblem(Problem(X, Y, 1.0), classes, 3)


#: Problems of every kind. A solver takes those that it accepts.
PROBLEMS = {
    "binary": [
        lambda loss=loss, free=free: Problem(
            X, Y, 1.0, loss=loss, fit_intercept=True, penalize_intercept=not free
        )
        for loss in ("hinge", "squared_hinge")
        for free in (False, True)
    ],
    "regression": [
        lambda loss=loss: RegressionProblem(X, TARGET, 5.0, loss=loss)
        for loss in ("epsilon_insensitive", "squared_epsilon_insensitive")
    ],
    "one-class": [lambda: OneClassProblem(X + 3.0, 0.3)],
    "crammer-singer": [joint],
    "kernel": [
        lambda loss=loss, free=free: kernel.KernelProblem(
            X, Y, 1.0, kernel=RBF, loss=loss, penalize_intercept=not free
        )
        for loss in ("hinge", "squared_hinge")
        for free in (False, True)
    ],
    "kernel-regression": [lambda: kernel.KernelRegression(X, TARGET, kernel=RBF)],
    "kernel-one-class": [lambda: kernel.KernelOneClass(X, 0.3, kernel=RBF)],
    "kernel-simplex": [lambda: kernel.KernelSimplex(X, kernel=RBF)],
}
PAIRS = [(kind, name) for kind in PROBLEMS for name in solvers_of(kind)]


class Poisoned:
    """An object of the core whose numbers are NaN."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return spoilt(getattr(self.inner, name))


def spoilt(value):
    """Return the value with NaN in place of its numbers; arrays are overwritten."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and value.flags.writeable:
            value[...] = math.nan
        return value
    if isinstance(value, float):
        return math.nan
    if isinstance(value, State):
        spoil(value)
        return value
    if type(value).__module__.startswith("dualgap._core") and type(
        value
    ).__name__ not in ("Random", "Stop", "Loss", "Team"):
        return Poisoned(value)
    return value


#: What the loop sets in a state, and what a solver does not change.
KEPT = {"problem", "whole", "rng", "stop", "tol", "resources", "order", "q"}


def spoil(state):
    for field in dataclasses.fields(state):
        if field.name not in KEPT and hasattr(state, field.name):
            setattr(state, field.name, spoilt(getattr(state, field.name)))


@pytest.mark.cases(None)
@pytest.mark.parametrize("after", [1, 2])
@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_a_step_that_is_not_finite_ends_the_fit(kind, name, after, monkeypatch):
    record = solvers_of(kind)[name]
    tried = 0
    for make in PROBLEMS[kind]:
        problem, solver = make(), record()
        try:
            solver.check(problem)
        except ValueError:
            continue
        done = []
        step = record.step

        def poisoned(self, state, stop, step=step, done=done):
            step(self, state, stop)
            done.append(state.epochs)
            if len(done) == after:
                spoil(state)

        monkeypatch.setattr(record, "step", poisoned)
        found = solve(problem, solver, tol=1e-9, max_iter=200)
        monkeypatch.undo()
        certificate = found.certificate
        for values in (found.w, found.alpha, certificate.primal, certificate.dual):
            assert np.isfinite(values).all()
        assert certificate.dual <= certificate.primal
        if len(done) >= after and not certificate.certified:
            assert certificate.status in (Status.STALLED, Status.SAMPLED)
        tried += 1
    assert tried
