"""The one owner of the outer loop.

A solver advances a state by one pass over the data and says, cheaply, how good it
thinks it is. Everything else is here: accuracy, budgets, Ctrl-C, the check for
non-finite numbers, history and callbacks. Estimates schedule the exact pass; only
:meth:`Problem.prove` ends a fit as certified.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import core
from .certificate import Bounds, Certificate, Status, relative_gap, size_of_optimum
from .checkpoint import Checkpoint, freeze, freeze_state, identity, thaw, thaw_state
from .io.model import Tensors
from .losses import Vector
from .problem import Proof, StoppedError
from .solvers.base import Solver, State

logger = logging.getLogger("dualgap")

# A gap of no more than so many times the room for rounding is closed.
_ROUNDED = 1.25

# Seconds for a closing proof once a fit is told to end.
GRACE = 0.1


@dataclass(frozen=True)
class EpochInfo:
    """What callbacks are told after every epoch.

    ``primal`` and ``dual`` are the solver's estimates (NaN where it has none) unless
    ``exact``, when they come from a full pass. ``solver`` is the method that made the
    pass, ``predicted`` what "auto" thinks it still needs, in products with the data.
    ``final`` marks the last call of a fit. ``model()`` computes the w of shape
    (width,) reached so far; it is only good during the call. Copies and pickles have
    None in its place: send what it returns.
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
    """What comes out of a fit.

    Attributes
    ----------
    w : ndarray of shape (width,)
        The model; ``problem.coef(w)`` splits off the intercept.
    alpha : ndarray of shape (n,)
        A dual point in the box. For dual solvers ``w = sum alpha_i y_i x_i``, but for
        `DCD` where it accelerates: there w is the best multiple of that. Where "newton"
        or "interior-point" ends a fit, ``1/2 ||w - w(alpha)||^2 <= P - D``.
    certificate : Certificate
        About exactly these two.
    history : structured ndarray
        One record per epoch, and one of a closing exact pass: epoch, seconds, primal,
        dual, exact, updates, solver (the method that made the pass) and predicted (the
        products with the data that "auto" thinks are still to come, else NaN).
    bias : float or None
        Of a kernel model, whose `w` are its decisions; None where w holds it.
    """

    w: Vector
    alpha: Vector
    certificate: Certificate
    history: NDArray[np.void]
    bias: float | None = None


@dataclass
class _Clock:
    """Wall-clock seconds of the fit; stands still while callbacks run."""

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
    problem: Any,
    solver: Solver,
    *,
    tol: float = 1e-3,
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
    """Train to a certificate.

    Parameters
    ----------
    problem : Problem or KernelProblem
    solver : Solver
        A record of hyper-parameters, as in ``solvers.SDCA(order="random")``.
    tol : float, default=1e-3
        Relative gap ``(P - D)/D`` to prove; it bounds ``(P - P*)/P*``.
    max_epochs : int, default=10000
        Passes over the data.
    time_limit : float, optional
        Seconds, those spent in `on_epoch` included.
    random_state : int, default=0
        The same seed gives the same model, bit for bit.
    warm : ndarray of shape (n,), optional
        Dual variables to start from; clipped to the box.
    on_epoch : callable, optional
        Called with an :class:`EpochInfo` after every epoch; a true value ends the fit.
    stop : core.Stop, optional
        Shared by several fits that are to be interrupted together. Its deadline is
        theirs too: with `time_limit` it is set anew.
    check_every : int, optional
        Also make an exact pass every so many epochs.
    checkpoint : str or path-like, optional
        A file for the state of the fit. If it is there and was written by a fit of the
        same data and arguments (but for the limits), this one goes on from it, and ends
        with the same bits as one that was never killed. It stays when the fit ends.
    checkpoint_every : float, default=60.0
        Seconds between two writings, which are after passes or, where rows are
        streamed to `DCD`, after blocks.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        If the solver cannot solve this problem, an argument is out of range, or another
        fit is writing the checkpoint.
    """
    _check_arguments(tol, max_epochs, time_limit, random_state, check_every)
    if not isinstance(solver, Solver):
        raise TypeError(
            f"solver={solver!r}: give a record such as dualgap.DCD(); "
            "dualgap.SOLVERS[name]() makes one of a name"
        )
    solver.check(problem)
    if warm is not None:
        warm = solver.check_warm(problem, warm)
    file = None
    if checkpoint is not None:
        _check_resumes(solver, checkpoint_every)
        about = identity(problem, solver, tol, random_state, warm, check_every)
        file = Checkpoint(checkpoint, checkpoint_every, about)
    run = _Run(
        problem, solver, tol, stop if stop is not None else core.Stop(), on_epoch, file
    )
    if time_limit is not None:
        run.stop.set_deadline(time_limit)
    with file or contextlib.nullcontext(), ctrl_c(run.stop):
        found = None if file is None else file.read()
        state = solver.start(problem, core.Random(int(random_state)), warm)
        state.tol, state.stop = tol, run.stop
        if found is not None:
            run.resume(state, *found)
        check = warm is not None and found is None
        return run.until_done(state, max_epochs, check_every, check)


