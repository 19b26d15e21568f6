"""LIBSVM in the place of dualgap, and dualgap in the place of LIBSVM and LIBLINEAR.

LIBSVM trains kernel models without a proof where the kernel matrix is indefinite. There
P has no convex form, so no duality gap bounds anything. scikit-learn's own SVC finds a
stationary point of the dual, as it does for everybody else. Otherwise dualgap's
estimators train the patched classes of scikit-learn.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TypedDict, cast

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator

from ..certificate import Bounds, Certificate, Status
from ..data.types import MatrixLike
from ..kernels.functions import Polynomial, Sigmoid
from ..losses import Vector
from ..problems.base import EMPTY
from ..problems.kernel import KernelBatch
from ..problems.kernel_matrix import IndefiniteKernelError
from ..problems.kernel_nu import InfeasibleNuError
from ..training import Solution
from ..training.hard_margin import InseparableError
from . import originals
from .base import silent_failures
from .hard_margin import is_hard
from .parameters import ClassWeight

logger = logging.getLogger("dualgap")

#: Fitted attributes that scikit-learn's classes do not have.
_OWN = ("certificate_", "history_", "_fitted")
#: Reasons to hand a fit on that only the fit finds.
_REFUSED = IndefiniteKernelError, InfeasibleNuError, InseparableError
#: Relative gap that a fit proves however large its tol is.
_LARGEST_GAP = 1e-3
#: Names of kernels that LIBSVM trains where their matrix is indefinite.
CAN_BE_INDEFINITE = ("sigmoid", "poly")


def trained_by_libsvm(batch: KernelBatch, k: int, tol: float, atol: float) -> Solution:
    """Train one problem of the hinge with a free bias by LIBSVM's own default.

    The certificate has the status "uncertified" and no bound. `tol` and `atol` are what
    the fit was to prove.
    """
    kernel = cast(Polynomial | Sigmoid, batch.kernel)
    y, X = batch.signs(k), batch.points.X[batch.place(k)]
    model = originals.SVC(
        C=batch.C,
        kernel=kernel.name,
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        degree=getattr(kernel, "degree", 3),
        cache_size=batch.cache_size,
    )
    begun = time.perf_counter()
    # In a problem that is not convex, the solution depends on which class is first.
    model.fit(X, y != y[0], sample_weight=batch.weights_of(k))
    coef = np.zeros(len(y))
    values = model.dual_coef_
    values = values.toarray() if hasattr(values, "toarray") else values
    # The label of the second class, which scikit-learn takes as 1.
    second = -float(y[0])
    coef[model.support_] = second * values[0]
    certificate = replace(
        Bounds.proved().certificate,
        status=Status.UNCERTIFIED,
        solver="libsvm",
        tol=tol,
        atol=atol,
        updates=int(model.n_iter_[0]),
        seconds=time.perf_counter() - begun,
    )
    bias = second * float(model.intercept_[0])
    return Solution(EMPTY, coef * y, certificate, bias)


class Epochs(TypedDict, total=False):
    """Limit on the epochs of dualgap's counterpart."""

    max_iter: int


def seeing(function: FunctionType, **names: object) -> FunctionType:
    """Return a copy of a function in which some global names mean something else.

    It puts dualgap into the place of LIBSVM and LIBLINEAR in scikit-learn's methods,
    for one call and one thread; scikit-learn itself stays as it is.
    """
    copy = FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def instead(module: ModuleType, **functions: Callable[..., object]) -> SimpleNamespace:
    """Return what a module holds, with some functions replaced."""
    return SimpleNamespace(**{**vars(module), **functions})


