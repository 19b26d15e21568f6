"""Columns, of kernels too, that are large and nearly constant: days, years, seconds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dualgap import SVC, SVR, LinearSVC, LinearSVR, core
from dualgap.blas import algebra
from dualgap.certificate import Status
from dualgap.kernel import BlockSolver, KernelProblem
from dualgap.kernels.functions import Linear
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems import RegressionProblem
from dualgap.problems.base import Claim
from dualgap.problems.rounding import Values
from dualgap.solvers import solver_for
from dualgap.training import solve

from ..trust.verifier import SVM, Rows
from ..twins import interior_point as twin
from .data import LAYOUTS, close


def days(rng, n):
    return np.sort(rng.choice(3 * n + 50, n, replace=False))


COLUMNS = {
    "Julian day": lambda rng, n: 2460000.5 + days(rng, n),
    "ordinal day": lambda rng, n: 738000.0 + days(rng, n),
    "northing": lambda rng, n: np.round(5e6 + rng.uniform(0, 1000, n), 1),
    "region": lambda rng, n: np.round(5e6 + rng.uniform(0, 1e5, n)),
    "year": lambda rng, n: 1980.0 + rng.integers(0, 45, n),
    "kelvin": lambda rng, n: np.round(290 + 5 * rng.normal(size=n), 1),
    "pascal": lambda rng, n: np.round(101325 + 300 * rng.normal(size=n)),
    "Unix second": lambda rng, n: 1.7e9 + rng.integers(0, 86400 * 30, n),
    "Unix ms": lambda rng, n: 1.7e12 + rng.integers(0, 86400000 * 30, n),
    "two": lambda rng, n: np.c_[2460000.5 + days(rng, n), 5e6 + rng.uniform(0, 9, n)],
    "and another": lambda rng, n: np.c_[738000.0 + days(rng, n), rng.normal(size=n)],
}
every_column = pytest.mark.parametrize("column", COLUMNS)


def example(column, seed, most):
    """Rows with the column, targets that follow it or not, C, and weights 0 or 1."""
    rng = np.random.default_rng([seed, len(column)])
    n = int(rng.integers(2, most + 1))
    X = np.asarray(COLUMNS[column](rng, n), float).reshape(n, -1)
    y = np.round(15 + 10 * rng.random(n))
    if seed % 2:
        place = (X[:, 0] - X[:, 0].mean()) / (X[:, 0].std() + 1e-9)
        y = np.round(20 + 1.5 * place + 2 * rng.normal(size=n), 1)
    weight = None
    if seed % 3 == 0:
        weight = rng.integers(0, 2, n).astype(float)
        weight[0] = 1.0
    return X, y, float(10.0 ** rng.integers(-1, 4)), weight


REGRESSORS = [
    {},
    {"epsilon": 0.1},
    {"loss": "squared_epsilon_insensitive"},
    {"intercept_scaling": 3.0},
]


@pytest.mark.cases(20)
@every_column
@pytest.mark.parametrize("options", REGRESSORS, ids=str)
@pytest.mark.parametrize("most", [12, 365])
def test_regressions_are_certified(column, options, most):
    layouts = list(LAYOUTS.values())
    for seed in range(12 if most == 12 else 4):
        X, y, C, weight = example(column, seed, most)
        X = layouts[seed % len(layouts)](X)
        certificate = LinearSVR(C=C, **options).fit(X, y, weight).certificate_
        # Where one row fits exactly, rounding of the target may exceed P* of 1e-17.
        assert certificate.certified or certificate.primal < 1e-15, (seed, certificate)
        assert certificate.epochs < 200


CLASSIFIERS = [
    {"loss": loss, "penalize_intercept": penalized}
    for loss in ("hinge", "squared_hinge")
    for penalized in (True, False)
]


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@pytest.mark.cases(20)
# There the sum of the duals times 1e12 is rounded by more than tol P.
@pytest.mark.parametrize("column", sorted(COLUMNS.keys() - {"Unix ms"}))
@pytest.mark.parametrize("options", CLASSIFIERS, ids=str)
def test_classifiers_are_certified(column, options):
    for seed in range(6):
        X, y, C, _ = example(column, seed, 60)
        y = y > np.median(y)
        y[:2] = [False, True]
        certificate = LinearSVC(C=C, **options).fit(X, y).certificate_
        assert certificate.certified, (seed, certificate)
        assert certificate.epochs < 2000


# --------------------------------------------------- the iteration on centred rows


def offset(column, layout, free_bias):
    """A problem with a year beside ordinary columns, some rows without the year."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    X[:, 1] = 2000.0 + np.round(10 * rng.normal(size=60))
    if column == "some missing":
        X[::9, 1] = 0.0
    y = np.where(X[:, 0] + X[:, 2] + rng.normal(size=60) > 0, 1, -1).astype(np.int8)
    return X, Problem(
        LAYOUTS[layout](X), y, 2.0, fit_intercept=True, penalize_intercept=not free_bias
    )


