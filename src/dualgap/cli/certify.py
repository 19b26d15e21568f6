"""``dualgap certify``: how far a model is from its optimum, whoever trained it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .data import facts_of, is_store, read_data, refuse_unreadable, whose_model
from .options import (
    DataPath,
    Debug,
    Json,
    ReadJobs,
    app,
    paragraphs,
    positive,
    told_plainly,
)
from .report import by_problem, name_of, print_certificates, print_json

if TYPE_CHECKING:
    from ..certificate import Certificate
    from .data import Data


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap certify a9a a9a.model",
        "liblinear-train -s 3 -c 1 -B 1 a9a a9a.ll; dualgap certify a9a a9a.ll --C 1",
        "svm-train -c 1 -g 0.05 a9a a9a.svm; dualgap certify a9a a9a.svm --C 1",
        "DATA are the examples that the model was trained with. The objective of the "
        "model is computed over all of them, and beside it a lower bound on the best "
        "possible one: from the margins or dual variables of the model or, where these "
        "leave more than --tol open, from a fit.",
        "Files of LIBLINEAR and LIBSVM do not say what C, epsilon or nu was: give "
        "them.",
    )
)
def certify(
    data: DataPath,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Model file of train, of LIBLINEAR (-s 1, 2, 3, 11, 12, 13, 21) or of "
            "LIBSVM (-s 0, 2, 3).",
            show_default=False,
        ),
    ],
    C: Annotated[
        float | None,
        typer.Option(
            "--C",
            "-C",
            callback=positive,
            help="What a model of LIBLINEAR or LIBSVM was trained with.",
            show_default="what the model file says",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            "-p",
            min=0.0,
            help="The same for a regression of theirs (-p).",
            show_default="what the model file says",
        ),
    ] = None,
    nu: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="The same for one class (-n).",
            show_default="what the model file says",
        ),
    ] = None,
    tol: Annotated[
        float,
        typer.Option(
            callback=positive,
            help="How much the bound may say too much: the dual value is brought "
            "within this fraction of the optimum.",
        ),
    ] = 1e-3,
    time_limit: Annotated[
        float | None,
        typer.Option(
            callback=positive,
            help="Seconds for that; the bound holds all the same, and may be loose.",
            show_default="none",
        ),
    ] = None,
    zero_based: Annotated[
        bool | None,
        typer.Option(
            "--zero-based/--one-based",
            help="Whether the indices in DATA start at 0 or at 1.",
            show_default="as in training; at 1 for LIBLINEAR and LIBSVM",
        ),
    ] = None,
    n_jobs: ReadJobs = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Prove how far MODEL is from the optimum on DATA, at most."""
    with told_plainly(debug):
        from ..estimators import certify as prove

        refuse_unreadable(data)
        kind, fitted, notes = read_model(model, C, epsilon, nu)
        known = fitted.get_params()
        for name, value in (("C", C), ("epsilon", epsilon), ("nu", nu)):
            if kind == "dualgap" and value is not None:
                raise ValueError(f"{model} says what {name} was; leave --{name} out")
            if kind != "dualgap" and value is None and name in known:
                raise ValueError(
                    f"{model} is a file of {kind}, which does not say what {name} was; "
                    f"give it with --{name}"
                )
            if value is not None and name not in known:
                raise ValueError(
                    f"{model} holds a {type(fitted).__name__}, which has no {name}; "
                    f"leave --{name} out"
                )
        if zero_based is None and not is_store(data):
            zero_based = bool(notes["zero_based"])
        remedy = f"that is what {model} was trained on"
        size = None if kind == "LIBSVM" else fitted.n_features_in_
        examples = read_data(data, zero_based, n_jobs, size, remedy)
        if is_store(data):
            raise ValueError(f"{data} is a store; certify needs svmlight text")
        if kind == "LIBSVM":
            _find_support(fitted, examples)
        found = prove(
            fitted, examples.X, examples.y, tol=tol, time_limit=time_limit,
            random_state=0,
        )  # fmt: skip
        fitted.certificate_ = found
        certificates = by_problem(fitted)
        if json_:
            _print(certificates, {"model": model, "kind": kind, **facts_of(examples)})
        else:
            print_certificates(certificates)


def read_model(
    path: str,
    C: float | None,
    epsilon: float | None = None,
    nu: float | None = None,
) -> tuple[str, Any, dict[str, Any]]:
    """Whose file it is, the model, and what its notes say.

    Raises
    ------
    ValueError
        If it is none of the three, or malformed.
    """
    from ..estimators import load_model, read_liblinear, read_libsvm

    refuse_unreadable(path)
    whose = whose_model(path)
    told: dict[str, Any] = {"C": C or 1.0, "epsilon": epsilon or 0.0, "nu": nu or 0.5}
    if whose == "LIBLINEAR":
        return whose, read_liblinear(path, **told), {"zero_based": False}
    if whose == "LIBSVM":
        return whose, read_libsvm(path, **told), {"zero_based": False}
    if whose is None:
        raise ValueError(
            f"{path} is no model file of dualgap, LIBLINEAR or LIBSVM; give one of them"
        )
    model, notes = load_model(path, return_notes=True)
    return whose, model, {"zero_based": False, **notes}


def _find_support(model: Any, examples: Data) -> None:
    """Tell a model of LIBSVM which rows its support vectors are."""
    from ..estimators.peers import find_support

    find_support(model, examples.X, examples.y)


def _print(certificates: list[tuple[Any, Certificate]], about: dict[str, Any]) -> None:
    named = [
        name_of(label) | certificate.to_dict() for label, certificate in certificates
    ]
    print_json(about | {"certificates": named})
