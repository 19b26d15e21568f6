r"""Huber regression with a scale of its own, for proofs.

With c_i = C sample_weight_i, a scale s >= 0 and r_i = y_i - w.x_i - b it minimises

P(w, b, s) = 1/2 ||w||^2 + sum_i c_i (s + s h(r_i / s)),
h(z) = z^2 up to |z| = epsilon, and then 2 epsilon |z| - epsilon^2,

which is convex in w, b and s together: s h(r / s) is the largest u r - s u^2 / 4 over
|u| <= 2 epsilon. With a_i = c_i u_i its dual is

D(a) = sum_i y_i a_i - 1/2 ||sum_i a_i x_i||^2,  |a_i| <= 2 epsilon c_i,
       sum_i a_i^2 / c_i <= 4 sum_i c_i,  and sum_i a_i = 0 if there is a bias.
"""

from __future__ import annotations

import copy
import math
from typing import TypedDict

import numpy as np

from .. import core
from ..certificate import Bounds, Certificate
from ..data.types import MatrixLike
from ..losses import ResidualLoss, Vector
from .bias import into_sum
from .regression import FreeBiasRegression, RegressionProblem
from .rounding import Rounding

#: Least scale of a proof: the squares of larger quotients do not underflow.
_LEAST_SCALE = 1e-150


class _LossAtScale(ResidualLoss):
    """Losses ``s h(r / s)`` for a slope of 2 epsilon and a curvature of s / 2."""

    name = "huber"

    def __init__(self, slope: float, curvature: float) -> None:
        super().__init__(0.0)
        object.__setattr__(self, "slope", slope)
        object.__setattr__(self, "curvature", curvature)


class _Same(TypedDict):
    """Shared by problems over the same rows."""

    loss: ResidualLoss
    sample_weight: Vector | None
    n_jobs: int


class HuberProblem:
    """Huber regression, for proofs only. No solver trains it.

    `epsilon`: residuals of more than `epsilon` scales are outliers. `fit_intercept`:
    whether there is a bias, which is not part of the norm. The rest is as for
    :class:`dualgap.problems.RegressionProblem`.
    """

    def __init__(
        self,
        X: MatrixLike,
        y: Vector,
        C: float,
        *,
        epsilon: float,
        sample_weight: Vector | None,
        fit_intercept: bool,
        n_jobs: int,
    ) -> None:
        # The box shrinks a little, so that its rounded bounds are feasible.
        box = _LossAtScale(2.0 * epsilon * (1.0 - 4.0 * Rounding.unit), 0.0)
        same: _Same = {"loss": box, "sample_weight": sample_weight, "n_jobs": n_jobs}
        self.epsilon, self.free = float(epsilon), None
        if fit_intercept:
            self.free = FreeBiasRegression(X, y, C, **same)
            self.rows, self.box = self.free.with_bias, self.free.centred
        else:
            self.rows = self.box = RegressionProblem(X, y, C, **same)
        self.cost = self.rows.cost
        self.total = math.fsum(self.cost.tolist())

    def best_scale(self, residual: Vector) -> float:
        """Return the scale that minimises P for given residuals; 0 if none does.

        There ``sum_i c_i min(r_i^2 / s^2, epsilon^2)`` is ``sum_i c_i``.
        """
        size = np.abs(residual)
        order = np.argsort(size)
        size, cost = size[order], self.cost[order]
        largest = float(size[-1])
        if not 0.0 < largest < math.inf:
            return 0.0
        z = size / largest
        inner = np.cumsum(cost * z * z)
        left = self.total - self.epsilon**2 * (self.total - np.cumsum(cost))
        scale = np.sqrt(inner / np.where(left > 0.0, left, math.inf))
        # The first rows are inliers, up to the last one whose scale includes it.
        fits = np.flatnonzero((left > 0.0) & (z <= self.epsilon * scale))
        return largest * float(scale[fits[-1]]) if len(fits) else 0.0

    def certify(self, w: Vector, bias: float, scale: float) -> Certificate:
        """Prove bounds from a model and the dual point of its residuals."""
        if not _LEAST_SCALE <= scale < math.inf:
            raise ValueError(
                f"scale_={scale!r} is not a positive number; train the model again"
            )
        rows = copy.copy(self.rows)
        rows.loss = _LossAtScale(2.0 * self.epsilon, 0.5 * scale)
        rows.core_loss = core.Loss(rows.loss.slope, rows.loss.curvature)
        residual, rounding = np.empty(rows.n), rows.rounding
        point = w if self.free is None else np.append(w, bias)
        values = rows._evaluate(point, "of w", None, None, residual)
        norm = float(core.squared_norm(np.ascontiguousarray(w)))
        scales = scale * self.total
        primal = 0.5 * norm + values.loss + scales
        error = rounding.of_primal(values, norm)
        error += Rounding.slack * Rounding.closing * (3.0 * scales + 2.0 * primal)
        # P is a sum of squares and losses, so 0 is a lower bound.
        found = Bounds.proved(primal, error, 0.0).certificate
        if not np.isfinite(residual).all():
            return found
        best = max(self.best_scale(residual), _LEAST_SCALE)
        most = 2.0 * self.epsilon
        alpha = self.cost * np.clip(2.0 * (residual / best), -most, most)
        return found.with_dual_of(self.certify_dual(alpha, found.primal))

    def certify_dual(self, alpha: Vector, primal: float) -> Certificate:
        """Prove a lower bound from a dual point, made feasible.

        `alpha`: shape (n,). `primal`: upper bound on P*.
        """
        box = self.box
        alpha = np.clip(alpha, box.lower, box.upper)
        if self.free is not None:
            alpha = into_sum(alpha, box.lower, box.upper, 0.0)
        alpha = alpha * self._multiple(alpha)
        if self.free is None:
            return box.certify(alpha=alpha)
        # What it does to the sum makes no entry larger.
        return self.free.certify_dual(alpha, primal)

    def _multiple(self, alpha: Vector) -> float:
        """Return the best factor up to 1 that fulfils the constraint on the squares."""
        used = self.cost > 0.0
        squares = float((alpha[used] / self.cost[used] * alpha[used]).sum())
        squares *= 1.0 + 2.0 * Rounding.summed
        norm = self.box.squared_norm(self.box.combine(alpha))
        along = float((self.box.target * alpha).sum())
        if not (0.0 < along < math.inf and 0.0 < squares < math.inf):
            return 0.0
        room = 2.0 * math.sqrt(self.total / squares) * (1.0 - 8.0 * Rounding.unit)
        return min(1.0, room, along / norm if norm > 0.0 else 1.0)
