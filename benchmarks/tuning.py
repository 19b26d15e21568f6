"""Searches of SVCCV beside GridSearchCV over the SVCs of dualgap and scikit-learn.

    python benchmarks/tuning.py [NAME ...] [--rows N] [--values K] [--folds K]
        [--repeats R] [--rivals dualgap sklearn] [--limit S] [--linear]

Prints processor seconds of SVCCV on one thread, and the rivals' seconds over these: the
median and the range of R runs in turn. A rival that takes more than S processor seconds
is ended, and "over" tells the least ratio. "C" is whether SVCCV and scikit-learn choose
the same C, "scores" the largest difference of their mean scores, "gap" the largest
proven relative gap of SVCCV's models. With no rival run, these are "-".

The names are data sets of kernel/bench.py; odd classes are told from even ones, except
in sets that are named with their number of classes, such as usps-10. Every model of
dualgap is certified to 1e-3; scikit-learn has its default tolerance. With --linear,
dualgap.model_selection.GridSearchCV searches over LinearSVC(loss="hinge") instead.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

sys.path.insert(0, str(Path(__file__).resolve().parent / "kernel"))

from bench import load

import dualgap.model_selection
from dualgap import SVC, SVCCV, LinearSVC


def timed(search: Any, X: Any, y: Any) -> tuple[float, Any]:
    """Processor seconds of a search, and the search."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(X, y)
    return time.process_time() - begun, search


def limited(search: Any, X: Any, y: Any, limit: float) -> tuple[float, Any] | None:
    """Do the same in a process of its own; None if it takes more than the limit."""

    def work() -> None:
        used = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, [int(used + limit) + 1] * 2)
        seconds, fitted = timed(search, X, y)
        theirs.send((seconds, fitted.cv_results_["mean_test_score"]))

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=work)
    process.start()
    theirs.close()
    try:
        found: tuple[float, Any] = ours.recv()
    except EOFError:
        return None
    finally:
        process.join()
    return found


def searches(X: Any, gamma: float, given: Any) -> tuple[Any, dict[str, Any]]:
    """Return dualgap's search, and the rivals' by name."""
    n, folds = X.shape[0], {"cv": given.folds, "refit": False}
    if given.linear:
        grid = {"C": np.logspace(-3, 3, given.values)}
        own = LinearSVC(loss="hinge", random_state=0)
        peer = sklearn.svm.LinearSVC(loss="hinge", random_state=0)
        first = dualgap.model_selection.GridSearchCV(own, grid, **folds)
    else:
        grid = {"C": np.logspace(-3, 3, given.values)}
        common = {"cache_size": max(200.0, 13e-6 * n * n)}  # megabytes
        own = SVC(gamma=gamma, random_state=0, **common)
        peer = sklearn.svm.SVC(gamma=gamma, **common)
        first = SVCCV(grid["C"], gamma, random_state=0, **common, **folds)
    rivals = {"dualgap": own, "sklearn": peer}
    return first, {
        name: GridSearchCV(rivals[name], grid, **folds) for name in given.rivals
    }


def ratio(rival: list[float], ours: list[float], over: bool) -> str:
    """Median and range of the paired ratios."""
    if not rival:
        return "not measured"
    found = np.divide(rival, ours[: len(rival)])
    text = f"{np.median(found):.1f}"
    if over:
        return f"over {text}"
    return (
        text if len(found) == 1 else f"{text} ({found.min():.1f} to {found.max():.1f})"
    )


def row(name: str, given: Any) -> str:
    """Return the row of a data set."""
    X, y, gamma = load(name)
    rows = np.random.default_rng(0).permutation(len(y))[: given.rows]
    X, y = X[rows], y[rows].astype(int)
    if "-" not in name:
        y %= 2
    own, rivals = searches(X, gamma, given)
    seconds: dict[str, list[float]] = {key: [] for key in ("own", "dualgap", "sklearn")}
    over, differ, same = set(), "-", "-"
    for _ in range(given.repeats):
        took, search = timed(own, X, y)
        seconds["own"].append(took)
        score = search.cv_results_["mean_test_score"]
        for key, rival in rivals.items():
            found = None if key in over else limited(rival, X, y, given.limit)
            if found is None:
                over.add(key)
                seconds[key] = seconds[key] or [given.limit]
                continue
            seconds[key].append(found[0])
            if key == "sklearn":
                differ = f"{np.abs(found[1] - score).max():.4f}"
                same = "same" if found[1].argmax() == score.argmax() else "other"
    if given.linear:
        gap = search.relative_gaps_.max()
    else:
        parts = [f"split{k}_relative_gap" for k in range(given.folds)]
        gap = max(search.cv_results_[part].max() for part in parts)
    ratios = [
        ratio(seconds[key], seconds["own"], key in over)
        for key in ("dualgap", "sklearn")
    ]
    cells = [name, str(len(y)), f"{np.median(seconds['own']):.1f}", *ratios, same]
    return f"| {' | '.join([*cells, differ, f'{gap:.1e}'])} |"


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["pendigits", "usps", "covtype-20k", "a9a", "w8a", "pendigits-10"]
    parser.add_argument("names", nargs="*", default=names)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--values", type=int, default=50)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--rivals", nargs="*", default=["dualgap", "sklearn"])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--linear", action="store_true")
    given = parser.parse_args()
    print("| data | n | seconds | over dualgap | over sklearn | C | scores | gap |")
    print("|---|---|---|---|---|---|---|---|")
    for name in given.names:
        print(row(name, given), flush=True)


if __name__ == "__main__":
    main()
