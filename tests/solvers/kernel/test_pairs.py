"""Small problems of all pairs of classes, solved in one call into the core."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from dualgap import SVC, core
from dualgap.data.rows import Points
from dualgap.kernel import (
    RBF,
    Gram,
    KernelAuto,
    KernelProblem,
    Laplacian,
    Linear,
    Polynomial,
)
from dualgap.kernels.gram import row_source
from dualgap.problems.kernel import KernelBatch
from dualgap.problems.reductions import OneVsOne
from dualgap.solvers.kernel.auto import solve_pairs

from ...trust.verifier import SVM, Exact, points_of
from ...twins import whole
from ..data import job
from .data import make

KERNELS = [RBF(0.4), Laplacian(0.3), Linear(), Polynomial(3, 0.3, 1.0)]
SIZES = [13, 30, 1, 8]


def classes(seed, sizes=SIZES, d=3, kernel=KERNELS[0], change=None):
    """Problems of the pairs of some classes, whose rows are sorted by class."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(y), d)) + 0.7 * rng.normal(size=(len(sizes), d))[y]
    weight = rng.uniform(0.1, 3.0, len(y))
    return pairs(X if change is None else change(X), y, kernel, weight)


def pairs(X, y, kernel, weight=None, C=1.0, cache_size=200):
    classes = np.unique(y)
    return KernelBatch(
        Points.of(X),
        kernel.resolve(X),
        classes,
        np.searchsorted(classes, y),
        np.ones(len(y)) if weight is None else weight,
        C,
        OneVsOne(len(classes), libsvm=True),
        cache_size=cache_size,
        room=lambda rows: 1,
        loss="hinge",
        fit_intercept=True,
        penalize_intercept=False,
    )


def solved(batch, **limits):
    return solve_pairs(KernelAuto(), batch, job(**limits))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("sizes", [SIZES, [20, 17]])
