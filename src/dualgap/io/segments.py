"""Checksums of the arrays of a row store, one for every segment of 16 KiB.

A segment is compared with its CRC-32C when it is read for the first time, while the
processor's cache still holds it. The checksums of all arrays, uint32, follow each other
in ``checksums.bin``, whose SHA-256 the description holds.

Source     combining two CRCs: Mark Adler's ``crc32_combine`` of zlib
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import core

__all__ = ["SEGMENT", "Segments", "joined", "partial_sums"]

#: Bytes of a segment. Checksums take 1/4096 of the data; longer segments would make
#: the ends of pages, whose segments are read beyond them, dearer.
SEGMENT = 2**14

Bytes = NDArray[np.uint8]
Sums = NDArray[np.uint32]


class Segments:
    """The segments of one file: their checksums, and which of them were compared.

    Parameters
    ----------
    path : str
        The file, for messages.
    total : int
        Its bytes.
    size : int
        Bytes of a segment; the last one may be shorter.
    sums : ndarray of shape (segments,), uint32
    """

    def __init__(self, path: str, total: int, size: int, sums: Sums) -> None:
        self.path, self.total, self.size, self.sums = path, total, size, sums
        self.seen = np.zeros(len(sums), bool)

    def all_seen(self, begin: int, end: int) -> bool:
        """Whether every segment of these bytes was compared already."""
        return bool(self.seen[begin // self.size : -(-end // self.size)].all())

    def check(
        self, begin: int, data: Bytes, read: Callable[[int, int], Bytes] | None = None
    ) -> None:
        """Compare the segments of some bytes that were read from `begin` on.

        Parameters
        ----------
        begin : int
        data : ndarray of shape (n,), uint8
        read : callable, optional
            Reads the bytes in [begin, end): those of a segment that `data` holds in
            part. None: `data` consists of whole segments.

        Raises
        ------
        ValueError
            Naming the file and the bytes that are damaged.
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
                f"{min(start + self.size, self.total)} do not have the checksum that "
                "they were written with; make the store again with dualgap convert"
            )
        self.seen[first:last] = True


# ------------------------------------------------------------------------ writing


def partial_sums(begin: int, data: Bytes, size: int = SEGMENT) -> list[int]:
    """CRC-32C of some bytes of a file, cut where its segments end.

    Parameters
    ----------
    begin : int
        Their place in the file.
    data : ndarray of shape (n,), uint8
    size : int
        Bytes of a segment.
    """
    head = min(-begin % size, len(data))
    sums = [core.crc32c(data[:head])] if head else []
    return sums + core.crc32c_segments(data[head:], size).tolist()


def joined(
    parts: Iterable[tuple[int, int, list[int]]], total: int, size: int = SEGMENT
) -> Sums:
    """Checksums of the segments of a file, of those of its parts.

    Parameters
    ----------
    parts : iterable of (int, int, list of int)
        Begin and length of each part, in their order and without gaps, and what
        :func:`partial_sums` says of it.
    total : int
        Bytes of the file.
    size : int
        Bytes of a segment.
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
    """CRC-32C of bytes and of `length` more, of those of the two."""
    shift, square, bits = _ONE, _ONE >> 8, length  # x^0 and x^8
    while bits:
        if bits & 1:
            shift = _product(shift, square)
        square, bits = _product(square, square), bits >> 1
    return _product(shift, first) ^ second


def _product(a: int, b: int) -> int:
    """Multiply two polynomials over GF(2), modulo that of the CRC."""
    found = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            found ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return found


def read_sums(content: bytes, lengths: dict[str, int], size: int) -> dict[str, Any]:
    """The checksums of every array, of the content of ``checksums.bin``.

    Parameters
    ----------
    content : bytes
    lengths : dict of int
        Bytes of every array, in the order of the file.
    size : int
        Bytes of a segment.

    Raises
    ------
    ValueError
        If the file is not as long as that makes it.
    """
    counts = [-(-length // size) for length in lengths.values()]
    if len(content) != 4 * sum(counts):
        raise ValueError(f"it has {len(content)} bytes, expected {4 * sum(counts)}")
    sums = np.frombuffer(content, "<u4")
    cuts = np.cumsum(counts)[:-1]
    return dict(zip(lengths, np.split(sums, cuts), strict=True))
