"""``dualgap predict``: labels or scores from a model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .data import (
    Data,
    is_store,
    labels_of,
    read_data,
    refuse_unreadable,
    refuse_unwritable,
    shortened,
)
from .options import DataPath, Debug, Json, ReadJobs, app, paragraphs, told_plainly
from .report import print_json
from .task import errors, is_regression

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..estimators import SVC, LinearSVC


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap predict a9a.t a9a.model -o labels.txt",
        "dualgap predict a9a.t a9a.model --scores > scores.txt",
        "dualgap predict a9a.t a9a.model --json -o labels.txt",
        "Accuracy and balanced accuracy (the mean over the classes of the fraction "
        "found) go to standard error, or into the JSON; of a regression the mean "
        "squared error and R^2. Labels that are all 0 stand for none.",
        "A model of one class says 1, and -1 for outliers.",
    )
)
def predict(
    data: DataPath,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="File written by train.", show_default=False
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the predictions to FILE; it appears when it is complete.",
            show_default="standard output",
        ),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Decision values instead of labels: one column for two classes "
            "(positive: the larger label), else one column per class.",
        ),
    ] = False,
    zero_based: Annotated[
        bool | None,
        typer.Option(
            "--zero-based/--one-based",
            help="Whether the indices in DATA start at 0 or at 1.",
            show_default="as in training",
        ),
    ] = None,
    n_jobs: ReadJobs = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Predict the labels of DATA with MODEL, one a line."""
    with told_plainly(debug):
        from ..estimators import load_model

        refuse_unreadable(data)
        fitted, notes = load_model(model, return_notes=True)
        if output is not None:
            refuse_unwritable(output, [data, model])
        known = isinstance(notes.get("zero_based"), bool) and not is_store(data)
        if zero_based is None and known:
            zero_based = bool(notes["zero_based"])
        remedy = f"that is what {model} was trained on"
        examples = read_data(data, zero_based, n_jobs, fitted.n_features_in_, remedy)
        values, labels = _predictions(fitted, examples, n_jobs)
        curve = is_regression(fitted)
        judge = errors if curve else partial(_quality, fitted)
        quality, remark = judge(examples, labels)
        predictions = values if scores else labels
        if output is not None:
            from ..io.atomic import write_atomically

            with write_atomically(output, "w") as file:
                file.writelines(_lines(predictions))
        if json_:
            report = {"n": examples.shape[0], **quality, "remark": remark}
            if output is None:
                report["scores" if scores else "labels"] = predictions.tolist()
            print_json(report | {"output": output})
            return
        if output is None:
            for block in _lines(predictions):
                typer.echo(block, nl=False)
        figures = [
            f"{name.replace('_', ' ')} "
            + (f"{value:.6g}" if curve else f"{100 * value:.2f} %")
            for name, value in quality.items()
            if value is not None
        ]
        typer.echo("; ".join(filter(None, [", ".join(figures), remark])), err=True)


def _predictions(
    fitted: LinearSVC | SVC, examples: Data, n_jobs: int | None
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Decision values, of shape (n,) or (n, K), and labels."""
    from ..estimators import SVC

    with warnings.catch_warnings():
        # A model fitted on a table has names; svmlight columns go by position.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        if isinstance(fitted, SVC):
            fitted.n_jobs = -1 if n_jobs is None else n_jobs
            return fitted._scores_and_labels(examples.X)
        if is_regression(fitted):
            values = fitted.predict(examples.X)
            return values, values
        if not hasattr(fitted, "classes_"):  # one class
            labels: NDArray[Any] = fitted.predict(examples.X)
            return fitted.decision_function(examples.X), labels
        values = fitted.decision_function(examples.X)
    codes = values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(int)
    return values, fitted.classes_[codes]


def _quality(
    fitted: LinearSVC | SVC, examples: Data, labels: NDArray[Any]
) -> tuple[dict[str, float | None], str]:
    """Accuracies, None where they would mean nothing, and what has to be said."""
    import numpy as np

    none: dict[str, float | None] = {"accuracy": None, "balanced_accuracy": None}
    found, known = labels_of(examples), set(_classes(fitted))
    strange = [label for label in found if label not in known]
    if found == [0]:
        return none, "no accuracy: every label is 0, which stands for none"
    if len(strange) == len(found):
        return none, (
            f"no accuracy: the model knows none of the labels ({shortened(found)}); "
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


def _classes(fitted: Any) -> list[Any]:
    """The labels that a model predicts; of one class 1, and -1 for outliers."""
    return fitted.classes_.tolist() if hasattr(fitted, "classes_") else [-1, 1]


def _lines(predictions: NDArray[Any]) -> Iterator[str]:
    """One prediction a line, in blocks; floats so that they read back exactly."""
    for begin in range(0, len(predictions), 8192):
        rows = predictions[begin : begin + 8192].tolist()
        if predictions.ndim == 2:
            rows = [" ".join(map(str, row)) for row in rows]
        yield "".join(f"{row}\n" for row in rows)
