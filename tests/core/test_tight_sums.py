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


def residuals(target, w, dual, x=X, epsilon=0.125, above=1.0):
    tube = core.ResidualLoss(HINGE, epsilon, above, 1.0)
    given = core.RegressionExamples(
        core.dense_rows(x, 0.0), target, COST, (x * x).sum(axis=1), tube
    )
    return core.evaluate_residuals(given, w, dual, ALPHA.copy(), np.empty(3), None)


@pytest.mark.parametrize("above", [1.0, 0.25])
def test_sums_of_residuals(above):
    """With unequal slopes too: rounding may lead to the other side of 0."""
    target = np.array([7.0, -8.0, 9.0])
    found = residuals(target, W, "given", above=above)
    off = found.roundings * U * LENGTHS * LENGTH + 2.0 * U * (2 * abs(target) + 0.125)
    close(found.loss_error, COST @ off)


def test_sums_of_precise_residuals_that_cancel():
    """The target, too, is subtracted."""
    big = np.array([[1e20, 0.0, 0.0]] * 3)
    w, target = np.array([1.0, 0.0, 0.0]), np.full(3, 1e20)
    found = residuals(target, w, "precise", big, 0.0)
    close(found.loss_error, COST.sum() * 2.0 * (7 * U) ** 2 * 2e20)


def test_a_row_at_its_margin_has_a_loss_that_rounding_hides():
    """The computed loss is 0. With an error in its margin it may be that error."""
    x, w = np.array([[3.0, 4.0, 0.0]] * 3), np.array([-1.0, 1.0, 0.0])
    given = core.Examples(
        core.dense_rows(x, 0.0), np.ones(3, np.int8), COST, np.full(3, 25.0), HINGE
    )
    found = evaluated(given, w)
    assert found.loss == 0.0
    close(found.loss_error, COST.sum() * found.roundings * U * 5.0 * np.sqrt(2.0))


