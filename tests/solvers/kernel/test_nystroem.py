"""Nystroem: its features, what its certificate is about, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from dualgap import core
from dualgap.kernel import (
    RBF,
    BlockSolver,
    Callable,
    KernelProblem,
    Laplacian,
    Linear,
    Nystroem,
    Polynomial,
    Precomputed,
)
from dualgap.solvers import Auto
from dualgap.solvers.kernel import nystroem
from dualgap.training import solve

from ...twins import nystroem as twin
from .test_block import points

KERNELS = [RBF(0.2), Laplacian(0.2), Polynomial(2, 0.3, 1.0), Linear()]
KINDS = [("hinge", False), ("squared_hinge", True)]


def posed(n=300, d=5, C=2.0, kernel=KERNELS[0], loss="hinge", penalised=False, seed=0):
    X, y = points(np.random.default_rng(seed), n, d)
    return KernelProblem(
        X, y, C, kernel=kernel, loss=loss, penalize_intercept=penalised
    )


def features(approximation):
    """Z, one unit vector at a time through the problem's own rows."""
    Z = np.empty((approximation.n, approximation.d))
    for j in range(approximation.d):
        w = np.zeros(approximation.width)
        w[j] = 1.0
        Z[:, j] = approximation.y * approximation.margins(w)
    return Z


def primal(problem, coef, bias):
    """P of f = sum_i coef_i k(x_i, .) + bias for the kernel problem, in NumPy."""
    K = problem.gram.block(np.arange(problem.n))
    f = K @ coef + bias
    norm = coef @ K @ coef + (0.0 if problem.free_bias else bias * bias)
    slack = np.maximum(0.0, 1.0 - problem.y * f)
    loss = slack if problem.loss.name == "hinge" else slack * slack
    return 0.5 * norm + float(problem.cost @ loss)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_features_have_the_approximated_kernel(kernel):
    problem = posed(kernel=kernel)
    approximation = Nystroem(40).approximate(problem, 3)
    rows = twin.landmarks(problem.y, problem.cost > 0, 40, 3)
    np.testing.assert_array_equal(approximation.landmarks, rows)
    K = problem.gram.block(np.arange(problem.n))
    expected = twin.approximated(K, rows)
    Z = features(approximation)
    np.testing.assert_allclose(Z @ Z.T, expected, atol=2e-4 * np.abs(K).max())
    # exact between the landmarks
    own = np.ix_(rows, rows)
    np.testing.assert_allclose(expected[own], K[own], atol=1e-3 * np.abs(K).max())


@pytest.mark.parametrize(("loss", "penalised"), KINDS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_primal_is_that_of_the_kernel_problem(kernel, loss, penalised):
    problem = posed(kernel=kernel, loss=loss, penalised=penalised)
    approximation = Nystroem(30).approximate(problem)
    solution = solve(approximation, Auto(), tol=1e-6)
    certificate = solution.certificate
    assert certificate.certified
    coef, bias = approximation.expand(solution.w)
    assert set(np.flatnonzero(coef)) <= set(approximation.landmarks)
    assert primal(problem, coef, bias) == pytest.approx(certificate.primal, rel=1e-4)


@pytest.mark.parametrize(("loss", "penalised"), KINDS)
def test_bounds_hold_the_optimum_of_the_kernel_problem(loss, penalised):
    problem = posed(loss=loss, penalised=penalised)
    exact = solve(problem, BlockSolver(), tol=1e-8).certificate
    assert exact.certified
    gaps = []
    for m in (10, 40, 160, 600):
        approximation = Nystroem(m).approximate(problem)
        solution = solve(approximation, Auto(), tol=1e-8)
        assert solution.certificate.certified
        assert solution.certificate.primal >= exact.dual * (1 - 1e-5)
        bound = approximation.bound(solution.w, solution.alpha)
        assert bound.dual <= exact.primal
        assert bound.primal >= exact.dual
        assert bound.primal == pytest.approx(solution.certificate.primal, rel=1e-5)
        # scaled as well as may be, so never worse than nothing
        assert bound.dual > 0.0
        gaps.append(bound.relative_gap)
    assert gaps[0] > 0.1  # ten landmarks are far off, and that is seen
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-3  # all rows: the kernel problem itself, but for rounding


def test_bound_is_the_dual_of_the_best_multiple():
    problem = posed(C=0.5)
    approximation = Nystroem(20).approximate(problem)
    solution = solve(approximation, Auto(), tol=1e-6)
    alpha = solution.alpha
    bound = approximation.bound(solution.w, alpha)
    duals = [problem.certify(s * alpha).dual for s in np.linspace(0.0, 1.0, 41)]
    assert bound.dual >= max(duals) * (1 - 1e-12)


def test_certificate_says_what_it_is_about():
    problem = posed()
    approximation = Nystroem(20).approximate(problem)
    certificate = solve(approximation, Auto()).certificate
    about = "the problem over 20 landmarks, not of the kernel problem"
    assert certificate.about == about
    assert f"of the optimum of {about} (target 0.1 %)" in certificate.message
    assert certificate.to_dict()["about"] == about
    plain = solve(problem, BlockSolver()).certificate
    assert plain.about == ""
    assert "landmarks" not in plain.message


def test_classes_draw_the_same_rows_beside_any_other():
    rng = np.random.default_rng(1)
    X, _ = points(rng, 90, 4)
    ends = [0, 30, 70, 90]
    drawn = {}
    for a, b in ((0, 1), (0, 2), (1, 2)):
        rows = np.r_[ends[a] : ends[a + 1], ends[b] : ends[b + 1]]
        y = np.where(rows < ends[a + 1], 1, -1)
        if a == 0:
            y = -y  # whichever sign a class has
        problem = KernelProblem(X[rows], y, kernel=RBF(0.3))
        found = rows[Nystroem(20).approximate(problem, 5).landmarks]
        for k in (a, b):
            own = found[(found >= ends[k]) & (found < ends[k + 1])]
            assert len(own) == 10
            np.testing.assert_array_equal(drawn.setdefault(k, own), own)
    other = Nystroem(20).approximate(posed(), 6).landmarks
    assert not np.array_equal(Nystroem(20).approximate(posed(), 7).landmarks, other)


def test_rows_without_cost_are_no_landmarks():
    X, y = points(np.random.default_rng(2), 60, 3)
    weight = (np.arange(60) % 3 > 0).astype(float)
    problem = KernelProblem(X, y, kernel=RBF(0.5), sample_weight=weight)
    landmarks = Nystroem(1000).approximate(problem).landmarks
    np.testing.assert_array_equal(np.sort(landmarks), np.flatnonzero(weight))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2])
