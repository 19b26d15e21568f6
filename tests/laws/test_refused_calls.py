"""One table of refused calls: the function, what is wrong, and words of the answer.

The values of an estimator's own parameters are in test_refusals.py.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model as others
import sklearn.svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import dualgap
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
    calibrated,
    certify,
    compress,
    load_model,
    save_model,
)
from dualgap import kernel as kernels
from dualgap.answers import Decided
from dualgap.data import RowStore, convert
from dualgap.kernel import Nystroem
from dualgap.losses import Pinball
from dualgap.memory import make_room_for
from dualgap.model_selection import l1_path, svc_path, svm_path
from dualgap.models import (
    cv_bounds,
    influence,
    loo_bounds,
    read_liblinear,
    read_libsvm,
    shapley_values,
    what_if,
    write_liblinear,
    write_libsvm,
    write_proof,
)
from dualgap.solvers import DCD, LogisticNewton, SequentialDual

from .subjects import NAMES, X

pytestmark = pytest.mark.filterwarnings(
    "ignore::dualgap.DegenerateWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore::FutureWarning",
)
INF, NAN = float("inf"), float("nan")
TWO = np.where(NAMES == "ant", "ant", "bee")
TARGET = X[:, 0] + np.sin(X[:, 1])
TABLE = np.column_stack([NAMES == name for name in ("ant", "bee", "cat")]).astype(int)
TARGETS: dict[str, Any] = {"classes": NAMES, "two": TWO, "labels": TABLE}
TARGETS |= {"targets": TARGET, "none": None}
PLACES = np.unique(NAMES, return_index=True)[1]  # the first row of each class
MASKED = np.ma.masked_less(X, 0.0)
JOINT = {"loss": "hinge", "multi_class": "crammer_singer"}
SQUARES = "squared_epsilon_insensitive"


@functools.cache
def fitted(kind: Any, learns: str = "two", **options: Any) -> Any:
    """Fit a model to classes, to two of them, to labels, to targets, or to no y."""
    return kind(**options).fit(X, TARGETS[learns])


def of(*model: Any, **options: Any) -> Callable[[], Any]:
    """Return the way to a fitted model, which the test takes."""
    return partial(fitted, *model, **options)


def fit(kind: Any, y: Any = NAMES) -> Callable[..., object]:
    """Return the fit of an estimator with its options."""
    return lambda **options: kind(**options).fit(X, y)


def stored(folder: Path, y: Any = NAMES) -> RowStore:
    """Return the rows in a store."""
    return convert([(X, np.unique(y, return_inverse=True)[1])], folder / "rows")


class OwnKernel(kernels.RBF):
    """A kernel of somebody."""


def text(folder: Path, content: str) -> Path:
    (folder / "rows").write_text(content)
    return folder / "rows"


def words() -> Any:
    """Return the rows as a table whose second column holds a word."""
    table = pytest.importorskip("pandas").DataFrame(X, columns=[*"abcdefgh"], dtype="O")
    table.loc[3, ["a", "b"]] = "1", "never"
    return table


def scaled(scale: float) -> Any:
    model = others.HuberRegressor().fit(X, TARGET)
    model.scale_ = scale
    return model


UNREFITTED = GridSearchCV(SVC(), {"C": [1.0]}, cv=2, refit=False)
HINGE = sklearn.svm.LinearSVC(loss="hinge", tol=0.1, random_state=0)
bag = functools.cache(lambda: BaggingClassifier(HINGE, 2).fit(X, TWO))
folded = functools.cache(lambda: CalibratedClassifierCV(
    HINGE, cv=StratifiedKFold(3, shuffle=True)).fit(X, TWO))  # fmt: skip


def renamed(y: Any) -> Any:
    return np.array([name[::-1] for name in y])


path, certified = partial(svm_path, X, NAMES), {"Cs": (0.1, 1.0), "certify_C": True}
nu, loss = {"model": np.zeros(8), "nu": 0.1}, {"model": np.zeros(8), "loss": SQUARES}
#: Functions, right arguments, and those that are wrong in their place.
ARGUMENTS: list[tuple[list[Any], dict[str, Any], list[tuple[dict[str, Any], str]]]] = [
    ([path, fit(LinearSVCCV)], {}, [
        ({"Cs": [1.0, -1.0]}, "positive, finite"),
        ({"Cs": []}, "positive, finite"),
        ({"Cs": 0}, "number of values|how many"),
        ({"Cs": ["a"]}, r"Cs=\['a'\] is invalid; give positive, finite numbers"),
        ({"Cs": [1.0, 2.0], "solver": "pegasos"}, "keeps no dual variables"),
        ({"Cs": [1.0], "loss": "log"}, "loss"),
    ]),
    ([path], {}, [
        ({"class_weight": {"cat": 0.0}, "multi_class": "ovo"},
         "class cat has no row with a positive weight"),
        ({"loss": "log"}, "loss='log' is unknown; .* or 'logistic'"),
        ({"loss": "logistic", "multi_class": "ovo"}, "ovo' does not go with loss="),
        ({"loss": "logistic", "intercept_scaling": 2}, "ing=2 does not go with loss="),
        ({"loss": "logistic", "solver": "sdca"}, "solver"),
    ]),
    ([fit(SVCCV)], {"Cs": [1.0], "cv": 2}, [
        ({"gammas": []}, "gammas=.* is empty"),
        ({"gammas": [0.1, None]}, r"gammas=\[0\.1, None\] is empty or invalid; give"),
        ({"Cs": [0.0]}, "Cs"),
        ({"gammas": [-1.0]}, "gamma"),
        ({"scoring": lambda *_: NAN}, "gave NaN for every candidate"),
        ({"time_limit": 1e-9}, "before any candidate was scored"),
        ({"solver": "nystroem", "time_limit": 1e-9}, "before any candidate was scored"),
        ({"solver": "frank-wolfe"}, "'solver' parameter of SVCCV must be"),
        ({"solver": "nystroem", "Cs": (0.1, 1.0), "certify_C": True},
         "solver='nystroem' does not go with certify"),
        ({"solver": Nystroem(100), "cache_size": 0.01},
         r"cache_size=0\.01 .* use cache_size=1, or"),
    ]),
    ([fit(SVRCV, TARGET)], {"Cs": [1.0], "cv": 2}, [
        *(({name: []}, f"{name}=.* is empty") for name in ("gammas", "epsilons")),
        ({"epsilons": ["scale"]}, r"epsilons=\['scale'\] is empty or invalid"),
        ({"epsilons": [-1.0]}, r"epsilon=-1\.0 is out of range"),
    ]),
    ([partial(svc_path, X, NAMES)], {}, [
        ({"Cs": [1.0, 1.0]}, "equal values"),
        ({"Cs": [0.0]}, "positive"),
        ({"Cs": [1.0], "solver": "mfw"}, "needs 'auto' or 'block'"),
        ({"Cs": [1.0], "gamma": -1.0}, "gamma"),
        ({"Cs": [1.0], "time_limit": 1e-9}, "before any model was finished"),
    ]),
    ([fit(LinearSVCCV), fit(SVCCV)], certified, [
        ({"scoring": "roc_auc"}, "scoring='roc_auc'"),
        ({"Cs": [1.0]}, "needs an interval"),
        ({"error_tolerance": 1e-6, "time_limit": 1e-9}, "time_limit"),
    ]),
    ([fit(SVCCV)], certified, [
        ({"checkpoint": "file"}, "checkpoint="),
        ({"cv": [(np.flatnonzero(NAMES != "cat"), np.arange(4))]},
         "class cat has no row"),
    ]),
    ([partial(l1_path, X, TWO)], {}, [
        ({"loss": "hinge"}, "loss='hinge' is unknown"),
        ({"l1_ratio": 0.5}, r"l1_ratio=0\.5 does not go with squared_hinge; use 1"),
        ({"loss": "logistic", "l1_ratio": 0}, "l1_ratio=0 does not go with logistic"),
        ({"Cs": [-1.0]}, "positive, finite numbers"),
    ]),
    ([fit(LinearSVC)], {"penalty": "l1"}, [
        ({"loss": "hinge"}, "loss='hinge' is not supported by penalty='l1'"),
        ({"multi_class": "ovo"}, "multi_class='ovo' is not supported by penalty='l1'"),
        ({"solver": "dcd"}, "solver='dcd' is not supported by penalty='l1'"),
    ]),
    ([fit(LinearSVC, TABLE)], {}, [
        ({"multi_class": "ovo"}, "multi_class='ovo'"),
        ({"class_weight": {2: 1.0}}, "key 2"),
        ({"class_weight": {0: 0.0, 1: 0.0}}, "not all zero"),
    ]),
    ([fit(LinearSVC)], JOINT, [
        ({"loss": "squared_hinge"}, "loss='hinge'"),
        ({"solver": "dcd"}, "solver='auto'"),
        ({"solver": DCD()}, "solver='auto'"),
        ({"penalize_intercept": False}, "penalize_intercept=False is not"),
        ({"checkpoint": "file", "random_state": 0}, "cannot write checkpoints"),
    ]),
    ([fit(LinearSVC)], {}, [
        ({"solver": SequentialDual()}, "is for crammer-singer problems"),
        ({"penalize_intercept": False, "fit_intercept": False},
         "needs fit_intercept=True"),
        ({"penalize_intercept": False, "intercept_scaling": 2.0},
         r"intercept_scaling=2\.0 has no effect"),
    ]),
    ([fit(LogisticRegression)], {}, [
        ({"l1_ratio": 1.5}, "'l1_ratio' parameter"),
        ({"penalty": "l1", "l1_ratio": 0.5}, r"contradicts l1_ratio=0\.5; give l1_r"),
    ]),
    ([fit(LinearSVR, TARGET), fit(SVR, TARGET)], {}, [
        *(({"loss": "quantile", "quantile": value}, "quantile")
          for value in (0.0, 1.0, -0.1, 2, NAN, [0.5, 1.0], True)),
        ({"loss": "quantile", "quantile": []},
         r"quantile=\[\] has no value; give one, such as quantile=0.5"),
        *(({"loss": "quantile", "quantile": value},
           "is not a number or a list of numbers") for value in ([[0.5]], ["a"])),
        ({"loss": "quantile", "quantile": [0.5, 0.5]}, "has a value twice"),
        *(({"quantile": value}, "has no effect with loss='epsilon_insensitive'; use")
          for value in (0.9, [0.5], [0.5, 0.9])),
    ]),
    ([fit(LinearSVR, TARGET)], {}, [
        ({"solver": "newton"}, "use solver='dcd'"),
        ({"loss": "quantile", "solver": "newton"}, "quantile"),
        ({"loss": SQUARES, "solver": "interior-point"},
         "needs loss='epsilon_insensitive' or"),
    ]),
    ([fit(SVC)], {"kernel": "linear"}, [
        ({"penalize_intercept": True}, "penalize_intercept=True: solver='auto' does"),
        ({"solver": "kernel-pegasos", "penalize_intercept": False},
         "'kernel-pegasos' penalises the bias"),
        ({"solver": "kernel-pegasos", "penalize_intercept": False,
          "fit_intercept": False}, "needs an intercept; use fit_intercept=True"),
    ]),
    # ------------------------------------------------------------------ calibration
    ([calibrated], {"model": LinearSVC(), "X": X, "y": NAMES}, [
        ({"model": SVC(decision_function_shape="ovo")},
         "decision_function_shape='ovo'.*use 'ovr'"),
        ({"method": "platt"}, "'method' .* must be .*'platt'"),
        ({"cv": 60}, r"cv=60 is more than the \d+ rows of class .*; use cv="),
        ({"cv": KFold(2).split(np.zeros(20))}, "hold out every row"),
        ({"y": np.ones(90)}, "only one class"),
        ({"y": np.arange(88) % 2}, "inconsistent numbers of samples"),
        ({"y": None}, "requires y to be passed"),
        ({"y": np.arange(90) == 0}, "more than the 1 rows of class True; give"),
        ({"y": np.arange(90) < 40, "cv": KFold(2)},
         "fold 0 has no training row of class True"),
        ({"sample_weight": np.arange(90) == 3}, "fewer than 2 classes"),
        ({"sample_weight": 1.0 * np.isin(np.arange(90), PLACES)},
         "no training row of class .* with a positive weight"),
        ({"sample_weight": -np.ones(90)}, "[Nn]egative"),
    ]),
    # ------------------------------------------------------------------ answers
    ([what_if], {"model": of(LinearSVC), "X": X, "y": TWO}, [
        ({"without": [90]}, "without has row 90, but X has rows 0 to 89"),
        ({"without": [0.5]}, "give indices"),
        ({"without": np.zeros(3, bool)}, "one entry per row"),
        ({"without": np.flatnonzero(TWO == "ant")}, "class ant has no row left"),
        ({"X_more": X[:1]}, "belong together"),
        ({"X_more": X[:1], "y_more": ["eel"]}, "label eel"),
        ({"X_more": X[:1, :3], "y_more": ["ant"]}, "8 features"),
    ]),
    # ------------------------------------------------------------------ models
    ([certify], {"X": X, "y": TWO}, [
        ({"model": np.zeros((2, 8))}, r"need \(1, 8\)"),
        ({"model": np.zeros(5)}, r"need \(1, 8\)"),
        ({"model": np.full(8, NAN)}, "are not finite"),
        ({"model": np.zeros(8), "intercept": [1, 2]},
         "one finite number per row, 1 in all"),
        ({"model": np.zeros(8), "penalize_intercept": True}, "needs an intercept"),
        ({"model": np.zeros(8), "tol": 0.0}, "'tol'"),
        ({"model": np.zeros(8), "time_limit": -1}, "'time_limit'"),
        ({"model": np.zeros(8), "y": TWO[:7]}, "7 labels"),
        ({"model": of(sklearn.svm.LinearSVC), "C": 2.0}, "C=2.0"),
        ({"model": of(sklearn.svm.LinearSVC), "loss": "hinge"}, "loss="),
        ({"model": of(others.SGDClassifier, penalty="l1")},
         "loss='hinge' with an L1 norm"),
        ({"model": of(others.SGDClassifier, loss="log_loss")}, "log_loss"),
        ({"model": of(others.SGDClassifier, penalty=None)}, "penalty=None"),
        ({"model": of(sklearn.svm.SVC), "X": -X},
         "does not contain the model's support"),
        ({"model": of(sklearn.svm.SVC), "X": X[:9]}, "90"),
        ({"model": of(sklearn.svm.SVC), "y": NAMES}, "classes"),
        ({"model": of(others.LogisticRegression, penalty=None)}, "penalty=None"),
        ({"model": of(others.LogisticRegression, solver="liblinear")},
         "penalises the intercept"),
        ({"model": of(others.LogisticRegression, C=INF)},
         "no single finite C, .* a large C, such as 1e6"),
        ({"model": of(others.LogisticRegressionCV, Cs=2, cv=2)},
         r"no single finite C, .* with C=C_\[0\]"),
        *(({"model": np.zeros(8), "C": 1.0, "intercept": 0.0, "y": y, "loss": "hubr"},
           "loss='hubr' is unknown; use one of 'hinge', .* 'quantile'$")
          for y in (TWO, TARGET)),
        ({"model": of(others.LogisticRegression), "y": renamed(TWO)},
         "give the training labels"),
        ({"model": np.zeros(8), "loss": "logistic"}, "C is missing"),
        ({"model": np.zeros(8), "loss": "logistic", "C": 1.0, "epsilon": 0.1},
         "is for regression"),
        ({"model": np.zeros(8), "loss": "logistic", "C": 1.0, "intercept": 0.0,
          "penalize_intercept": True}, "constant column"),
        ({"model": np.zeros(3), "loss": "logistic", "C": 1.0}, r"need \(1, 8\)"),
        ({"model": of(others.RidgeClassifier, "classes", positive=True), "y": NAMES},
         "positive=True"),
        ({"model": of(others.RidgeClassifier, "classes"), "y": None}, "y is missing"),
        ({"model": of(others.RidgeClassifier, "classes"), "y": TABLE[:, :2]},
         "trained with 3"),
        ({"model": of(others.RidgeClassifier, "classes"), "y": renamed(NAMES)},
         "training labels"),
        ({"model": of(others.RidgeClassifier, "classes"), "y": NAMES, "C": 3.0},
         "C=3.0 contradicts"),
    ]),
    ([certify], {"X": X, "y": TARGET}, [
        ({"model": of(others.Ridge, "targets", alpha=0.0)},
         r"Ridge\(alpha=0.0\) has no finite C"),
        ({"model": of(others.HuberRegressor, "targets", alpha=0.0)},
         "has no finite C"),
        ({"model": of(others.HuberRegressor, "targets"), "C": 3.0},
         "C=3.0 contradicts"),
        ({"model": of(others.HuberRegressor, "targets"), "X": X[:, :2]}, "2 features"),
        ({"model": of(others.HuberRegressor, "targets"), "y": None}, "y is missing"),
        ({"model": of(sklearn.svm.NuSVR, "targets"), "C": 2.0}, "C=2.0"),
        ({"model": of(sklearn.svm.NuSVR, "targets"), "nu": 0.3}, "nu=0.3"),
        ({"model": of(others.SGDRegressor, "targets", loss="huber")}, "loss='huber'"),
        ({"model": of(others.SGDRegressor, "targets", loss=SQUARES, penalty="l1")},
         "penalty='l1'"),
        ({"model": of(others.SGDRegressor, "targets", loss=SQUARES, penalty=None)},
         "penalty=None"),
        ({"model": of(sklearn.svm.LinearSVR, "targets"), "C": 2.0}, "C=2.0"),
        ({"model": of(sklearn.svm.LinearSVR, "targets"), "epsilon": 2.0},
         "epsilon=2.0"),
        ({"model": of(sklearn.svm.LinearSVR, "targets"), "y": None}, "y is missing"),
        ({"model": of(sklearn.svm.OneClassSVM, "none"), "C": 2.0}, "does not apply to"),
        ({"model": of(sklearn.svm.OneClassSVM, "none"), "X": X[:9]},
         "give the training rows"),
        ({"model": of(sklearn.svm.SVR, "targets"), "X": -X},
         "does not contain the model's support"),
        ({"model": of(sklearn.svm.SVR, "targets"), "y": np.zeros(3)}, "3 targets"),
        ({"model": of(others.SGDOneClassSVM, "none", fit_intercept=False)},
         "fixes the offset"),
        ({"model": np.zeros(8), "epsilon": 1.0}, "is for regression"),
        (nu, "intercept=-rho"),
        (nu | {"C": 1.0}, "does not apply to"),
        (nu | {"loss": "hinge"}, "leave it out"),
        (loss | {"model": np.zeros((2, 8))}, "one row"),
        (loss | {"model": np.zeros(4)}, "8 features"),
        (loss | {"class_weight": "balanced"}, "classes"),
        ({"model": of(NuSVR, "targets"), "C": 3.0}, r"C=3\.0"),
    ]),
    ([compress], {"X": X, "y": TWO}, [
        ({"model": of(LinearSVC, tol=0.01, solver="dcd"), "tol": 1e-9},
         "below the gap of the model"),
        ({"model": of(LinearSVC), "X": X[1:], "y": TWO[1:]}, "rows"),
        ({"model": of(LinearSVC, **JOINT)}, "multi_class='ovr'"),
        ({"model": of(SVC, solver="nystroem")}, "landmarks"),
        ({"model": of(SVC), "X": X[::-1], "y": TWO[::-1]},
         "does not contain the model's support"),
        ({"model": of(SVC), "tol": 0.0}, "tol"),
        ({"model": of(SVC), "max_support": 0}, "max_support"),
        ({"model": of(LinearSVC), "max_support": 9}, "max_support=9 is for SVC"),
    ]),

    ([shapley_values], {"X": X, "background": X}, [
        *(({"model": of(package.SVC, kernel="poly", coef0=1.0)},
           "kernel='poly' is not a product.*train with 'rbf'")
          for package in (dualgap, sklearn.svm)),
        ({"model": lambda: SVC(kernel="precomputed").fit(X @ X.T, TWO)}, "precomputed"),
        ({"model": of(SVC), "background": X[:, :4]},
         r"background has 4 features.*trained on 8"),
        ({"model": of(SVC), "X": X[:, :4]}, r"X has 4 features.*trained on 8"),
        ({"model": of(SVC), "background": X[:0]}, "background has no rows; give"),
        ({"model": of(SVC), "background": np.where(X > 1, NAN, X)},
         "background contains NaN"),
        ({"model": of(SVC), "n_jobs": 0}, "n_jobs"),
    ]),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("functions", "given", "words"),
    [(functions, right | wrong, words) for functions, right, rows in ARGUMENTS
     for wrong, words in rows],
)  # fmt: skip
def test_arguments(
    functions: Any, given: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if calibrated in functions:  # before any fit
        monkeypatch.setattr(LinearSVC, "_fit", None)
        monkeypatch.setattr(SVC, "_fit", None)
    for function in functions:
        options = {k: v() if k == "model" and callable(v) else v
                   for k, v in given.items()}  # fmt: skip
        with pytest.raises(ValueError, match=words):
            function(**options)


together, free = of(LinearSVC, **JOINT), of(LinearSVC, penalize_intercept=False)
linear, kernel, l1 = of(LinearSVC), of(SVC), of(LinearSVC, penalty="l1")
labels = of(LinearSVC, "labels")
#: Calls in a folder of their own, and words of the answer.
CALLS: dict[type[Exception], list[tuple[Callable[[Path], object], str]]] = {
    ValueError: [
        # -------------------------------------------------------------- estimators
        *((lambda _, use=use: use(words()), "string to float: 'never' in column 'b'; "
           "encode columns of words, .*OneHotEncoder")
          for use in (
              lambda t: SVC().fit(t, TWO), lambda t: svm_path(t, TWO),
              lambda t: certify(fitted(SVC), t, TWO),
              lambda t: LinearSVC().fit(t[4:].astype(float), TWO[4:]).predict(t))),
        (lambda _: LogisticRegression(warm_start=True).fit(X, TABLE).fit(X, TWO),
         "set warm_start=False"),
        (lambda _: LogisticRegression(warm_start=True).fit(X, TABLE).fit(
            X, TABLE[:, :2]), r"need \(2, 8\); set warm_start=False"),
        *((lambda _, kind=kind, given=given: kind(**given[0]).fit(X, TWO, **given[1]),
           given[2])
          for kind in (LinearSVC, LogisticRegression) for given in (
              ({}, {"coef_init": X[:1, :3]}, r"coef_init has shape \(1, 3\).*\(1, 8\)"),
              ({}, {"intercept_init": [1, 2]}, r"intercept_init has shape \(2,\)"),
              ({}, {"coef_init": NAN * X[:1]}, "coef_init contains NaN"),
              ({}, {"coef_init": X[:1] + 1e200}, r"coef_init has .* 1e\+200, whose"),
              ({"fit_intercept": False}, {"intercept_init": [1.0]},
               "intercept_init is not supported by fit_intercept=False; leave"))),
        *((lambda _, given=given: LinearSVC(**given).fit(X, NAMES, coef_init=X[:3]),
           "cannot start from coef_init; use .*, or leave coef_init out")
          for given in (JOINT, {"solver": "dcd"})),
        (lambda _: LinearSVC().fit(X, NAMES, intercept_init=1.0),
         r"intercept_init has shape \(\), but these data need \(3,\)"),
        (lambda _: LinearSVC(multi_class="ovo", warm_start=True).fit(X, NAMES)
         .set_params(multi_class="ovr").fit(X, NAMES),
         "did not have multi_class='ovr'"),
        *((lambda _, kind=kind, y=y: kind().fit(X, y), words)
          for kind in (LinearSVC, LogisticRegression) for y, words in (
              (2 * TABLE, "the value 2"), (TABLE[1:], "inconsistent"),
              (np.where(TABLE > 0, NAN, 0.0), "NaN"))),
        *((lambda _, y=y: LinearSVC().fit(X, y), "y does not fit into 64 bits")
          for y in ([2**64, 1] * 45, [-(10**400), 1] * 45)),
        *((lambda _, fit=fit: fit(X, NAMES, n_jobs=1_000_000),
           r"'n_jobs' parameter of .* Got 1000000")
          for fit in (svm_path, *(partial(use, LinearSVC().fit(X, NAMES))
                                  for use in (certify, compress)))),
        (lambda _: SVC(kernel="linear", solver="nystroem").fit(0 * X, NAMES),
         "is 0 at all"),
        (lambda _: SVC(kernel="precomputed").fit(X @ X.T, NAMES).predict(X),
         "expecting 90 features"),
        *((lambda at, kind=kind: kind().fit(stored(at), TARGET),
           f"{kind.__name__} needs its rows in memory")
          for kind in (LinearSVR, SVR, LinearOneClassSVM, OneClassSVM)),
        *((lambda at, model=model: model.fit(stored(at, TWO)),
           r"penalty='l1'|l1_ratio above 0")
          for model in (LinearSVC(penalty="l1"), LogisticRegression(l1_ratio=1))),
        (lambda _: l1_path(0 * X[:4], [0, 1, 0, 1], fit_intercept=False),
         "no column of X has to do with y"),
        (lambda _: svc_path(X, TWO, [1.0], kernel=lambda A, B: A @ B.T).save("file"),
         "is a function"),
        (lambda _: LinearSVC().fit(X, TWO).partial_fit(X, TWO).certify([(-X, TWO)]),
         "batch 0 was never learned"),
        # -------------------------------------------------------------- calibration
        *((lambda _, kind=kind: calibrated(kind().fit(X[1:], NAMES[1:]), X, NAMES),
           "fitted to 89 rows, but X has 90") for kind in (LinearSVC, SVC)),
        *((lambda _, kind=kind: calibrated(fitted(kind, "classes"), X, renamed(NAMES)),
           "fitted to the classes") for kind in (LinearSVC, SVC)),
        # -------------------------------------------------------------- answers
        *((call, "L1 norm, which a bound on the exact") for call in (
            lambda _: l1().decision_bounds(X), lambda _: l1().coef_bounds(),
            lambda _: l1().certified_labels(X), lambda _: l1().bound_optimum(X, TWO),
            lambda _: clone(l1()).fit(X, TWO, until=Decided(X)),
            lambda _: what_if(l1(), X, TWO, without=[0]))),
        (lambda _: linear().bound_optimum(X[:-1], TWO[:-1]), "89 rows"),
        (lambda _: linear().bound_optimum(X, TWO[:-1]), "89 labels"),
        (lambda _: linear().bound_optimum(X[:, :2], TWO), "features"),
        (lambda _: linear().decision_bounds(X[:, :2]), "features"),
        (lambda _: together().certified_support(X, TWO), "crammer_singer"),
        (lambda _: fitted(SVC, solver="nystroem").bound_optimum(X, TWO), "nystroem"),
        (lambda _: SVC(solver="nystroem").fit(X, TWO, until=Decided(X)), "nystroem"),
        (lambda _: LinearSVC().partial_fit(X, TWO, ["ant", "bee"])
         .partial_fit(-X, TWO).decision_bounds(X), "certify"),
        *((lambda _, share=share: Decided(X, share), "share")
          for share in (0.0, 1.5, NAN)),
        (lambda _: LinearSVC().fit(X, TWO, until=Decided(X[:, :2])), "8 features"),
        (lambda at: LinearSVC(checkpoint=at / "c").fit(X, TWO, until=Decided(X)),
         "checkpoint"),
        (lambda _: influence(free(), X, TWO, X), "use what_if"),
        (lambda _: what_if(together(), X, TWO, without=[0]), "crammer_singer"),
        (lambda _: loo_bounds(together(), X, TWO),
         r"use LinearSVC\(multi_class='ovr'\)"),
        (lambda _: loo_bounds(together(), X, TWO, refine="all"), "refine"),
        # -------------------------------------------------------------- models
        *((lambda _, use=use: use(labels(), X, TABLE), "a column of y per label")
          for use in (loo_bounds, cv_bounds)),
        (lambda at: save_model(fitted(LogisticRegression, solver=LogisticNewton()),
                               at / "m"), "solver"),
        *((lambda _, kind=kind: dualgap.report(
            fitted(kind, "targets", loss="quantile", quantile=(0.1, 0.9)), X, TARGET),
           "report is about one quantile") for kind in (LinearSVR, SVR)),
        *((lambda _, kind=kind: fitted(
            kind, "targets", loss="quantile", quantile=(0.1, 0.9)).score(X, TARGET),
           r"has several; use .*mean_pinball_loss") for kind in (LinearSVR, SVR)),
        (lambda _: certify(np.zeros(8), X, TARGET, 1.0, loss="quantile"),
         "give quantile=0.9"),
        (lambda _: certify(np.zeros(8), X, TARGET, 1.0, quantile=0.9),
         r"quantile=0\.9 needs loss='quantile'; give both"),
        (lambda _: certify(np.zeros(8), X, TARGET, 1.0, loss=Pinball(0.1), epsilon=0.5),
         "contradicts"),
        (lambda at: write_liblinear(linear(), at / "m"), "whole numbers"),
        (lambda at: write_libsvm(kernel(), at / "m"), "whole numbers"),
        (lambda at: write_liblinear(LinearSVC().fit(X, 2**40 + (TWO == "ant")),
                                    at / "m"), "whole numbers"),
        (lambda at: write_proof(SVC(kernel="precomputed").fit(X @ X.T, TWO), X @ X.T,
                                TWO, at / "proof"), "precomputed' has no proof file"),
        (lambda at: write_proof(linear(), X[:9], TWO[:9], at / "proof"),
         "trained on 90; give the training rows"),
        *((lambda at, read=read: read(text(at, "a,b,label\n1,2,0\n")),
           f"is not a model file of {package}") for read, package in (
               (read_liblinear, "LIBLINEAR"), (read_libsvm, "LIBSVM"))),
        (lambda at: write_proof(linear(), X, TWO, at / "p", data=text(at, "1 1:1\n")),
         "not the rows of data="),
        (lambda _: compress(pickle.loads(pickle.dumps(linear())), X, TWO[::-1]),
         "not the training data"),
        (lambda _: certify(scaled(0.0), X, TARGET),
         r"scale_=0\.0 is not a positive number"),
        *((lambda at, own=own: save_model(
            SVC(kernel=own).fit(X, TWO), at / "m"),
           "is a function, which a model file cannot hold")
          for own in (lambda A, B: A @ B.T, kernels.Callable(lambda A, B: A @ B.T))),
        (lambda at: save_model(SVC(kernel=OwnKernel(gamma=0.5)).fit(X, TWO), at / "m"),
         "is not a record of dualgap"),
        (lambda _: certify(bag(), X, TWO, sample_weight=np.ones(90)),
         "which rows a bagging ensemble drew"),
        (lambda _: certify(folded(), X, TWO),
         "with an int as random_state of the folds"),
        # -------------------------------------------------------------- reports
        (lambda _: dualgap.report(linear(), X[::2], TWO[::2]),
         "not the training data of the model"),
        (lambda _: dualgap.report(linear(), X, TWO, feature_names=["a", "b"]),
         "feature_names has 2 names, but X has 8"),
        (lambda _: dualgap.report(linear(), X), "y is missing"),
        (lambda _: dualgap.report(linear(), X[0], TWO), "Expected 2D array"),
        (lambda _: dualgap.report(LinearSVC(), X, TWO), "not fitted"),
    ],
    TypeError: [
        (lambda _: svm_path(MASKED, NAMES), "X is a MaskedArray, whose mask"),
        (lambda _: LinearSVC().partial_fit(MASKED, TWO, ["ant", "bee"]),
         "X is a MaskedArray, whose mask"),
        *((lambda _, model=model: calibrated(model, X, NAMES), words)
          for model, words in (
              (SVR(), "model is a SVR, but calibration takes"),
              (None, "model is a NoneType"),
              (make_pipeline(StandardScaler(), SVC()), r"model is a Pipeline.*put "
               r"CalibratedClassifier\(SVC\(\.\.\.\)\) in the pl"))),
        (lambda _: calibrated(LinearSVC(), MASKED, NAMES), "X is a MaskedArray"),
        (lambda _: NuSVC(C=1.0), "NuSVC has no parameter 'C': use nu"),
        (lambda _: LinearSVR(penalize_intercept=False),
         r"has no parameter 'penalize_intercept': raise intercept_scaling, or use SVR"),
        (lambda _: NuSVC(probability=True), r"CalibratedClassifierCV\(model, ens"),
        (lambda _: NuSVR(epsilon=0.1), "'epsilon': leave it out; nu chooses it"),
        (lambda _: LinearSVC().fit(X, TWO, until=X),
         "type ndarray, not a rule; give Decided"),
        *((lambda _, kind=kind, ask=ask: ask(fitted(kind, "targets"), X, TARGET),
           "SVR is not a classifier") for kind in (LinearSVR, SVR, NuSVR)
          for ask in (loo_bounds, cv_bounds, what_if, partial(influence, X_new=X))),
        *((lambda _, model=model: certify(model, X, TWO), words) for model, words in (
            (LinearDiscriminantAnalysis().fit(X, TWO),
             "does not minimise the objective of an SVM"),
            (others.Perceptron(), "not minimise the objective"),
            ("w", "coefficients of a linear model"))),
        (lambda _: certify(X, TWO, linear()),
         r"y is the estimator LinearSVC; the model"),
        (lambda _: certify(X, linear(), TWO),
         r"X is the estimator LinearSVC; the model"),
        (lambda _: shapley_values(fitted(others.RidgeClassifier), X, X),
         "RidgeClassifier; give a linear model"),
        (lambda at: write_proof(fitted(others.LogisticRegression), X, TWO, at / "p"),
         "LogisticRegression has no proof file"),
        (lambda at: write_libsvm(fitted(LinearSVCCV, Cs=(1.0,)), at / "m"),
         "give its best_estimator_"),
        (lambda at: write_liblinear(fitted(sklearn.svm.SVC), at / "m"),
         "give a linear SVM"),
        (lambda at: write_libsvm(fitted(sklearn.svm.SVC), at / "m"),
         "give an SVC of dualgap"),
        (lambda at: save_model(fitted(LinearSVCCV, Cs=(1.0,)), at / "m"),
         r"a LinearSVCCV, .* Give its best_estimator_"),
        (lambda at: save_model(make_pipeline(MinMaxScaler(), LinearSVC()).fit(X, TWO),
                               at / "m"),
         r"a Pipeline, .* Keep the whole pipeline by pickle, skops or ONNX"),
        (lambda at: save_model(fitted(sklearn.svm.LinearSVC), at / "m"),
         r"a LinearSVC of sklearn, .* Give one of"),
        (lambda at: save_model(at / "m", at / "m"),
         r"The order is save_model\(model, path\)"),
        (lambda _: load_model(3), r"path must be a str or a pathlib\.Path"),
        (lambda _: save_model(linear(), 3), r"path must be a str or a pathlib\.Path"),
        (lambda _: dualgap.report(linear().coef_, X, TWO),
         "model is of type ndarray; give a fitted"),
        (lambda _: dualgap.report(fitted(LinearDiscriminantAnalysis), X, TWO),
         "does not minimise the objective of an SVM"),
        (lambda _: dualgap.report(linear(), X, TWO, colour="blue"), "colour"),
    ],
    AttributeError: [
        (lambda _: fitted(NuSVC, nu=0.3).predict_proba,
         r"CalibratedClassifierCV\(model, ens"),
        (lambda _: kernel().coef_bounds(), "linear"),
    ],
    NotFittedError: [
        *((lambda _, call=call: getattr(CalibratedClassifier(SVC()), call)(X),
           "not fitted")
          for call in ("predict", "predict_proba", "predict_log_proba")),
        (lambda _: calibrated(fitted(SVCCV, Cs=(1.0,), refit=False), X, TWO),
         "refit=True"),
        *((lambda _, search=search: certify(search, X, TWO), "refit=True")
          for search in (UNREFITTED, clone(UNREFITTED).fit(X, TWO))),
        (lambda _: dualgap.to_onnx(fitted(SVCCV, Cs=(1.0,), refit=False)),
         "SVCCV has no best_estimator_; fit it"),
    ],
    MemoryError: [
        (lambda _: make_room_for(10**8),
         "not enough memory for 100000000 threads; use a smaller n_jobs"),
    ],
    FileNotFoundError: [
        (lambda at: LinearSVC(checkpoint=at / "none" / "c").fit(X, NAMES),
         "no such folder"),
    ],
}  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("error", "call", "words"),
    [(error, *row) for error, rows in CALLS.items() for row in rows],
)
def test_calls(error: Any, call: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=words):
        call(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} <= {"rows"}
