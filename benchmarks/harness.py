"""Processes and results on disk, for all benchmarks beside other packages.

A package runs in a process of its own, in the Python that `DUALGAP_RIVALS` names for it
(serving.py is its side), so that none has to be installed beside another.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

ONE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                 "NUMBA_NUM_THREADS")
}  # fmt: skip


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ")[1] for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def apart(script: str, *words: object) -> Any:
    """Return what a script prints as JSON, in a process of its own on one thread."""
    done = subprocess.run(
        [sys.executable, script, *map(str, words)], env=os.environ | ONE_THREAD,
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def timed(work: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    """Return the processor seconds of some work, and its result."""
    begun = time.process_time()
    found = work(*given)
    return time.process_time() - begun, found


def resident(field: str) -> int | None:
    """Bytes of VmRSS (now) or VmHWM (peak) of this process; Linux only."""
    try:
        with open("/proc/self/status") as status:
            line = next(line for line in status if line.startswith(field))
    except OSError:
        return None
    return int(line.split()[1]) * 1024


def save(folder: Path, X, y, suffix: str = "") -> None:
    """Arrays of one data set; y, written last, says that they are whole."""
    folder.mkdir(parents=True, exist_ok=True)
    if sparse.issparse(X):
        for part in ("data", "indices", "indptr"):
            np.save(folder / f"{part}{suffix}.npy", getattr(X, part))
        np.save(folder / f"shape{suffix}.npy", X.shape)
    else:
        np.save(folder / f"X{suffix}.npy", X)
    np.save(folder / f"y{suffix}.npy", y)


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
    """A package in a process of its own, with one data set.

    `script` is the program that serves, `environment` what it has besides this one.
    """

    script: Path
    environment: dict[str, str] = ONE_THREAD

    def __init__(self, rival: str, data: Path, python: str | None = None) -> None:
        self.rival, self.data = rival, data
        self.python = python or pythons().get(rival, sys.executable)
        self.folder = tempfile.TemporaryDirectory()
        self.process = None

    def start(self) -> dict:
        self.process = subprocess.Popen(
            [self.python, str(self.script), self.rival, str(self.data)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=os.environ | self.environment | {"PYTHONPATH": ""},
        )  # fmt: skip
        line = self.process.stdout.readline()
        if not line:
            self.close()
            raise ImportError(f"{self.rival} does not run in {self.python}")
        self.hello = json.loads(line)
        return self.hello

    def fit(self, C, family, value, *, cap, seed=0, **options):
        """(row, arrays); the row has "capped" if the fit was ended at `cap`."""
        if self.process is None:
            self.start()
        out = os.path.join(self.folder.name, "model.npz")
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
        with np.load(out) as arrays:
            return head | row, dict(arrays)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


def stamp() -> dict:
    """Return the first line of every run."""
    return {
        "stage": "machine",
        "date": str(date.today()),
        "processor": processor(),
        "vectors": vectors(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


BASELINE = "sklearn"  # its ratio is wanted whether it is the best or not
SLACK = 2.0  # a fit that takes this many times the best one cannot win
NOISE = 1.1  # "at least as fast" allows for this much


class Clock:
    """Clock that tells whether the time of a whole run is over."""

    def __init__(self, seconds: float | None) -> None:
        self.end = np.inf if seconds is None else time.monotonic() + seconds

    def over(self) -> bool:
        return time.monotonic() > self.end


class Grid:
    """One data set at a time; its fits are recorded here."""

    name: str

    def __init__(self, results: Results, clock: Clock, cap: float) -> None:
        self.results, self.clock, self.cap = results, clock, cap

    def record(
        self, worker: Worker, stage: str, C, family, value, row, seed=0, tags=None
    ) -> dict:
        """Write one fit down, with the tags, and print it."""
        row = self.results.add(
            stage=stage, data=self.name, rival=worker.rival, C=C, family=family,
            value=value, seed=seed, **row, **(tags or {}),
        )  # fmt: skip
        capped = f"capped at {row['capped']:.3g}" if "capped" in row else ""
        print(
            f"{stage:9} {self.name:12} C {C:<5g} {worker.rival:20} {family:20} "
            f"{value:<8g} {row.get('cpu', math.nan):8.3f} s  "
            f"accuracy {self.accuracy(row):.1e} {row.get('error', '')}{capped}",
            flush=True,
        )
        return row

    def accuracy(self, row: dict) -> float:
        """(P - P*)/P* against the upper bound on P*: a doubt is the rival's gain."""
        if not row.get("primal"):
            return math.inf
        _, upper = self.results.bracket(row["data"], row["C"])
        return (row["primal"] - upper) / upper

    def started(self, worker: Worker) -> bool:
        """Whether a worker runs; if not, say so."""
        try:
            worker.start()
        except ImportError as error:
            print(f"{error}: left out", flush=True)
            return False
        return True

    def best(self, C, eps: float, rival=None) -> float:
        """Fewest seconds in which the sweep reached eps."""
        seconds = [r["cpu"] for r in self.swept(C, rival)
                   if "cpu" in r and self.accuracy(r) <= eps]  # fmt: skip
        return min(seconds, default=math.inf)

    def quickest(self, C, eps: float, without=()) -> dict[str, dict]:
        """{rival: its fastest row of the sweep that reached eps}, the fastest first."""
        best: dict[str, dict] = {}
        for row in self.swept(C):
            if self.accuracy(row) <= eps and setting(row) not in without:
                old = best.get(row["rival"])
                if old is None or row["cpu"] < old["cpu"]:
                    best[row["rival"]] = row
        return dict(sorted(best.items(), key=lambda item: item[1]["cpu"]))

    def swept(self, C, rival=None, family=None) -> list[dict]:
        fields = {"rival": rival, "family": family}
        fields = {k: v for k, v in fields.items() if v is not None}
        return self.results.where(stage="sweep", data=self.name, C=C, **fields)

    def run(self, args: argparse.Namespace, steps: dict, report) -> None:
        """Take the chosen stages, one data set after another."""
        if args.stage != ["report"]:
            self.results.add(**stamp())
        for name in args.data:
            if args.stage == ["report"] or self.clock.over():
                break
            self.open(name)
            for stage, step in steps.items():
                if stage in args.stage:
                    step()
        if "report" in args.stage:
            report(self.results)


