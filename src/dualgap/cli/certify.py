"""``dualgap certify``: bound how far a model of any package is from its optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import app, paragraphs, taking, told_plainly
from .data import (
    columns_of,
    facts_of,
    is_store,
    read_data,
    refuse_no_model,
    refuse_unreadable,
    rescaled,
)
from .options import (
    DataPath,
    Debug,
    Json,
    LabelAsTrained,
    PredictJobs,
    Verbose,
    ZeroBasedAsTrained,
    fraction,
    positive,
)
from .quality import is_novelty
from .report import (
    by_problem,
    name_of,
    print_details,
    print_json,
    reach,
    worst_problem,
)

if TYPE_CHECKING:
    from ..data.model_file import Scalar
    from ..data.scaling import Scaling
    from .data import FileExamples, Model
    from .report import Certificates


AnyModel = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Model file of train, of LIBLINEAR (-s 1 to 4, 11 to 13, 21) or of "
        "LIBSVM (-s 0, 2, 3).",
        show_default=False,
    ),
]
TrainedC = Annotated[
    float | None,
    typer.Option(
        "--C",
        "-C",
        "-c",
        callback=positive,
        help="C that a model of LIBLINEAR or LIBSVM was trained with.",
        show_default="from the model file",
    ),
]
TrainedEpsilon = Annotated[
    float | None,
    typer.Option(
        "--epsilon",
        "-p",
        min=0.0,
        help="epsilon that a regression model of LIBLINEAR or LIBSVM was trained "
        "with (-p).",
        show_default="from the model file",
    ),
]
TrainedNu = Annotated[
    float | None,
    typer.Option(
        "--nu",
        "-n",
        min=0.0,
        max=1.0,
        help="nu that a one-class model of LIBLINEAR or LIBSVM was trained with (-n).",
        show_default="from the model file",
    ),
]
Tightness = Annotated[
    float,
    typer.Option(
        callback=fraction,
        help="Tightness of the bound: it overstates the true distance by at most "
        "this fraction. Smaller takes longer.",
    ),
]
BoundTime = Annotated[
    float | None,
    typer.Option(
        callback=positive,
        help="Seconds. If time runs out, the bound holds but may be loose.",
        show_default="none",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options of the commands about a model of any package and its training data."""

    data: DataPath
    model: AnyModel
    C: TrainedC = None
    epsilon: TrainedEpsilon = None
    tol: Tightness = 1e-3
    label: LabelAsTrained = None
    zero_based: ZeroBasedAsTrained = None
    n_jobs: PredictJobs = None
    json_: Json = False
    debug: Debug = False


@dataclass(frozen=True, kw_only=True)
class BoundOptions(ModelOptions):
    """Options of the commands that bound the distance of any model."""

    nu: TrainedNu = None
    time_limit: BoundTime = None


@dataclass(frozen=True, kw_only=True)
class CertifyOptions(BoundOptions):
    """Options of ``dualgap certify``."""

    verbose: Verbose = False


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap certify a9a a9a.model",
        "liblinear-train -s 3 -c 1 -B 1 a9a a9a.ll; dualgap certify a9a a9a.ll --C 1",
        "svm-train -c 1 -g 0.05 a9a a9a.svm; dualgap certify a9a a9a.svm --C 1",
        "DATA must be the training data of the model. The command computes the model's "
        "objective over all of it, and a lower bound on the best possible objective. "
        "The bound comes from the margins or dual variables of the model or, if these "
        "leave a gap above --tol, from a fit.",
        "Files of LIBLINEAR and LIBSVM do not contain C, epsilon and nu: give them as "
        "options.",
    )
)
@taking(CertifyOptions)
def certify(options: CertifyOptions) -> None:
    """Bound how far MODEL is from the optimum of its training problem on DATA."""
    model = options.model
    with told_plainly(options.debug):
        from ..estimators.fitted import other_objective
        from ..models.certification import certify as prove

        kind, fitted, examples = read_with_data(options, options.nu)
        # Without it certify does not warn: here other rows are an error.
        trained = vars(fitted).pop("certificate_", None)
        found = prove(
            fitted, examples.X, examples.y, tol=options.tol,
            time_limit=options.time_limit, random_state=0,
        )  # fmt: skip
        fitted.certificate_ = found
        certificates = by_problem(fitted)
        if trained and (moved := other_objective(trained, found)):
            raise ValueError(
                f"{options.data} is not the training data of {model}: the objective is "
                f"{moved[0]} instead of {moved[1]}"
            )
        if options.json_:
            _print(certificates, {"model": model, "kind": kind, **facts_of(examples)})
        else:
            _print_bound(model, certificates)
            if options.verbose:
                print_details(certificates)


