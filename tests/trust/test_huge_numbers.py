"""Numbers that 64 bits cannot hold are refused by the name of their parameter."""

from __future__ import annotations

import inspect
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import is_regressor

from dualgap import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    OneClassSVM,
    certify,
    kernel,
    solvers,
)
from dualgap.answers import Decided
from dualgap.losses import EpsilonInsensitive, SmoothedHinge
from dualgap.model_selection import svc_path, svm_path
from dualgap.models import cv_bounds, influence, loo_bounds, what_if
from dualgap.problems import BinaryProblem as Problem
from dualgap.training import solve

from ..conftest import examples

X = np.random.default_rng(0).normal(size=(12, 2))
TARGET = X[:, 0]
Y = np.arange(12) % 2
SIGNS = np.where(Y > 0, 1, -1).astype(np.int8)
ESTIMATORS = (
    *(LinearSVC, LinearSVR, LinearOneClassSVM, SVC, SVR, OneClassSVM),
    *(LinearSVCCV, SVCCV, SVRCV),
)
#: Beyond float64. The longest has more digits than Python prints.
NAMED = {
    "int": 10**400,
    "negative": -(10**400),
    "unprintable": 10**5000,
    "fraction": Fraction(10**400),
}
if np.finfo(np.longdouble).maxexp > 1024:
    NAMED["longdouble"] = np.longdouble("1e400")
HUGE = list(NAMED.values())
every_value = pytest.mark.parametrize("word", NAMED)
#: Beyond 64 bits only, for whole numbers.
LONGER = {"2**63": 2**63, "2**64": 2**64, "-2**64": -(2**64)}
LONG = list(LONGER.values())
WHOLE = {"max_iter", "random_state", "n_jobs", "verbose", "degree", "cv", "solver"}


def options(model):
    return sorted(inspect.signature(model).parameters)


huge = st.sampled_from(HUGE)
place = st.sampled_from([lambda v: v, lambda v: [1.0, v], lambda v: {0: 1.0, 1: v}])


def refused(name, call):
    # NumPy warns where an extended number becomes infinite; the refusal follows.
    @np.errstate(over="ignore", invalid="ignore")
    def call_quietly():
        call()

    with pytest.raises((ValueError, TypeError)) as error:
        call_quietly()
    message = str(error.value)
    assert name in message
    assert "incompatible function arguments" not in message
    assert len(message) < 1000


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_a_parameter_of_an_estimator(data):
    model = data.draw(st.sampled_from(ESTIMATORS))
    name = data.draw(st.sampled_from(options(model)))
    value = data.draw(place)(data.draw(huge))
    if name in WHOLE and data.draw(st.booleans()):
        value = data.draw(st.sampled_from(LONG))
    own = {"kernel": "poly"} if name in ("degree", "coef0") else {}
    y = TARGET if is_regressor(model()) else Y
    refused(name, lambda: model(**own, **{name: value}).fit(X, y))


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_a_value_of_an_array(data):
    model, value = data.draw(st.sampled_from(ESTIMATORS)), data.draw(huge)
    regression = is_regressor(model())
    given = {"X": X, "y": TARGET if regression else Y, "sample_weight": np.ones(12)}
    # Labels are words, and of any size.
    names = list(given) if regression else ["X", "sample_weight"]
    name = data.draw(st.sampled_from(names))
    array = given[name].astype(object)
    array[(3,) * array.ndim if array.ndim == 1 else (3, 1)] = value
    refused(name, lambda: model().fit(**(given | {name: array.tolist()})))


@pytest.fixture(scope="module")
def model():
    return SVC().fit(X, Y)


FUNCTIONS = [
    (svm_path, ("Cs", "tol", "atol", "max_iter", "time_limit", "class_weight",
                "intercept_scaling", "random_state", "n_jobs", "verbose")),
    (svc_path, ("Cs", "time_limit", "tol", "gamma", "max_iter", "cache_size")),
    (certify, ("C", "tol", "time_limit", "random_state", "n_jobs", "sample_weight",
               "intercept")),
    (loo_bounds, ("tol", "time_limit", "sample_weight")),
    (cv_bounds, ("cv", "tol", "time_limit", "sample_weight")),
    (influence, ("tol",)),
    (what_if, ("tol", "sample_weight")),
]  # fmt: skip


@pytest.mark.cases(None)
@every_value
@pytest.mark.parametrize(("function", "names"), FUNCTIONS)
def test_an_argument_of_a_function(function, names, word, model):
    value = NAMED[word]
    paths = function in (svm_path, svc_path)
    rows = (X, Y) if paths else (model, X, Y)
    rows += (X,) if function is influence else ()
    for name in names:
        for argument in (value, [1.0, value]):
            refused(name, partial(function, *rows, **{name: argument}))


@pytest.mark.cases(None)
@pytest.mark.parametrize("word", [*NAMED, *LONGER])
def test_an_argument_of_solve(word):
    value = (NAMED | LONGER)[word]
    problem = Problem(X, SIGNS)
    for name in ("max_iter", "check_every"):
        refused(name, lambda name=name: solve(problem, solvers.DCD(), **{name: value}))
    if word in LONGER:
        return
    for name in ("tol", "atol", "time_limit", "random_state", "warm"):
        given = [value] * 12 if name == "warm" else value
        call = {name: given}
        refused(name, lambda call=call: solve(problem, solvers.DCD(), **call))
    for name in ("C", "intercept_scaling", "n_jobs", "lambda_"):
        refused(name, lambda name=name: Problem(X, SIGNS, **{name: value}))


@pytest.mark.cases(None)
@every_value
def test_a_field_of_a_record(word):
    value = NAMED[word]
    records = [
        record
        for module in (solvers, kernel)
        for record in map(vars(module).get, module.__all__)
        if inspect.isclass(record)
        and hasattr(record, "__dataclass_fields__")
        and not issubclass(record, solvers.State)
    ]
    tried = 0
    for record in (*records, EpsilonInsensitive, SmoothedHinge):
        for name, parameter in inspect.signature(record).parameters.items():
            if parameter.default is inspect.Parameter.empty or name == "problems":
                continue
            refused(name, lambda record=record, name=name: record(**{name: value}))
            tried += 1
    assert tried > 40
    refused("share", lambda: Decided(X, value))
