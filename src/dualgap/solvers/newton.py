"""Newton's method for linear regression with the squared loss.

Problem    min over w of  P(w) = 1/2 ||w||^2 + sum_i c_i max(0, |r_i| - epsilon)^2,
           r_i = p_i - x_i.w
Update     H s = -g with the generalised Hessian H = I + 2 sum c_i x_i x_i' over the
           rows outside of the tube, by a Cholesky factor or by conjugate gradients;
           then the minimiser of P along s (src/core/newton.hpp)
Guarantee  P never rises and w -> w*; with factors in a finite number of steps. The dual
           point is a_i = 2 c_i (|r_i| - epsilon) sign(r_i), and P - D = 1/2 ||g||^2.
Cost       three products a step, and a Gram matrix and d^3/6, or two products for each
           conjugate gradient; 32 bytes a row, and 8 d^2 bytes per thread.
Source     Mangasarian, Optim. Methods Softw. 17, 2002; Keerthi and DeCoste, JMLR 6,
           2005; Ho and Lin, JMLR 13, 2012, section 3.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import core
from ..losses import Vector
from ..memory import BLAS, make_room_for
from ..problem import Problem
from ..regression import RegressionProblem
from .base import Solver, State, check_option, new_order
from .regression import RegressionDCD, RegressionSolver
from .some_rows import algebra

# A factor may cost as much as so many products before gradients do instead.
_WORTH = 10.0
# From so many rows per feature on "auto" takes Newton's method; with fewer a dual
# variable at a time is faster.
_ROWS_PER_FEATURE = 4
# d^2 doubles for each thread: 0.8 GB.
_MOST_FEATURES = 10_000
# ||H s + g|| beside ||g||: the first steps need no more, and the last ones less.
_ACCURACY, _MOST_GRADIENTS = 0.1, 1000


@dataclass(kw_only=True)
class NewtonState(State):
    """A point, what follows from it, and room for the next one."""

    w: Vector
    residual: Vector
    gradient: Vector
    step: Vector
    image: Vector  # X step
    factor: bool
    gap: float = math.inf
    outside: int = 0
    first: float = 0.0  # ||g|| of the first point

    @classmethod
    def at(cls, problem: Any, rng: Any, w: Vector, factor: bool) -> NewtonState:
        """The state at w; one pass."""
        state = cls(
            problem, rng, new_order(0), w=w, residual=np.empty(problem.n),
            gradient=np.empty(problem.width), step=np.empty(problem.width),
            image=np.empty(problem.n), factor=factor,
        )  # fmt: skip
        state.look()
        state.first = math.sqrt(2.0 * state.gap)
        return state

    def look(self) -> None:
        """Residuals, gradient, P and D at w."""
        problem: Any = self.problem
        self.primal, self.gap, self.outside = core.newton_point(
            problem.rows, problem.target, problem.cost, problem.loss.epsilon, self.w,
            self.residual, self.gradient, problem.threads,
        )  # fmt: skip
        self.dual = self.primal - self.gap
        self.visited += problem.n + self.outside

    def finite(self) -> bool:
        return math.isfinite(self.primal)


@dataclass(frozen=True)
class ResidualNewton(RegressionSolver):
    """Newton's method with an exact line search, for the squared loss.

    Parameters
    ----------
    direction : {"auto", "factor", "gradients"}, default="auto"
        How H s = -g is solved: by a Cholesky factor of the d x d matrix, by conjugate
        gradients, or by the one that is expected to cost less.
    """

    direction: str = "auto"

    name: ClassVar[str] = "newton"
    losses: ClassVar[tuple[str, ...]] = ("squared_epsilon_insensitive",)
    kind: ClassVar[type[Problem]] = RegressionProblem

    def __post_init__(self) -> None:
        check_option("direction", self.direction, ("auto", "factor", "gradients"))

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if problem.loss.name not in self.losses:
            raise ValueError(
                f"solver={self.name!r} needs loss={self.losses[0]!r}, got "
                f"loss={problem.loss.name!r}; use solver='dcd' for it"
            )
        if self.direction == "factor" and problem.width > _MOST_FEATURES:
            raise ValueError(
                f"direction='factor': {problem.width} features, more than "
                f"{_MOST_FEATURES}; use direction='gradients' or 'auto'"
            )

    def start(self, problem: Any, rng: Any, warm: Vector | None) -> NewtonState:
        w = np.zeros(problem.width) if warm is None else problem.combine(warm)
        factor = self.direction == "factor" or (
            self.direction == "auto"
            and problem.width <= _MOST_FEATURES
            and factor_work(problem) <= _WORTH
        )
        return NewtonState.at(problem, rng, w, factor)

    def step(self, state: NewtonState, stop: Any) -> None:
        problem: Any = state.problem
        state.epochs += 1
        arrays = (
            problem.rows, problem.target, problem.cost, problem.loss.epsilon, state.w,
            state.residual, state.gradient, state.step, state.image,
        )  # fmt: skip
        functions, blas = algebra()
        size = math.sqrt(2.0 * state.gap)
        accuracy = _ACCURACY * min(1.0, math.sqrt(size / max(state.first, 1e-300)))
        if state.factor:
            make_room_for(problem.threads.size, BLAS)
        with blas.limit(limits=1):
            length, gradients = core.newton_step(
                *arrays, accuracy, 0 if state.factor else _MOST_GRADIENTS, functions,
                problem.threads, stop,
            )  # fmt: skip
        work = factor_work(problem) if state.factor else 2.0 * gradients + 1.0
        state.visited += problem.n + round(work * state.outside)
        if length == 0.0:
            return
        before = state.w, state.primal, state.gap
        state.w = state.w + length * state.step
        state.look()
        if state.primal < before[1] or state.gap < before[2]:
            state.updates += state.outside + 1
            return
        # Rounding hides what there is to gain: this is the optimum.
        state.w = before[0]
        state.look()

    def iterate(self, state: NewtonState) -> tuple[Vector, None]:
        return state.w, None


def factor_work(problem: Problem) -> float:
    """What a factor of H costs, in products with all rows.

    Counts only: the Gram matrix (entry by entry, or panels and BLAS, which is 14 times
    as fast from some 100 features on) and the factor.
    """
    entries, d = problem.rows.stored / problem.n + 1.0, float(problem.width)
    dense = entries > 0.2 * d
    gram = d * (0.035 * d + 2.0) if dense else 0.5 * entries * (entries + 1.0)
    return (gram + d**3 / 60.0 / problem.n) / (0.8 * entries + 5.0)


def regression_solver(name: str, problem: Any) -> Solver:
    """The record for a name; "auto" goes by the loss and the counts of the problem."""
    if name == "auto":
        squared = problem.loss.name in ResidualNewton.losses
        many = problem.n >= _ROWS_PER_FEATURE * problem.width
        name = "newton" if squared and many else "dcd"
    return ResidualNewton() if name == "newton" else RegressionDCD()
