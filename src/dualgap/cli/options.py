"""Options that several commands share, and their values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ..names import ALIASES, nearest

if TYPE_CHECKING:
    from typer.models import OptionInfo


def positive(value: float | None) -> float | None:
    """Return the value of an option, after checking that it is positive and finite."""
    if value is not None and not 0.0 < value < math.inf:
        raise typer.BadParameter(f"{value} is not a positive, finite number.")
    return value


def fraction(value: float) -> float:
    """Return a relative accuracy, after checking that it is between 0 and 1."""
    positive(value)
    if value >= 1.0:
        raise typer.BadParameter(
            f"{value:g} is {100.0 * value:g} %, which proves nothing; give a fraction "
            "below 1, such as 0.001 for 0.1 %."
        )
    return value


def known_word(
    value: str, known: Sequence[str], parameter: str = "", option: str = ""
) -> str:
    """Return a known word; an alias of the parameter's is replaced by its word.

    Errors in callbacks name their option; elsewhere `option` is its name.

    Raises
    ------
    typer.BadParameter
        If the word is unknown, with the most similar known one.
    """
    if value in known:
        return value
    near = nearest(value, known, parameter)
    if near and value.lower() in ALIASES.get(parameter, {}):
        return near
    hint = f" Did you mean {near!r}?" if near else ""
    raise typer.BadParameter(
        f"{option and f'{option}: '}{value!r} is not one of {', '.join(known)}.{hint}"
    )


def positive_numbers(option: str, text: str) -> list[float]:
    """Return the distinct numbers of a list such as 0.1,1,10, sorted."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0.0 < value < math.inf for value in values):
        raise typer.BadParameter(
            f"{option} {text!r} is invalid; give positive numbers, such as 0.1,1."
        )
    return sorted(set(values))


def solver_name(value: str) -> str:
    """Return the name of a known solver."""
    from ..solvers import SOLVERS

    if value in SOLVERS:  # without importing all kernel solvers
        return value
    return known_word(value, _solver_names(), "solver")


def complete_solver(incomplete: str) -> list[str]:
    """Return the solvers that begin with a text, for shell completion."""
    return [name for name in _solver_names() if name.startswith(incomplete)]


def _solver_names() -> list[str]:
    from ..kernel import APPROXIMATIONS, KERNEL_SOLVERS
    from ..solvers import SOLVERS

    return [*{**SOLVERS, **KERNEL_SOLVERS, **APPROXIMATIONS}]


class Words:
    """Words that an option takes, for its callback and for shell completion."""

    def __init__(self, known: Callable[[], Sequence[str]], parameter: str = "") -> None:
        self.known, self.parameter = known, parameter

    def check(self, value: str | None) -> str | None:
        """Return a known word, or None."""
        return value and known_word(value, self.known(), self.parameter)

    def complete(self, incomplete: str) -> list[str]:
        """Return the words that begin with a text."""
        return [word for word in self.known() if word.startswith(incomplete)]


def _losses() -> list[str]:
    from ..losses import LOSSES, RESIDUAL_LOSSES  # on use: NumPy takes time

    return [*LOSSES, *RESIDUAL_LOSSES]


LOSS = Words(_losses)
# Values of the parameter `multi_class`, with hyphens.
MULTI_CLASS = Words(lambda: ("ovr", "ovo", "crammer-singer"))
# Kernels of the estimator, except "precomputed", because DATA contains rows.
SHAPED = ("poly", "rbf", "sigmoid", "laplacian")  # kernels with a gamma
KERNEL = Words(lambda: ("linear", *SHAPED), "kernel")


_GAMMAS = ("scale", "auto", "mean-distance")


def gamma_value(value: str | None) -> float | str | None:
    """Return the value of --gamma: a number, or the name of a rule."""
    if value is None or value in _GAMMAS:
        return value
    try:
        return positive(float(value))
    except ValueError:
        raise typer.BadParameter(
            f"{value!r} is neither a number nor one of {', '.join(_GAMMAS)}."
        ) from None


_UNITS = {"": 1.0, "kb": 1e-3, "mb": 1.0, "gb": 1e3, "tb": 1e6}


_UNITS |= {"kib": 1024e-6, "mib": 1024**2 / 1e6, "gib": 1024**3 / 1e6}


