"""Smaller models, with a new certificate for what they have become."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpstrf
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.validation import check_array, check_is_fitted

from ..certificate import Certificate, Status, percent
from ..kernel.nystroem import over
from ..loop import solve
from ..losses import Vector
from ..problem import Problem
from ..solvers import Auto
from ._fitting import N_JOBS, one_or_all
from .foreign import (
    KernelPair,
    binary_of,
    kernel_pairs,
    kernel_primal,
    linear_problems,
    linear_terms,
)
from .linear_svc import LinearSVC
from .svc import SVC

__all__ = ["compress"]

T = TypeVar("T")

_MOST_PIVOTS = 5000  # 200 MB of kernel values


@validate_params(  # type: ignore[untyped-decorator]
    {
        "model": [LinearSVC, SVC],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": N_JOBS,
    },
    prefer_skip_nested_validation=True,
)
def compress(
    model: LinearSVC | SVC,
    X: Any,
    y: ArrayLike,
    *,
    tol: float = 1e-2,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> LinearSVC | SVC:
    """A smaller model whose relative gap is still proved to be at most `tol`.

    Of an `SVC` the support vectors that add least to the span of the others are
    dropped, as many as the gap allows, and the best function that is left takes its
    place: prediction takes that much less time and memory. Of a `LinearSVC` half of the
    gap that is left goes into the smallest dual variables, which make up the proof, and
    the rest into the smallest coefficients, which become 0: ``sparsify()`` then makes
    use of them.

    Parameters
    ----------
    model : LinearSVC or SVC
        Fitted, of this package; it stays as it is.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows that it was trained with, in their order.
    y : array-like of shape (n_samples,)
        Their labels.
    tol : float, default=1e-2
        Relative gap ``(P - D)/D`` of the new model, per class or pair; more than that
        of the old one. D is the dual value of the old model, or of the new one.
    sample_weight : array-like of shape (n_samples,), optional
        What the model was fitted with.
    n_jobs : int, optional
        Threads over the rows, of linear models.

    Returns
    -------
    LinearSVC or SVC
        A new model, whose ``certificate_`` is about what it is now. It has no
        ``history_``.

    Raises
    ------
    ValueError
        If `tol` is smaller than the gap that the model has, X and y are not what it was
        trained with, or it is a model of `Nystroem` or of Crammer and Singer.

    Notes
    -----
    How many can go is found by bisection. A trial takes a pass or two over the data; of
    an `SVC` a fit of a linear model over the m vectors that are left, with 4 bytes per
    row and vector, as ``solver="nystroem"`` does. The coefficients of an `SVC` are then
    no dual variables any more: they may have either sign.

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
    check_is_fitted(model)
    if not hasattr(model, "certificate_"):
        raise ValueError("model: it has no certificate; fit it, or certify it first")
    smaller = copy.copy(model)
    if isinstance(model, SVC):
        _compress_kernel(model, smaller, X, y, float(tol), sample_weight)
    else:
        _compress_linear(model, smaller, X, y, float(tol), sample_weight, n_jobs)
    if hasattr(smaller, "history_"):
        del smaller.history_
    return smaller


def _most(count: int, trial: Callable[[int], tuple[float, T]], limit: float) -> T:
    """What the largest number in 0..count gives whose gap is within the limit.

    By bisection; `trial` returns a gap and a result, and that of 0 is within.
    """
    low, high = 0, count + 1
    best = trial(0)[1]
    while high - low > 1:
        middle = (low + high) // 2
        gap, result = trial(middle)
        if gap <= limit:
            low, best = middle, result
        else:
            high = middle
    return best


def _gap(primal: float, dual: float) -> float:
    return Certificate(primal=primal, dual=dual).relative_gap


def _refuse_less(gap: float, tol: float) -> None:
    if not gap <= tol:
        raise ValueError(
            f"tol={tol!r}: the model is within {percent(gap)} of its optimum as it is; "
            "give more, or fit it to a smaller tol first"
        )


def _renewed(old: Certificate, primal: float, dual: float, tol: float) -> Certificate:
    return replace(old, primal=primal, dual=dual, tol=tol, status=Status.CERTIFIED)


def _certificates(model: Any) -> list[Certificate]:
    found = model.certificate_
    return [found] if isinstance(found, Certificate) else found


# ------------------------------------------------------------------------------ linear


def _compress_linear(
    model: LinearSVC,
    smaller: LinearSVC,
    X: Any,
    y: ArrayLike,
    tol: float,
    sample_weight: ArrayLike | None,
    n_jobs: int | None,
) -> None:
    if not hasattr(model, "dual_coef_"):
        raise ValueError(
            "model: it has no dual variables, so nothing proves what may be dropped; "
            "save it with duals=True, or fit it"
        )
    X = check_array(
        X,
        accept_sparse=["csr", "csc", "coo"],
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,  # Problem looks at every entry once
    )
    if X.shape[0] != model._n_rows:
        raise ValueError(
            f"X has {X.shape[0]} rows, the model was trained with {model._n_rows}"
        )
    terms = linear_terms(model, X.shape[0])
    binary = binary_of(terms, X, y, terms.C, sample_weight, n_jobs)
    duals = np.zeros((binary.tables, X.shape[0]))
    duals[:, model.support_] = model.dual_coef_
    found = [
        _smaller_linear(problem, w, binary.unpack(duals, k), tol)
        for k, (problem, w) in enumerate(linear_problems(terms, binary))
    ]
    ws, alphas, values = zip(*found, strict=True)
    pairs = [binary.rows.coef(w) for w in ws]
    smaller.coef_ = np.stack([coef for coef, _ in pairs])
    smaller.intercept_ = np.array([bias for _, bias in pairs])
    table = binary.pack(alphas)
    smaller.support_ = np.flatnonzero(table.any(axis=0))
    smaller.n_support_ = np.array(
        [np.count_nonzero(_same(y, k)[smaller.support_]) for k in model.classes_],
        dtype=np.int32,
    )
    smaller.dual_coef_ = table[:, smaller.support_]
    smaller.certificate_ = one_or_all(
        [
            _renewed(old, primal, dual, tol)
            for old, (primal, dual) in zip(_certificates(model), values, strict=True)
        ]
    )


