"""The rank tests of Nanculef et al. 2014 and Demsar 2006: p values, exact where named.

As the paper describes them: Wilcoxon's signed ranks with Pratt's treatment of zeros and
the exact distribution, and Friedman's test with the correction of Iman and Davenport.
SciPy's exact distribution of signed ranks allows neither ties nor zeros.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

METHODS = ("CVM", "FW", "MFW", "SWAP", "SWAP-2o")
# The paper's comparisons: method, baseline, alternative, the paper's result.
TIME_TESTS = (
    ("SWAP", "CVM", "less", "shown"),
    ("SWAP", "FW", "less", "shown"),
    ("SWAP", "MFW", "less", "shown"),
    ("FW", "MFW", "two-sided", "not shown"),
    ("SWAP-2o", "CVM", "less", "shown"),
    ("SWAP-2o", "FW", "less", "shown"),
    ("SWAP-2o", "MFW", "two-sided", "not shown"),
    ("SWAP-2o", "SWAP", "two-sided", "not shown"),
)
ACCURACY_TESTS = (
    ("SWAP", "CVM", "two-sided", "not shown"),
    ("SWAP", "FW", "two-sided", "not shown"),
    ("SWAP", "MFW", "two-sided", "not shown"),
    ("SWAP-2o", "FW", "greater", "shown"),
    ("SWAP-2o", "MFW", "greater", "shown"),
    ("SWAP-2o", "SWAP", "greater", "shown"),
)
FEWEST = 5  # sets: with fewer no exact p of one tail is below 0.05
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


def compare(values: dict, method: str, baseline: str, alternative: str):
    """Return the number of sets with both values and p; None for too few sets."""
    both = np.isfinite(values[method]) & np.isfinite(values[baseline])
    if both.sum() < FEWEST:
        return int(both.sum()), None
    return int(both.sum()), wilcoxon(values[method][both], values[baseline][both],
                                     alternative)  # fmt: skip


def differ(values: dict, methods):
    """Return the number of sets with all values and p of Friedman's test."""
    matrix = np.array([values[m] for m in methods])
    whole = np.isfinite(matrix).all(axis=0)
    if whole.sum() < FEWEST:
        return int(whole.sum()), None
    return int(whole.sum()), friedman(matrix[:, whole])


def rank_rows(time: dict, accuracy: dict) -> list[list[str]]:
    """Return the rows of the table of the paper's tests."""
    lines = []

    def add(of, comparison, test, sets, p, yes, paper="", alone=""):
        said = "too few sets" if p is None else yes if p < 0.05 else "not shown"
        p = "–" if p is None else f"{p:.2g}"
        lines.append([of, comparison, test, sets, p, said, paper, alone])

    four = [m for m in METHODS if m != "FW"]
    for of, values, tests in (
        ("time", time, TIME_TESTS), ("accuracy", accuracy, ACCURACY_TESTS),
    ):  # fmt: skip
        add(of, "the five differ", "Friedman", *differ(values, METHODS), "shown")
        add(of, "all but FW differ", "Friedman", *differ(values, four), "shown")
        more, less = {
            "time": ("slower", "faster"),
            "accuracy": ("more accurate", "less accurate"),
        }[of]
        for method, baseline, alternative, paper in tests:
            sets, p = compare(values, method, baseline, alternative)
            claim = {
                "less": f"{method} is {less} than {baseline}",
                "greater": f"{method} is {more} than {baseline}",
                "two-sided": f"{method} and {baseline} differ",
            }[alternative]
            yes, faster = "shown", method
            if alternative == "two-sided" and p is not None:
                low = compare(values, method, baseline, "less")[1] < 0.5
                yes = f"{method} is {less if low else more}"
                faster = method if low else baseline
            # Sets that only one of them ended on are not in the test.
            ended = {m: np.isfinite(values[m]) for m in (method, baseline)}
            alone = {
                method: int((ended[baseline] & ~ended[method]).sum()),
                baseline: int((ended[method] & ~ended[baseline]).sum()),
            }
            if of == "time" and alone[faster]:
                yes += " where both ended"
            stopped = ", ".join(f"{m} {count}" for m, count in alone.items() if count)
            side = "two tails" if alternative == "two-sided" else "one tail"
            add(of, claim, f"Wilcoxon, {side}", sets, p, yes, paper, stopped)
    if "auto" in time:
        found = compare(time, "auto", "SWAP-2o", "less")
        add(
            "time", "auto is faster than SWAP-2o", "Wilcoxon, one tail", *found, "shown"
        )
    return lines
