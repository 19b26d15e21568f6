"""Learning from batches with a free bias, or with costs that change from call to call.

Problem    as in stream.py. With "balanced" class weights every batch changes the
           costs of all rows of one sign by the same factor: c_i = f c0_i, where f
           belongs to the sign and c0_i to the row. A free bias is not penalised, and
           the dual has the constraint sum_i a_i y_i = 0.
Update     A batch stores g_i = a_i / f. Each sign has its own sums over all batches:
           sum g_i y_i x_i, sum g_i, and the linear terms of D for the costs c0_i. When
           f changes, every a_i follows its cost without its row: w is the sum over both
           signs of f times their sums, and D takes the linear terms times f.
           With a free bias, sweeps penalise its distance from the last value b_k (the
           method of multipliers in solvers/dcd.py). After a batch b_k moves by the
           batch's share of all costs: by more, it may diverge.
Guarantee  D is proved for a_i = t f g_i. A free bias needs t <= 1 with
           sum_i a_i y_i = 0, which one of the two signs has; otherwise t = 1. The
           rounding of t, f and all sums is counted. D may fall when the costs change,
           and with a free bias.
Cost       as in stream.py, one more product with the batch, with a free bias two;
           2 d numbers more per problem.
Source     as in stream.py and solvers/dcd.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..certificate import Bounds
from ..losses import Vector
from ..problems.binary import BinaryProblem
from ..problems.rounding import Rounding, Values
from ..solvers.dcd import constant_feature
from .stream import BatchDuals, BatchState, Stream, bounds_of, lower_bound, replace_in

#: Smaller sums and factors count as 0, so that no product underflows.
_SMALLEST = 2.0**-1000


@dataclass
class SignedStream(Stream):
    """Stream with separate sums for the negative and the positive rows.

    Of `sums`, `linear`, `total` and `drift`, entry ``2 k`` belongs to the negative rows
    of problem k and entry ``2 k + 1`` to its positive rows.
    """

    #: Whether the bias is free. It is then the last entry of every w.
    free: bool = False
    #: ``sum_i g_i y_i x_i``, 0 for a free bias, shape (2 problems, width).
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    #: A few numbers with the exact sum of ``batch.total`` over all batches.
    total: list[list[float]] = field(default_factory=list)
    #: Factors f of the negative and the positive rows, shape (problems, 2).
    factor: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)))
    #: Sum of the costs of all rows, shape (problems,).
    cost: Vector = field(default_factory=lambda: np.zeros(0))
    #: Weight of the rows of each class.
    classes: list[Fraction] = field(default_factory=list)

    @classmethod
    def signed(cls, width: int, seeds: Sequence[int], free: bool) -> SignedStream:
        """Return a stream without rows, with one problem for each seed."""
        stream, sides = cls.begin(width, seeds), range(2 * len(seeds))
        stream.linear, stream.total = [[] for _ in sides], [[] for _ in sides]
        stream.drift, stream.sums = [0.0 for _ in sides], np.zeros((len(sides), width))
        stream.free = free
        return stream

    def open(self, key: bytes, n: int) -> BatchDuals:
        batch = super().open(key, n)
        if not batch.total.size:
            batch.total = np.zeros(len(self.total))
        self.sums, batch.total = (
            np.require(array, requirements=["C", "A", "W"])
            for array in (self.sums, batch.total)
        )
        return batch

    def weigh(
        self, factor: NDArray[np.float64], cost: Vector, classes: list[Fraction]
    ) -> None:
        """Set the factors of all rows so far, and let w follow."""
        self.factor, self.cost, self.classes = factor, cost, classes
        for k in range(len(self.w)):
            self._combine(k)

    def _combine(self, k: int) -> None:
        negative, positive = self.factor[k]
        bias = self.w[k, -1]
        self.w[k] = negative * self.sums[2 * k] + positive * self.sums[2 * k + 1]
        if self.free:
            self.w[k, -1] = bias

    def _totals(self, k: int) -> Vector:
        """Return the sums of a_i over the negative and over the positive rows."""
        totals = [math.fsum(parts) for parts in self.total[2 * k : 2 * k + 2]]
        return self.factor[k] * totals

    def _state(
        self, k: int, problem: BinaryProblem, batch: BatchDuals, rng: core.Random
    ) -> BatchState:
        state = super()._state(k, problem, batch, rng)
        state.alpha = scaled(problem, state.alpha, self.factor[k])
        if self.free:
            s = constant_feature(state.q, self.cost[k : k + 1])
            state.constant, state.q = s, state.q + s * s
            negative, positive = self._totals(k)
            state.w[-1] = state.w[-1] / s + s * (positive - negative)
        return state

    def _norms(self, problem: BinaryProblem) -> Vector:
        return problem.norms(0.0) if self.free else problem.q

    def _keep(
        self, k: int, problem: BinaryProblem, batch: BatchDuals, state: BatchState
    ) -> None:
        super()._keep(k, problem, batch, state)
        if state.constant is not None:
            negative, positive = self._totals(k)
            share = float(problem.cost.sum()) / self.cost[k]
            self.w[k, -1] += share * state.constant**2 * (positive - negative)

    def _take(
        self,
        k: int,
        problem: BinaryProblem,
        batch: BatchDuals,
        alpha: Vector,
        q: Vector,
    ) -> None:
        before, positive = batch.alpha[k].copy(), problem.y > 0
        factor = by_sign(problem, self.factor[k])
        # Rows that have not moved keep their bits: the sums need not be changed.
        moved = alpha != scaled(problem, before, self.factor[k])
        stored = before.copy()
        np.divide(alpha, factor, out=stored, where=moved)
        batch.alpha[k] = stored
        bent = 0.5 * problem.delta * factor * stored * stored
        for j, rows in ((2 * k, ~positive), (2 * k + 1, positive)):
            by = np.where(rows, stored - before, 0.0)
            self._add_rows(j, problem, by, q, self.sums[j])
            if self.free:
                self.sums[j, -1] = 0.0
            self._note(j, batch, stored[rows], bent[rows])
            replace_in(self.total[j], batch.total, j, float(stored[rows].sum()))
        self._combine(k)

    def _shares(self, k: int) -> tuple[Vector, float]:
        """Return t of the negative and the positive rows, and its relative error."""
        if not self.free:
            return np.ones(2), 0.0
        totals = self._totals(k)
        if not totals.min() > _SMALLEST:
            return np.zeros(2), 0.0
        shares = totals.min() / totals
        if not (shares * self.factor[k]).min() > _SMALLEST:
            return np.zeros(2), 0.0
        # Each total has half of this error; `summed` has room for the roundings here.
        return shares, 2 * Rounding.summed

    def dual(self, k: int) -> Bounds:
        """Prove a lower bound on D of problem k from the stored sums."""
        shares, own = self._shares(k)
        width = self.w.shape[1]
        v, linear, size, drift = np.zeros(width), 0.0, 0.0, width * Rounding.least
        for j, t, f in zip((2 * k, 2 * k + 1), shares, self.factor[k], strict=True):
            total, part = math.fsum(self.total[j]), math.fsum(self.linear[j])
            bent = max(total - part, 0.0)  # 1/2 sum delta g^2, which t multiplies twice
            linear += t * f * (part + (1.0 - t) * bent)
            size += t * f * (total + 2.0 * bent)
            v += t * f * self.sums[j]
            length = math.sqrt(core.squared_norm(self.sums[j]))
            drift += t * f * (self.drift[j] + (own + 4 * Rounding.unit) * length)
        # Costs are rounded products of C, a weight and f, and P* is in proportion to
        # them: a relative error of the costs is one of D.
        error = (own + 16 * Rounding.unit) * size
        return lower_bound(linear, core.squared_norm(v), drift, width, error)

    def _point(self, k: int, problem: BinaryProblem, batch: BatchDuals) -> Vector:
        shares, _ = self._shares(k)
        return scaled(problem, batch.alpha[k], shares * self.factor[k])

    def _bounds(
        self, k: int, parts: list[Values], v: Vector, rounding: Rounding
    ) -> Bounds:
        if not self.free:
            return bounds_of(parts, self.w[k], v, rounding)
        # The last entry of v is sum_i a_i y_i. Where it is 0, exactly, the a_i of one
        # sign are smaller by this share.
        own, total = 0.0, sum(values.sum for values in parts)
        if total > 0.0:
            used = sum(values.used for values in parts)
            off = abs(float(v[-1])) + rounding.of_sum(used, total)
            own = 2.0 * off / (total - off) if off < total else math.inf
        found = bounds_of(parts, self.w[k, :-1], v[:-1], rounding, own)
        return found.with_dual_of(self.dual(k))


def by_sign(problem: BinaryProblem, factor: Vector) -> Vector:
    """Return the factor of every row, given the factors of either sign."""
    return np.where(problem.y > 0, factor[1], factor[0])


def scaled(problem: BinaryProblem, stored: Vector, factor: Vector) -> Vector:
    """Return dual variables in their box, given stored ones and the factors.

    Those that rounding keeps from their upper bound are at it.
    """
    found, upper = by_sign(problem, factor) * stored, problem.upper
    return np.where(found >= (1.0 - 8 * Rounding.unit) * upper, upper, found)
