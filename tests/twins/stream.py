"""Dual coordinate ascent over batches that come one at a time, in NumPy."""

from __future__ import annotations

import numpy as np

from .dcd import SleepingDCD


class Stream:
    """All duals in one dictionary of batches; w is the sum over all of them."""

    def __init__(self, d):
        self.w = np.zeros(d)
        self.batches = {}  # name: (X, y, D, a)

    def learn(self, name, X, y, U, D, random, sweeps):
        """Sweep one batch; it goes on from its duals if it came before."""
        inner = SleepingDCD(X, y, U, D)
        if name in self.batches:
            inner.a = self.batches[name][3]
        inner.w = self.w
        for _ in range(sweeps):
            inner.epoch(inner.order(random))
        self.w = inner.w
        self.batches[name] = (X, y, D, inner.a)

    def dual(self):
        """sum a - 1/2 sum D a^2 - 1/2 |sum a y x|^2, from the rows."""
        v, value = 0.0 * self.w, 0.0
        for X, y, D, a in self.batches.values():
            v += (a * y) @ X
            value += a.sum() - 0.5 * (D * a) @ a
        return value - 0.5 * v @ v


def passive_aggressive(X, y, C, squared):
    """PA-I, or PA-II if `squared` (Crammer et al., JMLR 7, 2006, figure 1)."""
    w = np.zeros(X.shape[1])
    for x, label in zip(X, y, strict=True):
        loss = max(0.0, 1.0 - label * (w @ x))
        hard = min(C, loss / (x @ x))
        tau = loss / (x @ x + 1.0 / (2.0 * C)) if squared else hard
        w = w + tau * label * x
    return w
