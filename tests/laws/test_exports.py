"""Every way out of a model predicts what the model predicts, or is refused by name."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from scipy import sparse

from dualgap import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    certify,
    load_model,
    save_model,
    to_onnx,
)
from dualgap.models import (
    read_liblinear,
    read_libsvm,
    write_liblinear,
    write_libsvm,
    write_proof,
)
from dualgap.models.plain import load_plain
from dualgap.problems.reductions import REDUCTIONS, OneVsRest, Reduction
from dualgap_check import Proof, check

from .subjects import ESTIMATORS, NAMES, SUBJECTS, Subject, X, values

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::dualgap.DegenerateWarning"
)
Found = dict[str, Any]


def by_pickle(model: Any, X: Any, y: Any, path: Path) -> Found:
    return values(pickle.loads(pickle.dumps(model)), X)


def by_model_file(model: Any, X: Any, y: Any, path: Path) -> Found:
    save_model(model, path)
    found = values(load_model(path), X)
    if plain := load_plain(str(path)):
        linear, _, scaling = plain
        scores = linear.decision_function(scaling.apply(X.copy()) if scaling else X)
        np.testing.assert_allclose(scores, found["decision_function"], 1e-12, 1e-12)
    return found


def by_onnx(model: Any, X: Any, y: Any, path: Path) -> Found:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    found = []
    for dtype in (np.float32, np.float64):
        graph = to_onnx(model, dtype=dtype).SerializeToString()
        found.append(runtime.InferenceSession(graph).run(None, {"X": X.astype(dtype)}))
    (*_, near), (*_, scores) = found
    assert (near.dtype, scores.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(near, scores, rtol=0, atol=1e-5 * np.abs(scores).max())
    if hasattr(model, "offset_"):  # what is on the boundary is inside
        labels, on_it = found[1][0], model.decision_function(X) == 0.0
        np.testing.assert_array_equal(labels[on_it], 1)
    return dict(zip(("predict", "decision_function"), found[1], strict=False))


def by_liblinear(model: Any, X: Any, y: Any, path: Path) -> Found:
    write_liblinear(model, path)
    return values(read_liblinear(path), X)


def by_libsvm(model: Any, X: Any, y: Any, path: Path) -> Found:
    write_libsvm(model, path)
    found = read_libsvm(path, n_features=X.shape[1])
    if isinstance(model, SVC):  # the file does not say how many columns
        found.decision_function_shape = model.decision_function_shape
    return values(found, X)


def about_the_same(bounds: Any, model: Any) -> Found:
    """Check that bounds are about the model and its problems; they predict nothing."""
    for part, own in zip(bounds.parts, model.certificate_.parts, strict=True):
        assert part.name == own.name
        # Landmarks have a problem of their own, near that of the kernel.
        assert part.primal == pytest.approx(own.primal, rel=1e-6)
    return {}


def by_certify(model: Any, X: Any, y: Any, path: Path) -> Found:
    return about_the_same(certify(model, X, y), model)


def by_proof(model: Any, X: Any, y: Any, path: Path) -> Found:
    bounds = write_proof(model, X, y, path)
    check(Proof(path.read_bytes()))
    return about_the_same(bounds, model)


LINEAR = {LinearSVC, LinearSVR, LinearOneClassSVM}
KERNEL = {SVC, SVR, OneClassSVM}
#: The estimators that each way takes with their defaults. It may refuse all others.
WAYS: dict[Callable[[Any, Any, Any, Path], Found], set[Any]] = {
    by_certify: {*ESTIMATORS},
    by_pickle: {*ESTIMATORS},
    by_model_file: {*ESTIMATORS},
    by_onnx: LINEAR | KERNEL,
    by_liblinear: LINEAR,
    by_libsvm: KERNEL,
    by_proof: {LinearSVC, LinearSVR, SVC, SVR},
}


#: What a refusal names besides the estimator and its options.
NAMED = ("a column of y per label", "svm_type nu_")
REMEDY = re.compile(r"[;.] (give|train|use|fit|it must be|certificate_)", re.IGNORECASE)


def assert_same(found: Found, wanted: Found) -> None:
    """Check values to 1e-6 of the largest, and the labels that they decide."""
    assert not found or "predict" in found
    for name in found.keys() & wanted.keys():
        a, b = found[name], wanted[name]
        if name == "predict" and "decision_function" in wanted:
            sizes = np.abs(wanted["decision_function"]).reshape(len(b), -1)
            sure = sizes.min(axis=1) > 1e-6 * sizes.max()
            np.testing.assert_array_equal(a[sure], b[sure])
        else:
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 * np.abs(b).max())


def ways_out(subject: Subject, classes: int, layout: Any, path: Path) -> set[Any]:
    """Check all ways out of a fitted model, and return those that take it."""
    names = NAMES if classes == 3 else np.where(NAMES == "ant", "ant", "bee")
    y, taken = subject.target(X, names), set()
    if y.dtype.kind == "U":  # files of other packages need whole numbers
        y = np.unique(y, return_inverse=True)[1]
    model = subject.make(max_iter=30).fit(layout(X), y)
    if layout is sparse.csr_matrix and hasattr(model, "sparsify"):
        model.sparsify()
    wanted = values(model, X)
    for way in WAYS:
        try:
            found = way(model, X, y, path)
        except (TypeError, ValueError) as error:
            told, options = str(error), [f"{key}=" for key in subject.options]
            named = (subject.kind.__name__, *options, *NAMED)
            assert any(name in told for name in named), told
            assert REMEDY.search(told), told
        else:
            taken.add(way)
            assert_same(found, wanted)
    return taken


KINDS = SUBJECTS | {
    "LinearSVC, no bias": Subject(LinearSVC, {"fit_intercept": False}),
} | {
    f"{kind.__name__}, {kernel}": Subject(kind, {"kernel": kernel, "gamma": 0.01})
    for kind in (SVR, OneClassSVM) for kernel in ("linear", "poly", "laplacian")
}  # fmt: skip


@pytest.mark.cases(15)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", KINDS)
def test_what_leaves_says_what_the_model_says(
    name: str, layout: Any, tmp_path: Path
) -> None:
    subject = KINDS[name]
    own = {way for way, kinds in WAYS.items() if subject.kind in kinds}
    for classes in (3,) if subject.labels else (2, 3):
        taken = ways_out(subject, classes, layout, tmp_path / "model")
        assert taken >= own or name != subject.kind.__name__


class Reversed(OneVsRest):
    """The rest against each class."""

    all_signs = Reduction.all_signs

    def signs(self, codes: Any, k: int) -> Any:
        return -super().signs(codes, k)

    def costs(self, total: Any, factor: Any) -> Any:
        return super().costs(total, factor)[::-1]

    def scores(self, values: Any) -> Any:
        return -super().scores(values)


@dataclass(eq=False, repr=False)
class ReversedSVC(LinearSVC):
    """A classifier with a reduction of its own."""

    multi_class: Literal["reversed"] = "reversed"  # type: ignore[assignment]


@pytest.mark.parametrize("classes", [2, 3])
def test_a_reduction_that_exports_do_not_know_is_refused(
    classes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REDUCTIONS, "reversed", Reversed)
    subject, path = Subject(ReversedSVC), tmp_path / "model"
    assert ways_out(subject, classes, np.asarray, path) == {by_certify, by_pickle}
    y = np.where(NAMES == "ant", "ant", "bee") if classes == 2 else NAMES
    other = LinearSVC().fit(X, y)
    np.testing.assert_array_equal(ReversedSVC().fit(X, y).predict(X), other.predict(X))
