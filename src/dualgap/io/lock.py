"""A lock on a path: one writer at a time, until it is done or dead.

The lock is that of the operating system on a file ``.NAME.lock`` beside the path. It
ends with the process, however that ends, and it also keeps threads of one process
apart. The file is removed with it; one that a killed process left does no harm.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
from collections.abc import Iterator

__all__ = ["locked"]

logger = logging.getLogger("dualgap")

_LONGEST = 48  # characters of a name that lock files have in full
#: Of the byte that is locked on Windows, where it cannot be read by others.
_FAR = 2**30
_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}


@contextlib.contextmanager
def locked(path: str, name: str) -> Iterator[bool]:
    """Hold the lock of a path.

    Parameters
    ----------
    path : str
        The file or folder that is to be written, symbolic links resolved.
    name : str
        What to call it in a message, such as ``checkpoint='file'``.

    Yields
    ------
    bool
        Whether no other writer can be there: False on file systems without locks.

    Raises
    ------
    ValueError
        If another process, or another thread of this one, holds it.
    OSError
        If the file of the lock cannot be written.
    """
    folder, own = os.path.split(path)
    if len(own) > _LONGEST:
        short = hashlib.sha256(os.fsencode(own)).hexdigest()[:16]
        own = f"{own[: _LONGEST - 17]}-{short}"
    where = os.path.join(folder, f".{own}.lock")
    handle, alone = _acquire(where, name)
    try:
        yield alone
    finally:
        try:
            # While it is held: who opened it before finds out, and tries again.
            with contextlib.suppress(OSError):
                os.unlink(where)
        finally:
            os.close(handle)
        if os.name == "nt":  # which cannot remove a file that is open
            with contextlib.suppress(OSError):
                os.unlink(where)


def _acquire(where: str, name: str) -> tuple[int, bool]:
    while True:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(where, flags, 0o666)
        try:
            try:
                _lock(handle)
            except OSError as error:
                if error.errno in _HELD:
                    raise ValueError(
                        f"{name} is being written by {_holder(handle)}; wait until it "
                        "has ended, or give another path"
                    ) from None
                logger.warning(
                    "%s: no locks here (%s), so nothing keeps others from writing it",
                    name, error.strerror,
                )  # fmt: skip
                return handle, False
            if _is(where, handle):
                # For messages; a full disk is no reason to give up.
                with contextlib.suppress(OSError):
                    os.ftruncate(handle, 0)
                    os.write(handle, str(os.getpid()).encode())
                return handle, True
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        os.lseek(handle, _FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        os.lseek(handle, 0, os.SEEK_SET)
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is(where: str, handle: int) -> bool:
    """Whether the file of this name is the one that is open."""
    try:
        return os.path.samestat(os.stat(where), os.fstat(handle))
    except FileNotFoundError:
        return False


def _holder(handle: int) -> str:
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        number = int(os.read(handle, 32))
    except (OSError, ValueError):
        return "another process"
    if number == os.getpid():
        return f"another thread of this process ({number})"
    return f"process {number}"
