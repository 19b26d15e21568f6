"""Rows in files of NumPy, and in arrays that a program gives."""

from __future__ import annotations

import contextlib
import math
import tokenize
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, BinaryIO, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .chunks import (
    _DAMAGED,
    _PIECE,
    Chunk,
    Given,
    Labels,
    Source,
    _named,
    _row_bytes,
    _tidy,
    array_chunk,
    column_in,
    given,
    labels_in,
)
from .opening import open_data
from .types import Matrix

T = TypeVar("T")


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
