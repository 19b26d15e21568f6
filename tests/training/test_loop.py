"""The loop: what ends a fit, what it keeps, what it tells, and that it cannot be lied
to. The solvers here are small scripts; the real ones are in solvers/.
"""

from __future__ import annotations

import copy
import json
import logging
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dualgap import core
from dualgap.certificate import Status, relative_gap
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD, SDCA, SOLVERS, Pegasos, SGDs, SvmSGD
from dualgap.solvers.base import Solver, State, new_order
from dualgap.training import EpochInfo, Forecast, solve, told

from .. import long_epochs, qp
from ..long_epochs import LongEpochs

BLIND = (math.nan, math.nan)


@dataclass(frozen=True)
class Scripted(Solver):
    """Epoch k ends at point k, thinks estimate k, and the last ones go on for ever."""

    points: tuple[tuple[Any, Any], ...]
    estimates: tuple[tuple[float, float], ...] = (BLIND,)
    finite: Callable[[int], bool] = lambda epoch: True
    # Epochs that change nothing; None: the method is not monotone.
    idle: tuple[int, ...] | None = None
    falls: bool = False
    rejected: list[int] = field(default_factory=list)

    name: ClassVar[str] = "scripted"

    def start(self, problem, rng, warm):
        return ScriptedState(problem, rng, new_order(problem.n), script=self)

    def step(self, state, stop):
        state.epochs += 1
        state.visited += state.problem.n
        state.updates += self.idle is None or state.epochs not in self.idle
        state.primal, state.dual = pick(self.estimates, state.epochs)
        w, alpha = pick(self.points, state.epochs)
        # In place, as the solvers write.
        state.w = overwrite(state.w, w)
        state.alpha = overwrite(state.alpha, alpha)

    def iterate(self, state):
        return state.w, state.alpha

    def reject(self, state):
        self.rejected.append(state.epochs)

    @property
    def monotone(self):
        return self.idle is not None and not self.falls


@dataclass
class ScriptedState(State):
    script: Any = None
    w: Any = None
    alpha: Any = None

    def finite(self):
        return self.script.finite(self.epochs)


def pick(sequence, epoch):
    return sequence[min(epoch, len(sequence)) - 1]


def overwrite(old, new):
    if old is None or new is None:
        return None if new is None else np.array(new, dtype=float)
    old[:] = new
    return old


@pytest.fixture
def problem() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1, -1)
    return Problem(X, y, C=0.5)


@pytest.fixture
def best(problem) -> qp.Optimum:
    """The optimum of `problem`, by the reference."""
    return optimum(problem)


def optimum(problem) -> qp.Optimum:
    one = np.identity(problem.n)
    Z = np.array([problem.y[i] * problem.combine(one[i]) for i in range(problem.n)])
    Z *= problem.y[:, None]
    linear = not math.isinf(problem.loss.slope)
    return qp.optimum(Z, problem.cost, problem.loss.curvature, linear)


def check(problem, solution, best) -> None:
    """Assert the properties that every solution has."""
    certificate = solution.certificate
    below = 1e-12 * best.upper
    assert certificate.primal >= best.lower - below
    assert certificate.dual <= best.upper + below
    assert (solution.alpha >= 0).all()
    assert (solution.alpha <= problem.upper).all()
    close = {"rel": 1e-12, "abs": 1e-12}
    assert certificate.primal == pytest.approx(problem.primal(solution.w), **close)
    assert certificate.dual == pytest.approx(problem.dual(solution.alpha), **close)
    assert certificate.certified == certificate.meets(certificate.tol, certificate.atol)
    check_history(solution.history, certificate)


def check_history(history, certificate) -> None:
    assert history.dtype.names == (
        "epoch", "seconds", "primal", "dual", "exact", "updates", "solver", "predicted"
    )  # fmt: skip
    epochs = history["epoch"].tolist()
    if not epochs:
        assert certificate.epochs == 0
        return
    # One record per epoch, and one more where the last one is proved at the end.
    body = epochs[:-1] if len(epochs) > 1 and epochs[-1] == epochs[-2] else epochs
    assert body == list(range(body[0], len(body) + body[0]))
    assert body[0] in (0, 1)
    assert (np.diff(history["updates"]) >= 0).all()
    of_auto = {"dcd", "newton", "interior-point"}
    name, _, chosen = certificate.solver.partition(": ")
    assert set(history["solver"]) == set(chosen.split(", ") if chosen else [name])
    assert not chosen or (name == "auto" and set(chosen.split(", ")) <= of_auto)
    assert (np.diff(history["seconds"]) >= 0).all()
    assert history["seconds"][0] >= 0
    assert certificate.epochs == epochs[-1]
    assert certificate.updates == history["updates"][-1]
    assert certificate.seconds >= history["seconds"][-1]


# Scripted fits: what ends them, what they keep, and that no estimate is believed.

