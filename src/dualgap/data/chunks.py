"""Rows to convert, read in chunks: arrays of a program and of files of NumPy."""

from __future__ import annotations

import contextlib
import errno
import lzma
import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .features import Features
from .opening import kind_of_file
from .table_file import TableOptions
from .types import Array, Matrix

T = TypeVar("T")

#: Errors of NumPy and zipfile for files that are damaged, encrypted or of other kinds.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, tokenize.TokenError),
    *(RuntimeError, OSError, ValueError, TypeError, OverflowError),
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
    #: Folder for temporary files.
    folder: str = ""

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


@contextlib.contextmanager
def _named(
    name: str, kinds: tuple[type[Exception], ...], remedy: str = ""
) -> Iterator[None]:
    """Turn a library's errors about a file into ValueErrors that name the file."""
    try:
        yield
    except kinds as error:
        # Errors of the system, such as a failing disk, are not the file's fault.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        # pyarrow's second sentence repeats the first one.
        reason = str(error).split(". ")[0].rstrip(".")
        raise ValueError(f"{name}: {reason}{remedy and '; '}{remedy}") from None


# ------------------------------------------------------ arrays, and files of NumPy


def batch_chunks(source: Source, weight: Given | None) -> Iterator[Chunk]:
    """Yield the chunks of batches that a program gives."""
    first = 0
    for k, batch in enumerate(source.inputs):
        if not isinstance(batch, tuple) or len(batch) not in (2, 3):
            raise ValueError(
                f"batch {k} is a {type(batch).__name__}, not a tuple (X, y) or "
                "(X, y, sample_weight)"
            )
        X, y, given = (*batch, None)[:3]
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        y = labels_in(f"batch {k}: y", y, n)
        if given is not None:
            given = column_in(f"batch {k}: sample_weight", given, n)
        if not sparse.issparse(X):
            X = np.asarray(X)
        elif X.format != "csr":
            X = X.tocsr()
        entries = X.nnz if sparse.issparse(X) else X.size
        step = max(1, source.plan.chunk // max(1, 12 * entries // max(n, 1)))
        for at in range(0, n, step):
            part = slice(at, min(at + step, n))
            rows = _tidy(X[part], source.plan.dtype)
            own = None if given is None else given[part]
            yield array_chunk(source.name, first + at, rows, y[part], own)
        first += n


def _mapped(path: str, kind: str, folder: str) -> dict[str, Array]:
    """Return the arrays of a file, mapped; an archive is unpacked into a folder."""
    if kind == "npy":
        return {"X": _map(path, path)}
    with _told(path), zipfile.ZipFile(path) as archive:
        files = {name: archive.extract(name, folder) for name in _members(archive)}
    return {n[:-4]: _map(file, f"{path}, array {n}") for n, file in files.items()}


def _members(archive: zipfile.ZipFile) -> list[str]:
    """Return the arrays of an archive; other files in it are left alone."""
    return [name for name in archive.namelist() if name.endswith(".npy")]


def _map(file: str, name: str) -> Array:
    with _told(name), np.errstate(over="ignore"):  # of a size in a spoilt header
        return np.lib.format.open_memmap(file, mode="r")


def _told(name: str) -> contextlib.AbstractContextManager[None]:
    """Turn NumPy's errors about an array into ValueErrors with a remedy."""
    remedy = "save it again, as numbers, or as words with dtype=str"
    return _named(f"{name} cannot be read", _DAMAGED, remedy)


def read_arrays(
    content: BinaryIO, kind: str, name: str
) -> tuple[Matrix, Labels | None, NDArray[np.float64] | None]:
    """Return the rows of a file as float64, and its labels and weights or None.

    Raises ValueError if the file is damaged, or an array is no matrix of numbers.
    """
    with _told(name):
        if kind == "npy":
            arrays = {"X": np.lib.format.read_array(content)}
        else:
            arrays = {}
            with zipfile.ZipFile(content) as archive:
                for member in _members(archive):
                    with archive.open(member) as file:
                        arrays[member[:-4]] = np.lib.format.read_array(file)
    n, parts = _rows(name, arrays, np.dtype(np.float64), None)
    X = next(parts, None)
    if X is None:
        raise ValueError(f"{name} has no examples; give a file with data")
    if not np.isfinite(X.data if sparse.issparse(X) else X).all():
        raise ValueError(f"{name}: X contains NaN or infinite values")
    y = _column(name, arrays, "y", None, n, labels_in)
    if y is not None and y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name}: y contains NaN or infinite values")
    return X, y, _column(name, arrays, "sample_weight", None, n, column_in)


