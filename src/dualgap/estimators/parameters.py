"""Parameters of estimators: their types, their valid values, and answers to wrong ones.

An estimator declares its parameters as fields of a dataclass. The annotation of a field
is its type for editors and type checkers, and says which values scikit-learn's
validation accepts.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import cache, lru_cache
from inspect import Parameter, Signature, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NoReturn,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from ..checks import refuse_huge
from ..data.types import Label
from ..docstrings import complete_methods, inherit_entries
from ..kernel import RBF, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from ..kernels.functions import Kernel
from ..losses import LOSSES, Hinge, Loss, SquaredHinge
from ..names import nearest
from ..solvers import Solver, solvers_of

if TYPE_CHECKING:
    from typing_extensions import Self

# ------------------------------------------------------------------- types of fields

_ABOVE_0 = Interval(Real, 0, None, closed="neither")

Positive: TypeAlias = Annotated[float, _ABOVE_0]
#: C of a classifier, which may have a hard margin.
PositiveOrInfinite: TypeAlias = Annotated[
    float, Interval(Real, 0, None, closed="right")
]
NonNegative: TypeAlias = Annotated[float, Interval(Real, 0, None, closed="left")]
Share: TypeAlias = Annotated[float, Interval(Real, 0, 1, closed="neither")]
Nu: TypeAlias = Annotated[float, Interval(Real, 0, 1, closed="right")]
#: One value, or several; the record of the loss checks their range.
Quantiles: TypeAlias = Annotated[float | ArrayLike, Share.__metadata__[0], "array-like"]
Number: TypeAlias = Annotated[float, Interval(Real, None, None, closed="neither")]
Count: TypeAlias = Annotated[int, Interval(Integral, 1, None, closed="left")]
Flag: TypeAlias = Annotated[bool, "boolean"]
Seed: TypeAlias = Annotated[int | np.random.RandomState | None, "random_state"]
Verbose: TypeAlias = Annotated[int, "verbose"]
#: joblib refuses 0, but only during a fit. The upper limit exceeds the number of
#: processors of any machine.
Jobs: TypeAlias = Annotated[
    int | None,
    Interval(Integral, 1, 4096, closed="both"),
    Interval(Integral, None, -1, closed="right"),
    None,
]
#: Megabytes, up to an exabyte, which fits into 64 bits.
Megabytes: TypeAlias = Annotated[float, Interval(Real, 0, 1e12, closed="right")]
File: TypeAlias = Annotated[str | os.PathLike[str] | None, str, os.PathLike, None]
ClassWeight: TypeAlias = Annotated[
    dict[Label, float] | Literal["balanced"] | None,
    dict,
    StrOptions({"balanced"}),
    None,
]
Grid: TypeAlias = Annotated[int | ArrayLike, Integral, "array-like"]
LossLike: TypeAlias = Annotated[
    Literal["hinge", "squared_hinge", "smoothed_hinge"] | Loss,
    StrOptions(set(LOSSES)),
    Loss,
]
KernelLoss: TypeAlias = Annotated[
    Literal["hinge", "squared_hinge"] | Hinge | SquaredHinge,
    StrOptions({"hinge", "squared_hinge"}),
    Hinge,
    SquaredHinge,
]
LinearSolver: TypeAlias = Annotated[
    str | Solver,
    StrOptions({*solvers_of("binary"), *solvers_of("elastic-net")}),
    Solver,
]
Gamma: TypeAlias = Annotated[
    Literal["scale", "auto", "mean-distance"] | float,
    StrOptions({"scale", "auto", "mean-distance"}),
    _ABOVE_0,
]
KERNELS: dict[str, type[Kernel]] = {
    kernel.name: kernel
    for kernel in (Linear, Polynomial, RBF, Sigmoid, Laplacian, Precomputed)
}


def kernel_named(name: str, degree: int, gamma: float | str, coef0: float) -> Kernel:
    """Return the kernel of a name. Values that it does not have are left out."""
    own = {"degree": degree, "gamma": gamma, "coef0": coef0}
    record = KERNELS[name]
    known = getattr(record, "__dataclass_fields__", {})
    return record(**{key: own[key] for key in own if key in known})


KernelLike: TypeAlias = Annotated[
    Literal["linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"]
    | Kernel
    | Callable[..., ArrayLike],
    StrOptions(set(KERNELS)),
    Kernel,
    callable,
]

Constraints = dict[str, list[object]]


@cache
def constraints_of(estimator: type[BaseEstimator]) -> Constraints:
    """Return the valid values of all fields for scikit-learn's validation."""
    hints = get_type_hints(estimator, include_extras=True)
    return {
        field.name: _constraints(hints[field.name])
        for field in fields(estimator)
        if field.init
    }