ODD: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "nan": lambda w, alpha: (math.nan * w, alpha),
    "huge": lambda w, alpha: (np.full(4, 1e200), alpha),
    "nan alpha": lambda w, alpha: (w, math.nan * alpha),
    "nan alpha alone": lambda w, alpha: (None, math.nan * alpha),
    "above": lambda w, alpha: (w, alpha + 3.0),
    "below": lambda w, alpha: (w, alpha - 3.0),
    "far": lambda w, alpha: (w, np.where(np.arange(60) % 2, 1e6, -1e6)),
    "above alone": lambda w, alpha: (None, alpha + 3.0),
    "below alone": lambda w, alpha: (None, alpha - 3.0),
    "far alone": lambda w, alpha: (None, np.where(np.arange(60) % 2, 1e6, -1e6)),
}


def points(best, *distances):
    """Points that are this far from the optimum, or odd."""
    return tuple(
        ODD[t](best.w, best.alpha)
        if isinstance(t, str)
        else (best.w * (1 + t), best.alpha * (1 - min(t, 1.0)))
        for t in distances
    )


@dataclass(frozen=True)
class Story:
    """Distances of the points, and the end of the fit."""

    distances: tuple[float | str, ...]
    status: Status
    epochs: int | None
    kept: int | None = None  # epoch of the model that is returned
    estimates: tuple[tuple[float, float], ...] = (BLIND,)
    rejected: list[int] | None = None  # epochs whose proofs were told to the solver
    proofs: int | None = None
    told: str = ""  # in the message or the log
    solver: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


