"""scikit-learn's SVMs trained by dualgap: the same classes, and the optimum."""

from __future__ import annotations

import inspect
import logging
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sklearn.calibration
import sklearn.svm
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import dualgap
from dualgap import patch
from dualgap.certificate import Status
from dualgap.estimators import drop_ins

from .laws.test_epochs import check_certificate

NAMES = ["LinearSVC", "SVC", "NuSVC", "LinearSVR", "SVR", "NuSVR", "OneClassSVM"]
PLAIN = {name: getattr(sklearn.svm, name) for name in NAMES}


@pytest.fixture(autouse=True)
def unpatched():
    yield
    dualgap.unpatch_sklearn()
    assert {name: getattr(sklearn.svm, name) for name in NAMES} == PLAIN


def iris() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    return scale(X), np.array(["setosa", "versicolor", "virginica"])[y]


def cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[::3], y[::3]


def diabetes() -> tuple[Any, Any]:
    X, y = load_diabetes(return_X_y=True)
    return scale(X)[::3], y[::3] / 10.0


def linear(A: Any, B: Any) -> Any:
    return A @ B.T


def positive() -> tuple[Any, Any]:
    X, y = diabetes()
    return X + 5.0, y


DATA = {"iris": iris, "cancer": cancer, "diabetes": diabetes, "positive": positive}
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("LinearSVC", "iris", {}),
    ("LinearSVC", "cancer", {"loss": "hinge", "C": 0.1}),
    ("LinearSVC", "iris", {"class_weight": "balanced", "intercept_scaling": 5.0}),
    ("LinearSVC", "cancer", {"fit_intercept": False, "C": 0.1}),
    ("LinearSVC", "iris", {"multi_class": "crammer_singer", "C": 0.1}),
    ("LinearSVC", "cancer", {"multi_class": "crammer_singer", "C": 0.01}),
    ("LinearSVC", "iris", {"penalty": "l1", "C": 0.1, "intercept_scaling": 5.0}),
    ("SVC", "iris", {}),
    ("SVC", "cancer", {"class_weight": {0: 3.0}, "C": 10.0}),
    ("SVC", "iris", {"kernel": "linear", "decision_function_shape": "ovo"}),
    ("SVC", "iris", {"kernel": "poly", "coef0": 1.0, "break_ties": True}),
    ("SVC", "cancer", {"kernel": linear}),
    ("LinearSVR", "diabetes", {"C": 0.1}),
    ("LinearSVR", "diabetes", {"loss": "squared_epsilon_insensitive", "epsilon": 1.0}),
    ("SVR", "diabetes", {"C": 10.0}),
    ("SVR", "diabetes", {"kernel": linear, "C": 0.1}),
    ("OneClassSVM", "diabetes", {"nu": 0.2}),
    ("OneClassSVM", "positive", {"kernel": "linear"}),
]


def case_name(case: Any) -> str:
    name, data, parameters = case
    words = [f"{k}={getattr(v, '__name__', v)}" for k, v in parameters.items()]
    return "-".join([name, data, *words])


def both(
    name: str, parameters: dict[str, Any], X: Any, y: Any, weight: Any = None
) -> tuple[Any, Any]:
    """The model of the drop-in, and scikit-learn's, which may warn."""
    ours = getattr(drop_ins, name)(**parameters)
    if "random_state" in ours.get_params():
        ours.set_params(random_state=0)
    theirs = PLAIN[name](**ours.get_params())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs.fit(X, y, weight)
    return ours.fit(X, y, weight), theirs


@pytest.mark.cases(None)
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_the_model_is_optimal(case: Any) -> None:
    """The certificate bounds scikit-learn's objective: its own model is no better."""
    name, data, parameters = case
    X, y = DATA[data]()
    ours, theirs = both(name, parameters, X, y)
    assert ours.certificate_.certified
    assert ours.certificate_.relative_gap <= min(1e-3, ours.tol)
    check_certificate(ours, X, y)
    proof = dualgap.certify(theirs, X, y)
    for part, other in zip(ours.certificate_, proof, strict=True):
        assert other.primal >= part.dual - 1e-9 * abs(part.primal)
        assert other.dual <= part.primal + 1e-9 * abs(part.primal)


