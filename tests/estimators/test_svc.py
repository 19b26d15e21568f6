"""SVC: certificates from its public attributes, scikit-learn's layout, inputs."""

from __future__ import annotations

import math
import warnings
from itertools import combinations

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    make_classification,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

from dualgap import SVC, core, load_model, save_model
from dualgap.certificate import Status
from dualgap.data.rows import accessor_of
from dualgap.kernel import (
    KERNEL_SOLVERS,
    RBF,
    Linear,
    Polynomial,
    Sigmoid,
)
from dualgap.kernels import predict
from dualgap.solvers.kernel import block

from ..laws.test_epochs import check_certificate
from ..memory import run
from .test_linear_svc import certificates, make


def quiet(model, X, y, sample_weight=None):
    """Fit, certified or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight)


def matrix(model, A, B):
    """The kernel of the fitted model in float64, by scikit-learn."""
    kernel = model._fitted_kernel
    names = {"degree", "gamma", "coef0"} & set(vars(kernel))
    A, B = (np.asarray(M.toarray() if sparse.issparse(M) else M, float) for M in (A, B))
    return pairwise_kernels(
        A, B, kernel.name, **{name: getattr(kernel, name) for name in names}
    )


# Certificates


# The optimum


# scikit-learn's SVC: optimum, layout, votes, shapes


def test_the_bias_without_free_support_vectors_is_the_middle():
    # All six at their bound, the last one beyond its margin: any b in an interval.
    X = np.array([[0.0], [0.5], [1.0], [0.2], [0.7], [1.2]])
    y = np.array([0, 0, 0, 1, 1, 1])
    for C in (0.1, 0.3, 1e-3):
        ours = SVC(C=C, gamma=1.0).fit(X, y)
        theirs = sklearn.svm.SVC(C=C, gamma=1.0, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(np.abs(ours.dual_coef_), C, rtol=1e-12)
        assert ours.intercept_[0] == pytest.approx(theirs.intercept_[0], abs=1e-9)


# Kernels


@pytest.mark.cases(None)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    "kernel", [{"kernel": "sigmoid"}, {"kernel": "poly", "coef0": -1.0}]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_an_indefinite_kernel_trains_without_a_proof(kernel, layout, classes, tmp_path):
    """The model is scikit-learn's, and nothing is claimed about it."""
    X, y = make_classification(
        90, 4, n_informative=4, n_redundant=0, n_classes=classes, random_state=0
    )
    weight = np.random.default_rng(0).integers(0, 3, 90).astype(float)
    X, model = layout(X), SVC(C=3.0, **kernel)
    with pytest.warns(ConvergenceWarning, match="Nothing is proved"):
        model.fit(X, y, sample_weight=weight)
    for part in (model.certificate_, *model.certificate_.parts):
        assert part.status is Status.UNCERTIFIED
        assert not part.certified
        assert (part.primal, part.dual) == (math.inf, -math.inf)
    gamma = model._fitted_kernel.gamma  # scikit-learn's "scale" ignores the weights
    theirs = sklearn.svm.SVC(C=3.0, gamma=gamma, **kernel)
    theirs.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        model.decision_function(X), theirs.decision_function(X), atol=1e-9
    )
    np.testing.assert_array_equal(model.n_support_, theirs.n_support_)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.certificate_ == model.certificate_


