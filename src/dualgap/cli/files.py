"""Files of the commands: checks of inputs and outputs, before any work."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from .parser import Values

#: Standard input as data, and standard output of predictions.
DASH = "-"
#: Files that a command may write over: what they are, and how they begin.
KINDS: dict[str, tuple[str, Callable[[bytes], bool]]] = {
    "model": ("a model file", lambda start: start[8:9] == b"{"),
    "peer": (
        "a model file of LIBLINEAR or LIBSVM",
        lambda start: start.startswith((b"solver_type", b"svm_type")),
    ),
    "page": ("an HTML page", lambda start: start.lower() == b"<!doctype html>"),
    "proof": ("a proof file", lambda start: start.startswith(b"dualgap-proof ")),
}
_NO_MODEL = "give a data file, or describe a model with dualgap report DATA MODEL"


def check_files(o: Values) -> None:
    """Raise an error for files that a command cannot read or write, before any work."""
    command, inputs = o.command, []
    if (data := getattr(o, "data", None)) is not None:
        named = any(a.name == "model" and a.required for a in command.arguments)
        refuse_unreadable(data, "DATA comes before MODEL" if named else _NO_MODEL)
        if not command.stores:
            refuse_store(data, command.name)
        inputs.append(data)
    if "model" not in command.writes and hasattr(o, "model"):
        inputs.append(o.model)
    for name, kind in command.writes.items():
        path = getattr(o, name)
        if path is not None and not (kind == "text" and _is_stream(path)):
            refuse_unwritable(path, inputs)
            if kind in KINDS:
                _refuse_overwriting(path, kind)


def _is_stream(path: str) -> bool:
    """Whether an output is standard output, or a device."""
    from ..data.atomic import is_device

    return path == DASH or is_device(path)


def refuse_unreadable(path: str, remedy: str) -> None:
    """Raise an error for a missing file, a folder, or a model in the place of data."""
    if path == DASH:
        return
    os.stat(path)  # raises the usual error for a missing file
    if os.path.isdir(path):
        if is_store(path):
            return
        raise IsADirectoryError(
            errno.EISDIR, "is a folder, not a data file or a store", path
        )
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    refuse_model(path, remedy)


def is_store(path: str) -> bool:
    """Whether a path is a row store, made by convert."""
    from ..data.description import DESCRIPTION

    return os.path.isfile(os.path.join(path, DESCRIPTION))


def refuse_store(path: str, reader: str) -> None:
    """Raise an error for a row store in the place of a data file."""
    if is_store(path):
        raise ValueError(
            f"{path} is a store, which {reader} cannot use; give a data file"
        )


def whose_model(path: str) -> str | None:
    """Return the package whose model a file contains, from its first bytes; or None."""
    with open(path, "rb") as file:
        start = file.read(12)
    if start.startswith(b"solver_type"):
        return "LIBLINEAR"
    if start.startswith(b"svm_type"):
        return "LIBSVM"
    # A safetensors file begins with the length of its JSON header, and the header.
    header = int.from_bytes(start[:8], "little") <= os.path.getsize(path)
    return "dualgap" if header and start[8:9] == b"{" else None


def refuse_model(path: str, remedy: str = "give a data file") -> None:
    """Raise an error for a model file in the place of data."""
    if os.path.isfile(path) and whose_model(path) is not None:
        raise ValueError(f"{path} is a model file, not a data file; {remedy}")


def refuse_no_model(path: str, others: bool = False) -> str:
    """Return the package that wrote a model file, or raise an error."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a model file", path)
    whose = whose_model(path)
    if whose is None:
        known = "dualgap, LIBLINEAR or LIBSVM" if others else "dualgap"
        raise ValueError(
            f"{path} is not a model file of {known}; give a file that train has written"
        )
    if whose != "dualgap" and not others:
        raise ValueError(
            f"{path} is a model file of {whose}; give a file of dualgap train"
        )
    return whose


def refuse_unwritable(path: str, inputs: list[str]) -> None:
    """Raise an error for an output that cannot be written, or is an input."""
    from ..data.atomic import check_target

    if path == DASH:
        raise ValueError("this output cannot be '-'; give a path, such as ./-")
    check_target(path)
    for other in inputs:
        if other != DASH and os.path.exists(path) and os.path.samefile(path, other):
            raise ValueError(f"{path} is the input; choose another name for the output")


def _refuse_overwriting(path: str, kind: str) -> None:
    """Raise an error if output would replace a file of another kind, such as data."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        start = file.read(15)
    what, known = KINDS[kind]
    if start and not known(start):
        raise ValueError(
            f"{path} exists and is not {what}; remove it first, or choose another name"
        )