PESSIMIST = ((1e9, 1e-9),)
CERTIFIED, LIMIT, STALLED = Status.CERTIFIED, Status.EPOCH_LIMIT, Status.STALLED
EVERY = {"max_iter": 3, "check_every": 1}
STORIES = [
    # What is within tol at the end is certified, whatever ended it.
    Story((0.0,), CERTIFIED, 5, 1, PESSIMIST, options={"max_iter": 5}),
    Story((0.0,), CERTIFIED, None, 1, PESSIMIST, options={"time_limit": 0.05}),
    # Two idle passes in a row are a fixed point. The first idle pass is looked at and
    # refused: not all rows may have been awake.
    Story((0.5,), STALLED, 6, 1, PESSIMIST, [3, 5], solver={"idle": (3, 5, 6)},
          told="The solver cannot make further progress"),
    Story((0.5, 0.4, 0.0), CERTIFIED, 3, 3, PESSIMIST, [], solver={"idle": (3, 4)}),
    # They mean nothing to a method that is not monotone.
    Story((0.5,), LIMIT, 20, 1, PESSIMIST, [], options={"max_iter": 20},
          solver={"idle": (*range(1, 21),), "falls": True}),
    # The best model is kept though later ones are worse, or no numbers.
    Story((0.9, 0.5, 0.1, 0.3, 2.0, 0.6), LIMIT, 6, 3,
          options={"max_iter": 6, "check_every": 1}),
    *(Story((odd, 0.4, odd), LIMIT, 3, 2, options=EVERY)
      for odd in ("nan", "huge", "nan alpha", "nan alpha alone")),
    # A solver that diverges has stalled.
    *(Story((0.5, 0.3, 5.0), STALLED, 3, 2, options={"check_every": 1},
            told="scripted: epoch 3 ended with non-finite numbers", **how)
      for how in ({"estimates": (BLIND, BLIND, (math.inf, 1.0))},
                  {"solver": {"finite": lambda epoch: epoch < 3}})),
    # A solver whose dual points are outside the box gets a true certificate.
    *(Story((odd,), LIMIT, 3, options={"tol": 1e-9, "max_iter": 3})
      for odd in ("above", "below", "far", "above alone", "below alone", "far alone")),
    # Optimism never certifies, and ends with the proof of the first point that does.
    *(Story((0.5,), LIMIT, 50, 1, (estimate,), [*range(1, 51)],
            options={"tol": 1e-3, "max_iter": 50})
      for estimate in ((1.0, 1.0), (1.0, 2.0), (0.0, 0.0), (1e-9, 1e300), (1e9, 1e9),
                       (1.0, math.inf))),
    *(Story((0.5, 0.3, 0.2, 0.0), CERTIFIED, 4, 4, (estimate,), [1, 2, 3],
            options={"max_iter": 50})
      for estimate in ((1.0, 1.0), (1e-9, 1e300), BLIND)),
    # Pessimism ends and loses nothing.
    *(Story((0.0,), CERTIFIED, 40, 1, (estimate,), proofs=1, options={"max_iter": 40})
      for estimate in ((1e9, 1e-9), (1e300, -1e300), (1.0, -1.0), (5.0, 0.0),
                       (1.0, -math.inf))),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize("story", STORIES)
def test_what_comes_of_a_script(problem, best, story, monkeypatch, caplog):
    some, calls = points(best, *story.distances), count_proofs(monkeypatch)
    solver = Scripted(some, story.estimates, **story.solver)
    solution = solve(problem, solver, **{"tol": 1e-6, **story.options})
    proofs, certificate = len(calls), solution.certificate
    check(problem, solution, best)
    assert certificate.status is story.status
    assert story.epochs in (None, certificate.epochs)
    assert story.rejected in (None, solver.rejected)
    assert story.proofs in (None, proofs)
    assert story.told in certificate.message + caplog.text
    if story.kept is None:
        assert not certificate.certified
        return
    w, alpha = pick(some, story.kept)
    np.testing.assert_allclose(solution.w, w, rtol=1e-15)
    expected = problem.certify(w, alpha)
    assert certificate.primal == expected.primal
    assert certificate.dual == expected.dual
    # The history tells what happened, the worse points too.
    if not any(isinstance(distance, str) for distance in story.distances):
        exact = solution.history[solution.history["exact"]]
        for epoch, primal in exact[["epoch", "primal"]].tolist():
            assert primal == problem.certify(*pick(some, epoch)).primal


# What ends a fit.


@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("solver", [DCD(), SDCA()], ids=lambda s: s.name)
def test_tol(problem, best, solver, tol):
    solution = solve(problem, solver, tol=tol)
    check(problem, solution, best)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.tol == tol
    assert solution.certificate.solver == solver.name
    # And it does not go far beyond what was asked.
    easier = solve(problem, solver, tol=100 * tol)
    assert easier.certificate.epochs <= solution.certificate.epochs


@pytest.mark.parametrize("atol", [10.0, 0.1, 1e-3, 1e-9])
@pytest.mark.parametrize("solver", [DCD(), SDCA(), Pegasos()], ids=lambda s: s.name)
def test_atol_ends_a_fit_at_the_first_proof_of_it(problem, best, solver, atol):
    options = {"tol": 1e-15, "check_every": 1, "max_iter": 300}
    every = solve(problem, solver, **options).history
    reached = every["exact"] & (every["primal"] - every["dual"] <= atol)
    found = solve(problem, solver, atol=atol, **options)
    check(problem, found, best)
    assert found.certificate.atol == atol
    if reached.any():
        assert found.certificate.status is Status.CERTIFIED
        assert found.certificate.epochs == every["epoch"][reached][0]
        assert found.certificate.gap <= atol
        assert found.certificate.message.endswith(f" (target: a gap of {atol:g}).")
    else:
        assert found.certificate.status is Status.EPOCH_LIMIT
        assert f" % or a gap of {atol:g}). Stopped" in found.certificate.message


@pytest.mark.parametrize("solver", [DCD(), SDCA(), SGDs()], ids=lambda s: s.name)
def test_atol_is_proved_without_being_asked_to_check(problem, best, solver):
    found = solve(problem, solver, tol=1e-15, atol=0.01, max_iter=5000)
    check(problem, found, best)
    assert found.certificate.certified
    assert 1e-6 < found.certificate.gap <= 0.01  # and no further


def test_of_tol_and_atol_the_looser_one_ends_a_fit(problem, best):
    by_tol = solve(problem, SDCA(), tol=1e-2)
    assert by_tol.certificate.message.endswith("(target 1 %).")
    both = solve(problem, SDCA(), tol=1e-2, atol=1e-12)
    check(problem, both, best)
    np.testing.assert_array_equal(both.w, by_tol.w)
    assert both.certificate.epochs == by_tol.certificate.epochs
    assert both.certificate.message == by_tol.certificate.message


def test_the_proof_that_meets_atol_is_kept_not_that_of_the_least_relative_gap(problem):
    best = optimum(problem)
    size = best.lower

    def scaled(value, goal):
        low, high = (1.0, 100.0) if goal > size else (1.0, 0.0)
        for _ in range(100):
            middle = 0.5 * (low + high)
            far = abs(value(middle) - size) > abs(goal - size)
            low, high = (low, middle) if far else (middle, high)
        return low

    poor_w = scaled(lambda s: problem.primal(best.w * s), 3.0 * size) * best.w
    poor_dual = scaled(lambda s: problem.dual(best.alpha * s), 0.1 * size) * best.alpha
    # Relative gaps of 2 and 9, gaps of 2 and 0.9 times the optimum.
    points = ((poor_w, best.alpha), (best.w, poor_dual))
    found = solve(problem, Scripted(points), tol=1e-6, atol=1.5 * size, check_every=1)
    assert found.certificate.certified
    assert found.certificate.epochs == 2
    np.testing.assert_array_equal(found.w, best.w)


def test_atol_bounds_the_lambda_scale_after_division(problem):
    """P - D <= eps/lambda is a gap of eps for lambda/2 |w|^2 + the mean loss."""
    lambda_ = 1.0 / (problem.n * 0.5)
    eps = 1e-3
    found = solve(problem, SDCA(), tol=1e-15, atol=eps / lambda_)
    w = found.w
    losses = problem.loss.value(problem.margins(w)).mean()
    primal = 0.5 * lambda_ * (w @ w) + losses
    assert primal == pytest.approx(lambda_ * found.certificate.primal, rel=1e-10)
    assert primal - lambda_ * found.certificate.dual <= eps * (1 + 1e-9)


def test_atol_with_a_dual_value_below_zero_has_no_relative_gap(problem):
    zero = np.zeros(problem.n)
    primal = problem.primal(np.zeros(problem.width))
    found = solve(
        problem, Scripted(((np.zeros(problem.width), zero),)), tol=1e-6,
        atol=2 * primal, check_every=1,
    )  # fmt: skip
    assert found.certificate.dual <= 0.0
    assert found.certificate.certified
    assert found.certificate.message == (
        f"Converged: at most {2 * primal:g} above the optimum (target: a gap of "
        f"{2 * primal:g})."
    )


def test_less_accuracy_takes_fewer_epochs(problem):
    epochs = [
        solve(problem, SDCA(), tol=tol).certificate.epochs for tol in (0.1, 1e-4, 1e-8)
    ]
    assert epochs[0] < epochs[1] < epochs[2]


def test_a_dual_method_that_can_go_no_further_has_stalled(problem, best):
    dcd = (DCD(shrinking=rule) for rule in ("sleep", "hsieh", "none"))
    for solver in (*dcd, SDCA(), SDCA(order="cyclic")):
        solution = solve(problem, solver, tol=1e-300, max_iter=10**6)
        check(problem, solution, best)
        status = solution.certificate.status
        # Unless rounding leaves no gap at all.
        assert status is Status.STALLED or solution.certificate.gap <= 0.0
        assert solution.certificate.relative_gap < 1e-13
        assert solution.certificate.epochs < 10**5


def test_a_stop_that_is_requested_already(problem, best):
    stop = core.Stop()
    stop.request()
    for name in SOLVERS:
        solution = solve(problem, SOLVERS[name](), stop=stop)
        check(problem, solution, best)
        assert solution.certificate.status is Status.INTERRUPTED
        assert solution.certificate.epochs == 0
        assert not solution.w.any()


# Time. Nothing here depends on how fast the machine is, or on what else it does: what
# is to happen in the midst of an epoch waits for the epoch, which takes many seconds.


@pytest.fixture(scope="module")
def long() -> tuple[Problem, LongEpochs]:
    """Rows, and a solver whose epochs take many seconds."""
    return long_epochs.make()


@pytest.mark.parametrize(
    "limits", [*({"max_iter": k} for k in (1, 2, 5, 7)), {"time_limit": 1e-9}], ids=str
)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_fit_that_is_cut_short(problem, best, name, limits):
    steps = []
    solution = solve(
        problem, SOLVERS[name](), tol=1e-15,
        on_epoch=lambda info: steps.append(info.epoch), **limits,
    )  # fmt: skip
    check(problem, solution, best)
    certificate, (limit,) = solution.certificate, limits
    assert max(steps) == certificate.epochs <= limits.get("max_iter", np.inf)
    if certificate.status is Status.STALLED:  # solved to rounding level before
        assert certificate.relative_gap < 1e-9
    else:
        assert (
            certificate.status.name == {"m": "EPOCH", "t": "TIME"}[limit[0]] + "_LIMIT"
        )
        assert f"Stopped at {limit}: raise it" in certificate.message
        assert limit == "time_limit" or certificate.epochs == limits[limit]


def test_a_time_limit_is_used_up_and_ends_a_fit(problem, best):
    solver = Scripted(points(best, 0.5), ((1e9, 1e-9),))
    begun = time.perf_counter()
    solution = solve(problem, solver, tol=1e-6, time_limit=0.05, max_iter=10**9)
    took = time.perf_counter() - begun
    check(problem, solution, best)
    assert solution.certificate.status is Status.TIME_LIMIT
    assert "Stopped at time_limit: raise it" in solution.certificate.message
    assert 0.05 <= solution.certificate.seconds <= took


def test_a_deadline_ends_an_epoch_of_seconds_and_leaves_the_state_whole(long):
    large, solver = long
    stop = core.Stop()
    watch = solver.once_under_way(lambda: stop.set_deadline(-1.0))
    solution = solve(large, solver, tol=1e-12, stop=stop, max_iter=3)
    watch.join()
    certificate = solution.certificate
    assert certificate.status is Status.TIME_LIMIT
    assert certificate.epochs == 1
    assert solver.left_early
    # The model is that of the dual point.
    assert certificate.primal == pytest.approx(large.primal(solution.w), rel=1e-10)
    assert certificate.dual == pytest.approx(large.dual(solution.alpha), rel=1e-10)
    assert 0 < certificate.dual < certificate.primal
    assert certificate.updates > 0


@pytest.fixture(scope="module")
def wide() -> Problem:
    """Some six times as much work as a kernel does between two looks at the clock."""
    return long_epochs.make(n=20_000, d=300)[0]


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_leaves_an_epoch_at_the_deadline(wide, name):
    work, step = [], SOLVERS[name].step

    def late(self, state, stop):
        """A step whose time is over when it begins."""
        stop.set_deadline(-1.0)
        step(self, state, stop)
        work.append(state.work)

    solver = type("Late", (SOLVERS[name],), {"step": late})()
    solution = solve(wide, solver, tol=1e-12, max_iter=100)
    certificate = solution.certificate
    assert certificate.status is Status.TIME_LIMIT
    assert certificate.primal >= certificate.dual >= 0.0
    (cut,) = work
    solver = SOLVERS[name]()
    state = solver.start(wide, core.Random(0), None)
    state.tol, state.stop = 1e-12, core.Stop()
    solver.step(state, state.stop)
    assert cut < 0.5 * state.work


def test_what_ends_early_is_proved_once(problem, best, monkeypatch):
    class Stopped(Scripted):
        def step(self, state, stop):
            super().step(state, stop)
            if state.epochs == 3:
                stop.request()

    calls = count_proofs(monkeypatch)
    solver = Stopped(points(best, 0.5), ((1e9, 1e-9), (1e9, 1e-9), BLIND))
    solution = solve(problem, solver)
    check(problem, solution, best)
    assert solution.certificate.status is Status.INTERRUPTED
    assert solution.certificate.epochs == 3
    assert len(calls) == 1


def count_proofs(monkeypatch) -> list[float]:
    calls = []
    prove = Problem.prove

    def counted(self, *points, **options):
        proof = prove(self, *points, **options)
        calls.append(proof.certificate.relative_gap)
        return proof

    monkeypatch.setattr(Problem, "prove", counted)
    return calls


# Ctrl-C.

PRELUDE = f"""
import json, math, os, signal, sys, threading, time
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from dualgap import core
from dualgap.training import solve
from dualgap.solvers import DCD
from long_epochs import make

def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)

def restored():
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler

def near(one, other):
    return math.isclose(one, other, rel_tol=1e-10)

report = {{}}
"""


#: What a process does, and what it has to report.
SCRIPTS: dict[str, tuple[str, dict[str, Any]]] = {
    "an epoch of seconds ends at once, and the model is kept": ("""
problem, solver = make()
solver.once_under_way(ctrl_c)
solution = solve(problem, solver, tol=1e-12, max_iter=2)
certificate = solution.certificate
report["early"] = solver.left_early
report["status"] = certificate.status.name
report["primal"] = near(certificate.primal, problem.primal(solution.w))
report["dual"] = near(certificate.dual, problem.dual(solution.alpha))
report["ordered"] = certificate.primal > certificate.dual > 0.0
report["updated"] = certificate.updates > 0
report["restored"] = restored()
""", {"early": True, "status": "INTERRUPTED", "primal": True, "dual": True,
      "ordered": True, "updated": True, "restored": True}),
    "the second one raises": ("""
problem, _ = make(1000, 5)

def on_epoch(info):
    signal.raise_signal(signal.SIGINT)
    report["first"] = True
    signal.raise_signal(signal.SIGINT)
    report["second"] = True

try:
    solve(problem, DCD(), tol=1e-15, on_epoch=on_epoch)
except KeyboardInterrupt:
    report["raised"] = True
report["restored"] = restored()
""", {"first": True, "raised": True, "restored": True}),
    "between epochs it ends the fit": ("""
problem, _ = make(1000, 5)
epochs = []

def on_epoch(info):
    epochs.append(info.epoch)
    if info.epoch == 3 and not info.final:
        signal.raise_signal(signal.SIGINT)

solution = solve(problem, DCD(), tol=1e-15, on_epoch=on_epoch)
report["status"] = solution.certificate.status.name
report["soon"] = 3 <= max(epochs) <= 4
report["restored"] = restored()
""", {"status": "INTERRUPTED", "soon": True, "restored": True}),
    "a handler of the program stays in force": ("""
problem, _ = make(1000, 5)
heard = []

def mine(number, frame):
    heard.append(number)

def on_epoch(info):
    report["inside"] = signal.getsignal(signal.SIGINT) is mine
    if info.epoch == 2:
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, mine)
solution = solve(problem, DCD(), tol=1e-15, max_iter=5, on_epoch=on_epoch)
report["status"] = solution.certificate.status.name
report["heard"] = len(heard)
report["after"] = signal.getsignal(signal.SIGINT) is mine
""", {"inside": True, "status": "EPOCH_LIMIT", "heard": 1, "after": True}),
    "what a handler of the program raises passes through a kernel": ("""
problem, solver = make()

def mine(number, frame):
    raise RuntimeError("mine")

signal.signal(signal.SIGINT, mine)
solver.once_under_way(ctrl_c)
try:
    solve(problem, solver, tol=1e-12, max_iter=2)
except RuntimeError as error:
    report["raised"] = str(error)
state = solver.begun[-1]
report["early"] = len(solver.begun) == 1 and state.visited < len(solver.visits)
report["after"] = signal.getsignal(signal.SIGINT) is mine
""", {"raised": "mine", "early": True, "after": True}),
    "it does not reach a fit in another thread": ("""
problem, solver = make()
stop = core.Stop()
out = []

def work():
    out.append(solve(problem, solver, tol=1e-12, stop=stop, max_iter=2))

thread = threading.Thread(target=work)
solver.once_under_way(ctrl_c)
try:
    thread.start()
    while thread.is_alive():
        time.sleep(0.01)
except KeyboardInterrupt:
    report["main"] = "KeyboardInterrupt"
report["default"] = restored()
report["alive"] = thread.is_alive()
stop.request()
thread.join()
report["early"] = solver.left_early
report["status"] = out[0].certificate.status.name
report["restored"] = restored()
""", {"default": True, "main": "KeyboardInterrupt", "alive": True, "early": True,
      "status": "INTERRUPTED", "restored": True}),
}  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="no process sends itself Ctrl-C here")
@pytest.mark.cases(None)
@pytest.mark.parametrize("name", SCRIPTS)
def test_ctrl_c(name):
    body, expected = SCRIPTS[name]
    code = f"{PRELUDE}\n{body}\nprint(json.dumps(report))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == expected


