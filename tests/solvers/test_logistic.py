"""Solvers of logistic regression: twins, certificates, optima, limits, choice."""

from __future__ import annotations

import decimal
import gc
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp, softmax
from scipy.stats import entropy
from sklearn.preprocessing import normalize

from dualgap import core
from dualgap.certificate import Status
from dualgap.problems.base import Claim
from dualgap.problems.logistic import FUNCTIONS, LogisticProblem, RowOutcome
from dualgap.solvers import LogisticDCD, LogisticNewton
from dualgap.solvers.logistic_dual import choose
from dualgap.training import solve

from ..conftest import unsanitized
from ..twins import logistic as twin
from .data import LAYOUTS, close


def data(classes, n=120, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    codes = np.argmax(
        X @ rng.normal(size=(d, classes)) + rng.gumbel(size=(n, classes)), 1
    )
    codes[:classes] = np.arange(classes)
    return X, codes


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_far_from_the_best_bias_are_balanced(classes):
    X, codes = data(classes)
    problem = LogisticProblem(X, codes, fit_intercept=True)
    for far in (0.01, 3.0, 30.0):
        S = np.random.default_rng(0).normal(size=(problem.outputs, len(X)))
        S[0] += far
        _, now = problem.balance(S, problem.outcome(S), 1e-9)
        off = np.abs(now.residual @ problem.cost).sum()
        assert off <= 1e-9 * (now.wrong @ problem.cost)


def fit(problem, tol=1e-10, **options):
    return solve(problem, LogisticNewton(), tol=tol, **options)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("classes", [2, 3])
def test_steps_are_those_of_the_twin(layout, classes):
    X, codes = data(classes)
    stored = LAYOUTS[layout](X)
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.5], len(X))
    problem = LogisticProblem(stored, codes, 2.0, sample_weight=weight)
    seen = stored.toarray() if sparse.issparse(stored) else stored
    theirs = twin.Newton(np.asarray(seen, float), codes, problem.cost, classes)
    solver = LogisticNewton()
    ours = solver.start(problem, core.Random(0), None)
    for _ in range(6):
        off = np.abs(ours.gradient - theirs.gradient(ours.W)).max()
        assert off <= 1e-9 * ours.primal
        assert ours.primal == pytest.approx(theirs.primal(ours.W), rel=1e-12)
        solver.step(ours, core.Stop())
        theirs.step()
    close(ours.W, theirs.W, 1e-6)
    # P - D is half of the squared gradient.
    for W in (ours.W, 1.1 * ours.W):
        found = problem.prove(Claim(W.ravel())).certificate
        half = 0.5 * (theirs.gradient(W) ** 2).sum()
        assert found.gap == pytest.approx(half, abs=1e-10 * found.primal)


@pytest.mark.parametrize("classes", [2, 4])
def test_every_preconditioner_finds_the_optimum(classes):
    X, codes = data(classes, n=300, d=8)
    best = fit(LogisticProblem(X, codes, 3.0, fit_intercept=True)).certificate
    for settings in (
        {"whole": 0, "whole_of_two": 0},
        {"whole": 0, "whole_of_two": 0, "gradients_per_column": 0.0},
        {"whole": 0, "whole_of_two": 0, "gradients_per_column": 0.0, "copied": 0},
        {"whole": 0, "whole_of_two": 0, "blocks": 0},
        {"whole": 0, "whole_of_two": 0, "blocks": 0, "shared": 0},
    ):
        for rows in (X, X.astype(np.float32), sparse.csr_matrix(X)):
            problem = LogisticProblem(rows, codes, 3.0, fit_intercept=True)
            solver = LogisticNewton()._with_settings(**settings)
            found = solve(problem, solver, tol=1e-9).certificate
            assert found.certified
            assert found.primal == pytest.approx(best.primal, rel=1e-6)


