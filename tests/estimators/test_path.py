"""Paths of C: every gap against a generic QP solver, and what a warm start saves."""

from __future__ import annotations

import importlib
import re
import signal
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from dualgap import LinearSVC, LinearSVCCV, LogisticRegression
from dualgap.data import convert
from dualgap.model_selection import svm_path
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems.duals import along, carried
from dualgap.solvers import DCD
from dualgap.training import solve

from .test_linear_svc import make

LOSSES = {"hinge": (0.0, True), "squared_hinge": (0.5, False)}
GRID = [1.0, 0.01, 0.1]


def epochs(certificates):
    return sum(c.epochs for c in np.ravel(certificates))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    ("classes", "solver"),
    [(2, "auto"), (3, "auto"), (2, "newton"), (3, "newton"), (2, "dcd")],
)
@pytest.mark.cases(4)
def test_a_logistic_path_needs_fewer_epochs_than_its_fits(form, classes, solver):
    X, y = make(n=300, classes=classes)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    grid, options = np.logspace(-3, 2, 8), {"solver": solver, "tol": 1e-5}
    path = svm_path(form(X), y, grid[::-1], loss="logistic", sample_weight=weight,
                    class_weight="balanced", **options)  # fmt: skip
    fits = [
        LogisticRegression(C=C, class_weight="balanced", **options).fit(
            form(X), y, weight
        )
        for C in grid[::-1]
    ]
    shape = (8, 4) if classes == 2 else (8, 3, 4)
    assert path.coefs.shape == shape
    assert path.intercepts.shape == shape[:-1]
    assert path.relative_gaps.shape == (8,)
    for one, model in zip(path.certificates, fits, strict=True):
        assert one.certified
        assert one.dual <= model.certificate_.primal
        assert model.certificate_.dual <= one.primal
    epochs = sum(one.epochs for one in path.certificates)
    assert epochs < sum(model.n_iter_ for model in fits)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_start_is_the_best_multiple_in_the_box(loss):
    X, y = make()
    problem = Problem(X, 2 * y - 1, 0.1, loss=loss, fit_intercept=True)
    alpha = svm_alpha(problem)
    for C in (0.01, 0.13, 3.0):
        now = problem.with_labels(2 * y - 1, None, C)
        start = carried(now, alpha)
        assert (start <= now.upper).all()
        ratio = start[alpha > 0] / alpha[alpha > 0]
        np.testing.assert_allclose(ratio, ratio[0])
        for s in np.linspace(0.1, 1.0, 10) * now.upper.clip(max=1e9).max():
            other = alpha * (s / alpha.max())
            if (other <= now.upper).all():
                assert now.dual(other) <= now.dual(start) + 1e-12


def test_the_line_through_two_models_meets_the_third():
    """The hinge's duals move along lines, and these values of C are on one."""
    X, y = make()
    problem = Problem(X, 2 * y - 1, 1.0, fit_intercept=True)
    past = []
    for C in (0.50, 0.501, 0.502):
        now = problem.with_labels(2 * y - 1, None, C)
        past.append((C, solve(now, DCD(), tol=1e-12, max_iter=100_000).alpha))
    start = np.clip(along(0.502, past[:2], False), 0.0, now.upper)
    assert now.certify(alpha=start).relative_gap <= 1e-9
    assert now.certify(alpha=carried(now, past[1][1])).relative_gap > 1e-5
    full = (past[0][1] == 0.50) & (past[1][1] == 0.501)
    assert full.sum() > 5
    assert (start[full] == 0.502).all()
    assert (start[(past[0][1] == 0.0) & (past[1][1] == 0.0)] == 0.0).all()
    falls = [(1.0, np.array([0.9, -0.9])), (2.0, np.array([0.1, -0.1]))]
    np.testing.assert_array_equal(along(3.0, falls, True), 0.0)


def test_duals_inside_their_boxes_are_those_of_every_larger_C():
    X, y = make(n=20, d=40)  # separable
    problem = Problem(X, 2 * y - 1, 10.0, fit_intercept=True)
    past = []
    for C in (10.0, 20.0):
        now = problem.with_labels(2 * y - 1, None, C)
        past.append((C, solve(now, DCD(), tol=1e-9).alpha))
    assert (past[1][1] < 10.0).all()
    start = along(1e3, past, False)
    np.testing.assert_array_equal(start, past[1][1])
    now = problem.with_labels(2 * y - 1, None, 1e3)
    assert now.dual(start) == pytest.approx(problem.dual(past[0][1]), rel=1e-9)
    found = solve(now, DCD(acceleration="conjugate"), warm=start, tol=1e-6)
    assert found.certificate.relative_gap <= 1e-6
    assert now.primal(found.w) == pytest.approx(found.certificate.primal, rel=1e-9)


def svm_alpha(problem):
    return solve(problem, DCD(), tol=1e-8).alpha


