"""Support vector regression, linear and with kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Literal, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import d2_pinball_score
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions

from ..data.columns import StoredColumns
from ..data.rows import Points
from ..data.types import MatrixLike
from ..kernel import KernelRegression
from ..kernels.functions import Kernel
from ..losses import Vector
from ..problems.batch import SingleBatch
from ..problems.regression import RegressionProblem
from ..solvers import Solver, solver_for, solvers_of
from ..training.batch import Job
from ..training.folds import FoldProblems
from ..training.solution import Solutions
from .callbacks import Fitted
from .certain import CertainDecisions
from .fitted import (
    FittedProblem,
    losses_of,
    single_kernel,
    table_of,
    terms_of_regression,
)
from .input import ROWS, TrainingData, check_array
from .kernels import KernelRows, KernelSingle, LinearSingle, Targets
from .parameters import Flag, NonNegative, Positive, Quantiles

#: Error of a share, as a part of the smaller tail, from which fits and reports warn.
_FAR = 0.2


def pulled_sentence(model: LinearSVR, cost: float) -> str:
    """Return a sentence if the penalty of the bias keeps shares far from quantiles.

    At the optimum the dual variables add up to ``intercept_/intercept_scaling**2``, and
    to `cost`, the summed costs, times the share that is missing below a prediction.
    """
    quantiles = np.ravel(cast("ArrayLike", model.quantile))
    scaling = model.intercept_scaling
    missing = model.intercept_ / (scaling**2 * cost)
    worst = np.abs(missing) / np.minimum(quantiles, 1.0 - quantiles)
    if model.loss != "quantile" or not model.fit_intercept or worst.max() <= _FAR:
        return ""
    k = int(worst.argmax())
    share = np.clip(quantiles[k] - missing[k], 0.0, 1.0)
    return (
        f"about {100.0 * share:.3g} % of the targets are at or below the predictions "
        f"of quantile {quantiles[k]:g}, because the bias is penalised; use "
        f"intercept_scaling={100.0 * scaling:g}, or kernel='linear' (SVR), whose bias "
        "is free"
    )


class QuantileColumns(Targets, CertainDecisions):
    """Mixin of regressors with a prediction for each quantile of a list."""

    if TYPE_CHECKING:
        loss: str
        quantile: float | ArrayLike

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # A quantile may be far from the mean, which R^2 judges.
        tags.regressor_tags.poor_score = self.loss == "quantile"
        return tags

    def predict(self, X: MatrixLike, *, sort_quantiles: bool = False) -> Vector:
        """Predict the targets of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        sort_quantiles : bool, default=False
            Whether to sort the predictions of a row for several quantiles, so that
            they do not cross: the rearrangement of [1]_. For every target, the sum of
            the pinball losses becomes smaller, or stays as it is without a crossing.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Predicted targets; with several quantiles, shape (n_samples, n_quantiles).

        References
        ----------
        .. [1] V. Chernozhukov, I. Fernandez-Val, A. Galichon, "Quantile and probability
           curves without crossing", Econometrica 78, 2010.
        """
        values = super().predict(X)
        if sort_quantiles and values.ndim > 1:
            order = np.argsort(cast("ArrayLike", self._as_fitted.quantile))
            values[:, order] = np.sort(values, axis=1)
        return values

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the R^2 of the predictions; of a quantile, their D^2.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, as for ``predict``.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            R^2. With ``loss="quantile"`` scikit-learn's ``d2_pinball_score``, by which
            a search chooses: 1 minus the ratio of the pinball loss to the loss of the
            best constant.

        Raises
        ------
        ValueError
            If the model has several quantiles.
        """
        fitted = self._as_fitted
        if fitted.loss != "quantile":
            return super().score(X, y, sample_weight)
        if np.ndim(given := fitted.quantile) > 0:
            raise ValueError(
                f"score takes one prediction a row, but quantile={given!r} has "
                "several; use sklearn.metrics.mean_pinball_loss(y, "
                "model.predict(X)[:, k], alpha=quantile[k])"
            )
        weight, q = sample_weight, cast("float", fitted.quantile)
        predicted = self.predict(X)
        return float(
            d2_pinball_score(y, predicted, sample_weight=weight, alpha=float(q))
        )

    def _columns(self, values: Vector) -> Vector:
        fitted = self._as_fitted
        several = fitted.loss == "quantile" and np.ndim(fitted.quantile) > 0
        return values if several else values[:, 0]

    def _shape_bounds(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        return self._columns(lower), self._columns(upper)


@dataclass(eq=False, repr=False)
class LinearSVR(QuantileColumns, LinearSingle):
    r"""Linear support vector regressor with a certificate of optimality.

    It solves the problem of LIBLINEAR (-s 11, 12, 13) and scikit-learn's ``LinearSVR``,
    or of quantile regression, until a relative duality gap of `tol` is proved.

    Parameters
    ----------
    epsilon : float, default=0.0
        Residuals up to `epsilon` cost nothing. Choose it on the scale of the targets.
        ``loss="quantile"`` does not use it.
    C : float, default=1.0
        Weight of the loss, summed over the rows.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "quantile"}, \
            default="epsilon_insensitive"
        Loss of the residual r: ``max(0, |r| - epsilon)``, its square, or the pinball
        loss ``max(q r, (q - 1) r)`` of quantile regression, where q is `quantile`.
    quantile : float or array-like of shape (n_quantiles,), default=0.5
        Share of the targets below the prediction, for ``loss="quantile"``. Several
        values train a model for each, and `predict` has a column for each.
    fit_intercept : bool, default=True
        Whether to fit a bias: the weight of a constant feature, penalised like the
        other weights.
    intercept_scaling : float, default=1.0
        Value of the constant feature. A larger value penalises the bias less, which
        quantiles of targets far from 0 need.
    solver : str, default="auto"
        Training method: "dcd", dual coordinate descent [1]_; for the squared loss
        "newton" [2]_; for the other losses "smoothing-newton", the same on a smoothed
        loss, or "interior-point". "auto" uses Newton's method if there are at least 4
        times as many rows as features, or at most 100 features, unless C is small for
        the units of X and y.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
        Weights of the features. With several quantiles, shape (n_quantiles,
        n_features).
    intercept_ : ndarray of shape (1,), float64
        Constant of the prediction, for each quantile; 0 without an intercept.
    support_ : ndarray of shape (n_support,), intp
        Indices of the rows with a non-zero dual variable, sorted.
    dual_coef_ : ndarray of shape (1, n_support), float64
        Dual variables of the rows in `support_`, the dual point of the certificate; a
        row for each quantile.
        ``coef_ = dual_coef_ @ X[support_]``; with Newton's method, the two sides differ
        by at most ``sqrt(2 certificate_.gap)``. Pickles leave it and `support_` out,
        except with ``warm_start=True``.

    See Also
    --------
    sklearn.svm.LinearSVR : The same model, without a proof of accuracy.
    SVR : Support vector regressor with kernels and an unpenalised bias.

    Notes
    -----
    With costs ``c_i = C * sample_weight_i`` it minimises

    .. math:: P(w) = \tfrac12 \|w\|^2
              + \sum_i c_i \max(0, |y_i - w \cdot x_i| - \epsilon)^p

    with p = 1 or 2, or with the pinball loss [3]_. With `fit_intercept`, every row ends
    in the constant feature `intercept_scaling`. The methods are dual coordinate descent
    [1]_, Newton's method, for p = 2 with an exact line search [2]_, and interior point.
    Small problems are solved more accurately than `tol`.

    References
    ----------
    .. [1] C.-H. Ho, C.-J. Lin, "Large-scale linear support vector regression", JMLR
       13, 2012.
    .. [2] S. S. Keerthi, D. DeCoste, "A modified finite Newton method for fast solution
       of large scale linear SVMs", JMLR 6, 2005.
    .. [3] R. Koenker, G. Bassett, "Regression quantiles", Econometrica 46, 1978.

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

    epsilon: NonNegative = 0.0
    _: KW_ONLY
    C: Positive = 1.0
    loss: Literal["epsilon_insensitive", "squared_epsilon_insensitive", "quantile"] = (
        "epsilon_insensitive"
    )
    quantile: Quantiles = 0.5
    fit_intercept: Flag = True
    intercept_scaling: Positive = 1.0
    solver: Annotated[str, StrOptions({"auto", *solvers_of("regression")})] = "auto"

    def _batch(self, data: TrainingData, job: Job) -> SingleBatch:
        columns, losses = StoredColumns(data.X), losses_of(self)
        problem = RegressionProblem(
            columns.X,
            cast("Vector", data.y),
            self.C,
            loss=losses[0],
            sample_weight=data.weight,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            n_jobs=job.threads,
        )

        def with_C(C: float) -> list[RegressionProblem]:
            other = problem.with_labels(problem.target, data.weight, C)
            return [cast(RegressionProblem, other).with_loss(loss) for loss in losses]

        problems = [problem, *(problem.with_loss(loss) for loss in losses[1:])]
        zero, name = np.zeros(problem.width), type(self).__name__
        return SingleBatch(problems, name, with_C, zero, columns=columns)

    def _solver(self, batch: SingleBatch, job: Job) -> Solver:
        return solver_for(batch.only, self.solver)

    def _attributes(
        self, data: TrainingData, batch: SingleBatch, models: Sequence[Vector]
    ) -> Fitted:
        found = [batch.only.coef(model) for model in models]
        coef = [batch.columns.spread(coef.copy()) for coef, _ in found]
        return {
            "coef_": coef[0] if len(batch) == 1 else np.stack(coef),
            "intercept_": np.array([intercept for _, intercept in found]),
        }

    def _keep(self, data: TrainingData, batch: SingleBatch, found: Solutions) -> None:
        self.__dict__.update(self._attributes(data, batch, found.w))
        self._keep_duals(found)

    def _chance(self, batch: SingleBatch, found: Solutions) -> str:
        if self.loss != "quantile" or not found.certificate.certified:
            return ""
        cost = float(cast(RegressionProblem, batch.problem(0)).cost.sum())
        return pulled_sentence(self, cost)

    def _fitted_problems(
        self, X: MatrixLike, y: ArrayLike, weight: ArrayLike | None, whole: bool = False
    ) -> Iterable[FittedProblem]:
        X = check_array(X, **ROWS)
        table = table_of(self, X.shape[0])
        return [
            terms.regression(
                X, y, self.C, weight, self.n_jobs, None if table is None else table[k]
            )
            for k, terms in enumerate(terms_of_regression(self))
        ]


@dataclass(eq=False, repr=False, kw_only=True)
class SVR(QuantileColumns, KernelSingle):
    r"""Kernel support vector regressor with a certificate of optimality.

    It solves the epsilon-SVR of LIBSVM and scikit-learn, or quantile regression, with
    an unpenalised bias, until a relative duality gap of `tol` is proved.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, summed over the rows.
    epsilon : float, default=0.1
        Residuals up to `epsilon` cost nothing. Choose it on the scale of the targets.
        ``loss="quantile"`` does not use it.
    loss : {"epsilon_insensitive", "quantile"}, default="epsilon_insensitive"
        Loss of the residual r: ``max(0, |r| - epsilon)``, or the pinball loss
        ``max(q r, (q - 1) r)`` of quantile regression, where q is `quantile`.
    quantile : float or array-like of shape (n_quantiles,), default=0.5
        As for :class:`LinearSVR`. With several values `dual_coef_`, `intercept_` and
        `coef_` have a row for each.

    See Also
    --------
    sklearn.svm.SVR : The same problem, without a proof of accuracy.
    LinearSVR : Linear support vector regressor; faster if the kernel is linear.

    Notes
    -----
    With costs ``c_i = C * sample_weight_i`` it minimises

    .. math:: P = \tfrac12 \|w\|^2 + \sum_i c_i \max(0, |y_i - f(x_i)| - \epsilon),
              \qquad f(x) = \sum_i a_i k(x_i, x) + b

    over w and b [1]_, or with the pinball loss [2]_, with the block solver of
    :class:`SVC`. Rows of weight 0 are left out.

    References
    ----------
    .. [1] A. J. Smola, B. Schoelkopf, "A tutorial on support vector regression",
       Statistics and Computing 14, 2004.
    .. [2] I. Takeuchi, Q. V. Le, T. D. Sears, A. J. Smola, "Nonparametric quantile
       estimation", JMLR 7, 2006.

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

    C: Positive = 1.0
    epsilon: NonNegative = 0.1
    loss: Literal["epsilon_insensitive", "quantile"] = "epsilon_insensitive"
    quantile: Quantiles = 0.5

    def _problem(self, rows: KernelRows, C: float) -> Sequence[KernelRegression]:
        matrix, y, weight = rows
        return [
            KernelRegression(matrix, y, C, loss=loss, sample_weight=weight)
            for loss in losses_of(self)
        ]

    def _fitted_problems(
        self, X: MatrixLike, y: ArrayLike, weight: ArrayLike | None, whole: bool = False
    ) -> Iterable[FittedProblem]:
        return single_kernel(self, X, y, weight)

    def _folds(
        self, points: Points, kernel: Kernel, own: list[TrainingData]
    ) -> FoldProblems | None:
        """Return the problems of all folds over one matrix."""
        if self.loss == "quantile":
            return None
        targets = np.asarray(own[0].y, np.float64)
        weights = np.stack([data.costs for data in own])
        every, names = np.arange(len(targets)), [type(self).__name__]
        runs = [[(0, len(targets))]]
        return FoldProblems(every, weights, runs, names, None, targets, self.epsilon)
