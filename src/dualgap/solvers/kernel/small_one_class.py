"""Small one-class problems, solved in one call over a kernel matrix in float64.

The core solves the dual like one pair of classes (src/core/gram/whole.hpp), and one
proof follows. The ordinary solver trains a problem whose accuracy is not proved.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

import numpy as np

from ... import core
from ...kernels.gram import Gram
from ...problems.base import EMPTY, Claim
from ...problems.batch import SingleBatch
from ...problems.kernel_boxes import BoxProblem
from ..base import Limits, Whole
from .auto import KernelAuto
from .block import BlockSolver
from .pairs import dense_source, small_enough, when_to_end


@dataclass(frozen=True)
class SmallOneClassSettings:
    """Tuning constants of :func:`solve_one_class`."""

    #: Most rows: the block solver needs only some rows of a larger matrix.
    most_rows: int = 400


SETTINGS = SmallOneClassSettings()


def solve_one_class(solver: object, batch: SingleBatch, job: Limits) -> Whole | None:
    """Solve a small one-class problem from its first point.

    Returns None if the problem has many rows, the solver is not `KernelAuto`, the core
    cannot compute the matrix, or `stop` ended the work.
    """
    problem = cast(BoxProblem, batch.only)
    gram = problem.gram
    if problem.n > SETTINGS.most_rows or not isinstance(gram, Gram):
        return None
    begun = time.perf_counter()
    if not small_enough(solver, gram.kernel, problem.n, gram.cache_size):
        return None
    assert isinstance(solver, KernelAuto)
    source, alpha = dense_source(gram), problem.start()
    if source is None or alpha is None:
        return None
    epochs = core.solve_one_class(
        source,
        problem.upper,
        problem.floor,
        when_to_end(solver, 1, job),
        alpha,
        job.stop,
    )
    if not len(epochs):
        return None
    proof = problem.prove(Claim(alpha=alpha))
    assert proof.bias is not None
    assert proof.decisions is not None
    return Whole(
        [EMPTY],
        [proof.alpha],
        [proof.certificate.bounds],
        epochs,
        np.array([len(epochs)]),
        time.perf_counter() - begun,
        BlockSolver.name,
        [proof.bias],
        [proof.decisions],
        problem.floor,
    )
