"""Conversion of Dask collections and other data to pieces.

A piece is a list of blocks. A block is (X, y), (X, y, weight), one object that computes
such a tuple, or a row store. Each part may be in memory or on a cluster (a Delayed or a
Future).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..data.store import RowStore
from ..data.types import Matrix, MatrixLike
from .stores import StorePart, is_store, named, part_of, parts_of

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from dask.delayed import Delayed
    from distributed import Future

#: Rows, labels or weights: in memory, delayed, or a future.
Part: TypeAlias = "MatrixLike | Delayed | Future | StorePart"
#: X, y and perhaps weights, or one part that computes a tuple of these.
Block: TypeAlias = Sequence[Part]
Blocks: TypeAlias = Sequence[Sequence[Block]]


def blocks(
    X: DaskArray, y: DaskArray | None, weight: DaskArray | None, count: int
) -> Blocks:
    """Return the blocks of every piece, in the order of the rows.

    `X`, `y` and `weight` are as for `fit`. There are fewer than `count` pieces if X has
    fewer blocks of unknown sizes, and as many as a list has.
    """
    if isinstance(X, (list, tuple)):
        return _of_sequence(X, y, weight)
    if isinstance(X, RowStore):
        have_their_own("a row store, which has its", y, weight)
        return [[(part,)] for part in parts_of(X, count)]
    if y is None:
        raise ValueError("y=None: labels are missing; give y besides X")
    vectors = {"y": y} | ({} if weight is None else {"sample_weight": weight})
    if is_dask(X):
        return _of_dask(X, vectors, count)
    if sparse.issparse(X) or isinstance(X, np.ndarray):
        X = X.tocsr() if sparse.issparse(X) else X
        columns = [X, *map(np.asarray, vectors.values())]
        for name, column in zip(vectors, columns[1:], strict=True):
            _check_length(name, len(column), X.shape[0])
        cuts = np.linspace(0, X.shape[0], min(count, X.shape[0]) + 1).astype(int)
        return [[tuple(c[a:b] for c in columns)] for a, b in pairwise(cuts)]
    raise TypeError(
        f"X is a {type(X).__name__}; give a Dask array or dataframe, a list of pieces "
        "(X, y) or of row stores, a NumPy array or a SciPy matrix"
    )


def is_dask(X: DaskArray) -> bool:
    """Return whether X is a Dask array or dataframe."""
    array = hasattr(X, "chunks") and hasattr(X, "rechunk")
    return hasattr(X, "__dask_graph__") and (array or is_frame(X))


def is_frame(X: DaskArray) -> bool:
    """Return whether X is a Dask dataframe or series."""
    return hasattr(X, "npartitions") and hasattr(X, "map_partitions")


def have_their_own(what: str, y: DaskArray | None, weight: DaskArray | None) -> None:
    """Check that no labels or weights are given for rows that have their own."""
    if y is not None or weight is not None:
        raise ValueError(
            f"X is {what} own labels and weights; leave y and sample_weight out"
        )


def _of_sequence(
    X: Sequence[Part | Block], y: DaskArray | None, weight: DaskArray | None
) -> Blocks:
    have_their_own("a list of pieces, which have their", y, weight)
    if not X:
        raise ValueError("X is an empty list; give at least one piece (X, y)")
    pieces = []
    for i, piece in enumerate(X):
        if is_store(piece):
            pieces.append([(part_of(piece),)])
            continue
        block = tuple(piece) if isinstance(piece, (list, tuple)) else (piece,)
        if len(block) > 3 or (len(block) == 1 and isinstance(piece, (list, tuple))):
            raise ValueError(
                f"X[{i}] has {len(block)} parts; a piece is (X, y) or (X, y, weight)"
            )
        pieces.append([block])
    return pieces


def _of_dask(X: DaskArray, vectors: dict[str, DaskArray], count: int) -> Blocks:
    X = X.to_dask_array() if is_frame(X) else X
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s); reshape it to (n, d)")
    if X.numblocks[1] != 1:
        X = X.rechunk({1: -1})
    known = not np.isnan(X.shape[0])
    if known and X.numblocks[0] < count:
        X = X.rechunk({0: -(-X.shape[0] // count)})
    columns = [X.to_delayed()[:, 0]]
    columns += [_like(name, part, X, known) for name, part in vectors.items()]
    return _grouped(columns, X.chunks[0] if known else (1,) * X.numblocks[0], count)


def _like(name: str, part: DaskArray, X: DaskArray, known: bool) -> Sequence[Delayed]:
    """Return the blocks of a vector, over the same rows as the blocks of X."""
    import dask.array as da

    if is_frame(part):
        part = part.values
    elif not is_dask(part):
        part = np.asarray(part)
        if not known:
            raise ValueError(
                f"{name} is in memory and the sizes of the blocks of X are unknown; "
                f"give {name} as a collection, or call X.compute_chunk_sizes() first"
            )
        part = da.from_array(part, chunks=len(part))
    if part.ndim == 2 and part.shape[1] == 1:
        part = part[:, 0]
    if part.ndim != 1:
        raise ValueError(f"{name} has {part.ndim} dimensions; expected one per row")
    if known and not np.isnan(part.shape[0]):
        _check_length(name, part.shape[0], X.shape[0])
        part = part.rechunk((X.chunks[0],))
    if part.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"{name} has {part.numblocks[0]} blocks and X has {X.numblocks[0]}, of "
            "unknown sizes; call compute_chunk_sizes() on both"
        )
    found: Sequence[Delayed] = part.to_delayed()
    return found


def _grouped(
    columns: Sequence[Sequence[Delayed]], sizes: Sequence[int], count: int
) -> Blocks:
    """Group neighbouring blocks into at most `count` pieces of about equal size."""
    rows = list(zip(*columns, strict=True))
    middle = np.cumsum(sizes) - 0.5 * np.asarray(sizes, dtype=float)
    share = max(float(np.sum(sizes)), 1.0) / min(count, len(rows))
    pieces: dict[int, list[Block]] = {}
    for block, centre in zip(rows, middle, strict=True):
        pieces.setdefault(int(centre / share), []).append(block)
    return list(pieces.values())


def _check_length(name: str, length: int, n: int) -> None:
    if length != n:
        raise ValueError(
            f"{name} has {length} entries and X has {n} rows; give one per row"
        )


# Functions that run on the workers


def join(
    parts: Sequence[Block], index: int
) -> tuple[Matrix, NDArray[np.generic], NDArray[np.generic] | None]:
    """Return X, y and weight (or None) of a piece, joined from its blocks."""
    with named(f"piece {index}"):
        blocks = [_opened(part) for part in parts]
        X, y, weights = [list(column) for column in zip(*blocks, strict=True)]
        weighted = [weight is not None for weight in weights]
        if any(weighted) != all(weighted):
            raise ValueError(
                "some of its blocks have weights, others none; give weights for all "
                "blocks or for none"
            )
        widths = {x.shape[1] for x in X}
        if len(widths) > 1:
            raise ValueError(
                f"blocks of {sorted(widths)} columns; give all blocks the same columns"
            )
        rows = X[0]
        if len(X) > 1:
            rows = (
                sparse.vstack(X, "csr") if sparse.issparse(rows) else np.concatenate(X)
            )
        return rows, _joined(y), _joined(weights) if all(weighted) else None


def _joined(columns: list[NDArray[np.generic]]) -> NDArray[np.generic]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _opened(part: Block) -> tuple[Matrix, NDArray[np.generic], DaskArray]:
    """Return rows, labels and weights (or None) of a block as arrays."""
    whole: DaskArray = part[0] if len(part) == 1 else part
    if len(whole) not in (2, 3):
        raise ValueError(
            f"a block has {len(whole)} parts; a piece is (X, y) or (X, y, weight)"
        )
    X, y, weight = (*whole, None)[:3]
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    if not sparse.issparse(X):
        X = np.asarray(X)
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X has dtype {X.dtype}; encode its columns as numbers")
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s); expected (n, d)")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return X, _column(y), None if weight is None else _column(weight)


def _column(y: DaskArray) -> NDArray[np.generic]:
    y = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
