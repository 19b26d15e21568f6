"""Measure what the checksums of a store cost beside a pass of training over it.

    python benchmarks/trust/checksum_cost.py --gb 0.5 --folder /path/with/2/GB

The set of ``benchmarks/scale/out_of_core.py``, in the system's file cache. Each line is
one way to read it. It has the seconds of the first pass of `dcd` (one sweep; reading,
looking at every entry and the sweep itself) with the checksums compared and with all of
them marked as compared, and of a later pass. Each figure is the least of turns that
alternate, on all processors and on one. "Added" is relative to the first pass without;
"in checks" is the processor time of the comparisons alone, relative to the first pass.
Before that, reading alone is measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "scale"))
from out_of_core import batches

from dualgap import core
from dualgap.data import RowStore, convert
from dualgap.data.description import PIECE
from dualgap.data.files import StoredArray
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD
from dualgap.training import solve


class Spent:
    """Processor seconds in comparisons."""

    seconds = 0.0


def timed(check):
    def run(*arguments):
        begun = time.thread_time()
        check(*arguments)
        Spent.seconds += time.thread_time() - begun

    return run


def first_passes(store: RowStore, mapped: bool) -> tuple[float, ...]:
    """Seconds of the first pass, processor seconds of it, seconds of the second, share
    of comparisons in the first."""
    Spent.seconds = 0.0
    wall, used, ends = time.perf_counter(), time.process_time(), []

    def note(info):
        ends.append((time.perf_counter() - wall, time.process_time() - used))

    X = store.matrix() if mapped else store
    problem = Problem(X, np.where(store.y > 0, 1, -1), 1e-3)
    solver = DCD(block_sweeps=1, acceleration="none")
    solve(problem, solver, max_iter=2, tol=1e-12, on_epoch=note)
    return (
        ends[0][0], ends[0][1], ends[1][0] - ends[0][0], Spent.seconds / ends[0][1]
    )  # fmt: skip


def reading(path: str, checked: bool, buffer: int) -> float:
    """Processor seconds of reading all blocks in order, and of nothing else."""
    store, slot = opened(path, checked, buffer), {}
    begun = time.thread_time()
    for spans in store._consecutive():
        store._load(spans, slot)
    return time.thread_time() - begun


def opened(path: str, checked: bool, buffer: int) -> RowStore:
    store = RowStore.open(path, buffer=buffer)
    if not checked:
        for array in store._arrays.values():
            array.seen[:] = True
    return store


def turn(path: str, checked: bool, mapped: bool, buffer: int):
    return first_passes(opened(path, checked, buffer), mapped)


def main(argv=None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gb", type=float, default=0.5)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--folder")
    given = parser.parse_args(argv)
    StoredArray._compare = timed(StoredArray._compare)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        store = convert(batches(int(given.gb * 1e9 / 12)), f"{folder}/store")
        size = store.nnz * store.entry_bytes
        data = np.ones(2**19, np.uint8)
        speed = 0.0
        for _ in range(200):
            begun = time.perf_counter()
            for _ in range(10):
                core.crc32c_segments(data, PIECE)
            speed = max(speed, 10 * len(data) / (time.perf_counter() - begun))
        print(f"{size / 1e9:.2f} GB; a checksum {speed / 1e9:.1f} GB/s in the cache")
        alone = {
            c: min(reading(store.path, c, size // 4) for _ in range(3 * given.turns))
            for c in (True, False)
        }
        print(
            f"reading it out of the file cache, processor time: {alone[False]:.4f} s, "
            f"with checksums {alone[True]:.4f} s"
        )
        print("| processors | store | first pass, s | without | added | added, "
              "processor time | in checks | a later pass, s |")  # fmt: skip
        print("|---|---|---|---|---|---|---|---|")
        processors = sorted(os.sched_getaffinity(0))
        for some in (processors, processors[:1]):
            os.sched_setaffinity(0, some)
            for name, mapped, buffer in (
                ("streamed, buffer of a quarter", False, size // 4),
                ("held in memory", False, 2 * size + 2**28),
                ("mapped", True, 2**28),
            ):
                found = {True: [], False: []}
                for k in range(2 * given.turns):
                    found[k % 2 == 0].append(
                        turn(store.path, k % 2 == 0, mapped, buffer)
                    )
                with_, without = (
                    [min(column) for column in zip(*found[c], strict=True)]
                    for c in (True, False)
                )
                print(
                    f"| {len(some)} | {name} | {with_[0]:.3f} | {without[0]:.3f} | "
                    f"{with_[0] / without[0] - 1:+.1%} | "
                    f"{with_[1] / without[1] - 1:+.1%} | {with_[3]:.1%} | "
                    f"{without[2]:.3f} |",
                    flush=True,
                )
        os.sched_setaffinity(0, processors)


if __name__ == "__main__":
    sys.exit(main())
