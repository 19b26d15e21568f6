"""``dualgap predict`` and ``dualgap score``: apply a model, and measure it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .data import DASH, labels_in, read_as_trained
from .options import Options
from .parser import UsageError, Values
from .quality import (
    auc,
    in_words,
    is_regression,
    predictions,
    quality,
    with_undecided,
)
from .report import print_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy import sparse

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
    Write probabilities instead of labels, one column per class. MODEL has to be of
    train --probability.
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
        labels = np.array([_joined(row, names) for row in labels], dtype=str)
    wanted = values if o.scores or o.proba else labels
    if output is not None:
        device = is_device(output)
        with open(output, "w") if device else write_atomically(output, "w") as file:
            file.writelines(_lines(wanted))
    if o.json:
        report = {"n": examples.shape[0], **figures, "remark": remark or None}
        if output is None:
            kind = "probabilities" if o.proba else "scores" if o.scores else "labels"
            report[kind] = wanted.tolist()
        print_json(report | {"output": output})
        return
    if output is None:
        sys.stdout.writelines(_lines(wanted))
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


def _joined(row: sparse.csr_matrix, names: Sequence[str]) -> str:
    """Return the labels of a row of 0 and 1."""
    return ",".join(names[k] for k in row.indices)


def _lines(predictions: NDArray[np.generic]) -> Iterator[str]:
    """Yield blocks of lines with one prediction each; floats read back exactly."""
    for begin in range(0, len(predictions), 8192):
        rows = predictions[begin : begin + 8192].tolist()
        if predictions.ndim == 2:
            rows = [" ".join(map(str, row)) for row in rows]
        yield "".join(f"{row}\n" for row in rows)


COMMANDS = {
    "predict": (PREDICT, add_predict, predict),
    "score": (SCORE, add_score, score),
}
