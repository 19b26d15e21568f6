"""Regularisation path: train for increasing C, each fit warm-started from the last.

Problem    P_C(w) = 1/2 ||w||^2 + C sum_i s_i l(y_i w.x_i) for C_1 < C_2 < ... < C_K
Start      the line through the dual points of the last two C, clipped to the box. For
           the hinge the path of the duals consists of such lines. After one C only:
           s alpha, where s >= 0 is the best multiple in the new box.
Guarantee  every model is certified for its own C
Cost       two products with the data per C, besides the epochs of the fit
Source     Chu, Ho, Tsai, Lin and Lin, "Warm start for parameter selection of linear
           classifiers", KDD 2015, who scale the duals by C_{k+1}/C_k; the lines:
           Hastie, Rosset, Tibshirani and Zhu, JMLR 5, 2004
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import core
from ..losses import Vector
from ..problems.binary import BinaryProblem
from ..problems.kernel import KernelProblem
from ..problems.kernel_boxes import BoxProblem
from ..solvers.base import Solver
from .fit import solve
from .progress import EpochInfo
from .solution import Solution

__all__ = ["along", "carried", "extrapolated", "kernel_solutions", "solutions"]

P = TypeVar("P", bound=KernelProblem | BoxProblem)


def carried(problem: BinaryProblem, alpha: Vector) -> Vector:
    """Scale the dual point of another C to the best multiple inside the new box.

    It takes one pass over the data.

    Parameters
    ----------
    problem : BinaryProblem
        The problem with the new C.
    alpha : ndarray of shape (n,)
        Dual variables, zero or positive.

    Returns
    -------
    ndarray of shape (n,)
        A new array; zeros where float64 cannot hold the multiple.
    """
    alpha = np.where(problem.cost > 0.0, alpha, 0.0)
    v = problem.weighted_sum(alpha)
    curvature = problem.squared_norm(v) + float((problem.delta * alpha) @ alpha)
    alpha *= problem.best_scale(alpha, float(alpha.sum()), curvature)
    return np.minimum(alpha, problem.upper, out=alpha)


def along(C: float, past: Sequence[tuple[float, Vector]], smooth: bool) -> Vector:
    """Return the point at C on the line through the dual variables of two other C.

    Variables whose sign would change are 0. Those at the end of both boxes are beyond
    the end of the new one by less than 1e-11 of it, so that clipping puts them there.
    If none is at an end, the duals of a loss that is not smooth are optimal for every
    larger C, and are returned as they are.

    Parameters
    ----------
    C : float
    past : sequence of two (float, ndarray)
        Different values of C, and their dual variables.
    smooth : bool
        Whether the loss is smooth.

    Returns
    -------
    ndarray
        A new array.
    """
    (first, before), (last, alpha) = past
    ends = np.isclose(alpha * first, before * last, rtol=1e-9, atol=0.0)
    if not (smooth or (ends & (alpha != 0.0)).any()):
        return alpha.copy()
    point = alpha + (C - last) / (last - first) * (alpha - before)
    point *= 1.0 + 1e-12
    point[point * alpha <= 0.0] = 0.0
    return point


def solutions(
    problem: BinaryProblem,
    Cs: Sequence[float] | Vector,
    solver: Solver,
    *,
    y: NDArray[np.int8],
    sample_weight: ArrayLike | None = None,
    warm: Vector | None = None,
    tol: float = 1e-3,
    atol: float = 0.0,
    max_epochs: int = 10_000,
    random_state: int = 0,
    on_epoch: Callable[[EpochInfo], object] | None = None,
    stop: core.Stop | None = None,
) -> Iterator[Solution]:
    """Train one binary problem for every C, in the order given.

    Parameters
    ----------
    problem : BinaryProblem
        Problem that gives the rows, the loss and the intercept.
    Cs : sequence of float
        Values of C. Warm starts help most if they increase.
    solver : Solver
        A solver that keeps dual variables.
    y : ndarray of shape (n,)
        Labels, -1 or +1.
    sample_weight : array-like of shape (n,), optional
        Factors of C. Rows of weight 0 are left out, but still cost a check now and
        then.
    warm : ndarray of shape (n,), optional
        Dual variables, of any C, to start the first fit from.
    tol, atol, max_epochs, random_state, on_epoch, stop
        As in :func:`dualgap.solve`, for each C.

    Yields
    ------
    Solution
        One per C.

    Raises
    ------
    ValueError
        If the solver keeps no dual variables or cannot solve the problem.
    """
    past: list[tuple[float, Vector]] = []
    solver.check_warm(problem, np.zeros(problem.n))  # raises before the first fit
    for C in map(float, Cs):
        now = problem.with_labels(y, sample_weight, C)
        if len(past) == 2:
            warm = along(C, past, problem.loss.curvature > 0.0)
        elif warm is not None:
            warm = carried(now, warm)
        solution = solve(
            now,
            solver,
            tol=tol,
            atol=atol,
            max_epochs=max_epochs,
            random_state=random_state,
            warm=warm,
            on_epoch=on_epoch,
            stop=stop,
        )
        warm = solution.alpha
        past = [*(p for p in past[-1:] if p[0] != C), (C, warm)]
        yield solution


def extrapolated(
    problem: P, C: float, past: Sequence[tuple[float, P, Vector]]
) -> Vector:
    """Extrapolate the dual variables of smaller values of C to a start for this C.

    Variables at an end of their box go to the same end of the new box, zeros stay, and
    the others follow the line through the last two values of C. The sum is corrected by
    moving the variables inside the box, in proportion to their room.

    Parameters
    ----------
    problem : KernelProblem or KernelRegression
        The problem with the new C.
    C : float
    past : sequence of (float, problem, ndarray)
        C, problem and dual variables of one or two fits, the last one last.

    Returns
    -------
    ndarray of shape (n,)
    """
    last_C, last, alpha = past[-1]
    upper = problem.upper
    lower = np.broadcast_to(problem.lower, upper.shape)
    step = np.zeros(len(alpha))
    if len(past) > 1:
        before_C, _, before = past[-2]
        step = (C - last_C) / (last_C - before_C) * (alpha - before)
    start = np.where(alpha == 0.0, 0.0, np.clip(alpha + step, lower, upper))
    high, low = alpha >= last.upper, alpha <= last.lower
    start = np.where(high & (alpha > 0.0), upper, start)
    start = np.where(low & (alpha < 0.0), lower, start)
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


def kernel_solutions(
    problem_of: Callable[[float], P],
    Cs: Sequence[float] | Vector,
    solver: Solver,
    *,
    tol: float = 1e-3,
    atol: float = 0.0,
    max_epochs: int = 10_000,
    random_state: int = 0,
    stop: core.Stop | None = None,
) -> Iterator[tuple[P, Solution]]:
    """Train a kernel problem for every C, each fit from the solutions before it.

    Scores are computed again from the dual variables for every C, and every model is
    proved for its own C as a single fit is.

    Parameters
    ----------
    problem_of : callable
        Returns the problem with a given C.
    Cs : sequence of float
        Increasing values of C.
    solver : Solver
    tol, atol, max_epochs, random_state, stop
        As in :func:`dualgap.solve`, for each C.
    """
    past: list[tuple[float, P, Vector]] = []
    for C in Cs:
        problem = problem_of(float(C))
        warm = extrapolated(problem, float(C), past) if past else None
        found = solve(
            problem,
            solver,
            tol=tol,
            atol=atol,
            max_epochs=max_epochs,
            random_state=random_state,
            warm=warm,
            stop=stop,
        )
        past = [*past[-1:], (float(C), problem, found.alpha)]
        yield problem, found
