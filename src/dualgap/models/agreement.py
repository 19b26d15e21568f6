"""Checks that rows, labels and parameters agree with a model."""

from __future__ import annotations

from sklearn.base import BaseEstimator


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
