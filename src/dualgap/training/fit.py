"""Fits: arguments, checked before any work, the loop that makes them, and Ctrl-C."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from types import FrameType
from typing import Any

import numpy as np

from .. import core
from ..checks import refuse_huge
from ..losses import Vector
from ..problems.base import Problem
from ..solvers.base import Solver, check_kind
from .checkpoint import Checkpoint, identity, restore
from .loop import Loop
from .progress import EpochInfo, Progress
from .solution import Solution

logger = logging.getLogger("dualgap")


def solve(
    problem: Problem,
    solver: Solver,
    *,
    tol: float = 1e-3,
    atol: float = 0.0,
    max_iter: int = 10_000,
    time_limit: float | None = None,
    random_state: int = 0,
    warm: Vector | None = None,
    on_epoch: Callable[[EpochInfo], object] | None = None,
    stop: core.Stop | None = None,
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
    max_iter : int, default=10000
        Largest number of epochs.
    time_limit : float, optional
        Seconds, including those spent in `on_epoch`. A fit without a proof by then gets
        as long again for one.
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
        If `problem` is not a problem, or `solver` not a solver record.
    ValueError
        If the solver cannot solve this problem, an argument is out of range, the
        checkpoint belongs to another fit, or another fit is writing it.
    """
    _check_arguments(tol, atol, max_iter, time_limit, random_state, check_every)
    if not hasattr(problem, "kind"):
        raise TypeError(
            f"problem{_shown(problem)} is not a problem; make one of rows and labels, "
            "such as dualgap.problems.BinaryProblem(X, y, C)"
        )
    if not isinstance(solver, Solver):
        raise TypeError(
            f"solver{_shown(solver)} is not a solver record; use one such as "
            "dualgap.solvers.DCD() or dualgap.solvers.SOLVERS['dcd']()"
        )
    if not hasattr(solver, "name"):
        raise TypeError(
            f"solver={solver!r} has no name; give its class one, such as "
            "name: ClassVar[str] = 'my-solver'"
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
    progress = Progress(solver.name, tol, problem.title, on_epoch)
    loop = Loop(problem, solver, tol, atol, stop, progress, file)
    if time_limit is not None:
        stop.set_deadline(time_limit)
    with file or contextlib.nullcontext(), ctrl_c(stop):
        found = None if file is None else file.read()
        state = solver.start(problem, core.Random(int(random_state)), warm)
        state.tol, state.stop, state.steps_left = tol, stop, solver.max_steps
        if found is not None:
            loop.resume(restore(state, problem.floor, *found))
            logger.info("%s: resuming after epoch %d", solver.name, state.epochs)
        check_start = warm is not None and found is None and not solver.ends_itself
        with state.resources:
            return loop.run(state, max_iter, check_every, check_start)


def _shown(value: object) -> str:
    """Return a word as it is, and the type of any other value, such as an array."""
    kind = type(value).__name__
    return f"={value!r}" if isinstance(value, str) else f" of type {kind}"


def _resumable(problem: Problem, solver: Solver, every: float) -> dict[str, Any]:
    """Return the fingerprint of a problem whose fit can be checkpointed."""
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
    max_iter: int,
    time_limit: float | None,
    random_state: int,
    check_every: int | None,
) -> None:
    given: dict[str, tuple[object, type]] = {
        "tol": (tol, Real),
        "atol": (atol, Real),
        "max_iter": (max_iter, Integral),
        "time_limit": (1.0 if time_limit is None else time_limit, Real),
        "check_every": (1 if check_every is None else check_every, Integral),
    }
    for name, (value, kind) in given.items():
        refuse_huge(name, value, whole=kind is Integral)
        if not isinstance(value, kind):
            words = "a whole number" if kind is Integral else "a number"
            raise ValueError(f"{name}={value!r} is not {words}")
    refuse_huge("random_state", random_state)
    if not (0.0 < tol < math.inf):
        raise ValueError(
            f"tol={tol!r} is out of range; give a positive relative gap, such as 1e-3"
        )
    if not (0.0 <= atol < math.inf):
        raise ValueError(
            f"atol={atol!r} is out of range; give a positive gap P - D, or 0 for none"
        )
    if not max_iter >= 1:
        raise ValueError(f"max_iter={max_iter!r} is too small; give 1 or more")
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


@contextlib.contextmanager
def ctrl_c(stop: core.Stop) -> Iterator[None]:
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

    def handler(number: int, frame: FrameType | None) -> None:
        if stop.requested:
            signal.default_int_handler(number, frame)
        stop.request()

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
