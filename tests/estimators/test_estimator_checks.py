"""scikit-learn's own checks of an estimator, its pipelines, and its searches."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    estimator_checks_generator,
    parametrize_with_checks,
)

from dualgap import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    CalibratedClassifier,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    NuSVR,
    OneClassSVM,
    certify,
)
from dualgap.estimators.base import unwrap
from dualgap.kernel import KERNEL_SOLVERS
from dualgap.losses import SmoothedHinge
from dualgap.solvers import SOLVERS

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
    pytest.mark.filterwarnings("ignore:.*rounding decides"),
    # Some checks give the classes weights of 1e3 and 1e-4.
    pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning"),
]

# These compare decision values to 1e-7 or ask for the right class at costs from 1e-4
# to 1e3, which takes the optimum itself, not a certificate of 1e-3.
OF_THE_OPTIMUM = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_class_weight_classifiers",
}
# gamma="scale" ignores sample weights, and scikit-learn's own estimators fail these.
OF_WEIGHTS = "check_sample_weight_equivalence"
SLOW = ["norma", "pegasos", "sgd-m", "sgd-qn", "sgd-r", "sgd-s", "svmsgd"]
OTHERS = [
    LinearSVC(class_weight="balanced"),
    LinearSVC(loss="hinge"),
    LinearSVC(loss=SmoothedHinge(gamma=0.1), fit_intercept=False),
    LinearSVC(loss="hinge", multi_class="crammer_singer"),
    LinearSVC(multi_class="ovo"),
    LinearSVC(penalty="l1"),
    LogisticRegression(l1_ratio=0.5),
    *(
        LinearSVC(loss="hinge", solver=solver)
        for solver in sorted(SOLVERS.keys() - set(SLOW))
    ),
    # These take very long to an optimum that the checks do not need.
    *(LinearSVC(loss="hinge", solver=solver, max_iter=200) for solver in SLOW),
    *(
        SVC(loss="squared_hinge", solver=solver, max_iter=100)
        for solver in sorted(KERNEL_SOLVERS)
    ),
    SVC(solver="block"),
    SVC(kernel="poly", coef0=1.0, break_ties=True, class_weight="balanced"),
    SVC(kernel="laplacian"),
    SVC(solver="nystroem"),
    SVC(kernel="linear", n_jobs=2),
]


FACES = [
    LinearSVC(),
    SVC(),
    LinearSVR(),
    SVR(),
    LinearOneClassSVM(),
    OneClassSVM(),
    LogisticRegression(),
    NuSVR(),
]
SETTINGS = [
    LinearSVC(loss="hinge", solver="dcd", tol=1e-10, max_iter=100_000),
    SVC(loss="squared_hinge"),
    SVC(kernel="laplacian", C=100.0),
    LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1),
    SVR(kernel="laplacian", C=100.0, epsilon=0.01),
    LinearSVR(loss="quantile", quantile=0.9),
    SVR(loss="quantile", quantile=0.9),
    OneClassSVM(kernel="linear", nu=0.1),
    LogisticRegression(C=100.0, tol=1e-8),
]
SEARCHES = [SVCCV([0.1, 10.0], cv=2), SVRCV([0.1, 10.0], cv=2)]
LONG_SEARCHES = [
    LinearSVCCV([0.1, 1.0], cv=2, tol=1e-8, max_iter=100_000),
    CalibratedClassifier(LinearSVC(), cv=2),
    CalibratedClassifier(SVC(), cv=2),
]


@pytest.mark.cases(None)
@parametrize_with_checks(FACES + SEARCHES)
def test_every_check(estimator, check):
    checked(estimator, check)


@pytest.mark.long
@parametrize_with_checks(SETTINGS + LONG_SEARCHES)
def test_every_check_of_other_settings(estimator, check):
    checked(estimator, check)


def checked(estimator, check):
    if OF_WEIGHTS in str(check):
        estimator, given = clone(estimator), estimator.get_params()
        for name in {"gamma", "gammas", "estimator__gamma"} & given.keys():
            estimator.set_params(**{name: "auto"})
        if "estimator__tol" in given:
            estimator.set_params(estimator__tol=1e-12)
    check(estimator)


def test_every_check_that_a_feasible_nu_can_pass():
    # Weights of 0, and classes of a weight of 1e-4, make nu = 0.5 infeasible.
    infeasible = {"check_class_weight_classifiers"}
    for estimator, check in estimator_checks_generator(NuSVC()):
        name = check.func.__name__
        if name not in infeasible and OF_WEIGHTS not in name:
            check(estimator)


def test_the_optimum_of_sdca():
    estimator = LinearSVC(loss="hinge", solver="sdca", tol=1e-10, max_iter=100_000)
    checks = {c.func.__name__: c for _, c in estimator_checks_generator(estimator)}
    for name in OF_THE_OPTIMUM:
        checks[name](estimator)


@pytest.mark.long
@pytest.mark.parametrize("estimator", OTHERS, ids=repr)
def test_every_check_that_1e_3_can_pass(estimator):
    names = set()
    for instance, check in estimator_checks_generator(estimator):
        name = check.func.__name__
        names.add(name)
        if name not in OF_THE_OPTIMUM | {"check_array_api_input"}:
            check(instance)
    assert names > OF_THE_OPTIMUM
    assert len(names) > 40


@pytest.mark.long
def test_the_check_that_is_skipped_passes_where_scipy_has_the_array_api():
    code = (
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        "from dualgap import (\n"
        "    SVC, SVR, LinearOneClassSVM, LinearSVC, LinearSVR, LogisticRegression,\n"
        "    NuSVR, OneClassSVM)\n"
        f"for face in {FACES + SETTINGS}:\n"
        "    checks = [\n"
        "        (instance, check)\n"
        "        for instance, check in estimator_checks_generator(face)\n"
        "        if check.func.__name__ == 'check_array_api_input']\n"
        "    assert len(checks) == 1\n"
        "    for instance, check in checks:\n"
        "        check(instance)\n"
    )
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr


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
