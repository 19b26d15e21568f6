"""What the fits of LinearSVC and SVC share: weights, threads, logs, warnings."""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import (
    _ovr_decision_function,
    check_classification_targets,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight

from .. import __version__
from ..blocks import RowSource
from ..certificate import Certificate
from ..loop import EpochInfo, ctrl_c
from ..losses import Vector
from ..memory import make_room_for

__all__ = [
    "CACHE_SIZE",
    "N_JOBS",
    "OnEpoch",
    "VersionedPickle",
    "class_factors",
    "class_scores",
    "encode",
    "fit_all",
    "listener",
    "one_or_all",
    "refuse_masks",
    "refuse_store",
    "votes",
    "warn_of_failures",
    "weights",
]

#: What `n_jobs` may be. 0 has no meaning, and joblib says so in the midst of a fit. No
#: machine has processors for more than this many threads.
N_JOBS = [
    Interval(Integral, 1, 4096, closed="both"),
    Interval(Integral, None, -1, closed="right"),
    None,
]

#: What `cache_size` may be, in MB: the most are an exabyte, which 64 bits count.
CACHE_SIZE = [Interval(Real, 0, 1e12, closed="right")]

#: Threads that joblib's pool has beside its workers.
_POOL = 3

logger = logging.getLogger("dualgap")

OnEpoch = Callable[[Any, EpochInfo], object]
T = TypeVar("T")


class VersionedPickle:
    """A pickle knows what version it is of, and says so to any other.

    Parameters that a version did not know yet get their defaults.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "_dualgap_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        written = state.get("_dualgap_version", "an unknown version")
        kept = {k: value for k, value in state.items() if k != "_dualgap_version"}
        if written != __version__:
            warnings.warn(
                f"a {type(self).__name__} that was pickled by dualgap {written}, and "
                f"this is {__version__}: its parts may mean something else; files of "
                "save_model are good for all versions",
                UserWarning,
                stacklevel=2,
            )
            defaults = type(self)().get_params(deep=False)  # type: ignore[attr-defined]
            kept = defaults | kept
        super().__setstate__(kept)  # type: ignore[misc]


def encode(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The sorted classes of y, and the class of every row by its place among them.

    Raises
    ------
    ValueError
        If y holds no classes but a continuous quantity.
    """
    with np.errstate(invalid="ignore"):  # infinite ones are refused, with no warning
        # Two whole numbers need no sort, which would cost more than a pass over X.
        if y.dtype.kind in "biuf" and y.size:
            low, high = y.min(), y.max()
            upper = y == high
            if low < high and low % 1 == high % 1 == 0 and (upper | (y == low)).all():
                return np.array([low, high], dtype=y.dtype), upper.astype(np.intp)
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes


def refuse_masks(**arrays: Any) -> None:
    """Refuse masked arrays: what is under the mask would be trained on.

    Raises
    ------
    TypeError
        Naming the argument.
    """
    for name, array in arrays.items():
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError(
                f"{name} is a MaskedArray, whose mask would be lost; leave masked rows "
                f"out, or give {name}.filled(value)"
            )


def refuse_store(X: Any, who: str, remedy: str) -> None:
    """Refuse rows on the disk where they have to be in memory.

    Raises
    ------
    ValueError
    """
    if isinstance(X, RowSource):
        raise ValueError(f"X is {X!r}: {who} needs its rows in memory; {remedy}")


def weights(
    class_weight: dict[Any, float] | str | None,
    X: Any,
    classes: NDArray[Any],
    codes: NDArray[np.intp],
    sample_weight: ArrayLike | None,
) -> tuple[Vector, Vector]:
    """Sample weights, shape (n,), and class weights, shape (n_classes,).

    Raises
    ------
    ValueError
        If a weight is negative or not finite, or fewer than two classes have rows
        with a positive weight.
    """
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class, {classes[0]!s}; give rows of at least 2 classes"
        )
    if sample_weight is None and class_weight is None:
        return np.ones(len(codes)), np.ones(len(classes))
    weight = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    total = np.bincount(codes, weight).astype(np.float64)
    factor = class_factors(class_weight, classes, total)
    return weight, factor


