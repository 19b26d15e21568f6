"""Quantile regression: linear programs, a generic solver, estimators and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.model_selection as skl
from scipy import sparse
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.metrics import d2_pinball_score, make_scorer, mean_pinball_loss
from sklearn.preprocessing import scale

from dualgap import (
    SVR,
    LinearSVR,
    certify,
    core,
    load_model,
    save_model,
)
from dualgap.kernel import BlockSolver, KernelRegression, Linear
from dualgap.losses import EpsilonInsensitive, Pinball, get_residual_loss
from dualgap.model_selection import GridSearchCV
from dualgap.problems import RegressionProblem
from dualgap.solvers.kernel.interior import interior_point
from dualgap.solvers.regression import RegressionDCD
from dualgap.training import solve

from .solvers.test_regression import data

BOTH = [
    LinearSVR(loss="quantile", quantile=[0.1, 0.5, 0.9]),
    SVR(loss="quantile", quantile=[0.1, 0.5, 0.9], C=10.0),
]
both = pytest.mark.parametrize("estimator", BOTH, ids=lambda e: type(e).__name__)
QUANTILES = [1e-3, 0.1, 0.5, 0.8]


def pinball(residual, q):
    return np.maximum(q * residual, (q - 1.0) * residual)


@pytest.mark.parametrize("q", QUANTILES)
def test_the_loss_is_its_definition_and_its_best_constant_the_quantile(q):
    r = np.linspace(-3.0, 3.0, 601)
    np.testing.assert_allclose(Pinball(q).value(r), pinball(r, q), rtol=1e-15)
    y = np.sort(np.random.default_rng(0).standard_normal(400))
    assert get_residual_loss("quantile") == Pinball(0.5)
    costs = [Pinball(q).value(y - b).sum() for b in y]
    assert abs(np.mean(y <= y[np.argmin(costs)]) - q) <= 1 / 400 + 1e-12


@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("C", [1e-2, 1.0, 30.0])
def test_the_method_for_slow_progress_finds_the_same_optimum(q, C):
    for seed in range(3):
        X, y, weight = data(seed=seed, n=(9, 40, 70)[seed])
        problem = KernelRegression(
            X, y, C, kernel=Linear(), loss=Pinball(q), sample_weight=weight
        )
        found = solve(problem, BlockSolver(), tol=1e-6)
        assert found.certificate.certified
        alpha = interior_point(problem, 1e-8, core.Stop())
        other = problem.certify(alpha)
        assert other.dual == pytest.approx(found.certificate.primal, rel=1e-5)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_a_large_C_leaves_the_linear_program(kind, q):
    """Koenker and Bassett: the least pinball loss of all planes is a linear program.

    P(w) <= (1 + tol) P(w_lp) bounds the loss by that of the program and ||w_lp||^2.
    """
    X, y = load_diabetes(return_X_y=True)
    X, y, C, tol = scale(X)[:150], scale(y)[:150], 1e4, 1e-6
    n, d = X.shape
    cost = np.concatenate([np.zeros(2 * d + 2), np.full(n, q), np.full(n, 1.0 - q)])
    rows = np.column_stack([X, np.ones(n)])
    program = linprog(
        cost, A_eq=np.hstack([rows, -rows, np.eye(n), -np.eye(n)]), b_eq=y
    )  # the variables are 0 or positive
    assert program.status == 0
    best = program.x[: d + 1] - program.x[d + 1 : 2 * d + 2]
    if kind == "linear":
        model = LinearSVR(loss="quantile", quantile=q, C=C, tol=tol)
    else:
        model = SVR(loss="quantile", quantile=q, C=C, tol=tol, kernel="linear")
        best = best[:-1]
    model.fit(X, y)
    assert model.certificate_.certified
    loss = pinball(y - model.predict(X), q).sum()
    assert loss >= program.fun * (1.0 - 1e-9)
    assert loss <= (1.0 + 2.0 * tol) * (program.fun + 0.5 * best @ best / C)


def test_the_median_is_half_the_absolute_loss():
    X, y, weight = data()
    half = solve(
        RegressionProblem(X, y, 2.0, loss=Pinball(0.5), sample_weight=weight),
        RegressionDCD(), tol=1e-9, max_iter=100_000,
    )  # fmt: skip
    whole = solve(
        RegressionProblem(X, y, 1.0, loss=EpsilonInsensitive(), sample_weight=weight),
        RegressionDCD(), tol=1e-9, max_iter=100_000,
    )  # fmt: skip
    assert half.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-8)


def test_quantiles_of_a_kernel_model_hold_their_share():
    """At the optimum at most q n rows are below a free bias, and (1 - q) n above."""
    X, y = load_diabetes(return_X_y=True)
    model = clone(BOTH[1]).set_params(tol=1e-9).fit(X, y)
    residual, slack = y[:, None] - model.predict(X), 1e-6 * np.ptp(y)
    for k, q in enumerate(model.quantile):
        assert np.mean(residual[:, k] < -slack) <= q
        assert np.mean(residual[:, k] > slack) <= 1.0 - q


@both
@pytest.mark.parametrize("layout", [np.asarray, np.float32, sparse.csr_matrix])
def test_several_quantiles_are_the_models_of_each(estimator, layout):
    X, y, weight = data(n=120)
    X = layout(X)
    model = clone(estimator).fit(X, y, weight)
    assert model.predict(X).shape == (120, 3)
    assert len(model.certificate_.parts) == 3
    assert model.certificate_.certified
    assert model.certificate_.parts[2].name == "quantile 0.9"
    for k, q in enumerate(model.quantile):
        one = clone(model).set_params(quantile=q).fit(X, y, weight)
        np.testing.assert_allclose(one.predict(X), model.predict(X)[:, k], rtol=1e-2,
                                   atol=1e-2)  # fmt: skip
        assert one.predict(X).shape == (120,)
        assert one.certificate_.dual <= model.certificate_.parts[k].primal
        assert model.certificate_.parts[k].dual <= one.certificate_.primal
    again = clone(model).set_params(n_jobs=2).fit(X, y, weight)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)
    one = clone(model).set_params(quantile=[0.9]).fit(X, y, weight)
    assert one.predict(X).shape == (120, 1)


@both
@pytest.mark.parametrize("quantile", [[0.45, 0.5, 0.55], [0.55, 0.45, 0.5]])
def test_sorted_quantiles_do_not_cross_and_lose_no_more(estimator, quantile):
    """For any target: ``(q - p)`` times a crossing is what the pinball losses lose."""
    X, y, weight = data(n=40)
    model = clone(estimator).set_params(quantile=quantile, C=10.0).fit(X, y, weight)
    new = np.random.default_rng(0).normal(size=(300, X.shape[1]))
    plain, tidy = model.predict(new), model.predict(new, sort_quantiles=True)
    order = np.argsort(quantile)
    crossed = (np.diff(plain[:, order], axis=1) < 0.0).any(axis=1)
    assert crossed.any()
    assert (np.diff(tidy[:, order], axis=1) >= 0.0).all()
    np.testing.assert_array_equal(np.sort(plain), np.sort(tidy))
    np.testing.assert_array_equal(plain[~crossed], tidy[~crossed])
    for target in (-100.0, 0.0, float(np.median(plain)), 100.0):
        losses = [
            sum(pinball(target - f[:, k], q) for k, q in enumerate(quantile))
            for f in (plain, tidy)
        ]
        # A crossing may be as small as rounding.
        assert (losses[1] <= losses[0] * (1.0 + 1e-14)).all()
        assert losses[1].sum() < losses[0].sum()
    one = model.set_params(quantile=0.5).fit(X, y)
    same = one.predict(new, sort_quantiles=True)
    np.testing.assert_array_equal(one.predict(new), same)


@both
def test_files_certify_and_bounds(estimator, tmp_path):
    X, y, weight = data(n=60)
    if isinstance(estimator, LinearSVR):
        w = clone(estimator).fit(X, y).coef_[0]
        found = certify(w, X, y, 1.0, loss="quantile", quantile=0.1)
        assert found.dual <= found.primal
    weight += 0.1
    for quantile in (0.3, [0.1, 0.5, 0.9], [0.5]):
        model = clone(estimator).set_params(quantile=quantile, tol=1e-6)
        model.fit(X, y, weight).bound_optimum(X, y, weight)
        save_model(model, tmp_path / "model", duals=True)
        found = load_model(tmp_path / "model")
        assert [p.name for p in found.certificate_.parts] == [
            p.name for p in model.certificate_.parts
        ]
        lower, upper = found.decision_bounds(X)
        exact = clone(model).set_params(tol=1e-9, max_iter=100_000).fit(X, y, weight)
        slack = 1e-4 * np.ptp(y)
        assert lower.shape == model.predict(X).shape
        assert (lower <= exact.predict(X) + slack).all()
        assert (exact.predict(X) - slack <= upper).all()
        proof = certify(model, X, y, sample_weight=weight)
        assert proof.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
        assert proof.relative_gap <= 1e-3
        lower, upper = model.coef_bounds() if hasattr(model, "warm_start") else (0, 0)
        assert np.all(lower <= upper)


def test_a_warm_start_needs_the_same_quantiles():
    X, y, _ = data(n=200)
    model = clone(BOTH[0]).set_params(warm_start=True, tol=1e-6).fit(X, y)
    before = model.certificate_.primal
    model.fit(X, y)
    assert model.certificate_.primal == pytest.approx(before, rel=1e-6)
    assert max(model.n_iter_, 0) <= 3
    text = "had 3 quantiles, but this one has 1; set warm_start=False"
    with pytest.raises(ValueError, match=text):
        model.set_params(quantile=0.5).fit(X, y)


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@both
def test_a_search_chooses_the_least_pinball_loss(estimator):
    """R^2 judges the mean: it prefers a model whose quantile is wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.exponential(3.0, 200)
    q, weight = 0.9, rng.random(200)
    model = clone(estimator).set_params(quantile=q)
    fitted = clone(model).fit(X, y, weight)
    own, constant = fitted.predict(X), np.full(200, quantile_of(y, weight, q))
    loss = [
        mean_pinball_loss(y, at, alpha=q, sample_weight=weight)
        for at in (own, constant)
    ]
    found = fitted.score(X, y, weight)
    assert found == pytest.approx(1.0 - loss[0] / loss[1], abs=1e-2)
    assert found == d2_pinball_score(
        y, fitted.predict(X), alpha=q, sample_weight=weight
    )
    Cs = [1e-3, 1e-2, 1.0, 100.0]
    plain, own = (
        kind(model, {"C": Cs}, scoring=scoring, cv=3).fit(X, y)
        for kind, scoring in (
            (skl.GridSearchCV, make_scorer(
                mean_pinball_loss, alpha=q, greater_is_better=False)),
            (GridSearchCV, None),
        )
    )  # fmt: skip
    assert own.shared_
    assert own.best_params_ == plain.best_params_
    by_mean = GridSearchCV(model, {"C": Cs}, scoring="r2", cv=3).fit(X, y)
    assert by_mean.best_params_ != own.best_params_


def quantile_of(y, weight, q):
    """The least y at or below which a share q of the weight is."""
    order = np.argsort(y)
    return y[order][np.searchsorted(np.cumsum(weight[order]), q * weight.sum())]
