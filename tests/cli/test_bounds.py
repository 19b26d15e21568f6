"""``train --bounds`` and ``predict --undecided``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from dualgap import load_model

from .running import call, refused


@pytest.fixture(autouse=True)
def _data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)).round(3)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(80) > 0, 1, -1)
    dump_svmlight_file(X, y, "data", zero_based=False)


@pytest.mark.parametrize(
    "options",
    [(), ("--no-penalize-intercept",), ("--kernel", "rbf"), ("--multi-class", "ovo")],
)
def test_labels_that_may_change_are_told_apart(options):
    call("train", "data", "model", "--tol", "0.05", "--bounds", *options)
    plain = call("predict", "data", "model").stdout.split()
    told = call("predict", "data", "model", "--undecided", "?").stdout.split()
    assert len(told) == len(plain) == 80
    assert set(told) <= {"-1", "1", "?"}
    assert all(new in (old, "?") for old, new in zip(plain, told, strict=True))
    model = load_model("model")
    model = getattr(model, "steps", [(None, model)])[-1][1]
    assert "_optimum" in vars(model)


def test_without_a_region():
    call("train", "data", "model", "--tol", "0.05")
    assert call("predict", "data", "model", "--undecided", "?").stdout


def test_refusals():
    for task in ("classification", "regression"):
        options = ("--task", task, "--kernel", "sigmoid", "--gamma", "1e-6", "--bounds")
        told = refused("train", "data", "m", *options, status=2)
        assert "no bounds on decisions" in told
    assert not Path("m").exists()
