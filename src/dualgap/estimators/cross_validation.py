"""Choice of C, gamma and epsilon by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions

from ..kernel import Nystroem
from ..losses import Vector
from .base import Model
from .folds import Folds
from .kernels import KernelParameters
from .linear_svc import LinearSVC
from .parameters import Flag, KernelLoss, LinearSolver, LossLike, Positive
from .regression import SVR
from .search import ClassifierSearch, Search
from .svc import SVC

#: Attributes of the final model that a linear search shows.
_OF_MODEL = (
    *("coef_", "intercept_", "support_", "n_support_", "dual_coef_", "history_"),
)


@dataclass(eq=False, repr=False)
class KernelSearch(KernelParameters, Search):
    """Base of the searches for kernel models."""

    gammas: Annotated[
        str | float | ArrayLike,
        StrOptions({"scale", "auto", "mean-distance"}),
        Real,
        "array-like",
    ] = "scale"

    def _resolved(self, model: Model, folds: Folds) -> Model:
        record = model._kernel_record()
        if isinstance(getattr(record, "gamma", 1.0), str):
            kernel = record.resolve(folds.points.X)
            model.set_params(gamma=kernel.gamma)
        return model


@dataclass(eq=False, repr=False, kw_only=True)
class SVCCV(ClassifierSearch, KernelSearch):
    """Kernel support vector classifier that chooses C and gamma by cross-validation.

    It does the search of ``GridSearchCV(SVC(...), {"C": Cs, "gamma": gammas})`` and
    proves the accuracy of every model, in less time. The folds, the classes and all
    values of C share one kernel matrix per gamma, and each fit starts from the
    solutions for smaller values of C.

    Parameters
    ----------
    gammas : str, float or array-like of these, default="scale"
        Values of gamma, as for :class:`SVC`. A name such as "scale" becomes a number
        once, for all rows; a search that copies the rows computes it for each fold.
    loss, decision_function_shape, break_ties
        As for :class:`SVC`.
    solver : {"auto", "nystroem"} or Nystroem, default="auto"
        "nystroem" trains over landmarks, as :class:`SVC` does, for more rows than the
        kernel matrix can have; see Notes.
    cache_size : float, default=200
        Megabytes (10**6 bytes) for kernel values, for all threads together; see Notes.

    Attributes
    ----------
    C_, gamma_ : float
        Best parameters, as in `Cs` and `gammas`.

    See Also
    --------
    LinearSVCCV : The same for linear classifiers.
    SVRCV : The same for regression.

    Notes
    -----
    With the hinge and an unpenalised bias, the defaults, all folds are trained
    together. That takes ``8 n^2`` bytes for the kernel matrix, and ``4 n^2`` more with
    two classes, up to ``8 n^2`` with several: 200 MB hold 4,000 rows. With a penalised
    bias, another loss, a precomputed kernel or a Python function, and where a training
    part lacks a class, the folds are trained one at a time. That takes ``4.6 n^2``
    bytes for each thread besides the matrix. If `cache_size` is smaller, every fit
    computes its kernel rows again, as :class:`SVC` does, and saves only steps. So it
    does for more than 3,000 rows and few models, which cost less than the matrix.

    With ``solver="nystroem"`` each fold draws landmarks from its training part, and
    computes its features once for all values of C. The features of a fold take
    ``4 n n_components`` bytes, times the number of classes less 1, and `cache_size` has
    to hold them. If it does not hold the features of all folds, a fold is finished
    before the next begins, so that a search that is cut short may have scored no
    candidate on all folds. The proven gaps are about the problems over the landmarks,
    not the kernel problems; ``certificate_.about`` says so.

    Models are proved to `tol` and not solved further, even where :class:`SVC` solves
    small problems up to rounding. The scores can then differ by a few rows near the
    boundary; a smaller `tol` brings them closer. The certificates of the search are
    about the kernel matrix as computed in float64.

    Ctrl-C or `time_limit` ends the search, and the best of the candidates that were
    scored on all folds is trained on all rows. If there is none, Ctrl-C raises
    KeyboardInterrupt and `time_limit` raises ValueError.

    A search that goes on from a checkpoint keeps its scores. It begins the paths of C
    without a starting point. Later scores are therefore not bit for bit the scores of
    an uninterrupted search, but as close to them as two fits within `tol`.

    Examples
    --------
    >>> from dualgap import SVCCV
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCCV([0.1, 1.0, 10.0], gammas=[0.1, 1.0], random_state=0).fit(X, y)
    >>> search.best_params_
    {'C': 1.0, 'gamma': 0.1}
    >>> search.certificate_.certified
    True
    """

    loss: KernelLoss = "hinge"
    solver: Annotated[
        Literal["auto", "nystroem"] | Nystroem,
        StrOptions({"auto", "nystroem"}),
        Nystroem,
    ] = "auto"
    decision_function_shape: Literal["ovr", "ovo"] = "ovr"
    break_ties: Flag = False

    _grids: ClassVar[dict[str, str]] = {"Cs": "C", "gammas": "gamma"}
    _model = SVC


@dataclass(eq=False, repr=False)
class SVRCV(RegressorMixin, KernelSearch):
    """Kernel support vector regressor that chooses its parameters by cross-validation.

    It chooses C, gamma and epsilon. All folds and all values of C and epsilon share one
    kernel matrix per gamma, and all folds are trained together; see :class:`SVCCV`.

    Parameters
    ----------
    gammas : str, float or array-like of these, default="scale"
        Values of gamma; see :class:`SVCCV`.
    epsilons : float or array-like of shape (n_epsilons,), default=0.1
        Values of epsilon, on the scale of the targets.

    Attributes
    ----------
    C_, gamma_, epsilon_ : float
        Best parameters, as in `Cs`, `gammas` and `epsilons`.

    See Also
    --------
    SVCCV : The same for classification.

    Examples
    --------
    >>> import numpy as np
    >>> from dualgap import SVRCV
    >>> X = np.linspace(0.0, 6.0, 60)[:, None]
    >>> y = np.sin(X).ravel()
    >>> search = SVRCV([1.0, 10.0], epsilons=[0.01, 0.3], cv=3).fit(X[::-1], y[::-1])
    >>> search.epsilon_ in (0.01, 0.3)
    True
    """

    epsilons: Annotated[float | ArrayLike, Real, "array-like"] = 0.1

    _grids: ClassVar[dict[str, str]] = {
        "Cs": "C",
        "gammas": "gamma",
        "epsilons": "epsilon",
    }
    _model = SVR


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
    only approximately. `C_` is the best of the values scored on all folds, and is
    trained on all rows. If there is none, Ctrl-C raises KeyboardInterrupt and
    `time_limit` raises ValueError.

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