@pytest.mark.cases(None)
@pytest.mark.parametrize("column", ["year", "some missing"])
@pytest.mark.parametrize("free_bias", [False, True])
@pytest.mark.parametrize("layout", ["dense-f8", "csr-f8-i8-i8"])
def test_steps_are_those_of_the_rows_as_they_are(column, free_bias, layout):
    X, problem = offset(column, layout, free_bias)
    ours, stop = (
        core.Interior(
            core.SomeRows(
                [problem.rows], problem.y, problem.cost, np.zeros(problem.width), 0.0
            ),
            problem.core_loss,
            float(problem.q.mean()),
            free_bias,
            core.Team(1),
            algebra()[0],
        ),
        core.Stop(),
    )
    assert ours.start(np.zeros(problem.width), 0.3, stop)
    Z = np.c_[X, np.ones(len(X))] * problem.y[:, None]
    theirs = twin.InteriorPoint(
        Z, problem.cost, 0.0 * problem.cost, np.zeros(problem.width), 0.3,
        np.ones(len(X)), free_bias, 0.0,
    )  # fmt: skip
    for _ in range(4):
        assert ours.iterate(stop) == 0
        step = theirs.iterate()
        np.testing.assert_allclose([ours.length, ours.mu], [step, theirs.mu], 1e-6)
        close(ours.w, theirs.w, 1e-6)
        close(ours.alpha, theirs.a, 1e-6)


# ----------------------------------------------------------- proofs with less rounding


def exact_values(problem, X, y, w, alpha):
    """P(w) and D(alpha) of a problem with a penalised bias, in rationals."""
    loss, cost = problem.loss, problem.cost
    posed = SVM(Rows(X), loss.name, y, cost, loss.epsilon, bias="penalised")
    return posed.primal(w[:-1], w[-1]), posed.dual(alpha)