def test_a_stop_requested_by_another_thread(long):
    large, solver = long
    stop = core.Stop()
    watch = solver.once_under_way(stop.request)
    solution = solve(large, solver, tol=1e-12, stop=stop, max_iter=2)
    watch.join()
    assert solver.left_early
    assert solution.certificate.status is Status.INTERRUPTED
    assert solution.certificate.dual > 0.0


# Callbacks.


@pytest.mark.parametrize("options", [{"tol": 1e-4}, {"tol": 1e-15, "max_iter": 4}])
def test_on_epoch_is_told_of_every_epoch_in_order(problem, options):
    infos = []
    solution = solve(problem, SDCA(), on_epoch=infos.append, **options)
    epochs = [info.epoch for info in infos]
    if "max_iter" in options:  # no proof has certified it: it is proved once more
        assert epochs == [1, 2, 3, 4, 4]
    else:
        assert epochs == [*range(1, len(infos) + 1)]
        assert len(infos) > 5
    assert [info.final for info in infos] == [False] * (len(infos) - 1) + [True]
    assert infos[-1].exact
    assert infos[-1].primal == solution.certificate.primal
    for info, row in zip(infos, solution.history, strict=True):
        told = (
            info.epoch, info.seconds, info.primal, info.dual, info.exact, info.updates,
            info.solver
        )  # fmt: skip
        assert told == row.item()[: len(told)]
        assert info.relative_gap == (info.primal - info.dual) / info.dual


