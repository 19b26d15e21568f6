"""Files of a row store: reads in pieces, compared with their checksums at first.

A piece is 64 KiB of an array. Later reads of it are not compared. Blocks are read by
several threads, because a disk is slow with one read at a time. Stores that the
system's file cache cannot hold are read past it where that is possible (O_DIRECT).
Such reads are of whole pieces, into aligned memory of a few MB for each thread. It
stays in the processor's cache, so that copying from it is fast.
"""

from __future__ import annotations

import functools
import math
import mmap
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from .. import core
from ..memory import memory_error
from .description import HEADER, PIECE, REMEDY, header
from .types import Array, Matrix

Bytes = NDArray[np.uint8]
Task = Callable[[], None]


@dataclass(frozen=True)
class StoreReadingSettings:
    """Tuning constants of reads from row stores."""

    #: Pages of a block. Enough pages mix the rows well, and few enough are long reads.
    block_pages: int = 16
    #: Bytes of a read, in pieces.
    pieces: int = 32
    #: Reads at the same time.
    readers: int = 4
    #: Stores of more than this part of the memory are read past the file cache.
    cached: float = 0.5


class Arrays(NamedTuple):
    """Arrays of some rows; pointers are relative to the first entry."""

    values: NDArray[np.float32] | NDArray[np.float64]
    indices: NDArray[np.int32] | NDArray[np.int64] | None
    indptr: NDArray[np.int64] | None

    def accessor(self, d: int, constant: float) -> core.Rows:
        if self.indices is None or self.indptr is None:
            return core.dense_rows(self.values, constant)
        return core.csr_rows(self.values, self.indices, self.indptr, d, constant)

    def matrix(self, shape: tuple[int, int]) -> Matrix:
        if self.indices is None:
            return self.values
        return csr_matrix((self.values, self.indices, self.indptr), shape=shape)


