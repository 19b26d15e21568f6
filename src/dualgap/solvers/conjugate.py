"""Conjugate sweeps: acceleration of `DCD` where rows share few features.

Problem    the dual of dcd.py, in which D(a) = sum a_i - 1/2 a'K a
Update     a step between two sweeps (src/core/epochs/conjugate_sweeps.hpp)
           PLAIN      no step; the sweeps are over-relaxed
           MOMENTUM   Nesterov's extrapolation of whole sweeps, until D falls or few
                      rows are clipped to the box: the active set has settled
           CONJUGATE  conjugate directions made of whole sweeps: an exact step, clipped,
                      and dropped if the sweep alone is better
           FINISH     no step, once rounding hides the gain in D
Guarantee  D never falls except in MOMENTUM, which ends when it does.
Cost       some passes over n and d numbers per sweep; 24 bytes per row and feature.
Source     Nesterov, Soviet Math. Doklady 27, 1983; Notay, SIAM J. Sci. Comput. 22, 2000
           (flexible conjugate gradients). The combination is this package's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import core
from ..losses import Vector

if TYPE_CHECKING:
    from .dcd import DCDState


@dataclass(frozen=True)
class AccelerationSettings:
    """Tuning constants of the acceleration."""

    #: Over-relaxation of the sweeps in PLAIN; later it hurts.
    omega: float = 1.3
    #: Sweeps before momentum in an easy problem: fewer cost an epoch or two there.
    easy_sweeps: int = 18
    #: Sweeps before momentum in a hard problem.
    hard_sweeps: int = 8
    #: A problem is hard if its mean cost times its mean q_i reaches this.
    hard: float = 4.0
    #: The active set has settled once two steps in a row clip at most this share.
    settled_share: float = 0.01
    #: MOMENTUM makes more steps than this.
    momentum_steps: int = 5
    #: Relative gain in D that rounding hides.
    noise: float = 1e-14
    #: FINISH begins after more steps in a row than this without a visible gain.
    dull_steps: int = 3
    #: The gap at the visits of an accelerated sweep is this many times that at its end.
    pessimism: float = 2.1
    #: The gap at the visits of a plain sweep lags behind. Its share left at the end is
    #: this times the root of its last decrease, or the decrease after Modified-SGD.
    lag: float = 1.2
    #: Least such share.
    least_share: float = 0.35
    #: The best multiple of w may reduce the estimated gap to this share at most.
    smallest_share: float = 0.05


class Mode(Enum):
    """Kind of step between two sweeps."""

    PLAIN = auto()
    MOMENTUM = auto()
    CONJUGATE = auto()
    FINISH = auto()


@dataclass
class Accelerator:
    """State between the sweeps; it goes through the modes once, in their order."""

    settings: ClassVar[AccelerationSettings] = AccelerationSettings()

    sweeps: int  # in PLAIN
    mode: Mode = Mode.PLAIN
    gap: float = 0.0  # summed over the visits of the last sweep
    # MOMENTUM: end of the previous sweep. CONJUGATE: start of the last sweep.
    alpha: Vector = field(default_factory=lambda: np.empty(0))
    w: Vector = field(default_factory=lambda: np.empty(0))
    dual: float = -math.inf
    t: float = 1.0
    steps: int = 0
    dull: int = 0  # steps in a row whose gain in D rounding hides
    calm: int = 0  # steps in a row that clipped few rows
    points: tuple[Vector, Vector] | None = None
    images: tuple[Vector, Vector] | None = None
    norms: tuple[float, float] = (0.0, 0.0)
    next: int = 0

    @classmethod
    def begin(cls, state: DCDState) -> Accelerator:
        problem = state.problem
        hardness = float(problem.cost.mean() * problem.q.mean())
        settings = cls.settings
        hard = hardness >= settings.hard
        return cls(settings.hard_sweeps if hard else settings.easy_sweeps)

    @property
    def moving(self) -> bool:
        """Whether steps between the sweeps have begun."""
        return self.mode is not Mode.PLAIN

    @property
    def omega(self) -> float:
        return 1.0 if self.moving else self.settings.omega

    def estimate(self, gap: float, saved: float, after_sgd: bool = False) -> float:
        """Estimate the gap from its sum over the visits and the best multiple of w."""
        settings = self.settings
        gap = max(settings.smallest_share * gap, gap + saved)
        if self.moving:
            return gap / settings.pessimism
        before, self.gap = self.gap, gap
        return core.gap_at_the_end(
            gap, before, settings.lag, settings.least_share, after_sgd
        )

    def forget(self, state: DCDState) -> None:
        """Start again from here, because w was repaired.

        Otherwise the jump of 1e-12 in w would count as a displacement. It would enter
        every later direction, and D would seem to rise along it.
        """
        if self.mode is Mode.CONJUGATE:
            self.alpha[:], self.w[:] = state.alpha, state.w
            self.norms = 0.0, 0.0

    def advance(self, state: DCDState, stop: core.Stop) -> bool:
        """Make the step between two sweeps; rows that leave their bound become active.

        Returns False if a stop request cut the step short: w then needs a repair.
        """
        if self.mode is Mode.FINISH:
            return True
        if self.mode is Mode.CONJUGATE:
            self._conjugate(state, stop)
            return True
        if self.mode is Mode.MOMENTUM:
            return self._momentum(state, stop)
        if state.epochs >= self.sweeps:
            self.alpha, self.w = state.alpha.copy(), state.w.copy()
            self.dual = state.dual
            self.mode = Mode.MOMENTUM
        return True

    def _momentum(self, state: DCDState, stop: core.Stop) -> bool:
        restart = state.dual < self.dual
        if restart:
            self.t = 1.0
        t = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self.t * self.t))
        beta, self.t, self.dual = (self.t - 1.0) / t, t, state.dual
        last = state.last_visited
        leap = core.momentum(
            state.examples(),
            state.point,
            core.DualState(self.alpha, self.w),
            beta,
            state.wake,
            state.order,
            stop,
        )
        state.linear = leap.linear
        self._count(state, leap)
        self.steps += 1
        settled = leap.clipped <= self.settings.settled_share * last
        self.calm = self.calm + 1 if settled else 0
        if self.steps > self.settings.momentum_steps and (restart or self.calm >= 2):
            self._settle(state)
        return bool(leap.whole)

    def _count(self, state: DCDState, leap: core.Leap) -> None:
        """Count the rows of a step; never as an idle pass if it moved any."""
        state.updates += max(leap.clipped, int(leap.moved > 0))
        state.visited += leap.clipped

    def _settle(self, state: DCDState) -> None:
        self.mode = Mode.CONJUGATE
        self.alpha[:], self.w[:] = state.alpha, state.w
        n, width = len(state.alpha), len(state.w)
        self.points = np.zeros(n), np.zeros(n)
        self.images = np.zeros(width), np.zeros(width)

    def _conjugate(self, state: DCDState, stop: core.Stop) -> None:
        # D is of second order in the error of alpha, the gap is of first order.
        resolved = state.dual - self.dual > self.settings.noise * abs(state.dual)
        self.dull, self.dual = 0 if resolved else self.dull + 1, state.dual
        if self.dull > self.settings.dull_steps:
            self.mode = Mode.FINISH
            return
        assert self.points is not None
        assert self.images is not None
        base = core.DualState(self.alpha, self.w)
        directions = core.Directions(
            base, self.points, self.images, self.norms, self.next
        )
        leap = core.conjugate_step(
            state.examples(),
            state.point,
            state.dual,
            directions,
            state.wake,
            state.order,
            stop,
        )
        self.norms, self.next = directions.norms, directions.next
        if leap.taken:
            state.linear = leap.linear
        self._count(state, leap)
