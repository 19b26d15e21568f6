"""The outer loop that all solvers share.

A solver advances its state by one epoch and returns a cheap estimate of its primal and
dual value. This module does everything else: target accuracy, limits, Ctrl-C, the check
for non-finite numbers, history, callbacks and checkpoints. Estimates only decide when
to run an exact pass; a fit ends as certified only through :meth:`Problem.prove`.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..certificate import (
    Bounds,
    Certificate,
    Status,
    relative_gap,
    size_of_optimum,
)
from ..core import StoppedError
from ..io.model import Tensors
from ..losses import Vector
from ..problems.base import Claim, Problem, Proof
from ..solvers.base import Solver, State
from ..solvers.registry import check_kind
from .checkpoint import Checkpoint, freeze, freeze_state, identity, thaw, thaw_state

logger = logging.getLogger("dualgap")

# A gap below this multiple of the allowance for rounding counts as closed.
_ROUNDED = 1.25

# Seconds for the final proof after a fit was stopped.
GRACE = 0.1


@dataclass(frozen=True)
class EpochInfo:
    """Progress report that callbacks receive after every epoch.

    ``primal`` and ``dual`` are the solver's estimates (NaN where it has none) or, if
    ``exact`` is true, values of a full pass. ``solver`` is the method of the epoch.
    ``predicted`` is the number of products with the data that "auto" still expects.
    ``final`` marks the last call of a fit. ``model()`` computes the current w, shape
    (width,), or the decisions of a kernel model at the training rows. Call it only
    during the callback. Copies and pickles have None in its place, so send its result.
    """

    epoch: int
    seconds: float
    primal: float
    dual: float
    exact: bool
    updates: int
    solver: str = ""
    predicted: float = math.nan
    final: bool = False
    model: Callable[[], Vector] | None = field(default=None, repr=False, compare=False)

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.primal, self.dual)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "model": None}


def told(epoch: EpochInfo, tol: float, left: float) -> str:
    """Return an epoch as one line; ``~`` marks estimates without an exact pass.

    `left` are the seconds that the fit still needs, NaN if nothing is known.
    """

    def number(value: float, form: str) -> str:
        if not math.isfinite(value):
            return "-"
        return ("" if epoch.exact else "~") + format(value, form)

    line = (
        f"epoch {epoch.epoch}  primal {number(epoch.primal, '.6g')}  "
        f"dual {number(epoch.dual, '.6g')}  "
        f"gap {number(epoch.relative_gap, '.2e')}, target {tol:g}"
    )
    if not left < math.inf or epoch.relative_gap <= tol:
        return line
    for unit, seconds in (("h", 3600.0), ("min", 60.0)):
        if left >= 2 * seconds:
            return f"{line}, about {left / seconds:.0f} {unit} left"
    return f"{line}, about {max(left, 1.0):.0f} s left"


class Forecast:
    """Estimate of the time that a fit still needs, from the recent fall of its gap.

    Parameters
    ----------
    tol : float
        Relative gap at which the fit ends.
    """

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.points: list[tuple[float, float]] = []  # seconds, logarithm of the gap

    def left(self, seconds: float, gap: float) -> float:
        """Return the seconds left after an epoch; NaN if nothing is known yet."""
        if not 0.0 < gap < math.inf:
            return math.nan
        points, now = self.points, math.log(gap)
        if not points or now < points[-1][1] - _FALL:
            points.append((seconds, now))
        begun, high = next(
            (p for p in reversed(points) if p[0] <= 0.5 * seconds), points[0]
        )
        fallen = high - points[-1][1]
        if fallen <= 0.0 or seconds <= begun:
            return math.nan
        rate = fallen / (seconds - begun)
        return max(0.0, (points[-1][1] - math.log(self.tol)) / rate)


_FALL = 0.05  # smallest fall of the gap's logarithm that a forecast notes

HISTORY_DTYPE = np.dtype(
    [
        ("epoch", np.int64),
        ("seconds", np.float64),
        ("primal", np.float64),
        ("dual", np.float64),
        ("exact", np.bool_),
        ("updates", np.int64),
        ("solver", "U16"),
        ("predicted", np.float64),
    ]
)


@dataclass(frozen=True)
class Solution:
    """Result of a fit.

    Attributes
    ----------
    w : ndarray of shape (width,)
        The model; ``problem.coef(w)`` splits off the intercept. Empty for a kernel
        problem, whose model is ``problem.coef(alpha)``.
    alpha : ndarray of shape (n,)
        A feasible dual point. For dual solvers ``w = sum alpha_i y_i x_i``; `DCD` with
        acceleration returns the best multiple of that sum. Where "newton" or
        "interior-point" ends a fit, ``1/2 ||w - w(alpha)||^2 <= P - D``.
    certificate : Certificate
        Certificate of exactly this w and alpha.
    history : structured ndarray
        One record per epoch, and one for a final exact pass, with the fields epoch,
        seconds, primal, dual, exact, updates, solver (the method that made the epoch)
        and predicted (the products with the data that "auto" still expects, else NaN).
    bias : float or None
        Bias of a kernel or one-class model; None where w contains it.
    decisions : ndarray of shape (n,) or None
        Decisions at the training rows, for a kernel problem.
    """

    w: Vector
    alpha: Vector
    certificate: Certificate
    history: NDArray[np.void]
    bias: float | None = None
    decisions: Vector | None = None


@dataclass
class _Clock:
    """Clock of the fit in wall-clock seconds; it pauses while callbacks run."""

    begun: float = field(default_factory=time.perf_counter)
    away: float = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begun - self.away

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        left = time.perf_counter()
        try:
            yield
        finally:
            self.away += time.perf_counter() - left


def solve(
    problem: Problem,
    solver: Solver,
    *,
    tol: float = 1e-3,
    atol: float = 0.0,
    max_epochs: int = 10_000,
    time_limit: float | None = None,
    random_state: int = 0,
    warm: Vector | None = None,
    on_epoch: Callable[[EpochInfo], object] | None = None,
    stop: Any = None,
    check_every: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> Solution:
    """Train a model and prove its accuracy.

    Parameters
    ----------
    problem : Problem or KernelProblem
        The training problem.
    solver : Solver
        A record of hyper-parameters, such as ``solvers.SDCA(order="random")``.
    tol : float, default=1e-3
        Relative gap ``(P - D)/D`` to prove; it bounds ``(P - P*)/P*``.
    atol : float, default=0.0
        Gap ``P - D`` to prove; it bounds ``P - P*``. The fit ends once `tol` or `atol`
        is proved. 0 leaves it out. P is the objective of the certificate, with C. An
        accuracy eps of the objective with lambda, ``lambda/2 ||w||^2`` plus the mean
        loss, is ``atol = eps/lambda``, where ``lambda = 1/(n C)`` (with weights,
        ``1/sum_i c_i``).
    max_epochs : int, default=10000
        Largest number of epochs.
    time_limit : float, optional
        Seconds, including those spent in `on_epoch`.
    random_state : int, default=0
        Seed, from 0 to 2**64 - 1. The same seed gives the same model, bit for bit.
    warm : ndarray of shape (n,), optional
        Dual variables to start from; they are clipped to the box.
    on_epoch : callable, optional
        Called with an :class:`EpochInfo` after every epoch. A true return value ends
        the fit.
    stop : core.Stop, optional
        Request to stop that several fits share, so that they end together. They also
        share its deadline, which `time_limit` sets again.
    check_every : int, optional
        Number of epochs after which an exact pass is made, in addition to the passes
        that the estimates suggest.
    checkpoint : str or path-like, optional
        File for the state of the fit. If it exists and was written by a fit with the
        same data and arguments (except the limits), the fit resumes from it, and its
        result is the same bit for bit as without interruption. The file remains when
        the fit ends.
    checkpoint_every : float, default=60.0
        Seconds between two checkpoints. They are written after an epoch or, where rows
        are streamed to `DCD`, after a block of rows.

    Returns
    -------
    Solution
        The best model found, with its certificate.

    Raises
    ------
    TypeError
        If `solver` is not a solver record.
    ValueError
        If the solver cannot solve this problem, an argument is out of range, the
        checkpoint belongs to another fit, or another fit is writing it.
    """
    _check_arguments(tol, atol, max_epochs, time_limit, random_state, check_every)
    if not isinstance(solver, Solver):
        raise TypeError(
            f"solver={solver!r} is not a solver record; use one such as "
            "dualgap.DCD() or dualgap.SOLVERS['dcd']()"
        )
    check_kind(problem, solver)
    solver.check(problem)
    if warm is not None:
        warm = solver.check_warm(problem, warm)
    file = None
    if checkpoint is not None:
        data = _resumable(problem, solver, checkpoint_every)
        about = identity(data, solver, tol, atol, random_state, warm, check_every)
        file = Checkpoint(checkpoint, checkpoint_every, about)
    stop = stop if stop is not None else core.Stop()
    run = _Run(problem, solver, tol, atol, stop, on_epoch, file)
    if time_limit is not None:
        run.stop.set_deadline(time_limit)
    with file or contextlib.nullcontext(), ctrl_c(run.stop):
        found = None if file is None else file.read()
        state = solver.start(problem, core.Random(int(random_state)), warm)
        state.tol, state.stop, state.steps_left = tol, run.stop, solver.max_steps
        if found is not None:
            run.resume(state, *found)
        check = warm is not None and found is None and not solver.ends_itself
        with state.resources:
            return run.until_done(state, max_epochs, check_every, check)


def confirm(
    problem: Problem,
    solver: Solver,
    claim: Claim,
    epochs: Sequence[tuple[float, float, int]],
    *,
    method: str,
    tol: float,
    atol: float,
    seconds: float,
    on_epoch: Callable[[EpochInfo], object] | None = None,
) -> Solution | None:
    """Prove a claim that the core computed without the loop.

    Parameters
    ----------
    problem : Problem
    solver : Solver
        The record that the certificate names.
    claim : Claim
    epochs : sequence of tuple
        Estimates of P and D, and steps so far, after each epoch; at least one.
    method : str
        Name of the method in the history.
    tol, atol : float
        As for :func:`solve`.
    seconds : float
        Time of the computation.
    on_epoch : callable, optional
        As for :func:`solve`, but called once, with the proof.

    Returns
    -------
    Solution or None
        None if neither `tol` nor `atol` is proved.
    """
    run = _Run(problem, solver, tol, atol, core.Stop(), on_epoch)
    run.clock.away = -seconds
    proof = problem.prove(claim)
    exact = proof.certificate
    if not exact.meets(tol, atol):
        return None
    run.best = proof
    run.history = [
        (k, seconds, primal, dual, False, steps, method, math.nan)
        for k, (primal, dual, steps) in enumerate(epochs, 1)
    ]
    last = (run.clock.seconds, exact.primal, exact.dual, True)
    run.history[-1] = (len(epochs), *last, epochs[-1][2], method, math.nan)
    return run.finish(Status.CERTIFIED, None)


class _Run:
    """State of one fit: best proof so far, schedule of exact passes, history."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        tol: float,
        atol: float,
        stop: Any,
        on_epoch: Callable[[EpochInfo], object] | None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.problem, self.solver = problem, solver
        self.tol, self.atol = tol, atol
        self.stop, self.on_epoch = stop, on_epoch
        self.clock = _Clock()
        self.forecast, self.due = Forecast(tol), 1.0
        self.title = f"{problem.title}: " if problem.title else ""
        self.history: list[tuple[int, float, float, float, bool, int, str, float]] = []
        self.best: Proof | None = None
        self.factor = solver.check_factor
        self.next_blind_check = 1
        self.idle = 0  # epochs without a change, up to now
        self.checkpoint = checkpoint

    def save(self, state: State) -> None:
        """Write a checkpoint if one is due."""
        file = self.checkpoint
        if file is None or not file.due or not self.solver.resumable(state):
            return
        tensors: Tensors = {}
        best = None
        if self.best is not None:
            c = self.best.certificate
            best = (self.best.w, self.best.alpha, c.primal, c.dual, c.rounding)
        loop = (
            self.factor, self.next_blind_check, self.idle, self.clock.seconds, best,
            self.history,
        )  # fmt: skip
        plain = {
            "solver": freeze_state(state, "solver", tensors),
            "loop": freeze(loop, "loop", tensors),
            "random": list(state.rng.state),
        }
        file.write(plain, tensors, self.solver.name)
        logger.debug("%s: checkpoint after epoch %d", self.solver.name, state.epochs)

    def resume(self, state: State, plain: Any, tensors: Tensors) -> None:
        """Restore the fit that wrote a checkpoint."""
        thaw_state(state, plain["solver"], tensors)
        state.rng.state = plain["random"]
        self.factor, self.next_blind_check, self.idle, seconds, best, self.history = (
            thaw(plain["loop"], tensors, {})
        )
        self.clock.away -= seconds
        if best is not None:
            w, alpha, *bounds = best
            proved = Bounds.stored(*bounds).certificate
            self.best = Proof(w, alpha, replace(proved, floor=self.problem.floor))
        logger.info("%s: resuming after epoch %d", self.solver.name, state.epochs)

    def until_done(
        self, state: State, max_epochs: int, check_every: int | None, warm: bool
    ) -> Solution:
        # A warm start at the optimum needs one exact pass and no epoch.
        proof = self.prove(state) if warm else None
        if proof is not None and proof.meets(self.tol, self.atol):
            return self.finish(Status.CERTIFIED, state)
        if self.checkpoint is not None:
            state.pause = lambda: self.save(state)
        while True:
            if self.stop.requested:
                return self.finish(Status.INTERRUPTED, state)
            if self.stop.expired:
                return self.finish(Status.TIME_LIMIT, state)
            if state.epochs >= max_epochs:
                return self.finish(Status.EPOCH_LIMIT, state)
            if state.steps_left == 0:
                return self.finish(Status.STEP_LIMIT, state)

            before = state.updates
            self.solver.step(state, self.stop)
            self.idle = self.idle + 1 if state.updates == before else 0
            cut_short = self.stop.requested or self.stop.expired

            primal, dual = self.solver.estimate(state)
            self.aim(state, primal, dual)
            if math.isinf(primal) or not state.finite():
                logger.warning(
                    "%s: epoch %d ended with non-finite numbers; the fit stops",
                    self.solver.name,
                    state.epochs,
                )
                self.record(state, math.nan, math.nan, False)
                return self.finish(Status.STALLED, None)

            # A dual epoch that changes nothing has reached a fixed point of the active
            # rows. A second one in a row has reached a fixed point of all rows, because
            # the proof between them, or reject(), made every row active that can move.
            idle_dual = self.solver.monotone and self.idle > 0 and not cut_short
            due = check_every is not None and state.epochs % check_every == 0
            proof = None
            # finish() proves a fit that ends early.
            if not cut_short and (
                due or idle_dual or self.worth_checking(state, primal, dual)
            ):
                proof = self.prove(state)
                if proof is not None:
                    primal, dual = proof.primal, proof.dual
                    self.aim(state, primal, dual)
            self.record(state, primal, dual, proof is not None)
            if proof is not None and not self.solver.ends_itself:
                met = proof.meets(self.tol, self.atol)
                goal = self.solver.goal(state)
                if met and (proof.relative_gap <= goal or goal >= state.tol):
                    return self.finish(Status.CERTIFIED, state)
                if idle_dual and self.idle > 1:
                    return self.finish(
                        Status.CERTIFIED if met else Status.STALLED, state
                    )
                if proof.gap <= _ROUNDED * proof.rounding < math.inf:
                    # More epochs cannot reduce the allowance for rounding. (`finish`
                    # checks whether the gap is within tol or atol.)
                    return self.finish(Status.STALLED, state)
                self.solver.reject(state)
            self.announce(lambda: self.model(state), final=False)
            if state.ended and not (self.stop.requested or self.stop.expired):
                return self.finish(Status.SAMPLED, state)
            if not cut_short:
                self.save(state)

    def aim(self, state: State, primal: float, dual: float) -> None:
        """Set the relative gap of the solver to the looser of `tol` and `atol`."""
        largest = max(primal, -dual, self.problem.floor)  # bounds |P*| from above
        if self.atol > 0.0 and 0.0 < largest < math.inf:
            state.tol = max(self.tol, self.atol / largest)

    def worth_checking(self, state: State, primal: float, dual: float) -> bool:
        if self.solver.ends_itself:
            return False
        blind = math.isnan(primal) or math.isnan(dual)
        goal = self.solver.goal(state)
        gap = self.factor * goal
        floor = 0.0
        if not blind:
            floor = size_of_optimum(primal, dual, self.problem.floor)
        if not blind and primal - dual <= gap * floor:
            return True
        near = not blind and primal - dual <= self.factor * self.atol
        if near and goal >= state.tol:
            return True
        # Without an estimate, or between tol and a tighter goal, check at growing
        # intervals. This costs a few passes in all, and reject() learns what an
        # estimate misses.
        if blind or near or primal - dual <= self.factor * self.tol * floor:
            if not blind and self.next_blind_check == 1:
                self.next_blind_check = 2 * state.epochs + 8
            if state.epochs < self.next_blind_check:
                return False
            soonest = state.epochs + (1 if blind else 4)
            self.next_blind_check = max(soonest, int(1.25 * state.epochs))
            return True
        return False

    def prove(self, state: State) -> Certificate | None:
        """Prove bounds for the state; return None if stopped before they are known."""
        try:
            proof = self.problem.prove(self.solver.claim(state))
        except StoppedError:
            return None
        exact = proof.certificate
        primal, dual = self.solver.estimate(state)
        estimated = relative_gap(primal, dual, exact.floor)
        met = exact.meets(self.tol, self.atol)
        misled = not met and 0.0 < estimated < math.inf
        if misled and not self.solver.mends_estimate:
            # The ratio of both gaps tells how optimistic the estimate is.
            ratio = estimated / exact.relative_gap
            self.factor = min(self.solver.check_factor, max(0.95 * ratio, 1e-3))
        if not (math.isfinite(exact.primal) and math.isfinite(exact.dual)):
            return exact
        if self.best is None or self.rank(exact) < self.rank(self.best.certificate):
            self.keep(proof)
        return exact

    def rank(self, certificate: Certificate) -> tuple[bool, float, float]:
        """Return a sort key of proofs: those that meet the target come first."""
        unmet = not certificate.meets(self.tol, self.atol)
        return unmet, certificate.relative_gap, certificate.gap

    def keep(self, proof: Proof) -> None:
        """Keep a copy of a proof's points: the solver may go on changing its arrays."""
        if self.best is None:
            self.best = proof._replace(w=proof.w.copy(), alpha=proof.alpha.copy())
        else:
            self.best.w[:], self.best.alpha[:] = proof.w, proof.alpha
            self.best = proof._replace(w=self.best.w, alpha=self.best.alpha)

    def record(self, state: State, primal: float, dual: float, exact: bool) -> None:
        method = state.method or self.solver.name
        self.history.append(
            (state.epochs, self.clock.seconds, primal, dual, exact, state.updates,
             method, state.predicted)
        )  # fmt: skip
        if logger.isEnabledFor(logging.INFO):
            self.tell(EpochInfo(*self.history[-1]))

    def tell(self, epoch: EpochInfo) -> None:
        """Log an epoch; at the level INFO only after 1, 2, 4, ... seconds."""
        seconds = epoch.seconds
        left = self.forecast.left(seconds, epoch.relative_gap)
        level = logging.DEBUG
        if seconds >= self.due:
            level, self.due = logging.INFO, 2.0 * seconds
        line = f"{epoch.solver} {told(epoch, self.tol, left)}"
        logger.log(level, "%s%s", self.title, f"{line}, {seconds:.1f} s")

    def announce(self, model: Callable[[], Vector], final: bool) -> None:
        if self.on_epoch is None:
            return
        with self.clock.paused():
            if self.on_epoch(EpochInfo(*self.history[-1], final, model)):
                self.stop.request()

    def model(self, state: State) -> Vector:
        w, alpha = self.solver.iterate(state)
        if w is not None:
            return w
        assert alpha is not None
        return self.problem.combine(alpha)

    def finish(self, status: Status, state: State | None) -> Solution:
        """Return the solution with the best proof, after a final proof if needed.

        A fit that was interrupted or ran out of time has `GRACE` seconds for the final
        proof. If it then has no proof at all, it returns the current model with an
        infinite gap.
        """
        proved = self.history and self.history[-1][4]  # and nothing moved since
        if state is not None and status is not Status.CERTIFIED and not proved:
            if status in (Status.INTERRUPTED, Status.TIME_LIMIT):
                state.stop = core.Stop()
                state.stop.set_deadline(GRACE)
            exact = self.prove(state)
            if exact is not None:
                self.record(state, exact.primal, exact.dual, True)
            else:
                limits = (Status.EPOCH_LIMIT, Status.STEP_LIMIT, Status.SAMPLED)
                if status in limits:
                    asked = self.stop.requested
                    status = Status.INTERRUPTED if asked else Status.TIME_LIMIT
                if self.best is None:
                    self.best = self.solver.unproved(state)
        if self.best is None:  # no iterate was finite; the zero model is
            zero = np.zeros(self.problem.n_duals)
            self.best = self.problem.prove(Claim(alpha=zero))
        if self.best.certificate.meets(self.tol, self.atol):
            status = Status.CERTIFIED
        epochs, updates = 0, 0
        if self.history:
            epochs, updates = self.history[-1][0], self.history[-1][5]
        certificate = replace(
            self.best.certificate,
            epochs=epochs,
            updates=updates,
            seconds=self.clock.seconds,
            status=status,
            solver=self.solver.name,
            tol=self.tol,
            atol=self.atol,
            about=self.problem.about,
        )
        logger.info("%s%s", self.title, certificate)
        best = self.best
        if self.history:
            self.announce(lambda: best.model, final=True)
        history = np.array(self.history, dtype=HISTORY_DTYPE)
        return Solution(
            best.w, best.alpha, certificate, history, best.bias, best.decisions
        )