def train(
    model: BaseEstimator,
    make: Callable[[], BaseEstimator],
    X: MatrixLike,
    y: NDArray[np.generic],
    sample_weight: Vector,
) -> BaseEstimator | None:
    """Fit dualgap's estimator of a model's problem; None if scikit-learn has to.

    `model`: an estimator of scikit-learn, which gets the certificate. `make`: returns
    dualgap's estimator. `X`, `y`, `sample_weight`: rows of weight 0 or less are left
    out, as LIBSVM and LIBLINEAR do. Raises KeyboardInterrupt if Ctrl-C ended the fit.
    dualgap's own estimators keep the best model so far, but in scikit-learn's searches
    the next fit would begin.
    """
    for name in _OWN:  # of an earlier fit
        vars(model).pop(name, None)
    weight = np.maximum(sample_weight, 0.0) if len(sample_weight) else None
    reason = _unsupported(model, X.shape[0], y, weight)
    if reason is None:
        try:
            with config_context(skip_parameter_validation=False), silent_failures():
                estimator = make()
                estimator._may_be_unproved = False
                found = estimator.fit(X, y, sample_weight=weight)
        except ValueError as error:
            reason = str(error)
            if not isinstance(error, _REFUSED):
                warnings.warn(
                    f"scikit-learn trains this {type(model).__name__}, because dualgap "
                    f"failed: {reason}",
                    RuntimeWarning,
                    stacklevel=2,
                )
    if reason is not None:
        name = type(model).__name__
        logger.info("%s: scikit-learn trains this model: %s", name, reason)
        return None
    parts = found.certificate_.parts
    if any(part.status is Status.INTERRUPTED for part in parts):
        raise KeyboardInterrupt
    model.certificate_, model.history_ = found.certificate_, found.history_
    model._fitted = model.get_params(deep=False)
    return found


def _unsupported(
    model: BaseEstimator, n: int, y: NDArray[np.generic], weight: Vector | None
) -> str | None:
    """Return why dualgap does not train a model, from its parameters and weights.

    Only an indefinite kernel matrix, an infeasible nu, which scikit-learn reports, and
    a hard margin without a separating model are found during a fit. After any other
    error there `train` warns.
    """
    if len(y) != n or (weight is not None and weight.shape != (n,)):
        return "X, y and sample_weight differ in length, which scikit-learn reports"
    if is_hard(model) and not hasattr(model, "classes_"):
        return "C=inf: dualgap needs a finite C for a regression"
    if is_hard(model) and wants_probabilities(model):
        return "C=inf: dualgap needs a finite C for probability=True"
    if model.max_iter == 0:
        return "max_iter=0: dualgap makes at least one epoch"
    kernel = getattr(model, "kernel", None)
    if kernel == "poly" and model.degree == 0:
        return "degree=0: dualgap needs a degree of at least 1"
    if kernel in ("rbf", "poly", "sigmoid") and model._gamma == 0.0:
        return "gamma=0.0: dualgap needs a positive gamma"
    left = y if weight is None else y[weight > 0.0]
    if not len(left) or (
        hasattr(model, "classes_") and len(np.unique(left)) < len(model.classes_)
    ):
        return "sample_weight leaves a class, or the whole fit, without a row"
    if wants_probabilities(model) and "nu" in model.get_params():
        return "probability=True: dualgap has no folds for nu"
    if wants_probabilities(model) and np.unique(left, return_counts=True)[1].min() < 2:
        return "probability=True with a class of one row, which folds cannot hold out"
    return None


def wants_probabilities(model: BaseEstimator) -> bool:
    """Whether a model has `probability=True`; scikit-learn 1.9 has a word for unset."""
    given = getattr(model, "probability", False)
    return bool(getattr(model, "_effective_probability", given))


def gap(tol: float) -> float:
    """Return the relative gap to prove in the place of scikit-learn's `tol`."""
    return min(_LARGEST_GAP, tol)


def epochs(max_iter: int, default: int) -> Epochs:
    """Return the limit of epochs, if the user has set one."""
    return {} if max_iter == default else {"max_iter": max_iter}


def failed(certificate: Certificate) -> bool:
    """Whether scikit-learn should warn: not where rounding alone ended a good fit."""
    return any(
        not part.certified
        and not (part.status is Status.STALLED and part.relative_gap <= _LARGEST_GAP)
        for part in certificate.parts
    )


def by_label(model: BaseEstimator, weights: Vector | None) -> ClassWeight:
    """Return the factors of the classes, which scikit-learn has computed."""
    if weights is None or getattr(model, "class_weight", None) is None:
        return None
    return dict(zip(model.classes_.tolist(), weights.tolist(), strict=True))
