"""The binary problems of labelled rows, one class against another.

The positive class of a pair is its second, as of two classes that are alone. Dual
variables of all pairs are in the layout of LIBSVM: a row of class i has its coefficient
against class j in row j - 1 of a table if i < j, else in row j.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from .losses import Vector

__all__ = ["pack", "pairs", "rows", "signs", "unpack", "weights"]


def pairs(classes: int) -> list[tuple[int, int]]:
    """(0, 1), (0, 2), ..., (K - 2, K - 1)."""
    return list(combinations(range(classes), 2))


def rows(
    codes: NDArray[np.intp], pair: tuple[int, int], weight: Vector
) -> NDArray[np.intp]:
    """The rows of two classes that have a weight, in their order."""
    i, j = pair
    return np.flatnonzero(((codes == i) | (codes == j)) & (weight > 0.0))


def signs(codes: NDArray[np.intp], pair: tuple[int, int]) -> NDArray[np.int8]:
    """+1 for the second class of a pair, -1 for the first."""
    return np.where(codes == pair[1], np.int8(1), np.int8(-1))


def weights(codes: NDArray[np.intp], pair: tuple[int, int], weight: Vector) -> Vector:
    """Sample weights of one problem among all rows: 0 for those of other classes."""
    return np.where(np.isin(codes, pair), weight, 0.0)


def pack(
    duals: Sequence[Vector],
    places: Sequence[NDArray[np.intp]],
    codes: NDArray[np.intp],
    classes: int,
) -> NDArray[np.float64]:
    """``y_i alpha_i`` of all pairs in one table.

    Parameters
    ----------
    duals : sequence of ndarray
        ``alpha`` of the rows of each pair.
    places : sequence of ndarray of int
        These rows.
    codes : ndarray of shape (n,)
        Class of every row.
    classes : int
        K.

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
    """``alpha`` of one pair, shape (n,), from the table of :func:`pack`."""
    i, j = pair
    alpha = np.where(codes == i, np.abs(table[j - 1]), 0.0)
    return np.where(codes == j, np.abs(table[i]), alpha)