@pytest.mark.cases(None)
@pytest.mark.parametrize("case", CASES, ids=case_name)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_what_is_fitted_looks_like_scikit_learns(case: Any, container: Any) -> None:
    name, data, parameters = case
    X, y = DATA[data]()
    X = container(X)
    ours, theirs = both(name, parameters, X, y)
    assert isinstance(ours, PLAIN[name])
    more = {"class_weight_"} if name == "LinearSVC" else set()
    more |= {"certificate_", "history_", "_fitted"}
    assert set(vars(ours)) - set(vars(theirs)) == more
    assert repr(ours) == repr(theirs)
    coef = {"coef_"} if hasattr(theirs, "coef_") else set()
    for attribute in {*vars(theirs), *coef}:
        one, other = getattr(ours, attribute), getattr(theirs, attribute)
        assert type(one) is type(other), attribute
        if hasattr(other, "dtype"):
            assert one.dtype == other.dtype, attribute
            assert shape(attribute, one) == shape(attribute, other), attribute
    for method in ("predict", "decision_function", "score_samples"):
        if hasattr(theirs, method):
            one, other = (getattr(model, method)(X) for model in (ours, theirs))
            assert (type(one), one.dtype) == (type(other), other.dtype)
            assert one.shape == other.shape


def shape(attribute: str, array: Any) -> Any:
    """The shape of an array without the number of support vectors."""
    if attribute in ("support_", "support_vectors_"):
        return array.shape[1:]
    return array.shape[:-1] if "dual_coef_" in attribute else array.shape


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "case", [case for case in CASES if not case[0].startswith("Linear")], ids=case_name
)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_libsvm_reads_the_model_as_dualgap_does(case: Any, container: Any) -> None:
    name, data, parameters = case
    X, y = DATA[data]()
    X = container(X)
    ours, theirs = both(name, parameters, X, y)
    vars(theirs).clear()
    vars(theirs).update(vars(ours))
    method = "predict" if name == "SVR" else "decision_function"
    one, other = (getattr(model, method)(X) for model in (ours, theirs))
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    if name == "SVC":
        assert (ours.predict(X) == theirs.predict(X)).all()
    if name == "OneClassSVM":  # what lies on the plane is an inlier
        assert (ours.predict(X) == np.where(one >= 0.0, 1, -1)).all()


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("LinearSVC", {"max_iter": 0}, "max_iter=0"),
    ("SVC", {"kernel": "sigmoid", "gamma": 1.0}, "indefinite"),
    ("SVR", {"C": np.inf, "max_iter": 100}, "C=inf: dualgap needs a finite C"),
    ("SVC", {"gamma": 0.0}, "gamma=0.0"),
    ("SVC", {"kernel": "poly", "degree": 0}, "degree=0"),
    ("SVR", {"kernel": lambda A, B: -(A @ B.T)}, "indefinite"),
    ("OneClassSVM", {"kernel": "sigmoid", "gamma": 1.0}, "indefinite"),
]


@pytest.mark.cases(None)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "parameters", "reason"), REFUSED, ids=lambda value: str(value)[:30]
)
def test_scikit_learn_trains_what_dualgap_refuses(
    name: str, parameters: dict[str, Any], reason: str, caplog: Any
) -> None:
    X, y = diabetes() if name == "SVR" else cancer()
    with caplog.at_level(logging.INFO, logger="dualgap"):
        ours, theirs = both(name, parameters, X, y)
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith(f"{name}: scikit-learn trains this model: ")
    assert reason in line
    assert not hasattr(ours, "certificate_")
    method = "predict" if name == "SVR" else "decision_function"
    one, other = (getattr(model, method)(X) for model in (ours, theirs))
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed", linear])
def test_a_hard_margin_is_proved(kernel: Any) -> None:
    X, y = cancer()
    X = X @ X.T if kernel == "precomputed" else X
    ours, theirs = both("SVC", {"C": np.inf, "kernel": kernel, "tol": 1e-6}, X, y)
    assert ours.certificate_.certified
    certificates = [dualgap.certify(model, X, y) for model in (ours, theirs)]
    for one in certificates:
        assert one.dual <= ours.certificate_.primal <= one.primal * (1.0 + 1e-5)
    assert max(one.relative_gap for one in certificates) < 1e-2
    assert (ours.decision_function(X) * np.where(y == 1, 1, -1)).min() > 1.0 - 1e-9


