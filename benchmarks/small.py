"""Small data, which everybody tries first: dualgap beside scikit-learn.

    python benchmarks/small.py [DATA ...] [--C 0.1 1 10 100] [--json FILE]

Both fit the same arrays at their default parameters but C and the loss, on one thread.
dualgap proves a relative gap of 1e-3; scikit-learn stops at its default tolerance. Each
pair of fits runs in turn, after one fit of each that is not timed. The figures are
ratios of processor time, scikit-learn / dualgap: median, least and largest. Above 1
dualgap is faster. `predict` is timed on the training rows. The calls of Python
functions in one fit are counted by cProfile.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import statistics
import time
import warnings
from functools import partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import sklearn.svm
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import dualgap

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

# Name, class, parameters of both, and parameters of scikit-learn's alone.
CLASSIFIERS = [
    ("LinearSVC, squared hinge", "LinearSVC", {"loss": "squared_hinge"}),
    ("LinearSVC, hinge", "LinearSVC", {"loss": "hinge"}),
    ("SVC, rbf", "SVC", {}),
    ("SVC, poly", "SVC", {"kernel": "poly"}),
    ("SVC, linear", "SVC", {"kernel": "linear"}),
    ("OneClassSVM", "OneClassSVM", {}),
]
REGRESSIONS = [("LinearSVR", "LinearSVR", {}), ("SVR", "SVR", {})]


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
    begin = time.process_time()
    call()
    return time.process_time() - begin


def calls(call) -> int:
    """Return the number of Python calls, of built-in functions too."""
    profile = cProfile.Profile()
    profile.runcall(call)
    return pstats.Stats(profile).total_calls


def ratios(theirs, ours, method: str, data: tuple, repeats: int):
    """Return ratios of paired calls of a method, and dualgap's median seconds."""
    both = [partial(getattr(model, method), *data) for model in (theirs, ours)]
    pairs = [tuple(map(timed, both)) for _ in range(repeats)]
    return [a / b for a, b in pairs], statistics.median(b for _, b in pairs)


def measured(face: str, parameters: dict, X, y, options) -> list[str]:
    """Return the cells of one row of the table from the ratio on."""
    theirs = getattr(sklearn.svm, face)(**parameters)
    ours = getattr(dualgap, face)(**parameters)
    slowest = max(timed(partial(model.fit, X, y)) for model in (theirs, ours))
    if slowest > options.limit:
        return [f"a fit took over {options.limit:g} s"]
    fit, seconds = ratios(theirs, ours, "fit", (X, y), options.repeats)
    predict, _ = ratios(theirs, ours, "predict", (X,), options.repeats)
    return [
        f"{statistics.median(fit):.2f}",
        f"{min(fit):.2f} to {max(fit):.2f}",
        f"{statistics.median(predict):.2f}",
        f"{1000 * seconds:.2f}",
        f"{ours.certificate_.relative_gap:.1e}",
        f"{calls(partial(theirs.fit, X, y))} / {calls(partial(ours.fit, X, y))}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*")
    parser.add_argument("--C", type=float, nargs="+", default=[0.1, 1.0, 10.0, 100.0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--limit", type=float, default=2.0, help="seconds of one fit")
    parser.add_argument("--json", help="file to write the table to")
    options = parser.parse_args()

    head = ["data", "model", "C", "fit", "range", "predict", "fit, ms", "gap proved"]
    head.append("calls, both")
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    medians, rows = [], []
    for label, X, y, models in cases(options.data):
        for title, face, parameters in models:
            for C in [None] if face == "OneClassSVM" else options.C:
                given = parameters if C is None else {**parameters, "C": C}
                cells = measured(face, given, X, y, options)
                row = [label, title, "" if C is None else f"{C:g}", *cells]
                print("| " + " | ".join(row) + " |", flush=True)
                rows.append(dict(zip(head, row, strict=False)))
                if len(cells) > 1:
                    medians.append(float(cells[0]))
    won = sum(median >= 1.0 for median in medians)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    print(f"\ndualgap fits at least as fast in {won} of {len(medians)} cases.")


if __name__ == "__main__":
    main()
