"""Models of all folds of a search, trained together over one kernel matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from .. import core
from ..checks import check_costs
from ..core import StoppedError
from ..data.rows import Points
from ..data.types import MatrixLike
from ..kernels.functions import Kernel
from ..kernels.table import Table, values_at
from ..losses import Vector, get_loss
from ..problems.multiclass import problem_names
from ..training import Solution
from ..training.folds import HingeFolds, TubeFolds, bytes_of_folds
from ._kernel_walks import FoldSVC, FoldSVR, Targets, landmarks_of
from ._pairs import PairModels, PairRows, TrainedPair
from .fitting import weights
from .kernel_regression import SVR
from .svc import SVC
from .training import fit_all, fit_options

__all__ = ["Fold", "FoldFit", "Together", "TogetherSVC", "TogetherSVR", "together_of"]


#: Weights of the rows in training, 0 for others, and the held-out rows.
Fold = tuple[Vector, NDArray[np.intp]]


class FoldFit(NamedTuple):
    """Model of one fold for one C.

    Attributes
    ----------
    together : Together
    fold : int
    C : float
    solutions : list of Solution
        One for each pair of classes.
    values : ndarray of shape (n_test, n_pairs)
        Decision values at the held-out rows.
    """

    together: Together
    fold: int
    C: float
    solutions: list[Solution]
    values: Vector

    @property
    def test(self) -> NDArray[np.intp]:
        return self.together.folds[self.fold][1]

    def score(self) -> float:
        """Return the estimator's own score at the held-out rows."""
        return self.together.score(self)

    def model(self, points: Points, kernel: Kernel, X_test: MatrixLike) -> SVC | SVR:
        """Return the fitted estimator, which knows its values at the held-out rows."""
        model = self.together.fitted(self, points, kernel)
        model._held_out = X_test, self.values
        return model


class Together(ABC):
    """Problems of all folds, trained together.

    Attributes
    ----------
    folds : list of (weights, held-out rows)
    weight : ndarray of shape (n_folds, n_samples)
        Weights of the rows in training, with their class weights.
    """

    folds: list[Fold]
    weight: Vector

    def _check_costs(self, Cs: Vector) -> None:
        """Refuse values of C that are out of range with the weights of a fold."""
        for weight in self.weight:
            for C in (Cs[0], Cs[-1]):
                check_costs(float(C), weight, len(weight))

    @property
    @abstractmethod
    def bytes(self) -> float:
        """Memory of the solver, besides the table."""

    @abstractmethod
    def score(self, fit: FoldFit) -> float:
        """Return the estimator's own score of a fit at its held-out rows."""

    @abstractmethod
    def fitted(self, fit: FoldFit, points: Points, kernel: Kernel) -> FoldSVC | FoldSVR:
        """Return the estimator of a fit."""

    @abstractmethod
    def walk(
        self, table: Table, Cs: Vector, seed: int, stop: core.Stop, n_jobs: int
    ) -> Iterator[list[FoldFit]]:
        """Train all folds for every C; yield the models of a C.

        The walk ends early if `stop` ends it.

        Parameters
        ----------
        table : Table
            Kernel matrix of all rows.
        Cs : ndarray
            Rising values of C.
        seed : int
        stop : core.Stop
        n_jobs : int
            Number of threads.

        Raises
        ------
        ValueError
            If a C times a weight is out of range.
        """


