"""compress: the certificates of smaller models, from outside."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

from dualgap import SVC, LinearSVC, certify, compress, load_model
from dualgap import save_model as save
from dualgap.problems import BinaryProblem as Problem


def certificates(model):
    return list(model.certificate_)


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def primal(X, signs, w, b, C, loss, penalised=True):
    u = np.maximum(0.0, 1.0 - signs * (X @ w + b))
    return 0.5 * (w @ w + b * b * penalised) + (
        C * (u.sum() if loss == "hinge" else u @ u)
    )


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("penalised", [True, False])
def test_linear_models_lose_duals_and_coefficients(loss, kind, penalised):
    X, y = cancer()
    X = np.hstack([X, 0.01 * np.random.default_rng(0).normal(size=X.shape)])
    model = LinearSVC(
        C=0.1, loss=loss, tol=1e-4, penalize_intercept=penalised, random_state=0
    ).fit(kind(X), y)
    smaller = compress(model, kind(X), y, tol=0.02)
    c = smaller.certificate_
    signs = np.where(y == 1, 1.0, -1.0)
    w, b = smaller.coef_[0], smaller.intercept_[0]
    assert c.primal == pytest.approx(primal(X, signs, w, b, 0.1, loss, penalised))
    assert model.certificate_.relative_gap < c.relative_gap <= 0.02
    assert c.dual <= model.certificate_.primal * (1 + 1e-12)
    assert c.certified
    assert np.count_nonzero(w) < 0.7 * np.count_nonzero(model.coef_)
    assert len(smaller.support_) < len(model.support_)
    # The duals that are left prove the dual value.
    alpha = np.zeros(len(y))
    alpha[smaller.support_] = smaller.dual_coef_[0] * signs[smaller.support_]
    assert (alpha >= 0).all()
    v = X.T @ (alpha * signs)
    off = alpha @ signs
    assert abs(off) <= (np.inf if penalised else 1e-9)
    D = alpha.sum() - 0.5 * (v @ v + penalised * off * off)
    D -= 0.0 if loss == "hinge" else alpha @ alpha / (4 * 0.1)
    assert c.dual == pytest.approx(D, rel=1e-9)
    assert certify(smaller, kind(X), y).relative_gap <= 0.02 * 1.01
    # The old one is as it was.
    again = LinearSVC(
        C=0.1, loss=loss, tol=1e-4, penalize_intercept=penalised, random_state=0
    ).fit(kind(X), y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    np.testing.assert_array_equal(model.dual_coef_, again.dual_coef_)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_certificate_is_that_of_the_smaller_model(loss):
    """The room for rounding is that of the new proof, too, not what the fit had."""
    X, y = cancer()
    X = X + 1e6
    model = LinearSVC(C=0.1, loss=loss, fit_intercept=False, tol=0.1, random_state=0)
    model.fit(X, y)
    smaller = compress(model, X, y, tol=0.5)
    alpha = np.zeros(len(y))
    alpha[smaller.support_] = np.abs(smaller.dual_coef_[0])
    problem = Problem(X, np.where(y == 1, 1, -1), 0.1, loss=loss)
    proof, found = problem.certify(smaller.coef_[0], alpha), smaller.certificate_
    assert found.primal == proof.primal
    # The dual point is scaled once more, which rounds.
    assert found.dual == pytest.approx(proof.dual, abs=0.01 * found.rounding)
    assert found.rounding == pytest.approx(proof.rounding, rel=1e-3)


def test_several_classes_weights_and_files(tmp_path):
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = LinearSVC(class_weight="balanced", tol=1e-6, random_state=0)
    model.fit(X, y, weight)
    smaller = compress(model, X, y, tol=0.1, sample_weight=weight)
    assert all(c.relative_gap <= 0.1 for c in smaller.certificate_)
    found = certify(smaller, X, y, sample_weight=weight, tol=1e-8)
    assert all(c.relative_gap <= 0.1 for c in found)
    assert len(smaller.support_) < len(model.support_)
    save(smaller, tmp_path / "model", duals=True)
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), smaller.predict(X))
    # and it can be trained on
    loaded.set_params(warm_start=True).fit(X, y, weight)
    assert all(c.relative_gap <= 1e-6 for c in loaded.certificate_)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_kernel_models_lose_support_vectors(loss, kind):
    X, y = cancer()
    model = SVC(loss=loss, gamma=0.02, random_state=0).fit(kind(X), y)
    smaller = compress(model, kind(X), y, tol=0.05)
    c, size = smaller.certificate_, len(smaller.support_)
    assert size < 0.6 * len(model.support_)
    assert smaller.support_vectors_.shape[0] == smaller.n_support_.sum() == size
    signs = np.where(y == 1, 1.0, -1.0)
    own = rbf_kernel(X[smaller.support_], gamma=0.02)
    beta, b = smaller.dual_coef_[0], smaller.intercept_[0]
    u = np.maximum(0.0, 1.0 - signs * smaller.decision_function(kind(X)))
    norm = beta @ own @ beta + (b * b if loss == "squared_hinge" else 0.0)
    P = 0.5 * norm + (u.sum() if loss == "hinge" else u @ u)
    assert c.primal == pytest.approx(P, rel=1e-6)
    assert model.certificate_.relative_gap < c.relative_gap <= 0.05
    assert c.dual <= model.certificate_.primal * (1 + 1e-12)
    assert certify(smaller, kind(X), y).relative_gap <= 0.05 * 1.01


def test_pairs_and_precomputed_kernels():
    X, y = load_iris(return_X_y=True)
    model = SVC(C=10.0, gamma=0.5, random_state=0).fit(X, y)
    smaller = compress(model, X, y, tol=0.1)
    assert len(smaller.support_) < len(model.support_)
    assert all(c.relative_gap <= 0.1 for c in smaller.certificate_)
    assert all(c.relative_gap <= 0.1 for c in certify(smaller, X, y, tol=1e-6))
    assert smaller.decision_function(X).shape == (150, 3)
    K = rbf_kernel(X, gamma=0.5)
    given = SVC(C=10.0, kernel="precomputed", random_state=0).fit(K, y)
    fewer = compress(given, K, y, tol=0.1)
    assert all(c.relative_gap <= 0.1 for c in fewer.certificate_)
    assert (fewer.predict(K) == smaller.predict(X)).mean() > 0.99


def test_more_to_spend_is_a_smaller_model():
    X, y = cancer()
    model = SVC(random_state=0).fit(X, y)
    sizes = [len(compress(model, X, y, tol=t).support_) for t in (0.001, 0.01, 0.1)]
    assert sizes[0] > sizes[1] > sizes[2]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_fit_finds_dual_variables_that_a_model_lacks(loss):
    """scikit-learn's patched models have none, nor have files without them."""
    X, y = cancer()
    model = LinearSVC(loss=loss, random_state=0).fit(X, y)
    del model.dual_coef_, model.support_, model.n_support_
    smaller = compress(model, X, y, tol=0.1)
    assert smaller.certificate_.relative_gap <= 0.1
    assert certify(smaller, X, y, tol=1e-6).relative_gap <= 0.1
    assert np.count_nonzero(smaller.coef_) < np.count_nonzero(model.coef_)
