"""Probabilities of classifiers, fitted to decision values of rows held out of training.

One batch trains the models of all folds, as in the searches. A sigmoid, a step function
or a temperature turns their decisions at the held-out rows into probabilities.
"""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass, field
from itertools import combinations
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    clone,
)
from sklearn.model_selection import check_cv
from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from ..certificate import Certificate, Status
from ..data.rows import Points
from ..data.types import MatrixLike
from ..losses import Vector
from ..problems.duals import Table, expanded
from ..training.batch import begin
from .base import CertificateHTMLMixin, Model, final, own, warn_of_models
from .calibrators import (
    Calibrator,
    SigmoidCalibrator,
    fitted_calibrators,
    probabilities,
)
from .folds import CrossValidation, FoldFit, Folds, run, why_ended
from .input import checked, encode, labelled, refuse_masks, refuse_store, validated
from .linear_svc import LinearSVC
from .parameters import ParameterHints
from .search import ClassifierSearch
from .svc import SVC

if TYPE_CHECKING:
    from typing_extensions import Self

Method: TypeAlias = Literal["sigmoid", "isotonic", "temperature"]

#: The models of the folds are proved to this many times `tol`. Beside the noise of the
#: labels, the calibration hardly depends on more digits of their decisions.
_LOOSER = 10.0
_KEPT = "the model is trained, as far as it came, but has no probabilities"

# ------------------------------------------------------------------- held-out decisions


