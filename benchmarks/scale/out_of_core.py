"""Convert and fit more data than the memory allowed, beside scikit-learn's SGD and VW.

    python benchmarks/scale/out_of_core.py --gb 20 --folder /path/with/45/GB

A synthetic set in the shape of text (Zipf columns, 120 to a row, unit rows, float64,
noisy labels) of --gb GB on the disk: batches that are made on the way into the
store, so that no other copy of the data is ever whole. Every step runs in a process of
its own whose address space is limited (RLIMIT_AS, children likewise) to a quarter of
that, the interpreter and its libraries included: these take half a GB, so that for less
than 5 GB `--libraries 500` has to add it. The limit does not bind the system's file
cache: with `--drop` it is asked to forget the store before every pass.

SGDClassifier.partial_fit reads the same store in batches. Vowpal Wabbit (the package
vowpalwabbit) gets it as text through a pipe, once, and writes a cache, which it then
learns from. Every model's objective is computed here, from all rows, in NumPy and
float64; seconds are of training alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

ROW, D, BATCH = 120, 200_000, 20_000  # entries of a row, columns, rows of a batch


def batches(entries: int):
    """The batches of the set, each made when it is needed."""
    return (batch(k) for k in range(-(-entries // (ROW * BATCH))))


def batch(k: int):
    """Rows with one word from each of 120 bands of frequency."""
    import numpy as np
    from scipy import sparse

    direction = np.random.default_rng(0).standard_normal(D)
    m = BATCH
    band = np.arange(ROW, dtype=np.float32)
    pointers = np.arange(0, m * ROW + 1, ROW)
    rng = np.random.default_rng([0, k])
    place = (band + rng.random((m, ROW), np.float32)) * (np.log(D - ROW) / ROW)
    columns = np.exp(place.astype(np.float32)).astype(np.int32) - 1
    columns += np.arange(ROW, dtype=np.int32)  # so that they rise
    values = (1.0 + rng.standard_exponential((m, ROW), np.float32)) * (1 + place)
    values = values.astype(np.float64)
    values /= np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    X = sparse.csr_matrix((values.ravel(), columns.ravel(), pointers), (m, D))
    score = X @ direction
    return X, score + 0.3 * score.std() * rng.standard_normal(m) > 0


def forget(store) -> None:
    """Ask the system to drop its copies of the store's files."""
    for name in store.dtypes:
        with open(store.file(name), "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def objective(store, w, C: float) -> float:
    """P(w), measured from outside: all rows, NumPy, float64."""
    import numpy as np

    loss = 0.0
    for batch in store:
        margins = np.where(batch.y > 0, 1.0, -1.0) * (batch.X @ w)
        loss += float(np.maximum(0.0, 1.0 - margins).sum())
    return 0.5 * float(w @ w) + C * loss


def step_convert(path: str, options: dict) -> dict:
    from dualgap.data import convert

    entries = int(options["gb"] * 1e9 / 12)
    store = convert(
        batches(entries), path, memory=options["limit"] // 4, n_jobs=options["jobs"]
    )
    size = sum(os.path.getsize(store.file(name)) for name in store.dtypes)
    return {
        "rows": len(store), "nnz": store.nnz, "features": store.n_features,
        "bytes": size,
    }  # fmt: skip


def step_fit(path: str, options: dict) -> dict:
    import numpy as np

    from dualgap.data import RowStore
    from dualgap.problems import BinaryProblem as Problem
    from dualgap.solvers import DCD
    from dualgap.training import solve

    store = RowStore.open(path, buffer=options["buffer"])
    if options["drop"]:
        forget(store)
    begun = time.perf_counter()
    problem = Problem(store, np.where(store.y > 0, 1, -1), options["C"])
    opened = time.perf_counter() - begun

    def on_epoch(info) -> None:  # not counted
        if options["drop"]:
            forget(store)

    cpu = time.process_time()
    done = solve(
        problem, DCD(block_sweeps=options["sweeps"] or "auto"), tol=options["tol"],
        max_iter=100, random_state=0, on_epoch=on_epoch,
    )  # fmt: skip
    np.save(f"{path}.coef.npy", done.w)
    cpu = time.process_time() - cpu
    seconds = np.diff(done.history["seconds"], prepend=0.0)
    exact, c = done.history["exact"], done.certificate
    return {
        "primal": c.primal, "dual": c.dual, "gap": c.relative_gap, "epochs": c.epochs,
        "status": c.status.label, "checks and norms": opened, "epochs and proofs":
        c.seconds, "processor seconds of these": cpu,
        "median epoch": float(np.median(seconds[~exact])),
        "proofs": int(exact.sum()),
        "(P - D)/D, P from outside": objective(store, done.w, options["C"])
        / (options["dual"] or c.dual) - 1.0,
    }  # fmt: skip


def step_sklearn(path: str, options: dict) -> dict:
    from sklearn.linear_model import SGDClassifier

    from dualgap.data import RowStore

    store = RowStore.open(path, buffer=options["buffer"])
    model = SGDClassifier(
        alpha=1.0 / (options["C"] * len(store)), fit_intercept=False, random_state=0
    )
    spent, used, reached = 0.0, 0.0, []
    for _ in range(options["passes"]):
        if options["drop"]:
            forget(store)
        begun, cpu = time.perf_counter(), time.process_time()
        for batch in store:
            model.partial_fit(batch.X, batch.y, classes=[0, 1])
        spent += time.perf_counter() - begun
        used += time.process_time() - cpu
        primal = objective(store, model.coef_[0].astype(float), options["C"])
        reached.append([round(spent, 1), round(used, 1), primal / options["dual"] - 1])
        if reached[-1][2] <= options["tol"]:
            break
    return {"seconds, processor seconds, (P - D)/D": reached}


def text(X, y):
    """Rows as lines for Vowpal Wabbit, all of one length, without a loop over them."""
    import numpy as np

    def digits(count: int):
        return np.array([f"{k:0{count}d}" for k in range(10**count)], f"S{count}")

    three, four = digits(3), digits(4)
    m = X.shape[0]
    entry = np.dtype(
        [("gap", "S1"), ("column", "S3", 2), ("point", "S3"), ("value", "S4", 2)]
    )
    line = np.dtype([("label", "S4"), ("entries", entry, ROW), ("end", "S1")])
    lines = np.empty(m, line)
    lines["label"], lines["end"] = np.where(y > 0, b"+1 |", b"-1 |"), b"\n"
    columns = X.indices.reshape(m, ROW)
    values = np.rint(X.data * 1e8).astype(np.int32).reshape(m, ROW)
    entries = lines["entries"]
    entries["gap"], entries["point"] = b" ", b":0."
    entries["column"][..., 0] = three[columns // 1000]
    entries["column"][..., 1] = three[columns % 1000]
    entries["value"][..., 0] = four[values // 10000]
    entries["value"][..., 1] = four[values % 10000]
    return lines


def step_vw(path: str, options: dict) -> dict:
    """Passes of Vowpal Wabbit over its own cache; the model of each is measured.

    It makes the steps of Pegasos, of length 1/(l2 (t + nC)): of all update rules and
    rates that were tried the nearest to the optimum. They shrink w at rows with a loss
    alone; `--vw-l2` is the inverse of these rows' share, so that l2 is 1/(nC) in the
    mean.
    """
    from importlib.metadata import version

    from dualgap.data import RowStore

    store = RowStore.open(path, buffer=options["buffer"])
    model, cache = f"{path}.vw", f"{path}.vw.cache"
    inverse = options["C"] * len(store)
    command = [
        sys.executable, "-m", "vowpalwabbit", "-d", "/dev/stdin",
        "--loss_function", "hinge", "--l2", repr(options["vw_l2"] / inverse), "--sgd",
        "-l", "1",
        "--power_t", "1", "--initial_t", repr(inverse), "--noconstant", "-b", "18",
        "--quiet", "--holdout_off", "--cache_file", cache,
    ]  # fmt: skip
    begun = time.time()
    with subprocess.Popen(
        [*command, "--passes", "1", "--kill_cache"], stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        for batch in store:
            for first in range(0, len(batch.y), 5000):
                part = slice(first, first + 5000)
                process.stdin.write(text(batch.X[part], batch.y[part]).view("u1").data)
        process.stdin.close()
        if process.wait() != 0:
            raise SystemExit("vowpalwabbit failed")
    wrote = time.time() - begun
    size = os.path.getsize(cache)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = children.ru_utime + children.ru_stime
    begun = time.time()
    subprocess.run(
        [*command, "--passes", str(options["vw_passes"]), "--save_per_pass", "-f",
         model],
        stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = children.ru_utime + children.ru_stime - used
    os.unlink(cache)
    reached = []
    for k in range(1, options["vw_passes"] + 1):
        seconds = os.path.getmtime(f"{model}.{k}") - begun
        primal = objective(store, vw_weights(f"{model}.{k}"), options["C"])
        reached.append([round(seconds, 1), primal / options["dual"] - 1.0])
    return {
        "seconds, (P - D)/D": reached, "text and cache written": round(wrote, 1),
        "cache bytes": size, "processor seconds of the passes": round(used, 1),
        "peak resident MB of vw": round(children.ru_maxrss * 1024 / 1e6),
        "version": version("vowpalwabbit"),
    }  # fmt: skip


def vw_weights(model: str):
    """The coefficients of a model, of the columns below D."""
    readable = f"{model}.txt"
    subprocess.run(
        [sys.executable, "-m", "vowpalwabbit", "-i", model, "-t", "--quiet",
         "--readable_model", readable],
        stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    return readable_weights(readable)


def readable_weights(readable: str):
    """Return the same for a model that was written as text; remove the text."""
    import numpy as np

    w = np.zeros(D)
    with open(readable) as file:
        for line in file:
            found = re.fullmatch(r"(\d+):(\S+)\s*", line)
            if found and int(found[1]) < D:
                w[int(found[1])] = float(found[2])
    os.unlink(readable)
    return w


def step_read(path: str, options: dict) -> dict:
    """GB/s of a sequential read, and of the first passes of `dcd`, whose rows all move.

    In turns, each for some seconds or until all is read; medians, and of the ratios to
    the read of the same turn too, for disks vary. Cold: the system was told to forget
    the files. Warm: it was not, and serves what it still has. "Past the cache": by
    O_DIRECT, which is the fastest read of what is cold; the ratio is to that too.
    """
    import mmap

    import numpy as np

    from dualgap import core
    from dualgap.data import RowStore
    from dualgap.data.files import StoredArray
    from dualgap.problems import BinaryProblem as Problem
    from dualgap.solvers import DCD

    stores = {}
    for way, cached in (("through", 1e9), ("past", 0.0)):
        StoredArray.settings = replace(StoredArray.settings, cached=cached)
        stores[way] = RowStore.open(path, buffer=options["buffer"])
    store = stores["through"]
    y = np.where(store.y > 0, 1, -1)
    problems = {way: Problem(stores[way], y, options["C"]) for way in stores}
    row = (store.nnz * store.entry_bytes + 8 * len(store)) / len(store)
    piece = mmap.mmap(-1, 2**24)

    def read(way: str) -> float:
        flags = os.O_RDONLY | (os.O_DIRECT if way == "past" else 0)
        got, end = 0, time.perf_counter() + options["seconds"]
        for name in ("values", "indices"):
            file = os.open(store.file(name), flags)
            at = 0
            while time.perf_counter() < end and (n := os.preadv(file, [piece], at)):
                at += n
            os.close(file)
            got += at
        return got

    def blocks(way: str) -> float:
        """The blocks of random pages, and nothing done with them."""
        end = time.perf_counter() + options["seconds"]
        pages, many = stores[way].pages, stores[way].block_pages
        order = np.random.default_rng(0).permutation(len(pages))
        groups = [order[k : k + many] for k in range(0, len(order), many)]
        seen = 0
        for block in stores[way].read(0.0, groups):
            seen += block.size
            if time.perf_counter() > end:
                break
        return seen * row

    def dcd(way: str, sweeps: int) -> float:
        solver, stop = DCD(block_sweeps=sweeps), core.Stop()
        state = solver.start(problems[way], core.Random(0), None)
        stop.set_deadline(options["seconds"])
        solver.step(state, stop)
        return state.visited / sweeps * row

    tasks = {}
    for way in stores if hasattr(os, "O_DIRECT") else ("through",):
        tasks[f"read {way}"] = lambda way=way: read(way)
        tasks[f"blocks {way}"] = lambda way=way: blocks(way)
        for sweeps in (1, 2):
            tasks[f"{sweeps} sweep(s) {way}"] = lambda way=way, s=sweeps: dcd(way, s)
    # What bounds a pass where reading is copying: the same on one block in memory.
    first = next(iter(store))
    held = Problem(first.X, y[first.start : first.stop], options["C"])
    w, copied = np.random.default_rng(0).standard_normal(D), np.empty_like(first.X.data)
    whole = len(first.y) * row

    def sweep() -> float:
        solver = DCD(block_sweeps=1, acceleration="none")
        state = solver.start(held, core.Random(0), None)
        solver.step(state, core.Stop())
        return whole

    def product() -> float:
        first.X @ w
        return whole

    def copy() -> float:
        np.copyto(copied, first.X.data)
        return copied.nbytes

    tasks |= {"copy of a block": copy, "product of a block": product}
    tasks["1 sweep of a block"] = sweep
    found = {}
    for problem in problems.values():  # its rows are checked, as in all passes but one
        assert np.isfinite(problem.q).all()
    for kind in ("cold", "warm") if options["drop"] else ("warm",):
        speeds = {name: [] for name in tasks}
        for _ in range(options["repeats"]):
            for name, task in tasks.items():
                if ("past" if kind == "warm" else "block") in name.split()[-1]:
                    continue  # of no interest
                if kind == "cold":
                    forget(store)
                begun, cpu = time.perf_counter(), time.process_time()
                size = task() / 1e9
                wall = size / (time.perf_counter() - begun)
                speeds[name].append((wall, size / (time.process_time() - cpu)))
        for name, pairs in speeds.items():
            if not pairs:
                continue
            found[f"{kind}, {name}"] = {
                key: np.round(np.median(array, axis=0), 2).tolist()
                for key, array in (
                    ("GB/s", pairs),
                    *(
                        (f"times {of}", np.array(speeds[of]) / np.array(pairs))
                        for of in ("read through", "read past")
                        if speeds.get(of)
                    ),
                )
            }
    return {"wall clock, processor": found}


STEPS = {
    "convert": step_convert, "read": step_read, "fit": step_fit,
    "sklearn": step_sklearn, "vw": step_vw,
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
    parser.add_argument("--C", type=float, default=0.1)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--passes", type=int, default=10, help="most of scikit-learn")
    parser.add_argument("--repeats", type=int, default=3, help="for the step read")
    parser.add_argument("--seconds", type=float, default=40.0, help="likewise")
    parser.add_argument("--vw-passes", type=int, default=3)
    parser.add_argument("--vw-l2", type=float, default=1.0, help="times 1/(nC)")
    parser.add_argument("--sweeps", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="threads of convert")
    parser.add_argument("--buffer", type=int, default=0, help="bytes, else limit/8")
    parser.add_argument("--libraries", type=int, default=0, help="MB added")
    parser.add_argument("--dual", type=float, help="dual value known, or P*")
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
    options = vars(a) | {
        "limit": limit + a.libraries * 10**6, "buffer": a.buffer or limit // 8,
        "folder": None,
    }  # fmt: skip
    print(
        f"{a.gb} GB, address space limited to {limit / 1e6:.0f} + {a.libraries} MB",
        flush=True,
    )
    for name in a.only:
        found = run_step(name, a.folder / "store", options)
        options["dual"] = options["dual"] or found.get("dual")
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
