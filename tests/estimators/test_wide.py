"""Rows far wider than what is stored of them: no vector is longer than it need be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dualgap import DegenerateWarning, LinearOneClassSVM, LinearSVC, LinearSVR
from dualgap.model_selection import svm_path
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD, Auto
from dualgap.training import solve

from ..memory import traced

N, WIDTH = 30, 2_000_000


def wide(dtype=np.float64, width=WIDTH):
    """Rows of up to three entries, the same without empty columns, and the columns."""
    rng = np.random.default_rng(0)
    entries = rng.standard_normal(2 * N).astype(dtype)
    columns = rng.choice(rng.integers(0, width, N), 2 * N)  # some hold several
    X = sparse.csr_matrix((entries, (np.arange(2 * N) % N, columns)), (N, width))
    X.data[3] = 0.0  # stored all the same
    used = np.unique(X.indices)
    return X, sparse.csr_matrix(X[:, used]), used


TWO, THREE = np.arange(N) % 2, np.arange(N) % 3
MODELS = {
    "hinge": (LinearSVC(), TWO),
    "squared hinge": (LinearSVC(loss="squared_hinge"), TWO),
    "free bias": (LinearSVC(penalize_intercept=False), TWO),
    "no bias": (LinearSVC(fit_intercept=False), TWO),
    "dcd": (LinearSVC(solver="dcd"), TWO),
    "one versus rest": (LinearSVC(), THREE),
    "one versus one": (LinearSVC(multi_class="ovo"), THREE),
    "together": (LinearSVC(loss="hinge", multi_class="crammer_singer"), THREE),
    "two together": (LinearSVC(loss="hinge", multi_class="crammer_singer"), TWO),
    "regression": (LinearSVR(), np.arange(N)),
    "squared": (LinearSVR(loss="squared_epsilon_insensitive"), np.arange(N)),
    "one class": (LinearOneClassSVM(), None),
}
every_model = pytest.mark.parametrize("name", MODELS)


def fit(name, X):
    model, y = MODELS[name]
    model = clone(model)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model.fit(X, y)


@every_model
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_empty_columns_change_no_bit_of_a_model(name, dtype):
    X, narrow, columns = wide(dtype)
    model, twin = fit(name, X), fit(name, narrow)
    coef = np.atleast_2d(model.coef_)
    assert coef.shape[1] == model.n_features_in_ == WIDTH
    assert np.array_equal(coef[:, columns], np.atleast_2d(twin.coef_))
    assert np.count_nonzero(coef) == np.count_nonzero(twin.coef_)
    assert np.array_equal(model.dual_coef_, twin.dual_coef_)
    assert np.array_equal(model.intercept_, twin.intercept_)
    assert np.array_equal(model.predict(X), twin.predict(narrow))


@every_model
def test_a_fit_has_no_vectors_as_long_as_the_rows_but_the_model(name):
    X, _, _ = wide()
    model, peak = traced(lambda: fit(name, X))
    assert peak < 1.1 * model.coef_.nbytes


def test_a_path_over_wide_rows_is_that_over_their_columns():
    X, narrow, columns = wide()
    path, twin = (svm_path(rows, TWO, [0.1, 1.0], random_state=0)
                  for rows in (X, narrow))  # fmt: skip
    assert path.coefs.shape == (2, WIDTH)
    assert np.array_equal(path.coefs[:, columns], twin.coefs)
    assert np.array_equal(path.intercepts, twin.intercepts)


def test_formats_and_empty_rows_are_as_good():
    X, _, _ = wide()
    coef = LinearSVC(random_state=0).fit(X, TWO).coef_
    assert np.array_equal(LinearSVC(random_state=0).fit(X.tocoo(), TWO).coef_, coef)
    order = X.copy()  # the entries of a row in any order
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        order.indices[start:stop] = X.indices[start:stop][::-1]
        order.data[start:stop] = X.data[start:stop][::-1]
    order.has_sorted_indices = False
    found = LinearSVC(random_state=0).fit(order, TWO).coef_
    assert np.array_equal(found != 0.0, coef != 0.0)
    assert np.allclose(found, coef, rtol=1e-5, atol=1e-9)
    nothing = sparse.csr_matrix((N, WIDTH))
    with pytest.warns(DegenerateWarning, match="class 1 has a decision function"):
        assert not LinearSVC().fit(nothing, TWO).coef_.any()
    with pytest.warns(UserWarning, match="no plane separates enough rows"):
        assert not LinearOneClassSVM().fit(nothing).coef_.any()


def test_a_wrong_index_or_value_is_named_as_in_other_rows():
    X, _, _ = wide()
    X.indices[7] = WIDTH
    with pytest.raises(ValueError, match=r"row 3: .*out of range"):
        LinearSVC().fit(X, TWO)
    X, _, _ = wide()
    X.data[7] = np.nan
    with pytest.raises(ValueError, match="row 3: value is NaN"):
        LinearSVC().fit(X, TWO)


def test_a_fit_of_wide_rows_is_taken_up_by_partial_fit_and_by_a_warm_start():
    X, _, _ = wide()
    model = LinearSVC(random_state=0, warm_start=True).fit(X, TWO)
    dual = model.certificate_.dual
    assert model.fit(X, TWO).n_iter_ == 0
    model.partial_fit(X, TWO)
    assert model.coef_.shape == (1, WIDTH)
    assert model.certificate_.dual >= dual * (1.0 - 1e-12)


@pytest.mark.parametrize("free", [False, True])
def test_a_problem_with_many_columns_is_not_small(free):
    """A long w makes epochs expensive, so `auto` stops at tol as `dcd` does."""
    X, _, _ = wide()
    problem = Problem(X, 2 * TWO - 1, fit_intercept=True, penalize_intercept=not free)
    found = [solve(problem, solver(), tol=1e-2) for solver in (Auto, DCD)]
    assert found[0].certificate.epochs == found[1].certificate.epochs
    assert np.array_equal(found[0].alpha, found[1].alpha)
