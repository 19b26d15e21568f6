"""Learning from batches of rows that come one at a time.

Problem    min over w of P(w) = 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i), the sum over the
           rows of all batches so far, through its dual D (losses.py)
Update     sweeps of `DCD` over the duals of the batch at hand, from 0 if it is new and
           else from where they were left; w = sum_i a_i y_i x_i over all batches.
Guarantee  New rows come with duals of 0 and every step raises D, so D never falls but
           for rounding; it is sum a_i - 1/2 sum delta_i a_i^2 - 1/2 ||w||^2, sums that
           are kept, less a bound on their rounding: a lower bound on the least P over
           the rows so far. P(w) is a sum over rows that are gone: one more pass proves
           it (`Stream.prove`). Batches that come again and again are block coordinate
           ascent: D rises to the optimum.
Cost       a sweep is a product with the batch; three more check it, tell it from the
           others and add it up anew, for the bound. 8 bytes per row and binary problem.
Source     Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008, for the steps; Yu,
           Hsieh, Chang and Lin, KDD 2010, for blocks. A row's first step is that of
           PA-I for the hinge, of PA-II for the squared hinge (Crammer, Dekel, Keshet,
           Shalev-Shwartz and Singer, JMLR 7, 2006), with the same C.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import core
from .certificate import Bounds
from .losses import Vector
from .problem import Problem, Rounding, Values
from .solvers.base import new_order
from .solvers.dcd import DCD, DCDState

__all__ = ["Batch", "Stream"]


@dataclass(kw_only=True)
class _BatchState(DCDState):
    """Duals of one batch, and the w of all."""

    def repair(self) -> None:
        self.linear = self.problem.dual_value(self.alpha, 0.0)


@dataclass(slots=True)
class Batch:
    """What is kept of a batch: its duals, and not its rows.

    Attributes
    ----------
    alpha : ndarray of shape (problems, n)
    linear : ndarray of shape (problems,)
        ``sum a_i - 1/2 sum delta_i a_i^2`` over its rows, rounded down.
    times : int
        How often it has come.
    """

    alpha: NDArray[np.float64]
    linear: Vector
    times: int = 0


@dataclass
class Stream:
    """Binary problems that share the rows of all batches so far.

    Attributes
    ----------
    w : ndarray of shape (problems, width)
    random : list of random states
        One per problem.
    batches : dict
        By what tells them apart, in the order in which they first came.
    updates : list of int
        Steps that changed a dual, per problem.
    passes : int
        How often the batch that came most often has come.
    linear : list of lists of float
        Per problem, numbers whose exact sum is that of ``batch.linear`` over all
        batches: a call must not cost more the more batches there are.
    drift : list of float
        Per problem, how far w may be from ``sum_i a_i y_i x_i``, in length.
    """

    w: NDArray[np.float64]
    random: list[Any]
    batches: dict[bytes, Batch] = field(default_factory=dict)
    updates: list[int] = field(default_factory=list)
    passes: int = 0
    linear: list[list[float]] = field(default_factory=list)
    drift: list[float] = field(default_factory=list)

    @classmethod
    def begin(cls, width: int, seeds: Sequence[int]) -> Stream:
        """A stream without rows, for as many problems as there are seeds."""
        random = [list(core.Random(int(seed)).state) for seed in seeds]
        linear: list[list[float]] = [[] for _ in seeds]
        return cls(
            np.zeros((len(seeds), width)), random, updates=[0] * len(seeds),
            linear=linear, drift=[0.0] * len(seeds),
        )  # fmt: skip

    @property
    def rows(self) -> int:
        """Rows of all batches, each counted once."""
        return sum(batch.alpha.shape[1] for batch in self.batches.values())

    def open(self, key: bytes, n: int) -> Batch:
        """The batch of this key, new if it is not known; it comes once more."""
        problems = len(self.w)
        batch = self.batches.get(key)
        if batch is None:
            batch = Batch(np.zeros((problems, n)), np.zeros(problems))
            self.batches[key] = batch
        # Out of a message or a memory map they may not be written where they are.
        self.w, batch.alpha, batch.linear = (
            np.require(array, requirements=["C", "A", "W"])
            for array in (self.w, batch.alpha, batch.linear)
        )
        batch.times += 1
        self.passes = max(self.passes, batch.times)
        return batch

    def take_up(
        self,
        batch: Batch,
        binary: Sequence[Problem | None],
        alpha: NDArray[np.float64],
    ) -> None:
        """Let the first batch begin at these duals, shape (problems, n)."""
        for k, problem in enumerate(binary):
            if problem is not None:
                np.minimum(alpha[k], problem.upper, out=batch.alpha[k])
                self._move(k, problem, np.zeros_like(self.w[k]), batch.alpha[k])
                self._note(k, problem, batch)

    def learn(
        self, k: int, problem: Problem, batch: Batch, solver: DCD, stop: Any
    ) -> None:
        """Sweep the batch for problem k, whose rows, labels and costs `problem` has."""
        rng = core.Random(0)
        rng.state = self.random[k]
        w, alpha = self.w[k].copy(), batch.alpha[k].copy()
        state = _BatchState(
            problem, rng, new_order(problem.n), alpha=batch.alpha[k], w=self.w[k],
            q=problem.q, active=problem.n,
        )  # fmt: skip
        state.lie_down()
        for _ in range(solver.sweeps(problem)):
            solver.step(state, stop)
            if stop.requested or stop.expired:
                break
        self.random[k] = list(rng.state)
        self.updates[k] += state.updates
        self._move(k, problem, w, batch.alpha[k] - alpha)
        self._note(k, problem, batch)

    def _move(self, k: int, problem: Problem, before: Vector, by: Vector) -> None:
        """Set w of problem k to what it was before, plus the sum of what has changed.

        The steps have added that up as well, but nobody has counted their rounding.
        """
        np.add(before, problem.weighted_sum(by), out=self.w[k])
        reach = float(np.abs(by) @ np.sqrt(problem.q))
        # Each change is a rounded difference: as if one row more were added.
        used = int(np.count_nonzero(by)) + 1
        length = math.sqrt(core.squared_norm(self.w[k]))
        self.drift[k] += problem.rounding.of_sum(used, reach)
        self.drift[k] += Rounding.slack * Rounding.unit * length

    def _note(self, k: int, problem: Problem, batch: Batch) -> None:
        """Note the linear term of a batch anew."""
        alpha = batch.alpha[k]
        bent = 0.5 * problem.delta * alpha * alpha
        error = Rounding.summed * float((alpha + bent).sum())
        error += 2 * problem.n * Rounding.least
        linear = float((alpha - bent).sum()) - Rounding.slack * error
        add_exactly(self.linear[k], -float(batch.linear[k]))
        add_exactly(self.linear[k], linear)
        batch.linear[k] = linear

    def dual(self, k: int) -> Bounds:
        """Prove a lower bound on D of problem k from the sums that are kept."""
        linear, norm = math.fsum(self.linear[k]), core.squared_norm(self.w[k])
        drift = self.drift[k]
        rounding = Rounding(0, self.w.shape[1], 0)
        less = math.sqrt(norm) * drift + 0.5 * drift * drift
        less += (rounding.norm + rounding.closing) * norm
        less = rounding.slack * (less + rounding.closing * abs(linear))
        lowest = Bounds.proved(dual=0.0)  # P is a sum of squares and losses
        found = Bounds.proved(
            dual=linear - 0.5 * norm, dual_error=less + rounding.underflow
        )
        return found.with_dual_of(lowest)

    def prove(
        self, batches: Iterable[tuple[bytes, Sequence[Problem | None]]]
    ) -> list[Bounds]:
        """P(w) at most and D at least of every problem, from one pass over the rows.

        Parameters
        ----------
        batches : iterable of (key, problems)
            Every batch of the stream once, in any order; None where a problem gives
            none of its rows a weight.

        Raises
        ------
        ValueError
            If a batch is not of the stream, comes twice, or is left out: the two
            values would be about different rows.
        """
        problems, width = self.w.shape
        # Summed anew: what the steps have added up carries their rounding.
        v, part = np.zeros((problems, width)), np.empty(width)
        sums: list[list[Values]] = [[] for _ in range(problems)]
        n, parts = np.zeros(problems, np.int64), np.zeros(problems, np.int64)
        met: set[bytes] = set()
        for number, (key, binary) in enumerate(batches):
            batch = self.batches.get(key)
            if batch is None or key in met:
                what = "was never learned from" if batch is None else "comes twice"
                raise ValueError(
                    f"batch {number} {what}; give the batches of partial_fit, each "
                    "once, as they were"
                )
            met.add(key)
            for k, problem in enumerate(binary):
                if problem is None:
                    continue
                found = core.evaluate(
                    problem.rows, problem.y, problem.cost, problem.core_loss, problem.q,
                    self.w[k], "given", batch.alpha[k], part, None, problem.threads,
                )  # fmt: skip
                sums[k].append(Values(*found))
                n[k] += problem.n
                parts[k] += problem.threads.size + 1
                v[k] += part
        if len(met) < len(self.batches):
            raise ValueError(
                f"{len(met)} of the {len(self.batches)} batches of partial_fit were "
                "given; a proof needs each of them"
            )
        return [
            _bounds(sums[k], self.w[k], v[k], Rounding(int(n[k]), width, int(parts[k])))
            for k in range(problems)
        ]


def _bounds(parts: list[Values], w: Vector, v: Vector, rounding: Rounding) -> Bounds:
    """P(w) and D of the duals that v is the sum of, rounded to the safe side."""
    norm, curvature = core.squared_norm(w), core.squared_norm(v)
    if not parts:
        return Bounds.proved(0.5 * norm, 2 * Rounding.norm * norm, 0.0)
    values = Values.merge(parts)
    more = rounding.of_primal(values, norm)
    less = rounding.of_dual(values, curvature, rounding.drift(values))
    dual = values.sum - 0.5 * (curvature + values.diagonal)
    return Bounds.proved(0.5 * norm + values.loss, more, dual, less)


def key_of(problem: Problem, codes: NDArray[np.intp], weight: Vector) -> bytes:
    """What tells a batch from others: labels, weights, norms, one random sum of rows.

    The same rows in another order are another batch, for duals belong to places.
    """
    found = hashlib.sha256()
    coin = np.random.default_rng(0).random(problem.n)
    total = problem.with_labels(np.ones(problem.n)).weighted_sum(coin)
    for array in (codes, weight, problem.q, total):
        found.update(array.view(np.uint8).data)
    return found.digest()


def add_exactly(parts: list[float], x: float) -> None:
    """Add a number to a sum that is kept as a few numbers that do not overlap.

    Shewchuk, Discrete & Computational Geometry 18, 1997, section 2.4: nothing is
    rounded, and no more numbers are needed than a float64 has exponents to tell apart.
    """
    kept = 0
    for y in parts:
        if abs(x) < abs(y):
            x, y = y, x
        high = x + y
        low = y - (high - x)
        if low:
            parts[kept] = low
            kept += 1
        x = high
    parts[kept:] = [x]
