"""Documentation of parameters and attributes, which subclasses inherit."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field
from weakref import WeakKeyDictionary

_SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Warns")
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
    none = {name for name, value in vars(cls).items() if _no_parameter(value)}
    init = vars(cls).get("__init__")
    own = None if init is None else inspect.signature(init).parameters

    def fits(section: str, name: str) -> bool:
        has = own is None or section != "Parameters" or name in own
        return has and name not in none

    bases = [_WRITTEN.get(base, "") for base in cls.__mro__[1:]]
    cls.__doc__ = _completed(text, bases, fits)


def complete_methods(cls: type, shared: str) -> None:
    """Complete the docstrings of public methods by entries that they share.

    `shared` has sections, as a docstring has. A parameter is for the methods that have
    it. A `fit` also shows the entries of the methods that it replaces.
    """
    for value in vars(cls).values():
        method = getattr(value, "__func__", value)  # of a class method
        if inspect.isfunction(method) and method.__doc__ and method.__name__[0] != "_":
            own = list(inspect.signature(method).parameters)

            def fits(section: str, name: str, own: Sequence[str] = own) -> bool:
                return section != "Parameters" or name in own

            text = inspect.cleandoc(method.__doc__)
            others = _replaced(cls) if method.__name__ == "fit" else []
            others.append(f"\n{shared.rstrip()}")
            method.__doc__ = _completed(text, others, fits, own)


def _replaced(cls: type) -> list[str]:
    """Return the docstrings of the package's `fit` in the bases of a class."""
    found = [vars(base)["fit"] for base in cls.__mro__[1:] if "fit" in vars(base)]
    own = [fit for fit in found if fit.__module__.startswith(f"{__package__}.")]
    return [inspect.cleandoc(fit.__doc__ or "") for fit in own]


def _completed(
    text: str,
    others: list[str],
    fits: Callable[[str, str], bool],
    order: Sequence[str] = (),
) -> str:
    """Return a docstring with the entries of others that fit and that it lacks.

    `order`: parameters in the order of their entries; by default as in the texts.
    """
    first, *parts = re.split(_HEADING, text)
    found = {name: f"{name}\n{'-' * len(name)}" for name in _SECTIONS}
    found |= {part.partition("\n")[0]: part for part in parts}
    for part in (part for other in others for part in re.split(_HEADING, other)[1:]):
        section = part.partition("\n")[0]
        for names, entry in _entries(part) if section in _SECTIONS else ():
            known = {name for own, _ in _entries(found[section]) for name in own}
            if known.isdisjoint(names) and fits(section, names[0]):
                found[section] += f"\n{entry}"
    if order:
        entries = sorted(
            _entries(found["Parameters"]),
            key=lambda pair: order.index(pair[0][0].lstrip("*")),
        )
        head = "Parameters\n----------"
        found["Parameters"] = "\n".join([head, *(entry for _, entry in entries)])
    return "\n\n".join([first, *(p for p in found.values() if p.count("\n") > 1)])


def _entries(part: str) -> Iterator[tuple[list[str], str]]:
    """Yield the names and the text of each entry of a section."""
    for entry in re.split(r"\n(?=\S)", part)[2:]:
        names = entry.partition("\n")[0].partition(" : ")[0]
        yield names.split(", "), entry


def _no_parameter(value: object) -> bool:
    """Whether a class attribute makes a field no parameter."""
    return isinstance(value, Field) and not value.init