def class_factors(
    class_weight: dict[Any, float] | str | None, classes: NDArray[Any], total: Vector
) -> Vector:
    """Class weights, shape (n_classes,), from the sample weights summed by class.

    Raises
    ------
    ValueError
        If one is negative or not finite, or fewer than two classes keep a weight.
    """
    if class_weight == "balanced":
        # Not compute_class_weight's, which ignores the weights in old versions.
        factor = total.sum() / (len(classes) * np.where(total > 0, total, np.inf))
    else:
        factor = compute_class_weight(class_weight, classes=classes, y=classes)
        if not (np.isfinite(factor) & (factor >= 0.0)).all():
            raise ValueError(
                f"class_weight={class_weight!r}: weights must be finite, zero "
                "or positive"
            )
    if np.count_nonzero(total * factor) < 2:
        raise ValueError(
            "sample_weight and class_weight leave rows of fewer than 2 classes "
            "with a positive weight; give some of another class one"
        )
    return factor


def listener(
    label: Any, callback: Callable[[EpochInfo], None] | None, on_epoch: OnEpoch | None
) -> Callable[[EpochInfo], object] | None:
    """Of scikit-learn's callbacks and of `on_epoch`, one function; None for neither."""
    if callback is None and on_epoch is None:
        return None

    def tell(info: EpochInfo) -> object:
        if callback is not None:
            callback(info)
        return on_epoch is not None and on_epoch(label, info)

    return tell


def fit_all(
    fit: Callable[[int], T],
    count: int,
    *,
    n_jobs: int | None,
    stop: Any,
    verbose: int,
) -> list[T]:
    """Fit `count` binary problems in threads that stop together.

    On Ctrl-C each keeps its best model; when one raises, the others end before it
    leaves here.
    """
    raised: list[BaseException] = []

    def guarded(k: int) -> T | None:
        # Not raised in a thread: joblib leaves the others running then, and a thread
        # that ends later puts back the filters of warnings that it found.
        try:
            return fit(k)
        except BaseException as error:
            stop.request()
            raised.append(error)
            return None

    with _visible_logs(verbose), ctrl_c(stop):
        # One after the other: joblib and its filters of warnings take longer than
        # a small fit.
        if count == 1 or n_jobs == 1:
            return [fit(k) for k in range(count)]
        make_room_for(min(effective_n_jobs(n_jobs), count) + _POOL)
        found = Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(guarded)(k) for k in range(count)
        )
    if raised:
        raise raised[0]
    return cast(list[T], found)


def one_or_all(items: list[T]) -> T | list[T]:
    """The only one, or the list."""
    return items if len(items) > 1 else items[0]


def class_scores(
    values: NDArray[np.float64], multi_class: str, classes: int
) -> NDArray[np.float64]:
    """Scores of the classes, of the decisions of the binary problems."""
    if multi_class != "ovo" or values.ndim == 1:
        return values
    return votes(values, classes)


def votes(values: NDArray[np.float64], classes: int) -> NDArray[np.float64]:
    """Of the decisions of all pairs, (n, pairs), a score per class, (n, classes).

    A value is positive for the second class of its pair. The score is as of
    scikit-learn's ``OneVsOneClassifier``: votes, and within a third of one on either
    side the sum of confidences.
    """
    found: NDArray[np.float64] = _ovr_decision_function(values > 0.0, values, classes)
    return found


def warn_of_failures(
    name: str,
    certificates: Sequence[Certificate],
    problems: Sequence[str],
    several: str,
    stacklevel: int = 5,
) -> None:
    """One warning, about the problem that is farthest from its optimum.

    Parameters
    ----------
    name : str
        Of the estimator.
    certificates : sequence of Certificate
    problems : sequence of str
        What each is about, such as "class 3".
    several : str
        Plural of that, "classes".
    stacklevel : int, default=5
        Frames up to the caller of fit: past _fit and scikit-learn's decorator.
    """
    failed = [
        k for k, certificate in enumerate(certificates) if not certificate.certified
    ]
    if not failed:
        return
    worst = max(failed, key=lambda k: certificates[k].relative_gap)
    message = certificates[worst].message
    if len(problems) > 1:
        message = (
            f"{len(failed)} of {len(problems)} {several} are not certified; the worst "
            f"is {problems[worst]}: {message}"
        )
    warnings.warn(f"{name}: {message}", ConvergenceWarning, stacklevel=stacklevel)


@contextlib.contextmanager
def _visible_logs(verbose: int) -> Iterator[None]:
    """Let the log of a fit be seen: on standard output if no handler is there."""
    if not verbose:
        yield
        return
    handler = None if logger.hasHandlers() else logging.StreamHandler(sys.stdout)
    level = logging.INFO if verbose == 1 else logging.DEBUG
    before = logger.level
    if handler is not None:
        logger.addHandler(handler)
    logger.setLevel(min(level, logger.getEffectiveLevel()))
    try:
        yield
    finally:
        logger.setLevel(before)
        if handler is not None:
            logger.removeHandler(handler)
