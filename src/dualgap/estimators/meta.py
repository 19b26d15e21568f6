"""Models inside pipelines and searches."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from ..data.types import MatrixLike


def own(model: BaseEstimator) -> BaseEstimator:
    """Return dualgap's estimator of a patched model; any other model as it is."""
    convert = getattr(model, "_as_own", None)
    return model if convert is None else convert()


def final(model: BaseEstimator) -> BaseEstimator:
    """Return the model of a search or of a calibration; any other model as it is."""
    while True:
        if isinstance(model, FrozenEstimator):
            model = model.estimator
        elif hasattr(model, "calibrators_"):
            model = model.estimator_
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "cv_results_") or hasattr(model, "param_grid"):
            raise NotFittedError(
                f"{type(model).__name__} has no best_estimator_; fit it with refit=True"
            )
        else:
            return model


def unwrap(
    model: BaseEstimator, X: MatrixLike | None = None
) -> tuple[BaseEstimator, MatrixLike]:
    """Return the model inside pipelines and searches, and the rows that it sees.

    A patched model that dualgap has trained becomes dualgap's own estimator.
    """
    steps, model = taken_apart(model)
    if X is not None:
        for step in steps:
            X = step.transform(X)
    return model, X


def taken_apart(model: BaseEstimator) -> tuple[list[BaseEstimator], BaseEstimator]:
    """Return the transformers of pipelines, in order, and the model behind them."""
    steps: list[BaseEstimator] = []
    model = final(model)
    while isinstance(getattr(model, "steps", None), list):  # a Pipeline
        before = [step for _, step in model.steps[:-1]]
        steps += [step for step in before if step not in (None, "passthrough")]
        model = final(model.steps[-1][1])
    # A patched model that scikit-learn has trained stays as it is: its penalty may have
    # no counterpart, and LIBSVM numbers only the rows of positive weight.
    return steps, own(model) if hasattr(model, "certificate_") else model
