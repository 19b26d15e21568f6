"""The share of the L1 norm in the penalty of fitted linear models."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from ..problems.batch import LinearBatch
from ..problems.elastic_net import ElasticNetBatch


def l1_ratio_of(model: BaseEstimator) -> float:
    """Return the share of the L1 norm in the penalty of a fitted linear model.

    Raises ValueError if the penalty is of another kind.
    """
    penalty = getattr(model, "penalty", "l2")
    ratio = getattr(model, "l1_ratio", None) or 0.0
    known = {"l1": 1.0, "l2": 0.0, "elasticnet": ratio, "deprecated": ratio}
    if penalty not in known:
        raise ValueError(
            f"{type(model).__name__}(penalty={penalty!r}) cannot be certified; train "
            "with penalty='l2', 'l1' or 'elasticnet'"
        )
    return float(known[penalty])


def with_l1(batch: LinearBatch, l1_ratio: float) -> ElasticNetBatch:
    """Return the problems of a batch with an L1 norm in their penalty.

    Raises ValueError if their loss is not the squared hinge.
    """
    if batch.rows.loss.name != "squared_hinge":
        raise ValueError(
            f"loss={batch.rows.loss.name!r} with an L1 norm has no certificate here; "
            "train with loss='squared_hinge', or with penalty='l2'"
        )
    return ElasticNetBatch(batch, l1_ratio)
