"""Data files of the commands: reading examples, and checks of outputs."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    from ..data.model_file import Scalar
    from ..data.scaling import Scaling
    from ..data.types import Label, MatrixLike
    from .parser import Values

    #: A model: an estimator or, loaded faster, a PlainLinearSVC with its attributes.
    Model: TypeAlias = BaseEstimator


class FileExamples(NamedTuple):
    """Examples of a file, with facts about the file."""

    path: str
    X: MatrixLike
    y: NDArray[np.generic]
    zero_based: bool
    #: Whether y contains labels; else it is all 0.
    labelled: bool = True
    #: For tables: names of the features, the label column, and the feature columns by
    #: name or number.
    names: list[str] | None = None
    label: str | None = None
    columns: list[str] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return (self.X.shape[0], self.X.shape[1])

    @property
    def nnz(self) -> int:
        """Number of stored values or, for a dense matrix, of non-zero values."""
        found = getattr(self.X, "nnz", None)
        return int((self.X != 0.0).sum() if found is None else found)


class Columns(NamedTuple):
    """Columns of a table that a command uses."""

    label: str | None = None
    features: list[str] | None = None
    #: Whether a table without labels raises an error.
    needs_label: bool = True
    #: Whether an option named columns.
    asked: bool = False


def chosen_columns(label: str | None, columns: str | None) -> Columns:
    """Return the columns that the options --label and --columns name."""
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    return Columns(label, names, asked=label is not None or names is not None)


def refuse_unreadable(path: str, remedy: str = "DATA comes before MODEL") -> None:
    """Raise an error for a missing file, a folder or a model, before any work.

    The error for a model ends with the remedy.
    """
    if path == STDIN:
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


def refuse_unwritable(path: str, inputs: Sequence[str]) -> None:
    """Raise an error for an output that cannot be written, or is an input."""
    from ..data.atomic import check_target

    check_target(path)
    for other in inputs:
        if other == STDIN:
            continue
        if os.path.exists(path) and os.path.samefile(path, other):
            raise ValueError(f"{path} is the input; choose another name for the output")


def refuse_overwriting(path: str, of: str, known: Callable[[bytes], bool]) -> None:
    """Raise an error if output would replace a file of another kind, such as data.

    `known` tells from 15 bytes whether a file is one `of` the kind.
    """
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        start = file.read(15)
    if start and not known(start):
        raise ValueError(
            f"{path} exists and is not {of}; remove it first, or choose another name"
        )


def refuse_overwriting_by_model(path: str) -> None:
    """Raise an error if a model would replace another file."""
    refuse_overwriting(path, "a model file", lambda start: start[8:9] == b"{")


def read_data(
    path: str,
    zero_based: bool | None,
    n_jobs: int | None,
    n_features: int | None = None,
    remedy: str = "",
    columns: Columns | None = None,
    base: bool | None = None,
) -> FileExamples:
    """Read the examples of a data file of any kind; whole labels become int64.

    `n_features` sets the width of svmlight text; a file with more features raises an
    error with the remedy. `base` tells whether indices start at 0 if `zero_based` is
    None.
    """
    from ..data.tables import read_table

    if is_store(path):
        return _opened(path, zero_based, n_features, remedy, columns)
    wanted = columns or Columns()
    with _source(path) as (kind, content, name):
        if kind == "svmlight":
            if wanted.asked:
                raise ValueError(
                    f"{name} is svmlight text, not a table; leave --label and "
                    "--columns out"
                )
            base = base if zero_based is None else zero_based
            return _svmlight(content, name, base, n_jobs, n_features, remedy)
        if kind == "binary":
            raise ValueError(
                f"{name} is not a data file; give svmlight text, CSV, TSV, Parquet, "
                "Arrow or .npz"
            )
        if zero_based is not None:
            raise ValueError(
                f"{name} is a table, not svmlight text; leave --zero-based and "
                "--one-based out"
            )
        arrays = kind in ("npz", "npy") and not wanted.asked
        label, features = (None, None) if arrays else wanted[:2]
        table = read_table(content, kind, name, label, features, wanted.needs_label)
    import numpy as np

    n, d = table.X.shape
    if n == 0:
        raise ValueError(f"{name} has no examples; give a file with data")
    if n_features not in (None, d):
        raise ValueError(f"{name} has {d} features, not {n_features}; {remedy}")
    return FileExamples(
        name,
        table.X,
        _whole(np.zeros(n) if table.y is None else table.y),
        False,
        table.y is not None,
        table.names,
        table.label,
        None if arrays else table.columns,
    )


STDIN = "-"


class _NamedBytes(io.BytesIO):
    """Bytes from a pipe or a compressed file, with a name for messages."""

    name = ""


@contextlib.contextmanager
def _source(path: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the kind of a file, its content, and its name for messages.

    The content of svmlight text is the path itself if the file can be read directly.
    """
    from ..data.svmlight import decompressed
    from ..data.tables import kind_of
    from ..data.text_sources import START

    def held(pieces: Iterable[bytes]) -> _NamedBytes:
        stream = _NamedBytes()
        stream.name = name
        for piece in pieces:
            stream.write(piece)
        stream.seek(0)
        return stream

    name = "standard input" if path == STDIN else path
    with contextlib.ExitStack() as stack:
        if path == STDIN:
            file: BinaryIO = held([sys.stdin.buffer.read()])
        else:
            file = stack.enter_context(open(path, "rb"))
            if not os.path.isfile(path):  # a pipe can be read only once
                file = held([file.read()])
        kind, suffix = kind_of(file.read(START))
        file.seek(0)
        if suffix is not None:
            kind, _ = kind_of(next(decompressed(file, suffix, name), b""))
            file.seek(0)
            named_so = os.path.splitext(path)[1].lower() == suffix
            if kind != "svmlight" or not named_so or isinstance(file, _NamedBytes):
                file = held(decompressed(file, suffix, name))
        plain = kind == "svmlight" and not isinstance(file, _NamedBytes)
        yield kind, path if plain else file, name


