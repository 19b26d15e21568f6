"""L1 and elastic-net penalties: generic solvers, LIBLINEAR, estimators, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.feature_selection import SelectFromModel

from dualgap import DegenerateWarning, LinearSVC, LogisticRegression, certify, core
from dualgap.data import RowStore, convert
from dualgap.data.rows import accessor_of
from dualgap.model_selection import l1_path
from dualgap.problems.base import Claim
from dualgap.problems.columns import Part
from dualgap.problems.elastic_net import ElasticNetProblem, least_C
from dualgap.problems.logistic import FUNCTIONS, LARGEST
from dualgap.solvers import ProximalNewton
from dualgap.solvers.elastic_net_interior import Interior
from dualgap.training import solve

from .conftest import examples
from .twins.elastic_net import descend

LAYOUTS = [
    np.asarray,
    np.float32,
    sparse.csr_matrix,
    lambda X: sparse.csr_matrix(np.float32(X)),
]
LOSSES = ["squared_hinge", "logistic"]
BIASES = [
    {},
    {"fit_intercept": True},
    {"fit_intercept": True, "intercept_scaling": 3.0},
]


def data(n=60, d=8, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, :3] @ rng.normal(size=3) + 0.5 * rng.normal(size=n)
    codes = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    weight = rng.uniform(0.2, 2.0, n)
    weight[::11] = 0.0
    return X, codes, weight


def wide(n=40, d=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


def primal(problem, w):
    """P by its definition."""
    W, X = problem.table(w), problem.passes.X
    X = X.toarray() if sparse.issparse(X) else X
    S = X @ W[:, : problem.d].T
    if problem.passes.constant:
        S = S + problem.passes.constant * W[:, problem.d]
    if problem.hinge:
        sign = 2 * problem.codes - 1
        loss = np.maximum(0.0, 1.0 - sign * S[:, 0]) ** 2
    else:
        S = np.column_stack([0 * S, S]) if problem.outputs == 1 else S
        own = S[np.arange(len(S)), problem.codes]
        loss = np.logaddexp.reduce(S - own[:, None], axis=1)
    own, r = W[:, : problem.penalised], problem.l1_ratio
    return r * abs(own).sum() + (1 - r) / 2 * (own**2).sum() + problem.cost @ loss


# ------------------------------------------------------------------------ the core


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("free", [-1, 5])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_core_descends_as_its_twin_does(layout, free, l2):
    X, _, h = data(d=6)
    X[X < -0.5] = 0.0
    held = layout(np.ascontiguousarray(X.T))
    X = (held.toarray() if sparse.issparse(held) else held).T.astype(float)
    r, start = np.cos(np.arange(60.0)), np.where(np.arange(6) % 2, 0.1, 0.0)
    want, sweeps, met = descend(X, h, r, start, 2.0, l2, free, 1e-6, 300)
    columns = (
        core.csr_rows(held.data, held.indices, held.indptr, 60, 0.0)
        if sparse.issparse(held)
        else core.dense_rows(held, 0.0)
    )
    every, stop = np.arange(6, dtype=np.uint32), core.Stop()
    slope = np.zeros(6)
    assert core.column_products(columns, every, r, slope, stop)
    np.testing.assert_allclose(slope, r @ X)
    penalty, w, u = (
        core.ElasticNetPenalty(2.0, l2, free, 1e-6, 300),
        start.copy(),
        r.copy(),
    )
    done = core.descend_by_columns(columns, penalty, h, u, w, stop)
    assert done.sweeps == sweeps
    np.testing.assert_allclose(w, want, atol=1e-12)
    np.testing.assert_allclose(done.violation, met, atol=1e-12)
    image = r * 0
    core.add_columns(columns, every, w - start, image)
    np.testing.assert_allclose(u, r + h * image, atol=1e-12)
    H, w = X.T @ (X * h[:, None]), start.copy()
    sums, squares = np.zeros((6, 6)), np.zeros(6)
    rows = accessor_of(sparse.csr_matrix(X))
    for weight in (0.3 * h, 0.7 * h):
        assert core.add_products(rows, weight, sums, stop)
        core.add_squares(rows, weight, squares)
    np.testing.assert_allclose(sums, H, atol=1e-12)
    np.testing.assert_allclose(squares, H.diagonal(), atol=1e-12)
    done = core.descend_by_products(H, penalty, H.diagonal().copy(), slope, w, stop)
    assert done.sweeps == sweeps
    np.testing.assert_allclose(w, want, atol=1e-10)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_of_a_part_follow_the_second_derivatives(layout):
    X, codes, h = data(d=6)
    X[X < -0.5] = 0.0
    problem = ElasticNetProblem(layout(X), codes, fit_intercept=True)
    chosen, stop = np.array([1, 4, 6], np.uint32), core.Stop()
    part = Part(problem.columns, chosen)
    own = np.column_stack([X[:, [1, 4]], np.ones(60)])
    few, near = np.where(np.arange(60) % 3 == 0, h, 0.0), h * (1.0 + 0.1 * np.cos(h))
    for weight in (h, few, h):
        found = part.products(weight, stop)
        np.testing.assert_allclose(found, own.T @ (own * weight[:, None]), atol=1e-5)
    before = part.products(near, stop, stale=0.2).copy()
    np.testing.assert_array_equal(before, part.products(h, stop))
    columns, some = part.among(few)
    slope = np.zeros(3)
    assert core.column_products(columns, part.every, few[some], slope, stop)
    np.testing.assert_allclose(slope, few @ own, atol=1e-5)
    np.testing.assert_allclose(part.sums(few, stop), few @ own, atol=1e-5)


def test_a_stop_within_the_products_leaves_the_last_dual_value():
    """Sums over some columns alone would give a D above P, or remove columns."""
    X, codes, _ = data(n=20_000, d=80)
    problem, solver = ElasticNetProblem(X, codes, 0.01), ProximalNewton()
    state, stop = solver.start(problem, core.Random(0), None), core.Stop()
    state.W[:, -1], before = 1.0, state.dual
    stop.request()
    solver.step(state, stop)
    assert state.left.all()
    assert (state.W[:, -1] == 1.0).all()
    assert state.primal > before == state.dual


def test_columns_that_rejection_lets_back_in_move_at_once():
    """The loop takes a second epoch without a change for a fixed point."""
    X, codes, _ = data()
    solver = ProximalNewton()._with_settings(least=1)
    problem, stop = ElasticNetProblem(X, codes, 1.0), core.Stop()
    state = solver.start(problem, core.Random(0), None)
    state.left[:, np.abs(X.T @ (codes - codes.mean())).argmax()] = False
    while state.moved:
        solver.step(state, stop)
    without = state.primal
    solver.reject(state)
    solver.step(state, stop)
    assert state.moved
    assert state.primal < without


# -------------------------------------------------------------------- the problems


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
def test_zeros_that_are_proved_are_zeros(loss, bias):
    X, codes = wide()
    problem = ElasticNetProblem(X, codes, 1.0, loss=loss, **bias)
    best = solve(problem, ProximalNewton(), tol=1e-11).w
    counts = []
    for tol in (1e-1, 1e-3, 1e-7):
        mask = problem.zeros(solve(problem, ProximalNewton(), tol=tol).w)
        counts.append(np.count_nonzero(mask))
        assert not problem.table(best)[mask].any()
    assert counts[0] <= counts[1] <= counts[2]
    assert counts[2] > 0.8 * X.shape[1]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
def test_the_least_C_is_where_weights_begin(loss, bias):
    X, codes, _ = data()
    problem = ElasticNetProblem(X, codes, 1.0, loss=loss, **bias)
    C = least_C(problem)
    for factor, empty in ((0.999, True), (1.01, False)):
        at = ElasticNetProblem(X, codes, C * factor, loss=loss, **bias)
        w = at.table(solve(at, ProximalNewton(), tol=1e-12).w)
        assert (not w[:, : at.penalised].any()) == empty


def test_the_least_C_is_that_of_scikit_learn():
    X, codes, _ = data()
    problem = ElasticNetProblem(
        X, codes, loss="squared_hinge", fit_intercept=True, intercept_scaling=1.0
    )
    assert least_C(problem) == pytest.approx(sklearn.svm.l1_min_c(X, codes))


# ------------------------------------------------------- dependent columns


def dependent(n, d):
    """Rows whose columns depend on few others, and classes with a margin."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 6)) @ rng.normal(size=(6, d)) + 0.1 * rng.normal(
        size=(n, d)
    )
    return X, (X[:, 0] > 0.0).astype(int)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [(40, 70), (70, 40)])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("options", [*BIASES, {"l1_ratio": 0.4}])
