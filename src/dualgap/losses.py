"""Losses of the margin and of the residual, in one common form.

With ``u = 1 - m``, where ``m = y w.x`` is the margin, every loss of the margin is

    l(u) = max over 0 <= b <= slope of  b u - curvature b**2 / 2

Its conjugate is therefore a box and a quadratic, and the dual of
``P(w) = 1/2 ||w||^2 + sum_i c_i l(1 - m_i)`` is
``D(a) = sum_i a_i - 1/2 ||sum_i a_i y_i x_i||^2 - 1/2 sum_i delta_i a_i^2`` over
``0 <= a_i <= U_i`` with ``U_i = slope c_i`` and ``delta_i = curvature / c_i``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .checks import Vector as Vector
from .checks import refuse_huge

T = TypeVar("T")


@dataclass(frozen=True)
class Loss:
    """Loss of the margin, described by the two numbers that solvers need.

    Attributes
    ----------
    slope : float
        Largest ``-dl/dm``: 1 for the hinge and the smoothed hinge, ``inf`` for the
        squared hinge.
    curvature : float
        0 for the hinge, ``gamma`` for the smoothed hinge, 1/2 for the squared hinge.
    """

    slope: float = field(init=False, repr=False, default=1.0)
    curvature: float = field(init=False, repr=False, default=0.0)

    name = "loss"

    def value(self, margin: ArrayLike) -> Vector:
        """Return the loss of each margin.

        Parameters
        ----------
        margin : array-like of float
            ``y_i w.x_i``.

        Returns
        -------
        ndarray of float64
            Losses, of the same shape.
        """
        u = np.maximum(0.0, 1.0 - np.asarray(margin, dtype=np.float64))
        if self.curvature == 0.0:
            return u
        knee = self.slope * self.curvature
        quadratic = u * u / (2 * self.curvature)
        if math.isinf(knee):
            return quadratic
        return np.where(u < knee, quadratic, self.slope * (u - knee / 2))

    def derivative(self, margin: ArrayLike) -> Vector:
        """Return ``-dl/dm`` of each margin; 0 at the kink of the hinge."""
        u = np.maximum(0.0, 1.0 - np.asarray(margin, dtype=np.float64))
        if self.curvature == 0.0:
            return np.where(u > 0, self.slope, 0.0)
        return np.minimum(u / self.curvature, self.slope)

    def conjugate(self, b: ArrayLike) -> Vector:
        """Return ``l*(-b) = -b + curvature b**2 / 2``, ``inf`` outside [0, slope].

        This is the conjugate of ``m -> l(1 - m)``. A row with cost c adds
        ``-c l*(-a/c)`` to the dual.
        """
        b = np.asarray(b, dtype=np.float64)
        inside = (b >= 0) & (b <= self.slope)
        return np.where(inside, -b + self.curvature * b * b / 2, np.inf)

    def upper(self, cost: Vector) -> Vector:
        """Return the upper bounds ``U_i`` of the box; 0 where the cost is 0."""
        if np.isinf(self.slope):
            return np.where(cost > 0, self.slope, 0.0)
        return self.slope * np.asarray(cost)

    def diagonal(self, cost: Vector) -> Vector:
        """Return the diagonal ``delta_i``; 0 where the cost, and so the dual, is 0."""
        return np.where(cost > 0, self.curvature / np.where(cost > 0, cost, 1.0), 0.0)


@dataclass(frozen=True)
class Hinge(Loss):
    """Hinge loss ``max(0, 1 - m)``, as in the L1-SVM."""

    name = "hinge"


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """Squared hinge ``max(0, 1 - m)**2``, scaled as in LIBLINEAR and scikit-learn.

    This is the loss of the L2-SVM. The Frank-Wolfe paper uses half of it, so its C is
    twice the C used here.
    """

    name = "squared_hinge"

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", math.inf)
        object.__setattr__(self, "curvature", 0.5)


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """Hinge whose kink is rounded over a width ``gamma``.

    The loss is 0 for ``m > 1``, ``1 - m - gamma/2`` for ``m < 1 - gamma``, and
    ``(1 - m)**2 / (2 gamma)`` between. Source: Shalev-Shwartz and Zhang 2013, section
    5.2.

    Parameters
    ----------
    gamma : float, default=1.0
        Width of the kink, positive and finite.

    Raises
    ------
    ValueError
        If `gamma` is not positive and finite.
    """

    gamma: float = 1.0

    name = "smoothed_hinge"

    def __post_init__(self) -> None:
        refuse_huge("gamma", self.gamma)
        if not (0.0 < self.gamma < math.inf):
            raise ValueError(
                f"gamma={self.gamma!r} is not positive and finite; for gamma = 0 use "
                "loss='hinge'"
            )
        object.__setattr__(self, "curvature", float(self.gamma))


@dataclass(frozen=True)
class ResidualLoss:
    """Loss of the residual r = y - f(x).

    Attributes
    ----------
    epsilon : float
        Residuals up to `epsilon` cost nothing.
    slope, curvature : float
        As in :class:`Loss`, with ``u = |r| - epsilon``.
    above, below : float
        Factors of the loss where r is positive, and where it is not.

    Raises
    ------
    ValueError
        If `epsilon` is negative or not finite.
    """

    epsilon: float = 0.0
    slope: float = field(init=False, repr=False, default=1.0)
    curvature: float = field(init=False, repr=False, default=0.0)
    above: float = field(init=False, repr=False, default=1.0)
    below: float = field(init=False, repr=False, default=1.0)

    name = "residual loss"

    def __post_init__(self) -> None:
        refuse_huge("epsilon", self.epsilon)
        number = isinstance(self.epsilon, (int, float, np.number))
        if not (number and 0.0 <= self.epsilon < math.inf):
            raise ValueError(
                f"epsilon={self.epsilon!r} is out of range; give a finite number, zero "
                "or positive"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))

    def excess(self, residual: ArrayLike) -> Vector:
        """Return ``max(0, |r| - epsilon)`` of each residual."""
        u: Vector = np.abs(np.asarray(residual, dtype=np.float64)) - self.epsilon
        return np.maximum(0.0, u)

    def value(self, residual: ArrayLike) -> Vector:
        """Return the loss of each residual."""
        u = self.excess(residual)
        u = u if self.curvature == 0.0 else u * u / (2 * self.curvature)
        if self.above == self.below == 1.0:
            return u
        return u * np.where(np.asarray(residual) > 0.0, self.above, self.below)

    def upper(self, cost: Vector) -> Vector:
        """Return the bounds ``a_i <= U_i``; 0 where the cost is 0."""
        if np.isinf(self.slope):
            return np.where(cost > 0, self.slope, 0.0)
        return self.above * self.slope * np.asarray(cost)

    def lower(self, cost: Vector) -> Vector:
        """Return the lower bounds of ``a_i``; 0 where the cost is 0."""
        if np.isinf(self.slope):
            return np.where(cost > 0, -self.slope, 0.0)
        return -self.below * self.slope * np.asarray(cost)

    def diagonal(self, cost: Vector) -> Vector:
        """Return the diagonal ``delta_i``; 0 where the cost is 0."""
        return np.where(cost > 0, self.curvature / np.where(cost > 0, cost, 1.0), 0.0)


@dataclass(frozen=True)
class EpsilonInsensitive(ResidualLoss):
    """Epsilon-insensitive loss ``max(0, |r| - epsilon)`` (Vapnik 1995)."""

    name = "epsilon_insensitive"
    value = ResidualLoss.excess


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(ResidualLoss):
    """Squared epsilon-insensitive loss ``max(0, |r| - epsilon)**2``.

    It is scaled as in LIBLINEAR and scikit-learn.
    """

    name = "squared_epsilon_insensitive"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "slope", math.inf)
        object.__setattr__(self, "curvature", 0.5)


@dataclass(frozen=True)
class Pinball(ResidualLoss):
    """Pinball loss ``max(q r, (q - 1) r)``, whose best constant is the q-quantile.

    Source: Koenker and Bassett, Econometrica 46, 1978.

    Parameters
    ----------
    quantile : float, default=0.5
        q, between 0 and 1.

    Raises
    ------
    ValueError
        If `quantile` is not between 0 and 1.
    """

    epsilon: float = field(init=False, repr=False, default=0.0)
    quantile: float = 0.5

    name = "quantile"

    def __post_init__(self) -> None:
        q = self.quantile
        number = isinstance(q, (int, float, np.number)) and not isinstance(q, bool)
        if not (number and 0.0 < q < 1.0):
            raise ValueError(
                f"quantile={q!r} is not between 0 and 1; for example, quantile=0.9 is "
                "exceeded by a tenth of the targets"
            )
        for name, value in (("quantile", q), ("above", q), ("below", 1.0 - q)):
            object.__setattr__(self, name, float(value))


@dataclass(frozen=True)
class OneClassHinge(ResidualLoss):
    """One-class loss ``max(0, r)`` with r = rho - f(x).

    It is the distance of a row on the wrong side of the plane, times ||w||.
    """

    name = "one_class"

    def excess(self, residual: ArrayLike) -> Vector:
        """Return ``max(0, r)`` of each residual."""
        return np.maximum(0.0, np.asarray(residual, dtype=np.float64))

    value = excess


RESIDUAL_LOSSES: dict[str, type[ResidualLoss]] = {
    loss.name: loss for loss in (EpsilonInsensitive, SquaredEpsilonInsensitive, Pinball)
}

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (Hinge, SquaredHinge, SmoothedHinge)
}


def get_loss(loss: str | Loss) -> Loss:
    """Return the record of a loss of the margin, given by name or as a record.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    example = "SmoothedHinge(gamma=0.1)"
    return loss if isinstance(loss, Loss) else _named(loss, LOSSES, example)


def get_residual_loss(loss: str | ResidualLoss) -> ResidualLoss:
    """Return the record of a loss of the residual, given by name or as a record.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if isinstance(loss, ResidualLoss):
        return loss
    return _named(loss, RESIDUAL_LOSSES, "EpsilonInsensitive(epsilon=0.1)")


def _named(loss: str, known: dict[str, type[T]], example: str) -> T:
    try:
        return known[loss]()
    except (KeyError, TypeError):
        names = ", ".join(map(repr, known))
        raise ValueError(
            f"loss={loss!r} is unknown; use one of {names} or a record such as "
            f"{example}"
        ) from None
