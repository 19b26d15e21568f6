"""Many fits and many threads in one process: ``benchmarks/trust/load.py``, shorter.

The script fails by itself where memory, threads or files grow, or bits differ.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ..conftest import ROOT, unsanitized

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc"),
    unsanitized("it keeps freed memory"),
]


def load(*arguments):
    script = ROOT / "benchmarks" / "trust" / "load.py"
    done = subprocess.run(
        [sys.executable, str(script), *map(str, arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_fits_one_after_the_other_leave_nothing_behind():
    found = load("fits", "--count", 720)
    assert len(found["resident MB"]) == 10


def test_fits_at_once_have_the_bits_that_they_have_alone():
    found = load("threads", "--threads", 64)
    assert found["threads left"] == 0
