"""Fits and scores of a grid search that share their work between the values of C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _check_method_params, validate_data

from .. import core
from ..certificate import Certificate
from ..core import StoppedError
from ..data.rows import Points
from ..data.types import Matrix, MatrixLike, Parameters
from ..kernel import Auto, BlockSolver
from ..kernels.functions import Kernel
from ..kernels.gram import Gram, points_of
from ..kernels.table import Table, shared_matrix
from ..losses import Vector, get_loss
from ._kernel_walks import Path, Targets, walk_svc, walk_svr
from ._search import CUT_SHORT, part_of
from .fitting import encode, fit_all, silent_failures
from .kernel_regression import SVR
from .linear_regression import LinearSVR
from .linear_svc import LinearSVC
from .svc import SVC

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


__all__ = ["Plan", "Score", "Scored", "plan_of", "search", "solves_pairs_at_once"]

_KERNEL, _LINEAR = (SVC, SVR), (LinearSVC, LinearSVR)
_SOLVERS = ("auto", "block")
# With at most this many rows `SVC` solves all pairs at once (kernel/pairs.py).
_AT_ONCE = 2000


Steps = list[tuple[str, "BaseEstimator"]]

#: Values of C, each with the number of its candidate.
Costs = list[tuple[float, int]]

#: Training and test rows.
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]

#: The score of a model, or several by their names.
Scores = float | dict[str, float]


class Plan(NamedTuple):
    """A grid whose candidates differ in the parameters of one estimator of dualgap.

    Attributes
    ----------
    before : list of (str, transformer)
        Steps before the estimator; empty without a pipeline.
    name : str
        Name of the estimator's step; empty without a pipeline.
    groups : list of (estimator, list of (float, int))
        A model, and its values of C, increasing, with the number of the candidate.
    """

    before: Steps
    name: str
    groups: list[tuple[BaseEstimator, Costs]]

    @property
    def prefix(self) -> str:
        """Prefix of the estimator's parameters in the grid."""
        return f"{self.name}__" if self.name else ""

    @property
    def kernel(self) -> bool:
        return isinstance(self.groups[0][0], _KERNEL)


def plan_of(estimator: BaseEstimator, candidates: list[Parameters]) -> Plan | None:
    """Return how a grid shares its work, or None if it cannot.

    Raises
    ------
    ValueError
        If a candidate has an invalid parameter.
    """
    name, last, before = "", estimator, []
    if type(estimator) is Pipeline:
        *before, (name, last) = estimator.steps
    plan = Plan(before, name, [])
    if type(last) not in (*_KERNEL, *_LINEAR):
        return None
    own = [
        {k.removeprefix(plan.prefix): v for k, v in params.items()}
        for params in candidates
        if all(k.startswith(plan.prefix) for k in params)
    ]
    if (
        not own
        or len(own) < len(candidates)
        or not all("C" in params for params in own)
    ):
        return None
    groups: dict[tuple[tuple[str, str], ...], tuple[BaseEstimator, Costs]] = {}
    for k, params in enumerate(own):
        model = clone(last).set_params(**params)
        model._validate_params()
        if not _shares(model):
            return None
        rest = tuple(sorted((n, repr(v)) for n, v in params.items() if n != "C"))
        groups.setdefault(rest, (model, []))[1].append((float(params["C"]), k))
    for model, Cs in groups.values():
        if len({C for C, _ in Cs}) < len(Cs):  # a path needs rising values
            return None
        plan.groups.append((model, sorted(Cs)))
    return plan


def _shares(model: BaseEstimator) -> bool:
    """Whether fits of this model for several C can share their work."""
    if model.time_limit is not None or hasattr(model, "_skl_callbacks"):
        return False
    if isinstance(model, _LINEAR):
        return True
    return model.solver in _SOLVERS or isinstance(model.solver, (Auto, BlockSolver))