def test_the_interior_point_finds_the_optimum(loss, shape, layout, options):
    """From a model that is far from it, over all columns at once."""
    X, codes = dependent(*shape)
    weight = np.where(np.arange(len(X)) % 5 == 0, 0.0, 1.5)
    problem = ElasticNetProblem(
        layout(X), codes, 10.0, loss=loss, sample_weight=weight, classes=2, **options
    )
    columns, w = np.arange(problem.length, dtype=np.uint32), problem.zero()
    w[0] = 3.0
    part = Part(problem.columns, columns)
    inner = Interior(problem, part, w, primal(problem, w))
    best = None
    for w in inner.steps(core.Stop()):
        alpha = np.zeros(problem.n)
        alpha[inner.rows] = inner.a
        best = problem.prove(Claim(w, alpha)).certificate
        if best.relative_gap <= 1e-7:
            break
    assert best.relative_gap <= 1e-7


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
def test_an_interior_point_takes_the_place_of_descents_that_do_not_end(
    loss, bias, monkeypatch
):
    X, codes = dependent(60, 150)
    problem = ElasticNetProblem(X, codes, 10.0, loss=loss, **bias)
    usual = solve(problem, ProximalNewton(), tol=1e-6)
    few = ProximalNewton()._with_settings(sweeps=1, newton=1)
    used = []
    monkeypatch.setattr(Interior, "_step", counted(Interior._step, used))
    other = solve(problem, few, tol=1e-6)
    assert used
    assert other.certificate.certified
    assert other.certificate.dual <= usual.certificate.primal
    assert usual.certificate.dual <= other.certificate.primal
    assert np.count_nonzero(problem.table(other.w)[:, : problem.d]) < 60


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_of_very_different_scales_are_fitted(loss):
    X, y = load_wine(return_X_y=True)
    problem = ElasticNetProblem(X, y == 1, 100.0, loss=loss, fit_intercept=True)
    assert solve(problem, ProximalNewton(), max_iter=50).certificate.relative_gap < 1e-3


