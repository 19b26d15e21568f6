"""Linear probes: all classes of embeddings over shared passes, beside other ways.

    python benchmarks/probe.py [classes ...]
    python benchmarks/probe.py --search [classes ...]
    python benchmarks/probe.py --logistic [classes ...]

Rows are like embeddings: class means plus noise with a power-law covariance, so that
the classes overlap; 50,000 rows of 768 columns in float32, 10 and 100 classes, C = 1.
Each way trains once, on one thread, in a process of its own, all in one run: compare
ratios. The table has processor seconds, memory beyond the data (Linux), P summed over
the classes, and the worst relative gap of a class. P and D come from the coefficients
in float64, from outside: D at a_i = 2 c_i max(0, u_i), where P - D is half the squared
gradient. A gap is from P to the best D of all ways, because `dcd` has better duals
than its w gives. scikit-learn's LogisticRegression has another loss, so that only its
time and accuracy compare.

`--search` takes fewer rows and compares LinearSVCCV, with 10 values of C from 1e-3 to
10 and 5 folds, with a loop over its 50 fits. Passes are multiply-adds of matrix
products over all models, in units of one product of all rows with each model. Their
seconds bound what a search with these passes can take; `dcd` and products with copies
of active rows are not among them. `--logistic` takes these rows too, and compares
LogisticRegression at its default tol with scikit-learn's solvers. These have the first
of max_iter = 5, 10, 20, ... with which `certify` proves them to the same tol.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from harness import apart, resident, timed
from numpy.typing import NDArray

ROWS, COLUMNS, TEST = 50_000, 768, 10_000
#: Standard deviation of the noise of a row, relative to the class means.
NOISE = 6.0
WAYS = ("shared", "dcd", "newton", "logistic")
#: Rows and columns, values of C and folds of a search.
SEARCH, CS, FOLDS = (10_000, 384), np.logspace(-3, 1, 10), 5


def embeddings(
    classes: int, n: int = ROWS + TEST, columns: int = COLUMNS
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Rows of one length, and their classes; the last rows are for tests."""
    rng = np.random.default_rng(0)
    spread = (1.0 + np.arange(columns)) ** -0.75
    turn = np.linalg.qr(rng.normal(size=(columns, columns)))[0].astype(np.float32)
    means = rng.normal(size=(classes, columns)) * spread
    y = rng.integers(0, classes, n)
    X = np.empty((n, columns), np.float32)
    for begin in range(0, n, 10_000):
        own = y[begin : begin + 10_000]
        noise = NOISE * rng.normal(size=(len(own), columns)) * spread
        X[begin : begin + 10_000] = (means[own] + noise).astype(np.float32) @ turn
    X += 0.5 * turn[0]
    X *= 0.2 * np.sqrt(columns) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, y


def outside(
    X: Any, y: Any, coef: Any, intercept: Any, C: float = 1.0
) -> tuple[Any, Any]:
    """Return P and D of each class, in float64."""
    W = np.column_stack([coef, intercept])
    loss, v = np.zeros(len(W)), np.zeros(W.shape)
    for begin in range(0, len(X), 1000):
        rows = X[begin : begin + 1000]
        Z = np.column_stack([rows, np.ones(len(rows))])
        sign = np.where(y[begin : begin + 1000, None] == np.arange(len(W)), 1.0, -1.0)
        short = np.maximum(1.0 - sign * (Z @ W.T), 0.0)
        loss += C * (short**2).sum(axis=0)
        v += 2.0 * C * (sign * short).T @ Z
    primal = 0.5 * (W**2).sum(axis=1) + loss
    return primal, primal - 0.5 * ((W - v) ** 2).sum(axis=1)


def peak(reset: bool = False) -> int:
    """Return the largest memory of the process so far, in bytes; 0 if unknown."""
    if reset:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    return resident("VmHWM") or 0


def model_of(way: str) -> Any:
    from sklearn.linear_model import LogisticRegression

    from dualgap import LinearSVC
    from dualgap.solvers import SmoothingNewton

    passes = {"shared": "shared", "newton": "own"}
    if way == "logistic":
        return LogisticRegression(C=1.0, max_iter=1000)
    solver = SmoothingNewton(passes=passes[way]) if way in passes else way
    return LinearSVC(C=1.0, solver=solver)


def one(way: str, classes: int) -> None:
    """Train one model and print what it took, as JSON."""
    warnings.simplefilter("ignore")
    X, y = embeddings(classes)
    model = model_of(way)
    model_of(way).fit(X[:200], y[:200] % 3)  # imports what the fit uses
    before = peak(reset=True)
    seconds, _ = timed(model.fit, X[:ROWS], y[:ROWS])
    memory = (peak() - before) / X[:ROWS].nbytes
    values = outside(X[:ROWS], y[:ROWS], model.coef_, model.intercept_)
    accuracy = float(np.mean(model.predict(X[ROWS:]) == y[ROWS:]))
    print(json.dumps([seconds, memory, accuracy, *map(list, values)]))


