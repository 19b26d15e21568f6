"""Columns of sparse rows that hold nothing, and take no part in a fit."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from scipy import sparse

from ..losses import Vector
from ..problem import check_indices

__all__ = ["StoredColumns"]

logger = logging.getLogger("dualgap")

# Columns per stored entry from which it is worth while to sort the entries by column:
# that costs less than the first few passes over so long a vector of coefficients.
_FEW = 16


class StoredColumns:
    """The columns of X that hold an entry, where these are few among all.

    A coefficient of any other column is 0 at the optimum. Solvers keep several vectors
    with an entry per column, and pass over them in every epoch, so very wide rows are
    trained over the columns that are stored, in their order.

    Parameters
    ----------
    X : ndarray, sparse matrix or RowStore of shape (n, d)

    Attributes
    ----------
    X : ndarray, sparse matrix or RowStore
        The rows over these columns; as they were given where no column is left out.
    """

    def __init__(self, X: Any) -> None:
        self.X, self._d, self._columns = X, 0, None
        if not sparse.issparse(X) or X.shape[1] <= _FEW * (X.nnz + X.shape[0]):
            return
        check_indices(X)  # numbered anew, none would be out of range
        X = X.tocsr()
        self._d = X.shape[1]
        self._columns, indices = np.unique(X.indices, return_inverse=True)
        width = max(len(self._columns), 1)
        arrays = (X.data, indices.astype(X.indices.dtype, copy=False), X.indptr)
        self.X = sparse.csr_matrix(arrays, shape=(X.shape[0], width))
        logger.info(
            "X has %d columns, of which %d hold an entry: the fit is over these",
            self._d,
            len(self._columns),
        )

    def spread(self, coef: Vector) -> Vector:
        """Coefficients of these columns, in the last axis, as those of all columns."""
        if self._columns is None:
            return coef
        out = np.zeros((*coef.shape[:-1], self._d))
        out[..., self._columns] = coef[..., : len(self._columns)]
        return out
