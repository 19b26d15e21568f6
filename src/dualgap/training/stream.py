"""Learning from batches of rows that arrive one at a time.

Problem    min over w of P(w) = 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i), summed over the
           rows of all batches so far, solved through its dual D (losses.py)
Update     sweeps of `DCD` over the dual variables of the current batch. A new batch
           starts at 0, a repeated one where it was left. w = sum_i a_i y_i x_i over all
           batches.
Guarantee  New rows start with dual variables of 0 and every step raises D, so D never
           falls except for rounding. D = sum a_i - 1/2 sum delta_i a_i^2 -
           1/2 ||w||^2 is computed from stored sums. Less a bound on their rounding, it
           is a lower bound on the least P over the rows so far. P(w) sums over rows
           that are not kept; one more pass proves it (`Stream.prove`). Repeating the
           batches is block coordinate ascent: D rises to the optimum.
Cost       A sweep is a product with the batch. Three more products check the batch,
           identify it, and recompute its sum for the bound. 8 bytes per row and binary
           problem.
Source     Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008, for the steps; Yu,
           Hsieh, Chang and Lin, KDD 2010, for blocks. The first step on a row is
           PA-I's for the hinge and PA-II's for the squared hinge (Crammer, Dekel,
           Keshet, Shalev-Shwartz and Singer, JMLR 7, 2006), with the same C.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..certificate import Bounds
from ..losses import Vector
from ..problems.binary import BinaryProblem
from ..problems.rounding import Rounding, Values
from ..solvers.base import new_order
from ..solvers.dcd import DCD, DCDState

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(kw_only=True)
class BatchState(DCDState):
    """Dual variables of one batch, and the w of all batches."""

    def repair(self) -> None:
        self.linear = self.problem.dual_value(self.alpha, 0.0)


@dataclass(slots=True)
class BatchDuals:
    """Dual variables of a batch, which are kept while its rows are not."""

    #: Dual variables, shape (problems, n).
    alpha: NDArray[np.float64]
    #: ``sum a_i - 1/2 sum delta_i a_i^2`` over its rows, rounded down, shape
    #: (problems,).
    linear: Vector
    #: ``sum a_i`` of either sign, where a `SignedStream` keeps the batch.
    total: Vector = field(default_factory=lambda: np.empty(0))
    #: Number of times that the batch was given.
    times: int = 0


@dataclass
class Stream:
    """Binary problems that share the rows of all batches so far."""

    #: Coefficients, shape (problems, width).
    w: NDArray[np.float64]
    #: One per problem.
    random: list[Any]
    #: Batches by their keys (:func:`key_of`), in the order in which they first came.
    batches: dict[bytes, BatchDuals] = field(default_factory=dict)
    #: Steps that changed a dual variable, per problem.
    updates: list[int] = field(default_factory=list)
    #: Largest number of times that one batch was given.
    passes: int = 0
    #: Per problem, a few numbers whose exact sum equals the sum of ``batch.linear``
    #: over all batches. They keep the cost of a call independent of the number of
    #: batches.
    linear: list[list[float]] = field(default_factory=list)
    #: Per problem, a bound on the distance of w from ``sum_i a_i y_i x_i``.
    drift: list[float] = field(default_factory=list)

    @classmethod
    def begin(cls, width: int, seeds: Sequence[int]) -> Self:
        """Return a stream without rows, with one problem for each seed."""
        random = [list(core.Random(int(seed)).state) for seed in seeds]
        linear: list[list[float]] = [[] for _ in seeds]
        return cls(
            np.zeros((len(seeds), width)), random, updates=[0] * len(seeds),
            linear=linear, drift=[0.0] * len(seeds),
        )  # fmt: skip

    @property
    def rows(self) -> int:
        """Number of rows of all batches; repeated batches count once."""
        return sum(batch.alpha.shape[1] for batch in self.batches.values())

    def open(self, key: bytes, n: int) -> BatchDuals:
        """Return the batch with this key, a new one if it is unknown, and count it."""
        batch = self.batches.get(key)
        if batch is None:
            terms = np.zeros(len(self.linear))
            batch = BatchDuals(np.zeros((len(self.w), n)), terms)
            self.batches[key] = batch
        # Arrays that come from a message or a memory map may be read-only.
        self.w, batch.alpha, batch.linear = (
            np.require(array, requirements=["C", "A", "W"])
            for array in (self.w, batch.alpha, batch.linear)
        )
        batch.times += 1
        self.passes = max(self.passes, batch.times)
        return batch

    def take_up(
        self,
        batch: BatchDuals,
        binary: Sequence[BinaryProblem | None],
        alpha: NDArray[np.float64],
    ) -> None:
        """Start the first batch from these dual variables, shape (problems, n)."""
        for k, problem in enumerate(binary):
            if problem is not None:
                start = np.minimum(alpha[k], problem.upper)
                self._take(k, problem, batch, start, self._norms(problem))

    def learn(
        self,
        k: int,
        problem: BinaryProblem,
        batch: BatchDuals,
        solver: DCD,
        stop: core.Stop,
    ) -> None:
        """Sweep the batch for problem k; `problem` has its rows, labels and costs."""
        rng = core.Random(0)
        rng.state = self.random[k]
        state = self._state(k, problem, batch, rng)
        state.start_shrinking()
        for _ in range(solver.sweeps(problem)):
            solver.step(state, stop)
            if stop.requested or stop.expired:
                break
        self.random[k] = list(rng.state)
        self.updates[k] += state.updates
        self._keep(k, problem, batch, state)

    def _keep(
        self, k: int, problem: BinaryProblem, batch: BatchDuals, state: BatchState
    ) -> None:
        """Store what the sweeps have found."""
        self._take(k, problem, batch, state.alpha, state.q)

    def _state(
        self, k: int, problem: BinaryProblem, batch: BatchDuals, rng: core.Random
    ) -> BatchState:
        """Return the state of the sweeps. Its w is not kept, as it is not exact."""
        return BatchState(
            problem, rng, new_order(problem.n), alpha=batch.alpha[k].copy(),
            w=self.w[k].copy(), q=self._norms(problem), active=problem.n,
        )  # fmt: skip

    def _norms(self, problem: BinaryProblem) -> Vector:
        """Return the squared norms of the rows in the sums of this stream."""
        return problem.q

    def _take(
        self,
        k: int,
        problem: BinaryProblem,
        batch: BatchDuals,
        alpha: Vector,
        q: Vector,
    ) -> None:
        """Store new dual variables of a batch, and update w and the sums.

        `q`: squared norms of the rows, or larger numbers.
        """
        by = alpha - batch.alpha[k]
        batch.alpha[k] = alpha
        self._add_rows(k, problem, by, q, self.w[k])
        self._note(k, batch, alpha, 0.5 * problem.delta * alpha * alpha)

    def _add_rows(
        self, k: int, problem: BinaryProblem, by: Vector, q: Vector, w: Vector
    ) -> None:
        """Add ``sum_i by_i y_i x_i`` to w, and a bound on the rounding to drift k.

        The steps update a w as well, but the rounding error of their updates is
        unknown.
        """
        w += problem.weighted_sum(by)
        reach = float(np.abs(by) @ np.sqrt(q))
        # Each change is a rounded difference, which counts like one more row.
        used = int(np.count_nonzero(by)) + 1
        length = math.sqrt(core.squared_norm(w))
        self.drift[k] += problem.rounding.of_sum(used, reach)
        self.drift[k] += Rounding.slack * Rounding.unit * length

    def _note(self, k: int, batch: BatchDuals, alpha: Vector, bent: Vector) -> None:
        """Update the linear term of a batch and the exact sum over all batches."""
        error = Rounding.summed * float((alpha + bent).sum())
        error += 2 * alpha.size * Rounding.least
        linear = float((alpha - bent).sum()) - Rounding.slack * error
        replace_in(self.linear[k], batch.linear, k, linear)

    def dual(self, k: int) -> Bounds:
        """Prove a lower bound on D of problem k from the stored sums."""
        linear, norm = math.fsum(self.linear[k]), core.squared_norm(self.w[k])
        return lower_bound(linear, norm, self.drift[k], self.w.shape[1])

    def prove(
        self, batches: Iterable[tuple[bytes, Sequence[BinaryProblem | None]]]
    ) -> list[Bounds]:
        """Prove bounds on P(w) and D of every problem, by one pass over the rows.

        `batches`: every batch of the stream once, in any order. A problem is None where
        none of its rows has a weight. Returns one per problem. Raises ValueError if a
        batch is not part of the stream, is given twice, or is missing: the two values
        would be about different rows.
        """
        problems, width = self.w.shape
        # Sums are recomputed, because the steps add an unknown rounding error to them.
        v, part = np.zeros((problems, width)), np.empty(width)
        sums: list[list[Values]] = [[] for _ in range(problems)]
        n, parts = np.zeros(problems, np.int64), np.zeros(problems, np.int64)
        met: set[bytes] = set()
        for number, (key, binary) in enumerate(batches):
            batch = self.batches.get(key)
            if batch is None or key in met:
                what = "was never learned from" if batch is None else "is given twice"
                raise ValueError(
                    f"batch {number} {what}; give each batch of partial_fit once, with "
                    "its rows unchanged"
                )
            met.add(key)
            for k, problem in enumerate(binary):
                if problem is None:
                    continue
                found = core.evaluate(
                    problem.examples(),
                    self.w[k],
                    "given",
                    self._point(k, problem, batch),
                    part,
                    threads=problem.threads,
                )
                sums[k].append(Values.of(found))
                n[k] += problem.n
                parts[k] += problem.threads.size + 1
                v[k] += part
        if len(met) < len(self.batches):
            raise ValueError(
                f"only {len(met)} of the {len(self.batches)} batches of partial_fit "
                "were given; a proof needs all of them"
            )
        return [
            self._bounds(k, sums[k], v[k], Rounding(int(n[k]), width, int(parts[k])))
            for k in range(problems)
        ]

    def _point(self, k: int, problem: BinaryProblem, batch: BatchDuals) -> Vector:
        """Return the dual variables of a batch for a proof."""
        return batch.alpha[k]

    def _bounds(
        self, k: int, parts: list[Values], v: Vector, rounding: Rounding
    ) -> Bounds:
        """Bound P(w), and D of the dual variables with ``v = sum_i a_i y_i x_i``."""
        return bounds_of(parts, self.w[k], v, rounding)


def lower_bound(
    linear: float, norm: float, drift: float, width: int, error: float = 0.0
) -> Bounds:
    """Bound D = linear - norm/2 from below, if w has an error of `drift`.

    `norm`, `width`: squared norm and length of w. `error`: of `linear`.
    """
    rounding = Rounding(0, width, 0)
    less = math.sqrt(norm) * drift + 0.5 * drift * drift
    less += (rounding.norm + rounding.closing) * norm
    less = rounding.slack * (less + rounding.closing * abs(linear) + error)
    lowest = Bounds.proved(dual=0.0)  # P is a sum of squares and losses
    found = Bounds.proved(
        dual=linear - 0.5 * norm, dual_error=less + rounding.underflow
    )
    return found.with_dual_of(lowest)


def bounds_of(
    parts: list[Values], w: Vector, v: Vector, rounding: Rounding, own: float = 0.0
) -> Bounds:
    """Bound P(w), and D of a point within `own` of one with ``v = sum a_i y_i x_i``."""
    norm, curvature = core.squared_norm(w), core.squared_norm(v)
    if not parts:
        return Bounds.proved(0.5 * norm, 2 * Rounding.norm * norm, 0.0)
    return rounding.bounds(Values.merge(parts), norm, curvature, own=own)


def key_of(problem: BinaryProblem, codes: NDArray[np.intp], weight: Vector) -> bytes:
    """Return a hash that identifies a batch.

    It covers labels, weights, norms and one random sum of the rows. The same rows in
    another order are another batch, because dual variables belong to positions.
    """
    found = hashlib.sha256()
    coin = np.random.default_rng(0).random(problem.n)
    total = problem.with_labels(np.ones(problem.n)).weighted_sum(coin)
    for array in (codes, weight, problem.q, total):
        found.update(array.view(np.uint8).data)
    return found.digest()


def replace_in(parts: list[float], terms: Vector, k: int, x: float) -> None:
    """Set term k to x, and keep `parts` the exact sum of all terms of all batches."""
    add_exactly(parts, -float(terms[k]))
    add_exactly(parts, x)
    terms[k] = x


def add_exactly(parts: list[float], x: float) -> None:
    """Add a number exactly to a sum that is stored as a few non-overlapping numbers.

    Source: Shewchuk, Discrete & Computational Geometry 18, 1997, section 2.4. Nothing
    is rounded, and the range of float64 exponents limits how many numbers are needed.
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
