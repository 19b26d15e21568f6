"""Too little memory for BLAS is a MemoryError, not the end of the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="limits of the address space")

#: The address space may grow by 16 MB during the call, and a buffer of BLAS has 32 MB.
SCRIPT = """
import resource, sys
import numpy as np
from dualgap import LinearSVC, SVC, compress, models

kernel = sys.argv[1].split()[0] in ("kernel", "compress")
rng = np.random.default_rng(0)
X = rng.normal(size=(400 if kernel else 4000, 10))
y = (X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0.0).astype(int)
model = (SVC(tol=1e-4) if kernel else LinearSVC(tol=1e-6)).fit(X, y)
calls = {
    "what_if": lambda: models.what_if(model, X, y, without=[1]).decision_bounds(X),
    "bound_optimum": lambda: model.bound_optimum(X, y).decision_bounds(X),
    "cv_bounds": lambda: models.cv_bounds(model, X, y, cv=3),
    "kernel cv_bounds": lambda: models.cv_bounds(model, X, y, cv=3),
    "certified_support": lambda: model.certified_support(X, y),
    "kernel certified_support": lambda: model.certified_support(X, y),
    "compress": lambda: compress(model, X, y, tol=0.05),
}
with open("/proc/self/statm") as sizes:
    now = int(sizes.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 2**24,) * 2)
try:
    calls[sys.argv[1]]()
except MemoryError:
    pass
print("alive")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "name",
    [
        *("what_if", "bound_optimum", "compress", "cv_bounds", "kernel cv_bounds"),
        *("certified_support", "kernel certified_support"),
    ],
)
def test_answers_never_end_the_process(name: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, name]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.stdout == "alive\n", found.stderr
