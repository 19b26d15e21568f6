"""Inputs of a conversion: files and batches, read as chunks of bounded size.

A chunk knows the number of its first row (in text, of its first line). A worker thread
loads its rows later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .chunks import (
    Chunk,
    Given,
    Labels,
    Plan,
    Rows,
    Source,
    _tidy,
    array_chunk,
    array_chunks,
    batch_chunks,
    refuse_given,
)
from .features import Features
from .opening import DataFile, kind_of_file, open_data
from .svmlight import has_words, parse
from .table_file import TableOptions
from .tables import (
    ROWS,
    Encoder,
    TableLearner,
    TableRows,
    joined,
    known_wants,
    open_table,
)

_EXAMPLE = re.compile(rb"^[^\S\n]*[^\s#]", re.MULTILINE)
#: Longest line of text, in chunks.
_LONGEST_LINE = 8


def source_of(inputs: object, plan: Plan) -> Source:
    """Return the source for the argument `inputs` of :func:`dualgap.data.convert`."""
    paths = _paths(inputs)
    if paths is None:
        if not isinstance(inputs, Iterable):
            raise TypeError(
                f"inputs is a {type(inputs).__name__}; give a path, a list of paths, "
                "or an iterable of (X, y) or (X, y, sample_weight)"
            )
        refuse_given("y", plan.y, "batches, which contain them")
        refuse_given("sample_weight", plan.sample_weight, "batches, which contain them")
        return Source("the iterable", "batches", plan, inputs, batch_chunks)
    for path in paths:
        os.stat(path)  # the usual error
        if os.path.isdir(path):
            raise ValueError(f"{path} is a folder; give the files in it")
    kinds = {_KINDS.get(kind_of_file(path), "table") for path in paths}
    if len(kinds) > 1:
        raise ValueError(
            f"inputs are of several kinds ({', '.join(sorted(kinds))}); convert them "
            "one by one"
        )
    kind = kinds.pop()
    if kind != "numpy":
        told = {
            "svmlight": "svmlight text, which contains labels",
            "table": "tables, which contain them as columns",
        }
        refuse_given("y", plan.y, told[kind])
    return Source(", ".join(paths), kind, plan, paths, _READERS[kind])


def _paths(inputs: object) -> list[str] | None:
    every = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    paths = [os.fsdecode(x) for x in every if isinstance(x, (str, os.PathLike))]
    return paths if paths and len(paths) == len(every) else None


# ------------------------------------------------------------------------------- text


def _text_chunks(source: Source, weight: Given | None) -> Iterator[Chunk]:
    first, words = 0, None
    for path in source.inputs:
        before = 0
        with open_data(path) as file:
            # The first label of all tells whether labels are words.
            words = has_words(file.start) if words is None else words
            for text in _whole_lines(file, source.plan.chunk):
                own = None
                if weight is not None:
                    own = weight.numbers(len(_EXAMPLE.findall(text)))
                yield _text_chunk(path, text, first, before, source.plan, words, own)
                lines = text.count(b"\n") + (not text.endswith(b"\n"))
                first, before = first + lines, before + lines


def _whole_lines(file: DataFile, size: int) -> Iterator[bytes]:
    """Yield the text in parts of about `size` bytes that end with a complete line."""
    parts: list[bytes] = []
    held = 0
    for piece in file.pieces():
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
                f"{file.name} has a line of more than {held} bytes; give more memory"
            )
        else:
            parts = [text]
        del text
    if held:
        yield b"".join(parts)


def _text_chunk(
    path: str,
    text: bytes,
    first: int,
    before: int,
    plan: Plan,
    words: bool,
    weight: NDArray[np.float64] | None,
) -> Chunk:
    def load() -> Rows:
        nonlocal text
        # With "auto", keep the indices as written; the merge shifts them if needed.
        zero_based = plan.zero_based in ("auto", True)
        try:
            found, labels = parse(
                text,
                words,
                n_threads=1,
                zero_based=zero_based,
                query_id=False,
                single_precision=plan.dtype == np.float32,
                wide_index=False,
            )
        except ValueError as error:
            message = re.sub(
                r"^line (\d+)", lambda line: f"line {int(line[1]) + before}", str(error)
            )
            raise ValueError(f"{path}, {message}") from None
        text = b""
        shape = len(labels), found.n_features
        X = sparse.csr_matrix((found.values, found.indices, found.indptr), shape)
        return X, labels, weight

    def place(row: int) -> str:
        return f"{path}, after line {before}, example {row + 1}"

    return Chunk(first, load, place, columns=False)


# ----------------------------------------------------------------------------- tables


def _table_chunks(source: Source, weight: Given | None) -> Iterator[Chunk]:
    plan = source.plan
    source.features = known = _learnt(source.inputs, plan.table)
    first = 0
    row = 12 * (len(known.columns) if known.sparse else known.width)
    size = max(1, plan.chunk // row)
    for path in source.inputs:
        with (
            open_data(path) as file,
            open_table(file.content, file.kind, path, plan.table) as table,
        ):
            layout = table.placed(known, None, True, True)
            encoder = Encoder(known, layout, weight)
            blocks = table.blocks(known_wants(table, layout, known, True, True), size)
            for rows in _gathered(map(encoder.rows, blocks), size):
                y = _labels(path, rows, known)
                yield array_chunk(
                    path, first, _tidy(rows.X, plan.dtype), y, rows.weight
                )
                first += len(y)


def _learnt(paths: list[str], options: TableOptions) -> Features:
    """Return the description of the columns; a second reading has the rows."""
    learner = None
    for path in paths:
        with (
            open_data(path) as file,
            open_table(file.content, file.kind, path, options) as table,
        ):
            if learner is None:
                layout = table.layout(options, True)
                learner = TableLearner(table, layout, options)
            else:
                layout = table.placed(learner.described(), None, True, True)
            for _ in learner.blocks(table, layout, ROWS, True):
                if learner.plain:
                    return learner.learnt()
    assert learner is not None
    return learner.learnt()


def _labels(path: str, rows: TableRows, known: Features) -> Labels:
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


#: Kinds of files, but for tables.
_KINDS = {"svmlight": "svmlight", "npy": "numpy", "npz": "numpy"}
_READERS = {"svmlight": _text_chunks, "table": _table_chunks, "numpy": array_chunks}
