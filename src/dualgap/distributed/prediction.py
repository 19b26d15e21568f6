"""Prediction on the workers of a cluster, from the rows and the parts of a model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from ..data.types import Matrix
from ..losses import Vector
from ..problems.reductions import reduction_of
from .stores import StorePart

#: Coefficients, intercepts, classes, and how the scores of the classes are made.
Parts = tuple[Vector, Vector, NDArray[np.generic], str]


def over_batches(
    function: Callable[..., NDArray[np.generic]], part: StorePart, model: Parts
) -> NDArray[np.generic]:
    """Return scores or classes of the rows of a store."""
    found = [function(_as_wide(b.X, model, part), *model) for b in part.batches()]
    return np.concatenate(found)


def count_right(part: StorePart, model: Parts) -> tuple[float, float]:
    """Return the weight of correctly classified rows of a store, and of all rows."""
    right = whole = 0.0
    for batch in part.batches():
        hits = classify(_as_wide(batch.X, model, part), *model) == batch.y
        weight = np.ones(len(hits)) if batch[2] is None else batch[2]
        right, whole = right + float(weight @ hits), whole + float(weight.sum())
    return right, whole


def _as_wide(X: Matrix, model: Parts, part: StorePart) -> Matrix:
    if X.shape[1] != model[0].shape[1]:
        raise ValueError(
            f"{part.path} has {X.shape[1]} features, but LinearSVC is expecting "
            f"{model[0].shape[1]} features as input"
        )
    return X


def decide(
    X: Matrix,
    coef: Vector,
    intercept: Vector,
    classes: NDArray[np.generic],
    multi_class: str,
) -> Vector:
    """Return one score per row, or one per row and class."""
    values = _values(X, coef, intercept)
    return reduction_of(multi_class, len(classes)).scores(values)


def _values(X: Matrix, coef: Vector, intercept: Vector) -> Vector:
    """Return the decisions of all problems, (n, problems)."""
    X = X.tocsr() if hasattr(X, "tocsr") else X
    return np.asarray(safe_sparse_dot(X, coef.T)) + intercept


def classify(
    X: Matrix,
    coef: Vector,
    intercept: Vector,
    classes: NDArray[np.generic],
    multi_class: str,
) -> NDArray[np.generic]:
    """Return the class of each row."""
    values = _values(X, coef, intercept)
    return classes[reduction_of(multi_class, len(classes)).decide(values)]
