"""Measure how near to the optimum each solver comes, and how much of it is proved.

    python benchmarks/accuracy.py [DATA ...] [--C 0.1] [--epochs 10 100 1000]

For every solver and number of epochs: (P - P*)/P* measured from outside in float64,
and the relative gap that its certificate proves. P* is `dcd`'s at a gap of 1e-9.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from datasets import load

from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import SDCA, SOLVERS, Pegasos, get_solver
from dualgap.training import solve

PLAIN = {name: get_solver(name) for name in SOLVERS if name != "auto"}
VARIANTS = {
    "sdca, sgd start": SDCA(init="sgd"),
    "sdca, random order": SDCA(order="random"),
    "sdca, cyclic order": SDCA(order="cyclic"),
    "sdca, average": SDCA(output="average"),
    "pegasos, average": Pegasos(output="average"),
    "pegasos, projected": Pegasos(projection=True),
    "pegasos, k = 100": Pegasos(batch_size=100),
    "pegasos, random draws": Pegasos(sampling="random"),
}


def objective(X, y, C: float, w: np.ndarray) -> float:
    """P(w) in plain NumPy, from outside the package."""
    margins = y * np.asarray(X @ w, dtype=np.float64)
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - margins).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["a9a", "w8a", "imdb"])
    parser.add_argument("--C", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument(
        "--variants", action=argparse.BooleanOptionalAction, default=True
    )
    parser.add_argument("--json")
    args = parser.parse_args()
    records = PLAIN | (VARIANTS if args.variants else {})
    results = []
    for name in args.data:
        X, y = load(name)
        problem = Problem(X, y, args.C)
        best = solve(problem, get_solver("dcd"), tol=1e-9, max_iter=100_000)
        optimum = objective(X, y, args.C, best.w)
        print(f"\n{name}, C = {args.C:g}, P* = {optimum:.6f} "
              f"(proved to {best.certificate.relative_gap:.0e}): "
              "accuracy / proved gap by epochs\n")  # fmt: skip
        print("| solver |" + "".join(f" {epochs:,} |" for epochs in args.epochs))
        print("|---|" + "---|" * len(args.epochs))
        for label, solver in records.items():
            cells = []
            for epochs in args.epochs:
                solution = solve(problem, solver, tol=1e-9, max_iter=epochs)
                accuracy = objective(X, y, args.C, solution.w) / optimum - 1
                gap = solution.certificate.relative_gap
                cells.append(f"{max(accuracy, 0):.0e} / {gap:.0e}")
                results.append({"data": name, "C": args.C, "solver": label,
                                "epochs": solution.certificate.epochs,
                                "accuracy": accuracy, "gap": gap})  # fmt: skip
            print(f"| {label} | " + " | ".join(cells) + " |", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
