"""Bounds that some optima reach, so that none is too small and none is loose.

With orthogonal rows of length 1 and C = 1, the hinge is linear between any point and
the optimum, where every margin and every dual variable is 1. There the inequality (T)
of src/dualgap/answers/ball.py is an equality.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualgap.answers.ball import Ball
from dualgap.answers.between import Anchor, Between, QueryPoints
from dualgap.answers.bias import level_set, side_of
from dualgap.answers.kernel_regions import kernel_bounds, kernel_region_of
from dualgap.answers.left_out import LeftOut
from dualgap.answers.regions import ellipsoid_of, linear_bounds, region_of
from dualgap.data.rows import Points
from dualgap.kernel import RBF, KernelProblem
from dualgap.problems import BinaryProblem

SIGNS = np.array([1, -1, 1, 1], np.int8)


def orthogonal():
    return BinaryProblem(np.eye(4), SIGNS, 1.0, loss="hinge")


def points(seed):
    """Return a primal point within the margins, and dual variables in the box."""
    rng = np.random.default_rng(seed)
    return SIGNS * rng.uniform(-1.0, 1.0, 4), rng.uniform(0.0, 1.0, 4)


def reached(bound, distance):
    assert distance <= bound + 1e-12 * abs(distance)
    assert bound <= distance + 1e-6 * abs(distance) + 1e-7


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_on_the_ball(seed):
    ball = Ball.of(orthogonal(), *points(seed))
    reached(ball.radius, np.linalg.norm(ball.centre - SIGNS))
    # The farthest decision of the ball is in this direction.
    x = (SIGNS - ball.centre)[None]
    (lower,), (upper,) = linear_bounds([region_of(ball, Points.of(np.eye(4)))], x)
    reached(upper[0], x[0] @ SIGNS)
    reached(-lower[0], x[0] @ (x[0] - ball.centre))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.4])
def test_the_optimum_is_on_the_ball_of_a_kernel(alpha, bias):
    """One row, of the squared length 2 with a penalised bias."""
    X, square = np.ones((1, 1)), 1.0 + bias
    problem = KernelProblem(
        *(X, [1], 1.0 / square), kernel=RBF(1.0), loss="hinge", fit_intercept=bias
    )
    ball = Ball.of(problem, alpha=np.array([alpha]))
    reached(ball.radius, math.sqrt(square) * (1.0 / square - alpha))
    region = kernel_region_of(ball, X)
    (lower,), (upper,) = kernel_bounds(region, RBF(1.0), X, ball.alpha)
    reached(upper, 1.0)
    reached(-lower, 1.0 - 2.0 * alpha * square)


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_without_a_row_is_on_its_ball(seed):
    ball = Ball.of(orthogonal(), *points(seed))
    found = LeftOut(ball)
    for i in range(4):
        rest, alpha = SIGNS * (np.arange(4) != i), ball.alpha.copy()
        alpha[i] = 0.0
        centre = 0.5 * (ball.w + SIGNS * alpha)
        radius = np.linalg.norm(rest - centre)
        reached(found.radii[i], radius)
        # Without the row its margin is no larger.
        most = min(
            SIGNS[i] * centre[i] + radius, SIGNS[i] * ball.centre[i] + ball.radius
        )
        ends = sorted([SIGNS[i] * found.lower[i], SIGNS[i] * found.upper[i]])
        np.testing.assert_allclose(ends, [SIGNS[i] * centre[i] - radius, most], 1e-6)
        assert ends[0] <= 0.0 <= ends[1]


@pytest.mark.parametrize("scale", [1e-3, 1e-2])
def test_the_optimum_is_on_the_ellipsoid(scale):
    """All rows are within the margin, where the squared hinge is a parabola."""
    rng = np.random.default_rng(0)
    X, y, C = rng.normal(size=(6, 3)), np.array([1, -1, 1, -1, 1, -1]), 0.02
    problem = BinaryProblem(X, y, C, loss="squared_hinge")
    H = np.eye(3) + 2.0 * C * X.T @ X
    best = np.linalg.solve(H, 2.0 * C * X.T @ y)
    assert (y * (X @ best) < 0.9).all()
    alpha = 2.0 * C * (1.0 - y * (X @ best))
    w = best + scale * rng.normal(size=3)
    ball = Ball.of(problem, w, alpha * (1.0 + scale * rng.normal(size=6)))
    found = ellipsoid_of(ball, Points.of(X))
    off = best - found.centre
    reached(found.radius, math.sqrt(off @ H @ off))
    # So far reaches the decision in the direction that H makes of it.
    x = H @ off
    reached(found.widths(Points.of(x[None]))[0], x @ off)


def with_bias(seed):
    """Return a ball of the hinge with an unpenalised bias, and its optimum."""
    rng = np.random.default_rng(seed)
    problem = BinaryProblem(
        np.eye(4), BALANCED, 1.0, fit_intercept=True, penalize_intercept=False
    )
    w = BALANCED * rng.uniform(-0.5, 0.5, 4)
    alpha = np.repeat(rng.uniform(0.1, 0.9, 2), 2)  # adds up to 0 with the labels
    ball = Ball.of(problem, np.append(w, 0.25), alpha)
    return ball, BALANCED.astype(float)  # the best bias is 0


BALANCED = np.array([1, -1, 1, -1], np.int8)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_at_the_joint_bound(seed, sign):
    """The bound with mass sigma is an equality at z + 2 (w* - c)/sigma."""
    ball, best = with_bias(seed)
    side, c = side_of(ball, sign), ball.centre[:4]
    reached(ball.radius, np.linalg.norm(c - best))
    assert len(side.sigma) > 1
    z = side.mu @ np.eye(4)[side.rows]
    X = z + sign * 2.0 * (best - c) / side.sigma[:, None]
    far = np.linalg.norm(X[:, None] - z, axis=2)
    found = side.above(far, ball.squared_radius, ball.offset)
    for bound, x in zip(found, X, strict=True):
        reached(bound, sign * (best - c) @ x)


@pytest.mark.cases(None)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_joint_bound_is_the_largest_value_that_its_dual_point_allows(loss, sign):
    """The largest w.x + b by the inequality (T) of w, b and the moved dual point."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(12, 3))
    y = np.where(X[:, 0] + rng.normal(size=12) > 0.0, 1, -1)
    problem = BinaryProblem(
        X, y, 0.7, loss=loss, fit_intercept=True, penalize_intercept=False
    )
    ball = Ball.of(problem, rng.normal(size=4), rng.uniform(0.0, 0.7, 12))
    side, c, r = side_of(ball, sign), ball.centre[:3], math.sqrt(ball.squared_radius)
    delta = problem.loss.diagonal(problem.cost)
    for k, mu in enumerate(side.mu):
        z = mu @ X[side.rows]
        for x in (z + 0.1, X[0], 9.0 * X[1]):
            t = np.linalg.norm(x - z)
            sigma = min(side.sigma[k], 2.0 * r / math.hypot(t, math.sqrt(side.bend[k])))
            alpha = ball.alpha.copy()
            alpha[side.rows] -= sign * sigma * mu * y[side.rows]
            assert (0.0 <= alpha).all()
            assert (alpha <= problem.upper).all()
            rest = ball.losses.sum() - (alpha - 0.5 * delta * alpha**2).sum()
            at = ball.w[:3] + (alpha * y) @ X + sign * sigma * x
            largest = rest / sigma + at @ at / (4.0 * sigma)
            (found,) = side.some([k]).above(np.array([[t]]), r * r, 0.0)
            assert found == pytest.approx(largest - sign * (c @ x), rel=1e-6)
            (off,) = side.some([k]).above(np.array([[t]]), r * r, 0.5)
            assert off == pytest.approx(found + 0.5 * t, rel=1e-6)


