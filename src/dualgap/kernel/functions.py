"""Kernel functions k(x, z), as records of their parameters.

The names and formulas are those of scikit-learn's ``SVC``; ``gamma`` may be a number
or a rule that :meth:`Kernel.resolve` turns into one for the data at hand:

"scale"          1 / (d Var(X)), Var over all entries; 1 if the entries do not vary
"auto"           1 / d
"mean-distance"  1 / mean over all pairs i != j of ||x_i - x_j||^2, exactly, from
                 n/(n - 1) 2 sum_j Var(X_j); the default of Nanculef et al. 2014
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable as Function
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .. import core
from ..problem import _rows
from ..solvers.base import check_count

Block = NDArray[Any]
Gamma = float | Literal["scale", "auto", "mean-distance"]


class Kernel(ABC):
    """Base of the kernel records."""

    name: ClassVar[str]

    @property
    def positive(self) -> bool:
        """Whether every kernel matrix is positive semidefinite by its formula."""
        return False

    @property
    def form(self) -> tuple[str, bool, float, float, int] | None:
        """How the core computes it, as in gram/function.hpp; None: Python does.

        (shape, whether of the overlap, gamma, coef0, degree).
        """
        return None

    def roundings(self, entries: int) -> float:
        """How far the core's float64 values may be from the exact ones.

        In units of ``2**-53 sqrt(k(x, x) k(z, z))``. 0 where the values are what they
        are: a matrix, a function, kernels that only a matrix shows to be positive. Sums
        of exponentials have bounds of their own: :meth:`dualgap.kernel.Gram.times`.

        Parameters
        ----------
        entries : int
            The most that are stored of a row.
        """
        return 0.0

    def resolve(self, X: Any, sample_weight: Any = None) -> Kernel:
        """The same kernel with ``gamma`` as a number.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, d)
            Training rows; not looked at when gamma is a number already.
        sample_weight : ndarray of shape (n,), optional
            The integer k is worth k equal rows.

        Returns
        -------
        Kernel
        """
        gamma = getattr(self, "gamma", 1.0)
        if not isinstance(gamma, str):
            return self
        return replace(self, gamma=resolve_gamma(gamma, X, sample_weight))  # type: ignore[type-var]

    def block(self, X: Any, rows: Any, Y: Any = None, dtype: Any = None) -> Block:
        """``k(x_i, z_j)`` for the rows i of X and all rows j of Y.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, d)
        rows : array of int or slice
            Rows of X.
        Y : ndarray or sparse matrix of shape (m, d), optional
            X when left out.
        dtype : float32 or float64, optional
            Of the products and of the result; that of X when left out.

        Returns
        -------
        ndarray of shape (len(rows), m)

        Raises
        ------
        ValueError
            If gamma is still a rule: call :meth:`resolve` first.
        """
        if isinstance(getattr(self, "gamma", 1.0), str):
            raise ValueError(
                f"gamma={self.gamma!r}: use kernel.resolve(X) first"  # type: ignore[attr-defined]
            )
        dtype = np.dtype(dtype or X.dtype)
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype}: use float32 or float64")
        left = X[rows].astype(dtype, copy=False)
        right = X if Y is None else Y
        return self._block(left, right.astype(dtype, copy=False))

    @abstractmethod
    def _block(self, A: Any, B: Any) -> Block:
        """``k(a_i, b_j)`` for all rows, in the dtype of A and B."""

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        """``k(x_i, x_i)``, shape (n,)."""
        return np.array(
            [float(self.block(X, [i], X[i : i + 1], np.float64)[0, 0])
             for i in range(X.shape[0])]
        )  # fmt: skip


@dataclass(frozen=True)
class Linear(Kernel):
    """``x.z``."""

    name: ClassVar[str] = "linear"

    @property
    def positive(self) -> bool:
        return True

    @property
    def form(self) -> tuple[str, bool, float, float, int]:
        return "linear", False, 1.0, 0.0, 1

    def roundings(self, entries: int) -> float:
        # The entries one after the other at most, and their products.
        return entries + 4.0

    def _block(self, A: Any, B: Any) -> Block:
        return products(A, B)

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        return squared_norms(X)


@dataclass(frozen=True)
class RBF(Kernel):
    """``exp(-gamma ||x - z||^2)``.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "mean-distance"}, default="scale"
        Positive.
    """

    gamma: Gamma = "scale"

    name: ClassVar[str] = "rbf"

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    @property
    def positive(self) -> bool:
        return True

    @property
    def form(self) -> tuple[str, bool, float, float, int]:
        assert not isinstance(self.gamma, str)
        return "exponential", False, self.gamma, 0.0, 1

    def _block(self, A: Any, B: Any) -> Block:
        return _exponentials(self, A, B)

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        return np.ones(X.shape[0])


@dataclass(frozen=True)
class Polynomial(Kernel):
    """``(gamma x.z + coef0)**degree``; homogeneous with ``coef0=0``.

    Parameters
    ----------
    degree : int, default=3
        1 or more.
    gamma : float or {"scale", "auto", "mean-distance"}, default="scale"
        Positive.
    coef0 : float, default=0.0
        Below 0 the kernel is indefinite.
    """

    degree: int = 3
    gamma: Gamma = "scale"
    coef0: float = 0.0

    name: ClassVar[str] = "poly"

    def __post_init__(self) -> None:
        check_count("degree", self.degree)
        check_gamma(self.gamma)
        check_coef0(self.coef0)

    @property
    def positive(self) -> bool:
        return self.coef0 >= 0.0

    @property
    def form(self) -> tuple[str, bool, float, float, int]:
        assert not isinstance(self.gamma, str)
        return "power", False, self.gamma, self.coef0, self.degree

    def roundings(self, entries: int) -> float:
        # (gamma ||x|| ||z|| + coef0)^2 <= (gamma ||x||^2 + coef0) times that of z. Each
        # factor has the error of the product and of the scale of the entries.
        return self.degree * (entries + 10.0) if self.positive else 0.0

    def _block(self, A: Any, B: Any) -> Block:
        assert not isinstance(self.gamma, str)
        out = products(A, B)
        out *= self.gamma
        out += self.coef0
        return np.power(out, self.degree, out=out)

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        assert not isinstance(self.gamma, str)
        return (self.gamma * squared_norms(X) + self.coef0) ** self.degree


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """``tanh(gamma x.z + coef0)``; indefinite for most data.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "mean-distance"}, default="scale"
        Positive.
    coef0 : float, default=0.0
    """

    gamma: Gamma = "scale"
    coef0: float = 0.0

    name: ClassVar[str] = "sigmoid"

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_coef0(self.coef0)

    @property
    def form(self) -> tuple[str, bool, float, float, int]:
        assert not isinstance(self.gamma, str)
        return "tanh", False, self.gamma, self.coef0, 1

    def _block(self, A: Any, B: Any) -> Block:
        assert not isinstance(self.gamma, str)
        out = products(A, B)
        out *= self.gamma
        out += self.coef0
        return np.tanh(out, out=out)

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        assert not isinstance(self.gamma, str)
        return np.tanh(self.gamma * squared_norms(X) + self.coef0)


@dataclass(frozen=True)
class Laplacian(Kernel):
    """``exp(-gamma ||x - z||_1)``.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "mean-distance"}, default="scale"
        Positive.
    """

    gamma: Gamma = "scale"

    name: ClassVar[str] = "laplacian"

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    @property
    def positive(self) -> bool:
        return True

    @property
    def form(self) -> tuple[str, bool, float, float, int]:
        assert not isinstance(self.gamma, str)
        return "exponential", True, self.gamma, 0.0, 1

    def _block(self, A: Any, B: Any) -> Block:
        return _exponentials(self, A, B)

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        return np.ones(X.shape[0])


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The matrix X is the kernel matrix itself.

    For training it is square, ``X[i, j] = k(x_i, x_j)``; to predict, Y has one row
    per new point and a column per training row.
    """

    name: ClassVar[str] = "precomputed"

    def block(self, X: Any, rows: Any, Y: Any = None, dtype: Any = None) -> Block:
        out = X[rows] if Y is None else Y[:, rows].T
        if sparse.issparse(out):
            out = out.toarray()
        return np.ascontiguousarray(out, dtype=dtype or X.dtype)

    def _block(self, A: Any, B: Any) -> Block:
        raise NotImplementedError

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(X.diagonal(), dtype=np.float64).copy()


