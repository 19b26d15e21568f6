"""Kernel SVMs of all folds of a cross-validation, trained together for rising C.

Problem    as for the hinge with an unpenalised bias (problems/kernel.py), with costs
           C w_i; the folds differ in the weights w
Guarantee  every fold is proved for every C, as a single fit is
Source     src/core/gram/folds.hpp
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..certificate import Status
from ..core import StoppedError
from ..kernels.table import Table
from ..losses import Vector
from ..problems.kernel import KernelProblem, bounds_of
from ..problems.kernel_matrix import score_roundings
from ..solvers.kernel.block import BlockSolver
from .fit import solve
from .progress import HISTORY_DTYPE
from .solution import Solution

__all__ = ["Folds", "bytes_of_folds"]

_NO_HISTORY = np.empty(0, dtype=HISTORY_DTYPE)


class _Limits(TypedDict):
    tol: float
    atol: float
    max_epochs: int


def bytes_of_folds(n: int) -> float:
    """Return the memory of :class:`Folds` with n rows, besides the table."""
    return 4.0 * n * (n + 32)


class Folds:
    """Problems over the same rows of a table, one for each fold.

    Parameters
    ----------
    table : Table
        Its kernel makes every matrix positive semidefinite.
    order : ndarray of int
        Rows of the table, those that a fold leaves out included.
    y : ndarray of shape (len(order),), int8
        Labels.
    weights : ndarray of shape (n_folds, len(order))
        Factors of C. Every fold has rows of positive weight of both labels.
    threads : int
    """

    def __init__(
        self,
        table: Table,
        order: NDArray[np.intp],
        y: NDArray[np.int8],
        weights: Vector,
        threads: int,
    ) -> None:
        self.table, self.order, self.y, self.weights = table, order, y, weights
        self.roundings = score_roundings(table.subset(order), 1.0)
        self.core = core.Folds(
            table.values, order.astype(np.uint32), y, weights, threads
        )

    def advance(
        self,
        C: float,
        *,
        tol: float,
        atol: float,
        max_epochs: int,
        seed: int,
        stop: core.Stop,
    ) -> list[Solution]:
        """Train all folds with a C larger than the last one.

        Parameters
        ----------
        C : float
        tol, atol, max_epochs, stop
            As in :func:`dualgap.solve`.
        seed : int
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
        proofs = self.core.proofs(self.roundings)
        seconds = (time.perf_counter() - begun) / len(proofs)
        found = []
        for k, proof in enumerate(proofs):
            certificate = replace(
                bounds_of(proof.values).certificate,
                epochs=proof.rounds,
                updates=proof.steps,
                seconds=seconds,
                status=Status.CERTIFIED,
                solver=BlockSolver.name,
                tol=tol,
                atol=atol,
            )
            decisions = scores[k] + proof.bias
            solution = Solution(
                np.empty(0), alpha[k], certificate, _NO_HISTORY, proof.bias, decisions
            )
            if not certificate.meets(tol, atol):
                options = _Limits(tol=tol, atol=atol, max_epochs=max_epochs)
                solution = self._alone(C, k, alpha[k], seed, stop, options)
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
        problem = KernelProblem(
            self.table.subset(self.order[kept]),
            self.y[kept],
            C,
            loss="hinge",
            sample_weight=self.weights[k, kept],
            penalize_intercept=False,
        )
        found = solve(
            problem,
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
        coef[self.order] = whole * self.y
        scores = self.table.times(coef, stop, self.order)
        return Solution(
            found.w,
            whole,
            found.certificate,
            found.history,
            found.bias,
            scores + found.bias,
        )