@pytest.mark.filterwarnings("ignore:Solver terminated early")
def test_scikit_learn_trains_a_hard_margin_of_rows_that_overlap(caplog: Any) -> None:
    X, y = iris()
    X, y = np.vstack([X, X[:1]]), np.append(y, y[-1])  # a row of two classes
    with caplog.at_level(logging.INFO, logger="dualgap"):
        ours, theirs = both("SVC", {"C": np.inf, "max_iter": 100}, X, y)
    message = caplog.records[-1].getMessage()
    assert "scikit-learn trains this model: C=inf: no model was found" in message
    assert not hasattr(ours, "certificate_")
    assert (ours.dual_coef_ == theirs.dual_coef_).all()


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@pytest.mark.parametrize("name", list(drop_ins.DROP_INS))
def test_an_error_of_dualgap_is_not_hidden(name: str, monkeypatch: Any) -> None:
    def fail(self: Any, *data: Any, **weights: Any) -> None:
        raise ValueError("a fault of dualgap")

    monkeypatch.setattr(getattr(drop_ins.estimators, name), "fit", fail)
    X, y = cancer()
    with pytest.warns(RuntimeWarning, match="a fault of dualgap"):
        model = getattr(drop_ins, name)().fit(X, y)
    assert not hasattr(model, "certificate_")


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
@pytest.mark.parametrize("kind", ["dense", "sparse", "precomputed", "function"])
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities(classes: int, kind: str) -> None:
    """They are LIBSVM's, but for the folds that it draws."""
    X, y = (cancer if classes == 2 else iris)()
    weight = np.where(np.arange(len(X)) % 4 == 0, 0.0, 2.0)
    options: dict[str, Any] = {"probability": True, "random_state": 0, "C": 0.1}
    options["kernel"] = "linear" if kind in ("precomputed", "function") else "rbf"
    _, theirs = both("SVC", options, X, y, weight)
    expected = theirs.predict_proba(X)
    if kind == "sparse":
        X = sparse.csr_matrix(X)
    elif kind == "precomputed":
        X, options["kernel"] = X @ X.T, "precomputed"
    elif kind == "function":
        options["kernel"] = linear
    ours = drop_ins.SVC(**options).fit(X, y, weight)
    assert ours.certificate_.certified
    found = ours.predict_proba(X)
    assert abs(found - expected).mean() < 0.02
    np.testing.assert_allclose(ours._probA, theirs._probA, rtol=0.3)
    again = drop_ins.SVC(**options).fit(X, y, weight)
    assert (again.predict_proba(X) == found).all()
    assert np.isfinite(again.predict_log_proba(X)).all()


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
def test_scikit_learn_calibrates_a_class_of_one_row() -> None:
    X, y = cancer()
    model = drop_ins.SVC(random_state=0).fit(X, y)
    assert model.certificate_.certified
    y = np.where(np.arange(len(y)) == 0, 2, y)
    model.set_params(probability=True).fit(X, y)
    assert not hasattr(model, "certificate_")  # of the earlier fit
    assert model.predict_proba(X).shape == (len(X), 3)


