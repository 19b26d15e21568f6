"""Inputs of a conversion: files and batches, read as chunks of bounded size.

A chunk knows the number of its first row (in text, of its first line). A worker thread
loads its rows later.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import lzma
import math
import os
import re
import tokenize
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core import parse_svmlight
from .svmlight import decompressed, text_pieces
from .tables import csv_blocks, kind_of

_PIECE = 2**24  # bytes to read at a time from arrays whose file gives their size
#: Errors of zipfile for archives that are damaged, encrypted or of another kind.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError),
    *(RuntimeError, OSError),
)

__all__ = ["Chunk", "Reading", "Source", "source_of"]

_LONGEST_LINE = 8  # longest line of text, in chunks

Rows = tuple[Any, NDArray[np.float64], NDArray[np.float64] | None]


@dataclass(frozen=True)
class Reading:
    """Options for reading inputs; see :func:`dualgap.io.convert`."""

    dtype: np.dtype[Any]
    chunk: int  # bytes
    zero_based: bool | Literal["auto"]
    label: str
    weight: str | None
    y: Any
    sample_weight: Any


class Chunk(ABC):
    """Some rows of an input."""

    #: Number of the first row among all rows; in text, of its line among all lines.
    first: int
    dense = False
    #: Whether the width of X is known; else the largest index determines it.
    columns = True

    @abstractmethod
    def load(self) -> Rows:
        """Return rows (an ndarray or CSR matrix), labels, and weights or None."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Return the place of a row in the input, for messages."""


class Source(ABC):
    """Base of the kinds of inputs."""

    name: str
    #: Equal for equal inputs; decides whether a killed conversion may resume.
    identity: dict[str, Any]

    @abstractmethod
    def chunks(self, known: Mapping[int, int]) -> Iterator[Chunk | None]:
        """Yield all chunks, in the same order each time.

        Parameters
        ----------
        known : mapping of int to int
            Numbers of the chunks that are already written, and their numbers of rows.
            For these a source may yield None instead of making the chunk.
        """


def source_of(inputs: Any, reading: Reading) -> Source:
    """Return the source for the argument `inputs` of :func:`dualgap.io.convert`.

    Raises
    ------
    TypeError, ValueError, OSError
        If `inputs` is of another type, or a file is missing.
    """
    paths = _paths(inputs)
    if paths is None:
        if not isinstance(inputs, Iterable):
            raise TypeError(
                f"inputs is a {type(inputs).__name__}; give a path, a list of paths, "
                "or an iterable of (X, y) or (X, y, sample_weight)"
            )
        _refuse_labels(reading, "batches, which contain them")
        return _Batches(inputs, reading)
    for path in paths:
        os.stat(path)  # the usual error
        if os.path.isdir(path):
            raise ValueError(f"{path} is a folder; give the files in it")
    kinds = {_KINDS[_kind_of(path)] for path in paths}
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.kind for kind in kinds))
        raise ValueError(
            f"inputs are of several kinds ({names}); convert them one by one"
        )
    return kinds.pop()(paths, reading)


def _kind_of(path: str) -> str:
    """Return the kind of a file by its content or, if that does not tell, its name.

    Raises
    ------
    ValueError
        If the file is of an unknown kind.
    """
    if not os.path.isfile(path):  # a pipe can be read only once
        return "svmlight"
    with open(path, "rb") as file:
        start = file.read(_START)
        kind, suffix = kind_of(start)
        if suffix is not None:
            file.seek(0)
            kind = "svmlight"
            with contextlib.suppress(ValueError):  # damage is told when it is read
                kind, _ = kind_of(next(decompressed(file, suffix, path), b""))
            if kind not in ("svmlight", "csv"):
                raise ValueError(
                    f"{path} is a compressed {kind} file; decompress it first"
                )
    if suffix is None and kind in ("svmlight", "binary"):
        kind = _NAMED.get(os.path.splitext(path)[1].lower(), kind)
    if kind == "binary":
        raise ValueError(
            f"{path} is not a data file; give svmlight text, CSV, TSV, Parquet, Arrow, "
            ".npy or .npz"
        )
    return kind


def _pieces(path: str) -> Iterator[bytes]:
    """Yield the content of a file, decompressed as its first bytes or its name say."""
    if not os.path.isfile(path):
        yield from text_pieces(path)
        return
    with open(path, "rb") as file:
        _, suffix = kind_of(file.read(_START))
        file.seek(0)
        suffix = suffix or os.path.splitext(path)[1].lower()
        yield from decompressed(file, suffix, path)


