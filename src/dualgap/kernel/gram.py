"""Rows of the kernel matrix on demand, the least recently used ones forgotten first.

The matrix holds no labels, so all binary problems over the same rows share it.
"""

from __future__ import annotations

import logging
import math
import weakref
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .. import core
from ..problem import _rows
from .functions import Block, Kernel, Precomputed

logger = logging.getLogger("dualgap")

_MEGABYTE = 1_000_000
# Bytes of the cache besides its rows: per row of X, and per row held.
_PER_ROW, _PER_CACHED_ROW = 4, 48


class Statistics(NamedTuple):
    """What a :class:`Gram` has done: rows found, rows computed, kernel values."""

    hits: int
    misses: int
    evaluations: int


class Gram:
    """The kernel matrix of the rows of X, computed row by row when asked for.

    Rows are float32 (a cached row costs 4 n bytes); what decides a certificate is
    computed in float64 and not held. Besides the cache it keeps one float32 copy of
    X: dense, or by column when less than a fifth of X is stored.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d), float32 or float64
        For a precomputed kernel the matrix itself, of shape (n, n).
    kernel : Kernel
        Its gamma is resolved for X.
    cache_size : float, default=200
        Hard limit of the cache in megabytes (10**6 bytes).

    Attributes
    ----------
    X : ndarray or CSR matrix
    kernel : Kernel
    n : int
    core : core.Gram
        Rows and cache. Threads that share it wait for each other.

    Raises
    ------
    ValueError
        If X holds values that are not finite, a precomputed matrix is not square, or
        `cache_size` does not hold two rows.
    TypeError
        If X is neither an array nor a sparse matrix.
    """

    def __init__(self, X: Any, kernel: Kernel, cache_size: float = 200) -> None:
        if not (isinstance(cache_size, (int, float)) and cache_size > 0):
            raise ValueError(f"cache_size={cache_size!r}: give megabytes, more than 0")
        self.X = as_data(X, kernel)
        self.kernel = kernel.resolve(self.X)
        self.cache_size = cache_size
        self.n: int = self.X.shape[0]
        bytes_ = cache_size * _MEGABYTE - _PER_ROW * self.n
        capacity = int(bytes_ // (4 * self.n + _PER_CACHED_ROW))
        if capacity < 2:
            least = (_PER_ROW + 8) * self.n + 2 * _PER_CACHED_ROW
            raise ValueError(
                f"cache_size={cache_size!r} does not hold two rows of {self.n} values; "
                f"give {math.ceil(least / _MEGABYTE)} or more megabytes"
            )
        form = self.kernel.form
        if form is None:
            # The core holds this object weakly: the collector does not see through it.
            me = weakref.ref(self)
            self.core = core.python_gram(
                self.n, capacity, partial(_rows_of, me), partial(_entries_of, me)
            )
        else:
            rows, _, _ = _rows(self.X, 0.0)
            self.core = core.rows_gram(rows, *form, capacity)

    @property
    def columns(self) -> NDArray[np.uint32] | None:
        """Its rows among those of the core; None for all."""
        return None

    @property
    def statistics(self) -> Statistics:
        """Cached rows found, rows computed, and kernel values computed, so far."""
        return Statistics(*self.core.statistics)

    def row(self, i: int) -> Block:
        """``k(x_i, x_j)`` for all j, float32, shape (n,), from the cache or into it."""
        out = np.empty(self.n, dtype=np.float32)
        self.core.row(i, out)
        return out

    def block(self, rows: ArrayLike, columns: ArrayLike | None = None) -> Block:
        """``k(x_i, x_j)`` for the rows i and columns j (all when left out), computed.

        Returns
        -------
        ndarray of shape (len(rows), len(columns)), float64
        """
        every = np.arange(self.n) if columns is None else columns
        rows, every = _order(rows, self.n), _order(every, self.n)
        out = np.empty((len(rows), len(every)))
        self.core.block(rows, every, out.reshape(-1))
        return out

    def diagonal(self) -> NDArray[np.float64]:
        """``k(x_i, x_i)``, shape (n,), float64."""
        return self.kernel.diagonal(self.X)

    def times(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        """``sum_j c_j k(x_j, x_i)`` for all i, every value in float64; shape (n,)."""
        used = np.flatnonzero(c)
        out = np.zeros(self.n)
        self.core.add_times(used.astype(np.uint32), c[used], None, out)
        return out

    def subset(self, indices: ArrayLike) -> Subset:
        """The kernel matrix of some rows, over the cache of this one."""
        return Subset(self, _order(indices, self.n))


class Subset:
    """Some rows and columns of a :class:`Gram`; see :meth:`Gram.subset`."""

    def __init__(self, parent: Gram, columns: NDArray[np.uint32]) -> None:
        self.parent, self.columns = parent, columns
        self.core = parent.core
        self.kernel, self.n = parent.kernel, len(columns)

    @property
    def statistics(self) -> Statistics:
        """Those of the whole matrix."""
        return self.parent.statistics

    def row(self, i: int) -> Block:
        """As :meth:`Gram.row`."""
        return self.parent.row(int(self.columns[i]))[self.columns]

    def block(self, rows: ArrayLike, columns: ArrayLike | None = None) -> Block:
        """As :meth:`Gram.block`."""
        some = (
            self.columns if columns is None else self.columns[_order(columns, self.n)]
        )
        return self.parent.block(self.columns[_order(rows, self.n)], some)

    def diagonal(self) -> NDArray[np.float64]:
        """As :meth:`Gram.diagonal`."""
        return self.parent.diagonal()[self.columns]

    def times(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        """As :meth:`Gram.times`."""
        used = np.flatnonzero(c)
        out = np.zeros(self.n)
        self.core.add_times(self.columns[used], c[used], self.columns, out)
        return out

    def subset(self, indices: ArrayLike) -> Subset:
        """Some of these rows."""
        return Subset(self.parent, self.columns[_order(indices, self.n)])


def _rows_of(gram: weakref.ref[Gram], rows: Any) -> Block:
    whole = gram()
    assert whole is not None
    return whole.kernel.block(whole.X, rows, dtype=np.float64)


def _entries_of(gram: weakref.ref[Gram], rows: Any, columns: Any) -> Block:
    whole = gram()
    assert whole is not None
    if isinstance(whole.kernel, Precomputed):
        return np.ascontiguousarray(_rows_of(gram, rows)[:, columns])
    return whole.kernel.block(whole.X, rows, whole.X[columns], dtype=np.float64)


def _order(indices: ArrayLike, n: int) -> NDArray[np.uint32]:
    indices = np.asarray(indices)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or len(indices) == 0:
        raise ValueError("indices: give a list of row numbers, at least one")
    if indices.min() < 0 or indices.max() >= n:
        raise ValueError(f"indices: give row numbers from 0 to {n - 1}")
    return indices.astype(np.uint32)


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
        X = np.require(X, X.dtype.newbyteorder("="), ["C", "A"])
    if X.shape[0] == 0:
        raise ValueError("X has 0 rows; at least one example is needed")
    if isinstance(kernel, Precomputed) and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X has shape {X.shape}: a precomputed kernel matrix is square, one row "
            "and one column per example"
        )
    return X