def solves_pairs_at_once(plan: Plan, X: MatrixLike, y: ArrayLike) -> bool:
    """Whether `SVC` solves all pairs of classes in one call, faster than paths of C."""
    if not all(isinstance(model, SVC) for model, _ in plan.groups):
        return False
    hinge = all(get_loss(model.loss).name == "hinge" for model, _ in plan.groups)
    labels = np.asarray(y)
    small = len(labels) <= _AT_ONCE and not sparse.issparse(X)
    return hinge and small and len(np.unique(labels)) > 2


@dataclass
class Scored:
    """Scores and times of all candidates on all folds, in the order of the candidates.

    Attributes
    ----------
    out : list of dict
        As ``GridSearchCV`` formats them; fold f of candidate k is at ``k * folds + f``.
    gaps : ndarray of shape (n_candidates, n_folds)
        Proven relative gaps.
    certificates : list of (str, Certificate)
    """

    folds: int
    out: list[dict[str, Scores]]
    gaps: Vector
    certificates: list[tuple[str, Certificate]] = field(default_factory=list)


class Score(NamedTuple):
    """Scorer of a search, with its arguments.

    Attributes
    ----------
    scorer : callable
    params : dict
        Further arguments, such as `sample_weight` for all rows.
    train : bool
        True to score the training rows, too.
    """

    scorer: Callable[..., Scores]
    params: Parameters
    train: bool

    def of(
        self,
        model: BaseEstimator,
        X: MatrixLike,
        y: NDArray[np.generic],
        everything: MatrixLike,
        rows: NDArray[np.intp],
    ) -> Scores:
        """Score a model on some rows of everything."""
        params = _check_method_params(everything, self.params, indices=rows)
        return self.scorer(model, X, y, **params)


@dataclass(frozen=True)
class _Data:
    """Rows of the search, and what is done with a fitted model."""

    plan: Plan
    X: MatrixLike
    y: NDArray[np.generic]
    weight: Vector | None
    folds: list[Fold]
    score: Score
    stop: core.Stop
    scored: Scored

    def fold(
        self, f: int
    ) -> tuple[MatrixLike, NDArray[np.generic], MatrixLike, NDArray[np.generic]]:
        """Return the rows and targets for training and for the test of a fold."""
        train, test = self.folds[f]
        X, y = self.X, self.y
        return (
            *(_safe_indexing(X, train), _safe_indexing(y, train)),
            *(_safe_indexing(X, test), _safe_indexing(y, test)),
        )

    def transformed(self, f: int) -> tuple[Steps, MatrixLike, MatrixLike]:
        """Fit the steps before the estimator; return them and the transformed rows."""
        X_train, y_train, X_test, _ = self.fold(f)
        if not self.plan.before:
            return [], X_train, X_test
        before = clone(Pipeline(self.plan.before))
        X_train = before.fit_transform(X_train, y_train)
        return before.steps, X_train, before.transform(X_test)

    def note(
        self, f: int, steps: Steps, models: Iterator[BaseEstimator], Cs: Costs
    ) -> Iterator[None]:
        """Score the models of a fold, one for each of `Cs`; yield after each."""
        X_train, y_train, X_test, y_test = self.fold(f)
        begun = time.perf_counter()
        for (C, k), model in zip(Cs, models, strict=False):
            certificate = model.certificate_
            if any(c.status in CUT_SHORT for c in certificate.parts):
                self.stop.request()
                return
            whole = Pipeline([*steps, (self.plan.name, model)]) if steps else model
            fitted = time.perf_counter()
            train, test = self.folds[f]
            found = {"test_scores": self.score.of(whole, X_test, y_test, self.X, test)}
            scored = time.perf_counter()
            if self.score.train:
                found["train_scores"] = self.score.of(
                    whole, X_train, y_train, self.X, train
                )
            found |= {"fit_time": fitted - begun, "score_time": scored - fitted}
            self.scored.out[k * len(self.folds) + f] = found
            self.scored.gaps[k, f] = max(c.relative_gap for c in certificate.parts)
            self.scored.certificates += [
                (f"fold {f}, C={C:g}", c) for c in certificate.parts
            ]
            yield
            begun = time.perf_counter()


