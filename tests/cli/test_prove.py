"""``dualgap prove``, ``train --bounds`` and ``predict --undecided``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from dualgap import load_model
from dualgap_check import Proof, check

from .running import call, refused, write


def checked(proof: str, data: str | None = None) -> int:
    content = None if data is None else Path(data).read_bytes()
    return len(check(Proof(Path(proof).read_bytes()), content))


@pytest.mark.parametrize("base", [0, 1])
def test_a_model_file_is_proved_about_its_data(base: int) -> None:
    write("data", [1, 2, 3], base=base)
    call("train", "data", "model", "--tol", "1e-4", "--quiet")
    output = call("prove", "data", "model", "proof").stdout
    assert output.startswith("proof proves: the worst part, class ")
    assert output.endswith("Next: dualgap-check proof data\n")
    assert checked("proof", "data") == 3
    report = json.loads(call("prove", "data", "model", "-o", "proof", "--json").stdout)
    assert report["compares_data"]
    for certificate in report["certificates"]:
        assert certificate["relative_gap"] <= 2e-3
    assert load_model("model").coef_.shape == (3, 6)


def test_a_kernel_model_is_proved_about_its_data() -> None:
    write("data", [1, 2])
    call("train", "data", "model", "--kernel", "rbf", "--tol", "1e-4", "--quiet")
    output = call("prove", "data", "model", "-o", "proof").stdout
    assert output.endswith("Next: dualgap-check proof data\n")
    assert checked("proof", "data") == 1


def test_a_table_is_proved_by_the_rows_in_the_proof() -> None:
    lines = [f"{i % 2},{i % 3 - i % 2},{i % 5}" for i in range(30)]
    Path("data.csv").write_text("\n".join(["y,a,b", *lines]) + "\n")
    call("train", "data.csv", "model", "--label", "y", "--quiet")
    result = call("prove", "data.csv", "model", "-o", "proof")
    assert "data.csv is not a file of plain svmlight" in result.stderr
    assert result.stdout.endswith("Next: dualgap-check proof\n")
    assert checked("proof") == 1


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_standardised_model_is_proved_about_its_data(kernel: str) -> None:
    write("data", [1, 2])
    call("train", "data", "model", "--kernel", kernel, "--standardize", "--quiet")
    output = call("prove", "data", "model", "proof").stdout
    assert output.endswith("Next: dualgap-check proof data\n")
    assert checked("proof", "data") == 1
    report = json.loads(call("prove", "data", "model", "proof", "--json").stdout)
    assert report["certificates"][0]["relative_gap"] <= 2e-3


TABLE = [
    "colour,size,weight,sold",
    *(
        f"{['red', 'blue', 'green'][i % 3]},{i % 7},{'' if i % 5 == 4 else i * 0.25},"
        f"{'yes' if i % 3 else 'no'}"
        for i in range(40)
    ),
]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("scaled", [False, True])
def test_words_and_missing_values_are_proved_as_numbers(
    kernel: str, scaled: bool
) -> None:
    Path("data.csv").write_text("\n".join(TABLE) + "\n")
    options = [
        "--label",
        "sold",
        "--missing",
        "mean",
        *(["--standardize"] if scaled else []),
    ]
    call("train", "data.csv", "model", "--kernel", kernel, *options, "--quiet")
    result = call("prove", "data.csv", "model", "proof")
    assert "about the numbers in the proof file" in result.stderr
    proof = Proof(Path("proof").read_bytes())
    assert len(check(proof)) == 1
    assert (proof.d, proof.scaled) == (5, scaled)


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
