"""Kind of a file, from its first bytes or its name."""

from __future__ import annotations

import contextlib
import os

from .svmlight import decompressed
from .tables import kind_of
from .text_sources import START


def kind_of_file(path: str) -> str:
    """Return the kind of a file by its content or, if that does not tell, its name."""
    if not os.path.isfile(path):  # a pipe can be read only once
        return "svmlight"
    with open(path, "rb") as file:
        start = file.read(START)
        kind, suffix = kind_of(start)
        if suffix is not None:
            file.seek(0)
            kind = "svmlight"
            with contextlib.suppress(ValueError):  # damage is told when it is read
                kind, _ = kind_of(next(decompressed(file, suffix, path), b""))
            if kind not in ("svmlight", "csv"):
                raise ValueError(
                    f"{path} is a compressed {kind} file; decompress it first"
                )
    if suffix is None and kind in ("svmlight", "binary"):
        kind = _NAMED.get(os.path.splitext(path)[1].lower(), kind)
    if kind == "binary":
        raise ValueError(
            f"{path} is not a data file; give svmlight text, CSV, TSV, Parquet, Arrow, "
            ".npy or .npz"
        )
    return kind


#: Kinds by name, for files whose content does not tell.
_NAMED = {
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
