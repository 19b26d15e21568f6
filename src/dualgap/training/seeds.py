"""Seeds of the problems of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

RandomState = int | np.random.RandomState | None
_END = 2**31 - 1


def seeds_of(random_state: RandomState, count: int) -> Sequence[int]:
    """Return as many seeds, drawn from an estimator's `random_state`."""
    if isinstance(random_state, (int, np.integer)):
        return _drawn(int(random_state), count)
    draw = np.random.randint if random_state is None else random_state.randint
    found: list[int] = draw(_END, size=count).tolist()
    return found


@lru_cache(maxsize=64)
def _drawn(seed: int, count: int) -> tuple[int, ...]:
    """Return the seeds of an int; making a generator can take as long as a fit."""
    return tuple(np.random.RandomState(seed).randint(_END, size=count).tolist())
