"""Columns of a matrix, and the products of some of them, for L1 norms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .. import core
from ..data.types import Matrix
from ..losses import Vector
from ..memory import make_room


@dataclass(frozen=True)
class ColumnsSettings:
    """Times of products of columns, as parts of the time of an entry in a descent."""

    #: Of a term of the products of dense columns.
    fast: float = 0.03
    #: Of a pair of columns in a descent by products.
    of_pair: float = 0.1
    #: Of a term of the products of sparse ones.
    by_rows: float = 0.7


SETTINGS = ColumnsSettings()


class Columns:
    """The columns of a problem, which an accessor over its transposed rows reads.

    `of`: the accessor. `X`: what it reads, shape (width, n). `rows`: the accessor over
    the rows of shape (n, d) with the constant feature.
    """

    def __init__(self, X: Matrix, constant: float, rows: core.Rows) -> None:
        n, d = X.shape
        kind = X.dtype if X.dtype.type(constant) == constant else np.dtype(np.float64)
        size = X.nnz * 12 if sparse.issparse(X) else X.size * kind.itemsize
        make_room(size, "a copy of X by columns", "train on fewer rows")
        if sparse.issparse(X):
            self.X = X.T.tocsr().astype(kind, copy=False)
            if constant:
                last = sparse.csr_matrix(np.full((1, n), constant, kind))
                self.X = sparse.vstack([self.X, last], "csr", kind)
        else:
            self.X = np.empty((rows.width, n), kind)
            self.X[:d] = X.T
            self.X[d:] = constant
        self.of, self.rows = _accessor(self.X), rows


def _accessor(X: Matrix) -> core.Rows:
    if sparse.issparse(X):
        return core.csr_rows(X.data, X.indices, X.indptr, X.shape[1], 0.0)
    return core.dense_rows(X, 0.0)


class Part:
    """Some columns, and the sums of the products of every two of them.

    `of`: an accessor. `X`: what it reads, shape (m, n). `H`: the sums for the second
    derivatives `h`, which later ones change where they changed.
    """

    def __init__(self, columns: Columns, chosen: NDArray[np.uint32]) -> None:
        self.chosen, self.every = chosen, np.arange(len(chosen), dtype=np.uint32)
        whole = len(chosen) == columns.X.shape[0]
        self.X = columns.X if whole else columns.X[chosen]
        self.of = columns.of if whole else _accessor(self.X)
        self.counts = np.full(self.X.shape[1], float(len(chosen)))  # entries of rows
        if sparse.issparse(self.X):
            self.counts = np.bincount(self.X.indices, minlength=len(self.counts)) * 1.0
        self.h: Vector | None = None  # without sums

    @cached_property
    def rows(self) -> sparse.csr_matrix:
        """Return the sparse entries by rows, in which columns ascend."""
        return self.X.T.tocsr()

    @cached_property
    def by_rows(self) -> core.Rows:
        """Return an accessor over the entries by rows."""
        return _accessor(self.rows)

    def few_products(self, h: Vector, sweeps: float, most: int) -> bool:
        """Whether products of at most `most` columns cost few sweeps, or exist."""
        if len(self.chosen) > most or self.h is not None:
            return self.h is not None
        counts = self.counts[h > 0.0]
        speed = SETTINGS.by_rows if sparse.issparse(self.X) else SETTINGS.fast
        return speed * float(counts @ counts) <= sweeps * float(counts.sum())

    def slow_products(self, h: Vector) -> bool:
        """Whether a sweep by products takes longer than one by columns."""
        entries = float(self.counts[h > 0.0].sum())
        return SETTINGS.of_pair * len(self.every) ** 2 > entries

    def among(self, h: Vector) -> tuple[core.Rows, NDArray[np.intp]]:
        """Return an accessor over the columns at the rows with a positive h_i."""
        some = np.flatnonzero(h)
        if 2 * len(some) > len(h):
            return self.of, np.arange(len(h))
        if sparse.issparse(self.X):
            return _accessor(self.rows[some].T.tocsr()), some
        return _accessor(np.ascontiguousarray(self.X[:, some])), some

    def sums(self, v: Vector, stop: core.Stop) -> Vector:
        """Return ``sum_i v_i x_ij``."""
        sums, some = np.zeros(len(self.every)), np.flatnonzero(v).astype(np.uint32)
        if "rows" in vars(self) and 2 * len(some) < len(v):
            core.add_columns(self.by_rows, some, v, sums)
        else:
            core.column_products(self.of, self.every, v, sums, stop)
        return sums

    def image(self, w: Vector) -> Vector:
        """Return ``sum_j w_j x_ij``."""
        image = np.zeros(self.X.shape[1])
        core.add_columns(self.of, self.every, w, image)
        return image

    def products(self, h: Vector, stop: core.Stop, stale: float = 0.0) -> Vector:
        """Return ``sum_i h_i x_ij x_ik``, where no h_i is off by more than a part."""
        if self.h is None:
            self.h, self.H = np.zeros(len(h)), np.zeros((len(self.every),) * 2)
        change = np.where(np.abs(h - self.h) > stale * h, h - self.h, 0.0)
        some = np.flatnonzero(change)
        if sparse.issparse(self.X):
            if not core.add_products(self.by_rows, change, self.H, stop):
                self.h = None
                return self.H
        elif 2 * len(some) < np.count_nonzero(h):
            own = self.X[:, some]
            self.H += (own * change[some]) @ own.T
        else:
            some = np.flatnonzero(h)
            own = self.X if len(some) == len(h) else self.X[:, some]
            own = own * np.sqrt(h[some])
            self.H = np.ascontiguousarray(own @ own.T)
            self.h[:] = 0.0
        self.h[some] = h[some]
        return self.H
