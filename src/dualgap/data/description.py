"""Description of a row store: `store.json`, its fields, and its checksum."""

from __future__ import annotations

import hashlib
import json
import typing
from collections.abc import Container, Mapping
from typing import NamedTuple, TypedDict, cast

FORMAT, FORMAT_VERSION = "dualgap-store", 2
DESCRIPTION, CHECKSUMS = "store.json", "checksums.bin"
#: What to do about a damaged store.
REMEDY = "make it again with dualgap convert"

_DTYPES = {
    "values": ("<f4", "<f8"),
    "indices": ("<i4", "<i8"),
    "indptr": ("<i8",),
    "y": ("|i1", "<i4", "<i8", "<f8"),
    "weight": ("<f8",),
}
#: Limits on the bytes of a segment; direct reads read whole segments.
_LEAST_SEGMENT, _MOST_SEGMENT = 2**12, 2**22


class ShardFields(TypedDict):
    """Fields of a :class:`Shard` in a description."""

    rows: int
    entries: int
    sha256: str


class Description(TypedDict):
    """Fields of the description of a store; format 1 has no checksums."""

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
    arrays: dict[str, str]
    #: Bytes of a segment, and SHA-256 of the segments' checksums.
    segment_bytes: int
    checksums_sha256: str
    shards: list[ShardFields]
    sha256: str


_KINDS = {
    field: typing.get_origin(kind) or kind
    for field, kind in typing.get_type_hints(Description).items()
}


class Shard(NamedTuple):
    """Rows that were written together, with the SHA-256 of their parts of arrays."""

    rows: int
    entries: int
    sha256: str


def shard_parts(
    names: Container[str], start: int, first: int, rows: int, entries: int
) -> list[tuple[str, int, int]]:
    """Return the parts of a shard in the order of its checksum.

    A part is (name of the array, first entry, number of entries). The pointers of a
    shard are those to the ends of its rows.
    """
    places = {
        "values": (first, entries),
        "indices": (first, entries),
        "indptr": (start + 1, rows),
        "y": (start, rows),
        "weight": (start, rows),
    }
    return [(name, *places[name]) for name in places if name in names]


def in_order(names: Container[str]) -> list[str]:
    """Return names of arrays in the order in which their checksums are written."""
    return [name for name in _DTYPES if name in names]


def digest(description: Mapping[str, object]) -> str:
    """Return the SHA-256 of a description, without its field "sha256"."""
    plain = {key: value for key, value in description.items() if key != "sha256"}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def parse(text: str) -> Description:
    """Parse the JSON of a description, and check every field.

    Raises
    ------
    ValueError
        If a field is missing, unknown, or invalid.
    """
    description = json.loads(text)
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ValueError(f"it does not have the format {FORMAT}")
    version = description.get("format_version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise ValueError(
            f"it has format version {version!r}, but this version of dualgap reads 1 "
            f"to {FORMAT_VERSION}"
        )
    lacks = {"segment_bytes", "checksums_sha256"} if version == 1 else set()
    if set(description) != _KINDS.keys() - lacks:
        raise ValueError(f"it has unexpected fields: {sorted(description)}")
    for field, value in description.items():
        if type(value) is not _KINDS[field]:
            raise ValueError(f"{field}={value!r} has a wrong type")
        if type(value) is int and value < 0:
            raise ValueError(f"{field}={value} is negative")
    if digest(description) != description["sha256"]:
        raise ValueError("its checksum is wrong: it was damaged or edited")
    size = description.get("segment_bytes", _LEAST_SEGMENT)
    if size & (size - 1) or not _LEAST_SEGMENT <= size <= _MOST_SEGMENT:
        raise ValueError(
            f"segment_bytes={size} is not a power of two from {_LEAST_SEGMENT} to "
            f"{_MOST_SEGMENT}"
        )
    _check_arrays(cast(Description, description))
    n, d, entries = (description[key] for key in ("n_samples", "n_features", "entries"))
    if n == 0 or d == 0:
        raise ValueError(f"it describes {n} rows of {d} features")
    if description["dense"] and entries != n * d:
        raise ValueError(
            f"it describes {entries} entries of {n} dense rows with {d} features"
        )
    longest = description["largest_row"]
    if longest > d or (description["dense"] and longest < d):
        raise ValueError(
            f"it describes a longest row of {longest} entries with {d} features"
        )
    rows = held = 0
    for shard in description["shards"]:
        if not isinstance(shard, dict) or set(shard) != set(Shard._fields):
            raise ValueError(f"the shard {shard!r} is invalid")
        if not all(
            type(shard[k]) is int and shard[k] >= 0 for k in ("rows", "entries")
        ):
            raise ValueError(f"the shard {shard!r} is invalid")
        rows, held = rows + shard["rows"], held + shard["entries"]
    if (rows, held) != (n, entries):
        raise ValueError(
            f"its shards have {rows} rows and {held} entries, not {n} and {entries}"
        )
    return cast(Description, description)


def _check_arrays(description: Description) -> None:
    arrays, dense = description["arrays"], description["dense"]
    needed = {"values", "y"} | (set() if dense else {"indices", "indptr"})
    if not needed <= set(arrays) <= needed | {"weight"}:
        raise ValueError(f"it has unexpected arrays: {sorted(arrays)}")
    for name, kind in arrays.items():
        if kind not in _DTYPES[name]:
            raise ValueError(f"{name} has the invalid dtype {kind!r}")
