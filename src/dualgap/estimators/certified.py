"""Choice of C with a proof that no C of an interval is much better.

The error of the exact optimum at any C between two fitted values is bounded cell by
cell: a test row counts as wrong if the ball of every C in the cell proves it
(:mod:`dualgap.answers.between`). The bounds of a cell are averaged over the folds. The
interval with the least bound is split, until that bound is close enough to the error of
a fitted model.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..answers.ball import Ball
from ..answers.between import Anchor, Between, Binary, QueryPoints, lengths_of
from ..answers.bias import Side
from ..answers.kernel_regions import matrix_distances
from ..answers.regions import distances, means_of, most_entries
from ..certificate import Certificate
from ..core import StoppedError
from ..data.types import MatrixLike
from ..kernel import BlockSolver, Nystroem
from ..kernels.gram import Matrix, Subset, points_of
from ..kernels.table import shared_matrix
from ..losses import Vector
from ..problems.batch import LinearBatch
from ..problems.binary import BinaryProblem
from ..problems.kernel import KernelProblem
from ..problems.reductions import OneVsOne, Reduction, refuse_missing
from ..solvers import Solver
from ..training import solve
from ..training.batch import Job, in_threads
from .base import tell
from .folds import CUT_SHORT, Folds, why_ended
from .input import TrainingData
from .linear_svc import LinearSVC
from .svc import SVC

if TYPE_CHECKING:
    from .results import Results
    from .search import ClassifierSearch


@dataclass(frozen=True)
class CertifiedSearchSettings:
    """Tuning constants of the search."""

    #: Largest tolerance of the fits. The bounds are as wide as the root of the gap.
    tol: float = 1e-9
    #: Cells between two fitted values of C, each with its own bound.
    cells: int = 24
    #: Least ratio of two neighbouring values of C, as a difference of logarithms to
    #: base 10. Below it only smaller gaps would help.
    narrowest: float = 1e-3


class ErrorCurve(NamedTuple):
    """Bounds on the cross-validation error of exact optima, piecewise in C.

    Attributes
    ----------
    edges : ndarray of shape (n_pieces + 1,)
        Increasing values of C. Piece k has all C from ``edges[k]`` to ``edges[k + 1]``.
    lower, upper : ndarray of shape (n_pieces,)
        Bounds on the mean error over the folds, for every C in the piece.
    """

    edges: Vector
    lower: Vector
    upper: Vector


class AnchoredFit(NamedTuple):
    """Models of one fold at one C, one per binary problem."""

    anchors: list[Anchor]
    #: Products of the test rows with the centres, and bounds on their errors, shape
    #: (n_problems, n_test).
    values: NDArray[np.float64]
    error: NDArray[np.float64]
    #: Accuracy of the models on the test part.
    score: float
    certificates: list[Certificate]
    #: Time of the fit with its bounds, and of its score.
    seconds: float
    score_seconds: float


@dataclass(frozen=True)
class CertifiedFolds(ABC):
    """The binary problems of every fold, and how they are trained and scored."""

    #: Classes of all rows, and their weights in each fold.
    own: list[TrainingData]
    #: Rows of the test parts.
    tests: list[NDArray[np.intp]]
    #: In every pair the second class is positive.
    reduction: Reduction
    solver: Solver
    job: Job

    @abstractmethod
    def problem(self, fold: int, k: int, C: float) -> Binary:
        """Return a binary problem of a fold."""

    @abstractmethod
    def places(self, fold: int, k: int) -> NDArray[np.intp]:
        """Return where the rows of the problem are the test rows of the fold."""

    @abstractmethod
    def far(self, fold: int, k: int, side: Side) -> NDArray[np.float64]:
        """Bound the distances ``||x - z_k||`` of the test rows, for a free bias."""

    def start(self, problem: Binary, near: list[Anchor]) -> Vector | None:
        """Return dual variables to start from, given the anchors on both sides of C."""
        return None

    def fit(
        self, C: float, near: Sequence[Sequence[AnchoredFit]] = ()
    ) -> list[AnchoredFit] | None:
        """Train and score all folds at a C; return None if the search is to end.

        `near` are the fits at the values of C next to it, if there are any.
        """
        found = in_threads(
            lambda fold: self._fit(fold, C, [fits[fold] for fits in near]),
            len(self.tests),
            self.job,
        )
        done = [one for one in found if one is not None]
        return done if len(done) == len(found) else None

    def _fit(self, fold: int, C: float, near: list[AnchoredFit]) -> AnchoredFit | None:
        begun = time.perf_counter()
        solutions, anchors, values, errors, decisions = [], [], [], [], []
        for k in range(len(self.reduction)):
            if self.job.stopped:
                return None
            problem, test = self.problem(fold, k, C), self.places(fold, k)
            warm = self.start(problem, [fit.anchors[k] for fit in near])
            now = solve(problem, self.solver, warm=warm, **self.job.options(0))
            if now.certificate.status in CUT_SHORT:
                return None
            of_kernel = now.w.size == 0
            ball = Ball.of(problem, None if of_kernel else now.w, now.alpha)
            solutions.append(now)
            anchors.append(Anchor.of(ball))
            values.append(ball.products.values[test])
            errors.append(ball.products.error[test])
            decisions.append(ball.decisions.values[test])
        fitted = time.perf_counter()
        codes = self.own[fold].codes[self.tests[fold]]
        right = self.reduction.decide(np.stack(decisions, axis=1)) == codes
        return AnchoredFit(
            anchors,
            np.stack(values),
            np.stack(errors),
            float(np.mean(right)),
            [now.certificate for now in solutions],
            fitted - begun,
            time.perf_counter() - fitted,
        )

    def shares(
        self, fold: int, first: AnchoredFit, last: AnchoredFit, cells: int
    ) -> NDArray[np.float64]:
        """Return the shares of rows that are certainly, and perhaps wrong, (2, cells).

        They hold for every C between the fits, cell by cell.
        """
        codes = self.own[fold].codes[self.tests[fold]]
        ends, found = np.linspace(0.0, 1.0, cells + 1), []
        for k in range(len(self.reduction)):
            pair = first.anchors[k], last.anchors[k]
            problems = [self.problem(fold, k, anchor.C) for anchor in pair]
            between = Between((problems[0], problems[1]), *pair, ends)
            error = np.maximum(first.error[k], last.error[k])
            lengths = lengths_of(problems[0])[self.places(fold, k)]
            points = QueryPoints(first.values[k], last.values[k], error, lengths)
            found.append(between.bounds(points, partial(self.far, fold, k)))
        shares = np.empty((2, cells))
        for cell, bounds in enumerate(zip(*found, strict=True)):
            lower, upper = np.stack(bounds, axis=-1)
            least, most = self.reduction.margin_bounds(lower, upper, codes)
            shares[:, cell] = np.mean(most < 0.0), np.mean(least <= 0.0)
        return shares


@dataclass(frozen=True)
class LinearFolds(CertifiedFolds):
    """Folds of linear classifiers."""

    #: All rows.
    X: MatrixLike
    #: The problems of all folds; rows of a test part have weight 0.
    batch: LinearBatch

    @classmethod
    def of(cls, model: LinearSVC, folds: Folds, job: Job) -> LinearFolds:
        own = folds.data(model)
        whole = replace(own[0], weight=np.ones(len(folds.y)))
        batch = model._batch(whole, copies=False)
        solver = model._solver(batch)
        parts = [(data.weight, data.factor) for data in own]
        return cls(
            *(own, _tests(folds), batch.reduction, solver, job, folds.points.X),
            batch.weighted(parts),
        )

    def problem(self, fold: int, k: int, C: float) -> BinaryProblem:
        found = self.batch.at(C).problem(fold * len(self.reduction) + k)
        assert isinstance(found, BinaryProblem)
        return found

    def places(self, fold: int, k: int) -> NDArray[np.intp]:
        return self.tests[fold]

    def far(self, fold: int, k: int, side: Side) -> NDArray[np.float64]:
        lengths, test = lengths_of(self.batch.rows), self.tests[fold]
        mean, error = means_of(side, self.X, lengths)
        found = distances(self.X[test], mean, lengths[test], most_entries(self.X))
        return found + error


@dataclass(frozen=True)
class KernelFolds(CertifiedFolds):
    """Folds of kernel classifiers, over a matrix of all rows."""

    #: All models have its loss and its kind of bias.
    model: SVC
    matrix: Matrix
    _subsets: dict[tuple[int, int], tuple[Subset, NDArray[np.intp]]] = field(
        default_factory=dict
    )

    @classmethod
    def of(cls, model: SVC, folds: Folds, job: Job) -> KernelFolds:
        kernel = model._kernel_record()
        points = points_of(folds.points, kernel)
        threads = min(job.threads, len(folds.splits))
        matrix = shared_matrix(points, kernel, model.cache_size, threads, job.stop)
        own = folds.data(model)
        pairs = OneVsOne(len(own[0].classes))
        for data in own:
            refuse_missing(data.classes, np.bincount(data.codes, data.costs))
        pairs.confident = model.break_ties
        return cls(own, _tests(folds), pairs, BlockSolver(), job, model, matrix)

    def _rows(self, fold: int, k: int) -> tuple[Subset, NDArray[np.intp]]:
        """Return the matrix of a pair's rows and the test rows, and these rows."""
        if (fold, k) not in self._subsets:
            data, pair = self.own[fold], self.reduction.subjects[k]
            used = np.isin(data.codes, pair) & (data.costs > 0.0)
            used[self.tests[fold]] = True
            rows = np.flatnonzero(used)
            self._subsets[fold, k] = self.matrix.subset(rows), rows
        return self._subsets[fold, k]

    def problem(self, fold: int, k: int, C: float) -> KernelProblem:
        (subset, rows), data = self._rows(fold, k), self.own[fold]
        ones = np.ones(len(data.codes)) if data.weight is None else data.weight
        weight = self.reduction.weights(data.codes, k, ones, data.factor)
        return KernelProblem(
            subset,
            self.reduction.signs(data.codes, k)[rows],
            C,
            loss=self.model.loss,
            sample_weight=weight[rows],
            **self.model._bias_of_problems(),
        )

    def places(self, fold: int, k: int) -> NDArray[np.intp]:
        return np.searchsorted(self._rows(fold, k)[1], self.tests[fold])

    def far(self, fold: int, k: int, side: Side) -> NDArray[np.float64]:
        problem, at = self.problem(fold, k, 1.0), self.places(fold, k)
        return matrix_distances(problem, side, at, lengths_of(problem)[at])

    def start(self, problem: Binary, near: list[Anchor]) -> Vector | None:
        """Return the point between the dual points on both sides."""
        if not near:
            return None
        first, last = near
        t = (problem.C - first.C) / (last.C - first.C)
        alpha: Vector = ((1.0 - t) * first.signed + t * last.signed) * problem.y
        upper = problem.upper
        return np.where(alpha >= (1.0 - 1e-12) * upper, upper, alpha)


