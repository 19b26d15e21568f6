"""Newton's method for linear regression with the squared loss.

Problem    min over w of  P(w) = 1/2 ||w||^2 + sum_i c_i max(0, |r_i| - epsilon)^2,
           r_i = p_i - x_i.w
Update     H s = -g with the generalised Hessian H = I + 2 sum c_i x_i x_i' over the
           rows outside of the tube, by a Cholesky factor or by conjugate gradients;
           then the minimiser of P along s (src/core/newton.hpp)
Guarantee  P never rises and w -> w*; with factors in a finite number of steps. The dual
           point is a_i = 2 c_i (|r_i| - epsilon) sign(r_i), and P - D = 1/2 ||g||^2.
Cost       three products per step, and a Gram matrix and d^3/6, or two products for
           each conjugate gradient; 32 bytes per row, and 8 d^2 bytes per thread.
Source     Mangasarian, Optim. Methods Softw. 17, 2002; Keerthi and DeCoste, JMLR 6,
           2005; Ho and Lin, JMLR 13, 2012, section 3.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from .. import core
from ..losses import Vector
from ..problems.base import Claim
from ..problems.binary import BinaryProblem
from ..problems.regression import RegressionProblem
from . import regression
from .base import TINY, Solver, State, get_solver, register, register_choice
from .regression import RegressionDCD, RegressionSolver, ascended
from .smoothing_regression import SmoothingRegression
from .some_rows import lone_blas


@dataclass(frozen=True)
class ResidualNewtonSettings(regression.RegressionSettings):
    """Tuning constants of `ResidualNewton`."""

    #: A factor that costs more products than this is replaced by conjugate gradients.
    most_products: float = 10.0
    #: "auto" uses Newton's method from this many rows per feature on. Else `dcd` takes
    #: few epochs, or Newton's matrix too long.
    rows_per_feature: int = 4
    #: "auto" uses it from this mean of c_i q_i on, too, with few features.
    steep: float = 20.0
    #: Most features that are few.
    auto_features: int = 100
    #: Most features for a factor: d^2 doubles are 0.8 GB per thread.
    most_features: int = 10_000
    #: Conjugate gradients stop at this ||H s + g||/||g||, and later steps at less.
    accuracy: float = 0.1
    #: Most conjugate gradients in a step.
    most_gradients: int = 1000


@dataclass(kw_only=True)
class ResidualNewtonState(State):
    """Point, its residuals and gradient, and scratch space for a step."""

    problem: RegressionProblem = field(kw_only=False)
    w: Vector
    residual: Vector
    gradient: Vector
    step: Vector
    image: Vector  # X step
    factor: bool
    gap: float = math.inf
    outside: int = 0
    first: float = 0.0  # ||g|| of the first point
    witness: ClassVar[str] = "primal"

    @classmethod
    def at(
        cls, problem: RegressionProblem, rng: core.Random, w: Vector, factor: bool
    ) -> ResidualNewtonState:
        """Return the state at w, at the cost of one pass."""
        state = cls(
            problem,
            rng,
            w=w,
            residual=np.empty(problem.n),
            gradient=np.empty(problem.width),
            step=np.empty(problem.width),
            image=np.empty(problem.n),
            factor=factor,
        )
        state.look()
        state.first = math.sqrt(2.0 * state.gap)
        return state

    @property
    def arrays(self) -> core.NewtonState:
        """The core's record of the point and its scratch space."""
        return core.NewtonState(
            self.w, self.residual, self.gradient, self.step, self.image
        )

    def look(self) -> None:
        """Compute residuals, gradient, P and D at w."""
        problem = self.problem
        self.primal, self.gap, self.outside = core.newton_point(
            problem.with_targets, self.arrays, problem.threads
        )
        self.dual = self.primal - self.gap
        self.visited += problem.n + self.outside


