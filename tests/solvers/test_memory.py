"""Bytes that a fit by DCD takes beyond the data, per row and per feature.

Measured in a process of its own: other tests leave threads that allocate too.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD
from dualgap.training import solve

from ..conftest import unsanitized

pytestmark = unsanitized("it keeps freed memory")

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
        solution = solve(problem, solver, tol=1e-9, check_every=3, max_iter=25)
        return tracemalloc.get_traced_memory()[1], solution
    finally:
        tracemalloc.stop()


SIZES = ((60_000, 2500), (2000, 100_000))
LOSSES = ("hinge", "squared_hinge")
SOLVERS = (
    (DCD(acceleration="none"), 40, 16),
    (DCD(shrinking="hsieh"), 40, 16),
    (DCD(acceleration="conjugate"), 90, 64),
)


@pytest.fixture(scope="module")
def measured():
    """{loss: per solver, per size: (bytes, exact passes, epochs)}."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.solvers.test_memory"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("k", range(len(SOLVERS)))
def test_bytes_per_row_and_per_feature(measured, k, loss):
    _, per_row, per_feature = SOLVERS[k]
    for (n, d), (used, exact, epochs) in zip(SIZES, measured[loss][k], strict=True):
        assert exact > 2
        assert epochs == 25  # all of the accelerator's modes
        assert used <= per_row * n + per_feature * d + FIXED


def measure(solver, loss, n, d):
    used, solution = peak(*text(n, d), solver, loss)
    return used, int(solution.history["exact"].sum()), solution.certificate.epochs


if __name__ == "__main__":
    found = {
        loss: [
            [measure(solver, loss, *size) for size in SIZES] for solver, *_ in SOLVERS
        ]
        for loss in LOSSES
    }
    print(json.dumps(found))