def counted(method, used):
    def call(self):
        used.append(1)
        method(self)

    return call


@pytest.mark.parametrize("loss", LOSSES)
def test_any_dual_point_proves_a_bound(loss):
    X, codes = dependent(40, 20)
    problem = ElasticNetProblem(X, codes, 2.0, loss=loss, fit_intercept=True)
    best = solve(problem, ProximalNewton(), tol=1e-10)
    rng = np.random.default_rng(3)
    points = [rng.normal(size=40), np.zeros(40), np.full(40, 1e300), np.full(40, 2.0)]
    for alpha in [*points, rng.uniform(0, 2, 40)]:
        found = problem.prove(Claim(best.w, alpha)).certificate
        assert 0.0 <= found.dual <= best.certificate.primal
        assert found.primal >= best.certificate.dual


# ------------------------------------------------------------------- odd problems


@st.composite
def odd_rows(draw):
    n, d = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X = rng.normal(size=(n, d)) * 10.0 ** draw(st.integers(-8, 8))
    X *= 10.0 ** rng.integers(-4, 5, d) if draw(st.booleans()) else 1.0
    if draw(st.booleans()):
        X[:, 0] = 0.0
    if draw(st.booleans()):
        X[-1] = 0.0
    if draw(st.booleans()):
        X[:, -1] = X[:, 0]
    if draw(st.booleans()):
        X[-1] = X[0]
    codes = rng.integers(0, 2, n)
    weight = rng.integers(0, 3, n).astype(float)
    weight[0] = 1.0
    held = sparse.csr_matrix(X) if draw(st.booleans()) else X
    return held, codes, weight


@given(
    odd_rows(),
    st.sampled_from(LOSSES),
    st.sampled_from([1.0, 0.5]),
    st.sampled_from([{}, {"fit_intercept": True, "intercept_scaling": 2.0}]),
    st.integers(-8, 8),
)
@settings(max_examples=examples(150))
def test_odd_problems(rows, loss, l1_ratio, bias, power):
    X, codes, weight = rows
    problem = ElasticNetProblem(
        X,
        codes,
        10.0**power,
        loss=loss,
        l1_ratio=l1_ratio,
        classes=2,
        sample_weight=weight,
        **bias,
    )
    found = solve(problem, ProximalNewton(), tol=1e-3, max_iter=200)
    certificate = found.certificate
    assert 0.0 <= certificate.dual <= certificate.primal
    assert primal(problem, found.w) <= certificate.primal * (1 + 1e-12)
    assert certificate.dual <= primal(problem, problem.zero()) * (1 + 1e-12)
    mask = problem.zeros(found.w)
    assert not problem.table(found.w)[mask].any() or not certificate.certified


