"""Conversion of data files to row stores: a resumable shuffle in bounded memory.

    scatter   Inputs are cut into chunks of `memory`/16 bytes. Every row gets a random
              64-bit key; each chunk is sorted by key and written as a run.
    gather    The range of keys is cut into intervals whose rows fit in memory. The rows
              of an interval are read from all runs, sorted by key, and written.

The rows of the store are in the order of their keys, so every permutation is equally
likely. A key depends on the seed and on the number of the row (in text, of the line).
The store therefore does not depend on `n_jobs`.

Everything is written in a hidden folder beside the target; when the store is complete,
it is renamed. After each run and each interval is on the disk, a line is added to a
journal, from which a killed conversion resumes. The conversion needs twice the disk
space of the store.
Source     the shuffle by random keys is a sample sort (Frazer and McKellar, J. ACM 17,
           1970) of keys whose quantiles are known.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from .. import core
from ..memory import make_room_for
from . import sources
from .atomic import _flush_folder, write_atomically
from .description import (
    CHECKSUMS,
    DESCRIPTION,
    FORMAT,
    FORMAT_VERSION,
    digest,
    in_order,
    shard_parts,
)
from .lock import locked
from .segments import SEGMENT, joined, partial_sums
from .store import BUFFER, RowStore, whole_number
from .svmlight import _check_n_features, _checked_dtype, _thread_count

__all__ = ["convert"]

logger = logging.getLogger("dualgap")

MEMORY = 2**30
#: A chunk of text has 1 / _SHARE of the memory. At most 4 threads hold one each, as
#: text, as arrays, sorted, and as it is written.
_SHARE, _MOST_THREADS = 16, 4
_LARGEST_WHOLE = 2**53  # float64 cannot represent all larger whole numbers


def convert(
    inputs: Any,
    path: str | os.PathLike[str],
    *,
    format: Literal["auto", "csr", "dense"] = "auto",
    dtype: DTypeLike = np.float64,
    shuffle: bool = True,
    seed: int = 0,
    memory: int = MEMORY,
    n_jobs: int | None = None,
    overwrite: bool = False,
    resume: bool = True,
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    label: str = "label",
    weight: str | None = None,
    y: Any = None,
    sample_weight: Any = None,
    buffer: int = BUFFER,
) -> RowStore:
    """Convert data larger than memory to a row store, with its rows in random order.

    Parameters
    ----------
    inputs : str, path-like, list of these, or iterable of tuples
        Files, whose rows are concatenated: svmlight text, plain or compressed
        (``.gz``, ``.bz2``, ``.xz``, ``.zst``); CSV or TSV, plain or compressed;
        Parquet or Arrow (these need the package pyarrow); ``.npy``; ``.npz`` of
        ``scipy.sparse.save_npz`` or with an array ``X``. Or an iterable of batches
        ``(X, y)`` or ``(X, y, sample_weight)`` of any size, or of functions that return
        a batch of at most `memory`/16 bytes. A resumed conversion does not call
        functions whose batches are already written.
    path : str or path-like
        Folder to create.
    format : {"auto", "csr", "dense"}, default="auto"
        Format of the rows. "auto" keeps the format of the first rows. "csr" drops the
        zeros of dense rows.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the values. float32 rounds them and takes two thirds of the space.
    shuffle : bool, default=True
        Whether to shuffle the rows. Use False only for data that are in random order
        already, because the solvers treat a block as a random sample.
    seed : int, default=0
        Seed of the order. The same inputs, seed and `memory` give the same store.
    memory : int, default=2**30
        Bytes of memory to use, at least 2**20.
    n_jobs : int, optional
        Number of threads, of which at most 4 are used; None uses all processors.
    overwrite : bool, default=False
        Whether to replace an existing store.
    resume : bool, default=True
        Whether to resume a killed conversion to the same path. Batches must then come
        in the same order. False starts over.
    zero_based : bool or "auto", default="auto"
        Whether the indices of svmlight text start at 0 or at 1. "auto" means 0 if any
        file has an index 0.
    n_features : int, optional
        Number of columns. None uses the largest number in the data.
    label, weight : str
        Columns of tables with the labels and, if given, the weights. All other columns
        are features. In CSV and TSV files that lack the column "label", the labels are
        in the column target, class or y, or in the only column of text.
    y, sample_weight : array-like or path of a .npy file, optional
        Labels and weights of ``.npy`` and ``.npz`` files that do not contain them.
    buffer : int, default=2**28
        As in :meth:`RowStore.open`.

    Returns
    -------
    RowStore
        The new store, open for reading.

    Raises
    ------
    ValueError
        If an input is malformed (the message names file and line), a value is NaN or
        infinite, labels are not numbers, an argument is out of range, an unfinished
        conversion had other inputs or arguments, or another conversion is writing to
        this path.
    FileExistsError
        If the path exists and `overwrite` is False, or it is not a store.
    ImportError
        If a format needs a missing package.

    Examples
    --------
    >>> from dualgap.io import convert
    >>> store = convert("big.svm.xz", "big.store", dtype="float32")  # doctest: +SKIP
    """
    target = os.path.abspath(os.fsdecode(path))
    _check_n_features(n_features)
    if format not in ("auto", "csr", "dense"):
        raise ValueError(f"format={format!r} is unknown; use 'auto', 'csr' or 'dense'")
    seed = whole_number("seed", seed, 0, 2**64)
    memory = whole_number("memory", memory, 2**20)
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(
            f"{os.path.dirname(target)}: no such folder; create it first"
        )
    reading = sources.Reading(
        dtype=_checked_dtype(dtype),
        chunk=memory // _SHARE,
        zero_based=zero_based,
        label=label,
        weight=weight,
        y=y,
        sample_weight=sample_weight,
    )
    source = sources.source_of(inputs, reading)
    plan = {
        "store_format": FORMAT_VERSION,
        "inputs": source.identity,
        "format": format,
        "dtype": reading.dtype.str,
        "shuffle": bool(shuffle),
        "seed": seed,
        "memory": memory,
        "zero_based": zero_based,
        "n_features": n_features,
        "label": label,
        "weight": weight,
    }
    threads = min(_thread_count(n_jobs), _MOST_THREADS)
    parent, name = os.path.split(target)
    with locked(os.path.join(os.path.realpath(parent), name), target):
        if not (resume and _Work.was_published(target, plan)):
            _check_free(target, overwrite)
            with _Work.begin(target, plan, resume) as work:
                if work.complete is None:
                    work.run(_Conversion(work, plan, threads), source)
                work.publish(target)
    return RowStore.open(target, buffer=buffer)


def _check_free(target: str, overwrite: bool) -> None:
    if not os.path.lexists(target):
        return
    if not os.path.isfile(os.path.join(target, DESCRIPTION)):
        raise FileExistsError(
            f"{target} exists and is not a row store; choose another name"
        )
    if not overwrite:
        raise FileExistsError(
            f"{target} exists; remove it, choose another name, or replace it with "
            "overwrite=True"
        )


# ------------------------------------------------------------------ the hidden folder


@dataclass
class _Run:
    """Description of a run: a sorted chunk on the disk."""

    rows: int
    entries: int
    dense: bool
    wide: bool  # int64 indices
    weights: bool
    lowest: int  # column index, -1 without entries
    columns: int  # largest index + 1, or the width of the chunk
    largest_row: int
    whole: bool  # labels are whole numbers
    least: float
    most: float


@dataclass
class _Work:
    """Hidden folder of a conversion, with its journal."""

    folder: str
    runs: dict[int, _Run] = field(default_factory=dict)
    shards: dict[int, dict[str, Any]] = field(default_factory=dict)
    scattered: int | None = None  # number of runs, once it is known
    complete: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    @contextlib.contextmanager
    def begin(cls, target: str, plan: dict[str, Any], resume: bool) -> Iterator[_Work]:
        """Open the folder and read the state that a killed conversion has left."""
        folder = cls._folder_of(target)
        work = cls(folder)
        if os.path.isdir(folder) and not resume:
            shutil.rmtree(folder)
        os.makedirs(folder, exist_ok=True)
        work._read(plan, target)
        yield work
        work._clear()
        shutil.rmtree(folder, ignore_errors=True)

    def run(self, conversion: _Conversion, source: sources.Source) -> None:
        """Run the conversion; remove the folder if the inputs are invalid.

        Corrected inputs would not match the state in the folder.
        """
        try:
            conversion.run(source)
        except (ValueError, TypeError, ImportError):
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    @classmethod
    def was_published(cls, target: str, plan: dict[str, Any]) -> bool:
        """Whether an equal conversion was killed after the store was complete.

        Its hidden folder is then removed.
        """
        work = cls(cls._folder_of(target))
        where = os.path.join(work.folder, "plan.json")
        if not (os.path.isfile(where) and os.path.isdir(target)):
            return False
        with open(where, encoding="utf-8") as file:
            same = json.load(file) == json.loads(json.dumps(plan))
        ended = any("shard" in entry for entry in work._journal())
        if not (same and ended) or os.path.isdir(work.store):
            return False
        work._clear()
        shutil.rmtree(work.folder, ignore_errors=True)
        return True

    @staticmethod
    def _folder_of(target: str) -> str:
        parent, name = os.path.split(target)
        return os.path.join(parent, f".{name}.converting")

    def _clear(self) -> None:
        """Remove everything but the plan and the journal.

        These identify the folder if the process is killed now.
        """
        for name in os.listdir(self.folder):
            if name == "old":
                shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)
            elif name not in ("plan.json", "journal"):
                os.unlink(os.path.join(self.folder, name))

    def _read(self, plan: dict[str, Any], target: str) -> None:
        where = os.path.join(self.folder, "plan.json")
        if not os.path.exists(where):
            with write_atomically(where, "w") as file:
                json.dump(plan, file)
            return
        with open(where, encoding="utf-8") as file:
            earlier = json.load(file)
        now = json.loads(json.dumps(plan))
        changed = sorted(key for key in now if earlier.get(key) != now[key])
        if changed:
            raise ValueError(
                f"{target} has an unfinished conversion with different "
                f"{', '.join(changed)}; repeat that call to resume it, or start over "
                "with resume=False"
            )
        if os.path.isfile(os.path.join(self.store, DESCRIPTION)):
            self.complete = self.store
        entries = list(self._journal())
        if any("shard" in entry for entry in entries) and not os.path.isdir(self.store):
            # A conversion was killed after it had renamed the store.
            os.unlink(os.path.join(self.folder, "journal"))
            return
        for entry in entries:
            if "run" in entry:
                self.runs[entry["run"]] = _Run(**entry["is"])
            elif "shard" in entry:
                self.shards[entry["shard"]] = entry["is"]
            else:
                self.scattered = entry["runs"]
        if self.runs:
            logger.info(
                "convert: resuming after %d runs and %d shards",
                len(self.runs), len(self.shards),
            )  # fmt: skip

    def _journal(self) -> Iterator[dict[str, Any]]:
        where = os.path.join(self.folder, "journal")
        if not os.path.exists(where):
            return
        with open(where, "rb+") as file:
            whole = 0
            for line in file:
                try:
                    entry = json.loads(line) if line.endswith(b"\n") else None
                except ValueError:
                    entry = None
                if entry is None:
                    break  # the process was killed while it wrote this line
                whole += len(line)
                yield entry
            file.truncate(whole)

    def note(self, **entry: Any) -> None:
        """Add a line to the journal, after the data it describes are on the disk."""
        with self.lock, open(os.path.join(self.folder, "journal"), "ab") as file:
            file.write(json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def store(self) -> str:
        return os.path.join(self.folder, "store")

    def run_file(self, k: int) -> str:
        return os.path.join(self.folder, f"run-{k:06d}")

    def publish(self, target: str) -> None:
        """Rename the complete store to its target."""
        _flush_folder(self.store)
        old = os.path.join(self.folder, "old")
        if os.path.lexists(target):
            if os.path.isdir(old):
                shutil.rmtree(old)
            os.rename(target, old)
        os.rename(self.store, target)
        _flush_folder(os.path.dirname(target))


# ------------------------------------------------------------------------ conversion


class _Conversion:
    """Conversion of inputs to a store in the hidden folder."""

    def __init__(self, work: _Work, plan: dict[str, Any], threads: int) -> None:
        self.work, self.plan, self.threads = work, plan, threads
        self.format = plan["format"]

    def run(self, source: sources.Source) -> None:
        if self.work.scattered is None:
            count = self._scatter(source)
            self.work.note(runs=count)
            self.work.scattered = count
        _Gather(self.work, self.plan, self.threads).run()

    def _scatter(self, source: sources.Source) -> int:
        """Write one run per chunk, and return the number of runs."""
        count = 0
        with _Crew(self.threads) as crew:
            known = {k: run.rows for k, run in self.work.runs.items()}
            for k, chunk in enumerate(source.chunks(known)):
                count = k + 1
                if self.format == "auto":
                    dense = self.work.runs[k].dense if chunk is None else chunk.dense
                    self.format = "dense" if dense else "csr"
                if chunk is not None and k not in known:
                    crew.do(self._write_run, k, chunk)
        if sum(run.rows for run in self.work.runs.values()) == 0:
            raise ValueError(f"{source.name} has no rows; give data")
        return count

    def _write_run(self, k: int, chunk: sources.Chunk) -> None:
        X, y, weight = chunk.load()
        n = len(y)
        if self.plan["shuffle"]:
            # The key of row r is the r-th number of one sequence, whatever the chunks.
            keys = _keys(self.plan["seed"], chunk.first, n)
        else:
            keys = np.arange(chunk.first, chunk.first + n, dtype=np.uint64)
        if not sparse.issparse(X) and self.format == "csr":
            X = sparse.csr_matrix(X)
        run = _describe(X, y, weight, chunk)
        order = np.argsort(keys, kind="stable")
        sections: list[NDArray[Any]] = [keys[order], y[order]]
        if weight is not None:
            sections.append(weight[order])
        X = X[order]
        if run.dense:
            sections.append(X)
        else:
            indices = X.indices.astype(np.int64 if run.wide else np.int32, copy=False)
            sections += [X.indptr.astype(np.int64, copy=False), indices, X.data]
        # An incomplete run is not in the journal, and is written again.
        with open(self.work.run_file(k), "wb") as file:
            for section in sections:
                file.write(
                    np.ascontiguousarray(section).reshape(-1).view(np.uint8).data
                )
            file.flush()
            os.fsync(file.fileno())
        self.work.note(run=k, **{"is": asdict(run)})
        self.work.runs[k] = run


def _keys(seed: int, first: int, n: int) -> NDArray[np.uint64]:
    generator = np.random.PCG64(seed)
    generator.advance(first)
    return generator.random_raw(n)


def _describe(X: Any, y: Any, weight: Any, chunk: sources.Chunk) -> _Run:
    """Check the values of a chunk, and return the description of its run.

    Raises
    ------
    ValueError
        If a value, label or weight is invalid; the message names its place.
    """
    n, dense = X.shape[0], not sparse.issparse(X)
    indices = np.empty(0, np.int32) if dense else X.indices
    rows = (
        core.dense_rows(X, 0.0)
        if dense
        else core.csr_rows(X.data, indices, X.indptr, X.shape[1], 0.0)
    )
    fault, where, unique = rows.inspect(np.empty(n))
    if fault is not None or not unique:
        raise ValueError(f"{chunk.place(where)}: {fault or 'a row has a column twice'}")
    for name, array in (("label", y), ("weight", weight)):
        if array is not None and not np.isfinite(array).all():
            bad = int(np.argmin(np.isfinite(array)))
            raise ValueError(f"{chunk.place(bad)}: {name} is {array[bad]}")
    if weight is not None and (weight < 0.0).any():
        bad = int(np.argmax(weight < 0.0))
        raise ValueError(f"{chunk.place(bad)}: weight {weight[bad]} is negative")
    lengths = np.diff(X.indptr) if not dense else np.full(min(n, 1), X.shape[1])
    return _Run(
        rows=n,
        entries=int(rows.stored),
        dense=dense,
        wide=indices.dtype.itemsize > 4,
        weights=weight is not None,
        lowest=int(indices.min()) if indices.size else -1,
        columns=X.shape[1]
        if chunk.columns
        else (int(indices.max()) + 1 if indices.size else 0),
        largest_row=int(lengths.max()) if len(lengths) else 0,
        whole=bool(((y == np.trunc(y)) & (np.abs(y) < _LARGEST_WHOLE)).all()),
        least=float(y.min()) if n else 0.0,
        most=float(y.max()) if n else 0.0,
    )


class _Crew(contextlib.AbstractContextManager["_Crew"]):
    """Pool of threads with a bounded queue; the first error ends all tasks."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        make_room_for(threads)
        self.pool = ThreadPoolExecutor(threads)
        self.open: set[Future[None]] = set()

    def do(self, task: Callable[..., None], *arguments: Any) -> None:
        while len(self.open) >= self.threads:
            self._reap(FIRST_COMPLETED)
        self.open.add(self.pool.submit(task, *arguments))

    def _reap(self, until: str) -> None:
        done, self.open = wait(self.open, return_when=until)
        for future in done:
            future.result()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._reap("ALL_COMPLETED")
        finally:
            self.pool.shutdown(wait=True, cancel_futures=True)


