"""Nystroem features and their kernel matrix in plain NumPy, float64."""

from __future__ import annotations

import numpy as np


def landmarks(y, used, n_components, seed):
    """Half of them from each class, drawn by the number of its rows and the seed."""
    drawn = []
    for label in (-1, 1):
        rows = np.flatnonzero((y == label) & used)
        order = np.random.default_rng(seed).permutation(len(rows))
        drawn.append(np.sort(rows[order[: (n_components + 1) // 2]]))
    return np.concatenate(drawn)


def approximated(K, rows):
    """``K_nm K_mm^+ K_mn``: the kernel that the features have."""
    own = K[np.ix_(rows, rows)]
    values, vectors = np.linalg.eigh(own)
    noise = 10.0 * np.finfo(np.float32).eps * own.diagonal().max()
    kept = values > np.sqrt(len(rows)) * noise
    Z = K[:, rows] @ (vectors[:, kept] / np.sqrt(values[kept]))
    return Z @ Z.T
