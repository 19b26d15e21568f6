"""Prediction on the workers of a cluster, by the same model in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data.types import Matrix
from ..estimators.linear_svc import LinearSVC
from .stores import StorePart, named


def of_rows(X: Matrix, model: LinearSVC, method: str) -> NDArray[np.generic]:
    """Return what a method of the model returns for rows, which may be none."""
    if not X.shape[0]:  # which the checks of a model in memory refuse
        return of_rows(np.zeros((1, X.shape[1])), model, method)[:0]
    found: NDArray[np.generic]
    found = getattr(model, method)(X.tocsr() if hasattr(X, "tocsr") else X)
    return found


def of_store(part: StorePart, model: LinearSVC, method: str) -> NDArray[np.generic]:
    """Return what a method of the model returns for the rows of a store."""
    with named(part.path):
        return np.concatenate([of_rows(b.X, model, method) for b in part.batches()])


def count_right(part: StorePart, model: LinearSVC) -> tuple[float, float]:
    """Return the weight of correctly classified rows of a store, and of all rows."""
    right = whole = 0.0
    for batch in part.batches():
        with named(part.path):
            hits = of_rows(batch.X, model, "predict") == batch.y
        weight = np.ones(len(hits)) if batch[2] is None else batch[2]
        right, whole = right + float(weight @ hits), whole + float(weight.sum())
    return right, whole
