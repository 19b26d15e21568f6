"""Classes whose decision function is no better than a constant are named in a warning.

The truth is computed apart: the objective of a constant by `BinaryProblem.primal`, and
the exact optimum by a fit to 1e-12.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import dualgap
from dualgap import DegenerateWarning, LinearSVC, LinearSVCCV, certify
from dualgap.losses import SmoothedHinge, get_loss
from dualgap.model_selection import GridSearchCV, svm_path
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems.constant import Constants

from ..cli.running import call

LOSSES = ["hinge", "squared_hinge", "smoothed_hinge", SmoothedHinge(gamma=0.2)]
SCHEMES: list[dict[str, Any]] = [
    {},
    {"fit_intercept": False},
    {"penalize_intercept": False},
    {"intercept_scaling": 10.0},
    {"class_weight": "balanced"},
    {"multi_class": "ovo"},
]


def ordered(n: int = 3000, seed: int = 0) -> tuple[Any, Any]:
    """A table with four ordered classes, two numbers and two columns of words."""
    rng = np.random.default_rng(seed)
    age, income = rng.normal(45, 15, n), rng.lognormal(10, 0.6, n)
    city, job = rng.integers(0, 6, n), rng.integers(0, 5, n)
    score = 0.03 * (age - 45) + 0.8 * (np.log(income) - 10) + 0.3 * (city == 2)
    score += rng.normal(0, 1, n) - 0.4 * (job == 1)
    rank = np.digitize(score, np.quantile(score, [0.4, 0.7, 0.9]))
    numbers = scale(np.column_stack([age, income]))
    X = np.column_stack([numbers, np.eye(6)[city], np.eye(5)[job]])
    return X, np.array(["low", "mid", "high", "top"])[rank]


def topics(n: int = 600, d: int = 2000, classes: int = 8) -> tuple[Any, Any]:
    """Sparse rows of length 1, as of words of some topics."""
    rng = np.random.default_rng(1)
    y = np.arange(n) % classes
    own = rng.dirichlet(np.full(d, 0.02), classes)
    common = rng.dirichlet(np.full(d, 0.2))
    counts = np.stack([rng.multinomial(80, 0.5 * own[k] + 0.5 * common) for k in y])
    X = sparse.csr_matrix(np.log1p(counts))
    norm = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)))
    return sparse.csr_matrix(X.multiply(1.0 / norm)), y


def told(model: Any, X: Any, y: Any, **given: Any) -> list[str]:
    """Fit a model; return its warnings about degenerate classes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("always", DegenerateWarning)
        model.fit(X, y, **given)
    if isinstance(model, LinearSVC):
        assert all(w.filename == __file__ for w in caught)  # in the caller's line
    return [str(w.message) for w in caught]


def named(message: str) -> set[str]:
    """The classes or pairs in a warning."""
    several = re.search(r"\((.*)\) have a decision function", message)
    if several:
        return set(several[1].split(", "))
    one = re.match(r"LinearSVC: (?:class )?(.*) has a decision function", message)
    assert one, message
    return {one[1]}


def problems(model: LinearSVC, X: Any, y: Any) -> list[Problem]:
    """The binary problems of a model one versus the rest."""
    positive = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    return [
        Problem(
            X, np.where(y == label, 1, -1), model.C, loss=model.loss,
            fit_intercept=model.fit_intercept,
            intercept_scaling=model.intercept_scaling,
            penalize_intercept=model.penalize_intercept,
        )
        for label in positive
    ]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("bias", [0.0, 0.3, 1.0, 20.0, np.inf])
def test_the_best_constants_are_those_of_a_fine_grid(loss: Any, bias: float) -> None:
    rng = np.random.default_rng(0)
    record, grid = get_loss(loss), np.linspace(-1.0, 1.0, 20_001)
    positive, negative = 10.0 ** rng.uniform(-6, 6, (2, 12))
    positive[0] = negative[0]  # a balanced problem
    positive[1] = 0.0  # a class without a weight
    constants = Constants(record, bias, positive.tolist(), negative.tolist())
    for k in range(len(positive)):
        losses = positive[k] * record.value(grid) + negative[k] * record.value(-grid)
        c, value = constants.least(k)
        size = positive[k] + negative[k]
        assert value == pytest.approx(losses.min(), abs=2e-4 * size)
        assert constants.value(k, c) == value <= losses.min() * (1 + 1e-12)
        price = 0.5 * grid**2 / bias**2 if bias else np.where(grid == 0.0, 0.0, np.inf)
        best = (losses + price).min()
        (objective,) = constants.objectives([k])
        assert objective <= best * (1 + 1e-12)
        step = 2e-4 * (size + 1.0 / bias**2) if bias else 0.0
        assert objective >= best - step


