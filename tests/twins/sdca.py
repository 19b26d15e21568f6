"""Shalev-Shwartz and Zhang, JMLR 14 (2013), on the paper's scale.

P(w) = (1/n) sum omega_i phi(y_i w.x_i) + lambda/2 |w|^2,  w = sum a_i x_i/(lambda n)

The paper has omega_i = 1 and no weights; a_i carries the sign of y_i.
"""

from __future__ import annotations

import numpy as np


def delta(phi, omega, y, s, q, a):
    """Argmax of the one-row dual (section 5.2), s = x.w, q = |x|^2/(lambda n)."""
    if omega == 0.0:
        return -a
    if phi.name == "squared_hinge":
        k = 1.0 / (2.0 * omega)
        return y * max(0.0, (1.0 - s * y - k * a * y) / (q + k) + a * y) - a
    gamma = phi.gamma / omega
    if q + gamma == 0.0:
        return y * omega - a
    step = (1.0 - s * y - gamma * a * y) / (q + gamma)
    return y * max(0.0, min(omega, step + a * y)) - a


def one_row_dual(phi, omega, y, s, q, a, b):
    """Return the value that `delta` maximises, at a + Delta = y b, up to a constant:

    -omega phi*(-b/omega) - (lambda n/2) |w + Delta x/(lambda n)|^2
    """
    step = y * b - a
    return -omega * phi.conjugate(b / omega) - step * s - q * step**2 / 2


class SDCA:
    def __init__(self, X, y, lam, phi, omega):
        self.X, self.y, self.lam, self.phi, self.omega = X, y, lam, phi, omega
        self.n = len(X)
        self.a = np.zeros(self.n)
        self.w = np.zeros(X.shape[1])
        self.past = []  # a^(0), a^(1), ...: the point before every step

    def gap_share(self, i):
        """phi_i(w.x_i) + phi_i*(-a_i) + a_i w.x_i: row i's part of n (P - D)."""
        s, a, omega, y = self.X[i] @ self.w, self.a[i], self.omega[i], self.y[i]
        if omega == 0.0:
            return 0.0
        conjugate = self.phi.conjugate(a * y / omega)
        return omega * (self.phi.value(y * s) + conjugate) + a * s

    def visit(self, i):
        """Procedure SDCA, one step on row i."""
        x, scale = self.X[i], self.lam * self.n
        self.past.append(self.a.copy())
        step = delta(
            self.phi, self.omega[i], self.y[i], x @ self.w, x @ x / scale, self.a[i]
        )
        self.a[i] += step
        self.w = self.w + step * x / scale

    def modified_sgd(self, order):
        """Procedure Modified-SGD: the t-th row seen as if there were t in all.

        Yields after every row. w^(t) = sum_{i<=t} a_i x_i/(lambda t) all along; the
        point it hands to SDCA is the one of all n rows.
        """
        w = np.zeros(self.X.shape[1])
        for t, i in enumerate(order, start=1):
            x, scale = self.X[i], self.lam * t
            self.a[i] = delta(
                self.phi, self.omega[i], self.y[i], x @ w, x @ x / scale, 0.0
            )
            w = self.X.T @ self.a / scale
            self.w = self.X.T @ self.a / (self.lam * self.n)
            yield

    def average(self, T0):
        """Mean of a^(t-1) over T0 < t <= T."""
        return np.mean(self.past[T0:], axis=0)
