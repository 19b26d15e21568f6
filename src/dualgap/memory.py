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
import os
from collections.abc import Iterator

#: Bytes for a Python thread: its stack on Linux, and its first objects.
THREAD = 10 * 2**20
#: Bytes of a buffer of OpenBLAS.
BUFFER = 34 * 2**20
#: Bytes for a Python thread that calls OpenBLAS.
BLAS = THREAD + BUFFER
#: Arrays of fewer bytes raise a MemoryError themselves, before much work is lost.
SMALL = 2**26


def make_room_for(threads: int, each: int = THREAD) -> None:
    """Check that there is memory for new threads before they start.

    `threads`: number of threads. `each`: bytes for each thread. Raises MemoryError if
    the address space has no room for them.
    """
    _reserve(threads * each, f"{threads} threads", "use a smaller n_jobs")


def make_room(size: int, what: str, remedy: str) -> None:
    """Check that there is memory for arrays before the work that fills them.

    `size`: bytes. `what`, `remedy`: what takes them, and how to need less. Raises
    MemoryError if neither the address space nor the machine has that much.
    """
    if size < SMALL:
        return
    what = f"{what} ({size / 1e9:.3g} GB)"
    if size > machine_memory():
        raise MemoryError(f"not enough memory for {what}; {remedy}")
    _reserve(size, what, remedy)


def machine_memory() -> int:
    """Return the machine's memory in bytes; a huge number if it is unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**63


def _reserve(size: int, what: str, remedy: str) -> None:
    if hasattr(mmap, "MAP_PRIVATE"):  # not Windows, whose stacks grow
        with memory_error(what, remedy):
            mmap.mmap(-1, size, mmap.MAP_PRIVATE).close()


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
