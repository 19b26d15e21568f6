"""Ball of the optimum after some rows have left or joined the problem.

A ball (`ball.py`) of the full problem has centre c, squared radius r^2, a primal point
(w, b) and a dual point alpha. Take rows R away and add rows N, and let alpha' be any
point in the box of the new problem, with d_j = y_j (alpha'_j - alpha_j). With w kept,
the inequality (T) of `ball.py` holds for the new problem with

    c'   = c + u/2,    u = sum_j d_j x_j
    r'^2 = r^2 + L'(w, b) - L(w, b) + A(alpha) - A(alpha') + c.u + ||u||^2/4

so a new interval costs products of the rows that moved, and no pass over the data.

Repair. alpha' = alpha without R is valid, but r' is then large. The best alpha'
minimises r'^2 over the box, a quadratic problem with the matrix K/2 in place of K. It
is solved over a neighbourhood: the rows nearest the margin. At its solution c', not
v', is near the new optimum: alpha' moves twice as far as the dual variables of the new
optimum do, and r' can vanish although w has not moved.

Unpenalised bias. (T) then has the term -s b* on the left, s = sum_i y_i alpha'_i. Let a
row x with sign y take part with a pseudo-variable -sigma, sigma > 0, that A does not
count, and let s = y sigma balance it. Then u contains -y sigma x and

    y f*(x)  >=  -r'^2/sigma

because (T) is linear in b* and at most quadratic in w*: maximise over w*.

Source: (T) and the repair with v' near the new optimum: span bound of Vapnik and
Chapelle, "Bounds on error expectation for support vector machines", Neural Computation
12, 2000, section 3, with the box and the gap accounted for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .. import core
from ..kernels.gram import roundings_of_values
from ..losses import Vector
from ..problems.kernel_matrix import MatrixProblem
from ..problems.rounding import Rounding
from .ball import Ball

_UNIT, _SLACK = Rounding.unit, Rounding.slack
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class RemovalSettings:
    """Tuning constants of repairs."""

    #: Violation of the optimality conditions, in units of the margin, that ends one.
    violation: float = 1e-4
    #: Most steps per row of the neighbourhood.
    steps: int = 30


SETTINGS = RemovalSettings()


class Products:
    """Inner products of training rows, a penalised bias included.

    `problem`: its rows are in memory. `error`: bound on the error of a product, in
    units of ``||x_i|| ||x_j||``.
    """

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        if isinstance(problem, MatrixProblem):
            self.constant = problem.constant
            self.error = _UNIT * (roundings_of_values(problem.gram) + 4)
            return
        free, scaling = problem.free_bias, problem.intercept_scaling
        self.constant = 0.0 if free else scaling * scaling
        self.error = _SLACK * _UNIT * (problem.d + 4)

    @cached_property
    def X(self) -> Any:
        """Rows of a linear problem without the constant feature, not copied."""
        arrays = [np.asarray(array) for array in self.problem.rows.arrays]
        if len(arrays) == 1:
            return arrays[0]
        shape = (self.problem.n, self.problem.d)
        return sparse.csr_matrix(tuple(arrays), shape=shape, copy=False)

    def block(self, rows: Indices, columns: Indices) -> NDArray[np.float64]:
        """Return ``x_i.x_j`` for the rows i and columns j."""
        if isinstance(self.problem, MatrixProblem):
            values = self.problem.gram.block(rows, columns) + self.constant
            if self.problem.shift:
                values += self.problem.shift * (rows[:, None] == columns)
            return np.asarray(values)
        return inner(self.X[rows], self.X[columns]) + self.constant


def inner(A: Any, B: Any) -> NDArray[np.float64]:
    """Return the products of all rows of A and all rows of B, dense, float64."""
    A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    values = A @ B.T
    return np.asarray(values.toarray() if sparse.issparse(values) else values)


@dataclass(frozen=True)
class Rows:
    """Numbers of some rows that the formulas need, each of shape (m,)."""

    #: Labels, dual variables, their upper bounds, and the diagonal of the loss.
    signs: Vector
    alpha: Vector
    upper: Vector
    delta: Vector
    #: Upper bounds on ``||x_i||``.
    lengths: Vector
    #: ``c.x_i`` without an unpenalised bias, and bounds on the errors.
    products: Vector
    error: Vector
    #: Lower bounds on ``c_i l_i`` at the primal point.
    least_loss: Vector

    @classmethod
    def of(cls, ball: Ball) -> Rows:
        """Return the record of all training rows of a ball."""
        problem = ball.problem
        decisions, off = ball.decisions
        margins = ball.signs * decisions + off
        least = problem.cost * problem.loss.value(margins) * (1.0 - 8 * _UNIT)
        lengths = np.sqrt(ball.squares) * (1.0 + (problem.width + 8) * _UNIT)
        if isinstance(problem, MatrixProblem):
            lengths = np.sqrt(problem.lengths**2 + problem.constant) * (1 + 8 * _UNIT)
        products, error = ball.products
        # The squared radius is about the exact centre, the products about the stored.
        error = error + ball.offset * lengths
        return cls(
            ball.signs, ball.alpha, problem.upper, problem.delta, lengths, products,
            error, least,
        )  # fmt: skip

    def at(self, rows: Any) -> Rows:
        """Return the record of some of the rows."""
        return Rows(*(array[rows] for array in vars(self).values()))

    def joined(self, other: Rows) -> Rows:
        """Return one record of these rows and others."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Rows(*(np.concatenate(pair) for pair in pairs))


