"""Second phase of a conversion: the arrays of a store, gathered from sorted runs."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .. import core
from ..names import own_version
from .atomic import write_atomically
from .chunks import Source
from .description import (
    DESCRIPTION,
    FORMAT,
    FORMAT_VERSION,
    PIECE,
    digest,
    header,
    shape_of,
)
from .types import Array, Matrix

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True)
class StoreWritingSettings:
    """Tuning constants of the conversion to row stores."""

    #: Most threads of a conversion.
    most_threads: int = 4
    #: A chunk of text has this part of the memory. Each thread holds a chunk as text,
    #: as arrays, sorted, and as it is written.
    chunks: int = 16


def in_order(
    pool: ThreadPoolExecutor, ahead: int, task: Callable[[S], T], items: Iterable[S]
) -> Iterator[T]:
    """Yield the results of a task in the order of the items, some of them ahead."""
    waiting: deque[Future[T]] = deque()
    try:
        for item in items:
            if len(waiting) == ahead:
                yield waiting.popleft().result()
            waiting.append(pool.submit(task, item))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@dataclass(frozen=True)
class Run:
    """Rows of a chunk, sorted by their keys, in a temporary file."""

    path: str
    #: Data type, place in bytes, and length of every array.
    sections: dict[str, tuple[np.dtype[Any], int, int]]
    lowest: int  # column index, -1 without entries
    columns: int  # largest index + 1, or the width of the chunk
    largest_row: int
    whole: bool  # labels are whole numbers
    least: float
    most: float
    #: Labels that are words, whose numbers the rows have.
    words: list[str]

    @classmethod
    def written(cls, path: str, arrays: dict[str, Array], **facts: Any) -> Run:
        """Write the arrays of a run."""
        sections = {}
        with open(path, "wb") as file:
            for name, array in arrays.items():
                sections[name] = array.dtype, file.tell(), array.size
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return cls(path, sections, **facts)

    @property
    def rows(self) -> int:
        return self.sections["keys"][2]

    @property
    def dense(self) -> bool:
        return "indptr" not in self.sections

    def part(self, name: str, start: int, stop: int) -> Array:
        """Read entries [start, stop) of an array; a map would count as memory."""
        dtype, at, _ = self.sections[name]
        if start == stop:
            return np.empty(0, dtype)
        at += start * dtype.itemsize
        return np.fromfile(self.path, dtype, stop - start, offset=at)

    def matrix(self, start: int, stop: int, d: int, shift: int) -> Matrix:
        """Read rows [start, stop), with column indices reduced by `shift`."""
        if self.dense:
            own = self.columns
            values = self.part("values", start * own, stop * own)
            return values.reshape(stop - start, own)
        indptr = self.part("indptr", start, stop + 1)
        first, last = int(indptr[0]), int(indptr[-1])
        indices = self.part("indices", first, last)
        if shift:
            indices -= indices.dtype.type(shift)
        parts = self.part("values", first, last), indices, indptr - first
        return sparse.csr_matrix(parts, shape=(stop - start, d))


class _Writer:
    """File of an array that is written from start to end, with its checksums."""

    def __init__(self, file: BinaryIO, dtype: str, shape: tuple[int, ...]) -> None:
        self.file, self.dtype, self.size = file, dtype, 0
        self.sums: list[int] = []
        file.write(header(dtype, shape))

    def write(self, array: Array) -> None:
        data = np.ascontiguousarray(array, self.dtype).reshape(-1).view(np.uint8)
        self.file.write(data.data)
        head = min(-self.size % PIECE, len(data))  # it belongs to the last piece
        if head:
            self.sums[-1] = core.crc32c(data[:head], self.sums[-1])
        self.sums += core.crc32c_segments(data[head:], PIECE).tolist()
        self.size += len(data)

    def end(self) -> str:
        """Flush the file to the disk, and return its checksums in hexadecimal."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return np.array(self.sums, "<u4").tobytes().hex()


def _append(writers: dict[str, _Writer], arrays: dict[str, Array], entries: int) -> int:
    """Write the arrays of some rows behind `entries`; return the entries with them."""
    if "indptr" in arrays:
        arrays["indptr"] += entries
        entries += len(arrays["values"])
    for name, array in arrays.items():
        writers[name].write(array)
    return entries


