"""Removal of empty columns of sparse data before a fit."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .rows import Points, check_indices
from .types import MatrixLike

logger = logging.getLogger("dualgap")

#: Columns per stored entry from which columns are renumbered. Sorting the entries then
#: costs less than a few epochs over the long vector of coefficients.
_FEW = 16


class StoredColumns:
    """View of X that leaves out empty columns, if there are very many of them.

    The coefficient of an empty column is 0 at the optimum. Solvers keep several vectors
    with an entry per column and go through them in every epoch, so very wide sparse
    data are trained on their non-empty columns, in the same order.

    `X`: the rows over the remaining columns; the given X if none is left out.
    """

    def __init__(self, X: MatrixLike, narrow: bool = True) -> None:
        self.X, self._d, self._columns = X, 0, None
        points = X if isinstance(X, Points) else None
        X = X if points is None else points.X
        self._sparse = sparse.issparse(X) or bool(getattr(X, "is_sparse", False))
        if not narrow or not sparse.issparse(X):
            return
        if X.shape[1] <= _FEW * (X.nnz + X.shape[0]):
            return
        if points is None:  # renumbering would hide an index that is out of range
            check_indices(X)
        X = X.tocsr()
        self._d = X.shape[1]
        self._columns, indices = np.unique(X.indices, return_inverse=True)
        width = max(len(self._columns), 1)
        arrays = (X.data, indices.astype(X.indices.dtype, copy=False), X.indptr)
        kept = sparse.csr_matrix(arrays, shape=(X.shape[0], width))
        self.X = kept if points is None else replace(points, X=kept)
        logger.info(
            "X has %d columns, of which %d are not empty; the fit uses only these",
            self._d,
            len(self._columns),
        )

    @property
    def kept(self) -> slice | NDArray[np.intp]:
        """The remaining columns, as an index."""
        return slice(None) if self._columns is None else self._columns

    def spread(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return coefficients for all columns, in the last axis; 0 for empty ones.

        Coefficients of sparse rows are in Fortran order, in which SciPy multiplies
        sparse rows by ``coef.T`` without copying it.
        """
        if self._columns is None:
            return np.asfortranarray(coef) if self._sparse else coef
        out = np.zeros((*coef.shape[:-1], self._d), order="F")
        out[..., self._columns] = coef[..., : len(self._columns)]
        return out
