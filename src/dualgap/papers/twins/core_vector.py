"""Tsang, Kwok and Cheung, JMLR 6 (2005), with a QP of pair steps.

K is the whole matrix, diagonal term included; kappa = max K_ii.
"""

from __future__ import annotations

import numpy as np

from .losses import Array, Rows


def pair_steps(H: Array, a: Array, tol: float, most: int) -> Array:
    """Minimise a'Ha/2 over the simplex from a, by the pairs that gain most."""
    a = a.copy()
    for _ in range(most):
        g = H @ a
        i = int(np.argmin(g))
        if g[a > 0].max() - g[i] <= tol * (a @ g):
            break
        slope = np.where(a > 0, g - g[i], 0.0)
        bend = H[i, i] - 2 * H[i] + np.diag(H)
        bend[i] = 1.0
        length = np.minimum(slope / bend, a)
        j = int(np.argmax(length * slope - length**2 * bend / 2))
        if length[j] <= 0.0:
            break
        a[i] += length[j]
        a[j] = a[j] - length[j] if length[j] < a[j] else 0.0
    return a


class CoreVectorTwin:
    """The smallest ball around the rows, from a core set that grows by the farthest."""

    def __init__(self, K: Array, a: Array, rows: Rows, eps: float):
        self.K, self.a, self.eps = K, a.copy(), eps
        self.rows = [int(i) for i in rows]
        self.kappa = np.diag(K).max()

    def distances(self) -> tuple[Array, float]:
        """Return the squared distances from the centre and the (1 + eps) radius."""
        K, a = self.K, self.a
        p = a @ K @ a
        radius = (1 + self.eps) ** 2 * (self.kappa - p)
        return self.kappa - 2 * K @ a + p, float(radius)

    def outside(self, candidates: Rows) -> list[int]:
        """Return the candidates beyond the (1 + eps) ball, the farthest first."""
        distance, limit = self.distances()
        beyond = distance > limit
        found = [int(i) for i in candidates if beyond[i] and i not in self.rows]
        return sorted(found, key=lambda i: -distance[i])

    def solve(self) -> None:
        """Find the ball of the core set."""
        p = self.a @ self.K @ self.a
        tol = 0.5 * self.eps * (self.kappa - p) / p
        H = self.K[np.ix_(self.rows, self.rows)]
        a = pair_steps(H, self.a[self.rows], tol, 100 * len(self.rows))
        self.a[self.rows] = a / a.sum()

    def add(self, rows: Rows) -> None:
        """Add rows to the core set, and solve for its ball."""
        self.rows += [int(i) for i in rows]
        self.solve()

    def tighten(self) -> None:
        """Halve eps, once no candidate is outside."""
        self.eps /= 2
        self.solve()
