"""Paths of C beside fits from nothing, and cross-validation beside GridSearchCV.

    python benchmarks/path.py [paths] [searches] [NAME ...]

Prints ratios of processor time, one thread; every model of dualgap is certified to
1e-3. scikit-learn's LinearSVC runs with its default tolerance and 10,000 iterations at
most; its largest gap is what :func:`dualgap.certify` proves about its models on all
rows.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import sklearn.svm
from datasets import NAMES
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from dualgap import LinearSVC, LinearSVCCV, certify, svm_path

GRID = np.logspace(-3, 1, 9)
FOLDS = StratifiedKFold(5)


def timed(work):
    begun = time.process_time()
    found = work()
    return time.process_time() - begun, found


def paths(name: str, loss: str, solver: str) -> None:
    X, y = load(name)
    options = {"loss": loss, "solver": solver, "random_state": 0}
    ours, path = timed(lambda: svm_path(X, y, GRID, **options))
    cold, models = timed(lambda: [LinearSVC(C=C, **options).fit(X, y) for C in GRID])
    # scikit-learn's default for the squared hinge, dual="auto", may be the primal.
    theirs, rivals = timed(
        lambda: [
            sklearn.svm.LinearSVC(
                C=C, loss=loss, dual=loss == "hinge" or "auto", max_iter=10_000,
                random_state=0,
            ).fit(X, y)
            for C in GRID
        ]
    )  # fmt: skip
    gap = max(certify(model, X, y).relative_gap for model in rivals)
    passes = [
        sum(c.epochs for c in path.certificates),
        sum(model.certificate_.epochs for model in models),
    ]
    print(
        f"| {name} | {loss} | {solver} | {path.relative_gaps.max():.1e} | "
        f"{cold / ours:.1f} | {passes[1] / passes[0]:.1f} | "
        f"{theirs / ours:.1f} | {gap:.1e} |",
        flush=True,
    )


def searches(name: str, loss: str) -> None:
    X, y = load(name)
    ours, found = timed(
        lambda: LinearSVCCV(GRID, cv=FOLDS, loss=loss, random_state=0).fit(X, y)
    )

    def search(model):
        return GridSearchCV(model, {"C": GRID}, cv=FOLDS).fit(X, y)

    cold, _ = timed(lambda: search(LinearSVC(loss=loss, random_state=0)))
    dual = loss == "hinge" or "auto"
    rival = sklearn.svm.LinearSVC(loss=loss, dual=dual, max_iter=10_000, random_state=0)
    theirs, their_best = timed(lambda: search(rival))
    print(
        f"| {name} | {loss} | {cold / ours:.1f} | {theirs / ours:.1f} | "
        f"{100 * found.best_score_:.2f} | {100 * their_best.best_score_:.2f} |",
        flush=True,
    )


def load(name: str):
    X, y = NAMES[name]()
    if hasattr(X, "indices"):  # scikit-learn's LinearSVC refuses 64-bit indices
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    only = {"paths", "searches"} & set(sys.argv[1:]) or {"paths", "searches"}
    names = [name for name in sys.argv[1:] if name not in only] or [
        "a9a",
        "w8a",
        "imdb",
    ]
    print("| data | loss | solver | largest gap of the path | cold fits | "
          "their passes | scikit-learn | its largest gap |\n|"
          + "---|" * 8)  # fmt: skip
    for name in names if "paths" in only else ():
        for loss in ("hinge", "squared_hinge"):
            for solver in ("auto", "dcd"):
                paths(name, loss, solver)
    print("\n| data | loss | GridSearchCV over dualgap | over scikit-learn's | "
          "best score, % | scikit-learn's |\n|" + "---|" * 6)  # fmt: skip
    for name in names if "searches" in only else ():
        for loss in ("hinge", "squared_hinge"):
            searches(name, loss)
