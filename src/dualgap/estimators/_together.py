"""Problems of one fit that the core solved in one call: certificates and histories."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..certificate import Bounds, Certificate, LazyParts, Status
from ..losses import Vector
from ..training import HISTORY_DTYPE, Solution
from ..training.progress import Progress
from .fitting import listener
from .training import Training

__all__ = ["SolvedTogether"]

logger = logging.getLogger("dualgap")


class Solved(Protocol):
    """Proofs that the core found, and the epochs of one problem after another."""

    @property
    def bounds(self) -> list[Bounds]: ...
    @property
    def epochs(self) -> Vector: ...
    @property
    def ends(self) -> NDArray[np.intp]: ...
    @property
    def seconds(self) -> float: ...


class SolvedTogether:
    """Certificates and histories of problems that were solved in one call.

    Parameters
    ----------
    training : Training
        The fit, with a name per problem.
    solved : Solved
    solver : str
        Name of the solver.
    method : str
        Name of the method that made the epochs.

    Attributes
    ----------
    proved : list of bool
        Whether the accuracy of each problem is proved. The others need another solver.
    epochs : int
        The largest number of epochs of a problem.
    """

    def __init__(
        self, training: Training, solved: Solved, solver: str, method: str
    ) -> None:
        self.training, self.solved, self.method = training, solved, method
        model = training.estimator
        self.proved = [of.meets(model.tol, model.atol) for of in solved.bounds]
        self.starts = np.append(0, solved.ends[:-1])
        self._epochs = (solved.ends - self.starts).tolist()
        self._updates = solved.epochs[solved.ends - 1, 2].astype(np.int64).tolist()
        self.epochs = max(self._epochs)
        self._common = replace(
            solved.bounds[0].certificate,
            status=Status.CERTIFIED,
            solver=solver,
            tol=model.tol,
            atol=model.atol,
            seconds=solved.seconds / len(solved.bounds),
        )

    def part(self, p: int) -> Certificate:
        """Return the certificate of problem p, without a name."""
        return replace(
            self._common,
            bounds=self.solved.bounds[p],
            epochs=self._epochs[p],
            updates=self._updates[p],
        )

    def certificate(self) -> Certificate:
        """Return the certificate of all problems."""
        solved, names = self.solved, self.training.names
        count = len(solved.bounds)
        if count == 1:
            return self.part(0)
        return replace(
            self._common,
            bounds=Bounds.total(solved.bounds),
            epochs=len(solved.epochs),
            updates=sum(self._updates),
            seconds=solved.seconds,
            several=LazyParts(count, lambda p: replace(self.part(p), name=names[p])),
        )

    @cached_property
    def histories(self) -> list[NDArray[np.void]]:
        """The history of each problem."""
        solved, last = self.solved, self.solved.ends - 1
        primal, dual, steps = solved.epochs.T
        history = np.empty(len(steps), HISTORY_DTYPE)
        history["epoch"] = np.arange(1, len(steps) + 1)
        history["epoch"] -= np.repeat(self.starts, self._epochs)
        history["seconds"], history["exact"] = self._common.seconds, False
        history["primal"], history["dual"], history["updates"] = primal, dual, steps
        history["solver"], history["predicted"] = self.method, math.nan
        history["primal"][last] = [bounds.primal for bounds in solved.bounds]
        history["dual"][last] = [bounds.dual for bounds in solved.bounds]
        history["exact"][last] = True
        return [history[a:b] for a, b in pairwise([0, *solved.ends.tolist()])]

    @property
    def done(self) -> bool:
        """Whether every problem is proved, and nobody listens to its end."""
        return all(self.proved) and not self._heard

    @property
    def _heard(self) -> bool:
        training = self.training
        told = training.on_epoch is not None or training.estimator.verbose > 0
        return told or logger.isEnabledFor(logging.INFO)

    def tell(self, p: int, solution: Solution, model: Callable[[], Vector]) -> None:
        """Report the end of problem p; `model` returns what callbacks ask for."""
        if not self._heard:
            return
        training = self.training
        hear = listener(training.labels[p], None, training.on_epoch)
        progress = Progress(
            self._common.solver, self._common.tol, training.title(p), hear
        )
        progress.history = solution.history[-1:].tolist()
        progress.end(solution.certificate, model)
