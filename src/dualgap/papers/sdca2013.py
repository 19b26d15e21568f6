"""Experiments of Shalev-Shwartz and Zhang 2013 (SDCA), which has figures only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..data.types import Parameters
from ..losses import Hinge, SmoothedHinge
from ..problems import BinaryProblem
from ..solvers import SDCA, Pegasos
from ..solvers.base import Solver
from ..training import solve
from ..training.progress import EpochInfo
from .data import halves
from .frame import Budget, Paper
from .measure import Training, error, gaps, model, span, walk
from .page import Finding, Row, each, tally
from .pictures import Line, Panel

VARIANTS = {
    "permutation": SDCA(),
    "random": SDCA(order="random"),
    "cyclic": SDCA(order="cyclic"),
    "permutation, SGD start": SDCA(init="sgd"),
}
Trace = tuple[list[int], list[float]]


@dataclass(frozen=True)
class SDCASettings:
    """Settings of the runs, and thresholds of the verdicts."""

    #: lambda and gamma, as in the paper.
    lambdas: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6)
    gammas: tuple[float, ...] = (0.0, 0.01, 0.1, 1.0)
    #: Relative accuracies of the crossing, and absolute ones on the scale of lambda.
    targets: tuple[float, ...] = (1e-1, 1e-2, 1e-3)
    absolute: tuple[float, ...] = (1e-2, 1e-3, 1e-4)
    #: Epochs that the tables show, the last of them the longest; and of a quick run.
    marks: tuple[int, ...] = (5, 20, 60)
    quick: tuple[int, ...] = (5, 20)
    #: Epochs to the absolute accuracies.
    epochs: int = 1000
    #: Accuracy of P*.
    resolution: float = 1e-7
    #: Gap where a trace ends: below it rounding bounds what can be proved.
    smallest: float = 1e-8
    #: Part of the first half's rate at which the second half is as fast.
    linear: float = 0.5
    #: The paper's large lambda and few epochs, as an accuracy.
    large: float = 1e-4
    few: float = 1e-2


SETTINGS = SDCASettings()


class SDCAData:
    """A set in random order, and how long it is trained."""

    def __init__(self, name: str, budget: Budget) -> None:
        self.X, self.y, self.test, self.labels = halves(name)
        self.marks = SETTINGS.quick if budget.quick else SETTINGS.marks
        self.seeds, self.epochs = budget.seeds, self.marks[-1]

    def problem(self, lam: float, gamma: float = 0.0) -> BinaryProblem:
        """Return the problem with the hinge, or with one smoothed by gamma."""
        loss = SmoothedHinge(gamma) if gamma else Hinge()
        return BinaryProblem(self.X, self.y, lambda_=lam, loss=loss)

    def trace(self, lam: float, gamma: float, solver: Solver) -> Trace:
        """Return the epochs, and the median over seeds of the gap after each."""
        problem = self.problem(lam, gamma)
        runs = [gaps(problem, solver, self.epochs, seed) for seed in range(self.seeds)]
        length = min(len(gap) for _, gap in runs)  # one that ends early has 1e-9
        middle = np.median([gap[:length] for _, gap in runs], axis=0)
        return runs[0][0][:length], [float(f"{gap:.3g}") for gap in middle]


def order(name: str, budget: Budget) -> Parameters:
    """Return the gaps by the order of the rows, and with a start by Modified-SGD."""
    train = SDCAData(name, budget)
    traces = [
        [lam, label, train.trace(lam, 0.0, solver)]
        for lam in SETTINGS.lambdas
        for label, solver in VARIANTS.items()
    ]
    return {"marks": train.marks, "traces": traces}


def smoothing(name: str, budget: Budget) -> Parameters:
    """Return the gaps by gamma, the rows, and the norm of the longest row."""
    train = SDCAData(name, budget)
    norm = float(np.sqrt(train.X.multiply(train.X).sum(axis=1).max()))
    traces = [[lam, gamma, train.trace(lam, gamma, SDCA())]
              for lam in SETTINGS.lambdas for gamma in SETTINGS.gammas]  # fmt: skip
    found = {"rows": len(train.y), "norm": norm, "marks": train.marks}
    return {**found, "traces": traces}


def errors(name: str, budget: Budget) -> Parameters:
    """Return the test errors in percent after some epochs."""
    train = SDCAData(name, budget)

    def row(lam: float, gamma: float) -> Iterator[str]:
        found: dict[int, str] = {}

        def look(info: EpochInfo) -> None:
            if info.epoch in train.marks:
                wrong = error(model(info), train.test, train.labels)
                found[info.epoch] = f"{100 * wrong:.2f}"

        walk(train.problem(lam, gamma), SDCA(), look, epochs=train.epochs, tol=1e-12)
        return (found.get(mark, "–") for mark in train.marks)

    rows = [
        [lam, gamma, *row(lam, gamma)]
        for lam in SETTINGS.lambdas
        for gamma in SETTINGS.gammas
    ]
    return {"marks": train.marks, "rows": rows}


def crossing(name: str, budget: Budget) -> Parameters:
    """Return the epochs of Pegasos and SDCA to some relative accuracies."""
    data, rows = SDCAData(name, budget), []
    for lam in SETTINGS.lambdas:
        C = 1.0 / (lam * len(data.y))
        train = Training(data.X, data.y, C, SETTINGS.resolution)
        for target in SETTINGS.targets:
            goal = (1 + target) * train.best
            runs = (train.reach(solver, goal, epochs=data.epochs)
                    for solver in (Pegasos(), SDCA()))  # fmt: skip
            rows.append([lam, target, *(run and run[1] for run in runs)])
    return {"most": data.epochs, "rows": rows}


def absolute(name: str, budget: Budget) -> list[list[float | None]]:
    """Return the epochs of SDCA to a proved gap on the scale of lambda."""
    train, rows = SDCAData(name, budget), []
    for lam in SETTINGS.lambdas:
        problem = train.problem(lam)
        for accuracy in SETTINGS.absolute:
            solution = solve(problem, SDCA(), tol=1e-12, random_state=0,
                             atol=accuracy / lam, max_iter=SETTINGS.epochs)  # fmt: skip
            gap = solution.certificate.primal - solution.certificate.dual
            epoch = int(solution.history["epoch"][-1])
            rows.append([lam, accuracy, epoch if lam * gap <= accuracy else None])
    return rows


def at(trace: Trace, epoch: int) -> str:
    """Return the smallest gap proved up to an epoch of a trace."""
    seen = [g for e, g in zip(*trace, strict=True) if e <= epoch]
    return f"{min(seen):.0e}" if seen else "–"


def rates(trace: Trace) -> tuple[float, float]:
    """Return the digits an epoch in the first and second half of a trace.

    A trace ends where it falls below the smallest gap that rounding lets be proved.
    """
    gap = np.minimum.accumulate(trace[1])
    last = max(2, int(np.searchsorted(-gap, -SETTINGS.smallest)))
    digits = -np.log10(gap[: last + 1])
    half = len(digits) // 2
    first = (digits[half] - digits[0]) / max(half, 1)
    return float(first), float((digits[-1] - digits[half]) / (len(digits) - 1 - half))


def predicted(lam: float, gamma: float, found: Parameters) -> float:
    """Return the digits an epoch that the paper's rate for smooth losses promises.

    n + R^2/(lambda gamma) steps gain a factor e, if no row is longer than R.
    """
    product = lam * gamma * found["rows"] / found["norm"] ** 2
    return float(np.log10(np.e) * product / (1.0 + product))


def judge(name: str, found: Parameters) -> Iterator[tuple[str, Finding]]:
    """Yield what a set shows of the claims."""
    if study := found.get("smoothing"):
        known = [(lam, gamma, *rates(trace)) for lam, gamma, trace in study["traces"]]
        linear = [second >= SETTINGS.linear * first for *_, first, second in known]
        smooth = [bool(gamma) for _, gamma, *_ in known]
        yield "promised", tally(min(ends) >= predicted(lam, gamma, study)
                                for lam, gamma, *ends in known if gamma)  # fmt: skip
        pairs = [*zip(linear, smooth, strict=True)]
        yield "linear", tally(straight for straight, gamma in pairs if gamma)
        yield "slower", tally(not straight for straight, gamma in pairs if not gamma)
    if study := found.get("order"):
        ends: dict[float, dict[str, float]] = {}
        for lam, label, trace in study["traces"]:
            ends.setdefault(lam, {})[label] = float(at(trace, study["marks"][-1]))
        last, text = tally(max(e.values()) == e["cyclic"] for e in ends.values())
        ratio = [end["cyclic"] / end["permutation"] for end in ends.values()]
        yield "cyclic", (last, f"{text}, {span(ratio, '.1g')} times")
        faster = [end["permutation"] < end["random"] for end in ends.values()]
        yield "new", (any(faster), tally(faster)[1])
    if study := found.get("errors"):
        table = {(lam, gamma): float(cell) for lam, gamma, cell, *_ in study["rows"]}
        won = [table[lam, 1.0] < table[lam, 0.0] for lam in SETTINGS.lambdas]
        yield "lower", (sum(won) > len(won) / 2, tally(won)[1])
    if study := found.get("crossing"):
        wins = [(lam, target) for lam, target, pegasos, sdca in study["rows"]
                if pegasos and pegasos < (sdca or np.inf)]  # fmt: skip
        only = all(lam >= SETTINGS.large and target >= SETTINGS.few
                   for lam, target in wins)  # fmt: skip
        text = ", ".join(f"{lam:g} to {target:g}" for lam, target in wins)
        yield "sgd", (only if wins else None, text or "nowhere")


def order_table(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the gaps by order and start."""
    study = found["order"]
    for lam, label, trace in study["traces"]:
        cells = {f"gap at {mark}": at(trace, mark) for mark in study["marks"]}
        yield {"lambda": f"{lam:g}", "order": label, **cells}


