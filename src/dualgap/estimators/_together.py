"""Problems of one fit that the core solved in one call: certificates and histories."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..certificate import Bounds, Certificate, LazyParts
from ..losses import Vector
from ..solvers.together import Parts, Solved, SolvedProblems
from ..training import HISTORY_DTYPE, Solution
from ..training.progress import Progress
from .fitting import listener
from .training import Training

__all__ = ["SolutionsTogether", "SolvedTogether"]

logger = logging.getLogger("dualgap")


class SolvedTogether(Parts):
    """Certificates and histories of problems that were solved in one call.

    Parameters
    ----------
    training : Training
        The fit, with a name per problem.
    solved : Solved
    solver : str
        Name of the solver.
    """

    def __init__(self, training: Training, solved: Solved, solver: str) -> None:
        model = training.estimator
        super().__init__(solved, solver, model.tol, model.atol)
        self.training = training

    def certificate(self) -> Certificate:
        """Return the certificate of all problems."""
        solved, names = self.solved, self.training.names
        count = len(solved.bounds)
        if count == 1:
            return self.part(0)
        return replace(
            self.common,
            bounds=Bounds.total(solved.bounds),
            epochs=len(solved.epochs),
            updates=sum(self.updates),
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
        history["epoch"] -= np.repeat(self.starts, self.lengths)
        history["seconds"], history["exact"] = self.common.seconds, False
        history["primal"], history["dual"], history["updates"] = primal, dual, steps
        history["solver"], history["predicted"] = solved.method, math.nan
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
            self.common.solver, self.common.tol, training.title(p), hear
        )
        progress.history = solution.history[-1:].tolist()
        progress.end(solution.certificate, model)


class SolutionsTogether(SolvedTogether):
    """Problems that were solved in one call, each with a solution of its own."""

    solved: SolvedProblems

    def solution(self, p: int) -> Solution:
        """Return the solution of problem p."""
        solved, history = self.solved, self.histories[p]
        return Solution(
            solved.w[p],
            solved.alpha[p],
            self.part(p),
            history,
            solved.bias,
            solved.decisions,
        )

    def trainer(self, train: Callable[[int], Solution]) -> Callable[[int], Solution]:
        """Return a function that gives the solution of problem p, proved or trained.

        Parameters
        ----------
        train : callable
            Trains a problem that is not proved.
        """

        def solution(p: int) -> Solution:
            if not self.proved[p]:
                return train(p)
            found = self.solution(p)
            model = found.w if found.decisions is None else found.decisions
            self.tell(p, found, lambda: model)
            return found

        return solution
