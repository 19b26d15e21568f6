"""Model files: exact round trips, nothing believed, nothing half written."""

from __future__ import annotations

import copy
import errno
import json
import os
import pickle
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.svm import LinearSVC as OtherLinearSVC

from dualgap import SVC, LinearSVC, load_model, save_model
from dualgap.data import model_file as model_io
from dualgap.kernel import Laplacian
from dualgap.losses import LOSSES, Hinge, SmoothedHinge
from dualgap.solvers import DCD, SDCA, SOLVERS, Pegasos, SGDm, SvmSGD

from ..conftest import examples

CLASSES = {
    "int64": np.array([-(2**62), -1, 2**62 + 1]),
    "int32": np.array([1, 2, 7], dtype=np.int32),
    "uint8": np.array([0, 200, 255], dtype=np.uint8),
    "uint64": np.array([0, 1, 2**64 - 1], dtype=np.uint64),
    "float64": np.array([-1.0, 0.0, 3.0]),
    "float32": np.array([-1.0, 0.0, 3.0], dtype=np.float32),
    "str": np.array(["", "cat", "Übung \N{SNOWMAN} 'quoted\""]),
    "object": np.array(["a", "b\0", "ba"], dtype=object),
    "bool": np.array([False, True]),
}


def data(classes: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.arange(40) % len(classes)
    X = rng.standard_normal((40, 5))
    X[:, 0] += codes
    return X, classes[codes]


def trained(classes: np.ndarray = CLASSES["int64"], **parameters: Any) -> LinearSVC:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearSVC(random_state=0, **parameters).fit(*data(classes))


def round_trip(model: LinearSVC, folder: Path, **options: Any) -> LinearSVC:
    save_model(model, folder / "model.safetensors", **options)
    return load_model(folder / "model.safetensors")


# ------------------------------------------------------------------------ round trips


def fitted_with(model: LinearSVC, **parameters: Any) -> LinearSVC:
    """Return a model with other parameters, as if its fit had had them."""
    model.set_params(**parameters)
    model._note_parameters()
    return model


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("kind", CLASSES)
def test_everything_comes_back_exactly(tmp_path: Path, kind: str, count: int) -> None:
    model = trained(CLASSES[kind][-count:])
    found = round_trip(model, tmp_path, duals=True)
    assert type(found) is LinearSVC
    for name in ("coef_", "intercept_", "classes_", "support_", "dual_coef_"):
        old, new = getattr(model, name), getattr(found, name)
        assert old.dtype == new.dtype
        np.testing.assert_array_equal(old, new, strict=True)
        assert new.flags.writeable
    assert [type(label) for label in found.classes_] == [
        type(label) for label in model.classes_
    ]
    assert (found.n_features_in_, found.n_iter_) == (5, model.n_iter_)


RECORDS = [
    DCD(shrinking="none"),
    SDCA(order="cyclic", init="sgd", output="average"),
    Pegasos(batch_size=np.int64(7), projection=True, sampling="random"),
    SGDm(repeats=3, period=4, run=2),
    SvmSGD(initial_step=0.1 + 0.2),
    SvmSGD(initial_step=1),
]
#: Values that a model may have for its parameters, beside their defaults.
PARAMETERS: list[dict[str, Any]] = [
    *({"solver": solver.name, "loss": loss.name}
      for solver in SOLVERS.values() for loss in LOSSES.values()),
    *({"solver": solver(), "loss": loss()}
      for solver in SOLVERS.values() for loss in LOSSES.values()),
    *({"solver": solver, "loss": SmoothedHinge(0.1 + 0.2)} for solver in RECORDS),
    {"class_weight": {"x": 1.5, "y": 2}},
    {
        "C": float(np.float32(0.1)), "tol": 1, "time_limit": 12.5,
        "fit_intercept": np.False_, "penalize_intercept": np.True_,
        "class_weight": {-1: 2, 2**62 + 1: np.float64(0.1), -(2**62): 0.0},
        "warm_start": True, "n_jobs": np.int32(1), "verbose": True,
        "random_state": np.int64(7),
    },
]  # fmt: skip


def test_parameters_of_every_type(tmp_path: Path) -> None:
    model = trained()
    for parameters in PARAMETERS:
        again = fitted_with(copy.copy(model), **parameters)
        found = round_trip(again, tmp_path)
        assert found.get_params() == again.get_params()
        assert type(found.solver) is type(again.solver)
    assert round_trip(fitted_with(model, C=np.float32(0.1)), tmp_path).C == model.C


def test_feature_names(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = data(CLASSES["str"])
    X = pandas.DataFrame(X, columns=["a", "b", "ä", "d e", ""])
    model = LinearSVC(random_state=0).fit(X, y)
    found = round_trip(model, tmp_path)
    np.testing.assert_array_equal(
        found.feature_names_in_, model.feature_names_in_, strict=True
    )
    found.predict(X)
    with pytest.raises(ValueError, match="feature names"):
        found.predict(X[["b", "a", "ä", "d e", ""]])


def test_notes(tmp_path: Path) -> None:
    notes = {"a": None, "b": True, "c": 3, "d": 0.1 + 0.2, "e": "text", "": ""}
    save_model(trained(), tmp_path / "m", notes=notes)
    assert load_model(tmp_path / "m", return_notes=True)[1] == notes
    save_model(trained(), tmp_path / "m")
    assert load_model(tmp_path / "m", return_notes=True)[1] == {}


def test_sparse_coefficients_are_written_dense(tmp_path: Path) -> None:
    model = trained()
    dense = model.coef_.copy()
    found = round_trip(model.sparsify(), tmp_path)
    assert sparse.issparse(model.coef_)
    np.testing.assert_array_equal(found.coef_, dense)


def test_the_certificate_is_about_the_numbers_in_the_file(tmp_path: Path) -> None:
    X, y = data(CLASSES["int64"])
    save_model(trained(C=0.3, loss="hinge", tol=1e-5), tmp_path / "m", duals=True)
    tensors = safetensors.numpy.load_file(tmp_path / "m")
    certificates = load_model(tmp_path / "m").certificate_.parts
    for k, label in enumerate(CLASSES["int64"]):
        w, b = tensors["coef"][k], tensors["intercept"][k]
        margins = np.where(y == label, 1, -1) * (X @ w + b)
        primal = 0.5 * (w @ w + b * b) + 0.3 * np.maximum(0, 1 - margins).sum()
        assert primal == pytest.approx(certificates[k].primal, rel=1e-12)
        v, rows = tensors["dual_coef"][k], np.c_[X, np.ones(len(X))][tensors["support"]]
        dual = np.abs(v).sum() - 0.5 * np.sum((v @ rows) ** 2)
        assert dual == pytest.approx(certificates[k].dual, rel=1e-12)
        assert 0 <= (primal - dual) / dual <= 1e-5


def test_readable_without_dualgap(tmp_path: Path) -> None:
    model = trained()
    save_model(model, tmp_path / "m")
    X, _ = data(CLASSES["int64"], seed=2)
    np.save(tmp_path / "X.npy", X)
    program = """
import json, sys
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file
tensors = load_file("m")
with safe_open("m", framework="numpy") as file:
    record = json.loads(file.metadata()["dualgap"])
scores = np.load("X.npy") @ tensors["coef"].T + tensors["intercept"]
classes = record["classes"]["values"]
print([classes[k] for k in scores.argmax(axis=1)])
assert "dualgap" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True
    )
    assert json.loads(done.stdout) == model.predict(X).tolist()


@pytest.mark.long
@pytest.mark.parametrize("kernel", [False, True])
def test_loading_runs_no_code(tmp_path: Path, kernel: bool) -> None:
    # An audit hook sees whatever compiles, imports or starts something.
    model: Any = trained(solver=SDCA(), loss=Hinge())
    if kernel:
        model = SVC(kernel=Laplacian(gamma=0.3)).fit(*data(CLASSES["int64"]))
    save_model(model, tmp_path / "m", duals=not kernel)
    program = """
import sys
from dualgap import load_model
load_model("m")  # imports what it needs
def hook(event, arguments):
    if event in {"exec", "compile", "import", "pickle.find_class", "marshal.loads",
                 "subprocess.Popen", "os.system", "ctypes.dlopen"}:
        raise SystemExit(f"{event} {arguments}")
sys.addaudithook(hook)
load_model("m")
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


# ---------------------------------------------------------------------- what is refused


@dataclass(frozen=True)
class OwnSolver(DCD):
    name: ClassVar[str] = "dcd"


@dataclass(frozen=True)
class OwnLoss(Hinge):
    name = "own"


class Derived(LinearSVC):
    pass


#: What is wrong with a model, and a part of what is said of it.
CHANGES: list[tuple[Callable[[Any], Any], str]] = [
    *((lambda m, given=given: fitted_with(m, **given), words) for given, words in (
        ({"random_state": np.random.RandomState(0)}, "give an int"),
        ({"solver": OwnSolver()}, "is not a record of dualgap"),
        ({"loss": OwnLoss()}, "is not a record of dualgap"),
        ({"C": np.inf}, "C=inf is not finite"),
        ({"C": -1.0}, "'C' parameter"),
        ({"class_weight": {(1, 2): 1.0}}, "class_weight="),
        ({"class_weight": {1: "heavy"}}, "weights must be numbers"))),
    *((lambda m, name=name, value=value: setattr(m, name, value(m)), words)
      for name, value, words in (
        ("coef_", lambda m: m.coef_[:2], "coef has shape"),
        ("coef_", lambda m: m.coef_ * np.nan, "coef contains NaN"),
        ("intercept_", lambda m: m.intercept_ + np.inf, "intercept contains NaN"),
        ("certificate_", lambda m: m.certificate_.parts[0], "1 certificates"),
        ("classes_", lambda m: m.classes_[::-1], "not sorted"),
        ("classes_", lambda m: m.classes_.astype("datetime64[s]"), "datetime64"),
        ("classes_", lambda m: np.array([1, "a", 2.0], dtype=object),
         "not all of dtype object"))),
]  # fmt: skip


#: Calls of `save_model` that are refused: the error, its model, options and words.
SAVED: list[tuple[Any, Any, dict[str, Any], str]] = [
    *((ValueError, change, {}, words) for change, words in CHANGES),
    *((ValueError, lambda m: m, {"notes": notes}, words) for notes, words in (
        ({"a": [1]}, "a="), ({"a": np.nan}, "a="), ({1: "a"}, "is not a string"))),
    (ValueError, lambda m: delattr(m, "dual_coef_"), {"duals": True},
     "has no dual variables"),
    (NotFittedError, lambda m: LinearSVC(), {}, "not fitted"),
    *((TypeError, lambda m, other=other: other, {},
       f"model is a {type(other).__name__}")
      for other in (OtherLinearSVC(), Derived(), {"coef_": 1})),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize(("error", "change", "options", "words"), SAVED)
def test_models_that_a_file_cannot_hold(
    tmp_path: Path, error: Any, change: Any, options: Any, words: str
) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"old")
    model = trained()
    other = change(model)
    with pytest.raises(error, match=words):
        save_model(model if other is None else other, path, **options)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m"]


def test_missing_safetensors_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(trained(), tmp_path / "m")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError, match=r"pip install 'dualgap\[cli\]'"):
        load_model(tmp_path / "m")
    with pytest.raises(ImportError, match=r"pip install 'dualgap\[cli\]'"):
        save_model(trained(), tmp_path / "m")


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    model, missing = trained(), tmp_path / "missing"
    for error, words, call in (
        (FileNotFoundError, None, lambda: load_model(missing)),
        (IsADirectoryError, None, lambda: load_model(tmp_path)),
        (FileNotFoundError, "no such folder", lambda: save_model(model, missing / "m")),
        (IsADirectoryError, None, lambda: save_model(model, tmp_path)),
        (OSError, "not a regular file", lambda: save_model(model, os.devnull)),
    ):
        with pytest.raises(error, match=words):
            call()
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "m"
    save_model(trained(solver=SDCA(), class_weight={-1: 2.0}), path, duals=True)
    return path.read_bytes()


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a valid dualgap model") as caught:
        load_model(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_digits_that_change_no_number_are_refused(
    tmp_path: Path, content: bytes
) -> None:
    at = content.index(b'\\"tol\\":0.001') + len(b'\\"tol\\":0.001')
    longer = content[:at] + b"0" + content[at:]
    size = int.from_bytes(content[:8], "little") + 1
    edited = size.to_bytes(8, "little") + longer[8:]
    assert "damaged or edited" in refused(tmp_path / "m", edited)


def test_truncated_files_are_refused(tmp_path: Path, content: bytes) -> None:
    for length in [*range(0, len(content), 11), len(content) - 1]:
        refused(tmp_path / "m", content[:length])
    refused(tmp_path / "m", content + b"\0")


@settings(
    max_examples=examples(500),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(choice=st.data())
def test_flipped_bits_are_refused(
    tmp_path: Path, content: bytes, choice: st.DataObject
) -> None:
    damaged = bytearray(content)
    position = choice.draw(st.integers(0, len(content) - 1))
    damaged[position] ^= 1 << choice.draw(st.integers(0, 7))
    refused(tmp_path / "m", bytes(damaged))


@settings(
    max_examples=examples(300),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(noise=st.binary(max_size=300), header=st.booleans())
def test_random_bytes_are_refused(tmp_path: Path, noise: bytes, header: bool) -> None:
    if header:  # past the first look
        noise = len(noise).to_bytes(8, "little") + b"{" + noise
    refused(tmp_path / "m", noise)


@pytest.mark.parametrize(
    "other",
    [
        b"",
        b"+1 1:0.5 3:1\n-1 2:1\n",
        pickle.dumps(trained()),
        safetensors.numpy.save({"weight": np.zeros(3)}),
        safetensors.numpy.save({"weight": np.zeros(3)}, {"format": "pt"}),
        safetensors.numpy.save({"coef": np.zeros(3)}, {"dualgap": "[" * 100_000}),
        safetensors.numpy.save({"coef": np.zeros(3)}, {"dualgap": "1" * 100_000}),
        safetensors.numpy.save({"coef": np.zeros(3)}, {"dualgap": "null"}),
        b"\xff" * 8 + b"{" * 100,
    ],
    ids=range(9),
)
def test_other_files_are_refused(tmp_path: Path, other: bytes) -> None:
    refused(tmp_path / "m", other)


def signed(record: dict[str, Any], tensors: dict[str, np.ndarray]) -> bytes:
    """A file with a right checksum, as someone who means harm would write it."""
    record["sha256"] = model_io.digest(record, tensors)
    text = json.dumps(record, separators=(",", ":"))
    return safetensors.numpy.save(tensors, {"dualgap": text})


def parts(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    record = json.loads(header["__metadata__"]["dualgap"])
    tensors = {k: v.copy() for k, v in safetensors.numpy.load(content).items()}
    return record, tensors


def test_signed_is_what_is_accepted(tmp_path: Path, content: bytes) -> None:
    # Else the tests below would be refused for their checksum alone.
    (tmp_path / "m").write_bytes(signed(*parts(content)))
    load_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        ("format", "other", "does not have the format dualgap-model"),
        ("format_version", 2, "pip install --upgrade dualgap"),
        ("format_version", True, "pip install --upgrade dualgap"),
        ("extra", 1, "has unexpected fields"),
        ("estimator", "RidgeSVM", "estimator 'RidgeSVM' is unknown"),
        ("estimator", ["LinearSVC"], "estimator in its record is a list"),
        ("parameters.C", -1.0, "'C' parameter"),
        ("parameters.C", 1e999, "its record contains Infinity"),
        ("parameters.loss", "zero_one", "'loss' parameter"),
        ("parameters.__class__", "x", "its parameters are"),
        ("parameters", {}, "its parameters are"),
        ("parameters.solver", {"record": "own", "fields": {}}, "is unknown"),
        ("parameters.solver", {"record": "sdca", "fields": {}}, "needs the fields"),
        ("parameters.solver.fields.order", "up", "order='up' has a wrong type"),
        ("parameters.C", {"record": "sdca", "fields": {}}, "is unknown"),
        ("parameters.class_weight", {"pairs": [[1]]}, "unpack"),
        ("parameters.class_weight", {"pairs": [[1, "x"]]}, "must be numbers"),
        ("classes.dtype", "datetime64[s]", "cannot hold classes"),
        ("classes.dtype", "int8", "do not fit into int8"),
        ("classes", {"dtype": "float16", "values": [0.0, 1.0, 1e300]}, "float16"),
        ("classes", {"dtype": "float32", "values": [0.0, 0.1, 1.0]}, "float32"),
        ("classes", {"dtype": "uint8", "values": [0, 1, 2**70]}, "fit into uint8"),
        ("classes.values", [1.0, 2.0, 3.0], "not all of dtype int64"),
        ("classes.values", [True, 2, 3], "not all of dtype int64"),
        ("classes.values", [3, 2, 1], "not sorted"),
        ("classes.values", [1, 1, 2], "not sorted"),
        ("classes.values", [1], "2 classes"),
        ("classes.values", [1, 2], "coef has shape"),
        ("classes.values", list(range(100)), "coef has shape"),
        ("n_features", 4, "coef has shape"),
        ("n_features", True, "n_features in its record is a bool"),
        ("n_rows", None, "it has the tensors"),
        ("n_rows", 39, "outside the 39 training rows"),
        ("feature_names", ["a"], "must be 5 strings"),
        ("feature_names", [1, 2, 3, 4, 5], "must be 5 strings"),
        ("certificates", [], "0 certificates"),
        ("certificates.0.status", "proved", "has an unknown status"),
        ("certificates.0.primal", None, "primal=None has a wrong type"),
        ("certificates.0.epochs", -1, "negative number of epochs"),
        ("certificates.0.epochs", 1.5, "epochs=1.5 has a wrong type"),
        ("certificates.0.solver", 1, "solver=1 has a wrong type"),
        ("notes", {"a": []}, "a="),
    ],
)
def test_records_that_are_not_believed(
    tmp_path: Path, content: bytes, where: str, value: Any, words: str
) -> None:
    record, tensors = parts(content)
    *path, last = (int(key) if key.isdigit() else key for key in where.split("."))
    place: Any = record
    for key in path:
        place = place[key]
    place[last] = value
    if value == float("inf"):
        raw = json.dumps(record)
        (tmp_path / "m").write_bytes(safetensors.numpy.save(tensors, {"dualgap": raw}))
        assert words in refused(tmp_path / "m", (tmp_path / "m").read_bytes())
    else:
        assert words in refused(tmp_path / "m", signed(record, tensors))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t["coef"].__setitem__((0, 0), np.nan), "coef contains NaN"),
        (lambda t: t["dual_coef"].__setitem__((0, 0), np.inf), "dual_coef contains"),
        (lambda t: t["n_support"].__setitem__(1, -1), "n_support does not match"),
        (lambda t: t.pop("intercept"), "it has the tensors"),
        *((lambda t, name=name, make=make: t.update({name: make(t)}), words)
          for name, make, words in (
            ("coef", lambda t: t["coef"][:, :4].copy(), "coef has shape"),
            ("coef", lambda t: t["coef"].ravel(), "coef has shape"),
            ("coef", lambda t: t["coef"].astype(np.float32), "not of type F64"),
            ("intercept", lambda t: np.zeros((3, 1)), "intercept has shape"),
            ("support", lambda t: t["support"][::-1].copy(), "support is not"),
            ("support", lambda t: t["support"] * 0, "support is not sorted"),
            ("support", lambda t: t["support"] - 1 - t["support"][0],
             "has indices outside"),
            ("support", lambda t: t["support"].astype(float), "not of type I64"),
            ("support", lambda t: np.zeros((2, 2), np.int64), "support"),
            ("support", lambda t: np.array(3), "support"),
            ("other", lambda t: np.zeros(1), "it has the tensors"))),
    ],
)  # fmt: skip
def test_tensors_that_are_not_believed(
    tmp_path: Path, content: bytes, change: Any, words: str
) -> None:
    record, tensors = parts(content)
    change(tensors)
    assert words in refused(tmp_path / "m", signed(record, tensors))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.text(max_size=5), children, max_size=4)
    ),
    max_leaves=6,
)


