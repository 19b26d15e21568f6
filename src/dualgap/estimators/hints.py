"""Remedies in the messages about wrong parameters and missing methods."""

from __future__ import annotations

import re
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import TYPE_CHECKING, NoReturn

from sklearn.utils._param_validation import InvalidParameterError, StrOptions

from ..names import nearest

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from typing_extensions import Self


__all__ = ["ParameterHints", "ProbabilityHints"]


class ParameterHints:
    """Mixin that answers wrong names and values of parameters with the right ones."""

    def __new__(cls, *args: object, **parameters: object) -> Self:
        own = signature(cls.__init__).parameters
        known = list(own)[1:]
        anything = any(p.kind is Parameter.VAR_KEYWORD for p in own.values())
        for name in parameters:
            if name not in known and not anything:
                raise TypeError(
                    f"{cls.__name__} has no parameter {name!r}: {_answer(name, known)}"
                )
        return super().__new__(cls)

    def _validate_params(self) -> None:
        try:
            super()._validate_params()  # type: ignore[misc]
        except InvalidParameterError as error:
            raise InvalidParameterError(_with_a_hint(self, str(error))) from None


class ProbabilityHints:
    """Mixin that says how a classifier gets probabilities."""

    @property
    def predict_proba(self) -> NoReturn:
        raise AttributeError(_no_probabilities(self, "predict_proba"))

    @property
    def predict_log_proba(self) -> NoReturn:
        raise AttributeError(_no_probabilities(self, "predict_log_proba"))


def _no_probabilities(model: BaseEstimator, name: str) -> str:
    return f"{type(model).__name__} has no {name}: {_CALIBRATE}"


def _answer(name: str, known: list[str]) -> str:
    """Return the remedy for an unknown parameter."""
    for instead, answer in _ANSWERS.get(name, {}).items():
        if instead in known or not instead:
            return answer
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else f"it has {', '.join(known)}"


def _with_a_hint(model: BaseEstimator, message: str) -> str:
    """Return scikit-learn's message with few names, sorted, and the one meant."""
    name = message.split("'")[1]
    value = getattr(model, name, None)
    constraints = model._parameter_constraints.get(name, [])
    known = {o for c in constraints if isinstance(c, StrOptions) for o in c.options}
    wrong = value if isinstance(value, str) else ""
    shown = sorted(known)
    if len(shown) > _MOST:
        shown = get_close_matches(wrong, shown, n=3, cutoff=0.0)
    names = ", ".join(map(repr, shown)) + (", ..." if len(shown) < len(known) else "")
    message = re.sub(r"\{'[^{}]*\}", lambda _: f"{{{names}}}", message)
    near = nearest(wrong, known, name) if wrong else None
    return f"{message} Did you mean {near!r}?" if near else message


#: Names that a message lists at most.
_MOST = 20
_CALIBRATE = (
    "for probabilities fit sklearn.calibration."
    "CalibratedClassifierCV(model, ensemble=False)"
)
_KERNELS = "this model is linear; SVC, SVR and OneClassSVM have kernels"
#: Remedies for the parameters of scikit-learn's SVMs, each for models that have a
#: certain parameter; "" is any model.
_ANSWERS = {
    "C": {"Cs": "use Cs, the values to choose from", "nu": "use nu"},
    "degree": {"": _KERNELS},
    "dual": {
        "": "leave it out; dualgap solves the dual and the primal problem together"
    },
    "epsilon": {
        "epsilons": "use epsilons, the values to choose from",
        "": "only SVR and LinearSVR have it",
    },
    "gamma": {"gammas": "use gammas, the values to choose from", "": _KERNELS},
    "kernel": {"": _KERNELS},
    "max_iter": {"": "use max_epochs, or time_limit in seconds"},
    "nu": {"epsilon": "use C and epsilon", "": "use C"},
    "penalty": {"": "leave it out for the squared norm; there is no L1 penalty"},
    "probability": {
        "class_weight": _CALIBRATE,
        "": "only classifiers have probabilities",
    },
    "shrinking": {"": "leave it out; the solvers always shrink"},
}
