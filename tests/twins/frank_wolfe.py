"""Nanculef, Frandi, Sartori and Allende, arXiv 1304.1014, and MDM.

max -a'Ka over the simplex, with g = -2 Ka the gradient and K_ij the whole matrix,
diagonal term included. Everything is recomputed in every step. `clear` says whether
the decisions of the last step were: none between numbers that rounding may exchange.
"""

from __future__ import annotations

import numpy as np

TIE = 1e-9  # relative: gradients round in float64, and steps make some of them equal


class FrankWolfe:
    def __init__(self, K, a, method, ranking="clipped"):
        self.K, self.a, self.method, self.ranking = K, a.copy(), method, ranking
        self.swaps = self.drops = self.aways = 0  # swap-adds are swaps - (their drops)
        self.clear = True

    def f(self, a):
        return -a @ self.K @ a

    def differ(self, one, other, size=None):
        """Note it if these two are all but equal."""
        size = max(abs(one), abs(other)) if size is None else size
        self.clear &= bool(abs(one - other) > TIE * size)

    def best(self, values, among, size):
        """Argmax among some; the runner-up is to be lower."""
        order = sorted(among, key=lambda k: -values[k])
        if len(order) > 1:
            self.differ(values[order[0]], values[order[1]], size)
        return order[0]

    def line_search(self, d, longest):
        """The maximiser of f(a + t d) over 0 <= t <= longest."""
        slope, bend = -2 * (self.K @ self.a) @ d, 2 * d @ self.K @ d
        if bend > 0:
            self.differ(slope / bend, longest)
        return min(slope / bend, longest) if bend > 0 else longest

    def gap(self, candidates):
        """Return the gap of the paper's stop, 2(p - min g), over candidates."""
        gradient = -2 * self.K @ self.a
        return gradient[candidates].max() - gradient @ self.a

    def step(self, candidates=None):
        """One step whose toward vertex is the best of the candidates."""
        K, a, n = self.K, self.a, len(self.a)
        candidates = np.arange(n) if candidates is None else np.asarray(candidates)
        gradient, self.clear = -2 * K @ a, True
        size = np.abs(gradient).max()
        i = self.best(gradient, set(candidates.tolist()), size)
        self.differ(gradient[i], gradient @ a, size)
        if gradient[i] <= gradient @ a:
            return False
        active = np.flatnonzero(a > 0)
        unit = np.eye(n)
        if self.method != "swap-2o":
            j = self.best(-gradient, active, size)
        toward = unit[i] - a
        t = self.line_search(toward, 1.0)
        choice = (a + t * toward, "toward", None, False)

        if self.method == "mfw":
            self.differ(gradient[i] + gradient[j], 2 * gradient @ a, size)
        if (
            self.method == "mfw"
            and gradient[i] - gradient @ a < gradient @ a - gradient[j]
        ):
            longest = a[j] / (1 - a[j])
            t = self.line_search(a - unit[j], longest)
            choice = (a + t * (a - unit[j]), "away", j, t == longest)

        if self.method in ("swap", "swap-2o", "mdm"):
            if self.method == "swap-2o":
                j = self.second_order(gradient, i, active)
            if j is not None:
                self.differ(gradient[i], gradient[j], size)
            if j is not None and gradient[i] > gradient[j]:
                t = self.line_search(unit[i] - unit[j], a[j])
                swapped = a + t * (unit[i] - unit[j])
                if self.method != "mdm":
                    self.differ(self.f(swapped), self.f(choice[0]))
                if self.method == "mdm" or self.f(swapped) >= self.f(choice[0]):
                    choice = (swapped, "swap", j, t == a[j])

        self.a, kind, j, drop = choice
        if drop:
            self.a[j] = 0.0
        self.drops += drop
        self.swaps += kind == "swap"
        self.aways += kind == "away"
        return True

    def second_order(self, gradient, i, active):
        """The active j whose swap gains most, by the whole step or by the one cut."""
        K, gains = self.K, {}
        for j in active:
            slope = gradient[i] - gradient[j]
            if slope <= 0 or j == i:
                continue
            bend = 2 * (K[i, i] - 2 * K[i, j] + K[j, j])
            whole = slope / bend
            length = whole if self.ranking == "paper" else min(whole, self.a[j])
            gains[j] = length * slope - length**2 * bend / 2
        return self.best(gains, gains, max(gains.values())) if gains else None
