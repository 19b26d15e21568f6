"""Regions that contain every optimum of kernel problems, and bounds on decisions there.

A region keeps the dual variables of the centre. With an unpenalised bias it also keeps
a few rows near the margin, at most `SETTINGS.most_rows` on each side, which may be
training rows that are no support vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from ..data.types import MatrixLike
from ..kernels.functions import RBF, Kernel, Laplacian, Polynomial, Precomputed, Sigmoid
from ..kernels.gram import Gram, roundings_of_values
from ..losses import Vector
from ..problems.kernel_matrix import MatrixProblem, check_positive
from ..problems.rounding import Rounding
from .ball import Ball
from .bias import Side, level_set, side_of

_SLACK, _UNIT = Rounding.slack, Rounding.unit


@dataclass(frozen=True)
class KernelRegionSettings:
    """Tuning constants of bounds on kernel decisions."""

    #: Most rows of each joint bound.
    most_rows: int = 200
    #: Kernel values of a block.
    block: int = 2_000_000


SETTINGS = KernelRegionSettings()

#: Error of a kernel value that the core computes from exponentials, for float64 rows.
_OF_EXPONENTIALS = 1e-8


@dataclass(frozen=True)
class BiasSide:
    """One side of the bounds on an unpenalised bias, with the rows that it needs."""

    side: Side
    #: The rows of the side, shape (m, d).
    vectors: Any
    #: Upper bounds on ``||z_k||^2``, shape (K,).
    norms: Vector


@dataclass(frozen=True)
class KernelRegion:
    """Region that contains the optimum of one kernel problem."""

    #: Rows of the problem with a dual variable at the centre, shape (m,).
    rows: NDArray[np.intp]
    #: ``s_i alpha_i`` of these rows, shape (m,).
    coef: Vector
    #: Penalised bias of the centre; 0 if the bias is not penalised.
    intercept: float
    #: 1 if the bias is penalised, else 0.
    constant: float
    #: ``sum_i |alpha_i| ||x_i||``.
    reach: float
    #: As in :class:`~dualgap.answers.ball.Ball`.
    radius: float
    squared_radius: float
    #: Upper and lower side, where the bias is not penalised.
    near: tuple[BiasSide, BiasSide] | None = None
    #: Contains every optimal unpenalised bias.
    interval: tuple[float, float] = (0.0, 0.0)


def kernel_region_of(ball: Ball, X: MatrixLike) -> KernelRegion:
    """Return the region of a ball.

    `ball` belongs to a kernel problem. `X`: the rows of the problem, shape (n, d).
    """
    problem, alpha = ball.problem, ball.alpha
    signed = alpha * ball.signs
    rows = np.flatnonzero(alpha)
    reach = float(np.abs(alpha) @ problem.lengths)
    own = float(signed.sum()) if problem.constant else 0.0
    sizes = (reach, ball.radius, ball.squared_radius)
    first = KernelRegion(rows, signed[rows], own, problem.constant, *sizes)
    if not problem.free_bias:
        return first
    near = None
    if ball.radius < math.inf:
        near = (_near(ball, X, 1), _near(ball, X, -1))
    return KernelRegion(
        rows, signed[rows], 0.0, 0.0, *sizes, near=near, interval=level_set(ball)
    )


def _near(ball: Ball, X: MatrixLike, sign: int) -> BiasSide:
    problem = ball.problem
    side = side_of(ball, sign, SETTINGS.most_rows)
    vectors = X[side.rows].astype(np.float64)
    kernel = problem.gram.kernel
    norms = np.empty(0)
    if len(side.rows):
        matrix = kernel.block(vectors, slice(None), vectors, np.float64)
        norms = np.einsum("ki,ij,kj->k", side.mu, matrix, side.mu)
        norms += problem.shift * (side.mu**2).sum(axis=1)
        most = float(np.abs(matrix).max())
        norms += _error(kernel, vectors, most, len(side.rows))
    return BiasSide(side, vectors, np.maximum(norms, 0.0))


def _error(kernel: Kernel, X: MatrixLike, size: float, terms: int) -> float:
    """Bound the error of a mean of kernel values up to `size`."""
    off = _OF_EXPONENTIALS if isinstance(kernel, (RBF, Laplacian)) else 0.0
    entries = X.shape[1]
    each = kernel.roundings(entries) + terms + 32
    return _SLACK * (off + each * _UNIT * size)


def refuse_new_rows(kernel: Kernel) -> None:
    """Raise an error if decisions at new rows have no bounds with this kernel.

    Such bounds need k(x, x) of a new row x. They are true only if the matrix of the
    training rows and x together is positive semidefinite, which the check of the
    training rows does not show.
    """
    name = f"kernel={kernel.name!r}"
    if isinstance(kernel, Precomputed):
        raise ValueError(
            f"{name} has no bounds on decisions, because they need k(x, x)"
            " of every new row; give the kernel as a function of two matrices"
        )
    if isinstance(kernel, Sigmoid | Polynomial) and not kernel.positive:
        raise ValueError(
            f"{name} has no bounds on decisions, because its matrix may be indefinite "
            "once new rows are added; use 'rbf', 'laplacian', 'linear', or 'poly' with "
            "coef0 >= 0"
        )


def check_new_rows(kernel: Kernel, vectors: MatrixLike, X: MatrixLike) -> None:
    """Refuse a user's kernel that is indefinite on old and new rows together."""
    refuse_new_rows(kernel)
    if not kernel.positive:
        sparse = issparse(vectors) or issparse(X)
        both = vstack([vectors, X], "csr") if sparse else np.vstack([vectors, X])
        check_positive(Gram(both, kernel))


