"""Bounds of :func:`certify` for regression and one-class models."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.linear_model import SGDOneClassSVM, SGDRegressor
from sklearn.utils.validation import check_is_fitted

from .. import core
from ..certificate import Certificate
from ..data.types import MatrixLike
from ..estimators import originals as svm
from ..estimators.arguments import check_array
from ..estimators.fitted import SingleTerms, targets, terms_of_regression
from ..estimators.input import ROWS, checked_weights
from ..estimators.novelty import LinearOneClassSVM, OneClassSVM
from ..estimators.nu import NuSVR
from ..estimators.regression import SVR, LinearSVR
from ..kernel import BlockSolver, KernelRegression, Linear
from ..losses import RESIDUAL_LOSSES, Pinball, ResidualLoss, Vector, get_residual_loss
from ..problems.base import Claim
from ..problems.one_class import OneClassProblem
from ..problems.regression import FreeBiasRegression, RegressionProblem
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

#: An unpenalised bias is approximated by a constant feature that is this many times as
#: long as a row. The error is about the square of the inverse.
_LONG = 1e4


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
    feature = _LONG * math.sqrt(float(free.centred.q.mean())) or 1.0
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
            "loss='quantile' needs its quantile; give loss=Pinball(quantile=...) of "
            "dualgap.losses"
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
