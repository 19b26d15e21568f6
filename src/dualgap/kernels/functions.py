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
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from .. import core
from ..checks import check_count
from ..data.rows import accessor_of
from ..data.types import Matrix, MatrixLike

Block = NDArray[np.floating]
Gamma = float | Literal["scale", "auto", "mean-distance"]

#: Rows of a matrix, as an index.
Rows = slice | Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]

#: Computes the kernel values of all rows of two matrices.
KernelFunction = Function[[Matrix, Matrix], MatrixLike]


class Kernel(ABC):
    """Base of the kernel records."""

    name: ClassVar[str]

    @property
    def positive(self) -> bool:
        """Whether the formula makes every kernel matrix positive semidefinite."""
        return False

    @property
    def form(self) -> tuple[str, bool, float, float, int] | None:
        """Arguments with which the core computes this kernel (gram/function.hpp).

        They are (shape, whether it is a function of the overlap, gamma, coef0, degree).
        None if Python computes the kernel.
        """
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

    def resolve(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> Kernel:
        """Return this kernel with ``gamma`` as a number.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, d)
            Training rows. Not used if gamma is a number already.
        sample_weight : ndarray of shape (n,), optional
            A row of integer weight k is worth k equal rows.
        """
        gamma = getattr(self, "gamma", 1.0)
        if not isinstance(gamma, str):
            return self
        return replace(self, gamma=resolve_gamma(gamma, X, sample_weight))  # type: ignore[type-var]

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
        if isinstance(getattr(self, "gamma", 1.0), str):
            raise ValueError(
                f"gamma={self.gamma!r}: use kernel.resolve(X) first"  # type: ignore[attr-defined]
            )
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
    def form(self) -> tuple[str, bool, float, float, int]:
        return "linear", False, 1.0, 0.0, 1

    def roundings(self, entries: int) -> float:
        # At worst the products are added one after the other, and each is rounded.
        return entries + 4.0

    def _block(self, A: Matrix, B: Matrix) -> Block:
        return products(A, B)

    def diagonal(self, X: MatrixLike) -> NDArray[np.float64]:
        return squared_norms(X)


@dataclass(frozen=True)
class _Exponential(Kernel):
    """Base of ``exp(-gamma d(x, z))``, with values from 0 to 1."""

    gamma: Gamma = "scale"

    overlap: ClassVar[bool]  # of the form

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    @property
    def positive(self) -> bool:
        return True

    @property
    def form(self) -> tuple[str, bool, float, float, int]:
        assert not isinstance(self.gamma, str)
        return "exponential", self.overlap, self.gamma, 0.0, 1

    def _block(self, A: Matrix, B: Matrix) -> Block:
        # The core computes distances without cancellation.
        both = sparse.vstack([A, B], "csr") if sparse.issparse(A) else np.vstack([A, B])
        m, n = A.shape[0], B.shape[0]
        out = np.empty(m * n)
        order = np.arange(m + n, dtype=np.uint32)
        function = core.KernelFunction(*self.form)
        gram = core.rows_gram(accessor_of(both), function, 2)
        gram.block(order[:m], order[m:], out)
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
    overlap: ClassVar[bool] = False


@dataclass(frozen=True)
class Laplacian(_Exponential):
    """Laplacian kernel ``exp(-gamma ||x - z||_1)``.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "mean-distance"}, default="scale"
        Positive.
    """

    name: ClassVar[str] = "laplacian"
    overlap: ClassVar[bool] = True


@dataclass(frozen=True)
class Polynomial(Kernel):
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
        # (gamma ||x|| ||z|| + coef0)^2 <= (gamma ||x||^2 + coef0) (gamma ||z||^2 +
        # coef0). Each factor has the error of the product and of scaling the entries.
        return self.degree * (entries + 10.0) if self.positive else 0.0

    def _block(self, A: Matrix, B: Matrix) -> Block:
        assert not isinstance(self.gamma, str)
        out = products(A, B)
        out *= self.gamma
        out += self.coef0
        return np.power(out, self.degree, out=out)

    def diagonal(self, X: MatrixLike) -> NDArray[np.float64]:
        assert not isinstance(self.gamma, str)
        return (self.gamma * squared_norms(X) + self.coef0) ** self.degree


@dataclass(frozen=True)
class Sigmoid(Kernel):
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

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_coef0(self.coef0)

    @property
    def form(self) -> tuple[str, bool, float, float, int]:
        assert not isinstance(self.gamma, str)
        return "tanh", False, self.gamma, self.coef0, 1

    def _block(self, A: Matrix, B: Matrix) -> Block:
        assert not isinstance(self.gamma, str)
        out = products(A, B)
        out *= self.gamma
        out += self.coef0
        return np.tanh(out, out=out)

    def diagonal(self, X: MatrixLike) -> NDArray[np.float64]:
        assert not isinstance(self.gamma, str)
        return np.tanh(self.gamma * squared_norms(X) + self.coef0)


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
        a finite array of shape (len(A), len(B)). The kernel must be symmetric.
    """

    function: KernelFunction

    name: ClassVar[str] = "callable"

    def _block(self, A: Matrix, B: Matrix) -> Block:
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
            raise ValueError(
                "kernel: the function returned NaN or infinite values; return finite "
                "ones"
            )
        return out


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


def resolve_gamma(
    rule: str, X: MatrixLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return the gamma that a rule gives for X; the module docstring has the formulas.

    Parameters
    ----------
    rule : {"scale", "auto", "mean-distance"}
    X : ndarray or sparse matrix of shape (n, d)
    sample_weight : ndarray of shape (n,), optional
        A row of integer weight k is worth k equal rows.
    """
    n, d = X.shape
    if rule == "auto":
        return 1.0 / max(d, 1)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight)
    total = float(weight.sum())
    if total == 0.0:
        raise ValueError("sample_weight is zero everywhere; give a positive weight")
    mean = np.asarray(weight @ X, dtype=np.float64).ravel() / total
    if sparse.issparse(X):
        spread = float(weight @ squared_norms(X)) / total - float(mean @ mean)
    else:
        spread = float(weight @ squared_norms(X - mean)) / total
    if rule == "scale":
        # Variance over all entries: within the columns plus between their means.
        variance = spread / max(d, 1) + float(np.var(mean)) if d else 0.0
        # Zero variance gives gamma 1, as in scikit-learn.
        return 1.0 / (d * variance) if variance > 0.0 else 1.0
    # total - 1 excludes the pairs i = j. Small total weights are no counts of rows, so
    # the divisor is kept at total/2 or more.
    distance = 2.0 * spread * total / max(total - 1.0, 0.5 * total)
    return 1.0 / distance if distance > 0.0 else 1.0


def check_gamma(gamma: object) -> None:
    """Check that gamma is the name of a rule or a positive, finite number.

    Raises
    ------
    ValueError
        If it is neither.
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
    """Check that coef0 is a finite number.

    Raises
    ------
    ValueError
        If it is not.
    """
    if not (isinstance(coef0, (int, float, np.number)) and math.isfinite(coef0)):
        raise ValueError(f"coef0={coef0!r}: give a finite number")