def arguments(
    text: str, stages: list[str], data: list[str], rivals, cap: float, reference: float
) -> argparse.ArgumentParser:
    """Return a parser of what all grids have in common."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stage", nargs="+", choices=stages, default=stages)
    parser.add_argument("--data", nargs="+", choices=data, default=data)
    parser.add_argument("--rivals", nargs="+", choices=[*rivals], default=[*rivals])
    parser.add_argument("--again", action="store_true",
                        help="pair also the cells that were paired before")  # fmt: skip
    parser.add_argument("--budget", type=float, default=cap,
                        help="processor seconds of one fit; a third of it at a C above "
                        "one that ran into it")  # fmt: skip
    parser.add_argument("--reference-budget", type=float, default=reference,
                        help="wall seconds of one attempt at P*")  # fmt: skip
    parser.add_argument("--time-limit", type=float, help="wall seconds of the run")
    return parser


def repeats(seconds: float) -> int:
    """Return how often a fit is repeated. Slow ones are far from any tie."""
    return 5 if seconds < 0.1 else 3 if seconds <= 10.0 else 1


# ---- results by the name of a case


def kept(path: Path) -> dict[str, Any]:
    """Return the machine of the last run, and the stored results."""
    if not path.exists():
        return {"machine": {}, "cases": {}}
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def keep(path: Path, name: str, case: dict[str, Any]) -> None:
    """Store a result, in place of an earlier one of this case."""
    cases = kept(path)["cases"] | {name: case}
    whole = {"machine": stamp(), "cases": dict(sorted(cases.items()))}
    path.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")
    print(name, json.dumps(case), flush=True)


# ---- for reports


def median(rows: list[dict], *keys: str) -> float:
    return statistics.median(sum(row[k] for k in keys) for row in rows)


def geometric(values: list[float]) -> float:
    return math.exp(statistics.mean(map(math.log, values))) if values else math.nan


def setting(row: dict) -> tuple:
    return row["rival"], row["family"], row["value"]


def by_rival(rows: list[dict]) -> dict[str, list[dict]]:
    out: dict[str, list[dict]] = {}
    for r in rows:
        out.setdefault(r["rival"], []).append(r)
    return out


def number(x: float | None, more: bool = False) -> str:
    if x is None:
        return "–"
    return f"{'> ' if more else ''}{x:.3g}" if x < 1000 else f"{x:.0f}"


def versions(results: Results, packages: dict[str, str]) -> dict[str, str]:
    """Return versions by package; `packages` has the distribution of every rival."""
    return {packages.get(r["rival"], r["rival"]): r["version"]
            for r in results.rows if r.get("version")}  # fmt: skip


def between_marks(page: Path, name: str, body: str) -> None:
    """Write one generated part of a page."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, _, tail = page.read_text().partition(begin)
    _, _, tail = tail.partition(end)
    page.write_text(f"{head}{begin}\n{body}\n{end}{tail}")