def test_sparse_dense_and_threads_agree(dtype, threads):
    X, y = points(np.random.default_rng(3), 200, 12)
    X = X.astype(dtype)
    X[np.abs(X) < 1.4] = 0.0
    assert (X != 0).mean() < 0.25  # met entry by entry
    reference = features(Nystroem(30).approximate(KernelProblem(X, y, kernel=RBF(0.1))))
    for rows in (X, sparse.csr_matrix(X)):
        problem = KernelProblem(rows, y, kernel=RBF(0.1))
        Z = features(Nystroem(30, threads).approximate(problem))
        np.testing.assert_allclose(Z @ Z.T, reference @ reference.T, atol=1e-5)


def test_threads_and_blas_threads_do_not_change_a_bit():
    problem = posed(n=3000, d=20)
    reference = None
    for threads in (1, 2, 3):
        for blas in (1, 2, 4):
            with threadpool_limits(blas, "blas"):
                found = Nystroem(150, threads).approximate(problem)
            now = found.whiten, features(found)
            reference = now if reference is None else reference
            for a, b in zip(reference, now, strict=True):
                np.testing.assert_array_equal(a, b)


def test_blocks_of_rows_are_the_whole():
    problem = posed(n=500)
    approximation = Nystroem(30).approximate(problem)
    whole, landmarks = features(approximation), approximation.landmarks
    blocks = nystroem.NystroemSettings(values_at_once=30)  # 120 rows each
    parts = features(nystroem.over(problem, landmarks, settings=blocks))
    # Blocks are centred on their own means: rounding differs.
    np.testing.assert_allclose(parts @ parts.T, whole @ whole.T, atol=1e-4)


def test_kernels_that_python_computes():
    X, y = points(np.random.default_rng(4), 120, 4)
    own = RBF(0.3)
    K = own.block(X, slice(None))
    reference = features(Nystroem(30).approximate(KernelProblem(X, y, kernel=own)))
    for rows, kernel in (
        (K, Precomputed()),
        (X, Callable(lambda A, B: own.block(A, slice(None), B))),
    ):
        Z = features(Nystroem(30).approximate(KernelProblem(rows, y, kernel=kernel)))
        np.testing.assert_allclose(Z @ Z.T, reference @ reference.T, atol=1e-4)


def test_far_rows_and_equal_rows():
    rng = np.random.default_rng(5)
    X, y = points(rng, 100, 3)
    X = np.repeat(X[:10], 10, axis=0)  # ten different rows only
    y = np.repeat(y[:10], 10)
    y[0] = -y[1]  # both classes
    approximation = Nystroem(60).approximate(KernelProblem(X, y, kernel=RBF(0.5)))
    assert approximation.d <= 10
    X, y = points(rng, 200, 3)
    problem = KernelProblem(1e3 * X + 1e5, y, kernel=RBF(1e-6))
    K = problem.gram.block(np.arange(200))
    Z = features(Nystroem(400).approximate(problem))
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-3)


def test_told_to_stop_it_leaves():
    stop = core.Stop()
    stop.request()
    approximation = Nystroem(20).approximate(posed(), stop=stop)
    assert not features(approximation).any()


def test_refuses_landmarks_that_are_all_zero():
    y = np.tile([-1, 1], 10)
    problem = KernelProblem(np.zeros((20, 3)), y, kernel=Linear())
    with pytest.raises(ValueError, match=r"kernel='linear' is 0 at all 6 landmarks"):
        Nystroem(6).approximate(problem)


def test_is_a_record():
    assert Nystroem() == Nystroem(n_components=300)
    assert dataclasses.asdict(Nystroem(7)) == {"n_components": 7, "threads": 1}
