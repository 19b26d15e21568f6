"""Fits of a batch of problems: in one call of the core, or in threads.

Every fit, path and search trains its problems here, under one request to stop.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np

from .. import core
from ..blas import limited, one_limit
from ..certificate import Status
from ..core import StoppedError
from ..data.types import Parameters, ProblemLabel
from ..losses import Vector
from ..memory import make_room_for
from ..problems.base import EMPTY, Problem
from ..problems.batch import Batch
from ..problems.duals import SparseDuals
from ..problems.kernel_matrix import IndefiniteKernelError
from ..solvers.base import Solver, Whole
from ..solvers.kernel.auto import solve_alone, solve_nu_pairs, solve_pairs
from ..solvers.labellings import solve_labellings
from ..solvers.regression import solve_regression
from ..solvers.shared import solve_shared
from .fit import ctrl_c, solve
from .progress import Clock, EpochInfo, Progress
from .solution import Solution, Solutions, WholeSolutions

#: Called with the label of a problem and an epoch; a true value ends the fit.
OnEpoch = Callable[[ProblemLabel, EpochInfo], object]
Callback = Callable[[EpochInfo], object]
#: Returns dual variables to start from, given the number of a problem and the problem.
Start = Callable[[int, Problem], Vector | None]
T = TypeVar("T")
#: Values of C, and the dual variables of all problems.
Past = Sequence[tuple[float, Sequence[Vector]]]

logger = logging.getLogger("dualgap")


class Tasks:
    """Tasks of scikit-learn's callbacks in a fit; without callbacks there are none."""

    #: Whether callbacks want to hear of the epochs.
    heard: bool = False

    def problem(self, k: int) -> contextlib.AbstractContextManager[Callback | None]:
        """Return the tasks of problem k, as a context that gives its callback."""
        return contextlib.nullcontext()

    def keep(self, k: int, solution: Solution) -> None:
        """Take the solution of problem k."""

    def end(self) -> None:
        """Tell the callbacks that the estimator is fitted."""


@dataclass
class Job:
    """Limits of a fit, its seeds, and who is told of its epochs."""

    #: As for :func:`dualgap.training.solve`, for each problem.
    tol: float
    atol: float
    max_iter: int
    #: Request to stop that all problems share.
    stop: core.Stop
    #: One per problem, or fewer, which repeat.
    seeds: Sequence[int]
    #: Number of threads that share the problems.
    threads: int = 1
    #: 1 shows the log of each problem, 2 also of each epoch.
    verbose: int = 0
    on_epoch: OnEpoch | None = None
    tasks: Tasks = field(default_factory=Tasks)
    #: As for :func:`dualgap.training.solve`; several problems have a file each.
    checkpoint: str | None = None
    checkpoint_every: float = 60.0
    clock: Clock = field(default_factory=Clock)
    #: Models to start from, of another C for example, one per problem, or none.
    models: Sequence[Vector] = ()
    #: Trains a problem without a proof where its kernel matrix is indefinite.
    unproved: Callable[[int], Solution] | None = None

    @property
    def stopped(self) -> bool:
        """Whether the fit is to end."""
        return bool(self.stop.requested or self.stop.expired)

    @property
    def told(self) -> bool:
        """Whether somebody hears of the end of a problem."""
        heard = self.on_epoch is not None or self.verbose > 0
        return heard or logger.isEnabledFor(logging.INFO)

    def options(self, k: int) -> Parameters:
        """Return the limits of problem k, for :func:`dualgap.training.solve`."""
        return {
            "tol": self.tol,
            "atol": self.atol,
            "max_iter": self.max_iter,
            "random_state": int(self.seeds[k % len(self.seeds)]),
            "stop": self.stop,
        }

    def tell(
        self,
        batch: Batch,
        k: int,
        epochs: Sequence[tuple[float, float, int]],
        w: Vector,
    ) -> None:
        """Tell listeners of the last epoch of problem k, whose model is w."""
        if self.on_epoch is not None:
            primal, dual, steps = epochs[-1]
            info = EpochInfo(steps, self.clock.seconds, primal, dual, False, steps)
            with self.clock.paused():
                if self.on_epoch(batch.label(k), replace(info, model=w.copy)):
                    self.stop.request()

    def listener(
        self, batch: Batch, k: int, callback: Callback | None
    ) -> Callback | None:
        """Return the listener to the epochs of problem k; None if there is none."""
        on_epoch = self.on_epoch
        if on_epoch is None:
            return callback
        label = batch.label(k)

        def tell(info: EpochInfo) -> object:
            if callback is not None:
                callback(info)
            return on_epoch(label, info)

        return tell


