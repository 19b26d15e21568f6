"""Rows that come in batches: what partial_fit learns, and what is proved about it.

Optima are those of a generic QP solver, values those of NumPy over all rows.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier

from dualgap import LinearSVC, core, load_model, save_model
from dualgap import certify as certify_any
from dualgap.certificate import Status
from dualgap.data import RowStore, convert
from dualgap.estimators.partial_fit import _TOLD, rows_of_fit
from dualgap.losses import SmoothedHinge
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD
from dualgap.training.stream import Stream, add_exactly
from tests import qp
from tests.twins import stream as twins
from tests.twins.random import Random

LOSSES = {
    "hinge": ("hinge", 0.0, True),
    "squared_hinge": ("squared_hinge", 0.5, False),
    "smoothed_hinge": (SmoothedHinge(gamma=0.4), 0.4, True),
}


def data(n=120, d=4, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X @ rng.standard_normal(d) + 0.7 * rng.standard_normal(n)
    cuts = np.quantile(score, np.arange(1, classes) / classes)
    return X, np.searchsorted(cuts, score)


def batches(X, y, size=40, weight=None):
    parts = [slice(i, i + size) for i in range(0, X.shape[0], size)]
    if weight is None:
        return [(X[p], y[p]) for p in parts]
    return [(X[p], y[p], weight[p]) for p in parts]


def learn(model, parts, classes, passes=1):
    for _ in range(passes):
        for X, y, *weight in parts:
            model.partial_fit(X, y, classes, *weight)
    return model


def signed(X, y, scaling=1.0):
    """y_i (x_i, constant)."""
    X = X.toarray() if sparse.issparse(X) else X
    return np.where(y > 0, 1.0, -1.0)[:, None] * np.c_[X, np.full(len(y), scaling)]


def point(model, scaling=1.0):
    return np.append(model.coef_[0], model.intercept_[0] / scaling)


# ------------------------------------------------------------------- what is proved


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.01, 1.0, 30.0]))
@settings(deadline=None, max_examples=8)
def test_after_every_call_the_dual_bounds_the_optimum_of_the_rows_so_far(loss, seed, C):
    name, curvature, linear = LOSSES[loss]
    rng = np.random.default_rng(seed)
    X, y = data(n=60, d=3, seed=seed)
    weight = rng.integers(0, 3, 60) * 1.0
    weight[::20] = 1.0
    model = LinearSVC(C, loss=name, random_state=seed, class_weight={0: 2.0, 1: 0.5})
    cost = C * weight * np.where(y > 0, 0.5, 2.0)
    parts = batches(X, y, 20, weight)
    last = 0.0
    for k, part in enumerate(parts):
        model.partial_fit(part[0], part[1], [0, 1], part[2])
        seen = slice(0, 20 * (k + 1))
        Z, c = signed(X[seen], y[seen]), cost[seen]
        best = qp.optimum(Z, c, curvature, linear)
        found = model.certificate_
        assert found.dual <= best.upper * (1 + 1e-9)
        # D never falls: what is told of it does by no more than the room for rounding.
        assert found.dual >= last - 2.0 * found.rounding
        last = found.dual
        if k == 0:
            assert best.lower <= found.primal * (1 + 1e-9)
        else:
            assert found.status is Status.STREAMED
            assert found.primal == found.relative_gap == np.inf
    proof = model.certify(parts)
    P = float(qp.primal(Z, c, curvature, linear, point(model)))
    assert proof.primal == pytest.approx(P, rel=1e-12)
    assert proof.dual == pytest.approx(last, rel=1e-9)
    assert proof.dual <= best.upper * (1 + 1e-12)
    assert best.lower <= proof.primal * (1 + 1e-12)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("loss", LOSSES)
def test_batches_that_come_again_lead_to_the_optimum(layout, loss):
    name, curvature, linear = LOSSES[loss]
    X, y = data()
    model = LinearSVC(0.1, loss=name, tol=1e-4, random_state=0, intercept_scaling=2.0)
    parts = [(layout(part), labels) for part, labels in batches(X, y)]
    gaps = []
    for _ in range(40):
        learn(model, parts, [0, 1], 10)
        proof = model.certify(reversed(parts))
        gaps.append(proof.relative_gap)
        if proof.certified:
            break
    assert proof.status is Status.CERTIFIED
    assert gaps[-1] <= 1e-4
    assert (len(gaps) == 1) or (gaps[0] > 1e-4)
    best = qp.optimum(signed(X, y, 2.0), np.full(len(y), 0.1), curvature, linear)
    assert best.lower <= proof.primal * (1 + 1e-12)
    assert proof.primal <= best.upper * (1 + 1e-4)
    assert proof.dual <= best.upper * (1 + 1e-12)
    assert model.n_iter_ == 10 * len(gaps)
    # And learning on takes the proof back, until the next one.
    learn(model, parts[:1], [0, 1])
    assert model.certificate_.status is Status.STREAMED
    assert model.certificate_.dual >= proof.dual * (1 - 1e-12)


class Sealed(dict):
    """Batches that may be looked up, and not looked through."""

    def _refuse(self, *_):
        raise AssertionError("a call looked at all batches")

    __iter__ = values = items = keys = _refuse


def test_a_call_costs_the_same_however_many_batches_there_were():
    X, y = data(n=200)
    parts = batches(X, y, size=20)
    model = LinearSVC(C=0.3, random_state=0)
    for part in [*parts, parts[3], parts[3]]:
        model.partial_fit(*part, classes=[0, 1])
        stream = model._stream
        linear = [float(batch.linear[0]) for batch in dict.values(stream.batches)]
        expected = math.fsum(linear) - 0.5 * core.squared_norm(stream.w[0])
        found = stream.dual(0)
        assert found.dual == pytest.approx(expected - found.rounding, rel=1e-15)
        assert found.rounding <= 1e-12 * expected
        if len(linear) > 1:
            assert model.certificate_.dual == found.dual
        if not isinstance(stream.batches, Sealed):
            stream.batches = Sealed(stream.batches)
    assert model.n_iter_ == 3


@given(st.lists(st.floats(allow_nan=False, min_value=-1e300, max_value=1e300)))
def test_running_sums_are_exact(numbers):
    parts = []
    for k, x in enumerate(numbers):
        add_exactly(parts, x)
        assert math.fsum(parts) == math.fsum(numbers[: k + 1])
        assert len(parts) <= 40


def test_step_for_step_with_numpy():
    X, y = data(n=90, d=5, seed=3)
    signs = np.where(y > 0, 1, -1).astype(np.int8)
    twin, random = twins.Stream(5), Random(5)
    stream, stop = Stream.begin(5, [5]), core.Stop()
    solver = DCD(acceleration="none", block_sweeps=3)
    for name in (0, 1, 2, 1, 0, 0, 2):
        part = slice(30 * name, 30 * name + 30)
        problem = Problem(X[part], signs[part], 2.0, loss="smoothed_hinge")
        twin.learn(name, X[part], signs[part], problem.upper, problem.delta, random, 3)
        batch = stream.open(str(name), 30)
        stream.learn(0, problem, batch, solver, stop)
        np.testing.assert_allclose(batch.alpha[0], twin.batches[name][3], atol=1e-12)
        np.testing.assert_allclose(stream.w[0], twin.w, atol=1e-12)
        assert stream.dual(0).dual == pytest.approx(twin.dual(), rel=1e-12)
    assert stream.rows == 90
    assert stream.passes == 3


@pytest.mark.parametrize("squared", [False, True])
def test_rows_one_by_one_are_passive_aggressive_steps(squared):
    X, y = data(n=50)
    model = LinearSVC(
        0.3, loss="squared_hinge" if squared else "hinge", fit_intercept=False,
        solver=DCD(block_sweeps=1),
    )  # fmt: skip
    learn(model, batches(X, y, 1), [0, 1])
    w = twins.passive_aggressive(X, np.where(y > 0, 1.0, -1.0), 0.3, squared)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-12)


# ------------------------------------------------------------------------- classes


def test_several_classes_are_one_versus_rest():
    X, y = data(classes=3)
    names = np.array(["a", "b", "c"])[y]
    parts = batches(X, names)
    model = LinearSVC(0.1, random_state=0, tol=1e-3)
    learn(model, parts, ["c", "a", "b"], 100)
    certificates = model.certify(parts)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.coef_.shape == (3, 4)
    fitted = LinearSVC(0.1, random_state=0, tol=1e-8).fit(X, names)
    for mine, exact in zip(certificates, fitted.certificate_, strict=True):
        assert mine.certified
        assert mine.dual <= exact.primal * (1 + 1e-9)
        assert exact.dual <= mine.primal * (1 + 1e-9)
    assert np.mean(model.predict(X) == fitted.predict(X)) > 0.97


def test_batches_of_one_class_and_a_class_without_weight():
    X, y = data(classes=3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    parts = batches(X, y, 20)
    assert {len(np.unique(labels)) for _, labels in parts} == {1}
    model = LinearSVC(0.1, loss="hinge", class_weight={2: 0.0})
    learn(model, parts, [0, 1, 2], 30)
    for k, proof in enumerate(model.certify(parts)):
        cost = np.where((y == k) & (k == 2), 0.0, 0.1)
        best = qp.optimum(signed(X, y == k), cost, 0.0, True)
        assert best.lower <= proof.primal * (1 + 1e-9)
        assert proof.dual <= best.upper * (1 + 1e-9)
        assert proof.relative_gap < 0.1


# ------------------------------------------------------------- batches are told apart


def test_the_same_rows_in_another_order_are_another_batch():
    X, y = data(n=40)
    model = LinearSVC(random_state=0).partial_fit(X, y, [0, 1])
    model.partial_fit(X[::-1], y[::-1])
    assert model.n_iter_ == 1
    model.partial_fit(X.copy(), y.copy())
    assert model.n_iter_ == 2
    model.certify([(X, y), (X[::-1], y[::-1])])
    assert model.certificate_.primal > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p[:-1], "2 of the 3 batches"),
        (lambda p: [*p, p[0]], "batch 3 is given twice"),
        (lambda p: [(p[0][0] + 1e-9, p[0][1]), *p[1:]], "batch 0 was never learned"),
        (lambda p: [(p[0][0], 1 - p[0][1]), *p[1:]], "batch 0 was never learned"),
        (lambda p: [(*p[0], np.full(40, 2.0)), *p[1:]], "batch 0 was never learned"),
        (lambda p: [], "0 of the 3 batches"),
    ],
)
def test_a_proof_is_about_the_rows_that_were_learned_from(change, message):
    parts = batches(*data())
    model = learn(LinearSVC(random_state=0), parts, [0, 1])
    before = model.certificate_
    with pytest.raises(ValueError, match=message):
        model.certify(change(parts))
    assert model.certificate_ is before


def test_blocks_of_a_store(tmp_path):
    X, y = data(n=400, d=6)
    convert([(sparse.csr_matrix(X), y)], tmp_path / "s")
    store = RowStore.open(tmp_path / "s", buffer=21_000)
    model = LinearSVC(0.01, tol=1e-2, random_state=0)
    count = 0
    for _ in range(20):
        count = 0
        for batch in store:
            model.partial_fit(batch.X, batch.y, [0, 1])
            count += 1
    assert count > 3
    assert model.certify(store).certified
    other = certify_any(model, store.matrix().astype(float), store.y)
    assert other.primal == pytest.approx(model.certificate_.primal, rel=1e-12)
    assert model.certificate_.dual <= other.primal


# -------------------------------------------------------------- as scikit-learn has it


def test_the_errors_of_sgd_classifier():
    X, y = data(n=30)

    def refused(model, *arguments, **named):
        with pytest.raises(ValueError, match=r"\w") as caught:
            model.partial_fit(*arguments, **named)
        return str(caught.value)

    cases = [
        lambda m: refused(m, X, y),
        lambda m: refused(m, X, np.ones(30), [1]),
        lambda m: refused(m.partial_fit(X, y, [0, 1]), X, y, [0, 1, 2]),
        lambda m: refused(m.partial_fit(X, y, [0, 1]), X[:, :2], y),
    ]
    for case in cases:
        mine, theirs = case(LinearSVC()), case(SGDClassifier())
        assert (
            mine.split("1 class")[0]
            == theirs.replace("SGDClassifier", "LinearSVC").split("1 class")[0]
        )
    with pytest.raises(ValueError, match=r"labels \[7\].*classes \[0, 1\]"):
        LinearSVC().partial_fit(X, np.full(30, 7), [0, 1])
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN or infinite"):
            LinearSVC().partial_fit(np.full((2, 2), bad), [0, 1], [0, 1])


def test_a_refused_first_call_leaves_no_stream():
    X, y = data(n=30)
    model = LinearSVC(random_state=0)
    with pytest.raises(ValueError, match=r"(?i)negative"):
        model.partial_fit(X, y, [0, 1], np.full(30, -1.0))
    model.partial_fit(X, y, [0, 1])
    fresh = LinearSVC(random_state=0).partial_fit(X, y, [0, 1])
    assert np.array_equal(model.coef_, fresh.coef_)


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "parameters",
    [
        {"solver": "pegasos"},
        {"solver": DCD(shrinking="hsieh")},
        {"solver": "unknown"},
        {"penalty": "l1"},
        {"multi_class": "crammer_singer"},
        {"multi_class": "ovo"},
    ],
)
def test_it_is_there_where_it_can_be(parameters):
    model = LinearSVC(**parameters)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as caught:
        model.partial_fit([[0.0]], [0], [0, 1])
    told = str(caught.value.__cause__ or caught.value)
    assert "partial_fit" in told
    assert hasattr(LinearSVC(), "partial_fit")


def test_the_problem_may_not_change_in_the_midst():
    X, y = data(n=30)
    model = LinearSVC(random_state=0).partial_fit(X, y, [0, 1])
    for name, value in [
        ("C", 2.0),
        ("loss", "hinge"),
        ("class_weight", {0: 3}),
    ]:
        before = model.get_params()[name]
        model.set_params(**{name: value})
        with pytest.raises(ValueError, match=f"{name} was {before!r}"):
            model.partial_fit(X, y)
        with pytest.raises(ValueError, match=f"{name} was {before!r}"):
            model.certify([(X, y)])
        model.set_params(**{name: before})
    model.set_params(checkpoint="file")
    with pytest.raises(ValueError, match="checkpoint is not supported by partial_fit"):
        model.partial_fit(X, y)
    assert (
        clone(model).set_params(checkpoint=None).partial_fit(X, y, [0, 1]).coef_.any()
    )


# ----------------------------------------------------------------- after and before fit


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@pytest.mark.parametrize("solver", ["dcd", "interior-point", "pegasos"])
@pytest.mark.parametrize("classes", [2, 3])
def test_after_fit_the_same_rows_are_one_more_epoch(solver, classes):
    X, y = data(classes=classes)
    model = LinearSVC(0.1, loss="hinge", solver=solver, tol=1e-1, random_state=0).fit(
        X, y
    )
    before = np.ravel(model.certificate_)
    model.set_params(solver="dcd", tol=1e-3).partial_fit(X, y)
    for old, new in zip(before, np.ravel(model.certificate_), strict=True):
        assert new.dual >= old.dual * (1 - 1e-12)
    assert not hasattr(model, "dual_coef_")
    learn(model, [(X, y)], None, 100)
    assert all(c.certified for c in np.ravel(model.certificate_))


def test_after_fit_other_rows_are_refused(tmp_path):
    X, y = data()
    model = learn(LinearSVC(random_state=0), batches(X, y), [0, 1]).fit(X, y)
    assert np.array_equal(model.coef_, LinearSVC(random_state=0).fit(X, y).coef_)
    for other in [(X[:-1], y[:-1]), (2 * X, y), (X, 1 - y), (X[::-1], y[::-1])]:
        with pytest.raises(ValueError, match="must start with the rows passed to fit"):
            model.partial_fit(*other)
    with pytest.raises(ValueError, match="not trained by partial_fit"):
        model.certify([(X, y)])
    pytest.importorskip("safetensors")
    save_model(model, tmp_path / "m", duals=True)
    with pytest.raises(ValueError, match="does not store them"):
        load_model(tmp_path / "m").partial_fit(X, y)


def test_models_of_streams_are_written_and_read(tmp_path):
    pytest.importorskip("safetensors")
    X, y = data()
    model = learn(LinearSVC(random_state=0), batches(X, y), [0, 1])
    save_model(model, tmp_path / "m")
    found = load_model(tmp_path / "m")
    assert found.certificate_ == model.certificate_
    assert np.array_equal(found.decision_function(X), model.decision_function(X))


def test_a_time_limit_leaves_a_whole_model():
    X, y = data(n=4000, d=30)
    model = LinearSVC(100.0, loss="hinge", solver=DCD(block_sweeps=1))
    before = model.partial_fit(X, y, classes=[0, 1]).certificate_
    assert before.dual > 0
    # It may be over before a row is visited, and ends the sweeps, which take minutes.
    model.set_params(solver=DCD(block_sweeps=10**6), time_limit=0.05)
    proof = model.partial_fit(X, y).certificate_
    assert proof.primal == pytest.approx(
        float(qp.primal(signed(X, y), np.full(4000, 100.0), 0.0, True, point(model)))
    )
    # D never falls: what is told of it does by no more than the room for rounding.
    assert before.dual - 2.0 * proof.rounding <= proof.dual <= proof.primal


def test_one_row_of_many_tells_a_fit_from_others():
    rows = SimpleNamespace(all_read=True, q=np.ones(3 * _TOLD))
    codes = np.zeros(3 * _TOLD, dtype=np.intp)
    told = rows_of_fit(codes, rows)
    assert told == rows_of_fit(codes.copy(), rows)
    assert told != rows_of_fit(codes[1:], rows)
    for i in (0, 1, 2):  # not all of them are looked at
        other = codes.copy()
        other[i] = 1
        assert told != rows_of_fit(other, rows)
        q = rows.q.copy()
        q[i] += 1e-9
        assert told != rows_of_fit(codes, SimpleNamespace(all_read=True, q=q))
