"""Graphs for ONNX runtimes: the decision values and labels of the model itself."""

from __future__ import annotations

import copy
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import (
    SVC,
    SVR,
    CalibratedClassifier,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    to_onnx,
)
from dualgap.models import register_skl2onnx

pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")

ACCURACY = 1e-5
KERNELS = ["linear", "poly", "rbf", "sigmoid", "laplacian"]


def served(proto, X, dtype):
    """Return the runtime's outputs for the rows."""
    session = ort.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: X.astype(dtype)})


def assert_served(model, X, dtype):
    """Scores are the same to 1e-5 of the largest, and so are labels they decide."""
    X = np.asarray(X).astype(dtype)
    label, scores = served(to_onnx(model, dtype=dtype), X, dtype)
    exact = copy.copy(model)
    if isinstance(model, SVC):  # float32 vectors would make kernel values of float32
        exact.support_vectors_ = model.support_vectors_.astype(np.float64)
    expected = exact.decision_function(X)
    assert scores.shape == expected.shape
    assert scores.dtype == dtype
    np.testing.assert_allclose(
        scores, expected, rtol=0, atol=ACCURACY * np.abs(expected).max()
    )
    two = np.column_stack([expected, -expected]) if expected.ndim == 1 else expected
    best = np.sort(two, axis=1)
    sure = best[:, -1] - best[:, -2] > 2 * ACCURACY * np.abs(expected).max()
    if scores.ndim == 2 and scores.shape[1] > len(model.classes_):  # of pairs
        sure = np.abs(expected).min(axis=1) > ACCURACY * np.abs(expected).max()
    np.testing.assert_array_equal(label[sure], exact.predict(X)[sure])
    return label


def sample(classes, dtype=np.float64):
    X, y = load_digits(return_X_y=True)
    kept = np.flatnonzero(y < classes)[:240]
    return (X[kept] / 16.0).astype(dtype), y[kept]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("trained", [np.float32, np.float64])
def test_kernels(kernel, classes, trained):
    X, y = sample(classes, trained)
    # tanh is positive semidefinite on no data but where it is nearly linear
    gamma = 1e-6 if kernel == "sigmoid" else "scale"
    C = 1e6 if kernel == "sigmoid" else 10.0
    model = SVC(C=C, kernel=kernel, gamma=gamma, coef0=0.0).fit(X, y)
    assert len(np.unique(assert_served(model, X, np.float64))) == classes
    if trained == np.float32:  # half the bytes of the vectors
        assert_served(model, X, np.float32)


@pytest.mark.parametrize("spread", [1e3, 1e6, 1e9, 1e15])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_clusters_far_apart(kernel, spread):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    X[:, 2] = spread * (rng.random(120) < 0.5)
    y = np.where(X[:, 0] * np.where(X[:, 2] > 0, 1, -1) > 0, 1, 0)
    if kernel == "linear":  # whose decisions cancel otherwise
        X[:, 2] = np.where(X[:, 2] > 0, 1.0, -1.0)
    model = SVC(kernel=kernel, gamma=0.5).fit(X, y)
    assert len(np.unique(assert_served(model, X, np.float64))) == 2
    beyond = np.full((1, 3), 1e150)  # squares that overflow: orthogonal to all
    if kernel == "rbf":
        _, scores = served(to_onnx(model, dtype=np.float64), beyond, np.float64)
        np.testing.assert_allclose(scores.ravel(), model.intercept_, atol=1e-12)


def test_ties_are_broken_as_the_model_breaks_them():
    # Three classes that beat one another in a circle: every class has one vote.
    model = SVC(kernel="linear").fit(np.eye(3), [0, 1, 2])
    model.dual_coef_ = np.zeros_like(model.dual_coef_)
    model.intercept_ = np.array([1.0, -2.0, 3.0])
    for ties, winner in ((False, 0), (True, 1)):
        model.break_ties = ties
        label = assert_served(model, np.eye(3), np.float64)
        np.testing.assert_array_equal(label, winner)


@pytest.mark.parametrize(
    "names",
    [
        np.array(["no", "yes, é"]),
        np.array(["b", "a"], dtype=object),
        np.array([False, True]),
        np.array([-3, 7], dtype=np.int8),
        np.array([1.0, 2.0]),
    ],
    ids=["str", "object", "bool", "int8", "float"],
)
def test_labels_of_every_type(names):
    X, y = sample(2)
    label = assert_served(LinearSVC().fit(X, names[y]), X, np.float32)
    assert set(label.tolist()) == set(names.tolist())


@pytest.mark.filterwarnings("ignore:.*rounding decides")
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_class_without_support_vectors(kernel):
    X, y = sample(3)
    model = SVC(kernel=kernel, gamma=1e-6).fit(X, y)
    first = model.n_support_[0]
    model.support_vectors_ = model.support_vectors_[first:]
    model.dual_coef_ = model.dual_coef_[:, first:]
    model.n_support_ = np.array([0, *model.n_support_[1:]], np.int32)
    assert_served(model, X, np.float64)


def test_large_duals_need_the_sums_in_double():
    """Nearly equal rows of unlike classes: terms of 1e6 that cancel to 1."""
    X = np.array([[0.0], [1e-3], [1.0], [1.0 + 1e-3]])
    model = SVC(C=1e7, gamma=1.0, tol=1e-6).fit(X, [0, 1, 0, 1])
    assert np.abs(model.dual_coef_).max() > 1e5
    assert_served(model, X, np.float64)


