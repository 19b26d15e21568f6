"""Rows of a linear problem: in memory, or read block by block from a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import core
from ..data.blocks import Block, RowSource, StreamedRows
from ..data.rows import Norms, inspect_rows
from ..data.types import MatrixLike
from ..losses import Vector
from .base import Problem


class RowsProblem(Problem):
    """Base class of linear problems: their rows, inspected once, and the norms.

    - `source`: the store that the rows are from.
    - `rows`: row accessor over the data. For a streamed store it holds the sizes only.
    - `intercept_scaling`: value of the constant feature; 0 for none.
    - `n`, `d`, `width`: rows, columns, and length of w (``d + 1`` with the constant
      feature).
    """

    rows: Any
    intercept_scaling: float
    cost: Vector

    def _set_rows(self, X: MatrixLike) -> None:
        """Inspect X and set the attributes; `intercept_scaling` is set before."""
        self.source = X if isinstance(X, RowSource) else None
        self.rows, self._norms, self.d = inspect_rows(X, self.intercept_scaling)
        self.n = self.rows.n
        self.width = self.rows.width
        if self.n == 0:
            raise ValueError("X has 0 rows; at least one example is needed")
        if self.n >= 2**32:
            raise ValueError(f"X has {self.n} rows; at most 2**32 - 1 are supported")

    @property
    def q(self) -> Vector:
        if isinstance(self.rows, StreamedRows) and not self.all_read:
            for _ in self.blocks():
                pass
        return self._norms.q

    @q.setter
    def q(self, q: Vector) -> None:
        self._norms = Norms(q)

    @property
    def steepness(self) -> float:
        """Mean of c_i q_i, on which the epochs of dual coordinate descent depend."""
        # BLAS would start threads for this, and wait for them.
        return float(np.add.reduce(self.cost * self.q)) / self.n

    @property
    def q_read(self) -> Vector:
        return self._norms.q

    @property
    def all_read(self) -> bool:
        """Whether every row is in memory or has been read in a block."""
        return not self.streamed or bool(self._norms.seen.all())

    @property
    def streamed(self) -> bool:
        """Whether the rows are read block by block."""
        return isinstance(self.rows, StreamedRows)

    def blocks(self, blocks: Sequence[Any] | None = None) -> Iterator[Block]:
        """Yield the rows block by block. Rows in memory are one block.

        Streamed rows are checked, and their norms noted, when they are first read. A
        separate pass for this would cost as much as an epoch of a solver. A block is
        valid until the next one.

        `blocks`: pages of each block of streamed rows; all pages in order by default.
        """
        if self.source is None or not self.streamed:
            yield Block(self.rows, (slice(0, self.n),))
            return
        for block in self.source.read(self.rows.constant, blocks):
            self._norms.look(block, self.source.name)
            yield block

    def norms(self, constant: float) -> Vector:
        """Return ``||x_i||^2`` with another constant feature, shape (n,); one pass."""
        q = np.empty(self.n)
        for block in self.blocks():
            block.rows.with_constant(constant).inspect(q[block.span])
        return q


class VectorProblem(RowsProblem):
    """Base class of linear problems whose primal point is one vector w."""

    def coef(self, w: Vector) -> tuple[Vector, float]:
        """Return the coefficients, shape (d,), and the intercept of a point w."""
        if self.width == self.d:
            return w, 0.0
        return w[: self.d], self.intercept_scaling * float(w[self.d])

    def point(self, coef: Vector, intercept: float = 0.0) -> Vector:
        """Return the point w of coefficients and an intercept; inverts :meth:`coef`."""
        if self.width == self.d:
            return coef
        return np.append(coef, intercept / self.intercept_scaling)

    def squared_norm(self, w: Vector) -> float:
        """Return ``||w||^2`` as in the objective: without an unpenalised bias."""
        return core.squared_norm(w[: self.d] if self.free_bias else w)
