"""Exact values of P and D, in integers and fractions, and what contradicts them.

A float64 or float32 number is an integer times a power of two. So for given rows,
costs, coefficients and dual variables every value here is exact, and no tolerance is
needed. Nothing of the package is used. With signed dual variables a_i (of a classifier
y_i alpha_i)

    P(w, b) = 1/2 ||w||^2 + [b^2 / (2 s^2)] + [b total] + sum_i c_i l_i(w.x_i + b)
    D(a)    = sum_i t_i a_i - 1/2 ||sum_i a_i x_i||^2 - [s^2/2 (sum_i a_i)^2]
              - 1/2 sum_i delta_i a_i^2

where the first bracket of each belongs to a penalised bias, the weight of a constant
feature s, and the second one of P to the one-class SVM (b = -rho). In place of rows a
kernel matrix will do; w is then sum_i m_i phi(x_i) for any coefficients m.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from .lemke import maximise

HALF = Fraction(1, 2)
#: More than the relative error of 260 bits.
WRONG = 2.0**-200
UNIT = 2.0**-53
#: More than the distance of a value of an exponential kernel from its rounding to 220
#: bits, with what makes the matrix of them positive definite.
COARSE = Fraction(1, 2**190)
#: An infinite bias: any bound below it is finite.
BEYOND = Fraction(10**400)
#: Bits of the matrix of a dual problem, up to which `faults` finds the optimum.
MOST = 30_000


class Exact:
    """An array of the numbers ``digits * 2**exponent / over``."""

    def __init__(self, digits: Any, exponent: int, over: int = 1) -> None:
        self.digits, self.exponent, self.over = digits, exponent, over

    @classmethod
    def of(cls, values: Any) -> Exact:
        """Floats of any precision, a fraction, or Exact numbers, as they are."""
        if isinstance(values, Exact):
            return values
        if isinstance(values, Fraction):
            return cls(np.asarray(values.numerator, object), 0, values.denominator)
        part, exponents = np.frexp(np.asarray(values, np.float64))
        digits = (part * 2.0**53).astype(np.int64)
        if not digits.any():
            return cls(digits.astype(object), 0)
        least = int(exponents[digits != 0].min())
        shift = np.where(digits != 0, exponents - least, 0)
        shifted = np.asarray(digits.astype(object) << shift.astype(object), object)
        return cls(shifted, least - 53)

    @classmethod
    def vector(cls, values: Sequence[Fraction]) -> Exact:
        """Fractions, over their common denominator."""
        over = math.lcm(*(v.denominator for v in values))
        return cls(np.array([int(v * over) for v in values], object), 0, over)

    def _with(self, digits: Any) -> Exact:
        return Exact(digits, self.exponent, self.over)

    def _aligned(self, other: Any) -> tuple[Any, Any, Exact]:
        """Return the digits of both in the same units, and these."""
        other = Exact.of(other)
        least, a, b = min(self.exponent, other.exponent), self.digits, other.digits
        a, b = a << (self.exponent - least), b << (other.exponent - least)
        over = self.over
        if over != other.over:
            a, b, over = a * other.over, b * over, over * other.over
        return a, b, Exact(1, least, over)

    def __add__(self, other: Any) -> Exact:
        a, b, unit = self._aligned(other)
        return unit._with(a + b)

    def __sub__(self, other: Any) -> Exact:
        a, b, unit = self._aligned(other)
        return unit._with(a - b)

    def _times(self, other: Exact, digits: Any) -> Exact:
        exponent = self.exponent + other.exponent
        return Exact(digits, exponent, self.over * other.over)

    def __mul__(self, other: Any) -> Exact:
        other = Exact.of(other)
        return self._times(other, self.digits * other.digits)

    def __matmul__(self, other: Any) -> Exact:
        other = Exact.of(other)
        return self._times(other, self.digits @ other.digits)

    def __neg__(self) -> Exact:
        return self._with(-self.digits)

    def __abs__(self) -> Exact:
        return self._with(abs(self.digits))

    def __pow__(self, power: int) -> Exact:
        return Exact(self.digits**power, self.exponent * power, self.over**power)

    def __getitem__(self, at: Any) -> Exact:
        return self._with(np.asarray(self.digits[at], object))

    def __len__(self) -> int:
        return len(self.digits)

    @property
    def T(self) -> Exact:
        return self._with(self.digits.T)

    def positive_part(self) -> Exact:
        return self._with(np.where(self.digits > 0, self.digits, 0))

    def above(self, other: Any) -> Any:
        """Return a mask of the places where it is larger."""
        a, b, _ = self._aligned(other)
        return np.asarray(a > b, bool)

    def sum(self) -> Exact:
        return self._with(np.asarray(self.digits.sum(), object))

    def fraction(self) -> Fraction:
        """The only number of an array of one."""
        digits = int(np.asarray(self.digits, object).item())
        if self.exponent >= 0:
            return Fraction(digits << self.exponent, self.over)
        return Fraction(digits, self.over << -self.exponent)

    def fractions(self) -> list[Fraction]:
        """All numbers of a vector."""
        return [self[i].fraction() for i in range(len(self))]


class Rows:
    """Points that are given; a model is w."""

    def __init__(self, X: Any) -> None:
        self.X = Exact.of(X)

    def model(self, w: Exact) -> tuple[Fraction, Exact]:
        """``||w||^2``, and the scores of all points."""
        return (w @ w).fraction(), self.X @ w

    def norm(self, a: Exact) -> Fraction:
        """``||sum_i a_i x_i||^2``."""
        v = a @ self.X
        return (v @ v).fraction()

    def unknown(self, a: Exact) -> tuple[Fraction, Exact] | None:
        """Return bounds on the errors of norm and scores, None if both are exact."""
        return None

    def gram(self) -> Exact:
        """Return the matrix of inner products."""
        return self.X @ self.X.T

    def of_duals(self, a: Exact) -> Exact:
        """Return the model of dual variables."""
        return a @ self.X

    def first(self, n: int) -> Rows:
        return Rows(self.X[:n])

    def seen(self, rows: Any, n: int) -> Exact:
        """Return what a model of the first n points needs of some points."""
        return self.X[rows]


class Kernel(Rows):
    """A kernel matrix in place of points; a model is its coefficients at them.

    Parameters
    ----------
    K : array of shape (n, n)
    shift : float
        To be added to its diagonal.
    wrong : float
        Its entries are within this factor of their size of the exact ones.
    """

    def __init__(self, K: Any, shift: float = 0.0, wrong: float = 0.0) -> None:
        self.K, self.wrong = Exact.of(K), wrong
        if shift:
            self.K = self.K + Exact.of(np.diag(np.full(len(self.K), shift)))

    def model(self, w: Exact) -> tuple[Fraction, Exact]:
        scores = self.K @ w
        return (w @ scores).fraction(), scores

    def norm(self, a: Exact) -> Fraction:
        return self.model(a)[0]

    def unknown(self, a: Exact) -> tuple[Fraction, Exact] | None:
        if not self.wrong:
            return None
        off = abs(self.K) @ abs(a) * self.wrong
        return (abs(a) @ off).fraction(), off

    def gram(self) -> Exact:
        return self.K

    def of_duals(self, a: Exact) -> Exact:
        return a

    def first(self, n: int) -> Kernel:
        return Kernel(self.K[:n, :n], 0.0, self.wrong)

    def seen(self, rows: Any, n: int) -> Exact:
        return self.K[rows][:, :n]

    def rounded(self) -> Kernel:
        """Return a positive definite matrix near that of an exponential kernel."""
        cut = max(0, -220 - self.K.exponent)
        K = Exact(self.K.digits >> cut, self.K.exponent + cut)
        return Kernel(K + Exact(np.diag([1] * len(K)).astype(object), -192))


def semidefinite(K: Exact) -> bool:
    """Whether a symmetric matrix has no eigenvalue below 0, by exact elimination."""
    left, unit = K.digits, 1
    while len(left):
        diagonal = left.diagonal()
        if (diagonal < 0).any() or (left[diagonal == 0] != 0).any():
            return False
        left = left[diagonal > 0][:, diagonal > 0]
        if len(left):
            first, pivot = left[0], left[0, 0]
            left = (pivot * left - np.multiply.outer(first, first))[1:, 1:] // unit
            unit = pivot
    return True


def exponential(X: Any, gamma: float, power: int) -> Kernel:
    """``exp(-gamma sum_k |x_k - z_k|^power)``, to some 60 digits."""
    import mpmath

    rows, n = Exact.of(X), len(X)
    K, exponents = np.zeros((n, n), object), np.zeros((n, n), np.int64)
    with mpmath.workprec(260):
        for i, j in combinations_with_replacement(range(n), 2):
            far = (abs(rows[i] - rows[j]) ** power).sum() * gamma
            # Below 2^-5000 a value is 0, which is far beyond what float64 knows.
            near = not far.digits or far.digits.bit_length() + far.exponent < 12
            value = mpmath.exp(-mpmath.ldexp(far.digits, far.exponent)) if near else 0
            if near and value > mpmath.ldexp(1, -5000):
                _, digits, exponents[i, j], _ = value._mpf_
                exponents[j, i] = exponents[i, j]
                K[i, j] = K[j, i] = int(digits)
    least = int(exponents.min())
    return Kernel(Exact(K << (exponents - least).astype(object), least), 0, WRONG)


def points_of(kernel: Any, X: Any) -> Rows:
    """Return rows as one of dualgap's kernels sees them."""
    if kernel.name == "linear":
        return Rows(X)
    if kernel.name == "poly":
        return Kernel((Rows(X).gram() * kernel.gamma + kernel.coef0) ** kernel.degree)
    return exponential(X, kernel.gamma, 2 if kernel.name == "rbf" else 1)


