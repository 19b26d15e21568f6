"""Grid search of scikit-learn that shares work between the values of C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from types import CellType, FunctionType
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV as _GridSearchCV
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from .. import core
from ..certificate import Certificate
from ..data.rows import Points
from ..data.types import MatrixLike, Parameters
from ..kernel import BlockSolver, KernelAuto, Nystroem, get_kernel_solver
from ..losses import Vector
from .base import Model, tell, warn_of_models
from .folds import Fold, FoldFit, Folds, Walk, run
from .input import check_sample_weight
from .linear_svc import LinearSVC
from .parameters import refuse_scores_of_probabilities
from .regression import SVR, LinearSVR
from .results import first_best, ranks
from .svc import SVC


def _cost_of(params: Parameters) -> float:
    """Return the C of a candidate; infinity if it has none."""
    named = (v for k, v in sorted(params.items()) if k == "C" or k.endswith("__C"))
    return next((float(v) for v in named if isinstance(v, Real)), math.inf)


#: Arguments of scikit-learn's function that fits and scores one model.
Task = tuple[Callable[..., Any], tuple[Any, ...], Parameters]


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
    classifier is the hinge with an unpenalised bias, `cache_size` holds the matrix, and
    it pays. They share the seconds of their fits equally. Otherwise each fold has its
    own path of C.

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

    def _get_scorers(self) -> tuple[Callable[..., float], str]:
        scorer, refit_metric = super()._get_scorers()
        refuse_scores_of_probabilities(self.estimator, self.scoring, scorer)
        return scorer, refit_metric

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
            return _GridSearchCV._select_best_index(refit, refit_metric, results)
        Cs = [_cost_of(params) for params in results["params"]]
        return first_best(results[f"mean_test_{refit_metric}"], Cs)

    def _run_search(self, evaluate_candidates: FunctionType) -> None:
        sharing = Sharing(self.n_jobs)
        evaluate = sharing.within(evaluate_candidates)
        evaluate(ParameterGrid(self.param_grid))
        self.shared_ = bool(sharing.gaps)
        if self.shared_:
            self.relative_gaps_ = np.array(sharing.gaps)
            warn_of_models("GridSearchCV", sharing.certificates)
        elif hasattr(self, "relative_gaps_"):
            del self.relative_gaps_


class Sharing:
    """Takes the place of joblib in a search of scikit-learn, and shares the work.

    `gaps`: proven relative gaps of each candidate, if the work was shared.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self.n_jobs = n_jobs
        self.gaps: list[list[float]] = []
        self.certificates: list[tuple[str, Certificate]] = []

    def within(self, evaluate: FunctionType) -> Callable[..., object]:
        """Return scikit-learn's function that evaluates candidates, with this inside.

        The function calls ``parallel``, a variable of the search, with all fits.
        """
        names, cells = evaluate.__code__.co_freevars, evaluate.__closure__ or ()
        if "parallel" not in names:
            return evaluate
        own = dict(zip(names, cells, strict=True))
        joblib = own["parallel"].cell_contents
        own["parallel"] = CellType(partial(self._run, joblib))
        found = FunctionType(
            evaluate.__code__,
            evaluate.__globals__,
            evaluate.__name__,
            evaluate.__defaults__,
            tuple(own.values()),
        )
        found.__kwdefaults__ = evaluate.__kwdefaults__
        return found

    def _run(
        self,
        joblib: Callable[[Iterable[Task]], list[Parameters]],
        tasks: Iterable[Task],
    ) -> list[Parameters]:
        given = list(tasks)
        try:
            plan = plan_of(given)
            if plan is not None:
                return self._shared(plan)
        except Exception as error:
            self.gaps.clear()
            self.certificates.clear()
            found = joblib(given)
            # A fit may take what sharing refuses; scikit-learn tells of failed fits.
            refused = isinstance(error, ValueError)
            if not refused and not any(map(_failed, found)):
                tell(
                    "GridSearchCV trained each model by itself, because sharing their "
                    f"work failed: {type(error).__name__}: {error}. The results are "
                    "complete; please report it",
                    RuntimeWarning,
                )
            return found
        return joblib(given)

    def _shared(self, plan: SearchPlan) -> list[Parameters]:
        stop, folds = core.Stop(), len(plan.splits)
        out: list[Parameters] = [{}] * len(plan.tasks)
        gaps = np.full((len(out) // folds, folds), np.nan)

        def take(fits: list[FoldFit], numbers: dict[float, int]) -> None:
            for fit in fits:
                k = numbers[float(fit.model.C)]
                out[k * folds + fit.fold] = plan.score(fit)
                gaps[k, fit.fold] = max(part.relative_gap for part in fit.parts)
                self.certificates += [
                    (f"fold {fit.fold}, C={fit.model.C:g}", part) for part in fit.parts
                ]

        for model, Cs in plan.groups:
            job = model._job(stop, effective_n_jobs(self.n_jobs))
            values = np.array(sorted(Cs))
            walks = plan.walks(model, values, stop, job.threads)
            run(walks, partial(take, numbers=Cs), job)
            if stop.requested:
                raise KeyboardInterrupt
        self.gaps += gaps.tolist()
        return out


def _failed(found: Parameters) -> bool:
    """Whether a fit or its score failed, which scikit-learn tells."""
    scores = found["test_scores"]
    values = list(scores.values()) if isinstance(scores, dict) else [scores]
    return found["fit_error"] is not None or not np.isfinite(values).all()


#: Parameters of scikit-learn's function that fits and scores, which are understood.
_KNOWN = {
    *("scorer", "fit_params", "score_params", "return_train_score", "error_score"),
    *("return_n_test_samples", "return_times", "return_parameters", "verbose"),
    *("train", "test", "parameters", "split_progress", "candidate_progress"),
    *("caller", "callback_ctx"),
}


@dataclass
class SearchPlan:
    """Fits of a search whose models differ in the parameters of one estimator."""

    #: Fold f of candidate k is at ``k * folds + f``.
    tasks: list[Task]
    #: Steps of a pipeline before the estimator.
    steps: list[tuple[str, BaseEstimator]]
    #: Name of the estimator's step; empty without a pipeline.
    name: str
    #: Models that differ in C only: the numbers of the candidates by their C.
    groups: list[tuple[Model, dict[float, int]]] = field(default_factory=list)
    fitted: dict[int, list[tuple[str, BaseEstimator]]] = field(default_factory=dict)
    rows: Folds | None = None
    apart: list[Fold] = field(default_factory=list)

    @property
    def splits(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Training and test rows of each fold."""
        folds = self.tasks[0][2]["split_progress"][1]
        return [(how["train"], how["test"]) for _, _, how in self.tasks[:folds]]

    @property
    def weight(self) -> Vector | None:
        """The sample weights of all rows, or None."""
        _, (_, X, _), how = self.tasks[0]
        given = list((how["fit_params"] or {}).values())
        if not given:
            return None
        return check_sample_weight(given[0], X)

    def walks(
        self, model: Model, Cs: Vector, stop: core.Stop, threads: int
    ) -> list[Walk]:
        """Return what trains the models of all folds for rising C."""
        _, (_, X, y), _ = self.tasks[0]
        weight = self.weight
        if not self.steps:
            if self.rows is None:
                X, y, seen = model._seen(X, y)
                points = Points.of(X, model._constant)
                own = points, y, weight, self.splits, stop, threads, len(self.groups)
                self.rows = Folds(*own, seen)
            return self.rows.walks(model, Cs)
        if not self.apart:
            self.apart = [
                self._behind_steps(f, model, X, y, weight)
                for f in range(len(self.splits))
            ]
        return [partial(fold.walk, model, Cs, stop) for fold in self.apart]

    def _behind_steps(
        self,
        f: int,
        model: Model,
        X: MatrixLike,
        y: ArrayLike,
        weight: Vector | None,
    ) -> Fold:
        """Return the rows of a fold, transformed by steps that are fitted to it."""
        train, test = self.splits[f]
        before = clone(Pipeline(self.steps))
        X_train, y_train = _safe_split(before, X, y, train)
        X_test, y_test = _safe_split(before, X, y, test, train)
        X_train = before.fit_transform(X_train, y_train)
        self.fitted[f] = before.steps
        X_train, y_train, seen = model._seen(X_train, y_train)
        X_test = before.transform(X_test)
        own = None if weight is None else weight[train]
        return Fold(f, X_train, y_train, own, X_test, np.asarray(y_test), seen)

    def score(self, fit: FoldFit) -> Parameters:
        """Return the scores of a model, as scikit-learn's function does."""
        _, (_, X, y), how = self.tasks[0]
        model: BaseEstimator = fit.fitted()
        if self.name:
            steps = self.fitted.get(fit.fold, [])
            model = Pipeline([*steps, (self.name, model)])
        train, test = self.splits[fit.fold]

        def of(*rows: NDArray[np.intp]) -> object:
            params = _check_method_params(X, how["score_params"], indices=rows[0])
            return how["scorer"](model, *_safe_split(model, X, y, *rows), **params)

        begun = time.perf_counter()
        found = {"fit_error": None, "test_scores": of(test, train)}
        found["score_time"] = time.perf_counter() - begun
        if how["return_train_score"]:
            found["train_scores"] = of(train)
        found["n_test_samples"] = len(np.arange(len(y))[test])
        return found | {"fit_time": fit.seconds}


def plan_of(tasks: list[Task]) -> SearchPlan | None:
    """Return how fits share their work, or None if they cannot."""
    _, (estimator, _, y), how = tasks[0]
    if y is None or set(how) - _KNOWN or how.get("callback_ctx") is not None:
        return None
    name, last, before = "", estimator, []
    if type(estimator) is Pipeline:
        *before, (name, last) = estimator.steps
    prefix = f"{name}__" if name else ""
    if type(last) not in (SVC, SVR, LinearSVC, LinearSVR):
        return None
    if set(how["fit_params"] or {}) - {f"{prefix}sample_weight"}:
        return None
    plan, folds = SearchPlan(tasks, before, name), how["split_progress"][1]
    groups: dict[tuple[tuple[str, str], ...], tuple[Model, dict[float, int]]] = {}
    for k, (_, _, one) in enumerate(tasks[::folds]):
        given = one["parameters"]
        params = {n.removeprefix(prefix): value for n, value in given.items()}
        if not all(n.startswith(prefix) for n in given) or "C" not in params:
            return None
        model = clone(last).set_params(**params)
        model._validate_params()
        if model.time_limit is not None or not _shares(model):
            return None
        rest = tuple(sorted((n, repr(v)) for n, v in params.items() if n != "C"))
        _, numbers = groups.setdefault(rest, (model, {}))
        if float(params["C"]) in numbers:  # a path needs rising values
            return None
        numbers[float(params["C"])] = k
    plan.groups = list(groups.values())
    return plan


def _shares(model: Model) -> bool:
    """Whether fits of this model for several C can share their work."""
    if hasattr(model, "_skl_callbacks"):
        return False
    if isinstance(model, (LinearSVC, LinearSVR)):
        return getattr(model, "penalty", "l2") == "l2"
    known = (KernelAuto, BlockSolver, Nystroem)
    return isinstance(get_kernel_solver(model.solver), known)
