"""`auto`: the block solver, to rounding where that costs little.

Problem    hinge with a free bias, or squared hinge with a penalised one (problem.py)
Update     block.py
Guarantee  that of `block`
Cost       beyond what tol takes at most as much again and `FREE` entries of kernel
           rows, and never more than `LIMIT` in all. Work is counted, never timed.
Source     measured, docs/kernel.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..certificate import size_of_optimum
from ..losses import Vector
from ..solvers.base import ROUNDING
from .block import BlockSolver, BlockState

# Entries of kernel rows that a fit may pass before tol ends it.
FREE, LIMIT = 2e7, 1e8
NEAR = 1.25
# The gap of the squared hinge is of second order in what the optimality conditions
# lack, that of the hinge of first.
_SQUARED = 1e-15


@dataclass(frozen=True)
class Auto(BlockSolver):
    """The fastest certified solver for the problem at hand: the block solver.

    Problems of up to about 2,000 rows are solved to rounding where that takes about
    twice as long at most: small models do not depend on the order of their rows, and
    the weight k is worth k equal rows.

    Parameters
    ----------
    problems : int, default=1
        Problems of the whole fit, which share what it may spend on that.
    """

    problems: int = 1

    name: ClassVar[str] = "auto"

    def one_of(self, problems: int, threads: int) -> Auto:
        return replace(self, problems=problems, threads=threads)

    def start(self, problem: Any, rng: Any, warm: Vector | None) -> BlockState:
        state = super().start(problem, rng, warm)
        state.method = BlockSolver.name
        return state

    def goal(self, state: BlockState) -> float:
        work = state.block.q * float(state.epochs * state.problem.n + state.updates)
        if math.isnan(state.reached):
            # From where the loop looks on.
            size = size_of_optimum(state.primal, state.dual, state.problem.floor)
            if not state.primal - state.dual <= NEAR * state.tol * size:
                return state.tol
            state.reached = work
        limit, longest = LIMIT / self.problems, 2.0 * state.reached
        if longest <= limit and work < min(limit, longest + FREE):
            squared = state.problem.loss.name == "squared_hinge"
            return min(state.tol, _SQUARED if squared else ROUNDING)
        return state.tol
