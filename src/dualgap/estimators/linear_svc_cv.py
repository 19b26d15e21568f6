"""Choice of C for linear classifiers by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils import Tags

from ..losses import Vector
from .linear_svc import LinearSVC
from .parameters import Flag, LinearSolver, LossLike, Positive
from .search import ClassifierSearch


@dataclass(eq=False, repr=False, kw_only=True)
class LinearSVCCV(ClassifierSearch):
    """Linear support vector classifier that chooses C by cross-validation.

    All folds are one batch of problems over the same rows, in which held-out rows have
    the cost 0, for rising C. Every model starts from the dual variables of the two C
    before and has its own certificate.

    Parameters
    ----------
    loss, solver, fit_intercept, intercept_scaling, penalize_intercept
        As in :class:`LinearSVC`, for every C. The solver must keep dual variables:
        "auto", "dcd" or "sdca".
    multi_class : {"ovr", "ovo"}, default="ovr"
        One versus the rest or one versus one, as in :class:`LinearSVC`.

    Attributes
    ----------
    C_ : float
        Best C: the smallest of those with the best mean score. Only values that were
        scored on all folds count.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C, in the given order; with `certify_C` all that were tried,
        increasing.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Scores on the test part of each fold; NaN where the search was cut short.
    relative_gaps_ : ndarray of shape (n_folds, n_Cs)
        Proven relative gaps of the scored models, each of the class or pair that is
        farthest from its optimum. NaN where there is no score.
    coef_, intercept_, support_, n_support_, dual_coef_, n_iter_, certificate_, history_
        Attributes of `best_estimator_`; see :class:`LinearSVC`.

    See Also
    --------
    svm_path : Models for all C, without cross-validation.
    sklearn.model_selection.GridSearchCV : Search over several parameters and pipelines;
        trains every C from scratch.

    Notes
    -----
    A row of the test part has weight 0 in training: its dual variable stays 0, and
    shrinking skips it more and more often. This is cheaper than copying the training
    rows, and takes no memory.

    Ctrl-C or `time_limit` cuts the search short. The folds take turns, C by C, so that
    the smaller values of C are scored on all folds; with several threads they keep pace
    only approximately. `C_` is the best of the values scored on all folds. The final
    fit ends at once: it returns the model of the first fold at `C_`, with a certificate
    for all rows and the status "interrupted" or "time_limit". If no value was scored on
    all folds, Ctrl-C raises KeyboardInterrupt and `time_limit` raises ValueError.

    `certify_C` bounds the error of the exact optimum at every C between two fitted
    values by a ball around the line between the two models (Shibagaki et al., NIPS
    2015, have the ball of one fit). See docs/tuning.md.

    Examples
    --------
    >>> from dualgap import LinearSVCCV
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVCCV([0.01, 0.1, 1.0], random_state=0).fit(scale(X), y)
    >>> model.C_ in (0.01, 0.1, 1.0)
    True
    >>> model.scores_.shape
    (5, 3)
    """

    loss: LossLike = "squared_hinge"
    solver: LinearSolver = "auto"
    fit_intercept: Flag = True
    intercept_scaling: Positive = 1.0
    penalize_intercept: Flag = True
    multi_class: Literal["ovr", "ovo"] = "ovr"

    _model = LinearSVC

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getattr__(self, name: str) -> Any:
        if name in _OF_MODEL and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        return super().__getattribute__(name)  # raises the error

    @property
    def Cs_(self) -> Vector:
        """Values of C, in the order of `cv_results_`."""
        return np.array([params["C"] for params in self.cv_results_["params"]])

    @property
    def scores_(self) -> Vector:
        """Scores on the test part of each fold, (n_folds, n_Cs)."""
        return self._of_folds("test_score")

    @property
    def relative_gaps_(self) -> Vector:
        """Proven relative gaps of the scored models, (n_folds, n_Cs)."""
        return self._of_folds("relative_gap")

    def _of_folds(self, what: str) -> Vector:
        folds = range(self.n_splits_)
        return np.stack([self.cv_results_[f"split{f}_{what}"] for f in folds])


#: Attributes of the final model that a linear search shows.
_OF_MODEL = (
    *("coef_", "intercept_", "support_", "n_support_", "dual_coef_", "history_"),
)
