"""Searches for C and other parameters by cross-validation."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .. import core
from ..checks import refuse_huge
from ..core import StoppedError
from ..data.rows import Points
from ..data.types import MatrixLike
from ..data.types import Parameters as Values
from ..kernels.functions import refuse_items, takes_items
from ..losses import Vector
from ..training.batch import begin
from ..training.checkpoint import Checkpoint
from .base import Model, Parameters, tell, warn_of_models
from .certified import certified_search
from .folds import CrossValidation, FoldFit, Folds, run, why_ended
from .input import (
    check_sample_weight,
    checked,
    labelled,
    refuse_masks,
    refuse_store,
    validated,
)
from .parameters import (
    ClassWeight,
    File,
    Flag,
    Grid,
    Positive,
    ProbabilityHints,
    Share,
    refuse_scores_of_probabilities,
)
from .results import Results, best_of

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger("dualgap")

#: Parameters of a search, not of its models.
_OF_SEARCH = (
    *("cv", "scoring", "refit", "checkpoint", "checkpoint_every"),
    *("certify_C", "error_tolerance"),
)
#: Parameters that do not change the scores. The folds are part of the data.
_LIMITS = {
    *("cv", "refit", "checkpoint", "checkpoint_every", "time_limit", "cache_size"),
    *("n_jobs", "verbose", "decision_function_shape"),
}


def grid_of(Cs: int | ArrayLike) -> Vector:
    """Return the values of C, float64: the given ones, or a grid from 1e-4 to 1e4."""
    refuse_huge("Cs", Cs, whole=isinstance(Cs, Integral))
    if isinstance(Cs, (int, Integral)):
        if Cs < 1:
            raise ValueError(
                f"Cs={Cs!r} is not positive; give the number of values, or the values"
            )
        return np.logspace(-4, 4, int(Cs))
    grid = np.asarray(Cs, dtype=object)  # whose entries may be words
    valid = all(isinstance(C, Real) and 0.0 < float(C) < np.inf for C in grid.flat)
    if grid.ndim != 1 or grid.size == 0 or not valid:
        raise ValueError(
            f"Cs={Cs!r} is invalid; give positive, finite numbers, or how many to try"
        )
    return grid.astype(np.float64)


@dataclass(eq=False, repr=False)
class Search(Parameters):
    """Base of estimators that choose parameters by cross-validation.

    Parameters
    ----------
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C. An int gives a logarithmic grid from 1e-4 to 1e4.
    cv : int, splitter or iterable, default=None
        Folds, as for scikit-learn's ``GridSearchCV``; None means 5 folds, stratified
        for classifiers.
    scoring : str or callable, optional
        Score to maximise. None means accuracy, or R^2 for a regression. It is called
        without sample weights.
    refit : bool, default=True
        Whether to train a final model on all rows with the best parameters.
    checkpoint : str or path-like, optional
        File that holds the scores so far. The same search goes on from it after it was
        killed or cut short. Its folds must be the same again, so a splitter that
        shuffles needs a seed. It needs safetensors.
    checkpoint_every : float, default=60.0
        Seconds between two checkpoints.
    tol, atol : float
        Accuracy to prove for every model.
    max_iter : int, default=10000
        Largest number of epochs per fit.
    time_limit : float, optional
        Seconds for the search. The final fit comes after them.
    random_state : int, RandomState instance or None, default=0
        Seed of the solver. The folds have their own seed, in `cv`.
    n_jobs : int, optional
        Number of threads, shared by the folds. None means 1 unless
        :func:`joblib.parallel_config` sets another number; -1 uses all processors.
    verbose : int, default=0
        1 logs each model with the time left, 2 also each epoch.

    Attributes
    ----------
    best_params_ : dict
        Best parameters by name. Of equal mean scores the first candidate wins. Only
        candidates that were scored on all folds count.
    best_index_ : int
        Index of the best candidate in `cv_results_`.
    best_score_ : float
        Mean over the folds of the scores of the best candidate.
    cv_results_ : dict
        Results in the layout of ``GridSearchCV``. ``split*_relative_gap`` is the
        largest proven gap of the models of a fold. NaN where the search was cut short.
    n_splits_ : int
        Number of folds.
    best_estimator_ : estimator
        The final model, fitted on all rows. Only with `refit`.
    refit_time_ : float
        Seconds of the final fit. Only with `refit`.
    certificate_ : Certificate
        Certificate of the final model. Only with `refit`.
    n_iter_ : int
        Number of epochs of the final model. Only with `refit`.
    """

    Cs: Grid = 10
    _: KW_ONLY
    cv: Annotated[CrossValidation, "cv_object"] = None
    scoring: Annotated[
        str | Callable[..., float] | None,
        StrOptions(set(get_scorer_names())),
        callable,
        None,
    ] = None
    refit: Flag = True
    checkpoint: File = None
    checkpoint_every: Positive = 60.0

    #: Names of the grids among the parameters, and of their parameters of the model.
    _grids: ClassVar[dict[str, str]] = {"Cs": "C"}

    def _template(self, **params: Any) -> Model:
        """Return a model with these parameters and the others of this search."""
        own: Values = self.get_params(deep=False)
        for name in (*self._grids, *_OF_SEARCH):
            own.pop(name, None)
        return self._model(**own, **params)

    #: Class of the models.
    _model: ClassVar[type[Model]]

    def _candidates(self) -> tuple[list[Values], Vector, list[Values]]:
        """Return all candidates, the values of C, and all other parameters of these."""
        grids: dict[str, list[str | float]] = {"C": grid_of(self.Cs).tolist()}
        for own, name in [*self._grids.items()][1:]:  # the first is Cs
            value = getattr(self, own)
            values = [value] if isinstance(value, (str, Real)) else list(value)
            kinds = (Real, str) if name == "gamma" else (Real,)  # such as "scale"
            if not values or not all(isinstance(v, kinds) for v in values):
                raise ValueError(f"{own}={value!r} is empty or invalid; give numbers")
            numbers = (v if isinstance(v, str) else float(v) for v in values)
            grids[name] = list(dict.fromkeys(numbers))
        Cs = np.unique(grids["C"])
        others = {name: values for name, values in grids.items() if name != "C"}
        return list(ParameterGrid(grids)), Cs, list(ParameterGrid(others))

    @checked
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose the parameters by cross-validation, and train on all rows with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, the kernel matrix.
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings; targets of a regression.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C in training. They do not count in the scores.
        groups : array-like of shape (n_samples,), optional
            Groups of the rows, for the splitter `cv`.

        Returns
        -------
        self
            The fitted search.

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
            If a scored model or the final model did not reach `tol`, the search was cut
            short, or `error_tolerance` was not proved.
        """
        name = type(self).__name__
        candidates, Cs, others = self._candidates()
        refuse_store(X, name, "fit LinearSVC(warm_start=True) on the store, C by C")
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        if takes_items(getattr(self, "kernel", None), X):
            refuse_items(name)
        probe = self._template()
        scorer: Callable[..., float] = check_scoring(probe, scoring=self.scoring)
        refuse_scores_of_probabilities(probe, self.scoring, scorer)
        stop = begin(self.time_limit)
        classifies = is_classifier(self)
        X, y = validated(self, X, y, **({} if classifies else {"y_numeric": True}))
        X, y = X.tocsr() if hasattr(X, "tocsr") else X, np.asarray(y)
        weight = None
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, X)
        if classifies:
            self.classes_ = labelled(self.class_weight, X, y, sample_weight).classes
        splits = list(check_cv(self.cv, y, classifier=classifies).split(X, y, groups))
        points = Points.of(X, self._template()._constant)
        folds = Folds(points, y, weight, splits, stop, self._threads, len(others))
        folds.refuse_weightless(classifies)
        results = self._certified(folds, Cs)
        if results is None:
            results = Results(name, candidates, len(splits))
            with self._file((X, y, weight, splits)) as file:
                if file is not None:
                    results.resume(file)
                self._search(folds, Cs, others, results, scorer)
                results.save()
        self._choose(results, stop)
        if self.refit:
            model = self._template(**self.best_params_)
            begun = time.perf_counter()
            model.set_params(time_limit=None).fit(points, y, sample_weight)
            self.refit_time_ = time.perf_counter() - begun
            self.best_estimator_ = model.set_params(time_limit=self.time_limit)
            self.certificate_, self.n_iter_ = model.certificate_, model.n_iter_
            if hasattr(self, "feature_names_in_"):
                model.feature_names_in_ = self.feature_names_in_
        return self

    def _certified(self, folds: Folds, Cs: Vector) -> Results | None:
        """Search with a proof about all values of C, if the parameters ask for it."""
        return None

    def _resolved(self, model: Model, folds: Folds) -> Model:
        """Return the model with all parameters that its folds share as numbers."""
        return model

    def _file(
        self, data: object
    ) -> contextlib.AbstractContextManager[Checkpoint | None]:
        """Return the checkpoint of the search as a context, or an empty context."""
        if self.checkpoint is None:
            return contextlib.nullcontext()
        own = {k: v for k, v in self.get_params(deep=False).items() if k not in _LIMITS}
        about = {
            "data": joblib.hash(data),
            **{k: getattr(v, "__qualname__", repr(v)) for k, v in sorted(own.items())},
        }
        return Checkpoint(self.checkpoint, self.checkpoint_every, about)

    def _search(
        self,
        folds: Folds,
        Cs: Vector,
        others: list[Values],
        results: Results,
        scorer: Callable[..., float],
    ) -> None:
        """Train and score all candidates until the end or a stop."""
        plain = self.scoring in (None, "accuracy" if is_classifier(self) else "r2")
        job = self._job(folds.stop)

        def take(fits: list[FoldFit], params: Values) -> None:
            for fit in fits:
                if job.stopped:
                    return
                begun = time.perf_counter()
                score = fit.score()
                if not plain:
                    score = float(scorer(fit.fitted(), fit.X_test, fit.y_test))
                scored = time.perf_counter() - begun
                own = {**params, "C": float(fit.model.C)}
                results.add(fit.fold, own, fit.parts, score, (fit.seconds, scored))

        for params in others:
            left = results.missing(params, Cs)
            if job.stopped:
                return
            if left.size:
                model = self._resolved(self._template(**params), folds)
                try:
                    walks = folds.walks(model, left)
                except StoppedError:
                    return
                run(walks, partial(take, params=params), job)

    def _choose(self, results: Results, stop: core.Stop) -> None:
        """Set the attributes of the search."""
        name, done = results.name, results.done
        found, table = np.flatnonzero(done), results.table()
        mean = table["mean_test_score"]
        Cs = np.array([params["C"] for params in results.candidates])
        best = best_of(
            mean[found], Cs[found], stop, "candidate", self.scoring, self.time_limit
        )
        self.cv_results_ = table
        self.best_index_ = int(found[best])
        self.best_params_ = results.candidates[self.best_index_]
        self.best_score_ = float(mean[self.best_index_])
        self.n_splits_ = len(results.scores)
        if results.bounds:
            self.error_bounds_ = results.bounds[self.best_params_.get("gamma", "")]
        for parameter, value in self.best_params_.items():
            setattr(self, f"{parameter}_", value)
        warn_of_models(name, results.certificates)
        self._interrupted = stop.requested
        if not done.all():
            tell(
                f"{name}: {why_ended(stop, self.time_limit)} after {done.sum()} of "
                f"{len(done)} candidates were scored on all folds. "
                f"best_params_={self.best_params_} are the best of these; missing "
                "scores are NaN"
            )

    def _final(self) -> BaseEstimator:
        """Return the final model."""
        check_is_fitted(self)
        if not self.refit:
            raise AttributeError(
                f"{type(self).__name__} has refit=False, so there is no final model"
            )
        return self.best_estimator_

    def predict(self, X: MatrixLike) -> NDArray[np.generic]:
        """Predict with the final model; see the `predict` of `best_estimator_`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._final().predict(X)


@dataclass(eq=False, repr=False)
class ClassifierSearch(ProbabilityHints, ClassifierMixin, Search):
    """Base of the searches for classifiers.

    Parameters
    ----------
    class_weight : dict or "balanced", optional
        Factor of C for the rows of each class; "balanced" counts the rows of each
        training part.
    certify_C : bool, default=False
        Prove that no C from ``min(Cs)`` to ``max(Cs)``, with any other parameters of
        the search, has a smaller cross-validation error by more than `error_tolerance`,
        also between the values of `Cs`. The search adds values of C until this is
        proved. It needs accuracy as the score, a positive semidefinite kernel, and no
        checkpoint. Its fits have a `tol` of 1e-9 or less.
    error_tolerance : float, default=0.01
        Difference of errors to prove, as a fraction of the test rows. The number of
        fits grows like the inverse.

    Attributes
    ----------
    error_bounds_ : ErrorCurve
        With `certify_C`: a tuple (edges, lower, upper) of proved bounds on the mean
        error over the folds of the exact optimum at every C from ``edges[k]`` to
        ``edges[k + 1]``, with the other best parameters.
    error_tolerance_ : float
        With `certify_C`: the proved difference between ``1 - best_score_`` and the
        least error of the exact optimum at any C, with any of the other parameters.
    n_fits_ : int
        With `certify_C`: number of fits of the search, candidates times folds.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    """

    _: KW_ONLY
    class_weight: ClassWeight = None
    certify_C: Flag = False  # noqa: N815  (C is the field's own name)
    error_tolerance: Share = 0.01

    if TYPE_CHECKING:
        classes_: NDArray[np.generic] = field(init=False)

    @available_if(lambda search: bool(search.refit))
    def decision_function(self, X: MatrixLike) -> Vector:
        """Return the decision values of the final model.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
        """
        return self._final().decision_function(X)

    def _certified(self, folds: Folds, Cs: Vector) -> Results | None:
        if not self.certify_C:
            return None
        if self.scoring not in (None, "accuracy"):
            raise ValueError(
                f"scoring={self.scoring!r} does not go with certify_C=True; "
                "use 'accuracy', or certify_C=False"
            )
        if len(Cs) == 1:
            raise ValueError(
                f"Cs={self.Cs!r} is one value, but certify_C=True needs an "
                "interval; give its ends, such as (1e-3, 10)"
            )
        if self.checkpoint is not None:
            raise ValueError(
                f"checkpoint={self.checkpoint!r} does not go with "
                "certify_C=True; use checkpoint=None"
            )
        return certified_search(self, folds, Cs, Results)
