"""Experiments of Shalev-Shwartz and Zhang 2013 (SDCA), which has figures only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..data.types import Parameters
from ..losses import Hinge, SmoothedHinge, Vector
from ..problems import BinaryProblem
from ..solvers import SDCA, Pegasos
from ..solvers.base import Solver
from ..training import solve
from ..training.progress import EpochInfo
from .data import halves
from .frame import Budget, Finding, Page, Paper, Verdict, tally
from .measure import error, gaps, objective, optimum, reach, span

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAMBDAS = [1e-3, 1e-4, 1e-5, 1e-6]
GAMMAS = [0.0, 0.01, 0.1, 1.0]
TARGETS = [1e-1, 1e-2, 1e-3]
ABSOLUTE = [1e-2, 1e-3, 1e-4]
VARIANTS = {
    "permutation": SDCA(),
    "random": SDCA(order="random"),
    "cyclic": SDCA(order="cyclic"),
    "permutation, SGD start": SDCA(init="sgd"),
}
Trace = tuple[list[int], list[float]]


class SDCAData:
    """A set in random order, and how long it is trained."""

    def __init__(self, name: str, budget: Budget) -> None:
        self.X, self.y, self.test, self.labels = halves(name)
        self.seeds, self.epochs = budget.seeds, 20 if budget.quick else 60
        self.marks = [5, self.epochs] if budget.quick else [5, 20, self.epochs]

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
        for lam in LAMBDAS
        for label, solver in VARIANTS.items()
    ]
    return {"marks": train.marks, "traces": traces}


def smoothing(name: str, budget: Budget) -> Parameters:
    """Return the gaps by gamma, the rows, and the norm of the longest row."""
    train = SDCAData(name, budget)
    norm = float(np.sqrt(train.X.multiply(train.X).sum(axis=1).max()))
    traces = [[lam, gamma, train.trace(lam, gamma, SDCA())]
              for lam in LAMBDAS for gamma in GAMMAS]  # fmt: skip
    found = {"rows": len(train.y), "norm": norm, "marks": train.marks}
    return {**found, "traces": traces}


def errors(name: str, budget: Budget) -> Parameters:
    """Return the test errors in percent after some epochs."""
    train = SDCAData(name, budget)

    def row(lam: float, gamma: float) -> Iterator[str]:
        found: dict[int, str] = {}

        def look(info: EpochInfo) -> None:
            if info.epoch in train.marks and info.epoch not in found:
                assert info.model is not None
                wrong = error(info.model(), train.test, train.labels)
                found[info.epoch] = f"{100 * wrong:.2f}"

        solve(train.problem(lam, gamma), SDCA(), tol=1e-12, max_iter=train.epochs,
              random_state=0, on_epoch=look)  # fmt: skip
        return (found.get(mark, "–") for mark in train.marks)

    rows = [[lam, gamma, *row(lam, gamma)] for lam in LAMBDAS for gamma in GAMMAS]
    return {"marks": train.marks, "rows": rows}


def crossing(name: str, budget: Budget) -> Parameters:
    """Return the epochs of Pegasos and SDCA to some relative accuracies."""
    train, rows = SDCAData(name, budget), []
    for lam in LAMBDAS:
        C, problem = 1.0 / (lam * len(train.y)), train.problem(lam)
        best = optimum(train.X, train.y, C)

        def loss(w: Vector, C: float = C) -> float:
            return objective(train.X, train.y, C, w)

        for target in TARGETS:
            found = []
            for solver in (Pegasos(), SDCA()):
                goal = (1 + target) * best
                run = reach(problem, solver, loss, goal, epochs=train.epochs)
                found.append(run and run[1])
            rows.append([lam, target, *found])
    return {"most": train.epochs, "rows": rows}


def absolute(name: str, budget: Budget) -> list[list[float | None]]:
    """Return the epochs of SDCA to a proved gap on the scale of lambda."""
    train, rows = SDCAData(name, budget), []
    for lam in LAMBDAS:
        problem = train.problem(lam)
        for accuracy in ABSOLUTE:
            solution = solve(problem, SDCA(), tol=1e-12, random_state=0,
                             atol=accuracy / lam, max_iter=1000)  # fmt: skip
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

    A trace ends where it falls below 1e-8: there rounding bounds what can be proved.
    """
    gap = np.minimum.accumulate(trace[1])
    last = max(2, int(np.searchsorted(-gap, -1e-8)))
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


