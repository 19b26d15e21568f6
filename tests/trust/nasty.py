"""Random problems made to be nasty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

Rng = np.random.Generator


def rows(rng: Rng, n: int, d: int, dtype: Any = np.float64) -> Any:
    """Rows that float64 has trouble with, of shape (n, d)."""
    X = rng.standard_normal((n, d))
    kind = rng.integers(16)
    if kind == 0:
        X[rng.random(n) < 0.5] = 0.0
    elif kind == 1:
        X[rng.random((n, d)) < 0.6] = 0.0
    elif kind == 2:
        X = X[rng.integers(0, n, n)]
    elif kind == 3:
        X = X[rng.integers(0, n, n)] * rng.choice([-1.0, 1.0], (n, 1))
    elif kind == 4:
        X = X[:, :1] * X[:1]
    elif kind == 5:
        X = X[:, :1] * X[:1] + 1e-15 * X
    elif kind == 6:
        X = np.round(X)
    elif kind == 7:
        X *= 10.0 ** rng.integers(-12, 13, (n, 1))
    elif kind == 8:
        X *= 10.0 ** rng.integers(-12, 13, (1, d))
    elif kind == 9:
        X = 2.0**53 + 2.0 * rng.integers(-5, 6, (n, d))
    elif kind == 10:
        X = 10.0 ** rng.uniform(0, 8) + 10.0 ** rng.uniform(-8, 0) * X
    elif kind == 11:  # an ulp apart
        X = np.nextafter(X[rng.integers(0, n, n)], rng.choice([-9.0, 9.0], (n, d)))
    elif kind == 12:
        X *= np.where(rng.random((n, d)) < 0.3, 5e-324, 1.0)
    with np.errstate(all="ignore"):
        if kind in (13, 14):
            reach = 30.0 if dtype == np.float32 else 150.0
            X *= 10.0 ** rng.uniform(-reach, reach - 10.0)
        elif kind == 15:
            X[rng.random((n, d)) < 0.2] *= 1e30 if dtype == np.float32 else 1e150
        return X.astype(dtype)


def sizes(rng: Rng, most: int = 14, width: int = 6) -> tuple[int, int]:
    """Few rows and columns, now and then up to 30 and 20."""
    if rng.random() < 0.03:
        return int(rng.integers(15, 31)), int(rng.integers(7, 21))
    return int(rng.integers(1, most + 1)), int(rng.integers(1, width + 1))


@dataclass
class Drawn:
    """Rows and all that a fit of them needs."""

    X: Any  # dense
    held: Any  # the same, dense or CSR
    codes: Any  # classes 0 to K - 1
    targets: Any
    weight: Any  # or None
    C: float
    tol: float
    epochs: int
    seed: int

    @property
    def signs(self) -> Any:
        return np.where(self.codes == 1, 1, -1)

    @property
    def factors(self) -> Any:
        return np.ones(len(self.X)) if self.weight is None else self.weight

    @property
    def cost(self) -> Any:
        """The float64 numbers next to C times the weights."""
        return self.C * self.factors

    @property
    def limits(self) -> dict[str, Any]:
        return {"tol": self.tol, "max_iter": self.epochs, "random_state": self.seed}


def weights(rng: Rng, n: int) -> Any:
    kinds = [[0.0, 1.0, 2.0], [1.0, 0.3], [0.0, 1.0, 1e-12, 1e12], [1e-6, 1.0, 1e6]]
    weight = rng.choice(kinds[rng.integers(len(kinds))], n)
    weight[rng.integers(n)] = 1.0
    return weight


def draw(
    rng: Rng,
    *,
    X: Any = None,
    most: int = 14,
    classes: int = 2,
    weighted: float = 0.4,
    reach: float = 12.0,
) -> Drawn:
    """A problem.

    Parameters
    ----------
    X : ndarray, optional
        Rows, if not any.
    most : int
        Rows.
    classes : int
    weighted : float
        How often rows have weights.
    reach : float
        C is between ``10**-reach`` and ``10**reach``.
    """
    if X is None:
        n, d = sizes(rng, most)
        X = rows(rng, max(n, classes), d, rng.choice([np.float32, np.float64]))
    n = len(X)
    codes = rng.integers(0, classes, n)
    codes[: min(n, classes)] = np.arange(min(n, classes))  # each at least once
    targets = rng.standard_normal(n) * 10.0 ** rng.uniform(-6, 6)
    if rng.random() < 0.3:
        targets = np.round(targets) + float(rng.choice([0.0, 1e8]))
    return Drawn(
        X=X,
        held=sparse.csr_matrix(X) if rng.random() < 0.4 else X,
        codes=rng.permutation(codes),
        targets=targets,
        weight=weights(rng, n) if rng.random() < weighted else None,
        C=float(10.0 ** rng.uniform(-reach, reach)),
        tol=float(10.0 ** rng.uniform(-12, -1)),
        epochs=int(rng.choice([1, 3, 10, 30, 200])),
        seed=int(rng.integers(1000)),
    )


def near_origin(rng: Rng, most: int = 10) -> Any:
    """Rows for kernels whose values are to be rational: the sizes of their powers."""
    n, d = sizes(rng, most, 4)
    X = rows(rng, max(n, 2), d)
    with np.errstate(all="ignore"):
        largest = float(np.abs(X).max())
        if not 1e-12 < largest < 1e12:
            X = X / (largest or 1.0)
    kind = rng.integers(4)
    if kind == 0:  # far from the origin, and near each other
        X = 10.0 ** rng.uniform(0, 5) + 10.0 ** rng.uniform(-8, 0) * X
    return X


def given_matrix(rng: Rng, most: int = 10) -> Any:
    """A kernel matrix that may be next to indefinite."""
    n = int(rng.integers(2, most + 1))
    X = rows(rng, n, int(rng.integers(1, 4)))
    with np.errstate(all="ignore"):
        X = X / (float(np.abs(X).max()) or 1.0)
        kind = rng.integers(3)
        if kind == 0:
            K = X @ X.T
        elif kind == 1:
            apart = ((X[:, None] - X[None]) ** 2).sum(axis=2)
            K = np.exp(-(10.0 ** rng.uniform(-6, 2)) * apart)
        else:
            K = (1.0 + X @ X.T) ** 3
    K = (K + K.T) / 2.0
    if rng.random() < 0.4:
        K = lowered(rng, K, 10.0 ** rng.uniform(-16, -6.5))
    if rng.random() < 0.3:
        K = K * 10.0 ** rng.uniform(-100, 100)
    return K


def lowered(rng: Rng, K: Any, size: float) -> Any:
    """Lower one eigenvalue of K by this share of its largest value."""
    v = rng.standard_normal(len(K))
    K = K - size * float(np.abs(K).max()) * np.outer(v, v) / float(v @ v)
    return (K + K.T) / 2.0
