"""Bytes that a fit by DCD takes beyond the data, per row and per feature."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from dualgap.loop import solve
from dualgap.problem import Problem
from dualgap.solvers import DCD

# Beside the two sizes: the history, code objects, and what Python keeps.
FIXED = 100_000


def text(n, d, row=3):
    """Rows of `row` entries; a noisy separator."""
    rng = np.random.default_rng(0)
    columns = (rng.random((n, row)) ** 3 * d).astype(np.int32)
    columns.sort(axis=1)
    X = sparse.csr_matrix(
        (rng.random(n * row), columns.ravel(), np.arange(0, n * row + 1, row)), (n, d)
    )
    X.sum_duplicates()
    score = X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n)
    return X, np.where(score > 0, 1, -1).astype(np.int8)


def peak(X, y, solver, loss):
    """Bytes above the data while the problem is built and solved, and epochs."""
    gc.collect()
    tracemalloc.start()
    try:
        problem = Problem(X, y, 20.0, loss=loss)
        # With refused passes, so that the best point so far is kept as well.
        solution = solve(problem, solver, tol=1e-9, check_every=3, max_epochs=25)
        return tracemalloc.get_traced_memory()[1], solution
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(
    ("solver", "per_row", "per_feature"),
    [
        (DCD(acceleration="none"), 40, 16),
        (DCD(shrinking="hsieh"), 40, 16),
        (DCD(acceleration="conjugate"), 90, 64),
    ],
)
def test_bytes_per_row_and_per_feature(solver, per_row, per_feature, loss):
    for n, d in ((60_000, 2500), (2000, 100_000)):
        X, y = text(n, d)
        used, solution = peak(X, y, solver, loss)
        assert solution.history["exact"].sum() > 2
        assert solution.certificate.epochs == 25  # all of the accelerator's modes
        assert used <= per_row * n + per_feature * d + FIXED
