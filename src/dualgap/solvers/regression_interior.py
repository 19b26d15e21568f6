"""Interior point for regression with an absolute loss, and for the one-class SVM.

RegressionInterior
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

OneClassInterior
Problem    P(w, rho) of problems/one_class.py, through its dual
Update     the same for one row each: the hinge of rho - w.x_i belongs to a row with the
           unpenalised bias -rho and the offset -1, and f has -total for the bias. All
           products start at about 1/2 ||v||^2/n, v of equal dual variables: P* may be
           of that size, or 0 for centred rows. Some epochs of `pairs` come first, of
           which rows that a plane separates from the origin take two or three.
Guarantee  as above; in practice 1 to 8 iterations
Cost       an iteration: the Gram matrix of all rows, d^3/6, and 3 to 9 products;
           120 bytes per row
Source     Mehrotra, SIAM J. Optim. 2, 1992; Ferris and Munson, SIAM J. Optim. 13, 2002
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..certificate import size_of_optimum
from ..losses import Vector
from ..problems.base import Claim
from ..problems.one_class import OneClassProblem
from ..problems.regression import RegressionProblem
from . import regression
from .base import TINY, Solver, State, register, register_choice
from .regression import (
    PairDescent,
    PairState,
    RegressionDCD,
    RegressionSolver,
    ascended,
    two_sides,
)
from .some_rows import Outcome, iterations_of_epoch, lone_blas

P = TypeVar("P", RegressionProblem, OneClassProblem)


@dataclass(frozen=True)
class DualInteriorSettings(regression.RegressionSettings):
    """Tuning constants of the solvers in this file."""

    #: Most features.
    most_features: int = 2000
    #: Once the goal is met, duals within such a share of a bound are set to it, the
    #: largest share for which the goal is still met.
    snaps: tuple[float, ...] = (0.1, 1e-2, 1e-3, 1e-4, 1e-6)
    #: Epochs of `pairs` before the interior point of a one-class SVM begins.
    first_pairs: int = 12
    #: The same where work is free, as pairs end at rounding level.
    free_pairs: int = 300
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

    def meets(self, tol: float, floor: float) -> bool:
        """Whether the relative gap is at most `tol`."""
        return self.gap <= tol * size_of_optimum(self.primal, self.dual, floor)

    def with_model(self, w: Vector, primal: float) -> Point:
        """Return the same duals with another primal point, if it is better."""
        if not primal < self.primal:
            return self
        return self._replace(w=w, primal=primal, apart=True)


@dataclass(kw_only=True)
class DualInteriorState(State, Generic[P]):
    """Best dual point, and the iteration over the rows that have a weight."""

    problem: P = field(kw_only=False)
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


class DualInterior(RegressionSolver, Generic[P]):
    """Base of the primal-dual interior points for rows of few features."""

    name: ClassVar[str] = "interior-point"
    settings: ClassVar[DualInteriorSettings] = DualInteriorSettings()

    @abstractmethod
    def point(self, problem: P, alpha: Vector) -> Point:
        """Return the duals of all rows with their w, P and D."""

    @abstractmethod
    def value(self, problem: P, w: Vector) -> float:
        """Return P at w."""

    @abstractmethod
    def examples(self, problem: P, used: NDArray[np.uint32]) -> core.SomeRows:
        """Return rows of the hinge in place of the rows that have a weight."""

    @abstractmethod
    def first_product(self, problem: P) -> float:
        """Return the product of a dual and its slack to start at; 0: the core's own."""

    @abstractmethod
    def ascend(self, state: DualInteriorState[P], alpha: Vector) -> Vector:
        """Return a better dual point nearby, whose steps see the rounding of alpha."""

    def start(
        self, problem: P, rng: core.Random, warm: Vector | None
    ) -> DualInteriorState[P]:
        # A warm start is only proved: far from the optimum it is a poor interior point.
        first = self.point(problem, np.zeros(problem.n) if warm is None else warm)
        state = DualInteriorState(
            problem,
            rng,
            alpha=first.alpha,
            w=first.w,
            used=np.flatnonzero(problem.cost > 0.0).astype(np.uint32),
        )
        if first.gap == 0.0:  # no interior point reaches an optimum of P = 0
            state.keep(first)
        return state

    def step(self, state: DualInteriorState[P], stop: core.Stop) -> None:
        if state.idle >= self.settings.most_idle or state.gap == 0.0:
            self.go_on(state)
            return
        if state.inner is None:
            state.inner = self._begin(state, stop)
        if state.inner is None:
            return
        most = iterations_of_epoch(state.problem)
        # The size of P may be far below that to which gaps are relative.
        size = max(abs(state.inner.primal), TINY)
        goal = self.goal(state) * max(1.0, state.problem.floor / size)
        outcome, made, correctors = state.inner.run(goal, most, stop)
        if outcome == Outcome.STOPPED:
            return
        state.epochs += 1
        state.visited += 2 * (4 * made + 2 * correctors) * state.problem.n
        state.updates += made * len(state.used)
        if outcome == Outcome.SINGULAR or not made:
            state.idle = self.settings.most_idle
        self._look(state, stop)

    def go_on(self, state: DualInteriorState[P]) -> None:
        """Make an epoch at a point at which the method is stuck."""
        state.epochs += 1

    def _begin(
        self, state: DualInteriorState[P], stop: core.Stop
    ) -> core.Interior | None:
        """Return the iteration at its first point; None on a stop request."""
        problem, used = state.problem, state.used
        inner = core.Interior(
            self.examples(problem, used),
            core.Loss(1.0, 0.0),
            float(problem.q[used].mean()),
            problem.free_bias,
            problem.threads,
            lone_blas(state),
        )
        first = self.first_product(problem)
        return inner if inner.start(np.zeros(inner.w.size), first, stop) else None

    def _look(self, state: DualInteriorState[P], stop: core.Stop) -> None:
        """Compute P and D at the duals of the iterate; keep them if the gap is less.

        Rounding of the duals moves w(alpha), and with large columns its P: the
        iterate's own w is then better, and an epoch of `dcd` improves the duals. Where
        the iterate expected a smaller gap, rounding has added up in it, and it is
        recomputed.
        """
        inner = state.inner
        assert inner is not None
        problem = state.problem
        # Regression has two rows for each row, for either sign.
        sides = inner.alpha.reshape(-1, len(state.used))
        alpha = np.zeros(problem.n)
        alpha[state.used] = sides[0] - (sides[1] if len(sides) == 2 else 0.0)
        point = self.point(problem, alpha)
        size = size_of_optimum(point.primal, point.dual, problem.floor)
        expected = max(state.tol * size, 2.0 * (inner.primal - inner.dual))
        if point.gap > expected:
            w = inner.w[: problem.width]
            point = point.with_model(w, self.value(problem, w))
        if point.gap > expected:
            inner.refresh(stop)
            start = alpha if point.dual > state.dual else state.alpha
            other = self.point(problem, self.ascend(state, start))
            other = other.with_model(point.w, point.primal)
            other = other.with_model(state.w, state.primal)
            point = other if other.gap < point.gap else point
        if not point.gap < state.gap:
            state.idle += 1
            return
        state.idle = 0
        state.keep(point)

    def _sparser(self, state: DualInteriorState[P]) -> Point | None:
        """Return a point that meets the goal with more duals at their bounds.

        Iterates are inside the box: without this every row is a support vector.
        """
        problem, alpha, goal = state.problem, state.alpha, self.goal(state)
        if state.gap > goal * size_of_optimum(state.primal, state.dual, problem.floor):
            return None
        size, most = np.abs(alpha), np.where(alpha > 0, problem.upper, -problem.lower)
        for share in self.settings.snaps:
            some = np.where(size < share * most, 0.0, alpha)
            some = np.where(most - size < share * most, np.copysign(most, alpha), some)
            point = self.point(problem, some)
            state.visited += 2 * problem.n
            if point.meets(goal, problem.floor):
                return point
        return None

    def goal(self, state: DualInteriorState[P]) -> float:
        return float(state.tol) if state.idle else super().goal(state)

    def claim(self, state: DualInteriorState[P]) -> Claim:
        # Only iterates of the interior point are inside the box.
        sparse = self._sparser(state) if state.inner is not None else None
        if sparse is not None:
            state.keep(sparse)
        if state.apart:
            return Claim(state.w, state.alpha)
        return super().claim(state)


