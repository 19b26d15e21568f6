"""Linear experiments of Shalev-Shwartz et al. 2011 (Pegasos)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ..data.types import Parameters
from ..solvers import NORMA, Pegasos
from ..solvers.base import Solver
from .data import halves
from .frame import Budget, Paper, printed, solvers
from .measure import Training, error, lasting
from .names import settings
from .page import Findings, Rows, judged, tally
from .pictures import Line, Panel

SETTINGS = settings("pegasos2011")
#: The paper's Table 1, and its lambda and accuracy by our sets.
TABLE = printed("pegasos2011", "1")
CASES = {one: (float(TABLE[other]["lambda"]), float(TABLE[other]["accuracy"]))
         for one, other in SETTINGS.published_run["sets"].items()}  # fmt: skip
METHODS = solvers(SETTINGS.methods)
#: Labels of solvers: sampling and projection, or the output.
Solvers = list[tuple[tuple[str | bool | None, ...], Solver]]
SAMPLING: Solvers = [
    ((way, on), Pegasos(sampling=way, projection=on))
    for way in ("permutation", "random") for on in (False, True)
] + [(("NORMA", None), NORMA())]  # fmt: skip
OUTPUT: Solvers = [
    ((kind,), Pegasos(sampling="random", output=kind)) for kind in ("last", "average")
]


class PegasosTraining(Training):
    """The training problem of a set, with the paper's lambda and accuracy."""

    def __init__(self, name: str) -> None:
        self.lam, self.accuracy = CASES.get(name, SETTINGS.others)
        X, y, self.test, self.labels = halves(name, shuffled=False)
        super().__init__(X, y, 1.0 / (self.lam * len(y)), SETTINGS.resolution)


def compare(name: str, budget: Budget) -> Parameters:
    """Return [seconds, epochs, test error, lasting epoch] of every run by method.

    The lasting epoch is the one from which on w stays accurate until three times the
    epochs that it took to get there, or None.
    """
    train = PegasosTraining(name)
    target = train.best + train.accuracy / train.lam
    found = {
        label: [
            [run.seconds, run.epochs, error(run.w, train.test, train.labels), run.last]
            for run in train.runs(solver, target, budget.seeds, budget.limit)
        ]
        for label, solver in METHODS.items()
    }  # fmt: skip
    return {"limit": budget.limit, "runs": found}


def batches(name: str, budget: Budget) -> Parameters:
    """Return the errors of mini-batches of k rows at a fixed number of rows read."""
    train, seeds = PegasosTraining(name), min(budget.seeds, SETTINGS.errors)
    ks = [k for k in SETTINGS.batches if k < len(train.y)] + [len(train.y)]
    read, found = SETTINGS.epochs[:2], []
    for on in (True, False):
        solvers = (Pegasos(batch_size=k, projection=on) for k in ks)
        errors = [train.excess(solver, read, seeds) for solver in solvers]
        by_epochs = np.transpose(errors).tolist()
        found += [[on, T, some] for T, some in zip(read, by_epochs, strict=True)]
    return {"k": ks, "errors": found}


def errors(name: str, budget: Budget, solvers: Solvers) -> list[list[object]]:
    """Return the errors of some solvers after some epochs."""
    train, seeds = PegasosTraining(name), min(budget.seeds, SETTINGS.errors)
    return [[*labels, train.excess(solver, SETTINGS.epochs, seeds)]
            for labels, solver in solvers]  # fmt: skip


def flat(found: Parameters, errors: list[float]) -> int:
    """Return the largest k whose error is at most a factor above the one of k = 1."""
    wide = zip(found["k"], errors, strict=True)
    return max(k for k, value in wide if value <= SETTINGS.same * errors[0])


