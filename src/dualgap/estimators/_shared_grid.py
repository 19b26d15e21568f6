"""Fits and scores of a grid search that share their work between the values of C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from .. import core
from ..certificate import Certificate
from ..core import StoppedError
from ..data.rows import Points
from ..data.types import MatrixLike, Parameters
from ..kernel import Auto, BlockSolver, Nystroem, get_kernel_solver
from ..kernels.functions import Kernel
from ..kernels.gram import Gram, points_of
from ..kernels.table import Table, whole_table
from ..losses import Vector, get_loss
from ..solvers.labellings import few_enough
from ..training.path import along
from ._kernel_folds import Fold, Together, together_of
from ._kernel_walks import Path, Targets, matrix_of_folds, walk_svc, walk_svr
from ._search import CUT_SHORT, part_of
from .fitting import encode, silent_failures, validated
from .kernel_regression import SVR
from .linear_regression import LinearSVR
from .linear_svc import LinearSVC
from .seeds import seed_of
from .svc import SVC
from .training import fit_all

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


__all__ = ["Plan", "Score", "Scored", "plan_of", "search"]

_KERNEL, _LINEAR = (SVC, SVR), (LinearSVC, LinearSVR)
_SOLVERS = (Auto, BlockSolver, Nystroem)


Steps = list[tuple[str, "BaseEstimator"]]

#: Values of C, each with the number of its candidate.
Costs = list[tuple[float, int]]

#: Training and test rows.
Split = tuple[NDArray[np.intp], NDArray[np.intp]]

#: Trains and scores models; yields after each C.
Walk = Callable[[], Iterator[None]]

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
    return isinstance(get_kernel_solver(model.solver), _SOLVERS)


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
        """Score a model on some of all rows."""
        params = _check_method_params(everything, self.params, indices=rows)
        return self.scorer(model, X, y, **params)


@dataclass(frozen=True)
class _Data:
    """Rows of the search, and what is done with a fitted model."""

    plan: Plan
    X: MatrixLike
    y: NDArray[np.generic]
    weight: Vector | None
    folds: list[Split]
    score: Score
    stop: core.Stop
    scored: Scored

    def rows(self, chosen: NDArray[np.intp]) -> tuple[MatrixLike, NDArray[np.generic]]:
        """Return some rows and their targets."""
        return _safe_indexing(self.X, chosen), _safe_indexing(self.y, chosen)

    def transformed(self, f: int) -> tuple[Steps, MatrixLike, MatrixLike]:
        """Fit the steps before the estimator; return them and the transformed rows."""
        (X_train, y_train), (X_test, _) = map(self.rows, self.folds[f])
        if not self.plan.before:
            return [], X_train, X_test
        before = clone(Pipeline(self.plan.before))
        X_train = before.fit_transform(X_train, y_train)
        return before.steps, X_train, before.transform(X_test)

    def path(
        self, f: int, steps: Steps, models: Iterator[BaseEstimator], Cs: Costs
    ) -> Iterator[None]:
        """Score the models of a fold, one for each of `Cs`; yield after each."""
        begun = time.perf_counter()
        for cost, model in zip(Cs, models, strict=False):
            if any(c.status in CUT_SHORT for c in model.certificate_.parts):
                self.stop.request()
                return
            self.note(f, steps, model, cost, time.perf_counter() - begun)
            yield
            begun = time.perf_counter()

    def note(
        self,
        f: int,
        steps: Steps,
        model: BaseEstimator,
        cost: tuple[float, int],
        fit_time: float,
    ) -> None:
        """Score a model of a fold."""
        (C, k), parts = cost, model.certificate_.parts
        train, test = self.folds[f]
        whole = Pipeline([*steps, (self.plan.name, model)]) if steps else model
        begun = time.perf_counter()
        found = {"test_scores": self.score.of(whole, *self.rows(test), self.X, test)}
        found |= {"fit_time": fit_time, "score_time": time.perf_counter() - begun}
        if self.score.train:
            found["train_scores"] = self.score.of(
                whole, *self.rows(train), self.X, train
            )
        self.scored.out[k * len(self.folds) + f] = found
        self.scored.gaps[k, f] = max(c.relative_gap for c in parts)
        self.scored.certificates += [(f"fold {f}, C={C:g}", c) for c in parts]


def search(
    plan: Plan,
    X: MatrixLike,
    y: NDArray[np.generic],
    sample_weight: Vector | None,
    folds: list[Split],
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

    def over(walks: Sequence[Walk]) -> None:
        def whole(w: int) -> None:
            for _ in walks[w]():
                if stop.requested:
                    return

        fit_all(whole, len(walks), n_jobs=n_jobs, stop=stop, verbose=verbose)

    threads = min(effective_n_jobs(n_jobs), len(folds))
    numbers = range(len(folds))
    try:
        if not plan.kernel:
            over([partial(_linear, data, f) for f in numbers])
        elif plan.before:
            over([partial(_behind_steps, data, threads, f) for f in numbers])
        else:
            rows = _all_rows(data, threads)
            for model, Cs in plan.groups:
                over(rows.walks(model, Cs))
    except StoppedError:
        pass
    if stop.requested:
        raise KeyboardInterrupt
    return scored


def _solves_together(model: BaseEstimator, X: MatrixLike) -> bool:
    """Whether a fit solves all classes in one call, faster than from other duals."""
    if not isinstance(model, LinearSVC) or model.multi_class != "ovr":
        return False
    n, d = X.shape
    plain = model.solver == "auto" and model.penalize_intercept
    return plain and few_enough(n, d + model.fit_intercept, get_loss(model.loss))


def _linear(data: _Data, f: int) -> Iterator[None]:
    """Train the linear models of a fold, most from the duals of the two C before."""
    (steps, X_train, _), (train, _) = data.transformed(f), data.folds[f]
    y_train, options = _safe_indexing(data.y, train), {}
    if data.weight is not None:
        options["sample_weight"] = data.weight[train]

    def models(template: BaseEstimator, Cs: Costs) -> Iterator[BaseEstimator]:
        warm = not _solves_together(template, X_train)
        model = clone(template).set_params(warm_start=warm)
        past: list[tuple[float, Vector]] = []
        smooth = model.loss not in ("hinge", "epsilon_insensitive")
        joint = getattr(model, "multi_class", "ovr") == "crammer_singer"
        for C, _ in Cs:
            # Joint duals must keep their sums.
            if warm and len(past) == 2 and not joint:
                table = along(C, past, smooth)
                model.support_ = np.flatnonzero(table.any(axis=0))
                model.dual_coef_, model._fitted_C = table[:, model.support_], C
            with silent_failures():
                model.set_params(C=C).fit(X_train, y_train, **options)
            yield model
            table = np.zeros((len(model.dual_coef_), model._n_rows))
            table[:, model.support_] = model.dual_coef_
            past = [*past[-1:], (C, table)]

    for template, Cs in data.plan.groups:
        yield from data.path(f, steps, models(template, Cs), Cs)


@dataclass
class _Rows:
    """Rows of kernel models, the folds over them, and their last kernel matrices.

    Attributes
    ----------
    data : _Data
    source : estimator
        Knows the number and the names of the features.
    points : Points
    targets : Targets
    folds : list of (weights, held-out rows)
        The weights are 0 for rows that are not for training.
    trains : list of ndarray of int
        The training rows of these folds, of weight 0 too.
    numbers : list of int
        Numbers of these folds in the search.
    steps : list
        Fitted steps before the estimator.
    room : float
        Part of `cache_size` for these rows.
    threads : int
    """

    data: _Data
    source: BaseEstimator
    points: Points
    targets: Targets
    folds: list[Fold]
    trains: list[NDArray[np.intp]]
    numbers: list[int]
    steps: Steps
    room: float
    threads: int
    table: tuple[Kernel, Table | None] | None = None
    matrix: tuple[Kernel, Table | Gram] | None = None

    @classmethod
    def of(
        cls,
        data: _Data,
        X: MatrixLike,
        y: NDArray[np.generic],
        folds: list[Fold],
        trains: list[NDArray[np.intp]],
        numbers: list[int],
        *,
        steps: Steps,
        room: float,
        threads: int,
    ) -> _Rows:
        """Return the rows of X with the targets y, validated."""
        source = clone(data.plan.groups[0][0])
        X, y = validated(
            source, X, y, **({} if is_classifier(source) else {"y_numeric": True})
        )
        rows = X.tocsr() if sparse.issparse(X) else X
        points = points_of(rows, source._kernel_record())
        targets = Targets(np.asarray(y))
        if is_classifier(source):
            classes, codes = encode(np.asarray(y))
            targets = Targets(codes, classes)
        return cls(
            data, source, points, targets, folds, trains, numbers, steps, room, threads
        )

    def walks(self, model: BaseEstimator, Cs: Costs) -> list[Walk]:
        """Return the steps that train and score a model for every C.

        Folds whose kernels are equal share one matrix. If they can be trained together,
        one walk does so; else there is a walk for every fold.
        """
        record = model._kernel_record()
        kernels = [record.resolve(self.points.X, rows) for rows in self.trains]
        if any(kernel != kernels[0] for kernel in kernels):
            return [partial(self._apart, i, model, Cs) for i in range(len(kernels))]
        together, kernel = None, kernels[0]
        if kernel.positive:
            together = together_of(model, self.points.X, self.targets, self.folds)
        megabytes = model.cache_size * self.room
        if together is not None:
            table = self._table(kernel, megabytes, together)
            if table is not None:
                return [partial(self._together, together, table, kernel, model, Cs)]
        matrix = self._matrix(model, kernel, megabytes)
        return [
            partial(self._alone, i, matrix, kernel, model, Cs)
            for i in range(len(kernels))
        ]

    def _table(
        self, kernel: Kernel, megabytes: float, together: Together
    ) -> Table | None:
        """Return the table for folds that are trained together, if it fits."""
        if self.table is None or self.table[0] != kernel:
            self.table = self.matrix = None  # frees their memory first
            self.table = (
                kernel,
                whole_table(
                    self.points, kernel, megabytes, together.bytes, self.data.stop
                ),
            )
        return self.table[1]

    def _matrix(
        self, model: BaseEstimator, kernel: Kernel, megabytes: float
    ) -> Table | Gram:
        """Return the matrix for folds that are trained one at a time."""
        if self.matrix is None or self.matrix[0] != kernel:
            self.table = self.matrix = None
            self.matrix = (
                kernel,
                matrix_of_folds(
                    model, self.points, kernel, megabytes, self.threads, self.data.stop
                ),
            )
        return self.matrix[1]

    def _apart(self, i: int, model: BaseEstimator, Cs: Costs) -> Iterator[None]:
        """Walk over one of several folds whose kernels differ."""
        one = replace(
            self,
            folds=[self.folds[i]],
            trains=[self.trains[i]],
            numbers=[self.numbers[i]],
            room=self.room / self.threads,
            threads=1,
            table=None,
            matrix=None,
        )
        for walk in one.walks(model, Cs):
            yield from walk()

    def _together(
        self,
        together: Together,
        table: Table,
        kernel: Kernel,
        model: BaseEstimator,
        Cs: Costs,
    ) -> Iterator[None]:
        """Train all folds of a C together, and score them."""
        data, begun = self.data, time.perf_counter()
        values = np.array([C for C, _ in Cs])
        walk = together.walk(table, values, self._seed(model), data.stop, self.threads)
        for fits, (C, k) in zip(walk, Cs, strict=False):
            seconds = (time.perf_counter() - begun) / len(fits)
            for f, (_, test), fit in zip(self.numbers, self.folds, fits, strict=True):
                found = fit.model(self.points, kernel, self.points.X[test])
                self._named(found)
                data.note(f, self.steps, found, (C, k), seconds)
            yield
            begun = time.perf_counter()

    def _alone(
        self,
        i: int,
        matrix: Table | Gram,
        kernel: Kernel,
        model: BaseEstimator,
        Cs: Costs,
    ) -> Iterator[None]:
        """Train one fold for every C, and score it."""
        part, test = self.folds[i]
        path = Path(
            matrix, kernel, self.points, self.targets, part, test, model,
            np.array([C for C, _ in Cs]), self._seed(model), self.data.stop,
        )  # fmt: skip
        walk: Callable[[Path], Iterator[tuple[BaseEstimator, Vector]]]
        walk = walk_svc if isinstance(model, SVC) else walk_svr

        def models() -> Iterator[BaseEstimator]:
            for found, values in walk(path):
                found._held_out = self.points.X[test], values
                self._named(found)
                yield found

        yield from self.data.path(self.numbers[i], self.steps, models(), Cs)

    def _named(self, found: BaseEstimator) -> None:
        if hasattr(self.source, "feature_names_in_"):
            found.feature_names_in_ = self.source.feature_names_in_

    @staticmethod
    def _seed(model: BaseEstimator) -> int:
        return seed_of(model.random_state)


def _weights(data: _Data) -> Vector:
    return np.ones(len(data.y)) if data.weight is None else data.weight


def _all_rows(data: _Data, threads: int) -> _Rows:
    """Return the rows of a search without steps before the estimator."""
    places, weight = np.arange(len(data.y)), _weights(data)
    folds = [(part_of(weight, train), places[test]) for train, test in data.folds]
    trains, numbers = [train for train, _ in data.folds], list(range(len(folds)))
    return _Rows.of(
        data, data.X, data.y, folds, trains, numbers,
        steps=[], room=1.0, threads=threads,
    )  # fmt: skip


def _behind_steps(data: _Data, threads: int, f: int) -> Iterator[None]:
    """Train the kernel models of a fold, whose rows are transformed for it alone."""
    steps, X_train, X_test = data.transformed(f)
    train, test = (np.arange(len(data.y))[part] for part in data.folds[f])
    y = _safe_indexing(data.y, np.concatenate([train, test]))
    part = np.concatenate([_weights(data)[train], np.zeros(len(test))])
    fold = part, len(train) + np.arange(len(test))
    rows = _Rows.of(
        data, _stacked(X_train, X_test), y, [fold], [np.arange(len(train))], [f],
        steps=steps, room=1.0 / threads, threads=1,
    )  # fmt: skip
    for model, Cs in data.plan.groups:
        for walk in rows.walks(model, Cs):
            yield from walk()


def _stacked(first: MatrixLike, second: MatrixLike) -> MatrixLike:
    """Return the rows of two matrices or tables of the same kind as one."""
    if sparse.issparse(first):
        return sparse.vstack([first, second], format="csr")
    if hasattr(first, "iloc"):
        return first.__class__(np.vstack([first, second]), columns=first.columns)
    return np.vstack([first, second])
