"""A proven bound for models that somebody else has trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn import svm
from sklearn.linear_model import SGDClassifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from .. import core
from ..certificate import Certificate
from ..crammer_singer import CrammerSingerProblem
from ..kernel import BlockSolver, Callable, Gram, KernelProblem, Precomputed
from ..losses import (
    RESIDUAL_LOSSES,
    Loss,
    ResidualLoss,
    SquaredHinge,
    Vector,
    get_loss,
)
from ..problem import Problem
from ..solvers import SequentialDual, get_solver
from ._binary import BinaryProblems, binary_problems, number_of_problems
from ._fitting import N_JOBS, encode, one_or_all, weights
from ._foreign_single import (
    KERNELS_OF_ONE,
    LINEAR_OF_ONE,
    Limits,
    certify_kernel,
    coefficient_terms,
    sharpened,
    single_terms,
)
from .linear_svc import LinearSVC
from .svc import KERNELS, SVC

__all__ = ["certify"]


@dataclass(frozen=True)
class _Linear:
    """Linear models, one per binary problem, and what they were trained to minimise."""

    coef: NDArray[np.float64]  # (problems, d)
    intercept: NDArray[np.float64]  # (problems,)
    C: float | None = None
    loss: str | Loss | None = None
    fit_intercept: bool | None = None
    intercept_scaling: float = 1.0
    penalize_intercept: bool | None = None
    class_weight: Any = None
    classes: NDArray[Any] | None = None
    multi_class: str = "ovr"


@validate_params(  # type: ignore[untyped-decorator]
    {
        "C": [Interval(Real, 0, None, closed="neither"), None],
        "loss": [str, Loss, ResidualLoss, None],
        "epsilon": [Interval(Real, 0, None, closed="left"), None],
        "nu": [Interval(Real, 0, 1, closed="right"), None],
        "penalize_intercept": ["boolean", None],
        "class_weight": [dict, str, None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    },
    prefer_skip_nested_validation=True,
)
def certify(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    C: float | None = None,
    *,
    intercept: ArrayLike | None = None,
    loss: str | Loss | ResidualLoss | None = None,
    epsilon: float | None = None,
    nu: float | None = None,
    penalize_intercept: bool | None = None,
    sample_weight: ArrayLike | None = None,
    class_weight: Any = None,
    tol: float = 1e-3,
    time_limit: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Certificate | list[Certificate]:
    """How far a model is from the optimum of its training problem, at most.

    The primal value is that of the model as it is, the dual value the best that is
    known: from the model's own margins or dual variables or, where these leave more
    than `tol` open, from a fit of this package. Both are computed over the whole data
    in float64, so that the bound holds whatever trained the model.

    Parameters
    ----------
    model : estimator or ndarray of shape (n_features,) or (n_problems, n_features)
        A fitted `LinearSVC`, `SVC`, `SGDClassifier`, `LinearSVR`, `SVR`,
        `SGDRegressor`, `OneClassSVM` or `SGDOneClassSVM` of scikit-learn, a fitted
        estimator of this package, or the coefficients of any linear model: one row, or
        one per class (one versus rest).
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows the model was trained with; the kernel matrix for a precomputed one.
    y : array-like of shape (n_samples,)
        Their labels, the larger of two being the positive class, or their targets. Of
        no concern for one class.
    C : float, optional
        Weight of the loss, the sum over examples. An estimator knows its own (that of
        `SGDClassifier` and `SGDRegressor` is ``1/(alpha n_samples)``). For a mean of
        the losses and ``lambda/2 ||w||^2`` it is ``1/(lambda n_samples)``.
    intercept : float or array-like of shape (n_problems,), optional
        Beside coefficients. Left out, there is none. Of one class it is -rho.
    loss : str or record, optional
        Beside coefficients: "hinge" (what None means), "squared_hinge",
        "smoothed_hinge", for regression "epsilon_insensitive" or
        "squared_epsilon_insensitive", or a record of :mod:`dualgap.losses`.
    epsilon : float, optional
        Beside coefficients of a regression: what residuals cost nothing. None is 0.
    nu : float, optional
        Beside coefficients of a one-class SVM, and what says that it is one; they are
        on the scale of LIBSVM and LIBLINEAR.
    penalize_intercept : bool, optional
        Beside coefficients: whether the intercept is part of the norm, as in LIBLINEAR
        (True) or not, as in the textbook SVM and Spark (False, what None means).
    sample_weight : array-like of shape (n_samples,), optional
        What the model was fitted with.
    class_weight : dict or "balanced", optional
        Beside coefficients; an estimator knows its own.
    tol : float, default=1e-3
        How much the bound may say too much: the dual value is brought within this
        relative distance of the optimum.
    time_limit : float, optional
        Seconds for that. The bound holds if it ends early, but may be loose.
    random_state : int, RandomState instance or None, default=None
        Seed of the fit.
    n_jobs : int, optional
        Threads over the rows.

    Returns
    -------
    Certificate or list of Certificate
        One, or one per class (per pair of classes for `SVC` and one versus one) if
        there are more than two. ``status`` is None, ``relative_gap`` the bound.

    Raises
    ------
    ValueError
        If C is missing, a shape does not fit, a setting contradicts the model's own, or
        the model minimises something else (another loss or penalty).
    TypeError
        If nothing is known about such a model.

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
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    stop = core.Stop()
    if time_limit is not None:
        stop.set_deadline(time_limit)
    given = {
        "intercept": intercept,
        "loss": loss,
        "epsilon": epsilon,
        "nu": nu,
        "penalize_intercept": penalize_intercept,
        "class_weight": class_weight,
    }
    if isinstance(model, (svm.NuSVC, svm.NuSVR)):
        raise ValueError(
            f"{type(model).__name__} minimises another function, in which nu stands "
            "for C or epsilon; train "
            + ("SVC" if isinstance(model, svm.NuSVC) else "SVR")
        )
    limits = Limits(float(tol), seed, stop, n_jobs)
    if isinstance(model, KERNELS_OF_ONE):
        _refuse(given, model)
        check_is_fitted(model)
        _agreed_of_one(C, model)
        kernel = _kernel_of(model)
        return certify_kernel(
            model, _rows_of(model, X, kernel), y, kernel, sample_weight, limits
        )
    if isinstance(model, LINEAR_OF_ONE):
        _refuse(given, model)
        single = single_terms(model, np.shape(X)[0], sample_weight)
        C = _agreed_of_one(C, model, single.C)
        return single.certify(X, y, C, sample_weight, limits)
    if isinstance(loss, ResidualLoss) or loss in RESIDUAL_LOSSES or nu is not None:
        if class_weight is not None:
            raise ValueError(
                f"class_weight={class_weight!r}: there are no classes; use "
                "sample_weight"
            )
        if nu is not None and C is not None:
            raise ValueError(f"C={C!r}: the one-class SVM has none; give nu alone")
        classless = _coefficients(model, intercept, None, None, None)
        if len(classless.coef) != 1:
            raise ValueError(
                f"model: coefficients of shape {classless.coef.shape}; without classes "
                "there is one row"
            )
        return coefficient_terms(
            classless.coef[0],
            None if intercept is None else float(classless.intercept[0]),
            loss,  # type: ignore[arg-type]
            epsilon,
            nu,
            penalize_intercept,
        ).certify(X, y, C, sample_weight, limits)
    if epsilon is not None:
        raise ValueError(
            f"epsilon={epsilon!r} is of regression: give loss='epsilon_insensitive' or "
            "'squared_epsilon_insensitive' too"
        )
    if y is None:
        raise ValueError("y=None: give the labels that the model was trained with")
    del given["epsilon"], given["nu"]
    if isinstance(model, (svm.SVC, SVC)):
        _refuse(given, model)
        return _certify_kernel(model, X, y, C, sample_weight, limits)
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        _refuse(given, model)
        C = _agreed(C, model.C, model)
        return _certify_together(model, X, y, C, sample_weight, limits)
    if isinstance(model, (svm.LinearSVC, SGDClassifier, LinearSVC)):
        _refuse(given, model)
        terms = linear_terms(model, np.shape(X)[0])
        C = _agreed(C, terms.C, model)
    elif hasattr(model, "predict"):
        raise TypeError(
            f"model={model!r}: of this estimator only the coefficients say something; "
            "give model.coef_ with C, intercept, loss and penalize_intercept"
        )
    else:
        terms = _coefficients(model, **given)
    return _certify_linear(terms, X, y, C, sample_weight, limits)


