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
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.preprocessing import scale
from sklearn.utils import validation

import dualgap
from dualgap import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    OneClassSVM,
)
from dualgap.data import rows
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


#: Functions that read every entry of a matrix.
READERS = {
    rows._inspect_csr.__code__,
    rows._dense_rows.__code__,
    validation._assert_all_finite_element_wise.__code__,
}


def inspections(fit: Callable[[], object], shape: tuple[int, int]) -> int:
    """Number of times that `fit` inspects a matrix with so many columns."""
    count = 0

    def watch(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event == "call" and frame.f_code in READERS:
            X = frame.f_locals["X"]
            count += X.shape[1:] == shape[1:]

    sys.setprofile(watch)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    "model",
    [
        *(LinearSVC(), LinearSVC(multi_class="ovo"), LinearSVR(), LinearOneClassSVM()),
        *(SVC(), SVC(kernel="linear"), SVR(), OneClassSVM()),
        *(SVCCV([0.1, 1.0], cv=3), SVRCV([0.1, 1.0], cv=3)),
        *(LinearSVCCV([0.1, 1.0], cv=3), LinearSVCCV([0.1], cv=3, multi_class="ovo")),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*rounding decides")
@pytest.mark.cases(None)
def test_x_is_inspected_once(model: Any, layout: Any) -> None:
    X, y = make_classification(
        90, 7, n_informative=5, n_classes=3, random_state=0, weights=[0.5, 0.3]
    )
    target = y if is_classifier(model) else X[:, 0]
    X = layout(X)
    assert inspections(lambda: model.fit(X, target), X.shape) == 1


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.cases(None)
def test_a_path_inspects_x_once(multi_class: str, layout: Any) -> None:
    X, y = make_classification(90, 7, n_informative=5, n_classes=3, random_state=0)
    X = layout(X)

    def path() -> None:
        svm_path(X, y, [0.1, 1.0], multi_class=multi_class)

    assert inspections(path, X.shape) == 1


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_eight_functions_lead_from_fit_to_the_solver(multi_class: str) -> None:
    """Count functions of the package; scikit-learn's check of parameters is not one."""
    X, y = make_classification(60, 5, random_state=0)
    model = LinearSVC(loss="hinge", multi_class=multi_class)
    model.set_params(solver="dcd" if multi_class == "ovr" else "auto")
    paths: set[tuple[str, ...]] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_code.co_name != "step":
            return
        names: list[str] = []
        above = frame.f_back
        while above is not None and (not names or names[-1] != "fit"):
            if above.f_code.co_filename.startswith(PACKAGE):
                names.append(above.f_code.co_name)
            above = above.f_back
        paths.add(tuple(reversed(names)))

    sys.setprofile(watch)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(None)
    (path,) = paths
    assert path[:3] == ("fit", "_fit", "solve_batch")
    assert path[-2:] == ("solve", "run")
    assert len(path) <= 8
