"""Nanculef, Frandi, Sartori and Allende, arXiv 1304.1014, and MDM.

max f(a) = -a'Ka over the simplex, with g = -2 Ka the gradient and K_ij the whole
matrix, diagonal term included. Everything is recomputed in every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from .losses import Array, Rows

Values = Array | Mapping[int, float]


class FrankWolfeTwin:
    """The methods "fw", "mfw", "swap", "swap-2o" and "mdm"."""

    def __init__(self, K: Array, a: Array, method: str, ranking: str = "clipped"):
        self.K, self.a, self.method, self.ranking = K, a.copy(), method, ranking
        self.last = "none", False  # kind of the last step, and whether it drops j

    def f(self, a: Array) -> float:
        """Return the objective."""
        return float(-a @ self.K @ a)

    def larger(self, one: float, other: float) -> bool:
        """Return whether one number is larger; every choice of a step asks this."""
        return one > other

    def best(self, values: Values, among: Iterable[int]) -> int:
        """Return the index of the largest value among some."""
        return int(max(among, key=lambda k: values[k]))

    def line_search(self, d: Array, longest: float) -> float:
        """Return the maximiser of f(a + t d) over 0 <= t <= longest."""
        slope, bend = float(-2 * (self.K @ self.a) @ d), float(2 * d @ self.K @ d)
        return min(slope / bend, longest) if bend > 0 else longest

    def gap(self, candidates: Rows) -> float:
        """Return the gap of the paper's stop, 2(p - min Ka), over candidates."""
        g = -2 * self.K @ self.a
        return float(g[candidates].max() - g @ self.a)

    def step(self, candidates: Rows | None = None) -> bool:
        """Make one step whose toward vertex is the best of the candidates."""
        a, unit = self.a, np.eye(len(self.a))
        g = -2 * self.K @ a
        i = self.best(g, range(len(a)) if candidates is None else candidates)
        if not self.larger(g[i], float(g @ a)):
            return False
        kind, direction, longest, j = "toward", unit[i] - a, 1.0, i
        if self.method != "fw":
            active = np.flatnonzero(a > 0)
            second = self.method == "swap-2o"
            j = self.second_order(g, i, active) if second else self.best(-g, active)
        if self.method == "mfw" and self.larger(2 * float(g @ a), g[i] + g[j]):
            kind, direction, longest = "away", a - unit[j], a[j] / (1 - a[j])
        t = self.line_search(direction, longest)
        swaps = self.method in ("swap", "swap-2o", "mdm") and j != i
        if swaps and self.larger(g[i], g[j]):
            swap = unit[i] - unit[j]
            s = self.line_search(swap, a[j])
            f = self.f(a + t * direction)
            if self.method == "mdm" or not self.larger(f, self.f(a + s * swap)):
                kind, direction, longest, t = "swap", swap, a[j], s
        self.a = a + t * direction
        self.last = kind, kind != "toward" and t == longest
        if self.last[1]:
            self.a[j] = 0.0
        return True

    def second_order(self, g: Array, i: int, active: Rows) -> int:
        """Return the active j whose swap gains most, by the whole step or the cut one.

        Without a swap that gains anything it is i.
        """
        K, gains = self.K, {}
        for j in active:
            slope, bend = g[i] - g[j], 2 * (K[i, i] - 2 * K[i, j] + K[j, j])
            if slope > 0 and j != i:
                whole = slope / bend
                t = whole if self.ranking == "paper" else min(whole, self.a[j])
                gains[int(j)] = t * slope - t**2 * bend / 2
        return self.best(gains, gains) if gains else i
