"""Steps of the folds of a cross-validation from models of all rows.

Problem    as in shared_steps.py, with the cost 0 for the rows that a fold holds out
Update     w_kf <- the least P_kf in the span of w, s and the constant feature;
           H_kf s = -grad P_kf(w), where H_kf = I + 2 sum c_i x_i x_i' over the rows of
           fold f that are active in the model of all rows: the class's sum without the
           rows that the fold holds out.
Guarantee  as in shared_steps.py; the ordinary solvers train what these steps do not
Cost       n_active d^2 operations for all folds of a class, d^3 / 3 for each, and two
           matrix products with all rows for a step; two copies of the active rows
Source     this package's
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ..losses import Vector
from ..problems.batch import LinearBatch
from ..problems.dense import DenseRows
from ..problems.reductions import OneVsRest
from .active_rows import factored, scaled_rows
from .auto import Auto
from .base import Limits, Solver
from .shared_steps import SETTINGS as STEPS
from .shared_steps import SharedRows
from .smoothing_newton import SmoothingNewton, needed_to_share


@dataclass(frozen=True)
class NearFoldsSettings:
    """Tuning constants of `NearFolds`."""

    #: Fewest columns: calls for blocks of narrower rows cost more than products.
    narrowest: int = 64
    #: Fewest active rows of a class per column; with fewer, a fold has others.
    rows_per_column: float = 3.0
    #: Passes over the rows that other methods make for a problem.
    passes: float = 4.0
    #: Speed of products of rows with each other, relative to a pass,
    speed: float = 15.0
    #: and of Cholesky factors in float64, relative to these products.
    factors: float = 0.4
    #: Most bytes of all factors, as part of the bytes of the rows.
    share: float = 0.5
    #: They may have this many bytes in any case.
    bytes: int = 1 << 23
    #: With fewer active rows, as part of all, `dcd` has almost nothing to do.
    few_active: float = 0.1


SETTINGS = NearFoldsSettings()


def near_models(solver: Solver, batch: LinearBatch, job: Limits) -> bool:
    """Whether the problems, of folds for example, may step together from `near`."""
    ovr = isinstance(batch.reduction, OneVsRest)
    if len(batch.near) != batch.count or len(job.models) != len(batch):
        return False
    if type(solver) is SmoothingNewton and solver.passes != "auto":
        return False
    taken = type(solver) in (Auto, SmoothingNewton) and ovr
    wide = batch.rows.width >= SETTINGS.narrowest
    return taken and wide and not needed_to_share(batch.rows)


class NearFolds:
    """Models of all rows, near which the problems of the folds begin.

    - `active`: which rows are active in them, shape (classes, n).
    """

    def __init__(self, dense: DenseRows, batch: LinearBatch) -> None:
        self.dense, self.batch = dense, batch
        signs, kind = batch.signs(range(batch.count)) > 0, dense.X.dtype
        W = np.array(batch.near).astype(kind)
        self.active = active = np.empty(signs.shape, bool)

        def of_strip(strip: slice) -> None:
            for block in dense.blocks(strip, kind):
                images = dense.images(dense.X[block], W)
                own = signs[:, block]
                active[:, block] = np.where(own, images < 1.0, images > -1.0)

        for _ in dense.over_strips(of_strip):
            pass
        self.sizes = np.count_nonzero(active, axis=1).astype(np.float64)

    @property
    def few(self) -> bool:
        """Whether few rows are active."""
        return bool(self.sizes.mean() < SETTINGS.few_active * self.dense.n)

    def inverses(self) -> list[Vector] | None:
        """Return the Cholesky factor of each problem.

        None where they do not pay, or if products overflow.
        """
        batch, settings, width = self.batch, SETTINGS, self.dense.width
        rows, folds, count = batch.rows.rows, len(batch.parts), batch.count
        work = (
            self.sizes.sum() * width**2 + len(batch) * width**3 / 3 / settings.factors
        )
        other = settings.passes * settings.speed * len(batch) * rows.stored
        room = max(settings.bytes, settings.share * rows.bytes)
        enough = self.sizes.min() >= settings.rows_per_column * width
        if not enough or work > other or 8.0 * len(batch) * width**2 > room:
            return None
        found = [self._of_class(k) for k in range(count)]
        factors = [found[k][f] for f in range(folds) for k in range(count)]
        known = [factor for factor in factors if factor is not None]
        return known if len(known) == len(factors) else None

    def _of_class(self, k: int) -> list[Vector | None]:
        """Return the factors of the folds of a class, from its active rows."""
        costs = self.batch.costs(range(k, len(self.batch), self.batch.count))
        place = np.flatnonzero(self.active[k] & costs.any(axis=0))
        costs = costs[:, place]
        Z = scaled_rows(self.dense, self.dense.X[place], 2.0 * costs.max(axis=0))
        held: Sequence[NDArray[np.bool_]] = list(costs == 0.0)
        parts = [own.T @ own for own in (Z[out] for out in held)]
        once = bool((np.sum(held, axis=0) == 1).all())
        gram = np.sum(parts, axis=0) if once else Z.T @ Z
        return [factored(gram - part) for part in parts]


def plain_rows(dense: DenseRows) -> SharedRows:
    """Return rows without eigenvalues, for steps by other inverses."""
    none = np.empty((dense.width, 0), dense.X.dtype)
    return SharedRows(dense, np.empty(0), none, 0.0, STEPS)


def steps(factors: Sequence[Vector], gradients: Vector) -> Vector:
    """Return the steps of some problems that these factors give."""
    each = zip(factors, gradients, strict=True)
    return np.stack([-lapack.dpotrs(L, g, lower=1)[0] for L, g in each])
