"""Proven bounds for models that were trained by any package, also in ensembles."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import combinations
from numbers import Real
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.linear_model import HuberRegressor, SGDClassifier
from sklearn.model_selection import check_cv
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..certificate import Certificate
from ..checks import refuse_huge
from ..data.types import MatrixLike
from ..estimators import LinearSVC, unwrap
from ..estimators import originals as svm
from ..estimators.fitted import kernel_pairs, other_objective, single_kernel
from ..estimators.hard_margin import is_hard
from ..estimators.input import checking
from ..estimators.parameters import Jobs
from ..estimators.svc import KernelClassifier
from ..losses import RESIDUAL_LOSSES, Loss, Pinball, ResidualLoss
from ..problems.reductions import certificate_of
from ..training.batch import begin, seeds_of
from .linear import (
    LOGISTIC,
    certify_linear,
    certify_logistic,
    coefficients,
    linear_terms,
    logistic_terms,
)
from .single_problems import (
    KERNELS_OF_ONE,
    LINEAR_OF_ONE,
    RIDGE,
    ProofLimits,
    TrainedOn,
    certify_huber,
    certify_kernel,
    certify_single,
    coefficient_terms,
    ridge_outputs,
    single_terms,
    weight_of_loss,
)

# Subclasses may stand in their places later: dualgap.patch_sklearn.
_SVC, _LinearSVC = svm.SVC, svm.LinearSVC


@checking(
    {
        "C": [Interval(Real, 0, None, closed="neither"), None],
        "loss": [str, Loss, ResidualLoss, None],
        "epsilon": [Interval(Real, 0, None, closed="left"), None],
        "nu": [Interval(Real, 0, 1, closed="right"), None],
        "quantile": [Interval(Real, 0, 1, closed="neither"), None],
        "penalize_intercept": ["boolean", None],
        "class_weight": [dict, str, None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "n_jobs": [*get_args(Jobs)[1:]],
    }
)
def certify(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None = None,
    C: float | None = None,
    *,
    intercept: ArrayLike | None = None,
    loss: str | Loss | ResidualLoss | None = None,
    epsilon: float | None = None,
    nu: float | None = None,
    quantile: float | None = None,
    penalize_intercept: bool | None = None,
    sample_weight: ArrayLike | None = None,
    class_weight: Any = None,
    tol: float = 1e-3,
    time_limit: float | None = None,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
) -> Certificate:
    """Bound how far a trained model is from the optimum of its training problem.

    The primal value is the objective of the given model. The dual value comes from the
    model's own margins or dual variables and, if these leave a gap above `tol`, from a
    fit of dualgap. Both are computed over all rows in float64, so the bound holds
    whatever trained the model.

    Parameters
    ----------
    model : estimator or ndarray of shape (n_features,) or (n_problems, n_features)
        A fitted `LinearSVC`, `SVC`, `SGDClassifier`, `LogisticRegression`,
        `RidgeClassifier`, `RidgeClassifierCV`, `Ridge`, `RidgeCV`, `HuberRegressor`,
        `LinearSVR`, `SVR`, `SGDRegressor`, `OneClassSVM` or `SGDOneClassSVM` of
        scikit-learn, a fitted estimator of dualgap, or the coefficients of any linear
        model: one row, or one per class (one versus the rest, and all together for
        ``loss="logistic"``). The models inside pipelines, searches,
        `OneVsRestClassifier`, `OneVsOneClassifier`, `CalibratedClassifierCV`,
        `BaggingClassifier` and `BaggingRegressor` are found.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training rows; with a precomputed kernel, the kernel matrix.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        The training labels or targets. With two labels, the larger one is the positive
        class. Ignored for one-class models.
    C : float, optional
        Weight of the loss, which is summed over the rows. Estimators have their own C;
        for `SGDClassifier` and `SGDRegressor` it is ``1/(alpha n_samples)``, for ridge
        and Huber regression ``1/(2 alpha)``. If the
        objective is the mean loss plus ``lambda/2 ||w||^2``, C is
        ``1/(lambda n_samples)``.
    intercept : float or array-like of shape (n_problems,), optional
        Intercept that belongs to given coefficients; None if there is none. For a
        one-class SVM it is -rho.
    loss : str or record, optional
        Loss that belongs to given coefficients: as for LinearSVC ("hinge" is the
        default) or LinearSVR, or "logistic", where the intercept is not penalised.
    epsilon : float, optional
        For coefficients of a regression model: residuals up to `epsilon` cost nothing.
        None means 0.
    nu : float, optional
        For coefficients of a one-class SVM, on the scale of LIBSVM and LIBLINEAR.
        If `nu` is given, the coefficients are taken for a one-class SVM.
    quantile : float, optional
        For coefficients of a regression with ``loss="quantile"``.
    penalize_intercept : bool, optional
        For given coefficients: True if the intercept is part of the norm, as in
        LIBLINEAR; False or None if not, as in the textbook SVM and Spark.
    sample_weight : array-like of shape (n_samples,), optional
        The sample weights that the model was fitted with.
    class_weight : dict or "balanced", optional
        Class weights that belong to given coefficients. Estimators have their own.
    tol : float, default=1e-3
        Tightness of the bound: it overstates the true distance by at most this
        fraction of the optimum. A smaller value takes longer.
    time_limit : float, optional
        Seconds for the fit. If it ends early, the bound holds but may be loose.
    random_state : int, RandomState instance or None, default=0
        Seed of the fit.
    n_jobs : int, optional
        Threads over the rows. None means 1 unless :func:`joblib.parallel_config` sets
        another number; -1 uses all processors.

    Returns
    -------
    Certificate
        ``relative_gap`` is the bound, and ``status`` is None. With more than two
        classes, ``parts`` has one certificate per class (per pair of classes for `SVC`
        and one versus one). For ensembles it has the certificates of all members.

    Raises
    ------
    ValueError
        If C is missing, a shape does not match, a setting contradicts the estimator, or
        the model minimises another objective (another loss or penalty).
    TypeError
        If the type of the model is not supported.

    Examples
    --------
    >>> from dualgap import certify
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sklearn.svm import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(loss="hinge", tol=1.0, random_state=0).fit(scale(X), y)
    >>> certificate = certify(model, scale(X), y)
    >>> certificate.dual <= certificate.primal
    True
    """
    refuse_huge("intercept", intercept)
    for name, value in (("X", X), ("y", y)):
        if hasattr(value, "fit"):
            raise TypeError(
                f"{name} is the estimator {type(value).__name__}; the model comes "
                "first: certify(model, X, y)"
            )
    if quantile is not None:
        if loss != "quantile":
            raise ValueError(f"quantile={quantile!r} needs loss='quantile'; give both")
        loss = Pinball(quantile)
    seed = seeds_of(random_state, 1)[0]
    stop = begin(time_limit)
    given = {
        "intercept": intercept,
        "loss": loss,
        "epsilon": epsilon,
        "nu": nu,
        "penalize_intercept": penalize_intercept,
        "class_weight": class_weight,
    }
    limits = ProofLimits(float(tol), seed, stop, n_jobs)
    parts: list[Certificate] = []
    for member in members_of(Member("", model, X, y, sample_weight)):
        name, model, X, y, weight = member
        found = _certify(model, dict(given), TrainedOn(X, y, C, weight, limits))
        known = getattr(model, "certificate_", None)
        if isinstance(known, Certificate) and (moved := other_objective(known, found)):
            now, before = moved
            warnings.warn(
                "X and y are not the rows that the model was trained on: its objective "
                f"is {now} there, and was {before} in training. The "
                "certificate is about the rows given.",
                stacklevel=3,
            )
        parts += found.named(name)
    return Certificate.total(parts)


def _certify(model: BaseEstimator, given: dict[str, Any], on: TrainedOn) -> Certificate:
    X, y, C, sample_weight, limits = on
    loss, epsilon, nu = given["loss"], given["epsilon"], given["nu"]
    if isinstance(model, KERNELS_OF_ONE):
        _refuse(given, model)
        check_is_fitted(model)
        _agreed_of_one(C, model)
        single = single_kernel(model, X, y, sample_weight, used=True)
        return certify_kernel(model, single, limits)
    if isinstance(model, LINEAR_OF_ONE):
        _refuse(given, model)
        every = single_terms(model, np.shape(X)[0], sample_weight)
        C = _agreed_of_one(C, model, every[0].C)
        on = on._replace(C=C)
        return certificate_of(model, [certify_single(one, on) for one in every])
    if isinstance(model, HuberRegressor):
        _refuse(given, model)
        _agreed(C, own := weight_of_loss(model, model.alpha), model)
        return certify_huber(model, own, on)
    if isinstance(model, RIDGE):
        _refuse(given, model)
        outputs, weight = ridge_outputs(model, X, y, sample_weight)
        parts = [
            certify_single(
                one.terms,
                TrainedOn(X, one.y, _agreed(C, one.terms.C, model), weight, limits),
            )
            for one in outputs
        ]
        names = [one.name for one in outputs]
        return parts[0] if len(parts) == 1 else Certificate.total(parts, names)
    if isinstance(loss, ResidualLoss) or loss in RESIDUAL_LOSSES or nu is not None:
        return _certify_classless(model, given, on)
    if epsilon is not None:
        raise ValueError(
            f"epsilon={epsilon!r} is for regression; also give "
            "loss='epsilon_insensitive' or 'squared_epsilon_insensitive'"
        )
    if y is None:
        raise ValueError("y is missing; give the labels of the training rows")
    del given["epsilon"], given["nu"]
    if isinstance(model, (_SVC, svm.NuSVC, KernelClassifier)):
        _refuse(given, model)
        check_is_fitted(model)
        _agreed_of_one(C, model)
        hard = is_hard(model)
        pairs = kernel_pairs(model, X, y, sample_weight, used=True, hard=hard)
        return certify_kernel(model, pairs, limits)
    if isinstance(model, LOGISTIC):
        _refuse(given, model)
        classes = logistic_terms(model)
        C = _agreed(C, classes.C, model)
    elif isinstance(model, (_LinearSVC, SGDClassifier, LinearSVC)):
        _refuse(given, model)
        classes = linear_terms(model, np.shape(X)[0], joint=True)
        C = _agreed(C, classes.C, model)
    elif hasattr(model, "predict"):
        raise TypeError(
            f"model={model!r} does not minimise the objective of an SVM or of "
            "logistic, ridge or Huber regression; give such a model of scikit-learn or "
            "dualgap, alone or inside a pipeline, search, multi-class wrapper, "
            "calibration or bagging ensemble, or the coefficients of a linear one as "
            "an array"
        )
    else:
        classes = coefficients(model, **given)
    prove = certify_logistic if classes.loss == "logistic" else certify_linear
    return prove(classes, on._replace(C=C))


def _certify_classless(
    model: BaseEstimator, given: dict[str, Any], on: TrainedOn
) -> Certificate:
    """Certify coefficients of a regression or of a one-class SVM."""
    nu, intercept = given["nu"], given["intercept"]
    if (class_weight := given["class_weight"]) is not None:
        raise ValueError(
            f"class_weight={class_weight!r} needs classes, but this model has none;"
            " use sample_weight"
        )
    if nu is not None and on.C is not None:
        raise ValueError(
            f"C={on.C!r} does not apply to a one-class SVM; leave it out, and give nu"
        )
    classless = coefficients(model, intercept, None, None, None)
    if len(classless.coef) != 1:
        raise ValueError(
            f"model has coefficients of shape {classless.coef.shape}; a model "
            "without classes needs one row"
        )
    terms = coefficient_terms(
        classless.coef[0],
        None if intercept is None else float(classless.intercept[0]),
        given["loss"],
        given["epsilon"],
        nu,
        given["penalize_intercept"],
    )
    return certify_single(terms, on)


def _agreed(
    given: float | None, own: float | None, model: BaseEstimator
) -> float | None:
    if given is not None and given != own:
        raise ValueError(
            f"C={given!r} contradicts {type(model).__name__}, which was trained with "
            f"C={own!r}; leave C out, or give the coefficients instead"
        )
    return own


def _agreed_of_one(
    given: float | None, model: BaseEstimator, own: float | None = None
) -> float | None:
    """Return the C of an estimator that may have none, if the given C agrees."""
    if "C" in model.get_params():
        own = getattr(model, "C", own)
    if own is None and given is not None:
        raise ValueError(
            f"C={given!r} does not apply to {type(model).__name__}; leave it out"
        )
    return _agreed(given, own, model)


def _refuse(given: dict[str, object], model: BaseEstimator) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} is not for estimators: {type(model).__name__} has "
                "its own; leave it out, or give the coefficients instead"
            )


class Member(NamedTuple):
    """A model, and the data that it was trained on."""

    #: What it was trained for, such as "class 3"; empty for a model on its own.
    name: str
    model: BaseEstimator  # or the coefficients of a linear model
    X: ArrayLike
    y: ArrayLike | None
    sample_weight: ArrayLike | None

    def named(self, outer: str) -> Member:
        """Return the member with the name of the ensemble around it before its own."""
        return self._replace(name=f"{outer}, {self.name}" if self.name else outer)


def members_of(given: Member) -> Iterator[Member]:
    """Yield the models inside pipelines, searches and ensembles.

    `given`: a model of any kind, with its training data. Any estimator that is not made
    of members is yielded as it is. Raises ValueError if the data of a member cannot be
    found out.
    """
    model, X = unwrap(given.model, given.X)
    given = given._replace(model=model, X=X)
    for kind, split in _SPLITS.items():
        if isinstance(model, kind):
            check_is_fitted(model)
            for member in split(given):
                inner = members_of(member._replace(name=""))
                yield from (each.named(member.name) for each in inner)
            return
    yield given


def _one_versus_rest(given: Member) -> Iterator[Member]:
    columns = given.model.label_binarizer_.transform(given.y)
    if not isinstance(columns, np.ndarray):
        columns = columns.toarray()
    model = given.model
    classes = model.classes_ if columns.shape[1] > 1 else model.classes_[1:]
    for name, y, part in zip(classes, columns.T, model.estimators_, strict=True):
        if len(np.unique(y)) == 2:  # else the part is a constant
            yield given._replace(name=f"class {name}", model=part, y=y)


def _one_versus_one(given: Member) -> Iterator[Member]:
    classes, y = given.model.classes_, np.asarray(given.y)
    pairs = combinations(range(len(classes)), 2)
    for (i, j), part in zip(pairs, given.model.estimators_, strict=True):
        rows = np.flatnonzero((y == classes[i]) | (y == classes[j]))
        yield _on_rows(given, rows)._replace(
            name=f"{classes[i]} against {classes[j]}",
            model=part,
            y=(y[rows] == classes[j]).astype(int),
        )


def _bagged(given: Member) -> Iterator[Member]:
    if given.sample_weight is not None:
        raise ValueError(
            "sample_weight does not tell which rows a bagging ensemble drew; leave it "
            "out"
        )
    model, y = given.model, np.asarray(given.y)
    if hasattr(model, "classes_"):
        y = np.searchsorted(model.classes_, y)
    drawn = zip(
        model.estimators_,
        model.estimators_samples_,
        model.estimators_features_,
        strict=True,
    )
    for number, (part, rows, features) in enumerate(drawn):
        one = given._replace(name=f"estimator {number}", model=part, y=y)
        if has_fit_parameter(part, "sample_weight"):
            counts = np.bincount(rows, minlength=len(y)).astype(float)
            one = one._replace(sample_weight=counts)
        else:
            one = _on_rows(one, rows)
        yield one._replace(X=_safe_indexing(one.X, features, axis=1))


def _calibrated(given: Member) -> Iterator[Member]:
    model = given.model
    parts = [pair.estimator for pair in model.calibrated_classifiers_]
    if len(parts) == 1:
        yield given._replace(name="", model=parts[0])
        return
    folds = check_cv(model.cv, given.y, classifier=True)
    if getattr(folds, "shuffle", False) and not isinstance(folds.random_state, int):
        raise ValueError(
            f"the folds of cv={folds!r} cannot be drawn again; fit "
            f"{type(model).__name__} with an int as random_state of the folds"
        )
    splits = zip(folds.split(given.X, given.y), parts, strict=True)
    for number, ((rows, _), part) in enumerate(splits):
        yield _on_rows(given, rows)._replace(name=f"fold {number}", model=part)


def _on_rows(given: Member, rows: NDArray[np.intp]) -> Member:
    """Return the member on some of its rows."""
    X, y = _safe_split(given.model, given.X, given.y, rows)
    weight = given.sample_weight
    weight = None if weight is None else np.asarray(weight)[rows]
    return given._replace(X=X, y=y, sample_weight=weight)


_SPLITS = {
    OneVsRestClassifier: _one_versus_rest,
    OneVsOneClassifier: _one_versus_one,
    (BaggingClassifier, BaggingRegressor): _bagged,
    CalibratedClassifierCV: _calibrated,
}
