"""Run the numerical tests as processors of several ages would: `make test-processors`.

Older ones are imitated: dualgap, NumPy and OpenBLAS each take another set of
instructions, so that sums are rounded otherwise. A test that fails for one of them
asserts what rounding decides. Arguments are passed to pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from dualgap import core

if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    from numpy.core import _multiarray_umath as umath
else:
    from numpy._core import _multiarray_umath as umath

FOLDER = Path(__file__).parent
NUMERICAL = [
    *("answers", "core", "kernels", "models", "solvers", "training"),
    *("test_certificate.py", "test_core.py", "test_losses.py", "test_problem.py"),
    "test_unpenalised.py",
]

#: Instruction sets that NumPy would use here beyond those it is compiled for.
USED = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]]
AVX512 = [name for name in USED if name.startswith(("AVX512", "X86_V4"))]

# x86-64 level of the core; OpenBLAS kernels; what NumPy does without; BLAS threads.
PROCESSORS = [
    ("v2", "Nehalem", USED, 1),
    ("v3", "Haswell", AVX512, 2),
    ("v3", "Zen", AVX512, 1),
    ("v4", "SkylakeX", [], 2),
]


def environments() -> list[dict[str, str]]:
    """Environment variables of every processor that this one can imitate."""
    if not core.built_levels:
        return [{"OPENBLAS_NUM_THREADS": threads} for threads in ("1", "2")]
    return [
        {
            "DUALGAP_CPU": level,
            "OPENBLAS_CORETYPE": blas,
            "NPY_DISABLE_CPU_FEATURES": " ".join(without),
            "OPENBLAS_NUM_THREADS": str(threads),
        }
        for level, blas, without, threads in PROCESSORS
        if level in core.built_levels and int(level[1:]) <= core.cpu_level
    ]


def main() -> int:
    failed = 0
    for environment in environments():
        print(*(f"{name}={value!r}" for name, value in environment.items()), flush=True)
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *sys.argv[1:]]
            + [str(FOLDER / name) for name in NUMERICAL],
            env={**os.environ, **environment},
            check=False,
        )
        failed += run.returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
