"""The choice of the compiled variant of the core, and errors when none can run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import scipy
import sklearn

import dualgap
from dualgap import core

RUNNABLE = [level for level in core.built_levels if int(level[1:]) <= core.cpu_level]

# Calling it proves that the variant's code runs here, not only that it loads.
REPORT = """
import numpy as np
from dualgap import core
print(core._core.__name__, core.variant, core.squared_norm(np.full(1001, 2.0)))
"""


def python(code: str, cpu: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "DUALGAP_CPU": cpu},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("level", RUNNABLE)
def test_a_variant_asked_for_is_the_one_that_runs(level):
    result = python(REPORT, cpu=level)
    assert result.stdout == f"dualgap._core_{level} x86-64-{level} 4004.0\n", result


def test_the_best_variant_runs_when_none_is_asked_for():
    result = python(REPORT)
    if RUNNABLE:
        best = RUNNABLE[-1]
        expected = f"dualgap._core_{best} x86-64-{best} 4004.0\n"
    else:
        expected = "dualgap._core generic 4004.0\n"
    assert result.stdout == expected, result


def test_an_unknown_variant_is_refused():
    result = python("import dualgap.core", cpu="v9")
    assert result.returncode != 0
    assert (
        "ImportError: DUALGAP_CPU='v9' is not known (it takes v2, v3, v4). Unset it"
        in (result.stderr)
    )


@pytest.mark.parametrize(
    ("built", "cpu_level", "asked", "expected"),
    [
        (("v2", "v3", "v4"), 4, "", "v4"),
        (("v2", "v3", "v4"), 3, "", "v3"),
        (("v2", "v3", "v4"), 2, "", "v2"),
        (("v2", "v3"), 4, "", "v3"),
        (("v2", "v3", "v4"), 4, "v2", "v2"),
        ((), 4, "", ""),
        ((), 0, "", ""),
    ],
)
def test_choice(monkeypatch, built, cpu_level, asked, expected):
    pretend(monkeypatch, built, cpu_level, asked, has_generic=not built)
    assert core._choose() == expected


@pytest.mark.parametrize(
    ("built", "cpu_level", "asked", "message"),
    [
        (
            ("v2", "v3", "v4"),
            3,
            "v4",
            "DUALGAP_CPU='v4' cannot run on this machine, which is x86-64-v3",
        ),
        (
            ("v2", "v3"),
            4,
            "v4",
            "DUALGAP_CPU='v4' is not in this build of dualgap, which holds v2, v3",
        ),
        ((), 0, "v3", "not in this build of dualgap, which holds one generic core"),
        (("v2", "v3"), 1, "", "holds v2, v3; this machine is x86-64-v1. Build it here"),
    ],
)
def test_refusal(monkeypatch, built, cpu_level, asked, message):
    pretend(monkeypatch, built, cpu_level, asked, has_generic=not built)
    with pytest.raises(ImportError, match=re.escape(message)):
        core._choose()


def pretend(monkeypatch, built, cpu_level, asked, *, has_generic):
    monkeypatch.setattr(core, "built_levels", built)
    monkeypatch.setattr(core, "cpu_level", cpu_level)
    monkeypatch.setattr(core, "find_spec", lambda name: True if has_generic else None)
    monkeypatch.setenv("DUALGAP_CPU", asked)


def test_public_names_of_the_compiled_core_are_re_exported():
    public = {name for name in vars(core._core) if not name.startswith("_")}
    assert {"Random", "dense_rows", "squared_norm"} <= public
    assert all(getattr(core, name) is getattr(core._core, name) for name in public)


def test_show_versions(capsys):
    dualgap.show_versions()
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    for line in [
        f"dualgap: {dualgap.__version__}",
        f"numpy: {np.__version__}",
        f"scipy: {scipy.__version__}",
        f"scikit-learn: {sklearn.__version__}",
        f"running: {core.variant}",
    ]:
        assert line in lines
    assert any(line.startswith(f"python: {sys.version.split()[0]} ") for line in lines)
    matplotlib = [line for line in lines if line.startswith("matplotlib: ")]
    assert len(matplotlib) == 1
    assert (matplotlib[0] == "matplotlib: not installed") == (
        find_spec("matplotlib") is None
    )
