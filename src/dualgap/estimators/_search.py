"""Parts of the searches over folds: walks over them, and the end of a search."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import check_scoring
from sklearn.model_selection import BaseCrossValidator

from .. import core
from ..certificate import Status
from ..losses import Vector
from .hints import refuse_scores_of_probabilities
from .training import fit_all

__all__ = [
    "CUT_SHORT",
    "best_of",
    "first_best",
    "in_fold",
    "part_of",
    "parts_of",
    "ranks",
    "run_folds",
    "scorer_of",
    "why_ended",
]

#: How rows are split into folds: their number, a splitter, or the folds themselves.
CrossValidation: TypeAlias = (
    int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]] | None
)

#: Scores a model on test rows: `scorer(model, X, y)`.
Scorer = Callable[..., float]


#: A model with one of these statuses is incomplete and is not scored.
CUT_SHORT = (Status.INTERRUPTED, Status.TIME_LIMIT)

#: Relative difference up to which mean scores are equal: the same scores, added in
#: another order, differ by rounding.
_ROUNDING = 1e-12


def scorer_of(
    model: BaseEstimator, scoring: str | Callable[..., float] | None
) -> Scorer:
    """Return the scorer of a search for models like this one.

    Raises
    ------
    ValueError
        If it needs probabilities.
    """
    scorer: Scorer = check_scoring(model, scoring=scoring)
    refuse_scores_of_probabilities(model, scoring, scorer)
    return scorer


def part_of(weight: Vector, train: NDArray[np.generic]) -> Vector:
    """Return the weights of a training part: 0 for other rows, k times for repeats."""
    rows = np.arange(len(weight))[train]
    return weight * np.bincount(rows, minlength=len(weight))


def parts_of(
    weight: Vector,
    folds: Iterable[NDArray[np.generic]],
    codes: NDArray[np.intp] | None = None,
) -> list[Vector]:
    """Return the weights of the training part of every fold.

    Raises
    ------
    ValueError
        If a part has no row with a positive weight or, given the `codes` of classes,
        rows of one class only.
    """
    parts = [part_of(weight, train) for train in folds]
    remedy = "change sample_weight, or the folds with cv"
    for fold, part in enumerate(parts):
        if not part.any():
            raise ValueError(
                f"fold {fold} has no training row with a positive weight; {remedy}"
            )
        if codes is not None and len(np.unique(codes[part > 0.0])) < 2:
            raise ValueError(
                f"fold {fold} has training rows with a positive weight of one class "
                f"only; {remedy}"
            )
    return parts


@contextlib.contextmanager
def in_fold(fold: int) -> Iterator[None]:
    """Name the fold in errors about its rows."""
    try:
        yield
    except ValueError as error:
        error.args = (f"fold {fold}: {error}", *error.args[1:])
        raise


def run_folds(
    walk: Callable[[int], Iterator[None]],
    folds: int,
    *,
    n_jobs: int | None,
    stop: core.Stop,
    verbose: int,
    in_turns: bool = True,
) -> None:
    """Run the walk of every fold to its end.

    One thread takes a step of each fold in turn, so that after a stop all folds have
    got as far. Several threads walk one fold each.

    Parameters
    ----------
    walk : callable
        Returns the steps of a fold.
    folds : int
    n_jobs, verbose
        As for an estimator.
    stop : core.Stop
    in_turns : bool, default=True
        False if one thread must end a fold before it begins the next.
    """

    def all_of_them(_: int) -> None:
        deque(itertools.zip_longest(*map(walk, range(folds))), maxlen=0)

    def alone(fold: int) -> None:
        deque(walk(fold), maxlen=0)

    if in_turns and min(effective_n_jobs(n_jobs), folds) == 1:
        fit_all(all_of_them, 1, n_jobs=n_jobs, stop=stop, verbose=verbose)
    else:
        fit_all(alone, folds, n_jobs=n_jobs, stop=stop, verbose=verbose)


def why_ended(stop: core.Stop, time_limit: float | None) -> str:
    """Return the reason why a search was cut short."""
    return "interrupted" if stop.requested else f"{time_limit=!r} was reached"


def ranks(mean: Vector) -> NDArray[np.int32]:
    """Return the ranks of mean scores from 1; equal ones share the better rank.

    NaN has the last rank.
    """
    order = np.argsort(-mean, kind="stable")  # NaN last
    falling = np.where(np.isnan(mean), -np.inf, mean)[order]
    equal = np.isclose(falling[1:], falling[:-1], rtol=_ROUNDING, atol=0.0)
    place = np.arange(1, len(mean) + 1)
    place[1:][equal] = 0
    found = np.empty(len(mean), np.int32)
    found[order] = np.maximum.accumulate(place)
    return found


def first_best(mean: Vector, Cs: ArrayLike) -> int:
    """Return the index of the best mean score: the smallest C of equal ones, the first.

    `Cs` has the C of every score; infinity where there is none.
    """
    tied = np.flatnonzero(ranks(mean) == 1)
    return int(tied[np.argmin(np.asarray(Cs)[tied])])


def best_of(
    mean: Vector,
    Cs: ArrayLike,
    stop: core.Stop,
    what: str,
    scoring: str | Callable[..., float] | None,
    time_limit: float | None,
) -> int:
    """Return the index of the best mean score, as :func:`first_best`, or raise.

    Parameters
    ----------
    mean : ndarray of shape (n,)
        Mean scores of what was scored on all folds; empty if nothing was.
    Cs : array-like of shape (n,)
        The C of each.
    stop : core.Stop
    what : str
        Word for what is scored, such as "C".
    scoring, time_limit
        As for the estimator.

    Raises
    ------
    ValueError
        If there is no score, or every score is NaN.
    KeyboardInterrupt
        If there is no score because of Ctrl-C.
    """
    if not np.isnan(mean).all():
        return first_best(mean, Cs)
    if mean.size:
        raise ValueError(
            f"scoring={scoring!r} gave NaN for every {what}; choose another score"
        )
    message = f"{why_ended(stop, time_limit)} before any {what} was scored on all folds"
    if stop.requested:
        raise KeyboardInterrupt(message)
    raise ValueError(f"{message}; give more time, or fewer values or folds")
