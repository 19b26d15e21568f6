"""Pipelines and searches around a model."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import SVC, LinearSVC, certify
from dualgap.estimators.base import unwrap


@pytest.fixture(scope="module")
def data():
    return make_classification(120, 5, random_state=0)


@pytest.mark.parametrize("svm", [LinearSVC(), sklearn.svm.SVC()])
def test_certify_sees_the_model_inside_pipelines_and_searches(data, svm):
    X, y = data
    inner = make_pipeline(StandardScaler(), svm)
    last = inner.steps[-1][0]
    search = GridSearchCV(inner, {f"{last}__C": [0.1, 1.0]}, cv=2).fit(X, y)
    outer = Pipeline([("nothing", "passthrough"), ("search", search)])
    scaled = StandardScaler().fit_transform(X)
    alone = certify(search.best_estimator_[-1], scaled, y, random_state=0)
    for model in (search.best_estimator_, search, outer):
        found = certify(model, X, y, random_state=0)
        assert found.primal == alone.primal
        assert found.dual <= alone.primal


@pytest.mark.parametrize("model", [LinearSVC(), SVC(kernel="linear")])
def test_other_rows_than_those_of_training_are_told(data, model):
    X, y = data
    model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certify(model, X, y)
    flipped = np.where(np.arange(len(y)) < 5, 1 - y, y)
    with pytest.warns(UserWarning, match="not the rows that the model was trained on"):
        bound = certify(model, X, flipped)
    assert bound.primal > model.certificate_.primal


def test_unwrap_leaves_a_model_as_it_is(data):
    model = LinearSVC()
    assert unwrap(model, data[0]) == (model, data[0])
