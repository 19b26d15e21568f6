"""Progress of a fit: its clock, history and reports, and when it is worth a proof."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import core
from ..certificate import Certificate, relative_gap, size_of_optimum
from ..losses import Vector
from ..solvers.base import Solver, State

logger = logging.getLogger("dualgap")

#: Smallest fall of the gap's logarithm that a forecast notes.
_FALL = 0.05

HISTORY_DTYPE = np.dtype(
    [
        ("epoch", np.int64),
        ("seconds", np.float64),
        ("primal", np.float64),
        ("dual", np.float64),
        ("exact", np.bool_),
        ("updates", np.int64),
        ("solver", "U16"),
        ("predicted", np.float64),
    ]
)


def solver_that_ran(solver: str, methods: Iterable[str]) -> str:
    """Return the name of a solver and the methods it chose, such as "auto: newton"."""
    chosen = [method for method in dict.fromkeys(methods) if method != solver]
    return f"{solver}: {', '.join(chosen)}" if chosen else solver


#: An entry of the history: the fields of HISTORY_DTYPE.
Epoch = tuple[int, float, float, float, bool, int, str, float]


@dataclass(frozen=True)
class EpochInfo:
    """Progress report that callbacks receive after every epoch.

    ``primal`` and ``dual`` are the solver's estimates (NaN where it has none) or, if
    ``exact`` is true, values of a full pass. ``solver`` is the method of the epoch.
    ``predicted`` is the number of products with the data that "auto" still expects.
    ``final`` marks the last call of a fit. ``model()`` computes the current w, shape
    (width,), or the decisions of a kernel model at the training rows. Call it only
    during the callback. Copies and pickles have None in its place, so send its result.
    """

    epoch: int
    seconds: float
    primal: float
    dual: float
    exact: bool
    updates: int
    solver: str = ""
    predicted: float = math.nan
    final: bool = False
    model: Callable[[], Vector] | None = field(default=None, repr=False, compare=False)

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.primal, self.dual)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "model": None}


def told(epoch: EpochInfo, tol: float, left: float) -> str:
    """Return an epoch as one line; ``~`` marks estimates without an exact pass."""

    def number(value: float, form: str) -> str:
        if not math.isfinite(value):
            return "-"
        return ("" if epoch.exact else "~") + format(value, form)

    return (
        f"epoch {epoch.epoch}  primal {number(epoch.primal, '.6g')}  "
        f"dual {number(epoch.dual, '.6g')}  "
        f"gap {number(epoch.relative_gap, '.2e')}, target {tol:g}"
        f"{remaining(epoch, tol, left)}"
    )


def remaining(epoch: EpochInfo, tol: float, left: float) -> str:
    """Return the end of a line about an epoch: how long the fit still takes, if known.

    `left` are the seconds that it still needs, NaN if nothing is known.
    """
    if not left < math.inf or epoch.relative_gap <= tol:
        return ""
    for unit, seconds in (("h", 3600.0), ("min", 60.0)):
        if left >= 2 * seconds:
            return f", about {left / seconds:.0f} {unit} left"
    return f", about {max(left, 1.0):.0f} s left"


class Forecast:
    """Estimate of the time that a fit still needs, from the recent fall of its gap.

    Parameters
    ----------
    tol : float
        Relative gap at which the fit ends.
    """

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.points: list[tuple[float, float]] = []  # seconds, logarithm of the gap

    def left(self, seconds: float, gap: float) -> float:
        """Return the seconds left after an epoch; NaN if nothing is known yet."""
        if not 0.0 < gap < math.inf:
            return math.nan
        points, now = self.points, math.log(gap)
        if not points or now < points[-1][1] - _FALL:
            points.append((seconds, now))
        begun, high = next(
            (p for p in reversed(points) if p[0] <= 0.5 * seconds), points[0]
        )
        fallen = high - points[-1][1]
        if fallen <= 0.0 or seconds <= begun:
            return math.nan
        rate = fallen / (seconds - begun)
        return max(0.0, (points[-1][1] - math.log(self.tol)) / rate)


@dataclass
class Clock:
    """Clock of the fit in wall-clock seconds; it pauses while callbacks run."""

    begun: float = field(default_factory=time.perf_counter)
    away: float = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begun - self.away

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        left = time.perf_counter()
        try:
            yield
        finally:
            self.away += time.perf_counter() - left


class Progress:
    """History of one fit, which it reports to the log and to a callback.

    - `solver`: name of the solver.
    - `tol`: relative gap at which the fit ends.
    - `title`: words before each line of the log.
    - `on_epoch`: called with an :class:`EpochInfo`; a true return value ends the fit.
    """

    def __init__(
        self,
        solver: str,
        tol: float,
        title: str = "",
        on_epoch: Callable[[EpochInfo], object] | None = None,
    ) -> None:
        self.solver, self.tol, self.on_epoch = solver, tol, on_epoch
        self.title = f"{title}: " if title else ""
        self.clock = Clock()
        self.forecast, self.due = Forecast(tol), 1.0
        self.history: list[Epoch] = []

    @property
    def proved(self) -> bool:
        """Whether the last entry of the history is a proof."""
        return bool(self.history) and self.history[-1][4]

    def record(self, state: State, primal: float, dual: float, exact: bool) -> None:
        """Add the values after an epoch to the history."""
        method = state.method or self.solver
        self.history.append(
            (state.epochs, self.clock.seconds, primal, dual, exact, state.updates,
             method, state.predicted)
        )  # fmt: skip
        if logger.isEnabledFor(logging.INFO):
            self.tell(EpochInfo(*self.history[-1]))

    def tell(self, epoch: EpochInfo) -> None:
        """Log an epoch; at the level INFO only after 1, 2, 4, ... seconds."""
        seconds = epoch.seconds
        left = self.forecast.left(seconds, epoch.relative_gap)
        level = logging.DEBUG
        if seconds >= self.due:
            level, self.due = logging.INFO, 2.0 * seconds
        line = f"{epoch.solver} {told(epoch, self.tol, left)}"
        logger.log(level, "%s%s", self.title, f"{line}, {seconds:.1f} s")

    def announce(self, model: Callable[[], Vector], final: bool) -> bool:
        """Report the last entry to `on_epoch`; return whether that ends the fit."""
        if self.on_epoch is None or not self.history:
            return False
        with self.clock.paused():
            return bool(self.on_epoch(EpochInfo(*self.history[-1], final, model)))

    def end(self, certificate: Certificate, model: Callable[[], Vector]) -> bool:
        """Report the end of the fit; return whether `on_epoch` ends others too."""
        logger.info("%s%s", self.title, certificate)
        return self.announce(model, final=True)


class Schedule:
    """Rule that decides from a solver's estimates when to prove.

    `tol`, `atol`: relative gap, and gap, to prove. `floor`: lower bound on the size of
    the optimum that makes gaps relative.
    """

    def __init__(self, solver: Solver, tol: float, atol: float, floor: float) -> None:
        self.solver = solver
        self.tol, self.atol, self.floor = tol, atol, floor
        self.factor = solver.check_factor
        self.next_blind_check = 1

    def aim(self, state: State, primal: float, dual: float) -> None:
        """Set the relative gap of the solver to the looser of `tol` and `atol`."""
        largest = max(primal, -dual, self.floor)  # bounds |P*| from above
        if self.atol > 0.0 and 0.0 < largest < math.inf:
            state.tol = max(self.tol, self.atol / largest)

    def worth_checking(self, state: State, primal: float, dual: float) -> bool:
        """Whether the estimates are near enough to the goal for a proof."""
        if self.solver.ends_itself:
            return False
        blind = math.isnan(primal) or math.isnan(dual)
        goal = self.solver.goal(state)
        gap = self.factor * goal
        floor = 0.0 if blind else size_of_optimum(primal, dual, self.floor)
        if not blind and primal - dual <= gap * floor:
            return True
        near = not blind and primal - dual <= self.factor * self.atol
        if near and goal >= state.tol:
            return True
        # Check at growing intervals without an estimate, between tol and a tighter
        # goal, and where an earlier proof was worse than its estimate: the next one
        # need not be. This costs a few passes, and learn() notes what estimates miss.
        likely = primal - dual <= self.solver.check_factor * self.tol * floor
        if blind or near or likely:
            if not blind and self.next_blind_check == 1:
                self.next_blind_check = 2 * state.epochs + 8
            if state.epochs < self.next_blind_check:
                return False
            self.next_blind_check = self._later(state, 1 if blind else 4)
            return True
        return False

    def _later(self, state: State, least: int = 4) -> int:
        return max(state.epochs + least, int(1.25 * state.epochs))

    def learn(self, state: State, exact: Certificate) -> None:
        """Learn from a proof how optimistic the solver's estimate is."""
        estimated = relative_gap(*self.solver.estimate(state), exact.floor)
        met = exact.meets(self.tol, self.atol)
        misled = not met and 0.0 < estimated < math.inf
        if misled and not self.solver.mends_estimate:
            most = self.solver.check_factor
            self.factor = core.next_factor(estimated, exact.relative_gap, most)
            self.next_blind_check = self._later(state)
