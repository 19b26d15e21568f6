"""Newton's method on a smoothed loss: few features, any number of rows, loose gaps.

Problem    min 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i), with its dual (losses.py)
Update     H s = r, w <- w + t s with the Hessian of the loss smoothed by tau, exact for
           the rows within tau/2 of the margin (core/smoothing_newton.hpp). tau is
           divided by up to `_FASTER` once it costs the gap more than the accuracy asked
           allows, and more than a step over a sample gains or, over all rows, than what
           else is in the gap.
           Around it: equal rows merged, where most are; samples, stratified by class,
           each four times the one before and solved to the accuracy that it has of the
           whole; then all rows. Rows so far from the margin that no step of the size of
           the last one gets them there are frozen, until w has moved as far as that.
Guarantee  gap -> 0: a step is downhill, the smoothed problem is solved after finitely
           many, and its minimiser has a gap of at most n tau/8 (max c_i); in practice
           2 to 10 steps over all rows to 1e-2 or 1e-3.
Cost       a step: a product with the rows that are not frozen and one with those of
           a_i > 0, the Gram matrix of the rows within tau/2 of the margin and d^3/6.
           8 d^2 bytes per thread (12 from 128 features on), 70 a row of the problem,
           and a copy of the rows that are not frozen.
Source     Lee and Mangasarian, Comput. Optim. Appl. 20, 2001; Chapelle, Neural Comput.
           19, 2007; the dual point and the samples are this package's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..losses import Vector
from ..memory import BLAS, make_room_for
from ..problem import Problem
from .base import check_count, new_order
from .some_rows import (
    LEFT,
    SINGULAR,
    FewFeatures,
    SomeRowsState,
    algebra,
    draw_sample,
    factor_work,
    gram_work,
    grouping_work,
    share_of_different,
    without_duplicates,
    worth_merging,
)

_FIRST_TAU = 2.5
_FASTER = 4.0  # division of tau
_SHARE = 0.4  # of the gap asked for that smoothing may leave
_GROWTH = 4  # of the samples
_ROWS_PER_FEATURE = 10  # in the first one
_SAMPLE_TOL = 0.05  # or this many times d/m, what a sample of m rows is off by:
_PER_FEATURE = 2.0
_EXACT = 0.2  # of the gap asked for: no larger sample is needed
_DONE = 0.5  # of this accuracy, in the last step's decrement
_ENOUGH = 1.3  # times what smoothing may cost
_SAMPLE_STEPS = 15  # most over one sample
_ROOM = 4.0  # times the last step that w may move before rows are unfrozen,
_LEFT = 0.1  # which they are when so much of it is left: steps end at its bound
_FEW = 0.25  # share of the rows from which the others are frozen
_EVERY = 16  # rows of which one says whether they are so few
_ROUNDING, _IDLE = 1e-15, 5  # so little is gained so many times: stuck
_TINY = 1e-300


def iteration_work(problem: Problem, rows: float, inside: float) -> float:
    """What a step over so many rows costs, in multiply-adds of a product.

    Counts only: two products, the element-wise work, the Gram matrix of the rows that
    are inside, the factor, and what a call costs.
    """
    entries = problem.rows.stored / problem.n + 1.0
    passes = rows * (1.6 * entries + 15.0)
    return passes + inside * gram_work(problem) + factor_work(problem) + 5e4


def predicted_work(problem: Problem, tol: float) -> float:
    """What a whole fit is expected to cost; one product costs ``rows.stored + n``.

    Parameters
    ----------
    problem : Problem
    tol : float
        Relative gap to reach.

    Returns
    -------
    float
        In multiply-adds of a plain sequential product, as :attr:`State.work` counts
        them; from counts alone, so the same on every machine. Within a factor of two
        on the sets of docs/which-solver.md.
    """
    d, digits = float(problem.width), max(-math.log10(tol), 1.0)
    n = problem.n * share_of_different(problem)
    # The mean of c_i q_i says how much harder it is than C = 0.1 on rows of norm 1.
    steepness = max(float(np.dot(problem.cost, problem.q)) / problem.n, 0.1)
    visits = 0.57 * d**0.336 * steepness**0.17 * 1.264**digits  # of every row
    steps = 3.1 * d**0.17 * steepness**0.155 * 1.33**digits
    product = problem.rows.stored + problem.n
    return (
        1.4 * iteration_work(problem, visits * n, (0.6 + 0.1 * visits) * n)
        + 1.4 * (steps - 1.0) * iteration_work(problem, 0.0, 0.0)
        + 11.0 * product
    )


@dataclass(kw_only=True)
class NewtonState(SomeRowsState):
    """The point, and the rows that are being solved."""

    samples: list[tuple[NDArray[np.uint32], Vector]] | None = None  # still to come
    sample_tol: float = 0.0  # gap at which a sample is done
    steps: int = 0  # over this sample
    everything: bool = False  # the members and the frozen rows are all rows
    tau: float = _FIRST_TAU
    centre: Vector | None = None  # w when rows were frozen
    radius: float = math.inf  # how far from it w may go
    idle: int = 0  # steps in a row that gained nothing


@dataclass(frozen=True)
class SmoothingNewton(FewFeatures):
    """Newton's method on a smoothed loss, over samples that grow and then all rows.

    Parameters
    ----------
    max_features : int, default=2500
        Refuse problems with more; a matrix of `max_features` squared is held, 12 bytes
        an entry, for each thread.
    sample : int, default=2000
        Fewest rows in the first sample.
    """

    sample: int = 2000

    name: ClassVar[str] = "newton"

    def __post_init__(self) -> None:
        for name in ("max_features", "sample"):
            check_count(name, getattr(self, name))

    def start(self, problem: Problem, rng: Any, warm: Vector | None) -> NewtonState:
        whole, group = problem, None
        if worth_merging(whole):
            problem, group = without_duplicates(whole)
        zero = np.zeros(problem.n)
        w = problem.combine(zero)  # 0, and the best bias for it
        state = NewtonState(
            problem,
            rng,
            new_order(0),  # the rows are taken as they lie
            whole=whole,
            group=group,
            w=w,
            members=np.empty(0, dtype=np.uint32),
            full=zero,
        )
        if group is not None:
            state.spend(grouping_work(whole))
        return state

    def step(self, state: NewtonState, stop: Any) -> None:
        _, blas = algebra()
        make_room_for(state.problem.threads.size, BLAS)
        with blas.limit(limits=1):
            if state.inner is None and not self._begin(state, stop):
                return
            inner = state.inner
            if not self._sharpen(state, stop):
                return
            outcome = inner.iterate(self._room(state), stop)
        if outcome == LEFT:
            return
        state.epochs += 1
        state.updates += len(state.members)
        work = iteration_work(state.problem, len(state.members), inner.inside)
        state.spend(work)
        state.w = inner.w
        gap = state.relative_gap
        still = inner.decrement <= _ROUNDING * abs(inner.primal)
        state.idle = state.idle + 1 if still else 0
        stuck = outcome == SINGULAR or state.idle >= _IDLE or not math.isfinite(gap)
        if not state.everything:
            state.steps += 1
            near = inner.decrement <= _DONE * state.sample_tol * inner.primal
            sharp = inner.smoothing <= _ENOUGH * self._most(state)
            if (near and sharp) or stuck or state.steps >= _SAMPLE_STEPS:
                state.inner = None
            return
        state.primal, state.dual = inner.primal, inner.dual
        if stuck:  # what there is gets proved, and the fit ends
            state.primal = state.dual = math.nan
        elif state.centre is not None:
            if self._room(state) <= _LEFT * state.radius:
                state.inner = None
        elif gap > 2.0 * state.tol:
            self._freeze(state, stop)

    def _room(self, state: NewtonState) -> float:
        """How far w may move before a frozen row might be wrong."""
        if state.centre is None:
            return math.inf
        moved = float(np.linalg.norm(state.inner.w - state.centre))
        return max(state.radius - moved, 0.0)

    def _sharpen(self, state: NewtonState, stop: Any) -> bool:
        """Smooth less where smoothing is most of the gap, and too much.

        False: told to leave.
        """
        inner, most = state.inner, self._most(state)
        smoothing, left = inner.smoothing, inner.decrement
        if state.everything:  # what is to be proved, not only to be solved
            left = inner.primal - inner.dual - smoothing
        much = smoothing > max(_ENOUGH * most, left)
        if not (much and inner.tau > 0.0 and inner.moved > 0.0):
            return True
        state.tau = inner.tau * max(math.sqrt(most / smoothing), 1.0 / _FASTER)
        state.visited += len(state.members)
        return bool(inner.smooth(state.tau, stop))

    def _most(self, state: NewtonState) -> float:
        """What smoothing may cost."""
        goal = state.tol if state.everything else state.sample_tol
        return _SHARE * goal * abs(state.inner.primal)

    def _begin(self, state: NewtonState, stop: Any) -> bool:
        """The next sample, or all rows; False: told to leave."""
        problem = state.problem
        state.full = np.zeros(problem.n)
        if state.samples is None:
            state.samples = self._draw(state)
        if state.samples:
            state.members, cost = state.samples.pop()
            state.steps = 0
            error = self._error(problem, len(state.members))
            state.sample_tol = max(state.tol, min(_SAMPLE_TOL, error))
        else:
            state.members, cost = new_order(problem.n), problem.cost
            if not cost.min() > 0.0:
                state.members = np.flatnonzero(cost > 0.0).astype(np.uint32)
                cost = cost[state.members]
            state.everything = True
        state.idle, state.centre = 0, None
        return self._solve(state, cost, np.zeros(problem.width), 0.0, stop)

    @staticmethod
    def _error(problem: Problem, m: float) -> float:
        """About what the objective of a sample of m rows is off by."""
        return _PER_FEATURE * problem.width / m

    def _draw(self, state: NewtonState) -> list[tuple[NDArray[np.uint32], Vector]]:
        """Rows and costs of the samples, each drawn from the one before, large ones."""
        problem = state.problem
        least = max(self.sample, _ROWS_PER_FEATURE * problem.width)
        samples = []
        members, cost = new_order(problem.n), problem.cost
        m, enough = problem.n / _GROWTH, _EXACT * state.tol
        while m / _GROWTH >= least and self._error(problem, m / _GROWTH) <= enough:
            m /= _GROWTH  # what a smaller sample says already
        while m >= least:
            chosen, cost = draw_sample(problem.y[members], cost, int(m), state.rng)
            members = members[chosen]
            if state.fits(len(members)):
                samples.append((members, cost))
            m /= _GROWTH
        return samples

    def _solve(
        self,
        state: NewtonState,
        cost: Vector,
        fixed: Vector,
        constant: float,
        stop: Any,
    ) -> bool:
        problem, members = state.problem, state.members
        state.spend(2.0 * len(members) * (problem.rows.stored / problem.n + 1.0))
        y = problem.y if len(members) == problem.n else problem.y[members]
        inner = core.SmoothingNewton(
            state.rows(), y, cost, problem.core_loss, fixed, constant,
            problem.free_bias, problem.threads, algebra()[0],
        )  # fmt: skip
        if not inner.start(state.w, state.tau, stop):
            return False
        state.inner = inner
        return True

    def _freeze(self, state: NewtonState, stop: Any) -> None:
        """Leave the rows out that a few more steps like the last do not move."""
        problem, inner = state.problem, state.inner
        if inner.inside > _FEW * problem.n:
            return
        radius = _ROOM * inner.moved
        margins = inner.margins
        if len(margins) < problem.n:  # rows of weight 0 are not near
            margins, members = np.zeros(problem.n), margins
            margins[state.members] = members
        # From where duals are between their bounds: -tau/2 < u < curvature + tau/2.
        loss, half = problem.loss, 0.5 * inner.tau
        knee = loss.curvature if math.isfinite(loss.slope) else math.inf

        def near_of(some: slice) -> NDArray[np.bool_]:
            u = 1.0 - margins[some]
            distance = np.maximum(-half - u, u - (knee + half))
            near = distance < radius * np.sqrt(problem.q[some])
            return near & (problem.cost[some] > 0.0)

        if np.mean(near_of(slice(None, None, _EVERY))) > _FEW:
            return
        near = near_of(slice(None))
        count = int(np.count_nonzero(near))
        if count == 0 or count > _FEW * problem.n or not state.fits(count):
            return
        state.full = np.where(near | (margins >= 1.0), 0.0, problem.upper)
        fixed = problem.weighted_sum(state.full)
        constant = problem.dual_value(state.full, 0.0)
        state.members = np.flatnonzero(near).astype(np.uint32)
        state.spend(10.0 * problem.n)
        state.centre, state.radius = state.w, radius
        cost = problem.cost[state.members]
        state.inner = None
        self._solve(state, cost, fixed, constant, stop)

    def iterate(self, state: NewtonState) -> tuple[Vector, Vector | None]:
        if not state.everything or state.inner is None:
            return state.w, None
        alpha = state.inner.alpha
        if len(alpha) < state.problem.n:
            alpha, members = state.full.copy(), alpha
            alpha[state.members] = members
        return state.w, state.spread(alpha)
