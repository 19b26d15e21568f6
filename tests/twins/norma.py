"""Kivinen, Smola and Williamson 2004, linear kernel, nothing truncated.

f_{t+1} = (1 - eta lambda) f_t + eta [y f < 1] y k(x_t, .), eta_t = p/(lambda sqrt t)
"""

from __future__ import annotations

import numpy as np


class NORMA:
    def __init__(self, X, y, lam, phi, omega, p):
        self.X, self.y, self.lam, self.phi, self.omega = X, y, lam, phi, omega
        self.p = p
        self.t = 0
        self.w = np.zeros(X.shape[1])
        self.b = np.zeros(len(X))  # w = sum b_i y_i x_i
        self.errors = 0
        self.unclear = 0  # decisions that rounding may turn
        self.loss = 0.0

    def step(self, A):
        (i,) = A
        self.t += 1
        eta = self.p / (self.lam * np.sqrt(self.t))
        m = self.y[i] * (self.w @ self.X[i])
        g = self.omega[i] * self.phi.slope(m)
        self.unclear += abs(m - 1) < 1e-11
        self.errors += g != 0
        self.loss += self.omega[i] * self.phi.value(m)
        self.w = (1 - eta * self.lam) * self.w + eta * g * self.y[i] * self.X[i]
        self.b = (1 - eta * self.lam) * self.b
        self.b[i] += eta * g
