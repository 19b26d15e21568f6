"""The gallery is in order, its examples run, and their reports are true."""

from __future__ import annotations

import ast
import csv
import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dualgap.certificate import Status

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "examples"
EXAMPLES = sorted(GALLERY.rglob("plot_*.py"))
#: Examples of the fast suite. `--all` runs the others, too.
FAST = {"plot_first_model", "plot_novelty", "plot_svr"}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path.stem in FAST else pytest.mark.long)
        for path in EXAMPLES
    ],
    ids=lambda path: path.stem,
)
@pytest.mark.cases(None)
def test_an_example_runs_and_draws(path, monkeypatch, tmp_path):
    """Run each by itself. What it claims, it asserts."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.chdir(tmp_path)
    if path.stem == "plot_optuna":
        pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks")
    if path.stem == "plot_dask":  # leaves threads and warnings behind
        pytest.importorskip("distributed", reason="distributed is not installed")
        run = subprocess.run(
            [sys.executable, str(path)],
            env=os.environ | {"MPLBACKEND": "agg"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, run.stderr
        return
    plt = importlib.import_module("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.setattr(sys, "argv", [str(path)])
    try:
        runpy.run_path(str(path))
        assert plt.get_fignums()
    finally:
        plt.close("all")


def test_the_gallery_has_sections_titles_and_pictures():
    sections = [folder for folder in GALLERY.iterdir() if folder.is_dir()]
    sections = {folder.name for folder in sections if folder.name[0] not in "._"}
    assert {path.parent.name for path in EXAMPLES} == sections
    order = re.search(
        r'"subsection_order": \[.*?\],',
        (ROOT / "docs" / "conf.py").read_text("utf-8"),
        re.S,
    )[0]
    assert sections == set(re.findall(r'"(\w+)"', order.partition("for name in")[2]))
    for name in sections:
        lines = (GALLERY / name / "GALLERY_HEADER.rst").read_text("utf-8").split("\n")
        assert lines[1] == "-" * len(lines[0])
    titles = set()
    for path in EXAMPLES:
        source = path.read_text("utf-8")
        title, rule, *_ = ast.get_docstring(ast.parse(source)).split("\n")
        assert rule == "=" * len(title), path.name
        assert len(title.split()) >= 3, f"{path.name} does not say what it shows"
        assert source.count("# %%") >= 1, path.name
        assert source.count("\nplt.show()") == 1, path.name
        titles.add(title)
    assert len(titles) == len(EXAMPLES) >= 20


@pytest.fixture(scope="module")
def blood_cells(data_dir, tmp_path_factory):
    """Return the results of `examples/blood_cells.py --quick` and its folder."""
    pytest.importorskip("skimage", reason="scikit-image is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = ROOT / "examples" / "blood_cells.py"
    spec = importlib.util.spec_from_file_location("blood_cells", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        for name in (module.WHITE, module.CROPS):
            if not (data_dir / name).is_file():
                pytest.skip(f"no {data_dir / name}")
        patch.setattr(module, "DATA", data_dir)
        folder = tmp_path_factory.mktemp("blood_cells")
        return module.main(["--quick", "--output", str(folder)]), folder


@pytest.mark.long
def test_every_class_is_certified(blood_cells):
    (_, _, certificates, _, _), _ = blood_cells
    assert len(certificates) == 4 + 3
    for certificate in certificates:
        assert certificate.status is Status.CERTIFIED
        assert 0 <= certificate.relative_gap <= 1e-3


@pytest.mark.long
def test_measured_objectives_are_above_the_optimum(blood_cells):
    (ovr, traces, _, _, _), _ = blood_cells
    assert 0 <= ovr.resolution <= 1e-6
    for label, trace in traces.items():
        assert (trace["primal"] >= ovr.best * (1 - ovr.resolution - 1e-12)).all(), label
        assert (np.diff(trace["seconds"]) >= 0).all(), label
        good = ovr.accuracy(trace) <= 0.1
        first, _, lasting = ovr.reached(trace)[0] or (len(good) + 1, 0.0, None)
        assert [*np.flatnonzero(good), len(good)][0] == first - 1
        assert good[(lasting or len(good)) - 1 :].all() == (lasting is not None)
        assert lasting in (None, first) or not good[lasting - 2]
    # Twenty epochs: sdca and dcd must be near, or the objective measured is another.
    for label in ("dcd", "sdca"):
        assert ovr.accuracy(traces[label])[-1] <= 0.1


@pytest.mark.long
def test_report_and_picture(blood_cells):
    (_, traces, _, truth, predicted), folder = blood_cells
    text = (folder / "blood_cells.md").read_text(encoding="utf-8")
    files = re.findall(r"\]\((blood_cells_\w+\.csv)\)", text)
    assert sorted(files) == sorted(path.name for path in folder.glob("*.csv"))
    solvers = (folder / "blood_cells_solvers.csv").read_text("utf-8").splitlines()
    assert [row[0] for row in csv.reader(solvers[1:])] == [*traces]
    shown = re.search(r"TEST (\d+\.\d) %", text).group(1)
    assert float(shown) == pytest.approx(100 * np.mean(truth == predicted), abs=0.051)
    assert (folder / "blood_cells.png").read_bytes().startswith(b"\x89PNG")
