"""scikit-learn's grid search, which shares the work between the values of C."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV as _GridSearchCV
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import indexable
from sklearn.utils.validation import _check_method_params

from ..data.types import MatrixLike, Parameters
from ._search import first_best, ranks
from ._shared_grid import Score, Scored, Scores, plan_of, search
from .arguments import check_sample_weight
from .fitting import warn_of_models
from .hints import refuse_scores_of_probabilities

__all__ = ["GridSearchCV"]


def _cost_of(params: Parameters) -> float:
    """Return the C of a candidate; infinity if it has none."""
    named = (v for k, v in sorted(params.items()) if k == "C" or k.endswith("__C"))
    return next((float(v) for v in named if isinstance(v, Real)), math.inf)


logger = logging.getLogger("dualgap")


class GridSearchCV(_GridSearchCV):
    """Grid search of scikit-learn that shares work between the values of C.

    It takes the parameters of ``sklearn.model_selection.GridSearchCV`` and has its
    attributes. If the estimator is an :class:`SVC`, :class:`SVR`, :class:`LinearSVC` or
    :class:`LinearSVR`, or a ``Pipeline`` that ends in one, then

    - the steps of a pipeline are fitted once per fold, not once per candidate;
    - each fit starts from the solutions for smaller values of C;
    - candidates of a kernel SVM that differ in C share the kernel matrix, if
      `cache_size` holds it, and folds share it if their gamma is the same number;
    - all folds of a kernel SVM that share the matrix are trained together.

    Every model is proved to its `tol`, as a single fit is. scikit-learn's own search
    runs in all other cases; see Notes. Of candidates with equal mean scores, the one
    with the smallest C is chosen, and of these the first.

    Parameters
    ----------
    estimator : estimator
        Any estimator of scikit-learn's interface.
    param_grid : dict or list of dict
        Parameters to search.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As for scikit-learn's ``GridSearchCV``. If the work is shared, `n_jobs` is a
        number of threads, which share the folds.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, \
