"""Checksums of the arrays of a row store, one for every segment of 16 KiB.

A segment is compared with its CRC-32C when it is first read, while it is in the
processor's cache. ``checksums.bin`` contains the checksums of all arrays, as uint32;
its SHA-256 is in the description of the store.

Source     combining two CRCs: Mark Adler's ``crc32_combine`` of zlib
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from .. import core

__all__ = ["Segments", "joined", "partial_sums"]

Bytes = NDArray[np.uint8]
Sums = NDArray[np.uint32]


class Segments:
    """Checksums of the segments of a file, and which segments were compared.

    Parameters
    ----------
    path : str
        The file, for messages.
    total : int
        Size of the file in bytes.
    size : int
        Size of a segment in bytes; the last one may be shorter.
    sums : ndarray of shape (segments,), uint32
        Checksums.
    """

    def __init__(self, path: str, total: int, size: int, sums: Sums) -> None:
        self.path, self.total, self.size, self.sums = path, total, size, sums
        self.seen = np.zeros(len(sums), bool)

    def all_seen(self, begin: int, end: int) -> bool:
        """Whether every segment of bytes [begin, end) was already compared."""
        return bool(self.seen[begin // self.size : -(-end // self.size)].all())

    def check(
        self, begin: int, data: Bytes, read: Callable[[int, int], Bytes] | None = None
    ) -> None:
        """Compare the segments of bytes that were read from the file.

        Parameters
        ----------
        begin : int
            Position of the first byte.
        data : ndarray of shape (n,), uint8
            The bytes.
        read : callable, optional
            Function that reads bytes [begin, end) of the file, to complete segments
            that `data` covers in part. None if `data` consists of whole segments.

        Raises
        ------
        ValueError
            If bytes are damaged; the message names the file and the bytes.
        """
        end = begin + len(data)
        if self.all_seen(begin, end):
            return
        first, last = begin // self.size, -(-end // self.size)
        # Whole segments are those in [low, high).
        low = -(-begin // self.size)
        high = last if end == self.total else end // self.size
        found = self.sums[first:last].copy()
        if low < high:
            whole = data[low * self.size - begin : high * self.size - begin]
            found[low - first : high - first] = core.crc32c_segments(whole, self.size)
        for k in {first, last - 1} - set(range(low, high)):
            if not self.seen[k]:
                assert read is not None
                start, stop = k * self.size, min((k + 1) * self.size, self.total)
                crc = core.crc32c(read(start, max(start, begin)))
                inner = data[max(start - begin, 0) : stop - begin]
                crc = core.crc32c(inner, crc)
                found[k - first] = core.crc32c(read(min(stop, end), stop), crc)
        wrong = np.flatnonzero(found != self.sums[first:last])
        if wrong.size:
            start = (first + int(wrong[0])) * self.size
            raise ValueError(
                f"{self.path} is damaged: bytes {start} to "
                f"{min(start + self.size, self.total)} do not match their checksum; "
                "make the store again with dualgap convert"
            )
        self.seen[first:last] = True


# ------------------------------------------------------------------------ writing


def partial_sums(begin: int, data: Bytes, size: int) -> list[int]:
    """Return the CRC-32C of bytes of a file, one for each segment or part of one.

    Parameters
    ----------
    begin : int
        Position of the first byte in the file.
    data : ndarray of shape (n,), uint8
        The bytes.
    size : int
        Size of a segment in bytes.

    Returns
    -------
    list of int
    """
    head = min(-begin % size, len(data))
    sums = [core.crc32c(data[:head])] if head else []
    return sums + core.crc32c_segments(data[head:], size).tolist()


def joined(parts: Iterable[tuple[int, int, list[int]]], total: int, size: int) -> Sums:
    """Combine checksums of the parts of a file into checksums of its segments.

    Parameters
    ----------
    parts : iterable of (int, int, list of int)
        Position, length and :func:`partial_sums` of each part, in order and without
        gaps.
    total : int
        Size of the file in bytes.
    size : int
        Size of a segment in bytes.

    Returns
    -------
    ndarray of shape (segments,), uint32
    """
    found = np.zeros(-(-total // size), np.uint32)
    for begin, length, sums in parts:
        first = begin // size
        if begin % size and sums:
            inside = min(size - begin % size, length)
            found[first] = _combined(int(found[first]), sums[0], inside)
            first, sums = first + 1, sums[1:]
        found[first : first + len(sums)] = sums
    return found


_ONE, _POLYNOMIAL = 1 << 31, 0x82F63B78  # the highest bit is x^0


def _combined(first: int, second: int, length: int) -> int:
    """Return the CRC-32C of two byte strings joined; the second has `length` bytes."""
    shift, square, bits = _ONE, _ONE >> 8, length  # x^0 and x^8
    while bits:
        if bits & 1:
            shift = _product(shift, square)
        square, bits = _product(square, square), bits >> 1
    return _product(shift, first) ^ second


def _product(a: int, b: int) -> int:
    """Multiply two polynomials over GF(2), modulo the polynomial of the CRC."""
    found = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            found ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return found


def read_sums(content: bytes, lengths: dict[str, int], size: int) -> dict[str, Sums]:
    """Split the content of ``checksums.bin`` into the checksums of every array.

    Parameters
    ----------
    content : bytes
        Content of the file.
    lengths : dict of int
        Size of every array in bytes, in the order of the file.
    size : int
        Size of a segment in bytes.

    Returns
    -------
    dict of ndarray, uint32

    Raises
    ------
    ValueError
        If the content has another length.
    """
    counts = [-(-length // size) for length in lengths.values()]
    if len(content) != 4 * sum(counts):
        raise ValueError(
            f"it has {len(content)} bytes, but should have {4 * sum(counts)}"
        )
    sums = np.frombuffer(content, "<u4")
    cuts = np.cumsum(counts)[:-1]
    return dict(zip(lengths, np.split(sums, cuts), strict=True))
