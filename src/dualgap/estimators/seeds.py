"""Seeds of the binary problems of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

__all__ = ["RandomState", "seed_of", "seeds_of"]

RandomState = int | np.random.RandomState | None


def seeds_of(random_state: RandomState, count: int) -> Sequence[int]:
    """Return as many seeds, drawn from an estimator's `random_state`."""
    if isinstance(random_state, (int, np.integer)):
        return _drawn(int(random_state), count)
    from sklearn.utils import check_random_state  # on use: it takes time to import

    found: list[int] = check_random_state(random_state).randint(_END, size=count)
    return list(map(int, found))


def seed_of(random_state: RandomState) -> int:
    """Return one seed, drawn from an estimator's `random_state`."""
    return seeds_of(random_state, 1)[0]


_END = 2**31 - 1


@lru_cache(maxsize=64)
def _drawn(seed: int, count: int) -> tuple[int, ...]:
    """Return the seeds of an int; making a generator can take as long as a fit."""
    return tuple(np.random.RandomState(seed).randint(_END, size=count).tolist())
