"""Linear support vector classification that chooses C by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import Interval, StrOptions

from .. import core
from ..checks import check_constant
from ..data.rows import Points, check_indices
from ..data.types import Label, MatrixLike
from ..losses import LOSSES, Loss, Vector
from ..problems.multiclass import binary_problems
from ..solvers import SOLVERS, Solver
from ._certified import Settings, check_certify, search, warn_of_accuracy
from ._certified_folds import LinearFolds
from ._html import CertificateHTMLMixin
from ._linear_walks import LinearWalks, warn_of_folds
from ._search import (
    CrossValidation,
    best_of,
    in_fold,
    parts_of,
    run_folds,
    why_ended,
)
from .arguments import check_sample_weight
from .fitting import (
    SmallPickle,
    checked,
    class_scores,
    encode,
    refuse_masks,
    refuse_store,
    validated,
    weights,
)
from .hints import ParameterHints, ProbabilityHints
from .linear_svc import LinearSVC
from .parameters import OF_LINEAR_SEARCHES, Constraints, constraints
from .path import PATH_ON_STORE, grid_of
from .seeds import seed_of
from .training import begin, fit_all

if TYPE_CHECKING:
    from sklearn.utils import Tags


__all__ = ["LinearSVCCV"]


class LinearSVCCV(
    SmallPickle,
    CertificateHTMLMixin,
    ParameterHints,
    ProbabilityHints,
    LinearClassifierMixin,
    SparseCoefMixin,
    BaseEstimator,
):
    """Linear support vector classifier that chooses C by cross-validation.

    Each fold trains a path over all C. Every model starts from the dual variables of
    the two C before and has its own certificate. All folds use the same rows without
    copying them. The final fit, on all rows, starts from the dual variables of a fold.

    Parameters
    ----------
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C to try; an int means that many values, evenly spaced in their
        logarithm from 1e-4 to 1e4.
    cv : int, cross-validation generator or iterable, default=None
        Folds, as in scikit-learn: None and integers are stratified, 5 folds by default.
    scoring : str or callable, optional
        Score to maximise; accuracy by default. It is called without sample weights.
    loss, solver, tol, atol, max_epochs, fit_intercept, intercept_scaling, \
