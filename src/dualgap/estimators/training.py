"""Training of the problems of one fit: threads, limits, callbacks, logs, warnings.

Every fit, path and search trains its problems by :func:`fit_all`, under the stop
request that :func:`begin` makes.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypedDict, TypeVar, cast

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.utils.parallel import Parallel, delayed

from .. import core
from ..blas import limited, one_limit
from ..certificate import Certificate
from ..data.types import MatrixLike, ProblemLabel
from ..losses import Vector
from ..memory import make_room_for
from ..problems.base import Problem
from ..solvers import Solver
from ..training import EpochInfo, Solution, ctrl_c, solve
from ._callbacks import Attributes, FitTasks
from .fitting import OnEpoch, listener, warn_of_failures
from .seeds import seeds_of

__all__ = [
    "FitOptions",
    "Limits",
    "Start",
    "Trainable",
    "Training",
    "begin",
    "fit_all",
    "fit_options",
]

Callback = Callable[[EpochInfo], None]
T = TypeVar("T")

logger = logging.getLogger("dualgap")

#: Threads of joblib's pool besides its workers.
_POOL = 3


class Trainable(Protocol):
    """Parameters of an estimator that its training reads."""

    tol: float
    atol: float
    max_epochs: int
    verbose: int
    random_state: int | np.random.RandomState | None


class Start(NamedTuple):
    """Problem and solver of a part of a fit, and the point to start from.

    Attributes
    ----------
    problem : Problem
    solver : Solver
    attributes : callable or None
        Turns a model into attributes of the estimator, for callbacks.
    warm : ndarray or None
        Dual variables to start from.
    checkpoint, checkpoint_every
        As for :func:`dualgap.solve`.
    """

    problem: Problem
    solver: Solver
    attributes: Attributes | None = None
    warm: Vector | None = None
    checkpoint: str | None = None
    checkpoint_every: float = 60.0


class FitOptions(TypedDict):
    """Options of :func:`dualgap.solve` that all fits of an estimator share."""

    tol: float
    atol: float
    max_epochs: int
    random_state: int
    stop: core.Stop


class Limits(FitOptions):
    """These options, with what a fit tells of its epochs."""

    on_epoch: Callable[[EpochInfo], object] | None


def fit_options(parameters: Trainable, seed: int, stop: core.Stop) -> FitOptions:
    """Return the options of the fits of an estimator."""
    return {
        "tol": parameters.tol,
        "atol": parameters.atol,
        "max_epochs": parameters.max_epochs,
        "random_state": seed,
        "stop": stop,
    }


def begin(time_limit: float | None) -> core.Stop:
    """Return a stop request whose time limit starts now."""
    stop = core.Stop()
    if time_limit is not None:
        stop.set_deadline(time_limit)
    return stop


def fit_all(
    fit: Callable[[int], T],
    count: int,
    *,
    n_jobs: int | None,
    stop: core.Stop,
    verbose: int,
) -> list[T]:
    """Fit `count` binary problems in threads that stop together.

    After Ctrl-C each fit keeps its best model. If one fit raises, the others end before
    the error is raised here.
    """
    raised: list[BaseException] = []

    def guarded(k: int) -> T | None:
        # Errors are not raised inside a thread: joblib would leave the other threads
        # running, and a thread that ends later restores outdated warning filters.
        try:
            return fit(k)
        except BaseException as error:
            stop.request()
            raised.append(error)
            return None

    with _visible_logs(verbose), ctrl_c(stop):
        # joblib and its warning filters take longer than a small fit.
        if count == 1 or effective_n_jobs(n_jobs) == 1:
            with one_limit():
                return list(map(fit, range(count)))
        make_room_for(min(effective_n_jobs(n_jobs), count) + _POOL)
        # BLAS starts threads of its own in each thread of the fit.
        with limited(1):
            found = Parallel(n_jobs=n_jobs, require="sharedmem")(
                delayed(guarded)(k) for k in range(count)
            )
    if raised:
        raise raised[0]
    return cast(list[T], found)


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


class Training:
    """One fit of an estimator: problems that are trained under one stop request.

    Parameters
    ----------
    estimator : Trainable
    X, y, sample_weight
        Training data, as callbacks receive them.
    names : sequence of str
        One per problem.
    labels : sequence
        What `on_epoch` receives for each problem, such as its positive class.
    stop : core.Stop
        Request to stop that all problems share.
    on_epoch : callable, optional
        Called with a label and an :class:`dualgap.training.EpochInfo`.
    """

    def __init__(
        self,
        estimator: Trainable,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        *,
        names: Sequence[str],
        labels: Sequence[ProblemLabel],
        stop: core.Stop,
        on_epoch: OnEpoch | None,
    ) -> None:
        self.estimator, self.stop, self.on_epoch = estimator, stop, on_epoch
        self.names, self.labels = names, labels
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        data = {"X": X, "y": y, "metadata": metadata}
        self.tasks = FitTasks(estimator, data, names, stop)
        self.seeds = seeds_of(estimator.random_state, len(names))

    @property
    def stopped(self) -> bool:
        return bool(self.stop.requested or self.stop.expired)

    def title(self, k: int) -> str:
        """Return the name of a problem in logs; empty for a single problem."""
        return self.names[k] if len(self.names) > 1 else ""

    def problem(
        self, k: int, attributes: Attributes | None
    ) -> contextlib.AbstractContextManager[Callback | None]:
        """Return the callbacks' tasks of problem k; see :meth:`FitTasks.problem`."""
        return self.tasks.problem(k, attributes)

    def options(self, k: int) -> FitOptions:
        """Return the options of the fit of problem k."""
        return fit_options(self.estimator, self.seeds[k], self.stop)

    def limits(self, k: int, callback: Callback | None) -> Limits:
        """Return the limits of problem k; `callback` is from :meth:`problem`."""
        return {
            **self.options(k),
            "on_epoch": listener(self.labels[k], callback, self.on_epoch),
        }

    def trainer(
        self,
        start: Callable[[int], Start],
        keep: Callable[[int, Solution], None] | None = None,
    ) -> Callable[[int], Solution]:
        """Return a function that trains problem k, for :func:`fit_all`.

        Parameters
        ----------
        start : callable
            Returns what problem k starts from.
        keep : callable, optional
            Called with k and the solution once the problem is solved.
        """

        def train(k: int) -> Solution:
            begun = start(k)
            begun.problem.title = self.title(k)
            with self.problem(k, begun.attributes) as callback:
                solution = solve(
                    begun.problem,
                    begun.solver,
                    warm=begun.warm,
                    checkpoint=begun.checkpoint,
                    checkpoint_every=begun.checkpoint_every,
                    **self.limits(k, callback),
                )
                if keep is not None:
                    keep(k, solution)
            return solution

        return train

    def end(
        self,
        certificate: Certificate,
        several: str = "problems",
        *,
        name: str,
        depth: int = 5,
    ) -> None:
        """End the callbacks' tasks, and warn if `tol` was not proved.

        `depth` are the frames from the warning up to the caller of fit.
        """
        self.tasks.end()
        warn_of_failures(name, certificate, several, stacklevel=depth + 1)