def _tests(folds: Folds) -> list[NDArray[np.intp]]:
    every = np.arange(len(folds.y))
    return [every[test] for _, test in folds.splits]


class CertifiedChoice(NamedTuple):
    """Result of a search."""

    #: The models of all folds, by C.
    fits: dict[float, list[AnchoredFit]]
    bounds: ErrorCurve
    #: Proved difference between the error of the best models and the least error of the
    #: exact optimum at any C.
    accuracy: float
    #: Interval of C that was too narrow to split, if this ended the search.
    narrow: tuple[float, float] | None

    def score(self, C: float) -> float:
        """Return the mean score of the models at a C."""
        return _mean_score(self.fits[C])


def search(
    folds: CertifiedFolds,
    start: Vector,
    accuracy: float,
    settings: CertifiedSearchSettings,
    best: float = -math.inf,
) -> CertifiedChoice | None:
    """Split the interval of C until the accuracy is proved, or no fit is left.

    - `start`: increasing values of C to begin with, two or more.
    - `best`: mean accuracy of the best models so far, of other problems.

    Returns None if the search ended before all of `start` were fitted.
    """
    fits: dict[float, list[AnchoredFit]] = {}
    for C in start.tolist():
        now = folds.fit(C)
        if now is None:
            return None
        fits[C] = now
    Cs, narrow = start.tolist(), None

    def bound(i: int) -> tuple[Vector, Vector]:
        """Bound the mean error over the folds in the cells of interval i."""
        pairs = zip(fits[Cs[i]], fits[Cs[i + 1]], strict=True)
        shares = [
            folds.shares(k, *pair, settings.cells) for k, pair in enumerate(pairs)
        ]
        lower, upper = np.mean(shares, axis=0)
        return lower, upper

    bounds = [bound(i) for i in range(len(Cs) - 1)]
    while True:
        best = max(best, *(_mean_score(fits[C]) for C in Cs))
        least = [float(lower.min()) for lower, _ in bounds]
        i = int(np.argmin(least))
        proved = max(1.0 - best - least[i], 0.0)
        if proved <= accuracy + 1e-12:  # rounding of the means
            break
        if math.log10(Cs[i + 1] / Cs[i]) < settings.narrowest:
            narrow = (Cs[i], Cs[i + 1])
            break
        middle = math.sqrt(Cs[i]) * math.sqrt(Cs[i + 1])
        now = folds.fit(middle, (fits[Cs[i]], fits[Cs[i + 1]]))
        if now is None:
            break
        fits[middle] = now
        Cs.insert(i + 1, middle)
        bounds[i : i + 1] = [bound(i), bound(i + 1)]
    pieces = _joined(Cs, bounds, settings.cells)
    return CertifiedChoice({C: fits[C] for C in Cs}, pieces, proved, narrow)