_START = 2**16  # bytes that determine the kind of a file


def _paths(inputs: Any) -> list[str] | None:
    if isinstance(inputs, (str, os.PathLike)):
        return [os.fsdecode(inputs)]
    named = isinstance(inputs, (list, tuple)) and bool(inputs)
    if named and all(isinstance(item, (str, os.PathLike)) for item in inputs):
        return [os.fsdecode(item) for item in inputs]
    return None


def _refuse_labels(reading: Reading, kind: str) -> None:
    for name in ("y", "sample_weight"):
        if getattr(reading, name) is not None:
            raise ValueError(f"{name} is for .npy and .npz files, not for {kind}")


class _Files(Source):
    """Files of one kind, whose rows are concatenated."""

    kind: str

    def __init__(self, paths: list[str], reading: Reading) -> None:
        self.paths, self.reading = paths, reading
        self.name = ", ".join(paths)
        states = [(os.path.abspath(path), os.stat(path)) for path in paths]
        files = [[path, state.st_size, state.st_mtime_ns] for path, state in states]
        self.identity = {"kind": self.kind, "files": files}


# ---------------------------------------------------------------------- svmlight text


class _Text(_Files):
    kind = "svmlight"

    def __init__(self, paths: list[str], reading: Reading) -> None:
        super().__init__(paths, reading)
        _refuse_labels(reading, "svmlight text, which contains labels")

    def chunks(self, known: Mapping[int, int]) -> Iterator[Chunk | None]:
        first = 0
        for path in self.paths:
            before = 0
            for text in _whole_lines(path, self.reading.chunk):
                yield _TextChunk(path, text, first, before, self.reading)
                lines = text.count(b"\n") + (not text.endswith(b"\n"))
                first, before = first + lines, before + lines


def _whole_lines(path: str, size: int) -> Iterator[bytes]:
    """Yield the text in parts of about `size` bytes that end with a complete line."""
    parts: list[bytes] = []
    held = 0
    for piece in _pieces(path):
        parts.append(piece)
        held += len(piece)
        if held < size:
            continue
        text = b"".join(parts)
        end = text.rfind(b"\n") + 1
        if end:
            yield text[:end]
            parts, held = [text[end:]], len(text) - end
        elif held > _LONGEST_LINE * size:
            raise ValueError(
                f"{path} has a line of more than {held} bytes; give more memory"
            )
        else:
            parts = [text]
        del text
    if held:
        yield b"".join(parts)


class _TextChunk(Chunk):
    columns = False

    def __init__(
        self, path: str, text: bytes, first: int, before: int, reading: Reading
    ) -> None:
        self.path, self.text, self.first, self.before = path, text, first, before
        self.reading = reading

    def load(self) -> Rows:
        # With "auto", keep the indices as written; the merge shifts them if needed.
        zero_based = self.reading.zero_based in ("auto", True)
        try:
            y, values, indices, indptr, _, found = parse_svmlight(
                np.frombuffer(self.text, dtype=np.uint8),
                n_threads=1,
                zero_based=zero_based,
                query_id=False,
                single_precision=self.reading.dtype == np.float32,
                wide_index=False,
            )
        except ValueError as error:
            message = re.sub(
                r"^line (\d+)",
                lambda line: f"line {int(line[1]) + self.before}",
                str(error),
            )
            raise ValueError(f"{self.path}, {message}") from None
        self.text = b""
        X = sparse.csr_matrix((values, indices, indptr), shape=(len(y), found))
        return X, y, None

    def place(self, row: int) -> str:
        return f"{self.path}, after line {self.before}, example {row + 1}"


# ------------------------------------------------------------------ arrays in memory


class _ArrayChunk(Chunk):
    def __init__(self, source: str, first: int, X: Any, y: Any, weight: Any) -> None:
        self.source, self.first = source, first
        self.X, self.y, self.weight = X, y, weight
        self.dense = not sparse.issparse(X)

    def load(self) -> Rows:
        return self.X, self.y, self.weight

    def place(self, row: int) -> str:
        return f"{self.source}, row {self.first + row}"


