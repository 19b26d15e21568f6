"""BLAS: its functions for compiled code, and limits on its threads.

dualgap calls BLAS from threads of its own, and more threads would only wait for each
other. Every limit in dualgap is one of :func:`limited`, for two reasons. Fits in
several threads end in any order, and only the last one may give BLAS its threads back.
And if the process forks while OpenBLAS starts threads, the child gets a lock that
nobody releases, and its first call of OpenBLAS never returns. So a fork waits.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .memory import BLAS, BUFFER, make_room, make_room_for

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

#: Functions of BLAS and LAPACK, as SciPy hands them to compiled code.
Functions: TypeAlias = tuple[Callable[..., object], ...]

#: Size of matrices for whose product OpenBLAS needs a buffer.
_NOT_SMALL = 256
_turn = threading.RLock()
_limits: list[int] = []  # of all blocks that run
_before: list[int] = []  # threads of each library outside of all blocks

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_turn.acquire,
        after_in_parent=_turn.release,
        after_in_child=_turn.release,
    )


@functools.cache
def algebra() -> tuple[Functions, ThreadpoolController]:
    """Return SciPy's dsyrk, ssyrk, dpotrf and dpotrs, and the controller of BLAS."""
    from scipy.linalg import cython_blas, cython_lapack
    from threadpoolctl import ThreadpoolController

    functions = (
        cython_blas.__pyx_capi__["dsyrk"],
        cython_blas.__pyx_capi__["ssyrk"],
        cython_lapack.__pyx_capi__["dpotrf"],
        cython_lapack.__pyx_capi__["dpotrs"],
    )
    return functions, ThreadpoolController().select(user_api="blas")


@contextlib.contextmanager
def limited(threads: int) -> Iterator[None]:
    """Let BLAS use at most this many threads in a block, in the whole process.

    Where several blocks run at a time, the smallest limit holds. A child that is forked
    amid a block of another thread keeps its limit.
    """
    libraries = algebra()[1].lib_controllers
    with _turn:
        if not _limits:
            _before[:] = [library.num_threads for library in libraries]
        _limits.append(threads)
        _apply()
    try:
        _allocate()
        yield
    finally:
        with _turn:
            _limits.remove(threads)
            _apply()


@functools.cache
def ready() -> None:
    """Let BLAS have its buffers before work that calls it from this thread.

    Raises MemoryError if there is no memory for them. BLAS itself would end the
    process.
    """
    with limited(1):
        pass


@functools.cache  # BLAS keeps the buffers as long as the process lives
def _allocate() -> None:
    """Let NumPy's and SciPy's BLAS, which may be two, allocate their buffers."""
    from scipy.linalg.blas import dgemm

    make_room(2 * BUFFER, "the buffers of BLAS", "give the process more memory")
    some = np.ones((_NOT_SMALL, _NOT_SMALL))
    dgemm(1.0, some, some @ some)


def _apply() -> None:
    for library, most in zip(algebra()[1].lib_controllers, _before, strict=True):
        wanted = min([most, *_limits])
        if library.num_threads != wanted:
            library.set_num_threads(wanted)


class _Shared(contextlib.ExitStack):
    """Limit that the fits of several problems share."""

    entered = False


_shared: ContextVar[_Shared | None] = ContextVar("_shared", default=None)


@contextlib.contextmanager
def one_limit() -> Iterator[None]:
    """Limit BLAS once for all fits in a block: a limit costs as much as a small fit."""
    with _Shared() as limit:
        before = _shared.set(limit)
        try:
            yield
        finally:
            _shared.reset(before)


def one_thread(threads: int, stack: contextlib.ExitStack) -> None:
    """Give BLAS one thread until `stack` is closed, or where :func:`one_limit` ends.

    `threads` of the caller's own will call it.

    Raises MemoryError if there is no memory for the buffers of BLAS.
    """
    limit = _shared.get()
    if limit is not None and limit.entered:
        return
    make_room_for(threads, BLAS)
    (stack if limit is None else limit).enter_context(limited(1))
    if limit is not None:
        limit.entered = True