def _svmlight(
    content: str | BinaryIO,
    name: str,
    zero_based: bool | None,
    n_jobs: int | None,
    n_features: int | None,
    remedy: str,
) -> FileExamples:
    from ..data import load_svmlight

    # If the base is unknown, read the indices as written, and then look for index 0.
    X, y = load_svmlight(
        content, zero_based=True if zero_based is None else zero_based, n_jobs=n_jobs
    )
    if zero_based is None:
        zero_based = bool(X.nnz) and int(X.indices.min()) == 0
        if not zero_based and X.nnz:
            X.indices -= 1
            X.resize((X.shape[0], X.shape[1] - 1))
    if X.shape[0] == 0:
        raise ValueError(f"{name} has no examples; give a file with data")
    if n_features is not None:
        if X.shape[1] > n_features:
            raise ValueError(
                f"{name} has {X.shape[1]} features, more than {n_features}; {remedy}"
            )
        X.resize((X.shape[0], n_features))  # features that do not occur are 0
    return FileExamples(name, X, _whole(y), zero_based)


def _whole(y: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return whole numbers as int64, and other labels unchanged."""
    import numpy as np

    if y.dtype.kind == "f" and (np.abs(y) < 2**53).all() and (y == np.trunc(y)).all():
        return y.astype(np.int64)
    return y


def read_as_trained(o: Values, *, whole: bool = False) -> tuple[Model, FileExamples]:
    """Read a model, and examples in the format of its training data.

    With `whole` a classifier is an estimator, with the methods of certified answers.
    """
    from ..models.plain import load_plain

    refuse_unreadable(o.data)
    refuse_no_model(o.model)
    # Without scikit-learn if possible: its import takes longer than the prediction.
    loaded = None if whole or is_store(o.data) else load_plain(o.model)
    if loaded is None:
        from ..models.files import load_parts
        from ..problems.reductions import refuse_labels

        loaded = load_parts(o.model)
        refuse_labels(loaded[0], "the command line")
    fitted, notes, scaling = loaded
    examples = read_data(
        o.data, o.zero_based, o.n_jobs, fitted.n_features_in_,
        f"give data like the training data of {o.model}",
        columns_of(notes, o.label), base_of(notes),
    )  # fmt: skip
    return fitted, rescaled(examples, scaling)


def uncalibrated(model: Model) -> Model:
    """Return a model without its probabilities, if it has any."""
    return getattr(model, "estimator_", model)


def rescaled(examples: FileExamples, scaling: Scaling | None) -> FileExamples:
    """Return examples with the scaling of a model applied."""
    if scaling is None:
        return examples
    refuse_store(examples.path, "a model of --standardize")
    return examples._replace(X=scaling.transform(examples.X))


def base_of(notes: Mapping[str, Scalar]) -> bool | None:
    """Whether the indices of the training data started at 0; None if unknown."""
    base = notes.get("zero_based")
    return base if isinstance(base, bool) else None


def columns_of(notes: Mapping[str, Scalar], label: str | None) -> Columns:
    """Return the columns that a model was trained on; labels are optional."""
    text = notes.get("columns")
    names = json.loads(text) if isinstance(text, str) else None
    if label is not None:
        return Columns(label, names, asked=True)
    known = notes.get("label")
    return Columns(known if isinstance(known, str) else None, names, False)


def _opened(
    path: str,
    zero_based: bool | None,
    n_features: int | None,
    remedy: str,
    columns: Columns | None,
) -> FileExamples:
    """Return the examples of a store; they stay on the disk."""
    import numpy as np

    from ..data import RowStore

    if columns is not None and columns.asked:
        raise ValueError(
            f"{path} is a store, not a table; leave --label and --columns out"
        )

    if zero_based is not None:
        raise ValueError(
            f"{path} is a store, not svmlight text; leave --zero-based and --one-based "
            "out"
        )
    store = RowStore.open(path)
    if n_features not in (None, store.n_features):
        raise ValueError(
            f"{path} has {store.n_features} features, not {n_features}; {remedy}"
        )
    y = store.y
    y = y.astype(np.int64) if y.dtype.kind == "i" else y
    return FileExamples(path, store, y, store.zero_based)


def refuse_untrainable(examples: FileExamples, command: str = "train") -> None:
    """Raise an error for examples that a classifier cannot be trained on.

    The remedies are for the user of a command.
    """
    labels = labels_of(examples)
    if len(labels) < 2:
        remedy = _of_other_task(examples, command, "one-class", "learns one class")
        raise ValueError(
            f"{examples.path} has only one class, {labels[0]}, and classification "
            f"needs two; {remedy}"
        )
    if examples.y.dtype.kind == "f":
        odd = [x for x in map(float, labels) if x % 1 or abs(x) >= 2**53]
        remedy = _of_other_task(examples, command, "regression", "predicts numbers")
        raise ValueError(
            f"{examples.path} has labels that are not whole numbers below 2**53, such "
            f"as {odd[0]}; {remedy}"
        )
    if examples.nnz == 0:
        raise ValueError(f"{examples.path} has only labels and no values; add features")


def _of_other_task(examples: FileExamples, command: str, task: str, does: str) -> str:
    """Return the remedy for data that are for another task than classification."""
    if is_store(examples.path):
        return (
            f"stores are for classification, and --task {task}, which {does}, needs "
            "the file that the store was made from"
        )
    if command != "train":
        return f"{command} trains classifiers, and dualgap train --task {task} {does}"
    return f"--task {task} {does}"


def refuse_unfit(examples: FileExamples, task: str) -> None:
    """Raise an error for examples that regression or one-class cannot use."""
    if examples.nnz == 0:
        raise ValueError(f"{examples.path} has only labels and no values; add features")
    if task == "regression" and examples.y.dtype.kind not in "if":
        raise ValueError(
            f"{examples.path} has labels that are not numbers, such as "
            f"{examples.y[0]!s}; leave --task regression out to train a classifier"
        )


def standardized(
    examples: FileExamples, wanted: bool
) -> tuple[FileExamples, Scaling | None]:
    """Return examples with standardised columns, and the scaling; or None for it."""
    if not wanted:
        return examples, None
    from ..data.scaling import Scaling

    scaling = Scaling.of(examples.X)
    return examples._replace(X=scaling.transform(examples.X)), scaling


def facts_of(examples: FileExamples) -> dict[str, object]:
    """Return the size of the data, for JSON."""
    n, d = examples.shape
    return {
        "path": examples.path,
        "n": n,
        "d": d,
        "nnz": examples.nnz,
        "zero_based": examples.zero_based,
    }


def notes_of(examples: FileExamples) -> dict[str, Scalar]:
    """Return the facts about the training data that a model file keeps."""
    notes: dict[str, Scalar] = {
        "zero_based": examples.zero_based,
        "examples": examples.shape[0],
    }
    if examples.columns is not None:
        notes["columns"] = json.dumps(examples.columns)
    if examples.label is not None:
        notes["label"] = examples.label
    return notes


def labels_of(examples: FileExamples) -> list[Label]:
    """Return the distinct labels, sorted, as Python values."""
    import numpy as np

    return np.unique(examples.y).tolist()


def shortened(labels: Sequence[Label]) -> str:
    """Return the first ten labels as text."""
    more = ", ..." if len(labels) > 10 else ""
    return ", ".join(map(str, labels[:10])) + more


def summary(examples: FileExamples, task: str = "classification") -> str:
    """Return a line with the size of the data."""
    n, d = examples.shape
    text = f"{examples.path}: {n:,} examples, {d:,} features"
    if examples.label is not None:
        text += f", labels in column {examples.label}"
    if task == "one-class":
        return text
    found = labels_of(examples)
    if task == "regression":
        return f"{text}, targets from {found[0]:g} to {found[-1]:g}"
    return f"{text}, {len(found):,} classes"
