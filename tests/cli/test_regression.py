"""The command line for regression and one class."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from liblinear import liblinearutil
from libsvm import svmutil
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.metrics import mean_pinball_loss

from dualgap import (
    SVR,
    LinearOneClassSVM,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    load_model,
)

from .running import call, refused


def write(name="data", n=60, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 2.0
    dump_svmlight_file(
        X, X @ rng.normal(size=d) + rng.normal(size=n), name, zero_based=False
    )
    return load_svmlight_file(name, zero_based=False)


CASES = [
    (LinearSVR, ("--epsilon", "0.2", "--C", "2"), {"epsilon": 0.2, "C": 2.0}),
    (
        LinearSVR,
        ("--loss", "squared_epsilon_insensitive", "--solver", "newton"),
        {"loss": "squared_epsilon_insensitive", "solver": "newton"},
    ),
    (LinearSVR, ("--no-intercept",), {"epsilon": 0.0, "fit_intercept": False}),
    (SVR, ("--kernel", "rbf", "--gamma", "0.3"), {"kernel": "rbf", "gamma": 0.3}),
    (LinearOneClassSVM, ("--nu", "0.2"), {"nu": 0.2}),
    (OneClassSVM, ("--nu", "0.2", "--kernel", "rbf"), {"nu": 0.2}),
]


@pytest.mark.parametrize(("kind", "options", "settings"), CASES)
def test_train_predict_certify_export(kind, options, settings):
    X, y = write()
    regression = "nu" not in settings
    task = "regression" if regression else "one-class"
    told = call("train", "data", "model", "--task", task, "--tol", "1e-6", *options)
    assert told.stdout.startswith("Converged: within ")
    figure = "mean squared error" if regression else "outliers"
    assert f"On the training rows: {figure} " in told.stdout
    assert ("targets from" in told.stderr) == regression
    expected = kind(**settings, tol=1e-6)
    if "random_state" in expected.get_params():
        expected.set_params(random_state=0)
    expected.fit(X, y)
    found = load_model("model")
    assert type(found) is kind
    values = expected.predict(X)
    np.testing.assert_array_equal(found.predict(X), values)
    report = json.loads(
        call("train", "data", "other", "--task", task, "--json", *options).stdout
    )
    assert report["certified"]
    assert "class" not in report["certificates"][0]
    for name, value in settings.items():
        if name != "fit_intercept":
            assert report["parameters"][name] == value

    told = call("predict", "data", "model", "--json")
    report = json.loads(told.stdout)
    np.testing.assert_array_equal(report["labels"], values)
    if regression:
        assert report["mean_squared_error"] == pytest.approx(np.mean((y - values) ** 2))
        assert report["r2"] == pytest.approx(expected.score(X, y))
        scored = json.loads(call("score", "data", "model", "--json").stdout)
        assert scored["mean_absolute_error"] == pytest.approx(np.mean(abs(y - values)))
        assert scored["r2"] == report["r2"]
        assert "R2 0." in call("predict", "data", "model").stderr
    else:
        report = json.loads(
            call("predict", "data", "model", "--scores", "--json").stdout
        )
        np.testing.assert_array_equal(report["scores"], expected.decision_function(X))

    again = json.loads(call("certify", "data", "model", "--json").stdout)
    assert abs(again["certificates"][0]["relative_gap"]) < 2e-6
    call("export", "model", "peer")
    if hasattr(found, "kernel"):
        theirs = svmutil.svm_load_model("peer")
        labels = svmutil.svm_predict(y, X, theirs, "-q")[0]
    else:
        theirs = liblinearutil.load_model("peer")
        labels = liblinearutil.predict(y, sparse.csr_matrix(X), theirs, "-q")[0]
    clear = np.ones(len(y), bool)
    if not regression:
        clear = np.abs(expected.decision_function(X)) > 1e-6
    np.testing.assert_allclose(np.array(labels)[clear], values[clear], rtol=1e-6)
    given = ["--nu", "0.2"]
    if regression:
        given = [
            "--C",
            "2" if "C" in settings else "1",
            "--epsilon",
            str(found.epsilon),
        ]
    # a file of eight digits is not quite what was written
    theirs = json.loads(call("certify", "data", "peer", *given, "--json").stdout)
    assert abs(theirs["certificates"][0]["relative_gap"]) < 1e-4


@pytest.mark.parametrize("kernel", [(), ("--kernel", "rbf")])
def test_quantiles(kernel):
    X, y = write()
    how = ("--task", "regression", "--loss", "quantile", "--quantile", "0.9", *kernel)
    told = call("train", "data", "model", *how)
    assert told.stdout.startswith("Converged: within ")
    kind = SVR if kernel else LinearSVR
    expected = kind(loss="quantile", quantile=0.9, random_state=0).fit(X, y)
    np.testing.assert_array_equal(load_model("model").predict(X), expected.predict(X))
    again = json.loads(call("certify", "data", "model", "--json").stdout)
    assert abs(again["certificates"][0]["relative_gap"]) < 2e-3
    figures = json.loads(call("score", "data", "model", "--json").stdout)
    predicted = expected.predict(X)
    loss = mean_pinball_loss(y, predicted, alpha=0.9)
    assert figures["mean_pinball_loss"] == pytest.approx(loss)
    assert figures["targets_at_or_below"] == np.mean(y <= predicted)
    assert "r2" not in figures
    assert "targets at or below" in told.stdout
    pulled = call("train", "data", "other", *how, "--C", "0.01").stderr
    assert ("use --intercept-scaling 100, or --kernel linear" in pulled) != bool(kernel)
    told = refused("prove", "data", "model", "proof")
    assert "quantile has no proof file; dualgap certify proves the gap" in told
    assert "within" in call("certify", "data", "model").stdout


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_nu(task):
    X, y = write()
    labels = np.where(y > np.median(y), 1, -1) if task == "classification" else y
    dump_svmlight_file(X, labels, "data", zero_based=False)
    how = ("--task", task, "--kernel", "rbf", "--nu", "0.3")
    told = call("train", "data", "model", *how)
    assert told.stdout.startswith("Converged: within ")
    found = load_model("model")
    assert type(found) is (NuSVC if task == "classification" else NuSVR)
    expected = type(found)(nu=0.3, random_state=0).fit(X, labels)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-6)
    again = json.loads(call("certify", "data", "model", "--json").stdout)
    assert abs(again["certificates"][0]["relative_gap"]) < 2e-3
    call("export", "model", "peer")
    theirs = svmutil.svm_load_model("peer")
    values = svmutil.svm_predict(labels, X, theirs, "-q")[0]
    np.testing.assert_allclose(values, found.predict(X), rtol=1e-5)


def test_inspect_tells_targets_from_classes():
    write()
    assert "none: targets from -" in call("inspect", "data").stdout


def test_labels_of_one_class_are_judged():
    X, _ = write()
    dump_svmlight_file(
        X, np.r_[np.ones(30), -np.ones(30)], "labelled", zero_based=False
    )
    call("train", "labelled", "model", "--task", "one-class", "--nu", "0.1")
    assert "accuracy" in call("predict", "labelled", "model").stderr


def test_predictions_without_targets_are_not_scored():
    Path("t.csv").write_text("a,b,y\n1,0,0.5\n2,1,1.5\n4,1,3.25\n")
    Path("new.csv").write_text("a,b\n1,0\n2,1\n")
    call("train", "t.csv", "model", "--task", "regression")
    told = call("predict", "new.csv", "model").stderr
    assert told == "Not scored: DATA has no labels.\n"


@pytest.mark.parametrize("kernel", [(), ("--kernel", "linear")])
def test_predictions_of_chance_are_told(kernel):
    X = np.random.default_rng(0).normal(size=(40, 3))
    dump_svmlight_file(np.vstack([X, -X]), np.zeros(80), "data", zero_based=False)
    told = call("train", "data", "model", "--task", "one-class", "--quiet", *kernel)
    assert told.stdout.startswith("Converged")
    assert told.stderr.count("\n") == 1
    assert told.stderr.startswith("Warning: ")
    assert "rounding decides the predictions, because no plane separates" in told.stderr
    again = call("train", "data", "model", "--task", "one-class", "--kernel", "rbf")
    assert "Warning" not in again.stderr