def _same(y: ArrayLike, label: Any) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.asarray(y) == label
    return found


def _smaller_linear(
    problem: Problem, w: Vector, alpha: Vector, tol: float
) -> tuple[Vector, Vector, tuple[float, float]]:
    """Coefficients, duals, and (P, D) of both."""
    whole = problem.prove(w, alpha).certificate
    _refuse_less(whole.relative_gap, tol)
    support = np.flatnonzero(alpha)
    rising = support[np.argsort(alpha[support], kind="stable")]

    def without_rows(count: int) -> tuple[float, tuple[Vector, float]]:
        fewer = alpha.copy()
        fewer[rising[:count]] = 0.0
        proof = problem.prove(w, fewer)
        dual = proof.certificate.dual
        return _gap(whole.primal, dual), (proof.alpha, dual)

    half = 0.5 * (max(whole.relative_gap, 0.0) + tol)
    alpha, dual = _most(len(rising), without_rows, half)

    used = np.flatnonzero(w[: problem.d])
    weakest = used[np.argsort(np.abs(w[used]), kind="stable")]

    def without_columns(count: int) -> tuple[float, tuple[Vector, float]]:
        fewer = w.copy()
        fewer[weakest[:count]] = 0.0
        primal = problem.primal(fewer)
        return _gap(primal, dual), (fewer, primal)

    w, primal = _most(len(weakest), without_columns, tol)
    return w, alpha, (primal, dual)


# ------------------------------------------------------------------------------ kernel


def _compress_kernel(
    model: SVC,
    smaller: SVC,
    X: Any,
    y: ArrayLike,
    tol: float,
    sample_weight: ArrayLike | None,
) -> None:
    about = [c.about for c in _certificates(model) if c.about]
    if about:
        raise ValueError(
            f"model: its certificate is about {about[0]}, not about its training rows; "
            "use fewer landmarks instead"
        )
    place = {int(row): s for s, row in enumerate(model.support_)}
    coef, bias = np.zeros_like(model.dual_coef_), model.intercept_.copy()
    certificates = []
    pairs = kernel_pairs(model, X, y, model.C, sample_weight)
    for p, (pair, old) in enumerate(zip(pairs, _certificates(model), strict=True)):
        signed, bias[p], (primal, dual) = _smaller_kernel(pair, tol)
        certificates.append(_renewed(old, primal, dual, tol))
        i, j = pair.classes
        ends = np.cumsum(model.n_support_)
        for at in np.flatnonzero(signed):
            s = place[int(pair.rows[at])]
            first = s < ends[i]  # support vectors lie class by class
            coef[j - 1 if first else i, s] = signed[at]
    used = coef.any(axis=0)
    of_class = np.repeat(np.arange(len(model.n_support_)), model.n_support_)
    smaller.dual_coef_ = np.ascontiguousarray(coef[:, used])
    smaller.intercept_ = bias
    smaller.support_ = model.support_[used]
    smaller.n_support_ = np.bincount(
        of_class[used], minlength=len(model.n_support_)
    ).astype(np.int32)
    if model.support_vectors_.shape[0]:  # a precomputed kernel has none
        smaller.support_vectors_ = model.support_vectors_[used]
    smaller.certificate_ = one_or_all(certificates)
    smaller.fit_status_ = 0


def _smaller_kernel(
    pair: KernelPair, tol: float
) -> tuple[Vector, float, tuple[float, float]]:
    """Coefficients at the rows, bias, and (P, D)."""
    problem = pair.problem
    dual = problem.certify(pair.alpha).dual
    primal = kernel_primal(problem, pair.coef, pair.bias)
    _refuse_less(_gap(primal, dual), tol)
    order = _by_what_they_add(pair)

    def spanned(dropped: int) -> tuple[float, tuple[Vector, float, float]]:
        if dropped == 0:
            return _gap(primal, dual), (pair.coef, pair.bias, primal)
        left = np.sort(order[: len(order) - dropped])
        if not len(left):
            return np.inf, (pair.coef, pair.bias, primal)
        linear = over(problem, left)
        w = solve(linear, Auto(), tol=0.1 * tol).w
        coef, bias = linear.expand(w)
        value = kernel_primal(problem, coef, bias)
        return _gap(value, dual), (coef, bias, value)

    coef, bias, primal = _most(len(order), spanned, tol)
    return coef, bias, (primal, dual)


def _by_what_they_add(pair: KernelPair) -> NDArray[np.intp]:
    """The support vectors, those first that add most to the span of the ones before.

    By the pivots of a Cholesky factorisation of ``coef_i coef_j k_ij`` (Fine and
    Scheinberg, JMLR 2, 2001); of very many by the size of their coefficients.
    """
    support = np.flatnonzero(pair.coef)
    size = np.abs(pair.coef[support])
    if len(support) > _MOST_PIVOTS:
        return support[np.argsort(-size, kind="stable")]
    K = pair.problem.gram.block(support, support).astype(np.float64)
    _, pivots, _, _ = dpstrf(np.asfortranarray(size[:, None] * K * size), lower=1)
    return support[pivots - 1]
