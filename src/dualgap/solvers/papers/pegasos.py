"""Pegasos: primal estimated sub-gradient solver.

Problem    min lambda/2 ||w||^2 + (1/n) sum_i max(0, 1 - y_i w.x_i), lambda = 1/(nC)
Update     step t on k rows A, those with y_i w.x_i < 1 being A+:
             w <- (1 - 1/t) w + 1/(lambda t k) sum_{i in A+} y_i x_i
             w <- min(1, 1/(sqrt(lambda) ||w||)) w              (optional)
           with a bias, in one of the four ways of section 6 (parameter `bias`)
Guarantee  suboptimality O(log t/(lambda t)) in expectation, for the average and, with
           constant probability, for the last iterate (Theorems 1 to 3); no dependence
           on n. If the bias moves by its sub-gradient, the objective is not strongly
           convex and the rate falls to O(1/sqrt(t)). If every batch gets its best bias,
           batches have to be large: their optimum is not the optimum of all rows
Cost       O(nnz of the k rows) per step through w = a v with ||w|| kept (section 2.3)
Source     Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), Figs. 1
           and 2; first ICML 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ... import core
from ...checks import Count
from ...losses import Vector
from ...problems.bias import best_bias
from ...problems.binary import BinaryProblem
from ..base import RowOrder, register
from .stochastic_gradient import GradientState, StochasticGradient


@dataclass(kw_only=True)
class SearchState(GradientState):
    """State of the search for the best bias, and of the run at the current one."""

    move: float = 0.5  # last change of the bias, with its sign
    halfway: float = 0.0  # signed errors in the first half of the run
    runs: int = 0  # runs begun
    left: int = 0  # epochs left in this run


@register("binary")
@dataclass(frozen=True)
class Pegasos(StochasticGradient):
    """Pegasos of Shalev-Shwartz et al. 2007, 2011.

    Parameters
    ----------
    batch_size : int, default=1
        Rows k per step, from 1 (stochastic) to n (the deterministic sub-gradient
        method). The last batch of a pass may be shorter.
    projection : bool, default=False
        Project onto the ball that holds the optimum.
    sampling : {"permutation", "random"}, default="permutation"
        A new permutation every epoch, which the paper found faster, or the independent
        draws of the analysis. An epoch has n rows in both cases.
    output : {"last", "average"}, default="last"
        Last iterate, or the average of all.
    bias : {"feature", "subgradient", "batch", "search"}, default="feature"
        The four ways of section 6. "feature": a constant feature, which is penalised.
        The others are for ``penalize_intercept=False``. "subgradient": steps of
        1/sqrt(t) on the mean loss, in units of the margin. "batch": the best bias of
        every mini-batch, O(k log k), for the hinge and `batch_size` > 1; the model gets
        the best bias for all rows. "search": a search over the bias with a run for
        each value. The k-th run takes k epochs. The balance of its margin errors in
        the second half gives the direction of the next move: moves double in one
        direction, and halve after a turn.
    """

    batch_size: Count = 1
    projection: bool = False
    sampling: Literal["permutation", "random"] = "permutation"
    output: Literal["last", "average"] = "last"
    bias: Literal["feature", "subgradient", "batch", "search"] = "feature"

    name: ClassVar[str] = "pegasos"
    schedule: ClassVar[core.Schedule] = core.Schedule.pegasos

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bias == "batch" and self.batch_size == 1:
            raise ValueError(
                "bias='batch' needs batch_size of 2 or more: one row has no best bias"
            )
        if self.free_bias and self.output == "average":
            raise ValueError(
                f"output='average' keeps no bias of bias={self.bias!r}; use "
                "output='last' or bias='feature'"
            )

    @property
    def free_bias(self) -> bool:
        return self.bias != "feature"

    @property
    def bias_rule(self) -> core.BiasRule:
        rules = {"subgradient": core.BiasRule.step, "batch": core.BiasRule.batch}
        return rules.get(self.bias, core.BiasRule.fixed)

    def check(self, problem: BinaryProblem) -> None:
        super().check(problem)
        if self.batch_size > problem.n:
            raise ValueError(
                f"batch_size={self.batch_size} is more than the {problem.n} rows; "
                f"give 1 to {problem.n}"
            )
        if self.free_bias and not problem.free_bias:
            raise ValueError(
                f"bias={self.bias!r} is for penalize_intercept=False; use "
                "bias='feature' for a penalised intercept or none"
            )
        if self.bias == "batch" and problem.loss.curvature != 0.0:
            raise ValueError(
                f"bias='batch' needs loss='hinge', got loss={problem.loss.name!r}; use "
                "bias='subgradient' or 'search'"
            )

    def start(
        self, problem: BinaryProblem, rng: core.Random, warm: Vector | None
    ) -> GradientState:
        state = super().start(problem, rng, warm)
        if self.bias != "search":
            return state
        return SearchState(**vars(state))

    def step(self, state: GradientState, stop: core.Stop) -> None:
        if isinstance(state, SearchState):
            if state.left == 0:
                self._next_run(state)
            state.left -= 1
        super().step(state, stop)
        if isinstance(state, SearchState) and state.left == (state.runs + 1) // 2:
            state.halfway = _signed_errors(state)

    def _next_run(self, state: SearchState) -> None:
        """Move the bias in the direction that the last run gave, and start again."""
        assert state.bias is not None
        if state.runs > 0:
            # G(b) = min over w of P(w, b) has the derivative -sum_i alpha_i y_i. Its
            # sign can be wrong after a short run, so the search uses no bracket.
            off = _signed_errors(state) - state.halfway
            state.move *= 2.0 if off * state.move > 0.0 else -0.5
            state.bias[0] += state.move
        state.runs += 1
        state.left = state.runs
        state.halfway = 0.0
        state.v[:] = state.beta[:] = 0.0
        state.scale, state.norm, state.t = 1.0, 0.0, 0.0

    def iterate(self, state: GradientState) -> tuple[Vector, Vector]:
        w, alpha = super().iterate(state)
        if self.bias == "batch":
            problem = state.problem
            w[-1] = 0.0
            scores = problem.y * problem.outcomes(w)
            w[-1] = best_bias(scores, problem.y, problem.cost, problem.loss)
        return w, alpha

    def options(self) -> tuple[RowOrder, int, bool, bool]:
        average = self.output == "average"
        return self.sampling, self.batch_size, self.projection, average


def _signed_errors(state: GradientState) -> float:
    """Return the sum of y_i over the margin errors so far, in units of 1/lambda."""
    return state.t * state.scale * core.signed_sum(state.problem.y, state.beta)
