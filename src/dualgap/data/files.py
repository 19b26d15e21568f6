"""Open files of a row store: reads, checks of what is read, and reading ahead."""

from __future__ import annotations

import contextlib
import hashlib
import io
import mmap
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from .. import core
from ..memory import make_room_for, memory_error
from .description import REMEDY, shard_parts
from .types import Matrix

if TYPE_CHECKING:
    from .store import RowStore


@dataclass(frozen=True)
class StoreReadingSettings:
    """Tuning constants of reads from row stores."""

    #: Pages of a block. Enough pages mix the rows well, and few enough are long reads.
    block_pages: int = 16
    #: Bytes to read at a time; they stay in the processor's cache until checked.
    piece: int = 2**20
    #: Bytes of a memory map to check at a time, so that the check can be interrupted.
    stretch: int = 2**26
    #: Bytes that `verify` reads at a time.
    digested: int = 2**22
    #: Direct reads, past the file cache, at the same time.
    readers: int = 4
    #: Bytes of the buffer of a direct read.
    straight: int = 2**22


class Arrays(NamedTuple):
    """Arrays of a range of rows; pointers are relative to its first entry."""

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
        X = csr_matrix((self.values, self.indices, self.indptr), shape=shape)
        return X


class OpenFiles:
    """Open files of a store, for use by one thread."""

    settings: ClassVar[StoreReadingSettings] = StoreReadingSettings()

    def __init__(self, store: RowStore, stack: contextlib.ExitStack) -> None:
        self.store, self.stack = store, stack
        self.files: dict[str, io.FileIO] = {}

    def file(self, name: str) -> io.FileIO:
        if name not in self.files:
            path = self.store.file(name)
            file = self.stack.enter_context(io.FileIO(path))
            self.unchanged(name, file.fileno())
            self.files[name] = file
        return self.files[name]

    def unchanged(self, name: str, handle: int) -> None:
        """Raise an error if a file has changed since the store was opened."""
        status = os.fstat(handle)
        known = self.store._stamps.get(name)
        if known not in (None, (status.st_size, status.st_mtime_ns)):
            raise ValueError(
                f"{self.store.file(name)} has changed since the store was opened; open "
                "the store again"
            )

    def announce(self, spans: tuple[slice, ...]) -> None:
        """Ask the system to begin reading pages, all of them at once.

        Without this, each read of a scattered page would wait for the disk.
        """
        if self.store.direct or not hasattr(os, "posix_fadvise"):
            return
        firsts = self.store._cuts[2]
        for span in spans:
            for name, kind in self.store.dtypes.items():
                start, stop = span.start, span.stop
                if name in ("values", "indices"):
                    start, stop = firsts[start], firsts[stop]
                elif name != "indptr":
                    continue
                if start < stop:  # else a pointer is damaged, and reading will raise
                    os.posix_fadvise(
                        self.file(name).fileno(), start * kind.itemsize,
                        (stop - start) * kind.itemsize, os.POSIX_FADV_WILLNEED,
                    )  # fmt: skip

    def fill(self, name: str, start: int, out: NDArray[np.generic]) -> None:
        """Read entries from `start` on; compare segments that are read first now."""
        self.store.check_all()
        segments = self.store._segments.get(name)
        begin = start * self.store.dtypes[name].itemsize
        target = out.reshape(-1).view(np.uint8)
        step = max(self.settings.piece, self.store.segment_bytes)

        def around(first: int, last: int) -> NDArray[np.uint8]:
            more = np.empty(last - first, np.uint8)
            self._read(name, first, more)
            return more

        at = 0
        while at < len(target):
            # Pieces end at ends of segments.
            part = target[at : at + step - (begin + at) % step]
            self._read(name, begin + at, part)
            if segments is not None:
                segments.check(begin + at, part, around)
            at += len(part)

    def _read(self, name: str, begin: int, out: NDArray[np.uint8]) -> None:
        """Read bytes from `begin` on, without checking them."""
        file = self.file(name)
        file.seek(begin)
        target, at = out.data, 0
        while at < len(target):
            got = file.readinto(target[at:])
            if not got:
                raise self._cut_short(name, begin + at)
            at += got

    def mapped(self, name: str, start: int, stop: int) -> NDArray[np.generic]:
        """Return entries of an array, mapped into memory and compared."""
        self.store.check_all()
        kind = self.store.dtypes[name]
        if start == stop:
            return np.empty(0, kind)  # an empty range cannot be mapped
        with memory_error(self.store.file(name)):
            whole = np.memmap(self.file(name), kind, "r")
        segments = self.store._segments.get(name)
        if segments is not None:
            data, size = whole.view(np.ndarray).view(np.uint8), segments.size
            begin = start * kind.itemsize // size * size
            end = min(-(-stop * kind.itemsize // size) * size, segments.total)
            stretch = self.settings.stretch
            for at in range(begin, end, stretch):
                segments.check(at, data[at : min(at + stretch, end)])
        return whole[start:stop]

    def _cut_short(self, name: str, at: int) -> ValueError:
        return ValueError(
            f"{self.store.file(name)} is truncated at byte {at}; {REMEDY}"
        )

    def part(self, name: str, start: int, stop: int) -> NDArray[Any]:
        out = np.empty(stop - start, self.store.dtypes[name])
        self.fill(name, start, out)
        return out

    def pointer(self, i: int) -> int:
        """Return the first entry of a row, unchecked."""
        out = np.empty(1, np.int64)
        self._read("indptr", 8 * i, out.view(np.uint8))
        return int(out[0])

    def load(self, spans: tuple[slice, ...], slot: _Slot | None = None) -> Arrays:
        """Read the arrays of rows, into a slot if one is given."""
        store = self.store
        if not store.is_sparse:
            d = store.n_features
            parts = [(s.start * d, (s.stop - s.start) * d) for s in spans]
            values = self._fill_parts("values", parts, slot)
            return Arrays(values.reshape(-1, d), None, None)
        pointers, parts, held = [np.zeros(1, np.int64)], [], 0
        for span in spans:
            indptr = self._pointers(span)
            first, count = int(indptr[0]), int(indptr[-1] - indptr[0])
            pointers.append(indptr[1:] + (held - first))
            parts.append((first, count))
            held += count
        values = self._fill_parts("values", parts, slot)
        indices = self._fill_parts("indices", parts, slot)
        return Arrays(values, indices, np.concatenate(pointers))

    def _pointers(self, span: slice) -> NDArray[np.int64]:
        indptr = self.part("indptr", span.start, span.stop + 1)
        return self.checked_pointers(indptr, span.start)

    def checked_pointers(
        self, indptr: NDArray[np.int64], start: int
    ) -> NDArray[np.int64]:
        """Return the pointers from row `start` on, after checking them.

        Raises
        ------
        ValueError
            If they decrease or point outside the store.
        """
        store = self.store
        falls = np.diff(indptr) < 0
        if falls.any() or not 0 <= indptr[0] <= indptr[-1] <= store.nnz:
            where = start + int(np.argmax(falls))
            raise ValueError(
                f"{store.file('indptr')}, row {where}: a pointer decreases or leaves "
                f"[0, {store.nnz}]; {REMEDY}"
            )
        return np.asarray(indptr)

    def _fill_parts(
        self, name: str, parts: list[tuple[int, int]], slot: _Slot | None
    ) -> NDArray[Any]:
        """Read entries from several places, and concatenate them."""
        size = sum(count for _, count in parts)
        out, at = _room(slot, name, size, self.store.dtypes[name]), 0
        for first, count in parts:
            part = out[at : at + count]
            if self.store.direct:
                self._straight.read(name, first, part)
            else:
                self.fill(name, first, part)
            at += count
        if self.store.direct:
            self._straight.wait()
        return out

    @cached_property
    def _straight(self) -> _Straight:
        return self.stack.enter_context(_Straight(self))

    def ahead(
        self,
        blocks: Sequence[tuple[slice, ...]],
        *,
        reuse: bool,
        jumps: bool = False,
    ) -> Iterator[tuple[tuple[slice, ...], Arrays]]:
        """Yield the arrays of blocks; a thread reads the next one in the background.

        With `jumps`, the pages of a block are scattered, and each block is announced to
        the system before the previous one is read.
        """
        make_room_for(1)
        slots: list[_Slot | None] = [{}, {}] if reuse else [None, None]
        reader = ThreadPoolExecutor(1, "dualgap-read")
        threads: list[int] = []

        def load(t: int) -> Arrays:
            threads[:] = [threading.get_ident()]
            if jumps:
                for spans in blocks[t + 1 if t else 0 : t + 2]:
                    self.announce(spans)
            return self.load(blocks[t], slots[t % 2])

        def ask(t: int) -> Future[Arrays] | None:
            if t == len(blocks):
                return None
            return reader.submit(load, t)

        try:
            coming = ask(0)
            for t, spans in enumerate(blocks):
                assert coming is not None
                arrays = coming.result()
                # Block t + 1 reuses the slot of block t - 1, which is no longer needed.
                coming = ask(t + 1)
                yield spans, arrays
                del arrays
        finally:
            # The garbage collector may close this generator in any thread, and no
            # thread can wait for itself.
            reader.shutdown(wait=threading.get_ident() not in threads)

    def digest(self, start: int, first: int, rows: int, entries: int) -> str:
        """Return the SHA-256 of a shard, read in pieces; see :func:`shard_parts`."""
        found = hashlib.sha256()
        for name, begin, count in shard_parts(
            self.store.dtypes, start, first, rows, entries
        ):
            size = self.store.dtypes[name].itemsize
            piece, end = (
                np.empty(self.settings.digested, np.uint8),
                (begin + count) * size,
            )
            for at in range(begin * size, end, len(piece)):
                part = piece[: end - at]
                self._read(name, at, part)
                found.update(part.data)
        return found.hexdigest()


class _Straight(contextlib.AbstractContextManager["_Straight"]):
    """Direct reads, past the file cache, several at a time.

    A disk is slow with one read at a time. Direct reads need aligned memory, so they go
    through buffers of a few MB. These stay in the processor's cache, so that copying
    from them is as fast as copying from the file cache.
    """

    def __init__(self, files: OpenFiles) -> None:
        self.files, readers = files, files.settings.readers
        self.pending: list[Future[None]] = []
        self.pieces: SimpleQueue[NDArray[np.uint8]] = SimpleQueue()
        make_room_for(readers)
        for _ in range(readers):
            with memory_error("reading past the file cache"):
                piece = mmap.mmap(-1, files.settings.straight)
            self.pieces.put(np.frombuffer(piece, np.uint8))
        self.pool = ThreadPoolExecutor(readers, "dualgap-read")
        self.handles: dict[str, int] = {}

    def __exit__(self, *error: object) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)
        for handle in self.handles.values():
            os.close(handle)

    def read(self, name: str, start: int, out: NDArray[np.generic]) -> None:
        """Begin to read entries from `start` on."""
        if name not in self.handles:
            path = self.files.store.file(name)
            self.handles[name] = os.open(path, os.O_RDONLY | os.O_DIRECT)
            self.files.unchanged(name, self.handles[name])
        self.files.store.check_all()
        target = out.reshape(-1).view(np.uint8)
        begin = start * out.itemsize
        grain = max(self.files.store.segment_bytes, mmap.PAGESIZE)
        most, at = self.files.settings.straight, 0
        while at < len(target):
            # Pieces end at ends of segments.
            size = min(most - (begin + at) % grain, len(target) - at)
            part = target[at : at + size]
            self.pending.append(self.pool.submit(self._fill, name, begin + at, part))
            at += size

    def wait(self) -> None:
        """Wait until all reads are done; raise the first error."""
        pending, self.pending = self.pending, []
        for done in pending:
            done.result()

    def _fill(self, name: str, begin: int, out: NDArray[np.uint8]) -> None:
        segments = self.files.store._segments.get(name)
        if segments is not None and segments.all_seen(begin, begin + len(out)):
            segments = None
        grain = mmap.PAGESIZE if segments is None else segments.size
        piece = self.pieces.get()
        try:
            skip = begin % grain
            size = -(-(skip + len(out)) // grain) * grain
            end = skip + len(out)
            if segments is not None:  # to the end of the last segment, or of the file
                end = min(size, segments.total - (begin - skip))
            got = 0
            while got < end:
                if got % mmap.PAGESIZE:  # a partial page is the end of the file
                    raise self.files._cut_short(name, begin - skip + got)
                place = begin - skip + got
                more = os.preadv(self.handles[name], [piece[got:size]], place)  # type: ignore[list-item]
                if not more:
                    raise self.files._cut_short(name, place)
                got += more
            if segments is not None:
                segments.check(begin - skip, piece[:end])
            out[:] = piece[skip : skip + len(out)]
        finally:
            self.pieces.put(piece)


_Slot = dict[str, NDArray[np.generic]]


def _room(
    slot: _Slot | None, name: str, size: int, dtype: np.dtype[np.generic]
) -> NDArray[Any]:
    """Return an array to read into: a new one, or part of the slot's array."""
    if slot is None:
        return np.empty(size, dtype)
    if name not in slot or len(slot[name]) < size:
        slot.pop(name, None)  # free the old array before the new one is made
        slot[name] = np.empty(size, dtype)
    return slot[name][:size]