def array_chunks(source: Source, weight: Given | None) -> Iterator[Chunk]:
    """Yield the chunks of .npy and .npz files."""
    plan, first, given_labels = source.plan, 0, given("y", source.plan.y)
    for k, path in enumerate(source.inputs):
        folder = os.path.join(source.folder, f"arrays-{k}")
        arrays = _mapped(path, kind_of_file(path), folder)
        n, parts = _rows(path, arrays, plan.dtype, plan.chunk)
        labels = _column(path, arrays, "y", given_labels, n, labels_in)
        if labels is None:
            raise ValueError(
                f"{path} has no labels; give y=..., or save an array y in a .npz file"
            )
        weights = _column(path, arrays, "sample_weight", weight, n, column_in)
        at = 0
        for X in parts:
            part = slice(at, at + X.shape[0])
            own = None if weights is None else weights[part]
            yield array_chunk(path, first + at, X, labels[part], own)
            at += X.shape[0]
        first += at
    if given_labels is not None:
        given_labels.end()


def _rows(
    path: str, arrays: dict[str, Array], dtype: np.dtype[np.generic], chunk: int | None
) -> tuple[int, Iterator[Matrix]]:
    """Return the number of rows, and the rows in parts of `chunk` bytes."""
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2:
            raise ValueError(f"{path}: X has shape {X.shape}; expected (n, d)")
        if X.dtype.kind not in "biuf":
            raise ValueError(f"{path}: X has dtype {X.dtype}; save it as numbers")
        n, d = X.shape
        step = max(1, n if chunk is None else chunk // max(1, 12 * d))
        return n, (_tidy(X[at : at + step], dtype) for at in range(0, n, step))
    if not {"data", "indices", "indptr", "shape", "format"} <= set(arrays):
        raise ValueError(
            f"{path} has the arrays {sorted(arrays)}; expected X, or the arrays of "
            "scipy.sparse.save_npz"
        )
    kinds = {"format": "SU", "shape": "iu", "indptr": "iu", "indices": "iu"}
    for name, kind in {**kinds, "data": "biuf"}.items():
        array = arrays[name]
        shape = {"format": (), "shape": (2,)}.get(name, array.shape[:1] or (0,))
        if array.dtype.kind not in kind or array.shape != shape:
            raise ValueError(
                f"{path}, array {name}.npy has shape {array.shape} and dtype "
                f"{array.dtype}, unlike a file of scipy.sparse.save_npz; save it again"
            )
    form = arrays["format"].item()
    if form not in (b"csr", "csr"):
        raise ValueError(f"{path} has a matrix in the format {form!r}; save X.tocsr()")
    n, d = (int(size) for size in arrays["shape"])
    if n < 0 or d < 0:
        raise ValueError(f"{path} has a matrix of the invalid shape {(n, d)}")
    return n, _csr(path, arrays, (n, d), dtype, chunk)


def _csr(
    path: str,
    arrays: dict[str, Array],
    shape: tuple[int, int],
    dtype: np.dtype[np.generic],
    chunk: int | None,
) -> Iterator[Matrix]:
    n, d = shape
    indptr, indices, data = arrays["indptr"], arrays["indices"], arrays["data"]
    indptr = indptr.astype(np.int64)
    rises = indptr.shape == (n + 1,) and indptr[0] == 0 and (np.diff(indptr) >= 0).all()
    if not rises or indptr[-1] > min(len(indices), len(data)):
        raise ValueError(
            f"{path}, array indptr.npy does not increase from 0 to the number of "
            "values; save it again"
        )
    limit = max(1, indptr[-1] if chunk is None else chunk // 16)
    at = 0
    while at < n:
        end = int(np.searchsorted(indptr, indptr[at] + limit, side="right")) - 1
        end = min(max(end, at + 1), n)
        part = slice(indptr[at], indptr[end])
        own = np.array(indices[part])  # a map's entries are read once
        if own.size and not (0 <= own.min() and own.max() < d):
            raise ValueError(
                f"{path}, array indices.npy has an index out of range; save it again"
            )
        rows = np.array(data[part]), own, indptr[at : end + 1] - indptr[at]
        yield _tidy(sparse.csr_matrix(rows, shape=(end - at, d)), dtype)
        at = end


def _column(
    path: str,
    arrays: dict[str, Array],
    name: str,
    given: Given | None,
    n: int,
    checked: Callable[[str, ArrayLike, int], T],
) -> T | None:
    """Return the labels or weights that were given, or those in the file."""
    if given is not None:
        return checked(name, given.take(n), n)
    if name not in arrays:
        return None
    return checked(f"{path}, array {name}.npy", arrays[name], n)
