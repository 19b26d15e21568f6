"""Proved bounds on the leave-one-out and the cross-validation error."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from ..answers.ball import Ball
from ..answers.left_out import (
    SETTINGS,
    InterruptedFitError,
    LeftOut,
    sharpened,
    without_rows,
)
from ..blas import limited
from ..data.types import MatrixLike
from ..estimators.base import unwrap
from ..estimators.input import checking, encode
from ..estimators.parameters import Constraints
from ..estimators.regions import balls_of
from ..kernels.functions import Rows
from ..losses import Vector
from ..problems.reductions import Reduction, reduction_in, refuse_labels

Mask = NDArray[np.bool_]
#: Training rows and test rows.
Fold = tuple[ArrayLike, ArrayLike]


@dataclass(frozen=True, eq=False, repr=False)
class ErrorBounds:
    """Interval that contains the error of exact optima on rows they were not given.

    Attributes
    ----------
    lower, upper : float
        Bounds on the share of rows that are predicted wrongly.
    wrong, right : ndarray of shape (n_held_out,), bool
        Rows that are certainly predicted wrongly, and certainly rightly. `loo_bounds`
        holds out every row, in order. `cv_bounds` has the held-out rows fold by fold.
    lower_margins, upper_margins : ndarray of shape (n_held_out,)
        Bounds on the margin of each row: with two classes the decision in the direction
        of the row's class, with more the score of its class minus the largest other.
    method : str
        "leave-one-out", or "5-fold" and the like.
    n_repairs : int
        Repairs of dual variables that were made.
    n_fits : int
        Fits that were made besides the first one of all rows.
    """

    lower: float
    upper: float
    wrong: Mask
    right: Mask
    lower_margins: Vector
    upper_margins: Vector
    method: str
    n_repairs: int = 0
    n_fits: int = 0

    @property
    def undecided(self) -> NDArray[np.intp]:
        """Indices of the rows that the bounds leave open."""
        return np.flatnonzero(~(self.wrong | self.right))

    @property
    def exact(self) -> bool:
        """Whether every row is decided, so that `lower` and `upper` are equal."""
        return len(self.undecided) == 0

    def __repr__(self) -> str:
        return (
            f"ErrorBounds(lower={self.lower:.6g}, upper={self.upper:.6g}, "
            f"undecided={len(self.undecided)}, rows={len(self.wrong)}, "
            f"method={self.method!r})"
        )

    def __str__(self) -> str:
        start = f"The {self.method} error of the exact optimum is"
        if self.exact:
            return f"{start} {100 * self.lower:.5g} %, proved for all rows."
        return (
            f"{start} between {100 * self.lower:.5g} % and {100 * self.upper:.5g} %: "
            f"{len(self.undecided)} of {len(self.wrong)} rows are undecided."
        )


_PARAMETERS: Constraints = {
    "refine": [StrOptions({"none", "local", "exact"})],
    "tol": [Interval(Real, 0, None, closed="neither"), None],
    "time_limit": [Interval(Real, 0, None, closed="neither"), None],
}


@checking(_PARAMETERS)
def loo_bounds(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    refine: str = "local",
    sample_weight: ArrayLike | None = None,
    tol: float | None = 1e-9,
    time_limit: float | None = None,
) -> ErrorBounds:
    """Bound the leave-one-out error of the exact optimum from one fit.

    For each row, the decision at this row by the optimum of the problem without the row
    is enclosed in an interval. The optimum is the one of the model's objective: kernel
    parameters and class weights stay as they are, and so do the steps of a pipeline.

    Parameters
    ----------
    model : LinearSVC or SVC
        A fitted classifier, also at the end of a pipeline or in a search, but not with
        ``multi_class="crammer_singer"``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training rows.
    y : array-like of shape (n_samples,)
        The training labels.
    refine : {"none", "local", "exact"}, default="local"
        Work for rows that are undecided. "none" drops the row's dual variable: one pass
        for all rows, which is enough at small C. (With an unpenalised bias it leaves
        all support vectors open that are on the right side.) "local" then repairs the
        dual variables of the rows nearest the margin, without a pass over the data.
        "exact" then trains without the row, from a warm start, until the sign of its
        decision is proved: some passes a row.
    sample_weight : array-like of shape (n_samples,), optional
        The sample weights that the model was fitted with. The error counts every row
        once, also a row of weight 0.
    tol : float or None, default=1e-9
        Relative gap to which the model is first trained further, for the bounds only;
        the model itself is not changed. A gap of 1e-3 decides few rows. None uses the
        model as it is.
    time_limit : float, optional
        Seconds for "local" and "exact". Rows that are not reached stay undecided.

    Returns
    -------
    ErrorBounds

    Raises
    ------
    ValueError
        If X holds other rows than the fit had, or the model trains all classes
        together.
    TypeError
        If the model is of another type.

    Warns
    -----
    ConvergenceWarning
        After Ctrl-C, or at the time limit. The bounds so far hold.

    Notes
    -----
    An interval follows from the inequality of strong convexity for any dual point that
    is feasible without the row [1]_. The repair is a bounded form of the span of
    support vectors [2]_: it needs no assumption that the support vectors stay.

    References
    ----------
    .. [1] S. Okumura, Y. Suzuki, I. Takeuchi, "Quick sensitivity analysis for
       incremental data modification and its application to leave-one-out CV in linear
       classification problems", KDD 2015.
    .. [2] V. Vapnik, O. Chapelle, "Bounds on error expectation for support vector
       machines", Neural Computation 12, 2000, section 3.

    Examples
    --------
    >>> from dualgap import LinearSVC
    >>> from dualgap.models import loo_bounds
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(C=0.01, random_state=0).fit(scale(X), y)
    >>> print(loo_bounds(model, scale(X), y, refine="exact"))
    The leave-one-out error of the exact optimum is 1.9332 %, proved for all rows.
    """
    model, X = unwrap(model, X)
    balls, codes = problems_of(model, X, y, sample_weight)
    reduction = reduction_in(model)
    with limited(1):
        parts = [LeftOut(sharpened(ball, tol)) for ball in balls]
        rows = _Rows(parts, codes, reduction)
        until = _deadline(time_limit)
        try:
            if refine != "none":
                for some in _pieces(rows.undecided()):
                    for part in parts:
                        part.repair(some)
                    until()
            if refine == "exact":
                for i in rows.undecided():
                    rows.settle(int(i), until)
        except (KeyboardInterrupt, InterruptedFitError, TimeoutError) as end:
            _warn(end, "loo_bounds")
    return rows.result("leave-one-out", np.arange(len(codes)))


@checking({"cv": [Integral, "cv_object", HasMethods(["split"])], **_PARAMETERS})
def cv_bounds(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    cv: int | BaseCrossValidator | Iterable[Fold] | None = 5,
    refine: str = "local",
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    time_limit: float | None = None,
) -> ErrorBounds:
    """Bound the cross-validation error of exact optima, from one fit per fold.

    The bounds from one fit of all rows are useless here: a fold holds too many support
    vectors. So each fold is trained, from the dual variables of the model, and the
    decisions of its exact optimum at the held-out rows are bounded.

    Parameters
    ----------
    model : LinearSVC or SVC
        As for :func:`loo_bounds`. Its costs and kernel parameters are used in all
        folds: ``class_weight="balanced"`` and ``gamma="scale"`` keep the values that
        they have for all rows.
    X, y, sample_weight
        As for :func:`loo_bounds`.
    cv : int, splitter or iterable, default=5
        As in scikit-learn. Rows that are held out several times count several times
        and have to be decided in each fold; rows that never are do not count.
    refine : {"none", "local", "exact"}, default="local"
        Work for held-out rows that are undecided, as for :func:`loo_bounds`. "exact"
        trains the fold to smaller and smaller gaps.
    tol : float, default=1e-6
        Relative gap of the fits of the folds.
    time_limit : float, optional
        Seconds for all folds. Rows that are not reached stay undecided.

    Returns
    -------
    ErrorBounds
        ``wrong`` and ``right`` have one entry per held-out row, fold by fold.

    Raises
    ------
    ValueError, TypeError
        As for :func:`loo_bounds`.

    Warns
    -----
    ConvergenceWarning
        After Ctrl-C, or at the time limit. The bounds so far hold.

    Examples
    --------
    >>> from dualgap import LinearSVC
    >>> from dualgap.models import cv_bounds
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(C=0.01, random_state=0).fit(scale(X), y)
    >>> print(cv_bounds(model, scale(X), y, cv=5, refine="exact"))
    The 5-fold error of the exact optimum is 2.109 %, proved for all rows.
    """
    model, X = unwrap(model, X)
    balls, codes = problems_of(model, X, y, sample_weight)
    reduction = reduction_in(model)
    folds = [test for _, test in check_cv(cv, y, classifier=True).split(X, y)]
    folds = [np.arange(len(codes))[test] for test in folds]
    found: list[ErrorBounds] = []
    until, ended = _deadline(time_limit), False
    method = f"{len(folds)}-fold"
    with limited(1):
        for test in folds:
            fold: _Rows | None = None
            target = tol
            try:
                while not ended:
                    until()
                    now = _fold(balls, codes, reduction, test, target, refine, until)
                    fold = now if fold is None else fold.narrowed(now, test)
                    if refine != "exact" or not len(fold.undecided(test)):
                        break
                    if target <= SETTINGS.smallest_gap:
                        break
                    target = max(target * SETTINGS.factor, SETTINGS.smallest_gap)
            except (KeyboardInterrupt, InterruptedFitError, TimeoutError) as end:
                ended = True
                _warn(end, "cv_bounds")
            rows = fold or _Rows.unknown(len(balls), codes, reduction)
            found.append(rows.result(method, test))
    return _total(found, method)


def problems_of(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
) -> tuple[list[Ball], NDArray[np.intp]]:
    """Return the balls of a classifier's problems, and the class of every row.

    All problems are about all rows. In problems of pairs of classes, the rows of other
    classes have weight 0.
    """
    model, X = unwrap(model, X)
    if not is_classifier(model):
        raise TypeError(
            f"model={type(model).__name__} is not a classifier; rows left out have "
            "bounds for LinearSVC and SVC"
        )
    refuse_labels(model, "a bound for rows left out")
    _, codes = encode(np.asarray(y))
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        raise ValueError(
            "multi_class='crammer_singer' has no bounds for rows left out; use "
            "LinearSVC(multi_class='ovr')"
        )
    found = balls_of(model, X, y, sample_weight, whole=True)
    balls = [part.ball for part in found]
    for ball in balls:
        if getattr(ball.problem, "streamed", False):
            raise ValueError(
                "X is a store larger than its buffer; give the rows as a matrix"
            )
    return balls, codes


class _Rows:
    """All rows, with the bounds of every binary problem on their decisions.

    `codes`: class of every row, shape (n,).
    """

    def __init__(
        self, parts: Sequence[LeftOut], codes: NDArray[np.intp], reduction: Reduction
    ) -> None:
        self.parts, self.codes, self.reduction = parts, codes, reduction
        self.repairs = self.fits = 0

    @classmethod
    def unknown(
        cls, problems: int, codes: NDArray[np.intp], reduction: Reduction
    ) -> _Rows:
        """Return rows without any bounds."""
        parts = [_Unknown(len(codes))] * problems
        return cls(parts, codes, reduction)  # type: ignore[arg-type]

    def bounds(self, at: Rows) -> tuple[Vector, Vector, NDArray[np.intp]]:
        """Return bounds on the decisions of some rows, and the classes of these."""
        lower = np.column_stack([part.lower[at] for part in self.parts])
        upper = np.column_stack([part.upper[at] for part in self.parts])
        return lower, upper, self.codes[at]

    def undecided(self, rows: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """Return the undecided rows among some rows, or among all."""
        rows = np.arange(len(self.codes)) if rows is None else rows
        wrong, right = self.reduction.proved(*self.bounds(rows))
        return rows[~(wrong | right)]

    def settle(self, i: int, until: Callable[[], None]) -> None:
        """Decide one row by balls and fits without it."""
        at = np.array([i])

        def decided() -> bool:
            until()
            return len(self.undecided(at)) == 0

        widths = [part.upper[i] - part.lower[i] for part in self.parts]
        for k in np.argsort(widths)[::-1]:
            if decided():
                return
            self.parts[k].settle(i, decided)

    def narrowed(self, other: _Rows, rows: NDArray[np.intp]) -> _Rows:
        """Return the intersection with other bounds on the same decisions."""
        for part, more in zip(self.parts, other.parts, strict=True):
            part.narrow(rows, more.lower[rows], more.upper[rows])
        self.repairs += other.repairs
        self.fits += other.fits
        return self

    def result(self, method: str, rows: NDArray[np.intp]) -> ErrorBounds:
        """Return the record for some rows."""
        bounds = self.bounds(rows)
        wrong, right = self.reduction.proved(*bounds)
        return ErrorBounds(
            float(wrong.mean()),
            float((~right).mean()),
            wrong,
            right,
            *self.reduction.margin_bounds(*bounds),
            method,
            self.repairs + sum(part.repaired for part in self.parts),
            self.fits + sum(part.fits for part in self.parts),
        )


class _Unknown:
    """Bounds of a problem about which nothing is known."""

    repaired = fits = 0

    def __init__(self, n: int) -> None:
        self.lower, self.upper = np.full(n, -math.inf), np.full(n, math.inf)


def _fold(
    balls: Sequence[Ball],
    codes: NDArray[np.intp],
    reduction: Reduction,
    test: NDArray[np.intp],
    tol: float,
    refine: str,
    until: Callable[[], None],
) -> _Rows:
    """Train without the rows of a fold, and bound the decisions there."""
    parts = []
    for ball in balls:
        problem = without_rows(ball.problem, test)
        alpha = ball.alpha.copy()
        alpha[test] = 0.0
        parts.append(LeftOut(sharpened(Ball.of(problem, alpha=alpha), tol)))
        until()
    rows = _Rows(parts, codes, reduction)
    if refine != "none":
        for some in _pieces(rows.undecided(np.unique(test))):
            for part in parts:
                part.repair(some)
            until()
    rows.fits = len(parts)
    return rows


def _total(found: Sequence[ErrorBounds], method: str) -> ErrorBounds:
    """Join the bounds of all folds."""

    def joined(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in found])

    wrong, right = joined("wrong"), joined("right")
    return ErrorBounds(
        float(wrong.mean()),
        float((~right).mean()),
        wrong,
        right,
        joined("lower_margins"),
        joined("upper_margins"),
        method,
        sum(part.n_repairs for part in found),
        sum(part.n_fits for part in found),
    )


def _pieces(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows in pieces, between which a time limit is checked."""
    return [rows[begin : begin + 256] for begin in range(0, len(rows), 256)]


def _deadline(seconds: float | None) -> Callable[[], None]:
    """Return a function that raises TimeoutError after some seconds."""
    end = math.inf if seconds is None else time.monotonic() + seconds

    def until() -> None:
        if time.monotonic() > end:
            raise TimeoutError

    return until


def _warn(end: BaseException, name: str) -> None:
    reason = "at the time limit" if isinstance(end, TimeoutError) else "by Ctrl-C"
    warnings.warn(
        f"{name} was stopped {reason}; the bounds hold, and more rows are undecided.",
        ConvergenceWarning,
        stacklevel=4,
    )
