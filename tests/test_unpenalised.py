"""The unpenalised bias: P >= P* >= D whatever is asked, and sum_i alpha_i y_i = 0."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dualgap.certificate import Status
from dualgap.losses import Hinge, SmoothedHinge, SquaredHinge
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems.base import Claim
from dualgap.problems.bias import best_bias
from dualgap.solvers import DCD, SOLVERS
from dualgap.training import solve

from .conftest import examples
from .test_certificate import EPS, Plain, cases, floats, sampled, scales
from .trust.verifier import SVM

LOSSES = [Hinge(), SquaredHinge(), SmoothedHinge(0.3), SmoothedHinge(5.0)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def build(case) -> tuple[Problem, Plain, np.ndarray]:
    """Build the degenerate problems of the penalised bias, with a free bias."""
    bare, plain = replace(case, intercept_scaling=None).build()
    y = bare.y.astype(int)
    X = plain.Z * y[:, None]
    problem = Problem(
        sparse.csr_matrix(X) if case.layout == "csr" else X,
        y, 1.0, loss=bare.loss, sample_weight=plain.cost, fit_intercept=True,
        penalize_intercept=False,
    )  # fmt: skip
    return problem, plain, y


def check_bracket(posed: SVM, y, problem, certificate, w, alpha, scaled=False) -> None:
    """The certificate is about w and alpha, and the optimum lies between."""
    assert posed.in_box(alpha * y)
    off = abs(float(sum(Fraction(a) * int(s) for a, s in zip(alpha, y, strict=True))))
    # One rounding of one entry, or one of each where balance was followed by a scale.
    assert off <= EPS * (alpha.sum() if scaled else alpha.max())
    value, dual = posed.primal(w[:-1], w[-1]), posed.dual(alpha * y)
    room = 2.0 * certificate.rounding
    assert value <= certificate.primal
    assert certificate.primal - value <= room
    assert certificate.dual <= posed.optimum.value <= certificate.primal
    reach = 1.0 + math.sqrt(2.0 * problem.q.max() * max(certificate.primal, 0.0))
    assert certificate.dual <= dual
    assert dual - certificate.dual <= room + 1.03 * off * reach  # 1.01 twice


@settings(max_examples=examples(200), derandomize=True)
@given(case=cases, seed=st.integers(0, 2**32 - 1), length=scales, size=scales)
def test_any_point_gets_a_true_certificate(case, seed, length, size):
    problem, plain, y = build(case)
    posed = plain.posed(y)
    rng, best = np.random.default_rng(seed), posed.optimum
    near, optimal = np.append(floats(best.model), float(best.bias)), floats(best.duals)
    noise = rng.standard_normal(problem.width)
    reach = size * (np.abs(optimal).max() + 1)
    alpha = rng.random(case.n) * np.minimum(plain.upper, reach)
    kept = alpha.copy()
    for w in (noise * length, near + noise * length * np.abs(near), near):
        for given_alpha in (None, alpha):
            proof = problem.prove(Claim(w, given_alpha))
            told, same = problem.certify(w, given_alpha), (proof.w == w).all()
            # A proof may lengthen w a little, where margins are next to 1.
            check_bracket(
                posed, y, problem, proof.certificate, proof.w, proof.alpha, True
            )
            assert told == proof.certificate or not same
            assert told.dual <= posed.optimum.value
            assert posed.primal(w[:-1], w[-1]) <= told.primal
    proof = problem.prove(Claim(alpha=alpha))
    check_bracket(posed, y, problem, proof.certificate, proof.w, proof.alpha)
    off = (case.n + 4) * EPS * (proof.alpha @ np.abs(plain.Z))
    assert (np.abs(proof.w[:-1] - proof.alpha @ plain.Z) <= off).all()
    assert (alpha == kept).all()
    # The optimal dual point proves the optimum, but for rounding.
    tight = problem.certify(alpha=np.minimum(optimal * y, plain.upper))
    assert tight.dual >= (1.0 - 1e-9) * float(best.value) - 2.0 * tight.rounding


# --- the best bias ---------------------------------------------------------------


@pytest.mark.long
@every_loss
@settings(max_examples=examples(100), derandomize=True)
@given(
    n=st.integers(1, 9), seed=st.integers(0, 2**32 - 1), scale=sampled(0.1, 1, 30),
    ties=st.booleans(),
)  # fmt: skip
def test_no_bias_is_better_than_the_best(loss, n, seed, scale, ties):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(n) * scale
    if ties:
        scores = np.round(scores)
    y = rng.choice([-1, 1], n).astype(np.int8)
    cost = rng.choice([0.0, 0.5, 1.0, 7.0], n)
    cost[rng.integers(n)] = 1.0

    def phi(b):
        return float(cost @ loss.value(y * (scores + b)))

    found = phi(best_bias(scores, y, cost, loss))
    kink = y - scores
    reach = 1.0 + np.abs(kink).max() + min(loss.slope * loss.curvature, 10.0)
    grid = np.concatenate([np.linspace(-reach, reach, 2001), kink])
    least = min(phi(b) for b in grid)
    assert found <= least + 1e-12 * (1 + abs(least))


def test_the_best_bias_is_the_middle_where_many_are_best():
    y, cost = np.array([1, 1, -1, -1], dtype=np.int8), np.ones(4)
    scores = np.array([5.0, 4.0, -1.0, -7.0])  # kinks at -4, -3, 0, 6
    assert best_bias(scores, y, cost, Hinge()) == -1.5


# --- the problem -----------------------------------------------------------------


def small(loss="hinge", **options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    y = np.where(X[:, 0] + rng.standard_normal(30) > 0.8, 1, -1)
    options = {"fit_intercept": True, "penalize_intercept": False} | options
    return X, y, Problem(X, y, 2.0, loss=loss, **options)


@every_loss
def test_values_are_those_of_the_formulas(loss):
    X, y, problem = small(loss)
    w = np.linspace(-1, 1, 5)
    margins = y * (X @ w[:4] + w[4])
    np.testing.assert_allclose(problem.margins(w), margins, rtol=1e-13)
    P = 0.5 * w[:4] @ w[:4] + 2.0 * loss.value(margins).sum()
    assert problem.primal(w) == pytest.approx(P, rel=1e-13)
    assert problem.certify(w).primal == pytest.approx(P, rel=1e-13)
    coef, bias = problem.coef(w)
    np.testing.assert_array_equal(coef, w[:4])
    assert bias == w[4]

    alpha = problem.balance(np.minimum(problem.upper, 0.5))
    v = (alpha * y) @ X
    found = problem.combine(alpha)
    np.testing.assert_allclose(found[:4], v, rtol=1e-12)
    grid = np.append(found[:4], 0.0) + np.outer(np.linspace(-9, 9, 999), np.eye(5)[4])
    best = min(problem.primal(point) for point in grid)
    assert problem.primal(found) <= best * (1 + 1e-13)
    D = alpha.sum() - 0.5 * v @ v - 0.5 * (problem.delta * alpha) @ alpha
    assert problem.dual(alpha) == pytest.approx(D, rel=1e-12)
    assert problem.certify(alpha=alpha).dual == pytest.approx(D, rel=1e-12)


@pytest.mark.long
def test_the_bias_does_not_depend_on_where_the_features_are():
    X, y, problem = small()
    tight = {"tol": 1e-9, "max_iter": 200_000}
    here = solve(problem, DCD(), **tight)
    moved = Problem(X + 3.0, y, 2.0, fit_intercept=True, penalize_intercept=False)
    there = solve(moved, DCD(), **tight)
    assert here.certificate.certified
    assert there.certificate.certified
    np.testing.assert_allclose(
        here.certificate.primal, there.certificate.primal, rtol=3e-9
    )
    np.testing.assert_allclose(here.w[:4], there.w[:4], atol=1e-3)


def test_what_float64_leaves_of_the_sum_lowers_the_dual_value():
    X = np.array([[3.0], [-1.0], [2.0]])
    y = [1, 1, -1]
    problem = Problem(X, y, 1.0, fit_intercept=True, penalize_intercept=False)
    alpha = np.array([0.1, 0.2, 0.3])
    off = abs(Fraction(0.1) + Fraction(0.2) - Fraction(0.3))
    assert off > 0
    v = np.array([alpha * y @ X[:, 0]])
    D = problem.dual_value(alpha, float(v @ v))
    lowered = D - problem.dual(alpha)
    assert float(off) <= lowered <= 100 * float(off) + EPS


def test_balance():
    _, y, problem = small()
    rng = np.random.default_rng(1)
    for _ in range(50):
        alpha = rng.random(30) * problem.upper
        balanced = problem.balance(alpha)
        off = sum(Fraction(a) * int(s) for a, s in zip(balanced, y, strict=True))
        assert abs(float(off)) <= EPS * balanced.max()
        assert (balanced >= 0.0).all()
        assert (balanced <= alpha).all()
        lighter = 1 if alpha[y > 0].sum() < alpha[y < 0].sum() else -1
        np.testing.assert_allclose(balanced[y == lighter], alpha[y == lighter], 1e-12)
    assert not problem.balance(np.where(y > 0, 1.0, 0.0)).any()
    assert not problem.balance(np.full(30, 1e308)).any()


def test_a_dual_point_off_the_constraint_is_refused_and_repaired():
    X, y, problem = small()
    alpha = solve(Problem(X, y, 2.0), DCD(), tol=1e-9, max_iter=10**5).alpha
    with pytest.raises(ValueError, match=r"alpha_i y_i = .* problem\.balance"):
        problem.dual(alpha)
    certificate = problem.certify(alpha=alpha)
    expected = problem.dual(problem.balance(alpha))
    assert certificate.dual == pytest.approx(expected, rel=1e-13)
    # Taken as it is, it would "prove" more than the optimum.
    best = solve(problem, DCD(), tol=1e-9, max_iter=10**5).certificate
    v = (alpha * y) @ X
    assert alpha.sum() - 0.5 * v @ v > 1.01 * best.primal
    assert certificate.dual <= best.primal


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_certifies_or_refuses(name):
    _, _, problem = small()
    solver = SOLVERS[name]()
    assert solver.free_bias == (name in ("auto", "dcd", "interior-point", "newton"))
    if solver.free_bias:
        solution = solve(problem, solver, tol=1e-6, max_iter=100_000)
        assert solution.certificate.certified
        assert abs(solution.alpha @ problem.y) <= 1e-14
    else:
        with pytest.raises(ValueError, match=f"{name}.*penalises.*solver='dcd'"):
            solve(problem, solver)


@every_loss
@pytest.mark.parametrize("sign", [1, -1])
def test_rows_of_one_class_cost_nothing(loss, sign):
    X = np.random.default_rng(0).standard_normal((7, 3))
    for weight in (None, [1, 1, 0, 0, 0, 0, 0]):
        y = np.full(7, sign)
        if weight:
            y[2:] = -sign  # rows that weigh nothing
        problem = Problem(
            X, y, 3.0, loss=loss, sample_weight=weight, fit_intercept=True,
            penalize_intercept=False,
        )  # fmt: skip
        solution = solve(problem, DCD(), tol=1e-9)
        assert solution.certificate.status is Status.CERTIFIED
        assert solution.certificate.primal == solution.certificate.dual == 0.0
        assert problem.primal(solution.w) == 0.0
        assert not solution.alpha.any()
