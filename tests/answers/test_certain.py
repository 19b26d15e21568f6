"""Test bounds of estimators on the exact optimum against fits to rounding level."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from dualgap import SVC, SVR, LinearSVC, LinearSVR, load_model, save_model
from dualgap.answers import Decided
from dualgap.answers.bias import Side
from dualgap.certificate import Bounds, Certificate
from dualgap.data import convert, model_file
from dualgap.estimators.fitted import other_objective
from dualgap.estimators.regions import balls_of
from dualgap.kernel import Polynomial, Sigmoid
from dualgap.losses import Hinge
from dualgap.models import influence, what_if

# Classes between others are constants with the hinge.
pytestmark = pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")

CLASSIFIERS = [
    (LinearSVC, {"loss": "hinge"}),
    (LinearSVC, {"loss": "hinge", "fit_intercept": False, "intercept_scaling": 1.0}),
    (LinearSVC, {"intercept_scaling": 3.0}),
    (LinearSVC, {"loss": "smoothed_hinge", "class_weight": "balanced"}),
    (LinearSVC, {"loss": "hinge", "penalize_intercept": False}),
    (LinearSVC, {"penalize_intercept": False}),
    (LinearSVC, {"loss": "hinge", "multi_class": "ovo"}),
    (LinearSVC, {"multi_class": "ovo", "penalize_intercept": False}),
    (LinearSVC, {"loss": "hinge", "multi_class": "crammer_singer"}),
    (SVC, {}),
    (SVC, {"kernel": "linear", "class_weight": "balanced"}),
    (SVC, {"kernel": "poly", "coef0": 1.0, "decision_function_shape": "ovo"}),
    (SVC, {"loss": "squared_hinge", "kernel": "laplacian"}),
]
REGRESSORS = [
    (LinearSVR, {"epsilon": 0.1}),
    (LinearSVR, {"loss": "squared_epsilon_insensitive", "fit_intercept": False}),
    (SVR, {"epsilon": 0.2}),
    (SVR, {"kernel": "linear"}),
]


@pytest.fixture(autouse=True)
def _one_thread():
    """Let BLAS start no threads for products of a few numbers."""
    with threadpool_limits(1, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def data(classes=2, n=60, seed=0):
    """Rows with duplicates and a zero row, labels, targets, and new rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 0.5
    X[0], X[1] = 0.0, X[2]
    score = X[:, 0] + 0.5 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    new = np.vstack([rng.normal(size=(30, 4)) + 0.5, np.zeros(4)])
    return X, y, score, new


def loose(kind, options, X, y, weight=None):
    """A model that is far from the optimum, and one that is at it."""
    short = {"max_iter": 2, "tol": 1e-14}
    exact = kind(tol=1e-12, random_state=0, **options).fit(X, y, weight)
    if kind is LinearSVC and options.get("multi_class") != "crammer_singer":
        short["solver"] = "dcd"
    if kind in (SVC, SVR):  # these solve small problems in one working set
        short["solver"] = "block"
    if kind is SVC and options.get("loss") == "squared_hinge":
        short["solver"], short["max_iter"] = "kernel-pegasos", 30
    return kind(random_state=0, **options, **short).fit(X, y, weight), exact


def values(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def inside(lower, middle, upper):
    off = 1e-5 * (1.0 + np.abs(middle))  # the reference is not exact either
    return (lower - off <= middle).all() and (middle <= upper + off).all()


@pytest.mark.cases(None)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("kind", "options"), CLASSIFIERS)
def test_decisions_weights_and_labels_of_classifiers(kind, options, classes):
    X, y, _, new = data(classes)
    model, exact = loose(kind, options, X, y)
    free = options.get("penalize_intercept") is False
    free |= kind is SVC and "loss" not in options
    for rows in ((), (X, y)):
        if rows:
            assert model.bound_optimum(*rows) is model
        elif free:
            with pytest.raises(ValueError, match=r"bound_optimum\(X, y\)"):
                model.decision_bounds(new)
            continue
        lower, upper = model.decision_bounds(new)
        assert lower.shape == upper.shape == values(exact, new).shape
        assert inside(lower, values(exact, new), upper)
        certain = model.certified_labels(new)
        assert certain.shape == (len(new),)
        assert (model.predict(new)[certain] == exact.predict(new)[certain]).all()
        told = model.predict(new, undecided=-1)
        assert (told[certain] == model.predict(new)[certain]).all()
        assert (told[~certain] == -1).all()
    if kind is LinearSVC or options.get("kernel") == "linear":
        low, high = model.coef_bounds()
        assert low.shape == exact.coef_.shape
        assert inside(low, exact.coef_, high)
    # At the optimum nearly all is certain; classes between others have w = 0.
    exact.bound_optimum(X, y)
    assert exact.certified_labels(new).mean() > (0.9 if classes == 2 else 0.7)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("kind", "options"), [one for one in CLASSIFIERS if "multi_class" not in one[1]]
)
def test_support_vectors(kind, options, classes):
    X, y, _, _ = data(classes)
    weight = np.ones(len(y))
    weight[-2:] = 0.0
    model, exact = loose(kind, options, X, y, weight)
    for one in (model, exact):
        support, others = one.certified_support(X, y, weight)
        of_exact = np.isin(np.arange(len(y)), exact.support_)
        assert not (support & others).any()
        assert of_exact[support].all()
        assert not of_exact[others].any()
    assert others[-2:].all()
    assert (support | others).mean() > 0.3


