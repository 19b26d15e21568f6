"""Dual variables to start a fit from, given duals of other values of C.

Start      the line through the dual points of the last two C, clipped to the box. For
           the hinge the path of the duals consists of such lines. After one C only:
           s alpha, where s >= 0 is the best multiple in the new box.
Source     Chu, Ho, Tsai, Lin and Lin, "Warm start for parameter selection of linear
           classifiers", KDD 2015, who scale the duals by C_{k+1}/C_k; the lines:
           Hastie, Rosset, Tibshirani and Zhu, JMLR 5, 2004
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..losses import Vector
from .binary import BinaryProblem

if TYPE_CHECKING:
    from .kernel import KernelProblem
    from .kernel_boxes import KernelRegression


def carried(problem: BinaryProblem, alpha: Vector) -> Vector:
    """Scale the dual point of another C to the best multiple inside the new box.

    It takes one pass over the data.

    `problem`: the problem with the new C. `alpha`: dual variables, zero or positive,
    shape (n,). Returns a new array, with zeros where float64 cannot hold the multiple.
    """
    alpha = np.where(problem.cost > 0.0, alpha, 0.0)
    v = problem.weighted_sum(alpha)
    curvature = problem.squared_norm(v) + float((problem.delta * alpha * alpha).sum())
    alpha *= problem.best_scale(alpha, float(alpha.sum()), curvature)
    return np.minimum(alpha, problem.upper, out=alpha)


def along(C: float, past: Sequence[tuple[float, Vector]], smooth: bool) -> Vector:
    """Return the point at C on the line through the dual variables of two other C.

    Variables whose sign would change are 0. Those at the end of both boxes are beyond
    the end of the new one by less than 1e-11 of it, so that clipping puts them there.
    If none is at an end, the duals of a loss that is not smooth are optimal for every
    larger C, and are returned as they are.

    `past`: different values of C, and their dual variables. `smooth`: whether the loss
    is smooth. Returns a new array.
    """
    (first, before), (last, alpha) = past
    ends = np.isclose(alpha * first, before * last, rtol=1e-9, atol=0.0)
    if not (smooth or (ends & (alpha != 0.0)).any()):
        return alpha.copy()
    point = alpha + (C - last) / (last - first) * (alpha - before)
    point *= 1.0 + 1e-12
    point[point * alpha <= 0.0] = 0.0
    return point


def extrapolated(
    problem: KernelProblem | KernelRegression,
    C: float,
    past: Sequence[tuple[float, Vector]],
) -> Vector:
    """Extrapolate the dual variables of smaller values of C to a start for this C.

    Variables at an end of their box go to the same end of the new box, zeros stay, and
    the others follow the line through the last two values of C. The sum is corrected by
    moving the variables inside the box, in proportion to their room.

    `problem`: the problem with the new C. `past`: C and dual variables of one or two
    fits, the last one last.
    """
    last_C, alpha = past[-1]
    upper = problem.upper
    lower = np.broadcast_to(problem.lower, upper.shape)
    step = np.zeros(len(alpha))
    if len(past) > 1:
        before_C, before = past[-2]
        step = (C - last_C) / (last_C - before_C) * (alpha - before)
    start = np.where(alpha == 0.0, 0.0, np.clip(alpha + step, lower, upper))
    ends = last_C / C * (1.0 - 1e-12)  # of the boxes for the last C, but for rounding
    start = np.where((alpha > 0.0) & (alpha >= ends * upper), upper, start)
    start = np.where((alpha < 0.0) & (alpha <= ends * lower), lower, start)
    if not problem.free_bias or problem.loss.name == "squared_hinge":
        return start
    c = problem.y * start
    off = float(c.sum())
    inside = (start > lower) & (start < upper) & (start != 0.0)
    room = np.where(inside & (c * off > 0.0), c, 0.0)
    most = float(room.sum())
    if most != 0.0:
        start -= problem.y * room * min(1.0, off / most)
    return start
