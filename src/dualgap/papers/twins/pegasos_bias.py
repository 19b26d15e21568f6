"""Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), section 6.

min lambda/2 |w|^2 + (1/n) sum_i omega_i phi(y_i (w.x_i + b))
"""

from __future__ import annotations

import numpy as np

from .losses import Array, Rows
from .pegasos import PegasosTwin


class SubgradientBias(PegasosTwin):
    """Pegasos with a bias outside of the norm, which takes sub-gradient steps too."""

    def slopes(self, A: Rows) -> Array:
        """Return -phi' at the margins, and move the bias along it."""
        slope = super().slopes(A)
        self.bias += slope @ self.y[A] / (len(A) * np.sqrt(self.t))
        return slope


class BatchBias(PegasosTwin):
    """Pegasos with the hinge and, in every step, the bias that is best for its rows.

    The derivative in b, the sum of omega_i over the negative rows with smaller kinks
    less the sum over the positive rows with larger ones, crosses 0 at the best kink.
    Its row takes what is missing there. Equal kinks count in the order of the batch.
    """

    def slopes(self, A: Rows) -> Array:
        """Return the slopes at the best bias, whose sum over y is 0."""
        y, omega = self.y[A], self.omega[A]
        kinks = y - self.X[A] @ self.w
        order = np.argsort(kinks, kind="stable")
        for p, j in enumerate(order):
            before, after = order[:p], order[p + 1 :]
            slope = np.zeros(len(A))
            slope[before] = np.where(y[before] < 0, omega[before], 0.0)
            slope[after] = np.where(y[after] > 0, omega[after], 0.0)
            slope[j] = -y[j] * (slope @ y)
            if -1e-12 <= slope[j] <= omega[j] + 1e-12:
                break
        slope[j] = np.clip(slope[j], 0.0, omega[j])
        self.bias = kinks[j]
        return slope
