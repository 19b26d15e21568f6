"""SvmSGD: Bottou's plain stochastic gradient descent.

Problem    min lambda/2 ||w||^2 + (1/n) sum_i l(y_i w.x_i), lambda = 1/(nC)
Update     w <- (1 - eta_t lambda) w - eta_t l'(y_i w.x_i) y_i x_i,
           eta_t = eta0/(1 + lambda eta0 (t - 1))
           eta0 is the best of 1, 2, 4, ... or 1/2, 1/4, ... on a sample of rows
Guarantee  asymptotically O(1/t)
Cost       O(nnz of the row) per step
Source     Bottou, "Stochastic gradient tricks" (2012), and his program svmsgd. There
           the bias is not penalised and moves a hundredth as fast. Here it is the
           constant feature, so that the optimum is the same for every solver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import core
from ...checks import Step
from ...data.blocks import Block
from ...losses import LOSSES
from ...problems.binary import BinaryProblem
from ..base import OrderedSolver, RowOrder, new_order, register
from .stochastic_gradient import StochasticGradient, fresh_state, gradient_pass


@dataclass(frozen=True)
class SvmSGDSettings:
    """Tuning constants of `SvmSGD`."""

    #: Rows on which eta0 is chosen, as in svmsgd.
    sample: int = 1000


@register("binary")
@dataclass(frozen=True)
class SvmSGD(OrderedSolver, StochasticGradient):
    """Stochastic gradient descent of Bottou's svmsgd.

    Parameters
    ----------
    initial_step : float, optional
        Constant eta0 of the step size. None: chosen on 1000 rows.
    """

    initial_step: Step | None = None

    name: ClassVar[str] = "svmsgd"
    settings: ClassVar[SvmSGDSettings] = SvmSGDSettings()
    schedule: ClassVar[core.Schedule] = core.Schedule.svmsgd
    losses: ClassVar[tuple[str, ...]] = tuple(LOSSES)

    def options(self) -> tuple[RowOrder, int, bool, bool]:
        return self.order, 1, False, False

    def eta0(self, problem: BinaryProblem, rng: core.Random) -> float:
        if self.initial_step is not None:
            return self.initial_step
        # The rows of a store are in random order: its first page is a sample.
        for block in problem.blocks([[0]]):
            order = new_order(block.size)
            rng.shuffle(order)
            sample = order[: self.settings.sample]
            return self._best_start(problem, rng, block, sample)
        raise AssertionError("every problem has a block")

    def _best_start(
        self,
        problem: BinaryProblem,
        rng: core.Random,
        block: Block,
        sample: NDArray[np.uint32],
    ) -> float:
        def cost(eta0: float) -> float:
            """Return the objective after a pass from w = 0; infinity on divergence."""
            trial = replace(self, initial_step=eta0)
            state = fresh_state(problem, rng, sample)
            state.eta0 = eta0
            gradient_pass(trial, state, block, sample, core.Stop())
            # A second pass, without steps, reads the loss at the end point.
            still = replace(state, eta0=0.0, v=state.v.copy(), beta=state.beta.copy())
            loss = gradient_pass(trial, still, block, sample, core.Stop())
            value = 0.5 * problem.lambda_ * state.norm + loss / len(sample)
            return value if np.isfinite(value) else np.inf

        low, factor = 1.0, 2.0
        low_cost, high_cost = cost(low), cost(low * factor)
        if high_cost < low_cost:  # grow while it helps
            while high_cost < low_cost and low < 1e15:
                low, low_cost = low * factor, high_cost
                high_cost = cost(low * factor)
            return low
        while low > 1e-15:  # shrink while it helps
            lower_cost = cost(low / factor)
            if not lower_cost < low_cost:
                break
            low, low_cost = low / factor, lower_cost
        return low
