"""Rows that are read block by block, because they are more than memory holds.

A :class:`RowSource` hands out its rows as blocks of consecutive rows, each in memory
only while it is looked at. ``Problem`` and the solvers that can stream see nothing
else: a problem in memory is one block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["Block", "RowSource", "StreamedRows"]

#: Blocks begin at multiples of so many rows, that sets of rows as bits can be cut.
ALIGNMENT = 64


class Block(NamedTuple):
    """Consecutive rows: an accessor over them, and their place among all rows."""

    rows: Any
    span: slice


class RowSource(ABC):
    """What can be the X of a :class:`~dualgap.Problem` without being in memory."""

    #: Name for messages.
    name: str
    n_samples: int
    n_features: int
    #: Stored entries, and bytes of one.
    stored: int
    entry_bytes: int

    @property
    @abstractmethod
    def spans(self) -> Sequence[slice]:
        """The blocks, in the order of the rows."""

    @abstractmethod
    def read(self, constant: float, order: Sequence[int] | None) -> Iterator[Block]:
        """Yield the blocks named in `order`; a block is good until the next one.

        Parameters
        ----------
        constant : float
            Value of the constant feature; 0 for none.
        order : sequence of int, optional
            Numbers of blocks; None for all of them as they lie.
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