@register("regression")
@dataclass(frozen=True)
class RegressionInterior(DualInterior[RegressionProblem]):
    """Primal-dual interior point for regression with an absolute loss."""

    losses: ClassVar[tuple[str, ...]] = ("epsilon_insensitive", "quantile")
    wider: ClassVar[str] = "dcd"

    def point(self, problem: RegressionProblem, alpha: Vector) -> Point:
        w = problem.combine(alpha)
        dual = problem.dual_value(alpha, core.squared_norm(w))
        return Point(alpha, w, problem.value(w), dual)

    def value(self, problem: RegressionProblem, w: Vector) -> float:
        return problem.value(w)

    def examples(
        self, problem: RegressionProblem, used: NDArray[np.uint32]
    ) -> core.SomeRows:
        return two_sides(problem, used, problem.cost[used])

    def first_product(self, problem: RegressionProblem) -> float:
        return 0.0

    def ascend(
        self, state: DualInteriorState[RegressionProblem], alpha: Vector
    ) -> Vector:
        return ascended(state, alpha, RegressionDCD())


@dataclass(kw_only=True)
class OneClassState(DualInteriorState[OneClassProblem]):
    """Best dual point, the iteration, and the state of the epochs of `pairs`."""

    pairs: PairState


PAIRS = PairDescent()


