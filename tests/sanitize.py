"""Run the tests on a core with sanitizers in it: `make sanitize`.

All tests under AddressSanitizer and UndefinedBehaviorSanitizer, then under
ThreadSanitizer what starts threads: in the core, in joblib's pools and in those of the
files. Arguments are passed to pytest. Python itself is not built with sanitizers: their
runtime is loaded first, and libstdc++ with it, whose exceptions it watches; leaks are
not looked for. Tests that cannot pass there skip themselves and say why
(`unsanitized`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
THREADED = """
    test_core training/test_loop trust/test_load estimators/test_callbacks
    estimators/test_linear_svc estimators/test_one_vs_one estimators/test_partial_fit
    estimators/test_path estimators/test_svc data/test_conversion data/test_store
    data/test_svmlight kernels/test_gram kernels/test_tile solvers/kernel/test_block
    solvers/kernel/test_nystroem solvers/kernel/test_regression
    solvers/test_crammer_singer solvers/papers/test_cutting_planes
    solvers/test_interior_point solvers/test_streaming laws/test_bits
"""


def library(name: str) -> str:
    """Return the path of a library of the compiler."""
    asked = [os.environ.get("CXX", "g++"), f"-print-file-name=lib{name}.so"]
    return subprocess.run(
        asked, capture_output=True, text=True, check=True
    ).stdout.strip()


def run(sanitizer: str, *arguments: str) -> int:
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT / "build" / sanitizer),
        "LD_PRELOAD": f"{library(sanitizer)} {library('stdc++')}",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run([*command, *arguments], env=environment, cwd=ROOT).returncode


def main() -> int:
    threaded = [f"tests/{name}.py" for name in THREADED.split()]
    failed = run("asan", "-n", "2", *(sys.argv[1:] or ["tests"]))
    # ThreadSanitizer holds signals back.
    return run("tsan", "-k", "not ctrl_c", *(sys.argv[1:] or threaded)) or failed


if __name__ == "__main__":
    sys.exit(main())
