"""Options as the fields of the estimators describe them, stored in ``fields.json``.

The stored description spares the command line the import of the estimators. After a
change of a parameter write it again: ``python -m dualgap.cli.fields``.
"""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import MISSING, fields
from importlib import resources
from typing import TypedDict

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

    texts = _texts(estimator)
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


if __name__ == "__main__":
    target = str(resources.files(__package__).joinpath("fields.json"))
    with open(target, "w", encoding="utf-8") as file:
        file.write(as_text(described()))
