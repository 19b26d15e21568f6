"""Options of ``dualgap train`` as parameters of classifiers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import fields
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    get_args,
    get_origin,
    get_type_hints,
)

import typer

from ..names import nearest
from .data import (
    FileExamples,
    labels_of,
    shortened,
)
from .options import SHAPED

if TYPE_CHECKING:
    from ..data.types import Label
    from ..kernel import Nystroem
    from ..losses import SmoothedHinge
    from ..solvers import Solver

    #: Weights of the classes by their labels, or a rule for them.
    Weights = dict[Label, float] | str | None

#: Parameters of an estimator.
Parameters = dict[str, Any]


def configured_solver(
    solver: str, options: Sequence[str], kernel: str | None, task: str
) -> str | Solver | Nystroem:
    """Return the name of a solver or, with options, its record.

    Raises
    ------
    typer.BadParameter
        If an option is unknown or its value is invalid.
    """
    if not options:
        return solver
    from ..data.model_file import from_fields
    from ..kernel import APPROXIMATIONS, KERNEL_SOLVERS
    from ..solvers import SOLVERS

    if task != "classification":
        raise typer.BadParameter(f"--solver-option is not for --task {task}.")
    registers: dict[str, type] = {**SOLVERS}
    if kernel is not None:
        registers = {**KERNEL_SOLVERS, **APPROXIMATIONS}
    record = registers[solver]
    # `max_steps`, the keyword that solvers inherit, comes last.
    own = sorted(fields(record), key=lambda f: f.kw_only is True)
    known = {f.name: getattr(record(), f.name) for f in own if f.init}
    given, hints = {}, get_type_hints(record)
    for option in options:
        name, equals, text = option.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in known:
            names = ", ".join(
                f"{key}={'none' if value is None else value}"
                for key, value in known.items()
            )
            raise typer.BadParameter(
                f"--solver-option {option!r} is unknown; {solver} has "
                + (f"the options {names}." if names else "no options.")
            )
        # An option whose default is a word takes words, such as none.
        word = isinstance(known[name], str)
        given[name] = text.strip() if word else _parsed(text.strip())
        words = get_args(hints[name]) if get_origin(hints[name]) is Literal else ()
        if words and given[name] not in words:
            raise typer.BadParameter(
                f"--solver-option {option}: use {', '.join(map(str, words))}."
            )
    try:
        return from_fields(record, known | given)
    except (ValueError, TypeError) as error:
        told = str(error).removeprefix(f"{record.__name__}: ").replace("=None", "=none")
        raise typer.BadParameter(f"--solver-option: {told}.") from None


def _parsed(text: str) -> bool | int | float | str | None:
    """Return the value of a text: a number, true, false, none, or a word."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def of_linear_svc(
    solver: str,
    loss: str | None,
    bias: Parameters,
    shape: Parameters,
    multi_class: str,
) -> Parameters:
    """Return the parameters of LinearSVC, after checking the options."""
    loss = loss or default_loss(multi_class)
    gamma, scaling = shape["gamma"], bias["intercept_scaling"]
    for name, option in _ONLY_KERNEL.items():
        if shape[name] is not None:
            raise typer.BadParameter(f"{option} needs --kernel.")
    if gamma is not None and loss != "smoothed_hinge":
        raise typer.BadParameter(
            f"--gamma is for --kernel or for --loss smoothed_hinge, not {loss}."
        )
    if isinstance(gamma, str):
        raise typer.BadParameter(
            f"--gamma {gamma} needs --kernel; without it, give a number."
        )
    if scaling is not None and not bias["fit_intercept"]:
        raise typer.BadParameter("--intercept-scaling needs --intercept.")
    if not bias["penalize_intercept"]:
        _refuse_free_bias(solver, bias["fit_intercept"], scaling)
    refuse_mismatch(solver, loss)
    if multi_class == "crammer-singer":
        _refuse_together(solver, loss, bias["penalize_intercept"])
    return bias | {
        "multi_class": multi_class.replace("-", "_"),
        "loss": _loss_record(loss, gamma),
        "intercept_scaling": scaling or 1.0,
    }


def of_svc(
    solver: str,
    loss: str | None,
    bias: Parameters,
    shape: Parameters,
    kernel: str,
) -> Parameters:
    """Return the parameters of SVC, after checking the options."""
    from ..kernel import APPROXIMATIONS, KERNEL_SOLVERS

    known = KERNEL_SOLVERS | APPROXIMATIONS
    loss = loss or "hinge"
    if loss not in ("hinge", "squared_hinge"):
        raise typer.BadParameter(
            f"--kernel needs --loss hinge or squared_hinge, not {loss}."
        )
    if bias["intercept_scaling"] is not None or not bias["penalize_intercept"]:
        raise typer.BadParameter(
            "--intercept-scaling and --no-penalize-intercept are not for --kernel; "
            "leave them out. The bias is unpenalised with hinge, except with --solver "
            "kernel-pegasos, and penalised with squared_hinge."
        )
    if solver not in known:
        raise typer.BadParameter(
            f"--solver {solver} trains only linear SVMs; with --kernel use "
            f"{', '.join(known)}."
        )
    record = known[solver]
    if loss not in getattr(record, "losses", (loss,)):
        raise typer.BadParameter(
            f"--solver {solver} cannot train --loss hinge; use --loss squared_hinge, "
            "or --solver auto, block or kernel-pegasos."
        )
    if not (bias["fit_intercept"] or record.without_bias):
        raise typer.BadParameter(
            f"--solver {solver} needs a bias; with --no-intercept use --solver "
            "kernel-pegasos or nystroem."
        )
    users = {"gamma": set(SHAPED), "degree": {"poly"}, "coef0": {"poly", "sigmoid"}}
    for name, kernels in users.items():
        if shape[name] is not None and kernel not in kernels:
            raise typer.BadParameter(
                f"--{name} is for --kernel {' or '.join(sorted(kernels))}, not "
                f"{kernel}."
            )
    given = {name: value for name, value in shape.items() if value is not None}
    own = {"kernel": kernel, "loss": loss, "fit_intercept": bias["fit_intercept"]}
    return own | given


