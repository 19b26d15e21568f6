"""Experiments of Shalev-Shwartz and Zhang 2013 (SDCA), which has figures only."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ..data.types import Parameters
from ..losses import Hinge, SmoothedHinge
from ..problems import BinaryProblem
from ..solvers import SDCA, Pegasos
from ..solvers.base import Solver
from ..training import solve
from .data import halves
from .frame import Budget, Paper, solvers
from .measure import Training, after, error, span
from .names import settings
from .page import Findings, Rows, judged, tally
from .pictures import Line, Panel

#: Epochs, and the gap after each.
Trace = tuple[list[int], list[float]]
SETTINGS = settings("sdca2013")
ORDERS = solvers(SETTINGS.orders)
#: What a table has a trace of for every lambda: a label, gamma, and the solver.
Cases = Sequence[tuple[str | float, float, Solver]]


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
        """Return the epochs, and the median over seeds of the gap proved after each."""
        problem, gaps, epochs = self.problem(lam, gamma), [], []
        for seed in range(self.seeds):
            found = solve(problem, solver, tol=1e-9, max_iter=self.epochs,
                          random_state=seed, check_every=1).history  # fmt: skip
            found = found[found["exact"] & (found["dual"] > 0)]
            gap = (found["primal"] - found["dual"]) / found["dual"]
            gaps.append(np.maximum(gap, 1e-16))
            epochs.append(found["epoch"].tolist())
        length = min(map(len, gaps))  # one that ends early has 1e-9
        middle = np.median([gap[:length] for gap in gaps], axis=0)
        return epochs[0][:length], [float(f"{gap:.3g}") for gap in middle]


def traces(name: str, budget: Budget, cases: Cases) -> Parameters:
    """Return the gaps of some cases, the rows, and the norm of the longest row."""
    train = SDCAData(name, budget)
    norm = float(np.sqrt(train.X.multiply(train.X).sum(axis=1).max()))
    found = [[lam, label, train.trace(lam, gamma, solver)]
             for lam in SETTINGS.lambdas for label, gamma, solver in cases]  # fmt: skip
    return {"rows": len(train.y), "norm": norm, "marks": train.marks, "traces": found}


def errors(name: str, budget: Budget) -> Parameters:
    """Return the test errors in percent after some epochs."""
    train, rows = SDCAData(name, budget), []
    wrong = partial(error, test=train.test, labels=train.labels)
    for lam, gamma in itertools.product(SETTINGS.lambdas, SETTINGS.gammas):
        problem = train.problem(lam, gamma)
        shares = after(problem, SDCA(), train.marks, wrong, tol=1e-12)
        rows.append([lam, gamma, *(f"{100 * share:.2f}" for share in shares)])
    return {"marks": train.marks, "rows": rows}


def crossing(name: str, budget: Budget) -> Parameters:
    """Return the first and lasting epochs of Pegasos and SDCA to some accuracies."""
    data, rows = SDCAData(name, budget), []
    for lam in SETTINGS.lambdas:
        train = Training(data.X, data.y, 1 / (lam * len(data.y)), SETTINGS.resolution)
        for target in SETTINGS.targets:
            goal = (1 + target) * train.best
            runs = (train.reach(solver, goal, epochs=data.epochs, times=3)
                    for solver in (Pegasos(), SDCA()))  # fmt: skip
            rows.append([lam, target, *(r and (r.epochs, r.last) for r in runs)])
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


def judge(name: str, found: Parameters) -> Findings:
    """Yield what a set shows of the claims."""
    if study := found.get("smoothing"):
        known = [(lam, gamma, *rates(trace)) for lam, gamma, trace in study["traces"]]
        linear = [(gamma, second >= SETTINGS.linear * first)
                  for _, gamma, first, second in known]  # fmt: skip
        yield "promised", tally(min(ends) >= predicted(lam, gamma, study)
                                for lam, gamma, *ends in known if gamma)  # fmt: skip
        yield "linear", tally(straight for gamma, straight in linear if gamma)
        yield "slower", tally(not straight for gamma, straight in linear if not gamma)
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
                if pegasos and pegasos[0] < (sdca or [np.inf])[0]]  # fmt: skip
        only = all(lam >= SETTINGS.large and target >= SETTINGS.few
                   for lam, target in wins)  # fmt: skip
        text = ", ".join(f"{lam:g} to {target:g}" for lam, target in wins)
        yield "sgd", (only if wins else None, text or "nowhere")


def rows(name: str, found: Parameters) -> Rows:
    """Yield the rows of the tables."""
    if study := found.get("order"):
        for lam, label, trace in study["traces"]:
            cells = {f"gap at {mark}": at(trace, mark) for mark in study["marks"]}
            yield "order", {"lambda": f"{lam:g}", "order": label, **cells}
    by_gamma: dict[float, dict[str, str]] = {}
    if study := found.get("smoothing"):
        for lam, gamma, trace in study["traces"]:
            first, second = (f"{rate:.2g}" for rate in rates(trace))
            promised = f"{predicted(lam, gamma, study):.2g}" if gamma else "–"
            yield "smoothing", {
                "lambda": f"{lam:g}", "gamma": f"{gamma:g}",
                **{f"gap at {mark}": at(trace, mark) for mark in study["marks"]},
                "digits an epoch, first half": first, "second half": second,
                "promised": promised,
            }  # fmt: skip
            row = by_gamma.setdefault(lam, {"lambda": f"{lam:g}"})
            label = f"gamma = {gamma:g}" if gamma else "hinge"
            row[label] = f"{first} / {second}" + f" ({promised})" * bool(gamma)
    if study := found.get("errors"):
        for lam, gamma, *errors in study["rows"]:
            marks = (f"error at {mark}" for mark in study["marks"])
            yield "errors", {"lambda": f"{lam:g}", "gamma": f"{gamma:g}",
                             **dict(zip(marks, errors, strict=True))}  # fmt: skip
    by_target: dict[float, dict[str, str]] = {}
    if study := found.get("crossing"):
        for lam, target, *runs in study["rows"]:
            row = by_target.setdefault(lam, {"lambda": f"{lam:g}"})
            most = f"> {study['most']}"
            told = (f"{a[0]} ({a[1] or '–'})" if a else most for a in runs)
            row[f"to {target:g}"] = " / ".join(told)
    for lam, target, epoch in found.get("absolute", ()):
        row = by_target.setdefault(lam, {"lambda": f"{lam:g}"})
        row[f"P − D to {target:g}"] = str(epoch or f"> {SETTINGS.epochs}")
    yield from (("rates", row) for row in by_gamma.values())
    yield from (("targets", row) for row in by_target.values())


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
    parts={
        "order": partial(traces, cases=[(k, 0.0, one) for k, one in ORDERS.items()]),
        "smoothing": partial(traces, cases=[(g, g, SDCA()) for g in SETTINGS.gammas]),
        "errors": errors, "crossing": crossing, "absolute": absolute,
    },
    verdicts=partial(judged, judge=judge), rows=rows, draw=draw, columns=4,
)  # fmt: skip
