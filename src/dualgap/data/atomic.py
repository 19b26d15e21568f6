"""Atomic writing of files: the whole file appears, or none of it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from typing import IO, Any

#: Characters of a name that a temporary file keeps. With the suffix, the name stays
#: within the limit of file systems.
_LONGEST = 48


def is_device(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a device or a pipe, such as ``/dev/null``."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def refuse_no_path(path: object) -> None:
    """Raise an error for a value that names no file, such as a number."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(
            f"path must be a str or a pathlib.Path, but is of type "
            f"{type(path).__name__}; give the name of a file"
        )


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise an error if :func:`write_atomically` could not write to a path."""
    refuse_no_path(path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise IsADirectoryError(
            errno.EISDIR, "is a folder, not a file", os.fspath(path)
        )
    if is_device(target):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "no such folder: create it first", folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "the folder is not writable", folder)


@contextlib.contextmanager
def write_atomically(
    path: str | os.PathLike[str], mode: str = "wb"
) -> Iterator[IO[Any]]:
    """Open a file for writing that gets its name only when it is complete.

    The content is written to a temporary file in the same folder, flushed to the disk,
    and renamed. A reader of the path sees the old or the new content, never a part. If
    the block raises, the old file stays and the new one is removed. An existing file
    keeps its permissions, and a symbolic link is followed. `mode` is "wb", or "w" for
    text in UTF-8.
    """
    check_target(path)
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:_LONGEST]}.{secrets.token_hex(8)}.tmp")
    try:
        # Mode "x" opens with O_EXCL, so that umask applies.
        with open(
            temporary, mode.replace("w", "x"), encoding=None if "b" in mode else "utf-8"
        ) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename in (None, temporary):
            error.filename = os.fspath(path)  # such as a full disk
        raise
    flush_folder(folder)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove temporary files that killed processes have left.

    Call it only while holding the lock of the path. Otherwise it would remove the file
    that another process is writing.
    """
    folder, name = os.path.split(os.path.realpath(path))
    left = re.compile(re.escape(f".{name}.") + r"[0-9a-f]{16}\.tmp")
    if len(name) > _LONGEST:  # a shortened name could belong to another file
        return
    for entry in os.listdir(folder):
        if left.fullmatch(entry):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, entry))


def flush_folder(folder: str) -> None:
    """Flush a folder so that a rename survives a power cut; nothing on Windows."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some network file systems refuse this. The file itself is already flushed.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
