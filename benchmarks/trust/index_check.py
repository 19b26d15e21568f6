"""Cost of checking every index, and of the proof's bounds on rounding.

    python benchmarks/trust/index_check.py rcv1-like a9a kdd99

Processor time of one thread, medians of 5. An index is checked in the pass that also
finds the norms and looks for NaN (`inspect` in src/core/rows.hpp). That whole pass is
timed, and the same pass over rows whose indices need no check, for they are dense. That
is what the norms alone would cost. The share is of a `LinearSVC().fit`, conversions and
proof included.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from datasets import load
from scipy import sparse

from dualgap import LinearSVC, core
from dualgap.problems import BinaryProblem as Problem

REPEATS = 5

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("data", nargs="*", default=["rcv1-like", "a9a", "kdd99"])
parser.add_argument("--C", type=float, default=1.0)


def seconds(work, least: float = 0.2) -> float:
    """Median processor time of one call, after one that warms up."""
    work()
    times = []
    for _ in range(REPEATS):
        calls, begun = 0, time.process_time()
        while (spent := time.process_time() - begun) < least or not calls:
            work()
            calls += 1
        times.append(spent / calls)
    return statistics.median(times)


def main() -> None:
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | rows | entries | whole pass, ns an entry | norms alone | "
          "check / fit, tol 1e-2 | 1e-3 | proof / plain pass |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.data:
        X, y = load(name)[:2]
        X = sparse.csr_matrix(X)
        rows = core.csr_rows(X.data, X.indices, X.indptr, X.shape[1], 0.0)
        q = np.empty(rows.n)
        whole = seconds(lambda rows=rows, q=q: rows.inspect(q))
        # As many values in rows about as long, without indices.
        long = max(X.nnz // rows.n, 1)
        values = X.data[: X.nnz // long * long].reshape(-1, long)
        dense = core.dense_rows(np.ascontiguousarray(values), 0.0)
        norms = np.empty(dense.n)
        alone = seconds(lambda dense=dense, norms=norms: dense.inspect(norms))
        shares = []
        for tol in (1e-2, 1e-3):
            model = LinearSVC(loss="hinge", C=arguments.C, tol=tol, random_state=0)
            fit = seconds(lambda m=model, X=X, y=y: m.fit(X, y))
            shares.append(f"{100 * max(whole - alone, 0.0) / fit:.2g} %")
        sign = np.where(y == y.max(), 1, -1)
        problem = Problem(X, sign, arguments.C)
        w = np.random.default_rng(0).standard_normal(problem.width)
        proof = seconds(lambda p=problem, w=w: p.primal(w))
        plain = seconds(lambda X=X, w=w: X @ w)
        per = 1e9 / X.nnz
        print(f"| {name} | {rows.n:,} | {X.nnz:,} | {whole * per:.2f} | "
              f"{alone * per:.2f} | {shares[0]} | {shares[1]} | {proof / plain:.2f} |",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
