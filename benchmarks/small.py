"""Small data, which everybody tries first: dualgap beside scikit-learn.

    python benchmarks/small.py [DATA ...] [--C 0.1 1 10 100] [--output FOLDER] [--show]

Both fit the same arrays at their default parameters but C and the loss, on one thread.
dualgap proves a relative gap of 1e-3; scikit-learn stops at its default tolerance or
number of iterations, and `dualgap.certify` proves the gap of its model. Each pair of
calls runs in turn, after one of each that is not timed. The figures are ratios of
processor time, scikit-learn / dualgap: median, least and largest. Above 1 dualgap is
faster. Predictions are timed on the training rows, as an array and as a CSR matrix. The
calls of Python functions in one fit are counted by cProfile. Searches fit 12 candidates
on 5 folds and then the best one. All rows go to small-fits.csv and
small-searches.csv of FOLDER; `--show` prints the summary of docs/tables again.
"""

from __future__ import annotations

import argparse
import cProfile
import csv
import os
import pstats
import statistics
import time
import warnings
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import sklearn.svm
from scipy import sparse
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler

import dualgap
import dualgap.model_selection

warnings.simplefilter("ignore", ConvergenceWarning)

CLASSES = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "digits": datasets.load_digits,
    "cancer": datasets.load_breast_cancer,
    "synthetic": lambda return_X_y: datasets.make_classification(
        10_000, 20, random_state=0
    ),
}
TARGETS = {"diabetes": datasets.load_diabetes}

# Name, class, parameters of both, and whether it is searched too.
CLASSIFIERS = [
    ("LinearSVC, squared hinge", "LinearSVC", {"loss": "squared_hinge"}, True),
    ("LinearSVC, hinge", "LinearSVC", {"loss": "hinge"}, True),
    ("SVC, rbf", "SVC", {}, True),
    ("SVC, poly", "SVC", {"kernel": "poly"}, False),
    ("SVC, linear", "SVC", {"kernel": "linear"}, False),
    ("OneClassSVM", "OneClassSVM", {}, False),
]
REGRESSIONS = [("LinearSVR", "LinearSVR", {}, True), ("SVR", "SVR", {}, True)]
#: Where the tables of the page are.
TABLES = Path(__file__).resolve().parents[1] / "docs" / "tables"
#: dualgap's default `tol`.
PROVED = 1e-3
SEARCHED = ("iris", "wine", "cancer", "diabetes")

FITS = ["data", "model", "C", "fit", "range", "predict", "predict, CSR", "fit, ms"]
FITS += ["gap proved", "gap of scikit-learn's", "calls, both"]
SEARCHES = ["data", "model", "scikit-learn's search", "dualgap's search"]
SEARCHES += ["cross_val_score", "dualgap's search, ms"]


def cases(names):
    """Yield name of the data, X, y, and the models for them."""
    for name, load in {**CLASSES, **TARGETS}.items():
        X, y = load(return_X_y=True)
        models = REGRESSIONS if name in TARGETS else CLASSIFIERS
        scaled = StandardScaler().fit_transform(X)
        for label, rows in ((name, X), (f"{name}, scaled", scaled)):
            if not names or name in names or label in names:
                yield label, np.ascontiguousarray(rows), y, models


def timed(call) -> float:
    """Return processor seconds of this thread, which makes all of both packages' work.

    Asking for the time of the process can take as long as a prediction.
    """
    begin = time.thread_time()
    call()
    return time.thread_time() - begin


def calls(call) -> int:
    """Return the number of Python calls, of built-in functions too."""
    profile = cProfile.Profile()
    profile.runcall(call)
    return pstats.Stats(profile).total_calls


def ratios(theirs, ours, options) -> tuple[list[float], float]:
    """Return ratios of paired calls, and dualgap's median seconds.

    Slow calls are repeated less often.
    """
    slowest = timed(theirs) + timed(ours)
    repeats = min(options.repeats, max(3, round(options.seconds / slowest)))
    pairs = [(timed(theirs), timed(ours)) for _ in range(repeats)]
    return [a / b for a, b in pairs], statistics.median(b for _, b in pairs)


def fitted(face: str, parameters: dict, X, y, options) -> list[str]:
    """Return the cells of one row of the table of fits from the ratio on."""
    theirs = getattr(sklearn.svm, face)(**parameters)
    ours = getattr(dualgap, face)(**parameters)
    slowest = max(timed(partial(model.fit, X, y)) for model in (theirs, ours))
    if slowest > options.limit:
        return [f"a fit took over {options.limit:g} s"]
    fit, seconds = ratios(partial(theirs.fit, X, y), partial(ours.fit, X, y), options)
    # A model trained on dense rows, whose kernel models would refuse sparse ones.
    predict = []
    for rows in (X, sparse.csr_matrix(X)):
        if rows is not X and face in ("SVC", "SVR", "OneClassSVM"):
            theirs.fit(rows, y)
            ours.fit(rows, y)
        both = partial(theirs.predict, rows), partial(ours.predict, rows)
        predict.append(statistics.median(ratios(*both, options)[0]))
    ours.fit(X, y)
    return [
        f"{statistics.median(fit):.2f}",
        f"{min(fit):.2f} to {max(fit):.2f}",
        *(f"{ratio:.2f}" for ratio in predict),
        f"{1000 * seconds:.2f}",
        f"{ours.certificate_.relative_gap:.1e}",
        f"{dualgap.certify(theirs.fit(X, y), X, y).relative_gap:.1e}",
        f"{calls(partial(theirs.fit, X, y))} / {calls(partial(ours.fit, X, y))}",
    ]