class ManyExponentials(Rows):
    """Exponential kernels over many rows, in float64 with bounds on the rounding.

    A difference of coordinates is off by one rounding of itself, so the distance by
    d + 3, and there is no other cancellation. exp is taken to be within 8 units of the
    last place. Sums are added up in halves.
    """

    def __init__(self, X: Any, gamma: float, power: int) -> None:
        self.points, self.gamma, self.power = np.asarray(X, np.float64), gamma, power
        self._last: tuple[bytes, Any, Any] = b"", None, None

    def _scores(self, a: Exact) -> tuple[Any, Any]:
        """Scores, and how far they may be off."""
        coef = np.array([float(a[i].fraction()) for i in range(len(a))])
        if self._last[0] != coef.tobytes():
            scores, off = np.empty(len(coef)), np.empty(len(coef))
            step = 2_000_000 // max(np.count_nonzero(coef), 1) + 1
            for i in range(0, len(coef), step):
                part = slice(i, i + step)
                scores[part], off[part] = self._some(self.points[part], coef)
            self._last = coef.tobytes(), scores, off
        return self._last[1:]

    def _some(self, rows: Any, coef: Any) -> tuple[Any, Any]:
        used = np.flatnonzero(coef)
        far = np.zeros((len(rows), len(used)))
        for column in range(rows.shape[1]):
            far += (
                np.abs(rows[:, column, None] - self.points[used, column]) ** self.power
            )
        far *= self.gamma
        terms = np.exp(-far) * coef[used]
        halvings = math.ceil(math.log2(max(len(used), 2)))
        wrong = (rows.shape[1] + 4) * np.minimum(far, 800.0) + halvings + 11.0
        off = 1.1 * UNIT * (np.abs(terms) * wrong).sum(axis=1)
        while terms.shape[1] > 1:
            half = -(-terms.shape[1] // 2)
            rest = terms[:, half:].copy()
            terms = terms[:, :half].copy()
            terms[:, : rest.shape[1]] += rest
        return terms.sum(axis=1), off + 2.0**-1000 * np.abs(coef).sum()

    def model(self, w: Exact) -> tuple[Fraction, Exact]:
        scores = Exact.of(self._scores(w)[0])
        return (w @ scores).fraction(), scores

    def norm(self, a: Exact) -> Fraction:
        return self.model(a)[0]

    def unknown(self, a: Exact) -> tuple[Fraction, Exact] | None:
        off = Exact.of(self._scores(a)[1])
        return (abs(a) @ off).fraction(), off


class Optimum(NamedTuple):
    """All optima of a problem, which differ in the bias and in dual variables.

    Attributes
    ----------
    value, off : Fraction
        P*, and how far it may be off; that is 0 unless kernel values are rounded.
    model, duals : Exact
        w or the coefficients, and dual variables that are optimal.
    bias : Fraction
        The one that Lemke's method found.
    biases : tuple of Fraction
        The least and the largest one.
    apart : Fraction
        How far decisions may be off, at points whose image has length 1.
    """

    value: Fraction
    off: Fraction
    model: Any
    duals: Any
    bias: Any = Fraction(0)
    biases: tuple[Any, Any] = (Fraction(0), Fraction(0))
    apart: Fraction = Fraction(0)

    def decisions(self, Z: Exact) -> list[tuple[Any, Any]]:
        """Return the least and the largest optimal decision at each row of Z.

        These are points, or for kernels the kernel values of points with all rows.
        """
        least, most = self.biases
        return [
            (v - self.apart + least, v + self.apart + most)
            for v in (Z @ self.model).fractions()
        ]


TWO_SIDED = ("epsilon_insensitive", "squared_epsilon_insensitive", "quantile")


@dataclass
class SVM:
    """One problem: points, losses, and what the bias is.

    Attributes
    ----------
    points : Rows or Kernel
    loss : str
        "hinge", "squared_hinge", "smoothed_hinge", "epsilon_insensitive",
        "squared_epsilon_insensitive", "quantile" or "one_class".
    target : array of shape (n,)
        Labels -1 and +1, or targets; of one class the linear term of D.
    cost : array of shape (n,)
    parameter : float
        gamma of the smoothed hinge, epsilon of a regression, or its quantile.
    bias : str
        "none", "penalised" or "free".
    scaling : float
        Of a penalised bias.
    total : float
        What the dual variables of one class add up to.
    """

    points: Rows
    loss: str
    target: Any
    cost: Any
    parameter: float = 0.0
    bias: str = "none"
    scaling: float = 1.0
    total: float = 0.0

    def __post_init__(self) -> None:
        self.signed = self.loss.endswith("hinge")
        self.squared = self.loss.startswith("squared")
        self.weighs = np.asarray(self.cost) > 0.0
        # Costs of positive and of negative residuals are rounded, as they are defined.
        q = self.parameter if self.loss == "quantile" else None
        cost = np.asarray(self.cost, np.float64)
        self.above = Exact.of(cost if q is None else q * cost)
        self.below = Exact.of(cost if q is None else (1.0 - q) * cost)
        self.epsilon = self.parameter if self.loss.endswith("insensitive") else 0.0
        self.two_sided = self.loss in TWO_SIDED
        self.cost = Exact.of(self.cost)
        self.target = Exact.of(self.target)
        bend = {"squared": HALF, "smoothed": Fraction(self.parameter)}
        self._bend = bend.get(self.loss.split("_")[0], Fraction(0))

    # ------------------------------------------------------------------- primal

    def residuals(self, scores: Exact) -> Exact:
        """Return the residuals; the losses are functions of their positive parts."""
        if self.signed:
            return Exact.of(1.0) - self.target * scores
        if self.loss in ("one_class", "quantile"):
            return self.target - scores
        return abs(self.target - scores) - self.parameter

    def losses(self, residuals: Exact) -> Fraction:
        u = residuals.positive_part()
        if self.loss == "quantile":
            lost = self.above @ u + self.below @ (-residuals).positive_part()
            return lost.fraction()
        if self.squared:
            u = u * u
        if self.loss != "smoothed_hinge":
            return (self.cost @ u).fraction()
        gamma = Exact.of(self.parameter)
        far, square, line = u.above(gamma), u * u, u * gamma * 2.0 - gamma * gamma
        a, b, unit = square._aligned(line)
        rounded = unit._with(np.where(far, b, a))
        return (self.cost @ rounded).fraction() / (2 * Fraction(self.parameter))

    def rise(self, residuals: Exact, off: Any) -> Fraction:
        """Return the most that losses rise where residuals move by at most `off`."""
        if self.loss == "quantile":
            return (self.cost @ (residuals - residuals + off)).fraction()
        # Losses are convex: they rise by more than they would fall.
        return self.losses(residuals + off) - self.losses(residuals)

    def primal(self, model: Any, bias: float = 0.0) -> Fraction:
        norm, scores = self.points.model(Exact.of(model))
        value = norm / 2 + Fraction(self.total) * Fraction(bias)
        if self.bias == "penalised":
            value += (Fraction(bias) / Fraction(self.scaling)) ** 2 / 2
        return value + self.losses(self.residuals(scores + bias))

    def unknown(self, model: Any, bias: float = 0.0) -> Fraction:
        """Return a bound on the error of :meth:`primal`, 0 if all is rational."""
        a = Exact.of(model)
        found = self.points.unknown(a)
        if found is None:
            return Fraction(0)
        norm, off = found
        near = self.residuals(self.points.model(a)[1] + bias)
        return norm / 2 + self.rise(near, off)

    def unknown_dual(self, duals: Any) -> Fraction:
        """Return a bound on the error of :meth:`dual`."""
        found = self.points.unknown(Exact.of(duals))
        return Fraction(0) if found is None else found[0] / 2

    # --------------------------------------------------------------------- dual

    def dual(self, duals: Any) -> Fraction:
        a = Exact.of(duals)
        value = -self.points.norm(a) / 2
        if self.bias == "penalised":
            value -= (Fraction(self.scaling) * a.sum().fraction()) ** 2 / 2
        value += (self.target @ a).fraction()
        if not self.signed:
            value -= Fraction(self.epsilon) * abs(a).sum().fraction()
        if self._bend:
            value -= self._bend * self._over_cost(a) / 2
        return value

    def _over_cost(self, a: Exact) -> Fraction:
        """``sum_i a_i^2 / c_i`` of the rows that weigh."""
        by_cost: dict[int, int] = {}
        for c, square in zip(self.cost.digits, (a * a).digits, strict=True):
            if c:
                by_cost[c] = by_cost.get(c, 0) + square
        unit = Exact(1, 2 * a.exponent - self.cost.exponent, a.over**2).fraction()
        return sum((Fraction(s, c) for c, s in by_cost.items()), Fraction(0)) * unit

    def in_box(self, duals: Any) -> bool:
        a = Exact.of(duals)
        side = self.target * a if self.signed else a
        if (self.signed or self.loss == "one_class") and (side.digits < 0).any():
            return False
        if self.squared:
            return not (a.digits[~self.weighs] != 0).any()
        return not (a.above(self.above).any() or (-a).above(self.below).any())

    def feasible(self, duals: Any) -> Exact | None:
        """Return duals with the sum of a free bias, or None if the box has none."""
        a = Exact.of(duals)
        if self.bias != "free":
            return a
        total, cost, unit = Exact.of(self.total)._aligned(self.cost)
        least = min(unit.exponent, a.exponent)
        digits = (a.digits << (a.exponent - least)).tolist()
        upper = (cost << (unit.exponent - least)).tolist()
        off = sum(digits) - (int(total) << (unit.exponent - least))
        for i in sorted(range(len(digits)), key=lambda i: -abs(digits[i])):
            if off > 0:  # take from what is positive
                move = -min(off, max(digits[i], 0))
            elif self.loss == "one_class":
                move = min(-off, upper[i] - digits[i])
            else:
                move = min(-off, max(-digits[i], 0))
            digits[i] += move
            off += move
        return None if off else Exact(np.array(digits, object), least)

    # ------------------------------------------------------------------ optimum

    @cached_property
    def small(self) -> bool:
        """Whether the optimum is found in a moment."""
        many = int(self.weighs.sum()) * (2 if self.two_sided else 1)
        if many * many > MOST or isinstance(self.points, ManyExponentials):
            return False
        wrong = getattr(self.points, "wrong", 0.0)
        K = self.points.rounded().K if wrong else self.points.gram()
        return many * many * max(int(v).bit_length() for v in K.digits.flat) <= MOST

    @cached_property
    def optimum(self) -> Optimum:
        """The optimum, by Lemke's method."""
        if isinstance(self.points, Kernel) and self.points.wrong:
            return self._near(self.points.rounded())
        K, used = self.points.gram(), np.flatnonzero(self.weighs)
        assert semidefinite(K[np.ix_(used, used)]), "the kernel matrix is indefinite"
        if self.bias == "penalised":
            K = K + Exact.of(self.scaling) ** 2
        target, cost = self.target.fractions(), self.cost.fractions()
        # Each variable is the positive or the negative part of a dual variable.
        rows, signs, epsilon = used, np.ones(len(used), int), Fraction(self.epsilon)
        if self.signed:
            signs, epsilon = np.array([int(target[i]) for i in used]), Fraction(0)
        elif self.loss != "one_class":
            rows, signs = np.tile(used, 2), np.concatenate([signs, -signs])
        p = [s * target[i] - epsilon for i, s in zip(rows, signs.tolist(), strict=True)]
        Q = np.diag([self._bend / cost[i] for i in rows])
        for k, i in enumerate(rows):
            for m, j in enumerate(rows):
                Q[k, m] += int(signs[k] * signs[m]) * K[i, j].fraction()
        sides = {1: self.above.fractions(), -1: self.below.fractions()}
        of_sign = [1] * len(rows) if self.signed else signs.tolist()
        most = [([k], sides[of_sign[k]][i]) for k, i in enumerate(rows)]
        limits = [] if self.squared else most
        equation = (signs.tolist(), Fraction(self.total))
        x, bias = maximise(Q, p, limits, equation if self.bias == "free" else None)
        a = [Fraction(0)] * len(target)
        for i, s, v in zip(rows, signs.tolist(), x, strict=True):
            a[i] += s * v
        if self.bias == "penalised":
            bias = sum(a, Fraction(0)) * Fraction(self.scaling) ** 2
        duals, biases = Exact.vector(a), (bias, bias)
        model, value = self.points.of_duals(duals), self.dual(duals)
        assert self.in_box(duals), "the optimum is outside its box"
        assert self.primal(model, bias) == value, "P* is not D*"
        if self.bias == "free":
            assert sum(a) == Fraction(self.total)
            biases = self._biases(self.points.model(model)[1], bias)
        return Optimum(value, Fraction(0), model, duals, bias, biases)

    def _near(self, points: Kernel) -> Optimum:
        """Return the optimum for a matrix near this one, and how far this one's is."""
        other = copy.copy(self)
        other.points = points
        found = other.optimum
        size = abs(found.duals).sum().fraction()
        near = self.residuals(points.model(found.model)[1] + found.bias)
        off = size * size * COARSE
        off += self.rise(near, size * COARSE)
        # P is strongly convex: 1/2 ||w - w*||^2 is at most P - P*. A free bias moves as
        # far as scores do.
        far = Fraction(2.0 * math.sqrt(off * (1 + Fraction(self.scaling) ** 2)))
        return found._replace(off=off, apart=4 * (far + size * COARSE))

    def _biases(self, scores: Exact, best: Fraction) -> tuple[Any, Any]:
        """Return the least and the largest bias that is as good as the best."""
        width = Fraction(self.parameter)
        shifts = [width, -width] if self.loss.endswith("insensitive") else [Fraction(0)]
        if self.loss == "smoothed_hinge":
            shifts = [0, width]  # 1 - u at the ends of the parabola
        kinks = []
        for i in np.flatnonzero(self.weighs):
            t, f = self.target[i].fraction(), scores[i].fraction()
            kinks += [t * (1 - u) - f if self.signed else t - u - f for u in shifts]
        if not kinks:
            return -BEYOND, BEYOND

        def lost(b: Fraction) -> Fraction:
            value = self.losses(self.residuals(scores + b))
            return value + b * Fraction(self.total)

        least = lost(best)
        optimal = [best, *(b for b in kinks if lost(b) == least)]
        low, high = min(optimal), max(optimal)
        # Beyond all kinks the loss is a line or a parabola.
        below = lost(min(kinks) - 1) == least == lost(min(kinks))
        above = lost(max(kinks) + 1) == least == lost(max(kinks))
        return -BEYOND if below else low, BEYOND if above else high


class CrammerSinger:
    """All classes in one problem; a model is (W, biases), dual variables a table.

    P(W) = 1/2 sum_m ||w_m||^2 + sum_i c_i max_m (w_m.x_i - w_{y_i}.x_i + [m != y_i])
    D(b) = sum_im b_im - 1/2 sum_m ||v_m||^2,  b_im >= 0 for m != y_i, at most c_i
           together,  v_m = sum_i ([m = y_i] sum_k b_ik - b_im) x_i
    """

    bias = "none"

    def __init__(self, X: Any, codes: Any, cost: Any, constant: float) -> None:
        X = np.column_stack([X, np.full(len(X), constant)]) if constant else X
        self.rows = [[Fraction(v) for v in row] for row in np.asarray(X, float)]
        self.codes = [int(k) for k in codes]
        self.classes = range(max(self.codes) + 1)
        self.cost = [Fraction(c) for c in cost]
        self.constant = constant

    def primal(self, W: Any, biases: Any) -> Fraction:
        table = [[Fraction(v) for v in w] for w in W]
        if self.constant:
            for w, b in zip(table, biases, strict=True):
                w.append(Fraction(b) / Fraction(self.constant))
        value = sum((_dot(w, w) for w in table), Fraction(0)) / 2
        for x, y, c in zip(self.rows, self.codes, self.cost, strict=True):
            scores = [_dot(w, x) for w in table]
            value += c * max(s - scores[y] + (m != y) for m, s in enumerate(scores))
        return value

    def unknown(self, *model: Any) -> Fraction:
        return Fraction(0)

    unknown_dual = unknown

    def feasible(self, duals: Any) -> Any:
        return duals

    def in_box(self, duals: Any) -> bool:
        """The signs; sums are made to fit in `dual`."""
        for row, y in zip(np.asarray(duals), self.codes, strict=True):
            if any(a > 0 if m != y else a < 0 for m, a in enumerate(row)):
                return False
        return True

    def _sums(self, duals: Any) -> tuple[Fraction, list[list[Fraction]]]:
        """Return the linear part of D and the v_m, of duals scaled into their box."""
        value, V = Fraction(0), [[Fraction(0)] * len(self.rows[0])] * len(self.classes)
        for x, y, c, row in zip(self.rows, self.codes, self.cost, duals, strict=True):
            b = [Fraction(0) if m == y else -Fraction(a) for m, a in enumerate(row)]
            total = sum(b, Fraction(0))
            if total > c:
                b, total = [v * c / total for v in b], c
            value += total
            for m, v in enumerate(V):
                a = total if m == y else -b[m]
                if a:
                    V[m] = [p + a * t for p, t in zip(v, x, strict=True)]
        return value, V

    def dual(self, duals: Any) -> Fraction:
        """D of the others' duals, scaled down where they are more than c_i."""
        value, V = self._sums(duals)
        return value - sum((_dot(v, v) for v in V), Fraction(0)) / 2

    @property
    def small(self) -> bool:
        many = len(self.rows) * (len(self.classes) - 1)
        bits = [v.as_integer_ratio() for row in self.rows for v in row]
        size = max(a.bit_length() + b.bit_length() for a, b in bits)
        return many * many * 2 * size <= MOST

    @cached_property
    def optimum(self) -> Optimum:
        """The optimum, whose model is (W, biases)."""
        others = [
            (i, m) for i, y in enumerate(self.codes) for m in self.classes if m != y
        ]
        Q = np.array([[self._product(a, b) for a in others] for b in others], object)
        limits = [
            ([k for k, (j, _) in enumerate(others) if j == i], c)
            for i, c in enumerate(self.cost)
        ]
        x, _ = maximise(Q, [Fraction(1)] * len(others), limits)
        duals = [[Fraction(0)] * len(self.classes) for _ in self.rows]
        for (i, m), v in zip(others, x, strict=True):
            duals[i][m], duals[i][self.codes[i]] = -v, duals[i][self.codes[i]] + v
        W, biases = self._sums(duals)[1], [Fraction(0)] * len(self.classes)
        if self.constant:
            biases = [Fraction(self.constant) * w.pop() for w in W]
        value = self.dual(duals)
        assert self.in_box(duals), "the optimum is outside its box"
        assert self.primal(W, biases) == value, "P* is not D*"
        return Optimum(value, Fraction(0), (W, biases), duals)

    def _product(self, one: tuple[int, int], other: tuple[int, int]) -> Fraction:
        """Return an entry of the matrix of D, of two rows with classes not theirs."""
        (i, m), (j, k) = one, other
        y, z = self.codes[i], self.codes[j]
        sign = (y == z) - (y == k) - (m == z) + (m == k)
        return sign * _dot(self.rows[i], self.rows[j]) if sign else Fraction(0)


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * z for x, z in zip(a, b, strict=True)), Fraction(0))


