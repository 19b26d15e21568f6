"""Kind of a file, from its first bytes or its name."""

from __future__ import annotations

import re

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
#: First line for Vowpal Wabbit: a label, and names with values behind a bar.
_WABBIT = re.compile(rb"[-+.\d\s]*('\S*)?\|\S*\s[^|]*[^\s|]:[-+.\d]")
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
    "xlsx": "is a workbook of Excel; save the sheet as CSV",
    "json": "is JSON; save the table as CSV or Parquet",
    "markup": "is HTML or XML; save the table as CSV",
    "arff": "is ARFF (Weka); read it with scipy.io.arff and save it as CSV",
    "utf-16": "is UTF-16; save it as UTF-8",
    "utf-32": "is UTF-32; save it as UTF-8",
    "stream": "is a stream of Arrow; save it as an Arrow file, or as Parquet",
    "wabbit": "is text for Vowpal Wabbit; save it as svmlight text",
    "lines": "has a lone carriage return at the end of lines; convert it with: "
    "tr '\\r' '\\n'",
    "binary": "is not a data file; give svmlight text, CSV, TSV, Parquet, Arrow, .npy "
    "or .npz (text has no NUL bytes)",
}


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
    if first.startswith((b"[Content_Types]", b"xl/", b"_rels/", b"docProps/")):
        return "xlsx", None
    array = not first or first.endswith(b".npy")
    return ("npz", None) if array else ("svmlight", ".zip")


def _kind_of_text(start: bytes) -> str:
    if re.match(rb"\s*(%[^\n]*\n\s*)*@relation\b", start, re.IGNORECASE):
        return "arff"
    if re.match(rb"\s*<(!doctype|html|\?xml)\b", start, re.IGNORECASE):
        return "markup"
    if re.match(rb"\s*(\[\s*)?\{\s*[\"}]|\s*\[\s*[\[\d\"-]", start):
        return "json"
    for line in start.splitlines():
        if line.strip() and not line.lstrip().startswith(b"#"):
            if _SVMLIGHT.match(line):
                return "lines" if b"\r" in start and b"\n" not in start else "svmlight"
            if _WABBIT.match(line):
                return "wabbit"
            separated = any(mark.encode() in line for mark in SEPARATORS)
            blanks = len(line.split()) > 1 and b":" not in line
            return "csv" if separated or blanks else "svmlight"
    return "svmlight"


def refuse_kind(kind: str, name: str) -> None:
    """Raise an error for a file of a kind that no command reads."""
    if kind in _OTHERS:
        raise ValueError(f"{name} {_OTHERS[kind]}")
