"""Row stores as pieces: every worker opens its own by path, and rows never travel.

What the client sends is a path, a range of rows and the checksum that the store must
have. A worker maps the arrays into its memory; a piece that is made again after a loss
opens the same store again.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..io.store import Batch, RowStore
from ..losses import Vector

__all__ = [
    "StorePart", "View", "holds_stores", "in_batches", "is_store", "locate", "look",
    "part_of", "parts_of",
]  # fmt: skip

#: Bytes of the rows that scoring reads at a time.
_BATCH = 2**26


@dataclass(frozen=True)
class StorePart:
    """Consecutive rows of a store.

    Attributes
    ----------
    path : str
        As every worker that has the store sees it.
    start : int
    stop : int or None
        Behind its last row; None is the end of the store.
    fingerprint : str
        Checksum of the store, once it is known.
    """

    path: str
    start: int = 0
    stop: int | None = None
    fingerprint: str = ""

    def store(self) -> RowStore:
        """Open it on this machine.

        Raises
        ------
        OSError
            If it is not there.
        ValueError
            If it is damaged, or another one than it was.
        """
        store = RowStore.open(self.path)
        if self.fingerprint not in ("", store.fingerprint):
            raise ValueError(
                f"{self.path} is another store than it was: it was made again, or "
                "machines have different ones under this path"
            )
        return store

    def open(self) -> tuple[Any, NDArray[Any], Vector | None]:
        """Its rows, mapped into memory, and its labels and weights."""
        store = self.store()
        rows = self.start, self.stop
        weight = store.column("weight", *rows) if store.has_weights else None
        return store.matrix(*rows), store.column("y", *rows), weight

    def batches(self) -> Iterator[Batch]:
        """Its rows, labels and weights, some at a time."""
        store = self.store()
        stop = len(store) if self.stop is None else self.stop
        row = max(store.stored * store.entry_bytes // len(store), 1)
        step = max(_BATCH // row, 1)
        for begin in range(self.start, stop, step):
            yield store.rows(begin, min(begin + step, stop))


def is_store(X: Any) -> bool:
    """Whether X, as an entry of a list, is a store or the path of one."""
    return isinstance(X, (RowStore, StorePart, str, os.PathLike))


def holds_stores(X: Any) -> bool:
    """Whether X is a store, or a list of stores or their paths and of nothing else."""
    if isinstance(X, (list, tuple)):
        return bool(X) and all(is_store(entry) for entry in X)
    return isinstance(X, RowStore)


def part_of(X: Any) -> StorePart:
    """The whole of a store that is given, or named by its path."""
    if isinstance(X, StorePart):
        return X
    if isinstance(X, RowStore):
        return StorePart(os.path.abspath(X.path), 0, len(X), X.fingerprint)
    return StorePart(os.path.abspath(os.fsdecode(X)))


def parts_of(X: RowStore, count: int) -> list[StorePart]:
    """A store in so many parts of about the same number of rows."""
    cuts = np.linspace(0, len(X), min(count, len(X)) + 1).astype(int).tolist()
    whole = part_of(X)
    return [replace(whole, start=a, stop=b) for a, b in itertools.pairwise(cuts)]


def in_batches(X: Any) -> list[StorePart]:
    """Parts to be read by one task each: of a store known here, some of moderate size.

    Parameters
    ----------
    X : RowStore, or sequence of RowStore, str or path-like
    """
    stores = [X] if isinstance(X, RowStore) else X
    parts: list[StorePart] = []
    for store in stores:
        if isinstance(store, RowStore):
            size = store.stored * store.entry_bytes
            parts += parts_of(store, -(-size // _BATCH) or 1)
        else:
            parts.append(part_of(store))
    return parts


# Who sees which store


@dataclass(frozen=True)
class View:
    """What a worker finds under a path: a store of that checksum, or what is wrong."""

    fingerprint: str = ""
    fault: str = ""


def look(paths: Iterable[str]) -> dict[str, View]:
    """What this worker finds under some paths."""
    views = {}
    for path in paths:
        try:
            views[path] = View(RowStore.open(path).fingerprint)
        except (OSError, ValueError) as error:
            views[path] = View(fault=str(error))
    return views


def locate(
    parts: Sequence[StorePart], views: Mapping[str, Mapping[str, View]]
) -> list[tuple[StorePart, set[str]]]:
    """Every part with its checksum, and the workers that see it.

    Parameters
    ----------
    parts : sequence of StorePart
    views : mapping of str to mapping of str to View
        By the address of a worker and the path.

    Raises
    ------
    ValueError
        If no worker sees a store, or some see another one than others.
    """
    found = []
    for part in parts:
        prints = {a: own[part.path].fingerprint for a, own in views.items()}
        there = {address for address, print_ in prints.items() if print_}
        if not there:
            address, own = next(iter(views.items()))
            raise ValueError(
                f"no worker can open the store {part.path}; put it where workers see "
                f"it under this path (worker {address}: {own[part.path].fault})"
            )
        wanted = part.fingerprint or prints[min(there)]
        others = sorted(address for address in there if prints[address] != wanted)
        if others:
            raise ValueError(
                f"{part.path} is another store on worker {others[0]} than "
                f"{'here' if part.fingerprint else 'on worker ' + min(there)}; give "
                "stores that are the same wherever they are seen"
            )
        found.append((replace(part, fingerprint=wanted), there))
    return found
