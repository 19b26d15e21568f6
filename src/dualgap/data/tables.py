"""Readers of tables: CSV, TSV, Parquet, Arrow and .npz, recognised by content."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .types import MatrixLike

if TYPE_CHECKING:
    from _csv import Reader

    import pyarrow

__all__ = ["CsvBlock", "Table", "csv_blocks", "kind_of", "read_table"]

_COMPRESSED = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"(\xb5/\xfd": ".zst",
}
_BINARY = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"PK\x03\x04": "npz",
    b"\x93NUMPY": "npy",
}
#: First line of svmlight text: a label, followed by an index with a value or nothing.
_SVMLIGHT = re.compile(rb"\s*[^\s#]+\s+(qid:\d+\s+)?\d+:|\s*[^\s,;]+\s*(#|$)")
_SEPARATORS = "\t,;"
#: Default names of the column with the labels.
_LABEL_NAMES = ("label", "target", "class", "y")
_LEAVE_OUT = "leave the column out with columns=..., or encode it as numbers"
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-"}


class Table(NamedTuple):
    """Rows of numbers, their labels or None, and the columns they came from."""

    X: MatrixLike
    y: NDArray[np.generic] | None
    #: Names of the columns of X; None if the file has no names.
    names: list[str] | None
    #: Name of the label column, or its number, counted from 1.
    label: str | None
    #: Names of the columns of X, or their numbers, counted from 1.
    columns: list[str]


def kind_of(start: bytes) -> tuple[str, str | None]:
    """Return the kind of a file and its compression, from its first bytes.

    Returns
    -------
    kind : {"svmlight", "csv", "parquet", "arrow", "npz", "npy", "binary"}
        Kind of the file. For a compressed file it is "svmlight", because only the
        decompressed text tells. "binary" is an unknown format.
    compression : str or None
        Extension that stands for the compression, such as ``".gz"``.
    """
    for magic, suffix in _COMPRESSED.items():
        if start.startswith(magic):
            return "svmlight", suffix
    for magic, kind in _BINARY.items():
        if start.startswith(magic):
            return kind, None
    if b"\0" in start:
        return "binary", None
    for line in start.removeprefix(b"\xef\xbb\xbf").splitlines():
        if line.strip() and not line.lstrip().startswith(b"#"):
            separated = any(mark.encode() in line for mark in _SEPARATORS)
            table = separated and not _SVMLIGHT.match(line)
            return "csv" if table else "svmlight", None
    return "svmlight", None


def read_table(
    content: BinaryIO,
    kind: str,
    name: str,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    needs_label: bool = True,
) -> Table:
    """Read a table.

    Parameters
    ----------
    content : binary file
        The open file.
    kind : {"csv", "parquet", "arrow", "npz", "npy"}
        Kind of the file.
    name : str
        Name of the file, for messages.
    label : str, optional
        Name of the label column, or its number, counted from 1. None uses the column
        named label, target, class or y, or else the only column of text.
    columns : sequence of str, optional
        Names or numbers of the features. None uses all columns but the labels.
    needs_label : bool, default=True
        Whether a table without labels raises an error.

    Raises
    ------
    ValueError
        If a value is missing or not a number (the message names line and column), or a
        column does not exist.
    ImportError
        If pyarrow is missing.
    """
    if kind in ("npz", "npy"):
        table = _arrays(content, kind, name, label, columns)
    elif kind == "csv":
        table = _csv(content, name, label, columns, needs_label)
    else:
        table = _arrow(content, kind, name, label, columns, needs_label)
    if needs_label and table.y is None:
        raise ValueError(f"{name} has no labels; save an array y with X")
    return table


def numbers_of(labels: Sequence[str]) -> NDArray[np.generic]:
    """Return labels as numbers if all of them are numbers, else unchanged."""
    try:
        values = np.array([float(label) for label in labels])
    except ValueError:
        return np.array(labels)
    return values


# --------------------------------------------------------------------- which columns


class _Layout(NamedTuple):
    label: int | None
    features: list[int]


def _layout(
    name: str,
    names: list[str] | None,
    count: int,
    texts: Sequence[int],
    label: str | None,
    columns: Sequence[str] | None,
    needs_label: bool,
) -> _Layout:
    """Return the positions of the label column and of the features."""
    if names is not None and len(set(names)) < len(names):
        twice = next(column for column in names if names.count(column) > 1)
        raise ValueError(
            f"{name} has several columns named {twice!r}; rename all but one"
        )

    def position(wanted: str, role: str) -> int:
        if names is not None and wanted in names:
            return names.index(wanted)
        if wanted.isdecimal() and 1 <= int(wanted) <= count:
            return int(wanted) - 1
        known = f"1 to {count}" if names is None else _few(names)
        raise ValueError(f"{name} has no {role} {wanted!r}; its columns are {known}")

    if names is None and columns and not needs_label and count == len(columns):
        return _Layout(None, list(range(count)))  # the label column was removed
    features = [position(wanted, "column") for wanted in columns or ()]
    at = None
    if label is not None:
        # A missing label column is an error only if labels are required.
        try:
            at = position(label, "label column")
        except ValueError:
            if needs_label:
                raise
    else:
        lower = [column.lower() for column in names or ()]
        named = [lower.index(word) for word in _LABEL_NAMES if word in lower]
        likely = named or (list(texts) if len(texts) == 1 else [])
        if not needs_label:  # a column that was named as a feature is one
            likely = [j for j in likely if j not in features]
        at = likely[0] if likely else None
        if at is None and needs_label:
            known = f"1 to {count}" if names is None else _few(names)
            raise ValueError(
                f"{name} has no obvious label column; name it with label=... Its "
                f"columns are {known}"
            )
    if at in features:
        raise ValueError(
            f"{name}: the label column is among the features; remove it from columns"
        )
    if columns is None:
        features = [j for j in range(count) if j != at]
    if not features:
        raise ValueError(f"{name} has no columns besides the labels; add features")
    return _Layout(at, features)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _named(
    layout: _Layout, names: list[str] | None
) -> tuple[list[str] | None, str | None, list[str]]:
    """Return names of the features, and label and features by name or number."""

    def call(j: int) -> str:
        return str(j + 1) if names is None else names[j]

    label = None if layout.label is None else call(layout.label)
    columns = [call(j) for j in layout.features]
    return None if names is None else columns, label, columns


# ------------------------------------------------------------------------ CSV and TSV


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def _lines(content: BinaryIO, name: str) -> Iterator[io.TextIOWrapper]:
    """Yield the lines of a file of text, and keep the file open."""
    lines = io.TextIOWrapper(content, encoding="utf-8-sig", newline="")
    try:
        yield lines
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not text in UTF-8: {error.reason}") from None
    finally:
        lines.detach()


def _csv(
    content: BinaryIO,
    name: str,
    label: str | None,
    columns: Sequence[str] | None,
    needs_label: bool,
) -> Table:
    values, labels = array("d"), []
    with _lines(content, name) as lines:
        names, layout, rows = _csv_rows(lines, name, label, columns, needs_label)
        for _, row, text in rows:
            values.extend(row)
            labels.append(text)
    X = np.frombuffer(values, np.float64).reshape(-1, len(layout.features))
    y = None if layout.label is None else numbers_of(labels)
    return Table(X, y, *_named(layout, names))


class CsvBlock(NamedTuple):
    """Some rows of a CSV file."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    columns: list[str]