def test_rows_of_several_parts_have_the_bounds_of_one():
    """The rows at the beginning are long, so that the parts differ."""
    n = 40000
    ends = np.append(0, np.cumsum(np.where(np.arange(n) < n // 2, 40, 20)))
    columns = (np.arange(ends[-1]) % 40).astype(np.int32)
    given = core.Examples(
        core.csr_rows(np.ones(len(columns)), columns, ends, 40, 0.0),
        np.ones(n, np.int8), np.ones(n), 1.0 * np.diff(ends), HINGE,
    )  # fmt: skip
    alone, parts = (
        core.evaluate(
            given, np.full(40, 0.01), "given", np.ones(n), np.empty(40), None, k
        )
        for k in (1, 4)
    )
    for name in ("loss_error", "along_error", "reach", "used", "roundings"):
        np.testing.assert_allclose(getattr(parts, name), getattr(alone, name), 1e-12)


@pytest.mark.parametrize("dense", [True, False])
def test_a_long_row_passes_few_more_roundings_than_a_block_of_it(dense):
    """Two for the compensated sum of the blocks, and one for what a block adds."""

    def roundings(d):
        x = np.ones((1, d))
        entries = np.arange(d, dtype=np.int32), np.array([0, d])
        rows = (
            core.dense_rows(x, 0.0) if dense else core.csr_rows(x[0], *entries, d, 0.0)
        )
        one = core.Examples(
            rows, np.ones(1, np.int8), np.ones(1), np.full(1, 1.0 * d), HINGE
        )
        return core.evaluate(one, np.zeros(d), "of w", None, None).roundings

    block = 256 if dense else 64
    assert roundings(block) > roundings(block // 2)
    assert roundings(block + 1) == roundings(2**14) == roundings(block) + 3


def test_rows_away_from_a_bound_are_visited_again():
    """Only a row at a bound that its margin confirms goes on resting."""
    alpha = np.array([0.0, 0.0, 1.0, 1.0, 0.5, 0.5])
    margins = np.array([2.0, 0.5, 2.0, 0.5, 2.0, 0.5])
    given = core.Examples(
        core.dense_rows(margins[:, None], 0.0), np.ones(6, np.int8), np.ones(6),
        margins**2, HINGE,
    )  # fmt: skip
    wake = np.full(6, 7, np.uint8)
    core.evaluate(given, np.ones(1), "given", alpha, np.empty(1), None, 1, wake)
    np.testing.assert_array_equal(wake, [7, 0, 0, 7, 0, 0])


def test_the_best_multiple():
    given = examples()
    m = Y * (X @ W)
    found = core.best_multiple(given, m, LENGTH**2, LENGTH, 0.0, 5.0)
    off = 7.0 * U * found.scale * LENGTHS * LENGTH
    close(found.loss_error, COST @ off)
    # Rounding may give a loss to rows beyond their margins too.
    long = core.best_multiple(given, np.full(3, 3.0), 1.0, 1e16, 0.0, 5.0)
    assert long.loss == 0.0
    close(long.loss_error, COST @ (7.0 * U * long.scale * LENGTHS * 1e16))


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
    one = {
        **{"alpha": 1.0, "cost": 1.0, "score": 0.0, "error": 0.0, "own": 0.0},
        **{"shift": 0.0, **given},
    }
    return core.kernel_sums(
        np.array([1], np.int8),
        *[np.array([one["cost"]]), HINGE, np.array([one["alpha"]])],
        *[np.array([one["score"]]), np.array([one["error"]])],
        core.KernelScalars(one["own"], 0.0, 1.0, one["shift"], 0.0, 0.0),
    )


def test_a_shift_of_the_diagonal_lowers_margins_where_alpha_is_negative():
    close(sums(alpha=-2.0, cost=3.0, shift=1e-3).loss_error, 3.0 * 2.0 * 1e-3)


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
    for off, adding, zero, s in [
        *((1e-6, 0.0, 2.0, 1.0), (0.0, 1e-6, 2.0, 1.0), (1e-6, 0.0, 2.0, 0.5)),
        *((1e-6, 0.0, 1e6, 1.0), (1e-6, 0.0, 0.5, 1.0)),
    ]:
        free = core.FreeBias(off, adding, zero, 3.0)
        found = core.kernel_values(sums(cost=2.0), 0.0, free, s)
        most = min(2.0, zero)  # P of the model, and of the model 0
        close(found.dual_error, s * 1e-6 * (1.0 + np.sqrt(2.0 * most) * 3.0))


def test_no_dual_variable_leaves_no_rounding():
    assert core.kernel_values(sums(alpha=0.0), 1e-9, None).dual_error == 0.0


#: Bounds on the lengths of four rows.
ONE_LONG = np.array([0.01, 1.0, 0.01, 0.01])


def bounds_of_two_pairs(lengths, adding, halves=()):
    """Prove two rows of either class, whose kernel matrix is the identity."""
    rows = core.KernelRows(
        core.dense_rows(100.0 * np.arange(4.0)[:, None], 0.0),
        *[core.KernelMap("rbf", 1.0, 0.0, 1), None, True, 1],
    )
    tables = core.PairTables(np.zeros((1, 4)), np.zeros((1, 4)))
    found = core.solve_pairs(
        *[rows, [0, 2, 4], np.ones(4)],
        core.ScoreRoundings(lengths, 0.0, 0.0, adding, 0.0),
        core.WholeSettings(core.Targets(1e-9, 0.0, 1e-9, 0.0), 1e9, 99),
        *[tables, core.Stop(), list(halves)],
    )
    return found.bounds[0]


def test_a_proof_of_the_hinge_for_sums_that_are_off():
    """All dual variables are 1, and the bias is at most 1 + the longest row ||w||."""
    primal, more, dual, less = bounds_of_two_pairs(ONE_LONG, 0.1)
    assert (primal, dual) == (2.0, 2.0)
    off = 0.1 * 4.0  # of a score, and of the sum with labels
    close(more, 0.5 * 4.0 * off + 4.0 * off, 1.05)
    close(less, 0.5 * 4.0 * off + off * (1.0 + np.sqrt(2.0 * 4.0)), 1.05)


def proof_with_nu(lengths, adding):
    """The dual variables of a class add up to 1/2, so all are 1/4, as is rho."""
    primal, more, dual, less = bounds_of_two_pairs(lengths, adding, [0.5])
    assert dual == -0.125
    assert primal in (-0.125, 0.0)  # 0 if the bound on its error is larger
    return more, less


def test_a_proof_with_nu_for_sums_that_are_off():
    """A wrong sum costs D as much as the offset of the optimum may be large."""
    adding, norm = 0.1, 0.25
    norm_error = off = adding * 1.0  # the dual variables add up to 1
    length = np.sqrt(norm + norm_error)
    _, less = proof_with_nu(ONE_LONG, adding)
    close(less, 0.5 * norm_error + off * (length + 2.0 * off), 1.05)


def test_a_proof_with_nu_counts_the_rounding_of_its_model():
    """The coefficients are divided by rho, which changes every score."""
    length = 1e6
    more, less = proof_with_nu(np.full(4, length), 0.0)
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
