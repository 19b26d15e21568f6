"""Exact optima of small concave quadratic programmes, by Lemke's method in integers.

The linear complementarity problem of M and q asks for z with

    z >= 0,  w = M z + q >= 0,  z'w = 0.

For a positive semidefinite M, Lemke's method of complementary pivots ends with a
solution if there is one (Cottle, Pang and Stone, The Linear Complementarity Problem,
1992, section 4.4); the lexicographic choice of the row that leaves prevents cycles. The
entries of the dictionary are integers over one denominator, as in Bareiss's
elimination.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

import numpy as np


class Dictionary:
    """Basic variables as sums of the others: ``basic = (constant + T other)/unit``.

    The variables are w, of numbers 0 to N - 1, z, of N to 2 N - 1, and the artificial
    2 N. Column 0 of the table is the constant.
    """

    def __init__(self, M: Any, q: Sequence[Fraction]) -> None:
        self.n = len(q)
        self.table = np.ones((self.n, self.n + 2), object)
        for i, row in enumerate(self.table):
            values = [q[i], *M[i]]
            factor = math.lcm(*(v.denominator for v in values))
            whole = [int(v * factor) for v in values]
            common = math.gcd(*whole) or 1
            row[:-1] = [v // common for v in whole]
        self.basic = list(range(self.n))
        self.other = [-1, *range(self.n, 2 * self.n + 1)]
        self.unit = 1

    def exchange(self, r: int, c: int) -> None:
        """Let the variable of column c enter, and that of row r leave."""
        table, pivot = self.table, self.table[r, c]
        sign = 1 if pivot > 0 else -1
        column, row = sign * table[:, c], -sign * table[r]
        self.table = (
            abs(pivot) * table - np.multiply.outer(column, table[r])
        ) // self.unit
        self.table[:, c], self.table[r] = column, row
        self.table[r, c], self.unit = sign * self.unit, abs(pivot)
        self.basic[r], self.other[c] = self.other[c], self.basic[r]

    def leaving(self, c: int) -> int:
        """Return the row that blocks column c first, after a tiny change of q."""
        rows = [r for r in range(self.n) if self.table[r, c] < 0]
        assert rows, "Lemke's method ends in a ray"
        for column in chain([self.table[:, 0]], map(self._of_change, range(self.n))):
            rows = _least(rows, column, self.table[:, c])
            done = [r for r in rows if self.basic[r] == 2 * self.n]
            if done or len(rows) == 1:
                return (done or rows)[0]
        raise AssertionError("two rows of a basis are equal")

    def _of_change(self, k: int) -> Any:
        """Return the coefficients of a change of ``q_k``, which moves w_k."""
        if k in self.other:
            return -self.table[:, self.other.index(k)]
        return [self.unit if name == k else 0 for name in self.basic]


def _least(rows: list[int], column: Any, slopes: Any) -> list[int]:
    """Return the rows in which ``column/-slopes`` is least."""
    best: list[int] = []
    for r in rows:
        off = column[r] * -slopes[best[0]] - column[best[0]] * -slopes[r] if best else 0
        if off < 0 or not best:
            best = [r]
        elif off == 0:
            best.append(r)
    return best


def complementary(M: Any, q: Sequence[Fraction]) -> list[Fraction]:
    """Return z of a solution of the linear complementarity problem."""
    found, n = Dictionary(M, q), len(q)
    constant = found.table[:, 0].tolist()
    if min(constant, default=0) < 0:
        column = n + 1  # of the artificial variable
        row = max(range(n), key=lambda r: (-constant[r], r))
        while True:
            left = found.basic[row]
            found.exchange(row, column)
            if left == 2 * n:
                break
            column = found.other.index(left + n if left < n else left - n)
            row = found.leaving(column)
    values = dict(zip(found.basic, found.table[:, 0].tolist(), strict=True))
    return [Fraction(values.get(n + k, 0), found.unit) for k in range(n)]


class Maximum(NamedTuple):
    x: list[Fraction]
    #: Multiplier of the equation.
    multiplier: Fraction


def maximise(
    Q: Any,
    p: Sequence[Fraction],
    limits: Sequence[tuple[Sequence[int], Fraction]],
    equation: tuple[Sequence[int], Fraction] | None = None,
) -> Maximum:
    """Maximise ``p'x - 1/2 x'Qx`` over x >= 0.

    Parameters
    ----------
    Q : array of Fraction of shape (n, n)
        Positive semidefinite.
    p : sequence of Fraction
    limits : sequence of (list of int, Fraction)
        The sum of these entries of x is at most the number.
    equation : (sequence of int, Fraction), optional
        Coefficients of all entries, and their sum.
    """
    n = len(p)
    rows = [[int(k in members) for k in range(n)] for members, _ in limits]
    right = [limit for _, limit in limits]
    if equation is not None:
        signs, total = equation
        rows += [list(signs), [-s for s in signs]]
        right += [total, -total]
    A, m = np.array(rows, object).reshape(len(rows), n), len(rows)
    M = np.full((n + m, n + m), Fraction(0), object)
    M[:n, :n], M[:n, n:], M[n:, :n] = Q, A.T, -A
    z = complementary(M + Fraction(0), [-v for v in p] + right)
    return Maximum(z[:n], z[-2] - z[-1] if equation is not None else Fraction(0))