def verdicts(sets: Parameters) -> list[Verdict]:
    """Judge the claims."""
    promised, linear, slower, cyclic, new, lower, sgd = ({} for _ in range(7))
    for name, found in sets.items():
        if study := found.get("smoothing"):
            known = [(lam, gamma, *rates(trace)) for lam, gamma, trace in
                     study["traces"]]  # fmt: skip
            promised[name] = tally(
                min(first, second) >= predicted(lam, gamma, study)
                for lam, gamma, first, second in known
                if gamma
            )
            linear[name] = tally(s >= f / 2 for _, gamma, f, s in known if gamma)
            slower[name] = tally(s < f / 2 for _, gamma, f, s in known if not gamma)
        if study := found.get("order"):
            last = study["marks"][-1]
            ends: dict[float, dict[str, float]] = {}
            for lam, label, trace in study["traces"]:
                ends.setdefault(lam, {})[label] = float(at(trace, last))
            decided, text = tally(max(end.values()) == end["cyclic"]
                                  for end in ends.values())  # fmt: skip
            ratio = [end["cyclic"] / end["permutation"] for end in ends.values()]
            cyclic[name] = decided, f"{text}, {span(ratio, '.1g')} times"
            faster = [end["permutation"] < end["random"] for end in ends.values()]
            new[name] = any(faster), tally(faster)[1]
        if study := found.get("errors"):
            table = {(lam, gamma): float(cell) for lam, gamma, cell, *_ in
                     study["rows"]}  # fmt: skip
            won = [table[lam, 1.0] < table[lam, 0.0] for lam in LAMBDAS]
            lower[name] = sum(won) > len(won) / 2, tally(won)[1]
        if study := found.get("crossing"):
            sgd[name] = where(study["rows"])
    return [
        Verdict("The smoothed hinge gains what the theory promises", "smooth losses",
                "cases with these digits an epoch", promised),
        Verdict("The smoothed hinge converges linearly", "figures",
                "cases whose second half is at least half as fast as the first",
                linear),
        Verdict("The hinge is slower at the end", "figures",
                "cases whose second half is less than half as fast", slower),
        Verdict("Cyclic order is much worse", "figures",
                "values of lambda at which it ends furthest away; its gap over a "
                "permutation's", cyclic),
        Verdict("Permutations are sometimes faster than independent draws", "figures",
                "values of lambda", new),
        Verdict("The smoothed hinge often has the lower test error", "figures",
                "values of lambda, gamma = 1 after 5 epochs", lower),
        Verdict("SGD is better only for large lambda and few epochs", "figures",
                "where Pegasos needs fewer epochs, of lambda to accuracies", sgd),
    ]  # fmt: skip


def where(rows: list[list[float]]) -> Finding:
    """Return whether Pegasos is ahead of SDCA only where the paper says, and where."""
    wins = [(lam, target) for lam, target, pegasos, sdca in rows
            if pegasos and pegasos < (sdca or np.inf)]  # fmt: skip
    if not wins:
        return None, "nowhere"
    only = all(lam >= 1e-4 and target >= 1e-2 for lam, target in wins)
    return only, ", ".join(f"{lam:g} to {target:g}" for lam, target in wins)