def test_ordered_classes_are_named_and_are_constants() -> None:
    X, y = ordered(20_000)
    model = LinearSVC(loss="hinge")
    (message,) = told(model, X, y)
    assert named(message) == {"mid", "high", "top"}
    assert "3 of 4 classes" in message
    assert message.endswith("use loss='squared_hinge' or multi_class='ovo'")
    exact = LinearSVC(loss="hinge", tol=1e-9)
    assert named(told(exact, X, y)[0]) == {"mid", "high", "top"}
    values = exact.decision_function(X)
    for k, label in enumerate(exact.classes_):
        assert (np.ptp(values[:, k]) < 1e-5) == (label != "low")
    assert not told(LinearSVC(), X, y)
    assert not told(LinearSVC(loss="smoothed_hinge"), X, y)


@pytest.mark.cases(1)
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6])
def test_letter_has_eleven_constant_classes(tol: float, load_xz: Any) -> None:
    X, y = load_xz("letter/letter.scale")
    X, y = scale(X.toarray()), np.array([chr(64 + int(k)) for k in y])
    model = LinearSVC(loss="hinge", tol=tol)
    found = named(told(model, X, y)[0])
    assert found == set("BEFGHKNOQSX")
    flat = model.decision_function(X).std(axis=0) < 0.01
    assert set(model.classes_[flat]) <= found
    constant = np.append(np.zeros(16), -1.0)
    for k, problem in enumerate(problems(model, X, y)):
        # The constant is as good as the model, or the proof excludes it.
        objective, part = problem.primal(constant), model.certificate_.parts[k]
        if model.classes_[k] in found:
            assert objective <= part.primal
        else:
            assert objective > part.primal


ORDINARY = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "topics": topics,
}


@pytest.mark.cases(12)
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", sorted(ORDINARY))
def test_ordinary_data_raise_no_alarm(
    name: str, scaled: bool, loss: Any, scheme: dict[str, Any]
) -> None:
    X, y = ORDINARY[name]()
    if scaled and not sparse.issparse(X):
        X = scale(X)
    for C in (1e-5, 1e-3, 0.1, 1.0) + (100.0,) * (len(y) < 200):
        model = LinearSVC(C, loss=loss, max_iter=2000, **scheme)
        assert not told(model, X, y), C


def test_columns_of_indicators_make_a_constant_cheaper_than_the_bias() -> None:
    """Each group of indicators adds up to 1 in every row, like the constant feature."""
    X, y = ordered(20_000)
    model = LinearSVC(C=0.01, loss="hinge", tol=1e-6)
    assert named(told(model, X, y)[0]) == {"mid", "high", "top"}
    constant = np.append(np.zeros(X.shape[1]), -1.0)
    values = model.decision_function(X)
    for k, problem in enumerate(problems(model, X, y)):
        part = model.certificate_.parts[k]
        assert problem.primal(constant) > part.primal + 0.1
        assert (np.ptp(values[:, k]) < 1e-3) == (model.classes_[k] != "low")
    # Without them, and without a bias, no constant is there.
    assert not told(LinearSVC(loss="hinge", fit_intercept=False), X[:, :2], y)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"loss": "hinge"}, "loss='squared_hinge' or class_weight='balanced'"),
        ({"loss": "hinge", "class_weight": {1: 0.5}}, "loss='squared_hinge'"),
        ({"loss": SmoothedHinge(0.01)}, "loss='squared_hinge' or class_weight="),
        ({"loss": "squared_hinge"}, "other features or a larger C"),
        ({"class_weight": "balanced"}, "other features or a larger C"),
    ],
)
def test_two_classes(options: dict[str, Any], remedy: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), (np.arange(400) % 20 == 0).astype(int)
    if options.get("loss", "squared_hinge") == "squared_hinge":
        X[:] = 0.0
    (message,) = told(LinearSVC(**options), X, y)
    assert named(message) == {"1"}
    assert f"use {remedy}" in message


