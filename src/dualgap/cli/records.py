"""Options of solvers, losses and kernels, which are fields of their records."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import fields
from inspect import signature
from typing import TYPE_CHECKING, Literal, get_args, get_origin, get_type_hints

from .parser import UsageError, Values

if TYPE_CHECKING:
    from ..kernel import Nystroem
    from ..losses import SmoothedHinge
    from ..solvers import Solver


def refuse_shape(o: Values) -> None:
    """Refuse parameters of other kernels, which would be ignored."""
    from ..estimators.parameters import KERNELS

    takes = {name: signature(kernel).parameters for name, kernel in KERNELS.items()}
    for key in ("gamma", "degree", "coef0"):
        if getattr(o, key, None) is not None and key not in takes[o.kernel]:
            able = [name for name in KERNELS if key in takes[name]]
            raise UsageError(
                f"--{key} is for --kernel {' or '.join(able)}, not {o.kernel}."
            )


def configured_loss(loss: str | None, gamma: float | str) -> SmoothedHinge:
    """Return the smoothed hinge with a width, or refuse the width."""
    if loss != "smoothed_hinge":
        raise UsageError(
            "--gamma is for --kernel, or for --loss smoothed_hinge without one."
        )
    if isinstance(gamma, str):
        raise UsageError(f"--gamma {gamma} needs --kernel; without it, give a number.")
    from ..losses import SmoothedHinge

    return SmoothedHinge(gamma)


def configured_solver(
    solver: str, options: Sequence[str], kernel: str | None, task: str
) -> str | Solver | Nystroem:
    """Return the name of a solver or, with options, its record."""
    if not options:
        return solver
    from ..data.model_file import from_fields
    from ..kernel import APPROXIMATIONS, KERNEL_SOLVERS
    from ..solvers import SOLVERS

    if task != "classification":
        raise UsageError(f"--solver-option is not for --task {task}.")
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
            raise UsageError(
                f"--solver-option {option!r} is unknown; {solver} has "
                + (f"the options {names}." if names else "no options.")
            )
        # An option whose default is a word takes words, such as none.
        word = isinstance(known[name], str)
        given[name] = text.strip() if word else _parsed(text.strip())
        words = get_args(hints[name]) if get_origin(hints[name]) is Literal else ()
        if words and given[name] not in words:
            raise UsageError(
                f"--solver-option {option}: use {', '.join(map(str, words))}."
            )
    try:
        return from_fields(record, known | given)
    except (ValueError, TypeError) as error:
        told = str(error).removeprefix(f"{record.__name__}: ").replace("=None", "=none")
        raise UsageError(f"--solver-option: {told}.") from None


def _parsed(text: str) -> bool | int | float | str | None:
    """Return the value of a text: a number, true, false, none, or a word."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
