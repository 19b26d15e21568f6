"""Coordinate descent for a quadratic with an L1 norm, in plain NumPy."""

from __future__ import annotations

import numpy as np


def violation(slope, w, l1):
    """Distance of 0 from the subdifferential, given the slope without L1."""
    return abs(slope + l1 * np.sign(w)) if w else max(abs(slope) - l1, 0.0)


def descend(X, h, r, w, l1, l2, free, target, most):
    """Minimise ``r.z + z.Hz/2 + sum_j l1 |w_j| + l2/2 w_j^2``, z = X (w - start).

    `free`: a column without a penalty, or -1. Returns w, the sweeps, and the largest
    violation that the last sweep over all columns met.
    """
    w, u, sweeps, met = w.copy(), r.copy(), 0, 0.0
    d = X.shape[1]

    def sweep(columns):
        largest = 0.0
        for j in columns:
            own1, own2 = (0.0, 0.0) if j == free else (l1, l2)
            slope, bent = X[:, j] @ u + own2 * w[j], h @ X[:, j] ** 2 + own2
            off = violation(slope, w[j], own1)
            largest = max(largest, off)
            if off == 0.0 or bent <= 0.0:
                continue
            best = w[j] - slope / bent
            new = np.sign(best) * max(abs(best) - own1 / bent, 0.0)
            u[:] += (new - w[j]) * h * X[:, j]
            w[j] = new
        return largest

    while sweeps < most:
        met, sweeps = sweep(range(d)), sweeps + 1
        if met <= target:
            break
        active = [j for j in range(d) if w[j] != 0.0 or j == free]
        for _ in range(100):
            if sweeps >= most:
                break
            sweeps += 1
            if sweep(active) <= max(target, 0.1 * met):
                break
    return w, sweeps, met
