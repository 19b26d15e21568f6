"""Linear support vector regression, and the linear one-class SVM."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OutlierMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from ..loop import Solution
from ..losses import RESIDUAL_LOSSES, Vector
from ..problem import check_indices
from ..regression import OneClassProblem, RegressionProblem
from ..solvers.newton import regression_solver
from ..solvers.regression import PairDescent
from ._columns import StoredColumns
from ._fitting import N_JOBS, refuse_masks
from ._single import SingleFit, begin, checked_weights, on_the_plane

__all__ = ["LinearOneClassSVM", "LinearSVR"]

_COMMON: dict[str, list[Any]] = {
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_epochs": [Interval(Integral, 1, None, closed="left")],
    "time_limit": [Interval(Real, 0, None, closed="neither"), None],
    "warm_start": ["boolean"],
    "n_jobs": N_JOBS,
    "verbose": ["verbose"],
}


class _LinearFit(SingleFit):
    """Data in, scores out, and duals kept for a warm start."""

    warm_start: bool
    n_jobs: int | None
    coef_: Vector
    intercept_: Vector

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: Any, y: Any = "no_validation") -> Any:
        self._refuse_store(X)
        refuse_masks(X=X, y=y)
        return validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc", "coo"],  # the problem says when it copies
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,  # the problem looks at every entry once
            **({} if isinstance(y, str) else {"y_numeric": True}),
        )

    def _threads(self) -> int:
        return max(1, int(effective_n_jobs(self.n_jobs)))

    def _previous_duals(self, n: int) -> Vector | None:
        """Dual variables to start from; None for a cold start."""
        if not self.warm_start or not hasattr(self, "dual_coef_"):
            return None
        if n != self._n_rows:
            raise ValueError(
                f"warm_start=True: the previous fit had {self._n_rows} rows, this one "
                f"has {n}; set warm_start=False for new data"
            )
        warm = np.zeros(n)
        warm[self.support_] = self.dual_coef_[0]
        return warm

    def _keep_duals(self, alpha: Vector) -> None:
        self.support_ = np.flatnonzero(alpha)
        self.dual_coef_ = alpha[None, self.support_]
        self._n_rows = len(alpha)

    def _scores(self, X: Any) -> Vector:
        """``X @ coef`` in float64, shape (n_samples,)."""
        check_is_fitted(self)
        if issparse(X):
            check_indices(X)
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
        scores: Vector = safe_sparse_dot(X, self.coef_.ravel())
        return scores


class LinearSVR(
    _LinearFit,
    RegressorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    r"""Linear support vector regression, trained to a certificate.

    Solves the problem of LIBLINEAR (-s 11, 12, 13) and of scikit-learn's ``LinearSVR``
    until the duality gap proves the accuracy asked.

    Parameters
    ----------
    epsilon : float, default=0.0
        Residuals up to it cost nothing. It depends on the scale of the targets.
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/D`` to prove. The objective is then within a
        factor ``1 + tol`` of the optimum.
    C : float, default=1.0
        Weight of the loss, summed over the rows.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, \
            default="epsilon_insensitive"
        ``max(0, |r| - epsilon)`` of the residual r, or its square.
    fit_intercept : bool, default=True
        Fit a bias: the weight of a constant feature, penalised like every other.
    intercept_scaling : float, default=1.0
        Value of the constant feature. The larger, the less the bias is penalised.
    solver : {"auto", "dcd", "newton"}, default="auto"
        Dual coordinate descent [1]_, or for the squared loss Newton's method [2]_,
        which "auto" takes where there are 4 times as many rows as features or more.
    max_epochs : int, default=10000
        Largest number of passes over the data.
    time_limit : float, optional
        Seconds for the fit.
    warm_start : bool, default=False
        Start from the dual variables of the previous fit, which must have had the same
        rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of the rows. The same int gives the same model, bit for bit,
        for the same `n_jobs`.
    n_jobs : int, optional
        Threads of the passes over all rows that prove the accuracy.
    verbose : int, default=0
        1 logs the fit, 2 each epoch, through the logger "dualgap" and, if the program
        handles no logs, to standard output.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
        Weights of the features.
    intercept_ : ndarray of shape (1,), float64
        Constant of the prediction; 0 without intercept.
    support_ : ndarray of shape (n_support,), intp
        Rows with a dual variable that is not 0, sorted.
    dual_coef_ : ndarray of shape (1, n_support), float64
        Their dual variables, the dual point of the certificate:
        ``coef_ = dual_coef_ @ X[support_]``, by Newton's method only within
        ``sqrt(2 certificate_.gap)``.
    n_iter_ : int
        Passes over the data.
    certificate_ : Certificate
        What is proved about the model.
    history_ : structured ndarray
        One record per epoch, and one of the closing exact pass.
    n_features_in_ : int
        Number of features seen by fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has names that are all strings.

    See Also
    --------
    sklearn.svm.LinearSVR : The same model, without a proof of accuracy.
    SVR : With kernels, and a bias that is not penalised.

    Notes
    -----
    With costs ``c_i = C * sample_weight_i`` it minimises

    .. math:: P(w) = \tfrac12 \|w\|^2
              + \sum_i c_i \max(0, |y_i - w \cdot x_i| - \epsilon)^p

    with p = 1 or 2, where with `fit_intercept` every row ends in the constant feature
    `intercept_scaling`, by dual coordinate descent [1]_ or, p = 2, by Newton's method
    with an exact line search [2]_. Small problems are solved further than `tol` asks.

    References
    ----------
    .. [1] C.-H. Ho, C.-J. Lin, "Large-scale linear support vector regression", JMLR
       13, 2012.
    .. [2] S. S. Keerthi, D. DeCoste, "A modified finite Newton method for fast solution
       of large scale linear SVMs", JMLR 6, 2005.

    Examples
    --------
    >>> from dualgap import LinearSVR
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X = scale(X)
    >>> model = LinearSVR(C=10.0, epsilon=5.0, random_state=0).fit(X, y)
    >>> model.certificate_.certified
    True
    >>> print(f"{model.score(X, y):.2f}")
    0.51
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "loss": [StrOptions(set(RESIDUAL_LOSSES))],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"auto", "dcd", "newton"})],
        "random_state": ["random_state"],
        **_COMMON,
    }

    def __init__(
        self,
        epsilon: float = 0.0,
        *,
        tol: float = 1e-3,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        solver: str = "auto",
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LinearSVR:
        """Train.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to learn from.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C, zero or positive: the integer k is worth k equal rows.

        Returns
        -------
        LinearSVR
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is not what is described above, X or y holds
            NaN or infinite values, no row has a positive weight, or a warm start does
            not fit the data.

        Warns
        -----
        ConvergenceWarning
            If the accuracy asked was not proved, with the accuracy that was.
        """
        stop = begin(self.time_limit)
        X, y = self._read(X, y)
        columns = StoredColumns(X)
        problem = RegressionProblem(
            columns.X,
            y,
            self.C,
            loss=RESIDUAL_LOSSES[self.loss](self.epsilon),
            sample_weight=checked_weights(sample_weight, X),
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            n_jobs=self._threads(),
        )

        def attributes(w: Vector) -> dict[str, Any]:
            coef, intercept = problem.coef(w)
            coef = columns.spread(coef.copy())
            return {"coef_": coef, "intercept_": np.array([intercept])}

        def keep(solution: Solution) -> None:
            for name, value in attributes(solution.w).items():
                setattr(self, name, value)
            self._keep_duals(solution.alpha)

        self._train(
            problem,
            regression_solver(self.solver, problem),
            {"X": X, "y": y, "sample_weight": sample_weight},
            keep,
            stop,
            warm=self._previous_duals(problem.n),
            attributes=attributes,
        )
        return self

    def predict(self, X: Any) -> Vector:
        """Predicted targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        return self._scores(X) + self.intercept_[0]


class LinearOneClassSVM(
    _LinearFit,
    OutlierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    r"""Linear one-class SVM for novelty detection, trained to a certificate.

    The plane ``coef_ . x = offset_`` that separates most rows from the origin, the
    model of ``OneClassSVM(kernel="linear")`` and of LIBLINEAR's -s 21.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: an upper bound on the share of rows on the wrong side of the plane,
        and a lower bound on the share of support vectors.
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/|P|`` to prove.
    max_epochs : int, default=10000
        Largest number of passes over the data.
    time_limit : float, optional
        Seconds for the fit.
    warm_start : bool, default=False
        Start from the dual variables of the previous fit, which must have had the same
        rows.
    n_jobs : int, optional
        Threads of the passes over all rows.
    verbose : int, default=0
        1 logs the fit, 2 each epoch, through the logger "dualgap" and, if the program
        handles no logs, to standard output.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), float64
        Weights of the features.
    offset_ : ndarray of shape (1,), float64
        ``decision_function = score_samples - offset_``.
    intercept_ : ndarray of shape (1,), float64
        ``-offset_``.
    support_ : ndarray of shape (n_support,), intp
        Rows with a positive dual variable, sorted.
    dual_coef_ : ndarray of shape (1, n_support), float64
        Their dual variables, between 0 and the weight of the row; their sum is nu
        times that of the weights. ``coef_ = dual_coef_ @ X[support_]``.
    n_iter_, certificate_, history_, n_features_in_, feature_names_in_
        As of :class:`LinearSVR`.

    See Also
    --------
    OneClassSVM : With kernels; a linear one cannot enclose rows around the origin.
    sklearn.linear_model.SGDOneClassSVM : The same model by stochastic gradients.

    Notes
    -----
    It minimises, with weights ``c_i = sample_weight_i``,

    .. math:: P(w, \rho) = \tfrac12 \|w\|^2 - \nu \sum_i c_i \, \rho
              + \sum_i c_i \max(0, \rho - w \cdot x_i)

    by dual coordinate descent on pairs [1]_. Its optimum is
    :math:`-\tfrac12 \|w\|^2`. The plane passes through support vectors, whose
    decisions are 0: these are inliers.

    References
    ----------
    .. [1] H.-Y. Chou, P.-Y. Lin, C.-J. Lin, "Dual coordinate-descent methods for
       linear one-class SVM and SVDD", SDM 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from dualgap import LinearOneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + [4.0, 4.0]
    >>> model = LinearOneClassSVM(nu=0.1).fit(X)
    >>> model.certificate_.certified
    True
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([-1,  1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "nu": [Interval(Real, 0, 1, closed="right")],
        **_COMMON,
    }

    def __init__(
        self,
        nu: float = 0.5,
        *,
        tol: float = 1e-3,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.nu = nu
        self.tol = tol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> LinearOneClassSVM:
        """Train.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to learn from.
        y : Ignored
            Present for scikit-learn's pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, zero or positive: the integer k is worth k equal rows.

        Returns
        -------
        LinearOneClassSVM
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is not what is described above, X holds NaN
            or infinite values, no row has a positive weight, or a warm start does not
            fit the data.

        Warns
        -----
        ConvergenceWarning
            If the accuracy asked was not proved, with the accuracy that was.
        """
        stop = begin(self.time_limit)
        X = self._read(X)
        columns = StoredColumns(X)
        problem = OneClassProblem(
            columns.X,
            self.nu,
            sample_weight=checked_weights(sample_weight, X),
            n_jobs=self._threads(),
        )

        def keep(solution: Solution) -> None:
            assert solution.bias is not None
            self.coef_ = columns.spread(solution.w[None, :].copy())
            self.intercept_ = np.array([solution.bias])
            self.offset_ = -self.intercept_
            self._keep_duals(solution.alpha)

        self._train(
            problem,
            PairDescent(),
            {"X": X, "y": None, "sample_weight": sample_weight},
            keep,
            stop,
            warm=self._previous_duals(problem.n),
        )
        return self

    def score_samples(self, X: Any) -> Vector:
        """Scores ``coef_ . x``: the lower, the more of an outlier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        return self.decision_function(X) + self.offset_[0]

    def decision_function(self, X: Any) -> Vector:
        """Scores less `offset_`: negative for outliers, 0 on the plane.

        Within 1e-9 times the offset of 0 they are 0: that much is rounding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        check_is_fitted(self)
        offset = float(self.offset_[0])
        return on_the_plane(self._scores(X) - offset, offset)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """1 for inliers, -1 for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), intp
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1).astype(np.intp)
