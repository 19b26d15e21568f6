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
from collections.abc import Iterator
from dataclasses import replace
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..certificate import Status
from ..core import StoppedError
from ..kernels.table import Table
from ..losses import Vector
from ..problems.base import EMPTY, Claim, Proof
from ..problems.kernel import KernelProblem, bounds_of
from ..problems.kernel_boxes import KernelRegression
from ..problems.kernel_matrix import score_roundings
from ..solvers.kernel.block import BlockSolver
from .fit import solve
from .progress import HISTORY_DTYPE
from .solution import Solution

__all__ = ["Folds", "HingeFolds", "TubeFolds", "bytes_of_folds"]

_NO_HISTORY = np.empty(0, dtype=HISTORY_DTYPE)


class _Limits(TypedDict):
    tol: float
    atol: float
    max_epochs: int


def bytes_of_folds(n: int) -> float:
    """Return the memory of :class:`Folds` with n rows, besides the table."""
    return 4.0 * n * (n + 32)


class Folds(ABC):
    """Problems over the same rows of a table, one for each fold.

    Attributes
    ----------
    table : Table
        Its kernel makes every matrix positive semidefinite.
    order : ndarray of int
        Rows of the table, those that a fold leaves out included.
    y : ndarray of shape (len(order),)
        Labels, or targets.
    weights : ndarray of shape (n_folds, len(order))
        Factors of C.
    """

    def __init__(
        self,
        table: Table,
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

    def advance(
        self,
        C: float,
        *,
        tol: float,
        atol: float,
        max_epochs: int,
        random_state: int,
        stop: core.Stop,
    ) -> list[Solution]:
        """Train all folds with a C larger than the last one.

        Parameters
        ----------
        C : float
        tol, atol, max_epochs, stop
            As in :func:`dualgap.solve`.
        random_state : int
            Seed of a fit of its own, for a fold that is not trained to `tol` together
            with the others.

        Returns
        -------
        list of Solution
            Dual variables and decisions have an entry for each of `order`.

        Raises
        ------
        StoppedError
            If `stop` ended the work.
        """
        begun = time.perf_counter()
        if not self.core.advance(C, tol, atol, max_epochs, stop):
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
            solution = Solution(
                EMPTY, proof.alpha, certificate, _NO_HISTORY, proof.bias,
                scores[k] + proof.bias,
            )  # fmt: skip
            if not certificate.meets(tol, atol):
                options = _Limits(tol=tol, atol=atol, max_epochs=max_epochs)
                solution = self._alone(C, k, alpha[k], random_state, stop, options)
            found.append(solution)
        return found

    def _alone(
        self,
        C: float,
        k: int,
        alpha: Vector,
        seed: int,
        stop: core.Stop,
        options: _Limits,
    ) -> Solution:
        """Train a fold alone, from its dual variables on."""
        kept = np.flatnonzero(self.weights[k] > 0.0)
        found = solve(
            self._problem(C, k, kept),
            BlockSolver(),
            warm=alpha[kept],
            random_state=seed,
            stop=stop,
            **options,
        )
        if found.certificate.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            raise StoppedError
        assert found.bias is not None
        whole, coef = np.zeros(len(self.y)), np.zeros(self.table.n)
        whole[kept] = found.alpha
        coef[self.order] = self._signed(whole)
        scores = self.table.times(coef, stop, self.order)
        return Solution(
            found.w,
            whole,
            found.certificate,
            found.history,
            found.bias,
            scores + found.bias,
        )


class HingeFolds(Folds):
    """Problems with the hinge and an unpenalised bias.

    Every fold has rows of positive weight of both labels.
    """

    def __init__(
        self,
        table: Table,
        order: NDArray[np.intp],
        y: NDArray[np.int8],
        weights: Vector,
        threads: int,
    ) -> None:
        rows = order.astype(np.uint32)
        folds = core.Folds(table.values, rows, y, weights, threads)
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


class TubeFolds(Folds):
    """Regression problems with an unpenalised bias."""

    def __init__(
        self,
        table: Table,
        order: NDArray[np.intp],
        y: Vector,
        weights: Vector,
        threads: int,
        epsilon: float,
    ) -> None:
        rows, ones = order.astype(np.uint32), np.ones(len(order), np.int8)
        # The bias takes up any shift of the targets; values near 0 round less.
        targets = y - (0.5 * y.min() + 0.5 * y.max())
        folds = core.Folds(table.values, rows, ones, weights, threads, targets, epsilon)
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
