"""Sequential dual steps for the multiclass SVM of Crammer and Singer.

Problem    min 1/2 sum_m ||w_m||^2
             + sum_i c_i max_m (w_m.x_i - w_{y_i}.x_i + [m != y_i]), through its dual
             (src/dualgap/crammer_singer.py)
Update     all K duals of one row at once, exactly: a projection on a simplex
Rows       one that does not change sleeps for 1 pass, then for 3, 7, ... 31
Guarantee  D never falls, and converges to its maximum
Cost       K products with the rows awake per epoch; 8 K + 6 bytes per row
Source     Keerthi, Sundararajan, Chang, Hsieh and Lin, KDD 2008, section 3. The paper
           stops when max_i v_i is small, v_i the violation of the optimality conditions
           by row i, and shrinks rows and classes; here the certified gap decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..crammer_singer import CrammerSingerProblem
from ..losses import Vector
from .base import Solver, State, new_order

REPAIR_EVERY = 64  # passes after which w is recomputed: millions of updates drift


@dataclass(kw_only=True)
class MulticlassState(State):
    """A dual point, the weights of all classes, and which rows sleep."""

    alpha: Vector  # (n K,)
    w: Vector  # (width stride,)
    wake: NDArray[np.uint8]
    length: NDArray[np.uint8]
    linear: float = 0.0  # sum_i a_{i,y_i}

    def finite(self) -> bool:
        return math.isfinite(self.dual)

    def repair(self) -> None:
        """Recompute what passes only update."""
        problem: Any = self.problem  # of its own kind
        problem.combine(self.alpha, self.w)
        self.linear = math.fsum(problem.own_duals(self.alpha))


@dataclass(frozen=True)
class SequentialDual(Solver):
    """The sequential dual method of Keerthi et al. 2008, for Crammer and Singer."""

    name: ClassVar[str] = "sequential-dual"
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    dual: ClassVar[bool] = True

    @property
    def monotone(self) -> bool:
        return True

    def check(self, problem: Any) -> None:
        if not isinstance(problem, CrammerSingerProblem):
            raise ValueError(
                "solver='sequential-dual' is for multi_class='crammer_singer'; for "
                "binary problems use solver='auto' or 'dcd'"
            )

    def check_warm(self, problem: Any, warm: Vector) -> Vector:
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

    def start(self, problem: Any, rng: Any, warm: Vector | None) -> MulticlassState:
        state = MulticlassState(
            problem,
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

    def step(self, state: MulticlassState, stop: Any) -> None:
        problem: Any = state.problem
        if state.epochs % REPAIR_EVERY == REPAIR_EVERY - 1:
            state.repair()
        visited, updates, gap, linear = core.crammer_singer_epoch(
            problem.rows, problem.y, problem.cost, problem.q, problem.classes,
            state.alpha, state.w, state.wake, state.length, state.order, state.rng,
            stop,
        )  # fmt: skip
        state.epochs += 1
        state.visited += visited
        state.updates += updates
        state.linear += linear
        state.dual = state.linear - 0.5 * core.squared_norm(state.w)
        state.primal = state.dual + gap

    def iterate(self, state: MulticlassState) -> tuple[None, Vector]:
        return None, state.alpha

    def proof_options(self, state: MulticlassState) -> dict[str, Any]:
        return {"out": state.w}

    def reject(self, state: MulticlassState) -> None:
        state.wake[:] = 0