@pytest.mark.parametrize("name", ["LinearSVC", "SVC"])
def test_rows_of_negative_weight_are_left_out(name: str) -> None:
    X, y = cancer()
    weight = np.where(np.arange(len(X)) % 4 == 0, -1.0, 2.0)
    more = {"gamma": 0.01} if name == "SVC" else {"loss": "hinge", "tol": 1e-8}
    ours, _ = both(name, {"C": 0.1, **more}, X, y, weight)
    kept, _ = both(name, {"C": 0.2, **more}, X[weight > 0], y[weight > 0])
    assert ours.certificate_.certified
    np.testing.assert_allclose(
        ours.decision_function(X), kept.decision_function(X), rtol=1e-3, atol=1e-3
    )
    if name == "SVC":
        with pytest.raises(ValueError, match="positive weights"):  # scikit-learn's
            drop_ins.SVC().fit(X, y, np.where(y == 0, 1.0, 0.0))


@pytest.mark.parametrize("name", ["LinearSVC", "SVC"])
def test_a_limit_of_the_user_is_a_limit_of_epochs(name: str) -> None:
    X, y = cancer()
    parameters = {"loss": "hinge", "C": 100.0, "max_iter": 1, "random_state": 0}
    if name == "SVC":
        parameters = {"C": 100.0, "max_iter": 1}
    model = getattr(drop_ins, name)(**parameters)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert not model.certificate_.certified
    assert np.max(model.n_iter_) == 1
    check_certificate(model, X, y)


def test_a_tolerance_below_rounding_is_no_failure() -> None:
    X, y = cancer()
    model = drop_ins.SVC(tol=1e-300).fit(X, y)  # warns of nothing
    assert model.fit_status_ == 0
    assert not model.certificate_.certified
    assert model.certificate_.relative_gap < 1e-6


def test_ctrl_c_ends_the_program(monkeypatch: Any) -> None:
    """Ctrl-C must not end only the first of the many fits of a search."""
    X, y = iris()
    inner = dualgap.SVC().fit(X, y)
    part = replace(inner.certificate_.parts[0], status=Status.INTERRUPTED)
    inner.certificate_ = replace(inner.certificate_, several=(part,))
    monkeypatch.setattr(inner, "fit", lambda *args, **named: inner)
    model = drop_ins.SVC()
    monkeypatch.setattr(model, "_counterpart", lambda **common: inner, raising=False)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)


# --------------------------------------------------------------------- the patch


def arguments(function: Any) -> list[Any]:
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


def test_patching_and_back() -> None:
    dualgap.patch_sklearn()
    for name in NAMES:
        drop_in = getattr(sklearn.svm, name)
        assert drop_in is getattr(drop_ins, name)
        assert issubclass(drop_in, PLAIN[name])
        assert inspect.signature(drop_in) == inspect.signature(PLAIN[name])
        assert arguments(drop_in.fit) == arguments(PLAIN[name].fit)
        assert drop_in.__name__ == name
        assert drop_in.__doc__ == PLAIN[name].__doc__
        assert drop_in.fit.__doc__ == PLAIN[name].fit.__doc__
    assert sklearn.calibration.LinearSVC is drop_ins.LinearSVC
    assert sklearn.svm.NuSVC.__module__ == "sklearn.svm._classes"
    dualgap.patch_sklearn()  # changes nothing
    dualgap.unpatch_sklearn()
    assert sklearn.calibration.LinearSVC is PLAIN["LinearSVC"]
    dualgap.unpatch_sklearn()


def test_some_classes_and_a_block() -> None:
    with dualgap.patch_sklearn(["SVC"]) as outer:
        assert outer.names == ["SVC"]
        assert repr(outer) == "<dualgap trains SVC of sklearn.svm>"
        assert sklearn.svm.SVR is PLAIN["SVR"]
        with dualgap.patch_sklearn() as inner:
            assert sklearn.svm.SVR is drop_ins.SVR
            assert "SVC" not in inner.names
        assert sklearn.svm.SVC is drop_ins.SVC  # the outer one's still
        dualgap.patch_sklearn("SVR")
        dualgap.unpatch_sklearn("SVC")
        assert repr(outer) == "<dualgap trains SVR of sklearn.svm>"
    dualgap.unpatch_sklearn()
    assert repr(outer) == "<dualgap trains nothing of sklearn.svm>"
    with pytest.raises(RuntimeError, match="inside"), dualgap.patch_sklearn():
        raise RuntimeError("inside")
    assert sklearn.svm.SVC is PLAIN["SVC"]


