"""`auto`: dual coordinate descent or Newton's method, as predicted to be faster.

Problem    as `dcd`, `newton` and `interior-point`
Update     theirs. What each will cost is counted in products with the data, from
           stored entries and never from a clock: the same problem and seed give the
           same choices.
           1. `dcd` is taken to need 3 + 5 S^0.85 passes to a gap of 1e-2, S = mean of
              c_i q_i, fewer where one class is small (its rows, and about as many of
              the other, are those that stay awake, unless the other lies around the
              origin), and more for further digits. If that is `MARGIN` times what
              Newton's method will cost, that begins at once.
              Where rows are few beside the features (`few_rows`), interior point
              stands in the place of Newton's method, which takes many steps there; and
              where a plane may separate any labels, `dcd` begins whatever is expected.
           2. Else `dcd` begins. When `SHARE` of the cost of Newton's method is spent,
              and then at every doubling, what is left is predicted by a line through
              log(gap) over the later half of the passes and by the usual growth of
              the cost with the digits; the larger counts. If Newton's method, started
              cold, is to cost less, it takes over: it gains nothing from the iterate
              of `dcd`.
           3. Newton's method is judged the same way once it has spent twice what
              interior point will cost, which hardly depends on how hard a problem is;
              and where it breaks down, interior point takes over, and after it `dcd`.
           Beyond `SmoothingNewton.max_features` columns, and for a store that is read
           block by block, it is `dcd` alone.
Guarantee  that of the method that ends the fit
Cost       where the predictions hold, at most 1.6 times the best of the three
Source     measured crossovers, docs/which-solver.md
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import core
from ..losses import Vector
from ..problem import Problem
from . import interior_point, smoothing_newton
from .base import Solver, State, new_order
from .dcd import DCD, DCDState, cost
from .interior_point import InteriorPoint
from .smoothing_newton import SmoothingNewton
from .some_rows import few_rows

logger = logging.getLogger("dualgap")

MARGIN = 1.4
SLOWER = 1.3  # interior point takes that much longer than its count says
# Rows a feature up to which a plane is likely to separate any labels (Cover 1965): then
# duals stay below their bounds, and the passes of `dcd` hardly grow with C.
SEPARABLE = 2.0
PASSES = 3  # fewest of `dcd` before a comparison
SHARE = 0.3
# Newton's method gains most in its last steps: it may spend that many times what
# interior point would cost before it is judged.
PATIENCE = 2.0
# Nothing is free where so many epochs alone would read more than `free_work`.
FREE_PASSES = 20
# Of so many rows of a class, the share beyond the origin that makes it lie around that.
SAMPLE, AROUND = 1000, 0.25


@dataclass(kw_only=True)
class AutoState(State):
    """The state of the method that is running, and what is known of the other."""

    engine: Solver
    inner: State
    dcd: tuple[Solver, State] | None = None  # to go back to
    other: float = math.inf  # products that the method which may take over will need
    spent: float = 0.0  # products of the running method so far
    retest: float = 0.0  # what is spent at the next comparison
    trace: list[tuple[float, float]] = field(default_factory=list)  # spent, log10(gap)

    def __post_init__(self) -> None:
        self.base = (0, 0, 0)  # epochs, updates, visited of the method before
        self.method = self.engine.name

    @property
    def product(self) -> int:
        """Multiply-adds of one product, the unit of all costs here."""
        return int(self.problem.rows.stored) + self.problem.n

    @property
    def work(self) -> float:
        # What a pass costs besides its rows counts where hardly one is awake.
        return super().work + 2000.0 * self.epochs

    def finite(self) -> bool:
        # A method that has not begun has no values yet.
        return self.inner.epochs == 0 or self.inner.finite()

    def run(self, engine: Solver, inner: State) -> None:
        """Go on with another method."""
        self.base = (
            self.epochs - inner.epochs,
            self.updates - inner.updates,
            self.visited - inner.visited,
        )
        self.engine, self.inner, self.method = engine, inner, engine.name
        self.trace, self.spent, inner.stop = [], 0.0, self.stop

    def follow(self) -> None:
        """Take over the counters of the running method."""
        inner, (epochs, updates, visited) = self.inner, self.base
        self.epochs = epochs + inner.epochs
        self.updates = updates + inner.updates
        self.visited = visited + inner.visited


@dataclass(frozen=True)
class Auto(Solver):
    """The fastest certified solver for the problem at hand: `dcd` or `newton`.

    The choice is made by counts of operations, and again as the fit goes on; the
    history of the fit has the method of every pass and what was predicted, and the log
    has the reason.

    Problems of a few thousand stored entries cost less to solve to rounding level
    than to set up, so `tol` may end the fit only after `free_work` entries of rows and
    of w are read, less `FREE_PASSES` times those of the problem: small models do not
    depend on the order of their rows.
    """

    name: ClassVar[str] = "auto"
    resumes: ClassVar[bool] = True
    dual: ClassVar[bool] = True
    free_work: ClassVar[float] = 2e6

    @property
    def monotone(self) -> bool:
        return True

    @property
    def free_bias(self) -> bool:
        return True

    @property
    def streams(self) -> bool:
        return True

    def resumable(self, state: AutoState) -> bool:
        # The others take few steps: a fit that they end is resumed before them.
        return isinstance(state.inner, DCDState) and state.dcd is None

    def start(self, problem: Problem, rng: Any, warm: Vector | None) -> AutoState:
        dcd = DCD()
        state = AutoState(
            problem, rng, new_order(0), engine=dcd,
            inner=dcd.start(problem, rng, warm),
        )  # fmt: skip
        if problem.streamed:
            state.retest = math.inf
            logger.info("auto: dcd, which reads the store block by block")
        elif problem.width <= SmoothingNewton().max_features:
            # Duals to start from serve dcd alone; it gets its passes to show.
            state.retest = 0.0 if warm is None else -1.0
        else:
            state.retest = math.inf
            logger.info("auto: dcd, for %d features are too many for newton", problem.d)
        return state

    def step(self, state: AutoState, stop: Any) -> None:
        if state.epochs == 0 and state.retest < math.inf:
            self._choose(state)
        state.inner.pause, state.inner.tol = state.pause, self.goal(state)
        state.engine.step(state.inner, stop)
        state.follow()
        inner = state.inner
        work = cost(inner) if isinstance(inner, DCDState) else inner.work
        state.spent = work / state.product
        if not self._fall_back(state):
            self._compare(state)

    def _choose(self, state: AutoState) -> None:
        problem, warm = state.problem, state.retest < 0.0
        state.other = self._other_cost(state, state.tol)
        state.predicted = expected_cost(problem, state.tol)
        slow = state.predicted >= MARGIN * state.other
        goal = self.goal(state)
        if goal < state.tol:  # which a fit gets to if the work is free
            dcd = expected_cost(problem, goal)
            slow = slow or dcd >= MARGIN * self._other_cost(state, goal)
        separable = problem.n <= SEPARABLE * problem.width
        if slow and not (warm or separable):
            self._second(state)
        else:
            name = (InteriorPoint if few_rows(problem) else SmoothingNewton).name
            logger.info(
                "auto: dcd begins, about %.0f products expected; %s would cost about "
                "%.0f", state.predicted, name, state.other,
            )  # fmt: skip
            state.retest = SHARE * state.other

    def _other_cost(self, state: AutoState, tol: float) -> float:
        """Products that the method which may follow `dcd` will need."""
        if few_rows(state.problem):
            return self._interior_cost(state, tol)
        return smoothing_newton.predicted_work(state.problem, tol) / state.product

    def _compare(self, state: AutoState) -> None:
        """Go on with the running method, or not."""
        if state.retest == math.inf:
            return
        primal, dual = state.engine.estimate(state.inner)
        if primal > dual > 0.0:
            state.trace.append((state.spent, math.log10((primal - dual) / dual)))
        if state.inner.epochs < PASSES or state.spent < state.retest:
            return
        state.predicted = remaining(state.trace, state.tol)
        if state.engine.name == SmoothingNewton.name and state.other == math.inf:
            state.other = self._interior_cost(state, state.tol)
            state.retest = PATIENCE * state.other
            if state.spent < state.retest:
                return
        if state.predicted < state.other:
            state.retest = 2.0 * state.spent
        elif state.engine.name == SmoothingNewton.name:
            self._interior(state)
        else:
            self._second(state)

    @staticmethod
    def _interior_cost(state: AutoState, tol: float) -> float:
        work = interior_point.predicted_work(state.problem, tol)
        return SLOWER * work / state.product

    def _second(self, state: AutoState) -> None:
        """Another method takes over from `dcd`, which may not have begun."""
        state.dcd = (state.engine, state.inner)
        if few_rows(state.problem):
            self._interior(state)
            return
        self._take_over(state, SmoothingNewton())
        # Not to be judged before it has spent what it was expected to.
        state.retest, state.other = state.other, math.inf

    def _interior(self, state: AutoState) -> None:
        if state.other == math.inf:
            state.other = self._interior_cost(state, state.tol)
        self._take_over(state, InteriorPoint())
        state.retest = math.inf

    def _take_over(self, state: AutoState, engine: Solver) -> None:
        logger.info(
            "auto: %s takes over, about %.0f products expected; %s would need about "
            "%.0f%s", engine.name, state.other, state.engine.name, state.predicted,
            " more" if state.inner.epochs else "",
        )  # fmt: skip
        state.run(engine, engine.start(state.problem, state.rng, None))
        state.predicted = state.other

    def goal(self, state: AutoState) -> float:
        epoch = state.product + state.problem.width
        if state.work + FREE_PASSES * epoch >= self.free_work:
            return float(state.tol)
        return super().goal(state)

    def estimate(self, state: AutoState) -> tuple[float, float]:
        return state.engine.estimate(state.inner)

    def iterate(self, state: AutoState) -> tuple[Vector | None, Vector | None]:
        return state.engine.iterate(state.inner)

    def proof_options(self, state: AutoState) -> dict[str, Any]:
        return state.engine.proof_options(state.inner)

    def reject(self, state: AutoState) -> None:
        state.engine.reject(state.inner)
        self._fall_back(state)

    def _fall_back(self, state: AutoState) -> bool:
        """To interior point, or from there to `dcd`, if a method has broken down."""
        if state.dcd is None or state.inner.finite():
            return False
        if state.engine.name == SmoothingNewton.name:
            logger.info("auto: newton can go no further")
            self._interior(state)
        else:
            logger.info("auto: interior-point can go no further; dcd goes on")
            state.run(*state.dcd)
            state.dcd, state.retest = None, math.inf
        return True


def growth(digits: float) -> float:
    """What a gap of 10^-digits costs `dcd`, in units of what 1e-2 costs."""
    return 1.0 + 0.4 * max(digits - 2.0, 0.0) ** 2


def awake_share(problem: Problem) -> float:
    """Share of the rows that does not fall asleep, roughly.

    With equal weights on both sides of the margin, hardly more rows than twice the
    smaller class are awake, the others of the large class being beyond the margin. But
    not where no w gets them there: a class around the origin, and no bias to move it.
    """
    share = float(problem.cost[problem.y > 0].sum()) / float(problem.cost.sum())
    awake = 4.0 * min(share, 1.0 - share)
    if awake >= 1.0 or problem.free_bias:
        return min(awake, 1.0)
    some = np.arange(0, problem.n, max(problem.n // SAMPLE, 1), dtype=np.uint32)
    some = some[problem.y[some] == (1 if share > 0.5 else -1)]
    rows = core.chosen_rows(problem.rows, some, problem.intercept_scaling)
    y, mean, margins = problem.y[some], np.zeros(problem.width), np.empty(len(some))
    core.combine(rows, y, np.ones(len(some)), mean, problem.threads)
    core.outputs(rows, y, mean, margins, problem.threads, core.Stop())
    return 1.0 if np.count_nonzero(margins <= 0.0) > AROUND * len(some) else awake


def expected_cost(problem: Problem, tol: float) -> float:
    """Products that `dcd` may need for a gap of `tol`, from the problem alone.

    Passes grow with the mean of c_i q_i, and are dearer where updates are many. Rows
    that are fewer than the features hardly meet in one of them.
    """
    rows = problem.rows.stored / problem.n
    steepness = float(np.dot(problem.cost, problem.q)) / problem.n
    awake = awake_share(problem)
    digits = -math.log10(tol)
    easy = 3.0 + 1.5 * max(digits - 2.0, 0.0)  # where the regulariser rules
    meet = min(problem.n / problem.width, 1.0)
    passes = easy + 5.0 * awake * meet * steepness**0.85 * growth(digits)
    return passes * (60.0 + 2.0 * rows) / (rows + 1.0)


def remaining(trace: list[tuple[float, float]], tol: float) -> float:
    """Cost until the gap is `tol`: what a trace says, or what is usual if that is more.

    The trace says it by a line through its later half, with every digit costing more
    than the one before: rows that are still undecided are the hard ones.

    Parameters
    ----------
    trace : list of (cost so far, log10 of the relative gap)
    tol : float

    Returns
    -------
    float
        0 where it is met already, infinite where the gap does not fall.
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