class Gather:
    """The store that sorted runs make."""

    settings: ClassVar[StoreWritingSettings] = StoreWritingSettings()

    def __init__(self, folder: str, source: Source, runs: list[Run]) -> None:
        self.folder, self.runs = os.path.join(folder, "store"), runs
        self.features, self.plan = source.features, source.plan
        plan = source.plan
        some = [run for run in runs if run.rows]
        if len({"weight" in run.sections for run in some}) > 1:
            raise ValueError(
                "some rows have weights and some have none; give all rows weights, "
                "or none"
            )
        self.classes = sorted({word for run in runs for word in run.words})
        self.n = sum(run.rows for run in runs)
        if self.n >= 2**32:
            raise ValueError(
                f"the inputs have {self.n} rows, but a store can have at most 2**32 - "
                "1; make several stores"
            )
        self.dense = plan.format == "dense" or (plan.format == "auto" and some[0].dense)
        self.shift = int(
            plan.zero_based == "auto"
            and any(run.lowest >= 0 for run in some)
            and all(run.lowest != 0 for run in some)
            and source.kind == "svmlight"
        )
        self.d = self._columns(some)
        self.entries = (
            self.n * self.d
            if self.dense
            else sum(run.sections["values"][2] for run in runs)
        )
        wide = self.d > np.iinfo(np.int32).max
        labels = _smallest(0, len(self.classes)) if self.classes else _label_type(some)
        self.dtypes = {"values": plan.dtype.str, "y": labels}
        if not self.dense:
            self.dtypes |= {"indices": "<i8" if wide else "<i4", "indptr": "<i8"}
        if "weight" in some[0].sections:
            self.dtypes["weight"] = "<f8"

    def _columns(self, runs: list[Run]) -> int:
        found = max(run.columns for run in runs) - self.shift
        if any(run.dense and run.columns != found for run in runs):
            raise ValueError(
                "the inputs have different numbers of columns; give all of them the "
                "same columns"
            )
        asked = self.plan.n_features
        if asked is not None and asked < found:
            raise ValueError(
                f"n_features={asked}, but the inputs have {found} features; use "
                f"n_features={found} or more, or None"
            )
        return max(found if asked is None else asked, 1)

    def run(self, pool: ThreadPoolExecutor, threads: int) -> None:
        """Write the arrays and the description."""
        # Memory of an interval: its rows from the runs, and the sorted rows.
        row = 40 + (8 * self.d if self.dense else 0)
        size = self.entries * (self.plan.dtype.itemsize + 8) + self.n * row
        count = math.ceil(3 * self.settings.most_threads * size / self.plan.memory)
        cuts = self._cuts(max(1, min(count, self.n)))
        description = self._description()
        os.mkdir(self.folder)
        with contextlib.ExitStack() as stack:
            writers = {}
            for name, dtype in self.dtypes.items():
                path = os.path.join(self.folder, f"{name}.npy")
                file = stack.enter_context(open(path, "xb"))
                writers[name] = _Writer(file, dtype, shape_of(description, name))
            if not self.dense:
                writers["indptr"].write(np.zeros(1, np.int64))
            entries = 0
            for arrays in in_order(
                pool, threads, self._interval, np.stack(cuts, axis=1)
            ):
                entries = _append(writers, arrays, entries)
                del arrays
            sums = {name: writer.end() for name, writer in writers.items()}
        description |= {"checksums": sums}
        description["sha256"] = digest(description)
        with write_atomically(os.path.join(self.folder, DESCRIPTION), "w") as text:
            json.dump(description, text)

    def _cuts(self, count: int) -> list[NDArray[np.int64]]:
        """Return, for every run, the rows between which the intervals of keys lie.

        Shape (count, 2).
        """
        keys = [run.part("keys", 0, run.rows) for run in self.runs]
        top = 2**64
        if not self.plan.shuffle:
            top = 1 + max(int(some[-1]) for some in keys if len(some))
        inner = np.array([top * b // count for b in range(1, count)], dtype=np.uint64)
        cuts = [
            np.concatenate([[0], np.searchsorted(some, inner), [len(some)]])
            for some in keys
        ]
        return [np.stack([cut[:-1], cut[1:]], 1).astype(np.int64) for cut in cuts]

    def _interval(self, cuts: NDArray[np.int64]) -> dict[str, Array]:
        """Return the arrays of the rows of an interval, given its rows of every run."""
        parts = [
            (run, a, b)
            for run, (a, b) in zip(self.runs, cuts.tolist(), strict=True)
            if b > a
        ]
        if not parts:
            return {}
        order = np.argsort(self._joined("keys", parts), kind="stable")
        arrays: dict[str, Array] = {
            name: self._joined(name, parts)[order]
            for name in ("y", "weight")
            if name in self.dtypes
        }
        rows = [run.matrix(a, b, self.d, self.shift) for run, a, b in parts]
        if self.dense:
            X = np.concatenate([_widened(part, self.d) for part in rows])
            return arrays | {"values": X[order]}
        X = sparse.vstack(rows, format="csr") if len(rows) > 1 else rows[0]
        del rows
        X = X[order]
        arrays |= {"values": X.data, "indices": X.indices}
        return arrays | {"indptr": X.indptr[1:].astype(np.int64)}

    def _joined(self, name: str, parts: list[tuple[Run, int, int]]) -> Array:
        if name != "y" or not self.classes:
            return np.concatenate([run.part(name, a, b) for run, a, b in parts])
        places = [np.searchsorted(self.classes, run.words) for run, _, _ in parts]
        return np.concatenate(
            [
                own[run.part("y", a, b).astype(np.intp)]
                for own, (run, a, b) in zip(places, parts, strict=True)
            ]
        )

    def _description(self) -> dict[str, Any]:
        """Return the description without checksums."""
        plan = self.plan
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "dualgap_version": own_version(),
            "n_samples": self.n,
            "n_features": self.d,
            "entries": self.entries,
            "largest_row": self.d
            if self.dense
            else max(run.largest_row for run in self.runs),
            "dense": self.dense,
            "shuffled": plan.shuffle,
            "seed": plan.seed,
            "zero_based": self.shift == 0
            if plan.zero_based == "auto"
            else bool(plan.zero_based),
            "columns": self.features.to_json()
            if self.features is not None and self.features.width == self.d
            else "",
            "classes": self.classes,
            "arrays": self.dtypes,
        }


def _label_type(runs: list[Run]) -> str:
    """Return the smallest data type that holds all labels."""
    if not all(run.whole for run in runs):
        return "<f8"
    return _smallest(min(run.least for run in runs), max(run.most for run in runs))


def _smallest(low: float, high: float) -> str:
    """Return the smallest data type that holds whole numbers."""
    for kind in ("|i1", "<i4"):
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return kind
    return "<i8"


def _widened(part: Matrix, d: int) -> NDArray[np.generic]:
    """Return rows as an ndarray with d columns; missing columns are 0."""
    if not sparse.issparse(part):
        return np.pad(part, ((0, 0), (0, d - part.shape[1])))
    part.resize((part.shape[0], d))
    return part.toarray()
