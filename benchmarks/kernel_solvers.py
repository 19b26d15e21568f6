"""The kernel solvers side by side: steps and CPU seconds to a certified gap.

    python benchmarks/kernel_solvers.py [DATA ...] [--solvers NAME ...] [--tol 1e-3]

RBF kernel, gamma "scale", the paper's C = 10 (C = 5 here), float32 sparse rows. CPU
seconds of the whole fit, proofs and set-up included; the cache holds all rows that a
fit touches. On virtual machines the first touch of a page can cost more than the row
that it holds: `--touch 2` writes to 2 GB first, which stay with the process when
MALLOC_MMAP_MAX_=0 and MALLOC_TRIM_THRESHOLD_=1000000000000 are set.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from datasets import svmlight

from dualgap.kernel import (
    FW,
    MFW,
    RBF,
    SWAP,
    KernelProblem,
    SWAP2o,
    get_kernel_solver,
)
from dualgap.training import solve

DATA = {
    "a1a": "adult/a1a",
    "w1a": "web/w1a",
    "w6a": "web/w6a",
    "ijcnn1": "ijcnn1/ijcnn1",
    "a9a": "adult/a9a",
}
MOST_ROWS = 35_000
VARIANTS = {
    "swap-2o/paper": SWAP2o(ranking="paper"),
    "fw/60": FW(sample=60),
    "mfw/60": MFW(sample=60),
    "swap/60": SWAP(sample=60),
    "swap-2o/60": SWAP2o(sample=60),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=["a1a", "w1a", "w6a", "ijcnn1"])
    parser.add_argument(
        "--solvers",
        nargs="*",
        default=["fw", "mfw", "swap", "swap-2o", "swap-2o/paper", "core-vector"],
    )
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds a fit")
    parser.add_argument("--touch", type=float, default=0.0, help="gigabytes")
    arguments = parser.parse_args()
    np.ones(int(arguments.touch * 1e9), dtype=np.uint8)
    print("data solver status steps seconds gap support_vectors kernel_values")
    for name in arguments.data:
        X, y = svmlight(DATA[name])
        X, y = X[:MOST_ROWS].astype(np.float32), y[:MOST_ROWS]
        for solver in arguments.solvers:
            record = VARIANTS.get(solver) or get_kernel_solver(solver)
            begin = time.process_time()
            problem = KernelProblem(X, y, 5.0, kernel=RBF(), cache_size=2000)
            solution = solve(
                problem, record, tol=arguments.tol, time_limit=arguments.limit
            )
            seconds = time.process_time() - begin
            certificate = solution.certificate
            print(
                f"{name} {solver} {certificate.status.label} {certificate.updates} "
                f"{seconds:.3f} {certificate.relative_gap:.1e} "
                f"{np.count_nonzero(solution.alpha)} "
                f"{problem.gram.statistics.evaluations:.2e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
