"""Interior point for linear classifiers with an L1 norm, over some columns.

Problem    min over p, q >= 0 of  sum_j r (p_j + q_j) + (1 - r)/2 w_j^2 + sum_i c_i l_i
           at w = p - q and the margins m_i = y_i w.x_i, through the pair with its dual
             r + (1 - r) w_j - v_j - f_j = 0,  r - (1 - r) w_j + v_j - g_j = 0,
             p_j f_j = q_j g_j = mu,  v = sum_i a_i y_i x_i,  m_i = m(a_i),
           where m(a) inverts the derivative -a of the loss: log((c - a)/a), or
           1 - a/(2 c) + s with s a = mu for the squared hinge
Update     Mehrotra's predictor and corrector; both solve, with Z the rows y_i x_i,
             (E + Z T Z') da = h,  T_j = 1/(1/(p_j/f_j + q_j/g_j) + 1 - r),
           or the system of as many equations as there are columns, if they are fewer.
           A column without a penalty has v_j = 0, and neither p_j nor q_j is bounded.
Guarantee  gap -> 0; in practice 10 to 30 iterations, however dependent columns are
Cost       an iteration: the products of all columns or of all rows, and a factor
Source     Mehrotra, SIAM J. Optim. 2, 1992; Koh, Kim, Boyd, JMLR 8, 2007
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import expit

from .. import core
from ..losses import Vector
from ..problems.columns import Part
from ..problems.elastic_net import ElasticNetProblem
from .base import TINY


@dataclass(frozen=True)
class ElasticNetInteriorSettings:
    """Tuning constants of the interior point."""

    #: Most equations.
    most: int = 5000
    #: Most entries of the columns where they are dense.
    entries: int = 50_000_000
    #: Most iterations.
    iterations: int = 60
    #: Error of a margin beyond which its dual of the logistic loss is computed again.
    far: float = 1.0
    #: Part of the way to the boundary that a step goes.
    back: float = 0.995
    #: Part of the largest weights below which columns and rows leave the products.
    little: float = 1e-10
    #: Addition to the diagonal of a matrix, as a part of it.
    ridge: float = 1e-13


SETTINGS = ElasticNetInteriorSettings()


class _Move(NamedTuple):
    """Changes of p, q, f, g, a and s."""

    p: Vector
    q: Vector
    f: Vector
    g: Vector
    a: Vector
    s: Vector


_Solve = Callable[[Vector, Vector], tuple[Vector, Vector]]


def few_equations(problem: ElasticNetProblem, chosen: NDArray[np.uint32]) -> bool:
    """Whether the interior point takes some columns of a problem."""
    m, n = len(chosen), problem.n
    if problem.outputs > 1 or min(m, n) > SETTINGS.most:
        return False
    return (m <= n and sparse.issparse(problem.columns.X)) or m * n <= SETTINGS.entries


class Interior:
    """Iterates over some columns of a problem of two classes.

    `start`: their weights. `first`: P there, whose part for each product is the first
    value of the products.
    """

    def __init__(
        self,
        problem: ElasticNetProblem,
        part: Part,
        start: Vector,
        first: float,
    ) -> None:
        self.rows = np.flatnonzero(problem.cost > 0.0)
        self.problem, self.part = problem, part
        self.cost, m, n = problem.cost[self.rows], len(part.chosen), len(self.rows)
        sign = np.where(problem.codes[self.rows] == 1, 1.0, -1.0)
        self.by_rows = n < m
        X = part.X
        if self.by_rows or not sparse.issparse(X):
            X = X.toarray() if sparse.issparse(X) else X
            X = X[:, self.rows] * sign
        else:
            X = X[:, self.rows] @ sparse.diags(sign)
        self.X = X  # (m, n), times the signs
        self.own = part.chosen < problem.penalised
        self.l1, self.l2 = problem.l1_ratio, 1.0 - problem.l1_ratio
        mu, c, off = first / (2 * m + n), self.cost, 1.0 - start @ X
        if problem.hinge:  # the products with their slacks are mu
            root = np.sqrt(off * off + 2.0 * mu / c)
            self.a = np.where(off > 0.0, c * (off + root), 2.0 * mu / (root - off))
        else:
            self.a = self._duals(start @ X)
        self.s = mu / self.a
        self.p = np.maximum(start, 0.0) + mu / self.l1
        self.q = np.where(self.own, self.p - start, 0.0)
        # Of a column without a penalty, f and g are constants, and q never moves.
        self.f = np.where(self.own, self.l1, 1.0)
        self.g = self.f.copy()

    @property
    def w(self) -> Vector:
        """The weights of the columns."""
        return self.p - self.q

    @property
    def off(self) -> tuple[Vector, Vector, Vector]:
        """Differences of the margins, f and g from their values at p, q and a."""
        a, c, w, own = self.a, self.cost, self.w, self.own
        hinge = self.problem.hinge
        margins = 1.0 - 0.5 * a / c + self.s if hinge else np.log((c - a) / a)
        skew = self.l2 * w - self.X @ a
        f = np.where(own, self.f - self.l1 - skew, 0.0)
        g = np.where(own, self.g - self.l1 + skew, 0.0)
        return margins - w @ self.X, f, g

    @property
    def gap(self) -> float:
        """The products, and what the differences of the duals count in the gap."""
        own, off = self.own, self.off
        gap = float(self.p[own] @ self.f[own] + self.q[own] @ self.g[own])
        gap += float(self.s @ self.a) if self.problem.hinge else 0.0
        return gap + self._infeasible(off)

    def _infeasible(self, off: tuple[Vector, Vector, Vector]) -> float:
        """Return the part of the gap that these differences are."""
        parts = zip((self.a, self.p, self.q), off, strict=True)
        return sum(float(x @ np.abs(one)) for x, one in parts)

    def steps(self, stop: core.Stop) -> Iterator[Vector]:
        """Yield the weights of the columns after every iteration."""
        for _ in range(SETTINGS.iterations):
            if stop.requested or stop.expired:
                return
            try:
                self._step()
            except linalg.LinAlgError:
                return
            if not np.isfinite(self.w).all():
                return
            yield self.w

    def _step(self) -> None:
        p, q, f, g, a, s, c = (
            self.p, self.q, self.f, self.g, self.a, self.s, self.cost
        )  # fmt: skip
        own, hinge = self.own, self.problem.hinge
        E = 0.5 / c + s / a if hinge else c / (a * (c - a))
        off = rest, of_f, of_g = self.off
        ratio = p / f + q / g
        T = ratio / (1.0 + self.l2 * ratio)
        solve = self._factor(T, E)

        def direction(of_p: Vector, of_q: Vector, of_s: Vector) -> _Move:
            r = (of_p + p * of_f) / f - (of_q + q * of_g) / g
            r /= 1.0 + self.l2 * ratio
            dw, da = solve(r, of_s / a + rest)
            skew = np.where(own, self.l2 * dw - (dw - r) / T, 0.0)
            df, dg = skew - of_f, -skew - of_g
            dp, dq = (of_p - p * df) / f, (of_q - q * dg) / g
            dp[~own], dq[~own] = dw[~own], 0.0
            return _Move(dp, dq, df, dg, da, (of_s - s * da) / a)

        def longest(move: _Move) -> float:
            ways = [(p[own], move.p[own]), (q[own], move.q[own])]
            ways += [(f, move.f), (g, move.g)]
            ways += [(a, move.a), (s, move.s)] if hinge else []
            most = max(float((-d / x).max(initial=0.0)) for x, d in ways)
            return min(1.0, SETTINGS.back / max(most, TINY))

        def products(t: float, by: _Move) -> float:
            total = float((p + t * by.p)[own] @ (f + t * by.f)[own])
            total += float((q + t * by.q)[own] @ (g + t * by.g)[own])
            return total + (float((s + t * by.s) @ (a + t * by.a)) if hinge else 0.0)

        none = np.zeros(len(a))
        first = direction(-p * f, -q * g, -s * a if hinge else none)
        # Differences count, so that products do not vanish long before them.
        before, t = products(0.0, first), longest(first)
        left = min(self._infeasible(off), before)
        share = (products(t, first) + (1.0 - t) * left) / (before + left)
        mu = share**3 * (before + left) / (2 * int(own.sum()) + hinge * len(a))
        move = direction(
            mu - p * f - first.p * first.f,
            mu - q * g - first.q * first.g,
            mu - s * a - first.s * first.a if hinge else none,
        )
        t = longest(move)
        self.p, self.q, self.a = p + t * move.p, q + t * move.q, a + t * move.a
        self.f, self.g = f + t * move.f, g + t * move.g
        if hinge:
            self.s = s + t * move.s
            return
        # Where the slope of the logarithm was far off, the margins have better duals.
        far = ~(np.minimum(self.a, c - self.a) > 0.0)
        self.a[far] = 0.5 * c[far]
        far |= np.abs(self.off[0]) > SETTINGS.far
        self.a[far] = self._duals(self.w @ self.X)[far]

    def _duals(self, margins: Vector) -> Vector:
        """Return the duals of the logistic loss at some margins."""
        return self.cost * np.clip(expit(-margins), 1e-100, 1.0 - 2.0**-50)

    def _factor(self, T: Vector, E: Vector) -> _Solve:
        """Return a solver of ``dw = r + T Z da``, ``E da = h - Z' dw`` for dw and da.

        A column without a penalty has ``Z da = -Z a`` instead of the first one.
        """
        X, own, little = self.X, self.own, SETTINGS.little
        if self.by_rows:
            some = np.flatnonzero(own & (T > little * T[own].max(initial=0.0)))
            part = X[some] * np.sqrt(T[some])[:, None]
            factor = _cholesky(part.T @ part, E)
            T, lone = np.where(own, T, 0.0), X[~own]  # one column or none
            images = linalg.cho_solve(factor, lone.T, check_finite=False)

            def by_rows(r: Vector, h: Vector) -> tuple[Vector, Vector]:
                r = np.where(own, r, 0.0)
                da = linalg.cho_solve(factor, h - r @ X, check_finite=False)
                free = lone @ (da + self.a) / (lone @ images).diagonal()
                da -= images @ free
                dw = r + T * (X @ da)
                dw[~own] = free
                return dw, da

            return by_rows
        weight = np.zeros(self.problem.n)
        weight[self.rows] = np.where(E * little < E.min(), 1.0 / E, 0.0)
        M, self.part.h = self.part.products(weight, core.Stop()), None
        factor, v = _cholesky(M, np.where(own, 1.0 / T, 0.0)), X @ self.a

        def by_columns(r: Vector, h: Vector) -> tuple[Vector, Vector]:
            right = np.where(own, r / T, v) + X @ (h / E)
            dw = linalg.cho_solve(factor, right, check_finite=False)
            return dw, (h - dw @ X) / E

        return by_columns


def _cholesky(M: Vector, more: Vector) -> tuple[Vector, bool]:
    """Return the factor of M and a diagonal, which a ridge keeps positive definite."""
    diagonal = np.diag_indices(len(M))
    M[diagonal] += more
    M[diagonal] *= 1.0 + SETTINGS.ridge
    return linalg.cho_factor(M, overwrite_a=True, check_finite=False)
