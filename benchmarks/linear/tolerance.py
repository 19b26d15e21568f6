"""Accuracy that tolerances of scikit-learn's LinearSVC lead to, from the sweeps.

    python benchmarks/linear/tolerance.py [--C 0.1 1 10] [--results FILE]

Prints (P - P*)/P* for every data set and C of which `run.py --stage reference sweep`
has left rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import CACHE, DATA
from harness import Results

TOLERANCES = [1.0, 0.1, 0.01, 0.001]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--C", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--results", type=Path, default=CACHE / "linear.jsonl")
    args = parser.parse_args()
    results = Results(args.results)
    print("| data, C |", " | ".join(f"tol = {t:g}" for t in TOLERANCES), "|")
    print("|---" * (1 + len(TOLERANCES)) + "|")
    for name in DATA:
        for C in args.C:
            _, best = results.bracket(name, C)
            rows = results.where(stage="sweep", data=name, C=C, rival="sklearn")
            found = {
                r["value"]: r["primal"] / best - 1.0 for r in rows if "primal" in r
            }
            if found:
                shown = [f"{found[t]:.1e}" if t in found else "–" for t in TOLERANCES]
                print(f"| {name}, {C:g} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
