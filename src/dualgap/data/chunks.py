"""Rows to convert, which are read in chunks."""

from __future__ import annotations

import contextlib
import errno
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .features import Features
from .table_file import TableOptions
from .types import Matrix

#: Bytes to read at a time from arrays whose file gives their size.
_PIECE = 2**24
#: Errors of zipfile for archives that are damaged, encrypted or of another kind.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError),
    *(RuntimeError, OSError),
)

#: Numbers, or words.
Labels = NDArray[np.generic]
Rows = tuple[Matrix, Labels, NDArray[np.float64] | None]


@dataclass(frozen=True)
class Plan:
    """Options of a conversion; see :func:`dualgap.data.convert`."""

    format: str
    dtype: np.dtype[np.generic]
    shuffle: bool
    seed: int
    memory: int
    chunk: int  # bytes
    zero_based: bool | Literal["auto"]
    n_features: int | None
    table: TableOptions
    y: ArrayLike | None
    sample_weight: ArrayLike | None


@dataclass
class Chunk:
    """Some rows of an input."""

    #: Number of the first row among all rows; in text, of its line among all lines.
    first: int
    #: Returns rows (an ndarray or CSR matrix), labels, and weights or None.
    load: Callable[[], Rows]
    #: Returns the place of a row in the input, for messages.
    place: Callable[[int], str]
    dense: bool = False
    #: Whether the width of X is known; else the largest index determines it.
    columns: bool = True


def array_chunk(
    source: str,
    first: int,
    X: Matrix,
    y: Labels,
    weight: NDArray[np.float64] | None,
) -> Chunk:
    """Return a chunk of arrays in memory."""
    return Chunk(
        first,
        lambda: (X, y, weight),
        lambda row: f"{source}, row {first + row}",
        dense=not sparse.issparse(X),
    )


class Given:
    """Labels or weights from outside the files, in the order of the rows."""

    def __init__(self, name: str, values: ArrayLike) -> None:
        self.name, self.values, self.at = name, np.asarray(values), 0

    def take(self, n: int) -> NDArray[np.generic]:
        """Return the entries of the next rows."""
        part = self.values[self.at : self.at + n]
        self.at += n
        if len(part) < n:
            self._refuse("more")
        return part

    def numbers(self, n: int) -> NDArray[np.float64]:
        """Return the entries of the next rows as numbers."""
        return column_in(self.name, self.take(n), n)

    def end(self) -> None:
        """Raise an error if there are no rows for some of them."""
        if len(self.values) > self.at:
            self._refuse(f"{self.at:,}")

    def _refuse(self, rows: str) -> None:
        raise ValueError(
            f"{self.name} has {len(self.values):,} entries, but there are {rows} rows; "
            "give one entry for each row"
        )


@dataclass
class Source:
    """Rows to convert."""

    name: str
    kind: str
    plan: Plan
    #: Paths of files of one kind, whose rows are concatenated, or batches of arrays.
    inputs: Any
    #: Yields all chunks, and takes the given weights of their rows.
    read: Callable[[Source, Given | None], Iterator[Chunk]]
    #: What the columns of tables became.
    features: Features | None = None

    def chunks(self) -> Iterator[Chunk]:
        """Yield all chunks."""
        weight = given("sample_weight", self.plan.sample_weight)
        yield from self.read(self, weight)
        if weight is not None:
            weight.end()


def given(name: str, value: ArrayLike | None) -> Given | None:
    """Return labels or weights that may be in a .npy file; None if there are none."""
    if isinstance(value, (str, os.PathLike)):
        value = np.load(value, mmap_mode="r", allow_pickle=False)
    return None if value is None else Given(name, value)


def refuse_given(name: str, value: ArrayLike | None, kind: str) -> None:
    """Raise an error for labels or weights of rows that have them."""
    if value is not None:
        told = repr(value) if isinstance(value, str) else "..."
        raise ValueError(
            f"{name}={told} is for .npy and .npz files, not for {kind}; leave it out"
        )


def labels_in(name: str, value: ArrayLike, n: int) -> Labels:
    """Return the labels of n rows, shape (n,)."""
    array = np.asarray(value)
    strings = array.dtype.kind == "O" and all(isinstance(v, str) for v in array.flat)
    if strings or array.dtype.kind == "S":
        array = array.astype(str)
    if array.dtype.kind == "U" and array.shape == (n,):
        return array
    return column_in(name, array, n)


def column_in(name: str, value: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return numbers of n rows as float64, shape (n,)."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {array.dtype}; give numbers")
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}; expected ({n},)")
    return np.ascontiguousarray(array, dtype=np.float64)


def _tidy(X: Matrix, dtype: np.dtype[np.generic]) -> Matrix:
    """Return a matrix as ndarray, or as CSR with sorted rows without duplicates."""
    if sparse.issparse(X):
        with np.errstate(over="ignore"):  # infinite values raise later, with their row
            X = sparse.csr_matrix(X, dtype=dtype)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X
    X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(
            f"X has shape {X.shape} and dtype {X.dtype}; give numbers of shape (n, d)"
        )
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(X, dtype=dtype)


def _row_bytes(X: Matrix) -> int:
    entries = X.nnz if sparse.issparse(X) else X.size
    return max(1, 12 * entries // max(X.shape[0], 1))


@contextlib.contextmanager
def _named(name: str, kinds: tuple[type[Exception], ...]) -> Iterator[None]:
    """Turn a library's errors about a file into ValueErrors that name the file."""
    try:
        yield
    except kinds as error:
        # Errors of the system, such as a failing disk, are not the file's fault.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        # pyarrow's second sentence repeats the first one.
        reason = str(error).split(". ")[0].rstrip(".")
        raise ValueError(f"{name}: {reason}") from None
