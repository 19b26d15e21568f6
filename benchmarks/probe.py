"""Linear probes: all classes of embeddings over shared passes, beside other ways.

    python benchmarks/probe.py [classes ...]

Rows are like embeddings: class means plus noise with a power-law covariance, so that
the classes overlap; 50,000 rows of 768 columns in float32, 10 and 100 classes, C = 1.
Each way trains once, on one thread, in a process of its own, all in one run: compare
ratios. The table has processor seconds, memory beyond the data (Linux), P summed over
the classes, and the worst relative gap of a class. P and D come from the coefficients
in float64, from outside: D at a_i = 2 c_i max(0, u_i), where P - D is half the squared
gradient. A gap is from P to the best D of all ways, because `dcd` has better duals
than its w gives. scikit-learn's LogisticRegression has another loss, so that only its
time and accuracy compare.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from harness import apart
from numpy.typing import NDArray

ROWS, COLUMNS, TEST = 50_000, 768, 10_000
#: Standard deviation of the noise of a row, relative to the class means.
NOISE = 6.0
WAYS = ("shared", "dcd", "newton", "logistic")


def embeddings(classes: int) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Rows of one length, and their classes; the last rows are for tests."""
    rng, n = np.random.default_rng(0), ROWS + TEST
    spread = (1.0 + np.arange(COLUMNS)) ** -0.75
    turn = np.linalg.qr(rng.normal(size=(COLUMNS, COLUMNS)))[0].astype(np.float32)
    means = rng.normal(size=(classes, COLUMNS)) * spread
    y = rng.integers(0, classes, n)
    X = np.empty((n, COLUMNS), np.float32)
    for begin in range(0, n, 10_000):
        own = y[begin : begin + 10_000]
        noise = NOISE * rng.normal(size=(len(own), COLUMNS)) * spread
        X[begin : begin + 10_000] = (means[own] + noise).astype(np.float32) @ turn
    X += 0.5 * turn[0]
    X *= 0.2 * np.sqrt(COLUMNS) / np.linalg.norm(X, axis=1, keepdims=True)
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
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * next(int(s.split()[1]) for s in lines if s.startswith("VmHWM"))


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
    begun = time.process_time()
    model.fit(X[:ROWS], y[:ROWS])
    seconds = time.process_time() - begun
    memory = (peak() - before) / X[:ROWS].nbytes
    values = outside(X[:ROWS], y[:ROWS], model.coef_, model.intercept_)
    accuracy = float(np.mean(model.predict(X[ROWS:]) == y[ROWS:]))
    print(json.dumps([seconds, memory, accuracy, *map(list, values)]))


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


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]))
    else:
        main([int(count) for count in sys.argv[1:]] or [10, 100])
