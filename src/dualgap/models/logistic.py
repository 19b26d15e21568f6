"""Certificates of logistic regression from anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.linear_model import LogisticRegression as ScikitLearn
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..certificate import Certificate
from ..data.columns import StoredColumns
from ..estimators.arguments import check_array
from ..estimators.fitted import LinearTerms, labels_of
from ..estimators.input import ROWS, multilabelled, weights
from ..estimators.l1 import l1_ratio_of
from ..estimators.logistic import LogisticRegression
from ..problems.base import Claim
from ..problems.batch import Batch, SingleBatch
from ..problems.elastic_net import ElasticNetProblem
from ..problems.logistic import LabelsBatch, LogisticProblem
from ..problems.reductions import has_labels, weights_of_rows
from ..solvers import solver_for
from .single_problems import TrainedOn, sharpened

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["LOGISTIC", "certify_logistic", "logistic_terms"]

LOGISTIC = (ScikitLearn, LogisticRegression)


def logistic_terms(model: BaseEstimator) -> LinearTerms:
    """Return coefficients and problem of an estimator of LOGISTIC.

    Raises
    ------
    ValueError
        If the model minimises an objective that has no certificate here.
    """
    check_is_fitted(model)
    name, two = type(model).__name__, len(model.coef_) == 1
    l1 = l1_ratio_of(model)
    if hasattr(model, "Cs") or not model.C < math.inf:
        raise ValueError(
            f"{name} has no single finite C, so its objective has no certificate; "
            "train LogisticRegression with C=C_"
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
    coef = np.asarray(getattr(model.coef_, "toarray", lambda: model.coef_)())
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
