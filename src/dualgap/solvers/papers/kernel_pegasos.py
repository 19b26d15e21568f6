"""Kernelised Pegasos: stochastic subgradient steps in the span of the rows.

Problem    min 1/2 ||w||^2 + sum_i c_i l(y_i f(x_i)), f(x) = <w, (phi(x), 1)>, or
           without a bias f(x) = <w, phi(x)>
Update     step t on row i, with w = sum_j s_j y_j (phi(x_j), 1)/(lambda t) and
           lambda = 1/sum c_i:  s_i <- s_i - omega_i l'(y_i f(x_i)), omega_i = c_i/mean
           c. For the hinge this is s_i <- s_i + omega_i if y_i f(x_i) < 1. A step on k
           rows divides the changes by k.
Guarantee  suboptimality O(log t/(lambda t)) in expectation.
Dual       alpha_i = -c_i times the mean of l'(y_i f(x_i)) over the visits to row i: for
           the hinge, c_i times the share of its visits with a loss. It is in the box.
           After whole epochs of permutations it is s_i/(lambda t) and defines this w.
           After draws, or for an average, it defines another model.
Cost       one kernel row and O(n) per row with a loss, twice O(n) for an average, O(1)
           for each other row
Source     Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), Fig. 3.
           The paper found permutations faster than independent draws. The budget
           removes vectors as in Wang, Crammer and Vucetic, JMLR 13 (2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ... import core
from ...checks import Count
from ...losses import LOSSES, Vector
from ...problems.base import Claim, KernelHint
from ...problems.kernel import KernelProblem
from ..base import SteppedSolver, next_order, register
from ..kernel.base import KernelSolver
from .frank_wolfe import SimplexState


@dataclass(frozen=True)
class KernelPegasosSettings:
    """Tuning constants of kernelised Pegasos."""

    #: Coefficients may leave the box by this, relatively, and still be dual variables.
    rounding: float = 1e-9


@dataclass(kw_only=True)
class PegasosState(SimplexState):
    """State of kernelised Pegasos.

    ``a`` holds s, ``g`` the margins times lambda t, and ``t`` counts the steps.
    ``most`` is what s would be if all visits had the slope -1. With an average, its
    coefficients are ``(sigma s + r_a)/t`` and its margins ``(sigma g + r_g)/t``.
    """

    omega: Vector
    offset: float
    most: Vector
    settings: KernelPegasosSettings
    t: int = 0
    r_a: Vector | None = None
    r_g: Vector | None = None
    sigma: float = 0.0

    def finite(self) -> bool:
        return bool(np.isfinite(self.primal))

    def model(self) -> tuple[Vector, Vector]:
        """Return the coefficients of the model and its margins, both of shape (m,)."""
        if self.r_a is None or self.r_g is None or self.t == 0:
            return self.a / self.scale, self.g / self.scale
        a, g = self.sigma * self.a + self.r_a, self.sigma * self.g + self.r_g
        return a / self.t, g / self.t

    def in_box(self, coef: Vector) -> bool:
        """Whether coefficients are dual variables, up to rounding."""
        upper = self.problem.upper[self.used]
        return bool((coef <= (1.0 + self.settings.rounding) * upper).all())

    def dual_point(self, coef: Vector) -> Vector:
        """Return coefficients in the box, or mean slopes in their place, (m,)."""
        if self.in_box(coef):
            return np.minimum(coef, self.problem.upper[self.used])
        share = self.a / np.where(self.most > 0.0, self.most, 1.0)
        return np.asarray(self.problem.cost[self.used] * share)

    def alpha(self) -> Vector:
        return self.whole(self.dual_point(self.model()[0]))

    def whole(self, values: Vector) -> Vector:
        """Return values at the rows with a cost as an array of shape (n,)."""
        out = np.zeros(self.problem.n)
        out[self.used] = values
        return out

    @property
    def scale(self) -> float:
        """Value of ``lambda t``, offset included; 1 before the first step."""
        steps = self.offset + self.t
        return self.problem.lambda_ * steps if steps > 0 else 1.0

    def measure(self) -> None:
        """Set P and D from the margins that the epochs keep up to date."""
        problem, (coef, margins) = self.problem, self.model()
        alpha = self.dual_point(coef)
        norm = float((coef * margins).sum())
        diagonal = float((self.delta * alpha * alpha).sum())
        loss = problem.loss.value(margins)
        self.primal = 0.5 * norm + float((problem.cost[self.used] * loss).sum())
        if not self.in_box(coef):
            # The mean slopes define the last iterate, or one close to it.
            norm = float((self.a * self.g).sum()) / self.scale**2
        self.dual = float(alpha.sum()) - 0.5 * (norm + diagonal)

    def refresh(self) -> None:
        """Recompute the margins in float64."""
        f = self.problem.combine(self.whole(self.a / self.scale))[self.used]
        self.g = self.y * f * self.scale


@register("kernel")
@dataclass(frozen=True)
class KernelPegasos(SteppedSolver, KernelSolver):
    """Kernelised Pegasos of Shalev-Shwartz et al. 2011.

    Use it for rough models of many rows: it is slow to reach high accuracy.

    Parameters
    ----------
    budget : int, optional
        Largest number of support vectors. Beyond it the support vector of smallest
        weight is removed, and the gap need not close.
    batch_size : int, default=1
        Rows per step. If it does not divide the number of rows, the last batch of an
        epoch is shorter.
    sampling : {"permutation", "random"}, default="permutation"
        A new permutation every epoch, which the paper found faster, or the independent
        draws of its analysis. An epoch has n rows in both cases.
    output : {"last", "average"}, default="last"
        Last iterate, or the average of all.
    """

    budget: Count | None = None
    batch_size: Count = 1
    sampling: Literal["permutation", "random"] = "permutation"
    output: Literal["last", "average"] = "last"

    name: ClassVar[str] = "kernel-pegasos"
    settings: ClassVar[KernelPegasosSettings] = KernelPegasosSettings()
    losses: ClassVar[tuple[str, ...]] = tuple(LOSSES)
    dual: ClassVar[bool] = False
    without_bias: ClassVar[bool] = True

    def check(self, problem: KernelProblem) -> None:
        super().check(problem)
        if self.batch_size > problem.n:
            raise ValueError(
                f"batch_size={self.batch_size} is more than the {problem.n} rows; "
                f"give 1 to {problem.n}"
            )

    def start(
        self, problem: KernelProblem, rng: core.Random, warm: Vector | None
    ) -> PegasosState:
        simplex = SimplexState.begin(problem, rng)
        cost = problem.cost[simplex.used]
        omega = cost / cost.mean()
        offset = 0.0
        if problem.loss.curvature > 0.0:
            # lambda offset is the largest curvature of the mean loss.
            bend = float(((simplex.diagonal - simplex.delta) * omega).max())
            offset = np.ceil(bend / problem.loss.curvature / problem.lambda_)
        parts = vars(simplex) | {"order": simplex.active.copy()}
        state = PegasosState(
            **parts,
            omega=omega,
            offset=float(offset),
            most=np.zeros(len(omega)),
            settings=self.settings,
        )
        if self.output == "average":
            state.r_a, state.r_g = np.zeros(len(omega)), np.zeros(len(omega))
        state.primal, state.dual = float(problem.loss.value(0.0) * cost.sum()), 0.0
        return state

    def step(self, state: PegasosState, stop: core.Stop) -> None:
        problem, order, point, total = state.problem, state.order, state.point, None
        state.epochs += 1
        next_order(self.sampling, state.rng, order, len(order))
        if state.r_a is not None and state.r_g is not None:
            total = core.SumOfSteps(state.r_g, state.r_a, state.sigma)
        settings = core.PegasosSettings(
            problem.core_loss,
            problem.lambda_,
            self.budget or 0,
            self.batch_size,
            state.offset + state.t,
        )
        walk = core.kernel_pegasos(
            state.simplex,
            point,
            state.omega,
            settings,
            order[: state.rows_left(len(order), self.batch_size)],
            state.most,
            total,
            stop,
        )
        state.size = point.size
        if total is not None:
            state.sigma = total.sigma
        state.t += walk.steps
        state.visited += walk.visited
        state.updates += walk.updates
        state.measure()

    def iterate(self, state: PegasosState) -> tuple[Vector, Vector]:
        w, alpha, _ = self._points(state)
        return w, alpha

    def claim(self, state: PegasosState) -> Claim:
        w, alpha, apart = self._points(state)
        return Claim(w, alpha, apart=apart, hint=KernelHint(stop=state.stop))

    def _points(self, state: PegasosState) -> tuple[Vector, Vector, bool]:
        """Return the model, the dual point, and whether they differ beyond rounding."""
        coef, _ = state.model()
        alpha = state.dual_point(coef)
        point = state.whole(alpha)
        apart = not np.allclose(coef, alpha, rtol=self.settings.rounding, atol=0.0)
        return state.whole(coef) if apart else point, point, apart

    def reject(self, state: PegasosState) -> None:
        state.refresh()
