"""Searches of SVCCV beside GridSearchCV over the SVCs of dualgap and scikit-learn.

    python benchmarks/tuning.py [NAME ...] [--rows N] [--values K] [--folds K]
        [--repeats R]

Prints ratios of processor time on one thread, the median and the range of R runs in
turn, and the largest difference of mean scores. The names are data sets of
kernel/bench.py; odd classes are told from even ones, except in sets that are named with
their number of classes, such as usps-10. Every model of dualgap is
certified to 1e-3. scikit-learn has its default tolerance.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.model_selection import GridSearchCV

sys.path.insert(0, str(Path(__file__).resolve().parent / "kernel"))

from bench import load

from dualgap import SVC, SVCCV


def timed(search: Any, X: Any, y: Any) -> tuple[float, Any]:
    """Processor seconds of a search, and its mean scores."""
    begun = time.process_time()
    search.fit(X, y)
    return time.process_time() - begun, search.cv_results_["mean_test_score"]


def ratio(rival: list[float], ours: list[float]) -> str:
    """Median and range of the paired ratios."""
    found = np.divide(rival, ours)
    return f"{np.median(found):.1f} ({found.min():.1f} to {found.max():.1f})"


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["pendigits", "usps", "pendigits-10"]
    parser.add_argument("names", nargs="*", default=names)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--values", type=int, default=20)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    Cs = np.logspace(-2, 3, given.values)
    print("| data | n | over dualgap.SVC | over sklearn SVC | scores differ by |")
    print("|---|---|---|---|---|")
    for name in given.names:
        X, y, gamma = load(name)
        rows = np.random.default_rng(0).permutation(len(y))[: given.rows]
        X, y, n = X[rows], y[rows].astype(int), len(rows)
        if "-" not in name:
            y %= 2
        common = {"cache_size": max(200.0, 13e-6 * n * n)}  # megabytes
        search = {"cv": given.folds, "refit": False}
        plain = SVC(gamma=gamma, random_state=0, **common)
        peer = sklearn.svm.SVC(gamma=gamma, **common)
        ways = [
            SVCCV(Cs, gamma, random_state=0, **common, **search),
            GridSearchCV(plain, {"C": Cs}, **search),
            GridSearchCV(peer, {"C": Cs}, **search),
        ]
        seconds: list[list[float]] = [[], [], []]
        for _ in range(given.repeats):
            scores = []
            for way, kept in zip(ways, seconds, strict=True):
                took, score = timed(way, X, y)
                kept.append(took)
                scores.append(score)
        ours, *rivals = seconds
        ratios = " | ".join(ratio(rival, ours) for rival in rivals)
        print(
            f"| {name} | {n} | {ratios} | {np.abs(scores[0] - scores[1]).max():.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
