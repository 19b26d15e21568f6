"""Small one-class problems, solved in one call into the core."""

from __future__ import annotations

import numpy as np

from dualgap import core
from dualgap.kernel import BlockSolver, KernelAuto, KernelOneClass, KernelRegression
from dualgap.kernels.functions import RBF, Precomputed
from dualgap.problems.batch import SingleBatch
from dualgap.solvers.kernel.auto import solve_alone

from ..data import job
from .test_regression import data


def solved(problem, solver=None, stop=None, **options):
    limits = {"stop": stop or core.Stop()} | options
    return solve_alone(solver or KernelAuto(), SingleBatch(problem, ""), job(**limits))


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
