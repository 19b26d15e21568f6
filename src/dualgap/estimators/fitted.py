"""Problems of a fitted model, and the model as a claim about each of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, is_outlier_detector
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from ..certificate import Certificate
from ..data.types import Matrix, MatrixLike, ProblemLabel
from ..kernel import (
    Callable,
    Gram,
    KernelOneClass,
    KernelProblem,
    KernelRegression,
    Precomputed,
)
from ..kernels.functions import Kernel, takes_items
from ..losses import (
    RESIDUAL_LOSSES,
    Loss,
    Pinball,
    ResidualLoss,
    Vector,
    get_loss,
)
from ..problems.base import Claim, Problem
from ..problems.batch import LinearBatch
from ..problems.binary import BinaryProblem
from ..problems.duals import Table, dense_table, expanded
from ..problems.elastic_net import l1_ratio_of, with_l1
from ..problems.hard_margin import hard_margin
from ..problems.kernel import Bias
from ..problems.kernel_boxes import BoxProblem
from ..problems.kernel_nu import NuClassification, NuRegression
from ..problems.reductions import OneVsOne, has_labels, reduction_of
from ..problems.regression import RegressionProblem
from ..solvers import solver_for
from ..training import solve
from . import originals
from .input import check_array, checked_weights, encode, multilabelled, weights
from .parameters import kernel_named


@dataclass(frozen=True)
class FittedProblem:
    """One problem of a fitted model, and what the model claims about it."""

    problem: Any
    #: The model: its w or, for a kernel, the factors of the kernel at the rows.
    w: Vector
    #: Its dual variables, shape (n_duals,); None if it has none.
    alpha: Vector | None
    #: Rows of the problem, as indices into the training data.
    rows: NDArray[np.intp]
    #: The positive class, or the pair of classes; None without classes.
    label: ProblemLabel | None = None
    #: Bias of a kernel model.
    bias: float = 0.0
    #: Whether the model is of C = inf, and the problem of a finite C.
    hard: bool = False

    def certificate(self) -> Certificate:
        """Prove the model as it is; a kernel model has no dual value yet."""
        found: Certificate
        if self.hard:
            found = hard_margin(self.problem, self.w, self.bias)[1].certificate
        elif isinstance(self.problem, (KernelProblem, BoxProblem)):
            found = self.problem.certify_model(self.w, self.bias)
        elif isinstance(self.problem, BinaryProblem):
            found = self.problem.certify(self.w)
        else:
            found = self.problem.prove(Claim(self.w)).certificate
        return found

    def duals(self, tol: float) -> Vector:
        """Return dual variables that prove w within `tol`, from a fit if they must."""
        proof = self.problem.prove(Claim(self.w, self.alpha))
        if proof.certificate.relative_gap <= tol:
            return proof.alpha
        problem: Problem = self.problem
        return solve(problem, solver_for(problem), tol=tol, random_state=0).alpha


# ---------------------------------------------------------------------------- linear


@dataclass(frozen=True)
class LinearTerms:
    """Linear models, one per binary problem, and the problem they were trained on."""

    coef: NDArray[np.float64]  # (problems, d)
    intercept: NDArray[np.float64]  # (problems,)
    C: float | None = None
    loss: str | Loss | None = None
    fit_intercept: bool | None = None
    intercept_scaling: float = 1.0
    penalize_intercept: bool | None = None
    class_weight: Any = None
    classes: NDArray[np.generic] | None = None
    multi_class: str = "ovr"
    #: Share of the L1 norm in the penalty.
    l1_ratio: float = 0.0


def terms_of_linear(model: BaseEstimator) -> LinearTerms:
    """Return coefficients and parameters of a fitted linear classifier."""
    check_is_fitted(model)
    coef = np.atleast_2d(np.asarray(dense_table(model.coef_), np.float64))
    multi_class = getattr(model, "multi_class", "ovr")
    if has_labels(model):
        multi_class = "labels"
    return LinearTerms(
        coef=coef,
        intercept=np.broadcast_to(np.asarray(model.intercept_, np.float64), len(coef)),
        C=getattr(model, "C", None),
        # scikit-learn ignores the loss of Crammer and Singer's problem.
        loss="hinge" if multi_class == "crammer_singer" else model.loss,
        fit_intercept=model.fit_intercept,
        intercept_scaling=getattr(model, "intercept_scaling", 1.0),
        penalize_intercept=getattr(model, "penalize_intercept", True),
        class_weight=model.class_weight,
        classes=model.classes_,
        multi_class=multi_class,
        l1_ratio=l1_ratio_of(model),
    )


def binary_of(
    terms: LinearTerms,
    X: MatrixLike,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    n_jobs: int | None,
    copies: bool = True,
    hard: bool = False,
) -> LinearBatch:
    """Return the problems that a linear classifier was trained on.

    Problems of pairs have copies of the rows of their classes or, if `copies` is False,
    all rows, where rows of other classes have weight 0. All columns stay: a model from
    elsewhere may have weights for empty ones. `hard`: as for :func:`kernel_pairs`.
    """
    if terms.multi_class == "labels":
        check_consistent_length(X, y)
        data = multilabelled(terms.class_weight, X, y, sample_weight)
        weight, factor = data.weight, data.factor
        classes, codes = data.classes, data.codes
        reduction = reduction_of(terms.multi_class, len(classes), data.table)
    else:
        classes, codes = labels_of(y, X.shape[0], terms.classes)
        reduction = reduction_of(terms.multi_class, len(classes))
        weight, factor = weights(terms.class_weight, X, classes, codes, sample_weight)
    tables = reduction.tables if terms.multi_class == "crammer_singer" else 0
    rows = tables if tables > 2 else len(reduction)
    expected = (rows, X.shape[1])
    if terms.coef.shape != expected:
        raise ValueError(
            f"model has coefficients of shape {terms.coef.shape}, but {len(classes)} "
            f"classes and {X.shape[1]} features need {expected}; give the training data"
        )
    loss = get_loss(terms.loss or "hinge")
    if hard:
        C = 2.0 * float((terms.coef**2).sum(axis=1).max()) or 1.0
        loss, factor = get_loss("hinge"), np.sign(factor)
        weight = None if weight is None else np.sign(weight)
    batch = LinearBatch(
        X,
        classes if terms.classes is None else terms.classes,  # names of labels
        codes,
        reduction,
        weight,
        factor,
        C,
        copies=copies,
        narrow=False,
        loss=loss,
        fit_intercept=bool(terms.fit_intercept),
        intercept_scaling=terms.intercept_scaling,
        penalize_intercept=terms.penalize_intercept is not False,
        n_jobs=effective_n_jobs(n_jobs),
    )
    return batch if terms.l1_ratio == 0.0 else with_l1(batch, terms.l1_ratio)


def linear_problems(
    terms: LinearTerms,
    batch: LinearBatch,
    table: Table | None = None,
    hard: bool = False,
) -> Iterator[FittedProblem]:
    """Yield the problems of a linear classifier with its models.

    `table` has the dual variables of all rows, if they are known. `hard`: as for
    :func:`binary_of`.
    """
    coef, bias = terms.coef, terms.intercept
    points = list(zip(coef, bias, strict=True))
    if batch.joint and len(coef) == 1:  # w1 - w0; at the optimum w0 + w1 = 0
        coef, bias = np.vstack([-coef, coef]) / 2, np.concatenate([-bias, bias]) / 2
    if batch.joint:
        points = [(coef, bias)]
    for k, (own, intercept) in enumerate(points):
        problem = batch.problem(k)
        w = problem.point(np.ascontiguousarray(own), intercept)
        alpha = None if table is None else batch.duals(table, k)
        rows, label = batch.place(k), batch.label(k)
        yield FittedProblem(problem, w, alpha, rows, label, hard=hard)


def table_of(model: BaseEstimator, n: int) -> Table | None:
    """Return the stored dual variables of all rows, (tables, n); None without any."""
    if not hasattr(model, "dual_coef_"):
        return None
    if n != model._n_rows:
        raise ValueError(
            f"X has {n} rows, but the model was trained on {model._n_rows}; give the "
            "training rows, in the same order"
        )
    return expanded(model.dual_coef_, model.support_, n)


@dataclass(frozen=True)
class SingleTerms:
    """Linear regression or one-class model, and the problem it was trained on."""

    coef: Vector
    bias: float  # -rho for one class
    C: float | None = None
    loss: ResidualLoss | None = None  # None: one class
    nu: float | None = None
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    penalize_intercept: bool = False
    scale: float = 1.0  # factor that brings a one-class model to LIBSVM's scale

    def regression(
        self,
        X: MatrixLike,
        y: ArrayLike | None,
        C: float | None,
        sample_weight: ArrayLike | None,
        n_jobs: int | None,
        alpha: Vector | None = None,
    ) -> FittedProblem:
        """Return the regression problem with a penalised bias, and the model."""
        problem = RegressionProblem(
            X,
            targets(y, X.shape[0]),
            C,
            loss=self.loss or "epsilon_insensitive",
            sample_weight=checked_weights(sample_weight, X),
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            n_jobs=effective_n_jobs(n_jobs),
        )
        w = problem.point(self.coef, self.bias)
        return FittedProblem(problem, w, alpha, np.arange(X.shape[0]))


def losses_of(model: BaseEstimator) -> list[ResidualLoss]:
    """Return the losses of a regressor: one, or one for each quantile."""
    name = getattr(model, "loss", "epsilon_insensitive")
    given = getattr(model, "quantile", 0.5)
    if name != "quantile":
        if np.size(given) != 1 or given != 0.5:
            raise ValueError(
                f"quantile={given!r} has no effect with loss={name!r}; use "
                "loss='quantile'"
            )
        return [RESIDUAL_LOSSES[name](model.epsilon)]
    quantiles = np.asarray(given)
    if quantiles.ndim > 1 or (quantiles.size and quantiles.dtype.kind not in "fiu"):
        raise ValueError(
            f"quantile={given!r} is not a number or a list of numbers; for example, "
            "quantile=[0.1, 0.9]"
        )
    if not quantiles.size:
        raise ValueError(
            f"quantile={given!r} has no value; give one, such as quantile=0.5"
        )
    values = quantiles.ravel().tolist()
    if len(set(values)) < len(values):
        raise ValueError(f"quantile={given!r} has a value twice; give each once")
    return [Pinball(q) for q in values]


def terms_of_regression(model: BaseEstimator) -> list[SingleTerms]:
    """Return coefficients and parameters of a fitted linear regressor, by loss."""
    check_is_fitted(model)
    losses = losses_of(model)
    coef = np.asarray(model.coef_, np.float64).reshape(len(losses), -1)
    bias = np.ravel(model.intercept_) if model.fit_intercept else [0.0] * len(losses)
    return [
        SingleTerms(
            row,
            float(own),
            C=getattr(model, "C", None),
            loss=loss,
            fit_intercept=bool(model.fit_intercept),
            intercept_scaling=float(getattr(model, "intercept_scaling", 1.0)),
            penalize_intercept=True,
        )
        for row, own, loss in zip(coef, bias, losses, strict=True)
    ]


# --------------------------------------------------------------------------- kernels


def kernel_pairs(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    whole: bool = False,
    used: bool = False,
    hard: bool = False,
) -> Iterator[FittedProblem]:
    """Yield the pairs of classes of a fitted kernel classifier.

    Their problems have the rows of their classes or, with `whole`, all rows, where rows
    of other classes have weight 0. With `used`, they leave out rows that have neither a
    weight nor a coefficient, as fits do. With `hard`, their finite C is above the dual
    variables of a hard margin, which add up to twice its optimum, and weights are 1.
    """
    check_is_fitted(model)
    loss, kind_of_bias = "hinge", Bias(penalize_intercept=False)
    if hasattr(model, "_bias_of_problems"):
        loss, kind_of_bias = model.loss, model._bias_of_problems()
    X, kernel = rows_of(model, X, sample_weight)
    classes, codes = labels_of(y, X.shape[0], model.classes_)
    class_weight = model.class_weight
    if isinstance(model, originals.NuSVC):
        class_weight = None  # scikit-learn's ignores it
    elif hasattr(model, "class_weight_"):  # scikit-learn's "balanced" counts no weights
        class_weight = dict(zip(classes.tolist(), model.class_weight_, strict=True))
    weight, factor = weights(class_weight, X, classes, codes, sample_weight)
    reduction = OneVsOne(len(classes), libsvm=True)
    table = _kernel_table(model, X.shape[0], reduction.tables, sample_weight)
    gram = Gram(X, kernel, getattr(model, "cache_size", 200))
    weight = np.ones(len(codes)) if weight is None else weight
    labels = reduction.labels(classes)
    for k, pair in enumerate(reduction.subjects):
        costs = reduction.weights(codes, k, weight, factor)
        coef = reduction.entries(table, codes, k)
        C = getattr(model, "C", 1.0)
        if hard:
            C, costs = 2.0 * float(np.abs(coef).sum()) or 1.0, np.sign(costs)
        rows = np.arange(len(codes))
        if used:
            rows = _in_use(costs, coef, np.isin(codes, pair))
        elif not whole:
            rows = np.flatnonzero(np.isin(codes, pair))
        signs = reduction.signs(codes[rows], k)
        own, signed = costs[rows], coef[rows]
        problem: KernelProblem | NuClassification
        if "nu" in model.get_params(deep=False):
            problem = NuClassification(
                gram, signs, model.nu, sample_weight=own, rows=rows
            )
            alpha = problem.duals_of(signed)
        else:
            problem = KernelProblem(
                gram,
                signs,
                C,
                loss=loss,
                sample_weight=own,
                rows=rows,
                **kind_of_bias,
            )
            alpha = np.clip(signed * problem.y, 0.0, problem.upper)
        bias = float(model.intercept_[k])
        yield FittedProblem(problem, signed, alpha, rows, labels[k], bias, hard)


def single_kernel(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    used: bool = False,
) -> list[FittedProblem]:
    """Return the problems of a fitted kernel model without classes, and the model.

    With `used`, they leave out rows that have neither a weight nor a coefficient.
    """
    X, kernel = rows_of(model, X, sample_weight)
    n, weight = X.shape[0], checked_weights(sample_weight, X)
    gram = Gram(X, kernel, getattr(model, "cache_size", 200))
    coef = _kernel_table(model, n, len(model.intercept_), sample_weight)
    of_one_class = is_outlier_detector(model)
    values = None if of_one_class else targets(y, n)
    rows, some = np.arange(n), None
    if used and weight is not None:
        rows = some = _in_use(weight, np.abs(coef).max(axis=0), np.ones(n, bool))
        weight, coef = weight[rows], coef[:, rows]
        values = None if values is None else values[rows]
    problems: Sequence[KernelOneClass | KernelRegression | NuRegression]
    if values is None:
        problems = [KernelOneClass(gram, model.nu, sample_weight=weight, rows=some)]
    elif "nu" in model.get_params(deep=False):
        problems = [
            NuRegression(
                gram, values, model.C, model.nu, sample_weight=weight, rows=some
            )
        ]
    else:
        problems = [
            KernelRegression(
                gram, values, model.C, loss=loss, sample_weight=weight, rows=some
            )
            for loss in losses_of(model)
        ]
    return [
        FittedProblem(
            problem,
            own,
            np.clip(own, problem.lower, problem.upper),
            rows,
            bias=float(bias),
        )
        for problem, own, bias in zip(problems, coef, model.intercept_, strict=True)
    ]


def _in_use(costs: Vector, coef: Vector, others: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the rows with a weight or a coefficient; the `others` if there are none.

    The rest may make the kernel matrix indefinite.
    """
    used = (costs > 0.0) | (coef != 0.0)
    return np.flatnonzero(used if used.any() else others)