class TogetherSVC(Together):
    """Problems of all folds and pairs of classes: hinge, unpenalised bias.

    Attributes
    ----------
    model : SVC
        All models have its parameters, except for C.
    voter : SVC
        Turns decision values into classes.
    classes : ndarray of shape (n_classes,)
    codes : ndarray of shape (n_samples,)
        Index of the class of every row.
    folds : list of (weights, held-out rows)
    weight : ndarray of shape (n_folds, n_samples)
        Factors of C.
    pairs : list of (int, int)
    orders, labels : list of ndarray
        Rows of every pair, and their labels, -1 or +1. With two classes these are all
        rows, so that their scores hold the values at the held-out rows.
    """

    def __init__(
        self, model: SVC, targets: Targets, folds: list[Fold], weight: Vector
    ) -> None:
        self.model, self.folds, self.weight = model, folds, weight
        self.codes = targets.values.astype(np.intp)
        self.classes = np.asarray(targets.classes)
        self.voter = FoldSVC(**model.get_params(deep=False))
        self.voter.classes_ = self.classes
        self.pairs = list(combinations(range(len(self.classes)), 2))
        self.orders, self.labels = [], []
        for i, j in self.pairs:
            two = len(self.pairs) == 1
            of = (self.codes == i) | (self.codes == j)
            order = np.flatnonzero(of if two else of & weight.any(axis=0))
            positive = j if two else i
            label = np.where(self.codes[order] == positive, 1, -1)
            self.orders.append(order)
            self.labels.append(label.astype(np.int8))
        self._rows: dict[int, PairRows] = {}

    @classmethod
    def of(
        cls, model: SVC, X: MatrixLike, targets: Targets, folds: list[Fold]
    ) -> TogetherSVC | None:
        """Return the problems, or None if they are not of this kind.

        Parameters
        ----------
        model : SVC
        X : {array-like, sparse matrix}
        targets : Targets
        folds : list of (weights, held-out rows)
        """
        if get_loss(model.loss).name != "hinge" or landmarks_of(model) is not None:
            return None
        if model._bias_of_problems()["penalize_intercept"] or not model.fit_intercept:
            return None
        codes, classes = targets.values.astype(np.intp), targets.classes
        assert classes is not None
        all_weights = np.empty((len(folds), len(codes)))
        for out, (part, _) in zip(all_weights, folds, strict=True):
            if len(np.unique(codes[part > 0.0])) < len(classes):
                return None
            part, factor = weights(model.class_weight, X, classes, codes, part)
            out[:] = part * factor[codes]
            if len(np.unique(codes[out > 0.0])) < max(len(classes), 2):
                return None
        return cls(model, targets, folds, all_weights)

    @property
    def bytes(self) -> float:
        return sum(map(bytes_of_folds, map(len, self.orders)))

    def score(self, fit: FoldFit) -> float:
        found = self.voter._codes(fit.values)
        return float(np.mean(found == self.codes[fit.test]))

    def fitted(self, fit: FoldFit, points: Points, kernel: Kernel) -> FoldSVC:
        rows = self.rows(fit.fold, points, kernel)
        model = FoldSVC(**{**self.model.get_params(deep=False), "C": fit.C})
        model.n_features_in_ = points.X.shape[1]
        model.classes_, model.shape_fit_ = self.classes, points.X.shape
        trained = []
        for p, ((i, j), solution) in enumerate(
            zip(self.pairs, fit.solutions, strict=True)
        ):
            coef = np.zeros(len(self.codes))
            coef[self.orders[p]] = solution.alpha * self.labels[p]
            at = np.concatenate([rows.order[rows.of(i)], rows.order[rows.of(j)]])
            trained.append(TrainedPair(coef[at], float(solution.bias or 0.0), solution))
        model._keep(rows, PairModels.of(rows, trained, problem_names(model)))
        return model

    def rows(self, fold: int, points: Points, kernel: Kernel) -> PairRows:
        """Return the training rows of a fold, in the order of its model."""
        rows = self._rows.get(fold)
        if rows is None or rows.kernel is not kernel:
            rows = PairRows(points, kernel, self.codes, self.weight[fold])
            self._rows[fold] = rows
        return rows

    def walk(
        self, table: Table, Cs: Vector, seed: int, stop: core.Stop, n_jobs: int
    ) -> Iterator[list[FoldFit]]:
        self._check_costs(Cs)
        single = len(self.pairs) == 1
        problems = [
            HingeFolds(
                table,
                order,
                label,
                np.ascontiguousarray(self.weight[:, order]),
                n_jobs if single else 1,
            )
            for order, label in zip(self.orders, self.labels, strict=True)
        ]
        options = fit_options(self.model, seed, stop)

        def train(p: int, C: float) -> list[Solution] | None:
            try:
                return problems[p].advance(C, **options)
            except StoppedError:
                return None

        for C in map(float, Cs):
            if stop.requested or stop.expired:
                return
            found = fit_all(
                partial(train, C=C),
                len(problems),
                n_jobs=1 if single else n_jobs,
                stop=stop,
                verbose=0,
            )
            fits = []
            for fold, (_, test) in enumerate(self.folds):
                solutions = [of[fold] for of in found if of is not None]
                if len(solutions) < len(problems):
                    return
                try:
                    values = self._held_out(table, solutions, test, stop)
                except StoppedError:
                    return
                fits.append(FoldFit(self, fold, C, solutions, values))
            yield fits

    def _held_out(
        self,
        table: Table,
        solutions: list[Solution],
        test: NDArray[np.intp],
        stop: core.Stop,
    ) -> Vector:
        """Return the decision values of all pairs at the held-out rows of a fold."""
        if len(self.pairs) == 1:
            decisions = solutions[0].decisions
            assert decisions is not None
            return decisions[test, None]
        coef = np.zeros((len(self.pairs), table.n))
        for p, solution in enumerate(solutions):
            coef[p, self.orders[p]] = solution.alpha * self.labels[p]
        bias = [solution.bias or 0.0 for solution in solutions]
        return values_at(table, test, coef, stop) + np.array(bias)


