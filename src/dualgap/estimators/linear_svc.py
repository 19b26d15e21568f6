"""Linear support vector classification."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils import Tags

from ..answers.ball import Decided
from ..data.atomic import check_target
from ..data.store import RowStore
from ..data.types import MatrixLike
from ..losses import Vector, get_loss
from ..memory import make_room
from ..problems.batch import MANY, LinearBatch
from ..problems.constant import constant_sentence, joint_sentence, label_sentence
from ..problems.duals import Table, expanded
from ..problems.elastic_net import ElasticNetBatch
from ..problems.reductions import MultiLabel, Reduction, has_labels, reduction_of
from ..solvers import (
    Auto,
    ProximalNewton,
    SequentialDual,
    SmoothingNewton,
    Solver,
    get_solver,
    solver_for,
)
from ..solvers.labellings import are_small
from ..training.batch import Job, Start
from ..training.solution import Solutions
from .base import Estimator, is_silent
from .callbacks import Fitted
from .certain import CertainLabels
from .fitted import FittedProblem, binary_of, linear_problems, table_of, terms_of_linear
from .input import (
    PREVIOUS,
    ROWS,
    FirstModel,
    TrainingData,
    check_array,
    classified,
    first_model,
    linear_values,
    refuse_store,
    require_fitted,
)
from .parameters import (
    ClassWeight,
    File,
    Flag,
    LinearSolver,
    LossLike,
    Positive,
    PositiveOrInfinite,
    ProbabilityHints,
)
from .partial_fit import PartialFit, rows_of_fit

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(eq=False, repr=False)
class LinearSVC(
    PartialFit,
    CertainLabels,
    ProbabilityHints,
    LinearClassifierMixin,
    SparseCoefMixin,
    Estimator[LinearBatch],
):
    r"""Linear support vector classifier with a certificate of optimality.

    It solves the same problem as LIBLINEAR and scikit-learn's ``LinearSVC``, until a
    relative duality gap of `tol` is proved. More than two classes are trained one
    versus the rest, one versus one, or as one joint problem (Crammer and Singer).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, summed over the rows. A larger C fits the training data
        more closely and takes longer. ``inf`` is the hard margin, without any loss:
        classes that overlap raise an error.
    loss : {"hinge", "squared_hinge", "smoothed_hinge"} or Loss, default="squared_hinge"
        Loss of the margin, by name or as a record with its own parameters, such as
        ``SmoothedHinge(gamma=0.1)``.
    penalty : {"l2", "l1"}, default="l2"
        Norm of the weights in the objective. "l1" has :math:`\|w\|_1` in the place of
        half of the squared norm, which makes most weights 0; it needs the squared
        hinge and one versus the rest, and is LIBLINEAR's ``-s 5``.
    solver : str or Solver, default="auto"
        Training method: a name in ``dualgap.solvers.SOLVERS``, or a record with its own
        parameters, such as ``SDCA(order="random")``. "auto" chooses a fast method and
        solves problems of some ten rows to rounding level.
    fit_intercept : bool, default=True
        Whether to fit a bias: the weight of a constant feature, penalised like the
        other weights.
    intercept_scaling : float, default=1.0
        Value of the constant feature. A larger value penalises the bias less.
    penalize_intercept : bool, default=True
        False fits an unpenalised bias, as in the textbook SVM and in scikit-learn's
        ``SVC(kernel="linear")``. The solvers "auto", "dcd", "newton",
        "interior-point" and ``Pegasos(bias=...)`` support this. `intercept_scaling`
        must then have its default value.
    class_weight : dict or "balanced", optional
        Factor of C for the rows of each class. "balanced" gives all classes the same
        total weight: ``n/(n_classes * count)``, where sample weights count. One versus
        the rest, with more than two classes, the factor applies to the positive class
        of each binary problem and the other rows have factor 1, as in LIBLINEAR and
        scikit-learn. For a y of several columns the keys of a dict are 0 and 1, and
        "balanced" weighs the rows of each column by itself.
    multi_class : {"ovr", "ovo", "crammer_singer"}, default="ovr"
        Treatment of more than two classes. "ovr" trains one binary problem per class
        against the rest. "ovo" trains one per pair of classes, on a copy of their rows.
        "crammer_singer" trains the joint problem of Crammer and Singer [3]_, with one
        certificate, as LIBLINEAR's ``-s 4`` does. The joint problem has the hinge, a
        penalised bias and its own solver, ``SequentialDual()``, which "auto" chooses.
    warm_start : bool, default=False
        Start from the dual variables of the previous fit, which must have had the same
        rows and classes. If C has changed, start from their best multiple in the new
        box, as in :func:`svm_path`. For solvers that keep dual variables: "auto",
        "dcd", "sdca".
    checkpoint : str or path-like, optional
        File for the state of the fit. After a killed fit, call `fit` again with the
        same data, parameters and integer `random_state`: it resumes from the file, with
        the same result bit for bit. Several binary problems use one file each, with
        ".0", ".1", ... appended. The files remain after the fit. A file of a different
        fit, or one that another fit is writing, raises an error. Supported by all
        solvers except "newton", "interior-point", "ocas" and "cutting-plane"; within
        "auto", the first two start again.
    checkpoint_every : float, default=60.0
        Seconds between two checkpoints.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features), float64
        Weights of the features; one row for two classes. One versus one, the shape is
        ``(n_pairs, n_features)``, for the pairs (0, 1), (0, 2), ..., (K - 2, K - 1) of
        ``classes_``; the second class of a pair is the positive one.
    intercept_ : ndarray of shape (1,), (n_classes,) or (n_pairs,), float64
        Constants of the decision function; 0 without an intercept.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; the second of two is positive. Of a table y, the column numbers.
    multilabel_ : bool
        Whether y had several columns, one per label. Then `coef_` has one row per
        label, even for two, and `n_support_` counts the support vectors with each one.
    support_ : ndarray of shape (n_support,), intp
        Rows with a positive dual variable in at least one binary problem, sorted.
    n_support_ : ndarray of shape (n_classes,), int32
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (1, n_support) or (n_classes, n_support), float64
        ``y_i alpha_i`` of the rows in `support_`, where y_i is +1 for the positive
        class and -1 for the others. They are the dual point of the certificate. With
        more than 20 classes, one versus the rest, it is a sparse CSR matrix.

        - For solvers that keep dual variables, ``coef_ = dual_coef_ @ X[support_]``.
          Where `DCD` accelerates ("auto" and "dcd" on text; not with
          ``DCD(acceleration="none")``), ``coef_`` is the best multiple of that.
        - Where "newton" or "interior-point" ended the fit ("auto" too), the two differ
          by at most ``1/2 ||w - w(alpha)||^2 <= P - D``.
        - For Crammer and Singer's problem, it contains all dual variables, one row per
          class, even for two classes.
        - One versus one, it has n_classes - 1 rows, in the layout of LIBSVM and
          :class:`SVC`: a row of X of class i has its coefficient against class j in
          row j - 1 if i < j, and in row j if j < i.
        - With ``penalty="l1"`` it is a dual point, which does not give `coef_`.
        - Pickles leave it and `support_` out, except with ``warm_start=True``.
    n_iter_ : int
        Number of epochs, the maximum over all classes; 0 if a warm start already
        satisfied `tol`.
    history_ : structured ndarray or list of structured ndarray
        One record per epoch (epoch, seconds, primal, dual, exact, updates, solver,
        predicted), and one for each final exact pass. One array per certificate.

    See Also
    --------
    sklearn.svm.LinearSVC : The same model, without a proof of accuracy.
    sklearn.svm.SVC : With ``kernel="linear"``, the model of
        ``penalize_intercept=False``; trains more than two classes one versus one.
    dualgap.training.solve : Train one binary problem; gives its dual variables.

    Notes
    -----
    With labels ``y_i`` of -1 and +1 and costs ``c_i = C * sample_weight_i *
    class_weight[y_i]`` it minimises

    .. math:: P(w) = \tfrac12 \|w\|^2 + \sum_i c_i \, \ell(y_i \, w \cdot x_i)

    With `fit_intercept`, every row ends in the constant feature `intercept_scaling` and
    w in its weight, so the bias is penalised. LIBLINEAR and scikit-learn's
    ``LinearSVC`` do the same and have the same optimum. With
    ``penalize_intercept=False`` the margin is :math:`y_i (w \cdot x_i + b)`, where b is
    not part of the norm, and the dual variables satisfy
    :math:`\sum_i \alpha_i y_i = 0`.

    X may be a dense array or a sparse matrix of float32 or float64, with 32-bit or
    64-bit indices. C-contiguous arrays, and CSR matrices without duplicates, are not
    copied, even if they are read-only. Results are float64. If nearly all columns of a
    sparse matrix are empty, training leaves these out, so that time and memory depend
    on the stored entries; only the model has one entry per column.

    `partial_fit` learns from batches of rows that it does not keep, and `certify`
    proves the gap of the result.

    If neither `tol` nor `atol` was proved, `fit` warns with the gap that was
    reached. The same holds after Ctrl-C, or if a callback stops the fit: the best model
    so far is kept. A second Ctrl-C raises KeyboardInterrupt.

    Callbacks set with ``set_callbacks`` (scikit-learn 1.9 or newer) receive a task
    named "epoch" per epoch, grouped into stages by the gap. The context of a finished
    epoch has an attribute ``epoch_info``, a :class:`dualgap.training.EpochInfo`.
    If a hook returns True, the fit ends.

    References
    ----------
    .. [1] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan, "A dual
       coordinate descent method for large-scale linear SVM", ICML 2008.
    .. [2] C. Panagiotakopoulos, P. Tsampouka, "The stochastic gradient descent for
       the primal L1-SVM optimization revisited", ECML PKDD 2013.
    .. [3] K. Crammer, Y. Singer, "On the algorithmic implementation of multiclass
       kernel-based vector machines", JMLR 2, 2001.

    Examples
    --------
    >>> from dualgap import LinearSVC
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> model = LinearSVC(C=0.1, tol=1e-4, random_state=0).fit(X, y)
    >>> model.certificate_.certified
    True
    >>> print(f"{model.certificate_.primal:.4g}")
    4.368
    >>> model.predict(X[:5])
    array([0, 0, 0, 0, 0])
    """

    C: PositiveOrInfinite = 1.0
    _: KW_ONLY
    loss: LossLike = "squared_hinge"
    penalty: Literal["l1", "l2"] = "l2"
    solver: LinearSolver = "auto"
    fit_intercept: Flag = True
    intercept_scaling: Positive = 1.0
    penalize_intercept: Flag = True
    class_weight: ClassWeight = None
    multi_class: Literal["ovr", "ovo", "crammer_singer"] = "ovr"
    warm_start: Flag = False
    checkpoint: File = None
    checkpoint_every: Positive = 60.0

    if TYPE_CHECKING:
        coef_: Vector = field(init=False)
        intercept_: Vector = field(init=False)
        n_support_: NDArray[np.int32] = field(init=False)
        _labels: Literal["dense", "sparse"] = field(init=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self.multi_class == "ovr"
        return tags

    # ------------------------------------------------------------------- training

    def _read(
        self, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> TrainingData:
        self._check_joint()
        if self.penalty == "l1":
            self._check_l1(X)
        if self.checkpoint is not None:
            check_target(self.checkpoint)
            if not isinstance(self.random_state, Integral):
                raise ValueError(
                    "checkpoint needs an integer random_state, got "
                    f"{self.random_state!r}; give one, such as 0"
                )
        data = classified(self, X, y, sample_weight)
        if data.table is not None:
            self._check_labels(X)
        return data

    def _refuse(self, name: str, by: str, remedy: str) -> NoReturn:
        """Raise an error for a parameter that does not go with another one."""
        raise ValueError(
            f"{name}={getattr(self, name)!r} is not supported by {by}; use {remedy}"
        )

    def _check_joint(self) -> None:
        """Refuse parameters that the problem of Crammer and Singer does not have."""
        if self.multi_class != "crammer_singer":
            return
        by, other = "multi_class='crammer_singer'", "multi_class='ovr'"
        if get_loss(self.loss).name != "hinge":
            self._refuse("loss", by, f"loss='hinge', or {other}")
        if not self.penalize_intercept:
            self._refuse("penalize_intercept", by, other)

    def _check_l1(self, X: MatrixLike) -> None:
        """Refuse what does not go with the L1 norm."""
        by, other = "penalty='l1'", "penalty='l2'"
        if get_loss(self.loss).name != "squared_hinge":
            self._refuse("loss", by, f"loss='squared_hinge', or {other}")
        if self.multi_class != "ovr":
            self._refuse("multi_class", by, f"multi_class='ovr', or {other}")
        named = self.solver in ("auto", ProximalNewton.name)
        if not (named or isinstance(self.solver, ProximalNewton)):
            self._refuse("solver", by, "solver='auto' or 'proximal-newton'")
        refuse_store(X, by, f"give the rows as an array, or use {other}")

    def _check_labels(self, X: MatrixLike) -> None:
        """Refuse what does not go with a table of labels."""
        refuse_store(X, "a table of labels", "give one class per row")
        if self.multi_class != "ovr":
            by = "a y of several columns, one per label"
            self._refuse("multi_class", by, "multi_class='ovr'")

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        until: Decided | None = None,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
    ) -> Self:
        """Train the model and prove its accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowStore} of shape (n_samples, n_features)
            Training rows. A :class:`dualgap.data.RowStore` larger than its buffer is
            read block by block in every epoch; memory then holds the model, the dual
            variables and the buffer.
        y : array-like or sparse matrix of shape (n_samples,) or (n_samples, n_labels)
            Class labels, numbers or strings. Optional for a store that has labels. Two
            columns or more, of 0 and 1, are labels of which a row may have any number.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C, zero or positive: the integer k counts like k equal rows. If
            both y and `sample_weight` are omitted, the weights of the store are used.
        coef_init : array-like of the shape of ``coef_``, optional
            Coefficients near the solution, as for scikit-learn's ``SGDClassifier``; of
            one problem also of shape (n_features,). "newton", with a penalised bias,
            and "proximal-newton" start from them, as does "auto" where it takes these.
            The certificate holds as for any other fit.
        intercept_init : array-like of the shape of ``intercept_``, optional
            Intercepts of this start; zeros if omitted, like omitted coefficients.
        """
        first = coef_init, intercept_init
        if until is None:
            return self._fit(X, y, sample_weight, first=first)
        return self._fit_until(X, y, sample_weight, until, first)

    def _batch(
        self, data: TrainingData, job: Job | None = None, *, copies: bool = True
    ) -> LinearBatch:
        """Return the problems of the classes.

        Without `copies` the problems of pairs have all rows. Threads that a job has
        left share the rows of a problem.
        """
        self._make_room(data)
        reduction = reduction_of(self.multi_class, len(data.classes), data.table)
        threads = 1 if job is None else max(1, job.threads // len(reduction))
        batch = LinearBatch(
            data.X,
            data.classes,
            data.codes,
            reduction,
            data.weight,
            data.factor,
            self.C,
            copies=copies,
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            penalize_intercept=self.penalize_intercept,
            n_jobs=threads,
        )
        if self.penalty == "l1":
            return ElasticNetBatch(batch, 1.0)
        if batch.points is not None and are_small(get_solver(self.solver), batch):
            return batch.without_copies()  # then one call to the core solves all pairs
        return batch

    def _make_room(self, data: TrainingData) -> None:
        """Refuse before any work what memory cannot hold: models and their duals."""
        (n, d), classes = data.X.shape, len(data.classes)
        pairs = self.multi_class == "ovo" and classes > 2
        problems = math.comb(classes, 2) if pairs else classes
        # Models and duals are held per problem and as the tables that they are packed
        # in. Problems may leave out columns of sparse rows. With many classes the duals
        # are sparse, and as many as the first problems show.
        models = (1 if issparse(data.X) else 2) * problems * d
        few = self.multi_class != "ovr" or classes <= MANY
        make_room(
            8 * (models + (2 * classes * n if few else 0)),
            f"{classes} classes of {n} rows and {d} columns",
            "train on fewer classes or rows",
        )

    def _solver(self, batch: LinearBatch, job: Job | None = None) -> Solver:
        if isinstance(batch, ElasticNetBatch):
            return solver_for(batch.whole, self.solver)
        if not batch.joint:
            return get_solver(self.solver)
        solver = SequentialDual() if self.solver == "auto" else get_solver(self.solver)
        if not isinstance(solver, SequentialDual):
            raise ValueError(
                f"solver={self.solver!r} trains only binary problems; with "
                "multi_class='crammer_singer' use solver='auto'"
            )
        return solver

    def _warm(self, batch: LinearBatch, solver: Solver) -> Start | None:
        if not isinstance(batch, ElasticNetBatch):
            return super()._warm(batch, solver)
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        intercept = self.intercept_ if self.fit_intercept else None
        before = csr_matrix(self.coef_).toarray(), intercept
        return self._begin_at(batch, solver, None, before, PREVIOUS)

    def _begin_at(
        self,
        batch: LinearBatch,
        solver: Solver,
        job: Job | None,
        first: FirstModel,
        name: str,
    ) -> Start | None:
        l1 = isinstance(batch, ElasticNetBatch)
        if batch.joint or not (l1 or isinstance(solver, (Auto, SmoothingNewton))):
            given = "multi_class" if batch.joint else "solver"
            remedy = "multi_class='ovr'" if batch.joint else "solver='newton'"
            raise ValueError(
                f"{given}={getattr(self, given)!r} cannot start from coef_init; use "
                f"{remedy}, or leave coef_init out"
            )
        coef, intercept = first_model(
            first, len(batch), self.n_features_in_, self.fit_intercept, name
        )
        coef = coef[:, batch.columns.kept]
        if isinstance(batch, ElasticNetBatch):
            whole = batch.whole
            return lambda k, _: whole.point(coef[k, : whole.d], intercept[k])
        point = batch.rows.point
        assert job is not None
        job.models = [point(*model) for model in zip(coef, intercept, strict=True)]
        batch.begin_near(job.models)
        return None

    def _previous_duals(self, batch: LinearBatch) -> Table:
        n, classes = len(batch.codes), batch.classes
        if n != self._n_rows or not np.array_equal(classes, self.classes_):
            raise ValueError(
                "warm_start=True needs the data of the previous fit; set "
                "warm_start=False for new data. The previous fit had "
                f"{self._n_rows} rows of classes {self.classes_.tolist()}, but this "
                f"one has {n} rows of classes {classes.tolist()}"
            )
        if self.dual_coef_.shape[0] != batch.reduction.tables:
            raise ValueError(
                "warm_start=True: the previous fit did not have "
                f"multi_class={self.multi_class!r}; set warm_start=False for this one"
            )
        return expanded(self.dual_coef_, self.support_, n)

    def _attributes(
        self, data: TrainingData, batch: LinearBatch, models: Sequence[Vector]
    ) -> Fitted:
        coef, intercept = batch.coef(models)
        return {"classes_": data.classes, "coef_": coef, "intercept_": intercept}

    def _keep(self, data: TrainingData, batch: LinearBatch, found: Solutions) -> None:
        self.__dict__.update(self._attributes(data, batch, found.w))
        self._forget_stream()
        if data.table is not None:
            self._labels = "sparse" if issparse(data.y) else "dense"
        elif self.multi_class == "ovr":
            self._fit_rows = rows_of_fit(batch.codes, batch.rows)
        packed = batch.packed(found.take_duals())
        self.support_, self.n_support_, self.dual_coef_ = packed
        self._n_rows = len(batch.codes)

    def _fitted_problems(
        self, X: MatrixLike, y: ArrayLike, weight: ArrayLike | None, whole: bool = False
    ) -> Iterable[FittedProblem]:
        X, terms = check_array(X, **ROWS), terms_of_linear(self)
        batch = binary_of(terms, X, y, self.C, weight, self.n_jobs, copies=not whole)
        return linear_problems(terms, batch, table_of(self, X.shape[0]))

    def _chance(self, batch: LinearBatch, found: Solutions) -> str:
        if is_silent():
            return ""
        if isinstance(batch, ElasticNetBatch):
            return batch.empty_sentence(found.w)
        if batch.joint:
            return joint_sentence(batch, found.bounds[0], self.tol, self.atol)
        labels = batch.several == MultiLabel.several
        sentence = label_sentence if labels else constant_sentence
        return sentence(
            batch, found.w, found.bounds, self.tol, self.atol, self.class_weight
        )

    # ------------------------------------------------------------------ prediction

    @property
    def multilabel_(self) -> bool:
        """Whether the model was fitted with one column of 0 and 1 per label."""
        require_fitted(self, "coef_")
        return has_labels(self)

    def _decide(self, values: Vector) -> NDArray[np.generic]:
        if not self.multilabel_:
            return super()._decide(values)
        table = self._reduction.decide(values)
        return csr_matrix(table) if self._labels == "sparse" else table

    def decision_function(self, X: MatrixLike) -> Vector:
        """Return decision scores: positive for the second class, or one per class.

        One versus one, the score of a class is its number of votes, plus its summed
        confidence squeezed into plus or minus one third of a vote. With equal votes the
        more confident class wins, as in scikit-learn's ``OneVsOneClassifier``. The
        decision values of the pairs are ``X @ coef_.T + intercept_``.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowStore} of shape (n_samples, n_features)
            Rows. A store is read block by block.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes), float64
            One column per class if there are more than two.
        """
        values = self._values(X)
        return self._reduction.scores(values)

    def _reduction_of(self, classes: int) -> Reduction:
        return reduction_of("labels" if has_labels(self) else self.multi_class, classes)

    def _values(self, X: MatrixLike) -> Vector:
        """Return ``X @ coef_.T + intercept_``, shape (n_samples, n_problems)."""
        return linear_values(self, X)

    def score(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy: the fraction of rows whose class is predicted correctly.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowStore} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Classes. If omitted, the labels and weights of the store are used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the mean.

        Returns
        -------
        float
            Accuracy, from 0 to 1.
        """
        if y is None and isinstance(X, RowStore):
            sample_weight = X.sample_weight if sample_weight is None else sample_weight
            y = X.y
        return super().score(X, y, sample_weight)
