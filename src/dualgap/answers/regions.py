"""Regions that contain every optimum of linear problems, and bounds on decisions there.

A region keeps a few vectors of the width of the model and no training rows: the centre
of the ball, with an unpenalised bias also means z of some rows
(:mod:`~dualgap.answers.bias`), and for the squared hinge an ellipsoid that contains w*,
far smaller than the ball:

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from .. import core
from ..data.rows import Points
from ..data.types import Matrix, MatrixLike
from ..losses import SquaredHinge, Vector
from ..problems.binary import BinaryProblem
from ..problems.rounding import Rounding
from .ball import Ball
from .bias import Side, level_set, side_of

_SLACK, _UNIT = Rounding.slack, Rounding.unit


@dataclass(frozen=True)
class RegionSettings:
    """Tuning constants of regions."""

    #: Most columns, constant feature included, for which an ellipsoid is computed.
    most_columns: int = 2000
    #: Most times that the set of active rows of an ellipsoid grows.
    ellipsoid_rounds: int = 4
    #: Entries of a dense block of rows.
    block: int = 8_000_000
    #: With an unpenalised bias: rows by which the choices of dual variables are picked.
    sample: int = 500
    #: Most mean excess over the bounds of all choices, for which fewer will do.
    wider: float = 0.01
    #: Share of entries from which means of sparse rows are dense, for faster products.
    dense: float = 0.05


SETTINGS = RegionSettings()


@dataclass(frozen=True)
class FreeBias:
    """Bounds of a problem with an unpenalised bias."""

    #: Joint bounds on ``f*(x) - c.x`` and on ``c.x - f*(x)``, without their rows.
    upper: Side
    lower: Side
    #: The z of the upper side, and then of the lower one, shape (K, d).
    means: Matrix
    #: Bounds on the errors of z, shape (K,).
    errors: Vector
    #: Contains every optimal bias.
    interval: tuple[float, float]


@dataclass(frozen=True)
class LinearRegion:
    """Region that contains w* of every optimum of one linear problem."""

    #: Weights of the features at the centre of the ball, shape (d,).
    centre: Vector
    #: Constant of the decisions there; 0 if the bias is not penalised.
    intercept: float
    #: Value of the constant feature; 0 for none, or if the bias is not penalised.
    constant: float
    #: As in :class:`~dualgap.answers.ball.Ball`.
    radius: float
    squared_radius: float = 0.0
    offset: float = 0.0
    #: None unless the bias is not penalised.
    free: FreeBias | None = None
    ellipsoid: Ellipsoid | None = None

    def coef_bounds(self) -> tuple[Vector, Vector]:
        """Return bounds on the weights of the features at the optimum, (d,) each."""
        size = self.radius + 4 * _UNIT * np.abs(self.centre)
        lower, upper = self.centre - size, self.centre + size
        if self.ellipsoid is not None:
            d = len(self.centre)
            middle = self.ellipsoid.centre[:d]
            units = np.eye(d, len(self.ellipsoid.centre))
            size = self.ellipsoid.widths(Points.of(units))
            size += 4 * _UNIT * np.abs(middle)
            lower = np.maximum(lower, middle - size)
            upper = np.minimum(upper, middle + size)
        return lower, upper


def region_of(ball: Ball, points: Points) -> LinearRegion:
    """Return the region of a ball, and whatever narrows it.

    `ball` belongs to a linear binary or regression problem. `points`: the rows of the
    problem.
    """
    problem: BinaryProblem = ball.problem
    d = problem.d
    sizes = (ball.radius, ball.squared_radius, ball.offset)
    centre = ball.centre[:d].copy()
    if problem.free_bias:
        free = _free_bias(ball, points.X)
        return LinearRegion(centre, 0.0, 0.0, *sizes, free=free)
    _, intercept = problem.coef(ball.centre)
    return LinearRegion(
        centre, intercept, problem.intercept_scaling if problem.width > d else 0.0,
        *sizes, ellipsoid=ellipsoid_of(ball, points),
    )  # fmt: skip


def _free_bias(ball: Ball, X: MatrixLike) -> FreeBias:
    interval = level_set(ball)
    sides, errors = [], [np.empty(0)]
    means: list[Matrix] = [np.empty((0, X.shape[1]))]
    lengths = np.sqrt(ball.squares)
    some = np.random.default_rng(0).permutation(len(lengths))[: SETTINGS.sample]
    for sign in (1, -1):
        side = side_of(ball, sign) if ball.radius < math.inf else Side.nothing()
        if len(side.sigma):
            mean, error = means_of(side, X, lengths)
            far = distances(X[some], mean, lengths[some], most_entries(X))
            costs = side.level + side.cost(far, ball.squared_radius, ball.offset)
            kept = _needed(costs)
            side = side.some(kept)
            means.append(mean[kept])
            errors.append(error[kept])
        sides.append(replace(side, rows=side.rows[:0], mu=side.mu[:, :0]))
    if any(map(sparse.issparse, means)):
        table = sparse.vstack(means, format="csr")
        if table.nnz >= SETTINGS.dense * np.prod(table.shape):
            table = table.toarray()
    else:
        table = np.vstack(means)
    upper, lower = sides
    return FreeBias(upper, lower, table, np.concatenate(errors), interval)


def _needed(costs: NDArray[np.float64]) -> list[int]:
    """Return few columns whose least entries are nearly as low as of all columns.

    `costs`: bounds of K choices at n rows, shape (n, K).
    """
    best = costs.min(axis=1)
    excess = (costs - best[:, None]) / np.maximum(np.abs(best), 1e-300)[:, None]
    kept: list[int] = []
    left = np.full(len(costs), np.inf)
    while len(kept) < costs.shape[1] and left.mean() > SETTINGS.wider:
        new = np.minimum(excess, left[:, None])
        kept.append(int(new.mean(axis=0).argmin()))
        left = new[:, kept[-1]]
    return sorted(kept)


def means_of(side: Side, X: MatrixLike, lengths: Vector) -> tuple[Matrix, Vector]:
    """Return the z of a side, shape (K, d), and bounds on their errors, (K,).

    `X`: the rows of the problem, shape (n, d). `lengths`: their lengths, shape (n,).
    """
    rows = X[side.rows]
    if sparse.issparse(rows):
        mean = (sparse.csr_matrix(side.mu) @ rows.astype(np.float64)).tocsr()
    else:
        mean = side.mu @ rows.astype(np.float64)
    many = len(side.rows) + 16
    return mean, _SLACK * many * _UNIT * (side.mu @ lengths[side.rows])


def linear_bounds(
    regions: Sequence[LinearRegion], X: MatrixLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds on the decisions of every optimum, for several problems.

    All regions have the same constant feature. `X`: shape (n, d). The lower and the
    upper bounds have shape (n, len(regions)). Raises TypeError or ValueError if X is
    not a matrix of finite real numbers.
    """
    points = Points.of(X, regions[0].constant)
    X, entries = points.X, most_entries(points.X)
    lengths = np.sqrt(points.q)
    lengths *= 1.0 + (entries + 8) * _UNIT
    lengths += 2.0**-500  # far above all underflow
    coef = np.stack([region.centre for region in regions])
    # One vector is faster than a matrix of one column.
    values = X @ coef[0] if len(coef) == 1 else X @ coef.T
    values = np.asarray(values, np.float64).reshape(len(lengths), len(coef))
    lower, upper = np.empty_like(values), np.empty_like(values)
    for k, region in enumerate(regions):
        middle, low, high = values[:, k], lower[:, k], upper[:, k]
        middle += region.intercept
        size = math.sqrt(float(region.centre @ region.centre)) + abs(region.intercept)
        # Rounding of the product and of the sums below. The constant feature may be far
        # smaller than the intercept.
        each = _SLACK * (entries + 16) * _UNIT * size
        own = 16 * _UNIT * abs(region.intercept)
        if region.free is None:
            width = lengths * (region.radius * (1.0 + 16 * _UNIT) + each)
            width += own
            np.subtract(middle, width, out=low)
            np.add(middle, width, out=high)
        else:
            below, above = _free_bounds(region, X, lengths, entries)
            np.subtract(middle - each * lengths, below, out=low)
            np.add(middle + each * lengths, above, out=high)
            low -= 4 * _UNIT * np.abs(low)
            high += 4 * _UNIT * np.abs(high)
        if region.ellipsoid is not None:
            _narrow(region.ellipsoid, points, entries, low, high)
    return lower, upper