def test_pairs_of_classes_and_weights() -> None:
    X, y = ordered(4000)
    (message,) = told(LinearSVC(loss="hinge", multi_class="ovo"), X, y)
    assert named(message) == {"high against top"}
    # A class whose rows weigh nothing is a constant for any loss.
    weight = np.where(y == "top", 0.0, 1.0)
    (message,) = told(LinearSVC(), X, y, sample_weight=weight)
    assert named(message) == {"top"}
    # With equal weights of the classes the best constants are not -1.
    assert not told(LinearSVC(C=1e-3, class_weight="balanced"), X, y)


def test_a_fit_without_its_proof_tells_that_alone() -> None:
    X, y = ordered(2000)
    options = {"loss": "hinge", "solver": "dcd", "tol": 1e-9, "max_iter": 1}
    assert not told(LinearSVC(**options), X, y)


def test_searches_and_paths_tell_of_the_final_model_alone() -> None:
    X, y = ordered(600)
    options = {"loss": "hinge"}
    search = LinearSVCCV([0.1, 1.0], cv=KFold(3), **options)
    (message,) = told(search, X, y)
    assert named(message) == {"mid", "high", "top"}
    assert not told(LinearSVCCV([0.1, 1.0], cv=3, refit=False, **options), X, y)
    grid = {"linearsvc__C": [0.1, 1.0]}
    pipeline = make_pipeline(StandardScaler(), LinearSVC(**options))
    shared = GridSearchCV(pipeline, grid, cv=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shared.fit(X, y)
        svm_path(X, y, [0.1, 1.0], **options)
    assert shared.shared_
    assert [w.category for w in caught] == [DegenerateWarning]


def test_the_command_line_tells_it_with_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = ordered(4000)
    names = [f"x{j}" for j in range(X.shape[1])]
    rows = [",".join([*map(repr, map(float, x)), t]) for x, t in zip(X, y, strict=True)]
    Path("data.csv").write_text("\n".join([",".join([*names, "label"]), *rows]))
    who = "Warning: 3 of 4 classes (high, mid, top) have a decision function"
    train = ("train", "data.csv", "model", "--loss", "hinge", "--quiet")
    for more in ((), ("--n-jobs", "2"), ("--json",)):
        done = call(*train, *more)
        assert done.stderr.startswith(who)
        assert done.stderr.endswith("use --loss squared_hinge or --multi-class ovo.\n")
        assert done.stderr.count("\n") == 1
    (line,) = call(*train, "--multi-class", "ovo").stderr.splitlines()
    assert line.endswith("use --loss squared_hinge or --class-weight balanced.")
    search = ("tune", "data.csv", "best", "--C", "0.1,1", "--cv", "3")
    told = call(*search, "--loss", "hinge", "--quiet").stderr
    assert told.startswith(who)
    assert "--loss squared_hinge or --multi-class ovo." in told
    assert not call("train", "data.csv", "other", "--quiet").stderr


@pytest.mark.long
def test_the_report_tells_it() -> None:
    X, y = ordered(600)
    who = "3 of 4 classes (high, mid, top) have a decision function that is no better"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = {
            LinearSVC(loss="hinge"): True,
            make_pipeline(StandardScaler(), LinearSVC(loss="hinge")): True,
            LinearSVCCV([0.1, 1.0], cv=3, loss="hinge"): True,
            sklearn.svm.LinearSVC(loss="hinge", max_iter=10**6, random_state=0): True,
            LinearSVC(): False,
            LinearSVC(loss="hinge", multi_class="ovo"): False,
            LinearSVC(loss="hinge", multi_class="crammer_singer"): False,
            sklearn.svm.LinearSVC(random_state=0): False,
            SGDClassifier(max_iter=3, tol=None, random_state=0): False,
        }
        for model, degenerate in models.items():
            page = dualgap.report(model.fit(X, y), X, y).html
            assert (who in page) == degenerate, model


def test_certify_may_be_asked_about_a_constant() -> None:
    """`certify` finds the constant with coefficients 0 and -1 near the optimum."""
    X, y = ordered(600)
    model = LinearSVC(loss="hinge")
    told(model, X, y)
    zero = certify(
        np.zeros((1, X.shape[1])), X, y == "top", 1.0, intercept=-1.0,
        penalize_intercept=True,
    )  # fmt: skip
    assert zero.relative_gap <= 2e-3
