"""What the commands say: progress, certificates, JSON."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import rich.console
import rich.progress
import typer

if TYPE_CHECKING:
    from ..certificate import Certificate
    from ..loop import EpochInfo


@contextlib.contextmanager
def progress(
    quiet: bool, several: bool
) -> Iterator[Callable[[Any, EpochInfo], None] | None]:
    """A receiver of epochs: one live line on a terminal, else ever rarer lines."""
    console = rich.console.Console(stderr=True)
    if quiet:
        yield None
    elif console.is_terminal and not console.is_dumb_terminal:
        with rich.progress.Progress(
            rich.progress.SpinnerColumn(),
            rich.progress.TextColumn("{task.description}", markup=False),
            rich.progress.TimeElapsedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
        ) as live:
            task = live.add_task("epoch 1", total=None)
            yield _paced(
                several,
                lambda text, _: live.update(task, description=text),
                lambda seconds: seconds + 0.1,
            )
    else:
        yield _paced(
            several,
            lambda text, seconds: typer.echo(f"{text}  {seconds:.1f} s", err=True),
            lambda seconds: 2 * max(seconds, 0.5),
        )


def _paced(
    several: bool, show: Callable[[str, float], None], later: Callable[[float], float]
) -> Callable[[Any, EpochInfo], None]:
    """A receiver of epochs that shows one, then none until later(seconds so far)."""
    begun = time.perf_counter()
    due = later(0.0)

    def receive(label: Any, epoch: EpochInfo) -> None:
        nonlocal due
        seconds = time.perf_counter() - begun
        if seconds >= due:
            due = later(seconds)
            show(_line(label if several else None, epoch), seconds)

    return receive


def _line(label: Any, epoch: EpochInfo) -> str:
    """An epoch in one line; ``~`` marks what no exact pass has confirmed yet."""

    def number(value: float, form: str) -> str:
        if not math.isfinite(value):
            return "-"
        return ("" if epoch.exact else "~") + format(value, form)

    from ..estimators._binary import problem_name

    start = "" if label is None else f"{problem_name(label)}: "
    return (
        f"{start}epoch {epoch.epoch}  primal {number(epoch.primal, '.6g')}  "
        f"dual {number(epoch.dual, '.6g')}  gap {number(epoch.relative_gap, '.2e')}"
    )


def name_of(label: Any) -> dict[str, Any]:
    """A problem in JSON: its class, or a pair of them; nothing where there are none."""
    if label is None:
        return {}
    return {"pair" if isinstance(label, tuple) else "class": label}


def by_problem(fitted: Any) -> list[tuple[Any, Certificate]]:
    """Certificates with the label of the positive class, or with the pair of labels.

    Of regression and one class, with None.
    """
    from ..estimators._binary import problem_labels

    if not hasattr(fitted, "classes_"):
        return [(None, fitted.certificate_)]
    certificates = fitted.certificate_
    if not isinstance(certificates, list):
        certificates = [certificates]
    return list(zip(problem_labels(fitted), certificates, strict=True))


def print_certificates(certificates: Sequence[tuple[Any, Certificate]]) -> None:
    """One certificate as it is, several as a table and the worst of them."""
    if len(certificates) == 1:
        typer.echo(str(certificates[0][1]))
        return
    from ..certificate import Certificate
    from ..estimators._binary import problem_name

    names = [problem_name(label) for label, _ in certificates]
    width = max(map(len, names))
    for name, (_, c) in zip(names, certificates, strict=True):
        typer.echo(
            f"{name:<{width}}  {c.to_dict()['status'] or '':<11}  "
            f"primal {c.primal:<14.9g}  dual {c.dual:<14.9g}  "
            f"relative gap {c.relative_gap:.2e}  {c.epochs} epochs"
        )
    label, worst = max(certificates, key=lambda entry: entry[1].relative_gap)
    typer.echo(f"farthest from its optimum is {problem_name(label)}:")
    typer.echo(str(worst))
    total = Certificate.total([certificate for _, certificate in certificates])
    typer.echo(f"all together: {total.message}")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of columns that are as wide as their longest cell."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def picture_format(path: str) -> None:
    """Refuse a picture that matplotlib cannot write, before any work.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If it knows no such format.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise ImportError(
            "--picture needs matplotlib: pip install 'dualgap[plot]'"
        ) from None
    known = FigureCanvasAgg.get_supported_filetypes()
    extension = os.path.splitext(path)[1].lower().removeprefix(".")
    if extension not in known:
        raise ValueError(
            f"{path}: a picture is a file such as x.png, x.svg or x.pdf; the formats "
            f"are {', '.join(sorted(known))}"
        )


def print_json(report: Mapping[str, Any]) -> None:
    """One JSON object."""
    typer.echo(json.dumps(_finite(report), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """The same with null for numbers that JSON lacks: an unbounded gap."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
