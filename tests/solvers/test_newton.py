"""Newton's method for the squared loss of regression: twin, certificates, optima."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.losses import EpsilonInsensitive, SquaredEpsilonInsensitive
from dualgap.problems import RegressionProblem
from dualgap.solvers import solver_for
from dualgap.solvers.newton import ResidualNewton
from dualgap.solvers.regression import RegressionDCD
from dualgap.solvers.regression_interior import RegressionInterior
from dualgap.solvers.smoothing_regression import SmoothingRegression

from ..twins import regression as twin
from .data import LAYOUTS, close
from .test_regression import data


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("density", [0.1, 0.6])  # row by row, and by panels
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_steps_are_those_of_the_twin(layout, density, epsilon):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(700, 20)) * (rng.random((700, 20)) < density)
    y = X @ rng.normal(size=20) + rng.standard_t(2, 700)
    weight = rng.uniform(0.0, 2.0, 700) * (rng.random(700) < 0.8)
    stored = LAYOUTS[layout](X)
    problem = RegressionProblem(
        stored, y, 3.0, loss=SquaredEpsilonInsensitive(epsilon), sample_weight=weight,
        fit_intercept=True, intercept_scaling=0.7,
    )  # fmt: skip
    seen = stored.toarray() if sparse.issparse(stored) else stored
    seen = np.column_stack([seen.astype(float), np.full(len(y), 0.7)])
    solver = ResidualNewton("factor")
    ours = solver.start(problem, core.Random(0), None)
    theirs = twin.Newton(seen, y, problem.cost, epsilon)
    primal = problem.primal(ours.w)
    for _ in range(6):
        solver.step(ours, core.Stop())
        theirs.step()
        # The line search ends at a slope of 1e-3 of the first one.
        close(ours.w, theirs.w, 1e-3)
        theirs.w = ours.w.copy()
        assert ours.primal == pytest.approx(problem.primal(ours.w), rel=1e-12)
        assert ours.primal <= primal * (1 + 1e-14)
        primal = ours.primal
        gradient = theirs.gradient(ours.w)
        np.testing.assert_allclose(ours.gradient, gradient, atol=1e-10 * primal)
        a = theirs.duals(ours.w)
        assert ours.dual == pytest.approx(problem.dual(a), rel=1e-10)
    assert ours.gap <= 1e-20 * primal


def test_auto_goes_by_the_shape_and_the_loss():
    X, y, _ = data(n=2000, d=10)
    for n, loss, C, kind in (
        (40, SquaredEpsilonInsensitive(), 1.0, ResidualNewton),
        (39, SquaredEpsilonInsensitive(), 1.0, RegressionDCD),
        (40, EpsilonInsensitive(), 100.0, RegressionInterior),
        (101, EpsilonInsensitive(), 100.0, SmoothingRegression),
        (40, EpsilonInsensitive(), 0.1, RegressionDCD),
        (2000, EpsilonInsensitive(), 100.0, SmoothingRegression),
        (2000, EpsilonInsensitive(), 0.1, RegressionDCD),
    ):
        problem = RegressionProblem(X[:n], y[:n], C, loss=loss)
        assert type(solver_for(problem)) is kind
        if not loss.curvature:  # the units of X and y do not matter
            other = RegressionProblem(8 * X[:n], 16 * y[:n], C / 4, loss=loss)
            assert type(solver_for(other)) is kind
        assert type(solver_for(problem, "newton")) is ResidualNewton
        assert type(solver_for(problem, "dcd")) is RegressionDCD