def test_support_vectors_of_regression():
    X, _, t, _ = data()
    for kind in (LinearSVR, SVR):
        exact = kind(epsilon=0.3, tol=1e-12).fit(X, t)
        support, others = exact.certified_support(X, t)
        of_exact = np.isin(np.arange(len(t)), exact.support_)
        assert of_exact[support].all()
        assert not of_exact[others].any()
        assert (support | others).mean() > 0.5


def test_every_optimal_bias_is_inside():
    """Two rows, C too small for a free support vector: b may be anything in between."""
    X, y = np.array([[-1.0], [1.0]]), np.array([-1, 1])
    C = 0.1  # w = 0.2, and all b in [-0.8, 0.8] are optimal
    for model in (
        LinearSVC(C=C, loss="hinge", penalize_intercept=False),
        SVC(C=C, kernel="linear"),
    ):
        model.fit(X, y).bound_optimum(X, y)
        for x, middle in ((-3.0, -0.6), (0.0, 0.0), (2.0, 0.4)):
            lower, upper = model.decision_bounds([[x]])
            assert lower[0] <= middle - 0.8
            assert upper[0] >= middle + 0.8
            assert upper[0] - lower[0] < 2.0  # and not much more


def test_the_ellipsoid_is_far_narrower_than_the_ball():
    X, y, _, new = data(n=200)
    model = LinearSVC(loss="squared_hinge", tol=1e-3, solver="dcd", random_state=0)
    model.fit(X, y)
    wide = np.subtract(*model.decision_bounds(new)[::-1])
    narrow = np.subtract(*model.bound_optimum(X, y).decision_bounds(new)[::-1])
    assert (narrow < 0.1 * wide)[:-1].all()
    model.set_params(loss=Hinge()).fit(X, y)  # a new fit forgets the region
    assert "_optimum" not in vars(model) or model._region() is not model._optimum


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_forms_of_rows(form, dtype):
    X, y, _, new = data()
    X, new = X.astype(dtype), new.astype(dtype)
    for kind, options in ((LinearSVC, {"penalize_intercept": False}), (SVC, {})):
        model = kind(tol=1e-4, random_state=0, **options).fit(form(X), y)
        lower, upper = model.bound_optimum(form(X), y).decision_bounds(form(new))
        exact = kind(tol=1e-12, random_state=0, **options).fit(X, y)
        assert inside(lower, exact.decision_function(new), upper)
        for bad in (np.nan, np.inf):
            wrong = new.copy()
            wrong[3, 1] = bad
            with pytest.raises(ValueError, match=r"NaN|infinit"):
                model.decision_bounds(form(wrong))


@pytest.mark.cases(None)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear"])
def test_a_model_of_sparse_rows_answers_about_dense_ones(kernel):
    X, y, _, new = data()
    options = {"kernel": kernel, "gamma": 0.5, "tol": 1e-6, "random_state": 0}
    for loss in ("hinge", "squared_hinge"):
        model, other = (
            SVC(loss=loss, **options).fit(form(X), y).bound_optimum(form(X), y)
            for form in (np.asarray, sparse.csr_matrix)
        )
        near = np.array(model.decision_bounds(new))
        for form in (np.asarray, sparse.csr_matrix):
            found = np.array(other.decision_bounds(form(new)))
            np.testing.assert_allclose(found, near, rtol=1e-5, atol=1e-8)
    flips = influence(model, X, y, new)
    for rows, points in ((sparse.csr_matrix(X), new), (X, sparse.csr_matrix(new))):
        np.testing.assert_array_equal(influence(other, rows, y, points), flips)


