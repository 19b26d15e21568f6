"""The block solver's bounds on scores, and proofs that scan again only rows whose
bounds do not suffice."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.kernel import (
    RBF,
    BlockSolver,
    KernelOneClass,
    KernelProblem,
    KernelRegression,
    Laplacian,
    Polynomial,
)
from dualgap.kernels.gram import Gram, row_source
from dualgap.problems.base import ApproximateScores, Claim, KernelHint
from dualgap.solvers.kernel.base import RowErrors
from dualgap.training import solve

from .data import resting

U = 2.0**-24


def exact_values(X, gamma):
    """The Gaussian kernel to 18 digits, without cancellation."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, np.longdouble)
    square = np.array([((X - x) ** 2).sum(axis=1) for x in X])
    return np.exp(-np.longdouble(gamma) * square)


def data(kind, rng, n=130):
    if kind == "dense":
        return rng.standard_normal((n, 37)), 0.02
    if kind == "float32":
        return rng.standard_normal((n, 5)).astype(np.float32) * 3, 0.1
    if kind == "far":  # h near what float32 is still asked for
        return rng.standard_normal((n, 60)) + 30.0 * rng.random((n, 1)), 0.05
    if kind == "many columns":
        X = rng.standard_normal((n, 700))
        X[:, 1:] *= 0.05  # the first of the partial sums is nearly all of it
        return X, 0.3
    X = sparse.random(n, 40 if kind == "sparse" else 5_000, 0.1, "csr", rng=rng)
    X.data = rng.standard_normal(len(X.data))
    return X, 0.2 if kind == "sparse" else 1e-3


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(
    "kind", ["dense", "float32", "far", "many columns", "sparse", "rare features"]
)
def test_no_value_is_farther_off_than_said(kind, fixed):
    rng = np.random.default_rng(3)
    X, gamma = data(kind, rng)
    if not sparse.issparse(X):
        X[7] = X[6]
    source = row_source(Gram(X, RBF(gamma)))
    n = source.n
    bound = np.empty(n)
    source.errors(fixed, bound)
    who, K = np.arange(n, dtype=np.uint32), exact_values(X, gamma)
    out = np.empty((n, -(-n // 32) * 32), np.float32)
    assert source.rows(who, out, core.Stop())
    values = out[:, :n].astype(np.float64)
    if fixed:
        values = np.rint(65535.0 * values) / 65535.0
    off = abs(values - K).astype(np.float64)
    assert (off <= bound[:, None] - 16 * U).all()
    assert (off <= bound[None, :] - 16 * U).all()  # whichever of the two it is asked of
    assert bound.max() < 0.05  # "far" has the largest one
    # Sums of products are held to it too.
    c, sums = rng.standard_normal(n), np.zeros(n)
    if not fixed:
        assert source.add_rows(who, c, None, sums, core.Stop())
        assert (abs(sums - K @ c) <= bound * abs(c).sum()).all()


def test_precise_rows_are_rounded_once():
    rng = np.random.default_rng(4)
    X = 1e-3 * rng.standard_normal((70, 3))
    source = row_source(Gram(X, RBF(1.0)))
    source.precise = source.shifted = True
    bound, sums, c = np.empty(70), np.zeros(70), rng.standard_normal(70)
    c[0] -= c.sum()
    source.errors(False, bound)
    assert (bound == bound[0]).all()
    assert bound[0] <= 50 * U
    assert source.add_rows(np.arange(70, dtype=np.uint32), c, None, sums, core.Stop())
    assert (abs(sums - exact_values(X, 1.0) @ c) <= bound * abs(c).sum()).all()


@pytest.mark.parametrize("kernel", [Laplacian(0.3), Polynomial(2, 0.5, 1.0)])
def test_other_kernels_have_no_bound(kernel):
    X = np.random.default_rng(5).standard_normal((70, 3))
    source, bound = row_source(Gram(X, kernel)), np.empty(70)
    for source.precise in (False, True):
        source.errors(False, bound)
        assert np.isinf(bound).all()
    y = np.where(X[:, 0] > 0.2, 1, -1)
    problem = KernelProblem(
        X, y, 1.0, kernel=kernel, loss="hinge", penalize_intercept=False
    )
    state = BlockSolver().start(problem, core.Random(0), None)
    BlockSolver().step(state, core.Stop())
    assert state.near() is None


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_products_at_some_rows_are_those_at_all(form):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((150, 4))
    X = sparse.csr_matrix(X * (rng.random((150, 4)) < 0.4)) if form == "csr" else X
    wide = sparse.random(150, 30_000, 0.01, "csr", rng=rng)
    for rows in (X, wide) if form == "csr" else (X,):
        gram = Gram(rows, RBF(0.3))
        c, at = rng.standard_normal(150), rng.permutation(150)[:71]
        own = gram.times(c)
        np.testing.assert_array_equal(gram.times(c, at=at), own[at])
        gram.fast = row_source(gram)
        np.testing.assert_array_equal(gram.times(c, at=at), gram.times(c)[at])
        part = gram.subset(np.arange(20, 140))
        part.fast = row_source(part)
        some = np.array([3, 0, 119])
        np.testing.assert_array_equal(
            part.times(c[:120], at=some), part.times(c[:120])[some]
        )
    one, beyond = np.zeros(1, np.uint32), np.array([150], np.uint32)
    with pytest.raises((ValueError, IndexError)):
        gram.fast.times(one, np.ones(1), beyond, np.zeros(1), None, core.Stop())


def problem_of(kind, rng, n=900, **options):
    X = rng.standard_normal((n, 6))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1, -1)
    if kind == "regression":
        return KernelRegression(
            X, X[:, 0] + X[:, 1], 5.0, kernel=RBF(0.1), epsilon=0.1, **options
        )
    if kind == "one class":
        return KernelOneClass(X, 0.1, kernel=RBF(0.1), **options)
    return KernelProblem(
        X, y, 5.0, kernel=RBF(0.1), loss=kind, penalize_intercept=kind != "hinge",
        sample_weight=rng.integers(0, 3, n), **options,
    )  # fmt: skip


def test_a_step_that_is_stopped_leaves_what_is_near():
    """Wherever rows without a place in the cache are being added."""
    X = np.random.default_rng(13).standard_normal((6000, 60))
    y = np.where(X[:, 0] > 0.4 * np.abs(X[:, 1]), 1, -1)
    problem = KernelProblem(
        X, y, 5.0, kernel=RBF(0.01), loss="hinge", penalize_intercept=False,
        cache_size=1,
    )  # fmt: skip
    solver, stopped = BlockSolver(q=1000), 0
    state = solver.start(problem, core.Random(0), None)
    for step in range(40):
        stop, before = core.Stop(), state.block.steps
        stop.set_deadline(2e-4 * (step + 1))
        solver.step(state, stop)
        stopped += state.block.steps == before
        assert as_near_as_it_says(problem, state)
    assert stopped > 0


KINDS = ["hinge", "squared_hinge", "regression", "one class"]


def as_near_as_it_says(problem, state):
    near = state.near()
    assert near is not None
    exact = problem.gram.times(state.alpha() * problem.y)
    return (abs(near.scores - exact) <= near.error).all() and near.error.max() <= 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_near_is_as_near_as_it_says(kind):
    """While rows are held in 16 bits, and F is exact at some rows only."""
    problem = problem_of(kind, np.random.default_rng(7), cache_size=1.5)
    solver, fixed = BlockSolver(q=32), 0
    state = solver.start(problem, core.Random(0), None)
    state.tol = 1e-3
    for step in range(60):
        solver.step(state, core.Stop())
        assert as_near_as_it_says(problem, state)
        fixed += state.fixed
        if step in (15, 30):  # as a proof that failed would have it
            solver.reject(state)
            assert as_near_as_it_says(problem, state)
    assert 0 < fixed < 60


def parts_of(kind, seed):
    """Yield the parts of the active set that rest in turn, after checking F."""
    problem = resting(kind, np.random.default_rng(seed))
    solver, part = BlockSolver(q=16), None
    solver = solver._with_settings(shrinking_rows=50, vague_share=1.0)
    state = solver.start(problem, core.Random(0), None)
    state.tol = 1e-9
    for step in range(300):
        solver.step(state, core.Stop())
        if state.part is None:
            continue
        if part is not state.part:
            yield (part := state.part)
        assert as_near_as_it_says(problem, state)
        if step % 100 == 99:
            solver.reject(state)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_so_while_rows_rest(kind):
    parts = [list(parts_of(kind, seed)) for seed in (4, 8, 9)]
    assert all(parts)
    if kind in ("hinge", "one class"):  # rows came to rest after others had begun to
        pairs = itertools.chain.from_iterable(map(itertools.pairwise, parts))
        assert any(b.begun is a.begun for a, b in pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_proof_is_the_same_and_scans_fewer_rows(kind):
    rng = np.random.default_rng(8)
    problem = problem_of(kind, rng)
    solution = solve(problem, BlockSolver(), tol=1e-4)
    assert solution.certificate.certified
    again = problem_of(kind, np.random.default_rng(8)).prove(
        Claim(alpha=solution.alpha)
    )
    found, full = solution.certificate, again.certificate
    assert found.primal == pytest.approx(full.primal, rel=1e-12)
    assert found.dual == pytest.approx(full.dual, rel=1e-12)
    assert solution.bias == pytest.approx(again.bias, abs=1e-7)
    np.testing.assert_allclose(solution.decisions, again.decisions, atol=1e-4)
    last = problem._combined
    assert last.exact[solution.alpha != 0.0].all()
    assert last.exact.mean() < 0.9
    # All of them, where all are asked for.
    problem.scores(solution.alpha)
    assert problem._combined.exact.all()


def test_scores_that_are_known_badly_cost_a_scan_and_never_the_truth():
    rng = np.random.default_rng(9)
    problem = problem_of("hinge", rng)
    alpha = solve(problem, BlockSolver(), tol=1e-4).alpha
    full = problem_of("hinge", np.random.default_rng(9)).prove(Claim(alpha=alpha))
    scores = problem.scores(alpha)
    for error in (1e-6, 0.1, 1.0, 100.0, math.inf):
        rough = scores + min(error, 100.0) * rng.uniform(-1.0, 1.0, problem.n)
        fresh = problem_of("hinge", np.random.default_rng(9))
        near = ApproximateScores(rough, np.full(problem.n, error), 0.0)
        proof = fresh.prove(Claim(alpha=alpha, hint=KernelHint(near)))
        upper, lower = proof.certificate.primal, proof.certificate.dual
        assert upper >= full.certificate.primal - full.certificate.rounding
        assert lower <= full.certificate.dual + full.certificate.rounding
        assert fresh._combined.exact.all() == (error >= 100.0)
        if error <= 0.1:
            assert upper - lower <= 1.01 * (
                full.certificate.primal - full.certificate.dual
            )
    # A dual point that is made feasible is another one than that whose scores are near.
    fresh = problem_of("hinge", np.random.default_rng(9))
    off = alpha.copy()
    off[np.argmax(alpha * (problem.y > 0))] *= 0.5
    near = ApproximateScores(fresh.scores(off), np.full(problem.n, 1e-9), 0.0)
    proof = problem_of("hinge", np.random.default_rng(9)).prove(
        Claim(alpha=off, hint=KernelHint(near))
    )
    full = problem_of("hinge", np.random.default_rng(9)).prove(Claim(alpha=off))
    assert not np.array_equal(full.alpha, off)
    np.testing.assert_array_equal(proof.alpha, full.alpha)
    assert proof.certificate.primal == pytest.approx(full.certificate.primal, rel=1e-10)


def prefixes(x, span=128):
    """P of each row x: sums restart after some entries, and the parts are added."""
    total = np.zeros(len(x))
    whole = np.zeros(len(x))
    for first in range(0, x.shape[1], span):
        part = np.cumsum(x[:, first : first + span] ** 2, axis=1)
        total += part.sum(axis=1)
        before, whole = whole, whole + part[:, -1]
        total += np.where(before > 0.0, whole, 0.0)
    return np.sqrt(total / whole)


@pytest.mark.parametrize("d", [20, 128, 300])
def test_bounds_of_rows_are_no_larger_than_their_derivation(d):
    """A bound that is twice as large as it need be fails; see row_errors.hpp."""
    rng = np.random.default_rng(7)
    X, gamma = rng.standard_normal((400, d)), 0.5 / d
    source = row_source(Gram(X, RBF(gamma)))
    bound = np.empty(400)
    source.errors(False, bound)
    assert source.by_products
    x = (X - source.centre) * np.sqrt(2.0 * np.log2(np.e) * gamma)
    h = 0.5 * (x**2).sum(axis=1)
    P = prefixes(x)
    exponent = (3.0 + P * P.max()) * (2 * h + 0.73) + h + 0.73 * np.sqrt(2 * h)
    expected = 0.74 * U * (exponent + 3.0 * 0.54) + 19 * U
    assert (expected <= bound).all()
    assert (bound <= 1.12 * expected).all()  # with the errors of h
    out = np.empty((400, 416), np.float32)
    assert source.rows(np.arange(400, dtype=np.uint32), out, core.Stop())
    off = abs(out[:, :400] - exact_values(X, gamma)).astype(np.float64).max(axis=1)
    assert (bound <= 100.0 * off.max()).all()


@pytest.mark.parametrize("d", [20, 300])
def test_bounds_of_sums_are_no_larger_than_their_derivation(d):
    rng = np.random.default_rng(8)
    X, gamma, c = rng.standard_normal((400, d)), 0.5 / d, rng.standard_normal(400)
    gram = Gram(X, RBF(gamma))
    bound = np.empty(400)
    sums = gram.times(c, errors=bound)
    K = exact_values(X, gamma)
    size = (K * abs(c)).sum(axis=1)
    x = (X - gram.fast.centre) * np.sqrt(2.0 * np.log2(np.e) * gamma)
    h, u = 0.5 * (x**2).sum(axis=1), 2.0**-53
    rate = u * (2.0 * (d + 2) + 24.0)
    added = u * (400 / 6 + 30)
    expected = (added + 0.7 * rate * (h.max() + h)) * size
    assert (expected <= bound).all()
    assert (bound <= 1.02 * expected).all()
    assert (abs(sums - K @ c) <= bound).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_bounds_of_sums_of_differences_are_those_of_their_derivation(form):
    """Groups of points that are too far from each other for products.

    The last group is far from all points with a coefficient.
    """
    rng, d, is_sparse = np.random.default_rng(8), 20, form is sparse.csr_matrix
    X = np.repeat(3e4 * rng.standard_normal((40, d)), 10, axis=0)
    X += rng.standard_normal(X.shape)
    X = np.hstack([X, np.zeros((400, 980 * is_sparse))])
    gamma, c, bound = 0.5 / d, rng.standard_normal(400), np.empty(400)
    c[-10:] = 0.0
    gram = Gram(form(X), RBF(gamma))
    sums = gram.times(c, errors=bound)
    assert not gram.fast.by_products
    K = exact_values(X, gamma)
    size, u = (K * abs(c)).sum(axis=1), 2.0**-53
    # Entries that are stored in one of two sparse points may be twice as many.
    apart = (2 * d if is_sparse else d) + 8
    added = (390 if is_sparse else 390 // 6) + 30
    rest = 0.7 * apart * 64 * 2.0**-64 * abs(c).sum()
    expected = u * ((0.7 * apart * 64 + added) * size + rest)
    np.testing.assert_allclose(bound, 1.01 * expected, 1e-9)
    assert (abs(sums - K @ c) <= bound).all()


def test_dense_points_use_differences_sooner_than_sparse_ones():
    """For them differences cost little more, so an error of 1e-11 is too much."""
    X = 100.0 * np.random.default_rng(0).standard_normal((40, 20))
    wide = sparse.csr_matrix(np.hstack([X, np.zeros((40, 980))]))
    assert not Gram(X, RBF(0.025)).fast.by_products
    assert Gram(wide, RBF(0.025)).fast.by_products


@pytest.mark.parametrize("size", [0.125, 8.0, np.repeat([[0.125], [8.0]], 20, axis=0)])
def test_bounds_from_the_sizes_of_terms_are_those_of_their_derivation(size):
    """Points of one column: a product passes one rounding."""
    X = size * np.resize([1.0, -1.0], (40, 1))
    source = row_source(Gram(X, RBF(0.5 / np.log2(np.e))))
    relative = np.empty(40)
    rest = source.sum_errors(relative)
    h, far = 0.5 * X[:, 0] ** 2, 0.5 * np.max(size) ** 2
    off = 0.74 * U * ((3.0 + 1.0) * 2.0 * np.sqrt(h * far) + far) + (3.0 + 16.0) * U
    np.testing.assert_allclose(relative, off / (1.0 - off), rtol=1e-3)
    np.testing.assert_allclose(rest, 0.74 * 2.0 * U * 0.54 + 2e-8, rtol=1e-6)


@pytest.mark.parametrize("kind", ["dense", "float32", "far", "sparse", "rare features"])
def test_no_sum_is_farther_off_than_its_terms_allow(kind):
    """The bound from the sizes of the terms is valid, and mostly the smaller one."""
    rng = np.random.default_rng(9)
    X, gamma = data(kind, rng)
    source = row_source(Gram(X, RBF(gamma)))
    n, K = source.n, exact_values(X, gamma)
    relative, bound = np.empty(n), np.empty(n)
    rest = source.sum_errors(relative)
    source.errors(False, bound)
    smaller = []
    for c in (rng.random(n), -rng.random(n)):
        sums, reach = np.zeros(n), abs(c).sum()
        who = np.arange(n, dtype=np.uint32)
        assert source.add_rows(who, c, None, sums, core.Stop())
        allowed = relative * abs(sums) + rest * reach
        assert (abs(sums - K @ c) <= allowed).all()
        smaller.append(allowed < bound * reach)
    assert np.mean(smaller) > 0.9 or kind == "far"


def test_bounds_of_sums_of_differences_from_one_are_not_negative():
    """Rows of K - 1, whose values are not positive, of points in two distant groups."""
    rng = np.random.default_rng(12)
    X = np.concatenate([np.full(90, 0.25), np.full(90, -0.25)])[:, None]
    X = X + 1e-3 * rng.standard_normal((180, 2))
    source = row_source(Gram(X, RBF(1.0)))
    source.precise = source.shifted = True
    c = rng.standard_normal(180)
    c -= c.mean()
    errors = RowErrors.of(source)
    sums, off = errors.times(c, np.arange(180), core.Stop())
    assert (off >= errors.rest * abs(c).sum()).all()
    assert (abs(sums - exact_values(X, 1.0) @ c) <= off).all()


def test_other_kernels_have_no_bound_on_sums():
    X = np.random.default_rng(5).standard_normal((70, 3))
    relative = np.empty(70)
    row_source(Gram(X, Laplacian(0.3))).sum_errors(relative)
    assert np.isinf(relative).all()


@pytest.mark.parametrize("rising", [1536, 1700, 3000])
def test_values_among_points_serve_both(rising):
    """Many points of both signs: the sums and bounds of the plain passes, any threads.

    A mirror image swaps the signs, and one point less of a sign leaves the plain pass.
    """
    rng = np.random.default_rng(10)
    n, m = 4900, rising + 1600
    X = rng.standard_normal((n, 5))
    who = np.sort(rng.permutation(n)[:m])
    c = np.zeros(n)
    c[who] = rng.random(m) + 0.1
    c[rng.permutation(who)[rising:]] *= -1.0
    at = np.union1d(who, rng.permutation(n)[:500])
    found = []
    for threads in (1, 2):
        gram = Gram(X, RBF(0.2))
        gram.fast = row_source(gram, threads)
        error, some = np.empty(n), np.empty(len(at))
        sums = gram.times(c, errors=error)
        part = gram.times(c, at=at, errors=some)
        np.testing.assert_array_equal(part, sums[at])
        np.testing.assert_array_equal(some, error[at])
        found.append((sums, error))
    np.testing.assert_array_equal(found[0], found[1])
    plain = gram.times(c)
    assert (abs(sums - plain) <= 2.0 * error).all()
    assert 0.0 < abs(sums - plain).max() < 1e-11  # another order of the same terms
    assert error.max() <= 1e-9
    close = rng.permutation(n)[:60]
    square = ((X[close, None] - X[None]) ** 2).sum(axis=2, dtype=np.longdouble)
    exact = np.exp(np.longdouble(-0.2) * square) @ c
    assert (abs(sums[close] - exact) <= error[close]).all()


def test_a_pass_among_points_can_be_stopped():
    rng = np.random.default_rng(11)
    gram = Gram(rng.standard_normal((3200, 3)), RBF(0.2))
    c = np.where(np.arange(3200) % 2 == 0, 1.0, -1.0)
    stop = core.Stop()
    stop.request()
    with pytest.raises(core.StoppedError):
        gram.times(c, stop, errors=np.empty(3200))
