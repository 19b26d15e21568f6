"""Prediction on the workers of a cluster, from the rows and the parts of a model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from ..data.types import Matrix
from ..estimators.fitting import class_scores
from ..losses import Vector
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
    X = X.tocsr() if hasattr(X, "tocsr") else X
    values = np.asarray(safe_sparse_dot(X, coef.T)) + intercept
    if values.shape[1] == 1:
        return values[:, 0]
    return class_scores(values, multi_class, len(classes))


def classify(
    X: Matrix,
    coef: Vector,
    intercept: Vector,
    classes: NDArray[np.generic],
    multi_class: str,
) -> NDArray[np.generic]:
    """Return the class of each row."""
    scores = decide(X, coef, intercept, classes, multi_class)
    best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)
    return classes[best]
