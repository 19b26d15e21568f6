"""Compression: smaller models, with a new certificate."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpstrf
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from ..blas import limited
from ..certificate import Certificate, Status, percent
from ..data.types import MatrixLike
from ..estimators import SVC, LinearSVC
from ..estimators.base import own
from ..estimators.fitted import (
    FittedProblem,
    binary_of,
    kernel_pairs,
    linear_problems,
    refuse_other_rows,
    table_of,
)
from ..estimators.input import ROWS, TrainingData, check_array, checking, labelled
from ..estimators.parameters import Jobs
from ..kernels.functions import refuse_items
from ..kernels.gram import points_of
from ..losses import Vector
from ..problems.base import Claim, Proof
from ..problems.batch import LinearBatch
from ..problems.bias import best_bias
from ..problems.binary import BinaryProblem
from ..problems.kernel import KernelBatch
from ..problems.reductions import certificate_of, refuse_labels
from ..solvers import Auto
from ..solvers.kernel.nystroem import over
from ..training import Solution, solve
from ..training.solution import Solutions
from .linear import linear_terms

T = TypeVar("T", Proof, "_Smaller")

_Compressed = tuple[TrainingData, LinearBatch | KernelBatch, list[Solution]]


@dataclass(frozen=True)
class CompressionSettings:
    """Tuning constants of compression."""

    #: Most support vectors that are ordered by pivots, of 200 MB of kernel values.
    pivots: int = 5000
    #: Support vectors of the first trial for an `SVC`.
    first: int = 32
    #: Most bytes of the features of a trial that trains.
    features: float = 1e9
    #: What is added to kernel values that are inverted, relative to the diagonal.
    ridge: float = 1e-8


_SETTINGS = CompressionSettings()


@checking(
    {
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_support": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [*get_args(Jobs)[1:]],
    }
)
def compress(
    model: LinearSVC | SVC,
    X: MatrixLike,
    y: ArrayLike,
    *,
    tol: float = 1e-2,
    max_support: int | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> LinearSVC | SVC:
    """Return a smaller model whose relative gap is still proved to be at most `tol`.

    For an `SVC`, support vectors are dropped as long as the gap stays within `tol`,
    beginning with those that add least to the span of the others. The remaining ones
    get new coefficients. Prediction takes time and memory in proportion to their
    number.

    For a `LinearSVC`, the smallest dual variables are set to 0 until half of the
    remaining gap is used, then the smallest coefficients until `tol` is reached.
    ``sparsify()`` makes use of the zeros.

    Parameters
    ----------
    model : LinearSVC or SVC
        A fitted model of dualgap, or a patched one of scikit-learn; it is not changed.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training rows, in the same order.
    y : array-like of shape (n_samples,)
        The training labels.
    tol : float, default=1e-2
        Relative gap ``(P - D)/D`` of the new model, per class or pair. It must be at
        least the gap of the old model.
    max_support : int, optional
        Most support vectors of an `SVC`, per pair of classes. If so few do not allow
        `tol`, the new model has this many, and its certificate tells its gap.
    sample_weight : array-like of shape (n_samples,), optional
        The sample weights that the model was fitted with.
    n_jobs : int, optional
        Threads over the rows, for linear models. None means 1 unless
        :func:`joblib.parallel_config` sets another number; -1 uses all processors.

    Returns
    -------
    LinearSVC or SVC
        A new model of dualgap with its own ``certificate_`` and without ``history_``.

    Raises
    ------
    TypeError
        If the model is of another type.
    ValueError
        If `tol` is smaller than the gap of the model, X and y are not its training
        data, or the model was trained with `Nystroem` or as Crammer and Singer's joint
        problem, or `max_support` is given for a `LinearSVC`.

    Notes
    -----
    Bisection finds how many support vectors, dual variables or coefficients can go. A
    trial for a `LinearSVC` takes a pass or two over the data. A trial for an `SVC`
    fits a linear model over the m remaining vectors, with 4 bytes per row and vector,
    as ``solver="nystroem"`` does, in a time in proportion to n m^2. Where that exceeds
    1 GB, the trial takes the best multiple of the model that has the old decisions at
    the m vectors, in a time in proportion to n m. Trials begin with few vectors, whose
    number doubles until `tol` is reached. The new coefficients of an `SVC` are not dual
    variables: they may have either sign.

    Examples
    --------
    >>> from dualgap import SVC, compress
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVC(random_state=0).fit(scale(X), y)
    >>> smaller = compress(model, scale(X), y, tol=0.05)
    >>> len(smaller.support_) < len(model.support_)
    True
    >>> smaller.certificate_.relative_gap <= 0.05
    True
    """
    model = own(model)
    refuse_labels(model, "compress")
    if not isinstance(model, (LinearSVC, SVC)):
        raise TypeError(
            f"model is of type {type(model).__name__}; give a LinearSVC or SVC"
        )
    check_is_fitted(model)
    if not hasattr(model, "certificate_"):
        raise ValueError("model has no certificate; fit it first")
    if hasattr(model, "_items"):
        refuse_items("compress")
    if max_support is not None and not isinstance(model, SVC):
        raise ValueError(
            f"max_support={max_support} is for SVC; a LinearSVC becomes smaller by tol"
        )
    smaller: BaseEstimator = copy.copy(model)
    given = model, X, y, float(tol), sample_weight
    with limited(1):
        if isinstance(model, SVC):
            data, batch, found = _compressed_kernel(*given, max_support)
        else:
            data, batch, found = _compressed_linear(*given, n_jobs)
    smaller._keep(data, batch, Solutions(found, batch.names))
    smaller.certificate_ = certificate_of(model, [one.certificate for one in found])
    if hasattr(smaller, "history_"):
        del smaller.history_
    return smaller


def _most(start: T, count: int, trial: Callable[[int], T], limit: float) -> T:
    """Return the result of the largest number in 0..count with a gap within `limit`.

    Found by bisection. `start` is the result for 0, which is within the limit; `trial`
    computes the others.
    """
    low, high, best = 0, count + 1, start
    while high - low > 1:
        middle = (low + high) // 2
        result = trial(middle)
        if result.certificate.relative_gap <= limit:
            low, best = middle, result
        else:
            high = middle
    return best


def _refuse_less(gap: float, tol: float) -> None:
    if not gap <= tol:
        raise ValueError(
            f"tol={tol!r} is below the gap of the model, {percent(gap)}; give a larger "
            "tol, or fit the model with a smaller one first"
        )


def _renewed(old: Certificate, new: Certificate, tol: float) -> Certificate:
    """Return the old certificate with the bounds of the smaller model."""
    within = new.relative_gap <= tol
    status = Status.CERTIFIED if within else Status.SUPPORT_LIMIT
    return replace(old, bounds=new.bounds, tol=tol, atol=0.0, status=status)


# ------------------------------------------------------------------------------ linear


def _compressed_linear(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    tol: float,
    sample_weight: ArrayLike | None,
    n_jobs: int | None,
) -> _Compressed:
    X = check_array(X, **ROWS)
    terms = linear_terms(model, X.shape[0])
    binary = binary_of(terms, X, y, terms.C, sample_weight, n_jobs)
    table = table_of(model, X.shape[0])
    wholes = []
    for one in linear_problems(terms, binary, table):
        alpha = one.duals(model.tol) if table is None else one.alpha
        wholes.append((one.problem, one.problem.prove(Claim(one.w, alpha))))
    refuse_other_rows(model.certificate_, [whole.certificate for _, whole in wholes])
    found = [_smaller_linear(problem, whole, tol) for problem, whole in wholes]
    solutions = [
        Solution(proof.w, proof.alpha, _renewed(old, proof.certificate, tol))
        for old, proof in zip(model.certificate_, found, strict=True)
    ]
    return labelled(model.class_weight, X, y, sample_weight), binary, solutions


def _smaller_linear(problem: BinaryProblem, whole: Proof, tol: float) -> Proof:
    """Return the proof with the fewest dual variables and coefficients."""
    _refuse_less(whole.certificate.relative_gap, tol)
    w, alpha = whole.w, whole.alpha
    support = np.flatnonzero(alpha)
    rising = support[np.argsort(alpha[support], kind="stable")]

    def without_rows(count: int) -> Proof:
        fewer = alpha.copy()
        fewer[rising[:count]] = 0.0
        return problem.prove(Claim(w, fewer))

    half = 0.5 * (max(whole.certificate.relative_gap, 0.0) + tol)
    thinner = _most(whole, len(rising), without_rows, half)

    used = np.flatnonzero(w[: problem.d])
    weakest = used[np.argsort(np.abs(w[used]), kind="stable")]

    def without_columns(count: int) -> Proof:
        fewer = w.copy()
        fewer[weakest[:count]] = 0.0
        return problem.prove(Claim(fewer, thinner.alpha))

    return _most(thinner, len(weakest), without_columns, tol)


# ------------------------------------------------------------------------------ kernel


def _compressed_kernel(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    tol: float,
    sample_weight: ArrayLike | None,
    max_support: int | None,
) -> _Compressed:
    about = [c.about for c in model.certificate_ if c.about]
    if about:
        raise ValueError(
            f"model has a certificate for {about[0]}, so it cannot be compressed; "
            "train it with fewer landmarks instead"
        )
    pairs = list(kernel_pairs(model, X, y, sample_weight))  # checks X and y
    points = points_of(check_array(X, **ROWS), model._fitted_kernel)
    weight = dict(zip(model.classes_.tolist(), model.class_weight_, strict=True))
    data = labelled(weight, points.X, y, sample_weight)
    batch = model._kernel_batch(points, model._fitted_kernel, data)
    coef, found = np.zeros(points.X.shape[0]), []
    for k, (pair, old) in enumerate(zip(pairs, model.certificate_, strict=True)):
        coef[pair.rows], bias, proof = _smaller_kernel(pair, tol, max_support)
        own = batch.coef(k, coef[batch.order[batch.place(k)]])
        found.append(Solution(own, own, _renewed(old, proof, tol), bias))
    return data, batch, found


class _Smaller(NamedTuple):
    """Coefficients at the rows, bias, and their certificate."""

    coef: Vector
    bias: float
    certificate: Certificate


def _smaller_kernel(
    pair: FittedProblem, tol: float, max_support: int | None
) -> _Smaller:
    """Return the model of the fewest support vectors within `tol`, or of the most."""
    problem = pair.problem
    dual = problem.certify(pair.alpha)
    values = problem.scores(pair.w * problem.y)
    whole = pair.certificate().with_dual_of(dual)
    _refuse_less(whole.relative_gap, tol)
    sizes = problem.gram.diagonal()
    limits, size = np.finfo(np.float32), float(sizes.max())
    if size > 0.0 and not limits.tiny <= size <= limits.max:  # the trials use float32
        raise ValueError(
            f"model has kernel values up to {size:.3g}, outside the range of float32; "
            "scale the kernel, and C by the inverse"
        )
    order = _by_what_they_add(pair)

    def spanned(count: int) -> _Smaller:
        left = np.sort(order[:count])
        coef, bias = np.zeros(problem.n), pair.bias
        if not sizes[left].any():
            pass  # they span only 0
        elif 4.0 * problem.n * count > _SETTINGS.features:
            coef, bias = _interpolated(pair, left, values[left])
        else:
            linear = over(problem, left)
            coef, bias = linear.expand(solve(linear, Auto(), tol=0.1 * tol).w)
        proof = problem.certify_model(coef, bias).with_dual_of(dual)
        return _Smaller(coef, bias, proof)

    best, enough = _Smaller(pair.w, pair.bias, whole), len(order)
    most = enough if max_support is None else min(max_support, enough)
    few, count = 0, min(_SETTINGS.first, most)
    while count < enough:
        found = spanned(count)
        if found.certificate.relative_gap <= tol:
            best, enough = found, count
        elif count == most:
            return found
        else:
            few, count = count, min(2 * count, most)
    # Large numbers are found to 1 in 64, since each trial takes long.
    step = max(enough // 64, 1)
    steps = max(enough - few - 1, 0) // step
    return _most(best, steps, lambda m: spanned(enough - m * step), tol)


def _interpolated(
    pair: FittedProblem, left: NDArray[np.intp], values: Vector
) -> tuple[Vector, float]:
    """Return coefficients and bias of the best multiple of an interpolating model.

    It is the projection of the model to the span of the rows `left`, so it has the same
    `values` there, without bias. The multiple has the least P.
    """
    problem, coef = pair.problem, np.zeros(pair.problem.n)
    K = problem.gram.block(left, left)
    K.flat[:: len(left) + 1] += _SETTINGS.ridge * K.diagonal().max()
    coef[left] = cho_solve(cho_factor(K), values)
    scores = problem.scores(coef * problem.y)
    norm = float(coef[left] @ scores[left]) + problem.constant * pair.bias**2
    y, cost, loss = problem.y, problem.cost, problem.loss

    def bias(s: float) -> float:
        free = problem.free_bias
        return best_bias(s * scores, y, cost, loss) if free else s * pair.bias

    def primal(s: float) -> float:
        margins = y * (s * scores + bias(s))
        return 0.5 * s * s * norm + float(cost @ loss.value(margins))

    s = minimize_scalar(primal, bounds=(0.0, 4.0), options={"xatol": 1e-2}).x
    return s * coef, bias(s)


def _by_what_they_add(pair: FittedProblem) -> NDArray[np.intp]:
    """Return the support vectors, ordered by what they add to the span of the others.

    They have the order of the pivots of a Cholesky factorisation of
    ``coef_i coef_j k_ij`` (Fine and Scheinberg, JMLR 2, 2001). Many support
    vectors have a random order: most of their coefficients are equal, and few of them
    span about as much as the first pivots.
    """
    support = np.flatnonzero(pair.w)
    size = np.abs(pair.w[support])
    if len(support) > _SETTINGS.pivots:
        return np.random.default_rng(0).permutation(support)
    K = pair.problem.gram.block(support, support).astype(np.float64)
    _, pivots, _, _ = dpstrf(np.asfortranarray(size[:, None] * K * size), lower=1)
    return support[pivots - 1]