@dataclass(frozen=True)
class Callable(Kernel):
    """A function of two matrices, as scikit-learn's SVC takes one.

    Parameters
    ----------
    function : callable
        ``function(A, B)`` returns the kernel of all rows of A and all rows of B, an
        array of shape (len(A), len(B)), symmetric and finite.
    """

    function: Function[[Any, Any], Any]

    name: ClassVar[str] = "callable"

    def _block(self, A: Any, B: Any) -> Block:
        out = self.function(A, B)
        if sparse.issparse(out):
            out = out.toarray()
        if np.iscomplexobj(out):
            raise ValueError(
                "kernel: the function returned complex values; return real ones"
            )
        out = np.array(out, dtype=A.dtype, order="C")
        if out.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"kernel: the function returned shape {out.shape} for matrices of "
                f"{A.shape[0]} and {B.shape[0]} rows; expected one value per pair"
            )
        if not np.isfinite(out).all():
            raise ValueError("kernel: the function returned NaN or infinite values")
        return out


def _exponentials(kernel: Kernel, A: Any, B: Any) -> Block:
    """Values of an exponential kernel, by the core: no distance cancels there."""
    assert kernel.form is not None
    both = sparse.vstack([A, B], "csr") if sparse.issparse(A) else np.vstack([A, B])
    rows, _, _ = _rows(both, 0.0)
    m, n = A.shape[0], B.shape[0]
    out = np.empty(m * n)
    order = np.arange(m + n, dtype=np.uint32)
    core.rows_gram(rows, *kernel.form, 2).block(order[:m], order[m:], out)
    return out.reshape(m, n).astype(A.dtype, copy=False)