def searched(face: str, parameters: dict, X, y, options) -> list[str]:
    """Return the cells of one row of the table of searches from the ratios on."""
    theirs = getattr(sklearn.svm, face)(**parameters)
    ours = getattr(dualgap, face)(**parameters)
    grid: dict[str, list[float]] = {"C": np.logspace(-2, 2, 12).tolist()}
    if face.startswith("SV"):
        grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.001, 0.01, 0.1]}
    old = GridSearchCV(theirs, grid, cv=5)
    same = GridSearchCV(ours, grid, cv=5)
    new = dualgap.model_selection.GridSearchCV(ours, grid, cv=5)
    begun = partial(old.fit, X, y)
    with_theirs, _ = ratios(begun, partial(same.fit, X, y), options)
    with_ours, seconds = ratios(begun, partial(new.fit, X, y), options)
    scores = [partial(cross_val_score, model, X, y, cv=5) for model in (theirs, ours)]
    cells = [with_theirs, with_ours, ratios(*scores, options)[0]]
    medians = [f"{statistics.median(cell):.2f}" for cell in cells]
    return [*medians, f"{1000 * seconds:.1f}"]


def table(head: list[str], rows: list[dict[str, str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row.values()) + " |" for row in rows]
    return "\n".join(lines)


def summary(rows: list[dict[str, str]], head: str) -> list[str]:
    """Return in how many rows dualgap takes no longer, the median, and the range."""
    values = [float(row[head]) for row in rows]
    won = sum(value >= 1.0 for value in values)
    span = f"{min(values):.2f} to {max(values):.2f}"
    return [f"{won} of {len(values)}", f"{statistics.median(values):.2f}", span]


def read(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Return the rows of both files."""
    found = {}
    for kind in ("fits", "searches"):
        with (folder / f"small-{kind}.csv").open(encoding="utf-8") as file:
            found[kind] = list(csv.DictReader(file))
    return found


def write(found: dict[str, list[dict[str, str]]], folder: Path) -> None:
    """Write the rows of both files."""
    for kind, head in (("fits", FITS), ("searches", SEARCHES)):
        path = folder / f"small-{kind}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, head, lineterminator="\n")
            table.writeheader()
            table.writerows(found[kind])


def show(found: dict[str, list[dict[str, str]]]) -> None:
    """Print the sums by model and by kind of call."""
    fits, searches = found["fits"], found["searches"]
    full = [row for row in fits if row.get("predict")]
    head, lines = ["", "cases won", "median", "least to largest"], []
    for model in dict.fromkeys(row["model"] for row in full):
        rows = [row for row in full if row["model"] == model]
        lines.append([f"fit, {model}", *summary(rows, "fit")])
    lines += [[kind, *summary(full, kind)] for kind in ("predict", "predict, CSR")]
    lines += [[kind, *summary(searches, kind)] for kind in SEARCHES[2:5]]
    print(table(head, [dict(zip(head, line, strict=True)) for line in lines]))
    print(f"\nfits in all: {summary(full, 'fit')[0]}")
    above = sum(float(row[FITS[9]]) > PROVED for row in full)
    print(f"gap of scikit-learn's model above {PROVED:g}: {above} of {len(full)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*")
    parser.add_argument("--C", type=float, nargs="+", default=[0.1, 1.0, 10.0, 100.0])
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.4, help="for one case")
    parser.add_argument("--limit", type=float, default=1.0, help="longest fit, seconds")
    parser.add_argument("--output", type=Path, help="folder for the tables")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if options.show:
        show(read(TABLES))
        return

    found: dict[str, list[dict[str, str]]] = {"fits": [], "searches": []}

    def note(kind: str, head: list[str], row: list[str]) -> None:
        found[kind].append(dict(zip(head, row, strict=False)))
        print(" | ".join(row), flush=True)
        if options.output:
            write(found, options.output)

    for label, X, y, models in cases(options.data):
        for title, face, parameters, searches in models:
            for C in [None] if face == "OneClassSVM" else options.C:
                given = parameters if C is None else {**parameters, "C": C}
                cells = fitted(face, given, X, y, options)
                note("fits", FITS, [label, title, f"{C:g}" if C else "", *cells])
            if searches and label.startswith(SEARCHED):
                cells = searched(face, parameters, X, y, options)
                note("searches", SEARCHES, [label, title, *cells])
    show(found)


if __name__ == "__main__":
    main()
