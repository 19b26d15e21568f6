"""Estimators with C = inf, as :mod:`dualgap.training.hard_margin` trains them."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model._base import LinearClassifierMixin

from ..losses import get_loss
from ..solvers.kernel.nystroem import Nystroem
from .input import TrainingData


def is_hard(model: BaseEstimator) -> bool:
    """Whether an estimator has C=inf."""
    return bool(getattr(model, "C", 1.0) == math.inf)


def softened(
    model: BaseEstimator, data: TrainingData
) -> tuple[BaseEstimator, TrainingData]:
    """Return a copy of an estimator with a finite C, and its data with weights of 1.

    At C = inf rows of any positive weight have the same constraint. All losses of a
    linear model have the same optimum then, and the one of the hinge is reached at a
    finite C.
    """
    linear, solver = isinstance(model, LinearClassifierMixin), model.solver
    approximate = isinstance(solver, Nystroem) or solver == "nystroem"
    joint = getattr(model, "multi_class", "ovr") == "crammer_singer"
    checkpoint = getattr(model, "checkpoint", None) is not None
    for name, wrong, remedy in (
        ("multi_class", joint, "'ovr'"),
        ("penalty", getattr(model, "penalty", "l2") == "l1", "'l2'"),
        ("checkpoint", checkpoint, "None"),
        ("solver", approximate, "'auto'"),
        ("loss", not linear and get_loss(model.loss).name != "hinge", "'hinge'"),
    ):
        if wrong:
            raise ValueError(
                f"{name}={getattr(model, name)!r} is not supported with C=inf; use "
                f"{name}={remedy}, or a finite C"
            )
    soft = copy.copy(model)
    soft.C = 1.0
    if linear:
        soft.loss = "hinge"
    weight = None if data.weight is None else np.sign(data.weight)
    return soft, replace(data, weight=weight, factor=np.sign(data.factor))
