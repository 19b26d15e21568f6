"""Ellipsoid that contains w* of the squared hinge, far smaller than the ball.

With p1_i = max(0, 1 - m_i) at w, p2_i = alpha_i/(2 c_i), p = (p1 + p2)/2, and any set S
of rows whose margin at the optimum is surely at most 1,

    ||w* - c||^2 + 2 sum_S c_i (1 - y_i x_i.w* - p_i)^2
        <=  r^2 - 1/2 sum_i c_i (p1_i - p2_i)^2

Proof: P(w) - P* exceeds its quadratic part by at least sum_i c_i (p1_i - p*_i)^2, and
D* - D(alpha) its own by sum_i c_i (p2_i - p*_i)^2, where p*_i = max(0, 1 - m*_i) =
alpha*_i/(2 c_i). Add both and complete the squares.

The left side is a quadratic with the matrix H = I + 2 sum_S c_i x_i x_i'. Around its
minimiser u0, w* lies in ``(w - u0)' H (w - u0) <= rho^2``. S comes from the ball, and
grows with the ellipsoid. The cost is a pass of n d^2 and a factor of d^3 operations
each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from .. import core
from ..data.rows import Points
from ..data.types import MatrixLike
from ..losses import SquaredHinge, Vector
from ..problems.binary import BinaryProblem
from ..problems.rounding import Rounding
from .ball import Ball

_SLACK, _UNIT = Rounding.slack, Rounding.unit


@dataclass(frozen=True)
class EllipsoidSettings:
    """Tuning constants of ellipsoids."""

    #: Most columns, constant feature included, for which an ellipsoid is computed.
    most_columns: int = 2000
    #: Most times that the set of active rows grows.
    rounds: int = 4
    #: Entries of a dense block of rows.
    block: int = 8_000_000


SETTINGS = EllipsoidSettings()


@dataclass(frozen=True)
class Ellipsoid:
    """Points w with ``(w - centre)' H (w - centre) <= radius^2``."""

    #: Shape (width,).
    centre: Vector
    #: Upper triangular W with ``inv(H) = W W'`` up to rounding, shape (width, width).
    #: `radius` includes that rounding.
    root: NDArray[np.float64]
    radius: float

    def widths(self, points: Points) -> Vector:
        """Return upper bounds on ``|x.(w - centre)|`` in the ellipsoid, shape (n,)."""
        X, out = points.X, np.empty(points.shape[0])
        if sparse.issparse(X):  # few products for each entry
            core.image_lengths(points.accessor, self.root, out)
        else:  # for dense rows a product of matrices is faster
            (n, d), last = X.shape, points.constant * self.root[-1]
            step = max(1, SETTINGS.block // max(d, 1))
            for begin in range(0, n, step):
                products = X[begin : begin + step] @ self.root[:d]
                if points.constant:
                    products += last
                squares = np.einsum("ij,ij->i", products, products)
                out[begin : begin + step] = np.sqrt(squares)
        return self.radius * out * (1.0 + 1e-12)


def ellipsoid_of(ball: Ball, points: Points) -> Ellipsoid | None:
    """Return the ellipsoid of a ball, or None where there is none or it is too costly.

    `ball` belongs to a linear binary problem. `points`: the rows of the problem.
    Returns None for other losses, an unpenalised bias, or too many columns.
    """
    problem = ball.problem
    if (
        not isinstance(problem, BinaryProblem)
        or ball.of_regression
        or not isinstance(problem.loss, SquaredHinge)
        or problem.free_bias
        or problem.width > SETTINGS.most_columns
        or not ball.radius < math.inf
    ):
        return None
    values, error = ball.products
    lengths = np.sqrt(ball.squares) * (1.0 + (problem.width + 8) * _UNIT)
    y, used = ball.signs, problem.cost > 0.0
    cost = np.where(used, problem.cost, 1.0)
    p1 = np.maximum(0.0, 1.0 - y * ball.decisions.values)
    p2 = ball.alpha / (2.0 * cost)
    rounded = 8 * _UNIT * (1.0 + np.abs(values) + p1 + p2)
    error = error + rounded
    unsure = ball.decisions.error + rounded  # of p1
    apart = np.maximum(np.abs(p1 - p2) - unsure, 0.0)
    squared = ball.squared_radius - 0.5 * float((cost * apart * apart)[used].sum())
    squared = max(squared * (1.0 + 1e-12) + 1e-12 * ball.squared_radius, 0.0)
    off = error + 0.5 * unsure
    rest = (1.0 - 0.5 * (p1 + p2)) * y - values  # y_i (t_i - m_i)
    middle, reach = y * values, ball.radius * lengths + error
    low, high = middle - reach, middle + reach  # of margins at the optimum
    found, active = None, np.zeros(problem.n, bool)
    matrix = np.eye(problem.width)
    for _ in range(SETTINGS.rounds):
        new = np.flatnonzero(used & ~active & (high < 1.0))
        if found is not None and not new.size:
            break
        active[new] = True
        for span, rows in _blocks(points.X[new], points.constant):
            matrix += rows.T @ (rows * (2.0 * cost[new][span, None]))
        found = _around(ball, points, active, rest, off, squared, matrix) or found
        if found is None:
            return None
        at = np.flatnonzero(used & ~active & (low <= 1.0))  # may still be active
        scores, wrong = problem.scores(found.centre)
        middle = (y * scores)[at]
        reach = found.widths(points[at]) + wrong[at]
        low[at] = np.maximum(low[at], middle - reach)
        high[at] = np.minimum(high[at], middle + reach)
    return found


def _around(
    ball: Ball,
    points: Points,
    active: NDArray[np.bool_],
    rest: Vector,
    off: Vector,
    squared: float,
    matrix: NDArray[np.float64],
) -> Ellipsoid | None:
    """Return the ellipsoid of active rows and their H; None if rounding spoils it.

    With d = w* - c the inequality is ``||d||^2 + 2 sum_S c_i (rest_i - x_i.d)^2 <=
    squared``. It holds for any approximate minimiser d: the gradient there bounds the
    distance from the exact one, because H is at least the identity. Here c is the
    stored centre, which may differ by `offset` from the exact one in the first term.
    """
    width, problem = ball.problem.width, ball.problem
    at = np.flatnonzero(active)
    cost, e, off = 2.0 * problem.cost[at], rest[at], off[at]
    pull = np.zeros(width)
    for span, rows in _blocks(points.X[at], points.constant):
        pull += rows.T @ (cost[span] * e[span])
    trace = float(np.trace(matrix))
    # Rounding of the sums, of the factor and its inverse, and of products with it, in
    # H's norm. The bound suffices because every eigenvalue of H is at least 1.
    terms = len(at) + (8.0 + 2.0 * math.sqrt(width)) * width + 16
    loss = _SLACK * _UNIT * terms * trace
    if not loss < 0.1:
        return None
    try:
        factor = linalg.cholesky(matrix, lower=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    d = linalg.cho_solve((factor, True), pull, check_finite=False)
    size = math.sqrt(float(d @ d))
    value = max(size - ball.offset, 0.0) ** 2
    slope, wrong_slope = d.copy(), ball.offset + 4 * _UNIT * size
    for span, rows in _blocks(points.X[at], points.constant):
        left = e[span] - rows @ d
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        wrong = off[span] + (width + 8) * _UNIT * (np.abs(e[span]) + lengths * size)
        value += float(cost[span] @ np.maximum(np.abs(left) - wrong, 0.0) ** 2)
        slope -= rows.T @ (cost[span] * left)
        added = (len(at) + 8) * _UNIT * np.abs(left)
        wrong_slope += float((cost[span] * lengths) @ (wrong + added))
    away = math.sqrt(float(slope @ slope)) + _SLACK * wrong_slope
    value *= 1.0 - 1e-12
    inner = math.sqrt(max(squared - value + away * away, 0.0))
    # The sum of c and d is rounded.
    moved = 8 * _UNIT * (size + math.sqrt(float(ball.centre @ ball.centre)))
    moved *= math.sqrt(trace)
    radius = (inner + away + moved) * (1.0 + loss) * (1.0 + 1e-12)
    inverse = linalg.solve_triangular(
        factor, np.eye(width), lower=True, check_finite=False
    )
    return Ellipsoid(ball.centre + d, np.ascontiguousarray(inverse.T), radius)


def _blocks(
    X: MatrixLike, constant: float
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield blocks of rows as dense float64, with the constant feature."""
    n, d = X.shape
    step = max(1, SETTINGS.block // max(d, 1))
    for begin in range(0, n, step):
        span = slice(begin, min(begin + step, n))
        some = X[span]
        rows = np.asarray(some.toarray() if sparse.issparse(some) else some, float)
        if constant:
            rows = np.column_stack([rows, np.full(len(rows), constant)])
        yield span, rows
