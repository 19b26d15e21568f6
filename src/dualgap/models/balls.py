"""Balls of fitted estimators: one per problem, from the training rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted

from ..answers.ball import Ball
from ..data.types import MatrixLike
from ..estimators.fitting import ROWS
from ..estimators.kernel_regression import SVR
from ..estimators.linear_regression import LinearSVR
from ..estimators.linear_svc import LinearSVC
from ..estimators.regions import ProblemBall, refuse_without_optimum
from ..estimators.single import checked_weights
from ..estimators.svc import SVC
from ..kernel import Gram, KernelRegression
from ..losses import EpsilonInsensitive, Vector
from ..problems.base import Problem
from ..problems.multiclass import problem_labels
from .certification import refuse_other_rows
from .kernels import kernel_pairs, rows_of
from .linear import (
    binary_of,
    dual_point,
    joint_problem,
    linear_problems,
    linear_terms,
    table_of,
)
from .single_problems import single_terms, targets

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


__all__ = ["balls_of"]


def balls_of(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    whole: bool = False,
) -> list[ProblemBall]:
    """Prove the balls of a fitted estimator, from its training rows.

    Parameters
    ----------
    model : LinearSVC, SVC, LinearSVR or SVR
        With unchanged parameters since `fit`.
    X, y, sample_weight
        The arguments of `fit`.
    whole : bool, default=False
        Whether the problems of pairs of classes have all rows.

    Returns
    -------
    list of ProblemBall
        One per problem, in the order of ``certificate_.parts``.

    Raises
    ------
    ValueError
        If X, y and the weights are not the training data, or the problem has no
        certificate.
    TypeError
        If the estimator is of another type.
    """
    balls = _balls_of(model, X, y, sample_weight, whole)
    own = getattr(model, "certificate_", None)
    if own is not None and len(own.parts) == len(balls):
        refuse_other_rows(own, [part.ball.certificate for part in balls])
    return balls


def _balls_of(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    whole: bool,
) -> list[ProblemBall]:
    check_is_fitted(model)
    refuse_without_optimum(model)
    if isinstance(model, SVC):
        labels = problem_labels(model)
        return [
            ProblemBall(Ball.of(pair.problem, alpha=pair.alpha), label, pair.rows)
            for pair, label in zip(
                kernel_pairs(model, X, y, None, sample_weight, whole),
                labels,
                strict=True,
            )
        ]
    if isinstance(model, SVR):
        return [_of_svr(model, X, y, sample_weight)]
    if not isinstance(model, (LinearSVC, LinearSVR)):
        raise TypeError(
            f"model={type(model).__name__} is not supported; give a fitted LinearSVC, "
            "SVC, LinearSVR or SVR"
        )
    X = check_array(X, **ROWS)
    if isinstance(model, LinearSVR):
        return [_of_linear_svr(model, X, y, sample_weight)]
    if model.multi_class == "crammer_singer":
        return [_together(model, X, y, sample_weight)]
    return list(_of_linear_svc(model, X, y, sample_weight, whole))


def _of_linear_svc(
    model: LinearSVC,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    whole: bool,
) -> Iterator[ProblemBall]:
    terms = linear_terms(model, X.shape[0])
    binary = binary_of(terms, X, y, model.C, sample_weight, model.n_jobs, not whole)
    table = table_of(model, binary.tables, X.shape[0])
    labels = problem_labels(model)
    for k, (problem, w) in enumerate(linear_problems(terms, binary)):
        alpha = None if table is None else binary.unpack(table, k)
        alpha = _known(model, problem, w, alpha, k)
        place = getattr(binary, "place", lambda _: np.arange(X.shape[0]))
        yield ProblemBall(Ball.of(problem, w, alpha), labels[k], place(k))


def _known(
    model: BaseEstimator, problem: Problem, w: Vector, alpha: Vector | None, k: int = 0
) -> Vector:
    """Return alpha or, for a model without duals, find it by a fit as accurate."""
    if alpha is not None:
        return alpha
    own = getattr(model, "certificate_", None)
    tol = model.tol if own is None else max(own.parts[k].relative_gap, 1e-12)
    return dual_point(problem, w, None, tol)


def _together(
    model: LinearSVC, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> ProblemBall:
    problem, w = joint_problem(model, X, y, model.C, sample_weight, model.n_jobs)
    table = table_of(model, len(model.classes_), X.shape[0])
    alpha = None if table is None else np.ascontiguousarray(table.T).ravel()
    ball = Ball.of(problem, w, _known(model, problem, w, alpha))
    return ProblemBall(ball, problem_labels(model)[0], np.arange(X.shape[0]))


def _of_linear_svr(
    model: LinearSVR, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> ProblemBall:
    terms = single_terms(model, X.shape[0], sample_weight)
    weight = checked_weights(sample_weight, X)
    problem, w = terms.regression(X, y, model.C, weight, model.n_jobs)
    table = table_of(model, 1, X.shape[0])
    alpha = None if table is None else table[0]
    ball = Ball.of(problem, w, _known(model, problem, w, alpha))
    return ProblemBall(ball, None, np.arange(X.shape[0]))


def _of_svr(
    model: SVR, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> ProblemBall:
    X, kernel = rows_of(model, X, sample_weight)
    problem = KernelRegression(
        Gram(X, kernel, model.cache_size),
        targets(y, X.shape[0]),
        model.C,
        epsilon=EpsilonInsensitive(model.epsilon).epsilon,
        sample_weight=checked_weights(sample_weight, X),
    )
    coef = np.zeros(X.shape[0])
    coef[model.support_] = model.dual_coef_[0]
    alpha = np.clip(coef, problem.lower, problem.upper)
    return ProblemBall(Ball.of(problem, alpha=alpha), None, np.arange(X.shape[0]))
