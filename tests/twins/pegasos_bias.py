"""Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), section 6.

min lambda/2 |w|^2 + (1/n) sum_i omega_i phi(y_i (w.x_i + b))
"""

from __future__ import annotations

import numpy as np

from . import pegasos


class FreeBias(pegasos.Pegasos):
    """Pegasos with a bias outside of the norm; `slopes` says how it moves."""

    bias = 0.0

    def step(self, A):
        self.t += 1
        slope = self.slopes(A)
        m = self.y[A] * (self.X[A] @ self.w + self.at)
        self.errors += np.count_nonzero(slope)
        self.loss += self.omega[A] @ self.phi.value(m)
        k = len(A)
        self.w = (1 - 1 / self.t) * self.w
        self.b = (1 - 1 / self.t) * self.b
        for i, g in zip(A, slope, strict=True):
            self.w = self.w + self.eta() / k * g * self.y[i] * self.X[i]
            self.b[i] += self.eta() / k * g


class Subgradient(FreeBias):
    def slopes(self, A):
        self.at = self.bias
        m = self.y[A] * (self.X[A] @ self.w + self.bias)
        self.unclear += np.count_nonzero(abs(m - 1) < 1e-11)
        slope = self.omega[A] * self.phi.slope(m)
        self.bias += slope @ self.y[A] / (len(A) * np.sqrt(self.t))
        return slope


class Batch(FreeBias):
    """The hinge: the b that is best for A.

    The derivative in b, -sum of the omega_i of the positive rows with larger kinks plus
    that of the negative rows with smaller ones, crosses 0 at the best kink. Its row
    takes what is missing there. Equal kinks count in the order of the batch.
    """

    def slopes(self, A):
        y, omega = self.y[A], self.omega[A]
        kinks = y - self.X[A] @ self.w
        order = np.argsort(kinks, kind="stable")
        apart = np.diff(kinks[order])
        self.unclear += np.count_nonzero((0 < apart) & (apart < 1e-11))
        for p, j in enumerate(order):
            before, after = order[:p], order[p + 1 :]
            slope = np.zeros(len(A))
            slope[before] = np.where(y[before] < 0, omega[before], 0.0)
            slope[after] = np.where(y[after] > 0, omega[after], 0.0)
            slope[j] = -y[j] * (slope @ y)
            if -1e-12 <= slope[j] <= omega[j] + 1e-12:
                break
        slope[j] = np.clip(slope[j], 0.0, omega[j])
        self.at = self.bias = kinks[j]
        return slope
