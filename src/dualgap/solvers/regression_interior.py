"""Interior point for linear regression with the epsilon-insensitive loss.

Problem    P(w) = 1/2 ||w||^2 + sum_i c_i max(0, |y_i - w.x_i| - epsilon), through its
           dual over a = p - q with 0 <= p_i, q_i <= c_i
Update     one predictor-corrector step on the primal-dual system, through a d x d
           matrix that both right-hand sides share
Guarantee  gap -> 0; no bound on the iterations, but in practice 8 to 25, whatever C
           and the scale of the columns are
Cost       an iteration: a Gram matrix, d^3/3, and seven products; the rows as a dense
           copy in float64, and 200 bytes per row
Source     Mehrotra, SIAM J. Optim. 2, 1992; Ferris and Munson, SIAM J. Optim. 13, 2002
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .. import core
from ..losses import Vector
from ..problems.base import Claim, LinearHint
from ..problems.binary import BinaryProblem
from ..problems.regression import RegressionProblem
from . import regression
from .base import TINY, State, new_order
from .registry import register
from .regression import RegressionSolver
from .some_rows import lone_blas


@dataclass(frozen=True)
class Settings(regression.Settings):
    """Tuning constants of `RegressionInterior`."""

    #: Most features.
    most_features: int = 2000
    #: Most entries of the dense rows.
    most_entries: int = 20_000_000
    #: "auto" uses this solver for up to this many features, if the mean of c_i q_i is
    #: at least `steep`: below, `dcd` takes few epochs.
    auto_features: int = 100
    #: Least mean of c_i q_i for "auto".
    steep: float = 2.0
    #: The same up to `short_entries`, where many epochs of `dcd` take less time than a
    #: few iterations.
    steep_if_short: float = 300.0
    #: Rows times features of a short problem.
    short_entries: int = 15_000
    #: Share of the way to the boundary that a step goes.
    damping: float = 0.995
    #: Duals within this share of a bound are set to it...
    snap: float = 1e-6
    #: ... and those within this many times the share of the nearest dual.
    cluster: float = 1e3
    #: Relative gap up to which such a point is preferred.
    sparse_gap: float = 1e-11
    #: Iterations in a row without a smaller gap after which the solver is stuck.
    most_idle: int = 3


class Point(NamedTuple):
    """Duals of the rows in use, with their w, P and D."""

    alpha: Vector
    w: Vector
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)


@dataclass(kw_only=True)
class InteriorState(State):
    """Best dual point, and the iterate of the rows that have a weight."""

    alpha: Vector
    w: Vector  # of alpha
    used: NDArray[np.intp]
    X: Vector  # these rows, dense
    target: Vector
    cost: Vector
    epsilon: float
    pq: Vector  # p and q, shape (2, n)
    low: Vector  # multipliers of 0 <= p and 0 <= q
    high: Vector  # multipliers of p <= c and q <= c
    gap: float = math.inf  # of the best point
    idle: int = 0

    def valued(self, alpha: Vector) -> Point:
        """Return duals of the rows in use with their w, P and D."""
        w = self.X.T @ alpha
        norm = float(w @ w)
        off = np.abs(self.target - self.X @ w)
        primal = 0.5 * norm + float(self.cost @ np.maximum(off - self.epsilon, 0.0))
        linear = float(self.target @ alpha) - self.epsilon * float(np.abs(alpha).sum())
        return Point(alpha, w, primal, linear - 0.5 * norm)


@register("regression")
@dataclass(frozen=True)
class RegressionInterior(RegressionSolver):
    """Primal-dual interior point for rows of few features."""

    name: ClassVar[str] = "interior-point"
    settings: ClassVar[Settings] = Settings()
    losses: ClassVar[tuple[str, ...]] = ("epsilon_insensitive",)

    def check(self, problem: BinaryProblem) -> None:
        super().check(problem)
        if problem.loss.name not in self.losses:
            raise ValueError(
                f"solver={self.name!r} needs loss={self.losses[0]!r}, got "
                f"loss={problem.loss.name!r}; use solver='newton' or 'dcd' for it"
            )
        if not fits(problem):
            raise ValueError(
                f"solver={self.name!r} copies the rows as a dense matrix, and "
                f"{problem.n} rows of {problem.width} features are too many; use "
                "solver='dcd'"
            )

    def start(
        self, problem: RegressionProblem, rng: core.Random, warm: Vector | None
    ) -> InteriorState:
        # A warm start is only proved: far from the optimum it is a poor interior point.
        alpha = np.zeros(problem.n) if warm is None else warm
        used = np.flatnonzero(problem.cost > 0.0)
        target, cost = problem.target[used], problem.cost[used]
        slope = problem.loss.epsilon + np.array([-target, target])
        room = max(float(np.abs(slope).mean()), TINY)
        state = InteriorState(
            problem,
            rng,
            new_order(0),
            alpha=alpha,
            w=problem.combine(alpha),
            used=used,
            X=dense_rows(problem)[used],
            target=target,
            cost=cost,
            epsilon=problem.loss.epsilon,
            pq=0.5 * np.array([cost, cost]),
            low=np.maximum(slope, 0.0) + room,
            high=np.maximum(-slope, 0.0) + room,
        )
        first = state.valued(alpha[used])
        if first.gap == 0.0:  # no interior point reaches an optimum of P = 0
            state.primal, state.dual, state.gap = first.primal, first.dual, 0.0
        return state

    def step(self, state: InteriorState, stop: core.Stop) -> None:
        state.epochs += 1
        if state.idle >= self.settings.most_idle or state.gap == 0.0:
            return
        lone_blas(state)
        try:
            with np.errstate(all="ignore"):  # what is not finite is refused below
                self._move(state)
        except (LinAlgError, ValueError):  # the matrix is singular or not finite
            state.idle = self.settings.most_idle
            return
        state.visited += 7 * state.problem.n
        state.updates += len(state.used)
        self._look(state)

    def _move(self, state: InteriorState) -> None:
        """Go from one interior point to the next."""
        X, pq, low, high = state.X, state.pq, state.low, state.high
        room = state.cost - pq
        fit = X @ (X.T @ (pq[0] - pq[1])) - state.target
        slope = np.array([fit, -fit]) + state.epsilon + high - low  # 0 at the optimum
        bend = low / pq + high / room
        weight = (1.0 / bend).sum(axis=0)
        gram = (X.T * weight) @ X
        gram[np.diag_indices_from(gram)] += 1.0
        factor = cho_factor(gram, lower=True, overwrite_a=True)

        def direction(below: Vector, above: Vector) -> tuple[Vector, Vector, Vector]:
            """Return the step that changes both complementarities so."""
            plain = (below / pq - above / room - slope) / bend
            side = X.T @ (plain[0] - plain[1])
            w = cho_solve(factor, side)
            # Raw columns make the matrix ill-conditioned: refine the solution.
            w += cho_solve(factor, side - w - X.T @ (weight * (X @ w)))
            change = X @ w
            step = plain - np.array([change, -change]) / bend
            return step, (below - low * step) / pq, (above + high * step) / room

        def longest(step: Vector, of_low: Vector, of_high: Vector) -> float:
            """Return the length at which a step reaches the boundary."""
            rates = (step / pq, step / -room, of_low / low, of_high / high)
            return 1.0 / max(1.0, *(-float(rate.min()) for rate in rates))

        pairs = 2.0 * pq.size
        mean = float((pq * low).sum() + (room * high).sum()) / pairs
        step, of_low, of_high = direction(-pq * low, -room * high)
        length = longest(step, of_low, of_high)
        after = ((pq + length * step) * (low + length * of_low)).sum()
        after += ((room - length * step) * (high + length * of_high)).sum()
        centre = mean * (float(after) / pairs / mean) ** 3
        step, of_low, of_high = direction(
            centre - pq * low - step * of_low, centre - room * high + step * of_high
        )
        length = self.settings.damping * longest(step, of_low, of_high)
        state.pq = pq + length * step
        state.low, state.high = low + length * of_low, high + length * of_high

    def _look(self, state: InteriorState) -> None:
        """Compute P and D of the iterate; keep it if its gap is the least."""
        plain, cost = state.pq[0] - state.pq[1], state.cost
        least = float((state.pq / cost).min())
        snap = min(self.settings.snap, self.settings.cluster * least) * cost
        size = np.abs(plain)
        snapped = np.where(size < snap, 0.0, plain)
        snapped = np.where(cost - size < snap, np.copysign(cost, plain), snapped)
        point, other = state.valued(snapped), state.valued(plain)
        # Rounding duals to their bounds can cost more than it gains.
        if point.gap > max(2.0 * other.gap, self.settings.sparse_gap * abs(other.dual)):
            point = other
        if not point.gap < state.gap:
            state.idle += 1
            return
        state.idle, state.gap, state.w = 0, point.gap, point.w
        state.primal, state.dual = point.primal, point.dual
        state.alpha[state.used] = point.alpha

    def goal(self, state: InteriorState) -> float:
        return float(state.tol) if state.idle else super().goal(state)

    def iterate(self, state: InteriorState) -> tuple[None, Vector]:
        return None, state.alpha

    def claim(self, state: InteriorState) -> Claim:
        return Claim(alpha=state.alpha, hint=LinearHint(out=state.w))


def fits(problem: BinaryProblem) -> bool:
    """Whether a dense copy of the rows is small enough."""
    settings = RegressionInterior.settings
    few = problem.width <= settings.most_features
    return few and problem.n * problem.width <= settings.most_entries


def dense_rows(problem: RegressionProblem) -> Vector:
    """Return the rows with their constant feature as a float64 array."""
    arrays = [np.asarray(array) for array in problem.rows.arrays]
    if len(arrays) > 1:
        shape = (problem.n, problem.d)
        arrays = [sparse.csr_matrix(tuple(arrays), shape=shape).toarray()]
    rows: Vector = np.empty((problem.n, problem.width))
    rows[:, : problem.d] = arrays[0]
    rows[:, problem.d :] = problem.intercept_scaling
    return rows
