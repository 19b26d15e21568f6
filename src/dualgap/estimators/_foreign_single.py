"""The bound of :func:`certify` for regression and one class: one problem a model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn import svm
from sklearn.linear_model import SGDOneClassSVM, SGDRegressor
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from ..certificate import Certificate
from ..kernel import BlockSolver, Gram, KernelOneClass, KernelRegression, Linear
from ..kernel.regression import BoxProblem
from ..loop import solve
from ..losses import (
    RESIDUAL_LOSSES,
    EpsilonInsensitive,
    ResidualLoss,
    Vector,
    get_residual_loss,
)
from ..regression import FreeBiasRegression, OneClassProblem, RegressionProblem
from ..solvers.newton import regression_solver
from ..solvers.regression import PairDescent
from ._single import checked_weights
from .kernel_regression import SVR, OneClassSVM
from .linear_regression import LinearOneClassSVM, LinearSVR

__all__ = [
    "KERNELS_OF_ONE",
    "LINEAR_OF_ONE",
    "Limits",
    "certify_kernel",
    "single_terms",
]

LINEAR_OF_ONE = (
    *(svm.LinearSVR, SGDRegressor, SGDOneClassSVM),
    *(LinearSVR, LinearOneClassSVM),
)
KERNELS_OF_ONE = (svm.SVR, svm.OneClassSVM, SVR, OneClassSVM)

# A bias that is not penalised, as that of a constant feature so many times as long as
# a row: what this costs is the square of its inverse.
_LONG = 1e4


class Limits(NamedTuple):
    """How near, from what seed, until when, on how many threads."""

    tol: float
    seed: int
    stop: Any
    n_jobs: int | None


@dataclass(frozen=True)
class Single:
    """A linear model of one problem, and what it was trained to minimise."""

    coef: Vector
    bias: float  # of one class -rho
    C: float | None = None
    loss: ResidualLoss | None = None  # None: one class
    nu: float | None = None
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    penalize_intercept: bool = False
    scale: float = 1.0  # one class: to the scale of LIBSVM

    def certify(
        self,
        X: Any,
        y: ArrayLike | None,
        C: float | None,
        sample_weight: ArrayLike | None,
        limits: Limits,
    ) -> Certificate:
        """The certificate; the dual value is brought within `tol` of the optimum."""
        X = check_array(
            X,
            accept_sparse=["csr", "csc", "coo"],
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,  # the problem looks at every entry once
        )
        if self.coef.shape != (X.shape[1],):
            raise ValueError(
                f"model: coefficients of shape {self.coef.shape}, but X has "
                f"{X.shape[1]} features"
            )
        weight = checked_weights(sample_weight, X)
        if self.loss is None:
            found = self._one_class(X, weight, limits)
        else:
            y = targets(y, X.shape[0])
            penalised = self.penalize_intercept or not self.fit_intercept
            regression = _penalised if penalised else _free
            found = regression(self, self.loss, X, y, C, weight, limits)
        return replace(found, tol=math.nan)

    def _one_class(self, X: Any, weight: Vector | None, limits: Limits) -> Certificate:
        problem = OneClassProblem(
            X,
            self.nu or 0.5,
            sample_weight=weight,
            n_jobs=effective_n_jobs(limits.n_jobs),
        )
        w, bias = self.scale * self.coef, self.scale * self.bias
        proof = problem.prove(w, None, bias=bias).certificate
        return sharpened(proof, problem, PairDescent(), limits)


def _penalised(
    terms: Single,
    loss: ResidualLoss,
    X: Any,
    y: Vector,
    C: float | None,
    weight: Vector | None,
    limits: Limits,
) -> Certificate:
    problem = RegressionProblem(
        X,
        y,
        C,
        loss=loss,
        sample_weight=weight,
        fit_intercept=terms.fit_intercept,
        intercept_scaling=terms.intercept_scaling,
        n_jobs=effective_n_jobs(limits.n_jobs),
    )
    w = terms.coef
    if terms.fit_intercept:
        w = np.append(w, terms.bias / terms.intercept_scaling)
    proof = problem.certify(w)
    return sharpened(proof, problem, regression_solver("auto", problem), limits)


def _free(
    terms: Single,
    loss: ResidualLoss,
    X: Any,
    y: Vector,
    C: float | None,
    weight: Vector | None,
    limits: Limits,
) -> Certificate:
    """A bias that is not penalised: sum_i a_i = 0.

    The point of the model, made feasible; then that of a fit with a long constant
    feature, or of the block solver on the linear kernel.
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
        regression_solver("newton", long),
        tol=0.1 * limits.tol,
        random_state=limits.seed,
        stop=limits.stop,
    )
    return found.with_dual_of(free.certify_dual(fit.alpha, found.primal))


