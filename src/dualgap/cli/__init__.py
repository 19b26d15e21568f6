"""Command line: each module has the functions of some commands.

Exit status: 0 success, and for ``train`` certified to ``--tol``; 1 bad data or files;
2 wrong usage; 3 trained, but not to ``--tol`` (the model is written); 130 interrupted
by Ctrl-C (the model is written if that ended its training, or a search for it); 141 the
reader of the output has closed it.

Commands import NumPy, SciPy and scikit-learn only when they need them, so that help and
usage errors appear at once, and linear classifiers do without scikit-learn. A module
lists its `COMMANDS`: their examples, what adds their options, and what runs them.
Shared code is in ``parser.py`` (lines and help), ``fields.py`` and ``options.py`` (the
fields of the estimators as options), ``data.py`` (files), ``predict.py`` (figures) and
``report.py`` (progress, certificates, JSON).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..names import nearest
from .parser import UsageError, Values, rows

if TYPE_CHECKING:
    from .options import Options

__all__ = ["COMMANDS", "INTERRUPTED", "NOT_CERTIFIED", "command_of", "main", "run"]

NOT_CERTIFIED = 3
INTERRUPTED = 130  # as shells report a death by SIGINT
CLOSED = 141  # and by SIGPIPE

#: The commands, in the order of their use, and what they do.
COMMANDS = {
    "train": "Train an SVM on DATA until its accuracy is proved, and write MODEL.",
    "predict": "Predict the labels of DATA with MODEL, one per line.",
    "score": "Measure the quality of MODEL on DATA: accuracy and AUC, or errors.",
    "certify": "Bound how far MODEL is from the optimum of its training problem on "
    "DATA.",
    "prove": "Write a proof of how far MODEL is from the optimum, for dualgap-check.",
    "report": "Write a page about MODEL and its training DATA.",
    "tune": "Choose C and other parameters by cross-validation.",
    "path": "Train linear SVMs for many values of C, each with its proven gap.",
    "export": "Write MODEL as a file for another program.",
    "inspect": "Describe DATA: size, classes, norms of the rows, memory.",
    "convert": "Convert data larger than memory to a STORE, with its rows in random "
    "order.",
    "reproduce": "Run the experiments of PAPER, beside its published figures.",
}
_ABOUT = "Support vector machines trained to a certificate of optimality."
_DATA = (
    "Each command explains itself: dualgap train --help. DATA is svmlight / LIBSVM "
    "text, CSV, TSV, Parquet, Arrow or .npz, plain or compressed, known by its "
    "content; - reads standard input."
)
_HELP = {"-h", "--help"}
#: Modules of commands, where they are not named like them.
_MODULES = {
    **{"score": "predict", "inspect": "convert", "tune": "path"},
    **dict.fromkeys(("certify", "prove", "report", "export"), "models"),
}


def command_of(name: str) -> tuple[Options, Callable[[Values], int | None]]:
    """Return a command with its options, and the function that runs it."""
    if name not in COMMANDS:
        near = nearest(name, [*COMMANDS, "help", "--version", "--help"])
        hint = f" Did you mean {near}?" if near else ""
        what = "option" if name[:1] == "-" else "command"
        raise UsageError(
            f"No such {what}: {name}.{hint} dualgap --help lists the commands."
        )
    from .options import Options

    module = import_module(f".{_MODULES.get(name, name)}", __name__)
    examples, add, function = module.COMMANDS[name]
    command = Options(name, COMMANDS[name], examples)
    command.elsewhere = _with_option
    add(command)
    return command, function


def _with_option(option: str) -> list[str]:
    """Return the first commands that have an option, at most three."""
    found = [name for name in COMMANDS if option in command_of(name)[0].known]
    return [f"dualgap {name}" for name in found[:3]]


def run(words: Sequence[str]) -> int:
    """Run a command line, and return its exit status."""
    debug = "--debug" in words
    try:
        status = _run(list(words)) or 0
        sys.stdout.flush()  # a closed pipe or a full disk is noticed here
        return status
    except KeyboardInterrupt:
        _tell("dualgap: interrupted")
        return INTERRUPTED
    except UsageError as error:
        name = f" {words[0]}" if words and words[0] in COMMANDS else ""
        _tell(f"dualgap{name}: {error}")
        return 2
    except BrokenPipeError:  # the reader of the output has closed it
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED
    except (OSError, ValueError, ImportError, MemoryError) as error:
        if debug:
            raise
        _tell(f"dualgap: {_sentence(error)}")
        return 1


def _run(words: list[str]) -> int | None:
    name, *rest = words or ["--help"]
    if name == "help" and rest:
        name, rest = rest[0], ["--help"]
    if name in {"help", *_HELP}:
        print(_overview())
        return 0
    if name == "--version":
        from .. import __version__

        print(f"dualgap {__version__}")
        return 0
    if name in ("--completion", "--complete"):
        from . import completion

        return completion.run(name, rest)
    command, function = command_of(name)
    if _HELP & set(rest):
        print(command.help())
        return 0
    return function(command.parse(rest))


def _overview() -> str:
    """Return the help page of the program."""
    lists = {
        "Commands": list(COMMANDS.items()),
        "Options": [
            ("--version", "Show the version."),
            ("--completion SHELL", "Print what makes bash, zsh or fish complete."),
            ("-h, --help", "Show this page, or a command's: dualgap help COMMAND."),
        ],
    }
    parts = ["Usage: dualgap COMMAND [OPTIONS] ...", f"  {_ABOUT}"]
    parts += ["\n".join([f"{name}:", *rows(pairs)]) for name, pairs in lists.items()]
    return "\n\n".join([*parts, "\n".join(rows([("", _DATA)]))])


def _sentence(error: Exception) -> str:
    """Return an error about data or files as one sentence, with options."""
    from .options import in_options

    if isinstance(error, OSError) and error.strerror:
        place = "the output" if error.errno == errno.ENOSPC else ""
        place = place if error.filename is None else os.fsdecode(error.filename)
        name = f"{place}: " if place else ""
        return f"{name}{error.strerror}"
    prefix = "out of memory: " if isinstance(error, MemoryError) else ""
    return in_options(f"{prefix}{error}")


def _tell(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def main() -> None:
    """Run the command line on ``sys.argv``, and exit."""
    if find_spec("safetensors") is None:  # told now, not after the training
        raise SystemExit(
            "dualgap: the command line needs the package safetensors; install it "
            "with: pip install 'dualgap[cli]'"
        )
    sys.exit(run(sys.argv[1:]))
