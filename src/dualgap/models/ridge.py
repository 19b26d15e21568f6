"""Certificates of ridge regression and of the ridge classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from ..data.types import MatrixLike
from ..estimators.fitted import SingleTerms, labels_of, targets
from ..estimators.input import checked_weights, label_table
from ..losses import SquaredEpsilonInsensitive, Vector

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

RIDGE = (Ridge, RidgeCV, RidgeClassifier, RidgeClassifierCV)
_CLASSIFIERS = (RidgeClassifier, RidgeClassifierCV)


class RidgeOutput(NamedTuple):
    """One column of targets: a regression with the squared loss."""

    name: str
    terms: SingleTerms
    y: Vector


def weight_of_loss(model: BaseEstimator, alpha: float) -> float:
    """Return C, by which the loss counts beside ``1/2 ||w||^2``: ``1/(2 alpha)``."""
    C = 0.5 / float(alpha) if alpha > 0.0 else np.inf
    if not 0.0 < C < np.inf:
        raise ValueError(
            f"{type(model).__name__}(alpha={float(alpha)!r}) has no finite C = "
            "1/(2 alpha), and so no certificate; train with a larger alpha"
        )
    return C


def ridge_outputs(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> tuple[list[RidgeOutput], Vector | None]:
    """Return the columns of a model of RIDGE, and the weights of its rows."""
    check_is_fitted(model)
    name, n = type(model).__name__, np.shape(X)[0]
    if getattr(model, "positive", False):
        raise ValueError(
            f"{name}(positive=True) has constraints, so its objective has no "
            "certificate here; train with positive=False"
        )
    weight = checked_weights(sample_weight, X)
    columns = list(_columns(model, y, n))
    if (class_weight := getattr(model, "class_weight", None)) is not None:
        factor = compute_sample_weight(class_weight, y)
        weight = factor if weight is None else weight * factor
    coef = np.atleast_2d(np.asarray(model.coef_, np.float64))
    if len(coef) != len(columns):
        raise ValueError(
            f"y has {len(columns)} columns of targets, but the model was trained with "
            f"{len(coef)}; give the targets of the training rows"
        )
    bias = np.broadcast_to(np.asarray(model.intercept_, np.float64), len(coef))
    alpha = model.alpha_ if hasattr(model, "alpha_") else model.alpha
    alpha = np.broadcast_to(alpha, len(coef))
    outputs = [
        RidgeOutput(
            label,
            SingleTerms(
                coef[k],
                float(bias[k]),
                C=weight_of_loss(model, alpha[k]),
                loss=SquaredEpsilonInsensitive(0.0),
                fit_intercept=bool(model.fit_intercept),
            ),
            column,
        )
        for k, (label, column) in enumerate(columns)
    ]
    return outputs, weight


def _columns(
    model: BaseEstimator, y: ArrayLike | None, n: int
) -> Iterator[tuple[str, Vector]]:
    """Yield the names and targets of the columns; of classes they are -1 and 1."""
    if y is None:
        raise ValueError("y is missing; give the targets of the training rows")
    shape = np.shape(y)
    several = len(shape) == 2 and shape[1] > 1
    if not isinstance(model, _CLASSIFIERS):
        columns = np.asarray(y).T if several else [np.asarray(y)]
        for k, column in enumerate(columns):
            yield (f"output {k}" if several else "", targets(column, n))
    elif several:
        for k, column in enumerate(label_table(y).toarray().T):
            yield f"class {k}", targets(np.where(column, 1.0, -1.0), n)
    else:
        classes, codes = labels_of(y, n, model.classes_)
        one = len(classes) <= 2  # a class on its own is the negative one
        for k in [1] if one else range(len(classes)):
            name = "" if one else f"class {classes[k]}"
            yield name, np.where(codes == k, 1.0, -1.0)
