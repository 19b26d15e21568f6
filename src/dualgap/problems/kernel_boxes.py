"""Kernel regression and one-class problems, and their certificates.

Both have the same dual form, with a box and a sum constraint:

D(a) = sum_i (p_i a_i - epsilon |a_i|) - 1/2 a'Ka,   lo_i <= a_i <= hi_i,
                                                     sum_i a_i = total
P(a, b) = 1/2 a'Ka + b total
        + sum_i max(0, hi_i (r_i - epsilon), lo_i (r_i + epsilon)),  r = p - Ka - b

The dual variables a are signed: f(x) = sum_i a_i k(x_i, x) + b.

Regression (Vapnik 1995; Smola and Schoelkopf 2004, eqs. 3 and 10): p are the targets,
hi_i = -lo_i = c_i = C sample_weight_i, total = 0, and P = 1/2 ||w||^2 +
sum_i c_i max(0, |y_i - f(x_i)| - epsilon). The bias is not penalised.

Quantile regression (Takeuchi, Le, Sears and Smola, JMLR 7, 2006): the same with
epsilon = 0, hi_i = q c_i, lo_i = (q - 1) c_i, and the pinball loss max(q r, (q - 1) r).

One class (Schoelkopf et al., Neural Computation 13, 2001) on LIBSVM's scale: p = 0,
epsilon = 0, lo = 0, hi_i = c_i = sample_weight_i, total = nu sum_i c_i, b = -rho, and
P = 1/2 ||w||^2 - total rho + sum_i c_i max(0, rho - w.x_i). The w, rho and a of the
paper are these divided by total. The optimum is -1/2 ||w||^2, which is negative.

Simplex: epsilon = 0, lo = 0, hi_i = total = 1. The sum keeps every a_i below 1, and
P - D is then the gap of Frank-Wolfe methods, a'(Ka - p) - min_i (Ka - p)_i.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..certificate import Bounds
from ..checks import check_C, check_costs, check_vector
from ..data.types import MatrixLike
from ..kernels.functions import Kernel
from ..kernels.gram import roundings_of_values
from ..losses import EpsilonInsensitive, OneClassHinge, ResidualLoss, Vector
from .base import ApproximateScores
from .bias import into_sum, weighted_quantile
from .kernel_matrix import SETTINGS, MatrixProblem
from .one_class import (
    check_nu,
    first_rows,
    largest_rho,
    orthogonal_optimum,
    sum_of_duals,
)
from .rounding import Rounding


class BoxProblem(MatrixProblem):
    """Base of the regression and one-class problems; see the module docstring.

    - `linear`: ``p_i`` minus `centre`, shape (n,).
    - `centre`: subtracted from all targets and added to the unpenalised bias.
    - `lower`, `upper`: bounds ``lo_i`` and ``hi_i`` of the dual variables, shape (n,).
    - `cost`: ``c_i``, shape (n,).
    - `y`: signs of the core's variables, all 1.
    - `n`: rows.
    """

    free_bias = True
    two_sums = False
    centre = 0.0
    epsilon = 0.0
    total = 0.0
    loss: ResidualLoss
    cost: Vector
    linear: Vector
    lower: Vector

    def __init__(
        self,
        X: MatrixLike,
        kernel: Kernel | None,
        cache_size: float,
        rows: ArrayLike | None,
    ) -> None:
        super().__init__(X, kernel, cache_size, rows)
        self.y = np.ones(self.n, np.int8)
        self._check_positive()

    def _set_targets(self, y: ArrayLike) -> None:
        y = check_vector("y", y, self.n)
        used = y[self.cost > 0.0]
        self.centre = float(0.5 * used.min() + 0.5 * used.max())
        self.linear = y - self.centre

    @property
    def two_sided(self) -> bool:
        """Whether dual variables may have either sign."""
        return self.total == 0.0

    @property
    def sides(self) -> tuple[float, float]:
        """Upper and lower ends of the box, divided by the cost."""
        return self.loss.above, self.loss.below

    @property
    def upper(self) -> Vector:
        return self.loss.above * self.cost

    @property
    def lowest(self) -> float:
        """Lower bound on P that needs no solution."""
        if self.total == 0.0:
            return 0.0
        # w is a sum of rows with weights that add up to `total`.
        longest = self.total * float(self.lengths.max())
        more = (roundings_of_values(self.gram) + 12.0) * Rounding.unit
        return -0.5 * longest * longest * (1.0 + more) - 4 * Rounding.least

    @functools.cached_property
    def floor(self) -> float:
        """Smallest size of P* in relative gaps."""
        share = self.total / float(self.cost.sum())
        return orthogonal_optimum(share * self.cost, self.gram.diagonal())

    def start(self) -> Vector | None:
        """Return a dual point to start from, or None for 0, which needs no kernel row.

        For one class the first rows are at their upper bounds, as in LIBSVM.
        """
        if self.total == 0.0:
            return None
        return first_rows(self.cost, self.total)

    def coef(self, alpha: Vector) -> tuple[Vector, float]:
        """Return ``a_i``, shape (n,), and the bias."""
        return alpha, self.known(alpha).bias

    def _bias(self, alpha: Vector, scores: Vector) -> float:
        """Return the b with the least P.

        The derivative of P in b is a step function. It rises at each breakpoint by the
        width of a side of the box.
        """
        rest = self.linear - scores
        sides = [(rest - self.epsilon, self.upper)]
        if self.two_sided:
            sides.append((rest + self.epsilon, -self.lower))
        points, weight = (np.concatenate(part) for part in zip(*sides, strict=True))
        used = weight > 0.0
        target = float(self.upper.sum()) - self.total
        return self.centre + weighted_quantile(points[used], weight[used], target)

    def in_doubt(self, near: ApproximateScores) -> NDArray[np.bool_]:
        rest = self.linear - near.scores - (near.bias - self.centre)
        off = SETTINGS.beyond(2.0 * near.error)  # at least the error in `_values`
        above, below = self.loss.value(rest + off), self.loss.value(rest - off)
        return (above != 0.0) | (below != 0.0)

    def _feasible(self, alpha: Vector) -> Vector:
        return into_sum(alpha, self.lower, self.upper, self.total)

    def bounds(
        self, alpha: Vector, scores: Vector, bias: float, s: float = 1.0
    ) -> Bounds:
        with np.errstate(over="ignore", invalid="ignore"):
            primal, more, norm = self._values(alpha, scores, bias)
            dual, less = 0.0, 0.0
            if alpha.any():  # else D is exactly 0
                dual, less = self._below(alpha, norm, primal + more)
            lowest = Bounds.proved(dual=self.lowest)
        return Bounds.proved(primal, more, dual, less).with_dual_of(lowest)

    def _above(self, alpha: Vector, scores: Vector, bias: float) -> tuple[float, float]:
        return self._values(alpha, scores, bias)[:2]

    def _losses(
        self, scores: Vector, offsets: Sequence[float], off: Vector | None = None
    ) -> list[Vector]:
        """Return the losses of each row per cost, at most, for errors up to `off`."""
        rest, value = self.linear - scores - offsets[0], self.loss.value
        if off is None:
            return [value(rest)]
        return [np.maximum(value(rest + off), value(rest - off))]

    def _terms(self, offsets: Sequence[float]) -> tuple[Sequence[Vector], float, float]:
        """Return costs by loss, and the part of P of the offsets with its error."""
        price = offsets[0] * self.total
        return (self.cost,), price, 4 * Rounding.unit * abs(price)

    def _values(
        self, alpha: Vector, scores: Vector, bias: float
    ) -> tuple[float, float, tuple[float, float, float]]:
        return self._values_at(alpha, scores, (bias - self.centre,))

    def _values_at(
        self, alpha: Vector, scores: Vector, offsets: Sequence[float]
    ) -> tuple[float, float, tuple[float, float, float]]:
        """Return P of alpha with these offsets, its error, and its squared norm."""
        unit, most = Rounding.unit, max(map(abs, offsets))
        error = self.rounding_of_scores(alpha) + self._underflow(alpha)
        norm, norm_error, size = self.squared_norm(self.y * alpha, scores, error)
        # The exact scores are scores of the matrix with `shift` on its diagonal.
        off = error + self.shift * np.abs(alpha)
        off += 4 * unit * (np.abs(self.linear) + np.abs(scores) + most + self.epsilon)
        if self.two_sums:
            off += 4 * unit * self._reach(alpha) * self.lengths  # of a division by rho
        off *= Rounding.slack
        losses, far = (self._losses(scores, offsets, d) for d in (None, 2 * off))
        costs, price, price_error = self._terms(offsets)
        pairs = list(zip(costs, losses, far, strict=True))
        loss = sum(float((cost * lost).sum()) for cost, lost, _ in pairs)
        wrong = sum(float((cost * off)[lost > 0.0].sum()) for cost, _, lost in pairs)
        closing = Rounding.summed * (0.5 * size + loss) + price_error
        more = Rounding.slack * (0.5 * norm_error + wrong + closing)
        more += self._lost(alpha, *far)
        return 0.5 * norm + loss + price, more, (norm, norm_error, size)

    def _below(
        self, alpha: Vector, norm: tuple[float, float, float], primal: float
    ) -> tuple[float, float]:
        """Return D and its error, given an upper bound on P* and the squared norm.

        Rounding may leave a remainder ``r = sum_i a_i - total``. It costs at most |r|
        times the size of an optimal bias, as in `BinaryProblem.prove`. There is an
        optimal bias among the points where a loss begins.
        """
        squared, squared_error, size = norm
        signed = self.y * alpha
        terms, reach = self.linear * signed, float(np.abs(alpha).sum())
        dual = float(terms.sum()) - self.epsilon * reach - 0.5 * squared
        less = 0.5 * squared_error + Rounding.summed * (
            0.5 * size + float(np.abs(terms).sum()) + self.epsilon * reach
        )
        left = self._remainder(signed)
        if left > 0.0:
            less += left * self._largest_bias(primal, squared + squared_error, left)
        return dual, Rounding.slack * less + self._lost(alpha)

    def _remainder(self, signed: Vector) -> float:
        """Return how far the sums of the dual variables are from their values."""
        return abs(math.fsum([*signed.tolist(), -self.total]))

    def _largest_bias(self, primal: float, norm: float, off: float) -> float:
        """Return a bound on the size of some optimal bias minus `centre`."""
        widest = float(self.lengths.max())
        if not self.two_sided:
            # Some optimal offsets of a nu-SVC are scores, so they are bounded alike.
            return largest_rho(max(norm, 0.0), off, widest * widest)
        # ||w*||^2 <= 2 P, as the loss is not negative.
        length = math.sqrt(2.0 * max(primal, 0.0))
        return float(np.abs(self.linear).max()) + self.epsilon + widest * length


class KernelRegression(BoxProblem):
    """Support vector regression over a kernel matrix, with an unpenalised bias.

    Parameters
    ----------
    y : array-like of shape (n,)
        Targets, finite numbers.
    epsilon : float, default=0.1
        Half the width of the tube without loss, zero or positive.
    loss : ResidualLoss, optional
        Instead of `epsilon`: a record of :mod:`dualgap.losses` with slope 1, as
        ``Pinball(quantile=0.9)``.
    C : float, default=1.0
        Weight of the loss, which is a sum over the examples.
    """

    kind: ClassVar[str] = "kernel-regression"

    def __init__(
        self,
        X: MatrixLike,
        y: ArrayLike,
        C: float | None = None,
        *,
        kernel: Kernel | None = None,
        epsilon: float = 0.1,
        loss: ResidualLoss | None = None,
        sample_weight: ArrayLike | None = None,
        cache_size: float = 200,
        rows: ArrayLike | None = None,
    ) -> None:
        self.loss = EpsilonInsensitive(epsilon) if loss is None else loss
        super().__init__(X, kernel, cache_size, rows)
        self.C = check_C(C, None, self.n)
        self.epsilon = self.loss.epsilon
        self.cost = check_costs(self.C, sample_weight, self.n)
        self.lower = -self.loss.below * self.cost
        self._set_targets(y)


class KernelOneClass(BoxProblem):
    """One-class SVM over a kernel matrix.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: an upper bound on the share of rows with a loss, and a lower bound on
        the share of support vectors.
    """

    kind: ClassVar[str] = "kernel-one-class"

    def __init__(
        self,
        X: MatrixLike,
        nu: float = 0.5,
        *,
        kernel: Kernel | None = None,
        sample_weight: ArrayLike | None = None,
        cache_size: float = 200,
        rows: ArrayLike | None = None,
    ) -> None:
        self.loss = OneClassHinge()
        super().__init__(X, kernel, cache_size, rows)
        self.nu = check_nu(nu)
        self.cost = check_costs(1.0, sample_weight, self.n)
        self.lower = np.zeros(self.n)
        self.linear = np.zeros(self.n)
        self.total = sum_of_duals(self.nu, self.cost)


class KernelSimplex(BoxProblem):
    """Concave quadratic over the simplex: max ``p'a - 1/2 a'Ka``, a >= 0, sum a = 1.

    Solutions hold a as ``alpha``. The ``dual`` of their certificate is a lower bound on
    the value of a, and ``primal`` an upper bound on the maximum.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d), or Gram
        Rows, or the matrix K (``kernel=Precomputed()``).
    linear : array-like of shape (n,), optional
        The linear term p; 0 by default.
    """

    kind: ClassVar[str] = "kernel-simplex"

    def __init__(
        self,
        X: MatrixLike,
        linear: ArrayLike | None = None,
        *,
        kernel: Kernel | None = None,
        cache_size: float = 200,
        rows: ArrayLike | None = None,
    ) -> None:
        self.loss = OneClassHinge()
        super().__init__(X, kernel, cache_size, rows)
        self.cost, self.lower = np.ones(self.n), np.zeros(self.n)
        self.linear, self.total = np.zeros(self.n), 1.0
        if linear is not None:
            self.linear = check_vector("linear", linear, self.n)

    @property
    def lowest(self) -> float:
        return math.nextafter(super().lowest + float(self.linear.min()), -math.inf)

    def _largest_bias(self, primal: float, norm: float, off: float) -> float:
        # Some optimal b is an entry of p - Ka, and no score is above the largest k_ii.
        widest = float(self.lengths.max())
        return Rounding.slack * (float(np.abs(self.linear).max()) + widest * widest)
