"""Squared hinge of kernels on columns far from 0: solved, or stalled soon."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import SVC, LinearSVC
from dualgap.certificate import Status
from dualgap.kernel import BlockSolver, KernelProblem
from dualgap.kernels.functions import Linear
from dualgap.training import solve

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

FOUR = np.array([[1.0, -1.4], [1.0, -2.1], [1.0, 0.8], [1.0, 1.9]])
LABELS = np.array([0, 1, 1, 1])
ROWS = np.random.default_rng(5).normal(size=(20, 2))
SIGNS = (ROWS[:, 1] + np.random.default_rng(6).normal(size=20) > 0.0).astype(int)


@pytest.mark.cases(None)
@pytest.mark.parametrize(("scale", "C"), [(1e4, 0.1), (1e4, 1.0), (1e5, 0.1)])
def test_a_large_column_leaves_the_interior_point_its_optimum(scale, C):
    for X, y in ((FOUR * [scale, 1.0], LABELS), (ROWS + np.array([scale, 0.0]), SIGNS)):
        model = SVC(C, kernel="linear", loss="squared_hinge").fit(X, y)
        best = LinearSVC(C, loss="squared_hinge", tol=1e-9).fit(X, y).certificate_
        assert model.certificate_.certified
        assert model.certificate_.primal <= best.primal * (1.0 + 2e-3)
        assert model.certificate_.dual <= best.primal


@pytest.mark.cases(None)
@pytest.mark.parametrize("C", [0.01, 1.0, 1e6])
@pytest.mark.parametrize("scale", [1e6, 1e7, 1e8, 1e10])
def test_a_stall_ends_the_fit_before_max_iter(scale, C):
    for X, y in ((FOUR * [scale, 1.0], LABELS), (ROWS + np.array([scale, 0.0]), SIGNS)):
        model = SVC(C, kernel="linear", loss="squared_hinge").fit(X, y)
        assert model.certificate_.status in (Status.STALLED, Status.CERTIFIED)
        assert model.n_iter_ < 100
        assert model.certificate_.dual <= model.certificate_.primal


def test_updates_that_raise_d_by_too_little_count_as_none():
    X = FOUR * [1e8, 1.0]
    problem = KernelProblem(
        X, 2.0 * LABELS - 1.0, 1.0, kernel=Linear(), loss="squared_hinge"
    )
    solution = solve(problem, BlockSolver(), max_iter=500)
    assert solution.certificate.status is Status.STALLED
    assert solution.certificate.epochs < 100
    assert solution.certificate.updates > 0
