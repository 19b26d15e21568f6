"""``dualgap certify``, ``prove``, ``report`` and ``export``: a trained model."""

from __future__ import annotations

import copy
import os
import sys
from typing import TYPE_CHECKING

from .data import (
    FileExamples,
    Trained,
    check_files,
    read_data,
    read_model,
    rescaled,
    uncalibrated,
)
from .options import WEIGHTS, Options, reader_for
from .parser import UsageError, Values
from .predict import is_novelty
from .report import in_json, print_details, print_json, reach, worst_of

if TYPE_CHECKING:
    import onnx

    from ..data.model_file import Scalar
    from ..data.scaling import Scaling
    from .data import Model

CERTIFY = (
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
PROVE = (
    "dualgap prove a9a a9a.model a9a.proof; dualgap-check a9a.proof a9a",
    "liblinear-train -s 3 -c 1 -B 1 a9a a9a.ll; dualgap prove a9a a9a.ll -C 1 -o "
    "a9a.proof",
    "DATA must be the training data of the model, linear or with a kernel. The proof "
    "holds the training problem, the rows, the mean and scale of columns that were "
    "standardised, the model and dual variables in exact integers.",
    "dualgap-check is a program of its own, one file of plain Python. It computes the "
    "claims again, and compares the rows with DATA if that is svmlight text.",
)
REPORT = (
    "dualgap report a9a a9a.model a9a.html",
    "dualgap report prices.csv prices.model --label price -o prices.html",
    "dualgap report a9a a9a.liblinear --C 1 -o a9a.html",
    "DATA must be the training data of the model. The page shows errors, the "
    "certificate, margins, support vectors, problems of the columns, and what to try "
    "next. It has its pictures inside and opens without network.",
    CERTIFY[-1],
)
_OF_OTHERS = """
Model:
  {} X
    Value that a model of LIBLINEAR or LIBSVM was trained with. [default: from the model
    file]
"""
_TOL = """
Solver and accuracy:
  --tol X
    Tightness of the bound: it overstates the true distance by at most this fraction.
    Smaller takes longer. [default: 0.001]
"""
_TIME = """
Solver and accuracy:
  --time-limit SECONDS
    Seconds. If time runs out, the bound holds but may be loose.
"""
_VERBOSE = """
Output:
  --verbose
    Show the certificate of every class or pair of classes.
"""


def add_certify(command: Options) -> None:
    """Add the options of certify."""
    _add(command, _TIME + _VERBOSE, "--nu -n")


def add_prove(command: Options) -> None:
    """Add the options of prove."""
    _add(command)
    command.output("PROOF", "Proof file to write.", "proof")


def add_report(command: Options) -> None:
    """Add the options of report."""
    _add(command, _TIME, "--nu -n")
    command.output("PAGE", "HTML file to write.", "page", shown="report.html")


def _add(command: Options, more: str = "", *told: str) -> None:
    """Add what all three take; a bound may run out of time, a proof cannot."""
    command.data()
    command.trained_model(
        "Model file of train, of LIBLINEAR (-s 1 to 4, 11 to 13, 21) or of LIBSVM "
        "(-s 0, 2, 3).",
    )
    readers = {key: reader_for(key) for key in ("epsilon", "nu", "tol", "time_limit")}
    others = "".join(map(_OF_OTHERS.format, ("--C -C -c", "--epsilon -p", *told)))
    command.add(others + _TOL + more + WEIGHTS, **readers)
    command.table_options(trained=True)
    command.jobs("predicting with a kernel")
    command.common()


def certify(o: Values) -> None:
    """Print the bound on the distance of a model from its optimum."""
    from ..estimators.fitted import other_objective
    from ..models.certification import certify

    model, fitted, examples = _read(o)
    rows = rescaled(examples, model.scaling)
    # Without it certify does not warn: here other rows are an error.
    trained = vars(fitted).pop("certificate_", None)
    found = certify(
        fitted, rows.X, rows.y, tol=o.tol, time_limit=o.time_limit, random_state=0,
        sample_weight=rows.weight,
    )  # fmt: skip
    if trained and (moved := other_objective(trained, found)):
        raise ValueError(
            f"{o.data} is not the training data of {o.model}: the objective is "
            f"{moved[0]} instead of {moved[1]}"
        )
    if o.json:
        about = {"model": o.model, "kind": model.kind, **rows.facts()}
        print_json(about | {"certificates": in_json(fitted, found)})
        return
    worst, several = worst_of(found), len(found) > 1
    number = f": each of {len(found):,} problems" * several
    print(f"{o.model}{number} is {reach(worst)}." + f" Worst: {worst.name}." * several)
    if worst.relative_gap >= 0.1:
        print(
            "Such a large distance means that training ended far from the optimum, or "
            "that it had other data or options: check DATA and the options.",
            file=sys.stderr,
        )
    if o.verbose:
        print_details(found)


def prove(o: Values) -> None:
    """Write a proof, and tell what it proves."""
    data, model, output = o.data, o.model, o.output
    from ..models.files import pipeline_of
    from ..models.proofs import write_proof

    trained, fitted, examples = _read(o)
    comparable = _is_text(data)
    try:
        found = write_proof(
            fitted if trained.scaling is None else pipeline_of(trained.scaling, fitted),
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
    if o.json:
        report: dict[str, object] = {"model": model, "kind": trained.kind}
        report |= {"proof": output, "compares_data": comparable}
        print_json(report | {"certificates": in_json(fitted, found)})
        return
    worst = worst_of(found)
    several = f"the worst part, {worst.name}, " if len(found) > 1 else ""
    print(f"{output} proves: {several or model + ' '}is {reach(worst)}.")
    print(f"Next: dualgap-check {output}{f' {data}' if comparable else ''}")
    if not comparable:
        print(
            f"The proof names no DATA, because {examples.path} is not a file of plain "
            "svmlight text. It is about the numbers in the proof file, which dualgap "
            "read from there.",
            file=sys.stderr,
        )


def report(o: Values) -> None:
    """Write a page about a model and its training data."""
    o.output = o.output or "report.html"
    trained, fitted, examples = _read(o)
    from ..html_report import report as page_about  # needs matplotlib

    examples = rescaled(examples, trained.scaling)
    if hasattr(fitted, "kernel"):
        fitted.n_jobs = -1 if o.n_jobs is None else o.n_jobs
    names = examples.names
    if names is None and not examples.zero_based:
        names = [str(k + 1) for k in range(examples.shape[1])]
    page = page_about(
        fitted, examples.X, examples.y, feature_names=names, tol=o.tol,
        time_limit=o.time_limit, random_state=0, sample_weight=examples.weight,
    )  # fmt: skip
    page.save(o.output)
    if o.json:
        about = {"model": o.model, "kind": trained.kind, "output": o.output}
        print_json(about | examples.facts())
    else:
        print(f"Report written to {o.output}")


def _read(o: Values) -> tuple[Trained, Model, FileExamples]:
    """Read a model file of any package without its probabilities, and its data."""
    check_files(o)
    told = {name: getattr(o, name, None) for name in ("C", "epsilon", "nu")}
    trained = read_model(o.model, told)
    fitted, kind = uncalibrated(trained.model), trained.kind
    known = fitted.get_params()
    for name, value in told.items():
        remedy = ""
        if kind == "dualgap" and value is not None:
            remedy = f"contains {name}; leave --{name} out"
        elif value is not None and name not in known:
            remedy = f"has a {type(fitted).__name__}, which has no {name}; leave it out"
        elif kind != "dualgap" and value is None and name in known:
            remedy = (
                f"is a file of {kind}, which does not contain {name}; give --{name}"
            )
        if remedy:
            raise ValueError(f"{o.model} {remedy}")
    needed = o.label is not None or not is_novelty(fitted)
    examples = read_data(o, trained, needs_label=needed)
    rows = trained.notes.get("examples", examples.shape[0])
    if rows != examples.shape[0]:
        raise ValueError(
            f"{o.data} is not the training data of {o.model}: it has "
            f"{examples.shape[0]:,} examples instead of {rows:,}"
        )
    if kind == "LIBSVM":
        from scipy import sparse

        from ..models.peers import find_support

        find_support(fitted, sparse.csr_matrix(examples.X), examples.y)
    return trained, fitted, examples


def _is_text(path: str) -> bool:
    """Whether a path names a file of plain svmlight text."""
    from ..data.opening import kind_of

    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return kind_of(file.read(2**16)) == ("svmlight", None)


EXPORT = (
    "dualgap export a9a.model a9a.liblinear --format liblinear",
    "liblinear-predict a9a.t a9a.liblinear labels.txt",
    "dualgap export digits.model digits.libsvm --format libsvm",
    "dualgap export a9a.model a9a.onnx",
    "LIBLINEAR's files are for linear models, LIBSVM's for kernel models trained with "
    "the hinge. Both number features from 1, and need whole numbers as classes.",
)
_NAMES = {"liblinear": "LIBLINEAR", "libsvm": "LIBSVM", "onnx": "ONNX runtimes"}
_EXTENSIONS = {
    ".ll": "liblinear",
    ".svm": "libsvm",
    **{f".{name}": name for name in _NAMES},
}

_FORMAT = """
Output:
  --format liblinear|libsvm|onnx
    What to write. [default: from the extension of OUT; without one, liblinear for
    linear models and libsvm for kernel models]
"""


def add_export(command: Options) -> None:
    """Add the options."""
    command.trained_model()
    command.output("OUT", "File to write.", "peer")
    command.add(_FORMAT)
    command.common()


def export(o: Values) -> None:
    """Write the file."""
    import numpy as np

    output = o.output
    format_ = o.format or _format_of(output)
    if output.lower().endswith(".onnx"):
        o.command.writes["output"] = "onnx"
    check_files(o)
    trained = read_model(o.model, {})
    whole, fitted = trained.model, uncalibrated(trained.model)
    scaling = trained.scaling
    if scaling is not None and not (format_ == "onnx" and hasattr(fitted, "kernel")):
        fitted, scaling = _without_scaling(o.model, fitted, scaling), None
    format_ = format_ or ("libsvm" if hasattr(fitted, "kernel") else "liblinear")
    if whole is not fitted and format_ == "onnx":
        whole.estimator_ = fitted  # without the scaling
        fitted = whole
    labels, words = getattr(fitted, "classes_", None), list[str]()
    if format_ != "onnx" and labels is not None and labels.dtype.kind in "UO":
        words, fitted = labels.tolist(), copy.copy(fitted)
        fitted.classes_ = np.arange(1, len(words) + 1)
    _write(fitted, output, format_, trained.notes.get("columns"), scaling)
    if o.json:
        facts = {"model": o.model, "output": output, "format": format_}
        print_json(facts | ({"labels": words} if words else {}))
        return
    print(f"{output} written for {_NAMES[format_]}")
    if words:
        pairs = ", ".join(f"{k} is {word}" for k, word in enumerate(words, 1))
        print(f"Labels are numbers in this file: {pairs}.", file=sys.stderr)
    if trained.notes["zero_based"] and format_ in ("liblinear", "libsvm"):
        print(
            "Features are numbered from 1 in this file, but were numbered from 0 in "
            "the training data.",
            file=sys.stderr,
        )


def _without_scaling(name: str, model: Model, scaling: Scaling) -> Model:
    """Fold the scaling of the columns into a linear model."""
    if hasattr(model, "kernel"):
        raise ValueError(
            f"{name} is a kernel model trained with --standardize, which a LIBSVM file "
            "cannot hold; export it to .onnx, or train without --standardize on a file "
            "whose columns you have scaled (svm-scale does so)"
        )
    folded = copy.copy(model)
    folded.coef_ = model.coef_ / scaling.scale
    if scaling.mean is not None:
        folded.intercept_ = model.intercept_ - folded.coef_ @ scaling.mean
    return folded


def _format_of(output: str) -> str | None:
    """Return the format of an extension; None if the model decides."""
    extension = os.path.splitext(output)[1].lower()
    if extension in ("", ".model", ".txt"):
        return None
    if extension not in _EXTENSIONS:
        raise UsageError(
            f"{output} has an unknown extension; use .liblinear, .libsvm or .onnx, or "
            "choose the format with --format."
        )
    return _EXTENSIONS[extension]


def _put_before(proto: onnx.ModelProto, scaling: Scaling) -> None:
    """Scale the columns before a graph of ONNX."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    graph, scale = proto.graph, scaling.scale
    mean = np.zeros_like(scale) if scaling.mean is None else scaling.mean
    constants = {"column_means": mean, "column_scales": scale}
    for name, values in constants.items():
        graph.initializer.append(numpy_helper.from_array(values, name))
    X, nodes = graph.input[0].name, [*graph.node]
    for node in nodes:
        node.input[:] = ["scaled" if name == X else name for name in node.input]
    del graph.node[:]
    graph.node.extend(
        [
            helper.make_node("Cast", [X], ["unscaled"], to=TensorProto.DOUBLE),
            helper.make_node("Sub", ["unscaled", "column_means"], ["centred"]),
            helper.make_node("Div", ["centred", "column_scales"], ["scaled"]),
            *nodes,
        ]
    )


def _write(
    model: Model, output: str, format_: str, columns: Scalar, scaling: Scaling | None
) -> None:
    """Write a model in a format, or refuse a model that the format cannot hold.

    ONNX has a place for the description of the columns, and for a scaling.
    """
    import dualgap

    if format_ == "onnx":
        from ..data.atomic import write_atomically

        proto = dualgap.to_onnx(model)
        if scaling is not None:
            _put_before(proto, scaling)
        if isinstance(columns, str):
            proto.metadata_props.add(key="dualgap.columns", value=columns)
        with write_atomically(output) as file:
            file.write(proto.SerializeToString())
        return
    try:
        getattr(dualgap.models, f"write_{format_}")(model, output)
    except TypeError as error:
        raise ValueError(str(error).replace("write_", "--format ")) from None


COMMANDS = {
    "certify": (CERTIFY, add_certify, certify),
    "prove": (PROVE, add_prove, prove),
    "export": (EXPORT, add_export, export),
    "report": (REPORT, add_report, report),
}
