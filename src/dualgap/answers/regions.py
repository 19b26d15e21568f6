"""Regions that contain every optimum of linear problems, and bounds on decisions there.

A region keeps a few vectors of the width of the model and no training rows: the centre
of the ball, with an unpenalised bias also means z of some rows
(:mod:`~dualgap.answers.bias`), and for the squared hinge an ellipsoid
(:mod:`~dualgap.answers.ellipsoid`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..data.rows import Points
from ..data.types import Matrix, MatrixLike
from ..losses import Vector
from ..problems.binary import BinaryProblem
from ..problems.rounding import Rounding
from .ball import Ball
from .bias import Side, level_set, side_of
from .ellipsoid import Ellipsoid, ellipsoid_of

_SLACK, _UNIT = Rounding.slack, Rounding.unit


@dataclass(frozen=True)
class FreeBiasSettings:
    """Tuning constants of the bounds with an unpenalised bias."""

    #: Training rows by which the choices of dual variables are picked.
    sample: int = 500
    #: Most mean excess over the bounds of all choices, for which fewer will do.
    wider: float = 0.01
    #: Share of entries from which means of sparse rows are dense, for faster products.
    dense: float = 0.05


SETTINGS = FreeBiasSettings()


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
