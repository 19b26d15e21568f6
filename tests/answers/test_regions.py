"""Bounds on the optimum of small odd problems, against exact optima."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dualgap.answers.ball import Ball
from dualgap.answers.kernel_regions import kernel_bounds, kernel_region_of
from dualgap.answers.regions import linear_bounds, region_of
from dualgap.data.rows import Points

from .exact import KERNEL, LINEAR, case, loose_point


@pytest.fixture(autouse=True)
def _one_thread():
    """Let BLAS start no threads for products of a few numbers."""
    with threadpool_limits(1, "blas"):
        yield


def slack_of(given):
    """Bound the error of the reference at the new rows."""
    size = 1.0 + np.abs(given.decisions)
    return given.exact.slack * given.reach + 1e-6 * size


def linear_ball(rng, loss, bias):
    given = case(rng, loss, bias)
    return given, Ball.of(given.problem, *loose_point(rng, given))


def check_linear(rng, loss, bias):
    """Check the bounds of one random problem."""
    given, ball = linear_ball(rng, loss, bias)
    constant = 1.0 if bias == "penalised" else 0.0
    region = region_of(ball, Points.of(given.X, constant))
    lower, upper = linear_bounds([region], given.new)
    slack = slack_of(given)
    assert (lower[:, 0] <= given.decisions + slack).all()
    assert (given.decisions <= upper[:, 0] + slack).all()
    low, high = region.coef_bounds()
    w = given.exact.w[: given.X.shape[1]]
    off = given.exact.slack + 1e-6 * (1 + np.abs(w))
    assert (low <= w + off).all()
    assert (w <= high + off).all()


def check_kernel(rng, loss, bias):
    given = case(rng, loss, bias, kernel=True)
    _, alpha = loose_point(rng, given)
    ball = Ball.of(given.problem, alpha=alpha)
    region = kernel_region_of(ball, given.X)
    kernel = given.problem.gram.kernel
    values = kernel.block(given.new, slice(None), given.X[region.rows], np.float64)
    lower, upper = kernel_bounds(region, kernel, given.new, values @ region.coef)
    slack = slack_of(given)
    assert (lower <= given.decisions + slack).all()
    assert (given.decisions <= upper + slack).all()


@pytest.mark.cases(None)
@pytest.mark.parametrize(("loss", "bias"), LINEAR)
def test_bounds_contain_the_exact_decisions(loss, bias):
    rng = np.random.default_rng(1)
    for _ in range(15):
        check_linear(rng, loss, bias)


@pytest.mark.cases(None)
@pytest.mark.parametrize(("loss", "bias"), KERNEL)
def test_bounds_contain_the_exact_decisions_of_kernels(loss, bias):
    rng = np.random.default_rng(2)
    for _ in range(15):
        check_kernel(rng, loss, bias)


@pytest.mark.long
@pytest.mark.parametrize(("loss", "bias"), LINEAR)
def test_bounds_contain_the_exact_decisions_of_many_problems(loss, bias):
    rng = np.random.default_rng(3)
    for _ in range(300):
        check_linear(rng, loss, bias)


@pytest.mark.long
@pytest.mark.parametrize(("loss", "bias"), KERNEL)
def test_bounds_contain_the_exact_decisions_of_many_kernel_problems(loss, bias):
    rng = np.random.default_rng(4)
    for _ in range(300):
        check_kernel(rng, loss, bias)
