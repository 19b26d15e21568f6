"""Kernel problems with nu: classification and regression, and their certificates.

Both have two offsets and, in the signed dual variables a, two sum constraints:

P(a, b+, b-) = 1/2 a'Ka + total (b+ - b-) + sum_i c_i max(0, r_i - b+)
             + sum_i c_i max(0, b- - r_i),   r = p - Ka
D(a) = p'a - 1/2 a'Ka,   the positive a_i sum to total, the negative ones to -total

Classification (Schoelkopf, Smola, Williamson and Bartlett, Neural Computation 12,
2000) on LIBSVM's scale: p = 0, c_i = sample_weight_i, total = nu/2 sum_i c_i. The
first loss is of the positive rows alone, the second of the negative ones, and
0 <= y_i a_i <= c_i. With b+ = b - rho and b- = b + rho,

P = 1/2 ||w||^2 - nu (sum_i c_i) rho + sum_i c_i max(0, rho - y_i (w.x_i + b)).

The model is w/rho with the bias b/rho, the model of the C-SVC with C = 1/rho.

Regression: p are the targets, c_i = C sample_weight_i, total = nu/2 sum_i c_i, every
row has both losses, and |a_i| <= c_i. The sums may be smaller: a row may have both
variables of the usual form, whose difference is a_i. With b+- = b +- epsilon,

P = 1/2 ||w||^2 + nu (sum_i c_i) epsilon + sum_i c_i max(0, |y_i - f(x_i)| - epsilon).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..certificate import Bounds, Certificate
from ..checks import check_C, check_costs, check_labels
from ..data.types import MatrixLike
from ..kernels.functions import Kernel
from ..losses import EpsilonInsensitive, OneClassHinge, Vector
from .base import ApproximateScores
from .bias import into_sum, weighted_quantile
from .kernel_boxes import BoxProblem
from .kernel_matrix import SETTINGS
from .one_class import check_nu, first_rows, orthogonal_optimum
from .rounding import Rounding


class InfeasibleNuError(ValueError):
    """A nu that two classes do not allow."""

    def __init__(self, nu: float, largest: float, pair: str = "") -> None:
        unit = 10.0 ** (math.floor(math.log10(largest)) - 3) if largest > 0.0 else 1.0
        most = math.floor(largest / unit) * unit
        of = f" for {pair}" if pair else ""
        super().__init__(
            f"nu={nu!r} is infeasible{of}: twice the share of the smaller class, by "
            f"weight, is {largest:.4g}; use nu={most:.4g} or less"
        )


class NuProblem(BoxProblem):
    """Base of the problems with nu; see the module docstring.

    - `half`: what either sum is about, ``total`` above.
    - `groups`: costs of the rows in the first and in the second loss.
    """

    two_sums = True
    half: float
    groups: tuple[Vector, Vector]

    def offsets(self, scores: Vector) -> tuple[float, float]:
        """Return ``b+`` and ``b-`` with the least P for these scores."""
        rest = self.linear - scores
        above, below = self.groups
        up, down = above > 0.0, below > 0.0
        return (
            -weighted_quantile(-rest[up], above[up], self.half),
            weighted_quantile(rest[down], below[down], self.half),
        )

    def _bias(self, alpha: Vector, scores: Vector) -> float:
        above, below = self.offsets(scores)
        return self.centre + 0.5 * (above + below)

    def _losses(
        self, scores: Vector, offsets: Sequence[float], off: Vector | None = None
    ) -> list[Vector]:
        rest, (above, below) = self.linear - scores, offsets
        by = 0.0 if off is None else off
        first = np.where(self.groups[0] > 0.0, rest - above + by, 0.0)
        second = np.where(self.groups[1] > 0.0, below - rest + by, 0.0)
        return [np.maximum(first, 0.0), np.maximum(second, 0.0)]

    def in_doubt(self, near: ApproximateScores) -> NDArray[np.bool_]:
        off = SETTINGS.beyond(2.0 * near.error)
        first, second = self._losses(near.scores, self.offsets(near.scores), off)
        return (first > 0.0) | (second > 0.0)

    def _values(
        self, alpha: Vector, scores: Vector, bias: float
    ) -> tuple[float, float, tuple[float, float, float]]:
        # The bias of the model is rounded.
        above, below = self.offsets(scores)
        b, apart = bias - self.centre, 0.5 * (above - below)
        return self._values_at(alpha, scores, (b + apart, b - apart))

    def _terms(self, offsets: Sequence[float]) -> tuple[Sequence[Vector], float, float]:
        error = 8 * Rounding.unit * self.half * max(map(abs, offsets))
        return self.groups, self.half * (offsets[0] - offsets[1]), error

    def _remainder(self, signed: Vector) -> float:
        up = math.fsum([*signed[signed > 0.0].tolist(), -self.half])
        down = math.fsum([*signed[signed < 0.0].tolist(), self.half])
        return abs(up) + abs(down)


class NuClassification(NuProblem):
    """nu-SVC of two classes over a kernel matrix.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, -1 or +1.
    nu : float, default=0.5
        In (0, 1]: an upper bound on the share of rows with a loss, and a lower bound on
        the share of support vectors.
    """

    kind: ClassVar[str] = "kernel-nu"
    two_sided = False

    def __init__(
        self,
        X: MatrixLike,
        y: ArrayLike,
        nu: float = 0.5,
        *,
        kernel: Kernel | None = None,
        sample_weight: ArrayLike | None = None,
        cache_size: float = 200,
        rows: ArrayLike | None = None,
    ) -> None:
        self.loss = OneClassHinge()
        super().__init__(X, kernel, cache_size, rows)
        self.nu, self.y = check_nu(nu), check_labels(y, self.n)
        self.cost = check_costs(1.0, sample_weight, self.n)
        positive = self.y > 0
        self.groups = (
            np.where(positive, self.cost, 0.0), np.where(positive, 0.0, self.cost),
        )  # fmt: skip
        self.lower = np.zeros(self.n)
        self.linear = np.zeros(self.n)
        self.half = half_of(self.nu, *(cost.tolist() for cost in self.groups))
        self.total = 2.0 * self.half

    def _values_at(
        self, alpha: Vector, scores: Vector, offsets: Sequence[float]
    ) -> tuple[float, float, tuple[float, float, float]]:
        # Multiples of a model are the same classifier, and P of the multiple 0 is 0.
        primal, more, norm = super()._values_at(alpha, scores, offsets)
        return (primal, more, norm) if primal + more < 0.0 else (0.0, 0.0, norm)

    @functools.cached_property
    def floor(self) -> float:
        diagonal = self.gram.diagonal()
        return sum(
            orthogonal_optimum(self.half / float(cost.sum()) * cost, diagonal)
            for cost in self.groups
        )

    def start(self) -> Vector:
        """Return the first rows of each class at their upper bounds, as LIBSVM does."""
        first, second = (first_rows(cost, self.half) for cost in self.groups)
        return first + second

    def _feasible(self, alpha: Vector) -> Vector:
        first, second = (
            into_sum(np.where(cost > 0.0, alpha, 0.0), self.lower, cost, self.half)
            for cost in self.groups
        )
        return first + second

    def duals_of(self, coef: Vector) -> Vector:
        """Return the dual variables of a model that was divided by rho."""
        size = np.abs(coef)
        total = float(size.sum())
        factor = self.total / total if total > 0.0 else 0.0
        return np.minimum(factor * size, self.cost)

    def scale(self, scores: Vector) -> float:
        """Return rho, by which LIBSVM divides the model; 1 where it is not positive."""
        above, below = self.offsets(scores)
        rho = 0.5 * (below - above)
        return rho if rho > 0.0 else 1.0

    def certify_model(self, coef: Vector, bias: float) -> Certificate:
        """Prove an upper bound on P of the best multiple of a classifier.

        P(s w, s b, s rho) = 1/2 s^2 ||w||^2 - s g, whose least value, for a gain g of
        the best rho that is positive, is at s = g / ||w||^2.
        """
        scores, used = self.scores(coef * self.y), self.cost > 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            margins = self.y * (scores + bias)
            rho = weighted_quantile(margins[used], self.cost[used], self.total)
            lost = float((self.cost * np.maximum(0.0, rho - margins)).sum())
            gain, norm = self.total * rho - lost, float((coef * scores).sum())
            s = gain / norm if 0.0 < norm < math.inf and 0.0 < gain < math.inf else 0.0
            alpha, at = s * coef * self.y, (s * (bias - rho), s * (bias + rho))
            primal, more, _ = self._values_at(alpha, self.scores(alpha), at)
        return replace(Bounds.proved(primal, more).certificate, floor=self.floor)


class NuRegression(NuProblem):
    """nu-SVR over a kernel matrix.

    Parameters
    ----------
    y : array-like of shape (n,)
        Targets, finite numbers.
    C : float, default=1.0
        Weight of the loss, which is a sum over the examples.
    nu : float, default=0.5
        In (0, 1]: an upper bound on the share of rows outside the tube, and a lower
        bound on the share of support vectors.
    """

    kind: ClassVar[str] = "kernel-nu-regression"
    two_sided = True
    floor = 0.0
    lowest = 0.0

    def __init__(
        self,
        X: MatrixLike,
        y: ArrayLike,
        C: float | None = None,
        nu: float = 0.5,
        *,
        kernel: Kernel | None = None,
        sample_weight: ArrayLike | None = None,
        cache_size: float = 200,
        rows: ArrayLike | None = None,
    ) -> None:
        self.loss = EpsilonInsensitive(0.0)
        super().__init__(X, kernel, cache_size, rows)
        self.C, self.nu = check_C(C, None, self.n), check_nu(nu)
        self.cost = check_costs(self.C, sample_weight, self.n)
        self.groups = self.cost, self.cost
        self.lower = -self.cost
        total = math.fsum(self.cost.tolist())
        self.half = at_most(0.5 * self.nu * total, (0.5 * self.cost).tolist())
        self._set_targets(y)

    def start(self) -> Vector:
        """Return 0: both variables of the first rows are at their upper bounds."""
        return np.zeros(self.n)

    def _feasible(self, alpha: Vector) -> Vector:
        """Return a point whose sums are the same, and at most `half`."""
        alpha = np.clip(alpha, self.lower, self.cost)
        up, down = np.maximum(alpha, 0.0), np.minimum(alpha, 0.0)
        least = min(self.half, float(up.sum()), -float(down.sum()))
        zero = np.zeros(self.n)
        return into_sum(up, zero, up, least) + into_sum(down, down, zero, -least)

    def _remainder(self, signed: Vector) -> float:
        up = math.fsum(signed[signed > 0.0].tolist())
        beyond = max(0.0, math.nextafter(up, math.inf) - self.half)
        return abs(math.fsum(signed.tolist())) + 2.0 * beyond

    def certify_model(self, coef: Vector, bias: float) -> Certificate:
        """Prove an upper bound on P of a model with its best epsilon."""
        scores = self.scores(coef)
        b = bias - self.centre
        size, used = np.abs(self.linear - scores - b), self.cost > 0.0
        within = math.fsum(self.cost.tolist()) - 2.0 * self.half
        epsilon = weighted_quantile(size[used], self.cost[used], within)
        with np.errstate(over="ignore", invalid="ignore"):
            at = b + epsilon, b - epsilon
            primal, more, _ = self._values_at(coef, scores, at)
        return replace(Bounds.proved(primal, more).certificate, floor=self.floor)


def half_of(nu: float, *costs: list[float]) -> float:
    """Return what the dual variables of either class add up to, given its costs."""
    half = 0.5 * nu * math.fsum([*costs[0], *costs[1]])
    most = min(map(math.fsum, costs))
    if half > most * (1.0 + 1e-9):
        raise InfeasibleNuError(nu, largest_nu(*costs))
    return at_most(min(half, most), *costs)


def at_most(half: float, *costs: list[float]) -> float:
    """Return the sum, rounded to at most what each of these costs add up to."""
    while any(math.fsum([*cost, -half]) < 0.0 for cost in costs):
        half = math.nextafter(half, 0.0)
    return half


def largest_nu(positive: list[float], negative: list[float]) -> float:
    """Return the largest nu of two classes with these weights."""
    weights = math.fsum(positive), math.fsum(negative)
    return 2.0 * min(weights) / sum(weights)