# ----------------------------------------------------------------------------- claims


class Claim(NamedTuple):
    """A claim about a problem, and the points that the claim is about."""

    what: str
    #: None: nothing was said, but the points bound P*.
    certificate: Any = None
    #: Coefficients and bias. None: not told; P is not compared.
    model: tuple[Any, Any] | None = None
    #: Signed. None: not told.
    duals: Any = None


class Statement(NamedTuple):
    """A statement about all optima."""

    what: str
    #: How far off it is, as in `Fault`; 0 if it holds.
    off: float


def holds(what: str, true: Any) -> Statement:
    return Statement(what, 0.0 if true else math.inf)


def enclosed(
    what: str, lower: Any, upper: Any, true: Sequence[tuple[Any, Any]]
) -> list[Statement]:
    """Compare bounds with the least and the largest value of all optima."""
    pairs = zip(np.ravel(lower).tolist(), np.ravel(upper).tolist(), true, strict=True)
    return [
        Statement(f"{what} {low!r} to {high!r}", _outside(low, high, *inside))
        for low, high, inside in pairs
    ]


def _outside(low: float, high: float, least: Any, most: Any) -> float:
    """Return how far values are outside bounds, relative to them; 0 only if within."""
    if low <= least and most <= high:  # exactly, as these are fractions
        return 0.0
    if not (low < math.inf and high > -math.inf):  # or not numbers
        return math.inf
    size = max(abs(least), abs(most)) or 1
    below = Fraction(low) - least if math.isfinite(low) else 0
    above = most - Fraction(high) if math.isfinite(high) else 0
    # The smallest float in place of 0: a bound that is off by less is false too.
    return max(float(min(max(below, above) / size, Fraction(10**300))), 5e-324)


