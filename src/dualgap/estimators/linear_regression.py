"""Linear support vector regression, and the linear one-class SVM."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..data.rows import check_indices
from ..data.types import MatrixLike
from ..losses import RESIDUAL_LOSSES, Vector
from ..problems.one_class import OneClassProblem
from ..problems.regression import RegressionProblem
from ..solvers import solver_for, solvers_of
from ..solvers.small_regression import solve_regression
from ..training import Solution
from ._callbacks import Fitted
from ._certain import CertainDecisions
from ._columns import StoredColumns
from .arguments import validate_data
from .fitting import SmallPickle, checked, need_duals, refuse_masks, validated
from .parameters import Constraints, constraints
from .single import ZERO, Novelty, SingleFit, checked_weights, on_the_plane
from .training import begin

if TYPE_CHECKING:
    from sklearn.utils import Tags


__all__ = ["LinearOneClassSVM", "LinearSVR"]

_COMMON: Constraints = {
    **constraints(
        "tol", "atol", "max_epochs", "time_limit", "warm_start", "n_jobs", "verbose"
    ),
}


class _LinearFit(SmallPickle, SingleFit):
    """Base of linear estimators that solve a single problem and can be warm-started."""

    warm_start: bool
    n_jobs: int | None
    coef_: Vector
    intercept_: Vector

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: MatrixLike, y: ArrayLike = "no_validation") -> Any:
        self._refuse_store(X)
        refuse_masks(X=X, y=y)
        return validated(
            self, X, y, **({} if isinstance(y, str) else {"y_numeric": True})
        )

    def _threads(self) -> int:
        return max(1, int(effective_n_jobs(self.n_jobs)))

    def _previous_duals(self, n: int) -> Vector | None:
        """Return the dual variables to start from, (n,); None for a cold start."""
        if not self.warm_start:
            return None
        need_duals(self, "warm_start=True")
        if not hasattr(self, "dual_coef_"):
            return None
        if n != self._n_rows:
            raise ValueError(
                f"warm_start=True: the previous fit had {self._n_rows} rows, but this "
                f"one has {n}; set warm_start=False for new data"
            )
        warm = np.zeros(n)
        warm[self.support_] = self.dual_coef_[0]
        return warm

    def _keep_duals(self, alpha: Vector) -> None:
        self.support_ = np.flatnonzero(alpha)
        self.dual_coef_ = alpha[None, self.support_]
        self._n_rows = len(alpha)

    def _scores(self, X: MatrixLike) -> Vector:
        """Return ``X @ coef`` in float64, shape (n_samples,)."""
        check_is_fitted(self)
        finite = issparse(X) and check_indices(X)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=not finite,
        )
        scores: Vector = safe_sparse_dot(X, self.coef_.ravel())
        return scores


class LinearSVR(
    CertainDecisions,
    _LinearFit,
    RegressorMixin,
    BaseEstimator,
):
    r"""Linear support vector regressor with a certificate of optimality.

    It solves the problem of LIBLINEAR (-s 11, 12, 13) and scikit-learn's ``LinearSVR``,
    until a relative duality gap of `tol` is proved.

    Parameters
    ----------
    epsilon : float, default=0.0
        Residuals up to `epsilon` cost nothing. Choose it on the scale of the targets.
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/D`` to prove. The objective is then within a
        factor ``1 + tol`` of the optimum.
    atol : float, default=0.0
        Duality gap ``P - D`` to prove, in units of the objective below; 0 leaves it
        out. `fit` ends once `tol` or `atol` is proved. See
        :class:`LinearSVC` for lambda instead of C.
    C : float, default=1.0
        Weight of the loss, summed over the rows.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, \
            default="epsilon_insensitive"
        Loss of the residual r: ``max(0, |r| - epsilon)``, or its square.
    fit_intercept : bool, default=True
        Whether to fit a bias: the weight of a constant feature, penalised like the
        other weights.
    intercept_scaling : float, default=1.0
        Value of the constant feature. A larger value penalises the bias less.
    solver : {"auto", "dcd", "interior-point", "newton"}, default="auto"
        Training method: dual coordinate descent [1]_; for the squared loss, Newton's
        method [2]_; for the other loss, interior point. "auto" uses Newton's method if
        there are at least 4 times as many rows as features, and interior point for up
        to 100 features unless C is small for the units of X and y.
    max_epochs : int, default=10000
        Largest number of epochs.
    time_limit : float, optional
        Seconds for the fit.
    warm_start : bool, default=False
        Start from the dual variables of the previous fit, which must have had the same
        rows.
    random_state : int, RandomState instance or None, default=0
        Seed of the order of the rows. The same int gives the same model, bit for bit,
        for the same `n_jobs`.
    n_jobs : int, optional
        Number of threads for the exact passes over all rows. None means 1 unless
        :func:`joblib.parallel_config` sets another number; -1 uses all processors.
    verbose : int, default=0
        1 logs the fit, 2 also each epoch, to the logger "dualgap" and, if the program
        has no log handler, to standard output.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
        Weights of the features.
    intercept_ : ndarray of shape (1,), float64
        Constant of the prediction; 0 without an intercept.
    support_ : ndarray of shape (n_support,), intp
        Indices of the rows with a non-zero dual variable, sorted.
    dual_coef_ : ndarray of shape (1, n_support), float64
        Dual variables of the rows in `support_`, the dual point of the certificate.
        ``coef_ = dual_coef_ @ X[support_]``; with Newton's method, the two sides differ
        by at most ``sqrt(2 certificate_.gap)``. Pickles leave out it and `support_`,
        except with ``warm_start=True``.
    n_iter_ : int
        Number of epochs.
    certificate_ : Certificate
        Proven bound on the distance from the optimum.
    history_ : structured ndarray
        One record per epoch, and one for a final exact pass.
    n_features_in_ : int
        Number of features seen by fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has column names that are all strings.

    See Also
    --------
    sklearn.svm.LinearSVR : The same model, without a proof of accuracy.
    SVR : Support vector regressor with kernels and an unpenalised bias.

    Notes
    -----
    With costs ``c_i = C * sample_weight_i`` it minimises

    .. math:: P(w) = \tfrac12 \|w\|^2
              + \sum_i c_i \max(0, |y_i - w \cdot x_i| - \epsilon)^p

    with p = 1 or 2. With `fit_intercept`, every row ends in the constant feature
    `intercept_scaling`. The methods are dual coordinate descent [1]_, for p = 2
    Newton's method with an exact line search [2]_, and for p = 1 interior point.
    Small problems are solved more accurately than `tol`.

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

    _parameter_constraints: ClassVar[Constraints] = {
        **constraints("C", "fit_intercept", "intercept_scaling", "random_state"),
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "loss": [StrOptions(set(RESIDUAL_LOSSES))],
        "solver": [StrOptions({"auto", *solvers_of("regression")})],
        **_COMMON,
    }

    def __init__(
        self,
        epsilon: float = 0.0,
        *,
        tol: float = 1e-3,
        atol: float = 0.0,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        solver: str = "auto",
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.atol = atol
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

    @checked
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LinearSVR:
        """Train the model and prove its accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C, zero or positive: the integer k counts like k equal rows.

        Returns
        -------
        LinearSVR
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, X or y contains NaN or infinite
            values, no row has a positive weight, or a warm start does not match the
            data.

        Warns
        -----
        ConvergenceWarning
            If the relative gap `tol` was not proved. The message tells what was.
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

        def attributes(w: Vector) -> Fitted:
            coef, intercept = problem.coef(w)
            coef = columns.spread(coef.copy())
            return {"coef_": coef, "intercept_": np.array([intercept])}

        def keep(solution: Solution) -> None:
            for name, value in attributes(solution.w).items():
                setattr(self, name, value)
            self._keep_duals(solution.alpha)

        solver = solver_for(problem, self.solver)
        self._train(
            problem,
            solver,
            {"X": X, "y": y, "sample_weight": sample_weight},
            keep,
            stop,
            warm=self._previous_duals(problem.n),
            attributes=attributes,
            together=partial(solve_regression, solver, problem),
        )
        return self

    def predict(self, X: MatrixLike) -> Vector:
        """Predict the targets of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Predicted targets.
        """
        return self._scores(X) + self.intercept_[0]


class LinearOneClassSVM(
    Novelty,
    _LinearFit,
    BaseEstimator,
):
    r"""Linear one-class SVM for novelty detection, with a certificate of optimality.

    It finds the plane ``coef_ . x = offset_`` that separates most rows from the origin.
    This is the model of ``OneClassSVM(kernel="linear")`` and of LIBLINEAR's -s 21.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: an upper bound on the fraction of training rows on the wrong side of
        the plane, and a lower bound on the fraction of support vectors.
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/|P|`` to prove.
    atol : float, default=0.0
        Duality gap ``P - D`` to prove, in units of the objective below; 0 leaves it
        out. `fit` ends once `tol` or `atol` is proved.
    max_epochs : int, default=10000
        Largest number of epochs.
    time_limit : float, optional
        Seconds for the fit.
    warm_start : bool, default=False
        Start from the dual variables of the previous fit, which must have had the same
        rows.
    n_jobs : int, optional
        Number of threads for passes over all rows. None means 1 unless
        :func:`joblib.parallel_config` sets another number; -1 uses all processors.
    verbose : int, default=0
        1 logs the fit, 2 also each epoch, to the logger "dualgap" and, if the program
        has no log handler, to standard output.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), float64
        Weights of the features.
    offset_ : ndarray of shape (1,), float64
        Offset of the plane: ``decision_function = score_samples - offset_``.
    intercept_ : ndarray of shape (1,), float64
        ``-offset_``.
    support_ : ndarray of shape (n_support,), intp
        Indices of the rows with a positive dual variable, sorted.
    dual_coef_ : ndarray of shape (1, n_support), float64
        Dual variables of the rows in `support_`, between 0 and the weight of the row.
        Their sum is nu times the sum of the weights.
        ``coef_ = dual_coef_ @ X[support_]``.
    n_iter_, certificate_, history_, n_features_in_, feature_names_in_
        As in :class:`LinearSVR`.

    See Also
    --------
    OneClassSVM : One-class SVM with kernels. A linear one cannot enclose rows that lie
        around the origin.
    sklearn.linear_model.SGDOneClassSVM : The same model, by stochastic gradients.

    Notes
    -----
    With weights ``c_i = sample_weight_i`` it minimises

    .. math:: P(w, \rho) = \tfrac12 \|w\|^2 - \nu \sum_i c_i \, \rho
              + \sum_i c_i \max(0, \rho - w \cdot x_i)

    by dual coordinate descent on pairs of variables [1]_. The optimum is
    :math:`-\tfrac12 \|w\|^2`. The plane passes through support vectors, which have a
    decision of 0 and count as inliers.

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

    _parameter_constraints: ClassVar[Constraints] = {
        "nu": [Interval(Real, 0, 1, closed="right")],
        **_COMMON,
    }

    def __init__(
        self,
        nu: float = 0.5,
        *,
        tol: float = 1e-3,
        atol: float = 0.0,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.nu = nu
        self.tol = tol
        self.atol = atol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checked
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> LinearOneClassSVM:
        """Train the model and prove its accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : Ignored
            Present for compatibility with scikit-learn's pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, zero or positive: the integer k counts like k equal
            rows.

        Returns
        -------
        LinearOneClassSVM
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, X contains NaN or infinite values,
            no row has a positive weight, or a warm start does not match the data.

        Warns
        -----
        ConvergenceWarning
            If the relative gap `tol` was not proved. The message tells what was.
        DegenerateWarning
            If rounding decides the predictions: w = 0 is optimal, or all training rows
            lie on the boundary.
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

        solution = self._train(
            problem,
            solver_for(problem),
            {"X": X, "y": None, "sample_weight": sample_weight},
            keep,
            stop,
            warm=self._previous_duals(problem.n),
        )

        def decisions() -> Vector:
            values: Vector = problem.margins(solution.w) + self.intercept_
            return values[problem.cost > 0.0]

        self._tell_of_chance(solution, decisions)
        return self

    def decision_function(self, X: MatrixLike) -> Vector:
        """Return the scores minus `offset_`: negative for outliers, 0 on the plane.

        Values below 1e-9 times the offset in size are within rounding and set to 0.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Decisions.
        """
        check_is_fitted(self)
        offset = float(self.offset_[0])
        return on_the_plane(self._scores(X) - offset, self._least)

    @property
    def _least(self) -> float:
        """Size up to which a decision counts as 0."""
        return ZERO * abs(float(self.offset_[0]))
