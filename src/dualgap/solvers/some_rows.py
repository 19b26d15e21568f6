"""What methods share that solve some of the rows, the others frozen at a bound."""

from __future__ import annotations

import copy
import functools
import math
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..blocks import Block
from ..losses import Vector
from ..problem import Problem
from .base import Solver, State

_SURVEYED = 10_000  # rows from which a sample says whether any are equal
_DIFFERENT = 0.9  # share of different rows from which all are kept
_FEW_DIFFERENT = 0.5  # share among drawn rows below which merging pays at once
_CACHED = 2_000_000  # entries of dense rows that a processor keeps
_FEW_ROWS = 10  # a feature
_TINY = 1e-300
#: Outcomes of an iteration of the core besides 0, a step.
LEFT, SINGULAR = 1, 2


@functools.cache
def algebra() -> tuple[tuple[Any, ...], Any]:
    """SciPy's dsyrk, ssyrk, dpotrf and dpotrs, and what holds them to one thread."""
    from scipy.linalg import cython_blas, cython_lapack
    from threadpoolctl import ThreadpoolController

    functions = (
        cython_blas.__pyx_capi__["dsyrk"],
        cython_blas.__pyx_capi__["ssyrk"],
        cython_lapack.__pyx_capi__["dpotrf"],
        cython_lapack.__pyx_capi__["dpotrs"],
    )
    return functions, ThreadpoolController().select(user_api="blas")


def few_rows(problem: Problem) -> bool:
    """Whether interior point takes few steps for any C, and Newton's method many."""
    return problem.n <= _FEW_ROWS * problem.width


def plain_speed(problem: Problem) -> float:
    """How much faster a product runs than with CSR rows, per multiply-add.

    Costs are counted in its multiply-adds, and what BLAS does is dearer in these. Rows
    of some features alone are added up in vectors, which memory slows down.
    """
    if problem.streamed or not problem.rows.dense or problem.width < 32:
        return 1.0
    wide = problem.width >= 128 and problem.rows.stored <= _CACHED
    return 4.0 if wide else 2.0


def factor_work(problem: Problem) -> float:
    """What a factor of a d x d matrix costs, in multiply-adds of a product."""
    return plain_speed(problem) * float(problem.width) ** 3 / 60.0


def gram_work(problem: Problem) -> float:
    """What a row adds to the cost of a Gram matrix, in multiply-adds of a product.

    Entry by entry, or neighbours together, which is 1.8 times as fast, or panels and
    BLAS, 14 times from some 100 features on and 25 times in float32.
    """
    entries, d = problem.rows.stored / problem.n + 1.0, float(problem.width)
    if entries > 0.2 * d:
        blas = (0.02 if d >= 128.0 else 0.035) * d
        return d * (plain_speed(problem) * blas + 2.0)
    together = not problem.streamed and core.has_windows(problem.rows)
    return (0.28 if together else 0.5) * entries * (entries + 1.0)


def grouping_work(problem: Problem) -> float:
    """What the search for equal rows costs, in the same."""
    return 2.0 * problem.rows.stored + 30.0 * problem.n


_Groups = tuple[int, NDArray[np.uint32] | None]
_groups: weakref.WeakKeyDictionary[Problem, _Groups] = weakref.WeakKeyDictionary()
_surveys: weakref.WeakKeyDictionary[Problem, tuple[int, int]]
_surveys = weakref.WeakKeyDictionary()


def survey(problem: Problem) -> tuple[int, int]:
    """Of how many drawn rows how many are different; once for each problem."""
    if problem not in _surveys:
        drawn = np.empty(int(8.0 * math.sqrt(problem.n)), dtype=np.uint32)
        core.Random(0).draw(drawn, problem.n)
        some = np.unique(drawn)
        _surveys[problem] = len(some), different(problem, some)
    return _surveys[problem]


def equal_rows(problem: Problem) -> _Groups:
    """How many groups of equal rows under one label there are, and that of each row.

    Found once for each problem; the groups are None if most rows are different. They
    are taken to be if at most two are equal of as many drawn as would hold 30 equal
    pairs if every row came twice.
    """
    n = problem.n
    if problem not in _groups and n > _SURVEYED:
        drawn, count = survey(problem)
        if drawn - count <= 1:
            _groups[problem] = n, None
    if problem not in _groups:
        group = np.empty(problem.n, dtype=np.uint32)
        count = core.group_duplicates(problem.rows, problem.y, group)
        _groups[problem] = count, group if count <= _DIFFERENT * problem.n else None
    return _groups[problem]


def different(problem: Problem, some: NDArray[np.uint32]) -> int:
    """How many of some rows are different."""
    rows = core.chosen_rows(problem.rows, some, problem.intercept_scaling)
    return int(core.group_duplicates(rows, problem.y[some], np.empty_like(some)))