# ------------------------------------------------------------------- linear models


def linear_terms(model: Any, n: int) -> _Linear:
    """Coefficients and problem of an estimator."""
    check_is_fitted(model)
    name = type(model).__name__
    if getattr(model, "penalty", "l2") != "l2":
        raise ValueError(
            f"{name}(penalty={model.penalty!r}): only the squared norm has a "
            "certificate; train with penalty='l2'"
        )
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        raise ValueError(
            f"{name}(multi_class={model.multi_class!r}) is one problem for all "
            "classes; train with multi_class='ovr' or 'ovo'"
        )
    svms = ("hinge", "squared_hinge")
    if not isinstance(model, LinearSVC) and model.loss not in svms:
        raise ValueError(
            f"{name}(loss={model.loss!r}) is no support vector machine; use "
            "loss='hinge' or 'squared_hinge'"
        )
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    bias = np.broadcast_to(np.asarray(model.intercept_, np.float64), len(coef))
    stochastic = isinstance(model, SGDClassifier)
    return _Linear(
        coef=coef,
        intercept=bias,
        C=1.0 / (model.alpha * n) if stochastic else model.C,
        loss=model.loss,
        fit_intercept=model.fit_intercept,
        intercept_scaling=1.0 if stochastic else model.intercept_scaling,
        penalize_intercept=not stochastic
        and getattr(model, "penalize_intercept", True),
        class_weight=model.class_weight,
        classes=model.classes_,
        multi_class=getattr(model, "multi_class", "ovr"),
    )


