"""Data files of the commands: reading examples."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias

from .files import DASH, is_store, refuse_no_model, refuse_store, refuse_unreadable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    from ..data.chunks import Given
    from ..data.features import Features
    from ..data.model_file import Scalar
    from ..data.opening import DataFile
    from ..data.scaling import Scaling
    from ..data.table_file import TableOptions
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
    #: For tables, and stores of tables: what the columns became.
    features: Features | None = None
    #: Weights of the examples.
    weight: NDArray[np.float64] | None = None
    #: Sentences about what was changed or left out.
    said: Sequence[str] = ()

    @property
    def shape(self) -> tuple[int, int]:
        return (self.X.shape[0], self.X.shape[1])

    @property
    def nnz(self) -> int:
        """Number of stored values or, for a dense matrix, of non-zero values."""
        found = getattr(self.X, "nnz", None)
        return int((self.X != 0.0).sum() if found is None else found)

    @property
    def names(self) -> list[str] | None:
        """Names of the features of a table."""
        return None if self.features is None else self.features.names


class TableReading(NamedTuple):
    """Columns of a table as a command reads them."""

    options: TableOptions | None = None
    #: The features of a model.
    known: Features | None = None
    #: Whether a table without labels raises an error.
    needs_label: bool = True
    #: Whether rows may be left out as in training.
    training: bool = True
    #: File of weights.
    weights: str | None = None

    @property
    def asked(self) -> list[str]:
        """The options that are for tables alone."""
        given = self.options._asdict() if self.options else {}
        return [
            f"--{key.replace('_', '-')}"
            for key, value in given.items()
            if value not in (None, ())
        ]


def table_options(o: Values) -> TableOptions:
    """Return what the options say about the columns of a table."""
    from ..data.table_file import TableOptions

    names = {
        key: [name.strip() for name in value.split(",")]
        for key in ("columns", "one_hot")
        if (value := getattr(o, key, None)) is not None
    }
    return TableOptions(
        o.label,
        names.get("columns"),
        getattr(o, "weight", None),
        names.get("one_hot", ()),
        getattr(o, "missing", None),
        o.decimal,
    )


def read_data(
    path: str,
    zero_based: bool | None,
    n_jobs: int | None,
    n_features: int | None = None,
    remedy: str = "",
    reading: TableReading | None = None,
    base: bool | None = None,
) -> FileExamples:
    """Read the examples of a data file of any kind; whole labels become int64.

    `n_features` sets the width of svmlight text; a file with more features raises an
    error with the remedy. `base` tells whether indices start at 0 if `zero_based` is
    None.
    """
    reading = reading or TableReading()
    weight = None if reading.weights is None else weights_in(reading.weights)
    if is_store(path):
        return _opened(path, zero_based, n_features, remedy, reading)
    from ..data.opening import open_data

    with open_data(path, sys.stdin.buffer if path == DASH else None) as file:
        name = file.name
        if file.kind == "svmlight":
            if reading.asked:
                raise ValueError(
                    f"{name} is svmlight text, not a table; leave "
                    f"{' and '.join(reading.asked)} out"
                )
            base = base if zero_based is None else zero_based
            content = path if file.plain else file.content  # a path is mapped
            found = _svmlight(content, name, base, n_jobs, n_features, remedy)
            found = found._replace(said=told_of_text(file))
        elif zero_based is not None:
            raise ValueError(
                f"{name} is a table, not svmlight text; leave --zero-based and "
                "--one-based out"
            )
        else:
            found = _table(file, reading, weight)
    n, d = found.shape
    if n == 0:
        raise ValueError(f"{name} has no examples; give a file with data")
    if n_features not in (None, d):
        raise ValueError(f"{name} has {d} features, not {n_features}; {remedy}")
    if weight is not None:
        if found.weight is None:
            found = found._replace(weight=weight.numbers(n))
        weight.end()
        name = weight.name
    if found.weight is not None:
        _refuse_weights(found.weight, name)
    return found


def weights_in(path: str) -> Given:
    """Return the weights in a file, one on each line."""
    from ..data.chunks import Given

    with open(path, encoding="utf-8") as file:
        try:
            return Given(path, [float(line) for line in file if line.strip()])
        except ValueError as error:
            raise ValueError(
                f"{path} is not a file of weights, one number on each line: {error}"
            ) from None


def _refuse_weights(weight: NDArray[np.float64], name: str) -> None:
    """Raise an error for weights that are negative or not finite."""
    if not 0.0 <= weight.min() <= weight.max() < float("inf"):
        raise ValueError(
            f"{name} has weights that are negative or not finite; give numbers from 0"
        )


def _table(file: DataFile, reading: TableReading, weight: Given | None) -> FileExamples:
    """Read a table, or arrays."""
    import numpy as np

    content, kind, name = file.content, file.kind, file.name
    if kind in ("npz", "npy"):
        if reading.asked:
            raise ValueError(
                f"{name} has arrays X and y, not columns; leave "
                f"{' and '.join(reading.asked)} out"
            )
        from ..data.chunks import read_arrays

        X, y, own = read_arrays(content, kind, name)
        if y is None and reading.needs_label:
            raise ValueError(f"{name} has no labels; save an array y with X")
        labels = np.zeros(X.shape[0]) if y is None else y
        labelled = y is not None
        return FileExamples(name, X, _whole(labels), False, labelled, weight=own)
    from ..data.tables import read_table

    rows, features, said = read_table(
        content, kind, name, reading.options, reading.known,
        needs_label=reading.needs_label, training=reading.training, weight=weight,
    )  # fmt: skip
    y = np.zeros(rows.X.shape[0]) if rows.y is None else rows.y
    labelled = rows.y is not None
    return FileExamples(
        name, rows.X, _whole(y), False, labelled, features, rows.weight, said
    )


def told_of_text(file: DataFile) -> list[str]:
    """Return sentences about what is not used of svmlight text."""
    from ..data.svmlight import has_queries

    queries = file.kind == "svmlight" and has_queries(file.start)
    return ["qid is not used, because no command ranks"] if queries else []


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
        reading_of(notes, o, needs_label=False, training=False), base_of(notes),
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
    return examples._replace(X=scaling.apply(examples.X))


def base_of(notes: Mapping[str, Scalar]) -> bool | None:
    """Whether the indices of the training data started at 0; None if unknown."""
    base = notes.get("zero_based")
    return base if isinstance(base, bool) else None


def reading_of(
    notes: Mapping[str, Scalar], o: Values, needs_label: bool, training: bool
) -> TableReading:
    """Return how to read data like those that a model was trained on."""
    text = notes.get("columns")
    known = None
    if isinstance(text, str):
        from ..data.features import Features

        known = Features.from_json(text)
    weights = getattr(o, "weights", None)
    return TableReading(table_options(o), known, needs_label, training, weights)


def _opened(
    path: str,
    zero_based: bool | None,
    n_features: int | None,
    remedy: str,
    reading: TableReading,
) -> FileExamples:
    """Return the examples of a store; they stay on the disk."""
    import numpy as np

    from ..data import RowStore

    if reading.asked:
        raise ValueError(
            f"{path} is a store, not a table; leave {' and '.join(reading.asked)} out"
        )
    if reading.weights is not None:
        raise ValueError(
            f"{path} is a store, whose rows are in random order; give --weights to "
            "convert, and the store keeps them"
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
    if store.classes is not None:
        y = np.array(store.classes)[y]
    return FileExamples(path, store, y, store.zero_based, features=store.features)


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
    return examples._replace(X=scaling.apply(examples.X)), scaling


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
    if examples.features is not None:
        notes["columns"] = examples.features.to_json()
    return notes


def labels_of(examples: FileExamples) -> list[Label]:
    """Return the distinct labels, sorted, as Python values."""
    import numpy as np

    return np.unique(examples.y).tolist()


def shortened(labels: Sequence[Label]) -> str:
    """Return the first ten labels as text."""
    more = ", ..." if len(labels) > 10 else ""
    return ", ".join(map(str, labels[:10])) + more


def tell(examples: FileExamples) -> None:
    """Print what was changed or left out in reading, if anything was."""
    if examples.said:
        print(f"{examples.path}: {'; '.join(examples.said)}.", file=sys.stderr)


def summary(examples: FileExamples, task: str = "classification") -> str:
    """Return a line with the size of the data."""
    n, d = examples.shape
    text = f"{examples.path}: {n:,} examples, {d:,} features"
    if examples.features is not None and examples.features.label is not None:
        text += f", labels in column {examples.features.label}"
    if task == "one-class":
        return text
    found = labels_of(examples)
    if task == "regression":
        return f"{text}, targets from {found[0]:g} to {found[-1]:g}"
    return f"{text}, {len(found):,} classes"
