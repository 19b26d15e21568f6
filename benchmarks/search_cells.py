"""Searches of dualgap.model_selection beside a plain loop over the same estimator.

    python benchmarks/search_cells.py [--pairs N]

Processor seconds of both on one thread, each search in a process of its own: the median
of the ratios of N pairs of runs, in turn, with the least and the largest, of rbf and of
linear SVMs on rows of 2, 10 and 26 classes, scaled within the folds ("inside") or once
before. Five values of C, three of gamma, five folds. Writes
docs/tables/search-cells.csv. Randomised and halving searches are such loops.
"""

from __future__ import annotations

import argparse
import statistics
from itertools import product
from typing import Any

import numpy as np
import sklearn.model_selection
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from tuning import TABLES, alone, load, table, timed

import dualgap.model_selection
from dualgap import SVC, LinearSVC

OWN, LOOP = dualgap.model_selection.GridSearchCV, sklearn.model_selection.GridSearchCV
#: Names of data in kernel/bench.py, by their number of classes.
NAMES = {10: "pendigits-10", 26: "letter-26"}
HEADS = "classes | model | scaler | seconds | of the loop | least | largest"


def data(classes: int) -> tuple[Any, Any]:
    """Return scaled rows and their labels."""
    if classes == 2:
        X, y = make_classification(
            2000, 20, n_informative=10, flip_y=0.05, random_state=0
        )
        return scale(X), y
    X, y, _ = load(NAMES[classes])
    rows = np.random.default_rng(0).permutation(len(y))[:3000]
    return scale(X[rows]), y[rows]


def seconds(search: Any, X: Any, y: Any) -> float:
    """Processor seconds of a search, after a small fit that imports."""
    search.estimator.fit(X[:200], y[:200])
    return timed(search, X, y)[0]


def cell(classes: int, kind: str, scaler: str, pairs: int) -> list[str]:
    """Return a line of the table."""
    X, y = data(classes)
    model: Any = LinearSVC(random_state=0) if kind == "linear" else SVC(random_state=0)
    grid = {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}
    if kind == "rbf":
        grid["gamma"] = [0.1 / X.shape[1], 0.3 / X.shape[1], 1.0 / X.shape[1]]
    if scaler == "inside":
        grid = {f"{type(model).__name__.lower()}__{k}": v for k, v in grid.items()}
        model = make_pipeline(StandardScaler(), model)
    own, loop = (face(model, grid, cv=5, refit=False) for face in (OWN, LOOP))
    found = []
    for turn in range(pairs):
        both = [own, loop][:: 1 - 2 * (turn % 2)]
        times = [alone(seconds, search, X, y) for search in both][:: 1 - 2 * (turn % 2)]
        found.append(times)
    ratios = sorted(a / b for a, b in found)
    middle = statistics.median(ratios), ratios[0], ratios[-1]
    first = f"{statistics.median(a for a, _ in found):.3g}"
    return [str(classes), kind, scaler, first, *[f"{ratio:.2f}" for ratio in middle]]


def main() -> None:
    """Measure all cells, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=3)
    given, lines = parser.parse_args(), []
    for case in product((2, 10, 26), ("linear", "rbf"), ("before", "inside")):
        lines.append(cell(*case, given.pairs))
        print(*lines[-1], flush=True)
    (TABLES / "search-cells.csv").write_text(table(HEADS, lines), "utf-8")


if __name__ == "__main__":
    main()
