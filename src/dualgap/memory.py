"""Checks that turn a lack of memory into a MemoryError.

Without them it shows in worse ways. A Python thread that has no memory for its first
object ends silently, and its starter waits for ever; a thread that gets no stack raises
RuntimeError. OpenBLAS retries for ever to allocate a buffer of 32 MB for each thread
that calls it. The checks therefore reserve memory before threads start. A file that
cannot be mapped raises OSError, which is converted.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
from collections.abc import Iterator

__all__ = ["BLAS", "THREAD", "make_room_for", "memory_error"]

#: Bytes for a Python thread: its stack on Linux, and its first objects.
THREAD = 10 * 2**20
#: Bytes for a Python thread that calls OpenBLAS.
BLAS = THREAD + 34 * 2**20


def make_room_for(threads: int, each: int = THREAD) -> None:
    """Check that there is memory for new threads before they start.

    Parameters
    ----------
    threads : int
        Number of threads.
    each : int
        Bytes for each thread.

    Raises
    ------
    MemoryError
        If the address space has no room for them.
    """
    if hasattr(mmap, "MAP_PRIVATE"):  # not Windows, whose stacks grow
        with memory_error(f"{threads} threads", "use a smaller n_jobs"):
            mmap.mmap(-1, threads * each, mmap.MAP_PRIVATE).close()


@contextlib.contextmanager
def memory_error(
    what: str, remedy: str = "give the process more memory"
) -> Iterator[None]:
    """Turn an OSError with ENOMEM into a MemoryError."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise MemoryError(f"not enough memory for {what}; {remedy}") from error