def kernel_bounds(
    region: KernelRegion, kernel: Kernel, X: MatrixLike, values: Vector
) -> tuple[Vector, Vector]:
    """Return bounds on the decisions of every optimum of one problem.

    - `X`: shape (n, d).
    - `values`: ``sum_i s_i alpha_i k(x_i, x)`` of the region, from
      :func:`~dualgap.kernels.predict.pair_values`, shape (n,).

    Both bounds have shape (n,).
    """
    squares = np.maximum(kernel.diagonal(X), 0.0)
    largest = float(squares.max()) if len(squares) else 0.0
    squares = squares + _error(kernel, X, largest, 0)
    lengths = np.sqrt(squares)
    total = float(np.abs(region.coef).sum())
    off = _OF_EXPONENTIALS if isinstance(kernel, (RBF, Laplacian)) else 0.0
    many = kernel.roundings(X.shape[1]) + len(region.coef) + 32
    error = _SLACK * (off * total + many * _UNIT * region.reach * lengths)
    if region.near is None and region.interval == (0.0, 0.0):
        reach = region.radius * np.sqrt(squares + region.constant)
        middle = values + region.intercept
        error = error + (len(region.coef) + 4) * _UNIT * total + reach
        return _outward(middle - error, middle + error)
    reach = region.radius * lengths
    low, high = region.interval
    above, below = reach + high, reach - low
    if region.near is not None:
        ends = []
        for near, end in zip(region.near, (above, below), strict=True):
            far = _distances(kernel, X, near, squares)
            joint = near.side.above(far, region.squared_radius, 0.0)
            ends.append(np.minimum(end, joint))
        above, below = ends
    return _outward(values - below - error, values + above + error)


def _outward(lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    few = 8 * _UNIT
    return lower - few * np.abs(lower), upper + few * np.abs(upper)


def _distances(
    kernel: Kernel, X: MatrixLike, near: BiasSide, squares: Vector
) -> NDArray[np.float64]:
    """Return upper bounds on ``||x_i - z_k||``, shape (n, K)."""
    side, m = near.side, len(near.side.rows)
    out = np.empty((X.shape[0], len(side.sigma)))
    if not m:
        return out
    step = max(1, SETTINGS.block // m)
    largest = float(near.norms.max()) + float(squares.max(initial=0.0))
    more = 4.0 * _error(kernel, X, largest, m)
    for begin in range(0, X.shape[0], step):
        span = slice(begin, begin + step)
        products = kernel.block(X, span, near.vectors, np.float64) @ side.mu.T
        squared = squares[span, None] - 2.0 * products + near.norms
        out[span] = np.sqrt(np.maximum(squared, 0.0) + more)
    return out


def matrix_distances(
    problem: MatrixProblem, side: Side, at: NDArray[np.intp], lengths: Vector
) -> NDArray[np.float64]:
    """Return upper bounds on ``||x_i - z_k||`` for rows of a problem, (len(at), K).

    - `side`: its rows are rows of the problem.
    - `at`: rows i, none of which is a row of the side.
    - `lengths`: upper bounds on their lengths, shape (len(at),).
    """
    gram, rows, mu = problem.gram, side.rows, side.mu
    own, products = gram.block(rows, rows), gram.block(at, rows) @ mu.T
    norms = np.einsum("ki,ij,kj->k", mu, own, mu, optimize=True)
    norms += problem.shift * (mu * mu).sum(axis=1)
    most = float(np.abs(own).max(initial=0.0)) + float(lengths.max(initial=0.0)) ** 2
    off = _OF_EXPONENTIALS if isinstance(gram.kernel, (RBF, Laplacian)) else 0.0
    each = roundings_of_values(gram) + 2 * len(rows) + 32
    squared = lengths[:, None] ** 2 - 2.0 * products + norms
    more = 4.0 * _SLACK * (off + each * _UNIT * most)
    return np.sqrt(np.maximum(squared, 0.0) + more)
