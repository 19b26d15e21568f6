"""Kernelised Pegasos: stochastic sub-gradient steps in the span of the rows.

Problem    min 1/2 ||w||^2 + sum_i c_i l(y_i f(x_i)), f(x) = <w, (phi(x), 1)>
Update     step t on row i, with w = sum_j s_j y_j (phi(x_j), 1)/(lambda t) and
           lambda = 1/sum c_i:  s_i <- s_i - omega_i l'(y_i f(x_i)); for the hinge that
           is s_i <- s_i + omega_i if y_i f(x_i) < 1, with omega_i = c_i/mean c
Guarantee  suboptimality O(log t/(lambda t)) in expectation. After complete passes
           alpha = s/(lambda t) is a dual point whose w is this one.
Cost       one kernel row and O(n) per row that the loss sees, O(1) for the others
Source     Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), Fig. 3.
           Rows come in a new permutation every pass, which the paper found faster than
           its independent draws, and which keeps alpha in the box of the hinge. The
           budget is the removal of Wang, Crammer and Vucetic, JMLR 13 (2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import core
from ..losses import Vector
from ..solvers.base import check_count
from .base import KernelSolver
from .frank_wolfe import SimplexState


@dataclass(kw_only=True)
class PegasosState(SimplexState):
    """``a`` holds s, and ``g`` the margins times lambda t; ``t`` counts steps."""

    omega: Vector
    offset: float
    t: int = 0

    def finite(self) -> bool:
        return bool(np.isfinite(self.primal))

    def alpha(self) -> Vector:
        """Dual variables ``s/(lambda t)`` of shape (n,), clipped within a pass."""
        out = np.zeros(self.problem.n)
        out[self.used] = self.a / self.scale
        return np.minimum(out, self.problem.upper)

    @property
    def scale(self) -> float:
        """``lambda t``, offset included; 1 before the first step."""
        steps = self.offset + self.t
        return self.problem.lambda_ * steps if steps > 0 else 1.0

    def measure(self) -> None:
        """P and D of the margins that the passes carry along."""
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


@dataclass(frozen=True)
class KernelPegasos(KernelSolver):
    """Kernelised Pegasos of Shalev-Shwartz et al. 2011.

    Slow to high accuracy: it is for a rough model of many rows.

    Parameters
    ----------
    budget : int, optional
        Most support vectors; beyond it the one of smallest weight is left out. Then
        the gap need not close.
    """

    budget: int | None = None

    name: ClassVar[str] = "kernel-pegasos"
    losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge", "smoothed_hinge")
    dual: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.budget is not None:
            check_count("budget", self.budget)

    def start(self, problem: Any, rng: Any, warm: Vector | None) -> PegasosState:
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

    def step(self, state: PegasosState, stop: Any) -> None:
        problem = state.problem
        state.epochs += 1
        state.rng.shuffle(state.order)
        steps, updates, state.size = core.kernel_pegasos(
            problem.gram.core, state.columns, problem.core_loss, state.y, state.omega,
            problem.lambda_, self.budget or 0, state.a, state.g, state.active,
            state.size, state.order, state.offset + state.t, stop,
        )  # fmt: skip
        state.t += steps
        state.visited += steps
        state.updates += updates
        state.measure()

    def iterate(self, state: PegasosState) -> tuple[None, Vector]:
        return None, state.alpha()

    def reject(self, state: PegasosState) -> None:
        state.refresh()
