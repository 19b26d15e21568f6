"""Newton's method on a smoothed loss: for few features and any number of rows.

Problem    min 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i), with its dual (losses.py)
Update     H s = r, w <- w + t s with the Hessian of the loss smoothed by tau, exact for
           the rows within tau/2 of the margin (core/smoothing_newton.hpp). tau is
           reduced once smoothing accounts for too much of the gap: more than the
           target allows, and more than a step over a sample gains or, over all rows,
           than the rest of the gap.
           The steps run over samples first. Samples are stratified by class; each is
           four times as large as the one before and is solved to the accuracy with
           which it represents the whole. Then they run over all rows. If most rows are
           equal to others, equal rows are merged first. Shrinking removes rows that a
           few steps like the last one cannot move to the margin, until w has moved
           that far.
Guarantee  gap -> 0: every step goes downhill, finitely many solve the smoothed problem,
           and its minimiser has a gap of at most n tau/8 (max c_i). In practice 2 to 10
           steps over all rows reach 1e-2 or 1e-3.
Cost       a step: a product with the active rows and one with the rows of a_i > 0, the
           Gram matrix of the rows within tau/2 of the margin, and d^3/6.
           8 d^2 bytes per thread (12 from 128 features on), 70 bytes per row of the
           problem, and a copy of the active rows.
Source     Lee and Mangasarian, Comput. Optim. Appl. 20, 2001; Chapelle, Neural Comput.
           19, 2007; the dual point and the samples are this package's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..checks import Count
from ..losses import Vector
from ..problems.binary import BinaryProblem
from .base import new_order, register
from .some_rows import (
    FewFeatures,
    Outcome,
    SomeRowsState,
    distinct_share,
    draw_sample,
    factor_work,
    gram_work,
    grouping_work,
    iterations_of_epoch,
    lone_blas,
)


@dataclass(frozen=True)
class SmoothingNewtonSettings:
    """Tuning constants of `SmoothingNewton`."""

    #: First smoothing parameter tau.
    first_tau: float = 2.5
    #: The same from a model near the solution.
    near_tau: float = 0.15
    #: tau is divided by this at most at a time.
    tau_divisor: float = 4.0
    #: Share of the target gap that smoothing may account for.
    smoothing_share: float = 0.4
    #: tau is reduced only if smoothing exceeds its share by this factor.
    smoothing_slack: float = 1.3
    #: Each sample has this many times the rows of the one before.
    sample_growth: int = 4
    #: Fewest rows per feature in the first sample.
    sample_rows_per_feature: int = 10
    #: Largest gap to which a sample is solved.
    sample_tol: float = 0.05
    #: The objective of a sample of m rows has a relative error of about this times d/m.
    sample_error: float = 2.0
    #: Samples whose error is below this share of the target gap need no larger one.
    sample_enough: float = 0.2
    #: A sample is done once a step gains this share of the gap it is solved to.
    sample_decrement: float = 0.5
    #: Most steps over one sample.
    sample_steps: int = 15
    #: Rows are removed that stay inactive while w moves this many times the last step.
    active_radius: float = 4.0
    #: All rows are active again once less than this share of that radius is left.
    least_radius: float = 0.1
    #: Rows are removed only if at most this share of all rows stays active.
    active_share: float = 0.25
    #: With fewer rows than this none are removed: passes are short.
    shrinking_rows: int = 1000
    #: Every how many rows one is looked at to estimate that share.
    active_stride: int = 16
    #: Relative gain of a step that rounding hides.
    rounding: float = 1e-15
    #: Steps in a row without a visible gain after which the method is stuck.
    most_idle: int = 5

    @property
    def rules(self) -> core.NewtonRules:
        """The core's record of those that rule a run of steps."""
        return core.NewtonRules(
            self.smoothing_share,
            self.smoothing_slack,
            self.tau_divisor,
            self.rounding,
            self.most_idle,
            self.least_radius,
        )