@pytest.mark.parametrize("name", SOLVERS)
def test_what_is_told_as_exact_is_true_of_the_model(problem, best, name):
    exact = []

    def on_epoch(info):
        w = info.model()
        assert w.shape == (problem.width,)
        if info.exact and not info.final:
            exact.append(info.epoch)
            assert info.primal == pytest.approx(problem.primal(w), rel=1e-12)
            assert info.primal >= best.lower * (1 - 1e-12)
            assert info.dual <= best.upper * (1 + 1e-12)

    solution = solve(
        problem, SOLVERS[name](), tol=1e-15, max_iter=7, check_every=2,
        on_epoch=on_epoch,
    )  # fmt: skip
    # The last epoch of a solver that can go no further is told by the final proof.
    assert set(exact) >= {e for e in (2, 4, 6) if e < solution.certificate.epochs}
    history = solution.history[:-1]
    told = history["epoch"][history["exact"]].tolist()
    assert told == exact


def test_on_epoch_may_end_the_fit(problem, best):
    solution = solve(problem, SDCA(), tol=1e-15, on_epoch=lambda i: i.epoch == 3)
    check(problem, solution, best)
    assert solution.certificate.status is Status.INTERRUPTED
    assert solution.certificate.epochs == 3
    assert "Stopped by Ctrl-C or by a callback" in solution.certificate.message


