"""Interior point for linear regression with an absolute loss.

Problem    P(w) = 1/2 ||w||^2 + sum_i c_i max(0, |y_i - w.x_i| - epsilon), through its
           dual over a = p - q with 0 <= p_i, q_i <= c_i; for the pinball loss
           p_i <= q c_i and q_i <= (1 - q) c_i
Update     the iteration of src/core/interior.hpp for two rows with the hinge in place
           of each row: one for residuals above epsilon, one for those below -epsilon
Guarantee  gap -> 0; no bound on the iterations, but in practice 8 to 25, whatever C
           and the scale of the columns are
Cost       an iteration: the Gram matrix of all rows twice, d^3/6, and 6 to 18
           products; 8 d^2 bytes per thread, and 240 bytes per row
Source     Mehrotra, SIAM J. Optim. 2, 1992; Ferris and Munson, SIAM J. Optim. 13, 2002
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..losses import Vector
from ..problems.base import Claim, LinearHint
from ..problems.binary import BinaryProblem
from ..problems.regression import RegressionProblem
from . import regression
from .base import State, new_order
from .registry import register
from .regression import RegressionSolver, ascended
from .some_rows import Outcome, iterations_of_epoch, lone_blas


@dataclass(frozen=True)
class RegressionInteriorSettings(regression.RegressionSettings):
    """Tuning constants of `RegressionInterior`."""

    #: Most features.
    most_features: int = 2000
    #: "auto" uses this solver for up to this many features, if the mean of c_i q_i is
    #: at least `steep` times the mean of |y_i|: below, `dcd` takes few epochs. The
    #: ratio does not depend on the units of X and y.
    auto_features: int = 100
    #: Least ratio for "auto": `benchmarks/regression.py --steep` shows both solvers on
    #: either side of it.
    steep: float = 4.0
    #: Once the goal is met, duals within such a share of a bound are set to it, the
    #: largest share for which the goal is still met.
    snaps: tuple[float, ...] = (0.1, 1e-2, 1e-3, 1e-4, 1e-6)
    #: Epochs in a row without a smaller gap after which the solver is stuck.
    most_idle: int = 3


class Point(NamedTuple):
    """Dual point and a primal point, with P and D."""

    alpha: Vector
    w: Vector
    primal: float
    dual: float
    #: Whether w is another point than w(alpha).
    apart: bool = False

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    @classmethod
    def at(cls, problem: RegressionProblem, alpha: Vector) -> Point:
        """Return the duals of all rows with their w, P and D."""
        w = problem.combine(alpha)
        dual = problem.dual_value(alpha, core.squared_norm(w))
        return cls(alpha, w, problem.value(w), dual)

    def with_model(self, w: Vector, primal: float) -> Point:
        """Return the same duals with another primal point, if it is better."""
        if not primal < self.primal:
            return self
        return self._replace(w=w, primal=primal, apart=True)


@dataclass(kw_only=True)
class RegressionInteriorState(State):
    """Best dual point, and the iteration over the rows that have a weight."""

    problem: RegressionProblem = field(kw_only=False)
    alpha: Vector
    w: Vector
    apart: bool = False  # whether w is another point than w(alpha)
    used: NDArray[np.uint32]
    inner: core.Interior | None = None
    gap: float = math.inf  # of the best point
    idle: int = 0

    def keep(self, point: Point) -> None:
        """Make this the best point."""
        self.alpha, self.w, self.gap = point.alpha, point.w, point.gap
        self.apart = point.apart
        self.primal, self.dual = point.primal, point.dual


@register("regression")
@dataclass(frozen=True)
class RegressionInterior(RegressionSolver):
    """Primal-dual interior point for rows of few features."""

    name: ClassVar[str] = "interior-point"
    settings: ClassVar[RegressionInteriorSettings] = RegressionInteriorSettings()
    losses: ClassVar[tuple[str, ...]] = ("epsilon_insensitive", "quantile")

    def check(self, problem: BinaryProblem) -> None:
        super().check(problem)
        if problem.loss.name not in self.losses:
            raise ValueError(
                f"solver={self.name!r} needs loss={self.losses[0]!r} or 'quantile', "
                f"got loss={problem.loss.name!r}; use solver='newton' or 'dcd' for it"
            )
        most = self.settings.most_features
        if problem.width > most:
            raise ValueError(
                f"solver={self.name!r}: {problem.width} features, more than {most}; "
                "use solver='dcd'"
            )

    def start(
        self, problem: RegressionProblem, rng: core.Random, warm: Vector | None
    ) -> RegressionInteriorState:
        # A warm start is only proved: far from the optimum it is a poor interior point.
        first = Point.at(problem, np.zeros(problem.n) if warm is None else warm)
        state = RegressionInteriorState(
            problem,
            rng,
            new_order(0),
            alpha=first.alpha,
            w=first.w,
            used=np.flatnonzero(problem.cost > 0.0).astype(np.uint32),
        )
        if first.gap == 0.0:  # no interior point reaches an optimum of P = 0
            state.keep(first)
        return state

    def step(self, state: RegressionInteriorState, stop: core.Stop) -> None:
        if state.idle >= self.settings.most_idle or state.gap == 0.0:
            state.epochs += 1
            return
        if state.inner is None:
            state.inner = self._begin(state, stop)
        if state.inner is None:
            return
        most = iterations_of_epoch(state.problem)
        outcome, made, correctors = state.inner.run(self.goal(state), most, stop)
        if outcome == Outcome.STOPPED:
            return
        state.epochs += 1
        state.visited += 2 * (4 * made + 2 * correctors) * state.problem.n
        state.updates += made * len(state.used)
        if outcome == Outcome.SINGULAR or not made:
            state.idle = self.settings.most_idle
        self._look(state, stop)

    def _begin(
        self, state: RegressionInteriorState, stop: core.Stop
    ) -> core.Interior | None:
        """Return the iteration at its first point; None on a stop request."""
        problem, used = state.problem, state.used
        m, epsilon = used.size, problem.loss.epsilon
        rows, target, cost = problem.rows, problem.target[used], problem.cost[used]
        if m < problem.n:
            rows = core.chosen_rows(rows, used, problem.intercept_scaling)
        nothing = np.zeros(problem.width)
        inner = core.Interior(
            core.SomeRows(
                [rows, rows],
                np.repeat(np.array([1, -1], np.int8), m),
                np.concatenate([problem.loss.above * cost, problem.loss.below * cost]),
                nothing,
                0.0,
            ),
            core.Loss(problem.loss.slope, problem.loss.curvature),
            float(problem.q[used].mean()),
            False,
            problem.threads,
            lone_blas(state),
            np.concatenate([target, -target]) - (epsilon + 1.0),
        )
        return inner if inner.start(nothing, 0.0, stop) else None

    def _look(self, state: RegressionInteriorState, stop: core.Stop) -> None:
        """Compute P and D at the duals of the iterate; keep them if the gap is less.

        Rounding of the duals moves w(alpha), and with large columns its P: the
        iterate's own w is then better, and an epoch of `dcd` improves the duals. Where
        the iterate expected a smaller gap, rounding has added up in it, and it is
        recomputed.
        """
        inner = state.inner
        assert inner is not None
        above, below = inner.alpha.reshape(2, -1)
        alpha = np.zeros(state.problem.n)
        alpha[state.used] = above - below
        point = Point.at(state.problem, alpha)
        expected = max(state.tol * point.dual, 2.0 * (inner.primal - inner.dual))
        if point.gap > expected:
            w = inner.w
            point = point.with_model(w, state.problem.value(w))
        if point.gap > expected:
            inner.refresh(stop)
            start = alpha if point.dual > state.dual else state.alpha
            other = Point.at(state.problem, ascended(state, start))
            other = other.with_model(point.w, point.primal)
            other = other.with_model(state.w, state.primal)
            point = other if other.gap < point.gap else point
        if not point.gap < state.gap:
            state.idle += 1
            return
        state.idle = 0
        state.keep(point)

    def _sparser(self, state: RegressionInteriorState) -> Point | None:
        """Return a point that meets the goal with more duals at their bounds.

        Iterates are inside the box: without this every row is a support vector.
        """
        problem, alpha, goal = state.problem, state.alpha, self.goal(state)
        if state.gap > goal * state.dual:
            return None
        size, most = np.abs(alpha), np.where(alpha > 0, problem.upper, -problem.lower)
        for share in self.settings.snaps:
            some = np.where(size < share * most, 0.0, alpha)
            some = np.where(most - size < share * most, np.copysign(most, alpha), some)
            point = Point.at(problem, some)
            state.visited += 2 * problem.n
            if point.gap <= goal * point.dual:
                return point
        return None

    def goal(self, state: RegressionInteriorState) -> float:
        return float(state.tol) if state.idle else super().goal(state)

    def iterate(self, state: RegressionInteriorState) -> tuple[None, Vector]:
        return None, state.alpha

    def claim(self, state: RegressionInteriorState) -> Claim:
        sparse = self._sparser(state)
        if sparse is not None:
            state.keep(sparse)
        if state.apart:
            return Claim(state.w, state.alpha)
        return Claim(alpha=state.alpha, hint=LinearHint(out=state.w))
