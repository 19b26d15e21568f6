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

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

HALF = Fraction(1, 2)
#: More than the relative error of 260 bits.
WRONG = 2.0**-200
UNIT = 2.0**-53


class Exact:
    """An array of the numbers ``digits * 2**exponent``."""

    def __init__(self, digits: Any, exponent: int) -> None:
        self.digits, self.exponent = digits, exponent

    @classmethod
    def of(cls, values: Any) -> Exact:
        """Floats of any precision, or Exact numbers, as they are."""
        if isinstance(values, Exact):
            return values
        part, exponents = np.frexp(np.asarray(values, np.float64))
        digits = (part * 2.0**53).astype(np.int64)
        if not digits.any():
            return cls(digits.astype(object), 0)
        least = int(exponents[digits != 0].min())
        shift = np.where(digits != 0, exponents - least, 0)
        shifted = np.asarray(digits.astype(object) << shift.astype(object), object)
        return cls(shifted, least - 53)

    def _aligned(self, other: Any) -> tuple[Any, Any, int]:
        other = Exact.of(other)
        least = min(self.exponent, other.exponent)
        return (
            self.digits << (self.exponent - least),
            other.digits << (other.exponent - least),
            least,
        )

    def __add__(self, other: Any) -> Exact:
        a, b, exponent = self._aligned(other)
        return Exact(a + b, exponent)

    def __sub__(self, other: Any) -> Exact:
        a, b, exponent = self._aligned(other)
        return Exact(a - b, exponent)

    def __mul__(self, other: Any) -> Exact:
        other = Exact.of(other)
        return Exact(self.digits * other.digits, self.exponent + other.exponent)

    def __matmul__(self, other: Any) -> Exact:
        other = Exact.of(other)
        return Exact(self.digits @ other.digits, self.exponent + other.exponent)

    def __neg__(self) -> Exact:
        return Exact(-self.digits, self.exponent)

    def __abs__(self) -> Exact:
        return Exact(abs(self.digits), self.exponent)

    def __pow__(self, power: int) -> Exact:
        return Exact(self.digits**power, self.exponent * power)

    def __getitem__(self, at: Any) -> Exact:
        return Exact(np.asarray(self.digits[at], object), self.exponent)

    def __len__(self) -> int:
        return len(self.digits)

    @property
    def T(self) -> Exact:
        return Exact(self.digits.T, self.exponent)

    def positive_part(self) -> Exact:
        return Exact(np.where(self.digits > 0, self.digits, 0), self.exponent)

    def above(self, other: Any) -> Any:
        """Return a mask of the places where it is larger."""
        a, b, _ = self._aligned(other)
        return np.asarray(a > b, bool)

    def sum(self) -> Exact:
        return Exact(np.asarray(self.digits.sum(), object), self.exponent)

    def fraction(self) -> Fraction:
        """The only number of an array of one."""
        digits = int(np.asarray(self.digits, object).item())
        if self.exponent >= 0:
            return Fraction(digits << self.exponent)
        return Fraction(digits, 1 << -self.exponent)


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


def exponential(X: Any, gamma: float, power: int) -> Kernel:
    """``exp(-gamma sum_k |x_k - z_k|^power)``, to some 60 digits."""
    import mpmath

    rows, n = Exact.of(X), len(X)
    K, exponents = np.zeros((n, n), object), np.zeros((n, n), np.int64)
    with mpmath.workprec(260):
        for i, j in combinations_with_replacement(range(n), 2):
            far = (abs(rows[i] - rows[j]) ** power).sum() * gamma
            # Below 2^-5000 a value is 0, which is far beyond what float64 knows.
            near = far.digits.bit_length() + far.exponent < 12
            value = mpmath.exp(-mpmath.ldexp(far.digits, far.exponent)) if near else 0
            if near and value > mpmath.ldexp(1, -5000):
                _, digits, exponents[i, j], _ = value._mpf_
                exponents[j, i] = exponents[i, j]
                K[i, j] = K[j, i] = int(digits)
    least = int(exponents.min())
    return Kernel(Exact(K << (exponents - least).astype(object), least), 0, WRONG)


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


