"""A path of C: every problem starts from the dual variables of the one before.

Problem    P_C(w) = 1/2 ||w||^2 + C sum_i s_i l(y_i w.x_i) for C_1 < C_2 < ... < C_K
Start      s alpha, alpha the dual point of the last C and s >= 0 the best multiple in
           the new box: for the hinge mostly s = C_{k+1}/C_k, which leaves rows at their
           upper bound there
Guarantee  none is taken over: every model is certified for its own C
Cost       two products with the data per C, besides the epochs that are left
Source     Chu, Ho, Tsai, Lin and Lin, "Warm start for parameter selection of linear
           classifiers", KDD 2015, scale the duals by C_{k+1}/C_k
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .loop import EpochInfo, Solution, solve
from .losses import Vector
from .problem import Problem
from .solvers.base import Solver

__all__ = ["carried", "solutions"]


def carried(problem: Problem, alpha: Vector) -> Vector:
    """The best multiple in the box of a dual point of another C; one pass.

    Parameters
    ----------
    problem : Problem
        With the new C.
    alpha : ndarray of shape (n,)
        Zero or positive.

    Returns
    -------
    ndarray of shape (n,)
        A new array. Zeros where float64 cannot hold the multiple.
    """
    alpha = np.where(problem.cost > 0.0, alpha, 0.0)
    v = problem.weighted_sum(alpha)
    curvature = problem.squared_norm(v) + float((problem.delta * alpha) @ alpha)
    alpha *= problem.best_scale(alpha, float(alpha.sum()), curvature)
    return np.minimum(alpha, problem.upper, out=alpha)


def solutions(
    problem: Problem,
    Cs: Sequence[float] | Vector,
    solver: Solver,
    *,
    y: NDArray[np.int8],
    sample_weight: ArrayLike | None = None,
    warm: Vector | None = None,
    tol: float = 1e-3,
    max_epochs: int = 10_000,
    random_state: int = 0,
    on_epoch: Callable[[EpochInfo], object] | None = None,
    stop: Any = None,
) -> Iterator[Solution]:
    """Train one binary problem for every C, in the order given.

    Parameters
    ----------
    problem : Problem
        Whose rows, loss and intercept all of them have.
    Cs : sequence of float
        Rising, so that the duals of one are worth most to the next.
    solver : Solver
        One that keeps duals.
    y : ndarray of shape (n,)
        Labels, -1 or +1.
    sample_weight : array-like of shape (n,), optional
        Rows of weight 0 are left out, at the price of a look at each now and then.
    warm : ndarray of shape (n,), optional
        A dual point, of any C, to start the first one from.
    tol, max_epochs, random_state, on_epoch, stop
        As of :func:`dualgap.solve`, for every C.

    Yields
    ------
    Solution
        One per C.

    Raises
    ------
    ValueError
        If the solver keeps no duals or cannot solve the problem.
    """
    alpha = warm
    solver.check_warm(problem, np.zeros(problem.n))  # refused before the first fit
    for C in Cs:
        now = problem.with_labels(y, sample_weight, C)
        solution = solve(
            now,
            solver,
            tol=tol,
            max_epochs=max_epochs,
            random_state=random_state,
            warm=None if alpha is None else carried(now, alpha),
            on_epoch=on_epoch,
            stop=stop,
        )
        alpha = solution.alpha
        yield solution
