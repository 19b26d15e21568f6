"""Options of the commands: the fields of estimators, and those that commands share."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields as fields_of
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Literal, get_args, get_origin, get_type_hints

from .fields import (
    MANY,
    Field,
    Reader,
    megabytes,
    one_of,
    positive,
    reader_of,
    spelled,
    stored,
    whole,
    words_of,
)
from .parser import Argument, Command, Option, UsageError, Values

if TYPE_CHECKING:
    from ..data.types import Parameters
    from ..kernel import Nystroem
    from ..losses import SmoothedHinge
    from ..solvers import Solver

#: Task of an estimator, and whether it has a kernel.
PLACES = {
    "LinearSVC": ("classification", False),
    "SVC": ("classification", True),
    "LinearSVR": ("regression", False),
    "SVR": ("regression", True),
    "LinearOneClassSVM": ("one-class", False),
    "OneClassSVM": ("one-class", True),
    "NuSVC": ("classification", True),  # these two with --nu
    "NuSVR": ("regression", True),
    "LinearSVCCV": ("classification", False),
    "SVCCV": ("classification", True),
}
TASKS = ("classification", "regression", "one-class")
_ESTIMATORS = {place: name for name, place in [*PLACES.items()][:6]}  # without --nu
#: Group, names and placeholder of parameters; others are flags or numbers of "Model".
_SHAPES = {
    "C": ("Model", "--C -C -c", "X"),
    "Cs": ("Model", "--C -C -c", "X,..."),
    "loss": ("Model", "--loss", "NAME"),
    "penalty": ("Model", "--penalty", "NAME"),
    "epsilon": ("Model", "--epsilon -p", "X"),
    "nu": ("Model", "--nu -n", "X"),
    "multi_class": ("Model", "--multi-class", "WAY"),
    "class_weight": ("Model", "--class-weight", "WEIGHTS"),
    "cv": ("Model", "--cv", "N"),
    "scoring": ("Model", "--scoring", "NAME"),
    "fit_intercept": ("Bias", "--intercept", ""),
    "intercept_scaling": ("Bias", "--intercept-scaling", "X"),
    "penalize_intercept": ("Bias", "--penalize-intercept", ""),
    "kernel": ("Kernel", "--kernel", "NAME"),
    "gamma": ("Kernel", "--gamma -g", "G"),
    "gammas": ("Kernel", "--gamma -g", "G,..."),
    "degree": ("Kernel", "--degree -d", "N"),
    "coef0": ("Kernel", "--coef0 -r", "X"),
    "cache_size": ("Kernel", "--cache", "SIZE"),
    "solver": ("Solver and accuracy", "--solver", "NAME"),
    "tol": ("Solver and accuracy", "--tol", "X"),
    "atol": ("Solver and accuracy", "--atol", "X"),
    "max_iter": ("Solver and accuracy", "--max-iter", "N"),
    "time_limit": ("Solver and accuracy", "--time-limit", "SECONDS"),
    "random_state": ("Solver and accuracy", "--seed", "N"),
    "checkpoint": ("Solver and accuracy", "--checkpoint", "FILE"),
    "checkpoint_every": ("Solver and accuracy", "--checkpoint-every", "SECONDS"),
}
_SHOWN = {
    "scoring": "accuracy; R2",
    "kernel": "none: a linear model",
    "Cs": "0.001,0.01,0.1,1,10",
    "cv": "5",
    "cache_size": "200MB",
    "gamma": "scale; 1",
}
#: Parameters of a search, whose options may be repeated.
_LISTS = {"Cs", "gammas"}
#: Parameters that are no options, or have options of their own.
_LEFT_OUT = {
    *("verbose", "warm_start", "decision_function_shape", "break_ties", "n_jobs"),
    *("refit", "certify_C", "error_tolerance"),
}
#: Sentences in the place of those in the documentation of the estimators.
_TEXTS = {
    "atol": "Or the duality gap P - D to prove, in units of the objective with C; one "
    "of both is enough.",
    "Cs": "Values of C.",
    "gammas": "Scales of the kernel; words as in train.",
    "cv": "Number of folds, each with the classes in their shares.",
    "scoring": "Score to maximise, by its name in scikit-learn.",
    "quantile": "Share of the targets below the prediction, for --loss quantile.",
    "class_weight": "Factors of C for the classes: balanced, or LABEL=W,... such as "
    "-1=1,1=2.5.",
    "cache_size": "Memory for kernel values, such as 500MB or 2GB.",
    "penalize_intercept": "Penalise the bias like the other weights, or not, as in "
    "the textbook SVM.",
    "gamma": "Scale of the kernel: a number, scale, auto or mean-distance. With the "
    "smoothed hinge: width of its kink.",
}


# --------------------------------------------------------- options from the estimators


def _option(key: str, own: Sequence[tuple[str, Field]]) -> Option:
    """Return the option of a parameter, from its fields in the estimators."""
    group, names, place = _shape(key)
    fields = [field for _, field in own]
    # The first estimator tells it, or refers to another one in its place.
    alike = [name for name in PLACES if PLACES[name] == PLACES[own[0][0]]]
    told = [stored()[name].get(key, fields[0])["text"] for name in (own[0][0], *alike)]
    told += [field["text"] for field in [*fields, *_fields(key)]]
    text = _TEXTS.get(key) or next(filter(None, told))
    if fields[0]["flag"]:
        given = {n: str(f["default"]) for n, f in own if f["default"] is not None}
        negation = f"--no-{names[2:]}"
        shown = _by_place(given).replace("True", names).replace("False", negation)
        return Option(
            names, text, group=group, name=key, negation=negation, shown=shown
        )
    each = {name: [spelled(w) for w in words_of(f)] for name, f in own}
    words = tuple(dict.fromkeys(word for one in each.values() for word in one))
    if words and key not in _TEXTS and len(words) < MANY:
        of = _by_place({name: ", ".join(one) for name, one in each.items()})
        text = f"{text.rstrip('.')}: {of}."
    shown = _by_place({name: spelled(field["default"]) for name, field in own})
    return Option(
        names, text, reader_of(key, fields), place, group, name=key, words=words,
        shown=_SHOWN.get(key, "" if shown == "None" else shown), many=key in _LISTS,
    )  # fmt: skip


def _shape(key: str) -> tuple[str, str, str]:
    """Return group, names and placeholder of a parameter."""
    return _SHAPES.get(key, ("Model", f"--{key.replace('_', '-')}", "X"))


def _fields(key: str) -> list[Field]:
    """Return the fields of all estimators for a parameter."""
    return [fields[key] for fields in stored().values() if key in fields]


def reader_for(key: str) -> Reader:
    """Return the reader of a parameter of any estimator."""
    return reader_of(key, _fields(key))


def _by_place(values: Mapping[str, str]) -> str:
    """Return the values of estimators, each different one with its options."""
    parts: dict[str, str] = {}
    for name, value in values.items():
        task, kernel = PLACES[name]
        where = [f"--task {task}"] * (task != "classification")
        where += ["--kernel"] * kernel
        parts.setdefault(value, " ".join(where))
    first, *others = parts
    more = [f"with {parts[value]} {value}" for value in others]
    return "; ".join([first, *more])


def option_of(key: str, value: object = None) -> str:
    """Return the name of the option of a parameter, as a message shows it."""
    name = _shape(key)[1].split()[0]
    return f"--no-{name[2:]}" if value is False else name


def parameters_of(options: Values, estimator: str) -> Parameters:
    """Return the parameters that were given, after refusing what an estimator lacks."""
    table, wrong = stored(), list[str]()
    found: Parameters = {}
    own = table[estimator]
    keys = dict.fromkeys(key for fields in table.values() for key in fields)
    for key in keys:
        value = getattr(options, key, None)
        if value is None:
            continue
        option = option_of(key, value)
        if key not in own:
            holders = [name for name, fields in table.items() if key in fields]
            wrong.append(f"{option} {_remedy(estimator, holders)}.")
            continue
        words = words_of(own[key])
        if isinstance(value, str) and words and value not in words:
            holders = [
                n for n, f in table.items() if key in f and value in f[key]["words"]
            ]
            wrong.append(
                f"{option} {spelled(value)} {_remedy(estimator, holders)}; use "
                f"{', '.join(map(spelled, words))}."
            )
        found[key] = value
    if "quantile" in found and found.get("loss") != "quantile":
        wrong.append("--quantile needs --loss quantile.")
    if wrong:
        raise UsageError(" ".join(wrong))
    return found


def estimator_of(o: Values) -> str:
    """Return the name of the estimator that options choose."""
    name = _ESTIMATORS[o.task, o.kernel is not None]
    return f"Nu{name}" if o.nu and name in ("SVC", "SVR") else name


def _remedy(estimator: str, holders: Sequence[str]) -> str:
    """Return which options give a parameter or value that an estimator lacks."""
    if estimator.startswith("Nu"):
        return "is not for --nu"
    task, kernel = PLACES[estimator]
    places = [PLACES[name] for name in holders]
    if (task, not kernel) in places:
        return "is not for --kernel" if kernel else "needs --kernel"
    tasks = [one for one in TASKS if any(place[0] == one for place in places)]
    if task in tasks:
        return "is not for this command"
    return f"is not for --task {task}, but for --task {' or '.join(tasks)}"


# ------------------------------------------- fields of solvers, losses and kernels


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
    own = sorted(fields_of(record), key=lambda f: f.kw_only is True)
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


# ------------------------------------------------------- options that commands share

_DATA = (
    "svmlight / LIBSVM text, CSV, TSV, Parquet, Arrow or .npz, also compressed; - is "
    "standard input."
)
_LABEL = """
Data:
  --label COLUMN
    Label column of a table: its name, or its number, counted from 1. [default: {}]
