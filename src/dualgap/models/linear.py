"""Certificates of linear classifiers from anywhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import SGDClassifier
from sklearn.utils.validation import check_is_fitted

from ..certificate import Certificate
from ..data.types import MatrixLike
from ..estimators.arguments import check_array
from ..estimators.input import ROWS, weights
from ..estimators.linear_svc import LinearSVC
from ..losses import (
    Loss,
    Vector,
    get_loss,
)
from ..problems.base import Claim, Problem
from ..problems.batch import LinearBatch
from ..problems.binary import BinaryProblem
from ..problems.constant import constant_problems
from ..problems.crammer_singer import CrammerSingerProblem
from ..problems.degenerate import sentence_about
from ..problems.reductions import reduction_of
from ..solvers import solver_for
from ..training import solve
from .agreement import _labels
from .single_problems import (
    ProofLimits,
    sharpened,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


#: Relative gap of models of other packages that are compared with constants.
_NEAR = 0.01


@dataclass(frozen=True)
class _Linear:
    """Linear models, one per binary problem, and the problem they were trained on."""

    coef: NDArray[np.float64]  # (problems, d)
    intercept: NDArray[np.float64]  # (problems,)
    C: float | None = None
    loss: str | Loss | None = None
    fit_intercept: bool | None = None
    intercept_scaling: float = 1.0
    penalize_intercept: bool | None = None
    class_weight: Any = None
    classes: NDArray[np.generic] | None = None
    multi_class: str = "ovr"


def linear_terms(model: BaseEstimator, n: int) -> _Linear:
    """Return coefficients and training problem of a linear classifier.

    Raises
    ------
    ValueError
        If the model minimises an objective that has no certificate here.
    """
    check_is_fitted(model)
    name = type(model).__name__
    if getattr(model, "penalty", "l2") != "l2":
        raise ValueError(
            f"{name}(penalty={model.penalty!r}) cannot be certified; train with "
            "penalty='l2'"
        )
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        raise ValueError(
            f"{name}(multi_class={model.multi_class!r}) is not supported here; train "
            "with multi_class='ovr' or 'ovo'"
        )
    svms = ("hinge", "squared_hinge")
    if not isinstance(model, LinearSVC) and model.loss not in svms:
        raise ValueError(
            f"{name}(loss={model.loss!r}) is not a support vector machine; train with "
            "loss='hinge' or 'squared_hinge'"
        )
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    bias = np.broadcast_to(np.asarray(model.intercept_, np.float64), len(coef))
    stochastic = isinstance(model, SGDClassifier)
    return _Linear(
        coef=coef,
        intercept=bias,
        C=1.0 / (model.alpha * n) if stochastic else model.C,
        loss=model.loss,
        fit_intercept=model.fit_intercept,
        intercept_scaling=1.0 if stochastic else model.intercept_scaling,
        penalize_intercept=not stochastic
        and getattr(model, "penalize_intercept", True),
        class_weight=model.class_weight,
        classes=model.classes_,
        multi_class=getattr(model, "multi_class", "ovr"),
    )


def _coefficients(
    model: BaseEstimator,
    intercept: ArrayLike | None,
    loss: Any,
    penalize_intercept: bool | None,
    class_weight: Any,
) -> _Linear:
    """Return given coefficients together with the problem that the caller describes.

    Raises
    ------
    TypeError
        If `model` is not an array.
    ValueError
        If a shape does not match, or a value is not finite.
    """
    try:
        coef = np.atleast_2d(np.asarray(model, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(
            f"model={model!r} is not supported; give a fitted SVM, or the "
            "coefficients of a linear model as an array"
        ) from None
    if coef.ndim != 2:
        raise ValueError(
            f"model has coefficients of shape {coef.shape}; give (n_features,) or "
            "(n_problems, n_features)"
        )
    if not np.isfinite(coef).all():
        raise ValueError("model has coefficients that are not finite; train it again")
    bias = np.zeros(len(coef)) if intercept is None else intercept
    bias = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    if bias.shape != (len(coef),) or not np.isfinite(bias).all():
        raise ValueError(
            f"intercept={intercept!r} does not match the coefficients; give one finite "
            f"number per row, {len(coef)} in all"
        )
    if intercept is None and penalize_intercept is not None:
        raise ValueError(
            f"penalize_intercept={penalize_intercept!r} needs an intercept; give "
            "intercept, or leave penalize_intercept out"
        )
    return _Linear(
        coef=coef,
        intercept=bias,
        loss=loss,
        fit_intercept=intercept is not None,
        penalize_intercept=bool(penalize_intercept) or intercept is None,
        class_weight=class_weight,
    )


def _certify_linear(
    terms: _Linear,
    X: MatrixLike,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    limits: ProofLimits,
) -> Certificate:
    X = check_array(X, **ROWS)
    parts = []
    binary = binary_of(terms, X, y, C, sample_weight, limits.n_jobs)
    for problem, w in linear_problems(terms, binary):
        # The dual point from the margins costs no fit, and is tight for smooth losses.
        proof = problem.certify(w)
        proof = sharpened(proof, problem, solver_for(problem), limits)
        parts.append(replace(proof, tol=math.nan))
    return Certificate.total(parts, binary.names)


def binary_of(
    terms: _Linear,
    X: MatrixLike,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    n_jobs: int | None,
    copies: bool = True,
) -> LinearBatch:
    """Return the binary problems that a linear model was trained on.

    Problems of pairs have copies of the rows of their classes or, if `copies` is False,
    all rows, where rows of other classes have weight 0.

    Raises
    ------
    ValueError
        If the shape of the coefficients does not match the data.
    """
    classes, codes = _labels(y, X.shape[0], terms.classes)
    reduction = reduction_of(terms.multi_class, len(classes))
    expected = (len(reduction), X.shape[1])
    if terms.coef.shape != expected:
        raise ValueError(
            f"model has coefficients of shape {terms.coef.shape}, but {len(classes)} "
            f"classes and {X.shape[1]} features need {expected}; give the training data"
        )
    weight, factor = weights(terms.class_weight, X, classes, codes, sample_weight)
    return LinearBatch(
        X,
        classes,
        codes,
        reduction,
        weight,
        factor,
        C,
        loss=get_loss(terms.loss or "hinge"),
        fit_intercept=bool(terms.fit_intercept),
        intercept_scaling=terms.intercept_scaling,
        penalize_intercept=terms.penalize_intercept is not False,
        n_jobs=effective_n_jobs(n_jobs),
        copies=copies,
    )


def constant_remarks(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None,
    certificate: Certificate,
    sample_weight: ArrayLike | None,
) -> list[str]:
    """Return a sentence if linear models of classes are no better than a constant.

    The certificate is about the model on its training rows.
    """
    scheme = getattr(model, "multi_class", "ovr")
    linear = hasattr(model, "coef_") and not hasattr(model, "kernel")
    binary = linear and hasattr(model, "classes_") and scheme != "crammer_singer"
    if y is None or not binary:
        return []
    terms = linear_terms(model, np.shape(X)[0])
    batch = binary_of(terms, check_array(X, **ROWS), y, terms.C, sample_weight, None)
    models = [w for _, w in linear_problems(terms, batch)]
    bounds = [part.bounds for part in certificate]
    # A model without a target that is far from the optimum is told about as that.
    tol = _NEAR if math.isnan(certificate.tol) else certificate.tol
    found = constant_problems(batch, models, bounds, tol, certificate.atol)
    if not found:
        return []
    sentence = sentence_about(
        found,
        batch.names,
        loss=model.loss,
        multi_class=scheme if isinstance(model, LinearSVC) else None,
        class_weight=model.class_weight,
    )
    return [f"{sentence[0].upper()}{sentence[1:]}."]


def linear_problems(
    terms: _Linear, binary: LinearBatch
) -> Iterator[tuple[Any, Vector]]:
    """Yield every binary problem with the model's w."""
    for k, coef in enumerate(terms.coef):
        problem = binary.problem(k)
        coef = np.ascontiguousarray(coef[binary.columns.kept])
        yield problem, problem.point(coef, terms.intercept[k])


