"""Rows in svmlight text and in CSV."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..core import parse_svmlight
from .chunks import Chunk, FileSource, Reading, Rows, _tidy, array_chunk
from .svmlight import decompressed, text_pieces
from .tables import csv_blocks, kind_of

#: Longest line of text, in chunks.
_LONGEST_LINE = 8


def _pieces(path: str) -> Iterator[bytes]:
    """Yield the content of a file, decompressed as its first bytes or its name say."""
    if not os.path.isfile(path):
        yield from text_pieces(path)
        return
    with open(path, "rb") as file:
        _, suffix = kind_of(file.read(START))
        file.seek(0)
        suffix = suffix or os.path.splitext(path)[1].lower()
        yield from decompressed(file, suffix, path)


#: Bytes that determine the kind of a file.
START = 2**16


# ---------------------------------------------------------------------- svmlight text


class _Text(FileSource):
    kind, labelled = "svmlight", "svmlight text, which contains labels"

    def chunks(self) -> Iterator[Chunk]:
        first = 0
        for path in self.paths:
            before = 0
            for text in _whole_lines(path, self.reading.chunk):
                yield _text_chunk(path, text, first, before, self.reading)
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


def _text_chunk(
    path: str, text: bytes, first: int, before: int, reading: Reading
) -> Chunk:
    def load() -> Rows:
        nonlocal text
        # With "auto", keep the indices as written; the merge shifts them if needed.
        zero_based = reading.zero_based in ("auto", True)
        try:
            found = parse_svmlight(
                np.frombuffer(text, dtype=np.uint8),
                n_threads=1,
                zero_based=zero_based,
                query_id=False,
                single_precision=reading.dtype == np.float32,
                wide_index=False,
            )
        except ValueError as error:
            message = re.sub(
                r"^line (\d+)", lambda line: f"line {int(line[1]) + before}", str(error)
            )
            raise ValueError(f"{path}, {message}") from None
        text = b""
        shape = len(found.labels), found.n_features
        X = sparse.csr_matrix((found.values, found.indices, found.indptr), shape)
        return X, found.labels, None

    def place(row: int) -> str:
        return f"{path}, after line {before}, example {row + 1}"

    return Chunk(first, load, place, columns=False)


# ------------------------------------------------------------------------ CSV and TSV


class _PieceStream(io.RawIOBase):
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


class _Csv(FileSource):
    kind, labelled = "csv", "tables, which contain them as columns"

    def chunks(self) -> Iterator[Chunk]:
        first, columns = 0, None
        # Without a column "label", the obvious one has the labels.
        label = None if self.reading.label == "label" else self.reading.label
        wanted = self.reading.weight
        for path in self.paths:
            file: Any = io.BufferedReader(_PieceStream(_pieces(path)))
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
                yield array_chunk(path, first, X, block.y, weight)
                first += len(block.y)
