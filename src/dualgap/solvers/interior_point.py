"""Interior point: few features, any number of rows, any C.

Problem    min 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i), with its dual (losses.py)
Update     one Newton step on the primal-dual system of the active rows, those near the
           margin; the other rows are fixed at a bound (core/interior.hpp). A step has
           a predictor, a corrector and up to three more correctors on one d x d matrix.
           The active set is found as follows: merge equal rows; solve a sample,
           stratified by class; fix the rows far from its margin; solve the near ones;
           check all rows; add the rows on the wrong side, and solve again. After
           `rounds` of these, solve all rows together. Equal rows of a store are not
           merged. Its active rows are copied if they fit in its buffer, else read again
           in every pass.
Guarantee  gap -> 0; no bound on the iterations, but in practice a solve takes 10 to 60,
           whatever C is. The certificate is about all rows.
Cost       an iteration: the Gram matrix of the active rows, d^3/6, and the passes of 3
           to 9 products over these rows; a check of all rows: one product.
           8 d^2 bytes per thread (12 from 128 features on), 120 bytes per active row
           and a copy of those rows (all rows: no copy), 60 per row of the problem, and
           a copy of the distinct rows if many are equal. A store is read once for a
           check, twice for a solve of rows that are copied, and otherwise 3 to 10 times
           per iteration.
Source     Mehrotra 1992, Gondzio 1996, and for SVMs Ferris and Munson 2002; screening
           by the margin of a sampled solution is this package's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..checks import Count
from ..losses import Vector
from ..problems.base import Claim
from ..problems.binary import BinaryProblem
from .base import TINY, register
from .some_rows import (
    FewFeatures,
    Outcome,
    SomeRowsState,
    draw_sample,
    equal_rows,
    factor_work,
    few_rows,
    gram_work,
    grouping_work,
    iterations_of_epoch,
    lone_blas,
)


@dataclass(frozen=True)
class InteriorPointSettings:
    """Tuning constants of `InteriorPoint`."""

    #: Relative gap to which the sample is solved.
    sample_tol: float = 5e-2
    #: A sample misleads if P of its solution is over this many times P of w = 0.
    misleading: float = 1.1
    #: Gap over the active rows at which all rows are first checked.
    first_check: float = 0.1
    #: All rows are checked again once that gap has fallen by this factor.
    next_check: float = 0.3
    #: The share of rows near the margin is this times (d/m)^0.5, the error of a margin
    #: after a sample of m rows.
    near: float = 2.2
    #: Least share of rows near the margin.
    least_near: float = 0.13
    #: Largest share of rows near the margin.
    most_near: float = 0.25
    #: If few rows have a loss, this many rows for each of them are near instead.
    near_per_loss: int = 4
    #: Rows from which the distance of that share is estimated.
    quantile_rows: int = 20_000
    #: Relative gap below which the last point is a better start than the origin.
    warm_gap: float = 0.05
    #: Below that gap `rounds` counts this many times.
    patience: int = 3
    #: A warm start is dropped if a step is short within this many iterations.
    tried_iterations: int = 4
    #: Length below which a step is short.
    short_step: float = 0.2
    #: Duals within this share of U of a bound are set to the bound.
    snap: float = 1e-8
    #: Once the target is met, larger shares are tried, the largest first.
    snaps: tuple[float, ...] = (0.1, 1e-2, 1e-3, 1e-4, 1e-6)
    #: Relative gap that rounding hides.
    rounding: float = 1e-15
    #: Iterations in a row without progress after which a solve is stuck.
    most_idle: int = 30


SETTINGS = InteriorPointSettings()


def sample_size(width: int, n: int, least: int) -> int:
    """Return how many of n rows are solved first."""
    return max(least, 40 * width, n // 25)


def near_share(
    problem: BinaryProblem, sample: int, settings: InteriorPointSettings = SETTINGS
) -> float:
    """Return the share of rows taken as near the margin of the solution of a sample."""
    error = math.sqrt(problem.width / sample)
    return min(max(settings.near * error, settings.least_near), settings.most_near)


def iteration_work(problem: BinaryProblem, rows: float, correctors: float) -> float:
    """Return the cost of an iteration over `rows` rows, in multiply-adds of a product.

    It counts the Gram matrix, 3 passes and 2 more per corrector, the element-wise work,
    the factor, and the overhead of a call.
    """
    entries = problem.rows.stored / problem.n + 1.0
    passes = (3.0 + 2.0 * correctors) * 0.8 * entries + 30.0 + 15.0 * correctors
    return rows * (gram_work(problem) + passes) + factor_work(problem) + 1e5


def predicted_work(problem: BinaryProblem, tol: float) -> float:
    """Predict the cost of a whole fit; one product costs ``rows.stored + n``.

    `tol`: relative gap to reach. The work is in multiply-adds of a plain sequential
    product, as :attr:`State.work` counts them. It rests on counts alone, so it is the
    same on every machine. Unless rows are few, the distinct ones are counted once per
    `problem`, at 2 to 8 products.
    """
    d = problem.width
    few = few_rows(problem)  # hardness does not matter then, and few rows are equal
    n = problem.n if few else equal_rows(problem)[0]
    product = n * (problem.rows.stored / problem.n + 1.0)
    digits = max(-math.log10(tol), 1.0)
    # Hardness, relative to C = 1 on rows of norm 1: a digit for each factor of 10.
    hard = float(
        np.clip(math.log10(float((problem.cost * problem.q).mean()) + 1e-300), 0.0, 6.0)
    )
    # Equal rows suggest discrete features, which make solutions degenerate.
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
class InteriorPointState(SomeRowsState):
    """Best point over all rows, and the active rows."""

    #: None: w belongs to a sample.
    alpha: Vector | None = field(init=False)
    #: Of all rows at the last w that was checked.
    margins: Vector = field(init=False)
    near: NDArray[np.bool_] = field(init=False)  # the active rows
    #: Rows with a loss at the best w that was checked.
    losing: NDArray[np.bool_] = field(init=False)
    least_primal: float = math.inf  # P of that w
    reach: float = math.inf  # how far margins may be off: near rows are added within it
    warm: bool = False  # `inner` started from the last solution, not from the origin
    sampling: bool = False
    everything: bool = False  # all rows are solved together
    rounds: int = 0
    iterations: int = 0  # of `inner`
    least: float = math.inf  # least gap of `inner`
    idle: int = 0  # iterations in a row that did not lower it
    look: float = math.inf  # gap of `inner` at which all rows are checked again

    def __post_init__(self) -> None:
        super().__post_init__()
        self.alpha, self.margins = np.zeros((2, self.problem.n))
        self.near, self.losing = np.zeros((2, self.problem.n), dtype=np.bool_)

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    def count_epoch(self, iterations: int, correctors: int) -> None:
        self.epochs += 1
        self.iterations += iterations
        rows = len(self.members)
        self.updates += iterations * rows
        each = iteration_work(self.problem, rows, correctors / iterations)
        self.spend(iterations * each)

    def look_at_all_rows(self, w: Vector, stop: core.Stop) -> bool:
        """Compute all margins at w; return False on a stop request."""
        problem, done = self.problem, 0
        self.spend(3.0 * problem.n)  # the work that uses the margins
        for block in problem.blocks():
            y, out = problem.y[block.span], self.margins[block.span]
            done += core.outputs(block.rows, y, w, out, problem.threads, stop)
            if done < block.span.stop:
                break
        self.visited += done
        return done == problem.n

    def primal_of(self, w: Vector) -> float:
        """Return P at w, the point checked last."""
        problem = self.problem
        loss = core.total_loss(self.margins, problem.cost, problem.core_loss)
        return 0.5 * problem.squared_norm(w) + loss

    @property
    def knee(self) -> float:
        """Distance below 1 from which on a margin puts its dual at the bound."""
        loss = self.problem.loss
        return loss.slope * loss.curvature if loss.curvature > 0.0 else 0.0

    def distance(self) -> Vector:
        """Return the distance of all margins from those with a dual between bounds."""
        return np.maximum(self.margins - 1.0, 1.0 - self.knee - self.margins)

    def wrong_side(self) -> NDArray[np.bool_]:
        """Return the fixed rows whose margin contradicts their dual."""
        at_upper = self.margins > 1.0 - self.knee
        return ~self.near & np.where(self.full > 0.0, at_upper, self.margins < 1.0)

    def dual_point(self, snap: float) -> Vector:
        """Return the duals of all rows; those within `snap` U of a bound are at it."""
        problem, active = self.problem, self.inner.alpha
        cost = problem.cost[self.members]
        # Never move a dual by more than 1e-11 of the mean: their sum has to survive.
        most = 1e-11 * float(active.mean())
        alpha = self.full.copy()
        alpha[self.members] = core.snapped(active, cost, problem.core_loss, snap, most)
        return alpha

    def meets_target(self, dual: float | None = None) -> bool:
        """Whether the gap is at most `tol`, for another dual value if it is given."""
        dual = self.dual if dual is None else dual
        return self.primal - dual <= self.tol * dual

    def sparser(self, snaps: tuple[float, ...]) -> Vector | None:
        """Return duals that meet the target with more of them at their bounds.

        Iterates are inside the box: without this every row is a support vector.
        """
        problem, alpha = self.problem, self.alpha
        if alpha is None:
            return None
        mean = float(alpha.mean())
        for snap in snaps:
            some = core.snapped(
                alpha, problem.cost, problem.core_loss, snap, snap * mean
            )
            if problem.free_bias:
                some = problem.balance(some)
            norm = problem.squared_norm(problem.weighted_sum(some))
            self.visited += problem.n
            if self.meets_target(problem.dual_value(some, norm)):
                return some
        return alpha


@register("binary")
@dataclass(frozen=True)
class InteriorPoint(FewFeatures):
    """Primal-dual interior point over sampled, then screened, then all rows.

    Parameters
    ----------
    sample : int, default=4000
        Fewest rows in the sample.
    rounds : int, default=4
        Solves of screened rows before all rows are solved together, or three times as
        many while the gap over all rows is below 5 %.
    """

    sample: Count = 4000
    rounds: Count = 4

    name: ClassVar[str] = "interior-point"
    settings: ClassVar[InteriorPointSettings] = SETTINGS

    def start(
        self, problem: BinaryProblem, rng: core.Random, warm: Vector | None
    ) -> InteriorPointState:
        state = InteriorPointState.begin(problem, rng, not problem.streamed)
        if not problem.streamed:
            state.spend(grouping_work(problem))
        return state

    def step(self, state: InteriorPointState, stop: core.Stop) -> None:
        if state.inner is None:
            self._begin(state, stop)
        if state.inner is None:
            return
        # If all rows are solved together, an epoch goes on until the target is met.
        most = iterations_of_epoch(state.problem) if state.everything else 1
        outcome, made, correctors = state.inner.run(state.tol, most, stop)
        if outcome == Outcome.STOPPED:
            return
        state.count_epoch(max(made, 1), correctors)
        inner, settings = state.inner, self.settings
        gap = state.relative_gap
        early = state.iterations <= settings.tried_iterations
        lost = outcome == Outcome.SINGULAR or not math.isfinite(gap)
        if state.warm and early and (lost or inner.length < settings.short_step):
            # A poor point is farther from the solution than the origin.
            state.warm = False
            if not inner.start(np.zeros(inner.w.size), 0.0, stop):
                state.inner = None
            return
        if gap < 0.9 * state.least:
            state.least, state.idle = gap, 0
        else:
            state.idle += made
        stuck = lost or state.idle >= settings.most_idle
        if state.sampling:
            if gap <= settings.sample_tol or stuck:
                self._screen(state, stop, stuck)
        elif gap <= state.look or stuck:
            self._verify(state, stop, gap, stuck)

    def _begin(self, state: InteriorPointState, stop: core.Stop) -> None:
        """Solve a sample of the rows first, if it is much smaller."""
        problem = state.problem
        n, m = problem.n, sample_size(problem.width, problem.n, self.sample)
        if 2 * m > n or not state.fits(m):
            self._solve_all(state, stop)
            return
        state.members, cost = draw_sample(problem.y, problem.cost, m, state.rng)
        state.sampling = True
        self._solve(state, cost, None, stop)

    def _screen(self, state: InteriorPointState, stop: core.Stop, stuck: bool) -> None:
        """Find the rows near the margin of the solution of the sample."""
        problem, settings = state.problem, self.settings
        w = state.inner.w
        if stuck or not np.isfinite(w).all():
            self._solve_all(state, stop)
            return
        origin = state.w, state.alpha
        state.w, state.alpha = w, None
        if not state.look_at_all_rows(w, stop):
            return
        distance = state.distance()
        state.losing = state.margins < 1.0
        state.least_primal = state.primal_of(w)
        if not state.least_primal <= settings.misleading * state.primal:
            state.w, state.alpha = origin
            self._solve_all(state, stop)
            return
        losing = int(np.count_nonzero(state.losing))
        most = near_share(problem, len(state.members), settings)
        share = (settings.near_per_loss * losing + 20 * problem.width) / problem.n
        share = min(share, most)
        if share < most:  # few rows have a loss: keep all of them active
            distance[state.losing] = 0.0
        some = distance[:: max(1, problem.n // settings.quantile_rows)]
        # Rows between their bounds are near even if there are more of them.
        nearest = max(float(np.quantile(some, share)), 0.0)
        state.near = (distance <= nearest) & (problem.cost > 0.0)
        state.reach = float(np.quantile(np.abs(some), share))
        state.sampling = False
        self._solve_near(state, w, len(state.members) >= 100 * problem.width, stop)

    def _solve_near(
        self, state: InteriorPointState, w: Vector, warm: bool, stop: core.Stop
    ) -> None:
        """Solve the near rows; fix the others at the bound of their side of w."""
        problem, near = state.problem, state.near
        if math.isinf(problem.loss.slope):  # no bound at which to fix these rows
            near |= state.losing & (problem.cost > 0.0)
        if not state.fits(int(np.count_nonzero(near))):
            self._solve_all(state, stop)
            return
        state.rounds += 1
        state.members = np.flatnonzero(near).astype(np.uint32)
        state.full = np.where(state.losing & ~near, problem.upper, 0.0)
        self._solve(state, problem.cost[near], w if warm else None, stop)

    def _solve_all(self, state: InteriorPointState, stop: core.Stop) -> None:
        problem = state.problem
        state.sampling, state.everything = False, True
        state.members = np.flatnonzero(problem.cost > 0.0).astype(np.uint32)
        state.full = np.zeros(problem.n)
        self._solve(state, problem.cost[state.members], None, stop)

    def _solve(
        self, state: InteriorPointState, cost: Vector, w: Vector | None, stop: core.Stop
    ) -> None:
        """Start from w, or from 0; on a stop request there is no `inner`."""
        problem, members, full = state.problem, state.members, state.full
        state.spend(2.0 * len(members) * (problem.rows.stored / problem.n + 1.0))
        state.iterations = state.idle = 0
        state.least = math.inf
        state.look = self.settings.first_check
        fixed = problem.weighted_sum(full) if full.any() else np.zeros(problem.width)
        constant, y = problem.dual_value(full, 0.0), problem.y[members]
        inner = core.Interior(
            core.SomeRows(state.rows(), y, cost, fixed, constant),
            problem.core_loss,
            float(problem.q[members].mean()),
            problem.free_bias,
            problem.threads,
            lone_blas(state),
        )
        state.warm, mu = w is not None, 0.0
        if w is None:
            w = np.zeros(problem.width)
        else:  # s_i a_i of a row whose margin is off by `reach`, if a_i is right
            dual = float(cost.mean()) * float(problem.loss.derivative(1 - state.reach))
            mu = max(dual * state.reach / 4, TINY)
        state.inner = inner if inner.start(w, mu, stop) else None

    def _verify(
        self, state: InteriorPointState, stop: core.Stop, gap: float, stuck: bool
    ) -> None:
        """Compute P and D over all rows; add the fixed rows that are wrong."""
        problem, inner, settings = state.problem, state.inner, self.settings
        if not inner.refresh(stop):
            return
        w, primal, dual = inner.w, inner.primal, inner.dual
        excess = 0.0  # of P over all rows: the share of fixed rows on the wrong side
        if not state.everything:
            if not state.look_at_all_rows(w, stop):
                return
            excess = state.primal_of(w) - primal
            if primal + excess < state.least_primal:
                state.least_primal = primal + excess
                state.losing = state.margins < 1.0
        found = primal + excess - dual
        # Where numbers are not finite, the last point stays.
        known = state.alpha is not None and state.gap <= found
        if math.isfinite(found) and not known:
            state.w, state.primal, state.dual = w, primal + excess, dual
            state.alpha = state.dual_point(settings.snap)
        # At rounding level the gap may be 0 or below: then every iteration checks.
        while state.look >= max(gap, settings.rounding):
            state.look *= settings.next_check
        if state.everything:
            if stuck:  # the loop proves the point reached and ends the fit
                state.primal = state.dual = math.nan
            return
        relative = found / max(primal + excess, TINY)
        close = state.gap < settings.warm_gap * state.primal
        most_rounds = self.rounds * (settings.patience if close else 1)
        if stuck or state.rounds > most_rounds:
            self._solve_all(state, stop)
        elif excess > 0.5 * (primal - dual):
            distance = state.distance()
            state.reach *= 0.5
            used = problem.cost > 0.0
            wrong = np.flatnonzero(state.wrong_side() & used)
            most = len(state.members)
            if len(wrong) > most:  # w is poor: the worst rows will change it most
                amount = (problem.cost * np.abs(1.0 - state.margins))[wrong]
                wrong = wrong[np.argpartition(amount, len(wrong) - most)[-most:]]
            state.near[wrong] = True
            beside = (distance <= state.reach) & used & ~state.near
            if np.count_nonzero(beside) <= most:
                state.near |= beside
            self._solve_near(state, w, relative < settings.warm_gap, stop)

    def iterate(self, state: InteriorPointState) -> tuple[Vector, Vector | None]:
        alpha = state.alpha
        return state.w, None if alpha is None else state.spread(alpha)

    def claim(self, state: InteriorPointState) -> Claim:
        if state.meets_target() and not state.problem.streamed:
            state.alpha = state.sparser(self.settings.snaps)
        return super().claim(state)