def test_the_optimum_is_that_of_the_reference(kernel, sizes):
    batch = classes(1, sizes, kernel=kernel)
    K = kernel.block(batch.points.X, slice(None), dtype=np.float64)
    found = solved(batch)
    for p in range(len(batch)):
        rows = batch.place(p)
        own = K[np.ix_(rows, rows)]
        # Rounding decides between equal pairs, so only the results are compared.
        c, primal, dual, _ = whole.solve(own, batch.signs(p), batch.weights_of(p), 30)[
            -1
        ]
        assert primal - dual <= 1e-9 * dual
        last = found.epochs[found.ends[p] - 1, :2]
        np.testing.assert_allclose(last, (primal, dual), rtol=1e-9)
        scores = found.decisions[p] - found.bias[p]
        np.testing.assert_allclose(scores, own @ c, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("sizes", [SIZES, [20, 17]])
def test_bounds_hold_and_are_as_tight_as_those_of_the_problem(kernel, sizes):
    check_bounds(classes(2, sizes, kernel=kernel))


@pytest.mark.parametrize("scales", [[1, 1, 1e5], [1e5, 1e-3, 1]], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_hold_where_values_come_from_differences(scales, dtype):
    def two_equal_rows_but_for_one_column(X):
        X[[2, 20]] = 3.0
        X[[2, 20], 1] += 0.5, -0.5
        return (X * scales).astype(dtype)

    batch = classes(3, change=two_equal_rows_but_for_one_column)
    assert not row_source(Gram(batch.points, RBF(0.4))).by_products
    check_bounds(batch)


def check_pair(found, p, kernel, X, y, cost):
    """Check the bounds of a pair in exact arithmetic; return its exact scores."""
    posed = SVM(points_of(kernel, X), "hinge", y, cost, bias="free")
    c = Exact.of(found.alpha[p] * y)
    assert posed.in_box(c)
    model = posed.points.of_duals(c)
    assert found.bounds[p].dual <= posed.dual(c)
    assert posed.primal(model, found.bias[p]) <= found.bounds[p].primal
    return np.array([float(v) for v in posed.points.model(model)[1].fractions()])


def check_bounds(batch):
    """Compare the bounds of all pairs with P and D in exact arithmetic."""
    kernel, X = batch.kernel, batch.points.X
    found = solved(batch)
    for p in range(len(batch)):
        rows, y, cost = batch.place(p), batch.signs(p), batch.weights_of(p)
        alpha, near = found.alpha[p], found.decisions[p] - found.bias[p]
        exact = check_pair(found, p, kernel, X[rows], y, cost)
        size = max(1.0, float(np.abs(exact).max()))
        assert (np.abs(near - exact) <= 1e-12 * size).all()
        problem = KernelProblem(
            X[rows], y, 1.0, kernel=kernel, loss="hinge", sample_weight=cost,
            penalize_intercept=False,
        )  # fmt: skip
        own = problem.certify(alpha)
        assert found.bounds[p].primal == pytest.approx(own.primal, rel=1e-12)
        assert found.bounds[p].dual == pytest.approx(own.dual, rel=1e-12)
        assert found.bounds[p].rounding <= 2 * own.rounding


HARD = [
    (load_iris, Polynomial(3), 100.0),
    (load_wine, Linear(), 0.1),
    (load_wine, Linear(), 100.0),
    (load_breast_cancer, Linear(), 1.0),
]


@pytest.mark.cases(None)
@pytest.mark.parametrize(("load", "kernel", "C"), HARD)
def test_badly_conditioned_pairs_are_proved_in_the_one_call(load, kernel, C):
    # LIBSVM makes 38,000 to 1,700,000 pair steps here; a few Newton steps do the same.
    X, y = load(return_X_y=True)
    batch = pairs(X, y, kernel, C=C)
    found = solved(batch)
    for p in range(len(batch)):
        assert found.bounds[p].meets(1e-3, 0.0)
        rows, signs = batch.place(p), batch.signs(p)
        cost = np.full(len(rows), C)
        check_pair(found, p, batch.kernel, batch.points.X[rows], signs, cost)
        alpha = found.alpha[p]
        assert abs(math.fsum(alpha * signs)) <= 1e-15 * alpha.sum()


@pytest.mark.parametrize("C", [1000.0, 1023.9, 3.0])
def test_newton_steps_of_many_rows_leave_the_sum_at_0(C):
    rng = np.random.default_rng(0)
    for _ in range(30):
        X = rng.integers(-1, 2, size=(40, 2)) * [1.0, 0.5]
        found = solved(pairs(X, np.arange(40) >= 25, Linear(), C=C))
        assert math.fsum(found.table[0]) == 0.0


ODD = {
    "duplicates": lambda X, y: (np.repeat(X[::10], 10, axis=0), y),
    "one row per class": lambda X, y: (X[[0, 60, 120]], y[[0, 60, 120]]),
    "all rows equal": lambda X, y: (np.ones_like(X), y),
    "a column of 1e8": lambda X, y: (X * [1.0, 1e8, 1.0, 1e-8], y),
    "tiny": lambda X, y: (1e-30 * X, y),
    "far from 0": lambda X, y: (X + 1e6, y),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:SVC. rounding decides")
@pytest.mark.parametrize("name", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e8])
@pytest.mark.parametrize("odd", ODD)
def test_odd_data_are_proved_or_the_fit_says_that_they_are_not(odd, C, name):
    X, y = ODD[odd](*load_iris(return_X_y=True))
    hard = C == 1e8 or odd in ("a column of 1e8", "far from 0")
    options = {"gamma": 1e-3} if odd == "far from 0" and name != "linear" else {}
    model = SVC(kernel=name, C=C, max_iter=200, **options)
    model.fit(X, y)
    assert hard or model.certificate_.certified
    for part in model.certificate_:
        assert part.dual <= part.primal
        assert part.certified == (part.relative_gap <= 1e-3)


def test_what_is_not_small_goes_to_the_loop():
    X, y = load_iris(return_X_y=True)
    assert solved(pairs(X, y, RBF(0.5))) is not None
    assert solved(pairs(X, y, RBF(0.5), cache_size=0.2)) is None
    many_columns = sparse.random(150, 5000, 1e-3, "csr")
    assert solved(pairs(many_columns, y, RBF(1.0))) is None


@pytest.mark.parametrize(("sizes", "together"), [([250] * 9, True), ([251] * 9, False)])
def test_many_rows_of_small_classes_are_solved_together(sizes, together):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(sizes)), sizes)
    batch = pairs(rng.normal(size=(len(y), 2)) + y[:, None], y, RBF(0.5))
    found = solved(batch)
    assert (found is not None) == together
    if together:
        assert len(found.bounds) == 36
        assert all(bounds.meets(1e-3, 0.0) for bounds in found.bounds)


