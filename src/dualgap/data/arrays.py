"""Reader of .npy and .npz files into memory."""

from __future__ import annotations

import zipfile
import zlib
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from .types import MatrixLike


def read_arrays(
    content: BinaryIO, kind: str, name: str
) -> tuple[MatrixLike, NDArray[np.generic] | None]:
    """Return the arrays X and y of a file; y is None if it has none.

    Raises ValueError if the file is damaged, or an array is no matrix of numbers.
    """
    try:
        loaded = np.load(content, allow_pickle=False)
        arrays = {"X": loaded} if kind == "npy" else dict(loaded)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError) as error:
        remedy = "; save y with dtype=str" if "allow_pickle" in str(error) else ""
        raise ValueError(f"{name} cannot be read: {error}{remedy}") from None
    if "X" in arrays:
        X: MatrixLike = arrays["X"]
    elif {"data", "indices", "indptr", "shape", "format"} <= set(arrays):
        from scipy import sparse

        form = arrays["format"].item()
        if form not in (b"csr", "csr"):
            raise ValueError(
                f"{name} has a matrix in the format {form!r}; save X.tocsr()"
            )
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        X = sparse.csr_matrix(parts, shape=tuple(arrays["shape"]))
    else:
        raise ValueError(
            f"{name} has the arrays {', '.join(sorted(arrays))}; expected X and y"
        )
    y = arrays.get("y")
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(
            f"{name}: X has shape {X.shape} and dtype {X.dtype}; expected numbers of "
            "shape (n, d)"
        )
    X = X.astype(np.float64)
    values = X.data if hasattr(X, "indptr") else X
    if not np.isfinite(np.asarray(values)).all():
        raise ValueError(f"{name}: X contains NaN or infinite values")
    if y is not None and (y.shape != X.shape[:1] or y.dtype.kind not in "biufUS"):
        raise ValueError(
            f"{name}: y has shape {y.shape} and dtype {y.dtype}; expected labels of "
            f"shape ({X.shape[0]},)"
        )
    if y is not None:
        y = y.astype(str) if y.dtype.kind in "US" else y.astype(np.float64)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError(f"{name}: y contains NaN or infinite values")
    return X, y
