"""Conjugate sweeps: what `DCD` does between two sweeps over rows with little in common.

Problem    the dual of dcd.py, in which D(a) = sum a_i - 1/2 a'K a
Update     (src/core/epochs/conjugate_sweeps.hpp)
           PLAIN      sweeps alone, over-relaxed
           MOMENTUM   Nesterov's extrapolation of whole sweeps, until D falls or few
                      rows leave the box on the way: the active set has settled
           CONJUGATE  conjugate directions made of whole sweeps, an exact step, clipped,
                      and given up where the sweep alone is better
           FINISH     sweeps alone again, once rounding hides what D gains
Guarantee  D never falls but in MOMENTUM, which ends when it does.
Cost       some passes over n and d numbers per sweep; 24 bytes a row and a feature.
Source     Nesterov, Soviet Math. Doklady 27, 1983; Notay, SIAM J. Sci. Comput. 22, 2000
           (flexible conjugate gradients). The combination is this package's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import core
from ..losses import Vector

if TYPE_CHECKING:
    from .dcd import DCDState

# Over-relaxation of the sweeps in PLAIN; later it hurts.
OMEGA = 1.3
# Sweeps before momentum: fewer cost an epoch or two where few are needed at all.
FEWEST_SWEEPS, MORE_SWEEPS, HARD = 8, 18, 4.0
# The active set has settled when this share of the rows visited is clipped at most,
# twice in a row, after more than MOMENTUM_STEPS steps.
SETTLED, MOMENTUM_STEPS = 0.01, 5
# D is of second order in what alpha lacks, the gap of first. Where rounding hides what
# this many epochs in a row gain, sweeps alone go on.
NOISE, DULL_STEPS = 1e-14, 3
# The gap summed over the visits of a sweep, over the one at its end.
PESSIMISM = 2.1
# Before that, the sum lags half a sweep behind: the gap at the end is the sum times the
# root of its fall, and this, but no less than that share of it. In the sweep after
# Modified-SGD it falls by as much again.
LAG, LEAST_SHARE = 1.2, 0.35
# A multiple of w may take so much off the estimate and no more.
SMALLEST_SHARE = 0.05


class Mode(Enum):
    """What happens between two sweeps."""

    PLAIN = auto()
    MOMENTUM = auto()
    CONJUGATE = auto()
    FINISH = auto()


@dataclass
class Accelerator:
    """What is remembered between the sweeps; the modes follow each other, once."""

    sweeps: int  # in PLAIN
    mode: Mode = Mode.PLAIN
    gap: float = 0.0  # summed over the visits of the last sweep
    # MOMENTUM: the end of the sweep before. CONJUGATE: where the last sweep began.
    alpha: Vector = field(default_factory=lambda: np.empty(0))
    w: Vector = field(default_factory=lambda: np.empty(0))
    dual: float = -math.inf
    t: float = 1.0
    steps: int = 0
    dull: int = 0  # steps in a row that D does not resolve
    calm: int = 0  # steps in a row that clipped few rows
    points: tuple[Vector, Vector] | None = None
    images: tuple[Vector, Vector] | None = None
    norms: tuple[float, float] = (0.0, 0.0)
    next: int = 0

    @classmethod
    def begin(cls, state: DCDState) -> Accelerator:
        problem = state.problem
        hardness = float(problem.cost.mean() * problem.q.mean())
        return cls(FEWEST_SWEEPS if hardness >= HARD else MORE_SWEEPS)

    @property
    def moving(self) -> bool:
        """Whether there is anything between the sweeps yet."""
        return self.mode is not Mode.PLAIN

    @property
    def omega(self) -> float:
        return 1.0 if self.moving else OMEGA

    def estimate(self, gap: float, saved: float, after_sgd: bool = False) -> float:
        """The gap, from the sum over the visits and what a multiple of w saves."""
        gap = max(SMALLEST_SHARE * gap, gap + saved)
        if self.moving:
            return gap / PESSIMISM
        before, self.gap = self.gap, gap
        if not 0.0 < gap < before:
            return gap
        fall = gap / before
        share = LAG * fall if after_sgd else max(LAG * math.sqrt(fall), LEAST_SHARE)
        return min(share, 1.0) * gap

    def forget(self, state: DCDState) -> None:
        """Begin anew from here, for w was repaired.

        A jump of 1e-12 in w, taken for a displacement, would be in every direction to
        come, and D would seem to rise along it.
        """
        if self.mode is Mode.CONJUGATE:
            self.alpha[:], self.w[:] = state.alpha, state.w
            self.norms = 0.0, 0.0

    def advance(self, state: DCDState, stop: Any) -> bool:
        """Move on from the end of a sweep; false: told to leave, w has to be repaired.

        Rows that the move takes off their bound wake up.
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

    def _momentum(self, state: DCDState, stop: Any) -> bool:
        problem = state.problem
        restart = state.dual < self.dual
        if restart:
            self.t = 1.0
        t = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self.t * self.t))
        beta, self.t, self.dual = (self.t - 1.0) / t, t, state.dual
        last = state.last_visited
        whole, clipped, moved, state.linear = core.momentum(
            problem.rows, problem.y, problem.cost, state.q, problem.core_loss,
            state.alpha, state.w, self.alpha, self.w, beta, state.wake, state.order,
            stop,
        )  # fmt: skip
        state.updates += max(clipped, int(moved > 0))  # never an idle pass
        state.visited += clipped
        self.steps += 1
        self.calm = self.calm + 1 if clipped <= SETTLED * last else 0
        if self.steps > MOMENTUM_STEPS and (restart or self.calm >= 2):
            self._settle(state)
        return bool(whole)

    def _settle(self, state: DCDState) -> None:
        self.mode = Mode.CONJUGATE
        self.alpha[:], self.w[:] = state.alpha, state.w
        n, width = len(state.alpha), len(state.w)
        self.points = np.zeros(n), np.zeros(n)
        self.images = np.zeros(width), np.zeros(width)

    def _conjugate(self, state: DCDState, stop: Any) -> None:
        problem = state.problem
        resolved = state.dual - self.dual > NOISE * abs(state.dual)
        self.dull, self.dual = 0 if resolved else self.dull + 1, state.dual
        if self.dull > DULL_STEPS:
            self.mode = Mode.FINISH
            return
        assert self.points is not None
        assert self.images is not None
        taken, clipped, moved, linear, *norms, self.next = core.conjugate_step(
            problem.rows, problem.y, problem.cost, state.q, problem.core_loss,
            state.alpha, state.w, state.dual, self.alpha, self.w, *self.points,
            *self.images, *self.norms, self.next, state.wake, state.order, stop,
        )  # fmt: skip
        self.norms = norms[0], norms[1]
        if taken:
            state.linear = linear
        state.updates += max(clipped, int(moved > 0))  # never an idle pass
        state.visited += clipped
