"""Models are those of scikit-learn's estimators, which LIBLINEAR and LIBSVM train."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.svm
from scipy import sparse

import dualgap

from .subjects import NAMES, X

TARGETS = {"two": NAMES == "ant", "classes": NAMES, "values": X[:, 0] + np.sin(X[:, 1])}
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
BALANCED, NO_BIAS = {"class_weight": "balanced"}, {"fit_intercept": False}
OWN = {"class_weight": {"ant": 3.0, "bee": 0.5, "cat": 1.0}}
INTERCEPTS: list[dict[str, Any]] = [{}, NO_BIAS, {"intercept_scaling": 7.0}]
TUBES = ("epsilon_insensitive", "squared_epsilon_insensitive")
JOINT = {"multi_class": "crammer_singer", "loss": "hinge", "C": 0.1}
RBF = {"gamma": 0.1}
KERNELS = [RBF, {"kernel": "linear"}, {"kernel": "poly", "coef0": 1.0, "gamma": 0.1}]
#: Options of the estimators of both packages, by what they learn.
PAIRS: list[tuple[str, str, list[dict[str, Any]]]] = [
    ("LinearSVC", "two classes", [
        *({"C": 0.5, "loss": loss, **bias}
          for loss in ("hinge", "squared_hinge") for bias in INTERCEPTS),
        JOINT, *({"penalty": "l1", "C": C} for C in (0.05, 1.0)),
    ]),
    ("LinearSVC", "classes", [BALANCED, OWN, {"loss": "hinge", **OWN}]),
    ("LogisticRegression", "two classes", [{"C": 2.0}, NO_BIAS, BALANCED]),
    ("LogisticRegression", "classes", [
        OWN, OWN | NO_BIAS,
        *({"C": 0.5, "l1_ratio": ratio, **bias, **OWN}
          for ratio in (0.3, 1.0) for bias in ({}, NO_BIAS)),
    ]),
    ("LinearSVR", "values", [
        {"C": 0.5, "loss": loss, "epsilon": epsilon, **bias}
        for loss in TUBES for epsilon in (0.0, 0.2) for bias in INTERCEPTS
    ]),
    ("SVC", "two classes", [{"C": C, **kernel} for C in (0.01, 1.0, 100.0)
                            for kernel in KERNELS]),
    ("SVC", "classes", [OWN | kernel for kernel in KERNELS]),
    ("SVR", "values", [{"C": C, "epsilon": epsilon, **kernel} for kernel in KERNELS
                       for C, epsilon in ((1.0, 0.1), (2.0, 0.0), (0.1, 0.5))]),
    ("OneClassSVM", "values", [{"nu": nu, **RBF} for nu in (0.0215, 0.333, 0.9013)]),
    ("NuSVC", "two classes", [{"nu": nu, **RBF} for nu in (0.1, 0.5)]),
    ("NuSVR", "values", [{"nu": nu, "C": C, **RBF}
                         for nu, C in product((0.1, 0.5, 1.0), (0.1, 10.0))]),
]  # fmt: skip
#: Attributes of models whose shapes are the same.
SHAPES = ("classes_", "coef_", "intercept_", "n_support_", "shape_fit_", "offset_")


def peer(name: str, options: dict[str, Any]) -> Any:
    """Return scikit-learn's estimator, which is to train to the end."""
    if name == "LogisticRegression":
        solver = "saga" if "l1_ratio" in options else "newton-cg"
        options = options | {"solver": solver, "max_iter": 100_000, "tol": 1e-7}
        return sklearn.linear_model.LogisticRegression(**options)
    if name.startswith("Linear"):
        dual = options.get("penalty") != "l1"
        options = options | {"dual": dual, "max_iter": 2_000_000, "random_state": 0}
    return getattr(sklearn.svm, name)(tol=1e-8, **options)


def values(model: Any, X: Any) -> Any:
    method = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, method)(X)


@pytest.mark.cases(88)
@pytest.mark.parametrize("layout", [np.asarray, np.float32, sparse.csr_matrix])
@pytest.mark.parametrize(
    ("name", "target", "options"),
    [(name, target, options) for name, targets, table in PAIRS
     for target in targets.split() for options in table],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_optimum_is_that_of_scikit_learn(
    name: str, target: str, options: dict[str, Any], layout: Any
) -> None:
    rows, y = layout(X), TARGETS[target]
    weight = None if name == "NuSVC" else WEIGHT
    model = getattr(dualgap, name)(tol=1e-7, max_iter=200_000, **options)
    model.fit(rows, y, sample_weight=weight)
    theirs = peer(name, options).fit(rows.astype(float), y, sample_weight=weight)
    assert model.certificate_.certified
    proof = dualgap.certify(theirs, rows, y, sample_weight=weight)
    for ours, other in zip(model.certificate_, proof, strict=True):
        room = 1e-6 * abs(ours.primal)
        assert ours.dual - room <= other.primal <= ours.primal + 1e3 * room
        assert ours.dual - 2e3 * room <= other.dual <= ours.primal + room
    found, wanted = values(model, rows), values(theirs, rows)
    size = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=2e-3 * size)
    if hasattr(theirs, "predict_proba"):
        found, wanted = model.predict_proba(rows), theirs.predict_proba(rows)
        np.testing.assert_allclose(found, wanted, atol=1e-3)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    for attribute in SHAPES:
        if np.ndim(getattr(theirs, attribute, None)):
            shape = np.shape(getattr(theirs, attribute))
            assert np.shape(getattr(model, attribute)) == shape, attribute
