"""Every public function that takes a fitted model takes scikit-learn's patched ones."""

from __future__ import annotations

import inspect
import os
import pickle
import re
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import dualgap
import dualgap.plot
from dualgap.estimators import drop_ins, originals, unwrap

from ..laws import test_exports as exports
from ..laws.subjects import values
from ..laws.test_exports import assert_same

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")

NAMES = list(drop_ins.DROP_INS)
TOL = {"tol": 1e-9}


@pytest.fixture(autouse=True)
def pictures():
    """Draw without a screen, and close all figures."""
    from matplotlib import pyplot

    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def rows(classes):
    """Rows of two features, so that boundaries can be drawn."""
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes, 1:3][::2], y[y < classes][::2]
    return (X - X.mean(axis=0)) / X.std(axis=0) + 1.0, np.where(y == 2, 7, y)


def targets(name, X, y):
    if name.endswith("SVC"):
        return y
    return X[:, 0] ** 2 if name.endswith("SVR") else None


def pair(name, X, y, **more):
    """dualgap's own estimator, and the drop-in, of the same problem."""
    options = {**TOL, **more}
    if name.startswith("Linear"):
        options["random_state"] = 0
    loss = {"loss": "squared_hinge"} if name == "LinearSVC" else {}
    return (
        getattr(dualgap, name)(**options, **loss),
        getattr(drop_ins, name)(**options),
    )


# Every function returns numbers and texts that must be the same of both models.


def predictions(model, X):
    method = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, method)(X)


def certified(found):
    return [round(part.primal, 4) for part in found], found.relative_gap <= 1e-3


def by_way(way):
    """Return a function that checks what comes back from a way out of a model."""

    def run(model, X, y, folder):
        found = way(model, X, y, folder / "model")
        assert_same(found, values(model, X))
        return list(found.values())

    return run


def run_certify(model, X, y, folder):
    return certified(dualgap.certify(model, X, y))


def run_compress(model, X, y, folder):
    smaller = dualgap.compress(model, X, y, tol=0.1)
    assert type(smaller) is getattr(dualgap, type(smaller).__name__)
    found = dualgap.certify(smaller, X, y, tol=1e-6)
    return all(part.relative_gap <= 0.1 for part in found)


def run_loo_bounds(model, X, y, folder):
    found = dualgap.models.loo_bounds(model, X, y)
    return found.lower, found.upper


def run_cv_bounds(model, X, y, folder):
    found = dualgap.models.cv_bounds(model, X, y, cv=3)
    return found.lower, found.upper


def run_influence(model, X, y, folder):
    return dualgap.models.influence(model, X, y, X[:5])


def run_report(model, X, y, folder):
    page = dualgap.report(model, X, y).html
    return re.findall("<h[23]>.*?</h[23]>", page)


def run_what_if(model, X, y, folder):
    found = dualgap.models.what_if(model, X, y, without=[0, 1])
    refitted = found.refit(1e-3)
    assert type(refitted) is getattr(dualgap, type(refitted).__name__)
    assert refitted.certificate_.certified
    return found.certified_labels(X), found.radius < np.inf


def run_boundary(model, X, y, folder):
    return dualgap.plot.BoundaryDisplay.from_estimator(
        model, X, y, resolution=9, support=hasattr(model, "kernel")
    ).values


def run_margins(model, X, y, folder):
    return dualgap.plot.MarginDisplay.from_estimator(
        model, X, y, support=False, positive=None if len(set(y)) == 2 else 1
    ).margins


def run_convergence(model, X, y, folder):
    found = dualgap.plot.ConvergenceDisplay.from_estimator(model)
    return list(found.histories), found.tol


def run_convergences(model, X, y, folder):
    found = dualgap.plot.ConvergenceDisplay.from_estimators({"it": model})
    return list(found.histories)


def run_path(model, X, y, folder):
    return dualgap.plot.PathDisplay.from_estimator(model)


def run_error_bounds(model, X, y, folder):
    return dualgap.plot.ErrorBoundsDisplay.from_estimator(model)


def run_unwrap(model, X, y, folder):
    inner, _ = unwrap(model, X)
    assert type(inner) is getattr(dualgap, type(inner).__name__)
    return predictions(inner, X)


