"""Rows of the kernel matrix on demand: one by one in a cache, or many from the core.

The matrix holds no labels, so all binary problems over the same rows share it.
"""

from __future__ import annotations

import logging
import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .. import core
from ..checks import refuse_huge
from ..core import Gram as CoreGram
from ..core import GramStatistics, KernelRows, Stop, StoppedError
from ..core import Rows as Accessor
from ..data.rows import Points
from ..data.types import Matrix as Data
from ..data.types import MatrixLike
from .functions import Block, Kernel, Precomputed

logger = logging.getLogger("dualgap")

Order = NDArray[np.uint32]

_MEGABYTE = 1_000_000
# Bookkeeping bytes of the cache: per row of X, and per cached row.
_PER_ROW, _PER_CACHED_ROW = 4, 48
#: Rows of a kernel that Python computes, for sums of rows.
_TOGETHER = 32


class Matrix:
    """Base class of the kernel matrices :class:`Gram` and :class:`Pair`.

    - `kernel`: its gamma is resolved.
    - `n`: rows and columns of the matrix.
    - `cache_size`: limit of the cache in megabytes.
    - `core`: rows and cache, made on first use. Threads that share it wait for each
      other.
    - `fast`: computes many rows at a time, and sums of rows. None if Python computes
      the kernel.
    - `accessor`: row accessor of the data. None if Python computes the kernel.
    - `columns`: rows of this matrix among the rows of the core; None for all.
    """

    kernel: Kernel
    n: int
    cache_size: float
    accessor: Accessor | None = None
    columns: NDArray[np.uint32] | None = None

    @cached_property
    def core(self) -> CoreGram:
        return self._make_core(_capacity(self.n, self.cache_size))

    @cached_property
    def fast(self) -> KernelRows | None:
        return None if self.kernel.form is None else kernel_rows(self)

    @property
    def bounded(self) -> bool:
        """Whether :meth:`times` bounds the rounding errors of kernel values."""
        return self.fast is not None and bool(self.fast.bounded)

    def _make_core(self, capacity: int) -> CoreGram:
        if self.fast is not None:
            return core.Gram(self.fast, capacity)
        # A strong reference from the core would be a cycle that the garbage collector
        # cannot see.
        rows = core.PythonRows(self.n, partial(_entries_of, weakref.ref(self)))
        return core.Gram(rows, capacity)

    def source(self) -> tuple[Data, NDArray[np.uint32] | None]:
        """Return the data and the numbers of the rows in use; None for all rows."""
        raise NotImplementedError

    @property
    def statistics(self) -> GramStatistics:
        """Rows found in the cache, rows computed, and values computed, so far."""
        return self.core.statistics

    def row(self, i: int) -> Block:
        """Return ``k(x_i, x_j)`` for all j, float32; a row is cached once computed."""
        out = np.empty(self.n, dtype=np.float32)
        self.core.row(i, out)
        return out

    def block(self, rows: ArrayLike, columns: ArrayLike | None = None) -> Block:
        """Compute ``k(x_i, x_j)`` for the rows i and columns j, without the cache.

        The result is float64. `columns` are all by default.
        """
        every = np.arange(self.n) if columns is None else columns
        rows, every = _order(rows, self.n), _order(every, self.n)
        out = np.empty((len(rows), len(every)))
        self.core.block(rows, every, out.reshape(-1))
        return out

    def diagonal(self) -> NDArray[np.float64]:
        """Return ``k(x_i, x_i)``, shape (n,), float64."""
        raise NotImplementedError

    def times(
        self,
        c: NDArray[np.float64],
        stop: Stop | None = None,
        at: NDArray[np.integer] | None = None,
        errors: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Return ``sum_j c_j k(x_j, x_i)`` for the rows i, with float64 kernel values.

        - `at`: the rows i; all by default.
        - `errors`: if the matrix is `bounded`, filled with bounds on the distances of
          the sums from the sums over exact kernel values.

        Raises StoppedError if `stop` ends the computation early.
        """
        if self.fast is None:
            whole = self._times(c, stop)
            return whole if at is None else whole[at]
        used, stop = np.flatnonzero(c), stop or Stop()
        rows = None if at is None else at.astype(np.uint32)
        out = np.zeros(len(c) if rows is None else len(rows))
        if not self.fast.times(
            used.astype(np.uint32), c[used], rows, out, errors, stop
        ):
            raise StoppedError
        return out

    def _times(self, c: NDArray[np.float64], stop: Stop | None) -> NDArray[np.float64]:
        """Return the sums of :meth:`times` at all rows, for kernels of Python."""
        used = np.flatnonzero(c)
        rows = used.astype(np.uint32)
        out = np.zeros(len(c))
        for begin in range(0, len(used), _TOGETHER):
            some = slice(begin, begin + _TOGETHER)
            # einsum adds the products one by one, whatever the number of threads.
            out += np.einsum("i,ij->j", c[used[some]], self.entries(rows[some]))
            if stop is not None and (stop.requested or stop.expired):
                raise StoppedError
        return out

    def subset(self, indices: ArrayLike) -> Subset:
        """Return the kernel matrix of some rows, over the cache of this matrix."""
        return Subset(self, _order(indices, self.n))

    def entries(
        self, rows: Order, columns: Order | None = None, precise: bool = True
    ) -> Block:
        """Return entries of a kernel that Python computes, for the core.

        They are float64 if `precise`. Else they are computed in the dtype of X and
        returned as float32. Without `columns` the entries of all columns are returned.
        """
        X, named = self.source()
        if named is not None:
            rows, columns = named[rows], named if columns is None else named[columns]
        dtype = np.float64 if precise else None
        if isinstance(self.kernel, Precomputed):
            out = self.kernel.block(X, rows, dtype=dtype)
            out = out if columns is None else out.take(columns, axis=1)
        else:
            Y = None if columns is None else X[columns]
            out = self.kernel.block(X, rows, Y, dtype)
        return np.ascontiguousarray(out, dtype=np.float64 if precise else np.float32)


class Gram(Matrix):
    """Kernel matrix of the rows of X, computed row by row on demand.

    Rows are float32, so a cached row takes 4 n bytes. Values that enter a certificate
    are computed in float64 and not cached. Besides the cache it keeps one float32 copy
    of X: dense, or by column if less than a fifth of the entries is stored.

    Parameters
    ----------
    X : ndarray, sparse matrix or Points of shape (n, d), float32 or float64
        For a precomputed kernel, the kernel matrix of shape (n, n).
    kernel : Kernel
        A gamma rule is resolved for X.
    cache_size : float, default=200
        Hard limit of the cache in megabytes (10**6 bytes).

    Attributes
    ----------
    X : ndarray or CSR matrix
    kernel : Kernel
    n : int

    Raises
    ------
    ValueError
        If X holds values that are not finite, a precomputed matrix is not square,
        `cache_size` does not hold two rows, or squared row norms overflow float32.
    TypeError
        If X is neither an array nor a sparse matrix.
    """

    def __init__(self, X: MatrixLike, kernel: Kernel, cache_size: float = 200) -> None:
        refuse_huge("cache_size", cache_size)
        if not (isinstance(cache_size, (int, float)) and cache_size > 0):
            raise ValueError(
                f"cache_size={cache_size!r}: give a positive number of megabytes"
            )
        points = points_of(X, kernel)
        self.X = points.X
        self.kernel = kernel.resolve(self.X)
        self.cache_size = cache_size
        self.n = self.X.shape[0]
        _capacity(self.n, cache_size)
        if self.kernel.form is not None:
            self.accessor = _accessor(points, self.kernel)

    def source(self) -> tuple[Data, None]:
        return self.X, None

    def diagonal(self) -> NDArray[np.float64]:
        return self.kernel.diagonal(self.X)


class Pairs:
    """Kernel matrices of all pairs of classes.

    Every thread works on its own pair, with its part of the cache. Pairs share the
    diagonal, but no kernel rows: computing a row again costs little beside the step
    that uses it.

    - `X`: rows sorted by class, shape (n, d); the whole matrix if the kernel is
      precomputed.
    - `kernel`: its gamma is resolved.
    - `bounds`: class c has the rows bounds[c] to bounds[c + 1] - 1, at least one.
    - `cache_size`: hard limit of all caches together in megabytes (10**6 bytes).
    - `threads`: number of pairs in use at the same time.
    - `order`: rows of a precomputed matrix, sorted by class.
    """

    def __init__(
        self,
        X: MatrixLike,
        kernel: Kernel,
        bounds: Sequence[int],
        cache_size: float = 200,
        threads: int = 1,
        order: NDArray[np.intp] | None = None,
    ) -> None:
        self.points = points = points_of(X, kernel)
        self.kernel, self.bounds = kernel, list(bounds)
        self.order = order
        self.cache_size = cache_size / threads
        sizes = np.diff(self.bounds)
        largest = int(np.sort(sizes)[-2:].sum())
        _capacity(largest, self.cache_size, threads)
        self.diagonal: NDArray[np.float64] | None = None
        self.accessor: Accessor | None = None
        if kernel.form is not None:
            self.diagonal = kernel.diagonal(points.X)
            self.accessor = _accessor(points, kernel)

    def pair(self, a: int, b: int) -> Pair | Gram:
        """Return the kernel matrix of the rows of class a followed by class b."""
        if self.kernel.form is None and self.order is None:
            return Gram(self.points[self.rows(a, b)], self.kernel, self.cache_size)
        return Pair(self, a, b)

    def rows(self, a: int, b: int) -> NDArray[np.intp]:
        """Return the numbers of the rows of class a followed by class b."""
        return np.concatenate(
            [np.arange(self.bounds[k], self.bounds[k + 1]) for k in (a, b)]
        )


class Pair(Matrix):
    """Kernel matrix of two classes; see :meth:`Pairs.pair`."""

    def __init__(self, pairs: Pairs, a: int, b: int) -> None:
        self.pairs, self.kernel, self.classes = pairs, pairs.kernel, (a, b)
        self.rows = pairs.rows(a, b)
        self.n = len(self.rows)
        self.cache_size = pairs.cache_size
        self.accessor = pairs.accessor
        if pairs.order is not None:
            self.rows = pairs.order[self.rows]

    def source(self) -> tuple[Data, NDArray[np.uint32]]:
        return self.pairs.points.X, self.rows.astype(np.uint32)

    def diagonal(self) -> NDArray[np.float64]:
        if self.pairs.diagonal is None:
            return self.kernel.diagonal(self.pairs.points.X)[self.rows]
        return self.pairs.diagonal[self.rows]


class Subset(Matrix):
    """Kernel matrix of some rows of another matrix; see :meth:`Gram.subset`."""

    columns: NDArray[np.uint32]

    def __init__(self, parent: Matrix, columns: NDArray[np.uint32]) -> None:
        self.parent, self.columns = parent, columns
        self.cache_size = parent.cache_size
        self.accessor = parent.accessor
        self.kernel, self.n = parent.kernel, len(columns)

    @cached_property
    def core(self) -> CoreGram:
        return self.parent.core

    def source(self) -> tuple[Data, NDArray[np.uint32]]:
        X, rows = self.parent.source()
        return X, self.columns if rows is None else rows[self.columns]

    def row(self, i: int) -> Block:
        return self.parent.row(int(self.columns[i]))[self.columns]

    def block(self, rows: ArrayLike, columns: ArrayLike | None = None) -> Block:
        some = (
            self.columns if columns is None else self.columns[_order(columns, self.n)]
        )
        return self.parent.block(self.columns[_order(rows, self.n)], some)

    def diagonal(self) -> NDArray[np.float64]:
        return self.parent.diagonal()[self.columns]

    def subset(self, indices: ArrayLike) -> Subset:
        return Subset(self.parent, self.columns[_order(indices, self.n)])


def roundings_of_values(gram: Matrix) -> float:
    """Return a bound on the rounding errors of the values in :meth:`Matrix.times`.

    It is in units of ``2**-53 sqrt(k_ii k_jj)``; see :meth:`Kernel.roundings`. The sums
    of a `bounded` matrix come with their own bounds instead.
    """
    X, _ = gram.source()
    entries = X.shape[1]
    if sparse.issparse(X):
        entries = int(np.diff(X.indptr).max())
    return gram.kernel.roundings(entries)


def _accessor(points: Points, kernel: Kernel) -> Accessor:
    """Return the core's accessor of rows.

    A float32 kernel row may overflow, but rows of exponential kernels never do.
    """
    products = kernel.form is not None and kernel.name not in ("rbf", "laplacian")
    if products and not float(points.q.max()) <= float(np.finfo(np.float32).max):
        raise ValueError(
            "X has rows whose squared norm leaves the range of float32; rescale the "
            "features"
        )
    return points.accessor


def _entries_of(
    matrix: weakref.ref[Matrix], rows: Order, columns: Order | None, precise: bool
) -> Block:
    whole = matrix()
    assert whole is not None
    return whole.entries(rows, columns, precise)


def _per_row(n: int) -> int:
    """Return the bytes of a cached row of n values."""
    return 4 * n + _PER_CACHED_ROW


def rows_in(cache_size: float, n: int) -> int:
    """Return how many rows of n float32 values fit into `cache_size` megabytes.

    Bookkeeping is counted, and n is rounded up to whole panels of 32.
    """
    stride = -(-n // 32) * 32
    return max(0, int((cache_size * _MEGABYTE - _PER_ROW * n) // _per_row(stride)))


def _capacity(n: int, cache_size: float, threads: int = 1) -> int:
    """Return how many rows of n values fit into `cache_size` megabytes."""
    capacity = int((cache_size * _MEGABYTE - _PER_ROW * n) // _per_row(n))
    if capacity < 2:
        several = f" for each of {threads} threads" if threads > 1 else ""
        least = threads * (_PER_ROW * n + 2 * _per_row(n))
        raise ValueError(
            f"cache_size={cache_size * threads!r} does not hold two rows of {n} "
            f"values{several}; give {math.ceil(least / _MEGABYTE)} or more megabytes"
        )
    return capacity


def _order(indices: ArrayLike, n: int) -> NDArray[np.uint32]:
    indices = np.asarray(indices)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or len(indices) == 0:
        raise ValueError("indices: give a nonempty list of row numbers")
    if indices.min() < 0 or indices.max() >= n:
        raise ValueError(f"indices: give row numbers from 0 to {n - 1}")
    return indices.astype(np.uint32)


def points_of(X: MatrixLike, kernel: Kernel) -> Points:
    """Return the rows of X, inspected unless X is :class:`Points` already."""
    points = Points.of(X)
    if sparse.issparse(points.X) and not points.X.has_canonical_format:
        X = points.X.copy()
        X.sum_duplicates()
        points = replace(points, X=X)
    shape = points.X.shape
    if shape[0] == 0:
        raise ValueError("X has 0 rows; at least one example is needed")
    if isinstance(kernel, Precomputed) and shape[0] != shape[1]:
        raise ValueError(
            f"X has shape {shape}; give a square kernel matrix with one row and one "
            "column per example"
        )
    return points


@dataclass(frozen=True)
class KernelRowSettings:
    """Costs that decide between dense (packed) and sparse (scattered) rows.

    A kernel value of packed rows costs d operations. Measured billions of float32
    values per second, scattered and packed: covtype (12 of 54 entries stored) 0.87 and
    1.69, a9a (14 of 123) 0.76 and 0.80, w8a (12 of 300) 0.64 and 0.33.
    """

    #: Operations for each stored entry of scattered rows: memory is not read in order.
    entry: int = 4
    #: Operations for each value of scattered rows.
    value: int = 64


SETTINGS = KernelRowSettings()


def row_source(gram: Matrix, threads: int = 1) -> core.RowSource:
    """Return an object that computes many rows of a kernel matrix at a time."""
    if gram.kernel.form is not None:
        return kernel_rows(gram, threads)
    return core.PythonRows(gram.n, gram.entries)


def kernel_rows(gram: Matrix, threads: int = 1) -> core.KernelRows:
    """Return :func:`row_source` of a kernel that the core computes."""
    X, columns = gram.source()
    assert gram.accessor is not None
    assert gram.kernel.form is not None
    return core.KernelRows(gram.accessor, gram.kernel.form, columns, packs(X), threads)


def packs(X: MatrixLike) -> bool:
    """Return whether dense packed rows of X are faster than sparse products."""
    return not sparse.issparse(X) or X.shape[1] <= _scattered(X)


def operations(X: MatrixLike) -> float:
    """Return the operations for a kernel value of rows of X."""
    return float(X.shape[1] if packs(X) else _scattered(X))


def _scattered(X: MatrixLike) -> float:
    """Return the operations for a kernel value by sparse products."""
    return SETTINGS.entry * X.nnz / X.shape[0] + SETTINGS.value
