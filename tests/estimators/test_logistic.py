"""LogisticRegression: optima, probabilities, parameters, files."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris

from dualgap import DegenerateWarning, LogisticRegression, certify
from dualgap.data import RowStore, convert


def data(classes):
    X, y = load_iris(return_X_y=True)
    kept = y < classes
    return X[kept] if classes > 2 else X[kept][:, :2], np.array(list("abc"))[y[kept]]


def test_wide_text_has_one_weight_per_column():
    rng = np.random.default_rng(0)
    X = sparse.random(60, 100_000, 1e-4, "csr", random_state=0)
    y = rng.integers(0, 3, 60)
    model = LogisticRegression(C=10.0).fit(X, y)
    assert model.certificate_.certified
    assert model.coef_.shape == (3, 100_000)
    assert np.count_nonzero(model.coef_.any(axis=0)) <= X.nnz


def test_without_an_intercept_a_class_may_have_no_weight():
    X, y = data(3)
    model = LogisticRegression(fit_intercept=False).fit(X, y, np.where(y == "b", 0, 1))
    assert model.certificate_.certified


@pytest.mark.parametrize("classes", [2, 3, "labels"])
@pytest.mark.parametrize("form", ["dense", "float32", "sparse"])
def test_a_store_gives_the_model_of_its_rows(classes, form, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 9)) * (rng.random((2000, 9)) < 0.6)
    X = X.astype(np.float32) if form == "float32" else X
    scores = X @ rng.normal(size=(9, 3)) + rng.gumbel(size=(2000, 3))
    y = scores.argmax(axis=1) if classes == 3 else (scores[:, 0] > 0).astype(int)
    table = (scores > 0).astype(int) if classes == "labels" else None
    weight = rng.choice([0.0, 1.0, 2.0], 2000)
    rows = sparse.csr_matrix(X) if form == "sparse" else X
    convert([(rows, y, weight)], tmp_path / "store", shuffle=False)
    store = RowStore.open(tmp_path / "store", buffer=30_000)
    assert len(store.pages) > 3
    for options in ({"C": 0.5}, {"C": 30.0, "fit_intercept": False}):
        model = LogisticRegression(tol=1e-8, **options)
        given = () if table is None else (table, weight)
        other = (y, weight) if table is None else given
        found = clone(model).fit(store, *given)
        expected = clone(model).fit(rows, *other)
        assert found.certificate_.certified
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=2e-3)
        for k, part in enumerate(found.certificate_.parts):
            own = expected.certificate_.parts[k]
            assert part.primal == pytest.approx(own.primal, rel=1e-7)
        np.testing.assert_array_equal(found.predict(store), found.predict(rows))
    refused = "there are 3 classes" if classes == 3 else "needs its rows in memory"
    with pytest.raises(ValueError, match=refused):
        LogisticRegression(solver="dcd").fit(store, y if table is None else table)
    with pytest.raises(ValueError, match="y has 3 labels, but X has 2000 rows"):
        LogisticRegression().fit(store, [0, 1, 1])
    held = RowStore.open(tmp_path / "store", buffer=10**7)
    if table is None:
        inside = LogisticRegression(tol=1e-6).fit(held)
        own = LogisticRegression(tol=1e-6).fit(rows, y, weight)
        np.testing.assert_allclose(inside.coef_, own.coef_, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"solver": "dcd"}, {"l1_ratio": 0.5}])
def test_weights_are_float32_where_rows_are_and_they_prove_it(options):
    X, y = data(2)
    X = X.astype(np.float32)
    model = LogisticRegression(**options).fit(X, y)
    assert model.coef_.dtype == np.float32
    assert model.decision_function(X).dtype == np.float64
    again = certify(model, X, y)
    assert again.relative_gap <= 1e-3
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-12)


def test_weights_are_float64_where_those_of_float32_are_too_coarse():
    X, y = load_breast_cancer(return_X_y=True)
    model = LogisticRegression(tol=1e-8).fit(X.astype(np.float32), y)
    assert model.certificate_.certified
    assert model.coef_.dtype == np.float64


def test_a_pass_of_the_method_is_a_pass_over_the_store(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    y = (X @ rng.normal(size=6) + rng.logistic(size=3000) > 0).astype(int)
    convert([(X, y)], tmp_path / "store", shuffle=False)
    store = RowStore.open(tmp_path / "store", buffer=30_000)
    passes = []
    read = RowStore.read
    monkeypatch.setattr(
        RowStore, "read", lambda *given: passes.append(1) or read(*given)
    )
    model = LogisticRegression().fit(store)
    # At most the gradient, the matrix, the scores of the step and a proof.
    assert 0 < len(passes) <= 6 * (model.n_iter_ + 1)


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_a_model_without_features_is_said(l1_ratio):
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    none = LogisticRegression(l1_ratio=l1_ratio)
    with pytest.warns(DegenerateWarning, match="all features have the weight 0"):
        none.fit(np.zeros((60, 3)), y)
    assert none.certificate_.certified
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateWarning)
        clone(none).set_params(C=100.0).fit(X, y)
