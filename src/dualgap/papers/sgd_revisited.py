"""Experiments of Panagiotakopoulos and Tsampouka 2013 (SGD revisited)."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from functools import partial

import numpy as np

from ..data.types import Parameters
from ..losses import Vector
from ..solvers import SGDm, SGDs, get_solver
from ..solvers.base import Solver
from ..training import solve
from .data import load
from .frame import Budget, Paper, printed, solvers
from .measure import Training, filled, lasting, span
from .names import settings
from .page import Finding, Findings, Row, Rows, Verdict, judged, of_share, tally
from .pictures import Line, Panel

MPU = "MPU (reconstructed)"
#: Table 1 as it was printed.
FIRST = printed("sgd-revisited", "1")
#: Seconds and epochs of each run, None for one that ended at the limit.
Runs = list[tuple[float, int] | None]
UNITS = ("seconds", "epochs")
SETTINGS = settings("sgd-revisited")
CASES, NAMES, STAND_INS = SETTINGS.cases, SETTINGS.names, SETTINGS.stand_ins
SGD, LINEAR = solvers(SETTINGS.sgd), solvers(SETTINGS.linear)


@functools.lru_cache(maxsize=1)
def training(name: str, C: float, dtype: type = np.float64) -> Training:
    """Return a problem of the tables; problems of one C follow each other."""
    X, y = load(name)
    return Training(X.astype(dtype), y, C, SETTINGS.resolution)


def first_table(name: str, budget: Budget) -> Parameters:
    """Return the certificates of fits to a small gap."""
    problem = training(name, SETTINGS.C).problem
    tol = SETTINGS.quick if budget.quick else SETTINGS.gap
    return {
        label: solve(problem, get_solver(label), tol=tol, max_iter=SETTINGS.epochs,
                     random_state=0, check_every=SETTINGS.every).certificate.to_dict()
        for label in ("sgd-s", "sdca", "dcd")
    }  # fmt: skip


def times(
    C: float, methods: dict[str, Solver], name: str, budget: Budget,
    dtype: type = np.float64,
) -> Parameters:  # fmt: skip
    """Return the runs of every method; None is a run that ended at the limit.

    Seeds are the outer loop: a slower hour of the machine hits all methods. A method
    that draws nothing has few runs. A slow one has no more once they took some times
    the limit together.
    """
    train = training(name, C, dtype)
    target = (1.0 + SETTINGS.target) * train.best
    most = SETTINGS.limits * budget.limit
    if (name, C) == ("imdb", 10.0):
        most = SETTINGS.slow
    runs: dict[str, Runs] = {label: [] for label in methods}
    for seed in range(budget.seeds):
        for label, solver in methods.items():
            done = runs[label]
            spent = sum(run[0] if run else budget.limit for run in done)
            fixed = label in SETTINGS.drawless and len(done) == SETTINGS.fixed
            if fixed or spent > most:
                continue
            found = train.reach(solver, target, seed=seed, limit=budget.limit)
            done.append((found.seconds, found.epochs) if found else None)
    return {"limit": budget.limit, "runs": runs}


def stays(name: str, budget: Budget) -> Parameters:
    """Return [first T within the target, T from which on all are] at C = 1.

    The second one is sought up to three times the first.
    """
    train = training(name, 1.0)
    target = (1.0 + SETTINGS.target) * train.best
    seeds = min(budget.seeds, SETTINGS.lasting)
    return {
        label: [[run.epochs, run.last] for run in train.runs(
            solver, target, seeds, SETTINGS.longer * budget.limit)]
        for label, solver in (SGD | LINEAR).items() if label not in SETTINGS.drawless
    }  # fmt: skip


def stop(name: str, budget: Budget) -> list[list[object]]:
    """Return [method, eps, f, runs]; a run has T, exact looks at J, and accuracy."""
    train = training(name, 1.0)
    rows: list[list[object]] = []
    for method, tol in SETTINGS.own:
        for f in SETTINGS.factors:
            runs = []
            for seed in range(budget.seeds):
                solver = (SGDs if method == "sgd-s" else SGDm)(check_factor=f)
                solution = solve(train.problem, solver, tol=tol, random_state=seed,
                                 max_iter=SETTINGS.epochs)  # fmt: skip
                exact = int(solution.history["exact"].sum())
                accuracy = train.loss(solution.w) / train.best - 1.0
                runs.append([solution.certificate.epochs, exact, accuracy])
            rows.append([method, tol, f, runs])
    return rows


def kkt(name: str, budget: Budget) -> list[list[float]]:
    """Return, by T, shares of the rows by alpha and by margin, and Proposition 1.

    A row has T; shares with alpha near 0 and near C; the share of the rows with margins
    not near 1 whose alpha is at the end of the box that optimality asks; and ||w|| over
    its bound after T epochs.
    """
    train = training(name, 1.0)
    X, y, C, n = train.X, train.y, train.C, len(train.y)
    lam = 1.0 / (C * n)
    longest = float(X.multiply(X).sum(axis=1).max())
    rows = []
    for T in SETTINGS.kkt[: SETTINGS.few if budget.quick else None]:
        found = solve(train.problem, SGDs(), tol=1e-12, max_iter=T,
                      random_state=0)  # fmt: skip
        alpha, margin = found.alpha / C, y * (X @ found.w)
        low, high = alpha <= SETTINGS.near, alpha >= 1.0 - SETTINGS.near
        clear = np.abs(margin - 1.0) > SETTINGS.near
        right = np.where(margin > 1.0, low, high)[clear]
        bound = np.sqrt((1.0 + (longest / lam - 1.0) / (T * n)) / lam)
        norm = float(np.linalg.norm(found.w))
        rows.append([T, *map(float, (low.mean(), high.mean(), right.mean())),
                     float(norm / bound)])  # fmt: skip
    return rows


def column(runs: Runs, unit: str) -> Vector:
    """Return the seconds or the epochs, infinite where a run ended at the limit."""
    at = UNITS.index(unit)
    return np.array([run[at] if run else np.inf for run in runs], dtype=float)


def runs_of(found: Parameters, parts: list[str]) -> dict[str, Runs]:
    """Return the runs of some tables by method."""
    runs = [found[part]["runs"] for part in parts if part in found]
    return {label: cell for cells in runs for label, cell in cells.items()}


def figures_of(parts: list[str]) -> dict[str, dict[str, str]]:
    """Return the published rows by set; Table 8's are not known."""
    known = [] if parts == ["8"] else parts
    return printed("sgd-revisited", *known, rename={"MPU": MPU})


