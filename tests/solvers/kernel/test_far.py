"""Points far from each other on the scale of the kernel: values to 60 digits as oracle.

Sentinels, clusters, columns of very different scale, common offsets: every value, sum
and decision is as exact as if the far points were not there, and says how exact.
"""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from scipy.spatial.distance import cdist

import dualgap
from dualgap import SVC, SVR, OneClassSVM, core
from dualgap.kernel import RBF, Gram, KernelProblem, Laplacian
from dualgap.kernels.predict import single_values
from dualgap.training import solve

from ...trust.verifier import SVM, points_of

PLACES = {
    "ordinary": lambda rng, X: X,
    "sentinel": lambda rng, X: _set(X, slice(0, 2), 99_999.0),
    "far sentinels": lambda rng, X: _set(X, slice(0, 3), [1e8, 1e10, 1e12]),
    "two clusters": lambda rng, X: _set(
        X, slice(None), 1e9 * (rng.random(len(X)) < 0.5)
    ),
    "offset": lambda rng, X: X + 1e8,
    "scales": lambda rng, X: X * 10.0 ** np.arange(-3.0, 3.0 * X.shape[1] - 3.0, 3.0),
    "huge": lambda rng, X: X * 1e15,
}
GAMMAS = (1e-12, 1e-3, 0.5, 30.0, 1e4, 1e12)


def _set(X, rows, values):
    X = X.copy()
    X[rows, -1] = values
    return X


def points(place, layout, dtype, n=14, d=3, seed=0):
    rng = np.random.default_rng([seed, *map(ord, place)])
    X = PLACES[place](rng, rng.standard_normal((n, d))).astype(dtype)
    if layout == "csr":
        X[rng.random(X.shape) < 0.3] = 0.0
        X = sparse.csr_matrix(X)
    return X


def exact(kernel, *sets):
    """The kernel matrix of one or two sets of points, to 60 digits."""
    dense = [X.toarray() if sparse.issparse(X) else X for X in sets]
    K = points_of(kernel, np.vstack(dense).astype(float)).K
    n = len(dense[0])
    return K[:n, n:] if len(sets) > 1 else K


