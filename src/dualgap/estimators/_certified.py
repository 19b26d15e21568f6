"""Choice of C with a proof that no C of an interval is much better.

The error of the exact optimum at any C between two fitted values is bounded cell by
cell: a test row counts as wrong if the ball of every C in the cell proves it
(:mod:`dualgap.answers.between`). The bounds of a cell are averaged over the folds. The
interval with the least bound is split, until that bound is close enough to the error of
a fitted model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.between import Anchor, largest_radii
from ..certificate import Certificate
from ..losses import Vector
from ..problems.binary import BinaryProblem
from ..problems.multiclass import BinaryProblems
from ..problems.rounding import Rounding
from ..solvers import Solver
from ..training import Solution, solve
from ._search import CUT_SHORT, FitOptions
from .fitting import fit_all

__all__ = ["ErrorBounds", "Folds", "Found", "Settings", "search"]


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
    duals : tuple of ndarray
        Rows with dual variables, and ``y_i alpha_i`` there, (n_problems, n_support).
    """

    anchors: list[Anchor]
    values: NDArray[np.float64]
    error: NDArray[np.float64]
    score: float
    certificates: list[Certificate]
    duals: tuple[NDArray[np.intp], NDArray[np.float64]]


@dataclass(frozen=True)
class Folds:
    """The binary problems of every fold, and how they are trained and scored.

    Attributes
    ----------
    rows : BinaryProblem
        The problem over all rows.
    owns : list of BinaryProblems
        The problems of every fold. Rows of its test part have weight 0.
    tests : list of ndarray
        Rows of the test parts.
    codes : ndarray of shape (n,)
        Classes of all rows, from 0.
    score : callable
        Returns the accuracy of the models of a fold at a C on its test part.
    solver : Solver
    options : dict
        Options of :func:`dualgap.solve`.
    n_jobs, verbose
        As for an estimator.
    """

    rows: BinaryProblem
    owns: Sequence[BinaryProblems]
    tests: list[NDArray[np.intp]]
    codes: NDArray[np.intp]
    score: Callable[[int, float, list[Solution]], float]
    solver: Solver
    options: FitOptions
    n_jobs: int | None
    verbose: int

    def fit(self, C: float) -> list[FoldFit] | None:
        """Train and score all folds at a C; return None if the search is to end."""
        stop = self.options["stop"]
        found = fit_all(
            lambda fold: self._fit(fold, C),
            len(self.owns),
            n_jobs=self.n_jobs,
            stop=stop,
            verbose=self.verbose,
        )
        done = [one for one in found if one is not None]
        return done if len(done) == len(found) else None

    def _fit(self, fold: int, C: float) -> FoldFit | None:
        own, test = self.owns[fold], self.tests[fold]
        stop = self.options["stop"]
        solutions, anchors, values, errors = [], [], [], []
        for k in range(len(own.labels)):
            if stop.requested or stop.expired:
                return None
            problem = self.rows.with_labels(own.signs(k), own.weights(k), C)
            now = solve(problem, self.solver, **self.options)
            if now.certificate.status in CUT_SHORT:
                return None
            anchor = Anchor.of(problem, now.w, now.alpha, now.certificate)
            products, error = problem.scores(anchor.centre)
            solutions.append(now)
            anchors.append(anchor)
            values.append(products[test])
            errors.append(error[test])
        table = own.pack([now.alpha for now in solutions])
        support = np.flatnonzero(table.any(axis=0))
        return FoldFit(
            anchors,
            np.stack(values),
            np.stack(errors),
            self.score(fold, C, solutions),
            [now.certificate for now in solutions],
            (support, table[:, support]),
        )

    def lengths(self, fold: int) -> Vector:
        """Return upper bounds on the lengths of the test rows."""
        more = 1.0 + 2.0 * (self.rows.width + 4) * Rounding.unit
        found: Vector = np.sqrt(self.rows.q[self.tests[fold]] * more + 2.0**-1000)
        return found


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


def search(
    folds: Folds, start: Vector, accuracy: float, settings: Settings
) -> Found | None:
    """Split the interval of C until the accuracy is proved, or no fit is left.

    Parameters
    ----------
    folds : Folds
    start : ndarray
        Increasing values of C to begin with, two or more.
    accuracy : float
    settings : Settings

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
    tests = [
        (folds.codes[test], folds.lengths(k)) for k, test in enumerate(folds.tests)
    ]

    def bound(i: int) -> tuple[Vector, Vector]:
        """Bound the mean error over the folds in the cells of interval i."""
        pairs = zip(fits[Cs[i]], fits[Cs[i + 1]], tests, strict=True)
        shares = [_shares(a, b, *test, settings.cells) for a, b, test in pairs]
        lower, upper = np.mean(shares, axis=0)
        return lower, upper

    bounds = [bound(i) for i in range(len(Cs) - 1)]
    while True:
        best = max(np.mean([one.score for one in some]) for some in fits.values())
        least = [float(lower.min()) for lower, _ in bounds]
        i = int(np.argmin(least))
        proved = max(1.0 - float(best) - least[i], 0.0)
        if proved <= accuracy + 1e-12:  # rounding of the means
            break
        if math.log10(Cs[i + 1] / Cs[i]) < settings.narrowest:
            narrow = (Cs[i], Cs[i + 1])
            break
        middle = math.sqrt(Cs[i]) * math.sqrt(Cs[i + 1])
        now = folds.fit(middle)
        if now is None:
            break
        fits[middle] = now
        Cs.insert(i + 1, middle)
        bounds[i : i + 1] = [bound(i), bound(i + 1)]
    pieces = _joined(Cs, bounds, settings.cells)
    return Found({C: fits[C] for C in Cs}, pieces, proved, narrow)


def _joined(
    Cs: list[float], bounds: list[tuple[Vector, Vector]], cells: int
) -> ErrorBounds:
    t = np.linspace(0.0, 1.0, cells + 1)[:-1]
    pieces = [(1.0 - t) * a + t * b for a, b in pairwise(Cs)]
    lower, upper = zip(*bounds, strict=True)
    edges = np.concatenate([*pieces, Cs[-1:]])
    return ErrorBounds(edges, np.concatenate(lower), np.concatenate(upper))


def _shares(
    first: FoldFit,
    last: FoldFit,
    codes: NDArray[np.intp],
    lengths: Vector,
    cells: int,
) -> NDArray[np.float64]:
    """Return the shares of rows that are certainly, and perhaps wrong, (2, cells)."""
    ends = np.linspace(0.0, 1.0, cells + 1)
    radii = np.stack(
        [
            largest_radii(a, b, ends)
            for a, b in zip(first.anchors, last.anchors, strict=True)
        ]
    )
    error = np.maximum(first.error, last.error)
    error = error + 2.0**-50 * np.maximum(np.abs(first.values), np.abs(last.values))
    step = last.values - first.values
    shares = np.empty((2, cells))
    begin = first.values
    for k in range(cells):
        end = first.values + ends[k + 1] * step
        room = error + radii[:, k : k + 1] * lengths
        wrong, right = _decided(
            np.minimum(begin, end) - room, np.maximum(begin, end) + room, codes
        )
        shares[:, k] = np.mean(wrong), np.mean(~right)
        begin = end
    return shares


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
