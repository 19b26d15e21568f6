"""Dual variables of many classes are stored by their nonzero entries."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from dualgap import LinearSVC, memory
from dualgap.estimators.regions import balls_of
from dualgap.models import (
    certify,
    compress,
    load_model,
    save_model,
    what_if,
    write_proof,
)
from dualgap.problems import batch as batches
from dualgap.problems.duals import Pages, narrowed
from dualgap.solvers import SmoothingNewton, labellings, shared

from ..memory import traced

pytestmark = pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")


def several(classes: int, each: int = 4, columns: int = 6):
    rng = np.random.default_rng(classes)
    y = np.repeat(np.arange(classes), each)
    X = rng.normal(size=(classes, columns))[y]
    return X + 0.3 * rng.normal(size=X.shape), y


@pytest.fixture(scope="module")
def fitted():
    X, y = several(30)
    return LinearSVC(C=0.5, tol=1e-8, random_state=0).fit(X, y), X, y


def nbytes(value, seen):
    """Bytes of all arrays that an object reaches."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes if value.base is None else nbytes(value.base, seen)
    if isinstance(value, (list, tuple)):
        return sum(nbytes(one, seen) for one in value)
    if isinstance(value, dict):
        return sum(nbytes(one, seen) for one in value.values())
    return nbytes(vars(value), seen) if hasattr(value, "__dict__") else 0


@pytest.mark.cases(None)
@pytest.mark.parametrize("classes", [20, 21])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "crammer_singer"])
def test_more_than_20_classes_one_versus_the_rest_are_sparse(classes, multi_class):
    X, y = several(classes, 2)
    model = LinearSVC(loss="hinge", multi_class=multi_class).fit(X, y)
    found = model.dual_coef_
    assert sparse.issparse(found) == (classes > 20 and multi_class == "ovr")
    assert found.shape == (classes - (multi_class == "ovo"), len(model.support_))
    if sparse.issparse(found):
        assert found.has_canonical_format
        assert found.nnz == np.count_nonzero(found.toarray())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.cases(None)
@pytest.mark.parametrize("C", [0.02, 3.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["sdca", "auto"])
def test_they_are_the_duals_of_a_table(loss, solver, C, monkeypatch):
    X, y = several(24)
    weight = np.random.default_rng(0).integers(0, 3, len(y)) + (np.arange(len(y)) % 2)
    model = LinearSVC(C, loss=loss, solver=solver, tol=1e-6, random_state=0)
    found = clone(model).fit(X, y, weight)
    monkeypatch.setattr(batches, "MANY", 24)
    table = clone(model).fit(X, y, weight)
    assert not sparse.issparse(table.dual_coef_)
    for name in ("support_", "n_support_", "coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(table, name))
    np.testing.assert_array_equal(found.dual_coef_.toarray(), table.dual_coef_)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["auto", "sdca"])
def test_memory_grows_with_the_stored_duals(solver, monkeypatch):
    # Classes far from each other: each has few support vectors.
    K = 600
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(K), 3)
    X = rng.normal(size=(K, 12))[y] + 0.01 * rng.normal(size=(3 * K, 12))
    model = LinearSVC(10.0, loss="hinge", solver=solver, tol=0.05, max_iter=5)
    settings = replace(labellings.SETTINGS, most_duals=20 * len(y))
    monkeypatch.setattr(labellings, "SETTINGS", settings)
    table = 8 * K * len(y)
    _, peak = traced(lambda: model.set_params(random_state=0).fit(X, y))
    found = model.dual_coef_
    duals = 12 * found.nnz
    assert duals < 0.3 * table
    assert nbytes(found, set()) <= duals + 4 * (K + 1)
    kept = nbytes(vars(model), set())
    assert kept <= duals + 8 * K * (X.shape[1] + 1) + 16 * len(y) + 4_000 * K
    assert peak <= 4 * duals + 3_000 * K < table


def test_shared_passes_hold_the_duals_of_a_chunk_alone(monkeypatch):
    X, y = several(120, 20, 4)
    settings = replace(shared.SETTINGS, chunk=16)
    monkeypatch.setattr(shared, "SETTINGS", settings)
    solver = SmoothingNewton(passes="shared")
    model = LinearSVC(10.0, solver=solver, random_state=0)
    sizes, prove = [], shared.prove_together

    def noted(*arguments):
        found = prove(*arguments)
        sizes.append(found.alpha.shape)
        return found

    monkeypatch.setattr(shared, "prove_together", noted)
    model.fit(X, y)
    assert len(sizes) >= 8
    assert max(sizes) == (16, len(y))
    assert sparse.issparse(model.dual_coef_)
    check = certify(model, X, y)
    assert check.relative_gap <= 1e-3
    np.testing.assert_allclose(check.primal, model.certificate_.primal, rtol=1e-9)


