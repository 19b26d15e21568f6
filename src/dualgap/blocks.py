"""Rows that are read block by block, because they are more than memory holds.

A :class:`RowSource` hands out its rows as blocks, each in memory only while it is
looked at. A block is some pages: consecutive rows that are read together. ``Problem``
and the solvers that can stream see nothing else: rows in memory are one block.

Rows of a few pages from all over the source, drawn anew in every pass, mix as well as
all rows do (docs/scaling.md has the passes).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "RowSource", "StreamedRows"]

#: Pages begin at multiples of so many rows, that sets of rows as bits can be cut.
ALIGNMENT = 64

Array = TypeVar("Array", bound=NDArray[Any])


class Block(NamedTuple):
    """An accessor over rows in memory, and their places among all rows."""

    rows: Any
    spans: tuple[slice, ...]

    @property
    def span(self) -> slice:
        """The place of a block of consecutive rows."""
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
        """The entries of its rows: a view of consecutive ones, else a copy."""
        if array is None or len(self.spans) == 1:
            return None if array is None else array[self.spans[0]]
        return np.concatenate([array[span] for span in self.spans])

    def put(self, array: NDArray[Any] | None, part: NDArray[Any] | None) -> None:
        """Write back what was taken, where it was no view."""
        if len(self.spans) > 1 and array is not None and part is not None:
            at = 0
            for span in self.spans:
                array[span] = part[at : at + span.stop - span.start]
                at += span.stop - span.start


class RowSource(ABC):
    """What can be the X of a :class:`~dualgap.Problem` without being in memory."""

    #: Name for messages, and a checksum of all its data.
    name: str
    fingerprint: str
    #: Bytes of the blocks in memory.
    buffer: int
    n_samples: int
    n_features: int
    #: Stored entries, and bytes of one.
    stored: int
    entry_bytes: int

    @property
    @abstractmethod
    def y(self) -> NDArray[Any]:
        """Labels, shape (n_samples,)."""

    @property
    @abstractmethod
    def sample_weight(self) -> NDArray[np.float64] | None:
        """Weights, shape (n_samples,), if the rows have some."""

    @property
    @abstractmethod
    def pages(self) -> Sequence[slice]:
        """The pages, in the order of the rows; one, if memory holds them all."""

    @property
    @abstractmethod
    def block_pages(self) -> int:
        """How many pages a block may have."""

    @abstractmethod
    def read(
        self, constant: float, blocks: Sequence[Any] | None = None
    ) -> Iterator[Block]:
        """Yield blocks; each is good until the next one.

        Parameters
        ----------
        constant : float
            Value of the constant feature; 0 for none.
        blocks : sequence of sequences of int, optional
            The pages of each block. None: all pages as they lie, so that every block
            has consecutive rows.
        """

    @abstractmethod
    def hold(self, constant: float) -> Any:
        """Return an accessor over all rows, in memory."""


class StreamedRows:
    """Stands for the accessor of rows that are not in memory: their sizes alone."""

    def __init__(self, source: RowSource, constant: float) -> None:
        self.n = source.n_samples
        self.width = source.n_features + (constant != 0.0)
        self.stored = source.stored
        self.bytes = source.stored * source.entry_bytes
        self.constant = constant