def table_of(model: BaseEstimator, n: int) -> Vector | None:
    """Return the stored dual variables of all rows, (tables, n); None without any.

    Raises
    ------
    ValueError
        If the model was trained on another number of rows.
    """
    if not hasattr(model, "dual_coef_"):
        return None
    if n != model._n_rows:
        raise ValueError(
            f"X has {n} rows, but the model was trained on {model._n_rows}; give the "
            "training rows, in the same order"
        )
    table = np.zeros((len(model.dual_coef_), n))
    table[:, model.support_] = model.dual_coef_
    return table


def dual_point(problem: Problem, w: Vector, alpha: Vector | None, tol: float) -> Vector:
    """Return dual variables that prove a model w, from a fit if they must."""
    proof = problem.prove(Claim(w, alpha))
    if proof.certificate.relative_gap <= tol:
        return proof.alpha
    return solve(problem, solver_for(problem), tol=tol, random_state=0).alpha


def _certify_together(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    limits: ProofLimits,
) -> Certificate:
    """Certify a linear model of Crammer and Singer, with the dual value of a fit."""
    check_is_fitted(model)
    X = check_array(X, **ROWS)
    problem, w = joint_problem(model, X, y, C, sample_weight, limits.n_jobs)
    proof = problem.prove(Claim(w)).certificate
    proof = sharpened(proof, problem, solver_for(problem), limits)
    return replace(proof, tol=math.nan)


def joint_problem(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    n_jobs: int | None,
) -> tuple[CrammerSingerProblem, Vector]:
    """Return the problem of Crammer and Singer, and the model's w."""
    classes, codes = _labels(y, X.shape[0], model.classes_)
    weight, factor = weights(model.class_weight, X, classes, codes, sample_weight)
    data = BinaryProblem(
        X,
        np.ones(X.shape[0]),
        C,
        sample_weight=factor[codes] if weight is None else weight * factor[codes],
        fit_intercept=model.fit_intercept,
        intercept_scaling=model.intercept_scaling,
        n_jobs=effective_n_jobs(n_jobs),
    )
    problem = CrammerSingerProblem(data, codes, len(classes))
    coef, bias = np.asarray(model.coef_, np.float64), np.asarray(model.intercept_)
    bias = np.broadcast_to(bias, len(coef))
    if len(classes) == 2:  # one row, w1 - w0; at the optimum w0 + w1 = 0
        coef, bias = np.vstack([-coef, coef]) / 2, np.concatenate([-bias, bias]) / 2
    if coef.shape != (len(classes), X.shape[1]):
        raise ValueError(
            f"model has coefficients of shape {coef.shape}, but {len(classes)} classes "
            f"and {X.shape[1]} features need {(len(classes), X.shape[1])}; give the "
            "training data"
        )
    return problem, problem.point(coef, bias)
