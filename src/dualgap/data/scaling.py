"""Standardisation of columns, estimated on the training rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .model_file import expect_tensors
from .types import Matrix, MatrixLike

#: Rows whose squares are held at a time.
_BLOCK = 2**14


class Scaling(NamedTuple):
    """Mean and scale of every column. Sparse data have no mean and keep their zeros."""

    mean: NDArray[np.float64] | None
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, X: MatrixLike) -> Scaling:
        """Return the scaling of rows; constant columns get the scale 1."""
        n = X.shape[0]
        if not hasattr(X, "indptr"):
            mean = X.mean(axis=0)
            blocks = (X[at : at + _BLOCK] - mean for at in range(0, n, _BLOCK))
            squares = sum((block * block).sum(axis=0) for block in blocks)
        else:
            d = X.shape[1]
            mean = np.bincount(X.indices, X.data, d) / n
            zeros = n - np.bincount(X.indices, minlength=d)
            squares = np.bincount(X.indices, (X.data - mean[X.indices]) ** 2, d)
            squares += zeros * mean**2
        scale = np.sqrt(squares / n)
        floor = 10 * np.finfo(float).eps * np.abs(mean)  # below it, only rounding
        scale = np.where(scale > floor, scale, 1.0)
        return cls(None if hasattr(X, "indptr") else mean, scale)

    @classmethod
    def of_scaler(cls, scaler: Any) -> Scaling:
        """Return the scaling of a fitted StandardScaler of scikit-learn."""
        return cls(
            scaler.mean_ if scaler.with_mean else None,
            scaler.scale_ if scaler.with_std else np.ones(scaler.n_features_in_),
        )

    def apply(self, X: MatrixLike) -> Matrix:
        """Standardise rows of float64 in their place, and return them."""
        if hasattr(X, "indptr"):
            if self.mean is not None:
                return self.apply(X.toarray())
            X.data /= self.scale[X.indices]
            return X
        if self.mean is not None:
            X -= self.mean
        X /= self.scale
        return X

    def tensors(self) -> dict[str, NDArray[np.float64]]:
        """Return the arrays for a model file, by name."""
        found = {_SCALE: np.ascontiguousarray(self.scale, "<f8")}
        if self.mean is not None:
            found[_MEAN] = np.ascontiguousarray(self.mean, "<f8")
        return found

    @classmethod
    def taken_from(cls, tensors: dict[str, NDArray[np.float64]]) -> Scaling | None:
        """Take the scaling out of a model file's arrays; None if there is none."""
        found = {name: tensors.pop(name) for name in (_MEAN, _SCALE) if name in tensors}
        if not found:
            return None
        vector = ("F64",), (min(array.size for array in found.values()),)
        expect_tensors(found, dict.fromkeys({_SCALE, *found}, vector))
        if not (found[_SCALE] > 0.0).all():
            raise ValueError("scale of the columns is not positive")
        return cls(found.get(_MEAN), found[_SCALE])


_MEAN, _SCALE = "columns.mean", "columns.scale"