def numbers(text: str) -> tuple[float, float]:
    """Return the seconds and T of a printed cell; not a number where there is none."""
    found = re.match(r"([\d.]+)(?: \((\d+)\))?$", text)
    seconds, T = found.groups() if found else (None, None)
    return float(seconds or np.nan), float(T or np.nan)


def share_faster(a: Vector, b: Vector) -> float:
    """Return the share of the pairs of runs in which a is below b; a tie is half."""
    less = np.mean(a[:, None] < b[None, :])
    return float(less + 0.5 * np.mean(a[:, None] == b[None, :]))


def compare(claim: Parameters, sets: Parameters) -> Verdict:
    """Judge that one method is faster than another, and add the published ratios."""
    labels, unit = (claim["faster"], claim["slower"]), claim.get("unit", "seconds")
    parts = next(parts for place, _, parts in CASES if place == claim["place"])
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


def published_epochs(name: str, found: Parameters) -> Findings:
    """Yield whether the published T are in the ranges, and whether Pegasos failed."""
    inside, failed = [], []
    for *_, parts in CASES:
        runs, figures = runs_of(found, parts), figures_of(parts)
        for label, text in figures.get(NAMES.get(name, ""), {}).items():
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


def judge(name: str, found: Parameters) -> Findings:
    """Yield what a set shows of the claims that do not compare two methods."""
    if "1" in found:
        own = found["1"]["sgd-s"]
        gap, goal = own["relative_gap"], own["tol"]
        yield "exact", (gap <= goal, f"{gap:.1g} (target {goal:g})")
        if name in NAMES and name not in STAND_INS:
            row = FIRST[NAMES[name]]
            T, J, L = (own["epochs"] / float(row["T"]), own["primal"] / float(row["J"]),
                       own["dual"] / float(row["L_T"]))  # fmt: skip
            near = max(abs(J - 1), abs(L - 1)) <= SETTINGS.values
            told = f"{J - 1:+.0e} and {L - 1:+.0e}, T {T:.2f} times"
            yield "same", (near and abs(T - 1) <= SETTINGS.off, told)
    yield from published_epochs(name, found)
    low, high = (
        {label: np.median(column(cell, "seconds"))
         for label, cell in runs_of(found, parts).items()} for *_, parts in CASES[:2]
    )  # fmt: skip
    grown = {m: high[m] / low[m] for m in ("SVMperf", "OCAS", "DCD", MPU, "SGD-m")
             if m in low and m in high}  # fmt: skip
    own = grown.pop("SGD-m", np.nan)
    if grown and not np.isnan(own):
        yield "grows", tally(bool(ratio < own) for ratio in grown.values())
    if runs := found.get("stays"):
        yield "lasting", tally(
            last is not None and last <= SETTINGS.good * T
            for some in runs.values() for T, last in some
        )  # fmt: skip
    if rows := found.get("kkt"):
        yield "bound", (all(row[4] <= 1.0 for row in rows), f"{rows[-1][4]:.2f}")
        *before, last = (100 * row[3] for row in rows)
        text = f"{last:.0f} % at last, {span(before, '.0f')} % before"
        yield "ends", (last > max(before), text)


