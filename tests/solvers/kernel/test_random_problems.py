"""A thousand odd problems for each loss: the optimum's bracket, KKT, the equality."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from dualgap.kernel import (
    RBF,
    BlockSolver,
    KernelAuto,
    KernelProblem,
    Laplacian,
    Linear,
    Polynomial,
)
from dualgap.training import solve

from ... import qp
from .test_block import reference

TOL = 1e-6


def random_problem(seed, loss):
    """n = 2, d = 1, equal points, one point of a class, weights of 0; any C, gamma."""
    rng = np.random.default_rng(seed)
    n = 2 if rng.random() < 0.1 else int(rng.integers(3, 26))
    X = rng.normal(size=(n, int(rng.integers(1, 5)))) * 10.0 ** rng.uniform(-2, 1)
    shape = rng.random()
    if shape < 0.3:  # duplicated points, of both classes too
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif shape < 0.35:
        X[:] = X[0]
    elif shape < 0.5:
        X = np.round(X)
    y = np.where(rng.random(n) < rng.choice([0.1, 0.5]), 1, -1)
    if rng.random() < 0.15:
        y[:] = 1
    y[0] = -1  # sometimes the only one of its class
    y[-1] = 1
    weight = rng.choice([0.0, 0.3, 1.0, 20.0], n) if rng.random() < 0.4 else np.ones(n)
    weight[0] = max(weight[0], 0.3)
    # So wide that all kernel values are 1, so narrow that all others are 0.
    g = [10.0 ** rng.uniform(-2, 1), 1e-12, 1e12][rng.choice(3, p=[0.8, 0.1, 0.1])]
    kernel = [
        RBF(g), RBF(g), Laplacian(g), Linear(), Polynomial(2, min(g, 10.0), 1.0)
    ][rng.integers(5)]  # fmt: skip
    X = X.astype(rng.choice([np.float32, np.float64]))
    return KernelProblem(
        sparse.csr_matrix(X) if rng.random() < 0.3 else X,
        y,
        10.0 ** rng.uniform(-6, 6),
        kernel=kernel,
        loss=loss,
        sample_weight=weight,
        penalize_intercept=loss != "hinge",
    )


def matrix(problem):
    """The kernel matrix in float64, distances without cancellation."""
    X, kernel = problem.gram.X, problem.gram.kernel
    X = (X.toarray() if sparse.issparse(X) else X).astype(np.float64)
    difference = X[:, None, :] - X[None, :, :]
    if isinstance(kernel, RBF):
        return np.exp(-kernel.gamma * (difference**2).sum(axis=2))
    if isinstance(kernel, Laplacian):
        return np.exp(-kernel.gamma * np.abs(difference).sum(axis=2))
    return kernel.block(X, slice(None), dtype=np.float64)


def squared_optimum(problem, K, alpha):
    """The bracket of P*, by a generic interior-point solver on a factor of Q.

    And what D(alpha) loses in that factor, which is not all of Q: with sum_i alpha_i =
    6e7 its last digits are 10 of 3e7.
    """
    Q = problem.y[:, None] * problem.y * (K + 1.0)
    values, vectors = np.linalg.eigh(Q)
    Z = vectors * np.sqrt(np.maximum(values, 0.0))
    lost = 0.5 * float(alpha @ np.abs(Q - Z @ Z.T) @ alpha)
    return *qp.optimum(Z, problem.cost, problem.loss.curvature, False)[:2], lost


def check_kkt(problem, solution, K):
    """P - D is a sum of one term a row, none of them negative: each is at most the gap.

    Hinge ``c xi - alpha (1 - m)``, squared ``c xi^2 - alpha (1 - m) + alpha^2/(4 c)``.
    """
    alpha, y, cost = solution.alpha, problem.y, problem.cost
    f = K @ (alpha * y) + solution.bias
    margins = y * f
    used = cost > 0
    assert not alpha[~used].any()
    terms = cost * problem.loss.value(margins) - alpha * (1.0 - margins)
    terms[used] += 0.5 * problem.delta[used] * alpha[used] ** 2
    # What rounding leaves of a sum of such terms.
    rounding = 1e-14 * (1.0 + np.abs(K).max() * alpha.sum()) * (alpha + cost).sum()
    gap = solution.certificate.gap
    assert terms.min() >= -rounding
    assert terms.max() <= gap + rounding
    room = solution.certificate.rounding  # P is rounded up, and D down
    assert abs(terms.sum() + room - gap) <= len(y) * rounding


@pytest.mark.cases(1)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("block", range(10))
def test_a_thousand_random_problems(block, loss):
    easy = []
    for seed in range(100 * block, 100 * (block + 1)):
        problem = random_problem(seed, loss)
        K = matrix(problem)
        solver = [KernelAuto(), BlockSolver(), BlockSolver(q=8)][seed % 3]
        solution = solve(problem, solver, tol=TOL, max_iter=100, random_state=seed)
        certificate, alpha = solution.certificate, solution.alpha
        lost = 0.0
        if loss == "hinge":
            lower, upper = reference(K, problem.y.astype(float), problem.cost)
            # Not nearly: alpha is on a grid whose sums are exact.
            assert math.fsum(alpha * problem.y) == 0.0
            assert (alpha <= problem.cost).all()
        else:
            lower, upper, lost = squared_optimum(problem, K, alpha)
        room = 1e-8 * max(upper, 1e-300) + lost
        assert certificate.primal >= lower - room, seed
        assert certificate.dual <= upper + room, seed
        assert (alpha >= 0.0).all()
        check_kkt(problem, solution, K)
        if problem.C <= 100.0:
            easy.append(certificate.certified)
    # Pairs and single rows are slow where a large C meets a kernel of low rank.
    assert sum(easy) >= len(easy) - 2 > 40
