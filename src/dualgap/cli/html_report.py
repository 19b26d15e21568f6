"""``dualgap report``: describe a model and its training data on one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from .app import app, paragraphs, taking, told_plainly
from .certify import BoundOptions, read_with_data
from .data import facts_of, refuse_overwriting, refuse_unwritable
from .report import print_json


@dataclass(frozen=True, kw_only=True)
class ReportOptions(BoundOptions):
    """Options of ``dualgap report``."""

    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the page to FILE, HTML."
        ),
    ] = "report.html"


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
@taking(ReportOptions)
def report(options: ReportOptions) -> None:
    """Write a page about MODEL and its training DATA."""
    model, output, n_jobs = options.model, options.output, options.n_jobs
    with told_plainly(options.debug):
        refuse_unwritable(output, [options.data, model])
        doctype = b"<!doctype html>"
        refuse_overwriting(output, "an HTML page", lambda s: s.lower() == doctype)
        from ..html_report import report as page_about  # needs matplotlib

        kind, fitted, examples = read_with_data(options, options.nu)
        if hasattr(fitted, "kernel"):
            fitted.n_jobs = -1 if n_jobs is None else n_jobs
        names = examples.names
        if names is None and not examples.zero_based:
            names = [str(k + 1) for k in range(examples.shape[1])]
        page = page_about(
            fitted, examples.X, examples.y, feature_names=names, tol=options.tol,
            time_limit=options.time_limit, random_state=0,
        )  # fmt: skip
        page.save(output)
        if options.json_:
            facts = facts_of(examples)
            print_json({"model": model, "kind": kind, "output": output, **facts})
        else:
            typer.echo(f"Report written to {output}")
