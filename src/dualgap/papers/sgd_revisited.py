"""Tables of Panagiotakopoulos and Tsampouka 2013 (SGD revisited)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..data.types import Parameters
from ..solvers import DCD, SGDQN, Pegasos, SGDm, SGDs, SvmSGD, get_solver
from ..solvers.base import Solver
from ..training import solve
from .data import load
from .frame import Budget, Paper
from .measure import Training, lasting, span
from .page import Row, each
from .pictures import Line, Panel
from .sgd_revisited_claims import (
    CASES,
    FIRST,
    FIXED,
    MPU,
    PAPER_SETS,
    STAND_INS,
    Runs,
    column,
    figures_of,
    numbers,
    runs_of,
    verdicts,
)


@dataclass(frozen=True)
class SGDSettings:
    """Settings of the runs."""

    #: Relative error of the objective, of all tables but the first, and of the optimum.
    target: float = 0.01
    resolution: float = 1e-6
    #: Table 1: C, the gap, the gap of a quick run, and epochs between proofs.
    C: float = 0.1
    gap: float = 1e-5
    quick: float = 1e-3
    every: int = 100
    #: Most epochs of any fit.
    epochs: int = 2_000_000
    #: Runs of a method that draws nothing, and limits after which a cell has no more.
    fixed: int = 3
    limits: float = 4.0
    #: Limit of a cell of imdb at C = 10, where five of nine methods need over 10 s.
    slow: float = 2.0
    #: Seeds of the epochs from which w is accurate for good, and limits of a run.
    lasting: int = 3
    longer: float = 6.0
    #: Accuracies that the paper gave two methods on Adult at C = 1, and its factors f.
    own: tuple[tuple[str, float], ...] = (
        ("sgd-s", 0.105), ("sgd-m", 0.105), ("sgd-m", 0.33),
    )  # fmt: skip
    factors: tuple[float, ...] = (1.0, 1.2, 2.0, 10.0)
    #: Epochs after which optimality is looked at, and how many in a quick run.
    kkt: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100, 200, 500)
    few: int = 6
    #: Distance of alpha from its ends, and of margins from 1, that is near.
    near: float = 0.05


SETTINGS = SGDSettings()
SGD = {
    "Pegasos": Pegasos(projection=True, sampling="random"),
    "SGD-r": get_solver("sgd-r"),
    "SGD-s": get_solver("sgd-s"),
    "SGD-m": get_solver("sgd-m"),
}
LINEAR = {
    "SVMperf": get_solver("cutting-plane"),
    "OCAS": get_solver("ocas"),
    "DCD": DCD(shrinking="hsieh", acceleration="none"),
    MPU: get_solver("mpu"),
    "dualgap's DCD": get_solver("dcd"),
}
# Table 8 compares the methods of its sources in single precision, SvmSGD and SGD-QN on
# rows shuffled once.
SINGLE = {
    "SvmSGD": SvmSGD(order="fixed"),
    "SGD-QN": SGDQN(order="fixed"),
    "SGD-m": get_solver("sgd-m"),
    MPU: get_solver("mpu"),
}
ORDERS: dict[str, Solver] = {
    "permutation": SGDs(),
    "fixed": SGDs(order="fixed"),
    "cyclic": SGDs(order="cyclic"),
}


def training(name: str, C: float, dtype: type = np.float64) -> Training:
    """Return a problem of the tables."""
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
    C: float, methods: dict[str, Solver], single: bool, name: str, budget: Budget
) -> Parameters:
    """Return the runs of every method; None is a run that ended at the limit.

    Seeds are the outer loop: a slower hour of the machine hits all methods. A method
    that draws nothing has few runs. A slow one has no more once they took some times
    the limit together.
    """
    train = training(name, C, np.float32 if single else np.float64)
    target = (1.0 + SETTINGS.target) * train.best
    most = SETTINGS.limits * budget.limit
    if (name, C) == ("imdb", 10.0):
        most = SETTINGS.slow
    runs: dict[str, Runs] = {label: [] for label in methods}
    for seed in range(budget.seeds):
        for label, solver in methods.items():
            done = runs[label]
            spent = sum((run[0] or 0.0) if run else budget.limit for run in done)
            if (label in FIXED and len(done) == SETTINGS.fixed) or spent > most:
                continue
            found = train.reach(solver, target, seed=seed, limit=budget.limit)
            done.append(found and found[:2])
    return {"limit": budget.limit, "runs": runs}


def stays(name: str, budget: Budget) -> Parameters:
    """Return [first T within the target, T from which on all are] at C = 1.

    The second one is sought up to three times the first.
    """
    train, found = training(name, 1.0), Parameters()
    target = (1.0 + SETTINGS.target) * train.best
    limit = SETTINGS.longer * budget.limit
    for label, solver in (SGD | LINEAR).items():
        if label in FIXED:
            continue
        found[label] = []
        for seed in range(min(budget.seeds, SETTINGS.lasting)):
            run = train.reach(solver, target, seed=seed, limit=limit)
            if run is None:
                break
            last = train.settled(solver, target, 3 * run[1], seed=seed)
            found[label].append([run[1], last])
    return found


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


def cell(runs: Runs, limit: float) -> str:
    """Return the median seconds (and epochs) of a cell of the paper's tables."""
    seconds, epochs = (np.median(column(runs, unit)) for unit in ("seconds", "epochs"))
    late = sum(run is None for run in runs)
    if not np.isfinite(seconds):
        return f"> {limit:g} ({late} of {len(runs)})"
    text = f"{seconds:.2g} ({epochs:.0f})"
    return text + f", {late} of {len(runs)} at the limit" if late else text


