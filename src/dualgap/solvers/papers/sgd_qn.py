"""SGD-QN: stochastic gradient descent with a diagonal quasi-Newton scaling.

Problem    min lambda/2 ||w||^2 + (1/n) sum_i l(y_i w.x_i), lambda = 1/(nC)
Update     w <- w - l'(y_i w.x_i) y_i B x_i/(t + t0)  on the entries of x_i alone,
           w <- w - skip lambda B w/(t + t0)  every `skip` steps, after which the
           diagonal B is refreshed from the difference of two points and of their
           gradients on one row (src/papers/sgd_qn.hpp has both rules)
Guarantee  none for a finite run; asymptotically O(1/t)
Cost       O(nnz of the row) per step, O(d) every `skip` steps; 8 bytes per row
Source     Bordes, Bottou and Gallinari, "SGD-QN: careful quasi-Newton stochastic
           gradient descent", JMLR 10 (2009), for update="2009". Its B may rest on a
           single quotient; update="corrected" accumulates, as the authors' later source
           does. In both, the bias is the constant feature and a sample weight
           multiplies l'.
           A diagonal between gradient and step leaves no w = sum beta_i y_i x_i, so the
           iterates of the papers have no dual point. The dual point here is c_i times
           the running mean of l' of each row, with more weight on later passes. It is
           in the box by construction, and near the optimum once w has settled.
           The authors' source counts the steps since the slope of the loss last
           changed; update="corrected" counts `skip`. Here regularisation never changes
           the sign of a coordinate of w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ... import core
from ...checks import Count, Step
from ...data.blocks import Block
from ...losses import Vector
from ...problems.binary import BinaryProblem
from ..base import OrderedSolver, State, new_order, register, row_visits


@dataclass(frozen=True)
class SGDQNSettings:
    """Tuning constants of `SGDQN`."""

    #: Fewest rows on which t0 is chosen.
    least_sample: int = 1000


@dataclass(kw_only=True)
class SGDQNState(State):
    """Point w, the diagonal B, and the inputs of the next refresh of B."""

    w: Vector
    B: Vector
    past: Vector  # an earlier w
    slope: Vector  # running mean of l' per row
    omega: Vector
    lambda_: float
    t0: float
    skip: int
    count: int  # steps until the next regularisation
    t: float = 0.0  # steps
    r: float = 2.0
    refresh: bool = False
    witness: ClassVar[str] = "primal"


@register("binary")
@dataclass(frozen=True)
class SGDQN(OrderedSolver):
    """SGD-QN of Bordes, Bottou and Gallinari 2009.

    Parameters
    ----------
    update : {"corrected", "2009"}, default="corrected"
        Rule that refreshes the diagonal B.
    skip : int, optional
        Steps between two regularisations. None: 16 divided by the density of the rows.
    t0 : float, optional
        The first step size is 1/(lambda t0). None: the best of 1, 10, 100, ... after
        one pass over a tenth of the rows (at least 1000).
    """

    update: Literal["corrected", "2009"] = "corrected"
    skip: Count | None = None
    t0: Step | None = None

    name: ClassVar[str] = "sgd-qn"
    settings: ClassVar[SGDQNSettings] = SGDQNSettings()
    resumes: ClassVar[bool] = True

    def start(
        self, problem: BinaryProblem, rng: core.Random, warm: Vector | None
    ) -> SGDQNState:
        order = new_order(0 if problem.streamed else problem.n)
        t0 = self.t0
        if t0 is None:
            # The rows of a store are in random order: its first page is a sample.
            for block in problem.blocks([[0]]):
                drawn = new_order(block.size) if problem.streamed else order
                rng.shuffle(drawn)
                size = max(problem.n // 10, self.settings.least_sample)
                sample = drawn[:size].copy()
                t0 = self._best_t0(problem, rng, block, sample)
                break
        assert t0 is not None
        return self._fresh(problem, rng, order, t0)

    def _fresh(
        self,
        problem: BinaryProblem,
        rng: core.Random,
        order: NDArray[np.uint32],
        t0: float,
    ) -> SGDQNState:
        """Return the state before the first step, at w = 0."""
        lambda_ = problem.lambda_
        skip = self.skip if self.skip is not None else default_skip(problem)
        first = 1.0 / lambda_ if self.update == "2009" else 1.0 / (lambda_ * t0)
        return SGDQNState(
            problem,
            rng,
            order,
            w=np.zeros(problem.width),
            B=np.full(problem.width, first),
            past=np.zeros(problem.width),
            slope=np.zeros(problem.n),
            omega=problem.omega,
            lambda_=lambda_,
            t0=t0,
            skip=skip,
            count=skip,
        )

    def _best_t0(
        self,
        problem: BinaryProblem,
        rng: core.Random,
        block: Block,
        sample: NDArray[np.uint32],
    ) -> float:
        """Return the best of 1, 10, ..., 1e10, and beyond for as long as it helps."""

        def cost(t0: float) -> float:
            state = self._fresh(problem, rng, sample, t0)
            self._pass(state, block, sample, 1.0, core.Stop())
            # A second pass, without steps, reads the loss at the end point.
            still = replace(
                state, B=np.zeros(problem.width), skip=2**62, count=2**62, refresh=False
            )
            loss, _ = self._pass(still, block, sample, 1.0, core.Stop())
            value = 0.5 * state.lambda_ * core.squared_norm(state.w) + loss / len(
                sample
            )
            return value if math.isfinite(value) else math.inf

        best, best_cost, t0 = 1.0, math.inf, 1.0
        while t0 <= 1e10 or (
            t0 < 1e300 and (10.0 * best >= t0 or best_cost == math.inf)
        ):
            value = cost(t0)
            if value < best_cost:
                best, best_cost = t0, value
            t0 *= 10.0
        return best

    def _pass(
        self,
        state: SGDQNState,
        block: Block,
        order: NDArray[np.uint32],
        gain: float,
        stop: core.Stop,
    ) -> tuple[float, float]:
        """Visit rows of a block; return the loss and the gap as seen at the visits.

        Both are sums over the rows, in units of the mean cost.
        """
        slope, corrected = block.take(state.slope), self.update == "corrected"
        settings = core.SgdQnSettings(
            state.lambda_, corrected, state.skip, state.t0, gain
        )
        point = core.SgdQnState(
            state.w,
            state.B,
            state.past,
            slope,
            state.t,
            state.r,
            state.count,
            state.refresh,
        )
        examples = state.problem.examples(block, cost=state.omega)
        found = core.sgd_qn_epoch(examples, settings, order, point, stop)
        state.t, state.r = point.t, point.r
        state.count, state.refresh = point.count, point.refresh
        block.put(state.slope, slope)
        state.visited += found.visited
        state.updates += found.updates
        return found.loss, found.gap

    def step(self, state: SGDQNState, stop: core.Stop) -> None:
        gain = 2.0 / (state.epochs + 2)  # epoch e has weight e in the running means
        loss, gap, before = 0.0, 0.0, state.visited
        for block, order in row_visits(self.order, state, stop):
            some = self._pass(state, block, order, gain, stop)
            loss, gap = loss + some[0], gap + some[1]
        state.epochs += 1
        mean_cost = 1.0 / (state.lambda_ * max(state.visited - before, 1))
        state.primal = 0.5 * core.squared_norm(state.w) + mean_cost * loss
        # It omits half the squared distance of w from w(alpha), which costs a pass.
        state.dual = state.primal - mean_cost * gap

    def iterate(self, state: SGDQNState) -> tuple[Vector, Vector]:
        problem = state.problem
        return state.w.copy(), np.minimum(problem.cost * state.slope, problem.upper)


def default_skip(problem: BinaryProblem) -> int:
    """Return 16 over the density: a regularisation then costs as much as 16 rows."""
    rows = problem.rows
    stored = rows.stored + problem.n * (problem.width - problem.d)
    return max(1, round(16.0 * problem.n * problem.width / max(stored, 1)))