def search(
    plan: Plan,
    X: MatrixLike,
    y: NDArray[np.generic],
    sample_weight: Vector | None,
    folds: list[Fold],
    score: Score,
    *,
    n_jobs: int | None,
    verbose: int,
) -> Scored:
    """Train and score all candidates on all folds.

    Parameters
    ----------
    plan : Plan
    X, y : array-like
        Rows and targets.
    sample_weight : ndarray of shape (n_samples,), optional
        Weights in training.
    folds : list of (train, test)
    score : Score
    n_jobs, verbose
        As for an estimator.

    Returns
    -------
    Scored

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    """
    stop = core.Stop()
    count = sum(len(Cs) for _, Cs in plan.groups)
    scored = Scored(
        len(folds), [{}] * (count * len(folds)), np.full((count, len(folds)), np.nan)
    )
    data = _Data(plan, X, y, sample_weight, folds, score, stop, scored)

    def over(walk: Callable[[int], Iterator[None]]) -> None:
        def whole(f: int) -> None:
            for _ in walk(f):
                if stop.requested:
                    return

        fit_all(whole, len(folds), n_jobs=n_jobs, stop=stop, verbose=verbose)

    threads = min(effective_n_jobs(n_jobs), len(folds))
    try:
        if not plan.kernel:
            over(partial(_linear, data))
        elif plan.before:
            over(partial(_behind_steps, data, threads))
        else:
            for walk in _over_all_rows(data, threads):
                over(walk)
    except StoppedError:
        pass
    if stop.requested:
        raise KeyboardInterrupt
    return scored


def _linear(data: _Data, f: int) -> Iterator[None]:
    """Train the linear models of a fold, each from the duals of the C before."""
    steps, X_train, _ = data.transformed(f)
    y_train, options = data.fold(f)[1], {}
    if data.weight is not None:
        options["sample_weight"] = data.weight[data.folds[f][0]]

    def models(template: BaseEstimator, Cs: Costs) -> Iterator[BaseEstimator]:
        model = clone(template).set_params(warm_start=True)
        for C, _ in Cs:
            with silent_failures():
                model.set_params(C=C).fit(X_train, y_train, **options)
            yield model

    for template, Cs in data.plan.groups:
        yield from data.note(f, steps, models(template, Cs), Cs)


def _targets(model: BaseEstimator, y: NDArray[np.generic]) -> Targets:
    if not is_classifier(model):
        return Targets(np.asarray(y, dtype=np.float64))
    classes, codes = encode(np.asarray(y))
    return Targets(codes, classes)


def _checked(
    model: BaseEstimator, X: MatrixLike, y: NDArray[np.generic]
) -> tuple[Matrix, NDArray[np.generic]]:
    X, y = validate_data(
        model,
        X,
        y,
        accept_sparse=["csr", "csc", "coo"],
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,  # points_of checks every entry
        **({} if is_classifier(model) else {"y_numeric": True}),
    )
    return (X.tocsr() if sparse.issparse(X) else X), y


@dataclass(frozen=True)
class _Rows:
    """Rows of kernel models, and what they are for.

    Attributes
    ----------
    source : estimator
        Knows the number and the names of the features.
    part : ndarray of shape (n,)
        Weights in training; 0 for other rows.
    test : ndarray of int
    """

    source: BaseEstimator
    points: Points
    targets: Targets
    part: Vector
    test: NDArray[np.intp]

    def models(
        self,
        model: BaseEstimator,
        Cs: Costs,
        matrix: Table | Gram,
        kernel: Kernel,
        X_test: Matrix,
        stop: core.Stop,
    ) -> Iterator[BaseEstimator]:
        """Train a model for every C; they know their values at `X_test`."""
        state = check_random_state(getattr(model, "random_state", None))
        path = Path(
            matrix, kernel, self.points, self.targets, self.part, self.test, model,
            np.array([C for C, _ in Cs]), int(state.randint(2**31 - 1)), stop,
        )  # fmt: skip
        walk: Callable[[Path], Iterator[tuple[BaseEstimator, Vector]]]
        walk = walk_svc if isinstance(model, SVC) else walk_svr
        for found, values in walk(path):
            found._held_out = X_test, values
            if hasattr(self.source, "feature_names_in_"):
                found.feature_names_in_ = self.source.feature_names_in_
            yield found