# ---------------------------------------------------------------------- estimators


def objective(X, y, coef, intercept, C, cost=1.0, loss="squared_hinge"):
    values = X @ coef + intercept
    margins = np.where(y, values, -values)
    if loss == "logistic":
        return abs(coef).sum() + C * (cost * np.logaddexp(0, -margins)).sum()
    squares = np.maximum(0, 1 - margins) ** 2
    return abs(coef).sum() + abs(intercept) + C * (cost * squares).sum()


def test_columns_of_labels_are_problems_of_their_own():
    X, codes, _ = data(classes=4)
    Y = np.column_stack([codes > 0, codes > 2]).astype(int)
    for kind in (LinearSVC(penalty="l1"), LogisticRegression(l1_ratio=0.5)):
        kind.set_params(tol=1e-8)
        both = kind.fit(X, Y).certificate_
        for part, column in zip(both, Y.T, strict=True):
            one = kind.fit(X, column).certificate_
            assert part.primal == pytest.approx(one.primal, rel=1e-7)


def test_a_model_without_weights_is_told_about():
    X, y, _ = data()
    with pytest.warns(DegenerateWarning, match="the weight 0; train with a larger"):
        LinearSVC(penalty="l1", C=1e-6).fit(X, y)


def test_select_from_model_takes_the_nonzero_features():
    X, y = wide()
    for model in (LinearSVC(penalty="l1", C=0.1), LogisticRegression(l1_ratio=1)):
        chosen = SelectFromModel(model).fit(X, y)
        kept = abs(chosen.estimator_.coef_[0]) > 1e-5
        np.testing.assert_array_equal(chosen.get_support(), kept)
        assert 0 < kept.sum() < 60


def test_empty_columns_are_left_out():
    X, y, _ = data()
    rows = sparse.csr_matrix(X)
    rows = sparse.csr_matrix(
        (rows.data, rows.indices * 100_003, rows.indptr), shape=(len(X), 1_000_003)
    )
    for model in (LinearSVC(penalty="l1"), LogisticRegression(l1_ratio=1)):
        model.set_params(tol=1e-6)
        few, many = (
            model.set_params(warm_start=False).fit(R, y).coef_.copy() for R in (X, rows)
        )
        np.testing.assert_allclose(many[:, ::100_003][:, : X.shape[1]], few, atol=1e-3)
        assert model.set_params(warm_start=True).fit(rows, y).n_iter_ == 0


def test_certify_takes_models_of_scikit_learn():
    X, y, weight = data()
    models = [
        sklearn.svm.LinearSVC(penalty="l1", dual=False, intercept_scaling=2.0),
        sklearn.linear_model.LogisticRegression(l1_ratio=1, solver="liblinear"),
        sklearn.linear_model.LogisticRegression(
            l1_ratio=0.4, solver="saga", max_iter=9000
        ),
        sklearn.linear_model.SGDClassifier(
            loss="squared_hinge", penalty="l1", alpha=0.01, tol=None, random_state=0
        ),
    ]
    for model in models:
        model.fit(X, y, sample_weight=weight)
        certificate = certify(model, X, y, sample_weight=weight, tol=1e-6)
        assert 0.0 < certificate.dual <= certificate.primal
        C = getattr(model, "C", 100 / len(X))
        if not hasattr(model, "l1_ratio") or model.l1_ratio == 1:
            bias = float(model.intercept_[0])
            loss = "logistic" if hasattr(model, "l1_ratio") else "squared_hinge"
            P = objective(X, y, model.coef_[0], bias, C, weight, loss)
            scaled = abs(bias) * (0.5 if model is models[0] else 1.0)
            P += scaled - (0.0 if loss == "logistic" else abs(bias))
            assert certificate.primal == pytest.approx(P)
        if not isinstance(model, sklearn.linear_model.SGDClassifier):
            assert certificate.relative_gap < 1e-2


