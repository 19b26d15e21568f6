"""Linear support vector regression and its certificate.

The problem of Ho and Lin, JMLR 13, 2012, with l(u) = max(0, u) or its square, and with
the pinball loss of Koenker and Bassett 1978:

P(w) = 1/2 ||w||^2 + sum_i c_i l(|y_i - w.x_i| - epsilon),   c_i = C sample_weight_i
D(a) = sum_i (y_i a_i - epsilon |a_i|) - 1/2 ||v||^2 - 1/2 sum_i delta_i a_i^2,
       v = sum_i a_i x_i,  |a_i| <= U_i

with U_i = c_i, delta_i = 0; for the square U_i = inf, delta_i = 1/(2 c_i). The pinball
loss is q r_i above 0 and (q - 1) r_i below: epsilon = 0, (q - 1) c_i <= a_i <= q c_i.

Huber regression with a scale s >= 0 of its own, for proofs, minimises with
r_i = y_i - w.x_i - b

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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import core
from ..certificate import Bounds, Certificate
from ..checks import check_costs, check_duals, check_vector
from ..data.types import MatrixLike
from ..losses import ResidualLoss, Vector, get_residual_loss
from .base import Claim, LinearHint, Proof, hint_of
from .bias import into_sum
from .binary import BinaryProblem
from .rounding import ROUNDED, Rounding, Values


class RegressionProblem(BinaryProblem):
    """Linear support vector regression: rows, targets, costs and loss.

    Parameters
    ----------
    y : array-like of shape (n,)
        Targets, finite numbers.
    loss : str or ResidualLoss, default="epsilon_insensitive"
        "epsilon_insensitive" or "squared_epsilon_insensitive", both with epsilon 0,
        "quantile", the median, or a record of :mod:`dualgap.losses` with its own
        epsilon or quantile.

    Attributes
    ----------
    target : ndarray of shape (n,), float64
        The targets; ``y`` is 1 everywhere, because the dual variables are signed.

    Raises
    ------
    ValueError, TypeError
        As for :class:`dualgap.problems.BinaryProblem`.
    """

    kind = "regression"
    loss: ResidualLoss  # type: ignore[assignment]
    target: Vector
    _loss_of = staticmethod(get_residual_loss)  # type: ignore[assignment]

    def __init__(
        self,
        X: MatrixLike,
        y: ArrayLike,
        C: float | None = None,
        *,
        loss: str | ResidualLoss = "epsilon_insensitive",
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        n_jobs: int = 1,
        lambda_: float | None = None,
    ) -> None:
        super().__init__(
            X,
            y,
            C,
            loss=loss,  # type: ignore[arg-type]
            sample_weight=sample_weight,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            n_jobs=n_jobs,
            lambda_=lambda_,
        )

    def _set_examples(self, y: ArrayLike | None, weight: ArrayLike | None) -> None:
        self.target = check_vector("y", y, self.n)
        self.y = np.ones(self.n, np.int8)
        self.cost = check_costs(self.C, weight, self.n)
        self.core_loss = core.Loss(self.loss.slope, self.loss.curvature)

    def with_loss(self, loss: ResidualLoss) -> RegressionProblem:
        """Return the problem with another loss of the same slope and curvature."""
        other = copy.copy(self)
        other.loss = loss
        return other

    @property
    def with_targets(self) -> core.RegressionExamples:
        """The core's record of the rows and their targets."""
        loss = self.loss
        sides = core.ResidualLoss(self.core_loss, loss.epsilon, loss.above, loss.below)
        return core.RegressionExamples(self.rows, self.target, self.cost, self.q, sides)

    @property
    def lower(self) -> Vector:
        """Lower bounds of the dual variables, shape (n,)."""
        return self.loss.lower(self.cost)

    def dual(self, alpha: ArrayLike) -> float:
        """Return ``D(alpha)`` of a feasible alpha of shape (n,); one float64 pass."""
        alpha = check_duals(alpha, self.lower, self.upper)
        return self.dual_value(alpha, self.squared_norm(self.weighted_sum(alpha)))

    def dual_value(self, b: Vector, norm: float, scale: float = 1.0) -> float:
        """Return D of ``scale b``, given the squared norm of its w; O(n)."""
        a = scale * b
        linear = self.target * a - self.loss.epsilon * np.abs(a)
        return float((linear - 0.5 * self.delta * a * a).sum()) - 0.5 * norm

    def residuals(self, w: ArrayLike) -> Vector:
        """Return the residuals ``y_i - w.x_i``, shape (n,)."""
        out = np.empty(self.n)
        self._evaluate(check_vector("w", w, self.width), "of w", None, None, out)
        return out

    def _prove(self, claim: Claim) -> Proof:
        """Return a primal and a dual point, with bounds on P and D from one pass.

        The hint is a :class:`~dualgap.problems.base.LinearHint`. w defaults to
        ``w(alpha)``, in `out` of the hint. alpha defaults to the point that w suggests,
        ``a_i = c_i l'(r_i)``. If the claim holds w, alpha is
        scaled by the best factor that the box allows.
        """
        w, alpha, hint = claim.w, claim.alpha, hint_of(claim, LinearHint)
        if alpha is not None:
            alpha = np.clip(alpha, self.lower, self.upper)
        if w is None:
            assert alpha is not None
            w = self.combine(alpha, hint.out)
            values = self._evaluate(w, "of w", alpha, None)
            bounds = self.bounds(alpha, values, self.squared_norm(w))
            return Proof(w, alpha, bounds.certificate)
        kind = "built" if alpha is None else "given"
        alpha = np.empty(self.n) if alpha is None else alpha
        v = np.empty(self.width)
        values = self._evaluate(w, kind, alpha, v)
        norm = self.squared_norm(v)
        curvature = norm + values.diagonal
        scale = 0.0
        if 0.0 < values.sum < math.inf and 0.0 < curvature < math.inf:
            most = np.where(alpha > 0.0, self.upper, -self.lower)
            room = most[alpha != 0.0] / np.abs(alpha[alpha != 0.0])
            scale = min(values.sum / curvature, float(room.min()))
        dual = self._bound(values, norm, alpha, scale)
        alpha = np.clip(scale * alpha, self.lower, self.upper)
        bounds = self._bounds(alpha, values, self.squared_norm(w), *dual)
        return Proof(w, alpha, bounds.certificate)

    def bounds(self, alpha: Vector, values: Values, norm: float) -> Bounds:
        """Return bounds on P and D at ``w = w(alpha)``, from the sums there.

        alpha is in the box, and `norm` is ``||w||^2``.
        """
        dual = self._bound(values, norm, alpha)
        return self._bounds(alpha, values, norm, *dual)

    def settled(self, w: Vector) -> Vector:
        """Return w with a bias that moves the residuals into the tube.

        A row that w fits exactly has a residual of some roundings of its target. No
        other residuals count. Where some are above and some below, their median moves.
        """
        if self.width == self.d:
            return w
        residual, v = np.empty(self.n), np.empty(self.width)
        self._evaluate(w, "precise", np.zeros(self.n), v, residual)
        used = self.cost > 0.0
        beyond = np.maximum(np.abs(residual[used]) - self.loss.epsilon, 0.0)
        beyond = np.copysign(beyond, residual[used])
        low, high = float(beyond.min()), float(beyond.max())
        by = high if low >= 0.0 else low if high <= 0.0 else float(np.median(beyond))
        if not 0.0 < abs(by) <= ROUNDED * float(np.abs(self.target[used]).max()):
            return w
        by += math.copysign(16 * Rounding.unit * self.loss.epsilon, by)
        return np.append(w[:-1], w[-1] + by / self.intercept_scaling)

    def precise_bounds(
        self, w: Vector, alpha: Vector, values: Values, norm: float
    ) -> Bounds:
        drift = self.rounding.precise_drift(values, norm)
        dual = self._bound(values, norm, alpha, drift=drift)
        return self._bounds(alpha, values, self.squared_norm(w), *dual)

    def _bound(
        self,
        values: Values,
        norm: float,
        alpha: Vector,
        scale: float = 1.0,
        drift: float | None = None,
    ) -> tuple[float, float]:
        """Return D of ``scale alpha``, and a bound on its rounding error."""
        if values.used == 0.0:
            return 0.0, 0.0
        rounding = self.rounding
        own = 4 * rounding.unit  # error of entries that are scaled and clipped
        dual = scale * (values.sum - 0.5 * scale * (norm + values.diagonal))
        # The terms of the sum have both signs, so their sizes bound the error.
        size = float(((np.abs(self.target) + self.loss.epsilon) * np.abs(alpha)).sum())
        bent = values._replace(sum=0.0)
        if drift is None:
            drift = rounding.of_sum(values.used, values.reach) + own * values.reach
        error = scale * (scale * rounding.of_dual(bent, norm, drift))
        straight = (rounding.term + rounding.closing + own) * size
        return dual, error + rounding.slack * scale * straight + rounding.underflow

    def _evaluate(
        self,
        w: Vector,
        kind: str,
        alpha: Vector | None,
        v: Vector | None,
        margins: Vector | None = None,
        skipped: NDArray[np.uint8] | None = None,
    ) -> Values:
        assert skipped is None
        found = core.evaluate_residuals(
            self.with_targets, w, kind, alpha, v, margins, self.threads
        )
        return Values.of(found)


