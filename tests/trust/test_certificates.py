"""Certificates of nasty problems, against exact arithmetic; see nasty.py."""

from __future__ import annotations

import logging
from fractions import Fraction

import numpy as np
import pytest

from dualgap.kernel import KERNEL_SOLVERS, Gram
from dualgap.kernel.block import row_source
from dualgap.kernel.gram import roundings_of_values
from dualgap.problem import Problem
from dualgap.solvers import SOLVERS

from ..proofs import certificate as by_hand
from .nasty import Tally, computed_kernel, faults, verify, verify_others
from .verifier import Exact, exact

PROBLEMS, OTHERS = 240, 120  # benchmarks/trust/verify.py has thousands


def test_no_certificate_is_false(caplog):
    caplog.set_level(logging.CRITICAL)
    tally = Tally()
    seeds = [*range(PROBLEMS), 5091]  # the last one was a division by zero once
    for seed in seeds:
        verify(seed, tally)
    assert tally.false == []
    assert tally.problems == len(seeds)
    assert set(tally.fits) == {*SOLVERS, *KERNEL_SOLVERS}
    assert tally.statuses["certified"] > PROBLEMS
    # On most problems the room for rounding is next to nothing.
    assert np.median(tally.room) < 1e-10


def test_no_certificate_of_the_other_problems_is_false(caplog):
    caplog.set_level(logging.CRITICAL)
    tally = Tally()
    # The last one led to a step of length 0, and a read beyond memory, once.
    for seed in (*range(OTHERS), 1097):
        verify_others(seed, tally)
    assert tally.false == []
    assert tally.statuses["certified"] > OTHERS / 2
    kinds = {name.split()[0] for name in tally.fits}
    assert kinds == {
        "RegressionProblem", "OneClassProblem", "CrammerSingerProblem",
        "KernelRegression", "KernelOneClass", "KernelProblem",
    }  # fmt: skip
    assert np.median(tally.room) < 1e-10


@pytest.mark.parametrize("packed", [False, True])
def test_kernel_values_are_as_near_as_the_certificates_take_them_to_be(packed):
    most: dict[str, Fraction] = {}
    for seed in range(100):
        X, kernel, K = computed_kernel(np.random.default_rng(seed))
        gram = Gram(X, kernel)
        if packed:
            gram.fast = row_source(gram, 1)
        unit = Fraction(roundings_of_values(gram)) / 2**53
        for i, one in enumerate(np.eye(gram.n)):
            for j, value in enumerate(gram.times(one).tolist()):
                off = (Fraction(value) - K[i][j]) ** 2
                allowed = unit**2 * K[i][i] * K[j][j]
                assert off <= allowed, (seed, kernel)
                if allowed > 0:
                    part = max(most.get(kernel.name, off / allowed), off / allowed)
                    most[kernel.name] = part
    # Nor is the bound far from what happens.
    assert set(most) == {"linear", "poly"}
    assert min(most.values()) > Fraction(1, 10**4)


def one_row() -> tuple[Exact, list[Fraction], Fraction]:
    """x = 1, C = 1/2, so that P* = D* = 3/8 at w = alpha = 1/2."""
    plain = Exact.linear([[1.0]], [1], [0.5], "hinge", Fraction(1), 0.0, False)
    alpha = exact([0.5])
    return plain, alpha, plain.primal(exact([0.5]))


@pytest.mark.parametrize(
    ("primal", "dual", "text"),
    [
        (0.375, 0.375, None),
        (0.375 - 1e-16, 0.375, "P is"),
        (0.375, 0.375 + 1e-16, "is above P"),
        (0.25, 0.25, "P is"),
        (float("nan"), 0.0, "a bound is NaN"),
    ],
)
def test_the_verifier_sees_a_false_certificate(primal, dual, text):
    plain, alpha, value = one_row()
    certificate = by_hand(primal=primal, dual=dual)
    lower, upper = plain.bracket([(alpha, Fraction(0), alpha)])
    assert lower == upper == value == Fraction(3, 8)
    found = faults(plain, certificate, value, alpha, lower, upper)
    if text is None:
        assert found == []
    else:
        assert any(text in fault for fault in found)


def test_the_verifier_sees_a_dual_point_outside_its_box():
    plain, _, value = one_row()
    certificate = by_hand(primal=0.375, dual=0.0)
    found = faults(plain, certificate, value, exact([0.75]), value, value)
    assert found == ["alpha is outside of its box"]


@pytest.mark.parametrize("n", [1_000, 30_000])
def test_the_rounding_of_long_sums_is_bounded_and_small(n):
    """w is a sum of n rows that cancel: what is stored is far from the exact sum."""
    rng = np.random.default_rng(0)
    X = np.ones((n, 1)) + 1e-9 * rng.standard_normal((n, 1))
    y = np.where(np.arange(n) % 2, 1, -1)
    problem = Problem(X, y, 1.0)
    alpha = rng.uniform(0.0, 1.0, n)
    alpha[1::2] = alpha[::2]  # the classes cancel
    certificate = problem.certify(alpha=alpha)
    v = sum(Fraction(float(a)) * int(s) * Fraction(float(x))
            for a, s, x in zip(alpha, y, X[:, 0], strict=True))  # fmt: skip
    dual = sum(map(Fraction, alpha.tolist())) - v * v / 2
    assert Fraction(certificate.dual) <= dual
    assert dual - Fraction(certificate.dual) <= 1e-13 * dual
