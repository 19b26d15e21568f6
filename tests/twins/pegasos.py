"""Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), Figs. 1 and 2.

min lambda/2 |w|^2 + (1/n) sum_i omega_i phi(y_i w.x_i)

The paper has the hinge and omega_i = 1.
"""

from __future__ import annotations

import numpy as np


class Pegasos:
    def __init__(self, X, y, lam, phi, omega, project=False):
        self.X, self.y, self.lam, self.phi, self.omega = X, y, lam, phi, omega
        self.project = project
        self.t = 0
        self.w = np.zeros(X.shape[1])
        self.b = np.zeros(len(X))  # w = sum b_i y_i x_i
        self.past = []  # w_1, w_2, ...: the point before every step
        self.past_b = []
        self.errors = 0
        self.unclear = 0  # decisions that rounding may turn
        self.loss = 0.0

    def eta(self):
        return 1.0 / (self.lam * self.t)

    def step(self, A):
        """Step t on the rows A."""
        self.t += 1
        self.past.append(self.w)
        self.past_b.append(self.b)
        m = self.y[A] * (self.X[A] @ self.w)
        slope = self.omega[A] * self.phi.slope(m)  # [m < 1] for the hinge
        self.unclear += np.count_nonzero(abs(m - 1) < 1e-11)
        self.errors += np.count_nonzero(slope)
        self.loss += self.omega[A] @ self.phi.value(m)
        eta, k = self.eta(), len(A)
        self.w = (1 - eta * self.lam) * self.w
        self.b = (1 - eta * self.lam) * self.b
        for i, g in zip(A, slope, strict=True):
            self.w = self.w + eta / k * g * self.y[i] * self.X[i]
            self.b[i] += eta / k * g
        norm = np.linalg.norm(self.w)
        if self.project and norm > 0:
            shrink = min(1.0, 1.0 / (np.sqrt(self.lam) * norm))
            self.w, self.b = shrink * self.w, shrink * self.b

    def average(self):
        """Mean of w_1 ... w_T, and of its coefficients."""
        return np.mean(self.past, axis=0), np.mean(self.past_b, axis=0)
