"""partial_fit with a free bias, and with "balanced" weights of the rows so far.

Optima are those of `fit` on the same rows, as far as its certificate proves them, and
exact values of D are those of rational numbers.
"""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from dualgap import LinearSVC, core
from dualgap.certificate import Status
from dualgap.losses import SmoothedHinge
from dualgap.problems import BinaryProblem
from dualgap.solvers import DCD
from dualgap.training.signed_stream import SignedStream, scaled
from tests.estimators.test_partial_fit import Sealed, batches, data, learn
from tests.twins import stream as twins
from tests.twins.random import Random

FREE, BALANCED = {"penalize_intercept": False}, {"class_weight": "balanced"}
KINDS = {"free": FREE, "balanced": BALANCED, "both": FREE | BALANCED}
KINDS["weighted"] = FREE | {"class_weight": {0: 3.0, 1: 0.5, 2: 1.0}}
LOSSES = {"hinge": 0.0, "squared_hinge": 0.5, SmoothedHinge(gamma=0.4): 0.4}

kinds = pytest.mark.parametrize("kind", KINDS)
losses = pytest.mark.parametrize("loss", LOSSES, ids=str)


def weights(n, seed=0):
    """Zeros, ones and twos."""
    return np.random.default_rng(seed).integers(0, 3, n) * 1.0


exactly = np.vectorize(Fraction, otypes=[object])


def exact(model, y, cost, X):
    """D of the best point that the stored dual variables allow, in rational numbers.

    It is scaled into the box of the costs, which the stored factors miss by rounding.
    """
    stream, positive = model._stream, (y > 0).astype(int)
    stored = np.concatenate([batch.alpha[0] for batch in stream.batches.values()])
    a, c = exactly(stored) * exactly(stream.factor[0])[positive], exactly(cost)
    used = a != 0
    if model.loss != "squared_hinge" and used.any():
        inside = min(1, *(c[used] / a[used]))
        assert inside >= 1 - 2.0**-50
        a = inside * a
    Z = np.where(y > 0, 1, -1)[:, None] * exactly(X)
    if model.penalize_intercept:
        Z = np.c_[Z, np.where(y > 0, 1, -1)]
    else:
        side = [a[positive == k].sum() for k in range(2)]
        share = [min(side) / part if part else Fraction(0) for part in side]
        a = np.where(positive, *share[::-1]) * a
    v, bent = a @ Z, (a[used] ** 2 / c[used]).sum()
    return a.sum() - (v @ v + Fraction(LOSSES[model.loss]) * bent) / 2


@kinds
@losses
def test_the_bound_is_below_exact_values_and_optima_after_every_call(kind, loss):
    X, y = data(n=60, d=3, seed=5)
    order = np.argsort(y, kind="stable")  # the first batch has one class
    X, y = X[order], y[order]
    weight = weights(60)
    model = LinearSVC(0.7, loss=loss, random_state=0, **KINDS[kind])
    parts = batches(X, y, 15, weight)
    for k, part in enumerate([*parts, *parts[::-1]]):
        model.partial_fit(part[0], part[1], [0, 1], part[2])
        seen = slice(0, 15 * min(k + 1, len(parts)))
        own, factor = weight[seen], np.array([3.0, 0.5])
        total = np.bincount(y[seen], own, 2)
        if kind == "free":
            factor = np.ones(2)
        if model.class_weight == "balanced":
            factor = total.sum() / (2 * np.where(total > 0, total, np.inf))
        cost = 0.7 * (own * factor[y[seen]])
        best = exact(model, y[seen], cost, X[seen])
        found = model._stream.dual(0)
        assert Fraction(found.dual) <= max(best, 0)
        assert found.dual >= float(best) - 1e-12 * max(1.0, abs(float(best)))
        assert model.certificate_.dual >= found.dual
        if total.all():
            fitted = LinearSVC(0.7, loss=loss, tol=1e-9, **KINDS[kind])
            limit = fitted.fit(X[seen], y[seen], own).certificate_
            assert limit.relative_gap <= 1e-8
            assert model.certificate_.dual <= limit.primal
            assert limit.dual <= model.certificate_.primal
        elif not model.penalize_intercept:
            assert model.certificate_.dual == 0.0  # one class needs a bias only
    proof = model.certify(parts)
    assert limit.dual <= proof.primal
    assert proof.dual <= limit.primal
    assert proof.dual == pytest.approx(found.dual, rel=1e-9)


