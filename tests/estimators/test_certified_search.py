"""certify_C=True: no C of the interval is better than it proves; folds of weight 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from dualgap import SVCCV, SVRCV, LinearSVCCV
from dualgap.answers.ball import Ball
from dualgap.answers.between import Anchor, Between
from dualgap.problems import BinaryProblem
from dualgap.solvers import DCD
from dualgap.training import solve

from ..qp import optimum

pytestmark = pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")

LOSSES = {"hinge": (0.0, True), "squared_hinge": (0.5, False)}


def examples(classes=2, n=40, d=3, seed=0):
    """Overlapping classes, with a zero row and a repeated row."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.standard_normal((n, d)) + 0.7 * y[:, None] * rng.standard_normal(d)
    X[0], X[1] = 0.0, X[1 + classes]
    return X, y


@pytest.mark.cases(None)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-9])
def test_the_ball_between_two_values_of_c_holds_every_optimum(loss, tol):
    """The optimum is that of an interior-point solver, for several C in each cell."""
    X, y = examples(seed=round(-np.log10(tol)))
    y = np.where(y > 0, 1, -1)
    weight = np.arange(len(y)) % 4 / 2.0  # some are 0
    low, high = 0.3, 1.1

    def fitted(C):
        problem = BinaryProblem(
            X, y, C, loss=loss, sample_weight=weight, fit_intercept=True
        )
        fit = solve(problem, DCD(), tol=tol, random_state=0)
        return problem, Anchor.of(Ball.of(problem, fit.w, fit.alpha))

    (one, first), (other, last) = fitted(low), fitted(high)
    ends = np.linspace(0.0, 1.0, 4)
    radii = Between((one, other), first, last, ends).radii
    Z = y[:, None] * np.column_stack([X, np.ones(len(y))])
    for k in range(3):
        for t in np.linspace(ends[k], ends[k + 1], 3):
            C = (1 - t) * low + t * high
            found = optimum(Z, C * weight, *LOSSES[loss])
            centre = (1 - t) * first.centre + t * last.centre
            known = np.sqrt(2 * max(found.upper - found.lower, 0.0))
            assert np.linalg.norm(found.w - centre) <= radii[k] + known + 1e-9
    # Far tighter than the ball of one fit, whose radius is |C'/C - 1| ||w||/2.
    if tol == 1e-9:
        alone = Between((one, one), first, first, ends).radii
        assert alone.max() <= 1e-4 * np.linalg.norm(first.centre)
        assert radii.max() <= 0.5 * (high / low - 1) * np.linalg.norm(first.centre) / 2


def test_a_norm_of_zero_may_be_rounded_to_less():
    X, y = examples()
    problem = BinaryProblem(X, np.where(y > 0, 1, -1), 0.3)
    fit = solve(problem, DCD(), tol=1e-6, random_state=0)
    anchor = replace(Anchor.of(Ball.of(problem, fit.w, fit.alpha)), square=-1e-20)
    between = Between((problem, problem), anchor, anchor, np.linspace(0.0, 1.0, 4))
    assert np.isfinite(between.squared_radii).all()


def bounds_at(search, C):
    """The proved bounds on the error of the exact optimum at C."""
    edges, lower, upper = search.error_bounds_
    k = min(np.searchsorted(edges, C, side="right"), len(lower)) - 1
    return lower[k], upper[k]


def test_attributes_describe_the_search():
    X, y = examples(n=60)
    options = {"certify_C": True, "error_tolerance": 0.1, "cv": 3, "random_state": 0}
    search = LinearSVCCV([1.0, 0.01, 0.1, 0.1], **options).fit(X, y)
    assert {0.01, 0.1, 1.0} <= set(search.Cs_)
    assert (np.diff(search.Cs_) > 0).all()
    assert search.n_fits_ == 3 * len(search.Cs_)
    assert search.scores_.shape == search.relative_gaps_.shape == (3, len(search.Cs_))
    assert search.relative_gaps_.max() <= 1e-9
    best = search.scores_.mean(axis=0)
    assert search.C_ == search.Cs_[best.argmax()]
    assert search.best_score_ == best.max()
    assert search.best_estimator_.C == search.C_
    assert search.certificate_.certified
    same = LinearSVCCV([0.01, 0.1, 1.0], n_jobs=2, **options).fit(
        sparse.csr_matrix(X), y
    )
    np.testing.assert_allclose(same.Cs_, search.Cs_)
    plain = LinearSVCCV([0.01, 1.0], random_state=0).fit(X, y)
    assert not hasattr(plain, "error_bounds_")


