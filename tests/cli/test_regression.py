"""The command line for regression and one class."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.metrics import mean_pinball_loss

from dualgap import (
    SVR,
    LinearOneClassSVM,
    LinearSVR,
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
def test_files_of_peers_are_certified_with_their_options(kind, options, settings):
    X, y = write()
    task = "one-class" if "nu" in settings else "regression"
    told = call("train", "data", "model", "--task", task, "--tol", "1e-6", *options)
    figure = "outliers" if "nu" in settings else "mean squared error"
    assert f"On the training rows: {figure} " in told.stdout
    assert ("targets from" in told.stderr) == (task == "regression")
    call("export", "model", "peer")
    model = load_model("model")
    assert type(model) is kind
    given = ["--nu", "0.2"]
    if task == "regression":
        given = ["--C", str(model.C), "--epsilon", str(model.epsilon)]
        figures = json.loads(call("score", "data", "model", "--json").stdout)
        apart = y - model.predict(X)
        assert figures["mean_absolute_error"] == pytest.approx(np.mean(abs(apart)))
        report = json.loads(call("predict", "data", "model", "--json").stdout)
        assert report["mean_squared_error"] == pytest.approx(np.mean(apart**2))
        assert report["r2"] == figures["r2"]
        assert "R2 0." in call("predict", "data", "model").stderr
    # a file of eight digits is not quite what was written
    theirs = json.loads(call("certify", "data", "peer", *given, "--json").stdout)
    assert abs(theirs["certificates"][0]["relative_gap"]) < 1e-4


@pytest.mark.parametrize("kernel", [(), ("--kernel", "rbf")])
def test_quantiles(kernel):
    X, y = write()
    how = ("--task", "regression", "--loss", "quantile", "--quantile", "0.9", *kernel)
    told = call("train", "data", "model", *how)
    assert told.stdout.startswith("Converged: within ")
    figures = json.loads(call("score", "data", "model", "--json").stdout)
    predicted = load_model("model").predict(X)
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
