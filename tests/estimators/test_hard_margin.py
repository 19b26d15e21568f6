"""C = inf: models with margins of at least 1, against optima in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from dualgap import SVC, LinearSVC, certify
from dualgap.certificate import Status
from dualgap.training.hard_margin import InseparableError

from ..trust.hard_margin import HUGE, HardMargin
from ..trust.verifier import Rows

MODELS = [
    ({"kernel": "linear"}, "free", SVC),
    ({}, "penalised", LinearSVC),
    ({"loss": "hinge", "penalize_intercept": False}, "free", LinearSVC),
    ({"loss": "smoothed_hinge", "fit_intercept": False}, "none", LinearSVC),
]
Z = np.random.default_rng(0).normal(size=(12, 2))
SIDE = Z @ [1.0, -2.0] > 0.0
GAP = np.where(SIDE, 0.3, -0.3)[:, None] * [1.0, -2.0]
#: Rows, classes, and weights.
DATA = {
    "two rows": ([[1.0, 2.0], [-0.5, 1.0]], [0, 1], None),
    "apart": (Z + GAP, SIDE, None),
    "float32, rows twice": (
        np.tile(Z + GAP, (2, 1)).astype(np.float32), [*SIDE, *SIDE], None,
    ),
    "a row on the wrong side": (
        np.vstack([Z + GAP, Z[:2] - 3.0 * GAP[:2]]), [*SIDE, *SIDE[:2]],
        [1e-9, *[0.01] * 5, *[30.0] * 6, 0.0, 0.0],
    ),
    "sparse": (sparse.csr_matrix(Z + GAP), SIDE, None),
    "large numbers": (1e5 * (Z + GAP) + 3.0, SIDE, None),
}  # fmt: skip


def exact(X, codes, weight, bias):
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    used = np.ones(len(X)) if weight is None else np.array(weight) > 0.0
    signs = np.where(codes, 1, -1)
    return HardMargin(Rows(X), "hinge", signs, HUGE * used, bias=bias)


@pytest.mark.cases(12)
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("options", "bias", "face"), MODELS)
def test_the_optimum_is_within_the_bounds(face, bias, options, data, tol):
    (X, codes, weight), posed = DATA[data], exact(*DATA[data], bias)
    model = face(np.inf, tol=tol, **options).fit(X, codes, weight)
    coef, best = model.coef_[0], posed.optimum.value
    point = (coef, float(model.intercept_[0]))
    proof = certify(model, X, codes, sample_weight=weight, tol=tol)
    assert model.certificate_.certified
    for bounds in (model.certificate_, proof):
        assert bounds.dual <= best <= posed.primal(*point) <= bounds.primal
        assert bounds.relative_gap <= tol
    # The model itself has no loss.
    margins = model.decision_function(X) * np.where(codes, 1, -1)
    used = slice(None) if weight is None else np.array(weight) > 0.0
    assert margins[used].min() >= 1.0 - 1e-12
    assert model.n_iter_ == len(model.history_)
    assert (np.diff(model.history_["epoch"]) == 1).all()


@pytest.mark.parametrize("multi_class", ["svc", "ovo", "ovr"])
def test_every_problem_of_several_classes_is_proved(multi_class):
    X = np.vstack([Z[:4] * 0.3 + at for at in ([4.0, 0.0], [0.0, 4.0], [-4.0, -4.0])])
    y = np.repeat(["a", "b", "c"], 4)
    if multi_class == "svc":
        model = SVC(np.inf, kernel="linear")
    else:
        model = LinearSVC(np.inf, multi_class=multi_class)
    model.fit(X, y)
    pairs = [(a, b) for a, b in combinations("abc", 2)]
    if multi_class == "ovr":
        pairs = [(a, "abc") for a in "abc"]
    bias = "free" if multi_class == "svc" else "penalised"
    for proof in (model.certificate_, certify(model, X, y)):
        for part, (one, others) in zip(proof.parts, pairs, strict=True):
            rows = np.isin(y, list(one + others))
            best = exact(X[rows], y[rows] == one, None, bias).optimum.value
            assert part.dual <= best <= part.primal <= best * Fraction(1.001)


@pytest.mark.parametrize(("options", "bias", "face"), MODELS)
def test_rows_without_a_plane_between_them_are_refused(face, bias, options):
    X, codes = np.vstack([Z, Z[:1]]), np.append(SIDE, not SIDE[0])
    with pytest.raises(InseparableError, match="that separates the rows; use a finite"):
        face(np.inf, **options).fit(X, codes)
    y = np.append(np.where(SIDE, "b", "c"), "a")
    with pytest.raises(InseparableError, match=r"separates the rows of .*a"):
        face(np.inf, **options).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("options", "bias", "face"), MODELS)
def test_a_fit_that_ends_early_has_true_bounds(face, bias, options):
    posed = exact(Z + GAP, SIDE, None, bias)
    late = face(np.inf, tol=1e-15, time_limit=1e-9, **options).fit(Z + GAP, SIDE)
    assert late.certificate_.status is Status.TIME_LIMIT
    for model in (late, face(np.inf, tol=1e-30, **options).fit(Z + GAP, SIDE)):
        bounds = model.certificate_
        assert not bounds.certified
        assert bounds.dual <= posed.optimum.value <= bounds.primal
    assert bounds.relative_gap < 1e-9


def test_a_model_of_another_size_is_certified():
    """A model with smaller margins counts as the multiple that has none below 1."""
    X, codes = Z + GAP, SIDE
    model = SVC(np.inf, kernel="linear").fit(X, codes)
    best, found = model.certificate_, {}
    del model.certificate_
    for scale in (0.5, 2.0, -1.0):
        other = SVC(np.inf, kernel="linear").fit(X, codes)
        other.dual_coef_, other.intercept_ = (
            scale * other.dual_coef_,
            scale * other.intercept_,
        )
        del other.certificate_
        found[scale] = certify(other, X, codes)
        assert found[scale].dual <= best.primal
    assert found[0.5].primal == pytest.approx(best.primal)
    assert found[2.0].primal == pytest.approx(4.0 * best.primal)
    assert found[-1.0].primal == math.inf


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LinearSVC(np.inf, penalty="l1"), "penalty='l1' is not supported with C=inf"),
        (LinearSVC(np.inf, multi_class="crammer_singer", loss="hinge"), "multi_class="),
        (
            LinearSVC(np.inf, checkpoint="a"),
            "checkpoint='a' is not supported",
        ),
        (LinearSVC(np.inf, solver="newton"), "solver='newton' cannot train C=inf"),
        (SVC(np.inf, loss="squared_hinge"), "loss='squared_hinge' is not supported"),
        (SVC(np.inf, solver="nystroem"), "solver='nystroem' is not supported with"),
    ],
)
def test_what_does_not_go_with_it_is_refused(model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(Z + GAP, SIDE)


@pytest.mark.parametrize("face", [SVC, LinearSVC])
def test_statements_about_the_exact_optimum_need_a_finite_C(face):
    model = face(np.inf).fit(Z + GAP, SIDE)
    with pytest.raises(ValueError, match="C=inf: a bound on the exact optimum needs"):
        model.decision_bounds(Z)
