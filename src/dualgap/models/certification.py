"""Proven bounds for models that were trained by any package."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import SGDClassifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from .. import core
from ..certificate import Certificate
from ..estimators import originals as svm
from ..estimators.fitting import N_JOBS, encode, weights
from ..estimators.linear_svc import LinearSVC
from ..estimators.meta import unwrap
from ..estimators.svc import KERNELS, SVC
from ..kernel import (
    BlockSolver,
    Callable,
    Gram,
    KernelPegasos,
    KernelProblem,
    KernelSolver,
    Precomputed,
)
from ..losses import (
    RESIDUAL_LOSSES,
    Loss,
    ResidualLoss,
    SquaredHinge,
    Vector,
    get_loss,
)
from ..problems.base import Claim
from ..problems.binary import BinaryProblem
from ..problems.crammer_singer import CrammerSingerProblem
from ..problems.multiclass import (
    BinaryProblems,
    binary_problems,
    certificate_of,
    number_of_problems,
)
from ..solvers import solver_for
from .single_problems import (
    KERNELS_OF_ONE,
    LINEAR_OF_ONE,
    Limits,
    certify_kernel,
    coefficient_terms,
    sharpened,
    single_terms,
)

__all__ = ["certify"]

# Subclasses may stand in their places later: dualgap.patch_sklearn.
_SVC, _LinearSVC = svm.SVC, svm.LinearSVC


@dataclass(frozen=True)
class _Linear:
    """Linear models, one per binary problem, and the problem they were trained on."""

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
) -> Certificate:
    """Bound how far a trained model is from the optimum of its training problem.

    The primal value is the objective of the given model. The dual value comes from the
    model's own margins or dual variables and, if these leave a gap above `tol`, from a
    fit of dualgap. Both are computed over all rows in float64, so the bound holds
    whatever trained the model.

    Parameters
    ----------
    model : estimator or ndarray of shape (n_features,) or (n_problems, n_features)
        A fitted `LinearSVC`, `SVC`, `SGDClassifier`, `LinearSVR`, `SVR`,
        `SGDRegressor`, `OneClassSVM` or `SGDOneClassSVM` of scikit-learn, a fitted
        estimator of dualgap, or the coefficients of any linear model: one row, or one
        per class (one versus the rest).
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training rows; with a precomputed kernel, the kernel matrix.
    y : array-like of shape (n_samples,)
        The training labels or targets. With two labels, the larger one is the positive
        class. Ignored for one-class models.
    C : float, optional
        Weight of the loss, which is summed over the rows. Estimators have their own C;
        for `SGDClassifier` and `SGDRegressor` it is ``1/(alpha n_samples)``. If the
        objective is the mean loss plus ``lambda/2 ||w||^2``, C is
        ``1/(lambda n_samples)``.
    intercept : float or array-like of shape (n_problems,), optional
        Intercept that belongs to given coefficients; None if there is none. For a
        one-class SVM it is -rho.
    loss : str or record, optional
        Loss that belongs to given coefficients: "hinge" (the default),
        "squared_hinge", "smoothed_hinge", for regression "epsilon_insensitive" or
        "squared_epsilon_insensitive", or a record of :mod:`dualgap.losses`.
    epsilon : float, optional
        For coefficients of a regression model: residuals up to `epsilon` cost nothing.
        None means 0.
    nu : float, optional
        For coefficients of a one-class SVM, on the scale of LIBSVM and LIBLINEAR.
        If `nu` is given, the coefficients are taken for a one-class SVM.
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
    random_state : int, RandomState instance or None, default=None
        Seed of the fit.
    n_jobs : int, optional
        Threads over the rows.

    Returns
    -------
    Certificate
        ``relative_gap`` is the bound, and ``status`` is None. With more than two
        classes, ``parts`` has one certificate per class (per pair of classes for `SVC`
        and one versus one).

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
    model, X = unwrap(model, X)
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
    limits = Limits(float(tol), seed, stop, n_jobs)
    found = _certify(model, X, y, C, given, sample_weight, limits)
    known = getattr(model, "certificate_", None)
    if isinstance(known, Certificate) and (moved := other_objective(known, found)):
        now, before = moved
        warnings.warn(
            "X and y are not the rows that the model was trained on: its objective is "
            f"{now:.6g} there, and was {before:.6g} in training. The certificate is "
            "about the rows given.",
            stacklevel=3,
        )
    return found


