"""The command line trains, predicts, scores, proves and writes what Python does."""

from __future__ import annotations

import json
import shlex
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from liblinear import liblinearutil
from libsvm import svmutil
from sklearn.base import is_classifier
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning

from dualgap import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    certify,
    load_model,
    save_model,
)
from dualgap.kernel import KernelPegasos
from dualgap.losses import SmoothedHinge
from dualgap.models import write_liblinear, write_libsvm
from dualgap.models.plain import load_plain
from dualgap.solvers import SDCA, Pegasos

from ..cli.running import call, write

pytestmark = pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
#: Estimators, the options that choose them, and options by the parameters that they
#: set. Without labels, the three-class problems have all of these but weights of two.
COMMANDS: dict[Any, tuple[str, dict[str, dict[str, Any]]]] = {
    LinearSVC: ("", {
        "": {},
        "--C 0.25": {"C": 0.25},
        "-C 4": {"C": 4.0},
        "-c 4": {"C": 4.0},
        "--solver liblinear": {},
        "--lambda 0.5": {"C": 1 / (0.5 * 60)},
        "--loss hinge": {"loss": "hinge"},
        "--loss smoothed_hinge --gamma 0.25": {"loss": SmoothedHinge(0.25)},
        "--solver sdca": {"solver": "sdca"},
        "--loss hinge --solver pegasos --solver-option batch-size=6":
            {"loss": "hinge", "solver": Pegasos(batch_size=6)},
        "--loss hinge --solver pegasos --solver-option max-steps=30":
            {"loss": "hinge", "solver": Pegasos(max_steps=30)},
        "--loss hinge --solver norma --tol 1e-9 --max-iter 3":
            {"loss": "hinge", "solver": "norma", "tol": 1e-9, "max_iter": 3},
        "--solver sdca --solver-option order=cyclic": {"solver": SDCA(order="cyclic")},
        "--tol 1e-5": {"tol": 1e-5},
        "--tol 1e-12 --atol 0.1": {"tol": 1e-12, "atol": 0.1},
        "--max-iter 2000": {"max_iter": 2000},
        "--time-limit 100": {"time_limit": 100.0},
        "--no-intercept": {"fit_intercept": False},
        "--intercept-scaling 10": {"intercept_scaling": 10.0},
        "--no-penalize-intercept": {"penalize_intercept": False},
        "--class-weight balanced": {"class_weight": "balanced"},
        "--class-weight -1=2,1=0.5": {"class_weight": {-1: 2.0, 1: 0.5}},
        "--class-weight 1=2.5": {"class_weight": {-1: 1.0, 1: 2.5}},
        "--seed 5": {"random_state": 5},
        "--solver sdca --seed 5": {"solver": "sdca", "random_state": 5},
        "--n-jobs 2": {"n_jobs": 2},
        "--multi-class ovo": {"multi_class": "ovo"},
        "--multi-class crammer-singer":
            {"multi_class": "crammer_singer", "loss": "hinge"},
    }),
    SVC: ("--kernel rbf", {
        "": {},
        "--gamma 0.25": {"gamma": 0.25},
        "--kernel Gaussian -g 0.25 --solver smo": {"gamma": 0.25},
        "--kernel laplacian --gamma mean-distance":
            {"kernel": "laplacian", "gamma": "mean-distance"},
        "--kernel polynomial -d 2 -r 1 --gamma auto":
            {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": "auto"},
        "--kernel linear -C 2": {"kernel": "linear", "C": 2.0},
        "--cache 2GB": {"cache_size": 2000.0},
        "--cache '0.5 gb'": {"cache_size": 500.0},
        "--cache 64MiB": {"cache_size": 64 * 1.048576},
        "--cache 300": {"cache_size": 300.0},
        "--loss squared_hinge --solver mfw":
            {"loss": "squared_hinge", "solver": "mfw"},
        "--loss squared_hinge --solver fw --tol 1e-9 -C 100 --max-iter 2":
            {"loss": "squared_hinge", "solver": "fw", "tol": 1e-9, "C": 100.0,
             "max_iter": 2},
        "--solver block": {"solver": "block"},
        "--loss hinge": {"loss": "hinge"},
        "--lambda 0.5": {"C": 1 / (0.5 * 60)},
        "--class-weight 1=2.5": {"class_weight": {-1: 1.0, 1: 2.5}},
        "--n-jobs 2": {"n_jobs": 2},
        "--solver kernel-pegasos --tol 0.1": {"solver": "kernel-pegasos", "tol": 0.1},
        "--solver kernel-pegasos --tol 0.1 --no-intercept --solver-option "
        "batch_size=3 --solver-option sampling=random --solver-option output=average":
            {"tol": 0.1, "fit_intercept": False, "solver": KernelPegasos(
                batch_size=3, sampling="random", output="average")},
    }),
    LinearSVR: ("--task regression", {
        "--epsilon 0.2 --C 2": {"epsilon": 0.2, "C": 2.0},
        "--loss squared_epsilon_insensitive --solver newton":
            {"loss": "squared_epsilon_insensitive", "solver": "newton"},
        "--no-intercept": {"fit_intercept": False},
        "--loss quantile --quantile 0.9": {"loss": "quantile", "quantile": 0.9},
    }),
    SVR: ("--task regression --kernel rbf", {
        "--gamma 0.3": {"gamma": 0.3},
        "--loss quantile --quantile 0.9": {"loss": "quantile", "quantile": 0.9},
    }),
    LinearOneClassSVM: ("--task one-class", {"--nu 0.2": {"nu": 0.2}}),
    OneClassSVM: ("--task one-class --kernel rbf", {"--nu 0.2": {"nu": 0.2}}),
    NuSVC: ("--kernel rbf", {"--nu 0.3": {"nu": 0.3}}),
    NuSVR: ("--task regression --kernel rbf", {"--nu 0.3": {"nu": 0.3}}),
}  # fmt: skip
ROWS = [
    (kind, f"{start} {options}", parameters, labels)
    for kind, (start, table) in COMMANDS.items()
    for options, parameters in table.items()
    for labels in ([-1, 1], [-1, 1, 4])
    if is_classifier(kind()) or len(labels) == 2
]


def data(kind: Any, labels: list[int]) -> tuple[Any, Any]:
    """Write the rows, with labels or targets, and return what is in the file."""
    X, y = write("data", labels)
    if not is_classifier(kind()):
        y = X.toarray() @ np.arange(6.0) + y
        dump_svmlight_file(X, y, "data", zero_based=False)
        y = np.loadtxt("data", usecols=0)
    else:
        y = y.astype(int)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def text(*words: str) -> Any:
    """Return the numbers in the output of a command."""
    return np.loadtxt(call(*words).stdout.splitlines())


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.cases(15)
@pytest.mark.parametrize(("kind", "options", "parameters", "labels"), ROWS)
def test_models_are_those_of_python(
    kind: Any, options: str, parameters: dict[str, Any], labels: list[int]
) -> None:
    X, y = data(kind, labels)
    expected = kind(**{"random_state": 0} | parameters)
    if len(labels) > 2 and isinstance(parameters.get("class_weight"), dict):
        expected.class_weight = parameters["class_weight"] | {4: 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected.fit(X, y)
    whole = expected.certificate_
    train = ("train", "data", "model", *shlex.split(options), "--json")
    report = json.loads(call(*train, status=0 if whole.certified else 3).stdout)
    model, notes = load_model("model", return_notes=True)
    assert type(model) is kind
    assert model.get_params() == expected.get_params()
    for name in ("coef_", "dual_coef_", "intercept_", "n_support_", "classes_"):
        if hasattr(expected, name) and hasattr(model, name):
            found, wanted = getattr(model, name), getattr(expected, name)
            np.testing.assert_array_equal(found, wanted, err_msg=name)
    assert report["certified"] is whole.certified
    assert report["data"]["n"] == 60
    for told, part in zip(report["certificates"], whole.parts, strict=True):
        assert (told["primal"], told["dual"]) == (part.primal, part.dual)
        assert (told["status"], told["epochs"]) == (part.status.label, part.epochs)
        if part.name:
            pair = told.get("pair", [f"class {told.get('class')}"])
            assert " against ".join(map(str, pair)) == part.name
    save_model(model, "again", notes=notes)
    assert Path("again").read_bytes() == Path("model").read_bytes()
    check_predictions(expected, X, y)
    check_without_scikit_learn(expected, X)
    check_proofs(model, X, y)


def check_without_scikit_learn(expected: Any, X: Any) -> None:
    """Check the model that is read without scikit-learn, with and without duals."""
    save_model(expected, "duals", duals=hasattr(expected, "dual_coef_"))
    for name in ("model", "duals"):
        plain = load_plain(name)
        alone = isinstance(expected, LinearSVC) and expected.multi_class == "ovr"
        assert (plain is not None) == alone
        if plain:
            scores = plain[0].decision_function(X)
            np.testing.assert_array_equal(scores, expected.decision_function(X))
    if plain:
        np.testing.assert_array_equal(plain[0].dual_coef_, expected.dual_coef_)


def check_predictions(expected: Any, X: Any, y: Any) -> None:
    """Check what the commands say of new rows, here the old ones."""
    wanted = expected.predict(X)
    np.testing.assert_array_equal(text("predict", "data", "model"), wanted)
    report = json.loads(call("predict", "data", "model", "--json").stdout)
    assert report["labels"] == wanted.tolist()
    if hasattr(expected, "decision_function"):
        wanted = expected.decision_function(X)
        found = text("predict", "data", "model", "--scores")
        np.testing.assert_array_equal(found, wanted)
        report = json.loads(
            call("predict", "data", "model", "--scores", "--json").stdout
        )
        assert report["scores"] == wanted.tolist()
        assert "labels" not in report
    figure = "accuracy" if is_classifier(expected) else "r2"
    if hasattr(expected, "score") and getattr(expected, "loss", "") != "quantile":
        scored = json.loads(call("score", "data", "model", "--json").stdout)
        assert scored[figure] == pytest.approx(expected.score(X, y), rel=1e-12)


def check_proofs(model: Any, X: Any, y: Any) -> None:
    """Check what `certify` says, and the files that `prove` and `export` write."""
    report = json.loads(call("certify", "data", "model", "--json").stdout)
    proof = certify(model, X, y, random_state=0)
    for told, part in zip(report["certificates"], proof, strict=True):
        assert told["primal"] == pytest.approx(part.primal, rel=1e-12)
        assert told["dual"] == pytest.approx(part.dual, rel=1e-12)
    told = call("certify", "data", "model").stdout
    assert told.startswith("model: each of " if len(proof) > 1 else "model is ")
    write_peer = write_liblinear if "Linear" in type(model).__name__ else write_libsvm
    try:
        write_peer(model, "same")
    except ValueError:  # LIBLINEAR and LIBSVM have no such models
        call("export", "model", "out", status=1)
    else:
        call("export", "model", "out")
        assert Path("same").read_bytes() == Path("out").read_bytes()
        # LIBSVM's Python wrapper allots one value per row for NuSVC: it crashes there.
        if type(model).__name__ != "NuSVC" or len(model.classes_) == 2:
            check_peers(model, X)


def check_peers(model: Any, X: Any) -> None:
    """Check that LIBLINEAR or LIBSVM predict from the file what the model does."""
    wanted, clear = model.predict(X), np.ones(X.shape[0], bool)
    if hasattr(model, "decision_function"):  # votes with ties go otherwise there
        values = model.decision_function(X).reshape(len(wanted), -1)
        clear = (np.abs(values) > 1e-5).all(axis=1) & (values.shape[1] == 1)
    if "Linear" in type(model).__name__:
        theirs, predict = liblinearutil.load_model("out"), liblinearutil.predict
    else:
        theirs, predict = svmutil.svm_load_model("out"), svmutil.svm_predict
    found = np.array(predict([], X.toarray(), theirs, "-q")[0])
    np.testing.assert_allclose(found[clear], wanted[clear], rtol=1e-5)
