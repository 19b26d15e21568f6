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
        return self.idle is not None


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


def test_what_is_within_tol_at_the_end_is_certified_whatever_ended_it(problem, best):
    solver = Scripted(((best.w, best.alpha),), ((1e9, 1e-9),))
    for limits in ({"max_iter": 5}, {"time_limit": 0.05}):
        solution = solve(problem, solver, tol=1e-6, **limits)
        check(problem, solution, best)
        assert solution.certificate.status is Status.CERTIFIED


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


def test_two_idle_passes_in_a_row_are_a_fixed_point(problem, best):
    pessimist = ((1e9, 1e-9),)
    solver = Scripted(points(best, 0.5), pessimist, idle=(3, 5, 6))
    solution = solve(problem, solver, tol=1e-6)
    check(problem, solution, best)
    assert solution.certificate.status is Status.STALLED
    assert "The solver cannot make further progress" in solution.certificate.message
    # The first idle pass is looked at and refused: not all rows may have been awake.
    assert solution.certificate.epochs == 6
    assert solver.rejected == [3, 5]

    solver = Scripted(points(best, 0.5, 0.4, 0.0), pessimist, idle=(3, 4))
    solution = solve(problem, solver, tol=1e-6)
    check(problem, solution, best)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.epochs == 3


def test_idle_passes_mean_nothing_to_a_method_that_is_not_monotone(problem, best):
    class Idle(Scripted):
        def step(self, state, stop):
            super().step(state, stop)
            state.updates = 0

    solver = Idle(points(best, 0.5), ((1e9, 1e-9),))
    solution = solve(problem, solver, tol=1e-6, max_iter=20)
    check(problem, solution, best)
    assert solution.certificate.status is Status.EPOCH_LIMIT
    assert solver.rejected == []


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

posix = pytest.mark.skipif(
    os.name != "posix", reason="one process cannot send itself Ctrl-C here"
)

PRELUDE = f"""
import json, os, signal, sys, threading, time
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from dualgap import core
from dualgap.training import solve
from dualgap.solvers import DCD
from long_epochs import make

def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)

def restored():
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler

report = {{}}
"""


def script(body: str) -> dict[str, Any]:
    """Run `body` after the prelude; what it stores in `report` comes back."""
    code = f"{PRELUDE}\n{body}\nprint(json.dumps(report))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@posix
def test_ctrl_c_ends_an_epoch_of_seconds_at_once_and_keeps_the_model():
    report = script("""
problem, solver = make()
solver.once_under_way(ctrl_c)
solution = solve(problem, solver, tol=1e-12, max_iter=2)
report["early"] = solver.left_early
certificate = solution.certificate
report["status"] = certificate.status.name
report["updates"] = certificate.updates
report["numbers"] = [certificate.primal, certificate.dual]
report["again"] = [problem.primal(solution.w), problem.dual(solution.alpha)]
report["restored"] = restored()
""")
    assert report["status"] == "INTERRUPTED"
    assert report["early"]
    assert report["numbers"] == pytest.approx(report["again"], rel=1e-10)
    assert report["numbers"][0] > report["numbers"][1] > 0.0
    assert report["updates"] > 0
    assert report["restored"]


@posix
def test_the_second_ctrl_c_raises():
    report = script("""
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
""")
    assert report == {"first": True, "raised": True, "restored": True}


@posix
def test_ctrl_c_between_epochs_ends_the_fit():
    report = script("""
problem, _ = make(1000, 5)
epochs = []

def on_epoch(info):
    epochs.append(info.epoch)
    if info.epoch == 3 and not info.final:
        signal.raise_signal(signal.SIGINT)

solution = solve(problem, DCD(), tol=1e-15, on_epoch=on_epoch)
report["status"] = solution.certificate.status.name
report["epochs"] = max(epochs)
report["restored"] = restored()
""")
    assert report["status"] == "INTERRUPTED"
    assert 3 <= report["epochs"] <= 4
    assert report["restored"]


@posix
def test_a_handler_of_the_program_stays_in_force():
    report = script("""
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
""")
    assert report == {
        "inside": True, "status": "EPOCH_LIMIT", "heard": 1, "after": True
    }  # fmt: skip


@posix
def test_what_a_handler_of_the_program_raises_passes_through_a_kernel():
    report = script("""
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
""")
    assert report["raised"] == "mine"
    assert report["early"]
    assert report["after"]


@posix
def test_ctrl_c_does_not_reach_a_fit_in_another_thread():
    report = script("""
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
""")
    assert report == {
        "default": True, "main": "KeyboardInterrupt", "alive": True, "early": True,
        "status": "INTERRUPTED", "restored": True,
    }  # fmt: skip


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


def test_on_epoch_is_told_of_every_epoch_in_order(problem, best):
    infos = []
    solution = solve(problem, SDCA(), tol=1e-4, on_epoch=infos.append)
    assert len(infos) > 5
    assert [info.epoch for info in infos] == list(range(1, len(infos) + 1))
    assert [info.final for info in infos] == [False] * (len(infos) - 1) + [True]
    assert infos[-1].exact
    for info, row in zip(infos, solution.history, strict=True):
        told = (
            info.epoch, info.seconds, info.primal, info.dual, info.exact, info.updates,
            info.solver
        )  # fmt: skip
        assert told == row.item()[: len(told)]
        assert info.relative_gap == (info.primal - info.dual) / info.dual


