"""Kernel functions k(x, z), as records of their parameters.

Names and formulas agree with scikit-learn's ``SVC``. ``gamma`` is a number, or a rule
from which :meth:`Kernel.resolve` computes a number for the training data:

"scale"          1 / (d Var(X)), Var over all entries; 1 if the entries do not vary
"auto"           1 / d
"mean-distance"  1 / mean over all pairs i != j of ||x_i - x_j||^2, computed exactly
                 from n/(n - 1) 2 sum_j Var(X_j); the default of Nanculef et al. 2014
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable as Function
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from .. import core
from ..checks import check_count, refuse_huge
from ..data.blocks import RowSource
from ..data.rows import Points, accessor_of
from ..data.types import Matrix, MatrixLike

Block = NDArray[np.floating]
Gamma = float | Literal["scale", "auto", "mean-distance"]

#: Rows of a matrix, as an index.
Rows = slice | Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]

#: Computes the kernel values of all pairs of rows. They may be any objects.
KernelFunction = Function[[MatrixLike, MatrixLike], MatrixLike]


class Kernel(ABC):
    """Base of the kernel records."""

    name: ClassVar[str]

    @property
    def positive(self) -> bool:
        """Whether the formula makes every kernel matrix positive semidefinite."""
        return False

    @property
    def form(self) -> core.KernelMap | None:
        """Record of this kernel in the core; None if Python computes it."""
        return None

    def roundings(self, entries: int) -> float:
        """Return a bound on the rounding error of the core's float64 kernel values.

        It is 0 where the certificate is about the computed values themselves: for a
        precomputed matrix, a Python function, and kernels whose matrix has to be
        checked to be positive semidefinite. It is 0 for exponential kernels too, as
        :meth:`dualgap.kernel.Gram.times` bounds the errors of their sums.

        Parameters
        ----------
        entries : int
            Largest number of stored entries of a row.

        Returns
        -------
        float
            In units of ``2**-53 sqrt(k(x, x) k(z, z))``.
        """
        return 0.0

    def resolve(self, X: MatrixLike, rows: Rows | None = None) -> Kernel:
        """Return this kernel with ``gamma`` as a number.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, d)
            Not used if gamma is a number already.
        rows : index, optional
            The training rows among the rows of X; all of them by default. They count
            equally, whatever their weights, as in scikit-learn.
        """
        gamma = getattr(self, "gamma", 1.0)
        if not isinstance(gamma, str):
            return self
        used = X if rows is None else X[rows]
        return replace(self, gamma=resolve_gamma(gamma, used))  # type: ignore[type-var]

    def block(
        self,
        X: MatrixLike,
        rows: Rows,
        Y: MatrixLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> Block:
        """Return ``k(x_i, z_j)`` for the rows i of X and all rows j of Y.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, d)
        rows : array of int or slice
            Rows of X.
        Y : ndarray or sparse matrix of shape (m, d), optional
            Defaults to X.
        dtype : float32 or float64, optional
            Type of the products and of the result. Defaults to the dtype of X.

        Returns
        -------
        ndarray of shape (len(rows), m)

        Raises
        ------
        ValueError
            If gamma is still a rule (call :meth:`resolve` first), or the dtype is
            neither float32 nor float64.
        """
        gamma = getattr(self, "gamma", 1.0)
        if isinstance(gamma, str):
            raise ValueError(f"gamma={gamma!r}: use kernel.resolve(X) first")
        dtype = np.dtype(dtype or X.dtype)
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype}: use float32 or float64")
        left = X[rows].astype(dtype, copy=False)
        right = (X if Y is None else Y).astype(dtype, copy=False)
        if sparse.issparse(left) != sparse.issparse(right):
            left, right = sparse.csr_matrix(left), sparse.csr_matrix(right)
        return self._block(left, right)

    @abstractmethod
    def _block(self, A: Matrix, B: Matrix) -> Block:
        """Return ``k(a_i, b_j)`` for all rows, in the dtype of A and B."""

    def diagonal(self, X: MatrixLike) -> NDArray[np.float64]:
        """Return ``k(x_i, x_i)``, shape (n,), float64."""
        return np.array(
            [float(self.block(X, [i], X[i : i + 1], np.float64)[0, 0])
             for i in range(X.shape[0])]
        )  # fmt: skip


#: Kernels as users pass them: a name, a record, or a function.
KernelLike = str | Kernel | KernelFunction


@dataclass(frozen=True)
class Linear(Kernel):
    """Linear kernel ``x.z``."""

    name: ClassVar[str] = "linear"

    @property
    def positive(self) -> bool:
        return True

    @property
    def form(self) -> core.KernelMap:
        return core.KernelMap(self.name, 1.0, 0.0, 1)

    def roundings(self, entries: int) -> float:
        # At worst the products are added one after the other, and each is rounded.
        return entries + 4.0

    def _block(self, A: Matrix, B: Matrix) -> Block:
        return products(A, B)

    def diagonal(self, X: MatrixLike) -> NDArray[np.float64]:
        return squared_norms(X)


class _Scaled(Kernel):
    """Base of kernels with a scale, and perhaps a constant and a degree."""

    gamma: Gamma
    coef0: float = 0.0
    degree: int = 1

    def __post_init__(self) -> None:
        check_count("degree", self.degree)
        check_gamma(self.gamma)
        check_coef0(self.coef0)

    @property
    def form(self) -> core.KernelMap:
        assert not isinstance(self.gamma, str)
        return core.KernelMap(
            self.name, float(self.gamma), float(self.coef0), int(self.degree)
        )

    def _shift(self, values: Block) -> None:
        """Replace values by ``gamma values + coef0``."""
        assert not isinstance(self.gamma, str)
        values *= self.gamma
        values += self.coef0


@dataclass(frozen=True)
class _Exponential(_Scaled):
    """Base of ``exp(-gamma d(x, z))``, with values from 0 to 1."""

    gamma: Gamma = "scale"

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    @property
    def positive(self) -> bool:
        return True

    def _block(self, A: Matrix, B: Matrix) -> Block:
        # The core computes distances without cancellation.
        both = sparse.vstack([A, B], "csr") if sparse.issparse(A) else np.vstack([A, B])
        m, n = A.shape[0], B.shape[0]
        out = np.empty(m * n)
        order = np.arange(m + n, dtype=np.uint32)
        dense = not sparse.issparse(both)
        rows = core.KernelRows(accessor_of(both), self.form, None, dense, 1)
        core.Gram(rows, 2).block(order[:m], order[m:], out)
        return out.reshape(m, n).astype(A.dtype, copy=False)

    def diagonal(self, X: MatrixLike) -> NDArray[np.float64]:
        return np.ones(X.shape[0])


@dataclass(frozen=True)
class RBF(_Exponential):
    """Gaussian kernel ``exp(-gamma ||x - z||^2)``.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "mean-distance"}, default="scale"
        Positive.
    """

    name: ClassVar[str] = "rbf"


@dataclass(frozen=True)
class Laplacian(_Exponential):
    """Laplacian kernel ``exp(-gamma ||x - z||_1)``.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "mean-distance"}, default="scale"
        Positive.
    """

    name: ClassVar[str] = "laplacian"


@dataclass(frozen=True)
class Polynomial(_Scaled):
    """Polynomial kernel ``(gamma x.z + coef0)**degree``; homogeneous if ``coef0=0``.

    Parameters
    ----------
    degree : int, default=3
        1 or more.
    gamma : float or {"scale", "auto", "mean-distance"}, default="scale"
        Positive.
    coef0 : float, default=0.0
        With a negative value the kernel is indefinite.
    """

    degree: int = 3
    gamma: Gamma = "scale"
    coef0: float = 0.0

    name: ClassVar[str] = "poly"

    @property
    def positive(self) -> bool:
        return self.coef0 >= 0.0

    def roundings(self, entries: int) -> float:
        # (gamma ||x|| ||z|| + coef0)^2 <= (gamma ||x||^2 + coef0) (gamma ||z||^2 +
        # coef0). Each factor has the error of the product and of scaling the entries.
        return self.degree * (entries + 10.0) if self.positive else 0.0

    def _block(self, A: Matrix, B: Matrix) -> Block:
        out = products(A, B)
        self._shift(out)
        return np.power(out, self.degree, out=out)

    def diagonal(self, X: MatrixLike) -> NDArray[np.float64]:
        out = squared_norms(X)
        self._shift(out)
        return out**self.degree


@dataclass(frozen=True)
class Sigmoid(_Scaled):
    """Sigmoid kernel ``tanh(gamma x.z + coef0)``; indefinite for most data.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "mean-distance"}, default="scale"
        Positive.
    coef0 : float, default=0.0
    """

    gamma: Gamma = "scale"
    coef0: float = 0.0

    name: ClassVar[str] = "sigmoid"

    def _block(self, A: Matrix, B: Matrix) -> Block:
        out = products(A, B)
        self._shift(out)
        return np.tanh(out, out=out)

    def diagonal(self, X: MatrixLike) -> NDArray[np.float64]:
        out = squared_norms(X)
        self._shift(out)
        return np.tanh(out)


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Precomputed kernel: the matrix X is the kernel matrix itself.

    For training X is square, ``X[i, j] = k(x_i, x_j)``. For prediction Y has one row
    per new point and one column per training row.
    """

    name: ClassVar[str] = "precomputed"

    def block(
        self,
        X: MatrixLike,
        rows: Rows,
        Y: MatrixLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> Block:
        out = X[rows] if Y is None else Y[:, rows].T
        if sparse.issparse(out):
            out = out.toarray()
        return np.ascontiguousarray(out, dtype=dtype or X.dtype)

    def _block(self, A: Matrix, B: Matrix) -> Block:
        raise NotImplementedError

    def diagonal(self, X: MatrixLike) -> NDArray[np.float64]:
        return np.asarray(X.diagonal(), dtype=np.float64).copy()


@dataclass(frozen=True)
class Callable(Kernel):
    """Kernel computed by a Python function, as in scikit-learn's SVC.

    Parameters
    ----------
    function : callable
        ``function(A, B)`` returns the kernel values of all rows of A and all rows of B:
        a finite array of shape (len(A), len(B)). The kernel must be symmetric. The rows
        may be any objects, such as strings.
    """

    function: KernelFunction

    name: ClassVar[str] = "callable"

    def _block(self, A: Matrix, B: Matrix) -> Block:
        return self.values(A, B, A.dtype)

    def values(
        self, A: MatrixLike, B: MatrixLike, dtype: DTypeLike = np.float64
    ) -> Block:
        """Return the values of all pairs of an item of A and an item of B.

        Parameters
        ----------
        A, B : array, sparse matrix, dataframe or sequence
            Rows, or any objects that the function knows.
        dtype : float32 or float64, default=float64

        Returns
        -------
        ndarray of shape (len(A), len(B))

        Raises
        ------
        ValueError
            If the function returns anything but a finite real number for each pair, or
            takes two single rows.
        """
        out = self.call(A, B)
        if np.iscomplexobj(out):
            raise ValueError(
                "kernel: the function returned complex values; return real ones"
            )
        out, shape = np.array(out, dtype=dtype, order="C"), (_length(A), _length(B))
        if out.shape != shape:
            raise ValueError(
                f"kernel: the function returned shape {out.shape} for matrices of "
                f"{shape[0]} and {shape[1]} rows; expected one value per pair"
            )
        if not np.isfinite(out).all():
            raise ValueError(
                "kernel: the function returned NaN or infinite values; return finite "
                "ones"
            )
        return out

    def call(self, A: MatrixLike, B: MatrixLike) -> MatrixLike:
        """Call the function, and refuse one that takes two single rows."""
        try:
            out = self.function(A, B)
        except Exception as error:
            self._refuse_rows(A, B, cause=error)
            raise
        if sparse.issparse(out):
            out = out.toarray()
        shape = (_length(A), _length(B))
        # For a square B a function of two rows, such as a @ b, returns this shape too.
        square = getattr(B, "shape", ())[1:] == shape[1:]
        if square or np.shape(out) != shape:
            self._refuse_rows(A, B, out)
        return out

    def _refuse_rows(
        self,
        A: MatrixLike,
        B: MatrixLike,
        out: MatrixLike | None = None,
        cause: Exception | None = None,
    ) -> None:
        """Raise an error if the function returns a number for two single rows.

        A function of matrices may do so too. It then returns the entry of `out`.
        """
        try:
            value = self.function(_first(A), _first(B))
            rows = np.ndim(value) == 0 and np.isreal(value)
            if rows and out is not None and np.ndim(out) == 2:
                rows = not np.isclose(value, out[0][0])
        except Exception:
            return
        if rows:
            raise ValueError(
                "kernel: the function takes two single rows, but gets two matrices; "
                "return the values of all pairs of their rows, such as A @ B.T"
            ) from cause


def _length(X: MatrixLike) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _first(X: MatrixLike) -> object:
    """Return the first row of a matrix or dataframe, or the first item."""
    if sparse.issparse(X):
        return X[:1].toarray()[0]
    return getattr(X, "iloc", X)[0]


def takes_items(kernel: KernelLike | None, X: MatrixLike) -> bool:
    """Whether a kernel function gets X as it is, because its rows are not numbers."""
    if not (isinstance(kernel, Callable) or callable(kernel)):
        return False
    if isinstance(X, (Points, RowSource)) or sparse.issparse(X):
        return False
    try:
        values = np.asarray(X)
    except Exception:  # rows of unlike lengths, or objects that NumPy reads as arrays
        return True
    if values.ndim == 0:
        raise TypeError(
            f"X is of type {type(X).__name__}; give an array, or a list of objects "
            "that the kernel function knows"
        )
    if values.size == 0:
        return False
    if values.dtype == object and values.ndim == 2:
        return not all(isinstance(value, Real) for value in values.flat)
    return values.ndim != 2 or values.dtype.kind not in "biufc"


def refuse_items(who: str) -> NoReturn:
    """Raise an error where objects that only a kernel function knows are of no use."""
    raise ValueError(
        f"{who} needs rows of numbers, but the kernel function takes other objects; "
        "train with kernel='precomputed' on the matrix of its values"
    )


def products(A: Matrix, B: Matrix) -> Block:
    """Return the products ``a_i . b_j`` of all rows as a dense array."""
    out = A @ B.T
    return out.toarray() if sparse.issparse(out) else np.asarray(out)


def squared_norms(X: MatrixLike) -> NDArray[np.float64]:
    """Return ``||x_i||^2``, shape (n,), float64."""
    if sparse.issparse(X):
        squares = X.astype(np.float64).power(2)
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def resolve_gamma(rule: str, X: MatrixLike) -> float:
    """Return the gamma that a rule gives for X; the module docstring has the formulas.

    `X`: shape (n, d).
    """
    n, d = X.shape
    if rule == "auto" or d == 0:
        return 1.0 / max(d, 1)
    if rule == "scale":
        inverse = d * _variance(X)
    else:
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        if sparse.issparse(X):
            spread = float(squared_norms(X).mean()) - float(mean @ mean)
        else:
            spread = float(squared_norms(X - mean).mean())
        inverse = 2.0 * spread * n / max(n - 1, 1)
    # Rows that do not vary give gamma 1, as in scikit-learn.
    return 1.0 / inverse if inverse > 0.0 else 1.0


def _variance(X: MatrixLike) -> float:
    """Return the variance of all entries, those that a sparse matrix leaves out too."""
    if not sparse.issparse(X):
        return float(np.var(X, dtype=np.float64))
    stored, entries = X.data.astype(np.float64), X.shape[0] * X.shape[1]
    mean = float(stored.sum()) / entries
    zeros = entries - len(stored)
    return float(((stored - mean) ** 2).sum() + zeros * mean**2) / entries


def check_gamma(gamma: object) -> None:
    """Check that gamma is the name of a rule or a positive, finite number."""
    refuse_huge("gamma", gamma)
    if isinstance(gamma, str):
        if gamma in ("scale", "auto", "mean-distance"):
            return
    elif isinstance(gamma, (int, float, np.number)) and 0.0 < gamma < math.inf:
        return
    raise ValueError(
        f"gamma={gamma!r}: use 'scale', 'auto', 'mean-distance' or a positive number"
    )


def check_coef0(coef0: object) -> None:
    """Check that coef0 is a finite number."""
    refuse_huge("coef0", coef0)
    if not (isinstance(coef0, (int, float, np.number)) and math.isfinite(coef0)):
        raise ValueError(f"coef0={coef0!r}: give a finite number")