def test_a_path_needs_fewer_updates_than_cold_fits():
    X, y = load_digits(return_X_y=True)
    X, y = scale(X)[:, ::3], y % 2
    grid = np.logspace(-3, 0, 7)
    path = svm_path(X, y, grid, solver="dcd", random_state=0)
    cold = [LinearSVC(C=C, solver="dcd", random_state=0).fit(X, y) for C in grid]
    ours = sum(c.updates for c in path.certificates)
    theirs = sum(model.certificate_.updates for model in cold)
    assert ours < 0.6 * theirs
    assert (path.relative_gaps <= 1e-3).all()


def test_a_path_in_any_order_over_any_matrix_is_the_same():
    X, y = make()
    a = svm_path(X, y, [0.1, 1.0], random_state=0)
    b = svm_path(X, y, [1.0, 0.1], random_state=0)
    np.testing.assert_array_equal(a.coefs, b.coefs[::-1])
    c = svm_path(sparse.csc_matrix(X), y, [0.1, 1.0], random_state=0, tol=1e-9)
    d = svm_path(X, y, [0.1, 1.0], random_state=0, tol=1e-9)
    np.testing.assert_allclose(c.coefs, d.coefs, atol=1e-4)
    assert len(svm_path(X, y, 3).Cs) == 3


def test_a_row_store_is_refused_with_the_remedy(tmp_path):
    X, y = make()
    dump_svmlight_file(X, y, str(tmp_path / "data"))
    store = convert([tmp_path / "data"], tmp_path / "store")
    for fit in (svm_path, LinearSVCCV().fit):
        with pytest.raises(ValueError, match="warm_start=True"):
            fit(store, y)
    model = LinearSVC(C=0.1, warm_start=True, random_state=0).fit(store)
    model.set_params(C=1.0).fit(store)
    assert model.certificate_.certified


def test_a_path_out_of_time_says_so():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="models did not converge"):
        path = svm_path(X, y, [1.0, 10.0], tol=1e-12, time_limit=1e-6)
    assert not any(c.certified for row in path.certificates for c in row)
    assert (np.array([[c.dual for c in row] for row in path.certificates]) >= 0).all()


# Warm starts of the estimator


@pytest.mark.parametrize("loss", LOSSES)
def test_a_warm_start_follows_a_change_of_C(loss):
    X, y = load_digits(return_X_y=True)
    X, y = scale(X)[:, ::3], y % 2
    warm = LinearSVC(C=0.1, solver="dcd", loss=loss, warm_start=True, random_state=0)
    warm.fit(X, y).set_params(C=1.0).fit(X, y)
    cold = clone(warm).fit(X, y)
    assert warm.certificate_.relative_gap <= 1e-3
    assert warm.certificate_.updates < 0.7 * cold.certificate_.updates
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-3)


# Cross-validation


def test_scoring_strings_labels_weights_and_no_refit():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = LinearSVCCV(
        [0.1, 1.0], cv=KFold(4, shuffle=True, random_state=0), scoring="f1_macro",
        n_jobs=2, random_state=0,
    )  # fmt: skip
    weight = np.ones(len(y))
    model.fit(X, names, sample_weight=weight)
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert set(model.predict(X)) == set(names)
    assert model.scores_.shape == (4, 2)
    same = clone(model).set_params(n_jobs=1).fit(X, names)
    np.testing.assert_array_equal(same.scores_, model.scores_)
    bare = clone(model).set_params(refit=False).fit(X, names)
    np.testing.assert_array_equal(bare.scores_, model.scores_)
    assert not hasattr(bare, "coef_")


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_the_accuracy_is_that_of_scikit_learn(multi_class, classes, form):
    X, y = load_iris(return_X_y=True)
    some = y >= 3 - classes
    X, y = form(X[some, 1:3]), np.array(["a", "b", "c"])[y[some]]
    search = LinearSVCCV([0.01, 1.0], cv=4, multi_class=multi_class, random_state=0)
    search.set_params(scoring=make_scorer(accuracy_score)).fit(X, y)
    for scoring in (None, "accuracy"):
        same = clone(search).set_params(scoring=scoring).fit(X, y)
        np.testing.assert_array_equal(same.scores_, search.scores_)
    assert search.scores_.min() < 1.0


def test_no_time_for_a_search():
    """A C that were chosen from models of no training would mean nothing."""
    X, y = load_digits(return_X_y=True)
    search = LinearSVCCV([1.0], cv=2, tol=1e-12, time_limit=1e-3)
    told = r"time_limit=0\.001 was reached before any candidate was scored on all"
    with pytest.raises(ValueError, match=told):
        search.fit(X, y)
    assert not hasattr(search, "C_")


