"""Linear one-class SVM and its certificate.

The problem of Schoelkopf et al., Neural Computation 13, 2001, on the scale of LIBSVM
and LIBLINEAR, with c_i = sample_weight_i and total = nu sum_i c_i:

P(w, rho) = 1/2 ||w||^2 - total rho + sum_i c_i max(0, rho - w.x_i)
D(a) = -1/2 ||sum_i a_i x_i||^2,   0 <= a_i <= c_i,  sum_i a_i = total
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from .. import core
from ..certificate import Bounds
from ..checks import check_duals, check_vector, refuse_huge
from ..data.types import MatrixLike
from ..losses import OneClassHinge, ResidualLoss, Vector
from .base import Claim, LinearHint, Proof, hint_of
from .bias import into_sum, weighted_quantile
from .binary import BinaryProblem
from .rounding import Rounding


class OneClassProblem(BinaryProblem):
    """Linear one-class SVM.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: an upper bound on the share of rows with a loss, and a lower bound on
        the share of support vectors.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, zero or positive.

    Attributes
    ----------
    total : float
        ``nu sum_i c_i``, the sum of the dual variables.

    Raises
    ------
    ValueError, TypeError
        As for :class:`dualgap.problems.BinaryProblem`, or if nu is out of range.
    """

    kind = "one-class"
    loss: ResidualLoss  # type: ignore[assignment]

    def __init__(
        self,
        X: MatrixLike,
        nu: float = 0.5,
        *,
        sample_weight: ArrayLike | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.nu = check_nu(nu)
        super().__init__(X, None, sample_weight=sample_weight, n_jobs=n_jobs)
        self.loss = OneClassHinge()
        self.free_bias = True

    def _set_examples(self, y: ArrayLike | None, weight: ArrayLike | None) -> None:
        super()._set_examples(np.ones(self.n, np.int8), weight)
        self.total = sum_of_duals(self.nu, self.cost)
        self._floor = orthogonal_optimum(self.nu * self.cost, self.q)

    @property
    def floor(self) -> float:
        """Smallest size of P* in relative gaps."""
        return self._floor

    def squared_norm(self, w: Vector) -> float:
        """Return ``||w||^2``; rho is not part of w."""
        return core.squared_norm(w)

    def combine(self, alpha: Vector, out: Vector | None = None) -> Vector:
        """Return ``w(alpha) = sum_i alpha_i x_i``, shape (d,), in `out` if given."""
        return self.weighted_sum(alpha, out)

    def dual(self, alpha: ArrayLike) -> float:
        """Return ``D(alpha)`` of alpha made feasible, from one pass in float64."""
        alpha = check_duals(alpha, self.lower, self.upper)
        return self.prove(Claim(alpha=alpha)).certificate.dual

    def dual_value(self, b: Vector, norm: float, scale: float = 1.0) -> float:
        """Return D of `scale b`, given the squared norm of the w of b."""
        return -0.5 * scale * scale * norm

    def primal(self, w: ArrayLike) -> float:
        """Return ``P(w, rho)`` with the best rho, from one pass in float64."""
        w = check_vector("w", w, self.width)
        return self.values(self.margins(w), self.squared_norm(w))[0]

    def start(self) -> Vector:
        """Return LIBSVM's starting point: the first rows at their upper bounds."""
        return first_rows(self.cost, self.total)

    def feasible(self, alpha: Vector) -> Vector:
        """Return a point of the box near alpha with the sum `total`."""
        return into_sum(alpha, np.zeros(self.n), self.cost, self.total)

    def values(self, scores: Vector, norm: float) -> tuple[float, float]:
        """Return P of a w with these scores and squared norm, and the best rho."""
        rho, loss = self._plane(scores)
        return 0.5 * norm - self.total * rho + loss, rho

    def _plane(self, scores: Vector, rho: float | None = None) -> tuple[float, float]:
        """Return the given or else the best rho, and the sum of its losses."""
        if rho is None:
            used = self.cost > 0.0
            target = float(self.cost.sum()) - self.total
            rho = -weighted_quantile(-scores[used], self.cost[used], target)
        return rho, float((self.cost * self.loss.excess(rho - scores)).sum())

    def prove(self, claim: Claim) -> Proof:
        """Return bounds on P and D from one pass over the rows; the bias is -rho.

        P is the value at the claimed bias, or at the best rho for this w. The hint is a
        :class:`~dualgap.problems.base.LinearHint`.

        alpha is made feasible first. Rounding may leave a remainder
        ``r = sum_i a_i - total``, which changes D by at most ``|r| |rho*|``; see
        `largest_rho`. Without alpha the dual point has the rows with the lowest scores
        at their upper bounds.
        """
        w, alpha, hint = claim.w, claim.alpha, hint_of(claim, LinearHint)
        if alpha is None:
            assert w is not None
            order = np.argsort(self.outcomes(w), kind="stable")
            alpha = np.empty(self.n)
            alpha[order] = first_rows(self.cost[order], self.total)
        alpha = self.feasible(alpha)
        scores, rounding = np.empty(self.n), self.rounding
        if w is None:
            w = v = self.combine(alpha, hint.out)
            values = self._evaluate(w, "of w", alpha, None, scores)
            off = 0.0
        else:
            v = np.empty(self.width)
            values = self._evaluate(w, "given", alpha, v, scores)
            off = math.inf
        dual, less = rounding.dual(
            values._replace(sum=0.0), self.squared_norm(v), off=off
        )
        off = Rounding.slack * abs(math.fsum([*alpha.tolist(), -self.total]))
        less += off * largest_rho(2.0 * (less - dual), off, float(self.q.max()))
        norm = self.squared_norm(w)
        rho, loss = self._plane(scores, None if claim.bias is None else -claim.bias)
        wrong = rounding.of_scores(values, self.q)
        wrong[rho - scores + 2.0 * wrong <= 0.0] = 0.0  # rows surely without a loss
        error = float((self.cost * wrong).sum()) + Rounding.summed * loss
        # The core computed the losses of the hinge; replace them.
        values = values._replace(loss=loss, loss_error=error)
        more = rounding.of_primal(values, norm)
        more += rounding.closing * abs(self.total * rho)
        primal = 0.5 * norm - self.total * rho + loss
        bounds = Bounds.proved(primal, more, dual, less)
        return Proof(w, alpha, replace(bounds.certificate, floor=self.floor), -rho)

    _prove_as_given = prove


