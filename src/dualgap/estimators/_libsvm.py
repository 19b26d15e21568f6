"""Kernel models without a proof: LIBSVM trains where the kernel matrix is indefinite.

There P has no convex form, so no duality gap bounds anything. scikit-learn's own SVC
finds a stationary point of the dual, as it does for everybody else.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from ..certificate import Bounds, Status
from ..problems.base import EMPTY
from ..problems.kernel_batch import KernelBatch
from ..training import HISTORY_DTYPE, Solution
from . import originals

#: Names of kernels that LIBSVM trains where their matrix is indefinite.
CAN_BE_INDEFINITE = ("sigmoid", "poly")


def trained_by_libsvm(batch: KernelBatch, k: int, tol: float, atol: float) -> Solution:
    """Train one problem of the hinge with a free bias by LIBSVM's own default.

    The certificate has the status "uncertified" and no bound. `tol` and `atol` are what
    the fit was to prove.
    """
    kernel: Any = batch.kernel
    y, X = batch.signs(k), batch.points.X[batch.place(k)]
    model = originals.SVC(
        C=batch.C,
        kernel=kernel.name,
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        degree=getattr(kernel, "degree", 3),
        cache_size=batch.cache_size,
    )
    begun = time.perf_counter()
    # In a problem that is not convex, the solution depends on which class is first.
    model.fit(X, y != y[0], sample_weight=batch.weights_of(k))
    coef = np.zeros(len(y))
    values = model.dual_coef_
    values = values.toarray() if hasattr(values, "toarray") else values
    # The label of the second class, which scikit-learn takes as 1.
    second = -float(y[0])
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
    return Solution(EMPTY, coef * y, certificate, history, bias)
