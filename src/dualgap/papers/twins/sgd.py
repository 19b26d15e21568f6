"""Panagiotakopoulos and Tsampouka 2013, arXiv 1304.6383, section 3.

J(w) = 1/2 |w|^2 + C sum_k omega_k max(0, 1 - w.y_k), y_k = l_k x_k, lambda = 1/(Cm)

The paper has omega_k = 1 and no weights. No formula for multiple updates here:
the row is presented l times in a row.
"""

from __future__ import annotations

import numpy as np

from .losses import Array, Rows


def multiplicity(T: int) -> int:
    """Return how often SGD-m presents a pattern in the T-th epoch: 5 or 1 times."""
    return 5 if 0 < T % 9 < 5 else 1


class SGDTwin:
    """SGD-s; with `multiplicity` SGD-m; with independent draws for the order SGD-r."""

    def __init__(self, X: Array, y: Array, C: float, omega: Array | None = None):
        self.Y = y[:, None] * X
        self.m = len(X)
        self.C, self.omega = C, np.ones(self.m) if omega is None else omega
        self.lam = 1.0 / (C * self.m)
        self.a = np.zeros(X.shape[1])
        self.t = 0
        self.I = np.zeros(self.m, dtype=int)  # margin errors of every pattern
        self.M = 0.0  # all margin errors, weighted
        self.loss = 0.0  # of the running epoch

    def present(self, k: int) -> None:
        """Present pattern k once: a margin error adds it to a = lambda t w."""
        if self.a @ self.Y[k] <= self.lam * self.t and self.omega[k] > 0:
            self.a = self.a + self.omega[k] * self.Y[k]
            self.I[k] += 1
            self.M += self.omega[k]
        self.t += 1

    def visit(self, k: int, times: int = 1) -> None:
        """Present pattern k several times in a row, and note its loss."""
        p, theta = self.a @ self.Y[k], self.lam * self.t
        if p <= theta:
            self.loss += self.omega[k] * (1.0 - p / theta if self.t > 0 else 1.0)
        for _ in range(times):
            self.present(k)

    def epoch(self, order: Rows, times: int = 1) -> None:
        """Visit all patterns in this order."""
        self.loss = 0.0
        for k in order:
            self.visit(int(k), times)

    @property
    def w(self) -> Array:
        """The model w_t = a_t/(lambda t)."""
        return self.a / (self.lam * self.t)

    @property
    def J(self) -> float:
        """The running estimate of SGD-s, from the inner products at the visits."""
        return float(0.5 * self.w @ self.w + self.C * self.loss)

    @property
    def L(self) -> float:
        """L_T of Proposition 2, T = t/m epochs."""
        T = self.t / self.m
        return float(self.C * self.M / T - 0.5 * self.w @ self.w)

    @property
    def duals(self) -> Array:
        """The dual variables C I_k/T, which lie in [0, C]."""
        return self.C * self.omega * self.I / (self.t / self.m)
