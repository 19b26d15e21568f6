"""The pages about the papers say what their stored results say."""

from __future__ import annotations

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
