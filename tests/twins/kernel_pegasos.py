"""Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), Fig. 3.

min lambda/2 |w|^2 + (1/n) sum_i omega_i phi(y_i w.x_i); the paper has the hinge, so
slope = [m < 1], omega_i = 1 and offset = 0. K holds k_ij + 1.
"""

from __future__ import annotations

import numpy as np


class KernelPegasos:
    def __init__(self, K, y, lam, slope, omega, offset=0, budget=None):
        self.K, self.y, self.lam, self.slope, self.omega = K, y, lam, slope, omega
        self.s, self.t, self.budget = np.zeros(len(y)), offset, budget
        self.past = []  # coefficients of w_1, w_2, ...: the point before every step
        self.slopes = [[] for _ in y]  # -l' at every visit to a row
        self.shares = [[] for _ in y]  # and 1/k

    def visit(self, i, slope, k=1):
        self.slopes[i].append(slope)
        self.shares[i].append(1.0 / k)
        self.s[i] += self.omega[i] * slope / k

    def step(self, i):
        self.past.append(self.alpha())
        decision = 0.0
        if self.t > 0:
            decision = (self.s * self.y) @ self.K[:, i] / (self.lam * self.t)
        self.t += 1
        self.visit(i, self.slope(self.y[i] * decision))
        if self.budget and np.count_nonzero(self.s) > self.budget:
            used = np.flatnonzero(self.s)
            self.s[used[np.argmin(self.s[used])]] = 0.0

    def batch(self, A):
        """Step on the rows A: their decisions are those before the step."""
        self.past.append(self.alpha())
        decisions = np.zeros(len(A))
        if self.t > 0:
            decisions = self.K[A] @ (self.s * self.y) / (self.lam * self.t)
        self.t += 1
        for i, decision in zip(A, decisions, strict=True):
            self.visit(i, self.slope(self.y[i] * decision), len(A))

    def alpha(self):
        return self.s / (self.lam * self.t) if self.t > 0 else self.s.copy()

    def average(self):
        return np.mean(self.past, axis=0)

    def mean_slopes(self):
        """Return the mean of -l' over the visits to each row, 0 without any."""
        mean = np.zeros(len(self.y))
        for i, slopes in enumerate(self.slopes):
            if slopes:
                mean[i] = np.average(slopes, weights=self.shares[i])
        return mean
