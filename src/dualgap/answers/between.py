"""Bounds on the optimum for every C between two values of C, from the fits at these.

Problem    P_C(w, b) = 1/2 ||w||^2 + C S(w, b), S(w, b) = sum_i s_i l(y_i (w.x_i + b)),
           C_0 <= C <= C_1
Ball       C = (1-t) C_0 + t C_1. The points w_t and alpha_t between (w_0, alpha_0) and
           (w_1, alpha_1) are feasible for C, S is convex, and A is jointly concave in
           alpha and C. So inequality (T) of :mod:`dualgap.answers.ball` gives, with
           c_t = (w_t + v_t)/2,

           ||w*_C - c_t||^2 <= r_t^2 := ||c_t||^2 + C ((1-t) S_0 + t S_1)
                                        - (1-t) A_0 - t A_1

           a quadratic in t: all C between at once, without a pass over the data.
Free bias  The joint bound of :mod:`dualgap.answers.bias` with one mu that the boxes at
           both ends allow. Its price is linear in t.
Source     Shibagaki, Suzuki, Karasuyama and Takeuchi, "Regularization path of
           cross-validation error lower bounds", NIPS 2015, have the ball of one fit
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..kernels.gram import roundings_of_values
from ..losses import Vector
from ..problems.base import EMPTY
from ..problems.binary import BinaryProblem
from ..problems.kernel import KernelProblem
from ..problems.rounding import Rounding
from .ball import Ball, Estimate
from .bias import Side, joint_sides, steps_of

_UNIT = Rounding.unit

#: Problems that have bounds between two values of C.
Binary: TypeAlias = BinaryProblem | KernelProblem


@dataclass(frozen=True)
class BetweenSettings:
    """Tuning constants of bounds between two values of C."""

    #: Choices of mu for an unpenalised bias.
    masses: int = 12
    #: Most rows of each mu.
    most_rows: int = 400


SETTINGS = BetweenSettings()


@dataclass(frozen=True)
class Anchor:
    """Fit at one C, as far as the bounds between two values of C need it."""

    C: float
    #: ``(w + v)/2``, shape (width,); 0 in the place of an unpenalised bias. Empty for
    #: kernels.
    centre: Vector
    #: ``y_i alpha_i``, and the products of all rows with the centre, without an
    #: unpenalised bias, shape (n,). Empty for linear problems without one.
    signed: Vector
    products: Vector
    #: Bound on the errors of `products`.
    error: float
    #: Squared length of the centre, and a bound on its error.
    square: float
    doubt: float
    #: Upper bound on S(w, b).
    loss: float
    #: Lower bound on A(alpha).
    gain: float
    #: Upper bound on the distance of `centre` from the exact ``(w + v)/2``.
    off: float
    #: Bound on ``|sum_i y_i alpha_i b*|`` for an unpenalised optimal bias.
    sway: float

    @classmethod
    def of(cls, ball: Ball) -> Anchor:
        """Return the anchor of a ball.

        `ball` belongs to a binary problem, linear or with a kernel.
        """
        problem, proof = ball.problem, ball.certificate
        kernel, free = isinstance(problem, KernelProblem), bool(problem.free_bias)
        signed = products = EMPTY
        error = doubt = sway = 0.0
        if kernel or free:
            signed, products = ball.alpha * ball.signs, ball.products.values
            error = float(ball.products.error.max())
        if kernel:
            square, doubt = _product(signed, products, error)
            norm = shortest = max(square - doubt, 0.0)
        else:
            square = core.squared_norm(ball.centre)
            w = np.append(ball.w[:-1], 0.0) if free else ball.w
            norm = core.squared_norm(w) * (1.0 - 64 * _UNIT)
            length = math.sqrt(core.squared_norm(ball.v)) * (1.0 - 64 * _UNIT)
            shortest = max(length - 2.0 * ball.offset, 0.0) ** 2
        if free:
            n, total = len(signed), float(np.abs(signed).sum())
            off = abs(float(core.signed_sum(problem.y, ball.alpha)))
            off += (_UNIT + (n * _UNIT) ** 2) * total
            longest = math.sqrt(max(float(ball.squares.max()), 0.0))
            # An optimal bias is at most 1 + longest ||w*|| in size.
            sway = off * (1.0 + longest * math.sqrt(2.0 * max(proof.primal, 0.0)))
        sizes = abs(proof.primal) + abs(proof.dual) + norm + shortest
        loss = max(proof.primal - 0.5 * norm, 0.0) + 16 * _UNIT * sizes
        gain = proof.dual + 0.5 * shortest - 16 * _UNIT * sizes
        return cls(
            C=problem.C,
            centre=ball.centre,
            signed=signed,
            products=products,
            error=error,
            square=square,
            doubt=doubt,
            loss=loss / problem.C * (1.0 + 4 * _UNIT),
            gain=gain,
            off=ball.offset,
            sway=Rounding.slack * sway,
        )


@dataclass(frozen=True)
class Between:
    """All C between two fits of a problem."""

    #: The problem with C_0 and with C_1.
    problems: tuple[Binary, Binary]
    #: Fits at C_0 and C_1.
    first: Anchor
    last: Anchor
    #: Increasing values of t from 0 to 1, shape (m + 1,). Cell k has t from ``ends[k]``
    #: to ``ends[k + 1]``.
    ends: Vector

    @cached_property
    def squared_radii(self) -> Vector:
        """Upper bounds on r_t^2 around the exact centres, for all t of a cell, (m,).

        They are inf without finite bounds.
        """
        first, last, ends = self.first, self.last, self.ends
        cc, dd = first.square, last.square
        apart, doubt = self._apart()
        more, rise = last.C - first.C, last.loss - first.loss
        constant = cc + first.C * first.loss - first.gain
        slope = dd - cc - apart + first.C * rise + more * first.loss
        slope -= last.gain - first.gain
        curve = apart + more * rise
        at = constant + ends * (slope + ends * curve)
        largest = np.maximum(at[:-1], at[1:])
        if curve < 0.0:  # concave: the top may be inside a cell
            top = -0.5 * slope / curve
            inside = (ends[:-1] < top) & (top < ends[1:])
            largest = np.where(inside, constant + 0.5 * slope * top, largest)
        size = 2.0 * (cc + dd) + last.C * (first.loss + last.loss)
        size += abs(first.gain) + abs(last.gain)
        off = self.offset
        lost = 64 * _UNIT * size + off * (2.0 * math.sqrt(max(cc, dd, 0.0)) + off)
        # The bias grows with P, so sway at C_1 is a bound for both dual points.
        lost += doubt + first.sway * max(1.0, last.C / first.C) + last.sway
        squared = np.maximum(largest + Rounding.slack * lost, 0.0)
        return np.where(np.isfinite(squared), squared, np.inf)

    @property
    def offset(self) -> float:
        """Bound on the distance of the points between the centres from exact ones."""
        return max(self.first.off, self.last.off)

    @property
    def radii(self) -> Vector:
        """Upper bounds on ``||w*_C - ((1-t) c_0 + t c_1)||`` for all t of a cell."""
        return np.sqrt(self.squared_radii) * (1.0 + 4 * _UNIT) + self.offset

    def _apart(self) -> tuple[float, float]:
        """Return ``||c_0 - c_1||^2``, and a bound on the errors of all squares."""
        first, last = self.first, self.last
        if first.centre.size:
            return core.squared_norm(first.centre - last.centre), 0.0
        inner, error = _product(last.signed, first.products, first.error)
        doubt = 2.0 * (first.doubt + last.doubt + error)
        return max(first.square + last.square - 2.0 * inner, 0.0), doubt

    def bounds(
        self, points: QueryPoints, far: Callable[[Side], NDArray[np.float64]]
    ) -> Iterator[tuple[Vector, Vector]]:
        """Yield lower and upper bounds on the decisions of every optimum, cell by cell.

        `far`: returns upper bounds on the distances ``||x - z_k||`` of the points for a
        side, shape (n, K). Only for an unpenalised bias.
        """
        begin, step = points.first, points.last - points.first
        most = np.maximum(np.abs(points.first), np.abs(points.last))
        error = points.error + 2.0**-50 * most
        sides = None
        if self.problems[0].free_bias:
            sides = [_Bias.of(self, sign, far) for sign in (1, -1)]
        for k, t in enumerate(self.ends[1:]):
            end = points.first + t * step
            if sides is None:
                room = error + self.radii[k] * points.lengths
                yield np.minimum(begin, end) - room, np.maximum(begin, end) + room
            else:
                above = sides[0].above(k, begin, end) + error
                below = sides[1].above(k, -begin, -end) + error
                few = 16 * _UNIT
                yield -below - few * np.abs(below), above + few * np.abs(above)
            begin = end


class QueryPoints(NamedTuple):
    """Points with unknown decisions."""

    #: Products with the centres of both anchors, shape (n,).
    first: Vector
    last: Vector
    #: Bounds on the errors of either, shape (n,).
    error: Vector
    #: Upper bounds on the lengths of the points, shape (n,).
    lengths: Vector


class _Bias(NamedTuple):
    """Joint bound from above, or from below for negated products."""

    #: For each cell a side with one choice of mu; empty if there is no bound.
    sides: list[Side]
    #: Prices of these at both ends of the cells, shape (m, 2).
    levels: NDArray[np.float64]
    #: Shape (m,).
    squared_radii: Vector
    offset: float
    #: Distances of the points, (n, 1), for each cell.
    far: list[NDArray[np.float64]]

    @classmethod
    def of(
        cls, own: Between, sign: int, far: Callable[[Side], NDArray[np.float64]]
    ) -> _Bias:
        squared, ends = own.squared_radii, own.ends
        none = cls([], np.empty((0, 2)), squared, own.offset, [])
        if not squared.max() < math.inf:
            return none
        steps = []
        for problem, anchor in zip(own.problems, (own.first, own.last), strict=True):
            error = np.full(len(anchor.products), anchor.error)
            products = Estimate(anchor.products, error)
            alpha = anchor.signed * problem.y
            steps.append(steps_of(problem, alpha, products, sign))
        scale = math.sqrt(float(np.mean(lengths_of(own.problems[0]) ** 2)))
        r = np.sqrt(np.maximum([squared.min(), squared.max()], 1e-300))
        masses = 2.0 / scale * np.geomspace(0.25 * r[0], 256.0 * r[1], SETTINGS.masses)
        first, last = joint_sides(steps, masses, SETTINGS.most_rows)
        if not len(first.sigma):
            return none
        either = replace(first, bend=np.maximum(first.bend, last.bend))
        levels = np.multiply.outer(1.0 - ends, first.level)
        levels += np.multiply.outer(ends, last.level)
        typical = np.full((1, len(first.sigma)), scale)
        middle = 0.5 * (levels[:-1] + levels[1:])
        costs = [either.cost(typical, float(r2), 0.0)[0] for r2 in squared]
        best = np.argmin(middle + costs, axis=1).tolist()
        used = sorted(set(best))
        distances = dict(zip(used, far(either.some(used)).T, strict=True))
        return cls(
            [either.some([j]) for j in best],
            np.array([levels[k : k + 2, j] for k, j in enumerate(best)]),
            squared,
            own.offset,
            [distances[j][:, None] for j in best],
        )

    def above(self, k: int, begin: Vector, end: Vector) -> Vector:
        """Return upper bounds in cell k, from products at both ends of the cell."""
        if not self.sides:
            return np.full(len(begin), np.inf)
        cost = self.sides[k].cost(self.far[k], self.squared_radii[k], self.offset)
        low, high = self.levels[k]
        return np.maximum(begin + low, end + high) + cost[:, 0]


def lengths_of(problem: Binary) -> Vector:
    """Return upper bounds on the lengths of all rows of a problem, shape (n,).

    A constant feature is included where the bias is penalised.
    """
    if isinstance(problem, KernelProblem):
        squares = problem.lengths**2 + problem.constant
        many = roundings_of_values(problem.gram)
    else:
        squares = problem.norms(0.0) if problem.free_bias else problem.q
        many = problem.width
    return np.sqrt(squares * (1.0 + 2.0 * (many + 4) * _UNIT) + 2.0**-1000)


def _product(signed: Vector, products: Vector, error: float) -> tuple[float, float]:
    """Return ``sum_i signed_i products_i``, and a bound on its error."""
    terms, total = signed * products, float(np.abs(signed).sum())
    rounding = Rounding.summed * float(np.abs(terms).sum())
    return float(terms.sum()), Rounding.slack * (total * error + rounding)
