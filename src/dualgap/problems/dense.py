"""Passes over dense rows that many problems share, and their proofs from one pass.

A pass multiplies blocks of rows by the vectors of all problems, as matrix products of
BLAS. Strips of blocks are added in a fixed order, so that the bits of a sum depend
neither on the number of threads nor on their timing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .. import core
from ..certificate import Bounds
from ..losses import Vector
from .batch import LinearBatch
from .rounding import Rounding, Values

S = TypeVar("S")
T = TypeVar("T")
#: Float32 for rows of float32, float64 for others.
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class DenseRowsSettings:
    """Tuning constants of the passes."""

    #: Rows of a block: their products with 100 vectors stay in the cache.
    block: int = 256
    #: The same for products in float32 alone, whose sums cost much for short blocks.
    block_of_floats: int = 1024
    #: Strips that threads share; each has sums of its own.
    strips: int = 8
    #: Up to this many entries, all rows are one block: they fit into the cache,
    small: int = 1 << 17
    #: where a row counts as at least this many.
    least_width: int = 32


SETTINGS = DenseRowsSettings()


def unchecked() -> np.errstate:
    """Return a block that does not warn of overflow, which is found afterwards."""
    return np.errstate(over="ignore", invalid="ignore")


def blocks_of(
    stop: int, start: int = 0, kind: DTypeLike = np.float64
) -> Iterator[slice]:
    """Yield the blocks of a stretch of rows, for products of this type."""
    floats = np.dtype(kind) == np.float32
    size = SETTINGS.block_of_floats if floats else SETTINGS.block
    for begin in range(start, stop, size):
        yield slice(begin, min(begin + size, stop))


class DenseRows:
    """Dense rows with a constant feature, and the threads that share their strips.

    `X`: shape (n, d). `constant`: value of the constant feature; 0 for none. `pool`:
    threads of the passes; None for the caller's own.
    """

    def __init__(
        self, X: Floats, constant: float, pool: ThreadPoolExecutor | None = None
    ) -> None:
        self.X, self.constant, self.pool, self.kind = X, constant, pool, X.dtype
        self.n, self.d = X.shape
        self.width = self.d + (constant != 0.0)
        #: Whether all rows are one block.
        self.whole = self.n * max(self.d, SETTINGS.least_width) <= SETTINGS.small
        blocks = -(-self.n // SETTINGS.block)
        each = -(-blocks // SETTINGS.strips) * SETTINGS.block
        each = self.n if self.whole else each
        self.strips = [
            slice(begin, min(begin + each, self.n)) for begin in range(0, self.n, each)
        ]

    def blocks(self, strip: slice, kind: DTypeLike = np.float64) -> Iterator[slice]:
        """Yield the blocks of a strip, for products of this type."""
        return iter([strip]) if self.whole else blocks_of(strip.stop, strip.start, kind)

    def take(self, block: slice, kind: DTypeLike) -> Floats:
        """Return the rows of a block in this type."""
        return self.X[block].astype(kind, copy=False)

    def over_strips(self, work: Callable[[slice], T]) -> Iterator[T]:
        """Yield what `work` returns for each strip, in the order of the strips."""
        return self.over(work, self.strips)

    def over(self, work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
        """Yield what `work` returns for each item, in their order; in threads."""
        if self.pool is None:
            yield from map(work, items)
            return

        def quiet(item: S) -> T:  # threads do not know the settings of others
            with unchecked():
                return work(item)

        yield from self.pool.map(quiet, items)

    def total(
        self,
        shape: tuple[int, ...],
        add: Callable[[slice, Floats, Vector], None],
        kind: DTypeLike = np.float64,
    ) -> Vector:
        """Return the sum of what ``add(block, rows, sum)`` adds for each block."""

        def of_strip(strip: slice) -> Vector:
            total = np.zeros(shape)
            for block in self.blocks(strip, kind):
                add(block, self.take(block, kind), total)
            return total

        return np.asarray(np.sum(list(self.over_strips(of_strip)), axis=0))

    @property
    def chain(self) -> int:
        """Most additions that a term of a sum over the rows passes."""
        block, strips = SETTINGS.block, SETTINGS.strips
        return (self.n if self.whole else block + self.n // (block * strips)) + 12

    def scores(self, X: Floats, W: Floats) -> Floats:
        """Return ``X W'`` of the rows X of a block, (rows, problems)."""
        scores: Floats = X @ W[:, : self.d].T
        if self.constant:
            scores += W.dtype.type(self.constant) * W[:, self.d]
        return scores

    def images(self, X: Floats, W: Floats) -> Floats:
        """Return ``W X'`` of the rows X of a block, (problems, rows)."""
        images: Floats = W[:, : self.d] @ X.T
        if self.constant:
            images += (W.dtype.type(self.constant) * W[:, self.d])[:, None]
        return images

    def add_sums(self, X: Floats, weights: Floats, out: Floats) -> None:
        """Add ``weights' X`` of the rows X of a block to `out`, (problems, width)."""
        out[:, : self.d] += weights.T @ X
        if self.constant:
            out[:, self.d] += self.constant * weights.sum(axis=0)

    def gram(self, step: int) -> Vector:
        """Return the mean of ``x x'`` over every `step`-th row, (width, width)."""

        def of_strip(strip: slice) -> Floats:
            X = self.X[strip.start : strip.stop : step]
            part = np.empty((self.width, self.width), X.dtype)
            part[: self.d, : self.d] = X.T @ X
            if self.constant:
                sums = self.constant * X.sum(axis=0)
                part[self.d, : self.d] = part[: self.d, self.d] = sums
                part[self.d, self.d] = len(X) * self.constant**2
            return part

        total = np.zeros((self.width, self.width))
        for part in self.over_strips(of_strip):
            total += part
        return total / sum(len(range(s.start, s.stop, step)) for s in self.strips)

    def gram_product(self, step: int, V: Vector) -> Vector:
        """Return the product of :meth:`gram` with vectors, (width, number)."""
        directions = V.T.astype(self.X.dtype)

        def of_strip(strip: slice) -> Vector:
            total = np.zeros(directions.shape)
            for block in self.blocks(strip):
                X = self.X[block.start : block.stop : step]
                self.add_sums(X, self.scores(X, directions), total)
            return total

        total = np.sum(list(self.over_strips(of_strip)), axis=0).T
        return total / sum(len(range(s.start, s.stop, step)) for s in self.strips)