"""
_COLUMNS = """
Data:
  --columns COLUMN,...
    Feature columns of a table: names, or numbers, counted from 1; or, with a minus
    before each, those that are none. [default: all but the labels]
  --weight COLUMN
    Column of the weights of the examples in a table.
  --one-hot COLUMN,...
    Columns of a table whose values are categories, though they look like numbers or
    are more than 100 words. [default: columns of at most 100 words]
  --missing mean|most-frequent|drop
    Fill missing values of a table with the mean of the column, or its most frequent
    value (always for words), or drop the rows. [default: refuse them]
"""
_TEXT = """
Data:
  --decimal ,|.
    Decimal point of text. [default: as the first lines are]
  --thousands MARK
    Mark between thousands in text: , or . or ' or a blank. [default: none]
  --zero-based /--one-based
    Whether the indices in {} start at 0 or at 1. [default: {}]
"""
WEIGHTS = """
Data:
  --weights -W FILE
    File of weights of the examples, one on each line.
"""
STANDARDIZE = """
Data:
  --standardize
    Give every column mean 0 and standard deviation 1 (sparse data keep their zeros). A
    model file stores the scaling for prediction.
"""
_COMMON = """
Output:
  --json
    Print one JSON object instead of text.
Options:
  --debug
    Show the traceback of an error.
