"""Dual variables of many problems over the same rows, stored by their nonzero entries.

Of many classes, one versus the rest, each has few support vectors: the positive entries
of all dual variables take less memory than a table of classes times rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, TypeAlias, overload

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
        return cls(rows.astype(_index_of(len(alpha))), alpha[rows], len(alpha))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.rows.nbytes + self.values.nbytes

    def dense(self) -> Vector:
        """Return the dual variables of all rows."""
        alpha = np.zeros(self.n)
        alpha[self.rows] = self.values
        return alpha


class Pages:
    """Large arrays for the dual variables of many problems.

    The system takes the memory of a large array back when it is dropped, which small
    ones share with others. `problems`: number of problems.
    """

    #: Entries of an array. Arrays of 32 MB and more have memory of their own in glibc.
    largest: ClassVar[int] = 2**23

    def __init__(self, problems: int) -> None:
        self.problems = problems
        self.rows, self.values, self.used = np.empty(0, np.intp), np.empty(0), 0

    def put(self, table: Vector) -> list[SparseDuals]:
        """Return the dual variables of several problems, shape (problems, n)."""
        n, at = table.shape[1], np.flatnonzero(table)
        begin, end = self.used, self.used + len(at)
        if end > len(self.values):
            begin, end = 0, len(at)
            all_problems = math.ceil(1.1 * end * self.problems / len(table))
            size = max(end, min(all_problems, self.largest))
            self.rows, self.values = np.empty(size, _index_of(n)), np.empty(size)
        self.used = end
        np.take(table.ravel(), at, out=self.values[begin:end], mode="clip")
        np.remainder(at, n, out=self.rows[begin:end], casting="unsafe")
        parts = []
        for count in np.count_nonzero(table, axis=1).tolist():
            span = slice(begin, begin + count)
            parts.append(SparseDuals(self.rows[span], self.values[span], n))
            begin += count
        return parts


def _index_of(n: int) -> type[np.integer]:
    return np.int32 if n < 2**31 else np.int64


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
    duals: list[StoredDuals],
    signs: Callable[[NDArray[np.intp], int], NDArray[np.int8]],
    codes: NDArray[np.intp],
) -> tuple[NDArray[np.intp], sparse.csr_matrix]:
    """Return the rows with a dual variable, and ``y_i alpha_i`` at them, as CSR.

    `signs` returns the labels in problem k, -1 or +1, of rows with some codes. The list
    is emptied on the way, so that memory holds the dual variables only once.
    """
    parts = list(map(SparseDuals.of, duals))
    duals.clear()
    ends = np.cumsum([0, *(len(part.rows) for part in parts)])
    count, total, n = len(parts), int(ends[-1]), len(codes)
    rows, values = np.empty(total, _index_of(max(n, total))), np.empty(total)
    used = np.zeros(n, bool)
    spans = [slice(*ends[k : k + 2]) for k in range(count)]
    parts.reverse()
    for k, at in enumerate(spans):
        part = parts.pop()
        if len(part.rows):
            np.multiply(part.values, signs(codes[part.rows], k), out=values[at])
            rows[at], used[part.rows] = part.rows, True
    support = np.flatnonzero(used)
    if len(support) < n:
        place = (np.cumsum(used) - 1).astype(rows.dtype)
        for at in spans:
            rows[at] = place[rows[at]]
    return support, sparse.csr_matrix((values, rows, ends), (count, len(support)))


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