class _Gather:
    """Second phase: merge the sorted runs into the arrays of a store."""

    def __init__(self, work: _Work, plan: dict[str, Any], threads: int) -> None:
        self.work, self.plan, self.threads = work, plan, threads
        runs = self.runs = [work.runs[k] for k in range(work.scattered or 0)]
        some = [run for run in runs if run.rows]
        if len({run.weights for run in some}) > 1:
            raise ValueError(
                "some rows have weights and some have none; give all rows weights, "
                "or none"
            )
        self.weights = some[0].weights
        self.n = sum(run.rows for run in runs)
        if self.n >= 2**32:
            raise ValueError(
                f"the inputs have {self.n} rows, but a store can have at most 2**32 - "
                "1; make several stores"
            )
        self.dense = plan["format"] == "dense" or (
            plan["format"] == "auto" and some[0].dense
        )
        self.shift = int(
            plan["zero_based"] == "auto"
            and any(run.lowest >= 0 for run in some)
            and all(run.lowest != 0 for run in some)
            and plan["inputs"]["kind"] == "svmlight"
        )
        self.d = self._columns(some)
        self.entries = self.n * self.d if self.dense else sum(r.entries for r in runs)
        self.value = np.dtype(plan["dtype"])
        wide = self.d > np.iinfo(np.int32).max
        self.dtypes = {"values": self.value.str, "y": self._label_type(some)}
        if not self.dense:
            self.dtypes |= {"indices": "<i8" if wide else "<i4", "indptr": "<i8"}
        if self.weights:
            self.dtypes["weight"] = "<f8"

    def _columns(self, runs: list[_Run]) -> int:
        found = max(run.columns for run in runs) - self.shift
        if any(run.dense and run.columns != found for run in runs):
            raise ValueError(
                "the inputs have different numbers of columns; give all of them the "
                "same columns"
            )
        asked = self.plan["n_features"]
        if asked is not None and asked < found:
            raise ValueError(
                f"n_features={asked}, but the inputs have {found} features; use "
                f"n_features={found} or more, or None"
            )
        return max(found if asked is None else asked, 1)

    def _zero_based(self) -> bool:
        if self.plan["zero_based"] == "auto":
            return self.shift == 0
        return bool(self.plan["zero_based"])

    def _label_type(self, runs: list[_Run]) -> str:
        if not all(run.whole for run in runs):
            return "<f8"
        low, high = min(run.least for run in runs), max(run.most for run in runs)
        for kind in ("|i1", "<i4"):
            limits = np.iinfo(kind)
            if limits.min <= low and high <= limits.max:
                return kind
        return "<i8"

    def run(self) -> None:
        """Write the shards that are not in the journal, and the description."""
        # Memory of an interval: its rows from the runs, and the sorted rows. Count the
        # most threads that are possible, so that shards do not depend on `n_jobs`.
        row = 40 + (8 * self.d if self.dense else 0)
        bytes_ = self.entries * (self.value.itemsize + 8) + self.n * row
        count = math.ceil(3 * _MOST_THREADS * bytes_ / self.plan["memory"])
        count = max(1, min(count, self.n))
        files = [_RunFile(self.work.run_file(k), r, self.value)
                 for k, r in enumerate(self.runs)]  # fmt: skip
        cuts = self._cuts(files, count)
        rows = np.diff(np.stack([cut for cut in cuts]), axis=1).sum(axis=0)
        entries = np.zeros(count, np.int64)
        for file, cut in zip(files, cuts, strict=True):
            entries += rows_entries(file, cut, self.dense, self.d)
        places = np.concatenate([[0], np.cumsum(rows)])
        firsts = np.concatenate([[0], np.cumsum(entries)])
        os.makedirs(self.work.store, exist_ok=True)
        self._make_files()
        with _Crew(self.threads) as crew:
            for b in range(count):
                if b not in self.work.shards:
                    crew.do(
                        self._write_shard, b, [cut[b : b + 2] for cut in cuts], files,
                        int(places[b]), int(firsts[b]),
                    )  # fmt: skip
        self._describe([self.work.shards[b] for b in range(count)])

    def _cuts(self, files: list[_RunFile], count: int) -> list[NDArray[np.int64]]:
        """Return, for every run, the rows at which intervals of keys begin and end."""
        top = (
            2**64 if self.plan["shuffle"] else int(max(f.last_key() for f in files)) + 1
        )
        inner = np.array([top * b // count for b in range(1, count)], dtype=np.uint64)
        return [
            np.concatenate(
                [[0], np.searchsorted(file.keys, inner), [file.run.rows]]
            ).astype(np.int64)
            for file in files
        ]

    def _make_files(self) -> None:
        """Create the files of the arrays at full size; unwritten parts use no space."""
        sizes = {"values": self.entries, "indices": self.entries, "indptr": self.n + 1}
        for name, kind in self.dtypes.items():
            size = sizes.get(name, self.n) * np.dtype(kind).itemsize
            with open(self._file(name), "ab") as file:
                file.truncate(size)

    def _file(self, name: str) -> str:
        return os.path.join(self.work.store, f"{name}.bin")

    def _write_shard(
        self, b: int, parts: list[NDArray[np.int64]], files: list[_RunFile],
        start: int, first: int,
    ) -> None:  # fmt: skip
        pieces = [
            (file, int(lo), int(hi))
            for file, (lo, hi) in zip(files, parts, strict=True)
            if hi > lo
        ]
        arrays: dict[str, NDArray[Any]] = {}
        n = entries = 0
        if pieces:
            keys = np.concatenate([f.keys[lo:hi] for f, lo, hi in pieces])
            order = np.argsort(keys, kind="stable")
            n = len(order)
            arrays["y"] = np.concatenate([f.y[lo:hi] for f, lo, hi in pieces])[order]
            if self.weights:
                weight = np.concatenate([f.weight[lo:hi] for f, lo, hi in pieces])
                arrays["weight"] = weight[order]
            X = self._rows(pieces)[order]
            if self.dense:
                arrays["values"], entries = X.reshape(-1), n * self.d
            else:
                arrays["values"], arrays["indices"] = X.data, X.indices
                arrays["indptr"] = X.indptr[1:].astype(np.int64) + first
                entries = len(X.data)
        found, sums = hashlib.sha256(), {}
        for name, at, _ in shard_parts(self.dtypes, start, first, n, entries):
            if name in arrays:
                array = np.ascontiguousarray(arrays[name], dtype=self.dtypes[name])
                plain = array.view(np.uint8)
                found.update(plain.data)
                sums[name] = partial_sums(at * array.itemsize, plain, SEGMENT)
                with open(self._file(name), "rb+") as file:
                    file.seek(at * array.itemsize)
                    file.write(plain.data)
                    file.flush()
                    os.fsync(file.fileno())
        shard = {
            "rows": n, "entries": entries, "sha256": found.hexdigest(), "sums": sums
        }  # fmt: skip
        self.work.note(shard=b, **{"is": shard})
        self.work.shards[b] = shard

    def _rows(self, pieces: list[tuple[_RunFile, int, int]]) -> Any:
        """Return the rows of an interval, run by run, in the format of the store."""
        parts = [file.rows(lo, hi, self.d, self.shift) for file, lo, hi in pieces]
        if self.dense:
            return np.concatenate([_widened(part, self.d) for part in parts])
        return sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]

    def _checksums(self, shards: list[dict[str, Any]]) -> bytes:
        """Return the checksums of all segments, array by array, as bytes."""
        parts: dict[str, list[tuple[int, int, list[int]]]] = {
            name: [] for name in in_order(self.dtypes)
        }
        start = first = 0
        for shard in shards:
            for name, at, count in shard_parts(
                self.dtypes, start, first, shard["rows"], shard["entries"]
            ):
                size = np.dtype(self.dtypes[name]).itemsize
                part = at * size, count * size, shard["sums"].get(name, [])
                parts[name].append(part)
            start, first = start + shard["rows"], first + shard["entries"]
        if not self.dense:  # no shard contains the pointer to the first row
            zero = partial_sums(0, np.zeros(8, np.uint8), SEGMENT)
            parts["indptr"].insert(0, (0, 8, zero))
        totals = {name: sum(part[1] for part in own) for name, own in parts.items()}
        sums = [joined(own, totals[name], SEGMENT) for name, own in parts.items()]
        return np.concatenate(sums).astype("<u4").tobytes()

    def _describe(self, shards: list[dict[str, Any]]) -> None:
        from .. import __version__

        checksums = self._checksums(shards)
        with write_atomically(os.path.join(self.work.store, CHECKSUMS)) as file:
            file.write(checksums)
        largest = self.d if self.dense else max(run.largest_row for run in self.runs)
        description = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "dualgap_version": __version__,
            "n_samples": self.n,
            "n_features": self.d,
            "entries": self.entries,
            "largest_row": largest,
            "dense": self.dense,
            "shuffled": self.plan["shuffle"],
            "seed": self.plan["seed"],
            "zero_based": self._zero_based(),
            "arrays": self.dtypes,
            "segment_bytes": SEGMENT,
            "checksums_sha256": hashlib.sha256(checksums).hexdigest(),
            "shards": [
                {key: shard[key] for key in ("rows", "entries", "sha256")}
                for shard in shards
            ],
        }
        description["sha256"] = digest(description)
        with write_atomically(os.path.join(self.work.store, DESCRIPTION), "w") as file:
            json.dump(description, file)


