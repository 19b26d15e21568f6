"""``dualgap certify``: bound how far a model of any package is from its optimum."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .data import facts_of, read_data, reading_of, rescaled, uncalibrated
from .files import refuse_no_model, refuse_store, refuse_unreadable
from .options import Options
from .parser import Values
from .quality import is_novelty
from .report import (
    by_problem,
    in_json,
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

EPILOG = (
    "dualgap certify a9a a9a.model",
    "liblinear-train -s 3 -c 1 -B 1 a9a a9a.ll; dualgap certify a9a a9a.ll --C 1",
    "svm-train -c 1 -g 0.05 a9a a9a.svm; dualgap certify a9a a9a.svm --C 1",
    "DATA must be the training data of the model. The command computes the model's "
    "objective over all of it, and a lower bound on the best possible objective. The "
    "bound comes from the margins or dual variables of the model or, if these leave a "
    "gap above --tol, from a fit.",
    "Files of LIBLINEAR and LIBSVM do not contain C, epsilon and nu: give them as "
    "options.",
)
#: Parameters that files of other packages do not contain.
_TOLD = ("C", "epsilon", "nu")


def add(command: Options) -> None:
    """Add the options."""
    add_model_and_data(command)
    text = "Show the certificate of every class or pair of classes."
    command.flag("--verbose", text, "Output")


def add_model_and_data(command: Options, *, bounds: bool = True) -> None:
    """Add what commands take that need a model of any package and its data.

    Those that bound the distance of the model may run out of time.
    """
    command.data()
    command.trained_model(
        "Model file of train, of LIBLINEAR (-s 1 to 4, 11 to 13, 21) or of LIBSVM "
        "(-s 0, 2, 3).",
    )
    fields = Options("", "")
    fields.fields_of("SVR", "OneClassSVM")
    told = {option.name: option for option in fields.options}
    for name in _TOLD if bounds else _TOLD[:2]:
        text = f"{name} that a model of LIBLINEAR or LIBSVM was trained with."
        shown = "from the model file"
        command.options.append(replace(told[name], help=text, shown=shown))
    text = (
        "Tightness of the bound: it overstates the true distance by at most this "
        "fraction. Smaller takes longer."
    )
    command.options.append(replace(told["tol"], help=text, default=1e-3))
    if bounds:
        text = "Seconds. If time runs out, the bound holds but may be loose."
        command.options.append(replace(told["time_limit"], help=text))
    command.table_options(trained=True)
    command.weights()
    command.jobs("predicting with a kernel")
    command.common()


def run(o: Values) -> None:
    """Print the bound on the distance of a model from its optimum."""
    from ..estimators.fitted import other_objective
    from ..models.certification import certify

    kind, fitted, examples, scaling = read_with_data(o, "certify")
    examples = rescaled(examples, scaling)
    # Without it certify does not warn: here other rows are an error.
    trained = vars(fitted).pop("certificate_", None)
    found = certify(
        fitted, examples.X, examples.y, tol=o.tol, time_limit=o.time_limit,
        random_state=0, sample_weight=examples.weight,
    )  # fmt: skip
    fitted.certificate_ = found
    certificates = by_problem(fitted)
    if trained and (moved := other_objective(trained, found)):
        raise ValueError(
            f"{o.data} is not the training data of {o.model}: the objective is "
            f"{moved[0]} instead of {moved[1]}"
        )
    if o.json:
        about = {"model": o.model, "kind": kind, **facts_of(examples)}
        print_json(about | {"certificates": in_json(certificates)})
    else:
        _print_bound(o.model, certificates)
        if o.verbose:
            print_details(certificates)


def read_with_data(
    o: Values, command: str
) -> tuple[str, Model, FileExamples, Scaling | None]:
    """Read a model file of any package, its training data, and their scaling."""
    data, model = o.data, o.model
    refuse_unreadable(data)
    refuse_store(data, command)
    parameters = {name: getattr(o, name, None) for name in _TOLD}
    kind, fitted, notes, scaling = read_model(model, parameters)
    fitted = uncalibrated(fitted)
    known = fitted.get_params()
    for name, value in parameters.items():
        told = ""
        if kind == "dualgap" and value is not None:
            told = f"contains {name}; leave --{name} out"
        elif value is not None and name not in known:
            told = f"has a {type(fitted).__name__}, which has no {name}; leave it out"
        elif kind != "dualgap" and value is None and name in known:
            told = f"is a file of {kind}, which does not contain {name}; give --{name}"
        if told:
            raise ValueError(f"{model} {told}")
    remedy = f"give data like the training data of {model}"
    size = None if kind == "LIBSVM" else fitted.n_features_in_
    needed = o.label is not None or not is_novelty(fitted)
    reading = reading_of(notes, o, needed, training=True)
    base = bool(notes["zero_based"])
    examples = read_data(data, o.zero_based, o.n_jobs, size, remedy, reading, base)
    rows = notes.get("examples", examples.shape[0])
    if rows != examples.shape[0]:
        raise ValueError(
            f"{data} is not the training data of {model}: it has "
            f"{examples.shape[0]:,} examples instead of {rows:,}"
        )
    if kind == "LIBSVM":
        from scipy import sparse

        from ..models.peers import find_support

        find_support(fitted, sparse.csr_matrix(examples.X), examples.y)
    return kind, fitted, examples, scaling


def _print_bound(model: str, certificates: Certificates) -> None:
    """Print the bound on the distance of a model from the optimum."""
    worst_of, worst = worst_problem(certificates)
    if len(certificates) > 1:
        number = f"{model}: each of {len(certificates):,} problems"
        print(f"{number} is {reach(worst)}. Worst: {worst_of}.")
    else:
        print(f"{model} is {reach(worst)}.")
    if worst.relative_gap >= 0.1:
        print(
            "Such a large distance usually means that the model was trained with other "
            "data or options: check DATA and the options.",
            file=sys.stderr,
        )


def read_model(
    path: str, told: Mapping[str, float | None]
) -> tuple[str, Model, dict[str, Scalar], Scaling | None]:
    """Read a model file of dualgap, LIBLINEAR or LIBSVM."""
    from ..models import read_liblinear, read_libsvm
    from ..models.files import load_parts

    whose = refuse_no_model(path, others=True)
    if whose != "dualgap":
        read = read_liblinear if whose == "LIBLINEAR" else read_libsvm
        model = read(
            path, C=told.get("C") or 1.0, epsilon=told.get("epsilon") or 0.0,
            nu=told.get("nu") or 0.5,
        )  # fmt: skip
        return whose, model, {"zero_based": False}, None
    model, notes, scaling = load_parts(path)
    return whose, model, {"zero_based": False, **notes}, scaling