class Fault(NamedTuple):
    #: Which one.
    claim: int
    what: str
    #: How far off, relative to P; infinite where that says nothing.
    size: float


def finite(claim: Claim) -> bool:
    parts = [*(claim.model or ()), *([] if claim.duals is None else [claim.duals])]
    return all(bool(np.isfinite(part).all()) for part in parts)


def faults(problem: Any, claims: Sequence[Claim | Statement]) -> Iterator[Fault]:
    """Yield every false claim, with all claims seen together."""
    lower = upper = None
    if problem is not None and problem.small:
        best = problem.optimum
        lower, upper = best.value - best.off, best.value + best.off
    known: list[tuple[int, Claim, Fraction | None, Fraction]] = []
    for k, claim in enumerate(claims):
        if isinstance(claim, Statement):
            if claim.off != 0.0:
                yield Fault(k, claim.what, claim.off)
            continue
        if not finite(claim):
            # Out of the range of float64 nothing may be claimed.
            claim = claim._replace(model=None, duals=None)
            if claim.certificate is not None and claim.certificate.primal < math.inf:
                yield Fault(k, f"{claim.what}: points that are not finite", math.inf)
        primal, loose = None, Fraction(0)
        if claim.model is not None:
            primal, loose = problem.primal(*claim.model), problem.unknown(*claim.model)
            above = primal + loose
            upper = above if upper is None else min(upper, above)
        if claim.duals is not None:
            if not problem.in_box(claim.duals):
                yield Fault(
                    k, f"{claim.what}: dual variables outside the box", math.inf
                )
                claim = claim._replace(duals=None)
            else:
                point = problem.feasible(claim.duals)
                if point is not None:
                    dual = problem.dual(point) - problem.unknown_dual(point)
                    lower = dual if lower is None else max(lower, dual)
        known.append((k, claim, primal, loose))
    for k, claim, primal, loose in known:
        if claim.certificate is None:
            continue
        size = next((abs(p) for p in (primal, upper, lower) if p), Fraction(1))
        bounds = problem, claim, primal, loose, lower, upper
        for what, off in _contradictions(*bounds):
            relative = math.inf if off is None else float(min(off / size, 1e300))
            yield Fault(k, f"{claim.what}: {what}", relative)


