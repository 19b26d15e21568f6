"""Solutions of a batch that the core solved and proved in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..certificate import Bounds, Status
from ..losses import Vector
from ..problems.duals import StoredDuals

__all__ = ["Whole"]


class Whole(NamedTuple):
    """Points of several problems, their proofs, and the epochs that led to them.

    After a stop these are the first problems of the batch only.

    Attributes
    ----------
    w : sequence of ndarray
        One per problem, empty for a kernel problem.
    alpha : sequence of ndarray or SparseDuals
        One per problem.
    bounds : list of Bounds
        One per problem.
    epochs : ndarray of shape (n_epochs, 3)
        Estimates of P and D, and the steps so far, after each epoch of each problem.
    ends : ndarray of shape (n_problems,)
        Where the epochs of each problem end.
    seconds : float
        Time of all problems.
    method : str
        Name of the method that made the epochs.
    bias, decisions : sequence, optional
        As for :class:`dualgap.training.Solution`, one per problem.
    floor : float, default=0.0
        Smallest size of the optimum in relative gaps.
    table : ndarray, optional
        ``y_i alpha_i`` of all problems in the layout of a batch of pairs.
    statuses : sequence of Status or None, optional
        Limits that ended the fits of problems without a proof of their accuracy. The
        ordinary solver trains such a problem if no limit ended its fit.
    """

    w: Vector | Sequence[Vector]
    alpha: Vector | Sequence[StoredDuals]
    bounds: list[Bounds]
    epochs: Vector
    ends: NDArray[np.intp]
    seconds: float
    method: str
    bias: Vector | Sequence[float] | None = None
    decisions: Sequence[Vector] | None = None
    floor: float = 0.0
    table: Vector | None = None
    statuses: Sequence[Status | None] = ()