n_splits_, refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As for scikit-learn's ``GridSearchCV``.
    shared_ : bool
        Whether the work was shared. If not, scikit-learn's own search ran.
    relative_gaps_ : ndarray of shape (n_candidates, n_splits)
        Proven relative gaps of the scored models; of several classes or pairs, the
        largest. Only if the work was shared.

    See Also
    --------
    SVCCV : Search of a kernel classifier with a time limit and checkpoints.
    LinearSVCCV : Search of C for linear classifiers.

    Notes
    -----
    The work is shared if every candidate has its own C, the grid holds only parameters
    of the SVM, its solver is "auto", "block" or "nystroem" (kernel SVMs), and it has no
    time limit and no callbacks. Fit parameters other than `sample_weight` and
    `groups`, and a `cv` that can be read only once, also lead to scikit-learn's search.
    So does an error in a fit or a score: scikit-learn then repeats the search, and
    `error_score` counts.

    All folds of an :class:`SVC` or :class:`SVR` are trained together, as in
    :class:`SVCCV`, if gamma is a number, no step comes before the SVM, the loss of a
    classifier is the hinge with an unpenalised bias, and `cache_size` holds the matrix.
    They share the seconds of their fits
    equally. Otherwise each fold has its own path of C.

    Scores are equal to scikit-learn's except for rows so near the boundary
    that both models are within `tol` on either side of it.

    Examples
    --------
    >>> from dualgap import SVC
    >>> from dualgap.model_selection import GridSearchCV
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}
    >>> search = GridSearchCV(SVC(random_state=0), grid).fit(X, y == 1)
    >>> search.shared_, search.best_params_["C"] in grid["C"]
    (True, True)
    >>> bool((search.relative_gaps_ <= 1e-3).all())
    True
    """

    def fit(
        self, X: MatrixLike, y: ArrayLike | None = None, **params: object
    ) -> GridSearchCV:
        """Search, and train the best candidate on all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, the kernel matrix.
        y : array-like of shape (n_samples,), optional
            Targets.
        **params : dict
            Parameters of the estimator's fit, such as `sample_weight`, and `groups` for
            the splitter.

        Returns
        -------
        GridSearchCV
            The fitted search.

        Raises
        ------
        ValueError
            As scikit-learn's search.
        KeyboardInterrupt
            After Ctrl-C.

        Warns
        -----
        ConvergenceWarning
            If a model did not reach `tol`.
        """
        scored = None
        if y is not None and not hasattr(self, "_skl_callbacks"):
            try:
                scored = self._fit_shared(X, y, params)
            except Exception as error:  # scikit-learn meets it too, and handles it
                logger.info("GridSearchCV shares no work: %s", error)
        self.shared_ = scored is not None
        if scored is None:
            self.__dict__.pop("relative_gaps_", None)
            super().fit(X, y, **params)
        else:
            self.relative_gaps_ = scored.gaps
            warn_of_models("GridSearchCV", scored.certificates, stacklevel=3)
        return self

    def _get_scorers(self) -> tuple[Callable[..., Scores], str]:
        scorer, refit_metric = super()._get_scorers()
        refuse_scores_of_probabilities(self.estimator, self.scoring, scorer)
        return scorer, refit_metric

    def _fit_shared(
        self, X: MatrixLike, y: ArrayLike, params: dict[str, object]
    ) -> Scored | None:
        """Search if the work can be shared, and return what was found."""
        candidates = list(ParameterGrid(self.param_grid))
        plan = plan_of(self.estimator, candidates)
        if plan is None or hasattr(self.cv, "__next__"):
            return None
        self._validate_params()
        scorer, refit_metric = self._get_scorers()
        X, labels = indexable(X, y)
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        own, weighted = routed.estimator.fit, f"{plan.prefix}sample_weight"
        if set(own) - {weighted}:
            return None
        weight = own.get(weighted)
        if weight is not None:
            weight = check_sample_weight(
                weight, X, dtype=np.float64, ensure_non_negative=True
            )
        splitter = check_cv(self.cv, labels, classifier=is_classifier(self.estimator))
        folds = list(splitter.split(X, labels, **routed.splitter.split))
        if self.verbose > 0:
            print(
                f"Fitting {len(folds)} folds for each of {len(candidates)} candidates, "
                f"totalling {len(folds) * len(candidates)} fits"
            )
        scored = search(
            plan, X, labels, weight, folds,
            Score(scorer, routed.scorer.score, self.return_train_score),
            n_jobs=self.n_jobs, verbose=max(model.verbose for model, _ in plan.groups),
        )  # fmt: skip
        self.n_splits_ = len(folds)
        self._set_results(candidates, scored, scorer, refit_metric)
        if self.refit:
            self._refit(X, y, own)
        return scored

    def _format_results(self, *arguments: object, **named: object) -> Parameters:
        results: Parameters = super()._format_results(*arguments, **named)
        for key in results:
            if key.startswith("rank_test_"):
                results[key] = ranks(results[key.replace("rank", "mean", 1)])
        return results

    @staticmethod
    def _select_best_index(
        refit: bool | str | Callable[..., int], refit_metric: str, results: Parameters
    ) -> int:
        if callable(refit):
            chosen: int = _GridSearchCV._select_best_index(refit, refit_metric, results)
            return chosen
        Cs = [_cost_of(params) for params in results["params"]]
        return first_best(results[f"mean_test_{refit_metric}"], Cs)

    def _set_results(
        self,
        candidates: list[Parameters],
        scored: Scored,
        scorer: Callable[..., Scores],
        refit_metric: str,
    ) -> None:
        """Set the attributes about the scores, as scikit-learn's search does."""
        results = self._format_results(candidates, self.n_splits_, scored.out)
        first = scored.out[0]["test_scores"]
        self.multimetric_ = isinstance(first, dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(first)
            refit_metric = self.refit
        if self.refit or not self.multimetric_:
            best = self._select_best_index(self.refit, refit_metric, results)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{refit_metric}"][best]
            self.best_index_, self.best_params_ = best, results["params"][best]
        self.scorer_ = getattr(scorer, "_scorers", scorer)
        self.cv_results_ = results

    def _refit(self, X: MatrixLike, y: ArrayLike, options: Parameters) -> None:
        """Train the best candidate on all rows."""
        model = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        begun = time.time()
        self.best_estimator_ = model.fit(X, y, **options)
        self.refit_time_ = time.time() - begun
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