def verdicts(claims: list[Parameters], sets: Parameters) -> list[Verdict]:
    """Judge the claims."""
    return [
        compare(claim, sets) if "faster" in claim else judged([claim], sets, judge)[0]
        for claim in claims
    ]


def cell(runs: Runs, limit: float) -> str:
    """Return the median seconds (and epochs) of a cell of the paper's tables."""
    seconds, epochs = (np.median(column(runs, unit)) for unit in UNITS)
    late = sum(run is None for run in runs)
    if not np.isfinite(seconds):
        return f"> {limit:g} ({late} of {len(runs)})"
    told = f", {late} of {len(runs)} at the limit" * bool(late)
    return f"{seconds:.2g} ({epochs:.0f})" + told


def ranges(runs: Runs, text: str) -> Row:
    """Return the ranges over the seeds, beside T of a printed cell."""
    (seconds, T), known = (column(runs, u) for u in UNITS), numbers(text)[1]
    return {
        "runs": len(runs),
        "seconds": f"{np.median(seconds):.2g}", "range": span(seconds, ".2g"),
        "T": f"{np.median(T):.0f}", "range of T": span(T, ".0f"),
        "published T": "" if np.isnan(known) else f"{known:.0f}",
    }  # fmt: skip


def rows(name: str, found: Parameters) -> Rows:
    """Yield the rows of the tables.

    Runs with the paper's own stop have T, the accuracy there, and the exact looks at J.
    """
    for solver, c in found.get("1", {}).items():
        yield "first", filled(SETTINGS.first, **{**c, "solver": solver})
    for place, C, parts in CASES:
        if runs := runs_of(found, parts):
            limit = max(found[part]["limit"] for part in parts if part in found)
            cells = {label: cell(some, limit) for label, some in runs.items()}
            yield "tables" + "".join(parts), cells
        figures = figures_of(parts).get(NAMES.get(name, ""), {})
        for label, some in runs.items():
            known = "" if name in STAND_INS else figures.get(label, "")
            method = label + ", single" * (place == "Table 8")
            yield "ranges", {"C": f"{C:g}", "method": method, **ranges(some, known)}
    if study := found.get("stays"):
        yield "lasting", {label: " / ".join(lasting(some))
                          for label, some in study.items() if some}  # fmt: skip
    if study := found.get("order"):
        epochs = {kind: column(some, "epochs") for kind, some in study["runs"].items()}
        yield "order", {kind: f"{np.median(T):.0f} ({span(T, '.0f')})"
                        for kind, T in epochs.items()}  # fmt: skip
    stops: dict[tuple[str, float], dict[str, str]] = {}
    for solver, tol, f, some in found.get("stop", ()):
        T, exact, accuracy = np.median(some, axis=0)
        row = stops.setdefault((solver, tol), {"solver": solver, "eps": f"{tol:g}"})
        row[f"f = {f:g}"] = f"{T:.0f}, {100 * accuracy:.2g} %, {exact:.0f}"
    yield from (("stop", row) for row in stops.values())
    for T, *shares, norm in found.get("kkt", ())[::4]:
        percent = (100 * share for share in shares)
        yield "optimality", filled(SETTINGS.optimality, T, *percent, norm)


