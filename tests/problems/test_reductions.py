"""Problems of several classes: their labels and weights, and who wins."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualgap.problems.reductions import (
    Joint,
    OneVsOne,
    OneVsRest,
    Reduction,
    reduction_of,
)

from ..conftest import examples

KINDS = {
    "one versus the rest": OneVsRest,
    "one versus one": OneVsOne,
    "LIBSVM": lambda classes: OneVsOne(classes, libsvm=True),
    "ties broken": lambda classes: OneVsOne(classes, libsvm=True, break_ties=True),
    "joint": Joint,
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def codes_of(classes: int, n: int = 40) -> np.ndarray:
    return np.random.default_rng(classes).permutation(np.arange(n) % classes)


@every_kind
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_table_holds_the_dual_variables_of_all_problems(kind, classes):
    reduction: Reduction = KINDS[kind](classes)
    codes, rng = codes_of(classes), np.random.default_rng(0)
    ones = np.ones(len(codes))
    places = [
        np.flatnonzero(reduction.weights(codes, k, ones, ones))
        for k in range(len(reduction))
    ]
    each = classes if kind == "joint" else 1
    duals = [rng.uniform(0.1, 1.0, each * len(place)) for place in places]
    table = reduction.pack(duals, codes, places)
    assert table.shape == (reduction.tables, len(codes))
    for k, dual in enumerate(duals):
        found = reduction.unpack(table, codes, k)
        if kind == "joint":
            np.testing.assert_array_equal(found, dual)
        else:
            np.testing.assert_array_equal(found[places[k]], dual)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_rows_of_other_classes_have_no_weight_in_a_pair(classes):
    reduction, codes = OneVsOne(classes), codes_of(classes)
    weight, factor = np.full(len(codes), 2.0), np.arange(1.0, classes + 1.0)
    for k, pair in enumerate(combinations(range(classes), 2)):
        assert reduction.subjects[k] == pair
        expected = np.where(np.isin(codes, pair), 2.0 * factor[codes], 0.0)
        np.testing.assert_array_equal(
            reduction.weights(codes, k, weight, factor), expected
        )


@pytest.mark.parametrize("libsvm", [False, True])
def test_votes_of_pairs_are_counted(libsvm):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 10))
    reduction = OneVsOne(5, libsvm=libsvm)
    won = np.zeros((60, 5), int)
    for p, (i, j) in enumerate(combinations(range(5), 2)):
        first = values[:, p] > 0 if reduction.second < 0 else values[:, p] <= 0
        won[np.arange(60), np.where(first, i, j)] += 1
    best = won.max(axis=1)
    chosen = reduction.decide(values)
    assert (won[np.arange(60), chosen] == best).all()
    alone = (won == best[:, None]).sum(axis=1) == 1
    assert alone.any()
    if libsvm:  # of classes with equally many votes the first one wins
        np.testing.assert_array_equal(chosen, won.argmax(axis=1))


def test_votes_with_ties_take_the_first_class():
    # A triangle: each class beats another one, so all have one vote.
    values = np.array([[1.0, -1.0, 1.0], [2.0, -0.5, 0.1]])
    votes = OneVsOne(3, libsvm=True)
    assert votes.decide(values).tolist() == [0, 0]
    values = np.array([[2.0, -0.5, 0.1], [0.1, -3.0, 0.2]])
    assert OneVsOne(3, libsvm=True, break_ties=True).decide(values).tolist() == [0, 2]


@every_kind
@given(
    classes=st.integers(2, 5),
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([0.0, 0.1, 1.0]),
)
@settings(max_examples=examples(40))
def test_a_decided_label_holds_for_all_values_within_the_bounds(
    kind, classes, seed, width
):
    rng = np.random.default_rng(seed)
    reduction: Reduction = KINDS[kind](classes)
    problems = classes if kind == "joint" else len(reduction)
    if kind == "joint" and classes == 2:
        problems = 1
    center = rng.normal(size=(30, problems))
    half = width * rng.uniform(size=center.shape)
    decided = reduction.decided(center - half, center + half)
    low, high = reduction.score_bounds(center - half, center + half)
    for _ in range(20):
        values = center + half * rng.uniform(-1.0, 1.0, center.shape)
        labels = reduction.decide(values)
        sure = decided >= 0
        np.testing.assert_array_equal(labels[sure], decided[sure])
        scores = reduction.scores(values)
        assert (low <= scores + 1e-9).all()
        assert (scores <= high + 1e-9).all()
    if width == 0.0:
        assert (decided >= 0).any()


@pytest.mark.parametrize("name", ["ovr", "ovo", "crammer_singer"])
def test_names_lead_to_reductions(name):
    assert len(reduction_of(name, 4).names(np.arange(4))) == len(reduction_of(name, 4))


@pytest.mark.parametrize("libsvm", [True, False])
@pytest.mark.parametrize("classes", [3, 4, 7])
def test_one_row_wins_the_votes_that_it_wins_among_others(classes, libsvm):
    pairs = OneVsOne(classes, libsvm=libsvm)
    rng = np.random.default_rng(classes)
    # Zeros are votes too, and many rows have ties.
    values = rng.integers(-1, 2, size=(60, len(pairs.subjects))).astype(float)
    together = pairs.decide(values)
    alone = [pairs.decide(values[k : k + 1]) for k in range(60)]
    np.testing.assert_array_equal(np.concatenate(alone), together)
