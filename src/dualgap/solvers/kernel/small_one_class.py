"""Small one-class problems, solved in one call over a kernel matrix in float64.

The core solves the dual like one pair of classes (src/core/gram/whole.hpp), and one
proof follows. The ordinary solver trains a problem whose accuracy is not proved.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import core
from ...certificate import Bounds
from ...kernels.gram import Gram
from ...losses import Vector
from ...problems.base import Claim, Proof
from ...problems.kernel_boxes import BoxProblem
from .auto import Auto
from .pairs import dense_source, small_enough, when_to_end


@dataclass(frozen=True)
class Settings:
    """Tuning constants of :func:`solve_one_class`."""

    #: Most rows: the block solver needs only some rows of a larger matrix.
    most_rows: int = 400


SETTINGS = Settings()


class SolvedOneClass(NamedTuple):
    """Solution of a one-class problem.

    Attributes
    ----------
    proof : Proof
    bounds : list of Bounds
        The bounds of the proof, alone.
    epochs : ndarray of shape (n_epochs, 3)
        Estimates of P and D, and the steps so far, after each epoch.
    ends : ndarray of shape (1,)
        The number of epochs.
    seconds : float
    """

    proof: Proof
    bounds: list[Bounds]
    epochs: Vector
    ends: NDArray[np.intp]
    seconds: float


def solve_one_class(
    solver: object,
    problem: BoxProblem,
    *,
    tol: float,
    atol: float,
    max_epochs: int,
    stop: core.Stop,
) -> SolvedOneClass | None:
    """Solve a small one-class problem from its first point.

    Parameters
    ----------
    solver : KernelSolver
    problem : BoxProblem
    tol, atol, max_epochs
        As for :func:`dualgap.solve`.
    stop : core.Stop

    Returns
    -------
    SolvedOneClass or None
        None if the problem is another one or has many rows, the solver is not `Auto`,
        the core cannot compute the matrix, or `stop` ended the work.
    """
    gram, alpha = problem.gram, problem.start()
    if problem.kind != "kernel-one-class" or problem.n > SETTINGS.most_rows:
        return None
    if not isinstance(gram, Gram):
        return None
    begun = time.perf_counter()
    if not small_enough(solver, gram.kernel, problem.n, gram.cache_size):
        return None
    assert isinstance(solver, Auto)
    source = dense_source(gram)
    if source is None or alpha is None:
        return None
    epochs = core.solve_one_class(
        source,
        problem.upper,
        problem.floor,
        when_to_end(solver, 1, tol, atol, max_epochs),
        alpha,
        stop,
    )
    if not len(epochs):
        return None
    proof = problem.prove(Claim(alpha=alpha))
    ends, seconds = np.array([len(epochs)]), time.perf_counter() - begun
    return SolvedOneClass(proof, [proof.certificate.bounds], epochs, ends, seconds)