def _kernel_table(
    model: BaseEstimator, n: int, tables: int, sample_weight: ArrayLike | None
) -> Vector:
    """Return the coefficients of all rows, (tables, n)."""
    table, support = np.zeros((tables, n)), support_of(model, sample_weight)
    own = model.dual_coef_
    if len(support):  # scikit-learn has one row else, after a fit of sparse rows
        table[:, support] = own.toarray() if hasattr(own, "toarray") else own
    return table


def support_of(
    model: BaseEstimator, sample_weight: ArrayLike | None
) -> NDArray[np.intp]:
    """Return the training rows that are the support vectors of a kernel model.

    LIBSVM numbers them among the rows of positive weight, and scikit-learn keeps its
    numbers. Models of dualgap count all rows.
    """
    support = np.asarray(model.support_)
    own = hasattr(model, "_fitted_kernel") or hasattr(model, "certificate_")
    if sample_weight is None or own:
        return support
    return np.flatnonzero(np.asarray(sample_weight) > 0.0)[support]


def rows_of(
    model: BaseEstimator, X: MatrixLike, sample_weight: ArrayLike | None
) -> tuple[Matrix, Kernel]:
    """Return X and its kernel, after checking that the model was trained on these rows.

    It is the kernel matrix where a kernel function takes other objects than rows of
    numbers, or the model does not keep its support vectors.
    """
    if np.any(np.asarray(model.support_) < 0):
        raise ValueError(
            "model was read from a file that does not name its training rows; fit it "
            "again, or give its coefficients if it is linear"
        )
    kernel, kept = kernel_of(model), hasattr(model, "_fitted_kernel")
    if isinstance(kernel, Callable) and (takes_items(kernel, X) or not kept):
        if _num_samples(X) != model.shape_fit_[0]:
            raise ValueError(
                f"X has {_num_samples(X)} rows, but the model was trained on "
                f"{model.shape_fit_[0]}; give the training rows"
            )
        return kernel.values(X, X), Precomputed()
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
    if X.shape != model.shape_fit_:
        raise ValueError(
            f"X has shape {X.shape}, but the model was trained with shape "
            f"{model.shape_fit_}; give the training rows"
        )
    if not isinstance(kernel, Precomputed) and _differ(
        X[support_of(model, sample_weight)], model.support_vectors_
    ):
        raise ValueError(
            "X does not contain the model's support vectors; give the training rows, "
            "in the same order"
        )
    return X, kernel


