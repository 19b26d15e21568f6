"""Distance of the bound of Nystroem features from the kernel problem's optimum.

    python benchmarks/kernel/landmarks.py [ijcnn1 a9a] [--C 10] [--landmarks 300]

RBF, gamma "scale", the hinge with a free bias: P of the model that the landmarks span,
P* of the kernel problem (dualgap's dual value at a gap of 1e-4), and the lower bound
that `Approximation.bound` proves from the duals of the features.
"""

from __future__ import annotations

import argparse

import numpy as np
from bench import arrays
from serving import read
from threadpoolctl import threadpool_limits

from dualgap.kernel import RBF, BlockSolver, KernelProblem, Nystroem
from dualgap.solvers import Auto
from dualgap.training import solve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["ijcnn1", "a9a"])
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--landmarks", type=int, default=300)
    args = parser.parse_args()
    print("| data, rows | P of the model | P* | lower bound |\n|---|---|---|---|")
    with threadpool_limits(1):
        for name in args.data:
            X, y = read(str(arrays(name)))
            problem = KernelProblem(
                X, np.where(y == y.max(), 1, -1), args.C, kernel=RBF("scale"),
                loss="hinge", penalize_intercept=False,
            )  # fmt: skip
            features = Nystroem(args.landmarks).approximate(problem)
            model = solve(features, Auto(), tol=1e-3)
            bound = features.bound(model.w, model.alpha)
            best = solve(problem, BlockSolver(), tol=1e-4).certificate
            print(f"| {name}, {problem.n} | {bound.primal:.0f} | {best.dual:.0f} | "
                  f"{bound.dual:.0f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