@pytest.mark.parametrize("ws", [(0.6, 0.9), (0.9, 0.2), (-0.5, 0.5)])
def test_the_ball_between_two_values_of_C_is_the_largest_in_its_cell(ws):
    """r_t^2 is concave in t in the first case, so that its top is inside a cell."""
    Cs, balls = (0.7, 1.5), []
    problems = [BinaryProblem(np.eye(4), SIGNS, C, loss="hinge") for C in Cs]
    for problem, w in zip(problems, ws, strict=True):
        balls.append(Ball.of(problem, w * SIGNS, np.full(4, 0.4)))
    ends = np.linspace(0.0, 1.0, 4)
    found = Between(tuple(problems), *map(Anchor.of, balls), ends).squared_radii
    S = [ball.losses.sum() / C for ball, C in zip(balls, Cs, strict=True)]
    A = [ball.dual_terms.sum() for ball in balls]

    def squared(t):
        c = (1 - t) * balls[0].centre + t * balls[1].centre
        C = (1 - t) * Cs[0] + t * Cs[1]
        return c @ c + C * ((1 - t) * S[0] + t * S[1]) - (1 - t) * A[0] - t * A[1]

    for k in range(3):
        most = max(map(squared, np.linspace(ends[k], ends[k + 1], 2001)))
        assert found[k] == pytest.approx(most, rel=1e-6)