def _mean_score(fits: Sequence[AnchoredFit]) -> float:
    return float(np.mean([one.score for one in fits]))


def _joined(
    Cs: list[float], bounds: list[tuple[Vector, Vector]], cells: int
) -> ErrorCurve:
    t = np.linspace(0.0, 1.0, cells + 1)[:-1]
    pieces = [(1.0 - t) * a + t * b for a, b in pairwise(Cs)]
    lower, upper = zip(*bounds, strict=True)
    edges = np.concatenate([*pieces, Cs[-1:]])
    return ErrorCurve(edges, np.concatenate(lower), np.concatenate(upper))


# ----------------------------------------------------------------- the whole search


def _call(
    train: Callable[[], CertifiedChoice | None], _: int
) -> CertifiedChoice | None:
    return train()


def certified_search(
    own: ClassifierSearch, folds: Folds, Cs: Vector, make: type[Results]
) -> Results:
    """Choose C with a proof, for one gamma after the other.

    The error of the best models so far bounds what the next gamma has to prove.
    """
    settings, best, stop = CertifiedSearchSettings(), -np.inf, folds.stop
    if isinstance(own.solver, Nystroem) or own.solver == "nystroem":
        raise ValueError(
            f"solver={own.solver!r} does not go with certify_C=True, which is "
            "about models over all rows; use solver='auto'"
        )
    job = own._job(stop)
    job.seeds = own._seeds(1)
    job.tol = min(own.tol, settings.tol)
    found: dict[tuple[tuple[str, str | float], ...], CertifiedChoice | None] = {}
    _, _, others = own._candidates()
    for params in others:
        key = tuple(params.items())
        found[key] = None
        model = own._resolved(own._template(**params), folds)
        try:
            certified: CertifiedFolds = (
                KernelFolds.of(model, folds, job)
                if isinstance(model, SVC)
                else LinearFolds.of(model, folds, job)
            )
        except StoppedError:
            continue
        train = partial(search, certified, Cs, own.error_tolerance, settings, best)
        (one,) = in_threads(partial(_call, train), 1, replace(job, threads=1))
        found[key] = one
        if one is not None:
            best = max(best, *map(one.score, one.fits))
    least = [0.0 if one is None else one.bounds.lower.min() for one in found.values()]
    results = _results(own, folds, Cs, found, make)
    if best == -np.inf:
        return results  # the search tells that nothing was scored
    own.error_tolerance_ = max(1.0 - best - float(min(least)), 0.0)
    own.n_fits_ = int(np.count_nonzero(~np.isnan(results.fit_times)))
    _warn_of_accuracy(own, stop, list(found.values()))
    return results


