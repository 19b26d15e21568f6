"""One table of refusals: what is wrong is named before any work, with its value."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from dualgap import SVC, SVCCV, SVRCV, LinearSVCCV
from dualgap.kernel import RBF
from dualgap.losses import SmoothedHinge
from dualgap.solvers import SDCA

from .subjects import ESTIMATORS, NAMES, X

pytestmark = pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
INF, NAN = float("inf"), float("nan")
#: Values that no estimator takes for a parameter of this name.
VALUES: dict[str, list[Any]] = {
    "C": [0.0, -1.0, -INF, NAN, "1"],
    "nu": [0.0, -0.1, 1.1, NAN, "much", None],
    "epsilon": [-1.0, NAN],
    "tol": [0, -1e-3, NAN],
    "atol": [-1.0],
    "max_iter": [0, -1],
    "time_limit": [0, -1.0],
    "n_jobs": [0, False, 1.5, "two", 4097, 1_000_000],
    "cache_size": [0, -1, 2e12, 1e300, INF, NAN],
    "intercept_scaling": [-1],
    "class_weight": ["equal", "balancd"],
    "loss": ["hing", "zero_one"],
    "solver": ["smo", "", SDCA],
    "kernel": ["gauss", "wavelet"],
    "degree": [0],
    "gamma": [0.0, -1.0, "big"],
    "coef0": [NAN],
    "decision_function_shape": ["ovx"],
    "multi_class": ["all"],
    "checkpoint_every": [0, -1.0, "often"],
    "fit_intercept": ["yes", None],
    "penalize_intercept": ["yes"],
    "penalty": ["l0"],
    "random_state": [-1, 0.5, "a"],
    "verbose": [-1, "loud"],
    "warm_start": ["yes"],
    "break_ties": ["maybe"],
    "certify_C": ["loss"],
    "error_tolerance": [0.0, 2.0, "a"],
    "refit": ["yes"],
}
#: Parameters that take tables, functions or files; other tests are about theirs.
FREE = {"Cs", "checkpoint", "cv", "epsilons", "gammas", "l1_ratio", "quantile"}
FREE |= {"scoring"}
EVERY = [*ESTIMATORS, LinearSVCCV, SVCCV, SVRCV]
every_estimator = pytest.mark.parametrize(
    "estimator", EVERY, ids=lambda kind: kind.__name__
)


def target(estimator: Any) -> Any:
    return NAMES if is_classifier(estimator()) else X[:, 0]


def test_no_parameter_is_missing() -> None:
    names = {name for kind in EVERY for name in kind().get_params()}
    assert names == VALUES.keys() | FREE


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("estimator", "parameter"),
    [(kind, name) for name in VALUES for kind in EVERY
     if name in kind().get_params()],
)  # fmt: skip
def test_values_of_parameters(estimator: Any, parameter: str) -> None:
    for value in VALUES[parameter]:
        model = estimator(**{parameter: value})
        told = f"'{parameter}' parameter of {estimator.__name__} must be"
        with pytest.raises(ValueError, match=told) as error:
            model.fit(X, target(estimator))
        assert f"Got {value!r} instead" in str(error.value)
        assert not hasattr(model, "certificate_")
    if parameter == "cache_size":
        estimator(cache_size=1e12).fit(X, target(estimator))


#: Rows, targets and weights that no estimator takes, and words of the answer.
DATA: dict[str, tuple[dict[str, Any], str]] = {
    "no rows": ({"X": X[:0], "y": NAMES[:0]}, "0 sample"),
    "NaN": ({"X": np.where(np.arange(X.size).reshape(X.shape) == 25, NAN, X)},
            r"row 3: .*NaN"),
    "infinite": ({"X": np.full(X.shape, INF)}, "row 0: value is NaN or infinite"),
    "sparse NaN": ({"X": sparse.csr_matrix(np.where(X == X[3, 1], NAN, X))},
                   "row 3: value is NaN"),
    "one dimension": ({"X": X[:, 0]}, "1D array"),
    "complex": ({"X": X.astype(complex)}, "Complex data"),
    "fewer targets": ({"y": NAMES[:89]}, "inconsistent numbers of samples"),
    "fewer weights": ({"sample_weight": np.ones(89)}, "sample_weight"),
    "negative weight": ({"sample_weight": np.r_[-1.0, np.ones(89)]}, "[Nn]egative"),
    "NaN weight": ({"sample_weight": np.r_[NAN, np.ones(89)]}, "NaN"),
    "no weight": ({"sample_weight": np.zeros(90)},
                  "at least one non-zero|fewer than 2 classes"),
}  # fmt: skip
#: The same of regressors.
TARGETS: dict[str, tuple[dict[str, Any], str]] = {
    "NaN target": ({"y": np.r_[NAN, X[1:, 0]]}, "NaN"),
    "infinite target": ({"y": np.r_[INF, X[1:, 0]]}, "infinity"),
}
#: The same of classifiers.
LABELS: dict[str, tuple[dict[str, Any], str]] = {
    "one class": ({"y": np.ones(90)}, "only one class, 1.0; give rows of at least 2"),
    "numbers": ({"y": np.arange(90) / 7.0}, "Unknown label type: continuous"),
    "one class with weight": (
        {"sample_weight": (NAMES == "ant").astype(float)},
        "fewer than 2 classes have rows with a positive|class \\w+ has no row",
    ),
}


@pytest.mark.cases(None)
@every_estimator
def test_data(estimator: Any) -> None:
    y = target(estimator)
    tables = {"classifier": LABELS, "regressor": TARGETS, "outlier_detector": {}}
    wrong = DATA | tables[get_tags(estimator()).estimator_type]
    for name, (change, words) in wrong.items():
        if "y" in change and len(change["y"]) < 90:
            change = change | {"y": y[: len(change["y"])]}
            if "OneClass" in estimator.__name__:
                continue
        model = estimator()
        with pytest.raises(ValueError, match=words):
            model.fit(**({"X": X, "y": y} | change))
        assert not hasattr(model, "certificate_"), name
    given = {"X": X, "y": np.arange(90) % 3, "sample_weight": np.ones(90)}
    for name, array in given.items():
        if name == "y" and "OneClass" in estimator.__name__:
            continue
        masked = given | {name: np.ma.masked_equal(array, array.flat[0])}
        with pytest.raises(TypeError, match=f"{name} is a MaskedArray, whose mask"):
            estimator().fit(**masked)


FUNCTION = SVC(kernel=lambda A, B: A @ B.T)


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "plain",
    [*(kind() for kind in EVERY),
     SVC(kernel="linear"), SVC(kernel="poly"), FUNCTION],
    ids=lambda model: repr(model).partition(" at 0x")[0],  # no address
)  # fmt: skip
def test_rows_to_predict(plain: Any) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(plain).predict(X)
    y = target(type(plain))
    for layout in (np.asarray, sparse.csr_matrix):
        model = clone(plain).fit(layout(X), y)
        with pytest.raises(ValueError, match="expecting 8 features"):
            model.predict(layout(X[:, :3]))
        for value in (NAN, INF):
            wrong = X.copy()
            wrong[3, 1] = value
            with pytest.raises(ValueError, match=r"NaN|infinity"):
                model.predict(layout(wrong))
    if hasattr(model, "coef_") and "Linear" in repr(plain):
        large = X.copy()
        large[2, 1] = 1e200  # the norm of the row overflows, its values do not
        found = model.predict(sparse.csr_matrix(large))
        wanted = model.predict(large)
        if is_classifier(model):
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    if plain is FUNCTION:
        return
    wrong = sparse.csr_matrix(X)
    wrong.indices[5] = 1_000_000
    with pytest.raises(ValueError, match=r"column index|out of range"):
        model.predict(wrong)


#: Of one estimator: its name, parameters, and words of the answer.
OTHERS: list[tuple[str, dict[str, Any], str]] = [
    ("LinearSVC", {"loss": "hing"}, "'squared_hinge'.* Got 'hing'"),
    ("LinearSVC", {"solver": "smo"}, "'sgd-s'.* Got 'smo'"),
    ("LinearSVC", {"solver": "sgd-s"}, "use loss='hinge', or solver='dcd'"),
    ("LinearSVC", {"solver": "pegasos", "warm_start": True, "loss": "hinge"},
     "'pegasos' keeps no dual variables"),
    ("LinearSVC", {"class_weight": {"ant": 1, "bee": -1}}, "class_weight=.*: weights"),
    ("LinearSVC", {"class_weight": {7: 1}}, "the key 7, which is no class"),
    ("SVC", {"class_weight": {"ant": 1, "bee": -1}}, "class_weight=.*: weights must"),
    ("SVC", {"kernel": RBF}, "is a class; give an instance"),
    ("SVC", {"loss": "smoothed_hinge"}, "'loss' parameter"),
    ("SVC", {"loss": SmoothedHinge(0.5)}, "'loss' parameter"),
    ("SVC", {"solver": "dcd"}, "'solver' parameter"),
    *(("SVC", {"solver": name}, f"solver='{name}' .*use loss='squared_hinge'")
      for name in ("fw", "mfw", "mdm", "swap", "swap-2o", "core-vector")),
    *((kind, {"break_ties": True, "decision_function_shape": "ovo"},
       "break_ties must be False") for kind in ("SVC", "NuSVC")),
    ("SVC", {"kernel": "sigmoid", "loss": "squared_hinge"}, "indefinite"),
    ("SVC", {"kernel": "poly", "coef0": -1.0, "solver": "nystroem"}, "indefinite"),
    ("SVR", {"kernel": "sigmoid", "coef0": 1.0, "gamma": 2.0}, "indefinite"),
    ("SVC", {"kernel": lambda A, B: -(A @ B.T)}, "indefinite"),
    ("SVC", {"kernel": lambda A, B: (A @ B.T)[:, :-1]}, "shape"),
    ("SVC", {"kernel": lambda A, B: np.full((len(A), len(B)), NAN)}, "NaN"),
    *((kind, {"kernel": lambda A, B: A @ B.T + 1j}, "returned complex values")
      for kind in ("SVC", "SVR", "OneClassSVM")),
    ("SVC", {"kernel": "precomputed"}, "square"),
    ("SVR", {"solver": "swap"}, "'solver' parameter"),
    ("LinearSVR", {"loss": "hinge"}, "'loss' parameter"),
    ("NuSVC", {"solver": "frank-wolfe"}, "'solver' parameter"),
    ("LogisticRegression", {"solver": "lbfgs"}, "'solver' parameter"),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize(("name", "options", "words"), OTHERS)
def test_parameters_of_one_estimator(
    name: str, options: dict[str, Any], words: str
) -> None:
    (estimator,) = [kind for kind in ESTIMATORS if kind.__name__ == name]
    model = estimator(**options)
    with pytest.raises((TypeError, ValueError), match=words):
        model.fit(X, target(estimator))
    assert not hasattr(model, "certificate_")


def test_a_class_without_weight_is_named() -> None:
    weight = np.where(NAMES == "cat", 0.0, 1.0)
    for estimator in ESTIMATORS:
        options = {"multi_class": "ovo"} if estimator.__name__ == "LinearSVC" else {}
        if is_classifier(estimator()):
            with pytest.raises(ValueError, match=re.escape("class cat has no row")):
                estimator(**options).fit(X, NAMES, weight)
