"""Small regression problems, solved and proved in one call into the core."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.problems import RegressionProblem
from dualgap.problems.base import Claim
from dualgap.problems.batch import SingleBatch
from dualgap.solvers.regression import SETTINGS, RegressionDCD, solve_regression
from dualgap.solvers.regression_interior import RegressionInterior

from ..trust.verifier import SVM, Rows
from .data import LAYOUTS, close, job
from .test_regression import LOSSES, data


def solved(problem, solver=None, stop=None, **options):
    limits = {"stop": stop or core.Stop(), "max_iter": 10_000} | options
    solver = solver or RegressionDCD()
    return solve_regression(solver, SingleBatch(problem, ""), job(**limits))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("C", [0.1, 3.0])
@pytest.mark.cases(12)
def test_bounds_hold_and_are_those_of_the_problem(layout, name, epsilon, C):
    X, y, weight = data(hollow=True)
    stored = LAYOUTS[layout](X)
    problem = RegressionProblem(
        stored, y, C, loss=LOSSES[name](epsilon), sample_weight=weight,
        fit_intercept=True,
    )  # fmt: skip
    found = solved(problem, tol=1e-6)
    (bounds,), (w,), (alpha,) = found.bounds, found.w, found.alpha
    assert bounds.meets(1e-6)
    assert (np.abs(alpha) <= problem.upper).all()
    seen = stored.toarray() if sparse.issparse(stored) else stored
    close(w, alpha @ np.column_stack([seen.astype(float), np.ones(len(y))]))
    posed = SVM(Rows(seen), name, y, problem.cost, epsilon, "penalised")
    assert posed.primal(w[:-1], w[-1]) <= bounds.primal
    assert bounds.dual <= posed.dual(alpha)
    own = problem.prove(Claim(alpha=alpha)).certificate
    assert bounds.dual == pytest.approx(own.dual, rel=1e-12)
    assert bounds.primal == pytest.approx(own.primal, rel=1e-12)


def test_what_is_left_to_the_ordinary_solver():
    X, y, _ = data()
    problem = RegressionProblem(X, y, 1.0)
    assert solved(problem) is not None
    assert solved(problem, RegressionInterior()) is None
    wide = RegressionProblem(
        sparse.csr_matrix((2, SETTINGS.most_entries)), np.ones(2), 1.0
    )
    assert solved(wide) is None
    stop = core.Stop()
    stop.request()
    assert solved(problem, stop=stop) is None
