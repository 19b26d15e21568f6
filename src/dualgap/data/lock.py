"""File locks: one writer of a path at a time.

The operating system locks a file ``.NAME.lock`` beside the path. The lock ends with the
process, even if it is killed, and it also excludes other threads of the same process.
The lock file is removed afterwards; one that a killed process has left does no harm.
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

#: Longer names are shortened in the names of lock files.
_LONGEST = 48
#: Position of the locked byte on Windows, where others cannot read it.
_FAR = 2**30
_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}


@contextlib.contextmanager
def locked(path: str, name: str) -> Iterator[bool]:
    """Hold the lock of a path.

    Parameters
    ----------
    path : str
        The file or folder to write, with symbolic links resolved.
    name : str
        Name for messages, such as ``checkpoint='file'``.

    Yields
    ------
    bool
        Whether other writers are excluded; False on file systems without locks.

    Raises
    ------
    ValueError
        If another process, or another thread of this one, holds the lock.
    OSError
        If the lock file cannot be written.
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
            # Remove it while it is locked. Another writer that has opened it notices
            # that it is gone, and tries again.
            with contextlib.suppress(OSError):
                os.unlink(where)
        finally:
            os.close(handle)
        if os.name == "nt":  # Windows cannot remove an open file
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
                        "has finished, or give another path"
                    ) from None
                logger.warning(
                    "%s: this file system has no locks (%s), so other processes could "
                    "write to it",
                    name, error.strerror,
                )  # fmt: skip
                return handle, False
            if _is(where, handle):
                # The number is only for messages, so a full disk is not an error.
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
    """Whether the open file still has this name."""
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
