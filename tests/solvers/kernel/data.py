"""Small problems, their kernel matrices and their optima."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dualgap.core import StoppedError
from dualgap.kernel import (
    RBF,
    KernelOneClass,
    KernelProblem,
    KernelRegression,
    Laplacian,
    Linear,
    Polynomial,
)

from ... import qp

KERNELS = {
    "linear": Linear(),
    "rbf": RBF(gamma=0.4),
    "poly": Polynomial(degree=3, gamma=0.3, coef0=1.0),
    "square": Polynomial(degree=2, gamma=0.5),
    "laplacian": Laplacian(gamma=0.3),
}


def make(n, d, seed, noise=0.5):
    """Rows of two overlapping classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] * X[:, -1] + X[:, 0] + noise * rng.normal(size=n)
    return X, np.where(score > 0, 1, -1)


def layouts(X):
    """Return the rows in every layout."""
    return {
        "dense-f8": X,
        "dense-f4": X.astype(np.float32),
        "csr-f8": sparse.csr_matrix(X),
        "csr-f4": sparse.csr_matrix(X.astype(np.float32)),
    }


def kernel_matrix(problem):
    """k(x_i, x_j) of the rows of a problem, in float64."""
    gram = getattr(problem.gram, "parent", problem.gram)
    K = gram.kernel.block(gram.X, slice(None), dtype=np.float64)
    columns = problem.gram.columns
    return K if columns is None else K[np.ix_(columns, columns)]


def form(problem):
    """The matrix Q of the quadratic form, without delta, in float64."""
    return problem.y[:, None] * problem.y * (kernel_matrix(problem) + problem.constant)


def optimum(problem):
    """The bracket of P*, by a generic interior-point solver on a factor of Q."""
    values, vectors = np.linalg.eigh(form(problem))
    Z = vectors * np.sqrt(np.maximum(values, 0.0))
    loss = problem.loss
    return qp.optimum(Z, problem.cost, loss.curvature, np.isfinite(loss.slope))


def values(problem, alpha):
    """P and D of alpha, in plain NumPy."""
    Q, cost, delta = form(problem), problem.cost, problem.delta
    margins = Q @ alpha
    P = 0.5 * alpha @ margins + cost @ problem.loss.value(margins)
    return P, alpha.sum() - 0.5 * alpha @ margins - 0.5 * delta @ alpha**2


def look_first(monkeypatch, stopped):
    """Scores look whether they are told to leave, which products of few rows do not."""
    known = KernelProblem.known

    def told(self, alpha, stop=None, near=None):
        if stop is not None and stopped(stop):
            raise StoppedError
        return known(self, alpha, stop, near)

    monkeypatch.setattr(KernelProblem, "known", told)


def resting(kind, rng):
    """A problem most of whose rows are soon at rest."""
    n = 500
    X = rng.standard_normal((n, 3))
    options = {"kernel": RBF(0.2), "cache_size": 0.02}  # which is soon full
    score = X[:, 0] + 0.3 * X[:, 1] ** 2
    if kind == "regression":
        y = np.sin(score)
        return KernelRegression(X, y, 1.0, epsilon=0.6, **options)
    if kind == "one class":
        return KernelOneClass(X, 0.3, **options)
    y = np.where(score + 0.3 * rng.standard_normal(n) > 0, 1, -1)
    weight = rng.uniform(0.5, 2.0, n) * (rng.random(n) < 0.95)
    return KernelProblem(
        X, y, 10.0, loss=kind, sample_weight=weight,
        penalize_intercept=kind != "hinge", **options,
    )  # fmt: skip
