"""The result of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate
from ..losses import Vector

__all__ = ["Solution"]


@dataclass(frozen=True)
class Solution:
    """Result of a fit.

    Attributes
    ----------
    w : ndarray of shape (width,)
        The model; ``problem.coef(w)`` splits off the intercept. For a kernel problem,
        coefficients that need not be dual variables, which only `KernelPegasos`
        returns, else empty; ``problem.coef(coefficients)`` is the model.
    alpha : ndarray of shape (n,)
        A feasible dual point. For dual solvers ``w = sum alpha_i y_i x_i``; `DCD` with
        acceleration returns the best multiple of that sum. Where "newton" or
        "interior-point" ends a fit, ``1/2 ||w - w(alpha)||^2 <= P - D``.
    certificate : Certificate
        Certificate of exactly this w and alpha.
    history : structured ndarray
        One record per epoch, and one for a final exact pass, with the fields epoch,
        seconds, primal, dual, exact, updates, solver (the method that made the epoch)
        and predicted (the products with the data that "auto" still expects, else NaN).
    bias : float or None
        Bias of a kernel or one-class model; None where w contains it.
    decisions : ndarray of shape (n,) or None
        Decisions at the training rows, for a kernel problem.
    """

    w: Vector
    alpha: Vector
    certificate: Certificate
    history: NDArray[np.void]
    bias: float | None = None
    decisions: Vector | None = None

    @property
    def coefficients(self) -> Vector:
        """Coefficients of a kernel model, of shape (n,): w, or alpha if w is empty."""
        return self.w if self.w.size else self.alpha
