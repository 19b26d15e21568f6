"""scikit-learn's checks of arrays, which name an argument beyond float64's range."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import TypeVar, cast

import numpy as np
from sklearn.utils import validation

Check = TypeVar("Check", bound=Callable[..., object])


def _naming(check: Check, *names: str) -> Check:
    """Return a check that raises a ValueError instead of an OverflowError.

    `names` are the arguments of the check that hold numbers.
    """
    arguments = signature(check)

    @wraps(check)
    def named(*args: object, **options: object) -> object:
        try:
            return check(*args, **options)
        except OverflowError:
            given = arguments.bind(*args, **options).arguments
            for name in names:
                if _overflows(given.get(name)):
                    own = given.get("input_name") or name
                    raise ValueError(
                        f"{own} holds a number beyond the range of float64; give "
                        "numbers of at most 1.8e308 in size"
                    ) from None
            raise

    return cast(Check, named)


def _overflows(values: object) -> bool:
    try:
        np.asarray(values, dtype=np.float64)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        pass
    return False


check_array = _naming(validation.check_array, "array")
check_rows_and_labels = _naming(validation.check_X_y, "X", "y")
#: Weights are float64, zero or positive.
check_sample_weight = _naming(
    partial(
        validation._check_sample_weight, dtype=np.float64, ensure_non_negative=True
    ),
    "sample_weight",
)
validate_data = _naming(validation.validate_data, "X", "y")
