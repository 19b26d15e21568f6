"""``dualgap prove``: write a proof that others can check without this package."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

import typer

from .app import app, paragraphs, taking, told_plainly
from .certify import ModelOptions, read_model, read_with_data
from .data import refuse_overwriting, refuse_unwritable
from .report import by_problem, name_of, print_json, reach, worst_problem


@dataclass(frozen=True, kw_only=True)
class ProveOptions(ModelOptions):
    """Options of ``dualgap prove``."""

    output: Annotated[
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
@taking(ProveOptions)
def prove(options: ProveOptions) -> None:
    """Write a proof of how far MODEL is from the optimum, for dualgap-check."""
    data, model, output = options.data, options.model, options.output
    with told_plainly(options.debug):
        from ..models import write_proof

        refuse_unwritable(output, [data, model])
        head = b"dualgap-proof "
        refuse_overwriting(output, "a proof file", lambda s: s.startswith(head))
        if read_model(model, options.C, options.epsilon)[3] is not None:
            raise ValueError(
                f"{model} was trained with --standardize, which changes the values "
                f"in {data}; train without --standardize"
            )
        kind, fitted, examples = read_with_data(options)
        comparable = _is_text(data)
        try:
            found = write_proof(
                fitted,
                examples.X,
                examples.y,
                output,
                tol=options.tol,
                data=data if comparable else None,
                zero_based=examples.zero_based,
            )
        except TypeError as error:  # a kernel or a one-class model
            raise ValueError(f"{model}: {error}") from None
        fitted.certificate_ = found
        certificates = by_problem(fitted)
        if options.json_:
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


def _is_text(path: str) -> bool:
    """Whether a path names a file of plain svmlight text."""
    from ..data.tables import kind_of

    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return kind_of(file.read(2**16)) == ("svmlight", None)