class StoredArray:
    """An array in a .npy file, read as if it had one dimension.

    With `direct`, it is read past the file cache if that is possible.
    """

    settings: ClassVar[StoreReadingSettings] = StoreReadingSettings()

    def __init__(
        self,
        path: str,
        dtype: str,
        shape: tuple[int, ...],
        sums: NDArray[np.uint32],
        direct: bool,
    ) -> None:
        self.path, self.dtype, self.length = path, np.dtype(dtype), math.prod(shape)
        self.size = self.length * self.dtype.itemsize
        if os.path.dirname(os.path.realpath(path)) != os.path.realpath(
            os.path.dirname(path)
        ):
            raise ValueError(f"{path} is a link out of the store; {REMEDY}")
        status = os.stat(path)
        if status.st_size != HEADER + self.size:
            raise ValueError(
                f"{path} has {status.st_size} bytes, expected {HEADER + self.size}; "
                f"{REMEDY}"
            )
        self._stamp = status.st_size, status.st_mtime_ns
        self.direct = direct and hasattr(os, "O_DIRECT") and self.size > 0
        try:
            start = self._read(-HEADER, HEADER)
        except OSError:  # the file system does not read past its cache
            self.direct = False
            start = self._read(-HEADER, HEADER)
        if start.tobytes() != header(dtype, shape):
            raise ValueError(f"{path} is damaged: its header is wrong; {REMEDY}")
        self.sums, self.seen = sums, np.zeros(len(sums), bool)

    def read(self, start: int, stop: int) -> Array:
        """Return entries [start, stop)."""
        out = np.empty(stop - start, self.dtype)
        for task in self.tasks(start, out):
            task()
        return out

    def tasks(self, start: int, out: NDArray[np.generic]) -> list[Task]:
        """Return the tasks that read entries from `start` on, in any order."""
        begin, data = start * self.dtype.itemsize, out.view(np.uint8)
        end, step = begin + len(data), self.settings.pieces * PIECE
        cuts = {begin, end, *range(-(-begin // step) * step, end, step)}
        if not self.direct:  # whole pieces need no memory besides
            ends = -(-begin // PIECE) * PIECE, end // PIECE * PIECE
            cuts.update(cut for cut in ends if begin < cut < end)
        return [
            functools.partial(self._fill, a, data[a - begin : b - begin])
            for a, b in pairwise(sorted(cuts))
        ]

    def mapped(self, start: int, stop: int) -> Array:
        """Return entries [start, stop), mapped into memory and compared."""
        if start == stop:
            return np.empty(0, self.dtype)  # an empty range cannot be mapped
        self._unchanged(os.stat(self.path))
        with memory_error(self.path):
            whole = np.memmap(self.path, self.dtype, "r", HEADER, (self.length,))
        data, item = whole.view(np.ndarray).view(np.uint8), self.dtype.itemsize
        step = self.settings.pieces
        for at in range(start * item // PIECE, -(-stop * item // PIECE), step):
            if not self.seen[at : at + step].all():
                self._compare(at, data[at * PIECE : (at + step) * PIECE])
        return whole[start:stop]

    def checks(self) -> list[Task]:
        """Return the tasks that compare every byte, even if it was compared before."""

        def check(first: int) -> None:
            size = min(self.settings.pieces * PIECE, self.size - first * PIECE)
            self._compare(first, self._read(first * PIECE, size))

        firsts = range(0, len(self.sums), self.settings.pieces)
        return [functools.partial(check, first) for first in firsts]

    def _fill(self, begin: int, out: Bytes) -> None:
        """Read bytes from `begin` on, or the whole pieces if they are not compared."""
        end = begin + len(out)
        first, last = begin // PIECE, -(-end // PIECE)
        known = self.seen[first:last].all()
        whole = begin % PIECE == 0 and (end % PIECE == 0 or end == self.size)
        if not self.direct and (known or whole):
            self._read(begin, len(out), out)
            if not known:
                self._compare(first, out)
            return
        low = first * PIECE
        found = self._read(low, min(last * PIECE, self.size) - low)
        if not known:
            self._compare(first, found)
        out[:] = found[begin - low :][: len(out)]

    def _compare(self, first: int, data: Bytes) -> None:
        found = core.crc32c_segments(data, PIECE)
        wrong = np.flatnonzero(found != self.sums[first : first + len(found)])
        if wrong.size:
            at = (first + int(wrong[0])) * PIECE
            raise ValueError(
                f"{self.path} is damaged: bytes {HEADER + at} to "
                f"{HEADER + min(at + PIECE, self.size)} do not match their checksum; "
                f"{REMEDY}"
            )
        self.seen[first : first + len(found)] = True

    def _read(self, begin: int, size: int, out: Bytes | None = None) -> Bytes:
        """Return bytes of the array, in memory that the thread's next read overwrites.

        Direct reads need a `begin` and memory that are aligned.
        """
        more = os.O_DIRECT if self.direct else 0
        with open(self.path, "rb", 0, opener=lambda p, f: os.open(p, f | more)) as file:
            self._unchanged(os.fstat(file.fileno()))
            file.seek(HEADER + begin)
            target, at = _aligned(size) if out is None else out, 0
            while at < size:
                got = file.readinto(target.data[at:])
                if not got:
                    raise ValueError(
                        f"{self.path} is truncated at byte {HEADER + begin + at}; "
                        f"{REMEDY}"
                    )
                at += got
        return target[:size]

    def _unchanged(self, status: os.stat_result) -> None:
        if (status.st_size, status.st_mtime_ns) != self._stamp:
            raise ValueError(
                f"{self.path} has changed since the store was opened; open the store "
                "again"
            )


_OWN = threading.local()


def _aligned(size: int) -> Bytes:
    """Return memory of this thread from the start of a page on, in whole pieces."""
    size = -(-size // PIECE) * PIECE
    if len(getattr(_OWN, "memory", ())) < size:
        _OWN.memory = pages(size)
    return _OWN.memory[:size]


def pages(size: int) -> Bytes:
    """Return memory that the system takes back as soon as it is freed.

    The allocator would keep memory that a thread has freed for that thread alone.
    """
    private = {}
    if hasattr(mmap, "MAP_PRIVATE"):
        private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
    with memory_error("reading a row store"):
        memory = mmap.mmap(-1, max(size, 1), **private)
    return np.frombuffer(memory, np.uint8)
