"""``dualgap report``: describe a model and its training data on one HTML page."""

from __future__ import annotations

from typing import Annotated

import typer

from .app import app, paragraphs, told_plainly
from .certify import (
    AnyModel,
    BoundTime,
    Tightness,
    TrainedC,
    TrainedEpsilon,
    TrainedNu,
    read_with_data,
)
from .data import facts_of, refuse_unwritable
from .options import (
    DataPath,
    Debug,
    Json,
    LabelAsTrained,
    PredictJobs,
    ZeroBasedAsTrained,
)
from .report import print_json


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap report a9a a9a.model -o a9a.html",
        "dualgap report prices.csv prices.model --label price -o prices.html",
        "dualgap report a9a a9a.liblinear --C 1 -o a9a.html",
        "DATA must be the training data of the model. The page shows the certificate, "
        "errors, margins, support vectors, problems of the columns, and what to try "
        "next. It has its pictures inside and opens without network.",
        "Files of LIBLINEAR and LIBSVM do not contain C, epsilon and nu: give them as "
        "options.",
    )
)
def report(
    data: DataPath,
    model: AnyModel,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the page to FILE, HTML."
        ),
    ] = "report.html",
    C: TrainedC = None,
    epsilon: TrainedEpsilon = None,
    nu: TrainedNu = None,
    tol: Tightness = 1e-3,
    time_limit: BoundTime = None,
    label: LabelAsTrained = None,
    zero_based: ZeroBasedAsTrained = None,
    n_jobs: PredictJobs = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Write a page about MODEL and its training DATA."""
    with told_plainly(debug):
        refuse_unwritable(output, [data, model])
        _refuse_overwriting(output)
        from ..html_report import report as page_about  # needs matplotlib

        kind, fitted, examples = read_with_data(
            data, model, C, epsilon, nu, label, zero_based, n_jobs
        )
        if hasattr(fitted, "kernel"):
            fitted.n_jobs = -1 if n_jobs is None else n_jobs
        names = examples.names
        if names is None and not examples.zero_based:
            names = [str(k + 1) for k in range(examples.shape[1])]
        page = page_about(
            fitted, examples.X, examples.y, feature_names=names, tol=tol,
            time_limit=time_limit, random_state=0,
        )  # fmt: skip
        page.save(output)
        if json_:
            facts = facts_of(examples)
            print_json({"model": model, "kind": kind, "output": output, **facts})
        else:
            typer.echo(f"Report written to {output}")


def _refuse_overwriting(path: str) -> None:
    """Raise an error if a page would replace another file, such as a model."""
    try:
        with open(path, "rb") as file:
            start = file.read(15)
    except FileNotFoundError:
        return
    if start and start.lower() != b"<!doctype html>":
        raise ValueError(
            f"{path} exists and is not an HTML page; remove it first, or choose "
            "another name"
        )
