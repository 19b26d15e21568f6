"""Newton's method on a smoothed loss, for linear regression with an absolute loss.

Problem    P(w) = 1/2 ||w||^2 + sum_i c_i max(0, |y_i - w.x_i| - epsilon), or with the
           pinball loss (problems/regression.py)
Update     the steps of src/core/smoothing_newton.hpp for two rows with the hinge in
           place of each row (src/core/interior.hpp). They run over samples first, each
           sixteen times as large as the one before, and then over all rows. Where
           rounding hides further gains, `interior-point` or `dcd` goes on.
Guarantee  gap -> 0: every step goes downhill, finitely many solve the smoothed problem,
           and smoothing costs about as much as tau^2. In practice 2 to 4 steps over all
           rows reach 1e-3.
Cost       a step: four products with all rows, the Gram matrix of the rows within tau/2
           of a kink, and d^3/6. 8 d^2 bytes per thread (12 from 128 features on), and
           70 bytes per row.
Source     Lee and Mangasarian, Comput. Optim. Appl. 20, 2001, as smoothing_newton.py
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..losses import Vector
from ..problems.base import Claim
from ..problems.binary import BinaryProblem
from ..problems.regression import RegressionProblem
from . import regression
from .base import Solver, State, register
from .regression import RegressionDCD, RegressionSolver, two_sides
from .regression_interior import RegressionInterior
from .smoothing_newton import SmoothingNewtonSettings
from .some_rows import Outcome, iterations_of_epoch, lone_blas

logger = logging.getLogger("dualgap")


@dataclass(frozen=True)
class SmoothingRegressionSettings(regression.RegressionSettings):
    """Tuning constants of `SmoothingRegression`."""

    #: Most features: d^2 doubles are 50 MB per thread.
    most_features: int = 2500
    #: "auto" uses this solver if the mean of c_i q_i is at least this many times the
    #: mean of |y_i|: below, `dcd` takes few epochs. The ratio does not depend on the
    #: units of X and y.
    steep: float = 4.0
    #: It does so for up to `most_features` if there are this many rows per feature.
    rows_per_feature: int = 4
    #: And for up to this many if there are fewer.
    auto_features: int = 100
    #: Each sample has this many times the rows of the one before.
    sample_growth: int = 16
    #: Fewest rows in the first sample.
    least_sample: int = 2000
    #: Fewest of them per feature.
    sample_rows_per_feature: int = 10
    #: Share of the first smoothing parameter after a warm start.
    warm_share: float = 0.01
    #: Constants of the steps.
    steps: SmoothingNewtonSettings = field(default_factory=SmoothingNewtonSettings)


@dataclass(kw_only=True)
class SmoothingRegressionState(State):
    """Point, its duals, and the samples still to come."""

    problem: RegressionProblem = field(kw_only=False)
    w: Vector
    tau: float
    samples: list[NDArray[np.uint32]]
    inner: core.SmoothingNewton | None = None
    used: NDArray[np.uint32] | None = None  # rows of `inner`
    alpha: Vector | None = None
    own: bool = False  # whether w belongs to the duals
    stuck: bool = False  # rounding hides further gains
    other: tuple[Solver, State] | None = None  # the method that goes on

    def finite(self) -> bool:
        return self.other is None or self.other[1].finite()


@register("regression")
@dataclass(frozen=True)
class SmoothingRegression(RegressionSolver):
    """Newton's method on a smoothed loss, over growing samples and then all rows."""

    name: ClassVar[str] = "smoothing-newton"
    settings: ClassVar[SmoothingRegressionSettings] = SmoothingRegressionSettings()
    losses: ClassVar[tuple[str, ...]] = ("epsilon_insensitive", "quantile")
    wider: ClassVar[str] = "dcd"

    def start(
        self, problem: RegressionProblem, rng: core.Random, warm: Vector | None
    ) -> SmoothingRegressionState:
        size = float(np.abs(problem.target).mean())  # of a residual at w = 0
        state = SmoothingRegressionState(
            problem,
            rng,
            w=np.zeros(problem.width),
            tau=size or 1.0,
            samples=self._draw(problem, rng),
        )
        if warm is not None:
            state.alpha, state.w, state.own = warm, problem.combine(warm), True
            state.tau *= self.settings.warm_share
            del state.samples[1:]
        return state

    def _draw(
        self, problem: BinaryProblem, rng: core.Random
    ) -> list[NDArray[np.uint32]]:
        """Return the samples and all rows of positive cost, the smallest one last."""
        settings = self.settings
        members = np.flatnonzero(problem.cost > 0.0).astype(np.uint32)
        least = max(
            settings.least_sample, settings.sample_rows_per_feature * problem.width
        )
        samples = [members]
        while members.size >= settings.sample_growth * least:
            # One row of each stretch of `sample_growth` rows.
            starts = np.arange(0, members.size, settings.sample_growth)
            place = np.empty(starts.size, np.uint32)
            rng.draw(place, settings.sample_growth)
            members = members[np.minimum(starts + place, members.size - 1)]
            samples.append(members)
        return samples

    def step(self, state: SmoothingRegressionState, stop: core.Stop) -> None:
        if state.stuck:
            self._go_on(state, stop)
            return
        if state.inner is None and not self._begin(state, stop):
            return
        whole, steps = not state.samples, self.settings.steps
        most = iterations_of_epoch(state.problem) if whole else steps.sample_steps
        goal = self.goal(state) if whole else max(state.tol, steps.sample_tol)
        inner, rules = state.inner, steps.rules
        assert inner is not None
        assert state.used is not None
        run = inner.run(goal, True, math.inf, most, rules, stop)
        state.visited += 2 * (2 * run.steps + 1) * len(state.used)
        state.updates += run.steps * len(state.used)
        if run.outcome == Outcome.STOPPED:
            return
        state.epochs += 1
        if np.isfinite(inner.w).all():
            state.w, state.tau = inner.w, inner.tau
        if not whole:
            state.inner = None
            return
        state.primal, state.dual = inner.primal, inner.dual
        state.alpha, state.own = self._alpha(state), False
        if run.stuck or inner.primal - inner.dual <= goal * inner.primal:
            # A later fit may start from the duals, so their own w is to meet the goal.
            point = RegressionInterior().point(state.problem, state.alpha)
            state.visited += 2 * state.problem.n
            state.primal, state.dual = point.primal, point.dual
            if point.meets(state.tol if run.stuck else goal, 0.0):
                state.w, state.own = point.w, True
        if run.stuck:  # the loop proves the point reached
            state.stuck, state.primal, state.dual = True, math.nan, math.nan

    def _begin(self, state: SmoothingRegressionState, stop: core.Stop) -> bool:
        """Take up the next sample, or all rows; return False on a stop request."""
        problem, used = state.problem, state.samples[-1]
        cost = problem.cost[used]
        if len(state.samples) > 1:
            cost *= float(problem.cost.sum()) / float(cost.sum())
        inner = core.SmoothingNewton(
            two_sides(problem, used, cost),
            core.Loss(problem.loss.slope, problem.loss.curvature),
            False,
            problem.threads,
            lone_blas(state),
        )
        state.visited += used.size
        if not inner.start(state.w, state.tau, stop):
            return False
        state.inner, state.used = inner, used
        state.samples.pop()
        return True

    def _hand_over(self, state: SmoothingRegressionState) -> tuple[Solver, State]:
        """Return a method that goes on from the dual point reached, and its state."""
        problem, alpha = state.problem, state.alpha
        assert alpha is not None
        engine: Solver = RegressionInterior()
        if problem.width > RegressionInterior.settings.most_features:
            engine = RegressionDCD()
        logger.info("%s: rounding hides gains; %s goes on", self.name, engine.name)
        alpha = np.clip(alpha, problem.lower, problem.upper)
        other = engine.start(problem, state.rng, alpha)
        other.stop, other.resources = state.stop, state.resources
        other.alone = state.alone
        other.epochs, other.updates = state.epochs, state.updates
        other.visited = state.visited
        state.inner, state.method = None, engine.name
        return engine, other

    def _go_on(self, state: SmoothingRegressionState, stop: core.Stop) -> None:
        """Make an epoch of the other method."""
        if state.other is None:
            state.other = self._hand_over(state)
        engine, other = state.other
        other.tol = state.tol
        engine.step(other, stop)
        state.epochs, state.updates = other.epochs, other.updates
        state.visited = other.visited
        state.primal, state.dual = engine.estimate(other)

    def _alpha(self, state: SmoothingRegressionState) -> Vector:
        """Return the dual point of all rows that the smoothed loss has."""
        alpha, inner = np.zeros(state.problem.n), state.inner
        assert inner is not None
        assert state.used is not None
        above, below = inner.alpha.reshape(2, -1)
        alpha[state.used] = above - below
        return alpha

    def iterate(
        self, state: SmoothingRegressionState
    ) -> tuple[Vector | None, Vector | None]:
        if state.other is not None:
            engine, other = state.other
            return engine.iterate(other)
        return state.w, state.alpha

    def claim(self, state: SmoothingRegressionState) -> Claim:
        if state.other is not None:
            engine, other = state.other
            return engine.claim(other)
        if state.own:
            return super().claim(state)
        return Claim(*self.iterate(state))

    def reject(self, state: SmoothingRegressionState) -> None:
        if state.other is not None:
            engine, other = state.other
            engine.reject(other)
