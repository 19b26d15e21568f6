"""Rank tests of Nanculef et al. 2014 and Demsar 2006: p values, exact where named.

As the paper describes them: Wilcoxon's signed ranks with Pratt's treatment of zeros and
the exact distribution, and Friedman's test with the correction of Iman and Davenport.
SciPy's exact distribution of signed ranks allows neither ties nor zeros.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from ..data.types import Array
from .page import SETTINGS

#: Shares of the same number of test rows differ in the last bits where they are equal.
DECIMALS = 12


def signed_ranks(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """Return the differences a - b that are not 0, and the ranks of their sizes.

    Equal sizes share their mean rank. Zeros take part in the ranking and are then left
    out (Pratt 1959).
    """
    from scipy.stats import rankdata

    difference = np.round(np.asarray(a) - np.asarray(b), DECIMALS)
    ranks = rankdata(np.abs(difference))
    return difference[difference != 0], ranks[difference != 0]


def wilcoxon(a: ArrayLike, b: ArrayLike, alternative: str) -> float:
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
    tails = {"less": less, "greater": greater, "two-sided": 2 * min(less, greater)}
    return float(min(1.0, tails[alternative]))


def friedman(samples: ArrayLike) -> float:
    """Return p of Friedman's test as Iman and Davenport (1980) correct it.

    `samples` holds the values of each method on the same sets. p is 1 where nothing
    differs, and 0 where every set ranks the methods alike.
    """
    from scipy import stats

    values = np.round(np.asarray(samples, dtype=float), DECIMALS)
    methods, sets = values.shape
    if (values == values[0]).all():
        return 1.0
    chi2 = stats.friedmanchisquare(*values).statistic
    rest = sets * (methods - 1) - chi2
    if rest <= 1e-9 * chi2:
        return 0.0
    ratio = (sets - 1) * chi2 / rest
    return float(stats.f.sf(ratio, methods - 1, (methods - 1) * (sets - 1)))


def compared(values: ArrayLike, alternative: str = "") -> dict[str, str]:
    """Return on how many sets the first of two is ahead, p, and what is shown at 5 %.

    Without an alternative all methods are compared, on the sets with all values.
    """
    values = np.asarray(values)
    values = values[:, np.isfinite(values).all(axis=0)]
    sets = values.shape[1]
    ahead, test = f"{sets}", partial(friedman, values)
    if alternative:
        a, b = values
        first = (a > b if alternative == "greater" else a < b).sum()
        ahead, test = f"{first} of {sets}", partial(wilcoxon, a, b, alternative)
    if sets < SETTINGS.fewest:
        return {"ahead": ahead, "p": "", "here": "too few sets"}
    here = "shown" if (p := test()) < 0.05 else "not shown"
    return {"ahead": ahead, "p": f"{p:.2g}", "here": here}
