"""Kernel rows of the core beside the matrix product of NumPy, in one run.

    python benchmarks/kernel/tile.py [--data imdb]

Prints GFLOP/s (2 d flops a value, the exponential not counted) of one thread, the
best of several repetitions: float32 rows of n points for 256 queries, values of the
kernel included; the float64 product with coefficients; NumPy's float32 product alone,
``Q @ X.T``, on the same shapes. Of sparse data sets, nanoseconds a value, beside
SciPy's product of the same rows, that has no exponential.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from bench import arrays
from serving import read
from threadpoolctl import threadpool_limits

from dualgap import core


def best(work: Callable[[], object], repeat: int) -> float:
    """Least CPU seconds of a call."""
    times = []
    for _ in range(repeat):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def speeds(
    kernel: str, n: int, m: int, d: int, repeat: int
) -> tuple[float, float, float]:
    """GFLOP/s of rows, of the float64 product, and of NumPy's product."""
    rng = np.random.default_rng(0)
    stop = core.Stop()
    X = rng.standard_normal((n, d)).astype(np.float32)
    who = rng.permutation(n)[:m].astype(np.uint32)
    rows = core.KernelRows(
        core.dense_rows(X, 0.0), core.KernelMap(kernel, 1.0 / d, 0.5, 3), None, True, 1
    )
    out = np.zeros((m, -(-n // 32) * 32), np.float32)
    f, c = np.zeros(n), rng.standard_normal(m)
    Q, product = X[who], np.zeros((m, n), np.float32)
    flops = 2e-9 * n * m * d
    return (
        flops / best(lambda: rows.rows(who, out, stop), repeat),
        flops / best(lambda: rows.times(who, c, None, f, None, stop), repeat),
        flops / best(lambda: np.matmul(Q, X.T, out=product), repeat),
    )


def of_data(name: str, m: int, repeat: int) -> tuple[float, float, float]:
    """Nanoseconds a value of rows, of the float64 product, and of SciPy's product."""
    X, _ = read(str(arrays(name)))
    X, stop, n = X.astype(np.float32), core.Stop(), X.shape[0]
    who = np.random.default_rng(0).permutation(n)[:m].astype(np.uint32)
    accessor = core.csr_rows(X.data, X.indices, X.indptr, X.shape[1], 0.0)
    form = core.KernelMap("rbf", 1.0, 0.0, 1)
    rows = core.KernelRows(accessor, form, None, False, 1)
    out = np.zeros((m, -(-n // 32) * 32), np.float32)
    f, c, Q, T = np.zeros(n), np.ones(m), X[who], X.T.tocsr()
    nano = 1e9 / (n * m)
    return (
        nano * best(lambda: rows.rows(who, out, stop), repeat),
        nano * best(lambda: rows.times(who, c, None, f, None, stop), repeat),
        nano * best(lambda: Q @ T, repeat),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=30_000)
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument(
        "--kernels", nargs="+", default=["rbf"],
        choices=["linear", "poly", "rbf", "sigmoid", "laplacian"],
    )  # fmt: skip
    parser.add_argument("--data", nargs="+", help="sparse sets, in place of the shapes")
    options = parser.parse_args()
    n, m = options.n, options.queries
    if options.data:
        print(f"{core.variant}, {m} queries, one thread, nanoseconds a value")
        print(f"{'data':>10} {'rows':>6} {'times64':>8} {'scipy':>6}")
        for name in options.data:
            ours, sums, scipy = of_data(name, m, options.repeat)
            print(f"{name:>10} {ours:6.1f} {sums:8.1f} {scipy:6.1f}")
        return
    print(f"{core.variant}, n = {n}, {m} queries, one thread, GFLOP/s")
    print(f"{'kernel':>10} {'d':>4} {'rows':>6} {'times64':>8} {'numpy':>6}  ratio")
    for kernel in options.kernels:
        for d in (16, 22, 54, 123, 256, 300, 784):
            ours, sums, numpy = speeds(kernel, n, m, d, options.repeat)
            ratio = ours / numpy
            print(
                f"{kernel:>10} {d:4d} {ours:6.0f} {sums:8.0f} {numpy:6.0f} {ratio:6.2f}"
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
