"""Documentation of parameters and attributes, which subclasses inherit."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import Field
from weakref import WeakKeyDictionary

_SECTIONS = ("Parameters", "Attributes", "Raises")
_HEADING = r"\n\n(?=[A-Z][A-Za-z ]*\n---)"
#: Docstrings as they were written.
_WRITTEN: WeakKeyDictionary[type, str] = WeakKeyDictionary()


def inherit_entries(cls: type) -> None:
    """Complete the docstring of a class by the entries of its bases.

    A parameter or attribute is documented where it is declared. Subclasses show the
    entry, unless they have one of their own, or a constructor without the parameter.
    """
    if not (text := inspect.cleandoc(vars(cls).get("__doc__") or "")):
        return
    _WRITTEN[cls] = text
    first, *parts = re.split(_HEADING, text)
    found = {name: f"{name}\n{'-' * len(name)}" for name in _SECTIONS}
    found |= {part.partition("\n")[0]: part for part in parts}
    none = {name for name, value in vars(cls).items() if _no_parameter(value)}
    init = vars(cls).get("__init__")
    own = None if init is None else inspect.signature(init).parameters
    for section in _SECTIONS:
        known = none.union(*(names for names, _ in _entries(found[section])))
        for base in cls.__mro__[1:]:
            for part in re.split(_HEADING, _WRITTEN.get(base, ""))[1:]:
                for names, entry in _entries(part) if part.startswith(section) else ():
                    has = own is None or section != "Parameters" or names[0] in own
                    if has and known.isdisjoint(names):
                        known.update(names)
                        found[section] += f"\n{entry}"
    parts = [part for part in found.values() if part.count("\n") > 1]
    cls.__doc__ = "\n\n".join([first, *parts])


def _entries(part: str) -> Iterator[tuple[list[str], str]]:
    """Yield the names and the text of each entry of a section."""
    for entry in re.split(r"\n(?=\S)", part)[2:]:
        names = entry.partition("\n")[0].partition(" : ")[0]
        yield names.split(", "), entry


def _no_parameter(value: object) -> bool:
    """Whether a class attribute makes a field no parameter."""
    return isinstance(value, Field) and not value.init
