"""Measures that the experiments share: objectives, first passages, traces of gaps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..data.types import Array, Matrix
from ..kernel import Kernel
from ..losses import Vector
from ..problems import BinaryProblem
from ..problems.base import Problem
from ..solvers import get_solver
from ..solvers.base import Solver
from ..training import Solution, solve
from ..training.progress import EpochInfo
from .page import Row


def walk(
    problem: Problem, solver: Solver,
    look: Callable[[EpochInfo, float], bool | None] = lambda info, seconds: None, *,
    seed: int = 0, epochs: int = 10**9, limit: float = np.inf, tol: float = 1e-9,
    atol: float = 0.0,
) -> tuple[Solution, float]:  # fmt: skip
    """Fit until `look` is true, or for some `epochs` or seconds; return the seconds.

    `look` gets an epoch and its seconds. These are of processor time, to which other
    work on the machine adds little; neither looking nor a last proof is counted.
    """
    spent, seconds, begun = 0.0, 0.0, time.process_time()

    def stop(info: EpochInfo) -> bool:
        nonlocal spent, seconds
        if info.final:
            return False
        now = time.process_time()
        seconds = now - begun - spent
        done = bool(look(info, seconds)) or seconds > limit
        spent += time.process_time() - now
        return done

    return solve(problem, solver, tol=tol, atol=atol, max_iter=epochs,
                 random_state=seed, on_epoch=stop), seconds  # fmt: skip


def lasting_epoch(history: Array, target: float) -> int | None:
    """Return the epoch from which on P is at most `target`; None if it ends above."""
    outside = np.append(0, history["epoch"][history["primal"] > target])[-1]
    return int(outside) + 1 if outside < history["epoch"][-1] else None


def model(info: EpochInfo) -> Vector:
    """Return w after an epoch."""
    assert info.model is not None
    return info.model()


def after(
    problem: Problem, solver: Solver, epochs: Sequence[int],
    value: Callable[[Vector], float], *, seed: int = 0, tol: float = 1e-9,
) -> list[float]:  # fmt: skip
    """Return a value of w after some epochs, the last the longest.

    A fit that ends earlier has its last one.
    """
    found: dict[int, float] = {}

    def look(info: EpochInfo, seconds: float) -> None:
        if info.epoch in epochs:
            found[info.epoch] = value(model(info))

    fit, _ = walk(problem, solver, look, seed=seed, epochs=epochs[-1], tol=tol)
    return [found[e] if e in found else value(fit.w) for e in epochs]


class Reached(NamedTuple):
    """A fit to a target: where it first was within, and from which epoch it stayed."""

    seconds: float
    epochs: int
    w: Vector
    last: int | None


class Training:
    """The hinge on some rows, measured from outside the loop in plain NumPy."""

    def __init__(self, X: Matrix, y: Vector, C: float, resolution: float) -> None:
        self.X, self.y, self.C, self.resolution = X, y, C, resolution
        self.problem = BinaryProblem(X, y, C)

    def loss(self, w: Vector) -> float:
        """Return P(w)."""
        margins = self.y * np.asarray(self.X @ w, dtype=np.float64)
        return float(0.5 * w @ w + self.C * np.maximum(0.0, 1.0 - margins).sum())

    @cached_property
    def best(self) -> float:
        """P*: the primal value at a relative gap of the resolution."""
        solver, tol = get_solver("auto"), self.resolution
        return self.loss(solve(self.problem, solver, tol=tol, max_iter=10**6).w)

    def reach(
        self, solver: Solver, target: float, *, seed: int = 0, epochs: int = 10**9,
        limit: float = np.inf, times: int = 1,
    ) -> Reached | None:  # fmt: skip
        """Fit until P(w) is at most `target`, and then for `times` as many epochs.

        None if the epochs or the seconds until then were not enough.
        """
        first: list[tuple[float, int, Vector]] = []
        outside = last = 0

        def look(info: EpochInfo, seconds: float) -> bool:
            nonlocal outside, last
            w, last = model(info), info.epoch
            if self.loss(w) > target:
                outside = last
            elif not first:
                first.append((seconds, last, w.copy()))
            return last >= times * first[0][1] if first else seconds > limit

        walk(self.problem, solver, look, seed=seed, epochs=epochs)
        lasting = outside + 1 if outside < last else None
        return Reached(*first[0], lasting) if first else None

    def runs(
        self, solver: Solver, target: float, seeds: int, limit: float
    ) -> Iterator[Reached]:
        """Yield the fits of all seeds, to three times the epochs that they need.

        The first one that does not reach the target ends it.
        """
        for seed in range(seeds):
            run = self.reach(solver, target, seed=seed, limit=limit, times=3)
            if run is None:
                return
            yield run

    def excess(self, solver: Solver, epochs: Sequence[int], seeds: int) -> list[float]:
        """Return the median relative errors after some epochs."""
        losses = [after(self.problem, solver, epochs, self.loss, seed=seed)
                  for seed in range(seeds)]  # fmt: skip
        return (np.median(losses, axis=0) / self.best - 1).tolist()


def error(w: Vector, test: Matrix, labels: Vector) -> float:
    """Return the share of the rows that the model w gets wrong."""
    return float(np.mean((test @ w > 0) != (labels > 0)))


def scores(kernel: Kernel, X: Matrix, coefs: Array, test: Matrix) -> Array:
    """Return the sums of coefs over the kernel of X with test rows."""
    found = np.zeros((len(coefs), test.shape[0]))
    for rows in np.array_split(np.arange(X.shape[0]), -(-X.shape[0] // 1000)):
        found += coefs[:, rows] @ kernel.block(X, rows, test)
    return found


def filled(layout: Mapping[str, str], *numbers: object, **values: object) -> Row:
    """Return a row whose columns are texts with places for values."""
    return {c: text.format(*numbers, **values) for c, text in layout.items()}


def span(values: Array | Sequence[float], text: str) -> str:
    """Return the smallest and largest of some values, or the one value of all."""
    low, high = (format(float(value), text) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def two_digits(value: float) -> str:
    """Return a number to two digits, without an exponent."""
    return f"{float(f'{value:.2g}'):,g}"


def spread(values: Sequence[float]) -> str:
    """Return the median and the range, to two digits."""
    ends = two_digits(min(values)), two_digits(max(values))
    text = two_digits(float(np.median(values)))
    return text if ends[0] == ends[1] else f"{text} ({ends[0]} to {ends[1]})"


def lasting(runs: Sequence[tuple[int, int | None]]) -> tuple[str, str]:
    """Return the medians of first epochs, and of the epochs from which all are good.

    These are None if there is no such epoch within three times the first.
    """
    first = np.median([epoch for epoch, _ in runs])
    last = np.median([np.inf if epoch is None else epoch for _, epoch in runs])
    return f"{first:.0f}", f"{last:.0f}" if np.isfinite(last) else f"> {3 * first:.0f}"
