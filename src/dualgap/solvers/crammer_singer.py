"""Sequential dual steps for the multiclass SVM of Crammer and Singer.

Problem    min 1/2 sum_m ||w_m||^2
             + sum_i c_i max_m (w_m.x_i - w_{y_i}.x_i + [m != y_i]), through its dual
             (src/dualgap/problems/crammer_singer.py)
Update     all K duals of one row at once, exactly: a projection on a simplex
Shrinking  skips a row that does not change for 1 epoch, then for 3, 7, ..., 31
Guarantee  D never falls, and converges to its maximum
Cost       K products with the active rows per epoch; 8 K + 6 bytes per row
Source     Keerthi, Sundararajan, Chang, Hsieh and Lin, KDD 2008, section 3. The paper
           shrinks rows and classes, and stops when the largest violation of the
           optimality conditions by a row is small; here the certified gap decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..losses import Vector
from ..problems.base import Claim, LinearHint
from ..problems.crammer_singer import CrammerSingerProblem
from .base import Solver, State, new_order, register


@dataclass(frozen=True)
class SequentialDualSettings:
    """Tuning constants of `SequentialDual`."""

    #: Epochs after which w is recomputed from alpha: rounding of updates adds up.
    repair_every: int = 64


@dataclass(kw_only=True)
class MulticlassState(State):
    """Dual point, the weights of all classes, and the rows that shrinking skips."""

    alpha: Vector  # (n K,)
    w: Vector  # (width stride,)
    wake: NDArray[np.uint8]
    length: NDArray[np.uint8]
    linear: float = 0.0  # sum_i a_{i,y_i}
    witness: ClassVar[str] = "dual"

    def repair(self) -> None:
        """Recompute the sums that epochs only update."""
        problem: Any = self.problem  # of its own kind
        problem.combine(self.alpha, self.w)
        duals = self.alpha.reshape(problem.n, problem.classes)
        self.linear = math.fsum(duals[np.arange(problem.n), problem.y])


@register("crammer-singer")
@dataclass(frozen=True)
class SequentialDual(Solver):
    """Sequential dual method of Keerthi et al. 2008, for Crammer and Singer."""

    name: ClassVar[str] = "sequential-dual"
    settings: ClassVar[SequentialDualSettings] = SequentialDualSettings()
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    dual: ClassVar[bool] = True
    monotone = True

    def check_warm(self, problem: CrammerSingerProblem, warm: Vector) -> Vector:
        warm = np.array(warm, dtype=np.float64).ravel()
        if warm.shape != (problem.n_duals,):
            raise ValueError(
                f"warm start: dual variables of shape {warm.shape}, expected "
                f"({problem.n_duals},); fit the same rows and classes, or start cold"
            )
        if not np.isfinite(warm).all():
            raise ValueError("warm start: dual variables are not finite; start cold")
        problem.feasible(warm)
        return warm

    def start(
        self, problem: CrammerSingerProblem, rng: core.Random, warm: Vector | None
    ) -> MulticlassState:
        state = MulticlassState(
            cast(Any, problem),
            rng,
            new_order(problem.n),
            alpha=np.zeros(problem.n_duals) if warm is None else warm,
            w=np.zeros(problem.width * problem.stride),
            wake=np.zeros(problem.n, np.uint8),
            length=np.zeros(problem.n, np.uint8),
        )
        if warm is not None:
            state.repair()
        return state

    def step(self, state: MulticlassState, stop: core.Stop) -> None:
        problem: Any = state.problem
        if (state.epochs + 1) % self.settings.repair_every == 0:
            state.repair()
        point = core.MulticlassState(state.alpha, state.w, state.wake, state.length)
        found = core.crammer_singer_epoch(
            problem.examples, point, state.order, state.rng, stop
        )
        state.epochs += 1
        state.visited += found.visited
        state.updates += found.updates
        state.linear += found.linear
        state.dual = state.linear - 0.5 * core.squared_norm(state.w)
        state.primal = state.dual + found.gap

    def iterate(self, state: MulticlassState) -> tuple[None, Vector]:
        return None, state.alpha

    def claim(self, state: MulticlassState) -> Claim:
        return Claim(alpha=state.alpha, hint=LinearHint(out=state.w))

    def reject(self, state: MulticlassState) -> None:
        state.wake[:] = 0
