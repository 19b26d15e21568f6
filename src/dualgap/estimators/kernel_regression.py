"""Support vector regression and the one-class SVM, with kernels."""

from __future__ import annotations

from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from ..data.types import MatrixLike
from ..kernel import BlockSolver, KernelOneClass, KernelRegression
from ..kernels.functions import KernelLike, Precomputed
from ..losses import Vector
from ._certain import CertainDecisions
from .fitting import checked
from .kernel_single import CONSTRAINTS, KernelFit, least_decision
from .parameters import Constraints, constraints
from .single import Novelty, on_the_plane

__all__ = ["SVR", "OneClassSVM"]


class SVR(
    CertainDecisions,
    KernelFit,
    RegressorMixin,
    BaseEstimator,
):
    r"""Kernel support vector regressor with a certificate of optimality.

    It solves the epsilon-SVR of LIBSVM and scikit-learn, with an unpenalised bias,
    until a relative duality gap of `tol` is proved.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, record \
            or callable, default="rbf"
        Kernel, as for :class:`SVC`.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto", "mean-distance"} or float, default="scale"
        Scale of the kernel, as for :class:`SVC`.
    coef0 : float, default=0.0
        Constant term of the kernels "poly" and "sigmoid".
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/D`` to prove. The objective is then within a
        factor ``1 + tol`` of the optimum.
    atol : float, default=0.0
        Duality gap ``P - D`` to prove, in units of the objective below; 0 leaves it
        out. `fit` ends once `tol` or `atol` is proved. See
        :class:`LinearSVC` for lambda instead of C.
    C : float, default=1.0
        Weight of the loss, summed over the rows.
    epsilon : float, default=0.1
        Residuals up to `epsilon` cost nothing. Choose it on the scale of the targets.
    solver : {"auto", "block"} or BlockSolver, default="auto"
        Training method. "auto" uses the block solver, and solves small problems up to
        rounding where that takes little extra time.
    max_epochs : int, default=10000
        Largest number of epochs. An epoch is one working set.
    time_limit : float, optional
        Seconds for the fit.
    cache_size : float, default=200
        Size of the cache of kernel values in megabytes (10**6 bytes).
    random_state : int, RandomState instance or None, default=0
        Seed of the solver. The same int gives the same model, bit for bit, for the same
        `cache_size`.
    n_jobs : int, optional
        Number of threads. In training they share rows of the kernel matrix, in
        prediction the rows of X. None means 1 unless :func:`joblib.parallel_config`
        sets another number; -1 uses all processors.
    verbose : int, default=0
        1 logs the fit, 2 also each epoch, to the logger "dualgap" and, if the program
        has no log handler, to standard output.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,), intp
        Indices of the support vectors among the training rows, sorted.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Support vectors, of the type of X. Empty, of shape (0, 0), for a precomputed
        kernel.
    n_support_ : ndarray of shape (1,), int32
        Number of support vectors.
    dual_coef_ : ndarray of shape (1, n_SV), float64
        Coefficients of the support vectors, between -c_i and c_i; their sum is 0.
    intercept_ : ndarray of shape (1,), float64
        Constant of the prediction.
    coef_ : ndarray of shape (1, n_features), float64
        Weights of the features; only with the linear kernel.
    fit_status_ : int
        0 if the fit converged, else 1.
    shape_fit_ : tuple of int
        Shape of X.
    n_iter_ : int
        Number of epochs.
    certificate_ : Certificate
        Proven bound on the distance from the optimum.
    history_ : structured ndarray
        One record per epoch.
    n_features_in_ : int
        Number of features seen by fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has column names that are all strings.

    See Also
    --------
    sklearn.svm.SVR : The same problem, without a proof of accuracy.
    LinearSVR : Linear support vector regressor; faster if the kernel is linear.

    Notes
    -----
    With costs ``c_i = C * sample_weight_i`` it minimises

    .. math:: P = \tfrac12 \|w\|^2 + \sum_i c_i \max(0, |y_i - f(x_i)| - \epsilon),
              \qquad f(x) = \sum_i a_i k(x_i, x) + b

    over w and b [1]_, with the block solver of :class:`SVC`. Rows of weight 0 are left
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

    _parameter_constraints: ClassVar[Constraints] = {
        **constraints("C"),
        "epsilon": [Interval(Real, 0, None, closed="left")],
        **CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        atol: float = 0.0,
        C: float = 1.0,
        epsilon: float = 0.1,
        solver: str | BlockSolver = "auto",
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        cache_size: float = 200,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.atol = atol
        self.C = C
        self.epsilon = epsilon
        self.solver = solver
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checked
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> SVR:
        """Train the model and prove its accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, the kernel matrix of shape
            (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C, zero or positive: the integer k counts like k equal rows.

        Returns
        -------
        SVR
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, X or y contains NaN or infinite
            values, no row has a positive weight, or the kernel matrix is not positive
            semidefinite.

        Warns
        -----
        ConvergenceWarning
            If the relative gap `tol` was not proved. The message tells what was.
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

    def predict(self, X: MatrixLike) -> Vector:
        """Predict the targets of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with a precomputed kernel, k(x, x_i) for all training rows i, shape
            (n_samples, n_samples_fit).

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Predicted targets.
        """
        return self._values(X)


class OneClassSVM(
    Novelty,
    KernelFit,
    BaseEstimator,
):
    r"""Kernel one-class SVM for novelty detection, with a certificate of optimality.

    It solves the problem of LIBSVM and scikit-learn, on the same scale.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, record \
            or callable, default="rbf"
        Kernel, as for :class:`SVC`.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto", "mean-distance"} or float, default="scale"
        Scale of the kernel, as for :class:`SVC`.
    coef0 : float, default=0.0
        Constant term of the kernels "poly" and "sigmoid".
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/|P|`` to prove.
    atol : float, default=0.0
        Duality gap ``P - D`` to prove, in units of the objective below; 0 leaves it
        out. `fit` ends once `tol` or `atol` is proved.
    nu : float, default=0.5
        In (0, 1]: an upper bound on the fraction of training rows that are outliers,
        and a lower bound on the fraction of support vectors.
    solver, max_epochs, time_limit, cache_size, random_state, n_jobs, verbose
        As for :class:`SVR`.

    Attributes
    ----------
    offset_ : ndarray of shape (1,), float64
        Offset of the plane: ``decision_function = score_samples - offset_``.
    intercept_ : ndarray of shape (1,), float64
        ``-offset_``.
    dual_coef_ : ndarray of shape (1, n_SV), float64
        Coefficients of the support vectors, between 0 and the weight of the row. Their
        sum is nu times the sum of the weights.
    support_, support_vectors_, n_support_, coef_, fit_status_, shape_fit_
        As in :class:`SVR`.
    n_iter_, certificate_, history_, n_features_in_, feature_names_in_
        As in :class:`SVR`.

    See Also
    --------
    sklearn.svm.OneClassSVM : The same problem, without a proof of accuracy.
    LinearOneClassSVM : Linear one-class SVM; faster if the kernel is linear.

    Notes
    -----
    With weights ``c_i = sample_weight_i`` it minimises

    .. math:: P = \tfrac12 \|w\|^2 - \nu \sum_i c_i \, \rho
              + \sum_i c_i \max(0, \rho - g(x_i)), \qquad
              g(x) = \sum_i a_i k(x_i, x)

    with :math:`0 \le a_i \le c_i` and :math:`\sum_i a_i = \nu \sum_i c_i` [1]_. The
    optimum is :math:`-\tfrac12 \|w\|^2`. Support vectors on the boundary have a
    decision of 0 and count as inliers. Rows of weight 0 are left out.

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

    _parameter_constraints: ClassVar[Constraints] = {
        "nu": [Interval(Real, 0, 1, closed="right")],
        **CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        atol: float = 0.0,
        nu: float = 0.5,
        solver: str | BlockSolver = "auto",
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        cache_size: float = 200,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.atol = atol
        self.nu = nu
        self.solver = solver
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checked
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> OneClassSVM:
        """Train the model and prove its accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, the kernel matrix of shape
            (n_samples, n_samples).
        y : Ignored
            Present for compatibility with scikit-learn's pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, zero or positive: the integer k counts like k equal
            rows.

        Returns
        -------
        OneClassSVM
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, X contains NaN or infinite values,
            no row has a positive weight, or the kernel matrix is not positive
            semidefinite.

        Warns
        -----
        ConvergenceWarning
            If the relative gap `tol` was not proved. The message tells what was.
        DegenerateWarning
            If rounding decides the predictions: w = 0 is optimal, or all training rows
            lie on the boundary.
        """
        solution = self._fit_problem(
            X,
            None,
            sample_weight,
            lambda matrix, _, weight: KernelOneClass(
                matrix, self.nu, sample_weight=weight
            ),
        )
        self._tell_of_chance(solution, lambda: np.asarray(solution.decisions))
        return self

    @property
    def offset_(self) -> Vector:
        """Offset of the plane, shape (1,).

        ``decision_function = score_samples - offset_``.
        """
        check_is_fitted(self)
        offset: Vector = -self.intercept_
        return offset

    def decision_function(self, X: MatrixLike) -> Vector:
        """Return the scores minus `offset_`: negative for outliers, 0 on the boundary.

        Values within rounding are set to 0: those below 1e-9 times the offset in size,
        and those below 1e-13 times ``sum_i a_i max_i k(x_i, x_i)``. The second limit
        matters where the optimum is ``w = 0`` and the sums cancel; it is not used with
        a precomputed kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with a precomputed kernel, k(x, x_i) for all training rows i, shape
            (n_samples, n_samples_fit).

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Decisions.
        """
        return on_the_plane(self._values(X), self._least)

    @property
    def _least(self) -> float:
        """Size up to which a decision counts as 0."""
        return least_decision(
            Precomputed() if hasattr(self, "_items") else self._fitted_kernel,
            self.support_vectors_,
            self.dual_coef_,
            float(self.offset_[0]),
        )
