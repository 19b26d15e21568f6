"""Copies of active rows of a problem, and inverses of the Hessian that they give."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ..losses import Vector
from ..problems.dense import DenseRows, Floats, blocks_of


def scaled_rows(dense: DenseRows, X: Floats, squares: Vector) -> Floats:
    """Return some rows with the constant feature, times the roots of these squares."""
    scaled = np.empty((len(X), dense.width), X.dtype)
    root = np.sqrt(squares).astype(X.dtype)[:, None]
    np.multiply(X, root, out=scaled[:, : dense.d])
    if dense.constant:
        scaled[:, dense.d] = dense.constant * root[:, 0]
    return scaled


def factored(products: Floats) -> Vector | None:
    """Return the Cholesky factor of ``I + products``; None if they overflow."""
    gram = products.astype(np.float64)
    # Rounding of the products could make eigenvalues negative.
    largest = float(gram.diagonal().max(initial=0.0))
    gram[np.diag_indices(len(gram))] += 1.0 + np.finfo(products.dtype).eps * largest
    triangle, failed = lapack.dpotrf(gram, lower=1)
    return None if failed or not np.isfinite(largest) else np.asarray(triangle)


class Active(NamedTuple):
    """Copies of the active rows of a problem."""

    dense: DenseRows
    X: Floats
    cost: Floats  # relative costs

    def product(self, p: Vector, size: float) -> Vector:
        """Return the sum of ``c_i (x_i.p) x_i``, for the largest entry of p."""
        direction, total = (p / size).astype(self.X.dtype)[None], np.zeros(len(p))
        for block in blocks_of(len(self.X), kind=self.X.dtype):
            X = self.X[block]
            image = self.dense.scores(X, direction)
            image *= self.cost[block, None]
            self.dense.add_sums(X, image, total[None])
        return total * size

    def inverse(self, factor: float) -> Inverse | None:
        """Return ``(I + factor sum c_i x_i x_i')^-1``.

        None without rows, or if the products overflow.
        """
        if not len(self.X):
            return None
        scaled = scaled_rows(self.dense, self.X, factor * self.cost.astype(np.float64))
        wide = len(scaled) <= self.dense.width
        triangle = factored(scaled @ scaled.T if wide else scaled.T @ scaled)
        return None if triangle is None else Inverse(scaled if wide else None, triangle)


class Inverse(NamedTuple):
    """The matrix ``(I + Z'Z)^-1``, for few rows or columns of Z."""

    #: Z of few rows; None for few columns.
    Z: Floats | None
    #: Cholesky factor of ``I + ZZ'``, or of ``I + Z'Z``.
    factor: Vector

    def times(self, r: Vector) -> Vector:
        """Return the product with a vector."""
        if self.Z is None:
            return np.asarray(lapack.dpotrs(self.factor, r, lower=1)[0])
        image = (self.Z @ r.astype(self.Z.dtype)).astype(np.float64)
        inner = lapack.dpotrs(self.factor, image, lower=1)[0]
        return r - self.Z.T @ inner.astype(self.Z.dtype)
