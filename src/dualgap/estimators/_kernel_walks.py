"""Kernel models of one fold for many values of C, over a matrix of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from .. import core
from ..core import StoppedError
from ..data.rows import Points
from ..data.types import MatrixLike
from ..kernel import (
    BlockSolver,
    Gram,
    KernelRegression,
    Nystroem,
    get_kernel_solver,
)
from ..kernels.functions import Kernel
from ..kernels.table import Table, shared_matrix, values_at
from ..losses import Vector
from ..problems.kernel import KernelProblem
from ..problems.multiclass import problem_names, refuse_missing
from ..solvers import Auto
from ..training import Solution
from ..training.path import P, kernel_solutions, solutions
from ._pairs import PairModels, PairRows, TrainedPair
from .fitting import weights
from .kernel_regression import SVR
from .svc import SVC
from .training import FitOptions, fit_options

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


__all__ = [
    "FoldSVC",
    "FoldSVR",
    "Path",
    "Targets",
    "landmarks_of",
    "matrix_of_folds",
    "walk_svc",
    "walk_svr",
]


class Targets(NamedTuple):
    """Targets of a regression, or classes and the index of each row's class."""

    values: NDArray[np.generic]
    classes: NDArray[np.generic] | None = None


class Path(NamedTuple):
    """Problems of one fold that differ in C.

    Attributes
    ----------
    matrix : Table or Gram
        Kernel matrix of all rows.
    kernel : Kernel
        Its gamma is a number.
    points : Points
    targets : Targets
    part : ndarray of shape (n_samples,)
        Weights of the rows in training; 0 for held-out rows.
    test : ndarray of int
        Held-out rows.
    model : SVC or SVR
        All models have its parameters, except for C.
    Cs : ndarray
        Rising values of C.
    seed : int
    stop : core.Stop
    """

    matrix: Table | Gram
    kernel: Kernel
    points: Points
    targets: Targets
    part: Vector
    test: NDArray[np.intp]
    model: BaseEstimator
    Cs: Vector
    seed: int
    stop: core.Stop

    def solutions(
        self, problem_of: Callable[[float], P]
    ) -> Iterator[tuple[P, Solution]]:
        """Train the problem of every C."""
        return kernel_solutions(problem_of, self.Cs, BlockSolver(), **self.options)

    @property
    def options(self) -> FitOptions:
        return fit_options(self.model, self.seed, self.stop)

    def over_landmarks(
        self, solver: Nystroem, problem: KernelProblem
    ) -> Iterator[TrainedPair]:
        """Train for every C over landmarks of a problem whose C is 1.

        All values of C share the landmarks and the features.
        """
        features = solver.approximate(problem, self.seed, stop=self.stop)
        if self.stop.requested or self.stop.expired:
            raise StoppedError
        for solution in solutions(
            features,
            self.Cs,
            Auto(),
            y=features.y,
            sample_weight=features.cost,
            **self.options,
        ):
            yield TrainedPair(*features.expand(solution.w), solution)

    def held_out(self, coef: Vector) -> Vector:
        """Return the kernel sums at the held-out rows, shape (len(test), len(coef))."""
        return values_at(self.matrix, self.test, coef, self.stop)


class _HeldOut:
    """Mixin of a model of a fold, which knows its values at the held-out rows."""

    _held_out: tuple[MatrixLike, Vector] | None = None

    def _known(self, X: MatrixLike) -> Vector | None:
        if self._held_out is None:
            return None
        rows, values = self._held_out
        return values if X is rows or _equal(X, rows) else None


class FoldSVC(_HeldOut, SVC):
    def _pair_values(self, X: MatrixLike) -> Vector:
        known = self._known(X)
        return super()._pair_values(X) if known is None else known


class FoldSVR(_HeldOut, SVR):
    def _values(self, X: MatrixLike) -> Vector:
        known = self._known(X)
        return super()._values(X) if known is None else known[:, 0]

    @classmethod
    def of(
        cls,
        model: SVR,
        points: Points,
        kernel: Kernel,
        C: float,
        coef: Vector,
        solution: Solution,
    ) -> FoldSVR:
        """Return a fitted model with these coefficients of all rows."""
        own = cls(**{**model.get_params(deep=False), "C": C})
        own.n_features_in_ = points.X.shape[1]
        own.support_ = np.flatnonzero(coef)
        own.n_support_ = np.array([own.support_.size], np.int32)
        own.dual_coef_ = coef[None, own.support_]
        own.intercept_ = np.array([solution.bias])
        own.support_vectors_ = (
            np.empty((0, 0)) if own._precomputed else points.X[own.support_]
        )
        own._fitted_kernel, own.certificate_ = kernel, solution.certificate
        return own


