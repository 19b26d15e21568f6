"""Training of the problems of one estimator, with its callbacks, logs and warnings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ..certificate import Certificate
from ..losses import Vector
from ..problems.base import Problem
from ..solvers import Solver
from ..training import EpochInfo, Solution, solve
from ._callbacks import Attributes, FitTasks
from .fitting import OnEpoch, fit_all, listener, warn_of_failures

__all__ = ["Given", "Trainable", "Training"]

Callback = Callable[[EpochInfo], None]
T = TypeVar("T")


class Trainable(Protocol):
    """Parameters of an estimator that its training reads."""

    tol: float
    atol: float
    max_epochs: int
    verbose: int
    random_state: int | np.random.RandomState | None


class Given(NamedTuple):
    """Training data of a classifier, and the class of every row."""

    X: Any
    y: Any
    sample_weight: ArrayLike | None
    classes: NDArray[Any]
    codes: NDArray[np.intp]


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
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        *,
        names: Sequence[str],
        labels: Sequence[Any],
        stop: Any,
        on_epoch: OnEpoch | None,
    ) -> None:
        self.estimator, self.stop, self.on_epoch = estimator, stop, on_epoch
        self.names, self.labels = names, labels
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        data = {"X": X, "y": y, "metadata": metadata}
        self.tasks = FitTasks(estimator, data, names, stop)
        rng = check_random_state(estimator.random_state)
        self.seeds = rng.randint(2**31 - 1, size=len(names))

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

    def solve(
        self,
        k: int,
        problem: Problem,
        solver: Solver,
        callback: Callback | None,
        *,
        warm: Vector | None = None,
        checkpoint: str | None = None,
        checkpoint_every: float = 60.0,
    ) -> Solution:
        """Train problem k; `callback` is from :meth:`problem`."""
        return solve(
            problem,
            solver,
            tol=self.estimator.tol,
            atol=self.estimator.atol,
            max_epochs=self.estimator.max_epochs,
            random_state=int(self.seeds[k]),
            warm=warm,
            on_epoch=listener(self.labels[k], callback, self.on_epoch),
            stop=self.stop,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )

    def run(self, train: Callable[[int], T], n_jobs: int | None) -> list[T]:
        """Train every problem by `train(k)`, in threads that stop together."""
        return fit_all(
            train,
            len(self.names),
            n_jobs=n_jobs,
            stop=self.stop,
            verbose=self.estimator.verbose,
        )

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
