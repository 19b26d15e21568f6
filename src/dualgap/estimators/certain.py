"""Mixins that tell what is certain about the exact optimum of a fitted estimator."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..answers.ball import TOLERANCES, Decided
from ..answers.kernel_regions import refuse_new_rows
from ..certificate import Certificate, Status
from ..data.store import RowStore
from ..data.types import Label, MatrixLike
from ..kernels.functions import refuse_items, takes_items
from ..losses import Vector
from ..problems.reductions import Reduction
from ..training.batch import begin
from .base import Model, silent_failures, tell
from .fitted import FittedProblem
from .input import FirstModel, refuse_store, validate_data
from .regions import (
    Optimum,
    ProblemBall,
    balls_of,
    certain_support,
    kernel_coef_bounds,
    optimum_of,
    optimum_of_fit,
    refuse_without_optimum,
)

if TYPE_CHECKING:
    from typing_extensions import Self

Pair = tuple[Vector, Vector]


class CertainDecisions(Model):
    """Mixin with proven bounds on the decisions and weights of the exact optimum."""

    def bound_optimum(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> BaseEstimator:
        """Find a small region that contains the exact optimum, from the training rows.

        `decision_bounds` and the other methods about the optimum then use this region.
        Without it they use the gap alone, which gives wider bounds, and none at all if
        the bias is not penalised. :func:`save_model` saves the region.

        Parameters
        ----------
        X, y, sample_weight
            The arguments of `fit`, unchanged.

        Returns
        -------
        self
            The estimator. It keeps the region, which holds a few vectors of the width
            of the model, and for kernels a few training rows near the margin.

        Raises
        ------
        ValueError
            If X does not hold the training rows, the problem has no certificate, as for
            ``solver="nystroem"``, or the kernel is precomputed or may be indefinite.

        Notes
        -----
        It makes a few passes over the rows. With the squared hinge and at most 2,000
        columns it also factors a matrix of that size: the bounds become 10 to 1,000
        times narrower. With an unpenalised bias the bounds hold for every optimal bias.
        """
        self._bound_optimum(X, y, sample_weight)
        return self

    def _bound_optimum(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> list[ProblemBall]:
        refuse_store(X, "bound_optimum", "read the rows into an array first")
        fitted = self._as_fitted
        balls = balls_of(fitted, X, y, sample_weight)
        self._optimum = optimum_of(fitted, X, balls)
        return balls

    @abstractmethod
    def _fitted_problems(
        self, X: MatrixLike, y: ArrayLike, weight: ArrayLike | None, whole: bool = False
    ) -> Iterable[FittedProblem]:
        """Return the problems of the training rows, with what the model claims.

        With `whole` the problems of pairs of classes have all rows.
        """

    def decision_bounds(self, X: MatrixLike) -> Pair:
        r"""Return bounds that the decisions of the exact optimum cannot leave.

        Returns
        -------
        lower, upper : ndarray
            Of the shape of ``decision_function(X)``, or of ``predict(X)`` for
            regression. They hold for every optimum, and count rounding. A row of zeros
            gives bounds on the intercept.

        Raises
        ------
        ValueError
            If the bias is not penalised and `bound_optimum` has not been called, the
            penalty has an L1 norm, the model has no finite gap, or its kernel is
            precomputed or may be indefinite.

        Notes
        -----
        A kernel that is a function must be positive semidefinite on the training rows
        and X together. The support vectors and X, or a sample of them, are checked.

        With c = (w + v)/2, where v is the sum of rows that the dual variables define,
        every optimum is in the ball :math:`\|w^* - c\|^2 \le P - D - \tfrac14 \|w -
        v\|^2`. So a bound is as wide as the row is long, and a gap 100 times smaller
        makes it 10 times narrower: set `tol` to 1e-6 or less if much is to be certain.
        """
        lower, upper = self._problem_bounds(X)
        return self._shape_bounds(lower, upper)

    def coef_bounds(self) -> Pair:
        """Return bounds on ``coef_`` at the exact optimum.

        Returns
        -------
        lower, upper : ndarray of the shape of ``coef_``
            A weight whose bounds have the same sign has this sign at every optimum.

        Raises
        ------
        ValueError
            As :meth:`decision_bounds`; also if the kernel is not linear.
        """
        check_is_fitted(self)
        optimum = self._region(of_weights=True)
        if optimum.dual_coef is not None:
            return kernel_coef_bounds(self, optimum)
        found = [region.coef_bounds() for region in optimum.regions]
        shape = np.shape(self.coef_)
        lower, upper = (np.reshape(part, shape) for part in zip(*found, strict=True))
        return lower, upper

    def certified_support(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell which training rows surely are support vectors of the exact optimum.

        Parameters
        ----------
        X, y, sample_weight
            The arguments of `fit`, unchanged.

        Returns
        -------
        support : ndarray of shape (n_samples,), bool
            Rows that have a positive dual variable at every optimum.
        others : ndarray of shape (n_samples,), bool
            Rows without a dual variable at every optimum: the fit without them has the
            same optimum. Other rows are undecided.

        Raises
        ------
        ValueError
            As :meth:`bound_optimum`; also for ``multi_class="crammer_singer"``.
        """
        balls = self._bound_optimum(X, y, sample_weight)
        lower, upper = self._problem_bounds(X)
        return certain_support(len(lower), balls, lower, upper)

    def _problem_bounds(self, X: MatrixLike, comparable: bool = False) -> Pair:
        """Return bounds on the decisions of each problem, (n, problems) each."""
        check_is_fitted(self)
        optimum = self._region()
        if isinstance(X, RowStore):
            parts = [optimum.bounds(self, one.X, comparable) for one in X.blocks()]
            lower, upper = (np.vstack(part) for part in zip(*parts, strict=True))
            return lower, upper
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse=["csr", "csc", "coo"],
            dtype=[np.float64, np.float32],
            ensure_all_finite=optimum.dual_coef is not None,  # Points checks others
        )
        if optimum.dual_coef is not None and hasattr(X, "tocsr"):
            X = X.tocsr()
        return optimum.bounds(self, X, comparable)

    def _shape_bounds(self, lower: Vector, upper: Vector) -> Pair:
        """Return bounds on problems as bounds on the decision function."""
        return lower.ravel(), upper.ravel()

    def _region(self, of_weights: bool = False) -> Optimum:
        """Return the region of `bound_optimum`, else what the gap alone tells."""
        kept = self.__dict__.get("_optimum")
        if kept is not None and kept.certificate == self.certificate_:
            return kept
        return optimum_of_fit(self._as_fitted, of_weights)


