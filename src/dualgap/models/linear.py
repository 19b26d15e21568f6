"""Certificates of linear classifiers and of logistic regression from anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression as ScikitLearn
from sklearn.linear_model import SGDClassifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..certificate import Certificate
from ..data.columns import StoredColumns
from ..data.types import MatrixLike
from ..estimators import LinearSVC, LinearSVR, LogisticRegression
from ..estimators.fitted import (
    LinearTerms,
    binary_of,
    labels_of,
    linear_problems,
    terms_of_linear,
)
from ..estimators.hard_margin import is_hard
from ..estimators.input import (
    ROWS,
    check_array,
    checked_weights,
    multilabelled,
    weights,
)
from ..estimators.regression import pulled_sentence
from ..losses import LOSSES, RESIDUAL_LOSSES
from ..problems.base import Claim
from ..problems.batch import Batch, SingleBatch
from ..problems.constant import constant_sentence
from ..problems.duals import dense_table
from ..problems.elastic_net import ElasticNetProblem, l1_ratio_of
from ..problems.logistic import LabelsBatch, LogisticProblem
from ..problems.reductions import has_labels, weights_of_rows
from ..solvers import solver_for
from .single_problems import TrainedOn, sharpened, squared_norm

LOGISTIC = (ScikitLearn, LogisticRegression)
#: Relative gap of models of other packages that are compared with constants.
_NEAR = 0.01


def linear_terms(model: BaseEstimator, n: int, joint: bool = False) -> LinearTerms:
    """Return coefficients and training problem of a linear classifier."""
    # Only `certify` takes an L1 norm.
    name = type(model).__name__ if joint else squared_norm(model)
    joined = getattr(model, "multi_class", "ovr") == "crammer_singer"
    if joined and not joint:
        raise ValueError(
            f"{name}(multi_class={model.multi_class!r}) is not supported here; train "
            "with multi_class='ovr' or 'ovo'"
        )
    svms = ("hinge", "squared_hinge")
    if not (joined or isinstance(model, LinearSVC)) and model.loss not in svms:
        raise ValueError(
            f"{name}(loss={model.loss!r}) is not a support vector machine; train with "
            "loss='hinge' or 'squared_hinge'"
        )
    terms = terms_of_linear(model)
    if isinstance(model, SGDClassifier):
        C = 1.0 / (model.alpha * n)
        terms = replace(terms, C=C, intercept_scaling=1.0, penalize_intercept=False)
    return terms


def coefficients(
    model: BaseEstimator,
    intercept: ArrayLike | None,
    loss: Any,
    penalize_intercept: bool | None,
    class_weight: Any,
) -> LinearTerms:
    """Return given coefficients together with the problem that the caller describes."""
    known = (*LOSSES, "logistic", *RESIDUAL_LOSSES)
    if isinstance(loss, str) and loss not in known:
        raise ValueError(
            f"loss={loss!r} is unknown; use one of {', '.join(map(repr, known))}"
        )
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
    return LinearTerms(
        coef=coef,
        intercept=bias,
        loss=loss,
        fit_intercept=intercept is not None,
        penalize_intercept=bool(penalize_intercept) or intercept is None,
        class_weight=class_weight,
    )


def certify_linear(terms: LinearTerms, on: TrainedOn) -> Certificate:
    """Certify a linear classifier, with the dual value of a fit if need be."""
    X, y, C, sample_weight, limits = on
    assert y is not None  # `certify` has refused that
    X = check_array(X, **ROWS)
    parts, hard = [], math.inf == C
    batch = binary_of(terms, X, y, C, sample_weight, limits.n_jobs, hard=hard)
    for one in linear_problems(terms, batch, hard=hard):
        # The dual point from the margins costs no fit, and is tight for smooth losses.
        solver = solver_for(one.problem)
        proof = sharpened(one.certificate(), one.problem, solver, limits)
        parts.append(replace(proof, tol=math.nan))
    return parts[0] if batch.joint else Certificate.total(parts, batch.names)


def degenerate_remarks(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None,
    certificate: Certificate,
    sample_weight: ArrayLike | None,
) -> list[str]:
    """Return a sentence if a constant is as good, or a bias is pulled from a quantile.

    The certificate is about the model on its training rows.
    """
    if isinstance(model, LinearSVR) and certificate.certified:
        weight = checked_weights(sample_weight, X)
        rows = np.shape(X)[0] if weight is None else float(weight.sum())
        return _told(pulled_sentence(model, model.C * rows))
    scheme = getattr(model, "multi_class", "ovr")
    linear = hasattr(model, "coef_") and not hasattr(model, "kernel")
    binary = linear and hasattr(model, "classes_") and scheme != "crammer_singer"
    if y is None or not binary or is_hard(model):
        return []
    if l1_ratio_of(model) > 0.0 or not hasattr(model, "loss"):
        empty = abs(model.coef_).max() == 0.0
        return ["All features have the weight 0: use a larger C."] if empty else []
    terms = linear_terms(model, np.shape(X)[0])
    batch = binary_of(terms, check_array(X, **ROWS), y, terms.C, sample_weight, None)
    models = [one.w for one in linear_problems(terms, batch)]
    bounds = [part.bounds for part in certificate]
    # A model without a target that is far from the optimum is told about as that.
    tol = _NEAR if math.isnan(certificate.tol) else certificate.tol
    weight, by_pairs = model.class_weight, isinstance(model, LinearSVC)
    return _told(
        constant_sentence(
            batch, models, bounds, tol, certificate.atol, weight, by_pairs=by_pairs
        )
    )


def _told(sentence: str) -> list[str]:
    return [f"{sentence[0].upper()}{sentence[1:]}."] if sentence else []


def logistic_terms(model: BaseEstimator) -> LinearTerms:
    """Return coefficients and problem of an estimator of LOGISTIC, or refuse it."""
    check_is_fitted(model)
    name, two = type(model).__name__, model.coef_.shape[0] == 1
    l1 = l1_ratio_of(model)
    if (several := hasattr(model, "Cs")) or not model.C < math.inf:
        single = "C=C_[0]" if several else "a large C, such as 1e6, for no penalty"
        raise ValueError(
            f"{name} has no single finite C, so its objective has no certificate; "
            f"train LogisticRegression with {single}"
        )
    scaled = model.solver == "liblinear" and model.fit_intercept
    if scaled and not l1:
        raise ValueError(
            f"{name}(solver='liblinear') penalises the intercept; train with "
            "solver='lbfgs', or fit_intercept=False"
        )
    if getattr(model, "multi_class", "auto") == "ovr" and not two:
        raise ValueError(
            f"{name}(multi_class='ovr') trains each class by itself; certify the row "
            "of each class by its coefficients"
        )
    coef = dense_table(model.coef_)
    return LinearTerms(
        coef=coef,
        intercept=model.intercept_,
        C=model.C,
        loss="logistic",
        fit_intercept=model.fit_intercept,
        class_weight=model.class_weight,
        classes=model.classes_,
        multi_class="labels" if has_labels(model) else "ovr",
        intercept_scaling=float(model.intercept_scaling) if scaled else 1.0,
        penalize_intercept=scaled,
        l1_ratio=l1,
    )


def certify_logistic(terms: LinearTerms, on: TrainedOn) -> Certificate:
    """Certify logistic regression: P - D is half of the squared gradient."""
    X, y, C, sample_weight, limits = on
    assert y is not None  # `certify` has refused that
    if C is None:
        raise ValueError("C is missing; give the weight of the loss")
    make: Callable[..., LogisticProblem] = LogisticProblem
    if terms.l1_ratio:
        scaling = terms.intercept_scaling if terms.penalize_intercept else None
        make = partial(
            ElasticNetProblem, l1_ratio=terms.l1_ratio, intercept_scaling=scaling
        )
    elif terms.penalize_intercept and terms.fit_intercept:
        raise ValueError(
            "penalize_intercept=True is not for loss='logistic'; leave it out, or give "
            "the intercept as the weight of a constant column of X"
        )
    X, labels = check_array(X, **ROWS), terms.multi_class == "labels"
    if labels:
        check_consistent_length(X, y)
        data = multilabelled(terms.class_weight, X, y, sample_weight)
        classes, weight, factor = data.classes, data.weight, data.factor
    else:
        classes, codes = labels_of(y, X.shape[0], terms.classes)
        weight, factor = weights(terms.class_weight, X, classes, codes, sample_weight)
    rows = 1 if len(classes) == 2 and not labels else len(classes)
    if terms.coef.shape != (rows, X.shape[1]):
        raise ValueError(
            f"model has coefficients of shape {terms.coef.shape}, but {len(classes)} "
            f"{'labels' if labels else 'classes'} and {X.shape[1]} features need "
            f"({rows}, {X.shape[1]})"
        )
    bias, threads = bool(terms.fit_intercept), effective_n_jobs(limits.n_jobs)
    batch: Batch
    if labels:
        columns = StoredColumns(X, narrow=False)
        batch = LabelsBatch(
            *(columns, data.table, weight, factor, C, make),
            fit_intercept=bias,
            n_jobs=threads,
        )
    else:
        problem = make(
            X,
            codes,
            C,
            classes=len(classes),
            sample_weight=weights_of_rows(codes, weight, factor),
            fit_intercept=bias,
            n_jobs=threads,
        )
        batch = SingleBatch(problem, "")
    shape = len(batch), -1, X.shape[1]
    models = zip(
        terms.coef.reshape(shape),
        np.reshape(terms.intercept, (len(batch), -1)),
        strict=True,
    )
    proofs = []
    for k, (coef, intercept) in enumerate(models):
        own: Any = batch.problem(k)
        w = own.point(coef, intercept)
        proof = own.prove(Claim(w)).certificate
        found = sharpened(proof, own, solver_for(own), limits, w)
        proofs.append(replace(found, tol=math.nan))
    return Certificate.total(proofs, batch.names) if labels else proofs[0]
