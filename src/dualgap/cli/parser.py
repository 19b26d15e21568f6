"""Commands with their options and arguments: reading a line, help, completion."""

from __future__ import annotations

import getopt
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from keyword import iskeyword
from types import SimpleNamespace as Values

from ..names import nearest

__all__ = ["Argument", "Command", "Option", "UsageError", "Values"]

#: Groups of options in the help, in this order.
GROUPS = (
    *("Data", "Model", "Bias", "Kernel", "Solver and accuracy", "Output", "Options"),
)
PROGRAMS = ("dualgap ", "liblinear-", "svm-")  # lines that are examples


class UsageError(Exception):
    """Wrong usage, told in one sentence for each mistake."""


@dataclass
class Option:
    """Option of a command; without `read` it is a flag.

    `names` has blanks between the names. `read` turns a text into a value, or raises a
    ValueError that says what to give.
    """

    names: str
    help: str
    read: Callable[[str], object] | None = None
    place: str = "X"
    group: str = "Options"
    _: KW_ONLY
    #: Name of the value; by default the first one of `names`.
    name: str = ""
    #: Default in the help; empty for none.
    shown: str = ""
    default: object = None
    #: Name that sets a flag to False.
    negation: str = ""
    #: Values for the completion of a shell.
    words: Sequence[str] = ()
    #: Whether it may be repeated, for a list of values.
    many: bool = False

    def __post_init__(self) -> None:
        name = self.names.split()[0][2:].replace("-", "_")
        self.name = self.name or name + "_" * iskeyword(name)

    def value(self, text: str) -> object:
        """Return the value of a text, or refuse it."""
        assert self.read is not None
        try:
            return self.read(text)
        except ValueError as error:
            name = max(self.names.split(), key=len)
            told = f"{name} {text} is invalid; {error}."
            raise UsageError(told.replace("?.", "?")) from None

    def described(self) -> tuple[str, str]:
        """Return names and help, with the default."""
        names = [*self.names.split(), *([self.negation] if self.negation else [])]
        if self.negation and self.default is not None:
            names = [self.negation if self.default else names[0]]
        left = ", ".join(sorted(names, key=lambda name: name[:2] == "--"))
        left += f" {self.place}" if self.read else ""
        return left, self.help + (f" [default: {self.shown}]" if self.shown else "")


@dataclass
class Argument:
    """Argument of a command; one of `many` takes all that others leave."""

    name: str
    place: str
    help: str
    required: bool = True
    many: bool = False
    #: Values for the completion of a shell.
    words: Sequence[str] = ()


@dataclass
class Command:
    """A command; its module adds the options, and runs it."""

    name: str
    summary: str
    epilog: Sequence[str] = ()
    options: list[Option] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    #: Names of other commands that have an option.
    elsewhere: Callable[[str], Sequence[str]] = field(default=lambda _: ())

    @property
    def usage(self) -> str:
        places = [
            (a.place + "..." * a.many) if a.required else f"[{a.place}]"
            for a in self.arguments
        ]
        return " ".join([f"dualgap {self.name} [OPTIONS]", *places])

    @property
    def known(self) -> dict[str, Option]:
        """The options by their names on the command line."""
        return {
            n: o for o in self.options for n in (o.names + f" {o.negation}").split()
        }

    def parse(self, words: Sequence[str]) -> Values:
        """Return the values of options and arguments, or refuse all that is wrong."""
        known, flags = self.known, list[str]()
        kept = [*words[:1]]
        for name, word in pairwise(words):
            if name in known and known[name].read is None and word in ("0", "1"):
                flags.append(f"{name} takes no value; leave {word} out.")
            else:
                kept.append(word)
        given, places, wrong = self._split(kept)
        wrong += flags
        values = {option.name: option.default for option in self.options}
        for name, text in given:
            option = known[name]
            try:
                value = (
                    name != option.negation
                    if option.read is None
                    else option.value(text)
                )
            except UsageError as error:
                wrong.append(str(error))
                continue
            if option.many:
                earlier = values[option.name]
                value = [*(earlier if isinstance(earlier, list) else ()), value]
            values[option.name] = value
        if wrong:
            raise UsageError(" ".join(wrong))
        self._place(places, values)
        return Values(command=self, **values)

    def _split(
        self, words: list[str]
    ) -> tuple[list[tuple[str, str]], list[str], list[str]]:
        """Return options, arguments, and sentences about options that are wrong."""
        takes = {n: "" if o.read is None else ":" for n, o in self.known.items()}
        short = "".join(name[1] + takes[name] for name in takes if len(name) == 2)
        long = [name[2:] + "=" * bool(takes[name]) for name in takes if len(name) > 2]
        wrong: list[str] = []
        while True:
            try:
                return *getopt.gnu_getopt(words, short, long), wrong
            except getopt.GetoptError as error:
                wrong.append(self._remark(error.opt, words))
                # The others are read without this one.
                name = f"--{error.opt}".partition("=")[0]
                bad = [w for w in words if w.partition("=")[0] == name]
                bad = bad or [w for w in words if re.match(f"-[^-]*{error.opt}", w)]
                if not bad:
                    raise UsageError(" ".join(wrong)) from None
                words = [w for w in words if w not in bad]

    def _place(self, places: list[str], values: dict[str, object]) -> None:
        """Give the arguments their words; an option may have given one already."""
        wanted = [a for a in self.arguments if values.get(a.name) is None]
        spare = max(len(places) - len(wanted), 0)
        for argument in wanted:
            if not places and argument.required:
                raise UsageError(
                    f"{argument.place} is missing; the usage is: {self.usage}"
                )
            taken = places[: 1 + spare * argument.many]
            del places[: len(taken)]
            if "" in taken:
                raise UsageError(f"{argument.place} is empty; give the path of a file.")
            one = taken[0] if taken else None
            values[argument.name] = taken if argument.many else one
        if places:
            raise UsageError(
                f"{places[0]} is one argument too many; the usage is: {self.usage}"
            )

    def _remark(self, word: str, words: Sequence[str]) -> str:
        """Return the sentence about an option that cannot be used so."""
        begun = [text.partition("=")[0] for text in words]
        long = len(word) > 1 or f"--{word}" in begun
        name, known = f"--{word}" if long else f"-{word}", self.known
        if name in known:
            option = known[name]
            if option.read is None:
                return f"{name} takes no value."
            return f"{name} needs a value: {name} {option.place}."
        begun = [other for other in known if len(name) > 2 and other.startswith(name)]
        if begun:
            return f"{name} may be {' or '.join(begun)}; write it out."
        remedy = FOREIGN.get(name, "")
        named = set(re.findall("--[A-Za-z-]+", remedy))
        if remedy and ("dualgap" in remedy or not named or named & known.keys()):
            return f"No such option: {name}; {remedy}."
        if there := self.elsewhere(name):
            return f"No such option: {name}; it belongs to {', '.join(there)}."
        near = nearest(word, [other[2:] for other in known if other[:2] == "--"])
        hint = f" Did you mean --{near}?" if near else " See --help."
        return f"No such option: {name}.{hint}"

    def help(self) -> str:
        """Return the text of the help page."""
        groups: dict[str, list[tuple[str, str]]] = {
            "Arguments": [(a.place, a.help) for a in self.arguments],
            **{group: [] for group in GROUPS},
        }
        for option in self.options:
            groups[option.group].append(option.described())
        groups["Options"].append(("-h, --help", "Show this page."))
        for name in GROUPS[:-1]:  # one option alone needs no heading
            if len(groups[name]) == 1:
                groups["Options"][:0] = groups.pop(name)
        parts = [f"Usage: {self.usage}", f"  {self.summary}"]
        parts += ["\n".join([f"{name}:", *rows(r)]) for name, r in groups.items() if r]
        examples = [f"  {line}" for line in self.epilog if line.startswith(PROGRAMS)]
        parts += ["\n".join(["Examples:", *examples])] if examples else []
        others = [line for line in self.epilog if not line.startswith(PROGRAMS)]
        parts += [textwrap.fill(s, width(), break_on_hyphens=False) for s in others]
        return "\n\n".join(parts)


