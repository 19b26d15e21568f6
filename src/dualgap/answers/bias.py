"""Bounds on w*.x + b* where the bias b is not penalised.

The ball of :mod:`~dualgap.answers.ball` does not bound b*. Two other bounds do.

**Joint bound.** Lower the signed mass of dual variables: alpha'_i = alpha_i - sigma
mu_i y_i with mu >= 0, sum mu = 1, inside the box. Then v' = v - sigma z with z = sum
mu_i x_i, the duals sum to -sigma, and (T) becomes a bound on sigma b*. Maximised over
w*, with r and c of the ball and delta_i the diagonal of the dual,

    f*(x) <= c.x + sum_i mu_i (y_i (1 - delta_i alpha_i) - c.x_i)
             + r^2 / sigma + sigma/4 (||x - z||^2 + 2 sum_i delta_i mu_i^2)

for every optimum (w*, b*), and every smaller sigma, because the box allows it too. The
lower bound is the same for -f, with y and c negated. Regression lowers a_i at the price
``y_i - epsilon`` while it is positive, and ``y_i + epsilon`` below.

**Level set.** b* satisfies ``1/2 max(0, ||c|| - r)^2 + sum_i c_i l(y_i (c.x_i + b) + r
||x_i||) <= P``, which is convex in b.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..losses import Vector
from ..problems.binary import BinaryProblem
from ..problems.kernel import KernelProblem
from ..problems.kernel_boxes import KernelRegression
from ..problems.regression import RegressionProblem
from ..problems.rounding import Rounding
from .ball import Ball, Estimate, targets_of

_SLACK, _UNIT = Rounding.slack, Rounding.unit

#: Masses that are tried, in units of ``2 r / (root mean square length of rows)``.
_MASSES = 2.0 ** np.arange(-2.0, 9.0, 2.0)

#: Share of a capacity that is used, so that rounding does not leave the box.
_INSIDE = 1.0 - 1e-12


@dataclass(frozen=True)
class Side:
    """Joint bound from one side, for several choices of mu."""

    #: Largest mass that each choice allows, shape (K,).
    sigma: Vector
    #: Upper bounds on ``sum_i mu_i (y_i (1 - delta_i alpha_i) - c.x_i)``, shape (K,).
    level: Vector
    #: ``2 sum_i delta_i mu_i^2``, shape (K,).
    bend: Vector
    #: Rows of the problem with a positive mu in any choice, shape (m,).
    rows: NDArray[np.intp]
    #: Weights of these rows, shape (K, m).
    mu: NDArray[np.float64]

    @classmethod
    def nothing(cls) -> Side:
        """Return a side without choices, which bounds nothing."""
        none = np.empty(0)
        return cls(none, none, none, np.empty(0, np.intp), np.empty((0, 0)))

    def above(
        self, distances: NDArray[np.float64], squared_radius: float, offset: float
    ) -> Vector:
        """Return upper bounds on ``+-(f*(x) - c.x)``, shape (n,).

        `distances`: upper bounds on ``||x - z_k||``, shape (n, K). `squared_radius`,
        `offset`: as in :class:`Ball`.
        """
        if not len(self.sigma):
            return np.full(len(distances), np.inf)
        cost = self.level + self.cost(distances, squared_radius, offset)
        best: Vector = cost.min(axis=1)
        return best + 8 * _UNIT * np.abs(best)

    def some(self, choices: Sequence[int]) -> Side:
        """Return the side with some of its choices of mu."""
        sigma, level, bend = (v[choices] for v in (self.sigma, self.level, self.bend))
        return Side(sigma, level, bend, self.rows, self.mu[choices])

    def cost(
        self, distances: NDArray[np.float64], squared_radius: float, offset: float
    ) -> NDArray[np.float64]:
        """Return the part of the bound that the ball costs; see :meth:`above`."""
        r, t = math.sqrt(squared_radius), distances
        if self.bend.any():
            t = np.sqrt(distances * distances + self.bend)
        # r t, or r^2/sigma + sigma t^2/4 where sigma t is less than 2 r
        found: NDArray[np.float64] = t * (-0.5 * self.sigma)
        found += r
        np.maximum(found, 0.0, out=found)
        found *= found
        with np.errstate(over="ignore"):
            found /= self.sigma
        found += r * t
        if offset > 0.0:
            found += offset * distances
        found *= 1.0 + 64 * _UNIT
        return found


class Steps(NamedTuple):
    """Dual variables whose signed value may fall, or rise, one entry for each step."""

    #: Rows of the problem, shape (m,).
    rows: NDArray[np.intp]
    #: ``y_i (1 - delta_i alpha_i) - c.x_i``, and a bound on its error, shape (m,).
    price: Vector
    error: Vector
    #: How far the variable may move inside its box, shape (m,).
    room: Vector
    #: Diagonal of the dual, shape (m,).
    delta: Vector


def side_of(ball: Ball, sign: int, most: int | None = None) -> Side:
    """Return the joint bound from above (sign 1) or from below (sign -1).

    `ball` belongs to a problem with an unpenalised bias, and a finite radius. `most`:
    largest number of rows that take part. If the box does not allow the dual sum to
    change on this side, there are no choices, and no bound exists.
    """
    steps = steps_of(ball.problem, ball.alpha, ball.products, sign)
    scale = math.sqrt(max(float(ball.squares.mean()), 1e-300))
    unit = 2.0 * max(math.sqrt(ball.squared_radius), 1e-150) / scale
    return joint_sides([steps], unit * _MASSES, most)[0]


def joint_sides(
    ends: Sequence[Steps], masses: Vector, most: int | None = None
) -> list[Side]:
    """Return the joint bounds of one or two dual points, with the same mu.

    `ends` belong to the dual points, in the same order of rows. `masses`: increasing
    values of sigma to try, shape (m,). `most`: largest number of rows that take part.
    """
    room = np.min([end.room for end in ends], axis=0)
    beta = np.mean([end.price for end in ends], axis=0)
    delta = np.mean([end.delta for end in ends], axis=0)
    some = np.flatnonzero(room > 0.0)
    order = some[np.argsort(beta[some], kind="stable")][:most]
    beta, room, delta = beta[order], room[order], delta[order]
    total = float(room.sum())
    fills: list[Vector] = []
    for mass in masses:
        if not mass < math.inf or not total > 0.0:
            break
        fills.append(_fill(beta, room, delta, float(mass)))
        if mass >= total:
            break
    fills = [fill for fill in fills if fill.sum() > 0.0]
    used = int(max((np.flatnonzero(fill)[-1] + 1 for fill in fills), default=0))
    table = np.array(fills).reshape(len(fills), len(beta))[:, :used]
    sums = table.sum(axis=1)
    mu, at = table / sums[:, None], order[:used]
    sides = []
    for end in ends:
        off = end.error[at] + used * _UNIT * np.abs(end.price[at])
        level = mu @ end.price[at] + _SLACK * (mu @ off)
        bend = 2.0 * (mu * mu) @ end.delta[at]
        sides.append(Side(sums * _INSIDE, level, bend, end.rows[at], mu))
    return sides


def steps_of(
    problem: BinaryProblem | KernelProblem | KernelRegression,
    alpha: Vector,
    products: Estimate,
    sign: int,
) -> Steps:
    """Return the steps of a dual point: down with sign 1, up with sign -1.

    With sign -1 the problem is the one with negated labels or targets.

    - `alpha`: shape (n,).
    - `products`: as in :class:`Ball`.
    """
    upper, c = problem.upper, sign * products.values
    rows = np.arange(len(alpha))
    delta = np.asarray(problem.loss.diagonal(problem.cost), np.float64)
    error = products.error + 32 * _UNIT * np.abs(c)
    if isinstance(problem, (RegressionProblem, KernelRegression)):
        a, target, epsilon = (
            sign * alpha,
            sign * targets_of(problem),
            problem.loss.epsilon,
        )
        most = -problem.lower if sign > 0 else upper  # how far below 0 a may be
        price = np.concatenate([target - epsilon - c, target + epsilon - c])
        room = np.concatenate([np.maximum(a, 0.0), most + np.minimum(a, 0.0)])
        rows, delta, error = np.tile(rows, 2), np.tile(delta, 2), np.tile(error, 2)
    else:
        y = sign * problem.y.astype(np.float64)
        price = y * (1.0 - delta * alpha) - c
        room = np.where(y > 0.0, alpha, upper - alpha)
    error += 16 * _UNIT * np.abs(price)
    return Steps(rows, price, error, room * _INSIDE, delta)


def _fill(beta: Vector, room: Vector, delta: Vector, mass: float) -> Vector:
    """Spread a mass over rows, cheapest first, up to the room of each.

    With delta = 0 the cheapest rows are filled. Otherwise the price of a row rises with
    its mass, and all rows that take part end at the same price.
    """
    if not delta.any():
        before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
        return np.clip(mass - before, 0.0, room)
    widths = np.cumsum(1.0 / delta)
    prices = (mass + np.cumsum(beta / delta)) / widths
    last = np.flatnonzero(prices >= beta)
    price = prices[last[-1]] if last.size else prices[0]
    return np.clip((price - beta) / delta, 0.0, np.minimum(room, mass))


def level_set(ball: Ball) -> tuple[float, float]:
    """Return an interval that contains every optimal unpenalised bias.

    An end is infinite where the search finds no bound.
    """
    problem, r = ball.problem, ball.radius
    if not r < math.inf:
        return -math.inf, math.inf
    values, error = ball.products
    reach = r * np.sqrt(ball.squares) * (1.0 + 1e-9) + error
    length = math.sqrt(max(_squared_norm(ball), 0.0)) * (1.0 - 1e-9)
    own = 0.5 * max(0.0, length - r) ** 2 * (1.0 - 1e-9)
    primal = ball.certificate.primal
    signs = ball.signs

    def outside(b: float) -> bool:
        """Whether the level set certainly excludes b."""
        f = values + b
        slack = reach + 8 * _UNIT * (np.abs(values) + abs(b))
        if ball.of_regression:
            rest = ball.targets - f
            near = np.maximum(np.abs(rest) - slack, 0.0)
            losses = problem.loss.value(np.copysign(near, rest))
        else:
            losses = problem.loss.value(signs * f + slack)
        least = own + float(problem.cost @ losses) * (1.0 - 1e-9)
        return least * (1.0 - 1e-9) > primal

    if outside(ball.bias):  # the search needs a point inside
        return -math.inf, math.inf
    step = 1.0 + abs(ball.bias)
    return -_edge(lambda b: outside(-b), -ball.bias, step), _edge(
        outside, ball.bias, step
    )


def _edge(outside: Callable[[float], bool], inner: float, step: float) -> float:
    """Return a point above `inner` that is outside, close to the edge; inf if none."""
    outer = inner + step
    for _ in range(60):
        if outside(outer):
            break
        inner, step = outer, 2.0 * step
        outer = inner + step
    else:
        return math.inf
    for _ in range(40):
        middle = 0.5 * (inner + outer)
        if not inner < middle < outer:
            break
        if outside(middle):
            outer = middle
        else:
            inner = middle
    return outer


def _squared_norm(ball: Ball) -> float:
    """Return a lower bound on ``||c||^2``, up to a relative error of 1e-12."""
    if ball.centre.size:
        return float(ball.centre @ ball.centre)
    values, error = ball.products
    signed = ball.alpha * ball.signs
    return float(signed @ values - np.abs(signed) @ error)
