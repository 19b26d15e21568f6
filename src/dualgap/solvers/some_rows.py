"""Base of `newton` and `interior-point`, which solve an active set of the rows.

The other rows are fixed at a bound. This module has the active set, the cost model of
both methods, the search for equal rows, and stratified samples.
"""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..blas import Functions, algebra, one_thread
from ..checks import Count
from ..data.blocks import Block
from ..losses import Vector
from ..problems.binary import BinaryProblem
from .base import TINY, Solver, State

if TYPE_CHECKING:
    from typing_extensions import Self

#: Rows of a block, and which of them are active; None for all.
ActivePart: TypeAlias = tuple[core.Rows, NDArray[np.uint32] | None]


@dataclass(frozen=True)
class SomeRowsSettings:
    """Tuning constants of the cost model and of the search for equal rows."""

    #: With more rows than this, a sample first tells whether any are equal.
    sampled_from: int = 10_000
    #: Rows are merged if at most this share of them is distinct.
    merged_share: float = 0.9
    #: Rows are merged at once if less than this share of a sample is distinct.
    few_distinct: float = 0.5
    #: Entries of dense rows that fit in the cache of a processor.
    cached_entries: int = 2_000_000
    #: Rows are few up to this many per feature.
    few_rows: int = 10
    #: Rows times features up to which an epoch makes several iterations, because one
    #: would take less time than the loop around it.
    short_entries: int = 200_000
    #: Most iterations of such an epoch.
    together: int = 8


SETTINGS = SomeRowsSettings()


class Outcome(IntEnum):
    """Outcome of an iteration of the core."""

    STEP = 0
    STOPPED = 1  # by a stop request
    SINGULAR = 2


def lone_blas(state: State) -> Functions:
    """Return SciPy's dsyrk, ssyrk, dpotrf and dpotrs, and give BLAS one thread.

    BLAS gets its threads back when the fit ends, or where :func:`one_limit` ends.

    Raises MemoryError if there is no memory for the buffers of BLAS.
    """
    if not state.alone:
        one_thread(state.problem.threads.size, state.resources)
        state.alone = True
    return algebra()[0]


def few_rows(problem: BinaryProblem) -> bool:
    """Whether interior point takes few steps for any C, and Newton's method many."""
    return problem.n <= SETTINGS.few_rows * problem.width


def iterations_of_epoch(problem: BinaryProblem) -> int:
    """Return how many iterations over all rows an epoch makes at most."""
    short = problem.n * problem.width <= SETTINGS.short_entries
    return SETTINGS.together if short else 1


def plain_speed(problem: BinaryProblem) -> float:
    """Return the speed of a product per multiply-add, relative to CSR rows.

    Costs are counted in multiply-adds of a product, so work in BLAS counts for more
    where products are fast. Rows with few features gain nothing; beyond the cache,
    memory slows products down.
    """
    if problem.streamed or not problem.rows.dense or problem.width < 32:
        return 1.0
    cached = problem.rows.stored <= SETTINGS.cached_entries
    return 4.0 if problem.width >= 128 and cached else 2.0


def factor_work(problem: BinaryProblem) -> float:
    """Return the cost of factoring a d x d matrix, in multiply-adds of a product."""
    return plain_speed(problem) * float(problem.width) ** 3 / 60.0


def gram_work(problem: BinaryProblem) -> float:
    """Return the cost of a row in a Gram matrix, in multiply-adds of a product.

    Sparse rows are added entry by entry, or several neighbours together, which is 1.8
    times as fast. Dense rows go through panels and BLAS, which is 14 times as fast from
    some 100 features on, and 25 times in float32.
    """
    entries, d = problem.rows.stored / problem.n + 1.0, float(problem.width)
    if entries > 0.2 * d:
        blas = (0.02 if d >= 128.0 else 0.035) * d
        return d * (plain_speed(problem) * blas + 2.0)
    together = not problem.streamed and core.has_windows(problem.rows)
    return (0.28 if together else 0.5) * entries * (entries + 1.0)


def grouping_work(problem: BinaryProblem) -> float:
    """Return the cost of the search for equal rows, in multiply-adds of a product."""
    return 2.0 * problem.rows.stored + 30.0 * problem.n


_Groups = tuple[int, NDArray[np.uint32] | None]
_groups: weakref.WeakKeyDictionary[BinaryProblem, _Groups] = weakref.WeakKeyDictionary()
_samples: weakref.WeakKeyDictionary[BinaryProblem, tuple[int, int]]
_samples = weakref.WeakKeyDictionary()


