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


class SignedStream:
    """A stream whose costs have factors by sign, and perhaps with a free bias.

    Changed factors rescale all dual variables of all batches. An unpenalised bias is
    the weight of a constant feature s, from the centre b/s on.
    """

    def __init__(self, d, free):
        self.w, self.bias, self.free = np.zeros(d), 0.0, free
        self.batches = {}  # name: [X, y, c0, a]
        self.factor = np.ones(2)

    def costs(self, y, c0):
        return c0 * np.where(y > 0, self.factor[1], self.factor[0])

    def learn(self, name, X, y, c0, loss, factor, random, sweeps):
        batch = self.batches.setdefault(name, [X, y, c0, np.zeros(len(y))])
        for _, signs, own, a in self.batches.values():
            at_bound = a == loss.upper(self.costs(signs, own))
            a *= np.where(signs > 0, *(factor / self.factor)[::-1])
            cost = own * np.where(signs > 0, factor[1], factor[0])
            np.copyto(a, loss.upper(cost), where=at_bound)
        self.factor = np.array(factor)
        total = sum(self.costs(*batch[1:3]).sum() for batch in self.batches.values())
        own, Z, w = self.costs(y, c0), X, sum(self.sums())
        if self.free:
            s = max(np.sqrt(0.01 * (X * X).sum(axis=1).mean()), total**-0.5)
            Z, last = np.c_[X, np.full(len(y), s)], self.bias / s + s * self.off()
            w = np.append(w, last)
        inner = SleepingDCD(Z, y, loss.upper(own), loss.diagonal(own))
        inner.a, inner.w = batch[3], w
        for _ in range(sweeps):
            inner.epoch(inner.order(random))
        self.w = sum(self.sums())
        if self.free:
            self.bias += own.sum() / total * s * s * self.off()

    def sums(self):
        return [(a * y) @ X for X, y, _, a in self.batches.values()]

    def off(self):
        return sum(a @ y for _, y, _, a in self.batches.values())


def passive_aggressive(X, y, C, squared):
    """PA-I, or PA-II if `squared` (Crammer et al., JMLR 7, 2006, figure 1)."""
    w = np.zeros(X.shape[1])
    for x, label in zip(X, y, strict=True):
        loss = max(0.0, 1.0 - label * (w @ x))
        hard = min(C, loss / (x @ x))
        tau = loss / (x @ x + 1.0 / (2.0 * C)) if squared else hard
        w = w + tau * label * x
    return w
