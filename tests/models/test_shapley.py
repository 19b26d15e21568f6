"""Shapley values: against all subsets, and the axioms that define them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dualgap
from dualgap.models import explanations, shapley_values


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 5))
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3]
    return X, score, np.digitize(score, [-0.5, 0.5])


def by_subsets(f, X, background):
    """Shapley values from the value of every subset, in the decisions' precision."""
    d = X.shape[1]
    subsets = [np.array(bits, bool) for bits in product([0, 1], repeat=d)]
    values = {}
    for S in subsets:
        rows = np.where(S, X[:, None], background).reshape(-1, d)
        decisions = f(rows).reshape(len(X), len(background), -1)
        values[tuple(S)] = decisions.mean(axis=1)
    out = np.zeros((len(X), values[tuple(subsets[0])].shape[1], d))
    for S in subsets:
        for j in np.flatnonzero(~S):
            more = S.copy()
            more[j] = True
            share = float(Fraction(1, d * comb(d - 1, int(S.sum()))))
            out[:, :, j] += share * (values[tuple(more)] - values[tuple(S)])
    return out


def exact_decision(model, kernel):
    """Decisions of a kernel model from its formula, with more digits than float64."""

    def decide(rows):
        rows, vectors = rows.astype(np.longdouble), model.support_vectors_
        apart = rows[:, None] - vectors.astype(np.longdouble)
        size = apart**2 if kernel == "rbf" else np.abs(apart)
        gamma = np.longdouble(model.gamma)
        K = np.exp(-gamma * size.sum(axis=2))
        return K @ model.dual_coef_.T + model.intercept_

    return decide


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("d", [1, 2, 5, 8])
def test_values_of_kernels_are_those_of_all_subsets(kernel, d):
    rng = np.random.default_rng(d)
    X = rng.standard_normal((40, d))
    model = dualgap.SVR(kernel=kernel, gamma=0.3, C=3.0).fit(X, np.sin(X).sum(axis=1))
    found = shapley_values(model, X[:3], X[10:17])
    expected = by_subsets(exact_decision(model, kernel), X[:3], X[10:17])[:, 0]
    assert found.values.shape == found.error.shape == (3, d)
    assert (np.abs(found.values - expected) <= found.error).all()
    assert found.error.max() < 1e-9


MODELS = {
    "SVC": dualgap.SVC(random_state=0),
    "laplacian": dualgap.SVC(kernel="laplacian", gamma=0.2, random_state=0),
    "linear kernel": dualgap.SVC(kernel="linear", random_state=0),
    "NuSVC": dualgap.NuSVC(0.3),
    "SVR": dualgap.SVR(C=10.0),
    "quantiles": dualgap.SVR(loss="quantile", quantile=[0.2, 0.8]),
    "NuSVR": dualgap.NuSVR(nu=0.4),
    "OneClassSVM": dualgap.OneClassSVM(nu=0.2),
    "LinearSVC": dualgap.LinearSVC(random_state=0),
    "LinearSVR": dualgap.LinearSVR(random_state=0),
    "LinearOneClassSVM": dualgap.LinearOneClassSVM(0.9),
    "LogisticRegression": dualgap.LogisticRegression(),
    "sklearn SVC": svm.SVC(),
    "sklearn linear SVC": svm.SVC(kernel="linear"),
    "sklearn NuSVC": svm.NuSVC(nu=0.3),
    "sklearn SVR": svm.SVR(),
    "sklearn OneClassSVM": svm.OneClassSVM(nu=0.2),
    "sklearn LinearSVC": svm.LinearSVC(),
    "sklearn LinearSVR": svm.LinearSVR(),
    "sklearn LogisticRegression": linear_model.LogisticRegression(),
}


def decisions(model, X):
    if hasattr(model, "decision_function_shape"):
        model.decision_function_shape = "ovo"
    decide = getattr(model, "decision_function", model.predict)
    return decide(X)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_values_and_base_add_up_to_the_decision(data, name, classes):
    X, score, labels = data
    y = score if "SVR" in name or name == "quantiles" else labels
    model = clone(MODELS[name]).fit(X, y if classes == 3 else np.minimum(y, 1))
    found = shapley_values(model, X[:4], X[20:30])
    decided = decisions(model, X)
    assert found.values.shape == (4, *decided.shape[1:], 5)
    assert np.shape(found.base) == decided.shape[1:]
    np.testing.assert_allclose(found.base, decided[20:30].mean(axis=0), atol=2e-6)
    total = found.values.sum(axis=-1) + found.base
    np.testing.assert_allclose(total, decided[:4], atol=2e-6)


@pytest.mark.parametrize("name", ["SVC", "linear kernel", "LinearSVC", "sklearn SVC"])
def test_every_problem_has_the_values_of_its_subsets(data, name):
    X, _, y = data
    model = clone(MODELS[name]).fit(X, y)
    found = shapley_values(model, X[:2], X[20:25])
    expected = by_subsets(lambda rows: decisions(model, rows), X[:2], X[20:25])
    np.testing.assert_allclose(found.values, expected, atol=2e-6)


