"""The program: its commands, their help, and refusals in the words of the caller."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from typing import Annotated, Any, TypeVar, get_type_hints

try:
    import rich  # noqa: F401
    import safetensors  # noqa: F401  (checked now, not after the training)
    import typer
    import typer.core
except ImportError as error:
    # Every command needs these packages; a traceback would hide the remedy.
    raise SystemExit(
        f"dualgap: the command line needs the package {str(error.name).split('.')[0]}; "
        "install it with: pip install 'dualgap[cli]'"
    ) from None

from typing import IO, TYPE_CHECKING

from ..names import nearest

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter
    from typer._click.exceptions import UsageError
    from typer.core import TyperArgument, TyperOption

    Parameter = TyperArgument | TyperOption

NOT_CERTIFIED = 3
INTERRUPTED = 130  # as shells report a death by SIGINT

_ORDER = (
    *("train", "predict", "score", "certify", "report", "path"),
    *("export", "inspect", "convert"),
)


# click's exceptions; some versions of typer have their own copy of it.
_UsageError: Any = typer.BadParameter.__base__
_ClickException: Any = _UsageError.__base__
_AnyCommand: Any = typer.core.TyperCommand.__base__


class _Refusal(_ClickException):
    """Wrong usage, told in one line."""

    exit_code = 2

    def show(self, file: IO[str] | None = None) -> None:
        typer.echo(self.format_message(), file=file, err=file is None)


@contextlib.contextmanager
def _one_sentence() -> Iterator[None]:
    """Tell wrong usage in one sentence, without a box and a line of usage."""
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # shows the help
            raise
        path = error.ctx.command_path if error.ctx is not None else "dualgap"
        raise _Refusal(f"{path}: {_reason(error)}") from None


def _reason(error: UsageError) -> str:
    """Return the sentence of a usage error."""
    parameter: Parameter | None = getattr(error, "param", None)
    message = str(error.message or "")
    if type(error).__name__ == "MissingParameter":
        assert parameter is not None
        name = parameter.metavar or str(parameter.name).upper()
        return f"{name} is missing; the usage is: {_usage(error)}"
    if parameter is None:
        if "No such command" in message:
            return f"{message} dualgap --help lists the commands."
        if found := re.search(r"unexpected extra argument\S* \((.*)\)", message):
            return f"{found[1]} is one argument too many; the usage is: {_usage(error)}"
        return message
    name = max(parameter.opts, key=len) if parameter.opts else parameter.name
    for pattern, remedy in _TYPES.items():
        if found := re.search(pattern, message):
            value = _value_of(parameter, error.ctx)
            return f"{name}{value} is invalid; give {found.expand(remedy)}."
    return f"{name}: {message}"


# Messages of typer about values, of all versions, and what to give instead.
_TYPES = {
    "valid number|not a valid float": "a number",
    "valid integer|not a valid integer": "a whole number",
    r"greater than or equal to ([\d.]+)": r"\1 or more",
    r"less than or equal to ([\d.]+)": r"\1 or less",
    r"not in the range x>=([\d.]+)": r"\1 or more",
    r"not in the range ([\d.]+)<=x<=([\d.]+)": r"a number from \1 to \2",
}
_ARGUMENTS_KEY = "dualgap.arguments"


def _usage(error: UsageError) -> str:
    assert error.ctx is not None
    usage = error.ctx.command.get_usage(error.ctx).split(":", 1)[1]
    return " ".join(usage.split())


def _value_of(parameter: Parameter, ctx: Context | None) -> str:
    """Return the value of an option as it was typed, after a space."""
    typed = ctx.meta.get(_ARGUMENTS_KEY, []) if ctx is not None else []
    for at, word in enumerate(typed):
        for option in parameter.opts:
            if word == option and at + 1 < len(typed):
                return f" {typed[at + 1]}"
            glued = f"{option}=" if option[:2] == "--" else option
            if word.startswith(glued) and word != option:
                return f" {word.removeprefix(glued)}"
    return ""


class _Plain(_AnyCommand):
    """Mixin for commands whose help is plain text, with options in groups.

    typer's framed help imports a renderer of Markdown, which takes as long as all the
    rest of a start.
    """

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        for parameter in self.get_params(ctx):
            reader = _Reader.of(parameter)
            if reader is not None:
                parameter.get_runtime_param = lambda reader=reader: reader
        ctx.meta[_ARGUMENTS_KEY] = list(args)
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except _UsageError as error:
            if not hasattr(error, "possibilities"):  # not about an unknown option
                raise
            raise _UsageError(self._remark(error.option_name), ctx) from None
        return rest

    def _remark(self, option: str) -> str:
        known = [name[2:] for p in self.params for name in p.opts if name[:2] == "--"]
        near = nearest(option.lstrip("-"), known)
        hint = f" Did you mean --{near}?" if near else " See --help."
        return f"No such option: {option}.{hint}"

    def get_help(self, ctx: Context) -> str:
        found: str = super().get_help(ctx)
        return found.replace(_HYPHEN, "-")

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {
            name: [] for name in ("Arguments", *_GROUPS, "Options")
        }
        order = list(_GROUP_OF)
        for parameter in sorted(
            self.params,
            key=lambda p: order.index(p.name) if p.name in _GROUP_OF else -1,
        ):
            group = _GROUP_OF.get(str(parameter.name), "Options")
            if not isinstance(parameter, typer.core.TyperOption):
                group = "Arguments"
            if not getattr(parameter, "hidden", False):
                groups[group].append(_described(parameter))
        help_option = self.get_help_option(ctx)
        if help_option is not None:
            names = ", ".join(sorted(help_option.opts, key=len))
            groups["Options"].append((names, "Show this message and exit."))
        for name, rows in groups.items():
            if rows:
                with formatter.section(name):
                    rows = [(left, right.replace("-", _HYPHEN)) for left, right in rows]
                    formatter.write_dl(rows, col_max=26)
        if hasattr(self, "list_commands"):
            with formatter.section("Commands"):
                found = [self.get_command(ctx, c) for c in self.list_commands(ctx)]
                formatter.write_dl([(c.name, c.help.partition("\n")[0]) for c in found])

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        for text in (self.epilog or "").split("\n\n"):
            if not text.startswith(_PROGRAMS):
                formatter.write_paragraph()
            if text == "Examples":
                formatter.write_heading(text)
            elif text.startswith(_PROGRAMS):
                formatter.write(f"  {text}\n")
            else:
                formatter.write_text(text.replace("-", _HYPHEN))


_HYPHEN = "\u2011"  # not broken by line wrapping, unlike the hyphens in names
_PROGRAMS = ("dualgap ", "liblinear-", "svm-")  # lines that are examples


def _described(parameter: Parameter) -> tuple[str, str]:
    """Return name and help of an option or argument, with its default."""
    text, shown = parameter.help or "", parameter.show_default
    if not isinstance(parameter, typer.core.TyperOption):
        return parameter.metavar or parameter.name, text
    names = ", ".join(sorted(parameter.opts, key=len))
    if parameter.secondary_opts:
        names += f" / {', '.join(parameter.secondary_opts)}"
    elif not parameter.is_flag:
        names += f" {parameter.metavar}"
    default = shown if isinstance(shown, str) else None
    if default is None and shown and parameter.default is not None:
        if not parameter.is_flag:
            default = str(parameter.default)
        elif parameter.secondary_opts:
            chosen = parameter.opts if parameter.default else parameter.secondary_opts
            default = chosen[0]
    return names, text + (f" [default: {default}]" if default else "")


class _Ordered(_Plain, typer.core.TyperGroup):
    """Group whose help lists commands in the order of their use."""

    def list_commands(self, ctx: Context) -> list[str]:
        known = {name: at for at, name in enumerate(_ORDER)}
        return sorted(
            super().list_commands(ctx), key=lambda n: known.get(n, len(known))
        )

    def make_context(self, *arguments: Any, **named: Any) -> Context:
        with _one_sentence():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Context) -> object:
        with _one_sentence():
            return super().invoke(ctx)


# Options of LIBLINEAR, LIBSVM and scikit-learn, with advice. Options with the same
# meaning here (-c, -g, -d, -r, -n, -p) are aliases instead.
_FOREIGN = {
    "-s": "choose the problem with --task, --loss and --multi-class; LIBLINEAR's -s 3 "
    "is --loss hinge, -s 1 and 2 are --loss squared_hinge, -s 11 to 13 --task "
    "regression, -s 21 --task one-class",
    "-t": "choose the kernel with --kernel: -t 0 is linear, 1 poly, 2 rbf, 3 sigmoid",
    "-e": "set the relative duality gap with --tol; -e of LIBLINEAR and "
    "LIBSVM is another measure",
    "-B": "the bias is fitted by default; -B X is --intercept-scaling X, -B -1 is "
    "--no-intercept",
    "-R": "use --no-penalize-intercept",
    "-m": "use --cache SIZE for memory, --n-jobs N for threads",
    "-w": "use --class-weight, as in --class-weight -1=1,1=2.5",
    "-v": "dualgap path DATA --cv FOLDS cross-validates",
    "-b": "dualgap train --probability and dualgap predict --proba have probabilities",
    "--max-epochs": "use --max-iter",
    "--random-state": "use --seed",
    "--shrinking": "shrinking is always on; leave it out",
    "--dual": "--solver auto chooses between the primal and the dual; leave it out",
    "--penalty": "the penalty is always the squared norm (l2); leave it out",
    "--cost": "use --C",
    "--tolerance": "use --tol",
    "--threads": "use --n-jobs",
    "--scale": "use --standardize",
    "--target": "use --label",
}
_FOREIGN |= dict.fromkeys(
    ("--proba", "--probability", "--probabilities", "--predict-proba"), _FOREIGN["-b"]
)
_FOREIGN |= dict.fromkeys(
    ("--decision", "--decisions", "--decision-function", "--decision-values"),
    "dualgap predict --scores writes decision values",
)


# Groups of options in the help, with their parameters; all others are "Options".
_GROUPS = {
    "Data": (
        *("label", "columns", "standardize", "zero_based", "n_features", "weight"),
        *("labels", "class_weight"),
    ),
    "Model": (
        *("task", "C", "lambda_", "n_costs", "cv", "loss", "epsilon", "nu"),
        *("multi_class", "probability"),
    ),
    "Bias": ("intercept", "intercept_scaling", "penalize_intercept"),
    "Kernel": ("kernel", "gamma", "degree", "coef0", "cache"),
    "Solver and accuracy": (
        *("solver", "solver_option", "tol", "atol", "max_iter"),
        *("time_limit", "seed", "n_jobs", "checkpoint", "checkpoint_every"),
        *("memory",),
    ),
    "Output": (
        *("output", "scores", "proba", "model", "picture", "json_", "quiet", "verbose"),
        *("debug", "format_", "single", "shuffle", "overwrite", "fresh"),
    ),
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names}


# Placeholders of options that do not take a real number.
_PLACES = dict.fromkeys(
    ("cv", "degree", "max_iter", "n_costs", "n_features", "n_jobs", "seed"), "N"
)
_PLACES |= dict.fromkeys(
    ("format_", "kernel", "label", "loss", "solver", "task", "weight"), "NAME"
)


class _Reader:
    """Reader of the values of an option, in the place of pydantic's.

    Newer versions of typer read values with pydantic, whose import takes longer than
    NumPy's. Older ones do not ask for a reader.
    """

    def __init__(self, kind: type) -> None:
        self.kind = kind

    @classmethod
    def of(cls, parameter: Parameter) -> _Reader | None:
        kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
        return cls(kind) if kind in (bool, str, int, float, list[str]) else None

    def coerce(self, value: Any, param: Parameter, ctx: Context) -> object:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if self.kind == list[str]:
            return list(value)
        try:
            number = self.kind(value)
        except ValueError:
            what = "integer" if self.kind is int else "number"
            raise typer.BadParameter(f"not a valid {what}", ctx, param) from None
        words = ""  # `not` refuses NaN too
        least, most = getattr(param, "min", None), getattr(param, "max", None)
        if least is not None and not number >= least:
            words = f"greater than or equal to {least:g}"
        elif most is not None and not number <= most:
            words = f"less than or equal to {most:g}"
        if words:
            raise typer.BadParameter(words, ctx, param)
        return number


class _Command(_Plain, typer.core.TyperCommand):
    """Command with groups of options, and advice for unknown options."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        for parameter in self.params:
            option = isinstance(parameter, typer.core.TyperOption)
            if option and parameter.metavar is None:  # instead of type and limits
                parameter.metavar = _PLACES.get(str(parameter.name), "X")

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [re.sub(r"[{}]|(?<=STORE\}).*", "", piece) for piece in pieces]

    def _remark(self, option: str) -> str:
        known = {name for p in self.params for name in p.opts}
        remedy = _FOREIGN.get(option, "")
        options = set(re.findall("--[A-Za-z-]+", remedy))
        if remedy and ("dualgap" in remedy or not options or options & known):
            return f"No such option: {option}; {remedy}."
        return super()._remark(option)


