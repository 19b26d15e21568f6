"""Python calls, epochs and updates of fits, in tables: they may only fall.

The problems of the calls are small enough for one call into the core, or end after one
epoch, so that no count of them depends on the processor.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.preprocessing import scale

import dualgap
from dualgap import (
    SVC,
    SVCCV,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    OneClassSVM,
)
from dualgap.model_selection import GridSearchCV, svc_path, svm_path

from ..conftest import ROOT

PACKAGE = str(Path(dualgap.__file__).parent)
PAIRED = runpy.run_path(str(ROOT / "benchmarks" / "paired.py"))
STORED = json.loads(PAIRED["COUNTS"].read_text("utf-8"))
IRIS, CANCER, DIABETES = (
    (scale(X), y)
    for X, y in (
        load(return_X_y=True) for load in (load_iris, load_breast_cancer, load_diabetes)
    )
)
WINE = (scale(load_wine().data), load_wine().target)
Cs = np.logspace(-2, 2, 5)
#: What is called, and the largest number of calls of the package's Python functions.
COUNTS: dict[str, tuple[Callable[[], object], int]] = {
    "LinearSVC": (lambda: LinearSVC().fit(*IRIS), 194),
    "LinearSVC, two classes": (lambda: LinearSVC().fit(*CANCER), 157),
    "LinearSVC, pairs": (lambda: LinearSVC(multi_class="ovo").fit(*WINE), 220),
    "LinearSVC, weights": (lambda: LinearSVC(class_weight="balanced").fit(*WINE), 210),
    "SVC": (lambda: SVC().fit(*IRIS), 162),
    "SVC, two classes": (lambda: SVC().fit(*CANCER), 152),
    "SVC, linear": (lambda: SVC(kernel="linear").fit(*WINE), 159),
    "SVR": (lambda: SVR(max_iter=1).fit(DIABETES[0][:60], DIABETES[1][:60]), 294),
    "LinearSVR": (lambda: LinearSVR().fit(*DIABETES), 115),
    "OneClassSVM": (lambda: OneClassSVM().fit(IRIS[0]), 186),
    "LinearOneClassSVM": (
        lambda: LinearOneClassSVM(max_iter=1).fit(IRIS[0] + 4.0),
        248,
    ),
    "svm_path": (lambda: svm_path(*IRIS, Cs), 655),
    "svm_path, two classes": (lambda: svm_path(*CANCER, Cs), 402),
    "svc_path": (lambda: svc_path(*IRIS, Cs), 678),
    "LinearSVCCV": (lambda: LinearSVCCV(Cs, cv=3).fit(*IRIS), 2739),
    "LinearSVCCV, two classes": (lambda: LinearSVCCV(Cs, cv=3).fit(*CANCER), 1413),
    "SVCCV": (lambda: SVCCV(Cs, cv=3).fit(*IRIS), 2072),
    "GridSearchCV, linear": (
        lambda: GridSearchCV(LinearSVC(), {"C": Cs}, cv=3).fit(*IRIS),
        4435,
    ),
    "GridSearchCV": (lambda: GridSearchCV(SVC(), {"C": Cs}, cv=3).fit(*IRIS), 3434),
}
#: Part of a count that versions of Python and scikit-learn may change.
SLACK = 0.03


def calls(call: Callable[[], object]) -> int:
    """Count calls of Python functions; comprehensions differ by version."""
    call()
    count = 0

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        code = frame.f_code
        own = code.co_filename.startswith(PACKAGE)
        count += event == "call" and own and not code.co_name.startswith("<")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.cases(None)
@pytest.mark.parametrize("name", COUNTS)
def test_calls_only_fall(name: str) -> None:
    call, most = COUNTS[name]
    assert calls(call) <= most * (1 + SLACK)


def test_every_case_is_counted() -> None:
    assert PAIRED["cases"]().keys() == STORED.keys()


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@pytest.mark.cases(8)
@pytest.mark.parametrize("name", STORED)
def test_epochs_and_updates_only_fall(name: str) -> None:
    """Rounding differs by processor, so the order of few updates may too."""
    for key, found in PAIRED["counted"](name).items():
        assert found <= 1.2 * STORED[name][key] + 10, key
