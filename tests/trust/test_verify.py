"""Certificates and statements about optima, in exact arithmetic; a lie is seen.

benchmarks/trust/verify.py checks thousands of the same problems.
"""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import dualgap
from dualgap import SVC, SVR, LinearSVC, LinearSVCCV, LinearSVR
from dualgap.certificate import Status
from dualgap.models import WhatIf

from .. import qp
from ..conftest import ROOT
from ..proofs import certificate
from . import hard_margin, lemke, logistic, nasty, nu, squares, statements
from .attacks import close
from .statements import ATTACKS, Tally, counts, run
from .verifier import (
    BEYOND,
    HALF,
    SVM,
    Claim,
    CrammerSinger,
    Exact,
    Kernel,
    Rows,
    Statement,
    enclosed,
    exponential,
    faults,
    semidefinite,
)

PROBLEMS = 300


@pytest.fixture(scope="module", autouse=True)
def _no_cluster_is_left():
    yield
    close()


@pytest.mark.cases(20)
@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_is_false(name):
    tally = Tally()
    for problem in range(counts(PROBLEMS)[name]):
        tally.add(run(name, problem))
    assert tally.faults == []
    assert tally.certificates + tally.statements + tally.refused > 0


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
    assert Exact.of(a).fractions() == exactly
    thirds = [v / 3 for v in exactly]
    assert Exact.vector(thirds).fractions() == thirds
    assert (Exact.vector(thirds) @ b).fraction() == sum(
        x * Fraction(z) for x, z in zip(thirds, b, strict=True)
    )
    assert ((Exact.vector(thirds) - a) * 3).fractions() == [-2 * v for v in exactly]
    assert Exact.vector(thirds).above(a).tolist() == [v < 0 for v in a]


def test_P_of_huber_regression():
    """w = 1/2, b = 1, s = 1/4: residuals 1/4, an inlier, and -4."""
    posed = squares.Huber([[1.0], [2.0]], [1.75, -2.0], [2.0, 3.0], 1.5)
    outlier = Fraction(1, 4) + Fraction(3, 2) * (8 - Fraction(3, 8))
    assert posed.primal([0.5], (1.0, 0.25)) == Fraction(1, 8) + 2 * HALF + 3 * outlier


