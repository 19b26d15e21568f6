"""The bounds on rounding that certificates are made of, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from dualgap import LinearSVR, certify
from dualgap.kernel import Gram
from dualgap.kernels.gram import roundings_of_values
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers.kernel.block import row_source

from .attacks import rational_kernel

UNDERFLOW = Fraction(1, 2**1000)  # is counted apart


@pytest.mark.long
@pytest.mark.parametrize("packed", [False, True])
def test_kernel_values_are_as_near_as_the_certificates_take_them_to_be(packed):
    most: dict[str, Fraction] = {}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, kernel, exactly = rational_kernel(rng, ["linear", "poly"])
        gram = Gram(sparse.csr_matrix(X) if rng.random() < 0.3 else X, kernel)
        if packed:
            gram.fast = row_source(gram, 1)
        unit = Fraction(roundings_of_values(gram)) / 2**53
        K = exactly.K
        for i, one in enumerate(np.eye(gram.n)):
            for j, value in enumerate(gram.times(one).tolist()):
                off = abs(Fraction(value) - K[i, j].fraction())
                off = max(off - UNDERFLOW, Fraction(0)) ** 2
                allowed = unit**2 * K[i, i].fraction() * K[j, j].fraction()
                assert off <= allowed, (seed, kernel)
                if allowed > 0:
                    part = max(most.get(kernel.name, off / allowed), off / allowed)
                    most[kernel.name] = part
    # Nor is the bound far from what happens.
    assert set(most) == {"linear", "poly"}
    assert min(most.values()) > Fraction(1, 10**4)


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("scaling", [3.0, 0.1, 1e-7, 1e100])
def test_the_certificate_is_about_the_rounded_intercept(loss, scaling):
    """The residual of the one row that counts is the rounding of the intercept."""
    rng = np.random.default_rng(0)
    weight = np.array([1.0, 0.0])
    for _ in range(50):
        X, y, C = (
            rng.normal(size=(2, 1)),
            rng.normal(size=2),
            10.0 ** rng.uniform(-6, 6),
        )
        model = LinearSVR(C=C, loss=loss, intercept_scaling=scaling).fit(X, y, weight)
        w, b, x, target = (
            Fraction(float(np.ravel(value)[0]))
            for value in (model.coef_, model.intercept_, X, y)
        )
        off = abs(target - (w * x + b))
        cost = off if loss == "epsilon_insensitive" else off**2
        exact = (w**2 + (b / Fraction(scaling)) ** 2) / 2 + Fraction(C) * cost
        found = certify(model, X, y, sample_weight=weight)
        assert min(model.certificate_.primal, found.primal) >= exact
