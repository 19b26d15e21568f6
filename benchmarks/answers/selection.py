"""Certified choice of C: brute force on small problems, and a table of real sets.

    python benchmarks/answers/selection.py [--problems N] [--sets NAME ...]
        [--seconds S] [--accuracies A ...]

First it checks N drawn problems (default 3,000; sizes, losses, kinds of bias, classes,
kernels, folds and intervals of C vary): the error of the optimum at 5 values of C
inside the interval, fitted to a gap of 1e-12, never leaves its bounds. Then it prints,
for 5 folds and C from 1e-3 to 10, how many values of C and processor seconds each
accuracy took, or what was proved when S seconds (default 200) were over; and the same
for RBF kernels with C from 0.01 to 100, over the first 2,000 rows of larger sets.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_svmlight_file
from sklearn.preprocessing import scale

from dualgap import SVC, SVCCV, LinearSVC, LinearSVCCV

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from datasets import load, unpack

#: Parameters of linear and of kernel classifiers.
KINDS: list[dict[str, Any]] = [
    {},
    {"fit_intercept": False},
    {"penalize_intercept": False},
    {"multi_class": "ovo"},
    {"multi_class": "ovo", "penalize_intercept": False},
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
    {"kernel": "rbf", "gamma": 0.5, "break_ties": True},
]


def exact(model: Any, X: Any, y: Any, folds: Any) -> tuple[float, float]:
    """Bounds on the mean error of the optimum, from fits with tiny gaps."""
    least, most = [], []
    for train, test in folds:
        model.fit(X[train], y[train]).bound_optimum(X[train], y[train])
        certain = model.certified_labels(X[test])
        wrong = model.predict(X[test]) != y[test]
        least.append(np.mean(certain & wrong))
        most.append(np.mean(wrong | ~certain))
    return float(np.mean(least)), float(np.mean(most))


def brute_force(problems: int) -> None:
    """Check bounds on the errors of drawn problems."""
    checks, violations, unproved = (dict.fromkeys(range(len(KINDS)), 0) for _ in "123")
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        kind = seed % len(KINDS)
        n, d, classes = (
            int(rng.integers(*ends)) for ends in ((12, 30), (1, 6), (2, 4))
        )
        y = np.arange(n) % classes
        X = rng.standard_normal((n, d)) + y[:, None] * rng.standard_normal(d)
        if seed % 3 == 0:  # ties and repeated rows
            X = np.round(X)
        order = rng.permutation(n)
        folds = [(np.setdiff1d(order, k), k) for k in np.array_split(order, 2)]
        if any(len(np.unique(y[train])) < classes for train, _ in folds):
            continue
        options = {"loss": ("hinge", "squared_hinge")[seed // 8 % 2], "random_state": 0}
        options |= KINDS[kind]
        plain: Any = LinearSVC
        search: Any = LinearSVCCV
        if "kernel" in options:
            plain = partial(SVC, gamma=options.pop("gamma"))
            search = partial(SVCCV, gammas=plain.keywords["gamma"])
        low = 10 ** rng.uniform(-2, 0.5)
        high = low * 10 ** rng.uniform(0.2, 1)
        search = search(
            (low, high),
            cv=folds,
            certify="error",
            accuracy=0.15,
            refit=False,
            **options,
        ).fit(X, y)
        unproved[kind] += search.accuracy_ > 0.15 + 1e-12
        edges, lower, upper = search.error_bounds_
        for C in np.exp(rng.uniform(np.log(low), np.log(high), 5)):
            k = min(np.searchsorted(edges, C, side="right"), len(lower)) - 1
            least, most = exact(plain(C=C, tol=1e-12, **options), X, y, folds)
            checks[kind] += 1
            violations[kind] += lower[k] > most + 1e-12 or least > upper[k] + 1e-12
    for kind, options in enumerate(KINDS):
        print(
            f"{options}: {checks[kind]:,} checks, {violations[kind]} violations; "
            f"accuracy not proved in {unproved[kind]}"
        )
    print(
        f"{problems:,} problems, {sum(checks.values()):,} checks, "
        f"{sum(violations.values())} violations; accuracy not proved in "
        f"{sum(unproved.values())}"
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
    for kernel in (False, True):
        print("with RBF kernels" if kernel else "linear")
        print("| data | accuracy | values of C | seconds | C | error | proved within |")
        print("|---|---|---|---|---|---|---|")
        for name in given.sets:
            for accuracy in given.accuracies:
                row(name, kernel, accuracy, given.seconds)


def row(name: str, kernel: bool, accuracy: float, seconds: float) -> None:
    """Print a row of the table."""
    X, y = real(name)
    options: dict[str, Any] = {
        "certify": "error", "accuracy": accuracy, "random_state": 0,
        "time_limit": seconds, "refit": False,
    }  # fmt: skip
    search: Any = LinearSVCCV((1e-3, 10.0), **options)
    if kernel:
        X, y = X[:2000], y[:2000]
        search = SVCCV((1e-2, 100.0), **options)
    begun = time.process_time()
    search.fit(X, y)
    print(
        f"| {name} | {accuracy:.0%} | {search.n_fits_ // 5} "
        f"| {time.process_time() - begun:.1f} | {search.C_:.3g} "
        f"| {1 - search.best_score_:.2%} | {search.accuracy_:.2%} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
