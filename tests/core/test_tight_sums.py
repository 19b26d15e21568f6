"""Each bound that the core adds up is no larger than its derivation.

src/core/certify.hpp and src/core/gram/proof.hpp derive the bounds. They may be 1 %
larger, for higher orders, but not twice as large.
"""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import core

U, TINY = 2.0**-53, 2.0**-500
HINGE = core.Loss(1.0, 0.0)
#: Rows, weights, and dual variables: every row has a loss, whose slope is 1.
X = np.array([[3.0, 4.0, 0.0], [0.0, -5.0, 12.0], [1.0, 2.0, -2.0]])
LENGTHS = np.array([5.0, 13.0, 3.0])
Y = np.array([1, -1, 1], np.int8)
COST, ALPHA = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.0, 2.0])
W = np.array([0.01, -0.02, 0.02])
LENGTH = 0.03


def close(bound, derived, times=1.03):
    assert derived <= bound * (1.0 + 1e-12)
    assert bound <= times * derived + TINY


def examples(constant=0.0, x=X):
    q = (x * x).sum(axis=1) + constant**2
    return core.Examples(core.dense_rows(x, constant), Y, COST, q, HINGE)


def evaluated(given, w, dual="given"):
    return core.evaluate(given, w, dual, ALPHA.copy(), np.empty(len(w)))


def test_sums_of_losses_and_products():
    found = evaluated(examples(), W)
    off = found.roundings * U * LENGTHS * LENGTH
    close(found.length, LENGTH)
    close(found.loss_error, COST @ off)
    close(found.along_error, ALPHA @ (off + 2.0 * U * LENGTHS * LENGTH))
    close(found.reach, ALPHA @ LENGTHS)
    assert found.used == 2.0


def test_sums_with_a_constant_feature():
    w = np.array([*W, 0.5])
    found = evaluated(examples(2.0), w)
    size = LENGTHS * LENGTH + 1.0
    close(found.last, 1.0)
    close(found.loss_error, COST @ (found.roundings * U * size))
    close(found.reach, ALPHA @ (LENGTHS + 2.0))
    alone = evaluated(examples(2.0), np.array([0.0, 0.0, 0.0, 0.25]))
    close(alone.loss_error, COST.sum() * 2.0 * U * 0.5)
    exact = evaluated(examples(1.0), np.array([0.0, 0.0, 0.0, 0.25]))
    assert exact.loss_error == 0.0


def test_sums_of_precise_products():
    """The rest are roundings of the result, and u^2 of what cancels."""
    found = evaluated(examples(), W, "precise")
    m = Y * (X @ W)
    close(found.loss_error, COST @ (3.0 * U * (abs(m) + 1.0)))
    big = np.array([[1e20, -1e20, 0.0]] * 3)
    w = np.array([1.0, 1.0, 0.0])
    cancelled = evaluated(examples(0.0, big), w, "precise")
    size = 1e20 * np.sqrt(2.0) * np.sqrt(2.0)
    close(cancelled.loss_error, COST.sum() * 2.0 * (7 * U) ** 2 * size)
    alone = evaluated(examples(2.0), np.array([0.0, 0.0, 0.0, 0.25]), "precise")
    m = 0.5 * Y
    close(alone.loss_error, COST @ (3.0 * U * (abs(m) + 1.0) + 2.0 * U * 0.5))


def test_sums_of_residuals():
    tube = core.ResidualLoss(HINGE, 0.125, 1.0, 1.0)
    target = np.array([7.0, -8.0, 9.0])
    given = core.RegressionExamples(
        core.dense_rows(X, 0.0), target, COST, (X * X).sum(axis=1), tube
    )
    found = core.evaluate_residuals(given, W, "of w", None, None, None)
    off = found.roundings * U * LENGTHS * LENGTH + 2.0 * U * (2 * abs(target) + 0.125)
    close(found.loss_error, COST @ off)


def test_the_best_multiple():
    given = examples()
    m = Y * (X @ W)
    found = core.best_multiple(given, m, LENGTH**2, LENGTH, 0.0, 5.0)
    off = 7.0 * U * found.scale * LENGTHS * LENGTH
    close(found.loss_error, COST @ off)


