"""Rows of a problem: the inspection of X, and the accessor over its rows."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .. import core
from .blocks import Block, RowSource, StreamedRows
from .types import Matrix, MatrixLike

Vector = NDArray[np.float64]

logger = logging.getLogger("dualgap")

#: Accessor over rows, or over their sizes if they are not in memory.
Accessor: TypeAlias = core.Rows | StreamedRows

# Faults of values, as opposed to faults of indices.
_OF_VALUES = ("value is NaN or infinite", "squared norm overflows")

_REBUILD = "rebuild the matrix with scipy.sparse.csr_matrix"


@dataclass(frozen=True)
class Points:
    """Inspected rows: real, finite, and in a layout that the core reads."""

    #: A C-contiguous native array, or a matrix that names no column twice in a row,
    #: shape (n, d).
    X: Matrix
    #: Squared norms of the rows, with the constant feature, shape (n,).
    q: Vector
    #: Value of the constant feature; 0 for no constant feature.
    constant: float

    @classmethod
    def of(cls, X: MatrixLike, constant: float = 0.0) -> Points:
        """Inspect X, unless it is inspected already."""
        if isinstance(X, Points):
            return X if X.constant == constant else X.with_constant(constant)
        X, _, q = _inspect_matrix(X, constant)
        return cls(X, q, constant)

    def with_constant(self, constant: float) -> Points:
        """Return the same rows with another constant feature."""
        q = np.empty(len(self.q))
        other = replace(self, q=q, constant=constant)
        other.accessor.inspect(q)
        return other

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def accessor(self) -> core.Rows:
        """Accessor over the rows, a new core.Rows."""
        if sparse.issparse(self.X):
            return _csr_accessor(self.X, self.constant)
        return core.dense_rows(self.X, self.constant)

    def __getitem__(self, rows: NDArray[np.generic]) -> Points:
        return Points(self.X[rows], self.q[rows], self.constant)


class Norms:
    """Squared norms of the rows; of streamed rows, noted as they are read."""

    def __init__(self, q: Vector, pages: Sequence[slice] = ()) -> None:
        self.q = q
        self.starts = np.array([page.start for page in pages])
        self.seen = np.zeros(len(pages), bool)

    def look(self, block: Block, name: str) -> None:
        """Check the rows of a block and note their norms, unless done before."""
        pages = [
            slice(*np.searchsorted(self.starts, (span.start, span.stop)))
            for span in block.spans
        ]
        if all(self.seen[part].all() for part in pages):
            return
        q = np.empty(block.size)
        fault, where, unique = block.rows.inspect(q)
        if fault is None and not unique:
            fault = "a row names a column twice"
        if fault is not None:
            row = np.concatenate([np.r_[span] for span in block.spans])[where]
            raise ValueError(
                f"{name}, row {row}: {fault}; make the store again with dualgap convert"
            )
        if len(block.spans) == 1:
            self.q[block.span] = q
        else:
            block.put(self.q, q)
        for part in pages:
            self.seen[part] = True


def inspect_rows(X: MatrixLike, constant: float) -> tuple[Accessor, Norms, int]:
    """Return the accessor over X, its squared norms, and the number of columns."""
    if isinstance(X, RowSource):
        return _stored_rows(X, constant)
    if isinstance(X, Points):
        X = Points.of(X, constant)
        return X.accessor, Norms(X.q), X.shape[1]
    X, rows, q = _inspect_matrix(X, constant)
    return rows, Norms(q), X.shape[1]


def accessor_of(X: MatrixLike) -> core.Rows:
    """Inspect X as :func:`inspect_rows`, and return the accessor over its rows."""
    return _inspect_matrix(X, 0.0)[1]


def _inspect_matrix(X: MatrixLike, constant: float) -> tuple[Matrix, core.Rows, Vector]:
    """Return X in a layout that the core reads, its accessor, and its squared norms."""
    is_sparse = sparse.issparse(X)
    if not is_sparse:
        # np.asarray would drop the mask of a masked array.
        if not hasattr(X, "__array__") or isinstance(X, np.ma.MaskedArray):
            raise TypeError(
                f"X is a {type(X).__name__}; give a NumPy array or a SciPy CSR matrix"
            )
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s); reshape it to (n, d)")
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X has dtype {X.dtype}; convert it to float32 or float64")
    return _csr_rows(X, constant) if is_sparse else _dense_rows(X, constant)


def _stored_rows(source: RowSource, constant: float) -> tuple[Accessor, Norms, int]:
    rows: Accessor = StreamedRows(source, constant)
    norms = Norms(np.zeros(rows.n), source.pages)
    if len(source.pages) == 1:
        rows = source.hold(constant)
        norms.look(Block(rows, (slice(0, rows.n),)), source.name)
    return rows, norms, source.n_features


def _dense_rows(X: MatrixLike, constant: float) -> tuple[Matrix, core.Rows, Vector]:
    if X.dtype not in (np.float32, np.float64):
        logger.info("X is converted from %s to float64: one copy", X.dtype)
        X = X.astype(np.float64, order="C")
    if not X.flags.c_contiguous or not X.flags.aligned or not X.dtype.isnative:
        logger.info("X is not a C-contiguous native array: one copy is made")
        X = np.array(X, dtype=X.dtype.newbyteorder("="), order="C")
    rows = core.dense_rows(X, constant)
    q = np.empty(rows.n)
    fault, where, _ = rows.inspect(q)
    _refuse(fault, where)
    return X, rows, q


def _csr_rows(X: MatrixLike, constant: float) -> tuple[Matrix, core.Rows, Vector]:
    if X.format != "csr":
        logger.info("X is converted from %s to CSR: one copy", X.format.upper())
        check_indices(X)
        X = X.tocsr()
    if X.dtype not in (np.float32, np.float64):
        logger.info("X is converted from %s to float64: one copy", X.dtype)
        X = X.astype(np.float64)
    rows, q, fault, where, unique = _inspect_csr(X, constant)
    _refuse(fault, where)
    if not unique:
        logger.info("X has rows that name a column twice: one copy is made")
        X = X.copy()
        X.has_canonical_format = False
        X.sum_duplicates()
        rows, q, fault, where, _ = _inspect_csr(X, constant)
        _refuse(fault, where)
    return X, rows, q


def check_indices(X: MatrixLike) -> bool:
    """Check the indices of a sparse matrix, which SciPy does not.

    Returns whether all values are known to be finite.
    """
    if X.format == "csr" and X.dtype in (np.float32, np.float64):
        _, _, fault, where, _ = _inspect_csr(X, 0.0)
        if fault is None:
            return True
        if fault not in _OF_VALUES:  # a fault of values ends the check of indices
            _refuse(fault, where)
    if X.format == "coo":
        for name, size in (("row", X.shape[0]), ("col", X.shape[1])):
            index = getattr(X, name)
            if index.size and (index.min() < 0 or index.max() >= size):
                raise ValueError(f"X.{name} holds indices out of range; {_REBUILD}")
    elif hasattr(X, "check_format"):
        try:
            copy.copy(X).check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"X: {error}; {_REBUILD}") from None
    return False


def _inspect_csr(
    X: MatrixLike, constant: float
) -> tuple[core.Rows, Vector, str | None, int, bool]:
    rows = _csr_accessor(X, constant)
    q = np.empty(rows.n)
    fault, where, unique = rows.inspect(q)
    return rows, q, fault, where, unique


def _csr_accessor(X: MatrixLike, constant: float) -> core.Rows:
    arrays = []
    for name in ("data", "indices", "indptr"):
        array = getattr(X, name)
        if name != "data" and array.dtype not in (np.int32, np.int64):
            raise TypeError(f"X.{name} has dtype {array.dtype}; {_REBUILD}")
        if not array.flags.c_contiguous or not array.flags.aligned:
            logger.info("X.%s is not contiguous: one copy is made", name)
            array = np.require(array, requirements=["C", "A"])
        arrays.append(array)
    lengths = tuple(array.shape for array in arrays)
    if lengths[0] != lengths[1] or lengths[2] != (X.shape[0] + 1,):
        raise ValueError(
            f"X has shape {X.shape} but data, indices and indptr of shapes "
            f"{lengths[0]}, {lengths[1]} and {lengths[2]}; {_REBUILD}"
        )
    values, indices, indptr = arrays
    return core.csr_rows(values, indices, indptr, X.shape[1], constant)


def _refuse(fault: str | None, where: int) -> None:
    if fault is None:
        return
    remedy = {
        "value is NaN or infinite": "impute or drop such rows",
        "squared norm overflows": "rescale the features",
    }.get(fault, _REBUILD)
    raise ValueError(f"X, row {where}: {fault}; {remedy}")
