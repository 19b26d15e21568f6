"""Packed support vectors of models that predict few rows, and when they are kept."""

from __future__ import annotations

import copy
import gc
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dualgap import SVC, SVR, OneClassSVM, core
from dualgap.kernels import predict

KERNELS = ("rbf", "laplacian", "poly", "sigmoid")
RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the packings made in a test, over an empty cache."""
    made: list[int] = []

    def pack(kernel: Any, rows: Any, coef: Any, ends: Any, precise: bool) -> Any:
        made.append(coef.shape[1])
        return whole(kernel, rows, coef, ends, precise)

    whole = core.PackedVectors
    monkeypatch.setattr(core, "PackedVectors", pack)
    monkeypatch.setattr(predict, "_KEPT", predict._Kept())
    return made


def packings(made: list[int]) -> int:
    """Return how many packings were made since the last call."""
    many = len(made)
    made.clear()
    return many


def without(model: Any, X: Any) -> Any:
    """Return the decisions of a model whose vectors are packed at every call."""
    before = predict.SETTINGS
    predict.SETTINGS = replace(before, few_rows=0)
    try:
        return model._values(X)
    finally:
        predict.SETTINGS = before


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "ends", "scale"),
    [
        (1, 1, [1], 1.0),
        (40, 3, [13, 13, 40], 1.0),
        (100, 128, [100, 100], 1.0),
        (77, 300, [5, 40, 64, 77], 1.0),
        (70, 5, [30, 70], 1e4),  # far points: float64, and differences
        (70, 5, [30, 70], 1e9),
    ],
)
def test_the_sums_have_the_bits_of_those_of_many_rows(
    kernel: str, dtype: Any, precise: bool, n: int, d: int, ends: Any, scale: float
) -> None:
    rng = np.random.default_rng(n * d)
    X = rng.standard_normal((n, d)).astype(dtype)
    X[::3] *= dtype(scale)
    Z = np.concatenate([X[: min(n, 9)], rng.standard_normal((22, d)).astype(dtype)])
    form = core.KernelMap(kernel, 1.0 / d, 0.5, 3)
    rows, targets = core.dense_rows(X, 0.0), core.dense_rows(Z, 0.0)
    ends = np.array(ends)
    for outputs, factor in ((1, 1.0), (3, 1.0), (2, 1e40)):
        coef = factor * rng.standard_normal((outputs, n))
        out, other = np.full((2, len(ends) * outputs, len(Z)), np.nan)
        settings = core.ProductSettings(True, precise, 1)
        core.kernel_times(form, rows, coef, ends, targets, out, settings, core.Stop())
        core.PackedVectors(form, rows, coef, ends, precise).times(targets, other)
        np.testing.assert_array_equal(other.view(np.uint64), out.view(np.uint64))
        one = np.empty((len(ends) * outputs, 1))
        packed = core.PackedVectors(form, rows, coef, ends, precise)
        packed.times(core.dense_rows(Z[-1:].copy(), 0.0), one)
        np.testing.assert_array_equal(one[:, 0], out[:, -1])


def data(form: str, classes: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 6))
    y = np.arange(90) % classes
    X = X.astype(np.float32) if form == "float32" else X
    return (sparse.csr_matrix(X) if form == "csr" else X), y


MODELS = {
    "two classes": (SVC(), 2),
    "three classes": (SVC(kernel="poly"), 3),
    "regression": (SVR(kernel="laplacian"), 3),
    "novelty": (OneClassSVM(), 3),
}


def fitted(name: str, form: str) -> tuple[Any, Any]:
    model, classes = MODELS[name]
    X, y = data(form, classes)
    model = copy.copy(model)
    return (model.fit(X) if name == "novelty" else model.fit(X, y)), X


@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
@pytest.mark.parametrize("name", MODELS)
def test_vectors_are_packed_once(name: str, form: str, counts: list[int]) -> None:
    model, X = fitted(name, form)
    expected = without(model, X)
    assert packings(counts) == 0
    for rows in (1, 5, 32):
        found = model._values(X[:rows])
        np.testing.assert_array_equal(found, expected[:rows])
    assert packings(counts) == 1
    model._values(X[:33])  # packs them by itself, as it always did
    assert packings(counts) == 0


def in_place(array: Any, factor: float) -> None:
    array *= factor


def halved(model: Any, name: str) -> None:
    setattr(model, name, getattr(model, name) * 0.5)


def exchanged(model: Any) -> None:
    vectors = model.support_vectors_
    vectors[[0, -1]] = vectors[[-1, 0]]


CHANGES = {
    "vectors": lambda m: halved(m, "support_vectors_"),
    "coefficients": lambda m: halved(m, "dual_coef_"),
    "signs in place": lambda m: in_place(
        m.support_vectors_.data
        if sparse.issparse(m.support_vectors_)
        else m.support_vectors_,
        -1.0,
    ),
    "coefficients in place": lambda m: in_place(m.dual_coef_, 0.5),
    "vectors exchanged": exchanged,
    "one value": lambda m: m.support_vectors_.__setitem__((3, 2), 0.25),
    "gamma": lambda m: setattr(
        m, "_fitted_kernel", replace(m._fitted_kernel, gamma=0.01)
    ),
}


@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("change", CHANGES)
def test_changed_models_are_packed_again(
    change: str, name: str, form: str, counts: list[int]
) -> None:
    model, X = fitted(name, form)
    before = model._values(X[:7])
    assert packings(counts) == 1
    if form == "csr" and change == "vectors exchanged":
        model.support_vectors_.indices[:] = 5 - model.support_vectors_.indices
    else:
        CHANGES[change](model)
    found = model._values(X[:7])
    assert packings(counts) == 1
    assert (found != before).any()
    np.testing.assert_array_equal(found, without(model, X[:7]))


def test_classes_of_vectors_and_the_intercept_may_change(counts: list[int]) -> None:
    model, X = fitted("three classes", "float64")
    model._values(X[:3])
    model.intercept_ = model.intercept_ + 1.0
    np.testing.assert_array_equal(model._values(X[:3]), without(model, X[:3]))
    assert packings(counts) == 1
    model.n_support_ = model.n_support_ + np.array([1, -1, 0], np.int32)
    np.testing.assert_array_equal(model._values(X[:3]), without(model, X[:3]))
    assert packings(counts) == 1


def test_rows_of_another_type_have_their_own_accuracy(counts: list[int]) -> None:
    model, X = fitted("two classes", "float32")
    for rows in (X[:4], X[:4].astype(np.float64)):
        found = model._values(rows)
        np.testing.assert_array_equal(found, without(model, rows))
    assert packings(counts) == 2


def test_a_new_fit_is_packed_again(counts: list[int]) -> None:
    model, X = fitted("two classes", "float64")
    model._values(X[:3])
    model.set_params(C=0.01).fit(X, np.arange(90) % 2)
    np.testing.assert_array_equal(model._values(X[:3]), without(model, X[:3]))
    assert packings(counts) == 2


@pytest.mark.parametrize("name", MODELS)
def test_pickles_and_copies_carry_no_packed_vectors(name: str) -> None:
    model, X = fitted(name, "float64")
    before, size = set(vars(model)), len(pickle.dumps(model))
    expected = model._values(X[:3])
    assert set(vars(model)) == before
    assert len(pickle.dumps(model)) == size
    others = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    in_place(model.dual_coef_, 0.5)
    for other in others:
        np.testing.assert_array_equal(other._values(X[:3]), expected)


def test_kept_vectors_end_with_their_model() -> None:
    model, X = fitted("two classes", "float64")
    model._values(X[:3])
    assert len(predict._KEPT.entries) == 1
    del model
    gc.collect()
    assert not predict._KEPT.entries


def test_the_memory_of_kept_vectors_is_bounded(
    counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [fitted("two classes", "float64")[0] for _ in range(4)]
    X, _ = data("float64")
    sizes = [8 * m.support_vectors_.shape[0] * 7 for m in models]
    many = 2 * max(*sizes, predict.SETTINGS.kept_least)
    bounded = replace(predict.SETTINGS, kept=many)
    monkeypatch.setattr(predict, "SETTINGS", bounded)
    for model in models:
        model._values(X[:1])
    assert packings(counts) == 4
    assert sum(size for *_, size, _ in predict._KEPT.entries.values()) <= bounded.kept
    models[3]._values(X[:1])  # the latest is kept
    assert packings(counts) == 0
    models[0]._values(X[:1])  # the first one had to go
    assert packings(counts) == 1
    alone = replace(bounded, kept_model=sizes[0] - 1)
    monkeypatch.setattr(predict, "SETTINGS", alone)
    expected = without(models[1], X[:2])
    np.testing.assert_array_equal(models[1]._values(X[:2]), expected)
    assert packings(counts) == 0


def test_threads_may_predict_with_one_model() -> None:
    from concurrent.futures import ThreadPoolExecutor

    model, X = fitted("three classes", "float64")
    expected = without(model, X)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: model._values(X[i : i + 1]), [*range(90)] * 3))
    np.testing.assert_array_equal(np.concatenate(found), np.tile(expected, (3, 1)))


@pytest.mark.parametrize("size", [1, 7, 8, 255, 256, 257, 5000])
def test_a_fingerprint_notices_every_changed_byte(size: int) -> None:
    raw = RNG.integers(0, 256, size, dtype=np.uint8)
    prints = {core.fingerprint(raw)}
    for at in range(size):
        raw[at] ^= 0x80
        prints.add(core.fingerprint(raw))
        raw[at] ^= 0x80
    assert len(prints) == size + 1
    assert core.fingerprint(raw) in prints
    values = RNG.standard_normal(size)
    assert core.fingerprint(values.view(np.uint8)) != core.fingerprint(
        (-values).view(np.uint8)
    )