def _contradictions(
    problem: Any,
    claim: Claim,
    primal: Fraction | None,
    loose: Fraction,
    lower: Fraction | None,
    upper: Fraction | None,
) -> Iterator[tuple[str, Fraction | None]]:
    certificate = claim.certificate
    above, below = certificate.primal, certificate.dual
    if math.isnan(above) or math.isnan(below) or math.isnan(certificate.relative_gap):
        yield f"not a number in [{below}, {above}]", None
        return
    if above < math.inf:
        if primal is not None and primal - loose > Fraction(above):
            off = primal - loose - Fraction(above)
            yield f"P is {float(off):.2e} above {above!r}", off
        if lower is not None and Fraction(above) < lower:
            yield f"{above!r} is below P*", lower - Fraction(above)
    if below > -math.inf:
        if upper is not None and Fraction(below) > upper:
            yield f"{below!r} is above P*", Fraction(below) - upper
        if claim.duals is not None and problem.bias != "free":
            off = Fraction(below) - problem.dual(claim.duals)
            if off > problem.unknown_dual(claim.duals):
                yield f"D is {float(off):.2e} below {below!r}", off
    if not certificate.certified:
        return
    if not certificate.relative_gap <= certificate.tol or certificate.floor == math.inf:
        yield "certified without a gap to show for it", None
    elif primal is not None and upper is not None:
        # What `certified` means to who reads it, the rounding of the quotient aside.
        size = max(upper, -(lower or 0), Fraction(certificate.floor))
        allowed = Fraction(certificate.tol) * (1 + Fraction(1, 2**50)) * size
        if primal - upper > allowed + 2 * loose:
            yield "certified, and further from the optimum than tol", primal - upper
