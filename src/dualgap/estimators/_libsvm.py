"""Kernel models without a proof: LIBSVM trains where the kernel matrix is indefinite.

There P has no convex form, so no duality gap bounds anything. scikit-learn's own SVC
finds a stationary point of the dual, as it does for everybody else.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Bounds, Status
from ..data.types import MatrixLike
from ..kernels.functions import Kernel
from ..losses import Vector
from ..problems.base import EMPTY
from ..training import HISTORY_DTYPE, Solution
from . import originals

__all__ = ["CAN_BE_INDEFINITE", "trained_by_libsvm"]

#: Names of kernels that LIBSVM trains where their matrix is indefinite.
CAN_BE_INDEFINITE = ("sigmoid", "poly")


def trained_by_libsvm(
    X: MatrixLike,
    y: NDArray[np.int8],
    kernel: Kernel,
    C: float,
    weight: Vector,
    cache_size: float,
    tol: float,
    atol: float,
) -> tuple[Vector, float, Solution]:
    """Train one binary problem of the hinge with a free bias.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), -1 or +1
        All rows of one class come before the other class.
    kernel : Sigmoid or Polynomial
    C : float
    weight : ndarray of shape (n,)
    cache_size : float
        Megabytes of LIBSVM's cache.
    tol, atol : float
        What the fit was to prove; LIBSVM runs with its own default.

    Returns
    -------
    coef : ndarray of shape (n,)
        ``alpha_i y_i``.
    bias : float
    solution : Solution
        Its certificate has the status "uncertified" and no bound.
    """
    known: Any = kernel
    model = originals.SVC(
        C=C,
        kernel=kernel.name,
        gamma=known.gamma,
        coef0=known.coef0,
        degree=getattr(kernel, "degree", 3),
        cache_size=cache_size,
    )
    begun = time.perf_counter()
    # In a problem that is not convex, the solution depends on which class is first.
    model.fit(X, y != y[0], sample_weight=weight)
    coef = np.zeros(len(y))
    values = model.dual_coef_
    values = values.toarray() if hasattr(values, "toarray") else values
    second = -float(
        y[0]
    )  # the label of the second class, which scikit-learn takes as 1
    coef[model.support_] = second * values[0]
    certificate = replace(
        Bounds.proved().certificate,
        status=Status.UNCERTIFIED,
        solver="libsvm",
        tol=tol,
        atol=atol,
        updates=int(model.n_iter_[0]),
        seconds=time.perf_counter() - begun,
    )
    bias = second * float(model.intercept_[0])
    history = np.empty(0, HISTORY_DTYPE)
    return coef, bias, Solution(EMPTY, coef * y, certificate, history, bias)
