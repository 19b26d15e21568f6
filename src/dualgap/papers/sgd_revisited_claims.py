"""The claims of Panagiotakopoulos and Tsampouka 2013, judged by the runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..data.types import Parameters
from ..losses import Vector
from .frame import kept, printed
from .page import Finding, Verdict, judged, of_share, tally

MPU = "MPU (reconstructed)"
#: The paper's names of the sets, and those for which another set stands in: T is not
#: compared.
PAPER_SETS = {"a9a": "Adult", "w8a": "Web", "imdb": "Realsim", "cov1": "Covertype"}
STAND_INS = ("imdb", "cov1")
# Methods that draw nothing: T is the same for all seeds.
FIXED = ("SVMperf", "OCAS")
# Place, C, single precision, and the tables of the runs.
CASES = [
    ("Tables 2, 3", 1.0, False, ("2", "3")),
    ("Tables 4, 5", 10.0, False, ("4", "5")),
    ("Tables 6, 7", 0.05, False, ("6", "7")),
    ("Table 8", 1.0, True, ("8",)),
]
#: Table 1 as it was printed.
FIRST = printed("sgd-revisited", "1")
Runs = list[tuple[float | None, int] | None]


@dataclass(frozen=True)
class JudgeSettings:
    """Thresholds of the verdicts."""

    #: Fewest runs whose range is compared with a published T.
    fewest: int = 5
    #: Parts by which J and L_T, and T, may differ from the published ones.
    values: float = 1e-6
    epochs: float = 0.1
    #: Factor of the first epoch from which w must be accurate for good.
    lasting: float = 1.1


SETTINGS = JudgeSettings()


def column(runs: Runs, unit: str) -> Vector:
    """Return the seconds or the epochs, infinite where a run ended at the limit.

    A run without seconds was made beside other work, which does not change its epochs.
    """
    at = 0 if unit == "seconds" else 1
    found = np.array([run[at] if run else np.inf for run in runs], dtype=float)
    return found[~np.isnan(found)]


def runs_of(found: Parameters, parts: tuple[str, ...]) -> dict[str, Runs]:
    """Return the runs of some tables by method."""
    runs = [found[part]["runs"] for part in parts if part in found]
    return {label: cell for cells in runs for label, cell in cells.items()}


def figures_of(parts: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return the published rows by set; Table 8's are not known."""
    known = () if parts == ("8",) else parts
    return printed("sgd-revisited", *known, rename={"MPU": MPU})


def numbers(text: str) -> tuple[float, float]:
    """Return the seconds and T of a printed cell; not a number where there is none."""
    found = re.match(r"([\d.]+)(?: \((\d+)\))?$", text)
    if not found:
        return np.nan, np.nan
    return float(found[1]), float(found[2] or np.nan)


def share_faster(a: Vector, b: Vector) -> float:
    """Return the share of the pairs of runs in which a is below b; a tie is half."""
    less = np.mean(a[:, None] < b[None, :])
    return float(less + 0.5 * np.mean(a[:, None] == b[None, :]))


def compare(claim: Parameters, sets: Parameters) -> Verdict:
    """Judge that one method is faster than another, and add the published ratios."""
    labels, unit = (claim["faster"], claim["slower"]), claim.get("unit", "seconds")
    parts = next(parts for title, *_, parts in CASES if title == claim["place"])
    found: dict[str, Finding] = {}
    for name, results in sets.items():
        runs = runs_of(results, parts)
        if not runs.keys() >= {*labels}:
            continue
        a, b = (column(runs[label], unit) for label in labels)
        ratio = float(np.median(b) / np.median(a)) if np.isfinite(np.median(a)) else 0.0
        text = f"{ratio:.2g}" if 0 < ratio < np.inf else "at the limit"
        found[name] = of_share(share_faster(a, b)), text
    ratios = []
    for cells in figures_of(parts).values():
        fast, slow = (numbers(cells[label])[unit == "epochs"] for label in labels)
        ratios += [slow / fast] * bool(np.isfinite([fast, slow]).all())
    what = f"{unit} of {claim['slower']} over {claim['faster']}"
    if ratios:
        ahead = sum(ratio > 1 for ratio in ratios)
        what += f" (published {min(ratios):.2g} to {max(ratios):.2g}, "
        what += f"above 1 on {ahead} of {len(ratios)})"
    return Verdict(claim["claim"], claim["place"], what, found)


