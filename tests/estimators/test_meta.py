"""Pipelines and searches around a model, and names that only scikit-learn has."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    OneClassSVM,
    certify,
)
from dualgap.estimators._meta import unwrap

CLASSIFIERS = [SVC, LinearSVC, LinearSVCCV]
FACES = [*CLASSIFIERS, SVR, LinearSVR, OneClassSVM, LinearOneClassSVM]


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


def test_a_search_without_a_model_is_refused(data):
    X, y = data
    search = GridSearchCV(SVC(), {"C": [1.0]}, cv=2, refit=False)
    for model in (search, search.fit(X, y)):
        with pytest.raises(NotFittedError, match="refit=True"):
            certify(model, X, y)


def test_models_that_minimise_something_else_are_refused(data):
    model = LogisticRegression().fit(*data)
    with pytest.raises(TypeError, match="does not minimise the objective of an SVM"):
        certify(model, *data)


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


@pytest.mark.parametrize(
    ("face", "name", "answer"),
    [
        *((f, "max_iter", "use max_epochs") for f in FACES),
        *((f, "shrinking", "leave it out") for f in FACES),
        *((f, "dual", "leave it out") for f in (LinearSVC, LinearSVR, LinearSVCCV)),
        *((f, "penalty", "there is no L1 penalty") for f in (LinearSVC, LinearSVCCV)),
        *((f, "probability", "CalibratedClassifierCV") for f in CLASSIFIERS),
        (SVR, "probability", "only classifiers"),
        (OneClassSVM, "C", "use nu"),
        (LinearSVCCV, "C", "use Cs"),
        (SVC, "nu", "use C$"),
        (SVR, "nu", "use C and epsilon"),
        (LinearSVC, "kernel", "SVC, SVR and OneClassSVM have kernels"),
        (SVC, "c", "did you mean 'C'"),
        (SVC, "gama", "did you mean 'gamma'"),
        (SVR, "cachesize", "did you mean 'cache_size'"),
        (LinearOneClassSVM, "wide", "it has nu, "),
    ],
)
def test_parameters_of_other_models_are_answered(face, name, answer):
    told = f"{face.__name__} has no parameter '{name}': "
    with pytest.raises(TypeError, match=f"{re.escape(told)}.*{answer}"):
        face(**{name: 1})


def test_a_subclass_may_take_any_parameter():
    class Mine(LinearSVC):
        def __init__(self, **options):
            self.options = options

    assert Mine(whatever=1).options == {"whatever": 1}


@pytest.mark.parametrize("face", CLASSIFIERS)
def test_the_way_to_probabilities_is_told(face):
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(face(), name)
        with pytest.raises(AttributeError, match=rf"{name}.*CalibratedClassifierCV"):
            getattr(face(), name)


@pytest.mark.parametrize(
    ("face", "name", "value", "meant"),
    [
        (LinearSVC, "solver", "newtn", "newton"),
        (LinearSVC, "loss", "squared-hinge", "squared_hinge"),
        (LinearSVC, "class_weight", "balancd", "balanced"),
        (LinearSVCCV, "scoring", "acuracy", "accuracy"),
        (SVC, "kernel", "gaussian", "rbf"),
        (SVC, "kernel", "gausian", "rbf"),
        (SVC, "solver", "smo", "auto"),
        (SVR, "kernel", "rfb", "rbf"),
        (OneClassSVM, "gamma", "scal", "scale"),
        (SVC, "kernel", "wavelet", None),
        (SVC, "gamma", -1.0, None),
    ],
)
def test_wrong_values_are_answered_with_the_ones_meant(data, face, name, value, meant):
    with pytest.raises(ValueError, match=f"Got {value!r} instead") as told:
        face(**{name: value}).fit(*data)
    end = "" if meant is None else f" Did you mean {meant!r}?"
    assert str(told.value).endswith(f"instead.{end}")
    # Names are sorted, and few.
    names = re.findall(r"'[a-z_-]+'", "".join(re.findall(r"\{.*\}", str(told.value))))
    assert len(names) < 20
    assert name == "scoring" or names == sorted(names)
    assert len(str(told.value)) < 500


@pytest.mark.parametrize("face", [SVC, LinearSVC, LinearSVCCV])
def test_a_key_of_class_weight_is_a_class(data, face):
    X, y = data
    with pytest.raises(ValueError, match="key 'z', which is no class; the classes are"):
        face(class_weight={0: 1.0, "z": 2.0}).fit(X, y)
    # A class that a fold lacks may have a weight.
    face(class_weight={0: 1.0, 1: 1.0, 2: 5.0}).fit(X, y)


def test_the_folder_of_a_checkpoint_is_looked_up_first(data, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder"):
        LinearSVC(checkpoint=tmp_path / "none" / "c").fit(*data)
