"""Training and prediction without scikit-learn: the same models and files, sooner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dualgap import LinearSVC, load_model, save_model
from dualgap.data import load_svmlight
from dualgap.models.plain import DEFAULTS, PlainLinearSVC, load_plain
from dualgap.solvers import SDCA

from .running import call, refused, write

HEAVY = {"sklearn", "pandas", "joblib", "matplotlib"}


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("labels", "options", "parameters"),
    [
        ([-1, 1], [], {}),
        ([3, 1, 2], ["--C", "0.3"], {"C": 0.3}),
        ([0, 1], ["--no-penalize-intercept"], {"penalize_intercept": False}),
        ([0, 1], ["--no-intercept", "--seed", "3"], {"fit_intercept": False}),
        ([0, 1, 4], ["--loss", "squared_hinge"], {"loss": "squared_hinge"}),
        (
            [0, 1],
            ["--solver", "sdca", "--solver-option", "order=random"],
            {"solver": SDCA(order="random")},
        ),
    ],
)
def test_the_model_is_that_of_linear_svc(
    labels: list[int], options: list[str], parameters: dict[str, object]
) -> None:
    write("data", labels)
    call("train", "data", "model", *options)
    found = load_model("model")
    X, y = load_svmlight("data")
    seed = 3 if "--seed" in options else 0
    wanted = LinearSVC(**parameters, random_state=seed).fit(X, y)
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
    np.testing.assert_array_equal(found.intercept_, wanted.intercept_)
    np.testing.assert_array_equal(found.n_support_, wanted.n_support_)
    np.testing.assert_array_equal(found.classes_, wanted.classes_)
    assert found.get_params() == wanted.get_params()
    assert found.certificate_.primal == wanted.certificate_.primal
    assert found.certificate_.dual == wanted.certificate_.dual
    # Prediction without scikit-learn too.
    plain, *_ = load_plain("model")
    assert isinstance(plain, PlainLinearSVC)
    scores = plain.decision_function(X)
    np.testing.assert_array_equal(scores, wanted.decision_function(X))
    save_model(wanted, "duals", duals=True)
    stored, *_ = load_plain("duals")
    np.testing.assert_array_equal(stored.decision_function(X), scores)
    np.testing.assert_array_equal(stored.dual_coef_, wanted.dual_coef_)
    # The file is the one that save_model writes.
    save_model(found, "again", notes=load_model("model", return_notes=True)[1])
    assert Path("again").read_bytes() == Path("model").read_bytes()


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
