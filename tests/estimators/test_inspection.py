"""A fit looks at every entry of X once, however many problems it trains."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.datasets import make_classification
from sklearn.utils import validation

from dualgap import SVC, SVR, LinearOneClassSVM, LinearSVC, LinearSVR, OneClassSVM
from dualgap.data import rows

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
    ],
    ids=str,
)
@pytest.mark.cases(None)
def test_x_is_inspected_once(model: Any, layout: Any) -> None:
    X, y = make_classification(
        90, 7, n_informative=5, n_classes=3, random_state=0, weights=[0.5, 0.3]
    )
    target = y if is_classifier(model) else X[:, 0]
    X = layout(X)
    assert inspections(lambda: model.fit(X, target), X.shape) == 1
