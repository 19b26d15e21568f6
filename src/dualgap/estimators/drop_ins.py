"""Subclasses of scikit-learn's SVMs for `patch_sklearn`; dualgap trains them.

Each inherits everything from scikit-learn's class. Where its methods call LIBSVM or
LIBLINEAR, dualgap takes their place. They train only what dualgap refuses. A fitted
model can be turned into dualgap's own estimator, for functions on fitted models.
"""

from __future__ import annotations

import copy
import copyreg
import sys
from abc import ABCMeta
from collections.abc import Callable
from numbers import Integral
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.svm import _base, _classes
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from .. import estimators
from ..data.types import Matrix, MatrixLike
from ..kernel import Callable as FunctionKernel
from ..kernel import Precomputed
from ..kernels.functions import Kernel, takes_items
from ..kernels.predict import pair_values, single_values
from ..losses import Vector
from ..problems.reductions import OneVsOne
from . import originals
from ._libsvm import (
    Epochs,
    by_label,
    epochs,
    failed,
    gap,
    instead,
    train,
    wants_probabilities,
)
from ._libsvm import seeing as seeing  # exporters patch with it too
from .base import silent_failures
from .calibration import curves_of_pairs
from .input import checked
from .novelty import least_decision, on_the_plane
from .parameters import ClassWeight, Gamma, KernelLike, kernel_named

if TYPE_CHECKING:
    from typing_extensions import Unpack


_CRAMMER_SINGER = 4  # LIBLINEAR's number of this problem

#: What a call of LIBSVM returns: arrays, and the status.
Trained = tuple[NDArray[np.generic] | int, ...]


class Common(Epochs, total=False):
    """Parameters that dualgap's counterparts of LIBSVM's classes share."""

    tol: float
    cache_size: float
    random_state: int
    verbose: int


class CounterpartParameters(Common, total=False):
    """Parameters of a kernel besides."""

    kernel: KernelLike
    degree: int
    gamma: Gamma
    coef0: float


class _DropIn(ABCMeta):
    """Metaclass by which pickles find the drop-ins, whether they are patched in or not.

    The classes have the names of scikit-learn's, for tools that look up a class by its
    module, and pickles would take them for these.
    """


def _reduced(drop_in: type) -> str | tuple[Callable[[str], type], tuple[str]]:
    """Return how pickles find a drop-in, and a user's subclass as always."""
    name = drop_in.__name__
    if DROP_INS.get(name) is drop_in:
        return _named, (name,)
    return drop_in.__qualname__


def _named(name: str) -> type:
    """Return a drop-in by its name."""
    return DROP_INS[name]


copyreg.pickle(_DropIn, _reduced)  # type: ignore[arg-type]


def exchange(name: str, old: type, new: type, within: str = "sklearn") -> None:
    """Let all modules of a package that know a class know another one instead.

    The module that defines scikit-learn's classes keeps them: their pickles look them
    up there.
    """
    for place, module in list(sys.modules.items()):
        inside = place == within or place.startswith(f"{within}.")
        inside = inside and place != _classes.__name__
        if inside and getattr(module, "__dict__", {}).get(name) is old:
            setattr(module, name, new)


def _with_attributes(own: BaseEstimator, model: BaseEstimator) -> BaseEstimator:
    """Return dualgap's estimator with the fitted attributes of a drop-in.

    They have the same names and, but for a few, the same layouts.
    """
    for name, value in vars(model).items():
        if name.endswith("_") and name[0] != "_" and not hasattr(type(own), name):
            setattr(own, name, value)
    own.n_iter_ = int(np.max(own.n_iter_))
    own._note_parameters()
    return own


