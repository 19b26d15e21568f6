"""Searches of SVCCV beside GridSearchCV over SVCs of dualgap and scikit-learn.

    python benchmarks/tuning.py [--rows N] [--values K] [--folds K] [NAME ...]

Prints ratios of processor time, one thread, and the largest difference of mean scores.
The names are pendigits and usps; the classes are odd and even digits. Every model of
dualgap is certified to 1e-3. scikit-learn has its default tolerance.
"""

from __future__ import annotations

import argparse
import io
import lzma
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import GridSearchCV

from dualgap import SVC, SVCCV


def load(name: str) -> tuple[Any, Any]:
    """Return the rows and digits of a set in the folder DUALGAP_DATA."""
    folder = Path(os.environ["DUALGAP_DATA"]) / name
    if name == "usps":
        with lzma.open(folder / "usps.npz.xz") as file:
            stored = np.load(io.BytesIO(file.read()))
        return stored["X_train"].reshape(7291, -1).astype(float), stored["y_train"]
    with lzma.open(folder / "pendigits.xz") as file:
        X, y = load_svmlight_file(io.BytesIO(file.read()))
    return X.toarray(), y


def timed(search: Any, X: Any, y: Any) -> tuple[float, Any]:
    begun = time.process_time()
    search.fit(X, y)
    return time.process_time() - begun, search.cv_results_["mean_test_score"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["pendigits", "usps"])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--values", type=int, default=20)
    parser.add_argument("--folds", type=int, default=5)
    given = parser.parse_args()
    print("| data | n | over dualgap.SVC | over sklearn SVC | scores differ by |")
    print("|---|---|---|---|---|")
    for name in given.names:
        X, y = load(name)
        rows = np.random.default_rng(0).permutation(len(y))[: given.rows]
        X, y = X[rows], y[rows].astype(int) % 2
        gamma, n = 1.0 / (X.shape[1] * X.var()), len(y)
        Cs = np.logspace(-2, 3, given.values)
        options = {"cv": given.folds, "refit": False}
        memory = max(200.0, 13e-6 * n * n)
        ours, scores = timed(
            SVCCV(Cs, gamma, random_state=0, cache_size=memory, **options), X, y
        )
        loop, plain = timed(
            GridSearchCV(
                SVC(gamma=gamma, random_state=0, cache_size=memory),
                {"C": Cs},
                **options,
            ),
            X,
            y,
        )
        theirs, _ = timed(
            GridSearchCV(
                sklearn.svm.SVC(gamma=gamma, cache_size=memory), {"C": Cs}, **options
            ),
            X,
            y,
        )
        print(
            f"| {name} | {n} | {loop / ours:.1f} | {theirs / ours:.1f} | "
            f"{np.abs(scores - plain).max():.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