class Proved(NamedTuple):
    """Proofs of several problems, from one pass in float64."""

    bounds: list[Bounds]
    #: The dual points, shape (problems, n).
    alpha: Vector
    #: ``y_i - x_i.w``, rounded to the type of the rows, shape (problems, n).
    residual: Floats


class _Sums(NamedTuple):
    """Sums of a strip, (problems,) each but the first, (problems, width)."""

    v: Vector
    loss: Vector
    total: Vector
    diagonal: Vector
    reach: Vector
    used: Vector


def prove_together(
    batch: LinearBatch,
    problems: Sequence[int],
    W: Vector,
    rows: DenseRows,
) -> Proved:
    """Prove bounds on P at w, and on D at the dual point that w suggests.

    That point is the best multiple of ``alpha_i = 2 c_i max(0, 1 - m_i)``, for which
    P - D is ``1/2 ||gradient||^2`` (docs/certificate-proof.md).

    - `batch`: problems with the squared hinge and a penalised bias.
    - `W`: shape (problems, width).
    """
    alpha, unit = np.empty((len(W), rows.n)), Rounding.unit
    signs, cost = batch.signs(problems), batch.costs(problems)
    squares = (W[:, : rows.d] ** 2).sum(axis=1)
    lengths = np.sqrt(squares * (1.0 + Rounding.summed) + _SMALL)
    last = np.abs(rows.constant * W[:, -1]) if rows.constant else np.zeros(len(W))
    residual = np.empty((len(W), rows.n), rows.X.dtype)
    # Norms of the rows without the constant feature, rounded up.
    q = batch.rows.q * (1.0 + 2.0 * (rows.width + 2) * unit) - rows.constant**2
    size = np.sqrt(np.maximum(q, 0.0) + _SMALL)[:, None]

    def of_strip(strip: slice) -> _Sums:
        sums = _Sums(np.zeros(W.shape), *np.zeros((5, len(W))))
        for block in rows.blocks(strip):
            X = rows.X[block].astype(np.float64, copy=False)
            scores, c = rows.scores(X, W), cost[:, block].T
            sign = signs[:, block].T.astype(np.float64)
            residual[:, block] = (sign - scores).T
            short = 1.0 - sign * scores
            # No term of a score passes more roundings than w has entries, and a few.
            off = size[block] * lengths + last
            off *= Rounding.slack * unit * (rows.width + 4)
            most = np.maximum(short + (off + 2.0 * unit * np.abs(short)), 0.0)
            np.maximum(short, 0.0, out=short)
            dual = 2.0 * c * short
            alpha[:, block] = dual.T
            sums.loss[:] += (c * most * most).sum(axis=0)
            sums.total[:] += dual.sum(axis=0)
            sums.diagonal[:] += (dual * short).sum(axis=0)
            sums.reach[:] += (dual * (size[block] + rows.constant)).sum(axis=0)
            sums.used[:] += np.count_nonzero(dual, axis=0)
            rows.add_sums(X, sign * dual, sums.v)
        return sums

    with unchecked():
        strips = zip(*rows.over_strips(of_strip), strict=True)
        sums = _Sums(*(np.sum(parts, axis=0) for parts in strips))
        rounding = Rounding(rows.n, rows.width, len(rows.strips), rows.chain)
        bounds = []
        for j in range(len(W)):
            norm = core.squared_norm(sums.v[j])
            total, diagonal = float(sums.total[j]), float(sums.diagonal[j])
            curvature = norm + diagonal
            scale = total / curvature if 0.0 < curvature < math.inf else 0.0
            alpha[j] *= scale if 0.0 < scale < math.inf else 0.0
            values = Values(
                float(sums.loss[j]), total, diagonal, _SMALL, 0.0, 0.0,
                float(sums.reach[j]), float(sums.used[j]), rows.width + 4.0,
                float(lengths[j]), float(last[j]),
            )  # fmt: skip
            bounds.append(
                rounding.bounds(values, core.squared_norm(W[j]), norm, scale=scale)
            )
    return Proved(bounds, alpha, residual)


#: Far larger than all underflow of a product.
_SMALL = 2.0**-1000
