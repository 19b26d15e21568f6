"""``dualgap score``: measure the quality of a model on labelled data."""

from __future__ import annotations

import sys

from .data import facts_of, read_as_trained, tell
from .options import Options
from .parser import Values
from .quality import auc, in_words, is_regression, predictions, quality
from .report import print_json

EPILOG = (
    "dualgap score a9a.t a9a.model",
    "dualgap score a9a.t a9a.model --json",
    "Classification: accuracy, balanced accuracy (the mean over the classes of the "
    "fraction found) and AUC, the area under the ROC curve (with several classes, the "
    "mean of one versus the rest). Regression: mean squared error, mean absolute error "
    "and R2.",
)


def add(command: Options) -> None:
    """Add the options."""
    command.data(store=True)
    command.trained_model()
    command.table_options(trained=True)
    command.jobs("predicting with a kernel")
    command.common()


def run(o: Values) -> None:
    """Print the figures of a model."""
    fitted, examples = read_as_trained(o)
    values, labels = predictions(fitted, examples.X, o.n_jobs)
    figures, remark = quality(fitted, examples, labels)
    if all(value is None for value in figures.values()):
        remedy = "" if examples.labelled else "; name their column with --label"
        raise ValueError(f"{o.data} cannot be scored: {remark}{remedy}")
    tell(examples)
    if not is_regression(fitted):
        figures["auc"] = auc(fitted, examples, values)
    if o.json:
        print_json({**figures, "remark": remark or None, **facts_of(examples)})
        return
    print(in_words(figures))
    if remark:
        print(remark, file=sys.stderr)