def tanh(A, B):
    return np.tanh(np.asarray(A @ B.T))


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("sigmoid", "'sigmoid' has no bounds on decisions.*use 'rbf'"),
        (Sigmoid(gamma=1.0), "'sigmoid' has no bounds on decisions"),
        (Polynomial(1, gamma=1.0, coef0=-0.001), "'poly' has no bounds on decisions"),
        ("precomputed", "'precomputed' has no bounds on decisions"),
        (tanh, "the kernel matrix is indefinite"),
    ],
)
def test_kernels_that_new_rows_make_indefinite_have_no_bounds_there(kernel, message):
    """The rows are near 0, where the matrix of tanh is positive; the new ones not."""
    X, y, new = (
        np.diag([0.3, 0.2]),
        np.array([0, 1]),
        np.array([[9.0, 1.0], [0.1, -2.0]]),
    )
    if kernel == "precomputed":
        X, new = X @ X.T, new @ X.T
    options = {"kernel": kernel, "gamma": 1.0, "loss": "squared_hinge", "tol": 0.1}
    model = SVC(**options).fit(X, y)
    for ask in (
        lambda: model.decision_bounds(new),
        lambda: model.bound_optimum(X, y).decision_bounds(new),
        lambda: model.certified_labels(new),
        lambda: model.predict(new, undecided=-1),
        lambda: influence(model, X, y, new),
        lambda: what_if(model, X, y).decision_bounds(new),
        lambda: SVC(**options).fit(X, y, until=Decided(new)),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_a_store_of_rows(tmp_path):
    X, y, _, _ = data()
    model = LinearSVC(random_state=0).fit(X, y)
    store = convert([(sparse.csr_matrix(X), y)], tmp_path / "rows", shuffle=False)
    np.testing.assert_allclose(
        model.decision_bounds(store), model.decision_bounds(X), rtol=1e-12
    )
    with pytest.raises(ValueError, match="rows in memory"):
        model.bound_optimum(store, y)


@pytest.mark.cases(14)
@pytest.mark.parametrize(("kind", "options"), CLASSIFIERS + REGRESSORS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_pickles_and_files_keep_the_region(tmp_path, kind, options, form):
    X, y, t, new = data(3)
    target = t if kind in (LinearSVR, SVR) else y
    model = kind(random_state=0, **options).fit(form(X), target)
    model.bound_optimum(form(X), target)
    path = tmp_path / "one.model"
    save_model(model, path)
    loaded = load_model(path)
    for again in (pickle.loads(pickle.dumps(model)), loaded):
        for one, other in zip(
            model.decision_bounds(form(new)), again.decision_bounds(form(new)),
            strict=True,
        ):  # fmt: skip
            np.testing.assert_array_equal(one, other)
        if hasattr(model, "coef_"):
            np.testing.assert_array_equal(model.coef_bounds(), again.coef_bounds())
        if target is y:
            told = model.predict(form(new), undecided=-1)
            np.testing.assert_array_equal(told, again.predict(form(new), undecided=-1))
            certain = model.certified_labels(form(new))
            np.testing.assert_array_equal(certain, again.certified_labels(form(new)))
    before = path.read_bytes()
    save_model(loaded, path)
    assert path.read_bytes() == before
    # A model whose certificate has changed has no region any more.
    loaded.fit(form(X), target)
    loaded._optimum = model._optimum
    loaded.certificate_ = replace(model.certificate_, seconds=9.0)
    save_model(loaded, path)
    assert path.read_bytes() != before
    assert "_optimum" not in vars(load_model(path))


def with_region(kind=LinearSVC, **options):
    """A model with a region, its rows, and where its file is."""
    X, y, _, new = data()
    return kind(random_state=0, **options).fit(X, y).bound_optimum(X, y), new


def test_files_keep_infinite_bounds(tmp_path):
    model, new = with_region(penalize_intercept=False)
    region = model._optimum.regions[0]
    free = replace(region.free, interval=(-np.inf, np.inf), upper=Side.nothing())
    free = replace(free, **{n: getattr(free, n)[-len(free.lower.sigma) :]
                            for n in ("means", "errors")})  # fmt: skip
    model._optimum.regions[0] = replace(region, free=free)
    save_model(model, tmp_path / "m")
    lower, upper = load_model(tmp_path / "m").decision_bounds(new)
    assert np.isfinite(lower).all()
    assert np.isinf(upper).all()


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("options", "name", "change", "words"),
    [
        ({}, "0.numbers", lambda a: np.full_like(a, np.nan), "NaN"),
        ({}, "0.numbers", lambda a: -1.0 - a, "impossible"),
        ({}, "0.numbers", lambda a: a[1:], "shape"),
        ({}, "0.centre", lambda a: a[1:], "shape"),
        ({}, "0.centre", lambda a: a.astype(np.float32), "type"),
        ({}, "0.centre", lambda a: None, "tensors"),
        ({}, "1.centre", lambda a: np.zeros(4), "unexpected"),
        ({"loss": "squared_hinge"}, "0.ellipsoid.root", lambda a: a[:3], "shape"),
        ({"loss": "squared_hinge"}, "0.ellipsoid.numbers", lambda a: -a, "impossible"),
        (
            {"loss": "squared_hinge"},
            "0.ellipsoid.centre",
            lambda a: a[:4],
            "shape",
        ),
        ({"penalize_intercept": False}, "0.free.upper.sigma", np.negative, "imposs"),
        ({"penalize_intercept": False}, "0.free.errors", np.negative, "impossible"),
        ({"penalize_intercept": False}, "0.free.lower.mu", lambda a: None, "tensors"),
        ({"penalize_intercept": False}, "0.free.numbers", lambda a: a[::-1], "imposs"),
        ({"kind": SVC}, "dual_coef", lambda a: a[:, 1:], "shape"),
        ({"kind": SVC}, "0.rows", lambda a: a.astype(float), "type"),
        ({"kind": SVC}, "0.near.0.norms", lambda a: a[1:], "shape|impossible"),
        ({"kind": SVC}, "0.near.1.vectors", lambda a: a[1:], "shape|impossible"),
    ],
)
def test_odd_values_of_regions_are_refused(tmp_path, options, name, change, words):
    model, _ = with_region(**options)
    path = tmp_path / "m"
    save_model(model, path)
    record, tensors = model_file.read(str(path))
    name = f"optimum.{name}"
    changed = change(tensors.get(name))
    if changed is None:
        del tensors[name]
    else:
        tensors[name] = np.ascontiguousarray(changed)
    model_file.write(path, model_file.seal(record, tensors), tensors)
    with pytest.raises(ValueError, match=f"m is not a valid dualgap model.*({words})"):
        load_model(path)


def test_pipelines_with_regions_in_files(tmp_path):
    model, new = with_region()
    path = tmp_path / "m"
    scaled = make_pipeline(StandardScaler(), model).fit(*data()[:2])
    scaled[-1].bound_optimum(scaled[0].transform(data()[0]), data()[1])
    save_model(scaled, path)
    loaded = load_model(path)
    for one, other in zip(
        scaled[-1].decision_bounds(new), loaded[-1].decision_bounds(new), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_string_labels_may_be_undecided():
    X, y, _, new = data()
    names = np.array(["no", "yes"])[y]
    model = LinearSVC(tol=0.5, max_iter=1, solver="dcd").fit(X, names)
    told = model.predict(new, undecided="perhaps")
    assert told.dtype.kind == "U"
    assert set(told) <= {"no", "yes", "perhaps"}
    assert "perhaps" in told
    assert model.predict(new, undecided=0).dtype == object
    label = str(model.classes_[0])
    with pytest.raises(ValueError, match="is one of the classes; give a value"):
        model.predict(new, undecided=label)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (LinearSVC, {}),
        (LinearSVC, {"penalize_intercept": False}),
        (LinearSVC, {"multi_class": "ovo"}),
        (SVC, {"tol": 0.1}),
    ],
)
def test_a_fit_ends_once_labels_are_decided(kind, options):
    X, y, _, new = data(3, n=300)
    model = kind(random_state=0, **options).fit(X, y, until=Decided(new[:-1]))
    assert model.certified_labels(new[:-1]).all()
    assert model.certificate_.certified
    assert model.certificate_.parts[0].tol == model.tol