def check_nu(nu: float) -> float:
    """Return nu as a float."""
    refuse_huge("nu", nu)
    if not (isinstance(nu, (int, float, np.number)) and 0.0 < nu <= 1.0):
        raise ValueError(f"nu={nu!r}: give a share of the rows, above 0 and at most 1")
    return float(nu)


def sum_of_duals(nu: float, cost: Vector) -> float:
    """Return ``nu sum_i c_i``, rounded to at most ``sum_i c_i``."""
    costs = cost.tolist()
    total = nu * math.fsum(costs)
    return math.nextafter(total, 0.0) if math.fsum([*costs, -total]) < 0.0 else total


def largest_rho(norm: float, off: float, widest: float) -> float:
    """Return a bound on some optimal rho of a one-class SVM.

    Some optimal rho is a score, so ``|rho*| <= W R`` with W = ||w*|| and R the length
    of the longest row. A point whose sum is wrong by r, with ``||v||^2 = norm``, has
    ``-W^2/2 = P* >= -||v||^2/2 - |r| W R``, so ``W <= ||v|| + 2 |r| R``.

    `norm`, `off`, `widest`: upper bounds on ``||v||^2``, ``|r|`` and ``R^2``.
    """
    longest = math.sqrt(widest)
    return Rounding.slack * longest * (math.sqrt(norm) + 2.0 * off * longest)


def orthogonal_optimum(alpha: Vector, q: Vector) -> float:
    """Return the floor of the size of a one-class optimum.

    It is a hundredth of the size of P* for orthogonal rows that all have a loss. A
    relative gap treats smaller optima as this large: P* is 0 if no plane separates the
    rows from the origin, and a gap relative to 0 or to a denormal number is
    meaningless. The floor is finite, because any gap relative to infinity would be 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        size = 0.01 * 0.5 * float((alpha * alpha * q).sum())
    return max(size, sys.float_info.min) if size < math.inf else sys.float_info.min


def first_rows(upper: Vector, total: float) -> Vector:
    """Return a point with the first rows at their upper bounds and the sum `total`."""
    return np.clip(total - (np.cumsum(upper) - upper), 0.0, upper)
