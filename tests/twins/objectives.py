"""The papers' losses with what the dual has of them, and both objectives."""

from __future__ import annotations

import numpy as np

from dualgap.papers.twins import losses


class Phi(losses.Phi):
    def conjugate(self, b):
        """Return phi*(-b) = max over m of -b m - phi(m)."""
        if b < 0 or (self.name != "squared_hinge" and b > 1):
            return np.inf
        if self.name == "squared_hinge":
            return -b + b * b / 4
        return -b + self.gamma * b * b / 2

    def box(self, c):
        """Return U_i of the dual on the scale 1/2 |w|^2 + sum c_i phi."""
        return np.where(c > 0, np.inf, 0.0) if self.name == "squared_hinge" else c

    def diagonal(self, c):
        """Return D_ii: 1/(2C) for the squared hinge, gamma/C for the smoothed one."""
        k = 0.5 if self.name == "squared_hinge" else self.gamma
        return np.where(c > 0, k / np.where(c > 0, c, 1.0), 0.0)


def primal(X, y, c, phi, w):
    """Return P(w) = 1/2 |w|^2 + sum_i c_i phi(y_i w.x_i)."""
    return float(0.5 * w @ w + c @ phi.value(y * (X @ w)))


def dual(X, y, c, phi, a):
    """Return D(a) = sum a_i - 1/2 |sum a_i y_i x_i|^2 - 1/2 sum D_ii a_i^2."""
    w = X.T @ (a * y)
    return float(a.sum() - 0.5 * w @ w - 0.5 * phi.diagonal(c) @ (a * a))