@settings(
    max_examples=examples(500),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(choice=st.data())
def test_any_record_loads_or_is_refused(
    tmp_path: Path, content: bytes, choice: st.DataObject
) -> None:
    loads_or_is_refused(tmp_path, content, choice)


def loads_or_is_refused(tmp_path: Path, content: bytes, choice: st.DataObject) -> None:
    """Change a record of a model file, and use what is loaded from it."""
    record, tensors = parts(content)
    place: Any = record
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = choice.draw(st.sampled_from(keys))
        deeper = isinstance(place[key], (dict, list)) and len(place[key]) > 0
        if not deeper or choice.draw(st.booleans()):
            break
        place = place[key]
    place[key] = choice.draw(JSON)
    path = tmp_path / "m"
    path.write_bytes(signed(record, tensors))
    message = ""
    try:
        model = load_model(path)
    except ValueError as error:
        message = str(error)
    if message:
        assert str(path) in message
    else:
        model.predict(np.zeros((1, 5)))
        save_model(model, path)
        load_model(path)


# ----------------------------------------------------------------------- atomic writing


@pytest.mark.parametrize(
    ("step", "error"),
    [("fsync", OSError(errno.ENOSPC, "No space left")), ("fsync", KeyboardInterrupt()),
     ("replace", OSError(errno.ENOSPC, "No space left"))],
)  # fmt: skip
def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    def fail(*arguments: Any) -> None:
        raise error

    path = tmp_path / "m"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        save_model(trained(), path)
    assert os.listdir(tmp_path) == ["m"]
    assert path.read_bytes() == b"old"


WRITE = """
import os, resource, signal, sys
import numpy as np
from dualgap import LinearSVC, save_model
model = LinearSVC().fit(np.eye(2), [0, 1])
{before}
save_model(model, "m")
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits and signals")
@pytest.mark.parametrize(
    ("before", "status", "litter"),
    [
        # The kernel stops the write in the middle, as on a full disk.
        (
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))",
            1,
            0,
        ),
        # Nobody can tidy up after SIGKILL, but the old file stays.
        ("os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)", -9, 1),
    ],
    ids=["full disk", "SIGKILL"],
)
def test_a_process_that_dies_while_writing_leaves_the_old_file(
    tmp_path: Path, before: str, status: int, litter: int
) -> None:
    path = tmp_path / "m"
    save_model(trained(), path)
    old = path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", WRITE.format(before=before)],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert path.read_bytes() == old
    others = [name for name in os.listdir(tmp_path) if name != "m"]
    assert len(others) == litter
    assert all(name.startswith(".m.") and name.endswith(".tmp") for name in others)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        save_model(trained(), tmp_path / "m")
        assert stat.S_IMODE(os.stat(tmp_path / "m").st_mode) == 0o640
        os.chmod(tmp_path / "m", 0o604)
        save_model(trained(), tmp_path / "m")
        assert stat.S_IMODE(os.stat(tmp_path / "m").st_mode) == 0o604
    finally:
        os.umask(before)


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege")
def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "m"
    link.symlink_to(tmp_path / "folder" / "model")
    save_model(trained(), link)
    save_model(trained(), link)
    assert link.is_symlink()
    load_model(tmp_path / "folder" / "model")
    assert os.listdir(tmp_path / "folder") == ["model"]


def test_long_names(tmp_path: Path) -> None:
    save_model(trained(), tmp_path / ("m" * 255))
    load_model(tmp_path / ("m" * 255))
