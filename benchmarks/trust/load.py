"""Many fits in one process, a long stream, many threads: no growth, the same bits.

    python benchmarks/trust/load.py fits --count 10000
    python benchmarks/trust/load.py stream --batches 86400
    python benchmarks/trust/load.py threads --threads 64

fits      Small fits of every kind one after the other (dense, sparse, streamed,
          classes, kernels, checkpoints, model files). Resident memory, threads and open
          files are looked at ten times; after the first tenth they may not grow.
stream    `partial_fit` of --batches batches of 16 rows; 86400 is one a second, all day.
          Memory may grow by what is kept of a batch, its duals and what tells it from
          others: 640 bytes at most, 128 of them duals. Calls may not become slower.
threads   --threads Python threads fit small problems at once, and then one fit has
          n_jobs of it. Every fit has the bits that it has alone; threads go away.

Each prints one line of JSON, and fails if what must hold does not.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import threading
import time
import warnings

import numpy as np
from scipy import sparse

from dualgap import SVC, LinearSVC, load_model, save_model
from dualgap.data import RowStore, convert

#: MB that resident memory may grow by: what the allocator leaves in pieces.
SLACK = 6.0


def resident() -> float:
    """Resident memory in MB (Linux)."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def native_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def rows(n, d, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ rng.normal(size=d) + 0.3 * np.sqrt(d) * rng.normal(size=n)
    edges = np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1])
    return X, np.digitize(score, edges)


def kinds_of_fits(folder):
    """Functions that fit something small and return its numbers."""
    X, y = rows(100, 500)
    several = np.digitize(X[:, 0], [-0.5, 0.5])
    S = sparse.csr_matrix(X * (np.abs(X) > 1.5))
    store = convert([rows(1000, 20)], f"{folder}/store").path
    quick = {"tol": 0.1, "C": 0.01, "loss": "hinge"}

    def linear(rows=X, labels=y, **options):
        return LinearSVC(**(quick | options)).fit(rows, labels).coef_

    def checkpointed():
        path = f"{folder}/checkpoint"
        found = linear(solver="dcd", checkpoint=path, checkpoint_every=1e-9)
        os.remove(path)
        return found

    def written():
        save_model(LinearSVC(**quick).fit(S, y), f"{folder}/model")
        return load_model(f"{folder}/model").coef_

    def stopped():
        return linear(C=100.0, tol=1e-12, max_iter=3)

    return [
        lambda: linear(solver="dcd"),
        lambda: linear(S, n_jobs=2),
        lambda: linear(X[:, :20], solver="interior-point"),
        lambda: linear(X[:, :20], loss="squared_hinge", n_jobs=2),
        lambda: linear(X, several, n_jobs=2),
        lambda: linear(S, solver="ocas"),
        lambda: linear(S, solver="sgd-r", tol=0.5),
        lambda: SVC(tol=0.1, random_state=0).fit(X[:60, :20], several[:60]).dual_coef_,
        lambda: linear(RowStore.open(store, buffer=2**16), None, max_iter=2),
        checkpointed,
        written,
        stopped,
    ]


