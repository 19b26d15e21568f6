"""MPU and SGD-QN reach an accuracy on real data in few epochs."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD, MPU, SGDQN
from dualgap.training import solve

SOLVERS = {"mpu": MPU(), "sgd-qn": SGDQN(), "sgd-qn 2009": SGDQN(update="2009")}


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
