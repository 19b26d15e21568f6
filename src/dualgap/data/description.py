"""Description of a row store, `store.json`: its fields, checksums, and arrays."""

from __future__ import annotations

import hashlib
import json
import math
import typing
from collections.abc import Mapping
from typing import TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from .features import Features

FORMAT, FORMAT_VERSION = "dualgap-store", 5
DESCRIPTION = "store.json"
#: What to do about a damaged store.
REMEDY = "make it again with dualgap convert"
#: Bytes of an array that have one checksum. Where a block ends within them, its first
#: read reads all of them.
PIECE = 2**16
#: Bytes of the header of an array, in the format of NumPy: a page of memory, because
#: direct reads are of whole pages.
HEADER = 4096

_DTYPES = {
    "values": ("<f4", "<f8"),
    "indices": ("<i4", "<i8"),
    "indptr": ("<i8",),
    "y": ("|i1", "<i4", "<i8", "<f8"),
    "weight": ("<f8",),
}


class Description(TypedDict):
    """Fields of the description of a store."""

    format: str
    format_version: int
    dualgap_version: str
    n_samples: int
    n_features: int
    entries: int
    largest_row: int
    dense: bool
    shuffled: bool
    seed: int
    zero_based: bool
    #: Features of a table, in JSON, or nothing.
    columns: str
    #: Words that are the labels, sorted, whose numbers y has; none if y has labels.
    classes: list[str]
    #: Data types of the arrays, and CRC-32C of every 64 KiB of them, in hexadecimal.
    arrays: dict[str, str]
    checksums: dict[str, str]
    sha256: str


_KINDS = {
    field: typing.get_origin(kind) or kind
    for field, kind in typing.get_type_hints(Description).items()
}


def shape_of(description: Mapping[str, typing.Any], name: str) -> tuple[int, ...]:
    """Return the shape of an array."""
    n = description["n_samples"]
    if name == "values" and description["dense"]:
        return n, description["n_features"]
    sizes = {"values": "entries", "indices": "entries"}
    return (description[sizes[name]] if name in sizes else n + (name == "indptr"),)


def header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of a .npy file."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    start = b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little")
    return start + text.ljust(HEADER - 11).encode() + b"\n"


def digest(description: Mapping[str, object]) -> str:
    """Return the SHA-256 of a description, without its field "sha256"."""
    plain = {key: value for key, value in description.items() if key != "sha256"}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def parse(text: str) -> Description:
    """Parse the JSON of a description, and check every field."""
    description = json.loads(text)
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ValueError(f"it does not have the format {FORMAT}")
    version = description.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise ValueError(
            f"it has format version {version!r}, but this version of dualgap reads "
            f"only {FORMAT_VERSION}"
        )
    if set(description) != _KINDS.keys():
        raise ValueError(f"it has unexpected fields: {sorted(description)}")
    for field, value in description.items():
        if type(value) is not _KINDS[field]:
            raise ValueError(f"{field}={value!r} has a wrong type")
        if type(value) is int and value < 0:
            raise ValueError(f"{field}={value} is negative")
    if digest(description) != description["sha256"]:
        raise ValueError("its checksum is wrong: it was damaged or edited")
    n, d, entries = (description[key] for key in ("n_samples", "n_features", "entries"))
    longest, dense = description["largest_row"], description["dense"]
    filled = not dense or (entries, longest) == (n * d, d)
    if n == 0 or d == 0 or longest > d or not filled:
        raise ValueError(
            f"it describes {n}{' dense' * dense} rows with {entries} entries, and a "
            f"longest row of {longest} entries with {d} features"
        )
    if description["columns"]:
        width = Features.from_json(description["columns"]).width
        if width != d:
            raise ValueError(f"its columns become {width} features, not {d}")
    classes = description["classes"]
    if not all(isinstance(word, str) for word in classes):
        raise ValueError(f"classes={classes} has a label that is no word")
    _check_arrays(cast(Description, description))
    return cast(Description, description)


def _check_arrays(description: Description) -> None:
    arrays, dense = description["arrays"], description["dense"]
    needed = {"values", "y"} | (set() if dense else {"indices", "indptr"})
    if not needed <= set(arrays) <= needed | {"weight"}:
        raise ValueError(f"it has unexpected arrays: {sorted(arrays)}")
    for name, kind in arrays.items():
        if kind not in _DTYPES[name]:
            raise ValueError(f"{name} has the invalid dtype {kind!r}")
    if set(description["checksums"]) != set(arrays):
        raise ValueError(f"it has checksums of {sorted(description['checksums'])}")
    for name, text in description["checksums"].items():
        count = -(-size_of(description, name) // PIECE)
        try:
            whole = len(text) == 8 * count and bytes.fromhex(text).hex() == text
        except (TypeError, ValueError):
            whole = False
        if not whole:
            raise ValueError(f"it does not have {count} checksums of {name}")


def size_of(description: Description, name: str) -> int:
    """Return the bytes of an array, without its header."""
    item = np.dtype(description["arrays"][name]).itemsize
    return math.prod(shape_of(description, name)) * item


def checksums(description: Description, name: str) -> NDArray[np.uint32]:
    """Return the checksums of an array."""
    return np.frombuffer(bytes.fromhex(description["checksums"][name]), "<u4")
