"""Code that several estimators share: weights, threads, logs, warnings."""

from __future__ import annotations

import contextlib
import copy
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, validate_params
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import (
    _ovr_decision_function,
    check_classification_targets,
)

from .. import __version__
from ..certificate import Certificate, Status
from ..data.blocks import RowSource
from ..data.rows import Points
from ..data.types import Label, MatrixLike, Parameters, ProblemLabel
from ..losses import Vector
from ..training import EpochInfo
from .arguments import check_sample_weight, validate_data
from .degenerate import DegenerateWarning
from .hints import refuse_huge_of

__all__ = [
    "CACHE_SIZE",
    "N_JOBS",
    "ROWS",
    "OnEpoch",
    "SmallPickle",
    "VersionedPickle",
    "checked",
    "checking",
    "class_factors",
    "class_scores",
    "encode",
    "is_silent",
    "listener",
    "need_duals",
    "one_or_all",
    "refuse_masks",
    "refuse_store",
    "rows_to_predict",
    "silent_failures",
    "validated",
    "votes",
    "warn_of_chance",
    "warn_of_failures",
    "warn_of_models",
    "weights",
]

#: Valid values of `n_jobs`. joblib refuses 0, but only during a fit. The upper limit
#: exceeds the number of processors of any machine.
N_JOBS = [
    Interval(Integral, 1, 4096, closed="both"),
    Interval(Integral, None, -1, closed="right"),
    None,
]

#: Valid values of `cache_size` in MB, up to an exabyte, which fits into 64 bits.
CACHE_SIZE = [Interval(Real, 0, 1e12, closed="right")]


logger = logging.getLogger("dualgap")

OnEpoch = Callable[[ProblemLabel, EpochInfo], object]
T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., object])