def test_the_end_is_told_too_when_it_is_not_certified(problem):
    infos = []
    solution = solve(problem, SDCA(), tol=1e-15, max_iter=4, on_epoch=infos.append)
    assert [info.epoch for info in infos] == [1, 2, 3, 4, 4]
    assert [info.final for info in infos] == [False] * 4 + [True]
    assert infos[-1].exact
    assert infos[-1].primal == solution.certificate.primal
    assert len(solution.history) == 5


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


def points(best, *mixtures):
    """Points that are this far from the optimum."""
    return tuple((best.w * (1 + t), best.alpha * (1 - min(t, 1.0))) for t in mixtures)


def test_the_best_model_is_kept_though_later_ones_are_worse(problem, best):
    solver = Scripted(points(best, 0.9, 0.5, 0.1, 0.3, 2.0, 0.6))
    solution = solve(problem, solver, tol=1e-9, max_iter=6, check_every=1)
    check(problem, solution, best)
    np.testing.assert_allclose(solution.w, best.w * 1.1, rtol=1e-15)
    assert solution.certificate.status is Status.EPOCH_LIMIT
    assert solution.certificate.epochs == 6
    expected = problem.certify(best.w * 1.1, best.alpha * 0.9)
    assert solution.certificate.primal == expected.primal
    assert solution.certificate.dual == expected.dual
    # The history tells what happened, the worse ones too.
    assert solution.history["primal"][-1] > solution.certificate.primal


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


def test_points_that_are_not_finite_are_never_kept(problem, best):
    good = points(best, 0.4)[0]
    nan = (np.full(4, math.nan), best.alpha)
    huge = (np.full(4, 1e200), best.alpha)
    nan_alpha = (best.w, np.full(60, math.nan))
    only_nan_alpha = (None, np.full(60, math.nan))
    for bad in (nan, huge, nan_alpha, only_nan_alpha):
        solver = Scripted((bad, good, bad))
        solution = solve(problem, solver, tol=1e-9, max_iter=3, check_every=1)
        check(problem, solution, best)
        np.testing.assert_allclose(solution.w, good[0], rtol=1e-15)
        assert solution.certificate.status is Status.EPOCH_LIMIT


@pytest.mark.parametrize("how", ["estimate", "state"])
def test_a_solver_that_diverges_has_stalled(problem, best, how, caplog):
    diverged = {"estimates": (BLIND, BLIND, (math.inf, 1.0))}
    if how == "state":
        diverged = {"finite": lambda epoch: epoch < 3}
    solver = Scripted(points(best, 0.5, 0.3, 5.0), **diverged)
    solution = solve(problem, solver, tol=1e-9, check_every=1)
    check(problem, solution, best)
    assert solution.certificate.status is Status.STALLED
    assert solution.certificate.epochs == 3
    np.testing.assert_allclose(solution.w, best.w * 1.3, rtol=1e-15)
    assert "scripted: epoch 3 ended with non-finite numbers" in caplog.text
    assert not solution.history["exact"][-1]


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


# Estimates that lie.


@pytest.mark.parametrize(
    "estimate",
    [
        (1.0, 1.0),
        (1.0, 2.0),
        (0.0, 0.0),
        (1e-9, 1e300),
        (1e9, 1e9),
        (1.0, math.inf),
    ],
)
def test_optimism_never_certifies(problem, best, estimate):
    solver = Scripted(points(best, 0.5), (estimate,))
    solution = solve(problem, solver, tol=1e-3, max_iter=50)
    check(problem, solution, best)
    assert solution.certificate.status is Status.EPOCH_LIMIT
    # What was refused is told to the solver.
    assert solver.rejected == list(range(1, 51))


@pytest.mark.parametrize("estimate", [(1.0, 1.0), (1e-9, 1e300), BLIND])
def test_an_optimist_that_gets_there_is_certified(problem, best, estimate):
    solver = Scripted(points(best, 0.5, 0.3, 0.2, 0.0), (estimate,))
    solution = solve(problem, solver, tol=1e-6, max_iter=50)
    check(problem, solution, best)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.epochs == 4
    assert solver.rejected == [1, 2, 3]


@pytest.mark.parametrize(
    "estimate",
    [(1e9, 1e-9), (1e300, -1e300), (1.0, -1.0), (5.0, 0.0), (1.0, -math.inf)],
)
def test_pessimism_ends_and_loses_nothing(problem, best, estimate, monkeypatch):
    calls = count_proofs(monkeypatch)
    solver = Scripted(((best.w, best.alpha),), (estimate,))
    solution = solve(problem, solver, tol=1e-6, max_iter=40)
    check(problem, solution, best)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.epochs == 40
    assert len(calls) == 1


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
