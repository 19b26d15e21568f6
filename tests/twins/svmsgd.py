"""Bottou, svmsgd and "Stochastic gradient tricks" (2012).

w <- (1 - eta lambda) w - eta l'(y w.x) y x, eta_t = eta0/(1 + lambda eta0 t),
t = 0, 1, ...
"""

from __future__ import annotations

import numpy as np


class SvmSGD:
    def __init__(self, X, y, lam, phi, omega, eta0):
        self.X, self.y, self.lam, self.phi, self.omega = X, y, lam, phi, omega
        self.eta0 = eta0
        self.t = 0
        self.w = np.zeros(X.shape[1])
        self.b = np.zeros(len(X))  # w = sum b_i y_i x_i
        self.errors = 0
        self.unclear = 0  # decisions that rounding may turn
        self.loss = 0.0

    def step(self, A):
        (i,) = A
        eta = self.eta0 / (1 + self.lam * self.eta0 * self.t)
        m = self.y[i] * (self.w @ self.X[i])
        g = self.omega[i] * self.phi.slope(m)
        self.unclear += abs(m - 1) < 1e-11
        self.errors += g != 0
        self.loss += self.omega[i] * self.phi.value(m)
        self.w = (1 - eta * self.lam) * self.w + eta * g * self.y[i] * self.X[i]
        self.b = (1 - eta * self.lam) * self.b
        self.b[i] += eta * g
        self.t += 1


def cost_after_pass(X, y, lam, phi, omega, sample, eta0):
    """lambda/2 |w|^2 + mean loss on the sample after one pass over it from w = 0."""
    twin = SvmSGD(X, y, lam, phi, omega, eta0)
    for i in sample:
        twin.step([i])
    m = y[sample] * (X[sample] @ twin.w)
    return lam / 2 * twin.w @ twin.w + np.mean(omega[sample] * phi.value(m))


def best_eta0(X, y, lam, phi, omega, sample):
    """Doubling or halving from 1 for as long as the cost falls.

    And whether it does so, each time, by more than rounding.
    """
    clear = True

    def falls(old, new):
        nonlocal clear
        costs = [
            cost_after_pass(X, y, lam, phi, omega, sample, eta0) for eta0 in (old, new)
        ]
        clear &= bool(abs(costs[1] - costs[0]) > 1e-10 * costs[0])
        return costs[1] < costs[0]

    best = 1.0
    factor = 2.0 if falls(1.0, 2.0) else 0.5
    while falls(best, best * factor):
        best *= factor
    return best, clear
