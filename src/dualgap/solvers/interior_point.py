"""Interior point: few features, any number of rows, any C.

Problem    min 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i), with its dual (losses.py)
Update     one Newton step on the primal-dual system of the rows near the margin, the
           other rows frozen at a bound (core/interior.hpp): predictor, corrector and
           up to three more correctors on one d x d matrix.
           Around it: merge equal rows -> solve a sample, stratified by class ->
           freeze the rows far from its margin -> solve the near ones -> look at all
           rows -> add those on the wrong side -> ...; after `rounds` of these, solve
           all rows together. Of a store equal rows are not merged, and the rows of a
           solve are a copy if that fits in its buffer, else read anew in every pass.
Guarantee  gap -> 0; no bound on the iterations, in practice 10 to 60 a solve whatever
           C is. The certificate is about all rows.
Cost       an iteration: the Gram matrix of the near rows and d^3/6, the same passes
           over these rows as 3 to 9 products; a look at all rows: one product.
           8 d^2 bytes per thread (12 from 128 features on), 120 a near row and a copy
           of those rows (all rows: no copy), 60 a row of the problem, and a copy of the
           different ones if many are equal. A store is read once for a look, and twice
           for a solve of rows that are copied; for one of rows that are not, 3 to 10
           times an iteration.
Source     Mehrotra 1992, Gondzio 1996, and for SVMs Ferris and Munson 2002; screening
           by the margin of a sampled solution is this package's own.
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
    equal_rows,
    factor_work,
    few_rows,
    gram_work,
    grouping_work,
    without_duplicates,
)

_SAMPLE_TOL = 5e-2
# Inner gap of the first look at all rows, which ones are wrong, and of the next ones.
_FIRST_LOOK, _NEXT_LOOK = 0.1, 0.3
# Share of the rows that counts as near the margin: that many times the error of a
# margin that a sample of m rows leaves, (d/m)^0.5, within limits.
_NEAR, _LEAST_NEAR, _MOST_NEAR = 2.2, 0.13, 0.25
_PER_LOSING = 4  # or this many for each row that loses
_QUANTILE_ROWS = 20_000  # that this share is estimated from
_WARM = 0.05  # relative gap from which the last point is a better start than none
_PATIENCE = 3  # times as many rounds below that gap
_TRIED, _SHORT = 4, 0.2  # a step shorter than this so early: start anew
_SNAP = 1e-8
_ROUNDING = 1e-15
_IDLE = 30  # iterations without progress that make a solve stuck
_TINY = 1e-300


def sample_size(width: int, n: int, least: int) -> int:
    """How many of n rows are solved first."""
    return max(least, 40 * width, n // 25)


def near_share(problem: Problem, sample: int) -> float:
    """Share of the rows that is near the margin of the solution of a sample."""
    error = math.sqrt(problem.width / sample)
    return min(max(_NEAR * error, _LEAST_NEAR), _MOST_NEAR)


def iteration_work(problem: Problem, rows: float, correctors: float) -> float:
    """What one iteration over so many rows costs, in multiply-adds of a product.

    Counts only: the Gram matrix, 3 passes and 2 more per corrector, the element-wise
    work, the factor, and what a call costs.
    """
    entries = problem.rows.stored / problem.n + 1.0
    passes = (3.0 + 2.0 * correctors) * 0.8 * entries + 30.0 + 15.0 * correctors
    return rows * (gram_work(problem) + passes) + factor_work(problem) + 1e5


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
        them. From counts alone, so the same on every machine; unless rows are few the
        different ones are counted once for each `problem`, at 2 to 8 products.
    """
    d = problem.width
    few = few_rows(problem)  # they do not get harder, and equal ones are rare
    n = problem.n if few else equal_rows(problem)[0]
    product = n * (problem.rows.stored / problem.n + 1.0)
    digits = max(-math.log10(tol), 1.0)
    # How much harder than C = 1 on rows of norm 1, at most a million times.
    hard = float(
        np.clip(math.log10(float((problem.cost * problem.q).mean()) + 1e-300), 0.0, 6.0)
    )
    # Equal rows are a sign of discrete features, and those of degenerate solutions.
    degenerate = 1.0 + 3.0 * (1.0 - n / problem.n)
    iterations = 4.0 + 2.0 * digits + (0.0 if few else 1.5 * hard**2)
    iterations *= degenerate
    sample = sample_size(d, n, InteriorPoint.sample)
    work = grouping_work(problem) + 10.0 * product
    if 2 * sample > n:
        return work + (6.0 + iterations) * iteration_work(problem, n, 2.0)
    return (
        work
        + (8.0 + 2.0 * hard) * iteration_work(problem, sample, 2.0)
        + iterations
        * iteration_work(problem, (near_share(problem, sample) + 0.02) * n, 2.0)
    )


