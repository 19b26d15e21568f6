"""Bounds on the optimum of a changed training set, and rows that could flip labels."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from ..answers.ball import Ball
from ..answers.kernel_regions import check_new_rows, refuse_new_rows
from ..answers.left_out import (
    Leaving,
    LeftOut,
    alpha_without,
    neighbourhood_size,
    repaired,
    sharpened,
)
from ..answers.removal import Neighbourhood, inner, loosely
from ..blas import limited
from ..checks import check_positive
from ..data.types import Matrix, MatrixLike
from ..estimators.base import unwrap
from ..estimators.fitted import binary_of, terms_of_linear
from ..estimators.input import TrainingData, check_array, labelled, weights
from ..estimators.regions import ProblemBall, optimum_of
from ..kernels.gram import points_of
from ..losses import Vector
from ..problems.batch import LinearBatch
from ..problems.binary import BinaryProblem
from ..problems.kernel import KernelBatch, KernelProblem
from ..problems.kernel_matrix import MatrixProblem
from ..problems.reductions import Reduction, certificate_of, reduction_in
from ..problems.rounding import Rounding
from ..solvers import get_solver
from ..training.solution import Solution, Solutions
from .leave_one_out import problems_of

_UNIT, _SLACK = Rounding.unit, Rounding.slack

#: Training rows of one block of products with the new rows.
_ROWS = 256
Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf:
    """Bounds on the exact optimum of a changed training set, without a fit.

    Attributes
    ----------
    model : LinearSVC or SVC
        The model, trained before the change.
    n_without, n_more : int
        Rows that left and rows that joined.
    radius : float
        Upper bound on the distance of the new optimum from the centre of the ball that
        is known to contain it; with several classes, the largest.
    """

    model: BaseEstimator
    n_without: int
    n_more: int
    radius: float
    _view: Any
    _data: TrainingData

    def decision_bounds(self, X: MatrixLike) -> Pair:
        """Return bounds that the decisions of the new exact optimum cannot leave.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        lower, upper : ndarray
            Of the shape of ``decision_function(X)``.
        """
        return self._view.decision_bounds(X)

    def coef_bounds(self) -> Pair:
        """Return bounds on ``coef_`` at the new exact optimum, of the same shape.

        Raises
        ------
        ValueError
            If the kernel is not linear.
        """
        return self._view.coef_bounds()

    def certified_labels(self, X: MatrixLike) -> NDArray[np.bool_]:
        """Tell for which rows the change surely leaves the predicted label as it is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), bool
            True where every new exact optimum has the label that ``model.predict(X)``
            returns.
        """
        return self._view._surely(self.model.predict(X), X)

    def refit(self, tol: float | None = None) -> BaseEstimator:
        """Train on the changed rows, from a warm start where the solver has one.

        The certificate of the result says that it equals training from the beginning:
        both objectives are within `tol` of the same optimum.

        Parameters
        ----------
        tol : float, optional
            Relative gap to prove. Defaults to the model's own.

        Returns
        -------
        LinearSVC or SVC
            A new estimator with the model's parameters. Weights of classes, and a gamma
            that depends on the data, keep the values that they had for the model.
        """
        data = self._data
        model = clone(self.model).set_params(tol=tol or self.model.tol)
        if hasattr(model, "kernel"):
            gamma = getattr(self.model._fitted_kernel, "gamma", None)
            if isinstance(model.gamma, str) and gamma is not None:
                model.set_params(gamma=gamma)
            model.set_params(class_weight=None)
            return model.fit(data.X, data.y, data.costs)
        model.set_params(class_weight=self._view.class_weight)
        if get_solver(model.solver).dual:
            for name in ("classes_", "support_", "dual_coef_", "_n_rows", "_fitted"):
                setattr(model, name, getattr(self._view, name))
            model.set_params(warm_start=True)
        model.fit(data.X, data.y, data.sample_weight)
        return model.set_params(warm_start=self.model.warm_start)

    def __repr__(self) -> str:
        return (
            f"WhatIf(n_without={self.n_without}, n_more={self.n_more}, "
            f"radius={self.radius:.3g})"
        )

    def __str__(self) -> str:
        change = [f"without {_rows(self.n_without)}"] if self.n_without else []
        change += [f"with {_rows(self.n_more)} more"] if self.n_more else []
        what = " and ".join(change) or "without a change"
        return f"The exact optimum {what} is in a ball of radius {self.radius:.3g}."


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"


def what_if(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    without: ArrayLike | None = None,
    X_more: MatrixLike | None = None,
    y_more: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float | None = None,
) -> WhatIf:
    """Bound the exact optimum without some rows, or with additional ones.

    No fit is made: the dual variables of the rows nearest the margin make up for the
    change, which takes a few passes over the rows. Weights of classes and parameters of
    the kernel stay as they are.

    Parameters
    ----------
    model : LinearSVC or SVC
        As for :func:`loo_bounds`. Train it with a small `tol`, such as 1e-9: the gap of
        the model is part of all bounds.
    X, y, sample_weight
        The arguments of `fit`.
    without : array-like, optional
        Rows to leave out: their indices, or a mask of shape (n_samples,).
    X_more, y_more : {array-like, sparse matrix} and array-like, optional
        Rows to add, with labels of known classes. They have weight 1.
    tol : float, optional
        Train the model further to this gap first, for the bounds only.

    Returns
    -------
    WhatIf

    Raises
    ------
    ValueError
        If rows do not exist, labels are unknown, a class would have no row left, the
        kernel is precomputed or may be indefinite, or as in :func:`loo_bounds`.
    TypeError
        If the model is of another type.

    Notes
    -----
    The bounds are honest but weak where much changes: many support vectors at C = 1 or
    more. Then train again with ``refit()``.

    References
    ----------
    S. Okumura, Y. Suzuki, I. Takeuchi, "Quick sensitivity analysis for incremental data
    modification and its application to leave-one-out CV in linear classification
    problems", KDD 2015.

    Examples
    --------
    >>> from dualgap import LinearSVC
    >>> from dualgap.models import what_if
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> model = LinearSVC(C=0.01, tol=1e-9, random_state=0).fit(X, y)
    >>> change = what_if(model, X, y, without=[0, 1, 2])
    >>> change.radius < 1e-3
    True
    >>> bool(change.certified_labels(X).all())
    True
    >>> change.refit().certificate_.certified
    True
    """
    model, X = unwrap(model, X)
    if tol is not None:
        check_positive("tol", tol)
    balls, codes = problems_of(model, X, y, sample_weight)
    if hasattr(model, "kernel"):
        refuse_new_rows(model._fitted_kernel)
    X = _matrix(X)
    more = None if X_more is None else _matrix(X_more)
    kept = _kept(without, len(codes))
    new_codes = _new_codes(model, y_more, more, X)
    all_codes = np.concatenate([codes[kept], new_codes])
    classes = model.classes_
    missing = np.flatnonzero(np.bincount(all_codes, minlength=len(classes)) == 0)
    if len(missing):
        raise ValueError(
            f"class {classes[missing[0]]} has no row left; keep one, or train with the "
            "other classes"
        )
    rows = X[kept]
    if more is not None:
        is_sparse = sparse.issparse(X) or sparse.issparse(more)
        both = [rows, more]
        rows = sparse.vstack(both, format="csr") if is_sparse else np.vstack(both)
    weight, factor = weights(model.class_weight, X, classes, codes, sample_weight)
    left = np.delete(np.arange(len(codes)), kept)
    old, added = np.ones(len(codes)) if weight is None else weight, len(new_codes)
    total = np.append(old[kept], np.ones(added))
    view = copy.copy(model)
    if model.class_weight is not None:
        view.class_weight = dict(zip(classes, factor, strict=True))
    data = labelled(view.class_weight, rows, classes[all_codes], total)
    batch = _batch(view, data)
    found, solutions = [], []
    with limited(1):
        for k, ball in enumerate(balls):
            ball = sharpened(ball, tol)
            alpha = np.append(alpha_without(ball, left)[kept], np.zeros(added))
            place, problem = batch.place(k), batch.problem(k)
            if isinstance(batch, KernelBatch):
                place = batch.order[place]
            assert isinstance(problem, (BinaryProblem, KernelProblem))
            start = np.minimum(alpha[place], problem.upper)
            new = repaired(Ball.of(problem, ball.w if len(ball.w) else None, start))
            found.append(ProblemBall(new, None, place))
            bias = problem.coef(new.w if len(new.w) else new.alpha)[1]
            solutions.append(Solution(new.w, new.alpha, new.certificate, bias))
    view._keep(data, batch, Solutions(solutions, batch.names))
    view.certificate_ = certificate_of(model, [one.certificate for one in solutions])
    view._optimum = optimum_of(view, rows, found)
    radius = max(part.ball.radius for part in found)
    return WhatIf(model, len(codes) - len(kept), added, radius, view, data)


def _matrix(X: MatrixLike) -> Matrix:
    return check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_min_samples=0,
    )


def _kept(without: ArrayLike | None, n: int) -> NDArray[np.intp]:
    """Return the rows that stay."""
    rows = np.asarray([] if without is None else without)
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(
                f"without is a mask of shape {rows.shape}, but X has {n} rows; give "
                "one entry per row, or indices"
            )
        return np.flatnonzero(~rows)
    if rows.size and (rows.ndim != 1 or rows.dtype.kind not in "iu"):
        raise ValueError(
            f"without has dtype {rows.dtype} and shape {rows.shape}; give indices of "
            "rows, or a mask"
        )
    rows = rows.astype(np.intp)
    outside = (rows < 0) | (rows >= n)
    if outside.any():
        raise ValueError(
            f"without has row {rows[outside][0]}, but X has rows 0 to {n - 1}"
        )
    stays = np.ones(n, bool)
    stays[rows] = False
    return np.flatnonzero(stays)


def _new_codes(
    model: BaseEstimator,
    y_more: ArrayLike | None,
    more: MatrixLike | None,
    X: MatrixLike,
) -> NDArray[np.intp]:
    """Return the classes of the rows that join."""
    if (more is None) != (y_more is None):
        raise ValueError("X_more and y_more belong together; give both or neither")
    if more is None:
        return np.empty(0, np.intp)
    labels = np.asarray(y_more)
    if labels.shape != (more.shape[0],) or more.shape[1] != X.shape[1]:
        raise ValueError(
            f"X_more has shape {more.shape} and y_more {labels.shape}; give rows with "
            f"{X.shape[1]} features and one label each"
        )
    unknown = ~np.isin(labels, model.classes_)
    if unknown.any():
        raise ValueError(
            f"y_more has the label {labels[unknown][0]}, which the model does not "
            "know; train a model with it"
        )
    return np.searchsorted(model.classes_, labels)


def _batch(model: BaseEstimator, data: TrainingData) -> KernelBatch | LinearBatch:
    """Return the model's problems of other rows; each linear one has all rows."""
    if hasattr(model, "kernel"):
        kernel = model._fitted_kernel
        return model._kernel_batch(points_of(data.X, kernel), kernel, data)
    terms, weight = terms_of_linear(model), data.sample_weight
    return binary_of(
        terms,
        data.X,
        data.classes[data.codes],
        model.C,
        weight,
        model.n_jobs,
        copies=False,
    )


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
