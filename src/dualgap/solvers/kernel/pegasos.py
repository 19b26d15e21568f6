"""Kernelised Pegasos: stochastic subgradient steps in the span of the rows.

Problem    min 1/2 ||w||^2 + sum_i c_i l(y_i f(x_i)), f(x) = <w, (phi(x), 1)>, or
           without a bias f(x) = <w, phi(x)>
Update     step t on row i, with w = sum_j s_j y_j (phi(x_j), 1)/(lambda t) and
           lambda = 1/sum c_i:  s_i <- s_i - omega_i l'(y_i f(x_i)), omega_i = c_i/mean
           c. For the hinge this is s_i <- s_i + omega_i if y_i f(x_i) < 1. A step on k
           rows divides the changes by k.
Guarantee  suboptimality O(log t/(lambda t)) in expectation. After whole epochs
           alpha = s/(lambda t) is a dual point that defines this w.
Cost       one kernel row and O(n) per row with a loss, O(1) for each other row
Source     Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), Fig. 3.
           Every epoch visits the rows in a new permutation. The paper found this faster
           than independent draws, and it keeps alpha in the box of the hinge. The
           budget removes vectors as in Wang, Crammer and Vucetic, JMLR 13 (2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ... import core
from ...checks import check_count
from ...losses import Vector
from ..registry import register
from .base import KernelSolver
from .frank_wolfe import SimplexState


@dataclass(kw_only=True)
class PegasosState(SimplexState):
    """State of kernelised Pegasos.

    ``a`` holds s, ``g`` the margins times lambda t, and ``t`` counts the steps.
    """

    omega: Vector
    offset: float
    t: int = 0

    def finite(self) -> bool:
        return bool(np.isfinite(self.primal))

    def alpha(self) -> Vector:
        """Return the dual variables ``s/(lambda t)``, shape (n,).

        They are clipped to their box, which they may leave within an epoch.
        """
        out = np.zeros(self.problem.n)
        out[self.used] = self.a / self.scale
        return np.minimum(out, self.problem.upper)

    @property
    def scale(self) -> float:
        """Value of ``lambda t``, offset included; 1 before the first step."""
        steps = self.offset + self.t
        return self.problem.lambda_ * steps if steps > 0 else 1.0

    def measure(self) -> None:
        """Set P and D from the margins that the epochs keep up to date."""
        problem, alpha, margins = self.problem, self.a / self.scale, self.g / self.scale
        norm = float((alpha * margins).sum())
        diagonal = float((self.delta * alpha * alpha).sum())
        loss = problem.loss.value(margins)
        self.primal = 0.5 * norm + float((problem.cost[self.used] * loss).sum())
        self.dual = float(alpha.sum()) - 0.5 * (norm + diagonal)

    def refresh(self) -> None:
        """Recompute the margins in float64."""
        whole = np.zeros(self.problem.n)
        whole[self.used] = self.a / self.scale
        f = self.problem.combine(whole)[self.used]
        self.g = self.y * f * self.scale


@register("kernel")
@dataclass(frozen=True)
class KernelPegasos(KernelSolver):
    """Kernelised Pegasos of Shalev-Shwartz et al. 2011.

    Use it for rough models of many rows: it is slow to reach high accuracy.

    Parameters
    ----------
    budget : int, optional
        Largest number of support vectors. Beyond it the support vector of smallest
        weight is removed, and the gap need not close.
    batch_size : int, default=1
        Rows per step. If it does not divide the number of rows, the last batch of an
        epoch is shorter; dual variables that its larger steps take out of the box are
        clipped.
    """

    budget: int | None = None
    batch_size: int = 1

    name: ClassVar[str] = "kernel-pegasos"
    losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge", "smoothed_hinge")
    dual: ClassVar[bool] = False
    without_bias: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.budget is not None:
            check_count("budget", self.budget)
        check_count("batch_size", self.batch_size)

    def check(self, problem: Any) -> None:
        super().check(problem)
        if self.batch_size > problem.n:
            raise ValueError(
                f"batch_size={self.batch_size} is more than the {problem.n} rows; "
                f"give 1 to {problem.n}"
            )

    def start(
        self, problem: Any, rng: core.Random, warm: Vector | None
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
        state = PegasosState(**parts, omega=omega, offset=float(offset))
        state.primal, state.dual = float(problem.loss.value(0.0) * cost.sum()), 0.0
        return state

    def step(self, state: PegasosState, stop: core.Stop) -> None:
        problem = state.problem
        state.epochs += 1
        state.rng.shuffle(state.order)
        point = state.point
        settings = core.PegasosSettings(
            problem.lambda_, self.budget or 0, self.batch_size
        )
        walk = core.kernel_pegasos(
            state.simplex,
            point,
            problem.core_loss,
            state.omega,
            settings,
            state.order,
            state.offset + state.t,
            stop,
        )
        state.size = point.size
        state.t += walk.steps
        state.visited += walk.visited
        state.updates += walk.updates
        state.measure()

    def iterate(self, state: PegasosState) -> tuple[None, Vector]:
        return None, state.alpha()

    def reject(self, state: PegasosState) -> None:
        state.refresh()
