"""The search over C, gamma and others that the kernel estimators share."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import joblib
import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    is_classifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .. import core
from ..certificate import Certificate
from ..core import StoppedError
from ..data import model_file as model_file
from ..data.rows import Points
from ..data.types import Matrix, MatrixLike, Parameters
from ..kernel import Gram
from ..kernels.functions import Kernel, refuse_items, takes_items
from ..kernels.gram import points_of
from ..kernels.table import Table, whole_table
from ..losses import Vector
from ..training import ctrl_c
from ..training.checkpoint import Checkpoint
from ._certified import ErrorBounds
from ._html import CertificateHTMLMixin
from ._kernel_folds import FoldFit, Together, together_of
from ._kernel_walks import Path, Targets, matrix_of_folds
from ._kernels import KERNEL_CONSTRAINTS, KernelParameters
from ._search import (
    CUT_SHORT,
    CrossValidation,
    Scorer,
    best_of,
    parts_of,
    ranks,
    run_folds,
    scorer_of,
    why_ended,
)
from .arguments import check_sample_weight, validate_data
from .fitting import VersionedPickle, refuse_masks, validated, warn_of_models
from .hints import ParameterHints
from .parameters import Constraints, constraints
from .path import grid_of
from .seeds import seed_of
from .training import begin

__all__ = ["CONSTRAINTS", "KernelSearch", "Results", "Work", "has_final_model"]

logger = logging.getLogger("dualgap")

CONSTRAINTS: Constraints = {
    **constraints(
        "tol",
        "atol",
        "max_epochs",
        "time_limit",
        "cache_size",
        "checkpoint",
        "checkpoint_every",
        "random_state",
        "n_jobs",
        "verbose",
    ),
    "Cs": [Integral, "array-like"],
    "gammas": [KERNEL_CONSTRAINTS["gamma"][0], Real, "array-like"],
    "cv": ["cv_object"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    **{name: KERNEL_CONSTRAINTS[name] for name in ("kernel", "degree", "coef0")},
    "refit": ["boolean"],
}


#: Parameters of the search, not of its models.
_OF_SEARCH = (
    *("cv", "scoring", "refit", "checkpoint", "checkpoint_every"),
    *("certify", "accuracy"),
)
#: Parameters that do not change the scores. The folds are part of the data.
_LIMITS = {
    *("cv", "refit", "checkpoint", "checkpoint_every", "time_limit", "cache_size"),
    *("n_jobs", "verbose", "decision_function_shape"),
}


class Results:
    """Scores, gaps and times of the candidates on the folds; NaN where not reached."""

    def __init__(self, name: str, candidates: list[Parameters], folds: int) -> None:
        self.name, self.candidates = name, candidates
        self.number = {_key(params): k for k, params in enumerate(candidates)}
        self.begun, self.added = time.perf_counter(), itertools.count(1)
        self.before = 0  # models that a checkpoint held
        shape = (folds, len(candidates))
        self.scores, self.gaps, self.fit_times, self.score_times = np.full(
            (4, *shape), np.nan
        )
        self.certificates: list[tuple[str, Certificate]] = []
        #: Bounds on the error for each gamma, of a certified search.
        self.bounds: dict[str | float, ErrorBounds] = {}
        self.file: Checkpoint | None = None
        self.writing = threading.Lock()

    def resume(self, file: Checkpoint) -> None:
        """Take over the models in a checkpoint, and write the next ones to it.

        Raises
        ------
        ValueError
            If the file is damaged, or was written by another search.
        """
        self.file, found = file, file.read()
        if found is None:
            return
        certificates, tensors = found
        values = tensors["values"]
        self.scores, self.gaps, self.fit_times, self.score_times = values
        self.certificates = [
            (name, model_file.certificate(fields)) for name, fields in certificates
        ]
        before = int((~np.isnan(self.fit_times)).sum())
        logger.info("%s: %d models are in %s", self.name, before, file.path)
        self.before, self.added = before, itertools.count(before + 1)

    def save(self) -> None:
        """Write the checkpoint, if there is one."""
        if self.file is None:
            return
        with self.writing:
            values = [self.scores, self.gaps, self.fit_times, self.score_times]
            certificates = [
                (name, model_file.certificate_fields(c))
                for name, c in list(self.certificates)
            ]
            self.file.write(certificates, {"values": np.stack(values)}, self.name)

    def unscored(self, gamma: str | float) -> bool:
        """Whether a candidate with this gamma still lacks the score of a fold."""
        of = [params["gamma"] == gamma for params in self.candidates]
        return bool(np.isnan(self.fit_times[:, of]).any())

    def missing(self, fold: int, params: Parameters, Cs: Vector) -> Vector:
        """Return the values of C that are not scored yet, with these parameters."""
        numbers = [self.number[_key({**params, "C": float(C)})] for C in Cs]
        return Cs[np.isnan(self.fit_times[fold, numbers])]

    def add(
        self,
        fold: int,
        params: Parameters,
        parts: Sequence[Certificate],
        score: float,
        times: tuple[float, float],
    ) -> None:
        """Keep the score and the certificates of a model, and log the progress.

        `times` are the seconds of its fit and of its score. Threads may add at the same
        time.
        """
        k = self.number[_key(params)]
        self.gaps[fold, k] = max(c.relative_gap for c in parts)
        self.scores[fold, k] = score
        self.fit_times[fold, k], self.score_times[fold, k] = times
        named = ", ".join(f"{n}={v}" for n, v in self.candidates[k].items())
        self.certificates += [(f"fold {fold}, {named}", c) for c in parts]
        done, total = next(self.added), self.scores.size
        each = (time.perf_counter() - self.begun) / (done - self.before)
        left = each * (total - done)
        logger.info(
            "%s: %d of %d models, fold %d, %s: score %.4g, about %.0f s left",
            self.name, done, total, fold, named, score, left,
        )  # fmt: skip
        if self.file is not None and self.file.due:
            self.save()

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
        out["rank_test_score"] = ranks(mean)
        for fold, gaps in enumerate(self.gaps):
            out[f"split{fold}_relative_gap"] = gaps
        return out


class Work(NamedTuple):
    """Rows, folds and parameters of a search."""

    X: MatrixLike
    points: Points
    y: NDArray[np.generic]
    targets: Targets
    folds: list[tuple[Vector, NDArray[np.intp]]]
    Cs: Vector
    #: Parameters of the candidates without C.
    others: list[Parameters]
    stop: core.Stop


class KernelSearch(
    VersionedPickle,
    KernelParameters,
    ParameterHints,
    CertificateHTMLMixin,
    BaseEstimator,
):
    """Base of kernel estimators that choose parameters by cross-validation."""

    Cs: int | ArrayLike
    gammas: str | float | ArrayLike
    cv: CrossValidation
    scoring: str | Callable[..., float] | None
    refit: bool
    tol: float
    atol: float
    max_epochs: int
    time_limit: float | None
    cache_size: float
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    verbose: int
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: float

    #: Names of the grids among the parameters, and of their parameters of the model.
    _grids: ClassVar[dict[str, str]]

    @abstractmethod
    def _model(self, **params: str | float) -> BaseEstimator:
        """Return a model with these parameters and the others of this estimator."""

    def _certified(self, work: Work) -> Results | None:
        """Search with a proof about all values of C, if the parameters ask for it."""
        return None

    def _together(self, work: Work, params: Parameters) -> Together | None:
        """Return the problems of all folds as one object, if they can be."""
        model = self._model(**params)
        return together_of(model, work.X, work.targets, work.folds)

    def _folds_at_once(self, work: Work) -> int:
        """Return the number of folds whose problems memory holds."""
        return len(work.folds)

    @abstractmethod
    def _walk(self, path: Path) -> Iterator[tuple[BaseEstimator, Vector]]:
        """Train a model for every C; yield it and its values at the held-out rows."""

    def _common(self) -> Parameters:
        own: Parameters = self.get_params(deep=False)
        for name in (*self._grids, *_OF_SEARCH):
            own.pop(name, None)
        return own

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

    def _candidates(self) -> tuple[list[Parameters], Vector, list[Parameters]]:
        """Return all candidates, the values of C, and all other parameters of these."""
        grids: dict[str, list[str | float]] = {"C": grid_of(self.Cs).tolist()}
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

    def _fit_search(
        self,
        X: MatrixLike,
        y: NDArray[np.generic],
        given: ArrayLike | None,
        weight: Vector,
        groups: ArrayLike | None,
        targets: Targets,
    ) -> None:
        """Search, and train the final model; X and y are validated."""
        stop = begin(self.time_limit)
        candidates, Cs, others = self._candidates()
        probe = self._model(**candidates[0])
        scorer = scorer_of(probe, self.scoring)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        splits = list(splitter.split(X, y, groups))
        codes = None if targets.classes is None else targets.values.astype(np.intp)
        parts = parts_of(weight, [train for train, _ in splits], codes)
        tests = [np.arange(len(y))[test] for _, test in splits]
        folds = list(zip(parts, tests, strict=True))
        points = points_of(X, probe._kernel_record())
        work = Work(X, points, y, targets, folds, Cs, others, stop)
        results = self._certified(work)
        if results is None:
            results = Results(type(self).__name__, candidates, len(folds))
            with self._file((X, y, weight, folds)) as file:
                if file is not None:
                    results.resume(file)
                self._search(work, results, scorer)
                results.save()
        self._choose(results, stop)
        if self.refit:
            model = self._model(**self.best_params_)
            begun = time.perf_counter()
            model.set_params(time_limit=None).fit(points, y, given)
            self.refit_time_ = time.perf_counter() - begun
            self.best_estimator_ = model.set_params(time_limit=self.time_limit)
            self.certificate_ = model.certificate_

    def _search(self, work: Work, results: Results, scorer: Scorer) -> None:
        """Train and score all candidates until the end or a stop."""
        X, points, y, targets, folds, Cs, others, stop = work
        at_once = self._folds_at_once(work)
        threads = min(effective_n_jobs(self.n_jobs), at_once)
        seed = seed_of(self.random_state)

        def score_path(
            fold: int, matrix: Table | Gram, kernel: Kernel, params: Parameters
        ) -> Iterator[None]:
            part, test = folds[fold]
            X_test, y_test = _safe_indexing(X, test), y[test]
            left = results.missing(fold, params, Cs)
            if not left.size:
                return
            path = Path(
                matrix, kernel, points, targets, part, test,
                self._model(**params), left, seed, stop,
            )  # fmt: skip
            begun = time.perf_counter()
            for model, values in self._walk(path):
                certificate = model.certificate_
                if any(c.status in CUT_SHORT for c in certificate.parts):
                    return
                model._held_out = X_test, values
                fitted = time.perf_counter()
                score = float(scorer(model, X_test, y_test))
                scored = time.perf_counter()
                results.add(
                    fold,
                    {**params, "C": float(model.C)},
                    certificate.parts,
                    score,
                    (fitted - begun, scored - fitted),
                )
                begun = scored
                yield

        for gamma in dict.fromkeys(params["gamma"] for params in others):
            if stop.requested or stop.expired:
                break
            if not results.unscored(gamma):
                continue
            of_gamma = [params for params in others if params["gamma"] == gamma]
            together = self._together(work, of_gamma[0])
            kernel = self._model(gamma=gamma)._kernel_record()
            kernel = kernel.resolve(points.X)
            room = 0.0 if together is None else together.bytes
            if together is not None and kernel.positive:
                try:
                    table = whole_table(points, kernel, self.cache_size, room, stop)
                except StoppedError:
                    break
                if table is not None:
                    for params in of_gamma:
                        together = self._together(work, params)
                        assert together is not None
                        walk = partial(together.walk, table, seed=seed, stop=stop)
                        self._score_together(
                            walk, params, (points, kernel), work, results, scorer
                        )
                    del table, walk
                    continue
            try:
                matrix = matrix_of_folds(
                    self._model(), points, kernel, self.cache_size, threads, stop
                )
            except StoppedError:
                break
            for params in of_gamma:
                run_folds(
                    partial(score_path, matrix=matrix, kernel=kernel, params=params),
                    len(folds),
                    n_jobs=threads,
                    stop=stop,
                    verbose=self.verbose,
                    in_turns=at_once == len(folds),
                )
            del matrix

    def _score_together(
        self,
        walk: Callable[..., Iterator[list[FoldFit]]],
        params: Parameters,
        rows: tuple[Points, Kernel],
        work: Work,
        results: Results,
        scorer: Callable[..., float],
    ) -> None:
        """Score what is missing for these parameters, all folds of a C at a time."""
        left = [results.missing(f, params, work.Cs) for f in range(len(work.folds))]
        Cs = np.unique(np.concatenate(left))
        if not Cs.size:
            return
        plain = self.scoring in (None, "accuracy" if is_classifier(self) else "r2")
        X_tests = [None if plain else _safe_indexing(work.X, t) for _, t in work.folds]
        begun = time.perf_counter()
        with ctrl_c(work.stop):
            for fits in walk(Cs=Cs, n_jobs=effective_n_jobs(self.n_jobs)):
                fitted = (time.perf_counter() - begun) / len(fits)
                for fold, fit in enumerate(fits):
                    if fit.C not in left[fold]:
                        continue
                    if work.stop.requested or work.stop.expired:
                        return
                    begun = time.perf_counter()
                    if plain:
                        score = fit.score()
                    else:
                        model = fit.model(*rows, X_tests[fold])
                        score = scorer(model, X_tests[fold], work.y[fit.test])
                    parts = [solution.certificate for solution in fit.solutions]
                    scored = time.perf_counter() - begun
                    results.add(
                        fold, {**params, "C": fit.C}, parts, score, (fitted, scored)
                    )
                begun = time.perf_counter()

    def _choose(self, results: Results, stop: core.Stop) -> None:
        """Set the attributes of the search."""
        name, done = results.name, results.done
        table = results.table()
        found = np.flatnonzero(done)
        mean = table["mean_test_score"]
        Cs = [results.candidates[k]["C"] for k in found]
        best = best_of(
            mean[found], Cs, stop, "candidate", self.scoring, self.time_limit
        )
        self.cv_results_ = table
        self.best_index_ = int(found[best])
        self.best_params_ = results.candidates[self.best_index_]
        self.best_score_ = float(mean[self.best_index_])
        self.n_splits_ = len(results.scores)
        if results.bounds:
            self.error_bounds_ = results.bounds[self.best_params_["gamma"]]
        for parameter, value in self.best_params_.items():
            setattr(self, f"{parameter}_", value)
        warn_of_models(name, results.certificates, stacklevel=6)
        if not done.all():
            why = why_ended(stop, self.time_limit)
            warnings.warn(
                f"{name}: {why} after {done.sum()} of {len(done)} candidates were "
                f"scored on all folds. best_params_={self.best_params_} are the best "
                "of these; missing scores are NaN",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _checked(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        **options: bool,
    ) -> tuple[Matrix, NDArray[np.generic], Vector]:
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        if takes_items(self.kernel, X):
            refuse_items(type(self).__name__)
        rows, labels = validated(self, X, y, **options)
        if hasattr(rows, "tocsr"):
            rows = rows.tocsr()
        weight = check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        return rows, labels, weight

    def predict(self, X: MatrixLike) -> NDArray[np.generic]:
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
        found: NDArray[np.generic] = model.predict(X)
        return found

    def _final(self, X: MatrixLike) -> tuple[BaseEstimator, Matrix]:
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


def has_final_model(search: KernelSearch) -> bool:
    return bool(search.refit)


def _key(params: Parameters) -> tuple[tuple[str, str | float], ...]:
    return tuple(sorted(params.items()))
