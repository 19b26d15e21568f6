"""What the scripts of this folder share: the grid, workers, results on disk."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np
from scipy import sparse

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from datasets import CACHE, ROOT, load  # noqa: E402, F401

# Cheap ones first.
DATA = [
    "ijcnn1", "a9a", "w8a", "sector", "20news", "covtype", "imdb", "phish-urls",
    "cover", "donors", "mnist", "kdd99", "imdb-bigrams", "rcv1-like",
]  # fmt: skip
COSTS = [0.05, 0.1, 1.0, 10.0, 100.0]
ACCURACIES = [1e-2, 1e-3, 1e-4, 1e-6]
CAP = 60.0  # processor seconds of one fit, and what a failure counts as
ONE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                 "NUMBA_NUM_THREADS")
}  # fmt: skip


def objective(X, y, C: float, w) -> float:
    """P(w) of the hinge in NumPy and float64, from outside of every package."""
    margins = y * np.asarray(X @ w, dtype=np.float64)
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - margins).sum())


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ")[1] for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def arrays(name: str) -> Path:
    """Folder of the data set's arrays as .npy, written once."""
    folder = CACHE / "linear" / name
    if not (folder / "y.npy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        X, y = load(name)
        save(folder, X, y)
    return folder


def save(folder: Path, X, y) -> None:
    """Arrays of one data set; y, written last, says that they are whole."""
    if sparse.issparse(X):
        for part in ("data", "indices", "indptr"):
            np.save(folder / f"{part}.npy", getattr(X, part))
        np.save(folder / "shape.npy", X.shape)
    else:
        np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)


def pythons() -> dict[str, str]:
    """{rival: Python} as DUALGAP_RIVALS, DUALGAP_LIGHTNING and DUALGAP_LIBOCAS say.

    DUALGAP_RIVALS is "liblinear=/path/python,...". A rival it does not name is looked
    for in the current Python; those built outside need their own variable.
    """
    named = dict(
        part.split("=", 1)
        for part in os.environ.get("DUALGAP_RIVALS", "").split(",")
        if part
    )
    if "DUALGAP_LIGHTNING" in os.environ:
        named["lightning"] = os.environ["DUALGAP_LIGHTNING"]
    return named


class Results:
    """Rows of a JSON-lines file, appended as they come, so that runs can go on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict] = []
        self.by_data: dict[str | None, list[dict]] = {}
        self.bounds: dict[tuple[str, float], tuple[float, float]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                self._take(json.loads(line))

    def _take(self, row: dict) -> None:
        self.rows.append(row)
        self.by_data.setdefault(row.get("data"), []).append(row)
        if "primal" in row:
            key = row["data"], row["C"]
            lower, upper = self.bounds.get(key, (0.0, np.inf))
            self.bounds[key] = (max(lower, row.get("dual", 0.0)),
                                min(upper, row["primal"]))  # fmt: skip

    def add(self, **row) -> dict:
        """Append a row, on disk too."""
        self._take(row)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        return row

    def where(self, **fields) -> list[dict]:
        rows = self.rows
        if "data" in fields:
            rows = self.by_data.get(fields["data"], [])
        wanted = fields.items()
        return [r for r in rows if all(r.get(k) == v for k, v in wanted)]

    def bracket(self, name: str, C: float) -> tuple[float, float]:
        """(lower, upper) bounds on P*: the best dual and primal value seen."""
        return self.bounds.get((name, C), (0.0, np.inf))


class Worker:
    """A package in a process of its own, with one data set."""

    def __init__(self, rival: str, data: Path, python: str | None = None) -> None:
        self.rival, self.data = rival, data
        self.python = python or pythons().get(rival, sys.executable)
        self.folder = tempfile.TemporaryDirectory()
        self.process = None

    def start(self) -> dict:
        self.process = subprocess.Popen(
            [self.python, str(HERE / "worker.py"), self.rival, str(self.data)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=os.environ | ONE_THREAD | {"PYTHONPATH": ""},
        )  # fmt: skip
        line = self.process.stdout.readline()
        if not line:
            self.close()
            raise ImportError(f"{self.rival} does not run in {self.python}")
        self.hello = json.loads(line)
        return self.hello

    def fit(self, C, family, value, *, cap=CAP, seed=0, **options):
        """(row, w); the row has "capped" if the fit was ended at `cap`."""
        if self.process is None:
            self.start()
        out = os.path.join(self.folder.name, "w.npy")
        job = dict(C=C, family=family, value=value, seed=seed, cap=cap, out=out)
        try:
            self.process.stdin.write(json.dumps(job | options) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self.process.wait()
            self.close()
            return ({"capped": cap} if code == -signal.SIGPROF
                    else {"error": f"exit {code}"}), None  # fmt: skip
        row = json.loads(line)
        if "error" in row:
            timeout = row["error"].startswith("TimeoutError")
            return ({"capped": cap} if timeout else row), None
        head = {k: self.hello[k] for k in ("import_cpu", "import_wall", "version")}
        return head | row, np.load(out)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


def stamp() -> dict:
    """What every run writes first."""
    return {
        "stage": "machine",
        "date": str(date.today()),
        "processor": processor(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


class Clock:
    """Whether the time given to a whole run is over."""

    def __init__(self, seconds: float | None) -> None:
        self.end = np.inf if seconds is None else time.monotonic() + seconds

    def over(self) -> bool:
        return time.monotonic() > self.end
