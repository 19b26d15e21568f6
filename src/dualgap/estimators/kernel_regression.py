"""Support vector regression and the one-class SVM, with kernels."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from ..kernel import Auto, BlockSolver, Gram, KernelOneClass, KernelRegression
from ..kernel.functions import Kernel, Precomputed
from ..kernel.gram import as_data
from ..kernel.predict import single_values
from ..kernel.regression import BoxProblem
from ..loop import Solution
from ..losses import Vector
from ._fitting import CACHE_SIZE, N_JOBS, refuse_masks
from ._kernels import KERNEL_CONSTRAINTS, KernelParameters
from ._single import SingleFit, begin, checked_weights, on_the_plane

__all__ = ["BOX_SOLVERS", "SVR", "OneClassSVM"]

#: What trains these problems.
BOX_SOLVERS: dict[str, type[BlockSolver]] = {
    solver.name: solver for solver in (Auto, BlockSolver)
}

_CONSTRAINTS: dict[str, list[Any]] = {
    **KERNEL_CONSTRAINTS,
    "solver": [StrOptions(set(BOX_SOLVERS)), BlockSolver],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_epochs": [Interval(Integral, 1, None, closed="left")],
    "time_limit": [Interval(Real, 0, None, closed="neither"), None],
    "cache_size": CACHE_SIZE,
    "random_state": ["random_state"],
    "n_jobs": N_JOBS,
    "verbose": ["verbose"],
}


class _KernelFit(KernelParameters, SingleFit):
    """Data in, support vectors kept, scores out."""

    _depth = 6  # through _fit_problem
    solver: str | BlockSolver
    time_limit: float | None
    cache_size: float
    n_jobs: int | None
    support_: NDArray[np.intp]
    dual_coef_: Vector
    intercept_: Vector

    def _fit_problem(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        problem_of: Function[[Any, Any, Vector | None], BoxProblem],
    ) -> None:
        """Train; `problem_of(matrix, y, weight)` is the problem of the rows used."""
        self._refuse_store(X)
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        stop = begin(self.time_limit)
        kernel = self._kernel_record()
        supervised = {} if y is None else {"y_numeric": True}
        found = validate_data(
            self,
            X,
            "no_validation" if y is None else y,
            accept_sparse=["csr", "csc", "coo"],
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,  # as_data looks at every entry once
            **supervised,
        )
        X, y = (found, None) if y is None else found
        weight = checked_weights(sample_weight, X)
        data = {"X": X, "y": y, "sample_weight": sample_weight}
        X = as_data(X, kernel)
        kernel = kernel.resolve(X, weight)
        kept = slice(None) if weight is None else np.flatnonzero(weight > 0.0)
        numbers = np.arange(X.shape[0])[kept]
        if not numbers.size:
            raise ValueError("sample_weight is zero everywhere; one must be positive")
        used = X
        if isinstance(kernel, Precomputed):
            matrix: Any = Gram(X, kernel, self.cache_size)
            if numbers.size < X.shape[0]:
                matrix = matrix.subset(numbers)
        else:
            used = X if numbers.size == X.shape[0] else X[numbers]
            matrix = Gram(used, kernel, self.cache_size)
        problem = problem_of(
            matrix,
            None if y is None else y[kept],
            None if weight is None else weight[kept],
        )

        def keep(solution: Solution) -> None:
            assert solution.bias is not None
            support = np.flatnonzero(solution.alpha)
            self.support_ = numbers[support]
            self.n_support_ = np.array([support.size], np.int32)
            self.dual_coef_ = solution.alpha[None, support]
            self.intercept_ = np.array([solution.bias])
            self.support_vectors_ = (
                np.empty((0, 0)) if self._precomputed else used[support]
            )
            self._fitted_kernel = kernel
            self.shape_fit_ = X.shape
            self.fit_status_ = int(not solution.certificate.certified)

        solver = self.solver
        if isinstance(solver, str):
            threads = max(1, int(effective_n_jobs(self.n_jobs)))
            solver = replace(BOX_SOLVERS[solver](), threads=threads)
        self._train(problem, solver, data, keep, stop)

    @property
    def coef_(self) -> Vector:
        """Weights of the features, shape (1, n_features); linear kernel only.

        Read-only: the model is `dual_coef_`.
        """
        self._refuse_coef()
        check_is_fitted(self)
        coef: Vector = self.dual_coef_ @ self.support_vectors_
        coef.flags.writeable = False
        return coef

    def _values(self, X: Any) -> Vector:
        """``sum_i a_i k(x_i, x) + intercept``, shape (n_samples,)."""
        check_is_fitted(self)
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
        kernel: Kernel = self._fitted_kernel
        return single_values(
            kernel,
            X,
            self.support_vectors_,
            self.dual_coef_,
            float(self.intercept_[0]),
            support=self.support_,
            n_jobs=self.n_jobs,
        )


class SVR(
    _KernelFit,
    RegressorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    r"""Support vector regression with kernels, trained to a certificate.

    Solves the epsilon-SVR of LIBSVM and scikit-learn, whose bias is not penalised,
    until the duality gap proves the accuracy asked.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, record \
            or callable, default="rbf"
        As for :class:`SVC`.
    degree : int, default=3
        Of the kernel "poly".
    gamma : {"scale", "auto", "mean-distance"} or float, default="scale"
        As for :class:`SVC`.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/D`` to prove. The objective is then within a
        factor ``1 + tol`` of the optimum.
    C : float, default=1.0
        Weight of the loss, summed over the rows.
    epsilon : float, default=0.1
        Residuals up to it cost nothing. It depends on the scale of the targets.
    solver : {"auto", "block"} or BlockSolver, default="auto"
        "auto" is the block solver, and solves small problems to rounding where that
        takes little longer.
    max_epochs : int, default=10000
        Largest number of epochs, each one working set.
    time_limit : float, optional
        Seconds for the fit.
    cache_size : float, default=200
        Kernel values held, in megabytes (10**6 bytes).
    random_state : int, RandomState instance or None, default=None
        Seed of the solver. The same int gives the same model, bit for bit, for a given
        `cache_size`.
    n_jobs : int, optional
        Threads over kernel rows in training and over the rows in prediction.
    verbose : int, default=0
        1 logs the fit, 2 each epoch, through the logger "dualgap" and, if the program
        handles no logs, to standard output.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,), intp
        Training rows of the support vectors, sorted.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Of the type of X; empty, of shape (0, 0), for a precomputed kernel.
    n_support_ : ndarray of shape (1,), int32
        Number of support vectors.
    dual_coef_ : ndarray of shape (1, n_SV), float64
        Their coefficients, between -c_i and c_i; their sum is 0.
    intercept_ : ndarray of shape (1,), float64
        Constant of the prediction.
    coef_ : ndarray of shape (1, n_features), float64
        Weights of the features; only with the linear kernel.
    fit_status_ : int
        0 if the fit is certified, else 1.
    shape_fit_ : tuple of int
        Shape of X.
    n_iter_ : int
        Epochs.
    certificate_ : Certificate
        What is proved about the model.
    history_ : structured ndarray
        One record per epoch.
    n_features_in_ : int
        Number of features seen by fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has names that are all strings.

    See Also
    --------
    sklearn.svm.SVR : The same problem, without a proof.
    LinearSVR : Faster where the kernel is linear.

    Notes
    -----
    With costs ``c_i = C * sample_weight_i`` it minimises

    .. math:: P = \tfrac12 \|w\|^2 + \sum_i c_i \max(0, |y_i - f(x_i)| - \epsilon),
              \qquad f(x) = \sum_i a_i k(x_i, x) + b

    over w and b, by the block solver of :class:`SVC` [1]_. Rows without weight are left
    out.

    References
    ----------
    .. [1] A. J. Smola, B. Schoelkopf, "A tutorial on support vector regression",
       Statistics and Computing 14, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from dualgap import SVR
    >>> X = np.linspace(0.0, 6.0, 50)[:, None]
    >>> y = np.sin(X).ravel()
    >>> model = SVR(C=10.0, epsilon=0.05).fit(X, y)
    >>> model.certificate_.certified
    True
    >>> bool(np.abs(model.predict(X) - y).max() < 0.06)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        **_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        kernel: str | Kernel | Function[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        solver: str | BlockSolver = "auto",
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        cache_size: float = 200,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.solver = solver
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SVR:
        """Train.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to learn from; the kernel matrix of shape (n_samples, n_samples) if
            the kernel is precomputed.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C, zero or positive: the integer k is worth k equal rows.

        Returns
        -------
        SVR
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is not what is described above, X or y holds
            NaN or infinite values, no row has a positive weight, or the kernel matrix
            is not positive semidefinite.

        Warns
        -----
        ConvergenceWarning
            If the accuracy asked was not proved, with the accuracy that was.
        """
        if y is None:
            raise ValueError(
                "This SVR estimator requires y to be passed, but the target y is None."
            )
        self._fit_problem(
            X,
            y,
            sample_weight,
            lambda matrix, targets, weight: KernelRegression(
                matrix, targets, self.C, epsilon=self.epsilon, sample_weight=weight
            ),
        )
        return self

    def predict(self, X: Any) -> Vector:
        """Predicted targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with a precomputed kernel k(x, x_i) for all training rows i, shape
            (n_samples, n_samples_fit).

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        return self._values(X)


class OneClassSVM(
    _KernelFit,
    OutlierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    r"""One-class SVM with kernels for novelty detection, trained to a certificate.

    The problem of LIBSVM and scikit-learn, on their scale.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, record \
            or callable, default="rbf"
        As for :class:`SVC`.
    degree : int, default=3
        Of the kernel "poly".
    gamma : {"scale", "auto", "mean-distance"} or float, default="scale"
        As for :class:`SVC`.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/|P|`` to prove.
    nu : float, default=0.5
        In (0, 1]: an upper bound on the share of training rows that are outliers, and
        a lower bound on the share of support vectors.
    solver, max_epochs, time_limit, cache_size, random_state, n_jobs, verbose
        As for :class:`SVR`.

    Attributes
    ----------
    offset_ : ndarray of shape (1,), float64
        ``decision_function = score_samples - offset_``.
    intercept_ : ndarray of shape (1,), float64
        ``-offset_``.
    dual_coef_ : ndarray of shape (1, n_SV), float64
        Between 0 and the weight of the row; their sum is nu times that of the weights.
    support_, support_vectors_, n_support_, coef_, fit_status_, shape_fit_
        As of :class:`SVR`.
    n_iter_, certificate_, history_, n_features_in_, feature_names_in_
        As of :class:`SVR`.

    See Also
    --------
    sklearn.svm.OneClassSVM : The same problem, without a proof.
    LinearOneClassSVM : Faster where the kernel is linear.

    Notes
    -----
    With weights ``c_i = sample_weight_i`` it minimises

    .. math:: P = \tfrac12 \|w\|^2 - \nu \sum_i c_i \, \rho
              + \sum_i c_i \max(0, \rho - g(x_i)), \qquad
              g(x) = \sum_i a_i k(x_i, x)

    with :math:`0 \le a_i \le c_i`, :math:`\sum_i a_i = \nu \sum_i c_i` [1]_. Its
    optimum is :math:`-\tfrac12 \|w\|^2`. The decisions of the
    support vectors on the boundary are 0: these are inliers. Rows without weight are
    left out.

    References
    ----------
    .. [1] B. Schoelkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola, R. C. Williamson,
       "Estimating the support of a high-dimensional distribution", Neural Computation
       13, 2001.

    Examples
    --------
    >>> from dualgap import OneClassSVM
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> model = OneClassSVM(gamma="auto").fit(X)
    >>> model.predict(X)
    array([-1,  1,  1,  1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "nu": [Interval(Real, 0, 1, closed="right")],
        **_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        kernel: str | Kernel | Function[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        solver: str | BlockSolver = "auto",
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        cache_size: float = 200,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.solver = solver
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> OneClassSVM:
        """Train.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to learn from; the kernel matrix of shape (n_samples, n_samples) if
            the kernel is precomputed.
        y : Ignored
            Present for scikit-learn's pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, zero or positive: the integer k is worth k equal rows.

        Returns
        -------
        OneClassSVM
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is not what is described above, X holds NaN
            or infinite values, no row has a positive weight, or the kernel matrix is
            not positive semidefinite.

        Warns
        -----
        ConvergenceWarning
            If the accuracy asked was not proved, with the accuracy that was.
        """
        self._fit_problem(
            X,
            None,
            sample_weight,
            lambda matrix, _, weight: KernelOneClass(
                matrix, self.nu, sample_weight=weight
            ),
        )
        return self

    @property
    def offset_(self) -> Vector:
        """``decision_function = score_samples - offset_``; shape (1,)."""
        check_is_fitted(self)
        offset: Vector = -self.intercept_
        return offset

    def score_samples(self, X: Any) -> Vector:
        """Scores ``sum_i a_i k(x_i, x)``: the lower, the more of an outlier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            See :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        return self.decision_function(X) + self.offset_[0]

    def decision_function(self, X: Any) -> Vector:
        """Scores less `offset_`: negative for outliers, 0 on the boundary.

        Within 1e-9 times the offset of 0 they are 0: that much is rounding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with a precomputed kernel k(x, x_i) for all training rows i, shape
            (n_samples, n_samples_fit).

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        return on_the_plane(self._values(X), float(self.offset_[0]))

    def predict(self, X: Any) -> NDArray[np.intp]:
        """1 for inliers, -1 for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            See :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,), intp
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1).astype(np.intp)
