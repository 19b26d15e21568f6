"""Few wide rows over their triangular factor: models, proofs, limits, choice."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import LinearSVCCV
from dualgap.problems.dense import DenseRows
from dualgap.solvers import Auto, SmoothingNewton, few_rows
from dualgap.solvers import shared as module
from dualgap.solvers.few_rows import FewRows, are_few
from dualgap.solvers.shared import chosen, few_pay, solve_shared

from .data import gaussians, job
from .test_shared import batch_of as shared_batch

SHARED = SmoothingNewton(passes="shared")
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def data(n=60, d=150, classes=4, dtype=np.float64):
    return gaussians(n, d, classes, 3.0, dtype)


def batch_of(X, y, C=1.0, intercept=1.0):
    options = {"intercept_scaling": intercept} if intercept else {}
    return shared_batch(X, y, C=C, fit_intercept=intercept > 0.0, **options)


@dtypes
@pytest.mark.parametrize("intercept", [0.0, 1.0, 30.0])
def test_models_have_the_margins_and_norms_of_those_over_the_factor(dtype, intercept):
    X, y = data(dtype=dtype)
    batch, V = batch_of(X, y, intercept=intercept), np.random.default_rng(1)
    few = FewRows.of(DenseRows(X, intercept), batch, lambda: False)
    V = V.normal(size=(3, len(X)))
    W = few.models(V)
    Z = np.column_stack([X.astype(np.float64), np.full(len(X), intercept)])
    np.testing.assert_allclose(W @ Z[:, : W.shape[1]].T, V @ few.L.T, atol=1e-8)
    np.testing.assert_allclose((W**2).sum(axis=1), (V**2).sum(axis=1), rtol=1e-8)


def test_held_out_rows_have_no_dual_variable():
    X, y = data()
    batch = batch_of(X, y)
    parts = [np.where(np.arange(len(y)) % 3 == f, 0.0, 1.0) for f in range(3)]
    folds = batch.weighted([(weight, np.ones(4)) for weight in parts])
    found = solve_shared(SHARED, folds, job())
    assert len(found.bounds) == 12
    for k, bounds in enumerate(found.bounds):
        assert bounds.meets(1e-3)
        assert not found.alpha[k][parts[k // 4] == 0.0].any()


def test_a_path_factors_its_rows_once(monkeypatch):
    made, factor = [], few_rows._factor

    def counted(*arguments):
        made.append(arguments)
        return factor(*arguments)

    monkeypatch.setattr(few_rows, "_factor", counted)
    monkeypatch.setattr(module, "few_pay", lambda batch, job: True)
    X, y = data()
    search = LinearSVCCV(Cs=[0.01, 0.1, 1.0], cv=3).fit(X, y)
    assert len(made) == 2  # of the folds, and of the last fit
    assert search.certificate_.certified


def test_many_folds_of_few_wide_rows_pay():
    X, y = data(n=120, d=12_000, classes=5, dtype=np.float32)
    one = batch_of(X, y)
    folds = one.weighted([(np.ones(len(y)), np.ones(5))] * 20)
    assert are_few(120, 12_000)
    assert few_pay(folds, job())
    assert chosen(Auto(), folds, job())
    assert not few_pay(batch_of(*data(n=1500, d=3001, dtype=np.float32)), job())
    assert not are_few(120, 200)
