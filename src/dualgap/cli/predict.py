"""``dualgap predict`` and ``dualgap score``: apply a model, and measure it.

The figures are accuracy, AUC and errors.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from .data import (
    DASH,
    FileExamples,
    labels_in,
    read_as_trained,
    shortened,
    uncalibrated,
)
from .options import Options
from .parser import UsageError, Values
from .report import print_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy import sparse

    from ..data.types import Label, MatrixLike
    from .data import Model

Figures = dict[str, "float | None"]

#: Rows from which the training accuracy of a kernel model is estimated.
SAMPLE = 10_000
PREDICT = (
    "dualgap predict a9a.t a9a.model labels.txt",
    "dualgap predict a9a.t a9a.model --scores > scores.txt",
    "dualgap predict a9a.t a9a.model --proba > probabilities.txt",
    "dualgap predict a9a.t a9a.model --json -o labels.txt",
    "dualgap predict a9a.t a9a.model --undecided '?'",
    "If DATA has labels, the figures of dualgap score but AUC go to standard error or "
    "into the JSON. Labels that are all 0 count as missing.",
    "A one-class model predicts 1 for inliers and -1 for outliers. Models of several "
    "labels predict them with commas between them.",
)
SCORE = (
    "dualgap score a9a.t a9a.model",
    "dualgap score a9a.t a9a.model --json",
    "Classification: accuracy, balanced accuracy (the mean over the classes of the "
    "fraction found) and AUC, the area under the ROC curve (with several classes, the "
    "mean of one versus the rest). Regression: mean squared error, mean absolute error "
    "and R2.",
)
OPTIONS = """
Output:
  --scores
    Write decision values instead of labels: one column for two classes (positive for
    the larger label), else one column per class.
  --proba --probability -b
    Write probabilities instead of labels, one column per class; standard error tells
    which. MODEL has to be of train --probability.
  --undecided LABEL
    Write LABEL where training to the end could still change the label. Models of train
    --bounds decide more.
