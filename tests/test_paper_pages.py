"""The pages about the papers say what their stored results say."""

from __future__ import annotations

import copy
import importlib
import json
import sys

import pytest

from .conftest import ROOT

DOCS = ROOT / "docs" / "papers"


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script of benchmarks/papers."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    before = set(sys.modules)
    for folder in ("benchmarks", "benchmarks/papers"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(ROOT / "benchmarks") in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def stored(name):
    return json.loads((DOCS / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ["pegasos_rows", "sgd_revisited_table1"])
def test_a_page_is_what_its_results_make(script, name):
    page = script(name).page(stored(name))
    assert page.text(figure=True) == (DOCS / f"{name}.md").read_text("utf-8")


def test_a_run_of_one_set_says_nothing_of_the_others(script):
    results = stored("pegasos_rows")
    results["steps"] = {"covtype": results["steps"]["covtype"]}
    results["most"] = 10_000
    text = script("pegasos_rows").conclusion(results)
    assert "covtype" in text
    assert "10,000 steps" in text
    assert "imdb" not in text
    assert "RCV1" not in text


def test_steps_that_grow_with_the_rows_are_not_reproduced(script):
    module, results = script("pegasos_rows"), stored("pegasos_rows")
    grows, flat = copy.deepcopy(results), copy.deepcopy(results)
    for known, steps in ((grows, lambda n: n), (flat, lambda n: 1000)):
        for curves in known["steps"].values():
            curves["Pegasos"] = [[n, [steps(n)] * 3] for n, _ in curves["Pegasos"]]
    holds, fails = "**Reproduced**: On no set.", "**Not reproduced**: On no set."
    assert holds in module.conclusion(grows)
    assert fails not in module.conclusion(grows)
    assert fails in module.conclusion(flat)
    assert holds not in module.conclusion(flat)


def test_a_value_off_the_published_one_is_named(script):
    module, results = script("sgd_revisited_table1"), stored("sgd_revisited_table1")
    results["a9a"]["sgd-s"]["primal"] *= 1.01
    assert "**Not reproduced**: J of Adult, +1e-02." in module.conclusion(results)


@pytest.mark.parametrize("changed", [True, False])
def test_only_the_published_run_writes_over_its_page(script, monkeypatch, changed):
    import argparse

    common = script("common")
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--stored", action="store_true")
    monkeypatch.setattr(sys, "argv", ["x", "--stored", *["--seeds", "2"] * changed])
    folder = common.arguments(parser, "stored").output
    assert folder == (ROOT / "build" / "papers" if changed else DOCS)
