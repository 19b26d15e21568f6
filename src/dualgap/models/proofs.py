"""Proof files, which the separate program ``dualgap-check`` checks exactly."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from numbers import Real
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_n_features

from dualgap_check import BITS, Proof, claim_of

from ..certificate import Bounds, Certificate
from ..data.atomic import check_target, write_atomically
from ..data.scaling import Scaling
from ..data.types import MatrixLike
from ..estimators import SVC, SVR, LinearSVC, LinearSVR
from ..estimators import originals as svm
from ..estimators.base import taken_apart
from ..estimators.fitted import (
    FittedProblem,
    binary_of,
    kernel_of,
    kernel_pairs,
    linear_problems,
    single_kernel,
    table_of,
    targets,
)
from ..estimators.input import check_array, checking, encode
from ..kernels.functions import Polynomial, refuse_items
from ..losses import Hinge, SquaredHinge, Vector, get_loss
from ..problems.reductions import OneVsOne, OneVsRest, certificate_of, refuse_others
from .linear import linear_terms
from .single_problems import single_terms

_CLASSIFIERS = (LinearSVC, svm.LinearSVC, SGDClassifier)
_REGRESSORS = (LinearSVR, svm.LinearSVR)
_KERNEL_CLASSIFIERS = (SVC, svm.SVC)

# Bits of the largest entry of w and of alpha. Smaller entries have the same grid.
_BITS = 53


class _Part(NamedTuple):
    """One problem of a model, with its points and the part that it has in the file."""

    sides: str  # classes: positive and negative, -1 for all others
    problem: Any
    w: Vector
    alpha: Vector
    place: NDArray[np.intp]  # rows of the problem in X
    constant: float  # value of the constant feature; 1 for an unpenalised bias

    def costs(self, n: int) -> Vector:
        """Return the costs of all rows of X, shape (n,), or (1,) if they are equal."""
        cost = self.problem.cost
        if (cost == cost[0]).all():
            return np.asarray(cost[:1])
        every = np.zeros(n)
        every[self.place] = cost
        return every


class _Kernel(NamedTuple):
    """Line of a kernel in a file, and the exponent of its values."""

    text: str
    exponent: int


def _columns_of(scaler: StandardScaler) -> tuple[Vector, Vector]:
    """Return the mean and 1/scale of every column that a fitted scaler changes."""
    mean, scale = Scaling.of_scaler(scaler)
    with np.errstate(over="ignore"):
        factor = 1.0 / scale
    if not np.isfinite(factor).all():
        raise ValueError(
            f"the scale {scale.min():g} of column {scale.argmin()} has no reciprocal "
            "in float64; leave the column out"
        )
    return np.zeros(len(scale)) if mean is None else mean, factor


class _Grid(NamedTuple):
    """Exponents e of the integers in a file; each stands for integer/2**e."""

    x: int
    w: int
    alpha: int
    cost: int
    y: int


@checking(
    {
        "tol": [Interval(Real, 0, None, closed="neither")],
        "data": [str, os.PathLike, None],
        "zero_based": ["boolean"],
    }
)
def write_proof(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    path: str | os.PathLike[str],
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-3,
    data: str | os.PathLike[str] | None = None,
    zero_based: bool = False,
) -> Certificate:
    """Write a file that proves how far a model is from the optimum.

    The file holds the training problem, the rows, the model w and dual variables alpha
    as integers over powers of two, and the exact values of P(w) and D(alpha). The
    program ``dualgap-check`` computes both again in exact integers. It is one file of
    plain Python without any code of this package. With a kernel, alpha and the bias are
    the model; values of the RBF kernel are rounded to 64 bits, and P and D bound what
    that can change.

    w and alpha are rounded to 53 bits of their largest entry first, so the proof is
    about a model that differs from `model` by less than its own rounding.

    In a pipeline, a `StandardScaler` before the model is part of the proof: the file
    holds the rows that it takes, and the mean and 1/scale of every column. Rows that
    other steps have changed are in the file as the model saw them.

    Parameters
    ----------
    model : estimator
        A fitted `LinearSVC` or `LinearSVR` of dualgap or scikit-learn, a
        `SGDClassifier`, an `SVC` of dualgap or scikit-learn, or an `SVR` of dualgap,
        alone or at the end of a pipeline or search. The loss must be the hinge, its
        square, or an epsilon-insensitive loss, and the kernel linear, RBF or polynomial
        with `coef0` zero or more.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Training labels or targets.
    path : str or path-like
        File to write; an existing file is replaced.
    sample_weight : array-like of shape (n_samples,), optional
        The sample weights that the model was fitted with.
    tol : float, default=1e-3
        Relative gap to prove. If the dual variables of the model, or those that its
        margins suggest, leave a larger gap, dualgap trains until `tol` to find better
        ones. A model that is far from optimal has a larger gap all the same. A model
        with a kernel is its dual variables, so its gap is what it is.
    data : str or path-like, optional
        The svmlight text that X and y were read from. The file then names its
        checksum, and ``dualgap-check`` can compare it with the rows.
    zero_based : bool, default=False
        Whether the features in `data` are numbered from 0.

    Returns
    -------
    Certificate
        The proved values, rounded outward to float64, one part per binary problem.

    Raises
    ------
    TypeError
        If the type of the model is not supported.
    ValueError
        If the loss, the kernel or the treatment of several classes is not supported, or
        X and y do not fit the model.
    OSError
        If the file cannot be written.

    See Also
    --------
    certify : The same bounds, computed in float64 with rounding counted.

    Notes
    -----
    docs/proof-format.md specifies the file and what is checked.
    """
    steps, model = taken_apart(model)
    refuse_others(model, "write_proof", OneVsRest, OneVsOne)
    check_target(path)
    if hasattr(model, "_items"):
        refuse_items("write_proof")
    scaler = steps.pop() if steps and type(steps[-1]) is StandardScaler else None
    for step in steps:
        X = step.transform(X)
    given = X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,  # the problem checks every entry
    )
    columns = None
    if scaler is not None:
        columns = _columns_of(scaler)
        _check_n_features(scaler, X, reset=False)
        X = Scaling.of_scaler(scaler).apply(X.astype(np.float64))
    if getattr(model, "loss", "") == "quantile":
        raise ValueError(
            "loss='quantile' has no proof file; certificate_ and certify prove the gap"
        )
    if isinstance(model, _REGRESSORS):
        parts, labels = _regression(model, X, y, sample_weight, tol), []
        marks: NDArray[np.generic] = parts[0].problem.target
    elif isinstance(model, (*_CLASSIFIERS, *_KERNEL_CLASSIFIERS)):
        if isinstance(model, _CLASSIFIERS):
            parts = _classification(model, X, y, sample_weight, tol)
        else:
            parts = _with_kernel(model, X, y, sample_weight)
        classes, marks = encode(np.asarray(y))
        labels = classes.tolist()
    elif isinstance(model, SVR):
        parts, labels = _with_kernel(model, X, y, sample_weight), []
        marks = targets(y, X.shape[0])
    else:
        raise TypeError(
            f"{type(model).__name__} has no proof file; use certify, which takes any "
            "SVM, or train LinearSVC, LinearSVR, SVC or SVR"
        )
    content = None
    named = "none"
    if data is not None:
        content = Path(data).read_bytes()
        named = f"{hashlib.sha256(content).hexdigest()} {0 if zero_based else 1}"
    of_kernel = model if isinstance(model, (*_KERNEL_CLASSIFIERS, SVR)) else None
    head, about, body = _text(parts, given, columns, labels, marks, of_kernel)

    def sealed(claims: list[str]) -> bytes:
        lines = ["dualgap-proof 1", f"data {named}", *head]
        for part, claim in zip(about, claims, strict=True):
            lines += [*part, f"claim {claim}"]
        text = "\n".join([*lines, body]).encode()
        return b"%bsha256 %b\n" % (text, hashlib.sha256(text).hexdigest().encode())

    unclaimed = sealed(["?"] * len(parts))
    bounds, claims = _checked(unclaimed, content, os.fspath(data or ""))
    proof = sealed(claims)
    with write_atomically(path) as file:
        file.write(proof)
    found = [
        Bounds.proved(_up(primal), 0.0, -_up(-dual), 0.0).certificate
        for primal, dual in bounds
    ]
    return certificate_of(model, found) if labels else found[0]


def _checked(
    proof: bytes, content: bytes | None, data: str
) -> tuple[list[tuple[Fraction, Fraction]], list[str]]:
    """Return P and D of every part of a proof without claims, and the claims."""
    try:
        pairs = Proof(proof).bounds(content)
        claims = [claim_of(*pair).decode() for pair in pairs]
    except ValueError as error:
        if content is not None:
            _checked(proof, None, data)  # else the fault is in data
            raise ValueError(
                f"X and y are not the rows of data={data!r}: {error}; leave data out"
            ) from None
        raise ValueError(
            f"the numbers of the model and its data do not fit into a proof: {error}; "
            "scale the columns"
        ) from None
    bounds = [(Fraction(p, 1 << e), Fraction(d, 1 << f)) for (p, e), (d, f) in pairs]
    return bounds, claims


def _classification(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    tol: float,
) -> list[_Part]:
    """Return the binary problems of a classifier with their points."""
    terms = linear_terms(model, X.shape[0])
    loss = get_loss(terms.loss or "hinge")
    if not isinstance(loss, (Hinge, SquaredHinge)):
        raise ValueError(
            f"loss={terms.loss!r} has no proof file; train with loss='hinge' or "
            "'squared_hinge'"
        )
    batch = binary_of(terms, X, y, terms.C, sample_weight, None)
    table = table_of(model, X.shape[0])
    parts = []
    for k, one in enumerate(linear_problems(terms, batch, table)):
        subject = batch.reduction.subjects[k]
        if isinstance(batch.reduction, OneVsOne):
            low, high = cast("tuple[int, int]", subject)
            sides = f"{high} {low}"
        else:
            sides = f"{subject} -1"
        parts.append(_linear_part(sides, one, tol))
    return parts


def _regression(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    tol: float,
) -> list[_Part]:
    """Return the problem of a regressor with its points, as a list of one."""
    (terms,) = single_terms(model, X.shape[0], sample_weight)
    table = table_of(model, X.shape[0])
    alpha = None if table is None else table[0]
    one = terms.regression(X, y, terms.C, sample_weight, 1, alpha)
    return [_linear_part("-1 -1", one, tol)]


def _linear_part(sides: str, one: FittedProblem, tol: float) -> _Part:
    constant = one.problem.intercept_scaling
    return _Part(sides, one.problem, one.w, one.duals(tol), one.rows, constant)


def _with_kernel(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> list[_Part]:
    """Return the problems of a kernel model with their points."""
    problems: Iterable[FittedProblem]
    if isinstance(model, SVR):
        sides, problems = ["-1 -1"], single_kernel(model, X, y, sample_weight)
    else:
        pairs = OneVsOne(len(model.classes_)).subjects
        two = len(pairs) == 1
        sides = [f"{j} {i}" if two else f"{i} {j}" for i, j in pairs]
        problems = kernel_pairs(model, X, y, sample_weight)
    parts = []
    for one, side in zip(problems, sides, strict=True):
        problem, alpha = one.problem, cast(Vector, one.alpha)
        constant = 1.0 if problem.free_bias or problem.constant else 0.0
        w = np.append(np.zeros(X.shape[1]), [one.bias] if constant else [])
        parts.append(_Part(side, problem, w, alpha, one.rows, constant))
    return parts


def _kernel_of_file(model: BaseEstimator, x: int) -> _Kernel:
    """Return the kernel of a model, for rows of integers over 2**x."""
    kernel = kernel_of(model)
    form = {"linear": (1.0, 0.0, 1), "rbf": (getattr(kernel, "gamma", 0.0), 0.0, 1)}
    if isinstance(kernel, Polynomial):
        form["poly"] = (kernel.gamma, kernel.coef0, kernel.degree)
    if kernel.name not in form or form[kernel.name][1] < 0.0:
        raise ValueError(
            f"kernel={kernel.name!r} has no proof file; use 'linear', 'rbf' or 'poly', "
            "with coef0 >= 0"
        )
    gamma, coef0, degree = form[kernel.name]
    e = max(_exponent(np.array([gamma])), _exponent(np.array([coef0])) - 2 * x)
    inner = e + 2 * x
    scale, shift = _integers([gamma], e)[0], _integers([coef0], inner)[0]
    if kernel.name == "rbf":
        return _Kernel(f"rbf {scale} {e}", BITS)
    return _Kernel(f"poly {scale} {e} {degree} {shift}", degree * inner)


# -------------------------------------------------------------------------- numbers


def _exponent(values: Vector) -> int:
    """Return the least e >= 0 for which all values times 2**e are integers."""
    values = np.asarray(values, dtype=np.float64)
    fraction, exponent = np.frexp(values[values != 0.0])
    whole = (fraction * 2.0**53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # trailing zero bits
    return max(0, int((53 - exponent - zeros).max(initial=0)))


def _grid_of(values: Vector) -> int:
    """Return the exponent of a grid that gives the largest value 53 bits."""
    largest = float(np.abs(values).max(initial=0.0))
    return max(0, _BITS - math.frexp(largest)[1]) if largest else 0


def _integers(values: ArrayLike, exponent: int, nearest: bool = False) -> list[int]:
    """Return values times 2**exponent, cut to integers or rounded to the nearest."""
    rounded = round if nearest else int
    values = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        scaled = np.ldexp(values, exponent)
    if np.isfinite(scaled).all():
        return list(map(rounded, scaled.tolist()))
    return [rounded(Fraction(value) * 2**exponent) for value in values.tolist()]


def _spread(part: _Part, grid: _Grid, n: int) -> NDArray[np.generic]:
    """Return the dual variables of all rows as integers, rounded into the box.

    With a free bias they balance exactly: rows of the heavier class give up the
    difference, which is a few units.
    """
    inside = _integers(part.alpha, grid.alpha)
    if part.problem.free_bias:
        signs = part.problem.y.tolist()
        off = sum(map(mul, inside, signs))
        heavier = [i for i, sign in enumerate(signs) if inside[i] * sign * off > 0]
        for i in sorted(heavier, key=lambda i: abs(inside[i]), reverse=True):
            less = min(abs(inside[i]), abs(off)) * (1 if off > 0 else -1)
            inside[i] -= less * signs[i]
            off -= less
            if off == 0:
                break
    every = np.zeros(n, dtype=object)
    every[part.place] = inside
    return every


def _up(value: Fraction) -> float:
    """Return a float64 at or above an exact value."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


