"""Subclasses of scikit-learn's SVMs for `patch_sklearn`; dualgap trains them.

Each inherits everything from scikit-learn's class. Where its methods call LIBSVM or
LIBLINEAR, dualgap takes their place. They train only what dualgap refuses.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from itertools import combinations
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.svm import _base, _classes

from .. import estimators
from ..certificate import Certificate, Status
from ..data.types import Label, Matrix, MatrixLike
from ..kernel import Precomputed
from ..kernels.functions import Kernel
from ..kernels.predict import pair_values, single_values
from ..losses import Vector
from ..problems.kernel_matrix import IndefiniteKernelError
from . import originals
from ._kernels import KERNELS
from .fitting import checked, silent_failures
from .kernel_single import least_decision
from .single import on_the_plane

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from typing_extensions import Unpack


__all__ = ["DROP_INS", "SVC", "SVR", "LinearSVC", "LinearSVR", "OneClassSVM"]

#: Relative gap that a fit proves however large its tol is.
_LARGEST_GAP = 1e-3
_CRAMMER_SINGER = 4  # LIBLINEAR's number of this problem

logger = logging.getLogger("dualgap")

#: What a call of LIBSVM returns: arrays, and the status.
Trained = tuple[NDArray[np.generic] | int, ...]


class Epochs(TypedDict, total=False):
    """Limit on the epochs of dualgap's counterpart."""

    max_epochs: int


class Common(Epochs, total=False):
    """Parameters that dualgap's counterparts of LIBSVM's classes share."""

    kernel: Kernel
    tol: float
    cache_size: float
    random_state: int
    verbose: int


def _seeing(function: FunctionType, **names: object) -> FunctionType:
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


def _instead(module: ModuleType, **functions: Callable[..., object]) -> SimpleNamespace:
    """Return what a module holds, with some functions replaced."""
    return SimpleNamespace(**{**vars(module), **functions})


def _train(
    model: BaseEstimator,
    make: Callable[[], BaseEstimator],
    X: MatrixLike,
    y: NDArray[np.generic],
    sample_weight: Vector,
) -> BaseEstimator | None:
    """Fit dualgap's estimator of a model's problem; None if scikit-learn has to.

    Parameters
    ----------
    model : estimator
        Of scikit-learn. It gets the certificate.
    make : callable
        Returns dualgap's estimator.
    X, y, sample_weight
        Rows of weight 0 or less are left out, as LIBSVM and LIBLINEAR do.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C ended the fit. dualgap's own estimators keep the best model so far,
        but in scikit-learn's searches the next fit would begin.
    """
    vars(model).pop("certificate_", None)  # of an earlier fit
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
            if not isinstance(error, IndefiniteKernelError):
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
    model.certificate_ = found.certificate_
    return found


def _unsupported(
    model: BaseEstimator, n: int, y: NDArray[np.generic], weight: Vector | None
) -> str | None:
    """Return why dualgap does not train a model, from its parameters and weights.

    Only an indefinite kernel matrix is found during a fit. After any other error there
    `_train` warns.
    """
    if len(y) != n or (weight is not None and weight.shape != (n,)):
        return "X, y and sample_weight differ in length, which scikit-learn reports"
    if getattr(model, "penalty", "l2") != "l2" and (
        getattr(model, "multi_class", "ovr") != "crammer_singer"
    ):
        return f"penalty={model.penalty!r} has no certificate"
    if getattr(model, "_effective_probability", getattr(model, "probability", False)):
        return "probability=True calls for LIBSVM's cross-validation"
    if getattr(model, "C", 1.0) == np.inf:
        return "C=inf: dualgap needs a finite C"
    if model.max_iter == 0:
        return "max_iter=0: dualgap makes at least one epoch"
    kernel = getattr(model, "kernel", None)
    if kernel == "poly" and model.degree == 0:
        return "degree=0: dualgap needs a degree of at least 1"
    if kernel in ("rbf", "poly", "sigmoid") and model._gamma == 0.0:
        return "gamma=0.0: dualgap needs a positive gamma"
    if weight is not None:
        left = y[weight > 0.0]
        if not len(left) or (
            hasattr(model, "classes_") and len(np.unique(left)) < len(model.classes_)
        ):
            return "sample_weight leaves a class, or the whole fit, without a row"
    return None