def test_a_fit_tells_how_many_labels_are_left():
    X, y, _, _ = data()
    new = np.vstack([X, np.zeros((1, 4))])  # a decision that is exactly 0
    model = LinearSVC(loss="hinge", fit_intercept=False)
    with pytest.warns(ConvergenceWarning, match="2 of 61 labels could still change"):
        model.fit(X, y, until=Decided(new))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, until=Decided(new, share=0.9))
    limited = LinearSVC(time_limit=1e-9, solver="dcd")
    with pytest.warns(ConvergenceWarning, match="could still change|time limit"):
        limited.fit(X, y, until=Decided(new))


@pytest.mark.parametrize(
    "model", [LinearSVC(), LinearSVC(penalize_intercept=False), SVC(), LinearSVR()]
)
@pytest.mark.cases(None)
def test_other_training_data_are_refused(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0, 1, 0)
    model.fit(X, y)
    model.bound_optimum(X, y)
    weight = rng.uniform(0.1, 2.0, 80)
    for data in ((X, 1 - y), (X, y, weight), (X, np.roll(y, 1))):
        with pytest.raises(ValueError, match="not the training data of the model"):
            model.bound_optimum(*data)


def stopped_fits():
    """Yield stopped kernel fits of rows with an outlier, where the best bias is off."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(8, 2))
        X[3, 1] = 10.0 ** (4 + seed % 5)
        y = rng.permutation([0, 1, 0, 1, 2, 0, 1, 2]) % (2 + seed % 2)
        options = {"C": 5.0, "coef0": 1.0, "gamma": 1.0, "max_iter": 1 + seed % 3}
        loss = ("hinge", "squared_hinge")[seed % 2]
        yield SVC(kernel="poly", degree=2, loss=loss, **options).fit(X, y), X, y
        target = np.round(5 * rng.normal(size=8), 1)
        options["kernel"] = ("poly", "rbf")[seed % 2]
        yield SVR(epsilon=0.1, degree=2, **options).fit(X, target), X, target


@pytest.mark.cases(None)
def test_stopped_models_are_checked_by_their_own_bias():
    moved = told = 0
    for model, X, y in stopped_fits():
        ball = balls_of(model, X, y)
        own = model.certificate_
        best = [part.ball.certificate for part in ball]
        moved += other_objective(own, Certificate.total(best)) is not None
        model.bound_optimum(X, y)
        model.certified_support(X, y)
        if isinstance(model, SVC):
            what_if(model, X, y, without=[0])
        if all(2.0 * part.rounding > 0.01 * part.primal for part in own.parts):
            continue  # rounding of the objectives hides a change of 1 %
        told += 1
        with pytest.raises(ValueError, match="not the training data") as error:
            model.bound_optimum(X, y, np.full(len(y), 1.01))
        here, before = re.findall(r"is (\S+) instead of (\S+);", str(error.value))[0]
        assert here != before
    assert told > 12
    assert moved > 0  # else the balls of these fits are about the models themselves


def test_a_fit_without_time_knows_its_training_data():
    X, y = load_breast_cancer(return_X_y=True)
    SVC(time_limit=1e-9).fit(X, y).bound_optimum(X, y)


@pytest.mark.parametrize("by", [1e-3, 2e-6, 1e-12])
def test_objectives_that_differ_are_told_apart(by):
    before, now = (
        Bounds.proved(value, 0.0).certificate for value in (30.0, 30.0 * (1.0 + by))
    )
    words = other_objective(before, now)
    assert (words is None) == (by < 1e-6)
    if words is not None:
        assert words[0] != words[1]


@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "crammer_singer"])
def test_bounds_of_very_wide_rows(multi_class):
    """A fit leaves out empty columns, and the bounds still are about all of them."""
    rng = np.random.default_rng(0)
    X = sparse.random(30, 10_000, density=1e-4, random_state=0, format="csr")
    y = rng.integers(0, 3, 30)
    model = LinearSVC(loss="hinge", multi_class=multi_class).fit(X, y)
    lower, upper = model.bound_optimum(X, y).decision_bounds(X)
    best = LinearSVC(loss="hinge", multi_class=multi_class, tol=1e-9).fit(X, y)
    decisions = best.decision_function(X)
    assert (lower <= decisions + 1e-9).all()
    assert (decisions <= upper + 1e-9).all()
    assert (upper - lower).max() < 10.0
