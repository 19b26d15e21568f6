"""Small one-class problems, solved in one call over a kernel matrix in float64.

The core solves the dual like one pair of classes (src/core/gram/whole.hpp), and one
proof follows. The ordinary solver trains a problem whose accuracy is not proved.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ... import core
from ...kernels.gram import Gram
from ...problems.base import Claim
from ...problems.kernel_boxes import BoxProblem
from ..together import SolvedProblems
from .auto import Auto
from .block import BlockSolver
from .pairs import dense_source, small_enough, when_to_end


@dataclass(frozen=True)
class Settings:
    """Tuning constants of :func:`solve_one_class`."""

    #: Most rows: the block solver needs only some rows of a larger matrix.
    most_rows: int = 400


SETTINGS = Settings()


def solve_one_class(
    solver: object,
    problem: BoxProblem,
    *,
    tol: float,
    atol: float,
    max_epochs: int,
    random_state: int,
    stop: core.Stop,
) -> SolvedProblems | None:
    """Solve a small one-class problem from its first point.

    Parameters
    ----------
    solver : KernelSolver
    problem : BoxProblem
    tol, atol, max_epochs
        As for :func:`dualgap.solve`.
    random_state : int
        Without effect: nothing is random.
    stop : core.Stop

    Returns
    -------
    SolvedProblems or None
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
    return SolvedProblems(
        np.empty((1, 0)),
        proof.alpha[None],
        [proof.certificate.bounds],
        epochs,
        np.array([len(epochs)]),
        time.perf_counter() - begun,
        BlockSolver.name,
        proof.bias,
        proof.decisions,
        problem.floor,
    )