_Function = TypeVar("_Function", bound=Callable[..., object])
_Options = TypeVar("_Options")


class _App(typer.Typer):
    def command(  # type: ignore[override]
        self, epilog: str
    ) -> Callable[[_Function], _Function]:
        return super().command(cls=_Command, epilog=epilog)


def taking(
    record: type[_Options],
) -> Callable[[Callable[[_Options], None]], Callable[..., None]]:
    """Turn a function of one record into a command with an option for every field.

    The record is a dataclass; its fields are annotated as typer's parameters are.
    """

    def of(function: Callable[[_Options], None]) -> Callable[..., None]:
        def command(**options: object) -> None:
            function(record(**options))

        hints = get_type_hints(record, include_extras=True)
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter(
                field.name,
                kind,
                annotation=hints[field.name],
                default=inspect.Parameter.empty
                if field.default is MISSING
                else field.default,
            )
            for field in fields(record)  # type: ignore[arg-type]
        ]
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__annotations__ = hints
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return command

    return of


app = _App(
    name="dualgap",
    cls=_Ordered,
    help="Support vector machines trained to a certificate of optimality.",
    epilog=(
        "Each command explains itself: dualgap train --help. "
        "DATA is svmlight / LIBSVM text, CSV, TSV, Parquet, Arrow or .npz, plain or "
        "compressed, known by its content; - reads standard input."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    # Errors that users can cause are one sentence. For bugs, Python's plain traceback
    # is more useful than a framed one.
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"dualgap {__version__}")
        raise typer.Exit


def paragraphs(*lines: str) -> str:
    """Join lines into the text of a help page."""
    return re.sub(r"\[/?bold\]", "", "\n\n".join(lines))


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
    """Turn errors about data and files into one sentence and an exit status."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("dualgap: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # the reader of the output has closed it
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
        typer.echo(f"dualgap: {in_options(sentence)}", err=True)
        raise typer.Exit(1) from None


_OPTION_OF = {
    "random_state": "--seed",
    "cache_size": "--cache",
    "y": "--labels",
    "n_Cs": "--n-Cs",
    "columns": "--columns",
}
_ARGUMENTS = (
    *("C", "class_weight", "coef0", "degree", "epsilon", "gamma", "intercept_scaling"),
    *("kernel", "label", "loss", "max_iter", "memory", "multi_class", "n_features"),
    *("n_jobs", "nu", "atol", "seed", "solver", "time_limit", "tol", "weight"),
)
_OPTION_OF |= {name: f"--{name.replace('_', '-')}" for name in _ARGUMENTS}
_ARGUMENT = re.compile(rf"(?<![\w./-])({'|'.join(_OPTION_OF)})=('[^']*'|[^\s,;:)]+)")


def in_options(sentence: str) -> str:
    """Replace Python arguments in a message, such as n_jobs=2, by options."""
    for python, option in {
        ", as zero_based=False says (zero_based=True or 'auto' reads": (
            " (--zero-based reads"
        ),
        "overwrite=True": "--overwrite",
        "or None": "or leave it out",
        "use None, ": "use ",
        "X, y and sample_weight are not": "DATA is not",
        "give the arguments of fit, and fit again if parameters changed": (
            "give the data that it was trained on, or train again"
        ),
    }.items():
        sentence = sentence.replace(python, option)

    def option_of(found: re.Match[str]) -> str:
        value = found[2].strip("'")
        return f"{_OPTION_OF[found[1]]} {'...' if value[:3] == '...' else value}"

    return _ARGUMENT.sub(option_of, sentence)