HARD = {
    "separable": lambda X, y: X + 6.0 * np.eye(X.shape[1])[y],
    "columns": lambda X, y: X * np.logspace(-4, 6, X.shape[1]),
    "outliers": lambda X, y: (
        X * np.where(np.arange(len(X)) % 40 == 7, 1e5, 1.0)[:, None]
    ),
    "offset": lambda X, y: X + 1e4,
    "float32": lambda X, y: (X + 3.0 * np.eye(X.shape[1])[y]).astype(np.float32),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_hard_data_end_at_the_accuracy(name, classes, C):
    X, codes = data(classes, n=200, d=6)
    problem = LogisticProblem(HARD[name](X, codes), codes, C, fit_intercept=True)
    found = fit(problem, tol=1e-3, max_iter=200).certificate
    assert found.certified, found


def test_one_row_of_one_class():
    found = fit(LogisticProblem(np.array([[2.0]]), [1], 3.0)).certificate
    assert found.certified


def test_limits_keep_the_best_model_with_its_certificate():
    X, codes = data(3, n=400)
    problem = LogisticProblem(X, codes, 1e4, fit_intercept=True)
    found = fit(problem, max_iter=2)
    assert found.certificate.status is Status.EPOCH_LIMIT
    assert 0.0 < found.certificate.dual <= found.certificate.primal
    again = problem.prove(Claim(found.w)).certificate
    assert again.primal == found.certificate.primal
    warm = fit(problem, warm=fit(problem).w)
    assert (warm.certificate.certified, warm.certificate.epochs) == (True, 0)


def test_exp_and_log1p_are_as_accurate_as_the_proof_assumes():
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.uniform(0, 700, 2000), 10.0 ** rng.uniform(-300, 1, 2000)])
    small = np.exp(-t)
    with decimal.localcontext(decimal.Context(prec=60, Emin=-(10**6))):
        for value, e, log in zip(t, small, np.log1p(small), strict=True):
            exact = (-decimal.Decimal(value)).exp()
            assert (
                abs(decimal.Decimal(float(e)) / exact - 1) <= 0.5 * FUNCTIONS * 2**-52
            )
            one = decimal.Decimal(float(e))
            exact = (1 + one).ln() if one > 1e-20 else one - one * one / 2
            off = abs(decimal.Decimal(float(log)) / exact - 1)
            assert off <= 0.5 * FUNCTIONS * 2**-52


def test_classes_have_an_exp_as_accurate_as_the_proof_assumes():
    """The core returns exp(-t) itself for a row with scores 0 and -t."""
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.uniform(0, 700, 2000), 10.0 ** rng.uniform(-300, 1, 2000)])
    sums, residual = np.empty((4, len(t))), np.empty((2, len(t)))
    scores, codes = np.stack([0.0 * t, -t]), np.zeros(len(t), np.intp)
    core.class_probabilities(scores, codes, 0, len(t), sums, residual)
    with decimal.localcontext(decimal.Context(prec=60, Emin=-(10**6))):
        for value, e in zip(t, sums[0], strict=True):
            off = abs(decimal.Decimal(float(e)) / (-decimal.Decimal(value)).exp() - 1)
            assert off <= 0.5 * FUNCTIONS * 2**-52


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_outcomes_are_those_of_their_formulas(classes):
    rng = np.random.default_rng(0)
    S = rng.normal(size=(classes, 1000)) * rng.choice([0.1, 10.0, 100.0], 1000)
    S[:, :50] = 3.0  # several largest classes
    codes = rng.integers(0, classes, 1000)
    found, every = RowOutcome.of(S, codes), np.arange(1000)
    P = softmax(S, axis=0)
    loss = logsumexp(S, axis=0) - S[codes, every]
    np.testing.assert_allclose(found.loss, loss, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.entropy, entropy(P, axis=0), rtol=0, atol=1e-13)
    Y = np.eye(classes)[codes].T
    np.testing.assert_allclose(found.residual, Y - P, rtol=1e-12, atol=1e-14)
    assert (found.wrong == found.residual[codes, every]).all()
    S[0, 7] = np.nan
    assert np.isnan(RowOutcome.of(S, codes).loss).nonzero()[0].tolist() == [7]


