"""Options as the fields of the estimators describe them, and readers of their values.

The description is stored in ``fields.json``, which spares the command line the import
of the estimators. After a change of a parameter write it again:
``python -m dualgap.cli.fields``.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from importlib import resources
from pathlib import Path
from typing import TypedDict

from ..names import ALIASES, nearest

#: Estimators of the commands, whose parameters become options.
ESTIMATORS = (
    *("LinearSVC", "SVC", "LinearSVR", "SVR", "LinearOneClassSVM", "OneClassSVM"),
    *("NuSVC", "NuSVR", "LinearSVCCV", "SVCCV"),
)
_SECTION = re.compile(r"Parameters\n-+\n(.*?)\n\n[A-Z]", re.DOTALL)
#: Marks, and how to give a record in the place of a word.
_OF_PYTHON = re.compile(r"[`\"]|:\w+:|(?:, by name|, given|: a name|; see Notes).*")
_ENTRY = re.compile(r"^(\w[\w, ]*) : .*\n((?: {4}.*\n?|\n)+)", re.MULTILINE)


class Field(TypedDict):
    """Parameter of an estimator: default, first sentence, valid words and numbers."""

    default: str | float | bool | None
    text: str
    words: list[str]
    #: Intervals: low, high, closed, whether whole.
    numbers: list[tuple[float | None, float | None, str, bool]]
    flag: bool


Fields = dict[str, Field]


def stored() -> dict[str, Fields]:
    """Return the parameters of all estimators by their names, as stored."""
    text = resources.files(__package__).joinpath("fields.json").read_text("utf-8")
    found: dict[str, Fields] = json.loads(text)
    return found


def described() -> dict[str, Fields]:
    """Return the parameters of all estimators, from their classes."""
    import dualgap

    return {name: _fields(getattr(dualgap, name)) for name in ESTIMATORS}


def _fields(estimator: type) -> Fields:
    from sklearn.utils._param_validation import Interval, StrOptions

    from ..estimators.parameters import constraints_of

    texts, own = _texts(estimator), estimator.__annotations__.keys() - {"_"}
    if own and not own & texts.keys():
        lacks = f"the docstring of {estimator.__name__} has no text for {sorted(own)}"
        raise ValueError(f"{lacks}; write each as `name : type` and indented lines")
    found = {}
    for field in fields(estimator):
        if not field.init or field.default is MISSING:
            continue
        valid = constraints_of(estimator)[field.name]
        words = [w for c in valid if isinstance(c, StrOptions) for w in c.options]
        found[field.name] = Field(
            default=field.default,
            text=texts.get(field.name, ""),
            words=sorted(words, key=lambda word: (word != field.default, word)),
            numbers=[
                (c.left, c.right, c.closed, c.type.__name__ == "Integral")
                for c in valid
                if isinstance(c, Interval)
            ],
            flag="boolean" in valid,
        )
    return found


def _texts(estimator: type) -> dict[str, str]:
    """Return the first sentences about the parameters, from the documentation."""
    section = _SECTION.search(inspect.getdoc(estimator) or "")
    found = {}
    for names, text in _ENTRY.findall(section[1] if section else ""):
        words = re.sub(r"^[^.]*default=\S+ ", "", " ".join(text.split()))  # of a type
        sentence = re.split(r"(?<=\.) (?=[\"`A-Z])", words)[0]
        for name in names.split(", "):
            found[name] = _OF_PYTHON.sub("", sentence).rstrip(".") + "."
    return found


def as_text(fields_of: dict[str, Fields]) -> str:
    """Return the content of the stored file: a line for every parameter."""
    parts = []
    for name, found in sorted(fields_of.items()):
        lines = [f"  {json.dumps(key)}: {json.dumps(found[key])}" for key in found]
        parts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


# ------------------------------------------------------------- readers of values

#: Fewer words than this are all listed by help and messages.
MANY = 30
Reader = Callable[[str], object]
Range = tuple["float | None", "float | None", str, bool]


def reader(name: str, words: Sequence[str], intervals: Sequence[Range]) -> Reader:
    """Return a reader of words of a parameter, or numbers in intervals."""

    def read(text: str) -> object:
        for word in words:
            if _folded(word) == _folded(text):
                return word
        if (alias := ALIASES.get(name, {}).get(text.lower())) in words:
            return alias
        for interval in intervals:
            if (value := _number(text, interval)) is not None:
                return value
        some = words if len(words) < MANY else [*words[:8], "and others"]
        shown = [spelled(w) if w[:1].isalnum() else repr(w) for w in some]
        told = [", ".join(shown)] * bool(words)
        told += dict.fromkeys(map(_in_words, intervals))
        near = nearest(text, words, name) if words else None
        hint = f". Did you mean {near!r}?" if near else ""
        if name == "loss" and text.startswith("log"):
            hint = "; Python has LogisticRegression, train --probability probabilities"
        raise ValueError(f"give {' or '.join(told)}{hint}")

    return read


def _folded(word: str) -> str:
    return word.lower().replace("_", "-")


def spelled(word: object) -> str:
    """Return a word or a default as options show it."""
    if isinstance(word, float):
        return f"{word:g}"
    return str(word).replace("crammer_singer", "crammer-singer")


def _number(text: str, interval: Range) -> float | None:
    """Return the number of a text if it is in an interval, else None."""
    low, high, closed, is_whole = interval
    try:
        value = int(text) if is_whole else float(text)
    except ValueError:
        return None
    high = 2**63 - 1 if is_whole and high is None else high
    below = low is not None and (value < low or (value == low and closed == "right"))
    above = high is not None and (value > high or (value == high and closed == "left"))
    at_an_end = closed == "neither" and value in (low, high)
    inside = math.isfinite(value) and not (below or above or at_an_end)
    return value if inside else None


def _in_words(interval: Range) -> str:
    """Return words for the numbers of an interval."""
    low, high, closed, is_whole = interval
    what = "a whole number" if is_whole else "a number"
    if low is None and high is None:
        return what
    if high is None:
        from_low = closed in ("left", "both")
        return f"{what} of {low:g} or more" if from_low else "a positive number"
    if low is None:
        return f"{what} of {high:g} or less"
    if closed == "both":
        return f"{what} from {low:g} to {high:g}"
    end = "at most" if closed == "right" else "below"
    return f"{what} above {low:g} and {end} {high:g}"


def fraction(text: str) -> float:
    """Return a relative accuracy, between 0 and 1."""
    value = positive(text)
    if value >= 1.0:
        raise ValueError(
            f"{100.0 * value:g} % proves nothing, so give a fraction below 1, such as "
            "0.001 for 0.1 %"
        )
    return value


def whole(least: int) -> Reader:
    """Return a reader of whole numbers."""
    return reader("", [], [(least, None, "left", True)])


def one_of(*words: str) -> Reader:
    """Return a reader of words."""
    return reader("", words, [])


def positive(text: str) -> float:
    """Return a positive number."""
    value = _number(text, (0.0, None, "neither", False))
    if value is None:
        raise ValueError("give a positive number")
    return value


_UNITS = {"": 1.0, "kb": 1e-3, "mb": 1.0, "gb": 1e3, "tb": 1e6}
_UNITS |= {"kib": 1024e-6, "mib": 1024**2 / 1e6, "gib": 1024**3 / 1e6}


def megabytes(text: str) -> float:
    """Return a size such as 2GB in units of 10**6 bytes."""
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Z]*)\s*", text)
    size = float(found[1]) * _UNITS.get(found[2].lower(), 0.0) if found else 0.0
    if not 0.0 < size <= 1e12:
        raise ValueError("give a size, such as 500MB or 2GB")
    return size


def numbers(text: str) -> list[float]:
    """Return the numbers of a list such as 0.1,1,10."""
    try:
        return [positive(part) for part in text.split(",")]
    except ValueError:
        raise ValueError("give positive numbers, such as 0.1,1,10") from None


def several(read: Reader) -> Reader:
    """Return a reader of values with commas between them."""
    return lambda text: [read(part) for part in text.split(",")]


def gamma(text: str) -> object:
    """Return the scale of a kernel, a number or a word."""
    return reader_of("gamma", [stored()["SVC"]["gamma"]])(text)


def class_weights(text: str) -> dict[float | str, float] | str:
    """Return ``"balanced"``, or weights by label."""
    if text == "balanced":
        return text
    weights: dict[float | str, float] = {}
    for part in text.split(","):
        label, _, weight = part.rpartition("=")
        try:
            factor = positive(weight if label else "")
        except ValueError:
            near = nearest(text, ["balanced"])
            hint = f". Did you mean {near!r}?" if near else ""
            raise ValueError(
                f"{part!r} is not LABEL=W with a positive W, such as -1=2.5{hint}"
            ) from None
        if (key := _label(label)) in weights:
            raise ValueError(f"{label} occurs twice, so leave one of them out")
        weights[key] = factor
    return weights


def _label(text: str) -> float | str:
    """Return a label as a number, or else as text."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def words_of(field: Field) -> list[str]:
    """Return the words of a parameter; DATA holds rows, and so no kernel matrix."""
    return [word for word in field["words"] if word != "precomputed"]


def reader_of(key: str, fields: Sequence[Field]) -> Reader:
    """Return the reader of values that any of the estimators takes."""
    words = dict.fromkeys(word for field in fields for word in words_of(field))
    intervals = dict.fromkeys(
        (low, high, closed, is_whole)
        for field in fields
        for low, high, closed, is_whole in field["numbers"]
    )
    return _READERS.get(key) or reader(key, list(words), list(intervals))


_READERS: dict[str, Reader] = {
    "tol": fraction,
    "cache_size": megabytes,
    "class_weight": class_weights,
    "random_state": whole(0),
    "checkpoint": str,
    "cv": whole(2),
    "Cs": numbers,
    "gammas": several(gamma),
}


if __name__ == "__main__":
    Path(__file__).with_name("fields.json").write_text(as_text(described()), "utf-8")
