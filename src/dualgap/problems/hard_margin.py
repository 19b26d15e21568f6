"""Bounds for hard margins: the problem of C = inf.

It minimises 1/2 ||w||^2 with y_i f(x_i) >= 1 for all rows of positive weight. A model
whose least margin m is between 0 and 1 becomes feasible if it is divided by m. What is
feasible has no loss at any finite C, so that a lower bound on the optimum of a finite C
is one here too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..certificate import Bounds
from ..losses import Vector
from .binary import BinaryProblem
from .kernel import KernelProblem
from .kernel_matrix import SUM
from .rounding import Rounding


class Margins(NamedTuple):
    """Margins and squared norm of a model, and bounds on their errors."""

    margins: Vector
    error: Vector
    norm: float
    norm_error: float


def margins_of(
    problem: BinaryProblem | KernelProblem, w: Vector, bias: float
) -> Margins:
    """Return the margins of a model; w are the signed factors of a kernel model."""
    if isinstance(problem, BinaryProblem):
        scores, error = problem.scores(w)
        norm, rounding = problem.squared_norm(w), problem.rounding
        lost = Rounding.slack * Rounding.norm * norm + rounding.underflow
        return Margins(problem.y * scores, error, norm, lost)
    alpha = w * problem.y
    scores = problem.scores(alpha)
    error = problem.rounding_of_scores(alpha) + problem._underflow(alpha)
    norm, more, size = problem.squared_norm(w, scores, error)
    own = problem.constant * bias * bias
    error = error + problem.shift * np.abs(alpha)
    error += 4 * Rounding.unit * (np.abs(scores) + abs(bias))
    more = Rounding.slack * (more + SUM * (size + own)) + problem._lost(alpha)
    margins = problem.y * (scores + bias)
    return Margins(margins, Rounding.slack * error, norm + own, more)


def hard_margin(
    problem: BinaryProblem | KernelProblem, w: Vector, bias: float = 0.0
) -> tuple[float, Bounds]:
    """Return a lower bound on the least margin of a model, and an upper bound on P.

    P is of the model or, if its least margin m is below 1, of the model divided by m.
    Without a positive margin it is infinite.
    """
    found, used = margins_of(problem, w, bias), problem.cost > 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        low = found.margins[used] - found.error[used]
    least = math.nextafter(float(low.min()), -math.inf)
    if not least > 0.0:
        return least, Bounds.proved()
    scale = 1.0 / min(least, 1.0)
    primal = 0.5 * found.norm * scale * scale
    more = 0.5 * found.norm_error * scale * scale + 8 * Rounding.unit * primal
    return least, Bounds.proved(primal, Rounding.slack * more + 8 * Rounding.least)
