"""Dual coordinate methods for linear regression and the linear one-class SVM.

RegressionDCD
Problem    P(w) = 1/2 ||w||^2 + sum_i c_i l(|y_i - w.x_i| - epsilon), through its dual
           (regression.py)
Update     one dual variable at a time, to its optimum: a soft threshold
           (src/core/epochs/regression.hpp)
Rows       sleep as those of `DCD`: at -U_i, 0 or U_i, where they firmly stay
Guarantee  linear rate; D never falls.
Cost       one product with the rows awake per epoch; 14 bytes per row.
Source     Ho and Lin, JMLR 13, 2012, Algorithm 4. Theirs shrinks and stops on the
           violation; here the certified gap decides.

PairDescent
Problem    min 1/2 ||sum_i a_i x_i||^2 over 0 <= a_i <= c_i, sum_i a_i = total
Update     A pass finds all scores w.x_i. The rows that may rise, from the lowest score
           on, are paired with those that may fall, from the highest score down, as far
           as these are the higher ones; a tenth of the rows at most. Each pair then
           moves to its optimum, by scores of its own time.
Guarantee  D never falls; the pair that violates most is always among them.
Cost       one product per epoch, a sort, and three dots a pair; 8 bytes per row.
Source     Chou, Lin and Lin, SDM 2020, "Dual coordinate-descent methods for linear
           one-class SVM and SVDD" (LIBLINEAR's -s 21).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import core
from ..losses import Vector
from ..problem import Problem
from ..regression import OneClassProblem, RegressionProblem
from .base import ROUNDING, Solver, new_order
from .dcd import LONGEST_SLEEP, REPAIR_EVERY, DCDState, DualState

# Entries to read, and passes, before `tol` may end a fit. Small models then do not
# depend on the order of their rows, and the weight k is worth k equal rows.
FREE_WORK, FREE_PASSES = 2e6, 10_000


class RegressionSolver(Solver):
    """What the solvers of these problems share."""

    dual: ClassVar[bool] = True
    kind: ClassVar[type[Problem]]

    @property
    def monotone(self) -> bool:
        return True

    def check(self, problem: Problem) -> None:
        if not isinstance(problem, self.kind):
            raise ValueError(
                f"solver={self.name!r} needs a {self.kind.__name__}, got a "
                f"{type(problem).__name__}; use solver='auto' for that"
            )
        if problem.streamed:
            raise ValueError(
                f"solver={self.name!r} needs its rows in memory; open the store with a "
                "larger buffer"
            )

    def goal(self, state: Any) -> float:
        if state.work < FREE_WORK and state.epochs < FREE_PASSES:
            # The gap of a smooth loss is of second order in what w lacks.
            squared = state.problem.loss.curvature > 0.0
            return min(state.tol, 1e-15 if squared else ROUNDING)
        return float(state.tol)


@dataclass(frozen=True)
class RegressionDCD(RegressionSolver):
    """Dual coordinate descent for linear regression, of Ho and Lin 2012."""

    name: ClassVar[str] = "dcd"
    losses: ClassVar[tuple[str, ...]] = (
        "epsilon_insensitive",
        "squared_epsilon_insensitive",
    )
    kind: ClassVar[type[Problem]] = RegressionProblem

    def start(self, problem: Any, rng: Any, warm: Vector | None) -> DCDState:
        alpha = np.zeros(problem.n) if warm is None else warm
        w = np.zeros(problem.width) if warm is None else problem.combine(alpha)
        state = DCDState(
            problem, rng, new_order(problem.n),
            alpha=alpha, w=w, q=problem.q, active=problem.n,
        )  # fmt: skip
        state.lie_down()
        return state

    def step(self, state: DCDState, stop: Any) -> None:
        problem: Any = state.problem
        if state.epochs % REPAIR_EVERY == REPAIR_EVERY - 1:
            state.repair()
        visited, updates, gap, linear, state.threshold, norm = core.regression_epoch(
            problem.rows, problem.target, problem.cost, state.q, problem.core_loss,
            problem.loss.epsilon, state.alpha, state.w, state.wake, state.length,
            state.threshold, LONGEST_SLEEP, state.chunk, state.order, state.rng, stop,
        )  # fmt: skip
        state.linear += linear
        state.last_visited = visited
        state.after_pass(visited, updates, gap, norm)

    def iterate(self, state: DCDState) -> tuple[None, Vector]:
        return None, state.alpha

    def proof_options(self, state: DCDState) -> dict[str, Any]:
        return {"out": state.w}

    def reject(self, state: DCDState) -> None:
        state.restore()


@dataclass(kw_only=True)
class PairState(DualState):
    """A dual point of sum `total`, its w, and zeros to add a row to."""

    room: Vector


@dataclass(frozen=True)
class PairDescent(RegressionSolver):
    """Dual coordinate descent on pairs for the linear one-class SVM."""

    name: ClassVar[str] = "pairs"
    losses: ClassVar[tuple[str, ...]] = ("one_class",)
    kind: ClassVar[type[Problem]] = OneClassProblem

    def start(self, problem: Any, rng: Any, warm: Vector | None) -> PairState:
        alpha = problem.start() if warm is None else problem.feasible(warm)
        return PairState(
            problem, rng, new_order(0), alpha=alpha, w=problem.combine(alpha),
            room=np.zeros(problem.width),
        )  # fmt: skip

    def step(self, state: PairState, stop: Any) -> None:
        problem: Any = state.problem
        state.epochs += 1
        if state.epochs % REPAIR_EVERY == 0:
            state.repair()
        scores = problem.margins(state.w)
        norm = core.squared_norm(state.w)
        state.primal, _ = problem.values(scores, norm)
        state.dual = -0.5 * norm
        state.visited += problem.n
        rise, fall = self.pairs(problem, state.alpha, scores)
        visited, updates = core.pair_epoch(
            problem.rows, problem.cost, problem.q, rise, fall, state.alpha, state.w,
            state.room, stop,
        )  # fmt: skip
        state.visited += visited
        state.updates += updates
        if updates:
            # P of the scores of before, D of now: an estimate that is too large.
            state.dual = -0.5 * core.squared_norm(state.w)

    def pairs(self, problem: Any, alpha: Vector, scores: Vector) -> tuple[Any, Any]:
        """Rows that may rise and rows that may fall, the worst violations first."""
        used = np.flatnonzero(problem.cost > 0.0)
        order = used[np.argsort(scores[used], kind="stable")]
        rise = order[alpha[order] < problem.cost[order]]
        fall = order[alpha[order] > 0.0][::-1]
        many = min(len(rise), len(fall), max(problem.n // 10, 1))
        rise, fall = rise[:many], fall[:many]
        wrong = scores[rise] < scores[fall]
        return rise[wrong].astype(np.uint32), fall[wrong].astype(np.uint32)

    def iterate(self, state: PairState) -> tuple[None, Vector]:
        return None, state.alpha

    def proof_options(self, state: PairState) -> dict[str, Any]:
        return {"out": state.w}