def _gap(tol: float) -> float:
    """Return the relative gap to prove in the place of scikit-learn's `tol`."""
    return min(_LARGEST_GAP, tol)


def _epochs(max_iter: int, default: int) -> Epochs:
    """Return the limit of epochs, if the user has set one."""
    return {} if max_iter == default else {"max_epochs": max_iter}


def _failed(certificate: Certificate) -> bool:
    """Whether scikit-learn should warn: not where rounding alone ended a good fit."""
    return any(
        not part.certified
        and not (part.status is Status.STALLED and part.relative_gap <= _LARGEST_GAP)
        for part in certificate.parts
    )


class _LinearMachine:
    """A drop-in for a class that LIBLINEAR trains."""

    @checked
    def fit(
        self,
        X: MatrixLike,
        y: NDArray[np.generic],
        sample_weight: ArrayLike | None = None,
    ) -> BaseEstimator:
        model: BaseEstimator = self
        found: BaseEstimator | None = None

        def train_wrap(
            X: Matrix, y: NDArray[np.generic], is_sparse: bool, kind: int,
            tol: float, bias: float,
            C: float, class_weight: Vector, max_iter: int, seed: int, *others: Any,
        ) -> tuple[Vector, NDArray[np.intp]]:  # fmt: skip
            nonlocal found
            found = _train(
                model,
                # scikit-learn has drawn a seed where none was given. Equal fits are to
                # have equal models.
                lambda: model._counterpart(
                    class_weight, 0 if model.random_state is None else seed
                ),
                X,
                model._labels(y),
                [] if sample_weight is None else others[-1],
            )
            if found is None:
                return _base.liblinear.train_wrap(
                    X, y, is_sparse, kind, tol, bias, C, class_weight, max_iter, seed,
                    *others,
                )  # fmt: skip
            coef = np.atleast_2d(found.coef_)
            if bias > 0.0:
                coef = np.column_stack([coef, found.intercept_ / bias])
            if kind == _CRAMMER_SINGER and len(coef) == 1:
                coef = np.vstack([-0.5 * coef, 0.5 * coef])  # of two classes
            # scikit-learn warns if it is max_iter.
            return coef, np.array([max_iter if _failed(found.certificate_) else 0])

        liblinear = _instead(_base.liblinear, train_wrap=train_wrap)
        inner = _seeing(_base._fit_liblinear, liblinear=liblinear)
        fit = model._original.fit.__wrapped__
        _seeing(fit, _fit_liblinear=inner)(model, X, y, sample_weight)
        if found is not None:
            model.n_iter_ = found.n_iter_
        return model

    fit.__doc__ = _classes.LinearSVC.fit.__doc__

    def _labels(self, y: NDArray[np.generic]) -> NDArray[np.generic]:
        return y


class LinearSVC(_LinearMachine, _classes.LinearSVC):
    __doc__ = _classes.LinearSVC.__doc__
    _original = originals.LinearSVC

    def _labels(self, y: NDArray[np.generic]) -> NDArray[np.generic]:
        return self.classes_[y.astype(np.intp)]

    def _counterpart(self, class_weight: Vector, seed: int) -> estimators.LinearSVC:
        return estimators.LinearSVC(
            C=self.C,
            # scikit-learn ignores the loss of Crammer and Singer's problem.
            loss="hinge" if self.multi_class == "crammer_singer" else self.loss,
            tol=_gap(self.tol),
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            class_weight=_by_label(self, class_weight),
            multi_class=self.multi_class,
            random_state=seed,
            verbose=int(self.verbose),
            **_epochs(self.max_iter, 1000),
        )


class LinearSVR(_LinearMachine, _classes.LinearSVR):
    __doc__ = _classes.LinearSVR.__doc__
    _original = originals.LinearSVR

    def _counterpart(self, class_weight: Vector, seed: int) -> estimators.LinearSVR:
        return estimators.LinearSVR(
            epsilon=self.epsilon,
            tol=_gap(self.tol),
            C=self.C,
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            random_state=seed,
            verbose=int(self.verbose),
            **_epochs(self.max_iter, 1000),
        )