def _coefficients(
    model: Any,
    intercept: ArrayLike | None,
    loss: Any,
    penalize_intercept: bool | None,
    class_weight: Any,
) -> _Linear:
    """Coefficients as they are, with what the caller says about their problem."""
    try:
        coef = np.atleast_2d(np.asarray(model, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(
            f"model={model!r}: give a fitted SVM, or the coefficients of a linear "
            "model as an array"
        ) from None
    if coef.ndim != 2 or not np.isfinite(coef).all():
        raise ValueError(
            f"model: coefficients of shape {coef.shape} that are not all finite, or "
            "not one row per problem; give (n_features,) or (n_problems, n_features)"
        )
    bias = np.zeros(len(coef)) if intercept is None else intercept
    bias = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    if bias.shape != (len(coef),) or not np.isfinite(bias).all():
        raise ValueError(
            f"intercept={intercept!r}: give {len(coef)} finite numbers, one per row of "
            "the coefficients"
        )
    if intercept is None and penalize_intercept is not None:
        raise ValueError(
            f"penalize_intercept={penalize_intercept!r} without an intercept; give it"
        )
    return _Linear(
        coef=coef,
        intercept=bias,
        loss=loss,
        fit_intercept=intercept is not None,
        penalize_intercept=bool(penalize_intercept) or intercept is None,
        class_weight=class_weight,
    )


def _certify_linear(
    terms: _Linear,
    X: Any,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    limits: Limits,
) -> Certificate | list[Certificate]:
    X = check_array(
        X,
        accept_sparse=["csr", "csc", "coo"],
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,  # Problem looks at every entry once
    )
    certificates = []
    binary = binary_of(terms, X, y, C, sample_weight, limits.n_jobs)
    for problem, w in linear_problems(terms, binary):
        # What the margins suggest is tight for smooth losses, and free.
        proof = problem.certify(w)
        proof = sharpened(proof, problem, get_solver("auto"), limits)
        certificates.append(replace(proof, tol=math.nan))
    return one_or_all(certificates)


def binary_of(
    terms: _Linear,
    X: Any,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    n_jobs: int | None,
) -> BinaryProblems:
    """The binary problems that a linear model is of."""
    classes, codes = _labels(y, X.shape[0], terms.classes)
    expected = (number_of_problems(terms.multi_class, len(classes)), X.shape[1])
    if terms.coef.shape != expected:
        raise ValueError(
            f"model: coefficients of shape {terms.coef.shape}, but {len(classes)} "
            f"classes of {X.shape[1]} features need {expected}"
        )
    weight, factor = weights(terms.class_weight, X, classes, codes, sample_weight)
    return binary_problems(
        terms.multi_class,
        X,
        classes,
        codes,
        weight,
        factor,
        C,
        loss=get_loss(terms.loss or "hinge"),
        fit_intercept=bool(terms.fit_intercept),
        intercept_scaling=terms.intercept_scaling,
        penalize_intercept=terms.penalize_intercept is not False,
        n_jobs=effective_n_jobs(n_jobs),
    )


def linear_problems(
    terms: _Linear, binary: BinaryProblems
) -> Iterator[tuple[Problem, Vector]]:
    """These problems, each with the model's w."""
    for k, coef in enumerate(terms.coef):
        w = coef
        if terms.fit_intercept:
            w = np.append(w, terms.intercept[k] / terms.intercept_scaling)
        yield binary.problem(k), w


def _certify_together(
    model: Any,
    X: Any,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    limits: Limits,
) -> Certificate:
    """A linear model of Crammer and Singer, beside the dual value of a fit."""
    check_is_fitted(model)
    X = check_array(
        X,
        accept_sparse=["csr", "csc", "coo"],
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,  # Problem looks at every entry once
    )
    classes, codes = _labels(y, X.shape[0], model.classes_)
    weight, factor = weights(model.class_weight, X, classes, codes, sample_weight)
    data = Problem(
        X,
        np.ones(X.shape[0]),
        C,
        sample_weight=weight * factor[codes],
        fit_intercept=model.fit_intercept,
        intercept_scaling=model.intercept_scaling,
        n_jobs=effective_n_jobs(limits.n_jobs),
    )
    problem = CrammerSingerProblem(data, codes, len(classes))
    coef, bias = np.asarray(model.coef_, np.float64), np.asarray(model.intercept_)
    bias = np.broadcast_to(bias, len(coef))
    if len(classes) == 2:  # the difference of two, which sum up to 0 at the optimum
        coef, bias = np.vstack([-coef, coef]) / 2, np.concatenate([-bias, bias]) / 2
    if coef.shape != (len(classes), X.shape[1]):
        raise ValueError(
            f"model: coefficients of shape {coef.shape} for {len(classes)} classes of "
            f"{X.shape[1]} features"
        )
    proof = problem.prove(problem.point(coef, bias), None).certificate
    proof = sharpened(proof, problem, SequentialDual(), limits)
    return replace(proof, tol=math.nan)


# ------------------------------------------------------------------- kernel models


def _certify_kernel(
    model: Any,
    X: Any,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    limits: Limits,
) -> Certificate | list[Certificate]:
    """From the model's own dual variables; a pair is brought nearer where they end."""
    certificates = []
    for pair in kernel_pairs(model, X, y, C, sample_weight):
        proof = pair.problem.certify_model(pair.coef, pair.bias)
        proof = proof.with_dual_of(pair.problem.certify(pair.alpha))
        proof = sharpened(proof, pair.problem, BlockSolver(), limits, pair.alpha)
        certificates.append(replace(proof, tol=math.nan))
    return one_or_all(certificates)


class KernelPair(NamedTuple):
    """Two classes of a kernel model: their problem and the model's point."""

    problem: KernelProblem
    coef: Vector  # of the kernel at the rows of the problem
    alpha: Vector  # what of it is a dual point
    bias: float
    classes: tuple[int, int]
    rows: NDArray[np.intp]  # of the training data


def kernel_pairs(
    model: Any,
    X: Any,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
) -> Iterator[KernelPair]:
    """The pairs of classes of a fitted kernel model, one after the other."""
    check_is_fitted(model)
    C = _agreed(C, model.C, model)
    squared = isinstance(model, SVC) and isinstance(get_loss(model.loss), SquaredHinge)
    kernel = _kernel_of(model)
    X = _rows_of(model, X, kernel)
    classes, codes = _labels(y, X.shape[0], model.classes_)
    support = np.asarray(model.support_)
    weight, factor = weights(model.class_weight, X, classes, codes, sample_weight)
    dual_coef = model.dual_coef_
    dual_coef = dual_coef.toarray() if hasattr(dual_coef, "toarray") else dual_coef
    gram = Gram(X, kernel, getattr(model, "cache_size", 200))
    for p, (i, j) in enumerate(combinations(range(len(classes)), 2)):
        rows = np.flatnonzero((codes == i) | (codes == j))
        # The first class of a pair is the positive one, but of two the second.
        first = 1 if len(classes) > 2 else -1
        signs = np.where(codes[rows] == i, first, -first)
        problem = KernelProblem(
            gram,
            signs,
            C,
            loss="squared_hinge" if squared else "hinge",
            sample_weight=(weight * factor[codes])[rows],
            penalize_intercept=squared,
            rows=rows,
        )
        coef = np.zeros(X.shape[0])
        coef[support] = np.where(codes[support] == i, dual_coef[j - 1], dual_coef[i])
        signed: Vector = coef[rows]
        alpha: Vector = np.clip(signed * problem.y, 0.0, problem.upper)
        bias = float(model.intercept_[p])
        yield KernelPair(problem, signed, alpha, bias, (i, j), rows)


def _rows_of(model: Any, X: Any, kernel: Any) -> Any:
    """X, which has to be what the kernel model was trained with."""
    if np.any(np.asarray(model.support_) < 0):
        raise ValueError(
            "model: it came from a file, which does not say what rows its support "
            "vectors were; fit it, or give its coefficients if it is linear"
        )
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
    if X.shape != model.shape_fit_:
        raise ValueError(
            f"X of shape {X.shape}: the model was trained with {model.shape_fit_}, and "
            "its dual variables belong to those rows"
        )
    if not isinstance(kernel, Precomputed) and _differ(
        X[model.support_], model.support_vectors_
    ):
        raise ValueError(
            "X: the model's support vectors are not rows of it; give the rows that the "
            "model was trained with, in their order"
        )
    return X


def _kernel_of(model: Any) -> Any:
    """The record of the model's kernel."""
    if hasattr(model, "_fitted_kernel"):
        return model._fitted_kernel
    if callable(model.kernel):
        return Callable(model.kernel)
    options = {
        "poly": {"degree": model.degree, "gamma": model._gamma, "coef0": model.coef0},
        "rbf": {"gamma": model._gamma},
        "sigmoid": {"gamma": model._gamma, "coef0": model.coef0},
    }
    return KERNELS[model.kernel](**options.get(model.kernel, {}))


# -------------------------------------------------------------------------- shared


def _labels(
    y: ArrayLike, n: int, classes: NDArray[Any] | None
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Classes and the class number of every row."""
    values = column_or_1d(y, warn=True)
    if len(values) != n:
        raise ValueError(f"y has {len(values)} labels, X has {n} rows")
    found, codes = encode(values)
    if classes is not None and not np.array_equal(found, classes):
        raise ValueError(
            f"y holds the classes {found.tolist()}, the model was trained with "
            f"{np.asarray(classes).tolist()}; give the labels it was trained with"
        )
    return found, codes


def _agreed(given: float | None, own: float | None, model: Any) -> float | None:
    if given is not None and given != own:
        raise ValueError(
            f"C={given!r}: {type(model).__name__} was trained with {own!r}; leave C "
            "out, or give the coefficients instead of the estimator"
        )
    return own


def _agreed_of_one(
    given: float | None, model: Any, own: float | None = None
) -> float | None:
    """The same for an estimator that may have no C at all."""
    if "nu" not in model.get_params():
        own = getattr(model, "C", own)
    if own is None and given is not None:
        raise ValueError(f"C={given!r}: {type(model).__name__} has none; leave it out")
    return _agreed(given, own, model)


def _refuse(given: dict[str, Any], model: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r}: {type(model).__name__} knows its own; leave it "
                "out, or give the coefficients instead of the estimator"
            )


def _differ(rows: Any, others: Any) -> bool:
    """Whether two matrices, both dense or both sparse or one of each, differ."""
    if rows.shape != others.shape:
        return True
    difference = rows - others
    size = abs(rows).max() if rows.shape[0] else 0.0
    largest = abs(difference).max() if rows.shape[0] else 0.0
    return bool(largest > 1e-6 * size)
