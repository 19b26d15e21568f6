"""Rows that are read block by block, for data larger than memory.

A :class:`RowSource` yields its rows as blocks, and each block is in memory only while
it is used. A block consists of pages: runs of consecutive rows that are read together.
``Problem`` and the streaming solvers work on blocks only; rows in memory are one block.

A block of a few pages from all over the source, drawn again in every epoch, mixes the
rows as well as a shuffle of all rows. docs/scaling.md has numbers of epochs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ..core import Rows

#: Pages begin at multiples of this many rows, so that bit sets of rows can be split.
ALIGNMENT = 64

Array = TypeVar("Array", bound=NDArray[np.generic])


class Block(NamedTuple):
    """Accessor over some rows in memory, and the places of these among all rows."""

    rows: Rows
    spans: tuple[slice, ...]

    @property
    def span(self) -> slice:
        """Place of a block of consecutive rows."""
        (span,) = self.spans
        return span

    @property
    def size(self) -> int:
        """Number of rows."""
        return sum(span.stop - span.start for span in self.spans)

    @overload
    def take(self, array: Array) -> Array: ...
    @overload
    def take(self, array: Array | None) -> Array | None: ...

    def take(self, array: Any) -> Any:
        """Return the entries of an array for these rows.

        The result is a view if the rows are consecutive, else a copy.
        """
        if array is None or len(self.spans) == 1:
            return None if array is None else array[self.spans[0]]
        return np.concatenate([array[span] for span in self.spans])

    def put(
        self, array: NDArray[np.generic] | None, part: NDArray[np.generic] | None
    ) -> None:
        """Write back an array from :meth:`take` if it was a copy."""
        if len(self.spans) > 1 and array is not None and part is not None:
            at = 0
            for span in self.spans:
                array[span] = part[at : at + span.stop - span.start]
                at += span.stop - span.start


class RowSource(ABC):
    """Base of sources that can be the X of a problem, read from disk."""

    #: Name for messages, and a checksum of all data.
    name: str
    fingerprint: str
    #: Bytes that blocks in memory may take.
    buffer: int
    n_samples: int
    n_features: int
    #: Number of stored entries, bytes of one entry, and type of its value.
    stored: int
    dtype: np.dtype[np.floating]
    entry_bytes: int
    #: Pages in the order of the rows; a single page if all rows fit in memory.
    pages: Sequence[slice]
    #: Largest number of pages in a block.
    block_pages: int

    @property
    @abstractmethod
    def y(self) -> NDArray[np.generic]:
        """Labels, shape (n_samples,)."""

    @property
    @abstractmethod
    def sample_weight(self) -> NDArray[np.float64] | None:
        """Sample weights, shape (n_samples,); None if there are none."""

    @abstractmethod
    def read(
        self, constant: float, blocks: Sequence[Sequence[int]] | None = None
    ) -> Iterator[Block]:
        """Yield blocks of these pages, each valid until the next one.

        Without `blocks`, each has consecutive rows, and all come in order. `constant`
        is the value of the constant feature; 0 for none.
        """

    @abstractmethod
    def hold(self, constant: float) -> Rows:
        """Return an accessor over all rows, in memory."""


class StreamedRows:
    """Substitute for the accessor of rows that are not in memory. It has sizes only."""

    def __init__(self, source: RowSource, constant: float) -> None:
        self.n = source.n_samples
        self.width = source.n_features + (constant != 0.0)
        self.stored = source.stored
        self.bytes = source.stored * source.entry_bytes
        self.constant = constant
