"""Bounds of :func:`certify` for regression and one-class models."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.linear_model import SGDOneClassSVM, SGDRegressor
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .. import core
from ..certificate import Certificate
from ..data.types import MatrixLike
from ..estimators import originals as svm
from ..estimators.arguments import check_array
from ..estimators.input import ROWS, checked_weights
from ..estimators.novelty import LinearOneClassSVM, OneClassSVM
from ..estimators.regression import SVR, LinearSVR
from ..kernel import BlockSolver, Gram, KernelOneClass, KernelRegression, Linear
from ..losses import (
    RESIDUAL_LOSSES,
    EpsilonInsensitive,
    ResidualLoss,
    Vector,
    get_residual_loss,
)
from ..problems.base import Claim
from ..problems.kernel_boxes import BoxProblem
from ..problems.one_class import OneClassProblem
from ..problems.regression import FreeBiasRegression, RegressionProblem
from ..solvers import get_solver, solver_for
from ..training import solve
from .agreement import support_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


__all__ = [
    "KERNELS_OF_ONE",
    "LINEAR_OF_ONE",
    "ProofLimits",
    "certify_kernel",
    "single_terms",
]

LINEAR_OF_ONE = (
    *(svm.LinearSVR, SGDRegressor, SGDOneClassSVM),
    *(LinearSVR, LinearOneClassSVM),
)
KERNELS_OF_ONE = (svm.SVR, svm.OneClassSVM, SVR, OneClassSVM)

#: An unpenalised bias is approximated by a constant feature that is this many times as
#: long as a row. The error is about the square of the inverse.
_LONG = 1e4


class ProofLimits(NamedTuple):
    """Accuracy, seed, stop request and number of threads of a fit."""

    tol: float
    seed: int
    stop: core.Stop
    n_jobs: int | None


@dataclass(frozen=True)
class Single:
    """Linear regression or one-class model, and the problem it was trained on."""

    coef: Vector
    bias: float  # -rho for one class
    C: float | None = None
    loss: ResidualLoss | None = None  # None: one class
    nu: float | None = None
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    penalize_intercept: bool = False
    scale: float = 1.0  # factor that brings a one-class model to LIBSVM's scale

    def certify(
        self,
        X: MatrixLike,
        y: ArrayLike | None,
        C: float | None,
        sample_weight: ArrayLike | None,
        limits: ProofLimits,
    ) -> Certificate:
        """Return the certificate, with a dual value within `tol` of the optimum."""
        X = check_array(X, **ROWS)
        if self.coef.shape != (X.shape[1],):
            raise ValueError(
                f"model has coefficients of shape {self.coef.shape}, but X has "
                f"{X.shape[1]} features; give the training rows"
            )
        weight = checked_weights(sample_weight, X)
        if self.loss is None:
            found = self._one_class(X, weight, limits)
        else:
            y = targets(y, X.shape[0])
            if self.penalize_intercept or not self.fit_intercept:
                problem, w = self.regression(X, y, C, weight, limits.n_jobs)
                solver = solver_for(problem)
                found = sharpened(problem.certify(w), problem, solver, limits)
            else:
                found = _free(self, self.loss, X, y, C, weight, limits)
        return replace(found, tol=math.nan)

    def regression(
        self,
        X: MatrixLike,
        y: ArrayLike,
        C: float | None,
        weight: Vector | None,
        n_jobs: int | None,
    ) -> tuple[RegressionProblem, Vector]:
        """Return the regression problem with a penalised bias, and the model's w."""
        problem = RegressionProblem(
            X,
            targets(y, X.shape[0]),
            C,
            loss=self.loss or "epsilon_insensitive",
            sample_weight=weight,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            n_jobs=effective_n_jobs(n_jobs),
        )
        return problem, problem.point(self.coef, self.bias)

    def _one_class(
        self, X: MatrixLike, weight: Vector | None, limits: ProofLimits
    ) -> Certificate:
        problem = OneClassProblem(
            X,
            self.nu or 0.5,
            sample_weight=weight,
            n_jobs=effective_n_jobs(limits.n_jobs),
        )
        w, bias = self.scale * self.coef, self.scale * self.bias
        proof = problem.prove(Claim(w, bias=bias)).certificate
        return sharpened(proof, problem, solver_for(problem), limits)


def _free(
    terms: Single,
    loss: ResidualLoss,
    X: MatrixLike,
    y: Vector,
    C: float | None,
    weight: Vector | None,
    limits: ProofLimits,
) -> Certificate:
    """Certify a model with an unpenalised bias, for which sum_i a_i = 0.

    The first dual point comes from the model and is made feasible. If it leaves a gap
    above `tol`, a fit gives a better one: Newton with a long constant feature or, for
    the loss without curvature, the block solver with the linear kernel.
    """
    same = {
        "loss": loss,
        "sample_weight": weight,
        "n_jobs": effective_n_jobs(limits.n_jobs),
    }
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
            epsilon=loss.epsilon,
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