def test_small_probabilities_keep_their_digits():
    S = np.array([[-60.0, 800.0, 0.0, 1e-12]])
    found = RowOutcome.of(S, np.array([0, 1, 1, 0]))
    assert found.loss[0] == pytest.approx(np.exp(-60.0), rel=1e-14)
    assert found.wrong[0] == pytest.approx(np.exp(-60.0), rel=1e-14)
    assert found.loss[1] == 0.0
    assert found.loss[2] == pytest.approx(np.log(2.0), rel=1e-15)
    both = np.concatenate([np.zeros_like(S), S])
    other = RowOutcome.of(both, np.array([0, 1, 1, 0]))
    for one, two in zip(found[:3], other[:3], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-13, atol=0)


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_of_rounding_alone_do_not_hide_a_loss(classes):
    rng = np.random.default_rng(0)
    for _ in range(200):
        x, w = rng.uniform(1e22, 2e22, 3), rng.uniform(-1.0, 1.0, 3)
        w[2] = -(w[0] * x[0] + w[1] * x[1]) / x[2]  # w.x is 0 but for rounding
        problem = LogisticProblem(x[None], [1], classes=classes)
        W = np.zeros((problem.outputs, 3))
        W[-1 if classes == 2 else 1] = w
        score = sum(Fraction(p) * Fraction(q) for p, q in zip(x, w, strict=True))
        found = problem.prove(Claim(W.ravel())).certificate
        assert found.primal >= max(0, -score)


# ------------------------------------------------------------ dual coordinate descent


