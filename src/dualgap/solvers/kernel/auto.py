"""`auto`: the block solver, run down to rounding where this costs little.

Problem    hinge with an unpenalised bias, or squared hinge with a penalised bias
           (problem.py)
Update     as in `block` (block.py)
Guarantee  as in `block`
Cost       at most twice the work that reaches tol, plus `free_entries` entries of
           kernel rows, and no extra work beyond `most_entries` entries in all. Work is
           counted, not timed.
Source     measured, docs/kernel.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from ... import core
from ...certificate import size_of_optimum
from ...losses import Vector
from ..base import register
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
