"""Stopping rule: train until labels are certain."""

from __future__ import annotations

from dataclasses import dataclass

from ..data.types import MatrixLike
from ..ranges import refuse_huge

#: Relative gaps that a fit tries in turn, after its own `tol`. The width of the bounds
#: goes as the root of the gap, and later steps often cost little.
TOLERANCES = (1e-6, 1e-9, 1e-12)


@dataclass(frozen=True, eq=False)
class Decided:
    """Stopping rule of ``fit(X, y, until=...)``: train until labels are certain.

    A fit ends once the predicted labels of a share of these rows are proved to be the
    labels of every exact optimum. It tries relative gaps of `tol`, 1e-6, 1e-9 and
    1e-12, all within `time_limit`, and warns if labels that could change are left over.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows whose labels are to be certain; any rows, without labels.
    share : float, default=1.0
        Share of the rows to decide, in (0, 1].

    Raises
    ------
    ValueError
        If `share` is out of range.

    Examples
    --------
    >>> from dualgap import LinearSVC
    >>> from dualgap.answers import Decided
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> model = LinearSVC(random_state=0)
    >>> model = model.fit(X[:400], y[:400], until=Decided(X[400:]))
    >>> bool(model.certified_labels(X[400:]).all())
    True
    """

    X: MatrixLike
    share: float = 1.0

    def __post_init__(self) -> None:
        refuse_huge("share", self.share)
        if not 0.0 < self.share <= 1.0:
            raise ValueError(
                f"share={self.share!r} is not in (0, 1]; give the share of the rows to "
                "decide, 1.0 for all"
            )
