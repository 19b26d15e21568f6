"""Cost of an epoch, in plain matrix-vector products over the same data.

    python benchmarks/epoch_cost.py [DATA ...] [--repeats 7] [--solvers NAME ...]

For every solver: the first epoch (all rows active, most of them updated) and the
mean of the next four, beside SciPy's CSR product (NumPy's for dense rows) and one
epoch of LIBLINEAR's DCD (`liblinear-official`, if installed; measured as the slope
between runs of 1 and 5 epochs, for its set-up copies the data). CPU seconds of one
thread, product and epoch measured in turn; figures are ratios, median and range.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from datasets import load
from scipy import sparse
from threadpoolctl import threadpool_limits

from dualgap import core
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import SOLVERS, get_solver


def product_seconds(X, w) -> float:
    """One product X w."""
    begin = time.thread_time()
    X @ w
    return time.thread_time() - begin


def epoch_seconds(problem: Problem, name: str, seed: int, epochs: int = 5):
    """CPU seconds of the first epoch and mean of the others, estimate included."""
    solver = get_solver(name)
    state = solver.start(problem, core.Random(seed), None)
    stop, seconds = core.Stop(), []
    for _ in range(epochs):
        begin = time.thread_time()
        solver.step(state, stop)
        seconds.append(time.thread_time() - begin)
    return seconds[0], statistics.mean(seconds[1:])


def liblinear_epoch(X, y) -> float | None:
    """CPU seconds of one epoch of LIBLINEAR -s 3, from its own epoch count."""
    try:
        import liblinear  # noqa: F401
    except ImportError:
        return None
    script = r"""
import os, sys, time
import numpy as np, scipy.sparse as sp
from liblinear.liblinearutil import problem, parameter, train
z = np.load(sys.argv[1])
X = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), z["shape"])
p = problem(z["y"], X)
for eps in (1e9, 1.0, 0.5):
    sys.stdout.flush()
    begin = time.process_time()
    train(p, parameter(f"-s 3 -c 1 -e {eps}"))
    sys.stdout.flush()
    os.write(1, f"\nseconds {time.process_time() - begin}\n".encode())
"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data.npz")
        np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr,
                 shape=X.shape, y=y)  # fmt: skip
        run = subprocess.run(
            [sys.executable, "-c", script, path], capture_output=True, text=True
        )
    points, epochs = [], None
    for line in run.stdout.splitlines():
        if "#iter = " in line:
            epochs = int(line.split("#iter = ")[1])
        if line.startswith("seconds") and epochs is not None:
            points.append((epochs, float(line.split()[1])))
            epochs = None
    if len({epochs for epochs, _ in points}) < 2:
        return None
    (e0, s0), (e1, s1) = min(points), max(points)
    return (s1 - s0) / (e1 - e0)


def measure(name: str, repeats: int, solvers: list[str]) -> dict[str, object]:
    """Ratios of one data set."""
    X, y = load(name)
    problem = Problem(X, y, 1.0)
    w = np.random.default_rng(0).standard_normal(X.shape[1])
    ratios: dict[str, list[float]] = {}
    for repeat in range(repeats):
        for solver in solvers:
            before = min(product_seconds(X, w) for _ in range(3))
            first, rest = epoch_seconds(problem, solver, repeat)
            after = min(product_seconds(X, w) for _ in range(3))
            base = (before + after) / 2
            ratios.setdefault(f"{solver} first", []).append(first / base)
            ratios.setdefault(f"{solver} next", []).append(rest / base)
        rival = liblinear_epoch(X, y) if sparse.issparse(X) and repeat < 3 else None
        if rival is not None:
            ratios.setdefault("LIBLINEAR epoch", []).append(rival / base)
    stored = X.nnz if sparse.issparse(X) else X.size
    size = stored * (12 if sparse.issparse(X) else 8) / 2**20
    return {"data": name, "n": X.shape[0], "stored": int(stored), "MiB": round(size, 1),
            "product_ms": 1e3 * base, "ratios": ratios}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["imdb", "rcv1-like", "a9a"])
    parser.add_argument("--repeats", type=int, default=5)
    # A Newton step or an iteration of interior point is no pass over the rows.
    others = ("auto", "newton", "interior-point")
    passes = [name for name in SOLVERS if name not in others]
    parser.add_argument("--solvers", nargs="+", choices=passes, default=passes)
    parser.add_argument("--json")
    args = parser.parse_args()
    results = []
    for name in args.data:
        with threadpool_limits(1):  # NumPy's product of dense rows is threaded
            result = measure(name, args.repeats, args.solvers)
        results.append(result)
        print(f"\n{name}: n = {result['n']:,}, {result['MiB']:,} MiB; "
              "1 = one plain product over the same data\n")  # fmt: skip
        print(f"| {'pass':18} | median | range |\n|---|---|---|")
        for key, values in result["ratios"].items():
            spread = f"{min(values):.2f} to {max(values):.2f}"
            print(f"| {key:18} | {statistics.median(values):.2f} | {spread} |")
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"core": core.variant, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
