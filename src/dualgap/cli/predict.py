"""``dualgap predict``: predict labels or scores with a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from .app import app, paragraphs, told_plainly
from .data import (
    read_as_trained,
    refuse_unreadable,
    refuse_unwritable,
)
from .options import (
    DataOrStore,
    Debug,
    Json,
    LabelAsTrained,
    PredictJobs,
    TrainedModel,
    ZeroBasedAsTrained,
)
from .quality import in_words, predictions, quality, with_undecided
from .report import print_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .data import Model


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap predict a9a.t a9a.model -o labels.txt",
        "dualgap predict a9a.t a9a.model --scores > scores.txt",
        "dualgap predict a9a.t a9a.model --proba > probabilities.txt",
        "dualgap predict a9a.t a9a.model --json -o labels.txt",
        "dualgap predict a9a.t a9a.model --undecided '?'",
        "If DATA has labels, the accuracy and the balanced accuracy (the mean over the "
        "classes of the fraction found) go to standard error or into the JSON; for "
        "regression, the mean squared error, the mean absolute error and R2. Labels "
        "that are all 0 count as missing.",
        "A one-class model predicts 1 for inliers and -1 for outliers.",
    )
)
def predict(
    data: DataOrStore,
    model: TrainedModel,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the predictions to FILE, which appears when it is complete.",
            show_default="standard output",
        ),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Write decision values instead of labels: one column for two classes "
            "(positive for the larger label), else one column per class.",
        ),
    ] = False,
    proba: Annotated[
        bool,
        typer.Option(
            "--proba",
            "--probability",
            "-b",
            help="Write probabilities instead of labels, one column per class. MODEL "
            "has to be of train --probability.",
        ),
    ] = False,
    undecided: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Write LABEL where training to the end could still change the label. "
            "Models of train --bounds decide more.",
            show_default=False,
        ),
    ] = None,
    label: LabelAsTrained = None,
    zero_based: ZeroBasedAsTrained = None,
    n_jobs: PredictJobs = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Predict the labels of DATA with MODEL, one per line."""
    with told_plainly(debug):
        from ..data.atomic import is_device, write_atomically

        refuse_unreadable(data)
        device = output is not None and is_device(output)
        if output is not None and not device:
            refuse_unwritable(output, [data, model])
        if scores + proba + (undecided is not None) > 1:
            raise typer.BadParameter(
                "--scores, --proba and --undecided exclude each other."
            )
        whole, examples = read_as_trained(
            *(data, model, zero_based, n_jobs, label),
            whole=undecided is not None,
            calibrated=True,
        )
        fitted = getattr(whole, "estimator_", whole)
        values, labels = predictions(fitted, examples.X, n_jobs)
        if proba or whole is not fitted:
            values, labels = _calibrated(model, whole, values, proba)
        figures, remark = quality(fitted, examples, labels)
        wanted = values if scores or proba else labels
        if undecided is not None:
            wanted = with_undecided(fitted, examples.X, labels, undecided)
        if output is not None:
            with open(output, "w") if device else write_atomically(output, "w") as file:
                file.writelines(_lines(wanted))
        if json_:
            report = {"n": examples.shape[0], **figures, "remark": remark or None}
            kind = "probabilities" if proba else "scores" if scores else "labels"
            report |= {kind: wanted.tolist()} if output is None else {}
            print_json(report | {"output": output})
            return
        _tell(wanted if output is None else wanted[:0], in_words(figures), remark)


def _tell(wanted: NDArray[np.generic], scored: str, remark: str) -> None:
    """Print predictions, and figures and a remark about them."""
    for block in _lines(wanted):
        typer.echo(block, nl=False)
    told = f"{scored}; {remark}" if remark else scored
    typer.echo(told if scored else f"Not scored: {remark}.", err=True)


def _calibrated(
    name: str, model: Model, values: NDArray[np.float64], proba: bool
) -> tuple[NDArray[np.float64], NDArray[np.generic]]:
    """Return probabilities or decisions, and the labels of largest probability.

    Raises
    ------
    ValueError
        If the model has no probabilities.
    """
    if not hasattr(model, "calibrators_"):
        raise ValueError(f"{name} is not of train --probability; train it so")
    likely = model._probabilities(values)
    labels = model.classes_[likely.argmax(axis=1)]
    return likely if proba else values, labels


def _lines(predictions: NDArray[np.generic]) -> Iterator[str]:
    """Yield blocks of lines with one prediction each; floats read back exactly."""
    for begin in range(0, len(predictions), 8192):
        rows = predictions[begin : begin + 8192].tolist()
        if predictions.ndim == 2:
            rows = [" ".join(map(str, row)) for row in rows]
        yield "".join(f"{row}\n" for row in rows)
