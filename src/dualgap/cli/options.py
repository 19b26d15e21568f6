"""What the commands share: the app, their options and words, errors in one sentence."""

from __future__ import annotations

import contextlib
import difflib
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

try:
    import rich.progress  # noqa: F401
    import safetensors  # noqa: F401  (else found missing after the training)
    import typer
    import typer.core
except ImportError as error:
    # All that the command line does needs them; a traceback would bury the remedy.
    raise SystemExit(
        f"dualgap: the command line needs the package {str(error.name).split('.')[0]}: "
        "pip install 'dualgap[cli]'"
    ) from None

from .. import __version__

NOT_CERTIFIED = 3
INTERRUPTED = 130  # as shells report a death by SIGINT

_ORDER = (
    *("train", "predict", "certify", "path", "compare"),
    *("export", "inspect", "convert"),
)


class _Ordered(typer.core.TyperGroup):
    """Help lists the commands in the order in which one needs them."""

    def list_commands(self, ctx: Any) -> list[str]:
        known = {name: at for at, name in enumerate(_ORDER)}
        return sorted(
            super().list_commands(ctx), key=lambda n: known.get(n, len(known))
        )


app = typer.Typer(
    name="dualgap",
    cls=_Ordered,
    help="Support vector machines trained to a certificate of optimality.",
    epilog=(
        "Each command explains itself: [bold]dualgap train --help[/bold]. "
        "DATA is svmlight / LIBSVM text, plain or .gz, .bz2, .xz, .zst."
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    # Errors that users can cause are told in a sentence; for bugs, Python's own
    # traceback says more than a framed one.
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dualgap {__version__}")
        raise typer.Exit


def paragraphs(*lines: str) -> str:
    """Text of a help page."""
    return "\n\n".join(lines)


def positive(value: float | None) -> float | None:
    """Refuse what is not a positive, finite number."""
    if value is not None and not 0.0 < value < math.inf:
        raise typer.BadParameter(f"{value} is not a positive, finite number.")
    return value


def known_word(value: str, known: Sequence[str]) -> str:
    """Refuse an unknown word, with the nearest one that is known."""
    if value in known:
        return value
    near = difflib.get_close_matches(value.lower().replace("_", "-"), known, n=1)
    near = near or difflib.get_close_matches(value.lower(), known, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.{hint}")


def solver_name(value: str) -> str:
    """Refuse an unknown solver."""
    return known_word(value, _solver_names())


def complete_solver(incomplete: str) -> list[str]:
    """For the shell: solvers that begin so."""
    return [name for name in _solver_names() if name.startswith(incomplete)]


def _solver_names() -> list[str]:
    from ..kernel import APPROXIMATIONS, KERNEL_SOLVERS
    from ..solvers import SOLVERS

    return [*{**SOLVERS, **KERNEL_SOLVERS, **APPROXIMATIONS}]


def complete_loss(incomplete: str) -> list[str]:
    """For the shell: losses that begin so."""
    from ..losses import LOSSES, RESIDUAL_LOSSES

    return [name for name in (*LOSSES, *RESIDUAL_LOSSES) if name.startswith(incomplete)]


def loss_name(value: str | None) -> str | None:
    """Refuse an unknown loss."""
    from ..losses import LOSSES, RESIDUAL_LOSSES

    return None if value is None else known_word(value, [*LOSSES, *RESIDUAL_LOSSES])


# Those of the estimator, written as words are in a shell.
_MULTI_CLASS = ("ovr", "ovo", "crammer-singer")


def multi_class_name(value: str | None) -> str | None:
    """Refuse an unknown way to train several classes."""
    return None if value is None else known_word(value, _MULTI_CLASS)


def complete_multi_class(incomplete: str) -> list[str]:
    """For the shell: ways that begin so."""
    return [name for name in _MULTI_CLASS if name.startswith(incomplete)]


# Those of the estimator but "precomputed": DATA has rows.
_KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian")


def kernel_name(value: str | None) -> str | None:
    """Refuse an unknown kernel."""
    return None if value is None else known_word(value, _KERNELS)


def complete_kernel(incomplete: str) -> list[str]:
    """For the shell: kernels that begin so."""
    return [name for name in _KERNELS if name.startswith(incomplete)]


_GAMMAS = ("scale", "auto", "mean-distance")


def gamma_value(value: str | None) -> float | str | None:
    """A number, or a rule for one."""
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
    """A size such as 2GB in units of 10**6 bytes."""
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


DataPath = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="svmlight / LIBSVM text file; .gz, .bz2, .xz and .zst are decompressed. "
        "Or a store made by convert.",
        show_default=False,
    ),
]


ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="Whether the indices in DATA start at 0 or at 1.",
        show_default="at 0 if index 0 occurs",
    ),
]


Jobs = Annotated[
    int | None,
    typer.Option(
        help="Threads: for reading, and over the classes (with a kernel the pairs of "
        "them) where there are more than two. -1 takes all processors.",
        show_default="all for reading, 1 for training",
    ),
]


ReadJobs = Annotated[
    int | None,
    typer.Option(
        help="Threads that read, and that predict with a kernel; -1 takes all "
        "processors.",
        show_default="all",
    ),
]


Seed = Annotated[
    int, typer.Option("--seed", min=0, help="The same seed gives the same model.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress, only the result.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of text.")
]


Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.callback()
def _dualgap(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    pass


@contextlib.contextmanager
def told_plainly(debug: bool) -> Iterator[None]:
    """Turn what bad data and files raise into one sentence and an exit status."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("dualgap: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # the reader of our output had enough
        raise
    except (OSError, ValueError, ImportError, MemoryError) as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.filename is not None:
            sentence = f"{os.fsdecode(error.filename)}: {error.strerror}"
        elif isinstance(error, MemoryError):
            sentence = f"out of memory: {error}"
        else:
            sentence = str(error)
        typer.echo(f"dualgap: {sentence}", err=True)
        raise typer.Exit(1) from None
