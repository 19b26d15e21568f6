"""Panagiotakopoulos and Tsampouka 2013, arXiv 1304.6383, section 3.

J(w) = 1/2 |w|^2 + C sum_k omega_k max(0, 1 - w.y_k), y_k = l_k x_k, lambda = 1/(Cm)

The paper has omega_k = 1 and no weights. No formula for multiple updates here:
the row is presented l times in a row.
"""

from __future__ import annotations

import numpy as np


def multiplicity(T):
    """SGD-m presents every pattern 5 times in the T-th epoch if 0 < T mod 9 < 5."""
    return 5 if 0 < T % 9 < 5 else 1


class SGD:
    def __init__(self, X, y, C, omega):
        self.Y = y[:, None] * X
        self.m = len(X)
        self.C, self.omega = C, omega
        self.lam = 1.0 / (C * self.m)
        self.a = np.zeros(X.shape[1])
        self.t = 0
        self.I = np.zeros(self.m, dtype=int)  # margin errors of every pattern
        self.M = 0.0  # all margin errors, weighted
        self.loss = 0.0  # of the running epoch
        self.unclear = 0  # decisions that rounding may turn

    def present(self, k):
        p, theta = self.a @ self.Y[k], self.lam * self.t
        self.unclear += 0 < abs(p - theta) < 1e-11 * theta
        if p <= theta and self.omega[k] > 0:
            self.a = self.a + self.omega[k] * self.Y[k]
            self.I[k] += 1
            self.M += self.omega[k]
        self.t += 1

    def visit(self, k, times=1):
        p, theta = self.a @ self.Y[k], self.lam * self.t
        if p <= theta:
            self.loss += self.omega[k] * (1.0 - p / theta if self.t > 0 else 1.0)
        for _ in range(times):
            self.present(k)

    def epoch(self, order, times=1):
        self.loss = 0.0
        for k in order:
            self.visit(k, times)

    @property
    def w(self):
        return self.a / (self.lam * self.t)

    @property
    def J(self):
        """The running estimate of SGD-s, from the inner products at the visits."""
        return 0.5 * self.w @ self.w + self.C * self.loss

    @property
    def L(self):
        """L_T of Proposition 2, T = t/m epochs."""
        T = self.t / self.m
        return self.C * self.M / T - 0.5 * self.w @ self.w

    @property
    def duals(self):
        return self.C * self.omega * self.I / (self.t / self.m)
