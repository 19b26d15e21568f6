"""Data, traces, tables and pictures, for all scripts of this folder."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

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


def arguments(parser: argparse.ArgumentParser, *free: str) -> argparse.Namespace:
    """Parse the command line, and choose the folder that the page goes to.

    Only the published run writes over the published page: the run whose arguments,
    apart from those called `free`, are the defaults.
    """
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER",
        help="where to write page, picture and results (default: docs/papers for the "
        "published run, build/papers for any other)",
    )  # fmt: skip
    args = parser.parse_args()
    if args.output is None:
        changed = {k for k, v in vars(args).items() if v != parser.get_default(k)}
        args.output = ROOT / "build" / "papers" if changed - {*free} else DOCS
    return args


def counted(found: dict[str, bool], thing: str = "cases") -> str:
    """Return "3 of 8 cases" for how many of `found` hold."""
    return f"{sum(found.values())} of {len(found)} {thing}"


def settled(problem, solver, loss, target, epochs: int, *, seed=0) -> int | None:
    """Return the epoch from which loss(w) stays at or below target, of `epochs`.

    None if it is above target after the last of them.
    """
    outside = [0]

    def look(info):
        if not info.final and loss(info.model()) > target:
            outside.append(info.epoch)

    solution = solve(problem, solver, tol=1e-9, max_iter=epochs, random_state=seed,
                     on_epoch=look)  # fmt: skip
    last = outside[-1] + 1
    return last if last <= solution.certificate.epochs else None


class Report:
    """Collects results; writes <name>.{json,md,png} into a folder.

    The page begins with `conclusion`, to be set before it is written, and the picture.
    """

    def __init__(self, name: str, title: str, folder: Path = DOCS) -> None:
        self.name, self.title, self.conclusion = name, title, ""
        self.folder, self.lines, self.results = folder, [], {}

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

    def text(self, figure=None) -> str:
        """Return the page."""
        head = [f"# {self.title}", "", self.conclusion, ""]
        if figure is not None:
            head += [f"![{self.title}]({self.name}.png)", ""]
        return "\n".join([*head, *self.lines]).rstrip() + "\n"

    def stored(self) -> dict | list:
        """Return the results that an earlier run left in the folder; {} without one."""
        path = self.folder / f"{self.name}.json"
        return json.loads(path.read_text("utf-8")) if path.exists() else {}

    def keep(self) -> None:
        """Write the results alone, before a page can be made of them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        data = json.dumps(self.results, separators=(",", ":"))
        (self.folder / f"{self.name}.json").write_text(data + "\n")

    def write(self, figure=None) -> None:
        """Write what was collected, and the picture if there is one."""
        self.keep()
        path = self.folder / f"{self.name}.md"
        path.write_text(self.text(figure), encoding="utf-8")
        if figure is not None:
            picture = path.with_suffix(".png")
            figure.savefig(picture, dpi=110)
            with Image.open(picture) as drawn:  # a third of the size
                drawn.convert("RGB").quantize(64).save(picture, optimize=True)
        print(f"{path}: {time.process_time():.0f} s of processor time")


__all__ = [
    "Problem",
    "Report",
    "arguments",
    "counted",
    "gaps",
    "get_solver",
    "load",
    "objective",
    "optimum",
    "reach",
    "settled",
]
