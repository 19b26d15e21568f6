"""Small problems of all pairs of classes, solved in one call over one kernel matrix.

The core solves each pair as one working set of the block solver, in float64
(src/core/gram/whole.hpp). The loop then proves the result, or the ordinary solver
trains the pair.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ... import core
from ...data.rows import Points
from ...kernels.functions import Kernel
from ...kernels.gram import Gram
from ...kernels.rows import row_source
from ...losses import Vector
from ...problems.base import Claim, KernelHint, Near
from .auto import Auto


@dataclass(frozen=True)
class Settings:
    """Tuning constants of :func:`solve_pairs`."""

    #: Megabytes of the largest kernel matrix of all rows.
    largest_matrix: float = 32.0
    #: Largest part of the cache that the matrix may take.
    cache_share: float = 0.5


SETTINGS = Settings()


class SolvedPair(NamedTuple):
    """Dual variables of a pair of classes, before their proof.

    Attributes
    ----------
    claim : Claim
        Dual variables, with float64 scores.
    epochs : list of tuple
        Estimates of P and D, and the steps so far, after each epoch.
    seconds : float
        Share of the time of all pairs.
    """

    claim: Claim
    epochs: list[tuple[float, float, int]]
    seconds: float


def solve_pairs(
    solver: Any,
    points: Points,
    kernel: Kernel,
    bounds: list[int],
    cost: Vector,
    *,
    cache_size: float,
    tol: float,
    atol: float,
    max_epochs: int,
    stop: core.Stop,
) -> list[SolvedPair] | None:
    """Solve the hinge with an unpenalised bias for every pair of classes.

    Parameters
    ----------
    solver : KernelSolver or Nystroem
    points : Points
        Rows, sorted by class.
    kernel : Kernel
        Its gamma is resolved.
    bounds : list of int
        Class c has the rows bounds[c] to bounds[c + 1] - 1.
    cost : ndarray of shape (n,)
        Costs of the rows, positive.
    cache_size : float
        Megabytes for kernel values.
    tol, atol : float
        As for :func:`dualgap.solve`.
    max_epochs : int
    stop : core.Stop

    Returns
    -------
    list of SolvedPair or None
        One for each pair (0, 1), (0, 2), ...; the first class is positive, except with
        two classes, where the second one is. None if the solver is not `Auto`, the
        core cannot compute the matrix, it is too large, or `stop` ended the work.
    """
    begun = time.perf_counter()
    n = len(cost)
    megabytes = 8e-6 * n * n
    if type(solver) is not Auto or kernel.form is None or not kernel.positive:
        return None
    if megabytes > min(SETTINGS.largest_matrix, SETTINGS.cache_share * cache_size):
        return None
    source = row_source(Gram(points, kernel, cache_size))
    if not isinstance(source, core.KernelRows):
        return None
    if not (source.dense and source.by_products):
        return None
    sizes = np.diff(bounds)
    classes = len(sizes)
    pairs = classes * (classes - 1) // 2
    alpha, scores, errors = np.empty((3, (classes - 1) * n))
    how = core.WholeSettings(
        tol,
        atol,
        min(tol, solver.free_goal),
        solver.settings.free_entries,
        solver.settings.most_entries / pairs,
        max_epochs,
    )
    solutions = core.PairSolutions(alpha, scores, errors)
    told = core.solve_pairs(source, bounds, cost, classes > 2, how, solutions, stop)
    if not told:
        return None
    seconds = (time.perf_counter() - begun) / pairs
    found, at, p = [], 0, 0
    for i in range(classes):
        for j in range(i + 1, classes):
            end = at + int(sizes[i] + sizes[j])
            near = Near(scores[at:end], errors[at:end], math.nan)
            claim = Claim(alpha=alpha[at:end], hint=KernelHint(near, exact=True))
            found.append(SolvedPair(claim, told[p][1:] or told[p], seconds))
            at, p = end, p + 1
    return found