def smoothing_table(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the gaps by gamma, the measured digits an epoch, and the promised ones."""
    study = found["smoothing"]
    for lam, gamma, trace in study["traces"]:
        first, second = (f"{rate:.2g}" for rate in rates(trace))
        yield {
            "lambda": f"{lam:g}", "gamma": f"{gamma:g}",
            **{f"gap at {mark}": at(trace, mark) for mark in study["marks"]},
            "digits an epoch, first half": first, "second half": second,
            "promised": f"{predicted(lam, gamma, study):.2g}" if gamma else "–",
        }  # fmt: skip


def rate_table(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the digits an epoch of each half, by lambda and gamma."""
    rows: dict[float, dict[str, str]] = {}
    for lam, gamma, trace in found["smoothing"]["traces"]:
        cell = " / ".join(f"{rate:.2g}" for rate in rates(trace))
        label = f"gamma = {gamma:g}" if gamma else "hinge"
        if gamma:
            cell += f" ({predicted(lam, gamma, found['smoothing']):.2g})"
        rows.setdefault(lam, {"lambda": f"{lam:g}"})[label] = cell
    yield from rows.values()


def error_table(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the test errors."""
    study = found["errors"]
    for lam, gamma, *errors in study["rows"]:
        cells = zip((f"error at {m}" for m in study["marks"]), errors, strict=True)
        yield {"lambda": f"{lam:g}", "gamma": f"{gamma:g}", **dict(cells)}


def target_table(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the epochs to each accuracy, by lambda."""
    rows: dict[float, dict[str, str]] = {}
    if study := found.get("crossing"):
        more = f"> {study['most']}"
        for lam, target, *epochs in study["rows"]:
            row = rows.setdefault(lam, {"lambda": f"{lam:g}"})
            row[f"to {target:g}"] = " / ".join(str(e or more) for e in epochs)
    for lam, target, epoch in found.get("absolute", ()):
        row = rows.setdefault(lam, {"lambda": f"{lam:g}"})
        row[f"P − D to {target:g}"] = str(epoch or f"> {SETTINGS.epochs}")
    yield from rows.values()


def draw(sets: Parameters) -> Iterator[Panel]:
    """Yield a panel for each lambda, order and smoothing."""
    for name, found in sets.items():
        for kind in [k for k in ("order", "smoothing") if k in found]:
            for lam in SETTINGS.lambdas:
                lines = [
                    Line(epochs, gaps, label if kind == "order" else f"gamma = {label}")
                    for other, label, (epochs, gaps) in found[kind]["traces"]
                    if other == lam
                ]
                title = f"{name}, lambda = {lam:g}"
                yield Panel(title, "epochs", "relative gap", lines, log="y")


PAPER = Paper(
    settings=SETTINGS,
    sets={"imdb": "astro-ph and CCAT", "covtype": "cov1"},
    parts={"order": order, "smoothing": smoothing, "errors": errors,
           "crossing": crossing, "absolute": absolute},
    judge=judge,
    tables={
        "rates": each(rate_table, "smoothing"),
        "targets": each(target_table, "crossing", "absolute"),
        "order": each(order_table, "order"),
        "smoothing": each(smoothing_table, "smoothing"),
        "errors": each(error_table, "errors"),
    },
    draw=draw, columns=4, quick=Budget(1, 2.0, quick=True),
)  # fmt: skip