def iteration_work(problem: BinaryProblem, rows: float, inside: float) -> float:
    """Return the cost of a step over `rows` rows, in multiply-adds of a product.

    It counts two products, the element-wise work, the Gram matrix of the rows inside
    the smoothed part of the loss, the factor, and the overhead of a call.
    """
    entries = problem.rows.stored / problem.n + 1.0
    passes = rows * (1.6 * entries + 15.0)
    return passes + inside * gram_work(problem) + factor_work(problem) + 5e4


def predicted_work(problem: BinaryProblem, tol: float) -> float:
    """Predict the cost of a whole fit; one product costs ``rows.stored + n``.

    `tol`: relative gap to reach. The work is in multiply-adds of a plain sequential
    product, as :attr:`State.work` counts them. It rests on counts alone, so it is the
    same on every machine. On the data sets of docs/benchmarks-linear.md it is right
    within a factor of two. On wide rows with the squared hinge it is up to five times
    too high, so that `dcd` may show first whether a plane separates them: see
    :func:`squared_hinge_work`.
    """
    d, digits = float(problem.width), max(-math.log10(tol), 1.0)
    n = problem.n * distinct_share(problem)
    # Hardness, relative to C = 0.1 on rows of norm 1, is the mean of c_i q_i.
    steepness = max(problem.steepness, 0.1)
    visits = 0.57 * d**0.336 * steepness**0.17 * 1.264**digits  # of every row
    steps = 3.1 * d**0.17 * steepness**0.155 * 1.33**digits
    product = problem.rows.stored + problem.n
    return (
        1.4 * iteration_work(problem, visits * n, (0.6 + 0.1 * visits) * n)
        + 1.4 * (steps - 1.0) * iteration_work(problem, 0.0, 0.0)
        + 11.0 * product
    )


def least_sample(problem: BinaryProblem, sample: int) -> int:
    """Return the fewest rows of a sample, `sample` or more."""
    return max(sample, SmoothingNewtonSettings.sample_rows_per_feature * problem.width)


def squared_hinge_work(problem: BinaryProblem) -> float:
    """Predict the cost of a whole fit with the squared hinge, as `predicted_work` does.

    That loss is smooth by itself, so the steps hardly grow with the costs and with the
    digits of the target gap. Samples save steps over all rows. On 21 data sets of 11
    to 785 columns this is right within a factor of three.
    """
    n = problem.n * distinct_share(problem)
    steepness = max(problem.steepness, 0.1)
    least = SmoothingNewtonSettings.sample_growth * least_sample(
        problem, SmoothingNewton.sample
    )
    inside = (0.3 if n >= least else 0.5) * steepness**0.2
    visits = 4.3 * float(problem.width) ** 0.2
    return (
        iteration_work(problem, visits * n, inside * n)
        + (1.2 * visits - 1.0) * iteration_work(problem, 0.0, 0.0)
        + 2.0 * (problem.rows.stored + problem.n)
    )


def needed_to_share(problem: BinaryProblem) -> str:
    """Return what a problem lacks to share passes with others; "" if nothing."""
    if problem.streamed or not problem.rows.dense:
        return "dense rows in memory"
    if problem.loss.name != "squared_hinge":
        return "loss='squared_hinge'"
    return "a penalised intercept" if problem.free_bias else ""


@dataclass(kw_only=True)
class SmoothingNewtonState(SomeRowsState):
    """Point, samples and active rows."""

    tau: float
    samples: list[tuple[NDArray[np.uint32], Vector]] | None = None  # still to come
    sample_tol: float = 0.0  # gap at which a sample is done
    steps: int = 0  # over this sample
    everything: bool = False  # the samples are done; this is about all rows
    radius: float = math.inf  # that w may move; infinite if all rows are active
    made: int = 0  # steps of this epoch
    inside: int = 0  # rows inside the smoothed part of the loss, over these steps


