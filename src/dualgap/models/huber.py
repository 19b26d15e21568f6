"""Certificates of scikit-learn's robust regression."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..certificate import Certificate
from ..data.types import MatrixLike
from ..estimators.arguments import check_array
from ..estimators.fitted import targets
from ..estimators.input import ROWS, checked_weights
from ..losses import Vector
from ..problems.huber import HuberProblem
from .single_problems import ProofLimits, TrainedOn

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

#: Most steps of Newton's method for a better lower bound.
_STEPS = 100


def certify_huber(model: BaseEstimator, C: float, on: TrainedOn) -> Certificate:
    """Certify coefficients, intercept and scale together."""
    check_is_fitted(model)
    X, limits = check_array(on.X, **ROWS), on.limits
    coef = np.asarray(model.coef_, np.float64)
    if coef.shape != (X.shape[1],):
        raise ValueError(
            f"model has coefficients of shape {coef.shape}, but X has {X.shape[1]} "
            "features; give the training rows"
        )
    target = targets(on.y, X.shape[0])
    problem = HuberProblem(
        X,
        target,
        C,
        epsilon=model.epsilon,
        sample_weight=checked_weights(on.sample_weight, X),
        fit_intercept=model.fit_intercept,
        n_jobs=effective_n_jobs(limits.n_jobs),
    )
    bias = float(model.intercept_)
    found = problem.certify(coef, bias, float(model.scale_))
    if found.relative_gap > limits.tol:
        w, bias, scale = _minimum(problem, X, target, coef, bias, limits)
        if scale > 0.0:
            found = found.with_dual_of(problem.certify(w, bias, scale))
    return replace(found, tol=math.nan)


def _minimum(
    problem: HuberProblem,
    X: MatrixLike,
    y: Vector,
    w: Vector,
    bias: float,
    limits: ProofLimits,
) -> tuple[Vector, float, float]:
    """Return coefficients, bias and scale near the optimum, by Newton's method.

    The scale is the best one after every step, so P is a function of the others.
    """
    d, free, cost = len(w), problem.free is not None, problem.cost
    rows = sparse.hstack if sparse.issparse(X) else np.hstack
    if free:
        X = rows([X, np.ones((X.shape[0], 1))])
        w = np.append(w, bias)
    X = X.tocsr() if sparse.issparse(X) else X
    slope, penalty = 2.0 * problem.epsilon, np.zeros(len(w))
    penalty[:d] = 1.0

    def outcome(w: Vector) -> tuple[float, float, Vector]:
        residual = y - X @ w
        scale = problem.best_scale(residual)
        u = slope * np.sign(residual)
        if scale > 0.0:
            u = np.clip(2.0 * residual / scale, -slope, slope)
        # With u of the best scale, the scale leaves the objective.
        loss = cost @ (u * residual) - 0.25 * scale * (cost @ (u * u))
        return 0.5 * (w[:d] @ w[:d]) + loss + scale * problem.total, scale, u

    with np.errstate(all="ignore"):
        value, scale, u = outcome(w)
        for _ in range(_STEPS):
            if limits.stop.requested or limits.stop.expired or not scale > 0.0:
                break
            gradient = penalty * w - X.T @ (cost * u)
            inner = np.flatnonzero(np.abs(u) < slope)
            bend = 2.0 * cost[inner] / scale
            step = -_solved(X[inner], bend, 0.5 * u[inner], penalty, gradient)
            falls, t = float(gradient @ step), 1.0
            if not falls < 0.0:
                break
            while t > 2.0**-40 and not (
                (new := outcome(w + t * step))[0] <= value + 1e-4 * t * falls
            ):
                t *= 0.5
            if not new[0] < value:
                break
            w, (value, scale, u) = w + t * step, new
            if -falls <= 1e-3 * limits.tol * value:
                break
    return w[:d], float(w[d]) if free else 0.0, scale


def _solved(
    X: MatrixLike, bend: Vector, z: Vector, penalty: Vector, gradient: Vector
) -> Vector:
    """Solve for a Newton step, with the scale eliminated."""
    weighted = X.multiply(bend[:, None]) if sparse.issparse(X) else X * bend[:, None]
    H = X.T @ weighted
    H = H.toarray() if sparse.issparse(H) else H
    H[np.diag_indices_from(H)] += penalty
    along, across = weighted.T @ z, float(bend @ (z * z))
    if across > 0.0:
        H -= np.outer(along, along) / across
    size = 1.0 / np.sqrt(np.maximum(H.diagonal(), 2.0**-1000))
    H *= size[:, None] * size
    H[np.diag_indices_from(H)] += 1e-12
    try:
        return size * np.linalg.solve(H, size * gradient)
    except np.linalg.LinAlgError:
        return gradient
