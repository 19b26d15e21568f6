"""train --probability and predict --proba; several labels a line of svmlight text."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import accuracy_score, f1_score, hamming_loss
from sklearn.preprocessing import MultiLabelBinarizer

from dualgap import SVC, CalibratedClassifier, LinearSVC, calibrated, load_model
from dualgap.data import load_svmlight

from .running import call, interrupt, write

#: The loop trains each problem.
DESCENT = ("--solver", "dcd", "--loss", "hinge")


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
    told = call("predict", "data", "model", "-b")
    assert told.stderr.startswith(
        f"Columns: {', '.join(f'{label:g}' for label in expected.classes_)}.\n"
    )
    report = json.loads(call("predict", "data", "model", "-b", "--json").stdout)
    assert report["probabilities"] == found.tolist()
    assert report["classes"] == expected.classes_.tolist()
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


@pytest.mark.parametrize("runs", [2, 3])
def test_ctrl_c_leaves_a_model_without_probabilities(runs, monkeypatch):
    """In the fit of the model, after one that checks options, and in the first fold."""
    write("data", [-1, 1])
    begun = interrupt(monkeypatch, runs)
    done = call("train", "data", "model", "--probability", *DESCENT, status=130)
    assert "the model has no probabilities" in done.stderr
    assert len(begun) == runs
    assert isinstance(load_model("model"), LinearSVC)
    refused = call("predict", "data", "model", "--proba", status=1)
    assert "train it with --probability" in refused.stderr


def test_folds_that_did_not_converge_are_told():
    write("data", [-1, 1])
    options = ("--solver", "sgd-s", "--loss", "hinge", "--max-iter", "1")
    told = call("train", "data", "other", "-b", "-q", *options, status=3).stderr
    assert told.startswith("Warning: 5 of 5 models did not converge. Worst: fold ")
    assert "Stopped at --max-iter: raise it, scale the columns, or raise --tol." in told


NAMES = ("art", "news", "sport")


def several(name="data", names=NAMES, n=120, seed=0):
    """Lines with 0 to 3 labels each, and one that only a comment follows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(3)
    Y = X[:, :3] + 0.5 * X[:, [3]] + 0.3 * rng.normal(size=(n, 3)) > 0.2
    lines = [
        ",".join(np.array(names)[own])
        + "".join(f" {j + 1}:{v}" for j, v in enumerate(x))
        for x, own in zip(X, Y, strict=True)
    ]
    Path(name).write_text("\n".join([*lines[:9], "# text", "", *lines[9:]]) + "\n")
    return X, Y.astype(int)


@pytest.mark.parametrize("names", [NAMES, ("1", "12", "7")])
def test_several_labels_are_trained_predicted_and_scored(names) -> None:
    X, Y = several(names=names)
    told = call("train", "data", "m", "--several-labels")
    assert "120 examples, 4 features, 3 labels" in told.stderr
    assert "all 3 labels within" in told.stdout
    expected = LinearSVC().fit(sparse.csr_matrix(X), Y)
    model = load_model("m")
    assert model.classes_.tolist() == sorted(names)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    predicted = expected.predict(X)
    lines = [",".join(np.array(names)[row == 1]) for row in predicted]
    result = call("predict", "data", "m")
    assert result.stdout.split("\n")[:-1] == lines
    report = json.loads(call("score", "data", "m", "--json").stdout)
    assert report["exact_matches"] == accuracy_score(Y, predicted)
    assert report["micro_f1"] == pytest.approx(f1_score(Y, predicted, average="micro"))
    assert report["hamming_loss"] == pytest.approx(hamming_loss(Y, predicted))
    assert f"exact matches {100 * report['exact_matches']:.2f} %" in result.stderr
    assert json.loads(call("predict", "data", "m", "--json").stdout)["labels"] == lines
    scores = np.loadtxt(io.StringIO(call("predict", "data", "m", "--scores").stdout))
    np.testing.assert_allclose(scores, expected.decision_function(X), rtol=1e-9)
    told = call("certify", "data", "m").stdout
    assert "each of 3 problems is within" in told
    assert any(f"Worst: label {name}." in told for name in names)


def test_new_labels_and_rows_without_labels() -> None:
    several()
    call("train", "data", "m", "--several-labels")
    rows = [f"{label} 1:1 2:1" for label in ("art,new", "new", "")]
    Path("new").write_text("\n".join(rows))
    told = call("predict", "new", "m")
    assert "new: labels unknown to the model: 2" in told.stderr
    assert len(told.stdout.splitlines()) == 3
    Path("t.csv").write_text("1,2,3,4\n5,6,7,8\n")
    assert "DATA has no labels" in call("predict", "t.csv", "m").stderr


def test_the_reader_agrees_with_scikit_learn() -> None:
    several(names=("2", "10", "31"))
    X, labels = load_svmlight("data", multilabel=True)
    other, expected = load_svmlight_file("data", multilabel=True)
    assert (X != other).nnz == 0
    assert [tuple(map(float, own)) for own in labels] == expected
    table = MultiLabelBinarizer().fit_transform(labels)
    assert table.shape == (120, 3)
    with pytest.raises(ValueError, match="line 2, column 5"):
        load_svmlight(io.BytesIO(b"1,2 1:3\n1,2 x\n"), multilabel=True)
    with pytest.raises(ValueError, match="multilabel"):
        load_svmlight("data", multilabel=1.5)
