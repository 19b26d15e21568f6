"""Weights are numbers of rows, and the order of the rows is nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .subjects import NAMES, SLOW, SUBJECTS, X, bits, every, overlap

pytestmark = pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
RNG = np.random.default_rng(1)
COUNTS = np.maximum(RNG.integers(0, 4, len(X)), np.arange(len(X)) < 9)
ORDER = RNG.permutation(len(X))
TOL = 1e-5


def fit(name: str, X: Any, names: Any, weight: Any = None, **more: Any) -> Any:
    subject = SUBJECTS[name]
    if subject.has("gamma"):  # "scale" counts every row once
        more = {"gamma": 0.1} | more
    model = subject.make(tol=TOL, max_iter=100_000, **more)
    return model.fit(X, subject.target(X, names), sample_weight=weight)


@pytest.mark.cases(15)
@every(*SLOW)
def test_an_integer_weight_is_a_repeated_row(name: str) -> None:
    model = fit(name, X, NAMES, COUNTS)
    repeated = fit(name, np.repeat(X, COUNTS, axis=0), np.repeat(NAMES, COUNTS))
    overlap(model, repeated, TOL)
    used = getattr(model, "support_", np.array([], int))
    assert not set(used) & set(np.flatnonzero(COUNTS == 0))


@pytest.mark.cases(15)
@every(*SLOW)
def test_the_order_of_the_rows_does_not_matter(name: str) -> None:
    overlap(fit(name, X, NAMES), fit(name, X[ORDER], NAMES[ORDER]), TOL)


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "name", [name for name, s in SUBJECTS.items()
             if s.has("class_weight") and not s.labels and name not in SLOW]
)  # fmt: skip
def test_weights_of_classes_are_weights_of_their_rows(name: str) -> None:
    """With more classes, one versus the rest, the positive one alone has its weight."""
    codes = np.where(NAMES == "ant", 0, 1)
    if "pairs" in name or ("SVC" in name and "Linear" not in name):
        codes = np.searchsorted(["ant", "bee", "cat"], NAMES)
    names = np.array(["ant", "bee", "cat"])[codes]
    factor = {"ant": 2.0, "bee": 0.5, "cat": 3.0}
    own = {key: factor[key] for key in np.unique(names)}
    total = np.bincount(codes, COUNTS)
    balanced = COUNTS.sum() / (len(total) * total)
    for given, by_class in (
        (own, np.array([own[key] for key in np.unique(names)])),
        ("balanced", balanced),
    ):
        one = fit(name, X, names, COUNTS, class_weight=given)
        weight = COUNTS * by_class[codes]
        other = fit(name, X, names, weight, class_weight=None)
        found, wanted = bits(one, X), bits(other, X)
        found.pop("class_weight_", None)
        wanted.pop("class_weight_", None)
        assert found == wanted
