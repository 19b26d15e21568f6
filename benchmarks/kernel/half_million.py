"""The block solver on up to a million rows, with a cache of 1 GB that is kept.

    python benchmarks/kernel/half_million.py [kdd99 donors checkerboard] [--threads 1]
    python benchmarks/kernel/half_million.py --cache 200 --limit 4000 \
        surface:50000 surface:100000 surface:200000 surface:400000 surface:1000000
    python benchmarks/kernel/half_million.py --compress 5000 surface:1000000

Hinge with a free bias, RBF, C = 10, a gap of 1e-3 proved in float64, at most --limit
seconds a fit, each in a process of its own. gamma is "scale", for the checkerboard (4 x
4 fields in the unit square) four times that. surface:N has N rows of 18 columns, two
classes with a curved boundary in much noise, and C = 1. "beside the data": the most
resident memory of the process less what it held when the problem was built, in MB: the
cache, packed rows, and all else that the fit needs. "floor": every support vector meets
every row once, 2 n nSV d operations at the rate that NumPy's product of float32
matrices reaches in the same process. With --compress, `compress` makes the model of an
`SVC` smaller; both predict 20,000 new rows.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np
from bench import load_set
from phases import gemm_rate
from scipy import sparse
from threadpoolctl import threadpool_limits

from dualgap import SVC, compress
from dualgap.kernel import RBF, BlockSolver, KernelProblem
from dualgap.training import solve

HEAD = ["rows", "features", "wall s", "processor s", "gap proved", "nSV",
        "rows computed", "rows of the cache", "beside the data, MB",
        "over the floor"]  # fmt: skip


SMALLER = ["processor s", "gap", *["nSV", "prediction, processor s", "accuracy"] * 2]


def load(name: str, seed: int = 0):
    """X in float32, y, and how many times gamma "scale"."""
    if name == "checkerboard":
        random = np.random.default_rng(0)
        X = random.random((500_000, 2), dtype=np.float32)
        y = np.where(np.floor(4.0 * X).sum(axis=1) % 2 == 0, 1, -1)
        return X, y, 4.0
    if name.startswith("surface:"):
        random, n = np.random.default_rng(seed), int(name.removeprefix("surface:"))
        X = random.standard_normal((n, 18), dtype=np.float32)
        height = X[:, 0] * X[:, 1] - X[:, 2] ** 2 + X[:, 3] + 1.0
        height += np.sin(2.0 * X[:, 4]) * X[:, 5]
        noise = 1.2 * random.standard_normal(n, dtype=np.float32)
        return X, np.where(height + noise > 0.0, 1, -1), 1.0
    X, y = load_set(name)
    if sparse.issparse(X) and X.nnz >= 0.5 * X.shape[0] * X.shape[1]:
        X = X.toarray()
    return X.astype(np.float32), np.where(y == y.max(), 1, -1), 1.0


def fit(name: str, args) -> None:
    X, y, times = load(name)
    C = 1.0 if name.startswith("surface:") else 10.0
    gamma = times * RBF("scale").resolve(X).gamma
    page = resource.getpagesize() / 1e6
    with threadpool_limits(1):
        rate = gemm_rate()
        problem = KernelProblem(
            X, y, C, kernel=RBF(gamma), loss="hinge", cache_size=args.cache,
            penalize_intercept=False,
        )  # fmt: skip
        solver = _Kept(threads=args.threads)
        with open("/proc/self/statm") as file:
            before = int(file.read().split()[1]) * page
        wall, spent = time.perf_counter(), time.process_time()
        solution = solve(problem, solver, tol=1e-3, time_limit=args.limit)
        wall, spent = time.perf_counter() - wall, time.process_time() - spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    (n, d), support = X.shape, int(np.count_nonzero(solution.alpha))
    floor = 2.0 * n * support * d / rate
    gap = solution.certificate.relative_gap
    state = STATES[-1]
    row = [n, d, f"{wall:.3g}", f"{spent:.3g}", f"{gap:.1e}", support, state.computed,
           state.block.capacity, f"{peak - before:.0f}",
           f"{spent / floor:.3g}"]  # fmt: skip
    print("|", name, "|", " | ".join(map(str, row)), "|", flush=True)


def smaller(name: str, args) -> None:
    X, y, _ = load(name)
    new, labels, _ = load("surface:20000", seed=1)
    model = SVC(gamma="scale", cache_size=args.cache, random_state=0)
    model.fit(X, y)
    spent = time.process_time()
    few = compress(model, X, y, max_support=args.compress)
    row = [f"{time.process_time() - spent:.3g}", f"{few.certificate_.relative_gap:.1e}"]
    for one in (model, few):
        spent = time.process_time()
        score = one.score(new, labels)
        spent = time.process_time() - spent
        row += [len(one.support_), f"{spent:.2g}", f"{score:.4f}"]
    print("|", name, "|", " | ".join(map(str, row)), "|", flush=True)


STATES: list = []


class _Kept(BlockSolver):
    """Lets the state be looked at after the fit."""

    def start(self, problem, rng, warm):
        STATES.append(super().start(problem, rng, warm))
        return STATES[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["kdd99", "donors", "checkerboard"])
    parser.add_argument("--cache", type=float, default=1000.0, help="megabytes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of a fit")
    parser.add_argument("--compress", type=int, help="support vectors to keep")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        return (smaller if args.compress else fit)(args.one, args)
    head = SMALLER if args.compress else HEAD
    print("| data |", " | ".join(head), "|")
    print("|---" * (1 + len(head)) + "|", flush=True)
    for name in args.data:
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--one", name],
                       check=True)  # fmt: skip


if __name__ == "__main__":
    main()
