"""Binary problems of one class against the rest.

Two classes make one problem, whose positive class is the second. Three or more classes
make one problem for each class.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..losses import Vector

__all__ = ["costs", "positives", "signs", "weights"]


def positives(classes: int) -> range:
    """Return the numbers of the positive classes, one per binary problem."""
    return range(1, 2) if classes == 2 else range(classes)


def signs(
    codes: NDArray[np.intp], positive: int | NDArray[np.intp]
) -> NDArray[np.int8]:
    """Return +1 for the rows of the positive class, -1 for the rest; shape (n,).

    Several positive classes, of shape (k, 1), give an array of shape (k, n).
    """
    return np.where(codes == positive, np.int8(1), np.int8(-1))


def costs(
    total: Sequence[float], factors: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return the summed weights of the positive rows and of the rest of each problem.

    `total` has the summed sample weights of every class, and `factors` their factors,
    which count as in :func:`weights`.
    """
    own = [part * factor for part, factor in zip(total, factors, strict=True)]
    if len(own) == 2:
        return own[1:], own[:1]
    whole = sum(total)
    return own, [whole - part for part in total]


def weights(
    codes: NDArray[np.intp], positive: int, weight: Vector, factors: Vector
) -> Vector:
    """Return the sample weights of one problem, class weights included.

    With two classes every row has the factor of its class. With more classes the
    positive class has its factor and the rest has factor 1.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class of every row.
    positive : int
        The positive class.
    weight : ndarray of shape (n,)
        Sample weights.
    factors : ndarray of shape (K,)
        Class weights.

    Returns
    -------
    ndarray of shape (n,)
    """
    if len(factors) == 2:
        return weight * factors[codes]
    return np.where(codes == positive, weight * factors[positive], weight)
