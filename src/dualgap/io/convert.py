"""Making row stores: an external shuffle in bounded memory, resumable.

    scatter   Inputs are cut into chunks of `memory`/16. Every row gets a random key of
              64 bits; each chunk is sorted by key and written as a run.
    gather    The keys are cut into intervals whose rows fit in memory. The rows of an
              interval are read from all runs, sorted by key, and written in place.

The order of the keys is that of the store: every permutation is equally likely. A key
depends on the seed and on the number of the row (of the line in text), so the store
does not depend on `n_jobs`.

All is written in a hidden folder beside the target, which is renamed when it is
complete. A line in a journal follows each run and each interval once they are on the
disk; what was killed goes on from there. It needs twice the disk space of the store.
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
from .lock import locked
from .segments import SEGMENT, joined, partial_sums
from .store import (
    BUFFER,
    CHECKSUMS,
    DESCRIPTION,
    FORMAT,
    FORMAT_VERSION,
    RowStore,
    digest,
    in_order,
    shard_parts,
    whole_number,
)
from .svmlight import _check_n_features, _checked_dtype, _thread_count

__all__ = ["convert"]

logger = logging.getLogger("dualgap")

MEMORY = 2**30
#: A chunk of text of this part of the memory is on its way through at most 4 threads,
#: as text, as arrays, sorted, and on its way to the disk.
_SHARE, _MOST_THREADS = 16, 4
_LARGEST_WHOLE = 2**53  # beyond, float64 skips whole numbers


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
    """Make a row store, its rows in random order, of data larger than memory.

    Parameters
    ----------
    inputs : str, path-like, list of these, or iterable of tuples
        Files, whose rows follow each other: svmlight text, plain or ``.gz``, ``.bz2``,
        ``.xz``, ``.zst``; ``.parquet``, and ``.arrow`` or ``.feather`` (these need the
        package pyarrow); ``.npy``; ``.npz`` of ``scipy.sparse.save_npz``, or with an
        array ``X``. Or batches ``(X, y)`` or ``(X, y, sample_weight)`` of any size, or
        functions that return one, of `memory`/16 at most: those that a conversion
        which was killed has written are not called again.
    path : str or path-like
        The folder to make.
    format : {"auto", "csr", "dense"}, default="auto"
        "auto": as the first rows are. Dense rows lose their zeros in "csr".
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Of the values. float32 takes two thirds of the space, and rounds.
    shuffle : bool, default=True
        False keeps the order of the rows, for data that is in random order already:
        the solvers take a block for a random sample.
    seed : int, default=0
        Of the order. The same inputs, seed and `memory` make the same store.
    memory : int, default=2**30
        Bytes to work in, 2**20 or more.
    n_jobs : int, optional
        Threads, of which at most 4 are used; None takes all processors.
    overwrite : bool, default=False
        Replace the store that is there.
    resume : bool, default=True
        Go on with a conversion to the same path that was killed; batches are to come
        as they came then. False begins anew.
    zero_based : bool or "auto", default="auto"
        Of svmlight text: whether indices start at 0 or at 1. "auto": at 0 if any file
        has an index 0.
    n_features : int, optional
        Columns. None: as many as the rows have.
    label, weight : str
        Columns of Parquet and Arrow files with the labels and, if given, the weights;
        all others are features.
    y, sample_weight : array-like or path of a .npy file, optional
        Labels and weights of ``.npy`` and ``.npz`` files that do not hold them.
    buffer : int, default=2**28
        As in :meth:`RowStore.open`.

    Returns
    -------
    RowStore
        The new store, open.

    Raises
    ------
    ValueError
        If an input is malformed (the message names file and line), a value is NaN or
        infinite, labels are no numbers, an argument is out of range, a conversion that
        was killed had other inputs or arguments, or another conversion writes to this
        path.
    FileExistsError
        If the path exists and `overwrite` is False, or it is no store.
    ImportError
        If a format needs a package that is absent.

    Examples
    --------
    >>> from dualgap.io import convert
    >>> store = convert("big.svm.xz", "big.store", dtype="float32")  # doctest: +SKIP
    """
    target = os.path.abspath(os.fsdecode(path))
    _check_n_features(n_features)
    if format not in ("auto", "csr", "dense"):
        raise ValueError(f"format={format!r}: use 'auto', 'csr' or 'dense'")
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
            f"{target} exists and is no row store; choose another name"
        )
    if not overwrite:
        raise FileExistsError(
            f"{target} exists; remove it, choose another name, or pass overwrite=True "
            "(--overwrite)"
        )


# ------------------------------------------------------------------ the hidden folder


@dataclass
class _Run:
    """A sorted chunk on the disk."""

    rows: int
    entries: int
    dense: bool
    wide: bool  # int64 indices
    weights: bool
    lowest: int  # column index, -1 without entries
    columns: int  # largest index + 1, or what the chunk says
    largest_row: int
    whole: bool  # labels are whole numbers
    least: float
    most: float


@dataclass
class _Work:
    """The folder in which a conversion works, and its journal."""

    folder: str
    runs: dict[int, _Run] = field(default_factory=dict)
    shards: dict[int, dict[str, Any]] = field(default_factory=dict)
    scattered: int | None = None  # number of runs, once it is known
    complete: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    @contextlib.contextmanager
    def begin(cls, target: str, plan: dict[str, Any], resume: bool) -> Iterator[_Work]:
        """Open the folder, with what an earlier conversion left in it."""
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
        """Convert. Keep nothing of refused inputs: once mended, they are others."""
        try:
            conversion.run(source)
        except (ValueError, TypeError):
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    @classmethod
    def was_published(cls, target: str, plan: dict[str, Any]) -> bool:
        """Whether such a conversion was killed once the store had its name.

        What it left beside the store is removed.
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
        """Remove all but what says whose folder this is: it may be killed at that."""
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
                f"a conversion to {target} was begun and not ended with other "
                f"{', '.join(changed)}: go on as it was begun, or begin anew with "
                "resume=False (--fresh)"
            )
        if os.path.isfile(os.path.join(self.store, DESCRIPTION)):
            self.complete = self.store
        entries = list(self._journal())
        if any("shard" in entry for entry in entries) and not os.path.isdir(self.store):
            # It was renamed, and killed before all else was removed.
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
                "convert: goes on after %d runs and %d shards of an earlier conversion",
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
                    break  # cut short when it was killed
                whole += len(line)
                yield entry
            file.truncate(whole)

    def note(self, **entry: Any) -> None:
        """Add a line to the journal: what it is about is on the disk."""
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
        """Let the store take its name."""
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
    """One conversion, from the inputs to a store in the hidden folder."""

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
        """Write a run per chunk; returns how many there are."""
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
            raise ValueError(f"{source.name} holds no rows")
        return count

    def _write_run(self, k: int, chunk: sources.Chunk) -> None:
        X, y, weight = chunk.load()
        n = len(y)
        if self.plan["shuffle"]:
            # The r-th number of one sequence, so that chunks do not matter.
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
        # A run that was cut short is written anew: the journal does not know it.
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
    """Check a chunk and say what is in it."""
    n, dense = X.shape[0], not sparse.issparse(X)
    indices = np.empty(0, np.int32) if dense else X.indices
    rows = (
        core.dense_rows(X, 0.0)
        if dense
        else core.csr_rows(X.data, indices, X.indptr, X.shape[1], 0.0)
    )
    fault, where, unique = rows.inspect(np.empty(n))
    if fault is not None or not unique:
        raise ValueError(
            f"{chunk.place(where)}: {fault or 'a row names a column twice'}"
        )
    for name, array in (("label", y), ("weight", weight)):
        if array is not None and not np.isfinite(array).all():
            bad = int(np.argmin(np.isfinite(array)))
            raise ValueError(f"{chunk.place(bad)}: {name} is {array[bad]}")
    if weight is not None and (weight < 0.0).any():
        bad = int(np.argmax(weight < 0.0))
        raise ValueError(f"{chunk.place(bad)}: weight is {weight[bad]}, below 0")
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
    """Threads with a bounded queue; the first error ends all."""

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
    """From sorted runs to the arrays of a store."""

    def __init__(self, work: _Work, plan: dict[str, Any], threads: int) -> None:
        self.work, self.plan, self.threads = work, plan, threads
        runs = self.runs = [work.runs[k] for k in range(work.scattered or 0)]
        some = [run for run in runs if run.rows]
        if len({run.weights for run in some}) > 1:
            raise ValueError("some rows have weights and some have none")
        self.weights = some[0].weights
        self.n = sum(run.rows for run in runs)
        if self.n >= 2**32:
            raise ValueError(f"{self.n} rows; at most 2**32 - 1 are supported")
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
                "rows of different lengths: give all inputs the same columns"
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
        """Write all shards that the journal does not know, and the description."""
        # Of an interval: its rows from the runs, and those rows sorted; in each of the
        # threads that there could be, for the shards must not depend on how many are.
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
        """Of every run, where the intervals of keys begin and end."""
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
        """The arrays at their full size; gaps take no space."""
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
        """The rows of an interval one run after the other, in the form of the store."""
        parts = [file.rows(lo, hi, self.d, self.shift) for file, lo, hi in pieces]
        if self.dense:
            return np.concatenate([_widened(part, self.d) for part in parts])
        return sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]

    def _checksums(self, shards: list[dict[str, Any]]) -> bytes:
        """Checksums of all segments, array by array."""
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
        if not self.dense:  # the pointer to the first row, which is in no shard
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
    """Rows as an ndarray of d columns; those that they do not have are 0."""
    if not sparse.issparse(part):
        return np.pad(part, ((0, 0), (0, d - part.shape[1])))
    part.resize((part.shape[0], d))
    return part.toarray()


class _RunFile:
    """The sections of a run, memory-mapped."""

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
            raise ValueError(f"{path} was changed; begin anew with resume=False")

    def _section(self, dtype: Any, count: int) -> NDArray[Any]:
        at, self.at = self.at, self.at + count * np.dtype(dtype).itemsize
        if count == 0:
            return np.empty(0, dtype)
        # Mapped with each use: a map that stays would count as memory of the process.
        return _Section(self.path, np.dtype(dtype), at, count)  # type: ignore[return-value]

    def last_key(self) -> int:
        return (
            int(self.keys[self.run.rows - 1 : self.run.rows][0]) if self.run.rows else 0
        )

    def rows(self, lo: int, hi: int, d: int, shift: int) -> Any:
        """Rows [lo, hi) with their columns shifted down."""
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
    """An array in a file; slices are read, not mapped."""

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
    """Entries that a run gives to every interval."""
    if dense:
        return np.diff(cut) * d
    if file.run.dense:
        raise AssertionError("dense runs of a sparse store are made sparse at once")
    return np.diff(file.indptr[:][cut])