def _results(
    own: ClassifierSearch,
    folds: Folds,
    Cs: Vector,
    found: dict[tuple[tuple[str, str | float], ...], CertifiedChoice | None],
    make: type[Results],
) -> Results:
    """Return the scores of all fits."""
    candidates = [
        {"C": C, **dict(key)}
        for key, one in found.items()
        for C in (Cs.tolist() if one is None else one.fits)
    ]
    results = make(type(own).__name__, candidates, len(folds.splits))
    for key, one in found.items():
        if one is None:
            continue
        results.bounds[dict(key).get("gamma", "")] = one.bounds
        for C, fits in one.fits.items():
            for fold, fit in enumerate(fits):
                times = fit.seconds, fit.score_seconds
                own_params = {"C": C, **dict(key)}
                results.add(fold, own_params, fit.certificates, fit.score, times)
    results.certificates.clear()  # the search tells what their gaps allow
    return results


def _warn_of_accuracy(
    own: ClassifierSearch, stop: core.Stop, found: list[CertifiedChoice | None]
) -> None:
    """Warn if a search ended before the accuracy was proved."""
    if own.error_tolerance_ <= own.error_tolerance + 1e-12:
        return
    narrow = [(one, one.narrow) for one in found if one is not None and one.narrow]
    message = (
        f"{type(own).__name__}: C is proved to be within {own.error_tolerance_:.2%} of "
        f"the best, not within error_tolerance={own.error_tolerance:g}"
    )
    if not narrow:
        message += f" because {why_ended(stop, own.time_limit)}"
    for one, interval in narrow[:1]:
        gap = max(
            certificate.relative_gap
            for C in interval
            for fit in one.fits[C]
            for certificate in fit.certificates
        )
        message += (
            f". Near C={interval[0]:.4g} the gaps of the fits, {gap:.1e}, do not allow "
            "more: raise error_tolerance, lower tol below 1e-9, or penalise a bias "
            "that may not be unique there"
        )
    tell(message)