@contextlib.contextmanager
def ctrl_c(stop: Any) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop; the second one raises.

    This only happens in the main thread, where signals arrive, and while Python's
    default handler is installed. A program's own handler is left in place.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return

    def handler(number: int, frame: Any) -> None:
        if stop.requested:
            signal.default_int_handler(number, frame)
        stop.request()

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _resumable(problem: Problem, solver: Solver, every: float) -> dict[str, Any]:
    """Return the fingerprint of a problem whose fit can be checkpointed.

    Raises
    ------
    ValueError
        If `every` is not positive, or the solver or the problem has no checkpoints.
    """
    if not every > 0.0:
        raise ValueError(
            f"checkpoint_every={every!r} is not positive; give seconds, such as 60"
        )
    fingerprint = problem.fingerprint() if solver.resumes else None
    if fingerprint is None:
        raise ValueError(
            f"checkpoint: solver={solver.name!r} cannot write checkpoints. Use "
            "solver='auto', 'dcd', 'sdca', 'pegasos', 'sgd-s' or another solver that "
            "is not an interior-point, cutting-plane or kernel method"
        )
    return fingerprint


def _check_arguments(
    tol: float,
    atol: float,
    max_epochs: int,
    time_limit: float | None,
    random_state: int,
    check_every: int | None,
) -> None:
    if not (0.0 < tol < math.inf):
        raise ValueError(
            f"tol={tol!r} is out of range; give a positive relative gap, such as 1e-3"
        )
    if not (0.0 <= atol < math.inf):
        raise ValueError(
            f"atol={atol!r} is out of range; give a positive gap P - D, or 0 for none"
        )
    if not max_epochs >= 1:
        raise ValueError(f"max_epochs={max_epochs!r} is too small; give 1 or more")
    if time_limit is not None and not time_limit > 0.0:
        raise ValueError(
            f"time_limit={time_limit!r} is not positive; give seconds, or None"
        )
    is_integer = isinstance(random_state, (int, np.integer))
    if not (is_integer and 0 <= random_state < 2**64):
        raise ValueError(
            f"random_state={random_state!r} is not a seed; give an integer from 0 to "
            "2**64 - 1"
        )
    if check_every is not None and not check_every >= 1:
        raise ValueError(
            f"check_every={check_every!r} is too small; give 1 or more, or None"
        )
