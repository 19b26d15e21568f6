"""Blocks of kernel values from the core, for the block solver and for prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy import sparse

from .. import core
from ..data.types import MatrixLike

if TYPE_CHECKING:
    from .gram import Matrix


@dataclass(frozen=True)
class KernelRowSettings:
    """Costs that decide between dense (packed) and sparse (scattered) rows.

    A kernel value of packed rows costs d operations. Measured billions of float32
    values per second, scattered and packed: covtype (12 of 54 entries stored) 0.87 and
    1.69, a9a (14 of 123) 0.76 and 0.80, w8a (12 of 300) 0.64 and 0.33.
    """

    #: Operations for each stored entry of scattered rows: memory is not read in order.
    entry: int = 4
    #: Operations for each value of scattered rows.
    value: int = 64


SETTINGS = KernelRowSettings()


def row_source(gram: Matrix, threads: int = 1) -> core.RowSource:
    """Return an object that computes many rows of a kernel matrix at a time."""
    if gram.kernel.form is not None:
        return kernel_rows(gram, threads)
    return core.PythonRows(gram.n, gram.entries)


def kernel_rows(gram: Matrix, threads: int = 1) -> core.KernelRows:
    """Return :func:`row_source` of a kernel that the core computes."""
    X, columns = gram.source()
    assert gram.accessor is not None
    assert gram.kernel.form is not None
    return core.KernelRows(gram.accessor, gram.kernel.form, columns, packs(X), threads)


def packs(X: MatrixLike) -> bool:
    """Return whether dense packed rows of X are faster than sparse products."""
    if not sparse.issparse(X):
        return True
    n, d = X.shape
    return bool(n * d <= SETTINGS.entry * X.nnz + SETTINGS.value * n)
