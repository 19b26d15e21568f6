"""Balls of fitted estimators: one per problem, from the training rows."""

from __future__ import annotations

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..answers.ball import Ball
from ..blas import ready
from ..certificate import Certificate
from ..data.types import MatrixLike
from ..problems.kernel_matrix import MatrixProblem
from .fitted import FittedProblem, other_objective, refuse_other_rows
from .regions import ProblemBall, refuse_without_optimum


def balls_of(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    whole: bool = False,
) -> list[ProblemBall]:
    """Prove the balls of a fitted estimator, from its training rows.

    `model`: with unchanged parameters since `fit`. `X`, `y`, `sample_weight`: the
    arguments of `fit`. `whole`: whether the problems of pairs of classes have all rows.
    Returns one per problem, in the order of ``certificate_.parts``. Raises ValueError
    if X, y and the weights are not the training data, or the problem has no
    certificate. Raises TypeError if the estimator is of another type.
    """
    check_is_fitted(model)
    refuse_without_optimum(model)
    if not hasattr(model, "_fitted_problems"):
        raise TypeError(
            f"model={type(model).__name__} is not supported; give a fitted LinearSVC, "
            "SVC, LinearSVR or SVR"
        )
    ready()
    problems = list(model._fitted_problems(X, y, sample_weight, whole))
    trained = getattr(model, "certificate_", None)
    balls = [_ball(model, trained, k, one) for k, one in enumerate(problems)]
    if trained is not None and len(trained.parts) == len(balls):
        parts = [part.ball.certificate for part in balls]
        if other_objective(trained, Certificate.total(parts)):
            # Of a stopped fit the ball may be about a better point than the model.
            parts = [
                one.certificate() if _has_kernel(one) else part.ball.certificate
                for one, part in zip(problems, balls, strict=True)
            ]
        refuse_other_rows(trained, parts)
    return balls


def _has_kernel(one: FittedProblem) -> bool:
    return isinstance(one.problem, MatrixProblem)


def _ball(
    model: BaseEstimator, trained: Certificate | None, k: int, one: FittedProblem
) -> ProblemBall:
    """Return the ball of problem k; without duals, a fit as accurate finds them."""
    alpha = one.alpha
    if alpha is None:
        gap = model.tol if trained is None else trained.parts[k].relative_gap
        alpha = one.duals(gap if trained is None else max(gap, 1e-12))
    w = None if _has_kernel(one) else one.w
    return ProblemBall(Ball.of(one.problem, w, alpha), one.label, one.rows)