class FreeBiasRegression:
    """Linear regression with an unpenalised bias, for proofs only.

    No solver trains it. The objective is P(w, b) = 1/2 ||w||^2 +
    sum_i c_i l(y_i - w.x_i - b). The dual has the constraint sum_i a_i = 0, so the same
    constant may be subtracted from all targets.

    `X`, `y`, `C`, `loss`, `sample_weight`, `n_jobs`: as for :class:`RegressionProblem`.
    `with_bias`: problem whose w has the bias as its last entry. `centred`: problem
    without a bias, whose targets are centred at their median. Its D equals D of this
    problem if the dual variables sum to 0.
    """

    def __init__(
        self, X: MatrixLike, y: Vector, C: float | None, **options: Any
    ) -> None:
        self.with_bias = RegressionProblem(X, y, C, fit_intercept=True, **options)
        self.centred = RegressionProblem(X, y - float(np.median(y)), C, **options)

    def certify(self, w: Vector, bias: float) -> Certificate:
        """Prove bounds from a model and the dual point that it suggests."""
        problem, point = self.with_bias, np.append(w, bias)
        values = problem._evaluate(point, "of w", None, None)
        norm = core.squared_norm(point[:-1])
        error = problem.rounding.of_primal(values, norm)
        # P is a sum of squares and losses, so 0 is a lower bound.
        proof = Bounds.proved(0.5 * norm + values.loss, error, 0.0).certificate
        alpha = problem.prove(Claim(point)).alpha
        return proof.with_dual_of(self.certify_dual(alpha, proof.primal))

    def certify_dual(self, alpha: Vector, primal: float) -> Certificate:
        """Prove a lower bound from a dual point. The certificate has no primal value.

        The point is moved to where its sum is 0 up to rounding. A remainder r of the
        sum costs at most ``|r| |b*|``, as in `BinaryProblem.prove`. There is an
        optimal bias b* among the points where a loss begins or ends.

        `alpha`: shape (n,). `primal`: upper bound on P*.
        """
        problem = self.centred
        alpha = into_sum(alpha, problem.lower, problem.upper, 0.0)
        proof = problem.certify(alpha=alpha)
        # Subtracting the median rounds the targets too.
        off = abs(math.fsum(alpha.tolist())) + Rounding.unit * float(
            np.abs(alpha).sum()
        )
        widest = math.sqrt(float(problem.q.max())) * math.sqrt(2.0 * primal)
        widest += float(np.abs(problem.target).max()) + problem.loss.epsilon
        less = Rounding.slack * off * widest + Rounding.closing * abs(proof.dual)
        return Bounds.proved(dual=proof.dual, dual_error=less).certificate


#: Least scale of a proof: the squares of larger quotients do not underflow.
_LEAST_SCALE = 1e-150


class _LossAtScale(ResidualLoss):
    """Losses ``s h(r / s)`` for a slope of 2 epsilon and a curvature of s / 2."""

    name = "huber"

    def __init__(self, slope: float, curvature: float) -> None:
        super().__init__(0.0)
        object.__setattr__(self, "slope", slope)
        object.__setattr__(self, "curvature", curvature)


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
        same: dict[str, Any] = {
            "loss": box,
            "sample_weight": sample_weight,
            "n_jobs": n_jobs,
        }
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
