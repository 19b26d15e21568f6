"""LogisticRegression: optima, probabilities, parameters, files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.model_selection
from scipy import sparse
from sklearn.datasets import load_digits, load_iris

import dualgap
from dualgap import LogisticRegression
from dualgap.certificate import Status
from dualgap.model_selection import GridSearchCV
from dualgap.solvers import LogisticNewton


def data(classes):
    X, y = load_iris(return_X_y=True)
    kept = y < classes
    return X[kept] if classes > 2 else X[kept][:, :2], np.array(list("abc"))[y[kept]]


def scikit_learn(**options):
    return sklearn.linear_model.LogisticRegression(
        solver="newton-cg", tol=1e-9, max_iter=10_000, **options
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 3.0, "b": 0.5}])
def test_the_model_is_the_one_of_scikit_learn(classes, fit_intercept, class_weight):
    X, y = data(classes)
    if isinstance(class_weight, dict) and classes == 3:
        class_weight = class_weight | {"c": 1.0}
    same = {"C": 2.0, "fit_intercept": fit_intercept, "class_weight": class_weight}
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    ours = LogisticRegression(tol=1e-10, **same).fit(X, y, weight)
    theirs = scikit_learn(**same).fit(X, y, weight)
    assert ours.certificate_.certified
    assert list(ours.classes_) == list(theirs.classes_)
    assert ours.coef_.shape == theirs.coef_.shape
    for name in ("decision_function", "predict_proba", "predict_log_proba"):
        got, expected = getattr(ours, name)(X), getattr(theirs, name)(X)
        np.testing.assert_allclose(got, expected, atol=2e-4)
    np.testing.assert_allclose(ours.predict_proba(X).sum(axis=1), 1.0, rtol=1e-14)
    assert ours.score(X, y) == theirs.score(X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_all_layouts_give_the_same_model(classes):
    X, y = data(classes)
    X = X.astype(np.float32)
    dense = LogisticRegression(tol=1e-9).fit(X, y)
    for rows in (sparse.csr_matrix(X), sparse.csc_matrix(X), np.asfortranarray(X)):
        other = LogisticRegression(tol=1e-9).fit(rows, y)
        np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-6)
        np.testing.assert_array_equal(other.predict(rows), dense.predict(X))


def test_wide_text_has_one_weight_per_column():
    rng = np.random.default_rng(0)
    X = sparse.random(60, 100_000, 1e-4, "csr", random_state=0)
    y = rng.integers(0, 3, 60)
    model = LogisticRegression(C=10.0).fit(X, y)
    assert model.certificate_.certified
    assert model.coef_.shape == (3, 100_000)
    assert np.count_nonzero(model.coef_.any(axis=0)) <= X.nnz


def test_an_integer_weight_repeats_a_row():
    X, y = data(3)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    one = LogisticRegression(tol=1e-11).fit(X, y, weight)
    two = LogisticRegression(tol=1e-11).fit(
        np.repeat(X, weight, 0), np.repeat(y, weight)
    )
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=1e-9)


def test_a_warm_start_continues():
    X, y = data(3)
    model = LogisticRegression(warm_start=True).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ == 0
    model.set_params(C=1.1, tol=1e-6).fit(X, y)
    assert model.n_iter_ <= cold
    with pytest.raises(ValueError, match="set warm_start=False"):
        model.fit(X[:, :2], y)


def test_what_cannot_be_fitted_says_why():
    X, y = data(3)
    weight = np.where(y == "b", 0.0, 1.0)
    with pytest.raises(ValueError, match="class b has no row with a positive weight"):
        LogisticRegression().fit(X, y, weight)
    model = LogisticRegression(fit_intercept=False).fit(X, y, weight)
    assert model.certificate_.certified
    with pytest.raises(ValueError, match="only one class"):
        LogisticRegression().fit(X[:50], y[:50])
    for name, value in {"penalty": "l1", "l1_ratio": 0.5}.items():
        with pytest.raises(TypeError, match="there is no L1 penalty"):
            LogisticRegression(**{name: value})
    with pytest.raises(ValueError, match="'solver' parameter"):
        LogisticRegression(solver="lbfgs").fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        LogisticRegression().fit(np.where(X > 5, np.nan, X), y)


def test_a_limit_keeps_the_best_model_and_warns():
    X, y = load_digits(return_X_y=True)
    model = LogisticRegression(C=1e4, max_iter=2)
    with pytest.warns(
        sklearn.exceptions.ConvergenceWarning, match="LogisticRegression"
    ):
        model.fit(X, y)
    assert model.certificate_.status is Status.EPOCH_LIMIT
    assert model.n_iter_ == 2
    assert model.score(X, y) > 0.9


def test_pickles_and_files_keep_the_model(tmp_path):
    for classes in (2, 3):
        X, y = data(classes)
        model = LogisticRegression(solver=LogisticNewton()).fit(X, y)
        path = tmp_path / f"{classes}.safetensors"
        with pytest.raises(ValueError, match="solver"):
            dualgap.save_model(model, path)
        model.set_params(solver="newton")
        dualgap.save_model(model, path)
        for other in (dualgap.load_model(path), pickle.loads(pickle.dumps(model))):
            assert (other.predict_proba(X) == model.predict_proba(X)).all()
            assert other.certificate_ == model.certificate_
            assert other.get_params() == model.get_params()


@pytest.mark.filterwarnings("error")
def test_a_search_is_the_loop_over_its_fits():
    """The loop of scikit-learn takes over without a warning, and adds no step."""
    X, y = data(3)
    grid = {"C": [0.1, 10.0]}
    ours = GridSearchCV(LogisticRegression(), grid, cv=3).fit(X, y)
    theirs = sklearn.model_selection.GridSearchCV(LogisticRegression(), grid, cv=3)
    theirs.fit(X, y)
    for key in ("mean_test_score", "split2_test_score", "rank_test_score"):
        assert np.array_equal(ours.cv_results_[key], theirs.cv_results_[key])
    assert ours.best_params_ == theirs.best_params_
    best, again = ours.best_estimator_, LogisticRegression(**ours.best_params_)
    assert best.n_iter_ == again.fit(X, y).n_iter_
    assert best.certificate_.certified
