"""Fixtures that every test file may use, and how hypothesis searches."""

from __future__ import annotations

import functools
import lzma
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A run started in the background has Ctrl-C ignored, and so would the programs that
# the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]

#: Whether this is `make sanitize`, which loads a sanitizer's runtime first.
SANITIZED = "san" in os.environ.get("LD_PRELOAD", "")


def unsanitized(reason: str) -> pytest.MarkDecorator:
    """Leave a test out where a sanitizer watches, and say why."""
    return pytest.mark.skipif(SANITIZED, reason=f"not under a sanitizer: {reason}")


settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of real data sets: DUALGAP_DATA, or ../shared/data beside the checkout."""
    folder = Path(os.environ.get("DUALGAP_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}: set DUALGAP_DATA to the folder of data sets")
    return folder


@pytest.fixture(scope="session")
def load_xz(data_dir: Path) -> Callable[[str], tuple[Any, Any]]:
    """Reader of the svmlight file `<data_dir>/<name>.xz`: (X in CSR, y)."""
    from sklearn.datasets import load_svmlight_file

    @functools.cache
    def load(name: str) -> tuple[Any, Any]:
        path = data_dir / f"{name}.xz"
        if not path.is_file():
            pytest.skip(f"no {path}")
        with lzma.open(path) as file:
            return load_svmlight_file(file)

    return load
