"""Rows in svmlight text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .chunks import Chunk, FileSource, Reading, Rows
from .opening import DataFile, open_data
from .svmlight import has_words, parse

_EXAMPLE = re.compile(rb"^[^\S\n]*[^\s#]", re.MULTILINE)
#: Longest line of text, in chunks.
_LONGEST_LINE = 8


class _Text(FileSource):
    kind, labelled = "svmlight", "svmlight text, which contains labels"

    def rows(self) -> Iterator[Chunk]:
        first, words = 0, None
        for path in self.paths:
            before = 0
            with open_data(path) as file:
                # The first label of all tells whether labels are words.
                words = has_words(file.start) if words is None else words
                for text in _whole_lines(file, self.reading.chunk):
                    weight = None
                    if self.weight is not None:
                        weight = self.weight.numbers(len(_EXAMPLE.findall(text)))
                    yield _text_chunk(
                        path, text, first, before, self.reading, words, weight
                    )
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
    reading: Reading,
    words: bool,
    weight: NDArray[np.float64] | None,
) -> Chunk:
    def load() -> Rows:
        nonlocal text
        # With "auto", keep the indices as written; the merge shifts them if needed.
        zero_based = reading.zero_based in ("auto", True)
        try:
            found, labels = parse(
                text,
                words,
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
        shape = len(labels), found.n_features
        X = sparse.csr_matrix((found.values, found.indices, found.indptr), shape)
        return X, labels, weight

    def place(row: int) -> str:
        return f"{path}, after line {before}, example {row + 1}"

    return Chunk(first, load, place, columns=False)
