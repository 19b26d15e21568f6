"""Data files: what they are, decompressed, and open."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import IO, Any, BinaryIO, NamedTuple

from .kinds import NAMED, START, TEXTS, kind_of, refuse_kind

#: Bytes of a piece of text.
_PIECE = 1 << 20


class DataFile(NamedTuple):
    """An open file with data, decompressed."""

    kind: str
    name: str
    #: Can go back to its start, unless the kind is one of text.
    content: BinaryIO
    #: First bytes of the content.
    start: bytes
    #: Whether the content is the file itself, not decompressed.
    plain: bool

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in pieces of about 1 MiB, without a byte order mark."""
        return decompressed(self.content, "", self.name)


@contextlib.contextmanager
def open_data(path: str, stream: BinaryIO | None = None) -> Iterator[DataFile]:
    """Open a file of a kind that commands read, known by its content or its name.

    `stream` is read in place of the path, from standard input. Raises ValueError for
    another kind, or damage.
    """
    name = path if stream is None else "standard input"
    with contextlib.ExitStack() as stack:
        file = stream or stack.enter_context(open(path, "rb"))
        regular = stream is None and os.path.isfile(path)
        start = file.read(START)
        kind, suffix = kind_of(start)
        if suffix is None and kind in ("svmlight", "binary"):
            extension = os.path.splitext(name)[1].lower()
            kind = NAMED.get(extension, kind)
            suffix = extension if extension in DECOMPRESSORS else None
        if regular:
            file.seek(0)
        elif suffix is None and kind in TEXTS:  # a pipe can be read only once
            file = _stream(chain([start], _plain(file)), name)
        else:
            file = io.BytesIO(start + file.read())
        if suffix is not None:
            pieces = decompressed(file, suffix, name)
            start = next(pieces, b"")
            kind, _ = kind_of(start)
            file = _stream(chain([start], pieces), name)
            if kind not in TEXTS:
                file = io.BytesIO(file.read())
        refuse_kind(kind, name)
        yield DataFile(kind, name, file, start, regular and suffix is None)


def kind_of_file(path: str) -> str:
    """Return the kind of a file; a pipe, which can be read only once, has text."""
    if not os.path.isfile(path):
        return "svmlight"
    with open_data(path) as found:
        if not found.plain and found.kind not in TEXTS:
            raise ValueError(
                f"{path} is a compressed {found.kind} file; decompress it first"
            )
        return found.kind


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes], name: str) -> None:
        self.name = name
        self.pieces, self.rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.rest:
            self.rest = memoryview(next(self.pieces, b""))
        part = self.rest[: len(buffer)]
        self.rest = self.rest[len(part) :]
        buffer[: len(part)] = part
        return len(part)

    def readall(self) -> bytes:
        whole = io.BytesIO(self.rest)  # grows in place
        whole.seek(0, io.SEEK_END)
        whole.writelines(self.pieces)
        return whole.getvalue()


def _stream(pieces: Iterator[bytes], name: str) -> BinaryIO:
    """Return pieces of bytes as a file that is read once."""
    return io.BufferedReader(_Pieces(pieces, name))


def decompressed(file: BinaryIO, extension: str, name: str) -> Iterator[bytes]:
    """Yield the content of an open file, decompressed according to an extension."""
    decompress: Callable[[BinaryIO], Iterator[bytes]]
    decompress = DECOMPRESSORS.get(extension, _plain)
    pieces = decompress(file)
    mark = b"\xef\xbb\xbf"  # of UTF-8, at the start of text
    while True:
        try:
            piece = next(pieces, None)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            if decompress is _plain:
                raise
            raise ValueError(f"{name} cannot be decompressed: {error}") from error
        if piece is None:
            return
        yield piece.removeprefix(mark)
        mark = b""


# ------------------------------------------------------------------ compressed files


def _plain(file: IO[bytes] | io.BufferedIOBase) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _inside(
    opened: Callable[[BinaryIO], contextlib.AbstractContextManager[io.BufferedIOBase]],
) -> Callable[[BinaryIO], Iterator[bytes]]:
    """Return a decompressor from a class that wraps a file."""

    def pieces(file: BinaryIO) -> Iterator[bytes]:
        with opened(file) as reader:
            yield from _plain(reader)

    return pieces


def _zst(file: BinaryIO) -> Iterator[bytes]:
    if sys.version_info >= (3, 14):
        from compression import zstd

        try:
            with zstd.ZstdFile(file) as reader:
                yield from _plain(reader)
        except zstd.ZstdError as error:
            raise OSError(str(error)) from error
        return
    try:
        import zstandard
    except ImportError as error:
        raise ImportError(
            "reading a .zst file needs the package zstandard; install it with: "
            "pip install zstandard"
        ) from error
    # zstandard's own file object does not notice a truncated frame.
    frame = None
    while chunk := file.read(_PIECE):
        while chunk:
            if frame is None:
                frame = zstandard.ZstdDecompressor().decompressobj()
            try:
                piece = frame.decompress(chunk)
            except zstandard.ZstdError as error:
                raise OSError(str(error)) from error
            yield piece
            chunk = b""
            if frame.eof:
                chunk, frame = frame.unused_data, None
    if frame is not None:
        raise EOFError("the file ends within a zstandard frame")


def _zip(file: BinaryIO) -> Iterator[bytes]:
    """Yield the only member of an archive."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = [n for n in archive.namelist() if n[-1:] != "/" and n[:2] != "__"]
            if len(names) != 1:
                raise OSError(
                    f"it has {len(names)} files; unpack it and give one of them"
                )
            with archive.open(names[0]) as reader:
                yield from _plain(reader)
    except (zipfile.BadZipFile, RuntimeError) as error:  # encrypted: RuntimeError
        raise OSError(str(error)) from error


DECOMPRESSORS: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    ".gz": _inside(lambda file: gzip.GzipFile(fileobj=file)),
    ".bz2": _inside(bz2.BZ2File),
    ".xz": _inside(lzma.LZMAFile),
    ".zst": _zst,
    ".zip": _zip,
}