def by_case(name: str, found: Parameters, parts: tuple[str, ...]) -> Iterator[Row]:
    """Yield the medians of a case."""
    limit = max(found[part]["limit"] for part in parts if part in found)
    yield {label: cell(runs, limit) for label, runs in runs_of(found, parts).items()}


def first_rows(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the certificates of Table 1."""
    for solver, c in found["1"].items():
        yield {"solver": solver, "T": f"{c['epochs']:,}", "J": f"{c['primal']:.4f}",
               "L_T": f"{c['dual']:.4f}", "rel. gap": f"{c['relative_gap']:.1e}",
               "s": f"{c['seconds']:.1f}"}  # fmt: skip


def ranges(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the ranges over the seeds, beside T as it was published."""
    for _, C, single, parts in CASES:
        figures = figures_of(parts).get(PAPER_SETS.get(name, ""), {})
        for label, runs in runs_of(found, parts).items():
            seconds, T = column(runs, "seconds"), column(runs, "epochs")
            known = numbers(figures.get(label, ""))[1]
            shown = "" if np.isnan(known) or name in STAND_INS else f"{known:.0f}"
            yield {
                "C": f"{C:g}", "method": label + ", single" * single,
                "seconds": f"{np.median(seconds):.2g}", "range": span(seconds, ".2g"),
                "runs": len(seconds), "T": f"{np.median(T):.0f}",
                "range of T": span(T, ".0f"), "all runs": len(runs),
                "published T": shown,
            }  # fmt: skip


def lasts(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the first T of each method / the T from which on all are as good."""
    yield {label: " / ".join(lasting(runs)) for label, runs in found["stays"].items()
           if runs}  # fmt: skip


def orders(name: str, found: Parameters) -> Iterator[Row]:
    """Yield T by the order of the rows."""
    cells = {kind: column(runs, "epochs")
             for kind, runs in found["order"]["runs"].items()}  # fmt: skip
    yield {kind: f"{np.median(T):.0f} ({span(T, '.0f')})" for kind, T in cells.items()}


def own_stop(name: str, found: Parameters) -> Iterator[Row]:
    """Yield where the paper's rule stops, and how accurate w is there, by f."""
    rows: dict[tuple[str, float], dict[str, str]] = {}
    for solver, tol, f, runs in found["stop"]:
        T, exact, accuracy = np.median(runs, axis=0)
        row = rows.setdefault((solver, tol), {"solver": solver, "eps": f"{tol:g}"})
        row[f"f = {f:g}"] = f"{T:.0f}, {100 * accuracy:.2g} %, {exact:.0f}"
    yield from rows.values()


def optimality(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the shares of the rows, and the norm of w over its bound."""
    for T, low, high, right, norm in found["kkt"][::4]:
        yield {"T": T, "alpha near 0, %": f"{100 * low:.1f}",
               "near C, %": f"{100 * high:.1f}",
               "as at the optimum, %": f"{100 * right:.1f}",
               "norm over bound": f"{norm:.3f}"}  # fmt: skip


def draw(sets: Parameters) -> Iterator[Panel]:
    """Yield T here against T published, and seconds over the seconds of DCD."""
    epochs, seconds = [], []
    for label in SGD | LINEAR:
        pairs, points = [], []
        for name, found in sets.items():
            for *_, parts in CASES[:3]:
                runs = runs_of(found, parts)
                figures = figures_of(parts).get(PAPER_SETS.get(name, ""), {})
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
    sets={"a9a": "", "w8a": "", "imdb": "Realsim", "cov1": "the whole of Covertype"},
    skipped={
        "w8a": ("stop",),
        "imdb": ("1", "order", "stop", "kkt"),
        "cov1": ("1", "order", "stop", "kkt"),
    },
    parts={
        "1": first_table,
        "2": partial(times, 1.0, SGD, False),
        "3": partial(times, 1.0, LINEAR, False),
        "4": partial(times, 10.0, SGD, False),
        "5": partial(times, 10.0, LINEAR, False),
        "6": partial(times, 0.05, SGD, False),
        "7": partial(times, 0.05, LINEAR, False),
        "8": partial(times, 1.0, SINGLE, True),
        "order": partial(times, 1.0, ORDERS, False),
        "stays": stays, "stop": stop, "kkt": kkt,
    },
    verdicts=verdicts,
    tables={
        "first": each(first_rows, "1", published=[
            {key: FIRST[name][key] for key in ("data", "T", "J", "L_T")}
            for name in ("Adult", "Web")
        ]),
        **{
            "tables" + "".join(parts): each(
                partial(by_case, parts=parts), *parts,
                published=[*figures_of(parts).values()][:2],
            )
            for *_, parts in CASES
        },
        "ranges": each(ranges, *(part for *_, parts in CASES for part in parts)),
        "published": lambda sets: [
            {"C": f"{C:g}", **row}
            for C, rows in [(SETTINGS.C, FIRST)] + [
                (C, figures_of(parts)) for _, C, _, parts in CASES
            ]
            for row in rows.values()
        ],
        "lasting": each(lasts, "stays"),
        "order": each(orders, "order"),
        "stop": each(own_stop, "stop"),
        "optimality": each(optimality, "kkt"),
    },
    draw=draw, budget=Budget(15, 10.0), quick=Budget(2, 0.5, quick=True),
    quick_sets=("breast-cancer",),
)  # fmt: skip