def sample_distinct_rows(problem: BinaryProblem) -> tuple[int, int]:
    """Return (rows sampled, distinct rows among them). Cached per problem."""
    if problem not in _samples:
        drawn = np.empty(int(8.0 * math.sqrt(problem.n)), dtype=np.uint32)
        core.Random(0).draw(drawn, problem.n)
        some = np.unique(drawn)
        rows = core.chosen_rows(problem.rows, some, problem.intercept_scaling)
        count = core.group_duplicates(rows, problem.y[some], np.empty_like(some))
        _samples[problem] = len(some), int(count)
    return _samples[problem]


def equal_rows(problem: BinaryProblem) -> _Groups:
    """Return the number of distinct rows, and the group of equal rows of each row.

    Equal rows have the same label. The result is cached per problem; the groups are
    None if most rows are distinct. A large problem counts as such if at most two rows
    of a sample are equal; there would be 30 equal pairs if every row occurred twice.
    """
    n = problem.n
    if problem not in _groups and n > SETTINGS.sampled_from:
        drawn, count = sample_distinct_rows(problem)
        if drawn - count <= 1:
            _groups[problem] = n, None
    if problem not in _groups:
        group = np.empty(n, dtype=np.uint32)
        count = core.group_duplicates(problem.rows, problem.y, group)
        merged = count <= SETTINGS.merged_share * n
        _groups[problem] = count, group if merged else None
    return _groups[problem]


def distinct_share(problem: BinaryProblem) -> float:
    """Estimate the share of distinct rows; 1 unless it is small."""
    if problem.streamed or problem.n <= SETTINGS.sampled_from:
        return 1.0
    drawn, count = sample_distinct_rows(problem)
    return count / drawn if count < SETTINGS.few_distinct * drawn else 1.0


def some_of(problem: BinaryProblem, rows: NDArray[np.uint32]) -> BinaryProblem:
    """Return the problem of some rows."""
    part = copy.copy(problem)
    part.rows = core.chosen_rows(problem.rows, rows, problem.intercept_scaling)
    part.n, part.y, part.q = len(rows), problem.y[rows], problem.q[rows]
    part.cost = problem.cost[rows]
    return part


def without_duplicates(
    problem: BinaryProblem,
) -> tuple[BinaryProblem, NDArray[np.uint32] | None]:
    """Merge equal rows of one label into one row with the sum of their costs.

    The objective is the same function of w, because the loss of a row is proportional
    to its cost.

    Returns `problem`: unchanged if most rows are distinct. `group`: row of the new
    problem for each row of the old one, shape (n,).
    """
    n = problem.n
    count, group = equal_rows(problem)
    if group is None:
        return problem, None
    first = np.empty(count, dtype=np.uint32)
    first[group[::-1]] = np.arange(n - 1, -1, -1, dtype=np.uint32)
    merged = some_of(problem, first)
    merged.cost = np.bincount(group, problem.cost, count).astype(np.float64)
    return merged, group


