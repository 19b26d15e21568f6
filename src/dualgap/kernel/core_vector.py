"""The core vector machine: Frank-Wolfe that solves on all its vertices in every step.

Problem    min 1/2 a'Ka over the simplex (frank_wolfe.py): with kappa = max K_ii the
           smallest ball around points z_i, z_i.z_j = K_ij; center c = sum_i a_i z_i,
           ||c - z_i||^2 = kappa - 2 g_i + p, squared radius R^2 = kappa - p
Update     the point farthest from the center, argmin g over all rows or over a sample,
           joins the core set S; a solves the problem on S, warm, by pair steps
Guarantee  if no row is outside of the ball (1 + eps) R, R is within (1 + eps) of the
           optimum; at most 2/eps core vectors (Badoiu and Clarkson 2002)
Cost       sampled, 61 |S| kernel values per core vector; full, a kernel row per entry
           of a that moved. The inner problem needs 4 |S|^2 bytes besides the cache.
Source     Tsang, Kwok and Cheung, JMLR 6 (2005), and Tsang, Kwok and
           Zurada, IEEE TNN 17 (2006) for a diagonal that is not constant. They end when
           a sample meets the ball test at a fixed eps. Here that ends a pass, halves
           eps and schedules the full scan, which alone ends the fit; full scans add up
           to 60 rows at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..losses import Vector
from ..solvers.base import check_count, check_option, check_step
from .base import KernelSolver
from .frank_wolfe import SimplexState, begin_anywhere, split_classes

_SIZE = 50  # core vectors per pass
_BATCH = 60  # rows that a full scan adds at most
_QUIET = 5  # samples in a row that end a pass
_SCANS = 10  # failed scans after which samples are given up


@dataclass(kw_only=True)
class CoreState(SimplexState):
    """The core set S = ``active[:size]`` in order of entry, H = K_SS, and a, g on S."""

    H: NDArray[np.float32]
    core_a: Vector
    core_g: Vector
    classes: tuple[NDArray[np.uint32], NDArray[np.uint32]]
    eps: float
    kappa: float
    sampling: bool
    scans: int = 0
    true_gap: float = math.inf
    next_rows: NDArray[np.intp]
    drawn: NDArray[np.uint32] | None = None  # the last sample

    @property
    def core_set(self) -> NDArray[np.uint32]:
        return self.active[: self.size]

    def is_inside(self, g: float) -> bool:
        """Whether a row of gradient g is in the ball of radius (1 + eps) R."""
        radius = (1.0 + self.eps) ** 2 * (self.kappa - self.p)
        return self.kappa - 2.0 * g + self.p <= radius

    def grow(self, rows: NDArray[Any]) -> None:
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

    def solve(self, stop: Any) -> int:
        """Solve on the core set, to a part of the ball's accuracy; steps made."""
        tol = 0.5 * self.eps * (self.kappa - self.p)
        tol = tol / self.p if self.p > 0.0 else 0.0  # it may underflow
        steps = core.solve_small(
            self.H, self.core_a, self.core_g, max(tol, 1e-12), 100 * self.size, stop
        )
        self.core_a /= self.core_a.sum()
        before = self.a[self.core_set]
        self.a[self.core_set] = self.core_a
        self.p = float((self.core_a * self.core_g).sum())
        if self.sampling:
            self.g[self.core_set] = self.core_g
        else:
            core.add_gradient(
                self.problem.gram.core, self.columns, self.y, self.delta,
                self.core_set.copy(), self.core_a - before, self.g, stop,
            )  # fmt: skip
        return int(steps)


@dataclass(frozen=True)
class CoreVector(KernelSolver):
    """Core vector machine of Tsang, Kwok and Cheung 2005.

    Parameters
    ----------
    eps : float, default=0.01
        Of the first (1 + eps) ball test, at most 1; it halves when no row is outside.
    sample : int or None, default=60
        Look for the farthest point among so many random rows; None: among all.
    balanced : bool, default=False
        Draw the sample half from each class.
    initial : int, default=20
        Random rows, half from each class, that are the first core set.
    """

    eps: float = 0.01
    sample: int | None = 60
    balanced: bool = False
    initial: int = 20

    name: ClassVar[str] = "core-vector"

    def __post_init__(self) -> None:
        check_step("eps", self.eps, 1.0)
        if self.sample is not None:
            check_count("sample", self.sample)
        check_option("balanced", self.balanced, (True, False))
        check_count("initial", self.initial)

    def start(self, problem: Any, rng: Any, warm: Vector | None) -> CoreState:
        simplex = SimplexState.begin(problem, rng)
        state = CoreState(
            **vars(simplex), H=np.zeros((0, 0), dtype=np.float32),
            core_a=np.zeros(0), core_g=np.zeros(0), classes=split_classes(simplex.y),
            eps=self.eps, kappa=float(simplex.diagonal.max()),
            sampling=self.sample is not None, next_rows=np.zeros(0, dtype=np.intp),
        )  # fmt: skip
        begin_anywhere(state, rng, self.initial, warm)
        rows = state.core_set.copy()
        state.size = 0
        state.grow(rows)
        state.core_a = state.a[rows]
        H = state.H[: state.size, : state.size].astype(np.float64)
        state.core_g = (H * state.core_a).sum(axis=1)
        state.measure()
        return state

    def step(self, state: CoreState, stop: Any) -> None:
        state.epochs += 1
        quiet, losses = 0, [0.0]
        for _ in range(_SIZE):
            if stop.requested or stop.expired:
                break
            rows = state.next_rows
            state.next_rows = rows[:0]
            if len(rows) == 0:
                rows, loss = self._farthest(state)
                losses.append(loss)
            if len(rows) == 0:
                quiet += 1
                if quiet < _QUIET and state.sampling:
                    continue
                state.eps *= 0.5
                state.updates += state.solve(stop)
                break
            quiet = 0
            state.grow(rows)
            state.updates += state.solve(stop)
            state.visited += len(rows)
        if state.sampling:
            state.guess(float(np.mean(losses[-_SIZE // 2 :])))
        else:
            state.measure()

    def _farthest(self, state: CoreState) -> tuple[NDArray[np.intp], float]:
        """Rows outside the ball to add, and the mean loss of the rows drawn."""
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
        """The farthest rows outside the ball, by a gradient at all rows."""
        g = state.g.copy()
        g[state.core_set] = math.inf
        many = min(_BATCH, len(g) - state.size)
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
        gap = 1.0 - float(state.g.min()) / state.p
        state.scans += 1
        if state.sampling:
            state.sampling = gap <= 0.5 * state.true_gap and state.scans < _SCANS
        state.true_gap = gap