class _Run:
    """One fit: the best proof so far, the schedule of exact passes, the history."""

    def __init__(
        self,
        problem: Any,
        solver: Solver,
        tol: float,
        stop: Any,
        on_epoch: Callable[[EpochInfo], object] | None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.problem, self.solver, self.tol = problem, solver, tol
        self.stop, self.on_epoch = stop, on_epoch
        self.clock = _Clock()
        self.history: list[tuple[int, float, float, float, bool, int, str, float]] = []
        self.best: Proof | None = None
        self.factor = solver.check_factor
        self.next_blind_check = 1
        self.idle = 0  # passes without a change, up to now
        self.checkpoint = checkpoint

    def save(self, state: State) -> None:
        """Write a checkpoint, if it is time for one."""
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
        """Take up the fit whose checkpoint this is."""
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
        logger.info("%s: goes on after epoch %d", self.solver.name, state.epochs)

    def until_done(
        self, state: State, max_epochs: int, check_every: int | None, warm: bool
    ) -> Solution:
        # Restarted at an optimum, one pass is all it takes.
        proof = self.prove(state) if warm else None
        if proof is not None and proof.relative_gap <= self.tol:
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

            before = state.updates
            self.solver.step(state, self.stop)
            self.idle = self.idle + 1 if state.updates == before else 0
            cut_short = self.stop.requested or self.stop.expired

            primal, dual = self.solver.estimate(state)
            if math.isinf(primal) or not state.finite():
                logger.warning(
                    "%s: epoch %d ended without finite numbers to go on from",
                    self.solver.name,
                    state.epochs,
                )
                self.record(state, math.nan, math.nan, False)
                return self.finish(Status.STALLED, None)

            # A dual pass that changes nothing has reached a fixed point; the second
            # one in a row left out no row that could move, for the proof between them,
            # or reject(), woke those.
            idle_dual = self.solver.monotone and self.idle > 0 and not cut_short
            due = check_every is not None and state.epochs % check_every == 0
            proof = None
            # What ends early is proved by finish().
            if not cut_short and (
                due or idle_dual or self.worth_checking(state, primal, dual)
            ):
                proof = self.prove(state)
                if proof is not None:
                    primal, dual = proof.primal, proof.dual
            self.record(state, primal, dual, proof is not None)
            if proof is not None:
                if proof.relative_gap <= self.solver.goal(state):
                    return self.finish(Status.CERTIFIED, state)
                if idle_dual and self.idle > 1:
                    met = proof.relative_gap <= self.tol
                    return self.finish(
                        Status.CERTIFIED if met else Status.STALLED, state
                    )
                if proof.gap <= _ROUNDED * proof.rounding < math.inf:
                    # No pass makes room for rounding smaller. (`finish` sees if it
                    # is within tol.)
                    return self.finish(Status.STALLED, state)
                self.solver.reject(state)
            self.announce(lambda: self.model(state), final=False)
            if not cut_short:
                self.save(state)

    def worth_checking(self, state: State, primal: float, dual: float) -> bool:
        blind = math.isnan(primal) or math.isnan(dual)
        gap = self.factor * self.solver.goal(state)
        floor = 0.0
        if not blind:
            floor = size_of_optimum(primal, dual, self.problem.floor)
        if not blind and primal - dual <= gap * floor:
            return True
        # Without an estimate, or a while between tol and a tighter goal, look ever more
        # rarely: a few passes in all, and reject() hears of what an estimate misses.
        if blind or primal - dual <= self.factor * self.tol * floor:
            if not blind and self.next_blind_check == 1:
                self.next_blind_check = 2 * state.epochs + 8
            if state.epochs < self.next_blind_check:
                return False
            soonest = state.epochs + (1 if blind else 4)
            self.next_blind_check = max(soonest, int(1.25 * state.epochs))
            return True
        return False

    def prove(self, state: State) -> Certificate | None:
        """What the state proves; None if told to leave before that is known."""
        w, alpha = self.solver.iterate(state)
        try:
            proof = self.problem.prove(w, alpha, **self.solver.proof_options(state))
        except StoppedError:
            return None
        exact = proof.certificate
        primal, dual = self.solver.estimate(state)
        estimated = relative_gap(primal, dual, exact.floor)
        misled = exact.relative_gap > self.tol and 0.0 < estimated < math.inf
        if misled and not self.solver.mends_estimate:
            # Learn how optimistic the estimate is, from the two side by side.
            ratio = estimated / exact.relative_gap
            self.factor = min(self.solver.check_factor, max(0.95 * ratio, 1e-3))
        if not (math.isfinite(exact.primal) and math.isfinite(exact.dual)):
            return exact
        if self.best is None or _rank(exact) < _rank(self.best.certificate):
            self.keep(proof)
        return exact

    def keep(self, proof: Proof) -> None:
        """Copy the points, for the solver may go on writing into its own."""
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
        logger.debug(
            "%s epoch %d primal %.9g dual %.9g%s",
            method,
            state.epochs,
            primal,
            dual,
            " (exact)" if exact else "",
        )

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
        """End with the best proof; what is not proved yet is proved now.

        Told to end, there is `GRACE` for that and no more. A fit without any proof
        then ends with the model reached, of which nothing is promised.
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
                if status is Status.EPOCH_LIMIT:
                    asked = self.stop.requested
                    status = Status.INTERRUPTED if asked else Status.TIME_LIMIT
                if self.best is None:
                    self.best = self.solver.unproved(state)
        if self.best is None:  # nothing finite was ever seen: the zero model is
            zero = np.zeros(getattr(self.problem, "n_duals", self.problem.n))
            self.best = self.problem.prove(None, zero)
        if self.best.certificate.relative_gap <= self.tol:
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
            about=getattr(self.problem, "about", ""),
        )
        logger.info("%s", certificate)
        best = self.best
        if self.history:
            self.announce(lambda: best.w, final=True)
        history = np.array(self.history, dtype=HISTORY_DTYPE)
        return Solution(best.w, best.alpha, certificate, history, best.bias)


def _rank(certificate: Certificate) -> tuple[float, float]:
    """Orders proofs: what `tol` is about first, else the gap."""
    return certificate.relative_gap, certificate.gap


@contextlib.contextmanager
def ctrl_c(stop: Any) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop; the second one raises.

    Only where Python's own handler is in force and signals arrive, in the main
    thread: a program's own handler stays what it is.
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


def _check_resumes(solver: Solver, every: float) -> None:
    if not solver.resumes:
        raise ValueError(
            f"checkpoint: the state of solver={solver.name!r} cannot be written; use "
            "solver='auto', 'dcd', 'sdca', 'pegasos', 'sgd-s' or another that is no "
            "interior point, cutting plane or kernel method"
        )
    if not every > 0.0:
        raise ValueError(f"checkpoint_every={every!r}: give seconds, such as 60")


def _check_arguments(
    tol: float,
    max_epochs: int,
    time_limit: float | None,
    random_state: int,
    check_every: int | None,
) -> None:
    if not (0.0 < tol < math.inf):
        raise ValueError(f"tol={tol!r}: give a positive relative gap, such as 1e-3")
    if not max_epochs >= 1:
        raise ValueError(f"max_epochs={max_epochs!r}: give 1 or more")
    if time_limit is not None and not time_limit > 0.0:
        raise ValueError(f"time_limit={time_limit!r}: give seconds, or None for none")
    is_integer = isinstance(random_state, (int, np.integer))
    if not (is_integer and 0 <= random_state < 2**64):
        raise ValueError(
            f"random_state={random_state!r}: give an integer from 0 to 2**64 - 1"
        )
    if check_every is not None and not check_every >= 1:
        raise ValueError(f"check_every={check_every!r}: give 1 or more, or None")