@losses
@pytest.mark.parametrize("free", [False, True])
def test_step_for_step_with_numpy(loss, free):
    X, y = data(n=90, d=5, seed=3)
    signs = np.where(y > 0, 1, -1).astype(np.int8)
    twin, random = twins.SignedStream(5, free), Random(5)
    stream, stop = SignedStream.signed(5 + free, [5], free), core.Stop()
    solver, own, seen = DCD(block_sweeps=3), np.full(30, 2.0), set()
    for name in (0, 1, 2, 1, 0, 0, 2):
        part, factor = slice(30 * name, 30 * name + 30), [1.0 + name, 2.0 / (1 + name)]
        problem = BinaryProblem(
            X[part], signs[part], 1.0, loss=loss, fit_intercept=free,
            sample_weight=own * np.where(signs[part] > 0, *factor[::-1]),
            penalize_intercept=not free,
        )  # fmt: skip
        batch, seen = stream.open(str(name), 30), seen | {name}
        rows = np.concatenate([signs[30 * k : 30 * k + 30] for k in seen])
        cost = 2.0 * np.where(rows > 0, *factor[::-1]).sum(keepdims=True)
        stream.weigh(np.array([factor]), cost, [])
        stream.learn(0, problem, batch, solver, stop)
        twin.learn(name, X[part], signs[part], own, problem.loss, factor, random, 3)
        alpha = scaled(problem, batch.alpha[0], stream.factor[0])
        np.testing.assert_allclose(alpha, twin.batches[name][3], atol=1e-10)
        np.testing.assert_allclose(stream.w[0, :5], twin.w, atol=1e-10)
        assert stream.w[0, -1] == pytest.approx(twin.bias, abs=1e-10) or not free


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@kinds
@losses
@pytest.mark.parametrize("classes", [2, 3])
def test_batches_that_come_again_lead_to_the_model_of_fit(kind, loss, classes):
    X, y = data(n=150, classes=classes)
    X = sparse.csr_matrix(X) if classes == 3 else X
    weight = weights(150, seed=1)
    options = {"loss": loss, "tol": 1e-4, "random_state": 0, **KINDS[kind]}
    model, parts = LinearSVC(0.1, **options), batches(X, y, 50, weight)
    fitted = LinearSVC(0.1, **options).set_params(tol=1e-8).fit(X, y, weight)
    for _ in range(40):
        learn(model, parts, range(classes), 10)
        proofs = np.ravel(model.certify(reversed(parts)))
        if all(proof.certified for proof in proofs):
            break
    for mine, best in zip(proofs, np.ravel(fitted.certificate_), strict=True):
        assert mine.status is Status.CERTIFIED
        assert best.dual <= mine.primal <= best.primal * (1 + 2e-4)
        assert best.dual * (1 - 2e-4) <= mine.dual <= best.primal
    if classes == 2:
        assert np.mean(model.predict(X) == fitted.predict(X)) > 0.97
    # Batches that come again have not been counted again.
    learn(model, parts[:1], range(classes))
    for new, mine in zip(np.ravel(model.certificate_), proofs, strict=True):
        assert new.status is Status.STREAMED
        assert new.dual >= mine.dual * (1 - 1e-2)


@losses
def test_a_free_bias_settles_with_many_small_batches(loss):
    X, y = data(n=200, d=6)
    model, parts = LinearSVC(0.01, loss=loss, random_state=0, **FREE), batches(X, y, 10)
    learn(model, parts, [0, 1], 20)
    assert model.certify(parts).relative_gap < 1e-2


