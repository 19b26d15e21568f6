"""Dual variables of many problems over the same rows, stored by their nonzero entries.

Of many classes, one versus the rest, each has few support vectors: the positive entries
of all dual variables take less memory than a table of classes times rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..losses import Vector

#: ``y_i alpha_i`` of all problems at all rows, or at the support vectors.
Table: TypeAlias = Vector | sparse.csr_matrix


class SparseDuals(NamedTuple):
    """The nonzero dual variables of a problem."""

    #: Their rows, sorted, shape (n_support,).
    rows: NDArray[np.integer]
    #: Shape (n_support,).
    values: Vector
    #: Number of all rows.
    n: int

    @classmethod
    def of(cls, alpha: StoredDuals) -> SparseDuals:
        """Return dual variables in this form."""
        if isinstance(alpha, SparseDuals):
            return alpha
        # One number repeated is the 0 of a problem that a limit left out.
        rows = np.flatnonzero(alpha) if any(alpha.strides) else np.empty(0, np.intp)
        index = np.int32 if len(alpha) < 2**31 else np.int64
        return cls(rows.astype(index), alpha[rows], len(alpha))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.rows.nbytes + self.values.nbytes

    def dense(self) -> Vector:
        """Return the dual variables of all rows."""
        alpha = np.zeros(self.n)
        alpha[self.rows] = self.values
        return alpha


#: Dual variables of a problem, as a fit keeps them.
StoredDuals: TypeAlias = Vector | SparseDuals


class Made(Sequence[Vector]):
    """Arrays of several problems, each made when it is used.

    `make` returns the array of one of the problems `numbers`.
    """

    def __init__(self, make: Callable[[int], Vector], numbers: Sequence[int]) -> None:
        self._make, self._numbers = make, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, k: int) -> Vector: ...
    @overload
    def __getitem__(self, k: slice) -> Made: ...
    def __getitem__(self, k: int | slice) -> Vector | Made:
        found = self._numbers[k]
        if isinstance(found, int):
            return self._make(found)
        return Made(self._make, found)


def dense(duals: Sequence[StoredDuals]) -> Made:
    """Return dual variables of several problems at all rows."""

    def make(k: int) -> Vector:
        alpha = duals[k]
        return alpha.dense() if isinstance(alpha, SparseDuals) else alpha

    return Made(make, range(len(duals)))


def narrowed(
    duals: Sequence[StoredDuals],
    signs: Callable[[NDArray[np.intp], int], NDArray[np.int8]],
    codes: NDArray[np.intp],
) -> tuple[NDArray[np.intp], sparse.csr_matrix]:
    """Return the rows with a dual variable, and ``y_i alpha_i`` at them, as CSR.

    `signs` returns the labels in problem k, -1 or +1, of rows with some codes.
    """
    parts = [SparseDuals.of(alpha) for alpha in duals]
    rows = np.concatenate([part.rows for part in parts])
    values = np.concatenate([part.values for part in parts])
    ends = np.cumsum([0, *(len(part.rows) for part in parts)])
    for k in range(len(parts)):
        at = slice(ends[k], ends[k + 1])
        if at.start == at.stop:
            continue
        values[at] *= signs(codes[rows[at]], k)
    used = np.zeros(len(codes), bool)
    used[rows] = True
    support = np.flatnonzero(used)
    place = (np.cumsum(used) - 1).astype(rows.dtype)
    shape = len(parts), len(support)
    return support, sparse.csr_matrix((values, place[rows], ends), shape=shape)


def expanded(dual_coef: Table, support: NDArray[np.intp], n: int) -> Table:
    """Return the table of all n rows, given its columns of support vectors."""
    shape = dual_coef.shape[0], n
    if isinstance(dual_coef, np.ndarray):
        table = np.zeros(shape)
        table[:, support] = dual_coef
        return table
    columns = support[dual_coef.indices]
    parts = dual_coef.data, columns, dual_coef.indptr
    return sparse.csr_matrix(parts, shape=shape)


def dense_table(table: Table) -> Vector:
    """Return a table as an array."""
    return table if isinstance(table, np.ndarray) else table.toarray()
