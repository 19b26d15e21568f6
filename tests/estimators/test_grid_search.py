"""GridSearchCV of dualgap beside scikit-learn's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
import sklearn.svm
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification, make_regression
from sklearn.feature_selection import SelectKBest
from sklearn.metrics import make_scorer
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KernelCenterer, StandardScaler

import dualgap.estimators.folds as folds
from dualgap import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM
from dualgap.model_selection import GridSearchCV

CS = [0.03, 1.0, 0.2, 30.0]


def make(classes=2, n=90, d=60):
    """Draw rows with enough features that searches share a table of kernel values."""
    X, y = make_classification(
        n, d, n_informative=4, n_classes=classes, flip_y=0.1, random_state=0
    )
    return 0.3 * X, y


def mean_decision(model, X, y, sample_weight=None):
    """Score without the jumps that accuracy makes where a row is on the boundary."""
    size = np.abs(model.decision_function(X))
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    return float(np.average(size.reshape(len(y), -1).mean(axis=1), weights=weight))


def both(estimator, grid, X, y, scoring=mean_decision, given=None, **options):
    """Fit both searches, and compare all that they set."""
    options = {"cv": 3, "scoring": scoring, **options}
    ours = GridSearchCV(estimator, grid, **options)
    plain = sklearn.model_selection.GridSearchCV(estimator, grid, **options)
    given = given or {}
    ours.fit(X, y, **given)
    plain.fit(X, y, **given)
    assert [*ours.cv_results_] == [*plain.cv_results_]
    for name, found in plain.cv_results_.items():
        mine = ours.cv_results_[name]
        if name == "params":
            assert mine == found
        elif name.startswith("param_"):
            assert mine.dtype == found.dtype
            assert mine.tolist() == found.tolist()
        elif not name.endswith("_time"):
            np.testing.assert_allclose(mine, found, rtol=2e-3, atol=1e-3, err_msg=name)
    assert ours.n_splits_ == plain.n_splits_
    assert ours.multimetric_ == plain.multimetric_
    if hasattr(plain, "best_index_"):
        assert ours.best_index_ == plain.best_index_
        assert ours.best_params_ == plain.best_params_
    return ours, plain


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("options", "grid"),
    [
        ({}, {"C": CS, "gamma": [0.05, 0.3]}),  # folds share a matrix
        ({"class_weight": "balanced"}, {"C": CS, "gamma": ["scale", "auto"]}),
        ({"cache_size": 0.2}, [{"C": CS}, {"C": CS[:2], "kernel": ["linear"]}]),
        ({"loss": "squared_hinge"}, {"C": CS}),
    ],
)
def test_kernel_classifiers(classes, options, grid):
    model = SVC(tol=1e-6, decision_function_shape="ovo", random_state=0, **options)
    ours, plain = both(model, grid, *make(classes))
    assert ours.shared_
    assert ours.relative_gaps_.shape == (len(ours.cv_results_["params"]), 3)
    assert (ours.relative_gaps_ <= 1e-6).all()
    X = make(classes)[0]
    assert (ours.predict(X) == plain.predict(X)).all()
    assert ours.best_estimator_.certificate_.certified


def note_folds(monkeypatch):
    """Return a list that gets the folds and values of C that are trained together."""
    trained, solve_folds = [], folds.solve_folds

    def note(problems, table, Cs, *rest):
        trained.append((len(problems.weights), len(Cs)))
        return solve_folds(problems, table, Cs, *rest)

    monkeypatch.setattr(folds, "solve_folds", note)
    return trained


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("given", [False, True])
def test_the_folds_of_a_classifier_are_trained_together(monkeypatch, classes, given):
    """Scores and order are those of scikit-learn's search over its own SVC."""
    X, y = make(classes)
    trained = note_folds(monkeypatch)
    # Values for which some rows are on the margin, so that the bias is unique.
    Cs = [0.3, 30.0, 3.0]
    grid = {"C": Cs, "gamma": [0.003, 0.02], "class_weight": [None, {0: 2.5}]}
    common = {"decision_function_shape": "ovo"}
    options = {"cv": 3, "scoring": mean_decision, "return_train_score": True}
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if given else None
    ours = GridSearchCV(SVC(tol=1e-9, random_state=0, **common), grid, **options)
    ours.fit(X, y, sample_weight=weight)
    plain = sklearn.model_selection.GridSearchCV(
        sklearn.svm.SVC(tol=1e-7, **common), grid, **options
    ).fit(X, y, sample_weight=weight)
    assert trained == [(3, len(Cs))] * 4
    for name, found in plain.cv_results_.items():
        if name.endswith("_score") and not name.startswith("rank"):
            np.testing.assert_allclose(ours.cv_results_[name], found, 0, 1e-3)
    assert ours.cv_results_["params"] == plain.cv_results_["params"]
    assert ours.best_params_ == plain.best_params_