def floats(K):
    return np.array([[float(v) for v in K[i].fractions()] for i in range(len(K))])


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("place", PLACES)
def test_sums_keep_the_bound_that_they_come_with(place, layout):
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        X = points(place, layout, dtype)
        for gamma in GAMMAS:
            for kernel in (RBF(gamma), Laplacian(gamma)):
                gram, c = Gram(X, kernel), rng.standard_normal(X.shape[0])
                c *= 10.0 ** rng.uniform(-3, 3, len(c))
                errors = np.full(len(c), np.nan)
                sums = gram.times(c, errors=errors)
                assert (errors <= 1e-7 * np.abs(c).sum()).all()
                K = exact(kernel, X)
                assert not abs(K @ c - sums).above(errors).any()
                block = gram.block(np.arange(len(c)))
                assert np.abs(block - floats(K)).max() <= 2e-9


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("place", PLACES)
def test_decisions_keep_their_bound(place, layout):
    rng = np.random.default_rng(2)
    for dtype, most in ((np.float32, 1e-4), (np.float64, 2e-8)):
        X, Q = points(place, layout, dtype), points(place, layout, dtype, seed=7)
        for gamma in GAMMAS:
            for kernel in (RBF(gamma), Laplacian(gamma)):
                c = rng.standard_normal((1, X.shape[0]))
                found = single_values(kernel, Q, X, c, 0.25)
                size = float(np.abs(c).sum())
                K = floats(exact(kernel, Q, X))
                np.testing.assert_allclose(found, K @ c[0] + 0.25, atol=most * size)
                np.testing.assert_allclose(
                    kernel.block(Q, slice(None), X, np.float64), K, atol=2e-9
                )


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("gamma", [1e-300, 1e290, 1e307, 1e308])
def test_a_huge_gamma_makes_distinct_rows_orthogonal(gamma, layout):
    X = np.random.default_rng(3).standard_normal((6, 2))
    X[5] = X[0]
    same = np.eye(6)
    same[0, 5] = same[5, 0] = 1.0
    if gamma < 1.0:
        same[:] = 1.0
    if layout == "csr":
        X = sparse.csr_matrix(X)
    for kernel in (RBF(gamma), Laplacian(min(gamma, 1e307))):
        gram = Gram(X, kernel)
        np.testing.assert_allclose(gram.block(np.arange(6)), same, atol=1e-30)
        for i in range(6):
            sums = gram.times(np.eye(6)[i], errors=(errors := np.empty(6)))
            np.testing.assert_allclose(sums, same[i], atol=1e-30)
            assert (errors > 0.0).all()
            np.testing.assert_allclose(gram.row(i), same[i], atol=1e-30)
        found = single_values(kernel, X, X, np.ones((1, 6)), 0.0)
        np.testing.assert_allclose(found, same.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_rows_of_the_block_solver_are_right(name, layout, threads):
    for place in PLACES:
        X = points(place, layout, np.float64, n=70)
        kernel = (RBF if name == "rbf" else Laplacian)(0.5)
        n = X.shape[0]
        who = np.arange(0, n, 3, dtype=np.uint32)
        K = Gram(X, kernel).block(who)
        rows = core.KernelRows(
            Gram(X, kernel).accessor,
            core.KernelMap(name, 0.5, 0.0, 1),
            None,
            layout == "dense",
            threads,
        )
        if (place, name, layout) == ("ordinary", "rbf", "dense"):
            np.testing.assert_allclose(rows.centre, X.mean(axis=0), rtol=1e-9)
        out = np.empty((len(who), 96), np.float32)
        assert rows.rows(who, out, core.Stop())
        bound = np.empty(n)
        rows.errors(False, bound)
        off = np.abs(out[:, :n] - K)
        if name == "rbf":  # for the Laplacian kernel no bound is claimed
            assert (off <= bound + 1e-9).all()
        assert off.max() <= 1e-3


def test_bounds_count_the_longest_row_wherever_it_is():
    X = sparse.random(40, 60, 0.05, random_state=0)
    X, found = sparse.vstack([X, np.ones((1, 60))]).tocsr(), []
    for turn in (1, -1):
        errors = np.empty(41)
        Gram(X[::turn], RBF(0.1)).times(np.ones(41), errors=errors)
        found.append(errors[::turn])
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_rows_of_far_points_in_16_bits():
    """The kernel matrix is the identity, and all rows end at their bound."""
    n = 64
    X = 1e4 * np.random.default_rng(0).standard_normal((n, 2))
    y, loss = np.resize([-1.0, 1.0], n), core.ResidualLoss(core.Loss(1, 0), 0, 1, 1)
    form = core.KernelMap("rbf", 1.0, 0.0, 1)
    rows = core.KernelRows(core.dense_rows(X, 0.0), form, None, True, 1)
    problem = core.BlockProblem(y, np.full(n, 0.5), np.ones(n), loss, y, 0.0, False)
    block = core.BlockSolver(rows, problem, n, n, 1 << 20, True, core.Random(0))
    block.set_gradient(np.zeros(n))
    for _ in range(4):
        block.step(1e-3, core.Stop())
    np.testing.assert_allclose(block.gradient, 0.5 * y, atol=1e-3)


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("gamma", "size"), [(1e300, 1e10), (1e308, 2.0), (1e-300, 1e10), (1.0, 3e38)]
)
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_products_with_gamma_may_leave_the_range(name, gamma, size, dtype, layout):
    A = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]) * size
    X = as_layout(A, dtype, layout)
    model = SVC(kernel=name, gamma=gamma, C=10.0).fit(X, [0, 1, 0, 1])
    kernel = (RBF if name == "rbf" else Laplacian)(gamma)
    K = floats(exact(kernel, A.astype(dtype)))
    coef = np.zeros(4)
    coef[model.support_] = model.dual_coef_[0]
    expected = K @ coef + model.intercept_
    scale = max(1.0, float(np.abs(coef).sum()))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-7 * scale)
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    primal = 0.5 * coef @ K @ coef + 10.0 * np.maximum(0.0, 1.0 - y * expected).sum()
    assert model.certificate_.dual <= primal * (1.0 + 1e-12)
    assert primal <= model.certificate_.primal * (1.0 + 1e-12)


@pytest.mark.parametrize("factor", [1e-46, 1e39])
def test_coefficients_beyond_float32(factor):
    rng = np.random.default_rng(8)
    X, c = rng.standard_normal((40, 3)).astype(np.float32), rng.standard_normal((1, 40))
    plain = single_values(RBF(0.5), X, X, c, 0.0)
    np.testing.assert_allclose(
        single_values(RBF(0.5), X, X, factor * c, 0.0) / factor,
        plain, atol=1e-4 * float(np.abs(c).sum()),
    )  # fmt: skip


@pytest.mark.parametrize("gamma", [1e-17, 1e-6, 0.1, 1.0])
def test_tanh_keeps_the_digits_of_small_arguments(gamma):
    X = np.random.default_rng(9).standard_normal((50, 3))
    out = np.zeros(50)
    rows = core.KernelRows(
        core.dense_rows(X, 0.0), core.KernelMap("sigmoid", gamma, 0.0, 1), None, True, 1
    )
    for i in range(0, 50, 7):
        out[:] = 0.0
        one = np.array([i], np.uint32)
        assert rows.times(one, np.ones(1), None, out, None, core.Stop())
        np.testing.assert_allclose(out, np.tanh(gamma * (X @ X[i])), rtol=1e-13)


def sentinel_data(value, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 0] > 0.0, 1, -1)
    train, test = X[:200].copy(), X[200:]
    train[:3, 1] = value
    return train, y[:200], test, y[200:]


