"""SVCCV and SVRCV: cross-validation over a shared kernel matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
)

import dualgap.estimators.folds as folds
from dualgap import SVC, SVCCV, SVR, SVRCV, core
from dualgap.data.rows import Points
from dualgap.kernel import RBF, Precomputed
from dualgap.kernels.table import table_pays
from dualgap.training.folds import FoldBatch

GRID = np.logspace(-2, 2, 6)


def make(classes=2, n=160):
    """Draw rows with enough features that searches share a table of kernel values."""
    X, y = make_classification(
        n, 60, n_informative=4, n_classes=classes, flip_y=0.1, random_state=0
    )
    return 0.3 * X, y


def mean_decision(model, X, y):
    return np.abs(model.decision_function(X)).mean()


def mean_absolute_value(model, X, y):
    return np.abs(model.predict(X)).mean()


def part_with(parts, X, vectors):
    """The training part that has all support vectors."""
    needed = {row.tobytes() for row in vectors}
    (part,) = [p for p in parts if needed <= {row.tobytes() for row in X[p]}]
    return part


@pytest.mark.cases(None)
@pytest.mark.parametrize("kind", [2, 3, "epsilon=0", "epsilon=0.2"])  # classes
@pytest.mark.parametrize("cache_size", [200.0, 0.01], ids=["together", "alone"])
def test_the_objective_of_every_model_is_within_the_gaps(monkeypatch, cache_size, kind):
    solve_folds, trained, found = folds.solve_folds, [], []

    def count(problems, table, Cs, *rest):
        trained.append(len(Cs))
        return solve_folds(problems, table, Cs, *rest)

    def note(model, X_test, y_test):
        found.append(model)
        if isinstance(model, SVR):
            values = model.predict(X_test)
            again = model.predict(X_test[::-1])[::-1]
            np.testing.assert_allclose(again, values, rtol=1e-9)
        return 1.0

    monkeypatch.setattr(folds, "solve_folds", count)
    options = {"cv": 3, "scoring": note, "random_state": 0, "refit": False}
    if isinstance(kind, int):
        X, y = make(kind)
        search, single, cv = (
            SVCCV(GRID, 0.2, **options),
            SVC(gamma=0.2),
            StratifiedKFold,
        )
    else:
        X, y = make_regression(90, 60, n_informative=5, noise=5.0, random_state=0)
        y, epsilons = 1e3 + y / y.std(), [float(kind[8:]), 0.7]
        search, single = SVRCV(GRID, 0.01, epsilons, **options), SVR(gamma=0.01)
        cv = KFold
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    if cv is KFold:
        weight[::7] = 0.0
    search.set_params(cache_size=cache_size).fit(X, y, sample_weight=weight)
    fits = 1 if cv is StratifiedKFold else 2
    assert len(found) == fits * 3 * len(GRID)
    if cv is KFold:
        assert trained == [len(GRID)] * (2 if cache_size > 1.0 else 0)
    parts = [train for train, _ in cv(3).split(X, y)]
    for model in found:
        part = part_with(parts, X, model.support_vectors_)
        exact = clone(single).set_params(C=model.C, tol=1e-8)
        if cv is KFold:
            exact.epsilon = model.epsilon
        exact.fit(X[part], y[part], sample_weight=weight[part])
        for ours, best in zip(model.certificate_, exact.certificate_, strict=True):
            assert ours.certified
            assert ours.dual <= best.primal
            assert best.dual <= ours.primal <= best.primal * (1 + 1e-3)


@pytest.mark.parametrize("classes", [1, 2, 3])  # 1: a regression
def test_a_fold_that_ends_too_early_goes_on_alone(monkeypatch, classes):
    X, y = make(max(classes, 2))
    if classes == 1:
        y = X[:, 0] - X[:, 1] ** 2
        whole = SVRCV(GRID, 0.2, 0.01, cv=3, scoring=mean_absolute_value)
    else:
        whole = SVCCV(GRID, 0.2, cv=3, scoring=mean_decision, random_state=0)
        whole.set_params(decision_function_shape="ovo")
    whole.set_params(tol=1e-6).fit(X, y)
    advance = FoldBatch.advance

    def early(self, C, *rest):
        self.core = Early(self.core) if isinstance(self.core, core.Folds) else self.core
        return advance(self, C, *rest)

    class Early:
        def __init__(self, inside):
            self.inside = inside
            self.points, self.proofs = inside.points, inside.proofs
            self.counts = inside.counts

        def advance(self, C, tol, atol, most, stop):
            return self.inside.advance(C, tol, atol, 1, stop)

    monkeypatch.setattr(FoldBatch, "advance", early)
    again = clone(whole).fit(X, y)
    for k in range(3):
        np.testing.assert_allclose(
            again.cv_results_[f"split{k}_test_score"],
            whole.cv_results_[f"split{k}_test_score"],
            rtol=1e-2,
        )
        assert again.cv_results_[f"split{k}_relative_gap"].max() <= 1e-6


def test_weights_groups_strings_and_scorers():
    X, y = make(3)
    names = np.array(["low", "mid", "top"])[y]
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    groups = np.arange(len(y)) % 7
    ours = SVCCV(GRID, 0.2, cv=GroupKFold(3), scoring="balanced_accuracy", tol=1e-7)
    ours.fit(X, names, sample_weight=weight, groups=groups)
    without = 0
    for k, (train, test) in enumerate(GroupKFold(3).split(X, names, groups)):
        for C, score in zip(
            GRID, ours.cv_results_[f"split{k}_test_score"], strict=True
        ):
            model = SVC(C=C, gamma=0.2, tol=1e-7, decision_function_shape="ovo")
            model.fit(X[train], names[train], sample_weight=weight[train])
            # Weights count in training, not in the scores. A row on the boundary may
            # fall to either side.
            best = balanced_accuracy_score(names[test], model.predict(X[test]))
            doubt = (np.abs(model.decision_function(X[test])).min(axis=1) < 1e-2).sum()
            of_a_row = 1.0 / (3 * np.unique(names[test], return_counts=True)[1].min())
            assert abs(score - best) <= doubt * of_a_row + 1e-12
            without += abs(score - best) < 1e-12
    assert without > 9
    final = SVC(C=ours.C_, gamma=0.2, tol=1e-7).fit(X, names, sample_weight=weight)
    np.testing.assert_allclose(
        ours.decision_function(X), final.decision_function(X), atol=1e-2
    )


def test_a_scorer_may_look_at_other_rows():
    X, y = make()

    def score(model, X_test, y_test):
        again = model.decision_function(X_test.copy())
        np.testing.assert_allclose(model.decision_function(X_test), again, atol=1e-9)
        return -mean_absolute_error(y_test, again)

    search = SVCCV(GRID, 0.2, cv=ShuffleSplit(2, random_state=0), scoring=score)
    assert search.fit(X, y).best_score_ < 0.0


def test_a_precomputed_kernel():
    X, y = make()
    K = X @ X.T
    options = {"cv": 3, "tol": 1e-7, "scoring": mean_decision}
    ours = SVCCV(GRID, kernel="precomputed", **options).fit(K, y)
    linear = SVCCV(GRID, kernel="linear", **options).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"],
        linear.cv_results_["mean_test_score"],
        rtol=1e-2,
    )
    np.testing.assert_allclose(
        ours.decision_function(K), linear.decision_function(X), atol=1e-2
    )


class Clock:
    """Scorer that sends the stop signal after some scores."""

    def __init__(self, after):
        self.left = after

    def __call__(self, model, X, y):
        self.left -= 1
        if self.left == 0:
            import _thread

            _thread.interrupt_main()
        return model.score(X, y)


def test_ctrl_c_keeps_the_candidates_that_are_finished():
    X, y = make()
    search = SVCCV(GRID, 0.2, cv=2, scoring=Clock(5))
    with pytest.warns(ConvergenceWarning, match="interrupted after 2 of 6 candidates"):
        search.fit(X, y)
    done = ~np.isnan(search.cv_results_["mean_test_score"])
    assert done.tolist() == [True, True, False, False, False, False]
    assert search.C_ in GRID[:2]
    assert search.best_estimator_.certificate_.certified
    with pytest.raises(KeyboardInterrupt, match="before any candidate"):
        SVCCV(GRID, 0.2, cv=2, scoring=Clock(1)).fit(X, y)


def test_all_values_of_epsilon_share_a_matrix():
    X, y = make_regression(60, 3, random_state=0)
    calls = []

    def kernel(A, B):
        calls.append(len(A))
        return A @ B.T

    for epsilons in (0.1, [0.1, 0.5, 1.0]):
        SVRCV([1.0], epsilons=epsilons, kernel=kernel, cv=2, refit=False).fit(X, y)
    assert len(calls) % 2 == 0
    assert calls[: len(calls) // 2] == calls[len(calls) // 2 :]


def test_no_final_model():
    X, y = make()
    search = SVCCV([1.0], cv=2, refit=False).fit(X, y)
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "decision_function")
    with pytest.raises(AttributeError, match="refit=False"):
        search.predict(X)


class StoppedError(Exception):
    pass


@pytest.mark.parametrize(
    "end",
    [
        "error",
        *(pytest.param(e, marks=pytest.mark.long) for e in ("ctrl-c", "threads")),
    ],
)
def test_a_search_goes_on_from_its_checkpoint(tmp_path, end):
    X, y = make(3)
    file = tmp_path / "search.safetensors"
    calls = []

    def scorer(model, X, y):
        calls.append(model.C)
        if len(calls) == stop_at:
            if end == "error":
                raise StoppedError
            import _thread

            _thread.interrupt_main()
        return mean_decision(model, X, y)

    options = {"cv": 3, "tol": 1e-5, "scoring": scorer, "random_state": 0}
    options |= {"decision_function_shape": "ovo"}
    stop_at = -1
    whole = SVCCV(GRID, [0.1, 0.3], **options).fit(X, y)
    assert len(calls) == 36
    options |= {"checkpoint": file, "checkpoint_every": 1e-9}
    calls, stop_at = [], 27
    if end == "error":
        with pytest.raises(StoppedError):
            SVCCV(GRID, [0.1, 0.3], **options).fit(X, y)
    else:
        with pytest.warns(ConvergenceWarning, match="interrupted after"):
            SVCCV(GRID, [0.1, 0.3], n_jobs=2 if end == "threads" else 1, **options).fit(
                X, y
            )
    before, calls, stop_at = len(calls), [], -1
    again = SVCCV(GRID, [0.1, 0.3], **options).fit(X, y)
    # All folds of a value of C are written together.
    assert len(calls) % 3 == 0
    assert 36 - before <= len(calls) <= 36 - before + 3 * (2 if end == "threads" else 1)
    for name, found in whole.cv_results_.items():
        if name.endswith("_score") and "rank" not in name:
            np.testing.assert_allclose(again.cv_results_[name], found, rtol=0.02)
    assert max(again.cv_results_[f"split{k}_relative_gap"].max() for k in range(3)) <= (
        1e-5
    )
    assert again.best_params_ == whole.best_params_
    calls = []
    SVCCV(GRID, [0.1, 0.3], **options).fit(X, y)
    assert calls == []
    with pytest.raises(ValueError, match="written by a fit of other data"):
        SVCCV(GRID, [0.1, 0.3], **options).fit(X, 1 - np.minimum(y, 1))
    with pytest.raises(ValueError, match=r"fit of tol='1e-05', this fit has tol='0.1'"):
        SVCCV(GRID, [0.1, 0.3], **{**options, "tol": 0.1}).fit(X, y)


def test_a_regression_goes_on_from_its_checkpoint(tmp_path):
    """The models of the first epsilon are finished, some of the second are not."""
    X, y = make()
    y = X[:, 0] - X[:, 1] ** 2
    calls, stop_at = [], 3 * len(GRID) + 4

    def scorer(model, X, y):
        calls.append(model.epsilon)
        if len(calls) == stop_at:
            raise StoppedError
        return mean_absolute_value(model, X, y)

    search = SVRCV(GRID, 0.2, [0.01, 0.1], cv=3, tol=1e-6, scoring=scorer)
    search.set_params(checkpoint=tmp_path / "search", checkpoint_every=1e-9)
    with pytest.raises(StoppedError):
        search.fit(X, y)
    calls, stop_at = [], -1
    search.fit(X, y)
    assert calls == [0.1] * (3 * len(GRID) - 3)
    whole = clone(search).set_params(checkpoint=None).fit(X, y)
    for k in range(3):
        name = f"split{k}_test_score"
        np.testing.assert_allclose(
            search.cv_results_[name], whole.cv_results_[name], rtol=1e-2
        )


def folds_of(n, d, classes=2):
    X = np.random.default_rng(0).normal(size=(n, d))
    y, rows = np.arange(n) % classes, np.arange(n)
    splits = [(rows[rows % 3 != f], rows[rows % 3 == f]) for f in range(3)]
    return folds.Folds(Points.of(X), y, None, splits, core.Stop())


def test_the_values_of_separate_fits_are_those_of_their_matrices():
    """A pair of classes has a matrix of the rows of both."""
    for classes, values in [(2, 40**2), (4, 6 * 20**2)]:
        found = folds_of(60, 2, classes)
        assert [folds._values_of(own) for own in found.data(SVC())] == [values] * 3
    found = folds_of(60, 2)
    assert [folds._values_of(own) for own in found.data(SVR())] == [40**2] * 3


def test_folds_read_a_table_only_if_computing_the_values_costs_more():
    narrow, kernel = folds_of(3200, 20), RBF(0.05)
    many = np.geomspace(0.1, 100.0, 20)
    for Cs, kernels, walks in (np.ones(1), 10, 3), (many, 1, 3), (many, 10, 1):
        narrow.kernels, narrow.computed = kernels, None
        assert len(narrow.walks(SVC(gamma=0.05), Cs)) == walks
        assert (narrow.table is None) == (walks == 3)
    near = folds_of(3200, 20)
    near.duals = np.zeros((1, 3200))  # as in a calibration
    assert len(near.walks(SVC(gamma=0.05), np.array([1.0]))) == 1
    wide = Points.of(np.zeros((3200, 300)))
    values = 2 * (3200 * 2 / 3) ** 2
    assert not table_pays(wide, kernel, values, 100)
    assert table_pays(wide, kernel, 3 * values, 100)
    assert not table_pays(wide, kernel, 3 * values, 1)  # touches memory for one kernel
    assert not table_pays(narrow.points, kernel, 3 * values, 100)
    assert table_pays(narrow.points, kernel, 1e4 * values, 1)
    sparse = Points.of(csr_matrix(([1.0], [0], [0, 1, *[1] * 3199]), (3200, 300)))
    assert not table_pays(sparse, kernel, 3 * values, 100)
    assert table_pays(Points.of(np.zeros((3000, 2))), kernel, values, 1)
    assert table_pays(wide, Precomputed(), 1.0, 1)


def test_separate_fits_of_a_kernel_add_up():
    """Values of epsilon share a table once all their fits have made up for it."""
    found, kernel, shares = folds_of(3200, 300), RBF(0.01), []
    found.kernels = 100
    for _ in range(4):
        shares.append(found._table_pays(kernel, found.data(SVR()), 1))
    assert shares == [False, True, True, True]
    assert not found._table_pays(RBF(0.02), found.data(SVR()), 1)