def test_the_search_over_kernels_describes_itself():
    X, y = examples(n=60)
    options = {"certify_C": True, "error_tolerance": 0.1, "cv": 3, "random_state": 0}
    search = SVCCV([2.0, 0.2], [0.1, 0.5], **options).fit(X, y)
    table = search.cv_results_
    assert search.n_fits_ == 3 * len(table["params"])
    assert max(table[f"split{k}_relative_gap"].max() for k in range(3)) <= 1e-9
    assert search.best_score_ == pytest.approx(
        table["mean_test_score"].max(), rel=1e-12
    )
    assert search.best_estimator_.C == search.C_
    assert search.best_estimator_.gamma == search.gamma_
    assert search.certificate_.certified
    alone = [SVCCV([2.0, 0.2], g, **options).fit(X, y) for g in (0.1, 0.5)]
    least = min(one.error_bounds_.lower.min() for one in alone)
    assert search.error_tolerance_ <= 0.1 + 1e-12
    assert search.error_bounds_.edges[[0, -1]].tolist() == [0.2, 2.0]
    # Later values of gamma have less to prove: the best model so far counts for them.
    assert search.n_fits_ <= sum(one.n_fits_ for one in alone)
    assert search.best_score_ == max(one.best_score_ for one in alone)
    assert 1 - search.best_score_ - least <= 0.1 + 1e-12


def test_a_precomputed_kernel_is_the_kernel():
    X, y = examples(n=60)
    options = {"certify_C": True, "error_tolerance": 0.1, "cv": 3, "random_state": 0}
    search = SVCCV([0.2, 2.0], 0.5, **options).fit(X, y)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    same = SVCCV([0.2, 2.0], kernel="precomputed", **options).fit(K, y)
    assert max(same.error_tolerance_, search.error_tolerance_) <= 0.1 + 1e-12
    assert abs(same.best_score_ - search.best_score_) <= 1 / 60 + 1e-12  # one row
    # Rounding of the kernel values decides some rows, but what is proved of one search
    # is true of the other.
    for C in np.geomspace(0.2, 2.0, 50):
        found, wanted = bounds_at(same, C), bounds_at(search, C)
        assert max(found[0], wanted[0]) <= min(found[1], wanted[1]) + 1e-12


@pytest.mark.long
def test_folds_on_threads_prove_the_same():
    X, y = examples(3, n=60)
    options = {"certify_C": True, "error_tolerance": 0.1, "cv": 3, "random_state": 0}
    one, two = (
        SVCCV([0.2, 2.0], 0.5, n_jobs=n_jobs, **options).fit(X, y) for n_jobs in (1, 2)
    )
    for found, wanted in zip(one.error_bounds_, two.error_bounds_, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_tighter_error_tolerance_takes_more_fits():
    X, y = examples(n=60)
    fits = [
        LinearSVCCV((0.01, 1.0), certify_C=True, error_tolerance=accuracy, cv=3)
        .fit(X, y)
        .n_fits_
        for accuracy in (0.3, 0.1)
    ]
    assert fits == sorted(fits)
    assert fits[0] < fits[-1]


def test_gaps_that_do_not_allow_the_error_tolerance_are_named():
    """A row whose decision is 0 at every C is never certainly wrong."""
    X, y = examples(n=30)
    X[::3] = 0.0
    search = LinearSVCCV(
        (0.1, 0.2), certify_C=True, error_tolerance=1e-3, fit_intercept=False, cv=2
    )
    with pytest.warns(ConvergenceWarning, match="do not allow more"):
        search.fit(X, y)
    assert search.error_tolerance_ > 1e-3
    assert search.error_tolerance_ == pytest.approx(
        1 - search.best_score_ - search.error_bounds_.lower.min()
    )


X = np.random.default_rng(0).normal(size=(12, 2))
CODES = np.arange(12) % 3
HALVES = [(np.arange(6), np.arange(6, 12)), (np.arange(6, 12), np.arange(6))]
SEARCHES = {
    "one versus the rest": lambda: LinearSVCCV([1.0, 2.0], cv=HALVES),
    "pairs": lambda: LinearSVCCV([1.0, 2.0], cv=HALVES, multi_class="ovo"),
    "certified": lambda: LinearSVCCV([1.0, 2.0], cv=HALVES, certify_C=True),
    "kernel": lambda: SVCCV([1.0, 2.0], cv=HALVES),
    "kernel, fold by fold": lambda: SVCCV([1.0], cv=HALVES, loss="squared_hinge"),
    "kernel, certified": lambda: SVCCV([1.0, 2.0], cv=HALVES, certify_C=True),
    "landmarks": lambda: SVCCV([1.0], cv=HALVES, solver="nystroem"),
    "regression": lambda: SVRCV([1.0, 2.0], cv=HALVES),
}

NO_WEIGHT = np.r_[np.ones(6), np.zeros(6)]
ONE_CLASS = np.r_[np.where(CODES[:6] == 1, 0.5, 0.0), np.ones(6)]
ONE_LESS = np.r_[np.ones(6), np.where(CODES[6:] == 2, 0.0, 1.0)]


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("name", "classes", "weight", "words"),
    [
        *((name, classes, NO_WEIGHT, "fold 1 has no training row with a pos")
          for name in SEARCHES for classes in (2, 3)),
        *((name, 3, ONE_CLASS, "fold 0 has .* of one class only")
          for name in SEARCHES if name != "regression"),
        ("pairs", 3, ONE_LESS, "fold 1: class 2 has no row"),
    ],
)  # fmt: skip
def test_a_fold_that_lacks_rows_is_named(name, classes, weight, words):
    y = X[:, 0] if name == "regression" else CODES % classes
    with pytest.raises(ValueError, match=f"^{words}"):
        SEARCHES[name]().fit(X, y, sample_weight=weight)
