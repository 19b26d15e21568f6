"""Row stores: data larger than memory, as a folder of arrays.

    store.json    description: shapes, dtypes, versions, checksums
    values.npy    (entries,), or (n_samples, n_features) if dense   float32, float64
    indices.npy   (entries,)          int32, int64    } not if dense
    indptr.npy    (n_samples + 1,)    int64           }
    y.npy         (n_samples,)        int8, int32, int64, float64
    weight.npy    (n_samples,)        float64         if the rows have weights

`convert` makes a store, with its rows in random order; afterwards it is only read.

The content is checked. Sizes and headers are checked when a store is opened, every
64 KiB against their CRC-32C when they are first read, pointers whenever they are read,
and indices and values by the first epoch of a fit. `verify` compares every byte again.
"""

from __future__ import annotations

import bisect
import functools
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from .. import core
from ..checks import check_count
from ..memory import machine_memory, make_room_for
from .blocks import ALIGNMENT, Block, RowSource
from .description import (
    DESCRIPTION,
    REMEDY,
    Description,
    checksums,
    parse,
    shape_of,
    size_of,
)
from .features import Features
from .files import Arrays, StoredArray, Task, pages
from .types import Array, Matrix, MatrixLike

#: Bytes for the blocks of an epoch, two of which are in memory.
BUFFER = 2**28
#: Beginning of the names of threads that read blocks.
_READER = "dualgap-read"