def single_terms(
    model: BaseEstimator, n: int, sample_weight: ArrayLike | None
) -> Single:
    """Return coefficients and problem of an estimator of LINEAR_OF_ONE."""
    check_is_fitted(model)
    name = type(model).__name__
    if getattr(model, "penalty", "l2") != "l2":
        raise ValueError(
            f"{name}(penalty={model.penalty!r}) cannot be certified; train with "
            "penalty='l2'"
        )
    coef = np.asarray(model.coef_, np.float64).ravel()
    if isinstance(model, LinearOneClassSVM):
        return Single(coef, -float(model.offset_[0]), nu=model.nu)
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
        return Single(
            coef, -float(model.offset_[0]), nu=float(share), scale=model.nu * n
        )
    if model.loss not in RESIDUAL_LOSSES:
        known = " or ".join(map(repr, RESIDUAL_LOSSES))
        raise ValueError(
            f"{name}(loss={model.loss!r}) is not a support vector machine; train with "
            f"loss={known}"
        )
    stochastic = isinstance(model, SGDRegressor)
    return Single(
        coef,
        float(np.ravel(model.intercept_)[0]) if model.fit_intercept else 0.0,
        C=1.0 / (model.alpha * n) if stochastic else model.C,
        loss=RESIDUAL_LOSSES[model.loss](model.epsilon),
        fit_intercept=bool(model.fit_intercept),
        intercept_scaling=1.0 if stochastic else float(model.intercept_scaling),
        penalize_intercept=not stochastic,
    )


def coefficient_terms(
    coef: Vector,
    bias: float | None,
    loss: str | ResidualLoss | None,
    epsilon: float | None,
    nu: float | None,
    penalize_intercept: bool | None,
) -> Single:
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
        return Single(coef, bias, nu=nu)
    record = get_residual_loss(loss or "epsilon_insensitive")
    if isinstance(loss, ResidualLoss):
        if epsilon is not None and epsilon != loss.epsilon:
            raise ValueError(
                f"epsilon={epsilon!r} contradicts loss={loss!r}; leave epsilon out"
            )
    else:
        record = type(record)(0.0 if epsilon is None else epsilon)
    return Single(
        coef,
        bias or 0.0,
        loss=record,
        fit_intercept=bias is not None,
        penalize_intercept=bool(penalize_intercept),
    )


def certify_kernel(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None,
    kernel: Any,
    sample_weight: ArrayLike | None,
    limits: ProofLimits,
) -> Certificate:
    """Certify a kernel model from its dual variables, or a fit that starts there."""
    weight = checked_weights(sample_weight, X)
    gram = Gram(X, kernel, getattr(model, "cache_size", 200))
    coef = np.zeros(X.shape[0])
    own = model.dual_coef_
    support = support_of(model, sample_weight)
    coef[support] = np.ravel(own.toarray() if hasattr(own, "toarray") else own)
    one_class = isinstance(model, (svm.OneClassSVM, OneClassSVM))
    values, rows = None if one_class else targets(y, X.shape[0]), None
    if weight is not None and (used := (weight > 0.0) | (coef != 0.0)).any():
        # Other rows may make the matrix indefinite. Fits leave them out.
        rows = np.flatnonzero(used)
        weight, coef = weight[rows], coef[rows]
        values = None if values is None else values[rows]
    problem: BoxProblem
    if values is None:
        problem = KernelOneClass(gram, model.nu, sample_weight=weight, rows=rows)
    else:
        problem = KernelRegression(
            gram,
            values,
            model.C,
            epsilon=EpsilonInsensitive(model.epsilon).epsilon,
            sample_weight=weight,
            rows=rows,
        )
    alpha = np.clip(coef, problem.lower, problem.upper)
    proof = problem.certify(alpha)
    # P is computed from the unclipped coefficients, which rounding may put outside
    # the box.
    own = problem.certify_model(coef, float(model.intercept_[0]))
    own = own.with_dual_of(proof)
    return replace(sharpened(own, problem, BlockSolver(), limits, alpha), tol=math.nan)


def targets(y: ArrayLike | None, n: int) -> Vector:
    """Return the targets as float64, shape (n,).

    Raises
    ------
    ValueError
        If y is missing, not numeric, or has another length.
    """
    if y is None:
        raise ValueError("y is missing; give the targets of the training rows")
    values = column_or_1d(y, warn=True)
    if len(values) != n:
        raise ValueError(
            f"y has {len(values)} targets, but X has {n} rows; give one target per row"
        )
    try:
        found: Vector = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"y has dtype {values.dtype}; the targets must be numbers of float64"
        ) from None
    return found


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
