"""Few wide rows in as many columns as there are rows, for problems that share passes.

Problem    as in :mod:`.shared_steps`, for n rows with at least twice as many columns
Update     L L' = X X' (Cholesky, once for all problems and all C). The rows of L have
           the products of the rows of X, and stand for them. A model v over the rows of
           L is w = X' L^-T v, for which X w = L v and ||w|| = ||v||
Guarantee  the proofs are about w and the rows of X, in float64
Cost       n^2 d multiply-adds once, n^2 instead of n d for a pass, and n d for each
           proof, as matrix products; 8 n^2 bytes
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack, solve_triangular

from .. import core
from ..losses import Vector
from ..problems.batch import LinearBatch
from ..problems.binary import BinaryProblem
from ..problems.dense import DenseRows, Floats
from .base import Limits
from .dcd import DCD
from .shared_steps import Numbers, SharedRows


@dataclass(frozen=True)
class FewRowsSettings:
    """Tuning constants of :class:`FewRows`."""

    #: Fewest columns per row.
    columns_per_row: float = 2.0
    #: Columns that are multiplied at a time.
    columns: int = 1024
    #: Most epochs of `dcd` before the steps,
    epochs: int = 30
    #: which end below this share of the goal.
    begun: float = 0.1
    #: What is added to the diagonal of X X', in units of its entries.
    diagonal: tuple[float, ...] = (1e-12, 1e-10, 1e-8)


SETTINGS = FewRowsSettings()


def are_few(n: int, width: int) -> bool:
    """Whether rows are few enough to be replaced."""
    return SETTINGS.columns_per_row * n <= width


@dataclass(frozen=True)
class FewRows:
    """Rows of X, and the rows of L in their place."""

    #: Shape (n, n), float64.
    L: Vector
    dense: DenseRows
    rows: SharedRows
    #: Any problem over the rows of L.
    problem: BinaryProblem

    @classmethod
    def of(
        cls, dense: DenseRows, batch: LinearBatch, stopped: Callable[[], bool]
    ) -> FewRows | None:
        """Return the rows of a batch, factored once.

        None if they are zero or overflow, or after a stop.
        """
        known = batch.kept.get("few rows")
        if isinstance(known, FewRows):
            own = DenseRows(known.rows.dense.X, 0.0, dense.pool)
            return replace(known, dense=dense, rows=replace(known.rows, dense=own))
        L = _factor(dense, stopped)
        if L is None:
            return None
        rows = SharedRows.of(DenseRows(L, 0.0, dense.pool))
        if rows is None:
            return None
        problem = BinaryProblem(L, np.ones(dense.n), loss=batch.rows.loss)
        found = batch.kept["few rows"] = cls(L, dense, rows, problem)
        return found

    def models(self, V: Vector) -> Vector:
        """Return the models over X of models over L, shape (problems, width)."""
        beta = np.asarray(
            solve_triangular(self.L, V.T, trans="T", lower=True, check_finite=False)
        )

        def add(block: slice, X: Floats, total: Vector) -> None:
            self.dense.add_sums(X, beta[block], total)

        return self.dense.total((len(V), self.dense.width), add)

    def begun(self, batch: LinearBatch, problems: Numbers, job: Limits) -> Vector:
        """Return models over L of some problems, after some epochs of `dcd`."""
        dcd, V = DCD(), np.zeros((len(problems), self.dense.n))
        for v, k in zip(V, problems.tolist(), strict=True):
            signs, weights = batch.signs([k])[0], batch.weights(k)
            problem = self.problem.with_labels(signs, weights, batch.C)
            state = dcd.start(problem, core.Random(0), None)
            state.stop, state.tol = job.stop, job.tol
            for _ in range(min(SETTINGS.epochs, job.max_iter)):
                dcd.step(state, job.stop)
                primal, dual = dcd.estimate(state)
                goal = max(job.tol * dual, job.atol)
                if primal - dual <= SETTINGS.begun * goal or job.stop.requested:
                    break
            v[:] = problem.combine(state.alpha)
        return V

    def starts(self, W: Vector) -> Vector:
        """Return models over L with the margins of models over X."""
        images = np.empty((self.dense.n, len(W)))

        def of_strip(strip: slice) -> None:
            for block in self.dense.blocks(strip):
                X = self.dense.take(block, np.float64)
                images[block] = self.dense.scores(X, W)

        for _ in self.dense.over_strips(of_strip):
            pass
        return np.ascontiguousarray(
            solve_triangular(self.L, images, lower=True, check_finite=False).T
        )


def _factor(dense: DenseRows, stopped: Callable[[], bool]) -> Vector | None:
    """Return L, or None without one."""
    gram = np.full((dense.n, dense.n), dense.constant**2)
    for begin in range(0, dense.d, SETTINGS.columns):
        if stopped():
            return None
        part = dense.X[:, begin : begin + SETTINGS.columns].astype(np.float64)
        gram += part @ part.T
    scale = np.sqrt(gram.diagonal())
    if not (np.isfinite(scale).all() and scale.any()):
        return None
    scale[scale == 0.0] = scale.max()
    gram /= scale[:, None]
    gram /= scale
    for more in SETTINGS.diagonal:
        gram[np.diag_indices(dense.n)] = 1.0 + more
        L, failed = lapack.dpotrf(gram, lower=1, clean=1)
        if not failed:
            return np.ascontiguousarray(scale[:, None] * L)
    return None