@pytest.mark.cases(None)
@every_column
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_bounds_of_compensated_sums_hold_and_are_tight(column, loss):
    for seed in range(6):
        X, y, C, weight = example(column, seed, 9)
        problem = RegressionProblem(
            X, y, C, loss=loss, sample_weight=weight, fit_intercept=True
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solver = "dcd" if seed == 5 else "auto"
            options = {"loss": loss, "solver": solver, "max_iter": 50}
            model = LinearSVR(C=C, **options).fit(X, y, weight)
        w = np.append(model.coef_, model.intercept_)
        alpha = np.zeros(len(y))
        alpha[model.support_] = model.dual_coef_[0]
        primal, dual = exact_values(problem, X, y, w, alpha)
        v = np.empty(problem.width)
        examples = problem.with_targets
        bounds = {}
        for kind in ("given", "precise"):
            found = core.evaluate_residuals(examples, w, kind, alpha, v, None)
            values, norm = Values.of(found), core.squared_norm(v)
            if kind == "precise":
                bounds[kind] = problem.precise_bounds(w, alpha, values, norm)
            else:
                own = problem._bound(values, norm, alpha)
                bounds[kind] = problem._bounds(
                    alpha, values, core.squared_norm(w), *own
                )
            assert bounds[kind].primal >= primal
            assert bounds[kind].dual <= dual
        # The bound on the sum of the losses is a few roundings of each residual.
        size = abs(float(primal)) + float(np.abs(y * alpha).sum())
        precise = bounds["precise"]
        assert precise.primal - float(primal) <= 1e-13 * size
        assert float(dual) - precise.dual <= 1e-13 * (size + abs(float(dual)))


def test_a_row_that_fits_exactly_is_certified():
    # P* is 3e-11, and one rounding of the target costs C 4e-15.
    X, y = np.array([[2460036.5], [2460042.5]]), np.array([17.3, 17.0])
    problem = RegressionProblem(X, y, 1e3, sample_weight=[1.0, 0.0], fit_intercept=True)
    alpha = np.array([y[0] / float(problem.q[0]), 0.0])
    plain = problem._prove(Claim(alpha=alpha)).certificate
    proof = problem.prove(Claim(alpha=alpha))
    assert plain.relative_gap > 1e-2
    assert proof.certificate.relative_gap < 1e-2 * plain.relative_gap
    primal, dual = exact_values(problem, X, y, proof.w, proof.alpha)
    assert dual >= proof.certificate.dual
    assert primal <= proof.certificate.primal
    assert solve(problem, solver_for(problem)).certificate.certified


may_stall = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

FOUR = np.array([[1.0, -1.4], [1.0, -2.1], [1.0, 0.8], [1.0, 1.9]])
LABELS = np.array([0, 1, 1, 1])
ROWS = np.random.default_rng(5).normal(size=(20, 2))
SIGNS = (ROWS[:, 1] + np.random.default_rng(6).normal(size=20) > 0.0).astype(int)


@may_stall
@pytest.mark.cases(None)
@pytest.mark.parametrize(("scale", "C"), [(1e4, 0.1), (1e4, 1.0), (1e5, 0.1)])
def test_a_large_column_leaves_the_interior_point_its_optimum(scale, C):
    for X, y in ((FOUR * [scale, 1.0], LABELS), (ROWS + np.array([scale, 0.0]), SIGNS)):
        model = SVC(C, kernel="linear", loss="squared_hinge").fit(X, y)
        best = LinearSVC(C, loss="squared_hinge", tol=1e-9).fit(X, y).certificate_
        assert model.certificate_.certified
        assert model.certificate_.primal <= best.primal * (1.0 + 2e-3)
        assert model.certificate_.dual <= best.primal


@may_stall
@pytest.mark.cases(None)
@pytest.mark.parametrize("C", [0.01, 1.0, 1e6])
@pytest.mark.parametrize("scale", [1e6, 1e7, 1e8, 1e10])
def test_a_stall_ends_the_fit_before_max_iter(scale, C):
    for X, y in ((FOUR * [scale, 1.0], LABELS), (ROWS + np.array([scale, 0.0]), SIGNS)):
        model = SVC(C, kernel="linear", loss="squared_hinge").fit(X, y)
        assert model.certificate_.status in (Status.STALLED, Status.CERTIFIED)
        assert model.n_iter_ < 100
        assert model.certificate_.dual <= model.certificate_.primal


def test_updates_that_raise_d_by_too_little_count_as_none():
    X = FOUR * [1e8, 1.0]
    problem = KernelProblem(
        X, 2.0 * LABELS - 1.0, 1.0, kernel=Linear(), loss="squared_hinge"
    )
    solution = solve(problem, BlockSolver(), max_iter=500)
    assert solution.certificate.status is Status.STALLED
    assert solution.certificate.epochs < 100
    assert solution.certificate.updates > 0


def nasty(seed):
    """Return few rows with columns of very different scale, labels, and a large C."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(4, 13), rng.integers(1, 4)
    X = np.round(rng.normal(size=(n, d)) * 10.0 ** rng.integers(-1, 7, size=d), 1)
    return X, rng.permutation(np.arange(n) % 2), 10.0 ** rng.integers(-2, 17)


@may_stall
@pytest.mark.cases(None)
@pytest.mark.parametrize("kernel", ["poly", "linear"])
@pytest.mark.parametrize("seed", [32, 90, 177, 339, 364, 402, 433, 476])
def test_rounding_that_raises_d_ends_the_fit_before_max_iter(seed, kernel):
    X, y, C = nasty(seed)
    model = SVC(C, kernel=kernel, gamma=1.0, loss="squared_hinge", max_iter=200)
    certificate = model.fit(X, y).certificate_
    assert certificate.status in (Status.STALLED, Status.CERTIFIED)
    assert certificate.epochs < 100


@may_stall
@pytest.mark.parametrize("seed", [4, 19, 53, 122, 226, 298])
def test_steps_too_short_to_change_a_value_end_the_fit_before_max_iter(seed):
    X, y, C = nasty(seed)
    y = X[:, 0] / (1.0 + np.abs(X[:, 0]).max()) + y
    model = SVR(C=C, kernel="poly", degree=5, gamma=1.0, max_iter=200).fit(X, y)
    assert model.certificate_.status in (Status.STALLED, Status.CERTIFIED)
    assert model.certificate_.epochs < 100
