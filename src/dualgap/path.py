"""Regularisation path: train for increasing C, each fit warm-started from the last.

Problem    P_C(w) = 1/2 ||w||^2 + C sum_i s_i l(y_i w.x_i) for C_1 < C_2 < ... < C_K
Start      s alpha, where alpha is the dual point of the previous C and s >= 0 the best
           multiple in the new box. For the hinge s is mostly C_{k+1}/C_k, which keeps
           rows at their upper bound.
Guarantee  every model is certified for its own C
Cost       two products with the data per C, besides the epochs of the fit
Source     Chu, Ho, Tsai, Lin and Lin, "Warm start for parameter selection of linear
           classifiers", KDD 2015, who scale the duals by C_{k+1}/C_k
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .loop import EpochInfo, Solution, solve
from .losses import Vector
from .problems.binary import BinaryProblem
from .solvers.base import Solver

__all__ = ["carried", "solutions"]


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
    stop: Any = None,
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
    alpha = warm
    solver.check_warm(problem, np.zeros(problem.n))  # raises before the first fit
    for C in Cs:
        now = problem.with_labels(y, sample_weight, C)
        solution = solve(
            now,
            solver,
            tol=tol,
            atol=atol,
            max_epochs=max_epochs,
            random_state=random_state,
            warm=None if alpha is None else carried(now, alpha),
            on_epoch=on_epoch,
            stop=stop,
        )
        alpha = solution.alpha
        yield solution
