"""Binary problems of one class against another.

The positive class of a pair is the second, as with two classes. The dual variables of
all pairs share one table in LIBSVM's layout: a row of class i has its coefficient
against class j in row j - 1 of the table if i < j, in row j if j < i.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..losses import Vector

__all__ = ["costs", "pack", "pairs", "rows", "signs", "unpack", "weights"]


def pairs(classes: int) -> list[tuple[int, int]]:
    """Return the pairs (0, 1), (0, 2), ..., (K - 2, K - 1)."""
    return list(combinations(range(classes), 2))


def rows(
    codes: NDArray[np.intp], pair: tuple[int, int], weight: Vector
) -> NDArray[np.intp]:
    """Return the rows of a pair of classes with a positive weight, in their order."""
    i, j = pair
    return np.flatnonzero(((codes == i) | (codes == j)) & (weight > 0.0))


def signs(codes: NDArray[np.intp], pair: tuple[int, int]) -> NDArray[np.int8]:
    """Return +1 for rows of the second class of a pair, -1 for all other rows."""
    return np.where(codes == pair[1], np.int8(1), np.int8(-1))


def costs(total: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the summed weights of the second and of the first class of each pair."""
    both = pairs(len(total))
    return [total[second] for _, second in both], [total[first] for first, _ in both]


def weights(codes: NDArray[np.intp], pair: tuple[int, int], weight: Vector) -> Vector:
    """Return the sample weights of one pair at all rows, 0 for other classes."""
    return np.where(np.isin(codes, pair), weight, 0.0)


def pack(
    duals: Sequence[Vector],
    places: Sequence[NDArray[np.intp]],
    codes: NDArray[np.intp],
    classes: int,
) -> NDArray[np.float64]:
    """Return ``y_i alpha_i`` of all pairs in one table.

    Parameters
    ----------
    duals : sequence of ndarray
        ``alpha`` of the rows of each pair.
    places : sequence of ndarray of int
        Numbers of the rows of each pair.
    codes : ndarray of shape (n,)
        Class of every row.
    classes : int
        Number of classes, K.

    Returns
    -------
    ndarray of shape (K - 1, n)
    """
    table = np.zeros((classes - 1, len(codes)))
    for (i, j), alpha, place in zip(pairs(classes), duals, places, strict=True):
        first, second = codes[place] == i, codes[place] == j
        table[i, place[second]] = alpha[second]
        table[j - 1, place[first]] = 0.0 - alpha[first]
    return table


def unpack(
    table: NDArray[np.float64], codes: NDArray[np.intp], pair: tuple[int, int]
) -> Vector:
    """Return ``alpha`` of one pair, shape (n,), from the table of :func:`pack`."""
    i, j = pair
    alpha = np.where(codes == i, np.abs(table[j - 1]), 0.0)
    return np.where(codes == j, np.abs(table[i]), alpha)
