"""Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), Fig. 3.

min lambda/2 |w|^2 + (1/n) sum_i omega_i phi(y_i w.x_i); the paper has the hinge, so
slope = [m < 1], omega_i = 1 and offset = 0. K holds k_ij, or k_ij + 1 with a bias.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .losses import Array, Rows


class KernelPegasosTwin:
    """Pegasos in the coefficients of the rows; a step counts the errors of its rows."""

    def __init__(
        self, K: Array, y: Array, lam: float, slope: Callable[[Array], Array],
        omega: Array, offset: int = 0, budget: int | None = None,
    ):  # fmt: skip
        self.K, self.y, self.lam, self.slope, self.omega = K, y, lam, slope, omega
        self.s, self.t, self.budget = np.zeros(len(y)), offset, budget
        self.past: list[Array] = []  # coefficients of w_1, w_2, ...

    def step(self, A: Rows) -> Array:
        """Make step t on the rows A; return the slopes at their decisions before it."""
        self.past.append(self.alpha())
        decisions = self.K[A] @ (self.alpha() * self.y)
        self.t += 1
        slopes = self.slope(self.y[A] * decisions)
        np.add.at(self.s, A, self.omega[A] * slopes / len(A))
        if self.budget and np.count_nonzero(self.s) > self.budget:
            used = np.flatnonzero(self.s)
            self.s[used[np.argmin(self.s[used])]] = 0.0
        return slopes

    def alpha(self) -> Array:
        """Return the coefficients of w_t: w_t = sum_i alpha_i y_i phi(x_i)."""
        return self.s / (self.lam * self.t) if self.t > 0 else self.s.copy()

    def average(self) -> Array:
        """Return the coefficients of the mean of w_1 ... w_T."""
        return np.mean(self.past, axis=0)