def first_table(name: str, found: Parameters) -> Iterator[tuple[str, Finding]]:
    """Yield what Table 1 shows."""
    own = found["1"]["sgd-s"]
    gap, goal = own["relative_gap"], own["tol"]
    yield "exact", (gap <= goal, f"{gap:.1g} (target {goal:g})")
    if name in PAPER_SETS and name not in STAND_INS:
        row = FIRST[PAPER_SETS[name]]
        T, J, L = (float(row[key]) for key in ("T", "J", "L_T"))
        off, ratio = [own["primal"] / J - 1, own["dual"] / L - 1], own["epochs"] / T
        near = max(map(abs, off)) <= SETTINGS.values
        told = " and ".join(f"{value:+.0e}" for value in off)
        yield "same", (near and abs(ratio - 1) <= SETTINGS.epochs,
                       f"{told}, T {ratio:.2f} times")  # fmt: skip


def published_epochs(name: str, found: Parameters) -> Iterator[tuple[str, Finding]]:
    """Yield whether the published T are in the ranges, and whether Pegasos failed."""
    inside, failed = [], []
    for *_, parts in CASES:
        runs, figures = runs_of(found, parts), figures_of(parts)
        for label, text in figures.get(PAPER_SETS.get(name, ""), {}).items():
            if label not in runs:
                continue
            T, own = numbers(text)[1], column(runs[label], "epochs")
            enough = len(own) >= SETTINGS.fewest and np.isfinite([T, *own]).all()
            if enough and name not in STAND_INS:
                inside.append(bool(own.min() <= T <= own.max()))
            if (label, text) == ("Pegasos", "failed"):
                failed.append(None in runs[label])
    for key, cases in (("inside", inside), ("failed", failed)):
        if cases:
            yield key, tally(cases)


def growth(found: Parameters) -> dict[str, float]:
    """Return the seconds at C = 10 over those at C = 1 of SGD-m and linear SVMs."""
    low, high = (
        {label: np.median(column(cell, "seconds"))
         for label, cell in runs_of(found, parts).items()
         if label in ("SGD-m", "SVMperf", "OCAS", "DCD", MPU)}
        for *_, parts in CASES[:2]
    )  # fmt: skip
    return {m: float(high[m] / low[m]) for m in low.keys() & high.keys()}


def judge(name: str, found: Parameters) -> Iterator[tuple[str, Finding]]:
    """Yield what a set shows of the claims that do not compare two methods."""
    if "1" in found:
        yield from first_table(name, found)
    yield from published_epochs(name, found)
    grown = growth(found)
    own = grown.pop("SGD-m", np.nan)
    if grown and not np.isnan(own):
        yield "grows", tally(ratio < own for ratio in grown.values())
    if runs := found.get("stays"):
        yield "lasting", tally(
            last is not None and last <= SETTINGS.lasting * T
            for some in runs.values() for T, last in some
        )  # fmt: skip
    if rows := found.get("kkt"):
        yield "bound", (all(row[4] <= 1.0 for row in rows), f"{rows[-1][4]:.2f}")
        first, last = rows[0][3], rows[-1][3]
        yield "ends", (last > first, f"{100 * first:.0f} % to {100 * last:.0f} %")


def verdicts(sets: Parameters) -> list[Verdict]:
    """Judge the claims."""
    return [
        compare(claim, sets) if "faster" in claim else judged([claim], judge, sets)[0]
        for claim in kept("claims")["sgd-revisited"]
    ]