class Clock:
    """A scorer that cuts the search short after some calls."""

    lock = threading.Lock()  # of the class, as a search is copied with its scorer

    def __init__(self, calls, cut):
        self.calls, self.cut, self.seen = calls, cut, []

    def __call__(self, model, X, y):
        with self.lock:  # one of several threads makes the last call
            self.seen.append(model.C)
            last = len(self.seen) == self.calls
        if last:
            self.cut()
        return 1.0 / model.C  # the smallest is best


@pytest.fixture(params=["ctrl-c", "time_limit"])
def cut(request, monkeypatch):
    """Press Ctrl-C, or let the time be over."""
    if request.param == "ctrl-c":
        return lambda: signal.raise_signal(signal.SIGINT)
    made, module = [], importlib.import_module("dualgap.estimators.search")
    plain = module.begin
    monkeypatch.setattr(module, "begin", lambda _: made.append(plain(1e3)) or made[-1])
    return lambda: made[-1].set_deadline(-1.0)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_search_that_is_cut_short_ends_with_what_it_knows(cut, classes):
    X, y = make(n=90, classes=classes)
    clock = Clock(8, cut)  # in the third value of C, rising
    grid = [1.0, 0.1, 0.03, 0.01]
    search = LinearSVCCV(grid, cv=3, scoring=clock, random_state=0, tol=1e-6)
    told = (
        r"after 2 of 4 candidates were scored on all folds\. best_params_={'C': 0\.01}"
    )
    with pytest.warns(ConvergenceWarning) as seen:
        search.fit(X, y)
    assert any(re.search(told, str(w.message)) for w in seen)
    assert clock.seen == [0.01, 0.01, 0.01, 0.03, 0.03, 0.03, 0.1, 0.1]
    reached = ~np.isnan(search.scores_)
    expected = np.array([[0, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]], bool)
    np.testing.assert_array_equal(reached, expected)
    np.testing.assert_array_equal(~np.isnan(search.relative_gaps_), expected)
    assert search.C_ == 0.01
    assert search.best_score_ == pytest.approx(100.0)
    # The final fit comes after the search; its certificate is about all rows.
    assert search.certificate_.certified
    whole = LinearSVC(C=0.01, tol=1e-9, random_state=0).fit(X, y)
    for one, close in zip(search.certificate_, whole.certificate_, strict=True):
        assert one.dual <= close.primal
        assert one.primal >= close.dual


def test_nothing_to_keep_of_a_search_is_an_error(cut):
    X, y = make(n=90)
    search = LinearSVCCV([0.1, 1.0], cv=3, scoring=Clock(2, cut), random_state=0)
    with pytest.raises((KeyboardInterrupt, ValueError), match="before any candidate"):
        search.fit(X, y)
    assert not hasattr(search, "scores_")


def test_folds_in_threads_that_are_cut_short():
    X, y = make(n=90)
    clock = Clock(7, lambda: signal.raise_signal(signal.SIGINT))
    search = LinearSVCCV(
        np.logspace(-3, 3, 200), cv=3, scoring=clock, random_state=0, n_jobs=2
    )
    try:
        with pytest.warns(ConvergenceWarning, match="interrupted after"):
            search.fit(X, y)
    except KeyboardInterrupt:
        return  # no value had been scored on all folds
    whole = ~np.isnan(search.scores_).any(axis=0)
    assert 0 < whole.sum() < 200
    assert search.Cs_[whole].min() == search.C_  # the best of these


def test_folds_take_turns():
    X, y = make(n=90, classes=3)
    clock = Clock(0, None)
    turns = LinearSVCCV(GRID, cv=3, random_state=0, scoring=clock).fit(X, y)
    assert clock.seen == sorted(clock.seen)
    threads = clone(turns).set_params(n_jobs=3, scoring=None).fit(X, y)
    np.testing.assert_array_equal(threads.relative_gaps_, turns.relative_gaps_)


def test_scores_that_are_no_numbers_choose_nothing():
    X, y = make(n=90)

    def scoring(model, X, y):
        return np.nan if model.C < 1.0 else 0.5

    search = LinearSVCCV([0.1, 1.0, 2.0], cv=3, scoring=scoring, random_state=0)
    assert search.fit(X, y).C_ == 1.0
    with pytest.raises(ValueError, match="gave NaN for every candidate"):
        search.set_params(Cs=[0.1]).fit(X, y)


# scikit-learn's own searches


@pytest.mark.parametrize("search", [GridSearchCV, HalvingGridSearchCV])
def test_searches_of_scikit_learn_over_a_pipeline(search):
    X, y = load_digits(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LinearSVC(random_state=0))
    options = {"random_state": 0} if search is HalvingGridSearchCV else {}
    found = search(pipeline, {"linearsvc__C": [1e-3, 1e-2]}, cv=3, **options)
    found.fit(X, y)
    assert found.best_score_ > 0.85
    assert all(c.certified for c in found.best_estimator_[-1].certificate_)