@pytest.mark.parametrize("function", ["patch_sklearn", "unpatch_sklearn"])
def test_other_classes_are_refused(function: str) -> None:
    with pytest.raises(
        ValueError, match="no class 'l1_min_c'; choose from LinearSVC, SVC"
    ):
        getattr(dualgap, function)(["SVC", "l1_min_c"])
    with pytest.raises(TypeError, match="names=3 is not a list of classes; choose"):
        getattr(dualgap, function)(3)
    assert sklearn.svm.SVC is PLAIN["SVC"]


def test_a_notebook() -> None:
    patch.load_ipython_extension(None)
    assert sklearn.svm.SVC is drop_ins.SVC
    patch.unload_ipython_extension(None)
    assert sklearn.svm.SVC is PLAIN["SVC"]


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", NAMES)
def test_a_class_that_was_imported_early_is_pickled_as_ever(
    name: str, monkeypatch: Any
) -> None:
    early = PLAIN[name]
    monkeypatch.setitem(vars(sys.modules["__main__"]), name, early)
    with pytest.warns(UserWarning, match=f"still scikit-learn's: {name}; repeat"):
        patched = dualgap.patch_sklearn()
    with patched:
        assert type(pickle.loads(pickle.dumps(early()))) is early
        assert pickle.loads(pickle.dumps(early)) is early


def test_searches_and_certify_know_the_models() -> None:
    X, y = cancer()
    plain = PLAIN["SVC"]().fit(X, y)
    with dualgap.patch_sklearn():
        pipeline = make_pipeline(StandardScaler(), sklearn.svm.SVC())
        search = GridSearchCV(pipeline, {"svc__C": [0.1, 1.0]}, cv=2).fit(X, y)
        assert dualgap.certify(search, X, y).relative_gap <= 1e-3
        assert dualgap.certify(plain, X, y).relative_gap < 1.0
        found = [sklearn.svm.LinearSVC().fit(X, y), sklearn.svm.SVC().fit(X, y)]
    for model in found:  # also with other parameters for the next fit
        assert dualgap.certify(model.set_params(C=70.0), X, y).relative_gap <= 1e-3


SCRIPT = """
import pickle, sys
import numpy as np
from sklearn.svm import SVC
from beside import name
assert __name__ == "__main__"
X = np.random.default_rng(0).normal(size=(60, 2))
model = SVC().fit(X, X[:, 0] > 0)
with open(sys.argv[1], "wb") as file:
    pickle.dump((sys.argv, name, X, model, model.predict(X)), file)
sys.exit(7)
"""


@pytest.mark.long
def test_a_script(tmp_path: Any) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("name = 'beside'")
    script, out = str(tmp_path / "script.py"), str(tmp_path / "out")
    command = [sys.executable, "-m", "dualgap.patch", script, out, "--flag"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stderr) == (7, "")
    with open(out, "rb") as file:
        argv, name, X, model, labels = pickle.load(file)
    assert (argv, name) == ([script, out, "--flag"], "beside")
    assert type(model) is drop_ins.SVC
    assert model.certificate_.certified
    assert (model.predict(X) == labels).all()


def test_a_module(tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    (tmp_path / "trains.py").write_text(
        "import sys, sklearn.svm\nprint(__name__, sys.argv[1:], sklearn.svm.SVC)"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert patch.main(["-m", "trains", "3"]) == 0
    assert capsys.readouterr().out == f"__main__ ['3'] {drop_ins.SVC}\n"


def test_nothing_to_run(capsys: Any) -> None:
    assert patch.main([]) == 2
    assert capsys.readouterr().err.startswith("usage: python -m dualgap.patch script")
    assert patch.main(["no.py"]) == 2
    assert capsys.readouterr().err == "dualgap.patch: there is no file no.py\n"
    assert patch.main(["--help"]) == 0
    assert "usage" in capsys.readouterr().out