@register("binary")
@dataclass(frozen=True)
class SmoothingNewton(FewFeatures):
    """Newton's method on a smoothed loss, over growing samples and then all rows.

    Parameters
    ----------
    sample : int, default=2000
        Fewest rows in the first sample.
    passes : {"auto", "shared", "own"}, default="auto"
        Train several classes together over shared passes (``solvers/shared.py``), each
        by passes of its own, or in the way that is expected to cost less. Shared passes
        need dense rows, the squared hinge, and a penalised bias.
    """

    sample: Count = 2000
    passes: Literal["auto", "shared", "own"] = "auto"

    name: ClassVar[str] = "newton"
    settings: ClassVar[SmoothingNewtonSettings] = SmoothingNewtonSettings()

    def check(self, problem: BinaryProblem) -> None:
        super().check(problem)
        if self.passes == "shared" and (needs := needed_to_share(problem)):
            raise ValueError(
                f"passes='shared' of solver='newton' needs {needs}; use passes='auto'"
            )

    def start(
        self, problem: BinaryProblem, rng: core.Random, warm: Vector | None
    ) -> SmoothingNewtonState:
        merge, tau = distinct_share(problem) < 1.0, self.settings.first_tau
        state = SmoothingNewtonState.begin(problem, rng, merge, tau=tau)
        if state.group is not None:
            state.spend(grouping_work(problem))
        if problem.near is not None and not problem.free_bias:  # needs no samples
            state.w, state.samples = problem.near.copy(), []
            state.tau = self.settings.near_tau
        return state

    def step(self, state: SmoothingNewtonState, stop: core.Stop) -> None:
        problem, before = state.problem, state.updates
        state.made, state.inside = 0, 0
        while state.made < iterations_of_epoch(problem):
            if state.inner is None and not self._begin(state, stop):
                break
            if not self._iterate(state, stop):
                break
        if state.made > 0:
            state.epochs += 1
            work = iteration_work(problem, state.updates - before, state.inside)
            more = iteration_work(problem, 0.0, 0.0)  # of every iteration
            state.spend(work + (state.made - 1) * more)

    def _iterate(self, state: SmoothingNewtonState, stop: core.Stop) -> bool:
        """Make steps of Newton's method; return whether the epoch may go on."""
        inner, settings, whole = state.inner, self.settings, state.everything
        all_active = math.isinf(state.radius)
        shrinks = all_active and state.problem.n >= settings.shrinking_rows
        # A step over a sample, or over rows that may be removed, is looked at alone.
        one = shrinks or not whole
        most = 1 if one else iterations_of_epoch(state.problem) - state.made
        goal = state.tol if whole else state.sample_tol
        run = inner.run(goal, whole, state.radius, most, settings.rules, stop)
        rows = len(state.members)
        state.made += run.steps
        state.inside += run.inside
        state.updates += run.steps * rows
        state.visited += run.sharpened * rows
        if run.outcome == Outcome.STOPPED:
            return False
        state.w, state.tau = inner.w, inner.tau
        gap = state.relative_gap
        if not whole:
            state.steps += 1
            enough = settings.sample_decrement * state.sample_tol
            near = inner.decrement <= enough * inner.primal
            most_smoothing = settings.smoothing_share * goal * abs(inner.primal)
            sharp = inner.smoothing <= settings.smoothing_slack * most_smoothing
            if (near and sharp) or run.stuck or state.steps >= settings.sample_steps:
                state.inner = None
            return False
        state.primal, state.dual = inner.primal, inner.dual
        if run.stuck:  # the loop proves the point reached and ends the fit
            state.primal = state.dual = math.nan
        elif run.far:
            state.inner = None
        elif shrinks and gap > 2.0 * state.tol:
            self._shrink(state, stop)
        return not run.stuck and gap > state.tol

    def _begin(self, state: SmoothingNewtonState, stop: core.Stop) -> bool:
        """Take up the next sample, or all rows; return False on a stop request."""
        problem = state.problem
        state.full = np.zeros(problem.n)
        if state.samples is None:
            state.samples = self._draw(state)
        if state.samples:
            state.members, cost = state.samples.pop()
            state.steps = 0
            error = self._error(problem, len(state.members))
            loose = min(self.settings.sample_tol, error)
            state.sample_tol = max(state.tol, loose)
        else:
            state.members, cost = new_order(problem.n), problem.cost
            if not cost.min() > 0.0:
                state.members = np.flatnonzero(cost > 0.0).astype(np.uint32)
                cost = cost[state.members]
            state.everything = True
        state.radius = math.inf
        return self._solve(state, cost, np.zeros(problem.width), 0.0, stop)

    def _error(self, problem: BinaryProblem, m: float) -> float:
        """Estimate the relative error of the objective of a sample of m rows."""
        return self.settings.sample_error * problem.width / m

    def _draw(
        self, state: SmoothingNewtonState
    ) -> list[tuple[NDArray[np.uint32], Vector]]:
        """Draw the samples, each from the one before; return the largest one first."""
        problem, settings = state.problem, self.settings
        growth = settings.sample_growth
        least = least_sample(problem, self.sample)
        samples = []
        members, cost = new_order(problem.n), problem.cost
        m, enough = problem.n / growth, settings.sample_enough * state.tol
        while m / growth >= least and self._error(problem, m / growth) <= enough:
            m /= growth  # the smaller sample is accurate enough
        while m >= least:
            chosen, cost = draw_sample(problem.y[members], cost, int(m), state.rng)
            members = members[chosen]
            if state.fits(len(members)):
                samples.append((members, cost))
            m /= growth
        return samples

    def _solve(
        self,
        state: SmoothingNewtonState,
        cost: Vector,
        fixed: Vector,
        constant: float,
        stop: core.Stop,
    ) -> bool:
        problem, members = state.problem, state.members
        state.spend(2.0 * len(members) * (problem.rows.stored / problem.n + 1.0))
        y = problem.y if len(members) == problem.n else problem.y[members]
        inner = core.SmoothingNewton(
            core.SomeRows(state.rows(), y, cost, fixed, constant),
            problem.core_loss,
            problem.free_bias,
            problem.threads,
            lone_blas(state),
        )
        if not inner.start(state.w, state.tau, stop):
            return False
        state.inner = inner
        return True

    def _shrink(self, state: SmoothingNewtonState, stop: core.Stop) -> None:
        """Remove the rows that a few more steps like the last cannot make active."""
        problem, inner, settings = state.problem, state.inner, self.settings
        most = settings.active_share
        if inner.inside > most * problem.n:
            return
        radius = settings.active_radius * inner.moved
        margins = inner.margins
        if len(margins) < problem.n:  # rows of weight 0 are never active
            margins, members = np.zeros(problem.n), margins
            margins[state.members] = members
        # Duals are between their bounds where -tau/2 < u < slope curvature + tau/2.
        loss, half = problem.loss, 0.5 * inner.tau
        finite = math.isfinite(loss.slope)
        knee = loss.slope * loss.curvature if finite else math.inf

        def near_of(some: slice) -> NDArray[np.bool_]:
            u = 1.0 - margins[some]
            distance = np.maximum(-half - u, u - (knee + half))
            near = distance < radius * np.sqrt(problem.q[some])
            return near & (problem.cost[some] > 0.0)

        if np.mean(near_of(slice(None, None, settings.active_stride))) > most:
            return
        near = near_of(slice(None))
        count = int(np.count_nonzero(near))
        if count == 0 or count > most * problem.n or not state.fits(count):
            return
        state.full = np.where(near | (margins >= 1.0), 0.0, problem.upper)
        fixed = problem.weighted_sum(state.full)
        constant = problem.dual_value(state.full, 0.0)
        state.members = np.flatnonzero(near).astype(np.uint32)
        state.spend(10.0 * problem.n)
        state.radius = radius
        cost = problem.cost[state.members]
        state.inner = None
        self._solve(state, cost, fixed, constant, stop)

    def iterate(self, state: SmoothingNewtonState) -> tuple[Vector, Vector | None]:
        if not state.everything or state.inner is None:
            return state.w, None
        alpha = state.inner.alpha
        if len(alpha) < state.problem.n:
            alpha, members = state.full.copy(), alpha
            alpha[state.members] = members
        return state.w, state.spread(alpha)
