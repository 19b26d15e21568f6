"""train --probability, and predict --proba."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dualgap import SVC, CalibratedClassifier, LinearSVC, calibrated, load_model
from dualgap.data import load_svmlight

from .running import call, write


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


@pytest.mark.parametrize("labels", [[-1, -1, -1, 1], [1, 2, 3]])
def test_all_commands_judge_the_labels_of_the_largest_probability(labels):
    _, y = write("data", labels, n=200, seed=3)
    trained = call("train", "data", "model", "-b", "--json").stdout
    expected = json.loads(trained)["training"]["accuracy"]
    labels = np.array(call("predict", "data", "model").stdout.split(), float)
    assert expected == (labels == y).mean()
    scored = json.loads(call("score", "data", "model", "--json").stdout)
    assert scored["accuracy"] == expected
    decisions = load_model("model").estimator_.predict(load_svmlight("data")[0])
    assert (decisions != labels).any()  # else the test shows nothing


def test_folds_that_did_not_converge_are_told():
    write("data", [-1, 1])
    options = ("--solver", "sgd-s", "--loss", "hinge", "--max-iter", "1")
    told = call("train", "data", "other", "-b", "-q", *options, status=3).stderr
    assert told.startswith("Warning: 5 of 5 models did not converge. Worst: fold ")
    assert "Stopped at --max-iter: raise it, scale the columns, or raise --tol." in told