def other_objective(
    before: Certificate, now: Certificate
) -> tuple[float, float] | None:
    """Return the objective of a model now and in training where they must differ.

    Parameters
    ----------
    before, now : Certificate
        Of one model, on the rows that it was trained on and on other rows.
    """
    for old, new in zip(before.parts, now.parts, strict=True):
        slack = 1e-6 * abs(old.primal) + old.rounding + new.rounding
        known = math.isfinite(old.primal) and not old.about
        if known and abs(new.primal - old.primal) > slack:
            return new.primal, old.primal
    return None


def _certify(
    model: Any,
    X: Any,
    y: ArrayLike | None,
    C: float | None,
    given: dict[str, Any],
    sample_weight: ArrayLike | None,
    limits: Limits,
) -> Certificate:
    loss, epsilon, nu = given["loss"], given["epsilon"], given["nu"]
    if isinstance(model, (svm.NuSVC, svm.NuSVR)):
        raise ValueError(
            f"{type(model).__name__} cannot be certified, because nu replaces C or "
            "epsilon in its objective; train "
            + ("SVC" if isinstance(model, svm.NuSVC) else "SVR")
        )
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
        if (class_weight := given["class_weight"]) is not None:
            raise ValueError(
                f"class_weight={class_weight!r} needs classes, but this model has none;"
                " use sample_weight"
            )
        if nu is not None and C is not None:
            raise ValueError(
                f"C={C!r} does not apply to a one-class SVM; leave it out, and give nu"
            )
        intercept = given["intercept"]
        classless = _coefficients(model, intercept, None, None, None)
        if len(classless.coef) != 1:
            raise ValueError(
                f"model has coefficients of shape {classless.coef.shape}; a model "
                "without classes needs one row"
            )
        return coefficient_terms(
            classless.coef[0],
            None if intercept is None else float(classless.intercept[0]),
            loss,
            epsilon,
            nu,
            given["penalize_intercept"],
        ).certify(X, y, C, sample_weight, limits)
    if epsilon is not None:
        raise ValueError(
            f"epsilon={epsilon!r} is for regression; also give "
            "loss='epsilon_insensitive' or 'squared_epsilon_insensitive'"
        )
    if y is None:
        raise ValueError("y is missing; give the labels of the training rows")
    del given["epsilon"], given["nu"]
    if isinstance(model, (_SVC, SVC)):
        _refuse(given, model)
        return _certify_kernel(model, X, y, C, sample_weight, limits)
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        _refuse(given, model)
        C = _agreed(C, model.C, model)
        return _certify_together(model, X, y, C, sample_weight, limits)
    if isinstance(model, (_LinearSVC, SGDClassifier, LinearSVC)):
        _refuse(given, model)
        terms = linear_terms(model, np.shape(X)[0])
        C = _agreed(C, terms.C, model)
    elif hasattr(model, "predict"):
        raise TypeError(
            f"model={model!r} does not minimise the objective of an SVM, so there is "
            "nothing to bound; give an SVM of scikit-learn or dualgap, alone or in a "
            "pipeline or search, or the coefficients of a linear SVM as an array"
        )
    else:
        terms = _coefficients(model, **given)
    return _certify_linear(terms, X, y, C, sample_weight, limits)


# ------------------------------------------------------------------- linear models


