"""Interior point and Newton's method for the absolute loss: optima, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine

from dualgap import LinearSVR
from dualgap.certificate import Status
from dualgap.losses import EpsilonInsensitive
from dualgap.problems import RegressionProblem
from dualgap.solvers.regression import RegressionDCD
from dualgap.solvers.regression_interior import RegressionInterior
from dualgap.solvers.smoothing_regression import SmoothingRegression
from dualgap.training import solve

from .test_regression import data

either = pytest.mark.parametrize(
    "solver", [RegressionInterior(), SmoothingRegression()]
)


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("load", [load_wine, load_diabetes])
def test_raw_columns_converge(load, C, epsilon):
    X, y = load(return_X_y=True)
    model = LinearSVR(C=C, epsilon=epsilon).fit(X, y)
    assert model.certificate_.certified
    assert model.n_iter_ < 100


def test_rows_inside_the_tube_are_no_support_vectors():
    X, y, _ = data(n=80)
    problem = RegressionProblem(X, y, 5.0, loss=EpsilonInsensitive(0.4))
    by_dcd = solve(problem, RegressionDCD(), tol=1e-9, max_iter=100_000)
    by_interior = solve(problem, RegressionInterior(), tol=1e-9)
    assert by_interior.certificate.relative_gap < 1e-9
    found, expected = (np.count_nonzero(s.alpha) for s in (by_interior, by_dcd))
    assert found == expected < 80
    wide = RegressionProblem(X, y, loss=EpsilonInsensitive(100.0))
    assert not solve(wide, RegressionInterior()).w.any()


@either
def test_a_warm_start_is_proved_first(solver):
    X, y, _ = data(n=80)
    problem = RegressionProblem(X, y, 5.0)
    first = solve(problem, solver, tol=1e-6)
    again = solve(problem, solver, tol=1e-6, warm=first.alpha)
    assert again.certificate.certified
    assert again.certificate.epochs == 0
    far = solve(problem, solver, tol=1e-6, warm=-first.alpha)
    assert far.certificate.certified


@either
def test_the_end_is_reached_or_said(solver):
    X, y, _ = data(n=80)
    problem = RegressionProblem(X, y, 5.0)
    limited = solve(problem, solver, tol=1e-9, max_iter=1)
    assert limited.certificate.status is Status.EPOCH_LIMIT
    assert np.isfinite(limited.certificate.relative_gap)
    exact = solve(problem, solver, tol=1e-18)
    assert exact.certificate.status is Status.STALLED
    assert exact.certificate.relative_gap < 1e-9
