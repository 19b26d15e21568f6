"""Kernel regression and one class: certificates, optima, and the pair steps."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap.kernel import (
    RBF,
    BlockSolver,
    Gram,
    KernelAuto,
    KernelOneClass,
    KernelRegression,
    Precomputed,
)
from dualgap.training import solve

from ... import qp


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sin(2.0 * X[:, 0]) + X[:, -1] + 0.2 * rng.standard_t(3, n) + 10.0
    weight = rng.uniform(0.1, 3.0, n)
    weight[rng.random(n) < 0.2] = 0.0
    weight[0] = 1.0
    return X, y, weight


def check(problem, target, solution, tol):
    """P and D of the very points, from outside, and a generic solver's bracket."""
    rows, alpha = slice(0, problem.n), solution.alpha
    K = problem.gram.kernel.block(problem.gram.X, rows, dtype=np.float64)
    box = problem.lower, problem.upper
    form = qp.Box(K, target, *box, problem.epsilon, total=problem.total)
    rounding = qp.check(problem, solution, form, K @ alpha, alpha @ K @ alpha, tol)
    # No breakpoint is a better bias.
    best = form.primal(alpha, form.best_bias(alpha))
    assert best >= form.primal(alpha, solution.bias) - rounding


def test_rows_near_one_another_are_told_apart_by_their_kernel_less_one():
    # Kernel values near 1: the core's rows are then those of K - 1.
    X, y, _ = data(80, 2, seed=1)
    for problem, target in (
        (KernelRegression(X, y, 10.0, kernel=RBF(1e-5), epsilon=0.05), y),
        (KernelOneClass(X, 0.3, kernel=RBF(1e-5)), np.zeros(80)),
    ):
        solution = solve(problem, BlockSolver(), tol=1e-7)
        assert solution.certificate.certified
        check(problem, target, solution, 1e-7)


def test_a_constant_in_the_targets_is_the_bias_alone():
    X, y, _ = data(60, 3)
    fits = []
    for shift in (0.0, 1e6):
        problem = KernelRegression(X, y + shift, 2.0, kernel=RBF(0.5))
        fits.append(solve(problem, KernelAuto(), tol=1e-9))
    np.testing.assert_allclose(fits[0].alpha, fits[1].alpha, atol=1e-6)
    assert fits[1].bias - fits[0].bias == pytest.approx(1e6, abs=1e-5)
    assert fits[1].certificate.primal == pytest.approx(fits[0].certificate.primal)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_pair_steps_with_an_epsilon_reach_the_optimum_of_their_problem(epsilon):
    """The whole training set is one working set: the inner steps alone solve it."""
    X, y, _ = data(40, 3, seed=5)
    problem = KernelRegression(X, y, 5.0, kernel=RBF(0.5), epsilon=epsilon)
    solution = solve(problem, BlockSolver(q=40), tol=1e-9)
    assert solution.certificate.certified
    alpha = solution.alpha
    inside = np.abs(y - solution.decisions) < epsilon - 1e-6
    assert not alpha[inside].any()
    free = (alpha != 0.0) & (np.abs(alpha) < 5.0)
    residual = (y - solution.decisions)[free]
    np.testing.assert_allclose(residual, np.sign(alpha[free]) * epsilon, atol=1e-4)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0]], [3.0]),
        ([[0.0], [1.0]], [1.0, 1.0]),
        ([[0.0], [0.0]], [1.0, 5.0]),
        ([[1.0]] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    ],
)
def test_smallest_problems(X, y):
    X, y = np.array(X), np.array(y)
    problem = KernelRegression(X, y, 2.0, kernel=RBF(1.0))
    solution = solve(problem, KernelAuto(), tol=1e-8)
    assert solution.certificate.certified
    check(problem, y, solution, 1e-8)
    for nu in (0.3, 1.0):
        problem = KernelOneClass(X, nu, kernel=RBF(1.0))
        solution = solve(problem, KernelAuto(), tol=1e-8)
        assert solution.certificate.certified
        check(problem, np.zeros(len(X)), solution, 1e-8)


def test_precomputed_subsets_and_warm_starts():
    X, y, _ = data(90, 3, seed=6)
    K = RBF(0.5).block(X, slice(0, 90))
    rows = np.arange(0, 90, 2)
    whole = Gram(K, Precomputed())
    some = KernelRegression(whole, y[rows], 2.0, rows=rows)
    direct = KernelRegression(X[rows], y[rows], 2.0, kernel=RBF(0.5))
    fits = [solve(problem, KernelAuto(), tol=1e-9) for problem in (some, direct)]
    np.testing.assert_allclose(fits[0].decisions, fits[1].decisions, atol=1e-5)
    again = solve(direct, BlockSolver(), tol=1e-6, warm=fits[1].alpha)
    assert again.certificate.epochs == 0
    narrow = KernelOneClass(X, 0.2, kernel=RBF(0.5))
    first = solve(narrow, BlockSolver(), tol=1e-8)
    for nu in (0.1, 0.6):
        problem = KernelOneClass(X, nu, kernel=RBF(0.5))
        warm = solve(problem, BlockSolver(), tol=1e-6, warm=first.alpha)
        assert warm.certificate.certified
        check(problem, np.zeros(90), warm, 1e-6)
