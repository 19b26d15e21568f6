"""Brute force for bounds about removed rows: random small problems, and refits."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dualgap import SVC, LinearSVC
from dualgap.kernel import RBF, BlockSolver, KernelProblem
from dualgap.problems.binary import BinaryProblem
from dualgap.solvers import solver_for
from dualgap.training import solve

KINDS = ("none", "penalised", "free", "rbf", "rbf free")


def random_problem(rng):
    """Return (rows, labels, weights, C) of an odd small problem of both classes."""
    n, d = int(rng.integers(6, 16)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d)) * rng.choice([1.0, 1.0, 10.0])
    X += rng.choice([0.0, 0.0, 3.0])
    if rng.random() < 0.3:
        X = np.round(X)  # ties
    if rng.random() < 0.3:
        X[1:3] = X[0]  # duplicates
    if rng.random() < 0.2:
        X[-1] = 0.0
    y = np.where(rng.random(n) < rng.choice([0.5, 0.2]), 1, -1)
    y[:4] = [1, 1, -1, -1]  # each class has a row left without any one row
    weight = np.ones(n)
    if rng.random() < 0.3:
        weight[4:] = rng.choice([0.0, 0.5, 3.0], n - 4)
    if rng.random() < 0.2:
        X = X.astype(np.float32)
    return X, y, weight, float(10.0 ** rng.uniform(-2, 1.5))


def problem_of(X, y, weight, C, kind, loss):
    """Return the problem of a kind in KINDS."""
    if kind.startswith("rbf"):
        free = kind.endswith("free")
        loss = "hinge" if free else "squared_hinge"
        return KernelProblem(
            X, y, C, kernel=RBF(gamma=0.3), loss=loss, sample_weight=weight,
            penalize_intercept=not free,
        )  # fmt: skip
    return BinaryProblem(
        X, y, C, loss=loss, sample_weight=weight, fit_intercept=kind != "none",
        penalize_intercept=kind != "free",
    )  # fmt: skip


def fitted(problem, tol=1e-13):
    """Return the solution of a problem to about rounding level."""
    kernel = isinstance(problem, KernelProblem)
    return solve(problem, BlockSolver() if kernel else solver_for(problem), tol=tol)


def refitted(X, y, weight, C, kind, loss, kept, points):
    """Decisions at points by a fit of some rows, and how far the optimum may be off."""
    problem = problem_of(X[kept], y[kept], weight[kept], C, kind, loss)
    found = fitted(problem)
    gap = max(found.certificate.gap, 0.0)
    if kind.startswith("rbf"):
        coef, bias = problem.coef(found.alpha)
        own = problem.gram.kernel.block(
            points, slice(None), np.ascontiguousarray(X[kept]), np.float64
        )
        lengths = np.sqrt(np.ones(len(points)) + problem.constant)
        return own @ coef + bias, np.sqrt(2 * gap) * lengths
    coef, bias = problem.coef(found.w)
    points = points.astype(np.float64)
    lengths = np.sqrt((points**2).sum(axis=1) + (kind == "penalised"))
    return points @ coef + bias, np.sqrt(2 * gap) * lengths


def slack(problem, true, off):
    """Bound how far an interval is from a refit: its error, more for a bias."""
    return off + 1e-7 * (1.0 + np.abs(true)) + (1e-6 if problem.free_bias else 0.0)


def random_model(rng, count):
    """Return rows, labels and a fitted classifier, of a kind that count chooses."""
    X, y, _, C = random_problem(rng)
    X = X.astype(np.float64)
    if count % 8 >= 4:
        y = np.where((y < 0) & (rng.random(len(y)) < 0.5), 0, y)  # three classes
        y[2:5] = [-1, 0, 0]
    models = [
        LinearSVC(C, tol=1e-9, fit_intercept=False),
        LinearSVC(C, tol=1e-9, loss="squared_hinge", class_weight="balanced"),
        LinearSVC(C, tol=1e-9, penalize_intercept=False),
        SVC(C=C, tol=1e-9, gamma=0.3, loss=["hinge", "squared_hinge"][count % 2]),
        LinearSVC(C, tol=1e-9),
        LinearSVC(C, tol=1e-9, multi_class="ovo", class_weight="balanced"),
        LinearSVC(C, tol=1e-9, multi_class="ovo", penalize_intercept=False),
        SVC(C=C, tol=1e-9, gamma=0.3, loss=["hinge", "squared_hinge"][count // 8 % 2]),
    ]
    return X, y, models[count % 8].fit(X, y)


def violations(change, X):
    """Compare a WhatIf with a fit of the changed rows; return violations and checks."""
    lower, upper = change._view._problem_bounds(X)  # votes may jump
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again = change.refit(1e-12)
    if isinstance(again, SVC):
        true = again.set_params(decision_function_shape="ovo").decision_function(X)
    else:
        true = X @ again.coef_.T + again.intercept_
    true = true.reshape(lower.shape)
    lengths = np.sqrt((X**2).sum(axis=1) + 1.0)
    off = np.sqrt(2 * again.certificate_.gap) * lengths + 1e-6 * (1 + abs(true).max())
    off = off[:, None]
    return int(((lower - off > true) | (upper + off < true)).sum()), true.size
