"""Parameters and attributes that the kernel estimators share."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import _check_y, check_consistent_length

from ..data.rows import Points
from ..data.types import Matrix, MatrixLike
from ..kernel import Callable, Linear, Precomputed
from ..kernels.functions import Kernel, takes_items
from ..losses import Vector
from ..training.solution import Solutions
from .base import Parameters
from .input import TrainingData, require_fitted, rows_to_predict, validated
from .parameters import Count, Gamma, KernelLike, Megabytes, Number, kernel_named


@dataclass(eq=False, repr=False)
class KernelParameters(Parameters):
    r"""Mixin for estimators and searches with a kernel.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, record \
            or callable, default="rbf"
        Kernel, given by its name, with the parameters `degree`, `gamma` and `coef0`; or
        as a record of :mod:`dualgap.kernel` with its own parameters, such as
        ``RBF(gamma=0.1)``; or as a function of two matrices that returns the kernel
        values of all pairs of their rows. If X holds strings or other objects, the
        function gets them as they are. With "precomputed", X is the kernel matrix. A
        kernel matrix that is not positive semidefinite raises an error, because it
        would have no certificate.
    degree : int, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant term of the kernels "poly" and "sigmoid".
    cache_size : float, default=200
        Size of the cache of kernel values in megabytes (10**6 bytes), for all threads
        together.
    """

    _: KW_ONLY
    kernel: KernelLike = "rbf"
    degree: Count = 3
    coef0: Number = 0.0
    cache_size: Megabytes = 200

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)


@dataclass(eq=False, repr=False)
class KernelModel(KernelParameters):
    """Mixin for estimators with a kernel, whose gamma is one value.

    Parameters
    ----------
    gamma : {"scale", "auto", "mean-distance"} or float, default="scale"
        Scale of the kernels "rbf", "poly", "sigmoid" and "laplacian". "scale" is
        ``1/(d Var(X))`` and "auto" is ``1/d``, as in scikit-learn; "mean-distance" is
        the inverse of the mean squared distance of two rows. Rows count equally,
        whatever their sample weights.

    Attributes
    ----------
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Support vectors, of the type of X, float32 or float64. Empty, of shape (0, 0),
        for a precomputed kernel, and for a kernel function of objects.
    fit_status_ : int
        0 if every problem converged, else 1.
    shape_fit_ : tuple of int
        Shape of X.
    """

    _: KW_ONLY
    gamma: Gamma = "scale"

    if TYPE_CHECKING:
        support_: NDArray[np.intp] = field(init=False)
        support_vectors_: Matrix = field(init=False)
        n_support_: NDArray[np.int32] = field(init=False)
        dual_coef_: Vector = field(init=False)
        intercept_: Vector = field(init=False)
        shape_fit_: tuple[int, ...] = field(init=False)
        _fitted_kernel: Kernel = field(init=False)
        _items: MatrixLike = field(init=False)

    def _kernel_record(self) -> Kernel:
        given: Any = self.kernel
        if isinstance(given, Kernel):
            return given
        if isinstance(given, type):
            raise ValueError(
                f"kernel={given.__name__} is a class; give an instance, such as "
                "RBF(gamma=0.1)"
            )
        if not isinstance(given, str):
            return Callable(given)
        return kernel_named(given, self.degree, self.gamma, self.coef0)

    def _training_rows(
        self, X: MatrixLike, y: ArrayLike | None, supervised: bool, **options: bool
    ) -> tuple[MatrixLike, NDArray[np.generic] | None, MatrixLike | None]:
        """Check the arguments of fit.

        Items are X as it was given, if a kernel function has to make numbers of it.
        """
        if not takes_items(self.kernel, X):
            found = validated(self, X, y if supervised else "no_validation", **options)
            return (*found, None) if supervised else (found, None, None)
        record = self._kernel_record()
        assert isinstance(record, Callable)
        targets = None
        if supervised:
            targets = _check_y(y, estimator=self, **options)
            check_consistent_length(X, targets)
        for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        return record.values(X, X), targets, X

    def _kernel_of(self, data: TrainingData) -> Kernel:
        """Return the kernel of the rows or of the matrix; gamma may be a rule."""
        return self._kernel_record() if data.items is None else Precomputed()

    def _keep_vectors(
        self,
        points: Points,
        kernel: Kernel,
        rows: NDArray[np.intp],
        found: Solutions,
        items: MatrixLike | None,
    ) -> None:
        """Keep the support vectors and the kernel.

        All items are kept: a kernel function may know the training set as a whole.
        """
        precomputed = isinstance(kernel, Precomputed)
        self.support_vectors_ = np.empty((0, 0)) if precomputed else points.X[rows]
        self._fitted_kernel = kernel
        self.fit_status_ = int(not found.certificate.certified)
        self.__dict__.pop("_items", None)
        if items is not None:
            self._fitted_kernel, self._items = self._kernel_record(), items
            self.shape_fit_ = getattr(items, "shape", (len(items),))

    def _prediction_rows(self, X: MatrixLike) -> tuple[Kernel, MatrixLike]:
        """Check rows to predict, and return their kernel and them.

        The core checks the values of rows itself.
        """
        require_fitted(self, "_fitted_kernel")
        kernel = self._fitted_kernel
        if hasattr(self, "_items"):
            assert isinstance(kernel, Callable)
            return Precomputed(), kernel.values(X, self._items)
        return kernel, rows_to_predict(self, X, finite=kernel.form is None)

    def _refuse_coef(self) -> None:
        """Raise an error if the kernel is not linear, for then there is no `coef_`."""
        if self.kernel != "linear" and not isinstance(self.kernel, Linear):
            raise AttributeError("coef_ is only available with kernel='linear'")
