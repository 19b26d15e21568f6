"""Training of the problems of one estimator, with its callbacks, logs and warnings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from .. import core
from ..certificate import Certificate
from ..data.types import MatrixLike, ProblemLabel
from ..losses import Vector
from ..problems.base import Problem
from ..solvers import Solver
from ..training import EpochInfo, Solution, solve
from ._callbacks import Attributes, FitTasks
from .fitting import OnEpoch, listener, warn_of_failures

__all__ = ["Limits", "Start", "Trainable", "Training"]

Callback = Callable[[EpochInfo], None]


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


class Limits(TypedDict):
    """Arguments of :func:`dualgap.solve` that a fit sets alike for all its problems."""

    tol: float
    atol: float
    max_epochs: int
    random_state: int
    on_epoch: Callable[[EpochInfo], object] | None
    stop: core.Stop


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
        self.rng = check_random_state(estimator.random_state)

    @cached_property
    def seeds(self) -> NDArray[np.int64]:
        """Seeds of all problems, drawn when the first of them needs one."""
        return self.rng.randint(2**31 - 1, size=len(self.names))

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

    def limits(self, k: int, callback: Callback | None) -> Limits:
        """Return the limits of problem k; `callback` is from :meth:`problem`."""
        return {
            "tol": self.estimator.tol,
            "atol": self.estimator.atol,
            "max_epochs": self.estimator.max_epochs,
            "random_state": int(self.seeds[k]),
            "on_epoch": listener(self.labels[k], callback, self.on_epoch),
            "stop": self.stop,
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
