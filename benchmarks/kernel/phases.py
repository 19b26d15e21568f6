"""Time of the phases of a fit of the block solver, and its distance to the floor.

    python benchmarks/kernel/phases.py [DATA ...] [--C 10] [--cache 200] [--loss hinge]
                                       [--no-rest] [--whole]

RBF, gamma "scale", a proved gap of 1e-3, processor seconds of one thread. "floor":
every support vector meets every row once, 2 n nSV d operations at the rate that
NumPy's product of float32 matrices reaches in the same process.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from bench import arrays
from serving import read
from threadpoolctl import threadpool_limits

from dualgap import core
from dualgap.kernel import RBF, BlockSolver, KernelProblem
from dualgap.solvers.kernel.block import BlockState

EPS = 1e-3


def gemm_rate() -> float:
    """Operations a second of NumPy's product, float32, one thread."""
    A = np.ones((2048, 2048), np.float32)
    best = np.inf
    for _ in range(3):
        begin = time.thread_time()
        A @ A
        best = min(best, time.thread_time() - begin)
    return 2.0 * 2048**3 / best


def fit(problem: KernelProblem, solver: BlockSolver, limit: float) -> dict[str, float]:
    """Seconds by phase, as the loop goes: steps until the estimate says so, a proof."""
    stop = core.Stop()
    begin = time.thread_time()
    state = solver.start(problem, core.Random(0), None)
    proof_seconds, gap, proofs = 0.0, np.inf, 0
    while gap > EPS and time.thread_time() - begin < limit:
        solver.step(state, stop)
        primal, dual = solver.estimate(state)
        if primal - dual > solver.check_factor * EPS * dual:
            continue
        proof = time.thread_time()
        found = problem.prove(solver.claim(state))
        gap, proofs = found.certificate.relative_gap, proofs + 1
        proof_seconds += time.thread_time() - proof
        if gap > EPS:
            solver.reject(state)
    total = time.thread_time() - begin
    support = int(np.count_nonzero(state.alpha()))
    return {"total": total, "proof": proof_seconds, "proofs": proofs, "gap": gap,
            "nSV": support, **state.seconds}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["ijcnn1", "w8a", "a9a"])
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--cache", type=float, default=200.0, help="megabytes")
    parser.add_argument("--loss", default="hinge", choices=["hinge", "squared_hinge"])
    parser.add_argument("--no-rest", action="store_true", help="no row rests")
    parser.add_argument("--whole", action="store_true", help="proofs scan all rows")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds")
    args = parser.parse_args()
    solver = BlockSolver()
    if args.no_rest:
        solver = solver._with_settings(shrinking_rows=math.inf)
    if args.whole:
        BlockState.near = lambda state, stop=None: None
    with threadpool_limits(1):
        rate, heads = gemm_rate(), None
        for name in args.data:
            X, y = read(str(arrays(name)))
            problem = KernelProblem(
                X.astype(np.float32), np.where(y == y.max(), 1, -1), args.C,
                kernel=RBF("scale"), loss=args.loss,
                cache_size=args.cache, penalize_intercept=args.loss != "hinge",
            )  # fmt: skip
            found = fit(problem, solver, args.limit)
            n, d = X.shape
            floor = 2.0 * n * found["nSV"] * d / rate
            found["over the floor"] = found["total"] / floor
            if heads is None:
                heads = list(found)
                print("| data, C, cache |", " | ".join(heads), "|")
                print("|---" * (1 + len(heads)) + "|")
            shown = " | ".join(f"{found[key]:.3g}" for key in heads)
            how = ", none rests" * args.no_rest + ", whole proofs" * args.whole
            print(
                f"| {name}, {args.C:g}, {args.cache:g} MB{how} | {shown} |", flush=True
            )
    print(f"\nNumPy's product: {rate / 1e9:.0f} GFLOP/s")


if __name__ == "__main__":
    main()