def as_csv(lines: list[str]) -> str:
    """Return a table in Markdown as CSV."""
    head, _, *rows = "\n".join(lines).splitlines()
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    for line in (head, *rows):
        table.writerow(c.strip().replace("**", "") for c in line[1:-1].split(" | "))
    return text.getvalue()


def publish(name: str, docs: Path, generated: dict, tables: dict) -> None:
    """Write the generated parts of a page, and its tables."""
    for part, body in generated.items():
        between_marks(docs / f"benchmarks-{name}.md", part, body)
    for table, body in tables.items():
        (docs / "tables" / f"{table}.csv").write_text(body, "utf-8")


@dataclass
class Report:
    """Cells of a grid with the machines they were measured on, as results.json.

    A run may be about a few cells: the others stay as the last report had them.
    """

    path: Path
    machines: list[dict] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    cells: dict[tuple, dict] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, keys: tuple[str, ...]) -> Report:
        """The last report; `keys` are the fields that name a cell."""
        if not path.exists():
            return cls(path)
        found = json.loads(path.read_text())
        cells = {tuple(c[k] for k in keys): c for c in found["cells"]}
        return cls(path, found["machines"], found["versions"], cells)

    def add(self, machine: dict, versions: dict[str, str], cells: dict) -> None:
        """New cells take the place of old ones."""
        if machine not in self.machines:
            self.machines.append(machine)
        which = self.machines.index(machine)
        self.cells |= {key: c | {"machine": which} for key, c in cells.items()}
        self.versions |= versions

    def in_order(self, keys) -> list[dict]:
        """The cells of these keys; machines without any are forgotten."""
        found = [self.cells[key] for key in keys if key in self.cells]
        used = sorted({c["machine"] for c in found})
        self.machines = [self.machines[k] for k in used]
        return [c | {"machine": used.index(c["machine"])} for c in found]

    def write(self, cells: list[dict]) -> None:
        head = {"machines": self.machines, "versions": self.versions}
        lines = ",\n".join(json.dumps(c, default=float) for c in cells)
        body = json.dumps(head)[1:-1]
        self.path.write_text(f'{{{body},\n"cells": [\n{lines}\n]}}\n')

    def provenance(self, cells: list[dict]) -> str:
        """List the machines, with marks and numbers of cases, and the versions."""
        lines = []
        for k, m in enumerate(self.machines):
            parts = (m["processor"], m.get("vectors"), m["system"],
                     f"Python {m['python']}", m["date"])  # fmt: skip
            text = ", ".join(p for p in parts if p)
            if len(self.machines) > 1:
                count = sum(c["machine"] == k for c in cells)
                text += f" ({count} cases{', marked ' + mark(k) if k else ''})"
            lines.append(f"- {text}.")
        named = ", ".join(f"{k} {v}" for k, v in sorted(self.versions.items()))
        return "\n".join([*lines, "", f"Versions: {named}."])


def mark(machine: int) -> str:
    """Return the mark of a case that another machine measured than the first."""
    return "†" * machine


def vectors() -> str:
    """The widest vector instructions."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    known = {"avx512f": "AVX-512", "avx2": "AVX2"}
    return next((name for flag, name in known.items() if flag in flags), "")