def _splits(
    cv: CrossValidation,
    X: MatrixLike,
    codes: NDArray[np.intp],
    classes: NDArray[np.generic],
    weight: Vector | None,
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return the training and the held-out rows of the folds."""
    counts = np.bincount(codes)
    rarest = int(counts.argmin())
    folds = 5 if cv is None else cv
    if isinstance(folds, Integral) and counts[rarest] < folds:
        least = int(counts[rarest])
        remedy = f"use cv={least}, or " if least > 1 else ""
        raise ValueError(
            f"cv={folds!r} is more than the {least} rows of class "
            f"{classes[rarest]!s}; {remedy}give more rows of it"
        )
    rows = np.arange(len(codes))
    split = check_cv(folds, codes, classifier=True).split(X, classes[codes])
    splits = [(rows[train], rows[test]) for train, test in split]
    held_out = np.concatenate([test for _, test in splits])
    if not np.array_equal(np.sort(held_out), rows):
        raise ValueError(
            f"cv={cv!r} does not hold out every row exactly once; use folds that do, "
            "such as cv=5"
        )
    for f, (train, _) in enumerate(splits):
        own = None if weight is None else weight[train]
        total = np.bincount(codes[train], own, len(classes))
        if not total.all():
            raise ValueError(
                f"fold {f} has no training row of class {classes[total == 0.0][0]!s} "
                "with a positive weight; change the folds with cv, or sample_weight"
            )
    return splits


def held_out_values(
    model: Model,
    X: MatrixLike,
    y: NDArray[np.generic],
    weight: Vector | None,
    splits: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
    name: str,
) -> Vector:
    """Return decisions of each row from a model that was not trained on it.

    `model`: all folds have its parameters, and begin near it if it is fitted. They have
    the kernel that it has for all rows.
    `splits`: every row is held out once. `name`: what warnings are about. The result
    has shape (n, n_problems). Raises KeyboardInterrupt after Ctrl-C, and ValueError if
    `time_limit` ended the work.
    """
    near, duals = _near(model), _duals(model, len(y))
    model = clone(model)
    model.tol *= _LOOSER
    if hasattr(model, "checkpoint"):
        model.checkpoint = None
    X, y, seen = model._seen(X, y)
    if isinstance(model, SVC) and not callable(model.kernel):
        model.kernel = model._kernel_record().resolve(X)
    stop = begin(model.time_limit)
    points = Points.of(X, model._constant)
    folds = Folds(points, y, weight, splits, stop, model._threads, 1, seen, near, duals)
    values: dict[int, Vector] = {}
    proofs: list[tuple[str, Certificate]] = []

    def take(fits: list[FoldFit]) -> None:
        for fit in fits:
            values[fit.fold] = fit.decisions()
            proofs.extend((f"fold {fit.fold}", part) for part in fit.parts)

    run(folds.walks(model, np.array([model.C])), take, model._job(stop))
    if len(values) < len(splits):
        if stop.requested:
            raise KeyboardInterrupt(_KEPT)
        raise ValueError(
            f"{name}: {why_ended(stop, model.time_limit)} before the models of all "
            "folds were trained; give more time"
        )
    warn_of_models(name, proofs)
    found = np.empty((len(y), values[0].shape[1]))
    for f, (_, test) in enumerate(splits):
        found[test] = values[f]
    return found


def _near(model: Model) -> list[Vector]:
    """Return the models of a fitted linear classifier, one per class; else none."""
    if not isinstance(model, LinearSVC) or model.multi_class != "ovr":
        return []
    coef = vars(model).get("coef_")
    if not isinstance(coef, np.ndarray):  # not fitted, or after sparsify()
        return []
    if not model.fit_intercept:
        return list(coef)
    return list(np.column_stack([coef, model.intercept_ / model.intercept_scaling]))


def _duals(model: Model, n: int) -> Table | None:
    """Return ``y_i alpha_i`` of all rows of a fitted model, if it keeps them."""
    if not hasattr(model, "dual_coef_"):
        return None
    return expanded(model.dual_coef_, model.support_, n)


def curves_of_pairs(
    model: SVC, X: MatrixLike, y: NDArray[np.generic], weight: Vector, seed: int
) -> tuple[Vector, Vector]:
    """Return LIBSVM's ``probA`` and ``probB`` of all pairs of classes.

    The probability of the first class of a pair is 1 / (1 + exp(A f + B)), where the
    decision f is positive for this class. Up to five folds are drawn at random.
    Every class has two rows of positive weight or more; `weight` may be empty.
    """
    weight = weight if len(weight) else np.ones(len(y))
    classes, codes = encode(y)
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[weight[order] > 0.0]
    fold = np.zeros(len(y), np.intp)
    for c in range(len(classes)):
        own = order[codes[order] == c]
        fold[own] = np.arange(len(own)) % 5
    splits = [
        (np.flatnonzero(fold != f), np.flatnonzero(fold == f))
        for f in range(fold.max() + 1)
    ]
    values = held_out_values(model, X, y, weight, splits, "SVC")
    if len(classes) == 2:
        values = -values
    lines, pairs = [], combinations(range(len(classes)), 2)
    for column, (i, j) in zip(values.T, pairs, strict=True):
        rows = order[(codes[order] == i) | (codes[order] == j)]
        one = SigmoidCalibrator.fit(column[rows], codes[rows] == i, np.ones(len(rows)))
        lines.append([-one.slope, -one.offset])
    return tuple(np.ascontiguousarray(np.transpose(lines)))


# --------------------------------------------------------------------------- estimator


def _refuse_foreign(model: BaseEstimator) -> None:
    """Raise an error for what has no folds to share, before any work."""
    name = type(model).__name__
    patched = hasattr(model, "_as_own") and name in ("LinearSVC", "SVC")
    if not (patched or isinstance(model, (LinearSVC, SVC, ClassifierSearch))):
        remedy = "use sklearn.calibration.CalibratedClassifierCV(model, ensemble=False)"
        if hasattr(model, "steps"):
            last = type(model.steps[-1][1]).__name__
            remedy = (
                f"put CalibratedClassifier({last}(...)) in the place of its last step, "
                "and fit the pipeline"
            )
        if name in ("LinearSVC", "SVC"):
            name += f" of {type(model).__module__.partition('.')[0]}"
        raise TypeError(
            f"model is a {name}, but calibration takes a LinearSVC, an "
            f"SVC or a search for one; {remedy}"
        )
    if getattr(model, "decision_function_shape", "ovr") == "ovo":
        raise ValueError(
            "decision_function_shape='ovo' has a decision per pair of classes, but "
            "calibration needs one per class; use 'ovr'"
        )


@dataclass(eq=False, repr=False)
class CalibratedClassifier(
    ClassifierMixin, MetaEstimatorMixin, ParameterHints, CertificateHTMLMixin
):
    """Classifier with probabilities, from one fit and folds that share their work.

    It fits `estimator` to all rows, and calibrates decisions of rows that were held out
    of training. The models of all folds are trained together, from the model of all
    rows on, to 10 times the `tol` of the estimator. The result has the probabilities of
    scikit-learn's ``CalibratedClassifierCV(estimator, ensemble=False)`` within that
    accuracy, if a kernel's `gamma` is a number: a rule such as "scale" is applied once,
    to all rows.

    Parameters
    ----------
    estimator : LinearSVC, SVC, LinearSVCCV or SVCCV
        Classifier to calibrate; a patched one of scikit-learn too. A search chooses its
        parameters once, on all rows.
    method : {"sigmoid", "isotonic", "temperature"}, default="sigmoid"
        What turns decisions into probabilities: a sigmoid per class (Platt's method),
        a nondecreasing function per class, which needs some thousand rows, or a
        softmax with one factor for all classes. With three or more classes, the first
        two methods divide the probabilities by their sum.
    cv : int, splitter or iterable of (train, test), default=5
        Folds. Each row has to be held out exactly once.

    Attributes
    ----------
    estimator_ : LinearSVC or SVC
        The model of all rows.
    calibrators_ : tuple
        Fitted functions from decisions to probabilities, one for each class; one alone
        for two classes, or for a temperature.
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    n_splits_ : int
        Number of folds.
    certificate_ : Certificate
        Certificate of `estimator_`. It says nothing about the probabilities.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string names.

    See Also
    --------
    calibrated : The same for a model that may already be fitted.

    Notes
    -----
    ``predict`` returns the class of the largest probability, as scikit-learn's
    ``CalibratedClassifierCV`` does. That may differ from ``estimator_.predict``.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines and comparisons
       to regularized likelihood methods", 1999.
    .. [2] B. Zadrozny, C. Elkan, "Transforming classifier scores into accurate
       multiclass probability estimates", KDD 2002.
    .. [3] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On calibration of modern neural
       networks", ICML 2017.

    Examples
    --------
    >>> from dualgap import SVC, CalibratedClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CalibratedClassifier(SVC(), cv=5).fit(X, y)
    >>> model.predict_proba(X[:1]).round(2)
    array([[0.96, 0.04, 0.  ]])
    """

    estimator: Annotated[BaseEstimator, HasMethods(["fit", "decision_function"])]
    _: KW_ONLY
    method: Method = "sigmoid"
    cv: Annotated[CrossValidation, "cv_object"] = 5

    if TYPE_CHECKING:
        estimator_: BaseEstimator = field(init=False)
        calibrators_: tuple[Calibrator, ...] = field(init=False)
        classes_: NDArray[np.generic] = field(init=False)
        n_splits_: int = field(init=False)

    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train the model of all rows and the models of the folds, and calibrate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, the kernel matrix.
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the fits and in the calibration.

        Returns
        -------
        self
            The fitted classifier.

        Raises
        ------
        TypeError
            If the estimator is not one that shares its folds.
        ValueError
            If a parameter or an argument is invalid, a class has fewer rows than there
            are folds, or `time_limit` of the estimator ended the work.
        KeyboardInterrupt
            After Ctrl-C. Then ``estimator_`` is the best model so far.

        Warns
        -----
        ConvergenceWarning
            If a model did not reach its `tol`.
        """
        return self._calibrate(X, y, sample_weight, None)

    @checked
    def _calibrate(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        fitted: BaseEstimator | None,
    ) -> Self:
        """Calibrate the model `fitted`, or one that is fitted here."""
        name = type(self).__name__
        _refuse_foreign(self.estimator if fitted is None else fitted)
        refuse_store(X, name, "give an array of some rows")
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        fitted = getattr(fitted, "_as_fitted", fitted)
        model = clone(self.estimator if fitted is None else fitted)
        rows, labels = validated(model, X, y)
        data = labelled(None, rows, labels, sample_weight)
        classes, codes, n = data.classes, data.codes, len(labels)
        splits = _splits(self.cv, X, codes, classes, data.weight)
        trained = fitted is None
        if fitted is None:
            fitted = final(clone(self.estimator).fit(X, y, sample_weight))
        else:
            _refuse_other(fitted, n, classes)
        for known in ("calibrators_", "n_splits_"):  # of an earlier fit
            self.__dict__.pop(known, None)
        self.estimator_, self.classes_ = fitted, classes
        if not hasattr(fitted, "certificate_"):
            raise ValueError(
                f"estimator={fitted!r} was trained by scikit-learn, because dualgap "
                "does not take its parameters; use CalibratedClassifierCV"
            )
        # A callback may end a fit where it is good enough.
        heard = hasattr(fitted, "_skl_callbacks")
        parts = fitted.certificate_.parts
        stopped = any(part.status is Status.INTERRUPTED for part in parts)
        if trained and stopped and not heard:
            raise KeyboardInterrupt(_KEPT)
        model = own(fitted)
        values = held_out_values(model, X, labels, data.weight, splits, name)
        values = model._reduction_of(len(classes)).scores(values).reshape(n, -1)
        weight = np.ones(n) if data.weight is None else data.weight
        self.calibrators_ = fitted_calibrators(self.method, values, codes, weight)
        self.n_splits_ = len(splits)
        return self

    @property
    def certificate_(self) -> Certificate:
        return self.estimator_.certificate_

    @property
    def n_features_in_(self) -> int:
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[np.generic]:
        return self.estimator_.feature_names_in_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__().input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.pairwise = inner.pairwise
        return tags

    # ------------------------------------------------------------------ prediction

    def predict_proba(self, X: MatrixLike) -> Vector:
        """Return the probabilities of all classes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Each row sums to 1.
        """
        check_is_fitted(self, "calibrators_")
        values = self.estimator_.decision_function(X)
        return self._probabilities(values)

    def _probabilities(self, decisions: Vector) -> Vector:
        """Return the probabilities of all classes from the decisions of rows."""
        return probabilities(self.calibrators_, decisions.reshape(len(decisions), -1))

    def predict_log_proba(self, X: MatrixLike) -> Vector:
        """Return the logarithms of the probabilities of all classes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Minus infinity for the probability 0.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: MatrixLike) -> NDArray[np.generic]:
        """Return the class of the largest probability of each row.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


def _refuse_other(fitted: BaseEstimator, n: int, classes: NDArray[np.generic]) -> None:
    """Raise an error if a model was fitted to other rows or classes."""
    known = getattr(fitted, "shape_fit_", (getattr(fitted, "_n_rows", n),))[0]
    if known != n:
        raise ValueError(
            f"model was fitted to {known} rows, but X has {n}; give the rows of the "
            "fit, or clone(model)"
        )
    if not np.array_equal(fitted.classes_, classes):
        raise ValueError(
            f"model was fitted to the classes {fitted.classes_.tolist()}, but y has "
            f"{classes.tolist()}; give the labels of the fit, or clone(model)"
        )


def calibrated(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    method: Method = "sigmoid",
    cv: CrossValidation = 5,
    sample_weight: ArrayLike | None = None,
) -> CalibratedClassifier:
    """Return a classifier with the probabilities that a model lacks.

    Parameters
    ----------
    model : LinearSVC, SVC, LinearSVCCV or SVCCV
        A classifier, or a patched one of scikit-learn. If it is fitted, only the models
        of the folds are trained; X, y and `sample_weight` have to be as in its fit.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows; with a precomputed kernel, the kernel matrix.
    y : array-like of shape (n_samples,)
        Class labels.
    method, cv
        As for :class:`CalibratedClassifier`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in the fits and in the calibration.

    Returns
    -------
    CalibratedClassifier
        Fitted, with ``predict_proba`` and ``predict_log_proba``.

    Raises
    ------
    TypeError, ValueError
        As ``CalibratedClassifier.fit``, or if the model was fitted to other rows.

    Examples
    --------
    >>> from dualgap import LinearSVC, calibrated
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = calibrated(LinearSVC().fit(X, y), X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """
    inner = final(model)
    _refuse_foreign(inner)
    # Later fits of the model leave the copy as it is.
    fitted = copy.copy(inner) if hasattr(inner, "classes_") else None
    found = CalibratedClassifier(clone(model), method=method, cv=cv)
    return found._calibrate(X, y, sample_weight, fitted)