def tables(sets: Parameters) -> dict[str, list[Row]]:
    """Return the published tables."""
    printed = [(SETTINGS.C, FIRST), *((C, figures_of(parts)) for _, C, parts in CASES)]
    return {"published": [
        {"C": f"{C:g}", **row} for C, found in printed for row in found.values()
    ]}  # fmt: skip


def draw(sets: Parameters) -> Iterator[Panel]:
    """Yield T here against T published, and seconds over the seconds of DCD."""
    epochs, seconds = [], []
    for label in SGD | LINEAR:
        pairs, points = [], []
        for name, found in sets.items():
            for *_, parts in CASES[:3]:
                runs = runs_of(found, parts)
                figures = figures_of(parts).get(NAMES.get(name, ""), {})
                if not {label, "DCD"} <= runs.keys() & figures.keys():
                    continue
                shown, T = numbers(figures[label])
                own = column(runs[label], "epochs")
                known = label in SGD and np.isfinite([T, *own]).all()
                if known and name not in STAND_INS:
                    pairs.append((T, np.median(own), (own.min(), own.max())))
                here = [np.median(column(runs[m], "seconds")) for m in (label, "DCD")]
                if label != "DCD" and np.isfinite([shown, *here]).all():
                    over = shown / numbers(figures["DCD"])[0]
                    points.append((over, here[0] / here[1]))
        if pairs:
            T, own, ends = zip(*pairs, strict=True)
            epochs.append(Line(T, own, label, ranges=ends))
        if points:
            x, y = zip(*points, strict=True)
            seconds.append(Line(x, y, label, "o"))
    for title, lines in (("Epochs to 1 %, Adult and Web", epochs),
                         ("Seconds over the seconds of DCD", seconds)):  # fmt: skip
        yield Panel(title, "published", "here", lines, log="xy", diagonal=True)


PAPER = Paper(
    settings=SETTINGS,
    parts={
        "1": first_table,
        **{part: partial(times, C, methods) for _, C, parts in CASES[:3]
           for part, methods in zip(parts, (SGD, LINEAR), strict=True)},
        "8": partial(times, 1.0, solvers(SETTINGS.single), dtype=np.float32),
        "order": partial(times, 1.0, solvers(SETTINGS.orders)),
        "stays": stays, "stop": stop, "kkt": kkt,
    },
    verdicts=verdicts, rows=rows, tables=tables,
    published={
        "first": [{key: FIRST[name][key] for key in ("data", "T", "J", "L_T")}
                  for name in ("Adult", "Web")],
        **{"tables" + "".join(parts): [*figures_of(parts).values()][:2]
           for *_, parts in CASES},
    },
    draw=draw,
)  # fmt: skip
