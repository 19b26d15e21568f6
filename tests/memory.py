"""Peak memory of a call, and of scripts that tests run in processes of their own.

For scripts not ``ru_maxrss``: on Linux it begins with the peak of the process that
starts another, and scripts that use less than the tests did would seem to grow by
nothing.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from os import environ
from pathlib import Path
from typing import Any, TypeVar

import pytest

Result = TypeVar("Result")

reads_peak = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"
)

_PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return 1024 * next(int(s.split()[1]) for s in status if s.startswith("VmHWM"))
"""


def run(script: str, *arguments: Any) -> str:
    """Return the output of a script that may call `peak`, its bytes at most so far."""
    # Freed arrays go back to the system, as glibc keeps some of them otherwise: which
    # ones depends on when its threads allocate.
    environment = environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PEAK + script, *map(str, arguments)],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def traced(call: Callable[[], Result]) -> tuple[Result, int]:
    """Return the result of a call, and the most bytes that it held at once.

    The first call imports modules and fills what is kept for later calls. The least
    peak of three more counts: another thread of the process may allocate too.
    """
    call()
    peaks = []
    for _ in range(3):
        gc.collect()
        tracemalloc.start()
        try:
            result = call()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return result, min(peaks)
