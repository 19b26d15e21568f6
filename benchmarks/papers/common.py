"""Data, traces, tables and pictures, for all scripts of this folder."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from datasets import ROOT, load
from harness import collapsed

from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import get_solver
from dualgap.training import solve

DOCS = ROOT / "docs" / "papers"


def objective(X, y, C: float, w) -> float:
    """P(w) of the hinge in plain NumPy, from outside the package."""
    margins = y * np.asarray(X @ w, dtype=np.float64)
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - margins).sum())


def optimum(X, y, C: float, tol: float = 1e-7) -> float:
    """P* from below and above by `dcd`: the primal value at a relative gap of tol."""
    solution = solve(Problem(X, y, C), get_solver("dcd"), tol=tol, max_iter=10**6)
    return objective(X, y, C, solution.w)


def gaps(problem: Problem, solver, epochs: int, seed: int = 0):
    """Epochs and the relative gap proved after each of them."""
    history = solve(
        problem, solver, tol=1e-9, max_iter=epochs, random_state=seed, check_every=1
    ).history
    proved = history[history["exact"] & (history["dual"] > 0)]
    gap = (proved["primal"] - proved["dual"]) / proved["dual"]
    return proved["epoch"].tolist(), np.maximum(gap, 1e-16).tolist()


def reach(problem, solver, loss, target, *, seed=0, limit=None, epochs=10**7):
    """(seconds, epochs, w) of the first pass after which loss(w) is at most target.

    None if `limit` seconds or `epochs` were not enough. Seconds are of processor time,
    to which other work on the machine adds little; measuring the loss is not counted.
    """
    found, spent, begun = [], 0.0, time.process_time()

    def look(info):
        nonlocal spent
        now = time.process_time()
        w = info.model()
        if not info.final and loss(w) <= target:
            found.append((now - begun - spent, info.epoch, w.copy()))
        late = limit is not None and now - begun - spent > limit
        spent += time.process_time() - now
        return bool(found) or late

    solve(problem, solver, tol=1e-9, max_iter=epochs, random_state=seed,
          on_epoch=look)  # fmt: skip
    return found[0] if found else None


class Report:
    """Collects results; writes docs/papers/<name>.{json,md,png}.

    The page begins with `conclusion`, to be set before it is written, and the picture.
    """

    def __init__(self, name: str, title: str) -> None:
        self.name, self.title, self.conclusion = name, title, ""
        self.lines, self.results = [], {}

    def say(self, text: str = "") -> None:
        """Add a line of Markdown and print it."""
        print(text, flush=True)
        self.lines.append(text)

    def table(self, header: list[str], rows: list[list[object]], title="") -> None:
        """Add a Markdown table; the reader opens one with a title."""
        lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
        lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
        for line in collapsed(title, lines) if title else lines:
            self.say(line)
        self.say()

    def write(self, figure=None) -> None:
        """Write what was collected, and the picture if there is one."""
        DOCS.mkdir(parents=True, exist_ok=True)
        head = [f"# {self.title}", "", self.conclusion, ""]
        if figure is not None:
            figure.savefig(DOCS / f"{self.name}.png", dpi=110)
            head += [f"![{self.title}]({self.name}.png)", ""]
        text = "\n".join([*head, *self.lines]).rstrip() + "\n"
        (DOCS / f"{self.name}.md").write_text(text, encoding="utf-8")
        data = json.dumps(self.results, indent=None, separators=(",", ":"))
        (DOCS / f"{self.name}.json").write_text(data + "\n")
        print(f"{self.name}: {time.process_time():.0f} s of processor time")


__all__ = [
    "Problem",
    "Report",
    "gaps",
    "get_solver",
    "load",
    "objective",
    "optimum",
    "reach",
]