@register("regression")
@dataclass(frozen=True)
class ResidualNewton(RegressionSolver):
    """Newton's method with an exact line search, for the squared loss.

    Parameters
    ----------
    direction : {"auto", "factor", "gradients"}, default="auto"
        Solve H s = -g by a Cholesky factor of the d x d matrix, by conjugate gradients,
        or by the one that is expected to cost less.
    """

    direction: Literal["auto", "factor", "gradients"] = "auto"

    name: ClassVar[str] = "newton"
    settings: ClassVar[ResidualNewtonSettings] = ResidualNewtonSettings()
    losses: ClassVar[tuple[str, ...]] = ("squared_epsilon_insensitive",)

    def check(self, problem: BinaryProblem) -> None:
        super().check(problem)
        most = self.settings.most_features
        if self.direction == "factor" and problem.width > most:
            raise ValueError(
                f"direction='factor': {problem.width} features, more than "
                f"{most}; use direction='gradients' or 'auto'"
            )

    def start(
        self, problem: RegressionProblem, rng: core.Random, warm: Vector | None
    ) -> ResidualNewtonState:
        w = np.zeros(problem.width) if warm is None else problem.combine(warm)
        factor = self.direction == "factor" or (
            self.direction == "auto"
            and problem.width <= self.settings.most_features
            and factor_work(problem) <= self.settings.most_products
        )
        return ResidualNewtonState.at(problem, rng, w, factor)

    def step(self, state: ResidualNewtonState, stop: core.Stop) -> None:
        problem = state.problem
        state.epochs += 1
        progress = math.sqrt(2.0 * state.gap) / max(state.first, TINY)
        accuracy = self.settings.accuracy * min(1.0, math.sqrt(progress))
        most = 0 if state.factor else self.settings.most_gradients
        length, gradients = core.newton_step(
            problem.with_targets,
            state.arrays,
            accuracy,
            most,
            lone_blas(state),
            problem.threads,
            stop,
        )
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
        # Rounding hides any further gain: this is the optimum.
        state.w = before[0]
        state.look()

    def iterate(self, state: ResidualNewtonState) -> tuple[Vector, None]:
        return state.w, None

    def claim(self, state: ResidualNewtonState) -> Claim:
        if state.gap <= self.goal(state) * state.dual:
            return Claim(state.w)
        problem, r = state.problem, state.residual
        beyond = np.maximum(np.abs(r) - problem.loss.epsilon, 0.0)
        alpha = 2.0 * problem.cost * np.copysign(beyond, r)
        return Claim(state.w, ascended(state, alpha, RegressionDCD()))


def factor_work(problem: BinaryProblem) -> float:
    """Return the cost of factoring H, in products with all rows.

    It counts the factor and the Gram matrix: entry by entry, or by panels and BLAS,
    which is 14 times as fast from some 100 features on.
    """
    entries, d = problem.rows.stored / problem.n + 1.0, float(problem.width)
    dense = entries > 0.2 * d
    gram = d * (0.035 * d + 2.0) if dense else 0.5 * entries * (entries + 1.0)
    return (gram + d**3 / 60.0 / problem.n) / (0.8 * entries + 5.0)


@register_choice("regression")
def choose_regression(problem: RegressionProblem) -> Solver:
    """Return the solver for the loss and the counts of a regression problem."""
    # `dcd` solves a single row in one step. Its dual may be too small for an interior
    # point, or for a residual.
    name = "dcd"
    if np.count_nonzero(problem.cost) == 1:
        pass
    elif problem.loss.name in ResidualNewton.losses:
        newton = ResidualNewton.settings
        many = problem.n >= newton.rows_per_feature * problem.width
        steep = problem.steepness >= newton.steep
        few = problem.width <= newton.auto_features
        name = "newton" if many or (steep and few) else name
    else:
        settings = SmoothingRegression.settings
        size = float(np.abs(problem.target).sum())
        steep = problem.steepness * problem.n >= settings.steep * size
        many = problem.n >= settings.rows_per_feature * problem.width
        most = settings.most_features if many else settings.auto_features
        if steep and problem.width <= most:
            # The smallest are solved to rounding level.
            small = problem.n * problem.width <= settings.free_entries
            name = "interior-point" if small else "smoothing-newton"
    return get_solver(name, problem.kind)
