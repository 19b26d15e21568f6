"""Remedies in the messages about wrong parameters and missing methods."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from inspect import Parameter, signature
from numbers import Real
from typing import TYPE_CHECKING, NoReturn, cast

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from ..names import nearest
from ..ranges import refuse_huge

if TYPE_CHECKING:
    from typing_extensions import Self


__all__ = ["ParameterHints", "ProbabilityHints"]


class ParameterHints(BaseEstimator):
    """Mixin that answers wrong names and values of parameters with the right ones."""

    def __new__(cls, *args: object, **parameters: object) -> Self:
        known, anything = _known(cls.__init__)
        for name in parameters:
            if name not in known and not anything:
                raise TypeError(
                    f"{cls.__name__} has no parameter {name!r}: {_answer(name, known)}"
                )
        return super().__new__(cls)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature every time.
        return sorted(_known(cls.__init__)[0])

    def _validate_params(self) -> None:
        kind: object = type(self)
        values = [getattr(self, name) for name in self._get_param_names()]
        try:
            plain = all(type(value) in _PLAIN for value in values)
            (_validate if plain else _validate.__wrapped__)(kind, *values)
        except InvalidParameterError as error:
            raise InvalidParameterError(_with_a_hint(self, str(error))) from None


@cache
def _known(init: Callable[..., None]) -> tuple[list[str], bool]:
    """Return the parameters of an estimator, and whether it takes any others."""
    own = list(signature(init).parameters.values())[1:]
    named = [p.name for p in own if p.kind is not Parameter.VAR_KEYWORD]
    return named, len(named) < len(own)


@lru_cache(typed=True)
def _validate(kind: object, *values: object) -> None:
    """Validate the parameters of an estimator; plain values only once."""
    model = cast("type[BaseEstimator]", kind)
    given = dict(zip(model._get_param_names(), values, strict=True))
    for name, valid in model._parameter_constraints.items():
        if name in given:
            refuse_huge_of(name, given[name], valid)
    validate_parameter_constraints(model._parameter_constraints, given, model.__name__)


def refuse_huge_of(name: str, value: object, valid: Sequence[object]) -> None:
    """Refuse a value of a parameter that does not fit into 64 bits.

    scikit-learn's checks let it pass, or print all of its digits.

    Raises
    ------
    ValueError
    """
    real = any(isinstance(c, Interval) and c.type is Real for c in valid)
    refuse_huge(name, value, whole=not real)


#: Types of values whose validity cannot change.
_PLAIN = {bool, float, int, str, type(None)}


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
