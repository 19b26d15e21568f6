"""Model files of SVC; tests/data/test_model_file.py has LinearSVC and the format."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import dualgap.data
from dualgap import (
    SVC,
    LinearSVC,
    load_model,
    save_model,
)
from dualgap.data import model_file as format_
from dualgap.kernel import (
    APPROXIMATIONS,
    KERNEL_SOLVERS,
    Precomputed,
)

from ..conftest import examples
from ..data.test_model_file import loads_or_is_refused, parts, refused, signed


def data(classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.arange(40) % classes
    X = rng.standard_normal((40, 5))
    X[:, 0] += codes
    return X, np.array([-1, 1, 7])[codes]


def trained(classes: int = 3, layout: Any = np.asarray, **parameters: Any) -> SVC:
    X, y = data(classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SVC(random_state=0, **parameters).fit(layout(X), y)


def round_trip(model: SVC, folder: Path) -> SVC:
    save_model(model, folder / "model.safetensors")
    return load_model(folder / "model.safetensors")


def test_precomputed(tmp_path: Path) -> None:
    X, y = data()
    for kernel in ("precomputed", Precomputed()):
        model = SVC(kernel=kernel, random_state=0).fit(X @ X.T, y)
        found = round_trip(model, tmp_path)
        new = data(seed=1)[0] @ X.T
        np.testing.assert_array_equal(
            found.decision_function(new), model.decision_function(new)
        )


@pytest.mark.parametrize("solver", (KERNEL_SOLVERS | APPROXIMATIONS).values())
def test_every_solver_by_name_and_as_a_record(tmp_path: Path, solver: Any) -> None:
    model = trained()
    for value in (solver.name, solver()):
        model.set_params(solver=value)  # the file holds what get_params says
        assert round_trip(model, tmp_path).get_params() == model.get_params()


def test_io_holds_the_format_only() -> None:
    assert not hasattr(dualgap.data, "load_model")
    code = (
        "import sys, dualgap.data.model_file\n"
        "assert 'dualgap.estimators' not in sys.modules\n"
        "assert 'dualgap.kernel' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_readable_without_dualgap(tmp_path: Path) -> None:
    model = trained(2, gamma=0.25)
    save_model(model, tmp_path / "m")
    X, _ = data(2, seed=2)
    np.save(tmp_path / "X.npy", X)
    program = """
import json, sys
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file
t = load_file("m")
with safe_open("m", framework="numpy") as file:
    record = json.loads(file.metadata()["dualgap"])
X = np.load("X.npy")
assert record["kernel"]["record"] == "rbf"
gamma = record["kernel"]["fields"]["gamma"]
square = ((X[:, None] - t["support_vectors"]) ** 2).sum(axis=2)
scores = np.exp(-gamma * square) @ t["dual_coef"][0] + t["intercept"]
print([record["classes"]["values"][int(score > 0)] for score in scores])
assert "dualgap" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True
    )
    assert json.loads(done.stdout) == model.predict(X).tolist()


# ---------------------------------------------------------------------- what is refused


def content(**options: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save_model(trained(**options), Path(folder) / "m")
        return (Path(folder) / "m").read_bytes()


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        ("estimator", "LinearSVC", "has unexpected fields"),
        ("kernel", {"record": "rbf", "fields": {}}, "RBF needs the fields"),
        ("kernel", {"record": "callable", "fields": {"function": "x"}}, "is unknown"),
        ("kernel", {"record": "os.system", "fields": {}}, "is unknown"),
        ("kernel", {}, "is unknown"),
        ("kernel.fields.gamma", "scale", "gamma"),
        ("kernel.fields.gamma", -1.0, "gamma=-1.0"),
        ("kernel.fields.gamma", [1.0], "has a wrong type"),
        ("parameters.kernel", "os.system", "'kernel' parameter"),
        ("parameters.loss", "zero_one", "'loss' parameter"),
        ("parameters.solver", "dcd", "'solver' parameter"),
        ("n_features", 4, "support_vectors has shape"),
        ("n_rows", 10, "outside the 10 training rows"),
        ("n_rows", None, "its record lacks n_rows"),
        ("certificates", [], "0 certificates, but should have 3"),
        ("classes.values", [1, 2], "has shape"),
    ],
)
def test_records_that_are_not_believed(
    tmp_path: Path, where: str, value: Any, words: str
) -> None:
    record, tensors = parts(content())
    *path, last = where.split(".")
    place: Any = record
    for key in path:
        place = place[key]
    place[last] = value
    assert words in refused(tmp_path / "m", signed(record, tensors))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda t: t["dual_coef"].__setitem__((0, 0), np.nan),
            "dual_coef contains NaN",
        ),
        (lambda t: t["support_vectors"].__setitem__((0, 0), np.inf), "contains NaN"),
        (lambda t: t.update(dual_coef=t["dual_coef"][:, :2].copy()), "has shape"),
        (lambda t: t.update(intercept=t["intercept"][:2].copy()), "has shape"),
        (lambda t: t["n_support"].__setitem__(0, -1), "does not match the"),
        (lambda t: t["n_support"].__setitem__(0, 2**62), "does not match the"),
        (lambda t: t["support"].__setitem__(0, -1), "has indices outside"),
        (lambda t: t.pop("support"), "it has the tensors"),
        (lambda t: t.pop("support_vectors"), "it has the tensors"),
        (
            lambda t: t.update(support_vectors=t["support_vectors"].astype(np.int64)),
            "not of type F32 or F64",
        ),
    ],
)
def test_tensors_that_are_not_believed(tmp_path: Path, change: Any, words: str) -> None:
    record, tensors = parts(content())
    change(tensors)
    assert words in refused(tmp_path / "m", signed(record, tensors))


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("indices", lambda a: a.__setitem__(0, 5)),
        ("indices", lambda a: a.__setitem__(0, -1)),
        ("indices", lambda a: a.__setitem__(0, 2**40)),
        ("indices", lambda a: a.__setitem__(1, a[0])),
        ("indptr", lambda a: a.__setitem__(0, 1)),
        ("indptr", lambda a: a.__setitem__(-1, 2)),
        ("indptr", lambda a: a.__setitem__(1, 2**40)),
        ("indptr", lambda a: a.__setitem__(1, -3)),
    ],
)
def test_sparse_vectors_that_are_not_believed(
    tmp_path: Path, part: str, change: Any
) -> None:
    record, tensors = parts(content(layout=sparse.csr_matrix))
    change(tensors[f"support_vectors.{part}"])
    assert "not a valid CSR matrix" in refused(tmp_path / "m", signed(record, tensors))


CONTENT = content()


@settings(
    max_examples=examples(200),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(choice=st.data())
def test_any_record_loads_or_is_refused(tmp_path: Path, choice: st.DataObject) -> None:
    loads_or_is_refused(tmp_path, CONTENT, choice)


def test_linear_models_are_told_apart(tmp_path: Path) -> None:
    X, y = data()
    save_model(LinearSVC().fit(X, y), tmp_path / "linear")
    save_model(trained(), tmp_path / "kernel")
    assert isinstance(load_model(tmp_path / "linear"), LinearSVC)
    assert isinstance(load_model(tmp_path / "kernel"), SVC)
    record, tensors = format_.read(str(tmp_path / "linear"))
    record["estimator"] = "SVC"
    assert "has unexpected fields" in refused(tmp_path / "m", signed(record, tensors))
