"""Small regression problems, solved and proved in one call.

The core makes the epochs of `dcd` and evaluates P and D where they seem to meet the
goal (src/core/small_regression.hpp). The ordinary solver trains a problem whose
accuracy is not proved.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

import numpy as np

from .. import core
from ..problems.batch import SingleBatch
from ..problems.regression import RegressionProblem
from ..problems.rounding import Values
from .base import Limits, Whole
from .regression import RegressionDCD


@dataclass(frozen=True)
class SmallRegressionSettings:
    """Tuning constants of :func:`solve_regression`."""

    #: Rows times features of the largest problem.
    most_entries: int = 20_000
    #: Entries to read after which the ordinary solver takes over.
    most_work: float = 4e6


SETTINGS = SmallRegressionSettings()


def solve_regression(solver: object, batch: SingleBatch, job: Limits) -> Whole | None:
    """Solve a small regression problem from a = 0.

    Returns None if the solver is not `RegressionDCD`, the rows are many or on disk,
    there are several problems, or `stop` ended the work.
    """
    problem = cast(RegressionProblem, batch.only)
    if len(batch) > 1:
        return None
    entries = problem.n * problem.width
    small = entries <= SETTINGS.most_entries and not problem.streamed
    if type(solver) is not RegressionDCD or not small:
        return None
    begun = time.perf_counter()
    limits, tol = solver.settings, job.tol
    tiny = entries <= limits.free_entries
    w, alpha = np.zeros((1, problem.width)), np.zeros((1, problem.n))
    found = core.solve_regression(
        problem.with_targets,
        core.DualState(alpha[0], w[0]),
        core.RegressionTargets(
            tol,
            job.atol,
            solver.tight_goal(problem, tol) if tiny else tol,
            min(solver.free_work, limits.free_epochs * (entries + problem.width)),
            SETTINGS.most_work,
            job.max_iter,
        ),
        core.Random(int(job.seeds[0])),
        problem.threads,
        job.stop,
    )
    epochs = found.epochs
    if not len(epochs):
        return None
    bounds = problem.bounds(alpha[0], Values.of(found.values), found.norm)
    return Whole(
        w,
        alpha,
        [bounds],
        epochs,
        np.array([len(epochs)]),
        time.perf_counter() - begun,
        solver.name,
    )
