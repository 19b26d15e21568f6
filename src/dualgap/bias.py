"""The best unpenalised bias for given scores: an exact search on a line.

``phi(b) = sum_i c_i l(y_i (f_i + b))`` is convex, and its derivative is monotone and
piecewise linear between the breakpoints where a margin enters or leaves the kink of
the loss (for the hinge piecewise constant, so b is a weighted quantile of the kinks
``y_i - f_i``). Cost: a sort, and for smooth losses O(log n) sums over the rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .losses import Loss, Vector


def best_bias(scores: Vector, y: NDArray[np.int8], cost: Vector, loss: Loss) -> float:
    """Return a b that minimises ``sum_i c_i l(y_i (scores_i + b))``.

    Where a whole interval does, its middle for the hinge. With rows of one class only,
    the first b without any loss.

    Parameters
    ----------
    scores : ndarray of shape (n,), float64
        ``w.x_i`` without bias.
    y : ndarray of shape (n,), int8
        Labels, -1 or +1.
    cost : ndarray of shape (n,), float64
        ``c_i``; rows with cost 0 do not count.
    loss : Loss

    Returns
    -------
    float
    """
    used = cost > 0.0
    sign, cost, scores = y[used].astype(np.float64), cost[used], scores[used]
    positive = sign > 0.0
    kink = sign - scores
    if positive.all():
        return float(kink.max())
    if not positive.any():
        return float(kink.min())
    if loss.curvature == 0.0:
        return weighted_quantile(kink, cost, float(cost[positive].sum()))

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
    """Where the weights of the points below sum up to the target."""
    order = np.argsort(points)
    points = points[order]
    total = np.cumsum(weight[order])
    # Sums that are equal but for rounding: an interval, and where it begins.
    rounding = 1e-14 * float(total[-1])
    k = min(int(np.searchsorted(total, target - rounding)), len(points) - 1)
    if total[k] <= target + rounding and k + 1 < len(points):
        return 0.5 * float(points[k] + points[k + 1])
    return float(points[k])