def fits(count: int, **_: int) -> dict:
    """Fits one after the other; what grows?"""
    with tempfile.TemporaryDirectory() as folder:
        kinds = kinds_of_fits(folder)
        first = [kind().tobytes() for kind in kinds]
        begun = time.perf_counter()
        seen = []
        for k in range(count):
            if kinds[k % len(kinds)]().tobytes() != first[k % len(kinds)]:
                raise SystemExit(f"fit {k} differs from the first of its kind")
            if (k + 1) % (count // 10) == 0:
                seen.append((resident(), native_threads(), open_files()))
        seconds = time.perf_counter() - begun
    memory, threads, files = zip(*seen, strict=True)
    found = {
        "fits": count, "seconds": round(seconds, 1),
        "resident MB": [round(mb, 1) for mb in memory],
        "threads": threads[-1], "open files": files[-1],
    }  # fmt: skip
    grown = max(memory[1:]) - memory[0]
    if grown > SLACK or max(threads) > threads[0] or max(files) > files[0]:
        raise SystemExit(f"something grew: {found}")
    return found


def stream(batches: int, **_: int) -> dict:
    """`partial_fit` of many batches; its memory, its model and the time of a call."""
    rng = np.random.default_rng(0)
    d = 100
    direction = rng.normal(size=d)

    def call(model) -> float:
        X = rng.normal(size=(16, d))
        y = X @ direction + rng.normal(size=16) > 0
        begun = time.process_time()
        model.partial_fit(X, y, classes=[False, True])
        return time.process_time() - begun

    model = LinearSVC(C=1.0)
    begun, seen, spent = time.perf_counter(), [], []
    for k in range(batches):
        spent.append(call(model))
        if (k + 1) % (batches // 10) == 0:
            seen.append(resident())
    seconds = time.perf_counter() - begun
    angle = np.degrees(np.arccos(
        (model.coef_[0] @ direction)
        / np.linalg.norm(model.coef_[0]) / np.linalg.norm(direction)
    ))  # fmt: skip
    fresh = LinearSVC(C=1.0)
    pairs = np.array([(call(model), call(fresh)) for _ in range(1000)])
    late, early = np.median(pairs, axis=0)
    tenths = np.array_split(np.array(spent), 10)
    found = {
        "batches": batches, "seconds": round(seconds, 1),
        "median processor ms of a call, by tenths":
        [round(1e3 * float(np.median(part)), 3) for part in tenths],
        "afterwards, beside a new model": [round(1e3 * t, 3) for t in (late, early)],
        "resident MB": [round(mb, 1) for mb in seen],
        "bytes a batch": round((seen[-1] - seen[0]) / (0.9e-6 * batches)),
        "angle": float(angle),
    }  # fmt: skip
    if max(seen[1:]) - seen[0] > SLACK + 640e-6 * batches:
        raise SystemExit(f"memory grew: {found}")
    if late > 1.2 * early:
        raise SystemExit(f"calls became slower: {found}")
    return found


def threads(threads: int, **_: int) -> dict:
    """Fits in as many threads at once, and one fit that has as many."""
    X, y = rows(120, 20, classes=3)
    folder = tempfile.TemporaryDirectory()
    kinds = kinds_of_fits(folder.name)[:-3]  # without those that write a file
    alone = [fit().tobytes() for fit in kinds]
    before, faults = native_threads(), []
    gate = threading.Barrier(threads)

    def work(k):
        try:
            gate.wait()
            for place in range(k, k + len(kinds)):  # others at once
                if kinds[place % len(kinds)]().tobytes() != alone[place % len(kinds)]:
                    faults.append(f"thread {k}, kind {place % len(kinds)}: other bits")
        except BaseException as error:
            faults.append(repr(error))

    begun = time.perf_counter()
    workers = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    folder.cleanup()
    together = time.perf_counter() - begun
    begun, most = time.perf_counter(), []
    S = sparse.csr_matrix(X)
    for solver in ("auto", "dcd", "interior-point", "ocas"):
        for matrix in (X, S, X[:5]):
            labels = y[: matrix.shape[0]] if matrix.shape[0] > 5 else [0, 1, 2, 0, 1]
            models = [
                LinearSVC(C=0.1, loss="hinge", solver=solver, n_jobs=threads).fit(
                    matrix, labels
                )
                for _ in range(2)
            ]
            if models[0].coef_.tobytes() != models[1].coef_.tobytes():
                faults.append(f"{solver}, n_jobs={threads}: other bits")
            most += [c.relative_gap for c in models[0].certificate_]
    kernel = SVC(n_jobs=threads).fit(X, y)
    many = time.perf_counter() - begun
    patience = time.monotonic() + 30.0  # threads end after they are joined
    while native_threads() > before and time.monotonic() < patience:
        time.sleep(0.1)
    after = native_threads()
    if faults or max(most) > 1e-3 or kernel.fit_status_ or after > before:
        raise SystemExit(f"{faults}, gap {max(most)}, {before} threads, then {after}")
    return {
        "threads": threads, "fits at once": len(kinds) * threads,
        "seconds": round(together, 1), "seconds with n_jobs": round(many, 1),
        "threads left": after - before,
    }  # fmt: skip


RUNS = {"fits": fits, "stream": stream, "threads": threads}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=RUNS)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=86_400)
    parser.add_argument("--threads", type=int, default=64)
    given = vars(parser.parse_args())
    if not sys.platform.startswith("linux"):
        raise SystemExit("needs /proc")
    warnings.simplefilter("ignore")
    print(json.dumps(RUNS[given.pop("what")](**given)))


if __name__ == "__main__":
    main()
