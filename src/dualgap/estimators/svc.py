"""Kernel support vector classification."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations, pairwise
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from .. import core
from ..data.rows import Points
from ..data.types import MatrixLike, Parameters
from ..kernel import (
    APPROXIMATIONS,
    KERNEL_SOLVERS,
    BlockSolver,
    KernelSolver,
    Nystroem,
    get_kernel_solver,
)
from ..kernels.functions import Kernel
from ..kernels.gram import Matrix, points_of, rows_in
from ..kernels.predict import pair_values, pair_weights
from ..losses import Vector, get_loss
from ..problems.duals import Table, dense_table
from ..problems.kernel import Bias, KernelBatch
from ..problems.reductions import OneVsOne, Reduction
from ..solvers import Auto, Solver, get_solver
from ..solvers.kernel.nystroem import LandmarkBatch
from ..training import Solution
from ..training.batch import Job
from ..training.folds import FoldProblems
from ..training.solution import Solutions
from ._libsvm import CAN_BE_INDEFINITE, trained_by_libsvm
from .base import Estimator
from .certain import CertainLabels
from .fitted import FittedProblem, kernel_pairs
from .input import TrainingData, labelled, refuse_masks
from .kernels import KernelModel
from .parameters import (
    ClassWeight,
    Flag,
    KernelLoss,
    PositiveOrInfinite,
    ProbabilityHints,
)


@dataclass(eq=False, repr=False)
class KernelClassifier(
    ProbabilityHints, ClassifierMixin, KernelModel, Estimator[KernelBatch]
):
    """Base of kernel classifiers, which train the pairs of their classes.

    Parameters
    ----------
    class_weight : dict or "balanced", optional
        Factor of C for the rows of each class. "balanced" gives all classes the same
        total weight: ``n/(n_classes * count)``, where sample weights count.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Columns of the decision function with more than two classes: "ovr" gives one per
        class, the votes of the pairs plus their confidence; "ovo" gives one per pair.
    break_ties : bool, default=False
        With "ovr" and more than two classes, break ties between equal votes by the
        confidence instead of taking the first class.
    random_state : int, RandomState instance or None, default=0
        Seed of the solver. The same int gives the same model, bit for bit, for the same
        `n_jobs` and `cache_size`. These two matter because the memory of a pair bounds
        the working sets of the block solver, and pairs that are trained at the same
        time share the memory.
    n_jobs : int, optional
        Number of threads. In training they share the pairs, as many at a time as fit
        into `cache_size`; additional threads work within a pair. In prediction they
        share the rows. None means 1 unless :func:`joblib.parallel_config` sets another
        number; -1 uses all processors.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted. With two, the second one is the positive class.
    class_weight_ : ndarray of shape (n_classes,), float64
        Factors for the classes, as `class_weight` says.
    support_ : ndarray of shape (n_SV,), intp
        Indices of the rows that are support vectors, sorted by class, then by row.
    n_support_ : ndarray of shape (n_classes,), int32
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV), float64
        ``y_i alpha_i``, or the coefficients of the model if they are not dual variables
        (:class:`dualgap.kernel.KernelPegasos`). In the layout of LIBSVM and
        scikit-learn, a support vector of class i has its coefficient against class j
        in row j - 1 if i < j, and in row j if j < i. The positive class of a pair is
        the first one; with only two classes it is the second.
    intercept_ : ndarray of shape (n_pairs,), float64
        Constants of the pairs (0, 1), (0, 2), ..., (K - 2, K - 1).
    coef_ : ndarray of shape (n_pairs, n_features), float64
        Weights of the features; only with the linear kernel.
    """

    _: KW_ONLY
    class_weight: ClassWeight = None
    decision_function_shape: Literal["ovr", "ovo"] = "ovr"
    break_ties: Flag = False

    def _read(
        self, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> TrainingData:
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        self._refuse_ovo_ties()
        X, labels, items = self._training_rows(X, y, True)
        assert labels is not None
        return labelled(self.class_weight, X, labels, sample_weight, items)

    def _batch(self, data: TrainingData, job: Job) -> KernelBatch:
        record = self._kernel_of(data)
        points = points_of(data.X, record)  # before sorting: errors name rows of X
        return self._kernel_batch(points, record.resolve(points.X), data, job=job)

    def _kernel_batch(
        self,
        points: Points,
        kernel: Kernel,
        data: TrainingData,
        whole: Matrix | None = None,
        job: Job | None = None,
    ) -> KernelBatch:
        """Return the problems, if need be over the kernel matrix of all rows."""
        pairs = self._pairs(len(data.classes))
        threads = 1 if job is None else job.threads
        kind, solver, options = self._kind_of_problems(len(pairs), job)
        options |= self._room(solver, threads)
        batch = kind(
            points,
            kernel,
            data.classes,
            data.codes,
            data.costs,
            getattr(self, "C", 1.0),
            pairs,
            **options,
        )
        if isinstance(batch, LandmarkBatch) and isinstance(self.solver, str):
            threads //= batch.at_a_time
            batch.landmarks = batch.landmarks.one_of(len(batch), threads)
        if whole is not None:
            batch.share(whole)
        return batch

    @abstractmethod
    def _kind_of_problems(
        self, pairs: int, job: Job | None
    ) -> tuple[type[KernelBatch], KernelSolver | Nystroem, Parameters]:
        """Return the class of the problems, their solver, and further arguments."""

    def _room(self, solver: KernelSolver | Nystroem, threads: int) -> Parameters:
        """Return the memory of the pairs, and how many are in use at a time."""
        cache = self.cache_size

        def room(rows: int) -> int:
            if threads == 1:
                return 1
            return min(threads, rows_in(cache, rows) // solver.rows_held(rows))

        return {"cache_size": cache, "room": room}

    def _solver(self, batch: KernelBatch, job: Job) -> Solver:
        solver = get_solver(self.solver, batch.kind)
        if isinstance(self.solver, str) and isinstance(solver, KernelSolver):
            threads = max(1, job.threads // batch.at_a_time)
            solver = solver.one_of(len(batch), threads)
        return solver

    def _reduction_of(self, classes: int) -> Reduction:
        return self._pairs(classes)

    def _pairs(self, classes: int) -> OneVsOne:
        return OneVsOne(classes, libsvm=True, break_ties=self.break_ties)

    def _keep(self, data: TrainingData, batch: KernelBatch, found: Solutions) -> None:
        table = found.table
        if table is None:
            table = batch.table(
                [batch.coef(k, one.coefficients) for k, one in enumerate(found)]
            )
        self.classes_, self.class_weight_ = data.classes, data.factor
        self.shape_fit_ = data.X.shape
        self.intercept_ = np.array(found.bias)
        used = self._keep_table(table, batch.order, batch.bounds)
        rows = self.support_ if batch.precomputed else used
        self._keep_vectors(batch.points, batch.kernel, rows, found, data.items)

    def _keep_table(
        self, table: Vector, rows: NDArray[np.intp], bounds: Sequence[int]
    ) -> NDArray[np.intp]:
        """Keep the columns of a table that are not 0; return their indices.

        `rows`: training rows of the columns. Class c has the columns bounds[c] to
        bounds[c + 1] - 1.
        """
        used = np.asarray(table.any(axis=0))
        self.support_ = rows[used]
        sizes = [np.count_nonzero(used[a:b]) for a, b in pairwise(bounds)]
        self.n_support_ = np.array(sizes, np.int32)
        self.dual_coef_ = np.ascontiguousarray(table[:, used])
        return np.flatnonzero(used)

    def _weights(self, dual_coef: Vector) -> Vector:
        coef = pair_weights(self.support_vectors_, dual_coef, self.n_support_)
        return np.asarray(coef.toarray() if issparse(coef) else coef)

    def predict(self, X: MatrixLike) -> NDArray[np.generic]:
        """Predict the class labels of rows: each pair of classes has a vote.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, of the type of `classes_`.
        """
        return self._decide(self._values(X))

    def decision_function(self, X: MatrixLike) -> Vector:
        """Return the decision values of rows.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Decision values, float64. With two classes, positive values mean
            ``classes_[1]``. With more, see `decision_function_shape`; for a pair,
            positive values mean the first class.
        """
        return self._shaped(self._values(X))

    def _shaped(self, values: Vector) -> Vector:
        """Return the pairs' decision values in the shape that the parameter sets."""
        if len(self.classes_) > 2 and self.decision_function_shape == "ovo":
            return values
        return self._reduction.scores(values)

    @property
    def _reduction(self) -> Reduction:
        return self._reduction_of(len(self.classes_))

    def _decide(self, values: Vector) -> NDArray[np.generic]:
        self._refuse_ovo_ties()
        return self.classes_[self._reduction.decide(values)]

    def _values(self, X: MatrixLike) -> Vector:
        """Return the decision values of all pairs, (n_samples, n_pairs)."""
        kernel, X = self._prediction_rows(X)
        return pair_values(
            kernel,
            X,
            self.support_vectors_,
            self.dual_coef_,
            self.n_support_,
            self.intercept_,
            support=self.support_,
            n_jobs=self.n_jobs,
        )

    def _undecided(self, pairs: Sequence[str], because: str, remedy: str) -> str:
        """Return a sentence about pairs that rounding decides; empty without any."""
        if not pairs:
            return ""
        more = f" and {len(pairs) - 1:,} more pairs" if len(pairs) > 1 else ""
        return (
            f"rounding decides {pairs[0] or 'the predictions'}{more}, because {because}"
            f" cannot tell the classes apart. Use {remedy}"
        )

    def _refuse_ovo_ties(self) -> None:
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo'"
            )


