"""Dual variables: of many problems by their nonzero entries, and as starts of fits.

Of many classes, one versus the rest, each has few support vectors: the positive entries
of all dual variables take less memory than a table of classes times rows.

A start lies on the line through the dual points of the last two C, clipped to the box.
For the hinge the path of the duals consists of such lines. After one C only it is s
alpha, where s >= 0 is the best multiple in the new box. Chu, Ho, Tsai, Lin and Lin,
"Warm start for parameter selection of linear classifiers", KDD 2015, scale the duals by
C_{k+1}/C_k; the lines are from Hastie, Rosset, Tibshirani and Zhu, JMLR 5, 2004.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..losses import Vector
from .binary import BinaryProblem

if TYPE_CHECKING:
    from .kernel import KernelProblem
    from .kernel_boxes import KernelRegression

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


def carried(problem: BinaryProblem, alpha: Vector) -> Vector:
    """Scale the dual point of another C to the best multiple inside the new box.

    It takes one pass over the data.

    `problem`: the problem with the new C. `alpha`: dual variables, zero or positive,
    shape (n,). Returns a new array, with zeros where float64 cannot hold the multiple.
    """
    alpha = np.where(problem.cost > 0.0, alpha, 0.0)
    v = problem.weighted_sum(alpha)
    curvature = problem.squared_norm(v) + float((problem.delta * alpha * alpha).sum())
    alpha *= problem.best_scale(alpha, float(alpha.sum()), curvature)
    return np.minimum(alpha, problem.upper, out=alpha)


def along(C: float, past: Sequence[tuple[float, Vector]], smooth: bool) -> Vector:
    """Return the point at C on the line through the dual variables of two other C.

    Variables whose sign would change are 0. Those at the end of both boxes are beyond
    the end of the new one by less than 1e-11 of it, so that clipping puts them there.
    If none is at an end, the duals of a loss that is not smooth are optimal for every
    larger C, and are returned as they are.

    `past`: different values of C, and their dual variables. `smooth`: whether the loss
    is smooth. Returns a new array.
    """
    (first, before), (last, alpha) = past
    ends = np.isclose(alpha * first, before * last, rtol=1e-9, atol=0.0)
    if not (smooth or (ends & (alpha != 0.0)).any()):
        return alpha.copy()
    point = alpha + (C - last) / (last - first) * (alpha - before)
    point *= 1.0 + 1e-12
    point[point * alpha <= 0.0] = 0.0
    return point


def extrapolated(
    problem: KernelProblem | KernelRegression,
    C: float,
    past: Sequence[tuple[float, Vector]],
) -> Vector:
    """Extrapolate the dual variables of smaller values of C to a start for this C.

    Variables at an end of their box go to the same end of the new box, zeros stay, and
    the others follow the line through the last two values of C. The sum is corrected by
    moving the variables inside the box, in proportion to their room.

    `problem`: the problem with the new C. `past`: C and dual variables of one or two
    fits, the last one last.
    """
    last_C, alpha = past[-1]
    upper = problem.upper
    lower = np.broadcast_to(problem.lower, upper.shape)
    step = np.zeros(len(alpha))
    if len(past) > 1:
        before_C, before = past[-2]
        step = (C - last_C) / (last_C - before_C) * (alpha - before)
    start = np.where(alpha == 0.0, 0.0, np.clip(alpha + step, lower, upper))
    ends = last_C / C * (1.0 - 1e-12)  # of the boxes for the last C, but for rounding
    start = np.where((alpha > 0.0) & (alpha >= ends * upper), upper, start)
    start = np.where((alpha < 0.0) & (alpha <= ends * lower), lower, start)
    if not problem.free_bias or problem.loss.name == "squared_hinge":
        return start
    c = problem.y * start
    off = float(c.sum())
    inside = (start > lower) & (start < upper) & (start != 0.0)
    room = np.where(inside & (c * off > 0.0), c, 0.0)
    most = float(room.sum())
    if most != 0.0:
        start -= problem.y * room * min(1.0, off / most)
    return start
