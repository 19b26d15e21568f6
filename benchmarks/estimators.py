"""Measure the estimators beside scikit-learn's: the figures that their pages lead with.

    python benchmarks/estimators.py [CASE ...] [--repeats 3] [--loosest 10]

SVR and OneClassSVM, Crammer and Singer's problem and RBF kernels on sparse text (fit
and prediction), on one thread. Both packages train on the same arrays to within 0.1 %
of the optimum. The objective of either model is computed in float64, from its dual
variables or weights, by code that took no part in the fit. scikit-learn runs at the
loosest `tol` that gets there, found by trying; dualgap runs at tol=1e-3. The two then
run in turn. estimators.json gets the median and the range of the processor seconds and
of the ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.svm
from datasets import texts_of
from harness import stamp, timed
from regression import CASES as REGRESSIONS
from regression import Case
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

import dualgap

ACCURACY = 1e-3
TOLS = [10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6]


@cache
def news() -> tuple[Any, Any, Any]:
    """Return the comp.* groups of 20 newsgroups as tf-idf: rows, groups, new rows."""
    texts, labels = texts_of("20news/train.tsv")
    chosen = [k for k, label in enumerate(labels) if label.startswith("comp.")]
    words = TfidfVectorizer(sublinear_tf=True)
    X = words.fit_transform([texts[k] for k in chosen])
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    new, groups = texts_of("20news/test.tsv")
    new = [t for t, g in zip(new, groups, strict=True) if g.startswith("comp.")]
    return X, np.array(labels)[chosen], words.transform(new)


def certified(X: Any, y: Any) -> Callable[[Any], float]:
    """Return the objective that `certify` computes from a model's coefficients."""

    def objective(model: Any) -> float:
        found = dualgap.certify(model, X, y, tol=1e9, n_jobs=1)  # no fit
        return float(found.primal)

    return objective


def news_rbf() -> Case:
    X, y, _ = news()
    return Case(
        X,
        y,
        lambda tol: sklearn.svm.SVC(C=10.0, tol=tol),
        lambda tol: dualgap.SVC(C=10.0, tol=tol),
        certified(X, y),
    )


def crammer_singer(C: float) -> Case:
    """Return Crammer and Singer's problem, whose objective is written out."""
    X, y, _ = news()
    codes = np.unique(y, return_inverse=True)[1]
    rows = np.arange(len(y))

    def objective(model: Any) -> float:
        scores = X @ model.coef_.T
        own = scores[rows, codes]
        scores += 1.0
        scores[rows, codes] -= 1.0
        loss = np.maximum(scores.max(axis=1) - own, 0.0).sum()
        return float(0.5 * (model.coef_**2).sum() + C * loss)

    same = {"C": C, "loss": "hinge", "multi_class": "crammer_singer"}
    same |= {"fit_intercept": False}
    return Case(
        X,
        y,
        lambda tol: sklearn.svm.LinearSVC(
            **same, tol=tol, max_iter=100_000, random_state=0
        ),
        lambda tol: dualgap.LinearSVC(**same, tol=tol, random_state=0),
        objective,
    )


CASES: dict[str, Callable[[], Case]] = {
    **{
        name: REGRESSIONS[name]
        for name in (
            "SVR, friedman1 4000, C = 1",
            "OneClassSVM, digits, nu = 0.1",
            "OneClassSVM, digits, nu = 0.5",
            "OneClassSVM, friedman1 8000, nu = 0.1",
        )
    },
    "Crammer-Singer, 5 newsgroups, C = 1": lambda: crammer_singer(1.0),
    "SVC, 5 newsgroups, C = 10": news_rbf,
}


def paired(theirs: list[float], ours: list[float]) -> dict[str, Any]:
    """Return medians and ranges of the seconds and of the ratios."""
    ratios = [a / b for a, b in zip(theirs, ours, strict=True)]
    return {
        "sklearn": statistics.median(theirs),
        "sklearn_range": [min(theirs), max(theirs)],
        "dualgap": statistics.median(ours),
        "dualgap_range": [min(ours), max(ours)],
        "ratio": statistics.median(ratios),
        "ratio_range": [min(ratios), max(ratios)],
    }


def measure(name: str, repeats: int, loosest: float) -> dict[str, Any]:
    """Return the results of one case."""
    case = CASES[name]()
    best = case.objective(case.ours(1e-5).fit(case.X, case.y))
    target = best + ACCURACY * abs(best)
    for tol in (t for t in TOLS if t <= loosest):
        spent, model = timed(case.theirs(tol).fit, case.X, case.y)
        primal = case.objective(model)
        print(
            f"{name}: tol {tol:g}, {spent:.3f} s, {primal / best - 1:.1e}", flush=True
        )
        if primal <= target:
            break
    theirs, ours, old, new = [], [], [], []
    for _ in range(repeats):
        spent, model = timed(case.theirs(tol).fit, case.X, case.y)
        theirs.append(spent)
        spent, own = timed(case.ours(ACCURACY).fit, case.X, case.y)
        ours.append(spent)
        assert case.objective(own) <= target
    found = {"rows": case.X.shape[0], "tol": tol, "fit": paired(theirs, ours)}
    if name.startswith("SVC"):
        *_, rows = news()
        for _ in range(repeats):
            spent, labels = timed(model.predict, rows)
            old.append(spent)
            spent, others = timed(own.predict, rows)
            new.append(spent)
        found["predict"] = paired(old, new) | {"rows": rows.shape[0]}
        found["predict"]["agree"] = float((labels == others).mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--repeats", type=int, default=3)
    text = "start the search for scikit-learn's tol here (default: 10)"
    parser.add_argument("--loosest", type=float, default=TOLS[0], help=text)
    out = Path(__file__).with_suffix(".json")
    parser.add_argument("--out", type=Path, default=out)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    old = json.loads(args.out.read_text("utf-8")) if args.out.exists() else {}
    cases = old.get("cases", {})
    for name in args.cases:
        cases[name] = measure(name, args.repeats, args.loosest)
        print(name, json.dumps(cases[name]), flush=True)
        machine = {k: v for k, v in stamp().items() if k != "stage"}
        report = {
            "machine": machine | {"threads": 1},
            "versions": {
                "scikit-learn": sklearn.__version__,
                "dualgap": dualgap.__version__,
            },
            "accuracy": ACCURACY,
            "cases": {key: cases[key] for key in CASES if key in cases},
        }
        args.out.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