@dataclass
class SVM:
    """One problem: points, losses, and what the bias is.

    Attributes
    ----------
    points : Rows or Kernel
    loss : str
        "hinge", "squared_hinge", "smoothed_hinge", "epsilon_insensitive",
        "squared_epsilon_insensitive" or "one_class".
    target : array of shape (n,)
        Labels -1 and +1, or targets; of one class ignored.
    cost : array of shape (n,)
    parameter : float
        gamma of the smoothed hinge, epsilon of a regression.
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
        self.cost = Exact.of(self.cost)
        self.target = Exact.of(self.target)

    # ------------------------------------------------------------------- primal

    def residuals(self, scores: Exact) -> Exact:
        """Return the residuals; the losses are functions of their positive parts."""
        if self.signed:
            return Exact.of(1.0) - self.target * scores
        if self.loss == "one_class":
            return -scores
        return abs(self.target - scores) - self.parameter

    def losses(self, residuals: Exact) -> Fraction:
        u = residuals.positive_part()
        if self.squared:
            u = u * u
        if self.loss != "smoothed_hinge":
            return (self.cost @ u).fraction()
        gamma = Exact.of(self.parameter)
        far, square, line = u.above(gamma), u * u, u * gamma * 2.0 - gamma * gamma
        a, b, exponent = square._aligned(line)
        rounded = Exact(np.where(far, b, a), exponent)
        return (self.cost @ rounded).fraction() / (2 * Fraction(self.parameter))

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
        # Losses are convex: they rise by more than they would fall.
        return norm / 2 + self.losses(near + off) - self.losses(near)

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
        if self.loss != "one_class":
            value += (self.target @ a).fraction()
        if not self.signed:
            value -= Fraction(self.parameter) * abs(a).sum().fraction()
        bend = {"squared": HALF, "smoothed": Fraction(self.parameter)}
        kind = self.loss.split("_")[0]
        if kind in bend:
            value -= bend[kind] * self._over_cost(a) / 2
        return value

    def _over_cost(self, a: Exact) -> Fraction:
        """``sum_i a_i^2 / c_i`` of the rows that weigh."""
        by_cost: dict[int, int] = {}
        for c, square in zip(self.cost.digits, (a * a).digits, strict=True):
            if c:
                by_cost[c] = by_cost.get(c, 0) + square
        unit = Exact(1, 2 * a.exponent - self.cost.exponent).fraction()
        return sum((Fraction(s, c) for c, s in by_cost.items()), Fraction(0)) * unit

    def in_box(self, duals: Any) -> bool:
        a = Exact.of(duals)
        side = self.target * a if self.signed else a
        if (self.signed or self.loss == "one_class") and (side.digits < 0).any():
            return False
        if self.squared:
            return not (a.digits[~self.weighs] != 0).any()
        return not abs(a).above(self.cost).any()

    def feasible(self, duals: Any) -> Exact | None:
        """Return duals with the sum of a free bias, or None if the box has none."""
        a = Exact.of(duals)
        if self.bias != "free":
            return a
        total, cost, exponent = Exact.of(self.total)._aligned(self.cost)
        least = min(exponent, a.exponent)
        digits = (a.digits << (a.exponent - least)).tolist()
        upper = (cost << (exponent - least)).tolist()
        off = sum(digits) - (int(total) << (exponent - least))
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
        self.cost = [Fraction(c) for c in cost]
        self.constant = constant

    def primal(self, W: Any, biases: Any) -> Fraction:
        table = [[Fraction(v) for v in w] for w in np.asarray(W, float)]
        if self.constant:
            for w, b in zip(table, biases, strict=True):
                w.append(Fraction(float(b)) / Fraction(self.constant))
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

    def dual(self, duals: Any) -> Fraction:
        """D of the others' duals, scaled down where they are more than c_i."""
        table, value = np.asarray(duals, float), Fraction(0)
        V = [[Fraction(0)] * len(self.rows[0]) for _ in range(table.shape[1])]
        for x, y, c, row in zip(self.rows, self.codes, self.cost, table, strict=True):
            b = [Fraction(0) if m == y else -Fraction(a) for m, a in enumerate(row)]
            total = sum(b, Fraction(0))
            if total > c:
                b, total = [v * c / total for v in b], c
            value += total
            for m, v in enumerate(V):
                a = total if m == y else -b[m]
                if a:
                    V[m] = [p + a * t for p, t in zip(v, x, strict=True)]
        return value - sum((_dot(v, v) for v in V), Fraction(0)) / 2


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


class Fault(NamedTuple):
    #: Which one.
    claim: int
    what: str
    #: How far off, relative to P; infinite where that says nothing.
    size: float


def finite(claim: Claim) -> bool:
    parts = [*(claim.model or ()), *([] if claim.duals is None else [claim.duals])]
    return all(bool(np.isfinite(part).all()) for part in parts)


def faults(problem: Any, claims: Sequence[Claim]) -> Iterator[Fault]:
    """All that is claimed and is not so, the claims seen together."""
    lower, upper = None, None
    known: list[tuple[int, Claim, Fraction | None, Fraction]] = []
    for k, claim in enumerate(claims):
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
