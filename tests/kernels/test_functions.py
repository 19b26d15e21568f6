"""Kernel functions against scikit-learn's, in every layout, single and whole rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels
from sklearn.svm import SVC

from dualgap.kernel import (
    RBF,
    Callable,
    Gram,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)

from ..solvers.kernel.data import layouts

PEERS = [
    (Linear(), {"metric": "linear"}),
    (RBF(0.7), {"metric": "rbf", "gamma": 0.7}),
    (
        Polynomial(1, 0.3, 0.5),
        {"metric": "poly", "degree": 1, "gamma": 0.3, "coef0": 0.5},
    ),
    (Polynomial(2, 0.3), {"metric": "poly", "degree": 2, "gamma": 0.3, "coef0": 0.0}),
    (
        Polynomial(5, 0.2, 1.0),
        {"metric": "poly", "degree": 5, "gamma": 0.2, "coef0": 1.0},
    ),
    (Sigmoid(0.2, -0.4), {"metric": "sigmoid", "gamma": 0.2, "coef0": -0.4}),
    (Laplacian(0.3), {"metric": "laplacian", "gamma": 0.3}),
]


def rows(kind, n=70, d=37):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    if kind == "sparse":
        X[rng.random(X.shape) < 0.9] = 0.0
        X[5] = 0.0
    if kind == "far":  # from the origin, where distances cancel
        X += 50.0
    return X


@pytest.mark.parametrize("layout", ["dense-f8", "dense-f4", "csr-f8", "csr-f4"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize(("kernel", "peer"), PEERS, ids=lambda p: str(p)[:12])
def test_values(kernel, peer, kind, layout):
    data = layouts(rows(kind))[layout]
    X = data.toarray() if sparse.issparse(data) else data
    K = pairwise_kernels(X.astype(np.float64), **peer)
    size = np.abs(K).max()
    gram = Gram(data, kernel)
    single = np.array([gram.row(i) for i in range(70)])
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, K, rtol=1e-5, atol=2e-6 * size)
    np.testing.assert_array_equal(single, single.T)  # to the last bit
    some = np.array([3, 69, 0, 5, 33])
    exact = {"rtol": 1e-12, "atol": 1e-13 * size}
    np.testing.assert_allclose(gram.block(some), K[some], **exact)
    np.testing.assert_allclose(gram.block(np.arange(70), some), K[:, some], **exact)
    np.testing.assert_allclose(gram.diagonal(), K.diagonal(), **exact)
    c = np.random.default_rng(1).normal(size=70)
    c[::3] = 0.0
    np.testing.assert_allclose(gram.times(c), K @ c, rtol=1e-11, atol=1e-12 * size * 70)
    np.testing.assert_allclose(
        kernel.block(data, some, data[:9], np.float64), K[some, :9], rtol=1e-9,
        atol=1e-12 * size,
    )  # fmt: skip
    part = gram.subset(some)
    np.testing.assert_array_equal(part.row(1), single[69, some])
    np.testing.assert_allclose(part.block([2, 0]), K[[0, 3]][:, some], **exact)
    np.testing.assert_allclose(part.diagonal(), K.diagonal()[some], **exact)
    np.testing.assert_allclose(
        part.times(c[:5]), K[np.ix_(some, some)] @ c[:5], rtol=1e-11, atol=1e-11 * size
    )


def test_distances_far_from_the_origin():
    X = rows("far")
    K = pairwise_kernels(X - 50.0, metric="rbf", gamma=0.05)
    gram = Gram(X, RBF(0.05))
    np.testing.assert_allclose(
        [gram.row(i) for i in range(70)], K, rtol=2e-5, atol=1e-7
    )
    np.testing.assert_allclose(gram.block(np.arange(70)), K, rtol=1e-9)


@pytest.mark.parametrize("x", [-1e-8, -0.1, -1.0, -5.3, -40.0, -80.0, -600.0, -1e6])
def test_exponential_over_its_whole_range(x):
    X = np.array([[0.0], [np.sqrt(-x)]])
    gram = Gram(X, RBF(1.0))
    expected = np.exp(-(X[1, 0] ** 2))
    assert gram.block([0], [1])[0, 0] == pytest.approx(expected, rel=1e-13, abs=1e-300)
    assert gram.row(0)[1] == pytest.approx(
        expected, rel=2e-5 + 1e-6 * -min(x, -1), abs=1e-37
    )


def test_precomputed_and_callable():
    X = rows("dense", 20, 4)
    K = pairwise_kernels(X, metric="rbf", gamma=0.3)
    calls = []

    def function(A, B):
        calls.append(A.shape[0])
        return pairwise_kernels(A, B, metric="rbf", gamma=0.3)

    for data in (K, sparse.csr_matrix(K)):
        gram = Gram(data, Precomputed())
        np.testing.assert_array_equal(gram.row(3), K[3].astype(np.float32))
        np.testing.assert_array_equal(gram.block([3, 1], [7]), K[[3, 1]][:, [7]])
        np.testing.assert_array_equal(gram.diagonal(), K.diagonal())
        np.testing.assert_allclose(gram.times(K[0]), K @ K[0], rtol=1e-13)
        np.testing.assert_array_equal(
            Precomputed().block(data, [1, 4], data[:3]), K[:3, [1, 4]].T
        )
    gram = Gram(X, Callable(function))
    np.testing.assert_allclose(gram.row(3), K[3], rtol=1e-6)
    np.testing.assert_allclose(gram.block([3, 1], [7]), K[[3, 1]][:, [7]])
    np.testing.assert_allclose(
        gram.subset([5, 6]).times(np.ones(2)), K[5:7, 5:7].sum(0)
    )
    assert calls
    with pytest.raises(ValueError, match=r"X has shape \(20, 4\); give a square"):
        Gram(X, Precomputed())
    with pytest.raises(ValueError, match="returned shape"):
        Gram(X, Callable(lambda A, B: A[:, 0])).row(0)
    with pytest.raises(ValueError, match="NaN"):
        Gram(X, Callable(lambda A, B: np.full((len(A), len(B)), np.nan))).row(0)


@pytest.mark.cases(None)
@pytest.mark.parametrize("layout", ["dense-f8", "dense-f4", "csr-f8", "csr-f4"])
def test_gamma(layout):
    X = rows("sparse")
    data = layouts(X)[layout]
    mean = (euclidean_distances(X) ** 2).sum() / (70 * 69)
    y = np.where(np.arange(70) < 35, 1, 0)
    peer = SVC(gamma="scale").fit(data, y)._gamma
    assert RBF("scale").resolve(data).gamma == pytest.approx(peer, rel=1e-6)
    assert Sigmoid("auto").resolve(data).gamma == pytest.approx(1 / 37)
    assert Laplacian("mean-distance").resolve(data).gamma == pytest.approx(
        1 / mean, rel=1e-6
    )
    assert Polynomial(gamma=0.25).resolve(data).gamma == 0.25
    constant = np.ones((4, 3))
    for rule in ("scale", "mean-distance"):
        assert RBF(rule).resolve(constant).gamma == 1.0
    with pytest.raises(ValueError, match="resolve"):
        RBF("scale").block(X, [0])
