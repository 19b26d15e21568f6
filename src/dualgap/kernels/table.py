"""Kernel matrices that are computed once, for many problems over the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ..core import FoldTable, Stop, StoppedError
from ..core import Gram as CoreGram
from ..data.rows import Points
from ..losses import Vector
from .functions import Kernel, Precomputed
from .gram import Gram, Matrix, operations

# Bytes of a value in a table, and in the cache of a problem.
_VALUE, _CACHED = 8, 4


@dataclass(frozen=True)
class KernelTableSettings:
    """Tuning constants of tables."""

    #: Rows of the table that are computed at a time.
    rows_at_once: int = 256
    #: Values of the table that are copied at a time.
    values_at_once: int = 1_000_000
    #: Mean number of consecutive rows from which they are not copied.
    least_run: int = 16
    #: Values of dense rows with fewer features are computed faster than read. Measured
    #: on columns of usps, with 2,000 and 5,000 rows.
    least_features: int = 50
    #: Cost of making a value of a table, besides its computation, in features. Measured
    #: with 4,500 to 7,494 rows of 16 to 300 features, and 2 to 10 classes.
    making: int = 600
    #: Cost of a value's memory at its first use; other kernels use it again.
    touching: int = 1500
    #: What a value of a table saves each fit besides its computation, in features: the
    #: folds share their steps. Measured with these rows, and 1 to 5 values of C.
    sharing: int = 50
    #: Rows of a table that always pays. Separate fits of so few rows go on to rounding.
    always: int = 3000


SETTINGS = KernelTableSettings()


@dataclass(frozen=True)
class Tabulated(Precomputed):
    """Kernel of a table: a precomputed kernel with the properties of another one."""

    of: Kernel
    #: Largest number of stored entries of a row.
    entries: int

    @property
    def positive(self) -> bool:
        return self.of.positive

    def roundings(self, entries: int) -> float:
        return self.of.roundings(self.entries)


class KernelTable(Matrix):
    """Kernel matrix of the rows of X in memory, in float64.

    Values that the core computes are computed once for each pair of rows.

    A certificate over it is about the matrix as computed, as with a precomputed kernel.

    `cache_size`: megabytes of float32 rows for each problem over this matrix. `last`: a
    table that is not used any more; if it has as many rows, its memory is used again.
    Raises StoppedError if `stop` ends the computation early.
    """

    values: Vector
    #: Rounded to float32, once they are used.
    floats: NDArray[np.float32] | None = None

    def __init__(
        self,
        gram: Matrix,
        cache_size: float,
        stop: Stop,
        last: KernelTable | None = None,
    ) -> None:
        self.n, self.cache_size = gram.n, cache_size
        entries = gram.source()[0].shape[1]
        self.kernel: Kernel = Tabulated(gram.kernel, entries)
        if isinstance(gram.kernel, Precomputed):
            self.kernel = gram.kernel
        if last is not None and last.n == self.n:
            self.values, self.floats = last.values, last.floats
        else:
            self.values = np.empty((self.n, self.n))
        step, symmetric = SETTINGS.rows_at_once, gram.kernel.form is not None
        every, piece = np.arange(self.n, dtype=np.uint32), np.empty(step * self.n)
        for begin in range(0, self.n, step):
            if stop.requested or stop.expired:
                raise StoppedError
            rows = slice(begin, begin + step)
            first = begin if symmetric else 0
            some = every[rows]
            many = len(some) * (self.n - first)
            gram.core.block(some, every[first:], piece[:many])
            values = piece[:many].reshape(len(some), -1)
            self.values[rows, first:] = values
            if not symmetric:
                continue
            for left in range(begin + step, self.n, step):  # tiles stay in the cache
                columns = slice(left, left + step)
                tile = values[:, left - first : left - first + step]
                self.values[columns, rows] = tile.T

    def parts(
        self, rows: NDArray[np.intp]
    ) -> Iterator[tuple[NDArray[np.intp], Vector]]:
        """Yield some rows at a time: where they are in `rows`, and their values.

        Runs of consecutive rows are views.
        """
        order = np.argsort(rows, kind="stable")
        runs = np.split(order, np.flatnonzero(np.diff(rows[order]) != 1) + 1)
        if len(runs) * SETTINGS.least_run <= len(rows):
            for run in runs:
                yield run, self.values[rows[run[0]] : rows[run[-1]] + 1]
            return
        step = max(1, SETTINGS.values_at_once // self.n)
        for begin in range(0, len(rows), step):
            some = np.arange(begin, min(begin + step, len(rows)))
            yield some, self.values[rows[some]]

    @cached_property
    def core(self) -> CoreGram:
        return self._make_core(2)

    def source(self) -> tuple[Vector, None]:
        return self.values, None

    @cached_property
    def for_folds(self) -> FoldTable:
        """The values, also rounded to float32, for problems over runs of rows."""
        if self.floats is None:
            self.floats = np.empty(self.values.shape, np.float32)
        self.floats[:] = self.values
        return FoldTable(self.values, self.floats)

    def diagonal(self) -> NDArray[np.float64]:
        return self.values.diagonal().copy()

    def _times(self, c: Vector, stop: Stop | None) -> NDArray[np.float64]:
        used = np.flatnonzero(c)
        # A sparse product adds the rows that are needed without copying them.
        coef = csr_array((c[used], used, [0, len(used)]), shape=(1, self.n))
        return (coef @ self.values)[0]


def shared_matrix(
    points: Points,
    kernel: Kernel,
    cache_size: float,
    threads: int,
    stop: Stop,
) -> KernelTable | Gram:
    """Return a kernel matrix that many problems share.

    It is computed at once if `cache_size` holds it in float64, and for each thread the
    float32 rows of a problem, and if its values cost more to compute than to read.
    Otherwise each problem has a cache of rows of its own.

    - `kernel`: its gamma is resolved.
    - `cache_size`: megabytes.
    - `threads`: number of problems in use at the same time.
    """
    n, d = points.X.shape
    dense = kernel.form is not None and not issparse(points.X)
    cheap = dense and d < SETTINGS.least_features
    # An eighth of the cache of a problem is for the matrix of its working set.
    room = _CACHED * n * n * 8 / 7 + 1e5
    left = cache_size * 1e6 - _VALUE * n * n
    if left >= threads * room and not cheap:
        return KernelTable(Gram(points, kernel, cache_size), left / threads / 1e6, stop)
    return Gram(points, kernel, cache_size / threads)


def table_pays(points: Points, kernel: Kernel, values: float, kernels: int) -> bool:
    """Return whether fits that need many kernel values should read them from a table.

    `values`: kernel values that the fits compute without a table, all together.
    `kernels`: number of kernels of the search.
    """
    n = points.X.shape[0]
    if kernel.form is None or n <= SETTINGS.always:
        return True
    cost = operations(points.X)
    table = cost + SETTINGS.making + SETTINGS.touching / kernels
    return values * (cost + SETTINGS.sharing) > n**2 * table


def whole_table(
    points: Points,
    rows: NDArray[np.intp],
    kernel: Kernel,
    cache_size: float,
    room: float,
    stop: Stop,
    last: KernelTable | None = None,
) -> KernelTable | None:
    """Return the kernel matrix of some rows, or None if `cache_size` does not hold it.

    `points`, `kernel`, `cache_size`: as for :func:`shared_matrix`. `rows`: rows of the
    matrix, in its order. `room`: bytes to leave. `last`: as for :class:`KernelTable`.
    """
    left = cache_size * 1e6 - _VALUE * len(rows) ** 2
    if left < room:
        return None
    if isinstance(kernel, Precomputed):
        gram: Matrix = Gram(points, kernel, cache_size).subset(rows)
    else:
        gram = Gram(points[rows], kernel, cache_size)
    return KernelTable(gram, left / 1e6, stop, last)


def values_at(
    matrix: KernelTable | Gram,
    rows: NDArray[np.intp],
    coef: Vector,
    stop: Stop | None,
) -> Vector:
    """Return ``sum_j coef_pj k(x_j, x_i)`` for some rows i, shape (len(rows), p)."""
    if isinstance(matrix, KernelTable):
        found = np.empty((len(rows), len(coef)))
        for some, values in matrix.parts(rows):
            found[some] = values @ coef.T
        return found
    return np.stack([matrix.times(c, stop, rows) for c in coef], axis=1)
