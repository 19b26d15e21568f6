"""Crammer and Singer: the twin, a generic QP solver, LIBLINEAR, and the estimator."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from dualgap import LinearSVC, core
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems.base import Claim
from dualgap.problems.crammer_singer import CrammerSingerProblem
from dualgap.solvers import SequentialDual
from dualgap.training import solve

from ..twins.crammer_singer import CrammerSinger
from ..twins.random import Random
from .data import LAYOUTS


def make(n=50, d=5, K=4, seed=0, zero_rows=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    if zero_rows:
        X[:2] = 0.0
    y = np.argmax(X @ rng.normal(size=(d, K)) + rng.normal(size=(n, K)), axis=1)
    y[:K] = np.arange(K)
    weight = rng.uniform(0.3, 2.0, n)
    weight[-3:] = 0.0
    return X.astype(np.float32).astype(np.float64), y, weight


def problem_of(X, y, weight=None, C=1.0, fit_intercept=True, n_jobs=1, K=None):
    data = Problem(
        X, np.ones(len(y)), C, sample_weight=weight, fit_intercept=fit_intercept,
        n_jobs=n_jobs,
    )  # fmt: skip
    return CrammerSingerProblem(data, y, K or int(y.max()) + 1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_step_for_step_as_the_twin(layout, fit_intercept):
    X, y, weight = make()
    problem = problem_of(LAYOUTS[layout](X), y, weight, 0.7, fit_intercept)
    dense = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    twin = CrammerSinger(dense, y, 0.7 * weight, 4)
    solver, rng = SequentialDual(), core.Random(3)
    state, random = solver.start(problem, rng, None), Random(3)
    for _ in range(12):
        solver.step(state, core.Stop())
        visited = twin.order(random)
        changed = sum(twin.visit(i) for i in visited)
        np.testing.assert_array_equal(state.order[: len(visited)], visited)
        a = state.alpha.reshape(len(X), 4)
        np.testing.assert_allclose(a, twin.a, rtol=1e-9, atol=1e-12)
        coef = state.w.reshape(-1, problem.stride)[:, :4].T
        np.testing.assert_allclose(coef, twin.W, rtol=1e-9, atol=1e-11)
        assert state.dual == pytest.approx(twin.dual(), rel=1e-10)
        if changed:
            state.order[:] = 0
        # Rounding may tell the two apart on who is unchanged: the twin follows.
        twin.asleep, twin.last = state.wake.tolist(), state.length.tolist()
    proof = problem.prove(Claim(alpha=state.alpha)).certificate
    assert proof.primal == pytest.approx(twin.primal(), rel=1e-10)
    assert proof.dual == pytest.approx(twin.dual(), rel=1e-10)


def test_no_point_is_believed_outside_the_constraints():
    X, y, weight = make()
    problem = problem_of(X, y, weight)
    best = solve(problem, SequentialDual(), tol=1e-9).certificate
    rng = np.random.default_rng(0)
    for _ in range(20):
        alpha = rng.normal(size=problem.n_duals) * 3.0
        c = problem.prove(Claim(alpha=alpha)).certificate
        assert c.dual <= best.primal
        assert c.primal >= best.dual
        a = alpha.reshape(len(y), 4)
        assert (a[np.arange(len(y)), y] <= problem.cost * (1 + 1e-15)).all()


def test_duals_define_the_model():
    X, y, _ = make()
    names = np.array(["a", "b", "c", "d"])[y]
    model = LinearSVC(
        loss="hinge", multi_class="crammer_singer", warm_start=True, random_state=0
    )
    model.fit(X, names)
    W = model.dual_coef_ @ X[model.support_]
    np.testing.assert_allclose(W, model.coef_, atol=1e-12)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), model.intercept_)
    again = clone(model).set_params(n_jobs=2).fit(X, names)
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-9)
    with pytest.raises(ValueError, match="warm_start=False"):
        model.set_params(multi_class="ovr").fit(X[y < 2], names[y < 2])