def run_shapley_values(model, X, y, folder):
    found = dualgap.models.shapley_values(model, X[:5], X[::9])
    return found.values, found.base, found.error


def run_shapley_display(model, X, y, folder):
    draw = dualgap.plot.ShapleyDisplay.from_estimator
    return draw(model, X[:5], X[::9], column=0).values


def run_calibrated(model, X, y, folder):
    return dualgap.calibrated(model, X, y, cv=2).predict_proba(X)


FUNCTIONS = {
    "calibrated": run_calibrated,
    "certify": run_certify,
    "compress": run_compress,
    "cv_bounds": run_cv_bounds,
    "influence": run_influence,
    "loo_bounds": run_loo_bounds,
    "report": run_report,
    "save_model": by_way(exports.by_model_file),
    "shapley_values": run_shapley_values,
    "to_onnx": by_way(exports.by_onnx),
    "what_if": run_what_if,
    "write_liblinear": by_way(exports.by_liblinear),
    "write_libsvm": by_way(exports.by_libsvm),
    "write_proof": by_way(exports.by_proof),
    "BoundaryDisplay.from_estimator": run_boundary,
    "ConvergenceDisplay.from_estimator": run_convergence,
    "ConvergenceDisplay.from_estimators": run_convergences,
    "ErrorBoundsDisplay.from_estimator": run_error_bounds,
    "MarginDisplay.from_estimator": run_margins,
    "PathDisplay.from_estimator": run_path,
    "ShapleyDisplay.from_estimator": run_shapley_display,
    "unwrap": run_unwrap,
}
#: What the pictures of a path and of bounds take is neither class, and both say so.
NEITHER = {"PathDisplay.from_estimator", "ErrorBoundsDisplay.from_estimator"}


def public_functions():
    """Names of public functions with a parameter for a fitted model."""
    modules = {"models", "estimators", *dualgap._MODULES} - {"distributed"}
    for package in (dualgap, *(import_module(f"dualgap.{name}") for name in modules)):
        for name in getattr(package, "__all__", ()):
            thing = getattr(package, name)
            found = {name: thing}
            if inspect.isclass(thing):  # their constructors take no fitted model
                methods = inspect.getmembers(thing, inspect.ismethod)
                found = {f"{name}.{own}": method for own, method in methods}
            for name_, function in found.items():
                if callable(function) and not name_.split(".")[-1].startswith("_"):
                    given = set(inspect.signature(function).parameters)
                    if given & {"model", "models", "estimator", "estimators"}:
                        yield name_


def test_the_table_has_every_public_function_that_takes_a_model():
    assert set(public_functions()) == set(FUNCTIONS)


def outcome(run, *arguments):
    """Return the result of a function, or the type of its error."""
    try:
        return run(*arguments)
    except (TypeError, ValueError, AttributeError) as error:
        return type(error)


def assert_alike(one, other):
    if isinstance(one, (list, tuple)) and one and not isinstance(one[0], str):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_alike(a, b)
    elif isinstance(one, (float, np.ndarray)):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    else:
        assert one == other


@pytest.mark.cases(15)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_functions_take_patched_models(function, name, classes, tmp_path):
    """A drop-in gets the answer that dualgap's own class gets."""
    X, labels = rows(classes)
    y = targets(name, X, labels)
    own, drop_in = (model.fit(X, y) for model in pair(name, X, labels))
    found = [
        outcome(FUNCTIONS[function], model, X, y, tmp_path) for model in (own, drop_in)
    ]
    assert_alike(*found)
    assert inspect.isclass(found[0]) or function not in NEITHER


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.cases(15)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrap", ["pipeline", "scaled", "search"])
@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f not in NEITHER])
def test_functions_find_patched_models_inside_others(function, wrap, name, tmp_path):
    X, labels = rows(2)
    y = targets(name, X, labels)
    found = []
    for model in pair(name, X, labels):
        step = MinMaxScaler() if wrap == "pipeline" else StandardScaler()
        whole = make_pipeline(step, model)
        if wrap == "search":
            whole = GridSearchCV(model, {"tol": [1e-9]}, cv=2, scoring=lambda *_: 0.0)
        whole.fit(X, y)
        found.append(outcome(FUNCTIONS[function], whole, X, y, tmp_path))
    assert_alike(*found)