def test_folds_with_kernels_of_their_own_are_trained_one_at_a_time(monkeypatch):
    X, y = make(3)
    trained = note_folds(monkeypatch)
    model = SVC(tol=1e-6, gamma="scale", random_state=0)
    assert both(model, {"C": CS}, X, y)[0].shared_
    pipe = make_pipeline(StandardScaler(), SVC(tol=1e-6, gamma=0.01, random_state=0))
    assert both(pipe, {"svc__C": CS}, X, y)[0].shared_
    assert trained == []


@pytest.mark.parametrize(
    ("model", "grid", "together"),
    [
        (SVR(tol=1e-7), {"C": CS, "epsilon": [0.05, 0.4]}, []),
        (
            SVR(tol=1e-7, gamma=0.01),
            {"C": CS, "epsilon": [0.05, 0.4]},
            [(3, len(CS))] * 2,
        ),
        (LinearSVR(tol=1e-6), {"C": [0.003, 0.001, 0.01], "epsilon": [0.0, 0.3]}, []),
    ],
)
def test_regressors(monkeypatch, model, grid, together):
    X, y = make_regression(90, 60, n_informative=5, noise=5.0, random_state=0)
    X = X[:, :8] if isinstance(model, LinearSVR) else X
    trained = note_folds(monkeypatch)
    ours, _ = both(model, grid, X, y / y.std(), scoring=None)
    assert ours.shared_
    assert trained == together


@pytest.mark.long
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_linear_classifiers(classes, loss):
    model = LinearSVC(loss=loss, tol=1e-6, random_state=0)
    ours, _ = both(model, {"C": CS}, *make(classes))
    assert ours.shared_
    assert (ours.relative_gaps_ <= 1e-6).all()
    assert ours.best_estimator_.warm_start is False


@pytest.mark.parametrize("last", [SVC(tol=1e-6), LinearSVC(tol=1e-6, random_state=0)])
def test_pipelines_fit_their_steps_in_every_fold(last):
    X, y = make()
    # With larger C the planes separate all rows, and are equal.
    grid = {"svm__C": CS[:3]}
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    names = np.array(["no", "yes"])[y]
    model = Pipeline(
        [("scale", StandardScaler()), ("best", SelectKBest(k=55)), ("svm", last)]
    )
    ours, _ = both(model, grid, table, names)
    assert ours.shared_
    assert ours.feature_names_in_.tolist() == table.columns.tolist()
    model.set_params(scale="passthrough", best="passthrough")
    assert both(model, grid, table, names)[0].shared_


@pytest.mark.long
def test_sparse_rows_groups_and_weights():
    X, y = make()
    X[np.abs(X) < 0.2] = 0.0
    given = {
        "sample_weight": np.random.default_rng(0).integers(0, 3, len(y)).astype(float),
        "groups": np.arange(len(y)) % 7,
    }
    for model in (SVC(tol=1e-6), LinearSVC(tol=1e-6, random_state=0)):
        for rows in (csr_array(X), X.astype(np.float32)):
            ours, plain = both(model, {"C": CS}, rows, y, cv=GroupKFold(3), given=given)
            assert ours.shared_
            np.testing.assert_allclose(
                ours.decision_function(X), plain.decision_function(X), atol=1e-3
            )
    pipe = make_pipeline(StandardScaler(with_mean=False), SVC(tol=1e-6))
    given = {"svc__sample_weight": given["sample_weight"]}
    assert both(pipe, {"svc__C": CS}, csr_array(X), y, given=given)[0].shared_


def test_several_scores_and_a_choice_of_ones_own():
    X, y = make()
    model = SVC(tol=1e-6, random_state=0)
    several = {"size": mean_decision, "other": lambda m, X, y: -mean_decision(m, X, y)}
    options = {"scoring": several, "return_train_score": True}
    for refit in ("other", False):
        assert both(model, {"C": CS}, X, y, refit=refit, **options)[0].shared_
    ours, _ = both(
        model, {"C": CS}, X, y, refit=lambda results: len(results["params"]) - 1
    )
    assert ours.best_index_ == 3

    def as_dict(model, X, y):
        return {"one": mean_decision(model, X, y), "two": 1.0}

    assert both(model, {"C": CS}, X, y, scoring=as_dict, refit="one")[0].shared_


