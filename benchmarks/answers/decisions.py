"""Bounds on the decisions of the exact optimum: how tight they are, and their cost.

    python benchmarks/answers/decisions.py [sets] [costs] [NAME ...]

`sets` prints the share of labels of new
rows that the bounds prove on real data sets, by the accuracy of the fit. Every fourth
row is new. Times are processor time of one thread, in units of the fit's. `costs`
prints the time of decision_bounds over the time of decision_function, and what a fit to
a smaller gap takes from a warm start and from zero.
"""

from __future__ import annotations

import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import datasets
from harness import timed

from dualgap import SVC, LinearSVC

TOLERANCES = (1e-3, 1e-6, 1e-9)
SECONDS = 60.0  # for one fit
KERNEL_ROWS = 4000


def magic04():
    lines = datasets.unpack("magic04/magic04.data").read().decode().split()
    table = [line.split(",") for line in lines]
    y = np.where([row[-1] == "g" for row in table], 1.0, -1.0)
    return scale(np.array([row[:-1] for row in table], float)), y


def letter():
    X, y = datasets.load("letter")
    return X.toarray(), y


SETS = {
    "a9a": (lambda: datasets.load("a9a"), (0.01, 1.0)),
    "w8a": (lambda: datasets.load("w8a"), (1.0,)),
    "ijcnn1": (lambda: datasets.load("ijcnn1"), (1.0,)),
    "covtype": (lambda: datasets.load("covtype"), (1.0,)),
    "letter": (letter, (1.0,)),
    "usps": (lambda: datasets.load("usps"), (0.01,)),
    "magic04": (magic04, (1.0,)),
    "mushrooms": (lambda: datasets.read("mushrooms/mushrooms"), (1.0,)),
    "splice": (lambda: datasets.load("splice"), (0.01,)),
    "cancer": (lambda: datasets.load("cancer"), (1.0,)),
}


def parted(X, y):
    """Training rows and new rows."""
    new = np.arange(len(y)) % 4 == 0
    return X[~new], y[~new], X[new]


# ------------------------------------------------------------------------ real data


def proved(model, X, y, new):
    """Return the share of proved labels, and the times of the three steps."""
    fit, _ = timed(model.fit, X, y)
    found, _ = timed(model.bound_optimum, X, y)
    used, certain = timed(model.certified_labels, new)
    return certain.mean(), fit, found, used


def row(name, C, of_tolerance, X, y, new) -> None:
    cells = []
    for tol in TOLERANCES:
        share, fit, found, used = proved(of_tolerance(tol), X, y, new)
        cells.append(f"{share:.4f} ({found / fit:.2g}, {used / fit:.2g})")
    print(f"| {name} | {C:g} | {' | '.join(cells)} |", flush=True)


LINEAR_MODELS = {
    "hinge, penalised bias": {"loss": "hinge"},
    "hinge, unpenalised bias": {"loss": "hinge", "penalize_intercept": False},
    "squared hinge, penalised bias": {"loss": "squared_hinge"},
    "squared hinge, unpenalised bias": {
        "loss": "squared_hinge",
        "penalize_intercept": False,
    },
}


def sets(names) -> None:
    X, y = datasets.load("cancer")
    proved(LinearSVC(), X, y, X)  # imports what the methods need
    head = " | ".join(f"tol {tol:g}" for tol in TOLERANCES)
    for title, options in LINEAR_MODELS.items():
        print(f"\n{title}: share of labels (bound_optimum, certified_labels / fit)")
        print(f"| set | C | {head} |\n|---|---|---|---|---|")
        for name in names:
            load, costs = SETS[name]
            X, y, new = parted(*load())
            for C in costs:
                row(
                    name, C,
                    lambda tol, C=C, options=options: LinearSVC(
                        C=C, tol=tol, random_state=0, time_limit=SECONDS, **options
                    ),
                    X, y, new,
                )  # fmt: skip
    print(f"\nrbf kernel, hinge, unpenalised bias, {KERNEL_ROWS} rows")
    print(f"| set | C | {head} |\n|---|---|---|---|---|")
    for name in ("letter", "usps", "ijcnn1", "a9a"):
        if name not in names:
            continue
        X, y = SETS[name][0]()
        some = np.random.default_rng(0).permutation(len(y))[: KERNEL_ROWS * 4 // 3]
        X, y, new = parted(X[some], y[some])
        row(
            name, 10.0,
            lambda tol: SVC(C=10.0, tol=tol, random_state=0, time_limit=SECONDS),
            X, y, new,
        )  # fmt: skip


def drawn():
    """Normal numbers: 20,000 dense rows of 100."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 100))
    noise = 3.0 * rng.standard_normal(len(X))
    return X, np.where(X @ rng.standard_normal(100) + noise > 0.0, 1, -1)


def costs() -> None:
    """Print what bounds and warm starts cost: medians of 15 pairs, and of 3."""
    kinds = {
        "hinge": {"loss": "hinge"},
        "squared hinge, ellipsoid": {"loss": "squared_hinge"},
        "hinge, unpenalised bias": {"loss": "hinge", "penalize_intercept": False},
    }
    print("| rows | problem | decision_bounds over decision_function |\n|---|---|---|")
    for name, load in (("a9a", lambda: datasets.load("a9a")), ("dense", drawn)):
        X, y = load()
        for kind, options in kinds.items():
            model = LinearSVC(C=0.1, tol=1e-4, random_state=0, **options).fit(X, y)
            model.bound_optimum(X, y)
            ratios = [
                timed(model.decision_bounds, X)[0]
                / timed(model.decision_function, X)[0]
                for _ in range(15)
            ]
            print(f"| {name} | {kind} | {np.median(ratios):.1f} |", flush=True)
    print("| set | C | loss | tol | zero ms | warm ms |\n|---|---|---|---|---|---|")
    ratios = []
    for name, C, loss, tol in product(
        ("a9a", "ijcnn1"), (0.01, 1.0), ("hinge", "squared_hinge"), (1e-6, 1e-9)
    ):
        X, y = datasets.load(name)
        zero, warm = [], []
        for _ in range(3):
            model = LinearSVC(C=C, loss=loss, tol=tol, random_state=0)
            zero.append(timed(model.fit, X, y)[0])
            model = LinearSVC(C=C, loss=loss, random_state=0, warm_start=True)
            model.fit(X, y).set_params(tol=tol)
            warm.append(timed(model.fit, X, y)[0])
        both = " | ".join(f"{1e3 * np.median(part):.0f}" for part in (zero, warm))
        print(f"| {name} | {C:g} | {loss} | {tol:g} | {both} |", flush=True)
        ratios.append(np.median(warm) / np.median(zero))
    faster = sum(ratio < 1.0 for ratio in ratios)
    print(
        f"warm was faster in {faster} of {len(ratios)} fits; the slowest took "
        f"{max(ratios):.1f} times as long"
    )


if __name__ == "__main__":
    given = sys.argv[1:]
    chosen = [name for name in given if name in SETS] or list(SETS)
    with threadpool_limits(1, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = not {"sets", "costs"} & set(given)
        if "sets" in given or every:
            sets(chosen)
        if "costs" in given or every:
            costs()