def begin(time_limit: float | None) -> core.Stop:
    """Return a stop request whose time limit starts now."""
    stop = core.Stop()
    if time_limit is not None:
        stop.set_deadline(time_limit)
    return stop


def solve_batch(
    batch: Batch,
    solver: Solver,
    job: Job,
    warm: Start | None = None,
    at_once: bool = True,
) -> Solutions:
    """Train the problems of a batch, and prove each of them.

    - `warm`: takes a problem's number and the problem, and returns dual variables to
      start from, or None for a cold start.
    - `at_once`: whether small problems may be solved in one call of the core, which
      needs no start.
    """
    whole = _solve_whole(batch, solver, job) if at_once else None
    done = [] if whole is None else whole.done
    if whole is not None and whole.proved and len(done) == len(batch) and not job.told:
        return whole
    several = len(batch) > 1
    stored: dict[int, SparseDuals] = {}

    def kept(k: int, found: Solution) -> Solution:
        if batch.many:
            stored[k] = batch.stored(found.alpha)
            found = replace(found, alpha=EMPTY)
        return found

    def train(k: int) -> Solution:
        title = batch.names[k] if several else ""
        if whole is not None and k < len(done) and done[k]:
            found = whole[k]
            listener = job.listener(batch, k, None)
            progress = Progress(solver.name, job.tol, title, listener)
            progress.history = found.history[-1:].tolist()
            progress.end(found.certificate, lambda: found.model)
            if not batch.many:
                return found
            stored[k] = cast(SparseDuals, whole.duals[k])
            return replace(found, alpha=EMPTY)
        file = job.checkpoint
        if file is not None and several:
            file = f"{file}.{k}"
        with job.tasks.problem(k) as callback:
            try:
                found = _train(batch, k, solver, job, warm, title, file, callback)
            except IndefiniteKernelError:
                if job.unproved is None:
                    raise
                found = job.unproved(k)
            finally:
                batch.leave(k)
            job.tasks.keep(k, found)
        return kept(k, found)

    batch.prepare()
    found = in_threads(train, len(batch), job, batch.at_a_time)
    duals = [stored[k] for k in range(len(batch))] if batch.many else ()
    return Solutions(found, batch.names, duals)


def solve_path(
    batch: Batch,
    Cs: Sequence[float] | Vector,
    solver: Solver,
    job: Job,
    start: Start | None = None,
) -> Iterator[Solutions]:
    """Train the problems of a batch for every C, in the order given.

    The core solves small problems in one call. Problems that share passes start from
    the models of the last C, others from the dual variables of the last two, so that
    the values are best increasing; the first fit starts from what `start` gives.
    """
    if len(Cs) > 1 or start is not None:
        check_warm(batch, solver)
    past: list[tuple[float, Sequence[Vector]]] = []
    batch = batch.for_path()
    for C in map(float, Cs):
        now = batch.at(C)

        def warm(
            k: int, problem: Problem, now: Batch = now, past: Past = tuple(past)
        ) -> Vector | None:
            before = [(C, alpha[k]) for C, alpha in past]
            if len(before) == 2:
                return now.along(k, problem, before)
            return now.begin(k, problem, *before[0])

        found = solve_batch(now, solver, job, warm if past else start)
        past = [*(one for one in past[-1:] if one[0] != C), (C, found.alpha)]
        job = replace(job, models=list(found.w))
        yield found


def check_warm(batch: Batch, solver: Solver) -> None:
    """Refuse a solver that cannot start from dual variables, before the first fit."""
    if not solver.dual:
        problem = batch.problem(0)
        solver.check_warm(problem, np.zeros(problem.n_duals))


