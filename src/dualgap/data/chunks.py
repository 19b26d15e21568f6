"""Rows to convert, read in chunks: arrays of a program and of files of NumPy."""

from __future__ import annotations

import contextlib
import errno
import lzma
import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .features import Features
from .opening import open_data
from .table_file import TableOptions
from .types import Matrix

T = TypeVar("T")

#: Bytes to read at a time from arrays whose file gives their size.
_PIECE = 2**24
#: Errors of zipfile for archives that are damaged, encrypted or of another kind.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError),
    *(RuntimeError, OSError, UnicodeDecodeError),
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
        step = max(1, source.plan.chunk // _row_bytes(X))
        for at in range(0, n, step):
            part = slice(at, min(at + step, n))
            rows = _tidy(X[part], source.plan.dtype)
            own = None if given is None else given[part]
            yield array_chunk(source.name, first + at, rows, y[part], own)
        first += n


class _Npy:
    """Array in a .npy file or in a member of a .npz file, read from start to end."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.file, self.name = file, name
        try:
            version = np.lib.format.read_magic(file)
            header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            self.shape, self.fortran, self.dtype = header(file)
        except (ValueError, KeyError, RecursionError, tokenize.TokenError) as error:
            raise ValueError(f"{name} is not a .npy array: {error}") from None
        if any(size < 0 for size in self.shape):
            raise ValueError(f"{name} has the invalid shape {self.shape}")
        if self.dtype.hasobject:
            raise ValueError(
                f"{name} contains Python objects; save it as numbers, or words with "
                "dtype=str"
            )
        if self.dtype.itemsize == 0:
            raise ValueError(f"{name} has dtype {self.dtype}; save it as numbers")

    def take(self, count: int, width: int = 1) -> NDArray[np.generic]:
        """Return the next `count` entries, or `count` rows of `width` entries."""
        size = count * width * self.dtype.itemsize
        # Read in pieces, because a damaged header could announce any size.
        data = bytearray()
        while len(data) < size:
            with _named(self.name, _DAMAGED):
                part = self.file.read(min(size - len(data), _PIECE))
            if not part:
                raise ValueError(f"{self.name} is truncated; make the file again")
            data += part
        return np.frombuffer(data, self.dtype)

    def whole(self) -> NDArray[np.generic]:
        order: Literal["F", "C"] = "F" if self.fortran else "C"
        return self.take(math.prod(self.shape)).reshape(self.shape, order=order)


@contextlib.contextmanager
def _opened(file: BinaryIO, kind: str, name: str) -> Iterator[dict[str, _Npy]]:
    """Yield the arrays of a file by their names."""
    if kind == "npy":
        yield {"X": _Npy(file, name)}
        return
    with contextlib.ExitStack() as stack:
        with _named(f"{name} cannot be read", _DAMAGED):
            members = stack.enter_context(zipfile.ZipFile(file))
            arrays = {
                member[:-4]: _Npy(
                    stack.enter_context(members.open(member)),
                    f"{name}, array {member}",
                )
                for member in members.namelist()
                if member.endswith(".npy")
            }
        yield arrays


def read_arrays(
    content: BinaryIO, kind: str, name: str
) -> tuple[Matrix, Labels | None, NDArray[np.float64] | None]:
    """Return the rows of a file as float64, and its labels and weights or None.

    Raises ValueError if the file is damaged, or an array is no matrix of numbers.
    """
    with _opened(content, kind, name) as arrays:
        n, parts = _rows(name, arrays, np.dtype(np.float64), None)
        X = next(parts, None)
        if X is None:
            raise ValueError(f"{name} has no examples; give a file with data")
        values = X.data if sparse.issparse(X) else X
        if not np.isfinite(values).all():
            raise ValueError(f"{name}: X contains NaN or infinite values")
        y = _column(arrays, "y", None, n, labels_in)
        if y is not None and y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError(f"{name}: y contains NaN or infinite values")
        return X, y, _column(arrays, "sample_weight", None, n, column_in)


def array_chunks(source: Source, weight: Given | None) -> Iterator[Chunk]:
    """Yield the chunks of .npy and .npz files."""
    plan, first, given_labels = source.plan, 0, given("y", source.plan.y)
    for path in source.inputs:
        with (
            open_data(path) as file,
            _opened(file.content, file.kind, path) as arrays,
        ):
            n, parts = _rows(path, arrays, plan.dtype, plan.chunk)
            labels = _column(arrays, "y", given_labels, n, labels_in)
            if labels is None:
                raise ValueError(
                    f"{path} has no labels; give y=..., or save an array y in a .npz "
                    "file"
                )
            weights = _column(arrays, "sample_weight", weight, n, column_in)
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
    path: str, arrays: dict[str, _Npy], dtype: np.dtype[np.generic], chunk: int | None
) -> tuple[int, Iterator[Matrix]]:
    """Return the number of rows, and the rows in parts of `chunk` bytes."""
    if "X" in arrays:
        X = arrays["X"]
        if len(X.shape) != 2:
            raise ValueError(f"{path}: X has shape {X.shape}; expected (n, d)")
        if X.dtype.kind not in "biuf":
            raise ValueError(f"{X.name} has dtype {X.dtype}; save it as numbers")
        if X.fortran and chunk is not None:
            raise ValueError(
                f"{X.name} is in Fortran order; save numpy.ascontiguousarray(X)"
            )
        return X.shape[0], _dense(X, dtype, chunk)
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
                f"{array.name} has shape {array.shape} and dtype {array.dtype}, "
                "unlike a file of scipy.sparse.save_npz; save it again"
            )
    form = arrays["format"].whole().item()
    if form not in (b"csr", "csr"):
        raise ValueError(f"{path} has a matrix in the format {form!r}; save X.tocsr()")
    n, d = (int(size) for size in arrays["shape"].whole())
    if n < 0 or d < 0:
        raise ValueError(f"{path} has a matrix of the invalid shape {(n, d)}")
    return n, _csr(arrays, (n, d), dtype, chunk)


def _dense(X: _Npy, dtype: np.dtype[np.generic], chunk: int | None) -> Iterator[Matrix]:
    if chunk is None:
        yield _tidy(X.whole(), dtype)
        return
    n, d = X.shape
    step = max(1, chunk // max(1, 12 * d))
    for at in range(0, n, step):
        rows = min(step, n - at)
        yield _tidy(X.take(rows, d).reshape(rows, d), dtype)


def _csr(
    arrays: dict[str, _Npy],
    shape: tuple[int, int],
    dtype: np.dtype[np.generic],
    chunk: int | None,
) -> Iterator[Matrix]:
    n, d = shape
    indptr = arrays["indptr"].whole().astype(np.int64)
    if indptr.shape != (n + 1,) or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError(
            f"{arrays['indptr'].name} does not increase from 0; save it again"
        )
    limit = max(1, indptr[-1] if chunk is None else chunk // 16)
    at = 0
    while at < n:
        end = int(np.searchsorted(indptr, indptr[at] + limit, side="right")) - 1
        end = min(max(end, at + 1), n)
        count = int(indptr[end] - indptr[at])
        values = arrays["data"].take(count)
        indices = arrays["indices"].take(count)
        if count and not (0 <= indices.min() and indices.max() < d):
            raise ValueError(
                f"{arrays['indices'].name} has an index out of range; save it again"
            )
        parts = values, indices, indptr[at : end + 1] - indptr[at]
        X = sparse.csr_matrix(parts, shape=(end - at, d))
        yield _tidy(X, dtype)
        at = end


def _column(
    arrays: dict[str, _Npy],
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
    return checked(arrays[name].name, arrays[name].whole(), n)
