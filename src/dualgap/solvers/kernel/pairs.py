"""Small problems, solved in one call over one kernel matrix.

The core solves each pair of classes as one working set of the block solver, in float64
(src/core/gram/whole.hpp) and proves the result. It solves the dual of one class alike,
and one proof follows. The ordinary solver trains problems whose accuracy is not proved.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

import numpy as np

from ... import core
from ...certificate import Bounds
from ...kernels.functions import Kernel
from ...kernels.gram import Gram, row_source
from ...losses import get_loss
from ...problems.base import EMPTY, Claim
from ...problems.batch import SingleBatch
from ...problems.duals import Made
from ...problems.kernel import KernelBatch
from ...problems.kernel_boxes import BoxProblem
from ...problems.kernel_matrix import score_roundings
from ..base import Limits, Whole, targets
from .auto import KernelAuto
from .block import BlockSolver


@dataclass(frozen=True)
class SmallSettings:
    """Tuning constants of :func:`solve_pairs` and :func:`solve_one_class`."""

    #: Megabytes of the largest kernel matrix of all rows.
    largest_matrix: float = 32.0
    #: Largest part of the cache that the matrix may take.
    cache_share: float = 0.5
    #: Roundings of a score per term: the core adds up the products of six rows, and
    #: then adds these sums one by one.
    roundings_per_term: float = 1 / 6
    #: Most rows of one class: the block solver needs only some rows of a larger matrix.
    most_one_class_rows: int = 400


SETTINGS = SmallSettings()


def small_enough(solver: object, kernel: Kernel, n: int, cache_size: float) -> bool:
    """Whether `solver` is `KernelAuto`, and the core holds the matrix of n rows."""
    if type(solver) is not KernelAuto or kernel.form is None or not kernel.positive:
        return False
    most = min(SETTINGS.largest_matrix, SETTINGS.cache_share * cache_size)
    return 8e-6 * n * n <= most


def dense_source(gram: Gram) -> core.KernelRows | None:
    """Return the source of kernel rows if it is dense."""
    source = row_source(gram)
    if not isinstance(source, core.KernelRows):
        return None
    return source if source.dense else None


def when_to_end(solver: KernelAuto, problems: int, job: Limits) -> core.WholeSettings:
    """Return the core's record of when each of `problems` problems ends."""
    return core.WholeSettings(
        targets(job, solver.free_goal, solver.settings.free_entries),
        solver.settings.most_entries / problems,
        job.max_iter,
    )


def solve_pairs(solver: object, batch: KernelBatch, job: Limits) -> Whole | None:
    """Solve the hinge with an unpenalised bias for every pair of classes.

    Returns None if the loss or the bias is another one, the solver is not `KernelAuto`,
    the core cannot compute the matrix of all rows, it is too large, or `stop` ended the
    work.
    """
    begun = time.perf_counter()
    options, cost = batch.options, batch.cost
    free = options["fit_intercept"] and not options["penalize_intercept"]
    if not free or get_loss(options["loss"]).name != "hinge":
        return None
    if not small_enough(solver, batch.kernel, len(cost), batch.cache_size):
        return None
    assert isinstance(solver, KernelAuto)
    gram = Gram(batch.points, batch.kernel, batch.cache_size)
    source = dense_source(gram)
    if source is None:
        return None
    coef, scores = np.empty((2, batch.reduction.tables, len(cost)))
    found = core.solve_pairs(
        source,
        batch.bounds,
        cost,
        score_roundings(gram, SETTINGS.roundings_per_term),
        when_to_end(solver, len(batch), job),
        core.PairTables(coef, scores),
        job.stop,
    )
    if not found.ends:
        return None
    bias, pairs = found.biases[:, 0], range(len(batch))
    return Whole(
        [EMPTY] * len(batch),
        Made(lambda k: np.abs(batch.entries(coef, k)), pairs),
        [Bounds.proved(*of) for of in zip(*found.bounds.T.tolist(), strict=True)],
        found.epochs,
        np.array(found.ends),
        time.perf_counter() - begun,
        BlockSolver.name,
        bias,
        Made(lambda k: batch.entries(scores, k) + bias[k], pairs),
        table=coef,
    )


def solve_one_class(solver: object, batch: SingleBatch, job: Limits) -> Whole | None:
    """Solve a small one-class problem from its first point.

    Returns None if the problem has many rows, the solver is not `KernelAuto`, the core
    cannot compute the matrix, or `stop` ended the work.
    """
    problem = cast(BoxProblem, batch.only)
    gram = problem.gram
    if problem.n > SETTINGS.most_one_class_rows or not isinstance(gram, Gram):
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