def kernel_of(model: BaseEstimator) -> Kernel:
    """Return the record of the model's kernel."""
    if hasattr(model, "_fitted_kernel"):
        return model._fitted_kernel
    if callable(model.kernel):
        return Callable(model.kernel)
    return kernel_named(model.kernel, model.degree, model._gamma, model.coef0)


# ---------------------------------------------------------------------- training data


def labels_of(
    y: ArrayLike, n: int, classes: NDArray[np.generic] | None
) -> tuple[NDArray[np.generic], NDArray[np.intp]]:
    """Return the classes, and the index of every row's class."""
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


def targets(y: ArrayLike | None, n: int) -> Vector:
    """Return the targets as float64, shape (n,)."""
    if y is None:
        raise ValueError("y is missing; give the targets of the training rows")
    values = column_or_1d(y, warn=True)
    if len(values) != n:
        raise ValueError(
            f"y has {len(values)} targets, but X has {n} rows; give one target per row"
        )
    try:
        found: Vector = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"y has dtype {values.dtype}; the targets must be numbers of float64"
        ) from None
    return found


def _differ(rows: Matrix, others: Matrix) -> bool:
    """Whether two matrices, dense or sparse, differ by more than rounding."""
    if rows.shape != others.shape:
        return True
    difference = rows - others
    size = abs(rows).max() if rows.shape[0] else 0.0
    largest = abs(difference).max() if rows.shape[0] else 0.0
    return bool(largest > 1e-6 * size)


def other_objective(before: Certificate, now: Certificate) -> tuple[str, str] | None:
    """Return the objective of a model now and in training where they must differ.

    The words have as many digits as tell them apart.

    `before`, `now` belong to one model, on the rows that it was trained on and on other
    rows.
    """
    for old, new in zip(before.parts, now.parts, strict=True):
        slack = 1e-6 * abs(old.primal) + old.rounding + new.rounding
        known = math.isfinite(old.primal) and not old.about
        if known and abs(new.primal - old.primal) > slack:
            for digits in range(6, 18):
                words = f"{new.primal:.{digits}g}", f"{old.primal:.{digits}g}"
                if words[0] != words[1]:
                    return words
    return None


def refuse_other_rows(before: Certificate, parts: list[Certificate]) -> None:
    """Raise an error if the objectives on some rows are not the ones of training."""
    if moved := other_objective(before, Certificate.total(parts)):
        raise ValueError(
            "X, y and sample_weight are not the training data of the model: the "
            f"objective is {moved[0]} instead of {moved[1]}; give the "
            "arguments of fit, and fit again if parameters changed"
        )
