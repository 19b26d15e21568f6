"""Row stores as pieces: workers open stores by path, so no rows are sent.

The client sends a path, a range of rows, and the expected checksum of the store. A
worker maps the arrays into its memory. A piece that is built again after a loss opens
the same store again.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..data.store import RowBatch, RowStore
from ..data.types import Matrix, MatrixLike
from ..losses import Vector

if TYPE_CHECKING:
    from distributed import Client

    from ..estimators.linear_svc import LinearSVC

#: Bytes of rows that scoring reads at a time.
_BATCH = 2**26


@dataclass(frozen=True)
class StorePart:
    """Consecutive rows of a store."""

    path: str  # on every worker that has it
    start: int = 0
    stop: int | None = None  # None for the end of the store
    fingerprint: str = ""  # its checksum; "" if it is not known yet

    @property
    def rows(self) -> float:
        """Number of rows; NaN if it is not known."""
        return np.nan if self.stop is None else self.stop - self.start

    def store(self) -> RowStore:
        """Open the store on this machine, if it is the same as before."""
        store = RowStore.open(self.path)
        if self.fingerprint not in ("", store.fingerprint):
            raise ValueError(
                f"{self.path} is another store than it was: its checksum has changed. "
                "Keep a store unchanged during a fit, and the same on all machines"
            )
        return store

    def open(self) -> tuple[Matrix, NDArray[np.generic], Vector | None]:
        """Return the rows, mapped into memory, the labels, and the weights if any."""
        store = self.store()
        rows = self.start, self.stop
        weight = store.column("weight", *rows) if store.has_weights else None
        return store.matrix(*rows), store.column("y", *rows), weight

    def batches(self) -> Iterator[RowBatch]:
        """Yield rows, labels and weights in batches of moderate size."""
        store = self.store()
        stop = len(store) if self.stop is None else self.stop
        row = max(store.stored * store.entry_bytes // len(store), 1)
        step = max(_BATCH // row, 1)
        for begin in range(self.start, stop, step):
            yield store.rows(begin, min(begin + step, stop))


def is_store(X: MatrixLike) -> bool:
    """Return whether X, as an entry of a list, is a store or the path of a store."""
    return isinstance(X, (RowStore, StorePart, str, os.PathLike))


def holds_stores(X: MatrixLike) -> bool:
    """Return whether X is a store, or a nonempty list of stores or their paths."""
    if isinstance(X, (list, tuple)):
        return bool(X) and all(is_store(entry) for entry in X)
    return isinstance(X, RowStore)


def part_of(X: MatrixLike) -> StorePart:
    """Return a part with all rows of a store or of the store at a path."""
    if isinstance(X, StorePart):
        return X
    if isinstance(X, RowStore):
        return StorePart(os.path.abspath(X.path), 0, len(X), X.fingerprint)
    return StorePart(os.path.abspath(os.fsdecode(X)))


def parts_of(X: RowStore, count: int) -> list[StorePart]:
    """Return a store as `count` parts with about the same number of rows.

    There are fewer parts if the store has fewer rows.
    """
    cuts = np.linspace(0, len(X), min(count, len(X)) + 1).astype(int).tolist()
    whole = part_of(X)
    return [replace(whole, start=a, stop=b) for a, b in itertools.pairwise(cuts)]


def in_batches(X: MatrixLike) -> list[StorePart]:
    """Return parts of moderate size, each to be read by one task.

    A store that is given by its path is one part.
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


# Stores that workers can open


#: What opening a store gave: its checksum, or nothing and the fault.
View: TypeAlias = tuple[str, str]


def look(paths: Iterable[str]) -> dict[str, View]:
    """Return the result of opening each path on this worker."""
    views = {}
    for path in paths:
        try:
            views[path] = RowStore.open(path).fingerprint, ""
        except (OSError, ValueError) as error:
            views[path] = "", str(error)
    return views


def locate(
    parts: Sequence[StorePart], views: Mapping[str, Mapping[str, View]]
) -> list[tuple[StorePart, set[str]]]:
    """Return every part with its checksum, and the workers that can open it.

    `views` has the results of :func:`look`, by the address of a worker and the path.

    Raises ValueError if no worker can open a store, or workers find different stores
    under a path.
    """
    found = []
    for part in parts:
        prints = {a: own[part.path][0] for a, own in views.items()}
        there = {address for address, print_ in prints.items() if print_}
        if not there:
            address, own = next(iter(views.items()))
            raise ValueError(
                f"no worker can open the store {part.path}; make it available to "
                f"workers under this path (worker {address}: {own[part.path][1]})"
            )
        wanted = part.fingerprint or prints[min(there)]
        others = sorted(address for address in there if prints[address] != wanted)
        if others:
            raise ValueError(
                f"the store {part.path} on worker {others[0]} differs from the one "
                f"{'here' if part.fingerprint else 'on worker ' + min(there)}; copy "
                "the same store to all machines"
            )
        found.append((replace(part, fingerprint=wanted), there))
    return found


def see(
    client: Client, parts: Sequence[StorePart]
) -> list[tuple[StorePart, set[str] | None]]:
    """Return each part with its checksum, and the hosts that can open it.

    The hosts are None if all workers can open the part.
    """
    views = client.run(look, list({part.path: None for part in parts}))
    return [
        (part, None if len(there) == len(views) else {host_of(a) for a in there})
        for part, there in locate(parts, views)
    ]


def host_of(address: str) -> str:
    """Return the host of an address.

    A restarted worker has another port, but sees the same disks.
    """
    from distributed.comm import get_address_host

    return str(get_address_host(address))


# Prediction by the same model in memory


def of_rows(X: Matrix, model: LinearSVC, method: str) -> NDArray[np.generic]:
    """Return what a method of the model returns for rows, which may be none."""
    if not X.shape[0]:  # which the checks of a model in memory refuse
        return of_rows(np.zeros((1, X.shape[1])), model, method)[:0]
    found: NDArray[np.generic]
    found = getattr(model, method)(X.tocsr() if hasattr(X, "tocsr") else X)
    return found


def of_store(part: StorePart, model: LinearSVC, method: str) -> NDArray[np.generic]:
    """Return what a method of the model returns for the rows of a store."""
    with named(part.path):
        return np.concatenate([of_rows(b.X, model, method) for b in part.batches()])


def count_right(part: StorePart, model: LinearSVC) -> tuple[float, float]:
    """Return the weight of correctly classified rows of a store, and of all rows."""
    right = whole = 0.0
    for batch in part.batches():
        with named(part.path):
            hits = of_rows(batch.X, model, "predict") == batch.y
        weight = np.ones(len(hits)) if batch[2] is None else batch[2]
        right, whole = right + float(weight @ hits), whole + float(weight.sum())
    return right, whole


@contextlib.contextmanager
def named(what: str) -> Iterator[None]:
    """Begin an error about rows or weights with the piece or store that has them."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: {error}") from None