penalize_intercept, class_weight
        As in :class:`LinearSVC`, for every C. The solver must keep dual variables:
        "auto", "dcd" or "sdca". "balanced" counts the rows of each training part.
    multi_class : {"ovr", "ovo"}, default="ovr"
        One versus the rest or one versus one, as in :class:`LinearSVC`.
    time_limit : float, optional
        Seconds for the whole search, including the final fit.
    refit : bool, default=True
        Fit all rows with the best C. If False, there are scores but no model.
    certify : {"error"}, optional
        Prove that no C from ``min(Cs)`` to ``max(Cs)`` has a smaller cross-validation
        error by more than `accuracy`, also between the values of `Cs`. The search adds
        values of C until this is proved. It needs accuracy as the score. Its fits have
        a `tol` of 1e-9 or less.
    accuracy : float, default=0.01
        Difference of errors to prove, as a fraction of the test rows. The number of
        fits grows like the inverse.
    random_state : int, RandomState instance or None, default=0
        Seed of the solver. The folds have their own seed, in `cv`.
    n_jobs : int, optional
        Number of threads, shared by the folds. None means 1 unless
        :func:`joblib.parallel_config` sets another number; -1 uses all processors.
    verbose : int, default=0
        1 logs each fit, 2 also each epoch.

    Attributes
    ----------
    C_ : float
        Best C: the smallest of those with the best mean score. Only values that were
        scored on all folds count.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C, in the given order; with `certify` all that were tried, increasing.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Scores on the test part of each fold; NaN where the search was cut short.
    relative_gaps_ : ndarray of shape (n_folds, n_Cs)
        Proven relative gaps of the scored models, each of the class or pair that is
        farthest from its optimum. NaN where there is no score.
    best_score_ : float
        Mean over the folds of the scores at `C_`.
    error_bounds_ : ErrorBounds
        With `certify`: a tuple (edges, lower, upper) of proved bounds on the mean error
        over the folds of the exact optimum at every C from ``edges[k]`` to
        ``edges[k + 1]``.
    accuracy_ : float
        With `certify`: the proved difference ``1 - best_score_ - min(lower)``.
    n_fits_ : int
        With `certify`: number of fits of the search, values of C times folds.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    best_estimator_ : LinearSVC
        The final model, fitted on all rows.
    coef_, intercept_, support_, n_support_, dual_coef_, n_iter_, certificate_, history_
        Attributes of `best_estimator_`; see :class:`LinearSVC`.
    n_features_in_ : int
        Number of features seen by fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has column names that are all strings.

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

    `certify` bounds the error of the exact optimum at every C between two fitted values
    by a ball around the line between the two models (Shibagaki et al., NIPS 2015, have
    the ball of one fit). See docs/certified-selection.md.

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

    _parameter_constraints: ClassVar[Constraints] = {
        **constraints(*OF_LINEAR_SEARCHES),
        "Cs": [Integral, "array-like"],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "loss": [StrOptions(set(LOSSES)), Loss],
        "solver": [StrOptions(set(SOLVERS)), Solver],
        "penalize_intercept": ["boolean"],
        "multi_class": [StrOptions({"ovr", "ovo"})],
        "refit": ["boolean"],
        "certify": [StrOptions({"error"}), None],
        "accuracy": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        Cs: int | ArrayLike = 10,
        *,
        cv: CrossValidation = None,
        scoring: str | Callable[..., float] | None = None,
        loss: str | Loss = "squared_hinge",
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        atol: float = 0.0,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        penalize_intercept: bool = True,
        class_weight: dict[Label, float] | str | None = None,
        multi_class: str = "ovr",
        refit: bool = True,
        certify: str | None = None,
        accuracy: float = 0.01,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.atol = atol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.penalize_intercept = penalize_intercept
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.refit = refit
        self.certify = certify
        self.accuracy = accuracy
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def decision_function(self, X: MatrixLike) -> Vector:
        if issparse(X):
            check_indices(X)
        values: Vector = super().decision_function(X)
        return class_scores(values, self.multi_class, len(self.classes_))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @checked
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LinearSVCCV:
        """Choose C by cross-validation, and train on all rows with it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C in training.

        Returns
        -------
        LinearSVCCV
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, a training part has rows of fewer
            than two classes, or `time_limit` ends before any C was scored on all folds.
        KeyboardInterrupt
            After Ctrl-C, if no C was scored on all folds yet.

        Warns
        -----
        ConvergenceWarning
            If a scored model or the final model did not reach `tol`, the search was
            cut short, or `accuracy` was not proved.
        """
        grid = grid_of(self.Cs)
        if self.certify is not None:
            check_certify(self.certify, self.scoring, self.Cs, grid)
        refuse_store(X, "LinearSVCCV", PATH_ON_STORE)
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        stop = begin(self.time_limit)
        X, y = validated(self, X, y)
        if hasattr(X, "tocsr"):
            X = X.tocsr()  # once for all folds; no copy if it is CSR already
        y = np.asarray(y)
        constant = check_constant(self.fit_intercept, self.intercept_scaling)
        points = Points.of(X, constant)
        walks = self._walks(X, points, y, sample_weight, stop)
        found = walks.found
        if self.certify is None:
            order = np.argsort(grid, kind="stable")
            run_folds(
                lambda fold: walks.walk(fold, grid[order]),
                len(found),
                n_jobs=self.n_jobs,
                stop=stop,
                verbose=self.verbose,
            )
        else:
            grid = self._search(walks, np.unique(grid))
            order = np.arange(len(grid))
        best = self._keep_scores(walks, grid, order)
        if self.refit:
            self._train(points, y, sample_weight, found[0].duals[best], stop)
        return self

    def _walks(
        self,
        X: MatrixLike,
        points: Points,
        y: NDArray[np.generic],
        sample_weight: ArrayLike | None,
        stop: core.Stop,
    ) -> LinearWalks:
        """Return the problems of all folds, over one copy of the rows."""
        classes, codes = encode(y)
        weight = check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        folds = list(check_cv(self.cv, y, classifier=True).split(X, y))
        parts = parts_of(weight, [train for train, _ in folds], codes)
        factors = [
            weights(self.class_weight, X, classes, codes, part)[1] for part in parts
        ]
        binary = binary_problems(
            self.multi_class,
            points,
            classes,
            codes,
            None,
            np.ones(len(classes)),
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            penalize_intercept=self.penalize_intercept,
            copies=False,  # all pairs are in use at the same time
        )
        owns = []
        for fold, own in enumerate(zip(parts, factors, strict=True)):
            with in_fold(fold):
                owns.append(binary.reweighted(*own))
        return LinearWalks(
            self,
            X,
            y,
            classes,
            codes,
            binary,
            owns=owns,
            tests=[test for _, test in folds],
            seed=seed_of(self.random_state),
            stop=stop,
        )

    def _keep_scores(
        self, walks: LinearWalks, grid: Vector, order: NDArray[np.intp]
    ) -> int:
        """Set the attributes of the search; return the number of the best C in order.

        `order` sorts the grid as the folds went through it.
        """
        found, stop = walks.found, walks.stop
        scores = np.full((len(found), len(grid)), np.nan)
        gaps = np.full_like(scores, np.nan)
        for fold, part in enumerate(found):
            reached = order[: len(part.scores)]
            scores[fold, reached] = part.scores
            gaps[fold, reached] = [
                max(c.relative_gap for c in now)
                for now in part.certificates[: len(part.scores)]
            ]
        whole = min(len(part.scores) for part in found)  # values scored on all folds
        mean = scores.mean(axis=0)[order]
        best = best_of(
            mean[:whole],
            grid[order[:whole]],
            stop,
            "C",
            self.scoring,
            self.time_limit,
        )
        self.Cs_, self.classes_ = grid, walks.classes
        self.scores_, self.relative_gaps_ = scores, gaps
        self.C_ = float(grid[order[best]])
        self.best_score_ = float(mean[best])
        if self.certify is None:
            warn_of_folds(found, grid[order], walks.binary.names)
        if whole < len(grid):
            why = why_ended(stop, self.time_limit)
            warnings.warn(
                f"LinearSVCCV: {why} after {whole} of {len(grid)} values "
                f"of C were scored on all folds. C_={self.C_:g} is the best of these; "
                "missing scores_ are NaN",
                ConvergenceWarning,
                stacklevel=4,
            )
        return best

    def _search(self, walks: LinearWalks, start: Vector) -> Vector:
        """Choose C with a proof, keep its fits, and return the values of C."""
        settings, stop, found = Settings(), walks.stop, walks.found
        folds = LinearFolds(
            walks.tests,
            walks.codes,
            len(walks.classes),
            len(walks.binary.labels),
            walks.solver,
            walks.options | {"tol": min(self.tol, settings.tol)},
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            walks=walks,
            votes=self.multi_class == "ovo" and len(walks.classes) > 2,
        )
        (proof,) = fit_all(
            lambda _: search(folds, start, self.accuracy, settings),
            1,
            n_jobs=None,
            stop=stop,
            verbose=self.verbose,
        )
        if proof is None:
            return start
        for fold, part in enumerate(found):
            for fits in proof.fits.values():
                part.scores.append(fits[fold].score)
                part.certificates.append(fits[fold].certificates)
                if (duals := fits[fold].duals) is not None:
                    part.duals.append(duals)
        self.error_bounds_, self.accuracy_ = proof.bounds, proof.accuracy
        self.n_fits_ = len(proof.fits) * len(found)
        why = why_ended(stop, self.time_limit)
        warn_of_accuracy("LinearSVCCV", self.accuracy_, self.accuracy, why, [proof], 5)
        return np.array(list(proof.fits))

    def _model(self, C: float) -> LinearSVC:
        """Return a LinearSVC with this C and the other parameters of this estimator."""
        own = self.get_params(deep=False)
        for name in ("Cs", "cv", "scoring", "refit", "certify", "accuracy"):
            del own[name]
        return LinearSVC(C=C, **own)

    def _train(
        self,
        points: Points,
        y: NDArray[np.generic],
        sample_weight: ArrayLike | None,
        duals: tuple[NDArray[np.intp], Vector],
        stop: core.Stop,
    ) -> None:
        """Train the final model on all rows, from the dual variables of a fold."""
        model = self._model(self.C_).set_params(warm_start=True)
        model.support_, model.dual_coef_ = duals
        model.classes_, model._n_rows = self.classes_, points.shape[0]
        model._fit(points, y, sample_weight, stop=stop)
        self.best_estimator_ = model.set_params(warm_start=False)
        for name in (
            *("coef_", "intercept_", "support_", "n_support_", "dual_coef_"),
            *("n_iter_", "certificate_", "history_"),
        ):
            setattr(self, name, getattr(model, name))
