"""Models of the folds of a search, trained for rising C with as much shared as pays.

All folds of linear classifiers are one batch, in which held-out rows have the cost 0.
All folds of kernel models with the same kernel are trained together, or share its
values, if memory holds these and reading them costs less than computing them in every
fit. Otherwise each fold is a batch of its own rows, which goes along the values of C.
Every way gives the fits of its folds at one C after the other.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import r2_score
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.extmath import safe_sparse_dot

from .. import core
from ..certificate import Certificate, Status
from ..core import StoppedError
from ..data.rows import Points
from ..data.types import MatrixLike, Parameters
from ..kernel import Nystroem, get_kernel_solver
from ..kernels.functions import Kernel, Precomputed
from ..kernels.gram import points_of
from ..kernels.table import (
    KernelTable,
    shared_matrix,
    table_pays,
    values_at,
    whole_table,
)
from ..losses import Vector
from ..problems.base import Problem
from ..problems.batch import Batch, LinearBatch
from ..problems.binary import BinaryProblem
from ..problems.duals import Table, carried, dense_table
from ..problems.kernel import KernelBatch
from ..solvers.auto import Auto, begins_with_duals
from ..solvers.base import Solver
from ..solvers.kernel.auto import small_enough
from ..training.batch import Job, Start, in_threads, solve_path
from ..training.folds import FoldProblems, bytes_of_folds, solve_folds
from ..training.solution import Solutions, WholeSolutions
from .base import Model
from .input import TrainingData, class_factors, labelled, unlabelled
from .linear_svc import LinearSVC
from .regression import SVR
from .svc import SVC

#: How rows are split into folds: their number, a splitter, or the folds themselves.
CrossValidation: TypeAlias = (
    int | BaseCrossValidator | Sequence[tuple[ArrayLike, ArrayLike]] | None
)

#: A model with one of these statuses is incomplete and is not scored.
CUT_SHORT = (Status.INTERRUPTED, Status.TIME_LIMIT)


def part_of(weight: Vector, train: NDArray[np.generic]) -> Vector:
    """Return the weights of a training part: 0 for other rows, k times for repeats."""
    rows = np.arange(len(weight))[train]
    return weight * np.bincount(rows, minlength=len(weight))


#: Classes whose pairs are always trained with all folds together, and values of C
#: beyond which all are: starts from the last value save more then.
FEW = (5, 10)


@dataclass(frozen=True)
class FoldFit:
    """Model of one fold at one C."""

    fold: int
    #: An unfitted estimator with the parameters of the model.
    model: Model
    #: Training data of the fold, and the solutions of its problems.
    data: TrainingData
    #: Returns its problems.
    batch: Callable[[], Batch]
    found: Solutions
    #: Held-out rows and their labels or targets.
    X_test: MatrixLike
    y_test: NDArray[np.generic]
    #: Time of the fit.
    seconds: float = 0.0
    #: Decision values at the held-out rows, if they are known, shape (n_test,
    #: n_problems).
    values: Vector | None = None
    #: Attributes about the features, such as their names.
    seen: Parameters = field(default_factory=dict)

    @property
    def parts(self) -> tuple[Certificate, ...]:
        """The certificate of each problem."""
        return self.found.certificate.parts

    @property
    def cut_short(self) -> bool:
        if isinstance(self.found, WholeSolutions):  # of a call that was not stopped
            return False
        return any(one.certificate.status in CUT_SHORT for one in self.found)

    def fitted(self) -> Model:
        """Return the fitted estimator, which knows its values at the held-out rows."""
        model = copy.copy(self.model)
        rows = self.data.X
        model.__dict__.update(self.seen, n_features_in_=rows.shape[1])
        model._keep(self.data, self.batch(), self.found)
        model._note_parameters()
        model.certificate_ = self.found.certificate
        model.n_iter_ = self.found.epochs
        if self.values is not None:
            kind: Any = type(model)
            model.__class__ = _knowing(kind)
            model._known = self.X_test, self.values
        return model

    def decisions(self) -> Vector:
        """Return the decisions of all problems at the held-out rows."""
        if self.values is not None:
            return self.values
        return self.fitted()._values(self.X_test)

    def score(self) -> float:
        """Return the estimator's own score at the held-out rows: accuracy or R^2."""
        values = self.decisions()
        if not len(self.data.classes):
            return float(r2_score(self.y_test, values[:, 0]))
        classes = self.data.classes
        codes = self.model._reduction_of(len(classes)).decide(values)
        return float(np.mean(classes[codes] == self.y_test))


