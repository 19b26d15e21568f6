"""The binary problems of labelled rows, one class against the rest.

Two classes make one problem, whose positive class is the second; more make one each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .losses import Vector

__all__ = ["positives", "signs", "weights"]


def positives(classes: int) -> range:
    """Numbers of the positive classes."""
    return range(1, 2) if classes == 2 else range(classes)


def signs(codes: NDArray[np.intp], positive: int) -> NDArray[np.int8]:
    """+1 for the rows of one class, -1 for the rest."""
    return np.where(codes == positive, np.int8(1), np.int8(-1))


def weights(
    codes: NDArray[np.intp], positive: int, weight: Vector, factors: Vector
) -> Vector:
    """Sample weights of one problem, class weights included.

    With two classes each row has the factor of its class; with more the rest has 1.
    """
    if len(factors) == 2:
        return weight * factors[codes]
    return np.where(codes == positive, weight * factors[positive], weight)