def draw_sample(
    y: NDArray[np.int8], cost: Vector, m: int, rng: core.Random
) -> tuple[NDArray[np.uint32], Vector]:
    """Draw about m rows, stratified by class, with costs that represent all rows.

    Returns `members`: sorted, shape (drawn,). It contains all heavy rows, and at least
    m/10 rows of each class that has that many. `cost`: shape (drawn,).
    """
    n = len(y)
    drawn = np.zeros(n)  # costs
    least = float(cost.min())
    equal = least == float(cost.max())
    for label in (1, -1):
        of_class = y == label
        rows = np.flatnonzero(of_class if least > 0.0 else of_class & (cost > 0.0))
        if len(rows) == 0:
            continue
        take = min(len(rows), max(m * len(rows) // n, m // 10))
        # Draw one row from each of `take` stretches of the class. A stretch is measured
        # half by cost and half by rows, so that heavy and light rows are both drawn.
        place = np.empty(take, dtype=np.uint32)
        rng.draw(place, 1 << 24)
        where = np.arange(take) + place / (1 << 24)
        own = np.broadcast_to(cost[:1], len(rows)) if equal else cost[rows]
        if equal or float(own.min()) == float(own.max()):
            stretch, measure = len(rows) / take, 1.0
            at = (stretch * where).astype(np.intp)
        else:
            weights = own / own.mean() + 1.0
            reached = np.cumsum(weights)
            stretch = float(reached[-1]) / take
            at = np.searchsorted(reached[:-1], stretch * where, side="right")
            measure = weights[at]
        np.add.at(drawn, rows[at], own[at] * (stretch / measure))
    members = np.flatnonzero(drawn > 0.0).astype(np.uint32)
    return members, drawn[members]


@dataclass(kw_only=True)
class SomeRowsState(State):
    """Base of the states: w, and the active set of rows.

    `problem` has one row for each group of equal rows; `whole` is the original problem.
    """

    whole: BinaryProblem
    group: NDArray[np.uint32] | None  # of the rows of `whole`; None: all distinct
    w: Vector
    members: NDArray[np.uint32]  # active rows
    full: Vector  # U_i for rows that are fixed there, else 0
    inner: Any = None  # the core's solver over the active rows
    dead: bool = False  # broken down

    @classmethod
    def begin(
        cls, problem: BinaryProblem, rng: core.Random, merge: bool, **own: Any
    ) -> Self:
        """Return the state at 0 with the best bias for it; `merge` equal rows."""
        whole, group = problem, None
        if merge:
            problem, group = without_duplicates(whole)
        return cls(
            problem,
            rng,
            whole=whole,
            group=group,
            w=problem.combine(np.zeros(problem.n)),
            members=np.empty(0, dtype=np.uint32),
            full=np.zeros(problem.n),
            **own,
        )

    def __post_init__(self) -> None:
        # Valid bounds for w without dual variables.
        problem = self.problem
        nothing = problem.core_loss.value(1.0) * float(problem.cost.sum())
        self.primal = problem.value(self.w) if problem.free_bias else nothing
        self.dual = 0.0

    def finite(self) -> bool:
        return not self.dead and bool(np.isfinite(self.w).all())

    @property
    def relative_gap(self) -> float:
        """Relative gap over the active rows."""
        inner = self.inner
        return float((inner.primal - inner.dual) / max(abs(inner.primal), TINY))

    def fits(self, rows: int) -> bool:
        """Whether the buffer of a store has room for a copy of this many rows."""
        problem = self.problem
        if problem.source is None or not problem.streamed:
            return True
        row = problem.rows.stored / problem.n * problem.source.entry_bytes + 8.0
        return rows * row <= problem.source.buffer

    def spend(self, work: float) -> None:
        """Count work as the rows that a product of the same cost would visit."""
        problem = self.problem
        self.visited += round(work / (problem.rows.stored / problem.n + 1.0))

    def spread(self, alpha: Vector) -> Vector:
        """Return the duals of `whole`: rows of a group share by their costs."""
        whole, group = self.whole, self.group
        if group is None:
            return alpha
        shares = alpha / np.maximum(self.problem.cost, TINY)
        full = alpha == self.problem.upper
        cost, upper = whole.cost, whole.upper
        if cost.min() == cost.max():  # all rows of a group have equal shares
            cost, upper = cost[0], upper[0]
            return np.where(full, upper, np.minimum(shares * cost, upper))[group]
        return np.where(full[group], upper, np.minimum(shares[group] * cost, upper))

    def rows(self) -> list[core.Rows] | Callable[[], Iterator[ActivePart]]:
        """Return the active rows: in place, copied, or as blocks for every pass."""
        problem, members = self.problem, self.members
        if not problem.streamed and len(members) == problem.n:
            return [problem.rows]

        def chosen_of(block: Block) -> NDArray[np.uint32]:
            first, last = np.searchsorted(members, (block.span.start, block.span.stop))
            return members[first:last] - np.uint32(block.span.start)

        def read() -> Iterator[ActivePart]:
            for block in problem.blocks():
                chosen = chosen_of(block)
                yield block.rows, chosen if len(chosen) < block.size else None

        if not self.fits(len(members)):
            return read
        constant = problem.intercept_scaling
        return [
            core.chosen_rows(block.rows, chosen_of(block), constant)
            for block in problem.blocks()
        ]


@dataclass(frozen=True)
class FewFeatures(Solver):
    """Base of the methods with a d x d matrix; they stream and can free the bias.

    Parameters
    ----------
    max_features : int, default=2500
        Refuse problems with more features. Every thread holds a matrix of
        `max_features` squared, 12 bytes an entry.
    """

    max_features: Count = 2500
    free_bias = True
    streams = True

    def check(self, problem: BinaryProblem) -> None:
        super().check(problem)
        if problem.width > self.max_features:
            raise ValueError(
                f"solver={self.name!r}: {problem.width} features, more than "
                f"max_features={self.max_features}; use solver='dcd', or "
                f"{type(self).__name__}(max_features={problem.width}) if "
                f"{12e-9 * problem.width**2:.1f} GB per thread are at hand"
            )

    def reject(self, state: Any) -> None:
        state.dead = math.isnan(state.primal)
