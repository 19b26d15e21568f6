"""``dualgap prove``: write a proof that others can check without this package."""

from __future__ import annotations

import os
import sys

from .certify import add_model_and_data, read_with_data
from .files import refuse_overwriting, refuse_unwritable
from .options import Options
from .parser import Values
from .report import by_problem, in_json, print_json, reach, worst_problem

EPILOG = (
    "dualgap prove a9a a9a.model a9a.proof; dualgap-check a9a.proof a9a",
    "liblinear-train -s 3 -c 1 -B 1 a9a a9a.ll; dualgap prove a9a a9a.ll -C 1 -o "
    "a9a.proof",
    "DATA must be the training data of the model, linear or with a kernel. The proof "
    "holds the training problem, the rows, the mean and scale of columns that were "
    "standardised, the model and dual variables in exact integers.",
    "dualgap-check is a program of its own, one file of plain Python. It computes the "
    "claims again, and compares the rows with DATA if that is svmlight text.",
)


def add(command: Options) -> None:
    """Add the options."""
    add_model_and_data(command, bounds=False)
    command.output("PROOF", "Proof file to write.")


def run(o: Values) -> None:
    """Write a proof, and tell what it proves."""
    data, model, output = o.data, o.model, o.output
    from ..models.files import pipeline_of
    from ..models.proofs import write_proof

    refuse_unwritable(output, [data, model])
    head = b"dualgap-proof "
    refuse_overwriting(output, "a proof file", lambda s: s.startswith(head))
    kind, fitted, examples, scaling = read_with_data(o, "prove")
    comparable = _is_text(data)
    try:
        found = write_proof(
            fitted if scaling is None else pipeline_of(scaling, fitted),
            examples.X,
            examples.y,
            output,
            sample_weight=examples.weight,
            tol=o.tol,
            data=data if comparable else None,
            zero_based=examples.zero_based,
        )
    except TypeError as error:  # a kernel or a one-class model
        raise ValueError(f"{model}: {error}") from None
    fitted.certificate_ = found
    certificates = by_problem(fitted)
    if o.json:
        report: dict[str, object] = {"model": model, "kind": kind, "proof": output}
        report |= {"compares_data": comparable, "certificates": in_json(certificates)}
        print_json(report)
        return
    worst_of, worst = worst_problem(certificates)
    several = f"the worst part, {worst_of}, " if len(certificates) > 1 else ""
    print(f"{output} proves: {several or model + ' '}is {reach(worst)}.")
    print(f"Next: dualgap-check {output}{f' {data}' if comparable else ''}")
    if not comparable:
        print(
            f"dualgap-check cannot read {data}; it reads plain svmlight text. The "
            "proof is about the numbers in the proof file, which dualgap read from it.",
            file=sys.stderr,
        )


def _is_text(path: str) -> bool:
    """Whether a path names a file of plain svmlight text."""
    from ..data.opening import kind_of

    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return kind_of(file.read(2**16)) == ("svmlight", None)