"""
_QUIET = """
Output:
  --quiet -q
    Show only the result, no progress.
"""
_ENTRY = re.compile(r"^(?:(\w[\w ]*):\n)?  (-.*)\n((?: {4}.*\n)+)", re.MULTILINE)
_OF_PLACES = {"N": whole(1), "SIZE": megabytes, "X": positive}


def described(text: str, **readers: Reader) -> Iterator[Option]:
    """Yield the options of a text, which is written like the help.

    Above the help of an option stand its names and, unless it is a flag, a placeholder
    or the words that it takes; `...` lets it be repeated, `/` begins the negation of a
    flag. The placeholder says how to read the value, if `readers` does not.
    """
    group = ""
    for heading, head, body in _ENTRY.findall(text):
        group = heading or group
        words = head.split()
        names = " ".join(word for word in words if word[0] == "-")
        places = [word for word in words if word[0] not in "-/"]
        negation = "".join(word[1:] for word in words if word[0] == "/")
        told, _, shown = (
            " ".join(body.split()).removesuffix("]").partition(" [default: ")
        )
        option = Option(
            names, told, None, "".join(places[:1]), group, shown=shown,
            negation=negation, many=places[1:] == ["..."],
        )  # fmt: skip
        if places:
            option.words = places[0].split("|") if "|" in places[0] else ()
            known = one_of(*option.words) if option.words else str
            option.read = readers.get(option.name) or _OF_PLACES.get(places[0], known)
            with contextlib.suppress(ValueError):  # words about the default
                option.default = None if option.read is str else option.read(shown)
        else:
            option.default = {names: True, negation: False}.get(shown)
        yield option


class Options(Command):
    """A command, with methods that add options which commands share."""

    def __init__(self, name: str, summary: str, epilog: Sequence[str] = ()) -> None:
        super().__init__(name, summary, epilog)
        #: Whether DATA may be a row store.
        self.stores = False
        #: Names of the values that are files to write, and the kinds of these files.
        self.writes: dict[str, str] = {}

    def fields_of(self, *estimators: str, without: Iterable[str] = ()) -> None:
        """Add the parameters of estimators as options, but for those `without`.

        An option that is not given has the value None.
        """
        table = [(name, stored()[name]) for name in estimators]
        names = dict.fromkeys(key for _, fields in table for key in fields)
        order = [*_SHAPES, *names]
        for key in sorted(names.keys() - _LEFT_OUT - {*without}, key=order.index):
            own = [(name, fields[key]) for name, fields in table if key in fields]
            self.options.append(_option(key, own))

    def add(self, text: str, **readers: Reader) -> None:
        """Add the options of a text; see :func:`described`."""
        self.options += described(text, **readers)

    def data(self, *, store: bool = False) -> None:
        """Add the argument DATA."""
        self.stores = store
        text = _DATA + " Or a row store made by convert." * store
        self.arguments.append(Argument("data", "DATA", text))

    def trained_model(
        self, text: str = "Model file of train, of LIBLINEAR or of LIBSVM."
    ) -> None:
        """Add the argument MODEL, a file to read."""
        self.arguments.append(Argument("model", "MODEL", text))

    def output(
        self,
        place: str,
        text: str,
        kind: str = "",
        *,
        name: str = "output",
        shown: str = "",
    ) -> None:
        """Add the output, a file of a kind: the last argument, or the option -o.

        It may be left out if the help shows what is written then.
        """
        self.arguments.append(Argument(name, place, text, required=not shown))
        self.writes[name] = kind
        told, names = f"{place}, as an option.", "--output -o"
        option = Option(names, told, str, "FILE", "Output", name=name, shown=shown)
        self.options.append(option)

    def table_options(self, of: str = "DATA", *, trained: bool = False) -> None:
        """Add the options about columns and indices of DATA."""
        told = "label, target, class or y, or the only words", "at 0 if index 0 occurs"
        label, base = ("as in training",) * 2 if trained else told
        columns = "" if trained else _COLUMNS
        self.add(_LABEL.format(label) + columns + _TEXT.format(of, base))

    def n_features(self, of: str) -> None:
        """Add the number of features."""
        text = f"Number of features, if the last ones do not occur in {of}."
        self.add(f"Data:\n  --n-features N\n    {text} [default: from {of}]\n")

    def jobs(self, what: str = "", shown: str = "all") -> None:
        """Add the number of threads: for reading, and for `what`."""
        also = f", and for {what}" if what else ""
        text = f"Threads for reading{also}. -1 uses all processors. [default: {shown}]"
        text = f"Solver and accuracy:\n  --n-jobs N\n    {text}\n"
        self.add(text, n_jobs=reader_for("n_jobs"))

    def common(self, *, trains: bool = False) -> None:
        """Add the options of all commands, or of those that train."""
        self.add((_QUIET if trains else "") + _COMMON)


# ------------------------------------------------------------ messages about parameters

_REPLACED = {
    ", as zero_based=False says (zero_based=True or 'auto' reads": (
        " (--zero-based reads"
    ),
    "overwrite=True": "--overwrite",
    "as sample_weight=...": "in a file with --weights FILE",
    "sample_weight has": "--weights has",
    "sample_weight and weight=": "--weights and weight=",
    "or None": "or leave it out",
    "use None, ": "use ",
    "Stopped at max_iter": "Stopped at --max-iter",
    "Stopped at time_limit": "Stopped at --time-limit",
    "stop='certified' to train until tol": (
        "--solver-option stop=certified to train until --tol"
    ),
    "raise tol": "raise --tol",
    "X, y and sample_weight are not": "DATA is not",
    "was fitted with a column of y per label": "has several labels per example",
    "fit a model on one column, y[:, k]": "train a model for each label",
    "several labels a line (multi-label) train LinearSVC in Python: read them with "
    "sklearn.datasets.load_svmlight_file(multilabel=True) and encode them with "
    "sklearn.preprocessing.MultiLabelBinarizer": (
        "several labels a line need dualgap train --several-labels"
    ),
    "change sample_weight, or the folds with cv": "change the weights, or --cv",
    "certificate_ and certify prove": "dualgap certify proves",
    "use certify, which takes any SVM, or train LinearSVC, LinearSVR, SVC or SVR": (
        "use dualgap certify, or train without --nu and --task one-class"
    ),
    "give the arguments of fit, and fit again if parameters changed": (
        "give the data that it was trained on, or train again"
    ),
}


@cache
def _named() -> tuple[dict[str, str], re.Pattern[str]]:
    """Return parameters with their options, and a pattern of a parameter's value."""
    keys = {key for fields in stored().values() for key in fields} - _LEFT_OUT
    keys |= {"n_jobs", "label", "columns", "memory", "weight", "n_features", "seed"}
    keys |= {"one_hot", "missing", "decimal", "thousands"}
    found = {key: option_of(key) for key in keys}
    found |= {"y": "--labels", "n_Cs": "--n-Cs"}
    return found, re.compile(
        rf"(?<![\w./-])({'|'.join(found)})=('[^']*'|\{{[^}}]*\}}|[^\s,;:)]+)"
    )


def in_options(sentence: str) -> str:
    """Replace Python arguments in a message, such as n_jobs=2, by options."""
    for python, option in _REPLACED.items():
        sentence = sentence.replace(python, option)
    names, pattern = _named()

    def told(found: re.Match[str]) -> str:
        name, value = names[found[1]], found[2].strip("'")
        if value in ("True", "False"):
            return name if value == "True" else f"--no-{name[2:]}"
        if value[:3] == "...":
            return f"{name} ..."
        if " " in value or not value:
            return f"{name} {value!r}"
        return f"{name} {spelled(value)}"

    sentence = re.sub(
        r"\b([A-Z]\w+)\((\w+)='(\w+)'\)",
        lambda f: f"--solver {f[1].lower()} --solver-option {f[2]}={f[3]}",
        sentence,
    )
    sentence = re.sub(
        r"( needs probabilities), and .* fit .*",
        r"\1, which models of train --probability alone have; choose another score",
        sentence,
    )
    words = r"\b(?:use|or|with) (?:'[\w-]+'(?:, )?)+|, '[\w-]+'(?= or)"
    return re.sub(words, lambda f: f[0].replace("'", ""), pattern.sub(told, sentence))
