"""Bases of kernel estimators, and of all estimators with a single problem."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted

from ..data.rows import Points
from ..data.types import Matrix, MatrixLike
from ..kernel import BlockSolver, Callable, Gram, Linear, Precomputed
from ..kernels.functions import Kernel, takes_items
from ..kernels.gram import Matrix as KernelMatrix
from ..kernels.gram import points_of
from ..kernels.predict import single_values
from ..losses import Vector
from ..problems.base import Problem
from ..problems.batch import SingleBatch
from ..problems.kernel import SingleKernelBatch
from ..solvers import Solver, get_solver, solvers_of
from ..training.batch import Job
from ..training.solution import Solutions
from .base import B, Estimator, Parameters
from .input import (
    TrainingData,
    linear_values,
    refuse_masks,
    refuse_store,
    require_fitted,
    rows_to_predict,
    unlabelled,
    validated,
)
from .parameters import (
    Count,
    Flag,
    Gamma,
    KernelLike,
    Megabytes,
    Number,
    ParameterHints,
    kernel_named,
)


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
        given = self.kernel
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
        kernel = self._as_fitted.kernel
        if kernel != "linear" and not isinstance(kernel, Linear):
            raise AttributeError("coef_ is only available with kernel='linear'")

    @property
    def coef_(self) -> Vector:
        """Weights of the features, a row for each problem; linear kernel only.

        The array is read-only, because predictions use `dual_coef_`.
        """
        self._refuse_coef()
        check_is_fitted(self)
        coef = self._weights(self.dual_coef_)
        coef.flags.writeable = False
        return coef

    def _weights(self, dual_coef: Vector) -> Vector:
        """Return the weights of the features with the linear kernel."""
        found: Vector = dual_coef @ self.support_vectors_
        return found


class KernelRows(NamedTuple):
    """Rows with a positive weight, their targets, if there are any, and weights."""

    matrix: KernelMatrix
    targets: NDArray[np.generic]
    weight: Vector | None


class SingleFit(Estimator[B]):
    """Base of estimators that solve a single problem."""

    @property
    def _supervised(self) -> bool:
        return isinstance(self, RegressorMixin)

    def _read(
        self, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> TrainingData:
        remedy = "read the text with dualgap.data.load_svmlight"
        refuse_store(X, type(self).__name__, remedy)
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        X, y, items = self._rows_and_targets(X, y)
        return unlabelled(X, y, sample_weight, items)

    def _rows_and_targets(
        self, X: MatrixLike, y: ArrayLike | None
    ) -> tuple[MatrixLike, NDArray[np.generic] | None, MatrixLike | None]:
        """Return them, and items for a kernel function, after checking them."""
        if self._supervised:
            return (*validated(self, X, y, y_numeric=True), None)
        return validated(self, X, "no_validation"), None, None


class Targets(RegressorMixin, ParameterHints):
    """Mixin of regressors, which predict the values of their problems."""

    if TYPE_CHECKING:

        def _values(self, X: MatrixLike) -> Vector: ...

    def predict(self, X: MatrixLike) -> Vector:
        """Predict the targets of rows.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Predicted targets; with several quantiles, shape (n_samples, n_quantiles).
        """
        return self._columns(self._values(X))

    def _columns(self, values: Vector) -> Vector:
        """Return one value of a row, or one for each quantile of a list."""
        return values[:, 0]


@dataclass(eq=False, repr=False)
class LinearSingle(SingleFit[SingleBatch]):
    """Base of linear estimators with a single problem.

    Parameters
    ----------
    warm_start : bool, default=False
        Start from the dual variables of the previous fit, which must have had the same
        rows.
    """

    _: KW_ONLY
    warm_start: Flag = False

    if TYPE_CHECKING:
        coef_: Vector = field(init=False)
        intercept_: Vector = field(init=False)
        support_: NDArray[np.intp] = field(init=False)
        dual_coef_: Vector = field(init=False)
        _n_rows: int = field(init=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _previous_duals(self, batch: SingleBatch) -> Vector:
        n, several = batch.only.n, len(batch)
        if several != len(self.dual_coef_):
            raise ValueError(
                f"warm_start=True: the previous fit had {len(self.dual_coef_)} "
                f"quantiles, but this one has {several}; set warm_start=False"
            )
        if n != self._n_rows:
            raise ValueError(
                f"warm_start=True: the previous fit had {self._n_rows} rows, but this "
                f"one has {n}; set warm_start=False for new data"
            )
        warm = np.zeros((several, n))
        warm[:, self.support_] = self.dual_coef_
        return warm

    def _keep_duals(self, found: Solutions) -> None:
        alpha = np.stack(list(found.alpha))
        self.support_ = np.flatnonzero(alpha.any(axis=0))
        self.dual_coef_ = alpha[:, self.support_]
        self._n_rows = alpha.shape[1]

    def _values(self, X: MatrixLike) -> Vector:
        """Return ``X @ coef_.T + intercept_``, shape (n_samples, n_problems)."""
        return linear_values(self, X).reshape(-1, len(self.intercept_))


@dataclass(eq=False, repr=False, kw_only=True)
class KernelSingle(KernelModel, SingleFit[SingleKernelBatch]):
    """Base of kernel estimators with a single problem.

    Parameters
    ----------
    solver : {"auto", "block"} or BlockSolver, default="auto"
        Training method. "auto" uses the block solver, and solves small problems up to
        rounding where that takes little extra time.
    max_iter : int, default=10000
        Largest number of epochs. An epoch is one working set.
    random_state : int, RandomState instance or None, default=0
        Seed of the solver. The same int gives the same model, bit for bit, for the same
        `cache_size`.
    n_jobs : int, optional
        Number of threads. In training they share rows of the kernel matrix, in
        prediction the rows of X. None means 1 unless :func:`joblib.parallel_config`
        sets another number; -1 uses all processors.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,), intp
        Indices of the support vectors among the training rows, sorted.
    n_support_ : ndarray of shape (1,), int32
        Number of support vectors.
    dual_coef_ : ndarray of shape (1, n_SV), float64
        Coefficients of the support vectors, between -c_i and c_i; their sum is 0.
    intercept_ : ndarray of shape (1,), float64
        Constant of the prediction.
    coef_ : ndarray of shape (1, n_features), float64
        Weights of the features; only with the linear kernel.
    """

    solver: Annotated[
        str | BlockSolver,
        StrOptions(set(solvers_of("kernel-regression"))),
        BlockSolver,
    ] = "auto"

    @abstractmethod
    def _problem(self, rows: KernelRows, C: float) -> Problem | Sequence[Problem]:
        """Return the problem, or problems, of rows."""

    def _rows_and_targets(
        self, X: MatrixLike, y: ArrayLike | None
    ) -> tuple[MatrixLike, NDArray[np.generic] | None, MatrixLike | None]:
        supervised = self._supervised
        options = {"y_numeric": True} if supervised else {}
        return self._training_rows(X, y, supervised, **options)

    def _batch(self, data: TrainingData, job: Job) -> SingleKernelBatch:
        record = self._kernel_of(data)
        points = points_of(data.X, record)
        kernel = record.resolve(points.X)
        return self._kernel_batch(points, kernel, data)

    def _kernel_batch(
        self,
        points: Points,
        kernel: Kernel,
        data: TrainingData,
        whole: KernelMatrix | None = None,
    ) -> SingleKernelBatch:
        """Return the problem, if need be over the kernel matrix of all rows."""
        weight, n = data.weight, points.X.shape[0]
        kept = np.arange(n) if weight is None else np.flatnonzero(weight > 0.0)
        if whole is None and (isinstance(kernel, Precomputed) or len(kept) == n):
            whole = Gram(points, kernel, self.cache_size)
        if whole is None:
            matrix: KernelMatrix = Gram(points[kept], kernel, self.cache_size)
        else:
            matrix = whole if len(kept) == n else whole.subset(kept)
        rows = KernelRows(
            matrix,
            np.empty(0) if data.y is None else data.y[kept],
            None if weight is None else weight[kept],
        )
        make, name = partial(self._problem, rows), type(self).__name__
        return SingleKernelBatch(
            make(getattr(self, "C", math.nan)),
            name,
            make,
            points=points,
            place=kept,
            kernel=kernel,
        )

    def _solver(self, batch: SingleKernelBatch, job: Job) -> Solver:
        solver = get_solver(self.solver, batch.kind)
        if isinstance(self.solver, str) and isinstance(solver, BlockSolver):
            solver = replace(solver, threads=job.threads)
        return solver

    def _keep(
        self, data: TrainingData, batch: SingleKernelBatch, found: Solutions
    ) -> None:
        alpha = np.stack(list(found.alpha))
        used = np.flatnonzero(alpha.any(axis=0))
        self.support_ = batch.place[used]
        self.n_support_ = np.array([used.size], np.int32)
        self.dual_coef_ = alpha[:, used]
        self.intercept_ = np.array([found[k].bias for k in range(len(alpha))])
        self.shape_fit_ = batch.points.X.shape
        vectors = batch.points, batch.kernel, self.support_
        self._keep_vectors(*vectors, found, data.items)

    def _values(self, X: MatrixLike) -> Vector:
        """Return ``sum_i a_i k(x_i, x) + intercept``, shape (n_samples, n_problems)."""
        kernel, X = self._prediction_rows(X)
        values = [
            single_values(
                kernel,
                X,
                self.support_vectors_,
                self.dual_coef_[k : k + 1],
                float(intercept),
                support=self.support_,
                n_jobs=self.n_jobs,
            )
            for k, intercept in enumerate(self.intercept_)
        ]
        return np.stack(values, axis=1)