# ------------------------------------------------------------ what the attributes say


@pytest.mark.cases(None)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("LinearSVC", {"fit_intercept": False, "C": 0.1}),
        ("LinearSVC", {"multi_class": "crammer_singer", "C": 0.1}),
        ("LinearSVC", {"loss": "hinge", "class_weight": "balanced"}),
        ("LinearSVR", {"loss": "squared_epsilon_insensitive", "epsilon": 0.1}),
        ("LinearSVR", {"fit_intercept": False, "C": 0.1}),
        ("SVC", {"kernel": "poly", "coef0": 1.0, "decision_function_shape": "ovo"}),
        ("SVC", {"kernel": "linear", "break_ties": True}),
        ("SVC", {"class_weight": "balanced"}),
        ("SVR", {"kernel": "linear", "C": 0.1}),
        ("OneClassSVM", {"kernel": "poly", "nu": 0.2}),
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_own_model_predicts_the_same(name, options, classes, layout):
    """The certificate of the own model is about the problem of the drop-in."""
    X, y = rows(classes)
    weight = np.arange(1, len(y) + 1) % 3.0  # some rows have weight 0
    y = targets(name, X, y)
    X = layout(X)
    model = getattr(drop_ins, name)(**options).fit(X, y, sample_weight=weight)
    own, _ = unwrap(model)
    assert type(own) is getattr(dualgap, name)
    np.testing.assert_array_equal(own.predict(X), model.predict(X))
    np.testing.assert_allclose(predictions(own, X), predictions(model, X), atol=1e-9)
    found = dualgap.certify(model, X, y, sample_weight=weight)
    for before, now in zip(model.certificate_.parts, found.parts, strict=True):
        assert now.primal == pytest.approx(before.primal, rel=1e-6)
    if name not in ("OneClassSVM", "SVR", "LinearSVR"):
        bounded = {} if "crammer" in str(options) else {"refine": "none"}
        if bounded:
            assert dualgap.models.loo_bounds(
                model, X, y, sample_weight=weight, **bounded
            )


def test_functions_and_matrices_as_kernels():
    X, y = rows(3)

    def linear(A, B):
        return A @ B.T

    by_function = drop_ins.SVC(kernel=linear).fit(X, y)
    by_matrix = drop_ins.SVC(kernel="precomputed").fit(linear(X, X), y)
    own, _ = unwrap(by_function)
    np.testing.assert_array_equal(own.predict(X), by_function.predict(X))
    other, _ = unwrap(by_matrix)
    np.testing.assert_array_equal(other.predict(linear(X, X)), own.predict(X))
    assert dualgap.certify(by_function, X, y).relative_gap <= 1e-3
    assert dualgap.certify(by_matrix, linear(X, X), y).relative_gap <= 1e-3


