"""Training rows whose removal could flip a prediction."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from ..answers.ball import Ball
from ..answers.kernel_regions import check_new_rows
from ..answers.left_out import Leaving, LeftOut, neighbourhood_size, sharpened
from ..answers.removal import Neighbourhood, inner, loosely
from ..blas import limited
from ..checks import check_positive
from ..data.types import MatrixLike
from ..estimators.base import unwrap
from ..estimators.input import check_array
from ..losses import Vector
from ..problems.kernel_matrix import MatrixProblem
from ..problems.reductions import Reduction, reduction_in
from ..problems.rounding import Rounding
from .leave_one_out import problems_of

Pair = tuple[Vector, Vector]

_UNIT, _SLACK = Rounding.unit, Rounding.slack

#: Training rows of one block of products with the new rows.
_ROWS = 256


def influence(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    X_new: MatrixLike,
    *,
    sample_weight: ArrayLike | None = None,
    repair: bool = True,
    tol: float | None = 1e-9,
) -> NDArray[np.bool_]:
    """Find the training rows whose removal could flip a prediction.

    Each training row is taken away alone. Where the result is False, the exact optimum
    without this row surely has the same label as the model at this new row.

    Parameters
    ----------
    model : LinearSVC or SVC
        As for :func:`loo_bounds`, with a penalised bias or none.
    X, y, sample_weight
        The arguments of `fit`.
    X_new : {array-like, sparse matrix} of shape (n_new, n_features)
        Rows whose predictions are in question.
    repair : bool, default=True
        Repair the dual variables for the training rows that leave a prediction open.
    tol : float or None, default=1e-9
        As for :func:`loo_bounds`.

    Returns
    -------
    ndarray of shape (n_new, n_samples), bool
        True where the removal of the training row could flip the label of the new row,
        as far as the bounds tell. It is True for all training rows if the label is not
        even certain with all of them.

    Raises
    ------
    ValueError
        If the bias is not penalised, the kernel is precomputed or may be indefinite, or
        as in :func:`loo_bounds`.

    Examples
    --------
    >>> from dualgap import LinearSVC
    >>> from dualgap.models import influence
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> model = LinearSVC(C=0.01, loss="hinge").fit(X, y)
    >>> flips = influence(model, X, y, X[:100])
    >>> flips.shape
    (100, 569)
    >>> bool(flips.any(axis=0).sum() < 20)
    True
    """
    if tol is not None:
        check_positive("tol", tol)
    model, X = unwrap(model, X)
    balls, _ = problems_of(model, X, y, sample_weight)
    if balls[0].problem.free_bias:
        raise ValueError(
            "penalize_intercept=False is not supported by influence; use what_if(model,"
            " X, y, without=[i]) for single rows, or train with a penalised bias"
        )
    X_new = check_array(X_new, accept_sparse="csr", dtype=[np.float64, np.float32])
    if hasattr(model, "kernel"):
        check_new_rows(model._fitted_kernel, X, X_new)
    labels = np.searchsorted(model.classes_, model.predict(X_new))
    with limited(1):
        parts = [_Removals(sharpened(ball, tol), X, X_new) for ball in balls]
        return _flips(parts, reduction_in(model), labels, repair)


class _Removals:
    """Bounds on the decisions of one problem at new rows, without each training row.

    `ball` belongs to all training rows. `X`, `X_new`: training rows, and new rows.
    """

    def __init__(self, ball: Ball, X: MatrixLike, X_new: MatrixLike) -> None:
        self.out, self.problem = LeftOut(ball), ball.problem
        self.near = Neighbourhood(ball, neighbourhood_size(ball), self.out.rows)
        self.X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
        self.X_new, self.constant = X_new, self.near.products.constant

    def bounds(self, i: int, products: Vector) -> Pair:
        """Return bounds without row i, from its products with the new rows."""
        rows = self.out.rows
        own = rows.signs[i] * rows.alpha[i]
        width = self.out.radii[i] * self.lengths
        width += self.error(abs(own) * rows.lengths[i])
        middle = self.centre - 0.5 * own * products
        return middle - width, middle + width

    def repaired(self, i: int, products: Vector, before: Pair) -> Pair:
        """Return narrower bounds without row i, after a repair of the dual point."""
        rows, near = self.out.rows, self.near
        if not rows.upper[i] > 0.0:  # the problem does not have the row
            return before
        own = rows.signs[i] * rows.alpha[i]
        leaving = Leaving.of(near, i)
        d = leaving.moves()
        middle = self.centre + 0.5 * (self.members @ d - own * products)
        far = float(np.abs(d) @ near.rows.lengths) + abs(own) * rows.lengths[i]
        width = loosely(leaving.squared(d, -own)) * self.lengths + self.error(far)
        lower, upper = before
        return np.maximum(lower, middle - width), np.minimum(upper, middle + width)

    @cached_property
    def members(self) -> NDArray[np.float64]:
        """Products of the new rows with the rows of the neighbourhood."""
        return self.block(self.near.members)

    def block(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the products of all new rows with some training rows."""
        if isinstance(self.problem, MatrixProblem):
            kernel = self.problem.gram.kernel
            X = self.X[rows].astype(np.float64)
            new = self.X_new.astype(np.float64)
            return np.asarray(kernel.block(new, slice(None), X) + self.constant)
        return inner(self.X_new, self.X[rows]) + self.constant

    @cached_property
    def lengths(self) -> Vector:
        """Upper bounds on the lengths of the new rows."""
        if isinstance(self.problem, MatrixProblem):
            squares = self.problem.gram.kernel.diagonal(self.X_new.astype(np.float64))
        else:
            X = self.X_new.astype(np.float64)
            square = X.multiply(X) if hasattr(X, "multiply") else X * X
            squares = np.asarray(square.sum(axis=1)).ravel()
        many = (self.problem.width + 16) * _UNIT + self.near.products.error
        return np.sqrt(squares + self.constant) * (1.0 + many)

    @cached_property
    def centre(self) -> Vector:
        """Decisions of the centre of the ball at the new rows."""
        ball = self.near.ball
        if isinstance(self.problem, MatrixProblem):
            used = np.flatnonzero(ball.alpha)
            return np.asarray(self.block(used) @ (ball.alpha * ball.signs)[used])
        coef, intercept = self.problem.coef(ball.centre)
        return np.asarray(self.X_new @ coef + intercept)

    def error(self, reach: Any) -> Any:
        """Bound the errors of decisions at the new rows, after moves of this reach."""
        ball, all_rows = self.near.ball, self.near.all
        if isinstance(self.problem, MatrixProblem):
            size = float(ball.alpha @ all_rows.lengths)
        else:
            size = float(np.sqrt(ball.centre @ ball.centre))
        terms = self.problem.n + self.problem.width + 16
        relative = self.near.products.error + terms * _UNIT
        return self.lengths * (_SLACK * relative * (size + reach) + ball.offset)


def _flips(
    parts: list[_Removals],
    reduction: Reduction,
    labels: NDArray[np.intp],
    repair: bool,
) -> NDArray[np.bool_]:
    """Return the table of :func:`influence`."""
    n = parts[0].problem.n
    flips = np.zeros((len(labels), n), bool)

    def undecided(bounds: list[Pair]) -> NDArray[np.bool_]:
        lower, upper = map(np.column_stack, zip(*bounds, strict=True))
        return ~reduction.proved(lower, upper, labels)[1]

    for begin in range(0, n, _ROWS):
        some = np.arange(begin, min(begin + _ROWS, n))
        blocks = [part.block(some) for part in parts]
        for k, i in enumerate(some):
            found = [
                part.bounds(int(i), block[:, k])
                for part, block in zip(parts, blocks, strict=True)
            ]
            open_ = undecided(found)
            if repair and open_.any():
                found = [
                    part.repaired(int(i), block[:, k], own)
                    for part, block, own in zip(parts, blocks, found, strict=True)
                ]
                open_ = undecided(found)
            flips[:, i] = open_
    return flips
