"""Bounds about rows left out: how tight they are on real sets.

    python benchmarks/answers/leave_one_out.py [PART ...] [--seconds S]

The parts "what-if", "sets" and "kernels" print the tables of docs/certified-answers.md.
Times are processor seconds of one thread.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from datasets import load
from harness import timed

from dualgap import SVC, LinearSVC
from dualgap.models import loo_bounds, what_if

#: Names in the table, and of `datasets`.
SETS = {
    **{name: name for name in ("a9a", "ijcnn1", "w8a", "splice")},
    "letter (A-M)": "letter",
    "usps (parity)": "usps",
    "breast cancer": "cancer",
}
#: Set, C, loss, free bias.
ROWS = [
    ("breast cancer", 1.0, "hinge", False),
    ("breast cancer", 1.0, "hinge", True),
    ("splice", 0.01, "hinge", False),
    ("splice", 1.0, "hinge", True),
    ("a9a", 0.001, "hinge", False),
    ("a9a", 0.01, "hinge", False),
    ("a9a", 1.0, "hinge", False),
    ("letter (A-M)", 1.0, "hinge", False),
    ("ijcnn1", 1.0, "hinge", False),
    ("usps (parity)", 0.01, "hinge", False),
    ("w8a", 1.0, "hinge", False),
    ("a9a", 0.1, "hinge", False),
    ("a9a", 0.01, "squared_hinge", False),
]


def tightness(seconds: float) -> None:
    """Print the table of leave-one-out errors on real sets."""
    print("| set, C | one fit: error between | local | exact | undecided | seconds |")
    print("|---|---|---|---|---|---|")
    for name, C, loss, free in ROWS:
        X, y = load(SETS[name])
        model = LinearSVC(
            C, loss=loss, tol=1e-9, penalize_intercept=not free, random_state=0
        ).fit(X, y)
        cells = [f"{name}, {C:g}{', squared hinge' * (loss != 'hinge')}"]
        cells[0] += ", free bias" * free
        spent = []
        for refine in ("none", "local", "exact"):
            bound = partial(loo_bounds, refine=refine, time_limit=seconds)
            took, found = timed(bound, model, X, y)
            spent.append(took)
            cells.append(f"{100 * found.lower:.3f} to {100 * found.upper:.3f} %")
        times = f"{spent[0]:.2f}, {spent[1]:.1f}, {spent[2]:.1f}"
        print(
            "|", " | ".join([*cells, str(len(found.undecided)), times]), "|", flush=True
        )


def kernels() -> None:
    """Print the table of leave-one-out errors of kernel models."""
    X, y = load("splice")
    C, gamma = 1.0, 0.02
    for loss in ("hinge", "squared_hinge"):
        model = SVC(C=C, gamma=gamma, loss=loss, tol=1e-9).fit(X, y)
        for refine in ("local", "exact"):
            spent, found = timed(partial(loo_bounds, refine=refine), model, X, y)
            print(f"splice, rbf, C = {C:g}, {loss}, {refine}: {found} {spent:.1f} s")


def groups() -> None:
    """Print the table of what-if bounds on a9a."""
    X, y = load("a9a")
    rng = np.random.default_rng(0)
    print(
        "| C | rows left out | radius | labels proved | labels that flip "
        "| bound, cold refit |"
    )
    print("|---|---|---|---|---|---|")
    for C in (0.01, 1.0):
        model = LinearSVC(C, loss="hinge", tol=1e-9).fit(X, y)
        for many in (1, 10, 100, 1000):
            rows = rng.choice(model.support_, many, replace=False)
            bound, change = timed(partial(what_if, without=rows), model, X, y)
            certain = change.certified_labels(X).mean()
            kept = np.setdiff1d(np.arange(len(y)), rows)
            again = LinearSVC(C, loss="hinge", tol=1e-9)
            cold, _ = timed(again.fit, X[kept], y[kept])
            flips = (again.predict(X) != model.predict(X)).mean()
            print(
                f"| {C:g} | {many} support vectors | {change.radius:.3g} | "
                f"{100 * certain:.2f} % | {100 * flips:.3f} % | "
                f"{1e3 * bound:.0f} ms, {1e3 * cold:.0f} ms |",
                flush=True,
            )


def main() -> None:
    parts = {
        "what-if": groups,
        "sets": lambda: tightness(options.seconds),
        "kernels": kernels,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=[])
    parser.add_argument("--seconds", type=float, default=300.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in options.parts or parts:
            parts[name]()


if __name__ == "__main__":
    main()
