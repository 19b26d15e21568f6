"""Kernel SVMs that choose C, gamma and epsilon by cross-validation."""

from __future__ import annotations

import itertools
import logging
import time
import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Callable as Function
from collections.abc import Iterator
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    _fit_context,
    is_classifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from ..certificate import Certificate, Status
from ..kernel import BlockSolver, Gram, KernelRegression
from ..kernel.functions import Kernel
from ..kernel.gram import points_of
from ..kernel.table import Table, shared_matrix, values_at
from ..loop import Solution
from ..losses import Hinge, SquaredHinge, Vector
from ..path import kernel_solutions
from ..problems.base import StoppedError
from ._binary import refuse_missing
from ._fitting import (
    CACHE_SIZE,
    N_JOBS,
    VersionedPickle,
    encode,
    fit_all,
    refuse_masks,
    warn_of_failures,
    weights,
)
from ._kernels import KERNEL_CONSTRAINTS, KernelParameters
from ._single import begin
from .kernel_regression import SVR
from .path import grid_of
from .svc import SVC, _Rows

__all__ = ["SVCCV", "SVRCV"]

logger = logging.getLogger("dualgap")

# A model with one of these statuses is incomplete and is not scored.
_CUT_SHORT = (Status.INTERRUPTED, Status.TIME_LIMIT)