def test_pipelines_through_skl2onnx():
    X, y = sample(4)
    register_skl2onnx()
    for last in (LinearSVC(), SVC(), SVC(decision_function_shape="ovo")):
        model = make_pipeline(StandardScaler(), last).fit(X, y)
        label, scores = served(
            skl2onnx.to_onnx(model, X[:1], options={"zipmap": False}), X, X.dtype
        )
        expected = model.decision_function(X)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=ACCURACY)
        np.testing.assert_array_equal(label, model.predict(X))


def test_two_classes_through_skl2onnx():
    X, y = sample(2, np.float32)
    register_skl2onnx()
    model = LinearSVC().fit(X, np.array(["a", "b"])[y])
    label, scores = served(
        skl2onnx.to_onnx(model, X[:1], options={"zipmap": False}), X, X.dtype
    )
    expected = model.decision_function(X)
    np.testing.assert_allclose(
        scores, np.c_[-expected, expected], rtol=0, atol=ACCURACY * 10
    )
    np.testing.assert_array_equal(label, model.predict(X))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", [LinearSVC, SVC])
def test_probabilities_through_skl2onnx(estimator, classes):
    X, y = sample(classes)
    register_skl2onnx()
    model = CalibratedClassifierCV(estimator(random_state=0), ensemble=False, cv=3)
    model.fit(X, y)
    proto = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    label, probabilities = served(proto, X, X.dtype)
    np.testing.assert_allclose(
        probabilities, model.predict_proba(X), rtol=0, atol=ACCURACY
    )
    np.testing.assert_array_equal(label, model.predict(X))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("model", [LinearSVC(), SVC()], ids=repr)
def test_own_probabilities(model, classes, method):
    """Also inside a search and a pipeline, whose labels are those of probabilities."""
    X, y = sample(classes)
    register_skl2onnx()
    found = CalibratedClassifier(model, method=method, cv=3)
    search = GridSearchCV(found, {"estimator__C": [1.0]}, cv=2).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), found).fit(X, y)
    options = {"options": {"zipmap": False}}
    for fitted, proto in (
        (search, to_onnx(search, dtype=np.float64)),
        (pipeline, skl2onnx.to_onnx(pipeline, X[:1], **options)),
    ):
        label, probabilities = served(proto, X, X.dtype)
        expected = fitted.predict_proba(X)
        np.testing.assert_allclose(probabilities, expected, rtol=0, atol=ACCURACY)
        best = np.sort(expected, axis=1)
        sure = best[:, -1] - best[:, -2] > 2 * ACCURACY
        np.testing.assert_array_equal(label[sure], fitted.predict(X)[sure])


@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(LinearSVC()),
        OneVsOneClassifier(LinearSVC()),
        GridSearchCV(LinearSVC(), {"C": [0.1, 1.0]}, cv=3),
    ],
    ids=str,
)
def test_wrappers_through_skl2onnx(model):
    X, y = sample(3)
    register_skl2onnx()
    model = clone(model).fit(X, y)
    proto = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    label = served(proto, X, X.dtype)[0].ravel()  # one versus one: a column
    np.testing.assert_array_equal(label, model.predict(X))


def test_refusals(monkeypatch):
    X, y = sample(2)
    with pytest.raises(NotFittedError):
        to_onnx(LinearSVC())
    with pytest.raises(
        TypeError, match=r"Pipeline; call dualgap\.models\.register_skl2onnx"
    ):
        to_onnx(make_pipeline(LinearSVC()).fit(X, y))
    with pytest.raises(TypeError, match="model is a StandardScaler"):
        to_onnx(StandardScaler().fit(X))
    with pytest.raises(ValueError, match="dtype=float16"):
        to_onnx(LinearSVC().fit(X, y), dtype=np.float16)
    with pytest.raises(ValueError, match="kernel='precomputed' cannot be converted"):
        to_onnx(SVC(kernel="precomputed").fit(X @ X.T, y))
    with pytest.raises(ValueError, match="kernel='callable' cannot be converted"):
        to_onnx(SVC(kernel=lambda a, b: a @ b.T).fit(X, y))
    register_skl2onnx()
    with pytest.raises(ValueError, match="target_opset=12"):
        skl2onnx.to_onnx(LinearSVC().fit(X, y), X[:1], target_opset=12)
    model = SVC().fit(X, y)
    large = LinearSVC().fit(X, y)
    large.coef_ = np.broadcast_to(0.0, (1, 2**28))
    with pytest.raises(ValueError, match="2,147,483,648 bytes, but an ONNX graph can"):
        to_onnx(large)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'dualgap\[onnx\]'"):
        to_onnx(model)


@pytest.mark.parametrize(
    "models",
    [
        (LinearSVR(epsilon=0.1), LinearOneClassSVM(0.2)),
        (SVR(C=10.0), OneClassSVM(nu=0.2)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_regression_and_one_class_through_skl2onnx(models, dtype):
    X, _ = sample(10)
    y = X @ np.random.default_rng(0).normal(size=64) + 5.0
    regression, novelty = models[0], clone(models[1]).fit(X)
    X = X.astype(dtype)
    register_skl2onnx()
    model = make_pipeline(StandardScaler(), regression).fit(X, y)
    (found,) = served(skl2onnx.to_onnx(model, X[:1]), X, dtype)
    expected = model.predict(X)
    atol = ACCURACY * np.abs(expected).max()
    np.testing.assert_allclose(found[:, 0], expected, rtol=0, atol=atol)
    label, scores = served(skl2onnx.to_onnx(novelty, X[:1]), X, dtype)
    expected = novelty.decision_function(X)
    size = ACCURACY * abs(float(novelty.offset_[0]))
    np.testing.assert_allclose(scores[:, 0], expected, rtol=0, atol=size)
    clear = np.abs(expected) > size
    np.testing.assert_array_equal(label[clear, 0], novelty.predict(X)[clear])
