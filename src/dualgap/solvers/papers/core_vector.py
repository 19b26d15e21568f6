"""Core vector machine: Frank-Wolfe with an exact solution on all its vertices.

Problem    min 1/2 a'Ka over the simplex (frank_wolfe.py). With kappa = max K_ii this is
           the smallest ball around points z_i with z_i.z_j = K_ij: its centre is
           c = sum_i a_i z_i, ||c - z_i||^2 = kappa - 2 g_i + p, and its squared radius
           is R^2 = kappa - p.
Update     the point farthest from the centre, argmin g over all rows or over a sample,
           joins the core set S. Then a solves the problem on S by pair steps from a
           warm start.
Guarantee  if no row is outside the ball of radius (1 + eps) R, R is within (1 + eps) of
           the optimum; at most 2/eps core vectors (Badoiu and Clarkson 2002)
Cost       with samples 61 |S| kernel values per core vector; with full scans a kernel
           row per changed entry of a. The inner problem needs 4 |S|^2 bytes besides the
           cache.
Source     Tsang, Kwok and Cheung, JMLR 6 (2005), and Tsang, Kwok and Zurada, IEEE TNN
           17 (2006) for a diagonal that is not constant. They stop when a sample meets
           the ball test at a fixed eps: stop="sampled". By default five such samples
           end an epoch, halve eps and schedule the full scan, and only a full scan ends
           the fit. A full scan adds up to 60 rows at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import core
from ...checks import Count, Fraction
from ...losses import Vector
from ...problems.kernel import KernelProblem
from ..base import register
from .frank_wolfe import (
    SampledState,
    SimplexSettings,
    SimplexSolver,
    SimplexState,
    split_classes,
)


@dataclass(frozen=True)
class CoreVectorSettings(SimplexSettings):
    """Tuning constants of `CoreVector`."""

    #: Most additions to the core set in an epoch.
    additions: int = 50
    #: Most rows that a full scan adds.
    scan_rows: int = 60
    #: An epoch ends after this many samples in a row that add nothing.
    quiet_samples: int = 5
    #: The problem on the core set is solved to this fraction of the accuracy `eps`.
    inner_share: float = 0.5
    #: Smallest relative gap that these solves aim at.
    inner_tol: float = 1e-12
    #: Most steps of these solves, for each row of the core set.
    inner_steps: int = 100


@dataclass(kw_only=True)
class CoreState(SampledState):
    """State of the core vector machine.

    The core set S is ``active[:size]``, in the order in which rows joined it. H is
    K_SS; ``core_a`` and ``core_g`` are a and g on S.
    """

    H: NDArray[np.float32]
    core_a: Vector
    core_g: Vector
    classes: tuple[NDArray[np.uint32], NDArray[np.uint32]]
    eps: float
    kappa: float
    next_rows: NDArray[np.intp]
    drawn: NDArray[np.uint32] | None = None  # the last sample
    quiet: int = 0  # samples in a row that add nothing

    @property
    def core_set(self) -> NDArray[np.uint32]:
        return self.active[: self.size]

    def is_inside(self, g: float) -> bool:
        """Return whether a row of gradient g is in the ball of radius (1 + eps) R."""
        radius = (1.0 + self.eps) ** 2 * (self.kappa - self.p)
        return self.kappa - 2.0 * g + self.p <= radius

    def grow(self, rows: NDArray[np.generic]) -> None:
        """Add rows to the core set, with a = 0."""
        old, new = self.size, self.size + len(rows)
        if new > len(self.H):
            H = np.zeros((2 * new, 2 * new), dtype=np.float32)
            H[:old, :old] = self.H[:old, :old]
            self.H = H
        self.active[old:new] = rows
        self.size = new
        block = self.matrix(self.active[old:new], self.core_set)
        self.H[old:new, :new] = block
        self.H[:old, old:new] = block[:, :old].T
        self.core_a = np.concatenate([self.core_a, np.zeros(len(rows))])
        gradient = (block * self.core_a).sum(axis=1)
        self.core_g = np.concatenate([self.core_g, gradient])

    def solve(self, settings: CoreVectorSettings, stop: core.Stop) -> int:
        """Solve the problem on the core set, and return the number of steps.

        The tolerance is a fraction of the accuracy eps of the ball.
        """
        tol = settings.inner_share * self.eps * (self.kappa - self.p)
        tol = tol / self.p if self.p > 0.0 else 0.0  # it may underflow
        tol, most = max(tol, settings.inner_tol), settings.inner_steps * self.size
        steps = core.solve_small(self.H, self.core_a, self.core_g, tol, most, stop)
        self.core_a /= self.core_a.sum()
        before = self.a[self.core_set]
        self.a[self.core_set] = self.core_a
        self.p = float((self.core_a * self.core_g).sum())
        if self.sampling:
            self.g[self.core_set] = self.core_g
        else:
            change = self.core_a - before
            self.add_gradient(self.core_set.copy(), change, stop)
        return int(steps)


@register("kernel")
@dataclass(frozen=True)
class CoreVector(SimplexSolver):
    """Core vector machine of Tsang, Kwok and Cheung 2005.

    Parameters
    ----------
    eps : float, default=0.01
        First accuracy of the ball, at most 1. It halves whenever no row is found
        outside the ball, which is the rule of a sample. With ``stop="sampled"`` it
        stays as it is.
    sample : int or None, default=60
        Look for the farthest point among this many random rows; None for all rows.
    """

    eps: Fraction = 0.01
    sample: Count | None = 60

    name: ClassVar[str] = "core-vector"
    settings: ClassVar[CoreVectorSettings] = CoreVectorSettings()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sample is None and self.ends_itself:
            raise ValueError(
                "stop='sampled' needs a sample, not sample=None; use sample=60"
            )

    def start(
        self, problem: KernelProblem, rng: core.Random, warm: Vector | None
    ) -> CoreState:
        simplex = SimplexState.begin(problem, rng)
        state = CoreState(
            **vars(simplex),
            H=np.zeros((0, 0), dtype=np.float32),
            core_a=np.zeros(0),
            core_g=np.zeros(0),
            classes=split_classes(simplex.y),
            eps=self.eps,
            kappa=float(simplex.diagonal.max()),
            sampling=self.sample is not None,
            next_rows=np.zeros(0, dtype=np.intp),
        )
        tol = self.settings.initial_tol
        self.begin_anywhere(state, rng, warm, tol)
        rows = state.core_set.copy()
        state.size = 0
        state.grow(rows)
        state.core_a = state.a[rows]
        H = state.H[: state.size, : state.size].astype(np.float64)
        state.core_g = (H * state.core_a).sum(axis=1)
        state.measure()
        return state

    def step(self, state: CoreState, stop: core.Stop) -> None:
        state.epochs += 1
        losses, enough = [0.0], self.quiet_samples
        if not self.ends_itself:
            state.quiet, enough = 0, self.settings.quiet_samples
        for _ in range(self.settings.additions):
            if stop.requested or stop.expired:
                break
            rows = state.next_rows
            state.next_rows = rows[:0]
            if len(rows) == 0:
                rows, loss = self._farthest(state)
                losses.append(loss)
            if len(rows) == 0:
                state.quiet += 1
                if state.quiet < enough and state.sampling:
                    continue
                if self.ends_itself:
                    state.ended = True
                    break
                state.eps *= 0.5
                state.updates += state.solve(self.settings, stop)
                break
            state.quiet = 0
            state.grow(rows)
            state.updates += state.solve(self.settings, stop)
            state.visited += len(rows)
        if state.sampling:
            state.guess(float(np.mean(losses[-self.settings.additions // 2 :])))
        else:
            state.measure()

    def _farthest(self, state: CoreState) -> tuple[NDArray[np.intp], float]:
        """Return rows outside the ball to add, and the mean loss of the rows drawn."""
        if not state.sampling:
            return self._outside(state), 0.0
        assert self.sample is not None
        drawn = np.empty(self.sample, dtype=np.uint32)
        if self.balanced and min(map(len, state.classes)) > 0:
            half = self.sample // 2
            positive, negative = state.classes
            state.rng.draw(drawn[:half], len(positive))
            state.rng.draw(drawn[half:], len(negative))
            drawn[:half] = positive[drawn[:half]]
            drawn[half:] = negative[drawn[half:]]
        else:
            state.rng.draw(drawn, len(state.a))
        state.drawn = drawn
        drawn = np.setdiff1d(drawn, state.core_set).astype(np.uint32)
        if len(drawn) == 0:
            return np.zeros(0, dtype=np.intp), 0.0
        g = (state.matrix(drawn, state.core_set) * state.core_a).sum(axis=1)
        slack = np.maximum(0.0, 1.0 - g / state.p)
        loss = float((0.5 / state.delta[drawn] * slack * slack).mean())
        farthest = int(np.argmin(g))
        if state.is_inside(float(g[farthest])):
            return np.zeros(0, dtype=np.intp), loss
        return drawn[farthest : farthest + 1].astype(np.intp), loss

    def _outside(self, state: CoreState) -> NDArray[np.intp]:
        """Return the farthest rows outside the ball, from the gradient at all rows."""
        g = state.g.copy()
        g[state.core_set] = math.inf
        many = min(self.settings.scan_rows, len(g) - state.size)
        if many == 0:
            return np.zeros(0, dtype=np.intp)
        rows = np.argpartition(g, many - 1)[:many]
        rows = rows[np.argsort(g[rows], kind="stable")]
        return rows[[not state.is_inside(float(g[i])) for i in rows]]

    def iterate(self, state: CoreState) -> tuple[None, Vector]:
        return None, state.alpha()

    def reject(self, state: CoreState) -> None:
        state.refresh()
        state.core_g = state.g[state.core_set]
        state.next_rows = self._outside(state)[: 1 if state.sampling else None]
        state.after_scan(self.settings)
