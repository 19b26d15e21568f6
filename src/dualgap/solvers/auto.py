"""`auto`: dual coordinate descent or Newton's method, by their predicted cost.

Problem    min 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i), as for `dcd` and `newton`
Update     the update of the method that runs. :func:`choose` decides which method
           begins, and :class:`Auto` runs it and changes over when predictions say so.
           All costs are counted in passes over the data, from stored entries and never
           from a clock: the same problem and seed give the same choices.
           1. :func:`expected_cost` predicts the passes of `dcd` from the mean of
              c_i q_i, the digits of `tol` and the share of rows that stay active. If
              they exceed the passes of Newton's method by the factor `margin`, that
              method begins, unless :func:`settles` sees on samples that a plane nearly
              separates the classes. If the rows are few (`few_rows`), interior point
              replaces Newton's method, which then takes many steps. If the rows are so
              few that some plane separates any labels, `dcd` begins in any case.
              Otherwise the method of the fewest passes begins where a pass takes no
              longer than its call: Newton's with the squared hinge or a large mean of
              c_i q_i, else interior point.
           2. Otherwise `dcd` begins. Once it has spent `share` of the cost of its
              successor, and whenever that doubles, :func:`remaining` extrapolates
              its gap. If the successor, started cold, is predicted to need fewer
              passes, it takes over.
           3. With the squared hinge, the third epoch of `dcd` tells more: rows that a
              plane nearly separates sleep by then, and rows of overlapping classes do
              not. :func:`measured_cost` predicts `dcd` from that share. Newton's method
              takes over if `dcd` needs `overlap_margin` times the passes that it does.
           4. Newton's method is compared with interior point as in 2, from
              twice the cost of interior point on: that cost hardly depends on how
              hard the problem is. A method that breaks down while it aims at less than
              `tol` begins again, without that aim. If it breaks down for good, another
              one takes over: interior point, then Newton's method, then `dcd`.
           `dcd` runs alone beyond `SmoothingNewton.max_features` columns, and on a
           store that is read block by block.
Guarantee  the guarantee of the method that ends the fit
Cost       where the predictions hold, at most 1.6 times the best of the three
Source     measured crossovers, docs/benchmarks-linear.md
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from .. import core
from ..losses import Vector
from ..problems.base import Claim
from ..problems.binary import BinaryProblem
from . import interior_point, smoothing_newton
from .base import Solver, State, register
from .dcd import DCD, DCDState, cost
from .interior_point import InteriorPoint
from .smoothing_newton import SmoothingNewton
from .some_rows import few_rows, some_of

logger = logging.getLogger("dualgap")


@dataclass(frozen=True)
class AutoSettings:
    """Tuning constants of `auto`."""

    #: The successor begins if `dcd` is predicted to need this many times its passes.
    margin: float = 1.4
    #: Interior point takes this many times the passes that its counts say.
    interior_factor: float = 1.3
    #: Up to this many rows per feature a plane is likely to separate any labels (Cover
    #: 1965): duals then stay below their bounds, and `dcd` hardly slows down with C.
    separable_rows: float = 2.0
    #: Rows times features up to which a pass takes about as long as its call.
    few_entries: int = 15_000
    #: Mean of c_i q_i beyond which interior point leaves most duals inside their box.
    steep: float = 4000.0
    #: A method makes this many epochs before it is compared with its successor.
    least_epochs: int = 3
    #: With the squared hinge, Newton's method takes over after `least_epochs` if `dcd`
    #: is then predicted to need this many times its passes.
    overlap_margin: float = 2.2
    #: `dcd` is first compared after this share of the passes of its successor.
    share: float = 0.3
    #: Newton's method gains most in its last steps, so it is first compared after this
    #: many times the passes of interior point.
    patience: float = 2.0
    #: Epochs of Newton's method where another method broke down, before `dcd` goes on.
    last_epochs: int = 200
    #: No work is free if this many epochs alone read more than `free_work` entries.
    free_epochs: int = 20
    #: Rows that are sampled to see whether a class surrounds the origin.
    class_sample: int = 1000
    #: A class surrounds the origin if this share of it scores <= 0 against its mean.
    surrounding: float = 0.25
    #: `settles` samples every row of this distance; half the sample takes twice that.
    settling_stride: int = 8
    #: Epochs of `dcd` on such a sample.
    settling_epochs: int = 4
    #: Passes of Newton's method from which on a sample is cheap beside them.
    settling_passes: float = 16.0
    #: With more active rows per feature in the smaller sample the classes overlap.
    settling_rows: float = 8.0
    #: So they do if these are more than this share of the sample, after two epochs.
    settling_share: float = 0.5
    #: The active rows of overlapping classes grow by more when the sample doubles.
    settling_growth: float = 1.25


SETTINGS = AutoSettings()


# ----------------------------------------------------------------------- the policy


@dataclass(frozen=True)
class SolverPlan:
    """Choice of the solver that begins."""

    solver: Solver
    #: One line for the log.
    reason: str
    #: Passes over the data that `solver` is predicted to need; NaN if it has no
    #: alternative.
    passes: float = math.nan
    #: Passes of the solver that may take over; None if there is none to compare with.
    successor_passes: float | None = None
    #: Whether `dcd` begins because :func:`settles` says so.
    settled: bool = False


def choose(
    problem: BinaryProblem,
    tol: float,
    *,
    goal: float | None = None,
    warm_started: bool = False,
    settings: AutoSettings = SETTINGS,
) -> SolverPlan:
    """Choose the solver that begins, from counts alone.

    - `tol`: relative gap to prove.
    - `goal`: smaller gap that the fit aims at while its work is free.
    - `warm_started`: whether duals are given. Only `dcd` can use them, so it begins.
    """
    if problem.streamed:
        return SolverPlan(DCD(), "it reads the store block by block")
    if problem.width > SmoothingNewton().max_features:
        return SolverPlan(DCD(), f"{problem.d} features are too many for newton")
    separable = problem.n <= settings.separable_rows * problem.width
    short = problem.n * problem.width <= settings.few_entries
    if short and not (warm_started or separable):
        smooth = math.isinf(problem.loss.slope)
        steep = problem.steepness > settings.steep
        reason = "passes are so short that only their number counts"
        if not (smooth or steep):
            return SolverPlan(InteriorPoint(), reason)  # nothing takes over from it
        passes = predicted_passes(SmoothingNewton(), problem, tol, settings)
        return SolverPlan(SmoothingNewton(), reason, passes)
    other = successor(DCD(), problem)
    passes = predicted_passes(DCD(), problem, tol, settings)
    other_passes = predicted_passes(other, problem, tol, settings)
    slow = passes >= settings.margin * other_passes
    if goal is not None and goal < tol and not slow:
        slow = predicted_passes(
            DCD(), problem, goal, settings
        ) >= settings.margin * predicted_passes(other, problem, goal, settings)
    settled = False
    if slow and not (warm_started or separable):
        settled = (
            isinstance(other, SmoothingNewton)
            and other_passes >= settings.settling_passes
            and settles(problem, settings)
        )
    if slow and not (warm_started or separable or settled):
        reason = _expectation(other_passes, DCD(), passes)
        return SolverPlan(other, reason, other_passes)
    reason = _expectation(passes, other, other_passes)
    return SolverPlan(DCD(), reason, passes, other_passes, settled)


def begins_with_duals(problem: BinaryProblem, tol: float) -> bool:
    """Whether a cold fit begins with `dcd`, the method that can start from duals."""
    return isinstance(choose(problem, tol).solver, DCD)


def successor(solver: Solver, problem: BinaryProblem) -> Solver:
    """Return the solver that may take over from another one."""
    if isinstance(solver, DCD) and not few_rows(problem):
        return SmoothingNewton()
    return InteriorPoint()


def predicted_passes(
    solver: Solver,
    problem: BinaryProblem,
    tol: float,
    settings: AutoSettings = SETTINGS,
) -> float:
    """Return how many passes over the data a whole fit is expected to need."""
    if isinstance(solver, DCD):
        return expected_cost(problem, tol, settings)
    product = int(problem.rows.stored) + problem.n
    if isinstance(solver, SmoothingNewton):
        return smoothing_newton.predicted_work(problem, tol) / product
    work = interior_point.predicted_work(problem, tol)
    return settings.interior_factor * work / product


def expected_cost(
    problem: BinaryProblem, tol: float, settings: AutoSettings = SETTINGS
) -> float:
    """Return the passes over the data that `dcd` may need for a gap of `tol`.

    Epochs grow with the mean of c_i q_i. Epochs with many updates cost more than a
    pass. If there are fewer rows than features, few rows share a feature.
    """
    factor = growth(-math.log10(tol))
    return _passes(problem, tol, active_share(problem, settings), factor)


def measured_cost(problem: BinaryProblem, tol: float, active: float) -> float:
    """Return the passes of `dcd` with the squared hinge, from the share of active rows.

    Its dual is strongly concave, so that every digit costs about as much as the last.
    """
    factor = 1.0 + 0.33 * max(-math.log10(tol) - 2.0, 0.0)
    return _passes(problem, tol, active, factor)


def _passes(problem: BinaryProblem, tol: float, active: float, factor: float) -> float:
    rows = problem.rows.stored / problem.n
    digits = -math.log10(tol)
    easy = 3.0 + 1.5 * max(digits - 2.0, 0.0)  # where the regulariser dominates
    meet = min(problem.n / problem.width, 1.0)
    epochs = easy + 5.0 * active * meet * problem.steepness**0.85 * factor
    return epochs * (60.0 + 2.0 * rows) / (rows + 1.0)


def growth(digits: float) -> float:
    """Return the cost of a gap of 10^-digits to `dcd`, relative to a gap of 1e-2."""
    return 1.0 + 0.4 * max(digits - 2.0, 0.0) ** 2


def active_share(problem: BinaryProblem, settings: AutoSettings = SETTINGS) -> float:
    """Estimate the share of rows that shrinking leaves active.

    With equal weights on both sides of the margin, hardly more rows than twice the
    smaller class stay active: the rest of the large class lies beyond the margin. This
    fails for a class that surrounds the origin, where no w moves it beyond the margin,
    unless a free bias does.
    """
    share = float(problem.cost[problem.y > 0].sum()) / float(problem.cost.sum())
    active = 4.0 * min(share, 1.0 - share)
    if active >= 1.0 or problem.free_bias:
        return min(active, 1.0)
    step = max(problem.n // settings.class_sample, 1)
    some = np.arange(0, problem.n, step, dtype=np.uint32)
    some = some[problem.y[some] == (1 if share > 0.5 else -1)]
    rows = core.chosen_rows(problem.rows, some, problem.intercept_scaling)
    y, mean, margins = problem.y[some], np.zeros(problem.width), np.empty(len(some))
    core.combine(rows, y, np.ones(len(some)), mean, problem.threads)
    core.outputs(rows, y, mean, margins, problem.threads, core.Stop())
    beyond = np.count_nonzero(margins <= 0.0)
    return 1.0 if beyond > settings.surrounding * len(some) else active


def settles(problem: BinaryProblem, settings: AutoSettings = SETTINGS) -> bool:
    """Whether hardly more rows stay active if there are twice as many of them.

    If a plane nearly separates the classes, about as many rows as there are features
    stay active, however many rows there are, and `dcd` soon skips all others. Of
    overlapping classes, a fixed share stays active. A few epochs on samples tell.
    """
    if not math.isinf(problem.loss.slope):
        return False
    active: list[int] = []
    most = settings.settling_rows * problem.width
    for stride in (2 * settings.settling_stride, settings.settling_stride):
        part = some_of(problem, np.arange(0, problem.n, stride, dtype=np.uint32))
        solver = DCD()
        state = solver.start(part, core.Random(0), None)
        many = max(most, settings.settling_share * part.n)
        for epoch in range(settings.settling_epochs):
            solver.step(state, core.Stop())
            if epoch > 0 and not active and state.last_visited > many:
                return False
        active.append(state.last_visited)
        if active[0] > most:
            return False
    return active[1] <= settings.settling_growth * active[0]


def remaining(trace: list[tuple[float, float]], tol: float) -> float:
    """Predict the cost until the gap is `tol` from the cost and the gap so far.

    A line through log(gap) over the later half of the trace gives the price of a digit.
    Every further digit costs more than the one before, because the rows that are still
    undecided are the hard ones. The result is this or the usual growth, if larger.

    Returns 0 if the gap is met already, infinite if it does not fall.
    """
    if len(trace) < 2:
        return math.inf
    cost, gap = np.array(trace[min(len(trace) // 2, len(trace) - 2) :]).T
    slope, level = np.polyfit(cost - cost[-1], gap, 1)
    digits = level - math.log10(tol)
    if digits <= 0.0:
        return 0.0
    if slope >= 0.0:
        return math.inf
    left = digits * (1.0 + digits / 2.0) / -slope
    if level <= -2.0:  # before, a gap says little about the next digits
        usual = growth(-math.log10(tol)) / growth(-level) - 1.0
        left = max(left, trace[-1][0] * usual)
    return float(left)


def _expectation(passes: float, other: Solver, other_passes: float) -> str:
    return (
        f"about {passes:.0f} passes over the data expected; {other.name} would need "
        f"about {other_passes:.0f}"
    )


# ----------------------------------------------------------------------- the switch


@dataclass(kw_only=True)
class AutoState(State):
    """State of the running method, and what the next comparison needs."""

    engine: Solver  # the running method
    inner: State  # its state
    #: Whether duals were given to start from.
    warm_started: bool
    #: `dcd` and its state, once another method has taken over from it.
    dcd: tuple[Solver, State] | None = None
    #: Predicted passes of the successor; None: not predicted yet.
    other: float | None = None
    #: Passes of the running method so far.
    spent: float = 0.0
    #: Passes after which it is next compared with its successor; None: never.
    retest: float | None = None
    #: Whether `dcd` began because few rows stay active.
    settled: bool = False
    #: Whether a method broke down while it aimed at less than `tol`.
    eased: bool = False
    #: Names of the methods that have broken down.
    broken: list[str] = field(default_factory=list)
    #: Passes of the running method and log10 of its relative gap, after each epoch.
    trace: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.base = (0, 0, 0)  # epochs, updates, visited of the methods before
        self.method = self.engine.name

    @property
    def product(self) -> int:
        """Multiply-adds of one pass over the data, the unit of all costs here."""
        return int(self.problem.rows.stored) + self.problem.n

    @property
    def work(self) -> float:
        # The overhead of an epoch counts where few rows are active.
        return super().work + Auto.epoch_work * self.epochs

    def finite(self) -> bool:
        # A method that has not begun has no values yet.
        return self.inner.epochs == 0 or self.inner.finite()

    def run(self, engine: Solver, inner: State) -> None:
        """Make another method the running one."""
        self.base = (
            self.epochs - inner.epochs,
            self.updates - inner.updates,
            self.visited - inner.visited,
        )
        self.engine, self.inner, self.method = engine, inner, engine.name
        self.trace, self.spent = [], 0.0
        inner.stop, inner.resources = self.stop, self.resources
        self.other = self.retest = None

    def follow(self) -> None:
        """Copy the counters of the running method."""
        inner, (epochs, updates, visited) = self.inner, self.base
        self.epochs = epochs + inner.epochs
        self.updates = updates + inner.updates
        self.visited = visited + inner.visited
        work = cost(inner) if isinstance(inner, DCDState) else inner.work
        self.spent = work / self.product


@register("binary")
@dataclass(frozen=True)
class Auto(Solver):
    """The fastest certified solver for the problem at hand: `dcd` or `newton`.

    The choice rests on counts of operations and is reviewed as the fit goes on. The
    history of the fit holds the method and the prediction of every pass, and the log
    gives the reason.

    Problems of some ten rows cost less to solve to rounding level than to set up.
    `tol` ends the fit only after `free_work` entries of rows and of w are read, less a
    few epochs' worth: the smallest models do not depend on the order of their rows.
    """

    name: ClassVar[str] = "auto"
    settings: ClassVar[AutoSettings] = SETTINGS
    resumes: ClassVar[bool] = True
    dual: ClassVar[bool] = True
    free_work: ClassVar[float] = 5e5
    #: What an epoch costs besides its visits, in stored entries.
    epoch_work: ClassVar[float] = 2000.0
    monotone = True
    free_bias = True
    streams = True

    def resumable(self, state: AutoState) -> bool:
        # The other methods take few steps: a fit that they end is resumed before them.
        return isinstance(state.inner, DCDState) and state.dcd is None

    def start(
        self, problem: BinaryProblem, rng: core.Random, warm: Vector | None
    ) -> AutoState:
        dcd = DCD()
        return AutoState(
            problem, rng, engine=dcd,
            inner=dcd.start(problem, rng, warm), warm_started=warm is not None,
        )  # fmt: skip

    def step(self, state: AutoState, stop: core.Stop) -> None:
        if state.epochs == 0:
            self._begin(state)
        state.inner.pause = state.pause
        self._aim(state)
        state.engine.step(state.inner, stop)
        state.follow()
        if not self._fall_back(state):
            self._compare(state)

    def _begin(self, state: AutoState) -> None:
        """Run the solver that :func:`choose` names."""
        plan = choose(
            state.problem, state.tol, goal=self.goal(state),
            warm_started=state.warm_started, settings=self.settings,
        )  # fmt: skip
        logger.info("auto: %s begins: %s", plan.solver.name, plan.reason)
        state.predicted, state.other = plan.passes, plan.successor_passes
        state.settled = plan.settled
        if not isinstance(plan.solver, DCD):
            self._run(state, plan.solver, plan.passes)
        elif plan.successor_passes is not None:
            state.retest = self.settings.share * plan.successor_passes

    def _compare(self, state: AutoState) -> None:
        """Change over to the successor if it is predicted to need fewer passes."""
        if state.retest is None:
            return
        primal, dual = state.engine.estimate(state.inner)
        if primal > dual > 0.0:
            state.trace.append((state.spent, math.log10((primal - dual) / dual)))
        epochs, least = state.inner.epochs, self.settings.least_epochs
        if epochs == least and self._overlaps(state):
            self._change_over(state)
            return
        if epochs < least or state.spent < state.retest:
            return
        state.predicted = remaining(state.trace, state.tol)
        if state.other is None:  # Newton's method has spent what it was expected to
            state.retest = self.settings.patience * self._predict_other(state)
            if state.spent < state.retest:
                return
        if state.predicted < self._predict_other(state):
            state.retest = 2.0 * state.spent
        else:
            self._change_over(state)

    def _overlaps(self, state: AutoState) -> bool:
        """Whether the rows still active make Newton's method the faster one."""
        problem, inner = state.problem, state.inner
        if (
            state.warm_started
            or state.settled
            or not isinstance(inner, DCDState)
            or not math.isinf(problem.loss.slope)
            or isinstance(successor(state.engine, problem), InteriorPoint)
        ):
            return False
        active = inner.last_visited / problem.n
        left = measured_cost(problem, state.tol, active) - state.spent
        other = smoothing_newton.squared_hinge_work(problem) / state.product
        if left < self.settings.overlap_margin * other:
            return False
        state.predicted, state.other = left, other
        return True

    def _predict_other(self, state: AutoState) -> float:
        """Return the predicted passes of the successor; computed once."""
        if state.other is None:
            state.other = predicted_passes(
                successor(state.engine, state.problem),
                state.problem, state.tol, self.settings,
            )  # fmt: skip
        return state.other

    def _change_over(self, state: AutoState) -> None:
        engine = successor(state.engine, state.problem)
        passes = self._predict_other(state)
        logger.info(
            "auto: switching to %s, about %.0f passes over the data expected; %s would "
            "need about %.0f more", engine.name, passes, state.engine.name,
            state.predicted,
        )  # fmt: skip
        self._run(state, engine, passes)

    def _run(self, state: AutoState, engine: Solver, passes: float) -> None:
        """Start another method; it gains nothing from the iterate of `dcd`."""
        if isinstance(state.engine, DCD):
            state.dcd = (state.engine, state.inner)
        state.run(engine, engine.start(state.problem, state.rng, None))
        state.predicted = passes
        if isinstance(engine, SmoothingNewton) and not state.broken:
            state.retest = passes

    def goal(self, state: AutoState) -> float:
        epoch = state.product + state.problem.width
        spent = state.work + self.settings.free_epochs * epoch >= self.free_work
        if state.eased or spent:
            return float(state.tol)
        return super().goal(state)

    def estimate(self, state: AutoState) -> tuple[float, float]:
        return state.engine.estimate(state.inner)

    def iterate(self, state: AutoState) -> tuple[Vector | None, Vector | None]:
        return state.engine.iterate(state.inner)

    def claim(self, state: AutoState) -> Claim:
        self._aim(state)
        return state.engine.claim(state.inner)

    def _aim(self, state: AutoState) -> None:
        """Tell the running method which gap to reach, unless it is stuck."""
        primal, _ = self.estimate(state)
        if state.inner.epochs == 0 or not math.isnan(primal):
            state.inner.tol = self.goal(state)

    def reject(self, state: AutoState) -> None:
        state.engine.reject(state.inner)
        self._fall_back(state)

    def _fall_back(self, state: AutoState) -> bool:
        """Replace a method that has broken down; return whether there was one."""
        if not self._broke_down(state):
            return False
        logger.info("auto: %s broke down", state.engine.name)
        state.updates += 1  # the loop ends a fit after two epochs without a change
        if state.inner.tol < state.tol and not isinstance(state.engine, DCD):
            state.eased = True
            self._run(state, state.engine, state.predicted)
            return True
        state.broken.append(state.engine.name)
        problem = state.problem
        small = problem.width <= SmoothingNewton().max_features
        others = (InteriorPoint(), SmoothingNewton())
        for other in others if small and not problem.streamed else ():
            if other.name not in state.broken:
                passes = predicted_passes(other, problem, state.tol, self.settings)
                self._run(state, other, passes)
                return True
        if state.dcd is None or DCD.name in state.broken:
            return False
        state.run(*state.dcd)
        state.dcd = None
        return True

    def _broke_down(self, state: AutoState) -> bool:
        """Whether the running method has no finite numbers, or gets nowhere."""
        primal, _ = self.estimate(state)
        if not state.finite() or (state.inner.epochs > 0 and math.isinf(primal)):
            return True
        last = bool(state.broken) and isinstance(state.engine, SmoothingNewton)
        return last and state.inner.epochs >= self.settings.last_epochs
