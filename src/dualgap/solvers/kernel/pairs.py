"""Small problems of all pairs of classes, solved in one call over one kernel matrix.

The core solves each pair as one working set of the block solver, in float64
(src/core/gram/whole.hpp) and proves the result. The ordinary solver trains pairs whose
accuracy is not proved.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import core
from ...certificate import Bounds
from ...data.rows import Points
from ...kernels.functions import Kernel
from ...kernels.gram import Gram
from ...kernels.rows import row_source
from ...losses import Vector
from ...problems.kernel_matrix import score_roundings
from .auto import Auto
from .block import BlockSolver


@dataclass(frozen=True)
class Settings:
    """Tuning constants of :func:`solve_pairs`."""

    #: Megabytes of the largest kernel matrix of all rows.
    largest_matrix: float = 32.0
    #: Largest part of the cache that the matrix may take.
    cache_share: float = 0.5
    #: Roundings of a score per term: the core adds up the products of six rows, and
    #: then adds these sums one by one.
    roundings_per_term: float = 1 / 6


SETTINGS = Settings()


class SolvedPairs(NamedTuple):
    """Solutions of all pairs of classes, with their proofs.

    Attributes
    ----------
    coef, scores : ndarray of shape (n_classes - 1, n)
        ``y_i alpha_i``, and float64 scores. In the pair (i, j) the rows of class i have
        their entries in row j - 1, the rows of class j in row i.
    intercept : ndarray of shape (n_pairs,)
    bounds : list of Bounds
    epochs : ndarray of shape (n_epochs, 3)
        Estimates of P and D, and the steps so far, after each epoch of each pair.
    ends : ndarray of shape (n_pairs,)
        Where the epochs of each pair end.
    seconds : float
        Time of all pairs.
    method, floor
        As for :class:`dualgap.solvers.together.SolvedProblems`.
    """

    coef: Vector
    scores: Vector
    intercept: Vector
    bounds: list[Bounds]
    epochs: Vector
    ends: NDArray[np.intp]
    seconds: float
    method: str = BlockSolver.name
    floor: float = 0.0


def small_enough(solver: object, kernel: Kernel, n: int, cache_size: float) -> bool:
    """Whether `solver` is `Auto`, and the core holds the kernel matrix of n rows."""
    if type(solver) is not Auto or kernel.form is None or not kernel.positive:
        return False
    most = min(SETTINGS.largest_matrix, SETTINGS.cache_share * cache_size)
    return 8e-6 * n * n <= most


def dense_source(gram: Gram) -> core.KernelRows | None:
    """Return the source of kernel rows if it is dense."""
    source = row_source(gram)
    if not isinstance(source, core.KernelRows):
        return None
    return source if source.dense else None


def when_to_end(
    solver: Auto, problems: int, tol: float, atol: float, max_epochs: int
) -> core.WholeSettings:
    """Return the core's record of when each of `problems` problems ends."""
    return core.WholeSettings(
        tol,
        atol,
        min(tol, solver.free_goal),
        solver.settings.free_entries,
        solver.settings.most_entries / problems,
        max_epochs,
    )


def solve_pairs(
    solver: object,
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
) -> SolvedPairs | None:
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
    SolvedPairs or None
        The pairs are (0, 1), (0, 2), ...; the first class is positive, except with two
        classes, where the second one is. None if the solver is not `Auto`, the
        core cannot compute the matrix, it is too large, or `stop` ended the work.
    """
    begun = time.perf_counter()
    n = len(cost)
    if not small_enough(solver, kernel, n, cache_size):
        return None
    assert isinstance(solver, Auto)
    gram = Gram(points, kernel, cache_size)
    source = dense_source(gram)
    if source is None:
        return None
    classes = len(bounds) - 1
    coef, scores = np.empty((2, classes - 1, n))
    how = when_to_end(solver, classes * (classes - 1) // 2, tol, atol, max_epochs)
    found = core.solve_pairs(
        source,
        bounds,
        cost,
        score_roundings(gram, SETTINGS.roundings_per_term),
        how,
        core.PairTables(coef, scores),
        stop,
    )
    if not found.ends:
        return None
    return SolvedPairs(
        coef,
        scores,
        found.biases[:, 0],
        [Bounds.proved(*of) for of in zip(*found.bounds.T.tolist(), strict=True)],
        found.epochs,
        np.array(found.ends),
        time.perf_counter() - begun,
    )
