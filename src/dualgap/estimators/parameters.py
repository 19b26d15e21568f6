"""Parameters that several estimators share: valid values, types and documentation."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import NamedTuple

from sklearn.utils._param_validation import Interval, StrOptions

from .fitting import CACHE_SIZE, N_JOBS

__all__ = ["OF_LINEAR_SEARCHES", "SHARED", "Constraints", "Shared", "constraints"]

#: Valid values of parameters, as scikit-learn checks them.
Constraints = dict[str, list[object]]

_POSITIVE = Interval(Real, 0, None, closed="neither")


class Shared(NamedTuple):
    """Parameter that means the same in every estimator that has it.

    Attributes
    ----------
    valid : list
        Constraints, in the form of scikit-learn's ``_parameter_constraints``.
    type : str
        Type and default, as docstrings have them.
    text : str
        Beginning of its text in docstrings; the rest is about the estimator.
    """

    valid: list[object]
    type: str
    text: str


SHARED = {
    "C": Shared(
        [_POSITIVE], "float, default=1.0", "Weight of the loss, summed over the rows."
    ),
    "tol": Shared([_POSITIVE], "float, default=1e-3", "Relative duality gap ``(P - D)"),
    "atol": Shared(
        [Interval(Real, 0, None, closed="left")],
        "float, default=0.0",
        "Duality gap ``P - D`` to prove,",
    ),
    "max_epochs": Shared(
        [Interval(Integral, 1, None, closed="left")],
        "int, default=10000",
        "Largest number of epochs",
    ),
    "time_limit": Shared([_POSITIVE, None], "float, optional", "Seconds for the "),
    "fit_intercept": Shared(["boolean"], "bool, default=True", "Whether to fit a bias"),
    "intercept_scaling": Shared(
        [_POSITIVE], "float, default=1.0", "Value of the constant feature."
    ),
    "class_weight": Shared(
        [dict, StrOptions({"balanced"}), None],
        'dict or "balanced", optional',
        "Factor of C for the rows of each class.",
    ),
    "cache_size": Shared(CACHE_SIZE, "float, default=200", ""),
    "warm_start": Shared(
        ["boolean"],
        "bool, default=False",
        "Start from the dual variables of the previous fit, which must have had",
    ),
    "checkpoint": Shared([str, os.PathLike, None], "str or path-like, optional", ""),
    "checkpoint_every": Shared(
        [_POSITIVE], "float, default=60.0", "Seconds between two checkpoints."
    ),
    "random_state": Shared(
        ["random_state"],
        "int, RandomState instance or None, default=0",
        "Seed of the ",
    ),
    "n_jobs": Shared(N_JOBS, "int, optional", "Number of threads"),
    "verbose": Shared(["verbose"], "int, default=0", "1 logs "),
}

#: Parameters of every search for C of a linear classifier.
OF_LINEAR_SEARCHES = (
    *("tol", "atol", "max_epochs", "time_limit"),
    *("fit_intercept", "intercept_scaling", "class_weight"),
    *("random_state", "n_jobs", "verbose"),
)


def constraints(*names: str) -> Constraints:
    """Return the constraints of shared parameters, for ``_parameter_constraints``."""
    return {name: SHARED[name].valid for name in names}
