"""Folds of a certified choice of C, of linear and of kernel classifiers."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..answers.between import Anchor, Binary, lengths_of
from ..answers.bias import Side
from ..answers.kernel_regions import matrix_distances
from ..answers.regions import distances, means_of, most_entries
from ..kernels.gram import Matrix, Subset
from ..losses import Vector
from ..problems.binary import BinaryProblem
from ..problems.kernel import Bias, KernelProblem
from ..problems.multiclass import BinaryProblems
from ..training import Solution
from ._certified import Folds
from .votes import ranks

if TYPE_CHECKING:
    from ._linear_walks import LinearWalks
    from .svc import SVC

__all__ = ["KernelFolds", "LinearFolds"]


@dataclass(frozen=True)
class LinearFolds(Folds):
    """Folds of linear classifiers.

    Attributes
    ----------
    walks : LinearWalks
        The rows, and the problems of every fold.
    votes : bool
        Whether pairs of classes vote.
    """

    walks: LinearWalks
    votes: bool

    def problem(self, fold: int, k: int, C: float) -> BinaryProblem:
        own: BinaryProblems = self.walks.owns[fold]
        return self.walks.binary.rows.with_labels(own.signs(k), own.weights(k), C)

    def places(self, fold: int, k: int) -> NDArray[np.intp]:
        return self.tests[fold]

    def far(self, fold: int, k: int, side: Side) -> NDArray[np.float64]:
        X, lengths = self.walks.X, lengths_of(self.walks.binary.rows)
        test = self.tests[fold]
        mean, error = means_of(side, X, lengths)
        far = distances(X[test], mean, lengths[test], most_entries(X))
        return far + error

    def score(
        self, fold: int, C: float, found: list[Solution], decisions: Vector
    ) -> float:
        return self.walks.score(fold, C, found)

    def rankings(self, bounds: Vector) -> Vector:
        if not self.votes:
            return bounds
        found = ranks(bounds[0].T, bounds[1].T, self.classes, confident=True)
        return np.stack([part.T for part in found])

    def duals(
        self, fold: int, found: list[Solution]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]] | None:
        if fold:
            return None
        table = self.walks.owns[fold].pack([now.alpha for now in found])
        support = np.flatnonzero(table.any(axis=0))
        return support, table[:, support]


@dataclass(frozen=True)
class KernelFolds(Folds):
    """Folds of kernel classifiers, over a matrix of all rows.

    In every pair the second class is positive.

    Attributes
    ----------
    model : SVC
        All models have its loss, its kind of bias, and its way to break ties.
    matrix : Table or Gram
    weight : list of ndarray of shape (n,)
        Factors of C in every fold, 0 for rows that are not in training.
    """

    model: SVC
    matrix: Matrix
    weight: list[Vector]
    _subsets: dict[tuple[int, int], tuple[Subset, NDArray[np.intp]]] = field(
        default_factory=dict
    )

    def _rows(self, fold: int, k: int) -> tuple[Subset, NDArray[np.intp]]:
        """Return the matrix of a pair's rows and the test rows, and these rows."""
        if (fold, k) not in self._subsets:
            of_pair = np.isin(self.codes, self._pair(k)) & (self.weight[fold] > 0.0)
            of_pair[self.tests[fold]] = True
            rows = np.flatnonzero(of_pair)
            self._subsets[fold, k] = self.matrix.subset(rows), rows
        return self._subsets[fold, k]

    def _pair(self, k: int) -> tuple[int, int]:
        return list(combinations(range(self.classes), 2))[k]

    def problem(self, fold: int, k: int, C: float) -> KernelProblem:
        subset, rows = self._rows(fold, k)
        codes, pair = self.codes[rows], self._pair(k)
        bias: Bias = self.model._bias_of_problems()
        return KernelProblem(
            subset,
            np.where(codes == pair[1], 1, -1),
            C,
            loss=self.model.loss,
            sample_weight=np.where(np.isin(codes, pair), self.weight[fold][rows], 0.0),
            **bias,
        )

    def places(self, fold: int, k: int) -> NDArray[np.intp]:
        return np.searchsorted(self._rows(fold, k)[1], self.tests[fold])

    def far(self, fold: int, k: int, side: Side) -> NDArray[np.float64]:
        problem, at = self.problem(fold, k, 1.0), self.places(fold, k)
        return matrix_distances(problem, side, at, lengths_of(problem)[at])

    def score(
        self, fold: int, C: float, found: list[Solution], decisions: Vector
    ) -> float:
        # With several classes, SVC counts a decision as positive for the first one.
        values = decisions.T if self.classes == 2 else -decisions.T
        right = self.model._codes(values) == self.codes[self.tests[fold]]
        return float(np.mean(right))

    def rankings(self, bounds: Vector) -> Vector:
        if self.classes == 2:
            return bounds
        confident = self.model.break_ties
        found = ranks(bounds[0].T, bounds[1].T, self.classes, confident=confident)
        return np.stack([part.T for part in found])

    def start(self, problem: Binary, near: list[Anchor]) -> Vector | None:
        """Return the point between the dual points on both sides."""
        if not near:
            return None
        first, last = near
        t = (problem.C - first.C) / (last.C - first.C)
        alpha: Vector = ((1.0 - t) * first.signed + t * last.signed) * problem.y
        upper = problem.upper
        return np.where(alpha >= (1.0 - 1e-12) * upper, upper, alpha)
