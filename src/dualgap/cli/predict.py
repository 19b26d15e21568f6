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


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap predict a9a.t a9a.model -o labels.txt",
        "dualgap predict a9a.t a9a.model --scores > scores.txt",
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
        if scores and undecided is not None:
            raise typer.BadParameter("--scores and --undecided exclude each other.")
        fitted, examples = read_as_trained(
            data, model, zero_based, n_jobs, label, whole=undecided is not None
        )
        values, labels = predictions(fitted, examples.X, n_jobs)
        figures, remark = quality(fitted, examples, labels)
        wanted = values if scores else labels
        if undecided is not None:
            wanted = with_undecided(fitted, examples.X, labels, undecided)
        if output is not None:
            with open(output, "w") if device else write_atomically(output, "w") as file:
                file.writelines(_lines(wanted))
        if json_:
            report = {"n": examples.shape[0], **figures, "remark": remark or None}
            if output is None:
                report["scores" if scores else "labels"] = wanted.tolist()
            print_json(report | {"output": output})
            return
        if output is None:
            for block in _lines(wanted):
                typer.echo(block, nl=False)
        scored = in_words(figures)
        told = f"{scored}; {remark}" if remark else scored
        typer.echo(told if scored else f"Not scored: {remark}.", err=True)


def _lines(predictions: NDArray[np.generic]) -> Iterator[str]:
    """Yield blocks of lines with one prediction each; floats read back exactly."""
    for begin in range(0, len(predictions), 8192):
        rows = predictions[begin : begin + 8192].tolist()
        if predictions.ndim == 2:
            rows = [" ".join(map(str, row)) for row in rows]
        yield "".join(f"{row}\n" for row in rows)