def change(
    rows: Rows, d: Vector, gain: Vector, K: NDArray[np.float64], product_error: float
) -> float:
    """Return an upper bound on ``-sum gain + c.u + ||u||^2/4`` with ``u = sum d x``.

    - `d`, `gain`: the moves, and the change of the terms of A, both within a few
      roundings, shape (m,).
    - `K`: products of the rows, shape (m, m).
    - `product_error`: as ``Products.error``.
    """
    # A move is rounded, and may leave the box by as much: a feasible move is within a
    # unit of each d, which the bounds below cover.
    size = np.abs(d)
    along = d * rows.products
    value = float(along.sum() - gain.sum()) + 0.25 * float(d @ (K @ d))
    reach = float(size @ rows.lengths)
    bent = float((rows.delta * (rows.alpha**2 + d * d)).sum())
    terms = float(np.abs(gain).sum() + size.sum() + np.abs(along).sum()) + 2.0 * bent
    m = len(d)
    error = (m + 12) * _UNIT * terms + float(size @ rows.error)
    error += 0.25 * ((m + 4) * _UNIT + product_error) * reach * reach
    return value + _SLACK * error


class Last(NamedTuple):
    """Row in question: its ``y_i alpha_i`` now, its target, and its products."""

    now: float
    target: float
    #: Products with the members of the neighbourhood, shape (m,).
    products: Vector
    #: ``||x_i||^2``.
    square: float


class Neighbourhood:
    """Rows nearest the margin, whose dual variables a repair may move.

    `ball` belongs to a classification problem. `size`: number of rows. `rows`:
    ``Rows.of(ball)``.
    """

    def __init__(
        self,
        ball: Ball,
        size: int,
        rows: Rows | None = None,
    ) -> None:
        self.ball = ball
        self.all = Rows.of(ball) if rows is None else rows
        self.products = Products(ball.problem)
        margins = self.all.signs * (self.all.products + ball.bias)
        far = np.abs(1.0 - margins)
        alpha, upper = self.all.alpha, self.all.upper
        wrong = np.where(margins > 1.0, alpha > 0.0, alpha < upper)
        far = np.where(wrong, -far, far)  # rows that have to move come first
        far = np.where(upper > 0.0, far, np.inf)
        size = min(size, int(np.isfinite(far).sum()))
        self.members: Indices = np.sort(np.argpartition(far, size - 1)[:size])
        self.K = self.products.block(self.members, self.members)
        self.rows = self.all.at(self.members)
        self.free = bool(ball.problem.free_bias)
        # One more variable: with an unpenalised bias the row in question, else a row
        # without any product, whose moves stand for moves of one row alone.
        self.H = self._matrix(0.5)
        sign = self.rows.signs
        own = sign * self.rows.alpha
        self.c = np.append(own, 0.0)
        self.low = np.append(np.where(sign > 0, 0.0, -self.rows.upper), -np.inf)
        self.high = np.append(np.where(sign > 0, self.rows.upper, 0.0), np.inf)
        self.slope = np.append(
            sign - self.rows.products - ball.bias - self.rows.delta * own, 0.0
        )
        finite = np.abs(own).max(initial=0.0)
        self.unit = 2.0**-48 * max(float(finite), 1e-300)

    @cached_property
    def H_of_dual(self) -> NDArray[np.float32]:
        return self._matrix(1.0)

    def _matrix(self, factor: float) -> NDArray[np.float32]:
        m = len(self.members)
        H = np.zeros((m + 1, m + 1), np.float32)
        H[:m, :m] = factor * self.K
        H[np.arange(m), np.arange(m)] += self.rows.delta.astype(np.float32)
        return H

    def moves(
        self,
        pull: Vector,
        fixed: Any = (),
        last: Last | None = None,
        *,
        of_dual: bool = False,
    ) -> Vector:
        """Return moves d of the members that make r'^2 small, or the dual value large.

        `pull`: ``u.x_j`` of the moves of rows outside, shape (m,). `fixed`: members
        that leave: they are not moved here. `last`: with an unpenalised bias: the row
        in question, and where its variable goes.
        """
        c, low, high = self.c.copy(), self.low, self.high
        v = self.slope.copy()
        factor = 1.0 if of_dual else 0.5
        H = self.H_of_dual if of_dual else self.H
        v[:-1] -= factor * pull
        if last is not None:
            H[-1, :-1] = H[:-1, -1] = factor * last.products
            H[-1, -1] = factor * last.square
            low, high = low.copy(), high.copy()
            c[-1], low[-1], high[-1] = last.now, last.target, last.target
            v[-1] = math.copysign(1e6, last.target - last.now)
        if len(fixed):
            low, high = low.copy(), high.copy()
            c[fixed] = low[fixed] = high[fixed] = 0.0
        core.pair_steps(
            H, c, (low, high), v.astype(np.float32), self.unit, SETTINGS.violation,
            SETTINGS.steps * len(c), core.Stop(),
        )  # fmt: skip
        moved = np.clip(c[:-1], self.low[:-1], self.high[:-1]) - self.c[:-1]
        if len(fixed):
            moved[fixed] = 0.0
        return np.asarray(moved)

    def moved(self, d: Vector) -> Vector:
        """Return alpha of all rows after moves d of the members."""
        alpha = self.ball.alpha.copy()
        alpha[self.members] += self.rows.signs * d
        return np.clip(alpha, 0.0, self.ball.problem.upper)

    def gain(self, d: Vector) -> Vector:
        """Return the change of the members' terms of A by moves d."""
        rows = self.rows
        step = rows.signs * d
        return np.asarray(step - rows.delta * step * (rows.alpha + 0.5 * step))


def loosely(value: float) -> float:
    """Return the root of an upper bound on a square, rounded up; 0 below 0."""
    return math.sqrt(max(value, 0.0)) * (1.0 + 4 * _UNIT)
