"""Balls and regions that contain the optimum of an estimator, and their bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..answers.ball import Ball
from ..answers.kernel_regions import (
    KernelRegion,
    check_new_rows,
    kernel_bounds,
    kernel_region_of,
    refuse_new_rows,
)
from ..answers.regions import LinearRegion, linear_bounds, region_of
from ..blas import ready
from ..certificate import Certificate
from ..data.rows import Points
from ..data.types import MatrixLike, ProblemLabel
from ..kernel import Nystroem
from ..kernels.functions import refuse_items
from ..kernels.predict import pair_values, single_values
from ..losses import Vector
from ..problems.elastic_net import l1_ratio_of
from ..problems.kernel_matrix import MatrixProblem
from ..problems.reductions import OneVsOne
from ..problems.rounding import Rounding
from .fitted import FittedProblem, other_objective, refuse_other_rows
from .hard_margin import is_hard

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]

#: The difference of two classes of Crammer and Singer's problem is a product with two
#: of the joint weights, so its bound is this many times as wide.
_OF_TWO = math.sqrt(2.0)


@dataclass(frozen=True)
class ProblemBall:
    """Ball of one problem of an estimator."""

    ball: Ball
    #: The positive class, or the pair of classes; None for regression.
    label: ProblemLabel | None
    #: Training rows of the problem, as indices into X, shape (n,).
    rows: NDArray[np.intp]


@dataclass(frozen=True)
class Optimum:
    """Regions that contain the optima of all problems of an estimator."""

    #: Certificate of the fit that the regions belong to.
    certificate: Certificate
    #: One per problem; for Crammer and Singer's problem one per class.
    regions: list[Any]
    #: Whether the regions are about one problem of all classes.
    joint: bool = False
    #: For kernels, the dual variables of the centres, in the layout of the estimator,
    #: shape (tables, n_SV).
    dual_coef: NDArray[np.float64] | None = None

    def bounds(
        self, model: BaseEstimator, X: MatrixLike, comparable: bool = False
    ) -> Pair:
        """Return bounds on the decisions of each problem, of shape (n, problems).

        `X`: rows that the estimator has validated, shape (n, d). `comparable`: whether
        to return narrower intervals that bound differences of classes, but not single
        decisions. They are the same except for a joint problem.
        """
        if self.dual_coef is None:
            regions = self.regions
            if comparable and self.joint and len(regions) > 1:
                # Each interval is half as wide as the bound on a difference.
                half = 0.5 * _OF_TWO * (1.0 + 1e-12)
                regions = [replace(one, radius=half * one.radius) for one in regions]
            return linear_bounds(regions, X)
        X = X.astype(np.float64, copy=False)  # float32 kernel values are less accurate
        check_new_rows(model._fitted_kernel, model.support_vectors_, X)
        values = _kernel_values(model, X, self.dual_coef, len(self.regions))
        found = [
            kernel_bounds(region, model._fitted_kernel, X, values[:, k])
            for k, region in enumerate(self.regions)
        ]
        lower, upper = zip(*found, strict=True)
        return np.column_stack(lower), np.column_stack(upper)


def refuse_without_optimum(model: BaseEstimator, fitted: bool = True) -> None:
    """Raise an error if the certificate does not bound the optimum of all rows."""
    if hasattr(model, "_items"):
        refuse_items("a bound on the exact optimum")
    if l1_ratio_of(model) > 0.0:  # P is not strongly convex
        raise ValueError(
            "the penalty has an L1 norm, which a bound on the exact optimum does not "
            "support; train with the squared norm alone, penalty='l2'"
        )
    if is_hard(model):
        raise ValueError(
            "C=inf: a bound on the exact optimum needs a finite C; train with a large "
            "one, such as 1e6"
        )
    certificate = getattr(model, "certificate_", None)
    landmarks = isinstance(getattr(model, "solver", None), Nystroem)
    if landmarks or getattr(model, "solver", None) == "nystroem":
        raise ValueError(
            "solver='nystroem' trains an approximation of the problem, whose exact "
            "optimum is unknown; train with solver='auto'"
        )
    if fitted and certificate is None:
        raise ValueError(
            f"this {type(model).__name__} has no certificate, so nothing is known "
            "about the optimum; train it with fit"
        )


def kernel_coef_bounds(model: BaseEstimator, optimum: Optimum) -> Pair:
    """Return bounds on the weights of a linear kernel, (problems, d) each."""
    model._refuse_coef()
    assert optimum.dual_coef is not None
    coef = model._weights(optimum.dual_coef)
    radius = np.array([region.radius for region in optimum.regions])[:, None]
    size = np.array([region.reach for region in optimum.regions])[:, None]
    many = optimum.dual_coef.shape[1] + 8
    width = radius + many * 2 * Rounding.unit * size
    return coef - width, coef + width


def optimum_of_fit(model: BaseEstimator, of_weights: bool = False) -> Optimum:
    """Return what the fitted model and its certificate tell without the training rows.

    With `of_weights` it is only about w, and an unpenalised bias has no bound.
    """
    refuse_without_optimum(model)
    kernel = hasattr(model, "kernel")
    certificate = model.certificate_
    if not certificate.gap < math.inf:
        raise ValueError(
            f"{certificate.message.rstrip('.')}: without a finite gap nothing is known "
            "about the optimum. Train the model with fit, or prove it with certify"
        )
    free = _has_free_bias(model)
    if free and not of_weights:
        raise ValueError(
            "bounds on an unpenalised bias need the training rows, which fit does not "
            "keep; call bound_optimum(X, y) with them once, of a pipeline "
            "pipe[-1].bound_optimum(pipe[:-1].transform(X), y)"
        )
    if kernel:
        return _kernel_optimum_of_fit(model)
    joint = getattr(model, "multi_class", "ovr") == "crammer_singer"
    coef = model.coef_.toarray() if issparse(model.coef_) else model.coef_
    coef = np.atleast_2d(np.asarray(coef, np.float64))
    parts = certificate.parts * (len(coef) if joint else 1)
    penalised = model.fit_intercept and not free
    constant = float(model.intercept_scaling) if penalised else 0.0
    regions = []
    for row, intercept, part in zip(
        coef, np.broadcast_to(model.intercept_, len(coef)), parts, strict=True
    ):
        # P is strongly convex in w: 1/2 ||w - w*||^2 <= P(w) - P*.
        radius = math.sqrt(2.0 * max(part.gap, 0.0)) * (1.0 + 1e-12)
        radius *= _OF_TWO if joint and len(coef) == 1 else 1.0
        # The intercept is the constant times a weight, and so rounded.
        radius += 1e-15 * abs(float(intercept)) / (constant or 1.0)
        regions.append(LinearRegion(row, float(intercept), constant, radius))
    return Optimum(certificate, regions, joint)


def optimum_of(
    model: BaseEstimator, X: MatrixLike, balls: Sequence[ProblemBall]
) -> Optimum:
    """Return the optimum's regions, from the training rows and their balls."""
    if hasattr(model, "kernel"):
        return _kernel_optimum(model, X, balls)
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        regions = _regions_of_classes(balls[0].ball)
        return Optimum(model.certificate_, regions, joint=True)
    problem = balls[0].ball.problem
    constant = problem.intercept_scaling if problem.width > problem.d else 0.0
    points = Points.of(X, constant)
    every = np.arange(len(points.q))
    regions = []
    for found in balls:
        rows = points
        if not np.array_equal(found.rows, every):
            rows = points[found.rows]
        regions.append(region_of(found.ball, rows))
    return Optimum(model.certificate_, regions)