LOSSES = {
    "hinge": (1, 0.0, Fraction(1, 2)),
    "squared_hinge": (1, 0.0, Fraction(1, 4)),
    "smoothed_hinge": (1, 0.25, Fraction(1, 2) - Fraction(1, 8)),
    "epsilon_insensitive": (1.25, 0.25, Fraction(1, 2)),
    "squared_epsilon_insensitive": (1.25, 0.25, Fraction(1, 4)),
    "quantile": (1.25, 0.25, Fraction(3, 16)),
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
        if loss == "quantile":
            inside = [svm.in_box([a]) for a in (0.125, -0.375, 0.126, -0.376)]
            assert inside == [True, True, False, False]
            continue
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
    same = exponential(np.full((2, 1), 1e150), 1e300, power).K  # of units that large
    assert all(v == 1 for row in (same[0], same[1]) for v in row.fractions())


# ------------------------------------------------------------------- exact optima


def test_pivots_solve_degenerate_problems_without_a_cycle():
    """Equal rows and rows of zeros, whose pivots all tie."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        n = int(rng.integers(1, 9))
        A = rng.integers(-1, 2, (n, 2)).astype(object)
        Q, p = A @ A.T + Fraction(0), [Fraction(int(v)) for v in rng.integers(-1, 2, n)]
        x, _ = lemke.maximise(Q, p, [([k], Fraction(1)) for k in range(n)])
        slope = [v - sum(row * x) for v, row in zip(p, Q, strict=True)]
        for v, s in zip(x, slope, strict=True):
            assert 0 <= v <= 1
            assert s <= 0 or v == 1
            assert s >= 0 or v == 0


@pytest.mark.parametrize(("loss", "curvature"), [
    ("hinge", 0.0), ("squared_hinge", 0.5), ("smoothed_hinge", 0.25)])  # fmt: skip
def test_optima_are_those_of_another_solver(loss, curvature):
    rng = np.random.default_rng(5)
    for _ in range(5):
        n = int(rng.integers(1, 9))
        X, y = rng.standard_normal((n, 3)), rng.choice([-1, 1], n)
        cost = rng.choice([0.0, 0.5, 3.0], n) + 0.5
        svm = SVM(Rows(X), loss, y, cost, 0.25, bias="penalised", scaling=2.0)
        Z = y[:, None] * np.column_stack([X, np.full(n, 2.0)])
        other = qp.optimum(Z, cost, curvature, loss != "squared_hinge")
        assert other.lower <= svm.optimum.value * (1 + Fraction(1, 10**14))
        assert svm.optimum.value <= other.upper * (1 + 1e-14)
        assert svm.optimum.bias == 4 * svm.optimum.duals.sum().fraction()


def box(svm, total=None):
    """Return a problem of regression or of one class for a generic solver."""
    K = np.array([[float(v.fraction()) for v in row] for row in svm.points.gram()])
    cost = np.array([float(v) for v in svm.cost.fractions()])
    p = np.array([float(v) for v in svm.target.fractions()])
    high = np.array([float(v) for v in svm.above.fractions()])
    low = np.array([-float(v) for v in svm.below.fractions()])
    if svm.loss == "one_class":
        low = 0.0 * cost
    return qp.Box(K, p, low, high, svm.epsilon, total=total)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "quantile", "one_class"])
def test_optima_with_a_free_bias_are_those_of_another_solver(loss):
    rng = np.random.default_rng(6)
    for _ in range(5):
        n, total = int(rng.integers(2, 8)), 0.0
        X, target, cost = (
            rng.standard_normal((n, 2)),
            rng.standard_normal(n),
            np.ones(n),
        )
        if loss == "one_class":
            total = 0.5 * n
        svm = SVM(
            Rows(X), loss, target, cost, 0.125 * (total == 0), "free", total=total
        )
        low, high = box(svm, total).optimum()
        size = 1e-8 * (1.0 + abs(low))
        assert low - size <= svm.optimum.value <= high + size
        assert svm.optimum.biases[0] <= svm.optimum.bias <= svm.optimum.biases[1]


def test_all_optimal_biases_are_known():
    """C is too small for a free support vector, or one class is alone."""
    X, C = np.array([[-1.0], [1.0]]), 0.125
    svm = SVM(Rows(X), "hinge", [-1, 1], [C, C], bias="free")
    assert svm.optimum.model.fractions() == [Fraction(1, 4)]
    assert svm.optimum.biases == (-Fraction(3, 4), Fraction(3, 4))
    assert svm.optimum.decisions(Exact.of([[2.0]])) == [
        (-Fraction(1, 4), Fraction(5, 4))
    ]
    alone = SVM(Rows(X), "squared_hinge", [1, 1], [C, C], bias="free").optimum
    assert (alone.value, alone.biases) == (0, (1, BEYOND))
    tube = SVM(Rows(0 * X), "epsilon_insensitive", [1.0, 2.0], [C, C], 1.0, "free")
    assert tube.optimum.biases == (1, 2)
    level = SVM(Rows(0 * X), "smoothed_hinge", [-1, 1], [C, C], 0.5, "free").optimum
    assert level.biases == (-Fraction(1, 2), Fraction(1, 2))


def test_the_optimum_of_all_classes_together_is_that_of_the_difference():
    rng = np.random.default_rng(7)
    X, y, cost = rng.standard_normal((5, 2)), np.array([0, 1, 0, 1, 1]), rng.random(5)
    found = CrammerSinger(X, y, cost, 2.0).optimum
    # For w_1 = -w_0 = w the sum of squares is 2 ||w||^2: half of this is a hinge.
    twice = np.column_stack([2.0 * X, np.full(5, 4.0)]) / math.sqrt(2.0)
    svm = SVM(Rows(twice), "hinge", np.where(y == 1, 1, -1), cost)
    assert float(found.value) == pytest.approx(float(svm.optimum.value), rel=1e-14)
    (W, biases) = found.model
    assert [-v for v in W[0]] == W[1]
    assert biases[0] == -biases[1]


def test_optima_over_exponential_kernels_are_near_the_exact_ones():
    X = nasty.rows(np.random.default_rng(8), 6, 2)
    svm = SVM(exponential(X, 0.5, 2), "hinge", [1, -1] * 3, np.ones(6), bias="free")
    found = svm.optimum
    assert 0 < found.off < Fraction(1, 2**150)
    other = SVM(exponential(X, 0.5, 2), "hinge", [1, -1] * 3, np.ones(6), bias="free")
    other.points.K = other.points.K + Exact(np.diag([1] * 6).astype(object), -170)
    assert 0 < abs(other.optimum.value - found.value) < Fraction(1, 2**150)


def test_indefinite_matrices_have_no_optimum():
    assert semidefinite(Exact.of([[1.0, 1.0], [1.0, 1.0]]))
    assert semidefinite(Exact.of(np.zeros((2, 2))))
    for K in ([[1.0, 1.0], [1.0, 1.0 - 1e-16]], [[0.0, 1e-300], [1e-300, 1.0]]):
        assert not semidefinite(Exact.of(K))
        with pytest.raises(AssertionError, match="indefinite"):
            SVM(Kernel(K), "hinge", [1, -1], [1.0, 1.0]).optimum  # noqa: B018
    # What has no weight does not count.
    assert SVM(Kernel(K), "hinge", [1, -1], [0.0, 1.0]).optimum.value == Fraction(1, 2)


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
        (0.375 - 1e-16, 0.25, "is below P*"),
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


def test_the_optimum_convicts_what_no_other_point_does():
    """The claims tell no point, and their interval has a gap."""
    svm = SVM(Rows([[1.0]]), "hinge", [1], [0.5])
    claims = [
        Claim("above", certificate(1.0, 0.376)),
        Claim("below", certificate(0.374, 0.1)),
        Claim("sound", certificate(0.5, 0.25), ([0.0], 0.0)),
        *enclosed("w", [0.5, 0.6], [0.5, 0.7], [(Fraction(1, 2), Fraction(1, 2))] * 2),
        Statement("a label", math.inf),
    ]
    found = {fault.claim: fault for fault in faults(svm, claims)}
    assert sorted(found) == [0, 1, 4, 5]
    assert found[4].size == pytest.approx(0.2)


THIRD = (Fraction(1, 3), Fraction(1, 3))


@pytest.mark.parametrize(
    ("low", "high", "inside", "true"),
    [
        (0.3, 0.4, THIRD, True),
        (-math.inf, 0.4, THIRD, True),
        (1.0, math.inf, (1, BEYOND), True),
        (1 / 3, math.nextafter(1 / 3, 1.0), THIRD, True),
        (0.3, 1 / 3, THIRD, False),  # by less than a unit in the last place
        (math.nextafter(1 / 3, 1.0), 0.4, THIRD, False),
        (0.3, 0.4, (Fraction(1, 3), 2), False),
        (1.0, 1e308, (1, BEYOND), False),
        (math.inf, math.inf, THIRD, False),
        (-math.inf, -math.inf, THIRD, False),
        (math.nan, 0.4, THIRD, False),
        (0.3, math.nan, THIRD, False),
        (0.0, 5e-324, (0, Fraction(1, 10**400)), True),
        (0.0, 0.0, (0, Fraction(1, 10**400)), False),
    ],
)
def test_bounds_are_compared_exactly(low, high, inside, true):
    found = list(faults(None, enclosed("f", low, high, [inside])))
    assert (found == []) == true


def middle(bounds):
    """Claim that the optimum is in the middle of its bounds."""
    return (np.mean(bounds, axis=0),) * 2


def all_of(found):
    return np.ones_like(found)


def none_of(found):
    return np.zeros_like(found)


def narrow_errors(told):
    """Claim the error bounds of one end."""
    return dataclasses.replace(told, lower_margins=told.upper_margins)


def right_errors(told):
    return dataclasses.replace(told, right=all_of(told.right))


def wrong_errors(told):
    return dataclasses.replace(told, wrong=all_of(told.wrong))


def certain_choice(model):
    """Claim that every C has wrong labels alone, which no C can be better than."""
    model.best_score_ = model.error_tolerance_ = 0.0
    return model


def narrow_choice(model):
    edges, lower, _ = model.error_bounds_
    model.error_bounds_ = edges, lower, lower
    return model


def tight(found):
    """Claim that the model is optimal."""
    exact = found.certificate.primal
    return dataclasses.replace(found, certificate=certificate(exact, exact))


def closed(found):
    """Claim that the model of a certificate is optimal."""
    return certificate(found.primal, found.primal)


#: Attack, what is forged (a class or a module, and a name), how, and words of a fault.
LIES = [
    ("optimum-linear", LinearSVC, "decision_bounds", middle, "fit: decision_bounds"),
    ("optimum-linear", LinearSVC, "coef_bounds", middle, "fit: coef_bounds"),
    ("optimum-linear", LinearSVC, "certified_labels", all_of, "fit: label"),
    ("optimum-linear", LinearSVC, "certified_support",
     lambda told: (all_of(told[0]), told[1]), "is a support vector"),
    ("optimum-linear", LinearSVC, "certified_support",
     lambda told: (told[0], all_of(told[1])), "is none"),
    ("optimum-kernel", SVC, "decision_bounds", middle, "fit: decision_bounds"),
    ("optimum-kernel", SVC, "certified_labels", all_of, "fit: label"),
    ("optimum-joint", LinearSVC, "decision_bounds", middle, "fit: decision_bounds"),
    ("optimum-joint", LinearSVC, "coef_bounds", middle, "fit: coef_bounds"),
    ("optimum-joint", LinearSVC, "certified_labels", all_of, "fit: label"),
    ("optimum-regression", LinearSVR, "decision_bounds", middle, "decision_bounds"),
    ("optimum-regression", SVR, "decision_bounds", middle, "decision_bounds"),
    ("left-out", dualgap.models, "loo_bounds", narrow_errors, "margin"),
    ("left-out", dualgap.models, "loo_bounds", right_errors, "is right"),
    ("left-out", dualgap.models, "loo_bounds", wrong_errors, "is wrong"),
    ("folds", dualgap.models, "cv_bounds", narrow_errors, "margin"),
    ("folds", dualgap.models, "cv_bounds", right_errors, "is right"),
    ("influence", dualgap.models, "influence", none_of, "without row"),
    ("changed", WhatIf, "decision_bounds", middle, "what_if: decision_bounds"),
    ("changed", WhatIf, "certified_labels", all_of, "what_if: label"),
    ("certified-c", LinearSVCCV, "fit", narrow_choice, "error"),
    ("certified-c", LinearSVCCV, "fit", certain_choice, "below"),
    ("proofs", statements, "check", lambda pairs: [(p, p) for p, _ in pairs], "D ="),
    ("proofs", statements, "check", lambda pairs: [(d, d) for _, d in pairs], "P ="),
    ("simplex", statements, "solve", tight, "is above P*"),
    ("logistic", logistic, "solve", tight, "is above P*"),
    ("nu-svc", nu, "certify", closed, "is above P*"),
    ("nu-svr", nu, "certify", closed, "is above P*"),
    ("hard-linear", hard_margin, "certify", closed, "is above P*"),
    ("hard-kernel", hard_margin, "certify", closed, "is above P*"),
    ("ridge", squares, "certify", closed, "is above P*"),
    ("huber", squares, "certify", closed, "is above P*"),
    ("sigmoid", statements, "semidefinite", lambda _: True, "trains indefinite"),
]  # fmt: skip


@pytest.mark.cases(10)
@pytest.mark.parametrize(("name", "place", "attribute", "forge", "text"), LIES)
def test_the_verifier_sees_a_lie(monkeypatch, name, place, attribute, forge, text):
    honest = getattr(place, attribute)

    def forged(*args, **kwargs):
        return forge(honest(*args, **kwargs))

    monkeypatch.setattr(place, attribute, forged)
    found = (fault for k in range(60) for fault in run(name, k).faults)
    assert any(text in fault for fault in found)