def linear_terms(model: Any, n: int) -> _Linear:
    """Return coefficients and training problem of a linear classifier.

    Raises
    ------
    ValueError
        If the model minimises an objective that has no certificate here.
    """
    check_is_fitted(model)
    name = type(model).__name__
    if getattr(model, "penalty", "l2") != "l2":
        raise ValueError(
            f"{name}(penalty={model.penalty!r}) cannot be certified; train with "
            "penalty='l2'"
        )
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        raise ValueError(
            f"{name}(multi_class={model.multi_class!r}) is not supported here; train "
            "with multi_class='ovr' or 'ovo'"
        )
    svms = ("hinge", "squared_hinge")
    if not isinstance(model, LinearSVC) and model.loss not in svms:
        raise ValueError(
            f"{name}(loss={model.loss!r}) is not a support vector machine; train with "
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
    """Return given coefficients together with the problem that the caller describes.

    Raises
    ------
    TypeError
        If `model` is not an array.
    ValueError
        If a shape does not match, or a value is not finite.
    """
    try:
        coef = np.atleast_2d(np.asarray(model, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(
            f"model={model!r} is not supported; give a fitted SVM, or the "
            "coefficients of a linear model as an array"
        ) from None
    if coef.ndim != 2:
        raise ValueError(
            f"model has coefficients of shape {coef.shape}; give (n_features,) or "
            "(n_problems, n_features)"
        )
    if not np.isfinite(coef).all():
        raise ValueError("model has coefficients that are not finite; train it again")
    bias = np.zeros(len(coef)) if intercept is None else intercept
    bias = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    if bias.shape != (len(coef),) or not np.isfinite(bias).all():
        raise ValueError(
            f"intercept={intercept!r} does not match the coefficients; give one finite "
            f"number per row, {len(coef)} in all"
        )
    if intercept is None and penalize_intercept is not None:
        raise ValueError(
            f"penalize_intercept={penalize_intercept!r} needs an intercept; give "
            "intercept, or leave penalize_intercept out"
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
) -> Certificate:
    X = check_array(
        X,
        accept_sparse=["csr", "csc", "coo"],
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,  # BinaryProblem checks every entry
    )
    parts = []
    binary = binary_of(terms, X, y, C, sample_weight, limits.n_jobs)
    for problem, w in linear_problems(terms, binary):
        # The dual point from the margins costs no fit, and is tight for smooth losses.
        proof = problem.certify(w)
        proof = sharpened(proof, problem, solver_for(problem), limits)
        parts.append(replace(proof, tol=math.nan))
    return Certificate.total(parts, binary.names)


def binary_of(
    terms: _Linear,
    X: Any,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    n_jobs: int | None,
) -> BinaryProblems:
    """Return the binary problems that a linear model was trained on.

    Raises
    ------
    ValueError
        If the shape of the coefficients does not match the data.
    """
    classes, codes = _labels(y, X.shape[0], terms.classes)
    expected = (number_of_problems(terms.multi_class, len(classes)), X.shape[1])
    if terms.coef.shape != expected:
        raise ValueError(
            f"model has coefficients of shape {terms.coef.shape}, but {len(classes)} "
            f"classes and {X.shape[1]} features need {expected}; give the training data"
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
) -> Iterator[tuple[BinaryProblem, Vector]]:
    """Yield every binary problem with the model's w."""
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
    """Certify a linear model of Crammer and Singer, with the dual value of a fit."""
    check_is_fitted(model)
    X = check_array(
        X,
        accept_sparse=["csr", "csc", "coo"],
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,  # BinaryProblem checks every entry
    )
    classes, codes = _labels(y, X.shape[0], model.classes_)
    weight, factor = weights(model.class_weight, X, classes, codes, sample_weight)
    data = BinaryProblem(
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
    if len(classes) == 2:  # one row, w1 - w0; at the optimum w0 + w1 = 0
        coef, bias = np.vstack([-coef, coef]) / 2, np.concatenate([-bias, bias]) / 2
    if coef.shape != (len(classes), X.shape[1]):
        raise ValueError(
            f"model has coefficients of shape {coef.shape}, but {len(classes)} classes "
            f"and {X.shape[1]} features need {(len(classes), X.shape[1])}; give the "
            "training data"
        )
    proof = problem.prove(Claim(problem.point(coef, bias))).certificate
    proof = sharpened(proof, problem, solver_for(problem), limits)
    return replace(proof, tol=math.nan)


# ------------------------------------------------------------------- kernel models


def _certify_kernel(
    model: Any,
    X: Any,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    limits: Limits,
) -> Certificate:
    """Certify a kernel model from its dual variables, or a fit that starts there."""
    parts = []
    for pair in kernel_pairs(model, X, y, C, sample_weight):
        proof = pair.problem.certify_model(pair.coef, pair.bias)
        proof = proof.with_dual_of(pair.problem.certify(pair.alpha))
        solver = _solver_of(pair.problem)
        if solver is not None:
            warm = pair.alpha if solver.dual else None
            proof = sharpened(proof, pair.problem, solver, limits, warm)
        parts.append(replace(proof, tol=math.nan))
    return certificate_of(model, parts)


def _solver_of(problem: KernelProblem) -> KernelSolver | None:
    """Return a solver that can train a kernel problem; None if there is none."""
    for solver in (BlockSolver(), KernelPegasos()):
        with contextlib.suppress(ValueError):
            solver.check(problem)
            return solver
    return None


class KernelPair(NamedTuple):
    """Problem of a pair of classes of a kernel model, and the model's solution."""

    problem: KernelProblem
    coef: Vector  # coefficients of the kernel at the rows of the problem
    alpha: Vector  # the coefficients clipped to the box: a dual point
    bias: float
    classes: tuple[int, int]
    rows: NDArray[np.intp]  # indices into the training data


def kernel_pairs(
    model: Any,
    X: Any,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
) -> Iterator[KernelPair]:
    """Yield the pairs of classes of a fitted kernel model."""
    check_is_fitted(model)
    C = _agreed(C, model.C, model)
    squared = isinstance(model, SVC) and isinstance(get_loss(model.loss), SquaredHinge)
    kind_of_bias: dict[str, Any] = {"penalize_intercept": False}
    if isinstance(model, SVC):
        kind_of_bias = model._bias_of_problems()
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
        # The first class of a pair is positive; with only two classes, the second is.
        first = 1 if len(classes) > 2 else -1
        signs = np.where(codes[rows] == i, first, -first)
        problem = KernelProblem(
            gram,
            signs,
            C,
            loss="squared_hinge" if squared else "hinge",
            sample_weight=(weight * factor[codes])[rows],
            rows=rows,
            **kind_of_bias,
        )
        coef = np.zeros(X.shape[0])
        coef[support] = np.where(codes[support] == i, dual_coef[j - 1], dual_coef[i])
        signed: Vector = coef[rows]
        alpha: Vector = np.clip(signed * problem.y, 0.0, problem.upper)
        bias = float(model.intercept_[p])
        yield KernelPair(problem, signed, alpha, bias, (i, j), rows)


def _rows_of(model: Any, X: Any, kernel: Any) -> Any:
    """Return X after checking that the kernel model was trained on these rows.

    Raises
    ------
    ValueError
        If the model does not know its training rows, or X differs from them.
    """
    if np.any(np.asarray(model.support_) < 0):
        raise ValueError(
            "model was read from a file that does not name its training rows; fit it "
            "again, or give its coefficients if it is linear"
        )
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
    if X.shape != model.shape_fit_:
        raise ValueError(
            f"X has shape {X.shape}, but the model was trained with shape "
            f"{model.shape_fit_}; give the training rows"
        )
    if not isinstance(kernel, Precomputed) and _differ(
        X[model.support_], model.support_vectors_
    ):
        raise ValueError(
            "X does not contain the model's support vectors; give the training rows, "
            "in the same order"
        )
    return X


def _kernel_of(model: Any) -> Any:
    """Return the record of the model's kernel."""
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
    """Return the classes, and the index of every row's class.

    Raises
    ------
    ValueError
        If y has another length or other classes than the model.
    """
    values = column_or_1d(y, warn=True)
    if len(values) != n:
        raise ValueError(
            f"y has {len(values)} labels, but X has {n} rows; give one label per row"
        )
    found, codes = encode(values)
    if classes is not None and not np.array_equal(found, classes):
        raise ValueError(
            f"y has the classes {found.tolist()}, but the model was trained with "
            f"{np.asarray(classes).tolist()}; give the training labels"
        )
    return found, codes


def _agreed(given: float | None, own: float | None, model: Any) -> float | None:
    if given is not None and given != own:
        raise ValueError(
            f"C={given!r} contradicts {type(model).__name__}, which was trained with "
            f"C={own!r}; leave C out, or give the coefficients instead"
        )
    return own


def _agreed_of_one(
    given: float | None, model: Any, own: float | None = None
) -> float | None:
    """Return the C of an estimator that may have none, if the given C agrees."""
    if "nu" not in model.get_params():
        own = getattr(model, "C", own)
    if own is None and given is not None:
        raise ValueError(
            f"C={given!r} does not apply to {type(model).__name__}; leave it out"
        )
    return _agreed(given, own, model)


def _refuse(given: dict[str, Any], model: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} is not for estimators: {type(model).__name__} has "
                "its own; leave it out, or give the coefficients instead"
            )


def _differ(rows: Any, others: Any) -> bool:
    """Whether two matrices, dense or sparse, differ by more than rounding."""
    if rows.shape != others.shape:
        return True
    difference = rows - others
    size = abs(rows).max() if rows.shape[0] else 0.0
    largest = abs(difference).max() if rows.shape[0] else 0.0
    return bool(largest > 1e-6 * size)
