"""Shrinking of kernel problems: the active set, and the rows that may leave it.

Rows firmly at a bound, by more than the largest violation, leave the active set
(Joachims 1999). `BlockSolver` decides when.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...losses import Vector
from ...problems.base import ApproximateScores
from ...problems.kernel import KernelProblem
from .base import BoxedProblem


@dataclass(frozen=True)
class ActiveSet:
    """Active set of shrinking, and the point at which it was chosen.

    The gap is a sum over the rows. Inactive rows add nothing to it as long as they
    rightly stay at their bounds. D follows from the change t of c:
    ``D(c + t) = D(c) + t'p - epsilon (|c + t| - |c|) - t'(F(c) + F(c + t))/2``.
    """

    problem: BoxedProblem
    rows: NDArray[np.uint32]
    alpha: Vector  # of all rows at that point; inactive rows keep their values
    F: Vector  # F of the active rows at that point
    value: float  # D at that point
    #: Alpha, and F at all rows, when the first inactive rows left the active set.
    begun: tuple[Vector, ApproximateScores]

    def whole(self, part: Vector) -> Vector:
        """Return alpha of all rows, given alpha of the active rows."""
        out = self.alpha.copy()
        out[self.rows] = part
        return out

    def dual(self, alpha: Vector, F: Vector) -> float:
        """Return D, given alpha and F of all rows."""
        problem, rows = self.problem, self.rows
        y = problem.y[rows]
        old, new = y * self.alpha[rows], y * alpha[rows]
        t = new - old
        value = self.value + float(
            t @ problem.linear[rows] - 0.5 * t @ (self.F + F[rows])
        )
        value -= problem.epsilon * float((np.abs(new) - np.abs(old)).sum())
        if isinstance(problem, KernelProblem) and not problem.free_bias:
            begun = float(problem.y @ self.alpha)
            value -= float(t.sum()) * (begun + 0.5 * float(t.sum()))
            value -= 0.5 * float(problem.delta[rows] @ (new * new - old * old))
        return value


def movable(
    problem: BoxedProblem, alpha: Vector, F: Vector, threshold: float, slack: float
) -> NDArray[np.bool_]:
    """Return a mask of the rows that may still move if v is wrong by `slack`.

    src/core/gram/block.hpp defines v.
    """
    c, cost, (over, under) = problem.y * alpha, problem.cost, problem.sides
    v = problem.linear - F - threshold
    below = np.where(c < 0.0, problem.epsilon, -problem.epsilon)
    above = np.where(c > 0.0, -problem.epsilon, problem.epsilon)
    if isinstance(problem, KernelProblem) and problem.loss.name == "squared_hinge":
        v -= float(c.sum()) + problem.delta * c
        cost = np.where(cost > 0.0, math.inf, 0.0)
    high = np.where(problem.two_sided | (problem.y > 0), over * cost, 0.0)
    low = np.where(problem.two_sided | (problem.y < 0), -under * cost, 0.0)
    least = 1e-15 * float(problem.cost.max())  # the core rounds bounds to a grid
    rises = (c < high - least) & (v + below > -slack)
    falls = (c > low + least) & (v + above < slack)
    return (rises | falls) & (problem.cost > 0.0)