def as_layout(X, dtype, layout):
    X = X.astype(dtype)
    return sparse.csr_matrix(X) if layout == "csr" else X


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [9_999.0, 99_999.0, 1e8, 1e10, 1e12])
def test_sentinels_change_nothing_for_ordinary_rows(value, dtype, layout):
    X, y, Q, _ = sentinel_data(value)
    X, Q = as_layout(X, dtype, layout), as_layout(Q, dtype, layout)
    model = SVC(gamma=1.0, C=10.0).fit(X, y)
    assert model.certificate_.certified
    # scikit-learn's own distances between the sentinels cancel.
    A, B = (Z.toarray() if layout == "csr" else Z for Z in (X, Q))
    A, B = A.astype(np.float64), B.astype(np.float64)
    rival = sklearn.svm.SVC(kernel="precomputed", C=10.0, tol=1e-8)
    rival.fit(np.exp(-cdist(A, A, "sqeuclidean")), y)
    scale = float(np.abs(model.dual_coef_).sum())
    np.testing.assert_allclose(
        model.decision_function(Q),
        rival.decision_function(np.exp(-cdist(B, A, "sqeuclidean"))),
        atol=1e-4 * scale,
    )
    checked = dualgap.certify(model, X, y)
    assert checked.dual <= model.certificate_.primal
    assert model.certificate_.dual <= checked.primal


@pytest.mark.parametrize("spread", [1e3, 1e4, 1e9])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_clusters_in_float32_are_those_in_float64(spread, layout):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 3)).astype(np.float32)
    X[:, 2] = np.float32(spread) * (rng.random(300) < 0.5)
    t = X[:, 0] * np.where(X[:, 2] > 0, 1, -1)
    y = np.where(t > 0, 1, -1)
    A, B = as_layout(X, np.float32, layout), as_layout(X, np.float64, layout)
    for model, target in (
        (SVC(gamma=0.5), y),
        (SVR(gamma=0.5), t),
        (OneClassSVM(gamma=0.5), None),
    ):
        one = model.fit(A, target)
        values = one.decision_function(A) if target is not t else one.predict(A)
        two = type(model)(gamma=0.5).fit(B, target)
        other = two.decision_function(B) if target is not t else two.predict(B)
        assert one.certificate_.certified
        assert two.certificate_.certified
        size = float(np.abs(two.dual_coef_).sum())
        np.testing.assert_allclose(values, other, atol=2e-4 * size)


def test_a_linear_kernel_predicts_by_one_product():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((400, 3)).astype(np.float32)
    X[:, 2] = 1000.0 * (rng.random(400) < 0.5)
    y = np.digitize(X[:, 0] + 0.002 * X[:, 2], [-0.5, 1.5])
    for A in (X, sparse.csr_matrix(X)):
        model = SVC(kernel="linear", decision_function_shape="ovo").fit(A, y)
        wide = model.decision_function(A.astype(np.float64))
        np.testing.assert_allclose(model.decision_function(A), wide, rtol=1e-12)
        coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
        own = X.astype(np.float64) @ coef.T + model.intercept_
        # The weights are sums of at most n rows; both round.
        vectors = np.abs(model.support_vectors_)
        reach = np.abs(X) @ (np.abs(model.dual_coef_).sum(axis=0) @ vectors)
        rounding = 2 * len(X) * np.finfo(np.float64).eps * reach[:, None]
        assert (np.abs(np.abs(wide) - np.abs(own)) <= rounding + 1e-14).all()


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize(
    "solver", ["fw", "mfw", "swap", "swap-2o", "core-vector", "block", "kernel-pegasos"]
)
def test_every_solver_bounds_the_same_optimum(solver, layout):
    X, y, _, _ = sentinel_data(1e10)
    X = as_layout(X[:60], np.float64, layout)
    y = y[:60]
    best = SVC(gamma=1.0, loss="squared_hinge", tol=1e-6).fit(X, y).certificate_
    assert best.certified
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC(
            gamma=1.0, loss="squared_hinge", solver=solver, tol=1e-3, max_iter=300
        ).fit(X, y)
    assert model.certificate_.dual <= best.primal
    assert best.dual <= model.certificate_.primal
    if solver not in ("fw", "kernel-pegasos"):  # they converge slowly
        assert model.certificate_.certified


def test_the_certificate_counts_what_kernel_values_may_be_off():
    """P and D of the kernel as written, by 60 digits, lie within the certificate."""
    for seed, place in enumerate(PLACES):
        X = points(place, "dense", np.float64, n=12, seed=seed)
        y = np.where(np.arange(12) % 3 == 0, 1, -1)
        for gamma in GAMMAS:
            problem = KernelProblem(
                X, y, 10.0, kernel=RBF(gamma), loss="hinge", penalize_intercept=False
            )
            solution = solve(problem, dualgap.kernel.BlockSolver(), tol=1e-6)
            K, cost = points_of(RBF(gamma), X), np.full(12, 10.0)
            posed = SVM(K, "hinge", y, cost, bias="free")
            found, duals = solution.certificate, solution.alpha * y
            assert posed.primal(duals, solution.bias) <= found.primal
            off = 1000 * abs(sum(map(Fraction, duals.tolist())))
            assert found.dual <= posed.dual(duals) + off
            assert found.relative_gap <= 1e-5
