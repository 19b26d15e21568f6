"""Searches whose folds have training rows of weight 0: errors name the fold."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import SVCCV, SVRCV, LinearSVCCV

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


@pytest.mark.cases(None)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", SEARCHES)
def test_a_fold_without_weight_is_named(name, classes):
    weight = np.r_[np.ones(6), np.zeros(6)]
    y = X[:, 0] if name == "regression" else CODES % classes
    with pytest.raises(ValueError, match=r"^fold 1 has no training row with a pos"):
        SEARCHES[name]().fit(X, y, sample_weight=weight)


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", [name for name in SEARCHES if name != "regression"])
def test_a_fold_with_one_class_is_named(name):
    weight = np.r_[np.where(CODES[:6] == 1, 0.5, 0.0), np.ones(6)]
    with pytest.raises(ValueError, match=r"^fold 0 has .* of one class only"):
        SEARCHES[name]().fit(X, CODES, sample_weight=weight)


def test_a_fold_that_lacks_a_class_of_the_pairs_is_named():
    weight = np.r_[np.ones(6), np.where(CODES[6:] == 2, 0.0, 1.0)]
    with pytest.raises(ValueError, match=r"^fold 1: class 2 has no row"):
        SEARCHES["pairs"]().fit(X, CODES, sample_weight=weight)
