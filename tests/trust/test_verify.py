"""Certificates of nasty problems, in exact arithmetic; and that a lie is seen.

benchmarks/trust/verify.py checks thousands of the same problems.
"""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from dualgap.certificate import Status

from ..conftest import ROOT
from ..proofs import certificate
from .attacks import ATTACKS, Tally, close, counts, run
from .verifier import (
    SVM,
    Claim,
    CrammerSinger,
    Exact,
    Kernel,
    Rows,
    exponential,
    faults,
)

PROBLEMS = 300


@pytest.fixture(scope="module", autouse=True)
def _no_cluster_is_left():
    yield
    close()


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", ATTACKS)
def test_no_certificate_is_false(name):
    tally = Tally()
    for problem in range(counts(PROBLEMS)[name]):
        tally.add(run(name, problem))
    assert tally.faults == []
    assert tally.certificates + tally.refused > 0


@pytest.mark.long
def test_the_script_checks_one_problem_and_prints_a_table():
    script = ROOT / "benchmarks" / "trust" / "verify.py"
    done = subprocess.run(
        [sys.executable, str(script), "--classes", "linear", "--only", "1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2].startswith("all")


# ---------------------------------------------------------------- the verifier itself


def test_exact_numbers_are_those_that_floats_are():
    rng = np.random.default_rng(0)
    a = rng.standard_normal(50) * 10.0 ** rng.integers(-300, 300, 50)
    a[:4] = [0.0, 5e-324, -1.7e308, 2.0**-1022]
    b = rng.standard_normal(50)
    exactly = [Fraction(v) for v in a]
    assert (Exact.of(a) @ b).fraction() == sum(
        x * Fraction(z) for x, z in zip(exactly, b, strict=True)
    )
    assert (abs(Exact.of(a)) - b).sum().fraction() == sum(
        abs(x) - Fraction(z) for x, z in zip(exactly, b, strict=True)
    )
    assert [Exact.of(a)[i].fraction() for i in range(50)] == exactly


LOSSES = {
    "hinge": (1, 0.0, Fraction(1, 2)),
    "squared_hinge": (1, 0.0, Fraction(1, 4)),
    "smoothed_hinge": (1, 0.25, Fraction(1, 2) - Fraction(1, 8)),
    "epsilon_insensitive": (1.25, 0.25, Fraction(1, 2)),
    "squared_epsilon_insensitive": (1.25, 0.25, Fraction(1, 4)),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_P_and_D_of_one_row(loss):
    """x = 2, w = 1/4, c = 1/2, a = 1/8."""
    target, parameter, lost = LOSSES[loss]
    for points, model in (
        (Rows([[2.0]]), [0.25]),
        (Kernel([[4.0]]), [0.125]),
    ):
        svm = SVM(points, loss, [target], [0.5], parameter)
        assert svm.primal(model) == Fraction(1, 32) + lost / 2
        delta = {"squared": 1, "smoothed": Fraction(1, 2)}.get(loss.split("_")[0], 0)
        linear = Fraction(1, 8) * Fraction(target)
        if loss.endswith("insensitive"):
            linear -= Fraction(1, 8) * Fraction(1, 4)
        assert svm.dual([0.125]) == linear - Fraction(1 + Fraction(delta, 4), 32)
        assert svm.in_box([0.5])
        assert svm.in_box([0.75]) == loss.startswith("squared")
        assert svm.in_box([-0.25]) == loss.endswith("insensitive")


def test_a_penalised_bias_is_a_constant_feature_and_a_free_one_is_not():
    rng = np.random.default_rng(1)
    X, y, cost = rng.standard_normal((6, 3)), np.array([1, -1] * 3), rng.random(6)
    w, alpha = rng.standard_normal(4), cost * rng.random(6)
    whole = SVM(Rows(np.column_stack([X, np.full(6, 4.0)])), "hinge", y, cost)
    parts = SVM(Rows(X), "hinge", y, cost, bias="penalised", scaling=4.0)
    free = SVM(Rows(X), "hinge", y, cost, bias="free")
    assert parts.primal(w[:3], 4.0 * w[3]) == whole.primal(w)
    assert parts.dual(y * alpha) == whole.dual(y * alpha)
    apart = parts.primal(w[:3], 4.0 * w[3]) - free.primal(w[:3], 4.0 * w[3])
    assert apart == Fraction(w[3]) ** 2 / 2
    point = free.feasible(y * alpha)
    assert point is not None
    assert point.sum().fraction() == 0
    assert free.in_box(point)
    assert free.dual(point) <= free.primal(w[:3], 0.5)


def test_the_sum_of_one_class_is_reached_or_has_no_room():
    svm = SVM(
        Rows(np.eye(3)), "one_class", np.zeros(3), [0.5, 1.0, 0.0], bias="free",
        total=0.75,
    )  # fmt: skip
    for alpha in ([0.5, 1.0, 0.0], [0.0, 0.0, 0.0], [0.1, 0.2, 0.0]):
        point = svm.feasible(np.array(alpha))
        assert point is not None
        assert point.sum().fraction() == Fraction(3, 4)
        assert svm.in_box(point)
    svm.total = 2.0
    assert svm.feasible(np.zeros(3)) is None


def test_two_classes_together_are_a_hinge_of_the_difference():
    rng = np.random.default_rng(2)
    X, y, cost = rng.standard_normal((5, 2)), np.array([0, 1, 0, 1, 1]), rng.random(5)
    w = rng.standard_normal(2)
    together = CrammerSinger(X, y, cost, 0.0)
    # ||w_1||^2 + ||w_0||^2 is 2 ||w||^2 for w_1 = -w_0 = w, whose difference is 2 w.
    svm = SVM(Rows(2 * X), "hinge", np.where(y == 1, 1, -1), cost)
    length = sum(Fraction(v) ** 2 for v in w)
    assert together.primal([-w, w], [0.0, 0.0]) == svm.primal(w) + length / 2
    table = np.outer(cost, [-0.5, 0.5]) * np.where(y == 1, 1, -1)[:, None]
    assert together.in_box(table)
    assert not together.in_box(-table)
    assert together.dual(table) <= together.primal([-w, w], [0.0, 0.0])


@pytest.mark.parametrize("power", [1, 2])
def test_exponentials_are_right_to_200_bits(power):
    X = np.array([[0.0, 1e8], [3.0, 1e8 + 4.0], [3.0, 1e12]])
    K = exponential(X, 0.5, power).K
    far = 7.0 if power == 1 else 25.0
    assert K[0, 0].fraction() == 1
    assert K[0, 2].fraction() == 0
    assert float(K[0, 1].fraction()) == pytest.approx(math.exp(-0.5 * far), rel=1e-15)


def one_row(primal, dual):
    """x = 1, C = 1/2, so that P* = D* = 3/8 at w = alpha = 1/2."""
    svm = SVM(Rows([[1.0]]), "hinge", [1], [0.5])
    claim = Claim("it", certificate(primal, dual), ([0.5], 0.0), [0.5])
    return [fault.what for fault in faults(svm, [claim])]


@pytest.mark.parametrize(
    ("primal", "dual", "text"),
    [
        (0.375, 0.375, None),
        (0.5, 0.25, None),
        (math.inf, -math.inf, None),
        (0.375 - 1e-16, 0.375, "P is"),
        (0.375, 0.375 + 1e-16, "is above P*"),
        (0.25, 0.25, "is below P*"),
        (math.nan, 0.0, "not a number"),
    ],
)
def test_the_verifier_sees_a_false_certificate(primal, dual, text):
    found = one_row(primal, dual)
    assert (found == []) if text is None else any(text in what for what in found)


def test_the_verifier_sees_a_point_that_is_not_what_was_claimed():
    svm = SVM(Rows([[1.0]]), "hinge", [1], [0.5])
    certified = certificate(0.5, 0.4, tol=0.1, status=Status.CERTIFIED)
    assert "certified without a gap to show for it" in [
        fault.what.removeprefix("it: ")
        for fault in faults(svm, [Claim("it", certified, ([0.0], 0.0), [0.5])])
    ]
    outside = Claim("it", certificate(0.5, 0.0), ([0.5], 0.0), [0.75])
    assert [f.what for f in faults(svm, [outside])] == [
        "it: dual variables outside the box"
    ]
    infinite = Claim("it", certificate(0.5, 0.0), ([math.inf], 0.0), [0.5])
    assert [f.what for f in faults(svm, [infinite])] == [
        "it: points that are not finite"
    ]


def test_what_60_digits_leave_open_is_no_fault():
    K = exponential(np.array([[0.0], [1.0]]), 1.0, 2)
    svm = SVM(K, "hinge", [1, -1], [1.0, 1.0], bias="free")
    value = svm.primal([1.0, -1.0], 0.0)
    assert 0 < svm.unknown([1.0, -1.0], 0.0) < value / 2**180
