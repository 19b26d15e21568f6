"""`auto`: the block solver, run down to rounding where this costs little.

Problem    hinge with an unpenalised bias, or squared hinge with a penalised bias
           (problems/kernel.py)
Update     as in `block` (block.py)
Guarantee  as in `block`
Cost       at most twice the work that reaches tol, plus `free_entries` entries of
           kernel rows, and no extra work beyond `most_entries` entries in all. Work is
           counted, not timed.
Source     measured, docs/kernel.md

Small problems are solved in one call, and so are many pairs of small classes. The core
solves each pair, with nu too, as one working set of the block solver, over kernel
values in float64, and proves the result (src/core/gram/pairs.hpp). It solves the duals
of one class and of nu-SVR alike, and their proofs follow. The ordinary solver trains
problems whose accuracy is not proved.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeGuard, cast

import numpy as np

from ... import core
from ...certificate import Bounds, size_of_optimum
from ...kernels.functions import Kernel
from ...kernels.gram import Gram, kernel_rows
from ...losses import Vector, get_loss
from ...problems.base import EMPTY, Claim
from ...problems.batch import SingleBatch
from ...problems.duals import Made
from ...problems.kernel import KernelBatch, NuBatch
from ...problems.kernel_boxes import BoxProblem
from ...problems.kernel_matrix import score_roundings
from ...problems.kernel_nu import NuRegression
from ..base import Limits, Whole, register, targets
from .base import BoxedProblem
from .block import BlockSettings, BlockSolver, BlockState


@dataclass(frozen=True)
class KernelAutoSettings(BlockSettings):
    """Tuning constants of `KernelAuto`, with the constants of `BlockSolver`.

    Work is counted in entries of kernel rows.
    """

    #: Extra work of a fit that has reached tol, beyond twice the work so far.
    free_entries: float = 2e7
    #: Limit on all work of a fit, including that extra work.
    most_entries: float = 1e8
    #: The extra work begins when the estimated gap is below this multiple of tol.
    near: float = 1.25
    #: Target gap for the squared hinge. Its gap is of second order in the violation of
    #: the optimality conditions, the gap of the hinge of first order.
    squared_goal: float = 1e-15


@register(
    *("kernel", "kernel-regression", "kernel-one-class", "kernel-simplex"),
    *("kernel-nu", "kernel-nu-regression"),
)
@dataclass(frozen=True)
class KernelAuto(BlockSolver):
    """Default solver of kernel problems: the block solver.

    Problems of up to about 2,000 rows are solved to rounding if this takes at most
    about twice as long. Small models then do not depend on the order of their rows, and
    a row of weight k is worth k equal rows.

    Parameters
    ----------
    problems : int, default=1
        Number of problems in the whole fit. They share the extra work for this.
    """

    problems: int = 1

    name: ClassVar[str] = "auto"
    settings: ClassVar[KernelAutoSettings] = KernelAutoSettings()

    def one_of(self, problems: int, threads: int) -> KernelAuto:
        return replace(self, problems=problems, threads=threads)

    def start(
        self, problem: BoxedProblem, rng: core.Random, warm: Vector | None
    ) -> BlockState:
        state = super().start(problem, rng, warm)
        state.method = BlockSolver.name
        return state

    def goal(self, state: BlockState) -> float:
        settings = self.settings
        work = state.block.q * float(state.epochs * state.problem.n + state.updates)
        if math.isnan(state.reached):
            size = size_of_optimum(state.primal, state.dual, state.problem.floor)
            if not state.primal - state.dual <= settings.near * state.tol * size:
                return state.tol
            state.reached = work
        limit, longest = settings.most_entries / self.problems, 2.0 * state.reached
        if longest <= limit and work < min(limit, longest + settings.free_entries):
            squared = state.problem.loss.name == "squared_hinge"
            return min(state.tol, settings.squared_goal if squared else self.free_goal)
        return state.tol


@dataclass(frozen=True)
class SmallSettings:
    """Tuning constants of :func:`solve_pairs` and of the functions like it."""

    #: Megabytes of the largest kernel matrix of all rows.
    largest_matrix: float = 32.0
    #: Most rows of a pair of classes whose rows have a larger matrix. It is computed in
    #: parts, one class with the later ones.
    most_rows: int = 500
    #: Largest part of the cache that the kernel values may take.
    cache_share: float = 0.5
    #: Work that every problem may take, in entries of kernel rows.
    least_entries: float = 1e4
    #: Roundings of a score per term: the core adds up the products of six rows, and
    #: then adds these sums one by one.
    roundings_per_term: float = 1 / 6
    #: Most rows of one class, or of regression with nu: the block solver needs only
    #: some rows of a larger matrix.
    most_rows_alone: int = 400
    #: Most rows of a pair with nu, for the same reason.
    most_nu_rows: int = 800


SETTINGS = SmallSettings()


def small_enough(
    solver: object,
    kernel: Kernel,
    bounds: Sequence[int],
    cache_size: float,
) -> TypeGuard[KernelAuto]:
    """Return whether the core trains classes together; class k ends at bounds[k + 1].

    The solver must be `KernelAuto`, and the core must know the kernel.
    """
    if type(solver) is not KernelAuto or kernel.form is None or not kernel.positive:
        return False
    n, room = bounds[-1], 1e6 * SETTINGS.cache_share * cache_size
    if 8.0 * n * n <= min(1e6 * SETTINGS.largest_matrix, room):
        return True
    largest = sorted(np.diff(bounds).tolist())[-2:]
    return sum(largest) <= SETTINGS.most_rows and 16.0 * n * largest[-1] <= room


def dense_source(gram: Gram) -> core.KernelRows | None:
    """Return the core's source of kernel rows if it is dense."""
    source = kernel_rows(gram)
    return source if source.dense else None


