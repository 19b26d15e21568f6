"""Choose the cases of a test that the fast suite runs.

A parametrized test asserts one thing of many cases. The fast suite runs few of them,
chosen so that together they hold as many values and pairs of values of its parameters
as so many cases can; `pytest --all` runs every one.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable
from typing import Any

#: Cases of a test where it has no mark `cases`.
CASES = 3


def chosen(cases: dict[str, dict[str, str]], most: int | None) -> set[str]:
    """Names of at most so many cases, and of a cover of all pairs where `most` is None.

    Each case, by its name, is the values of its parameters. The next case is the one
    that brings the most values not met yet, then the most pairs. Where several do, the
    checksum of their names decides, so that tests with the same parameters do not all
    run the same cases, and every run of a test runs the same ones.
    """
    order = sorted(cases, key=lambda name: (zlib.crc32(name.encode()), name))
    values = {name: set(cases[name].items()) for name in order}
    pairs = {name: set(_pairs(cases[name].items())) for name in order}
    found: set[str] = set()
    met: set[Any] = set()
    while order and (most is None or len(found) < most):
        best = max(order, key=lambda n: (len(values[n] - met), len(pairs[n] - met)))
        if most is None and not (values[best] | pairs[best]) - met:
            break
        met |= values[best] | pairs[best]
        order.remove(best)
        found.add(best)
    return found


def _pairs(values: Iterable[tuple[str, str]]) -> Iterable[Any]:
    return itertools.combinations(sorted(values), 2)