ONES = np.ones(3)
SCORES = np.array([1e-3, -1e-3, 1e-3])
#: Bounds of the scores, and the numbers of KernelScalars; the errors of a margin and of
#: alpha'Q alpha.
KERNEL = {
    "scores": (ONES, (0.0, 0.0, 1.0, 0.0, 0.0, 0.0), ONES, ALPHA.sum()),
    "factor": (ONES, (0.0, 0.0, 0.5, 0.0, 0.0, 0.0), 0.5 * ONES, ALPHA.sum()),
    "share of a bias": (
        0.0 * ONES, (1e3, 0.0, 1.0, 0.0, 0.0, 0.0), 4e3 * U * ONES,
        (4e3 + 64e3) * U * ALPHA.sum(),
    ),
    "bias": (
        0.0 * ONES, (0.0, 1e-1, 1.0, 0.0, 0.0, 0.0), 4.0 * U * (0.1 + abs(SCORES)),
        4.0 * U * (0.1 + 17e-3) * ALPHA.sum(),
    ),
    "sum of alpha": (
        0.0 * ONES, (0.0, 0.0, 1.0, 0.0, 1.0, 0.0), ALPHA.sum() * ONES,
        ALPHA.sum() ** 2,
    ),
    "underflow": (
        0.0 * ONES, (0.0, 0.0, 1.0, 0.0, 0.0, 1.0), ALPHA.sum() * ONES,
        ALPHA.sum() ** 2,
    ),
    "shift": (
        0.0 * ONES, (0.0, 0.0, 1.0, 1e-3, 0.0, 0.0), 4e-3 * U * ONES,
        1e-3 * (ALPHA @ ALPHA),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KERNEL)
def test_sums_of_a_kernel_problem(case):
    error, scalars, margin, norm = KERNEL[case]
    y = np.array([1, -1, 1], np.int8)
    found = core.kernel_sums(
        y, COST, HINGE, ALPHA, SCORES, error, core.KernelScalars(*scalars)
    )
    losing = scalars[2] * y * (SCORES + scalars[1]) < 1.0
    close(found.loss_error, COST[losing] @ margin[losing])
    close(found.norm_error, norm, 1.05)


def sums(**given):
    """Sums of one row, whose score, cost and alpha are given."""
    one = {"alpha": 1.0, "cost": 1.0, "score": 0.0, "error": 0.0, "own": 0.0, **given}
    return core.kernel_sums(
        np.array([1], np.int8),
        *[np.array([one["cost"]]), HINGE, np.array([one["alpha"]])],
        *[np.array([one["score"]]), np.array([one["error"]])],
        core.KernelScalars(one["own"], 0.0, 1.0, 0.0, 0.0, 0.0),
    )


def test_values_of_a_kernel_problem():
    given = sums(error=1e-3, cost=2.0)
    found = core.kernel_values(given, 0.0, None, 0.5)
    close(found.primal_error, 0.5 * 0.25 * 1e-3 + 2e-3)
    close(found.dual_error, 0.5 * 0.25 * 1e-3)
    lost = core.kernel_values(sums(alpha=1e-200, cost=1e-200), 1e-9, None)
    close(lost.primal_error, 1e-9)
    close(lost.dual_error, 1e-9)
    plain = core.kernel_values(sums(cost=3.0), 0.0, None)
    close(plain.dual_error, 64.0 * U)
    close(plain.primal_error, 3.0 * 64.0 * U, 1.1)


def test_values_with_a_free_bias():
    """An unequal sum costs D as much as the bias may be large."""
    for off, adding, worth in [(1e-6, 0.0, 1e-6), (0.0, 1e-6, 1e-6)]:
        free = core.FreeBias(off, adding, 2.0, 3.0)
        found = core.kernel_values(sums(cost=2.0), 0.0, free)
        close(found.dual_error, worth * (1.0 + np.sqrt(2.0 * 2.0) * 3.0))


def proof_with_nu(length, adding):
    """Prove two rows of either class, whose kernel matrix is the identity.

    The dual variables of a class add up to 1/2, so all are 1/4, as is rho.
    """
    rows = core.KernelRows(
        core.dense_rows(100.0 * np.arange(4.0)[:, None], 0.0),
        *[core.KernelMap("rbf", 1.0, 0.0, 1), None, True, 1],
    )
    tables = core.PairTables(np.zeros((1, 4)), np.zeros((1, 4)))
    found = core.solve_pairs(
        *[rows, [0, 2, 4], np.ones(4)],
        core.ScoreRoundings(np.full(4, length), 0.0, 0.0, adding, 0.0),
        core.WholeSettings(core.Targets(1e-9, 0.0, 1e-9, 0.0), 1e9, 99),
        *[tables, core.Stop(), [0.5]],
    )
    primal, more, dual, less = found.bounds[0]
    assert dual == -0.125
    assert primal in (-0.125, 0.0)  # 0 if the bound on its error is larger
    return more, less


def test_a_proof_with_nu_for_sums_that_are_off():
    """A wrong sum costs D as much as the offset of the optimum may be large."""
    adding, norm = 0.1, 0.25
    norm_error = off = adding * 1.0  # the dual variables add up to 1
    length = np.sqrt(norm + norm_error)
    _, less = proof_with_nu(1.0, adding)
    close(less, 0.5 * norm_error + off * (length + 2.0 * off), 1.05)


def test_a_proof_with_nu_counts_the_rounding_of_its_model():
    """The coefficients are divided by rho, which changes every score."""
    length = 1e6
    more, less = proof_with_nu(length, 0.0)
    off = 4.0 * U * length**2  # sum alpha_i times length is also 1e6
    close(more, 0.5 * off + 4.0 * off, 1.05)
    close(less, 0.5 * off, 1.05)


@pytest.mark.parametrize("alphas", [None, [[1.0, -0.5, -0.5], [0.0] * 3, [-2.0, 0, 2]]])
def test_sums_of_several_classes(alphas):
    """Long weights of equal scores: the loss is 1, and its error is far above U."""
    w = np.zeros((3, 8))  # weights of a feature, of whole eights of classes
    w[:, :3] = 1e6 * np.array([[0.6], [0.0], [0.8]])
    q, classes = LENGTHS**2, np.arange(3, dtype=np.int32)
    given = core.MulticlassExamples(core.dense_rows(X, 0.0), classes, COST, q, 3)
    alpha = None if alphas is None else np.ravel(alphas).astype(float)
    found = core.multiclass_values(given, w.ravel(), alpha)
    size = 1e6 * LENGTHS
    assert (found.loss, found.roundings) == (COST.sum(), 5.0)
    off = 5.0 * U * size  # of the score of a class; a loss is a difference of two
    close(found.loss_error, COST @ (2.0 * off + 4.0 * U * size))
    if alphas is not None:
        own = (2.0 + 3.0 * 3.0) * U * size  # an entry is a rounded sum of the others
        close(found.along_error, np.abs(alphas).sum(axis=1) @ (off + own))
