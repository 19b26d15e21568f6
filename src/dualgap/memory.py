"""Memory that runs out, as MemoryError and nothing worse.

A Python thread that finds no memory for its first object ends without a word, and
whoever started it waits for ever; one that finds none for its stack is a RuntimeError.
OpenBLAS tries for ever to get a buffer of 32 MB for every thread that calls it. So room
is asked for before they begin. A file that cannot be mapped is an OSError.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
from collections.abc import Iterator

__all__ = ["BLAS", "THREAD", "make_room_for", "memory_error"]

#: Bytes of a Python thread: its stack on Linux, and first objects.
THREAD = 10 * 2**20
#: The same of one that calls OpenBLAS.
BLAS = THREAD + 34 * 2**20


def make_room_for(threads: int, each: int = THREAD) -> None:
    """Raise now if some threads could not begin.

    Raises
    ------
    MemoryError
        If there are not enough addresses for them.
    """
    if hasattr(mmap, "MAP_PRIVATE"):  # not Windows, whose stacks grow
        with memory_error(f"{threads} threads", "a smaller n_jobs needs fewer"):
            mmap.mmap(-1, threads * each, mmap.MAP_PRIVATE).close()


@contextlib.contextmanager
def memory_error(what: str, remedy: str = "give the process more") -> Iterator[None]:
    """Turn the system's error for too little memory into Python's."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise MemoryError(f"no memory for {what}; {remedy}") from error
