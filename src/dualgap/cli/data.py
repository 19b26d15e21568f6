"""Files of the commands: checks before any work, examples, models to write."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .parser import Values

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

    #: A model: an estimator or, loaded faster, a PlainLinearSVC with its attributes.
    Model: TypeAlias = BaseEstimator


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
    refuse_model(path, remedy)  # which a file without permission fails


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


def refuse_no_model(path: str) -> str:
    """Return the package that wrote a model file, or raise an error."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a model file", path)
    whose = whose_model(path)
    if whose is None:
        raise ValueError(
            f"{path} is not a model file of dualgap, LIBLINEAR or LIBSVM; give a file "
            "that train has written"
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


@dataclass(frozen=True)
class FileExamples:
    """Examples of a file, with facts about the file."""

    path: str
    X: MatrixLike
    y: NDArray[np.generic]
    zero_based: bool
    #: Whether y contains labels; else it is all 0.
    labelled: bool = True
    #: Labels, if each row has any number of them: y has a column of 0 and 1 for each.
    several: Sequence[str] = ()
    #: For tables, and stores of tables: what the columns became.
    features: Features | None = None
    #: Weights of the examples.
    weight: NDArray[np.float64] | None = None
    #: Sentences about what was changed or left out.
    said: Sequence[str] = ()
    #: Missing values of each column that has some.
    gaps: Mapping[str, int] = field(default_factory=dict)

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

    @cached_property
    def labels(self) -> list[Label]:
        """The distinct labels, sorted, as Python values."""
        if self.several:
            return list(self.several)
        import numpy as np

        return np.unique(self.y).tolist()

    def facts(self) -> dict[str, object]:
        """Return the size of the data, for JSON."""
        n, d = self.shape
        size = {"path": self.path, "n": n, "d": d, "nnz": self.nnz}
        return size | {"zero_based": self.zero_based}

    def notes(self) -> dict[str, Scalar]:
        """Return the facts about training data that a model file keeps."""
        table = {} if self.features is None else {"columns": self.features.to_json()}
        return {"zero_based": self.zero_based, "examples": self.shape[0], **table}

    def tell(self) -> None:
        """Print what was changed or left out in reading, if anything was."""
        if self.said:
            print(f"{self.path}: {'; '.join(self.said)}.", file=sys.stderr)

    def summary(self, task: str = "classification") -> str:
        """Return a line with the size of the data."""
        n, d = self.shape
        text = f"{self.path}: {n:,} examples, {d:,} features"
        if self.features is not None and self.features.label is not None:
            text += f", labels in column {self.features.label}"
        if task == "regression":
            return f"{text}, targets from {self.y.min():g} to {self.y.max():g}"
        what = "labels" if self.several else "classes"
        return text if task == "one-class" else f"{text}, {len(self.labels):,} {what}"


class Trained(NamedTuple):
    """A model of a file, and how its training data were read."""

    model: Model
    notes: Mapping[str, Scalar]
    scaling: Scaling | None
    #: Package that wrote the file.
    kind: str = "dualgap"

    @property
    def features(self) -> Features | None:
        """Return what the columns of a table became."""
        text = self.notes.get("columns")
        if not isinstance(text, str):
            return None
        from ..data.features import Features

        return Features.from_json(text)


def table_options(o: Values) -> TableOptions:
    """Return what the options say about the columns of a table."""
    from ..data.table_file import TableOptions

    given = {
        key: value
        for key in TableOptions._fields
        if (value := getattr(o, key, None)) is not None
    }
    for key in given.keys() & {"columns", "one_hot"}:
        names = re.findall(r'\s*"([^"]+)"\s*(?=,|$)|([^,]+)', given[key])
        given[key] = [(quoted or name).strip() for quoted, name in names] or [""]
    return TableOptions(**given)


def _refuse_options(name: str, what: str, **given: object) -> None:
    """Raise an error for options that are not for a kind of data."""
    options = [
        "--zero-based and --one-based"
        if key == "zero_based"
        else f"--{key.replace('_', '-')}"
        for key, value in given.items()
        if value not in (None, ())
    ]
    if options:
        raise ValueError(f"{name} is {what}; leave {' and '.join(options)} out")


def read_data(
    o: Values,
    trained: Trained | None = None,
    *,
    needs_label: bool = True,
    training: bool = True,
) -> FileExamples:
    """Read the examples of DATA, of any kind; whole labels become int64.

    With `trained`, they are like the training data of MODEL. `needs_label`: whether a
    table without labels raises an error. `training`: whether rows may be left out as in
    training.
    """
    path, base, width = o.data, o.zero_based, getattr(o, "n_features", None)
    remedy = "leave --n-features out, or give a larger number"
    if trained is not None:
        known = trained.notes.get("zero_based")
        base = known if base is None and isinstance(known, bool) else base
        remedy = f"give data like the training data of {o.model}"
        width = trained.model.n_features_in_
    options, weights = table_options(o), getattr(o, "weights", None)
    several = [] if trained is None else labels_in(trained.model)
    if is_store(path):
        weight, found = None, _opened(o, options)
    else:
        weight = None if weights is None else weights_in(weights)
        features = None if trained is None else trained.features
        columns = Values(
            options=options, known=features, needs_label=needs_label,
            training=training, weight=weight,
        )  # fmt: skip
        found = _of_file(o, base, width, columns, several)
    if several and not found.several:  # such as a table, with one label a row
        found = replace(found, labelled=False)
    name, (n, d) = found.path, found.shape
    if n == 0:
        raise ValueError(f"{name} has no examples; give a file with data")
    read = found.features
    new = trained is not None and trained.features is None and not training
    if new and read is not None and not read.plain:
        words = ", ".join(column.name for column in read.columns if column.words)
        raise ValueError(
            f"{name} has words ({words}), but {o.model} was trained on numbers alone; "
            "give data like its training data"
        )
    widened = trained is not None and trained.kind == "LIBSVM" and d > (width or 0)
    if width is not None and d != width and not widened:
        than = "more than" if d > width else "not"
        raise ValueError(f"{name} has {d} features, {than} {width}; {remedy}")
    if weight is not None:
        if found.weight is None:
            found = replace(found, weight=weight.numbers(n))
        weight.end()
        name = weight.name
    own = found.weight
    if own is not None and not (own.min() >= 0.0 < own.max() < float("inf")):
        told = "has weights that are negative, not finite or all 0"
        raise ValueError(f"{name} {told}; give numbers from 0")
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


def _with_table(examples: FileExamples, known: Sequence[str]) -> FileExamples:
    """Return examples with a table of labels; those that a model lacks are left out."""
    import numpy as np
    from scipy import sparse

    y = examples.y
    labels = list(known) or sorted({label for own in y for label in own})
    if not labels:
        raise ValueError(f"{examples.path} has no labels; give a file with labels")
    place = {label: k for k, label in enumerate(labels)}
    each = [sorted({place[label] for label in own if label in place}) for own in y]
    ends = np.cumsum([0, *map(len, each)])
    columns = np.array([k for own in each for k in own], np.int32)
    entries = np.ones(len(columns), np.int8), columns, ends
    table = sparse.csr_matrix(entries, shape=(len(y), len(labels)))
    lost = sum(len({*own}) for own in y) - len(columns)
    said = [f"labels unknown to the model: {lost:,}"] if lost else []
    return replace(examples, y=table, several=labels, said=[*examples.said, *said])


def _of_file(
    o: Values,
    base: bool | None,
    width: int | None,
    columns: Values,
    known: Sequence[str],
) -> FileExamples:
    """Read the examples of a file or standard input; `columns` are of `read_table`."""
    from ..data.opening import open_data

    path = o.data
    with open_data(path, sys.stdin.buffer if path == DASH else None) as file:
        name, kind, options = file.name, file.kind, columns.options._asdict()
        several = getattr(o, "several_labels", False) or bool(known)
        if kind == "svmlight":
            what = "svmlight text, not a table: it has no commas, semicolons, tabs or "
            _refuse_options(name, f"{what}bars between columns", **options)
            found = _svmlight(file, base, o.n_jobs, width, several)
            return _with_table(found, known) if several else found
        if several and not known:
            raise ValueError(
                f"{name} is not svmlight text; leave --several-labels out, or write "
                "the labels as in 3,7 1:0.5"
            )
        from ..data.chunks import read_arrays
        from ..data.tables import TABLES, read_table

        what = "a table, not svmlight text"
        _refuse_options(name, what, zero_based=o.zero_based)
        if kind in TABLES:
            rows, features, said, gaps = read_table(
                file.content, kind, name, **vars(columns)
            )
            found = _examples(name, rows.X, rows.y, rows.weight)
            return replace(found, features=features, said=said, gaps=gaps)
        _refuse_options(name, "a file of arrays X and y, not a table", **options)
        X, y, weight = read_arrays(file.content, kind, name)
        if y is None and columns.needs_label:
            raise ValueError(f"{name} has no labels; save an array y with X")
        return _examples(name, X, y, weight)


def _examples(
    name: str,
    X: MatrixLike,
    y: NDArray[np.generic] | None,
    weight: NDArray[np.float64] | None,
) -> FileExamples:
    """Return examples whose indices start at 1, perhaps without labels."""
    import numpy as np

    labels = _whole(np.zeros(X.shape[0]) if y is None else y)
    return FileExamples(name, X, labels, False, y is not None, weight=weight)


def told_of_text(file: DataFile) -> list[str]:
    """Return sentences about what is not used of svmlight text."""
    from ..data.svmlight import has_queries

    queries = file.kind == "svmlight" and has_queries(file.start)
    return ["qid is not used, because no command ranks"] if queries else []


def _svmlight(
    file: DataFile,
    zero_based: bool | None,
    n_jobs: int | None,
    width: int | None,
    several: bool,
) -> FileExamples:
    from ..data import load_svmlight

    content = file.name if file.plain else file.content  # a path is mapped
    # If the base is unknown, read the indices as written, and then look for index 0.
    X, y = load_svmlight(
        content,
        zero_based=True if zero_based is None else zero_based,
        n_jobs=n_jobs,
        multilabel=several,
    )
    if zero_based is None:
        zero_based = bool(X.nnz) and int(X.indices.min()) == 0
        if not zero_based and X.nnz:
            X.indices -= 1
            X.resize((X.shape[0], X.shape[1] - 1))
    if width is not None and X.shape[1] < width:
        X.resize((X.shape[0], width))  # features that do not occur are 0
    said = told_of_text(file)
    return FileExamples(file.name, X, _whole(y), zero_based, said=said)


def _whole(y: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return whole numbers as int64, and other labels unchanged."""
    import numpy as np

    if y.dtype.kind == "f" and (np.abs(y) < 2**53).all() and (y == np.trunc(y)).all():
        return y.astype(np.int64)
    return y


def read_model(path: str, told: dict[str, float | None]) -> Trained:
    """Read a model file of dualgap, LIBLINEAR or LIBSVM."""
    from ..models import read_liblinear, read_libsvm
    from ..models.files import load_parts

    whose = refuse_no_model(path)
    if whose == "dualgap":
        model, notes, scaling = load_parts(path)
        return Trained(model, {"zero_based": False, **notes}, scaling)
    read = read_liblinear if whose == "LIBLINEAR" else read_libsvm
    model = read(
        path, C=told.get("C") or 1.0, epsilon=told.get("epsilon") or 0.0,
        nu=told.get("nu") or 0.5,
    )  # fmt: skip
    return Trained(model, {"zero_based": False}, None, whose)


def read_as_trained(o: Values, *, whole: bool = False) -> tuple[Model, FileExamples]:
    """Read a model, and examples in the format of its training data.

    With `whole` a classifier is an estimator, with the methods of certified answers.
    """
    from ..models.plain import load_plain

    check_files(o)
    # Without scikit-learn if possible: its import takes longer than the prediction.
    plain = refuse_no_model(o.model) == "dualgap" and not (whole or is_store(o.data))
    loaded = load_plain(o.model) if plain else None
    trained = Trained(*loaded) if loaded else read_model(o.model, {})
    examples = read_data(o, trained, needs_label=False, training=False)
    if trained.kind == "LIBSVM":  # whose file lacks columns without support vectors
        model, d = trained.model, examples.shape[1]
        model.support_vectors_.resize(len(model.support_), d)
        model.n_features_in_ = d
    return trained.model, rescaled(examples, trained.scaling)


def labels_in(model: Model) -> list[str]:
    """Return the labels of a model that gives each row any number of them."""
    from ..problems.reductions import has_labels

    return [str(label) for label in model.classes_] if has_labels(model) else []


def uncalibrated(model: Model) -> Model:
    """Return a model without its probabilities, if it has any."""
    return getattr(model, "estimator_", model)


def rescaled(examples: FileExamples, scaling: Scaling | None) -> FileExamples:
    """Return examples with the scaling of a model applied."""
    if scaling is None:
        return examples
    refuse_store(examples.path, "a model of --standardize")
    return replace(examples, X=scaling.apply(examples.X))


def _opened(o: Values, options: TableOptions) -> FileExamples:
    """Return the examples of a store; they stay on the disk."""
    import numpy as np

    from ..data import RowStore

    path = o.data
    what = "a store, not svmlight text or a table"
    _refuse_options(path, what, **options._asdict(), zero_based=o.zero_based)
    if getattr(o, "weights", None) is not None:
        raise ValueError(
            f"{path} is a store, whose rows are in random order; give --weights to "
            "convert, and the store keeps them"
        )
    store = RowStore.open(path)
    y = store.y
    y = y.astype(np.int64) if y.dtype.kind == "i" else y
    if store.classes is not None:
        y = np.array(store.classes)[y]
    return FileExamples(path, store, y, store.zero_based, features=store.features)


def shortened(labels: Sequence[Label]) -> str:
    """Return the first ten labels as text."""
    more = ", ..." if len(labels) > 10 else ""
    return ", ".join(map(str, labels[:10])) + more
