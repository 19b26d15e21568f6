"""The claims of Panagiotakopoulos and Tsampouka 2013, judged by the runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..data.types import Parameters
from ..losses import Vector
from .frame import Finding, Verdict, published, tally

MPU = "MPU (reconstructed)"
#: The paper's names of the sets, and those for which another set stands in: T is not
#: compared.
PAPER_SETS = {"a9a": "Adult", "w8a": "Web", "imdb": "Realsim", "cov1": "Covertype"}
STAND_INS = ("imdb", "cov1")
# Methods that draw nothing: T is the same for all seeds.
FIXED = ("SVMperf", "OCAS")
#: Fewest runs whose range is compared with a published T.
RANGE = 5
# C, single precision, the tables of its runs, and a title.
CASES = [
    (1.0, False, ("2", "3"), "Tables 2 and 3: C = 1"),
    (10.0, False, ("4", "5"), "Tables 4 and 5: C = 10"),
    (0.05, False, ("6", "7"), "Tables 6 and 7: C = 0.05"),
    (1.0, True, ("8",), "Table 8: C = 1, features in single precision"),
]
#: Table 1: rows, features, T, J and L_T by set.
FIRST: dict[str, list[str]] = published("sgd-revisited", "1")["rows"]
Runs = list[tuple[float | None, int] | None]


@dataclass(frozen=True)
class Faster:
    """Conclusion of the paper: one method is faster than another."""

    text: str
    C: float
    faster: str
    slower: str
    unit: str = "seconds"
    single: bool = False


CLAIMS = [
    Faster("SGD-r is faster than Pegasos", 1.0, "SGD-r", "Pegasos"),
    Faster("SGD-s is faster than SGD-r", 1.0, "SGD-s", "SGD-r"),
    Faster("SGD-m is faster than SGD-s", 1.0, "SGD-m", "SGD-s"),
    Faster("Permutations need fewer epochs than random draws", 1.0,
          "SGD-s", "SGD-r", "epochs"),
    Faster("Multiple updates need fewer epochs", 1.0, "SGD-m", "SGD-s", "epochs"),
    Faster("SGD-m gains much on Pegasos", 1.0, "SGD-m", "Pegasos"),
    Faster("DCD is faster than SGD-m", 1.0, "DCD", "SGD-m"),
    Faster("MPU is faster than SGD-m", 1.0, MPU, "SGD-m"),
    Faster("SGD-s is faster than SVMperf", 1.0, "SGD-s", "SVMperf"),
    Faster("SGD-m is faster than SVMperf", 1.0, "SGD-m", "SVMperf"),
    Faster("SGD-s is faster than OCAS", 1.0, "SGD-s", "OCAS"),
    Faster("SGD-m is faster than OCAS", 1.0, "SGD-m", "OCAS"),
    Faster("MPU is faster than DCD", 10.0, MPU, "DCD"),
    Faster("MPU is faster than OCAS", 10.0, MPU, "OCAS"),
    Faster("SGD-m is faster than SVMperf", 10.0, "SGD-m", "SVMperf"),
    Faster("SGD-m is slower than OCAS", 10.0, "OCAS", "SGD-m"),
    *(
        Faster(f"{sgd} is faster than {linear.split(' ')[0]}", 0.05, sgd, linear)
        for sgd in ("SGD-r", "SGD-s", "SGD-m")
        for linear in ("SVMperf", "OCAS", "DCD", MPU)
    ),
    Faster("Pegasos is faster than SVMperf", 0.05, "Pegasos", "SVMperf"),
    Faster("Pegasos is faster than OCAS", 0.05, "Pegasos", "OCAS"),
    *(
        Faster(f"{other.split(' ')[0]} is faster than SvmSGD", 1.0, other, "SvmSGD",
              single=True)
        for other in ("SGD-QN", "SGD-m", MPU)
    ),
    Faster("MPU is faster than SGD-QN", 1.0, MPU, "SGD-QN", single=True),
    Faster("MPU is faster than SGD-m", 1.0, MPU, "SGD-m", single=True),
    Faster("SGD-m is faster than SGD-QN", 1.0, "SGD-m", "SGD-QN", single=True),
]  # fmt: skip


def column(runs: Runs, unit: str) -> Vector:
    """Return the seconds or the epochs, infinite where a run ended at the limit.

    A run without seconds was made beside other work, which does not change its epochs.
    """
    at = 0 if unit == "seconds" else 1
    found = np.array([run[at] if run else np.inf for run in runs], dtype=float)
    return found[~np.isnan(found)]


def cells_of(
    sets: Parameters,
) -> Iterator[tuple[str, float, bool, dict[str, Runs]]]:
    """Yield set, C, whether it is in single precision, and the runs by method."""
    for C, single, parts, _ in CASES:
        for name, found in sets.items():
            runs = [found[part]["runs"] for part in parts if part in found]
            if runs:
                yield name, C, single, {k: v for part in runs for k, v in part.items()}


def printed(C: float, single: bool) -> dict[str, dict[str, str]]:
    """Return the cells of all sets as they were printed, by method."""
    parts = () if single else next(p for c, _, p, _ in CASES if c == C)
    found: dict[str, dict[str, str]] = {}
    for part in parts:
        table = published("sgd-revisited", part)
        columns = [MPU if label == "MPU" else label for label in table["columns"]]
        for name, cells in table["rows"].items():
            found.setdefault(name, {}).update(zip(columns, cells, strict=True))
    return found


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


def judge(claim: Faster, sets: Parameters) -> Verdict:
    """Judge that one method is faster than another, and add the published ratios."""
    judged: dict[str, Finding] = {}
    for name, C, single, runs in cells_of(sets):
        labels = (claim.faster, claim.slower)
        if (C, single) != (claim.C, claim.single) or not {*labels} <= {*runs}:
            continue
        a, b = (column(runs[label], claim.unit) for label in labels)
        share = share_faster(a, b)
        ratio = float(np.median(b) / np.median(a)) if np.isfinite(np.median(a)) else 0.0
        found = None if 0.2 < share < 0.8 else share >= 0.8
        judged[name] = found, f"{ratio:.2g}" if 0 < ratio < np.inf else "at the limit"
    ratios = []
    at = 0 if claim.unit == "seconds" else 1
    for cells in printed(claim.C, claim.single).values():
        both = [numbers(cells[k])[at] for k in (claim.slower, claim.faster)]
        ratios += [both[0] / both[1]] * bool(np.isfinite(both).all())
    what = f"{claim.unit} of {claim.slower} over {claim.faster}"
    if ratios:
        ahead = sum(ratio > 1 for ratio in ratios)
        what += f" (published {min(ratios):.2g} to {max(ratios):.2g}, "
        what += f"above 1 on {ahead} of {len(ratios)})"
    place = next(title.partition(":")[0] for C, single, _, title in CASES
                 if (C, single) == (claim.C, claim.single))  # fmt: skip
    return Verdict(claim.text, place, what, judged)


def verdicts(sets: Parameters) -> list[Verdict]:
    """Judge the claims."""
    exact, same, grows, stays, bound, ends = ({} for _ in range(6))
    failed: dict[str, list[bool]] = {}
    inside: dict[str, list[bool]] = {}
    for name, found in sets.items():
        known = FIRST.get(PAPER_SETS.get(name, "")) if name not in STAND_INS else None
        if certificate := found.get("1", {}).get("sgd-s"):
            gap = certificate["relative_gap"]
            goal = certificate["tol"]
            exact[name] = gap <= goal, f"{gap:.1g} (target {goal:g})"
            if known:
                total, J, L = (float(value) for value in known[2:])
                off = [certificate["primal"] / J - 1, certificate["dual"] / L - 1]
                ratio = certificate["epochs"] / total
                near = max(map(abs, off)) <= 1e-6 and abs(ratio - 1) <= 0.1
                told = " and ".join(f"{value:+.0e}" for value in off)
                same[name] = near, f"{told}, T {ratio:.2f} times"
        if runs := found.get("stays"):
            judged = [last is not None and last <= 1.1 * T
                      for some in runs.values() for T, last in some]  # fmt: skip
            stays[name] = tally(judged)
        if rows := found.get("kkt"):
            bound[name] = all(row[4] <= 1.0 for row in rows), f"{rows[-1][4]:.2f}"
            shares = [row[3] for row in rows]
            text = f"{100 * shares[0]:.0f} % to {100 * shares[-1]:.0f} %"
            ends[name] = shares[-1] > shares[0], text
    for name, C, single, cells in cells_of(sets):
        figures = printed(C, single).get(PAPER_SETS.get(name, ""), {})
        if figures.get("Pegasos") == "failed" and "Pegasos" in cells:
            failed.setdefault(name, []).append(None in cells["Pegasos"])
        for label, text in figures.items():
            T = numbers(text)[1]
            found = column(cells[label], "epochs") if label in cells else np.array([])
            ranged = len(found) >= RANGE and np.isfinite(found).all()
            if ranged and np.isfinite(T) and name not in STAND_INS:
                among = found.min() <= T <= found.max()
                inside.setdefault(name, []).append(bool(among))
    rise = growth(sets)
    for name, of in rise.items():
        grows[name] = tally(of[m] < of["SGD-m"] for m in of if m != "SGD-m")
    return [
        Verdict("SGD-s gets as accurate as one likes", "Table 1",
                "gap that its own lower bound proves", exact),
        Verdict("Its J, L_T and T are the published ones", "Table 1",
                "J and L_T within 1e-6, T within 10 %", same),
        *(judge(claim, sets) for claim in CLAIMS),
        Verdict("Linear SVMs scale better as C grows", "Tables 2 to 5",
                "linear SVMs whose seconds grow less than for SGD-m", grows),
        Verdict("Pegasos has numerical problems", "Tables 2 and 4, where it failed",
                "cells in which its runs missed the target",
                {name: tally(found) for name, found in failed.items()}),
        Verdict("The published T are ones that these methods produce", "Tables 2 to 7",
                f"within the range over {RANGE} seeds or more",
                {name: tally(found) for name, found in inside.items()}),
        Verdict("A first passage lasts", "not in the paper",
                "runs at C = 1 that stay from within 10 % of the first T on", stays),
        Verdict("w obeys the bound of its norm after every epoch", "Proposition 1",
                "norm over bound at the end", bound),
        Verdict("alpha goes to 0 and to C as optimality asks", "KKT conditions",
                "rows there, from the first epoch to the last", ends),
    ]  # fmt: skip


def growth(sets: Parameters) -> dict[str, dict[str, float]]:
    """Return the seconds at C = 10 over those at C = 1 of SGD-m and linear SVMs."""
    labels = ("SGD-m", "SVMperf", "OCAS", "DCD", MPU)
    medians: dict[tuple[str, float], dict[str, float]] = {}
    for name, C, single, runs in cells_of(sets):
        if not single:
            medians[name, C] = {label: float(np.median(column(runs[label], "seconds")))
                                for label in labels if label in runs}  # fmt: skip
    found = {}
    for name in sets:
        low, high = medians.get((name, 1.0), {}), medians.get((name, 10.0), {})
        both = low.keys() & high.keys()
        if "SGD-m" in both and len(both) > 1 and np.isfinite(low["SGD-m"]):
            found[name] = {m: high[m] / low[m] for m in sorted(both)}
    return found
