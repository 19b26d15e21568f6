"""Kernels on columns far from 0 or of very different scale: solved, or stalled soon."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import SVC, SVR, LinearSVC
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


def nasty(seed):
    """Return few rows with columns of very different scale, labels, and a large C."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(4, 13), rng.integers(1, 4)
    X = np.round(rng.normal(size=(n, d)) * 10.0 ** rng.integers(-1, 7, size=d), 1)
    return X, rng.permutation(np.arange(n) % 2), 10.0 ** rng.integers(-2, 17)


@pytest.mark.cases(None)
@pytest.mark.parametrize("kernel", ["poly", "linear"])
@pytest.mark.parametrize("seed", [32, 90, 177, 339, 364, 402, 433, 476])
def test_rounding_that_raises_d_ends_the_fit_before_max_iter(seed, kernel):
    X, y, C = nasty(seed)
    model = SVC(C, kernel=kernel, gamma=1.0, loss="squared_hinge", max_iter=200)
    certificate = model.fit(X, y).certificate_
    assert certificate.status in (Status.STALLED, Status.CERTIFIED)
    assert certificate.epochs < 100


@pytest.mark.parametrize("seed", [4, 19, 53, 122, 226, 298])
def test_steps_too_short_to_change_a_value_end_the_fit_before_max_iter(seed):
    X, y, C = nasty(seed)
    y = X[:, 0] / (1.0 + np.abs(X[:, 0]).max()) + y
    model = SVR(C=C, kernel="poly", degree=5, gamma=1.0, max_iter=200).fit(X, y)
    assert model.certificate_.status in (Status.STALLED, Status.CERTIFIED)
    assert model.certificate_.epochs < 100