_Spans = tuple[slice, ...]
_Slot = dict[str, NDArray[np.uint8]]


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
    ``LinearSVC.fit`` or ``Problem`` instead of X. Whatever reads it raises ValueError
    if the range of rows is invalid or the data are damaged, and names the bytes.

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
    classes : tuple of str or None
        Words that are the labels, whose numbers are in `y`; None if labels are numbers.
    buffer : int
        Bytes of the blocks that an epoch holds in memory.
    fingerprint : str
        SHA-256 of the description, which holds the checksums of every array.

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

    def __init__(self, path: str, description: Description, buffer: int) -> None:
        self.path = self.name = path
        self.buffer = buffer
        self.fingerprint = description["sha256"]
        self.n_samples = description["n_samples"]
        self.n_features = description["n_features"]
        self.stored = self.nnz = description["entries"]
        self.is_sparse = not description["dense"]
        self.shuffled = description["shuffled"]
        self.zero_based = description["zero_based"]
        self.largest_row = description["largest_row"]
        text = description["columns"]
        #: What the columns of a table became, which models keep.
        self.features = Features.from_json(text) if text else None
        self.classes = tuple(description["classes"]) or None
        # A cache that cannot hold the rows until the next epoch only costs time.
        size = sum(size_of(description, name) for name in description["arrays"])
        direct = size > StoredArray.settings.cached * machine_memory()
        self._arrays = {
            name: StoredArray(
                self.file(name),
                dtype,
                shape_of(description, name),
                checksums(description, name),
                direct,
            )
            for name, dtype in description["arrays"].items()
        }
        self.dtypes = {name: array.dtype for name, array in self._arrays.items()}
        self.dtype = self.dtypes["values"]
        self.has_weights = "weight" in self.dtypes
        self.entry_bytes = self.dtype.itemsize
        if self.is_sparse:
            self.entry_bytes += self.dtypes["indices"].itemsize
            ends = [self._pointer(0), self._pointer(self.n_samples)]
            if ends != [0, self.nnz]:
                raise ValueError(
                    f"{self.file('indptr')} runs from {ends[0]} to {ends[1]}, not from "
                    f"0 to {self.nnz}; {REMEDY}"
                )
        self.pages, self.block_pages = self._cut()

    # ------------------------------------------------------------------- opening

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, buffer: int = BUFFER) -> RowStore:
        """Open a store for reading.

        Parameters
        ----------
        path : str or path-like
            The folder.
        buffer : int, default=2**28
            Bytes for the two blocks that an epoch holds in memory: the one in use and
            the one being read. A store that fits into the buffer is held as a whole.

        Returns
        -------
        RowStore

        Raises
        ------
        FileNotFoundError
            If the folder does not exist.
        ValueError
            If the folder is not a store, is damaged or of another version, or a row
            does not fit into half of the buffer.
        """
        path = os.fsdecode(path)
        check_count("buffer", buffer)
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
        return cls(path, description, int(buffer))

    def __reduce__(self) -> tuple[object, ...]:
        return functools.partial(RowStore.open, buffer=self.buffer), (self.path,)

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
        return os.path.join(self.path, f"{name}.npy")

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
        """
        stop = self.n_samples if stop is None else stop
        self._check_range("matrix", start, stop)
        mapped = {name: array.mapped for name, array in self._arrays.items()}
        if not self.is_sparse:
            d = self.n_features
            return mapped["values"](start * d, stop * d).reshape(-1, d)
        indptr = mapped["indptr"](start, stop + 1)
        ends = self._checked(indptr[[0, -1]].astype(np.int64), start)
        first, last = int(ends[0]), int(ends[1])
        X = csr_matrix((stop - start, self.n_features), dtype=self.dtype)
        X.data, X.indices, X.indptr = (
            mapped["values"](first, last),
            mapped["indices"](first, last),
            indptr - first if first else indptr,
        )  # fmt: skip  (the constructor would check every index)
        return X

    def column(self, name: str, start: int = 0, stop: int | None = None) -> Any:
        """Read labels ("y") or weights ("weight") of consecutive rows."""
        stop = self.n_samples if stop is None else stop
        self._check_range("column", start, stop)
        return self._arrays[name].read(start, stop)

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
        """
        self._check_range("rows", start, stop)
        return self._batch(slice(start, stop), self._load((slice(start, stop),)))

    def blocks(self) -> Iterator[RowBatch]:
        """Iterate over the store block by block, and check every index and value.

        The next block is read in the background. Every block has its own memory.

        Yields
        ------
        RowBatch
        """
        for (span,), arrays in self._ahead(self._consecutive(), reuse=False):
            yield self._batch(span, arrays)

    __iter__ = blocks

    def _batch(self, span: slice, arrays: Arrays) -> RowBatch:
        start, stop = span.start, span.stop
        rows = arrays.accessor(self.n_features, 0.0)
        fault, where, unique = rows.inspect(np.empty(stop - start))
        if fault is None and not unique:
            fault = "a row has a column twice"
        if fault is not None:
            raise ValueError(f"{self.path}, row {start + where}: {fault}; {REMEDY}")
        weight = self.column("weight", start, stop) if self.has_weights else None
        X = arrays.matrix((stop - start, self.n_features))
        return RowBatch(X, self.column("y", start, stop), weight, start, stop)

    def verify(self, *, n_jobs: int = 1) -> None:
        """Compare every byte with its checksum.

        Parameters
        ----------
        n_jobs : int, default=1
            Number of threads.
        """
        make_room_for(n_jobs)
        with ThreadPoolExecutor(n_jobs) as pool:
            for array in self._arrays.values():
                _wait(pool, array.checks())

    # -------------------------------------------------------------------- blocks

    def _cut(self) -> tuple[list[slice], int]:
        """Return the pages, and the number of pages per block."""
        n = self.n_samples
        row = 8 if self.is_sparse else 0
        total = self.stored * self.entry_bytes + n * row
        if total <= self.buffer:
            return [slice(0, n)], 1
        half = self.buffer // 2
        # A page can end this many bytes after its fair share.
        slack = ALIGNMENT * (self.largest_row * self.entry_bytes + row)
        if half < 2 * slack:
            raise ValueError(
                f"buffer={self.buffer} is too small for {self.path}, whose longest row "
                f"takes {slack // ALIGNMENT} bytes; give {4 * slack} or more"
            )
        together = min(StoredArray.settings.block_pages, half // (2 * slack))
        count = -(-total // (half // together - slack))

        def before(i: int) -> int:  # bytes of the rows before row i
            entry = self._pointer(i) if self.is_sparse else i * self.n_features
            return entry * self.entry_bytes + i * row

        cuts = [0]
        for k in range(1, count):
            i = bisect.bisect_left(range(n), total * k // count, key=before)
            i -= i % ALIGNMENT
            if i > cuts[-1]:
                cuts.append(i)
        return [slice(*pair) for pair in pairwise([*cuts, n])], together

    def _pointer(self, i: int) -> int:
        return int(self._arrays["indptr"].read(i, i + 1)[0])

    def _consecutive(self) -> list[_Spans]:
        pages, together = self.pages, self.block_pages
        groups = [pages[k : k + together] for k in range(0, len(pages), together)]
        return [(slice(group[0].start, group[-1].stop),) for group in groups]

    def read(
        self, constant: float, blocks: Sequence[Sequence[int]] | None = None
    ) -> Iterator[Block]:
        if blocks is None:
            visits = self._consecutive()
        else:
            visits = [tuple(self.pages[k] for k in block) for block in blocks]
        for spans, arrays in self._ahead(visits, reuse=True):
            yield Block(arrays.accessor(self.n_features, constant), spans)

    def hold(self, constant: float) -> core.Rows:
        arrays = self._load((slice(0, self.n_samples),))
        return arrays.accessor(self.n_features, constant)

    def _load(
        self,
        spans: _Spans,
        slot: _Slot | None = None,
        pool: ThreadPoolExecutor | None = None,
    ) -> Arrays:
        """Read the arrays of rows, into a slot if one is given."""
        d, tasks = self.n_features, list[Task]()

        def filled(name: str, parts: list[tuple[int, int]]) -> Array:
            ends = np.cumsum([0, *(count for _, count in parts)]).tolist()
            out = _room(slot, name, ends[-1], self.dtypes[name])
            for (first, _), (a, b) in zip(parts, pairwise(ends), strict=True):
                tasks.extend(self._arrays[name].tasks(first, out[a:b]))
            return out

        indices = indptr = None
        if self.is_sparse:
            pointers, parts, held = [np.zeros(1, np.int64)], [], 0
            for span in spans:
                own = self._arrays["indptr"].read(span.start, span.stop + 1)
                self._checked(own, span.start)
                first, count = int(own[0]), int(own[-1] - own[0])
                pointers.append(own[1:] + (held - first))
                parts.append((first, count))
                held += count
            indptr, indices = np.concatenate(pointers), filled("indices", parts)
        else:
            parts = [(s.start * d, (s.stop - s.start) * d) for s in spans]
        values = filled("values", parts)
        _wait(pool, tasks)
        values = values if self.is_sparse else values.reshape(-1, d)
        return Arrays(values, indices, indptr)

    def _checked(self, indptr: NDArray[np.int64], start: int) -> NDArray[np.int64]:
        """Return the pointers from row `start` on, after checking their order."""
        falls = np.diff(indptr) < 0
        if falls.any() or not 0 <= indptr[0] <= indptr[-1] <= self.nnz:
            where = start + int(np.argmax(falls))
            raise ValueError(
                f"{self.file('indptr')}, row {where}: a pointer decreases or leaves "
                f"[0, {self.nnz}]; {REMEDY}"
            )
        return indptr

    def _ahead(
        self, blocks: Sequence[_Spans], *, reuse: bool
    ) -> Iterator[tuple[_Spans, Arrays]]:
        """Yield the arrays of blocks; threads read the next one in the background."""
        threads = 1 + StoredArray.settings.readers  # one waits for the others
        make_room_for(threads)
        slots: list[_Slot | None] = [{}, {}] if reuse else [None, None]
        pool = ThreadPoolExecutor(threads, _READER)

        def ask(t: int) -> Future[Arrays] | None:
            if t == len(blocks):
                return None
            return pool.submit(self._load, blocks[t], slots[t % 2], pool)

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
            own = threading.current_thread().name.startswith(_READER)
            pool.shutdown(wait=not own)


def _wait(pool: ThreadPoolExecutor | None, tasks: Sequence[Task]) -> None:
    """Do tasks in the threads of a pool, or in this one; raise the first error."""
    if pool is None or len(tasks) == 1:
        for task in tasks:
            task()
        return
    for done in [pool.submit(task) for task in tasks]:
        done.result()


def _room(
    slot: _Slot | None, name: str, size: int, dtype: np.dtype[np.generic]
) -> Array:
    """Return an array to read into: a new one, or part of the slot's memory."""
    if slot is None:
        return np.empty(size, dtype)
    if name not in slot or len(slot[name]) < size * dtype.itemsize:
        slot.pop(name, None)  # free the old memory before there is more
        slot[name] = pages(size * dtype.itemsize)
    return slot[name][: size * dtype.itemsize].view(dtype)
