"""Rows of the kernel matrix on demand, the least recently used ones forgotten first.

The matrix holds no labels, so all binary problems over the same rows share it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..problem import _rows
from .functions import Block, Kernel, Precomputed

logger = logging.getLogger("dualgap")

_MEGABYTE = 1_000_000
# Entries of one block of a full scan: 32 MB in float64.
_SCAN = 4_000_000


@dataclass
class Statistics:
    """What a :class:`Gram` has done: rows found, rows computed, kernel values."""

    hits: int = 0
    misses: int = 0
    evaluations: int = 0


class Gram:
    """The kernel matrix of the rows of X, computed row by row when asked for.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d), float32 or float64
        For a precomputed kernel the matrix itself, of shape (n, n).
    kernel : Kernel
        Its gamma is resolved for X.
    cache_size : float, default=200
        Hard limit of the cached rows in megabytes (10**6 bytes). Rows are float32,
        4 n bytes each; two rows are always held.

    Attributes
    ----------
    X : ndarray or CSR matrix
    kernel : Kernel
    n : int
    """

    def __init__(self, X: Any, kernel: Kernel, cache_size: float = 200) -> None:
        if not (isinstance(cache_size, (int, float)) and cache_size > 0):
            raise ValueError(f"cache_size={cache_size!r}: give megabytes, more than 0")
        self.X = as_data(X, kernel)
        self.kernel = kernel.resolve(self.X)
        self.cache_size = cache_size
        self.n: int = self.X.shape[0]
        self.statistics = Statistics()
        self._capacity = max(2, int(cache_size * _MEGABYTE) // (4 * self.n))
        self._rows: OrderedDict[int, Block] = OrderedDict()

    def row(self, i: int) -> Block:
        """``k(x_i, x_j)`` for all j, float32, shape (n,); not to be written to."""
        found = self._rows.get(i)
        if found is not None:
            self.statistics.hits += 1
            self._rows.move_to_end(i)
            return found
        while len(self._rows) >= self._capacity:
            self._rows.popitem(last=False)
        out = self.kernel.block(self.X, [i], dtype=np.float32)[0]
        self.statistics.misses += 1
        self.statistics.evaluations += self.n
        self._rows[i] = out
        return out

    def block(self, rows: Any, columns: Any = None, dtype: Any = np.float64) -> Block:
        """``k(x_i, x_j)`` for the rows i and columns j (all when left out), computed.

        Returns
        -------
        ndarray of shape (len(rows), len(columns))
        """
        rows = np.asarray(rows)
        if isinstance(self.kernel, Precomputed):
            out = self.kernel.block(self.X, rows, dtype=dtype)
            out = out if columns is None else out[:, columns]
        else:
            Y = None if columns is None else self.X[columns]
            out = self.kernel.block(self.X, rows, Y, dtype=dtype)
        self.statistics.evaluations += out.size
        return out

    def diagonal(self) -> NDArray[np.float64]:
        """``k(x_i, x_i)``, shape (n,), float64."""
        return self.kernel.diagonal(self.X)

    def times(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        """``sum_j c_j k(x_j, x_i)`` for all i, every value in float64; shape (n,)."""
        out = np.zeros(self.n)
        used = np.flatnonzero(c)
        size = max(1, _SCAN // max(self.n, 1))
        for start in range(0, len(used), size):
            some = used[start : start + size]
            out += c[some] @ self.block(some)
        return out

    def subset(self, indices: ArrayLike) -> Subset:
        """The kernel matrix of some rows, over the cache of this one."""
        return Subset(self, np.asarray(indices, dtype=np.int64))


class Subset:
    """Some rows and columns of a :class:`Gram`; see :meth:`Gram.subset`."""

    def __init__(self, parent: Gram, indices: NDArray[np.int64]) -> None:
        if indices.ndim != 1 or len(indices) == 0:
            raise ValueError("indices: give a list of rows, at least one")
        if indices.min() < 0 or indices.max() >= parent.n:
            raise ValueError(f"indices: give row numbers from 0 to {parent.n - 1}")
        self.parent, self.indices = parent, indices
        self.kernel, self.n = parent.kernel, len(indices)

    @property
    def statistics(self) -> Statistics:
        """Those of the whole matrix."""
        return self.parent.statistics

    def row(self, i: int) -> Block:
        """As :meth:`Gram.row`; a copy."""
        return self.parent.row(int(self.indices[i]))[self.indices]

    def block(self, rows: Any, columns: Any = None, dtype: Any = np.float64) -> Block:
        """As :meth:`Gram.block`."""
        columns = self.indices if columns is None else self.indices[columns]
        return self.parent.block(self.indices[rows], columns, dtype)

    def diagonal(self) -> NDArray[np.float64]:
        """As :meth:`Gram.diagonal`."""
        return self.parent.diagonal()[self.indices]

    def times(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        """As :meth:`Gram.times`."""
        out = np.zeros(self.n)
        used = np.flatnonzero(c)
        size = max(1, _SCAN // max(self.n, 1))
        for start in range(0, len(used), size):
            some = used[start : start + size]
            out += c[some] @ self.block(some)
        return out

    def subset(self, indices: ArrayLike) -> Subset:
        """Some of these rows."""
        return Subset(self.parent, self.indices[np.asarray(indices, dtype=np.int64)])


def as_data(X: Any, kernel: Kernel) -> Any:
    """X as a C-contiguous array or a canonical CSR matrix, float32 or float64.

    Raises
    ------
    ValueError
        If a value is not finite, or a precomputed matrix is not square.
    TypeError
        If X is neither an array nor a sparse matrix.
    """
    _rows(X, 0.0)  # refuses what is no matrix of finite numbers
    if sparse.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if not sparse.issparse(X):
        X = np.ascontiguousarray(X, dtype=X.dtype.newbyteorder("="))
    if X.shape[0] == 0:
        raise ValueError("X has 0 rows; at least one example is needed")
    if isinstance(kernel, Precomputed) and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X has shape {X.shape}: a precomputed kernel matrix is square, one row "
            "and one column per example"
        )
    return X