def test_balanced_classes_count_rows_as_scikit_learn_does():
    """Drop-ins count rows with sample weights too; dualgap's own SVC counts weights."""
    X, y = rows(2)
    weight = np.linspace(0.5, 3.0, len(y))
    plain = originals.SVC(class_weight="balanced", tol=1e-6).fit(X, y, weight)
    patched = drop_ins.SVC(class_weight="balanced", tol=1e-6).fit(X, y, weight)
    for model in (plain, patched):
        found = dualgap.certify(model, X, y, sample_weight=weight, tol=1e-6)
        assert found.relative_gap <= 2e-6
        assert found.primal == pytest.approx(patched.certificate_.primal, rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_fit(name, tmp_path):
    X, y = rows(2)
    model = getattr(drop_ins, name)()
    for function in ("to_onnx", "save_model", "write_libsvm", "write_liblinear"):
        with pytest.raises(NotFittedError):
            FUNCTIONS[function](model, X, y, tmp_path)


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_that_scikit_learn_has_trained(tmp_path):
    """Models without a certificate are exported, but refused by model files."""
    X, y = rows(3)
    kept = (y != y[0]) | (np.arange(len(y)) == 0)
    X, y = X[kept], y[kept]  # folds cannot hold out a class of one row
    probable = drop_ins.SVC(probability=True, random_state=0).fit(X, y)
    sparse_ = drop_ins.LinearSVC(penalty="l1", max_iter=0, random_state=0).fit(X, y)
    for model in (probable, sparse_):
        assert not hasattr(model, "certificate_")
        assert not hasattr(model, "history_")
        FUNCTIONS["to_onnx"](model, X, y, tmp_path)
        with pytest.raises(ValueError, match=r"SVC without a certificate, which a mod"):
            dualgap.save_model(model, tmp_path / "model")
    FUNCTIONS["write_libsvm"](probable, X, y, tmp_path)
    FUNCTIONS["write_liblinear"](sparse_, X, y, tmp_path)
    weight = (
        np.arange(1, len(y) + 1) % 3.0
    )  # LIBSVM numbers the rows of positive weight
    probable.fit(X, y, weight)
    found = dualgap.certify(probable, X, y, sample_weight=weight)
    assert found.relative_gap <= 1e-3
    found = dualgap.certify(sparse_, X, y)
    assert 0.0 < found.dual < found.primal


# -------------------------------------------------------------------------- other tools


def outputs(proto, X):
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = ort.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [(o.name, o.type, o.shape) for o in session.get_outputs()]
    return names, session.run(None, {session.get_inputs()[0].name: X})


def wrapped(model, how):
    if how == "calibrated":
        return CalibratedClassifierCV(model, ensemble=False, cv=3)
    if how == "one versus rest":
        return OneVsRestClassifier(model)
    if how == "search":
        return GridSearchCV(model, {"tol": [1e-3]}, cv=2, scoring=lambda *_: 0.0)
    if how == "own search":
        return dualgap.model_selection.GridSearchCV(
            model, {"tol": [1e-3]}, cv=2, scoring=lambda *_: 0.0
        )
    return make_pipeline(StandardScaler(), model) if how == "pipeline" else model


@pytest.mark.cases(8)
@pytest.mark.filterwarnings("ignore")  # of skl2onnx
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "how",
    ["alone", "pipeline", "search", "own search", "calibrated", "one versus rest"],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_skl2onnx_converts_them_as_scikit_learns_own(name, how, classes):
    """The graph is that of scikit-learn's class, right where that one is right.

    Of one versus the rest with an SVC or NuSVC, skl2onnx 1.20 exchanges the classes.
    """
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    if how in ("calibrated", "one versus rest") and not name.endswith("SVC"):
        pytest.skip("for classifiers")
    dualgap.models.register_skl2onnx()
    X, labels = rows(classes)
    X = X.astype(np.float32)
    y = targets(name, X, labels)
    options = {"zipmap": False} if name.endswith("SVC") else None
    forms, right = [], []
    for package in (originals, drop_ins):
        model = wrapped(getattr(package, name)(), how).fit(X, y)
        form, values = outputs(skl2onnx.to_onnx(model, X[:1], options=options), X)
        near = np.abs(np.ravel(values[0]) - np.ravel(model.predict(X))) < 1e-3
        if name == "OneClassSVM":  # rounding decides on the plane
            near |= np.abs(model.decision_function(X)) < 1e-3
        forms.append(form)
        right.append(bool(near.all()))
    assert forms[0] == forms[1]
    exchanged = how == "one versus rest" and name in ("SVC", "NuSVC")
    assert right[0] == right[1] == (not exchanged)


ORDERS = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import dualgap
for step in sys.argv[1]:
    if step == "i":
        import skl2onnx
    elif step == "r":
        dualgap.models.register_skl2onnx()
    else:
        {"p": dualgap.patch_sklearn, "u": dualgap.unpatch_sklearn}[step]()
import skl2onnx
from dualgap.estimators import drop_ins, originals
from sklearn.calibration import CalibratedClassifierCV
X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
y = (X[:, 0] > 0).astype(int)
for package in (drop_ins, originals):
    for name in drop_ins.DROP_INS:
        model = getattr(package, name)().fit(X, y)
        names = [o.name for o in skl2onnx.to_onnx(model, X[:1]).graph.output]
        print(name, names)
        if name.endswith("SVC"):
            model = CalibratedClassifierCV(getattr(package, name)()).fit(X, y)
            skl2onnx.to_onnx(model, X[:1])
"""


@pytest.mark.long
@pytest.mark.parametrize("order", ["ipr", "pir", "rpi", "pr", "pru", "irpu", "r"])
def test_the_order_of_imports_does_not_matter(order):
    """i: import skl2onnx, p: patch, r: register, u: unpatch."""
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    run = subprocess.run(
        [sys.executable, "-c", ORDERS, order],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    lines = run.stdout.splitlines()
    half = len(drop_ins.DROP_INS)
    assert lines[:half] == lines[half:]


@pytest.mark.filterwarnings("ignore")  # of skl2onnx
@pytest.mark.parametrize("name", ["SVCCV", "SVRCV", "LinearSVCCV"])
@pytest.mark.parametrize("classes", [2, 3])
def test_searches_become_graphs(name, classes):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    X, y = rows(classes)
    y = X @ [1.0, 2.0] if name == "SVRCV" else y
    model = getattr(dualgap, name)([0.1, 1.0], cv=3).fit(X, y)
    proto = dualgap.to_onnx(model, dtype=np.float64)
    assert proto.graph.name == name
    dualgap.models.register_skl2onnx()
    options = None if name == "SVRCV" else {"zipmap": False}
    whole = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    for found, graph in (
        (model, proto),
        (model, skl2onnx.to_onnx(model, X[:1], options=options)),
        (whole, skl2onnx.to_onnx(whole, X[:1], options=options)),
    ):
        answers = outputs(graph, X)[1]
        np.testing.assert_allclose(answers[0].ravel(), found.predict(X), atol=1e-6)
        if name != "SVRCV" and classes == 3:
            scores = found.decision_function(X)
            np.testing.assert_allclose(answers[1], scores, rtol=0, atol=1e-5)
    with pytest.raises(NotFittedError):
        dualgap.to_onnx(getattr(dualgap, name)())


def test_their_module_is_scikit_learns():
    """Tools such as m2cgen look up ``sklearn`` and the name of the class."""
    for name, drop_in in drop_ins.DROP_INS.items():
        assert drop_in.__module__ == getattr(originals, name).__module__
        assert drop_in.__name__ == name
        assert "dualgap" in repr(drop_in)


class OfTheUser(drop_ins.SVC):
    """A subclass in a module of the user's."""


@pytest.mark.parametrize("patched", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_pickles_name_the_drop_in(name, patched):
    """Classes too, which a pickle by name would take for scikit-learn's."""
    X, y = rows(2)
    drop_in = getattr(drop_ins, name)
    model = drop_in().fit(X, targets(name, X, y))
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is missing")
    if patched:
        dualgap.patch_sklearn()
    try:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(drop_in, protocol)) is drop_in
            again = pickle.loads(pickle.dumps(model, protocol))
            assert type(again) is drop_in
            np.testing.assert_array_equal(again.predict(X), model.predict(X))
            assert repr(again.certificate_) == repr(model.certificate_)
        assert clone(model).fit(X, targets(name, X, y)).certificate_.certified
        by_name = cloudpickle.dumps(drop_in)
        assert len(by_name) < 200  # no copy of the class
        assert pickle.loads(by_name) is drop_in
        assert pickle.loads(pickle.dumps(OfTheUser)) is OfTheUser
        assert type(pickle.loads(pickle.dumps(OfTheUser()))) is OfTheUser
    finally:
        dualgap.unpatch_sklearn()
    assert sklearn.svm.SVC is originals.SVC


LOADS = """
import pickle, sys
model, drop_in = pickle.load(sys.stdin.buffer)
import sklearn.svm
assert type(model) is drop_in is not sklearn.svm.SVC, type(model)
assert issubclass(drop_in, sklearn.svm.SVC)
print(model.predict(model.support_vectors_).tolist(), model.certificate_.certified)
"""


@pytest.mark.long
def test_pickles_load_in_a_process_without_a_patch():
    X, y = rows(2)
    with dualgap.patch_sklearn():
        model = sklearn.svm.SVC().fit(X, y)
        data = pickle.dumps((model, sklearn.svm.SVC))
    run = subprocess.run(
        [sys.executable, "-c", LOADS],
        input=data,
        capture_output=True,
        timeout=300,
        env={**os.environ},
    )
    assert run.returncode == 0, run.stderr.decode()[-2000:]
    expected = model.predict(model.support_vectors_).tolist()
    assert run.stdout.decode().strip() == f"{expected} True"