def default_loss(multi_class: str) -> str:
    """Return the loss of linear SVMs without --loss; the joint problem has its own."""
    return "hinge" if multi_class == "crammer-singer" else "squared_hinge"


_ONLY_KERNEL = {"degree": "--degree", "coef0": "--coef0", "cache_size": "--cache"}


def refuse_mismatch(solver: str, loss: str) -> None:
    """Raise an error if a linear solver cannot train a loss."""
    from ..losses import RESIDUAL_LOSSES
    from ..solvers import SOLVERS

    if loss in RESIDUAL_LOSSES:
        raise typer.BadParameter(f"--loss {loss} needs --task regression.")
    if solver not in SOLVERS:
        raise typer.BadParameter(f"--solver {solver} needs --kernel.")
    losses = SOLVERS[solver].losses
    if loss not in losses:
        able = [name for name, record in SOLVERS.items() if loss in record.losses]
        raise typer.BadParameter(
            f"--solver {solver} cannot train --loss {loss}; use --loss "
            f"{' or '.join(losses)}, or --solver {', '.join(able)}."
        )


def _refuse_free_bias(solver: str, intercept: bool, scaling: float | None) -> None:
    from ..solvers import SOLVERS

    if not intercept:
        raise typer.BadParameter("--no-penalize-intercept needs --intercept.")
    if scaling is not None:
        raise typer.BadParameter(
            "--intercept-scaling has no effect with --no-penalize-intercept."
        )
    if not SOLVERS[solver]().free_bias:
        able = [name for name, record in SOLVERS.items() if record().free_bias]
        raise typer.BadParameter(
            f"--solver {solver} penalises the bias; with --no-penalize-intercept use "
            f"--solver {' or '.join(able)}."
        )


def _refuse_together(solver: str, loss: str, penalize_intercept: bool) -> None:
    """Raise an error for options that the joint problem of all classes lacks."""
    for option, known in (
        ("--solver", solver == "auto"),
        ("--loss", loss == "hinge"),
        ("--no-penalize-intercept", penalize_intercept),
    ):
        if not known:
            raise typer.BadParameter(
                f"{option} is not for --multi-class crammer-singer, which has its own "
                "solver, the hinge and a penalised bias; leave it out, or use "
                "--multi-class ovr or ovo."
            )


def _loss_record(loss: str, gamma: float | None) -> str | SmoothedHinge:
    if gamma is None:
        return loss
    from ..losses import SmoothedHinge

    return SmoothedHinge(gamma)


def class_weights(text: str | None) -> Weights:
    """Return None, ``"balanced"``, or weights by label, from the option's text.

    Raises
    ------
    typer.BadParameter
        If the text is malformed.
    """
    if text is None or text == "balanced":
        return text
    weights: dict[float | str, float] = {}
    for part in text.split(","):
        label, _, weight = part.partition("=")
        try:
            pair = _label(label), float(weight if label else "")
        except ValueError:
            near = nearest(text, ["balanced"])
            hint = f" Did you mean {near!r}?" if near else ""
            raise typer.BadParameter(
                f"--class-weight {text!r}: {part!r} is not LABEL=W, such as -1=2.5."
                f"{hint}"
            ) from None
        if not 0.0 < pair[1] < math.inf:
            raise typer.BadParameter(
                f"--class-weight {text!r}: {weight} is not a positive, finite number."
            )
        if pair[0] in weights:
            raise typer.BadParameter(f"--class-weight {text!r}: {label} occurs twice.")
        weights[pair[0]] = pair[1]
    return weights


def _label(text: str) -> float | str:
    """Return a label as a number, or else as text."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def weights_of_labels(weights: Weights, examples: FileExamples) -> Weights:
    """Return a weight for every label in the data, 1 by default.

    Raises
    ------
    typer.BadParameter
        If a label does not occur.
    """
    if not isinstance(weights, dict):
        return weights
    labels = labels_of(examples)
    strange = [label for label in weights if label not in labels]
    if strange:
        odd = strange[0] if isinstance(strange[0], str) else f"{strange[0]:g}"
        raise typer.BadParameter(
            f"--class-weight: {examples.path} has no label {odd}; its labels "
            f"are {shortened(labels)}."
        )
    return {label: weights.get(label, 1.0) for label in labels}
