"""Certified choice of C: brute force on small problems, and a table of real sets.

    python benchmarks/answers/selection.py [--problems N] [--sets NAME ...]
        [--seconds S] [--accuracies A ...]

First it checks N drawn problems (default 3,000; sizes, losses, folds and intervals of C
vary): the error of the optimum at 5 values of C inside the interval, fitted to a gap of
1e-12, never leaves its bounds. Then it prints, for 5 folds and C from 1e-3 to 10, how
many values of C and processor seconds each accuracy took, or what was proved when S
seconds (default 200) were over.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_svmlight_file
from sklearn.preprocessing import scale

from dualgap import LinearSVC, LinearSVCCV

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from datasets import load, unpack


def exact(X: Any, y: Any, folds: Any, C: float, **options: Any) -> tuple[float, float]:
    """Bounds on the mean error of the optimum at C, from fits with tiny gaps."""
    least, most = [], []
    for train, test in folds:
        model = LinearSVC(C=C, tol=1e-12, random_state=0, **options)
        model.fit(X[train], y[train])
        margin = np.where(y[test] > 0, 1, -1) * model.decision_function(X[test])
        room = np.sqrt(2 * model.certificate_.gap * ((X[test] ** 2).sum(axis=1) + 1))
        least.append(np.mean(margin < -room - 1e-12))
        most.append(np.mean(margin <= room + 1e-12))
    return float(np.mean(least)), float(np.mean(most))


def brute_force(problems: int) -> None:
    """Check bounds on the errors of drawn problems."""
    checks = violations = unproved = 0
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(12, 30)), int(rng.integers(1, 6))
        y = np.arange(n) % 2
        X = rng.standard_normal((n, d)) + y[:, None] * rng.standard_normal(d)
        if seed % 3 == 0:  # ties and repeated rows
            X = np.round(X)
        order = rng.permutation(n)
        folds = [(np.setdiff1d(order, k), k) for k in np.array_split(order, 2)]
        if any(len(np.unique(y[train])) < 2 for train, _ in folds):
            continue
        options = {
            "loss": ("hinge", "squared_hinge")[seed % 2],
            "fit_intercept": bool(seed // 2 % 2),
        }
        low = 10 ** rng.uniform(-2, 0.5)
        high = low * 10 ** rng.uniform(0.2, 1)
        search = LinearSVCCV(
            (low, high), cv=folds, certify="error", accuracy=0.15, random_state=0,
            refit=False, **options,
        ).fit(X, y)  # fmt: skip
        unproved += search.accuracy_ > 0.15 + 1e-12
        edges, lower, upper = search.error_bounds_
        for C in np.exp(rng.uniform(np.log(low), np.log(high), 5)):
            k = min(np.searchsorted(edges, C, side="right"), len(lower)) - 1
            least, most = exact(X, y, folds, C, **options)
            checks += 1
            violations += lower[k] > most + 1e-12 or least > upper[k] + 1e-12
    print(
        f"{problems:,} problems, {checks:,} checks, {violations} violations; accuracy "
        f"not proved in {unproved}"
    )


def real(name: str) -> tuple[Any, Any]:
    """Return a data set as rows and labels."""
    if name == "cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return scale(X), y
    if name == "splice":
        X, y = load_svmlight_file(unpack("splice/splice.scaled"))
        return X, y
    if name == "letter":  # A to M against N to Z
        X, y = load_svmlight_file(unpack("letter/letter.scale"))
        return X, y <= 13
    return load(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=3000)
    parser.add_argument(
        "--sets", nargs="*", default=["cancer", "splice", "ijcnn1", "letter", "a9a"]
    )
    parser.add_argument(
        "--accuracies", nargs="*", type=float, default=[0.05, 0.02, 0.01]
    )
    parser.add_argument("--seconds", type=float, default=200.0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.problems:
        brute_force(given.problems)
    print("| data | accuracy | values of C | seconds | C | error | proved within |")
    print("|---|---|---|---|---|---|---|")
    for name in given.sets:
        X, y = real(name)
        for accuracy in given.accuracies:
            begun = time.process_time()
            search = LinearSVCCV(
                (1e-3, 10.0), certify="error", accuracy=accuracy, random_state=0,
                time_limit=given.seconds, refit=False,
            ).fit(X, y)  # fmt: skip
            print(
                f"| {name} | {accuracy:.0%} | {len(search.Cs_)} "
                f"| {time.process_time() - begun:.1f} | {search.C_:.3g} "
                f"| {1 - search.best_score_:.2%} | {search.accuracy_:.2%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