def _has_free_bias(model: BaseEstimator) -> bool:
    """Whether the estimator trains an unpenalised bias."""
    if hasattr(model, "_bias_of_problems"):
        options = model._bias_of_problems()
        return options["fit_intercept"] and not options["penalize_intercept"]
    if hasattr(model, "kernel"):
        return True  # SVR
    return not getattr(model, "penalize_intercept", True)


def _regions_of_classes(ball: Ball) -> list[LinearRegion]:
    """Return the regions of the classes of Crammer and Singer's problem."""
    problem = ball.problem
    coef, bias = problem.coef(ball.centre)
    scaling = problem.data.intercept_scaling
    constant = scaling if problem.width > problem.d else 0.0
    if len(coef) == 2:  # the model is the difference
        row, own = coef[1] - coef[0], float(bias[1] - bias[0])
        return [LinearRegion(row, own, constant, _OF_TWO * ball.radius * (1 + 1e-12))]
    return [
        LinearRegion(row, float(own), constant, ball.radius)
        for row, own in zip(coef, bias, strict=True)
    ]


# ------------------------------------------------------------------------- kernels


def _kernel_optimum(
    model: BaseEstimator, X: MatrixLike, balls: Sequence[ProblemBall]
) -> Optimum:
    refuse_new_rows(model._fitted_kernel)
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    regions = [kernel_region_of(found.ball, X[found.rows]) for found in balls]
    table = np.zeros_like(model.dual_coef_)
    place = np.full(X.shape[0], -1)
    place[model.support_] = np.arange(len(model.support_))
    own = _classes_of(model)
    for k, (found, region) in enumerate(zip(balls, regions, strict=True)):
        at = place[found.rows[region.rows]]
        assert (at >= 0).all()  # proofs add no dual variables
        table[_row(model, own[at], k), at] = region.coef
    return Optimum(model.certificate_, regions, dual_coef=table)


