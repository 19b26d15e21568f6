"""Best unpenalised bias for given scores, and its constraint on the dual variables.

The best bias minimises ``phi(b) = sum_i c_i l(y_i (f_i + b))`` exactly. phi is convex,
and its derivative is monotone and piecewise linear, with breakpoints where a margin
enters or leaves the curved part of the loss. For the hinge the derivative is piecewise
constant, so b is a weighted quantile of the kinks ``y_i - f_i``. The cost is a sort
and, for smooth losses, O(log n) sums over the rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..losses import Loss, Vector


def best_bias(scores: Vector, y: NDArray[np.int8], cost: Vector, loss: Loss) -> float:
    """Return a b that minimises ``sum_i c_i l(y_i (scores_i + b))``.

    If a whole interval minimises it, the hinge takes the middle. If all rows belong to
    one class, the result is the end of the interval without loss: the smallest such
    bias for positive rows, the largest for negative rows.

    - `scores`: ``w.x_i`` without bias, shape (n,).
    - `y`: labels, -1 or +1, shape (n,).
    - `cost`: costs ``c_i``, shape (n,). Rows with cost 0 are ignored.
    """
    if loss.curvature == 0.0:
        return float(core.hinge_bias(scores, y, cost))
    used = cost > 0.0
    sign, cost, scores = y[used].astype(np.float64), cost[used], scores[used]
    positive = sign > 0.0
    kink = sign - scores
    if positive.all():
        return float(kink.max())
    if not positive.any():
        return float(kink.min())

    def derivative(b: float) -> float:
        return -float((cost * sign * loss.derivative(sign * (scores + b))).sum())

    knee = kink - sign * loss.slope * loss.curvature
    points = np.sort(np.concatenate([kink, knee[np.isfinite(knee)]]))
    low, high = 0, len(points) - 1  # derivative < 0 at low, unless 0; >= 0 at high
    while high - low > 1:
        middle = (low + high) // 2
        if derivative(points[middle]) < 0.0:
            low = middle
        else:
            high = middle
    # Between two neighbours the derivative is linear.
    left, right = float(points[low]), float(points[high])
    below, above = derivative(left), derivative(right)
    if not below < 0.0 < above:
        return left if below >= 0.0 else right
    return left + (right - left) * (below / (below - above))


def weighted_quantile(points: Vector, weight: Vector, target: float) -> float:
    """Return the point below which the weights sum to the target.

    If an interval of points qualifies, return its middle.
    """
    return float(core.weighted_quantile(points, weight, target))


def balanced(y: NDArray[np.int8], alpha: Vector) -> Vector:
    """Return a point near alpha with ``sum_i alpha_i y_i = 0`` up to rounding.

    See :meth:`BinaryProblem.balance`.
    """
    positive = y > 0
    with np.errstate(over="ignore"):
        sums = [float(alpha[positive].sum()), float(alpha[~positive].sum())]
    smaller, larger = sorted(sums)
    if not 0.0 < smaller <= larger < math.inf:
        return np.zeros(len(y))
    heavier = positive if sums[0] == larger else ~positive
    alpha = np.where(heavier, alpha * (smaller / larger), alpha)
    off = core.signed_sum(y, alpha)
    i = int(np.argmax(np.where(y == np.sign(off), alpha, 0.0)))
    alpha[i] = max(alpha[i] - abs(off), 0.0)
    return alpha


def into_sum(alpha: Vector, lower: Vector, upper: Vector, total: float) -> Vector:
    """Return a point of the box near alpha with ``sum_i a_i = total`` up to rounding.

    Each entry moves in proportion to its room, the distance to its bound. With
    total = 0, where the box has both signs, entries of the sign that outweighs move
    toward 0 instead.

    All arrays have shape (n,).
    """
    alpha = np.clip(alpha, lower, upper)
    for _ in range(2):  # the second time removes most of the rounding error
        off = math.fsum(alpha.tolist()) - total
        if off == 0.0:
            break
        end = lower if off > 0.0 else upper
        if total == 0.0:
            end = np.where(alpha * off > 0.0, 0.0, alpha)
        room = alpha - end
        most = float(room.sum())
        if most == 0.0:  # all entries are at their bounds; the rest is rounding
            break
        alpha = alpha - room * min(1.0, off / most)
    return np.clip(alpha, lower, upper)