def write(page: Page, sets: Parameters) -> None:
    """Add the tables."""
    for name, found in sets.items():
        page.say(f"## {name}\n")
        if study := found.get("order"):
            marks = study["marks"]
            rows = [[f"{lam:g}", label, *(at(trace, e) for e in marks)]
                    for lam, label, trace in study["traces"]]  # fmt: skip
            header = [f"gap at {e}" for e in marks]
            page.table(["lambda", "order", *header], rows,
                       "Order of the rows and start, with the hinge")  # fmt: skip
        if study := found.get("smoothing"):
            rows = [
                [f"{lam:g}", f"{gamma:g}", *(at(trace, e) for e in study["marks"]),
                 *(f"{rate:.2g}" for rate in rates(trace)),
                 f"{predicted(lam, gamma, study):.2g}" if gamma else "–"]
                for lam, gamma, trace in study["traces"]
            ]  # fmt: skip
            header = [f"gap at {e}" for e in study["marks"]]
            page.table(
                ["lambda", "gamma", *header, "digits an epoch, first half",
                 "second half", "promised"], rows,
                "Smoothing: each gap is of its own problem, and gamma = 0 is the hinge",
            )  # fmt: skip
        if study := found.get("errors"):
            rows = [[f"{lam:g}", f"{gamma:g}", *rest] for lam, gamma, *rest in
                    study["rows"]]  # fmt: skip
            header = [f"error at {e}" for e in study["marks"]]
            page.table(["lambda", "gamma", *header], rows, "Test error in percent")
        if study := found.get("crossing"):
            more = f"> {study['most']}"
            page.say("Epochs of Pegasos / SDCA to an accuracy (P − P\\*)/P\\*:\n")
            rows = [[*row[:2], *(e or more for e in row[2:])] for row in study["rows"]]
            grid(page, rows, lambda row: f"{row[2]} / {row[3]}")
        if study := found.get("absolute"):
            page.say("Epochs of SDCA to a proved P − D on the scale of lambda:\n")
            grid(page, study, lambda row: str(row[2] or "> 1000"))


def grid(
    page: Page, rows: list[list[float]], cell: Callable[[list[float]], str]
) -> None:
    """Add a table of lambda against the accuracies."""
    targets = [f"{row[1]:.0e}".replace("e-0", "e-") for row in rows[: len(TARGETS)]]
    page.table(["lambda", *targets],
               [[f"{lam:g}", *(cell(row) for row in rows if row[0] == lam)]
                for lam in LAMBDAS])  # fmt: skip


def draw(figure: Figure, sets: Parameters) -> None:
    """Draw a column for each lambda, order and smoothing below it."""
    rows = [(name, kind) for name, found in sets.items()
            for kind in ("order", "smoothing") if kind in found]  # fmt: skip
    if not rows:
        return
    figure.set_size_inches(11, 2.3 * len(rows))
    axes = figure.subplots(len(rows), len(LAMBDAS), sharex=True, squeeze=False)
    for (name, kind), row in zip(rows, axes, strict=True):
        for lam, label, trace in sets[name][kind]["traces"]:
            text = label if kind == "order" else f"gamma = {label:g}"
            row[LAMBDAS.index(lam)].semilogy(*trace, label=text)
        for lam, ax in zip(LAMBDAS, row, strict=True):
            ax.set_title(f"{name}, lambda = {lam:g}", fontsize=9)
            ax.grid(True, alpha=0.3)
        row[0].set_ylabel("relative gap")
        row[-1].legend(fontsize=7)
    for ax in axes[-1]:
        ax.set_xlabel("epochs")


PAPER = Paper(
    title="SDCA (Shalev-Shwartz and Zhang 2013), reproduced",
    about=(
        "- **Limits.** The paper has figures only, so its numbers cannot be compared, "
        "and its sets are not included. Test errors and crossings are of one seed.\n"
        "- **Gaps.** Each is the relative gap (P − D)/D proved after a number of "
        "epochs, the median of the seeds. There is no bias. The rows were shuffled "
        "once, so cyclic order is a random one.\n"
        "- **Digits.** How many decimal digits the gap loses in an epoch, in each half "
        "of the run until it is below 1e-8, beside what the theory promises.\n"
        "- **Theory.** n + R²/(lambda gamma) steps gain a factor e, where R is the "
        "norm of the longest row. With a small lambda gamma n an epoch gains next to "
        "nothing by that, and the smoothed hinge behaves like the hinge.\n"
        "- **Test rows.** imdb's own test half, and a tenth of other sets."
    ),
    sets={"imdb": "astro-ph and CCAT", "covtype": "cov1"},
    parts={"order": order, "smoothing": smoothing, "errors": errors,
           "crossing": crossing, "absolute": absolute},
    verdicts=verdicts, write=write, draw=draw, quick=Budget(1, 2.0, quick=True),
)  # fmt: skip
