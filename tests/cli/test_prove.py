"""``dualgap prove``, and the check of what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dualgap import load_model
from dualgap_check import Proof, check

from .running import call, write


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
    assert "cannot read data.csv" in result.stderr
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
