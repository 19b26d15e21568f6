"""No fit leaves an object of the core alive, such as its Stop."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FITS = """
import numpy as np
from dualgap import SVC, SVR, LinearSVC, LinearSVCCV, LinearSVR
from dualgap.model_selection import svm_path

def fails(A, B):
    raise RuntimeError("not now")

X = np.random.default_rng(0).normal(size=(80, 3))
y = np.digitize(X[:, 0], [-0.5, 0.5])
models = [
    LinearSVC(), LinearSVC(solver="newton"), LinearSVC(n_jobs=2, time_limit=60),
    LinearSVC(solver="pegasos", loss="hinge", max_iter=3), LinearSVCCV(), LinearSVR(),
    SVC(), SVC(kernel=lambda A, B: A @ B.T), SVC(solver="swap", loss="squared_hinge"),
    SVC(solver="nystroem"), SVR(),
]
for model in models:
    model.fit(X, y)
svm_path(X, y)
try:
    SVC(kernel=fails).fit(X, y)
except RuntimeError as error:
    model.kept = error  # with the frames of the fit
model.error = model  # a cycle that is there at exit
"""


@pytest.mark.long
def test_fits_leave_nothing_of_the_core_alive() -> None:
    """The extension names what is left when the interpreter ends, if asked to."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FITS],
        capture_output=True, text=True, env={**os.environ, "DUALGAP_LEAKS": "1"},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert "leaked" not in found.stderr, found.stderr
