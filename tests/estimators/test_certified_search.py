"""``LinearSVCCV(certify="error")``: no C of the interval is better than it proves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from dualgap import DCD, BinaryProblem, LinearSVC, LinearSVCCV, solve
from dualgap.answers.between import Anchor, largest_radii

from ..qp import optimum

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

    def anchor(C):
        problem = BinaryProblem(
            X, y, C, loss=loss, sample_weight=weight, fit_intercept=True
        )
        fit = solve(problem, DCD(), tol=tol, random_state=0)
        return Anchor.of(problem, fit.w, fit.alpha, fit.certificate)

    first, last = anchor(low), anchor(high)
    ends = np.linspace(0.0, 1.0, 4)
    radii = largest_radii(first, last, ends)
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
        alone = largest_radii(first, first, ends)
        assert alone.max() <= 1e-4 * np.linalg.norm(first.centre)
        assert radii.max() <= 0.5 * (high / low - 1) * np.linalg.norm(first.centre) / 2


def error_of(X, y, folds, C, **options):
    """Bounds on the error of the exact optimum at C, from fits with tiny gaps."""
    least, most = [], []
    for train, test in folds:
        model = LinearSVC(C=C, tol=1e-12, random_state=0, **options)
        model.fit(X[train], y[train])
        decisions = model.decision_function(X[test])
        if decisions.ndim == 1:
            decisions = np.column_stack([-decisions, decisions])
        own = decisions[np.arange(len(test)), y[test]]
        others = decisions.copy()
        others[np.arange(len(test)), y[test]] = -np.inf
        margin = own - others.max(axis=1)
        gap = sum(part.gap for part in model.certificate_.parts)
        sizes = np.sqrt((X[test] ** 2).sum(axis=1) + 1)
        room = 4 * np.sqrt(2 * gap) * sizes + 1e-12
        least.append(np.mean(margin < -room))
        most.append(np.mean(margin <= room))
    return np.mean(least), np.mean(most)


@pytest.mark.parametrize(
    "seed", [0, *[pytest.param(k, marks=pytest.mark.long) for k in range(1, 8)]]
)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_c_in_the_interval_leaves_its_bounds(seed, classes, loss):
    X, y = examples(classes, seed=seed)
    order = np.random.default_rng(seed).permutation(len(y))
    folds = [(np.setdiff1d(order, part), part) for part in np.array_split(order, 2)]
    options = {"loss": loss, "fit_intercept": bool(seed % 2 == 0)}
    search = LinearSVCCV(
        [0.02, 2.0], cv=folds, certify="error", accuracy=0.06, random_state=0, **options
    ).fit(X, y)
    edges, lower, upper = search.error_bounds_
    assert search.accuracy_ <= 0.06
    assert 1 - search.best_score_ - lower.min() <= search.accuracy_ + 1e-12
    assert (edges[0], edges[-1]) == (0.02, 2.0)
    assert (np.diff(edges) > 0).all()
    assert (0 <= lower).all()
    assert (lower <= upper).all()
    tried = np.exp(np.random.default_rng(seed).uniform(*np.log([0.02, 2.0]), 12))
    for C in [*tried, edges[0], edges[-1]]:
        least, most = error_of(X, y, folds, C, **options)
        k = min(np.searchsorted(edges, C, side="right"), len(lower)) - 1
        assert lower[k] <= most
        assert least <= upper[k]


def test_attributes_describe_the_search():
    X, y = examples(n=60)
    options = {"certify": "error", "accuracy": 0.1, "cv": 3, "random_state": 0}
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


def test_a_tighter_accuracy_takes_more_fits():
    X, y = examples(n=60)
    fits = [
        LinearSVCCV((0.01, 1.0), certify="error", accuracy=accuracy, cv=3)
        .fit(X, y)
        .n_fits_
        for accuracy in (0.3, 0.1)
    ]
    assert fits == sorted(fits)
    assert fits[0] < fits[-1]


def test_gaps_that_do_not_allow_the_accuracy_are_named():
    """A row whose decision is 0 at every C is never certainly wrong."""
    X, y = examples(n=30)
    X[::3] = 0.0
    search = LinearSVCCV(
        (0.1, 0.2), certify="error", accuracy=1e-3, fit_intercept=False, cv=2
    )
    with pytest.warns(ConvergenceWarning, match="do not allow more"):
        search.fit(X, y)
    assert search.accuracy_ > 1e-3
    assert search.accuracy_ == pytest.approx(
        1 - search.best_score_ - search.error_bounds_.lower.min()
    )


def test_a_time_limit_keeps_what_was_proved():
    X, y = examples(n=60)
    search = LinearSVCCV(
        (0.01, 1.0), certify="error", accuracy=1e-6, time_limit=1e-9, cv=3
    )
    with pytest.raises(ValueError, match="time_limit"):
        search.fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scoring": "roc_auc"}, "scoring='roc_auc'"),
        ({"multi_class": "ovo"}, "multi_class='ovo'"),
        ({"penalize_intercept": False}, "penalize_intercept=False"),
        ({"Cs": [1.0]}, "needs an interval"),
        ({"accuracy": 0.0}, "accuracy"),
        ({"certify": "loss"}, "certify"),
    ],
)
def test_what_cannot_be_certified_is_refused(options, message):
    X, y = examples()
    with pytest.raises(ValueError, match=message):
        LinearSVCCV(**{"certify": "error", "Cs": (0.1, 1.0)} | options).fit(X, y)
