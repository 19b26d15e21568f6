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
import logging
import mmap
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from .. import core
from ..memory import machine_memory, make_room_for
from .blocks import ALIGNMENT, Block, RowSource
from .description import DESCRIPTION, REMEDY, Description, Shard, in_order, parse
from .files import Arrays, OpenFiles
from .segments import Segments, read_sums
from .types import Matrix, MatrixLike

__all__ = ["RowBatch", "RowStore"]

logger = logging.getLogger("dualgap")

#: Bytes for the blocks of an epoch, two of which are in memory.
BUFFER = 2**28


class RowBatch(NamedTuple):
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

    X: MatrixLike
    y: NDArray[np.generic]
    sample_weight: NDArray[np.float64] | None
    start: int
    stop: int


class RowStore(RowSource):
    """Rows, labels and weights in a folder, read block by block.

    :func:`dualgap.data.convert` makes a store and :meth:`open` opens it. Pass it to
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
    >>> from dualgap.data import RowStore, convert
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
        description: Description,
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
            direct = 2 * self.stored * self.entry_bytes > machine_memory()
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
                    f"0 to {self.nnz}; {REMEDY}"
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
            raise ValueError(f"{where}: {error}; {REMEDY}") from None
        store = cls(path, description, size, direct)
        store.pages  # noqa: B018  (raises if the buffer is too small)
        return store

    def __reduce__(self) -> tuple[object, ...]:
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

    def _read_segments(self, description: Description) -> dict[str, Segments]:
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
            raise ValueError(f"{path} is damaged: its checksum is wrong; {REMEDY}")
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
            raise ValueError(f"{self.file(name)} is a link out of the store; {REMEDY}")
        status = os.stat(self.file(name))
        if status.st_size != expected:
            raise ValueError(
                f"{self.file(name)} has {status.st_size} bytes, expected {expected}; "
                f"{REMEDY}"
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
    def y(self) -> NDArray[np.generic]:
        """Labels, shape (n_samples,); every access reads them again."""
        return self.column("y")

    @property
    def sample_weight(self) -> NDArray[np.float64] | None:
        """Weights, shape (n_samples,), or None; every access reads them again."""
        return self.column("weight") if self.has_weights else None

    def matrix(self, start: int = 0, stop: int | None = None) -> Matrix:
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
            ends = files.checked_pointers(indptr[[0, -1]].astype(np.int64), start)
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

    def rows(self, start: int, stop: int) -> RowBatch:
        """Read consecutive rows, and check every index and value.

        Parameters
        ----------
        start, stop : int
            Range of rows, ``0 <= start <= stop <= n_samples``.

        Returns
        -------
        RowBatch

        Raises
        ------
        ValueError
            If the range is invalid or the data are damaged.
        """
        self._check_range("rows", start, stop)
        span = slice(start, stop)
        with self._open() as files:
            return self._batch(files, span, files.load((span,)))

    def blocks(self) -> Iterator[RowBatch]:
        """Iterate over the store block by block, and check every index and value.

        The next block is read in the background. Every block has its own memory.

        Yields
        ------
        RowBatch

        Raises
        ------
        ValueError
            If the data are damaged.
        """
        with self._open() as files:
            for (span,), arrays in files.ahead(self._consecutive(), reuse=False):
                yield self._batch(files, span, arrays)

    __iter__ = blocks

    def _batch(self, files: OpenFiles, span: slice, arrays: Arrays) -> RowBatch:
        start, stop = span.start, span.stop
        rows = arrays.accessor(self.n_features, 0.0)
        fault, where, unique = rows.inspect(np.empty(stop - start))
        if fault is None and not unique:
            fault = "a row has a column twice"
        if fault is not None:
            raise ValueError(f"{self.path}, row {start + where}: {fault}; {REMEDY}")
        weight: NDArray[np.float64] | None = None
        if self.has_weights:
            weight = files.part("weight", start, stop).astype(np.float64, copy=False)
        X = arrays.matrix((stop - start, self.n_features))
        return RowBatch(X, files.part("y", start, stop), weight, start, stop)

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
                    f"not match their checksum; {REMEDY}"
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
        together = min(OpenFiles.settings.block_pages, half // (2 * slack))
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
        self, constant: float, blocks: Sequence[Sequence[int]] | None = None
    ) -> Iterator[Block]:
        if blocks is None:
            visits = self._consecutive()
        else:
            visits = [tuple(self.pages[k] for k in block) for block in blocks]
        with self._open() as files:
            ahead = files.ahead(visits, reuse=True, jumps=blocks is not None)
            for spans, arrays in ahead:
                yield Block(arrays.accessor(self.n_features, constant), spans)

    def hold(self, constant: float) -> core.Rows:
        everything = (slice(0, self.n_samples),)
        with self._open() as files:
            return files.load(everything).accessor(self.n_features, constant)

    # --------------------------------------------------------------------- files

    @contextlib.contextmanager
    def _open(self) -> Iterator[OpenFiles]:
        with contextlib.ExitStack() as stack:
            yield OpenFiles(self, stack)


def whole_number(name: str, value: object, least: int, most: float = 2**63) -> int:
    """Return an argument as an int, after checking that it is in [least, most).

    Raises
    ------
    ValueError
        Naming the argument.
    """
    if not isinstance(value, bool) and isinstance(value, Integral):
        number = int(value)
        if least <= number < most:
            return number
    raise ValueError(
        f"{name}={value!r} is out of range; give a whole number, {least} or more"
    )


def _reopen(path: str, buffer: int, direct: bool) -> RowStore:
    return RowStore.open(path, buffer=buffer, direct=direct)
