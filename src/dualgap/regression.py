"""Linear regression and the linear one-class SVM, and the way to certify them.

Regression (Ho and Lin, JMLR 13, 2012), with l(u) = max(0, u) or its square:

P(w) = 1/2 ||w||^2 + sum_i c_i l(|y_i - w.x_i| - epsilon),   c_i = C sample_weight_i
D(a) = sum_i (y_i a_i - epsilon |a_i|) - 1/2 ||v||^2 - 1/2 sum_i delta_i a_i^2,
       v = sum_i a_i x_i,  |a_i| <= U_i

with U_i = c_i, delta_i = 0, or for the square U_i = inf, delta_i = 1/(2 c_i).

One class (Schoelkopf et al., Neural Computation 13, 2001) on LIBSVM's and LIBLINEAR's
scale, c_i = sample_weight_i and total = nu sum_i c_i:

P(w, rho) = 1/2 ||w||^2 - total rho + sum_i c_i max(0, rho - w.x_i)
D(a) = -1/2 ||sum_i a_i x_i||^2,   0 <= a_i <= c_i,  sum_i a_i = total
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import core
from .bias import weighted_quantile
from .certificate import Bounds, Certificate
from .losses import OneClassHinge, ResidualLoss, Vector, get_residual_loss
from .problem import Problem, Proof, Rounding, Values, _costs, _vector


class RegressionProblem(Problem):
    """A linear regression: rows, targets, costs and loss. Nothing is copied.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
        As for :class:`dualgap.Problem`.
    y : array-like of shape (n,)
        Targets, finite numbers.
    C : float, default=1.0
        Weight of the loss, the sum over examples.
    loss : str or ResidualLoss, default="epsilon_insensitive"
        "epsilon_insensitive" or "squared_epsilon_insensitive" with epsilon 0, or a
        record of :mod:`dualgap.losses` with its own.
    sample_weight, fit_intercept, intercept_scaling, n_jobs, lambda_
        As for :class:`dualgap.Problem`; the bias is penalised.

    Attributes
    ----------
    target : ndarray of shape (n,), float64
    rows, cost, q, n, d, width, threads
        As of :class:`dualgap.Problem`; ``y`` is 1 everywhere, the dual variables are
        signed.

    Raises
    ------
    ValueError, TypeError
        As :class:`dualgap.Problem`.
    """

    loss: ResidualLoss  # type: ignore[assignment]
    target: Vector
    _loss_of = staticmethod(get_residual_loss)  # type: ignore[assignment]

    def __init__(
        self,
        X: Any,
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

    def _set_examples(self, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self.target = _vector("y", y, self.n)
        self.y = np.ones(self.n, np.int8)
        self.cost = _costs(self.C, sample_weight, self.n)
        self.core_loss = core.Loss(self.loss.slope, self.loss.curvature)

    @property
    def lower(self) -> Vector:
        """The box is symmetric."""
        return -self.upper

    def dual(self, alpha: ArrayLike) -> float:
        """``D(alpha)``, one pass in float64. alpha has shape (n,) and is feasible."""
        alpha = self._feasible(alpha)
        return self.dual_value(alpha, self.squared_norm(self.weighted_sum(alpha)))

    def dual_value(self, b: Vector, norm: float, scale: float = 1.0) -> float:
        """D of ``scale b`` whose w has this squared norm; O(n)."""
        a = scale * b
        linear = self.target * a - self.loss.epsilon * np.abs(a)
        return float((linear - 0.5 * self.delta * a * a).sum()) - 0.5 * norm

    def residuals(self, w: ArrayLike) -> Vector:
        """``y_i - w.x_i``, shape (n,)."""
        out = np.empty(self.n)
        self._evaluate(_vector("w", w, self.width), "of w", None, None, out)
        return out

    def prove(
        self,
        w: Vector | None,
        alpha: Vector | None,
        *,
        out: Vector | None = None,
        **options: Any,
    ) -> Proof:
        """As :meth:`dualgap.Problem.prove`: P and D from one pass, and their points.

        Without w it is ``w(alpha)``, in `out` if given. Without alpha the dual point is
        that of w, ``a_i = c_i l'(|r_i| - epsilon) sign(r_i)``, best scaled.
        """
        if alpha is not None:
            alpha = np.clip(alpha, self.lower, self.upper)
        if w is None:
            assert alpha is not None
            w = self.combine(alpha, out)
            values = self._evaluate(w, "of w", alpha, None)
            norm = self.squared_norm(w)
            return self._proof(
                w, alpha, values, norm, *self._bound(values, norm, alpha)
            )
        kind = "built" if alpha is None else "given"
        alpha = np.empty(self.n) if alpha is None else alpha
        v = np.empty(self.width)
        values = self._evaluate(w, kind, alpha, v)
        norm = self.squared_norm(v)
        curvature = norm + values.diagonal
        scale = 0.0
        if 0.0 < values.sum < math.inf and 0.0 < curvature < math.inf:
            room = self.upper[alpha != 0.0] / np.abs(alpha[alpha != 0.0])
            scale = min(values.sum / curvature, float(room.min()))
        dual = self._bound(values, norm, alpha, scale)
        alpha = np.clip(scale * alpha, self.lower, self.upper)
        return self._proof(w, alpha, values, self.squared_norm(w), *dual)

    def _bound(
        self, values: Values, norm: float, alpha: Vector, scale: float = 1.0
    ) -> tuple[float, float]:
        """D of ``scale alpha``, and what rounding may have added to it."""
        if values.used == 0.0:
            return 0.0, 0.0
        rounding = self.rounding
        own = 4 * rounding.unit  # of entries that are scaled, and back in the box
        dual = scale * (values.sum - 0.5 * scale * (norm + values.diagonal))
        # The terms of the sum have both signs: their sizes count.
        size = float(np.abs(self.target) @ np.abs(alpha))
        size += self.loss.epsilon * float(np.abs(alpha).sum())
        bent = values._replace(sum=0.0)
        drift = rounding.drift(values) + own * values.reach
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
        wake: NDArray[np.uint8] | None = None,
    ) -> Values:
        assert wake is None
        return Values(
            *core.evaluate_residuals(
                self.rows, self.target, self.cost, self.core_loss, self.loss.epsilon,
                self.q, w, kind, alpha, v, margins, self.threads,
            )
        )  # fmt: skip


class FreeBiasRegression:
    """Linear regression with a bias that is not penalised, for proofs alone.

    No solver trains it.

    P(w, b) = 1/2 ||w||^2 + sum_i c_i l(y_i - w.x_i - b). Its dual has the constraint
    sum_i a_i = 0, so the same constant may be subtracted from all targets.

    Parameters
    ----------
    X, y, C, loss, sample_weight, n_jobs
        As for :class:`RegressionProblem`.

    Attributes
    ----------
    with_bias : RegressionProblem
        The bias is the last entry of its w.
    centred : RegressionProblem
        It has no bias, and the median is subtracted from its targets. If the dual
        variables add up to 0, its D is D here.
    """

    def __init__(self, X: Any, y: Vector, C: float | None, **options: Any) -> None:
        self.with_bias = RegressionProblem(X, y, C, fit_intercept=True, **options)
        self.centred = RegressionProblem(X, y - float(np.median(y)), C, **options)

    def certify(self, w: Vector, bias: float) -> Certificate:
        """Prove bounds from a model and the dual point that it suggests."""
        problem, point = self.with_bias, np.append(w, bias)
        values = problem._evaluate(point, "of w", None, None)
        norm = core.squared_norm(point[:-1])
        error = problem.rounding.of_primal(values, norm)
        # 0 is below any sum of squares and losses.
        proof = Bounds.proved(0.5 * norm + values.loss, error, 0.0).certificate
        alpha = problem.prove(point, None).alpha
        return proof.with_dual_of(self.certify_dual(alpha, proof.primal))

    def certify_dual(self, alpha: Vector, primal: float) -> Certificate:
        """Prove a lower bound from a dual point; P stays unknown.

        The point is moved to where its sum is 0 up to rounding. A sum r that rounding
        leaves costs at most ``|r| |b*|``, as in :meth:`dualgap.Problem.prove`. There is
        an optimal bias b* among the points where a loss begins or ends.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
        primal : float
            An upper bound on P*.
        """
        problem = self.centred
        alpha = into_sum(alpha, problem.lower, problem.upper, 0.0)
        proof = problem.certify(alpha=alpha)
        # The targets, less the median, are rounded as well.
        off = abs(math.fsum(alpha.tolist())) + Rounding.unit * float(
            np.abs(alpha).sum()
        )
        widest = math.sqrt(float(problem.q.max())) * math.sqrt(2.0 * primal)
        widest += float(np.abs(problem.target).max()) + problem.loss.epsilon
        less = Rounding.slack * off * widest + Rounding.closing * abs(proof.dual)
        return Bounds.proved(dual=proof.dual, dual_error=less).certificate


class OneClassProblem(Problem):
    """The linear one-class SVM.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
        As for :class:`dualgap.Problem`.
    nu : float, default=0.5
        In (0, 1]: an upper bound on the share of rows with a loss and a lower bound on
        that of support vectors.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, zero or positive.
    n_jobs : int, default=1
        Threads of one pass over the rows.

    Attributes
    ----------
    total : float
        ``nu sum_i c_i``, the sum of the dual variables.

    Raises
    ------
    ValueError, TypeError
        As :class:`dualgap.Problem`, or if nu is out of range.
    """

    loss: ResidualLoss  # type: ignore[assignment]

    def __init__(
        self,
        X: Any,
        nu: float = 0.5,
        *,
        sample_weight: ArrayLike | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.nu = check_nu(nu)
        super().__init__(X, None, sample_weight=sample_weight, n_jobs=n_jobs)
        self.loss = OneClassHinge()
        self.free_bias = True

    def _set_examples(
        self, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> None:
        super()._set_examples(np.ones(self.n, np.int8), sample_weight)
        self.total = sum_of_duals(self.nu, self.cost)
        self.floor = orthogonal_optimum(self.nu * self.cost, self.q)

    def squared_norm(self, w: Vector) -> float:
        """``||w||^2``; rho is no part of w."""
        return core.squared_norm(w)

    def combine(self, alpha: Vector, out: Vector | None = None) -> Vector:
        """``w(alpha) = sum_i alpha_i x_i``, shape (d,); in `out` if given."""
        return self.weighted_sum(alpha, out)

    def dual(self, alpha: ArrayLike) -> float:
        """``D(alpha)``, one pass in float64, of alpha made feasible."""
        return self.prove(None, self._feasible(alpha)).certificate.dual

    def dual_value(self, b: Vector, norm: float, scale: float = 1.0) -> float:
        """D of a point whose w has this squared norm."""
        return -0.5 * scale * scale * norm

    def primal(self, w: ArrayLike) -> float:
        """``P(w, rho)`` with the best rho, one pass in float64."""
        w = _vector("w", w, self.width)
        return self.values(self.margins(w), self.squared_norm(w))[0]

    def start(self) -> Vector:
        """The first rows at their upper ends, as LIBSVM has it."""
        return first_rows(self.cost, self.total)

    def feasible(self, alpha: Vector) -> Vector:
        """A point of the box with the right sum, near alpha."""
        return into_sum(alpha, np.zeros(self.n), self.cost, self.total)

    def values(self, scores: Vector, norm: float) -> tuple[float, float]:
        """P of a w with these scores and this squared norm, and the best rho."""
        rho, loss = self._plane(scores)
        return 0.5 * norm - self.total * rho + loss, rho

    def _plane(self, scores: Vector, rho: float | None = None) -> tuple[float, float]:
        """The best rho, or the one given, and the sum of its losses."""
        if rho is None:
            used = self.cost > 0.0
            target = float(self.cost.sum()) - self.total
            rho = -weighted_quantile(-scores[used], self.cost[used], target)
        return rho, float((self.cost * self.loss.excess(rho - scores)).sum())

    def prove(
        self,
        w: Vector | None,
        alpha: Vector | None,
        *,
        out: Vector | None = None,
        bias: float | None = None,
        **options: Any,
    ) -> Proof:
        """P and D from one pass over the rows. The proof's bias is -rho.

        P is that of the best rho for this w, or of the `bias` that is given.

        alpha is made feasible first; what rounding leaves of ``sum_i a_i - total`` is
        worth as much times ``|rho*|`` at most, see `largest_rho`. Without alpha the
        dual point is that of w: the rows with the lowest scores at their upper ends.
        """
        if alpha is None:
            assert w is not None
            order = np.argsort(self.margins(w), kind="stable")
            alpha = np.empty(self.n)
            alpha[order] = first_rows(self.cost[order], self.total)
        alpha = self.feasible(alpha)
        scores, rounding = np.empty(self.n), self.rounding
        if w is None:
            w = v = self.combine(alpha, out)
            values = self._evaluate(w, "of w", alpha, None, scores)
            dual, less = self._dual(values._replace(sum=0.0), v, off=0.0)
        else:
            v = np.empty(self.width)
            values = self._evaluate(w, "given", alpha, v, scores)
            dual, less = self._dual(values._replace(sum=0.0), v)
        off = Rounding.slack * abs(math.fsum([*alpha.tolist(), -self.total]))
        less += off * largest_rho(2.0 * (less - dual), off, float(self.q.max()))
        norm = self.squared_norm(w)
        rho, loss = self._plane(scores, None if bias is None else -bias)
        wrong = rounding.of_scores(values, self.q)
        wrong[rho - scores + 2.0 * wrong <= 0.0] = 0.0  # rows well above the plane
        error = float((self.cost * wrong).sum()) + Rounding.summed * loss
        # `values` has the losses of another problem.
        values = values._replace(loss=loss, loss_error=error)
        more = rounding.of_primal(values, norm)
        more += rounding.closing * abs(self.total * rho)
        primal = 0.5 * norm - self.total * rho + loss
        bounds = Bounds.proved(primal, more, dual, less)
        return Proof(w, alpha, replace(bounds.certificate, floor=self.floor), -rho)


def check_nu(nu: float) -> float:
    """Nu as a float.

    Raises
    ------
    ValueError
        If it is not in (0, 1].
    """
    if not (isinstance(nu, (int, float, np.number)) and 0.0 < nu <= 1.0):
        raise ValueError(f"nu={nu!r}: give a share of the rows, above 0 and up to 1")
    return float(nu)


def sum_of_duals(nu: float, cost: Vector) -> float:
    """``nu sum_i c_i``, and no more than the box can hold: ``sum_i c_i``."""
    costs = cost.tolist()
    total = nu * math.fsum(costs)
    return math.nextafter(total, 0.0) if math.fsum([*costs, -total]) < 0.0 else total


def largest_rho(norm: float, off: float, widest: float) -> float:
    """No optimal rho of a one-class SVM needs to be larger than this.

    There is one among the scores, so ``|rho*| <= W R`` with W = ||w*|| and R the length
    of the longest row. A point whose sum is off by r, with ``||v||^2 = norm``, has
    ``-W^2/2 = P* >= -||v||^2/2 - |r| W R``, so ``W <= ||v|| + 2 |r| R``.

    Parameters
    ----------
    norm, off, widest : float
        At least ``||v||^2``, ``|r|`` and ``R^2``.
    """
    longest = math.sqrt(widest)
    return Rounding.slack * longest * (math.sqrt(norm) + 2.0 * off * longest)


def orthogonal_optimum(alpha: Vector, q: Vector) -> float:
    """A hundredth of the size of P* if the rows were orthogonal, all with a loss.

    One-class optima below it count as that large: where there is no plane P* is 0, and
    nothing is relative to that, nor to what float64 holds in part only. It is finite:
    beside an infinite size every gap would be 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        size = 0.01 * 0.5 * float((alpha * alpha * q).sum())
    return max(size, sys.float_info.min) if size < math.inf else sys.float_info.min


def first_rows(upper: Vector, total: float) -> Vector:
    """The first rows at their upper ends, until their sum is `total`."""
    return np.clip(total - (np.cumsum(upper) - upper), 0.0, upper)


def into_sum(alpha: Vector, lower: Vector, upper: Vector, total: float) -> Vector:
    """A point of the box with ``sum_i a_i = total`` up to rounding, near alpha.

    What is too much is taken off in proportion to the room that there is: with
    total = 0 and both signs in the box, to 0.
    """
    alpha = np.clip(alpha, lower, upper)
    for _ in range(2):  # the second time for what rounding left
        off = math.fsum(alpha.tolist()) - total
        if off == 0.0:
            break
        end = lower if off > 0.0 else upper
        if total == 0.0:
            end = np.where(alpha * off > 0.0, 0.0, alpha)
        room = alpha - end
        most = float(room.sum())
        if most == 0.0:  # all are there, and rounding is what is left
            break
        alpha = alpha - room * min(1.0, off / most)
    return np.clip(alpha, lower, upper)
