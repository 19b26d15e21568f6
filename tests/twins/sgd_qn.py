"""Bordes, Bottou and Gallinari 2009, and the authors' later source.

Dense vectors and gradients as they stand: g_t(w) = lambda w - omega l'(y w.x) y x is
the gradient of the regularised loss of one row, l' = -dl/dm >= 0.
"""

from __future__ import annotations

import numpy as np


class SGDQN:
    def __init__(self, X, y, lam, phi, omega, skip, t0, update):
        self.X, self.y, self.lam, self.phi, self.omega = X, y, lam, phi, omega
        self.skip, self.t0, self.update = skip, t0, update
        self.w = np.zeros(X.shape[1])
        self.t, self.r, self.count = 0, 2, skip
        self.refresh = False
        first = 1 / lam if update == "2009" else 1 / (lam * t0)
        self.B = np.full(X.shape[1], first)
        self.w_1 = np.zeros(X.shape[1])
        self.errors = 0
        self.unclear = 0  # decisions that rounding may turn
        self.loss = 0.0
        self.refreshes = 0  # that met a change of the loss's slope

    def g(self, w, i):
        m = self.y[i] * (w @ self.X[i])
        self.unclear += abs(m - 1) < 1e-11
        return self.omega[i] * self.phi.slope(m)

    def visit(self, i):
        m = self.y[i] * (self.w @ self.X[i])
        self.errors += self.g(self.w, i) != 0
        self.loss += self.omega[i] * self.phi.value(m)
        if self.update == "2009":
            self.visit_2009(i)
        else:
            self.visit_corrected(i)
        self.t += 1

    def visit_2009(self, i):
        x, y, lam, rate = self.X[i], self.y[i], self.lam, 1 / (self.t + self.t0)
        old = self.w
        self.w = old + rate * self.g(old, i) * y * self.B * x
        if self.refresh:
            change = self.w - old
            p = lam * change - (self.g(self.w, i) - self.g(old, i)) * y * x
            ratio = np.full(len(x), 1 / lam)
            ratio[change != 0] = change[change != 0] / p[change != 0]
            self.B = self.B + 2 / self.r * (ratio - self.B)
            self.B = np.maximum(self.B, 1e-2 / lam)
            self.r += 1
            self.refreshes += self.g(self.w, i) != self.g(old, i)
            self.refresh = False
        self.regularise(rate)

    def visit_corrected(self, i):
        x, y, lam = self.X[i], self.y[i], self.lam
        g = self.g(self.w, i)
        if self.refresh:
            change, fall = self.w - self.w_1, (self.g(self.w_1, i) - g) * y * x
            ratio = np.full(len(x), lam)
            moved = (fall != 0) & (change != 0)
            ratio[moved] = lam + fall[moved] / change[moved]
            ratio[(fall != 0) & (change == 0)] = 100 * lam
            ratio = np.clip(ratio, 0.1 * lam, 100 * lam)
            self.B = 1 / (1 / self.B + self.skip * ratio)
            self.refreshes += (fall != 0).any()
            self.refresh = False
        if self.count <= 1:
            self.w_1 = self.w
        self.regularise(1.0)
        self.w = self.w + g * y * self.B * x

    def regularise(self, rate):
        self.count -= 1
        if self.count <= 0:
            self.count = self.skip
            self.refresh = True
            shrink = 1 - self.skip * rate * self.lam * self.B
            self.w = np.maximum(shrink, 0.0) * self.w


def costs_by_t0(X, y, lam, phi, omega, sample, skip, update):
    """{t0: cost} of 1, 10, ..., 1e10 after one pass over the sample from w = 0."""
    costs = {}
    for t0 in 10.0 ** np.arange(11):
        twin = SGDQN(X, y, lam, phi, omega, skip, t0, update)
        for i in sample:
            twin.visit(i)
        m = y[sample] * (X[sample] @ twin.w)
        loss = np.mean(omega[sample] * phi.value(m))
        costs[t0] = lam / 2 * twin.w @ twin.w + loss
    return costs