def _column(name: str, value: Any, n: int) -> NDArray[np.float64]:
    """Return labels or weights of n rows as float64, shape (n,).

    Raises
    ------
    ValueError
        If they are not numbers, or have another shape.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} has dtype {array.dtype}, but stores hold only numbers; map the "
            "classes to 0, 1, 2, ... first"
        )
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}; expected ({n},)")
    return np.ascontiguousarray(array, dtype=np.float64)


def _tidy(X: Any, dtype: np.dtype[Any]) -> Any:
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


def _row_bytes(X: Any) -> int:
    entries = X.nnz if sparse.issparse(X) else X.size
    return max(1, 12 * entries // max(X.shape[0], 1))


class _Batches(Source):
    name = "the iterable"

    def __init__(self, batches: Iterable[Any], reading: Reading) -> None:
        self.batches, self.reading = batches, reading
        self.identity = {"kind": "batches"}

    def chunks(self, known: Mapping[int, int]) -> Iterator[Chunk | None]:
        first = number = 0
        for k, batch in enumerate(self.batches):
            late = callable(batch)
            if late and number in known:
                yield None
                first, number = first + known[number], number + 1
                continue
            if late:
                batch = batch()
            if not isinstance(batch, tuple) or len(batch) not in (2, 3):
                raise ValueError(
                    f"batch {k} is a {type(batch).__name__}, not a tuple (X, y) or "
                    "(X, y, sample_weight)"
                )
            X, y = batch[0], batch[1]
            n = X.shape[0] if hasattr(X, "shape") else len(X)
            y = _column(f"batch {k}: y", y, n)
            weight = None
            if len(batch) == 3 and batch[2] is not None:
                weight = _column(f"batch {k}: sample_weight", batch[2], n)
            if not sparse.issparse(X):
                X = np.asarray(X)
            elif X.format != "csr":
                X = X.tocsr()
            step = max(1, self.reading.chunk // _row_bytes(X))
            if late and not 0 < n <= step:
                raise ValueError(
                    f"batch {k}, returned by a function, has {n} rows; with this "
                    f"memory, it must have 1 to {step}"
                )
            for at in range(0, n, step):
                part = slice(at, min(at + step, n))
                rows = _tidy(X[part], self.reading.dtype)
                own = None if weight is None else weight[part]
                yield _ArrayChunk(self.name, first + at, rows, y[part], own)
                number += 1
            first += n


# ------------------------------------------------------------------- .npy and .npz


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


class _Npy:
    """Array in a .npy file or in a member of a .npz file, read from start to end."""

    def __init__(self, file: Any, name: str) -> None:
        self.file, self.name = file, name
        try:
            version = np.lib.format.read_magic(file)
            header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            self.shape, fortran, self.dtype = header(file)
        except (ValueError, KeyError, RecursionError, tokenize.TokenError) as error:
            raise ValueError(f"{name} is not a .npy array: {error}") from None
        if any(size < 0 for size in self.shape):
            raise ValueError(f"{name} has the invalid shape {self.shape}")
        if fortran and len(self.shape) > 1:
            raise ValueError(
                f"{name} is in Fortran order; save numpy.ascontiguousarray(X)"
            )
        if self.dtype.hasobject:
            raise ValueError(f"{name} contains Python objects; save it as numbers")
        if self.dtype.itemsize == 0:
            raise ValueError(f"{name} has dtype {self.dtype}; save it as numbers")

    def take(self, count: int, width: int = 1) -> NDArray[Any]:
        """Return the next `count` entries, or `count` rows of `width` entries."""
        size = count * width * self.dtype.itemsize
        # Read in pieces, because a damaged header could announce any size.
        parts, left = [], size
        while left > 0:
            with _named(self.name, _DAMAGED):
                parts.append(self.file.read(min(left, _PIECE)))
            left -= len(parts[-1])
            if not parts[-1]:
                raise ValueError(f"{self.name} is truncated; make the file again")
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        return np.frombuffer(data, self.dtype)

    def whole(self) -> NDArray[Any]:
        return self.take(math.prod(self.shape)).reshape(self.shape)


class _Numpy(_Files):
    kind = "numpy"

    def __init__(self, paths: list[str], reading: Reading) -> None:
        super().__init__(paths, reading)
        self.y = self._given("y")
        self.weight = self._given("sample_weight")

    def _given(self, name: str) -> NDArray[Any] | None:
        value = getattr(self.reading, name)
        if isinstance(value, (str, os.PathLike)):
            value = np.load(value, mmap_mode="r", allow_pickle=False)
        if value is None:
            return None
        value = np.asarray(value)
        self.identity[name] = hashlib.sha256(value.tobytes()).hexdigest()
        return value

    def chunks(self, known: Mapping[int, int]) -> Iterator[Chunk | None]:
        first = 0
        for path in self.paths:
            for chunk in self._of_file(path, first):
                yield chunk
                first = chunk.first + len(chunk.y)
        for name, given in (("y", self.y), ("sample_weight", self.weight)):
            if given is not None and len(given) != first:
                raise ValueError(
                    f"{name} has {len(given)} entries, but there are {first} rows; "
                    "give one entry per row"
                )

    def _of_file(self, path: str, first: int) -> Iterator[_ArrayChunk]:
        with contextlib.ExitStack() as stack:
            file: BinaryIO = stack.enter_context(open(path, "rb"))
            if _kind_of(path) == "npy":
                arrays = {"X": _Npy(file, path)}
            else:
                with _named(path, _DAMAGED):
                    members = stack.enter_context(zipfile.ZipFile(file))
                    arrays = {
                        name[:-4]: _Npy(
                            stack.enter_context(members.open(name)),
                            f"{path}, array {name}",
                        )
                        for name in members.namelist()
                        if name.endswith(".npy")
                    }
            n, parts = self._rows(path, arrays)
            labels = self._labels(arrays, "y", self.y, first, n)
            if labels is None:
                raise ValueError(
                    f"{path} has no labels; give y=..., or save an array y in a .npz "
                    "file"
                )
            weight = self._labels(arrays, "sample_weight", self.weight, first, n)
            at = 0
            for X in parts:
                part = slice(at, at + X.shape[0])
                own = None if weight is None else weight[part]
                yield _ArrayChunk(path, first + at, X, labels[part], own)
                at += X.shape[0]

    def _labels(
        self, arrays: dict[str, _Npy], name: str, given: Any, first: int, n: int
    ) -> NDArray[np.float64] | None:
        if given is not None:
            return _column(name, given[first : first + n], n)
        if name not in arrays:
            return None
        return _column(arrays[name].name, arrays[name].whole(), n)

    def _rows(self, path: str, arrays: dict[str, _Npy]) -> tuple[int, Iterator[Any]]:
        if "X" in arrays:
            X = arrays["X"]
            if len(X.shape) != 2:
                raise ValueError(f"{path}: X has shape {X.shape}; expected (n, d)")
            if X.dtype.kind not in "biuf":
                raise ValueError(f"{X.name} has dtype {X.dtype}; save it as numbers")
            return X.shape[0], self._dense(X)
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
            raise ValueError(
                f"{path} has a matrix in the format {form!r}; save X.tocsr()"
            )
        n, d = (int(size) for size in arrays["shape"].whole())
        if n < 0 or d < 0:
            raise ValueError(f"{path} has a matrix of the invalid shape {(n, d)}")
        return n, self._csr(arrays, n, d)

    def _dense(self, X: _Npy) -> Iterator[Any]:
        n, d = X.shape
        step = max(1, self.reading.chunk // max(1, 12 * d))
        for at in range(0, n, step):
            rows = min(step, n - at)
            yield _tidy(X.take(rows, d).reshape(rows, d), self.reading.dtype)

    def _csr(self, arrays: dict[str, _Npy], n: int, d: int) -> Iterator[Any]:
        indptr = arrays["indptr"].whole().astype(np.int64)
        if indptr.shape != (n + 1,) or indptr[0] != 0 or (np.diff(indptr) < 0).any():
            raise ValueError(
                f"{arrays['indptr'].name} does not increase from 0; save it again"
            )
        limit = max(1, self.reading.chunk // 16)
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
            yield _tidy(X, self.reading.dtype)
            at = end


# ------------------------------------------------------------------ Parquet and Arrow


class _Table(_Files):
    kind = "table"

    def __init__(self, paths: list[str], reading: Reading) -> None:
        super().__init__(paths, reading)
        _refuse_labels(reading, "tables, which contain them as columns")

    def chunks(self, known: Mapping[int, int]) -> Iterator[Chunk | None]:
        first, names = 0, None
        for path in self.paths:
            for batch in self._batches(path):
                with self._told(path):
                    found = batch.schema.names
                    if names is None:
                        names = found
                    if found != names:
                        raise ValueError(
                            f"{path} has other columns than {self.paths[0]}; convert "
                            "them one by one"
                        )
                    X, y, weight = self._arrays(path, batch)
                yield _ArrayChunk(path, first, X, y, weight)
                first += len(y)

    def _batches(self, path: str) -> Iterator[Any]:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise ImportError(
                f"reading {path} needs the package pyarrow; install it with: "
                "pip install 'dualgap[arrow]'"
            ) from error
        with self._told(path):
            if _kind_of(path) == "parquet":
                with pyarrow.parquet.ParquetFile(path) as file:
                    step = self._step(len(file.schema_arrow.names))
                    yield from file.iter_batches(batch_size=step)
                return
            with pyarrow.memory_map(path) as mapped:
                reader = pyarrow.ipc.open_file(mapped)
                for k in range(reader.num_record_batches):
                    batch = reader.get_batch(k)
                    step = self._step(batch.num_columns)
                    for at in range(0, batch.num_rows, step):
                        yield batch.slice(at, step)

    def _told(self, path: str) -> contextlib.AbstractContextManager[None]:
        import pyarrow

        kinds = (pyarrow.ArrowException, UnicodeDecodeError, OSError)
        return _named(path, kinds)

    def _step(self, columns: int) -> int:
        return max(1, self.reading.chunk // (12 * max(columns, 1)))

    def _arrays(self, path: str, batch: Any) -> Rows:
        columns = list(batch.schema.names)
        twice = [name for name in columns if columns.count(name) > 1]
        if twice:
            raise ValueError(
                f"{path} has the column {twice[0]!r} {columns.count(twice[0])} times; "
                "rename one of them"
            )
        for role in ("label", "weight"):
            name = getattr(self.reading, role)
            if name is not None and name not in columns:
                raise ValueError(
                    f"{path} has no column {name!r} for the {role}s; give another name "
                    f"with {role}=... Its columns are {', '.join(columns[:20])}"
                )
        features = [
            name
            for name in columns
            if name not in (self.reading.label, self.reading.weight)
        ]
        n = batch.num_rows
        X = np.empty((n, len(features)), self.reading.dtype)
        with np.errstate(over="ignore"):
            for j, name in enumerate(features):
                X[:, j] = self._numbers(path, batch, name)
        y = self._numbers(path, batch, self.reading.label)
        weight = None
        if self.reading.weight is not None:
            weight = self._numbers(path, batch, self.reading.weight)
        return X, y, weight

    def _numbers(self, path: str, batch: Any, name: str) -> NDArray[np.float64]:
        column = batch.column(batch.schema.names.index(name))
        if column.null_count:
            raise ValueError(f"{path}: column {name!r} has nulls; fill or drop them")
        values = column.to_numpy(zero_copy_only=False)
        return _column(f"{path}: column {name!r}", values, batch.num_rows)


# ------------------------------------------------------------------------ CSV and TSV


class _Stream(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces, self.rest = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.rest = self.rest or next(self.pieces, b"")
        part = self.rest[: len(buffer)]
        self.rest = self.rest[len(part) :]
        buffer[: len(part)] = part
        return len(part)


class _Csv(_Files):
    kind = "csv"

    def __init__(self, paths: list[str], reading: Reading) -> None:
        super().__init__(paths, reading)
        _refuse_labels(reading, "tables, which contain them as columns")

    def chunks(self, known: Mapping[int, int]) -> Iterator[Chunk | None]:
        first, columns = 0, None
        # Without a column "label", the obvious one has the labels.
        label = None if self.reading.label == "label" else self.reading.label
        wanted = self.reading.weight
        for path in self.paths:
            file: Any = io.BufferedReader(_Stream(_pieces(path)))
            for block in csv_blocks(file, path, label, self.reading.chunk // 12):
                columns = columns or block.columns
                if block.columns != columns:
                    raise ValueError(
                        f"{path} has other columns than {self.paths[0]}; convert them "
                        "one by one"
                    )
                X, weight = block.X, None
                if wanted is not None:
                    if wanted not in columns:
                        raise ValueError(
                            f"{path} has no column {wanted!r} for the weights; give "
                            "another name with weight=... Its columns are "
                            f"{', '.join(columns[:20])}"
                        )
                    at = columns.index(wanted)
                    weight, X = X[:, at], np.delete(X, at, axis=1)
                X = _tidy(X, self.reading.dtype)
                yield _ArrayChunk(path, first, X, block.y, weight)
                first += len(block.y)


_KINDS: dict[str, type[_Files]] = {
    "svmlight": _Text,
    "csv": _Csv,
    "npy": _Numpy,
    "npz": _Numpy,
    "parquet": _Table,
    "arrow": _Table,
}
#: Kinds by name, for files whose content does not tell.
_NAMED = {
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
