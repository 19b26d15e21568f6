"""Two threads within one fit of the block solver beside one.

    python benchmarks/kernel/threads.py [DATA ...] [--repeats 5] [--C 10]

RBF, gamma "scale", a proved gap of 1e-3. One and two threads in turn, the best of some
runs of each. "wall": seconds on the clock. "caller": processor seconds of the thread
that calls, which works on the first part of every loop and does alone what is not
shared. It is close to the time of the fit on an idle machine, and says more than the
clock on a busy one. The two models are the same to the last bit, which is checked.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from bench import arrays
from serving import read
from threadpoolctl import threadpool_limits

from dualgap.kernel import RBF, BlockSolver, KernelProblem
from dualgap.training import solve


def fit(X, y, args, threads: int):
    """Seconds on the clock and of the caller, and the dual variables."""
    problem = KernelProblem(
        X, y, args.C, kernel=RBF("scale"), loss=args.loss, cache_size=args.cache,
        penalize_intercept=args.loss != "hinge",
    )  # fmt: skip
    wall, caller = time.perf_counter(), time.thread_time()
    solution = solve(problem, BlockSolver(threads=threads), tol=1e-3)
    wall, caller = time.perf_counter() - wall, time.thread_time() - caller
    assert solution.certificate.certified
    return wall, caller, solution.alpha


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["ijcnn1", "w8a", "a9a"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--cache", type=float, default=200.0, help="megabytes")
    parser.add_argument("--loss", default="hinge", choices=["hinge", "squared_hinge"])
    args = parser.parse_args()
    print("| data | rows | wall: one | two | ratio | caller: one | two | ratio |")
    print("|---" * 8 + "|")
    with threadpool_limits(1):
        for name in args.data:
            X, y = read(str(arrays(name)))
            X, y = X.astype(np.float32), np.where(y == y.max(), 1, -1)
            best = {1: (np.inf, np.inf), 2: (np.inf, np.inf)}
            models = {}
            for _ in range(args.repeats):
                for threads in (1, 2):
                    *times, models[threads] = fit(X, y, args, threads)
                    best[threads] = tuple(map(min, best[threads], times))
            assert np.array_equal(models[1], models[2])
            (wall, caller), (wall2, caller2) = best[1], best[2]
            print(
                f"| {name} | {X.shape[0]} | {wall:.3g} | {wall2:.3g} "
                f"| {wall / wall2:.2f} | {caller:.3g} | {caller2:.3g} "
                f"| {caller / caller2:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
