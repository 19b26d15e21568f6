"""Model files of SVC, skops, compress; tests/data/test_model_file.py has LinearSVC."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from dualgap import SVC, LinearSVC, certify, compress, load_model, save_model
from dualgap import save_model as save
from dualgap.certificate import Status
from dualgap.kernel import APPROXIMATIONS, KERNEL_SOLVERS, RBF, Precomputed
from dualgap.losses import SquaredHinge
from dualgap.models import compression
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD

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
    for value in (solver.name, solver()):
        model = trained(loss="squared_hinge", solver=value, max_iter=2)
        assert round_trip(model, tmp_path).get_params() == model.get_params()


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


def put(name, place, value):
    return lambda tensors: tensors[name].__setitem__(place, value)


CSR = "not a valid CSR matrix"
INDICES, INDPTR = "support_vectors.indices", "support_vectors.indptr"


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("dual_coef", (0, 0), np.nan), "dual_coef contains NaN"),
        (put("support_vectors", (0, 0), np.inf), "contains NaN"),
        (lambda t: t.update(dual_coef=t["dual_coef"][:, :2].copy()), "has shape"),
        (lambda t: t.update(intercept=t["intercept"][:2].copy()), "has shape"),
        *((put("n_support", 0, k), "does not match the") for k in (-1, 2**62)),
        (put("support", 0, -1), "has indices outside"),
        (lambda t: t.pop("support"), "it has the tensors"),
        (lambda t: t.pop("support_vectors"), "it has the tensors"),
        (
            lambda t: t.update(support_vectors=t["support_vectors"].astype(np.int64)),
            "not of type F32 or F64",
        ),
        *((put(INDICES, 0, k), CSR) for k in (5, -1, 2**40)),
        (lambda t: t[INDICES].__setitem__(1, t[INDICES][0]), CSR),
        *((put(INDPTR, k, v), CSR) for k, v in ((0, 1), (-1, 2), (1, 2**40), (1, -3))),
    ],
)
def test_tensors_that_are_not_believed(tmp_path: Path, change: Any, words: str) -> None:
    layout = sparse.csr_matrix if words == CSR else np.asarray
    record, tensors = parts(content(layout=layout))
    change(tensors)
    assert words in refused(tmp_path / "m", signed(record, tensors))


CONTENT = content()


@settings(
    max_examples=examples(200),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(choice=st.data())
def test_any_record_loads_or_is_refused(tmp_path: Path, choice: st.DataObject) -> None:
    loads_or_is_refused(tmp_path, CONTENT, choice)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "serving.md"


def documented():
    """The types that the page tells readers to trust."""
    listed = re.search(r"TRUSTED = \[(.*?)\]", PAGE.read_text("utf-8"), re.DOTALL)
    return re.findall(r"\"([\w.]+)\"", listed.group(1))


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        LinearSVC(loss=SquaredHinge(), solver=DCD(), random_state=0),
        SVC(),
        SVC(kernel="poly", decision_function_shape="ovo"),
        SVC(kernel=RBF(gamma=0.5), solver="nystroem", random_state=0),
    ],
    ids=["linear", "records", "rbf", "poly", "landmarks"],
)
def test_dumped_and_loaded(model):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    if getattr(model, "solver", "auto") == "auto":
        model.bound_optimum(pipeline[:-1].transform(X), y)
    data = skops.dumps(pipeline)
    unknown = set(skops.get_untrusted_types(data=data))
    own = {name for name in unknown if name.startswith("dualgap.")}
    assert unknown == own
    with pytest.raises(TypeError, match="Untrusted types"):
        skops.loads(data)
    loaded = skops.loads(data, trusted=[*documented(), *extra(model)])
    np.testing.assert_array_equal(
        loaded.decision_function(X), pipeline.decision_function(X)
    )
    assert [str(c) for c in loaded[-1].certificate_] == [
        str(c) for c in model.certificate_
    ]
    assert loaded[-1].get_params() == model.get_params()


def extra(model):
    """Records that were given as parameters: trusted by who chose them."""
    records = [p for p in vars(model).values() if type(p).__module__[:8] == "dualgap."]
    return [f"{type(r).__module__}.{type(r).__qualname__}" for r in records]


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("penalised", [True, False])
def test_linear_models_lose_duals_and_coefficients(loss, kind, penalised):
    X, y = cancer()
    X = np.hstack([X, 0.01 * np.random.default_rng(0).normal(size=X.shape)])
    model = LinearSVC(
        C=0.1, loss=loss, tol=1e-4, penalize_intercept=penalised, random_state=0
    ).fit(kind(X), y)
    smaller = compress(model, kind(X), y, tol=0.02)
    c = smaller.certificate_
    assert model.certificate_.relative_gap < c.relative_gap <= 0.02
    assert c.dual <= model.certificate_.primal * (1 + 1e-12)
    assert c.certified
    assert np.count_nonzero(smaller.coef_) < 0.7 * np.count_nonzero(model.coef_)
    assert len(smaller.support_) < len(model.support_)
    assert certify(smaller, kind(X), y).relative_gap <= 0.02 * 1.01
    # The old one is as it was.
    again = LinearSVC(
        C=0.1, loss=loss, tol=1e-4, penalize_intercept=penalised, random_state=0
    ).fit(kind(X), y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    np.testing.assert_array_equal(model.dual_coef_, again.dual_coef_)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_certificate_is_that_of_the_smaller_model(loss):
    """The room for rounding is that of the new proof, too, not what the fit had."""
    X, y = cancer()
    X = X + 1e6
    model = LinearSVC(C=0.1, loss=loss, fit_intercept=False, tol=0.1, random_state=0)
    model.fit(X, y)
    smaller = compress(model, X, y, tol=0.5)
    alpha = np.zeros(len(y))
    alpha[smaller.support_] = np.abs(smaller.dual_coef_[0])
    problem = Problem(X, np.where(y == 1, 1, -1), 0.1, loss=loss)
    proof, found = problem.certify(smaller.coef_[0], alpha), smaller.certificate_
    assert found.primal == proof.primal
    # The dual point is scaled once more, which rounds.
    assert found.dual == pytest.approx(proof.dual, abs=0.01 * found.rounding)
    assert found.rounding == pytest.approx(proof.rounding, rel=1e-3)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_several_classes_weights_and_files(multi_class, tmp_path):
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = LinearSVC(class_weight="balanced", tol=1e-6, multi_class=multi_class)
    model.fit(X, y, weight)
    smaller = compress(model, X, y, tol=0.1, sample_weight=weight)
    assert all(c.relative_gap <= 0.1 for c in smaller.certificate_)
    found = certify(smaller, X, y, sample_weight=weight, tol=1e-8)
    assert all(c.relative_gap <= 0.1 for c in found)
    assert len(smaller.support_) < len(model.support_)
    save(smaller, tmp_path / "model", duals=True)
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), smaller.predict(X))
    # and it can be trained on
    loaded.set_params(warm_start=True).fit(X, y, weight)
    assert all(c.relative_gap <= 1e-6 for c in loaded.certificate_)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_kernel_models_lose_support_vectors(loss, kind):
    X, y = cancer()
    model = SVC(loss=loss, gamma=0.02, random_state=0).fit(kind(X), y)
    smaller = compress(model, kind(X), y, tol=0.05)
    c, size = smaller.certificate_, len(smaller.support_)
    assert size < 0.6 * len(model.support_)
    assert smaller.support_vectors_.shape[0] == smaller.n_support_.sum() == size
    assert model.certificate_.relative_gap < c.relative_gap <= 0.05
    assert c.dual <= model.certificate_.primal * (1 + 1e-12)
    assert certify(smaller, kind(X), y).relative_gap <= 0.05 * 1.01


def test_pairs_and_precomputed_kernels():
    X, y = load_iris(return_X_y=True)
    model = SVC(C=10.0, gamma=0.5, random_state=0).fit(X, y)
    smaller = compress(model, X, y, tol=0.1)
    assert len(smaller.support_) < len(model.support_)
    assert all(c.relative_gap <= 0.1 for c in smaller.certificate_)
    assert all(c.relative_gap <= 0.1 for c in certify(smaller, X, y, tol=1e-6))
    assert smaller.decision_function(X).shape == (150, 3)
    K = rbf_kernel(X, gamma=0.5)
    given = SVC(C=10.0, kernel="precomputed", random_state=0).fit(K, y)
    fewer = compress(given, K, y, tol=0.1)
    assert all(c.relative_gap <= 0.1 for c in fewer.certificate_)
    assert (fewer.predict(K) == smaller.predict(X)).mean() > 0.99


@pytest.mark.parametrize("most", [1, 20, 30, 10**6])
def test_a_limit_of_support_vectors_leaves_a_proved_gap(most):
    X, y = cancer()
    model = SVC(gamma=0.02, random_state=0).fit(X, y)
    smaller = compress(model, X, y, tol=0.05, max_support=most)
    c = smaller.certificate_
    assert len(smaller.support_) <= most
    assert c.certified == (c.relative_gap <= 0.05) == (most == 10**6)
    assert (c.status is Status.SUPPORT_LIMIT) == (not c.certified)
    again = certify(smaller, X, y)
    assert again.primal == pytest.approx(c.primal, rel=1e-9)
    assert again.dual <= c.primal


def test_many_support_vectors_are_replaced_by_a_few():
    """More than are ordered by pivots, in a time in proportion to their number."""
    X = np.random.default_rng(0).standard_normal((7000, 2))
    y = np.random.default_rng(1).integers(0, 2, 7000)
    model = SVC(gamma=0.5).fit(X, y)
    assert len(model.support_) > 5000
    smaller = compress(model, X, y, max_support=40)
    assert len(smaller.support_) <= 40
    assert smaller.certificate_.relative_gap < 0.02


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_without_room_for_features_the_old_decisions_are_interpolated(
    loss, monkeypatch
):
    settings = replace(compression._SETTINGS, features=0.0)
    monkeypatch.setattr(compression, "_SETTINGS", settings)
    X, y = cancer()
    X, y = np.concatenate([X, X[:9]]), np.concatenate([y, y[:9]])  # equal rows
    model = SVC(gamma=0.02, loss=loss, random_state=0).fit(X, y)
    smaller = compress(model, X, y, max_support=60)
    found = smaller.certificate_
    assert certify(smaller, X, y).primal == pytest.approx(found.primal, rel=1e-9)
    kept = smaller.support_vectors_
    old = model.decision_function(kept) - model.intercept_
    new = smaller.decision_function(kept) - smaller.intercept_
    np.testing.assert_allclose(new, old * (new @ old / (old @ old)), atol=1e-5)
    for factor in (0.9, 1.1):
        other = copy.copy(smaller)
        other.dual_coef_ = factor * smaller.dual_coef_
        with pytest.warns(UserWarning, match="its objective is"):
            assert certify(other, X, y).primal > found.primal


def test_more_to_spend_is_a_smaller_model():
    X, y = cancer()
    model = SVC(random_state=0).fit(X, y)
    sizes = [len(compress(model, X, y, tol=t).support_) for t in (0.001, 0.01, 0.1)]
    assert sizes[0] > sizes[1] > sizes[2]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_fit_finds_dual_variables_that_a_model_lacks(loss):
    """scikit-learn's patched models have none, nor have files without them."""
    X, y = cancer()
    model = LinearSVC(loss=loss, random_state=0).fit(X, y)
    del model.dual_coef_, model.support_, model.n_support_
    smaller = compress(model, X, y, tol=0.1)
    assert smaller.certificate_.relative_gap <= 0.1
    assert certify(smaller, X, y, tol=1e-6).relative_gap <= 0.1
    assert np.count_nonzero(smaller.coef_) < np.count_nonzero(model.coef_)