def csv_blocks(
    content: BinaryIO, name: str, label: str | None, entries: int
) -> Iterator[CsvBlock]:
    """Yield the rows of a CSV or TSV file in blocks of at most some `entries` numbers.

    Raises
    ------
    ValueError
        If a value or a label is missing or not a number; the message names line and
        column.
    """
    remedy = "encode it as numbers"
    with _lines(content, name) as lines:
        names, layout, rows = _csv_rows(lines, name, label, None, True, remedy)
        *_, columns = _named(layout, names)
        size = max(1, entries // len(columns))
        while some := list(islice(rows, size)):
            y = np.empty(len(some))
            for k, (line, _, text) in enumerate(some):
                if not _is_number(text) or not math.isfinite(float(text)):
                    raise ValueError(
                        f"{name}, line {line}: the label {text[:40]!r} is not a finite "
                        "number, but stores hold only numbers; number the classes first"
                    )
                y[k] = float(text)
            yield CsvBlock(np.array([row for _, row, _ in some]), y, columns)


def _csv_rows(
    lines: io.TextIOWrapper,
    name: str,
    label: str | None,
    columns: Sequence[str] | None,
    needs_label: bool,
    remedy: str = _LEAVE_OUT,
) -> tuple[list[str] | None, _Layout, Iterator[tuple[int, list[float], str]]]:
    """Return names and layout of the columns, and all rows.

    A row is its line, its features, and the text of its label. `remedy` is for errors
    about features that are no numbers.
    """
    first_line = lines.readline()
    while first_line and not first_line.strip():
        first_line = lines.readline()
    separator = max(_SEPARATORS, key=first_line.count)
    reader = csv.reader(chain([first_line], lines), delimiter=separator, strict=True)
    rows = _rows(reader, name)
    first_at, first = next(rows, (0, []))
    second_at, second = next(rows, (0, []))
    count = len(first)
    header = not any(map(_is_number, first)) or any(
        _is_number(below) and not _is_number(above) and above.strip()
        for above, below in zip(first, second, strict=False)
    )
    if header and not second:
        raise ValueError(f"{name} has no rows; give a file with data")
    names = [field.strip() for field in first] if header else None
    sample = second if header else first
    texts = [
        j
        for j, field in enumerate(sample)
        if not _is_number(field) and field.strip().lower() not in _MISSING
    ]
    layout = _layout(name, names, count, texts, label, columns, needs_label)

    def all_rows() -> Iterator[tuple[int, list[str]]]:
        if not header:
            yield first_at, first
        if second:
            yield second_at, second
        yield from rows

    def checked() -> Iterator[tuple[int, list[float], str]]:
        for line, fields in all_rows():
            if len(fields) != count:
                raise ValueError(
                    f"{name}, line {line}: expected {count} columns as in the first "
                    f"line, found {len(fields)}"
                )
            try:
                row = [float(fields[j]) for j in layout.features]
            except ValueError:
                row = [math.nan]
            if not all(map(math.isfinite, row)):
                _refuse_field(name, line, fields, layout.features, names, remedy)
            text = ""
            if layout.label is not None:
                text = fields[layout.label].strip()
                if text.lower() in _MISSING:
                    _refuse_field(name, line, fields, [layout.label], names)
            yield line, row, text

    return names, layout, checked()


def _rows(reader: Reader, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield every row with the number of its last line; skip blank lines."""
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"{name}, line {reader.line_num}: {error}") from None
        if fields and not (len(fields) == 1 and not fields[0].strip()):
            yield reader.line_num, fields


def _refuse_field(
    name: str,
    line: int,
    fields: list[str],
    among: Sequence[int],
    names: list[str] | None,
    remedy: str = _LEAVE_OUT,
) -> None:
    """Raise an error for the first field that is missing or not a finite number.

    Raises
    ------
    ValueError
        Naming line and column.
    """
    for j in among:
        text = fields[j].strip()
        column = f"{j + 1}" if names is None else f"{j + 1} ({names[j]!r})"
        where = f"{name}, line {line}, column {column}"
        if text.lower() in _MISSING:
            raise ValueError(f"{where}: the value is missing; fill it or drop the row")
        if not _is_number(text) or not math.isfinite(float(text)):
            raise ValueError(
                f"{where}: expected a finite number, found {text[:40]!r}; {remedy}"
            )


# ------------------------------------------------------------------ Parquet and Arrow


def _arrow(
    content: BinaryIO,
    kind: str,
    name: str,
    label: str | None,
    columns: Sequence[str] | None,
    needs_label: bool,
) -> Table:
    pyarrow = pyarrow_for(name)
    try:
        if kind == "parquet":
            table = pyarrow.parquet.ParquetFile(content).read()
        else:
            table = pyarrow.ipc.open_file(content).read_all()
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).split(". ")[0].rstrip(".")
        raise ValueError(f"{name} cannot be read: {reason}") from None
    names = list(table.schema.names)
    texts = [j for j, field in enumerate(table.schema) if not _is_numeric(field.type)]
    layout = _layout(name, names, len(names), texts, label, columns, needs_label)
    X = np.empty((table.num_rows, len(layout.features)))
    for at, j in enumerate(layout.features):
        X[:, at] = _column(table.column(j), name, names[j], j in texts)
        bad = ~np.isfinite(X[:, at])
        if bad.any():
            _refuse_cell(name, int(bad.argmax()), names[j])
    y = None
    if layout.label is not None:
        column = table.column(layout.label)
        y = _column(column, name, names[layout.label], False)
        y = numbers_of(y.tolist()) if layout.label in texts else y.astype(np.float64)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            _refuse_cell(name, int((~np.isfinite(y)).argmax()), names[layout.label])
    if table.num_rows == 0:
        raise ValueError(f"{name} has no rows; give a file with data")
    return Table(X, y, *_named(layout, names))


def pyarrow_for(name: str) -> ModuleType:
    """Return the module pyarrow, which reads a file of this name."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            f"reading {name} needs the package pyarrow; install it with: "
            "pip install 'dualgap[arrow]'"
        ) from None
    return pyarrow


def _is_numeric(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def _column(
    column: pyarrow.ChunkedArray, name: str, title: str, text: bool
) -> NDArray[np.generic]:
    if text:
        raise ValueError(
            f"{name}: column {title!r} has type {column.type}, not numbers; "
            f"{_LEAVE_OUT}"
        )
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise ValueError(
            f"{name}, row {row + 1}, column {title!r}: the value is missing; fill it "
            "or drop the row"
        )
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _refuse_cell(name: str, row: int, title: str) -> None:
    raise ValueError(
        f"{name}, row {row + 1}, column {title!r}: the value is NaN or infinite; "
        "replace it or drop the row"
    )


# ------------------------------------------------------------------------------- .npz


def _arrays(
    content: BinaryIO,
    kind: str,
    name: str,
    label: str | None,
    columns: Sequence[str] | None,
) -> Table:
    import zipfile
    import zlib

    if label is not None or columns is not None:
        option = "label" if label is not None else "columns"
        raise ValueError(f"{option}=... is for tables; {name} has arrays X and y")
    try:
        loaded = np.load(content, allow_pickle=False)
        arrays = {"X": loaded} if kind == "npy" else dict(loaded)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError) as error:
        raise ValueError(f"{name} cannot be read: {error}") from None
    if "X" in arrays:
        X: MatrixLike = arrays["X"]
    elif {"data", "indices", "indptr", "shape", "format"} <= set(arrays):
        from scipy import sparse

        form = arrays["format"].item()
        if form not in (b"csr", "csr"):
            raise ValueError(
                f"{name} has a matrix in the format {form!r}; save X.tocsr()"
            )
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        X = sparse.csr_matrix(parts, shape=tuple(arrays["shape"]))
    else:
        raise ValueError(
            f"{name} has the arrays {', '.join(sorted(arrays))}; expected X and y"
        )
    y = arrays.get("y")
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(
            f"{name}: X has shape {X.shape} and dtype {X.dtype}; expected numbers of "
            "shape (n, d)"
        )
    X = X.astype(np.float64)
    values = X.data if hasattr(X, "indptr") else X
    if not np.isfinite(np.asarray(values)).all():
        raise ValueError(f"{name}: X contains NaN or infinite values")
    if y is not None and (y.shape != X.shape[:1] or y.dtype.kind not in "biufUS"):
        raise ValueError(
            f"{name}: y has shape {y.shape} and dtype {y.dtype}; expected labels of "
            f"shape ({X.shape[0]},)"
        )
    if y is not None:
        y = y.astype(str) if y.dtype.kind in "US" else y.astype(np.float64)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError(f"{name}: y contains NaN or infinite values")
    return Table(X, y, None, None, [str(j + 1) for j in range(X.shape[1])])
