"""Certificates of logistic regression that other packages trained."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import dualgap
from dualgap import certify


def data(classes):
    X, y = load_iris(return_X_y=True)
    X, kept = scale(X), y < classes
    return X[kept][:, : classes - 1], np.array(list("abc"))[y[kept]]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_model_of_scikit_learn_gets_half_its_squared_gradient(classes, fit_intercept):
    X, y = data(classes)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    options = {"C": 2.0, "fit_intercept": fit_intercept, "class_weight": "balanced"}
    best = dualgap.LogisticRegression(tol=1e-11, **options).fit(X, y, weight)
    loose = LogisticRegression(tol=1.0, max_iter=3, **options).fit(X, y, weight)
    tight = LogisticRegression(tol=1e-9, solver="newton-cg", **options)
    tight.fit(X, y, weight)
    far, near, own = (
        certify(model, X, y, sample_weight=weight) for model in (loose, tight, best)
    )
    assert far.dual <= best.certificate_.primal <= far.primal
    assert far.relative_gap > 1e-3
    assert near.relative_gap < 1e-9
    assert own.relative_gap < 1e-10
    # Without a fit, and with sparse rows.
    short = certify(
        loose, sparse.csr_matrix(X), y, sample_weight=weight, time_limit=1e-9
    )
    assert short.primal == pytest.approx(far.primal, rel=1e-12)
    assert short.dual <= far.dual * (1 + 1e-12)
    # From the numbers alone.
    given = certify(
        tight.coef_, X, y, C=2.0, loss="logistic", class_weight="balanced",
        intercept=tight.intercept_ if fit_intercept else None, sample_weight=weight,
    )  # fmt: skip
    assert given.bounds == near.bounds


def test_pipelines_are_opened():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8))
    assert certify(pipeline.fit(X, y), X, y).relative_gap < 1e-3
