"""Row stores: data larger than memory, as a folder of arrays.

    store.json    description: shapes, dtypes, versions, checksums
    values.bin    (entries,), or (n_samples, n_features) if dense   float32, float64
    indices.bin   (entries,)          int32, int64    } not if dense
    indptr.bin    (n_samples + 1,)    int64           }
    y.bin         (n_samples,)        int8, int32, int64, float64
    weight.bin    (n_samples,)        float64         if the rows have weights
    checksums.bin (segments,)         uint32          CRC-32C of every 16 KiB

The arrays have no headers; they are little-endian and C-contiguous. `convert` makes a
store, with its rows in random order; afterwards it is only read.

The content is checked. Sizes are checked when a store is opened, segments against their
checksums when they are first read, pointers whenever they are read, and indices and
values by the first epoch of a fit. A store of format 1, which has no checksums.bin, is
compared as a whole with its SHA-256 before it is used. `verify` compares every byte
again.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import json
import logging
import mmap
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from queue import SimpleQueue
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from .. import core
from ..data.blocks import ALIGNMENT, Block, RowSource
from ..memory import make_room_for, memory_error
from .segments import Segments, read_sums

__all__ = ["Batch", "RowStore"]

logger = logging.getLogger("dualgap")

FORMAT, FORMAT_VERSION = "dualgap-store", 2
DESCRIPTION, CHECKSUMS = "store.json", "checksums.bin"
#: Bytes for the blocks of an epoch, two of which are in memory; and pages per block.
#: Enough pages mix the rows well, and few enough are long reads for the disk.
BUFFER, BLOCK_PAGES = 2**28, 16

_DTYPES = {
    "values": ("<f4", "<f8"),
    "indices": ("<i4", "<i8"),
    "indptr": ("<i8",),
    "y": ("|i1", "<i4", "<i8", "<f8"),
    "weight": ("<f8",),
}
_FIELDS: dict[str, type] = {
    "format": str,
    "format_version": int,
    "dualgap_version": str,
    "n_samples": int,
    "n_features": int,
    "entries": int,
    "largest_row": int,
    "dense": bool,
    "shuffled": bool,
    "seed": int,
    "zero_based": bool,
    "arrays": dict,
    "shards": list,
    "sha256": str,
}
#: Fields since format 2: bytes of a segment, and SHA-256 of the segments' checksums.
_CHECKED_FIELDS: dict[str, type] = {"segment_bytes": int, "checksums_sha256": str}
#: Bytes to read at a time; they stay in the processor's cache until they are checked.
_PIECE = 2**20
#: Bytes of a memory map to check at a time, so that the check can be interrupted.
_STRETCH = 2**26
#: Bytes that `verify` reads at a time.
_DIGESTED = 2**22
#: Direct reads, past the file cache: number at the same time, and bytes of each buffer.
_READERS, _STRAIGHT = 4, 2**22
#: Limits on the bytes of a segment; direct reads read whole segments.
_LEAST_SEGMENT, _MOST_SEGMENT = 2**12, 2**22
_REMEDY = "make it again with dualgap convert"


class Batch(NamedTuple):
    """Consecutive rows of a store, in memory.

    Attributes
    ----------
    X : csr_matrix or ndarray of shape (n_rows, n_features)
        Rows.
    y : ndarray of shape (n_rows,)
        Labels.
    sample_weight : ndarray of shape (n_rows,), or None
        Weights.
    start, stop : int
        Range of the rows within the store.
    """

    X: Any
    y: NDArray[Any]
    sample_weight: NDArray[np.float64] | None
    start: int
    stop: int


class Shard(NamedTuple):
    """Rows that were written together, with the SHA-256 of their parts of arrays."""

    rows: int
    entries: int
    sha256: str


class RowStore(RowSource):
    """Rows, labels and weights in a folder, read block by block.

    :func:`dualgap.io.convert` makes a store and :meth:`open` opens it. Pass it to
    ``LinearSVC.fit`` or ``Problem`` instead of X.

    Attributes
    ----------
    path : str
        The folder.
    n_samples, n_features, nnz : int
        Number of rows, of columns, and of stored entries (all entries if dense).
    shape : tuple of int
        ``(n_samples, n_features)``.
    dtype : dtype
        Type of the values.
    is_sparse : bool
        Whether the rows are stored as CSR.
    has_weights : bool
        Whether the rows have weights.
    zero_based : bool
        Whether column 0 had the index 0 in the original text.
    buffer : int
        Bytes of the blocks that an epoch holds in memory.
    direct : bool
        Whether blocks are read past the system's file cache.
    fingerprint : str
        SHA-256 of the description, which covers every array.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dualgap.io import RowStore, convert
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = convert([(X, X[:, 0] > 0)], f"{folder}/rows")
    ...     shape, labels = store.shape, np.unique(store.y)
    >>> shape, labels
    ((100, 3), array([0, 1], dtype=int8))
    """

    def __init__(
        self,
        path: str,
        description: dict[str, Any],
        buffer: int,
        direct: bool | Literal["auto"] = "auto",
    ) -> None:
        self.path = self.name = path
        self.buffer = buffer
        self.fingerprint: str = description["sha256"]
        self.n_samples: int = description["n_samples"]
        self.n_features: int = description["n_features"]
        self.stored = self.nnz = int(description["entries"])
        self.is_sparse = not description["dense"]
        self.shuffled: bool = description["shuffled"]
        self.zero_based: bool = description["zero_based"]
        self.largest_row: int = description["largest_row"]
        self.dtypes = {
            name: np.dtype(kind) for name, kind in description["arrays"].items()
        }
        self.dtype = self.dtypes["values"]
        self.has_weights = "weight" in self.dtypes
        self.shards = [Shard(**shard) for shard in description["shards"]]
        self.segment_bytes: int = description.get("segment_bytes", 0)
        self.entry_bytes = self.dtype.itemsize
        if self.is_sparse:
            self.entry_bytes += self.dtypes["indices"].itemsize
        if direct == "auto":
            direct = 2 * self.stored * self.entry_bytes > _machine_memory()
        self.direct = direct and self._reads_straight()
        self._stamps: dict[str, tuple[int, int]] = {}
        for name in self.dtypes:
            size = self.length(name) * self.dtypes[name].itemsize
            self._stamps[name] = self._check_size(name, size)
        self._segments = self._read_segments(description)
        self._lock = threading.Lock()
        self._verified = False  # whether a store of format 1 was compared as a whole
        if self.is_sparse:
            with self._open() as files:
                ends = [files.pointer(0), files.pointer(self.n_samples)]
            if ends != [0, self.nnz]:
                raise ValueError(
                    f"{self.file('indptr')} runs from {ends[0]} to {ends[1]}, not from "
                    f"0 to {self.nnz}; {_REMEDY}"
                )

    # ------------------------------------------------------------------- opening

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        buffer: int = BUFFER,
        direct: bool | Literal["auto"] = "auto",
    ) -> RowStore:
        """Open a store for reading.

        Parameters
        ----------
        path : str or path-like
            The folder.
        buffer : int, default=2**28
            Bytes for the two blocks that an epoch holds in memory: the one in use and
            the one being read. A store that fits into the buffer is held as a whole.
        direct : bool or "auto", default="auto"
            Whether to read blocks past the system's file cache (O_DIRECT on Linux; no
            effect elsewhere and on file systems without it). The cache helps if it can
            hold the store, and otherwise costs more than reading from the disk. "auto"
            means True for stores larger than half of the machine's memory.

        Returns
        -------
        RowStore

        Raises
        ------
        FileNotFoundError
            If the folder does not exist.
        ValueError
            If the folder is not a store, is damaged or of a newer version, or a row
            does not fit into half of the buffer.
        """
        path = os.fsdecode(path)
        size = whole_number("buffer", buffer, 1)
        if direct not in (True, False, "auto"):
            raise ValueError(f"direct={direct!r} is unknown; use True, False or 'auto'")
        if sys.byteorder != "little":
            raise ValueError(
                "row stores need a little-endian machine; read the data into memory"
            )
        os.stat(path)  # the usual error
        where = os.path.join(path, DESCRIPTION)
        if not os.path.isfile(where):
            raise ValueError(
                f"{path} is not a row store: it has no {DESCRIPTION}; make one with "
                f"dualgap convert {path} STORE"
            )
        with open(where, "rb") as file:
            text = file.read()
        try:
            description = parse(text.decode())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{where}: {error}; {_REMEDY}") from None
        store = cls(path, description, size, direct)
        store.pages  # noqa: B018  (raises if the buffer is too small)
        return store

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self.buffer, self.direct)

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        return (
            f"<RowStore {self.path!r}: {self.n_samples} rows, {self.n_features} "
            f"features, {self.nnz} entries, {kind} {self.dtype}>"
        )

    def __len__(self) -> int:
        return self.n_samples

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, self.n_features

    def file(self, name: str) -> str:
        """Return the path of an array."""
        return os.path.join(self.path, f"{name}.bin")

    def length(self, name: str) -> int:
        """Return the number of entries of an array."""
        if name in ("values", "indices"):
            return self.nnz
        return self.n_samples + (name == "indptr")

    def _read_segments(self, description: dict[str, Any]) -> dict[str, Segments]:
        """Read the checksums of the arrays; format 1 has none."""
        size = self.segment_bytes
        if size == 0:
            return {}
        lengths = {name: self._stamps[name][0] for name in in_order(self.dtypes)}
        path = self.file("checksums")
        self._check_size("checksums", 4 * sum(-(-n // size) for n in lengths.values()))
        with open(path, "rb") as file:
            content = file.read()
        if hashlib.sha256(content).hexdigest() != description["checksums_sha256"]:
            raise ValueError(f"{path} is damaged: its checksum is wrong; {_REMEDY}")
        return {
            name: Segments(self.file(name), lengths[name], size, sums)
            for name, sums in read_sums(content, lengths, size).items()
        }

    def check_all(self) -> None:
        """Compare every byte of a store of format 1 with its checksum, once.

        Raises
        ------
        ValueError
            If rows are damaged; the message names them.
        """
        if self._segments:
            return
        with self._lock:
            if not self._verified:
                logger.info(
                    "%s has format 1 and is checked as a whole before it is used; make "
                    "it again with dualgap convert to check it as it is read",
                    self.path,
                )
                self.verify()
                self._verified = True

    def _check_size(self, name: str, expected: int) -> tuple[int, int]:
        home = os.path.realpath(self.path)
        if os.path.dirname(os.path.realpath(self.file(name))) != home:
            raise ValueError(f"{self.file(name)} is a link out of the store; {_REMEDY}")
        status = os.stat(self.file(name))
        if status.st_size != expected:
            raise ValueError(
                f"{self.file(name)} has {status.st_size} bytes, expected {expected}; "
                f"{_REMEDY}"
            )
        return status.st_size, status.st_mtime_ns

    def _reads_straight(self) -> bool:
        """Whether the file system supports direct reads, past its cache."""
        if not hasattr(os, "O_DIRECT") or self.stored == 0:
            return False
        if self.segment_bytes % mmap.PAGESIZE:
            return False
        try:
            handle = os.open(self.file("values"), os.O_RDONLY | os.O_DIRECT)
        except OSError:
            return False
        try:
            with mmap.mmap(-1, mmap.PAGESIZE) as page:
                return os.preadv(handle, [page], 0) > 0
        except OSError:
            return False
        finally:
            os.close(handle)

    # -------------------------------------------------------------------- arrays

    @property
    def y(self) -> NDArray[Any]:
        """Labels, shape (n_samples,); every access reads them again."""
        return self.column("y")

    @property
    def sample_weight(self) -> NDArray[np.float64] | None:
        """Weights, shape (n_samples,), or None; every access reads them again."""
        return self.column("weight") if self.has_weights else None

    def matrix(self, start: int = 0, stop: int | None = None) -> Any:
        """Return consecutive rows as a read-only, memory-mapped matrix.

        Solvers that do not stream rows use it and read it in their own order. This is
        fast if the rows fit into memory, and slow (single reads from the disk) if not.
        The call reads all mapped data once and compares them with their checksums.

        Parameters
        ----------
        start : int, default=0
            First row.
        stop : int, optional
            End of the range, ``0 <= start <= stop <= n_samples``. None means
            n_samples.

        Returns
        -------
        csr_matrix or ndarray of shape (stop - start, n_features)

        Raises
        ------
        ValueError
            If the range is invalid or the data are damaged.
        """
        stop = self.n_samples if stop is None else stop
        self._check_range("matrix", start, stop)
        with self._open() as files:
            if not self.is_sparse:
                d = self.n_features
                return files.mapped("values", start * d, stop * d).reshape(-1, d)
            indptr = files.mapped("indptr", start, stop + 1)
            ends = files.checked_pointers(indptr[[0, -1]], start)
            first, last = int(ends[0]), int(ends[1])
            X = csr_matrix((stop - start, self.n_features), dtype=self.dtype)
            X.data, X.indices, X.indptr = (
                files.mapped("values", first, last),
                files.mapped("indices", first, last),
                indptr - first if first else indptr,
            )  # fmt: skip  (the constructor would check every index)
        return X

    def column(self, name: str, start: int = 0, stop: int | None = None) -> Any:
        """Read labels ("y") or weights ("weight") of consecutive rows."""
        stop = self.n_samples if stop is None else stop
        self._check_range("column", start, stop)
        with self._open() as files:
            return files.part(name, start, stop)

    def _check_range(self, what: str, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self.n_samples:
            raise ValueError(
                f"{what}({start}, {stop}) is out of range; the store has "
                f"{self.n_samples} rows"
            )

    def rows(self, start: int, stop: int) -> Batch:
        """Read consecutive rows, and check every index and value.

        Parameters
        ----------
        start, stop : int
            Range of rows, ``0 <= start <= stop <= n_samples``.

        Returns
        -------
        Batch

        Raises
        ------
        ValueError
            If the range is invalid or the data are damaged.
        """
        self._check_range("rows", start, stop)
        span = slice(start, stop)
        with self._open() as files:
            return self._batch(files, span, files.load((span,)))

    def blocks(self) -> Iterator[Batch]:
        """Iterate over the store block by block, and check every index and value.

        The next block is read in the background. Every block has its own memory.

        Yields
        ------
        Batch

        Raises
        ------
        ValueError
            If the data are damaged.
        """
        with self._open() as files:
            for (span,), arrays in files.ahead(self._consecutive(), reuse=False):
                yield self._batch(files, span, arrays)

    __iter__ = blocks

    def _batch(self, files: _Files, span: slice, arrays: _Arrays) -> Batch:
        start, stop = span.start, span.stop
        rows = arrays.accessor(self.n_features, 0.0)
        fault, where, unique = rows.inspect(np.empty(stop - start))
        if fault is None and not unique:
            fault = "a row has a column twice"
        if fault is not None:
            raise ValueError(f"{self.path}, row {start + where}: {fault}; {_REMEDY}")
        weight = files.part("weight", start, stop) if self.has_weights else None
        X = arrays.matrix((stop - start, self.n_features))
        return Batch(X, files.part("y", start, stop), weight, start, stop)

    def verify(self, *, n_jobs: int = 1) -> None:
        """Compare every byte with the checksums of the description.

        Parameters
        ----------
        n_jobs : int, default=1
            Number of threads.

        Raises
        ------
        ValueError
            If rows are damaged; the message names them.
        """
        begin, entry, work = 0, 0, []
        for shard in self.shards:
            work.append((begin, entry, shard))
            begin, entry = begin + shard.rows, entry + shard.entries

        def check(start: int, first: int, shard: Shard) -> None:
            with self._open() as files:
                found = files.digest(start, first, shard.rows, shard.entries)
            if found != shard.sha256:
                raise ValueError(
                    f"{self.path} is damaged: rows {start} to {start + shard.rows} do "
                    f"not match their checksum; {_REMEDY}"
                )

        make_room_for(n_jobs)
        with ThreadPoolExecutor(n_jobs) as pool:
            for done in [pool.submit(check, *part) for part in work]:
                done.result()

    # -------------------------------------------------------------------- blocks

    @cached_property
    def _cuts(self) -> tuple[list[slice], int, dict[int, int]]:
        """Pages, number of pages per block, and first entries of the pages' rows."""
        n = self.n_samples
        row = 8 if self.is_sparse else 0
        total = self.stored * self.entry_bytes + n * row
        if total <= self.buffer:
            return [slice(0, n)], 1, {0: 0, n: self.nnz}
        half = self.buffer // 2
        # A page can end this many bytes after its fair share.
        slack = ALIGNMENT * (self.largest_row * self.entry_bytes + row)
        if half < 2 * slack:
            raise ValueError(
                f"buffer={self.buffer} is too small for {self.path}, whose longest row "
                f"takes {slack // ALIGNMENT} bytes; give {4 * slack} or more"
            )
        together = min(BLOCK_PAGES, half // (2 * slack))
        count = -(-total // (half // together - slack))
        with self._open() as files:

            def entry(i: int) -> int:
                return files.pointer(i) if self.is_sparse else i * self.n_features

            def before(i: int) -> int:  # bytes of the rows before row i
                return entry(i) * self.entry_bytes + i * row

            cuts = [0]
            for k in range(1, count):
                i = bisect.bisect_left(range(n), total * k // count, key=before)
                i -= i % ALIGNMENT
                if i > cuts[-1]:
                    cuts.append(i)
            cuts.append(n)
            firsts = {i: min(max(entry(i), 0), self.nnz) for i in cuts}
        return [slice(*pair) for pair in pairwise(cuts)], together, firsts

    @property
    def pages(self) -> list[slice]:
        return self._cuts[0]

    @property
    def block_pages(self) -> int:
        return self._cuts[1]

    def _consecutive(self) -> list[tuple[slice, ...]]:
        pages, together, _ = self._cuts
        groups = [pages[k : k + together] for k in range(0, len(pages), together)]
        return [(slice(group[0].start, group[-1].stop),) for group in groups]

    def read(
        self, constant: float, blocks: Sequence[Any] | None = None
    ) -> Iterator[Block]:
        if blocks is None:
            visits = self._consecutive()
        else:
            visits = [tuple(self.pages[k] for k in block) for block in blocks]
        with self._open() as files:
            ahead = files.ahead(visits, reuse=True, jumps=blocks is not None)
            for spans, arrays in ahead:
                yield Block(arrays.accessor(self.n_features, constant), spans)

    def hold(self, constant: float) -> Any:
        everything = (slice(0, self.n_samples),)
        with self._open() as files:
            return files.load(everything).accessor(self.n_features, constant)

    # --------------------------------------------------------------------- files

    @contextlib.contextmanager
    def _open(self) -> Iterator[_Files]:
        with contextlib.ExitStack() as stack:
            yield _Files(self, stack)


def whole_number(name: str, value: object, least: int, most: float = 2**63) -> int:
    """Return an argument as an int, after checking that it is in [least, most).

    Raises
    ------
    ValueError
        Naming the argument.
    """
    known = isinstance(value, Integral) and not isinstance(value, bool)
    if not known or not least <= int(value) < most:  # type: ignore[call-overload]
        raise ValueError(
            f"{name}={value!r} is out of range; give a whole number, {least} or more"
        )
    return int(value)  # type: ignore[call-overload]


def _reopen(path: str, buffer: int, direct: bool) -> RowStore:
    return RowStore.open(path, buffer=buffer, direct=direct)


def _machine_memory() -> int:
    """Return the machine's memory in bytes; a huge number if it is unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**63


class _Arrays(NamedTuple):
    """Arrays of a range of rows; pointers are relative to its first entry."""

    values: NDArray[Any]
    indices: NDArray[Any] | None
    indptr: NDArray[np.int64] | None

    def accessor(self, d: int, constant: float) -> Any:
        if self.indices is None:
            return core.dense_rows(self.values, constant)
        return core.csr_rows(self.values, self.indices, self.indptr, d, constant)

    def matrix(self, shape: tuple[int, int]) -> Any:
        if self.indices is None:
            return self.values
        X = csr_matrix((self.values, self.indices, self.indptr), shape=shape)
        return X


class _Files:
    """Open files of a store, for use by one thread."""

    def __init__(self, store: RowStore, stack: contextlib.ExitStack) -> None:
        self.store, self.stack = store, stack
        self.files: dict[str, BinaryIO] = {}

    def file(self, name: str) -> BinaryIO:
        if name not in self.files:
            path = self.store.file(name)
            file: Any = self.stack.enter_context(open(path, "rb", buffering=0))  # noqa: SIM115
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

    def fill(self, name: str, start: int, out: NDArray[Any]) -> None:
        """Read entries from `start` on; compare segments that are read first now."""
        self.store.check_all()
        segments = self.store._segments.get(name)
        begin = start * self.store.dtypes[name].itemsize
        target = out.reshape(-1).view(np.uint8)
        step = max(_PIECE, self.store.segment_bytes)

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
        file: Any = self.file(name)
        file.seek(begin)
        target, at = out.data, 0
        while at < len(target):
            got = file.readinto(target[at:])
            if not got:
                raise self._cut_short(name, begin + at)
            at += got

    def mapped(self, name: str, start: int, stop: int) -> NDArray[Any]:
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
            for at in range(begin, end, _STRETCH):
                segments.check(at, data[at : min(at + _STRETCH, end)])
        return whole[start:stop]

    def _cut_short(self, name: str, at: int) -> ValueError:
        return ValueError(
            f"{self.store.file(name)} is truncated at byte {at}; {_REMEDY}"
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

    def load(self, spans: tuple[slice, ...], slot: _Slot | None = None) -> _Arrays:
        """Read the arrays of rows, into a slot if one is given."""
        store = self.store
        if not store.is_sparse:
            d = store.n_features
            parts = [(s.start * d, (s.stop - s.start) * d) for s in spans]
            values = self._fill_parts("values", parts, slot)
            return _Arrays(values.reshape(-1, d), None, None)
        pointers, parts, held = [np.zeros(1, np.int64)], [], 0
        for span in spans:
            indptr = self._pointers(span)
            first, count = int(indptr[0]), int(indptr[-1] - indptr[0])
            pointers.append(indptr[1:] + (held - first))
            parts.append((first, count))
            held += count
        values = self._fill_parts("values", parts, slot)
        indices = self._fill_parts("indices", parts, slot)
        return _Arrays(values, indices, np.concatenate(pointers))

    def _pointers(self, span: slice) -> NDArray[np.int64]:
        indptr = self.part("indptr", span.start, span.stop + 1)
        return self.checked_pointers(indptr, span.start)

    def checked_pointers(self, indptr: Any, start: int) -> NDArray[np.int64]:
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
                f"[0, {store.nnz}]; {_REMEDY}"
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
    ) -> Iterator[tuple[tuple[slice, ...], _Arrays]]:
        """Yield the arrays of blocks; a thread reads the next one in the background.

        With `jumps`, the pages of a block are scattered, and each block is announced to
        the system before the previous one is read.
        """
        make_room_for(1)
        slots: list[_Slot | None] = [{}, {}] if reuse else [None, None]
        reader = ThreadPoolExecutor(1, "dualgap-read")
        threads: list[int] = []

        def load(t: int) -> _Arrays:
            threads[:] = [threading.get_ident()]
            if jumps:
                for spans in blocks[t + 1 if t else 0 : t + 2]:
                    self.announce(spans)
            return self.load(blocks[t], slots[t % 2])

        def ask(t: int) -> Future[_Arrays] | None:
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
            piece, end = np.empty(_DIGESTED, np.uint8), (begin + count) * size
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

    def __init__(self, files: _Files) -> None:
        self.files = files
        self.pending: list[Future[None]] = []
        self.pieces: SimpleQueue[NDArray[np.uint8]] = SimpleQueue()
        make_room_for(_READERS)
        for _ in range(_READERS):
            with memory_error("reading past the file cache"):
                piece = mmap.mmap(-1, _STRAIGHT)
            self.pieces.put(np.frombuffer(piece, np.uint8))
        self.pool = ThreadPoolExecutor(_READERS, "dualgap-read")
        self.handles: dict[str, int] = {}

    def __exit__(self, *error: Any) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)
        for handle in self.handles.values():
            os.close(handle)

    def read(self, name: str, start: int, out: NDArray[Any]) -> None:
        """Begin to read entries from `start` on."""
        if name not in self.handles:
            path = self.files.store.file(name)
            self.handles[name] = os.open(path, os.O_RDONLY | os.O_DIRECT)
            self.files.unchanged(name, self.handles[name])
        self.files.store.check_all()
        target = out.reshape(-1).view(np.uint8)
        begin = start * out.itemsize
        grain = max(self.files.store.segment_bytes, mmap.PAGESIZE)
        at = 0
        while at < len(target):
            # Pieces end at ends of segments.
            size = min(_STRAIGHT - (begin + at) % grain, len(target) - at)
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


_Slot = dict[str, NDArray[Any]]


def _room(
    slot: _Slot | None, name: str, size: int, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return an array to read into: a new one, or part of the slot's array."""
    if slot is None:
        return np.empty(size, dtype)
    if name not in slot or len(slot[name]) < size:
        slot.pop(name, None)  # free the old array before the new one is made
        slot[name] = np.empty(size, dtype)
    return slot[name][:size]


# ---------------------------------------------------------------------- description


def shard_parts(
    names: Any, start: int, first: int, rows: int, entries: int
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


def in_order(names: Any) -> list[str]:
    """Return names of arrays in the order in which their checksums are written."""
    return [name for name in _DTYPES if name in names]


def digest(description: dict[str, Any]) -> str:
    """Return the SHA-256 of a description, without its field "sha256"."""
    plain = {key: value for key, value in description.items() if key != "sha256"}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def parse(text: str) -> dict[str, Any]:
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
    fields = _FIELDS if version == 1 else _FIELDS | _CHECKED_FIELDS
    if set(description) != set(fields):
        raise ValueError(f"it has unexpected fields: {sorted(description)}")
    for field, kind in fields.items():
        if type(description[field]) is not kind:
            raise ValueError(f"{field}={description[field]!r} has a wrong type")
        if kind is int and description[field] < 0:
            raise ValueError(f"{field}={description[field]} is negative")
    if digest(description) != description["sha256"]:
        raise ValueError("its checksum is wrong: it was damaged or edited")
    size = description.get("segment_bytes", _LEAST_SEGMENT)
    if size & (size - 1) or not _LEAST_SEGMENT <= size <= _MOST_SEGMENT:
        raise ValueError(
            f"segment_bytes={size} is not a power of two from {_LEAST_SEGMENT} to "
            f"{_MOST_SEGMENT}"
        )
    _check_arrays(description)
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
    return description


def _check_arrays(description: dict[str, Any]) -> None:
    arrays, dense = description["arrays"], description["dense"]
    needed = {"values", "y"} | (set() if dense else {"indices", "indptr"})
    if not needed <= set(arrays) <= needed | {"weight"}:
        raise ValueError(f"it has unexpected arrays: {sorted(arrays)}")
    for name, kind in arrays.items():
        if kind not in _DTYPES[name]:
            raise ValueError(f"{name} has the invalid dtype {kind!r}")