@dataclass(kw_only=True)
class InteriorState(SomeRowsState):
    """The best point over all rows, and the rows that are being solved."""

    alpha: Vector | None  # None: w is of a sample
    margins: Vector  # of the last w that all rows were looked at with
    near: NDArray[np.bool_]
    losing: NDArray[np.bool_]  # rows with a loss at the best w that was looked at
    least_primal: float = math.inf  # of that w
    reach: float = math.inf  # of the near rows from the margin
    warm: bool = False  # `inner` started from a solution, not far inside
    sampling: bool = False
    everything: bool = False
    rounds: int = 0
    iterations: int = 0  # of `inner`
    least: float = math.inf  # gap of `inner`
    idle: int = 0  # iterations in a row that did not lower it
    look: float = math.inf  # inner gap at which to look at all rows again

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    def count_iteration(self) -> None:
        self.epochs += 1
        self.iterations += 1
        rows, correctors = len(self.members), self.inner.correctors
        self.updates += rows
        self.spend(iteration_work(self.problem, rows, correctors))

    def look_at_all_rows(self, w: Vector, stop: Any) -> bool:
        """The margins at w; False: told to leave."""
        problem, done = self.problem, 0
        self.spend(3.0 * problem.n)  # what the margins are then used for
        for block in problem.blocks():
            done += core.outputs(
                block.rows, problem.y[block.span], w, self.margins[block.span],
                problem.threads, stop,
            )  # fmt: skip
            if done < block.span.stop:
                break
        self.visited += done
        return done == problem.n

    def primal_of(self, w: Vector) -> float:
        """P of the w that was looked at last."""
        problem = self.problem
        loss = core.total_loss(self.margins, problem.cost, problem.core_loss)
        return 0.5 * problem.squared_norm(w) + loss

    @property
    def knee(self) -> float:
        """How far below 1 the margin is from which a dual is at its bound."""
        loss = self.problem.loss
        return loss.slope * loss.curvature if loss.curvature > 0.0 else 0.0

    def distance(self) -> Vector:
        """From the margins to where a dual is between its bounds."""
        return np.maximum(self.margins - 1.0, 1.0 - self.knee - self.margins)

    def wrong_side(self) -> NDArray[np.bool_]:
        """Frozen rows whose margin asks for another value of their dual."""
        at_upper = self.margins > 1.0 - self.knee
        return ~self.near & np.where(self.full > 0.0, at_upper, self.margins < 1.0)

    def dual_point(self) -> Vector:
        """The duals of all rows; within rounding of a bound, at it."""
        alpha = self.full.copy()
        problem, near = self.problem, self.inner.alpha
        upper = problem.loss.upper(problem.cost[self.members])
        # Beside 1e-8 U, less than what the sum of all of them can do without.
        hair = np.minimum(_SNAP * upper, 1e-11 * float(near.mean()))
        near[near < hair] = 0.0
        alpha[self.members] = np.where(upper - near < hair, upper, near)
        return alpha


