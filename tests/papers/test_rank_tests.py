"""The rank tests of a paper against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from dualgap.papers import rank_tests


def enumerated(a, b, alternative):
    """Count the patterns of signs with a sum at least as extreme."""
    difference = [round(x - y, 12) for x, y in zip(a, b, strict=True)]
    sizes = [abs(d) for d in difference]
    ranks = [
        np.mean([k + 1 for k, s in enumerate(sorted(sizes)) if s == size])
        for size in sizes
    ]
    kept = [(d, r) for d, r in zip(difference, ranks, strict=True) if d != 0]
    seen = sum(r for d, r in kept if d > 0)
    sums = [
        sum(r for r, plus in zip([r for _, r in kept], signs, strict=True) if plus)
        for signs in itertools.product([False, True], repeat=len(kept))
    ]
    less = np.mean([s <= seen for s in sums])
    greater = np.mean([s >= seen for s in sums])
    both = min(1.0, 2 * min(less, greater))
    return {"less": less, "greater": greater, "two-sided": both}[alternative]


@pytest.mark.parametrize("alternative", ["less", "greater", "two-sided"])
@pytest.mark.parametrize("n", [1, 2, 7, 10])
def test_wilcoxon_counts_patterns_of_signs(n, alternative):
    rng = np.random.default_rng(n)
    for levels in (2, 4, 50):  # the fewer levels, the more ties and zeros
        a, b = rng.integers(0, levels, (2, n)) / 10
        p = rank_tests.wilcoxon(a, b, alternative)
        assert p == pytest.approx(enumerated(a, b, alternative), abs=1e-12)


@pytest.mark.parametrize("alternative", ["less", "greater", "two-sided"])
def test_wilcoxon_agrees_with_scipy_without_ties(alternative):
    a, b = np.random.default_rng(0).normal(size=(2, 20))
    expected = stats.wilcoxon(a, b, alternative=alternative, method="exact").pvalue
    assert rank_tests.wilcoxon(a, b, alternative) == pytest.approx(expected, rel=1e-9)


def test_zeros_raise_the_ranks_of_the_others():
    # |d| = 0, 0, 1, 2: Pratt ranks 3 and 4, where dropping zeros would give 1 and 2.
    difference, ranks = rank_tests.signed_ranks([5, 5, 6, 3], [5, 5, 5, 5])
    assert difference.tolist() == [1, -2]
    assert ranks.tolist() == [3, 4]
    assert rank_tests.wilcoxon([1, 2], [1, 2], "less") == 1.0


def test_shares_that_differ_in_their_last_bits_only_are_ties():
    assert 0.3 - 0.2 != 0.2 - 0.1
    _, ranks = rank_tests.signed_ranks([0.3, 0.2], [0.2, 0.1])
    assert ranks.tolist() == [1.5, 1.5]


@pytest.mark.parametrize("levels", [3, 1000])
def test_friedman_is_the_analysis_of_variance_of_ranks(levels):
    samples = np.random.default_rng(levels).integers(0, levels, (4, 9)).astype(float)
    ranks = np.array([stats.rankdata(column) for column in samples.T]).T
    methods, sets = ranks.shape
    between = sets * ((ranks.mean(axis=1) - ranks.mean()) ** 2).sum()
    within = ((ranks - ranks.mean(axis=0)) ** 2).sum()
    F = between / (methods - 1) / ((within - between) / ((methods - 1) * (sets - 1)))
    expected = stats.f.sf(F, methods - 1, (methods - 1) * (sets - 1))
    assert rank_tests.friedman(samples) == pytest.approx(expected, rel=1e-9)


def test_friedman_at_its_ends():
    assert rank_tests.friedman([[1.0, 2.0, 3.0]] * 3) == 1.0
    alike = np.arange(3.0)[:, None] + 10 * np.arange(5.0)
    assert rank_tests.friedman(alike) == 0.0