def _widened(part: Any, d: int) -> NDArray[Any]:
    """Return rows as an ndarray with d columns; missing columns are 0."""
    if not sparse.issparse(part):
        return np.pad(part, ((0, 0), (0, d - part.shape[1])))
    part.resize((part.shape[0], d))
    return part.toarray()


class _RunFile:
    """Sections of a run in its file."""

    def __init__(self, path: str, run: _Run, value: np.dtype[Any]) -> None:
        self.path, self.run, self.value = path, run, value
        self.at = 0
        self.keys = self._section(np.uint64, run.rows)
        self.y = self._section(np.float64, run.rows)
        self.weight = self._section(np.float64, run.rows if run.weights else 0)
        if run.dense:
            self.values = self._section(value, run.entries)
        else:
            self.indptr = self._section(np.int64, run.rows + 1)
            wide = np.int64 if run.wide else np.int32
            self.indices = self._section(wide, run.entries)
            self.values = self._section(value, run.entries)
        if os.path.getsize(path) != self.at:
            raise ValueError(f"{path} was changed; start over with resume=False")

    def _section(self, dtype: Any, count: int) -> NDArray[Any]:
        at, self.at = self.at, self.at + count * np.dtype(dtype).itemsize
        if count == 0:
            return np.empty(0, dtype)
        # Slices are read on use: a permanent map would count as memory of the process.
        return _Section(self.path, np.dtype(dtype), at, count)  # type: ignore[return-value]

    def last_key(self) -> int:
        return (
            int(self.keys[self.run.rows - 1 : self.run.rows][0]) if self.run.rows else 0
        )

    def rows(self, lo: int, hi: int, d: int, shift: int) -> Any:
        """Return rows [lo, hi), with column indices reduced by `shift`."""
        if self.run.dense:
            own = self.run.columns
            return self.values[lo * own : hi * own].reshape(hi - lo, own)
        indptr = self.indptr[lo : hi + 1]
        first, last = int(indptr[0]), int(indptr[-1])
        indices = self.indices[first:last]
        if shift:
            indices = indices - indices.dtype.type(shift)
        parts = self.values[first:last], indices, indptr - first
        return sparse.csr_matrix(parts, shape=(hi - lo, d))


class _Section:
    """Array in a file, whose slices are read and not mapped."""

    def __init__(self, path: str, dtype: np.dtype[Any], at: int, count: int) -> None:
        self.path, self.dtype, self.at, self.count = path, dtype, at, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, part: slice) -> NDArray[Any]:
        start, stop, _ = part.indices(self.count)
        return np.fromfile(
            self.path, self.dtype, max(stop - start, 0),
            offset=self.at + start * self.dtype.itemsize,
        )  # fmt: skip

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype)


def rows_entries(
    file: _RunFile, cut: NDArray[np.int64], dense: bool, d: int
) -> NDArray[np.int64]:
    """Return the number of entries of a run in every interval."""
    if dense:
        return np.diff(cut) * d
    if file.run.dense:
        raise AssertionError("a sparse store has a dense run")
    return np.diff(file.indptr[:][cut])
