"""The bound for models of others: P is theirs, D is below the optimum and near it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris, load_wine, make_classification
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import dualgap
from dualgap import LinearSVC, certify

from .. import qp

TOL = 1e-4


def make(classes=2, n=120, d=6, seed=0):
    X, y = make_classification(
        n, d, n_informative=4, n_classes=classes, flip_y=0.2, random_state=seed
    )
    return X, np.array(["a", "b", "c", "d"])[y]


def problems(y, weight):
    """(labels of -1 and +1, costs) of every one-versus-rest problem."""
    classes = np.unique(y)
    for positive in classes[1:] if len(classes) == 2 else classes:
        yield np.where(y == positive, 1.0, -1.0), weight


MODELS = [
    (svm.LinearSVC(loss="hinge", tol=1.0, random_state=0), True, True),
    (svm.LinearSVC(C=0.1, intercept_scaling=3.0, random_state=0), False, True),
    (svm.LinearSVC(loss="hinge", C=5.0, fit_intercept=False, max_iter=10), True, True),
    (SGDClassifier(random_state=0, max_iter=5, tol=None), True, False),
    (SGDClassifier("squared_hinge", alpha=0.1, random_state=0), False, False),
    (LinearSVC(loss="hinge", tol=0.3), True, True),
    (LinearSVC(loss="hinge", penalize_intercept=False, tol=0.3), True, False),
    (LinearSVC(tol=0.3), False, True),
]


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(("model", "hinge", "penalised"), MODELS)
def test_bound_of_a_linear_model(model, hinge, penalised, layout, classes):
    X, y = make(classes)
    rng = np.random.default_rng(0)
    weight = rng.choice([0.5, 1.0, 3.0], len(y))
    model.fit(layout(X), y, sample_weight=weight)
    found = certify(model, layout(X), y, sample_weight=weight, tol=TOL)
    stochastic = isinstance(model, SGDClassifier)
    C = 1.0 / (model.alpha * len(y)) if stochastic else model.C
    scaling = getattr(model, "intercept_scaling", 1.0) if model.fit_intercept else 0.0
    bias = np.broadcast_to(model.intercept_, len(model.coef_))
    assert len(found) == (1 if classes == 2 else classes)
    for certificate, w, b, (signs, weights) in zip(
        found, model.coef_, bias, problems(y, weight), strict=True
    ):
        loss = np.maximum(0.0, 1.0 - signs * (X @ w + b)) ** (1 if hinge else 2)
        norm = w @ w + ((b / scaling) ** 2 if penalised and scaling else 0.0)
        assert np.isclose(
            certificate.primal, 0.5 * norm + C * weights @ loss, rtol=1e-12
        )
        # A bias out of the norm is that of a feature so large that it costs nothing.
        feature = scaling if penalised else 1e4
        Z = signs[:, None] * np.c_[X, np.full(len(X), feature)]
        best = qp.optimum(Z, C * weights, 0.0 if hinge else 0.5, hinge)
        room = 1e-9 if penalised else 1e-6
        assert certificate.dual <= best.upper * (1.0 + room)
        assert certificate.dual >= best.lower * (1.0 - TOL - room)
        assert certificate.status is None


def test_weights_of_empty_columns_count():
    """A model from elsewhere may have weights for columns that a fit leaves out."""
    X = sparse.csr_matrix(([1.0, 1.0], ([0, 1], [0, 1])), shape=(2, 10_000))
    w = np.zeros(10_000)
    w[-100:] = 1.0
    certificate = certify(w, X, [0, 1], C=1.0, loss="hinge")
    assert certificate.primal == pytest.approx(0.5 * 100.0 + 2.0)
    assert certificate.dual <= 2.0


TUBES = ("squared_epsilon_insensitive", "epsilon_insensitive")


@pytest.mark.parametrize(
    "options", [{}, *({"loss": loss, "intercept": 0.0} for loss in TUBES)], ids=str
)
def test_the_bound_holds_when_time_is_short(options):
    X, y = make(n=400)
    zero, y = np.zeros(6), X[:, 0] + np.sin(X[:, 1]) if options else y
    short = certify(zero, X, y, 100.0, time_limit=1e-9, **options)
    long = certify(zero, X, y, 100.0, tol=1e-6, **options)
    assert short.primal == long.primal
    assert short.dual <= long.dual * (1.0 + 1e-12)


@pytest.mark.cases(None)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_kernel_model_without_support_vectors(form):
    """scikit-learn's model is 0 then, and P is C times the rows of every pair."""
    X, y = load_iris(return_X_y=True)
    model = svm.SVC(tol=10.0).fit(form(X), y)
    assert len(model.support_) == 0
    found = certify(model, form(X), y)
    assert found.primal == pytest.approx(300.0)
    assert 0 < found.dual <= found.primal


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
