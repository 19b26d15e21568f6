"""Measures that the experiments share: objectives, first passages, traces of gaps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from ..data.types import Array, Matrix
from ..losses import Vector
from ..problems import BinaryProblem
from ..problems.base import Problem
from ..solvers import get_solver
from ..solvers.base import Solver
from ..training import Solution, solve
from ..training.progress import EpochInfo


def walk(
    problem: Problem, solver: Solver, look: Callable[[EpochInfo], bool | None], *,
    seed: int = 0, epochs: int = 10**7, limit: float = np.inf, tol: float = 1e-9,
    atol: float = 0.0,
) -> tuple[Solution, list[tuple[int, float]]]:  # fmt: skip
    """Fit until `look` is true, or for some `epochs` or seconds.

    Return the solution, and each epoch with its seconds. These are of processor time,
    to which other work on the machine adds little; looking is not counted.
    """
    steps: list[tuple[int, float]] = []
    spent, begun = 0.0, time.process_time()

    def stop(info: EpochInfo) -> bool:
        nonlocal spent
        if info.final:
            return False
        now = time.process_time()
        steps.append((info.epoch, now - begun - spent))
        done = bool(look(info)) or steps[-1][1] > limit
        spent += time.process_time() - now
        return done

    found = solve(problem, solver, tol=tol, atol=atol, max_iter=epochs,
                  random_state=seed, on_epoch=stop)  # fmt: skip
    return found, steps


def model(info: EpochInfo) -> Vector:
    """Return w after an epoch."""
    assert info.model is not None
    return info.model()


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
        self, solver: Solver, target: float, *, seed: int = 0, epochs: int = 10**7,
        limit: float = np.inf,
    ) -> tuple[float, int, Vector] | None:  # fmt: skip
        """Return (seconds, epochs, w) of the first epoch with P(w) at most `target`.

        None if the epochs or the limit of `walk` were not enough.
        """
        found: list[Vector] = []

        def look(info: EpochInfo) -> bool:
            w = model(info)
            if self.loss(w) <= target:
                found.append(w.copy())
            return bool(found)

        _, steps = walk(
            self.problem, solver, look, seed=seed, epochs=epochs, limit=limit
        )
        return (steps[-1][1], steps[-1][0], found[0]) if found else None

    def settled(
        self, solver: Solver, target: float, epochs: int, *, seed: int = 0
    ) -> int | None:
        """Return the epoch from which on P(w) is at most `target`, of `epochs`.

        None if it is above target after the last of them.
        """
        outside = [0]

        def look(info: EpochInfo) -> None:
            if self.loss(model(info)) > target:
                outside.append(info.epoch)

        _, steps = walk(self.problem, solver, look, seed=seed, epochs=epochs)
        return outside[-1] + 1 if outside[-1] < steps[-1][0] else None

    def runs(
        self, solver: Solver, target: float, seeds: int, limit: float
    ) -> Iterator[tuple[float, int, Vector, int | None]]:
        """Yield what `reach` finds, and `settled` in three times its epochs, by seed.

        The first run that does not reach the target ends it.
        """
        for seed in range(seeds):
            run = self.reach(solver, target, seed=seed, limit=limit)
            if run is None:
                return
            yield *run, self.settled(solver, target, 3 * run[1], seed=seed)

    def excess(self, solver: Solver, epochs: Sequence[int], seeds: int) -> list[float]:
        """Return the median relative errors after some epochs, the last the longest.

        A fit that ends earlier has its last one.
        """
        errors = []
        for seed in range(seeds):
            found: dict[int, float] = {}
            last = [np.zeros(0)]

            def look(info: EpochInfo, found: dict[int, float] = found,
                     last: list[Vector] = last) -> None:  # fmt: skip
                last[0] = model(info).copy()
                if info.epoch in epochs:
                    found[info.epoch] = self.loss(last[0])

            walk(self.problem, solver, look, seed=seed, epochs=epochs[-1])
            least = self.loss(last[0])
            errors.append([found.get(epoch, least) / self.best - 1 for epoch in epochs])
        return np.median(errors, axis=0).tolist()


def error(w: Vector, test: Matrix, labels: Vector) -> float:
    """Return the share of the rows that the model w gets wrong."""
    return float(np.mean((test @ w > 0) != (labels > 0)))


def scores(X: Matrix, coefs: Array, test: Matrix, kind: str, **given: object) -> Array:
    """Return the sums of coefs over the kernel of X with test rows."""
    from sklearn.metrics.pairwise import pairwise_kernels

    found = np.zeros((len(coefs), test.shape[0]))
    for rows in np.array_split(np.arange(X.shape[0]), -(-X.shape[0] // 1000)):
        K = pairwise_kernels(X[rows], test, kind, filter_params=True, **given)
        found += coefs[:, rows] @ K
    return found


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
