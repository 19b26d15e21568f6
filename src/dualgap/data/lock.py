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
import sys
from collections.abc import Iterator

logger = logging.getLogger("dualgap")

#: Longer names are shortened in the names of lock files.
_LONGEST = 48
_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}


@contextlib.contextmanager
def locked(path: str, name: str) -> Iterator[bool]:
    """Hold the lock of a path, whose symbolic links are resolved.

    Yields whether other writers are excluded: they are not on file systems without
    locks. `name` is for messages, such as ``checkpoint='file'``.
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
        # Remove it while it is locked. Another writer that has opened it notices that
        # it is gone, and tries again. Windows cannot remove an open file.
        with contextlib.suppress(OSError):
            os.unlink(where)
        os.close(handle)
        if os.name == "nt":
            with contextlib.suppress(OSError):
                os.unlink(where)


def _acquire(where: str, name: str) -> tuple[int, bool]:
    while True:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(where, flags, 0o666)
        try:
            _lock(handle)
            # Another writer may have removed the file before it was locked.
            if os.path.samestat(os.stat(where), os.fstat(handle)):
                # The number is only for messages, so a full disk is not an error.
                with contextlib.suppress(OSError):
                    os.ftruncate(handle, 0)
                    os.write(handle, str(os.getpid()).encode())
                return handle, True
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno not in _HELD:
                logger.warning(
                    "%s: this file system has no locks (%s), so other processes could "
                    "write to it",
                    name, error.strerror,
                )  # fmt: skip
                return handle, False
            holder = _holder(handle)
            os.close(handle)
            raise ValueError(
                f"{name} is being written by {holder}; wait until it has finished, or "
                "give another path"
            ) from None
        os.close(handle)


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder(handle: int) -> str:
    """Return the process in a lock file; Windows does not let others read it."""
    try:
        number = int(os.read(handle, 32))
    except (OSError, ValueError):
        return "another process"
    if number == os.getpid():
        return f"another thread of this process ({number})"
    return f"process {number}"