_CONSTRAINTS: dict[str, list[Any]] = {
    "Cs": [Integral, "array-like"],
    "gammas": [KERNEL_CONSTRAINTS["gamma"][0], Real, "array-like"],
    "cv": ["cv_object"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    **{name: KERNEL_CONSTRAINTS[name] for name in ("kernel", "degree", "coef0")},
    "tol": [Interval(Real, 0, None, closed="neither")],
    "atol": [Interval(Real, 0, None, closed="left")],
    "max_epochs": [Interval(Integral, 1, None, closed="left")],
    "time_limit": [Interval(Real, 0, None, closed="neither"), None],
    "cache_size": CACHE_SIZE,
    "refit": ["boolean"],
    "random_state": ["random_state"],
    "n_jobs": N_JOBS,
    "verbose": ["verbose"],
}


class _HeldOut:
    """Mixin of a model of a fold, which knows its values at the held-out rows."""

    _held_out: tuple[Any, Vector] | None = None

    def _known(self, X: Any) -> Vector | None:
        return self._held_out[1] if self._held_out and X is self._held_out[0] else None


class _FoldSVC(_HeldOut, SVC):
    def _pair_values(self, X: Any) -> Vector:
        known = self._known(X)
        return super()._pair_values(X) if known is None else known


class _FoldSVR(_HeldOut, SVR):
    def _values(self, X: Any) -> Vector:
        known = self._known(X)
        return super()._values(X) if known is None else known[:, 0]


class _Results:
    """Scores, gaps and times of the candidates on the folds; NaN where not reached."""

    def __init__(self, candidates: list[dict[str, Any]], folds: int) -> None:
        self.candidates = candidates
        shape = (folds, len(candidates))
        self.scores, self.gaps, self.fit_times, self.score_times = np.full(
            (4, *shape), np.nan
        )
        self.certificates: list[tuple[str, Certificate]] = []

    @property
    def done(self) -> NDArray[np.bool_]:
        """Candidates that were scored on all folds."""
        return ~np.isnan(self.fit_times).any(axis=0)

    def table(self) -> dict[str, Any]:
        """Return the results in the layout of GridSearchCV, and the proven gaps."""
        out: dict[str, Any] = {}
        for name, values in (("fit", self.fit_times), ("score", self.score_times)):
            out[f"mean_{name}_time"] = values.mean(axis=0)
            out[f"std_{name}_time"] = values.std(axis=0)
        for name in self.candidates[0]:
            kinds = {type(params[name]) for params in self.candidates}
            column = np.ma.empty(
                len(self.candidates), dtype=float if kinds == {float} else object
            )
            for k, params in enumerate(self.candidates):
                column[k] = params[name]
            out[f"param_{name}"] = column
        out["params"] = self.candidates
        for fold, scores in enumerate(self.scores):
            out[f"split{fold}_test_score"] = scores
        mean = self.scores.mean(axis=0)
        out["mean_test_score"] = mean
        out["std_test_score"] = self.scores.std(axis=0)
        last = np.where(np.isnan(mean), -np.inf, mean)
        out["rank_test_score"] = rankdata(-last, method="min").astype(np.int32)
        for fold, gaps in enumerate(self.gaps):
            out[f"split{fold}_relative_gap"] = gaps
        return out


class _KernelCV(VersionedPickle, KernelParameters, BaseEstimator):  # type: ignore[misc]
    """Base of kernel estimators that choose parameters by cross-validation."""

    Cs: int | ArrayLike
    gammas: Any
    cv: Any
    scoring: Any
    refit: bool
    tol: float
    atol: float
    max_epochs: int
    time_limit: float | None
    cache_size: float
    random_state: Any
    n_jobs: int | None
    verbose: int

    #: Names of the grids among the parameters, and of their parameters of the model.
    _grids: ClassVar[dict[str, str]]

    @abstractmethod
    def _model(self, fold: bool = False, **params: Any) -> Any:
        """Return a model with these parameters and the others of this estimator."""

    @abstractmethod
    def _walk(
        self,
        matrix: Table | Gram,
        kernel: Kernel,
        data: Any,
        part: Vector,
        test: NDArray[np.intp],
        params: dict[str, Any],
        Cs: Vector,
        stop: Any,
    ) -> Iterator[tuple[Any, Vector]]:
        """Train a fold for every C; yield the model and its values at `test`."""

    def _common(self) -> dict[str, Any]:
        own: dict[str, Any] = self.get_params(deep=False)
        for name in (*self._grids, "cv", "scoring", "refit"):
            del own[name]
        return own

    def _candidates(self) -> tuple[list[dict[str, Any]], Vector, list[dict[str, Any]]]:
        """Return all candidates, the values of C, and all other parameters of these."""
        grids: dict[str, list[Any]] = {"C": grid_of(self.Cs).tolist()}
        for own, name in self._grids.items():
            if own == "Cs":
                continue
            value = getattr(self, own)
            single = isinstance(value, (str, Real))
            values = [value] if single else list(value)
            if not values:
                raise ValueError(f"{own}={value!r} is empty; give one or more values")
            values = [v if isinstance(v, str) else float(v) for v in values]
            grids[name] = list(dict.fromkeys(values))
        Cs = np.unique(grids["C"])
        others = {name: values for name, values in grids.items() if name != "C"}
        return list(ParameterGrid(grids)), Cs, list(ParameterGrid(others))

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _fit_search(
        self,
        X: Any,
        y: Any,
        given: Any,
        weight: Vector,
        groups: Any,
        data_of: Function[[Any], Any],
    ) -> None:
        """Search, and train the final model; X and y are validated."""
        stop = begin(self.time_limit)
        candidates, Cs, others = self._candidates()
        probe = self._model(**candidates[0])
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        folds = [
            (np.arange(len(y))[train], np.arange(len(y))[test])
            for train, test in splitter.split(X, y, groups)
        ]
        parts = [_part(weight, train) for train, _ in folds]
        scorer = check_scoring(probe, scoring=self.scoring)
        results = _Results(candidates, len(folds))
        points = points_of(X, probe._kernel_record())
        data = data_of(points)
        threads = min(effective_n_jobs(self.n_jobs), len(folds))
        number = {_key(params): k for k, params in enumerate(candidates)}
        begun, total = time.perf_counter(), len(candidates) * len(folds)
        finished = itertools.count(1)

        def score_path(
            fold: int, matrix: Table | Gram, kernel: Kernel, params: dict[str, Any]
        ) -> Iterator[None]:
            test = folds[fold][1]
            X_test, y_test = _safe_indexing(X, test), y[test]
            last = time.perf_counter()
            for model, values in self._walk(
                matrix, kernel, data, parts[fold], test, params, Cs, stop
            ):
                certificate = model.certificate_
                if any(c.status in _CUT_SHORT for c in certificate.parts):
                    return
                model._held_out = X_test, values
                model.n_features_in_ = X.shape[1]
                middle = time.perf_counter()
                score = float(scorer(model, X_test, y_test))
                now = time.perf_counter()
                k = number[_key({**params, "C": float(model.C)})]
                results.gaps[fold, k] = max(c.relative_gap for c in certificate.parts)
                results.scores[fold, k] = score
                results.score_times[fold, k] = now - middle
                results.fit_times[fold, k] = middle - last
                last = now
                named = ", ".join(f"{n}={v}" for n, v in candidates[k].items())
                results.certificates += [
                    (f"fold {fold}, {named}", c) for c in certificate.parts
                ]
                done = next(finished)
                left = (now - begun) / done * (total - done)
                logger.info(
                    "%s: %d of %d models, fold %d, %s: score %.4g, about %.0f s left",
                    type(self).__name__, done, total, fold, named, score, left,
                )  # fmt: skip
                yield

        for gamma in dict.fromkeys(params["gamma"] for params in others):
            if stop.requested or stop.expired:
                break
            kernel = self._model(gamma=gamma)._kernel_record()
            kernel = kernel.resolve(points.X, weight)
            try:
                matrix = shared_matrix(points, kernel, self.cache_size, threads, stop)
            except StoppedError:
                break
            for params in others:
                if params["gamma"] != gamma:
                    continue

                def in_turns(
                    _: int,
                    matrix: Any = matrix,
                    kernel: Any = kernel,
                    params: Any = params,
                ) -> None:
                    walks = [
                        score_path(f, matrix, kernel, params) for f in range(len(folds))
                    ]
                    deque(itertools.zip_longest(*walks), maxlen=0)

                def alone(
                    fold: int,
                    matrix: Any = matrix,
                    kernel: Any = kernel,
                    params: Any = params,
                ) -> None:
                    deque(score_path(fold, matrix, kernel, params), maxlen=0)

                fit_all(
                    in_turns if threads == 1 else alone,
                    1 if threads == 1 else len(folds),
                    n_jobs=self.n_jobs,
                    stop=stop,
                    verbose=self.verbose,
                )
            del matrix
        self._choose(results, stop)
        if self.refit:
            model = self._model(**self.best_params_)
            began = time.perf_counter()
            model.set_params(time_limit=None).fit(X, y, given)
            self.refit_time_ = time.perf_counter() - began
            self.best_estimator_ = model.set_params(time_limit=self.time_limit)
            self.certificate_ = model.certificate_

    def _choose(self, results: _Results, stop: Any) -> None:
        """Set the attributes of the search."""
        name, done = type(self).__name__, results.done
        why = (
            "interrupted"
            if stop.requested
            else f"time_limit={self.time_limit!r} was reached"
        )
        if not done.any():
            message = f"{name}: {why} before any candidate was scored on all folds"
            if stop.requested:
                raise KeyboardInterrupt(message)
            raise ValueError(f"{message}; give more time, or fewer candidates or folds")
        self.cv_results_ = results.table()
        mean = np.where(done, self.cv_results_["mean_test_score"], np.nan)
        if np.isnan(mean).all():
            raise ValueError(
                f"scoring={self.scoring!r} gave NaN for every candidate; choose "
                "another score"
            )
        self.best_index_ = int(np.nanargmax(mean))
        self.best_params_ = results.candidates[self.best_index_]
        self.best_score_ = float(mean[self.best_index_])
        self.n_splits_ = len(results.scores)
        for parameter, value in self.best_params_.items():
            setattr(self, f"{parameter}_", value)
        if results.certificates:
            names, certificates = zip(*results.certificates, strict=True)
            everything = Certificate.total(list(certificates), list(names))
            warn_of_failures(name, everything, "models", stacklevel=6)
        if not done.all():
            warnings.warn(
                f"{name}: {why} after {done.sum()} of {len(done)} candidates were "
                f"scored on all folds. best_params_={self.best_params_} are the best "
                "of these; missing scores are NaN",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _checked(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc", "coo"],
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,  # points_of checks every entry
            **options,
        )
        if hasattr(X, "tocsr"):
            X = X.tocsr()
        weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        return X, y, weight

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict with the final model; see the `predict` of `best_estimator_`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        model, X = self._final(X)
        found: NDArray[Any] = model.predict(X)
        return found

    def _final(self, X: Any) -> tuple[Any, Any]:
        """Return the final model and the checked rows."""
        check_is_fitted(self)
        if not self.refit:
            raise AttributeError(
                f"{type(self).__name__} has refit=False, so there is no final model"
            )
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
        return self.best_estimator_, X


def _refits(search: Any) -> bool:
    return bool(search.refit)


class SVCCV(ClassifierMixin, _KernelCV):  # type: ignore[misc]
    """Kernel support vector classifier that chooses C and gamma by cross-validation.

    It does the search of ``GridSearchCV(SVC(...), {"C": Cs, "gamma": gammas})`` and
    proves the accuracy of every model. With two classes it is faster. The folds, the
    classes and all values of C share one kernel matrix per gamma, and each fit starts
    from the solutions for smaller values of C.

    Parameters
    ----------
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C. An int gives a logarithmic grid from 1e-4 to 1e4.
    gammas : str, float or array-like of these, default="scale"
        Values of gamma, as for :class:`SVC`. A name such as "scale" becomes a number
        once, for all rows; a search that copies the rows computes it for each fold.
    cv : int, splitter or iterable, default=None
        Folds, as for scikit-learn's ``GridSearchCV``; None means 5 stratified folds.
    scoring : str or callable, optional
        Score to maximise. None means accuracy.
    kernel, degree, coef0, loss, class_weight
        As for :class:`SVC`.
    tol, atol : float
        Accuracy to prove for every model, as for :class:`SVC`.
    max_epochs : int, default=10000
        Largest number of epochs per fit.
    time_limit : float, optional
        Seconds for the search. The final fit comes after them.
    cache_size : float, default=200
        Megabytes (10**6 bytes) for kernel values, for all threads together; see Notes.
    decision_function_shape, break_ties
        As for :class:`SVC`.
    refit : bool, default=True
        Whether to train a final model on all rows with the best parameters.
    random_state : int, RandomState instance or None, default=None
        Seed of the solver. The folds have their own seed, in `cv`.
    n_jobs : int, optional
        Number of threads, shared by the folds.
    verbose : int, default=0
        1 logs each model with the time left, 2 also each epoch.

    Attributes
    ----------
    C_, gamma_ : float
        Best parameters, as in `Cs` and `gammas`.
    best_params_ : dict
        The same by name. Of equal mean scores the first candidate wins. Only candidates
        that were scored on all folds count.
    best_index_ : int
        Index of the best candidate in `cv_results_`.
    best_score_ : float
        Mean over the folds of the scores of the best candidate.
    cv_results_ : dict
        Results in the layout of ``GridSearchCV``. ``split*_relative_gap`` is the
        largest proven gap of the models of a fold. NaN where the search was cut short.
    n_splits_ : int
        Number of folds.
    best_estimator_ : SVC
        The final model, fitted on all rows. Only with `refit`.
    refit_time_ : float
        Seconds of the final fit. Only with `refit`.
    certificate_ : Certificate
        Certificate of the final model. Only with `refit`.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_features_in_ : int
        Number of features seen by fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has column names that are all strings.

    See Also
    --------
    LinearSVCCV : The same for linear classifiers.
    SVRCV : The same for regression.

    Notes
    -----
    The shared kernel matrix takes ``8 n^2`` bytes, and each thread ``4.6 n^2`` more:
    200 MB hold 3,900 rows on one thread. If `cache_size` is smaller, every fit
    computes its kernel rows again, as :class:`SVC` does, and saves only steps.

    With three or more classes and few rows per pair of classes, the search can take
    longer than ``GridSearchCV(SVC(...))``, which solves such pairs in one call.

    Models are proved to `tol` and not solved further, even where :class:`SVC` solves
    small problems up to rounding. The scores then differ by a few rows; a smaller `tol`
    makes them equal. The certificates of the search are about the kernel matrix as
    computed in float64.

    Ctrl-C or `time_limit` ends the search, and the best of the candidates that were
    scored on all folds is trained on all rows. If there is none, Ctrl-C raises
    KeyboardInterrupt and `time_limit` raises ValueError.

    Examples
    --------
    >>> from dualgap import SVCCV
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCCV([0.1, 1.0, 10.0], gammas=[0.1, 1.0], random_state=0).fit(X, y)
    >>> search.best_params_
    {'C': 1.0, 'gamma': 0.1}
    >>> search.certificate_.certified
    True
    """

    _grids: ClassVar[dict[str, str]] = {"Cs": "C", "gammas": "gamma"}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_CONSTRAINTS,
        "loss": [StrOptions({"hinge", "squared_hinge"}), Hinge, SquaredHinge],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
    }

    def __init__(
        self,
        Cs: int | ArrayLike = 10,
        gammas: Any = "scale",
        *,
        cv: Any = None,
        scoring: str | Function[..., float] | None = None,
        kernel: str | Kernel | Function[[Any, Any], Any] = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        loss: str | Hinge | SquaredHinge = "hinge",
        tol: float = 1e-3,
        atol: float = 0.0,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        cache_size: float = 200,
        class_weight: dict[Any, float] | str | None = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        refit: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.tol = tol
        self.atol = atol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.refit = refit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> SVCCV:
        """Choose the parameters by cross-validation, and train on all rows with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, the kernel matrix.
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C in training. They do not count in the scores.
        groups : array-like of shape (n_samples,), optional
            Groups of the rows, for the splitter `cv`.

        Returns
        -------
        SVCCV
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, a training part has rows of fewer
            than two classes, or `time_limit` ends before any candidate was scored on
            all folds.
        KeyboardInterrupt
            After Ctrl-C, if no candidate was scored on all folds yet.

        Warns
        -----
        ConvergenceWarning
            If a scored model or the final model did not reach `tol`, or the search was
            cut short.
        """
        X, y, weight = self._checked(X, y, sample_weight)
        y = np.asarray(y)
        self.classes_, codes = encode(y)
        weights(self.class_weight, X, self.classes_, codes, weight)
        self._fit_search(
            X, y, sample_weight, weight, groups, lambda points: (points, codes)
        )
        return self

    def _model(self, fold: bool = False, **params: Any) -> SVC:
        return (_FoldSVC if fold else SVC)(**{**self._common(), **params})

    def _walk(
        self,
        matrix: Table | Gram,
        kernel: Kernel,
        data: Any,
        part: Vector,
        test: NDArray[np.intp],
        params: dict[str, Any],
        Cs: Vector,
        stop: Any,
    ) -> Iterator[tuple[Any, Vector]]:
        points, codes = data
        # Classes without a row in this training part are left out, as in a search that
        # copies the rows.
        present = np.unique(codes[part > 0.0])
        own = np.searchsorted(present, codes).clip(max=len(present) - 1)
        classes = self.classes_[present]
        part, factor = weights(self.class_weight, points.X, classes, own, part)
        rows = _Rows(points, kernel, own, part * factor[own])
        refuse_missing(classes, np.diff(rows.bounds))
        pairs = list(combinations(range(len(classes)), 2))
        bias = self._model()._bias_of_problems()
        solver, seed = BlockSolver(), self._seed()

        def subset(i: int, j: int) -> Any:
            of = [np.arange(rows.bounds[k], rows.bounds[k + 1]) for k in (i, j)]
            return matrix.subset(rows.order[np.concatenate(of)])

        def path_of(i: int, j: int) -> Iterator[tuple[Any, Solution]]:
            some = subset(i, j)
            return kernel_solutions(
                lambda C: rows.problem(lambda i, j: some, i, j, C, self.loss, bias),
                Cs,
                solver,
                tol=self.tol,
                atol=self.atol,
                max_epochs=self.max_epochs,
                random_state=seed,
                stop=stop,
            )

        paths = [path_of(i, j) for i, j in pairs]
        for C in Cs:
            if stop.requested or stop.expired:
                return
            found = [next(path) for path in paths]
            model = self._model(fold=True, C=float(C), **params)
            model.classes_, model.shape_fit_ = classes, points.X.shape
            solutions = [solution for _, solution in found]
            models = [(s.alpha * p.y, float(s.bias or 0.0)) for p, s in found]
            model._keep(rows, pairs, models, solutions)
            coef = np.zeros((len(pairs), len(codes)))
            for p, (i, j) in enumerate(pairs):
                at = np.concatenate([rows.order[rows.of(i)], rows.order[rows.of(j)]])
                coef[p, at] = models[p][0]
            try:
                values = values_at(matrix, test, coef, stop)
            except StoppedError:
                return
            yield model, values + model.intercept_

    @available_if(_refits)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Vector:
        """Return the decision values of the final model; see :class:`SVC`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
        """
        model, X = self._final(X)
        found: Vector = model.decision_function(X)
        return found


class SVRCV(RegressorMixin, _KernelCV):  # type: ignore[misc]
    """Kernel support vector regressor that chooses its parameters by cross-validation.

    It chooses C, gamma and epsilon. All folds and all values of C and epsilon share one
    kernel matrix per gamma; see :class:`SVCCV`.

    Parameters
    ----------
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C. An int gives a logarithmic grid from 1e-4 to 1e4.
    gammas : str, float or array-like of these, default="scale"
        Values of gamma; see :class:`SVCCV`.
    epsilons : float or array-like of shape (n_epsilons,), default=0.1
        Values of epsilon, on the scale of the targets.
    cv : int, splitter or iterable, default=None
        Folds, as for scikit-learn's ``GridSearchCV``; None means 5 folds.
    scoring : str or callable, optional
        Score to maximise. None means R^2.
    kernel, degree, coef0
        As for :class:`SVR`.
    tol, atol : float
        Accuracy to prove for every model, as for :class:`SVR`.
    max_epochs : int, default=10000
        Largest number of epochs per fit.
    time_limit : float, optional
        Seconds for the search. The final fit comes after them.
    cache_size : float, default=200
        Megabytes for kernel values; see :class:`SVCCV`.
    refit : bool, default=True
        Whether to train a final model on all rows with the best parameters.
    random_state : int, RandomState instance or None, default=None
        Seed of the solver.
    n_jobs : int, optional
        Number of threads, shared by the folds.
    verbose : int, default=0
        1 logs each model with the time left, 2 also each epoch.

    Attributes
    ----------
    C_, gamma_, epsilon_ : float
        Best parameters, as in `Cs`, `gammas` and `epsilons`.
    best_params_, best_index_, best_score_, cv_results_, n_splits_, refit_time_
        As for :class:`SVCCV`.
    best_estimator_ : SVR
        The final model, fitted on all rows. Only with `refit`.
    certificate_ : Certificate
        Certificate of the final model. Only with `refit`.
    n_features_in_ : int
        Number of features seen by fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has column names that are all strings.

    See Also
    --------
    SVCCV : The same for classification.

    Examples
    --------
    >>> import numpy as np
    >>> from dualgap import SVRCV
    >>> X = np.linspace(0.0, 6.0, 60)[:, None]
    >>> y = np.sin(X).ravel()
    >>> search = SVRCV([1.0, 10.0], epsilons=[0.01, 0.3], cv=3).fit(X[::-1], y[::-1])
    >>> search.epsilon_ in (0.01, 0.3)
    True
    """

    _grids: ClassVar[dict[str, str]] = {
        "Cs": "C",
        "gammas": "gamma",
        "epsilons": "epsilon",
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_CONSTRAINTS,
        "epsilons": [Real, "array-like"],
    }

    def __init__(
        self,
        Cs: int | ArrayLike = 10,
        gammas: Any = "scale",
        epsilons: float | ArrayLike = 0.1,
        *,
        cv: Any = None,
        scoring: str | Function[..., float] | None = None,
        kernel: str | Kernel | Function[[Any, Any], Any] = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        atol: float = 0.0,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        cache_size: float = 200,
        refit: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.atol = atol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.refit = refit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> SVRCV:
        """Choose the parameters by cross-validation, and train on all rows with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, the kernel matrix.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C in training. They do not count in the scores.
        groups : array-like of shape (n_samples,), optional
            Groups of the rows, for the splitter `cv`.

        Returns
        -------
        SVRCV
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, or `time_limit` ends before any
            candidate was scored on all folds.
        KeyboardInterrupt
            After Ctrl-C, if no candidate was scored on all folds yet.

        Warns
        -----
        ConvergenceWarning
            If a scored model or the final model did not reach `tol`, or the search was
            cut short.
        """
        if y is None:
            raise ValueError(
                "This SVRCV estimator requires y to be passed, but the target y is "
                "None."
            )
        X, y, weight = self._checked(X, y, sample_weight, y_numeric=True)
        self._fit_search(
            X, y, sample_weight, weight, groups, lambda points: (points, y)
        )
        return self

    def _model(self, fold: bool = False, **params: Any) -> SVR:
        return (_FoldSVR if fold else SVR)(**{**self._common(), **params})

    def _walk(
        self,
        matrix: Table | Gram,
        kernel: Kernel,
        data: Any,
        part: Vector,
        test: NDArray[np.intp],
        params: dict[str, Any],
        Cs: Vector,
        stop: Any,
    ) -> Iterator[tuple[Any, Vector]]:
        points, y = data
        kept = np.flatnonzero(part > 0.0)
        if not kept.size:
            raise ValueError("a training part has no row with a positive weight")
        some = matrix.subset(kept)
        for problem, solution in kernel_solutions(
            lambda C: KernelRegression(
                some, y[kept], C, epsilon=params["epsilon"], sample_weight=part[kept]
            ),
            Cs,
            BlockSolver(),
            tol=self.tol,
            atol=self.atol,
            max_epochs=self.max_epochs,
            random_state=self._seed(),
            stop=stop,
        ):
            model = self._model(fold=True, C=problem.C, **params)
            support = np.flatnonzero(solution.alpha)
            model.support_ = kept[support]
            model.n_support_ = np.array([support.size], np.int32)
            model.dual_coef_ = solution.alpha[None, support]
            model.intercept_ = np.array([solution.bias])
            model.support_vectors_ = (
                np.empty((0, 0)) if self._precomputed else points.X[kept[support]]
            )
            model._fitted_kernel = kernel
            model.certificate_ = solution.certificate
            coef = np.zeros((1, len(y)))
            coef[0, kept] = solution.alpha
            try:
                values = values_at(matrix, test, coef, stop)
            except StoppedError:
                return
            yield model, values + model.intercept_


def _key(params: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(params.items()))


def _part(weight: Vector, train: NDArray[np.intp]) -> Vector:
    """Return the weights of a training part: 0 for other rows, k times for repeats."""
    return weight * np.bincount(train, minlength=len(weight))
