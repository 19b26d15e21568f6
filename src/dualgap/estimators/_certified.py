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
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..answers.ball import Ball
from ..answers.between import Anchor, Between, Binary, Points, lengths_of
from ..answers.bias import Side
from ..certificate import Certificate
from ..losses import Vector
from ..solvers import Solver
from ..training import Solution, solve
from ._search import CUT_SHORT
from .training import FitOptions, fit_all

__all__ = [
    "ErrorBounds",
    "Folds",
    "Found",
    "Settings",
    "check_certify",
    "search",
    "warn_of_accuracy",
]


@dataclass(frozen=True)
class Settings:
    """Tuning constants of the search."""

    #: Largest tolerance of the fits. The bounds are as wide as the root of the gap.
    tol: float = 1e-9
    #: Cells between two fitted values of C, each with its own bound.
    cells: int = 24
    #: Least ratio of two neighbouring values of C, as a difference of logarithms to
    #: base 10. Below it only smaller gaps would help.
    narrowest: float = 1e-3


class ErrorBounds(NamedTuple):
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


class FoldFit(NamedTuple):
    """Models of one fold at one C, one per binary problem.

    Attributes
    ----------
    anchors : list of Anchor
    values, error : ndarray of shape (n_problems, n_test)
        Products of the test rows with the centres, and bounds on their errors.
    score : float
        Accuracy of the models on the test part.
    certificates : list of Certificate
    duals : tuple of ndarray or None
        Rows with dual variables, and ``y_i alpha_i`` there, for a final fit.
    seconds, score_seconds : float
        Time of the fit with its bounds, and of its score.
    """

    anchors: list[Anchor]
    values: NDArray[np.float64]
    error: NDArray[np.float64]
    score: float
    certificates: list[Certificate]
    duals: tuple[NDArray[np.intp], NDArray[np.float64]] | None
    seconds: float
    score_seconds: float


@dataclass(frozen=True)
class Folds(ABC):
    """The binary problems of every fold, and how they are trained and scored.

    Attributes
    ----------
    tests : list of ndarray
        Rows of the test parts.
    codes : ndarray of shape (n,)
        Classes of all rows, from 0.
    classes : int
        Number of classes.
    problems : int
        Number of binary problems of a fold.
    solver : Solver
    options : dict
        Options of :func:`dualgap.solve`.
    n_jobs, verbose
        As for an estimator.
    """

    tests: list[NDArray[np.intp]]
    codes: NDArray[np.intp]
    classes: int
    problems: int
    solver: Solver
    options: FitOptions
    n_jobs: int | None
    verbose: int

    @abstractmethod
    def problem(self, fold: int, k: int, C: float) -> Binary:
        """Return a binary problem of a fold."""

    @abstractmethod
    def places(self, fold: int, k: int) -> NDArray[np.intp]:
        """Return where the rows of the problem are the test rows of the fold."""

    @abstractmethod
    def far(self, fold: int, k: int, side: Side) -> NDArray[np.float64]:
        """Bound the distances ``||x - z_k||`` of the test rows, for a free bias."""

    @abstractmethod
    def score(
        self, fold: int, C: float, found: list[Solution], decisions: Vector
    ) -> float:
        """Return the accuracy of models from their decisions, (n_problems, n_test)."""

    @abstractmethod
    def rankings(self, bounds: Vector) -> Vector:
        """Turn bounds on decisions, (2, n_problems, n), into bounds on class scores.

        The class with the largest score is predicted. For two classes the bounds stay.
        """

    def duals(
        self, fold: int, found: list[Solution]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]] | None:
        """Return the dual variables of a fold for a final fit; None to keep none."""
        return None

    def start(self, problem: Binary, near: list[Anchor]) -> Vector | None:
        """Return dual variables to start from, given the anchors on both sides of C."""
        return None

    def fit(
        self, C: float, near: Sequence[Sequence[FoldFit]] = ()
    ) -> list[FoldFit] | None:
        """Train and score all folds at a C; return None if the search is to end.

        `near` are the fits at the values of C next to it, if there are any.
        """
        found = fit_all(
            lambda fold: self._fit(fold, C, [fits[fold] for fits in near]),
            len(self.tests),
            n_jobs=self.n_jobs,
            stop=self.options["stop"],
            verbose=self.verbose,
        )
        done = [one for one in found if one is not None]
        return done if len(done) == len(found) else None

    def _fit(self, fold: int, C: float, near: list[FoldFit]) -> FoldFit | None:
        stop, begun = self.options["stop"], time.perf_counter()
        solutions, anchors, values, errors, decisions = [], [], [], [], []
        for k in range(self.problems):
            if stop.requested or stop.expired:
                return None
            problem, test = self.problem(fold, k, C), self.places(fold, k)
            warm = self.start(problem, [fit.anchors[k] for fit in near])
            now = solve(problem, self.solver, warm=warm, **self.options)
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
        score = self.score(fold, C, solutions, np.stack(decisions))
        return FoldFit(
            anchors,
            np.stack(values),
            np.stack(errors),
            score,
            [now.certificate for now in solutions],
            self.duals(fold, solutions),
            fitted - begun,
            time.perf_counter() - fitted,
        )

    def shares(
        self, fold: int, first: FoldFit, last: FoldFit, cells: int
    ) -> NDArray[np.float64]:
        """Return the shares of rows that are certainly, and perhaps wrong, (2, cells).

        They hold for every C between the fits, cell by cell.
        """
        codes = self.codes[self.tests[fold]]
        ends, found = np.linspace(0.0, 1.0, cells + 1), []
        for k in range(self.problems):
            pair = first.anchors[k], last.anchors[k]
            problems = [self.problem(fold, k, anchor.C) for anchor in pair]
            between = Between((problems[0], problems[1]), *pair, ends)
            error = np.maximum(first.error[k], last.error[k])
            lengths = lengths_of(problems[0])[self.places(fold, k)]
            points = Points(first.values[k], last.values[k], error, lengths)
            found.append(between.bounds(points, partial(self.far, fold, k)))
        shares = np.empty((2, cells))
        for cell, bounds in enumerate(zip(*found, strict=True)):
            of_classes = self.rankings(np.stack(bounds, axis=1))
            wrong, right = _decided(of_classes[0], of_classes[1], codes)
            shares[:, cell] = np.mean(wrong), np.mean(~right)
        return shares