@cache
def _knowing(estimator: Any) -> type[Model]:
    """Return a subclass whose models may know their values at some rows."""

    def values(self: BaseEstimator, X: MatrixLike) -> Vector:
        rows, known = self._known
        return known if X is rows or _equal(X, rows) else own(self, X)

    own: Callable[[BaseEstimator, MatrixLike], Vector] = estimator._values
    return type(estimator.__name__, (estimator,), {"_values": values})


def _equal(A: MatrixLike, B: MatrixLike) -> bool:
    """Whether two matrices are equal; a comparison costs less than decision values."""
    if issparse(A) and issparse(B):
        return A.shape == B.shape and A.nnz == B.nnz and (A != B).nnz == 0
    return not issparse(A) and not issparse(B) and np.array_equal(A, B)


#: The fits of some folds, for one C after the other.
Walk = Callable[[], Iterator[list[FoldFit]]]


@dataclass(frozen=True)
class Fold:
    """Rows of one fold, and its number in the search."""

    number: int
    X: MatrixLike
    y: NDArray[np.generic]
    weight: Vector | None
    X_test: MatrixLike
    y_test: NDArray[np.generic]
    seen: Parameters = field(default_factory=dict)
    #: ``y_i alpha_i`` of these rows in a model of all rows, near which the fits begin.
    duals: Table | None = None

    def walk(
        self, model: Model, Cs: Vector, stop: core.Stop, threads: int = 1
    ) -> Iterator[list[FoldFit]]:
        """Train models of this fold alone, for rising C."""
        begun = time.perf_counter()
        job = model._job(stop, threads)
        try:
            own = self.X, self.y, self.weight
            if is_classifier(model):
                data = labelled(model.class_weight, *own)
            else:
                data = unlabelled(*own)
            batch, solver = model._problems(data, job)
        except ValueError as error:
            error.args = (f"fold {self.number}: {error}", *error.args[1:])
            raise
        path = solve_path(
            batch, Cs, solver, job, _start(batch, solver, self.duals, model.tol)
        )
        for C, found in zip(map(float, Cs), path, strict=True):
            now, seconds = copy.copy(model), time.perf_counter() - begun
            now.C = C
            yield [
                FoldFit(
                    *(self.number, now, data, partial(batch.at, C), found),
                    *(self.X_test, self.y_test, seconds, None, self.seen),
                )
            ]
            begun = time.perf_counter()


def _start(
    batch: Batch, solver: Solver, duals: Table | None, tol: float
) -> Start | None:
    """Return what gives dual variables to start from; None if none are known.

    `duals`: ``y_i alpha_i`` of all rows in use, in the layout of ``dual_coef_``.
    """
    if duals is None or not solver.dual:
        return None
    if isinstance(batch, LinearBatch) and not batch.joint:
        first = cast(BinaryProblem, batch.problem(0))
        if isinstance(solver, Auto) and not begins_with_duals(first, tol):
            return None

        def scaled(k: int, problem: Problem) -> Vector:
            return carried(cast(BinaryProblem, problem), batch.duals(duals, k))

        return scaled
    if not isinstance(batch, KernelBatch):
        return None
    own: KernelBatch = batch
    table = dense_table(duals)[:, own.order]

    def signed(k: int, problem: Problem) -> Vector | None:
        return own.begin(k, problem, own.C, own.entries(table, k) * own.signs(k))

    return signed


