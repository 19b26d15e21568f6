"""Files: examples that are read, targets that may be written."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from ..io import RowStore


class Data(NamedTuple):
    """What a svmlight file holds."""

    path: str
    X: csr_matrix | RowStore
    y: NDArray[np.int64] | NDArray[np.float64]
    zero_based: bool

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape


def refuse_unreadable(path: str) -> None:
    """Refuse a missing file or a folder before anything else is done."""
    os.stat(path)  # the usual error for a missing file
    if os.path.isdir(path):
        if is_store(path):
            return
        raise IsADirectoryError(errno.EISDIR, "a folder, and no store", path)
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def is_store(path: str) -> bool:
    """Whether a path is a folder made by convert."""
    from ..io.store import DESCRIPTION

    return os.path.isfile(os.path.join(path, DESCRIPTION))


def whose_model(path: str) -> str | None:
    """Whose model a file holds, as its first bytes say; None: nobody's."""
    with open(path, "rb") as file:
        start = file.read(12)
    if start.startswith(b"solver_type"):
        return "LIBLINEAR"
    if start.startswith(b"svm_type"):
        return "LIBSVM"
    # Safetensors: the length of a header in JSON, and the header.
    header = int.from_bytes(start[:8], "little") <= os.path.getsize(path)
    return "dualgap" if header and start[8:9] == b"{" else None


def refuse_unwritable(path: str, inputs: Sequence[str]) -> None:
    """Refuse an output that cannot be written, or is an input."""
    from ..io.atomic import check_target

    check_target(path)
    for other in inputs:
        if os.path.exists(path) and os.path.samefile(path, other):
            raise ValueError(f"{path} is the input; choose another name for the output")


def refuse_overwriting(path: str) -> None:
    """Refuse to put a model in the place of what is none, such as a data file."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        start = file.read(9)
    if start and start[8:] != b"{":
        raise ValueError(
            f"{path} exists and is not a model file; remove it first, or choose "
            "another name for the model"
        )


def read_data(
    path: str,
    zero_based: bool | None,
    n_jobs: int | None,
    n_features: int | None = None,
    remedy: str = "",
) -> Data:
    """Examples of a file. Labels that are whole numbers become int64.

    With `n_features` the rows get that many, and a file with more is refused, naming
    the remedy.
    """
    import numpy as np

    from ..io import load_svmlight

    if is_store(path):
        return _opened(path, zero_based, n_features, remedy)
    if os.path.isfile(path) and whose_model(path) is not None:
        raise ValueError(
            f"{path} is the file of a model, not of data; DATA comes before MODEL, and "
            "dualgap certify and export read models"
        )
    # Left open, the base is seen in the indices as they are written.
    X, y = load_svmlight(
        path, zero_based=True if zero_based is None else zero_based, n_jobs=n_jobs
    )
    if zero_based is None:
        zero_based = bool(X.nnz) and int(X.indices.min()) == 0
        if not zero_based and X.nnz:
            X.indices -= 1
            X.resize((X.shape[0], X.shape[1] - 1))
    if X.shape[0] == 0:
        raise ValueError(f"{path} holds no examples")
    if (np.abs(y) < 2**53).all() and (y == np.trunc(y)).all():
        y = y.astype(np.int64)
    if n_features is not None:
        if X.shape[1] > n_features:
            raise ValueError(
                f"{path} has {X.shape[1]} features, more than {n_features}: {remedy}"
            )
        X.resize((X.shape[0], n_features))  # what a file never names is 0
    return Data(path, X, y, zero_based)


def _opened(
    path: str, zero_based: bool | None, n_features: int | None, remedy: str
) -> Data:
    """Examples of a store, which stay on the disk."""
    import numpy as np

    from ..io import RowStore

    if zero_based is not None:
        raise ValueError(
            f"{path} is a store; --zero-based and --one-based are for text"
        )
    store = RowStore.open(path)
    if n_features not in (None, store.n_features):
        raise ValueError(
            f"{path} has {store.n_features} features, not {n_features}: {remedy}"
        )
    y = store.y
    y = y.astype(np.int64) if y.dtype.kind == "i" else y
    return Data(path, store, y, store.zero_based)


def refuse_untrainable(examples: Data) -> None:
    """Refuse examples that no classifier can be trained on."""
    labels = labels_of(examples)
    if len(labels) < 2:
        raise ValueError(
            f"{examples.path} holds one class only, {labels[0]}: training needs two or "
            "more"
        )
    if examples.y.dtype.kind == "f":
        odd = [label for label in labels if label % 1 or abs(label) >= 2**53]
        raise ValueError(
            f"{examples.path} has labels that are not whole numbers below 2**53, such "
            f"as {odd[0]}: training tells classes apart; --task regression fits targets"
        )
    if examples.X.nnz == 0:
        raise ValueError(f"{examples.path} holds labels only, no values")


def facts_of(examples: Data) -> dict[str, Any]:
    """Size of the data, for JSON."""
    n, d = examples.shape
    return {
        "path": examples.path,
        "n": n,
        "d": d,
        "nnz": int(examples.X.nnz),
        "zero_based": examples.zero_based,
    }


def labels_of(examples: Data) -> list[Any]:
    """The different labels, sorted, as Python numbers."""
    import numpy as np

    return np.unique(examples.y).tolist()


def shortened(labels: Sequence[Any]) -> str:
    """The first ten labels."""
    more = ", ..." if len(labels) > 10 else ""
    return ", ".join(map(str, labels[:10])) + more


def summary(examples: Data, classes: bool = True) -> str:
    """Size of the data, in a line."""
    n, d = examples.shape
    found = labels_of(examples)
    about = f"{len(found)} classes"
    if not classes:
        about = f"targets from {found[0]:g} to {found[-1]:g}"
    return (
        f"{examples.path}: {n:,} examples, {d:,} features, {examples.X.nnz:,} values, "
        f"{about}"
    )
