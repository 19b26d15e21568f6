"""Kivinen, Smola and Williamson 2004, linear kernel, nothing truncated.

f_{t+1} = (1 - eta lambda) f_t + eta [y f < 1] y k(x_t, .), eta_t = p/(lambda sqrt t)
"""

from __future__ import annotations

import numpy as np

from .losses import Array, Phi
from .pegasos import PegasosTwin


class NORMATwin(PegasosTwin):
    """The steps of Pegasos on one row each, with lengths that fall as 1/sqrt t."""

    def __init__(
        self, X: Array, y: Array, lam: float, phi: Phi, omega: Array, p: float
    ):
        super().__init__(X, y, lam, phi, omega)
        self.p = p

    def eta(self) -> float:
        """Return the length of step t."""
        return self.p / (self.lam * float(np.sqrt(self.t)))
