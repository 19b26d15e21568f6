"""Small odd problems and their exact optima, by an interior-point solver.

Nothing here comes from the package under test but the problems themselves. Every
problem is solved in primal form over explicit features:

    min  1/2 ||w||^2 + sum_i c_i (linear xi_i or xi_i^2)   s.t.  xi_i >= loss argument

A kernel problem has the features of the Gram matrix of training and new rows together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualgap.kernel import KernelProblem, KernelRegression, Linear
from dualgap.kernels.functions import RBF
from dualgap.losses import EpsilonInsensitive, SquaredEpsilonInsensitive
from dualgap.problems.binary import BinaryProblem
from dualgap.problems.regression import RegressionProblem

Vector = NDArray[np.float64]

#: Error of decisions beyond which the solver's unpenalised bias is not trusted.
LARGEST = 1e-5

#: Kinds of problems, each with the loss and what is done with the bias.
LINEAR = [
    (loss, bias)
    for loss in ("hinge", "squared_hinge")
    for bias in ("none", "penalised", "free")
] + [(loss, bias) for loss in ("eps", "squared_eps") for bias in ("none", "penalised")]
KERNEL = [("hinge", "free"), ("squared_hinge", "penalised"), ("eps", "free")]


class Exact(NamedTuple):
    """An optimum, the dual variables, and how wrong decisions at unit rows may be."""

    w: Vector
    b: float
    alpha: Vector  # signed for regression
    slack: float
    value: float  # of the objective

    def decisions(self, F: Vector) -> tuple[Vector, Vector]:
        """Decisions at rows of features, and how wrong they may be."""
        values = F @ self.w + self.b
        lengths = np.linalg.norm(F, axis=1)
        return values, self.slack * (lengths + 1e-100) + 1e-6 * (1.0 + np.abs(values))


class Case(NamedTuple):
    """A problem under test, its optimum, and new rows."""

    problem: Any
    X: Vector
    new: Vector
    exact: Exact
    decisions: Vector  # of the optimum at the new rows
    slack: Vector  # how wrong they may be
    own: tuple[Vector, Vector]  # both at the training rows


def case(rng: np.random.Generator, loss: str, bias: str, kernel: bool = False) -> Case:
    """Return a random problem: ties, duplicates, zero rows, weights, shifts."""
    n, d = int(rng.integers(1, 26)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X = np.round(X)
    if rng.random() < 0.3:
        X += rng.normal(size=d) * 5.0
    if rng.random() < 0.3 and n > 2:
        X[: n // 3] = X[n // 3 : 2 * (n // 3)]
    if rng.random() < 0.2:
        X[rng.integers(n)] = 0.0
    X *= 10.0 ** rng.uniform(-1, 1)
    new = X[rng.integers(n, size=4)] + rng.normal(size=(4, d)) * rng.uniform(0, 2)
    if rng.random() < 0.3:
        new[0] = 0.0
    weight = rng.integers(0, 3, size=n).astype(float) if rng.random() < 0.3 else None
    if weight is not None and not weight.any():
        weight[0] = 1.0
    C = 10.0 ** rng.uniform(-2, 1.5)
    cost = C * (np.ones(n) if weight is None else weight)
    regression = loss.endswith("eps")
    y: Vector
    if regression:
        y = X @ rng.normal(size=d) + rng.normal(size=n) * 0.3 + rng.normal() * 3
        epsilon = float(rng.choice([0.0, 0.1, 1.0]))
    else:
        y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0, 1.0, -1.0)
        epsilon = 0.0
        if bias == "free":  # one class alone has no bound on the bias
            used = np.flatnonzero(cost)
            if used.size > 1:
                y[used[0]], y[used[-1]] = 1.0, -1.0
    if kernel:
        form = (
            RBF(gamma=float(rng.uniform(0.1, 2.0))) if rng.random() < 0.7 else Linear()
        )
        problem = _kernel_problem(X, y, C, weight, loss, bias, form, epsilon)
        features = images(form, np.vstack([X, new]))
    else:
        problem = _linear_problem(X, y, C, weight, loss, bias, epsilon)
        features = np.vstack([X, new])
    if bias == "penalised":
        features = np.column_stack([features, np.ones(len(features))])
    free = bias == "free"
    found = optimum(features[:n], y, cost, loss, epsilon, free)
    own, there = (found.decisions(part) for part in (features[:n], features[n:]))
    return Case(problem, X, new, found, *there, own)


def images(form: Any, rows: Vector) -> Vector:
    """Return rows of features whose inner products are the values of a kernel."""
    gram = form.block(rows, slice(None), rows, np.float64)
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _linear_problem(
    X: Vector, y: Vector, C: float, weight: Any, loss: str, bias: str, epsilon: float
) -> Any:
    options = {"sample_weight": weight, "fit_intercept": bias != "none"}
    if loss.endswith("eps"):
        kind = EpsilonInsensitive if loss == "eps" else SquaredEpsilonInsensitive
        return RegressionProblem(X, y, C, loss=kind(epsilon), **options)
    options["penalize_intercept"] = bias != "free"
    return BinaryProblem(X, y, C, loss=loss, **options)


def _kernel_problem(
    X: Vector,
    y: Vector,
    C: float,
    weight: Any,
    loss: str,
    bias: str,
    form: Any,
    epsilon: float,
) -> Any:
    if loss == "eps":
        return KernelRegression(
            X, y, C, kernel=form, epsilon=epsilon, sample_weight=weight
        )
    penalised = bias == "penalised"
    return KernelProblem(
        X, y, C, kernel=form, loss=loss, sample_weight=weight,
        penalize_intercept=penalised,
    )  # fmt: skip


def optimum(
    F: Vector, y: Vector, cost: Vector, loss: str, epsilon: float, free: bool
) -> Exact:
    """Return an optimum over the features F, with an unpenalised bias if `free`."""
    used = cost > 0
    rows = np.column_stack([F, np.ones(len(F))])[used]
    target, c = y[used], cost[used]
    if loss.endswith("eps"):  # xi >= +-(y - f) - epsilon
        signed = np.vstack([rows, -rows])
        least = np.concatenate([target - epsilon, -target - epsilon])
        own = np.vstack([np.eye(len(c))] * 2)
    else:
        signed, least, own = target[:, None] * rows, np.ones(len(c)), np.eye(len(c))
    if not free:
        signed = signed[:, :-1]
    m, (k, d) = len(c), signed.shape
    squared = loss.startswith("squared")
    curve = np.concatenate([np.ones(F.shape[1]), np.zeros(d - F.shape[1])])
    quadratic = np.concatenate([curve, 2.0 * c if squared else np.zeros(m)])
    linear = np.concatenate([np.zeros(d), np.zeros(m) if squared else c])
    A = np.vstack([np.hstack([signed, own]), np.hstack([np.zeros((m, d)), np.eye(m)])])
    x, z = _solved(quadratic, linear, A, np.concatenate([least, np.zeros(m)]))
    z = z[:k]
    w, b = x[: F.shape[1]], float(x[F.shape[1]]) if free else 0.0
    if not free:
        b = 0.0
    short = np.maximum(least - signed @ x[:d], 0.0)
    short = np.maximum.reduce(np.split(short, k // m))
    primal = w @ w / 2 + c @ (short**2 if squared else short)
    z = np.maximum(z, 0.0)
    if not squared:
        z = np.minimum(z, np.tile(c, k // m))
    v = signed[:, : F.shape[1]].T @ z
    folded = z if k == m else z[:m] + z[m:]
    dual = z @ least - v @ v / 2 - (folded**2 / (4 * c)).sum() * squared
    off = abs(float(signed[:, -1] @ z) * b) if free else 0.0
    alpha = np.zeros(len(F))
    alpha[used] = z if k == m else z[:m] - z[m:]
    slack = float(np.sqrt(2 * max(primal - dual + off, 0.0)))
    if free and slack > LARGEST:  # the distance of b is not bounded
        slack = np.inf
    return Exact(w, b, alpha, slack, float(primal))


def crammer_singer(F: Vector, codes: Vector, cost: Vector, classes: int) -> Exact:
    """Return the optimum of Crammer and Singer's problem, w of shape (d, classes)."""
    n, d = F.shape
    rows, right = [], []
    for i in range(n):
        for k in set(range(classes)) - {codes[i]}:  # (w_y - w_k).x + xi >= 1
            row = np.zeros((classes, d))
            row[codes[i]], row[k] = F[i], -F[i]
            rows.append(np.concatenate([row.ravel(), np.arange(n) == i]))
            right.append(1.0)
    signed = np.array(rows)
    quadratic = np.concatenate([np.ones(classes * d), np.zeros(n)])
    linear = np.concatenate([np.zeros(classes * d), cost])
    positive = np.hstack([np.zeros((n, classes * d)), np.eye(n)])
    x, z = _solved(quadratic, linear, np.vstack([signed, positive]), right + [0.0] * n)
    w = x[: classes * d].reshape(classes, d)
    scores = F @ w.T
    own = scores[np.arange(n), codes]
    scores[np.arange(n), codes] = -np.inf
    primal = (w * w).sum() / 2 + cost @ np.maximum(1.0 + scores.max(axis=1) - own, 0.0)
    z = np.maximum(z[: len(rows)], 0.0)
    sums = np.bincount(np.repeat(np.arange(n), classes - 1), z, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        z *= np.repeat(np.where(sums > cost, cost / sums, 1.0), classes - 1)
    v = signed[:, : classes * d].T @ z
    slack = float(np.sqrt(2 * max(primal - (z.sum() - v @ v / 2), 0.0)))
    return Exact(w.T, 0.0, z, slack, float(primal))


def _solved(quadratic: Vector, linear: Vector, A: Vector, b: Any) -> tuple[Any, Any]:
    """Minimise ``1/2 x'diag(quadratic)x + linear'x`` over ``A x >= b``; x and duals."""
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, 100
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    settings.static_regularization_enable = False  # it spoils the last digits
    solution = clarabel.DefaultSolver(
        sparse.diags(quadratic, format="csc"),
        linear,
        sparse.csc_matrix(-A),
        -np.asarray(b),
        [clarabel.NonnegativeConeT(len(b))],
        settings,
    ).solve()
    return np.array(solution.x), np.array(solution.z)


def loose_point(rng: np.random.Generator, given: Case) -> tuple[Vector | None, Vector]:
    """Return a primal and a dual point at a random distance from the optimum.

    The primal point is None for kernels, where the dual point defines it.
    """
    problem, exact = given.problem, given.exact
    spread = 10.0 ** rng.uniform(-6, 0)
    noise = spread * rng.normal(size=problem.n) * (1.0 + np.abs(exact.alpha))
    upper = np.minimum(problem.upper, 1e6)
    lower = np.maximum(np.broadcast_to(problem.lower, problem.n), -1e6)
    alpha = np.clip(exact.alpha + noise, lower, upper)
    if not hasattr(problem, "d"):
        return None, alpha
    w = exact.w + spread * rng.normal(size=len(exact.w)) * (1 + np.abs(exact.w))
    if problem.free_bias:
        w = np.append(w, exact.b + spread * rng.normal())
    return (w if rng.random() < 0.7 else None), alpha