#: What solves the problems of a kind together, such as small ones in one call of the
#: core. The first that returns a result is taken.
WHOLE: dict[str, tuple[Callable[[Solver, Any, Job], Whole | None], ...]] = {
    "binary": (solve_labellings, solve_shared),
    "kernel": (solve_pairs,),
    "kernel-nu": (solve_nu_pairs,),
    "kernel-nu-regression": (solve_alone,),
    "kernel-one-class": (solve_alone,),
    "regression": (solve_regression,),
}


def _solve_whole(batch: Batch, solver: Solver, job: Job) -> WholeSolutions | None:
    """Solve and prove problems together; None if one after the other is better.

    Callbacks of scikit-learn want to see the epochs, so with them the loop trains.
    """
    if job.tasks.heard or job.checkpoint is not None or job.stopped:
        return None
    with ctrl_c(job.stop):
        for together in WHOLE.get(batch.kind, ()):
            found = together(solver, batch, job)
            if found is not None:
                names = batch.names[: len(found.bounds)]
                return WholeSolutions(found, names, solver.name, job.tol, job.atol)
    return None


def _train(
    batch: Batch,
    k: int,
    solver: Solver,
    job: Job,
    warm: Start | None,
    title: str,
    file: str | None,
    callback: Callback | None,
) -> Solution:
    """Train problem k, and prove its accuracy."""
    takes_long = batch.takes_long(warm is not None)
    if not (takes_long and job.stopped):
        with contextlib.suppress(StoppedError):
            problem = batch.problem(k)
            problem.title = title
            if not (takes_long and job.stopped):
                found = solve(
                    problem,
                    solver,
                    warm=None if warm is None else warm(k, problem),
                    checkpoint=file,
                    checkpoint_every=job.checkpoint_every,
                    on_epoch=job.listener(batch, k, callback),
                    **job.options(k),
                )
                return batch.finish(k, problem, found)
    zero = batch.unreached(k)
    status = Status.INTERRUPTED if job.stop.requested else Status.TIME_LIMIT
    certificate = replace(
        zero.certificate, status=status, solver=solver.name, tol=job.tol, atol=job.atol
    )
    return Solution(zero.w, zero.alpha, certificate, zero.bias)


#: Memory of a pool of threads besides its workers, in threads.
_POOL = 1


def in_threads(
    work: Callable[[int], T], count: int, job: Job, at_a_time: int = sys.maxsize
) -> list[T]:
    """Return what `work` returns for 0 to count - 1, from threads that stop together.

    After Ctrl-C each fit keeps its best model. If one raises, the others end before
    the error is raised here.
    """
    threads = min(job.threads, count, at_a_time)
    with _visible_logs(job.verbose), ctrl_c(job.stop):
        if threads == 1:
            with one_limit():
                return list(map(work, range(count)))
        make_room_for(threads + _POOL)
        contexts = [copy_context() for _ in range(count)]

        def guarded(k: int) -> T:
            try:
                return contexts[k].run(work, k)
            except BaseException:
                job.stop.request()
                raise

        # BLAS would start threads of its own in each thread.
        with limited(1), ThreadPoolExecutor(threads) as pool:
            return list(pool.map(guarded, range(count)))


@contextlib.contextmanager
def _visible_logs(verbose: int) -> Iterator[None]:
    """Show the log of a fit, on standard output if no log handler is set."""
    if not verbose:
        yield
        return
    handler = None if logger.hasHandlers() else logging.StreamHandler(sys.stdout)
    level = logging.INFO if verbose == 1 else logging.DEBUG
    before = logger.level
    if handler is not None:
        logger.addHandler(handler)
    logger.setLevel(min(level, logger.getEffectiveLevel()))
    try:
        yield
    finally:
        logger.setLevel(before)
        if handler is not None:
            logger.removeHandler(handler)


RandomState = int | np.random.RandomState | None
_END = 2**31 - 1


def seeds_of(random_state: RandomState, count: int) -> Sequence[int]:
    """Return as many seeds, drawn from an estimator's `random_state`."""
    if isinstance(random_state, (int, np.integer)):
        return _drawn(int(random_state), count)
    draw = np.random.randint if random_state is None else random_state.randint
    return draw(_END, size=count).tolist()


@lru_cache(maxsize=64)
def _drawn(seed: int, count: int) -> tuple[int, ...]:
    """Return the seeds of an int; making a generator can take as long as a fit."""
    return tuple(np.random.RandomState(seed).randint(_END, size=count).tolist())
