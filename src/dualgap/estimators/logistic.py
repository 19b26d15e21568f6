"""Logistic regression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from scipy.special import log_expit, log_softmax
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..data.columns import StoredColumns
from ..data.types import MatrixLike
from ..losses import Vector
from ..problems.batch import SingleBatch
from ..problems.elastic_net import ElasticNetProblem, l1_ratio_of
from ..problems.logistic import LabelsBatch, LogisticProblem
from ..problems.reductions import has_labels
from ..solvers import (
    LogisticDCD,
    LogisticNewton,
    ProximalNewton,
    Solver,
    solver_for,
    solvers_of,
)
from ..solvers.logistic_dual import choose
from ..training.batch import Job, Start
from ..training.solution import Solutions
from .base import Estimator, tell
from .callbacks import Fitted
from .input import (
    PREVIOUS,
    FirstModel,
    TrainingData,
    classified,
    first_model,
    linear_values,
    refuse_store,
)
from .parameters import ClassWeight, Flag, Positive

if TYPE_CHECKING:
    from sklearn.utils import Tags
    from typing_extensions import Self

__all__ = ["LogisticRegression"]


@dataclass(eq=False, repr=False)
class LogisticRegression(
    LinearClassifierMixin, SparseCoefMixin, Estimator[SingleBatch | LabelsBatch]
):
    r"""Logistic regression with a certificate of optimality.

    It solves the problem of scikit-learn's ``LogisticRegression``, with the squared
    norm, the L1 norm or both, until a relative duality gap of `tol` is proved. More
    than two classes are trained together (multinomial, softmax). A y of several columns
    of 0 and 1, dense or sparse, has a problem per column: several labels per row.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, summed over the rows: the inverse of the regularisation.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, from 0 (the squared norm) to 1 (the L1 norm
        alone, which makes most weights 0).
    penalty : {"l1", "l2", "elasticnet"}, optional
        As in scikit-learn, which has deprecated it: "l2" stands for ``l1_ratio=0``,
        "l1" for ``l1_ratio=1``, and "elasticnet" needs an `l1_ratio`.
    max_iter : int, default=10000
        Largest number of steps of Newton's method, or of epochs of "dcd".
    fit_intercept : bool, default=True
        Whether to fit intercepts, which are not penalised.
    class_weight : dict or "balanced", optional
        Factor of C for the rows of each class. "balanced" gives all classes the same
        total weight: ``n/(n_classes * count)``, where sample weights count.
    solver : {"auto", "dcd", "newton", "proximal-newton"} or record, default="auto"
        Training method: "newton" is Newton's method with conjugate gradients [1]_,
        "dcd" dual coordinate descent [2]_, for two classes or several labels of rows in
        memory. "auto" chooses by counted cost: "dcd" mostly on sparse text. With an L1
        norm it is "proximal-newton", over working sets of features.
    warm_start : bool, default=False
        Start from the previous model, if it has the same classes and features.
    random_state : int, RandomState instance or None, default=0
        Seed of the order in which "dcd" visits the rows; "newton" draws nothing.
    n_jobs : int, optional
        Number of threads, which share the rows; the model is the same bit for bit for
        any number. None means 1 unless :func:`joblib.parallel_config` sets another
        number; -1 uses all processors.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features; one row for two classes, or per label. They are float32
        if X is and such weights reach `tol`, else float64.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
        Intercepts; 0 without.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted. With two, the second one is the positive class. With several
        labels per row the numbers of the columns of y.
    multilabel_ : bool
        Whether y had a column per label.
    n_iter_ : ndarray of shape (1,), int32
        Number of steps or epochs; 0 if a warm start already satisfied `tol`.
    certificate_ : Certificate
        Proven bound on the distance from the optimum, of all classes together.

    See Also
    --------
    sklearn.linear_model.LogisticRegression : The same model, without a proof of
        accuracy.
    LinearSVC : Linear support vector classifier.

    Notes
    -----
    With costs ``c_i = C * sample_weight_i * class_weight[y_i]`` it minimises

    .. math:: P(W, b) = \tfrac12 (1 - r) \|W\|^2 + r \|W\|_1
              + \sum_i c_i \log \sum_k e^{(w_k - w_{y_i}) \cdot x_i + b_k - b_{y_i}}

    with one vector w and the loss :math:`\log(1 + e^{-y_i (w \cdot x_i + b)})` for two
    classes; r is `l1_ratio`. The probabilities of a model are a dual point, and without
    an L1 norm the duality gap is half of the squared gradient.

    References
    ----------
    .. [1] C.-J. Lin, R. C. Weng, S. S. Keerthi, "Trust region Newton method for
       large-scale logistic regression", JMLR 9, 2008.
    .. [2] H.-F. Yu, F.-L. Huang, C.-J. Lin, "Dual coordinate descent methods for
       logistic regression and maximum entropy models", Machine Learning 85, 2011.

    Examples
    --------
    >>> from dualgap import LogisticRegression
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(C=10.0).fit(X, y)
    >>> model.certificate_.certified
    True
    >>> model.predict_proba(X[:1]).round(2)
    array([[1., 0., 0.]])
    """

    C: Positive = 1.0
    _: KW_ONLY
    l1_ratio: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.0
    penalty: Literal["l1", "l2", "elasticnet", "deprecated"] = "deprecated"
    fit_intercept: Flag = True
    class_weight: ClassWeight = None
    solver: Annotated[
        str | LogisticNewton | ProximalNewton,
        StrOptions({"auto", *solvers_of("logistic"), *solvers_of("elastic-net")}),
        LogisticDCD,
        LogisticNewton,
        ProximalNewton,
    ] = "auto"
    warm_start: Flag = False

    if TYPE_CHECKING:
        classes_: NDArray[np.generic] = field(init=False)
        coef_: Vector = field(init=False)
        intercept_: Vector = field(init=False)
        _labels: Literal["dense", "sparse"] = field(init=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.classifier_tags.multi_label = True
        return tags

    def _read(
        self, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> TrainingData:
        if self.penalty != "deprecated":
            tell(
                f"'penalty' was deprecated in scikit-learn 1.8: instead of penalty="
                f"{self.penalty!r} use l1_ratio=0 for 'l2', l1_ratio=1 for 'l1', and a "
                "number between for 'elasticnet'",
                FutureWarning,
            )
        if self._ratio() > 0.0:
            refuse_store(X, "l1_ratio above 0", "give an array, or l1_ratio=0")
        return classified(self, X, y, sample_weight)

    def _batch(self, data: TrainingData, job: Job) -> SingleBatch | LabelsBatch:
        columns, ratio = StoredColumns(data.X), self._ratio()
        problem_of: Callable[..., LogisticProblem] = LogisticProblem
        if ratio > 0.0:
            problem_of = partial(ElasticNetProblem, l1_ratio=ratio)
        if data.table is not None:
            return LabelsBatch(
                columns,
                data.table,
                data.weight,
                data.factor,
                self.C,
                problem_of,
                fit_intercept=self.fit_intercept,
                n_jobs=job.threads,
            )

        def make(C: float) -> LogisticProblem:
            return problem_of(
                columns.X,
                data.codes,
                C,
                classes=len(data.classes),
                sample_weight=data.costs,
                fit_intercept=self.fit_intercept,
                n_jobs=job.threads,
            )

        empty = np.flatnonzero(np.bincount(data.codes, data.costs) == 0.0)
        if self.fit_intercept and len(empty):
            raise ValueError(
                f"class {data.classes[empty[0]]!s} has no row with a positive weight, "
                "so its intercept has no optimum; leave its rows out, or set "
                "fit_intercept=False"
            )
        problem = make(self.C)
        name, zero = type(self).__name__, problem.zero()
        if isinstance(problem, ElasticNetProblem):  # shares its columns
            return SingleBatch(problem, name, problem.at, zero, columns=columns)
        return SingleBatch(problem, name, make, zero, columns=columns)

    def _ratio(self) -> float:
        """Return the share of the L1 norm, by `l1_ratio` or scikit-learn's `penalty`.

        Raises ValueError if they contradict each other.
        """
        ratio = l1_ratio_of(self)
        if self.l1_ratio not in (0.0, ratio):
            raise ValueError(
                f"penalty={self.penalty!r} contradicts l1_ratio={self.l1_ratio!r}; "
                "give l1_ratio alone"
            )
        return ratio

    def _solver(self, batch: SingleBatch | LabelsBatch, job: Job) -> Solver:
        problem = cast(LogisticProblem, batch.problem(0))
        if self.solver == "auto" and not isinstance(problem, ElasticNetProblem):
            return choose(problem, self.tol)
        return solver_for(problem, self.solver)

    def _warm(self, batch: SingleBatch | LabelsBatch, solver: Solver) -> Start | None:
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        if isinstance(batch, LabelsBatch) != has_labels(self):
            raise ValueError(
                "warm_start=True: one of this fit and the previous one has a column of "
                "y per label, the other has classes; set warm_start=False for new data"
            )
        intercept = self.intercept_ if self.fit_intercept else None
        before = csr_matrix(self.coef_).toarray(), intercept
        return self._begin_at(batch, solver, None, before, PREVIOUS)

    def _begin_at(
        self,
        batch: SingleBatch | LabelsBatch,
        solver: Solver,
        job: Job | None,
        first: FirstModel,
        name: str,
    ) -> Start:
        problem = cast(LogisticProblem, batch.problem(0))
        models, d = len(batch) * problem.outputs, self.n_features_in_
        coef, intercept = first_model(first, models, d, self.fit_intercept, name)
        coef = coef[:, batch.columns.kept][:, : problem.d]
        coef = coef.reshape(len(batch), -1, problem.d)
        bias = intercept.reshape(len(batch), -1)
        return lambda k, _: problem.point(coef[k], bias[k])

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
    ) -> Self:
        """Train the model and prove its accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowStore} of shape (n_samples, n_features)
            Training rows.
        y : array-like or sparse matrix of shape (n_samples,) or (n_samples, n_labels)
            Class labels, numbers or strings, or a column of 0 and 1 per label. Optional
            for a store that has labels.
        coef_init : array-like of the shape of ``coef_``, optional
            Coefficients to start from, as for scikit-learn's ``SGDClassifier``; of one
            problem also of shape (n_features,).
        intercept_init : array-like of the shape of ``intercept_``, optional
            Intercepts to start from; zeros if omitted, like omitted coefficients.
        """
        return self._fit(X, y, sample_weight, first=(coef_init, intercept_init))

    def _attributes(
        self,
        data: TrainingData,
        batch: SingleBatch | LabelsBatch,
        models: Sequence[Vector],
    ) -> Fitted:
        problem = cast(LogisticProblem, batch.problem(0))
        parts = zip(*map(problem.coef, models), strict=True)
        coef, intercept = map(np.concatenate, parts)
        coef = batch.columns.spread(coef)
        if problem.passes.kind == np.float32:
            with np.errstate(over="ignore"):
                single = coef.astype(np.float32)
            coef = single if np.array_equal(single, coef) else coef
        return {"classes_": data.classes, "coef_": coef, "intercept_": intercept}

    def _keep(
        self, data: TrainingData, batch: SingleBatch | LabelsBatch, found: Solutions
    ) -> None:
        self.__dict__.update(self._attributes(data, batch, found.w))
        self.__dict__.pop("_labels", None)
        if data.table is not None:
            self._labels = "sparse" if issparse(data.y) else "dense"

    def _chance(self, batch: SingleBatch | LabelsBatch, found: Solutions) -> str:
        if self.coef_.any():
            return ""
        return (
            "all features have the weight 0, so that every row has the same "
            "probabilities; use other features or a larger C"
        )

    @property  # type: ignore[misc, override]
    def n_iter_(self) -> NDArray[np.int32]:
        check_is_fitted(self)
        return np.array([self.__dict__["n_iter_"]], np.int32)

    @n_iter_.setter
    def n_iter_(self, epochs: int) -> None:
        self.__dict__["n_iter_"] = int(epochs)

    @property
    def multilabel_(self) -> bool:
        """Whether the model was fitted with one column of 0 and 1 per label."""
        check_is_fitted(self)
        return has_labels(self)

    def predict(self, X: MatrixLike) -> NDArray[np.generic] | csr_matrix:
        """Return the most probable class of each row, or the labels above 1/2.

        Returns
        -------
        ndarray of shape (n_samples,), or table of shape (n_samples, n_labels)
            Labels of the classes. With a column of y per label a table of 0 and 1,
            sparse if y was.
        """
        if not self.multilabel_:
            return super().predict(X)
        table = (self.decision_function(X) > 0.0).astype(np.intp)
        return csr_matrix(table) if self._labels == "sparse" else table

    def decision_function(self, X: MatrixLike) -> Vector:
        """Return decision scores: the log-odds of the second class, or one per class.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes), float64
            One column per class if there are more than two, or per label.
        """
        scores = linear_values(self, X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict_proba(self, X: MatrixLike) -> Vector:
        """Return the probabilities of the classes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            Probabilities, in the order of ``classes_``; of several labels per row the
            probability of each.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: MatrixLike) -> Vector:
        """Return the logarithms of the probabilities of the classes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            Logarithms, finite also where a probability is rounded to 0.
        """
        scores = self.decision_function(X)
        if self.multilabel_:
            return np.asarray(log_expit(scores))
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))
