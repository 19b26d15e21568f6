"""One versus one: pairs that share kernel rows, beside one kernel matrix per pair.

    python benchmarks/kernel_pairs.py [SET ...] [--repeats R]

Seconds (the least of R fits) of `SVC` with C = 10, a Gaussian kernel of gamma "scale"
and a relative gap of 1e-3, with one and with two threads; the two ways take turns.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from dualgap import SVC
from dualgap.kernel import Gram
from dualgap.kernels.gram import Pairs
from dualgap.papers.nanculef_data import load, some
from dualgap.problems import kernel_batch


class Own(Pairs):
    """A matrix for each pair, with the whole part of the cache that a thread has."""

    def __init__(self, X, kernel, bounds, cache_size, threads, order) -> None:
        self.X, self.kernel, self.bounds = X, kernel, bounds
        self.cache_size = cache_size / threads

    def pair(self, a: int, b: int) -> Gram:
        """Return the kernel matrix of a pair, as :class:`Pairs` does."""
        return Gram(self.X[self.rows(a, b)], self.kernel, self.cache_size)


def seconds(way: type[Pairs], X, y, threads: int, cache: float) -> tuple[float, float]:
    """Wall and CPU seconds of a fit."""
    kernel_batch.Pairs = way
    # A method that takes its rows one by one from the shared segments.
    model = SVC(
        C=10, loss="squared_hinge", solver="swap-2o", random_state=0, n_jobs=threads,
        cache_size=cache,
    )  # fmt: skip
    begun = time.perf_counter(), time.process_time()
    model.fit(X, y)
    assert model.fit_status_ == 0
    return time.perf_counter() - begun[0], time.process_time() - begun[1]


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=["pendigits", "usps", "letter"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-rows", type=int, default=10**9)
    parser.add_argument("--cache", type=float, default=200.0, help="megabytes")
    args = parser.parse_args()
    print(
        "| set | rows | threads | shared, wall / CPU | own, wall / CPU | own/shared |"
    )
    print("|---" * 6 + "|")
    for name in args.sets:
        X, y = some(*load(name)[:2], args.max_rows)
        for threads in (1, 2):
            found = np.array(
                [
                    [seconds(way, X, y, threads, args.cache) for way in (Pairs, Own)]
                    for _ in range(args.repeats)
                ]
            ).min(axis=0)
            (shared, cpu), (own, own_cpu) = found
            print(
                f"| {name} | {len(y)} | {threads} | {shared:.2f} / {cpu:.2f} | "
                f"{own:.2f} / {own_cpu:.2f} | "
                f"{own / shared:.2f} / {own_cpu / cpu:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