def test_chunks_of_classes_give_the_same_bits(monkeypatch):
    X, y = several(33, 3, 2)
    whole = LinearSVC(C=2.0, random_state=0).fit(X, y)
    assert whole.history_[0]["solver"][0] == "newton"
    for each in (1, 7, 32):
        settings = replace(labellings.SETTINGS, most_duals=each * len(y))
        monkeypatch.setattr(labellings, "SETTINGS", settings)
        parts = LinearSVC(C=2.0, random_state=0).fit(X, y)
        np.testing.assert_array_equal(parts.coef_, whole.coef_)
        np.testing.assert_array_equal(
            parts.dual_coef_.toarray(), whole.dual_coef_.toarray()
        )
        for one, other in zip(parts.history_, whole.history_, strict=True):
            np.testing.assert_array_equal(one["primal"], other["primal"])
            np.testing.assert_array_equal(one["updates"], other["updates"])


@given(
    shapes=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 100)), min_size=1),
    largest=st.integers(1, 60),
)
def test_pages_hold_what_is_put_there(shapes, largest):
    rng = np.random.default_rng(len(shapes))
    pages, parts, tables = Pages(sum(rows for rows, _ in shapes)), [], []
    pages.largest = largest
    for rows, percent in shapes:
        table = rng.normal(size=(rows, 9)) * (rng.random((rows, 9)) < percent / 100)
        tables.append(table)
        parts += pages.put(table)
    whole = np.concatenate(tables)
    np.testing.assert_array_equal([part.dense() for part in parts], whole)
    codes = rng.integers(0, 3, 9)
    support, packed = narrowed(
        parts, lambda codes, k: np.where(codes == 1, 1, -1), codes
    )
    assert parts == []
    np.testing.assert_array_equal(support, np.flatnonzero(whole.any(axis=0)))
    signs = np.where(codes == 1, 1.0, -1.0)
    np.testing.assert_array_equal(packed.toarray(), (whole * signs)[:, support])


def test_duals_that_cannot_fit_are_refused_after_some_classes(monkeypatch):
    X, y = several(60)
    model = LinearSVC(solver="dcd").fit(X, y)
    duals = 12 * model.dual_coef_.nnz  # held twice when they are packed
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "machine_memory", lambda: 3 * duals)
    model.fit(X, y)
    monkeypatch.setattr(memory, "machine_memory", lambda: duals)
    told = r"dual variables of 60 problems, if all .* first 20 .*; train on fewer"
    with pytest.raises(MemoryError, match=told):
        model.fit(X, y)


# ------------------------------------------------------------------- who reads them


def test_proofs_of_the_model_take_them(fitted, tmp_path):
    model, X, y = fitted
    assert certify(model, X, y).relative_gap < 1e-8
    for ball, part in zip(balls_of(model, X, y), model.certificate_, strict=True):
        assert ball.ball.certificate.relative_gap <= part.relative_gap * 1.01 + 1e-12
    write_proof(model, X, y, tmp_path / "a.proof")
    assert (tmp_path / "a.proof").stat().st_size > 0


def test_rows_that_leave_are_answered_and_trained(fitted):
    model, X, y = fitted
    change = what_if(model, X, y, without=[5])
    again = change.refit()
    kept = np.delete(np.arange(len(y)), 5)
    fresh = clone(model).fit(X[kept], y[kept])
    lower, upper = change.decision_bounds(X)
    slack = 1e-6
    assert (fresh.decision_function(X) <= upper + slack).all()
    assert (fresh.decision_function(X) >= lower - slack).all()
    np.testing.assert_allclose(again.coef_, fresh.coef_, atol=1e-3)


def test_files_and_pickles_keep_them(fitted, tmp_path):
    model, _, _ = fitted
    save_model(model, tmp_path / "a.model", duals=True)
    read = load_model(tmp_path / "a.model")
    assert (read.dual_coef_ != model.dual_coef_).nnz == 0
    np.testing.assert_array_equal(read.support_, model.support_)
    assert read.dual_coef_.indices.dtype == model.dual_coef_.indices.dtype
    assert not hasattr(pickle.loads(pickle.dumps(model)), "dual_coef_")


def test_partial_fit_goes_on_from_them(fitted):
    _, X, y = fitted
    model = LinearSVC(loss="squared_hinge", solver="dcd", random_state=0).fit(X, y)
    before = model.certificate_.primal
    model.partial_fit(X, y)
    assert model.certificate_.primal <= before * (1 + 1e-3)


def test_compressed_models_have_fewer(fitted):
    model, X, y = fitted
    smaller = compress(model, X, y, tol=0.05)
    assert smaller.dual_coef_.nnz < model.dual_coef_.nnz
    assert smaller.n_support_.sum() == len(smaller.support_)
    assert smaller.certificate_.certified


def test_margins_show_the_support_vectors_of_a_class(fitted):
    pytest.importorskip("matplotlib").use("agg")
    from dualgap.plot import MarginDisplay

    model, X, y = fitted
    display = MarginDisplay.from_estimator(model, X, y, positive=3)
    assert np.count_nonzero(display.support) == model.dual_coef_[[3]].nnz
