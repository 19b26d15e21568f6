"""Solutions of a batch that the core solved and proved in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..certificate import Bounds, Status
from ..losses import Vector
from ..problems.duals import StoredDuals


class Whole(NamedTuple):
    """Points of several problems, their proofs, and the epochs that led to them.

    After a stop these are the first problems of the batch only.
    """

    #: One per problem, empty for a kernel problem.
    w: Vector | Sequence[Vector]
    #: One per problem.
    alpha: Vector | Sequence[StoredDuals]
    #: One per problem.
    bounds: list[Bounds]
    #: Estimates of P and D, and the steps so far, after each epoch of each problem,
    #: shape (n_epochs, 3).
    epochs: Vector
    #: Where the epochs of each problem end, shape (n_problems,).
    ends: NDArray[np.intp]
    #: Time of all problems.
    seconds: float
    #: Name of the method that made the epochs.
    method: str
    #: As for :class:`dualgap.training.Solution`, one per problem.
    bias: Vector | Sequence[float] | None = None
    decisions: Sequence[Vector] | None = None
    #: Smallest size of the optimum in relative gaps.
    floor: float = 0.0
    #: ``y_i alpha_i`` of all problems in the layout of a batch of pairs.
    table: Vector | None = None
    #: Limits that ended the fits of problems without a proof of their accuracy. The
    #: ordinary solver trains such a problem if no limit ended its fit.
    statuses: Sequence[Status | None] = ()