CERTAIN = [
    "SVC",
    "laplacian",
    "linear kernel",
    "SVR",
    "quantiles",
    "LinearSVC",
    "LinearSVR",
]


@pytest.mark.parametrize("name", MODELS)
def test_the_values_of_the_optimum_are_within_their_bounds(data, name):
    """The models are far from it, which the certificate tells."""
    X, score, labels = data
    y = score if "SVR" in name or name == "quantiles" else labels
    model = clone(MODELS[name])
    if name not in CERTAIN:
        assert shapley_values(model.fit(X, y), X[:4], X[20:30]).optimum_error is None
        return
    best = shapley_values(model.set_params(tol=1e-8).fit(X, y), X[:4], X[20:30])
    for tol in (0.5, 1e-2):
        model.set_params(tol=tol)
        if name.startswith("Linear"):  # `auto` solves small problems to the end
            model.set_params(solver="dcd")
        rough = shapley_values(model.fit(X, y), X[:4], X[20:30])
        apart = np.abs(rough.values - best.values)
        assert (apart <= rough.optimum_error + best.optimum_error).all()
        assert (rough.optimum_error >= rough.error).all()
        assert (best.optimum_error <= 1e-2 + 0.1 * np.abs(best.values).max()).all()


def test_a_feature_without_influence_has_0_and_equal_features_have_equal_values(data):
    X, score, _ = data
    twice = np.column_stack([X, X[:, 0], np.full(len(X), 2.5)])
    model = dualgap.SVR().fit(twice, score)
    found = shapley_values(model, twice[:6], twice[30:40])
    assert (found.values[:, 6] == 0.0).all()
    apart = np.abs(found.values[:, 0] - found.values[:, 5])
    assert (apart <= 2 * found.error[:, 0]).all()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_wide_rows_need_fewer_nodes_and_add_up(kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 300))
    model = dualgap.SVR(kernel=kernel, C=10.0).fit(X, X[:, 0])
    found = shapley_values(model, X[:3], X[10:15])
    assert len(explanations._rule(300)[0]) < 70
    total = found.values.sum(axis=1) + found.base
    own = exact_decision(model.set_params(gamma=model._fitted_kernel.gamma), kernel)
    expected = own(X[:3])[:, 0]
    assert (np.abs(total - expected) <= found.error.sum(axis=1)).all()
    assert found.error.max() < 1e-8


@pytest.mark.parametrize("d", [1, 2, 7, 40, 90, 400])
def test_the_rule_integrates_products_of_factors(d):
    """The integral of t^k (1 - t)^(d - 1 - k) is 1 / (d comb(d - 1, k))."""
    nodes, weights, error = explanations._rule(d)
    for k in {0, (d - 1) // 3, d - 1}:
        terms = nodes ** float(k) * (1.0 - nodes) ** float(d - 1 - k)
        exact = float(Fraction(1, d * comb(d - 1, k)))
        unit = 2.0**-53 * (error + 10.0 * d + len(nodes))
        assert abs(weights @ terms - exact) <= unit


def test_the_result_does_not_depend_on_blocks_threads_and_storage(data, monkeypatch):
    X, _, y = data
    model = dualgap.SVC(random_state=0).fit(X, y)
    found = shapley_values(model, X[:7], X[20:40])
    threads = shapley_values(model, X[:7], X[20:40], n_jobs=2)
    assert np.array_equal(threads.values, found.values)
    rows = shapley_values(model, sparse.csr_matrix(X[:7]), sparse.csc_matrix(X[20:40]))
    assert np.array_equal(rows.values, found.values)
    monkeypatch.setattr(
        explanations, "SETTINGS", explanations.ShapleySettings(block=200)
    )
    blocks = shapley_values(model, X[:7], X[20:40])
    assert (np.abs(blocks.values - found.values) <= 2 * found.error).all()
    np.testing.assert_allclose(blocks.base, found.base, rtol=1e-12)


def test_scalers_and_searches_are_looked_through(data):
    X, _, y = data
    scaled = StandardScaler().fit(X)
    search = GridSearchCV(dualgap.SVC(random_state=0), {"C": [1.0]})
    pipeline = make_pipeline(StandardScaler(), search).fit(X, y)
    found = shapley_values(pipeline, X[:3], X[20:30])
    rows = scaled.transform(X)
    inner = pipeline[-1].best_estimator_
    expected = shapley_values(inner, rows[:3], rows[20:30])
    assert np.array_equal(found.values, expected.values)
    with pytest.raises(TypeError, match="step PCA, which may mix columns"):
        shapley_values(make_pipeline(PCA(), dualgap.SVC()).fit(X, y), X, X)


def test_a_model_without_support_vectors_has_values_of_0():
    X = np.arange(8.0).reshape(4, 2)
    for regressor in (dualgap.SVR(), svm.SVR()):
        model = regressor.fit(X, np.full(4, 2.0))
        found = shapley_values(model, X, X)
        assert len(model.support_) == 0
        assert not found.values.any()
        assert found.base == pytest.approx(2.0, abs=0.11)
