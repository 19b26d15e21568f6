"""MPU: the margin perceptron with unlearning, reconstructed.

Problem    min 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i), through its dual (losses.py):
           alpha_k = s n_k, w = s a, a = sum n_k y_k x_k, n_k the counter of row k
Update     with p = a.y_k x_k + delta_k n_k, q = ||x_k||^2 + delta_k and b = 1/s,
           additive: while p < b - q/2 and n_k < U_k/s:  a += y_k x_k, n_k += 1
           unlearning: while p > b + q/2 and n_k > 0:  a -= y_k x_k, n_k -= 1
           all updates of a visit at once, in closed form
           s = 2 delta/max q; halved, a and n_k doubled, when no row has an update left
Guarantee  D rises with every update, so each s has finitely many. After the last one,
           rows with n_k < U_k/s have a margin of at least 1 - delta, and rows with
           n_k > 0 a margin of at most 1 + delta. So P - D <= delta times the sum of
           c_k over the rows whose margin is within delta of 1 (hinge).
Cost       one product with X per epoch; 8 bytes per row
Source     Panagiotakopoulos and Tsampouka, "The margin perceptron with unlearning",
           ICML 2010. This is a reconstruction from its abstract and from the summary in
           the authors' later paper (arXiv 1304.6383). They give the perceptron with
           margin, the unlearning of "very well classified" patterns, a counter per
           pattern, multiple updates, the 1-norm soft margin, and the names delta and
           delta_stop. The two thresholds, the cap, the closed form, the choice of s,
           its halving and the guarantee above are this package's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ... import core
from ...checks import Fraction, Step
from ...losses import Vector
from ...problems.binary import BinaryProblem
from ..base import Solver, State, new_order, register, row_visits


@dataclass(frozen=True)
class MPUSettings:
    """Tuning constants of `MPU`."""

    #: Smallest delta for which s is still halved: rounding limits the margins.
    least_delta: float = 2.0**-50


@dataclass(kw_only=True)
class MPUState(State):
    """Counters n_k and a = sum n_k y_k x_k."""

    a: Vector
    count: Vector
    s: float  # alpha = s n_k
    delta: float  # s q/2 of the longest row
    unlearned: int = 0  # updates that lowered a counter
    witness: ClassVar[str] = "dual"

    @property
    def alpha(self) -> Vector:
        """Dual point, in the box."""
        return np.minimum(self.s * self.count, self.problem.upper)

    def refine(self) -> None:
        """Halve s and double the counters; alpha and w stay the same."""
        self.s *= 0.5
        self.delta *= 0.5
        self.a *= 2.0
        self.count *= 2.0


@register("binary")
@dataclass(frozen=True)
class MPU(Solver):
    """Margin perceptron with unlearning, a reconstruction (see the module).

    Parameters
    ----------
    delta : float, default=0.02
        Accuracy of the margins: at the end, margins that should be 1 differ from 1 by
        at most delta.
    delta_stop : float, optional
        Relative gap below which s is not halved again when no update is left. None
        halves s until the fit proves its `tol`. The paper stops at delta_stop. Here
        `tol` decides, and a fit with a `tol` below delta_stop may stall.
    """

    delta: Fraction = 0.02
    delta_stop: Step | None = None

    name: ClassVar[str] = "mpu"
    settings: ClassVar[MPUSettings] = MPUSettings()
    resumes: ClassVar[bool] = True
    losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge")
    streams = True

    @property
    def monotone(self) -> bool:
        # Without delta_stop a pass without updates is no fixed point: s is halved.
        return self.delta_stop is not None

    def start(
        self, problem: BinaryProblem, rng: core.Random, warm: Vector | None
    ) -> MPUState:
        used = problem.cost > 0.0
        longest = float((problem.q + problem.delta).max(where=used, initial=0.0))
        return MPUState(
            problem,
            rng,
            new_order(0 if problem.streamed else problem.n),
            a=np.zeros(problem.width),
            count=np.zeros(problem.n),
            # Rows of norm 0 reach their cap at once, whatever s is.
            s=2.0 * self.delta / longest if longest > 0.0 else 1.0,
            delta=self.delta,
        )

    def step(self, state: MPUState, stop: core.Stop) -> None:
        problem = state.problem
        updates, gap = 0, 0.0
        for block, order in row_visits("permutation", state, stop):
            count = block.take(state.count)
            found = core.unlearning_epoch(
                problem.examples(block), state.s, order, state.a, count, stop
            )
            block.put(state.count, count)
            state.visited += found.visited
            state.unlearned += found.unlearned
            updates, gap = updates + found.updates, gap + found.gap
        state.epochs += 1
        state.updates += updates
        norm = core.squared_norm(state.s * state.a)
        state.dual = problem.dual_value(state.count, norm, state.s)
        state.primal = state.dual + gap
        accurate = (self.delta_stop or 0.0) * max(state.dual, 0.0)
        fine = state.delta <= self.settings.least_delta
        if updates == 0 and gap > accurate and not fine:
            state.refine()

    def iterate(self, state: MPUState) -> tuple[None, Vector]:
        # The certificate is about the best multiple of the counters, not about s.
        problem, alpha = state.problem, state.alpha
        total = float(alpha.sum())
        diagonal = 2.0 * (total - problem.dual_value(alpha, 0.0))
        curvature = state.s * state.s * core.squared_norm(state.a) + diagonal
        scale = problem.best_scale(alpha, total, curvature)
        return None, np.minimum(scale * alpha, problem.upper) if scale > 0.0 else alpha

    def reject(self, state: MPUState) -> None:
        # Rounding has moved a slightly away from its counters.
        state.a = state.problem.combine(state.count)