def test_each_of_many_pairs_may_do_the_work_that_a_pair_needs():
    y = np.repeat(np.arange(150), 3)  # 11,175 pairs
    X = np.random.default_rng(0).normal(size=(len(y), 3))
    found = solved(pairs(X, y, RBF(0.5)))
    assert all(bounds.meets(1e-9, 0.0) for bounds in found.bounds)


def test_a_certificate_makes_its_parts_when_they_are_needed():
    X, y = load_iris(return_X_y=True)
    certificate = SVC().fit(X, y).certificate_
    copy = pickle.loads(pickle.dumps(certificate))
    assert len(certificate) == len(copy) == 3
    assert certificate == copy
    assert hash(certificate) == hash(copy)
    assert [part.name for part in copy] == [
        "0 against 1", "0 against 2", "1 against 2"
    ]  # fmt: skip
    assert certificate.primal >= sum(part.primal for part in copy)
    assert certificate.dual <= sum(part.dual for part in copy)
    assert certificate.epochs == sum(part.epochs for part in copy)


@pytest.mark.parametrize("n", [1, 2, 40])
def test_the_bias_of_the_hinge_has_least_loss(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        scores, cost = rng.normal(size=n), rng.choice([0.0, 0.5, 2.0], n)
        y = rng.choice([-1, 1], n).astype(np.int8)
        b = core.hinge_bias(scores, y, cost)

        def loss(b, y=y, scores=scores, cost=cost):
            return cost @ np.maximum(0.0, 1.0 - y * (scores + b))

        least = min(loss(at) for at in [*(y - scores), 0.0])
        assert math.isfinite(b)
        assert loss(b) <= least + 1e-12


def test_sums_of_a_certificate_are_those_of_numpy():
    X, y = make(50, 3, 4)
    rng = np.random.default_rng(4)
    for loss in ("hinge", "squared_hinge", "smoothed_hinge"):
        problem = KernelProblem(X, y, 2.0, kernel=RBF(0.3), loss=loss)
        alpha = rng.choice([0.0, 0.7, 1.3], 50)
        scores, error = rng.normal(size=50), rng.uniform(0, 0.1, 50)
        scalars = core.KernelScalars(0.2, 0.3, 1.1, 0.05, 1e-3, 1e-4)
        sums = core.kernel_sums(
            problem.y, problem.cost, problem.core_loss, alpha, scores, error, scalars
        )
        error = error + 1.1e-3 * alpha.sum()
        margins = 1.1 * (y * (scores + 0.3))
        off = 1.01 * 1.1 * error
        slope = problem.loss.derivative(margins - off)
        terms = alpha * y * (scores + 0.2)
        expected = {
            "alpha": alpha.sum(),
            "reach": alpha.sum(),
            "bent": (problem.delta * alpha**2).sum(),
            "loss": problem.cost @ problem.loss.value(margins),
            "loss_error": problem.cost @ (slope * off),
            "norm": terms.sum(),
            "norm_error": alpha @ error + 0.05 * (alpha**2).sum(),
            "size": np.abs(terms).sum(),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(getattr(sums, name), value, rtol=1e-12)


@pytest.mark.parametrize("sizes", [SIZES, [20, 17]])
def test_small_pairs_start_cold_where_C_rises_far(sizes):
    """A single problem starts from the last solution however far that is."""
    batch, cold = classes(1, sizes), {}
    found = solved(batch)
    for C in (0.1, 1.0, 2.0, 2.1, 100.0):
        now = batch.at(C)
        starts = [
            now.begin(k, now.problem(k), 1.0, alpha)
            for k, alpha in enumerate(found.alpha)
        ]
        cold[C] = {start is None for start in starts}
    several = len(sizes) > 2
    assert cold == {
        0.1: {False},
        1.0: {False},
        2.0: {False},
        2.1: {several},
        100.0: {several},
    }