def megabytes(value: str | None) -> float | None:
    """Return a size such as 2GB in units of 10**6 bytes."""
    if value is None:
        return None
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", value)
    unit = found and _UNITS.get(found[2].lower())
    try:
        size = float(found[1]) * unit if found and unit else 0.0
    except ValueError:
        size = 0.0
    if not 0.0 < size < math.inf:
        raise typer.BadParameter(f"{value!r} is not a size, such as 500MB or 2GB.")
    return size


_DATA_HELP = (
    "svmlight / LIBSVM text, CSV, TSV, Parquet, Arrow or .npz, also compressed; - is "
    "standard input."
)
DataPath = Annotated[
    str, typer.Argument(metavar="DATA", help=_DATA_HELP, show_default=False)
]
DataOrStore = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help=f"{_DATA_HELP} Or a row store made by convert.",
        show_default=False,
    ),
]


def _zero_based(of: str, default: str) -> OptionInfo:
    return typer.Option(
        "--zero-based/--one-based",
        help=f"Whether the indices in {of} start at 0 or at 1.",
        show_default=default,
    )


def _label(default: str) -> OptionInfo:
    return typer.Option(
        metavar="COLUMN",
        help="Label column of a table: its name, or its number, counted from 1.",
        show_default=default,
    )


Label = Annotated[
    str | None, _label("label, target, class or y, or the only column of text")
]
LabelAsTrained = Annotated[str | None, _label("as in training")]
FeatureColumns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="COLUMN,...",
        help="Feature columns of a table: names, or numbers, counted from 1.",
        show_default="all but the labels",
    ),
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize",
        help="Give every column mean 0 and standard deviation 1 (sparse data keep "
        "their zeros). A model file stores the scaling for prediction.",
    ),
]


_FROM_DATA, _FROM_MODEL = "at 0 if index 0 occurs", "as in training"
ZeroBased = Annotated[bool | None, _zero_based("DATA", _FROM_DATA)]
ZeroBasedAsTrained = Annotated[bool | None, _zero_based("DATA", _FROM_MODEL)]
ZeroBasedInputs = Annotated[bool | None, _zero_based("IN", _FROM_DATA)]


def _threads(value: int | None) -> int | None:
    """Return a number of threads, after checking that it is not 0."""
    if value == 0 or not -4096 <= (value or 0) <= 4096:
        raise typer.BadParameter(
            f"{value} is not a number of threads; give 1, 2, ... or -1 for all."
        )
    return value


Jobs = Annotated[
    int | None,
    typer.Option(
        callback=_threads,
        help="Threads for reading, and for training several classes (with a kernel, "
        "pairs of classes). -1 uses all processors.",
        show_default="all for reading, 1 for training",
    ),
]


LinearJobs = Annotated[
    int | None,
    typer.Option(
        callback=_threads,
        help="Threads for reading, and for training several classes. -1 uses all "
        "processors.",
        show_default="all for reading, 1 for training",
    ),
]
ReadJobs = Annotated[
    int | None,
    typer.Option(
        callback=_threads,
        help="Threads for reading. -1 uses all processors.",
        show_default="all",
    ),
]
PredictJobs = Annotated[
    int | None,
    typer.Option(
        callback=_threads,
        help="Threads for reading, and for predicting with a kernel. -1 uses all "
        "processors.",
        show_default="all",
    ),
]


LinearLoss = Annotated[
    str,
    typer.Option(
        callback=LOSS.check,
        autocompletion=LOSS.complete,
        help="hinge, squared_hinge or smoothed_hinge.",
    ),
]
TrainedModel = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="File written by train.", show_default=False),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show only the result, no progress.")
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", help="Show the certificate of every class or pair of classes."
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of text.")
]


Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Options of all commands that train."""

    intercept: Annotated[
        bool, typer.Option(help="Fit a bias: the weight of a constant feature.")
    ] = True
    seed: Annotated[
        int, typer.Option(min=0, help="The same seed gives the same model.")
    ] = 0
    label: Label = None
    columns: FeatureColumns = None
    standardize: Standardize = False
    zero_based: ZeroBased = None
    json_: Json = False
    quiet: Quiet = False
    debug: Debug = False
