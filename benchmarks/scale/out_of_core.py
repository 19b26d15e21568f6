"""Convert and fit more data than the memory allowed, beside SGDClassifier.partial_fit.

    python benchmarks/scale/out_of_core.py --gb 20 --folder /path/with/space

A synthetic set in the shape of text (Zipf columns, unit rows, float32, noisy labels) of
so many GB on the disk. Every step runs in a process of its own whose address space is
limited (RLIMIT_AS) to a quarter of that, the interpreter and its libraries included:
these take half a GB, so that for less than 5 GB `--libraries 500` has to add it.
The limit does not bind the system's file cache: `--drop` asks it to forget the store
before each step. scikit-learn's SGDClassifier reads the same store in batches.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ROW, D = 80, 200_000  # entries of a row, columns


def batches(entries: int, seed: int = 0):
    import numpy as np
    from scipy import sparse

    direction = np.random.default_rng(seed).standard_normal(D)
    m = 20_000
    for k in range(entries // (ROW * m)):
        rng = np.random.default_rng([seed, k])
        columns = (D ** rng.random((m, ROW))).astype(np.int32) % D
        values = (1.0 + rng.exponential(size=(m, ROW))) * np.log1p(columns)
        pointers = np.arange(0, m * ROW + 1, ROW)
        X = sparse.csr_matrix((values.ravel(), columns.ravel(), pointers), (m, D))
        X.sum_duplicates()
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X.data /= np.repeat(norms, np.diff(X.indptr))
        score = X @ direction
        yield X, score + 0.3 * score.std() * rng.standard_normal(m) > 0


def forget(store) -> None:
    """Ask the system to drop its copies of the store's files."""
    for name in store.dtypes:
        with open(store.file(name), "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def step_convert(path: str, options: dict) -> dict:
    from dualgap.io import convert

    entries = int(options["gb"] * 1e9 / 8)
    store = convert(
        batches(entries), path, dtype="float32", memory=options["limit"] // 4, n_jobs=2
    )
    return {"rows": len(store), "nnz": store.nnz, "features": store.n_features}


def step_read(path: str, options: dict) -> dict:
    """The blocks of one pass, and nothing done with them."""
    from dualgap.io import RowStore

    store = RowStore.open(path, buffer=options["buffer"])
    seconds = []
    for _ in range(2):
        if options["drop"]:
            forget(store)
        begun = time.perf_counter()
        for _ in store.read(0.0):
            pass
        seconds.append(time.perf_counter() - begun)
    return {"pass": min(seconds), "bytes": store.nnz * store.entry_bytes}


def step_fit(path: str, options: dict) -> dict:
    import warnings

    import numpy as np

    from dualgap import LinearSVC
    from dualgap.io import RowStore
    from dualgap.solvers import DCD

    store = RowStore.open(path, buffer=options["buffer"])
    if options["drop"]:
        forget(store)
    warnings.simplefilter("ignore")
    sweeps = options["sweeps"] or "auto"
    model = LinearSVC(
        C=options["C"], tol=options["tol"], random_state=0, fit_intercept=False,
        solver=DCD(block_sweeps=sweeps), max_epochs=100,
    ).fit(store)  # fmt: skip
    np.save(f"{path}.coef.npy", model.coef_)
    epochs = np.diff(model.history_["seconds"], prepend=0.0)
    exact = model.history_["exact"]
    c = model.certificate_
    return {
        "primal": c.primal, "dual": c.dual, "gap": c.relative_gap, "epochs": c.epochs,
        "status": c.status.label, "seconds in epochs and proofs": c.seconds,
        "median epoch": float(np.median(epochs[~exact])), "proofs": int(exact.sum()),
    }  # fmt: skip


def step_sklearn(path: str, options: dict) -> dict:
    import numpy as np
    from sklearn.linear_model import SGDClassifier

    from dualgap import Problem
    from dualgap.io import RowStore

    store = RowStore.open(path, buffer=options["buffer"])
    problem = Problem(store, np.where(store.y > 0, 1, -1), options["C"])
    model = SGDClassifier(
        alpha=1.0 / (options["C"] * len(store)), fit_intercept=False, random_state=0,
        average=options["average"],
    )  # fmt: skip
    spent, reached = 0.0, []
    for _ in range(options["passes"]):
        if options["drop"]:
            forget(store)
        begun = time.perf_counter()
        for batch in store:
            model.partial_fit(batch.X, batch.y, classes=[0, 1])
        spent += time.perf_counter() - begun
        primal = problem.primal(model.coef_[0].astype(float))
        reached.append([round(spent, 2), primal / options["dual"] - 1.0])
        if reached[-1][1] <= options["tol"]:
            break
    return {"seconds, (P - D)/D": reached}


STEPS = {
    "convert": step_convert, "read": step_read, "fit": step_fit, "sklearn": step_sklearn
}  # fmt: skip


def run_step(name: str, path: Path, options: dict) -> dict:
    """One step in a process of its own; its figures, seconds and peak memory."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, __file__, "--step", name, "--folder", str(path)]
    begun = time.perf_counter()
    done = subprocess.run(
        [*command, "--options", json.dumps(options)], env=environment,
        stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (options["limit"], options["limit"])
        ),
    )  # fmt: skip
    seconds = time.perf_counter() - begun
    if done.returncode != 0:
        return {"step": name, "failed": done.returncode, "seconds": seconds}
    return {"step": name, "seconds": round(seconds, 1)} | json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gb", type=float, default=20.0)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--passes", type=int, default=10, help="most of scikit-learn")
    parser.add_argument("--sweeps", type=int, default=0)
    parser.add_argument("--libraries", type=int, default=0, help="MB added")
    parser.add_argument("--drop", action="store_true")
    parser.add_argument("--only", nargs="*", default=list(STEPS))
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--options", type=json.loads, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.step:
        found = STEPS[a.step](str(a.folder), a.options)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(found | {"peak resident MB": round(peak / 1e6)}))
        return
    limit = int(a.gb * 1e9 / 4)
    options = {
        "gb": a.gb, "limit": limit + a.libraries * 10**6, "buffer": limit // 8,
        "C": a.C, "tol": a.tol, "drop": a.drop, "sweeps": a.sweeps,
        "passes": a.passes, "average": False,
    }  # fmt: skip
    print(
        f"{a.gb} GB, address space limited to {limit / 1e6:.0f} + {a.libraries} MB",
        flush=True,
    )
    for name in a.only:
        found = run_step(name, a.folder / "store", options)
        options["dual"] = found.get("dual", options.get("dual"))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