class VersionedPickle(BaseEstimator):
    """Mixin that records the version of dualgap in pickles.

    Unpickling in another version warns, and gives parameters that the older version did
    not have their default values.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "_dualgap_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        written = state.get("_dualgap_version", "an unknown version")
        kept = {k: value for k, value in state.items() if k != "_dualgap_version"}
        if written != __version__:
            warnings.warn(
                f"this {type(self).__name__} was pickled by dualgap {written}, but "
                f"dualgap {__version__} is running: attributes may have changed their "
                "meaning. Use files of save_model, which all versions can read",
                UserWarning,
                stacklevel=2,
            )
            defaults = type(self)().get_params(deep=False)
            kept = defaults | kept
        super().__setstate__(kept)


class SmallPickle(VersionedPickle):
    """Mixin of linear models, whose pickles leave out the dual variables.

    They would make the pickle many times as large as the model. Copies in memory have
    them, and so have pickles of a model with ``warm_start=True``.
    """

    def __getstate__(self) -> dict[str, object]:
        state = super().__getstate__()
        if not state.get("warm_start"):
            for name in DUALS:
                state.pop(name, None)
        return state

    def __copy__(self) -> SmallPickle:
        new = type(self).__new__(type(self))
        new.__dict__.update(vars(self))
        return new

    def __deepcopy__(self, memo: dict[int, object]) -> SmallPickle:
        new = memo[id(self)] = type(self).__new__(type(self))
        new.__dict__.update(copy.deepcopy(vars(self), memo))
        return new


#: Attributes that pickles of linear models leave out: they grow with the rows.
DUALS = ("support_", "dual_coef_")


def need_duals(model: BaseEstimator, what: str) -> None:
    """Raise an error if a fitted linear model has no dual variables.

    Raises
    ------
    ValueError
        With the way to keep them.
    """
    if hasattr(model, "coef_") and not hasattr(model, "dual_coef_"):
        raise ValueError(
            f"{what}: the model has no dual variables, which pickles and model files "
            "leave out; fit it again, pickle it with warm_start=True, or save it with "
            "duals=True"
        )


def encode(y: NDArray[np.generic]) -> tuple[NDArray[np.generic], NDArray[np.intp]]:
    """Return the sorted classes of y, and the index of every row's class.

    Returns
    -------
    classes : ndarray of shape (K,)
    codes : ndarray of shape (n,), dtype intp

    Raises
    ------
    ValueError
        If y is continuous.
    """
    whole = y if y.dtype.kind in "biu" else None
    if y.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # NaN and infinite labels are refused below
            numbers = y.astype(np.intp)
        whole = numbers if (numbers == y).all() else None
    if whole is not None and y.size:
        # A table of small whole numbers needs no sort. scikit-learn's check takes
        # longer than a small fit, and of them only looks at how many differ.
        low, high = int(whole.min()), int(whole.max())
        if high - low < len(y) and max(-low, high) < 2**62:
            codes = whole.astype(np.intp) - low
            present = np.bincount(codes) > 0
            classes = (np.flatnonzero(present) + low).astype(y.dtype)
            if len(classes) < high - low + 1:
                codes = (np.cumsum(present) - 1)[codes]
            if 2 * len(classes) > len(y):
                check_classification_targets(y)
            return classes, codes
    with np.errstate(invalid="ignore"):
        check_classification_targets(y)
    return np.unique(y, return_inverse=True)


#: Arguments of scikit-learn's checks of rows. Problems and kernel matrices check every
#: entry, and log a copy.
ROWS: Parameters = {
    "accept_sparse": ["csr", "csc", "coo"],
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,
}


def checked(fit: Function) -> Function:
    """Let scikit-learn check the parameters of an estimator before a method runs."""
    return cast(Function, _fit_context(prefer_skip_nested_validation=True)(fit))


def checking(
    constraints: Mapping[str, Sequence[object]],
) -> Callable[[Function], Function]:
    """Let scikit-learn check the arguments of a function before it runs."""
    valid = {
        name: [_OfRange(name, allowed), *allowed]
        for name, allowed in constraints.items()
    }
    return cast(
        Callable[[Function], Function],
        validate_params(valid, prefer_skip_nested_validation=True),
    )


class _OfRange(HasMethods):
    """Constraint that refuses numbers beyond 64 bits, and leaves the rest to others."""

    def __init__(self, name: str, others: Sequence[object]) -> None:
        super().__init__("__int__")
        self.hidden = True
        self.name, self.others = name, others

    def is_satisfied_by(self, val: object) -> bool:
        refuse_huge_of(self.name, val, self.others)
        return False


def validated(
    estimator: BaseEstimator,
    X: MatrixLike | Points,
    y: ArrayLike | None,
    **options: bool,
) -> Any:
    """Return what scikit-learn's ``validate_data`` returns for training rows.

    Inspected rows, which a search passes to the fit of its final model, pass as they
    are, with their labels. So do arrays that the checks would return as they are: the
    checks take longer than a small fit.
    """
    if isinstance(X, Points):
        estimator.n_features_in_ = X.shape[1]
        return X, y
    named = isinstance(y, str)  # "no_validation"
    rows = _is_plain(estimator, X, reset=options.get("reset", True))
    if rows and (named or _are_plain_labels(y, X.shape[0])):
        estimator.n_features_in_ = X.shape[1]
        return X if named else (X, y)
    return validate_data(estimator, X, y, **ROWS, **options)


def rows_to_predict(
    estimator: BaseEstimator, X: MatrixLike, *, finite: bool
) -> MatrixLike:
    """Return rows of float32 or float64, dense or CSR, as wide as the training rows.

    Their values are checked only if `finite` says so.
    """
    if not finite and _is_plain(estimator, X, reset=False):
        return X
    return validate_data(
        estimator,
        X,
        reset=False,
        accept_sparse="csr",
        dtype=ROWS["dtype"],
        ensure_all_finite=finite,
    )


def _is_plain(estimator: BaseEstimator, X: MatrixLike, *, reset: bool) -> bool:
    """Whether scikit-learn's checks would return these rows as they are."""
    return (
        type(X) in (np.ndarray, csr_matrix, csr_array)
        and X.ndim == 2
        and X.dtype in (np.float64, np.float32)
        and min(X.shape) > 0
        and (reset or X.shape[1] == estimator.n_features_in_)
        and "feature_names_in_" not in vars(estimator)
    )


