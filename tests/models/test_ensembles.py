"""Certificates of the SVMs inside meta-estimators."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import dualgap
from dualgap import certify

NAMES = np.array(["barbera", "barolo", "grignolino"])


def wine(classes=3):
    X, y = load_wine(return_X_y=True)
    kept = y < classes
    return scale(X[kept]), NAMES[y[kept]]


def folds(y):
    return [rows for rows, _ in StratifiedKFold(5).split(y, y)]


def objective(model, X, signs):
    """P of a linear model with the hinge, C = 1 and a bias in the norm."""
    w = np.append(model.coef_[0], model.intercept_[0])
    margins = signs * (np.c_[X, np.ones(len(X))] @ w)
    return 0.5 * w @ w + np.maximum(0.0, 1.0 - margins).sum()


LINEAR = svm.LinearSVC(loss="hinge", tol=0.1, random_state=0)


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_versus_the_rest(classes):
    X, y = wine(classes)
    model = OneVsRestClassifier(LINEAR).fit(X, y)
    found = certify(model, X, y)
    names = NAMES[:classes] if classes > 2 else NAMES[1:2]
    assert len(found) == len(names)
    for part, inner, name in zip(found, model.estimators_, names, strict=True):
        expected = objective(inner, X, np.where(y == name, 1.0, -1.0))
        assert part.primal == pytest.approx(expected, rel=1e-12)
        assert part.relative_gap < 0.1
        if classes > 2:
            assert part.name == f"class {name}"


def test_pairs_of_classes():
    X, y = wine()
    model = OneVsOneClassifier(LINEAR).fit(X, y)
    found = certify(model, X, y)
    assert [part.name for part in found][1] == "barbera against grignolino"
    rows = y != "barolo"
    signs = np.where(y[rows] == "grignolino", 1.0, -1.0)
    expected = objective(model.estimators_[1], X[rows], signs)
    assert found.parts[1].primal == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ensemble", [True, False])
def test_calibrated_models(ensemble):
    X, y = wine(2)
    model = CalibratedClassifierCV(LINEAR, ensemble=ensemble).fit(X, y)
    found = certify(model, X, y)
    assert len(found) == (5 if ensemble else 1)
    rows = folds(y)[3] if ensemble else np.arange(len(y))
    part, inner = found.parts[-2 if ensemble else 0], model.calibrated_classifiers_
    inner = inner[-2 if ensemble else 0].estimator
    signs = np.where(y[rows] == NAMES[1], 1.0, -1.0)
    assert part.primal == pytest.approx(objective(inner, X[rows], signs), rel=1e-12)
    if ensemble:
        assert part.name == "fold 3"


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("piped", [False, True])
def test_bags_of_models(layout, piped):
    X, y = wine(2)
    one = make_pipeline("passthrough", LINEAR) if piped else LINEAR
    options = {"max_samples": 0.5, "max_features": 0.6, "random_state": 0}
    model = BaggingClassifier(one, 3, **options).fit(layout(X), y)
    found = certify(model, layout(X), y)
    assert [part.name for part in found] == [f"estimator {k}" for k in range(3)]
    drawn, features = model.estimators_samples_[2], model.estimators_features_[2]
    inner = model.estimators_[2][-1] if piped else model.estimators_[2]
    signs = np.where(y[drawn] == NAMES[1], 1.0, -1.0)
    expected = objective(inner, X[drawn][:, features], signs)
    assert found.parts[2].primal == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", [dualgap.SVC, svm.SVC])
@pytest.mark.parametrize(
    "ensemble",
    [
        OneVsOneClassifier,
        OneVsRestClassifier,
        CalibratedClassifierCV,
        lambda model: BaggingClassifier(model, 3, random_state=0),
        lambda model: CalibratedClassifierCV(FrozenEstimator(model.fit(*wine()))),
        lambda model: GridSearchCV(
            OneVsRestClassifier(make_pipeline(StandardScaler(), model)), {}
        ),
    ],
)
def test_kernel_models_inside(kind, ensemble):
    X, y = wine()
    found = certify(ensemble(kind()).fit(X, y), X, y)
    # No fit was needed: these are the models' own dual variables.
    assert 0.0 <= found.relative_gap < 2e-3
    assert len(found) in (3, 9, 15)
    assert found.primal == pytest.approx(sum(part.primal for part in found))
    assert len({part.name for part in found}) == len(found)


def test_regressors_inside():
    X, y = load_diabetes(return_X_y=True)
    model = BaggingRegressor(svm.SVR(), 3, random_state=0).fit(X, y)
    assert certify(model, X, y).relative_gap < 1e-3


@pytest.mark.parametrize("kind", [svm.SVC, svm.SVR, svm.OneClassSVM])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_rows_without_weight(kind, kernel):
    X, y = load_wine(return_X_y=True)
    X = scale(X) if kernel == "rbf" else scale(X) @ scale(X).T
    weight = np.arange(len(y)) % 3.0
    model = kind(kernel=kernel, tol=1e-6).fit(X, y, sample_weight=weight)
    assert certify(model, X, y, sample_weight=weight).relative_gap < 1e-4
