"""The rank tests of Nanculef et al. 2014 and Demsar 2006: p values, exact where named.

As the paper describes them: Wilcoxon's signed ranks with Pratt's treatment of zeros and
the exact distribution, and Friedman's test with the correction of Iman and Davenport.
SciPy's exact distribution of signed ranks allows neither ties nor zeros.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

# Shares of the same number of test rows differ in the last bits where they are equal.
DECIMALS = 12


def signed_ranks(a, b) -> tuple[np.ndarray, np.ndarray]:
    """Return the differences a - b that are not 0, and the ranks of their sizes.

    Equal sizes share their mean rank. Zeros take part in the ranking and are then left
    out (Pratt 1959).
    """
    difference = np.round(np.asarray(a) - np.asarray(b), DECIMALS)
    ranks = stats.rankdata(np.abs(difference))
    return difference[difference != 0], ranks[difference != 0]


def wilcoxon(a, b, alternative: str) -> float:
    """Return the exact p of Wilcoxon's signed rank test; 1 where nothing differs.

    `alternative` says how a compares with b: "less", "greater" or "two-sided".
    """
    difference, ranks = signed_ranks(a, b)
    double = np.round(2 * ranks).astype(int)  # mean ranks are multiples of 1/2
    ways = np.zeros(double.sum() + 1)  # patterns of signs by their sum of plus ranks
    ways[0] = 1.0
    for rank in double:
        ways[rank:] = ways[rank:] + ways[: len(ways) - rank]
    plus = double[difference > 0].sum()
    share = ways / ways.sum()
    less, greater = share[: plus + 1].sum(), share[plus:].sum()
    if alternative == "two-sided":
        return float(min(1.0, 2 * min(less, greater)))
    return float(min(1.0, {"less": less, "greater": greater}[alternative]))


def friedman(samples) -> float:
    """Return p of Friedman's test as Iman and Davenport (1980) correct it.

    `samples` holds the values of each method on the same sets. p is 1 where nothing
    differs, and 0 where every set ranks the methods alike.
    """
    samples = np.round(np.asarray(samples, dtype=float), DECIMALS)
    methods, sets = samples.shape
    if (samples == samples[0]).all():
        return 1.0
    chi2 = stats.friedmanchisquare(*samples).statistic
    rest = sets * (methods - 1) - chi2
    if rest <= 1e-9 * chi2:
        return 0.0
    ratio = (sets - 1) * chi2 / rest
    return float(stats.f.sf(ratio, methods - 1, (methods - 1) * (sets - 1)))
