"""Functions that workers run, and the workers that rows are on."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dask import delayed
from distributed import Client
from distributed.comm import get_address_host

from ..data.store import RowStore
from .collections import Block, join
from .piece import Piece
from .stores import StorePart, locate, look, part_of

if TYPE_CHECKING:
    from dask.delayed import Delayed

# Pieces in use, with the tokens of their fits.
_RUNNING: weakref.WeakKeyDictionary[Piece, str] = weakref.WeakKeyDictionary()


def later(function: Callable[..., object]) -> Delayed:
    """Wrap a function of this module as a task of a graph.

    The function is sent by its name. A decorated function would be sent as a copy with
    its own `_RUNNING`.
    """
    return delayed(function, pure=False)


def build(blocks: Sequence[Block], index: int) -> Piece:
    """Make a piece of its blocks: rows, or a store."""
    whole: Any = [part for block in blocks for part in block]
    if len(whole) == 1 and isinstance(whole[0], (RowStore, StorePart)):
        return Piece.of(part_of(whole[0]), index)
    return Piece(*join(blocks, index), index=index)


def call(piece: Piece, fit: str, method: str, *args: object) -> object:
    """Return what a method of a piece returns, which takes part in a fit."""
    _RUNNING[piece] = fit
    return getattr(piece, method)(*args)


async def leave(fit: str) -> None:  # a client does not wait for coroutines only
    """End the epochs of this fit that run on this worker."""
    for reference in _RUNNING.keyrefs():
        piece = reference()
        if piece is not None and _RUNNING.get(piece) == fit:
            piece.stop.request()


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
    return str(get_address_host(address))