def _free_bounds(
    region: LinearRegion, X: MatrixLike, lengths: Vector, entries: int
) -> tuple[Vector, Vector]:
    """Return bounds on ``c.x - f*(x)`` and ``f*(x) - c.x`` with an unpenalised bias."""
    free = region.free
    assert free is not None
    low, high = free.interval
    reach = region.radius * lengths
    far = distances(X, free.means, lengths, entries)  # one product for both sides
    far += free.errors
    middle = len(free.upper.sigma)
    above = free.upper.above(far[:, :middle], region.squared_radius, region.offset)
    below = free.lower.above(far[:, middle:], region.squared_radius, region.offset)
    return np.minimum(below, reach - low), np.minimum(above, reach + high)


def distances(
    X: MatrixLike, means: Matrix, lengths: Vector, entries: int
) -> NDArray[np.float64]:
    """Return upper bounds on the distances ``||x_i - z_k||``, shape (n, K)."""
    is_sparse = sparse.issparse(means)
    products = X @ means.T
    products = products.toarray() if sparse.issparse(products) else products
    norms = means.multiply(means).sum(axis=1) if is_sparse else (means**2).sum(axis=1)
    norms = np.asarray(norms, np.float64).ravel()
    more = 1.0 + 2.0 * _SLACK * (entries + 16) * _UNIT
    far: NDArray[np.float64] = np.asarray(products, np.float64)
    far *= -2.0
    far += more * norms
    far += (more * lengths**2)[:, None]
    np.maximum(far, 0.0, out=far)
    return np.sqrt(far, out=far)


def _narrow(
    ellipsoid: Ellipsoid, points: Points, entries: int, low: Vector, high: Vector
) -> None:
    """Intersect bounds with the bounds of an ellipsoid, in place."""
    X, constant = points.X, points.constant
    centre = ellipsoid.centre
    d = X.shape[1]
    middle = np.asarray(X @ centre[:d], np.float64)
    if constant:
        middle = middle + constant * centre[d]
    size = math.sqrt(float(centre @ centre))
    width = ellipsoid.widths(points)
    width += _SLACK * (entries + 24) * _UNIT * size * np.sqrt(points.q)
    width *= 1.0 + 8 * _UNIT
    np.maximum(low, middle - width, out=low)
    np.minimum(high, middle + width, out=high)


def most_entries(X: MatrixLike) -> int:
    """Return the largest number of stored entries of a row."""
    if not sparse.issparse(X):
        return int(X.shape[1])
    return int(np.diff(X.indptr).max()) if X.shape[0] else 0


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
    for _ in range(SETTINGS.ellipsoid_rounds):
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
