"""Certificates are true against a generic solver: P and D of the very points, P*."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dualgap.kernel import (
    RBF,
    BlockSolver,
    KernelAuto,
    KernelOneClass,
    KernelRegression,
    Laplacian,
    Linear,
    Polynomial,
)
from dualgap.losses import EpsilonInsensitive, Pinball, SquaredEpsilonInsensitive
from dualgap.problems import OneClassProblem, RegressionProblem
from dualgap.solvers.newton import ResidualNewton
from dualgap.solvers.regression import RegressionDCD
from dualgap.solvers.regression_interior import RegressionInterior
from dualgap.solvers.smoothing_regression import SmoothingRegression
from dualgap.training import solve

from .. import qp
from ..solvers.data import LAYOUTS, close, outliers
from ..solvers.test_regression import PLANES

KERNELS = [RBF(gamma=0.5), Laplacian(gamma=0.3), Polynomial(2, 0.5, 1.0), Linear()]


def lost(loss: Any, r: Any) -> Any:
    """Return the losses of residuals, by the definition."""
    if isinstance(loss, Pinball):
        return np.maximum(loss.quantile * r, (loss.quantile - 1.0) * r)
    power = 2 if isinstance(loss, SquaredEpsilonInsensitive) else 1
    return np.maximum(np.abs(r) - loss.epsilon, 0.0) ** power


def box(K: Any, y: Any, cost: Any, loss: Any, total: float | None = None) -> qp.Box:
    """Return the dual of a regression, by the definition of its loss."""
    if isinstance(loss, Pinball):
        sides = -(1.0 - loss.quantile) * cost, loss.quantile * cost
        return qp.Box(K, y, *sides, total=total)
    if isinstance(loss, SquaredEpsilonInsensitive):
        used, delta = np.where(cost > 0.0, np.inf, 0.0), np.zeros(len(cost))
        delta[cost > 0.0] = 0.5 / cost[cost > 0.0]
        return qp.Box(K, y, -used, used, loss.epsilon, delta)
    return qp.Box(K, y, -cost, cost, loss.epsilon, total=total)


ABSOLUTE = [EpsilonInsensitive(epsilon) for epsilon in (0.0, 0.2, 5.0, 1e3)]
SQUARED = [SquaredEpsilonInsensitive(loss.epsilon) for loss in ABSOLUTE]
PINBALL = [Pinball(q) for q in (1e-3, 0.1, 0.5, 0.8)]
#: Solvers of linear regression, their losses and their values of C.
LINEAR: list[tuple[Any, list[Any], list[float]]] = [
    (RegressionDCD(), ABSOLUTE + SQUARED + PINBALL, [1e-3, 0.1, 3.0]),
    (RegressionInterior(), ABSOLUTE + PINBALL, [1e-3, 0.1, 3.0, 1e3]),
    (SmoothingRegression(), ABSOLUTE, [1e-3, 0.1, 3.0, 1e3]),
    (ResidualNewton("factor"), SQUARED, [1e-3, 1.0, 1e6]),
    (ResidualNewton("gradients"), SQUARED, [1e-3, 1.0, 1e6]),
]


@pytest.mark.cases(25)
@pytest.mark.parametrize("constant", [0.0, 0.7])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("solver", "loss", "C"),
    [(s, loss, C) for s, losses, Cs in LINEAR for loss in losses for C in Cs],
    ids=repr,
)
def test_linear_regression(
    solver: Any, loss: Any, C: float, layout: str, constant: float
) -> None:
    for seed, n in enumerate((9, 40, 70)):
        X, y, weight = outliers(np.random.default_rng(seed), n, hollow=seed == 1)
        X = LAYOUTS[layout](X)
        problem = RegressionProblem(
            X, y, C, loss=loss, sample_weight=weight, fit_intercept=constant > 0.0,
            intercept_scaling=constant or 1.0,
        )  # fmt: skip
        tol = 1e-8 if solver.name == "newton" else 1e-5
        solution = solve(problem, solver, tol=tol, max_iter=100_000)
        X = (X.toarray() if sparse.issparse(X) else X).astype(float)
        X = np.column_stack([X, np.full(n, constant)]) if constant else X
        w, v = solution.w, X.T @ solution.alpha
        if loss.epsilon == 1e3:  # all targets lie inside the tube
            assert not w.any()
        # w is w(alpha), or as near as the gap says.
        apart = (w - v) @ (w - v)
        certificate, alpha = solution.certificate, solution.alpha
        assert apart <= 2.0 * certificate.gap + 1e-20 + 1e-26 * C * C
        if solver.name in ("dcd", "interior-point"):
            close(w, v, 1e-7 if isinstance(loss, Pinball) else 1e-10)
        if solver.name != "dcd":
            assert certificate.epochs < (40 if constant else 200)
        P = 0.5 * w @ w + problem.cost @ lost(loss, y - X @ w)
        near = 1e-12 if solver.name == "dcd" else 1e-10
        assert certificate.primal == pytest.approx(P, rel=near, abs=1e-15)
        # Through w(alpha): in a'Ka large dual variables cancel.
        form = box(X @ X.T, y, problem.cost, loss)
        D = y @ alpha - form.epsilon * np.abs(alpha).sum() - 0.5 * v @ v
        D -= 0.5 * (form.delta * alpha) @ alpha
        assert D * (1 - 1e-9) - 1e-13 <= certificate.dual <= D * (1 + 1e-13) + 1e-13
        qp.check(problem, solution, form, X @ w, w @ w, tol)


@pytest.mark.cases(9)
@pytest.mark.parametrize("solver", PLANES)
@pytest.mark.parametrize("nu", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_one_class(solver: Any, nu: float, weighted: bool) -> None:
    for seed, n in enumerate((9, 40, 70)):
        X, _, weight = outliers(np.random.default_rng(seed), n)
        X, weight = X + 0.5, weight if weighted else np.ones(n)
        problem = OneClassProblem(X, nu, sample_weight=weight)
        solution = solve(problem, solver, tol=1e-7)
        certificate, alpha, rho = solution.certificate, solution.alpha, -solution.bias
        w, v, total = solution.w, X.T @ alpha, nu * weight.sum()
        assert math.fsum(alpha) == pytest.approx(total, rel=1e-14)
        P = 0.5 * w @ w - total * rho + weight @ np.maximum(rho - X @ w, 0.0)
        assert certificate.primal == pytest.approx(P, rel=1e-12)
        assert certificate.dual == pytest.approx(-0.5 * v @ v, rel=1e-12, abs=1e-20)
        if solver.name == "pairs":
            np.testing.assert_allclose(w, v, rtol=1e-10, atol=1e-13 * total)
        assert (w - v) @ (w - v) <= 2.0 * certificate.gap + 1e-20 * total**2
        form = qp.Box(X @ X.T, np.zeros(n), 0 * weight, weight, total=total)
        qp.check(problem, solution, form, X @ w, w @ w, 1e-7)


#: Kinds of kernel problems with a free bias.
KINDS: dict[str, Callable[..., Any]] = {
    **{f"epsilon={e}": lambda X, y, C, e=e, **o: KernelRegression(
        X, y, C, epsilon=e, **o) for e in (0.0, 0.1, 1.0)},
    **{f"quantile={loss.quantile}": lambda X, y, C, loss=loss, **o: KernelRegression(
        X, y, C, loss=loss, **o) for loss in PINBALL},
    **{f"nu={nu}": lambda X, y, C, nu=nu, **o: KernelOneClass(X, nu, **o)
       for nu in (0.05, 0.5, 1.0)},
}  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize("solver", [BlockSolver(), KernelAuto()])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("kind", KINDS)
def test_kernel_problems_with_a_free_bias(kind: str, kernel: Any, solver: Any) -> None:
    rng, plane = np.random.default_rng(3), kind.startswith("nu")
    for _ in range(8):
        n, tol = int(rng.integers(4, 60)), float(10.0 ** rng.uniform(-6, -1))
        X, y, weight = outliers(rng, n, int(rng.integers(1, 6)))
        if plane and kernel.name == "linear":  # there is a plane, and P* is not 0
            X = X + 2.0
        C = float(10.0 ** rng.uniform(-3, 3))
        problem = KINDS[kind](X, y + 10.0, C, kernel=kernel, sample_weight=weight)
        solution = solve(problem, solver, tol=tol)
        K, alpha = kernel.block(X, slice(0, n), dtype=np.float64), solution.alpha
        if plane:
            total = float(kind[3:]) * weight.sum()
            form = qp.Box(K, np.zeros(n), 0.0 * weight, weight, total=total)
            assert solution.certificate.dual <= 1e-12 * problem.floor
        else:
            form = box(K, y + 10.0, C * weight, problem.loss, 0.0)
        rounding = qp.check(problem, solution, form, K @ alpha, alpha @ K @ alpha, tol)
        # No breakpoint is a better bias.
        best = form.primal(alpha, form.best_bias(alpha))
        assert best >= form.primal(alpha, solution.bias) - rounding
