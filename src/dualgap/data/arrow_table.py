"""Reader of Parquet and Arrow files; pyarrow is imported when one is opened."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from .chunks import _named
from .features import Column, Words
from .table_file import IDS, ColumnError, TableFile, Want, numbers_rows

if TYPE_CHECKING:
    import pyarrow

#: Rows that tell whether a column numbers the rows.
_LOOK = 100


class ArrowTable(TableFile):
    """A table in a Parquet or Arrow file."""

    def __init__(self, content: BinaryIO, kind: str, name: str) -> None:
        pyarrow = _pyarrow_for(name)
        super().__init__(name)
        self._kinds = (pyarrow.ArrowException, UnicodeDecodeError, OSError)
        self._parquet = kind == "parquet"
        with self.told():
            if self._parquet:
                # Buffered columns of a whole group of rows would stay in memory.
                self._file = pyarrow.parquet.ParquetFile(content, pre_buffer=False)
                schema = self._file.schema_arrow
                self.rows = self._file.metadata.num_rows
            else:
                self._file = pyarrow.ipc.open_file(content)
                schema = self._file.schema
            names: list[str] = list(schema.names)
        if names.count("") > 1:
            raise ValueError(f"{name} has several columns without a name; name them")
        self.names, self.count = names, len(names)
        # pandas writes the numbers of the rows into columns of their own.
        about = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        index = about.get("index_columns", [])
        self.index = [
            j
            for j, title in enumerate(names)
            if title in index or (IDS.fullmatch(title) and self._counts(j, title))
        ]
        types = pyarrow.types
        self.texts = [j for j, f in enumerate(schema) if _is_text(types, f.type)]

    def _counts(self, j: int, title: str) -> bool:
        """Whether a column numbers the rows, by the first ones."""
        with self.told():
            batch = next(self._batches([j], _LOOK), None)
        first = [] if batch is None else batch.column(title).slice(0, _LOOK).to_pylist()
        return numbers_rows(title, j, first)

    def told(self) -> contextlib.AbstractContextManager[None]:
        return _named(f"{self.name} cannot be read", self._kinds)

    def close(self) -> None:
        import pyarrow

        del self._file
        pyarrow.default_memory_pool().release_unused()

    def _parts(self, wanted: list[int], size: int) -> Iterator[int]:
        self._first, batches = 0, self._batches(wanted, size)
        while True:
            with self.told():
                batch = next(batches, None)
            if batch is None:
                return
            self._batch = batch
            yield batch.num_rows
            self._first += batch.num_rows

    def _batches(self, wanted: list[int], size: int) -> Iterator[pyarrow.RecordBatch]:
        if self._parquet:
            names = [self.own_name(j) for j in wanted]
            for k in range(self._file.num_row_groups):  # else it holds the whole file
                yield from self._file.iter_batches(size, [k], names)
            return
        for k in range(self._file.num_record_batches):
            batch = self._file.get_batch(k)
            for at in range(0, batch.num_rows, size):
                yield batch.slice(at, size)

    def _place(self, j: int, row: int) -> str:
        return f"row {self._first + row + 1}, column {self.title(j)!r}"

    def _column(self, j: int, want: Want) -> Column:
        import pyarrow

        types = pyarrow.types
        array = self._batch.column(self.own_name(j))
        if types.is_dictionary(array.type) and not _is_text(types, array.type):
            array = array.dictionary_decode()
        kind, refused = array.type, ""
        if (_is_text(types, kind) or want.words) and not types.is_nested(kind):
            text = pyarrow.string()
            if types.is_floating(kind):  # NaN is no word
                values = array.to_numpy(zero_copy_only=False)
                array = pyarrow.array(values, from_pandas=True)
            with self.told():  # such as bytes that are no text
                if not types.is_dictionary(kind):
                    array = array.cast(text).dictionary_encode()
                words = array.dictionary.cast(text).to_pylist()
            codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            found = _stripped(codes.astype(np.int32), words)
            if want.words is not False:
                return found
            numbers = found.numbers()
            flags = found.flags() if numbers is None else numbers
            if flags is not None:
                return flags
            refused = (
                f"words such as {found.words[0]!r} in the place of numbers; give "
                "numbers"
            )
        elif types.is_temporal(kind):
            refused = (
                f"dates or times ({kind}), which are no features; turn them into "
                "numbers, or leave the column out with columns=..."
            )
        elif not (
            types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind)
        ):
            refused = (
                f"type {kind}, not numbers or words; leave the column out with "
                "columns=..."
            )
        if refused:
            place = f"column {self.title(j)!r}"
            raise ColumnError(f"{self.name}: ", place, f" has {refused}")
        if types.is_boolean(kind):
            array = array.cast(pyarrow.uint8())
        elif types.is_decimal(kind) or types.is_null(kind):
            array = array.cast(pyarrow.float64())
        values = array.to_numpy(zero_copy_only=False)
        return values.astype(np.float64)  # a copy, so that the batch can go


def _stripped(codes: np.ndarray, words: list[str | None]) -> Words:
    """Return a column of words without blanks around them; empty ones are missing."""
    place: dict[str, int] = {}
    new = [
        place.setdefault(word.strip(), len(place)) if word and word.strip() else -1
        for word in words
    ]
    return Words(np.array([*new, -1], np.int32)[codes], list(place))


def _pyarrow_for(name: str) -> ModuleType:
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


def _is_text(types: ModuleType, kind: pyarrow.DataType) -> bool:
    if types.is_dictionary(kind):
        return _is_text(types, kind.value_type)
    kinds = types.is_string, types.is_large_string, types.is_string_view
    return any(holds(kind) for holds in kinds)