def test_a_search_over_the_kernels_scores_all_of_them():
    X, y = load_iris(return_X_y=True)
    grid = {"kernel": ["linear", "poly", "rbf", "sigmoid"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = GridSearchCV(SVC(), grid, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# Invariances


def assert_same_bits(a, b):
    for name in ("support_", "dual_coef_", "intercept_", "n_support_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


# The working sets of "auto" and "block" are bounded by the cache.
@pytest.mark.parametrize(
    "solver", sorted({*KERNEL_SOLVERS, "nystroem"} - {"auto", "block"})
)
def test_a_cache_of_few_rows_shared_among_threads_changes_no_bit(solver):
    X, y = make(n=200, classes=4)
    model = SVC(loss="squared_hinge", solver=solver, max_iter=3, random_state=3)
    small = clone(model).set_params(n_jobs=2, cache_size=0.03)
    assert_same_bits(quiet(model, X, y), quiet(small, X, y))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_small_problems_are_solved_to_rounding(loss):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n, d, classes = [(15, 10, 3), (40, 2, 2), (90, 5, 4), (300, 4, 2)][seed % 4]
        X, y = make(n=n, d=d, classes=classes, seed=seed)
        k = rng.integers(0, 4, n)
        k[[np.flatnonzero(y == c)[0] for c in range(classes)]] = 1
        X_many, y_many = np.repeat(X, k, axis=0), np.repeat(y, k)
        order = rng.permutation(len(y_many))
        model = SVC(C=10.0 ** rng.integers(-2, 2), gamma=1 / d, loss=loss)
        weighted = clone(model).fit(X, y, k)
        repeated = clone(model).fit(X_many[order], y_many[order])
        both = certificates(weighted) + certificates(repeated)
        # |w.x - w*.x| <= ||w - w*|| as k(x, x) = 1, and ||w - w*||^2 <= 2 (P - P*). The
        # bias is as far off at most: a penalised one is part of w, a free one makes
        # the score of a free support vector 1.
        apart = 4.0 * math.sqrt(2.0 * max(a.gap for a in both))
        np.testing.assert_allclose(
            weighted.decision_function(X),
            repeated.decision_function(X),
            rtol=0.0,
            atol=apart,
        )
        for a in both:
            tight = 1e-12 if loss == "hinge" else 1e-14
            # A fit ends when its running estimate of the gap is so small, or little but
            # room for rounding. The estimate rounds about as much as the proof.
            assert a.gap <= 4.0 * (a.rounding + tight * a.dual)
        history = repeated.history_
        last = history if classes == 2 else history[-1]
        assert set(last["solver"]) == {"block"}


def test_blas_keeps_to_the_threads_of_the_fit(monkeypatch):
    counts = []

    def interior_point(*arguments):
        blas = [m for m in threadpool_info() if m["user_api"] == "blas"]
        counts.extend(module["num_threads"] for module in blas)
        return original(*arguments)

    original = block.interior_point
    monkeypatch.setattr(block, "interior_point", interior_point)
    X, y = load_breast_cancer(return_X_y=True)
    with threadpool_limits(2, "blas"):
        model = SVC(kernel="linear", solver="block").fit(X, y)
    assert model.certificate_.certified
    assert set(counts) == {1}


# Inputs


def test_odd_problems():
    X, y = np.array([[-1.0], [3.0], [5.0]]), np.array(["u", "v", "w"])
    model = SVC(tol=1e-6).fit(X, y)
    check_certificate(model, X, y)
    assert model.predict(X).tolist() == ["u", "v", "w"]
    # Equal points of both classes: f = 0 is best, each alpha is 2 C.
    for loss in ("hinge", "squared_hinge"):
        with pytest.warns(UserWarning, match="the constant 0 is optimal"):
            same = SVC(C=1.5, gamma=1.0, loss=loss).fit(np.ones((4, 2)), [0, 1, 0, 1])
        assert same.certificate_.primal == pytest.approx(6.0, rel=1e-9)
        assert same.certificate_.dual == pytest.approx(6.0, rel=1e-9)
        assert abs(same.decision_function(np.ones((1, 2)))[0]) < 1e-7
    with_zeros, y = make(classes=3)
    with_zeros[::7] = 0.0
    check_certificate(SVC().fit(with_zeros, y), with_zeros, y)


# Prediction


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_tiles_of_a_kernel_in_python_add_up(layout):
    X, y = make(n=150, classes=3)

    def kernel(A, B):
        K = A @ B.T
        return (K.toarray() if sparse.issparse(K) else K) + 1.0

    model = SVC(random_state=0, kernel=kernel).fit(layout(X), y)
    model.set_params(decision_function_shape="ovo")
    expected = model.decision_function(layout(X))
    tiles = predict.KernelSumSettings(tile_bytes=1, tile_rows=7, tile_columns=11)
    for n_jobs in (1, 3):
        found = predict.pair_values(
            model._fitted_kernel,
            layout(X),
            model.support_vectors_,
            model.dual_coef_,
            model.n_support_,
            model.intercept_,
            n_jobs=n_jobs,
            settings=tiles,
        )
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


#: Bytes that predictions of 1,000 and of 10,000 rows hold, their results aside.
PREDICTION = """
import tracemalloc
import numpy as np
from dualgap.kernel import RBF
from dualgap.kernels import predict
rng = np.random.default_rng(0)
m, d = 4000, 5
for queries in (1_000, 10_000):
    X, vectors = rng.normal(size=(queries, d)), rng.normal(size=(m, d))
    ones, halves = np.ones((1, m)), np.array([m // 2, m // 2])
    for measured in (False, True):  # the first call imports what it needs
        tracemalloc.start()
        predict.pair_values(RBF(gamma=1.0), X, vectors, ones, halves, np.zeros(1))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # The result, and its sums per class.
    print(peak - 3 * 8 * queries)
"""


def test_memory_of_prediction_is_bounded():
    small, large = map(float, run(PREDICTION).split())
    # The whole matrix would be 320 MB.
    assert max(small, large) < 16e6
    assert large < 1.1 * small + 8 * 10_000


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", [RBF(0.3), Linear(), Polynomial(2, 0.5, 1.0)])
def test_decisions_of_many_classes_are_those_of_the_formula(kernel, layout):
    rng = np.random.default_rng(0)
    counts = np.array([2, 0, 5, 1, 3])  # a class may have no support vectors
    X, vectors = rng.normal(size=(70, 4)), rng.normal(size=(counts.sum(), 4))
    coef, intercept = rng.normal(size=(4, counts.sum())), rng.normal(size=10)
    K = kernel.block(X, slice(None), vectors)
    of = np.split(np.arange(counts.sum()), np.cumsum(counts)[:-1])
    expected = [
        K[:, of[i]] @ coef[j - 1, of[i]] + K[:, of[j]] @ coef[i, of[j]] + b
        for (i, j), b in zip(combinations(range(5), 2), intercept, strict=True)
    ]
    model = layout(X), layout(vectors), coef, counts, intercept
    whole = predict.pair_values(kernel, *model)
    np.testing.assert_allclose(whole, np.transpose(expected), rtol=0, atol=1e-7)
    # Part by part: nothing changes.
    parts = predict.KernelSumSettings(sums=1, least_rows=9)
    found = predict.pair_values(kernel, *model, settings=parts)
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-12)
    bad = X.copy()
    bad[40] = np.nan
    with pytest.raises(ValueError, match="row 40"):
        predict.pair_values(kernel, layout(bad), *model[1:], settings=parts)


def test_weights_of_classes_are_sums_of_their_rows():
    rows, out = accessor_of(np.ones((3, 2))), np.zeros((2, 2))
    core.class_weights(rows, np.ones((1, 3)), np.array([1, 3]), out)
    np.testing.assert_array_equal(out, [[1, 1], [2, 2]])


def test_no_support_vectors_leave_the_intercept():
    for m in (0, 3):  # none at all, none of the second class
        values = predict.pair_values(
            Linear(),
            np.ones((5, 2)),
            np.ones((m, 2)),
            np.ones((1, m)),
            np.array([m, 0]),
            np.array([0.5]),
        )
        np.testing.assert_array_equal(values, np.full((5, 1), 0.5 + 2 * m))


# Stopping


def test_pairs_that_were_never_reached_have_the_zero_model():
    X, y = make(n=300, classes=3)
    weight = np.random.default_rng(0).uniform(0.5, 1.0, len(y))
    model = quiet(SVC(time_limit=1e-9, C=2.0), X, y, weight)
    assert [c.status for c in model.certificate_] == [Status.TIME_LIMIT] * 3
    assert [len(h) for h in model.history_] == [0, 0, 0]
    check_certificate(model, X, y, weight)
    assert all(c.primal > 0.0 and c.dual == 0.0 for c in model.certificate_)
    assert len(model.support_) == 0
    assert model.support_vectors_.shape == (0, 4)
    assert model.fit_status_ == 1
    assert model.predict(X).tolist() == [2] * len(y)  # no pair is positive


# scikit-learn's tools


def test_a_sigmoid_that_is_positive_semidefinite_is_taken():
    # One feature of one size: tanh(gamma x z) has rank one here.
    X = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    model = SVC(kernel=Sigmoid(gamma=0.5), tol=1e-6).fit(X, [0, 1, 0, 1])
    check_certificate(model, X, np.array([0, 1, 0, 1]))