def two_classes(n=150, d=6, seed=0):
    X, codes = data(2, n, d, seed)
    weight = np.random.default_rng(seed + 1).choice([0.0, 1.0, 2.5], n)
    weight[:2] = 1.0  # both classes
    return X, codes, weight


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 30.0])
def test_dual_epochs_are_those_of_the_twin(layout, C):
    X, codes, _ = two_classes()
    stored = LAYOUTS[layout](X)
    seen = stored.toarray() if sparse.issparse(stored) else np.asarray(stored, float)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.5], len(X))
    problem = LogisticProblem(stored, codes, C, sample_weight=weight)
    solver = LogisticDCD()
    ours = solver.start(problem, core.Random(0), None)
    theirs = twin.DualCoordinate(seen, ours.signs, problem.cost, ours.alpha)
    for _ in range(3):
        solver.step(ours, core.Stop())
        gap = 0.0
        for i in ours.order:
            gap += theirs.share(i)
            theirs.visit(i)
        close(ours.alpha, theirs.a, 1e-7)
        close(ours.w, theirs.w, 1e-7)
        assert ours.dual == pytest.approx(theirs.dual, rel=1e-7)
        assert ours.primal - ours.dual == pytest.approx(gap, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("C", [1e-4, 0.1, 10.0])
def test_dual_descent_proves_the_optimum_of_newton(layout, free, C):
    X, codes, weight = two_classes()
    problem = LogisticProblem(
        LAYOUTS[layout](X), codes, C, sample_weight=weight, fit_intercept=free
    )
    best = fit(problem).certificate
    found = solve(problem, LogisticDCD(), tol=1e-5)
    assert found.certificate.certified
    assert found.certificate.dual <= best.primal
    assert best.dual <= found.certificate.primal <= best.primal * (1.0 + 1e-5)
    again = solve(problem, LogisticDCD(), tol=1e-5, warm=fit(problem).w)
    assert (again.certificate.certified, again.certificate.epochs) == (True, 0)


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_a_dual_point_of_hard_data_proves_no_more_than_the_optimum(name, C):
    X, codes = data(2, n=200, d=6)
    problem = LogisticProblem(HARD[name](X, codes), codes, C, fit_intercept=True)
    best = fit(problem, tol=1e-3, max_iter=200).certificate
    found = solve(problem, LogisticDCD(), max_iter=20).certificate
    assert 0.0 <= found.dual <= best.primal
    assert found.primal >= best.dual


@pytest.mark.parametrize("free", [False, True])
def test_every_alpha_is_a_dual_point(free):
    X, codes, weight = two_classes()
    problem = LogisticProblem(X, codes, 2.0, sample_weight=weight, fit_intercept=free)
    best, rng = fit(problem), np.random.default_rng(0)
    for share in (
        *(0.0, 1.0, 1e-300, -1.0, 2.0, 0.5),
        *(rng.random(len(X)), 10.0 ** rng.uniform(-20, 0, len(X))),
    ):
        alpha = share * problem.cost
        found = problem.prove(Claim(best.w, alpha)).certificate
        assert 0.0 <= found.dual <= best.certificate.primal
        assert found.primal == best.certificate.primal
    wrong = problem.outcome(problem.scores(problem.table(best.w))).wrong
    found = problem.prove(Claim(best.w, wrong * problem.cost)).certificate
    assert found.dual == pytest.approx(best.certificate.dual, rel=1e-9)


def test_the_choice_counts_the_cost_of_both_methods():
    rng = np.random.default_rng(0)
    text = normalize(sparse.random(2000, 9000, 0.005, "csr", rng=rng))
    codes = np.arange(2000) % 2
    for C in (1e-3, 1.0, 100.0):
        assert choose(LogisticProblem(text, codes, C)).name == "dcd"
    narrow = rng.normal(size=(2000, 20))
    for C in (1.0, 100.0):
        assert choose(LogisticProblem(narrow, codes, C)).name == "newton"
    # Classes of one problem are trained together.
    assert choose(LogisticProblem(text, np.arange(2000) % 3)).name == "newton"
    # Newton's method gains more from its last steps.
    middle = LogisticProblem(sparse.random(5000, 1000, 0.02, "csr", rng=rng),
                             np.arange(5000) % 2, 3.0)  # fmt: skip
    assert choose(middle, 1e-1).name == "dcd"
    assert choose(middle, 1e-12).name == "newton"


@pytest.mark.parametrize("free", [False, True])
def test_dual_descent_reads_fewer_entries_of_text_than_newton(free):
    rng = np.random.default_rng(0)
    X = normalize(sparse.random(1500, 6000, 0.01, "csr", rng=rng))
    codes = (X @ rng.normal(size=6000) + 0.1 * rng.normal(size=1500) > 0).astype(int)
    for C in (1.0, 100.0):
        problem = LogisticProblem(X, codes, C, fit_intercept=free)
        read = {}
        for solver in (LogisticDCD(), LogisticNewton()):
            state = solver.start(problem, core.Random(0), None)
            while state.primal - state.dual > 1e-3 * state.dual:
                solver.step(state, core.Stop())
            read[solver.name] = state.work
        assert read["dcd"] < read["newton"]


def test_weights_that_float32_cannot_hold_are_proved_in_float64():
    X, codes = data(2)
    problem = LogisticProblem(X.astype(np.float32), codes)
    state = LogisticNewton().start(problem, core.Random(0), None)
    w = np.full(problem.d, 0.1)
    np.testing.assert_array_equal(state.rounded(w), w.astype(np.float32))
    np.testing.assert_array_equal(state.rounded(1e40 * w), 1e40 * w)


@unsanitized("it keeps freed memory")
def test_a_fit_holds_few_numbers_for_each_row_and_class():
    """Scores before and after a step, its products with the rows, and residuals."""
    random = np.random.default_rng(0)
    codes = np.arange(6000) % 40
    X = random.standard_normal((40, 260))[codes] + 2.0 * random.standard_normal(
        (len(codes), 260)
    )
    problem = LogisticProblem(X.astype(np.float32), codes, fit_intercept=True)
    gc.collect()
    tracemalloc.start()
    try:
        found = solve(problem, LogisticNewton(), tol=1e-3)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.certificate.certified
    assert most <= 6.0 * 8.0 * len(codes) * 40
