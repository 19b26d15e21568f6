"""Kernel parameters that several estimators share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_y,
    check_consistent_length,
    check_is_fitted,
)

from ..data.types import MatrixLike
from ..kernel import (
    RBF,
    Callable,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from ..kernels.functions import Kernel, KernelLike, takes_items
from .fitting import rows_to_predict, validated
from .parameters import Constraints

if TYPE_CHECKING:
    from sklearn.utils import Tags


__all__ = ["KERNELS", "KernelParameters"]

KERNELS: dict[str, type[Kernel]] = {
    kernel.name: kernel
    for kernel in (Linear, Polynomial, RBF, Sigmoid, Laplacian, Precomputed)
}

KERNEL_CONSTRAINTS: Constraints = {
    "kernel": [StrOptions(set(KERNELS)), Kernel, callable],
    "degree": [Interval(Integral, 1, None, closed="left")],
    "gamma": [
        StrOptions({"scale", "auto", "mean-distance"}),
        Interval(Real, 0, None, closed="neither"),
    ],
    "coef0": [Interval(Real, None, None, closed="neither")],
}


class TrainingRows(NamedTuple):
    """Training rows, checked.

    Attributes
    ----------
    kernel : Kernel
        Its gamma may be a rule.
    X, y
        Rows and targets. X is a kernel matrix if there are `items`.
    items : sequence or None
        X as it was given, if a kernel function has to make numbers of it.
    """

    kernel: Kernel
    X: MatrixLike
    y: NDArray[np.generic] | None
    items: MatrixLike | None = None


class KernelParameters(BaseEstimator):
    """Mixin for estimators with `kernel`, `degree`, `gamma` and `coef0`."""

    kernel: KernelLike
    degree: int
    gamma: str | float
    coef0: float
    _fitted_kernel: Kernel
    #: Training objects that are no rows of numbers, for a kernel function of them.
    _items: MatrixLike

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)

    def _kernel_record(self) -> Kernel:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        if isinstance(self.kernel, type):
            raise ValueError(
                f"kernel={self.kernel.__name__} is a class; give an instance, such as "
                "RBF(gamma=0.1)"
            )
        if not isinstance(self.kernel, str):
            return Callable(self.kernel)
        own = {"degree": self.degree, "gamma": self.gamma, "coef0": self.coef0}
        record = KERNELS[self.kernel]
        known = getattr(record, "__dataclass_fields__", {})
        return record(**{name: own[name] for name in own if name in known})

    def _training_rows(
        self,
        X: MatrixLike,
        y: ArrayLike | None,
        supervised: bool = True,
        **options: bool,
    ) -> TrainingRows:
        """Check the arguments of fit."""
        kernel = self._kernel_record()
        if not takes_items(kernel, X):
            found = validated(self, X, y if supervised else "no_validation", **options)
            return TrainingRows(kernel, *(found if supervised else (found, None)))
        assert isinstance(kernel, Callable)
        targets = None
        if supervised:
            targets = _check_y(y, estimator=self, **options)
            check_consistent_length(X, targets)
        for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        return TrainingRows(Precomputed(), kernel.values(X, X), targets, X)

    def _keep_items(self, items: MatrixLike | None) -> None:
        """Set the attributes of a model whose kernel function takes any objects.

        It keeps all of them: a function may know the training set as a whole.
        """
        self.__dict__.pop("_items", None)
        if items is not None:
            self._fitted_kernel, self._items = self._kernel_record(), items
            self.shape_fit_ = getattr(items, "shape", (len(items),))

    def _prediction_rows(self, X: MatrixLike) -> tuple[Kernel, MatrixLike]:
        """Check rows to predict, and return their kernel and them.

        The core checks the values of rows itself.
        """
        check_is_fitted(self)
        kernel = self._fitted_kernel
        if hasattr(self, "_items"):
            assert isinstance(kernel, Callable)
            return Precomputed(), kernel.values(X, self._items)
        return kernel, rows_to_predict(self, X, finite=kernel.form is None)

    def _refuse_coef(self) -> None:
        """Raise an error if the kernel is not linear, for then there is no `coef_`."""
        if self.kernel != "linear" and not isinstance(self.kernel, Linear):
            raise AttributeError("coef_ is only available with kernel='linear'")