def _are_plain_labels(y: ArrayLike | None, n: int) -> bool:
    """Whether scikit-learn's checks would return these labels as they are."""
    if type(y) is not np.ndarray or y.shape != (n,):
        return False
    kind = y.dtype.kind
    return kind in "biuU" or (kind == "f" and bool(np.isfinite(y).all()))


def refuse_masks(**arrays: object) -> None:
    """Raise an error for masked arrays, whose masked values would be used.

    Raises
    ------
    TypeError
        Naming the argument.
    """
    for name, array in arrays.items():
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError(
                f"{name} is a MaskedArray, whose mask would be ignored; remove the "
                f"masked rows, or give {name}.filled(value)"
            )


def refuse_store(X: MatrixLike, who: str, remedy: str) -> None:
    """Raise an error if X is on disk where the rows must be in memory.

    Raises
    ------
    ValueError
        If X is a row store or another row source.
    """
    if isinstance(X, RowSource):
        raise ValueError(f"X is {X!r}, but {who} needs its rows in memory; {remedy}")


def weights(
    class_weight: dict[Label, float] | str | None,
    X: MatrixLike,
    classes: NDArray[np.generic],
    codes: NDArray[np.intp],
    sample_weight: ArrayLike | None,
) -> tuple[Vector, Vector]:
    """Return sample weights, shape (n,), and class weights, shape (n_classes,).

    Raises
    ------
    ValueError
        If a weight is negative or not finite, or fewer than two classes have rows
        with a positive weight.
    """
    if len(classes) < 2:
        raise ValueError(
            f"y holds only one class, {classes[0]!s}; give rows of at least 2 classes"
        )
    if sample_weight is None and class_weight is None:
        return np.ones(len(codes)), np.ones(len(classes))
    weight = check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    total = np.bincount(codes, weight).astype(np.float64)
    factor = class_factors(class_weight, classes, total)
    return weight, factor


def class_factors(
    class_weight: dict[Label, float] | str | None,
    classes: NDArray[np.generic],
    total: Vector,
) -> Vector:
    """Return class weights, shape (n_classes,), given each class's total sample weight.

    Raises
    ------
    ValueError
        If a key is no class while a class has no key, a weight is negative or not
        finite, or fewer than two classes have a positive weight.
    """
    if class_weight == "balanced":
        # compute_class_weight ignores the sample weights in older versions.
        factor = total.sum() / (len(classes) * np.where(total > 0, total, np.inf))
    else:
        known, given = classes.tolist(), list(class_weight or ())
        wrong = [key for key in given if key not in known]
        if wrong and any(name not in given for name in known):
            names = ", ".join(map(repr, known[:10])) + ", ..." * (len(known) > 10)
            raise ValueError(
                f"class_weight has the key {wrong[0]!r}, which is no class; the "
                f"classes are {names}"
            )
        factor = compute_class_weight(class_weight, classes=classes, y=classes)
        if not (np.isfinite(factor) & (factor >= 0.0)).all():
            raise ValueError(
                f"class_weight={class_weight!r}: weights must be finite, zero or "
                "positive"
            )
    if np.count_nonzero(total * factor) < 2:
        raise ValueError(
            "fewer than 2 classes have rows with a positive weight; change "
            "sample_weight or class_weight"
        )
    return factor


