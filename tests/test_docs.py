"""The code of the pages, of the docstrings and of the gallery does what is written."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import dualgap

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
#: What a page or an example needs beyond what is installed with dualgap.
NEEDS = {
    "start.md": (
        *("matplotlib", "onnx", "onnxruntime"),
        *("safetensors", "skl2onnx", "typer"),
    ),
    "serving.md": ("onnx", "onnxruntime", "skl2onnx", "skops"),
    "plot_dask.py": ("dask", "distributed"),
}


def blocks(page):
    """The blocks of a page that have prompts, with the line where each begins."""
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        if ">>> " in found[1]:
            yield found[1], text.count("\n", 0, found.start()) + 1


RUNNABLE = [page for page in PAGES if any(blocks(page))]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_code_of_the_pages(page, tmp_path, monkeypatch):
    """The blocks of a page follow one another, in a folder of its own."""
    for package in NEEDS.get(page.name, ()):
        pytest.importorskip(package, reason=f"{package} is not installed")
    if page.name == "start.md":
        importlib.import_module("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    parser, names = doctest.DocTestParser(), {}
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    for source, line in blocks(page):
        test = parser.get_doctest(source, names, page.name, str(page), line)
        runner.run(test, clear_globs=False)
        names = test.globs
    assert runner.tries > 0
    assert runner.failures == 0
    if page.name == "start.md":
        commands = re.findall(r"^\$ (dualgap .*)$", page.read_text("utf-8"), re.M)
        assert len(commands) == 3
        for command in commands:
            arguments = [sys.executable, "-m", *command.split()]
            run = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
            assert run.returncode == 0, run.stderr


def test_pages_with_code_are_found():
    names = {page.name for page in RUNNABLE}
    assert {"README.md", "start.md", "certificate.md", "serving.md"} <= names


def modules():
    """Those whose docstrings have examples."""
    package = Path(dualgap.__file__).parent
    for found in pkgutil.walk_packages([str(package)], "dualgap."):
        path = package.joinpath(*found.name.split(".")[1:])
        file = path / "__init__.py" if found.ispkg else path.with_suffix(".py")
        if file.is_file() and re.search(r"^\s*>>> ", file.read_text("utf-8"), re.M):
            yield found.name


@pytest.mark.parametrize("name", sorted(modules()))
def test_examples_of_the_docstrings(name, tmp_path, monkeypatch):
    if name.endswith(".export"):
        pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_gallery_runs(path, monkeypatch):
    """Each by itself; what it claims, it asserts."""
    for package in ("matplotlib", *NEEDS.get(path.name, ())):
        pytest.importorskip(package, reason=f"{package} is not installed")
    plt = importlib.import_module("matplotlib.pyplot")
    plt.switch_backend("agg")
    if path.name == "plot_dask.py":  # leaves threads and warnings to nobody
        run = subprocess.run(
            [sys.executable, str(path)],
            env=os.environ | {"MPLBACKEND": "agg"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, run.stderr
        return
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path))
    assert plt.get_fignums()
    plt.close("all")


def test_what_the_answers_to_demand_name_is_there():
    text = (ROOT / "docs" / "demand.md").read_text("utf-8")
    named = re.findall(r"`((?:tests|examples)/[\w/.]+)(?:::(\w+))?`", text)
    assert len(named) > 25
    for file, function in named:
        source = (ROOT / file).read_text("utf-8")
        assert not function or f"def {function}(" in source, f"{file}::{function}"
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 20
    for name in (
        *("svm_path", "LinearSVCCV", "compress", "certify", "partial_fit"),
        *("LinearSVR", "OneClassSVM", "ConvergenceDisplay", "MarginDisplay"),
    ):
        assert f"`{name}`" in text, name


@pytest.mark.parametrize("module", ["", "io", "plot", "distributed"])
def test_every_public_name_is_in_the_reference(module):
    if module == "distributed":
        pytest.importorskip("distributed", reason="distributed is not installed")
    text = (ROOT / "docs" / "site" / "api.md").read_text("utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$|^`(\w+)` is", text, re.M))
    listed = {name for names in listed for name in names}
    found = importlib.import_module(f"dualgap.{module}".rstrip("."))
    prefix = f"{module}." if module else ""
    assert found.__all__
    for name in found.__all__:
        # what a module gives again is listed where it is first
        again = hasattr(dualgap, name) and name in dualgap.__all__ and module == "io"
        assert prefix + name in listed or (again and name in listed), prefix + name


def test_the_examples_that_were_asked_for_are_there():
    names = {path.stem for path in EXAMPLES} | {"blood_cells"}
    assert names >= {
        *("plot_text", "blood_cells", "plot_digits", "plot_path", "plot_dask"),
        *("plot_custom_solver", "plot_out_of_core", "plot_certify"),
    }


def test_the_modules_are_there_after_one_import():
    code = "import dualgap\nfor name in sorted(dualgap._MODULES - {'distributed'}):\n"
    code += "    assert getattr(dualgap, name).__name__ == f'dualgap.{name}'\n"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
