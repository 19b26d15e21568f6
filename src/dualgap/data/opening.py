"""Data files: what they are, decompressed, and open."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import IO, Any, BinaryIO, NamedTuple

from .csv_table import SEPARATORS

#: Bytes that determine the kind of a file.
START = 2**16

_COMPRESSED = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"(\xb5/\xfd": ".zst",
}
_BINARY = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\x93NUMPY": "npy",
    b"\xff\xff\xff\xff": "stream",
    b"\xd0\xcf\x11\xe0": "xlsx",
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"%PDF": "binary",
}
_ZIP = b"PK\x03\x04"
#: Kinds that are text.
TEXTS = ("svmlight", "csv")
#: First line of svmlight text: a label, followed by an index with a value or nothing.
_SVMLIGHT = re.compile(rb"\s*[^\s#]+\s+(qid:\d+\s+)?\d+:|\s*[^\s,;|]+\s*(#|$)")
#: A date and a time of day, whose hour is no index.
_TIME = re.compile(rb"\d[-/.]\d\d?[-/.]\d+\s+\d\d?:\d\d")
#: First line for Vowpal Wabbit: a label, and names with values behind a bar.
_WABBIT = re.compile(rb"[-+.\d\s]*('\S*\s*)?\|\S*\s[^|]*[A-Za-z_][^\s|:]*:[-+.\d]")
#: Kinds by name, for files whose content does not tell.
NAMED = {
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
#: What to do about files that are something else.
_OTHERS = {
    "xlsx": "is a workbook of Excel or LibreOffice; save the sheet as CSV",
    "json": "is JSON; save the table as CSV or Parquet",
    "markup": "is HTML or XML; save the table as CSV",
    "arff": "is ARFF (Weka); read it with scipy.io.arff and save it as CSV",
    "utf-16": "is UTF-16; save it as UTF-8",
    "utf-32": "is UTF-32; save it as UTF-8",
    "stream": "is a stream of Arrow; save it as an Arrow file, or as Parquet",
    "wabbit": "is text for Vowpal Wabbit; save it as svmlight text",
    "empty": "has no examples; give a file with data",
    "lines": "has a lone carriage return at the end of lines; convert it with: "
    "tr '\\r' '\\n'",
    "binary": "is not a data file; give svmlight text, CSV, TSV, Parquet, Arrow, .npy "
    "or .npz (text has no NUL bytes)",
}
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
        extension = os.path.splitext(name)[1].lower()
        if suffix is None and kind in ("svmlight", "binary", "empty"):
            kind = NAMED.get(extension, kind)
            suffix = extension if extension in DECOMPRESSORS else None
        elif suffix == ".zip" and extension == ".npz":  # some other file comes first
            kind, suffix = "npz", None
        if regular:
            file.seek(0)
        elif suffix is None and kind in TEXTS:  # a pipe can be read only once
            file = _stream(chain([start], _plain(file)), name)
        else:
            file = io.BytesIO(start + file.read())
        if suffix is not None:
            pieces = decompressed(file, suffix, name)
            start = next(pieces, b"")
            kind, again = kind_of(start)
            if again is not None:
                raise ValueError(f"{name} holds a compressed file; decompress it first")
            file = _stream(chain([start], pieces), name)
            if kind not in TEXTS:
                file = io.BytesIO(file.read())
        if kind in _OTHERS:
            raise ValueError(f"{name} {_OTHERS[kind]}")
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


# ------------------------------------------------------------------ kinds of files


def kind_of(start: bytes) -> tuple[str, str | None]:
    """Return the kind of a file and its compression, from its first bytes.

    Returns `kind`: "svmlight", "csv", "parquet", "arrow", "npz" or "npy", or what no
    command reads, a key of `_OTHERS`: "utf-16" for other text than tables, "binary" for
    an unknown format. For a compressed file it is "svmlight", because only the
    decompressed text tells. `compression`: its extension, such as ``".gz"``.
    """
    for magic, suffix in _COMPRESSED.items():
        if start.startswith(magic):
            return "svmlight", suffix
    for magic, kind in _BINARY.items():
        if start.startswith(magic):
            return kind, None
    if start.startswith(_ZIP):
        return _kind_of_zip(start)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = start[: len(start) & -2].decode("utf-16", "replace").encode()
        kind = _kind_of_text(text)
        return "utf-16" if kind == "svmlight" else kind, None
    if b"\0" in start:
        return "binary", None
    return _kind_of_text(start.removeprefix(b"\xef\xbb\xbf")), None


def _kind_of_zip(start: bytes) -> tuple[str, str | None]:
    """Return the kind of an archive by the name of its first member."""
    first = start[30 : 30 + int.from_bytes(start[26:28], "little")]
    office = b"[Content_Types]", b"xl/", b"_rels/", b"docProps/", b"mimetype"
    if first.startswith(office):
        return "xlsx", None
    array = not first or first.endswith(b".npy")
    return ("npz", None) if array else ("svmlight", ".zip")


def _kind_of_text(start: bytes) -> str:
    if re.match(rb"\s*(%[^\n]*\n\s*)*@relation\b", start, re.IGNORECASE):
        return "arff"
    if re.match(rb"\s*<(!doctype|html|\?xml|table|stata_dta)\b", start, re.IGNORECASE):
        return "markup"
    if re.match(rb"\s*(\[\s*)?\{\s*[\"}]|\s*\[\s*[\[\d\"-]", start):
        return "json"
    if start.isspace() or not start:
        return "empty"
    for line in start.splitlines():
        if line.strip() and not line.lstrip().startswith(b"#"):
            text = b'"' in line or _TIME.search(line)
            if _SVMLIGHT.match(line) and not text:
                return "lines" if b"\r" in start and b"\n" not in start else "svmlight"
            if _WABBIT.match(line):
                return "wabbit"
            separated = any(mark.encode() in line for mark in (*SEPARATORS, '"'))
            blanks = len(line.split()) > 1 and b":" not in line
            return "csv" if separated or blanks else "svmlight"
    return "svmlight"


# ------------------------------------------------------------------ compressed files


def _plain(file: IO[bytes] | io.BufferedIOBase) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


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
    # An encrypted archive raises RuntimeError.
    except (zipfile.BadZipFile, RuntimeError, UnicodeDecodeError) as error:
        raise OSError(str(error)) from error


DECOMPRESSORS: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    ".gz": lambda file: _plain(gzip.GzipFile(fileobj=file)),
    ".bz2": lambda file: _plain(bz2.BZ2File(file)),
    ".xz": lambda file: _plain(lzma.LZMAFile(file)),  # noqa: SIM115  (it opens none)
    ".zst": _zst,
    ".zip": _zip,
}