def share_of_different(problem: Problem) -> float:
    """1, or where most rows are equal to many, about the share that is left of them."""
    if problem.streamed or problem.n <= _SURVEYED:
        return 1.0
    drawn, count = survey(problem)
    return count / drawn if count < _FEW_DIFFERENT * drawn else 1.0


def worth_merging(problem: Problem) -> bool:
    """Whether so few rows are different that finding them pays at once."""
    return share_of_different(problem) < 1.0


def without_duplicates(problem: Problem) -> tuple[Problem, NDArray[np.uint32] | None]:
    """One row for each group of equal ones of one label, with the sum of the costs.

    Its objective is the same function of w: the loss of a row is proportional to its
    cost.

    Returns
    -------
    problem : Problem
        The same one if most rows are different.
    group : ndarray of shape (n,), or None
        Row of the new problem for each row of the old one.
    """
    n = problem.n
    count, group = equal_rows(problem)
    if group is None:
        return problem, None
    first = np.empty(count, dtype=np.uint32)
    first[group[::-1]] = np.arange(n - 1, -1, -1, dtype=np.uint32)
    merged = copy.copy(problem)
    merged.rows = core.chosen_rows(problem.rows, first, problem.intercept_scaling)
    merged.n, merged.y, merged.q = count, problem.y[first], problem.q[first]
    merged.cost = np.bincount(group, problem.cost, count).astype(np.float64)
    return merged, group


def draw_sample(
    y: NDArray[np.int8], cost: Vector, m: int, rng: Any
) -> tuple[NDArray[np.uint32], Vector]:
    """About m of the rows, stratified by class, and costs that stand for all of them.

    Returns
    -------
    members : ndarray of shape (drawn,)
        Rising; heavy rows are in it, and at least m/10 of a class that has as many.
    cost : ndarray of shape (drawn,)
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
        # One out of each of `take` stretches of the class, each half its share of
        # the cost and half of the rows: heavy rows are in it, and rare ones.
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
    """Which rows are being solved.

    `problem` has one row for each group of equal ones; `whole` is the one asked for.
    """

    whole: Problem
    group: NDArray[np.uint32] | None  # of the rows of `whole`; None: all different
    w: Vector
    members: NDArray[np.uint32]  # rows of `inner`
    full: Vector  # U_i where a row is frozen there, else 0
    inner: Any = None  # the method of the core over the members
    dead: bool = False

    def __post_init__(self) -> None:
        # Bounds, and honest ones, for the w of no duals.
        problem = self.problem
        nothing = problem.core_loss.value(1.0) * float(problem.cost.sum())
        self.primal = problem.primal(self.w) if problem.free_bias else nothing
        self.dual = 0.0

    def finite(self) -> bool:
        return not self.dead and bool(np.isfinite(self.w).all())

    @property
    def relative_gap(self) -> float:
        """Of the rows that are being solved."""
        inner = self.inner
        return float((inner.primal - inner.dual) / max(abs(inner.primal), _TINY))

    def fits(self, rows: int) -> bool:
        """Whether so many rows of a store may be copied."""
        problem = self.problem
        if problem.source is None or not problem.streamed:
            return True
        row = problem.rows.stored / problem.n * problem.source.entry_bytes + 8.0
        return rows * row <= problem.source.buffer

    def spend(self, work: float) -> None:
        """Count work as rows that a product would have visited."""
        problem = self.problem
        self.visited += round(work / (problem.rows.stored / problem.n + 1.0))

    def spread(self, alpha: Vector) -> Vector:
        """The duals of `whole`: those of a group, in proportion to the costs."""
        whole, group = self.whole, self.group
        if group is None:
            return alpha
        shares = alpha / np.maximum(self.problem.cost, _TINY)
        full = alpha == self.problem.upper
        cost, upper = whole.cost, whole.upper
        if cost.min() == cost.max():  # all rows of a group have the same
            cost, upper = cost[0], upper[0]
            return np.where(full, upper, np.minimum(shares * cost, upper))[group]
        return np.where(full[group], upper, np.minimum(shares[group] * cost, upper))

    def rows(self) -> Any:
        """The members: as they lie, copied, or as blocks that every pass reads."""
        problem, members = self.problem, self.members
        if not problem.streamed and len(members) == problem.n:
            return [problem.rows]

        def chosen_of(block: Block) -> NDArray[np.uint32]:
            first, last = np.searchsorted(members, (block.span.start, block.span.stop))
            return members[first:last] - np.uint32(block.span.start)

        def read() -> Iterator[tuple[Any, NDArray[np.uint32] | None]]:
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
    """Base of the methods with a d x d matrix, which stream and leave a bias free."""

    max_features: int = 2500

    @property
    def free_bias(self) -> bool:
        return True

    @property
    def streams(self) -> bool:
        return True

    def check(self, problem: Problem) -> None:
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
