"""One thread against two on the larger sets.

    python benchmarks/linear/threads.py [--data ...] [--C 0.1 1 10] [--repeats 5]

Wall seconds of `LinearSVC(solver=...).fit`, the two in turn; the figure is n_jobs=1 /
n_jobs=2, median and range. The same ratio of one pass for the margins shows what two
threads gain of the memory they share. It means something only where both processors are
idle: the load is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time

import numpy as np
from bench import Worker, arrays, load
from harness import processor

from dualgap.problems import BinaryProblem as Problem

LARGE = ["imdb", "imdb-bigrams", "mnist", "cover", "donors", "kdd99", "rcv1-like"]


def one_pass(name: str, repeats: int) -> list[float]:
    """Return wall seconds of one thread over wall seconds of two, of passes in turn."""
    X, y = load(name)
    w = np.linspace(-1.0, 1.0, X.shape[1])
    problems = [Problem(X, y, n_jobs=jobs) for jobs in (1, 2)]
    ratios = []
    for _ in range(4 * repeats):
        seconds = []
        for problem in problems:
            begun = time.perf_counter()
            problem.margins(w)
            seconds.append(time.perf_counter() - begun)
        ratios.append(seconds[0] / seconds[1])
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=LARGE)
    parser.add_argument("--C", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--accuracy", type=float, default=1e-3)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()
    busy = os.getloadavg()[0]
    print(f"{processor()}, {os.cpu_count()} processors, load {busy:.2f}\n")
    print("| data | C | 1 thread, s | 2 threads, s | ratio, median | range | epochs |\n"
          "|---|---|---|---|---|---|---|")  # fmt: skip
    results = []
    for name in args.data:
        worker = Worker("dualgap", arrays(name))
        for C in args.C:
            rows = {1: [], 2: []}
            for k in range(args.repeats):
                for jobs, some in rows.items():
                    row, _ = worker.fit(C, args.solver, args.accuracy, seed=k, cap=300,
                                        n_jobs=jobs)  # fmt: skip
                    if "wall" not in row:
                        raise SystemExit(f"{name} C = {C:g}, n_jobs={jobs}: {row}")
                    some.append(row)
            one, two = ([r["wall"] for r in some] for some in rows.values())
            ratios = [a / b for a, b in zip(one, two, strict=True)]
            epochs = ", ".join(str(some[0]["epochs"]) for some in rows.values())
            results.append({"data": name, "C": C, "one": one, "two": two})
            print(f"| {name} | {C:g} | {statistics.median(one):.3f} | "
                  f"{statistics.median(two):.3f} | {statistics.median(ratios):.2f} | "
                  f"{min(ratios):.2f} to {max(ratios):.2f} | {epochs} |",
                  flush=True)  # fmt: skip
        worker.close()
        ratios = one_pass(name, args.repeats)
        print(f"| {name} | one pass | – | – | {statistics.median(ratios):.2f} | "
              f"{min(ratios):.2f} to {max(ratios):.2f} | – |", flush=True)  # fmt: skip
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