@dataclass
class Folds:
    """Folds over the same rows."""

    #: All rows.
    points: Points
    #: Their labels or targets, shape (n,).
    y: NDArray[np.generic]
    #: Shape (n,).
    weight: Vector | None
    #: Row numbers.
    splits: list[tuple[NDArray[np.intp], NDArray[np.intp]]]
    stop: core.Stop
    threads: int = 1
    #: Number of kernels, or other parameters besides C, of the search.
    kernels: int = 1
    seen: Parameters = field(default_factory=dict)
    #: Models of all rows of a linear classifier, one per problem, near which the folds
    #: begin where their problems share passes; none for a cold start.
    near: Sequence[Vector] = ()
    #: ``y_i alpha_i`` of all rows in such a model, in the layout of ``dual_coef_``.
    duals: Table | None = None
    #: The last kernel, its rows in their order or None for all in the order of the
    #: data, and their matrix or None if it is too large.
    table: tuple[Kernel, NDArray[np.intp] | None, KernelTable | None] | None = None
    #: The last kernel of separate fits, and how many of its values they need.
    computed: tuple[Kernel, float] | None = None

    @cached_property
    def parts(self) -> list[Vector]:
        """Weights of all rows in each fold, 0 for held-out rows."""
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        return [part_of(weight, train) for train, _ in self.splits]

    @cached_property
    def tests(self) -> list[tuple[MatrixLike, NDArray[np.generic]]]:
        """Held-out rows of each fold, and their labels or targets."""
        return [(self.points.X[test], self.y[test]) for _, test in self.splits]

    def data(self, model: Model) -> list[TrainingData]:
        """Return the training data of each fold, in which held-out rows weigh 0."""
        if not is_classifier(model):
            return [unlabelled(self.points, self.y, part) for part in self.parts]
        whole, given = labelled(None, self.points, self.y, None), model.class_weight
        found = []
        for part in self.parts:
            total = np.bincount(whole.codes, part).astype(np.float64)
            factor = class_factors(given, whole.classes, total)
            found.append(replace(whole, sample_weight=part, weight=part, factor=factor))
        return found

    def refuse_weightless(self, classifies: bool) -> None:
        """Raise an error for a training part without rows, or of one class only."""
        remedy = "change sample_weight, or the folds with cv"
        for f, part in enumerate(self.parts):
            if not part.any():
                raise ValueError(
                    f"fold {f} has no training row with a positive weight; {remedy}"
                )
            if classifies and len(np.unique(self.y[part > 0.0])) < 2:
                raise ValueError(
                    f"fold {f} has training rows with a positive weight of one class "
                    f"only; {remedy}"
                )

    def fold(self, f: int, pairwise: bool = False) -> Fold:
        """Return the rows of one fold; of a square kernel matrix with `pairwise`."""
        train, test = (np.arange(len(self.y))[part] for part in self.splits[f])
        X: MatrixLike = self.points[train]
        X_test = self.tests[f][0]
        if pairwise:
            X, X_test = self.points.X[np.ix_(train, train)], X_test[:, train]
        weight = None if self.weight is None else self.weight[train]
        y, y_test = self.y[train], self.y[test]
        duals = None if self.duals is None else self.duals[:, train]
        return Fold(f, X, y, weight, X_test, y_test, self.seen, duals)

    def walks(self, model: Model, Cs: Vector) -> list[Walk]:
        """Return what trains the folds for rising C, together if that pays.

        All models have the parameters of `model`, except for C.
        """
        joint = getattr(model, "multi_class", "") == "crammer_singer"
        if isinstance(model, LinearSVC) and not joint and model.penalty == "l2":
            own = self.data(model)
            if all(np.bincount(of.codes, of.weight).all() for of in own):
                return [partial(self._linear, model, own, Cs)]
        every = range(len(self.splits))
        kernel = None
        if isinstance(model, (SVC, SVR)) and not self._few(model, len(Cs)):
            kernel = self._kernel(model)
        own = [] if kernel is None else self.data(model)
        if kernel is not None and self._table_pays(kernel, own, len(Cs)):
            together = self._together(model, kernel, own, Cs)
            if together is not None:
                return [together]
            table = self._shared(model, kernel)
            if table is not None:
                return [
                    partial(self._over_values, f, model, kernel, own[f], table, Cs)
                    for f in every
                ]
        pairwise = getattr(model, "_precomputed", False)
        threads = max(1, self.threads // len(self.splits))
        alone = [partial(self._alone, f, pairwise, model, Cs, threads) for f in every]
        at_once = self._at_once(model)
        return [partial(_chained, alone[w::at_once]) for w in range(at_once)]

    def _table_pays(self, kernel: Kernel, own: list[TrainingData], Cs: int) -> bool:
        """Whether reading kernel values costs less than computing them in every fit.

        A fit computes about as many values as its matrix has. Fits of the same kernel
        that were separate so far count as well. Folds near a model share its start.
        """
        known = self.table is not None and self.table[0] == kernel
        if known or self.duals is not None:
            return True
        values = float(Cs * sum(map(_values_of, own)))
        if self.computed is not None and self.computed[0] == kernel:
            values += self.computed[1]
        self.computed = kernel, values
        return table_pays(self.points, kernel, values, self.kernels)

    def _few(self, model: SVC | SVR, Cs: int) -> bool:
        """Whether the core solves the pairs of a fold faster than a loop over folds."""
        classes = len(np.unique(self.y))
        if not isinstance(model, SVC) or classes <= FEW[0] or Cs > FEW[1]:
            return False
        folds = (
            np.unique(self.y[train], return_counts=True) for train, _ in self.splits
        )
        sizes = max((sizes for _, sizes in folds), key=sum)
        bounds = [0, *np.cumsum(sizes).tolist()]
        solver = get_kernel_solver(model.solver)
        kernel = model._kernel_record().resolve(self.points.X)
        return small_enough(solver, kernel, bounds, model.cache_size)

    def _at_once(self, model: Model) -> int:
        """Return the number of folds whose problems memory holds."""
        count = len(self.splits)
        landmarks = get_kernel_solver(model.solver) if isinstance(model, SVC) else None
        if not isinstance(landmarks, Nystroem):
            return count
        pairs_of_a_row = len(np.unique(self.y)) - 1
        room = landmarks.bytes_of_features(len(self.y)) * pairs_of_a_row / 1e6
        if room > model.cache_size:
            raise ValueError(
                f"cache_size={model.cache_size!r} does not hold the features of a "
                f"fold; use cache_size={math.ceil(room)}, or fewer landmarks than "
                f"n_components={landmarks.n_components}"
            )
        return min(count, int(model.cache_size / room))

    def _alone(
        self, f: int, pairwise: bool, model: Model, Cs: Vector, threads: int
    ) -> Iterator[list[FoldFit]]:
        return self.fold(f, pairwise).walk(model, Cs, self.stop, threads)

    def _linear(
        self, model: LinearSVC, own: list[TrainingData], Cs: Vector
    ) -> Iterator[list[FoldFit]]:
        """Train all folds as one batch, in which held-out rows have the cost 0."""
        begun = time.perf_counter()
        whole = replace(own[0], weight=np.ones(len(self.y)))
        batch = model._batch(whole, copies=False)
        several = len(batch)

        def same() -> LinearBatch:
            return batch

        folds = batch.weighted([(data.weight, data.factor) for data in own], self.near)
        job = model._job(self.stop, self.threads)
        job.seeds, job.models = model._seeds(several), [*self.near] * len(own)
        solver = model._solver(batch)
        start = _start(folds, solver, self.duals, model.tol)
        path = solve_path(folds, Cs, solver, job, start)
        for C, found in zip(map(float, Cs), path, strict=True):
            seconds = (time.perf_counter() - begun) / len(own)
            now, fits = copy.copy(model), []
            now.C = C
            for f, (data, (X, y)) in enumerate(zip(own, self.tests, strict=True)):
                of = found[f * several : (f + 1) * several]
                coef, intercept = batch.coef(of.w)
                values = safe_sparse_dot(X, coef.T, dense_output=True) + intercept
                of_fold = (f, now, data, same, of, X, y, seconds, values, self.seen)
                fits.append(FoldFit(*of_fold))
            yield fits
            begun = time.perf_counter()

    def _kernel(self, model: SVC | SVR) -> Kernel | None:
        """Return the kernel of all folds; None if each has its own."""
        kernel = record = model._kernel_record()
        self.points = points = points_of(self.points, record)
        if isinstance(getattr(record, "gamma", 1.0), str):
            kernel, *others = [
                record.resolve(points.X, train) for train, _ in self.splits
            ]
            if any(other != kernel for other in others):
                return None
        return kernel

    def _shared(self, model: SVC | SVR, kernel: Kernel) -> KernelTable | None:
        """Return the kernel values of all rows if they take long to compute."""
        landmarks = isinstance(get_kernel_solver(model.solver), Nystroem)
        if isinstance(kernel, Precomputed) or landmarks:
            return None
        known = self.table
        if known is None or known[0] != kernel or known[1] is not None:
            self.table = None  # frees its memory first
            found = shared_matrix(
                self.points, kernel, model.cache_size, self.threads, self.stop
            )
            table = found if isinstance(found, KernelTable) else None
            self.table = known = kernel, None, table
        return known[2]

    def _over_values(
        self,
        f: int,
        model: BaseEstimator,  # SVC or SVR, with its own kind of batch
        kernel: Kernel,
        data: TrainingData,
        table: KernelTable,
        Cs: Vector,
    ) -> Iterator[list[FoldFit]]:
        """Train models of one fold, with the kernel values of a table."""
        begun = time.perf_counter()
        batch = model._kernel_batch(self.points, kernel, data, table)
        job = model._job(self.stop, 1)
        job.seeds, solver = model._seeds(len(batch)), model._solver(batch, job)
        (_, test), (X, y) = self.splits[f], self.tests[f]
        start = _start(batch, solver, self.duals, model.tol)
        path = solve_path(batch, Cs, solver, job, start)
        for C, found in zip(map(float, Cs), path, strict=True):
            coef = np.zeros((len(found), table.n))
            for k, one in enumerate(found):
                rows, own = batch.expansion(k, one.coefficients)
                coef[k, rows] = own
            values = values_at(table, np.arange(table.n)[test], coef, self.stop)
            values += np.array([one.bias for one in found])
            now, seconds = copy.copy(model), time.perf_counter() - begun
            now.C = C
            of_fold = (f, now, data, partial(batch.at, C), found, X, y, seconds)
            yield [FoldFit(*of_fold, values, self.seen)]
            begun = time.perf_counter()

    def _together(
        self, model: SVC | SVR, kernel: Kernel, own: list[TrainingData], Cs: Vector
    ) -> Walk | None:
        """Return what trains all folds over one kernel matrix; None if that is not so.

        The matrix may take the memory of the caches of all folds.
        """
        points = self.points
        if not kernel.positive:
            return None
        near = (self.duals,) if isinstance(model, SVC) else ()
        problems = model._folds(points, kernel, own, *near)
        if problems is None:
            return None
        megabytes = model.cache_size * len(self.splits)
        rows, known = problems.rows, self.table
        order = None if known is None or known[0] != kernel else known[1]
        if known is None or order is None or not np.array_equal(order, rows):
            last = None if known is None else known[2]
            self.table = known = None  # the next one takes or frees its memory
            room = bytes_of_folds(problems)
            table = whole_table(points, rows, kernel, megabytes, room, self.stop, last)
            self.table = known = kernel, rows, table
        table = known[2]
        if table is None:
            return None
        return partial(self._over_table, model, kernel, own, problems, table, Cs)

    def _over_table(
        self,
        model: SVC | SVR,
        kernel: Kernel,
        own: list[TrainingData],
        problems: FoldProblems,
        table: KernelTable,
        Cs: Vector,
    ) -> Iterator[list[FoldFit]]:
        begun = time.perf_counter()
        job = model._job(self.stop, self.threads)
        job.seeds = model._seeds(len(problems))
        place = np.argsort(problems.rows)  # of the rows of the data in the matrix
        tests = [place[test] for _, test in self.splits]
        path = solve_folds(problems, table, Cs, job, tests)
        for C, each in zip(map(float, Cs), path, strict=False):
            seconds = (time.perf_counter() - begun) / len(own)
            now, fits = copy.copy(model), []
            now.C = C
            for f, (found, values) in enumerate(each):
                X, y = self.tests[f]
                data, batch = own[f], partial(_fold_batch, model, own[f], kernel, C)
                of_fold = f, now, data, batch, found, X, y, seconds, values, self.seen
                fits.append(FoldFit(*of_fold))
            yield fits
            begun = time.perf_counter()


def _values_of(data: TrainingData) -> int:
    """Return the size of the kernel matrices of all pairs of classes, or of one."""
    used = data.costs > 0.0
    if not len(data.classes):
        return int(used.sum()) ** 2
    sizes = np.bincount(data.codes[used])
    return int(sizes.sum() ** 2 + (len(sizes) - 2) * (sizes**2).sum())


def _fold_batch(
    model: SVC | SVR, data: TrainingData, kernel: Kernel, C: float
) -> Batch:
    """Return the problems of a fold whose rows have a positive weight."""
    return model._kernel_batch(points_of(data.X, kernel), kernel, data).at(C)


def _chained(walks: Sequence[Walk]) -> Iterator[list[FoldFit]]:
    return itertools.chain.from_iterable(walk() for walk in walks)


def run(walks: list[Walk], take: Callable[[list[FoldFit]], object], job: Job) -> None:
    """Train what the walks train, and hand over the fits of each C.

    One thread takes a step of each walk in turn, so that after a stop all folds have
    got as far. Several threads take one walk each.
    """

    def steps(walk: Walk) -> Iterator[None]:
        with contextlib.suppress(StoppedError):
            found = iter(walk())
            while not job.stopped:
                fits = next(found, None)
                if fits is None or any(fit.cut_short for fit in fits):
                    return
                take(fits)
                yield

    def all_of_them(_: int) -> None:
        deque(itertools.zip_longest(*map(steps, walks)), maxlen=0)

    def alone(w: int) -> None:
        deque(steps(walks[w]), maxlen=0)

    if len(walks) == 1 or job.threads == 1:
        in_threads(all_of_them, 1, job)
    else:
        in_threads(alone, len(walks), job)


def why_ended(stop: core.Stop, time_limit: float | None) -> str:
    """Return the reason why a search was cut short."""
    return "interrupted" if stop.requested else f"{time_limit=!r} was reached"
