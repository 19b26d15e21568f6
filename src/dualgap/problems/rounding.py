"""Bounds on the rounding errors of P and D, and proofs with compensated products.

The products of columns that are large and nearly constant cancel: their rounding may
exceed P, although P itself is harmless. See docs/certificate-proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..certificate import Bounds
from ..losses import Vector
from .base import Claim, Proof

if TYPE_CHECKING:
    from .binary import BinaryProblem


class Values(NamedTuple):
    """Sums of one pass over some rows, and bounds on their rounding errors.

    The exact sum of losses is at most ``loss + loss_error``. ``w.v`` is within
    `along_error` of `along`, with ``v = sum_i alpha_i y_i x_i``.
    """

    loss: float  # sum c_i l_i
    sum: float  # sum alpha_i
    diagonal: float  # sum delta_i alpha_i^2
    loss_error: float
    along: float  # sum alpha_i m_i
    along_error: float
    reach: float  # at least sum alpha_i ||x_i||, constant feature included
    used: float  # number of rows with alpha_i != 0
    roundings: float  # largest number of roundings in a product x_i.w
    length: float  # length of w, without the constant feature
    last: float  # absolute share of the constant feature in x_i.w

    @classmethod
    def of(cls, found: Any) -> Values:
        """Return the values in a record of the core."""
        return cls(*[getattr(found, name) for name in cls._fields])

    @classmethod
    def merge(cls, parts: Sequence[Values]) -> Values:
        """Add up the sums of several parts of the rows, taken at the same w."""
        if len(parts) == 1:
            return parts[0]
        columns = list(zip(*parts, strict=True))
        return cls(*map(math.fsum, columns[:8]), *map(max, columns[8:]))


@dataclass(frozen=True)
class Rounding:
    """Bounds on the rounding errors of P and D (docs/certificate-proof.md).

    The bounds are of first order in u = 2^-53; the factor `slack` covers the higher
    orders.
    """

    #: Rows, and entries of w.
    n: int
    width: int
    #: Number of partial sums (of threads, blocks or partitions) that add up to v.
    parts: int
    #: Most additions that a term of a sum over the rows passes, where sums are not
    #: compensated and v is added by blocks. 0 for compensated sums.
    chain: int = 0

    slack: ClassVar[float] = 1.01
    unit: ClassVar[float] = 2.0**-53
    least: ClassVar[float] = 2.0**-1074
    # Relative errors of ||w||^2, and of the formulas that combine the sums.
    norm: ClassVar[float] = 40 * unit
    closing: ClassVar[float] = 4 * unit
    # Relative error of NumPy's sums, which are pairwise over blocks of 128 in 8 lanes:
    # at most 16 + 3 + 32 roundings, and the roundings of the terms.
    summed: ClassVar[float] = 64 * unit

    @property
    def term(self) -> float:
        """Relative error of a term in a sum, its own rounding included."""
        return (12 + self.chain) * self.unit + (self.n * self.unit) ** 2

    @property
    def underflow(self) -> float:
        """Bound on the underflow error of sums of squares and a few products."""
        return (self.n + self.width + 4) * self.least

    def of_scores(self, values: Values, q: Vector) -> Vector:
        """Bound the error of each ``x_i.w``, for rows without a constant feature.

        `q`: ``||x_i||^2``, shape (n,).
        """
        if values.length == 0.0:
            return np.zeros(self.n)
        small = 2.0**-1000  # far larger than all underflow
        rows = np.sqrt(q * (1.0 + 2 * (self.width + 2) * self.unit) + small)
        most = self.slack * self.unit * values.roundings * values.length
        return np.asarray(most * rows + small)

    def of_primal(self, values: Values, norm: float) -> float:
        """Bound the rounding error of ``norm/2 + loss``."""
        loss, more = values.loss, values.loss_error
        if loss == more == values.length == norm == 0.0:
            return 0.0  # w is 0 and no row has a loss, as with rows of one class
        relative = (self.term + self.closing) * loss + (self.norm + self.closing) * norm
        return self.slack * (more + relative) + self.underflow

    def precise_drift(self, values: Values, norm: float) -> float:
        """Bound the length of v minus the exact sum, for compensated products.

        `norm`: squared norm of v as stored.
        """
        added = ((values.used + 4) * self.unit) ** 2 * values.reach
        rounded = 2.0 * self.unit * math.sqrt(norm)
        lost = 2.0 * values.used * math.sqrt(self.width) * self.least
        return self.slack * (2.0 * added + rounded) + lost

    def of_sum(self, used: float, reach: float) -> float:
        """Bound the length of a computed sum of rows minus the exact one.

        `used`: number of rows in the sum. `reach`: upper bound on ``sum_i |alpha_i|
        ||x_i||``.
        """
        if used == 0.0:
            return 0.0
        longest = min(used, self.chain) if self.chain else used
        added = (longest + self.parts + 2) * self.unit * reach
        lost = used * math.sqrt(self.width) * self.least
        return self.slack * added + lost

    def of_dual(
        self,
        values: Values,
        norm: float,
        drift: float,
        off: float = math.inf,
        near: tuple[float, float] | None = None,
    ) -> float:
        """Bound the rounding error of ``sum - (norm + diagonal)/2``.

        The first bound assumes that all of `drift` is in the direction of v. If v is
        the w of the margins or near it, a better bound follows from
        ``||v||^2 = 2 v.w - ||w||^2 + ||v - w||^2`` and ``v.w = sum_i alpha_i m_i``. The
        result is the smaller of the two.

        - `norm`: squared norm of v as stored.
        - `drift`: bound on the length of v minus the exact sum; see :meth:`of_sum`.
        - `off`: error of ``v.w = sum_i alpha_i m_i``. If infinite, only the first bound
          is used.
        - `near`: ``||w||^2`` and ``||v - w||``, if w is not v itself.
        """
        if values.used == 0.0:
            return 0.0
        other, apart = (norm, 0.0) if near is None else near
        length = math.sqrt(norm + self.width * self.least)
        straight = self.slack * (length * drift + 0.5 * drift * drift)
        apart += drift
        seen = abs(0.5 * (norm + other) - values.along) + values.along_error + off
        seen += self.norm * max(norm, other) + 0.5 * apart * apart
        relative = self.term * (values.sum + values.diagonal) + self.norm * norm
        closing = self.closing * (values.sum + norm + values.diagonal)
        first = min(straight, self.slack * seen)
        return first + self.slack * (relative + closing) + self.underflow

    def dual(
        self,
        values: Values,
        norm: float,
        scale: float = 1.0,
        off: float = math.inf,
        near: tuple[float, float] | None = None,
        own: float = 0.0,
    ) -> tuple[float, float]:
        """Return D of ``scale * alpha``, and a bound on its rounding error.

        - `norm`: squared norm of v as stored.
        - `scale`: factor of alpha. Other factors than 1 round its entries; they are
          then clipped to the box.
        - `off`, `near`: as for :meth:`of_dual`.
        - `own`: relative distance of the exact dual point from alpha.
        """
        if scale == 0.0:
            return 0.0, 0.0
        curvature = norm + values.diagonal
        if scale != 1.0:
            own += 4 * self.unit
        drift = self.of_sum(values.used, values.reach) + own * values.reach
        if scale == 1.0:
            less = self.of_dual(values, norm, drift, off, near)
            more = self.slack * own * values.sum
            return values.sum - 0.5 * curvature, less + more
        dual = scale * (values.sum - 0.5 * scale * curvature)
        error = scale * (scale * self.of_dual(values._replace(sum=0.0), norm, drift))
        straight = (self.term + self.closing + own) * values.sum
        return dual, error + self.slack * scale * straight + self.underflow

    def bounds(
        self,
        values: Values,
        norm: float,
        dual_norm: float,
        off: float = math.inf,
        own: float = 0.0,
        scale: float = 1.0,
    ) -> Bounds:
        """Return bounds on P at w and on D at a multiple of alpha, from sums.

        `values`: sums over all rows. `norm`, `dual_norm`: ``||w||^2``, and the squared
        norm of v as stored. `off`, `own`, `scale`: as for :meth:`dual`.
        """
        dual, less = self.dual(values, dual_norm, scale, off, own=own)
        primal = 0.5 * norm + values.loss
        return Bounds.proved(primal, self.of_primal(values, norm), dual, less)


#: Relative gap up to which rounding may hide it.
ROUNDED = 1e-9


def sharper(problem: BinaryProblem, proof: Proof, fixed: bool = False) -> Proof:
    """Return the proof, or a better one from one or two more passes.

    The primal point is the one of the proof or, if it is better and not `fixed`,
    ``w(alpha)``.
    """
    before = proof.certificate
    hidden = before.gap <= 2.0 * before.rounding < math.inf
    if not hidden or before.relative_gap <= ROUNDED or problem.streamed:
        return proof
    w, alpha, v = proof.w, proof.alpha, np.empty(problem.width)
    for _ in range(1 if problem.free_bias or fixed else 2):
        w = w if fixed else problem.settled(w)
        values = problem._evaluate(w, "precise", alpha, v)
        norm = problem.squared_norm(v)
        bounds = problem.precise_bounds(w, alpha, values, norm)
        if bounds.primal - bounds.dual < proof.certificate.gap:
            proof = Proof(w, alpha, bounds.certificate)
        w = v.copy()
    return proof


def as_given(problem: BinaryProblem, claim: Claim) -> Proof:
    """Return a proof about the w of the claim and no better one."""
    return sharper(problem, problem._prove(claim), fixed=True)
