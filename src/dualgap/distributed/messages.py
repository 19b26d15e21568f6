"""Messages between pieces and their driver: small records and d-vectors.

A piece is a partition of the rows, held by one worker (piece.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..losses import Vector
from ..problems.binary import BinaryProblem
from ..problems.rounding import Values

#: An update is sent as pairs if these take less than half the bytes of the whole
#: vector: a pair of index and value takes 12 bytes, an entry of the whole vector 8.
_SPARSE_SHARE = 1 / 3


@dataclass
class Update:
    """Vector of `width` entries, stored whole or as its nonzero entries."""

    width: int
    values: Vector
    indices: NDArray[np.int32] | EllipsisType = ...  # distinct

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + getattr(self.indices, "nbytes", 0)

    def add_to(self, w: Vector, factor: float = 1.0) -> None:
        """Add ``factor * self`` to w, in place."""
        w[self.indices] += factor * self.values

    def whole(self) -> Vector:
        out = np.zeros(self.width)
        self.add_to(out)
        return out

    def dot(self, w: Vector) -> float:
        """Return the product with w, summed in the order of the entries."""
        return float(np.add.reduce(self.values * w[self.indices]))


def pack(w: Vector) -> Update:
    """Return w as an update, in the form that takes fewer bytes."""
    indices = np.flatnonzero(w)
    if len(indices) >= _SPARSE_SHARE * len(w) or len(w) >= 2**31:
        return Update(len(w), w)
    return Update(len(w), w[indices], indices.astype(np.int32))


def add_updates(updates: Sequence[Update]) -> Update:
    """Return the sum of updates, added in this order."""
    width = updates[0].width
    if sum(len(update.values) for update in updates) >= _SPARSE_SHARE * width:
        total = np.zeros(width)
        for update in updates:
            update.add_to(total)
        return Update(width, total)
    every = np.concatenate([cast("Vector", update.indices) for update in updates])
    indices, place = np.unique(every, return_inverse=True)
    weights = np.concatenate([update.values for update in updates])
    return Update(width, np.bincount(place, weights).astype(np.float64), indices)


@dataclass
class PartialSums:
    """Sums of some pieces for one binary problem. Parts can be added up.

    ``values`` has ``sum c_i l_i`` at w, ``sum alpha_i`` and ``sum delta_i alpha_i^2``
    before the advance, over `rows` rows of `pieces` pieces. A step ``gamma b`` changes
    D by ``gamma (slope - w.A b) - gamma^2/2 (curvature + ||A b||^2)``. ``squares`` is
    ``sum_k ||A b_k||^2``.
    """

    slope: float = 0.0
    curvature: float = 0.0
    squares: float = 0.0
    values: Values | None = None
    updates: int = 0
    visited: int = 0
    epochs: int = 0  # largest number of epochs of a piece
    rows: int = 0
    pieces: int = 1
    update: Update | None = None

    def add_step(
        self, problem: BinaryProblem, alpha: Vector, trial: Vector, move: Vector
    ) -> None:
        """Add the sums of a step from alpha to trial that changes w by `move`."""
        change = trial - alpha
        self.slope = float(change.sum())
        if problem.loss.curvature > 0.0:
            bent = problem.delta * change
            self.slope -= float((bent * alpha).sum())
            self.curvature = float((bent * change).sum())
        self.squares = core.squared_norm(move)
        self.update = pack(move)

    @classmethod
    def merge(cls, parts: Sequence[PartialSums]) -> PartialSums:
        moves = [part.update for part in parts if part.update is not None]
        values = [part.values for part in parts if part.values is not None]
        sums = ("slope", "curvature", "squares", "updates", "visited", "rows", "pieces")
        return cls(
            **{name: sum(getattr(part, name) for part in parts) for name in sums},
            values=Values.merge(values) if values else None,
            epochs=max(part.epochs for part in parts),
            update=add_updates(moves) if moves else None,
        )


@dataclass
class Reply:
    """Reply of one or more pieces: the parts of every binary problem."""

    parts: dict[int, PartialSums] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)  # pieces that had lost their duals
    seconds: float = 0.0  # longest computing time of a piece
    nbytes: int = 0  # bytes of the updates that were sent

    @classmethod
    def merge(cls, replies: Sequence[Reply]) -> Reply:
        """Return the sum of replies, added in this order."""
        if len(replies) == 1:
            return replies[0]
        problems = sorted({k for reply in replies for k in reply.parts})
        return cls(
            {
                k: PartialSums.merge([r.parts[k] for r in replies if k in r.parts])
                for k in problems
            },
            [index for reply in replies for index in reply.lost],
            max(reply.seconds for reply in replies),
            sum(reply.sent for reply in replies),
        )

    @property
    def sent(self) -> int:
        """Bytes of updates that were sent so far, this reply included."""
        own = sum(p.update.nbytes for p in self.parts.values() if p.update is not None)
        return self.nbytes + own


@dataclass(frozen=True)
class Task:
    """Task of one problem for every piece."""

    #: Run epochs over the rows; sum up w from the duals; sum up the losses at w.
    kind: Literal["advance", "combine", "evaluate"]
    sigma: float = 1.0  # scaling of the subproblem
    epochs: int = 1
    #: The epochs begin beyond the iterate by beta times the last step.
    beta: float = 0.0


@dataclass(frozen=True)
class Order:
    """Order to one piece for one round."""

    round: int  # counted from 1
    after: int  # the last round that this piece must have done
    #: Step sizes of the problems toward the trial points of that round.
    gammas: dict[int, float]
    tasks: dict[int, Task] = field(default_factory=dict)
    seconds: float | None = None  # left; then the epochs end early
    #: In a recovery, rounds that this piece may have done but that do not count.
    broken: tuple[int, ...] = ()
