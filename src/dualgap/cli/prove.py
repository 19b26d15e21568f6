"""``dualgap prove``: write a proof that others can check without this package."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from .app import app, paragraphs, told_plainly
from .certify import AnyModel, Tightness, TrainedC, TrainedEpsilon, read_with_data
from .data import refuse_unwritable
from .options import (
    DataPath,
    Debug,
    Json,
    LabelAsTrained,
    PredictJobs,
    ZeroBasedAsTrained,
)
from .report import by_problem, name_of, print_json, reach, worst_problem

ProofPath = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Proof file.", show_default=False
    ),
]


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap prove a9a a9a.model -o a9a.proof; dualgap-check a9a.proof a9a",
        "liblinear-train -s 3 -c 1 -B 1 a9a a9a.ll; dualgap prove a9a a9a.ll -C 1 -o "
        "a9a.proof",
        "DATA must be the training data of the model, linear or with a kernel. The "
        "proof holds the training problem, the rows, the model and dual variables in "
        "exact integers.",
        "dualgap-check is a program of its own, one file of plain Python. It computes "
        "the claims again, and compares the rows with DATA if that is svmlight text.",
    )
)
def prove(
    data: DataPath,
    model: AnyModel,
    output: ProofPath,
    C: TrainedC = None,
    epsilon: TrainedEpsilon = None,
    tol: Tightness = 1e-3,
    label: LabelAsTrained = None,
    zero_based: ZeroBasedAsTrained = None,
    n_jobs: PredictJobs = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Write a proof of how far MODEL is from the optimum, for dualgap-check."""
    with told_plainly(debug):
        from ..models import write_proof
        from .certify import read_model

        refuse_unwritable(output, [data, model])
        _refuse_overwriting(output)
        if read_model(model, C, epsilon)[3] is not None:
            raise ValueError(
                f"{model} was trained with --standardize, which changes the values "
                f"in {data}; train without --standardize"
            )
        kind, fitted, examples = read_with_data(
            data, model, C, epsilon, None, label, zero_based, n_jobs
        )
        comparable = _is_text(data)
        try:
            found = write_proof(
                fitted,
                examples.X,
                examples.y,
                output,
                tol=tol,
                data=data if comparable else None,
                zero_based=examples.zero_based,
            )
        except TypeError as error:  # a kernel or a one-class model
            raise ValueError(f"{model}: {error}") from None
        fitted.certificate_ = found
        certificates = by_problem(fitted)
        if json_:
            named = [name_of(of) | c.to_dict() for of, c in certificates]
            report = {"model": model, "kind": kind, "proof": output}
            print_json(report | {"compares_data": comparable, "certificates": named})
            return
        worst_of, worst = worst_problem(certificates)
        several = f"the worst part, {worst_of}, " if len(certificates) > 1 else ""
        typer.echo(f"{output} proves: {several or model + ' '}is {reach(worst)}.")
        typer.echo(f"Next: dualgap-check {output}{f' {data}' if comparable else ''}")
        if not comparable:
            typer.echo(
                f"dualgap-check cannot read {data}; it reads plain svmlight text. The "
                "proof is about the rows in the proof file.",
                err=True,
            )


def _refuse_overwriting(path: str) -> None:
    """Raise an error if a proof would replace another file, such as a data file."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read(14) not in (b"", b"dualgap-proof "):
                raise ValueError(
                    f"{path} exists and is not a proof file; remove it first, or "
                    "choose another name"
                )


def _is_text(path: str) -> bool:
    """Whether a path names a file of plain svmlight text."""
    from ..data.tables import kind_of

    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return kind_of(file.read(2**16)) == ("svmlight", None)