@register("one-class")
@dataclass(frozen=True)
class OneClassInterior(DualInterior[OneClassProblem]):
    """Primal-dual interior point for the linear one-class SVM, after some pairs."""

    losses: ClassVar[tuple[str, ...]] = ("one_class",)
    wider: ClassVar[str] = "pairs"

    def start(
        self, problem: OneClassProblem, rng: core.Random, warm: Vector | None
    ) -> OneClassState:
        pairs = PAIRS.start(problem, rng, warm)
        return OneClassState(
            problem,
            rng,
            alpha=pairs.alpha,
            w=pairs.w,
            used=np.flatnonzero(problem.cost > 0.0).astype(np.uint32),
            pairs=pairs,
        )

    def step(self, state: DualInteriorState[OneClassProblem], stop: core.Stop) -> None:
        assert isinstance(state, OneClassState)
        settings, problem = self.settings, state.problem
        small = problem.n * problem.width <= settings.free_entries
        most = settings.free_pairs if small else settings.first_pairs
        if state.gap == 0.0 or state.epochs >= most:
            super().step(state, stop)
            return
        # Rows that a plane separates from the origin take two or three epochs.
        pairs = state.pairs
        PAIRS.step(pairs, stop)
        state.epochs, state.updates = pairs.epochs, pairs.updates
        state.visited = pairs.visited
        state.primal, state.dual = pairs.primal, pairs.dual
        state.alpha, state.w = pairs.alpha, pairs.w

    def go_on(self, state: DualInteriorState[OneClassProblem]) -> None:
        super().go_on(state)
        if state.gap == 0.0:
            return
        point = self.point(state.problem, self.ascend(state, state.alpha))
        point = point.with_model(state.w, state.primal)
        if point.gap < state.gap:
            state.updates += 1
            state.keep(point)

    def point(self, problem: OneClassProblem, alpha: Vector) -> Point:
        alpha = problem.feasible(alpha)
        w = problem.combine(alpha)
        return Point(alpha, w, self.value(problem, w), -0.5 * core.squared_norm(w))

    def value(self, problem: OneClassProblem, w: Vector) -> float:
        return problem.values(problem.outcomes(w), core.squared_norm(w))[0]

    def examples(
        self, problem: OneClassProblem, used: NDArray[np.uint32]
    ) -> core.SomeRows:
        rows = problem.rows.with_constant(1.0)
        if used.size < problem.n:
            rows = core.chosen_rows(rows, used, 1.0)
        fixed = np.zeros(problem.width + 1)
        fixed[-1] = -problem.total
        ones, cost = np.ones(used.size, np.int8), problem.cost[used]
        return core.SomeRows([rows], ones, cost, fixed, 0.0, np.full(used.size, -1.0))

    def first_product(self, problem: OneClassProblem) -> float:
        v = problem.combine(problem.nu * problem.cost)
        least = 2.0 / 3.0 * float(problem.cost.sum())  # the core's own
        return max(core.squared_norm(v), least) / np.count_nonzero(problem.cost)

    def ascend(
        self, state: DualInteriorState[OneClassProblem], alpha: Vector
    ) -> Vector:
        return ascended(state, alpha, PAIRS)


@register_choice("one-class")
def choose_one_class(problem: OneClassProblem) -> Solver:
    """Return the solver for the number of features of a one-class problem."""
    few = problem.width <= OneClassInterior.settings.most_features
    return OneClassInterior() if few else PAIRS