def width() -> int:
    """Return the width of a help page."""
    return min(shutil.get_terminal_size().columns, 80)


def rows(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of names and their explanations, in two columns."""
    left = min(24, max(len(name) for name, _ in pairs)) + 4
    for name, text in pairs:
        head = f"  {name}"
        if len(head) + 2 > left:
            yield head
            head = ""
        lines = textwrap.wrap(
            text, width() - left, break_on_hyphens=False, break_long_words=False
        )
        for line in lines:
            yield f"{head:<{left}}{line}"
            head = ""


# Options of LIBLINEAR, LIBSVM and scikit-learn, with advice. Options with the same
# meaning here (-c, -g, -d, -r, -n, -p) are aliases instead.
FOREIGN = {
    "-s": "choose the problem with --task, --loss and --multi-class; LIBLINEAR's -s 3 "
    "is --loss hinge, -s 1 and 2 are --loss squared_hinge, -s 4 is --multi-class "
    "crammer_singer, -s 5 is --penalty l1, -s 11 to 13 --task regression, -s 21 --task "
    "one-class; -s 0, 6 and 7 are dualgap.LogisticRegression in Python alone",
    "-t": "choose the kernel with --kernel: -t 0 is linear, 1 poly, 2 rbf, 3 sigmoid",
    "-e": "set the relative duality gap with --tol; -e of LIBLINEAR and "
    "LIBSVM is another measure",
    "-B": "the bias is fitted by default; -B X is --intercept-scaling X, -B -1 is "
    "--no-intercept",
    "-R": "use --no-penalize-intercept",
    "-m": "use --cache SIZE for memory, --n-jobs N for threads",
    "-w": "use --class-weight, as in --class-weight -1=1,1=2.5",
    "-v": "dualgap tune DATA --cv FOLDS cross-validates",
    "--cv": "dualgap tune DATA --cv FOLDS cross-validates",
    "-b": "dualgap train --probability and dualgap predict --proba have probabilities",
    "--max-epochs": "use --max-iter",
    "--random-state": "use --seed",
    "--shrinking": "shrinking is always on; leave it out",
    "--dual": "--solver auto chooses between the primal and the dual; leave it out",
    "--cost": "use --C",
    "--tolerance": "use --tol",
    "--threads": "use --n-jobs",
    "--scale": "use --standardize",
    "--target": "use --label",
    "--weight": "only dualgap train and the commands about training weigh examples; "
    "leave it out",
}
FOREIGN |= dict.fromkeys(
    ("--proba", "--probability", "--probabilities", "--predict-proba"), FOREIGN["-b"]
)
FOREIGN |= dict.fromkeys(
    ("--decision", "--decisions", "--decision-function", "--decision-values"),
    "dualgap predict --scores writes decision values",
)
