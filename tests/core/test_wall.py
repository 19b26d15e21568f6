"""The wall between Python and the core is made of records.

No call into the core takes more than `MOST` arguments and none returns a tuple of more
than `LONGEST` entries. nanobind tells the signatures.
"""

from __future__ import annotations

import re

from dualgap import core

MOST = 8  # arguments, without self
LONGEST = 3  # entries of a tuple


def functions():
    """Yield the name and the function of all that the core exports."""
    for name, value in vars(core._core).items():
        if isinstance(value, type):
            for method, function in vars(value).items():
                if hasattr(function, "__nb_signature__"):
                    yield f"{name}.{method}", function
                elif isinstance(function, property):
                    yield f"{name}.{method}", function.fget
        elif hasattr(value, "__nb_signature__"):
            yield name, value


def split(text):
    """Split text at the commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def signatures():
    """Yield the names, arguments and result of every signature."""
    for name, function in functions():
        for entry in function.__nb_signature__:
            inside, result = re.fullmatch(
                r"def \w* ?\((.*)\)(?: -> (.*))?", entry[0], re.DOTALL
            ).groups()
            arguments = [a for a in split(inside) if a not in ("self", "/", "*")]
            yield name, arguments, result or "None"


SIGNATURES = list(signatures())


def test_the_signatures_are_read():
    names = {name for name, _, _ in SIGNATURES}
    assert len(names) > 150
    assert names >= {"sleeping_epoch", "Examples.__init__", "Random.state"}


def test_no_call_takes_many_arguments():
    for name, arguments, _ in SIGNATURES:
        assert len(arguments) <= MOST, (name, arguments)


def test_no_call_returns_a_long_tuple():
    for name, _, result in SIGNATURES:
        for found in re.finditer(r"tuple\[", result):
            rest, depth = "", 1
            for letter in result[found.end() :]:
                depth += (letter == "[") - (letter == "]")
                if depth == 0:
                    break
                rest += letter
            assert len(split(rest)) <= LONGEST, (name, result)
