"""``dualgap report``: describe a model and its training data on one HTML page."""

from __future__ import annotations

from .certify import add_model_and_data, read_with_data
from .data import facts_of, rescaled
from .files import refuse_overwriting, refuse_unwritable
from .options import Options
from .parser import Values
from .report import print_json

EPILOG = (
    "dualgap report a9a a9a.model a9a.html",
    "dualgap report prices.csv prices.model --label price -o prices.html",
    "dualgap report a9a a9a.liblinear --C 1 -o a9a.html",
    "DATA must be the training data of the model. The page shows errors, the "
    "certificate, margins, support vectors, problems of the columns, and what to try "
    "next. It has its pictures inside and opens without network.",
    "Files of LIBLINEAR and LIBSVM do not contain C, epsilon and nu: give them as "
    "options.",
)


def add(command: Options) -> None:
    """Add the options."""
    add_model_and_data(command)
    command.output("PAGE", "HTML file to write.", shown="report.html")


def run(o: Values) -> None:
    """Write the page."""
    model, output = o.model, o.output or "report.html"
    refuse_unwritable(output, [o.data, model])
    doctype = b"<!doctype html>"
    refuse_overwriting(output, "an HTML page", lambda s: s.lower() == doctype)
    from ..html_report import report as page_about  # needs matplotlib

    kind, fitted, examples, scaling = read_with_data(o, "report")
    examples = rescaled(examples, scaling)
    if hasattr(fitted, "kernel"):
        fitted.n_jobs = -1 if o.n_jobs is None else o.n_jobs
    names = examples.names
    if names is None and not examples.zero_based:
        names = [str(k + 1) for k in range(examples.shape[1])]
    page = page_about(
        fitted, examples.X, examples.y, feature_names=names, tol=o.tol,
        time_limit=o.time_limit, random_state=0, sample_weight=examples.weight,
    )  # fmt: skip
    page.save(output)
    if o.json:
        facts = facts_of(examples)
        print_json({"model": model, "kind": kind, "output": output, **facts})
    else:
        print(f"Report written to {output}")
