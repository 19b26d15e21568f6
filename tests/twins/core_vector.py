"""Tsang, Kwok and Cheung, JMLR 6 (2005), with a QP of pair steps.

K is the whole matrix, diagonal term included; kappa = max K_ii.
"""

from __future__ import annotations

import numpy as np


def pair_steps(H, a, tol, most):
    """min a'Ha/2 over the simplex, warm; pairs by the gain of the clipped step."""
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


class CoreVector:
    def __init__(self, K, a, rows, eps):
        self.K, self.a, self.rows, self.eps = K, a.copy(), list(rows), eps
        self.kappa = np.diag(K).max()

    def distances(self):
        """Squares of those from the centre, and of the radius of the (1 + eps) ball."""
        K, a = self.K, self.a
        p = a @ K @ a
        return self.kappa - 2 * K @ a + p, (1 + self.eps) ** 2 * (self.kappa - p)

    def outside(self, candidates):
        """Candidates beyond the (1 + eps) ball, the farthest first."""
        distance, limit = self.distances()
        beyond = distance > limit
        found = [i for i in candidates if beyond[i] and i not in self.rows]
        return sorted(found, key=lambda i: -distance[i])

    def solve(self):
        p = self.a @ self.K @ self.a
        tol = 0.5 * self.eps * (self.kappa - p) / p
        H = self.K[np.ix_(self.rows, self.rows)]
        a = pair_steps(H, self.a[self.rows], tol, 100 * len(self.rows))
        self.a[self.rows] = a / a.sum()

    def add(self, rows):
        self.rows += [int(i) for i in rows]
        self.solve()

    def tighten(self):
        self.eps /= 2
        self.solve()
