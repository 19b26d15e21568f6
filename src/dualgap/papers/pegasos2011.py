"""Linear experiments of Shalev-Shwartz et al. 2011 (Pegasos)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..data.types import Parameters
from ..solvers import NORMA, SDCA, Pegasos, get_solver
from ..solvers.base import Solver
from .data import halves
from .frame import Budget, Paper, printed
from .measure import Training, error, lasting
from .page import Finding, Row, each, tally
from .pictures import Line, Panel

#: lambda and accuracy by set, as in the paper.
CASES = {
    "imdb": (5e-5, 0.0275),
    "rcv1-like": (1e-4, 0.00589),
    "covtype": (1e-6, 0.0449),
}
#: lambda and accuracy of other sets.
OTHERS = (1e-4, 0.01)
STAND_INS = {"imdb": "astro-ph", "rcv1-like": "CCAT", "covtype": "cov1"}
METHODS = {
    "Pegasos": Pegasos(projection=True, sampling="random"),
    "SDCA": SDCA(order="random"),
    "SVM-Perf": get_solver("cutting-plane"),
}


@dataclass(frozen=True)
class PegasosSettings:
    """Settings of the runs, and thresholds of the verdicts."""

    #: Epochs after which the errors are looked at.
    epochs: tuple[int, ...] = (2, 8, 32)
    #: Seeds of an error at most.
    errors: int = 3
    #: Rows of a batch, besides all rows.
    batches: tuple[int, ...] = (1, 4, 16, 64, 256, 1024, 4096)
    #: Training rows from which on a set has RCV1's size, and the paper's seconds.
    large: int = 700_000
    seconds: float = 5.0
    #: The paper's "few hundred", on a grid of powers of four.
    few: int = 100
    #: Factor between errors that are called the same.
    same: float = 2.0
    #: Accuracy of P*: smaller errors are left out of ratios.
    resolution: float = 1e-5


SETTINGS = PegasosSettings()


class PegasosTraining(Training):
    """The training problem of a set, with the paper's lambda and accuracy."""

    def __init__(self, name: str) -> None:
        self.lam, self.accuracy = CASES.get(name, OTHERS)
        X, y, self.test, self.labels = halves(name, shuffled=False)
        super().__init__(X, y, 1.0 / (self.lam * len(y)), SETTINGS.resolution)


def compare(name: str, budget: Budget) -> Parameters:
    """Return [seconds, epochs, test error, lasting epoch] of every run by method.

    The lasting epoch is the one from which on w stays accurate until three times the
    epochs that it took to get there, or None.
    """
    train = PegasosTraining(name)
    found: dict[str, list[list[object]]] = {label: [] for label in METHODS}
    target = train.best + train.accuracy / train.lam
    for label, solver in METHODS.items():
        for seed in range(budget.seeds):
            run = train.reach(solver, target, seed=seed, limit=budget.limit)
            if run is None:
                break
            seconds, epochs, w = run
            wrong = error(w, train.test, train.labels)
            last = train.settled(solver, target, 3 * epochs, seed=seed)
            found[label].append([seconds, epochs, wrong, last])
    return {"limit": budget.limit, "runs": found}


def batches(name: str, budget: Budget) -> Parameters:
    """Return the errors of mini-batches of k rows at a fixed number of rows read."""
    train, seeds = PegasosTraining(name), min(budget.seeds, SETTINGS.errors)
    ks = [k for k in SETTINGS.batches if k < len(train.y)] + [len(train.y)]
    found = [
        [on, epochs, [train.excess(Pegasos(batch_size=k, projection=on), epochs, seeds)
                      for k in ks]]
        for on in (True, False) for epochs in SETTINGS.epochs[:2]
    ]  # fmt: skip
    return {"k": ks, "errors": found}


def sampling(name: str, budget: Budget) -> Parameters:
    """Return the errors of sampling and projection, and of NORMA."""
    train, seeds = PegasosTraining(name), min(budget.seeds, SETTINGS.errors)

    def errors(solver: Solver) -> list[float]:
        return [train.excess(solver, epochs, seeds) for epochs in SETTINGS.epochs]

    found = [[way, on, errors(Pegasos(sampling=way, projection=on))]
             for way in ("permutation", "random") for on in (False, True)]  # fmt: skip
    return {"errors": found, "NORMA": errors(NORMA())}


def output(name: str, budget: Budget) -> list[list[object]]:
    """Return the errors of the last w and of the average, with draws."""
    train, seeds = PegasosTraining(name), min(budget.seeds, SETTINGS.errors)
    return [
        [kind, [train.excess(Pegasos(sampling="random", output=kind), epochs, seeds)
                for epochs in SETTINGS.epochs]]
        for kind in ("last", "average")
    ]  # fmt: skip


def flat(found: Parameters, errors: list[float]) -> int:
    """Return the largest k whose error is at most a factor above the one of k = 1."""
    wide = zip(found["k"], errors, strict=True)
    return max(k for k, value in wide if value <= SETTINGS.same * errors[0])


def judge(name: str, found: Parameters) -> Iterator[tuple[str, Finding]]:
    """Yield what a set shows of the claims."""
    if "sampling" in found:
        errors = np.array([errors for *_, errors in found["sampling"]["errors"]])
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


def medians(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the medians of the methods."""
    lam, accuracy = CASES.get(name, OTHERS)
    row = {"lambda": f"{lam:g}", "accuracy": f"{accuracy:g}"}
    for label, runs in found["1"]["runs"].items():
        row[label] = f"> {found['1']['limit']:g} s"
        if runs:
            seconds, _, wrong = np.median([run[:3] for run in runs], axis=0)
            epochs = " / ".join(lasting([(run[1], run[3]) for run in runs]))
            row[label] = f"{seconds:.2g} ({100 * wrong:.2f}), {epochs} epochs"
    yield row


def by_batch(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the errors by k, and up to which they are flat."""
    study = found["batches"]
    ks = [f"k = {k}" for k in study["k"][:-1]] + ["k = n"]
    for on, epochs, errors in study["errors"]:
        cells = zip(ks, (f"{value:.2g}" for value in errors), strict=True)
        head = {"projection": "on" if on else "off", "kT": f"{epochs} n"}
        yield {**head, "flat to": flat(study, errors), **dict(cells)}


def by_epochs(errors: list[float]) -> dict[str, str]:
    """Return the cells of errors after some epochs."""
    epochs = (f"{epochs} epochs" for epochs in SETTINGS.epochs)
    return dict(zip(epochs, (f"{value:.2g}" for value in errors), strict=True))


def by_sampling(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the errors by sampling and projection."""
    study = found["sampling"]
    for way, on, errors in [*study["errors"], ["NORMA", None, study["NORMA"]]]:
        projection = {None: "–", True: "on", False: "off"}[on]
        yield {"sampling": way, "projection": projection, **by_epochs(errors)}


def by_output(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the errors of the last w and of the average."""
    for kind, errors in found["output"]:
        yield {"output": kind, **by_epochs(errors)}


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
    sets=STAND_INS,
    parts={
        "1": compare,
        "batches": batches,
        "sampling": sampling,
        "output": output,
    },
    judge=judge,
    tables={
        "medians": each(
            medians, "1", published=[*printed("pegasos2011", "1").values()]
        ),
        "batches": each(by_batch, "batches"),
        "sampling": each(by_sampling, "sampling"),
        "output": each(by_output, "output"),
    },
    draw=draw,
)
