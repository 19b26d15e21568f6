"""Certificates of kernel classifiers from anywhere."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _num_samples, check_is_fitted

from ..certificate import Certificate
from ..data.types import Matrix, MatrixLike
from ..estimators.arguments import check_array
from ..estimators.input import weights
from ..estimators.parameters import KERNELS
from ..estimators.svc import SVC
from ..kernel import (
    BlockSolver,
    Callable,
    Gram,
    KernelPegasos,
    KernelProblem,
    KernelSolver,
    Precomputed,
)
from ..kernels.functions import Kernel, takes_items
from ..losses import (
    SquaredHinge,
    Vector,
    get_loss,
)
from ..problems.kernel import Bias
from ..problems.reductions import certificate_of
from .agreement import _agreed, _differ, _labels, support_of
from .single_problems import (
    ProofLimits,
    sharpened,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def _certify_kernel(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    limits: ProofLimits,
) -> Certificate:
    """Certify a kernel model from its dual variables, or a fit that starts there."""
    parts = []
    for pair in kernel_pairs(model, X, y, C, sample_weight, used=True):
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
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    C: float | None,
    sample_weight: ArrayLike | None,
    whole: bool = False,
    used: bool = False,
) -> Iterator[KernelPair]:
    """Yield the pairs of classes of a fitted kernel model.

    Their problems have the rows of their classes or, with `whole`, all rows, where rows
    of other classes have weight 0. With `used`, they leave out rows that have neither a
    weight nor a coefficient, as fits do: these may make the matrix indefinite.
    """
    check_is_fitted(model)
    C = _agreed(C, model.C, model)
    squared = isinstance(model, SVC) and isinstance(get_loss(model.loss), SquaredHinge)
    kind_of_bias: Bias = {"penalize_intercept": False}
    if isinstance(model, SVC):
        kind_of_bias = model._bias_of_problems()
    X, kernel = rows_of(model, X, sample_weight)
    classes, codes = _labels(y, X.shape[0], model.classes_)
    support = support_of(model, sample_weight)
    class_weight = model.class_weight
    if hasattr(model, "class_weight_"):  # scikit-learn's "balanced" counts no weights
        class_weight = dict(zip(classes.tolist(), model.class_weight_, strict=True))
    weight, factor = weights(class_weight, X, classes, codes, sample_weight)
    every = factor[codes] if weight is None else weight * factor[codes]
    dual_coef = model.dual_coef_
    dual_coef = dual_coef.toarray() if hasattr(dual_coef, "toarray") else dual_coef
    if not len(support):  # scikit-learn has one row then, after a fit of sparse rows
        dual_coef = np.zeros((len(classes) - 1, 0))
    gram = Gram(X, kernel, getattr(model, "cache_size", 200))
    for p, (i, j) in enumerate(combinations(range(len(classes)), 2)):
        of_pair = (codes == i) | (codes == j)
        costs = np.where(of_pair, every, 0.0)
        coef = np.zeros(X.shape[0])
        coef[support] = np.where(codes[support] == i, dual_coef[j - 1], dual_coef[i])
        coef[~of_pair] = 0.0
        rows = np.arange(len(codes)) if whole else np.flatnonzero(of_pair)
        if used and ((costs > 0.0) | (coef != 0.0)).any():
            rows = np.flatnonzero((costs > 0.0) | (coef != 0.0))
        # The first class of a pair is positive; with only two classes, the second is.
        first = 1 if len(classes) > 2 else -1
        signs = np.where(codes[rows] == i, first, -first)
        problem = KernelProblem(
            gram,
            signs,
            C,
            loss="squared_hinge" if squared else "hinge",
            sample_weight=costs[rows],
            rows=rows,
            **kind_of_bias,
        )
        signed: Vector = coef[rows]
        alpha: Vector = np.clip(signed * problem.y, 0.0, problem.upper)
        bias = float(model.intercept_[p])
        yield KernelPair(problem, signed, alpha, bias, (i, j), rows)


def rows_of(
    model: BaseEstimator, X: MatrixLike, sample_weight: ArrayLike | None
) -> tuple[Matrix, Kernel]:
    """Return X and its kernel, after checking that the model was trained on these rows.

    It is the kernel matrix where a kernel function takes other objects than rows of
    numbers, or the model does not keep its support vectors.

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
    options = {
        "poly": {"degree": model.degree, "gamma": model._gamma, "coef0": model.coef0},
        "rbf": {"gamma": model._gamma},
        "sigmoid": {"gamma": model._gamma, "coef0": model.coef0},
    }
    return KERNELS[model.kernel](**options.get(model.kernel, {}))
