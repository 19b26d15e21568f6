"""Graphs for ONNX runtimes say what the model says."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dualgap import to_onnx

from .subjects import SLOW, SUBJECTS, Subject, rows, values

pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
ACCURACY = 1e-5
SIGMOID = {"kernel": "sigmoid", "gamma": 1e-6, "coef0": 0.0, "C": 1e6}
GRAPHS = SUBJECTS | {
    "SVC, sigmoid": Subject(SUBJECTS["SVC"].kind, SIGMOID),
    "LinearSVC, no bias": Subject(SUBJECTS["LinearSVC"].kind, {"fit_intercept": False}),
    "SVC, landmarks": Subject(SUBJECTS["SVC"].kind, {"solver": "nystroem"}),
}
#: Tables of labels and models of probabilities have no graphs.
NAMED = sorted(
    name
    for name, subject in GRAPHS.items()
    if not subject.labels and name not in SLOW and "Logistic" not in name
)
X, NAMES = rows(240)


def served(proto: Any, X: Any, dtype: Any) -> list[Any]:
    """Return the runtime's outputs for the rows."""
    session = ort.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: X.astype(dtype)})


@pytest.mark.cases(25)
@pytest.mark.parametrize("layout", [np.float32, np.float64, sparse.csr_matrix])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", NAMED)
def test_graphs_say_what_the_model_says(name: str, classes: int, layout: Any) -> None:
    subject = GRAPHS[name]
    names = NAMES if classes == 3 else np.where(NAMES == "ant", "ant", "bee")
    model = subject.make().fit(layout(X), subject.target(X, names))
    if layout is sparse.csr_matrix and hasattr(model, "sparsify"):
        model.sparsify()
    dtype = np.float32 if layout is np.float32 else np.float64
    found = served(to_onnx(model, dtype=dtype), X, dtype)
    exact = copy.copy(model)
    if hasattr(model, "support_vectors_"):  # no kernel values of float32
        exact.support_vectors_ = model.support_vectors_.astype(np.float64)
    told = values(exact, X.astype(dtype))
    wanted = told.get("decision_function", told["predict"])
    assert found[-1].shape == wanted.shape
    assert found[-1].dtype == dtype
    room = ACCURACY * np.abs(wanted).max()
    np.testing.assert_allclose(found[-1], wanted, rtol=0.0, atol=room)
    if len(found) > 1:
        best = np.column_stack([wanted, -wanted]) if wanted.ndim == 1 else wanted
        best = np.sort(best, axis=1)
        sure = best[:, -1] - best[:, -2] > 2.0 * room
        assert sure.mean() > 0.5
        np.testing.assert_array_equal(found[0][sure], told["predict"][sure])
