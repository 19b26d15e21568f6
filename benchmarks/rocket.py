"""Random convolutions of time series: what to train on them.

    python benchmarks/rocket.py [rows]

Series of 200 steps and 6 classes, two waves of the class in noise, become 9,996 columns
as MiniRocket makes them: 84 filters of 9 weights, 7 dilations, 17 thresholds each; a
column is the share of steps above its threshold. Columns are standardised, float32.
Each way trains once, on one thread, in a process of its own, all in one run: compare
ratios. The table has processor seconds, memory beyond the data (Linux), the accuracy on
2,000 other series, and for the squared hinge the worst relative gap of a class, from
outside in float64: from P to the best D of all ways with the same C.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import numpy as np
from harness import apart, timed
from numpy.typing import NDArray
from probe import outside, peak

STEPS, CLASSES, TEST, C = 200, 6, 2_000, 1e-4
COSTS = np.logspace(-6, -1, 6)
WAYS = ("LinearSVC", "LinearSVCCV", "sklearn LinearSVC", "RidgeClassifierCV")


def series(n: int) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Two waves of the class's frequencies, of random phase and size, in noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, n)
    angle = np.arange(STEPS) * (0.05 + 0.012 * y[:, None])
    waves = np.sin(2.0 * angle + rng.uniform(0, 6, (n, 1)))
    waves += 0.6 * np.sin(3.1 * angle + rng.uniform(0, 6, (n, 1)))
    waves *= np.exp(0.3 * rng.normal(size=(n, 1)))
    return (waves + 1.6 * rng.normal(size=(n, STEPS))).astype(np.float32), y


def convolved(S: NDArray[np.float32]) -> NDArray[np.float32]:
    """Shares of steps where a dilated filter of weights 2 and -1 passes a threshold."""
    rng, columns = np.random.default_rng(1), []
    for _ in range(84):
        weights = np.full(9, -1.0, np.float32)
        weights[rng.choice(9, 3, replace=False)] = 2.0
        for gap in (1, 2, 4, 7, 12, 17, 22):
            length = STEPS - 8 * gap
            found = sum(w * S[:, k * gap : k * gap + length]
                        for k, w in enumerate(weights))  # fmt: skip
            for q in np.quantile(found[rng.integers(len(S))], rng.random(17)):
                columns.append((found > q).mean(axis=1, dtype=np.float32))
    X = np.stack(columns, axis=1)
    return (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-8)


def model_of(way: str) -> Any:
    from sklearn import linear_model, svm

    from dualgap import LinearSVC, LinearSVCCV

    if way == "RidgeClassifierCV":
        return linear_model.RidgeClassifierCV(alphas=np.logspace(-3, 3, 10))
    if way == "LinearSVCCV":
        return LinearSVCCV(COSTS)
    kind = svm.LinearSVC if way.startswith("sklearn") else LinearSVC
    return kind(C=C)


def one(way: str, rows: int) -> None:
    """Train one model and print what it took, as JSON."""
    warnings.simplefilter("ignore")
    S, y = series(rows + TEST)
    X = convolved(S)
    model_of(way).fit(X[:60], y[:60])  # imports what the fit uses
    model, own = model_of(way), np.ascontiguousarray(X[:rows])
    before = peak(reset=True)
    seconds, _ = timed(model.fit, own, y[:rows])
    memory = (peak() - before) / own.nbytes
    accuracy = float(np.mean(model.predict(X[rows:]) == y[rows:]))
    values: list[list[float]] = []
    if "LinearSVC" in way:
        cost = getattr(model, "C_", C)
        both = outside(own, y[:rows], model.coef_, model.intercept_, cost)
        values = [part.tolist() for part in both]
    chosen = getattr(model, "C_", getattr(model, "alpha_", None))
    print(json.dumps([seconds, memory, accuracy, chosen, values]))


def main(rows: int) -> None:
    print("| way | seconds | times LinearSVC | memory / data | accuracy | chosen | "
          "worst gap |\n|---|---|---|---|---|---|---|")  # fmt: skip
    found = {way: apart(__file__, "--one", way, rows) for way in WAYS}
    same = [v[4][1] for v in found.values() if v[4] and v[3] in (None, C)]
    best = np.max(same, axis=0)
    for way, (seconds, memory, accuracy, chosen, values) in found.items():
        times = seconds / found[WAYS[0]][0]
        gap = "-"
        if values and chosen in (None, C):
            gap = f"{(np.array(values[0]) / best).max() - 1.0:.1e}"
        print(
            f"| {way} | {seconds:.2f} | {times:.1f} | {memory:.2f} | {accuracy:.3f} | "
            f"{'-' if chosen is None else f'{chosen:.0e}'} | {gap} |"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 3_000)
