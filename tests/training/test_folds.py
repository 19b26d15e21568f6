"""Certificates of folds that are trained together, in exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualgap import core
from dualgap.data.rows import Points
from dualgap.kernel import KernelProblem, KernelRegression
from dualgap.kernels.functions import RBF, Linear
from dualgap.kernels.gram import Gram
from dualgap.kernels.table import KernelTable
from dualgap.solvers.kernel.block import BlockSolver
from dualgap.training.fit import solve
from dualgap.training.folds import HingeFolds, TubeFolds

from ..solvers.data import job
from ..trust.verifier import SVM, Kernel
from ..twins import folds as twin


def integer_folds(scale, seed):
    """Return a generator, rows of whole numbers, weights of folds, and a table."""
    rng = np.random.default_rng(scale + seed)
    X = rng.integers(-3, 4, (50, 6)).astype(float)
    X[:, 0] *= scale
    X[7] = 0.0
    weights = rng.integers(1, 4, (4, 50)).astype(float)
    for fold, row in enumerate(weights):
        row[fold::4] = 0.0
    table = KernelTable(Gram(Points.of(X), Linear(), 10.0), 1.0, core.Stop())
    return rng, X, weights, table


@pytest.mark.cases(1)
@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("scale", [1, 1000])
def test_bounds_of_folds_hold_in_exact_arithmetic(threads, scale, near):
    """They hold from any start: it may lie outside the box, and need no sum of 0."""
    rng, X, weights, table = integer_folds(scale, threads)
    y = np.where(X[:, 1] + rng.normal(0, 1.5, 50) > 0.0, 1, -1).astype(np.int8)
    folds = HingeFolds(table, [(0, 50)], np.arange(50), y, weights, threads)
    if near:
        folds.core.start(rng.normal(0, 0.02, 50))
    K = Kernel(X @ X.T)
    for C in (0.01, 0.1, 1.0):
        found = folds.advance(C, 0, job(tol=1e-4))
        for weight, solution in zip(weights, found, strict=True):
            certificate, alpha = solution.certificate, solution.alpha
            assert certificate.certified
            assert certificate.relative_gap <= 1e-4
            assert (alpha >= 0.0).all()
            assert (alpha <= C * weight).all()
            posed = SVM(K, "hinge", y, C * weight, bias="free")
            assert posed.primal(alpha * y, solution.bias) <= certificate.primal
            kept = weight > 0.0
            problem = KernelProblem(
                X[kept], y[kept], C, kernel=Linear(), loss="hinge",
                sample_weight=weight[kept], penalize_intercept=False,
            )  # fmt: skip
            best = solve(problem, BlockSolver(), tol=1e-9).certificate
            assert certificate.dual <= best.primal
            assert best.dual <= certificate.primal


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("scale", "epsilon"), [(1, 0.0), (1, 0.25), (30, 0.25)])
def test_bounds_of_regressions_hold_in_exact_arithmetic(threads, scale, epsilon):
    rng, X, weights, table = integer_folds(scale, threads)
    y = 1e4 + X[:, 1] - np.abs(X[:, 2]) + rng.normal(0, 0.5, 50)
    folds = TubeFolds(table, [(0, 50)], np.arange(50), y, weights, threads, epsilon)
    K = Kernel(X @ X.T)
    for C in (0.01, 0.1, 1.0):
        found = folds.advance(C, 0, job(tol=1e-4))
        for weight, solution in zip(weights, found, strict=True):
            certificate, alpha = solution.certificate, solution.alpha
            assert certificate.certified
            assert certificate.relative_gap <= 1e-4
            assert (np.abs(alpha) <= C * weight).all()
            assert abs(alpha.sum()) <= 1e-13 * C * len(y)
            posed = SVM(K, "epsilon_insensitive", y, C * weight, epsilon, "free")
            assert posed.primal(alpha, solution.bias) <= certificate.primal
            kept = weight > 0.0
            problem = KernelRegression(
                X[kept], y[kept], C, kernel=Linear(), epsilon=epsilon,
                sample_weight=weight[kept],
            )  # fmt: skip
            best = solve(problem, BlockSolver(), tol=1e-6).certificate
            assert certificate.dual <= best.primal
            assert best.dual <= certificate.primal
            np.testing.assert_allclose(
                solution.decisions, X @ (X.T @ alpha) + solution.bias, rtol=1e-9
            )


def rbf_folds(n=420, count=3, gamma=0.3):
    """Return kernel values, labels and weights, so many that working sets are full."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] * X[:, 1] + rng.normal(0, 0.7, n) > 0.0, 1, -1)
    K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    weights = rng.integers(1, 3, (count, n)).astype(float)
    for fold, row in enumerate(weights):
        row[fold::count] = 0.0
    return K, y.astype(np.int8), weights


