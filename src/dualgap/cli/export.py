"""``dualgap export``: a model for other programs."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from .certify import read_model
from .data import refuse_unwritable, whose_model
from .options import Debug, app, known_word, paragraphs, told_plainly

_NAMES = {"liblinear": "LIBLINEAR", "libsvm": "LIBSVM", "onnx": "ONNX runtimes"}


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap export a9a.model a9a.liblinear --format liblinear",
        "liblinear-predict a9a.t a9a.liblinear labels.txt",
        "dualgap export digits.model digits.libsvm --format libsvm",
        "dualgap export a9a.model a9a.onnx",
        "LIBLINEAR's files hold linear models, LIBSVM's kernel models trained with the "
        "hinge. Those two number their features from 1 on, and their classes are whole "
        "numbers.",
    )
)
def export(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Model file of train, of LIBLINEAR or of LIBSVM.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Argument(metavar="OUT", help="File to write.", show_default=False),
    ],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="liblinear, libsvm or onnx.",
            show_default="onnx for OUT.onnx, else liblinear for linear models and "
            "libsvm for others",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Write MODEL as a file of another program."""
    if format_ is not None:
        known_word(format_, list(_NAMES))
    with told_plainly(debug):
        _, fitted, notes = read_model(model, None)
        refuse_unwritable(output, [model])
        _refuse_overwriting(output)
        if format_ is None:
            own = "libsvm" if hasattr(fitted, "kernel") else "liblinear"
            format_ = "onnx" if output.lower().endswith(".onnx") else own
        _WRITERS[format_](fitted, output)
        typer.echo(f"{output} written for {_NAMES[format_]}")
        if notes["zero_based"] and format_ in ("liblinear", "libsvm"):
            typer.echo(
                "its features were numbered from 0 on in training, and are from 1 on "
                "in this file",
                err=True,
            )


def _refuse_overwriting(path: str) -> None:
    """Refuse to put a model in the place of what is none, such as a data file."""
    if not os.path.exists(path) or path.lower().endswith(".onnx"):
        return
    if os.path.getsize(path) and whose_model(path) not in ("LIBLINEAR", "LIBSVM"):
        raise ValueError(
            f"{path} exists and is no model file of LIBLINEAR or LIBSVM; remove it "
            "first, or choose another name"
        )


def _liblinear(model: Any, output: str) -> None:
    from ..estimators import write_liblinear

    if hasattr(model, "kernel"):
        raise ValueError("--format liblinear is for linear models; use libsvm")
    write_liblinear(model, output)


def _libsvm(model: Any, output: str) -> None:
    from ..estimators import write_libsvm

    if not hasattr(model, "kernel"):
        raise ValueError("--format libsvm is for kernel models; use liblinear")
    write_libsvm(model, output)


def _onnx(model: Any, output: str) -> None:
    import dualgap

    from ..io.atomic import write_atomically

    try:
        to_onnx = dualgap.to_onnx
    except AttributeError:
        raise ValueError("--format onnx: this version of dualgap cannot") from None
    proto = to_onnx(model)
    with write_atomically(output) as file:
        file.write(proto.SerializeToString())


_WRITERS = {"liblinear": _liblinear, "libsvm": _libsvm, "onnx": _onnx}
