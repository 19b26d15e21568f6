"""Bounds of :func:`certify` for regression, one-class and kernel models."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import (
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDOneClassSVM,
    SGDRegressor,
)
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from .. import core
from ..certificate import Certificate
from ..data.types import MatrixLike
from ..estimators import SVR, LinearOneClassSVM, LinearSVR, NuSVR, OneClassSVM
from ..estimators import originals as svm
from ..estimators.fitted import (
    FittedProblem,
    SingleTerms,
    labels_of,
    targets,
    terms_of_regression,
)
from ..estimators.input import ROWS, check_array, checked_weights, label_table
from ..kernel import (
    BlockSolver,
    KernelPegasos,
    KernelProblem,
    KernelRegression,
    KernelSolver,
    Linear,
)
from ..losses import (
    RESIDUAL_LOSSES,
    Pinball,
    ResidualLoss,
    SquaredEpsilonInsensitive,
    Vector,
    get_residual_loss,
)
from ..problems.base import Claim
from ..problems.one_class import OneClassProblem
from ..problems.reductions import certificate_of
from ..problems.regression import FreeBiasRegression, HuberProblem, RegressionProblem
from ..solvers import get_solver, solver_for
from ..training import solve

LINEAR_OF_ONE = (
    *(svm.LinearSVR, SGDRegressor, SGDOneClassSVM),
    *(LinearSVR, LinearOneClassSVM),
)
KERNELS_OF_ONE = (
    *(svm.SVR, svm.NuSVR, svm.OneClassSVM),
    *(SVR, NuSVR, OneClassSVM),
)


@dataclass(frozen=True)
class BoundSettings:
    """Tuning constants of lower bounds."""

    #: An unpenalised bias is approximated by a constant feature that is this many times
    #: as long as a row. The error is about the square of the inverse.
    long: float = 1e4
    #: Most steps of Newton's method.
    steps: int = 100


_SETTINGS = BoundSettings()


class ProofLimits(NamedTuple):
    """Accuracy, seed, stop request and number of threads of a fit."""

    tol: float
    seed: int
    stop: core.Stop
    n_jobs: int | None


class TrainedOn(NamedTuple):
    """Rows that a model was trained on, and the limits of a proof."""

    X: MatrixLike
    y: ArrayLike | None
    #: Weight of the loss.
    C: float | None
    sample_weight: ArrayLike | None
    limits: ProofLimits


def certify_single(terms: SingleTerms, on: TrainedOn) -> Certificate:
    """Return the certificate, with a dual value within `tol` of the optimum."""
    X, limits = check_array(on.X, **ROWS), on.limits
    if terms.coef.shape != (X.shape[1],):
        raise ValueError(
            f"model has coefficients of shape {terms.coef.shape}, but X has "
            f"{X.shape[1]} features; give the training rows"
        )
    weight = checked_weights(on.sample_weight, X)
    on = on._replace(X=X, sample_weight=weight)
    if terms.loss is None:
        found = _one_class(terms, on)
    elif terms.penalize_intercept or not terms.fit_intercept:
        one = terms.regression(X, on.y, on.C, weight, limits.n_jobs)
        solver = solver_for(one.problem)
        found = sharpened(one.certificate(), one.problem, solver, limits)
    else:
        found = _free(terms, terms.loss, targets(on.y, X.shape[0]), on)
    return replace(found, tol=math.nan)


def _one_class(terms: SingleTerms, on: TrainedOn) -> Certificate:
    problem = OneClassProblem(
        on.X,
        terms.nu or 0.5,
        sample_weight=on.sample_weight,
        n_jobs=effective_n_jobs(on.limits.n_jobs),
    )
    w, bias = terms.scale * terms.coef, terms.scale * terms.bias
    proof = problem.prove(Claim(w, bias=bias)).certificate
    return sharpened(proof, problem, solver_for(problem), on.limits)


def _free(
    terms: SingleTerms, loss: ResidualLoss, y: Vector, on: TrainedOn
) -> Certificate:
    """Certify a model with an unpenalised bias, for which sum_i a_i = 0.

    The first dual point comes from the model and is made feasible. If it leaves a gap
    above `tol`, a fit gives a better one: Newton with a long constant feature or, for
    the loss without curvature, the block solver with the linear kernel.
    """
    X, _, C, weight, limits = on
    threads = effective_n_jobs(limits.n_jobs)
    same = {"loss": loss, "sample_weight": weight, "n_jobs": threads}
    free = FreeBiasRegression(X, y, C, **same)
    found = free.certify(terms.coef, terms.bias)
    if found.relative_gap <= limits.tol:
        return found
    if loss.curvature == 0.0:
        problem = KernelRegression(
            X,
            y,
            C,
            kernel=Linear(),
            loss=loss,
            sample_weight=weight,
        )
        return sharpened(found, problem, BlockSolver(), limits)
    feature = _SETTINGS.long * math.sqrt(float(free.centred.q.mean())) or 1.0
    target = free.centred.target
    long = RegressionProblem(
        X, target, C, fit_intercept=True, intercept_scaling=feature, **same
    )
    fit = solve(
        long,
        get_solver("newton", "regression"),
        tol=0.1 * limits.tol,
        random_state=limits.seed,
        stop=limits.stop,
    )
    return found.with_dual_of(free.certify_dual(fit.alpha, found.primal))


def squared_norm(model: BaseEstimator) -> str:
    """Return the name of a fitted model, or raise an error for another penalty."""
    check_is_fitted(model)
    name = type(model).__name__
    if getattr(model, "penalty", "l2") != "l2":
        raise ValueError(
            f"penalty={model.penalty!r} is not supported here; train {name} with "
            "penalty='l2'"
        )
    return name


def single_terms(
    model: BaseEstimator, n: int, sample_weight: ArrayLike | None
) -> list[SingleTerms]:
    """Return coefficients and problems of an estimator of LINEAR_OF_ONE."""
    name = squared_norm(model)
    coef = np.asarray(model.coef_, np.float64).ravel()
    if isinstance(model, LinearOneClassSVM):
        return [SingleTerms(coef, -float(model.offset_[0]), nu=model.nu)]
    if isinstance(model, SGDOneClassSVM):
        if not model.fit_intercept:
            raise ValueError(
                f"{name}(fit_intercept=False) fixes the offset at 1; train with "
                "fit_intercept=True"
            )
        # Its objective nu/2 ||w||^2 - nu rho + 1/n sum_i s_i max(0, rho - w.x_i), times
        # nu n^2, is LIBSVM's objective for nu n w and nu n rho.
        share = model.nu * n / (n if sample_weight is None else np.sum(sample_weight))
        if share > 1.0:
            raise ValueError(
                f"{name}: nu n = {model.nu * n:g} exceeds the sum of the sample "
                "weights, so its problem has no solution; train with a smaller nu"
            )
        offset, scale = -float(model.offset_[0]), model.nu * n
        return [SingleTerms(coef, offset, nu=float(share), scale=scale)]
    if model.loss not in RESIDUAL_LOSSES:
        known = " or ".join(map(repr, RESIDUAL_LOSSES))
        raise ValueError(
            f"{name}(loss={model.loss!r}) is not a support vector machine; train with "
            f"loss={known}"
        )
    terms = terms_of_regression(model)
    if isinstance(model, SGDRegressor):
        C = 1.0 / (model.alpha * n)
        free = {"C": C, "intercept_scaling": 1.0, "penalize_intercept": False}
        terms = [replace(one, **free) for one in terms]
    return terms


def coefficient_terms(
    coef: Vector,
    bias: float | None,
    loss: str | ResidualLoss | None,
    epsilon: float | None,
    nu: float | None,
    penalize_intercept: bool | None,
) -> SingleTerms:
    """Return given coefficients together with the problem that the caller describes."""
    if nu is not None:
        for name, value in (
            ("loss", loss),
            ("epsilon", epsilon),
            ("penalize_intercept", penalize_intercept),
        ):
            if value is not None:
                raise ValueError(
                    f"{name}={value!r} does not apply to a one-class SVM (nu={nu!r}); "
                    "leave it out"
                )
        if bias is None:
            raise ValueError(
                f"nu={nu!r} needs the offset rho of the plane; give intercept=-rho"
            )
        return SingleTerms(coef, bias, nu=nu)
    record = get_residual_loss(loss or "epsilon_insensitive")
    if isinstance(loss, ResidualLoss):
        if epsilon is not None and epsilon != loss.epsilon:
            raise ValueError(
                f"epsilon={epsilon!r} contradicts loss={loss!r}; leave epsilon out"
            )
    elif isinstance(record, Pinball):
        raise ValueError(
            "loss='quantile' needs its quantile; for example, give quantile=0.9"
        )
    else:
        record = type(record)(0.0 if epsilon is None else epsilon)
    return SingleTerms(
        coef,
        bias or 0.0,
        loss=record,
        fit_intercept=bias is not None,
        penalize_intercept=bool(penalize_intercept),
    )


def sharpened(
    proof: Certificate,
    problem: Any,
    solver: Any,
    limits: ProofLimits,
    warm: Vector | None = None,
) -> Certificate:
    """Improve the dual bound by a fit if the gap exceeds `tol`; keep the primal."""
    if proof.relative_gap <= limits.tol:
        return proof
    fit = solve(
        problem,
        solver,
        tol=limits.tol,
        random_state=limits.seed,
        warm=warm,
        stop=limits.stop,
    ).certificate
    bounds = proof.with_dual_of(fit).bounds
    return replace(fit, bounds=bounds, status=None)


def certify_kernel(
    model: BaseEstimator, problems: Iterable[FittedProblem], limits: ProofLimits
) -> Certificate:
    """Certify a kernel model from its dual variables, or a fit that starts there."""
    parts = []
    for one in problems:
        alpha = one.alpha
        proof = one.certificate().with_dual_of(one.problem.certify(alpha))
        solver = _solver_of(one.problem)
        if solver is not None:
            warm = alpha if solver.dual else None
            proof = sharpened(proof, one.problem, solver, limits, warm)
        parts.append(replace(proof, tol=math.nan))
    return certificate_of(model, parts)


def _solver_of(problem: KernelProblem) -> KernelSolver | None:
    """Return a solver that can train a kernel problem; None if there is none."""
    for solver in (BlockSolver(), KernelPegasos()):
        with contextlib.suppress(ValueError):
            solver.check(problem)
            return solver
    return None


RIDGE = (Ridge, RidgeCV, RidgeClassifier, RidgeClassifierCV)
_CLASSIFIERS = (RidgeClassifier, RidgeClassifierCV)


class RidgeOutput(NamedTuple):
    """One column of targets: a regression with the squared loss."""

    name: str
    terms: SingleTerms
    y: Vector


def weight_of_loss(model: BaseEstimator, alpha: float) -> float:
    """Return C, by which the loss counts beside ``1/2 ||w||^2``: ``1/(2 alpha)``."""
    C = 0.5 / float(alpha) if alpha > 0.0 else np.inf
    if not 0.0 < C < np.inf:
        raise ValueError(
            f"{type(model).__name__}(alpha={float(alpha)!r}) has no finite C = "
            "1/(2 alpha), and so no certificate; train with a larger alpha"
        )
    return C


def ridge_outputs(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> tuple[list[RidgeOutput], Vector | None]:
    """Return the columns of a model of RIDGE, and the weights of its rows."""
    check_is_fitted(model)
    name, n = type(model).__name__, np.shape(X)[0]
    if getattr(model, "positive", False):
        raise ValueError(
            f"{name}(positive=True) has constraints, so its objective has no "
            "certificate here; train with positive=False"
        )
    weight = checked_weights(sample_weight, X)
    columns = list(_columns(model, y, n))
    if (class_weight := getattr(model, "class_weight", None)) is not None:
        factor = compute_sample_weight(class_weight, y)
        weight = factor if weight is None else weight * factor
    coef = np.atleast_2d(np.asarray(model.coef_, np.float64))
    if len(coef) != len(columns):
        raise ValueError(
            f"y has {len(columns)} columns of targets, but the model was trained with "
            f"{len(coef)}; give the targets of the training rows"
        )
    bias = np.broadcast_to(np.asarray(model.intercept_, np.float64), len(coef))
    alpha = model.alpha_ if hasattr(model, "alpha_") else model.alpha
    alpha = np.broadcast_to(alpha, len(coef))
    outputs = [
        RidgeOutput(
            label,
            SingleTerms(
                coef[k],
                float(bias[k]),
                C=weight_of_loss(model, alpha[k]),
                loss=SquaredEpsilonInsensitive(0.0),
                fit_intercept=bool(model.fit_intercept),
            ),
            column,
        )
        for k, (label, column) in enumerate(columns)
    ]
    return outputs, weight


def _columns(
    model: BaseEstimator, y: ArrayLike | None, n: int
) -> Iterator[tuple[str, Vector]]:
    """Yield the names and targets of the columns; of classes they are -1 and 1."""
    if y is None:
        raise ValueError("y is missing; give the targets of the training rows")
    shape = np.shape(y)
    several = len(shape) == 2 and shape[1] > 1
    if not isinstance(model, _CLASSIFIERS):
        columns = np.asarray(y).T if several else [np.asarray(y)]
        for k, column in enumerate(columns):
            yield (f"output {k}" if several else "", targets(column, n))
    elif several:
        for k, column in enumerate(label_table(y).toarray().T):
            yield f"class {k}", targets(np.where(column, 1.0, -1.0), n)
    else:
        classes, codes = labels_of(y, n, model.classes_)
        one = len(classes) <= 2  # a class on its own is the negative one
        for k in [1] if one else range(len(classes)):
            name = "" if one else f"class {classes[k]}"
            yield name, np.where(codes == k, 1.0, -1.0)


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
        for _ in range(_SETTINGS.steps):
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
