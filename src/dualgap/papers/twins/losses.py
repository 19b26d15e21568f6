"""The losses as the papers print them: value, slope and conjugate by cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
#: Numbers of rows: a batch, or an order of visits.
Rows = Sequence[int] | NDArray[np.intp]


@dataclass(frozen=True)
class Phi:
    """Loss of the margin m = y w.x; gamma is the smoothed hinge's."""

    name: str
    gamma: float = 0.0

    def value(self, m: ArrayLike) -> Array:
        """Return phi(m)."""
        m = np.asarray(m)
        if self.name == "hinge":
            return np.maximum(0.0, 1.0 - m)
        if self.name == "squared_hinge":
            return np.maximum(0.0, 1.0 - m) ** 2
        gamma = self.gamma
        return np.where(
            m > 1.0,
            0.0,
            np.where(
                m < 1.0 - gamma, 1.0 - m - gamma / 2, (1.0 - m) ** 2 / (2 * gamma)
            ),
        )

    def slope(self, m: ArrayLike) -> Array:
        """Return -phi'(m): [m < 1] for the hinge."""
        m = np.asarray(m)
        if self.name == "hinge":
            return np.where(m < 1.0, 1.0, 0.0)
        if self.name == "squared_hinge":
            return 2.0 * np.maximum(0.0, 1.0 - m)
        return np.clip((1.0 - m) / self.gamma, 0.0, 1.0)

    def conjugate(self, b: float) -> float:
        """Return phi*(-b) = max over m of -b m - phi(m)."""
        if b < 0 or (self.name != "squared_hinge" and b > 1):
            return np.inf
        if self.name == "squared_hinge":
            return -b + b * b / 4
        return -b + self.gamma * b * b / 2

    def box(self, c: Array) -> Array:
        """Return U_i of the dual on the scale 1/2 |w|^2 + sum c_i phi."""
        return np.where(c > 0, np.inf, 0.0) if self.name == "squared_hinge" else c

    def diagonal(self, c: Array) -> Array:
        """Return D_ii: 1/(2C) for the squared hinge, gamma/C for the smoothed one."""
        k = 0.5 if self.name == "squared_hinge" else self.gamma
        return np.where(c > 0, k / np.where(c > 0, c, 1.0), 0.0)


def primal(X: Array, y: Array, c: Array, phi: Phi, w: Array) -> float:
    """Return P(w) = 1/2 |w|^2 + sum_i c_i phi(y_i w.x_i)."""
    return float(0.5 * w @ w + c @ phi.value(y * (X @ w)))


def dual(X: Array, y: Array, c: Array, phi: Phi, a: Array) -> float:
    """Return D(a) = sum a_i - 1/2 |sum a_i y_i x_i|^2 - 1/2 sum D_ii a_i^2."""
    w = X.T @ (a * y)
    return float(a.sum() - 0.5 * w @ w - 0.5 * phi.diagonal(c) @ (a * a))
