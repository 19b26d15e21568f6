"""Checks of arguments that several modules share.

:func:`refuse_huge` refuses the numbers of Python and NumPy that 64 bits cannot hold.
Comparisons accept them, and conversions fail later, in words that name no argument.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache, partial, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector: TypeAlias = NDArray[np.float64]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def only_a_model(
    function: Callable[_Parameters, _Result],
) -> Callable[_Parameters, _Result]:
    """Let a function say that it takes a fitted model, and no rows after it."""
    most = function.__code__.co_argcount

    @wraps(function)
    def called(*args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        if len(args) > most:
            raise TypeError(
                f"{function.__qualname__} takes a fitted model and no rows; leave out "
                "X and y, and give options by name"
            )
        return function(*args, **options)

    return called


_BEYOND = "is beyond the range of float64; give a number of less than 1.8e308"


def refuse_huge(name: str, value: object, *, whole: bool = False) -> None:
    """Refuse a number beyond 64 bits, also one in a list or a dictionary.

    `whole`: whether an integer has to fit into 64 bits; else it has to fit into
    float64.
    """
    if type(value) in (float, bool, str, type(None)):
        return
    if type(value) is int and 0 <= value < 2**31:
        return
    if isinstance(value, Integral):
        # Messages about such a number must not print its digits.
        if whole and not -(2**63) <= int(value) < 2**63:
            raise ValueError(f"{name} does not fit into 64 bits; give less than 2**63")
        if abs(int(value)) > sys.float_info.max:
            raise ValueError(f"{name} {_BEYOND}")
    elif isinstance(value, np.floating):
        if np.isfinite(value) and math.isinf(float(value)):
            raise ValueError(f"{name} {_BEYOND}")
    elif isinstance(value, Real):
        try:
            float(value)
        except OverflowError:
            raise ValueError(f"{name} {_BEYOND}") from None
    elif isinstance(value, Mapping):
        for number, (key, item) in enumerate(value.items()):
            refuse_huge(f"key {number} of {name}", key)
            refuse_huge(f"{name}[{key!r}]", item)
    elif isinstance(value, (list, tuple)) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "O"
    ):
        for number, item in enumerate(value):
            refuse_huge(f"{name}[{number}]", item)


#: Refuses a value of a parameter, given its name.
Check: TypeAlias = Callable[[str, Any], None]
#: Words that a parameter may be, with their types.
Words: TypeAlias = tuple[tuple[type, object], ...]

# Squares of costs outside this range overflow or underflow float64.
_SMALLEST_COST, _LARGEST_COST = 1e-150, 1e150


def check_C(C: float | None, lambda_: float | None, n: int) -> float:
    """Return C, or ``1/(lambda n)`` if lambda_ is given instead."""
    if lambda_ is None:
        return check_positive("C", 1.0 if C is None else C)
    if C is not None:
        raise ValueError(
            f"C={C!r} and lambda_={lambda_!r} set the same parameter; give only one"
        )
    C = 1.0 / (check_positive("lambda_", lambda_) * n)
    if math.isinf(C):
        raise ValueError(
            f"lambda_={lambda_!r} is too small: 1/(lambda n) overflows; give a larger "
            "value"
        )
    return C


def check_threads(n_jobs: object) -> int:
    """Return n_jobs as a number of threads."""
    refuse_huge("n_jobs", n_jobs, whole=True)
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs < 1:
        raise ValueError(f"n_jobs={n_jobs!r}: give a number of threads, 1 or more")
    return int(n_jobs)


def check_constant(fit_intercept: bool, intercept_scaling: float) -> float:
    """Return the value of the constant feature; 0 without an intercept."""
    scaling = check_positive("intercept_scaling", intercept_scaling)
    return scaling if fit_intercept else 0.0


def check_free_bias(penalize_intercept: bool, constant: float) -> bool:
    """Return whether there is an unpenalised bias."""
    if penalize_intercept:
        return False
    if constant == 0.0:
        raise ValueError(
            "penalize_intercept=False needs fit_intercept=True; without it there is no "
            "intercept"
        )
    if constant != 1.0:
        raise ValueError(
            f"intercept_scaling={constant!r} has no effect with "
            "penalize_intercept=False; leave it at 1"
        )
    return True


def check_positive(name: str, value: Any) -> float:
    """Return a positive, finite number as a float."""
    refuse_huge(name, value)
    numbers = (int, float, np.integer, np.floating)
    if isinstance(value, np.floating):
        value = float(value)  # a float32 would round the limit in the comparison
    if not (isinstance(value, numbers) and 0 < value <= sys.float_info.max):
        raise ValueError(f"{name}={value!r}: give a positive, finite number")
    return float(value)


def check_labels(y: ArrayLike | None, n: int) -> NDArray[np.int8]:
    """Return labels, -1 or +1, one per row."""
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape}; expected ({n},), one label per row")
    known = (y == 1) | (y == -1)
    if not np.all(known):
        i = int(np.argmin(known))
        value = y[i : i + 1].tolist()[0]
        raise ValueError(f"y[{i}]={value!r}: labels are -1 and +1 here; map them first")
    return np.ascontiguousarray(y, dtype=np.int8)


def check_costs(C: float, sample_weight: ArrayLike | None, n: int) -> Vector:
    """Return ``c_i = C sample_weight_i``, shape (n,)."""
    if sample_weight is None:
        _check_span(C, C)
        return np.full(n, C)
    weight = check_vector("sample_weight", sample_weight, n)
    least, largest = weight.min(), weight.max()
    if least < 0.0:
        i = int(np.argmax(weight < 0.0))
        raise ValueError(
            f"sample_weight[{i}]={float(weight[i])!r}: weights must be zero or positive"
        )
    if largest == 0.0:
        raise ValueError("sample_weight is zero everywhere; give a positive weight")
    if least == 0.0:
        least = weight[weight > 0.0].min()
    with np.errstate(over="ignore"):
        _check_span(C * least, C * largest)
    return np.asarray(C * weight)


def _check_span(least: float, largest: float) -> None:
    if least < _SMALLEST_COST or largest > _LARGEST_COST:
        raise ValueError(
            f"C times sample_weight spans [{least:.3g}, {largest:.3g}]; "
            f"keep it within [{_SMALLEST_COST:g}, {_LARGEST_COST:g}]"
        )


def check_vector(name: str, value: ArrayLike | None, size: int) -> Vector:
    """Return finite numbers as a contiguous array of shape (size,)."""
    try:
        value = np.require(value, np.float64, ["C", "A", "W"])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} is not an array of numbers: {error}") from None
    if value.shape != (size,):
        raise ValueError(f"{name} has shape {value.shape}; expected ({size},)")
    finite = np.isfinite(value)
    if not finite.all():
        i = int(np.argmin(finite))
        raise ValueError(f"{name}[{i}]={float(value[i])!r}: give finite numbers")
    return value


def check_duals(alpha: ArrayLike, lower: Vector | float, upper: Vector) -> Vector:
    """Return dual variables as a contiguous array of finite numbers in their boxes."""
    alpha = check_vector("alpha", alpha, len(upper))
    outside = (alpha < lower) | (alpha > upper)
    if outside.any():
        i = int(np.argmax(outside))
        least = float(np.broadcast_to(lower, alpha.shape)[i])
        raise ValueError(
            f"alpha[{i}]={float(alpha[i])!r} is outside its box "
            f"[{least:g}, {float(upper[i])!r}]; clip it with "
            "numpy.clip(alpha, problem.lower, problem.upper)"
        )
    return alpha


def check_option(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse a hyper-parameter that is not one of the allowed words or flags."""
    refuse_huge(name, value)
    if not any(type(value) is type(word) and value == word for word in allowed):
        words = ", ".join(map(repr, allowed))
        raise ValueError(f"{name}={value!r}: use one of {words}")


