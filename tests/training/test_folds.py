"""Certificates of folds that are trained together, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dualgap import core
from dualgap.data.rows import Points
from dualgap.kernel import KernelProblem
from dualgap.kernels.functions import Linear
from dualgap.kernels.gram import Gram
from dualgap.kernels.table import Table
from dualgap.solvers.kernel.block import BlockSolver
from dualgap.training.fit import solve
from dualgap.training.folds import Folds

OPTIONS = {"tol": 1e-4, "atol": 0.0, "max_epochs": 1000}


def exact_primal(K, y, cost, alpha, bias):
    """Return P of a model over integer kernel values, as a fraction."""
    c = [Fraction(float(a)) * int(label) for a, label in zip(alpha, y, strict=True)]
    used = [j for j, value in enumerate(c) if value]
    scores = [sum(c[j] * int(K[i, j]) for j in used) for i in range(len(y))]
    total = sum(c[i] * scores[i] for i in used) / 2
    b = Fraction(float(bias))
    for label, score, weight in zip(y, scores, cost, strict=True):
        loss = 1 - int(label) * (score + b)
        total += Fraction(float(weight)) * max(loss, Fraction(0))
    return total


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("scale", [1, 1000])
def test_bounds_of_folds_hold_in_exact_arithmetic(threads, scale):
    rng = np.random.default_rng(scale + threads)
    X = rng.integers(-3, 4, (50, 6)).astype(float)
    X[:, 0] *= scale
    X[7] = 0.0
    y = np.where(X[:, 1] + rng.normal(0, 1.5, 50) > 0.0, 1, -1).astype(np.int8)
    weights = rng.integers(1, 4, (4, 50)).astype(float)
    for fold, row in enumerate(weights):
        row[fold::4] = 0.0
    table = Table(Gram(Points.of(X), Linear(), 10.0), 1.0, core.Stop())
    order = np.arange(50)
    folds = Folds(table, order, y, weights, threads)
    K = X @ X.T
    for C in (0.01, 0.1, 1.0):
        found = folds.advance(C, **OPTIONS, seed=0, stop=core.Stop())
        for weight, solution in zip(weights, found, strict=True):
            certificate, alpha = solution.certificate, solution.alpha
            assert certificate.certified
            assert certificate.relative_gap <= 1e-4
            assert (alpha >= 0.0).all()
            assert (alpha <= C * weight).all()
            primal = exact_primal(K, y, C * weight, alpha, solution.bias)
            assert primal <= certificate.primal
            kept = weight > 0.0
            problem = KernelProblem(
                X[kept], y[kept], C, kernel=Linear(), loss="hinge",
                sample_weight=weight[kept], penalize_intercept=False,
            )  # fmt: skip
            best = solve(problem, BlockSolver(), tol=1e-9).certificate
            assert certificate.dual <= best.primal
            assert best.dual <= certificate.primal
