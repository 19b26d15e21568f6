"""Shalev-Shwartz and Zhang, JMLR 14 (2013), on the paper's scale.

P(w) = (1/n) sum omega_i phi(y_i w.x_i) + lambda/2 |w|^2,  w = sum a_i x_i/(lambda n)

The paper has omega_i = 1 and no weights; a_i carries the sign of y_i.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .losses import Array, Phi, Rows
from .pegasos import HINGE


def delta(phi: Phi, omega: float, y: float, s: float, q: float, a: float) -> float:
    """Return the best step of a_i (section 5.2), s = x.w, q = |x|^2/(lambda n)."""
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


class SDCATwin:
    """Ascent of the dual in one variable a step."""

    def __init__(
        self, X: Array, y: Array, lam: float, phi: Phi = HINGE,
        omega: Array | None = None,
    ):  # fmt: skip
        self.X, self.y, self.lam, self.phi = X, y, lam, phi
        self.omega = np.ones(len(X)) if omega is None else omega
        self.n = len(X)
        self.a = np.zeros(self.n)
        self.w = np.zeros(X.shape[1])
        self.past: list[Array] = []  # a^(0), a^(1), ...: before every step

    def visit(self, i: int) -> None:
        """Make one step of procedure SDCA, on row i."""
        x, scale = self.X[i], self.lam * self.n
        self.past.append(self.a.copy())
        s, q = x @ self.w, x @ x / scale
        step = delta(self.phi, self.omega[i], self.y[i], s, q, self.a[i])
        self.a[i] += step
        self.w = self.w + step * x / scale

    def modified_sgd(self, order: Rows) -> Iterator[None]:
        """Run procedure Modified-SGD: the t-th row is seen as if there were t in all.

        Yields after every row. w^(t) = sum_{i<=t} a_i x_i/(lambda t) all along; the
        point it hands to SDCA is the one of all n rows.
        """
        w = np.zeros(self.X.shape[1])
        for t, i in enumerate(order, start=1):
            x, scale = self.X[i], self.lam * t
            s, q = x @ w, x @ x / scale
            self.a[i] = delta(self.phi, self.omega[i], self.y[i], s, q, 0.0)
            w = self.X.T @ self.a / scale
            self.w = self.X.T @ self.a / (self.lam * self.n)
            yield

    def average(self, T0: int) -> Array:
        """Return the mean of a^(t-1) over T0 < t <= T."""
        return np.mean(self.past[T0:], axis=0)
