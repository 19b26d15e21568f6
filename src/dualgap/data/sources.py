"""Inputs of a conversion: files and batches, read as chunks of bounded size.

A chunk knows the number of its first row (in text, of its first line). A worker thread
loads its rows later.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .chunks import (
    Chunk,
    FileSource,
    Reading,
    Rows,
    Source,
    _column,
    _named,
    array_chunk,
    refuse_labels,
)
from .kinds import kind_of_file
from .numpy_sources import _Batches, _Numpy
from .tables import pyarrow_for
from .text_sources import _Csv, _Text

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Chunk", "Reading", "Source", "source_of"]


def source_of(inputs: object, reading: Reading) -> Source:
    """Return the source for the argument `inputs` of :func:`dualgap.data.convert`."""
    paths = _paths(inputs)
    if paths is None:
        if not isinstance(inputs, Iterable):
            raise TypeError(
                f"inputs is a {type(inputs).__name__}; give a path, a list of paths, "
                "or an iterable of (X, y) or (X, y, sample_weight)"
            )
        refuse_labels(reading, "batches, which contain them")
        return _Batches(inputs, reading)
    for path in paths:
        os.stat(path)  # the usual error
        if os.path.isdir(path):
            raise ValueError(f"{path} is a folder; give the files in it")
    kinds = {_KINDS[kind_of_file(path)] for path in paths}
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.kind for kind in kinds))
        raise ValueError(
            f"inputs are of several kinds ({names}); convert them one by one"
        )
    return kinds.pop()(paths, reading)


def _paths(inputs: object) -> list[str] | None:
    if isinstance(inputs, (str, os.PathLike)):
        return [os.fsdecode(inputs)]
    if not isinstance(inputs, (list, tuple)) or not inputs:
        return None
    if not all(isinstance(item, (str, os.PathLike)) for item in inputs):
        return None
    return [os.fsdecode(item) for item in inputs]


# ------------------------------------------------------------------ Parquet and Arrow


class _Table(FileSource):
    kind, labelled = "table", "tables, which contain them as columns"

    def chunks(self) -> Iterator[Chunk]:
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
                yield array_chunk(path, first, X, y, weight)
                first += len(y)

    def _batches(self, path: str) -> Iterator[pyarrow.RecordBatch]:
        pyarrow = pyarrow_for(path)
        with self._told(path):
            if kind_of_file(path) == "parquet":
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

    def _arrays(self, path: str, batch: pyarrow.RecordBatch) -> Rows:
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

    def _numbers(
        self, path: str, batch: pyarrow.RecordBatch, name: str
    ) -> NDArray[np.float64]:
        column = batch.column(batch.schema.names.index(name))
        if column.null_count:
            raise ValueError(f"{path}: column {name!r} has nulls; fill or drop them")
        values = column.to_numpy(zero_copy_only=False)
        return _column(f"{path}: column {name!r}", values, batch.num_rows)


_KINDS: dict[str, type[FileSource]] = {
    "svmlight": _Text,
    "csv": _Csv,
    "npy": _Numpy,
    "npz": _Numpy,
    "parquet": _Table,
    "arrow": _Table,
}