@dataclass(eq=False, repr=False)
class SVC(CertainLabels, KernelClassifier):
    r"""Kernel support vector classifier with a certificate of optimality.

    It solves the C-SVC of LIBSVM and scikit-learn (hinge loss, unpenalised bias) or the
    L2-SVM (squared hinge, penalised bias), until a relative duality gap of
    `tol` is proved. More than two classes are trained one versus one.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, summed over the rows. ``inf`` is the hard margin, without
        any loss, of the hinge: classes that overlap raise an error.
    loss : {"hinge", "squared_hinge"} or a record of either, default="hinge"
        Loss of the margin. By default the bias is unpenalised with the hinge, and
        penalised with the squared hinge.
    solver : str, KernelSolver or Nystroem, default="auto"
        Training method: a name in ``dualgap.kernel.KERNEL_SOLVERS`` or a record with
        its own parameters. "auto" uses the block solver, which supports both losses and
        all kernels. "kernel-pegasos" also does, and penalises the bias. Every other
        solver supports only the squared hinge. "nystroem" trains an approximation over
        a few landmark rows, which is much faster with many rows; the certificate is
        then about this approximation (see Notes).
    max_iter : int, default=10000
        Largest number of epochs per pair. An epoch is about as many steps as the pair
        has rows.
    fit_intercept : bool, default=True
        Whether to fit a bias. Only "kernel-pegasos" and "nystroem" train without one.
    penalize_intercept : bool, optional
        Whether the bias is penalised: 1 is then added to the kernel. None is False for
        the hinge, except with "kernel-pegasos", and True otherwise. Only
        "kernel-pegasos" and "nystroem" train the hinge with a penalised bias, only
        "nystroem" the squared hinge with an unpenalised one.

    See Also
    --------
    sklearn.svm.SVC : The same problem, without a proof of accuracy.
    LinearSVC : Linear support vector classifier; faster if the kernel is linear.

    Notes
    -----
    For two classes, with labels ``y_i`` of -1 and +1 and costs
    ``c_i = C * sample_weight_i * class_weight[y_i]``, it minimises

    .. math:: P = \tfrac12 \|w\|^2 + \sum_i c_i \max(0, 1 - y_i f(x_i)), \qquad
              f(x) = \sum_i \alpha_i y_i k(x_i, x) + b

    over w and b, with :math:`0 \le \alpha_i \le c_i` and
    :math:`\sum_i \alpha_i y_i = 0`, which holds up to rounding. The bias b,
    ``intercept_``, minimises the loss. Support vectors with :math:`\alpha_i < c_i`
    determine it; if there are none, every b in an interval is optimal and the midpoint
    is taken, as in LIBSVM.

    With ``loss="squared_hinge"`` it minimises

    .. math:: P = \tfrac12 \|w\|^2 + \sum_i c_i \max(0, 1 - y_i f(x_i))^2, \qquad
              f(x) = \sum_i \alpha_i y_i (k(x_i, x) + 1)

    The bias :math:`\sum_i \alpha_i y_i` is then penalised, as in
    ``LinearSVC(loss="squared_hinge")``, which has the same optimum with a linear
    kernel. The squared hinge makes more rows support vectors than the hinge does and
    penalises large violations of the margin more.

    With ``penalize_intercept=True`` the hinge has the same f(x) as the squared hinge
    here, and with ``fit_intercept=False`` both have b = 0. The dual then lacks the
    constraint on :math:`\sum_i \alpha_i y_i`.

    ``gamma="mean-distance"`` is the scale of [1]_.

    Problems of up to about 2,000 rows per pair are solved more accurately than `tol`,
    up to rounding, where that takes little extra time.

    X may be a dense array or a sparse matrix of float32 or float64. The rows are copied
    once, sorted by class, and each pair has its own rows of kernel values. Rows of
    weight 0 are left out. Prediction computes kernel values in tiles of a few megabytes
    per thread.

    With ``solver="nystroem"`` the support vectors are landmarks, half of
    ``n_components`` from each class, shared by the pairs of that class. The model is
    the best one in the span of the landmarks. Its certificate bounds the distance from
    the optimum over that span, not over all rows; ``certificate_.about`` says so. Both
    bounds refer to the problem over the computed features, which are float32. Use
    :func:`dualgap.certify` to bound the distance from the optimum of the kernel
    problem; it takes one or more passes over the kernel matrix. Training takes 4 bytes
    per row and landmark and does not use the cache.

    If neither `tol` nor `atol` was proved, `fit` warns with the gap that was
    reached. The same holds after Ctrl-C, or if a callback or `time_limit` stops the
    fit. It keeps the best model with a proof or, before the first proof, the current
    model with an infinite gap. A second Ctrl-C raises KeyboardInterrupt.

    Callbacks set with ``set_callbacks`` (scikit-learn 1.9 or newer) receive a task
    named "epoch" per epoch, with an attribute ``epoch_info``. There is no
    ``fitted_estimator`` between epochs. If a hook returns True, the fit ends.

    References
    ----------
    .. [1] R. Nanculef, E. Frandi, C. Sartori, H. Allende, "A novel Frank-Wolfe
       algorithm. Analysis and applications to large-scale SVM training", Information
       Sciences 285, 2014.

    Examples
    --------
    >>> from dualgap import SVC
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10.0, random_state=0).fit(X, y)
    >>> all(certificate.certified for certificate in model.certificate_)
    True
    >>> model.predict(X[:5])
    array([0, 0, 0, 0, 0])
    """

    C: PositiveOrInfinite = 1.0
    _: KW_ONLY
    loss: KernelLoss = "hinge"
    solver: Annotated[
        str | KernelSolver | Nystroem,
        StrOptions({*KERNEL_SOLVERS, *APPROXIMATIONS}),
        KernelSolver,
        Nystroem,
    ] = "auto"
    fit_intercept: Flag = True
    penalize_intercept: Flag | None = None

    #: Whether LIBSVM trains where the kernel matrix is indefinite; not in drop-ins.
    _may_be_unproved = True
    _decide = KernelClassifier._decide

    # ------------------------------------------------------------------- training

    def _kind_of_problems(
        self, pairs: int, job: Job | None
    ) -> tuple[type[KernelBatch], KernelSolver | Nystroem, Parameters]:
        solver = get_kernel_solver(self.solver)
        options: Parameters = {"loss": self.loss, **self._bias_of_problems()}
        if not isinstance(solver, Nystroem):
            return KernelBatch, solver, options
        options |= {"seed": int(self._seeds(pairs)[0]), "landmarks": solver}
        options["stop"] = core.Stop() if job is None else job.stop
        return LandmarkBatch, solver, options

    def _solver(self, batch: KernelBatch, job: Job) -> Solver:
        if isinstance(batch, LandmarkBatch):
            return Auto()
        return super()._solver(batch, job)

    def _bias_of_problems(self) -> Bias:
        """Return the arguments of KernelProblem that set the bias."""
        penalised = self.penalize_intercept
        if penalised is None:
            hinge = get_loss(self.loss).name == "hinge"
            free = self.fit_intercept and get_kernel_solver(self.solver).free_bias
            penalised = not (hinge and free)
        return {"fit_intercept": self.fit_intercept, "penalize_intercept": penalised}

    def _unproved(
        self, batch: KernelBatch, solver: Solver
    ) -> Callable[[int], Solution] | None:
        hinge = get_loss(self.loss).name == "hinge"
        if not (
            self._may_be_unproved
            and batch.kernel.name in CAN_BE_INDEFINITE
            and isinstance(solver, BlockSolver)
            and hinge
            and not self._bias_of_problems()["penalize_intercept"]
        ):
            return None
        return lambda k: trained_by_libsvm(batch, k, self.tol, self.atol)

    def _folds(
        self,
        points: Points,
        kernel: Kernel,
        own: list[TrainingData],
        duals: Table | None = None,
    ) -> FoldProblems | None:
        """Return the problems of all folds over one matrix; None if they are others.

        `duals`: ``dual_coef_`` of all rows in a model from which the folds start.
        """
        bias = self._bias_of_problems()
        if not bias["fit_intercept"] or bias["penalize_intercept"]:
            return None
        if get_loss(self.loss).name != "hinge" or isinstance(
            get_kernel_solver(self.solver), Nystroem
        ):
            return None
        weights = np.stack([data.costs for data in own])
        codes, classes = own[0].codes, own[0].classes
        if not all(np.bincount(codes, weight).all() for weight in weights):
            return None  # a fold has other classes
        factor = np.ones(len(classes))
        every = replace(own[0], weight=np.ones(len(codes)), factor=factor)
        whole = self._kernel_batch(points, kernel, every)
        ends, near = list(pairwise(whole.bounds)), []
        if duals is not None:
            table = dense_table(duals)[:, whole.order]
            near = [whole.entries(table, k) for k in range(len(whole))]
        return FoldProblems(
            whole.order,
            np.ascontiguousarray(weights[:, whole.order]),
            [[ends[i], ends[j]] for i, j in whole.reduction.subjects],
            whole.names,
            [whole.signs(k) for k in range(len(whole))],
            near=near,
        )

    def _fitted_problems(
        self, X: MatrixLike, y: ArrayLike, weight: ArrayLike | None, whole: bool = False
    ) -> Iterable[FittedProblem]:
        return kernel_pairs(self, X, y, weight, whole)

    def _chance(self, batch: KernelBatch, found: Solutions) -> str:
        # The constant 0 is optimal for a pair, within the proved gap. It costs c_i for
        # each row.
        ends = np.asarray(batch.bounds[:-1])
        losses = (self.C * np.add.reduceat(batch.weight, ends)).tolist()
        if self.certificate_.primal < 2.0 * min(losses) * (1.0 - 1e-14):
            return ""
        decided = [
            part.name
            for part, pair in zip(
                self.certificate_.parts, combinations(losses, 2), strict=True
            )
            if part.certified and part.primal >= sum(pair) * (1.0 - 1e-14)
        ]
        return self._undecided(
            decided,
            "the constant 0 is optimal within the proved gap: this kernel",
            "another kernel, such as rbf, or other features",
        )
