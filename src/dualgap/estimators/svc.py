"""Support vector classification with kernels."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import replace
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import core
from ..certificate import Bounds, Status
from ..kernel import (
    APPROXIMATIONS,
    KERNEL_SOLVERS,
    Gram,
    KernelProblem,
    Nystroem,
    Precomputed,
    get_kernel_solver,
)
from ..kernel.base import KernelSolver
from ..kernel.functions import Kernel
from ..kernel.gram import Matrix, Pairs, as_data, rows_in
from ..kernel.predict import pair_values
from ..loop import HISTORY_DTYPE, Solution, solve
from ..losses import Hinge, SquaredHinge, Vector, get_loss
from ..problem import Rounding
from ..solvers import Auto
from ._binary import refuse_missing
from ._callbacks import CallbackSupportMixin, FitTasks
from ._fitting import (
    CACHE_SIZE,
    N_JOBS,
    OnEpoch,
    VersionedPickle,
    encode,
    fit_all,
    listener,
    one_or_all,
    refuse_masks,
    votes,
    warn_of_failures,
    weights,
)
from ._html import CertificateHTMLMixin
from ._kernels import KERNEL_CONSTRAINTS, KERNELS, KernelParameters

__all__ = ["KERNELS", "SVC"]


class SVC(
    VersionedPickle,
    KernelParameters,
    CallbackSupportMixin,  # type: ignore[misc]
    CertificateHTMLMixin,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    r"""Support vector classification with kernels, trained to a certificate.

    Solves the C-SVC of LIBSVM and scikit-learn, the hinge with a bias that is not
    penalised, or the L2-SVM, the squared hinge with a penalised one, until the duality
    gap proves the accuracy asked. More than two classes are trained one versus one.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, summed over the rows.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, record \
            or callable, default="rbf"
        Kernel by name, with `degree`, `gamma` and `coef0`; or as a record of
        :mod:`dualgap.kernel` with its own parameters, such as ``RBF(gamma=0.1)``; or
        a function of two matrices that returns the kernel of all their rows. With
        "precomputed" X is the kernel matrix. A kernel matrix that is not positive
        semidefinite is refused: it would have no certificate.
    degree : int, default=3
        Of the kernel "poly".
    gamma : {"scale", "auto", "mean-distance"} or float, default="scale"
        Of "rbf", "poly", "sigmoid" and "laplacian". "scale" is ``1/(d Var(X))`` and
        "auto" ``1/d``, as in scikit-learn; "mean-distance" is the inverse of the mean
        squared distance of two rows, as in [1]_.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    loss : {"hinge", "squared_hinge"} or a record of either, default="hinge"
        With the hinge the bias is free, with the squared hinge it is penalised.
    solver : str, KernelSolver or Nystroem, default="auto"
        Method of training: a name in ``dualgap.kernel.KERNEL_SOLVERS`` or a record
        with its own parameters. "auto" is the block solver, for either loss and every
        kernel; the other methods but it train the squared hinge only. "nystroem"
        trains the functions that a few rows span, in far less time where there are
        many rows; what is certified is then that problem, see the Notes.
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/D`` to prove, per pair of classes. The objective
        is then within a factor ``1 + tol`` of the optimum.
    max_epochs : int, default=10000
        Largest number of epochs per pair. An epoch is about as many steps as the pair
        has rows.
    time_limit : float, optional
        Seconds for the whole fit, all pairs together.
    cache_size : float, default=200
        Kernel values held, in megabytes (10**6 bytes), all threads together.
    class_weight : dict or "balanced", optional
        Factor of C for the rows of each class. "balanced" makes the classes weigh
        the same: ``n/(n_classes * count)``, counted with the sample weights.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With more than two classes: one column per class, the votes of the pairs with
        their confidence, or one per pair.
    break_ties : bool, default=False
        With "ovr" and more than two classes, settle equal votes by the confidence
        instead of taking the first class.
    random_state : int, RandomState instance or None, default=None
        Seed of the solver. The same int gives the same model, bit for bit, for given
        `n_jobs` and `cache_size`. Of these the block solver's depends on the room that
        a pair has: it bounds the working sets, and pairs that are trained at the same
        time share it.
    n_jobs : int, optional
        Number of threads: over the pairs in training, as many at a time as `cache_size`
        has room for, and within a pair those that are left; over the rows in
        prediction. None is 1, or what :func:`joblib.parallel_config` says; -1 takes all
        processors.
    verbose : int, default=0
        1 logs each pair, 2 each epoch, through the logger "dualgap" and, if the
        program handles no logs, to standard output.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted. With two, the second one is the positive class.
    support_ : ndarray of shape (n_SV,), intp
        Training rows of the support vectors, sorted by class, then by row.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Of the type of X, float32 or float64; empty, of shape (0, 0), for a
        precomputed kernel.
    n_support_ : ndarray of shape (n_classes,), int32
        Support vectors of each class.
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV), float64
        ``y_i alpha_i``, in the layout of LIBSVM and scikit-learn: a support vector of
        class i has its coefficient against class j in row j - 1 if i < j, in row j if
        j < i. In a pair the class that comes first is the positive one, but with two
        classes it is the second.
    intercept_ : ndarray of shape (n_pairs,), float64
        Constants of the pairs (0, 1), (0, 2), ..., (K - 2, K - 1).
    coef_ : ndarray of shape (n_pairs, n_features), float64
        Weights of the features; only with the linear kernel.
    fit_status_ : int
        0 if every pair is certified, else 1.
    shape_fit_ : tuple of int
        Shape of X.
    n_iter_ : ndarray of shape (n_pairs,), int64
        Epochs of each pair.
    certificate_ : Certificate or list of Certificate
        What is proved about the model: one, or one per pair if there are more than two
        classes.
    history_ : structured ndarray or list of structured ndarray
        One record per epoch; one array, or one per pair.
    n_features_in_ : int
        Number of features seen by fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has names that are all strings.

    See Also
    --------
    sklearn.svm.SVC : The same problem, without a proof.
    LinearSVC : Faster where the kernel is linear.

    Notes
    -----
    For two classes, labels ``y_i`` of -1 and +1 and costs ``c_i = C * sample_weight_i *
    class_weight[y_i]``, it minimises

    .. math:: P = \tfrac12 \|w\|^2 + \sum_i c_i \max(0, 1 - y_i f(x_i)), \qquad
              f(x) = \sum_i \alpha_i y_i k(x_i, x) + b

    over w and b, with :math:`0 \le \alpha_i \le c_i` and
    :math:`\sum_i \alpha_i y_i = 0`, which holds to the last bit. The bias b,
    ``intercept_``, is the one with the least loss. Support vectors with
    :math:`\alpha_i < c_i` determine it; where there is none an interval is as good, and
    b is its middle, as in LIBSVM.

    With ``loss="squared_hinge"`` it is

    .. math:: P = \tfrac12 \|w\|^2 + \sum_i c_i \max(0, 1 - y_i f(x_i))^2, \qquad
              f(x) = \sum_i \alpha_i y_i (k(x_i, x) + 1)

    so that the bias :math:`\sum_i \alpha_i y_i` is penalised as in
    ``LinearSVC(loss="squared_hinge")``, which has the same optimum with a linear
    kernel. The squared hinge makes more rows support vectors than the hinge does, and
    large decision values cost more.

    Problems of up to about 2,000 rows a pair are solved further than `tol` asks, to
    rounding where that takes little longer.

    X may be a dense array or a sparse matrix of float32 or float64. The rows are
    copied once, sorted by class, and each pair has kernel rows of its own. Rows without
    weight are left out. Prediction works in tiles of kernel values, a few megabytes a
    thread.

    With ``solver="nystroem"`` the support vectors are landmarks, half of
    ``n_components`` from each class, shared by its pairs; the model is the best one
    that they span. Its certificate bounds how far the objective is from the least over
    these, not over all rows: ``certificate_.about`` says so. Both of its values are
    those of the problem over the computed features, which are float32.
    :func:`dualgap.certify` proves how far the model is from the optimum of the kernel
    problem, in a pass over the kernel matrix or more. It takes 4 bytes per row and
    landmark; the cache is not used.

    A fit that ends without the proof warns with the accuracy it did reach. So does
    one that is stopped by Ctrl-C, a callback or `time_limit`: the best model that was
    proved so far is kept or, before the first proof, the model reached, with a
    certificate that bounds nothing. A second Ctrl-C raises KeyboardInterrupt.

    Callbacks set with ``set_callbacks`` (scikit-learn 1.9 or newer) see a task
    "epoch" per epoch, with an attribute ``epoch_info``; between epochs there is no
    ``fitted_estimator``. If a hook returns True the fit ends.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        **KERNEL_CONSTRAINTS,
        "loss": [StrOptions({"hinge", "squared_hinge"}), Hinge, SquaredHinge],
        "solver": [
            StrOptions({*KERNEL_SOLVERS, *APPROXIMATIONS}),
            KernelSolver,
            Nystroem,
        ],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "cache_size": CACHE_SIZE,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | Kernel | Function[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        loss: str | Hinge | SquaredHinge = "hinge",
        solver: str | KernelSolver = "auto",
        tol: float = 1e-3,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        cache_size: float = 200,
        class_weight: dict[Any, float] | str | None = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SVC:
        """Train.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to learn from; the kernel matrix of shape (n_samples, n_samples) if
            the kernel is precomputed.
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C, zero or positive: the integer k is worth k equal rows.

        Returns
        -------
        SVC
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is not what is described above, X holds NaN
            or infinite values, a class has no row with a positive weight, or the kernel
            matrix is not positive semidefinite.

        Warns
        -----
        ConvergenceWarning
            If the accuracy asked was not proved, with the accuracy that was.
        """
        return self._fit(X, y, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        on_epoch: OnEpoch | None = None,
    ) -> SVC:
        """Fit, telling on_epoch(label, EpochInfo), which may return True to stop.

        With two classes the label is that of the positive class, else a pair of them.
        """
        stop = core.Stop()
        if self.time_limit is not None:
            stop.set_deadline(self.time_limit)
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        self._refuse_ovo_ties()
        solver = get_kernel_solver(self.solver)
        kernel = self._kernel_record()
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc", "coo"],
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,  # as_data looks at every entry once
        )
        classes, codes = encode(np.asarray(y))
        weight, factor = weights(self.class_weight, X, classes, codes, sample_weight)
        X = as_data(X, kernel)  # names bad rows by the numbers that the caller knows
        kernel = kernel.resolve(X, weight)
        pairs = list(combinations(range(len(classes)), 2))
        rows = _Rows(X, kernel, codes, weight * factor[codes])
        refuse_missing(classes, np.diff(rows.bounds))
        threads = effective_n_jobs(self.n_jobs)
        together = rows.pairs_at_a_time(solver, self.cache_size, threads)
        matrix = rows.matrices(self.cache_size, together)
        if isinstance(self.solver, str):
            solver = solver.one_of(len(pairs), max(1, threads // together))

        labels: list[Any] = list(combinations(classes.tolist(), 2))
        names = [f"{first!s} against {second!s}" for first, second in labels]
        if len(pairs) == 1:
            labels = [classes[1]]
        seeds = check_random_state(self.random_state).randint(
            2**31 - 1, size=len(pairs)
        )
        data = {"X": X, "y": y, "metadata": None}
        if sample_weight is not None:
            data["metadata"] = {"sample_weight": sample_weight}
        tasks = FitTasks(self, data, names, stop)

        models: dict[int, tuple[Vector, float]] = {}  # coefficients and bias

        def train(p: int) -> Solution:
            with tasks.problem(p, None) as callback:
                problem: Any = None
                engine: Any = solver
                if not (stop.requested or stop.expired):
                    problem = rows.problem(matrix, *pairs[p], self.C, self.loss)
                    if isinstance(solver, Nystroem):
                        engine = Auto()
                        problem = solver.approximate(problem, int(seeds[0]), stop=stop)
                if stop.requested or stop.expired:
                    cost = self.C * rows.weights_of(*pairs[p])
                    models[p] = np.zeros(len(cost)), 0.0
                    return _unreached(cost, stop, solver.name, self.tol)
                solution = solve(
                    problem,
                    engine,
                    tol=self.tol,
                    max_epochs=self.max_epochs,
                    random_state=int(seeds[p]),
                    on_epoch=listener(labels[p], callback, on_epoch),
                    stop=stop,
                )
                if isinstance(solver, Nystroem):
                    models[p] = problem.expand(solution.w)
                else:
                    assert solution.bias is not None
                    models[p] = solution.alpha * problem.y, solution.bias
                return solution

        solutions = fit_all(
            train, len(pairs), n_jobs=together, stop=stop, verbose=self.verbose
        )
        self.classes_ = classes
        self.shape_fit_ = X.shape
        self._keep(rows, pairs, [models[p] for p in range(len(pairs))], solutions)
        tasks.end()
        certificates = [solution.certificate for solution in solutions]
        warn_of_failures("SVC", certificates, names, "pairs")
        return self

    def _keep(
        self,
        rows: _Rows,
        pairs: list[tuple[int, int]],
        models: list[tuple[Vector, float]],
        solutions: list[Solution],
    ) -> None:
        """Set the fitted attributes."""
        classes = len(self.classes_)
        coef = np.zeros((classes - 1, len(rows.order)))
        intercept = np.empty(len(pairs))
        for p, (i, j) in enumerate(pairs):
            first, second = rows.of(i), rows.of(j)
            signed, intercept[p] = models[p]
            split = first.stop - first.start
            coef[j - 1, first], coef[i, second] = signed[:split], signed[split:]
        used: NDArray[np.bool_] = np.asarray(coef.any(axis=0))
        self.support_ = rows.order[used]
        self.n_support_ = np.array(
            [np.count_nonzero(used[rows.of(k)]) for k in range(classes)], np.int32
        )
        self.dual_coef_ = np.ascontiguousarray(coef[:, used])
        self.intercept_ = intercept
        self.support_vectors_ = np.empty((0, 0)) if self._precomputed else rows.X[used]
        self._fitted_kernel = rows.kernel
        certificates = [solution.certificate for solution in solutions]
        self.n_iter_ = np.array([c.epochs for c in certificates], np.int64)
        self.fit_status_ = int(not all(c.certified for c in certificates))
        self.certificate_ = one_or_all(certificates)
        self.history_ = one_or_all([solution.history for solution in solutions])

    @property
    def coef_(self) -> Vector:
        """Weights of the features, shape (n_pairs, n_features); linear kernel only.

        Read-only: the model is `dual_coef_`.
        """
        self._refuse_coef()
        check_is_fitted(self)
        ends = np.cumsum(self.n_support_)
        parts = [slice(e - m, e) for e, m in zip(ends, self.n_support_, strict=True)]
        weights = [self.dual_coef_[:, s] @ self.support_vectors_[s] for s in parts]
        pairs = combinations(range(len(self.classes_)), 2)
        coef = np.stack([weights[i][j - 1] + weights[j][i] for i, j in pairs])
        coef.flags.writeable = False
        return coef

    def decision_function(self, X: Any) -> Vector:
        """Decision values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; with a precomputed kernel k(x, x_i) for all training rows i, shape
            (n_samples, n_samples_fit).

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            float64. For two classes positive means ``classes_[1]``; for more see
            `decision_function_shape`. In a pair positive means the first class.
        """
        return self._shaped(self._pair_values(X))

    def _shaped(self, values: Vector) -> Vector:
        """The decision values of the pairs in the shape that is asked for."""
        if len(self.classes_) == 2:
            return values.ravel()
        if self.decision_function_shape == "ovo":
            return values
        return votes(-values, len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels.

        With more than two classes each pair has a vote; of the classes with most
        votes the first one is taken, or with `break_ties` the most confident one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; see :meth:`decision_function` for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        self._refuse_ovo_ties()
        values = self._pair_values(X)
        labels: NDArray[Any] = self.classes_[self._codes(values)]
        return labels

    def _scores_and_labels(self, X: Any) -> tuple[Vector, NDArray[Any]]:
        """Decision values and labels, for the cost of one of them."""
        self._refuse_ovo_ties()
        values = self._pair_values(X)
        return self._shaped(values), self.classes_[self._codes(values)]

    def _codes(self, values: Vector) -> NDArray[np.intp]:
        """Index of the class that the decision values of the pairs elect."""
        classes = len(self.classes_)
        if classes == 2:
            return (values.ravel() > 0.0).astype(np.intp)
        if self.break_ties:
            return votes(-values, classes).argmax(axis=1)
        won = np.zeros((len(values), classes), np.int32)
        for p, (i, j) in enumerate(combinations(range(classes), 2)):
            first = values[:, p] > 0.0
            won[:, i] += first
            won[:, j] += ~first
        return won.argmax(axis=1)

    def _pair_values(self, X: Any) -> Vector:
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
        )
        return pair_values(
            self._fitted_kernel,
            X,
            self.support_vectors_,
            self.dual_coef_,
            self.n_support_,
            self.intercept_,
            support=self.support_,
            n_jobs=self.n_jobs,
        )

    def _refuse_ovo_ties(self) -> None:
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo'"
            )


class _Rows:
    """The training rows with a weight, sorted by class.

    Attributes
    ----------
    X : ndarray or CSR matrix
        Of these rows in this order; of all rows in theirs if the kernel is
        precomputed, for reordering would copy the matrix.
    order : ndarray of shape (m,)
        Rows of the training data, class after class.
    """

    def __init__(
        self, X: Any, kernel: Kernel, codes: NDArray[np.intp], weight: Vector
    ) -> None:
        self.kernel = kernel
        kept = np.flatnonzero(weight > 0.0)
        self.order = kept[np.argsort(codes[kept], kind="stable")]
        self.weight = weight[self.order]
        self.bounds = np.searchsorted(
            codes[self.order], np.arange(codes.max() + 2)
        ).tolist()
        self.precomputed = isinstance(kernel, Precomputed)
        if not self.precomputed and not np.array_equal(
            self.order, np.arange(len(codes))
        ):
            X = X[self.order]
        self.X = X

    def of(self, k: int) -> slice:
        """Where the rows of class k are."""
        return slice(self.bounds[k], self.bounds[k + 1])

    def weights_of(self, i: int, j: int) -> Vector:
        """Weights of the rows of two classes."""
        return np.concatenate([self.weight[self.of(i)], self.weight[self.of(j)]])

    def pairs_at_a_time(
        self, solver: KernelSolver | Nystroem, cache_size: float, threads: int
    ) -> int:
        """Pairs to train at the same time: what each can cache must change no bit."""
        sizes = np.sort(np.diff(self.bounds))
        largest, pairs = int(sizes[-2:].sum()), len(sizes) * (len(sizes) - 1) // 2
        room = rows_in(cache_size, largest) // solver.rows_held(largest)
        return max(1, min(threads, pairs, room))

    def matrices(self, cache_size: float, threads: int) -> Function[[int, int], Matrix]:
        """The kernel matrix of a pair of classes, as a function of the two."""
        if len(self.bounds) == 3 and not self.precomputed:
            return lambda i, j: Gram(self.X, self.kernel, cache_size)
        order = self.order if self.precomputed else None
        return Pairs(self.X, self.kernel, self.bounds, cache_size, threads, order).pair

    def problem(
        self, matrix: Function[[int, int], Matrix], i: int, j: int, C: float, loss: Any
    ) -> KernelProblem:
        """Class i against class j; of two classes the second is the positive one."""
        sizes = [self.bounds[k + 1] - self.bounds[k] for k in (i, j)]
        signs = [-1, 1] if len(self.bounds) == 3 else [1, -1]
        return KernelProblem(
            matrix(i, j),
            np.repeat(np.array(signs, np.int8), sizes),
            C,
            loss=loss,
            sample_weight=self.weights_of(i, j),
            penalize_intercept=get_loss(loss).name != "hinge",
        )


def _unreached(cost: Vector, stop: Any, solver: str, tol: float) -> Solution:
    """The zero model of a pair whose turn came too late: P is the sum of the costs.

    What a fit would need, a copy of the rows and their norms, takes time as well.
    """
    status = Status.INTERRUPTED if stop.requested else Status.TIME_LIMIT
    zero = np.zeros(len(cost))
    total = float(cost.sum())
    bounds = Bounds.proved(total, Rounding.summed * total, 0.0)
    certificate = replace(bounds.certificate, status=status, solver=solver, tol=tol)
    return Solution(zero, zero, certificate, np.empty(0, HISTORY_DTYPE), 0.0)