def listener(
    label: ProblemLabel,
    callback: Callable[[EpochInfo], None] | None,
    on_epoch: OnEpoch | None,
) -> Callable[[EpochInfo], object] | None:
    """Combine scikit-learn's callback and `on_epoch`; None if neither is given."""
    if callback is None and on_epoch is None:
        return None

    def tell(info: EpochInfo) -> object:
        if callback is not None:
            callback(info)
        return on_epoch is not None and on_epoch(label, info)

    return tell


def one_or_all(items: list[T]) -> T | list[T]:
    """Return the item of a list of one, else the list."""
    return items if len(items) > 1 else items[0]


def class_scores(
    values: NDArray[np.float64], multi_class: str, classes: int
) -> NDArray[np.float64]:
    """Return class scores from the decision values of the binary problems."""
    if multi_class != "ovo" or values.ndim == 1:
        return values
    return votes(values, classes)


def votes(values: NDArray[np.float64], classes: int) -> NDArray[np.float64]:
    """Return a score per class, (n, classes), from pairwise decisions, (n, pairs).

    A decision is positive for the second class of its pair. Scores are computed as in
    scikit-learn's ``OneVsOneClassifier``: the number of votes, plus the sum of
    confidences squeezed into plus or minus one third of a vote.
    """
    found: NDArray[np.float64] = _ovr_decision_function(values > 0.0, values, classes)
    return found


# Unlike a filter of warnings it touches no other thread.
_SILENT: ContextVar[bool] = ContextVar("silent_failures", default=False)


@contextlib.contextmanager
def silent_failures() -> Iterator[None]:
    """Let fits end without a proof and without a warning, in this thread alone.

    Callers read the certificate and warn in their own words.
    """
    before = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(before)


def is_silent() -> bool:
    """Whether fits of this thread end without warnings; see :func:`silent_failures`."""
    return _SILENT.get()


def warn_of_failures(
    name: str,
    certificate: Certificate,
    several: str = "problems",
    stacklevel: int = 5,
) -> None:
    """Warn once if problems did not converge, and name the worst of them.

    Parameters
    ----------
    name : str
        Name of the estimator.
    certificate : Certificate
    several : str, default="problems"
        Plural of what the parts are about, such as "classes".
    stacklevel : int, default=5
        Frames up to the caller of fit, past _fit and scikit-learn's decorator.
    """
    if certificate.certified or _SILENT.get():
        return
    failed = [part for part in certificate.parts if not part.certified]
    worst = max(failed, key=lambda part: part.relative_gap)
    message = str(worst)
    if worst.status is Status.UNCERTIFIED:
        message = worst.message
    elif len(certificate) > 1:
        message = (
            f"{len(failed)} of {len(certificate)} {several} did not converge. Worst: "
            f"{worst.name}, {worst.message.removeprefix('Not converged: ')}"
        )
    warnings.warn(f"{name}: {message}", ConvergenceWarning, stacklevel=stacklevel)


def warn_of_models(
    name: str, found: Sequence[tuple[str, Certificate]], stacklevel: int
) -> None:
    """Warn once if models of a search did not converge; each comes with its name.

    Parameters
    ----------
    name, stacklevel
        As for :func:`warn_of_failures`.
    found : sequence of (str, Certificate)
    """
    if all(certificate.certified for _, certificate in found):
        return  # joining thousands of certificates takes time
    names, certificates = zip(*found, strict=True)
    whole = Certificate.total(list(certificates), list(names))
    warn_of_failures(name, whole, "models", stacklevel + 1)


def warn_of_chance(name: str, of: str, cause: str, stacklevel: int) -> None:
    """Warn that the optimum leaves predictions to rounding.

    Parameters
    ----------
    name : str
        Name of the estimator.
    of : str
        What rounding decides.
    cause : str
        Why, and what to do.
    stacklevel : int
        Frames up to the caller of fit.
    """
    warnings.warn(
        f"{name}: rounding decides {of}, because {cause}",
        DegenerateWarning,
        stacklevel=stacklevel,
    )