def test_penalty_is_deprecated_as_in_scikit_learn():
    X, y, _ = data()
    for penalty, l1_ratio in (("l1", 0.0), ("elasticnet", 0.3), ("l2", 0.0)):
        model = LogisticRegression(penalty=penalty, l1_ratio=l1_ratio)
        with pytest.warns(FutureWarning, match="l1_ratio"):
            model.fit(X, y)
        plain = {"l1": 1.0, "l2": 0.0}.get(penalty, l1_ratio)
        other = LogisticRegression(l1_ratio=plain).fit(X, y)
        np.testing.assert_array_equal(model.coef_, other.coef_)
    with (
        pytest.warns(FutureWarning),
        pytest.raises(ValueError, match=r"contradicts l1_ratio=0\.5; give l1_ratio"),
    ):
        LogisticRegression(penalty="l1", l1_ratio=0.5).fit(X, y)


def test_a_problem_takes_stores_that_fit_their_buffer(tmp_path):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(4000, 20)), np.arange(4000) % 2
    path = convert([(X, codes)], tmp_path / "rows").path
    with pytest.raises(ValueError, match="needs its rows in memory; open the store"):
        ElasticNetProblem(RowStore.open(path, buffer=300_000), codes)
    problem = ElasticNetProblem(RowStore.open(path), codes, 0.1)
    found = solve(problem, ProximalNewton())
    assert found.certificate.certified
    assert primal(problem, found.w) <= found.certificate.primal * 1.00001


def test_the_solver_has_a_name():
    X, y, _ = data()
    records = "proximal-newton", ProximalNewton(), "auto"
    coefs = [LinearSVC(penalty="l1", solver=s).fit(X, y).coef_ for s in records]
    for coef in coefs[1:]:
        np.testing.assert_array_equal(coef, coefs[0])
    with pytest.raises(ValueError, match="is for elastic-net problems; use one of"):
        LinearSVC(solver="proximal-newton").fit(X, y)


# --------------------------------------------------------------------------- paths


def test_a_path_begins_with_the_first_weight():
    X, y = wide()
    path = l1_path(sparse.csr_matrix(X), y, 5, loss="logistic", tol=1e-7)
    assert path.Cs[0] == pytest.approx(path.least)
    assert path.Cs[-1] == pytest.approx(1000 * path.least)
    counts = np.count_nonzero(path.coefs, axis=1)
    assert counts[0] == 0
    assert counts[1] > 0
    assert (path.zeros.sum(axis=1) <= X.shape[1] - counts).all()
    assert path.zeros[0].sum() >= X.shape[1] - 3


def test_a_path_takes_a_share_of_numpy():
    X, y, _ = data()
    one, two = (
        l1_path(X, y, [1.0], loss="logistic", l1_ratio=share)
        for share in (0.5, np.float32(0.5))
    )
    np.testing.assert_array_equal(one.coefs, two.coefs)


def test_wide_sparse_rows_have_a_zero_for_every_empty_column():
    X, y, _ = data()
    rows = sparse.csr_matrix(X)
    rows = sparse.csr_matrix(
        (rows.data, rows.indices * 100_003, rows.indptr), shape=(len(X), 1_000_003)
    )
    few, many = (l1_path(R, y, [0.1], tol=1e-6) for R in (X, rows))
    assert many.zeros.sum() == few.zeros.sum() + 1_000_003 - X.shape[1]


def test_a_row_on_the_wrong_side_hardly_rounds_the_dual_value():
    """Its loss enters D times the probability of its class, which is next to 0."""
    X, codes, _ = data()
    problem = ElasticNetProblem(X, codes, 1.0)
    now = problem.outcome(np.where(codes == 1, -9.0, 9.0)[None])
    scale, dual, error = problem._dual(now, np.zeros(len(X)), 1.0)
    assert scale == 1.0
    own = 1.0 - now.wrong
    assert dual == pytest.approx(now.entropy.sum(), rel=1e-9)
    relative = problem.rounding.term + problem.rounding.closing
    relative += (16.0 + 2.0 * 2 + 4.0 * FUNCTIONS + LARGEST) * 2.0**-53
    size = dual + (now.entropy + own * now.loss).sum()
    expected = relative * size + 1024.0 * 2.0**-53 * now.wrong.sum()
    assert expected <= error <= 1.03 * expected