def _rows_of(
    model: BaseEstimator, X: MatrixLike, y: NDArray[np.generic]
) -> tuple[BaseEstimator, Points, Targets]:
    source = clone(model)
    X, y = validate_data(
        source,
        X,
        y,
        accept_sparse=["csr", "csc", "coo"],
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,  # points_of checks every entry
        **({} if is_classifier(source) else {"y_numeric": True}),
    )
    points = points_of(X.tocsr() if sparse.issparse(X) else X, source._kernel_record())
    if not is_classifier(source):
        return source, points, Targets(np.asarray(y))
    classes, codes = encode(np.asarray(y))
    return source, points, Targets(codes, classes)


def _over_all_rows(
    data: _Data, threads: int
) -> Iterator[Callable[[int], Iterator[None]]]:
    """Yield a walk for every group; folds with equal kernels share a matrix."""
    source, points, targets = _rows_of(data.plan.groups[0][0], data.X, data.y)
    places = np.arange(len(data.y))
    weight = np.ones(len(places)) if data.weight is None else data.weight
    folds = [
        _Rows(source, points, targets, part_of(weight, train), places[test])
        for train, test in data.folds
    ]
    matrix: Table | Gram | None = None
    kept: Kernel | None = None
    for model, Cs in data.plan.groups:
        record = model._kernel_record()
        kernels = [record.resolve(points.X, rows.part) for rows in folds]
        alike = all(kernel == kernels[0] for kernel in kernels)
        if not alike or kernels[0] != kept:
            matrix, kept = None, None  # frees its memory first
        if alike and matrix is None:
            kept = kernels[0]
            matrix = shared_matrix(points, kept, model.cache_size, threads, data.stop)

        def walk(
            f: int,
            model: BaseEstimator,
            Cs: Costs,
            kernels: list[Kernel],
            matrix: Table | Gram | None,
        ) -> Iterator[None]:
            if matrix is None:
                room = model.cache_size / threads
                matrix = shared_matrix(points, kernels[f], room, 1, data.stop)
            X_test = data.fold(f)[2]
            models = folds[f].models(model, Cs, matrix, kernels[f], X_test, data.stop)
            yield from data.note(f, [], models, Cs)

        yield partial(walk, model=model, Cs=Cs, kernels=kernels, matrix=matrix)


def _behind_steps(data: _Data, threads: int, f: int) -> Iterator[None]:
    """Train the kernel models of a fold, whose rows are transformed for it alone."""
    steps, X_train, X_test = data.transformed(f)
    train, test = (np.arange(len(data.y))[part] for part in data.folds[f])
    y = _safe_indexing(data.y, np.concatenate([train, test]))
    first = data.plan.groups[0][0]
    source, points, targets = _rows_of(first, _stacked(X_train, X_test), y)
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    part = np.concatenate([weight[train], np.zeros(len(test))])
    places = len(train) + np.arange(len(test))
    rows = _Rows(source, points, targets, part, places)
    matrix, kept = None, None
    for model, Cs in data.plan.groups:
        kernel = model._kernel_record().resolve(points.X, part)
        if kernel != kept:
            matrix = None  # frees its memory first
            room = model.cache_size / threads
            matrix, kept = shared_matrix(points, kernel, room, 1, data.stop), kernel
        assert matrix is not None
        models = rows.models(model, Cs, matrix, kernel, X_test, data.stop)
        yield from data.note(f, steps, models, Cs)


def _stacked(first: MatrixLike, second: MatrixLike) -> MatrixLike:
    """Return the rows of two matrices or tables of the same kind as one."""
    if sparse.issparse(first):
        return sparse.vstack([first, second], format="csr")
    if hasattr(first, "iloc"):
        return first.__class__(np.vstack([first, second]), columns=first.columns)
    return np.vstack([first, second])
