"""Models of a cluster's fit that are no better than a constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import core
from ..problems.constant import Constants
from ..training import Solution
from .piece import Setup, labels_of

if TYPE_CHECKING:
    from .cluster import Cluster

__all__ = ["constant_problems"]


def constant_problems(
    cluster: Cluster,
    setup: Setup,
    solutions: Sequence[Solution],
    tol: float,
    atol: float,
) -> list[int]:
    """Return the problems whose model is no better than a constant.

    It reads the rows of those whose loss is as large as the loss of a constant.
    """
    labels, weights = labels_of(cluster.census)
    codes = np.searchsorted(setup.classes, labels)
    total = np.multiply(np.bincount(codes, weights), setup.C)
    bias = setup.intercept_scaling if setup.fit_intercept else 0.0
    constants = Constants(setup.loss, bias, *setup.costs(total))
    return constants.reached(
        [solution.certificate.bounds for solution in solutions],
        lambda k: core.squared_norm(solutions[k].w),
        lambda k: cluster.moments(k, solutions[k].w),
        tol,
        atol,
    )
