"""Kernel SVMs of all folds of a cross-validation, trained together for rising C.

Problem    as for the hinge with an unpenalised bias (problems/kernel.py), or for
           regression (problems/kernel_boxes.py), with costs C w_i; the folds differ in
           the weights w
Guarantee  every fold is proved for every C, as a single fit is
Source     src/core/gram/folds.hpp
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..certificate import Status
from ..checks import check_costs
from ..core import StoppedError
from ..kernels.table import KernelTable
from ..losses import Vector
from ..problems.base import EMPTY, Claim, Proof
from ..problems.kernel import KernelProblem, bounds_of
from ..problems.kernel_boxes import KernelRegression
from ..problems.kernel_matrix import score_roundings
from ..solvers.kernel.block import BlockSolver
from .batch import Job, in_threads
from .fit import solve
from .solution import Solution, Solutions

#: Largest part of the values of a row that are copied out of it, not read in place.
_LARGEST_PART = 0.5

#: Consecutive rows of a matrix: the first one, and the end.
Runs = list[tuple[int, int]]


@dataclass(frozen=True)
class FoldProblems:
    """Problems of all folds over the rows of one matrix."""

    #: Rows of the data, in the order of the matrix, shape (n,).
    rows: NDArray[np.intp]
    #: Factors of C of these rows, shape (n_folds, n); 0 for rows that are not in
    #: training.
    weights: Vector
    #: Rows of each problem of a fold, as runs of rows of the matrix.
    runs: list[Runs]
    #: One for each problem of a fold.
    names: Sequence[str]
    #: Labels of the rows of each problem, -1 or +1, for a classification.
    signs: list[NDArray[np.int8]] | None = None
    #: Targets of a regression, in the order of the matrix, shape (n,).
    targets: Vector | None = None
    epsilon: float = 0.0
    #: ``y_i alpha_i`` of the rows of each problem, from which its folds start; or none.
    near: Sequence[Vector] = ()

    def __len__(self) -> int:
        return len(self.runs)

    def order(self, p: int) -> NDArray[np.intp]:
        """Return the rows of problem p."""
        return np.concatenate([np.arange(*run) for run in self.runs[p]])

    def over(self, table: KernelTable, p: int, threads: int) -> FoldBatch:
        """Return problem p of all folds."""
        order, runs = self.order(p), self.runs[p]
        weights = np.ascontiguousarray(self.weights[:, order])
        if self.signs is not None:
            return HingeFolds(table, runs, order, self.signs[p], weights, threads)
        assert self.targets is not None
        return TubeFolds(
            table, runs, order, self.targets, weights, threads, self.epsilon
        )


def bytes_of_folds(problems: FoldProblems) -> float:
    """Return the memory for all folds, besides the matrix in float64."""
    n, folds = len(problems.rows), len(problems.weights)
    rows = sum(b - a for runs in problems.runs for a, b in runs)
    return 4.0 * n * n + 96.0 * folds * rows


def solve_folds(
    problems: FoldProblems,
    table: KernelTable,
    Cs: Vector,
    job: Job,
    tests: list[NDArray[np.intp]],
) -> Iterator[list[tuple[Solutions, Vector]]]:
    """Train all folds together for rising C, until the job ends.

    Returns, for each fold, the solutions over its training rows, and the decision
    values at the rows `tests` of the matrix, of shape (n_test, n_problems). Raises
    ValueError if a C times a weight is out of range.
    """
    for weight in problems.weights:
        for C in (Cs[0], Cs[-1]):
            check_costs(float(C), weight, len(weight))
    count = len(problems)
    orders = [problems.order(p) for p in range(count)]
    threads = job.threads if count == 1 else 1
    engines = [problems.over(table, p, threads) for p in range(count)]
    for engine, near in zip(engines, problems.near, strict=False):
        engine.core.start(near)
    kept = [
        [np.flatnonzero(weight[order] > 0.0) for order in orders]
        for weight in problems.weights
    ]
    for C in map(float, Cs):
        if job.stopped:
            return

        def train(p: int, C: float = C) -> list[Solution] | None:
            try:
                return engines[p].advance(C, p, job)
            except StoppedError:
                return None

        found = in_threads(train, count, job)
        folds = []
        for f, test in enumerate(tests):
            each = [of[f] for of in found if of is not None]
            if len(each) < count:
                return
            try:
                values = _held_out(problems, table, each, test, job)
            except StoppedError:
                return
            own = [
                replace(one, alpha=one.alpha[rows], decisions=None)
                for one, rows in zip(each, kept[f], strict=True)
            ]
            folds.append((Solutions(own, problems.names), values))
        yield folds


def _held_out(
    problems: FoldProblems,
    table: KernelTable,
    each: list[Solution],
    test: NDArray[np.intp],
    job: Job,
) -> Vector:
    """Return the decision values of all problems at the held-out rows of a fold."""
    if len(problems) == 1:
        decisions = each[0].decisions
        assert decisions is not None
        return decisions[test, None]
    # A row has as many coefficients as there are other classes, in LIBSVM's layout.
    assert problems.signs is not None
    classes = sorted({run for runs in problems.runs for run in runs})
    number = {run: c for c, run in enumerate(classes)}
    coef = np.zeros((len(classes) - 1, table.n))
    pairs = [(number[first], number[second]) for first, second in problems.runs]
    for (i, j), one, signs in zip(pairs, each, problems.signs, strict=True):
        (a, b), (c, d) = classes[i], classes[j]
        signed = one.alpha * signs
        coef[j - 1, a:b], coef[i, c:d] = signed[: b - a], signed[b - a :]
    found = np.empty((len(test), len(pairs)))
    found[:] = [one.bias for one in each]
    parts = [_used(coef[:, a:b], a) for a, b in classes]
    for some, values in table.parts(test):
        if job.stopped:
            raise StoppedError
        sums = [values[:, columns] @ own.T for columns, own in parts]
        for p, (i, j) in enumerate(pairs):
            found[some, p] += sums[i][:, j - 1] + sums[j][:, i]
    return found


def _used(coef: Vector, first: int) -> tuple[slice | NDArray[np.intp], Vector]:
    """Return which columns of a class, from `first` on, are read, and their `coef`."""
    used = np.flatnonzero(coef.any(axis=0))
    if len(used) > _LARGEST_PART * coef.shape[1]:
        return slice(first, first + coef.shape[1]), coef
    return first + used, coef[:, used]


class FoldBatch(ABC):
    """Problems over the same rows of a table, one for each fold.

    - `table`: its kernel makes every matrix positive semidefinite.
    - `order`: rows of the table, those that a fold leaves out included.
    - `y`: labels, or targets, shape (len(order),).
    - `weights`: factors of C, shape (n_folds, len(order)).
    """

    def __init__(
        self,
        table: KernelTable,
        order: NDArray[np.intp],
        y: Vector | NDArray[np.int8],
        weights: Vector,
        folds: core.Folds,
    ) -> None:
        self.table, self.order, self.y, self.weights = table, order, y, weights
        self.core = folds

    @abstractmethod
    def _problem(
        self, C: float, k: int, kept: NDArray[np.intp]
    ) -> KernelProblem | KernelRegression:
        """Return the problem of fold k over its rows of positive weight."""

    @abstractmethod
    def _proofs(self, C: float, alpha: Vector, scores: Vector) -> Iterator[Proof]:
        """Prove all folds, with dual variables of all rows.

        The decisions of the proofs are not used.
        """

    def _signed(self, alpha: Vector) -> Vector:
        """Return the factors of the kernel rows."""
        return alpha

    def advance(self, C: float, p: int, job: Job) -> list[Solution]:
        """Train all folds with a C larger than the last one.

        Problem p of the job trains alone where the folds together do not reach `tol`.
        Dual variables and decisions have an entry for each of `order`.

        Raises StoppedError if the job ended the work.
        """
        begun, tol, atol = time.perf_counter(), job.tol, job.atol
        if not self.core.advance(C, tol, atol, job.max_iter, job.stop):
            raise StoppedError
        alpha, scores = np.empty((2, *self.weights.shape))
        self.core.points(alpha, scores)
        seconds = (time.perf_counter() - begun) / len(alpha)
        found = []
        for k, proof in enumerate(self._proofs(C, alpha, scores)):
            rounds, steps = self.core.counts(k)
            certificate = replace(
                proof.certificate,
                epochs=rounds,
                updates=steps,
                seconds=seconds,
                status=Status.CERTIFIED,
                solver=BlockSolver.name,
                tol=tol,
                atol=atol,
            )
            assert proof.bias is not None
            decisions = scores[k] + proof.bias
            solution = Solution(EMPTY, proof.alpha, certificate, proof.bias, decisions)
            if not certificate.meets(tol, atol):
                solution = self._alone(C, k, alpha[k], p, job)
            found.append(solution)
        return found

    def _alone(self, C: float, k: int, alpha: Vector, p: int, job: Job) -> Solution:
        """Train a fold alone, from its dual variables on."""
        kept = np.flatnonzero(self.weights[k] > 0.0)
        found = solve(
            self._problem(C, k, kept),
            BlockSolver(),
            warm=alpha[kept],
            **job.options(p),
        )
        if found.certificate.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            raise StoppedError
        assert found.bias is not None
        whole, coef = np.zeros(len(self.y)), np.zeros(self.table.n)
        whole[kept] = found.alpha
        coef[self.order] = self._signed(whole)
        scores = self.table.times(coef, job.stop, self.order)
        return replace(found, alpha=whole, decisions=scores + found.bias)


class HingeFolds(FoldBatch):
    """Problems with the hinge and an unpenalised bias.

    Every fold has rows of positive weight of both labels.
    """

    def __init__(
        self,
        table: KernelTable,
        runs: Runs,
        order: NDArray[np.intp],
        y: NDArray[np.int8],
        weights: Vector,
        threads: int,
    ) -> None:
        folds = core.Folds(table.for_folds, runs, y, weights, threads)
        super().__init__(table, order, y, weights, folds)
        self.roundings = score_roundings(table.subset(order), 1.0)

    def _problem(self, C: float, k: int, kept: NDArray[np.intp]) -> KernelProblem:
        return KernelProblem(
            self.table.subset(self.order[kept]),
            self.y[kept],
            C,
            loss="hinge",
            sample_weight=self.weights[k, kept],
            penalize_intercept=False,
        )

    def _signed(self, alpha: Vector) -> Vector:
        return alpha * self.y

    def _proofs(self, C: float, alpha: Vector, scores: Vector) -> Iterator[Proof]:
        for point, proof in zip(alpha, self.core.proofs(self.roundings), strict=True):
            yield Proof(EMPTY, point, bounds_of(proof.values).certificate, proof.bias)


class TubeFolds(FoldBatch):
    """Regression problems with an unpenalised bias."""

    def __init__(
        self,
        table: KernelTable,
        runs: Runs,
        order: NDArray[np.intp],
        y: Vector,
        weights: Vector,
        threads: int,
        epsilon: float,
    ) -> None:
        ones = np.ones(len(order), np.int8)
        # The bias takes up any shift of the targets; values near 0 round less.
        targets = y - (0.5 * y.min() + 0.5 * y.max())
        folds = core.Folds(
            *(table.for_folds, runs, ones, weights, threads, targets, epsilon)
        )
        super().__init__(table, order, y, weights, folds)
        self.epsilon = epsilon

    def _problem(self, C: float, k: int, kept: NDArray[np.intp]) -> KernelRegression:
        return KernelRegression(
            self.table.subset(self.order[kept]),
            self.y[kept],
            C,
            epsilon=self.epsilon,
            sample_weight=self.weights[k, kept],
        )

    def _proofs(self, C: float, alpha: Vector, scores: Vector) -> Iterator[Proof]:
        for k, point in enumerate(alpha):
            kept = np.flatnonzero(self.weights[k] > 0.0)
            problem = self._problem(C, k, kept)
            problem.remember(point[kept], scores[k, kept])
            proof, whole = problem.prove(Claim(alpha=point[kept])), np.zeros_like(point)
            whole[kept] = proof.alpha
            yield proof._replace(alpha=whole)