@dataclass(frozen=True)
class InteriorPoint(FewFeatures):
    """Primal-dual interior point over sampled, screened and at last all rows.

    Parameters
    ----------
    max_features : int, default=2500
        Refuse problems with more; a matrix of `max_features` squared is held, 12 bytes
        an entry, for each thread.
    sample : int, default=4000
        Fewest rows in the sample.
    rounds : int, default=4
        Solves of screened rows before all rows are solved together; three times as
        many while the gap over all rows is below 5 %.
    """

    sample: int = 4000
    rounds: int = 4

    name: ClassVar[str] = "interior-point"

    def __post_init__(self) -> None:
        for name in ("max_features", "sample", "rounds"):
            check_count(name, getattr(self, name))

    def start(self, problem: Problem, rng: Any, warm: Vector | None) -> InteriorState:
        whole, group = problem, None
        if not whole.streamed:
            problem, group = without_duplicates(whole)
        zero = np.zeros(problem.n)
        w = problem.combine(zero)  # 0, and the best bias for it
        state = InteriorState(
            problem,
            rng,
            new_order(0),  # the rows are taken as they lie
            whole=whole,
            group=group,
            w=w,
            alpha=zero,
            margins=np.zeros(problem.n),
            members=np.empty(0, dtype=np.uint32),
            near=np.zeros(problem.n, dtype=np.bool_),
            full=np.zeros(problem.n),
            losing=np.zeros(problem.n, dtype=np.bool_),
        )
        if not whole.streamed:
            state.spend(grouping_work(whole))
        return state

    def step(self, state: InteriorState, stop: Any) -> None:
        if state.inner is None:
            self._begin(state, stop)
        if state.inner is None:
            return
        _, blas = algebra()
        make_room_for(state.problem.threads.size, BLAS)
        with blas.limit(limits=1):
            outcome = state.inner.iterate(stop)
        if outcome == LEFT:
            return
        state.count_iteration()
        inner = state.inner
        gap = state.relative_gap
        if state.warm and state.iterations <= _TRIED and inner.length < _SHORT:
            # From a poor point the way is longer than from none.
            state.warm = False
            self._start(state, None, 0.0, stop)
            return
        if gap < 0.9 * state.least:
            state.least, state.idle = gap, 0
        else:
            state.idle += 1
        stuck = outcome == SINGULAR or state.idle >= _IDLE or not math.isfinite(gap)
        if state.sampling:
            if gap <= _SAMPLE_TOL or stuck:
                self._screen(state, stop, stuck)
        elif gap <= state.look or stuck:
            self._verify(state, stop, gap, stuck)

    def _begin(self, state: InteriorState, stop: Any) -> None:
        """Solve a sample of the rows first, if that is much less."""
        problem = state.problem
        n, m = problem.n, sample_size(problem.width, problem.n, self.sample)
        if 2 * m > n or not state.fits(m):
            self._solve_all(state, stop)
            return
        state.members, cost = draw_sample(problem.y, problem.cost, m, state.rng)
        state.sampling = True
        self._solve(state, cost, np.zeros(problem.width), 0.0)
        self._start(state, None, 0.0, stop)

    def _screen(self, state: InteriorState, stop: Any, stuck: bool) -> None:
        """From the solution of the sample: which rows are near the margin."""
        problem = state.problem
        w = state.inner.w
        if stuck or not np.isfinite(w).all():
            self._solve_all(state, stop)
            return
        state.w, state.alpha = w, None
        if not state.look_at_all_rows(w, stop):
            return
        distance = state.distance()
        state.losing = state.margins < 1.0
        state.least_primal = state.primal_of(w)
        losing = int(np.count_nonzero(state.losing))
        most = near_share(problem, len(state.members))
        share = (_PER_LOSING * losing + 20 * problem.width) / problem.n
        if share < most:  # few lose: none of them needs to be frozen
            distance[state.losing] = 0.0
        some = distance[:: max(1, problem.n // _QUANTILE_ROWS)]
        state.reach = max(float(np.quantile(some, min(share, most))), 0.0)
        state.near = (distance <= state.reach) & (problem.cost > 0.0)
        state.sampling = False
        self._solve_near(state, w, len(state.members) >= 100 * problem.width, stop)

    def _solve_near(
        self, state: InteriorState, w: Vector, warm: bool, stop: Any
    ) -> None:
        """Freeze the rows that are not near at the bound of their side of w."""
        problem, near = state.problem, state.near
        if not state.fits(int(np.count_nonzero(near))):
            self._solve_all(state, stop)
            return
        state.rounds += 1
        state.members = np.flatnonzero(near).astype(np.uint32)
        state.full = np.where(state.losing & ~near, problem.upper, 0.0)
        fixed = problem.weighted_sum(state.full)
        constant = problem.dual_value(state.full, 0.0)
        self._solve(state, problem.cost[state.members], fixed, constant)
        state.warm = warm
        if warm:
            mean = float(problem.cost[state.members].mean())
            self._start(state, w, max(mean * state.reach / 4, _TINY), stop)
        else:
            self._start(state, None, 0.0, stop)

    def _solve_all(self, state: InteriorState, stop: Any) -> None:
        problem = state.problem
        state.sampling, state.everything, state.warm = False, True, False
        state.members = np.flatnonzero(problem.cost > 0.0).astype(np.uint32)
        state.full = np.zeros(problem.n)
        self._solve(state, problem.cost[state.members], np.zeros(problem.width), 0.0)
        self._start(state, None, 0.0, stop)

    def _start(
        self, state: InteriorState, w: Vector | None, mu: float, stop: Any
    ) -> None:
        """From w, or from 0; there is nothing to go on from if told to leave."""
        w = np.zeros(state.problem.width) if w is None else w
        if not state.inner.start(w, mu, stop):
            state.inner = None

    def _solve(
        self, state: InteriorState, cost: Vector, fixed: Vector, constant: float
    ) -> None:
        problem, members = state.problem, state.members
        state.spend(2.0 * len(members) * (problem.rows.stored / problem.n + 1.0))
        state.iterations = state.idle = 0
        state.least = math.inf
        state.look = _FIRST_LOOK
        state.inner = core.Interior(
            state.rows(), problem.y[members], cost, problem.core_loss,
            fixed, constant, float(problem.q[members].mean()), problem.free_bias,
            problem.threads, algebra()[0],
        )  # fmt: skip

    def _verify(self, state: InteriorState, stop: Any, gap: float, stuck: bool) -> None:
        """P and D over all rows; if frozen rows are what is wrong, free them."""
        problem, inner = state.problem, state.inner
        if not inner.refresh(stop):
            return
        w, primal, dual = inner.w, inner.primal, inner.dual
        frozen = 0.0  # what the frozen rows add to P: those on the wrong side
        if not state.everything:
            if not state.look_at_all_rows(w, stop):
                return
            frozen = state.primal_of(w) - primal
            if primal + frozen < state.least_primal:
                state.least_primal = primal + frozen
                state.losing = state.margins < 1.0
        if state.alpha is None or not state.gap <= primal + frozen - dual:
            state.w, state.primal, state.dual = w, primal + frozen, dual
            state.alpha = state.dual_point()
        # At rounding level the gap may be 0 or below: then every iteration looks.
        while state.look >= max(gap, _ROUNDING):
            state.look *= _NEXT_LOOK
        if state.everything:
            if stuck:  # what there is gets proved, and the fit ends
                state.primal = state.dual = math.nan
            return
        relative = (primal + frozen - dual) / max(primal + frozen, _TINY)
        close = state.gap < _WARM * state.primal
        most_rounds = self.rounds * (_PATIENCE if close else 1)
        if stuck or state.rounds > most_rounds:
            self._solve_all(state, stop)
        elif frozen > 0.5 * (primal - dual):
            distance = state.distance()
            state.reach *= 0.5
            used = problem.cost > 0.0
            wrong = np.flatnonzero(state.wrong_side() & used)
            most = len(state.members)
            if len(wrong) > most:  # w is poor: the worst, which will change it most
                amount = (problem.cost * np.abs(1.0 - state.margins))[wrong]
                wrong = wrong[np.argpartition(amount, len(wrong) - most)[-most:]]
            state.near[wrong] = True
            beside = (distance <= state.reach) & used & ~state.near
            if np.count_nonzero(beside) <= most:
                state.near |= beside
            self._solve_near(state, w, relative < _WARM, stop)

    def iterate(self, state: InteriorState) -> tuple[Vector, Vector | None]:
        alpha = state.alpha
        return state.w, None if alpha is None else state.spread(alpha)
