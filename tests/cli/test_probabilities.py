"""train --probability, and predict --proba."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dualgap import SVC, CalibratedClassifier, LinearSVC, calibrated, load_model
from dualgap.data import convert

from .running import call, refused, write


@pytest.mark.parametrize("options", [[], ["--kernel", "rbf", "--bounds"]])
@pytest.mark.parametrize("labels", [[-1, 1], [1, 2, 3]])
def test_probabilities_of_a_model(labels, options):
    X, y = write("data", labels)
    call("train", "data", "model", "--probability", *options)
    model = SVC() if options else LinearSVC()
    expected = calibrated(model, X, y)
    written = call("predict", "data", "model", "--proba").stdout
    found = np.array([line.split() for line in written.splitlines()], float)
    np.testing.assert_allclose(found, expected.predict_proba(X), rtol=0, atol=1e-9)
    report = json.loads(call("predict", "data", "model", "-b", "--json").stdout)
    assert report["probabilities"] == found.tolist()
    predicted = call("predict", "data", "model").stdout.split()
    assert predicted == [str(label) for label in expected.predict(X).astype(int)]
    scores = json.loads(call("predict", "data", "model", "--scores", "--json").stdout)
    decisions = expected.estimator_.decision_function(X)
    np.testing.assert_allclose(scores["scores"], decisions, rtol=0, atol=1e-9)
    loaded = load_model("model")
    assert isinstance(loaded, CalibratedClassifier)
    call("certify", "data", "model")
    if options:
        call("predict", "data", "model", "--undecided", "?")


def test_export_with_probabilities():
    runtime = pytest.importorskip("onnxruntime")
    X, _ = write("data", [1, 2, 3])
    for name, options in (("plain", []), ("scaled", ["--standardize"])):
        call("train", "data", name, "--probability", *options)
        call("export", name, f"{name}.onnx")
        session = runtime.InferenceSession(f"{name}.onnx")
        dense = X.toarray().astype(np.float32)
        _, found = session.run(None, {"X": dense})
        written = call("predict", "data", name, "--proba").stdout
        expected = np.array([line.split() for line in written.splitlines()], float)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
        call("export", name, f"{name}.liblinear")


def test_what_has_no_probabilities():
    write("data", [-1, 1])
    call("train", "data", "model")
    told = refused("predict", "data", "model", "--proba")
    assert "model is not of train --probability; train it so" in told
    told = refused("predict", "data", "model", "--probability", "--scores", status=2)
    assert "exclude each other" in told
    write("few", [1, 2, 3], n=12)
    told = refused("train", "few", "other", "--proba")
    assert "label 1 has 4 rows, but --probability needs 5" in told
    options = ("--solver", "sgd-s", "--loss", "hinge", "--max-iter", "1")
    told = call("train", "data", "other", "-b", "-q", *options, status=3).stderr
    assert told.startswith("Warning: 5 of 5 models did not converge. Worst: fold ")
    assert "Stopped at --max-iter: raise it, scale the columns, or raise --tol." in told
    convert("data", "store")
    told = refused("train", "store", "other", "--probability")
    assert "is a store, which --probability cannot use" in told