class Found(NamedTuple):
    """Result of a search.

    Attributes
    ----------
    fits : dict of float to list of FoldFit
        The models of all folds, by C.
    bounds : ErrorBounds
    accuracy : float
        Proved difference between the error of the best models and the least error of
        the exact optimum at any C.
    narrow : tuple of float or None
        Interval of C that was too narrow to split, if this ended the search.
    """

    fits: dict[float, list[FoldFit]]
    bounds: ErrorBounds
    accuracy: float
    narrow: tuple[float, float] | None

    def score(self, C: float) -> float:
        """Return the mean score of the models at a C."""
        return _mean_score(self.fits[C])


def search(
    folds: Folds,
    start: Vector,
    accuracy: float,
    settings: Settings,
    best: float = -math.inf,
) -> Found | None:
    """Split the interval of C until the accuracy is proved, or no fit is left.

    Parameters
    ----------
    folds : Folds
    start : ndarray
        Increasing values of C to begin with, two or more.
    accuracy : float
    settings : Settings
    best : float
        Mean accuracy of the best models so far, of other problems.

    Returns
    -------
    Found or None
        None if the search ended before all of `start` were fitted.
    """
    fits: dict[float, list[FoldFit]] = {}
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
    return Found({C: fits[C] for C in Cs}, pieces, proved, narrow)


def check_certify(certify: str, scoring: object, Cs: object, grid: Vector) -> None:
    """Raise an error for parameters that a certified search does not support.

    Raises
    ------
    ValueError
    """
    if scoring not in (None, "accuracy"):
        raise ValueError(
            f"scoring={scoring!r} does not go with certify={certify!r}; use 'accuracy',"
            " or certify=None"
        )
    if grid.min() == grid.max():
        raise ValueError(
            f"Cs={Cs!r} is one value, but certify={certify!r} needs an interval; give "
            "its ends, such as (1e-3, 10)"
        )


def warn_of_accuracy(
    name: str,
    proved: float,
    accuracy: float,
    why: str,
    found: Sequence[Found | None],
    stacklevel: int,
) -> None:
    """Warn if a search ended before the accuracy was proved.

    Parameters
    ----------
    name : str
        Name of the estimator.
    proved, accuracy : float
    why : str
        What ended the search, unless an interval of C was too narrow.
    found : sequence of (Found or None)
        The searches.
    stacklevel : int
        As for `warnings.warn`.
    """
    if proved <= accuracy + 1e-12:
        return
    narrow = [(one, one.narrow) for one in found if one is not None and one.narrow]
    message = (
        f"{name}: C is proved to be within {proved:.2%} of the best, not within "
        f"accuracy={accuracy:g}"
    )
    if not narrow:
        message += f" because {why}"
    for one, interval in narrow[:1]:
        gap = max(
            certificate.relative_gap
            for C in interval
            for fit in one.fits[C]
            for certificate in fit.certificates
        )
        message += (
            f". Near C={interval[0]:.4g} the gaps of the fits, {gap:.1e}, do not allow "
            "more: raise accuracy, lower tol below 1e-9, or penalise a bias that may "
            "not be unique there"
        )
    warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)


def _mean_score(fits: Sequence[FoldFit]) -> float:
    return float(np.mean([one.score for one in fits]))


def _joined(
    Cs: list[float], bounds: list[tuple[Vector, Vector]], cells: int
) -> ErrorBounds:
    t = np.linspace(0.0, 1.0, cells + 1)[:-1]
    pieces = [(1.0 - t) * a + t * b for a, b in pairwise(Cs)]
    lower, upper = zip(*bounds, strict=True)
    edges = np.concatenate([*pieces, Cs[-1:]])
    return ErrorBounds(edges, np.concatenate(lower), np.concatenate(upper))


def _decided(
    lower: NDArray[np.float64], upper: NDArray[np.float64], codes: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows are certainly wrong, and which are certainly right.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_problems, n)
        Bounds on the decision values: one row for two classes, else one per class.
    codes : ndarray of shape (n,)
        True classes, from 0.
    """
    if len(lower) == 1:
        positive = codes == 1
        most = np.where(positive, upper[0], -lower[0])  # bounds on the margin
        least = np.where(positive, lower[0], -upper[0])
        return most < 0.0, least > 0.0
    rows = np.arange(len(codes))
    own = lower[codes, rows], upper[codes, rows]
    lower, upper = lower.copy(), upper.copy()
    lower[codes, rows] = upper[codes, rows] = -np.inf
    return lower.max(axis=0) > own[1], own[0] > upper.max(axis=0)