"""


def add_predict(command: Options) -> None:
    """Add the options of predict."""
    command.add(OPTIONS)
    add_score(command)
    text = "File for the predictions, which appears when it is complete."
    command.output("OUT", text, "text", shown="standard output")


def add_score(command: Options) -> None:
    """Add the options of score."""
    command.data(store=True)
    command.trained_model()
    command.table_options(trained=True)
    command.jobs("predicting with a kernel")
    command.common()


def predict(o: Values) -> None:
    """Write the predictions, and tell their quality."""
    import numpy as np

    from ..data.atomic import is_device, write_atomically

    output = None if o.output == DASH else o.output
    if o.scores + o.proba + (o.undecided is not None) > 1:
        raise UsageError("--scores, --proba and --undecided exclude each other.")
    fitted, examples = read_as_trained(o, whole=o.undecided is not None)
    if o.proba and not hasattr(fitted, "calibrators_"):
        raise ValueError(f"{o.model} has no probabilities; train it with --probability")
    values, labels = predictions(fitted, examples.X, o.n_jobs)
    if o.proba:
        values = fitted._probabilities(values)
    figures, remark = quality(fitted, examples, labels)
    examples.tell()
    names = labels_in(fitted)
    if o.undecided is not None:
        labels = with_undecided(fitted, examples.X, labels, o.undecided)
    elif names:
        rows = [",".join(names[k] for k in row.indices) for row in labels]
        labels = np.array(rows, dtype=str)
    wanted = values if o.scores or o.proba else labels
    classes = [] if is_regression(fitted) else classes_of(fitted)
    if wanted.ndim == 1 or names or wanted.shape[1] != len(classes):
        classes = []  # the columns are no classes
    if output is not None:
        device = is_device(output)
        with open(output, "w") if device else write_atomically(output, "w") as file:
            file.writelines(_lines(wanted))
    if o.json:
        report = {"n": examples.shape[0], **figures, "remark": remark or None}
        if output is None:
            kind = "probabilities" if o.proba else "scores" if o.scores else "labels"
            report[kind] = wanted.tolist()
        columns = {"classes": classes} if classes else {}
        print_json(report | columns | {"output": output})
        return
    if output is None:
        sys.stdout.writelines(_lines(wanted))
    if classes:
        print(f"Columns: {', '.join(map(str, classes))}.", file=sys.stderr)
    scored = in_words(figures)
    told = f"{scored}; {remark}" if remark else scored
    print(told if scored else f"Not scored: {remark}.", file=sys.stderr)


def score(o: Values) -> None:
    """Print the figures of a model."""
    fitted, examples = read_as_trained(o)
    values, labels = predictions(fitted, examples.X, o.n_jobs)
    figures, remark = quality(fitted, examples, labels)
    if all(value is None for value in figures.values()):
        remedy = "" if examples.labelled else "; name their column with --label"
        raise ValueError(f"{o.data} cannot be scored: {remark}{remedy}")
    examples.tell()
    if not is_regression(fitted):
        figures["auc"] = auc(fitted, examples, values)
    if o.json:
        print_json({**figures, "remark": remark or None, **examples.facts()})
        return
    print(in_words(figures))
    if remark:
        print(remark, file=sys.stderr)


def _lines(predictions: NDArray[np.generic]) -> Iterator[str]:
    """Yield blocks of lines with one prediction each; floats read back exactly."""
    for begin in range(0, len(predictions), 8192):
        rows = predictions[begin : begin + 8192].tolist()
        if predictions.ndim == 2:
            rows = [" ".join(map(str, row)) for row in rows]
        yield "".join(f"{row}\n" for row in rows)


# ------------------------------------------------------------------------- figures


def is_regression(model: Model) -> bool:
    """Whether a model is a regression model."""
    return not (hasattr(model, "decision_function") or hasattr(model, "classes_"))


def is_novelty(model: Model) -> bool:
    """Whether a model is a one-class model."""
    return not is_regression(model) and not hasattr(model, "classes_")


def predictions(
    model: Model, X: MatrixLike, n_jobs: int | None
) -> tuple[NDArray[np.float64], NDArray[np.generic]]:
    """Return decision values, shape (n,) or (n, K), and labels, shape (n,).

    A model with probabilities predicts the labels of the largest ones.
    """
    fitted = uncalibrated(model)
    if fitted is not model:
        values, _ = predictions(fitted, X, n_jobs)
        return values, model.classes_[model._probabilities(values).argmax(axis=1)]
    with warnings.catch_warnings():
        # A model fitted on a table has feature names, but svmlight text has none.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        if labels_in(fitted):
            from scipy import sparse

            table = sparse.csr_matrix(fitted.predict(X))
            return fitted.decision_function(X), table
        if is_regression(fitted):
            values = fitted.predict(X)
            return values, values
        if is_novelty(fitted):
            return fitted.decision_function(X), fitted.predict(X)
        if hasattr(fitted, "kernel"):
            fitted.n_jobs = -1 if n_jobs is None else n_jobs
            values = fitted._values(X)  # the kernel is computed once for both
            return fitted._shaped(values), fitted._decide(values)
        values = fitted.decision_function(X)
    codes = values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(int)
    return values, fitted.classes_[codes]


def with_undecided(
    fitted: Model, X: MatrixLike, labels: NDArray[np.generic], undecided: str
) -> NDArray[np.generic]:
    """Return labels, and another one where training to the end could change them."""
    plain = uncalibrated(fitted)
    if not hasattr(plain, "certified_labels") or labels_in(plain):
        raise ValueError("--undecided is for classification with --C; leave it out")
    if not hasattr(plain, "certificate_"):
        raise ValueError("--undecided needs a model of dualgap train; leave it out")
    if undecided in map(str, fitted.classes_.tolist()):
        raise ValueError(
            f"--undecided {undecided} is one of the classes; give a word that is no "
            "label, such as '?'"
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        certain = plain.certified_labels(X)
    found: NDArray[np.generic] = labels.astype(object)
    found[~certain] = undecided
    return found


def quality(
    fitted: Model, examples: FileExamples, labels: NDArray[np.generic]
) -> tuple[Figures, str]:
    """Return accuracies or errors, None where they are undefined, and a remark."""
    numbers = is_regression(fitted)
    names = _ERRORS if numbers else ("accuracy", "balanced_accuracy")
    if getattr(fitted, "loss", None) == "quantile":
        names = _OF_QUANTILE
    found, remark = dict[str, "float | None"](), "DATA has no labels"
    if examples.labelled and numbers:
        predicted = labels.astype("float64", copy=False)
        found, remark = _errors(fitted, examples, predicted)
    elif examples.several:
        found, remark, names = _of_labels(examples.y, labels), "", _SEVERAL
    elif examples.labelled:
        found, remark = _accuracies(fitted, examples, labels)
    return dict.fromkeys(names) | found, remark


_SEVERAL = ("exact_matches", "micro_f1", "hamming_loss")


def _of_labels(
    y: sparse.csr_matrix, predicted: sparse.csr_matrix
) -> dict[str, float | None]:
    """Return figures of tables with a column of 0 and 1 per label."""
    import numpy as np

    wrong, known = (predicted != y).tocsr(), predicted.nnz + y.nnz
    return {
        "exact_matches": float((np.diff(wrong.indptr) == 0).mean()),
        "micro_f1": 2 * predicted.multiply(y).nnz / known if known else None,
        "hamming_loss": wrong.nnz / (y.shape[0] * y.shape[1]),
    }


def auc(
    fitted: Model, examples: FileExamples, values: NDArray[np.float64]
) -> float | None:
    """Return the area under the ROC curve; None if it is undefined.

    With several classes it is the mean of one versus the rest. It is undefined if a
    class of the model does not occur in the data, or is the only one.
    """
    import numpy as np

    if examples.several:
        return None
    classes = classes_of(fitted)
    columns = values.T if values.ndim == 2 else [values]
    positives = classes if values.ndim == 2 else classes[-1:]
    areas = []
    for label, column in zip(positives, columns, strict=True):
        positive = examples.y == label
        n, m = int(positive.sum()), int((~positive).sum())
        if n == 0 or m == 0:
            return None
        # Ranks for the Mann-Whitney statistic; equal values get their mean rank.
        _, which, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - 0.5 * (counts - 1))[which]
        areas.append((ranks[positive].sum() - 0.5 * n * (n + 1)) / (n * m))
    return float(np.mean(areas))


def on_training_rows(
    fitted: Model, examples: FileExamples, n_jobs: int | None, most: int = SAMPLE
) -> Figures:
    """Return figures of a new model on its training rows; of a kernel, on `most`."""
    import numpy as np

    n, figures = examples.shape[0], Figures()
    plain = uncalibrated(fitted)
    if hasattr(plain, "kernel") and n > most:
        rows = np.random.default_rng(0).choice(n, most, replace=False)
        rows.sort()
        X = examples.X
        examples = replace(examples, X=X[rows], y=examples.y[rows])
        figures["rows_judged"] = most
    _, labels = predictions(fitted, examples.X, n_jobs)
    if is_novelty(fitted):
        figures["outliers"] = float((labels == -1).mean())
    else:
        figures |= quality(fitted, examples, labels)[0]
    if hasattr(plain, "support_"):
        figures["support_vectors"] = int(plain.support_.size)
    return figures


def in_words(figures: Figures) -> str:
    """Return figures as one line of text."""
    shares = {
        *("accuracy", "balanced_accuracy", "outliers", "targets_at_or_below"),
        *("exact_matches", "hamming_loss"),
    }
    return ", ".join(
        f"{_NAMES.get(name, name.replace('_', ' '))} "
        + (f"{100 * value:.2f} %" if name in shares else _number(name, value))
        for name, value in figures.items()
        if value is not None
    )


def _number(name: str, value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if name in _NAMES else f"{value:.4g}"


_NAMES = {"r2": "R2", "auc": "AUC", "micro_f1": "micro F1"}


def classes_of(fitted: Model) -> list[Label]:
    """Return the labels that a model predicts; -1 and 1 for a one-class model."""
    return fitted.classes_.tolist() if hasattr(fitted, "classes_") else [-1, 1]


_ERRORS = ("mean_squared_error", "mean_absolute_error", "r2")
_OF_QUANTILE = ("mean_pinball_loss", "targets_at_or_below")


def _accuracies(
    fitted: Model, examples: FileExamples, labels: NDArray[np.generic]
) -> tuple[Figures, str]:
    import numpy as np

    found, known = examples.labels, set(classes_of(fitted))
    strange = [label for label in found if label not in known]
    if found == [0]:
        return {}, "every label is 0, which counts as missing"
    if len(strange) == len(found):
        return {}, (
            f"the model has none of the labels ({shortened(found)}); "
            f"its classes are {shortened(sorted(known))}"
        )
    remark = ""
    if strange:
        rows = int(np.isin(examples.y, strange).sum())
        remark = (
            f"{rows} of {len(labels)} labels are unknown to the model "
            f"({shortened(strange)}) and count as errors"
        )
    right = labels == examples.y
    recalls = [float(right[examples.y == label].mean()) for label in found]
    return {
        "accuracy": float(right.mean()),
        "balanced_accuracy": sum(recalls) / len(recalls),
    }, remark


def _errors(
    fitted: Model, examples: FileExamples, predicted: NDArray[np.float64]
) -> tuple[Figures, str]:
    import numpy as np

    if examples.y.dtype.kind not in "if":
        return {}, "the labels of DATA are not numbers"
    y = np.asarray(examples.y, np.float64)
    if not y.any():
        return {}, "every target is 0, which counts as missing"
    if getattr(fitted, "loss", None) == "quantile":
        if predicted.ndim > 1:
            return {}, "the model has several quantiles, each with a loss of its own"
        q, above = float(np.ravel(fitted.quantile)[0]), y - predicted
        return {
            "mean_pinball_loss": float(np.maximum(q * above, (q - 1) * above).mean()),
            "targets_at_or_below": float((above <= 0.0).mean()),
        }, ""
    residuals, spread = y - predicted, float(np.var(y))
    square = float(np.mean(residuals**2))
    return {
        "mean_squared_error": square,
        "mean_absolute_error": float(np.mean(np.abs(residuals))),
        "r2": 1.0 - square / spread if spread > 0.0 else None,
    }, ""


COMMANDS = {
    "predict": (PREDICT, add_predict, predict),
    "score": (SCORE, add_score, score),
}
