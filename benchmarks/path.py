"""Paths of C beside fits from nothing, and cross-validation beside GridSearchCV.

    python benchmarks/path.py [paths] [searches] [NAME ...]
    python benchmarks/path.py --page

Measures ratios of processor time, one thread; every model of dualgap is certified to
1e-3. scikit-learn's LinearSVC runs with its default tolerance and 10,000 iterations at
most; its largest gap is what :func:`dualgap.certify` proves about its models on all
rows. path.json keeps the last result of each case. The run, or --page alone, writes
docs/tables/path-*.csv and the figures of docs/tuning.md from it.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

import numpy as np
import sklearn.svm
from datasets import NAMES
from harness import keep, kept, timed
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from dualgap import LinearSVC, LinearSVCCV, certify
from dualgap.model_selection import svm_path

RESULTS = Path(__file__).with_suffix(".json")
DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "tuning.md"
PATHS = [
    ("a9a", "hinge", "auto"),
    ("a9a", "hinge", "dcd"),
    ("a9a", "squared_hinge", "auto"),
    ("a9a", "squared_hinge", "dcd"),
    ("w8a", "hinge", "auto"),
    ("w8a", "hinge", "dcd"),
    ("w8a", "squared_hinge", "auto"),
    ("imdb", "hinge", "auto"),
    ("imdb", "squared_hinge", "auto"),
]
SEARCHES = [(name, loss) for name, loss, solver in PATHS[:7] if solver == "auto"]
GRID = np.logspace(-3, 1, 9)
FOLDS = StratifiedKFold(5)


def of_path(name: str, loss: str, solver: str) -> dict[str, float]:
    """Return the ratios of a path, and the largest gaps."""
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
    return {
        "time": cold / ours,
        "epochs": passes[1] / passes[0],
        "rival": theirs / ours,
        "gap": float(path.relative_gaps.max()),
        "rival_gap": gap,
    }


def of_search(name: str, loss: str) -> dict[str, float]:
    """Return the ratios of a search, and the best scores in percent."""
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
    return {
        "time": cold / ours,
        "rival": theirs / ours,
        "score": 100 * found.best_score_,
        "rival_score": 100 * their_best.best_score_,
    }


def load(name: str):
    X, y = NAMES[name]()
    if hasattr(X, "indices"):  # scikit-learn's LinearSVC refuses 64-bit indices
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def tables() -> dict[str, str]:
    """Return the tables of searches and of paths as CSV."""
    cases = kept(RESULTS)["cases"]
    lines = [
        'data,loss,"GridSearchCV, dualgap","GridSearchCV, scikit-learn",'
        '"best score, %","scikit-learn\'s score, %"'
    ]
    for case in SEARCHES:
        of = cases[", ".join(case)]
        words = [f"{of[k]:.1f}" for k in ("time", "rival")]
        words += [f"{of[k]:.2f}" for k in ("score", "rival_score")]
        lines.append(",".join([*case, *words]))
    more = [
        'data,loss,solver,"cold fits, time","cold fits, epochs","scikit-learn, time",'
        "largest gap,largest gap of scikit-learn"
    ]
    for path in PATHS:
        of = cases[", ".join(path)]
        words = [f"{of[k]:.1f}" for k in ("time", "epochs", "rival")]
        words += [f"{of[k]:.1e}" for k in ("gap", "rival_gap")]
        more.append(",".join([*path, *words]))
    return {
        "path-searches": "\n".join(lines) + "\n",
        "path-fits": "\n".join(more) + "\n",
    }


def page(text: str) -> str:
    """Return the page with the range of every figure in its text."""
    cases = kept(RESULTS)["cases"]
    said = {
        solver: [cases[", ".join(p)]["time"] for p in PATHS if p[2] == solver]
        for solver in ("auto", "dcd")
    }
    for solver, ratios in said.items():
        text = re.sub(
            rf"(`{solver}`[^`]*?take )[\d.]+ to [\d.]+ times",
            rf"\g<1>{min(ratios):.1f} to {max(ratios):.1f} times",
            text,
        )
    searches = [cases[", ".join(case)] for case in SEARCHES]
    fastest, slowest = (f(c["rival"] for c in searches) for f in (max, min))
    return re.sub(
        r"(values of C it is )[\d.]+ to [\d.]+ times",
        rf"\g<1>{slowest:.1f} to {fastest:.1f} times",
        text,
    )


def main() -> None:
    """Measure cases, and write the page."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    given = set(sys.argv[1:])
    kinds = {"paths", "searches"} & given or {"paths", "searches"}
    names = given - kinds - {"--page"} or {"a9a", "w8a", "imdb"}
    for case in PATHS if "paths" in kinds and "--page" not in given else ():
        if case[0] in names:
            keep(RESULTS, ", ".join(case), of_path(*case))
    for case in SEARCHES if "searches" in kinds and "--page" not in given else ():
        if case[0] in names:
            keep(RESULTS, ", ".join(case), of_search(*case))
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    for name, text in tables().items():
        (DOCS / "tables" / f"{name}.csv").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
