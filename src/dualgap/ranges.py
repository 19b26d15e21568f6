"""Refusal of numbers that 64 bits cannot hold.

Python and NumPy have larger ones. Comparisons accept them, and conversions fail later,
in words that name no argument.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np

_BEYOND = "is beyond the range of float64; give a number of less than 1.8e308"


def refuse_huge(name: str, value: object, *, whole: bool = False) -> None:
    """Refuse a number beyond 64 bits, also one in a list or a dictionary.

    `whole`: whether an integer has to fit into 64 bits; else it has to fit into
    float64.
    """
    if type(value) in (float, bool, str, type(None)):
        return
    if type(value) is int and 0 <= value < 2**31:
        return
    if isinstance(value, Integral):
        # Messages about such a number must not print its digits.
        if whole and not -(2**63) <= int(value) < 2**63:
            raise ValueError(f"{name} does not fit into 64 bits; give less than 2**63")
        if abs(int(value)) > sys.float_info.max:
            raise ValueError(f"{name} {_BEYOND}")
    elif isinstance(value, np.floating):
        if np.isfinite(value) and math.isinf(float(value)):
            raise ValueError(f"{name} {_BEYOND}")
    elif isinstance(value, Real):
        try:
            float(value)
        except OverflowError:
            raise ValueError(f"{name} {_BEYOND}") from None
    elif isinstance(value, Mapping):
        for number, (key, item) in enumerate(value.items()):
            refuse_huge(f"key {number} of {name}", key)
            refuse_huge(f"{name}[{key!r}]", item)
    elif isinstance(value, (list, tuple)) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "O"
    ):
        for number, item in enumerate(value):
            refuse_huge(f"{name}[{number}]", item)
