"""A fit looks at every entry of X once, and few functions lead from it to a solver."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.datasets import make_classification
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
from dualgap.model_selection import svm_path

PACKAGE = Path(dualgap.__file__).parent

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
            if Path(above.f_code.co_filename).is_relative_to(PACKAGE):
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