def _labels(model: BaseEstimator, y: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the labels of a classifier for its codes, or the targets as they are."""
    return model.classes_[y.astype(np.intp)] if hasattr(model, "classes_") else y


def _as_fitted(model: BaseEstimator) -> BaseEstimator:
    """Return a copy of a drop-in with the parameters that its fit had."""
    check_is_fitted(model)
    fitted = copy.copy(model)
    fitted.__dict__.update(vars(model).get("_fitted", {}))
    return fitted


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
            if hasattr(model, "class_weight"):  # "balanced" depends on the version
                model.class_weight_ = class_weight
            found = train(
                model,
                # scikit-learn has drawn a seed where none was given. Equal fits are to
                # have equal models.
                lambda: model._counterpart(
                    by_label(model, class_weight),
                    0 if model.random_state is None else seed,
                ),
                X,
                _labels(model, y),
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
            return coef, np.array([max_iter if failed(found.certificate_) else 0])

        liblinear = instead(_base.liblinear, train_wrap=train_wrap)
        inner = seeing(_base._fit_liblinear, liblinear=liblinear)
        fit = model._original.fit.__wrapped__
        seeing(fit, _fit_liblinear=inner)(model, X, y, sample_weight)
        if found is not None:
            model.n_iter_ = found.n_iter_
        return model

    fit.__doc__ = _classes.LinearSVC.fit.__doc__

    def _as_own(self) -> BaseEstimator:
        """Return dualgap's own estimator with the coefficients of this model."""
        model = _as_fitted(self)
        weights = by_label(model, getattr(model, "class_weight_", None))
        own = _with_attributes(model._counterpart(weights, 0), model)
        # scikit-learn's is the number 0.0 without an intercept.
        own.intercept_ = np.zeros(np.atleast_2d(own.coef_).shape[0]) + model.intercept_
        return own


class LinearSVC(_LinearMachine, _classes.LinearSVC, metaclass=_DropIn):
    __doc__ = _classes.LinearSVC.__doc__
    _original = originals.LinearSVC

    def _counterpart(
        self, class_weight: ClassWeight, seed: int
    ) -> estimators.LinearSVC:
        # scikit-learn ignores the loss and penalty of Crammer and Singer's problem.
        joint = self.multi_class == "crammer_singer"
        return estimators.LinearSVC(
            C=self.C,
            loss="hinge" if joint else self.loss,
            penalty="l2" if joint else self.penalty,
            tol=gap(self.tol),
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            class_weight=class_weight,
            multi_class=self.multi_class,
            random_state=seed,
            verbose=int(self.verbose),
            **epochs(self.max_iter, 1000),
        )


class LinearSVR(_LinearMachine, _classes.LinearSVR, metaclass=_DropIn):
    __doc__ = _classes.LinearSVR.__doc__
    _original = originals.LinearSVR

    def _counterpart(
        self, class_weight: ClassWeight, seed: int
    ) -> estimators.LinearSVR:
        return estimators.LinearSVR(
            epsilon=self.epsilon,
            tol=gap(self.tol),
            C=self.C,
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            random_state=seed,
            verbose=int(self.verbose),
            **epochs(self.max_iter, 1000),
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
        libsvm = instead(_base.libsvm, fit=fit)
        seeing(method, libsvm=libsvm)(model, X, y, sample_weight, *args, **kw)

    def _sparse_fit(
        self,
        X: MatrixLike,
        y: NDArray[np.generic],
        sample_weight: ArrayLike | None,
        *args: object,
        **kw: object,
    ) -> None:
        model: BaseEstimator = self

        def fit(*options: object) -> Trained:
            found = model._trained(X, y, sample_weight)
            if found is None:
                return _base.libsvm_sparse.libsvm_sparse_train(*options)
            support, counts, coef, intercept, *others = found
            vectors = model._vectors(X, support)
            return support, vectors, coef.ravel(), intercept, counts, *others

        method = _base.BaseLibSVM._sparse_fit
        libsvm_sparse = instead(_base.libsvm_sparse, libsvm_sparse_train=fit)
        seeing(method, libsvm_sparse=libsvm_sparse)(
            model, X, y, sample_weight, *args, **kw
        )
        # A matrix or an array, as this version of scikit-learn makes them.
        model.support_vectors_ = type(model.dual_coef_)(model.support_vectors_)

    def _compute_kernel(self, X: MatrixLike) -> MatrixLike:
        model: BaseEstimator = self
        if not callable(model.kernel):
            return X
        values = FunctionKernel(model.kernel).call(X, model._BaseLibSVM__Xfit)
        return np.asarray(values, dtype=np.float64, order="C")

    def _dense_predict(self, X: MatrixLike) -> NDArray[np.generic]:
        values = self._pair_values(self._compute_kernel(X))
        return super()._dense_predict(X) if values is None else self._predicted(values)

    def _sparse_predict(self, X: MatrixLike) -> NDArray[np.generic]:
        values = self._pair_values(X)
        return super()._sparse_predict(X) if values is None else self._predicted(values)

    def _dense_decision_function(self, X: MatrixLike) -> Vector:
        values = self._pair_values(X)
        return super()._dense_decision_function(X) if values is None else values

    def _sparse_decision_function(self, X: MatrixLike) -> Vector:
        values = self._pair_values(X)
        return super()._sparse_decision_function(X) if values is None else values

    def _trained(
        self, X: MatrixLike, y: NDArray[np.generic], sample_weight: Vector
    ) -> Trained | None:
        """Return LIBSVM's results without the vectors, or None to leave the fit to it.

        Returns support, counts, coefficients, intercepts, no probabilities (2), status
        and iterations.
        """
        model: BaseEstimator = self
        found = train(
            model,
            lambda: model._counterpart(kernel=model._record(), **model._common()),
            X,
            _labels(model, y),
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
            int(failed(found.certificate_)),
            np.array([part.epochs for part in parts], np.int32),
        )

    def _common(self) -> Common:
        """Return the parameters of dualgap's counterpart besides the kernel."""
        model: BaseEstimator = self
        return {
            "tol": gap(model.tol),
            "cache_size": model.cache_size,
            "random_state": 0,  # LIBSVM draws no random numbers
            "verbose": int(model.verbose),
            **epochs(model.max_iter, -1),
        }

    def _as_own(self) -> BaseEstimator:
        """Return dualgap's own estimator with the dual variables of this model."""
        model = _as_fitted(self)
        shape = {name: getattr(model, name) for name in ("degree", "gamma", "coef0")}
        own = model._counterpart(kernel=model.kernel, **shape, **model._common())
        own = _with_attributes(own, model)
        own.n_support_ = model.n_support_
        if sparse.issparse(own.dual_coef_):
            own.dual_coef_ = own.dual_coef_.toarray()
        own._fitted_kernel = model._record()
        if callable(model.kernel):  # scikit-learn keeps all training rows
            own._fitted_kernel = FunctionKernel(model.kernel)
            rows = model._BaseLibSVM__Xfit
            if takes_items(model.kernel, rows):
                own._items = rows
            else:
                own.support_vectors_ = _safe_indexing(rows, model.support_)
                own.n_features_in_ = rows.shape[1]
        return own

    def _record(self) -> Kernel:
        """Return the kernel as dualgap's record."""
        model: BaseEstimator = self
        if callable(model.kernel):
            return Precomputed()  # scikit-learn has called it
        return kernel_named(model.kernel, model.degree, model._gamma, model.coef0)

    def _vectors(self, X: MatrixLike, support: NDArray[np.int32]) -> Matrix:
        """Return the support vectors; an empty array for a precomputed kernel."""
        if isinstance(self._record(), Precomputed):
            return np.empty((0, 0))
        return X[support]

    def _pair_values(self, X: MatrixLike) -> Vector | None:
        """Return LIBSVM's decision values of all pairs; None if dualgap cannot.

        `X`: kernel values of all training rows if the kernel is a function, shape
        (n_samples, n_features).
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

    def _counts(self, n_support: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the support vectors of both classes that LIBSVM has in any case."""
        return np.repeat(n_support, 2)


class _KernelClassifier(_KernelMachine):
    """A drop-in for a classifier that LIBSVM trains."""

    def _as_own(self) -> BaseEstimator:
        shape, ties = self.decision_function_shape, self.break_ties
        own = super()._as_own()
        return own.set_params(decision_function_shape=shape, break_ties=ties)

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
        if len(self.classes_) == 2:  # LIBSVM's first class is the positive one
            return np.where(values[:, 0] > 0.0, 0, 1)
        return OneVsOne(len(self.classes_), libsvm=True).decide(values)


class SVC(_KernelClassifier, _classes.SVC, metaclass=_DropIn):
    __doc__ = _classes.SVC.__doc__
    _original = originals.SVC

    def _trained(
        self, X: MatrixLike, y: NDArray[np.generic], sample_weight: Vector
    ) -> Trained | None:
        found = super()._trained(X, y, sample_weight)
        if found is None or not wants_probabilities(self):
            return found
        model = self._counterpart(kernel=self._record(), **self._common())
        given = self.random_state
        seed = int(given) if isinstance(given, Integral) else 0
        with config_context(skip_parameter_validation=False), silent_failures():
            curves = curves_of_pairs(
                model, X, _labels(self, y), np.maximum(sample_weight, 0.0), seed
            )
        return *found[:4], *curves, *found[6:]

    def _counterpart(self, **common: Unpack[CounterpartParameters]) -> estimators.SVC:
        weights = by_label(self, self.class_weight_)
        return estimators.SVC(C=self.C, class_weight=weights, **common)


class NuSVC(_KernelClassifier, _classes.NuSVC, metaclass=_DropIn):
    __doc__ = _classes.NuSVC.__doc__
    _original = originals.NuSVC

    def _counterpart(self, **common: Unpack[CounterpartParameters]) -> estimators.NuSVC:
        # scikit-learn's ignores its class_weight.
        return estimators.NuSVC(nu=self.nu, **common)

    def _as_own(self) -> BaseEstimator:
        own = super()._as_own()
        own.class_weight_ = np.ones_like(own.class_weight_)
        return own


class SVR(_KernelMachine, _classes.SVR, metaclass=_DropIn):
    __doc__ = _classes.SVR.__doc__
    _original = originals.SVR

    def _counterpart(self, **common: Unpack[CounterpartParameters]) -> estimators.SVR:
        return estimators.SVR(C=self.C, epsilon=self.epsilon, **common)


class NuSVR(_KernelMachine, _classes.NuSVR, metaclass=_DropIn):
    __doc__ = _classes.NuSVR.__doc__
    _original = originals.NuSVR

    def _counterpart(self, **common: Unpack[CounterpartParameters]) -> estimators.NuSVR:
        return estimators.NuSVR(C=self.C, nu=self.nu, **common)


class OneClassSVM(_KernelMachine, _classes.OneClassSVM, metaclass=_DropIn):
    __doc__ = _classes.OneClassSVM.__doc__
    _original = originals.OneClassSVM

    def _counterpart(
        self, **common: Unpack[CounterpartParameters]
    ) -> estimators.OneClassSVM:
        return estimators.OneClassSVM(nu=self.nu, **common)

    def _values(
        self, kernel: Kernel, X: MatrixLike, vectors: Matrix, coef: Vector
    ) -> Vector:
        values = super()._values(kernel, X, vectors, coef)
        least = least_decision(kernel, vectors, coef, float(self._intercept_[0]))
        return on_the_plane(values, least)

    def _predicted(self, values: Vector) -> NDArray[np.generic]:
        return np.where(values.ravel() >= 0.0, 1.0, -1.0)


#: The drop-ins by their names, each with ``_original``, the class that it replaces.
DROP_INS: dict[str, type[BaseEstimator]] = {
    drop_in.__name__: drop_in
    for drop_in in (LinearSVC, SVC, NuSVC, LinearSVR, SVR, NuSVR, OneClassSVM)
}
# Tools that look up a class by its module, such as m2cgen, find scikit-learn's. The
# full name leads to the drop-in itself, which cloudpickle would copy otherwise.
_classes._dualgap = SimpleNamespace(**DROP_INS)
for _name, _drop_in in DROP_INS.items():
    _drop_in.__module__ = _classes.__name__
    _drop_in.__qualname__ = f"_dualgap.{_name}"
