"""Functions that workers run, and the workers that rows are on."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from dask import delayed
from distributed import Client
from distributed.comm import get_address_host
from numpy.typing import NDArray

from ..losses import Vector
from .engine import Points, RoundOutcome, aggregate, zero_points
from .messages import Order, Reply, Task
from .piece import Census, Piece, Setup
from .stores import StorePart, locate, look

if TYPE_CHECKING:
    from dask.delayed import Delayed

    from .collections import Block

#: The w of all binary problems, and the result of the round that led to them.
State = tuple[Points, RoundOutcome]


# Functions that run on the workers

# Pieces in use, with the tokens of their fits.
_RUNNING: weakref.WeakKeyDictionary[Piece, str] = weakref.WeakKeyDictionary()


def _later(function: Callable[..., object]) -> Delayed:
    """Wrap a function of this module as a task of a graph.

    The function is sent by its name. A decorated function would be sent as a copy with
    its own `_RUNNING`.
    """
    return delayed(function, pure=False)


def _build(blocks: Sequence[Block], index: int) -> Piece:
    from .collections import join, store_of

    source = store_of(blocks)
    if source is not None:
        return Piece.of(source, index)
    return Piece(*join(blocks, index), index=index)


def _census(piece: Piece) -> Census:
    return piece.census()


def _take_part(
    piece: Piece, setup: Setup, order: Order, state: State, fit: str
) -> Reply:
    _RUNNING[piece] = fit
    return piece.take_part(setup, order, state[0])


def _recover(
    piece: Piece, setup: Setup, order: Order, duals: list[Vector | None] | None
) -> bool:
    return piece.recover(setup, order, duals)


def _duals(piece: Piece) -> list[Vector | None]:
    return piece.duals()


def _duals_and_labels(piece: Piece) -> tuple[list[Vector | None], NDArray[np.generic]]:
    return piece.duals(), piece.y


def _moments(piece: Piece, setup: Setup, k: int, w: Vector) -> Vector:
    return piece.moments(setup, k, w)


def _hold(duals: list[Vector | None]) -> list[Vector | None]:
    return duals


def _merge(replies: list[Reply]) -> Reply:
    return Reply.merge(replies)


def _aggregate(state: State, replies: list[Reply], tasks: dict[int, Task]) -> State:
    return aggregate(state[0], Reply.merge(replies), tasks)


def _outcome(state: State) -> RoundOutcome:
    return state[1]


def _zero(problems: list[int], width: int) -> State:
    return zero_points(problems, width), RoundOutcome()


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
