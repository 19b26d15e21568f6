"""Passes over a row store until `dcd` has proved 1e-3, by sweeps over a block.

    python benchmarks/scale/sweeps.py [imdb a9a covtype] [--C 0.1 1 10] [--part 6]

The buffer is the data divided by --part. "memory": the rows held, no acceleration;
passes are the epochs of the certificate, "–" where --most were too few.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import datasets

from dualgap.data import RowStore, convert
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD
from dualgap.training import solve

SWEEPS = [1, 2, 3, 5]


def passes(problem: Problem, solver: DCD, most: int) -> str:
    done = solve(problem, solver, tol=1e-3, max_iter=most).certificate
    return str(done.epochs) if done.certified else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["imdb", "a9a", "covtype"])
    parser.add_argument("--C", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--part", type=int, default=6)
    parser.add_argument("--most", type=int, default=300)
    args = parser.parse_args()
    print("| data | C |", " | ".join(map(str, SWEEPS)), "| memory | pages |")
    print("|---" * (4 + len(SWEEPS)) + "|")
    for name in args.data:
        X, y = datasets.load(name)
        with tempfile.TemporaryDirectory() as folder:
            held = convert([(X, y)], f"{folder}/rows", dtype=X.dtype)
            size = held.stored * held.entry_bytes + 8 * len(held)
            store = RowStore.open(held.path, buffer=size // args.part)
            for C in args.C:
                found = [
                    passes(Problem(store, None, C), DCD(block_sweeps=k), args.most)
                    for k in SWEEPS
                ]
                plain = DCD(acceleration="none")
                found.append(passes(Problem(X, y, C), plain, args.most))
                pages = f"{store.block_pages} of {len(store.pages)}"
                print(f"| {name} | {C:g} | {' | '.join(found)} | {pages} |", flush=True)


if __name__ == "__main__":
    main()