def when_to_end(solver: KernelAuto, problems: int, job: Limits) -> core.WholeSettings:
    """Return the core's record of when each of `problems` problems ends."""
    return core.WholeSettings(
        targets(job, solver.free_goal, solver.settings.free_entries),
        max(solver.settings.most_entries / problems, SETTINGS.least_entries),
        job.max_iter,
    )


def solve_pairs(solver: object, batch: KernelBatch, job: Limits) -> Whole | None:
    """Solve the hinge with an unpenalised bias for every pair of classes.

    Returns None if the loss or the bias is another one, the solver is not `KernelAuto`,
    the core cannot compute the matrix of all rows, it is too large, or `stop` ended the
    work.
    """
    begun = time.perf_counter()
    options = batch.options
    free = options["fit_intercept"] and not options["penalize_intercept"]
    if not free or get_loss(options["loss"]).name != "hinge":
        return None
    return _in_one_call(solver, batch, job, begun, [])


def solve_nu_pairs(solver: object, batch: NuBatch, job: Limits) -> Whole | None:
    """Solve the problem with nu for every pair of classes.

    Returns None where :func:`solve_pairs` would for the hinge, and for large pairs.
    """
    begun = time.perf_counter()
    if sum(sorted(np.diff(batch.bounds))[-2:]) > SETTINGS.most_nu_rows:
        return None
    return _in_one_call(solver, batch, job, begun, batch.halves())


def _in_one_call(
    solver: object, batch: KernelBatch, job: Limits, begun: float, halves: list[float]
) -> Whole | None:
    """Solve and prove all pairs; `halves` are sums of dual variables, for nu."""
    cost = batch.cost
    if not small_enough(solver, batch.kernel, batch.bounds, batch.cache_size):
        return None
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
        halves,
    )
    if not found.ends:
        return None
    bias, pairs = found.biases[:, 0], range(len(batch))
    return Whole(
        [EMPTY] * len(batch),
        Made(lambda k: np.abs(batch.entries(coef, k)), pairs),
        [Bounds.proved(*of) for of in found.bounds.tolist()],
        found.epochs,
        np.array(found.ends),
        time.perf_counter() - begun,
        BlockSolver.name,
        bias,
        Made(lambda k: batch.entries(scores, k) + bias[k], pairs),
        found.floors,
        coef,
    )


def solve_alone(solver: object, batch: SingleBatch, job: Limits) -> Whole | None:
    """Solve a small one-class problem, or a regression with nu.

    Returns None if the problem has many rows, the solver is not `KernelAuto`, the core
    cannot compute the matrix, or `stop` ended the work.
    """
    problem = cast(BoxProblem, batch.only)
    gram = problem.gram
    if problem.n > SETTINGS.most_rows_alone or not isinstance(gram, Gram):
        return None
    begun = time.perf_counter()
    if not small_enough(solver, gram.kernel, [0, problem.n], gram.cache_size):
        return None
    source, alpha = dense_source(gram), problem.start()
    if source is None or alpha is None:
        return None
    last = when_to_end(solver, 1, job), alpha, job.stop
    if isinstance(problem, NuRegression):
        given = problem.linear, problem.cost, problem.half
        epochs = core.solve_nu_regression(source, *given, *last)
    else:
        epochs = core.solve_one_class(source, problem.upper, problem.floor, *last)
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
        [problem.floor],
    )