def check_count(name: str, value: object, least: int = 1) -> None:
    """Refuse an argument that is not a whole number of at least `least`."""
    refuse_huge(name, value, whole=True)
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r}: give a whole number, {least} or more")


def check_step(name: str, value: object, largest: float = math.inf) -> None:
    """Refuse a step size that is not a positive, finite number up to `largest`."""
    refuse_huge(name, value)
    if not (
        isinstance(value, (int, float)) and 0.0 < value <= largest and value < math.inf
    ):
        limit = "" if math.isinf(largest) else f" of at most {largest:g}"
        raise ValueError(f"{name}={value!r}: give a positive, finite number{limit}")


#: Types of hyper-parameters, with the functions that check their values.
Count: TypeAlias = Annotated[int, check_count]
Step: TypeAlias = Annotated[float, check_step]
Fraction: TypeAlias = Annotated[float, partial(check_step, largest=1.0)]


def check_fields(record: object) -> None:
    """Refuse values of a dataclass that the types of its fields do not allow."""
    kind: type = type(record)
    for name, words, check in _checks_of(kind):
        value = getattr(record, name)
        if (type(value), value) in words:
            continue
        if check is None:
            check_option(name, value, tuple(word for _, word in words))
        else:
            check(name, value)


@cache
def _checks_of(record: type) -> list[tuple[str, Words, Check | None]]:
    """Return the fields with their words, and the check of any other value."""
    try:
        hints = get_type_hints(record, include_extras=True)
    except NameError:  # somebody's own record, with names of type checkers alone
        return []
    found = []
    for own in fields(record):
        words: tuple[object, ...] = ()
        checks: list[Check | None] = []  # None: a type without a check
        for hint in _parts(hints[own.name]):
            if get_origin(hint) is Literal:
                words += get_args(hint)
            elif hint is bool:
                words += True, False
            elif hint is NoneType:
                words += (None,)
            else:
                checks += getattr(hint, "__metadata__", (None,))
        if None not in checks:
            pairs = tuple((type(word), word) for word in words)
            found.append((own.name, pairs, checks[0] if checks else None))
    return found


def _parts(hint: object) -> tuple[object, ...]:
    """Return the types of a union, or the type itself."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