def products(A: Any, B: Any) -> Block:
    """Return ``a_i . b_j`` of all rows, dense."""
    out = A @ B.T
    return out.toarray() if sparse.issparse(out) else np.asarray(out)


def squared_norms(X: Any) -> NDArray[np.float64]:
    """``||x_i||^2`` in float64, shape (n,)."""
    if sparse.issparse(X):
        squares = X.astype(np.float64).power(2)
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def resolve_gamma(rule: str, X: Any, sample_weight: Any = None) -> float:
    """The number that "scale", "auto" or "mean-distance" stands for; module doc.

    Parameters
    ----------
    rule : {"scale", "auto", "mean-distance"}
    X : ndarray or sparse matrix of shape (n, d)
    sample_weight : ndarray of shape (n,), optional
        The integer k is worth k equal rows.

    Returns
    -------
    float
    """
    n, d = X.shape
    if rule == "auto":
        return 1.0 / max(d, 1)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight)
    total = float(weight.sum())
    mean = np.asarray(weight @ X, dtype=np.float64).ravel() / total
    if sparse.issparse(X):
        spread = float(weight @ squared_norms(X)) / total - float(mean @ mean)
    else:
        spread = float(weight @ squared_norms(X - mean)) / total
    if rule == "scale":
        # Over all entries: within the columns, and between their means.
        variance = spread / max(d, 1) + float(np.var(mean)) if d else 0.0
        # As scikit-learn: zero variance stands for 1.
        return 1.0 / (d * variance) if variance > 0.0 else 1.0
    # Pairs of different rows; weights that sum to little are not counts of rows.
    distance = 2.0 * spread * total / max(total - 1.0, 0.5 * total)
    return 1.0 / distance if distance > 0.0 else 1.0


def check_gamma(gamma: object) -> None:
    """Refuse a gamma that is neither a rule nor a positive, finite number.

    Raises
    ------
    ValueError
    """
    if isinstance(gamma, str):
        if gamma in ("scale", "auto", "mean-distance"):
            return
    elif isinstance(gamma, (int, float, np.number)) and 0.0 < gamma < math.inf:
        return
    raise ValueError(
        f"gamma={gamma!r}: use 'scale', 'auto', 'mean-distance' or a positive number"
    )


def check_coef0(coef0: object) -> None:
    """Refuse a coef0 that is not a finite number.

    Raises
    ------
    ValueError
    """
    if not (isinstance(coef0, (int, float, np.number)) and math.isfinite(coef0)):
        raise ValueError(f"coef0={coef0!r}: give a finite number")