def read_with_data(
    o: ModelOptions, nu: float | None = None
) -> tuple[str, Model, FileExamples]:
    """Read a model file of any package, and its training data.

    Returns
    -------
    package : {"dualgap", "LIBLINEAR", "LIBSVM"}
    model : estimator
        With `calibrated` a model with probabilities keeps them.
    examples : FileExamples

    Raises
    ------
    ValueError
        If an option or the data do not fit the model, or a file is malformed.
    """
    data, model = o.data, o.model
    refuse_unreadable(data)
    kind, fitted, notes, scaling = read_model(model, o.C, o.epsilon, nu)
    known = fitted.get_params()
    for name, value in (("C", o.C), ("epsilon", o.epsilon), ("nu", nu)):
        if kind == "dualgap" and value is not None:
            raise ValueError(f"{model} contains {name}; leave --{name} out")
        if kind != "dualgap" and value is None and name in known:
            raise ValueError(
                f"{model} is a file of {kind}, which does not contain {name}; "
                f"give it with --{name}"
            )
        if value is not None and name not in known:
            raise ValueError(
                f"{model} has a {type(fitted).__name__}, which has no {name}; "
                f"leave --{name} out"
            )
    remedy = f"give data like the training data of {model}"
    size = None if kind == "LIBSVM" else fitted.n_features_in_
    needed = o.label is not None or not is_novelty(fitted)
    columns = columns_of(notes, o.label)._replace(needs_label=needed)
    base = bool(notes["zero_based"])
    examples = read_data(data, o.zero_based, o.n_jobs, size, remedy, columns, base)
    examples = rescaled(examples, scaling)
    if is_store(data):
        raise ValueError(
            f"{data} is a store, which cannot be certified; give a data file"
        )
    rows = notes.get("examples", examples.shape[0])
    if rows != examples.shape[0]:
        raise ValueError(
            f"{data} is not the training data of {model}: it has "
            f"{examples.shape[0]:,} examples instead of {rows:,}"
        )
    if kind == "LIBSVM":
        _find_support(fitted, examples)
    return kind, fitted, examples


def _print_bound(model: str, certificates: Certificates) -> None:
    """Print the bound on the distance of a model from the optimum."""
    worst_of, worst = worst_problem(certificates)
    gap = worst.relative_gap
    if len(certificates) > 1:
        number = f"{model}: each of {len(certificates):,} problems"
        typer.echo(f"{number} is {reach(worst)}. Worst: {worst_of}.")
    else:
        typer.echo(f"{model} is {reach(worst)}.")
    if gap >= 0.1:
        typer.echo(
            "Such a large distance usually means that the model was trained with other "
            "data or options: check DATA and the options.",
            err=True,
        )


def read_model(
    path: str,
    C: float | None,
    epsilon: float | None = None,
    nu: float | None = None,
    *,
    calibrated: bool = False,
) -> tuple[str, Model, dict[str, Scalar], Scaling | None]:
    """Read a model file of dualgap, LIBLINEAR or LIBSVM.

    Returns
    -------
    package : {"dualgap", "LIBLINEAR", "LIBSVM"}
    model : estimator
        With `calibrated` a model with probabilities keeps them.
    notes : dict
    scaling : Scaling or None
        Scaling of the columns.

    Raises
    ------
    ValueError
        If the file is of another kind, or malformed.
    """
    from ..models import read_liblinear, read_libsvm
    from ..models.files import load_parts

    whose = refuse_no_model(path, others=True)
    told: dict[str, Any] = {"C": C or 1.0, "epsilon": epsilon or 0.0, "nu": nu or 0.5}
    if whose == "LIBLINEAR":
        return whose, read_liblinear(path, **told), {"zero_based": False}, None
    if whose == "LIBSVM":
        return whose, read_libsvm(path, **told), {"zero_based": False}, None
    model, notes, scaling = load_parts(path)
    if not calibrated:
        model = getattr(model, "estimator_", model)
    return whose, model, {"zero_based": False, **notes}, scaling


def _find_support(model: Model, examples: FileExamples) -> None:
    """Find the support vectors of a model of LIBSVM among the rows."""
    from scipy import sparse

    from ..models.peers import find_support

    find_support(model, sparse.csr_matrix(examples.X), examples.y)


def _print(certificates: Certificates, about: dict[str, object]) -> None:
    named = [
        name_of(label) | certificate.to_dict() for label, certificate in certificates
    ]
    print_json(about | {"certificates": named})