def test_the_level_set_at_the_optimum_is_its_bias():
    problem = BinaryProblem(
        np.eye(4), BALANCED, 1.0, fit_intercept=True, penalize_intercept=False
    )
    ball = Ball.of(problem, np.append(BALANCED.astype(float), 0.0), np.ones(4))
    low, high = level_set(ball)
    assert -1e-6 <= low <= 0.0 <= high <= 1e-6


def test_a_centre_whose_terms_cancel_is_off_by_their_rounding():
    """The sum of two rows of length 1e8 is 0, and their sizes add up to 2e8."""
    problem = BinaryProblem(np.full((2, 1), 1e8), [1, -1], 1.0, loss="hinge")
    ball = Ball.of(problem, np.zeros(1), np.ones(2))
    assert ball.v[0] == 0.0
    derived = 0.5 * 2e8 * 2.0**-53 * ((2 + 1 + 2) + 8)  # additions, and a multiple
    assert derived <= ball.offset <= 1.03 * derived
    apart = ball.radius - math.sqrt(ball.squared_radius)
    assert apart == pytest.approx(ball.offset, rel=1e-6)


def test_a_shift_of_the_diagonal_is_part_of_lengths_and_not_of_scores():
    problem = KernelProblem(
        np.eye(2), [1, -1], 1.0, kernel=RBF(1.0), loss="hinge", fit_intercept=False
    )
    problem.shift = 0.5
    ball = Ball.of(problem, alpha=np.array([0.25, 0.5]))
    np.testing.assert_array_equal(ball.squares, [1.5, 1.5])
    np.testing.assert_allclose(ball.products.error, 0.5 * ball.alpha, rtol=1e-6)


def test_decisions_for_every_C_between_two_fits_reach_their_bounds():
    """For C < 1 the optimum is w = C y, and b is any number up to 1 - C in size."""
    Cs, ends, balls = (0.3, 0.9), np.linspace(0.0, 1.0, 4), []
    bias = {"fit_intercept": True, "penalize_intercept": False}
    problems = [BinaryProblem(np.eye(4), BALANCED, C, loss="hinge", **bias) for C in Cs]
    for problem, C in zip(problems, Cs, strict=True):
        balls.append(Ball.of(problem, np.append(C * BALANCED, 0.0), np.full(4, C)))
    own = Between(tuple(problems), *map(Anchor.of, balls), ends)
    X = np.random.default_rng(0).normal(size=(5, 4))
    at = QueryPoints(
        *(X @ ball.centre[:4] for ball in balls), np.zeros(5), np.linalg.norm(X, axis=1)
    )

    def far(side):
        z = side.mu @ np.eye(4)[side.rows]
        return np.linalg.norm(X[:, None] - z, axis=2) * (1.0 + 1e-12)

    for k, (lower, upper) in enumerate(own.bounds(at, far)):
        C = Cs[0] + (Cs[1] - Cs[0]) * ends[k : k + 2, None]
        middle = C * (X @ BALANCED)
        most, least = (middle + 1.0 - C).max(axis=0), (middle - 1.0 + C).min(axis=0)
        assert (upper >= most - 1e-12).all()
        assert (lower <= least + 1e-12).all()
        np.testing.assert_allclose([lower, upper], [least, most], atol=1e-5)
