"""Small one-class problems, solved in one call into the core."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dualgap import core
from dualgap.certificate import Certificate, Status
from dualgap.kernel import BlockSolver, KernelAuto, KernelOneClass, KernelRegression
from dualgap.kernels.functions import RBF, Laplacian, Linear, Polynomial, Precomputed
from dualgap.problems.batch import SingleBatch
from dualgap.solvers.kernel.auto import solve_alone

from ..data import job
from .test_regression import check, data

KERNELS = [RBF(gamma=0.5), Laplacian(0.5), Polynomial(2, 0.5, 1.0), Linear()]


def solved(problem, solver=None, stop=None, **options):
    limits = {"stop": stop or core.Stop()} | options
    return solve_alone(solver or KernelAuto(), SingleBatch(problem, ""), job(**limits))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.cases(None)
def test_the_optimum_is_that_of_a_generic_solver(kernel):
    for seed, nu in enumerate((0.05, 0.31, 0.8, 1.0)):
        X, _, weight = data(50, 3, seed)
        if kernel.name == "linear":  # there is a plane, and P* is not 0
            X = X + 2.0
        used = weight > 0.0
        problem = KernelOneClass(X[used], nu, kernel=kernel, sample_weight=weight[used])
        found = solved(problem, tol=1e-6)
        (bounds,), (alpha,) = found.bounds, found.alpha
        assert bounds.meets(1e-6, floor=found.floors[0])
        solution = SimpleNamespace(
            certificate=Certificate(
                bounds, status=Status.CERTIFIED, floor=found.floors[0]
            ),
            alpha=alpha,
            bias=found.bias[0],
            decisions=found.decisions[0],
        )
        check(problem, np.zeros(problem.n), solution, 1e-6)


def test_what_is_left_to_the_ordinary_solver():
    X, y, _ = data(40, 3)
    problem = KernelOneClass(X, 0.4, kernel=RBF(0.5))
    assert solved(problem) is not None
    assert solved(problem, BlockSolver()) is None
    assert solved(KernelRegression(X, y, 1.0, kernel=RBF(0.5))) is None
    K = problem.gram.kernel.block(X, slice(0, 40), dtype=np.float64)
    assert solved(KernelOneClass(K, 0.4, kernel=Precomputed())) is None
    large = KernelOneClass(X, 0.4, kernel=RBF(0.5), cache_size=0.02)
    assert solved(large) is None
    many = np.repeat(X, 11, axis=0)
    assert solved(KernelOneClass(many, 0.4, kernel=RBF(0.5))) is None
    stop = core.Stop()
    stop.request()
    assert solved(problem, stop=stop) is None