class _KernelMachine(_base.BaseLibSVM):
    """A drop-in for a class that LIBSVM trains and predicts with."""

    def _dense_fit(
        self,
        X: MatrixLike,
        y: NDArray[np.generic],
        sample_weight: ArrayLike | None,
        *args: object,
        **kw: object,
    ) -> None:
        model: BaseEstimator = self

        def fit(
            X: MatrixLike, y: NDArray[np.generic], **options: object
        ) -> Trained:  # X may be a kernel matrix
            found = model._trained(X, y, sample_weight)
            if found is None:
                return _base.libsvm.fit(X, y, **options)
            support, counts, coef, intercept, *others = found
            return support, model._vectors(X, support), counts, coef, intercept, *others

        method = _base.BaseLibSVM._dense_fit
        libsvm = _instead(_base.libsvm, fit=fit)
        _seeing(method, libsvm=libsvm)(model, X, y, sample_weight, *args, **kw)

    def _sparse_fit(
        self,
        X: MatrixLike,
        y: NDArray[np.generic],
        sample_weight: ArrayLike | None,
        *args: object,
        **kw: object,
    ) -> None:
        model: BaseEstimator = self

        def train(*options: object) -> Trained:
            found = model._trained(X, y, sample_weight)
            if found is None:
                return _base.libsvm_sparse.libsvm_sparse_train(*options)
            support, counts, coef, intercept, *others = found
            vectors = model._vectors(X, support)
            return support, vectors, coef.ravel(), intercept, counts, *others

        method = _base.BaseLibSVM._sparse_fit
        libsvm_sparse = _instead(_base.libsvm_sparse, libsvm_sparse_train=train)
        _seeing(method, libsvm_sparse=libsvm_sparse)(
            model, X, y, sample_weight, *args, **kw
        )
        # A matrix or an array, as this version of scikit-learn makes them.
        model.support_vectors_ = type(model.dual_coef_)(model.support_vectors_)

    def _dense_predict(self, X: MatrixLike) -> NDArray[np.generic]:
        values = self._pair_values(self._compute_kernel(X))
        if values is None:
            return super()._dense_predict(X)
        return self._predicted(values)

    def _sparse_predict(self, X: MatrixLike) -> NDArray[np.generic]:
        values = self._pair_values(X)
        if values is None:
            return super()._sparse_predict(X)
        return self._predicted(values)

    def _dense_decision_function(self, X: MatrixLike) -> Vector:
        values = self._pair_values(X)
        if values is None:
            return super()._dense_decision_function(X)
        return values

    def _sparse_decision_function(self, X: MatrixLike) -> Vector:
        values = self._pair_values(X)
        if values is None:
            return super()._sparse_decision_function(X)
        return values

    def _trained(
        self, X: MatrixLike, y: NDArray[np.generic], sample_weight: Vector
    ) -> Trained | None:
        """Return LIBSVM's results without the vectors, or None to leave the fit to it.

        Returns
        -------
        tuple or None
            Support, counts, coefficients, intercepts, no probabilities (2), status and
            iterations.
        """
        model: BaseEstimator = self
        found = _train(
            model,
            lambda: model._counterpart(
                kernel=model._record(),
                tol=_gap(model.tol),
                cache_size=model.cache_size,
                random_state=0,  # LIBSVM draws no random numbers
                verbose=int(model.verbose),
                **_epochs(model.max_iter, -1),
            ),
            X,
            model._labels(y),
            sample_weight,
        )
        if found is None:
            return None
        parts = found.certificate_.parts
        # LIBSVM's first class of two is the positive one.
        sign = -1.0 if len(getattr(found, "classes_", ())) == 2 else 1.0
        return (
            found.support_.astype(np.int32),
            self._counts(found.n_support_),
            np.ascontiguousarray(sign * found.dual_coef_),
            sign * found.intercept_,
            np.empty(0),
            np.empty(0),
            int(_failed(found.certificate_)),
            np.array([part.epochs for part in parts], np.int32),
        )

    def _record(self) -> Kernel:
        """Return the kernel as dualgap's record.

        Raises
        ------
        ValueError
            If dualgap has none with these parameters.
        """
        model: BaseEstimator = self
        if callable(model.kernel):
            return Precomputed()  # scikit-learn has called it
        record = KERNELS[model.kernel]
        own = {"degree": model.degree, "gamma": model._gamma, "coef0": model.coef0}
        known = getattr(record, "__dataclass_fields__", {})
        return record(**{name: own[name] for name in own if name in known})

    def _vectors(self, X: MatrixLike, support: NDArray[np.int32]) -> Matrix:
        """Return the support vectors; an empty array for a precomputed kernel."""
        if isinstance(self._record(), Precomputed):
            return np.empty((0, 0))
        return X[support]

    def _pair_values(self, X: MatrixLike) -> Vector | None:
        """Return LIBSVM's decision values of all pairs; None if dualgap cannot.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            Kernel values of all training rows if the kernel is a function.
        """
        model: BaseEstimator = self
        if callable(model.kernel) and X.shape[1:] != model.shape_fit_[:1]:
            return None
        try:
            kernel = self._record()
        except ValueError:
            return None
        coef = model._dual_coef_
        coef = coef.toarray() if sparse.issparse(coef) else coef
        return self._values(kernel, X, model.support_vectors_, coef)

    def _values(
        self, kernel: Kernel, X: MatrixLike, vectors: Matrix, coef: Vector
    ) -> Vector:
        """Return the decision values of one problem, shape (n_samples, 1)."""
        model: BaseEstimator = self
        (constant,) = model._intercept_
        support = model.support_
        return single_values(kernel, X, vectors, coef, constant, support=support)[
            :, None
        ]

    def _predicted(self, values: Vector) -> NDArray[np.generic]:
        """Return the predictions of LIBSVM, given the decision values."""
        return values.ravel()

    def _labels(self, y: NDArray[np.generic]) -> NDArray[np.generic]:
        return y

    def _counts(self, n_support: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the support vectors of both classes that LIBSVM has in any case."""
        return np.repeat(n_support, 2)


class SVC(_KernelMachine, _classes.SVC):
    __doc__ = _classes.SVC.__doc__
    _original = originals.SVC

    def _counterpart(self, **common: Unpack[Common]) -> estimators.SVC:
        weights = _by_label(self, self.class_weight_)
        return estimators.SVC(C=self.C, class_weight=weights, **common)

    def _labels(self, y: NDArray[np.generic]) -> NDArray[np.generic]:
        return self.classes_[y.astype(np.intp)]

    def _counts(self, n_support: NDArray[np.int32]) -> NDArray[np.int32]:
        return n_support

    def _values(
        self, kernel: Kernel, X: MatrixLike, vectors: Matrix, coef: Vector
    ) -> Vector:
        return pair_values(
            kernel, X, vectors, coef, self._n_support, self._intercept_,
            support=self.support_,
        )  # fmt: skip

    def _predicted(self, values: Vector) -> NDArray[np.generic]:
        classes = len(self.classes_)
        votes = np.zeros((len(values), classes))
        for p, (i, j) in enumerate(combinations(range(classes), 2)):
            first = values[:, p] > 0.0
            votes[:, i] += first
            votes[:, j] += ~first
        return votes.argmax(axis=1)


class SVR(_KernelMachine, _classes.SVR):
    __doc__ = _classes.SVR.__doc__
    _original = originals.SVR

    def _counterpart(self, **common: Unpack[Common]) -> estimators.SVR:
        return estimators.SVR(C=self.C, epsilon=self.epsilon, **common)


class OneClassSVM(_KernelMachine, _classes.OneClassSVM):
    __doc__ = _classes.OneClassSVM.__doc__
    _original = originals.OneClassSVM

    def _counterpart(self, **common: Unpack[Common]) -> estimators.OneClassSVM:
        return estimators.OneClassSVM(nu=self.nu, **common)

    def _values(
        self, kernel: Kernel, X: MatrixLike, vectors: Matrix, coef: Vector
    ) -> Vector:
        values = super()._values(kernel, X, vectors, coef)
        least = least_decision(kernel, vectors, coef, float(self._intercept_[0]))
        return on_the_plane(values, least)

    def _predicted(self, values: Vector) -> NDArray[np.generic]:
        return np.where(values.ravel() >= 0.0, 1.0, -1.0)


def _by_label(model: BaseEstimator, weights: Vector) -> dict[Label, float] | None:
    """Return the factors of the classes, which scikit-learn has computed."""
    if model.class_weight is None:
        return None
    return dict(zip(model.classes_.tolist(), weights.tolist(), strict=True))


#: The drop-ins by their names, each with ``_original``, the class that it replaces.
DROP_INS: dict[str, type[BaseEstimator]] = {
    drop_in.__name__: drop_in
    for drop_in in (LinearSVC, SVC, LinearSVR, SVR, OneClassSVM)
}
