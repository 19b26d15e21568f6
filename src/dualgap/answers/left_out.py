"""Bounds on the decision at a training row by the optimum without that row.

Three stages, each only for rows that the one before leaves open:

1. drop: alpha_i becomes 0, all rows at once. The upper bound on the own margin in the
   full problem holds too, because taking a loss away cannot raise its own margin: add
   the two optimality inequalities.
2. repair: the dual variables of the rows nearest the margin move (`removal.py`).
3. settle: balls of the problem without the row, from the repaired dual point, then a
   warm fit of that problem to smaller and smaller gaps.

See `removal.py` for the formulas and their source.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..certificate import Status
from ..losses import Vector
from ..problems.kernel_matrix import MatrixProblem
from ..problems.rounding import Rounding
from ..solvers import Solver, solver_for
from ..solvers.kernel.block import BlockSolver
from ..training import solve
from .ball import Ball
from .bias import side_of
from .removal import Last, Neighbourhood, Products, Rows, change, loosely

_UNIT, _SLACK = Rounding.unit, Rounding.slack
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class LeftOutSettings:
    """Tuning constants of problems with rows left out."""

    #: Fewest rows of a neighbourhood.
    fewest_rows: int = 200
    #: Most rows of a neighbourhood.
    most_rows: int = 1000
    #: Rows of a neighbourhood per free support vector.
    rows: float = 1.5
    #: Rows whose products with a neighbourhood are computed at once.
    chunk: int = 256
    #: Balls of the problem without a row, each from the last repair, before a fit.
    balls: int = 4
    #: The repairs of a ball end once one leaves more than this share of the radius.
    enough: float = 0.8
    #: Largest gap of the fits without rows.
    largest_gap: float = 1e-4
    #: Factor of the gap from fit to fit.
    factor: float = 1e-2
    #: Smallest gap of a fit.
    smallest_gap: float = 1e-13
    #: Multiples of the best sigma of a known bias, tried with an unpenalised one.
    sigmas: tuple[float, ...] = (1.0, 4.0, 0.25)


SETTINGS = LeftOutSettings()


class InterruptedFitError(Exception):
    """Ctrl-C ended a fit without a row."""


class DecisionInterval(NamedTuple):
    """Interval of a decision."""

    lower: float
    upper: float


def without_rows(problem: Any, rows: Any) -> Any:
    """Return a copy of a problem in which some rows cost nothing; data are shared."""
    other = copy.copy(problem)
    other.cost = problem.cost.copy()
    other.cost[rows] = 0.0
    return other


def solver_of(problem: Any) -> Solver | None:
    """Return a solver that reaches small gaps of a problem; None if there is none."""
    if not isinstance(problem, MatrixProblem):
        return solver_for(problem)
    solver = BlockSolver()
    with contextlib.suppress(ValueError):
        solver.check(problem)
        return solver
    return None


def sharpened(ball: Ball, tol: float | None) -> Ball:
    """Return the ball of a fit to a smaller gap, from the ball's dual point.

    `tol`: relative gap; None, or a gap that no solver reaches, leaves the ball as it
    is.
    """
    solver = solver_of(ball.problem)
    if tol is None or solver is None or ball.certificate.relative_gap <= tol:
        return ball
    warm = ball.alpha if solver.dual else None
    found = solve(ball.problem, solver, tol=tol, warm=warm)
    w = found.w if len(found.w) else None
    better = Ball.of(ball.problem, w, found.alpha)
    if found.certificate.status is Status.INTERRUPTED:
        raise InterruptedFitError
    return better if better.radius < ball.radius else ball


def neighbourhood_size(ball: Ball) -> int:
    """Return the number of rows that a repair moves."""
    alpha, upper = ball.alpha, ball.problem.upper
    free = int(np.count_nonzero((alpha > 0.0) & (alpha < upper)))
    return int(np.clip(SETTINGS.rows * free, SETTINGS.fewest_rows, SETTINGS.most_rows))


def repaired(ball: Ball) -> Ball:
    """Return a smaller ball of the same problem, from a repaired dual point.

    It takes a few passes over the data. Meant for a ball whose dual point misses rows
    that have left or joined.
    """
    now = ball
    for _ in range(SETTINGS.balls):
        near = Neighbourhood(now, neighbourhood_size(now))
        alpha = near.moved(near.moves(np.zeros(len(near.members)), of_dual=True))
        before, now = now, Ball.of(ball.problem, alpha=alpha)
        if now.radius > SETTINGS.enough * before.radius and before is not ball:
            break
    # Where much has changed, the old primal point may be the better one.
    same = Ball.of(ball.problem, ball.w, alpha) if len(ball.w) else now
    return min(ball, now, same, key=lambda one: one.radius)


def alpha_without(ball: Ball, rows: NDArray[np.intp]) -> Vector:
    """Return alpha without some rows, after a repair of the rows near the margin.

    `ball` belongs to all rows.
    """
    if not len(rows):
        return ball.alpha.copy()
    near = Neighbourhood(ball, neighbourhood_size(ball))
    own = near.all.signs[rows] * near.all.alpha[rows]
    block = near.products.block(near.members, rows)
    none = np.zeros(len(near.members))
    last = Last(float(own.sum()), 0.0, none, 0.0) if near.free else None
    fixed = np.flatnonzero(np.isin(near.members, rows))
    alpha = near.moved(near.moves(-(block @ own), fixed, last, of_dual=True))
    alpha[rows] = 0.0
    return alpha


class LeftOut:
    """Bounds on the decisions of all rows, each left out of one binary problem.

    `ball` belongs to a binary problem, linear or with a kernel.

    - `lower`, `upper`: proved bounds on the decision at row i by the optimum without
      row i, shape (n,).
    - `radii`: upper bounds on the r' of stage 1, shape (n,); inf with an unpenalised
      bias.
    - `repaired`, `balls`, `fits`: numbers of rows repaired, and of balls and fits
      without a row.
    """

    def __init__(self, ball: Ball) -> None:
        self.ball, self.rows = ball, Rows.of(ball)
        n = ball.problem.n
        self.lower, self.upper = np.full(n, -math.inf), np.full(n, math.inf)
        self.radii = np.full(n, math.inf)
        self.repaired = self.balls = self.fits = 0
        self.near: Neighbourhood | None = None
        if not ball.problem.free_bias:
            self._drop()
        elif ball.radius < math.inf:
            self._drop_free()

    def _drop(self) -> None:
        """Stage 1, for problems without an unpenalised bias."""
        rows, ball = self.rows, self.ball
        centre = rows.products
        half = ball.radius * rows.lengths + rows.error
        full = rows.signs * centre + half  # of the own margin
        square = ball.squares
        bent = 0.5 * rows.delta * rows.alpha**2
        along = rows.alpha * rows.signs * centre
        squared = ball.squared_radius - rows.least_loss + rows.alpha - bent - along
        squared += 0.25 * rows.alpha**2 * square
        terms = rows.alpha + bent + np.abs(along) + 0.25 * rows.alpha**2 * square
        squared += _SLACK * (16 * _UNIT * terms + rows.alpha * rows.error)
        squared += _UNIT * (rows.least_loss + ball.squared_radius) * 8
        squared += self._products_error * (rows.alpha * rows.lengths) ** 2
        margin = rows.signs * centre - 0.5 * rows.alpha * square
        self.radii = np.sqrt(np.maximum(squared, 0.0)) * (1.0 + 4 * _UNIT)
        half = self.radii * rows.lengths + rows.error
        half += self._products_error * rows.alpha * rows.lengths**2
        half += 16 * _UNIT * (np.abs(margin) + half)
        nothing = rows.lengths == 0.0  # the decision at a row of zeros is 0
        half[nothing] = full[nothing] = 0.0
        self._narrow_margins(
            slice(None), margin - half, np.minimum(full, margin + half)
        )

    def _drop_free(self) -> None:
        """Stage 1, with an unpenalised bias: the joint bound of the full problem.

        It holds without a row whose dual variable is 0, and that the bound does not
        move. Its upper end for the own margin holds for all rows.
        """
        rows = self.rows
        above, moved = self._joint_bound(1)
        below, moved_too = self._joint_bound(-1)
        half = rows.error + 8 * _UNIT * np.abs(rows.products)
        lower, upper = rows.products - below - half, rows.products + above + half
        same = rows.alpha == 0.0
        same[moved] = same[moved_too] = False
        positive = rows.signs > 0.0
        self.narrow(
            slice(None),
            np.where(same | ~positive, lower, -math.inf),
            np.where(same | positive, upper, math.inf),
        )

    def _joint_bound(self, sign: int) -> tuple[Vector, NDArray[np.intp]]:
        """Return bounds on ``sign (f*(x_i) - c.x_i)``, and the rows that they move."""
        rows, ball, products = self.rows, self.ball, Products(self.ball.problem)
        side = side_of(ball, sign, SETTINGS.most_rows)
        bounds = np.full(len(rows.signs), math.inf)
        if not len(side.sigma):
            return bounds, side.rows
        K = products.block(side.rows, side.rows)
        norms = np.maximum(np.einsum("ki,ij,kj->k", side.mu, K, side.mu), 0.0)
        relative = _SLACK * (products.error + (2 * len(side.rows) + 16) * _UNIT)
        sizes = side.mu @ rows.lengths[side.rows]  # at least ||z_k||
        for begin in range(0, len(bounds), SETTINGS.chunk):
            some = np.arange(begin, min(begin + SETTINGS.chunk, len(bounds)))
            along = side.mu @ products.block(side.rows, some)
            lengths = rows.lengths[some, None]
            squared = lengths**2 - 2.0 * along.T + norms
            far = np.sqrt(np.maximum(squared, 0.0) + relative * (lengths + sizes) ** 2)
            bounds[some] = side.above(far, ball.squared_radius, ball.offset)
        return bounds, side.rows

    @property
    def _products_error(self) -> float:
        return _SLACK * _UNIT * (self.ball.problem.width + 16)

    def _narrow_margins(self, at: Any, lower: Any, upper: Any) -> None:
        positive = self.rows.signs[at] > 0
        self.narrow(
            at, np.where(positive, lower, -upper), np.where(positive, upper, -lower)
        )

    def narrow(self, at: Any, lower: Any, upper: Any) -> None:
        """Intersect the bounds of some rows with others."""
        self.lower[at] = np.maximum(self.lower[at], lower)
        self.upper[at] = np.minimum(self.upper[at], upper)

    def repair(self, which: NDArray[np.intp]) -> None:
        """Stage 2 for some rows."""
        if self.near is None:
            self.near = Neighbourhood(
                self.ball, neighbourhood_size(self.ball), self.rows
            )
        near = self.near
        for begin in range(0, len(which), SETTINGS.chunk):
            some = which[begin : begin + SETTINGS.chunk]
            blocks = near.products.block(near.members, some).T.copy()
            for i, products in zip(some, blocks, strict=True):
                found = Leaving.of(near, int(i), products).interval()
                self.narrow(i, found.lower, found.upper)
                self.repaired += 1

    def settle(self, i: int, decided: Callable[[], bool]) -> None:
        """Stage 3 for one row: stop as soon as `decided` says so.

        Raises InterruptedFitError if Ctrl-C ended a fit.
        """
        assert self.near is not None
        problem = without_rows(self.ball.problem, [i])
        near = self.near
        for _ in range(SETTINGS.balls):
            alpha = Leaving.of(near, i).dual_point()
            near = self._tighten(i, Ball.of(problem, alpha=alpha))
            self.balls += 1
            if decided():
                return
        solver = solver_of(problem)
        if solver is None:
            return
        warm = near.ball.alpha if solver.dual else None
        tol = self._first_gap(i)
        while True:
            solution = solve(problem, solver, tol=tol, warm=warm)
            self.fits += 1
            w = solution.w if len(solution.w) else None
            self._tighten(i, Ball.of(problem, w, solution.alpha))
            certificate = solution.certificate
            if certificate.status is Status.INTERRUPTED:
                raise InterruptedFitError
            reached = certificate.relative_gap
            if decided() or tol <= SETTINGS.smallest_gap or not reached <= tol:
                return
            warm = solution.alpha if solver.dual else None
            tol = max(min(tol, reached) * SETTINGS.factor, SETTINGS.smallest_gap)

    def _tighten(self, i: int, ball: Ball) -> Neighbourhood:
        near = Neighbourhood(ball, neighbourhood_size(ball))
        found = Leaving.of(near, i).interval()
        self.narrow(i, found.lower, found.upper)
        return near

    def _first_gap(self, i: int) -> float:
        """Return the gap at which the ball is about as wide as the decision is far."""
        length = self.rows.lengths[i]
        middle = 0.5 * (self.lower[i] + self.upper[i])
        dual = self.ball.certificate.dual
        if not (math.isfinite(middle) and length > 0.0 and dual > 0.0):
            return SETTINGS.largest_gap
        gap = 0.1 * (middle / length) ** 2 / dual
        return min(max(gap, SETTINGS.smallest_gap), SETTINGS.largest_gap)


class Leaving(NamedTuple):
    """A row that leaves the problem of a ball, and the rows that may move."""

    near: Neighbourhood
    #: Number of the row.
    i: int
    #: The row alone.
    row: Rows
    #: Its products with the members of the neighbourhood, shape (m,).
    products: Vector
    #: ``||x_i||^2``.
    square: float
    #: ``y_i alpha_i``.
    own: float
    #: Its place among the members, or empty.
    fixed: NDArray[np.intp]

    @classmethod
    def of(cls, near: Neighbourhood, i: int, products: Vector | None = None) -> Leaving:
        """Return the record of row i; its products are computed unless given."""
        at = np.array([i])
        if products is None:
            products = near.products.block(near.members, at)[:, 0].copy()
        row = near.all.at(at)
        square = float(near.ball.squares[i])
        own = float(row.signs[0] * row.alpha[0])
        fixed = np.flatnonzero(near.members == i)
        return cls(near, i, row, products, square, own, fixed)

    def moves(self, target: float = 0.0, of_dual: bool = False) -> Vector:
        """Return moves of the members once the row's variable is at the target.

        The target is not 0 only with an unpenalised bias.
        """
        near = self.near
        if near.free:
            last = Last(self.own, target, self.products, self.square)
            none = np.zeros(len(self.products))
            return near.moves(none, self.fixed, last, of_dual=of_dual)
        return near.moves(-self.own * self.products, self.fixed, of_dual=of_dual)

    def dual_point(self) -> Vector:
        """Return alpha without the row, repaired so that its dual value is large."""
        alpha = self.near.moved(self.moves(of_dual=True))
        alpha[self.i] = 0.0
        return alpha

    def interval(self) -> DecisionInterval:
        """Bound the decision at the row by the optimum of the problem without it."""
        d, length = self.moves(), float(self.row.lengths[0])
        radius = loosely(self.squared(d, -self.own))
        if self.near.free:
            return self._joint_interval(radius)
        centre = float(self.row.products[0])
        centre += 0.5 * (float(self.products @ d) - self.own * self.square)
        half = radius * length + self.centre_error(d, -self.own)
        half += 8 * _UNIT * (abs(centre) + half)
        return DecisionInterval(centre - half, centre + half)

    def _joint_interval(self, radius: float) -> DecisionInterval:
        """Return the interval with an unpenalised bias; see `removal.py`."""
        # With a known bias the best sigma is 2 r'/||x||. Here x is measured from the
        # mean of the rows near the margin.
        apart = self.square - 2 * self.products.mean() + self.near.K.mean()
        best = {1.0: -math.inf, -1.0: -math.inf}
        for side in best:
            for factor in SETTINGS.sigmas:
                sigma = factor * 2.0 * radius / math.sqrt(apart) if apart > 0.0 else 0.0
                if 0.0 < sigma < math.inf:
                    bound = self.one_sided(self.moves(-side * sigma), side)
                    best[side] = max(best[side], bound)
        return DecisionInterval(best[1.0], -best[-1.0])

    def squared(self, d: Vector, last: float) -> float:
        """Return r'^2 after moves d of the members and `last` of the row."""
        near, row = self.near, self.row
        moves, rows = np.append(d, last), near.rows.joined(row)
        alpha = float(row.alpha[0])
        less = -alpha + 0.5 * float(row.delta[0]) * alpha * alpha
        m = len(d)
        K = np.empty((m + 1, m + 1))
        K[:m, :m] = near.K
        K[m, :m] = K[:m, m] = self.products
        K[m, m] = self.square
        gain = np.append(near.gain(d), less)
        moved = change(rows, moves, gain, K, near.products.error)
        base, loss = near.ball.squared_radius, float(row.least_loss[0])
        return base - loss + moved + 8 * _UNIT * (base + loss + abs(moved))

    def centre_error(self, d: Vector, last: float) -> float:
        """Bound the error of c'.x of the row."""
        near, length = self.near, float(self.row.lengths[0])
        reach = float(np.abs(d) @ near.rows.lengths) + abs(last) * length
        relative = near.products.error + (len(d) + 4) * _UNIT
        return float(self.row.error[0]) + _SLACK * relative * reach * length

    def one_sided(self, d: Vector, side: float) -> float:
        """Return a lower bound on ``side f*(x)`` with an unpenalised bias."""
        near, own = self.near, self.own
        alpha = near.ball.alpha
        first = float(core.signed_sum(near.ball.problem.y, alpha))
        sigma = side * (first + float(d.sum()) - own)
        total = float(alpha.sum())
        off = (len(d) + 4) * _UNIT * (float(np.abs(d).sum()) + abs(own))
        off += 2 * _UNIT * abs(first) + (len(alpha) * _UNIT) ** 2 * total
        if not sigma > 2.0 * off:
            return -math.inf
        last = -side * sigma - own
        squared = self.squared(d, last)
        # sigma is off by `off` at most, and enters the centre times x/2.
        length = float(self.row.lengths[0])
        reach = float(np.abs(d) @ near.rows.lengths) + abs(last) * length
        longest = math.sqrt(max(near.ball.certificate.primal, 0.0) * 2.0) + reach
        squared += _SLACK * off * length * (longest + off * length)
        divisor = sigma + off if squared < 0.0 else sigma - off
        bound = -squared / divisor
        return bound - 8 * _UNIT * abs(bound)
