"""The losses as the papers print them: value and slope by cases."""

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
        near = np.where(m > 1.0, 0.0, (1.0 - m) ** 2 / (2 * gamma))
        return np.where(m < 1.0 - gamma, 1.0 - m - gamma / 2, near)

    def slope(self, m: ArrayLike) -> Array:
        """Return -phi'(m): [m < 1] for the hinge."""
        m = np.asarray(m)
        if self.name == "hinge":
            return np.where(m < 1.0, 1.0, 0.0)
        if self.name == "squared_hinge":
            return 2.0 * np.maximum(0.0, 1.0 - m)
        return np.clip((1.0 - m) / self.gamma, 0.0, 1.0)
