"""Decision values of one-versus-one kernel models.

    f_ij(x) = sum_{s in classes i and j} c_{s,ij} k(x_s, x) + b_ij

All pairs share the kernel values. While they are in registers they are multiplied by
the K - 1 coefficients of each support vector, in LIBSVM's layout. Kernels that Python
computes are evaluated in tiles of queries by support vectors. A linear kernel is one
product with the weights of the features.

Accuracy: all sums are in float64. Linear, polynomial and sigmoid kernels, precomputed
matrices and Python functions give float64 kernel values. Values of rbf and laplacian
have an error of at most 1e-8, or 1e-4 if both rows and support vectors are float32; the
error of a decision is then at most ``1e-4 sum_s |c_s|``. The bound follows from the
distances of the support vectors to their centre and holds for all queries. Support
vectors for which float32 products would break the bound use float64 products, or
differences if these break it too (``src/core/gram/points.hpp``).

Cost: n nSV (2 d + 2 (K - 1)) operations. Memory besides data and result: twice 16 MB of
sums, 16 MB of packed vectors, and 32 packed queries per thread. A kernel that Python
computes takes a few arrays of at most 8 MB instead.

Packing the vectors costs as much as some 30 queries. Calls with fewer keep the packed
vectors for the next one, in this module and not in the model, so that pickles and
copies have none. Every call compares a fingerprint of all that was packed, because
arrays can be changed in place.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from threading import Lock

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse

from .. import core
from ..blas import limited
from ..data.rows import accessor_of
from ..data.types import Matrix, MatrixLike
from ..losses import Vector
from ..memory import BLAS, make_room_for
from .functions import RBF, Kernel, Laplacian, Linear, Precomputed, products
from .gram import packs


@dataclass(frozen=True)
class KernelSumSettings:
    """Tuning constants of the sums."""

    #: Bytes of the kernel values of a tile, which then stay in the processor's cache.
    tile_bytes: int = 4_000_000
    #: Most rows of a tile.
    tile_rows: int = 512
    #: Fewest columns of a tile: narrower products lose more than they gain.
    tile_columns: int = 512
    #: Sums of classes that are computed at a time: memory of this size is used again.
    sums: int = 2_000_000
    #: Fewest rows whose sums are computed at a time: they share the packed vectors.
    least_rows: int = 32
    #: Most entries of a dense array of weights for sparse vectors.
    dense_weights: int = 8_000_000
    #: Most rows for which packed vectors are kept; for more, packing costs little.
    few_rows: int = 32
    #: Bytes of the packed vectors of a model that may be kept.
    kept_model: int = 16_000_000
    #: Bytes of the packed vectors of all models that may be kept.
    kept: int = 64_000_000
    #: Bytes that a model counts at least, which bounds the number of models.
    kept_least: int = 64_000


SETTINGS = KernelSumSettings()


@dataclass(frozen=True)
class _Tile:
    """Some support vectors, and the slices that belong to each class."""

    columns: slice
    vectors: Matrix
    classes: list[tuple[int, slice]]


def pair_values(
    kernel: Kernel,
    X: MatrixLike,
    vectors: Matrix,
    dual_coef: Vector,
    n_support: NDArray[np.integer],
    intercept: Vector,
    *,
    support: NDArray[np.integer] | None = None,
    n_jobs: int | None = None,
    settings: KernelSumSettings = SETTINGS,
) -> Vector:
    """Return the decision values of all pairs of classes.

    - `kernel`: its gamma is resolved.
    - `X`: rows, shape (n, d); with a precomputed kernel, k(x, x_s) for all training
      rows, shape (n, n_train).
    - `vectors`: support vectors, sorted by class, shape (n_SV, d). Not used with a
      precomputed kernel.
    - `dual_coef`: coefficients in LIBSVM's layout: a vector of class i has its
      coefficient against class j in row j - 1 if i < j, in row j if j < i, shape (K -
      1, n_SV).
    - `n_support`: number of support vectors of each class, shape (K,).
    - `intercept`: bias of each pair, shape (K (K - 1) / 2,).
    - `support`: training rows of the support vectors, for a precomputed kernel, shape
      (n_SV,).
    - `n_jobs`: threads over the queries. The result does not depend on it.

    The columns are the pairs (0, 1), (0, 2), ..., (K - 2, K - 1), shape (n, K (K - 1) /
    2).
    """
    n, classes = X.shape[0], len(n_support)
    dtype = np.dtype(np.float64)
    if isinstance(kernel, Linear):
        weights = pair_weights(vectors, dual_coef, n_support)
        accessor_of(X)  # refuses wrong indices, and values that are not finite
        return products(X, weights) + intercept
    out = np.empty((len(intercept), n))
    if kernel.form is not None:
        most = max(settings.least_rows, settings.sums // (classes * (classes - 1)))
        if n > most:
            accessor_of(X)  # so that an error names a row of X, not of a part
        for begin in range(0, n, most):
            part = slice(begin, begin + most)
            some = X if n <= most else X[part]
            sums = _class_sums(kernel, some, vectors, dual_coef, n_support, n_jobs)
            _add_classes(sums, out[:, part])
        out += intercept[:, None]
        return out.T
    queries = min(settings.tile_rows, max(1, n))
    width = settings.tile_bytes // (dtype.itemsize * queries)
    width = max(settings.tile_columns, width)
    if isinstance(kernel, Precomputed):
        assert support is not None
        vectors = support
    tiles = list(_tiles(vectors, n_support, width))
    coef = np.ascontiguousarray(dual_coef.T)

    def fill(begin: int) -> None:
        rows = slice(begin, min(begin + queries, n))
        some = X[rows]
        sums = np.zeros((classes, classes - 1, rows.stop - begin))
        for tile in tiles:
            if isinstance(kernel, Precomputed):
                values = some[:, tile.vectors]
            else:
                values = kernel.block(some, slice(None), tile.vectors, dtype)
            c = coef[tile.columns]
            for k, part in tile.classes:
                sums[k] += (values[:, part] @ c[part]).T
        _add_classes(sums, out[:, rows])

    starts = range(0, n, queries)
    threads = min(effective_n_jobs(n_jobs), max(1, len(starts)))
    make_room_for(threads, BLAS)
    # The BLAS library has its own threads, which would multiply `threads`.
    alone = limited(1) if threads > 1 else contextlib.nullcontext()
    with alone:
        if threads == 1:
            for begin in starts:
                fill(begin)
        else:
            from sklearn.utils.parallel import Parallel, delayed

            Parallel(n_jobs=threads, require="sharedmem")(
                delayed(fill)(begin) for begin in starts
            )
    out += intercept[:, None]
    return out.T


def single_values(
    kernel: Kernel,
    X: MatrixLike,
    vectors: Matrix,
    dual_coef: Vector,
    intercept: float,
    *,
    support: NDArray[np.integer] | None = None,
    n_jobs: int | None = None,
) -> Vector:
    """Return ``sum_s dual_coef_s k(x_s, x) + intercept`` at every row x.

    `dual_coef`: shape (1, n_SV). `kernel`, `X`, `vectors`, `support`, `n_jobs`: as for
    :func:`pair_values`. The result has shape (n,).
    """
    many = dual_coef.shape[1]
    if many == 0:
        return np.full(X.shape[0], intercept)
    # One model is a pair whose second class has no support vector.
    counts, constant = np.array([many, 0]), np.array([intercept])
    values = pair_values(
        kernel, X, vectors, dual_coef, counts, constant, support=support, n_jobs=n_jobs
    )
    return values.ravel()


def pair_weights(
    vectors: Matrix, dual_coef: Vector, n_support: NDArray[np.integer]
) -> Matrix:
    """Return the weights of the features in the decisions of all pairs.

    `vectors`, `dual_coef`, `n_support`: as for :func:`pair_values`. The result is
    sparse if the vectors are sparse and a dense array would be larger than they are
    (and larger than 64 MB), shape (K (K - 1) / 2, d).
    """
    classes, d = len(n_support), vectors.shape[1]
    pairs = classes * (classes - 1) // 2
    wide = sparse.issparse(vectors) and pairs * d > SETTINGS.dense_weights
    if wide and pairs * d > vectors.nnz:
        return pair_coef(dual_coef, n_support) @ vectors.astype(np.float64)
    sums = np.zeros((classes, classes - 1, d))
    core.class_weights(
        accessor_of(vectors),
        np.ascontiguousarray(dual_coef),
        np.cumsum(n_support, dtype=np.int64),
        sums.reshape(-1, d),
    )
    out = np.empty((pairs, d))
    _add_classes(sums, out)
    return out


def _add_classes(sums: Vector, out: Vector) -> None:
    """Add up the sums over the two classes of every pair.

    `sums`: sums over the support vectors of each class, in LIBSVM's layout, shape (K, K
    - 1, m). `out` is overwritten, shape (K (K - 1) / 2, m).
    """
    end = 0
    for i in range(len(sums) - 1):  # the pairs (i, i + 1), ..., (i, K - 1)
        begin, end = end, end + len(sums) - 1 - i
        np.add(sums[i, i:], sums[i + 1 :, i], out=out[begin:end])


def pair_coef(dual_coef: Vector, n_support: NDArray[np.integer]) -> sparse.csr_matrix:
    """Return the coefficients of all pairs, shape (K (K - 1) / 2, n_SV)."""
    ends = np.cumsum(n_support)
    of = [slice(end - many, end) for end, many in zip(ends, n_support, strict=True)]
    pairs = list(combinations(range(len(n_support)), 2))
    coef = np.zeros((len(pairs), dual_coef.shape[1]))
    for p, (i, j) in enumerate(pairs):
        coef[p, of[i]] = dual_coef[j - 1, of[i]]
        coef[p, of[j]] = dual_coef[i, of[j]]
    return sparse.csr_matrix(coef)


def _class_sums(
    kernel: Kernel,
    X: MatrixLike,
    vectors: Matrix,
    dual_coef: Vector,
    n_support: NDArray[np.integer],
    n_jobs: int | None,
) -> Vector:
    """Return ``sum_s coef_rs k(x_s, x)`` over the support vectors s of every class.

    The result has shape (K, K - 1, n). The vectors are packed, kernel values are
    multiplied by all coefficients in registers, and the threads share the queries.
    """
    dense = not sparse.issparse(X) or packs(vectors)
    single = isinstance(kernel, RBF | Laplacian)
    precise = not single or np.result_type(X.dtype, vectors.dtype) == np.float64
    coef = np.ascontiguousarray(dual_coef)
    sums = np.zeros((len(n_support), len(coef), X.shape[0]))
    flat = sums.reshape(-1, X.shape[0])
    if dense and X.shape[0] <= SETTINGS.few_rows:
        packed = _KEPT.packed(kernel, vectors, coef, n_support, precise)
        if packed is not None:
            packed.times(accessor_of(X), flat)
            return sums
    queries, points = accessor_of(X), accessor_of(vectors)
    assert kernel.form is not None
    core.kernel_times(
        kernel.form,
        points,
        coef,
        np.cumsum(n_support, dtype=np.int64),
        queries,
        flat,
        core.ProductSettings(dense, precise, effective_n_jobs(n_jobs)),
        core.Stop(),
    )
    return sums


@dataclass
class _Kept:
    """Packed vectors of the models that predicted few rows last.

    They live no longer than the array of the vectors does.
    """

    #: By the id of the vectors: a reference to them, the key, the size and the packing.
    entries: dict[int, tuple[weakref.ref[Matrix], object, int, core.PackedVectors]] = (
        field(default_factory=dict)
    )
    lock: Lock = field(default_factory=Lock)

    def packed(
        self,
        kernel: Kernel,
        vectors: Matrix,
        coef: Vector,
        n_support: NDArray[np.integer],
        precise: bool,
    ) -> core.PackedVectors | None:
        """Return the packed vectors; None if they would take too much memory."""
        n, d = vectors.shape
        size = n * (d + len(coef)) * (8 if precise else 4)
        if size > SETTINGS.kept_model:
            return None
        key = (kernel, precise, n_support.tobytes(), coef.shape, *_prints_of(coef))
        key += (vectors.shape, *_prints_of(vectors))
        entry = self.entries.get(id(vectors))
        if entry is not None and entry[0]() is vectors and entry[1] == key:
            return entry[3]
        ends = np.cumsum(n_support, dtype=np.int64)
        points = accessor_of(vectors)
        assert kernel.form is not None
        packed = core.PackedVectors(kernel.form, points, coef, ends, precise)
        me = id(vectors)
        alive = weakref.ref(vectors, lambda _: self.entries.pop(me, None))
        with self.lock:
            self.entries.pop(me, None)
            self.entries[me] = alive, key, max(size, SETTINGS.kept_least), packed
            while sum(entry[2] for entry in [*self.entries.values()]) > SETTINGS.kept:
                self.entries.pop(next(iter(self.entries)), None)
        return packed


_KEPT = _Kept()


def _prints_of(X: Matrix) -> list[tuple[object, ...]]:
    """Return type, length and fingerprint of the arrays that hold a matrix."""
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    return [
        (
            a.dtype,
            a.size,
            core.fingerprint(np.ascontiguousarray(a).reshape(-1).view(np.uint8)),
        )
        for a in arrays
    ]


def _tiles(
    vectors: Matrix, n_support: NDArray[np.integer], width: int
) -> Iterator[_Tile]:
    ends = np.cumsum(n_support)
    for begin in range(0, int(ends[-1]), width):
        end = min(begin + width, int(ends[-1]))
        parts = []
        for k, last in enumerate(ends):
            first = last - n_support[k]
            low, high = max(begin, int(first)), min(end, int(last))
            if low < high:
                parts.append((k, slice(low - begin, high - begin)))
        yield _Tile(slice(begin, end), vectors[begin:end], parts)
