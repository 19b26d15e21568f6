"""Smaller models, with a new certificate for what they have become."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpstrf
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.validation import check_array, check_is_fitted

from ..certificate import Certificate, Status, percent
from ..kernel.nystroem import over
from ..loop import solve
from ..losses import Vector
from ..problem import Problem, Proof
from ..solvers import Auto
from ._fitting import N_JOBS, one_or_all
from .foreign import (
    KernelPair,
    binary_of,
    kernel_pairs,
    linear_problems,
    linear_terms,
)
from .linear_svc import LinearSVC
from .svc import SVC

__all__ = ["compress"]

T = TypeVar("T", Proof, "_Smaller")

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


def _most(start: T, count: int, trial: Callable[[int], T], limit: float) -> T:
    """The result of the largest number in 0..count whose gap is within the limit.

    By bisection. `start` is the result of 0, and within; `trial` makes the others.
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
            f"tol={tol!r}: the model is within {percent(gap)} of its optimum as it is; "
            "give more, or fit it to a smaller tol first"
        )


def _renewed(old: Certificate, new: Certificate, tol: float) -> Certificate:
    """The story of the old certificate with what was proved of the smaller model."""
    return replace(old, bounds=new.bounds, tol=tol, status=Status.CERTIFIED)


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
    pairs = [binary.rows.coef(proof.w) for proof in found]
    smaller.coef_ = np.stack([coef for coef, _ in pairs])
    smaller.intercept_ = np.array([bias for _, bias in pairs])
    table = binary.pack([proof.alpha for proof in found])
    smaller.support_ = np.flatnonzero(table.any(axis=0))
    smaller.n_support_ = np.array(
        [np.count_nonzero(_same(y, k)[smaller.support_]) for k in model.classes_],
        dtype=np.int32,
    )
    smaller.dual_coef_ = table[:, smaller.support_]
    smaller.certificate_ = one_or_all(
        [
            _renewed(old, proof.certificate, tol)
            for old, proof in zip(_certificates(model), found, strict=True)
        ]
    )


def _same(y: ArrayLike, label: Any) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.asarray(y) == label
    return found


def _smaller_linear(problem: Problem, w: Vector, alpha: Vector, tol: float) -> Proof:
    """Coefficients, duals, and what both prove."""
    whole = problem.prove(w, alpha)
    _refuse_less(whole.certificate.relative_gap, tol)
    support = np.flatnonzero(alpha)
    rising = support[np.argsort(alpha[support], kind="stable")]

    def without_rows(count: int) -> Proof:
        fewer = alpha.copy()
        fewer[rising[:count]] = 0.0
        return problem.prove(w, fewer)

    half = 0.5 * (max(whole.certificate.relative_gap, 0.0) + tol)
    thinner = _most(whole, len(rising), without_rows, half)

    used = np.flatnonzero(w[: problem.d])
    weakest = used[np.argsort(np.abs(w[used]), kind="stable")]

    def without_columns(count: int) -> Proof:
        fewer = w.copy()
        fewer[weakest[:count]] = 0.0
        return problem.prove(fewer, thinner.alpha)

    return _most(thinner, len(weakest), without_columns, tol)


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
        signed, bias[p], proof = _smaller_kernel(pair, tol)
        certificates.append(_renewed(old, proof, tol))
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


class _Smaller(NamedTuple):
    """Coefficients at the rows, bias, and what is proved of them."""

    coef: Vector
    bias: float
    certificate: Certificate


def _smaller_kernel(pair: KernelPair, tol: float) -> _Smaller:
    problem = pair.problem
    dual = problem.certify(pair.alpha)
    whole = problem.certify_model(pair.coef, pair.bias).with_dual_of(dual)
    _refuse_less(whole.relative_gap, tol)
    sizes = problem.gram.diagonal()
    _refuse_beyond_float32(float(sizes.max()))
    order = _by_what_they_add(pair)

    def spanned(dropped: int) -> _Smaller:
        left = np.sort(order[: len(order) - dropped])
        coef, bias = np.zeros(problem.n), pair.bias
        if sizes[left].any():  # else they span nothing
            linear = over(problem, left)
            coef, bias = linear.expand(solve(linear, Auto(), tol=0.1 * tol).w)
        proof = problem.certify_model(coef, bias).with_dual_of(dual)
        return _Smaller(coef, bias, proof)

    start = _Smaller(pair.coef, pair.bias, whole)
    # One landmark is the least that there can be.
    return _most(start, max(len(order) - 1, 0), spanned, tol)


def _refuse_beyond_float32(size: float) -> None:
    """Refuse kernel values of which float32, which trials compute in, holds nothing."""
    limits = np.finfo(np.float32)
    if size > 0.0 and not limits.tiny <= size <= limits.max:
        raise ValueError(
            f"model: its kernel values reach {size:.3g}, outside of the float32 range "
            "that compress computes in; scale the kernel, and C by the inverse"
        )


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