def _constraints(hint: Any) -> Any:
    origin = get_origin(hint)
    if origin is Annotated:
        given = list(hint.__metadata__)
        return "no_validation" if given == ["no_validation"] else given
    if origin in (Union, UnionType):
        return [one for part in get_args(hint) for one in _constraints(part)]
    if origin is Literal:
        return [StrOptions(set(get_args(hint)))]
    if hint is NoneType:
        return [None]
    return ["boolean"] if hint is bool else [hint]


class _OfFields:
    """Class attribute that is computed from the fields."""

    def __init__(self, make: Callable[..., object]) -> None:
        self._make = make

    def __get__(self, _: object, estimator: type[BaseEstimator]) -> Any:
        return self._make(estimator)


@cache
def _signature(estimator: type[BaseEstimator]) -> Signature:
    own = signature(estimator.__init__)
    return own.replace(parameters=list(own.parameters.values())[1:])


# -------------------------------------------------------------------- wrong parameters


#: Documentation of methods that take rows. Linear classifiers have no kernel.
_OF_ROWS = """
Parameters
----------
X : {array-like, sparse matrix} of shape (n_samples, n_features)
    Rows; with a precomputed kernel, k(x, x_i) for all training rows i, shape
    (n_samples, n_samples_fit).
"""


class ParameterHints(BaseEstimator):
    """Mixin that answers wrong names and values of parameters with the right ones."""

    _parameter_constraints = _OfFields(constraints_of)
    __signature__ = _OfFields(_signature)

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        inherit_entries(cls)
        linear = issubclass(cls, LinearClassifierMixin)
        complete_methods(cls, _OF_ROWS.partition(";")[0] + "." if linear else _OF_ROWS)

    def __new__(cls, *args: object, **parameters: object) -> Self:
        if unknown := cls._unknown(parameters):
            raise TypeError(unknown)
        return super().__new__(cls)

    def set_params(self, **parameters: object) -> Self:
        """Set parameters of this estimator, and of estimators in it.

        Parameters
        ----------
        **parameters : dict
            Names and values; a name such as ``part__C`` is of the estimator `part`.

        Returns
        -------
        estimator
            This estimator.

        Raises
        ------
        ValueError
            If there is no such parameter. The message tells what to use.
        """
        # An estimator has the parameters of its parts, as in part__C.
        own = self.get_params(deep=False)
        if unknown := self._unknown(
            name for name in parameters if name.partition("__")[0] not in own
        ):
            raise ValueError(unknown)
        return super().set_params(**parameters)

    @classmethod
    def _unknown(cls, names: Iterable[str]) -> str:
        """Return remedies for names that are no parameters; empty without any."""
        known, anything = _known(cls.__init__)
        answers = {n: _answer(n, known) for n in names if n not in known}
        if anything or not answers:
            return ""
        *others, last = map(repr, answers)
        every, told = f"it has {', '.join(known)}", list(answers.values())
        if not others:
            return f"{cls.__name__} has no parameter {last}: {told[0] or every}"
        found = f"{cls.__name__} has no parameters {', '.join(others)} and {last}"
        if not any(told):
            return f"{found}: {every}"
        told = [f"{name}: {answer}" for name, answer in answers.items() if answer]
        if len(told) < len(answers):
            told.append(f"I{every[1:]}")
        return ". ".join([found, *told]).replace("?. ", "? ")

    @classmethod
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature every time.
        return sorted(_known(cls.__init__)[0])

    def _validate_params(self) -> None:
        kind: object = type(self)
        values = [getattr(self, name) for name in self._get_param_names()]
        try:
            plain = {type(value) for value in values} <= _PLAIN
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
    """
    real = any(isinstance(c, Interval) and c.type is Real for c in valid)
    refuse_huge(name, value, whole=not real)


#: Types of values whose validity cannot change.
_PLAIN = {bool, float, int, str, type(None)}


class NoProbabilitiesError(AttributeError):
    """The classifier has no probabilities."""

    def __init__(self, model: object, method: str) -> None:
        remedy = _CALIBRATE_NU if hasattr(model, "nu") else _CALIBRATE
        super().__init__(f"{type(model).__name__} has no {method}: {remedy}")


class ProbabilityHints:
    """Mixin that says how a classifier gets probabilities."""

    @property
    def predict_proba(self) -> NoReturn:
        raise NoProbabilitiesError(self, "predict_proba")

    @property
    def predict_log_proba(self) -> NoReturn:
        raise NoProbabilitiesError(self, "predict_log_proba")


def refuse_scores_of_probabilities(
    model: BaseEstimator, scoring: object, scorer: object
) -> None:
    """Raise an error if a score of a search needs probabilities that dualgap lacks.

    Scorers only say that a method is missing, after the first fit, and a search of
    scikit-learn then warns and goes on without any score.
    """
    for one in getattr(scorer, "_scorers", {"": scorer}).values():
        method = getattr(one, "_response_method", None)
        if method not in ("predict_proba", "predict_log_proba"):
            continue
        try:
            getattr(model, method)
        except AttributeError as error:
            cause: BaseException = error
            while cause.__cause__ is not None:  # of a pipeline
                cause = cause.__cause__
            if isinstance(cause, NoProbabilitiesError):
                raise ValueError(
                    f"scoring={scoring!r} needs probabilities, and {cause}"
                ) from None


def _answer(name: str, known: list[str]) -> str:
    """Return the remedy for an unknown parameter; empty without one."""
    tail = name.rpartition("__")[2]
    if "estimator" in known and (tail != name or tail in _OF_MODELS):
        return f"did you mean 'estimator__{tail}'?"
    for instead, answer in _ANSWERS.get(name, {}).items():
        if all(parameter in known for parameter in instead.split()):
            return answer
    near = nearest(tail, known)
    return f"did you mean {near!r}?" if near else ""


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
    if name == "C" and isinstance(value, Real) and value == math.inf:
        remedy = "Without a penalty there may be no optimum; use C=1e6, for example."
        return f"{message} {remedy}"
    if name == "max_iter" and isinstance(value, Real) and value == -1:
        remedy = "scikit-learn's -1 is no limit: leave it out for 10,000 epochs"
        return f"{message} {remedy}, or give a larger number."
    return f"{message} Did you mean {near!r}?" if near else message


#: Parameters of models, which stand inside an estimator around them.
_OF_MODELS = ("C", "gamma", "kernel", "epsilon", "degree")
#: Names that a message lists at most.
_MOST = 20
_CALIBRATE = "for probabilities fit dualgap.CalibratedClassifier(model)"
#: The folds of models with nu share no work.
_CALIBRATE_NU = (
    "for probabilities fit sklearn.calibration.CalibratedClassifierCV(model, "
    "ensemble=False)"
)
_SQUARED = (
    "leave it out for the squared norm; LinearSVC and LogisticRegression have an L1 "
    "penalty"
)
_KERNELS = "this model is linear; SVC, SVR and OneClassSVM have kernels"
#: Remedies for the parameters of scikit-learn's SVMs, each for models that have
#: certain parameters; "" is any model.
_ANSWERS = {
    "C": {"Cs": "use Cs, the values to choose from", "nu": "use nu"},
    "degree": {"": _KERNELS},
    "dual": {
        "": "leave it out; dualgap solves the dual and the primal problem together"
    },
    "epsilon": {
        "epsilons": "use epsilons, the values to choose from",
        "nu C": "leave it out; nu chooses it",
        "": "only SVR and LinearSVR have it",
    },
    "quantiles": {"quantile": "use quantile, which takes several values"},
    "gamma": {"gammas": "use gammas, the values to choose from", "": _KERNELS},
    "kernel": {"": _KERNELS},
    "l1_ratio": {"penalty": "use penalty='l1' or 'l2'", "": _SQUARED},
    "max_epochs": {"max_rounds": "use max_rounds", "": "use max_iter"},
    "max_iter": {"max_rounds": "use max_rounds, or time_limit in seconds"},
    "nu": {"epsilon": "use C and epsilon", "": "use C"},
    "penalize_intercept": {
        "intercept_scaling": "raise intercept_scaling, or use SVR(kernel='linear'), "
        "whose bias is free"
    },
    "penalty": {"": _SQUARED},
    "probability": {
        "nu class_weight": _CALIBRATE_NU,
        "class_weight": _CALIBRATE,
        "": "only classifiers have probabilities",
    },
    "shrinking": {"": "leave it out; the solvers always shrink"},
}
