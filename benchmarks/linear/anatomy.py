"""Parts of a fit of `auto`, in products with the data.

    python benchmarks/linear/anatomy.py [--data ...] [--C 0.05 1] [--accuracy 1e-2]

One thread, processor seconds, the fastest of five: the check of the arrays (finite
values, columns in range and none twice, norms), the passes, and the proof, each over
one plain product of SciPy's or NumPy's with the same data; the best rival's whole fit
of the last run of the grid (results.json) in the same unit. A rival neither checks as
much nor proves.
"""

from __future__ import annotations

import argparse
import json
import operator
import time
from pathlib import Path

import numpy as np
from bench import DATA, load

from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import Auto
from dualgap.training import solve

TEXT = ["sector", "20news", "imdb", "phish-urls", "imdb-bigrams", "rcv1-like"]


def fastest(job, *args, repeats: int = 5, **options):
    """(seconds, what the last call returned)"""
    seconds = []
    for _ in range(repeats):
        begun = time.process_time()
        out = job(*args, **options)
        seconds.append(time.process_time() - begun)
    return min(seconds), out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=TEXT)
    parser.add_argument("--C", nargs="+", type=float, default=[0.05, 1.0])
    parser.add_argument("--accuracy", type=float, default=1e-2)
    args = parser.parse_args()
    eps = args.accuracy
    results = json.loads(Path(__file__).with_name("results.json").read_text())
    cells = {(c["data"], c["C"]): c for c in results["cells"] if c["accuracy"] == eps}
    print("| data | C | product, ms | check | passes | proof | all | best rival |\n"
          "|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name in args.data:
        X, y = load(name)
        w = np.linspace(-1.0, 1.0, X.shape[1])
        product, _ = fastest(operator.matmul, X, w)
        for C in args.C:
            check, problem = fastest(Problem, X, y, C)
            whole, solution = fastest(solve, problem, Auto(), tol=eps, random_state=0)
            proof, _ = fastest(problem.certify, alpha=solution.alpha)
            parts = [check, whole - proof, proof, check + whole]
            cell = cells.get((name, C))
            rival = "none"
            if cell and cell["reached"]:
                theirs = cell["ratio"] * (check + whole) / product
                rival = f"{theirs:.1f} ({cell['rival']})"
            print(f"| {name} | {C:g} | {1e3 * product:.2f} | "
                  + " | ".join(f"{part / product:.1f}" for part in parts)
                  + f" | {rival} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
