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
from typing import TYPE_CHECKING

from ..certificate import Status, distance, percent
from .options import in_options

if TYPE_CHECKING:
    from ..certificate import Certificate
    from ..data.types import ProblemLabel
    from ..plot import PathDisplay as Display
    from ..training import EpochInfo, Forecast
    from .data import Model

    #: Certificates of the problems of a model, each with the problem's label.
    Certificates = Sequence[tuple[ProblemLabel | None, Certificate]]


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings about degenerate optima and folds as sentences, with options."""
    from ..problems.degenerate import DegenerateWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DegenerateWarning)
        yield
    for one in caught:
        # The other category is of scikit-learn, which may not be imported.
        if one.category.__name__ not in ("DegenerateWarning", "ConvergenceWarning"):
            warnings.showwarning(one.message, one.category, one.filename, one.lineno)
            continue
        sentence = in_options(str(one.message).partition(": ")[2])
        print(f"Warning: {sentence.rstrip('.')}.", file=sys.stderr)


@contextlib.contextmanager
def progress(quiet: bool, tol: float, problems: int = 1) -> Iterator[_Paced | None]:
    """Yield a function that shows the progress of epochs; None if `quiet`.

    On a terminal it updates one line; elsewhere it prints lines at growing intervals.
    `problems` is the number of classes or pairs, each with the target `tol`.
    """
    if quiet:
        yield None
        return
    if sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        room = shutil.get_terminal_size().columns - 1

        def draw(text: str, seconds: float) -> None:
            line = f"{seconds:.1f} s: {text}"[:room]
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)

        try:
            yield _Paced(tol, problems, draw, lambda seconds: seconds + 0.1)
        finally:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        return

    def write(text: str, seconds: float) -> None:
        print(f"{seconds:.1f} s: {text}", file=sys.stderr, flush=True)

    yield _Paced(tol, problems, write, lambda seconds: 2 * max(seconds, 0.5))


class _Paced:
    """Receiver of epochs that shows at most one per interval of time.

    After it has shown an epoch, it waits until `later(seconds so far)`.
    """

    def __init__(
        self,
        tol: float,
        problems: int,
        show: Callable[[str, float], None],
        later: Callable[[float], float],
    ) -> None:
        self.tol, self.problems = tol, problems
        self.show, self.later = show, later
        self.begun, self.due = time.perf_counter(), later(0.0)
        #: Of the problems that have begun.
        self.forecasts: dict[ProblemLabel | None, Forecast] = {}

    def __call__(self, label: ProblemLabel | None, epoch: EpochInfo) -> None:
        from ..problems.reductions import problem_name
        from ..training import Forecast, remaining

        forecast = self.forecasts.setdefault(label, Forecast(self.tol))
        left = forecast.left(epoch.seconds, epoch.relative_gap)
        seconds = time.perf_counter() - self.begun
        if seconds < self.due:
            return
        self.due = self.later(seconds)
        start, number = "", len(self.forecasts)
        if self.problems > 1:
            start = f"{problem_name(label)} ({number} of {self.problems:,}), "
            left += (seconds + left) / number * (self.problems - number)
        bound = "no bound yet"
        if epoch.relative_gap < math.inf:
            bound = distance(epoch.relative_gap)
            bound += "" if epoch.exact else " (estimate)"
        target = f"target {percent(self.tol)}{remaining(epoch, self.tol, left)}"
        self.show(f"{start}epoch {epoch.epoch}, {bound}; {target}", seconds)


def in_json(certificates: Certificates) -> list[dict[str, object]]:
    """Return certificates for JSON, each with the class or pair of its problem."""
    return [
        ({} if label is None else {_kind(label): label})
        | {k: v for k, v in c.to_dict().items() if v or k not in ("about", "floor")}
        for label, c in certificates
    ]


def _kind(label: ProblemLabel) -> str:
    return "pair" if isinstance(label, tuple) else "class"


def by_problem(fitted: Model) -> Certificates:
    """Return the certificates of a model with their labels.

    A label is the positive class, a pair of classes, or None without classes.
    """
    from ..problems.reductions import reduction_in

    if not hasattr(fitted, "classes_"):
        return [(None, fitted.certificate_)]
    labels = reduction_in(fitted).labels(fitted.classes_)
    return list(zip(labels, fitted.certificate_, strict=True))


def print_outcome(certificates: Certificates) -> None:
    """Print whether a fit converged, how far it is from the optimum, and a remedy."""
    worst_of, worst = worst_problem(certificates)
    several = len(certificates) > 1
    seconds = sum(c.seconds for _, c in certificates)
    target = worst.target
    if all(c.certified for _, c in certificates):
        number = f" all {_number_of(certificates)}" if several else ""
        print(f"Converged:{number} {reach(worst)} ({target}), {seconds:.3g} s.")
        return
    if worst.status is Status.UNCERTIFIED:  # no problem of this kernel has a bound
        print(_REASONS["uncertified"])
        return
    if several:
        failed = sum(not c.certified for _, c in certificates)
        print(f"Not converged: {failed:,} of {_number_of(certificates)} ({target}).")
        print(f"Worst: {worst_of}, {reach(worst)}.")
    else:
        print(f"Not converged: {reach(worst)} ({target}), {seconds:.3g} s.")
    if worst.status is not None:
        print(_REASONS.get(worst.status.label, worst.status.value))


_REASONS = {
    "epoch_limit": "Stopped at --max-iter: raise it, scale the columns, or raise "
    "--tol.",
    "step_limit": "Stopped at max_steps of the solver: raise it, or raise --tol.",
    "time_limit": "Stopped at --time-limit: raise it, or raise --tol.",
    "interrupted": "Stopped by Ctrl-C: the model is the best so far.",
    "sampled": "Stopped at the gap that a sample of rows showed, which proves nothing: "
    "leave out --solver-option stop=sampled to train until --tol is proved.",
    "uncertified": "Nothing is proved: the kernel matrix is indefinite, so no duality "
    "gap bounds the optimum. LIBSVM trained the model; for a proof use --kernel rbf.",
    "stalled": "Stopped by rounding in float64: scale the columns, or raise --tol.",
}


def worst_problem(certificates: Certificates) -> tuple[str, Certificate]:
    """Return name and certificate of the problem that is farthest from its optimum."""
    from ..problems.reductions import problem_name

    label, worst = max(
        certificates, key=lambda entry: (not entry[1].certified, entry[1].relative_gap)
    )
    return problem_name(label), worst


def _number_of(certificates: Certificates) -> str:
    pairs = isinstance(certificates[0][0], tuple)
    return f"{len(certificates):,} {'pairs of classes' if pairs else 'classes'}"


def reach(certificate: Certificate) -> str:
    """Return words for the bound on the distance of a model from the optimum."""
    gap = certificate.relative_gap
    if not certificate.tol < _FINE:  # smaller numbers are shown only for a small tol
        gap = max(gap, _FINE)
    return distance(gap, certificate.about)


#: Gaps below this are shown as this, unless tol is smaller.
_FINE = 1e-6


def print_details(certificates: Certificates) -> None:
    """Print a table of all certificates."""
    from ..problems.reductions import problem_name

    head = ("problem", "status", "primal", "dual", "gap", "epochs", "seconds", "solver")
    rows = [
        [
            "" if label is None else problem_name(label),
            c.status.label if c.status else "",
            f"{c.primal:.9g}",
            f"{c.dual:.9g}",
            f"{c.relative_gap:.2e}",
            f"{c.epochs:,}",
            f"{c.seconds:.3g}",
            c.solver,
        ]
        for label, c in certificates
    ]
    for line in table(head, rows):
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