def judge(name: str, found: Parameters) -> Findings:
    """Yield what a set shows of the claims."""
    if study := found.get("sampling"):
        errors = np.array([errors for _, on, errors in study if on is not None])
        errors = errors.reshape(2, 2, -1)  # sampling, projection, epochs
        yield "permutations", tally((errors[0] < errors[1]).flat)
        ratio = np.abs(np.log(errors[:, 0] / errors[:, 1]))
        known = errors.min(axis=1) > SETTINGS.resolution
        most = float(np.exp(ratio[known].max(initial=0.0)))
        yield "projection", (most <= SETTINGS.same, f"{most:.1f}")
    if study := found.get("output"):
        (_, last), (_, mean) = study
        yield "average", tally(x > y for x, y in zip(mean, last, strict=True))
    if study := found.get("batches"):
        k = min(flat(study, errors) for *_, errors in study["errors"])
        yield "flat", (k >= SETTINGS.few, f"{k:,}")
    runs = found.get("1", {"runs": {}})["runs"]
    if runs.get("Pegasos"):
        lost = sum(run[3] is None for run in runs["Pegasos"])
        yield "lasting", (not lost, f"{lost} of {len(runs['Pegasos'])}")
        seconds, slower = (np.median([run[0] for run in runs[label]] or np.inf)
                           for label in ("Pegasos", "SVM-Perf"))  # fmt: skip
        yield "faster", (bool(slower > seconds), f"{slower / seconds:.1f}")
        if study and study["k"][-1] > SETTINGS.large:
            yield "large", (bool(seconds < SETTINGS.seconds), f"{seconds:.2g}")


def rows(name: str, found: Parameters) -> Rows:
    """Yield the rows of the tables."""
    if study := found.get("1"):
        lam, accuracy = CASES.get(name, SETTINGS.others)
        row = {"lambda": f"{lam:g}", "accuracy": f"{accuracy:g}"}
        for label, runs in study["runs"].items():
            row[label] = f"> {study['limit']:g} s"
            if runs:
                seconds, _, wrong = np.median([run[:3] for run in runs], axis=0)
                epochs = " / ".join(lasting([(run[1], run[3]) for run in runs]))
                row[label] = f"{seconds:.2g} ({100 * wrong:.2f}), {epochs}"
        yield "medians", row
    on_off = {None: "–", True: "on", False: "off"}
    if study := found.get("batches"):
        ks = [f"k = {k}" for k in study["k"][:-1]] + ["k = n"]
        for on, epochs, errors in study["errors"]:
            cells = zip(ks, (f"{value:.2g}" for value in errors), strict=True)
            head = {"projection": on_off[on], "kT": f"{epochs} n"}
            yield "batches", {**head, "flat to": flat(study, errors), **dict(cells)}
    for way, on, errors in found.get("sampling", ()):
        head = {"sampling": way, "projection": on_off[on]}
        yield "sampling", head | by_epochs(errors)
    for kind, errors in found.get("output", ()):
        yield "output", {"output": kind, **by_epochs(errors)}


def by_epochs(errors: list[float]) -> dict[str, str]:
    """Return the cells of errors after some epochs."""
    epochs = (f"{epochs} epochs" for epochs in SETTINGS.epochs)
    return dict(zip(epochs, (f"{value:.2g}" for value in errors), strict=True))


def draw(sets: Parameters) -> Iterator[Panel]:
    """Yield the error against the batch size, a panel for each set."""
    for name, found in sets.items():
        if study := found.get("batches"):
            lines = [
                Line(study["k"], errors, f"kT = {epochs} n, projection "
                     f"{'on' if on else 'off'}", "o-" if on else "s:")
                for on, epochs, errors in study["errors"]
            ]  # fmt: skip
            yield Panel(name, "k", "(P − P*)/P*", lines, log="xy")


PAPER = Paper(
    settings=SETTINGS,
    parts={
        "1": compare,
        "batches": batches,
        "sampling": partial(errors, solvers=SAMPLING),
        "output": partial(errors, solvers=OUTPUT),
    },
    verdicts=partial(judged, judge=judge), rows=rows, draw=draw,
    published={"medians": [*TABLE.values()]},
)  # fmt: skip
