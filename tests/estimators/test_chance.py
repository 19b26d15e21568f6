"""Fits say where rounding decides the predictions, and only there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

from dualgap import SVC, LinearOneClassSVM, LinearSVC, OneClassSVM, patch_sklearn

with patch_sklearn():
    PATCHED = svm.OneClassSVM, svm.SVC

NORMAL = np.random.default_rng(0).normal(size=(150, 3))
SYMMETRIC = np.vstack([NORMAL, -NORMAL])
XOR = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
ORIGIN, BOUNDARY = "no plane separates", "lie on the boundary"
ONE_CLASS = [
    *((LinearOneClassSVM, {"nu": nu}) for nu in (0.05, 0.5, 0.9, 1.0)),
    *((OneClassSVM, {"nu": nu, "kernel": "linear"}) for nu in (0.05, 0.5, 0.9)),
    (OneClassSVM, {"kernel": lambda A, B: A @ B.T}),
    (OneClassSVM, {"kernel": "poly", "gamma": 1.0}),  # odd: its values are centred too
    (PATCHED[0], {"kernel": "linear"}),
]


def told(model: Any, *data: Any) -> list[str]:
    """Fit a model; return what it warns of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(*data)
    return [str(warning.message) for warning in found]


@pytest.mark.cases(None)
@pytest.mark.parametrize(("kind", "settings"), ONE_CLASS)
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e6])
def test_an_optimum_of_zero_is_told(kind: Any, settings: Any, size: float) -> None:
    if settings.get("kernel") == "poly" and size != 1.0:
        size = 2.0
    model = kind(**settings)
    (message,) = told(model, size * SYMMETRIC)
    assert message.startswith(f"{kind.__name__}: rounding decides the predictions")
    assert ORIGIN in message
    assert "Use the rbf kernel" in message
    assert model.certificate_.certified
    assert model.certificate_.dual <= 0.0 <= model.certificate_.primal


@pytest.mark.parametrize("scale_of_C", [1e-3, 1.0])
def test_a_joint_problem_tells_of_scores_that_are_equal(scale_of_C: float) -> None:
    joint = {"multi_class": "crammer_singer", "loss": "hinge", "C": scale_of_C}
    for X, y in ((np.zeros((8, 2)), np.arange(8) % 4), (XOR, np.array([0, 0, 1, 1]))):
        (message,) = told(LinearSVC(**joint), X, y)
        assert "no better than w = 0" in message
        # A class with more rows than others wins everywhere.
        more = np.r_[y, np.zeros(9, int)]
        assert not told(LinearSVC(**joint), np.vstack([X, np.zeros((9, 2))]), more)


@pytest.mark.parametrize("kind", [LinearOneClassSVM, OneClassSVM, PATCHED[0]])
def test_weights_count(kind: Any) -> None:
    X = np.vstack([SYMMETRIC, np.full((20, 3), 9.0)])
    model = kind(kernel="linear") if kind is not LinearOneClassSVM else kind()
    mask = np.r_[np.ones(len(SYMMETRIC)), np.zeros(20)]
    assert ORIGIN in "".join(told(model, X, None, mask))
    assert not told(model, X, None, 1.0 - mask + (X[:, 0] > 1.0))


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (LinearOneClassSVM(), np.full((30, 2), 3.0)),
        (OneClassSVM(), np.full((30, 2), 3.0)),
        (OneClassSVM(kernel="linear", nu=0.1), np.full((30, 2), 3.0)),
        (OneClassSVM(gamma=1e3), NORMAL),
        (OneClassSVM(kernel="precomputed"), np.eye(12)),
    ],
)
def test_rows_that_all_lie_on_the_boundary_are_told(model: Any, X: Any) -> None:
    (message,) = told(model, X)
    assert BOUNDARY in message
    assert "lower gamma" in message
    assert (model.predict(X) == 1).all()


@pytest.mark.cases(None)
@pytest.mark.parametrize("shift", [0.0, 1.0, 4.0, 1e3, 1e6])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian"])
def test_nothing_is_told_of_ordinary_rows(kernel: str, shift: float) -> None:
    X = NORMAL + shift
    if kernel != "linear" or shift:
        assert not told(OneClassSVM(kernel=kernel, coef0=1.0), X)
        assert not told(OneClassSVM(kernel=kernel, coef0=1.0, nu=0.9), X)
    if kernel == "linear" and shift:
        assert not told(LinearOneClassSVM(), X)


@pytest.mark.parametrize(
    "load", [load_iris, load_wine, load_breast_cancer, load_digits]
)
def test_nothing_is_told_of_real_data(load: Any) -> None:
    X, y = load(return_X_y=True)
    for model in (LinearOneClassSVM(), OneClassSVM(kernel="linear"), OneClassSVM()):
        assert not told(model, X)
    for more in ({}, {"kernel": "linear"}, {"C": 1e-6}, {"loss": "squared_hinge"}):
        assert not told(SVC(**more), scale(X), y)
        assert not told(SVC(**more, class_weight="balanced"), scale(X), y)


@pytest.mark.parametrize("shift", [1e-2, 1e-4, 1e-6])
def test_an_optimum_that_the_certificate_tells_from_zero_is_not_told(
    shift: float,
) -> None:
    # With nu = 1 the optimum is the sum of the rows, which are nearly symmetric.
    for model in (
        LinearOneClassSVM(nu=1.0, tol=1e-6),
        OneClassSVM(kernel="linear", nu=1.0, tol=1e-6),
    ):
        assert not told(model, SYMMETRIC + shift)
        exact = -0.5 * len(SYMMETRIC) ** 2 * 3.0 * shift**2
        assert model.certificate_.dual <= exact <= model.certificate_.primal < 0.0


@pytest.mark.parametrize("kind", [SVC, PATCHED[1]])
def test_classes_that_a_kernel_cannot_tell_apart_are_told(kind: Any) -> None:
    y = np.array([0, 0, 1, 1])
    (message,) = told(kind(kernel="linear"), XOR, y)
    assert message.startswith("SVC: rounding decides the predictions")
    assert "cannot tell the classes apart" in message
    assert not told(kind(), XOR, y)
    equal = np.ones((8, 2))
    assert told(kind(), equal, [0, 1] * 4)
    assert not told(kind(), equal, [0, 1, 1, 1] * 2)  # the larger class, surely
    weighted = told(kind(), equal, [0, 1, 1, 1] * 2, [3.0, 1.0, 1.0, 1.0] * 2)
    assert "cannot tell" in "".join(weighted)
    assert told(kind(class_weight="balanced"), equal, [0, 1, 1, 1] * 2)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_pairs_of_classes_are_named(loss: str) -> None:
    X = np.vstack([np.ones((8, 2)), np.full((4, 2), 9.0)])
    y = np.array(["a", "b"] * 4 + ["c"] * 4)
    (message,) = told(SVC(loss=loss), X, y)
    assert message.startswith("SVC: rounding decides a against b, because")
    (message,) = told(SVC(loss=loss), np.ones((9, 2)), ["a", "b", "c"] * 3)
    assert message.startswith("SVC: rounding decides a against b and 2 more pairs,")


def test_a_fit_without_its_proof_speaks_of_the_proof() -> None:
    model = LinearOneClassSVM(max_iter=1, tol=1e-12)
    (message,) = told(model, NORMAL - NORMAL.mean(axis=0))
    assert "Not converged" in message
