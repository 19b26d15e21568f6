"""Training and prediction without scikit-learn: the same models and files, sooner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dualgap import LinearSVC, load_model, save_model
from dualgap.models.plain import DEFAULTS, load_plain

from .running import call, refused, write

HEAVY = {"sklearn", "pandas", "joblib", "matplotlib"}


def test_the_defaults_are_those_of_linear_svc() -> None:
    assert LinearSVC().get_params() == DEFAULTS


def test_options_of_solvers_that_are_words() -> None:
    write("data", [-1, 1])
    options = ("--solver", "dcd", "--solver-option")
    call("train", "data", "model", *options, "shrinking=none")
    assert load_model("model").solver.shrinking == "none"
    told = refused("train", "data", "other", *options, "shrinking=3", status=2)
    assert told.startswith("dualgap train: --solver-option shrinking=3: use ")
    assert "none" in told


def test_a_standardised_table() -> None:
    Path("data.csv").write_text("a,b,kind\n1,20,x\n2,10,y\n3,25,x\n5,30,z\n")
    call("train", "data.csv", "model", "--standardize")
    pipeline, notes = load_model("model", return_notes=True)
    save_model(pipeline, "again", notes=notes)
    assert Path("again").read_bytes() == Path("model").read_bytes()
    scores = np.loadtxt(
        call("predict", "data.csv", "model", "--scores").stdout.splitlines()
    )
    X = pd.DataFrame({"a": [1.0, 2, 3, 5], "b": [20.0, 10, 25, 30]})
    np.testing.assert_allclose(scores, pipeline.decision_function(X))


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "options", [["--multi-class", "ovo"], ["--kernel", "rbf"], ["--task", "one-class"]]
)
def test_other_models_are_read_with_scikit_learn(options: list[str]) -> None:
    write("data", [0, 1, 2])
    call("train", "data", "model", *options)
    assert load_plain("model") is None
    assert call("predict", "data", "model").stdout.count("\n") == 60
    whole = Path("model").read_bytes()
    Path("model").write_bytes(whole[:-8])
    assert load_plain("model") is None
    assert "model is not a valid dualgap model" in refused("predict", "data", "model")


def imported(*arguments: str) -> set[str]:
    code = (
        "import sys; from dualgap.cli import run\n"
        "assert run(sys.argv[1:]) == 0\n"
        "print('modules', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {*done.stdout.splitlines()[-1].split()}


@pytest.mark.long
def test_a_small_file_needs_no_scikit_learn() -> None:
    write("data", [-1, 1], n=1600)
    Path("data.csv").write_text("a,b,kind\n1,20,x\n2,10,y\n3,25,x\n5,30,z\n")
    for arguments in (
        ("train", "data", "model"),
        ("predict", "data", "model"),
        ("score", "data", "model"),
        ("train", "data.csv", "other", "--standardize", "--solver", "dcd"),
        ("predict", "data.csv", "other"),
    ):
        spared = HEAVY if arguments[0] == "train" else {*HEAVY, "dualgap.solvers"}
        assert not imported(*arguments) & spared, arguments
