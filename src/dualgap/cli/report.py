"""Output of the commands: progress, certificates, JSON."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..certificate import COLUMNS, Status, cells_of, distance, percent
from . import INTERRUPTED, NOT_CERTIFIED
from .options import in_options

if TYPE_CHECKING:
    from ..certificate import Certificate
    from ..data.types import ProblemLabel
    from ..plot import PathDisplay as Display
    from ..training import EpochInfo, Forecast
    from .data import Model


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings about degenerate optima and folds as sentences, with options."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for one in caught:
        # The other category is of scikit-learn, which may not be imported.
        if one.category.__name__ in ("DegenerateWarning", "ConvergenceWarning"):
            sentence = in_options(str(one.message).partition(": ")[2])
            print(f"Warning: {sentence.rstrip('.')}.", file=sys.stderr)
        else:
            place = one.filename, one.lineno
            warnings.warn_explicit(one.message, one.category, *place)


@contextlib.contextmanager
def without_convergence_warnings() -> Iterator[None]:
    """Leave out warnings about fits that the output and the exit status tell."""
    with warnings.catch_warnings():
        if "sklearn" in sys.modules:  # whose warning it is; models without it have none
            from sklearn.exceptions import ConvergenceWarning

            warnings.simplefilter("ignore", ConvergenceWarning)
        yield


#: Function that hears of every epoch of a problem.
OnEpoch: TypeAlias = "Callable[[ProblemLabel | None, EpochInfo], None]"


@contextlib.contextmanager
def progress(quiet: bool, tol: float, problems: int = 1) -> Iterator[OnEpoch | None]:
    """Yield a function that shows the progress of epochs; None if `quiet`.

    On a terminal it updates one line; elsewhere it prints lines at growing intervals.
    `problems` is the number of classes or pairs, each with the target `tol`.
    """
    if quiet:
        yield None
        return
    live = sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    room = shutil.get_terminal_size().columns - 1
    begun, due = time.perf_counter(), 0.1 if live else 1.0
    #: Of the problems that have begun.
    forecasts: dict[ProblemLabel | None, Forecast] = {}

    def show(label: ProblemLabel | None, epoch: EpochInfo) -> None:
        from ..problems.reductions import problem_name
        from ..training import Forecast, remaining

        nonlocal due
        forecast = forecasts.setdefault(label, Forecast(tol))
        left = forecast.left(epoch.seconds, epoch.relative_gap)
        seconds = time.perf_counter() - begun
        if seconds < due:
            return
        due = seconds + 0.1 if live else 2 * max(seconds, 0.5)
        start, number = "", len(forecasts)
        if problems > 1:
            start = f"{problem_name(label)} ({number} of {problems:,}), "
            left += (seconds + left) / number * (problems - number)
        bound = "no bound yet"
        if epoch.relative_gap < math.inf:
            bound = distance(epoch.relative_gap)
            bound += "" if epoch.exact else " (estimate)"
        target = f"target {percent(tol)}{remaining(epoch, tol, left)}"
        line = f"{seconds:.1f} s: {start}epoch {epoch.epoch}, {bound}; {target}"
        line = f"\r{line[:room]}\x1b[K" if live else f"{line}\n"
        print(line, end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def in_json(fitted: Model, certificate: Certificate) -> list[dict[str, object]]:
    """Return certificates for JSON, each with the class or pair of its problem."""
    from ..problems.reductions import reduction_in

    labels: Sequence[ProblemLabel | None] = [None]
    if hasattr(fitted, "classes_"):
        labels = reduction_in(fitted).labels(fitted.classes_)
    kinds = ["pair" if isinstance(label, tuple) else "class" for label in labels]
    return [
        ({} if label is None else {kind: label})
        | {
            key: value
            for key, value in c.to_dict().items()
            if value or key not in ("about", "floor", "name")
        }
        for kind, label, c in zip(kinds, labels, certificate.parts, strict=True)
    ]


def print_outcome(certificate: Certificate) -> None:
    """Print whether a fit converged, how far it is from the optimum, and a remedy."""
    worst, parts = worst_of(certificate), certificate.parts
    several = len(parts) > 1
    kind = "pairs of classes" if " against " in worst.name else "classes"
    kind = "labels" if worst.name.startswith("label ") else kind
    told = f"{reach(worst)} ({worst.target}), {certificate.seconds:.3g} s."
    if certificate.certified:
        print(f"Converged:{f' all {len(parts):,} {kind}' * several} {told}")
        return
    assert worst.status is not None
    reason = in_options(worst.status.value)
    if worst.status is Status.UNCERTIFIED:  # no problem of this kernel has a bound
        print(reason)
        return
    if several:
        failed = sum(not part.certified for part in parts)
        number = f"{failed:,} of {len(parts):,} {kind}"
        told = f"{number} ({worst.target}).\nWorst: {worst.name}, {reach(worst)}."
    print(f"Not converged: {told}\n{reason}")


def interrupted(*certificates: Certificate) -> bool:
    """Whether Ctrl-C ended the training of a problem."""
    parts = [part for one in certificates for part in one.parts]
    return any(part.status is Status.INTERRUPTED for part in parts)


def exit_status(proved: bool, cut_short: bool) -> int:
    """Return the exit status of a command that has trained."""
    return INTERRUPTED if cut_short else 0 if proved else NOT_CERTIFIED


def worst_of(certificate: Certificate) -> Certificate:
    """Return the certificate of the problem that is farthest from its optimum."""
    return max(certificate.parts, key=lambda c: (not c.certified, c.relative_gap))


def reach(certificate: Certificate) -> str:
    """Return words for the bound on the distance of a model from the optimum."""
    gap = certificate.relative_gap
    if not certificate.tol < _FINE:  # smaller numbers are shown only for a small tol
        gap = max(gap, _FINE)
    return distance(gap, certificate.about)


#: Gaps below this are shown as this, unless tol is smaller.
_FINE = 1e-6


def print_details(certificate: Certificate) -> None:
    """Print a table of all certificates."""
    head = ["problem", *COLUMNS[1:]]
    for line in table(head, [cells_of(part, part.name) for part in certificate.parts]):
        print(line)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, with columns as wide as their longest cells."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def picture_format(path: str) -> None:
    """Raise an error if matplotlib cannot write a picture, before any work."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise ImportError(
            "--picture needs matplotlib; install it with: pip install 'dualgap[plot]'"
        ) from None
    known = FigureCanvasAgg.get_supported_filetypes()
    extension = os.path.splitext(path)[1].lower().removeprefix(".")
    if extension not in known:
        raise ValueError(
            f"{path} is not a known kind of picture; use x.png, x.svg or x.pdf, or one "
            f"of {', '.join(sorted(known))}"
        )


def draw(display: Display, path: str) -> None:
    """Write a picture, which appears when it is complete."""
    from ..data.atomic import write_atomically

    with write_atomically(path) as file:
        kind = os.path.splitext(path)[1][1:]
        display.figure_.figure.savefig(file, format=kind, dpi=150)


def print_json(report: Mapping[str, object]) -> None:
    """Print a report as one JSON object."""
    print(json.dumps(_finite(report), indent=2, allow_nan=False))


def _finite(value: object) -> object:
    """Replace numbers that JSON lacks, such as an infinite gap, by null."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
