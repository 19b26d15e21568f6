"""Every kernel solver: optimality, monotony, feasibility, samples, precision."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.kernel import (
    FW,
    KERNEL_SOLVERS,
    MFW,
    RBF,
    SWAP,
    Callable,
    CoreVector,
    Gram,
    KernelProblem,
    Linear,
    SWAP2o,
    get_kernel_solver,
)
from dualgap.training import solve

from .data import KERNELS, form, make, optimum, values

EXACT = [
    MFW(),
    SWAP(),
    SWAP2o(),
    SWAP2o(ranking="paper"),
    get_kernel_solver("mdm"),
    get_kernel_solver("auto"),
    CoreVector(),
    CoreVector(sample=None),
    SWAP(sample=60),
    SWAP2o(sample=60, balanced=True),
    MFW(sample=20),
]
# 20 problems: kernels, sizes, costs and weights.
BENCH = [
    (name, n, C, weighted)
    for name, (n, C, weighted) in itertools.product(
        KERNELS,
        [(30, 0.1, False), (60, 1.0, True), (60, 10.0, False), (90, 30.0, True)],
    )
]


def bench(name, n, C, weighted, **more):
    X, y = make(n, 3, n + len(name))
    weight = np.random.default_rng(n).uniform(0.1, 3.0, n) if weighted else None
    if weighted:
        weight[::11] = 0.0
    return KernelProblem(X, y, C, kernel=KERNELS[name], sample_weight=weight, **more)


@pytest.mark.parametrize(("name", "n", "C", "weighted"), BENCH)
def test_every_method_reaches_the_optimum(name, n, C, weighted):
    problem = bench(name, n, C, weighted)
    best = optimum(problem)
    scale = best.upper
    for solver in EXACT:
        solution = solve(problem, solver, tol=1e-4, max_iter=3000)
        certificate = solution.certificate
        assert certificate.certified, (solver, certificate)
        P, D = values(problem, solution.alpha)
        assert P == pytest.approx(certificate.primal, rel=1e-9)
        assert D == pytest.approx(certificate.dual, rel=1e-9)
        assert P >= best.lower - 1e-9 * scale
        assert D <= best.upper + 1e-9 * scale
        assert best.lower - D <= 1e-4 * scale
        assert solution.alpha.min() >= 0.0
        assert not solution.alpha[problem.cost == 0.0].any()
        assert solution.w.shape == (problem.width,) == (0,)
        margins = form(problem) @ solution.alpha
        # Rows without a dual variable and a loss keep what a solver knows of them.
        close = np.where((solution.alpha > 0.0) | (margins < 1.0), 1e-8, 1e-6) * scale
        assert (abs(problem.y * solution.decisions - margins) <= close).all()
    # Frank-Wolfe alone crawls, its accuracy being O(1/steps): given steps, D is near.
    fw = solve(problem, FW(), tol=1e-4, max_iter=3000).certificate
    assert fw.dual <= best.upper + 1e-9 * scale
    assert fw.primal >= best.lower - 1e-9 * scale
    assert (
        best.lower - fw.dual
        <= {0.1: 1e-4, 1.0: 2e-3, 10.0: 5e-3, 30.0: 0.03}[C] * scale
    )


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("n", "C"), [(30, 0.003), (40, 0.01), (50, 0.02), (60, 0.01)])
def test_the_five_of_the_paper_agree(name, n, C):
    """Run 20 problems at costs that plain Frank-Wolfe can solve too."""
    problem = bench(name, n, C, False)
    best = optimum(problem)
    for solver in (FW(), MFW(), SWAP(), SWAP2o(ranking="paper"), CoreVector()):
        dual = solve(problem, solver, tol=1e-4, max_iter=3000).certificate.dual
        assert abs(best.lower - dual) <= 1e-4 * best.upper, solver


@pytest.mark.parametrize("solver", EXACT, ids=repr)
def test_the_dual_never_falls_and_every_point_is_feasible(solver):
    problem = bench("rbf", 60, 10.0, True)
    state = solver.start(problem, core.Random(0), None)
    last, stop = -np.inf, core.Stop()
    for _ in range(6):
        _, alpha = solver.iterate(state)
        assert alpha.min() >= 0.0
        assert not alpha[problem.cost == 0.0].any()
        _, D = values(problem, alpha)
        assert last - 1e-6 * abs(D) <= D
        last = D
        solver.step(state, stop)


def test_swap_adds_and_swap_drops_are_counted():
    problem = bench("rbf", 90, 10.0, False)
    for solver in (SWAP(), SWAP2o()):
        state = solver.start(problem, core.Random(0), None)
        for _ in range(3):
            solver.step(state, core.Stop())
        assert 0 < state.drops < state.swaps <= state.updates
        assert state.aways == 0
    state = MFW().start(problem, core.Random(0), None)
    for _ in range(3):
        MFW().step(state, core.Stop())
    assert state.swaps == 0 < state.drops <= state.aways < state.updates


def test_rows_of_a_shared_matrix_are_the_same_problem():
    X, y = make(120, 4, 8)
    gram = Gram(X, RBF(0.3))
    rows = np.random.default_rng(1).permutation(120)[:50]
    shared = solve(KernelProblem(gram.subset(rows), y[rows], 5.0), SWAP2o(), tol=1e-6)
    named = solve(KernelProblem(gram, y[rows], 5.0, rows=rows), SWAP2o(), tol=1e-6)
    alone = solve(
        KernelProblem(X[rows], y[rows], 5.0, kernel=RBF(0.3)), SWAP2o(), tol=1e-6
    )
    np.testing.assert_array_equal(shared.alpha, named.alpha)
    assert shared.certificate.dual == pytest.approx(alone.certificate.dual, rel=2e-6)


@pytest.mark.long
def test_large_costs_need_float64():
    # float32 rows alone stop improving here: refreshed gradients carry on.
    X, y = make(150, 2, 4, noise=0.1)
    problem = KernelProblem(X, y, 1e5, kernel=RBF(0.5))
    certificate = solve(problem, SWAP2o(), tol=1e-6, max_iter=20_000).certificate
    assert certificate.certified
    best = optimum(problem)
    assert best.lower - certificate.dual <= 2e-6 * best.upper
    assert certificate.dual <= best.upper * (1 + 1e-9)


def test_a_sampled_step_costs_the_same_for_any_number_of_rows():
    counts = []
    for n in (10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 2)).astype(np.float32)
        y = np.where(rng.random(n) < 0.5, 1, -1)
        problem = KernelProblem(X, y, 1.0, kernel=RBF(0.5))
        # Few rows in the start and no row twice, so that the counts are comparable.
        solver = SWAP(sample=60)
        state = solver.start(problem, core.Random(0), None)
        before = problem.gram.statistics.evaluations
        solver.step(state, core.Stop())
        assert state.updates == 200
        after = problem.gram.statistics.evaluations
        counts.append((after - before) / 200)
    # At most (60 + 1) values per vertex: 20 at first, one more per step.
    assert max(counts) <= 61 * 220
    assert max(counts) <= 1.1 * min(counts)


def test_a_sampled_gap_never_ends_a_fit():
    # One row among 4000 violates; samples of 2 hardly ever see it.
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(4000, 1)), [[8.0]]])
    y = np.append(np.where(X[:-1, 0] > 0, 1, -1), -1)
    X[:-1, 0] += np.sign(X[:-1, 0])
    problem = KernelProblem(X, y, 100.0, kernel=RBF(1.0))
    for solver in (SWAP(sample=2), MFW(sample=2), CoreVector(sample=2)):
        solution = solve(problem, solver, tol=1e-3, max_iter=3000)
        assert solution.certificate.certified
        assert solution.alpha[-1] > 0.0
        P, D = solution.certificate.primal, solution.certificate.dual
        again = problem.certify(solution.alpha)
        assert (again.primal, again.dual) == (pytest.approx(P), pytest.approx(D))


def test_an_error_in_a_kernel_function_comes_through():
    X, y = make(50, 2, 0)
    calls = []

    def kernel(A, B):
        calls.append(len(A))
        if len(calls) > 8:
            raise RuntimeError("no more")
        return A @ B.T

    with pytest.raises(RuntimeError, match="no more"):
        solve(KernelProblem(X, y, kernel=Callable(kernel)), SWAP())


def test_one_class_and_one_row():
    X, _ = make(12, 2, 0)
    for rows, y in ((X, np.ones(12)), (X[:1], [-1]), (X[:2], [1, -1])):
        problem = KernelProblem(rows, y, 3.0, kernel=RBF(0.5))
        best = optimum(problem)
        for name in KERNEL_SOLVERS:
            if name == "kernel-pegasos":
                continue
            tol = 1e-2 if name == "fw" else 1e-6
            certificate = solve(problem, get_kernel_solver(name), tol=tol).certificate
            assert certificate.certified, (name, certificate)
            assert certificate.dual <= best.upper * (1 + 1e-9)
            assert certificate.primal >= best.lower * (1 - 1e-9)


def test_sparse_rows_without_entries():
    X = sparse.csr_matrix((6, 40))
    problem = KernelProblem(X, [1, -1, 1, -1, 1, 1], kernel=Linear())
    assert solve(problem, SWAP2o(), tol=1e-8).certificate.certified
