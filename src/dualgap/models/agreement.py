"""Checks that rows, labels and parameters agree with a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d

from ..data.types import Matrix
from ..estimators.input import encode


def _labels(
    y: ArrayLike, n: int, classes: NDArray[np.generic] | None
) -> tuple[NDArray[np.generic], NDArray[np.intp]]:
    """Return the classes, and the index of every row's class.

    Raises
    ------
    ValueError
        If y has another length or other classes than the model.
    """
    values = column_or_1d(y, warn=True)
    if len(values) != n:
        raise ValueError(
            f"y has {len(values)} labels, but X has {n} rows; give one label per row"
        )
    found, codes = encode(values)
    if classes is not None and not np.array_equal(found, classes):
        raise ValueError(
            f"y has the classes {found.tolist()}, but the model was trained with "
            f"{np.asarray(classes).tolist()}; give the training labels"
        )
    return found, codes


def _agreed(
    given: float | None, own: float | None, model: BaseEstimator
) -> float | None:
    if given is not None and given != own:
        raise ValueError(
            f"C={given!r} contradicts {type(model).__name__}, which was trained with "
            f"C={own!r}; leave C out, or give the coefficients instead"
        )
    return own


def _agreed_of_one(
    given: float | None, model: BaseEstimator, own: float | None = None
) -> float | None:
    """Return the C of an estimator that may have none, if the given C agrees."""
    if "nu" not in model.get_params():
        own = getattr(model, "C", own)
    if own is None and given is not None:
        raise ValueError(
            f"C={given!r} does not apply to {type(model).__name__}; leave it out"
        )
    return _agreed(given, own, model)


def _refuse(given: dict[str, object], model: BaseEstimator) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} is not for estimators: {type(model).__name__} has "
                "its own; leave it out, or give the coefficients instead"
            )


def support_of(
    model: BaseEstimator, sample_weight: ArrayLike | None
) -> NDArray[np.intp]:
    """Return the training rows that are the support vectors of a kernel model.

    LIBSVM numbers them among the rows of positive weight, and scikit-learn keeps its
    numbers. Models of dualgap count all rows.
    """
    support = np.asarray(model.support_)
    own = hasattr(model, "_fitted_kernel") or hasattr(model, "certificate_")
    if sample_weight is None or own:
        return support
    return np.flatnonzero(np.asarray(sample_weight) > 0.0)[support]


def _differ(rows: Matrix, others: Matrix) -> bool:
    """Whether two matrices, dense or sparse, differ by more than rounding."""
    if rows.shape != others.shape:
        return True
    difference = rows - others
    size = abs(rows).max() if rows.shape[0] else 0.0
    largest = abs(difference).max() if rows.shape[0] else 0.0
    return bool(largest > 1e-6 * size)
