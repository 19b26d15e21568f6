"""The examples run, and what they report is so."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from dualgap import Status

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[1]


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


def test_every_class_is_certified(blood_cells):
    (_, _, certificates, _, _), _ = blood_cells
    assert len(certificates) == 4 + 3
    for certificate in certificates:
        assert certificate.status is Status.CERTIFIED
        assert 0 <= certificate.relative_gap <= 1e-3


def test_measured_objectives_are_above_the_optimum(blood_cells):
    (ovr, traces, _, _, _), _ = blood_cells
    assert 0 <= ovr.resolution <= 1e-6
    for label, trace in traces.items():
        assert (trace["primal"] >= ovr.best * (1 - ovr.resolution - 1e-12)).all(), label
        assert (np.diff(trace["seconds"]) >= 0).all(), label
    # Twenty epochs: sdca and dcd must be near, or the objective measured is another.
    for label in ("dcd", "sdca"):
        assert ovr.accuracy(traces[label])[-1] <= 0.1


def test_report_and_picture(blood_cells):
    (_, traces, _, truth, predicted), folder = blood_cells
    text = (folder / "blood_cells.md").read_text(encoding="utf-8")
    for label in traces:
        assert f"| {label} |" in text
    shown = re.search(r"TEST (\d+\.\d) %", text).group(1)
    assert float(shown) == pytest.approx(100 * np.mean(truth == predicted), abs=0.051)
    assert (folder / "blood_cells.png").read_bytes().startswith(b"\x89PNG")