def single_terms(model: Any, n: int, sample_weight: ArrayLike | None) -> Single:
    """Coefficients and problem of an estimator of LINEAR_OF_ONE."""
    check_is_fitted(model)
    name = type(model).__name__
    if getattr(model, "penalty", "l2") != "l2":
        raise ValueError(
            f"{name}(penalty={model.penalty!r}): only the squared norm has a "
            "certificate; train with penalty='l2'"
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
        # nu/2 ||w||^2 - nu rho + 1/n sum_i s_i max(0, rho - w.x_i), which times
        # nu n^2 is the problem of LIBSVM for nu n w and nu n rho.
        share = model.nu * n / (n if sample_weight is None else np.sum(sample_weight))
        if share > 1.0:
            raise ValueError(
                f"{name}: nu n = {model.nu * n:g} is more than the sample weights add "
                "up to: its problem has no solution"
            )
        return Single(
            coef, -float(model.offset_[0]), nu=float(share), scale=model.nu * n
        )
    if model.loss not in RESIDUAL_LOSSES:
        known = " or ".join(map(repr, RESIDUAL_LOSSES))
        raise ValueError(
            f"{name}(loss={model.loss!r}) is no support vector machine; use "
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
    """Coefficients as they are, with what the caller says about their problem."""
    if nu is not None:
        for name, value in (
            ("loss", loss),
            ("epsilon", epsilon),
            ("penalize_intercept", penalize_intercept),
        ):
            if value is not None:
                raise ValueError(
                    f"{name}={value!r} with nu={nu!r}: a one-class SVM has none; leave "
                    "it out"
                )
        if bias is None:
            raise ValueError(
                f"nu={nu!r}: give the offset rho of the plane, as intercept=-rho"
            )
        return Single(coef, bias, nu=nu)
    record = get_residual_loss(loss or "epsilon_insensitive")
    if isinstance(loss, ResidualLoss):
        if epsilon is not None and epsilon != loss.epsilon:
            raise ValueError(f"epsilon={epsilon!r} contradicts loss={loss!r}")
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
    model: Any,
    X: Any,
    y: ArrayLike | None,
    kernel: Any,
    sample_weight: ArrayLike | None,
    limits: Limits,
) -> Certificate:
    """A kernel model, from its own dual variables or a fit that starts there."""
    weight = checked_weights(sample_weight, X)
    gram = Gram(X, kernel, getattr(model, "cache_size", 200))
    problem: BoxProblem
    if isinstance(model, (svm.OneClassSVM, OneClassSVM)):
        problem = KernelOneClass(gram, model.nu, sample_weight=weight)
    else:
        problem = KernelRegression(
            gram,
            targets(y, X.shape[0]),
            model.C,
            epsilon=EpsilonInsensitive(model.epsilon).epsilon,
            sample_weight=weight,
        )
    coef = np.zeros(X.shape[0])
    own = model.dual_coef_
    coef[model.support_] = np.ravel(own.toarray() if hasattr(own, "toarray") else own)
    alpha = np.clip(coef, problem.lower, problem.upper)
    proof = problem.certify(alpha)
    # The model as it is: its coefficients may leave the box by a rounding.
    own = problem.certify_model(coef, float(model.intercept_[0]))
    own = own.with_dual_of(proof)
    return replace(sharpened(own, problem, BlockSolver(), limits, alpha), tol=math.nan)


def targets(y: ArrayLike | None, n: int) -> Vector:
    """The targets as numbers."""
    if y is None:
        raise ValueError("y=None: give the targets that the model was trained with")
    values = column_or_1d(y, warn=True)
    if len(values) != n:
        raise ValueError(f"y has {len(values)} targets, X has {n} rows")
    try:
        found: Vector = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y of {values.dtype}: the targets are numbers") from None
    return found


def sharpened(
    proof: Certificate,
    problem: Any,
    solver: Any,
    limits: Limits,
    warm: Vector | None = None,
) -> Certificate:
    """The same primal value, and the dual value of a fit if it leaves too much open."""
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
