"""Bounds on the scores and votes of classes, from bounds on decisions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..losses import Vector

__all__ = ["largest", "ranks", "sides", "vote_bounds", "wins"]

#: Scores or votes.
Numbers = Vector | NDArray[np.intp]


def largest(lower: Numbers, upper: Numbers) -> NDArray[np.intp]:
    """Return the class whose score is surely the largest, -1 where there is none."""
    rows = np.arange(len(lower))
    best = lower.argmax(axis=1)
    others = upper.astype(np.float64)
    others[rows, best] = -np.inf
    return np.where(lower[rows, best] > others.max(axis=1), best, -1)


def sides(lower: Vector, upper: Vector) -> NDArray[np.intp]:
    """Return 1 or 0 where the decision is surely positive or not, else -1."""
    low, high = lower.ravel(), upper.ravel()
    return np.where(low > 0.0, 1, np.where(high <= 0.0, 0, -1))


def wins(
    lower: Vector, upper: Vector, classes: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the certain and the possible votes of each class, (n, classes) each.

    Parameters
    ----------
    lower, upper : ndarray of shape (n, pairs)
        Bounds on decisions that are positive for the second class of the pair.
    classes : int
    """
    certain = np.zeros((len(lower), classes), np.intp)
    possible = np.zeros_like(certain)
    for p, (i, j) in enumerate(combinations(range(classes), 2)):
        certain[:, i] += upper[:, p] <= 0.0
        certain[:, j] += lower[:, p] > 0.0
        possible[:, i] += lower[:, p] <= 0.0
        possible[:, j] += upper[:, p] > 0.0
    return certain, possible


def vote_bounds(lower: Vector, upper: Vector, classes: int) -> tuple[Vector, Vector]:
    """Return bounds on scikit-learn's scores of votes, (n, classes) each.

    A score is the number of votes, plus the sum s of confidences squeezed to ``s/(3
    (|s| + 1))``, which rises with s.
    """
    certain, possible = wins(lower, upper, classes)
    least, most = (np.zeros((len(lower), classes)) for _ in range(2))
    for p, (i, j) in enumerate(combinations(range(classes), 2)):
        least[:, i] -= upper[:, p]
        most[:, i] -= lower[:, p]
        least[:, j] += lower[:, p]
        most[:, j] += upper[:, p]

    def squeezed(total: Vector) -> Vector:
        with np.errstate(invalid="ignore"):
            inside = total / (3.0 * (np.abs(total) + 1.0))
        return np.where(np.isinf(total), np.sign(total) / 3.0, inside)

    few = 1e-13  # rounding of the sums, whose squeezed values are below 1/3
    return certain + squeezed(least) - few, possible + squeezed(most) + few


def ranks(
    lower: Vector, upper: Vector, classes: int, *, confident: bool
) -> tuple[Vector, Vector]:
    """Return bounds on scores of which the largest is predicted, (n, classes) each.

    Parameters
    ----------
    lower, upper : ndarray of shape (n, pairs)
        As for :func:`wins`.
    classes : int
    confident : bool
        Whether the more confident of several classes with most votes is predicted, as
        by `LinearSVC`, or the first one, as by `SVC` without `break_ties`.
    """
    if confident:
        return vote_bounds(lower, upper, classes)
    certain, possible = wins(lower, upper, classes)
    first = 0.5 / classes * np.arange(classes)
    return certain - first, possible - first
