"""Inputs of a conversion: files and batches, read as chunks of bounded size.

A chunk knows the number of its first row (in text, of its first line). A worker thread
loads its rows later.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

import numpy as np

from .chunks import (
    Chunk,
    FileSource,
    Labels,
    Reading,
    Source,
    _tidy,
    array_chunk,
    refuse_given,
)
from .features import Features
from .numpy_sources import _Batches, _Numpy
from .opening import kind_of_file, open_data
from .table_file import TableFile
from .tables import Encoder, TableLearner, TableRows, joined, known_wants, open_table
from .text_sources import _Text

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
        for name in ("y", "sample_weight"):
            refuse_given(name, getattr(reading, name), "batches, which contain them")
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


# ----------------------------------------------------------------------------- tables


class _Tables(FileSource):
    """Tables of text, Parquet or Arrow, with the same columns by name."""

    kind, labelled = "table", "tables, which contain them as columns"

    def rows(self) -> Iterator[Chunk]:
        self.features = known = self._learnt()
        first = 0
        row = 12 * (len(known.columns) if known.sparse else known.width)
        size = max(1, self.reading.chunk // row)
        for path in self.paths:
            with self._opened(path) as table:
                layout = table.placed(known, None, True, True)
                encoder = Encoder(known, layout, self.weight)
                blocks = table.blocks(
                    known_wants(table, layout, known, True, True), size
                )
                for rows in _gathered(map(encoder.rows, blocks), size):
                    y = self._labels(path, rows, known)
                    X = _tidy(rows.X, self.reading.dtype)
                    yield array_chunk(path, first, X, y, rows.weight)
                    first += len(y)

    def _learnt(self) -> Features:
        """Return the description of the columns; a second reading has the rows."""
        learner = None
        for path in self.paths:
            with self._opened(path) as table:
                if learner is None:
                    layout = table.layout(self.reading.table, True)
                    learner = TableLearner(table, layout, self.reading.table)
                else:
                    layout = table.placed(learner.described(), None, True, True)
                for _ in learner.blocks(table, layout, _LOOK, True):
                    if learner.plain:
                        return learner.learnt()
        assert learner is not None
        return learner.learnt()

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[TableFile]:
        decimal = self.reading.table.decimal
        with open_data(path) as file:
            table = open_table(file.content, file.kind, path, decimal)
            with contextlib.closing(table):
                yield table

    def _labels(self, path: str, rows: TableRows, known: Features) -> Labels:
        """Return labels, after refusing words where the first ones are numbers."""
        y = rows.y
        assert y is not None
        if y.dtype.kind != "U":
            return y.astype(np.float64)
        if known.classes is None:
            odd = next(label for label in y if not label.replace(".", "", 1).isdigit())
            raise ValueError(
                f"{path}: the label {odd[:40]!r} is not a number, unlike the first ones"
            )
        return y


#: Rows to look at when learning about columns.
_LOOK = 2**16


def _gathered(parts: Iterable[TableRows], size: int) -> Iterator[TableRows]:
    """Yield rows in parts of about `size`."""
    some, count = list[TableRows](), 0
    for part in parts:
        some.append(part)
        count += part.X.shape[0]
        if count >= size:
            yield joined(some, count)
            some, count = [], 0
    if some:
        yield joined(some, count)


_KINDS: dict[str, type[FileSource]] = {
    "svmlight": _Text,
    "csv": _Tables,
    "npy": _Numpy,
    "npz": _Numpy,
    "parquet": _Tables,
    "arrow": _Tables,
}