@pytest.mark.long
def test_other_splitters_and_a_precomputed_kernel():
    X, y = make()
    K = X @ X.T
    bootstrap = ShuffleSplit(3, random_state=0)
    for cv in (4, bootstrap, StratifiedKFold(3, shuffle=True, random_state=1)):
        assert both(SVC(tol=1e-6), {"C": CS}, X, y, cv=cv)[0].shared_
    rng = np.random.default_rng(0)
    drawn = [(rng.integers(0, 60, 80), np.arange(60, 90)) for _ in range(2)]
    assert both(SVC(tol=1e-6, gamma=0.2), {"C": CS}, X, y, cv=drawn)[0].shared_
    model = SVC(tol=1e-6, kernel="precomputed")
    assert both(model, {"C": CS}, K, y)[0].shared_


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (sklearn.svm.SVC(), {"C": CS}),
        (SVC(), {"gamma": [0.1, 1.0]}),  # no C
        (SVC(), {"C": [1.0, 1.0]}),
        (SVC(solver="mfw", loss="squared_hinge", random_state=0), {"C": [0.1, 1.0]}),
        (SVC(time_limit=100.0), {"C": [0.1, 1.0]}),
        (
            make_pipeline(SelectKBest(k=9), SVC()),
            {"svc__C": [0.1, 1.0], "selectkbest__k": [3, 9]},
        ),
    ],
)
def test_searches_that_scikit_learn_does(model, grid):
    ours, _ = both(model, grid, *make(), scoring=None)
    assert not ours.shared_
    assert not hasattr(ours, "relative_gaps_")


def test_an_iterator_of_folds():
    X, y = make()
    folds = [(np.arange(60), np.arange(60, 90))]
    one = GridSearchCV(SVC(), {"C": CS}, cv=folds).fit(X, y)
    other = GridSearchCV(SVC(), {"C": CS}, cv=iter(folds)).fit(X, y)
    name = "mean_test_score"
    np.testing.assert_array_equal(one.cv_results_[name], other.cv_results_[name])


def test_a_precomputed_kernel_behind_a_step():
    X, y = make()
    pipe = make_pipeline(KernelCenterer(), SVC(tol=1e-6, kernel="precomputed"))
    assert both(pipe, {"svc__C": CS}, X @ X.T, y)[0].shared_


def test_errors_are_those_of_scikit_learn():
    X, y = make()
    with (
        pytest.warns(sklearn.exceptions.FitFailedWarning),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search = GridSearchCV(SVC(), {"C": [-1.0, 1.0]}).fit(X, y)
    assert search.best_params_ == {"C": 1.0}
    assert np.isnan(search.cv_results_["mean_test_score"][0])
    broken = GridSearchCV(SVC(), {"C": [-1.0, 1.0]}, error_score="raise")
    with pytest.raises(ValueError, match="'C' parameter"):
        broken.fit(X, y)
    with pytest.raises(ValueError, match="SVC has no parameter 'no'"):
        GridSearchCV(SVC(), {"C": CS, "no": [1]}).fit(X, y)
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        GridSearchCV(SVC(), {"C": CS}, error_score="raise").fit(X, y)
    with pytest.raises(sklearn.utils._param_validation.InvalidParameterError):
        GridSearchCV(SVC(), {"C": CS}, refit=3).fit(X, y)


def test_a_failure_of_ones_own_is_told_and_costs_no_result(monkeypatch):
    def walks(*_):
        raise IndexError("no such row")

    X, y = make()
    search = GridSearchCV(SVC(), {"C": CS}, cv=3)
    wanted = search.fit(X, y).cv_results_["mean_test_score"]
    monkeypatch.setattr(folds.Folds, "walks", walks)
    with pytest.warns(RuntimeWarning, match="IndexError: no such row"):
        search.fit(X, y)
    assert search.shared_ is False
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], wanted)


def test_ctrl_c_ends_the_search():
    X, y = make()

    def scorer(model, X, y):
        import _thread

        _thread.interrupt_main()
        return 0.0

    for model in (SVC(), make_pipeline(StandardScaler(), SVC())):
        grid = {f"{'svc__' if model.__class__ is Pipeline else ''}C": CS}
        with pytest.raises(KeyboardInterrupt):
            GridSearchCV(model, grid, scoring=scorer).fit(X, y)


def test_it_is_an_estimator_of_scikit_learn():
    search = GridSearchCV(SVC(), {"C": CS}, cv=2)
    again = clone(search)
    assert again.get_params(deep=False).keys() == search.get_params(deep=False).keys()
    assert isinstance(search, sklearn.model_selection.GridSearchCV)
    scorer = make_scorer(lambda y, p: np.mean(y == p))
    assert both(SVC(), {"C": CS}, *make(), scoring=scorer, return_train_score=True)
    assert (
        not GridSearchCV(OneClassSVM(), {"nu": [0.1]}, scoring=lambda m, X: 0.0)
        .fit(make()[0])
        .shared_
    )


def test_many_small_pairs_are_one_call_for_each_fold(monkeypatch):
    X, y = load_digits(return_X_y=True)
    X, y = X[:200] / 16.0, y[:200]
    monkeypatch.setattr(folds.Folds, "_together", None)
    found = GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert found.shared_
    alone = sklearn.model_selection.GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2).fit(
        X, y
    )
    name = "mean_test_score"
    np.testing.assert_allclose(found.cv_results_[name], alone.cv_results_[name])
