"""LinearSVC beside scikit-learn's, in one paired run.

    python benchmarks/against_sklearn.py [DATA ...] [--C 1] [--repeats 9]

Both fit the same arrays on one thread. The objective is measured from outside in
float64. scikit-learn's `tol` is swept, and the loosest that reaches the accuracy is
the one timed; dualgap is timed twice: at tol = accuracy, which proves it, and at the
loosest tol that reaches the same objective. Wall seconds of fit(), the two in turn;
the figure is the ratio (scikit-learn / dualgap), median and range.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings

import numpy as np
from datasets import load
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC as Rival

import dualgap

TOLS = [3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5]
warnings.simplefilter("ignore", ConvergenceWarning)


def objective(X, y, C, model) -> float:
    """P of a fitted model without intercept."""
    w = model.coef_.ravel()
    margins = y * np.asarray(X @ w, dtype=np.float64)
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - margins).sum())


def rival(C, tol):
    return Rival(C=C, loss="hinge", tol=tol, max_iter=100_000, fit_intercept=False,
                 dual=True, random_state=0)  # fmt: skip


def ours(C, tol, solver):
    return dualgap.LinearSVC(C=C, loss="hinge", solver=solver, tol=tol,
                             max_iter=100_000, fit_intercept=False)  # fmt: skip


def seconds(model, X, y) -> float:
    begin = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begin


def loosest(make, X, y, C, target) -> float | None:
    """Largest tol whose model has an objective of at most target."""
    for tol in TOLS:
        if objective(X, y, C, make(tol).fit(X, y)) <= target:
            return tol
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["a9a"])
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--accuracy", type=float, default=1e-3)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json")
    args = parser.parse_args()
    results = []
    print("| data | C | dualgap | scikit-learn tol | scikit-learn / dualgap, median | "
          "range |\n|---|---|---|---|---|---|")  # fmt: skip
    for name in args.data:
        X, y = load(name)
        best = ours(args.C, 1e-9, "dcd").fit(X, y)
        target = objective(X, y, args.C, best) * (1 + args.accuracy)
        theirs = loosest(lambda tol: rival(args.C, tol), X, y, args.C, target)
        mine = loosest(lambda t: ours(args.C, t, args.solver), X, y, args.C, target)
        for label, tol in (("certified", args.accuracy), ("same objective", mine)):
            ratios = []
            for _ in range(args.repeats):
                a = seconds(rival(args.C, theirs), X, y)
                b = seconds(ours(args.C, tol, args.solver), X, y)
                ratios.append(a / b)
            results.append({"data": name, "C": args.C, "ours": label, "tol": tol,
                            "rival_tol": theirs, "ratios": ratios})  # fmt: skip
            print(f"| {name} | {args.C:g} | {args.solver}, {label} (tol {tol:g}) | "
                  f"{theirs:g} | {statistics.median(ratios):.2f} | "
                  f"{min(ratios):.2f} to {max(ratios):.2f} |", flush=True)  # fmt: skip
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
