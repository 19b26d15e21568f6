"""Exact Shapley values of linear models and of models with a product kernel.

The value of a set S of features at a row x is the mean of ``f(x_S, z_rest)`` over the
background rows z. For ``k(x, s) = prod_j k_j(x_j, s_j)`` and one pair of z and support
vector s, let ``A_j = k_j(x_j, s_j)`` and ``B_j = k_j(z_j, s_j)``.

Let every feature arrive at a time that is uniform in [0, 1], so that all orders are
equally likely. If j arrives at t, each other feature is in S with probability t,
independently. The mean of what j adds is therefore a product of means, and

    phi_j = int_0^1 (A_j - B_j) prod_{l != j} (t A_l + (1 - t) B_l) dt

(Owen, Management Science 18, 1972; Mohammadi, Chau and Muandet, arXiv 2505.16516,
2025). This polynomial in t has the degree d - 1, so Gauss-Legendre quadrature with
``ceil(d / 2)`` nodes is exact. Wide rows need fewer for float64: as A and B are between
0 and 1, a factor is at most ``cosh(h / 2)^2`` in size on the ellipse with foci 0 and 1
whose half axes add up to ``e^h / 2``, and m nodes have an error of at most

    32/15 cosh(h / 2)^(2 (d - 1)) e^(-2 m h) / (1 - e^(-2 h))

(Trefethen, Approximation Theory and Approximation Practice, theorem 19.3). The product
without j is the product before j times the product after j, so nothing is divided.
Time: m d for every row, background row and support vector.

phi_j is linear in w, and the exact optimum is within r = sqrt(2 gap) of w. What j adds
at one z and S is w.u for the difference u of two images that differ in the feature j
alone, so phi_j is within r times the mean of ``||u|| = sqrt(2 - 2 k_j(x_j, z_j))`` of
the optimum's; for linear models, within r ``|x_j - mean z_j|``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression as PeerLogisticRegression
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from .. import core
from ..blas import limited
from ..data.types import MatrixLike
from ..estimators import originals as svm
from ..estimators.base import taken_apart
from ..estimators.certain import CertainDecisions
from ..estimators.fitted import kernel_of
from ..estimators.input import check_array, checking
from ..estimators.linear_svc import LinearSVC
from ..estimators.logistic import LogisticRegression
from ..estimators.novelty import LinearOneClassSVM
from ..estimators.nu import NuSVC
from ..estimators.parameters import Jobs
from ..estimators.regions import optimum_of_fit
from ..estimators.regression import LinearSVR
from ..estimators.svc import SVC
from ..kernels.functions import RBF, Laplacian, Linear
from ..kernels.predict import pair_coef
from ..losses import Vector
from ..problems.rounding import Rounding
from .single_problems import KERNELS_OF_ONE

_LINEAR = (
    *(LinearSVC, LinearSVR, LinearOneClassSVM, LogisticRegression),
    *(svm.LinearSVC, svm.LinearSVR, PeerLogisticRegression),
)
_KERNEL = (SVC, NuSVC, svm.SVC, svm.NuSVC, *KERNELS_OF_ONE)
#: Transformers that change each column alone.
_SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)

_UNIT, _SLACK = Rounding.unit, Rounding.slack


@dataclass(frozen=True)
class ShapleySettings:
    """Constants of the sums over support vectors and background rows."""

    #: Bound on the rounding error of A_j and B_j, in units: of exp and its argument.
    factor: int = 10
    #: Factors of background rows that are held at a time.
    block: int = 1 << 20


SETTINGS = ShapleySettings()


@dataclass(frozen=True, eq=False)
class ShapleyValues:
    """Shapley values of the decisions of a model.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features) or (n_samples, n_problems, \
n_features)
        What each feature adds to the decision. They sum to the decision minus `base`.
    base : float or ndarray of shape (n_problems,)
        Mean decision of the background rows.
    error : ndarray of the shape of `values`
        Upper bounds on the rounding errors of `values`.
    optimum_error : ndarray of the shape of `values`, or None
        Upper bounds on the distances of `values` from the Shapley values of the exact
        optimum, by the certificate of the fit. Only for LinearSVC, LinearSVR, SVC and
        SVR of dualgap, with the squared norm alone and without landmarks; else None.
    """

    values: Vector
    base: float | Vector
    error: Vector
    optimum_error: Vector | None = None


@checking({"n_jobs": [*get_args(Jobs)[1:]]})
def shapley_values(
    model: BaseEstimator,
    X: MatrixLike,
    background: MatrixLike,
    *,
    n_jobs: int | None = None,
) -> ShapleyValues:
    """Return the exact Shapley values of the decisions of a model.

    The value of a set of features is the mean decision where these have the values of
    the row, and the others have the values of a background row.
    ``shap.KernelExplainer`` estimates the same numbers from samples of the sets.

    Parameters
    ----------
    model : estimator
        A fitted linear model, or a kernel model with the linear, rbf or laplacian
        kernel, of dualgap or scikit-learn: SVC, NuSVC, SVR, NuSVR, OneClassSVM,
        LinearSVC, LinearSVR, LinearOneClassSVM or LogisticRegression. It may be in a
        search, or in a pipeline behind scalers of single columns.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows whose decisions are to be explained.
    background : {array-like, sparse matrix} of shape (n_background, n_features)
        Rows that stand for an unknown feature, such as some training rows.
    n_jobs : int, optional
        Threads over the rows. None means 1 unless :func:`joblib.parallel_config` sets
        another number; -1 uses all processors.

    Returns
    -------
    ShapleyValues
        Record of `values`, `base`, `error` and `optimum_error`. With several classes,
        labels or quantiles, there is a row per column of ``decision_function`` or
        ``predict``.
        One versus one, these are the pairs of classes, as with
        ``decision_function_shape="ovo"``.

    Raises
    ------
    TypeError
        If the type of the model or of a step of the pipeline is not supported.
    ValueError
        If the kernel is no product over the features, or the rows do not have the
        features of the model.

    Notes
    -----
    For kernel models the time grows with rows, background rows, support vectors, and
    the number d of features times the number of nodes, at most d/2 or some 3 sqrt(d).

    Examples
    --------
    >>> from dualgap import SVC
    >>> from dualgap.models import shapley_values
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(random_state=0).fit(X, y == 1)
    >>> found = shapley_values(model, X[:5], X[::10])
    >>> found.values.shape
    (5, 4)
    >>> sums = found.values.sum(axis=1) + found.base
    >>> bool(abs(sums - model.decision_function(X[:5])).max() < 1e-7)
    True
    """
    steps, inner = taken_apart(model)
    for step in steps:
        if not isinstance(step, _SCALERS):
            raise TypeError(
                f"model has the step {type(step).__name__}, which may mix columns; give"
                " the last step, with X and background transformed"
            )
    if not isinstance(inner, _LINEAR + _KERNEL):
        raise TypeError(
            f"model is of type {type(inner).__name__}; give a linear model or a kernel "
            "SVM"
        )
    check_is_fitted(inner)
    linear = isinstance(inner, _LINEAR)
    kernel = Linear() if linear else kernel_of(inner)
    if type(kernel) not in (Linear, RBF, Laplacian):
        raise ValueError(
            f"kernel={kernel.name!r} is not a product over the features; train with "
            "'rbf', 'laplacian' or 'linear'"
        )
    X = _rows("X", X, steps, inner)
    background = _rows("background", background, steps, inner)
    with limited(1):
        if isinstance(kernel, RBF | Laplacian):
            found = _of_products(_Products(inner, kernel), X, background, n_jobs)
        else:
            found = _of_weights(inner, X, background)
    values, base, error = found
    off = _to_optimum(inner, kernel, X, background)
    far = None if off is None else error + off
    if values.shape[1] == 1:
        own = None if far is None else far[:, 0]
        return ShapleyValues(values[:, 0], float(base[0]), error[:, 0], own)
    return ShapleyValues(values, base, error, far)


def _to_optimum(
    model: BaseEstimator, kernel: Any, X: Vector, background: Vector
) -> Vector | None:
    """Return bounds on what the exact optimum changes; None if there is none."""
    if not isinstance(model, CertainDecisions):
        return None
    try:
        regions = optimum_of_fit(model, of_weights=True).regions
    except ValueError:
        return None
    radius = np.array([region.radius for region in regions])
    if type(kernel) is Linear:
        size = np.abs(X - background.mean(axis=0))
        size += len(background) * 4.0 * _UNIT * np.abs(background).mean(axis=0)
    else:
        size = np.empty(X.shape)
        for x, z, mean in zip(X.T, background.T, size.T, strict=True):
            apart = np.abs(x[:, None] - z)
            power = apart * apart if isinstance(kernel, RBF) else apart
            mean[:] = np.sqrt(-2.0 * np.expm1(-kernel.gamma * power)).mean(axis=1)
    return radius[:, None] * size[:, None, :] * (1.0 + 1e-9)


def _rows(
    name: str, rows: MatrixLike, steps: list[BaseEstimator], model: BaseEstimator
) -> Vector:
    """Return rows as the model sees them, dense and float64."""
    checked = check_array(
        rows, accept_sparse="csr", ensure_min_samples=0, input_name=name
    )
    if checked.shape[0] == 0:
        raise ValueError(f"{name} has no rows; give at least one")
    if checked.shape[1] != model.n_features_in_:
        raise ValueError(
            f"{name} has {checked.shape[1]} features, but the model was trained on "
            f"{model.n_features_in_}; give the same columns"
        )
    for step in steps:
        rows = step.transform(rows)
    if not steps:
        _check_feature_names(model, rows, reset=False)
    return _dense(check_array(rows, accept_sparse="csr", input_name=name))


def _dense(table: MatrixLike) -> Vector:
    array = table.toarray() if hasattr(table, "toarray") else table
    return np.asarray(array, np.float64)


# ------------------------------------------------------------------------------ linear


def _of_weights(
    model: BaseEstimator, X: Vector, background: Vector
) -> tuple[Vector, Vector, Vector]:
    """Return values, base and errors of a linear model: ``w_j (x_j - mean z_j)``."""
    coef = np.atleast_2d(_dense(model.coef_))
    mean = background.mean(axis=0)
    values = coef * (X - mean)[:, None, :]
    # The mean adds its rows one after the other.
    size = 3.0 * np.abs(X) + (len(background) + 4) * np.abs(background).mean(axis=0)
    error = _SLACK * _UNIT * np.abs(coef) * size[:, None, :] + Rounding.least
    return values, coef @ mean + model.intercept_, error


# --------------------------------------------------------------------- product kernels


class _Products:
    """A model ``sum_s c_s prod_j k_j(x_j, s_j) + b``, with a row of c per problem."""

    def __init__(self, model: BaseEstimator, kernel: RBF | Laplacian) -> None:
        vectors, coef = _dense(model.support_vectors_), _dense(model.dual_coef_)
        if hasattr(model, "classes_"):
            coef = pair_coef(coef, model.n_support_).toarray()
        # scikit-learn has one row of another width without support vectors.
        self.columns = np.ascontiguousarray(vectors.T)
        self.coef = coef[:, : len(vectors)]
        self.intercept = np.asarray(model.intercept_, np.float64)
        self.kernel = kernel

    def factors(self, rows: Vector, some: slice) -> Vector:
        """Return k_j(x_j, s_j), shape (d, rows, support vectors)."""
        assert not isinstance(self.kernel.gamma, str)
        with np.errstate(over="ignore", under="ignore"):
            left, right = rows.T[:, :, None], self.columns[:, None, some]
            apart = np.subtract(left, right, order="C")
            power = apart * apart if isinstance(self.kernel, RBF) else np.abs(apart)
            power *= -self.kernel.gamma
            return np.exp(power, out=power)


def _of_products(
    model: _Products, X: Vector, background: Vector, n_jobs: int | None
) -> tuple[Vector, Vector, Vector]:
    """Return values, base and errors of a model with a product kernel."""
    d, many = model.columns.shape
    nodes, weights, of_rule = _rule(d)
    values, base = np.zeros((len(X), len(model.coef), d)), np.zeros(len(model.coef))
    pairs = max(1, SETTINGS.block // d)
    wide = max(1, min(many, pairs))
    high = max(1, pairs // wide)

    def explain(begin: int, end: int) -> None:
        for some in _slices(many, wide):
            A = model.factors(X[begin:end], some)
            adds = np.empty((d, A.shape[2]))
            for block in _slices(len(background), high):
                B = model.factors(background[block], some)
                if begin == 0:  # once, by the first thread
                    base[:] += model.coef[:, some] @ B.prod(axis=0).sum(axis=0)
                B = B.reshape(d, -1)
                for i in range(begin, end):
                    own = np.ascontiguousarray(A[:, i - begin])
                    core.shapley_sums(own, B, nodes, weights, adds)
                    values[i] += model.coef[:, some] @ adds.T

    threads = min(effective_n_jobs(n_jobs), len(X))
    ends = np.linspace(0, len(X), threads + 1).astype(int)
    Parallel(n_jobs=threads, require="sharedmem")(
        delayed(explain)(*ends[k : k + 2]) for k in range(threads)
    )
    values /= len(background)
    base = base / len(background) + model.intercept
    # A node adds 4 units to a factor; the other 7 are of a factor's own operations and
    # of the product with it. The sums over nodes, rows, vectors and blocks follow.
    steps = (
        (SETTINGS.factor + 11) * (d + 1)
        + len(nodes)
        + 2 * (len(background) + many)
        + 64
    )
    unit = _SLACK * _UNIT * (steps + of_rule) * np.abs(model.coef).sum(axis=1)
    return values, base, np.broadcast_to(unit[:, None], values.shape).copy()


def _slices(count: int, size: int) -> list[slice]:
    return [slice(begin, begin + size) for begin in range(0, count, size)]


def _rule(d: int) -> tuple[Vector, Vector, float]:
    """Return nodes and weights on [0, 1], and a bound on their errors, in units.

    The bound is about products of d - 1 factors; the error of the nodes is not in it.
    """
    count, left = (d + 1) // 2, 0.0
    for fewer in range(1, count):
        h = 4.0 * fewer / (d - 1)
        size = 2.0 * (d - 1) * math.log(math.cosh(0.5 * h)) - 2.0 * fewer * h
        bound = 32.0 / 15.0 * math.exp(min(size, 0.0)) / -math.expm1(-2.0 * h)
        if bound <= _UNIT:
            count, left = fewer, 1.0
            break
    # NumPy's weights have errors of many units: Newton's steps in more digits.
    start = np.polynomial.legendre.leggauss(count)[0]
    x: Any = np.asarray(start, np.longdouble)
    for _ in range(3):
        last, p = x**0, x
        for k in range(2, count + 1):
            last, p = p, ((2 * k - 1) * x * p - (k - 1) * last) / k
        slope = count * (x * p - last) / (x * x - 1)
        w = 1 / ((1 - x * x) * slope * slope)
        x = x - p / slope
    digits = 4.0 * count**2 * float(np.finfo(np.longdouble).eps) / _UNIT
    nodes: Vector = ((1 + x) / 2).astype(np.float64)
    weights: Vector = w.astype(np.float64)
    return nodes, weights, left + 1.0 + digits