@kinds
@pytest.mark.parametrize("classes", [2, 3])
def test_after_fit_the_same_rows_go_on_from_its_model(kind, classes):
    X, y = data(n=90, classes=classes)
    model = LinearSVC(0.1, tol=1e-9, random_state=0, **KINDS[kind]).fit(X, y)
    before = np.ravel(model.certificate_)
    model.partial_fit(X, y)
    for old, new in zip(before, np.ravel(model.certificate_), strict=True):
        assert new.relative_gap <= 1e-5
        assert new.dual <= old.primal
        assert old.dual <= new.primal
    learn(model, [(X + 1.0, y)], None)
    assert np.ravel(model.certificate_)[0].status is Status.STREAMED


@kinds
def test_pickles_and_threads_change_no_bit(kind):
    X, y = data(n=120, classes=3)
    parts = batches(X, y, 40, weights(120))
    model = LinearSVC(0.1, random_state=0, **KINDS[kind])
    other = LinearSVC(0.1, random_state=0, n_jobs=2, **KINDS[kind])
    for part in [*parts, parts[1]]:
        learn(model, [part], [0, 1, 2])
        learn(other, [part], [0, 1, 2])
        other = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.intercept_, other.intercept_)
    mine, theirs = model.certify(parts), other.certify(parts)
    assert [(c.primal, c.dual) for c in mine] == [(c.primal, c.dual) for c in theirs]


@kinds
def test_a_call_costs_the_same_however_many_batches_there_were(kind):
    X, y = data(n=200)
    model = LinearSVC(0.3, random_state=0, **KINDS[kind])
    parts = batches(X, y, size=20)
    for part in [*parts, parts[3]]:
        model.partial_fit(*part, classes=[0, 1])
        if not isinstance(model._stream.batches, Sealed):
            model._stream.batches = Sealed(model._stream.batches)
    stream = model._stream
    for j, side in product(range(2), ("linear", "total")):
        kept = [getattr(batch, side)[j] for batch in dict.values(stream.batches)]
        assert math.fsum(getattr(stream, side)[j]) == math.fsum(kept)


@kinds
def test_a_call_that_ends_early_leaves_a_whole_model(kind, monkeypatch):
    X, y = data(n=400, d=5)
    model = LinearSVC(10.0, loss="hinge", random_state=0, **KINDS[kind])
    parts = batches(X, y, 200)
    learn(model, parts, [0, 1], 2)
    step, count = DCD.step, []

    def interrupted(self, state, stop):
        step(self, state, stop)
        count.append(1)
        stop.request()

    with monkeypatch.context() as patch:
        patch.setattr(DCD, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(*parts[0])
    assert len(count) == 1
    told, proof = model._stream.dual(0), model.certify(parts)
    assert proof.dual == pytest.approx(told.dual, rel=1e-9)
    limit = LinearSVC(10.0, loss="hinge", **KINDS[kind]).set_params(tol=1e-6).fit(X, y)
    assert proof.dual <= limit.certificate_.primal
    assert limit.certificate_.dual <= proof.primal
    learn(model, parts, [0, 1])


def test_batches_without_a_class_are_learned_from():
    X, y = data(n=60)
    model = LinearSVC(**FREE, **BALANCED, random_state=0)
    model.partial_fit(X[y == 1], y[y == 1], [0, 1])
    np.testing.assert_array_equal(model._stream.factor, [[0.0, 0.5]])
    model.partial_fit(X, y, sample_weight=(y == 1) * 2.0)
    np.testing.assert_array_equal(model._stream.factor, [[0.0, 0.5]])
    model.partial_fit(X[y == 0], y[y == 0])
    total = np.bincount(y) * [1.0, 3.0]
    balanced = total.sum() / (2 * total)
    np.testing.assert_array_equal(model._stream.factor, [balanced])
    assert np.isfinite(model.coef_).all()
    assert 0.0 < model.certificate_.dual < np.inf


def test_a_free_bias_needs_an_intercept_of_scale_1():
    X, y = data(n=20)
    for name, value in (("fit_intercept", False), ("intercept_scaling", 2.0)):
        model = LinearSVC(**FREE).set_params(**{name: value})
        with pytest.raises(ValueError, match="penalize_intercept=False"):
            model.partial_fit(X, y, [0, 1])
        assert not hasattr(model, "classes_")