def in_core(K, y, weights, Cs, tol=1e-4, most=1000):
    """Return c and F of all folds for each C; the last C makes `most` working sets."""
    table = core.FoldTable(K, K.astype(np.float32))
    folds = core.Folds(table, [(0, len(y))], y, weights, 1)
    found = []
    for C in Cs:
        alpha, F = np.empty((2, *weights.shape))
        assert folds.advance(C, tol, 0.0, most if C == Cs[-1] else 1000, core.Stop())
        folds.points(alpha, F)
        found.append((y * alpha, F))
    return found


CS = (0.0625, 0.25, 1.0, 4.0)  # their multiples are exact


def test_folds_and_their_twin_prove_each_other():
    K, y, weights = rbf_folds()
    tol = 1e-4
    ours, twins = in_core(K, y, weights, CS, tol), twin.solve(K, y, weights, CS, tol)
    for C, (cs, Fs), of in zip(CS, ours, twins, strict=True):
        for weight, c, F, (_, primal, dual, _) in zip(weights, cs, Fs, of, strict=True):
            np.testing.assert_allclose(F, K @ c, atol=1e-11 * C * len(y))
            bound, _ = twin.box(weight, C)
            assert (0.0 <= y * c).all()
            assert (y * c <= bound).all()
            assert math.fsum(c) == 0.0
            own_primal, own_dual, bias = twin.bounds(y, weight, C, c, F)
            assert own_primal - own_dual <= tol * own_dual
            assert own_dual <= primal * (1 + 1e-12)
            assert dual <= own_primal * (1 + 1e-12)
            # Each row's part of the gap: zero exactly where the KKT conditions hold.
            margin = 1.0 - y * (F + bias)
            parts = C * weight * np.maximum(0.0, margin) - y * c * margin
            assert parts.min() >= -1e-12 * own_primal
            assert parts.max() <= tol * own_dual


@pytest.mark.parametrize(("gamma", "too_far"), [(0.3, 0), (30.0, 3)])
def test_the_start_of_a_fold_is_that_of_its_twin(gamma, too_far):
    """The solution of a narrow kernel hardly changes above C = 1: starts are cut."""
    K, y, weights = rbf_folds(gamma=gamma)
    shortened = 0
    for count in (2, 3, 4):
        found = in_core(K, y, weights, CS[:count], most=0)
        *before, _ = [c for c, _ in found]
        moved = 0
        for fold, weight in enumerate(weights):
            known = [c[fold] for c in before[-2:]]
            best = twin.start(y, weight, CS[max(0, count - 3) : count], *known[::-1])
            moved += (best != known[-1]).sum()
            whole, best = best, twin.cut(K, y, known[-1], best)
            shortened += best is not whole
            digits = 1e-12 if best is whole else 1e-6  # of sums of float32
            c, atol = found[-1][0][fold], digits * CS[-1]
            np.testing.assert_allclose(c, best, atol=atol)
            assert math.fsum(c) == 0.0  # exact: c is on a grid
        assert moved > 0
    assert shortened >= too_far


def test_the_first_working_set_of_a_fold_is_that_of_its_twin():
    K, y, weights = rbf_folds()
    for count in (1, 2, 3, 4):
        C = CS[count - 1]
        begun = in_core(K, y, weights, CS[:count], most=0)[-1]
        after = in_core(K, y, weights, CS[:count], most=1)[-1]
        for fold, weight in enumerate(weights):
            c, F = begun[0][fold], begun[1][fold]
            low, high = twin.sides(y, weight, C)
            rows = twin.working_set(y, c, F, low, high)
            assert len(rows) < len(y)
            assert set(np.flatnonzero(after[0][fold] != c)) <= set(rows)
            top, bottom = twin.violation(y, c, F, low, high)
            some = after[0][fold][rows], after[1][fold][rows], low[rows], high[rows]
            inside = twin.violation(y[rows], *some)
            assert inside[0] - inside[1] <= 0.101 * (top - bottom)
            values = [y @ c - c @ F / 2 for c, F in ((c, F), [a[fold] for a in after])]
            assert values[0] < values[1]


def test_scores_of_a_fold_count_a_rounding_for_each_term():
    """Rows that folds share are added in groups, of which one fold may need a row."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    table = KernelTable(Gram(Points.of(X), RBF(0.5), 10.0), 10.0, core.Stop())
    problem = KernelRegression(table.subset(np.arange(60)), y, 1.0, epsilon=0.0)
    alpha = rng.uniform(-1.0, 1.0, 60)
    problem.remember(alpha, table.values @ alpha)
    least = 60 * 2.0**-53 * np.abs(alpha).sum()
    assert (problem.rounding_of_scores(alpha) >= least).all()
