"""Losses: value, derivative, conjugate, box and diagonal against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualgap import LinearSVC, core
from dualgap.losses import (
    LOSSES,
    Hinge,
    Loss,
    SmoothedHinge,
    SquaredHinge,
    get_loss,
)
from dualgap.solvers import DCD

EPS = np.finfo(np.float64).eps

RECORDS = [
    *(record() for record in LOSSES.values()),
    *map(SmoothedHinge, (1e-3, 0.1, 10.0)),
]

losses = pytest.mark.parametrize("loss", RECORDS, ids=str)

MARGINS = np.concatenate(
    [np.linspace(-30.0, 3.0, 1001), [1.0, 0.0, 0.9, 0.999, -9.0, 1e6, -1e6]]
)


def kinks(loss: Loss) -> np.ndarray:
    """Margins where the derivative is not smooth."""
    knee = loss.slope * loss.curvature
    return np.array([1.0, 1.0 - knee] if 0.0 < knee < math.inf else [1.0])


def by_hand(loss: Loss, margin: float) -> float:
    """The three definitions as the papers write them."""
    if isinstance(loss, SmoothedHinge):
        if margin > 1:
            return 0.0
        if margin < 1 - loss.gamma:
            return 1 - margin - loss.gamma / 2
        return (1 - margin) ** 2 / (2 * loss.gamma)
    hinge = max(0.0, 1 - margin)
    return hinge**2 if isinstance(loss, SquaredHinge) else hinge


@losses
def test_value_is_the_definition(loss):
    expected = [by_hand(loss, m) for m in MARGINS]
    np.testing.assert_allclose(loss.value(MARGINS), expected, rtol=4 * EPS, atol=0)


@losses
def test_derivative_is_the_slope_of_the_value(loss):
    h = 1e-6
    smooth = MARGINS[np.abs(MARGINS[:, None] - kinks(loss)).min(axis=1) > 2 * h]
    difference = (loss.value(smooth - h) - loss.value(smooth + h)) / (2 * h)
    size = 1.0 + np.abs(loss.value(smooth))
    assert (np.abs(loss.derivative(smooth) - difference) <= 1e-9 * size).all()


@losses
def test_derivative_at_a_kink_is_a_subgradient(loss):
    # l(m') >= l(m) - b (m' - m) for every m'.
    for kink in kinks(loss):
        b = float(loss.derivative(kink))
        line = loss.value(kink) - b * (MARGINS - kink)
        assert (loss.value(MARGINS) >= line - 8 * EPS * (1 + np.abs(line))).all()


def test_derivative_of_the_hinge_at_its_kink_is_zero():
    assert Hinge().derivative(1.0) == 0.0
    assert Hinge().derivative(np.nextafter(1.0, 0.0)) == 1.0


@losses
def test_conjugate_is_the_maximum_over_a_grid(loss):
    # l*(-b) = max over m of -b m - l(m), the conjugate in the margin.
    m = np.linspace(-60.0, 5.0, 650_001)
    value = loss.value(m)
    inside = np.linspace(0.0, min(loss.slope, 20.0), 21)
    for b in inside:
        largest = (-b * m - value).max()
        conjugate = float(loss.conjugate(b))
        # The grid misses the maximum by at most half the curvature times (h/2)^2,
        # and at a kink by one slope times h/2; the kink m = 1 is a grid point.
        assert largest <= conjugate + 1e-12 * (1 + abs(conjugate))
        assert largest >= conjugate - 1e-4 * (1.0 + b)


@losses
def test_conjugate_outside_its_domain_is_infinite(loss):
    for b in (-1e-12, -1.0, -1e3):
        assert loss.conjugate(b) == math.inf
    if math.isinf(loss.slope):
        assert np.isfinite(loss.conjugate(1e6))
    else:
        assert np.isfinite(loss.conjugate(loss.slope))
        assert loss.conjugate(loss.slope * (1 + 2 * EPS)) == math.inf


@losses
def test_fenchel_young(loss):
    # l(m) + l*(-b) >= -b m, with equality where b is the derivative.
    b = np.linspace(0.0, min(loss.slope, 50.0), 101)
    m = MARGINS[:, None]
    gap = loss.value(m) + loss.conjugate(b) + b * m
    size = 1.0 + np.abs(loss.value(m)) + np.abs(b * m)
    assert (gap >= -8 * EPS * size).all()

    b = loss.derivative(MARGINS)
    gap = loss.value(MARGINS) + loss.conjugate(b) + b * MARGINS
    size = 1.0 + np.abs(loss.value(MARGINS)) + np.abs(b * MARGINS)
    assert (np.abs(gap) <= 8 * EPS * size).all()


@losses
def test_the_loss_is_the_maximum_that_its_record_says(loss):
    # l(u) = max over 0 <= b <= slope of b u - curvature b^2 / 2, u = 1 - m.
    b = np.linspace(0.0, min(loss.slope, 20.0), 20_001)
    for u in (-5.0, -1e-3, 0.0, 1e-3, 0.05, 0.5, 1.0, 5.0, 9.0):
        largest = (b * u - loss.curvature * b * b / 2).max()
        step = b[1] - b[0]
        off = loss.curvature * step * step / 8 + 1e-12
        assert largest <= float(loss.value(1.0 - u)) + 1e-12
        assert largest >= float(loss.value(1.0 - u)) - off


@losses
def test_box_and_diagonal_are_those_of_the_dual(loss):
    # -c l*(-a/c) = a - delta a^2 / 2 on 0 <= a <= U, and -inf outside.
    cost = np.array([1e-3, 0.5, 1.0, 40.0, 1e5])
    upper, delta = loss.upper(cost), loss.diagonal(cost)
    for share in (0.0, 1e-3, 0.5, 1.0):
        a = share * np.minimum(upper, 3.0 * cost)
        expected = a - delta * a * a / 2
        got = -cost * loss.conjugate(np.minimum(a / cost, loss.slope))
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=0)
    outside = 1.001 * upper
    if np.isfinite(outside).all():
        assert np.isinf(loss.conjugate(outside / cost)).all()


@losses
def test_a_row_without_cost_has_no_room(loss):
    assert loss.upper(np.array([0.0, 2.0]))[0] == 0.0
    assert loss.diagonal(np.array([0.0, 2.0]))[0] == 0.0


@losses
def test_the_core_computes_the_same(loss):
    record = core.Loss(loss.slope, loss.curvature)
    for m in MARGINS:
        u = 1.0 - m
        value, derivative = float(loss.value(m)), float(loss.derivative(m))
        assert record.value(u) == pytest.approx(value, rel=4 * EPS, abs=0)
        assert record.derivative(u) == pytest.approx(derivative, rel=4 * EPS, abs=0)


@losses
def test_arrays_of_any_shape_and_dtype(loss):
    margins = np.array([[0.5, 2.0], [-3.0, 1.0]], dtype=np.float32)
    for function in (loss.value, loss.derivative):
        result = function(margins)
        assert result.shape == (2, 2)
        assert result.dtype == np.float64
        assert float(function([-3.0])[0]) == float(function(-3))
    assert loss.conjugate(margins).shape == (2, 2)


def test_the_smoothed_hinge_nears_the_hinge():
    gamma = 1e-9
    off = Hinge().value(MARGINS) - SmoothedHinge(gamma).value(MARGINS)
    assert (off >= 0.0).all()
    assert (off <= gamma / 2 + EPS * (1 + np.abs(MARGINS))).all()


def test_names():
    assert all(type(get_loss(name)) is record for name, record in LOSSES.items())
    assert get_loss("smoothed_hinge") == SmoothedHinge(gamma=1.0)


def test_a_loss_of_ones_own_is_trained_where_a_solver_names_it():
    class Own(Hinge):
        name = "own"

    X, y = np.array([[1.0], [-2.0]]), [1, -1]
    text = "cannot train loss='own'; use loss='hinge' .*, or name it in `losses` of a"
    with pytest.raises(ValueError, match=text):
        LinearSVC(loss=Own()).fit(X, y)
    solver = type("OwnDCD", (DCD,), {"losses": (*DCD.losses, "own")})()
    assert LinearSVC(loss=Own(), solver=solver).fit(X, y).certificate_.certified


@losses
def test_a_record_is_taken_as_it_is(loss):
    assert get_loss(loss) is loss


def test_a_record_cannot_be_changed():
    with pytest.raises(AttributeError):
        SmoothedHinge().gamma = 2.0
    with pytest.raises(AttributeError):
        Hinge().slope = 2.0