class TogetherSVR(Together):
    """Regression problems of all folds.

    Attributes
    ----------
    model : SVR
        All models have its parameters, except for C.
    y : ndarray of shape (n_samples,)
        Targets.
    folds : list of (weights, held-out rows)
    """

    def __init__(self, model: SVR, targets: Targets, folds: list[Fold]) -> None:
        self.model, self.folds = model, folds
        self.y = np.asarray(targets.values, np.float64)
        self.weight = np.stack([part for part, _ in folds])

    @classmethod
    def of(cls, model: SVR, targets: Targets, folds: list[Fold]) -> TogetherSVR | None:
        """Return the problems, or None if a fold has no row to train on."""
        trained = all(part.any() for part, _ in folds)
        return cls(model, targets, folds) if trained else None

    @property
    def bytes(self) -> float:
        return bytes_of_folds(len(self.y))

    def score(self, fit: FoldFit) -> float:
        return float(r2_score(self.y[fit.test], fit.values[:, 0]))

    def fitted(self, fit: FoldFit, points: Points, kernel: Kernel) -> FoldSVR:
        (solution,) = fit.solutions
        return FoldSVR.of(self.model, points, kernel, fit.C, solution.alpha, solution)

    def walk(
        self, table: Table, Cs: Vector, seed: int, stop: core.Stop, n_jobs: int
    ) -> Iterator[list[FoldFit]]:
        self._check_costs(Cs)
        order, epsilon = np.arange(len(self.y)), self.model.epsilon
        problems = TubeFolds(table, order, self.y, self.weight, n_jobs, epsilon)
        options = fit_options(self.model, seed, stop)
        for C in map(float, Cs):
            try:
                found = problems.advance(C, **options)
            except StoppedError:
                return
            fits = []
            for k, one in enumerate(found):
                assert one.decisions is not None
                values = one.decisions[self.folds[k][1], None]
                fits.append(FoldFit(self, k, C, [one], values))
            yield fits


def together_of(
    model: SVC | SVR, X: MatrixLike, targets: Targets, folds: list[Fold]
) -> Together | None:
    """Return the problems of all folds as one object, or None if they cannot be."""
    if isinstance(model, SVC):
        return TogetherSVC.of(model, X, targets, folds)
    return TogetherSVR.of(model, targets, folds)
