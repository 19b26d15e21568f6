"""The visiting orders: the generator bit for bit, and that it is fair."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from dualgap import core

from ..twins import random


def test_the_generator_is_xoshiro256plusplus():
    """The authors' first numbers for the state 1, 2, 3, 4, and for seed 0."""
    twin = random.Random(0)
    twin.s = [1, 2, 3, 4]
    assert [twin.next() for _ in range(4)] == [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
    ]
    assert next(random.splitmix64(0)) == 0xE220A8397B1DCDAF


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 5, 2**64 - 1])
@pytest.mark.parametrize("n", [1, 2, 3, 1000, 2**31 + 1, 3 * 2**30, 2**32 - 1])
def test_bounded_draws(seed, n):
    ours, twin = core.Random(seed), random.Random(seed)
    drawn = [ours.below(n) for _ in range(200)]
    assert drawn == [twin.below(n) for _ in range(200)]
    assert max(drawn) < n


def test_shuffles_and_draws():
    ours, twin = core.Random(7), random.Random(7)
    order, expected = np.arange(50, dtype=np.uint32), list(range(50))
    for _ in range(5):
        ours.shuffle(order)
        twin.shuffle(expected)
        assert order.tolist() == expected
    ours.draw(order, 37)
    assert order.tolist() == [twin.below(37) for _ in range(50)]
    nothing = np.zeros(0, dtype=np.uint32)
    ours.shuffle(nothing)
    ours.draw(nothing, 3)
    assert ours.below(1000) == twin.below(1000)


def test_every_permutation_is_as_likely():
    rng, counts, runs = core.Random(8), Counter(), 24_000
    for _ in range(runs):
        order = np.arange(4, dtype=np.uint32)
        rng.shuffle(order)
        counts[tuple(order.tolist())] += 1
    expected = runs / 24
    assert set(counts) == set(permutations(range(4)))
    chi2 = sum((count - expected) ** 2 / expected for count in counts.values())
    assert 5 < chi2 < 50  # 23 degrees of freedom


def test_every_row_is_as_likely():
    order = np.empty(70_000, dtype=np.uint32)
    core.Random(9).draw(order, 7)
    counts = np.bincount(order, minlength=7)
    assert 0.3 < ((counts - 10_000.0) ** 2 / 10_000).sum() < 25  # 6 degrees
