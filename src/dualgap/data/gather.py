"""Shards of a row store, gathered from runs of rows in temporary files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, ClassVar, ParamSpec

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from ..memory import make_room_for
from ..names import own_version
from .atomic import write_atomically
from .description import (
    CHECKSUMS,
    DESCRIPTION,
    FORMAT,
    FORMAT_VERSION,
    digest,
    in_order,
    shard_parts,
)
from .segments import joined, partial_sums
from .types import Matrix
from .work import Run, StorePlan, Work, WrittenShard

P = ParamSpec("P")


@dataclass(frozen=True)
class StoreWritingSettings:
    """Tuning constants of the conversion to row stores."""

    #: Most threads of a conversion.
    most_threads: int = 4
    #: Bytes of a segment, which has one checksum. Checksums take 1/4096 of the data.
    #: Longer segments would cost more at the ends of a page, where whole segments must
    #: be read.
    segment_bytes: int = 2**14
    #: A chunk of text has this part of the memory. Each thread holds a chunk as text,
    #: as arrays, sorted, and as it is written.
    chunks: int = 16


class Crew(contextlib.AbstractContextManager["Crew"]):
    """Pool of threads with a bounded queue; the first error ends all tasks."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        make_room_for(threads)
        self.pool = ThreadPoolExecutor(threads)
        self.open: set[Future[None]] = set()

    def do(self, task: Callable[P, None], *args: P.args, **named: P.kwargs) -> None:
        while len(self.open) >= self.threads:
            self._reap(FIRST_COMPLETED)
        self.open.add(self.pool.submit(task, *args, **named))

    def _reap(self, until: str) -> None:
        done, self.open = wait(self.open, return_when=until)
        for future in done:
            future.result()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self._reap("ALL_COMPLETED")
        finally:
            self.pool.shutdown(wait=True, cancel_futures=True)


class Gather:
    """Second phase: merge the sorted runs into the arrays of a store."""

    settings: ClassVar[StoreWritingSettings] = StoreWritingSettings()

    def __init__(self, work: Work, plan: StorePlan, threads: int) -> None:
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

    def _columns(self, runs: list[Run]) -> int:
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

    def _label_type(self, runs: list[Run]) -> str:
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
        count = math.ceil(3 * self.settings.most_threads * bytes_ / self.plan["memory"])
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
        with Crew(self.threads) as crew:
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
        arrays: dict[str, NDArray[np.generic]] = {}
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
        found, segment = hashlib.sha256(), self.settings.segment_bytes
        sums: dict[str, list[int]] = {}
        for name, at, _ in shard_parts(self.dtypes, start, first, n, entries):
            if name in arrays:
                array = np.ascontiguousarray(arrays[name], dtype=self.dtypes[name])
                plain = array.view(np.uint8)
                found.update(plain.data)
                sums[name] = partial_sums(at * array.itemsize, plain, segment)
                with open(self._file(name), "rb+") as file:
                    file.seek(at * array.itemsize)
                    file.write(plain.data)
                    file.flush()
                    os.fsync(file.fileno())
        shard: WrittenShard = {
            "rows": n, "entries": entries, "sha256": found.hexdigest(), "sums": sums
        }  # fmt: skip
        self.work.note(shard=b, **{"is": shard})
        self.work.shards[b] = shard

    def _rows(self, pieces: list[tuple[_RunFile, int, int]]) -> Matrix:
        """Return the rows of an interval, run by run, in the format of the store."""
        parts = [file.rows(lo, hi, self.d, self.shift) for file, lo, hi in pieces]
        if self.dense:
            return np.concatenate([_widened(part, self.d) for part in parts])
        return sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]

    def _checksums(self, shards: list[WrittenShard]) -> bytes:
        """Return the checksums of all segments, array by array, as bytes."""
        segment = self.settings.segment_bytes
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
            zero = partial_sums(0, np.zeros(8, np.uint8), segment)
            parts["indptr"].insert(0, (0, 8, zero))
        totals = {name: sum(part[1] for part in own) for name, own in parts.items()}
        sums = [joined(own, totals[name], segment) for name, own in parts.items()]
        return np.concatenate(sums).astype("<u4").tobytes()

    def _describe(self, shards: list[WrittenShard]) -> None:
        checksums = self._checksums(shards)
        with write_atomically(os.path.join(self.work.store, CHECKSUMS)) as file:
            file.write(checksums)
        largest = self.d if self.dense else max(run.largest_row for run in self.runs)
        description: dict[str, object] = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "dualgap_version": own_version(),
            "n_samples": self.n,
            "n_features": self.d,
            "entries": self.entries,
            "largest_row": largest,
            "dense": self.dense,
            "shuffled": self.plan["shuffle"],
            "seed": self.plan["seed"],
            "zero_based": self._zero_based(),
            "arrays": self.dtypes,
            "segment_bytes": self.settings.segment_bytes,
            "checksums_sha256": hashlib.sha256(checksums).hexdigest(),
            "shards": [
                {key: shard[key] for key in ("rows", "entries", "sha256")}
                for shard in shards
            ],
        }
        description["sha256"] = digest(description)
        with write_atomically(os.path.join(self.work.store, DESCRIPTION), "w") as file:
            json.dump(description, file)


def _widened(part: Matrix, d: int) -> NDArray[np.generic]:
    """Return rows as an ndarray with d columns; missing columns are 0."""
    if not sparse.issparse(part):
        return np.pad(part, ((0, 0), (0, d - part.shape[1])))
    part.resize((part.shape[0], d))
    return part.toarray()


class _RunFile:
    """Sections of a run in its file."""

    def __init__(self, path: str, run: Run, value: np.dtype[np.generic]) -> None:
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

    def _section(self, dtype: DTypeLike, count: int) -> NDArray[Any]:
        at, self.at = self.at, self.at + count * np.dtype(dtype).itemsize
        if count == 0:
            return np.empty(0, dtype)
        # Slices are read on use: a permanent map would count as memory of the process.
        return _Section(self.path, np.dtype(dtype), at, count)  # type: ignore[return-value]

    def last_key(self) -> int:
        return (
            int(self.keys[self.run.rows - 1 : self.run.rows][0]) if self.run.rows else 0
        )

    def rows(self, lo: int, hi: int, d: int, shift: int) -> Matrix:
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

    def __init__(
        self, path: str, dtype: np.dtype[np.generic], at: int, count: int
    ) -> None:
        self.path, self.dtype, self.at, self.count = path, dtype, at, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, part: slice) -> NDArray[np.generic]:
        start, stop, _ = part.indices(self.count)
        return np.fromfile(
            self.path, self.dtype, max(stop - start, 0),
            offset=self.at + start * self.dtype.itemsize,
        )  # fmt: skip

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[np.generic]:
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