def test_the_time_of_callbacks_is_not_counted(problem):
    told, away = [], []

    def slow(info):
        begun = time.perf_counter()
        told.append(info.seconds)
        time.sleep(0.1)
        away.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    solution = solve(problem, SDCA(), tol=1e-15, max_iter=5, on_epoch=slow)
    most = time.perf_counter() - begun - sum(away)
    assert len(told) >= 5
    assert solution.certificate.seconds <= most
    assert max(told) <= most
    assert (solution.history["seconds"] <= most).all()


class MineError(Exception):
    pass


@pytest.fixture
def default_handler():
    """Python's own Ctrl-C, whatever runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("at", ["first", "final"])
def test_what_on_epoch_raises_passes_through(problem, default_handler, at):
    inside = []

    def on_epoch(info):
        inside.append(signal.getsignal(signal.SIGINT))
        if info.final == (at == "final"):
            raise MineError

    with pytest.raises(MineError):
        solve(problem, SDCA(), on_epoch=on_epoch)
    assert inside[0] is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_solver_raises_passes_through(problem, default_handler):
    class Broken(Scripted):
        def step(self, state, stop):
            raise MineError

    with pytest.raises(MineError):
        solve(problem, Broken(((None, None),)))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# History, log.


def test_the_log(problem, caplog, capfd):
    caplog.set_level(logging.DEBUG, logger="dualgap")
    solution = solve(problem, SDCA(), tol=1e-4)
    assert {record.name for record in caplog.records} == {"dualgap"}
    epochs = [line for line in caplog.messages if " epoch " in line]
    assert len(epochs) == len(solution.history)
    assert epochs[0].startswith("sdca epoch 1  primal ~")
    assert "~" not in epochs[-1]  # a proof, not an estimate
    assert set(caplog.messages) - set(epochs) == {str(solution.certificate)}
    assert capfd.readouterr() == ("", "")


def test_nothing_is_printed_or_logged_by_default(problem, capfd, caplog):
    for name in SOLVERS:
        solve(problem, SOLVERS[name](), max_iter=3)
    assert capfd.readouterr() == ("", "")
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


# The best model is kept.


def test_the_best_dual_point_is_kept_though_the_solver_writes_over_it(problem, best):
    alphas = [best.alpha * t for t in (0.2, 0.9, 0.4)]
    solver = Scripted(tuple((None, alpha) for alpha in alphas))
    solution = solve(problem, solver, tol=1e-9, max_iter=3, check_every=1)
    check(problem, solution, best)
    assert (solution.alpha == alphas[1]).all()
    np.testing.assert_allclose(solution.w, problem.combine(alphas[1]), rtol=1e-15)


def test_real_solvers_keep_their_best_model(problem):
    """The primal values of DCD go up and down."""
    for seed in range(20):
        solution = solve(
            problem, DCD(), tol=1e-12, max_iter=6, check_every=1, random_state=seed
        )
        exact = solution.history[solution.history["exact"]]
        gaps = (exact["primal"] - exact["dual"]) / exact["dual"]
        assert solution.certificate.relative_gap == gaps.min()
        check(problem, solution, optimum(problem))


def test_certified_is_about_the_model_that_is_returned():
    """The smaller gap may be the larger one in relation to D."""
    problem = Problem(np.identity(2), [1, 1], C=10.0)  # P* = 1
    first = (np.full(2, 1.00136), np.array([1.0, 0.5158]))
    second = (np.full(2, 1.04690), np.array([1.0, 0.9144]))
    one, two = problem.certify(*first), problem.certify(*second)
    tol = 0.1
    assert one.gap < two.gap
    assert one.relative_gap > tol > two.relative_gap
    solution = solve(problem, Scripted((first, second)), tol=tol, check_every=1)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.relative_gap <= tol
    assert (solution.w == second[0]).all()


# Numbers that are none.


def test_nothing_finite_leaves_the_zero_model(problem, best):
    solver = Scripted(((np.full(4, math.nan), np.full(60, math.nan)),))
    infos = []
    for finite in (lambda epoch: True, lambda epoch: False):
        solver = Scripted(solver.points, finite=finite)
        solution = solve(problem, solver, max_iter=3, on_epoch=infos.append)
        check(problem, solution, best)
        assert not solution.w.any()
        assert not solution.alpha.any()
        assert solution.certificate.primal == pytest.approx(
            problem.cost.sum(), rel=1e-14
        )
        assert solution.certificate.dual == 0.0
        assert solution.certificate.relative_gap == math.inf
        assert not solution.certificate.certified
        assert infos[-1].final
        assert (infos[-1].model() == solution.w).all()


def test_a_real_solver_that_diverges():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    y = rng.choice([-1, 1], 50)
    problem = Problem(X, y, loss="squared_hinge")
    solution = solve(problem, SvmSGD(initial_step=1e300))
    check(problem, solution, optimum(problem))
    assert solution.certificate.status is Status.STALLED
    assert np.isfinite(solution.w).all()


@pytest.mark.parametrize("with_w", [True, False])
def test_dual_points_outside_the_box_bound_nothing(problem, best, with_w):
    """A solver that is wrong gets a true certificate all the same."""
    w = best.w if with_w else None
    above = best.alpha + 3.0
    below = best.alpha - 3.0
    worse = np.where(np.arange(60) % 2, 1e6, -1e6)
    for alpha in (above, below, worse):
        solution = solve(problem, Scripted(((w, alpha),)), tol=1e-9, max_iter=3)
        check(problem, solution, best)
        assert not solution.certificate.certified


def test_the_optimism_of_an_estimate_is_learnt(problem, best, monkeypatch):
    """Thirty times too hopeful, for a thousand epochs: not thirty exact passes."""
    calls = count_proofs(monkeypatch)
    mixtures = 0.5 * 0.99 ** np.arange(1, 1001)
    gaps = [problem.certify(w, a).gap for w, a in points(best, *mixtures)]
    calls.clear()
    estimates = tuple((best.lower + gap / 30, best.lower) for gap in gaps)
    solver = Scripted(points(best, *mixtures), estimates)
    solution = solve(problem, solver, tol=1e-4, max_iter=1000)
    check(problem, solution, best)
    assert solution.certificate.status is Status.CERTIFIED
    assert len(calls) <= 5
    # And it is not late: the first epoch that would do is not long past.
    first = next(i for i, gap in enumerate(gaps) if gap <= 1e-4 * best.lower) + 1
    assert first <= solution.certificate.epochs <= first + 20


@dataclass(frozen=True)
class Mending(Scripted):
    """Scripted solver whose estimate a rejected proof makes exact."""

    mends_estimate: ClassVar[bool] = True


def test_an_estimate_that_was_mended_is_trusted_again(problem, best):
    """Thirty times too hopeful up to the first exact pass, and exact from then on."""
    mixtures = 0.5 * 0.99 ** np.arange(1, 1501)
    some = points(best, *mixtures)
    gaps = [problem.certify(w, a).gap for w, a in some]
    hopeful = next(i for i, gap in enumerate(gaps) if gap <= 30e-4 * best.lower)
    estimates = tuple(
        (best.lower + gap / (30 if i <= hopeful else 1), best.lower)
        for i, gap in enumerate(gaps)
    )
    first = next(i for i, gap in enumerate(gaps) if gap <= 1e-4 * best.lower) + 1
    # Where the loop does not know that it was mended, it proves after a quarter more.
    for kind, late in [(Mending, 2), (Scripted, first // 4)]:
        solution = solve(problem, kind(some, estimates), tol=1e-4, max_iter=1500)
        check(problem, solution, best)
        assert solution.certificate.status is Status.CERTIFIED
        assert 0 <= solution.certificate.epochs - first <= late


def test_without_estimates_exact_passes_are_ever_rarer(problem, best, monkeypatch):
    calls = count_proofs(monkeypatch)
    counts = {}
    for epochs in (10, 100, 1000, 10_000):
        calls.clear()
        solver = Scripted(points(best, 0.5))
        solution = solve(problem, solver, tol=1e-6, max_iter=epochs)
        assert solution.certificate.status is Status.EPOCH_LIMIT
        counts[epochs] = len(calls)
        assert solution.history["exact"].sum() == len(calls)
    # log(10)/log(1.25) = 10.3 passes per factor of ten.
    assert counts[100] - counts[10] <= 12
    assert counts[1000] - counts[100] <= 12
    assert counts[10_000] - counts[1000] <= 12
    assert counts[10_000] > counts[10]


def test_without_estimates_an_end_is_not_missed_by_much(problem, best):
    solver = Scripted(points(best, *np.full(99, 0.5), 0.0))
    solution = solve(problem, solver, tol=1e-6, max_iter=1000)
    check(problem, solution, best)
    assert solution.certificate.certified
    assert 100 <= solution.certificate.epochs <= 130


# Options.


@pytest.mark.parametrize("every", [1, 3, 10, 1000])
def test_check_every(problem, best, every):
    solver = Scripted(points(best, 0.5), ((1e9, 1e-9),))
    solution = solve(problem, solver, tol=1e-6, max_iter=30, check_every=every)
    history = solution.history
    expected = [epoch for epoch in range(1, 31) if epoch % every == 0]
    if 30 % every:  # the last epoch is proved anyway, by a closing pass of its own
        expected.append(30)
    assert len(history) == 30 + (30 % every > 0)
    assert history["epoch"][history["exact"]].tolist() == expected
    assert (history["primal"][~history["exact"]] == 1e9).all()
    true = problem.certify(*points(best, 0.5)[0])
    assert (history["primal"][history["exact"]] == true.primal).all()
    assert (history["dual"][history["exact"]] == true.dual).all()


@dataclass(frozen=True)
class Free(DCD):
    """DCD that goes on for nothing while it has read less than this."""

    free_work: ClassVar[float] = 0.0


def test_free_work_is_used_up_before_tol_ends_a_fit(problem, best):
    at_once = solve(problem, DCD(), tol=0.5)
    assert at_once.certificate.relative_gap > 1e-6
    Free.free_work = 1e9
    solution = solve(problem, Free(), tol=0.5)
    check(problem, solution, best)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.relative_gap <= 1e-12
    # Used up, tol ends it: (4 + 1) entries per row that was visited.
    Free.free_work = 5.0 * 60 * 10
    solution = solve(problem, Free(), tol=0.5)
    check(problem, solution, best)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.relative_gap > 1e-12
    assert at_once.certificate.epochs < solution.certificate.epochs
    assert 10 <= solution.certificate.epochs <= 80


def test_epoch_info_has_a_relative_gap():
    info = EpochInfo(1, 0.1, 3.0, 2.0, False, 5)
    assert info.relative_gap == relative_gap(3.0, 2.0) == 0.5


@pytest.mark.parametrize(
    "copied", [lambda i: pickle.loads(pickle.dumps(i)), copy.deepcopy, copy.copy]
)
def test_what_a_callback_is_told_can_be_sent_elsewhere(copied):
    problem, seen = Problem(np.identity(3), [1, -1, 1]), []

    def on_epoch(info):
        seen.append((info, copied(info), info.model()))

    solve(problem, DCD(), max_iter=3, tol=1e-12, on_epoch=on_epoch)
    for info, other, w in seen:
        assert repr(other) == repr(info)
        assert other.relative_gap == info.relative_gap
        assert other.model is None
        assert w.shape == (3,)
    assert seen


def test_the_forecast_of_a_steady_fall() -> None:
    forecast = Forecast(1e-4)
    assert math.isnan(forecast.left(1.0, math.inf))
    assert math.isnan(forecast.left(1.0, 1e-1))
    assert forecast.left(2.0, 1e-2) == pytest.approx(2.0)
    forecast = Forecast(1e-4)
    for k in range(1, 31):  # a power of ten in ten seconds
        left = forecast.left(k, 10 ** (-k / 10))
    assert left == pytest.approx(10.0)
    for k in range(31, 100):  # and then nothing: no promise
        left = forecast.left(k, 1e-3)
    assert math.isnan(left)


def test_an_epoch_as_a_line() -> None:
    def line(left: float, gap: float = 0.25, exact: bool = False) -> str:
        return told(EpochInfo(7, 3.0, 1.0 + gap, 1.0, exact, 9, "dcd"), 1e-3, left)

    start = "epoch 7  primal ~1.25  dual ~1  gap ~2.50e-01, target 0.001"
    assert line(math.nan) == line(math.inf) == start
    assert line(0.2) == f"{start}, about 1 s left"
    assert line(90.0) == f"{start}, about 90 s left"
    assert line(600.0) == f"{start}, about 10 min left"
    assert line(8000.0) == f"{start}, about 2 h left"
    assert "left" not in line(5.0, gap=1e-4)  # only the proof is missing
    assert "~" not in line(5.0, exact=True)
