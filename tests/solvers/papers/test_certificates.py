"""Certificates of MPU and SGD-QN against a generic solver, and on real data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD, MPU, SGDQN
from dualgap.training import solve

from ... import qp
from ..data import LOSSES

SOLVERS = {"mpu": MPU(), "sgd-qn": SGDQN(), "sgd-qn 2009": SGDQN(update="2009")}
PAIRS = [(name, loss) for name, s in SOLVERS.items() for loss in s.losses]


@pytest.mark.parametrize(("name", "loss"), PAIRS)
@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 25),
    d=st.integers(1, 8),
    logarithm=st.floats(-2.5, 1.5),
    weighted=st.booleans(),
    intercept=st.booleans(),
)
def test_against_a_generic_solver(
    name, loss, seed, n, d, logarithm, weighted, intercept
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = np.where(X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) > 0, 1, -1)
    weight = rng.uniform(0.1, 2.0, size=n) * (rng.random(n) < 0.8)
    weight[0] = 1.0
    C = 10.0 ** (logarithm if name == "mpu" else min(logarithm, 1.0))
    problem = Problem(
        X, y, C, loss=LOSSES[loss][0], sample_weight=weight if weighted else None,
        fit_intercept=intercept,
    )  # fmt: skip
    Z = y[:, None] * (np.column_stack([X, np.ones(n)]) if intercept else X)
    cost = C * weight if weighted else np.full(n, C)
    curvature, linear = LOSSES[loss][0].curvature, loss != "squared_hinge"
    best = qp.optimum(Z, cost, curvature, linear)
    limits = [(1e-12, 3), (1e-6, 200_000)] if name == "mpu" else [(1e-9, 1), (1e-9, 30)]
    for tol, passes in limits:
        solution = solve(problem, SOLVERS[name], tol=tol, max_iter=passes)
        P = float(qp.primal(Z, cost, curvature, linear, solution.w))
        D = float(qp.dual(Z, cost, curvature, solution.alpha))
        np.testing.assert_allclose(solution.certificate.primal, P, 1e-10)
        np.testing.assert_allclose(solution.certificate.dual, D, 1e-10, 1e-12)
        assert (solution.alpha >= 0).all()
        assert (solution.alpha <= problem.upper).all()
        assert D <= best.upper * (1 + 1e-10)
        assert P >= best.lower * (1 - 1e-10)
    if name == "mpu":
        assert solution.certificate.status is Status.CERTIFIED
        assert P - best.lower <= 1.0001e-6 * best.upper


#: Epochs to a proven 1e-2, with a margin of about a half over what was measured.
EPOCHS = {
    ("adult/a9a", 0.05): (10, 60),
    ("adult/a9a", 1.0): (80, 1500),
    ("web/w8a", 0.05): (6, 10),
    ("web/w8a", 1.0): (25, 150),
    ("cocoa_rcv1_small/small_train.dat", 0.05): (6, 150),
    ("cocoa_rcv1_small/small_train.dat", 1.0): (35, 200),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize(("data", "C"), EPOCHS)
@pytest.mark.parametrize("name", SOLVERS)
def test_real_data(name, data, C, load_xz):
    X, y = load_xz(data)
    problem = Problem(X, y, C)
    reference = solve(problem, DCD(), tol=1e-5, max_iter=20_000)
    assert reference.certificate.status is Status.CERTIFIED
    epochs = EPOCHS[data, C][name != "mpu"]
    solution = solve(problem, SOLVERS[name], tol=1e-2, max_iter=epochs)
    assert solution.certificate.status is Status.CERTIFIED
    w, alpha = solution.w, solution.alpha
    P = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
    v = X.T @ (alpha * y)
    D = alpha.sum() - 0.5 * v @ v
    assert P - D <= 1.0001e-2 * D
    assert P <= (1 + 1e-2) * reference.certificate.primal
    assert D <= reference.certificate.primal
