"""Kernel functions of strings and other objects, and of single rows by mistake."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import model_selection, svm
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline

from dualgap import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    OneClassSVM,
    certify,
    compress,
    patch_sklearn,
    report,
    save_model,
    to_onnx,
)
from dualgap.answers import Decided
from dualgap.kernel import Callable as FunctionKernel
from dualgap.model_selection import GridSearchCV, svc_path
from dualgap.models import (
    cv_bounds,
    influence,
    loo_bounds,
    what_if,
    write_libsvm,
    write_proof,
)

with patch_sklearn():
    PATCHED = {SVC: svm.SVC, SVR: svm.SVR, OneClassSVM: svm.OneClassSVM}

RNG = np.random.default_rng(0)
#: Words over letters that differ between the two classes.
WORDS = [
    "".join(RNG.choice(list("abcdef" if i % 2 else "cdefgh"), 5)) for i in range(50)
]
Y, Y3 = np.arange(50) % 2, np.arange(50) % 3


def letters(A: Any, B: Any) -> list[list[float]]:
    """Kernel of words: their common letters."""
    return [[float(len(set(a) & set(b))) for b in B] for a in A]


MATRIX = np.array(letters(WORDS, WORDS))
#: Ways to pass words, each with a kernel function of it.
CONTAINERS: dict[str, tuple[Callable[[Any], Any], Callable[..., Any]]] = {
    "list": (list, letters),
    "tuple": (tuple, letters),
    "array": (np.array, letters),
    "objects": (lambda words: np.array(words, object), letters),
    "bytes": (lambda words: np.array(words, "S"), letters),
    "series": (lambda words: pd.Series(words, index=range(9, 9 + len(words))), letters),
    "table": (
        lambda words: pd.DataFrame({"word": words}),
        lambda A, B: letters(A["word"], B["word"]),
    ),
    "column": (
        lambda words: np.array(words)[:, None],
        lambda A, B: letters(A[:, 0], B[:, 0]),
    ),
    "sets": (
        lambda words: [frozenset(word) for word in words],
        lambda A, B: np.array(letters(A, B)),
    ),
    "lists": (
        lambda words: [sorted(set(word)) for word in words],
        lambda A, B: sparse.csr_matrix(letters(A, B)),
    ),
}
every_container = pytest.mark.parametrize("container", CONTAINERS)
every_kind = pytest.mark.parametrize("kind", PATCHED)


def target(kind: Any) -> Any:
    return Y3 if kind is SVC else None if kind is OneClassSVM else Y3 * 1.5


@every_kind
@every_container
@pytest.mark.cases(None)
def test_objects_are_passed_as_they_are(kind: Any, container: str) -> None:
    make, kernel = CONTAINERS[container]
    X, new, y = make(WORDS), make(WORDS[:7]), target(kind)
    seen = set()

    def watched(A: Any, B: Any) -> Any:
        seen.add(type(A))
        return kernel(A, B)

    seed = {"random_state": 0}
    model = kind(kernel=watched, **seed).fit(X, y)
    assert seen == {type(X)}
    # It is the model of the kernel matrix, bit for bit.
    matrix = kind(kernel="precomputed", **seed).fit(MATRIX, y)
    for name in ("dual_coef_", "intercept_", "support_", "n_support_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(matrix, name))
    assert model.certificate_.bounds == matrix.certificate_.bounds
    np.testing.assert_array_equal(model.predict(new), matrix.predict(MATRIX[:7]))
    if hasattr(model, "decision_function"):
        values = model.decision_function(new), matrix.decision_function(MATRIX[:7])
        np.testing.assert_allclose(*values, rtol=1e-12, atol=1e-12)
    assert len(model.support_vectors_) == 0
    assert model.shape_fit_ == getattr(X, "shape", (50,))
    # The patched class does the same.
    patched = PATCHED[kind](kernel=kernel).fit(X, y)
    np.testing.assert_array_equal(patched.predict(new), model.predict(new))
    theirs = getattr(svm, kind.__name__)(kernel=kernel, tol=1e-6).fit(X, y)
    best, found = (certify(m, X, y).primal for m in (theirs, model))
    assert found <= best + 1e-3 * abs(best)
    assert certify(patched, X, y).primal == pytest.approx(found, rel=1e-6)


def test_objects_and_numbers_in_turn() -> None:
    model = SVC(kernel=letters).fit(WORDS, Y)
    assert not hasattr(model, "n_features_in_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(WORDS), model.predict(WORDS))
    # A fit of numbers after one of words, and back.
    model.set_params(kernel="rbf").fit(np.eye(50), Y)
    assert model.n_features_in_ == 50
    model.set_params(kernel=FunctionKernel(letters)).fit(WORDS, Y)
    assert not hasattr(model, "n_features_in_")
    np.testing.assert_array_equal(again.predict(WORDS), model.predict(WORDS))


@pytest.mark.parametrize(
    ("X", "kernel"),
    [
        (np.arange(1.0, 41.0), lambda A, B: np.minimum.outer(A, B)),
        (RNG.normal(size=(40, 2, 3)), lambda A, B: np.einsum("iab,jab->ij", A, B)),
        (
            [np.ones(i % 4 + 1) for i in range(40)],  # of unlike lengths
            lambda A, B: [[a.sum() * b.sum() for b in B] for a in A],
        ),
        (
            pd.DataFrame({"a": range(40), "b": list("xyzt") * 10}),
            lambda A, B: np.equal.outer(A["b"].to_numpy(), B["b"].to_numpy()) * 1.0,
        ),
    ],
)
def test_numbers_in_other_shapes_are_objects(X: Any, kernel: Any) -> None:
    y = np.arange(40) % 2
    model, theirs = SVC(kernel=kernel).fit(X, y), svm.SVC(kernel=kernel).fit(X, y)
    assert certify(model, X, y).primal <= 1.001 * certify(theirs, X, y).primal


@pytest.mark.parametrize(
    ("layout", "dtype"),
    [
        *((layout, d) for layout in (list, np.array) for d in (float, object, int)),
        *((pd.DataFrame, object), (pd.DataFrame, int), (sparse.csr_matrix, int)),
    ],
)
def test_rows_of_numbers_are_numbers(layout: Any, dtype: Any) -> None:
    X = np.arange(40).reshape(20, 2).astype(dtype)
    seen = set()

    def kernel(A: Any, B: Any) -> Any:
        seen.update({A.dtype, A.ndim})
        return A @ B.T

    model = SVC(kernel=kernel).fit(layout(X.tolist() if layout is list else X), Y[:20])
    assert model.n_features_in_ == 2
    assert seen <= {np.dtype(np.float64), np.dtype(np.float32), 2}


def test_tools_of_scikit_learn() -> None:
    model = SVC(kernel=letters)
    for other in (model, make_pipeline(model)):
        scores = model_selection.cross_val_score(other, WORDS, Y)
        expected = model_selection.cross_val_score(SVC(kernel="precomputed"), MATRIX, Y)
        np.testing.assert_array_equal(scores, expected)
    assert model.fit(WORDS, Y).score(WORDS, Y) > 0.8
    grid = {"C": [0.01, 1.0]}
    for search in (model_selection.GridSearchCV, GridSearchCV):
        found = search(SVC(kernel=letters), grid).fit(WORDS, Y)
        other = search(SVC(kernel="precomputed"), grid).fit(MATRIX, Y)
        assert found.best_params_ == other.best_params_
        for key in ("mean_test_score", "std_test_score"):
            np.testing.assert_allclose(found.cv_results_[key], other.cv_results_[key])
    proba = CalibratedClassifierCV(model, ensemble=False).fit(WORDS, Y)
    assert proba.predict_proba(WORDS).shape == (50, 2)
    weighted = SVC(kernel=letters).fit(WORDS, Y, np.r_[np.zeros(10), np.ones(40)])
    assert weighted.support_.min() >= 10
    part = SVC(kernel=letters).fit(WORDS[10:], Y[10:])
    np.testing.assert_allclose(
        weighted.decision_function(WORDS), part.decision_function(WORDS), rtol=1e-6
    )


@pytest.mark.parametrize("solver", ["mfw", "block", "nystroem", "kernel-pegasos"])
def test_every_solver_of_a_matrix_takes_objects(solver: str) -> None:
    settings = {"solver": solver, "loss": "squared_hinge", "random_state": 0}
    model = SVC(kernel=letters, **settings).fit(WORDS, Y)
    matrix = SVC(kernel="precomputed", **settings).fit(MATRIX, Y)
    np.testing.assert_allclose(
        model.decision_function(WORDS), matrix.decision_function(MATRIX), rtol=1e-9
    )


FITTED = SVC(kernel=letters).fit(WORDS, Y)
REFUSALS = {
    "save_model": lambda m, file: save_model(m, file),
    "to_onnx": lambda m, _: to_onnx(m),
    "write_libsvm": lambda m, file: write_libsvm(m, file),
    "write_proof": lambda m, file: write_proof(m, WORDS, Y, file),
    "bound_optimum": lambda m, _: m.bound_optimum(WORDS, Y),
    "decision_bounds": lambda m, _: m.decision_bounds(WORDS),
    "certified_labels": lambda m, _: m.certified_labels(WORDS),
    "certified_support": lambda m, _: m.certified_support(WORDS, Y),
    "undecided": lambda m, _: m.predict(WORDS, undecided=-1),
    "until": lambda m, _: m.fit(WORDS, Y, until=Decided(WORDS)),
    "loo_bounds": lambda m, _: loo_bounds(m, WORDS, Y),
    "cv_bounds": lambda m, _: cv_bounds(m, WORDS, Y),
    "what_if": lambda m, _: what_if(m, WORDS, Y, without=[0]),
    "influence": lambda m, _: influence(m, WORDS, Y, WORDS[:2]),
    "compress": lambda m, _: compress(m, WORDS, Y, tol=0.1),
    "report": lambda m, _: report(m, WORDS, Y),
    "SVCCV": lambda *_: SVCCV(kernel=letters).fit(WORDS, Y),
    "SVRCV": lambda *_: SVRCV(kernel=letters).fit(WORDS, 1.0 * Y),
    "svc_path": lambda *_: svc_path(WORDS, Y, kernel=letters),
}


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", REFUSALS)
def test_what_needs_numbers_says_so(name: str, tmp_path: Any) -> None:
    with pytest.raises(ValueError) as told:  # noqa: PT011
        REFUSALS[name](FITTED, tmp_path / "file")
    message = str(told.value)
    assert any(word in message for word in ("needs rows of numbers", "kernel="))
    assert "could not convert" not in message
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match="X is of type set; give an array, or a list"):
        SVC(kernel=letters).fit(set(WORDS), Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC(kernel=letters).fit(WORDS, Y[:7])
    with pytest.raises(ValueError, match="the training rows"):
        certify(FITTED, WORDS[:7], Y[:7])
    with pytest.raises(ValueError, match="could not convert string to float"):
        SVC(kernel="rbf").fit(WORDS, Y)
    with pytest.raises(ValueError, match="returned NaN"):
        SVC(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit(WORDS, Y)


@pytest.mark.cases(None)
@pytest.mark.parametrize("kind", [*PATCHED, *PATCHED.values()])
@pytest.mark.parametrize("shape", [(60, 3), (8, 8), (400, 2)])
@pytest.mark.parametrize(
    "kernel",
    [
        lambda a, b: a @ b,
        np.dot,
        lambda a, b: np.exp(-np.sum((a - b) ** 2)),
        lambda a, b: float(a @ b + 1.0) ** 2,
        lambda a, b: sum(x * z for x, z in zip(a, b, strict=True)),
    ],
    ids=["@", "dot", "rbf", "poly", "sum"],
)
def test_a_function_of_two_rows_is_told(kind: Any, shape: Any, kernel: Any) -> None:
    X = np.random.default_rng(0).normal(size=shape)
    y = None if not is_classifier(kind()) else np.arange(len(X)) % 2
    y = X[:, 0] if y is None else y
    with pytest.raises(ValueError, match="takes two single rows, but gets two matr"):
        kind(kernel=kernel).fit(X, y)
    if kind in PATCHED:
        with pytest.raises(ValueError, match="takes two single rows"):
            kind(kernel=lambda a, b: float(len(set(a) & set(b)))).fit(WORDS, Y)


def test_other_errors_of_a_function_stay_as_they_are() -> None:
    def broken(A: Any, B: Any) -> Any:
        raise ZeroDivisionError("mine")

    for X in (WORDS, np.eye(50)):
        with pytest.raises(ZeroDivisionError, match="mine"):
            SVC(kernel=broken).fit(X, Y)
