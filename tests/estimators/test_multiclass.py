"""One versus one, several labels per row: scikit-learn's wrappers over ours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

from dualgap import SVC, LinearSVC


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_one_versus_one(kind):
    X, y = load_iris(return_X_y=True)
    X = kind(X)
    wrapper = OneVsOneClassifier(LinearSVC(tol=1e-8, random_state=0)).fit(X, y)
    pairs = itertools.combinations(range(3), 2)
    for model, (a, b) in zip(wrapper.estimators_, pairs, strict=True):
        assert model.certificate_.relative_gap <= 1e-8
        rows = np.flatnonzero((y == a) | (y == b))
        own = LinearSVC(tol=1e-8, random_state=0).fit(X[rows], y[rows] == b)
        np.testing.assert_allclose(model.coef_, own.coef_, atol=1e-6)
    # The votes of the pairs are those of our kernel estimator, which has them built in.
    kernel = SVC(kernel="linear", tol=1e-8, random_state=0).fit(X, y)
    free = OneVsOneClassifier(
        LinearSVC(loss="hinge", penalize_intercept=False, tol=1e-8)
    ).fit(X, y)
    values = [model.decision_function(X) for model in free.estimators_]
    sure = np.abs(values).min(axis=0) > 1e-3
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(free.predict(X)[sure], kernel.predict(X)[sure])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_one_versus_the_rest_with_kernels(kind):
    X, y = load_iris(return_X_y=True)
    X = kind(X)
    wrapper = OneVsRestClassifier(SVC(tol=1e-8, random_state=0)).fit(X, y)
    for k, model in enumerate(wrapper.estimators_):
        assert model.certificate_.relative_gap <= 1e-8
        own = SVC(tol=1e-8, random_state=0).fit(X, y == k)
        np.testing.assert_array_equal(
            wrapper.decision_function(X)[:, k], own.decision_function(X)
        )
        theirs = sklearn.svm.SVC(tol=1e-8).fit(X, y == k)
        np.testing.assert_allclose(
            own.decision_function(X), theirs.decision_function(X), atol=1e-4
        )
    best = wrapper.decision_function(X).argmax(axis=1)
    np.testing.assert_array_equal(wrapper.predict(X), best)


def test_several_labels_per_row():
    X, Y = make_multilabel_classification(n_samples=80, random_state=0)
    each = [LinearSVC(random_state=0).fit(X, y) for y in Y.T]
    expected = np.column_stack([model.predict(X) for model in each])
    for wrapper in (OneVsRestClassifier, MultiOutputClassifier):
        found = wrapper(LinearSVC(random_state=0)).fit(X, Y)
        assert all(model.certificate_.certified for model in found.estimators_)
        np.testing.assert_array_equal(found.predict(X), expected)
    chain = ClassifierChain(LinearSVC(random_state=0)).fit(X, Y)
    assert all(model.certificate_.certified for model in chain.estimators_)
    assert chain.estimators_[-1].n_features_in_ == X.shape[1] + Y.shape[1] - 1
