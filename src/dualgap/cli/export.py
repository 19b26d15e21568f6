"""``dualgap export``: write a model for other programs."""

from __future__ import annotations

import copy
import os
import sys
from typing import TYPE_CHECKING

from .certify import read_model
from .data import uncalibrated
from .files import check_files
from .options import Options
from .parser import UsageError, Values
from .report import print_json

if TYPE_CHECKING:
    from ..data.model_file import Scalar
    from ..data.scaling import Scaling
    from .data import Model

EPILOG = (
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


OPTIONS = """
Output:
  --format liblinear|libsvm|onnx
    What to write. [default: from the extension of OUT; without one, liblinear for
    linear models and libsvm for kernel models]
"""


def add(command: Options) -> None:
    """Add the options."""
    command.trained_model("Model file of train, of LIBLINEAR or of LIBSVM.")
    command.output("OUT", "File to write.", "peer")
    command.add(OPTIONS)
    command.common()


def run(o: Values) -> None:
    """Write the file."""
    import numpy as np

    output = o.output
    format_ = o.format or _format_of(output)
    if output.lower().endswith(".onnx"):
        o.command.writes["output"] = "onnx"
    check_files(o)
    trained = read_model(o.model, {})
    whole, fitted = trained.model, uncalibrated(trained.model)
    if trained.scaling is not None:
        fitted = _without_scaling(o.model, fitted, trained.scaling)
    format_ = format_ or ("libsvm" if hasattr(fitted, "kernel") else "liblinear")
    if whole is not fitted and format_ == "onnx":
        whole.estimator_ = fitted  # without the scaling
        fitted = whole
    labels, words = getattr(fitted, "classes_", None), list[str]()
    if format_ != "onnx" and labels is not None and labels.dtype.kind in "UO":
        words, fitted = labels.tolist(), copy.copy(fitted)
        fitted.classes_ = np.arange(1, len(words) + 1)
    _write(fitted, output, format_, trained.notes.get("columns"))
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
            f"{name} is a kernel model trained with --standardize, which cannot be "
            "exported; train without --standardize"
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


def _write(model: Model, output: str, format_: str, columns: Scalar) -> None:
    """Write a model in a format, or refuse a model that the format cannot hold.

    ONNX has a place for the description of the columns.
    """
    import dualgap

    if format_ == "onnx":
        from ..data.atomic import write_atomically

        proto = dualgap.to_onnx(model)
        if isinstance(columns, str):
            proto.metadata_props.add(key="dualgap.columns", value=columns)
        with write_atomically(output) as file:
            file.write(proto.SerializeToString())
        return
    try:
        getattr(dualgap.models, f"write_{format_}")(model, output)
    except TypeError as error:
        raise ValueError(str(error).replace("write_", "--format ")) from None


COMMANDS = {"export": (EPILOG, add, run)}
