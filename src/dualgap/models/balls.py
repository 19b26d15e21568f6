"""Balls of fitted estimators: one per problem, from the training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..answers.ball import Ball
from ..certificate import Certificate
from ..data.types import MatrixLike
from ..estimators.arguments import check_array
from ..estimators.input import ROWS, checked_weights
from ..estimators.linear_svc import LinearSVC
from ..estimators.regions import ProblemBall, refuse_without_optimum
from ..estimators.regression import SVR, LinearSVR
from ..estimators.svc import SVC
from ..kernel import Gram, KernelRegression
from ..losses import EpsilonInsensitive, Vector
from ..problems.base import Problem
from ..problems.reductions import reduction_in
from .certification import other_objective, refuse_other_rows
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
    found = _balls_of(model, X, y, sample_weight, whole)
    trained = getattr(model, "certificate_", None)
    if trained is not None and len(trained.parts) == len(found):
        parts: list[Certificate] = [part.ball.certificate for part, _ in found]
        if other_objective(trained, Certificate.total(parts)):
            # Of a stopped fit the ball may be about a better point than the model.
            parts = [
                prove() if prove else part.ball.certificate for part, prove in found
            ]
        refuse_other_rows(trained, parts)
    return [part for part, _ in found]


#: A ball, and a proof about the model's own coefficients if the ball's is not.
_Found: TypeAlias = tuple[ProblemBall, Callable[[], Certificate] | None]


def _balls_of(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    whole: bool,
) -> list[_Found]:
    check_is_fitted(model)
    refuse_without_optimum(model)
    if isinstance(model, SVC):
        labels = reduction_in(model).labels(model.classes_)
        pairs = kernel_pairs(model, X, y, None, sample_weight, whole)
        return [
            (
                ProblemBall(Ball.of(pair.problem, alpha=pair.alpha), label, pair.rows),
                partial(pair.problem.certify_model, pair.coef, pair.bias),
            )
            for pair, label in zip(pairs, labels, strict=True)
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
        parts = [_of_linear_svr(model, X, y, sample_weight)]
    elif model.multi_class == "crammer_singer":
        parts = [_together(model, X, y, sample_weight)]
    else:
        parts = list(_of_linear_svc(model, X, y, sample_weight, whole))
    return [(part, None) for part in parts]


def _of_linear_svc(
    model: LinearSVC,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    whole: bool,
) -> Iterator[ProblemBall]:
    terms = linear_terms(model, X.shape[0])
    binary = binary_of(terms, X, y, model.C, sample_weight, model.n_jobs, not whole)
    table = table_of(model, X.shape[0])
    labels = binary.reduction.labels(binary.classes)
    for k, (problem, w) in enumerate(linear_problems(terms, binary)):
        alpha = None if table is None else binary.duals(table, k)
        alpha = _known(model, problem, w, alpha, k)
        yield ProblemBall(Ball.of(problem, w, alpha), labels[k], binary.place(k))


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
    table = table_of(model, X.shape[0])
    alpha = None if table is None else np.ascontiguousarray(table.T).ravel()
    ball = Ball.of(problem, w, _known(model, problem, w, alpha))
    return ProblemBall(ball, model.classes_[-1], np.arange(X.shape[0]))


def _of_linear_svr(
    model: LinearSVR, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> ProblemBall:
    terms = single_terms(model, X.shape[0], sample_weight)
    weight = checked_weights(sample_weight, X)
    problem, w = terms.regression(X, y, model.C, weight, model.n_jobs)
    table = table_of(model, X.shape[0])
    alpha = None if table is None else table[0]
    ball = Ball.of(problem, w, _known(model, problem, w, alpha))
    return ProblemBall(ball, None, np.arange(X.shape[0]))


def _of_svr(
    model: SVR, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> _Found:
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
    part = ProblemBall(Ball.of(problem, alpha=alpha), None, np.arange(X.shape[0]))
    return part, partial(problem.certify_model, coef, float(model.intercept_[0]))