def _equal(A: MatrixLike, B: MatrixLike) -> bool:
    """Whether two matrices are equal; a comparison costs less than kernel values."""
    if issparse(A) and issparse(B):
        return A.shape == B.shape and A.nnz == B.nnz and (A != B).nnz == 0
    return not issparse(A) and not issparse(B) and np.array_equal(A, B)


def landmarks_of(model: BaseEstimator) -> Nystroem | None:
    """Return the solver of a model over landmarks, or None for another model."""
    solver = get_kernel_solver(getattr(model, "solver", "auto"))
    return solver if isinstance(solver, Nystroem) else None


def matrix_of_folds(
    model: BaseEstimator,
    points: Points,
    kernel: Kernel,
    cache_size: float,
    threads: int,
    stop: core.Stop,
) -> Table | Gram:
    """Return the matrix for :class:`Path`; models over landmarks need few values."""
    if landmarks_of(model) is None:
        return shared_matrix(points, kernel, cache_size, threads, stop)
    return Gram(points, kernel, cache_size / threads)


def walk_svc(path: Path) -> Iterator[tuple[SVC, Vector]]:
    """Train a classifier for every C; yield it and its values at the held-out rows."""
    template, codes, everything = path.model, *path.targets
    assert everything is not None
    # Classes without a row in this training part are left out, as in a search that
    # copies the rows.
    present = np.unique(codes[path.part > 0.0])
    own = np.searchsorted(present, codes).clip(max=len(present) - 1)
    classes = everything[present]
    part, factor = weights(
        template.class_weight, path.points.X, classes, own, path.part
    )
    rows = PairRows(path.points, path.kernel, own, part * factor[own])
    refuse_missing(classes, np.diff(rows.bounds))
    pairs = list(combinations(range(len(classes)), 2))
    bias, landmarks = template._bias_of_problems(), landmarks_of(template)

    def trained_of(i: int, j: int) -> Iterator[TrainedPair]:
        of = [np.arange(rows.bounds[k], rows.bounds[k + 1]) for k in (i, j)]
        some = path.matrix.subset(rows.order[np.concatenate(of)])

        def problem_of(C: float) -> KernelProblem:
            return rows.problem(lambda i, j: some, i, j, C, template.loss, bias)

        if landmarks is not None:
            yield from path.over_landmarks(landmarks, problem_of(1.0))
            return
        for problem, s in path.solutions(problem_of):
            yield TrainedPair(s.coefficients * problem.y, float(s.bias or 0.0), s)

    walks = [trained_of(i, j) for i, j in pairs]
    for C in path.Cs:
        if path.stop.requested or path.stop.expired:
            return
        try:
            trained = [next(walk) for walk in walks]
        except StoppedError:
            return
        model = FoldSVC(**{**template.get_params(deep=False), "C": float(C)})
        model.n_features_in_ = path.points.X.shape[1]
        model.classes_, model.shape_fit_ = classes, path.points.X.shape
        model._keep(rows, PairModels.of(rows, trained, problem_names(model)))
        coef = np.zeros((len(pairs), len(codes)))
        for p, (i, j) in enumerate(pairs):
            at = np.concatenate([rows.order[rows.of(i)], rows.order[rows.of(j)]])
            coef[p, at] = trained[p].coef
        try:
            values = path.held_out(coef)
        except StoppedError:
            return
        yield model, values + model.intercept_


def walk_svr(path: Path) -> Iterator[tuple[SVR, Vector]]:
    """Train a regressor for every C; yield it and its values at the held-out rows."""
    y = path.targets.values
    kept = np.flatnonzero(path.part > 0.0)
    if not kept.size:
        raise ValueError("a training part has no row with a positive weight")
    some, part = path.matrix.subset(kept), path.part[kept]
    epsilon = path.model.epsilon
    for problem, solution in path.solutions(
        lambda C: KernelRegression(
            some, y[kept], C, epsilon=epsilon, sample_weight=part
        )
    ):
        coef = np.zeros(len(y))
        coef[kept] = solution.alpha
        model = FoldSVR.of(
            path.model, path.points, path.kernel, problem.C, coef, solution
        )
        try:
            values = path.held_out(coef[None])
        except StoppedError:
            return
        yield model, values + model.intercept_