def _kernel_optimum_of_fit(model: BaseEstimator) -> Optimum:
    """Return the regions of a kernel model without an unpenalised bias."""
    refuse_new_rows(model._fitted_kernel)
    kernel, table = model._fitted_kernel, model.dual_coef_
    lengths = np.sqrt(np.maximum(kernel.diagonal(model.support_vectors_), 0.0))
    lengths = lengths * (1.0 + 1e-9) + 1e-150
    own = _classes_of(model)
    constant = 0.0 if _has_free_bias(model) else float(model.fit_intercept)
    regions = []
    for k, part in enumerate(model.certificate_.parts):
        at = np.arange(len(own))
        if hasattr(model, "classes_"):
            pair = OneVsOne(len(model.classes_)).subjects[k]
            at = np.flatnonzero(np.isin(own, pair))
        coef = table[_row(model, own[at], k), at]
        at, coef = at[coef != 0.0], coef[coef != 0.0]
        # The dual bound may be the one of other dual variables, so this is the radius
        # for any model, as for linear ones.
        radius = math.sqrt(2.0 * max(part.gap, 0.0)) * (1.0 + 1e-12)
        intercept = float(coef.sum()) if constant else 0.0
        reach = float(np.abs(coef) @ lengths[at])
        regions.append(
            KernelRegion(at, coef, intercept, constant, reach, radius, radius**2)
        )
    return Optimum(model.certificate_, regions, dual_coef=table)


def _classes_of(model: BaseEstimator) -> NDArray[np.intp]:
    """Return the class of every support vector; 0 without classes."""
    return np.repeat(np.arange(len(model.n_support_)), model.n_support_)


def _row(model: BaseEstimator, own: NDArray[np.intp], k: int) -> int | NDArray[np.intp]:
    """Return the rows of ``dual_coef_`` where problem k has vectors of these classes.

    Without classes every problem has its own row.
    """
    if not hasattr(model, "classes_"):
        return k
    return OneVsOne(len(model.classes_)).place(own, k)


def _kernel_values(
    model: BaseEstimator, X: MatrixLike, table: Vector, problems: int
) -> Vector:
    """Return the decisions without bias of all problems, (n, problems)."""
    if table.shape[1] == 0:
        return np.zeros((X.shape[0], problems))
    if not hasattr(model, "classes_"):
        of_model = model._fitted_kernel, X, model.support_vectors_
        same = {"support": model.support_, "n_jobs": model.n_jobs}
        values = [single_values(*of_model, row[None], 0.0, **same) for row in table]
        return np.column_stack(values)
    return pair_values(
        model._fitted_kernel, X, model.support_vectors_, table, model.n_support_,
        np.zeros(problems), support=model.support_, n_jobs=model.n_jobs,
    )  # fmt: skip


# ------------------------------------------------------------------- support vectors


def certain_support(
    n: int, balls: Sequence[ProblemBall], lower: Vector, upper: Vector
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of certain support vectors and of certain others, (n,) each.

    `n`: training rows. `lower`, `upper`: bounds on the decisions at the training rows,
    shape (n, problems). Raises ValueError for Crammer and Singer's problem.
    """
    support, others = np.zeros(n, bool), np.ones(n, bool)
    for k, found in enumerate(balls):
        rows, ball = found.rows, found.ball
        if ball.problem.kind == "crammer-singer":
            raise ValueError(
                "multi_class='crammer_singer' has no bounds on support vectors; use "
                "multi_class='ovr' or 'ovo'"
            )
        low, high = lower[rows, k], upper[rows, k]
        used = ball.problem.cost > 0.0
        if ball.of_regression:
            epsilon = ball.problem.loss.epsilon
            low, high = ball.targets - high, ball.targets - low
            lost = (low > epsilon) | (high < -epsilon)
            free = (low > -epsilon) & (high < epsilon)
        else:
            positive = ball.signs > 0.0
            low, high = np.where(positive, low, -high), np.where(positive, high, -low)
            lost, free = high < 1.0, low > 1.0
        support[rows] |= used & lost
        others[rows] &= ~used | free
    return support, others


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
