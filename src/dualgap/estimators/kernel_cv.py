"""Kernel SVMs that choose C, gamma and epsilon by cross-validation."""

from __future__ import annotations

import math
import os
from collections.abc import Callable as Function
from collections.abc import Iterator
from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from ..data.types import Label, MatrixLike
from ..kernel import Nystroem
from ..kernels.functions import KernelLike
from ..losses import Hinge, SquaredHinge, Vector
from ._certified import check_certify, warn_of_accuracy
from ._certified_kernel import certified_search
from ._kernel_search import CONSTRAINTS, KernelSearch, Results, Work, has_final_model
from ._kernel_walks import Path, Targets, landmarks_of, walk_svc, walk_svr
from ._search import CrossValidation, why_ended
from .fitting import checked, encode, weights
from .hints import ProbabilityHints
from .kernel_regression import SVR
from .parameters import Constraints, constraints
from .svc import SVC

__all__ = ["SVCCV", "SVRCV"]


class SVCCV(ProbabilityHints, ClassifierMixin, KernelSearch):
    """Kernel support vector classifier that chooses C and gamma by cross-validation.

    It does the search of ``GridSearchCV(SVC(...), {"C": Cs, "gamma": gammas})`` and
    proves the accuracy of every model, in less time. The folds, the classes and all
    values of C share one kernel matrix per gamma, and each fit starts from the
    solutions for smaller values of C.

    Parameters
    ----------
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C. An int gives a logarithmic grid from 1e-4 to 1e4.
    gammas : str, float or array-like of these, default="scale"
        Values of gamma, as for :class:`SVC`. A name such as "scale" becomes a number
        once, for all rows; ``GridSearchCV`` computes it for each fold.
    cv : int, splitter or iterable, default=None
        Folds, as for scikit-learn's ``GridSearchCV``; None means 5 stratified folds.
    scoring : str or callable, optional
        Score to maximise. None means accuracy.
    kernel, degree, coef0, loss, class_weight
        As for :class:`SVC`.
    solver : {"auto", "nystroem"} or Nystroem, default="auto"
        "nystroem" trains over landmarks, as :class:`SVC` does, for more rows than the
        kernel matrix can have; see Notes.
    tol, atol : float
        Accuracy to prove for every model, as for :class:`SVC`.
    max_epochs : int, default=10000
        Largest number of epochs per fit.
    time_limit : float, optional
        Seconds for the search. The final fit comes after them.
    cache_size : float, default=200
        Megabytes (10**6 bytes) for kernel values, for all threads together; see Notes.
    checkpoint : str or path-like, optional
        File that holds the scores so far. The same search goes on from it after it was
        killed or cut short. Its folds must be the same again, so a splitter that
        shuffles needs a seed. It needs safetensors.
    checkpoint_every : float, default=60.0
        Seconds between two checkpoints.
    decision_function_shape, break_ties
        As for :class:`SVC`.
    refit : bool, default=True
        Whether to train a final model on all rows with the best parameters.
    certify : {"error"}, optional
        Prove that no C from ``min(Cs)`` to ``max(Cs)``, with any gamma of `gammas`, has
        a smaller cross-validation error by more than `accuracy`, also between the
        values of `Cs`. The search adds values of C until this is proved. It needs
        accuracy as the score, a positive semidefinite kernel, and no checkpoint. Its
        fits have a `tol` of 1e-9 or less.
    accuracy : float, default=0.01
        Difference of errors to prove, as a fraction of the test rows. The number of
        fits grows like the inverse.
    random_state : int, RandomState instance or None, default=0
        Seed of the solver. The folds have their own seed, in `cv`.
    n_jobs : int, optional
        Number of threads, shared by the folds. None means 1 unless
        :func:`joblib.parallel_config` sets another number; -1 uses all processors.
    verbose : int, default=0
        1 logs each model with the time left, 2 also each epoch.

    Attributes
    ----------
    C_, gamma_ : float
        Best parameters, as in `Cs` and `gammas`.
    best_params_ : dict
        The same by name. Of equal mean scores the smallest C wins, then the first
        candidate. Only candidates that were scored on all folds count.
    best_index_ : int
        Index of the best candidate in `cv_results_`.
    best_score_ : float
        Mean over the folds of the scores of the best candidate.
    cv_results_ : dict
        Results in the layout of ``GridSearchCV``. ``split*_relative_gap`` is the
        largest proven gap of the models of a fold. NaN where the search was cut short.
    n_splits_ : int
        Number of folds.
    error_bounds_ : ErrorBounds
        With `certify`: a tuple (edges, lower, upper) of proved bounds on the mean error
        over the folds of the exact optimum at every C from ``edges[k]`` to
        ``edges[k + 1]``, with `gamma_`.
    accuracy_ : float
        With `certify`: the proved difference between ``1 - best_score_`` and the least
        error of the exact optimum at any C, with any of the values of gamma.
    n_fits_ : int
        With `certify`: number of fits of the search, candidates times folds.
    best_estimator_ : SVC
        The final model, fitted on all rows. Only with `refit`.
    refit_time_ : float
        Seconds of the final fit. Only with `refit`.
    certificate_ : Certificate
        Certificate of the final model. Only with `refit`.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_features_in_ : int
        Number of features seen by fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has column names that are all strings.

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
    computes its kernel rows again, as :class:`SVC` does, and saves only steps. One fold
    at a time, dense rows with fewer than 50 features have no shared matrix, because
    their kernel values cost less than reading them from memory.

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

    _grids: ClassVar[dict[str, str]] = {"Cs": "C", "gammas": "gamma"}
    _parameter_constraints: ClassVar[Constraints] = {
        **constraints("class_weight"),
        **CONSTRAINTS,
        "loss": [StrOptions({"hinge", "squared_hinge"}), Hinge, SquaredHinge],
        "solver": [StrOptions({"auto", "nystroem"}), Nystroem],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "certify": [StrOptions({"error"}), None],
        "accuracy": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        Cs: int | ArrayLike = 10,
        gammas: str | float | ArrayLike = "scale",
        *,
        cv: CrossValidation = None,
        scoring: str | Function[..., float] | None = None,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        loss: str | Hinge | SquaredHinge = "hinge",
        solver: str | Nystroem = "auto",
        tol: float = 1e-3,
        atol: float = 0.0,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        cache_size: float = 200,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        class_weight: dict[Label, float] | str | None = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        refit: bool = True,
        certify: str | None = None,
        accuracy: float = 0.01,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.atol = atol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.refit = refit
        self.certify = certify
        self.accuracy = accuracy
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checked
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> SVCCV:
        """Choose the parameters by cross-validation, and train on all rows with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, the kernel matrix.
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C in training. They do not count in the scores.
        groups : array-like of shape (n_samples,), optional
            Groups of the rows, for the splitter `cv`.

        Returns
        -------
        SVCCV
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, a training part has rows of fewer
            than two classes, or `time_limit` ends before any candidate was scored on
            all folds.
        KeyboardInterrupt
            After Ctrl-C, if no candidate was scored on all folds yet.

        Warns
        -----
        ConvergenceWarning
            If a scored model or the final model did not reach `tol`, or the search was
            cut short.
        """
        X, y, weight = self._checked(X, y, sample_weight)
        self.classes_, codes = encode(y)
        weights(self.class_weight, X, self.classes_, codes, weight)
        targets = Targets(codes, self.classes_)
        self._fit_search(X, y, sample_weight, weight, groups, targets)
        return self

    def _model(self, **params: str | float) -> SVC:
        return SVC(**{**self._common(), **params})

    def _certified(self, work: Work) -> Results | None:
        if self.certify is None:
            return None
        check_certify(self.certify, self.scoring, self.Cs, work.Cs)
        if landmarks_of(self) is not None:
            raise ValueError(
                f"solver={self.solver!r} does not go with certify={self.certify!r}, "
                "which is about models over all rows; use solver='auto'"
            )
        if self.checkpoint is not None:
            raise ValueError(
                f"checkpoint={self.checkpoint!r} does not go with certify="
                f"{self.certify!r}; use checkpoint=None"
            )
        results, self.accuracy_, found = certified_search(self, work)
        self.n_fits_ = int(np.count_nonzero(~np.isnan(results.fit_times)))
        why = why_ended(work.stop, self.time_limit)
        warn_of_accuracy("SVCCV", self.accuracy_, self.accuracy, why, found, 6)
        return results

    def _folds_at_once(self, work: Work) -> int:
        landmarks, folds = landmarks_of(self), len(work.folds)
        if landmarks is None:
            return folds
        n, pairs_of_a_row = len(work.y), len(self.classes_) - 1
        room = landmarks.bytes_of_features(n) * pairs_of_a_row / 1e6
        if room > self.cache_size:
            raise ValueError(
                f"cache_size={self.cache_size!r} does not hold the features of a fold; "
                f"use cache_size={math.ceil(room)}, or fewer landmarks than "
                f"n_components={landmarks.n_components}"
            )
        return min(folds, int(self.cache_size / room))

    def _walk(self, path: Path) -> Iterator[tuple[BaseEstimator, Vector]]:
        return walk_svc(path)

    @available_if(has_final_model)
    def decision_function(self, X: MatrixLike) -> Vector:
        """Return the decision values of the final model; see :class:`SVC`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
        """
        model, X = self._final(X)
        found: Vector = model.decision_function(X)
        return found


class SVRCV(RegressorMixin, KernelSearch):
    """Kernel support vector regressor that chooses its parameters by cross-validation.

    It chooses C, gamma and epsilon. All folds and all values of C and epsilon share one
    kernel matrix per gamma, and all folds are trained together; see :class:`SVCCV`.

    Parameters
    ----------
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C. An int gives a logarithmic grid from 1e-4 to 1e4.
    gammas : str, float or array-like of these, default="scale"
        Values of gamma; see :class:`SVCCV`.
    epsilons : float or array-like of shape (n_epsilons,), default=0.1
        Values of epsilon, on the scale of the targets.
    cv : int, splitter or iterable, default=None
        Folds, as for scikit-learn's ``GridSearchCV``; None means 5 folds.
    scoring : str or callable, optional
        Score to maximise. None means R^2.
    kernel, degree, coef0
        As for :class:`SVR`.
    tol, atol : float
        Accuracy to prove for every model, as for :class:`SVR`.
    max_epochs : int, default=10000
        Largest number of epochs per fit.
    time_limit : float, optional
        Seconds for the search. The final fit comes after them.
    cache_size : float, default=200
        Megabytes for kernel values, as for two classes; see :class:`SVCCV`.
    checkpoint, checkpoint_every
        As for :class:`SVCCV`.
    refit : bool, default=True
        Whether to train a final model on all rows with the best parameters.
    random_state : int, RandomState instance or None, default=0
        Seed of the solver.
    n_jobs : int, optional
        Number of threads, shared by the folds. None means 1 unless
        :func:`joblib.parallel_config` sets another number; -1 uses all processors.
    verbose : int, default=0
        1 logs each model with the time left, 2 also each epoch.

    Attributes
    ----------
    C_, gamma_, epsilon_ : float
        Best parameters, as in `Cs`, `gammas` and `epsilons`.
    best_params_, best_index_, best_score_, cv_results_, n_splits_, refit_time_
        As for :class:`SVCCV`.
    best_estimator_ : SVR
        The final model, fitted on all rows. Only with `refit`.
    certificate_ : Certificate
        Certificate of the final model. Only with `refit`.
    n_features_in_ : int
        Number of features seen by fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has column names that are all strings.

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

    _grids: ClassVar[dict[str, str]] = {
        "Cs": "C",
        "gammas": "gamma",
        "epsilons": "epsilon",
    }
    _parameter_constraints: ClassVar[Constraints] = {
        **CONSTRAINTS,
        "epsilons": [Real, "array-like"],
    }

    def __init__(
        self,
        Cs: int | ArrayLike = 10,
        gammas: str | float | ArrayLike = "scale",
        epsilons: float | ArrayLike = 0.1,
        *,
        cv: CrossValidation = None,
        scoring: str | Function[..., float] | None = None,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        atol: float = 0.0,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        cache_size: float = 200,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        refit: bool = True,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.atol = atol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.refit = refit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checked
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> SVRCV:
        """Choose the parameters by cross-validation, and train on all rows with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, the kernel matrix.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C in training. They do not count in the scores.
        groups : array-like of shape (n_samples,), optional
            Groups of the rows, for the splitter `cv`.

        Returns
        -------
        SVRCV
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, or `time_limit` ends before any
            candidate was scored on all folds.
        KeyboardInterrupt
            After Ctrl-C, if no candidate was scored on all folds yet.

        Warns
        -----
        ConvergenceWarning
            If a scored model or the final model did not reach `tol`, or the search was
            cut short.
        """
        if y is None:
            raise ValueError(
                "This SVRCV estimator requires y to be passed, but the target y is "
                "None."
            )
        X, y, weight = self._checked(X, y, sample_weight, y_numeric=True)
        self._fit_search(X, y, sample_weight, weight, groups, Targets(np.asarray(y)))
        return self

    def _model(self, **params: str | float) -> SVR:
        return SVR(**{**self._common(), **params})

    def _walk(self, path: Path) -> Iterator[tuple[BaseEstimator, Vector]]:
        return walk_svr(path)
