"""Frank-Wolfe, with away steps (MFW), and with swaps (SWAP, SWAP-2o)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ..losses import Vector
from ..solvers.base import check_count, check_option, new_order
from .base import KernelSolver, KernelState

_STEPS = 1000  # at most, between two looks of the loop


@dataclass(kw_only=True)
class SimplexState(KernelState):
    """A point a of the simplex over the rows with a cost, and g = K~ a there."""

    used: Any
    y: Vector
    delta: Vector
    diagonal: Vector
    a: Vector
    g: Vector

    def row(self, i: int) -> Vector:
        """Row i of the matrix of the quadratic form."""
        k = self.problem.gram.row(int(self.used[i]))[self.used].astype(np.float64)
        k = self.y[i] * self.y * (k + 1.0)
        k[i] += self.delta[i]
        return k

    def finite(self) -> bool:
        return math.isfinite(self.dual)

    def alpha(self) -> Vector:
        """Dual variables ``a / a'g``, shape (n,)."""
        out = np.zeros(self.problem.n)
        out[self.used] = self.a / float(self.a @ self.g)
        return out


@dataclass(frozen=True)
class FrankWolfe(KernelSolver):
    """Base of the methods that move one or two vertices of the simplex at a time.

    Parameters
    ----------
    sample : int, optional
        Look for the best vertex among so many random rows; None: among all.
    balanced : bool, default=False
        Draw the sample half from each class.
    initial : int, default=20
        Random rows whose exact solution is the first point.
    """

    sample: int | None = None
    balanced: bool = False
    initial: int = 20

    def __post_init__(self) -> None:
        if self.sample is not None:
            check_count("sample", self.sample)
        check_option("balanced", self.balanced, (True, False))
        check_count("initial", self.initial)

    @property
    def monotone(self) -> bool:
        return True

    def start(self, problem: Any, rng: Any, warm: Vector | None) -> SimplexState:
        used = np.flatnonzero(problem.cost > 0.0)
        y = problem.y[used].astype(np.float64)
        delta = problem.delta[used]
        diagonal = problem.gram.diagonal()[used] + 1.0 + delta
        a = np.zeros(len(used))
        if warm is not None and warm.sum() > 0.0:
            a[:] = warm[used] / warm.sum()
        else:
            a[int(rng.below(len(used)))] = 1.0
        state = SimplexState(
            problem, rng, new_order(0), used=used, y=y, delta=delta,
            diagonal=diagonal, a=a, g=np.zeros(len(used)),
        )  # fmt: skip
        self.reject(state)
        return state

    def step(self, state: SimplexState, stop: Any) -> None:
        state.epochs += 1
        for _ in range(_STEPS):
            if stop.requested or stop.expired or not self._one(state):
                break
            state.updates += 1
        self._measure(state)

    def _one(self, state: SimplexState) -> bool:
        a, g, diagonal = state.a, state.g, state.diagonal
        p = float(a @ g)
        i = int(np.argmin(g))
        if p - g[i] <= 1e-14 * p:
            return False
        bend = p - 2.0 * g[i] + diagonal[i]
        t = min(1.0, (p - g[i]) / bend)
        gain = t * (p - g[i]) - 0.5 * t * t * bend
        row = state.row(i)
        return self._move(state, p, i, t, gain, row)

    def _move(
        self, state: SimplexState, p: float, i: int, t: float, gain: float, row: Vector
    ) -> bool:
        state.a *= 1.0 - t
        state.a[i] += t
        state.g *= 1.0 - t
        state.g += t * row
        return True

    def _measure(self, state: SimplexState) -> None:
        p = float(state.a @ state.g)
        state.dual = 0.5 / p
        margins = (state.g - state.delta * state.a) / p
        norm = float(state.a @ margins) / p
        slack = np.maximum(0.0, 1.0 - margins)
        state.primal = 0.5 * norm + float((0.5 * slack * slack / state.delta).sum())

    def iterate(self, state: SimplexState) -> tuple[None, Vector]:
        return None, state.alpha()

    def reject(self, state: SimplexState) -> None:
        alpha = np.zeros(state.problem.n)
        alpha[state.used] = state.a
        f = state.problem.combine(alpha)[state.used]
        state.g = state.y * f + state.delta * state.a
        self._measure(state)


@dataclass(frozen=True)
class FW(FrankWolfe):
    """Frank-Wolfe with exact line search."""

    name: ClassVar[str] = "fw"


@dataclass(frozen=True)
class MFW(FrankWolfe):
    """Frank-Wolfe with away steps."""

    name: ClassVar[str] = "mfw"


@dataclass(frozen=True)
class SWAP(FrankWolfe):
    """Swaps with the vertex of first order."""

    name: ClassVar[str] = "swap"


@dataclass(frozen=True)
class SWAP2o(FrankWolfe):
    """Swaps with the vertex of second order.

    Parameters
    ----------
    ranking : {"clipped", "paper"}, default="clipped"
        Rank vertices by the gain of the step that fits, or of the one that would.
    """

    ranking: Literal["clipped", "paper"] = "clipped"

    name: ClassVar[str] = "swap-2o"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_option("ranking", self.ranking, ("clipped", "paper"))

    def _move(
        self, state: SimplexState, p: float, i: int, t: float, gain: float, row: Vector
    ) -> bool:
        a, g, diagonal = state.a, state.g, state.diagonal
        active = np.flatnonzero((a > 0.0) & (g > g[i]))
        bend = np.maximum(diagonal[i] + diagonal[active] - 2.0 * row[active], 1e-12)
        lead = g[active] - g[i]
        length = np.minimum(lead / bend, a[active])
        gains = length * lead - 0.5 * length**2 * bend
        best = int(np.argmax(gains if self.ranking == "clipped" else lead**2 / bend))
        if gains[best] < gain:
            return super()._move(state, p, i, t, gain, row)
        j, s = int(active[best]), float(length[best])
        state.g += s * (row - state.row(j))
        a[i] += s
        a[j] = a[j] - s if s < a[j] else 0.0
        return True


@dataclass(frozen=True)
class Auto(SWAP2o):
    """The best method known for the problem at hand: SWAP-2o on the full gradient."""

    name: ClassVar[str] = "auto"
