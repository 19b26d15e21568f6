"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from typing import IO, Any

__all__ = ["check_target", "remove_leftovers", "write_atomically"]

_LONGEST = 48  # of a name, so that the suffix fits into what file systems take


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse a path that :func:`write_atomically` could not write to.

    Raises
    ------
    OSError
        If the folder is missing or read-only, or the path names a folder, a device or
        a pipe.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "a folder, not a file", os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "no such folder: create it first", folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "the folder is not writable", folder)


@contextlib.contextmanager
def write_atomically(
    path: str | os.PathLike[str], mode: str = "wb"
) -> Iterator[IO[Any]]:
    """Open a file for writing that takes its name only when it is complete.

    Written beside its target, flushed to the disk, then renamed: whoever opens the
    path sees the old content or the new, never a part. When the block raises, the old
    file stays and the new one is removed.

    Parameters
    ----------
    path : str or path-like
        A new file gets the permissions of any new file (umask), an existing one keeps
        its own; a symbolic link stays one.
    mode : {"wb", "w"}, default="wb"
        Bytes, or text in UTF-8.

    Yields
    ------
    file object

    Raises
    ------
    OSError
        As :func:`check_target`, or if the disk is full.
    """
    check_target(path)
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:_LONGEST]}.{secrets.token_hex(8)}.tmp")
    try:
        # "x" goes through open(2) with O_EXCL, so that umask applies.
        with open(
            temporary, mode.replace("w", "x"), encoding=None if "b" in mode else "utf-8"
        ) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _flush_folder(folder)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what was killed before it could rename or remove it.

    Only for who holds the lock of the path: what a living process writes would go.
    """
    folder, name = os.path.split(os.path.realpath(path))
    left = re.compile(re.escape(f".{name}.") + r"[0-9a-f]{16}\.tmp")
    if len(name) > _LONGEST:  # could be of another file
        return
    for entry in os.listdir(folder):
        if left.fullmatch(entry):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, entry))


def _flush_folder(folder: str) -> None:
    """Make a rename outlive a power cut, where folders can be flushed (not Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some network file systems refuse; the file itself is flushed in any case.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