def searched(way: str, classes: int) -> None:
    """Train a search or a loop; print seconds, the seconds of products, and passes."""
    from sklearn.model_selection import StratifiedKFold

    from dualgap import LinearSVC, LinearSVCCV
    from dualgap.problems.dense import DenseRows

    warnings.simplefilter("ignore")
    X, y = embeddings(classes, *SEARCH)
    cv = list(StratifiedKFold(FOLDS).split(X, y))
    LinearSVCCV([0.1], cv=cv[:2]).fit(X[:, :20], y)  # imports what the fit uses
    seen = [0.0, 0]
    for name in ("scores", "add_sums"):
        product = getattr(DenseRows, name)

        def noted(rows: Any, X: Any, other: Any, *out: Any, product: Any = product):
            if 1 in (other.shape[0], other.shape[-1]):  # not a matrix
                return product(rows, X, other, *out)
            seconds, found = timed(product, rows, X, other, *out)
            seen[0] += seconds
            seen[1] += X.size * other.size // X.shape[out == ()]
            return found

        setattr(DenseRows, name, noted)
    begun = time.process_time()
    if way == "search":
        LinearSVCCV(CS, cv=cv, refit=False).fit(X, y)
    else:
        for C in CS:
            for train, test in cv:
                LinearSVC(C=C).fit(X[train], y[train]).score(X[test], y[test])
    seconds = time.process_time() - begun
    models = X.size * classes * len(CS) * FOLDS
    print(json.dumps([seconds, seen[0], seen[1] / models]))


def searches(counts: list[int]) -> None:
    print("| classes | way | seconds | of the loop | in products, of the loop | "
          "passes per model |\n|---|---|---|---|---|---|")  # fmt: skip
    for classes in counts:
        ways = ("loop", "search")
        found = {way: apart(__file__, "--searched", way, classes) for way in ways}
        loop = found["loop"][0]
        for way, (seconds, products, passes) in found.items():
            print(
                f"| {classes} | {way} | {seconds:.1f} | {seconds / loop:.2f} | "
                f"{products / loop:.2f} | {passes:.1f} |",
                flush=True,
            )


def logistic(way: str, classes: int) -> None:
    """Print the seconds, the proved gap and the iterations of a logistic model."""
    from sklearn.linear_model import LogisticRegression as Peer

    from dualgap import LogisticRegression, certify

    warnings.simplefilter("ignore")
    X, y = embeddings(classes, *SEARCH)
    for limit in 5 * 2 ** np.arange(9):
        model: Any = LogisticRegression()
        if way != "dualgap":
            model = Peer(solver=way, tol=1e-12, max_iter=int(limit))
        model.fit(X[:200], y[:200] % 3)  # imports what the fit uses
        seconds, _ = timed(model.fit, X, y)
        gap = certify(model, X, y).relative_gap
        if gap <= 1e-3:
            break
    print(json.dumps([seconds, gap, int(np.max(model.n_iter_))]))


def logistics(counts: list[int]) -> None:
    print("| classes | solver | seconds | of dualgap's | gap | iterations |\n"
          "|---|---|---|---|---|---|")  # fmt: skip
    for classes in counts:
        # newton-cholesky has a matrix of the weights of all classes
        ways = ["dualgap", "lbfgs", "saga", "newton-cg", "newton-cholesky"]
        ways = ways[: 5 if classes <= 10 else 4]
        found = {way: apart(__file__, "--logistics", way, classes) for way in ways}
        for way, (seconds, gap, steps) in found.items():
            times = seconds / found["dualgap"][0]
            print(
                f"| {classes} | {way} | {seconds:.2f} | {times:.1f} | {gap:.0e} | "
                f"{steps} |"
            )


def main(counts: list[int]) -> None:
    print("| classes | way | seconds | times shared | memory / data | accuracy | P | "
          "worst gap |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for classes in counts:
        found = {way: apart(__file__, "--one", way, classes) for way in WAYS}
        best = np.max([found[way][4] for way in WAYS if way != "logistic"], axis=0)
        for way, (seconds, memory, accuracy, primal, _) in found.items():
            times = seconds / found["shared"][0]
            gap = (np.array(primal) / best).max() - 1.0
            values = "- | -" if way == "logistic" else f"{sum(primal):.6g} | {gap:.1e}"
            print(
                f"| {classes} | {way} | {seconds:.1f} | {times:.1f} | {memory:.2f} | "
                f"{accuracy:.3f} | {values} |",
                flush=True,
            )


#: What one process measures, and what prints the tables of these.
MEASURES = {"--one": one, "--searched": searched, "--logistics": logistic}
TABLES = {"--search": searches, "--logistic": logistics}

if __name__ == "__main__":
    first, *rest = sys.argv[1:] or [""]
    if first in MEASURES:
        MEASURES[first](rest[0], int(rest[1]))
    elif first in TABLES:
        TABLES[first]([int(count) for count in rest] or [10, 100])
    else:
        main([int(count) for count in sys.argv[1:]] or [10, 100])
