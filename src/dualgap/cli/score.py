"""``dualgap score``: measure the quality of a model on labelled data."""

from __future__ import annotations

import typer

from .app import app, paragraphs, told_plainly
from .data import facts_of, read_as_trained
from .options import (
    DataOrStore,
    Debug,
    Json,
    LabelAsTrained,
    PredictJobs,
    TrainedModel,
    ZeroBasedAsTrained,
)
from .quality import auc, in_words, is_regression, predictions, quality
from .report import print_json


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap score a9a.t a9a.model",
        "dualgap score a9a.t a9a.model --json",
        "Classification: accuracy, balanced accuracy (the mean over the classes of the "
        "fraction found) and AUC, the area under the ROC curve (with several classes, "
        "the mean of one versus the rest). Regression: mean squared error, mean "
        "absolute error and R2.",
    )
)
def score(
    data: DataOrStore,
    model: TrainedModel,
    label: LabelAsTrained = None,
    zero_based: ZeroBasedAsTrained = None,
    n_jobs: PredictJobs = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Measure the quality of MODEL on DATA: accuracy and AUC, or errors."""
    with told_plainly(debug):
        fitted, examples = read_as_trained(data, model, zero_based, n_jobs, label)
        values, labels = predictions(fitted, examples.X, n_jobs)
        figures, remark = quality(fitted, examples, labels)
        known = any(value is not None for value in figures.values())
        if not known:
            remedy = "" if examples.labelled else "; name their column with --label"
            raise ValueError(f"{data} cannot be scored: {remark}{remedy}")
        if not is_regression(fitted):
            figures["auc"] = auc(fitted, examples, values)
        if json_:
            print_json({**figures, "remark": remark or None, **facts_of(examples)})
            return
        typer.echo(in_words(figures))
        if remark:
            typer.echo(remark, err=True)
