"""Each bound on a rounding error is no larger than its derivation.

docs/certificate-proof.md derives the bounds. Each case leaves one term of a bound; that
term may be 1 % larger than derived, for higher orders, but not twice as large.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualgap.problems.rounding import Rounding, Values

U, LEAST = 2.0**-53, 2.0**-1074
N, WIDTH, PARTS = 1000, 50, 3
FEW = Rounding(N, WIDTH, PARTS)
CHAINED = Rounding(N, WIDTH, PARTS, chain=500)
MANY = Rounding(2**45, WIDTH, PARTS)


def values(**given):
    return Values(**{**dict.fromkeys(Values._fields, 0.0), **given})


def test_errors_of_scores():
    q = np.array([1.0, 4.0])
    bound = FEW.of_scores(values(length=3.0, roundings=7.0), q)
    derived = 7.0 * U * 3.0 * np.sqrt(q)
    assert (bound >= derived).all()
    assert (bound <= 1.02 * derived).all()
    assert (FEW.of_scores(values(length=0.0, roundings=7.0), q) == 0.0).all()
    least = FEW.of_scores(values(length=1e-300, roundings=7.0), 0.0 * q)
    assert (least <= 1.01 * 2.0**-1000).all()


PRIMAL = {
    "loss": (FEW, values(loss=1.0), 0.0, (12 + 4) * U),
    "loss, long sums": (CHAINED, values(loss=1.0), 0.0, (512 + 4) * U),
    "loss, many rows": (MANY, values(loss=1.0), 0.0, (2**45 * U) ** 2),
    "errors of the losses": (FEW, values(loss_error=1.0), 0.0, 1.0),
    "norm": (FEW, values(), 1.0, (40 + 4) * U),
}
DRIFT = {
    "products": (values(used=8e8, reach=1.0), 0.0, 2.0 * (8e8 * U) ** 2),
    "entries": (values(used=1.0, reach=0.0), 1.0, 2.0 * U),
    "underflow": (values(used=9.0), 0.0, 2.0 * 9.0 * math.sqrt(WIDTH) * LEAST),
}
SUM = {
    "additions": (FEW, 100.0, 1.0, (100 + PARTS + 2) * U),
    "additions in blocks": (CHAINED, 900.0, 1.0, (500 + PARTS + 2) * U),
    "few additions": (CHAINED, 100.0, 1.0, (100 + PARTS + 2) * U),
    "underflow": (FEW, 100.0, 0.0, 100.0 * math.sqrt(WIDTH) * LEAST),
}
#: Sums, the squared norm, the drift, the error of v.w, and ||w||^2 with ||v - w||.
ONE = values(used=1.0)
ALONG = values(used=1.0, along=1.0)
DUAL = {
    "drift": (ONE, 1.0, 1e-9, math.inf, None, 1e-9),
    "drift beyond v": (ONE, 0.0, 1e-3, math.inf, None, 0.5e-6),
    "sum": (values(used=1.0, sum=1.0), 0.0, 0.0, math.inf, None, (12 + 4) * U),
    "diagonal": (
        values(used=1.0, diagonal=1.0), 0.0, 0.0, math.inf, None, (12 + 4) * U,
    ),
    "norm": (ONE, 1.0, 0.0, math.inf, None, (40 + 4) * U),
    "products": (ALONG, 1.0, 0.1, 1e-9, None, 1e-9 + 0.5e-2),
    "errors of products": (
        values(used=1.0, along=1.0, along_error=1e-3), 1.0, 0.01, 0.0, None,
        1e-3 + 0.5e-4,
    ),
    "other sum": (values(used=1.0, along=1.01), 1.0, 0.1, 0.0, None, 0.01 + 0.5e-2),
    "near w": (ALONG, 1.0, 1e-2, 0.0, (1.0, 2e-2), 0.5 * 3e-2**2),
    "size of w": (ALONG, 1.0, 1e-9, 0.0, None, (40 + 40 + 4) * U),
}  # fmt: skip


def close(bound, derived, times=1.03):
    assert derived <= bound * (1.0 + 1e-12)
    assert bound <= times * derived


@pytest.mark.parametrize("case", PRIMAL)
def test_errors_of_the_primal_value(case):
    by, sums, norm, derived = PRIMAL[case]
    close(by.of_primal(sums, norm), derived)


def test_sums_and_bounds_of_parts():
    """Roundings and lengths do not add up; the largest one is that of all parts."""
    parts = [Values(*map(float, range(k, k + 11))) for k in (1, 5, 2)]
    assert Values.merge(parts) == Values(8, 11, 14, 17, 20, 23, 26, 29, 13, 14, 15)


def test_zero_models_have_no_error():
    assert FEW.of_primal(values(), 0.0) == 0.0
    assert FEW.of_sum(0.0, 1.0) == 0.0
    assert FEW.of_dual(values(sum=1.0), 1.0, 1.0) == 0.0
    assert FEW.dual(values(used=1.0, sum=1.0), 1.0, scale=0.0) == (0.0, 0.0)


def test_errors_by_underflow():
    assert FEW.underflow == (N + WIDTH + 4) * LEAST
    assert FEW.of_primal(values(length=1.0), 0.0) == FEW.underflow
    assert FEW.of_dual(ONE, 0.0, 0.0) == FEW.underflow


@pytest.mark.parametrize("case", DRIFT)
def test_errors_of_precise_sums(case):
    sums, norm, derived = DRIFT[case]
    close(FEW.precise_drift(sums, norm), derived)


@pytest.mark.parametrize("case", SUM)
def test_errors_of_sums_of_rows(case):
    by, used, reach, derived = SUM[case]
    close(by.of_sum(used, reach), derived)


@pytest.mark.parametrize("case", DUAL)
def test_errors_of_the_dual_value(case):
    sums, norm, drift, off, near, derived = DUAL[case]
    close(FEW.of_dual(sums, norm, drift, off, near), derived)


def test_errors_of_multiples():
    """At s alpha, the exact point of D is `own` and four roundings away."""
    own, s = 1e-9, 0.5
    sums = values(used=1.0, sum=1.0)
    assert FEW.dual(sums, 1.0, own=own)[0] == 0.5
    at_one = FEW.dual(sums, 0.0, own=own)[1]
    close(at_one, own * sums.sum)
    scaled = FEW.dual(sums, 0.0, s)[1]
    close(scaled, s * (12 + 4 + 4) * U)
    far = values(used=1.0, reach=1.0)
    close(FEW.dual(far, 1.0, s, own=own)[1], s * s * own)
    close(FEW.dual(far, 1.0, own=own)[1], own)
    close(FEW.dual(far, 1.0, s)[1], s * s * (1 + PARTS + 2 + 4 + 40 + 4) * U)