class CertainLabels(CertainDecisions):
    """Mixin of classifiers whose labels may be certain."""

    if TYPE_CHECKING:
        classes_: NDArray[np.generic]

        def _reduction_of(self, classes: int) -> Reduction: ...

        def _values(self, X: MatrixLike) -> Vector: ...

    def certified_labels(self, X: MatrixLike) -> NDArray[np.bool_]:
        """Tell for which rows the predicted label is the one of every exact optimum.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels), bool
            True where training to the end cannot change the label that `predict`
            returns.

        Raises
        ------
        ValueError
            As :meth:`decision_bounds`.
        """
        return self._surely(self.predict(X), X)

    def _surely(self, labels: NDArray[np.generic], X: MatrixLike) -> NDArray[np.bool_]:
        """Tell which rows have these labels at every optimum in the region."""
        codes = self._reduction.decided(*self._problem_bounds(X, comparable=True))
        labels = labels.toarray() if hasattr(labels, "toarray") else labels
        certain: NDArray[np.bool_] = codes >= 0
        certain[certain] = self.classes_[codes[certain]] == labels[certain]
        return certain

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        until: Decided | None = None,
    ) -> Self:
        """Train the model and prove its accuracy.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings.
        until : Decided, optional
            Train beyond `tol` until given labels are certain; see
            :class:`dualgap.answers.Decided`.

        Warns
        -----
        ConvergenceWarning
            If the relative gap `tol` was not proved, or labels of `until` are not
            certain. The message tells what was proved.
        DegenerateWarning
            If the decision function of a class is no better than a constant on the
            training rows. The message names the class and a remedy.
        """
        if until is None:
            return self._fit(X, y, sample_weight)
        return self._fit_until(X, y, sample_weight, until)

    def _fit_until(
        self,
        X: MatrixLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        until: Decided,
        first: FirstModel = (None, None),
    ) -> Self:
        """Fit to smaller gaps until labels are certain, and keep the best model."""
        _check_until(self, X, until)
        stop = begin(self.time_limit)
        tol = self.tol
        self._fit(X, y, sample_weight, stop=stop, first=first)
        certified = True
        for smaller in [None, *(t for t in TOLERANCES if t < tol)]:
            if smaller is not None:
                before = dict(vars(self))
                self.tol = smaller
                try:
                    with silent_failures():
                        self._fit(X, y, sample_weight, stop=stop)
                finally:
                    self.tol = tol
                certified = self.certificate_.certified
                if not self.certificate_.gap < before["certificate_"].gap:
                    self.__dict__.clear()
                    self.__dict__.update(before)
                    break
                self._promise(tol)
            if not self.certificate_.gap < math.inf:
                return self  # the fit has warned
            assert y is not None  # the fit refuses rows without labels
            self.bound_optimum(X, y, sample_weight)
            certain = self.certified_labels(until.X)
            ended = stop.requested or stop.expired or not certified
            if ended or certain.mean() >= until.share:
                break
        self._tell_undecided(self.certified_labels(until.X), until.share)
        return self

    def _promise(self, tol: float) -> None:
        """Write the gaps `tol` and `atol` of the parameters into the certificate."""
        atol = self.atol
        parts = [
            replace(
                part,
                tol=tol,
                status=Status.CERTIFIED if part.meets(tol, atol) else part.status,
            )
            for part in self.certificate_.parts
        ]
        self.certificate_ = Certificate.total(parts)

    def _tell_undecided(self, certain: NDArray[np.bool_], share: float) -> None:
        if certain.mean() >= share:
            return
        left = np.count_nonzero(~certain)
        tell(
            f"{type(self).__name__}: {left} of {len(certain)} labels could still "
            f"change, and {certain.mean():.4g} of them are certain, not {share:g}. Find"
            " them with certified_labels(X), or give more time"
        )

    def _decided(
        self, labels: NDArray[np.generic], X: MatrixLike, undecided: Label
    ) -> NDArray[np.generic]:
        """Return labels, with `undecided` in the place of labels that could change."""
        if any(undecided == label for label in self.classes_.tolist()):
            raise ValueError(
                f"undecided={undecided!r} is one of the classes; give a value that is "
                "no label, such as -1 or '?'"
            )
        certain = self._surely(labels, X)
        labels = labels.toarray() if hasattr(labels, "toarray") else labels
        kind = np.asarray(undecided).dtype.kind
        if labels.dtype.kind in "biuf" and kind in "biuf":
            found: NDArray[np.generic] = np.where(certain, labels, undecided)
        elif labels.dtype.kind == kind == "U":
            found = np.where(certain, labels, undecided)
        else:
            found = labels.astype(object)
            found[~certain] = undecided
        return found

    def predict(
        self, X: MatrixLike, *, undecided: Label | None = None
    ) -> NDArray[np.generic]:
        """Predict the class labels of rows.

        One versus one, each pair has a vote. Of the classes with most votes the more
        confident one wins, or the first one in an :class:`SVC` without `break_ties`.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowStore} of shape (n_samples, n_features)
            Rows; see :meth:`decision_function`.
        undecided : object, optional
            Label to return where training to the end could still change the label; see
            `certified_labels`. None returns the label of the model everywhere.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, of the type of `classes_` if `undecided` has this type, else
            objects. A model of several labels per row returns a table of 0 and 1,
            (n_samples, n_labels), sparse if y was and `undecided` is None.
        """
        labels = self._decide(self._values(X))
        return labels if undecided is None else self._decided(labels, X, undecided)

    @property
    def _reduction(self) -> Reduction:
        return self._as_fitted._reduction_of(len(self.classes_))

    def _decide(self, values: Vector) -> NDArray[np.generic]:
        """Return the labels that decision values of all problems mean."""
        return self.classes_[self._reduction.decide(values)]

    def _shape_bounds(self, lower: Vector, upper: Vector) -> Pair:
        pairs = getattr(self, "decision_function_shape", "ovr") == "ovo"
        if pairs and len(self.classes_) > 2:
            return lower, upper
        return self._reduction.score_bounds(lower, upper)


def _check_until(model: BaseEstimator, X: MatrixLike, until: object) -> None:
    """Raise an error before any work if a fit cannot end by this rule."""
    if not isinstance(until, Decided):
        raise TypeError(
            f"until is of type {type(until).__name__}, not a rule; give Decided(X_new)"
        )
    refuse_store(X, "until", "train without it")
    if takes_items(getattr(model, "kernel", None), X):
        refuse_items("until")
    shape, columns = np.shape(until.X), np.shape(X)[-1]
    if len(shape) != 2 or shape[1] != columns or not shape[0]:
        raise ValueError(
            f"until=Decided(X) has X of shape {shape}; give rows with the {columns} "
            "features of the training rows"
        )
    if getattr(model, "checkpoint", None) is not None:
        raise ValueError(
            "until is not supported together with checkpoint; set checkpoint=None"
        )
    refuse_without_optimum(model, fitted=False)
    if hasattr(model, "kernel"):
        refuse_new_rows(model._kernel_record())