# ----------------------------------------------------------------------------- text


def _text(
    parts: list[_Part],
    X: MatrixLike,
    columns: tuple[Vector, Vector] | None,
    labels: list[Any],
    marks: NDArray[np.generic],
    of_kernel: BaseEstimator | None,
) -> tuple[list[str], list[list[str]], str]:
    """Return the header, the lines of every part without its claim, and the rows."""
    first, constant = parts[0].problem, parts[0].constant
    rows = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    weights = np.concatenate([part.w[: rows.shape[1]] for part in parts])
    if not weights.any():
        weights = np.concatenate([part.w for part in parts])
    epsilon = 0.0 if labels else first.loss.epsilon
    means, factors = columns or (np.zeros(0), np.ones(0))
    raw = _exponent(np.append(rows.data, means))
    grid = _Grid(
        x=max(raw + _exponent(factors), _exponent(np.array([constant]))),
        w=_grid_of(weights),
        alpha=_grid_of(np.concatenate([part.alpha for part in parts])),
        cost=_exponent(np.concatenate([part.problem.cost for part in parts])),
        y=_exponent(np.append(marks, epsilon)),
    )
    kernel = _Kernel("none", 0)
    if of_kernel is not None:
        kernel = _kernel_of_file(of_kernel, grid.x)
        alpha = max(grid.alpha, grid.w + grid.x - kernel.exponent)
        grid = grid._replace(alpha=alpha, w=alpha + kernel.exponent - grid.x)
    if columns is None:
        raw, scaling = grid.x, ["scaling none"]
    else:
        if kernel.text.startswith("rbf"):  # distances do not depend on them
            means = np.zeros_like(means)
        scaling = [
            f"scaling {raw}",
            f"means {_joined(_integers(means, raw))}",
            f"factors {_joined(_integers(factors, grid.x - raw))}",
        ]
    kind = "free" if first.free_bias else "penalised" if constant else "none"
    head = [
        f"loss {first.loss.name} {_integers([epsilon], grid.y)[0]}",
        f"size {rows.shape[0]} {rows.shape[1]}",
        f"exponents {_joined(grid)}",
        f"bias {kind} {_integers([constant], grid.x)[0]}",
        *scaling,
        f"kernel {kernel.text}",
        f"labels {json.dumps(labels)}",
        f"parts {len(parts)}",
    ]
    about = [
        [
            f"part {part.sides}",
            f"w {_joined(_integers(part.w, grid.w, True))}",
            f"costs {_joined(_integers(part.costs(rows.shape[0]), grid.cost))}",
        ]
        for part in parts
    ]
    duals = np.stack([_spread(part, grid, rows.shape[0]) for part in parts], axis=1)
    lines = _rows(rows, _integers(marks, grid.y), duals, raw)
    return head, about, "\n".join(["rows", *lines, ""])


def _joined(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


def _rows(
    rows: Any, marks: list[int], duals: NDArray[np.generic], exponent: int
) -> Iterator[str]:
    """Yield the line of every row: label and dual variables, columns, values."""
    values = list(map(str, _integers(rows.data, exponent)))
    columns = list(map(str, rows.indices.tolist()))
    ends = rows.indptr.tolist()
    for i, (mark, alpha) in enumerate(zip(marks, duals.tolist(), strict=True)):
        place = slice(ends[i], ends[i + 1])
        fields = _joined([mark, *alpha]), " ".join(columns[place])
        yield ";".join([*fields, " ".join(values[place])])
